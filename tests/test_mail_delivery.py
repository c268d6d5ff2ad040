"""Delivery under anything that can happen, against a model that is too simple to be wrong.

A state machine sends, defers, takes up, acknowledges, ends runs well and badly, restarts, moves
the clock back and forth and delivers what is due. Whatever the order: nothing that was sent is
lost, nothing acknowledged comes again, each sender's mail comes in its order unless it fails
alone, a letter dies of its own faults only, and the agent has something to do exactly while there
is mail.
"""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from remit.clock import HOUR, MINUTE, Micros, to_iso
from remit.model.messaging.mail import MOST_ATTEMPTS, MOST_FAULTS_TOGETHER, MOST_PER_TURN
from remit.services.messaging import pending_items
from remit.testing.clock import VirtualClock
from tests.company import Company, Run
from tests.mailing import ack, end, send, take, tick, to_do
from tests.organisation import problems

SENDERS = ("board", "a", "b", "ceo")


@dataclass
class Sent:
    """What the model knows of a message."""

    id: str
    body: str
    sender: str
    once: bool
    due: Micros
    #: Its place in line; None until it has arrived.
    place: int | None = None
    attempt: int = 1
    taken: bool = False
    end: str = ""
    begun: bool = False
    faults: int = 0
    #: The number of the run that last failed with nothing but this.
    alone: int | None = None

    @property
    def suspect(self) -> bool:
        return self.faults >= MOST_FAULTS_TOGETHER


@dataclass
class Model:
    messages: list[Sent] = field(default_factory=list)
    places: int = 0
    #: How many runs there were, and which of them ended well.
    runs: int = 0
    good: list[int] = field(default_factory=list)

    def handed(self, limit: int) -> list[Sent]:
        """What a run gets: everything, or one that may be bad."""
        found: list[Sent] = []
        window = self.waiting()[: min(limit, MOST_PER_TURN)]
        for one in sorted(window, key=lambda one: not one.taken):
            alone = any(other.suspect for other in found) or (one.suspect and bool(found))
            if not one.taken and alone:
                break
            found.append(one)
        return sorted(found, key=lambda one: one.place or 0)

    def arrive(self, message: Sent) -> None:
        self.places += 1
        message.place = self.places

    def waiting(self) -> list[Sent]:
        found = [one for one in self.messages if one.place is not None and not one.end]
        return sorted(found, key=lambda one: one.place or 0)


