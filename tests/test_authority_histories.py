"""Long random histories through the real services, against a model that fits on two pages.

The model knows agents, files and grants, and says of every step whether it must succeed. After
each step the company must agree with the model, and no grant may exceed what it came from.
"""

import tempfile
from collections.abc import Iterable
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
    rule,
    run_state_machine_as_test,
)

from remit.clock import HOUR, Micros, from_iso, to_iso
from remit.errors import Conflict, NotFound, Refused, RemitError, Unauthenticated
from remit.services.identity import Caller
from remit.services.knowledge import files
from remit.services.organisation import agents
from remit.services.record import events
from remit.services.rights import grants
from remit.services.work import outcomes
from remit.testing.clock import VirtualClock
from tests.company import Company, Member
from tests.selection import histories

LEVELS = ("none", "read", "write")
MOST_AGENTS = 6
MOST_FILES = 3
#: Says which of the agents, files or grants that exist by then is meant.
WHICH = st.integers(0, 59)
HOURS = st.sampled_from([None, None, None, 1, 3])
#: What ends something for good happens more rarely, so that histories get long.
RARELY = st.integers(0, 2).map(lambda n: n == 0)
NO = (Refused, NotFound, Conflict, Unauthenticated)


@dataclass
class Right:
    """A grant, as the model sees it."""

    id: str
    holder: str
    file: str
    level: int
    mode: str
    scope: str | None
    parent: str | None = None
    granter: str | None = None
    until: Micros | None = None
    revoked: bool = False


@dataclass
class Model:
    now: Micros
    boss: dict[str, str | None] = field(default_factory=dict)
    alive: dict[str, bool] = field(default_factory=dict)
    open: dict[str, bool] = field(default_factory=dict)
    unlisted: dict[str, bool] = field(default_factory=dict)
    rights: dict[str, Right] = field(default_factory=dict)

    def live(self, right: Right) -> bool:
        return not right.revoked and (right.until is None or right.until > self.now)

    def held(self, agent: str, file: str) -> list[Right]:
        return [
            right
            for right in self.rights.values()
            if right.holder == agent and right.file == file and self.live(right)
        ]

    def may(self, agent: str, file: str, need: int) -> str:
        held = self.held(agent, file)
        if any(right.mode == "deny" and right.level <= need for right in held):
            return "deny"
        allowed = any(right.mode == "allow" and right.level >= need for right in held)
        asked = any(right.mode == "ask" and right.level >= need for right in held)
        if not allowed and not asked:
            return "deny"
        bound = any(right.mode == "ask" and right.level <= need for right in held)
        return "allow" if allowed and not bound else "ask"

    def knows(self, agent: str, file: str) -> bool:
        return not self.unlisted[file] or self.may(agent, file, 1) != "deny"

    def sees(self, agent: str, mandate: str) -> bool:
        """Mandates above are reasons for one's own; those below are of people one supervises."""
        return agent in self.upward(mandate) or mandate in self.upward(agent)

    def upward(self, agent: str | None) -> list[str]:
        return [] if agent is None else [agent, *self.upward(self.boss[agent])]

    def can_pass_on(self, agent: str, file: str, level: int, until: Micros | None) -> bool:
        right = self.may(agent, file, level)
        if right == "deny" or until is None:
            return right != "deny"
        return until > self.now and any(
            held.level >= level
            and (held.mode == "allow" or (held.mode == right == "ask"))
            and (held.until is None or held.until >= until)
            for held in self.held(agent, file)
        )

    def revoke(self, doomed: Iterable[str]) -> None:
        """Take back rights and everything that came from them."""
        pending = [one for one in doomed if not self.rights[one].revoked]
        while pending:
            gone = pending.pop()
            self.rights[gone].revoked = True
            pending += [
                right.id
                for right in self.rights.values()
                if right.parent == gone and not right.revoked
            ]

    def take_back_excess(self, agent: str, file: str) -> None:
        for right in list(self.rights.values()):
            if right.granter == agent and right.file == file and self.live(right):
                kept = self.may(agent, file, right.level)
                if kept == "deny" or (kept == "ask" and right.mode == "allow"):
                    self.revoke([right.id])

    def finish(self, outcome: str) -> None:
        """A mandate ends with its agent, and everybody below goes along."""
        gone = [outcome]
        for agent in gone:
            gone += [below for below, boss in self.boss.items() if boss == agent]
        for agent in gone:
            if not self.alive[agent]:
                continue
            self.alive[agent] = self.open[agent] = False
            self.revoke(
                right.id
                for right in list(self.rights.values())
                if right.scope == agent or (right.holder == agent and right.scope is not None)
            )


