"""A company whose lists are long: every list of the command line has rows, with texts as people and
programs write them. Times are those of a virtual clock."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from remit.clock import DAY, HOUR, MINUTE, SECOND, to_iso
from remit.ids import CompanyId, UserId
from remit.model.messaging.mail import DeliveryStatus
from remit.model.messaging.notice import Notice
from remit.services.execution import run_queue, runs
from remit.services.identity import Caller, as_system
from remit.services.messaging import inbox
from remit.store.engine.database import Transaction
from remit.testing import VirtualClock
from tests import chat_stage
from tests.browsing import Office
from tests.http_client import serving
from tests.page_stage import Proposals

#: Beginning of the folder with the repository: a path of the same length on every machine.
PLACE = "remit-lists-"

_PURPOSE = "The handbook on safe storage of lithium cells is complete, checked and published"
_LETTER = (
    "The second chapter is finished and has been checked by two people. What is still missing is "
    "a decision about the photographs: the agency offers all twelve for 480 euros, or four of "
    "them for 190. Please say which of the two it is to be."
)
_ERROR = (
    "API Error: 529 {'type': 'overloaded_error', 'message': 'Overloaded'} of "
    "https://gateway.models.example:8604/v1/messages?beta=true after 10 attempts in 182 seconds"
)


class Stage:
    """The office, and a clock that moves on between what happens in it."""

    def __init__(self, office: Office, clock: VirtualClock) -> None:
        self.office = office
        self.clock = clock

    def run(self, agent: dict[str, Any], status: str = "completed", **report: Any) -> str:
        """A run of an agent from claim to end, which reads its mail; or without its end, if it is
        to be `live`."""
        gate, run = self.office.running.app.gate, self.office.running.app.ids.new()
        claim: Any = {"agent": agent["id"], "run": run, "workspace": "/nowhere", "worker": "w"}
        claimed = self.office.do(gate(as_system(), run_queue.claim, **claim))
        self.office.do(gate(Caller(claimed["token"]), inbox.take, limit=10))
        self.clock.advance(4 * MINUTE + 7 * SECOND)
        if status != "live":
            ended: Any = {"run": run, "status": status, "report": report}
            self.office.do(gate(as_system(), runs.end, **ended))
        return run


@contextlib.contextmanager
def staged(home: Path) -> Iterator[Stage]:
    """An instance in a thread, with the company in it, as long as the block lasts."""
    clock = VirtualClock()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STORAGE_PROVIDER_TOKEN", "not-a-real-token")
        with serving(home, clock=clock) as running:
            company = running.board.must("GET", "/api/companies")[0]["id"]
            (root,) = running.board.must("GET", f"/api/companies/{company}/agents")
            stage = Stage(Office(running, company, root), clock)
            with tempfile.TemporaryDirectory(prefix=PLACE, dir="/tmp") as place:
                _fill(stage, Path(place))
                yield stage


def _fill(stage: Stage, place: Path) -> None:
    office, clock = stage.office, stage.clock
    board, path = office.board, office.path
    board.must("PATCH", path("").rstrip("/"), {"name": "Meadow & Harbour Publishing"})
    agents = _agents(office)
    clock.advance(5 * DAY)
    _connections(office, agents)
    _work(office, agents)
    _proposal(office, place)
    clock.advance(20 * HOUR)
    _mail(stage, agents)
    clock.advance(2 * HOUR)
    _requests(office, agents)
    clock.advance(40 * MINUTE)
    _notices(stage)
    _runs(stage, agents)
    clock.advance(12 * MINUTE)


def _agents(office: Office) -> dict[str, dict[str, Any]]:
    board = office.board
    editor = office.agent(
        "regional-editor-in-chief", title="Editor for all handbooks on safety at work"
    )
    writer = office.agent(
        "writer", editor["id"], purpose=_PURPOSE, perpetual=False, adapterType="scripted"
    )
    checker = office.agent(
        "senior-fact-checker-for-chemistry", editor["id"], title="Checks what is claimed"
    )
    for agent, cents, tokens in ((writer, 5000, 20_000_000), (checker, 123_456, None)):
        body = {"budgetMonthlyCents": cents, "budgetMonthlyTokens": tokens}
        board.must("PATCH", f"/api/agents/{agent['id']}", body)
    board.must("POST", f"/api/agents/{checker['id']}/pause", {})
    return {"ceo": office.root, "editor": editor, "writer": writer, "checker": checker}


def _connections(office: Office, agents: dict[str, dict[str, Any]]) -> None:
    board, path = office.board, office.path
    board.must("POST", path("users"), {"name": "anneliese-brandt-hofmann", "role": "board"})
    over = {"name": "bo", "role": "observer", "scope": agents["editor"]["id"]}
    board.must("POST", path("users"), over)
    for name, source, place in (
        ("storage-provider-token", "env", "STORAGE_PROVIDER_TOKEN"),
        ("forge", "file", "/var/lib/remit/keys/of-the-forge-in-the-basement/deploy.key"),
        ("picture-agency", "command", ["op", "read", "op://Publishing/Picture agency/credential"]),
    ):
        board.must("POST", path("secrets"), {"name": name, "source": source, "place": place})
    server = {"name": "picture-archive", "url": "https://archive.pictures.example/mcp/v1"}
    board.must("POST", path("mcp-servers"), server)
    agent = agents["editor"]["id"]
    board.must("POST", path("bindings"), {"agent": agent, "adapterType": "webhook"})
    for body in (
        {"agent": agent, "subject": "Weekly report", "body": "Write it.", "cron": "0 9 * * 1-5"},
        {"agent": agents["writer"]["id"], "body": f"Look again: {_LETTER}", "cron": "30 7 1 * *"},
    ):
        board.must("POST", path("schedules"), body)


def _work(office: Office, agents: dict[str, dict[str, Any]]) -> None:
    board, path, writer = office.board, office.path, agents["writer"]
    mine = office.as_agent(writer)
    for title, more in (
        ("The chapter on transport says what a sender has to declare, by road and by sea", {}),
        ("Photographs are chosen, paid for and credited", {"urgent": True, "important": True}),
        ("Proofs are read", {"deferredUntil": to_iso(office.running.app.clock.now() + 30 * DAY)}),
    ):
        body = {"title": title, "parentId": writer["id"], **more}
        made = mine.must("POST", path("outcomes"), body)
    mine.must("POST", path("outcomes"), {"title": "Of the index", "parentId": made["id"]})
    for description in (
        "Draft of chapter 2: charging, storing and transporting cells of up to 100 watt hours",
        "Photographs",
    ):
        file = mine.must("POST", path("files"), {"description": description, "content": "# Draft"})
        body = {"to": agents["checker"]["id"], "resource": f"kb_file:{file['id']}", "level": "read"}
        board.must("POST", path("grants"), body)
    tag = f'"{file["version"]}:{file["hash"]}"'
    address = f"/api/files/{file['id']}/content"
    mine.must("PUT", address, body=b"# Draft\n\nMore.", headers={"If-Match": tag})


def _mail(stage: Stage, agents: dict[str, dict[str, Any]]) -> None:
    office = stage.office
    board, path, clock = office.board, office.path, stage.clock
    writer = office.as_agent(agents["writer"])
    letter = {"subject": "Chapter 2 is finished, but for the photographs", "body": _LETTER}
    file = board.must("GET", path("files"))[0]["id"]
    writer.must("POST", path("messages"), {"to": "board", "attachments": [file], **letter})
    clock.advance(3 * HOUR)
    for to, subject, body in (
        ("agent:ceo", "A handbook", "Publish a handbook on how cells are stored."),
        ("agent:writer", "", "Which photographs do we need? " + _LETTER),
    ):
        board.must("POST", path("messages"), {"to": to, "subject": subject, "body": body})
    stage.run(agents["ceo"], final_response="Done! The handbook is written and published.")


def _notices(stage: Stage) -> None:
    """What the board was told outside, and what it has to confirm."""
    office, app = stage.office, stage.office.running.app
    me, now = office.board.must("GET", "/api/me")["id"], stage.clock.now()
    (binding,) = office.board.must("GET", office.path("bindings"))
    chat_stage.to_confirm(app, office.company, me, binding["id"])
    chat_stage.linked(app, office.company, me, binding["id"])
    why = "https://hooks.office.example/remit/notices answered 503 Service Unavailable five times"
    for kind, way, status, ended in (
        ("approval", "webhook", DeliveryStatus.DEAD, why),
        ("question", "telegram", DeliveryStatus.DONE, None),
    ):
        notice = Notice(
            id=app.ids.new(),
            company_id=CompanyId(office.company),
            user_id=UserId(me),
            way=way,
            kind=kind,
            subject_id=office.company,
            status=status,
            ended_at=now,
            ended_why=ended,
            next_at=now,
            created_at=now,
        )
        app.database.submit_write(partial(_add, notice)).result()


def _add(notice: Notice, tx: Transaction) -> None:
    tx.add(notice)


def _requests(office: Office, agents: dict[str, dict[str, Any]]) -> None:
    path = office.path
    asked = {
        "question": "Do we buy all twelve photographs for 480 euros, or only the four of the "
        "storage cabinets for 190?",
        "options": ["all twelve", "only the four", "none, we have drawings made"],
    }
    office.as_agent(agents["writer"]).must("POST", path("questions"), asked)
    title = "Draws diagrams of storage cabinets and their ventilation for handbooks"
    below = {"reportsTo": agents["editor"]["id"], "title": title}
    office.hire("illustrator-for-technical-drawings", agents["ceo"], **below)
    rejected = office.hire("translator", agents["ceo"])["approval"]["id"]
    office.board.must("POST", f"/api/approvals/{rejected}/reject", {"decisionNote": "Not yet."})


def _runs(stage: Stage, agents: dict[str, dict[str, Any]]) -> None:
    office = stage.office
    config = {"secretRef": "storage-provider-token"}
    layouter = office.agent("layouter", adapterType="claude", adapterConfig=config)
    for agent in (layouter, agents["editor"]):
        body = {"to": f"agent:{agent['id']}", "subject": "Layout", "body": "Lay out chapter 2."}
        office.board.must("POST", office.path("messages"), body)
    told = {"error": _ERROR, "fault": "rate", "fault_until": stage.clock.now() + 5 * HOUR}
    stage.run(layouter, "failed", **told)
    stage.run(
        agents["writer"],
        *("failed",),
        error="The program ended with exit code 137 after it had used 2,048 MiB of memory",
        tokens_in=1_843_112,
        tokens_out=20_114,
        cost_micros=4_318_000,
    )
    stage.run(agents["editor"], "live")


def _proposal(office: Office, place: Path) -> None:
    """A repository, with a change that an agent proposes to it."""
    site = Proposals(office, place / "handbook-site")
    title = "Correct the limits for storage at more than 60 % charge, as the standard says"
    site.propose({"limits.txt": "60 %\n"}, title=title)