class Delivery(RuleBasedStateMachine):
    url_factory: Any = None

    @initialize()
    def begin(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.url = (
            type(self).url_factory()
            if type(self).url_factory
            else f"sqlite:///{self.folder}/remit.db"
        )
        self.clock = VirtualClock()
        self.company = Company(self.url, self.folder / "home", self.clock)
        members = {"ceo": self.company.ceo}
        members |= {name: self.company.agent(name) for name in ("a", "b")}
        self.callers = {name: member.caller for name, member in members.items()}
        self.callers["board"] = self.company.board
        self.run: Run | None = None
        self.model = Model()

    # ── what can happen ─────────────────────────────────────────────────────────────────────

    @rule(
        sender=st.sampled_from(SENDERS),
        later=st.sampled_from([0, 0, -HOUR, MINUTE, HOUR]),
        once=st.booleans(),
    )
    def send(self, sender: str, later: Micros, once: bool) -> None:
        body = f"{sender} {len(self.model.messages):03}"
        due = self.clock.now() + later
        sent = send(
            self.company,
            self.callers[sender],
            "agent:ceo",
            body,
            at_most_once=once,
            deliver_at=to_iso(due) if later else None,
        )
        message = Sent(sent["id"], body, sender, once, due)
        if later <= 0:
            self._arrive_what_is_due()
            self.model.arrive(message)
        self.model.messages.append(message)

    @precondition(lambda self: self.run is None)
    @rule()
    def start(self) -> None:
        self.run = self.company.run(self.company.ceo)
        self.model.runs += 1

    @precondition(lambda self: self.run is not None)
    @rule(limit=st.sampled_from([1, 3, 10, 100]))
    def take_up(self, limit: int) -> None:
        assert self.run is not None
        expected = self.model.handed(limit)
        got = take(self.company, self.run, limit)
        assert [(one["body"], one["attempt"]) for one in got] == [
            (one.body, one.attempt) for one in expected
        ]
        assert [one["may_have_been_handled"] for one in got] == [
            one.begun or one.attempt > 1 for one in expected
        ]
        for one in expected:
            one.taken = True

    @precondition(lambda self: self.model.waiting())
    @rule(data=st.data())
    def acknowledge(self, data: st.DataObject) -> None:
        some = data.draw(st.lists(st.sampled_from(self.model.waiting()), min_size=1, max_size=3))
        caller = self.run.caller if self.run else self.company.ceo.caller
        ack(self.company, caller, *({"id": one.id} for one in some))
        for one in some:
            one.end = "done"

    @precondition(lambda self: self.run is not None)
    @rule(how=st.sampled_from(["completed", "cancelled", "failed", "lost", "overload", "message"]))
    def stop(self, how: str) -> None:
        assert self.run is not None
        if how in ("overload", "message"):
            end(self.company, self.run, "failed", fault=how)
        else:
            end(self.company, self.run, how)
        if how == "completed":
            self.model.good.append(self.model.runs)
        self._ended(how)

    @precondition(lambda self: self.run is None and self.model.waiting())
    @rule(
        limit=st.sampled_from([1, 3, 10]),
        dealt_with=st.integers(0, 2),
        how=st.sampled_from(["failed", "failed", "lost", "completed", "message"]),
    )
    def one_run(self, limit: int, dealt_with: int, how: str) -> None:
        """What runs do most of the time."""
        self.start()
        self.take_up(limit)
        taken = [one for one in self.model.waiting() if one.taken][:dealt_with]
        if taken and self.run is not None:
            ack(self.company, self.run.caller, *({"id": one.id} for one in taken))
            for one in taken:
                one.end = "done"
        self.stop(how)

    @precondition(lambda self: len(self.model.messages) % 5 == 4)
    @rule()
    def restart(self) -> None:
        """The process goes without a word, and comes back."""
        self.company.close()
        self.company = Company(self.url, self.folder / "home", self.clock)
        if self.run is not None:
            self._ended("lost")

    def _ended(self, how: str) -> None:
        self.run = None
        taken = [one for one in self.model.waiting() if one.taken]
        for one in taken:
            one.taken = False
            if how in ("completed", "cancelled") or one.once:
                one.end = "done"
            else:
                self._return(one, how, alone=len(taken) == 1)

    def _return(self, one: Sent, how: str, *, alone: bool) -> None:
        if how == "message" and not alone:
            one.faults = MOST_FAULTS_TOGETHER
        elif how == "message" and one.attempt == MOST_ATTEMPTS:
            one.end = "dead"
            return
        elif how == "message":
            one.attempt += 1
        elif how != "overload" and alone and one.suspect:
            before = one.alone
            if before is not None and any(run > before for run in self.model.good):
                one.end = "dead"
                return
            one.alone = self.model.runs
            one.faults += 1
            self.model.arrive(one)  # those behind it come first
        elif how != "overload":
            one.faults += 1
        one.begun = True

    @rule(jump=st.sampled_from([-HOUR, -MINUTE, MINUTE, HOUR, 2 * HOUR]), then_send=st.booleans())
    def move_the_clock(self, jump: Micros, then_send: bool) -> None:
        self.clock.advance(jump)
        if then_send:
            self.send("a", 0, False)

    @rule()
    def deliver_what_is_due(self) -> None:
        tick(self.company)
        self._arrive_what_is_due()

    def _arrive_what_is_due(self) -> None:
        now = self.clock.now()
        due = [one for one in self.model.messages if one.place is None and one.due <= now]
        for one in sorted(due, key=lambda one: one.due):
            self.model.arrive(one)

    @precondition(lambda self: any(one.end == "dead" for one in self.model.messages))
    @rule()
    def revive(self) -> None:
        dead = next(one for one in self.model.messages if one.end == "dead")
        self.company.call(self.company.board, pending_items.revive, message=dead.id)
        dead.end, dead.attempt, dead.faults, dead.alone = "", 1, 0, None
        self.model.arrive(dead)

    # ── what must hold ──────────────────────────────────────────────────────────────────────

    @invariant()
    def every_message_is_where_it_belongs(self) -> None:
        if not hasattr(self, "model"):
            return
        kept = {
            message: (status, attempt)
            for message, status, attempt in self.company.sql(
                # Not what Remit tells people about a run that failed.
                "SELECT message_id, status, attempt FROM deliveries WHERE agent_id IS NOT NULL"
            )
        }
        expected = {}
        for one in self.model.messages:
            where = one.end or ("leased" if one.taken else "queued")
            expected[one.id] = ("deferred" if one.place is None else where, one.attempt)
        assert kept == expected

    @invariant()
    def there_is_something_to_do_while_there_is_mail(self) -> None:
        if not hasattr(self, "model"):
            return
        titles = to_do(self.company, self.company.ceo)
        assert ("Process inbox" in titles) == bool(self.model.waiting())

    def teardown(self) -> None:
        if not hasattr(self, "model"):
            return
        try:
            self._drain()
            assert problems(self.company) == []
        finally:
            self.company.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    def _drain(self) -> None:
        """In the end everything comes, in order, and then there is nothing."""
        if self.run is not None:
            self.stop("failed")
        self.clock.advance(4 * HOUR)
        for _ in range(3):
            self.clock.advance(HOUR)
            self.deliver_what_is_due()
        expected = [one.body for one in self.model.waiting()]
        run = self.company.run(self.company.ceo)
        got: list[str] = []
        while found := take(self.company, run):
            got += [one["body"] for one in found]
            ack(self.company, run.caller, *found)
        end(self.company, run)
        assert got == expected
        assert all(one.place is not None for one in self.model.messages)


TUNED = settings(
    deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True
)


@pytest.mark.requirement("HB-33", "HB-34", "AG-62", "AG-64")
@pytest.mark.slow
def test_nothing_is_lost_repeated_or_out_of_order_whatever_happens() -> None:
    run_state_machine_as_test(
        Delivery, settings=settings(TUNED, max_examples=10, stateful_step_count=30)
    )


@pytest.mark.requirement("HB-33", "HB-34", "AG-62", "AG-64")
@pytest.mark.slow
def test_the_same_on_a_server(postgres_cluster: Any) -> None:
    class OnServer(Delivery):
        url_factory = staticmethod(postgres_cluster.migrated_database)

    run_state_machine_as_test(
        OnServer, settings=settings(TUNED, max_examples=3, stateful_step_count=30)
    )
