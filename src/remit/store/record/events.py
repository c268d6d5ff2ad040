"""The event log as a hash chain, so that a change to the past shows: append, list, verify."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace

from sqlalchemy import and_, func, insert, literal, select, true
from sqlalchemy import bindparam as bind

from remit.errors import NotFound
from remit.model.event import GENESIS, Event
from remit.model.text import digest_of
from remit.store.engine.database import Delayed, Transaction
from remit.store.engine.statement import Rows, Statement, change, into, new, row, scalar, unless
from remit.store.tables import answers, approvals, companies, event_heads, events


@dataclass(frozen=True, slots=True)
class Head:
    """The last event of a company's chain."""

    seq: int
    hash: str


_HEADS = Rows(Head, "company_id", table=event_heads)
#: Reading the head for a write locks it on PostgreSQL: commands of one company take turns.
LOCK_HEAD = Statement(_HEADS.select(company_id="company").with_for_update(), into(Head))
#: Number and hash of the newest event of a company.
READ_HEAD = _HEADS.one(company_id="company")
#: Makes another event the head of the chain.
MOVE_HEAD = _HEADS.update(event_heads.c.company_id == bind("company"), **new("seq", "hash"))
#: Adds an event.
INSERT_EVENT = change(insert(events))
_EVENTS = Rows(Event, "seq")
#: A page of a company's events, oldest first.
EVENTS_AFTER = _EVENTS.after(company_id="company")
#: A page of a company's events, newest first.
EVENTS_BEFORE = _EVENTS.before(company_id="company")
#: The time of the first event from a place in the record on.
AT_PLACE = Statement(
    select(events.c.at)
    .where(events.c.company_id == bind("company"), events.c.seq >= bind("seq"))
    .order_by(events.c.seq)
    .limit(1),
    scalar,
)
#: A page of the events of one run, oldest first.
OF_RUN = _EVENTS.after(run_id="run", company_id="company")
#: The first events about one thing, oldest first.
EVENTS_ON = _EVENTS.find(company_id="company", resource="resource", limit=bind("limit"))
#: The newest events about one thing.
NEWEST_ON = _EVENTS.find(
    company_id="company", resource="resource", order=[events.c.seq.desc()], limit=bind("limit")
)
#: A page of events about one thing, newest first, refusals too or not.
ON_BEFORE = _EVENTS.before(
    unless("refused_too", events.c.allowed == true()), company_id="company", resource="resource"
)
#: Whether an allowed event of an action on a resource exists.
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
#: Whether an allowed event of an action on a resource exists in any company.
HAPPENED_ANYWHERE = _EVENTS.any(
    # Each company's part of the index is looked up.
    events.c.company_id.in_(select(companies.c.id)),
    events.c.allowed == true(),
    resource="resource",
    action="action",
)
#: The newest allowed event of an action on a resource.
LAST_OF = _EVENTS.find(
    events.c.allowed == true(),
    company_id="company",
    resource="resource",
    action="action",
    order=[events.c.seq.desc()],
    limit=1,
)
#: Whether a person did anything in a company since a time.
HAS_ACTED = _EVENTS.any(
    events.c.actor_kind == literal("user"),
    events.c.at >= bind("since"),
    events.c.allowed == true(),
    company_id="company",
    actor_id="user",
)
#: Allowed events of an action on a resource whose details contain a text.
DONE_ABOUT = _EVENTS.find(
    events.c.allowed == true(),
    events.c.details.like(bind("about")),
    company_id="company",
    resource="resource",
    action="action",
)
#: Actions that record the digest of a request.
SUBMITTING = ("approval.request", "approval.resubmit", "approval.import", "approval.adopt")
_submitting = and_(
    events.c.company_id == bind("company"),
    events.c.allowed == true(),
    events.c.action.in_([literal(action) for action in SUBMITTING]),
)
#: The events in which a request was submitted, oldest first.
SUBMISSIONS = _EVENTS.find(_submitting, resource="resource", order=[events.c.seq])
#: The events in which a request was approved, oldest first.
APPROVED = _EVENTS.find(
    events.c.action == literal("approval.approve"),
    events.c.allowed == true(),
    resource="resource",
    order=[events.c.seq],
)
#: The events in which the requests that await a decision were submitted, oldest first.
SUBMISSIONS_OF_PENDING = _EVENTS.find(
    _submitting,
    approvals.c.company_id == bind("company"),
    approvals.c.status == literal("pending"),
    join=(approvals, events.c.resource == literal("approval:").concat(approvals.c.id)),
    order=[events.c.seq],
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
#: The company's events whose ids lie between two.
EVENTS_BY_PREFIX = _EVENTS.find(
    events.c.id >= bind("low"), events.c.id < bind("high"), company_id="company", order=(), limit=20
)
#: One event by id, of any company.
EVENT_ANYWHERE = _EVENTS.one(id="event")

# First answers to idempotency keys


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    verb: str
    version: int
    digest: str
    answer: str


_ANSWERS = Rows(StoredAnswer, "key", table=answers)
#: Keeps the answer to a call, for repeats of it.
INSERT_ANSWER = change(insert(answers))
#: The stored answer to a caller's key.
ANSWER = _ANSWERS.one(actor="actor", key="key")
#: Deletes stored answers that are older than a time.
FORGET_ANSWERS = _ANSWERS.delete(answers.c.created_at < bind("before"))


_HASHED = tuple(field.name for field in fields(Event) if field.name != "hash")


def event_hash(event: Event) -> str:
    """Hash every field but `hash` itself and, through `prev_hash`, all earlier events."""
    return digest_of({name: getattr(event, name) for name in _HASHED})


def tells_of(event: Event, **fields: object) -> bool:
    """Return whether an event is unchanged and has these values among its details."""
    if event_hash(event) != event.hash:
        return False
    details = json.loads(event.details)
    return all(details.get(name) == value for name, value in fields.items())


class Chain(Delayed):
    """A company's chain of events, locked, as one transaction makes it longer."""

    tables = frozenset({events.name, event_heads.name})

    def __init__(self, transaction: Transaction, company: str) -> None:
        head = transaction.one(LOCK_HEAD, company=company)
        if head is None:
            raise NotFound("There is no such company.")
        transaction.undisturbed = True
        self._transaction = transaction
        self._company = company
        self.head = head
        self._new: list[Event] = []

    def append(self, event: Event) -> None:
        """Chain the event to the head."""
        linked = replace(event, seq=self.head.seq + 1, prev_hash=self.head.hash, hash="")
        linked = replace(linked, hash=event_hash(linked))
        self.head = Head(linked.seq, linked.hash)
        self._new.append(linked)
        self._transaction.delay(self)

    def store(self, transaction: Transaction) -> None:
        new, self._new = self._new, []
        transaction.run_for_each(INSERT_EVENT, [row(event) for event in new])
        head = {"new_seq": self.head.seq, "new_hash": self.head.hash}
        transaction.run(MOVE_HEAD, company=self._company, **head)


@dataclass(frozen=True, slots=True)
class Fault:
    """One place at which the chain is broken, or a row that the chain does not bear out."""

    #: The event that shows it; 0 where there is none.
    seq: int
    kind: str
    sentence: str


_PAGE = 1_000
_MOST_FAULTS = 100


def verify(
    transaction: Transaction,
    company_id: str,
    expected: str | None = None,
    see: Callable[[Event], None] = lambda _event: None,
) -> tuple[int, str, list[Fault]]:
    """Verify a company's whole chain; returns the number of events, the last hash and faults.
    `see` is called with each event."""
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
        see(event)
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