class Histories(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = VirtualClock()
        home = Path(self.folder.name)
        self.company = Company(f"sqlite:///{home}/remit.db", home, self.clock)
        self.model = Model(self.clock.now())
        self.callers: dict[str, Caller] = {}
        self.seen: dict[str, dict[str, Any]] = {}

    def teardown(self) -> None:
        self.company.close()
        self.folder.cleanup()

    # ── what can happen ─────────────────────────────────────────────────────────────────────

    @initialize()
    def begin(self) -> None:
        """A line of four agents, one beside it, and a file passed down the line."""
        line = [self._joined(self.company.ceo, None)]
        for n in range(1, 4):
            line.append(self._joined(self.company.agent(f"agent-{n}", line[-1]), line[-1]))
        self._joined(self.company.agent("agent-4"), line[0])
        self.write_down(0, True)
        for n in range(1, 4):
            self.give(0, n, 0, 2, None, None, False)

    @rule(boss=WHICH)
    def hire(self, boss: int) -> None:
        if len(self.callers) >= MOST_AGENTS:
            return
        name, above = f"agent-{len(self.callers)}", self._agent(boss)
        if self.model.alive[above]:
            self._joined(self.company.agent(name, above), above)
        else:
            with pytest.raises(Conflict):
                self.company.agent(name, above)

    @rule(which=WHICH, unlisted=st.booleans())
    def write_down(self, which: int, unlisted: bool) -> None:
        if len(self.seen) >= MOST_FILES:
            return
        author = self._agent(which)
        try:
            made = self.company.file(self.callers[author], b"text", "words", unlisted=unlisted)
        except Unauthenticated:
            assert not self.model.alive[author]
            return
        assert self.model.alive[author]
        self.seen[made["id"]] = made
        self.model.unlisted[made["id"]] = unlisted
        held = self.company.call(self.callers[author], grants.listing, company=None, limit=1000)
        own = next(g for g in held if g["resource"] == f"kb_file:{made['id']}")
        self.model.rights[own["id"]] = Right(own["id"], author, made["id"], 2, "allow", None)

    @rule(
        granter=WHICH,
        receiver=WHICH,
        which=WHICH,
        level=st.sampled_from([1, 1, 2, 2, 0]),
        hours=HOURS,
        scope=st.one_of(st.none(), WHICH),
        anybody=RARELY,
    )
    def give(
        self,
        granter: int,
        receiver: int,
        which: int,
        level: int,
        hours: int | None,
        scope: int | None,
        anybody: bool,
    ) -> None:
        """Mostly from a boss to its report, because anything else is refused anyway."""
        to, file = self._agent(receiver), self._file(which)
        by = self._agent(granter) if anybody else self.model.boss[to] or to
        until = None if hours is None else self.model.now + hours * HOUR
        outcome = None if scope is None else self._agent(scope)
        expected = (
            self.model.alive[by]
            and self.model.alive[to]
            and self.model.boss[to] == by
            and self.model.knows(by, file)
            and self.model.can_pass_on(by, file, level, until)
            and self.model.open[outcome or to]
            and self.model.sees(by, outcome or to)
        )
        made = self._give(self.callers[by], to, file, level, "allow", until, outcome)
        assert (made is not None) == expected
        if made is None:
            return
        assert made["mode"] == self.model.may(by, file, level)
        if until is not None:
            assert from_iso(made["expires_at"]) == until
        self._given(made, file, by)

    @rule(
        receiver=WHICH,
        which=WHICH,
        level=st.sampled_from([0, 1, 2]),
        mode=st.sampled_from(["allow", "allow", "ask", "deny"]),
        hours=HOURS,
        scope=st.one_of(st.none(), WHICH),
    )
    def board_gives(
        self,
        receiver: int,
        which: int,
        level: int,
        mode: str,
        hours: int | None,
        scope: int | None,
    ) -> None:
        to, file = self._agent(receiver), self._file(which)
        until = None if hours is None else self.model.now + hours * HOUR
        outcome = None if scope is None else self._agent(scope)
        expected = self.model.alive[to] and self.model.open[outcome or to]
        made = self._give(self.company.board, to, file, level, mode, until, outcome)
        assert (made is not None) == expected
        if made is None:
            return
        self._given(made, file, None)
        if mode != "allow":
            self.model.take_back_excess(to, file)

    @rule(which=WHICH, actor=st.one_of(st.none(), WHICH))
    def revoke(self, which: int, actor: int | None) -> None:
        rights = list(self.model.rights.values())
        right = rights[which % len(rights)]
        caller, allowed = self.company.board, True
        if actor is not None:
            agent = self._agent(actor)
            caller = self.callers[agent]
            own = right.holder == agent and right.mode == "allow"
            allowed = self.model.alive[agent] and (right.granter == agent or own)
        try:
            self.company.call(caller, grants.revoke, grant=right.id)
        except NO:
            assert not allowed or right.revoked
        else:
            assert allowed
            assert not right.revoked
            self.model.revoke([right.id])

    @rule(hours=st.sampled_from([1, 2]))
    def time_passes(self, hours: int) -> None:
        self.clock.advance(hours * HOUR)
        self.model.now = self.clock.now()

    @rule(which=WHICH, complete=st.booleans(), really=RARELY)
    def finish(self, which: int, complete: bool, really: bool) -> None:
        owner = self._agent(which)
        if not really:
            return
        root = owner == self.company.ceo.id
        board = self.company.board
        try:
            if complete:
                self.company.call(board, outcomes.complete, outcome=owner)
            else:
                self.company.call(board, outcomes.close, outcome=owner, rationale="enough")
        except Conflict:
            assert root or not self.model.open[owner]
        else:
            assert self.model.open[owner]
            assert not root
            self.model.finish(owner)

    @rule(which=WHICH, really=RARELY)
    def terminate(self, which: int, really: bool) -> None:
        agent = self._agent(which)
        if not really:
            return
        reports = [a for a, boss in self.model.boss.items() if boss == agent]
        possible = self.model.alive[agent] and not any(self.model.alive[a] for a in reports)
        possible = possible and agent != self.company.ceo.id
        try:
            self.company.call(self.company.board, agents.terminate, agent=agent)
        except Conflict:
            assert not possible
        else:
            assert possible
            self.model.finish(agent)

    @rule(agent=WHICH, file=WHICH, level=st.sampled_from([1, 2]))
    def use(self, agent: int, file: int, level: int) -> None:
        who, what = self._agent(agent), self._file(file)
        assert self._tried(who, what, level) == self._expected(who, what, level)

    # ── what must be true at every moment ───────────────────────────────────────────────────

    @invariant()
    def no_grant_exceeds_its_source(self) -> None:
        live = self._live_grants()
        for grant in live.values():
            if grant["parent_id"] is None:
                continue
            parent = live.get(grant["parent_id"])
            assert parent is not None, "it outlived its source"
            assert grant["granted_by"] == f"agent:{parent['holder_id']}"
            assert grant["resource"] == parent["resource"]
            assert LEVELS.index(grant["level"]) <= LEVELS.index(parent["level"])
            assert (parent["mode"], grant["mode"]) in {
                ("allow", "allow"),
                ("allow", "ask"),
                ("ask", "ask"),
            }
            if parent["expires_at"] is not None:
                assert grant["expires_at"] is not None
                assert from_iso(grant["expires_at"]) <= from_iso(parent["expires_at"])

    @invariant()
    def what_is_live_is_what_should_be(self) -> None:
        live = self._live_grants()
        expected = {right.id for right in self.model.rights.values() if self.model.live(right)}
        assert set(live) == expected
        for grant in live.values():
            assert grant["scope"] is None or self.model.open[grant["scope"]]

    @invariant()
    def everybody_can_do_what_the_model_says(self) -> None:
        for agent, caller in self.callers.items():
            if not self.model.alive[agent]:
                with pytest.raises(Unauthenticated):
                    self.company.call(caller, files.listing, company=None)
                continue
            listed = self.company.call(caller, files.listing, company=None)
            # Its own memory and log are always there, and no part of this story. Neither are the
            # letters that tell it what was completed below it; it may read those and no more.
            letters = {f["id"] for f in listed if f["description"].startswith("Message: Completed")}
            assert letters.isdisjoint(self.model.unlisted)
            assert {file["level"] for file in listed if file["id"] in letters} <= {"read"}
            found = {
                file["id"]: file["level"]
                for file in listed
                if file["kind"] == "file" and file["id"] not in letters
            }
            expected = {}
            for file in self.model.unlisted:
                for level in (2, 1):
                    if self.model.may(agent, file, level) != "deny":
                        expected[file] = LEVELS[level]
                        break
            assert found == expected
            known = {file for file in self.model.unlisted if self.model.knows(agent, file)}
            for words in ("", "words"):
                assert set(self.company.found(caller, words)) - letters == known

    @invariant()
    def the_record_is_whole(self) -> None:
        answer = self.company.call(self.company.board, events.verify, company=self.company.id)
        assert answer["ok"]

    # ── how it is done ──────────────────────────────────────────────────────────────────────

    def _agent(self, which: int) -> str:
        return list(self.callers)[which % len(self.callers)]

    def _file(self, which: int) -> str:
        return list(self.seen)[which % len(self.seen)]

    def _joined(self, member: Member, boss: str | None) -> str:
        self.callers[member.id] = member.caller
        self.model.boss[member.id] = boss
        self.model.alive[member.id] = self.model.open[member.id] = True
        return member.id

    def _give(
        self,
        caller: Caller,
        receiver: str,
        file: str,
        level: int,
        mode: str,
        until: Micros | None,
        scope: str | None,
    ) -> dict[str, Any] | None:
        try:
            return self.company.call(
                caller,
                grants.give,
                company=self.company.id,
                to=receiver,
                resource=f"kb_file:{file}",
                level=LEVELS[level],
                mode=mode,
                scope=scope,
                expires_at=None if until is None else to_iso(until),
            )
        except NO:
            return None

    def _given(self, made: dict[str, Any], file: str, granter: str | None) -> None:
        self.model.rights[made["id"]] = Right(
            made["id"],
            made["holder_id"],
            file,
            LEVELS.index(made["level"]),
            made["mode"],
            made["scope"],
            made["parent_id"],
            granter,
            None if made["expires_at"] is None else from_iso(made["expires_at"]),
        )

    def _expected(self, agent: str, file: str, level: int) -> str:
        if not self.model.alive[agent]:
            return "unauthenticated"
        if not self.model.knows(agent, file) and self.model.may(agent, file, level) == "deny":
            return "not_found"
        return self.model.may(agent, file, level)

    def _tried(self, agent: str, file: str, level: int) -> str:
        caller = self.callers[agent]
        try:
            if level == 1:
                self.company.read(caller, file)
            else:
                self.seen[file] = self.company.write(caller, self.seen[file], b"new")
        except Refused as refusal:
            return str(refusal.details["decision"]["effect"])
        except RemitError as error:
            return error.reason
        return "allow"

    def _live_grants(self) -> dict[str, dict[str, Any]]:
        found = self.company.call(
            self.company.board, grants.listing, company=self.company.id, limit=10_000
        )
        letters = {row[0] for row in self.company.sql("SELECT body_file_id FROM messages")}
        return {
            grant["id"]: grant
            for grant in found
            if grant["resource"].partition(":")[2] not in letters
        }


@pytest.mark.timeout(300)  # a failure takes a while to be made small
@pytest.mark.requirement("BX-01", "AG-14", "AG-45", "AG-46", "AG-47")
@histories(12, 100)
def test_every_history_keeps_each_grant_within_its_source(examples: int) -> None:
    run_state_machine_as_test(
        Histories,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            derandomize=True,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
        ),
    )
