"""Channels send to the configured server alone: not to a proxy that the environment names, nor to
where an answer redirects. Either would get the channel's token, and say what people wrote."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from remit.channels import guarded_session, slack
from remit.channels.contract import Attachment, Connection, Parcel, Undelivered, Unreachable
from remit.channels.slack import Slack, SlackConfig
from remit.channels.telegram import Telegram, TelegramConfig
from remit.testing import channels
from tests import slack_stage, telegram_server

pytest.importorskip("slack_sdk")
pytest.importorskip("aiogram")

pytestmark = pytest.mark.requirement("FX-24")
SLACK, TELEGRAM = Slack(), Telegram()


class Sink:
    """A server that keeps the requests it gets; it redirects them if it is told to where."""

    def __init__(self) -> None:
        self.got: list[str] = []
        self.leads_to = ""
        self.url = ""

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        self.got.append(f"{handler.requestline}\n{handler.headers}")
        handler.send_response(307 if self.leads_to else 200)
        if self.leads_to:
            handler.send_header("location", self.leads_to)
        handler.send_header("content-length", "0")
        handler.end_headers()


@contextmanager
def sinking() -> Iterator[Sink]:
    sink = Sink()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sink.take(self)

        do_POST = do_CONNECT = do_GET  # noqa: N815

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    sink.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield sink
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def sink() -> Iterator[Sink]:
    with sinking() as found:
        yield found


@pytest.fixture
def moved(sink: Sink) -> Iterator[Sink]:
    """A server that redirects to the sink."""
    with sinking() as found:
        found.leads_to = f"{sink.url}/taken"
        yield found


@pytest.fixture
def workspace() -> Iterator[slack_stage.SlackServer]:
    with slack_stage.serving() as found:
        yield found


@pytest.fixture
def bots() -> Iterator[telegram_server.Telegram]:
    with telegram_server.serving() as found:
        yield found


def slack_at(url: str) -> Connection:
    config = SlackConfig.model_validate({"secretRef": "slack"})
    key = f"{slack_stage.BOT} {slack_stage.APP}".encode()
    return Connection(binding="b", config=config, key=key, server=url)


def telegram_at(url: str) -> Connection:
    config = TelegramConfig.model_validate({"secretRef": "bot"})
    key = telegram_server.TOKEN.encode()
    return Connection(binding="b", config=config, key=key, server=url)


def letter(connection: Connection, to: str, **more: Any) -> Parcel:
    stand: Any = SimpleNamespace(connection=connection, direct=to)
    return channels.parcel(stand, **more)


async def listened(channel: Any, connection: Connection) -> None:
    """Listen until the first sign of life."""
    listening = channel.receive(connection)
    try:
        await anext(listening)
    finally:
        await listening.aclose()


def use_proxy(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "WS_PROXY", "WSS_PROXY"):
        monkeypatch.setenv(name, url)
        monkeypatch.setenv(name.lower(), url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)


def test_slack_is_called_past_the_proxy_of_the_environment(
    sink: Sink, workspace: slack_stage.SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_proxy(monkeypatch, sink.url)
    connection = slack_stage.connection(workspace)
    file = Attachment("a.txt", "text/plain", b"content")

    async def talk() -> None:
        assert (await SLACK.probe(connection)).usable
        await SLACK.deliver(letter(connection, slack_stage.DIRECT, files=(file,)))
        await listened(SLACK, connection)  # the connection of Socket Mode

    asyncio.run(talk())
    assert sink.got == []
    assert [content for _, content in workspace.files.values()] == [b"content"]


def test_telegram_is_called_past_the_proxy_of_the_environment(
    sink: Sink, bots: telegram_server.Telegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_proxy(monkeypatch, sink.url)
    asyncio.run(listened(TELEGRAM, telegram_at(bots.url)))
    assert sink.got == []
    assert bots.calls


def test_a_proxy_of_the_environment_gets_the_token_from_the_library_alone(
    sink: Sink, workspace: slack_stage.SlackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: Slack's library takes the proxy, and aiohttp does if it is told to."""
    from slack_sdk.web.async_client import AsyncWebClient

    use_proxy(monkeypatch, sink.url)
    web = AsyncWebClient(slack_stage.BOT, base_url=f"{workspace.url}/api/", retry_handlers=[])

    async def ask() -> None:
        with pytest.raises(Exception):  # noqa: B017, PT011  # the sink is no Slack
            await web.auth_test()

    asyncio.run(ask())
    assert slack_stage.BOT in sink.got[0]


