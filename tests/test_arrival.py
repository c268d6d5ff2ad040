"""How the instance is reached from outside: what one request says, and what is believed of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from remit.entrypoints import arrival, outside_check
from remit.entrypoints.arrival import Arrival, Arrivals, Outside, host_name
from remit.errors import BadInput
from remit.settings import load

FORWARDED = {"X-Forwarded-For": "203.0.113.7", "X-Forwarded-Proto": "https"}
NAME = "https://remit.example.org"


def outside(tmp_path: Path, **settings: str) -> Outside:
    environment = {f"REMIT_{name.upper()}": text for name, text in settings.items()}
    return Outside.of(load({"REMIT_HOME": str(tmp_path), **environment}))


def arrived(
    place: Outside, peer: str, host: str, http_version: str = "1.1", **headers: str
) -> Arrival:
    """A request as the server gets it, after the middleware."""
    seen: list[Any] = []

    async def inner(scope: Any, *_: Any) -> None:
        seen.append(arrival.of(scope))

    named = {"host": host, **{name.replace("_", "-"): text for name, text in headers.items()}}
    encoded = [(name.lower().encode(), text.encode()) for name, text in named.items()]
    scope = {"type": "http", "scheme": "http", "client": (peer, 5000), "headers": encoded}
    scope["http_version"] = http_version
    asyncio.run(Arrivals(inner, place)(scope, None, None))  # type: ignore[arg-type]
    found: Arrival = seen[0]
    return found


@pytest.mark.parametrize(
    ("proxies", "peer", "host", "more", "sentence"),
    [
        # Over TLS up to a proxy that is believed, whatever Host it sends.
        ("127.0.0.1", "127.0.0.1", "remit.example.org", FORWARDED, None),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1:8420", FORWARDED, None),
        ("10.0.0.0/8", "10.2.3.4", "remit.example.org", FORWARDED, None),
        ("127.0.0.1", "::ffff:127.0.0.1", "remit.example.org", FORWARDED, None),
        # Such a proxy says that it was not TLS, or says nothing.
        ("127.0.0.1", "127.0.0.1", "localhost", {"X-Forwarded-Proto": "http"}, "plain HTTP"),
        ("127.0.0.1", "127.0.0.1", "127.0.0.1:8420", {}, "does not say whether TLS"),
        # Anybody can write these headers.
        ("10.0.0.0/8", "203.0.113.7", "remit.example.org", FORWARDED, "not believed"),
        ("none", "203.0.113.7", "127.0.0.1:8420", {}, "plain HTTP"),
        ("none", "127.0.0.1", "127.0.0.1:8420", FORWARDED, "not believed"),
        # On the machine itself, as long as nothing shows that somebody else stands behind it.
        ("none", "127.0.0.1", "localhost:8420", {}, None),
        ("none", "::1", "[::1]:8420", {}, None),
        ("10.0.0.0/8", "127.0.0.1", "127.0.0.1:8420", {}, None),
        ("none", "127.0.0.1", "remit.example.org", {}, "not believed"),
        ("none", "127.0.0.1", "127.0.0.1:8420", {"Via": "1.1 x"}, "not believed"),
        ("none", "127.0.0.1", "127.0.0.1:8420", {"Forwarded": "for=x"}, "not believed"),
        ("none", "127.0.0.1", "127.0.0.1:8420", {"Referer": "http://remit.x/"}, "not believed"),
        ("none", "127.0.0.1", "127.0.0.1:8420", {"Referer": "http://["}, "not believed"),
        ("none", "127.0.0.1", "127.0.0.1:8420", {"http_version": "1.0"}, "not believed"),
        # Nothing was said about proxies, so there may be one that does not show.
        ("", "127.0.0.1", "127.0.0.1:8420", {}, "not known"),
        ("", "127.0.0.1", "remit.example.org", FORWARDED, "not believed"),
    ],
)
def test_a_request_is_private_over_believed_tls_or_on_the_machine_alone(
    tmp_path: Path, proxies: str, peer: str, host: str, more: dict[str, str], sentence: str | None
) -> None:
    doubt = arrived(outside(tmp_path, proxies=proxies), peer, host, **more).doubt
    if sentence is None:
        assert doubt is None
    else:
        assert doubt is not None
        assert sentence in doubt.sentence
        assert doubt.next_step


def test_the_client_is_the_last_hop_that_is_no_believed_proxy(tmp_path: Path) -> None:
    place = outside(tmp_path, proxies="127.0.0.1, 10.0.0.0/8")
    chain = {"X-Forwarded-For": "198.51.100.1, 203.0.113.7, 10.9.9.9"}  # the first is made up
    assert arrived(place, "127.0.0.1", "x", **chain).client == "203.0.113.7"
    stranger = arrived(place, "192.0.2.1", "x", **chain)
    assert (stranger.client, stranger.peer[0]) == ("192.0.2.1", "192.0.2.1")
    assert arrived(outside(tmp_path), "127.0.0.1", "x", **chain).client == "127.0.0.1"


def test_a_cookie_is_for_tls_if_the_browser_uses_it(tmp_path: Path) -> None:
    several = outside(tmp_path, url=f"{NAME} http://remit:8420", proxies="127.0.0.1")
    for host, more, secure in (
        ("remit.example.org", {}, True),
        ("127.0.0.1:8420", {}, True),  # what a proxy sends that does not keep the name
        ("remit:8420", {}, False),  # a name inside the network
        ("remit:8420", FORWARDED, True),
    ):
        assert arrived(several, "127.0.0.1", host, **more).expects_https is secure, host
    bare = outside(tmp_path, proxies="127.0.0.1")
    assert arrived(bare, "127.0.0.1", "box", **FORWARDED).expects_https
    assert not arrived(bare, "192.0.2.1", "box", **FORWARDED).expects_https


def test_links_have_the_first_address_or_that_of_the_request(tmp_path: Path) -> None:
    several = outside(tmp_path, url=f"{NAME}/, http://remit:8420", proxies="127.0.0.1")
    assert arrived(several, "127.0.0.1", "remit:8420").link_base == NAME
    bare = outside(tmp_path, proxies="127.0.0.1")
    assert arrived(bare, "127.0.0.1", "box:8420").link_base == "http://box:8420"
    assert arrived(bare, "127.0.0.1", "box", **FORWARDED).link_base == "https://box"
    assert arrived(bare, "192.0.2.1", "box", **FORWARDED).link_base == "http://box"


@pytest.mark.parametrize(
    ("origin", "own"),
    [
        ("https://remit.example.org:8443", False),
        (NAME, True),
        (f"{NAME}:443", True),
        ("http://remit:8420", True),
        ("http://127.0.0.1:8420", True),
        ("http://remit.example.org", False),
        ("https://remit.example.org.evil.example", False),
        ("http://127.0.0.1:9999", False),
        ("null", False),
        ("", False),
        ("http://[", False),
    ],
)
def test_a_page_is_ours_at_any_of_our_addresses(tmp_path: Path, origin: str, own: bool) -> None:
    several = outside(tmp_path, url=f"{NAME} http://remit:8420")
    assert arrived(several, "127.0.0.1", "127.0.0.1:8420").is_own(origin) is own


def test_a_page_of_our_name_without_tls_is_not_ours(tmp_path: Path) -> None:
    """Whoever is on the way can write such a page."""
    plain = "http://remit.example.org"
    named = arrived(outside(tmp_path, url=NAME), "127.0.0.1", "remit.example.org")
    believed = outside(tmp_path, proxies="127.0.0.1")
    told = arrived(believed, "127.0.0.1", "remit.example.org", **FORWARDED)
    for request in (named, told):
        assert request.is_own(NAME)
        assert not request.is_own(plain)
    assert arrived(believed, "127.0.0.1", "remit.example.org").is_own(plain)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("https://host.example/remit", "below a path"),
        ("https://host.example/?a=b", "below a path"),
        ("https://fine.example http://other.example/x", "below a path"),
        ("host.example", "not an address"),
        ("ftp://host.example", "not an address"),
        ("https://user@host.example", "not an address"),
    ],
)
def test_an_address_that_cannot_work_is_refused(tmp_path: Path, url: str, sentence: str) -> None:
    with pytest.raises(BadInput, match=sentence):
        outside(tmp_path, url=url)


@pytest.mark.parametrize("proxies", ["everybody", "0.0.0.0/0", "::/0", "10.0.0.1 proxy", "*"])
def test_proxies_are_addresses_and_not_everybody(tmp_path: Path, proxies: str) -> None:
    with pytest.raises(BadInput, match="proxies names"):
        outside(tmp_path, proxies=proxies)


def test_doctor_says_how_the_instance_is_reached(tmp_path: Path) -> None:
    def findings(**settings: str) -> list[tuple[str, str]]:
        environment = {f"REMIT_{name.upper()}": text for name, text in settings.items()}
        told = outside_check.look(load({"REMIT_HOME": str(tmp_path), **environment}))
        return [(finding.state, finding.found) for finding in told]

    assert [state for state, _ in findings()] == ["ok", "ok"]
    good = findings(url=NAME, proxies="127.0.0.1")
    assert good == [("ok", f"{NAME}, with TLS"), ("ok", "believed at 127.0.0.1/32")]
    assert [state for state, _ in findings(url=NAME)] == ["ok", "warn"]
    assert [state for state, _ in findings(url="http://box")] == ["warn", "ok"]
    (tmp_path / "remit.toml").write_text(f'url = "{NAME}"\nproxies = "10.0.0.0/8"\n')
    assert findings() == [("ok", f"{NAME}, with TLS"), ("ok", "believed at 10.0.0.0/8")]


@pytest.mark.parametrize("header", ["evil@localhost", "localhost/x", "localhost?x", "localhost#x"])
def test_a_host_that_is_no_name_names_nothing(header: str) -> None:
    assert host_name("localhost:8080") == "localhost"
    assert host_name(header) == ""
