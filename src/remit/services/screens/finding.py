"""Search over all kinds of things of a company, limited to those that the caller may know of."""

import contextlib
from collections.abc import Callable
from itertools import islice
from typing import Annotated, Any, Final, TypedDict

from remit.authority import Action
from remit.errors import RemitError
from remit.ids import looks_like_id
from remit.model.execution.run import Run
from remit.model.messaging.mail import Message
from remit.model.organisation.approval import Approval
from remit.model.work.file import FileKind
from remit.model.work.outcome import Outcome
from remit.services import lookup
from remit.services.command import Context, query
from remit.services.execution import running
from remit.services.fields import CompanyRef, Help
from remit.services.governance import approval_engine, approvals
from remit.services.knowledge import files
from remit.services.messaging import letters
from remit.services.screens import run_page, standing
from remit.services.subjects import OUTCOME, reader
from remit.services.surfaces import AsRoute
from remit.store.organisation import people
from remit.store.record import search as statements

#: Limits for each kind: how many are returned, and how many are checked for visibility.
MOST: Final = 8
MOST_RUNS: Final = 4
MOST_LOOKED_AT: Final = 200
MOST_PEOPLE: Final = 1000
LONGEST: Final = 200


class FoundShape(TypedDict):
    """Something that was searched for."""

    kind: str
    id: str
    name: str
    about: str


@query("finding.find", AsRoute("GET /companies/{companyId}/search", "search_company"))
def find(
    ctx: Context,
    *,
    company: CompanyRef | None,
    words: Annotated[str, Help("Part of its name, title or subject, or its short id.")] = "",
) -> list[FoundShape]:
    """Agents, outcomes, files, mail, runs and people by what they are called, best first."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on=f"company:{ctx.company}")
    text = " ".join(words.split())[:LONGEST]
    if not text:
        return []
    pattern: dict[str, object] = {
        "words": statements.containing(text),
        "lower": statements.containing(text.lower()),
        "limit": MOST_LOOKED_AT,
    }
    hits = [*_agents(ctx, pattern), *_people(ctx, text), *_outcomes(ctx, pattern)]
    hits += _files(ctx, text)
    hits += _mail(ctx, pattern)
    starts = text.lower()
    hits.sort(key=lambda hit: not hit["name"].lower().startswith(starts))
    return [*_by_id(ctx, text), *hits, *_runs(ctx, pattern)]


def _by_id(ctx: Context, text: str) -> list[FoundShape]:
    """Return the thing with that id, if the text looks like one and the caller may see it."""
    if not looks_like_id(text):
        return []
    drawn: tuple[tuple[lookup.Noun[Any], Callable[[Any], FoundShape]], ...] = (
        (OUTCOME, _outcome),
        (running.RUN, lambda run: _run(ctx, run)),
        (approvals.APPROVAL, _approval),
        (letters.MESSAGE, _letter),
    )
    hits: list[FoundShape] = []
    for noun, shown in drawn:
        with contextlib.suppress(RemitError):
            hits.append(shown(lookup.find_here(ctx, noun, text)))
    return hits


def _agents(ctx: Context, pattern: dict[str, object]) -> list[FoundShape]:
    agents = ctx.tx.all(statements.AGENTS_CALLED, **pattern, **standing.scope(ctx))
    return [
        FoundShape(
            kind="agent",
            id=agent.id,
            name=agent.name,
            about=", ".join(filter(None, (agent.title, agent.role, agent.status.value))),
        )
        for agent in agents[:MOST]
        if ctx.decide(Action.AGENT_READ, home=agent.id).allowed
    ]


def _people(ctx: Context, text: str) -> list[FoundShape]:
    if not ctx.decide(Action.USER_READ).allowed:
        return []
    hits = [
        FoundShape(
            kind="person", id=member.user_id, name=member.name, about=f"Person, {member.role}"
        )
        for member in ctx.tx.all(people.MEMBERS, after="", limit=MOST_PEOPLE)
        if text.casefold() in member.name.casefold()
    ]
    return hits[:MOST]


def _outcomes(ctx: Context, pattern: dict[str, object]) -> list[FoundShape]:
    may_read = reader(ctx)
    outcomes = ctx.tx.all(statements.OUTCOMES_CALLED, **pattern)
    return [_outcome(outcome) for outcome in outcomes if may_read(outcome)][:MOST]


def _outcome(outcome: Outcome) -> FoundShape:
    about = f"Outcome, {outcome.status.value}"
    return {"kind": "outcome", "id": outcome.id, "name": outcome.title, "about": about}


def _approval(approval: Approval) -> FoundShape:
    name, about = approval_engine.summary(approval), f"Approval, {approval.status.value}"
    return {"kind": "approval", "id": approval.id, "name": name, "about": about}


def _files(ctx: Context, text: str) -> list[FoundShape]:
    hits: list[FoundShape] = [
        {"kind": "file", "id": file["id"], "name": file["description"], "about": "File"}
        for file in files.browse.body(ctx, company=ctx.company, words=text, limit=3 * MOST)
        if file.get("kind", FileKind.FILE.value) == FileKind.FILE.value
    ]
    return hits[:MOST]


def _mail(ctx: Context, pattern: dict[str, object]) -> list[FoundShape]:
    hits: list[FoundShape] = []
    for message in ctx.tx.all(statements.MESSAGES_CALLED, **pattern):
        if len(hits) == MOST:
            break
        if letters.sees(ctx, message):
            hits.append(_letter(message))
    return hits


def _letter(message: Message) -> FoundShape:
    return {"kind": "mail", "id": message.id, "name": message.subject, "about": "Mail"}


def _runs(ctx: Context, pattern: dict[str, object]) -> list[FoundShape]:
    may_look = running.reader(ctx)
    runs = (run for run in ctx.tx.all(statements.RUNS_CALLED, **pattern) if may_look(run))
    return [_run(ctx, run) for run in islice(runs, MOST_RUNS)]


def _run(ctx: Context, run: Run) -> FoundShape:
    why = run.error or run_page.occasion(ctx, run, reader(ctx))
    name = f"{lookup.name_of(ctx, run.agent_id)}: {' '.join(why.split())[:LONGEST]}"
    return {"kind": "run", "id": run.id, "name": name, "about": f"Run, {run.status.value}"}
