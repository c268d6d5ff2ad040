"""Two companies of one instance that have one of everything, and those who would like more."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remit.ids import Ids
from remit.services.execution import run_queue, runs
from remit.services.identity import as_system
from tests import change_stage, chat_stage
from tests.http_client import Client
from tests.test_mcp_tools import Site, serving

#: An id that looks like ours and is nobody's.
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
#: What differs between two answers that say the same: times, tokens, keys and marks of ours; and
#: how far the record is, which grows by each refusal.
_MOVING = re.compile(
    r"\d{4}-\d\d-\d\dT[0-9:.]+(?:Z|\+00:00)|rmt_[a-z]+_[\w-]+|web-[0-9a-f]{32}"
    r"|reference [0-9a-f]{8}|[0-9a-f]{64}|data-position=\"\d+\""
)


@dataclass(frozen=True)
class Estate:
    """A company and the id of one thing of each kind in it."""

    company: str
    #: By kind, as the routes call it: agent, outcome, file …
    ids: Mapping[str, str]
    #: What its things are called.
    names: Mapping[str, str]
    board: Client
    #: An agent with a report, by a key.
    boss: Client
    #: What is bound to that agent from outside.
    outside: Client

    @property
    def boss_key(self) -> str:
        assert self.boss.token is not None
        return self.boss.token


@dataclass(frozen=True)
class Stage:
    site: Site
    operator: Client
    #: The company of whoever attacks, and the one that they have no part in.
    ours: Estate
    theirs: Estate

    @property
    def attackers(self) -> dict[str, Client]:
        return {"board": self.ours.board, "agent": self.ours.boss}

    def foreign(self) -> dict[str, str]:
        """Everything of theirs that can be named, by kind."""
        return {**self.theirs.ids, **self.theirs.names}


@contextlib.contextmanager
def staged(home: Path) -> Iterator[Stage]:
    with serving(home) as site:
        operator = Client(site.url, site.board.token)
        theirs = estate(site, operator, "Theirs", "their")
        yield Stage(site, operator, estate(site, operator, "Ours", "our"), theirs)


def estate(site: Site, operator: Client, called: str, word: str) -> Estate:
    """One of everything that has an id or a name."""
    company = operator.must("POST", "/api/companies", {"name": called})["id"]
    here = f"/api/companies/{company}"
    off = {"requireBoardApprovalForNewAgents": False, "requireApprovalForConfigChanges": False}
    operator.must("PATCH", here, off)
    operator.must("POST", f"{here}/users", {"name": f"{word}-board"})
    token = operator.must("POST", f"{here}/users/{word}-board/tokens", {"label": "x"})
    board = Client(site.url, token["token"])
    about = {"adapterType": "scripted", "purpose": f"{word} purpose"}
    boss = board.must("POST", f"{here}/agents", {"name": f"{word}-boss", **about})["id"]
    report = board.must(
        "POST", f"{here}/agents", {"name": f"{word}-worker", "reportsTo": boss, **about}
    )["id"]
    board.must("PATCH", f"/api/agents/{boss}/permissions", {"canCreateAgents": True})
    mover = board.must("POST", f"{here}/agents", {"name": f"{word}-mover", **about})["id"]
    step = {"op": "move", "agent": mover, "to": boss}
    moved = board.must("POST", f"{here}/reorganise", {"operations": [step]})
    key = board.must("POST", f"/api/agents/{boss}/keys", {"label": "first"})
    low = board.must("POST", f"/api/agents/{report}/keys", {"label": "second"})
    chief, worker = Client(site.url, key["token"]), Client(site.url, low["token"])
    files = {
        kind: board.must(
            "POST",
            f"{here}/files",
            {"description": f"{word} {kind}", "content": "words", "unlisted": kind == "unlisted"},
        )["id"]
        for kind in ("file", "unlisted")
    }
    grant = board.must(
        "POST",
        f"{here}/grants",
        {"to": boss, "resource": f"kb_file:{files['file']}", "level": "write"},
    )["id"]
    part = board.must("POST", f"{here}/outcomes", {"parentId": report, "title": f"{word} part"})
    own, more = (
        board.must("POST", f"{here}/outcomes", {"parentId": boss, "title": f"{word} {title}"})
        for title in ("own", "more")
    )
    board.must("PATCH", here, {"requireBoardApprovalForNewAgents": True})
    hired = chief.must("POST", f"{here}/agent-hires", {"name": f"{word}-hire", **about})
    board.must("PATCH", here, off)
    approval = hired["approval"]["id"]
    comment = chief.must("POST", f"/api/approvals/{approval}/comments", {"body": "please"})
    message = worker.must("POST", f"{here}/messages", {"to": boss, "body": f"{word} words"})
    question = worker.must("POST", f"{here}/questions", {"question": f"{word} question?"})
    schedule = chief.must("POST", f"{here}/schedules", {"body": "look", "cron": "0 9 * * 1"})
    worker.must("POST", f"{here}/messages", {"to": "agent:background", "body": "Count."})
    job = worker.must("GET", f"{here}/jobs")[0]
    secret = operator.must(
        "POST", f"{here}/secrets", {"name": f"{word}-secret", "source": "env", "place": "X"}
    )
    server = operator.must(
        "POST", f"{here}/mcp-servers", {"name": f"{word}-up", "command": ["true"]}
    )
    repo = operator.must("POST", f"{here}/repos", {"name": f"{word}-site", "url": "/srv/x.git"})
    check = {"check": f"{word}-check", "command": "true"}
    operator.must("POST", f"{here}/repos/{word}-site/checks", check)
    folder = operator.must("POST", f"{here}/mounts", {"path": f"/srv/{word}"})
    lent = board.must(
        "POST",
        f"/api/agents/{boss}/lent",
        {"name": f"{word}-team", "source": "/srv/x", "files": {"skills/a/SKILL.md": "QQ=="}},
    )
    board.must(
        "POST",
        f"{here}/grants",
        {"to": report, "resource": f"repo:{word}-site", "level": "propose"},
    )
    change = site.wait(change_stage.proposed(site.app, report, f"{word}-site"))
    binding = board.must(
        "POST",
        f"{here}/bindings",
        {"agent": boss, "adapterType": "webhook", "adapterConfig": {"url": "https://a.example/in"}},
    )
    sent = chief.must("POST", f"{here}/messages", {"to": "channel:webhook:room", "body": "Hello."})
    people = operator.must("GET", f"{here}/users")
    user = next(person["id"] for person in people if person["name"] == f"{word}-board")
    return Estate(
        company,
        {
            "company": company,
            "agent": boss,
            "report": report,
            "mover": mover,
            "hired": hired["agent"]["id"],
            **files,
            "grant": grant,
            "outcome": part["id"],
            "own": own["id"],
            "more": more["id"],
            "approval": approval,
            "comment": comment["id"],
            "message": message["id"],
            "question": question["id"],
            "schedule": schedule["id"],
            "job": job["id"],
            "run": ended_run(site, report),
            "event": operator.must("GET", f"{here}/events?limit=1")[0]["id"],
            "reorganisation": moved["eventId"],
            "change": change,
            "key": key["id"],
            "token": token["id"],
            "user": user,
            "secret": str(secret.get("id", "")) or f"{word}-secret",
            "server": str(server.get("id", "")) or f"{word}-up",
            "repo": str(repo.get("id", "")) or f"{word}-site",
            "binding": binding["id"],
            "folder": folder["id"],
            "lent": lent["id"],
            "sent": sent["id"],
            "confirmation": chat_stage.to_confirm(site.app, company, user, binding["id"]),
            "linked": chat_stage.linked(site.app, company, user, binding["id"]),
            "account": closed_account(site, board, here, f"{word}-closed"),
        },
        {
            "agent name": f"{word}-boss",
            "report name": f"{word}-worker",
            "company name": called,
            "secret name": f"{word}-secret",
            "server name": f"{word}-up",
            "repo name": f"{word}-site",
            "check name": f"{word}-check",
            "user name": f"{word}-board",
        },
        board,
        chief,
        Client(site.url, binding["token"]),
    )


def closed_account(site: Site, board: Client, here: str, name: str) -> str:
    """An account that a provider has closed."""
    about = {
        "name": name,
        "adapterType": "claude",
        "adapterConfig": {"secretRef": "absent"},
        "purpose": "Try it",
        "perpetual": False,
    }
    agent = board.must("POST", f"{here}/agents", about)["id"]

    async def work() -> None:
        gate, run = site.app.gate, site.app.ids.new()
        place = str(site.app.settings.workspaces / run)
        claimed: Any = {"agent": agent, "run": run, "workspace": place, "worker": "w"}
        await gate(as_system(), run_queue.claim, **claimed)
        report = {"fault": "rate", "error": "The limit is reached."}
        await gate(as_system(), runs.end, run=run, status="failed", report=report)

    site.wait(work())
    return str(board.must("GET", f"{here}/accounts")[0]["id"])


def ended_run(site: Site, agent: str, printed: str = "a line") -> str:
    """A run that printed something and is over."""
    from remit.runtime.runs.lifecycle import begin, finish

    async def work() -> str:
        app = site.app
        live = await begin(app.gate, app.ids, app.settings.workspaces, agent)
        piece = {"number": 1, "at": 1, "stream": "stdout", "text": f"{printed}\n"}
        await app.gate(as_system(), run_queue.append_log, run=live.id, pieces=[piece])
        await finish(app.gate, live)
        return live.id

    return site.wait(work())


def absent() -> str:
    """An id that nothing has: as old as those that exist, so that its beginning is theirs too."""
    return Ids().new()


def same(body: bytes | str, *references: str) -> str:
    """An answer without what is its own: the reference that was given, ids, times, tokens."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body
    for word in sorted(
        {*references, *(reference.rpartition(":")[2] for reference in references)}, key=len
    )[::-1]:
        if word:
            text = text.replace(word, "GIVEN")
    return _MOVING.sub("MOVING", UUID.sub("ID", text))


def leaves(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Where in a document texts may stand, as paths; `[]` is an entry of a list."""
    for option in options(schema, root):
        if option.get("type") == "object" or "properties" in option:
            for name, inner in option.get("properties", {}).items():
                for rest in leaves(inner, root):
                    yield (name, *rest)
        elif option.get("type") == "array":
            for rest in leaves(option.get("items", {}), root):
                yield ("[]", *rest)
        elif option.get("type") == "string" and "enum" not in option and "const" not in option:
            yield ()


def options(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
    """The plain schemas that one stands for."""
    if "$ref" in schema:
        target: Any = root
        for step in schema["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        return options(target, root)
    several = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if several:
        return [plain for choice in several for plain in options(choice, root)]
    return [schema]


def planted(document: Any, path: tuple[str, ...], value: Any) -> Any:
    """A copy with a value at a place, which is made if it is not there."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if step == "[]":
        first = document[0] if isinstance(document, list) and document else None
        return [planted(first, rest, value)]
    inner = dict(document) if isinstance(document, dict) else {}
    inner[step] = planted(inner.get(step), rest, value)
    return inner
