"""A company at work while its processes are killed, and what must be true of it afterwards.

People send letters over HTTP, each with a key, until they are acknowledged. The agents are real
programs in the sandbox: for each letter they make an outcome and complete it, or hire somebody for
it, answer, and acknowledge the letter; and they write into their home what they did.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import random
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remit.runtime.sandbox import cgroups
from tests.company import Company, opened, run_sql
from tests.organisation import problems
from tests.runtime_stage import Life, Stage
from tests.working import alive, eventually, program

#: Every so many letters somebody is hired.
HIRE_EVERY = 4
LEASE = 1.0
PAUSE = 0.05
#: Deliveries of letters to know: they start no run for a day, and the next one reads them.
WAITS_FOR_A_DAY = "(status = 'queued' AND message_id IN (SELECT id FROM messages WHERE to_know))"

#: For each letter: the same calls with the same keys, however often it is begun anew.
PROGRAM = r"""
import json, os, socket, sys
host, port = os.environ["REMIT_URL"].removeprefix("http://").split(":")
me, company = os.environ["REMIT_AGENT"], sys.argv[1]
said = os.open(os.environ["HOME"] + "/said", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
def say(*words):
    os.write(said, (" ".join((os.environ["REMIT_RUN"],) + words) + "\n").encode())
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
    status = int(top.split()[1])
    if status >= 300:
        say("refused", str(status), path.split("/")[-1])
        sys.exit(f"{method} {path}: {status} {rest[:300]}")
    return json.loads(rest)
for letter in call("GET", "/inbox"):
    one, subject = letter["id"], letter["subject"]
    kind, number = subject.split("-")
    say("processed", subject)
    print(subject, flush=True)
    work = {"parentId": me, "title": subject}
    made = call("POST", f"/companies/{company}/outcomes", work, f"make-{one}")["id"]
    if kind == "hire":
        hire = {"name": f"h{number}", "adapterType": "human"}
        call("POST", f"/outcomes/{made}/delegate", {"hire": hire}, f"hire-{one}")
    else:
        call("POST", f"/outcomes/{made}/complete", {}, f"complete-{one}")
    reply = {"to": "board", "subject": subject, "body": "done", "replyTo": one}
    call("POST", f"/companies/{company}/messages", reply, f"reply-{one}")
    call("POST", f"/messages/{one}/ack", {}, f"ack-{one}")
    say("acknowledged", subject)
"""


def subject_of(number: int) -> str:
    return f"{'hire' if number % HIRE_EVERY == 0 else 'job'}-{number}"


def free_port() -> int:
    """One that is not given to whoever calls somebody while the instance is down."""
    while True:
        port = random.SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as taken, contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", port))
            return port


@dataclass
class Office:
    """One company, its processes, and who writes to it."""

    url: str
    home: Path
    stage: Stage
    seed: int
    agents: int = 5
    port: int = field(default_factory=free_port)
    kills: Counter[str] = field(default_factory=Counter)
    #: How many letters were acknowledged to their sender.
    sent: int = 0

    def __post_init__(self) -> None:
        self.moments = random.Random(self.seed)
        self._over = threading.Event()
        self._enough = threading.Event()
        with opened(self.url, self.home) as company:
            self.company_id = company.id
            self.token = company.board.token
            command = {"command": "/usr/bin/python3"}
            args = ["-I", "-S", "-c", PROGRAM, company.id]
            self.team = [
                program(company, f"a{n}", "", config={**command, "args": args})
                for n in range(self.agents)
            ]
        self._sender = threading.Thread(target=self._send_letters)
        self.processes: dict[str, int] = {}
        self._helped = 0.0

    # ── people ──────────────────────────────────────────────────────────────────────────────

    def ask(self, method: str, path: str, body: Any = None, key: str = "") -> tuple[int, Any]:
        """One request of the board; raises OSError when nobody answers."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        if key:
            headers["Idempotency-Key"] = key
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            wire.request(
                method, f"/api{path}", json.dumps(body) if body is not None else None, headers
            )
            answer = wire.getresponse()
            return answer.status, json.loads(answer.read() or b"null")
        except http.client.HTTPException as error:
            raise ConnectionError(str(error)) from error
        except ValueError as error:  # an answer that was cut off
            raise ConnectionError("cut off") from error
        finally:
            wire.close()

    def send(self, number: int) -> None:
        """Until it is acknowledged; its key makes sure that it is one letter all the same."""
        to = self.team[number % len(self.team)]
        letter = {"to": f"agent:{to.id}", "subject": subject_of(number), "body": "Please."}
        while not self._over.is_set():
            with contextlib.suppress(OSError):
                status, answer = self.ask(
                    "POST", f"/companies/{self.company_id}/messages", letter, f"letter-{number}"
                )
                assert status == 201, answer
                self.sent += 1
                return
            time.sleep(0.02)

    def _send_letters(self) -> None:
        number = 0
        while not self._enough.is_set():
            self.send(number)
            number += 1
            self._enough.wait(0.08)

    def help_along(self) -> None:
        """What a person does now and then: start what was stopped, put back what was given up."""
        if time.monotonic() < self._helped + 0.5:
            return
        self._helped = time.monotonic()
        with contextlib.suppress(OSError):
            _, waiting = self.ask("GET", "/needs-you")
            for need in waiting:
                if need["kind"] == "dead_letter":
                    self.ask("POST", f"/messages/{need['id']}/revive", {})
            for member in self.team:
                _, agent = self.ask("GET", f"/agents/{member.id}")
                if agent["status"] == "error":
                    self.ask("POST", f"/agents/{member.id}/start", {})

    # ── processes ───────────────────────────────────────────────────────────────────────────

    def life(self, kind: str, name: str, **more: Any) -> Life:
        return Life(
            self.url,
            str(self.home),
            name,
            kind=kind,
            port=self.port if kind in ("up", "serve") else 0,
            lease_seconds=LEASE,
            slots=3,
            pause_seconds=PAUSE,
            **more,
        )

    def begin(self, kind: str, name: str, *, wait: bool = True, **more: Any) -> None:
        self.processes[name] = self.stage.begin(self.life(kind, name, **more), wait=wait)

    @contextlib.contextmanager
    def at_work(self) -> Iterator[None]:
        self._sender.start()
        try:
            yield
            self._enough.set()
            self._sender.join(30)
            assert not self._sender.is_alive(), "the last letter was never acknowledged"
        finally:
            self._enough.set()
            self._over.set()
            self._sender.join()
            self._over.clear()

    def kill(self, name: str) -> None:
        os.kill(self.processes[name], signal.SIGKILL)
        self.kills[name] += 1
        eventually(lambda: self.is_gone(name))

    def ends_itself(self) -> bool:
        """Whether an instance came to where it ends by its own hand; agents are kept going."""
        self.help_along()
        return self.is_gone("instance")

    def is_gone(self, name: str) -> bool:
        """Its last thread is, which holds its port and its lock."""
        return not Path(f"/proc/{self.processes[name]}").exists()

    def kill_agent(self) -> None:
        """Some process of some agent, as soon as there is one: its sandbox, or what is in it."""
        end_at = time.monotonic() + 1
        while time.monotonic() < end_at:
            processes = sorted(self._programs())
            with contextlib.suppress(IndexError, ProcessLookupError):
                os.kill(self.moments.choice(processes), signal.SIGKILL)
                self.kills["agent"] += 1
                return
            time.sleep(0.01)

    def _programs(self) -> dict[int, tuple[str, str]]:
        """Processes of runs of this office: whose, and of which run."""
        root = f"REMIT_WORKSPACE={self.home}/".encode()
        programs = {}
        for name in os.listdir("/proc"):
            if not name.isdigit():
                continue
            try:
                told = Path(f"/proc/{name}/environ").read_bytes()
            except OSError:
                continue
            if root in told and alive(int(name)):
                pairs = dict(
                    entry.decode().partition("=")[::2] for entry in told.split(b"\0") if entry
                )
                programs[int(name)] = (pairs["REMIT_AGENT"], pairs["REMIT_RUN"])
        return programs

    def check_alone(self) -> None:
        """No agent is at work twice, in the database or on the machine."""
        running = self.sql("SELECT agent_id FROM runs WHERE status = 'running'")
        assert len(running) == len(set(running)), running
        # Only who is there in both looks was there at the same time as everybody else in both.
        first, second = set(self._programs().values()), set(self._programs().values())
        twice = Counter(agent for agent, _ in first & second)
        assert not [agent for agent, count in twice.items() if count > 1], first & second

    # ── the end ─────────────────────────────────────────────────────────────────────────────

    def settle(self, seconds: float = 60) -> None:
        """Everything is done that was asked for, and everybody can still do something."""

        def quiet() -> bool:
            self.help_along()
            left = self.sql(
                "SELECT count(*) FROM deliveries d JOIN agents a ON a.id = d.agent_id"
                " WHERE a.adapter_type = 'process' AND d.status <> 'done'",
            )
            running = self.sql("SELECT count(*) FROM runs WHERE status = 'running'")
            return left == running == [(0,)]

        eventually(quiet, seconds)
        before = self.sent
        for number in range(before, before + len(self.team)):
            self.send(number)
        eventually(quiet, seconds)

    def stop(self) -> None:
        for pid in self.processes.values():
            os.kill(pid, signal.SIGTERM)
        for pid in self.processes.values():
            eventually(lambda pid=pid: not alive(pid))  # type: ignore[misc]
        eventually(lambda: not self._programs())

    def check(self) -> None:
        subjects = [subject_of(number) for number in range(self.sent)]
        self._check_programs(subjects)
        self._check_database(subjects)
        with opened(self.url, self.home) as company:
            assert problems(company) == []  # with the chain of events
            self._check_contents(company)
            assert not list(company.app.settings.workspaces.iterdir())
            runs = {run for (run,) in company.sql("SELECT id FROM runs")}
            assert not runs & set(cgroups.leftovers())

    def _check_programs(self, subjects: list[str]) -> None:
        """Each letter was worked on, and none that was acknowledged ever again."""
        processed: set[str] = set()
        for member in self.team:
            done: set[str] = set()
            log = self.home / "agents" / member.id / "said"
            for line in log.read_text().splitlines():
                _, what, *rest = line.split()
                if what == "processed":
                    assert rest[0] not in done, line
                    processed.add(rest[0])
                elif what == "acknowledged":
                    done.add(rest[0])
                else:
                    assert rest[0] == "401", line  # of a run that was lost; nothing else is
        assert processed == set(subjects)

    def sql(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        return run_sql(self.url, statement, *parameters)

    def _check_database(self, subjects: list[str]) -> None:
        team = {member.id for member in self.team}
        letters = self.sql(
            "SELECT m.subject, d.agent_id, d.status FROM messages m"
            " JOIN deliveries d ON d.message_id = m.id WHERE d.agent_id IS NOT NULL"
        )
        mine = [(subject, status) for subject, agent, status in letters if agent in team]
        assert Counter(mine) == Counter((subject, "done") for subject in subjects)
        answers = self.sql("SELECT subject FROM messages WHERE reply_to IS NOT NULL")
        assert Counter(subject for (subject,) in answers) == Counter(subjects)
        work = self.sql("SELECT title, status FROM outcomes WHERE kind = 'work'")
        titles = [(title, status) for title, status in work if "-" in title]
        expected = {
            subject: "completed" if subject.startswith("job") else "open" for subject in subjects
        }
        assert Counter(titles) == Counter(expected.items())
        completed = self.sql(
            "SELECT resource, count(*) FROM events WHERE action = 'outcome.complete'"
            " AND allowed GROUP BY resource"
        )
        jobs = [subject for subject in subjects if subject.startswith("job")]
        assert Counter(count for _, count in completed) == Counter({1: len(jobs)})
        hired = [name for (name,) in self.sql("SELECT name FROM agents") if name[0] == "h"]
        assert Counter(hired) == Counter(
            f"h{subject.partition('-')[2]}" for subject in subjects if subject.startswith("hire")
        )
        self._check_runs()

    def _check_runs(self) -> None:
        """One after the other, and nothing of a run after its end."""
        for member in self.team:
            runs = self.sql(
                "SELECT epoch, status FROM runs WHERE agent_id = ? ORDER BY id", member.id
            )
            assert [epoch for epoch, _ in runs] == list(range(1, len(runs) + 1))
        late = self.sql(
            "SELECT e.action, e.run_id FROM events e JOIN events f"
            " ON f.company_id = e.company_id AND f.action = 'run.end'"
            " AND f.resource = 'run:' || e.run_id WHERE e.seq > f.seq AND e.allowed"
        )
        assert late == []
        assert self.sql("SELECT count(*) FROM runs WHERE status = 'running'") == [(0,)]

    def _check_contents(self, company: Company) -> None:
        for file, digest in company.sql("SELECT file_id, sha256 FROM file_versions"):
            with company.app.blobs.open(file, digest) as stream:
                assert hashlib.sha256(stream.read()).hexdigest() == digest
        if "sqlite" in self.url:
            assert company.sql("PRAGMA integrity_check") == [("ok",)]
            assert company.sql("PRAGMA foreign_key_check") == []
