"""Whom do we take for a mail server? Whoever shows a certificate for its name, from an authority we trust."""

from __future__ import annotations

import ssl

from pizzabot.errors import ConfigError


def verified_context(ca_file: str = "") -> ssl.SSLContext:
    """TLS with certificate and host name checked (RFC 8314 §3, RFC 9525).

    `ca_file` holds certificates (PEM) to trust beside those of the machine, for an authority of one's own.

    Raises ConfigError when it cannot be read.
    """
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError) as error:
            problem = error.strerror or "no certificates in it"
            raise ConfigError(ca_file, f"cannot be read as certificates ({problem}); see ca_file") from error
    return context


def refusal(error: ssl.SSLError, host: str) -> str:
    """Why there is no encrypted connection to `host`, and what to do."""
    if isinstance(error, ssl.SSLCertVerificationError):
        reason = error.verify_message or "not valid"
        return (
            f"the certificate of {host} was refused: {reason.rstrip('.')}; write the name in the certificate "
            "as host, renew the certificate, or name the file of its authority as ca_file"
        )
    if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE"):
        return f'{host} does not speak TLS on this port; try another port or security = "starttls"'
    return f"no encrypted connection to {host} ({error.reason or 'TLS failed'})"
