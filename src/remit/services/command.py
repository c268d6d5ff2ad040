"""The one path that every verb takes.

    token ─► identify ─► first answer again? ─► facts ─► decide ─► change ─► event ─► commit

`Gate` is that path. A verb is a plain function of a `Context`; it takes its decisions and records
its events there. A change without a decision or without an event does not commit, a refusal is
recorded, and the answer to an idempotency key is stored in the same transaction.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast

from remit.adapters.registry import WITHOUT_MODEL
from remit.clock import Clock, Micros
from remit.errors import BadInput, KeyReused, Refused, RemitError
from remit.ids import CompanyId, Ids
from remit.model.execution import prices
from remit.model.organisation.principal import Principal
from remit.model.text import digest_of
from remit.services.context import Context, Denied, Kind, approved
from remit.services.identity import Caller, identify
from remit.services.verbs import (
    FOR_REMIT,
    Answer,
    Arguments,
    P,
    R,
    Verb,
    command,
    logged,
    query,
    verb_named,
)
from remit.store.blob_store.blobs import BlobStore
from remit.store.engine.database import Database, Transaction
from remit.store.engine.errors import RowConflict
from remit.store.record import events as event_log

__all__ = [
    "FOR_REMIT",
    "Answer",
    "Arguments",
    "Ask",
    "Call",
    "Context",
    "Denied",
    "Gate",
    "Kind",
    "Parking",
    "Ticket",
    "Verb",
    "approved",
    "command",
    "logged",
    "query",
    "verb_named",
]

LONGEST_KEY = 255
T = TypeVar("T")


@dataclass(frozen=True)
class _Reply(Generic[R]):
    answer: R | None = None
    error: RemitError | None = None
    #: The company whose log has grown.
    company: CompanyId | None = None


class Ask(Protocol):
    """Runs queries of one caller, all on the same snapshot."""

    def __call__(self, verb: Verb[P, R], *args: P.args, **kwargs: P.kwargs) -> R: ...


class Parking(Protocol):
    """The hooks for calls that need approval. Both run in the call's own transaction."""

    def admit(self, ctx: Context, denied: Denied, call: Call) -> Ticket | Answer | Refused:
        """Return a ticket to continue with, the stored answer of the call if it was carried out, or
        the refusal that it awaits approval."""

    def used(self, ctx: Context, ticket: Ticket) -> None:
        """Record that a ticket's call succeeded."""


