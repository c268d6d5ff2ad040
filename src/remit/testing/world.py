"""A random company: random actions of its agents, of people and of the environment.

The numbers of an `Op` are interpreted when it is executed (as one of the existing agents, for
example), so any part of a story is a valid story: that makes it possible to shrink a failing one.
"""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

from remit.clock import HOUR, MINUTE, SECOND, to_iso
from remit.ids import random_name
from remit.services.command import Verb
from remit.services.connections import bindings, outbox
from remit.services.governance import approvals
from remit.services.identity import Caller, as_system
from remit.services.messaging import pending_items, questions
from remit.services.organisation import agents, reorganise
from remit.services.people import companies
from remit.services.rights import grants
from remit.services.screens import needs_you
from remit.services.work import delegation, outcomes
from remit.store.engine.database import Transaction
from remit.testing.agent import ToolRefused
from remit.testing.database import Crash, Moment
from remit.testing.invariants import Broken
from remit.testing.outside import Outside
from remit.testing.simulation import AgentDied, Member, Simulation, Turn

LARGEST_COMPANY = 200


@dataclass(frozen=True)
class Op:
    kind: str
    a: int = 0
    b: int = 0
    c: int = 0

    def __str__(self) -> str:
        return f"{self.kind}({self.a}, {self.b}, {self.c})"


