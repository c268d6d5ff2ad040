"""The other side of Telegram: a server that speaks the Bot API as it is documented, strictly.

What the documentation does not name, or does not allow, is answered with 400, as Telegram does.
"""

import http.client
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from operator import itemgetter
from typing import Any
from urllib.parse import parse_qs, urlsplit

from remit.channels.contract import Connection
from remit.channels.telegram import TelegramConfig
from remit.ids import token_digest
from remit.testing.channels import Shown

TOKEN = "123456:AAE-stand-in-token-of-a-bot-that-is-none"
ANN, ROOM, BOT = 5, -1007, 123456
_TO = {"chat_id", "message_thread_id", "reply_parameters", "reply_markup"}
#: By method, the parameters that the documentation has and we use.
KNOWN: dict[str, set[str]] = {
    "getMe": set(),
    "deleteWebhook": {"drop_pending_updates"},
    "setWebhook": {"url", "secret_token", "allowed_updates"},
    "getWebhookInfo": set(),
    "setMyCommands": {"commands"},
    "getUpdates": {"offset", "limit", "timeout", "allowed_updates"},
    "sendMessage": _TO | {"text", "link_preview_options"},
    "sendDocument": _TO | {"document", "caption"},
    "sendMediaGroup": {*_TO, "media"} - {"reply_markup"},
    "editMessageText": {*("chat_id", "message_id", "text", "reply_markup", "link_preview_options")},
    "deleteMessage": {"chat_id", "message_id"},
    "sendChatAction": {"chat_id", "message_thread_id", "action"},
    "getFile": {"file_id"},
    "answerCallbackQuery": {"callback_query_id"},
}
UPDATES = {"message", "edited_message", "callback_query"}


class Bad(Exception):
    def __init__(self, text: str, code: int = 400, **parameters: Any) -> None:
        super().__init__(text)
        self.code, self.parameters = code, parameters


