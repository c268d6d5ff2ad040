"""A stand-in for Slack that speaks its documented Web API and Socket Mode, and is strict: unknown
methods, arguments and places, wrong tokens, blocks and lengths are refused as Slack does."""

import asyncio
import contextlib
import json
import re
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from remit.channels.contract import Connection
from remit.channels.slack import SlackConfig
from remit.testing.channels import Shown

BOT, APP = "xoxb-1-bot", "xapp-1-app"
TEAM, BOT_USER = "T0TEAM", "U0BOT"
DIRECT, ROOM = "D0ANN", "C0ROOM"
_LONGEST = 40_000
#: By method: what has to be there, and what may.
_METHODS: dict[str, tuple[set[str], set[str]]] = {
    "auth.test": (set(), set()),
    "apps.connections.open": (set(), set()),
    "users.info": ({"user"}, set()),
    "chat.postMessage": (
        {"channel", "text"},
        {"thread_ts", "blocks", "metadata", "mrkdwn", "unfurl_links", "unfurl_media"},
    ),
    "chat.update": ({"channel", "ts", "text"}, {"blocks"}),
    "chat.delete": ({"channel", "ts"}, set()),
    "conversations.history": ({"channel"}, {"limit", "include_all_metadata", "oldest", "cursor"}),
    "conversations.replies": (
        {"channel", "ts"},
        {"limit", "include_all_metadata", "oldest", "cursor"},
    ),
    "files.info": ({"file"}, set()),
    "files.getUploadURLExternal": ({"filename", "length"}, {"alt_txt", "snippet_type"}),
    "files.completeUploadExternal": (
        {"files"},
        {"channel_id", "thread_ts", "initial_comment", "channels", "blocks"},
    ),
}


