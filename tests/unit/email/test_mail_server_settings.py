"""Are settings of the mail door and of sending that do not fit together found before anything runs?"""

from __future__ import annotations

from pathlib import Path

import pytest

from pizzabot.settings import SettingsError, load_settings

MAIL = """
[email]
address = "pizza@example.com"
[email.smtp]
host = "127.0.0.1"
security = "none"
{smtp}
[email.listen]
{listen}
"""


def problems(home: Path, *, smtp: str = "", listen: str = "") -> list[str]:
    (home / "pizzabot.toml").write_text(MAIL.format(smtp=smtp, listen=listen))
    with pytest.raises(SettingsError) as caught:
        load_settings(home, {})
    return [str(error).partition(": ")[2] for error in (caught.value, *caught.value.others)]


def test_the_door_as_it_is_needs_nothing_more(tmp_path: Path) -> None:
    (tmp_path / "pizzabot.toml").write_text(MAIL.format(smtp="", listen=""))
    settings = load_settings(tmp_path, {})
    assert settings.email.listen is not None
    assert (settings.email.listen.host, settings.email.listen.proxy_protocol) == ("127.0.0.1", False)


@pytest.mark.parametrize("network", ["10.0.0.0/33", "mail.example.com", "", "192.0.2.1-9"])
def test_what_is_no_network_is_believed_by_nobody(tmp_path: Path, network: str) -> None:
    (problem,) = problems(tmp_path, listen=f'trusted_networks = ["10.0.0.0/8", "{network}"]')
    assert problem.startswith("email.listen.trusted_networks[1]: ")


@pytest.mark.parametrize("network", ["0.0.0.0/0", "::/0"])
def test_nobody_believes_everybody(tmp_path: Path, network: str) -> None:
    (problem,) = problems(tmp_path, listen=f'trusted_networks = ["{network}"]')
    assert "believes everybody" in problem


def test_a_key_without_its_certificate_is_half_of_something(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, listen='key = "key.pem"')
    assert problem.startswith("email.listen.certificate: is missing beside key")


def test_a_token_needs_to_know_whose_it_is(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, smtp='oauth = { token_command = ["token"] }')
    assert problem.startswith("email.smtp.username: is missing beside oauth")
