"""Context of a verb: its decisions, and the record of what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Unpack

from remit.adapters.registry import WITHOUT_MODEL
from remit.authority import GOVERNED, Action, Facts, GivenFacts, decide
from remit.clock import HOUR, Micros
from remit.errors import NotFound
from remit.ids import CompanyId, EventId, GrantId, Ids
from remit.model.event import Event
from remit.model.execution import prices
from remit.model.organisation.agent import DEEPEST_TREE
from remit.model.organisation.decision import Decision, Effect, allow
from remit.model.organisation.grant import Resource
from remit.model.organisation.permission import PermissionLevel, Reach, policy
from remit.model.organisation.principal import ActorKind, Principal
from remit.model.organisation.user import Membership
from remit.model.text import canonical
from remit.services.identity import Caller, identify
from remit.services.refusal import next_step
from remit.store.blob_store.blobs import BlobStore
from remit.store.engine.database import Transaction
from remit.store.organisation import agents as agent_statements
from remit.store.organisation import grants as grant_statements
from remit.store.organisation import people
from remit.store.record import events as event_log

#: Precision of a grant's time of last use; a finer one would cost a write per call.
USE_PRECISION = HOUR


class Kind(Enum):
    #: Reads only.
    QUERY = "query"
    #: Runs in a write transaction without having to record an event: reads that keep an access
    #: log, previews, and the leases of workers.
    LOGGED = "logged"
    #: Changes something, so it decides and records.
    COMMAND = "command"


#: Actions whose decision depends on whether the calling agent leads the company or may hire.
_OF_HIRERS = frozenset({Action.AGENT_CREATE, Action.AGENT_PERMIT, Action.CONFIG_READ})

#: A refused attempt: the action, the resource, and the decision.
Denied = tuple[Action, str, Decision]


def approved(approval: str) -> Decision:
    return allow("approved", "This very call was approved.", f"approval:{approval}")


class Matter(GivenFacts, total=False):
    """Facts for `Context.decide`, with the agent that the matter belongs to."""

    home: str | None
    over: str | None


@dataclass
class Context:
    """The context of a running verb: transaction, caller, time and the decisions taken so far."""

    tx: Transaction
    actor: Principal
    now: Micros
    ids: Ids
    blobs: BlobStore
    kind: Kind
    caller: Caller | None = None
    #: The first adapter that is usable here; for agents whose description names none.
    usable_adapter: str = WITHOUT_MODEL
    #: Prices of models for every company.
    prices: Mapping[str, prices.Set] = field(default_factory=dict)
    #: The address under which people reach the pages from anywhere, if there is one.
    outside_url: str | None = None
    #: Set by `enter`.
    company: CompanyId | None = None
    membership: Membership | None = None
    #: The approval of this call.
    ticket: str | None = None
    #: Shown to the caller once and stored nowhere.
    secrets: dict[str, object] = field(default_factory=dict)
    #: A check that is run before approval is asked for; it refuses a call that cannot succeed.
    before_asking: Callable[[Context], None] | None = None
    _chain: event_log.Chain | None = None
    _decided: Decision | None = None
    _events: int = 0
    _denied: Denied | None = None
    _reaches: dict[str, Reach] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._work_in(self.company)

    def _work_in(self, company: CompanyId | None) -> None:
        self.company = company
        self.tx.given = {"company": company, "now": self.now}

    def enter(self, company: str, membership: Membership | None = None) -> CompanyId:
        """Work in a company. Callers that are not its members do not learn that it exists. A
        `membership` of the caller that was read already is not read again."""
        company = CompanyId(company)
        if self.company is not None and self.company != company:
            # One call works in one company, even for people who are members of several.
            raise NotFound.of("company")
        if self.actor.kind is ActorKind.AGENT and self.actor.company_id != company:
            raise NotFound.of("company")
        if self.actor.kind is ActorKind.USER:
            mine = {"company": company, "user": self.actor.id}
            self.membership = membership or self.tx.one(people.MEMBERSHIP, **mine)
            if self.membership is None:
                raise NotFound.of("company")
        self._work_in(company)
        if self.kind is Kind.COMMAND:
            self.lock_company()
        return company

    def lock_company(self) -> None:
        """Lock the company until the transaction ends: other commands of it wait. For commands, and
        for logged verbs that change something."""
        if self._chain is None and self.tx.writable:
            self._lock()
            if not self.tx.one_by_one:
                self._look_again()

    @property
    def author(self) -> dict[str, object]:
        """The caller, as columns of the rows that are stored."""
        actor = self.actor
        return {"agent_id": actor.agent_id, "user_id": actor.user_id, "run_id": actor.run_id}

    @property
    def place_in_record(self) -> int:
        """The number of the company's last event; the lock keeps it the last."""
        return self._lock().head.seq

    def leave(self) -> None:
        """Leave the company; only for lists over all companies of a person."""
        assert self.kind is Kind.QUERY
        self.membership = None
        self._work_in(None)

    def _look_again(self) -> None:
        """Identify the caller again after waiting for the lock: the token or the membership may
        have ended."""
        if self.caller is None or self.caller.system:
            return
        self.actor = identify(self.tx, self.caller, self.now)
        if self.actor.kind is ActorKind.USER:
            self.membership = self.tx.one(people.MEMBERSHIP, user=self.actor.id)
            if self.membership is None:
                raise NotFound.of("company")

    def boss_chain(self, agent: str | None) -> tuple[Any, ...]:
        """Return the agent and its bosses, upward; empty if the chain has a cycle or is too
        deep."""
        if agent is None:
            return ()
        chain = self.tx.all(agent_statements.CHAIN_OF_BOSSES, agent=agent)
        if len(chain) > DEEPEST_TREE or len(set(chain)) != len(chain):
            return ()
        return tuple(chain)

    def decide(
        self,
        action: Action,
        resource: Resource | None = None,
        *,
        home: str | None = None,
        over: str | None = None,
        **facts: Unpack[GivenFacts],
    ) -> Decision:
        """Load the facts of a decision, and decide.

        `home` is the agent that the matter belongs to. `over` is the same where the chain of bosses
        above it also counts for agents.
        """
        if over is not None:
            home = over
            if self.actor.kind is ActorKind.AGENT:
                facts["place"] = self.boss_chain(over)
        if resource is not None and self.actor.kind is ActorKind.AGENT and "held" not in facts:
            facts["held"] = tuple(self.held(self.actor.id, resource))
        if action in _OF_HIRERS and self.actor.kind is ActorKind.AGENT:
            me = self.tx.one(agent_statements.AGENT, agent=self.actor.id)
            if me is not None:
                facts["is_ceo"] = me.is_ceo
                facts["can_create_agents"] = me.can_create_agents
        scoped = self.membership is not None and self.membership.scope_agent_id is not None
        if "place" not in facts and home is not None and scoped:
            facts["place"] = self.boss_chain(home)
        known = Facts(self.now, self.membership, **facts)
        decision = decide(self.actor, action, resource, known)
        if decision.effect is Effect.DENY and action.value in GOVERNED:
            decision = self._by_level(decision, action, resource, known, home)
        if decision.effect is Effect.ASK and self.ticket is not None:
            return approved(self.ticket)
        if decision.allowed and self.tx.writable:
            self._mark_used(decision, known)
        return decision

    def _by_level(
        self,
        refusal: Decision,
        action: Action,
        resource: Resource | None,
        facts: Facts,
        home: str | None,
    ) -> Decision:
        """Decide again with the agent's level after a refusal; its facts are loaded only then,
        because few agents have one."""
        reach = self.reach
        place = facts.place or (self.boss_chain(home) if reach is not Reach.NOBODY else ())
        if reach is Reach.NOBODY or not place:
            return refusal
        concerned = self.tx.one(agent_statements.AGENT, agent=place[0])
        known = replace(
            facts,
            place=place,
            reach=reach,
            above=self.boss_chain(self.actor.id),
            over_boss=concerned is None or concerned.permission_level is PermissionLevel.BOSS,
        )
        return decide(self.actor, action, resource, known)

    @property
    def reach(self) -> Reach:
        """The agents that the calling agent governs by its level."""
        return self.reach_of(self.actor.id) if self.actor.kind is ActorKind.AGENT else Reach.NOBODY

    def reach_of(self, agent: str) -> Reach:
        if agent not in self._reaches:
            row = self.tx.one(agent_statements.AGENT, agent=agent)
            company = None
            if row is not None and row.permission_level is PermissionLevel.BOSS:
                company = self.tx.one(people.COMPANY, company=self.company)
            self._reaches[agent] = (
                policy(company.permission_policy)[PermissionLevel.BOSS].governs
                if company is not None
                else Reach.NOBODY
            )
        return self._reaches[agent]

    def require(
        self,
        action: Action,
        resource: Resource | None = None,
        *,
        on: str | None = None,
        home: str | None = None,
        over: str | None = None,
        **facts: Unpack[GivenFacts],
    ) -> Decision:
        """Decide, and refuse the call unless it is allowed. `on` is the resource of the events: by
        default the agent that the decision is `over`, or the resource."""
        decision = self.decide(action, resource, home=home, over=over, **facts)
        about = f"agent:{over}" if over is not None else str(resource or "")
        return self.accept(action, on or about, decision)

    def accept(
        self,
        action: Action,
        on: str,
        decision: Decision,
        before_asking: Callable[[Context], None] | None = None,
        step: str | None = None,
    ) -> Decision:
        """Continue with a decision that allows the call, or refuse it. `before_asking` runs before
        approval is asked for, and may refuse a call that cannot succeed. `step` is the next step
        where the reason alone does not tell it."""
        if decision.allowed:
            self._decided = decision
            return decision
        self._denied = (action, on, decision)
        self.before_asking = before_asking
        if decision.conceal:
            raise _absent(on)
        raise decision.refusal(step or next_step(decision, action, on))

    @contextmanager
    def acting_as(self, actor: Principal, ticket: str | None = None) -> Iterator[None]:
        """Context manager: act as somebody else, with their rights, and recorded as theirs."""
        before = (self.actor, self.membership, self.ticket, self._decided, self._denied)
        self.actor, self.membership, self.ticket = actor, None, ticket
        if actor.kind is ActorKind.USER:
            self.membership = self.tx.one(people.MEMBERSHIP, user=actor.id)
        try:
            yield
        finally:
            # A refusal of the other actor is not one of the caller.
            self.actor, self.membership, self.ticket, self._decided, self._denied = before

    def allow_by_rule(self, decision: Decision) -> None:
        """Continue with a rule that needs no facts, such as a person's right to sign in."""
        self._decided = decision

    def held(self, agent: str, resource: Resource) -> list[Any]:
        return self.tx.all(
            grant_statements.HELD, holder=agent, kind=resource.kind.value, resource=resource.id
        )

    def record(
        self,
        action: str,
        resource: str,
        details: Mapping[str, Any] | None = None,
        decision: Decision | None = None,
    ) -> EventId:
        """Append an event to the company's hash chain."""
        rests_on = decision or self._decided
        if rests_on is None:
            raise AssertionError(f"{action} was recorded before anything was decided")
        chain = self._lock()
        assert self.company is not None
        event = Event(
            company_id=self.company,
            seq=0,
            id=EventId(self.ids.new()),
            at=self.now,
            actor_kind=self.actor.kind,
            actor_id=self.actor.id,
            run_id=self.actor.run_id,
            action=action,
            resource=resource,
            allowed=rests_on.effect is Effect.ALLOW,
            reason=rests_on.reason,
            basis=rests_on.basis,
            details=canonical({**(details or {}), **self._from_where()}),
            prev_hash="",
            hash="",
        )
        chain.append(event)
        self._events += 1
        return event.id

    def _from_where(self) -> dict[str, str]:
        """The chat account from which a person acted, for the event."""
        if self.caller is None or self.caller.account is None:
            return {}
        return {"account": self.caller.account}

    def record_refusal(self) -> bool:
        """Record a refused attempt, after its rollback; returns whether there was one."""
        if self._denied is None or self.company is None:
            return False
        action, resource, decision = self._denied
        self._chain = None
        self.record(action.value, resource, {"sentence": decision.sentence}, decision)
        return True

    @property
    def refused(self) -> bool:
        return self._denied is not None and self.company is not None

    @property
    def asked(self) -> Denied | None:
        """The refused attempt, if its decision was that the call needs approval."""
        if self._denied is not None and self._denied[2].effect is Effect.ASK:
            return self._denied
        return None

    def finish(self) -> None:
        """Refuse to commit a command that recorded nothing, which is a defect."""
        if self.kind is Kind.COMMAND and not self._events:
            raise AssertionError("a command changed something and recorded nothing")

    def _lock(self) -> event_log.Chain:
        assert self.company is not None
        if self._chain is None:
            self._chain = event_log.Chain(self.tx, self.company)
        return self._chain

    def _mark_used(self, decision: Decision, facts: Facts) -> None:
        kind, _, grant_id = decision.basis.partition(":")
        if kind != "grant":
            return
        for grant in facts.held:
            if grant.id == grant_id and (
                grant.used_at is None or grant.used_at + USE_PRECISION <= self.now
            ):
                self.tx.run(grant_statements.MARK_USED, grant=GrantId(grant_id))


def system_only(ctx: Context) -> None:
    """Hide the verbs of background work from everybody but Remit itself."""
    if ctx.actor.kind is not ActorKind.SYSTEM:
        raise NotFound("There is nothing here with that id.")


def _absent(on: str) -> NotFound:
    """Not-found text, identical for absent and hidden things."""
    kind, _, named = on.partition(":")
    if not named:
        return NotFound("There is nothing here with that id.")
    return NotFound.of(kind.removeprefix("kb_"))
