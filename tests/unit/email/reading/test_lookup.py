"""Is a key asked for in DNS as RFC 6376 wants it? Against a name server on this machine."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import dns.flags
import dns.message
import dns.rcode
import dns.resolver
import dns.rrset
import pytest
from pizzabot.adapters.email.reading import lookup

RECORDS = {
    "one.example.": ['"v=DKIM1; " "p=abc"'],
    "two.example.": ['"v=DKIM1"', '"v=DKIM1; p=other"'],
}


def _answer(wire: bytes) -> bytes | None:
    query = dns.message.from_wire(wire)
    name = query.question[0].name
    if name.to_text() == "silent.example.":
        return None
    answer = dns.message.make_response(query)
    answer.flags |= dns.flags.RA
    if texts := RECORDS.get(name.to_text()):
        answer.answer.append(dns.rrset.from_text(name, 60, "IN", "TXT", *texts))
    else:
        answer.set_rcode(dns.rcode.NXDOMAIN)
    return answer.to_wire()


def _serve(server: socket.socket) -> None:
    while True:
        wire, client = server.recvfrom(4_096)
        if wire == b"stop":
            return
        if answer := _answer(wire):
            server.sendto(answer, client)


@pytest.fixture(autouse=True)
def _name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=_serve, args=(server,))
        thread.start()
        resolver = dns.resolver.Resolver(configure=False)
        resolver.nameservers, resolver.port = ["127.0.0.1"], server.getsockname()[1]
        monkeypatch.setattr(dns.resolver, "default_resolver", resolver)
        yield
        server.sendto(b"stop", server.getsockname())
        thread.join()


def test_the_strings_of_the_one_record_are_joined() -> None:
    assert lookup.txt(b"one.example.") == b"v=DKIM1; p=abc"


@pytest.mark.parametrize(
    "name", [b"two.example.", b"none.example.", b"\xff.example.", b"a..b.", b"", b"x" * 300]
)
def test_anything_but_one_record_is_none(name: bytes) -> None:
    assert lookup.txt(name) is None


def test_a_silent_name_server_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookup, "_SECONDS", 0.2)
    assert lookup.txt(b"silent.example.") is None
