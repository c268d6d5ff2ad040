"""Settings of the command line: what a wrong one stops, and where an instance listens."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.entrypoints.serve import listen
from remit.errors import BadInput
from remit.settings import DEFAULT_PORT, load
from tests.test_cli import Home, refused


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "home")
    home.folder.mkdir()
    yield home
    (home.folder / "remit.toml").unlink(missing_ok=True)
    home("down")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def settings_file(home: Home, text: str) -> None:
    (home.folder / "remit.toml").write_text(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prot = 8420", "unknown setting 'prot'. Did you mean port?"),
        ("url = ", "cannot be read"),
        ('port = "many"', "port must be a whole number from 0 to 65535."),
        ("company = [1]", "company must be text"),
    ],
)
def test_a_wrong_setting_does_not_keep_an_instance_from_being_looked_at_and_stopped(
    home: Home, text: str, said: str
) -> None:
    started = home.json("up", "--detach", "--port", "0", "--slots", "0")
    settings_file(home, text)
    refused(home("company", "list"), 1, said.partition(". Did")[0])
    refused(home("backup", str(home.folder / "x.tar")), 1, said.partition(". Did")[0])
    for command in ([], ["status"], ["doctor"]):
        done = home(*command, "--json")
        assert done.code == (1 if command == ["doctor"] else 0), done.err
        assert done.err.startswith("warning: ")
        assert said in done.err
        answer = json.loads(done.out)
        if command == ["doctor"]:
            (found,) = [finding for finding in answer if finding["check"] == "settings"]
            assert found["state"] == "fail"
        else:
            assert (answer["running"], answer["url"]) == (True, started["url"])
    stopped = home("down", "--json")
    assert stopped.answer == {"stopped": True, "pid": started["pid"]}
    assert said in stopped.err


def test_where_an_instance_listens_comes_from_option_environment_and_file(home: Home) -> None:
    in_file, in_environment, in_option = free_port(), free_port(), free_port()
    settings_file(home, f'port = {in_file}\nhost = "localhost"\nslots = 0\n')
    up = ("up", "--detach", "--no-try", "--json")
    assert home(*up).answer["url"] == f"http://localhost:{in_file}"
    home("send", "ceo", "hello")
    assert home.json("agent", "why-idle", "ceo")["reason"] == "no_slot"
    home("down")
    refused(home("agent", "list"), 5, f":{in_file}.")
    environment = {"REMIT_PORT": str(in_environment), "REMIT_HOST": "127.0.0.1"}
    url = home(*up, environment=environment).answer["url"]
    assert url == f"http://127.0.0.1:{in_environment}"
    home("down")
    url = home(*up, "--port", str(in_option), environment=environment).answer["url"]
    assert url == f"http://127.0.0.1:{in_option}"


def test_numbers_in_the_settings_are_checked(tmp_path: Path) -> None:
    home = {"REMIT_HOME": str(tmp_path)}
    assert load(home).port == DEFAULT_PORT
    # Kubernetes sets this where a service is called remit.
    assert load({**home, "REMIT_PORT": "tcp://10.0.0.1:80"}).port == DEFAULT_PORT
    assert load({**home, "REMIT_SLOTS": "0"}).slots == 0
    for name, wrong in (("PORT", "65536"), ("PORT", "-1"), ("SLOTS", "1001"), ("SLOTS", "²")):
        with pytest.raises(BadInput, match="whole number"):
            load({**home, f"REMIT_{name}": wrong})
    with pytest.raises(BadInput, match="yes or no"):
        load({**home, "REMIT_PLAIN_HTTP": "true"})


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])  # noqa: S104  refused before it is bound
def test_plain_http_beyond_this_machine_has_to_be_asked_for(home: Home, host: str) -> None:
    refused(home("up", "--port", "0", "--host", host), 2, "other machines reach Remit over plain")
    said = home("serve", "--port", "0", "--host", host)
    assert (said.code, "--plain-http" in said.err) == (2, True)
    assert not (home.folder / "remit.db").exists()


@pytest.mark.parametrize(
    ("environment", "is_refused"),
    [
        ({}, True),
        ({"REMIT_PROXIES": "none"}, True),
        ({"REMIT_URL": "https://remit.example.org"}, True),
        ({"REMIT_PROXIES": "10.0.0.0/8"}, False),
        ({"REMIT_PLAIN_HTTP": "yes"}, False),
    ],
)
def test_a_declared_proxy_or_a_setting_allows_plain_http(
    tmp_path: Path, environment: dict[str, str], is_refused: bool
) -> None:
    settings = load({"REMIT_HOME": str(tmp_path), **environment})
    # An address of no machine here, so that it is not bound either way.
    with pytest.raises(Exception, match=r"plain HTTP|cannot be used") as caught:
        listen(settings, "192.0.2.1", 0)
    assert ("plain HTTP" in str(caught.value)) == is_refused
    for host in ("127.0.0.1", "localhost"):
        listen(settings, host, 0).close()
