"""An instance whose agent is talked to from a chat, made to be killed, or flooded.

The instance is a process that does what `remit up` does, or two that do what `remit serve` and
`remit worker` do; the other side is the stand-in of Telegram or Slack, or a mailbox of Dovecot. The
agent is a program in the sandbox: it answers each letter in the chat it came from, once, and asks a
question when it is told to.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from remit.model.messaging.authorship import parted
from remit.services.connections import bindings, notice_rules, secrets
from remit.store.engine.migrate import is_sqlite
from tests import email_stage, runtime_stage, slack_stage
from tests.chat_stage import linked
from tests.company import Company, opened, run_sql
from tests.kills import LEASE, PAUSE, WAITS_FOR_A_DAY, free_port
from tests.runtime_stage import Life, Stage
from tests.slack_stage import SlackServer, SlackStand
from tests.telegram_server import Telegram
from tests.working import program

SECONDS = 120.0
#: Longer than any attempt here takes; beside others nobody knows sooner that a process is gone.
CHAT_LEASE = 8.0
#: Called where runs are started, by the run and for it.
VERBS_OF_RUNS = ("claiming.claim", "mail.send", "inbox.acknowledge", "runs.end")
#: As `tests.kills.PROGRAM`, for letters of chats.
PROGRAM = r"""
import json, os, socket, sys
host, port = os.environ["REMIT_URL"].removeprefix("http://").split(":")
company = sys.argv[1]
def call(method, path, body=None, key=""):
    data = json.dumps(body).encode() if body is not None else b""
    head = [f"{method} /api{path} HTTP/1.0", f"Host: {host}", f"Content-Length: {len(data)}",
        "Content-Type: application/json", "Authorization: Bearer " + os.environ["REMIT_TOKEN"]]
    head += [f"Idempotency-Key: {key}"] if key else []
    with socket.create_connection((host, int(port)), 30) as wire:
        wire.sendall("\r\n".join(head + ["", ""]).encode() + data)
        answer = b""
        while piece := wire.recv(65536):
            answer += piece
    top, _, rest = answer.partition(b"\r\n\r\n")
    if int(top.split()[1]) >= 300:
        sys.exit(f"{method} {path}: {top} {rest[:300]}")
    return json.loads(rest)
for letter in call("GET", "/inbox"):
    one, said = letter["id"], letter["body"].strip()
    if said == "Ask.":
        ask = {"question": "Red or blue?", "options": ["red", "blue"], "to": "board"}
        call("POST", f"/companies/{company}/questions", ask, f"ask-{one}")
    elif letter["sender"].startswith("channel:"):
        reply = {"to": letter["sender"], "body": f"Answer to {said}", "replyTo": one}
        call("POST", f"/companies/{company}/messages", reply, f"reply-{one}")
    call("POST", f"/messages/{one}/ack", {}, f"ack-{one}")
