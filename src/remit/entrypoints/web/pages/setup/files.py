"""Applying the declaration of a company, and its state at a past time."""

import hashlib
from typing import Any, Final

from remit.entrypoints import declared_files, declared_text
from remit.entrypoints.web.pages.setup.acceptance import KINDS
from remit.entrypoints.web.site import Done, Page, Routes, Site, Visit
from remit.entrypoints.web.text import common_queries, org_lines
from remit.errors import NotFound, RemitError
from remit.services.command import Answer
from remit.services.people import companies
from remit.services.record import events
from remit.services.screens import agent_page

PAGE: Final = 200
#: Most agents drawn; of a larger company or branch the upper levels.
MOST_LINES: Final = 120


def routes(site: Site) -> Routes:
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
        kinds=KINDS,
        may_change=visit.decides and visit.whole,
    )


async def act(visit: Visit) -> Done | Page:
    """Show the plan of a declaration or, once that plan was shown, apply it."""
    text = visit.form.text("document")
    document = declared_text.read(text, "The text")
    app, who = visit.site.app, visit.caller
    sure = visit.form.text("step") == "apply" and visit.form.text("seen") == _digest(text)
    accepted = visit.form.text("accepted") or None
    plan = await declared_files.apply(
        app, who, visit.company_id, document, dry_run=not sure, accepted=accepted
    )
    return await visit.look(lambda visit: show(visit, plan, done=sure))


def _digest(text: str) -> str:
    """Digest of the previewed text, so that nothing else is applied."""
    return hashlib.sha256(text.encode()).hexdigest()


def past(visit: Visit) -> Page:
    """Show the tree or the grants at a past time."""
    at, what, agent = visit.argument("at"), visit.argument("what", "org"), visit.argument("agent")
    rows: list[dict[str, Any]] = []
    tree: list[org_lines.Node] = []
    if at:
        when = at if at.endswith("Z") or "+" in at else f"{at}{':00' if len(at) == 16 else ''}Z"
        try:
            if what == "grants":
                rows = visit.ask(
                    events.grants_at,
                    company=visit.company_id,
                    at=when,
                    agent=agent or None,
                    besides_mail=not visit.argument("mail"),
                    limit=PAGE,
                )
            else:
                rows = visit.ask(events.org_at, company=visit.company_id, at=when)
                tree = _branch(rows, agent) if agent else org_lines.plant(rows)
        except RemitError as error:
            visit.problem = error
    return visit.show(
        "setup/as_of.html",
        at=at,
        what=what,
        agent=agent,
        rows=rows,
        lines=org_lines.lines(tree, MOST_LINES),
        drawn_of=sum(1 + top.below for top in tree),
        about=visit.ask(
            agent_page.resources,
            company=visit.company_id,
            named=[row["resource"] for row in rows if "resource" in row],
        ),
        most=PAGE,
        mail=bool(visit.argument("mail")),
        names=common_queries.names(visit, (row.get("holder_id") for row in rows)),
        picks=common_queries.picks(visit, "agent")["agent"],
    )


def _branch(rows: list[dict[str, Any]], agent: str) -> list[org_lines.Node]:
    """Return an agent of that time with everybody below it."""
    named = {row["id"] for row in rows if agent.casefold() in (row["name"].casefold(), row["id"])}
    branches = [org_lines.part_of(org_lines.plant(rows), key) for key in named]
    if not branches:
        raise NotFound(f"There was no agent named {agent!r} then.", "Choose another name or time.")
    return [branch for branch in branches if branch is not None]
