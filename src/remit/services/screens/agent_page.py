"""Read model of one agent's page: its place, its activity or why there is none, and which parts and
actions the viewer may use. They are decided without an attempt, so no refusal is recorded."""

from collections.abc import Iterable
from typing import Any, cast

from remit.authority import Action
from remit.clock import DAY, day_of
from remit.errors import BadInput, NotFound
from remit.ids import END_OF_IDS, earliest_id, is_id
from remit.model.execution.run import RunStatus
from remit.model.organisation.agent import Agent
from remit.model.organisation.grant import Resource, ResourceKind, parse_resource
from remit.model.work.file import FileKind
from remit.services import lookup, shapes, views
from remit.services.changes import changes
from remit.services.command import Context, query
from remit.services.execution import situation
from remit.services.messaging import letters
from remit.services.organisation import idleness
from remit.services.organisation.permissions import HIRING
from remit.services.rights import grants, implicit_rights
from remit.services.subjects import OUTCOME, reader
from remit.store.execution import runs as run_statements
from remit.store.messaging import threads as thread_statements
from remit.store.organisation import agent_page as statements
from remit.store.organisation import grants as grant_statements
from remit.store.work import files as file_statements

MOST_REPORTS = 12
DAYS_DRAWN = 14
MOST_NAMED = 1000
MOST_RESOURCES = 500

#: Tabs of the page, and the right to see each.
_SIDES = {
    "work": Action.OUTCOME_READ,
    "mail": Action.MESSAGE_READ,
    "rights": Action.GRANT_READ,
    "configuration": Action.CONFIG_READ,
    "runs": Action.OUTCOME_READ,
    "state": Action.FILE_READ,
}
#: Actions on an agent, and the right that each needs.
_DEEDS = {
    "control": Action.AGENT_CONTROL,
    "terminate": Action.AGENT_TERMINATE,
    "configure": Action.CONFIG_CHANGE,
    "propose": Action.CONFIG_PROPOSE,
    "permit": Action.AGENT_PERMIT,
    "give": Action.GRANT_GIVE,
    "revoke": Action.GRANT_REVOKE,
    "write": Action.MESSAGE_SEND,
}


@query("portrait.show")
def show(ctx: Context, *, agent: str) -> shapes.AgentPageShape:
    """Head of an agent's page: identity, boss, colleagues, work, and the allowed actions."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.AGENT_READ, on=f"agent:{agent_row.id}", home=agent_row.id)
    place = ctx.boss_chain(agent_row.id)
    sees = {side for side, action in _SIDES.items() if _allowed(ctx, action, agent_row, place)}
    does = {deed for deed, action in _DEEDS.items() if _allowed(ctx, action, agent_row, place)}
    reports = ctx.tx.all(statements.SOME_REPORTS, agent=agent_row.id, limit=MOST_REPORTS)
    hire = idleness.hire_of(ctx, agent_row)
    run, idle = _at_work(ctx, agent_row) if "runs" in sees else (None, None)
    return {
        **_described(agent_row, "configuration" in sees),
        "boss": {**situation.boss(ctx, agent_row), "id": agent_row.boss_id},
        "reports": cast(list[shapes.BriefAgentShape], reports),
        "report_count": ctx.tx.one(statements.COUNT_REPORTS, agent=agent_row.id) or 0,
        "accountable": _accountable(ctx, place),
        "sees": sees,
        "may": does,
        "unread": ctx.tx.one(statements.UNREAD_COUNT, agent=agent_row.id)
        if "mail" in sees
        else None,
        "approval_id": hire.id if hire else None,
        "run": run,
        "idle": idle,
    }


def _allowed(ctx: Context, action: Action, agent: Agent, place: tuple[Any, ...]) -> bool:
    return ctx.decide(
        action,
        HIRING if action in (Action.CONFIG_READ, Action.AGENT_PERMIT) else None,
        home=agent.id,
        place=place,
        target_boss=agent.boss_id,
        about_agent=True,
    ).allowed


def _described(agent: Agent, whole: bool) -> shapes.AgentShape:
    shown = {**views.agent(agent), "config_revision": agent.config_revision}
    if not whole:
        for name in ("permissions", "permission_level", "budget_monthly_cents"):
            shown[name] = None
    return cast(shapes.AgentShape, shown)


def _accountable(ctx: Context, place: tuple[Any, ...]) -> str:
    """Name of the person at the top of the chain of bosses."""
    top = lookup.agent_row(ctx, place[-1]) if place else None
    return lookup.user_name(ctx, top.boss_user_id, "") if top else ""


def _at_work(ctx: Context, agent: Agent) -> tuple[shapes.RunShape | None, shapes.IdleShape | None]:
    """Return the live run of an agent, or else the reason why there is none."""
    live = ctx.tx.one(run_statements.LIVE_RUN_OF, agent=agent.id)
    if live is not None:
        return views.run(live), None
    reason, sentence = idleness.reason(ctx, agent)
    return None, {"reason": reason, "sentence": sentence}


@query("portrait.overview")
def overview(ctx: Context, *, agent: str) -> shapes.AgentOverviewShape:
    """Mandate of an agent, and its last run."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.OUTCOME_READ, on=f"agent:{agent_row.id}", home=agent_row.id)
    last = ctx.tx.all(
        run_statements.RUNS, agent=agent_row.id, ended_too=True, before=END_OF_IDS, limit=2
    )
    ended = [run for run in last if run.status is not RunStatus.RUNNING]
    state = ctx.tx.one(file_statements.FILE_ANYWHERE, file=agent_row.state_file_id)
    return {
        "mandate": views.outcome(lookup.known_outcome(ctx, agent_row.id), ctx.now),
        "runs_by_day": _runs_by_day(ctx, agent_row),
        "last_run": views.run(ended[0]) if ended else None,
        "state_version": state.version if state else 0,
        "state_size": state.size if state else 0,
        "state_updated_at": views.time(state.updated_at) if state else None,
    }


