"""Read models that join several nouns: an agent with its configuration, a company in numbers, the
history of one thing, and the tools that an agent is offered."""

import json
from functools import lru_cache
from typing import cast

from remit.authority import Action
from remit.errors import NotFound
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.agent_spec import LISTED
from remit.model.organisation.decision import Effect
from remit.model.organisation.grant import Level, Mode, ResourceKind
from remit.model.organisation.principal import ActorKind
from remit.model.work.outcome import OutcomeStatus
from remit.services import lookup, shapes, views
from remit.services.command import Context, query
from remit.services.connections.lent_plugins import lent_to
from remit.services.fields import AgentRef, CompanyRef
from remit.services.governance import approval_engine
from remit.services.organisation.permissions import HIRING
from remit.services.spending import ledger
from remit.services.surfaces import AsCommand, AsRoute
from remit.services.verbs import Added
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import agents as agent_statements
from remit.store.organisation import governance
from remit.store.organisation import grants as grant_statements
from remit.store.record import events as event_log
from remit.store.record import overview as statements

#: Size of the cache of agents' views.
_KEPT = 2048
#: Fields that only readers of configurations see.
_CONFIGURED = frozenset(
    {"permissions", "permission_level", *(field.name for field in LISTED if field.part.private)}
)


@query("overview.agent", AsRoute("GET /agents/{id}", "show_agent"), AsCommand("agent show"))
def agent(ctx: Context, *, agent: AgentRef) -> shapes.AgentShape:
    """An agent; its configuration only for those who may see it."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.AGENT_READ, on=f"agent:{agent_row.id}", home=agent_row.id)
    if not _readable(ctx, agent_row):
        return _public(agent_row)
    shown = _with_configuration(agent_row)
    if lent := lent_to(ctx, agent_row):
        shown["lent"] = [f"{plugin.name} from {plugin.source}" for plugin in lent]
    return shown


@query("overview.agents", AsRoute("GET /companies/{companyId}/agents", "list_agents", page="id"))
def agents(
    ctx: Context,
    *,
    company: CompanyRef | None,
    after: str = "",
    limit: int = 100,
    terminated: bool = False,
) -> list[shapes.AgentShape]:
    """The agents of a company; those that were terminated only if asked for."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.AGENT_READ, on="agents")
    rows = ctx.tx.all(agent_statements.AGENTS, after=after, limit=limit, terminated_too=terminated)
    if ctx.membership is not None and ctx.membership.scope_agent_id is not None:
        return [_with_configuration(row) if _readable(ctx, row) else _public(row) for row in rows]
    shown = _with_configuration if _readable(ctx, None) else _public
    return [shown(row) for row in rows]


@query("overview.me", AsRoute("GET /agents/me", "show_calling_agent"))
def me(ctx: Context) -> shapes.CallingAgentShape:
    """The calling agent, and what it is permitted."""
    caller = lookup.myself(ctx, NotFound("You are a user, not an agent.", "Name the agent."))
    ctx.require(Action.AGENT_READ, on=f"agent:{caller.id}")
    shown = _with_configuration(caller) if _readable(ctx, caller) else views.agent(caller)
    return {**shown, "run_id": ctx.actor.run_id}


@query("overview.dashboard", AsRoute("GET /companies/{companyId}/dashboard", "show_dashboard"))
def dashboard(ctx: Context, *, company: CompanyRef | None) -> shapes.DashboardShape:
    """Counts; null where the caller does not see all of what would be counted."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on=f"company:{ctx.company}")
    here: dict[str, object] = {"company": ctx.company}
    scoped = ctx.membership is not None and ctx.membership.scope_agent_id is not None
    whole = ctx.actor.kind is not ActorKind.AGENT and not scoped
    me = ctx.actor.agent_id or ""
    staff = dict(ctx.tx.all(statements.AGENTS_BY_STATUS, **here))
    numbers: shapes.DashboardShape = {
        "company_id": ctx.company,
        "agents": {status.value: staff.get(status.value, 0) for status in AgentStatus},
        "running": ctx.tx.one(statements.RUNNING, **here) or 0,
        "unread": ctx.tx.one(statements.UNREAD, **here, who=ctx.actor.id) or 0,
        "outcomes": None,
        "pending_approvals": None,
    }
    if not scoped:
        if whole:
            work = dict(ctx.tx.all(statements.OUTCOMES_BY_STATUS, **here))
        else:
            work = dict(ctx.tx.all(statements.OUTCOMES_OF_BY_STATUS, owner=me))
        numbers["outcomes"] = {status.value: work.get(status.value, 0) for status in OutcomeStatus}
        numbers["pending_approvals"] = ctx.tx.one(
            statements.PENDING_APPROVALS, **here, agent=me, all_of_them=whole
        )
    return numbers


@query("overview.happened_to")
def happened_to(
    ctx: Context, *, company: str | None, resource: str, before: int, limit: int = 100
) -> list[shapes.EventShape]:
    """Events about one thing, newest first."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.EVENT_READ, on="events")
    events = ctx.tx.all(
        event_log.ON_BEFORE, resource=resource, before=before, refused_too=True, limit=limit
    )
    return [views.event(event) for event in events]