@dataclass
class Outcome:
    """Result of a campaign."""

    seed: int
    ops: list[Op]
    steps: int = 0
    turns: int = 0
    deliveries: int = 0
    crashes: int = 0
    refusals: int = 0
    broken: Exception | None = None
    story: list[str] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Return the outcome as JSON, for programs."""
        counts = ("seed", "steps", "turns", "deliveries", "crashes", "refusals")
        return {
            **{name: getattr(self, name) for name in counts},
            "broken": None if self.broken is None else str(self.broken),
            "ops": [] if self.broken is None else [str(op) for op in self.ops],
            "story": [] if self.broken is None else self.story,
        }

    def __str__(self) -> str:
        if self.broken is None:
            return (
                f"seed {self.seed}: {self.steps} steps, {self.turns} runs, {self.deliveries} "
                f"deliveries, {self.crashes} crashes, {self.refusals} refusals: nothing broke"
            )
        told = "\n".join(f"  {line}" for line in self.story[-40:])
        ops = "\n".join(f"  {op}" for op in self.ops)
        return f"seed {self.seed}: {self.broken}\nthe story:\n{told}\nits ops:\n{ops}"


class World:
    """A company to which ops are applied, and the facts that are known about it from outside."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.out = Outcome(sim.seed, [])
        #: Ids of messages that were acknowledged as sent; none may be lost.
        self.sent: set[str] = set()
        self.handled: set[str] = set()
        self.outside = Outside(sim)
        #: Seeded anew for each op, so that removing another op does not change it.
        self.chance = random.Random()  # noqa: S311
        sim.root.script = self._play

    # ── agents ──────────────────────────────────────────────────────────────────────────────

    def _play(self, turn: Turn) -> None:
        """Perform random actions of an agent in a run, from all that agents can do."""
        chance = self.chance
        self._receive(turn)
        for _ in range(chance.randint(0, 3)):
            self._act(turn, chance)
        if chance.random() < 0.05:
            raise AgentDied("it was killed")
        if chance.random() < 0.5:
            self._finish_with(turn)

    def settle(self) -> None:
        """Let all agents only handle their remaining mail, until all are idle."""
        for member in self.sim.members.values():
            member.script = self._just_read
        self.out.turns += self.sim.run(patience=2 * HOUR)

    def _just_read(self, turn: Turn) -> None:
        self._receive(turn)
        self._finish_with(turn)

    def _receive(self, turn: Turn) -> None:
        self.out.deliveries += len(turn.mail)
        for letter in turn.mail:
            if letter.id in self.handled:
                raise Broken("mail that was dealt with does not come again", letter.id)

    def _finish_with(self, turn: Turn) -> None:
        if turn.mail:
            turn.call("mail_ack", ids=[letter.id for letter in turn.mail])
            self.handled |= {letter.id for letter in turn.mail}

    def _act(self, turn: Turn, chance: random.Random) -> None:
        other = self._member(chance.getrandbits(16))
        actions: list[Callable[[], Any]] = [
            lambda: self._agent_sends(turn, other),
            lambda: self._agent_sends(turn, "board"),
            lambda: self._agents_answers(turn),
            lambda: self._agent_tells_all(turn),
            lambda: self._agent_sends(turn, "channel:webhook:room"),
            lambda: turn.call("outcome_create", parent_id=turn.agent.id, title="A part"),
            lambda: self._finish_something(turn),
            lambda: turn.call("kb_create", description="Notes", content="Some notes."),
            lambda: turn.call("ask", question="May I?", to="boss"),
            lambda: turn.call("log_submit", summary="I was here."),
            lambda: self._delegate(turn, other),
            lambda: turn.call(
                "hire_agent",
                name=f"N{chance.randrange(400)}",
                role="engineer",
                adapter_type="scripted",
            ),
            lambda: turn.call("mail_inbox"),
            lambda: turn.call("capability_list"),
        ]
        try:
            chance.choice(actions)()
        except ToolRefused:
            self.out.refusals += 1

    def _agent_sends(self, turn: Turn, to: Member | str) -> None:
        key = random_name()
        address = to.address if isinstance(to, Member) else to
        first = turn.call("mail_send", to=address, body="Hello.", idempotency_key=key)
        if self.chance.random() < 0.1:
            again = turn.call("mail_send", to=address, body="Hello.", idempotency_key=key)
            if again["id"] != first["id"]:
                raise Broken("a repeated call has one effect", (first["id"], again["id"]))
        self.sent.add(first["id"])

    def _agents_answers(self, turn: Turn) -> None:
        for letter in turn.mail:
            self.sent.add(turn.reply(letter, "Yes.")["id"])

    def _agent_tells_all(self, turn: Turn) -> None:
        """Send mail to all reports, as bosses do."""
        for member in self.sim.reports(turn.agent)[:10]:
            self.sent.add(turn.send(member, "To all of you.")["id"])

    def _own(self, turn: Turn) -> list[dict[str, Any]]:
        return [
            outcome
            for outcome in self.sim.outcomes(owner=turn.agent.id, status="open")
            if outcome["id"] != turn.agent.id
        ]

    def _finish_something(self, turn: Turn) -> None:
        own = self._own(turn)
        if own:
            turn.call("outcome_complete", id=self.chance.choice(own)["id"], note="Done.")

    def _delegate(self, turn: Turn, to: Member) -> None:
        own = self._own(turn)
        if own:
            turn.call("delegate", outcome_id=self.chance.choice(own)["id"], to=to.address)

    # ── people and the world ────────────────────────────────────────────────────────────────

    def carry_out(self, op: Op) -> None:
        self.out.steps += 1
        self.chance.seed(f"{self.sim.seed} {op}")
        getattr(self, f"op_{op.kind}")(op)

    def op_turn(self, op: Op) -> None:
        self.sim.tick()
        ready = self.sim.ready()
        if ready and self.sim.turn(self._one_of(op.a, ready).id):
            self.out.turns += 1
        elif not ready:
            self.sim.clock.advance(SECOND)
            self.sim.sweep()

    def op_hire(self, op: Op) -> None:
        if len(self.sim.members) < LARGEST_COMPANY:
            boss = self._member(op.b)
            member = self.sim.agent(f"A{op.a}", self._play, boss=boss)
            member.script = self._play

    def op_send(self, op: Op) -> None:
        to = self._member(op.a)
        later = (
            {} if op.b % 4 else {"deliver_at": to_iso(self.sim.clock.now() + (op.c % 600) * SECOND)}
        )
        self.sent.add(self.sim.send(to, f"Message {op.b}", **later)["id"])

    def op_post(self, op: Op) -> None:
        """Send a batch of mail, to one agent after the other."""
        for number in range(op.b % 24 + 1):
            self.sent.add(self.sim.send(self._member(op.a + number // 4), "Post.")["id"])

    def op_request(self, op: Op) -> None:
        self.outside.ask(op.a, self._member(op.b).id, self._member(op.c).id)

    def op_page(self, op: Op) -> None:
        self.outside.look(op.a, self._member(op.b).id)

    def op_bind(self, op: Op) -> None:
        """Bind an agent to a channel, or remove a binding."""
        bound = self.sim.ask(bindings.listing, company=self.sim.company)
        if bound and op.b % 3 == 0:
            gone = bound[op.a % len(bound)]["id"]
            self.sim.do(bindings.remove, company=self.sim.company, binding=gone)
            return
        member = self._member(op.a)
        binding = self.sim.do(
            bindings.add,
            company=self.sim.company,
            agent=member.id,
            kind="webhook",
            config={"url": "https://outside.example/in"},
            replace=True,
        )
        self.outside.tokens[member.name] = binding["token"]

    def op_outside(self, op: Op) -> None:
        arrived = self.outside.write(op.a, op.b)
        if arrived is not None:
            self.sent.add(arrived)

    def op_carry(self, _: Op) -> None:
        """Deliver the outbox, with random failures."""
        system = as_system()
        for message, epoch in self.sim.ask(outbox.expired, system):
            self.sim.do(outbox.take_over, system, message=message, epoch=epoch)
        for message, _sender in self.sim.ask(outbox.ready, system)[:4]:
            held = self.sim.do(outbox.claim, system, message=message, worker="simulated")
            if held is None:
                continue
            delivery = {"message": message, "epoch": held["epoch"]}
            match self.chance.randrange(5):
                case 0:
                    self.sim.do(outbox.failed, system, why="nobody is there", **delivery)
                case 1:
                    self.sim.do(outbox.put_back, system, **delivery)
                case 2:
                    pass  # the worker is gone, without a report
                case _:
                    self.sim.do(outbox.delivered, system, **delivery)

    def op_decide(self, op: Op) -> None:
        pending = self.sim.ask(
            approvals.listing, company=self.sim.company, status="pending", limit=20
        )
        if not pending:
            return
        approval = pending[op.a % len(pending)]
        verb = (approvals.approve, approvals.reject, approvals.request_revision)[op.b % 3]
        key = random_name()
        first = self._keyed(key, verb, approval=approval["id"], note="By chance.")
        if op.c % 4 == 0:
            again = self._keyed(key, verb, approval=approval["id"], note="By chance.")
            if again["status"] != first["status"]:
                raise Broken("a repeated decision has one effect", (first, again))

    def op_answer(self, op: Op) -> None:
        rows = self.sim.ask(questions.listing, company=self.sim.company, limit=20)
        if rows:
            question = rows[op.a % len(rows)]
            self.sim.do(questions.answer, question=question["id"], answer="Yes.")

    def op_move(self, op: Op) -> None:
        member, boss = self._member(op.a), self._member(op.b)
        verb = (reorganise.reorganise, reorganise.preview)[op.c % 2]
        move = {"op": "move", "agent": member.id, "to": boss.id}
        self.sim.do(verb, company=self.sim.company, operations=[move])

    def op_control(self, op: Op) -> None:
        verbs = (
            agents.pause,
            agents.resume,
            agents.stop,
            agents.start,
            agents.restart,
            agents.abort,
            agents.terminate,
        )
        self.sim.do(verbs[op.b % len(verbs)], agent=self._member(op.a).id)

    def op_work(self, op: Op) -> None:
        self.sim.do(
            outcomes.create,
            company=self.sim.company,
            parent=self._member(op.a).id,
            title=f"Work {op.b}",
        )

    def op_delegate(self, op: Op) -> None:
        rows = self.sim.outcomes(status="open")
        if rows:
            outcome = rows[op.a % len(rows)]
            self.sim.do(delegation.delegate, outcome=outcome["id"], to=self._member(op.b).id)

    def op_reclaim(self, op: Op) -> None:
        rows = self.sim.outcomes(status="open")
        if rows:
            self.sim.do(delegation.reclaim, outcome=rows[op.a % len(rows)]["id"], reason="So.")

    def op_grant(self, op: Op) -> None:
        self.sim.do(
            grants.give,
            company=self.sim.company,
            to=self._member(op.a).id,
            resource=f"message:{self._member(op.b).id}",
            level="use",
        )

    def op_cancel(self, op: Op) -> None:
        ends = self.sim.ask(needs_you.listing, company=self.sim.company)
        dead = [end for end in ends if end["kind"] == "dead_letter"]
        if dead:
            verb = (pending_items.revive, pending_items.discard)[op.b % 2]
            self.sim.do(verb, message=dead[op.a % len(dead)]["id"])

    def op_setting(self, op: Op) -> None:
        ways = ("chain", "team", "subtree", "open")
        self.sim.do(companies.change, company=self.sim.company, messaging=ways[op.a % 4])

    def op_time(self, op: Op) -> None:
        self.sim.clock.advance((op.a % 600 + 1) * SECOND)
        self.sim.say(f"{op.a % 600 + 1} seconds pass.")

    def op_jump(self, op: Op) -> None:
        """Set the clock, by an hour at most, in either direction."""
        by = (op.a % 120 - 60) * MINUTE
        self.sim.clock.advance(max(-HOUR, min(HOUR, by)))
        self.sim.say(f"The clock jumps by {by // MINUTE} minutes.")

    def op_crash(self, op: Op) -> None:
        """Crash the process before or after one of the next commits or stored contents."""
        moment = tuple(Moment)[op.a % len(Moment)]
        left = op.b % 12

        def point(now: Moment) -> None:
            nonlocal left
            if now is moment:
                left -= 1
                if left < 0:
                    raise Crash(moment)

        with self.sim.crashing(point):
            for _ in range(6):
                self.op_turn(Op("turn", op.c))

    def op_sweep(self, _: Op) -> None:
        self.sim.sweep()

    # ── helpers ─────────────────────────────────────────────────────────────────────────────

    def _member(self, number: int) -> Member:
        return self._one_of(number, self.sim.members)

    def _one_of(self, number: int, ids: Iterable[str]) -> Member:
        """Return the agent that a number means; stable when other agents come or go."""
        among = (self.sim.members.get(id_) or self.sim.adopt(id_, self._play) for id_ in ids)
        return min(among, key=lambda member: (crc32(f"{number} {member.name}".encode()), member.id))

    def _keyed(self, key: str, verb: Verb[..., Any], **arguments: Any) -> Any:
        return self.sim.do(verb, Caller(self.sim.board.token, key), **arguments)

    def check_sent(self) -> None:
        """Check that each message that was acknowledged as sent is stored."""

        def look(tx: Transaction) -> set[str]:
            return {row[0] for row in tx.execute("SELECT id FROM messages", {}).fetchall()}

        known = self.sim.do_async(self.sim.app.database.read(look))
        if lost := self.sent - known:
            raise Broken("no message is lost", sorted(lost)[:5])