@dataclass
class Telegram:
    url: str = ""
    token: str = TOKEN
    messages: dict[tuple[int, int], dict[str, Any]] = field(default_factory=dict)
    updates: list[dict[str, Any]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    answered: set[str] = field(default_factory=set)
    #: Why they cannot be posted, and how often that was so.
    trouble: str = ""
    troubles: int = 0
    #: Where updates are posted instead of being asked for, and what is shown there.
    webhook: dict[str, Any] = field(default_factory=dict)
    count: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def number(self) -> int:
        with self.lock:
            self.count += 1
            return self.count

    def chat(self, id_: int) -> dict[str, Any]:
        if id_ < 0:
            return {"id": id_, "type": "supergroup", "title": "The team"}
        return {"id": id_, "type": "private", "first_name": "Ann"}

    # ── people ──────────────────────────────────────────────────────────────────────────────

    def person(self, id_: int = ANN) -> dict[str, Any]:
        return {"id": id_, "is_bot": False, "first_name": "Ann", "username": f"user{id_}"}

    def say(
        self, text: str, who: int = ANN, chat: int | None = None, **more: Any
    ) -> dict[str, Any]:
        message = {
            "message_id": self.number(),
            "date": 1,
            "chat": self.chat(who if chat is None else chat),
            "from": self.person(who),
            **({"text": text} if text else {}),
            **more,
        }
        self.messages[message["chat"]["id"], message["message_id"]] = message
        self.updates.append({"update_id": self.number(), "message": message})
        return message

    def tap(self, chat: int, message: int, label: str, who: int = ANN) -> dict[str, Any]:
        original = self.messages[chat, message]
        rows = original["reply_markup"]["inline_keyboard"]
        [data] = [
            button["callback_data"] for row in rows for button in row if button["text"] == label
        ]
        tapped = {
            "id": str(self.number()),
            "from": self.person(who),
            "message": original,
            "chat_instance": "1",
            "data": data,
        }
        self.updates.append({"update_id": self.number(), "callback_query": tapped})
        return tapped

    def seen(self, chat: int = ANN) -> list[dict[str, Any]]:
        """What the bot said there, oldest first."""
        messages = [
            (key, message) for key, message in list(self.messages.items()) if key[0] == chat
        ]
        return [
            message
            for _, message in sorted(messages, key=itemgetter(0))
            if message["from"]["id"] == BOT
        ]

    def post(self) -> bool:
        """Post the oldest update, if there is one; it is kept until somebody answers that it came.

        Whoever is reached under an https address is found on this machine, without TLS.
        """
        if not self.webhook or not self.updates:
            return False
        update, place = self.updates[0], urlsplit(self.webhook["url"])
        wire = http.client.HTTPConnection("127.0.0.1", place.port or 443, timeout=10)
        headers = {"X-Telegram-Bot-Api-Secret-Token": self.webhook["secret_token"]}
        headers["Content-Type"] = "application/json"
        try:
            wire.request("POST", place.path, json.dumps(update), headers)
            got = wire.getresponse()
            answer, status = got.read(), got.status
        except (OSError, http.client.HTTPException) as error:
            return self._fail(type(error).__name__)
        finally:
            wire.close()
        if status != 200:
            return self._fail(f"Wrong response from the webhook: {status}")
        self.updates.remove(update)
        if answer and "method" in (reply := json.loads(answer)):
            self.call(self.token, reply.pop("method"), reply, {})
        return True

    def _fail(self, why: str) -> bool:
        self.troubles += 1
        self.trouble = why
        return False

    # ── the Bot API ─────────────────────────────────────────────────────────────────────────

    def call(
        self, token: str, method: str, parameters: dict[str, Any], sent: dict[str, Any]
    ) -> Any:
        if token != self.token:
            raise Bad("Unauthorized", 401)
        if method not in KNOWN:
            raise Bad("Not Found", 404)
        extra = set(parameters) - KNOWN[method] - set(sent)
        if extra:
            raise Bad(f"Bad Request: unknown parameters {sorted(extra)}")
        self.calls.append((method, parameters))
        if method.startswith(("send", "edit")) and method != "sendChatAction" and self.failures:
            how = self.failures.pop(0)
            if how == "busy":
                raise Bad("Too Many Requests: retry after 3", 429, retry_after=3)
            raise Bad("Forbidden: bot was blocked by the user", 403)
        return getattr(self, f"_{method}")(parameters, sent)

    def _getMe(self, *_: Any) -> Any:  # noqa: N802  # as the method is called
        return {"id": BOT, "is_bot": True, "first_name": "Ada", "username": "ada_bot"}

    def _deleteWebhook(self, *_: Any) -> Any:  # noqa: N802
        self.webhook = {}
        return True

    def _setWebhook(self, parameters: dict[str, Any], _: Any) -> Any:  # noqa: N802
        if not parameters["url"].startswith("https://"):
            raise Bad("Bad Request: bad webhook: An HTTPS URL must be provided for webhook")
        if not re.fullmatch(r"[A-Za-z0-9_-]{1,256}", parameters["secret_token"]):
            raise Bad("Bad Request: secret token contains unallowed characters")
        if not set(parameters["allowed_updates"]) <= UPDATES:
            raise Bad("Bad Request: unknown update type")
        self.webhook = parameters
        return True

    def _getWebhookInfo(self, *_: Any) -> Any:  # noqa: N802
        return {
            "url": self.webhook.get("url", ""),
            "has_custom_certificate": False,
            "pending_update_count": len(self.updates),
            **(
                {"last_error_message": self.trouble, "last_error_date": self.troubles}
                if self.trouble
                else {}
            ),
        }

    def _setMyCommands(self, parameters: dict[str, Any], _: Any) -> Any:  # noqa: N802
        for command in parameters["commands"]:
            if (
                set(command) != {"command", "description"}
                or not 1 <= len(command["description"]) <= 256
            ):
                raise Bad("Bad Request: invalid commands")
        return True

    def _getUpdates(self, parameters: dict[str, Any], _: Any) -> Any:  # noqa: N802
        if not set(parameters.get("allowed_updates", [])) <= UPDATES:
            raise Bad("Bad Request: unknown update type")
        if self.webhook:
            raise Bad("Conflict: can't use getUpdates method while webhook is active", 409)
        offset = int(parameters.get("offset") or 0)
        with self.lock:
            self.updates = [update for update in self.updates if update["update_id"] >= offset]
        until = time.monotonic() + int(parameters.get("timeout") or 0)
        while not self.updates and time.monotonic() < until:
            time.sleep(0.01)
        return self.updates[: int(parameters.get("limit") or 100)]

    def _sendMessage(self, parameters: dict[str, Any], _: Any) -> Any:  # noqa: N802
        return self._post(parameters, text=self._text(parameters["text"], 4096))

    def _sendDocument(self, parameters: dict[str, Any], sent: dict[str, Any]) -> Any:  # noqa: N802
        document = self._document(parameters["document"], sent)
        return self._post(parameters, document=document, caption=self._caption(parameters))

    def _sendMediaGroup(self, parameters: dict[str, Any], sent: dict[str, Any]) -> Any:  # noqa: N802
        if not 2 <= len(parameters["media"]) <= 10:
            raise Bad("Bad Request: group must have 2-10 items")
        return [
            self._post(
                parameters,
                document=self._document(media["media"], sent),
                caption=self._caption(media),
            )
            for media in parameters["media"]
        ]

    def _editMessageText(self, parameters: dict[str, Any], _: Any) -> Any:  # noqa: N802
        message = self._message(parameters, "edit")
        markup = self._markup(parameters.get("reply_markup"))
        text = self._text(parameters["text"], 4096)
        if (message.get("text"), message.get("reply_markup")) == (text, markup):
            raise Bad("Bad Request: message is not modified: the same content")
        message |= {"text": text, "reply_markup": markup}
        if markup is None:
            del message["reply_markup"]
        return message

    def _deleteMessage(self, parameters: dict[str, Any], _: Any) -> Any:  # noqa: N802
        message = self._message(parameters, "delete")
        del self.messages[message["chat"]["id"], message["message_id"]]
        return True

    def _sendChatAction(self, parameters: dict[str, Any], _: Any) -> Any:  # noqa: N802
        if parameters["action"] not in ("typing", "upload_document"):
            raise Bad("Bad Request: wrong parameter action in request")
        return True

    def _getFile(self, parameters: dict[str, Any], _: Any) -> Any:  # noqa: N802
        if parameters["file_id"] not in self.files:
            raise Bad("Bad Request: wrong file_id or the file is temporarily unavailable")
        id_ = parameters["file_id"]
        size = len(self.files[id_])
        return {"file_id": id_, "file_unique_id": id_, "file_size": size, "file_path": f"d/{id_}"}

    def _answerCallbackQuery(self, parameters: dict[str, Any], _: Any) -> Any:  # noqa: N802
        if parameters["callback_query_id"] in self.answered:
            raise Bad("Bad Request: query is too old and response timeout expired")
        self.answered.add(parameters["callback_query_id"])
        return True

    def _post(self, parameters: dict[str, Any], **what: Any) -> dict[str, Any]:
        chat = int(parameters["chat_id"])
        answered = parameters.get("reply_parameters")
        markup = self._markup(parameters.get("reply_markup"))
        message = {
            "message_id": self.number(),
            "date": 1,
            "chat": self.chat(chat),
            "from": self._getMe(),
            **{name: value for name, value in what.items() if value is not None},
            **({} if markup is None else {"reply_markup": markup}),
        }
        if answered and (chat, answered["message_id"]) in self.messages:
            message["reply_to_message"] = self.messages[chat, answered["message_id"]]
        elif answered and not answered.get("allow_sending_without_reply"):
            raise Bad("Bad Request: message to be replied not found")
        self.messages[chat, message["message_id"]] = message
        return message

    def _message(self, parameters: dict[str, Any], what: str) -> dict[str, Any]:
        message = self.messages.get((int(parameters["chat_id"]), int(parameters["message_id"])))
        if message is None or message["from"]["id"] != BOT:
            raise Bad(f"Bad Request: message to {what} not found")
        return message

    def _text(self, text: str, most: int) -> str:
        if not text.strip():
            raise Bad("Bad Request: message text is empty")
        if len(text.encode("utf-16-le", "surrogatepass")) // 2 > most:
            raise Bad("Bad Request: message is too long")
        return text

    def _caption(self, parameters: dict[str, Any]) -> str | None:
        caption = parameters.get("caption")
        if caption is not None and len(caption) > 1024:
            raise Bad("Bad Request: message caption is too long")
        return caption

    def _markup(self, markup: Any) -> Any:
        for row in (markup or {}).get("inline_keyboard", []):
            for button in row:
                if set(button) != {"text", "callback_data"} or not button["text"]:
                    raise Bad("Bad Request: inline keyboard button is invalid")
                if not 1 <= len(button["callback_data"].encode()) <= 64:
                    raise Bad("Bad Request: BUTTON_DATA_INVALID")
        return markup

    def _document(self, named: str, sent: dict[str, Any]) -> dict[str, Any]:
        name, content = sent[named.removeprefix("attach://")]
        id_ = f"F{self.number()}"
        self.files[id_] = content
        return {"file_id": id_, "file_unique_id": id_, "file_name": name}


@contextmanager
def serving() -> Iterator[Telegram]:
    telegram = Telegram()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            _, _, token, *path = self.path.split("/")
            content = telegram.files[path[-1]] if token == f"bot{telegram.token}" else b""
            self._send(200, content, "application/octet-stream")

        def do_POST(self) -> None:
            body = self._body()
            parameters, sent = _form(self.headers.get("content-type", ""), body)
            _, token, method = self.path.split("/")
            try:
                result = telegram.call(token.removeprefix("bot"), method, parameters, sent)
                code, answer = 200, {"ok": True, "result": result}
            except Bad as error:
                code = error.code
                answer = {"ok": False, "error_code": code, "description": str(error)}
                if error.parameters:
                    answer["parameters"] = error.parameters
            self._send(code, json.dumps(answer).encode(), "application/json")

        def _body(self) -> bytes:
            if self.headers.get("transfer-encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("content-length", 0)))
            whole = b""
            while size := int(self.rfile.readline(), 16):
                whole += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return whole

        def _send(self, code: int, content: bytes, kind: str) -> None:
            try:
                self.send_response(code)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except OSError:
                self.close_connection = True

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]  # who hangs up may
    telegram.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield telegram
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def posting(telegram: Telegram) -> Iterator[None]:
    """Telegram posts what comes, for as long as it is told where."""
    stopped = threading.Event()

    def post() -> None:
        while not stopped.is_set():
            if not telegram.post():
                stopped.wait(0.05)

    thread = threading.Thread(target=post)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()


def _form(kind: str, body: bytes) -> tuple[dict[str, Any], dict[str, tuple[str, bytes]]]:
    """The parameters of a request, and the files in it by name."""
    sent: dict[str, tuple[str, bytes]] = {}
    if kind.startswith("multipart/"):
        whole = b"content-type: " + kind.encode() + b"\r\n\r\n" + body
        fields: dict[str, str] = {}
        parsed: Any = BytesParser(policy=HTTP).parsebytes(whole)
        for part in parsed.iter_parts():
            name = part.get_param("name", header="content-disposition")
            content = part.get_payload(decode=True)
            if part.get_filename() is not None:
                sent[name] = (part.get_filename(), content)
            else:
                fields[name] = content.decode()
    else:
        fields = {name: value[0] for name, value in parse_qs(body.decode(), True).items()}
    parameters: dict[str, Any] = {}
    for name, value in fields.items():
        try:
            read = json.loads(value)
        except ValueError:
            read = value
        parameters[name] = read if isinstance(read, list | dict | bool) else value
    return parameters, sent


class TelegramStand:
    """Plays Telegram for the suite of channels."""

    direct, room = str(ANN), str(ROOM)

    def __init__(self, telegram: Telegram) -> None:
        import_module("aiogram")  # takes seconds, which no test should count
        self.telegram = telegram
        config = TelegramConfig(secretRef="bot", pollSeconds=1)  # type: ignore[call-arg]
        commands = [("status", "how it is")]
        self.connection = Connection(
            binding="b",
            config=config,
            key=telegram.token.encode(),
            server=telegram.url,
            commands=commands,
            proof="secret-of-a-listener",
            proof_digest=token_digest("secret-of-a-listener"),
        )

    async def say(
        self,
        text: str,
        *,
        room: bool = False,
        reply_to: str | None = None,
        file: tuple[str, str, bytes] | None = None,
    ) -> None:
        more: dict[str, Any] = {}
        if file is not None:
            name, kind, content = file
            id_ = f"F{self.telegram.number()}"
            self.telegram.files[id_] = content
            more["document"] = {
                "file_id": id_,
                "file_unique_id": id_,
                "file_name": name,
                "mime_type": kind,
                "file_size": len(content),
            }
            more["caption"], text = text, ""
        if room:
            text = f"@ada_bot {text}"
            more["entities"] = [{"type": "mention", "offset": 0, "length": 8}]
        self.telegram.say(text, chat=ROOM if room else None, **more)

    async def tap(self, message: str, label: str) -> None:
        chat, _, number = message.partition(".")
        self.telegram.tap(int(chat), int(number), label)

    def shown(self) -> list[Shown]:
        """Documents of one group are one message to people."""
        messages: list[Shown] = []
        for message in self.telegram.seen():
            rows = message.get("reply_markup", {}).get("inline_keyboard", [])
            document = message.get("document")
            content = self.telegram.files[document["file_id"]].decode() if document else None
            answered = message.get("reply_to_message")
            shown = Shown(
                str(message["message_id"]),
                message.get("text") or message.get("caption") or "",
                tuple(button["text"] for row in rows for button in row),
                () if content is None else (content,),
                None if answered is None else str(answered["message_id"]),
            )
            if messages and content is not None and messages[-1].files:
                last = messages.pop()
                shown = Shown(last.id, shown.text or last.text, (), (*last.files, content))
            messages.append(shown)
        return messages

    def fail(self, how: str) -> None:
        self.telegram.failures.append(how)
