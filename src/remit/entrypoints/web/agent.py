"""One agent: what it does or why not, its work, mail, rights, configuration and runs."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from remit.clock import SECOND, from_iso
from remit.entrypoints import budget_words
from remit.entrypoints.http.document import camel
from remit.entrypoints.web import agent_changes, agent_forms, asking
from remit.entrypoints.web.site import Site, Visit
from remit.entrypoints.web.words import with_readable_times
from remit.errors import NotFound
from remit.model.grant import ACTIONS
from remit.model.outcome import OutcomeStatus
from remit.model.permission import PermissionLevel
from remit.services import (
    bindings,
    budgets,
    companies,
    configuration,
    grants,
    outcomes,
    portrait,
    runs,
    threads,
)

PAGE: Final = 50
FEW: Final = 10
#: Whoever has a thousand reports may write to each of them; nobody reads all of that.
MOST_BY_RULE: Final = 100
#: More revisions than an agent has.
_NEWEST: Final = 2**30

Values = dict[str, Any]
Load = Callable[[Visit, Mapping[str, Any]], Coroutine[Any, Any, Values]]


def routes(site: Site) -> list[Route]:
    found = [
        site.page("/agents/{agent}", show),
        site.page("/agents/{agent}/state", state),
    ]
    return found + agent_forms.routes(site, show) + agent_changes.routes(site)


async def show(visit: Visit) -> Response:
    one = await visit.ask(portrait.show, agent=visit.argument("agent"))
    visit.enter(one["company_id"])
    tabs = [tab for tab in TABS if tab == "overview" or tab in one["sees"]]
    tab = visit.form.text("tab") or visit.request.query_params.get("tab") or "overview"
    if tab not in tabs:
        raise NotFound(
            "There is no such part of this page, or it is not for you to see.",
            f"Choose one of {', '.join(tabs)}.",
        )
    title, load = TABS[tab]
    values = await load(visit, one)
    return await visit.show(
        f"agent/{tab}.html",
        one=one,
        tab=tab,
        tabs=[(name, TABS[name][0]) for name in tabs],
        title=title,
        why_idle=with_readable_times(one["idle"]["sentence"]) if one["idle"] else "",
        controls=controls(one),
        **values,
    )


def controls(one: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What can be done to an agent in its status, by who may: the verb and what it is called."""
    if "control" not in one["may"]:
        return []
    match one["status"]:
        case "running":
            return [
                ("abort", "Abort the run"),
                ("restart", "End it and begin anew"),
                ("pause", "Pause after this run"),
                ("stop", "Stop now"),
            ]
        case "idle":
            return [("wake", "Wake"), ("restart", "Restart"), ("pause", "Pause")]
        case "paused":
            return [("resume", "Resume"), ("restart", "Restart")]
        case "error":
            return [("start", "Start"), ("restart", "Restart"), ("pause", "Pause")]
        case _:
            return []


async def _overview(visit: Visit, one: Mapping[str, Any]) -> Values:
    if "work" not in one["sees"]:
        return {"known": None, "open": [], "more_open": False}
    known = await visit.ask(portrait.overview, agent=one["id"])
    found = await visit.ask(
        outcomes.listing,
        company=one["company_id"],
        owner=one["id"],
        status="open",
        limit=FEW + 2,
    )
    work = [outcome for outcome in found if outcome["id"] != one["id"]]
    if known["last_run"]:
        known["last_run"]["took"] = took(known["last_run"])
    return {"known": known, "open": work[:FEW], "more_open": len(work) > FEW}


async def state(visit: Visit) -> Response:
    """Its working memory, opened by somebody: that is a reading, and it is in the file's log."""
    one = await visit.ask(portrait.show, agent=visit.argument("agent"))
    visit.enter(one["company_id"])
    _, content = await visit.site.app.library.read(visit.who, file=one["state_file_id"])
    return visit.site.render("agent/state.html", one=one, text=content.decode(errors="replace"))


async def _work(visit: Visit, one: Mapping[str, Any]) -> Values:
    status = visit.argument("status")
    known = [each.value for each in OutcomeStatus]
    found = await visit.ask(
        outcomes.listing,
        company=one["company_id"],
        owner=one["id"],
        status=status if status in known else None,
        after=visit.argument("after"),
        limit=PAGE,
    )
    last = found[-1]["id"] if len(found) == PAGE else None
    return {
        "outcomes": found,
        "status": status,
        "statuses": known,
        "more": _more(visit, one, "work", status=status, after=last),
    }