@dataclass
class SlackServer:
    """What is in the workspace."""

    url: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, tuple[dict[str, Any], bytes]] = field(default_factory=dict)
    #: What was sent to the app and not acknowledged.
    pending: dict[str, dict[str, Any]] = field(default_factory=dict)
    sockets: list[web.WebSocketResponse] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    acknowledged: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    #: Those of whom it says nothing.
    untold: set[str] = field(default_factory=set)
    #: Those of other workspaces that share a room with ours, by user, as Slack tells of them.
    homes: dict[str, str] = field(default_factory=dict)
    #: Of each message, whether its links are called to be previewed.
    unfurled: list[bool] = field(default_factory=list)
    loop: asyncio.AbstractEventLoop | None = None
    count: int = 0

    def number(self) -> int:
        self.count += 1
        return self.count

    def stamp(self) -> str:
        return f"{int(time.time())}.{self.number():06d}"

    def reset(self) -> None:
        for held in (self.messages, self.files, self.pending, self.failures, self.calls):
            held.clear()
        self.acknowledged.clear()
        self.unfurled.clear()
        self.untold.clear()
        self.homes.clear()

    # ── the Web API ─────────────────────────────────────────────────────────────────────────────

    async def api(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        arguments = await _arguments(request)
        token = request.headers.get("Authorization", "").removeprefix("Bearer ")
        self.calls.append(method)
        if method not in _METHODS:
            return web.json_response({"ok": False, "error": "unknown_method"})
        if token != (APP if method == "apps.connections.open" else BOT):
            return web.json_response({"ok": False, "error": "invalid_auth"})
        needed, more = _METHODS[method]
        if not needed <= set(arguments) or set(arguments) - needed - more:
            return web.json_response({"ok": False, "error": "invalid_arguments"})
        how = self.failures.pop(0) if self.failures else None
        if how == "busy":
            headers = {"Retry-After": "7"}
            return web.json_response(
                {"ok": False, "error": "ratelimited"}, status=429, headers=headers
            )
        if how is not None:
            return web.json_response({"ok": False, "error": "channel_not_found"})
        answer = getattr(self, method.replace(".", "_"))(arguments)
        return web.json_response({"ok": "error" not in answer, **answer})

    def auth_test(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"user_id": BOT_USER, "user": "ada", "team_id": TEAM, "team": "Work", "bot_id": "B0"}

    def apps_connections_open(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"url": f"{self.url.replace('http', 'ws')}/socket?ticket=1"}

    def users_info(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if arguments["user"] in self.untold:
            return {"error": "user_not_visible"}
        name = arguments["user"].lower()
        home = self.homes.get(arguments["user"], TEAM)
        about = {"id": arguments["user"], "team_id": home, "name": name}
        return {"user": {**about, "profile": {"real_name": "Ann A.", "team": home}}}

    def chat_postMessage(self, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        wrong = self._wrong(arguments)
        if wrong:
            return {"error": wrong}
        message = {"channel": arguments["channel"], "ts": self.stamp(), "text": arguments["text"]}
        message |= {"user": BOT_USER, "bot_id": "B0", "blocks": _read(arguments.get("blocks"))}
        message |= {
            "thread_ts": arguments.get("thread_ts"),
            "metadata": _read(arguments.get("metadata")),
        }
        self.messages.append(message)
        unfurls = [str(arguments.get(f"unfurl_{what}", True)) for what in ("links", "media")]
        self.unfurled.append(any(unfurl.lower() not in ("0", "false") for unfurl in unfurls))
        return {"ts": message["ts"], "channel": arguments["channel"]}

    def chat_update(self, arguments: dict[str, Any]) -> dict[str, Any]:
        message = self._message(arguments)
        wrong = self._wrong(arguments)
        if message is None or wrong:
            return {"error": wrong or "message_not_found"}
        message |= {"text": arguments["text"], "blocks": _read(arguments.get("blocks"))}
        return {"ts": message["ts"]}

    def chat_delete(self, arguments: dict[str, Any]) -> dict[str, Any]:
        message = self._message(arguments)
        if message is None:
            return {"error": "message_not_found"}
        self.messages.remove(message)
        return {}

    def conversations_history(self, arguments: dict[str, Any]) -> dict[str, Any]:
        there = [message for message in self.messages if message["channel"] == arguments["channel"]]
        recent = [message for message in there if message["ts"] >= arguments.get("oldest", "")]
        return self._page(
            [message for message in reversed(recent) if not message.get("thread_ts")], arguments
        )

    def conversations_replies(self, arguments: dict[str, Any]) -> dict[str, Any]:
        there = [message for message in self.messages if message["channel"] == arguments["channel"]]
        return self._page(
            [
                message
                for message in there
                if arguments["ts"] in (message["ts"], message.get("thread_ts"))
            ],
            arguments,
        )

    def _page(self, messages: list[dict[str, Any]], arguments: dict[str, Any]) -> dict[str, Any]:
        """Some of them, as Slack tells of them: links are marked, files are described."""
        begin, limit = int(arguments.get("cursor") or 0), int(arguments.get("limit") or 100)
        more = str(begin + limit) if begin + limit < len(messages) else ""
        told = [
            {
                **message,
                "text": re.sub(r"https?://[^\s<>]+", r"<\g<0>>", message["text"]),
                "files": [self.files[id_][0] for id_ in message.get("files", [])],
            }
            for message in messages[begin : begin + limit]
        ]
        return {"messages": told, "response_metadata": {"next_cursor": more}}

    def files_info(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if arguments["file"] not in self.files:
            return {"error": "file_not_found"}
        return {"file": self.files[arguments["file"]][0]}

    def files_getUploadURLExternal(self, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        id_ = f"F{self.number()}"
        self.files[id_] = (
            {"id": id_, "name": arguments["filename"], "size": int(arguments["length"])},
            b"",
        )
        return {"upload_url": f"{self.url}/upload/{id_}", "file_id": id_}

    def files_completeUploadExternal(self, arguments: dict[str, Any]) -> dict[str, Any]:  # noqa: N802
        named = [file["id"] for file in _read(arguments["files"])]
        if any(not self.files[id_][1] for id_ in named):
            return {"error": "file_not_uploaded"}
        arguments["channel"] = arguments.get("channel_id", "")
        arguments["text"] = arguments.get("initial_comment", "")
        wrong = self._wrong(arguments)
        if wrong:
            return {"error": wrong}
        message = {"channel": arguments["channel"], "ts": self.stamp(), "text": arguments["text"]}
        message |= {"files": named, "bot_id": "B0", "thread_ts": arguments.get("thread_ts")}
        self.messages.append(message)
        return {"files": [{"id": id_} for id_ in named]}

    def _message(self, arguments: dict[str, Any]) -> dict[str, Any] | None:
        about = (arguments["channel"], arguments["ts"])
        return next(
            (message for message in self.messages if (message["channel"], message["ts"]) == about),
            None,
        )

    def _wrong(self, arguments: dict[str, Any]) -> str | None:
        if arguments["channel"] not in (DIRECT, ROOM):
            return "channel_not_found"
        if len(arguments["text"]) > _LONGEST:
            return "msg_too_long"
        thread = arguments.get("thread_ts")
        roots = {
            message["ts"] for message in self.messages if message["channel"] == arguments["channel"]
        }
        if thread and thread not in roots:
            return "thread_not_found"
        for block in _read(arguments.get("blocks")) or []:
            kind = block["type"]
            parts = block["elements"] if kind == "actions" else [block]
            if kind not in ("section", "actions") or len(parts) > 25:
                return "invalid_blocks"
            for part in parts:
                longest = 75 if kind == "actions" else 3000
                if (
                    part["text"]["type"] != "plain_text"
                    or not 0 < len(part["text"]["text"]) <= longest
                ):
                    return "invalid_blocks"
                if kind == "actions" and not 0 < len(part["value"]) <= 2000:
                    return "invalid_blocks"
        return None

    async def upload(self, request: web.Request) -> web.Response:
        id_ = request.match_info["id"]
        about, _ = self.files[id_]
        content = await request.read()
        if len(content) != about["size"]:
            return web.Response(status=400)
        self.files[id_] = (about, content)
        return web.Response(text=f"OK - {len(content)}")

    async def download(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {BOT}":
            return web.Response(status=403)
        return web.Response(body=self.files[request.match_info["id"]][1])

    # ── Socket Mode ─────────────────────────────────────────────────────────────────────────────

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse(autoping=True)
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1, "debug_info": {}})
        self.sockets.append(socket)
        for envelope in [*self.pending.values()]:
            await socket.send_json(envelope)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                answer = json.loads(message.data)
                if (
                    set(answer) - {"envelope_id", "payload"}
                    or answer["envelope_id"] not in self.pending
                ):
                    await socket.close(code=1008)
                    break
                del self.pending[answer["envelope_id"]]
                self.acknowledged.append(answer["envelope_id"])
        self.sockets.remove(socket)
        return socket

    async def send(self, kind: str, payload: dict[str, Any]) -> None:
        """To the app, now and whenever it connects, until it says that it has it."""
        id_ = f"e-{self.number()}"
        envelope = {"envelope_id": id_, "type": kind, "payload": payload}
        self.pending[id_] = {**envelope, "accepts_response_payload": False}
        for socket in list(self.sockets):
            with contextlib.suppress(ConnectionError):  # killed a moment ago; it will come again
                await socket.send_json(self.pending[id_])

    def push(self, kind: str, payload: dict[str, Any]) -> None:
        assert self.loop is not None
        asyncio.run_coroutine_threadsafe(self.send(kind, payload), self.loop).result(10)

    def says(
        self,
        text: str,
        *,
        user: str = "U0ANN",
        channel: str = DIRECT,
        home: str = TEAM,
        **more: Any,
    ) -> str:
        """Somebody writes, of the workspace `home`; answers the stamp of it."""
        stamp = self.stamp()
        self.messages.append({"channel": channel, "ts": stamp, "text": text, "user": user})
        direct = channel.startswith("D")
        event = {"type": "message" if direct else "app_mention", "user": user, "text": text}
        event |= {
            "ts": stamp,
            "channel": channel,
            **({"channel_type": "im"} if direct else {}),
        }
        shared = home != TEAM
        if shared:
            event |= {"user_team": home, "source_team": home, "team": home}
            more["user_profile"] = {"team": home, "real_name": "Ann A.", "name": "ann"}
        about = {"team_id": TEAM, "context_team_id": TEAM, "is_ext_shared_channel": shared}
        self.push("events_api", {**about, "type": "event_callback", "event": {**event, **more}})
        return stamp

    def taps(
        self,
        stamp: str,
        value: str,
        *,
        user: str = "U0ANN",
        channel: str = DIRECT,
        home: str = TEAM,
    ) -> None:
        action = {"type": "button", "value": value, "action_ts": self.stamp()}
        place = {"type": "message", "channel_id": channel, "message_ts": stamp}
        who = {"user": {"id": user, "team_id": home}, "team": {"id": TEAM}}
        self.push(
            "interactive", {"type": "block_actions", "container": place, "actions": [action], **who}
        )


class SlackStand:
    """Plays the other side of the Slack channel for the suite."""

    direct = DIRECT

    def __init__(self, server: SlackServer) -> None:
        self.server = server
        self.room = ""
        self.connection = connection(server)

    async def say(
        self,
        text: str,
        *,
        room: bool = False,
        reply_to: str | None = None,
        file: tuple[str, str, bytes] | None = None,
    ) -> None:
        more: dict[str, Any] = {"thread_ts": reply_to.partition(":")[2]} if reply_to else {}
        if file is not None:
            id_, (name, kind, content) = f"F{self.server.number()}", file
            about = {"id": id_, "name": name, "mimetype": kind, "size": len(content)}
            about["url_private_download"] = f"{self.server.url}/download/{id_}"
            self.server.files[id_] = (about, content)
            more |= {"files": [about], "subtype": "file_share"}
        where = ROOM if room else DIRECT
        body = f"<@{BOT_USER}> {text}" if room else text
        stamp = await asyncio.to_thread(lambda: self.server.says(body, channel=where, **more))
        self.room = f"{ROOM}/{stamp}"

    async def tap(self, message: str, label: str) -> None:
        stamp = message.partition(":")[2]
        tapped = next(posted for posted in self.server.messages if posted["ts"] == stamp)
        (value,) = [
            button["value"] for button in _buttons(tapped) if button["text"]["text"] == label
        ]
        await asyncio.to_thread(self.server.taps, stamp, value)

    def shown(self) -> list[Shown]:
        return [
            self._shown(message)
            for message in self.server.messages
            if message["channel"] == DIRECT and message.get("bot_id")
        ]

    def _shown(self, message: dict[str, Any]) -> Shown:
        """As Slack shows it: blocks take the place of the text."""
        text = message["text"].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        sections = [block for block in message.get("blocks") or [] if block["type"] == "section"]
        text = "\n".join(block["text"]["text"] for block in sections) or text
        files = tuple(self.server.files[id_][1].decode() for id_ in message.get("files", []))
        buttons = tuple(button["text"]["text"] for button in _buttons(message))
        return Shown(message["ts"], text, buttons, files, message.get("thread_ts"))

    def fail(self, how: str) -> None:
        self.server.failures.append(how)


def connection(server: SlackServer, **config: Any) -> Connection:
    read = SlackConfig.model_validate({"secretRef": "slack", **config})
    return Connection(binding="b", config=read, key=f"{BOT} {APP}".encode(), server=server.url)


def _buttons(message: dict[str, Any]) -> list[dict[str, Any]]:
    blocks = message.get("blocks") or []
    return [
        element for block in blocks if block["type"] == "actions" for element in block["elements"]
    ]


def _read(value: Any) -> Any:
    return json.loads(value) if isinstance(value, str) else value


async def _arguments(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        arguments = await request.json()
    else:
        arguments = dict(await request.post()) or dict(request.query)
    return {name: value for name, value in arguments.items() if name != "token"}


@contextlib.contextmanager
def serving() -> Iterator[SlackServer]:
    """In a loop of its own, as the real one is elsewhere."""
    server = SlackServer()
    ready = threading.Event()
    ended = asyncio.Event()

    async def serve() -> None:
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/api/{method}", server.api)
        app.router.add_post("/upload/{id}", server.upload)
        app.router.add_get("/download/{id}", server.download)
        app.router.add_get("/socket", server.socket)
        async with _running(app) as port:
            server.url, server.loop = f"http://127.0.0.1:{port}", asyncio.get_running_loop()
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(10)
    try:
        yield server
    finally:
        assert server.loop is not None
        server.loop.call_soon_threadsafe(ended.set)
        thread.join(10)


@contextlib.asynccontextmanager
async def _running(app: web.Application) -> AsyncIterator[int]:
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
