"""The record: list it, verify it, and trace an effect back to the person who authorised it; and the
company as of a time: grants, the tree, versions of files."""

import re
from contextlib import suppress
from typing import Annotated

from remit.authority import Action
from remit.clock import Micros, from_iso
from remit.errors import BadInput, NotFound
from remit.ids import is_id, normalise
from remit.model.event import Event
from remit.model.messaging.mail import Message
from remit.model.organisation.principal import ActorKind
from remit.services import lookup, shapes, views
from remit.services.command import FOR_REMIT, Context, logged, query
from remit.services.fields import CompanyRef, Help, Reference, Text
from remit.services.messaging import origins
from remit.services.record.evidence import Evidence
from remit.services.subjects import require_file
from remit.services.surfaces import AsRoute
from remit.services.verbs import Added
from remit.store.execution import runs as run_statements
from remit.store.organisation import agents as agent_statements
from remit.store.organisation import grants as grant_statements
from remit.store.record import events as log
from remit.store.work import files as file_statements
from remit.store.work import outcomes as outcome_statements

_HASH = re.compile(r"[0-9a-f]{64}")
#: A longer trace means that something is wrong with the data.
LONGEST_WALK = 100


@query("events.listing")
def listing(
    ctx: Context,
    *,
    company: str | None,
    after: int | None = None,
    before: int | None = None,
    limit: int = 100,
) -> list[shapes.EventShape]:
    """List events, newest first; with `after`, those after that event, oldest first."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.EVENT_READ, on="events")
    if after is not None:
        page = ctx.tx.all(log.EVENTS_AFTER, after=after, limit=limit)
    else:
        page = ctx.tx.all(log.EVENTS_BEFORE, before=before or 1 << 62, limit=limit)
    return [views.event(event) for event in page]


@query("events.verify", AsRoute("GET /companies/{companyId}/events/verify", "verify_events"))
def verify(
    ctx: Context,
    *,
    company: CompanyRef | None,
    expect: Annotated[str, Text(64), Help("A hash from an earlier check; it must be there.")]
    | None = None,
) -> shapes.VerifiedShape:
    """Whether the company's record is whole, and every approval and token as the record says; if
    not, which event shows it.

    Who can write to the database can rebuild the chain of hashes. `expect` detects that too: a hash
    that was kept elsewhere, which must be in the chain.
    """
    if expect is not None and not _HASH.fullmatch(expect):
        raise BadInput("expect must be 64 hex digits.", "Give a hash that verify printed.")
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.EVENT_VERIFY, on="events")
    evidence = Evidence()
    seen, last, faults = log.verify(ctx.tx, ctx.company or "", expect, evidence.see)
    faults += evidence.faults(ctx)
    return {
        "company_id": ctx.company,
        "ok": not faults,
        "events": seen,
        "hash": last,
        "faults": [
            {"seq": fault.seq, "kind": fault.kind, "sentence": fault.sentence} for fault in faults
        ],
    }


@query("events.why", AsRoute("GET /events/{id}/why", "explain_event"))
def why(ctx: Context, *, event: Annotated[str, Reference("event")]) -> shapes.ExplanationShape:
    """The steps from an event back to the person who made it possible, and to the letter of a
    person that led to it. For an outcome, those from its creation."""
    start = _find(ctx, event)
    ctx.require(Action.EVENT_READ, on=f"event:{start.id}")
    steps: list[shapes.ExplainedEventShape] = []
    current: Event | None = start
    walked: set[int] = set()
    while current is not None and current.seq not in walked and len(steps) < LONGEST_WALK:
        walked.add(current.seq)
        steps.append({**views.event(current), "who": _who(ctx, current)})
        current = None if current.actor_kind is ActorKind.USER else _authorising(ctx, current)
    authorised_by = None
    if steps and steps[-1]["actor"].startswith("user:"):
        authorised_by = steps[-1]["who"]
    wish = _wish(ctx, start)
    if wish is not None:
        sent = _first(ctx, f"message:{wish.id}", 1 << 62)
        if sent is not None and sent.seq not in walked:
            steps.append({**views.event(sent), "who": _who(ctx, sent)})
    return {
        "event_id": start.id,
        "steps": steps,
        "authorised_by": authorised_by,
        "wish": None if wish is None else _letter(ctx, wish),
    }


def _wish(ctx: Context, event: Event) -> Message | None:
    """Return the person's letter that led to an event: behind its outcome, or behind its run."""
    kind, _, subject = event.resource.partition(":")
    letter = None
    if kind == "outcome":
        letter = origins.of_outcome(ctx, subject)
    elif kind == "message" and (message := lookup.message_row(ctx, subject)) is not None:
        letter = origins.of_message(message)
    if letter is None and event.run_id is not None:
        run = ctx.tx.one(run_statements.RUN, run=event.run_id)
        letter = origins.of_run(ctx, run) if run is not None else None
    return None if letter is None else lookup.message_row(ctx, letter)


def _letter(ctx: Context, wish: Message) -> shapes.CausingLetterShape:
    return {
        "message_id": wish.id,
        "subject": wish.subject,
        "by": lookup.user_name(ctx, wish.sender_user_id or "", "somebody"),
        "at": views.time(wish.created_at),
    }