async def _mail(visit: Visit, one: Mapping[str, Any]) -> Values:
    waiting = await visit.ask(threads.inbox_of, agent=one["id"], limit=PAGE)
    before = visit.argument("before")
    given = {"before": before} if before else {}
    sent = await visit.ask(portrait.correspondence, agent=one["id"], limit=PAGE, **given)
    parties = {who for message in sent for who in (message["sender"], message["to"])}
    last = sent[-1]["id"] if len(sent) == PAGE else None
    return {
        "waiting": waiting,
        "sent": sent,
        "names": await asking.names(visit, (who.partition(":")[2] for who in parties)),
        "bindings": await visit.ask(
            bindings.listing, company=one["company_id"], agent=one["id"], limit=PAGE
        ),
        "more": _more(visit, one, "mail", before=last),
    }


async def _rights(visit: Visit, one: Mapping[str, Any]) -> Values:
    found = await visit.ask(
        grants.listing,
        company=one["company_id"],
        agent=one["id"],
        derived=True,
        after=visit.argument("after"),
        limit=PAGE,
    )
    given = [grant for grant in found if not grant.get("derived")]
    by_rule = [grant for grant in found if grant.get("derived")]
    shown = by_rule[:MOST_BY_RULE]
    scopes = {f"outcome:{grant['scope']}" for grant in given if grant["scope"]}
    last = given[-1]["id"] if len(given) == PAGE else None
    return {
        "given": given,
        "by_rule": shown,
        "by_rule_count": len(by_rule),
        "about": await visit.ask(
            portrait.resources,
            company=one["company_id"],
            named={grant["resource"] for grant in (*given, *shown)} | scopes,
        ),
        "names": await asking.names(
            visit, ((grant["granted_by"] or "").partition(":")[2] for grant in given)
        ),
        "levels": [(level.value, level.value) for level in PermissionLevel],
        "actions": sorted(ACTIONS),
        "more": _more(visit, one, "rights", after=last),
    }


async def _configuration(visit: Visit, one: Mapping[str, Any]) -> Values:
    now = await visit.ask(configuration.show, agent=one["id"])
    older, newer = (_number(visit.argument(name)) for name in ("older", "newer"))
    revisions = await visit.ask(
        configuration.revisions,
        agent=one["id"],
        before=_number(visit.argument("before")) or _NEWEST,
        limit=PAGE,
    )
    compared = None
    if older is not None and newer is not None:
        compared = await visit.ask(configuration.compare, agent=one["id"], older=older, newer=newer)
    last = revisions[-1]["number"] if len(revisions) == PAGE else None
    people = (one["created_by_user_id"] or one["created_by_agent_id"] for one in revisions)
    company = await visit.ask(companies.show, company=one["company_id"])
    return {
        "now": now,
        "revisions": revisions,
        "older": older,
        "newer": newer,
        "compared": compared,
        "names": await asking.names(visit, people),
        "typed": agent_forms.typed(visit, now),
        "at_field": agent_forms.at_field(visit.problem),
        "stale": visit.problem is not None and visit.problem.reason == "stale_revision",
        "adapters": agent_forms.adapters(now["adapter_type"]),
        "proposals": company["require_approval_for_config_changes"],
        "more": _more(visit, one, "configuration", before=last),
    }


async def _runs(visit: Visit, one: Mapping[str, Any]) -> Values:
    before = visit.argument("before")
    found = await visit.ask(
        runs.listing,
        company=one["company_id"],
        agent=one["id"],
        before=before or runs.END_OF_IDS,
        limit=PAGE,
    )
    last = found[-1]["id"] if len(found) == PAGE else None
    return {
        "runs": [{**run, "took": took(run)} for run in found],
        "totals": await visit.ask(portrait.run_totals, agent=one["id"]),
        "budget": budget_words.lines(camel(await visit.ask(budgets.show, agent=one["id"]))),
        "more": _more(visit, one, "runs", before=last),
    }


#: By their names in the address; each loads its own things and no others'.
TABS: Final[dict[str, tuple[str, Load]]] = {
    "overview": ("Overview", _overview),
    "work": ("Work", _work),
    "mail": ("Mail", _mail),
    "rights": ("Rights", _rights),
    "configuration": ("Configuration", _configuration),
    "runs": ("Runs", _runs),
}


def took(run: Mapping[str, Any]) -> str:
    """How long a run took; nothing while it goes on."""
    if not run["completed_at"]:
        return ""
    seconds = (from_iso(run["completed_at"]) - from_iso(run["started_at"])) / SECOND
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
    return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _more(visit: Visit, one: Mapping[str, Any], tab: str, **where: object) -> str:
    """The address of the next page of a list, if there is one."""
    if list(where.values())[-1] is None:
        return ""
    return visit.link(f"/agents/{one['id']}", tab=tab, **where)
