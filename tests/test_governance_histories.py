"""Long random histories of approvals, against a model of them in plain Python.

The model knows the transition table, who may decide, time, and what follows from a yes. It says of
every step whether it must succeed; after each step the database must agree with it.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from remit.clock import DAY, SECOND, Micros, to_iso
from remit.errors import RemitError
from remit.services.execution import runs
from remit.services.governance import approvals
from remit.services.hiring import configuration, hiring
from remit.services.identity import Caller, as_system
from remit.services.messaging import mail
from remit.services.organisation import agents, permissions
from remit.services.record import events
from remit.services.rights import grants
from remit.services.work import delegation, outcomes
from remit.store.engine.migrate import is_sqlite, sqlite_path
from remit.testing.clock import VirtualClock
from tests.company import Company, Member
from tests.governance import empower
from tests.organisation import problems, refusal
from tests.selection import histories

#: What each status may become, a third time.
TABLE = {
    "pending": {"revision_requested", "approved", "rejected", "cancelled"},
    "revision_requested": {"pending", "rejected", "cancelled"},
}
VERBS: dict[str, tuple[Any, str]] = {
    "approve": (approvals.approve, "approved"),
    "reject": (approvals.reject, "rejected"),
    "revise": (approvals.request_revision, "revision_requested"),
}
WHO = ("board", "board", "lead", "lead", "ceo", "worker", "peer")
STEPS = ("ask", "ask", "decide", "decide", "decide", "resubmit", "cancel", "time passes", "doors")


@dataclass
class Asked:
    """One approval, as it must be."""

    id: str
    kind: str
    by: str
    status: str = "pending"
    revision: int = 1
    until: Micros | None = None
    #: The agent that awaits a hire.
    agent: str = ""
    #: What a proposal was made on top of, and its title.
    base: int = 0
    title: str = ""

    @property
    def undecided(self) -> bool:
        return self.status in TABLE


class Governance(RuleBasedStateMachine):
    company: ClassVar[Company]
    clock: ClassVar[VirtualClock]
    database: ClassVar[Any]
    examples: ClassVar[int] = 0

    @initialize()
    def begin(self) -> None:
        """A lead that may decide, a worker that may hire, and somebody beside them."""
        cls = type(self)
        cls.examples += 1
        number = cls.examples
        company = cls.company
        self.clock.advance(SECOND)
        self.since = self.clock.now()
        self.lead = company.agent(f"lead-{number}", permissions={"canCreateAgents": True})
        self.worker = company.agent(
            f"worker-{number}", self.lead.name, permissions={"canCreateAgents": True}
        )
        self.peer = company.agent(f"peer-{number}")
        empower(company, self.lead)
        company.call(
            company.board,
            grants.give,
            company=company.id,
            to=self.worker.id,
            resource=f"message:{self.lead.id}",
            level="use",
            mode="ask",
        )
        self.asked: list[Asked] = []
        self.made = 0
        self.config = 1
        self.title = ""
        self.sent = 0

    def sql(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """As somebody with access to the database sees it, by one connection for all looks."""
        if not is_sqlite(self.company.url):
            statement = statement.replace("?", "%s")
        found: list[tuple[Any, ...]] = self.database.execute(statement, parameters).fetchall()
        return found

    def caller(self, who: str) -> Caller:
        if who == "board":
            return self.company.board
        return self.member(who).caller

    def member(self, who: str) -> Member:
        found: Member = self.company.ceo if who == "ceo" else getattr(self, who)
        return found

    def attempt(self, work: Callable[[], Any]) -> str:
        """`done`, or the reason it was not."""
        try:
            work()
        except RemitError as error:
            return error.reason
        return "done"

    # ── one step ────────────────────────────────────────────────────────────────────────────

    @rule(step=st.sampled_from(STEPS), data=st.data())
    def step(self, step: str, data: st.DataObject) -> None:
        """Every step at any time: rules of their own would be left out in most histories."""
        if step == "ask":
            self.ask(data.draw(st.sampled_from(["request", "hire", "propose", "send"])), data)
        elif step == "time passes":
            self.time_passes(data.draw(st.sampled_from([1, 3, 7])), data.draw(st.booleans()))
        elif self.asked:
            self.about(step, data)

    def about(self, step: str, data: st.DataObject) -> None:
        """A step about one of the approvals, more often one that is not decided yet."""
        undecided = [one for one in self.asked if one.undecided]
        rather = data.draw(st.integers(0, 3), label="undecided") > 0
        among = undecided if undecided and rather else self.asked
        one = data.draw(st.sampled_from(among), label="approval")
        who = data.draw(st.sampled_from(WHO), label="who")
        if step == "decide":
            verb = data.draw(st.sampled_from(sorted(VERBS)), label="verb")
            self.decide(one, verb, who, data.draw(st.sampled_from([None, 0, 0, 1])))
        elif step == "resubmit":
            self.resubmit(one, data.draw(st.sampled_from([who, one.by])))
        elif step == "cancel":
            self.cancel(one, who)
        elif one.agent and one.status != "approved":
            self.every_door(one.agent)

    # ── asking ──────────────────────────────────────────────────────────────────────────────

    def ask(self, kind: str, data: st.DataObject) -> None:
        by = data.draw(st.sampled_from(["lead", "worker"]), label="by")
        if kind == "request":
            self.request(by, data.draw(st.sampled_from([None, 1, 3]), label="days"))
        elif kind == "hire":
            self.hire(by)
        elif kind == "propose":
            self.propose()
        else:
            self.send()

    def request(self, by: str, days: int | None) -> None:
        until = None if days is None else self.clock.now() + days * DAY
        made = self.company.call(
            self.caller(by),
            approvals.request,
            company=None,
            kind="request_board_approval",
            payload={"title": "May I?"},
            expires_at=None if until is None else to_iso(until),
        )
        self.asked.append(Asked(made["id"], "request", by, until=until))

    def hire(self, by: str) -> None:
        self.made += 1
        made = self.company.call(
            self.caller(by),
            hiring.hire,
            company=None,
            name=f"hire-{self.examples}-{self.made}",
            adapter_type="scripted",
        )
        asked = Asked(made["approval"]["id"], "hire", by, agent=made["agent"]["id"])
        self.asked.append(asked)

    def propose(self) -> None:
        self.made += 1
        title = f"Title {self.made}"
        made = self.company.call(
            self.lead.caller,
            configuration.propose,
            agent=self.worker.id,
            changes={"title": title},
        )
        self.asked.append(
            Asked(made["approval"]["id"], "config", "lead", base=self.config, title=title)
        )

    def send(self) -> None:
        self.made += 1
        with pytest.raises(RemitError) as waits:
            self.company.call(
                self.worker.caller, mail.send, to=f"agent:{self.lead.id}", body=f"No {self.made}"
            )
        assert waits.value.reason == "pending_approval"
        until = self.clock.now() + 7 * DAY
        asked = Asked(waits.value.details["approval_id"], "call", "worker", until=until)
        self.asked.append(asked)

    # ── deciding ────────────────────────────────────────────────────────────────────────────

    def denied(self, one: Asked, who: str) -> str | None:
        """Why somebody does not decide, if so."""
        if who == "board":
            return None
        if who == "peer" or (who == "worker" and one.by == "lead"):
            return "not_found"
        if who == one.by:
            return "own_request"
        return None if who == "lead" else "board_decides"

    def late(self, one: Asked) -> bool:
        return one.undecided and one.until is not None and self.clock.now() >= one.until

    def decide(self, one: Asked, verb: str, who: str, behind: int | None) -> None:
        body, wanted = VERBS[verb]
        seen = None if behind is None else one.revision - behind
        expected = self.denied(one, who)
        if expected is None:
            stale = seen is not None and seen != one.revision
            impossible = wanted not in TABLE.get(one.status, ())
            outdated = wanted == "approved" and one.kind == "config" and one.base != self.config
            expected = (
                "expired" if self.late(one)
                else "stale_revision" if stale
                else "wrong_status" if impossible
                else "stale_revision" if outdated
                else "done"
            )  # fmt: skip
        done = self.attempt(
            lambda: self.company.call(
                self.caller(who), body, approval=one.id, expected_revision=seen
            )
        )
        assert done == expected, (verb, who, one)
        if done == "done":
            one.status = wanted
            if wanted == "approved":
                self.took_effect(one)

    def took_effect(self, one: Asked) -> None:
        if one.kind == "config":
            self.config += 1
            self.title = one.title
        if one.kind == "call":
            self.sent += 1

    def resubmit(self, one: Asked, who: str) -> None:
        done = self.attempt(
            lambda: self.company.call(self.caller(who), approvals.resubmit, approval=one.id)
        )
        if who not in ("board", one.by):
            hidden = who == "peer" or (who == "worker" and one.by == "lead")
            assert done == ("not_found" if hidden else "not_yours"), (who, one)
        elif self.late(one):
            assert done == "expired"
        elif one.status != "revision_requested":
            assert done == "wrong_status"
        else:
            assert done == "done"
            one.status = "pending"
            one.revision += 1
            one.base = self.config

    def cancel(self, one: Asked, who: str) -> None:
        done = self.attempt(
            lambda: self.company.call(self.caller(who), approvals.cancel, approval=one.id)
        )
        if who == "peer" or (who == "worker" and one.by == "lead"):
            assert done == "not_found"
        elif not one.undecided:
            assert done == "wrong_status"
        else:
            assert done == "done", (who, one)
            one.status = "cancelled"

    def time_passes(self, days: int, noticed: bool) -> None:
        self.clock.advance(days * DAY)
        if noticed:
            while self.company.wait(self.company.app.clockwork.tick()):
                pass
            for one in self.asked:
                if self.late(one):
                    one.status = "cancelled"

    # ── limbo ───────────────────────────────────────────────────────────────────────────────

    def every_door(self, agent: str) -> None:
        """Whoever awaits approval, or was never taken on, is not made to act."""
        board, run = self.company.board, self.company.app.ids.new()
        doors: list[tuple[Any, Caller, dict[str, Any]]] = [
            (agents.wake, board, {"agent": agent}),
            (agents.create_key, board, {"agent": agent}),
            (agents.pause, board, {"agent": agent}),
            (agents.resume, board, {"agent": agent}),
            (runs.start, as_system(), {"agent": agent, "run": run, "workspace": None}),
            (mail.send, board, {"to": f"agent:{agent}", "body": "x", "company": self.company.id}),
            (permissions.change, board, {"agent": agent, "can_create": True}),
            (configuration.change, board, {"agent": agent, "changes": {"title": "x"}}),
            (outcomes.create, board, {"parent": agent, "title": "x"}),
            (delegation.delegate, board, {"outcome": agent, "to": agent}),
        ]
        for verb, caller, given in doors:
            assert refusal(self.company, caller, verb, **given) == "conflict", verb.name

    # ── judging ─────────────────────────────────────────────────────────────────────────────

    @invariant()
    def the_database_agrees(self) -> None:
        if not getattr(self, "asked", None):
            return
        rows = {
            one[0]: one[1:]
            for one in self.sql(
                "SELECT id, status, revision, decided_at, used_at FROM approvals"
                " WHERE created_at >= ?",
                self.since,
            )
        }
        people: dict[str, Any] = dict(
            self.sql("SELECT id, status FROM agents WHERE created_at >= ?", self.since)
        )
        for one in self.asked:
            status, revision, decided, used = rows[one.id]
            assert (status, revision) == (one.status, one.revision)
            assert (decided is None) == one.undecided
            assert (used is not None) == (one.kind == "call" and one.status == "approved")
            if one.agent:
                assert people[one.agent] == {
                    "pending": "pending_approval",
                    "revision_requested": "pending_approval",
                    "approved": "idle",
                }.get(one.status, "terminated")
        self._effects()

    def _effects(self) -> None:
        config, title = self.sql(
            "SELECT config_revision, title FROM agents WHERE id = ?", self.worker.id
        )[0]
        assert (config, title) == (self.config, self.title)
        ((letters,),) = self.sql(
            "SELECT count(*) FROM messages WHERE sender_agent_id = ?", self.worker.id
        )
        assert letters == self.sent
        never = "SELECT id FROM agents WHERE status = 'pending_approval'"
        for table, column in (
            ("tokens", "agent_id"),
            ("runs", "agent_id"),
            ("grants", "holder_id"),
            ("messages", "sender_agent_id"),
            ("deliveries", "agent_id"),
            ("events", "actor_id"),
        ):
            acted = self.sql(f"SELECT 1 FROM {table} WHERE {column} IN ({never})")  # noqa: S608
            assert acted == [], table

    def teardown(self) -> None:
        if hasattr(self, "asked"):
            assert problems(self.company, verify=False) == []


@pytest.fixture
def company(database_url: str) -> Iterator[Company]:
    folder = Path(tempfile.mkdtemp())
    clock = VirtualClock()
    made = Company(database_url, folder / "home", clock, asks_before_hiring=True)
    Governance.company, Governance.clock, Governance.examples = made, clock, 0
    Governance.database = (
        sqlite3.connect(sqlite_path(database_url), isolation_level=None)
        if is_sqlite(database_url)
        else psycopg.connect(database_url, autocommit=True)
    )
    yield made
    Governance.database.close()
    made.close()
    shutil.rmtree(folder)


@pytest.mark.requirement("BX-10", "PC-25", "PC-26", "PC-27", "PC-16", "PC-20")
@pytest.mark.timeout(240)
@histories(10, 40)
def test_every_history_keeps_to_the_table_and_takes_effect_once(
    examples: int, company: Company
) -> None:
    run_state_machine_as_test(
        Governance,
        settings=settings(
            # The rules are the same on both; the other database answers more slowly.
            max_examples=examples if is_sqlite(company.url) else examples // 3,
            stateful_step_count=50,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert company.call(company.board, events.verify, company=company.id)["ok"]
