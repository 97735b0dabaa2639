"""Who is believed at the door?"""

from __future__ import annotations

import ipaddress

import pytest
from pizzabot.adapters.email.letters import Envelope
from pizzabot.adapters.email.smtp.doorkeeper import Doorkeeper, Limits


async def take(content: bytes, envelope: Envelope) -> None:
    raise NotImplementedError


TRUSTED = [ipaddress.ip_network(text) for text in ("192.0.2.0/24", "2001:db8::/32", "fe80::/10")]


@pytest.mark.parametrize(
    ("peer", "trusted"),
    [
        ("192.0.2.7", True),
        ("::ffff:192.0.2.7", True),  # IPv4 at a socket for both
        ("2001:db8::1", True),
        ("fe80::1%eth0", True),
        ("192.0.3.7", False),
        ("::ffff:192.0.3.7", False),
        ("::1", False),
        ("", False),
        ("192.0.2", False),
        ("mail.example.com", False),
    ],
)
def test_only_addresses_in_a_trusted_network_are_trusted(peer: str, trusted: bool) -> None:
    assert Doorkeeper(lambda address: True, take, TRUSTED, Limits()).trusts(peer) is trusted