"""


@dataclass(frozen=True)
class Seen:
    """Something in the chat; `id` is the same for what a reader takes for one."""

    id: str
    text: str
    buttons: tuple[str, ...] = ()

    @property
    def marked(self) -> bool:
        return parted(self.text)[1].startswith("(sent again")


class Outside(Protocol):
    kind: str
    #: Whose account is linked, as the channel knows it, where they talk.
    account: str
    conversation: str
    secret: str
    config: Any
    #: For `remit.toml` of the instance.
    settings: Any
    #: Where it is reached, if the outside was told so.
    port: int | None

    def say(self, text: str) -> None: ...
    def seen(self) -> list[Seen]: ...


class InTelegram:
    kind, account, conversation = "telegram", "5", "5"
    port: int | None = None

    def __init__(self, telegram: Telegram) -> None:
        self.telegram = telegram
        self.secret = telegram.token
        self.config = {"secretRef": "chat", "pollSeconds": 1, "hear": "all"}
        self.settings = [f'channel_servers = "telegram={telegram.url}"']

    def say(self, text: str) -> None:
        self.telegram.say(text)

    def seen(self) -> list[Seen]:
        return [
            Seen(str(message["message_id"]), message["text"], _labels(message))
            for message in self.telegram.seen()
        ]

    def tap(self, message: str, label: str) -> None:
        self.telegram.tap(int(self.conversation), int(message), label)


def _labels(message: dict[str, Any]) -> tuple[str, ...]:
    rows = message.get("reply_markup", {}).get("inline_keyboard", [])
    return tuple(button["text"] for row in rows for button in row)


class PostedByTelegram(InTelegram):
    """Telegram posts what comes, instead of being asked."""

    def __init__(self, telegram: Telegram) -> None:
        super().__init__(telegram)
        self.port = free_port()
        self.config |= {"webhookUrl": f"https://localhost:{self.port}"}


class InSlack:
    kind, conversation = "slack", slack_stage.DIRECT
    port: int | None = None
    account = f"{slack_stage.TEAM}:U0ANN"

    def __init__(self, server: SlackServer) -> None:
        server.reset()
        self.stand = SlackStand(server)
        self.secret = f"{slack_stage.BOT} {slack_stage.APP}"
        self.config = {"secretRef": "chat"}
        self.settings = [f'channel_servers = "slack={server.url}"']

    def say(self, text: str) -> None:
        self.stand.server.says(text)

    def seen(self) -> list[Seen]:
        shown = self.stand.shown()
        return [Seen(message.id, message.text, message.buttons) for message in shown]

    def tap(self, message: str, label: str) -> None:
        asyncio.run(self.stand.tap(f"{self.conversation}:{message}", label))


class InEmail:
    kind, account, conversation = "email", email_stage.ANN, email_stage.ANN
    secret = email_stage.PASSWORD
    port: int | None = None
    settings = ('private_channels = "yes"',)

    def __init__(self, stage: email_stage.MailStage) -> None:
        stage.empty()
        self.stage = stage
        self.config = stage.config(secretRef="chat").model_dump(by_alias=True)

    def say(self, text: str) -> None:
        self.stage.bring(email_stage.written(text, Subject=text))

    def seen(self) -> list[Seen]:
        """Programs that read mail show one of several with the same Message-ID."""
        emails = {str(email["Message-ID"]): email for email in [*self.stage.sent.got]}
        return [Seen(id_, email.get_content()) for id_, email in emails.items()]


@dataclass
class ChatOffice:
    outside: Outside
    home: Path
    stage: Stage
    #: The database; SQLite unless it is said.
    url: str = ""
    #: What its processes do: the commands of these names.
    kinds: Sequence[str] = ("up",)
    port: int = 0
    #: Called with the company before its instance begins.
    prepare: Callable[[Company], object] = lambda _: None
    processes: dict[str, int] = field(default_factory=dict)
    #: Which of them ended by their own hand.
    deaths: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.url = self.url or f"sqlite:///{self.home}/remit.db"
        self.port = self.outside.port or free_port()
        self.home.mkdir(exist_ok=True)
        (self.home / "remit.toml").write_text("\n".join(self.outside.settings) + "\n")
        (self.home / "chat.secret").write_text(self.outside.secret)
        (self.home / "chat.secret").chmod(0o600)
        with opened(self.url, self.home) as company:
            self.company, self.token = company.id, company.board.token
            args = ["-I", "-S", "-c", PROGRAM, company.id]
            config = {"command": "/usr/bin/python3", "args": args}
            agent = program(company, "ada", "", config=config)
            here: Any = {"company": company.id}
            place = {"source": "file", "place": str(self.home / "chat.secret")}
            company.call(company.board, secrets.put, **here, name="chat", **place)
            about: Any = {"agent": agent.id, "kind": self.outside.kind}
            binding = company.call(
                company.board, bindings.add, **here, **about, config=self.outside.config
            )
            # What is shown is what Ann asks for, in that order.
            rules: Any = {"routes": {"all": []}}
            company.call(company.board, notice_rules.change, **here, **rules)
            [[ann]] = company.sql("SELECT id FROM users")
            linked(
                company.app,
                company.id,
                ann,
                binding["id"],
                kind=self.outside.kind,
                account=self.outside.account,
                conversation=self.outside.conversation,
            )
            self.prepare(company)

    # ── the processes ───────────────────────────────────────────────────────────────────────

    def begin(self, crash: tuple[str, str, int] | None = None, *, wait: bool = True) -> None:
        """Begin them all; the one that gets there ends itself."""
        for kind in self.kinds:
            self._begin(kind, crash if kind == self.place_of(crash) else None, wait=wait)

    def place_of(self, crash: tuple[str, str, int] | None) -> str:
        """The process that calls the verb."""
        return self.kinds[-1] if crash and crash[0] in VERBS_OF_RUNS else self.kinds[0]

    def _begin(
        self, kind: str, crash: tuple[str, str, int] | None = None, *, wait: bool = True
    ) -> None:
        environ = {name: os.environ[name] for name in ("SSL_CERT_FILE",) if name in os.environ}
        life = Life(
            self.url,
            str(self.home),
            kind=kind,
            port=0 if kind == "worker" else self.port,
            lease_seconds=LEASE,
            chat_lease_seconds=None if is_sqlite(self.url) else CHAT_LEASE,
            pause_seconds=PAUSE,
            crash=crash,
            environ=environ,
        )
        self.processes[kind] = self.stage.begin(life, wait=wait)

    def end(self) -> None:
        for process in self.processes.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def until(self, look: Callable[[], object], seconds: float = SECONDS) -> None:
        """Look until it is so; a process that ended itself is begun anew, without that."""
        end_at = time.monotonic() + seconds
        while not look():
            for kind, process in self.processes.items():
                if not Path(f"/proc/{process}").exists():
                    self.deaths.append(kind)
                    self._begin(kind)
            assert time.monotonic() < end_at, ("it did not come to pass", self.state())
            time.sleep(0.05)

    # ── people ──────────────────────────────────────────────────────────────────────────────

    def sql(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        return run_sql(self.url, statement, *parameters)

    def sees(self, words: str) -> list[Seen]:
        return [message for message in self.outside.seen() if words in message.text]

    def answer(self, question: str) -> bool:
        """Answer a question like the board's page; return whether that was acknowledged."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        headers["Idempotency-Key"] = f"answer-{question}"
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            path = f"/api/questions/{question}/answer"
            wire.request("POST", path, json.dumps({"answer": "red"}), headers)
            return wire.getresponse().status < 300
        except (OSError, http.client.HTTPException):
            return False
        finally:
            wire.close()

    def state(self) -> object:
        return {
            "seen": self.outside.seen(),
            "mail": self.sql("SELECT m.address, m.subject, m.to_know, d.status, d.attempt"
                " FROM messages m JOIN deliveries d ON d.message_id = m.id"),
            "runs": self.sql("SELECT agent_id, status, fault, substr(error, 1, 300) FROM runs"),
            "waits": self.sql("SELECT * FROM agent_leases"),
        }  # fmt: skip

    def is_quiet(self) -> bool:
        tables = ("channel_intake", "channel_posts", "channel_deliveries", "deliveries")
        waiting = "SELECT count(*) FROM {} WHERE status IN ('queued', 'leased')"
        agent = f" AND agent_id IS NOT NULL AND NOT {WAITS_FOR_A_DAY}"
        queries = [
            waiting.format(table) + (agent if table == "deliveries" else "") for table in tables
        ]
        return all(self.sql(query) == [(0,)] for query in queries)


def main() -> None:
    # Once, and not by each process: these take seconds.
    for name in ("aiogram", "slack_sdk.socket_mode.aiohttp", "imapclient", "aiosmtplib"):
        import_module(name)
    runtime_stage.main()
