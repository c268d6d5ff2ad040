"""The one path that every verb takes.

    token ─► identify ─► first answer again? ─► facts ─► decide ─► change ─► event ─► commit

`Gate` is that path. A verb is a plain function of a `Context`; it asks the context for decisions
and tells it what happened. A change without a decision or without an event does not commit, a
refusal is recorded, and the answer to an idempotency key is kept in the same transaction.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

from remit.authority import Action, Facts, decide
from remit.clock import HOUR, Clock, Micros
from remit.errors import BadInput, KeyReused, NotFound, Refused, RemitError
from remit.ids import CompanyId, EventId, GrantId, Ids
from remit.model.agent import DEEPEST_TREE
from remit.model.decision import Decision, Effect
from remit.model.event import Event, canonical
from remit.model.grant import Resource
from remit.model.principal import ActorKind, Principal
from remit.model.user import Membership
from remit.services.identity import Caller, identify
from remit.services.refusal import next_step
from remit.store import agents as agent_statements
from remit.store import events as event_log
from remit.store import grants as grant_statements
from remit.store import people
from remit.store.blobs import BlobStore
from remit.store.database import Database, Transaction
from remit.store.errors import RowConflict

P = ParamSpec("P")
R = TypeVar("R")
Answer = dict[str, Any]

log = logging.getLogger(__name__)

LONGEST_KEY = 255
#: When a grant was last used is kept this exactly; more would cost a write per call.
USE_PRECISION = HOUR


class Kind(Enum):
    #: Looks only.
    QUERY = "query"
    #: Looks, and leaves a line in an access log.
    LOGGED = "logged"
    #: Changes something, so it decides and records.
    COMMAND = "command"


@dataclass(frozen=True)
class Verb(Generic[P, R]):
    name: str
    kind: Kind
    body: Callable[Concatenate[Context, P], R]


#: By name, so that a call that waited for approval can be carried out later.
_VERBS: dict[str, Verb[..., Any]] = {}


def query(body: Callable[Concatenate[Context, P], R]) -> Verb[P, R]:
    return _verb(Kind.QUERY, body)


def logged(body: Callable[Concatenate[Context, P], R]) -> Verb[P, R]:
    return _verb(Kind.LOGGED, body)


def command(body: Callable[Concatenate[Context, P], Answer]) -> Verb[P, Answer]:
    return _verb(Kind.COMMAND, body)


def verb_named(name: str) -> Verb[..., Any]:
    if name not in _VERBS:
        import_module(f"remit.services.{name.partition('.')[0]}")
    return _VERBS[name]


def _verb(kind: Kind, body: Callable[Concatenate[Context, P], R]) -> Verb[P, R]:
    verb = Verb(_name(body), kind, body)
    _VERBS[verb.name] = verb
    return verb


def _name(body: Callable[..., Any]) -> str:
    return f"{body.__module__.rpartition('.')[2]}.{body.__name__}"


#: What was tried, on what, and the decision about it.
Denied = tuple[Action, str, Decision]


def approved(approval: str) -> Decision:
    return Decision(
        Effect.ALLOW, "approved", "This very call was approved.", f"approval:{approval}"
    )


@dataclass
class Context:
    """What a verb has in hand while it runs."""

    tx: Transaction
    actor: Principal
    now: Micros
    ids: Ids
    blobs: BlobStore
    kind: Kind
    caller: Caller | None = None
    #: Set by `enter`.
    company: CompanyId | None = None
    membership: Membership | None = None
    #: The approval that this very call was given.
    ticket: str | None = None
    #: Shown to the caller once and stored nowhere.
    secrets: dict[str, str] = field(default_factory=dict)
    _head: event_log.Head | None = None
    _decided: Decision | None = None
    _events: int = 0
    _denied: Denied | None = None
    _before_asking: Callable[[Context], None] | None = None

    def enter(self, company: str) -> CompanyId:
        """Work in a company. Whoever has no part in it does not learn that it exists."""
        company = CompanyId(company)
        if self.company is not None and self.company != company:
            # One call works in one company, also for people who have a part in several.
            raise NotFound("There is no such company.")
        if self.actor.kind is ActorKind.AGENT and self.actor.company_id != company:
            raise NotFound("There is no such company.")
        if self.actor.kind is ActorKind.USER:
            self.membership = self.tx.one(people.MEMBERSHIP, company=company, user=self.actor.id)
            if self.membership is None:
                raise NotFound("There is no such company.")
        waited = self._head is None
        self.company = company
        if self.kind is Kind.COMMAND and self.tx.writable:
            self._lock()
            if waited and not self.tx.one_by_one:
                self._look_again()
        return company

    def take_turn(self) -> None:
        """For a logged verb that changes something: nobody else changes the company meanwhile."""
        if self._head is None and self.tx.writable:
            self._lock()
            if not self.tx.one_by_one:
                self._look_again()

    def leave(self) -> None:
        """Go on in another company; only for lists over all companies of a person."""
        assert self.kind is Kind.QUERY
        self.company = self.membership = None

    def _look_again(self) -> None:
        """Whoever waited for their turn may have lost their token or their part meanwhile."""
        if self.caller is None or self.caller.system:
            return
        self.actor = identify(self.tx, self.caller, self.now)
        if self.actor.kind is ActorKind.USER:
            self.membership = self.tx.one(
                people.MEMBERSHIP, company=self.company, user=self.actor.id
            )
            if self.membership is None:
                raise NotFound("There is no such company.")

    def place(self, agent: str | None) -> tuple[Any, ...]:
        """The agent and its bosses, upward; empty when the tree cannot be trusted."""
        if agent is None:
            return ()
        chain = self.tx.all(agent_statements.CHAIN_OF_BOSSES, company=self.company, agent=agent)
        if len(chain) > DEEPEST_TREE or len(set(chain)) != len(chain):
            return ()
        return tuple(chain)

    def decide(
        self,
        action: Action,
        resource: Resource | None = None,
        *,
        home: str | None = None,
        **facts: Any,
    ) -> Decision:
        """Load what the decision depends on, and decide."""
        if resource is not None and self.actor.kind is ActorKind.AGENT and "held" not in facts:
            facts["held"] = tuple(self.held(self.actor.id, resource))
        scoped = self.membership is not None and self.membership.scope_agent_id is not None
        if "place" not in facts and home is not None and scoped:
            facts["place"] = self.place(home)
        known = Facts(self.now, self.membership, **facts)
        decision = decide(self.actor, action, resource, known)
        if decision.effect is Effect.ASK and self.ticket is not None:
            return approved(self.ticket)
        if decision.allowed and self.tx.writable:
            self._mark_used(decision, known)
        return decision

    def require(
        self,
        action: Action,
        resource: Resource | None = None,
        *,
        on: str | None = None,
        home: str | None = None,
        **facts: Any,
    ) -> Decision:
        """Decide, and end the call unless the answer is yes. `on` names what events show."""
        decision = self.decide(action, resource, home=home, **facts)
        return self.accept(action, on or str(resource or ""), decision)

    def accept(
        self,
        action: Action,
        on: str,
        decision: Decision,
        before_asking: Callable[[Context], None] | None = None,
    ) -> Decision:
        """Go on with a decision, or end the call with it; `before_asking` may find that there is
        nothing to ask anybody about."""
        if decision.allowed:
            self._decided = decision
            return decision
        self._denied = (action, on, decision)
        self._before_asking = before_asking
        if decision.conceal:
            raise NotFound(_absent(on))
        raise Refused(
            decision.sentence,
            next_step(decision, action, on),
            code=decision.reason,
            details={"decision": decision.as_dict()},
        )

    @contextmanager
    def acting_as(self, actor: Principal, ticket: str | None = None) -> Iterator[None]:
        """Do something in another's name, with their rights and in the record as theirs."""
        before = (self.actor, self.membership, self.ticket, self._decided, self._denied)
        self.actor, self.membership, self.ticket = actor, None, ticket
        if actor.kind is ActorKind.USER:
            self.membership = self.tx.one(people.MEMBERSHIP, company=self.company, user=actor.id)
        try:
            yield
        finally:
            # What the other may not do is no attempt of whoever calls.
            self.actor, self.membership, self.ticket, self._decided, self._denied = before

    def accept_rule(self, decision: Decision) -> None:
        """Go on with a rule that needs no facts, such as a person's right to sign in."""
        self._decided = decision

    def held(self, agent: str, resource: Resource) -> list[Any]:
        return self.tx.all(
            grant_statements.HELD,
            holder=agent,
            kind=resource.kind.value,
            resource=resource.id,
        )

    def record(
        self,
        action: str,
        resource: str,
        details: Mapping[str, Any] | None = None,
        decision: Decision | None = None,
    ) -> EventId:
        """Say what happened; it is chained to everything that happened before."""
        rests_on = decision or self._decided
        if rests_on is None:
            raise AssertionError(f"{action} was recorded before anything was decided")
        if self._head is None:
            self._lock()
        assert self._head is not None
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
            details=canonical(dict(details or {})),
            prev_hash="",
            hash="",
        )
        self._head = event_log.append(self.tx, self._head, event)
        self._events += 1
        return event.id

    def record_refusal(self) -> bool:
        """After a rollback: keep that somebody tried."""
        if self._denied is None or self.company is None:
            return False
        action, resource, decision = self._denied
        self._head = None
        self.record(action.value, resource, {"sentence": decision.sentence}, decision)
        return True

    @property
    def refused(self) -> bool:
        return self._denied is not None and self.company is not None

    @property
    def asked(self) -> Denied | None:
        """What would have been possible with somebody's approval."""
        if self._denied is not None and self._denied[2].effect is Effect.ASK:
            return self._denied
        return None

    def finish(self) -> None:
        """A command that decided or recorded nothing is a defect, so it must not commit."""
        if self.kind is Kind.COMMAND and not self._events:
            raise AssertionError("a command changed something and recorded nothing")

    def _lock(self) -> None:
        self._head = self.tx.one(event_log.LOCK_HEAD, company=self.company)
        if self._head is None:
            raise NotFound("There is no such company.")

    def _mark_used(self, decision: Decision, facts: Facts) -> None:
        kind, _, grant_id = decision.basis.partition(":")
        if kind != "grant":
            return
        for grant in facts.held:
            if grant.id == grant_id and (
                grant.used_at is None or grant.used_at + USE_PRECISION <= self.now
            ):
                self.tx.run(grant_statements.MARK_USED, grant=GrantId(grant_id), now=self.now)