@dataclass(frozen=True)
class Call:
    """A call: its verb and arguments."""

    verb: Verb[..., Any]
    arguments: Mapping[str, Any]
    #: Runs before approval is asked for; refuses a call that cannot succeed.
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
        #: The first adapter that is usable here, as the serving process found.
        self.usable_adapter: str = WITHOUT_MODEL
        #: Prices of models for every company.
        self.prices: Mapping[str, prices.Set] = {}
        #: The address under which people reach the pages from anywhere, if there is one.
        self.outside_url: str | None = None
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
                pass  # a refusal is recorded, which takes a write
        return await self._write(work)

    async def together(self, caller: Caller, work: Callable[[Ask], T]) -> T:
        """Run several queries in one read transaction, in a thread of the database.

        The caller is identified once; each query is decided as it would be alone, and each refusal
        is recorded, in a write transaction of its own.
        """
        refused: list[tuple[Verb[..., Any], tuple[Any, ...], Arguments]] = []

        def look(tx: Transaction) -> T:
            now = self.clock.now()
            actor = identify(tx, caller, now)

            def ask(verb: Verb[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
                if verb.kind is not Kind.QUERY:
                    raise AssertionError(f"{verb.name} takes a transaction of its own")
                ctx = self._context(tx, actor, now, verb.kind, caller)
                try:
                    return verb.body(ctx, *args, **kwargs)
                except RemitError:
                    if ctx.refused:
                        refused.append((verb, args, kwargs))
                    raise

            return work(ask)

        try:
            return await self.database.read(look)
        finally:
            for verb, args, kwargs in refused:
                with suppress(RemitError):
                    await self._write(self._work(caller, verb, args, kwargs))

    def version(self) -> int | None:
        """A number that changes with each commit of any process; None if the database has no such
        number."""
        return self.database.version()

    async def check(self, caller: Caller) -> None:
        """Refuse an invalid token, before anything is stored for its bearer."""
        await self.database.read(lambda tx: identify(tx, caller, self.clock.now()))

    async def first_answer(self, caller: Caller) -> Answer | None:
        """Return the stored answer to the caller's idempotency key, whatever the request was."""
        if caller.key is None:
            return None

        def look(tx: Transaction) -> Answer | None:
            actor = identify(tx, caller, self.clock.now())
            first = tx.one(event_log.ANSWER, actor=actor.address, key=_key(caller))
            return None if first is None else cast(Answer, json.loads(first.answer))

        return await self.database.read(look)

    async def _write(self, work: Callable[[Transaction], _Reply[R]]) -> R:
        try:
            reply = await self.database.write(work)
        except RowConflict:
            # Another transaction committed in between; the retry sees its change, or the stored
            # answer.
            reply = await self.database.write(work)
        return self._open(reply)

    def _work(
        self, caller: Caller, verb: Verb[P, R], args: tuple[Any, ...], kwargs: Arguments
    ) -> Callable[[Transaction], _Reply[R]]:
        digest = _digest(verb, args, kwargs) if caller.key is not None else ""

        def work(tx: Transaction) -> _Reply[R]:
            now = self.clock.now()
            actor = identify(tx, caller, now)
            ctx = self._context(tx, actor, now, verb.kind, caller)
            reply = self._execute(ctx, caller, verb, digest, args, kwargs)
            if caller.on_answer is not None and reply.error is None:
                with suppress(RemitError):
                    caller.on_answer(
                        self._context(tx, actor, now, Kind.QUERY, caller), reply.answer
                    )
            return reply

        return work

    def _context(
        self, tx: Transaction, actor: Principal, now: Micros, kind: Kind, caller: Caller
    ) -> Context:
        ctx = Context(tx, actor, now, self.ids, self.blobs, kind, caller, self.usable_adapter)
        ctx.prices = self.prices
        ctx.outside_url = self.outside_url
        return ctx

    def _execute(
        self,
        ctx: Context,
        caller: Caller,
        verb: Verb[P, R],
        digest: str,
        args: tuple[Any, ...],
        kwargs: Arguments,
    ) -> _Reply[R]:
        tx = ctx.tx
        keyed = caller.key is not None and verb.kind is Kind.COMMAND
        # A verb may act as somebody else; the key belongs to the caller.
        who = ctx.actor.address
        if keyed and (first := _first_answer(tx, who, caller, verb, digest)) is not None:
            return _Reply(first)
        try:
            answer = verb.body(ctx, *args, **kwargs)
            ctx.finish()
            changed = ctx._events > 0
        except RemitError as error:
            if keyed and (first := _first_answer(tx, who, caller, verb, digest)) is not None:
                # The same request was running elsewhere; this one waited for it.
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
            call = Call(verb, kwargs, ctx.before_asking)
            answer = self._admit(self.parking, ctx, caller, ctx.asked, call)
            if isinstance(answer, RemitError):
                return _Reply(error=answer, company=ctx.company)
            changed = True
        if keyed:
            tx.run(
                event_log.INSERT_ANSWER,
                actor=who,
                key=caller.key,
                verb=verb.name,
                version=verb.version,
                digest=digest,
                answer=json.dumps(answer),
                created_at=ctx.now,
            )
        if ctx.secrets and isinstance(answer, dict):
            answer.update(ctx.secrets)  # after the answer was stored, so shown once
        return _Reply(answer, company=ctx.company if changed else None)

    def _admit(
        self, parking: Parking, was: Context, caller: Caller, denied: Denied, call: Call
    ) -> Any:
        """Continue a call that was approved, or have approval asked for."""
        assert was.company is not None
        ctx = self._context(was.tx, was.actor, was.now, Kind.COMMAND, caller)
        ctx.enter(was.company)
        admitted = parking.admit(ctx, denied, call)
        if not isinstance(admitted, Ticket):
            return admitted
        ctx.ticket = admitted.approval
        try:
            answer = call.verb.body(ctx, **call.arguments)
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
            for listener in tuple(self.listeners):  # one may be taken away meanwhile
                listener(reply.company)
        if reply.error is not None:
            raise reply.error
        return cast(R, reply.answer)


class _Recordable(Exception):
    """A query was refused in a transaction that cannot record it."""


def _first_answer(
    tx: Transaction, who: str, caller: Caller, verb: Verb[P, R], digest: str
) -> R | None:
    """Return the stored answer to this same request, if it was made before."""
    first = tx.one(event_log.ANSWER, actor=who, key=_key(caller))
    if first is None:
        return None
    # Arguments of another version have another digest. Then an equal key and verb are enough:
    # refusing a true repeat would invite a second effect under a new key.
    same = first.version != verb.version or hmac.compare_digest(first.digest, digest)
    if first.verb != verb.name or not same:
        raise KeyReused("This idempotency key was used for a different request.")
    return cast(R, json.loads(first.answer))


def _key(caller: Caller) -> str:
    return checked_key(caller.key or "")


def checked_key(key: str) -> str:
    if not key or len(key) > LONGEST_KEY or not key.isprintable():
        raise BadInput(
            f"The idempotency key must be 1 to {LONGEST_KEY} printable characters.",
            "Use a new UUID.",
        )
    return key


def _digest(verb: Verb[Any, Any], args: tuple[Any, ...], kwargs: Arguments) -> str:
    """Digest of a request, without the values that Remit chose (`new_id`, `new_files`)."""
    arguments = {name: value for name, value in kwargs.items() if not name.startswith("new_")}
    return digest_of([verb.name, list(args), arguments])
