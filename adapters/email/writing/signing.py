"""How do others know that a mail is from our domain? Its sender's server signs it (RFC 6376), or we do, here.

Needed only when the outgoing server does not sign by itself, as most do.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pizzabot.errors import ConfigError
from pizzabot.settings.tables import DkimTable

# What a reader sees or a program acts on. From once more than it stands there, so that nobody adds a second.
_SIGNED = (
    "from",
    "from",
    "reply-to",
    "to",
    "cc",
    "subject",
    "date",
    "message-id",
    "in-reply-to",
    "references",
    "auto-submitted",
    "mime-version",
    "content-type",
    "content-transfer-encoding",
)
_NO_KEY = "holds no private key that signs; give an RSA key in PEM, or an Ed25519 key in PEM or base64"
_SEED_BYTES = 32
_ED25519 = bytes.fromhex("302e020100300506032b657004220420")  # PKCS#8 around a seed (RFC 8410 §7)
_PEM = re.compile(rb"-----BEGIN (RSA )?PRIVATE KEY-----\s(.+?)-----END", re.DOTALL)

Algorithm = Literal["rsa-sha256", "ed25519-sha256"]


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A private key and where its public half is found: TXT of `SELECTOR._domainkey.DOMAIN`.

    `private` is as dkimpy wants it: PEM for RSA, the seed in base64 for Ed25519 (RFC 8463).
    """

    selector: str
    domain: str
    algorithm: Algorithm
    private: bytes = field(repr=False)


def load_key(settings: DkimTable, address: str, home: Path = Path()) -> SigningKey:
    """The key of the settings. `address` is the agent's, whose domain signs unless the settings name one.

    A relative `key_file` is looked for in `home`. Raises ConfigError, which never shows the key.
    """
    domain = settings.domain or address.rpartition("@")[2]
    path = home / Path(settings.key_file).expanduser()
    try:
        written = path.read_bytes()
    except PermissionError as error:
        raise _unusable(f"{path} may not be read by this user; make it theirs") from error
    except OSError as error:
        raise _unusable(f"{path} cannot be read ({error.strerror})") from error
    algorithm, private = _parsed(written, path)
    key = SigningKey(settings.selector, domain, algorithm, private)
    try:
        sign(f"From: {address}\r\n\r\n".encode(), key)
    except ValueError as error:
        raise _unusable(f"{path} {_NO_KEY}") from error
    return key


def sign(message: bytes, key: SigningKey) -> bytes:
    """`message` with a signature of its head and body, relaxed/relaxed, before it.

    Raises ValueError when the key cannot sign, or the message has no head.
    """
    import dkim
    from dkim.crypto import DigestTooLargeError, UnparsableKeyError

    present = set(_names(message))
    try:
        signature = dkim.sign(
            message,
            key.selector.encode("idna"),
            key.domain.encode("idna"),
            key.private,
            canonicalize=(b"relaxed", b"relaxed"),
            include_headers=[name.encode() for name in _SIGNED if name in present or name == "from"],
            signature_algorithm=key.algorithm.encode(),
        )
    except (dkim.DKIMException, UnparsableKeyError, DigestTooLargeError, IndexError, UnicodeError) as error:
        raise ValueError(f"this mail cannot be signed ({type(error).__name__})") from error
    return bytes(signature) + message


def _parsed(written: bytes, path: Path) -> tuple[Algorithm, bytes]:
    pem = _PEM.search(written)
    try:
        binary = base64.b64decode(b"".join((pem[2] if pem else written).split()), validate=True)
    except binascii.Error as error:
        raise _unusable(f"{path} {_NO_KEY}") from error
    seed = binary.removeprefix(_ED25519)
    if len(seed) == _SEED_BYTES and (pem is None or binary.startswith(_ED25519)):
        return "ed25519-sha256", base64.b64encode(seed)
    if pem is None:
        raise _unusable(f"{path} {_NO_KEY}")
    # With the line ends that dkimpy looks for.
    return "rsa-sha256", b"\n".join(written[pem.start() :].split(b"\r\n"))


def _unusable(problem: str) -> ConfigError:
    return ConfigError("pizzabot.toml", problem, key="email.dkim.key_file")


def _names(message: bytes) -> Iterator[str]:
    for line in re.split(rb"\r\n\r\n|\n\n", message, maxsplit=1)[0].splitlines():
        name, colon, _ = line.partition(b":")
        if colon and line[:1] not in (b" ", b"\t"):
            yield name.strip().lower().decode("ascii", "replace")
