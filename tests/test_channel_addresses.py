"""Channels connect to the very address that was checked, whatever a name resolves to afterwards,
whatever proxy the environment names, and wherever an answer points."""

import asyncio
import socket
import threading
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from importlib.util import find_spec
from ipaddress import ip_network
from typing import Any

import pytest

from remit.adapters import guarded_http
from remit.channels import slack as slack_channel
from remit.channels import webhook
from remit.channels.contract import Connection, Undelivered, Unreachable
from remit.channels.email import Email, EmailConfig
from remit.channels.slack import Slack, SlackConfig
from remit.channels.telegram import Telegram, TelegramConfig

NAME = "rebind.test"
CHECKED, INSIDE = "127.0.0.2", "127.0.0.1"

Work = Callable[["Rebinding"], Coroutine[Any, Any, Any]]


class Rebinding:
    """A name that resolves to one address at first and to another from then on, and listeners at
    both that count who connects."""

    def __init__(self) -> None:
        self.first = CHECKED
        self.looked_up = 0
        self.reached: Counter[str] = Counter()
        self._doors = [socket.create_server((CHECKED, 0))]
        self.port = self._doors[0].getsockname()[1]
        self._doors.append(socket.create_server((INSIDE, self.port)))
        self._resolve = socket.getaddrinfo
        for door in self._doors:
            threading.Thread(target=self._serve, args=(door,), daemon=True).start()

    def getaddrinfo(self, host: Any, *more: Any, **told: Any) -> Any:
        if host != NAME:
            return self._resolve(host, *more, **told)
        self.looked_up += 1
        address = self.first if self.looked_up == 1 else INSIDE
        return self._resolve(address, *more, **told)

    def close(self) -> None:
        for door in self._doors:
            door.close()

    def _serve(self, door: socket.socket) -> None:
        while True:
            try:
                wire, _ = door.accept()
            except OSError:
                return
            self.reached[door.getsockname()[0]] += 1
            with wire, suppress(OSError):
                wire.settimeout(0.3)  # a mail server is expected to speak first
                with suppress(TimeoutError):
                    wire.recv(65536)
                # Whoever is not answered at all would try again, and look the name up again.
                wire.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")


@pytest.fixture
def rebinding(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rebinding]:
    found = Rebinding()
    monkeypatch.setattr(slack_channel, "SECONDS", 4)  # Socket Mode would be tried again
    monkeypatch.setattr(socket, "getaddrinfo", found.getaddrinfo)
    yield found
    found.close()


def mailbox(rebinding: Rebinding, which: str, host: str) -> Connection:
    """A mailbox of which one of the servers has the name in question."""
    settings: dict[str, Any] = {"imapHost": "localhost", "smtpHost": "localhost"}
    settings |= {f"{which}Host": host, f"{which}Port": rebinding.port}
    settings |= {"address": "a@example.org", "username": "a", "authservId": "mx"}
    config = EmailConfig.model_validate({**settings, "secretRef": "mailbox"})
    return Connection(binding="b", config=config, key=b"password", private=True)


async def imap(rebinding: Rebinding) -> None:
    async for _ in Email().receive(mailbox(rebinding, "imap", NAME)):
        pass


async def smtp(rebinding: Rebinding) -> None:
    from remit.channels import email

    await email._smtp(mailbox(rebinding, "smtp", NAME))


async def telegram(rebinding: Rebinding) -> None:
    config = TelegramConfig.model_validate({"secretRef": "bot"})
    server = f"http://{NAME}:{rebinding.port}"
    connection = Connection(binding="b", config=config, key=b"1:a", server=server)
    await Telegram().withdraw(connection, "1", "1.1")


async def slack(rebinding: Rebinding) -> None:
    config = SlackConfig.model_validate({"secretRef": "slack"})
    server = f"http://{NAME}:{rebinding.port}"
    connection = Connection(binding="b", config=config, key=b"xoxb-1 xapp-1", server=server)
    await Slack().withdraw(connection, "C1", "C1:1")


async def socket_mode(rebinding: Rebinding) -> None:
    """Slack names the address of its socket."""
    from tests import slack_stage

    with slack_stage.serving() as workspace:
        address = {"url": f"ws://{NAME}:{rebinding.port}/socket"}
        workspace.apps_connections_open = lambda _: address  # type: ignore[method-assign]
        async for _ in Slack().receive(slack_stage.connection(workspace)):
            pass


async def post(rebinding: Rebinding) -> None:
    url = f"http://{NAME}:{rebinding.port}/in"
    await webhook.post(url, b"{}", id_="1", key=b"k", now=0, private=True)


async def unguarded(rebinding: Rebinding) -> None:
    """As a channel did that checked a name, and then handed it to a library."""
    await guarded_http.addresses(NAME, rebinding.port, private=True)
    _, wire = await asyncio.open_connection(NAME, rebinding.port)
    wire.close()


WAYS: list[Any] = [
    imap,
    smtp,
    post,
    pytest.param(telegram, marks=pytest.mark.skipif(not find_spec("aiogram"), reason="no extra")),
    *(
        pytest.param(way, marks=pytest.mark.skipif(not find_spec("slack_sdk"), reason="no extra"))
        for way in (slack, socket_mode)
    ),
]


@pytest.mark.requirement("FX-24")
@pytest.mark.parametrize("way", WAYS)
def test_a_name_is_resolved_once_and_the_checked_address_is_connected_to(
    way: Work, rebinding: Rebinding
) -> None:
    with pytest.raises((Undelivered, Unreachable)):  # the listeners are no such server
        asyncio.run(way(rebinding))
    assert rebinding.reached[INSIDE] == 0
    assert (rebinding.reached[CHECKED], rebinding.looked_up) == (1, 1)


@pytest.mark.requirement("FX-24")
@pytest.mark.parametrize("way", WAYS)
def test_a_name_of_a_metadata_service_is_not_connected_to(
    way: Work, rebinding: Rebinding, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listener stands for such a service: whoever connects to it is counted."""
    services = (*guarded_http._METADATA, ip_network(CHECKED))
    monkeypatch.setattr(guarded_http, "_METADATA", services)
    with pytest.raises((Undelivered, Unreachable)):
        asyncio.run(way(rebinding))
    assert (rebinding.reached.total(), rebinding.looked_up) == (0, 1)


def test_a_name_that_is_resolved_again_leads_inside(rebinding: Rebinding) -> None:
    """The control: the trick works against whoever looks a name up twice."""
    asyncio.run(unguarded(rebinding))
    assert rebinding.reached == {INSIDE: 1}


@pytest.mark.requirement("FX-24")
@pytest.mark.skipif(not find_spec("aiohttp"), reason="no extra")
def test_an_address_in_place_of_a_name_is_checked_as_well(rebinding: Rebinding) -> None:
    import aiohttp

    from remit.channels import guarded_session

    async def get(host: str, *, private: bool) -> None:
        connection = Connection(binding="b", config=None, key=b"", private=private)
        url = f"http://{host}:{rebinding.port}/"
        async with guarded_session.session(connection) as session, session.get(url):
            pass

    for host in ("169.254.169.254", "[::ffff:169.254.169.254]"):
        with pytest.raises(
            aiohttp.ClientConnectorError, match=r"\[None\]"
        ):  # no system call failed
            asyncio.run(get(host, private=True))
    with pytest.raises(aiohttp.ClientConnectorError, match=r"\[None\]"):
        asyncio.run(get(INSIDE, private=False))
    assert rebinding.reached.total() == 0
    asyncio.run(get(INSIDE, private=True))
    assert rebinding.reached[INSIDE] > 0
