"""Looking for something among outcomes and in the record: the newest first, by what is wanted."""

from __future__ import annotations

import contextlib
from typing import Any

from remit.authority import Action
from remit.errors import BadInput, NotFound
from remit.model.outcome import OutcomeStatus
from remit.model.principal import ActorKind
from remit.model.text import clean_text, name_key
from remit.services import going_on, lookup, views
from remit.services.command import Context, query
from remit.services.verbs import Added
from remit.store import events as log
from remit.store import looking, people

#: Greater than every id.
END_OF_IDS = "g"
LONGEST_WORDS = 200
#: How much of the record one search goes through. Whoever wants more goes on from there.
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
) -> list[dict[str, Any]]:
    """The outcomes of a company or of one owner, by status and by what their titles contain;
    with `stale`, those that do not move although they were looked at again and again.

    For those who look at others: who has a part of the company names an owner in it.
    """
    text = clean_text(words, "query", longest=LONGEST_WORDS, empty_ok=True).strip()
    if status is not None and status not in set(OutcomeStatus):
        raise BadInput("status must be open, completed or closed.", "Choose one of these.")
    lookup.company_of_caller(ctx, company)
    whose = lookup.agent(ctx, owner).id if owner else ctx.actor.agent_id
    if ctx.actor.agent_id is None:
        ctx.require(Action.OUTCOME_READ, on="outcomes", home=whose)
    elif whose != ctx.actor.agent_id:
        ctx.require(Action.AGENT_CONTROL, on=f"agent:{whose}", place=ctx.place(whose))
    else:
        ctx.require(Action.COMPANY_READ, on="outcomes")
    wanted: dict[str, Any] = {
        "company": ctx.company,
        "before": before,
        "status": status or "",
        "any_status": status is None,
        "parts_too": not roots,
        "blocked_too": not actionable,
        "least_reviews": len(going_on.reviews_of(ctx)) + 1 if stale else 0,
        "now": ctx.now,
        "any_title": not text,
        "title": looking.containing(text),
        "lower_title": looking.containing(text.lower()),
        "limit": limit,
    }
    if whose is None:
        found = ctx.tx.all(looking.OUTCOMES_NEWEST, **wanted)
    else:
        found = ctx.tx.all(looking.OUTCOMES_OF_NEWEST, owner=whose, **wanted)
    return [views.outcome(one, ctx.now) for one in found]


@query("searching.events")
def events(
    ctx: Context,
    *,
    company: str | None,
    action: object = "",
    actor: object = "",
    refused: bool = False,
    before: int | None = None,
    limit: int = 50,
) -> dict[str, Any]:
    """What happened, newest first: of one kind (`file`, `file.write`), by one actor, or refused.

    `before` of the answer is where to go on: there may be more, also when nothing was found in the
    stretch that was gone through.
    """
    verb = clean_text(action, "action", longest=100, empty_ok=True).strip()
    name = clean_text(actor, "actor", longest=LONGEST_WORDS, empty_ok=True).strip()
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.EVENT_READ, on="events")
    head = ctx.tx.one(log.READ_HEAD, company=ctx.company)
    last = head.seq if head else 0
    end = min(before or _NEWEST, last + 1)
    filtered = bool(verb or name or refused)
    first = max(1, end - STRETCH) if filtered else 1
    kind, who = _actor(ctx, name) if name else ("", "")
    found = ctx.tx.all(
        looking.EVENTS_AMONG,
        company=ctx.company,
        before=end,
        first=first,
        any_action=not verb,
        action=verb,
        noun=looking.containing(verb)[1:-1] + ".%",
        any_actor=not name,
        kind=kind,
        actor=who,
        allowed_too=not refused,
        limit=limit,
    )
    following = found[-1].seq if len(found) == limit else first
    return {
        "events": [views.event(event) for event in found],
        "before": following if following > 1 else None,
        "last": last,
    }


def _actor(ctx: Context, text: str) -> tuple[str, str]:
    """Who is meant: an agent, also one that is gone, a person of the company, or Remit itself."""
    if text.lower() in _REMIT:
        return ActorKind.SYSTEM.value, ""
    if not text.startswith("user:"):
        with contextlib.suppress(NotFound, BadInput):
            return ActorKind.AGENT.value, lookup.agent_ever(ctx, text).id
    name = text.removeprefix("user:")
    user = ctx.tx.one(people.USER_BY_NAME, name_key=name_key(name)) or ctx.tx.one(
        people.USER, user=name
    )
    if user is None or not ctx.tx.one(people.MEMBERSHIP, company=ctx.company, user=user.id):
        raise NotFound(f"There is nobody named {text[:64]!r} here.", "Name an agent or a person.")
    return ActorKind.USER.value, user.id