def test_a_session_refuses_a_proxy_that_a_library_sets(sink: Sink) -> None:
    async def ask() -> None:
        async with guarded_session.session(slack_at(sink.url)) as session:
            await session.get("http://127.0.0.1:9/", proxy=sink.url)

    with pytest.raises(guarded_session.LedElsewhere, match="a proxy is set"):
        asyncio.run(ask())
    assert sink.got == []


Work = Callable[[str], Coroutine[Any, Any, None]]


async def send_by_slack(url: str) -> None:
    await SLACK.deliver(letter(slack_at(url), slack_stage.DIRECT))


async def listen_by_slack(url: str) -> None:
    await listened(SLACK, slack_at(url))


async def send_by_telegram(url: str) -> None:
    await TELEGRAM.deliver(letter(telegram_at(url), "5"))


async def listen_by_telegram(url: str) -> None:
    await listened(TELEGRAM, telegram_at(url))


@pytest.mark.parametrize(
    "work", [send_by_slack, listen_by_slack, send_by_telegram, listen_by_telegram]
)
def test_no_redirect_is_followed(work: Work, sink: Sink, moved: Sink) -> None:
    with pytest.raises(
        (Undelivered, Unreachable), match="a redirect \\(307\\), which is not followed"
    ):
        asyncio.run(work(moved.url))
    assert len(moved.got) == 1
    assert sink.got == []


def test_no_redirect_of_socket_mode_is_followed(
    sink: Sink,
    moved: Sink,
    workspace: slack_stage.SlackServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where it leads would get what people write to the agent, and could write to it."""
    monkeypatch.setattr(slack, "SECONDS", 0.5)
    address = f"{moved.url.replace('http', 'ws')}/socket"
    monkeypatch.setattr(workspace, "apps_connections_open", lambda _: {"url": address})
    with pytest.raises(Unreachable):
        asyncio.run(listened(SLACK, slack_stage.connection(workspace)))
    assert "GET /socket" in moved.got[0]
    assert sink.got == []


def test_no_redirect_of_a_download_is_followed(
    sink: Sink, moved: Sink, bots: telegram_server.Telegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address of a file of Telegram has the token in it, and no error repeats it."""
    from aiogram import Bot
    from aiogram.types import File

    async def known(*_: Any, **__: Any) -> File:
        return File(file_id="f", file_unique_id="u", file_size=1, file_path="a.txt")

    monkeypatch.setattr(Bot, "get_file", known)
    with pytest.raises(Undelivered, match="which is not followed") as caught:
        asyncio.run(TELEGRAM.fetch(telegram_at(moved.url), "f", 100))
    assert telegram_server.TOKEN not in str(caught.value)
    assert sink.got == []
    assert bots.calls == []


def test_the_libraries_follow_a_redirect_by_themselves(sink: Sink, moved: Sink) -> None:
    """The control: what was sent arrives where the answer points."""
    from aiogram import Bot
    from aiogram.client.session.aiohttp import AiohttpSession
    from aiogram.client.telegram import TelegramAPIServer
    from slack_sdk.web.async_client import AsyncWebClient

    async def ask() -> None:
        web = AsyncWebClient(slack_stage.BOT, base_url=f"{moved.url}/api/", retry_handlers=[])
        session = AiohttpSession(api=TelegramAPIServer.from_base(moved.url))
        bot = Bot(telegram_server.TOKEN, session=session)
        for request in (web.auth_test(), bot.get_me()):
            with pytest.raises(Exception):  # noqa: B017, PT011  # the sink is neither
                await request
        await session.close()

    asyncio.run(ask())
    assert [one.split("\n")[0] for one in sink.got] == ["POST /taken HTTP/1.1"] * 2
