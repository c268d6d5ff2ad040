"""Long random histories of an organisation, against a model of it in plain Python.

The model knows agents, outcomes and the rules of D-05 to D-10. It says of every step whether it
must succeed and what the company looks like afterwards. After each step the database must agree
with it, and from time to time every agent is asked what it may do to every outcome.
"""

import copy
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from remit.authority import Action
from remit.clock import SECOND
from remit.errors import RemitError
from remit.model.organisation.grant import Resource, ResourceKind
from remit.services import lookup, subjects
from remit.services.command import Context, Kind, Verb
from remit.services.identity import Caller
from remit.services.organisation import agents, reorganise
from remit.services.work import delegation, outcomes
from remit.testing.clock import VirtualClock
from tests.company import Company
from tests.organisation import member, problems
from tests.selection import histories

MOST_AGENTS = 12
MOST_OUTCOMES = 28
ACTIONS = ("read", "create", "change", "finish", "delegate", "reclaim")


@dataclass
class Work:
    owner: str
    delegated: bool = False
    delegator: str | None = None
    status: str = "open"
    perpetual: bool = False
    parents: set[str] = field(default_factory=set)
    blockers: set[str] = field(default_factory=set)


class Impossible(Exception):
    """The model says that this cannot be done."""


@dataclass
class Model:
    """An organisation, by the decisions."""

    boss: dict[str, str | None] = field(default_factory=dict)
    alive: set[str] = field(default_factory=set)
    work: dict[str, Work] = field(default_factory=dict)
    #: Who ended, and what was closed, when an outcome was accepted last.
    accepted: dict[str, tuple[list[str], set[str]]] = field(default_factory=dict)

    # ── looking ─────────────────────────────────────────────────────────────────────────────

    def above(self, agent: str) -> list[str]:
        found = []
        upper = self.boss[agent]
        while upper is not None:
            found.append(upper)
            upper = self.boss[upper]
        return found

    def below(self, agent: str) -> set[str]:
        return {other for other in self.boss if other == agent or agent in self.above(other)}

    def children(self, outcome: str) -> set[str]:
        return {one for one, work in self.work.items() if outcome in work.parents}

    def closure(self, start: Iterable[str], step: Callable[[str], Iterable[str]]) -> set[str]:
        found: set[str] = set()
        pending = list(start)
        while pending:
            one = pending.pop()
            if one not in found:
                found.add(one)
                pending += step(one)
        return found

    def depends_on(self, outcome: str) -> set[str]:
        return self.closure([outcome], lambda one: self.children(one) | self.work[one].blockers)

    def open(self, outcome: str) -> bool:
        return self.work[outcome].status == "open"

    def rights(self, agent: str, outcome: str) -> set[str]:
        """D-05 and D-09, in words: own, delegated, below me, a reason for me."""
        work = self.work[outcome]
        if agent not in self.alive:
            return set()
        if work.owner == agent:
            if work.delegated:
                return {"read", "create"}
            return {"read", "create", "change", "finish", "delegate"}
        if work.delegated and work.delegator == agent:
            return {"read", "change", "finish", "reclaim"}
        mine = [one for one, w in self.work.items() if w.owner == agent and w.delegated]
        reasons = self.closure(mine, lambda one: self.work[one].parents)
        return {"read"} if agent in self.above(work.owner) or outcome in reasons else set()

    def may(self, who: str | None, action: str, outcome: str) -> None:
        """None is the board, which may."""
        if who is not None and action not in self.rights(who, outcome):
            raise Impossible

    def need(self, condition: bool) -> None:
        if not condition:
            raise Impossible

    # ── working ─────────────────────────────────────────────────────────────────────────────

    def create(self, who: str | None, new: str, parents: list[str]) -> None:
        for parent in parents:
            self.may(who, "create", parent)
            self.need(self.open(parent))
        self.work[new] = Work(who or self.work[parents[0]].owner, parents=set(parents))

    def relate(self, who: str | None, outcome: str, parents: set[str] | None,
               blockers: set[str] | None) -> None:  # fmt: skip
        self.may(who, "change", outcome)
        self.need(self.open(outcome))
        work = self.work[outcome]
        if parents is not None:
            self.need(bool(parents) or work.delegated)
            work.parents &= parents
            for parent in parents - work.parents:
                self.may(who, "create", parent)
                self.need(self.open(parent) and parent not in self.depends_on(outcome))
            work.parents |= parents
        if blockers is not None:
            work.blockers &= blockers
            for blocker in blockers - work.blockers:
                self.may(who, "read", blocker)
                self.need(outcome not in self.depends_on(blocker))
            work.blockers |= blockers

    def waits(self, outcome: str) -> int:
        return sum(map(self.open, self.children(outcome))) + sum(
            map(self.open, self.work[outcome].blockers)
        )

    def handed_on(self, root: str) -> set[str]:
        """What belongs to an outcome: of its owner, and of whoever works for that on it."""
        inside, found = {self.work[root].owner}, {root}
        descendants = self.closure([root], self.children) - {root}
        while True:
            more = {
                one
                for one in descendants - found
                if (self.work[one].delegator if self.work[one].delegated else self.work[one].owner)
                in inside
            }
            if not more:
                return found
            found |= more
            inside |= {self.work[one].owner for one in more if self.work[one].delegated}

    def living_boss(self, agent: str) -> str | None:
        return next((boss for boss in self.above(agent) if boss in self.alive), None)

    def shut_down(self, mandates: Iterable[str]) -> list[str]:
        gone = [
            agent
            for mandate in mandates
            if mandate in self.boss
            for agent in self.below(mandate)
            if agent in self.alive
        ]
        self.alive -= set(gone)
        return gone

    def finish(self, who: str | None, outcome: str, status: str) -> None:
        self.may(who, "finish", outcome)
        work = self.work[outcome]
        self.need(work.status == "open")
        if status == "completed":
            self.need(not work.perpetual)
            self.need(work.delegated or not self.waits(outcome))
        self.end(outcome, status)

    def end(self, outcome: str, status: str) -> None:
        ours = self.handed_on(outcome)
        going_on = [
            one
            for one in ours - {outcome}
            if any(self.open(parent) for parent in self.work[one].parents - ours)
        ]
        kept = self.closure(going_on, lambda one: self.children(one) & ours)
        ending = {one for one in ours - kept if self.open(one)} | {outcome}
        gone = self.shut_down(one for one in ending if self.work[one].delegated)
        for one in ending:
            self.work[one].status = "closed"
        self.work[outcome].status = status
        if status == "completed":
            self.accepted[outcome] = (gone, ending - {outcome})
        for agent in gone:
            heir = self.living_boss(agent)
            for work in self.work.values():
                if work.owner == agent and work.status == "open":
                    if heir is None:
                        work.status = "closed"
                    else:
                        work.owner, work.delegated, work.delegator = heir, False, None
        self.need_root()

    def need_root(self) -> None:
        """A company is never left without an agent at its top."""
        self.need(any(self.boss[agent] is None for agent in self.alive))

    def reopen(self, who: str | None, outcome: str) -> None:
        self.may(who, "finish", outcome)
        work = self.work[outcome]
        self.need(work.status != "open")
        self.need(not work.parents or any(map(self.open, work.parents)))
        ended, closed = self.accepted[outcome] if work.status == "completed" else ([], set())
        back = []
        for agent in sorted(ended, key=lambda one: len(self.above(one))):
            boss = self.boss[agent]
            if agent not in self.alive and (boss is None or boss in self.alive):
                self.alive.add(agent)
                back.append(agent)
        self.open_again(outcome)
        for part in closed if back else ():
            if self.work[part].status == "closed":
                self.open_again(part)
        for agent in back:
            mandate = self.work[agent]
            mandate.status = "open"
            if mandate.owner != agent:
                mandate.owner, mandate.delegated = agent, True
                mandate.delegator = self.boss[agent]

    def open_again(self, outcome: str) -> None:
        """With its owner, or whoever works above where that was."""
        work = self.work[outcome]
        if work.owner not in self.alive:
            heir = self.living_boss(work.owner)
            self.need(heir is not None)
            assert heir is not None
            work.owner, work.delegated, work.delegator = heir, False, None
        work.status = "open"

    # ── handing over ────────────────────────────────────────────────────────────────────────

    def delegate(self, who: str | None, outcome: str, to: str | None, new: str) -> None:
        """To a report, or to a new agent; `new` is what the answer calls the mandate."""
        self.may(who, "delegate", outcome)
        work = self.work[outcome]
        self.need(work.status == "open" and not work.delegated and not work.perpetual)
        boss = work.owner
        if to is not None:
            self.need(to in self.alive and self.boss[to] == boss)
        elif outcome in self.boss:
            # An earlier agent has the id, so there is a new mandate in between.
            between = Work(boss, parents={outcome})
            for child in self.children(outcome):
                if self.open(child) and self.work[child].owner == boss:
                    self.work[child].parents ^= {outcome, new}
            self.work[new] = between
            outcome, work = new, between
        receiver = to or outcome
        if to is None:
            self.boss[receiver] = boss
            self.alive.add(receiver)

        def own(one: str) -> set[str]:
            return {
                child
                for child in self.children(one)
                if self.work[child].owner == boss
                and not self.work[child].delegated
                and child != outcome
            }

        shared = self.closure(
            [
                one
                for one, w in self.work.items()
                if w.owner == boss
                and not w.delegated
                and one != outcome
                and any(self.work[parent].owner != boss for parent in w.parents)
            ],
            own,
        )
        for one in self.closure([outcome], own) - shared - {outcome}:
            self.work[one].owner = receiver
        work.owner, work.delegated, work.delegator = receiver, True, boss

    def reclaim(self, who: str | None, outcome: str) -> None:
        self.may(who, "reclaim", outcome)
        work = self.work[outcome]
        self.need(work.delegated and work.status == "open" and work.delegator is not None)
        boss = work.delegator
        assert boss is not None
        parts = self.handed_on(outcome)
        handed_over = [one for one in parts if self.work[one].delegated]
        gone = self.shut_down(handed_over)
        inside = {self.work[one].owner for one in parts}
        descendants = self.closure([outcome], self.children)
        for one, w in self.work.items():
            within = one in descendants and w.owner in inside and not w.delegated
            if w.owner in gone or within or one in handed_over:
                w.owner, w.delegated, w.delegator = boss, False, None

    # ── reorganising ────────────────────────────────────────────────────────────────────────

    def terminate(self, who: str | None, agent: str) -> None:
        self.need(who is None or who in self.above(agent))
        self.need(agent in self.alive)
        self.need(not any(self.boss[other] == agent for other in self.alive))
        self.end(agent, "closed")

    def move(self, agent: str, to: str | None) -> None:
        self.need(agent in self.alive and (to is None or to in self.alive))
        self.need(to is None or to not in self.below(agent))
        was = self.boss[agent]
        self.boss[agent] = to
        if was is not None:
            self.work[agent].parents.discard(was)
        for work in self.work.values():
            if work.owner == agent and work.delegated and work.delegator == was:
                work.delegator = to
        if to is not None and to not in self.work[agent].parents:
            self.need(to not in self.depends_on(agent))
            self.work[agent].parents.add(to)

    def insert(self, agent: str, layer: str) -> None:
        self.need(agent in self.alive)
        boss = self.boss[agent]
        self.boss[layer] = boss
        self.alive.add(layer)
        parents = set() if boss is None else {boss}
        self.work[layer] = Work(layer, True, boss, perpetual=True, parents=parents)
        self.move(agent, layer)

    def remove(self, layer: str) -> None:
        self.need(layer in self.alive)
        boss = self.boss[layer]
        mine = [
            work
            for one, work in self.work.items()
            if work.owner == layer and one != layer and work.status == "open"
        ]
        self.need(boss is not None or not mine)
        above = self.work[layer].parents or ({boss} if boss is not None else set())
        for child in self.children(layer):
            if self.open(child):
                self.work[child].parents |= above
                self.work[child].parents.discard(layer)
        for report in [one for one in self.boss if self.boss[one] == layer and one in self.alive]:
            self.move(report, boss)
        for work in mine:
            assert boss is not None
            work.owner, work.delegated, work.delegator = boss, False, None
        self.work[layer].status = "closed"
        self.alive.discard(layer)
        self.need_root()