def _authorising(ctx: Context, event: Event) -> Event | None:
    """Return the event that made this one possible: that of its grant, or of its actor's
    creation."""
    kind, _, basis = event.basis.partition(":")
    if kind == "grant" and (grant_event := _first(ctx, f"grant:{basis}", event.seq)):
        return grant_event
    # No grant: a rule allows it, or the actor made the file itself.
    if event.actor_kind is ActorKind.AGENT:
        return _first(ctx, f"agent:{event.actor_id}", event.seq)
    return None


def _first(ctx: Context, resource: str, before: int) -> Event | None:
    for event in ctx.tx.all(log.EVENTS_ON, resource=resource, limit=20):
        if event.allowed and event.seq < before:
            return event
    return None


def _who(ctx: Context, event: Event) -> str:
    if event.actor_kind is ActorKind.USER:
        return f"user:{lookup.user_name(ctx, event.actor_id, event.actor_id)}"
    if event.actor_kind is ActorKind.AGENT:
        agent = ctx.tx.one(agent_statements.AGENT_ANYWHERE, agent=event.actor_id)
        return f"agent:{agent.name}" if agent else f"agent:{event.actor_id}"
    return "remit"


def _creation(ctx: Context, outcome: str) -> Event | None:
    """Return the first event of an outcome, if the caller may enter its company."""
    known = ctx.tx.one(outcome_statements.OUTCOME_ANYWHERE, outcome=outcome)
    if known is None:
        return None
    with suppress(NotFound):
        ctx.enter(known.company_id)
        return _first(ctx, f"outcome:{outcome}", 1 << 62)
    return None


def _find(ctx: Context, text: str) -> Event:
    prefix = normalise(text.removeprefix("outcome:"))
    event = ctx.tx.one(log.EVENT_ANYWHERE, event=prefix)
    if event is None and is_id(prefix):
        event = _creation(ctx, prefix)
    if event is not None:
        try:
            ctx.enter(event.company_id)
        except NotFound:
            raise NotFound.of("event") from None
        return event
    lookup.enter_by(ctx, "event", prefix)
    if not ctx.decide(Action.EVENT_READ).allowed:
        raise NotFound.of("event")  # a prefix must not reveal which events exist
    events = lookup.matching(ctx, _EVENT, prefix)
    if not events:
        # The short id of an outcome leads to the event of its creation.
        ids = lookup.with_short_id(ctx, ctx.company, "outcome", prefix)
        creations = (_first(ctx, f"outcome:{outcome_id}", 1 << 62) for outcome_id in ids)
        events = [creation for creation in creations if creation is not None]
    return lookup.only(events, "event")


_EVENT = lookup.Noun("event", log.EVENT_ANYWHERE, log.EVENTS_BY_PREFIX)


# ── as of a time ────────────────────────────────────────────────────────────────────────────────


@query("history.grants_at", Added("besides_mail", False))
def grants_at(
    ctx: Context,
    *,
    company: str | None,
    at: str,
    agent: str | None = None,
    besides_mail: bool = False,
    after: str = "",
    limit: int = 100,
) -> list[shapes.GrantShape]:
    """List the grants that were live at a time, of one agent or of everybody. `besides_mail` leaves
    out the grants that came by mail."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.EVENT_READ, on="grants")
    holder = lookup.agent_ever(ctx, agent).id if agent else None
    live = grant_statements.LIVE_AT_BESIDES_MAIL if besides_mail else grant_statements.LIVE_AT
    grants = ctx.tx.all(live, at=_past(ctx, at), holder=holder, after=after, limit=limit)
    return [views.grant(grant) for grant in grants]


@query("history.org_at")
def org_at(ctx: Context, *, company: str | None, at: str) -> list[shapes.PastPlaceShape]:
    """List the places in the tree of agents as of a time."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.EVENT_READ, on="org")
    places: list[shapes.PastPlaceShape] = []
    for place in ctx.tx.all(agent_statements.PLACES_AT, at=_past(ctx, at)):
        # Agents are never deleted.
        agent = lookup.known_agent(ctx, place.agent_id)
        places.append(
            {
                "id": agent.id,
                "name": agent.name,
                "role": agent.role.value,
                "reports_to": place.boss_id,
                "boss_user_id": place.boss_user_id,
                "since": views.time(place.since),
            }
        )
    return places


@query("history.version_at")
def version_at(ctx: Context, *, file: str, at: str) -> int:
    """Return the number of the version that a file had at a time."""
    file_row = lookup.file(ctx, file)
    require_file(ctx, Action.FILE_READ, file_row)
    number = ctx.tx.one(file_statements.VERSION_AT, file=file_row.id, at=_past(ctx, at))
    if number is None:
        raise NotFound("The file did not exist then.", "Choose a later time.")
    return int(number)


def _past(ctx: Context, text: str) -> Micros:
    at = from_iso(text)
    if at > ctx.now:
        raise BadInput("That time has not come yet.", "Choose a time in the past.")
    return at


@logged("maintenance.forget_answers", FOR_REMIT)
def forget_answers(ctx: Context, *, before: Micros) -> int:
    """Delete stored answers to idempotency keys that are too old for a retry. They are not part of
    the record."""
    return ctx.tx.run(log.FORGET_ANSWERS, before=before)
