"""One agent: its status, work, mail, rights, configuration and runs, each on a tab."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from remit.entrypoints import budget_text
from remit.entrypoints.http.wire.json_document import camel
from remit.entrypoints.web.pages import agent_forms
from remit.entrypoints.web.pages.outcomes import STATES, standing_of
from remit.entrypoints.web.pages.setup.connections import BINDING_STATES
from remit.entrypoints.web.site import MOST_ROWS, Page, Routes, Site, Visit
from remit.entrypoints.web.text import charts, common_queries, run_text
from remit.errors import NotFound
from remit.model.organisation.permission import PermissionLevel
from remit.model.text import plural
from remit.model.work.outcome import OutcomeStatus
from remit.services.connections import bindings, lent_plugins
from remit.services.execution import runs
from remit.services.hiring import configuration
from remit.services.messaging import threads
from remit.services.people import companies
from remit.services.screens import agent_page
from remit.services.spending import budgets
from remit.services.work import outcomes

FEW: Final = 10
#: Most derived rights on the page: an agent with a thousand reports may write to each of them.
MOST_BY_RULE: Final = 100
#: Above the number of any revision.
_NEWEST: Final = 2**30

Values = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]
Load = Callable[[Visit, Mapping[str, Any]], Values]


def routes(site: Site) -> Routes:
    pages = [site.page("/agents/{agent}", show), site.page("/agents/{agent}/state", state)]
    return pages + agent_forms.routes(site, show)


def show(visit: Visit) -> Page:
    agent = visit.ask(agent_page.show, agent=visit.argument("agent"))
    visit.enter(agent["company_id"])
    tabs = [tab for tab in TABS if tab == "overview" or tab in agent["sees"]]
    tab = visit.form.text("tab") or visit.request.query_params.get("tab") or "overview"
    if tab not in tabs:
        raise NotFound(
            "There is no such part of this page, or it is not for you to see.",
            f"Choose one of {', '.join(tabs)}.",
        )
    title, load = TABS[tab]
    values = load(visit, agent)
    reason = run_text.reasons(visit, [agent["run"]])[agent["run"]["id"]] if agent["run"] else ""
    return visit.show(
        f"agent/{tab}.html",
        one=agent,
        tab=tab,
        tabs=[(name, TABS[name][0]) for name in tabs],
        title=title,
        why_idle=agent["idle"]["sentence"] if agent["idle"] else "",
        run_reason=reason,
        controls=controls(agent),
        **values,
    )


#: Label of each control, the same on all pages, and its effect.
CONTROLS: Final = {
    "wake": ("Wake", "Starts it now if there is work."),
    "resume": ("Resume", "Lets it work again."),
    "start": ("Resume", "Lets it work again and clears its failures."),
    "abort": ("Cancel run", "Ends this run only. Its mail counts as handled."),
    "restart": ("Restart", "Ends its conversation and begins a new one."),
    "pause": ("Pause", "Starts no new run; the current one finishes first."),
    "stop": ("Stop", "Ends its run at once; it starts again when resumed."),
}
_POSSIBLE: Final = {
    "running": ("abort", "restart", "pause", "stop"),
    "idle": ("wake", "restart", "pause"),
    "paused": ("resume", "restart"),
    "error": ("start", "restart", "pause"),
}


def controls(agent: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Controls for an agent's status, if the visitor may control it: verb, label, effect."""
    if "control" not in agent["may"]:
        return []
    known = CONTROLS
    if agent["status"] == "running":
        known = {**CONTROLS, "pause": ("Pause when done", CONTROLS["pause"][1])}
    return [(verb, *known[verb]) for verb in _POSSIBLE.get(agent["status"], ())]


def _overview(visit: Visit, agent: Mapping[str, Any]) -> Values:
    if "work" not in agent["sees"]:
        return {"known": None, "open": [], "more_open": False, "spend": None, "spark": ""}
    known = visit.ask(agent_page.overview, agent=agent["id"])
    owned = visit.ask(
        outcomes.listing,
        company=agent["company_id"],
        owner=agent["id"],
        status="open",
        limit=FEW + 2,
    )
    work = [outcome for outcome in owned if outcome["id"] != agent["id"]]
    if known["last_run"]:
        last = known["last_run"]
        known["last_run"] = {**last, "reason": run_text.reasons(visit, [last])[last["id"]]}
    spend = visit.ask(budgets.show, agent=agent["id"])["money"]
    by_day = known["runs_by_day"]
    return {
        "known": known,
        "open": work[:FEW],
        "states": STATES,
        "standing_of": standing_of(visit, work[:FEW]),
        "more_open": len(work) > FEW,
        "spend": spend,
        "spark": charts.spark(by_day, f"{plural(sum(by_day), 'run')} in {len(by_day)} days"),
    }


async def state(visit: Visit) -> Response:
    """Show the working memory; that is a read access, and is in the file's log."""
    agent = await visit.do(agent_page.show, agent=visit.argument("agent"))
    _, content = await visit.site.app.library.read(visit.who, file=agent["state_file_id"])
    return visit.site.render("agent/state.html", one=agent, text=content.decode(errors="replace"))