@dataclass(frozen=True)
class _Reply(Generic[R]):
    answer: R | None = None
    error: RemitError | None = None
    #: The company whose log has grown.
    company: CompanyId | None = None


class Parking(Protocol):
    """What becomes of a call that needs approval. Both run in the call's own transaction."""

    def admit(self, ctx: Context, denied: Denied, call: Call) -> Ticket | Answer | Refused:
        """A ticket to go on with, what the call answered when it was carried out, or that
        somebody was asked and has not said yes."""

    def used(self, ctx: Context, ticket: Ticket) -> None:
        """The call went through."""


@dataclass(frozen=True)
class Call:
    """Something that was asked for: a verb and what it was given."""

    verb: Verb[..., Any]
    given: Mapping[str, Any]
    #: To be done before somebody is asked about it; ends the call when it cannot be done anyway.
    vet: Callable[[Context], None] | None = None


@dataclass(frozen=True)
class Ticket:
    approval: str


class Gate:
    """Runs verbs. Nothing reads or writes around it."""

    def __init__(self, database: Database, clock: Clock, ids: Ids, blobs: BlobStore) -> None:
        self.database = database
        self.clock = clock
        self.ids = ids
        self.blobs = blobs
        self.parking: Parking | None = None
        #: Called after each commit that recorded events, with the company, from any thread.
        self.listeners: list[Callable[[CompanyId], None]] = []

    async def __call__(
        self, caller: Caller, verb: Verb[P, R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        work = self._work(caller, verb, args, kwargs)
        if verb.kind is Kind.QUERY:
            try:
                return self._open(await self.database.read(work))
            except _Recordable:
                pass  # a refusal leaves a trace, and that takes a write
        try:
            reply = await self.database.write(work)
        except RowConflict:
            # Somebody else committed in between; now the verb (or the stored answer) sees it.
            reply = await self.database.write(work)
        return self._open(reply)

    async def check(self, caller: Caller) -> None:
        """Refuse a token that is not good, before anything is stored for its bearer."""
        await self.database.read(lambda tx: identify(tx, caller, self.clock.now()))

    async def first_answer(self, caller: Caller) -> Answer | None:
        """What the caller's idempotency key was answered with, whatever was asked."""
        if caller.key is None:
            return None

        def look(tx: Transaction) -> Answer | None:
            actor = identify(tx, caller, self.clock.now())
            first = tx.one(event_log.ANSWER, actor=actor.address, key=_key(caller))
            return None if first is None else cast(Answer, json.loads(first.answer))

        return await self.database.read(look)

    def _work(
        self, caller: Caller, verb: Verb[P, R], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Callable[[Transaction], _Reply[R]]:
        digest = _digest(verb, args, kwargs) if caller.key is not None else ""
        return lambda tx: self._execute(tx, caller, verb, digest, args, kwargs)

    def _execute(
        self,
        tx: Transaction,
        caller: Caller,
        verb: Verb[P, R],
        digest: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> _Reply[R]:
        now = self.clock.now()
        actor = identify(tx, caller, now)
        ctx = Context(tx, actor, now, self.ids, self.blobs, verb.kind, caller)
        keyed = caller.key is not None and verb.kind is Kind.COMMAND
        if keyed and (first := _first_answer(ctx, caller, verb, digest)) is not None:
            return _Reply(first)
        try:
            answer = verb.body(ctx, *args, **kwargs)
            ctx.finish()
            changed = ctx._events > 0
        except RemitError as error:
            if keyed and (first := _first_answer(ctx, caller, verb, digest)) is not None:
                # The same request was under way elsewhere; this one waited and found it done.
                tx.restart()
                return _Reply(first)
            if not ctx.refused:
                raise
            if not tx.writable:
                raise _Recordable from error
            tx.restart()
            if ctx.asked is None or self.parking is None or args:
                ctx.record_refusal()
                return _Reply(error=error, company=ctx.company)
            call = Call(verb, kwargs, ctx._before_asking)
            answer = self._admit(self.parking, ctx, ctx.asked, call)
            if isinstance(answer, RemitError):
                return _Reply(error=answer, company=ctx.company)
            changed = True
        if keyed:
            tx.run(
                event_log.INSERT_ANSWER,
                actor=ctx.actor.address,
                key=caller.key,
                verb=verb.name,
                digest=digest,
                answer=json.dumps(answer),
                created_at=now,
            )
        if ctx.secrets and isinstance(answer, dict):
            answer.update(ctx.secrets)  # after the answer was stored, so shown once
        return _Reply(answer, company=ctx.company if changed else None)

    def _admit(self, parking: Parking, was: Context, denied: Denied, call: Call) -> Any:
        """Go on with a call that somebody approved, or see to it that somebody is asked."""
        ctx = Context(was.tx, was.actor, was.now, was.ids, was.blobs, Kind.COMMAND, was.caller)
        assert was.company is not None
        ctx.enter(was.company)
        admitted = parking.admit(ctx, denied, call)
        if not isinstance(admitted, Ticket):
            return admitted
        ctx.ticket = admitted.approval
        try:
            answer = call.verb.body(ctx, **call.given)
            parking.used(ctx, admitted)
            ctx.finish()
        except RemitError as error:
            if not ctx.refused:
                raise
            ctx.tx.restart()
            ctx.record_refusal()
            return error
        return answer

    def _open(self, reply: _Reply[R]) -> R:
        if reply.company is not None:
            for listener in self.listeners:
                listener(reply.company)
        if reply.error is not None:
            raise reply.error
        return cast(R, reply.answer)


class _Recordable(Exception):
    """A query was refused in a transaction that cannot record it."""


def _absent(on: str) -> str:
    """What somebody reads who named something that does not exist, so that it sounds the same."""
    kind, _, named = on.partition(":")
    if not named:
        return "There is nothing here with that id."
    return f"There is no such {kind.removeprefix('kb_')}."


def _first_answer(ctx: Context, caller: Caller, verb: Verb[P, R], digest: str) -> R | None:
    """What this very request was answered before."""
    first = ctx.tx.one(event_log.ANSWER, actor=ctx.actor.address, key=_key(caller))
    if first is None:
        return None
    if (first.verb, first.digest) != (verb.name, digest):
        raise KeyReused("This idempotency key was used for a different request.")
    return cast(R, json.loads(first.answer))


def _key(caller: Caller) -> str:
    key = caller.key or ""
    if not key or len(key) > LONGEST_KEY or not key.isprintable():
        raise BadInput(
            f"The idempotency key must be 1 to {LONGEST_KEY} printable characters.",
            "Use a new UUID.",
        )
    return key


def _digest(verb: Verb[Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """What was asked. What our side picked for it (`new_id`, `new_files`) is not part of it."""
    asked = {name: value for name, value in kwargs.items() if not name.startswith("new_")}
    return hashlib.sha256(canonical([verb.name, list(args), asked]).encode()).hexdigest()
