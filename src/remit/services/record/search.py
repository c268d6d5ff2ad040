"""Search of outcomes and events, newest first."""

import contextlib

from remit.authority import Action
from remit.clock import Micros
from remit.errors import BadInput, NotFound
from remit.ids import END_OF_IDS
from remit.model.event import Event
from remit.model.organisation.principal import ActorKind
from remit.model.text import canonical, clean_text, name_key
from remit.model.work.outcome import OutcomeStatus
from remit.services import lookup, shapes, views
from remit.services.command import Context, query
from remit.services.subjects import require_outcomes_of
from remit.services.verbs import Added
from remit.services.work import after_run
from remit.store.organisation import people
from remit.store.record import events as log
from remit.store.record import search

#: Greater than every id.
LONGEST_WORDS = 200
#: How many events one search reads at most; the next one continues from there.
STRETCH = 20_000
_NEWEST = 1 << 62
_REMIT = frozenset({"remit", "system"})


@query("searching.outcomes", Added("stale", False))
def outcomes(
    ctx: Context,
    *,
    company: str | None = None,
    owner: str | None = None,
    status: str | None = None,
    actionable: bool = False,
    stale: bool = False,
    roots: bool = False,
    words: object = "",
    before: str = END_OF_IDS,
    limit: int = 50,
) -> list[shapes.OutcomeShape]:
    """Search the outcomes of a company or of one owner by status and title. `stale` selects those
    that stand still after all their reviews.

    For callers who may read others' outcomes: a member over a part names an owner in it.
    """
    text = clean_text(words, "query", longest=LONGEST_WORDS, empty_ok=True).strip()
    if status is not None and status not in set(OutcomeStatus):
        raise BadInput("status must be open, completed or closed.", "Choose one of these.")
    lookup.company_of_caller(ctx, company)
    whose = lookup.agent(ctx, owner).id if owner else ctx.actor.agent_id
    require_outcomes_of(ctx, whose)
    wanted: dict[str, object] = {
        "company": ctx.company,
        "before": before,
        "status": status or "",
        "any_status": status is None,
        "parts_too": not roots,
        "blocked_too": not actionable,
        "least_reviews": len(after_run.reviews_of(ctx)) + 1 if stale else 0,
        "now": ctx.now,
        "any_title": not text,
        "title": search.containing(text),
        "lower_title": search.containing(text.lower()),
        "limit": limit,
    }
    if whose is None:
        rows = ctx.tx.all(search.OUTCOMES_NEWEST, **wanted)
    else:
        rows = ctx.tx.all(search.OUTCOMES_OF_NEWEST, owner=whose, **wanted)
    return [views.outcome(outcome, ctx.now) for outcome in rows]


@query("searching.events", Added("words", ""), Added("since", None), Added("until", None))
def events(
    ctx: Context,
    *,
    company: str | None,
    action: object = "",
    actor: object = "",
    refused: bool = False,
    words: object = "",
    since: Micros | None = None,
    until: Micros | None = None,
    before: int | None = None,
    limit: int = 50,
) -> shapes.FoundEventsShape:
    """Search events, newest first: by kind (`file`, `file.write`), actor, refusal, words in them or
    in the name of their subject, and time.

    `before` of the answer continues the search: there may be more, even if nothing was found in the
    stretch that was read.
    """
    verb = clean_text(action, "action", longest=100, empty_ok=True).strip()
    name = clean_text(actor, "actor", longest=LONGEST_WORDS, empty_ok=True).strip()
    text = clean_text(words, "query", longest=LONGEST_WORDS, empty_ok=True).strip()
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.EVENT_READ, on="events")
    oldest, end, last = stretch(ctx, since, until)
    end = min(before or _NEWEST, end)
    filtered = bool(verb or name or refused or text)
    first = max(oldest, end - STRETCH) if filtered else oldest
    page = among(ctx, first, end, limit, action=verb, actor=name, refused=refused, words=text)
    following = page[-1].seq if len(page) == limit else first
    return {
        "events": [views.event(event) for event in page],
        "before": following if following > oldest else None,
        "last": last,
    }


def stretch(ctx: Context, since: Micros | None, until: Micros | None) -> tuple[int, int, int]:
    """Return the part of the record between two times: its first position, the one after it, and
    the newest."""
    head = ctx.tx.one(log.READ_HEAD)
    last = head.seq if head else 0
    first = 1 if since is None else _place(ctx, since, last)
    return first, last + 1 if until is None else _place(ctx, until, last), last


def among(
    ctx: Context,
    first: int,
    before: int,
    limit: int,
    *,
    action: str = "",
    actor: str = "",
    refused: bool = False,
    words: str = "",
) -> list[Event]:
    """Return the events of a part of the record that match, newest first."""
    kind, who = _actor(ctx, actor) if actor else ("", "")
    kept = canonical(words)[1:-1]  # as it is escaped in the stored details
    return ctx.tx.all(
        search.EVENTS_AMONG,
        before=before,
        first=first,
        any_action=not action,
        action=action,
        noun=search.containing(action)[1:-1] + ".%",
        any_actor=not actor,
        kind=kind,
        actor=who,
        allowed_too=not refused,
        any_words=not words,
        words=search.containing(kept),
        lower_details=search.containing(kept.lower()),
        lower_words=search.containing(words.lower()),
        limit=limit,
    )


def _place(ctx: Context, moment: Micros, last: int) -> int:
    """Binary search: the first position at or after a time; times grow with positions."""
    low, high = 1, last + 1
    while low < high:
        middle = (low + high) // 2
        at = ctx.tx.one(log.AT_PLACE, seq=middle)
        if at is None or at >= moment:
            high = middle
        else:
            low = middle + 1
    return low


def _actor(ctx: Context, text: str) -> tuple[str, str]:
    """Return the actor that a text names: an agent, even a terminated one, a person of the company,
    or Remit itself."""
    if text.lower() in _REMIT:
        return ActorKind.SYSTEM.value, ""
    if not text.startswith("user:"):
        with contextlib.suppress(NotFound, BadInput):
            return ActorKind.AGENT.value, lookup.agent_ever(ctx, text).id
    name = text.removeprefix("user:")
    user = ctx.tx.one(people.USER_BY_NAME, name_key=name_key(name)) or ctx.tx.one(
        people.USER, user=name
    )
    if user is None or not ctx.tx.one(people.MEMBERSHIP, user=user.id):
        raise NotFound(f"There is nobody named {text[:64]!r} here.", "Name an agent or a person.")
    return ActorKind.USER.value, user.id
