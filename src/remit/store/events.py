"""The event log: append, list, verify."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlalchemy import Boolean, and_, delete, func, insert, literal, or_, select, true, update
from sqlalchemy import bindparam as bind

from remit.model.event import GENESIS, Event, event_hash
from remit.store.database import Transaction
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import answers, event_heads, events


@dataclass(frozen=True, slots=True)
class Head:
    """The last event of a company's chain."""

    seq: int
    hash: str


#: Reading the head for a write locks it on PostgreSQL: commands of one company take turns.
LOCK_HEAD = Statement(
    select(event_heads.c.seq, event_heads.c.hash)
    .where(event_heads.c.company_id == bind("company"))
    .with_for_update(),
    into(Head),
)
READ_HEAD = Statement(
    select(event_heads.c.seq, event_heads.c.hash).where(
        event_heads.c.company_id == bind("company")
    ),
    into(Head),
)
MOVE_HEAD = change(
    update(event_heads)
    .where(event_heads.c.company_id == bind("company"))
    .values(seq=bind("new_seq"), hash=bind("new_hash"))
)
INSERT_EVENT = change(insert(events))
_all = columns(events, Event)
EVENTS_AFTER = Statement(
    select(*_all)
    .where(events.c.company_id == bind("company"), events.c.seq > bind("after"))
    .order_by(events.c.seq)
    .limit(bind("limit")),
    into(Event),
)
EVENTS_BEFORE = Statement(
    select(*_all)
    .where(events.c.company_id == bind("company"), events.c.seq < bind("before"))
    .order_by(events.c.seq.desc())
    .limit(bind("limit")),
    into(Event),
)
EVENTS_ON = Statement(
    select(*_all)
    .where(events.c.company_id == bind("company"), events.c.resource == bind("resource"))
    .order_by(events.c.seq)
    .limit(bind("limit")),
    into(Event),
)
NEWEST_ON = Statement(
    select(*_all)
    .where(events.c.company_id == bind("company"), events.c.resource == bind("resource"))
    .order_by(events.c.seq.desc())
    .limit(bind("limit")),
    into(Event),
)
ON_BEFORE = Statement(
    select(*_all)
    .where(
        events.c.company_id == bind("company"),
        events.c.resource == bind("resource"),
        events.c.seq < bind("before"),
        or_(bind("refused_too", type_=Boolean) == true(), events.c.allowed == true()),
    )
    .order_by(events.c.seq.desc())
    .limit(bind("limit")),
    into(Event),
)
#: Whether something was done to a thing.
HAPPENED = Statement(
    select(events.c.id)
    .where(
        events.c.company_id == bind("company"),
        events.c.resource == bind("resource"),
        events.c.action == bind("action"),
        events.c.allowed == true(),
    )
    .limit(1),
    scalar,
)
#: The last time that something was done.
LAST_OF = Statement(
    select(*_all)
    .where(
        events.c.company_id == bind("company"),
        events.c.resource == bind("resource"),
        events.c.action == bind("action"),
        events.c.allowed == true(),
    )
    .order_by(events.c.seq.desc())
    .limit(1),
    into(Event),
)
_pausing = and_(
    events.c.company_id == bind("company"),
    events.c.resource == bind("resource"),
    events.c.allowed == true(),
)
_resumed = select(func.coalesce(func.max(events.c.seq), 0)).where(
    _pausing,
    events.c.action.in_([literal(f"agent.{verb}") for verb in ("resume", "start", "restart")]),
)
#: The kinds of those who paused an agent since it was last resumed.
PAUSED_BY = Statement(
    select(events.c.actor_kind)
    .where(
        _pausing,
        events.c.action.in_([literal("agent.pause"), literal("agent.stop")]),
        events.c.seq > _resumed.scalar_subquery(),
    )
    .distinct(),
    scalar,
)
EVENTS_BY_PREFIX = Statement(
    select(*_all)
    .where(
        events.c.company_id == bind("company"),
        events.c.id >= bind("low"),
        events.c.id < bind("high"),
    )
    .limit(20),
    into(Event),
)
EVENT_ANYWHERE = Statement(select(*_all).where(events.c.id == bind("event")), into(Event))
COUNT_EVENTS = Statement(select(func.count()).where(events.c.company_id == bind("company")), scalar)

# First answers to idempotency keys


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    verb: str
    version: int
    digest: str
    answer: str


INSERT_ANSWER = change(insert(answers))
ANSWER = Statement(
    select(answers.c.verb, answers.c.version, answers.c.digest, answers.c.answer).where(
        answers.c.actor == bind("actor"), answers.c.key == bind("key")
    ),
    into(StoredAnswer),
)
FORGET_ANSWERS = change(delete(answers).where(answers.c.created_at < bind("before")))


def append(transaction: Transaction, head: Head, event: Event) -> Head:
    """Chain the event to the head; answers the new head."""
    linked = replace(event, seq=head.seq + 1, prev_hash=head.hash, hash="")
    linked = replace(linked, hash=event_hash(linked))
    transaction.run(
        INSERT_EVENT, **{column.name: getattr(linked, column.name) for column in events.c}
    )
    transaction.run(MOVE_HEAD, company=linked.company_id, new_seq=linked.seq, new_hash=linked.hash)
    return Head(linked.seq, linked.hash)


@dataclass(frozen=True, slots=True)
class Fault:
    """One place at which the chain does not hold."""

    seq: int
    kind: str
    sentence: str


_PAGE = 1_000
_MOST_FAULTS = 100


def verify(
    transaction: Transaction, company_id: str, expected: str | None = None
) -> tuple[int, str, list[Fault]]:
    """Walk a company's whole chain: events seen, hash of the last one, what is wrong."""
    faults: list[Fault] = []
    found_expected = expected is None or expected == GENESIS
    expected_seq, previous = 1, GENESIS
    for event in _walk(transaction, company_id):
        if len(faults) >= _MOST_FAULTS:
            break
        if event.seq != expected_seq:
            gone = (
                f"event {expected_seq} is"
                if event.seq == expected_seq + 1
                else f"events {expected_seq} to {event.seq - 1} are"
            )
            faults.append(Fault(expected_seq, "removed", f"{gone} missing."))
        elif event.prev_hash != previous:
            faults.append(
                Fault(
                    event.seq,
                    "reordered",
                    f"event {event.seq} does not follow the event before it.",
                )
            )
        if event_hash(event) != event.hash:
            faults.append(Fault(event.seq, "changed", f"event {event.seq} was changed."))
        expected_seq, previous = event.seq + 1, event.hash
        found_expected = found_expected or event.hash == expected
    head = transaction.one(READ_HEAD, company=company_id) or Head(0, GENESIS)
    seen = expected_seq - 1
    if len(faults) < _MOST_FAULTS and (head.seq, head.hash) != (seen, previous):
        faults.append(
            Fault(
                seen + 1,
                "removed" if head.seq > seen else "changed",
                f"the chain ends at event {seen}, but its head says {head.seq}.",
            )
        )
    if not found_expected and not faults:
        faults.append(Fault(seen, "replaced", "the expected hash is nowhere in the chain."))
    return seen, previous, faults


def _walk(transaction: Transaction, company_id: str) -> Iterator[Event]:
    after = 0
    while page := transaction.all(EVENTS_AFTER, company=company_id, after=after, limit=_PAGE):
        yield from page
        after = page[-1].seq
