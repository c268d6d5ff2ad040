"""The command line on the machine of an instance that has an address for others."""

import http.client
import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.test_cli import Home, refused

#: Nothing answers there, as a proxy with a certificate that this machine does not trust.
OUTSIDE = "https://localhost:1"
ELSEWHERE = "https://localhost:2"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    folder = tmp_path_factory.mktemp("home")
    (folder / "remit.toml").write_text(
        f'url = "{OUTSIDE}/, http://remit:8420"\nproxies = "none"\n'
        'channel_servers = "telegram=http://127.0.0.1:1"\n'
    )
    home = Home(folder)
    home("up", "--detach", "--port", "0", "--slots", "0")
    yield home
    home("down")


def test_commands_call_the_instance_of_this_home_directly(home: Home) -> None:
    (company,) = home.json("company", "list")
    assert company["name"] == "My company"
    status = home.json("status")
    assert status["url"].startswith("http://127.0.0.1:")
    assert status["outside"] == [OUTSIDE, "http://remit:8420"]
    assert status["pid"]
    for address in (OUTSIDE, "http://remit:8420"):
        named = home("agent", "list", environment={"REMIT_URL": address})
        assert (named.code, "ceo" in named.out) == (0, True), named
    # Any other address is another instance, which the board's token is not for.
    refused(home("agent", "list", environment={"REMIT_URL": ELSEWHERE}), 5, ELSEWHERE)
    refused(home("--url", OUTSIDE, "agent", "list"), 5, OUTSIDE)


def test_a_link_is_printed_for_others_and_for_this_machine(home: Home) -> None:
    outside, here = home("open").out.splitlines()
    assert outside.startswith(f"{OUTSIDE}/login?token=rmt_login_")
    local = urlsplit(here)
    assert local.hostname == "127.0.0.1"
    assert local.query == urlsplit(outside).query
    connection = http.client.HTTPConnection(local.netloc)
    origin = {"Origin": f"http://{local.netloc}"}
    connection.request("POST", "/login", local.query, origin)
    assert connection.getresponse().status == 303
    connection.close()
    answer = home.json("open")
    assert answer["url"].startswith(OUTSIDE)
    assert answer["local_url"].startswith("http://127.0.0.1:")


def test_webhooks_are_posted_to_the_address_for_others(home: Home) -> None:
    bound = home("bind", "add", "ceo", "webhook", "--to", "https://chat.example.org/remit")
    assert f"They are posted to {OUTSIDE}/api/channels/webhook." in bound.out
    home("secret", "set", "bot", stdin=b"123456:abcdefghijklmnopqrstuvwxyz")
    for address, own in ((OUTSIDE, True), ("https://old.example", False)):
        config = json.dumps({"webhookUrl": address, "secretRef": "bot"})
        telegram = ("ceo", "telegram", "--config", config)
        added = home("bind", "add", *telegram, *([] if own else ["--replace"]))
        assert added.code == 0, added.err
        rows = home.json("doctor")
        warned = [row["next_step"] for row in rows if "no address of this" in row["found"]]
        assert warned == ([] if own else ["Add it to REMIT_URL."])


def test_the_welcome_names_both_addresses(tmp_path: Path) -> None:
    other = Home(tmp_path, {"REMIT_URL": OUTSIDE})
    try:
        shown = other("up", "--detach", "--port", "0", "--slots", "0").out
    finally:
        other("down")
    assert f"for others:     {OUTSIDE}" in shown
    assert f"sign in, once:  {OUTSIDE}/login?token=" in shown
    assert "or, from here:  http://127.0.0.1:" in shown


def test_a_token_that_is_kept_leaves_the_address_for_others(home: Home) -> None:
    token = (home.folder / "board.token").read_text()
    file = home.folder / "remit.toml"
    before = tomllib.loads(file.read_text())
    try:
        assert home("login", "-", stdin=token.encode()).code == 0
        assert tomllib.loads(file.read_text()) == {**before, "token": token.strip()}
        assert home("agent", "list").code == 0
    finally:
        file.write_text("".join(f'{name} = "{text}"\n' for name, text in before.items()))


def test_doctor_says_how_the_instance_is_reached(home: Home) -> None:
    found = [(row["check"], row["state"], row["found"]) for row in home.json("doctor")]
    assert ("address for others", "ok", f"{OUTSIDE}, with TLS") in found
    (plain,) = [state for check, state, text in found if "http://remit:8420 is plain" in text]
    assert plain == "warn"
    assert [state for check, state, _ in found if check == "proxies"] == ["warn"]
    outside = [text for check, state, text in found if check == "from outside"]
    assert outside[0] == f"No instance answers at {OUTSIDE}."
    assert len(outside) == 2


@pytest.mark.parametrize("command", ["up", "serve"])
def test_an_address_below_a_path_is_refused_at_the_start(tmp_path: Path, command: str) -> None:
    other = Home(tmp_path / "new", {"REMIT_URL": "https://host.example/remit"})
    answer = other(command, "--port", "0")
    assert answer.code == 1
    assert "error: REMIT_URL names 'https://host.example/remit'" in answer.err
    assert "set REMIT_URL to https://host.example." in answer.err
    assert not (tmp_path / "new" / "remit.db").exists()
