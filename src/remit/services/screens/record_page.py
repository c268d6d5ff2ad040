"""The record for people: a run is one line with its effects, and noise is left out."""

import json
from dataclasses import dataclass
from typing import Any, Final

from remit.authority import Action
from remit.clock import HOUR, Micros
from remit.model.event import Event
from remit.model.execution.run import Run
from remit.model.organisation.principal import ActorKind
from remit.services import lookup, shapes, views
from remit.services.command import Context, query
from remit.services.execution.running import entered, require_look
from remit.services.record import search
from remit.store.execution import runs as run_statements
from remit.store.record import events as log

#: How many events are read for one page of lines.
STRETCH: Final = 2_000
_PAGE: Final = 120
#: Effects of a run: how many are on its line, and how many are counted.
MOST_EFFECTS: Final = 4
MOST_COUNTED: Final = 200
#: Actions of Remit on many agents in a row; those of an hour share one line.
_ALIKE: Final = frozenset({"agent.check"})
#: Frequent actions without effect on others, left out unless they were refused.
_NOISE: Final = frozenset(
    {
        *("agent.read", "approval.read", "binding.read", "company.read", "config.read"),
        *("event.read", "file.read", "file.see", "grant.read", "message.ack", "message.read"),
        *("outcome.read", "policy.read", "repo.read", "secret.read", "user.read"),
        *("mail.due", "message.deliver", "approval.remind", "run.report", "repo.clone"),
        *("change.prepare", "change.push", "change.conflicts", "errand.done", "notice.deliver"),
        *("post.deliver", "chat.handled"),
    }
)


@dataclass
class _Line:
    """A line: an event, a run with its effects, or repetitions within an hour."""

    at: Micros
    events: list[Event]
    run: Run | None = None
    effects: int = 0
    times: int = 1
    first: Micros = 0
    #: How many more things the same action was taken on.
    others: int = 0


@query("record.page")
def page(
    ctx: Context,
    *,
    company: str | None,
    actor: str = "",
    since: Micros | None = None,
    until: Micros | None = None,
    before: int | None = None,
    limit: int = 50,
) -> shapes.RecordPageShape:
    """The record newest first: acts of people one by one, runs as one line each with their effects,
    and an agent's runs without effect as one line for each hour.

    `before` of the answer continues the list; `last` is the newest position in the record.
    """
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.EVENT_READ, on="events")
    first, end, last = search.stretch(ctx, since, until)
    place = min(before or end, end)
    lines: dict[tuple[Any, ...], _Line] = {}
    met: set[str] = set()
    oldest = max(first, place - STRETCH)
    while place > oldest and len(lines) < limit:
        events = search.among(ctx, oldest, place, _PAGE, actor=actor)
        if not events:
            place = oldest
        for event in events:
            if len(lines) >= limit:
                break
            place = event.seq
            run = _run_of(event)
            if run is None:
                if not _is_noise(event):
                    _put(lines, _Line(event.at, [event], effects=1, first=event.at))
            elif run not in met:
                met.add(run)
                if line := _of_run(ctx, run, event, before):
                    _put(lines, line)
    shown = [_view(line) for line in lines.values()]
    return {"lines": shown, "before": place if place > first else None, "last": last}


def _run_of(event: Event) -> str | None:
    """Return the run that an event belongs to, because it began or ended it, or happened in it."""
    if event.run_id:
        return event.run_id
    kind, _, own = event.resource.partition(":")
    if kind == "run":
        return own
    if event.action == "token.create":
        run = json.loads(event.details).get("run_id")
        return str(run) if run else None
    return None


def _is_noise(event: Event) -> bool:
    by_mail = event.action == "grant.give" and '"by_mail":true' in event.details
    woken = event.action == "agent.wake" and event.resource.startswith("company:")
    return event.allowed and (by_mail or woken or event.action in _NOISE)


def _of_run(ctx: Context, run_id: str, event: Event, before: int | None) -> _Line | None:
    """The line of a run; None if it is on an earlier page."""
    run = ctx.tx.one(run_statements.RUN, run=run_id)
    if run is None:
        return None
    if before is not None and run.ended_at is not None:
        newest = ctx.tx.one(log.NEWEST_ON, resource=f"run:{run_id}", limit=1)
        if newest is not None and newest.seq >= before:
            return None
    did = _effects(ctx, run_id, MOST_COUNTED)
    return _Line(event.at, did[:MOST_EFFECTS], run, len(did), first=event.at)


def _effects(ctx: Context, run: str, most: int) -> list[Event]:
    did = ctx.tx.all(log.OF_RUN, run=run, after=0, limit=most)
    return [event for event in did if not _is_noise(event)]


def _put(lines: dict[tuple[Any, ...], _Line], line: _Line) -> None:
    """Add a line, or count it in an equal one of the same hour."""
    key = _key(line)
    if key in lines:
        again = lines[key]
        if line.events and line.events[0].action in _ALIKE:
            again.others += line.events[0].resource != again.events[0].resource
        else:
            again.times += 1
        again.first = line.first
    else:
        lines[key] = line


def _key(line: _Line) -> tuple[Any, ...]:
    run, hour = line.run, line.at // HOUR
    if run is None:
        event = line.events[0]
        if event.actor_kind is ActorKind.USER:
            return ("event", event.seq)
        if event.action in _ALIKE:
            return ("event", event.action, event.allowed, '"usable":true' in event.details, hour)
        done = (event.actor_id, event.action, event.resource, event.allowed, event.details)
        return ("event", *done, hour)
    if line.effects or run.ended_at is None:
        return ("run", run.id)
    return ("idle", run.agent_id, hour, run.status, run.error)


def _view(line: _Line) -> shapes.RecordLineShape:
    return {
        "at": views.time(line.at),
        "first": views.time(line.first),
        "events": [views.event(event) for event in line.events],
        "effects": line.effects,
        "times": line.times,
        "others": line.others,
        "run": views.run(line.run) if line.run is not None else None,
    }


@query("record.of_run")
def of_run(ctx: Context, *, run: str) -> list[shapes.EventShape]:
    """Effects of a run on others, oldest first; for readers of the whole record."""
    run_row = entered(ctx, run)
    require_look(ctx, run_row.agent_id, f"run:{run_row.id}")
    ctx.require(Action.EVENT_READ, on=f"run:{run_row.id}")
    return [views.event(event) for event in _effects(ctx, run_row.id, MOST_COUNTED)]