def probe(ctx: Context, *, company: str, every: list[str]) -> dict[str, list[str]]:
    """What the caller may do to each outcome, by the decision function, without doing it."""
    ctx.enter(company)
    found = {}
    for one in every:
        outcome = lookup.find(ctx, subjects.OUTCOME, one)
        facts: dict[str, Any] = {
            "home": outcome.owner_id,
            "relation": subjects.relation(ctx, outcome),
            "delegated": outcome.delegated,
            "listed": False,
        }
        resource = Resource(ResourceKind.OUTCOME, outcome.id)
        found[one] = [
            action
            for action in ACTIONS
            if ctx.decide(Action(f"outcome.{action}"), resource, **facts).allowed
        ]
    return found


PROBE = Verb("probe", Kind.QUERY, probe)

numbers = st.integers(min_value=0, max_value=1_000)
#: Mostly those who may, so that histories go somewhere.
callers = st.sampled_from(["owner"] * 4 + ["judge"] * 2 + ["anybody", "board"])


class Watched(Company):
    """Looked at so often that opening the database each time would take most of the time."""

    def __init__(self, home: Path, clock: VirtualClock) -> None:
        super().__init__(f"sqlite:///{home}/remit.db", home, clock)
        self._eye = sqlite3.connect(home / "remit.db", isolation_level=None)

    def sql(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        return self._eye.execute(statement, parameters).fetchall()

    def close(self) -> None:
        self._eye.close()
        super().close()


class Organisations(RuleBasedStateMachine):
    template: ClassVar[Path]
    operations: ClassVar[int] = 0
    succeeded: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        home = Path(self.folder.name) / "home"
        shutil.copytree(self.template, home)
        # Later than the template, so that ids come in the same order each time.
        clock = VirtualClock(VirtualClock().now() + SECOND)
        self.company = Watched(home, clock)
        ceo = self.company.ceo
        self.callers = {ceo.id: ceo.caller}
        self.model = Model({ceo.id: None}, {ceo.id}, {ceo.id: Work(ceo.id, True, perpetual=True)})
        self.named = 0

    def teardown(self) -> None:
        try:
            self.ask_everybody()
            assert problems(self.company) == []
        finally:
            self.company.close()
            self.folder.cleanup()

    # ── choosing ────────────────────────────────────────────────────────────────────────────

    def outcome(self, number: int) -> str:
        """Mostly one that is open."""
        every = sorted(self.model.work)
        found = [one for one in every if number % 5 == 0 or self.model.open(one)] or every
        return found[number % len(found)]

    def near(self, outcome: str, number: int) -> str:
        """Mostly one of the same owner."""
        owner = self.model.work[outcome].owner
        found = sorted(
            one
            for one, work in self.model.work.items()
            if number % 4 == 0 or (work.owner == owner and work.status == "open")
        )
        return found[number % len(found)] if found else outcome

    def agent(self, number: int) -> str:
        """Mostly one that works here."""
        every = sorted(self.model.boss)
        found = [one for one in every if number % 5 == 0 or one in self.model.alive] or every
        return found[number % len(found)]

    def is_at_the_top(self, outcome: str) -> bool:
        """Without the first agent there is little left to test."""
        return outcome in self.model.boss and self.company.ceo.id in self.model.below(outcome)

    def who(self, kind: str, outcome: str, number: int) -> str | None:
        work = self.model.work[outcome]
        chosen = {"owner": work.owner, "judge": work.delegator, "anybody": self.agent(number)}
        found = chosen.get(kind)
        return found if found in self.model.alive else None

    def caller(self, who: str | None) -> Caller:
        return self.company.board if who is None else self.callers[who]

    def name(self) -> str:
        self.named += 1
        return f"agent-{self.named}"

    def step(
        self,
        expected: Callable[[Model, Any], None],
        who: str | None,
        verb: Any,
        **arguments: Any,
    ) -> Any:
        """Do it in the company and in the model; both succeed, or neither does."""
        type(self).operations += 1
        answer = None
        try:
            answer = self.company.call(self.caller(who), verb, **arguments)
        except RemitError as error:
            refused: RemitError | None = error
        else:
            refused = None
        after = copy.deepcopy(self.model)
        try:
            expected(after, answer)
        except Impossible:
            assert refused is not None, f"{verb.name} {arguments} by {who} had to be refused"
            return None
        assert refused is None, f"{verb.name} {arguments} by {who}: {refused}"
        type(self).succeeded += 1
        self.model = after
        return answer

    # ── what can happen ─────────────────────────────────────────────────────────────────────

    @rule(kind=callers, parent=numbers, also=st.lists(numbers, max_size=2), number=numbers)
    def create(self, kind: str, parent: int, also: list[int], number: int) -> None:
        if len(self.model.work) >= MOST_OUTCOMES:
            return
        first = self.outcome(parent)
        above = list(dict.fromkeys([first, *(self.near(first, n) for n in also)]))
        who = self.who(kind, above[0], number)
        self.step(
            lambda model, made: model.create(who, made["id"] if made else "", above),
            who,
            outcomes.create,
            parent=above[0],
            parents=above[1:],
            title="Work",
        )

    @rule(
        kind=callers,
        one=numbers,
        parents=st.one_of(st.none(), st.lists(numbers, max_size=3)),
        blockers=st.one_of(st.none(), st.lists(numbers, max_size=2)),
        number=numbers,
    )
    def relate(
        self,
        kind: str,
        one: int,
        parents: list[int] | None,
        blockers: list[int] | None,
        number: int,
    ) -> None:
        outcome = self.outcome(one)
        who = self.who(kind, outcome, number)
        above = None if parents is None else sorted({self.near(outcome, n) for n in parents})
        before = None if blockers is None else sorted({self.near(outcome, n) for n in blockers})
        ((version,),) = self.company.sql("SELECT version FROM outcomes WHERE id = ?", outcome)
        self.step(
            lambda model, _: model.relate(
                who,
                outcome,
                None if above is None else set(above),
                None if before is None else set(before),
            ),
            who,
            outcomes.change,
            outcome=outcome,
            version=version,
            parents=above,
            blocked_by=before,
        )

    @rule(kind=callers, one=numbers, number=numbers)
    def complete(self, kind: str, one: int, number: int) -> None:
        outcome = self.outcome(one)
        if self.is_at_the_top(outcome):
            return
        who = self.who(kind, outcome, number)
        self.step(
            lambda model, _: model.finish(who, outcome, "completed"),
            who,
            outcomes.complete,
            outcome=outcome,
        )

    @rule(kind=callers, one=numbers, number=numbers)
    def close(self, kind: str, one: int, number: int) -> None:
        outcome = self.outcome(one)
        if self.is_at_the_top(outcome):
            return
        who = self.who(kind, outcome, number)
        self.step(
            lambda model, _: model.finish(who, outcome, "closed"),
            who,
            outcomes.close,
            outcome=outcome,
            rationale="No.",
        )

    @rule(kind=callers, one=numbers, number=numbers)
    def reopen(self, kind: str, one: int, number: int) -> None:
        finished = sorted(o for o in self.model.work if not self.model.open(o))
        outcome = finished[one % len(finished)] if finished else self.outcome(one)
        who = self.who(kind, outcome, number)
        done = self.step(
            lambda model, _: model.reopen(who, outcome), who, outcomes.reopen, outcome=outcome
        )
        for agent in done["agents_restored"] if done is not None else ():
            self.callers[agent["id"]] = member(self.company, agent).caller

    @rule(kind=callers, one=numbers, number=numbers)
    def hire(self, kind: str, one: int, number: int) -> None:
        if len(self.model.boss) >= MOST_AGENTS:
            return
        outcome = self.outcome(one)
        who = self.who(kind, outcome, number)
        made = self.step(
            lambda model, answer: model.delegate(
                who, outcome, None, answer["outcome"]["id"] if answer else ""
            ),
            who,
            delegation.delegate,
            outcome=outcome,
            hire={"name": self.name()},
        )
        if made is not None:
            self.callers[made["agent"]["id"]] = member(self.company, made["agent"]).caller

    @rule(kind=callers, one=numbers, to=numbers, number=numbers)
    def hand_over(self, kind: str, one: int, to: int, number: int) -> None:
        outcome = self.outcome(one)
        who = self.who(kind, outcome, number)
        owner = self.model.work[outcome].owner
        reports = sorted(a for a in self.model.boss if self.model.boss[a] == owner)
        receiver = reports[to % len(reports)] if reports and to % 5 else self.agent(to)
        self.step(
            lambda model, _: model.delegate(who, outcome, receiver, ""),
            who,
            delegation.delegate,
            outcome=outcome,
            to=receiver,
        )

    @rule(kind=callers, one=numbers, number=numbers)
    def reclaim(self, kind: str, one: int, number: int) -> None:
        handed = sorted(o for o, work in self.model.work.items() if work.delegator)
        outcome = handed[one % len(handed)] if handed and one % 4 else self.outcome(one)
        who = self.who("judge" if kind == "owner" and number % 2 else kind, outcome, number)
        self.step(
            lambda model, _: model.reclaim(who, outcome),
            who,
            delegation.reclaim,
            outcome=outcome,
            reason="Back.",
        )

    @rule(kind=callers, one=numbers, number=numbers)
    def terminate(self, kind: str, one: int, number: int) -> None:
        agent = self.agent(one)
        if agent == self.company.ceo.id:
            return
        who = self.model.boss[agent] if kind == "judge" else self.who(kind, agent, number)
        if who not in self.model.alive:
            who = None
        self.step(lambda model, _: model.terminate(who, agent), who, agents.terminate, agent=agent)

    @rule(one=numbers, to=numbers, back=st.booleans())
    def move(self, one: int, to: int, back: bool) -> None:
        agent, boss = self.agent(one), None if to % 7 == 0 else self.agent(to)
        self.reorganise(
            lambda model, _: model.move(agent, boss),
            {"op": "move", "agent": agent, "to": boss or "board"},
            back=back,
        )

    @rule(one=numbers, back=st.booleans())
    def insert(self, one: int, back: bool) -> None:
        if len(self.model.boss) >= MOST_AGENTS:
            return
        agent = self.agent(one)

        def expected(model: Model, answer: Any) -> None:
            made = (
                [s["agent"] for s in answer["steps"] if s["step"] == "create"] if answer else [""]
            )
            model.insert(agent, made[0])

        done = self.reorganise(
            expected,
            {"op": "insert_layer", "agents": [agent], "name": self.name()},
            back=back,
        )
        if done is not None:
            layer = next(s["agent"] for s in done["steps"] if s["step"] == "create")
            if layer in self.model.alive:
                shown = self.company.call(self.company.board, agents.show, agent=layer)
                self.callers[layer] = member(self.company, shown).caller

    @rule(one=numbers, back=st.booleans())
    def remove(self, one: int, back: bool) -> None:
        agent = self.agent(one)
        if agent == self.company.ceo.id:
            return
        done = self.reorganise(
            lambda model, _: model.remove(agent), {"op": "remove_layer", "agent": agent}, back=back
        )
        if done is not None and back:
            shown = self.company.call(self.company.board, agents.show, agent=agent)
            self.callers[agent] = member(self.company, shown).caller

    def reorganise(
        self, expected: Callable[[Model, Any], None], operation: dict[str, Any], *, back: bool
    ) -> Any:
        before = copy.deepcopy(self.model)
        board, company = self.company.board, self.company.id
        done = self.step(
            expected, None, reorganise.reorganise, company=company, operations=[operation]
        )
        if done is None or not back:
            return done
        assert self.disagreements() == []
        self.company.call(board, reorganise.undo, company=company, event=done["event_id"])
        type(self).operations += 1
        for layer in self.model.boss.keys() - before.boss.keys():
            # What was made stays, as something that is over.
            work = self.model.work[layer]
            before.boss[layer] = self.model.boss[layer]
            over = Work(layer, True, work.delegator, "closed", True, parents=work.parents)
            before.work[layer] = over
        self.model = before
        return done

    @rule()
    def ask_everybody(self) -> None:
        """Every agent, every outcome, every action: no right that the rules do not give."""
        every = sorted(self.model.work)
        for agent in sorted(self.model.alive):
            got = self.company.call(
                self.callers[agent], PROBE, company=self.company.id, every=every
            )
            for outcome in every:
                assert set(got[outcome]) == self.model.rights(agent, outcome), (agent, outcome)

    # ── what must always hold ───────────────────────────────────────────────────────────────

    @invariant()
    def the_company_is_as_the_model_says(self) -> None:
        assert self.disagreements() == []

    @invariant()
    def nothing_is_wrong_with_it(self) -> None:
        assert problems(self.company, verify=False) == []

    def disagreements(self) -> list[str]:
        sql = self.company.sql
        found = []
        related: dict[str, tuple[set[str], set[str]]] = {
            one: (set(), set()) for one in self.model.work
        }
        inboxes = {one for (one,) in sql("SELECT id FROM outcomes WHERE kind = 'inbox'")}
        for child, parent in sql("SELECT child_id, parent_id FROM outcome_edges"):
            if child not in inboxes:
                related[child][0].add(parent)
        for outcome, blocker in sql("SELECT outcome_id, blocker_id FROM outcome_blockers"):
            related[outcome][1].add(blocker)
        # The mail that tells a boss what was judged opens "Process inbox", which is no work.
        rows = sql(
            "SELECT id, owner_id, delegated, delegator_id, status, perpetual FROM outcomes"
            " WHERE kind = 'work'"
        )
        for one, owner, delegated, delegator, status, perpetual in rows:
            real = Work(owner, bool(delegated), delegator, status, bool(perpetual), *related[one])
            if real != self.model.work.get(one):
                found.append(f"{one} is {real}, expected {self.model.work.get(one)}")
        for agent, boss, status in sql("SELECT id, boss_id, status FROM agents"):
            expected = (self.model.boss.get(agent, "missing"), agent in self.model.alive)
            if (boss, status != "terminated") != expected:
                found.append(f"agent {agent} is {(boss, status)}, expected {expected}")
        return found


@pytest.mark.requirement(
    "BX-02", "BX-08", "AG-27", "AG-28", "AG-69", "AG-98", "AG-99", "AG-106", "AG-107", "AG-115",
    "AG-116", "AG-117",
)  # fmt: skip
@pytest.mark.timeout(300)
@histories(40, 240)
def test_every_history_keeps_the_organisation_as_the_rules_say(
    examples: int, tmp_path: Path
) -> None:
    home = tmp_path / "template"
    template = Company(f"sqlite:///{home}/remit.db", home, VirtualClock())
    template.close()
    Organisations.template = home
    Organisations.operations = Organisations.succeeded = 0
    run_state_machine_as_test(
        Organisations,
        settings=settings(
            max_examples=examples,
            stateful_step_count=50,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    assert Organisations.operations >= 16 * examples
    assert Organisations.succeeded >= 4 * examples