def _work(visit: Visit, agent: Mapping[str, Any]) -> Values:
    status = visit.argument("status")
    known = [each.value for each in OutcomeStatus]
    owned = visit.ask(
        outcomes.listing,
        company=agent["company_id"],
        owner=agent["id"],
        status=status if status in known else None,
        after=visit.argument("after"),
        limit=MOST_ROWS,
    )
    return {
        "outcomes": owned,
        "status": status,
        "statuses": known,
        "states": STATES,
        "standing_of": standing_of(visit, owned),
        "more": _more(visit, agent, "work", owned, place="after", status=status),
    }


def _mail(visit: Visit, agent: Mapping[str, Any]) -> Values:
    waiting = visit.ask(threads.inbox_of, agent=agent["id"], limit=MOST_ROWS)
    before = visit.before_id
    sent = visit.ask(agent_page.correspondence, agent=agent["id"], limit=MOST_ROWS, before=before)
    parties = {who for message in sent for who in (message["sender"], message["to"])}
    return {
        "waiting": waiting,
        "sent": sent,
        "names": common_queries.names(visit, (who.partition(":")[2] for who in parties)),
        "bindings": visit.ask(
            bindings.listing, company=agent["company_id"], agent=agent["id"], limit=MOST_ROWS
        ),
        "states": BINDING_STATES,
        "more": _more(visit, agent, "mail", sent),
    }


def _rights(visit: Visit, agent: Mapping[str, Any]) -> Values:
    by_mail = bool(visit.argument("mail"))
    rights = visit.ask(
        agent_page.rights,
        agent=agent["id"],
        by_mail=by_mail,
        after=visit.argument("after"),
        limit=MOST_ROWS,
    )
    granted, by_rule = rights["given"], rights["by_rule"]
    shown = by_rule[:MOST_BY_RULE]
    scopes = {f"outcome:{grant['scope']}" for grant in granted if grant["scope"]}
    return {
        "given": granted,
        "by_rule": shown,
        "by_rule_count": len(by_rule),
        "mail": by_mail,
        "mail_count": rights["by_mail"],
        "about": visit.ask(
            agent_page.resources,
            company=agent["company_id"],
            named={grant["resource"] for grant in (*granted, *shown)} | scopes,
        ),
        "names": common_queries.names(
            visit, ((grant["granted_by"] or "").partition(":")[2] for grant in granted)
        ),
        "levels": [(level.value, level.value) for level in PermissionLevel],
        "resources": common_queries.grantable(visit, agent["company_id"]),
        "outcomes": common_queries.open_outcomes(visit, agent["company_id"], agent["id"]),
        "more": _more(visit, agent, "rights", granted, place="after", mail="1" if by_mail else ""),
    }


def _configuration(visit: Visit, agent: Mapping[str, Any]) -> Values:
    now = visit.ask(configuration.show, agent=agent["id"])
    older, newer = (visit.number(name) for name in ("older", "newer"))
    revisions = visit.ask(
        configuration.revisions,
        agent=agent["id"],
        before=visit.number("before") or _NEWEST,
        limit=MOST_ROWS,
    )
    compared = None
    if older is not None and newer is not None:
        compared = visit.ask(configuration.compare, agent=agent["id"], older=older, newer=newer)
    people = (
        revision["created_by_user_id"] or revision["created_by_agent_id"] for revision in revisions
    )
    company = visit.ask(companies.show, company=agent["company_id"])
    return {
        "now": now,
        "lent": visit.ask(lent_plugins.listing, agent=agent["id"]),
        "revisions": revisions,
        "older": older,
        "newer": newer,
        "compared": compared,
        "names": common_queries.names(visit, people),
        "typed": agent_forms.typed(visit, now),
        "stale": visit.problem is not None and visit.problem.reason == "stale_revision",
        **agent_forms.fields(visit, now),
        "proposals": company["require_approval_for_config_changes"],
        "more": _more(visit, agent, "configuration", revisions, key="number"),
    }


def _runs(visit: Visit, agent: Mapping[str, Any]) -> Values:
    rows = visit.listed(runs.listing, agent=agent["id"])
    return {
        "runs": rows,
        "reasons": run_text.reasons(visit, rows),
        "totals": visit.ask(agent_page.run_totals, agent=agent["id"]),
        "budget": budget_text.lines(camel(visit.ask(budgets.show, agent=agent["id"]))),
        "more": _more(visit, agent, "runs", rows),
    }


#: Tabs by their name in the address; each loads its own values only.
TABS: Final[dict[str, tuple[str, Load]]] = {
    "overview": ("Overview", _overview),
    "work": ("Work", _work),
    "mail": ("Mail", _mail),
    "rights": ("Permissions", _rights),
    "configuration": ("Configuration", _configuration),
    "runs": ("Runs", _runs),
}


def _more(visit: Visit, agent: Mapping[str, Any], tab: str, rows: Rows, **how: Any) -> str:
    """Address of a list's next page, empty if there is none."""
    return visit.more(f"/agents/{agent['id']}", rows, tab=tab, **how)
