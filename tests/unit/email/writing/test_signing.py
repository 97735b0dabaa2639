"""Does a signature hold on its way, break when the mail was changed, and is a bad key said in time?"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from pathlib import Path

import dkim
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from pizzabot.adapters.email.writing.signing import SigningKey, load_key, sign

from pizzabot.errors import ConfigError
from pizzabot.settings.tables import DkimTable

MAIL = (
    b"From: Pizza Bot <pizza@example.com>\r\nTo: ada@example.org\r\nSubject: a\r\n folded\r\n"
    b"X-Other: 1\r\n\r\nHi  there.\r\n\r\n"
)

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ED25519 = ed25519.Ed25519PrivateKey.generate()
_Format = serialization.PrivateFormat


def pem(key: rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey, form: serialization.PrivateFormat) -> bytes:
    return key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())


def record(key: rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey) -> bytes:
    """What stands in the DNS."""
    if isinstance(key, ed25519.Ed25519PrivateKey):
        raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
        return b"v=DKIM1; k=ed25519; p=" + base64.b64encode(raw)
    der = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return b"v=DKIM1; k=rsa; p=" + base64.b64encode(der)


def verified(message: bytes, key: rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey) -> bool:
    def look_up(name: bytes, timeout: int = 5) -> bytes:
        assert name == b"pizza._domainkey.example.com."
        return record(key)

    return bool(dkim.verify(message, dnsfunc=look_up))


def loaded(tmp_path: Path, written: bytes) -> SigningKey:
    (tmp_path / "dkim.key").write_bytes(written)
    return load_key(DkimTable(selector="pizza", key_file="dkim.key"), "pizza@example.com", tmp_path)


KEYS = [
    (RSA, pem(RSA, _Format.TraditionalOpenSSL)),
    (RSA, pem(RSA, _Format.PKCS8)),
    (RSA, pem(RSA, _Format.PKCS8).replace(b"\n", b"\r\n")),
    (ED25519, pem(ED25519, _Format.PKCS8)),
    (ED25519, base64.b64encode(ED25519.private_bytes_raw()) + b"\n"),
]
NAMES = ["PKCS#1", "PKCS#8", "CRLF", "Ed25519 PEM", "Ed25519 seed"]


@pytest.mark.parametrize(("key", "written"), KEYS, ids=NAMES)
def test_a_signed_mail_verifies_with_the_record(
    tmp_path: Path, key: rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey, written: bytes
) -> None:
    signed = sign(MAIL, loaded(tmp_path, written))
    assert signed.endswith(MAIL)
    assert verified(signed, key)


@pytest.mark.parametrize(
    ("change", "holds"),
    [
        (lambda mail: mail.replace(b"Hi  there.", b"Hi there."), True),  # relaxed
        (lambda mail: mail.replace(b"Subject: a\r\n folded", b"subject:a folded"), True),
        (lambda mail: mail.replace(b"X-Other: 1", b"X-Other: 2"), True),
        (lambda mail: mail.replace(b"Hi", b"Ho"), False),
        (lambda mail: mail.replace(b"Subject: a", b"Subject: b"), False),
        (lambda mail: b"From: eve@evil.example\r\n" + mail, False),
        (lambda mail: mail + b"more\r\n", False),
    ],
)
def test_only_changes_that_change_nothing_leave_the_signature_whole(
    tmp_path: Path, change: Callable[[bytes], bytes], holds: bool
) -> None:
    signed = change(sign(MAIL, loaded(tmp_path, KEYS[0][1])))
    try:
        found = verified(signed, RSA)
    except dkim.DKIMException:
        found = False
    assert found is holds


@pytest.mark.parametrize(
    "written",
    [
        b"",
        b"no key",
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        pem(RSA, _Format.PKCS8)[:200],
        base64.b64encode(b"x" * 31),
        RSA.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        ),
        RSA.private_bytes(
            serialization.Encoding.PEM, _Format.PKCS8, serialization.BestAvailableEncryption(b"secret")
        ),
    ],
)
def test_a_file_without_a_usable_key_is_an_error_of_the_settings(tmp_path: Path, written: bytes) -> None:
    with pytest.raises(ConfigError, match=r"email\.dkim\.key_file: .* holds no private key that signs"):
        loaded(tmp_path, written)


def test_a_missing_file_is_an_error_of_the_settings(tmp_path: Path) -> None:
    settings = DkimTable(selector="pizza", key_file="nowhere.key")
    with pytest.raises(ConfigError, match=r"nowhere\.key cannot be read \(No such file"):
        load_key(settings, "pizza@example.com", tmp_path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_of_somebody_else_is_an_error_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "dkim.key").touch(mode=0)
    settings = DkimTable(selector="pizza", key_file="dkim.key")
    with pytest.raises(ConfigError, match="may not be read by this user"):
        load_key(settings, "pizza@example.com", tmp_path)


def test_the_key_shows_nowhere(tmp_path: Path) -> None:
    assert "PRIVATE" not in repr(loaded(tmp_path, KEYS[0][1]))


def test_a_mail_without_a_head_cannot_be_signed(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be signed"):
        sign(b"this is no head\r\n\r\n", loaded(tmp_path, KEYS[0][1]))
