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
    found = [*_agents(ctx, pattern), *_people(ctx, text), *_outcomes(ctx, pattern)]
    found += _files(ctx, text)
    found += _mail(ctx, pattern)
    starts = text.lower()
    found.sort(key=lambda one: not one["name"].lower().startswith(starts))
    return [*_by_id(ctx, text), *found, *_runs(ctx, pattern)]


def _by_id(ctx: Context, text: str) -> list[FoundShape]:
    """Return the thing with that id, if the text looks like one and the caller may see it."""
    if not looks_like_id(text):
        return []
    drawn: tuple[tuple[lookup.Noun[Any], Callable[[Any], FoundShape]], ...] = (
        (OUTCOME, _outcome),
        (running.RUN, lambda one: _run(ctx, one)),
        (approvals.APPROVAL, _approval),
        (letters.MESSAGE, _letter),
    )
    found: list[FoundShape] = []
    for noun, shown in drawn:
        with contextlib.suppress(RemitError):
            found.append(shown(lookup.find_here(ctx, noun, text)))
    return found


def _agents(ctx: Context, pattern: dict[str, object]) -> list[FoundShape]:
    found = ctx.tx.all(statements.AGENTS_CALLED, **pattern, **standing.scope(ctx))
    return [
        {
            "kind": "agent",
            "id": one.id,
            "name": one.name,
            "about": ", ".join(filter(None, (one.title, one.role, one.status.value))),
        }
        for one in found[:MOST]
        if ctx.decide(Action.AGENT_READ, home=one.id).allowed
    ]


def _people(ctx: Context, text: str) -> list[FoundShape]:
    if not ctx.decide(Action.USER_READ).allowed:
        return []
    found: list[FoundShape] = [
        {"kind": "person", "id": one.user_id, "name": one.name, "about": f"Person, {one.role}"}
        for one in ctx.tx.all(people.MEMBERS, after="", limit=MOST_PEOPLE)
        if text.casefold() in one.name.casefold()
    ]
    return found[:MOST]


def _outcomes(ctx: Context, pattern: dict[str, object]) -> list[FoundShape]:
    may_read = reader(ctx)
    found = ctx.tx.all(statements.OUTCOMES_CALLED, **pattern)
    return [_outcome(one) for one in found if may_read(one)][:MOST]


def _outcome(one: Outcome) -> FoundShape:
    about = f"Outcome, {one.status.value}"
    return {"kind": "outcome", "id": one.id, "name": one.title, "about": about}


def _approval(one: Approval) -> FoundShape:
    about = f"Approval, {one.status.value}"
    return {"kind": "approval", "id": one.id, "name": approval_engine.summary(one), "about": about}


def _files(ctx: Context, text: str) -> list[FoundShape]:
    found: list[FoundShape] = [
        {"kind": "file", "id": one["id"], "name": one["description"], "about": "File"}
        for one in files.browse.body(ctx, company=ctx.company, words=text, limit=3 * MOST)
        if one.get("kind", FileKind.FILE.value) == FileKind.FILE.value
    ]
    return found[:MOST]


def _mail(ctx: Context, pattern: dict[str, object]) -> list[FoundShape]:
    found: list[FoundShape] = []
    for message in ctx.tx.all(statements.MESSAGES_CALLED, **pattern):
        if len(found) == MOST:
            break
        if letters.sees(ctx, message):
            found.append(_letter(message))
    return found


def _letter(message: Message) -> FoundShape:
    return {"kind": "mail", "id": message.id, "name": message.subject, "about": "Mail"}


def _runs(ctx: Context, pattern: dict[str, object]) -> list[FoundShape]:
    may_look = running.reader(ctx)
    found = (one for one in ctx.tx.all(statements.RUNS_CALLED, **pattern) if may_look(one))
    return [_run(ctx, one) for one in islice(found, MOST_RUNS)]


def _run(ctx: Context, run: Run) -> FoundShape:
    why = run.error or run_page.occasion(ctx, run, reader(ctx))
    name = f"{lookup.name_of(ctx, run.agent_id)}: {' '.join(why.split())[:LONGEST]}"
    return {"kind": "run", "id": run.id, "name": name, "about": f"Run, {run.status.value}"}
