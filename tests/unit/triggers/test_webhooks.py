"""Is a delivery believed exactly when its sender knows the secret?"""

from __future__ import annotations

import hashlib
import hmac
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers

from pizzabot.errors import ConfigError, Invalid
from pizzabot.triggers.webhooks import (
    Proof,
    Seal,
    check_secret,
    hashed,
    proof_by_secret,
    proof_by_signature,
)

SECRET = "correct-horse-battery"
KEY = SECRET.encode()
NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
STAMP = str(int(NOW.timestamp()))
BODY = b'{"a": 1}'


def signature(signed: bytes, key: bytes = KEY) -> str:
    return "sha256=" + hmac.new(key, signed, hashlib.sha256).hexdigest()


def proof(body: bytes = BODY, now: datetime = NOW, **headers: str) -> Proof | None:
    sent = Headers({name.replace("_", "-"): value for name, value in headers.items()})
    return proof_by_signature(KEY, sent, body, now)


# -- the secret itself -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Trigger-Secret": SECRET},
        {"x-trigger-secret": SECRET},
        {"Authorization": f"Bearer {SECRET}"},
        {"Authorization": f"bearer  {SECRET}"},
    ],
)
def test_the_secret_is_proof(headers: dict[str, str]) -> None:
    assert proof_by_secret(hashed(SECRET), Headers(headers)) == Proof(None)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Trigger-Secret": ""},
        {"X-Trigger-Secret": SECRET + "x"},
        {"X-Trigger-Secret": SECRET[:-1]},
        {"X-Trigger-Secret": SECRET.upper()},
        {"X-Trigger-Secret": hashed(SECRET)},
        {"Authorization": f"Basic {SECRET}"},
        {"Authorization": SECRET},
        {"Authorization": "Bearer"},
        {"X-Trigger-Secret": "wrong", "Authorization": f"Bearer {SECRET}"},
        {"X-Trigger-Secret": "é" * 20},
    ],
)
def test_nothing_else_is_proof(headers: dict[str, str]) -> None:
    assert proof_by_secret(hashed(SECRET), Headers(headers)) is None


def test_a_trigger_without_a_secret_cannot_be_called_with_none() -> None:
    assert proof_by_secret("", Headers({"X-Trigger-Secret": ""})) is None


@pytest.mark.parametrize(
    "secret",
    ["x" * 15, "x" * 501, "", "é" * 20, "with a space in it", "line\nbreak" * 3, 7, ["x" * 20], True],
)
def test_a_secret_that_no_header_carries_or_that_is_soon_guessed_is_refused(secret: Any) -> None:
    with pytest.raises(Invalid, match="secret: has 16 to 500 ASCII characters without spaces"):
        check_secret(secret)


# -- a signature -----------------------------------------------------------------------------------------


def test_a_signature_over_time_and_body_is_proof_that_counts_once() -> None:
    right = signature(STAMP.encode() + b"." + BODY)
    assert proof(X_Signature=right, X_Timestamp=STAMP) == Proof(right.removeprefix("sha256="), is_timed=True)


@pytest.mark.parametrize("seconds", [-300, -299, 0, 299, 300])
def test_within_five_minutes_a_signature_counts(seconds: int) -> None:
    right = signature(STAMP.encode() + b"." + BODY)
    assert proof(now=NOW + timedelta(seconds=seconds), X_Signature=right, X_Timestamp=STAMP) is not None


@pytest.mark.parametrize("seconds", [-86_400, -301, 301, 86_400])
def test_an_old_or_future_signature_counts_no_more(seconds: int) -> None:
    right = signature(STAMP.encode() + b"." + BODY)
    assert proof(now=NOW + timedelta(seconds=seconds), X_Signature=right, X_Timestamp=STAMP) is None


