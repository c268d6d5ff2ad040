"""A company as a file says it, and as it was at a time."""

import hashlib
from typing import Any, Final

from starlette.routing import Route

from remit.entrypoints import declared_files, declared_text
from remit.entrypoints.web.pages.setup.noun import caller
from remit.entrypoints.web.site import Done, Page, Site, Visit
from remit.entrypoints.web.text import common_queries, pickers
from remit.errors import BadInput, RemitError
from remit.services.command import Answer
from remit.services.people import companies
from remit.services.record import history

PAGE: Final = 200
_SIGNS: Final = {"create": "added", "change": "changed", "unchanged": "same"}


def routes(site: Site) -> list[Route]:
    return [*site.form("/apply", show, act), site.page("/as-of", past)]


def show(visit: Visit, plan: Answer | None = None, done: bool = False) -> Page:
    visit.ask(companies.show, company=visit.company_id)
    text = visit.form.text("document")
    return visit.show(
        "setup/apply.html",
        text=text,
        plan=plan,
        done=done,
        digest=_digest(text),
        signs=_SIGNS,
        may_change=visit.decides and visit.whole,
    )


async def act(visit: Visit) -> Done | Page:
    """Tell what would change, and do exactly that."""
    text = visit.form.text("document")
    document = declared_text.read(text, "The text")
    app, who = visit.site.app, caller(visit)
    sure = visit.form.text("step") == "apply" and visit.form.text("seen") == _digest(text)
    plan = await declared_files.apply(app, who, visit.company_id, document, dry_run=not sure)
    return await visit.look(lambda visit: show(visit, plan, done=sure))


def _digest(text: str) -> str:
    """Of what was looked at, so that nothing else is applied."""
    return hashlib.sha256(text.encode()).hexdigest()


def past(visit: Visit) -> Page:
    """The tree or the rights as they were."""
    at, what, agent = visit.argument("at"), visit.argument("what", "org"), visit.argument("agent")
    rows: list[dict[str, Any]] = []
    if at:
        when = at if at.endswith("Z") or "+" in at else f"{at}{':00' if len(at) == 16 else ''}Z"
        try:
            if what == "grants":
                rows = visit.ask(
                    history.grants_at,
                    company=visit.company_id,
                    at=when,
                    agent=agent or None,
                    limit=PAGE,
                )
            else:
                rows = visit.ask(history.org_at, company=visit.company_id, at=when)
        except BadInput as error:
            visit.problem = error
        except RemitError as error:
            visit.problem = error
    return visit.show(
        "setup/as_of.html",
        at=at,
        what=what,
        agent=agent,
        rows=rows,
        depth=_depths(rows) if what != "grants" else {},
        names=common_queries.names(visit, (one.get("holder_id") for one in rows)),
        picks=pickers.of(visit, "agent")["agent"],
    )


def _depths(rows: list[dict[str, Any]]) -> dict[str, int]:
    """How deep in the tree each was."""
    boss = {one["id"]: one["reports_to"] for one in rows}
    found: dict[str, int] = {}
    for one in boss:
        depth, above = 0, boss[one]
        while above in boss and depth < len(boss):
            depth, above = depth + 1, boss[above]
        found[one] = depth
    return found
