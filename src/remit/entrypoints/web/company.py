"""A company at a glance: how it stands, who is at work, and a place to say what is wanted."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from remit.entrypoints.web import asking, happenings
from remit.entrypoints.web.site import Done, Site, Visit
from remit.errors import BadInput
from remit.ids import is_id
from remit.model.agent import OPERATIONAL
from remit.services import companies, events, glance, mail, overview

MOST_AT_WORK: Final = 20
MOST_RUNS: Final = 8
MOST_EVENTS: Final = 40
MOST_SAID: Final = 12
LONGEST_SUBJECT: Final = 80


def routes(site: Site) -> list[Route]:
    return [
        site.page("/companies/{company_id}", show),
        site.action("/companies/{company_id}/tell", tell, show),
    ]


async def entered(visit: Visit) -> str:
    """Look at the company that the address names."""
    company = visit.argument("company_id")
    if company not in (one["id"] for one in visit.companies):
        company = (await visit.ask(companies.show, company=company))["id"]
    visit.enter(company)
    return company


async def show(visit: Visit) -> Response:
    company = await entered(visit)
    roots = await visit.ask(glance.roots, company=company)
    at_work = await visit.ask(
        glance.at_work, company=company, subjects=True, limit=MOST_AT_WORK + 1
    )
    newest = await visit.ask(glance.newest_runs, company=company, limit=MOST_RUNS)
    failed = await visit.ask(glance.newest_runs, company=company, failed=True, limit=MOST_RUNS)
    happened = (
        await visit.ask(events.listing, company=company, limit=MOST_EVENTS) if visit.whole else []
    )
    names = await asking.names(visit, (one["agent_id"] for one in (*at_work, *newest, *failed)))
    ready = [one for one in roots if one["status"] in OPERATIONAL]
    sent = visit.argument("sent")
    return await visit.show(
        "company.html",
        numbers=await visit.ask(overview.dashboard, company=company),
        roots=roots,
        ready=ready,
        choices=[(one["id"], f"{one['name']} ({one['title'] or one['role']})") for one in ready],
        at_work=at_work[:MOST_AT_WORK],
        more_at_work=len(at_work) > MOST_AT_WORK,
        newest=newest,
        failed=failed,
        happened=happenings.counted(await happenings.told(visit, happened))[:MOST_SAID],
        names=names,
        sent=sent if is_id(sent) else "",
        is_new=not newest and not at_work,
    )


async def tell(visit: Visit) -> Done:
    """Mail to the agent at the top: the first thing that somebody wants of a company."""
    company = await entered(visit)
    text = visit.form.text("body")
    if not text:
        raise BadInput("There is nothing to send yet.", "Write what you want.")
    roots = await visit.ask(glance.roots, company=company)
    chosen = _chosen(roots, visit.form.text("to"))
    sent = await visit.do(
        mail.send,
        company=company,
        to=f"agent:{chosen['id']}",
        subject=subject_of(text),
        body=text,
    )
    said = " ".join(filter(None, (f"Sent to {chosen['name']}.", sent["not_started"])))
    return Done(f"/companies/{company}?sent={sent['thread_id']}", said)


def _chosen(roots: list[dict[str, Any]], wanted: str) -> dict[str, Any]:
    for one in roots:
        if one["id"] == wanted or (not wanted and len(roots) == 1):
            return one
    raise BadInput("It is not clear who is meant.", "Choose who shall read it.")


def subject_of(text: str) -> str:
    """What a letter without a subject is about: its first line, cut between words."""
    line = " ".join(text.splitlines()[0].split()).lstrip("# ")
    plain = "".join(char for char in line if char.isprintable())
    if len(plain) <= LONGEST_SUBJECT:
        return plain
    cut = plain[:LONGEST_SUBJECT]
    return (cut.rpartition(" ")[0] or cut) + "…"