def _runs_by_day(ctx: Context, agent: Agent) -> list[int]:
    today = day_of(ctx.now)
    days = [today - number * DAY for number in reversed(range(DAYS_DRAWN))]
    first = earliest_id(days[0])
    counts = dict(ctx.tx.all(statements.RUNS_BY_DAY, agent=agent.id, first=first))
    return [counts.get(day, 0) for day in days]


@query("portrait.run_totals")
def run_totals(ctx: Context, *, agent: str) -> shapes.AgentTotalsShape:
    """Totals over all runs of an agent."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.OUTCOME_READ, on=f"agent:{agent_row.id}", home=agent_row.id)
    totals = ctx.tx.existing(statements.RUN_TOTALS, agent=agent_row.id)
    return {
        "runs": totals.runs,
        "tokens_in": totals.tokens_in,
        "tokens_out": totals.tokens_out,
        "tokens_cached": totals.tokens_cached,
        **totals.cost.view(),
    }


@query("portrait.correspondence")
def correspondence(
    ctx: Context, *, agent: str, before: str = END_OF_IDS, limit: int = 50
) -> list[shapes.CorrespondenceShape]:
    """Mail of an agent in both directions, newest first, without the texts."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    place = ctx.boss_chain(agent_row.id)
    ctx.require(Action.MESSAGE_READ, on=f"agent:{agent_row.id}", home=agent_row.id, place=place)
    sent = ctx.tx.all(
        thread_statements.MESSAGES_WITH_AGENT, agent=agent_row.id, before=before, limit=limit
    )
    return [{**views.message(message), "readable": letters.sees(ctx, message)} for message in sent]


@query("portrait.rights")
def rights(
    ctx: Context, *, agent: str, by_mail: bool = False, after: str = "", limit: int = 50
) -> shapes.HeldRightsShape:
    """Grants of an agent: without those that came by mail, or only those; and how many came by
    mail.

    The first page begins with derived rights.
    """
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.GRANT_READ, over=agent_row.id, target_boss=agent_row.boss_id)
    held = {"holder": agent_row.id, "now": ctx.now}
    wanted = grant_statements.HELD_BY_MAIL if by_mail else grant_statements.HELD_BESIDES_MAIL
    rows = ctx.tx.all(wanted, after=after, limit=limit, **held)
    return {
        "given": [views.grant(grant, grants.reason(grant)) for grant in rows],
        "by_rule": [] if after or by_mail else implicit_rights.rights(ctx, agent_row),
        "by_mail": ctx.tx.one(grant_statements.COUNT_BY_MAIL, **held) or 0,
    }


@query("portrait.roster")
def roster(
    ctx: Context, *, company: str | None, limit: int = MOST_NAMED
) -> list[shapes.BriefAgentShape]:
    """Agents of the company, briefly, by name."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.AGENT_READ, on="agents")
    return cast(list[shapes.BriefAgentShape], ctx.tx.all(statements.ROSTER, limit=limit))


@query("portrait.resources")
def resources(
    ctx: Context, *, company: str | None, named: Iterable[str]
) -> dict[str, dict[str, str]]:
    """Names of the resources of capabilities, limited to those that the caller may know of."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="names")
    names: dict[str, dict[str, str]] = {}
    for text in sorted(set(named))[:MOST_RESOURCES]:
        try:
            about = _change(ctx, text) or _about(ctx, _resource(text))
        except (BadInput, NotFound):
            continue
        if about is not None:
            names[text] = about
    return names


def _change(ctx: Context, text: str) -> dict[str, str] | None:
    if not text.startswith("change:"):
        return None
    change = lookup.find(ctx, changes.CHANGE, text)
    if not changes.sees(ctx, change):
        return None
    into = f"{changes.repo_of(ctx, change).name}, into {change.target}"
    return {"kind": "change", "id": change.id, "name": f"“{change.title}” ({into})"}


def _resource(text: str) -> Resource:
    """Parse a resource as a capability or an event names it."""
    kind, _, rest = text.partition(":")
    if kind in ("agent", "message") and is_id(rest.removeprefix("agent:")):
        return Resource(ResourceKind.MESSAGE, rest.removeprefix("agent:"))
    return parse_resource(text)


def _about(ctx: Context, resource: Resource) -> dict[str, str] | None:
    if resource.kind is ResourceKind.MESSAGE:
        agent = lookup.agent_row(ctx, resource.id)
        if agent is None or agent.company_id != ctx.company:
            return None
        return {"kind": "agent", "id": agent.id, "name": agent.name}
    if resource.kind is ResourceKind.OUTCOME:
        outcome = lookup.find(ctx, OUTCOME, resource.id)
        if not reader(ctx)(outcome):
            return None
        return {"kind": "outcome", "id": outcome.id, "name": outcome.title}
    if resource.kind is ResourceKind.KB_FILE:
        file = ctx.tx.one(file_statements.FILE_ANYWHERE, file=resource.id)
        if file is None or file.company_id != ctx.company:
            return None
        listed, home = not file.unlisted, file.home_agent_id
        if not ctx.decide(Action.FILE_SEE, resource, listed=listed, home=home).allowed:
            return None
        kind = "outcome" if file.kind is FileKind.OUTCOME else "file"
        return {"kind": kind, "id": file.id, "name": file.description}
    return None
