"""Leased queues behind their verbs: claim, renew, fence, retry with backoff, give up.

A worker holds a row by a lease with an epoch. A worker that was silent too long has lost the lease,
and its later calls about the row are refused.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from inspect import signature
from typing import Any, Generic, Protocol, TypeVar

from remit.authority import Action
from remit.clock import MINUTE, SECOND, Micros
from remit.errors import Conflict
from remit.model.messaging.mail import MOST_ATTEMPTS, DeliveryStatus
from remit.services import shapes
from remit.services.command import FOR_REMIT, Answer, Context, Verb, command, logged, query
from remit.services.context import system_only
from remit.services.verbs import Added, Declared
from remit.store.engine.statement import Statement
from remit.store.queues import LeasedQueue, StatusQueue

#: A leased row: its key, and the epoch of the lease.
Held = tuple[str, int]
#: Most rows read in one transaction.
MOST_AT_ONCE = 100
#: Lease of a delivery, renewed by its worker; once it expires, another worker may take over.
DELIVERY_LEASE = 20 * SECOND
#: Pauses between the attempts at a delivery.
BACKOFF = (10 * SECOND, 2 * MINUTE)
#: End of the reason of a delivery that may have succeeded.
MAY_HAVE_IT = "the outside may have it"
_LONGEST_WHY = 300


class OfCompany(Protocol):
    @property
    def company_id(self) -> str: ...


C = TypeVar("C", bound=OfCompany)
#: Everything that a worker needs for an item, with the epoch of its lease.
B = TypeVar("B", bound=Mapping[str, object])


def companies_due(name: str, due: Statement[C]) -> Verb[[], list[str]]:
    """Declare the query `name`: companies that have something due, each once; for Remit itself."""

    def companies(ctx: Context) -> list[str]:
        rows = ctx.tx.all(due, limit=MOST_AT_ONCE)
        return list(dict.fromkeys(row.company_id for row in rows))

    return query(name, FOR_REMIT)(companies)


def due_here(ctx: Context, due: Statement[C]) -> list[C]:
    """Return the rows that are due in the company of the call."""
    rows = ctx.tx.all(due, limit=MOST_AT_ONCE)
    return [row for row in rows if row.company_id == ctx.company]


class Row(Protocol):
    @property
    def company_id(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def lease_until(self) -> Micros | None: ...
    @property
    def worker(self) -> str | None: ...


class Delivery(Row, Protocol):
    @property
    def attempt(self) -> int: ...


T = TypeVar("T")
R = TypeVar("R", bound=Row)
D = TypeVar("D", bound=Delivery)
#: Called for a delivery that is not retried any more, with the reason.
GaveUp = Callable[[Context, D, str], None]


class Leases(Generic[R]):
    """The operations of workers on leased rows."""

    def __init__(self, rows: LeasedQueue[R]) -> None:
        self._rows = rows

    def claim(self, ctx: Context, item: str, worker: str, lease: Micros, **more: Any) -> bool:
        """Lease a waiting row to one worker; returns False to the others."""
        terms = {"now": ctx.now, "until": ctx.now + lease, "new_worker": worker, **more}
        return bool(ctx.tx.run(self._rows.claim, **{self._rows.noun: item}, **terms))

    def renew(self, ctx: Context, held: Sequence[Held], lease: Micros) -> list[Held]:
        """Renew these leases; returns those that have ended or were lost."""
        until = ctx.now + lease
        return [
            leased
            for leased in held
            if not self._change(ctx, self._rows.renew, leased, until=until)
        ]

    def seize(self, ctx: Context, held: Held, until: Micros | None) -> None:
        """Take a lease over if it still ends at `until`; refused if its worker renewed it since.

        Workers renew without the company's lock, so a check before the change is not enough.
        """
        if not self._change(ctx, self._rows.seize, held, until=until):
            raise Conflict("Its worker renewed the lease meanwhile.")

    def fenced(self, ctx: Context, statement: Statement[None], held: Held, **values: Any) -> None:
        """Run a change that requires the lease; raises if it was lost."""
        if not self._change(ctx, statement, held, **values):
            raise self.lost()

    def lost(self) -> Conflict:
        sentence = f"The lease of the {self._rows.noun} has ended, or another worker holds it."
        return Conflict(sentence, "Stop working on it.", code="lost")

    def holds(self, name: str) -> Verb[[], dict[Held, Micros]]:
        """Declare the query `name.held`: every leased row, and when its lease expires."""

        def held(ctx: Context) -> dict[Held, Micros]:
            rows, key = ctx.tx.all(self._rows.claimed), self._rows.key.name
            return {(getattr(row, key), row.epoch): row.lease_until or 0 for row in rows}

        return query(f"{name}.held", FOR_REMIT)(held)

    def renews(self, name: str) -> Verb[..., list[Held]]:
        """Declare `renew` as the verb `name.renew`."""

        def renew(ctx: Context, *, held: Sequence[Held], lease: Micros) -> list[Held]:
            return self.renew(ctx, held, lease)

        return logged(f"{name}.renew", FOR_REMIT)(renew)

    def _change(self, ctx: Context, statement: Statement[None], held: Held, **values: Any) -> int:
        item, epoch = held
        return ctx.tx.run(statement, **{self._rows.noun: item}, epoch=epoch, **values)


class Queue(Leases[R]):
    """Leases of rows that have a status."""

    _rows: StatusQueue[R]

    def __init__(self, rows: StatusQueue[R]) -> None:
        super().__init__(rows)

    def next_due(self, ctx: Context) -> Micros | None:
        """Return the time at which the next waiting row becomes due; None if none waits."""
        return ctx.tx.one(self._rows.next_due)

    def expired(self, ctx: Context) -> list[Held]:
        """Return the rows whose lease has expired."""
        return self._keys(ctx.tx.all(self._rows.expired, limit=MOST_AT_ONCE))

    def under_way(self, ctx: Context) -> list[Held]:
        """Return every leased row."""
        return self._keys(ctx.tx.all(self._rows.claimed))

    def looks(
        self, name: str
    ) -> tuple[Verb[[], Micros | None], Verb[[], list[Held]], Verb[[], list[Held]]]:
        """Declare the queries `name.next_due`, `name.expired` and `name.under_way`."""
        return (
            query(f"{name}.next_due", FOR_REMIT)(self.next_due),
            query(f"{name}.expired", FOR_REMIT)(self.expired),
            query(f"{name}.under_way", FOR_REMIT)(self.under_way),
        )

    def readies(
        self, name: str, statement: Statement[R], line: str
    ) -> Verb[[], list[tuple[str, str]]]:
        """Declare the query `name.ready`: the rows that can be claimed, each with the line that it
        waits in."""

        def ready(ctx: Context) -> list[tuple[str, str]]:
            rows = ctx.tx.all(statement, limit=MOST_AT_ONCE)
            return [(getattr(row, self._rows.key.name), getattr(row, line)) for row in rows]

        return query(f"{name}.ready", FOR_REMIT)(ready)

    def _keys(self, rows: Sequence[R]) -> list[Held]:
        return [(getattr(row, self._rows.key.name), row.epoch) for row in rows]


class Deliveries(Queue[D]):
    """A queue of deliveries to the outside: each is retried under the same id until it succeeds, or
    is dead after some attempts and awaits a person."""

    def __init__(
        self,
        rows: StatusQueue[D],
        *,
        delivered: str,
        failed: str,
        about: Callable[[D], dict[str, object]],
    ) -> None:
        """`delivered` and `failed` are names of events; `about` returns their details for a row."""
        super().__init__(rows)
        self._delivered, self._failed, self._about = delivered, failed, about

    def entered(self, ctx: Context, item: str) -> D:
        """Return a row, after entering its company; for Remit itself."""
        system_only(ctx)
        key = {self._rows.noun: item}
        row = ctx.tx.existing(self._rows.row, **key)
        ctx.enter(row.company_id)
        ctx.require(Action.RUN_CHANGE, on=self._on(item))
        again = ctx.tx.one(self._rows.row, **key)  # waiting for the lock may have taken a while
        assert again is not None
        return again

    def begin(self, ctx: Context, item: str, worker: str, lease: Micros) -> D | None:
        """Claim a row and return it; None if another worker has it."""
        self.entered(ctx, item)
        ctx.lock_company()
        if not self.claim(ctx, item, worker, lease):
            return None
        return ctx.tx.existing(self._rows.row, **{self._rows.noun: item})

    def delivered(self, ctx: Context, item: str, epoch: int) -> shapes.EndedShape:
        """End a row as delivered."""
        row = self.entered(ctx, item)
        self._end(ctx, (item, epoch), DeliveryStatus.DONE, "delivered")
        return self._said(ctx, self._delivered, item, DeliveryStatus.DONE, self._about(row))

    def failed(
        self,
        ctx: Context,
        item: str,
        epoch: int,
        why: str,
        for_good: bool = False,
        backoff: Sequence[Micros] = BACKOFF,
        retry_after: Micros | None = None,
        most: int = MOST_ATTEMPTS,
        patient: bool = True,
    ) -> shapes.EndedShape:
        """Requeue a failed row for later, or end it as dead: `for_good`, or after `most` attempts.

        `retry_after` is the pause that the receiver asked for; while `patient`, such an attempt
        does not count."""
        row, why = self.entered(ctx, item), why[:_LONGEST_WHY]
        status = DeliveryStatus.QUEUED
        usual = backoff[min(row.attempt, len(backoff)) - 1]
        pause = usual if retry_after is None else retry_after
        due = ctx.now + min(pause, self._rows.longest_pause or pause)
        if retry_after is not None and patient and not for_good:
            self.fenced(ctx, self._rows.wait, (item, epoch), due=due, why=why)
        elif for_good or row.attempt >= most:
            status = DeliveryStatus.DEAD
            self._end(ctx, (item, epoch), status, why)
        else:
            self.fenced(ctx, self._rows.retry, (item, epoch), due=due, why=why)
        return self._said(ctx, self._failed, item, status, {**self._about(row), "why": why})

    def take_over(
        self,
        ctx: Context,
        item: str,
        epoch: int,
        *,
        alone: bool,
        until: Micros | None = None,
        for_good: bool = False,
        most: int = MOST_ATTEMPTS,
        gave_up: GaveUp[D] | None = None,
    ) -> shapes.EndedShape:
        """Take a row from a silent worker and retry it; it may have been delivered, so the id stays
        the same.

        `until` is the end of the lease when the worker was last heard of; without it, the lease
        must have expired. With `alone` there is no other process, so the holder is gone. `gave_up`
        is called if the row is dead now.
        """
        row = self.entered(ctx, item)
        is_over = alone or until is not None or (row.lease_until or 0) <= ctx.now
        if row.epoch != epoch or not is_over:
            raise self.lost()
        if until is not None:
            self.seize(ctx, (item, epoch), until)
        why = f"{row.worker} stopped responding; {MAY_HAVE_IT}"
        answer = self.failed(ctx, item, epoch, why, for_good=for_good, backoff=(0,), most=most)
        return _told(ctx, row, why, answer, gave_up)

    def put_back(self, ctx: Context, event: str, item: str, epoch: int) -> shapes.EndedShape:
        """Requeue a row because its process stops."""
        row, why = self.entered(ctx, item), f"its process was stopped; {MAY_HAVE_IT}"
        self.fenced(ctx, self._rows.wait, (item, epoch), due=ctx.now, why=why)
        return self._said(ctx, event, item, DeliveryStatus.QUEUED, self._about(row))

    def claims(
        self, name: str, usual: Micros, brief: Callable[[Context, D], B]
    ) -> Verb[..., B | None]:
        """Declare `begin` as the verb `name.claim`, which returns a `brief` of the row, or None if
        another worker has it."""

        def claim(ctx: Context, item: str, *, worker: str, lease: Micros = usual) -> B | None:
            row = self.begin(ctx, item, worker, lease)
            return None if row is None else brief(ctx, row)

        return logged(f"{name}.claim", FOR_REMIT)(self._by_noun(claim))

    def fails(
        self,
        name: str,
        *declared: Declared,
        usual: tuple[Micros, ...] = BACKOFF,
        most: int = MOST_ATTEMPTS,
        once: Callable[[Context, D], bool] = lambda _ctx, _item: False,
        patient: Callable[[Context, D], bool] = lambda _ctx, _item: True,
        gave_up: GaveUp[D] | None = None,
    ) -> Verb[..., Answer]:
        """Declare `failed` as the verb `name.failed`. A row of which `once` is true is retried only
        if the receiver asked for a pause; such a pause costs no attempt while `patient` is true of
        the row. `gave_up` is called if the row is dead now."""

        def failed(
            ctx: Context,
            item: str,
            *,
            epoch: int,
            why: str,
            for_good: bool = False,
            backoff: tuple[Micros, ...] = usual,
            retry_after: Micros | None = None,
        ) -> shapes.EndedShape:
            row = self.entered(ctx, item)
            # A receiver that asks for a pause has not taken it.
            for_good = for_good or (retry_after is None and once(ctx, row))
            failure = (item, epoch, why, for_good, backoff, retry_after, most, patient(ctx, row))
            return _told(ctx, row, why, self.failed(ctx, *failure), gave_up)

        return self._verb(f"{name}.failed", failed, *declared)

    def takes_over(
        self, name: str, *, most: int = MOST_ATTEMPTS, gave_up: GaveUp[D] | None = None
    ) -> Verb[..., Answer]:
        """Declare `take_over` as the verb `name.take_over`."""

        def take_over(
            ctx: Context, item: str, *, epoch: int, alone: bool = False, until: Micros | None = None
        ) -> shapes.EndedShape:
            ended: Any = {"most": most, "gave_up": gave_up}
            return self.take_over(ctx, item, epoch, alone=alone, until=until, **ended)

        return self._verb(f"{name}.take_over", take_over, Added("until", None))

    def puts_back(self, name: str, event: str) -> Verb[..., Answer]:
        """Declare `put_back` as the verb `name.put_back`."""

        def put_back(ctx: Context, item: str, *, epoch: int) -> shapes.EndedShape:
            return self.put_back(ctx, event, item, epoch)

        return self._verb(f"{name}.put_back", put_back)

    def _verb(
        self, name: str, body: Callable[..., shapes.EndedShape], *declared: Declared
    ) -> Verb[..., Answer]:
        return command(name, FOR_REMIT, *declared)(self._by_noun(body))

    def _by_noun(self, body: Callable[..., T]) -> Callable[..., T]:
        """Return the body of a verb whose parameter `item` is called by the noun of the queue."""
        noun = self._rows.noun

        @wraps(body)
        def called(ctx: Context, **arguments: Any) -> T:
            return body(ctx, arguments.pop(noun), **arguments)

        own = signature(body)
        named = [
            parameter.replace(name=noun, kind=parameter.KEYWORD_ONLY)
            if parameter.name == "item"
            else parameter
            for parameter in own.parameters.values()
        ]
        called.__signature__ = own.replace(parameters=named)  # type: ignore[attr-defined]
        return called

    def close(self, ctx: Context, item: str, status: DeliveryStatus, why: str) -> None:
        """End a row, whether it is leased or not."""
        ended = {"new_status": status.value, "now": ctx.now, "why": why}
        ctx.tx.run(self._rows.close, **{self._rows.noun: item}, **ended)

    def _end(self, ctx: Context, held: Held, status: DeliveryStatus, why: str) -> None:
        self.fenced(ctx, self._rows.end, held, new_status=status.value, now=ctx.now, why=why)

    def _said(
        self,
        ctx: Context,
        event: str,
        item: str,
        status: DeliveryStatus,
        details: dict[str, object],
    ) -> shapes.EndedShape:
        ctx.record(event, self._on(item), details)
        return {"id": item, "status": status.value}

    def _on(self, item: str) -> str:
        return f"{self._rows.noun}:{item}"


def _told(
    ctx: Context, row: D, why: str, answer: shapes.EndedShape, gave_up: GaveUp[D] | None
) -> shapes.EndedShape:
    if gave_up is not None and answer["status"] == DeliveryStatus.DEAD.value:
        gave_up(ctx, row, why)
    return answer