@pytest.mark.parametrize(
    "stamp",
    [
        *("", " ", "now", STAMP + ".0", "+" + STAMP, f" {STAMP}", "-1", "0x10", STAMP + "000", "9" * 400),
        *("１７７２４４２０００", "2026-03-02T09:00:00Z"),
    ],
)
def test_a_time_that_is_no_number_of_seconds_is_none(stamp: str) -> None:
    signed = stamp.encode() + b"." + BODY
    # As a server reads a header: bytes, decoded as latin-1.
    sent = {"X-Signature": signature(signed), "X-Timestamp": stamp.encode().decode("latin-1")}
    assert proof_by_signature(KEY, sent | {k.lower(): v for k, v in sent.items()}, BODY, NOW) is None


@pytest.mark.parametrize(
    "change",
    [
        {"body": BODY + b" "},
        {"body": b""},
        {"X_Timestamp": str(int(STAMP) + 1)},
        {"X_Signature": signature(BODY)},
        {"X_Signature": signature(STAMP.encode() + b"." + BODY, b"another key of that length")},
        {"X_Signature": signature(STAMP.encode() + b"." + BODY)[7:]},
        {"X_Signature": "sha1=" + signature(STAMP.encode() + b"." + BODY)[7:]},
        {"X_Signature": signature(STAMP.encode() + b"." + BODY)[:-1]},
        {"X_Signature": ""},
        {"X_Signature": "é" * 71},
    ],
)
def test_what_was_tampered_with_is_no_proof(change: dict[str, Any]) -> None:
    sent: dict[str, Any] = {"X_Signature": signature(STAMP.encode() + b"." + BODY), "X_Timestamp": STAMP}
    assert proof(**sent) is not None
    assert proof(**(sent | change)) is None


def test_a_signature_in_capitals_is_the_same_one() -> None:
    right = signature(STAMP.encode() + b"." + BODY)
    assert proof(X_Signature=right.upper(), X_Timestamp=STAMP) == Proof(
        right.removeprefix("sha256="), is_timed=True
    )


def test_a_signature_as_github_makes_it_counts_whenever_it_comes() -> None:
    right = signature(BODY)
    sent = Headers({"X-Hub-Signature-256": right})
    assert proof_by_signature(KEY, sent, BODY, NOW) == Proof(right.removeprefix("sha256="))
    assert proof_by_signature(KEY, sent, BODY + b" ", NOW) is None


def test_a_signature_with_a_time_cannot_be_turned_into_one_without() -> None:
    """Who catches such a delivery must not be able to send it a day later as another kind of it."""
    signed = STAMP.encode() + b"." + BODY
    sent = Headers({"X-Hub-Signature-256": signature(signed)})
    assert proof_by_signature(KEY, sent, signed, NOW + timedelta(days=1)) is None


def test_a_wrong_signature_is_not_made_good_by_a_right_one_of_another_kind() -> None:
    sent = Headers({"X-Signature": "sha256=0", "X-Timestamp": STAMP, "X-Hub-Signature-256": signature(BODY)})
    assert proof_by_signature(KEY, sent, BODY, NOW) is None


# -- how a key is kept -----------------------------------------------------------------------------------


def test_a_sealed_key_can_be_opened_by_its_home_alone(tmp_path: Path) -> None:
    kept = Seal(tmp_path / "seal.key").sealed(SECRET)
    assert SECRET not in kept
    assert Seal(tmp_path / "seal.key").opened(kept) == KEY
    assert stat.S_IMODE((tmp_path / "seal.key").stat().st_mode) == 0o600
    with pytest.raises(ConfigError, match="is not the key that sealed this trigger's secret"):
        Seal(tmp_path / "other.key").opened(kept)


def test_the_same_secret_is_sealed_differently_each_time(tmp_path: Path) -> None:
    seal = Seal(tmp_path / "seal.key")
    assert seal.sealed(SECRET) != seal.sealed(SECRET)


@pytest.mark.parametrize("damaged", ["", "no key", "c2hvcnQ="])
def test_a_damaged_key_file_says_what_to_do(tmp_path: Path, damaged: str) -> None:
    (tmp_path / "seal.key").write_text(damaged)
    with pytest.raises(ConfigError, match="put back a copy of it, or remove it"):
        Seal(tmp_path / "seal.key").sealed(SECRET)