@query("overview.may_test", Added("agent", None))
def may_test(
    ctx: Context, *, company: str | None, agent: str | None = None
) -> tuple[str, shapes.AgentAdapterShape | None]:
    """Check that the caller may test adapters, which starts the programs that they name and queries
    their models. Returns the company, and the settings of an agent, which must not be shown."""
    entered = lookup.company_of_caller(ctx, company)
    ctx.require(Action.CONFIG_CHANGE, on="adapters")
    if agent is None:
        return entered, None
    agent_row = lookup.agent(ctx, agent)
    settings = json.loads(agent_row.adapter_config)
    return entered, {"adapter_type": agent_row.adapter_type, "adapter_config": settings}


@query("overview.offered")
def offered(ctx: Context) -> frozenset[str]:
    """Features that the calling agent can use, which decide the tools that it is offered."""
    me = ctx.actor.agent_id
    if me is None:
        return frozenset({""})
    lookup.company_of_caller(ctx, None)
    has_reports = ctx.tx.one(agent_statements.LIVING_REPORT, agent=me) is not None
    may_hire = ctx.decide(Action.AGENT_CREATE, HIRING).effect is not Effect.DENY
    held = ctx.tx.all(grant_statements.HELD_OF_KIND, holder=me, kind=ResourceKind.REPO.value)
    offers = {
        "": True,
        "hiring": may_hire,
        "configurations": ctx.decide(Action.CONFIG_READ, HIRING).allowed,
        "reports": has_reports,
        # A run begins anew when something is decided, so it needs these tools until then only.
        "approvals": _has_undecided(ctx, me)
        or (
            ctx.actor.run_id is None and (may_hire or has_reports or _asked_for_something(ctx, me))
        ),
        "deciding": has_reports and approval_engine.may_decide(ctx, me),
        "loose_ends": has_reports or _left_something_open(ctx, me),
        "budget": bool(ledger.means(ctx, me)),
        "changes": any(grant.level >= Level.PROPOSE and grant.live(ctx.now) for grant in held),
        "merging": any(
            grant.level is Level.MERGE and grant.mode is not Mode.DENY for grant in held
        ),
    }
    return frozenset(name for name, offer in offers.items() if offer)


def _left_something_open(ctx: Context, me: str) -> bool:
    own: dict[str, object] = {"company": ctx.company, "agent": me, "limit": 1}
    own |= {"after": "", "any_agent": False, "ended_too": False}
    return bool(
        ctx.tx.all(mail_statements.QUESTIONS, **own)
        or ctx.tx.all(mail_statements.SCHEDULES, **own)
        or ctx.tx.all(mail_statements.DEFERRED_BY, agent=me, limit=1)
    )


def _asked_for_something(ctx: Context, me: str) -> bool:
    return bool(ctx.tx.all(governance.APPROVALS, before="g", status=None, requester=me, limit=1))


def _has_undecided(ctx: Context, me: str) -> bool:
    """Return whether an approval that the agent requested, or is to decide, is undecided."""
    return bool(ctx.tx.one(governance.IS_UNDECIDED_WITH, agent=me))


def _readable(ctx: Context, agent: Agent | None) -> bool:
    home = agent.id if agent else None
    return ctx.decide(Action.CONFIG_READ, HIRING, home=home).allowed


def _public(agent: Agent) -> shapes.AgentShape:
    """View of an agent for callers who may not read configurations."""
    shown = {key: value for key, value in views.agent(agent).items() if key not in _CONFIGURED}
    return cast(shapes.AgentShape, shown)


def _with_configuration(agent: Agent) -> shapes.AgentShape:
    return _described(agent).copy()


@lru_cache(maxsize=_KEPT)
def _described(agent: Agent) -> shapes.AgentShape:
    """Cached, because redaction takes longer than all else in a list, and agents seldom change."""
    described, removed = views.description(agent)
    shown = {
        **views.agent(agent),
        **described,
        "config_revision": agent.config_revision,
        "redacted": removed,
    }
    return cast(shapes.AgentShape, shown)
