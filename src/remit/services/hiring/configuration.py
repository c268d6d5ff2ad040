"""Configurations of agents: who may read them, changes, proposals, revisions and rollback."""

import json
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar, cast

from remit.authority import Action
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound, stale
from remit.ids import RevisionId, is_id
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.agent_spec import CONFIGURED, AgentSpec
from remit.model.organisation.approval import Approval, ApprovalType
from remit.model.organisation.configuration import (
    CONFIG_KEYS,
    ConfigRevision,
    RevisionSource,
    changed,
    changed_paths,
    configuration_of,
    is_for_people,
    revision_of,
    value_at,
)
from remit.model.organisation.principal import ActorKind
from remit.model.text import LONGEST_REASON, clean_text, name_key
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, query
from remit.services.execution import waking
from remit.services.fields import AgentRef, CompanyRef, Help, Range, Reference, Remark
from remit.services.governance import approval_engine
from remit.services.hiring import agent_spec
from remit.services.organisation import tree
from remit.services.organisation.permissions import HIRING
from remit.services.redaction import restore, without_secrets
from remit.services.shape_basics import JsonObject
from remit.services.spending import budgets, ledger, promises
from remit.services.surfaces import AsRoute, AsTool
from remit.store.engine.statement import row
from remit.store.execution import jobs as job_statements
from remit.store.organisation import agent_page, people
from remit.store.organisation import agents as agent_statements
from remit.store.organisation import governance as statements

Asked = TypeVar("Asked", shapes.ApprovalShape, shapes.ApprovalRevisionShape)
#: How many related agents are searched for those in the caller's part of the company.
MOST_SEARCHED = 200
#: Above every revision number.
NEWEST = 2**30


@query("configuration.show", AsRoute("GET /agents/{id}/configuration", "show_configuration"))
def show(ctx: Context, *, agent: AgentRef) -> shapes.ConfigurationShape:
    """One agent's configuration without its secrets."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    _require_reading(ctx, agent_row)
    return _shown(agent_row)


@query(
    "configuration.listing",
    AsRoute(
        "GET /companies/{companyId}/agent-configurations", "list_configurations", page="agent_id"
    ),
)
def listing(
    ctx: Context, *, company: CompanyRef | None, after: str = "", limit: int = 100
) -> list[shapes.ConfigurationShape]:
    """How everybody is configured who works in the company, or in the caller's part of it; for
    the board, the CEO and those who may hire, without secrets."""
    lookup.company_of_caller(ctx, company)
    _require_reading(ctx, None)
    scope = ctx.membership.scope_agent_id if ctx.membership else None
    if scope is not None:
        below = ctx.tx.all(agent_statements.SUBTREE_OF_AGENT, agent=scope)
        living = [agent for agent in below if agent.status is not AgentStatus.TERMINATED]
        page = sorted((agent for agent in living if agent.id > after), key=lambda agent: agent.id)
        return [_shown(agent) for agent in page[:limit]]
    agents = ctx.tx.all(agent_statements.AGENTS, after=after, limit=limit, terminated_too=False)
    return [_shown(agent) for agent in agents]


@query("configuration.related")
def related(
    ctx: Context, *, company: str | None, role: str, adapter_type: str, limit: int = 5
) -> list[shapes.ConfigurationShape]:
    """Return configurations of agents with the same adapter or role, most similar first."""
    lookup.company_of_caller(ctx, company)
    _require_reading(ctx, None)
    scope = ctx.membership.scope_agent_id if ctx.membership else None
    agents = ctx.tx.all(
        agent_page.RELATED,
        role=role,
        adapter_type=adapter_type,
        limit=limit if scope is None else MOST_SEARCHED,
    )
    return [
        _shown(agent) for agent in agents if scope is None or scope in ctx.boss_chain(agent.id)
    ][:limit]


@query("configuration.may_read")
def may_read(ctx: Context, *, company: str | None = None) -> None:
    """Check that the caller may read configurations."""
    lookup.company_of_caller(ctx, company)
    _require_reading(ctx, None)


def is_readable(ctx: Context) -> bool:
    """Return whether the caller may read configurations, for views that show more to those who
    may."""
    if ctx.actor.kind is not ActorKind.AGENT:
        return True  # people who see an approval see what it would change
    return ctx.decide(Action.CONFIG_READ, HIRING).allowed


@command("configuration.change")
def change(
    ctx: Context, *, agent: str, changes: Mapping[str, Any], expected_revision: int | None = None
) -> shapes.ConfiguredAgentShape:
    """Change an agent's configuration at once. The board does this."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    _require_changing(ctx, agent_row, changes)
    _check_seen(agent_row, expected_revision)
    wanted = merged(agent_row, changes)
    if not _differs(agent_row, wanted):
        _refuse_unconfigurable(agent_row)
        details = {"revision": agent_row.config_revision, "changed": [], "source": "change"}
        ctx.record("agent.configure", f"agent:{agent_row.id}", {**details, "approval": None})
        return {**views.agent(agent_row), **_shown(agent_row), "warning": None}
    new = apply(ctx, agent_row, wanted, RevisionSource.CHANGE)
    concerns = changes.keys() & {"budgetMonthlyCents", *CONFIG_KEYS}
    warning = promises.warning(ctx, new) if concerns else None
    return {**views.agent(new), **_shown(new), "warning": warning}


def _differs(agent: Agent, wanted: Mapping[str, Any]) -> bool:
    return bool(changed(configuration_of(agent), agent_spec.settled(wanted)))


def _require_changing(ctx: Context, agent: Agent, changes: Mapping[str, Any]) -> None:
    ctx.require(
        Action.CONFIG_CHANGE,
        on=f"agent:{agent.id}",
        home=agent.id,
        for_people=_is_for_people(ctx, agent, changes),
    )


def _is_for_people(ctx: Context, agent: Agent, changes: Mapping[str, Any]) -> bool:
    """Return whether a change that an agent makes gives somebody a secret or the whole machine."""
    if ctx.actor.kind is not ActorKind.AGENT or not changes.keys() & {*CONFIG_KEYS}:
        return False
    wanted = merged(agent, changes)
    readable = isinstance(wanted["adapterConfig"], dict)
    return not readable or is_for_people(wanted, configuration_of(agent))


@command(
    "configuration.propose",
    # Over HTTP the changes are the body, as in a description of an agent.
    AsTool(
        "propose_config", "Propose another configuration for somebody below you.", offer="reports"
    ),
)
def propose(
    ctx: Context,
    *,
    agent: Annotated[AgentRef, Help("Somebody below you", model=True)],
    changes: Annotated[
        Mapping[str, object], Help("Such as prompt, title, adapterType, adapterConfig", model=True)
    ],
    reason: Remark = "",
    expected_revision: Annotated[int, Range(1, NEWEST)] | None = None,
) -> shapes.HireShape:
    """Ask for a change of the configuration of somebody below; where the company does not want
    to be asked, it takes effect at once, unless only people may decide about it."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.CONFIG_PROPOSE, over=agent_row.id)
    _check_seen(agent_row, expected_revision)
    _refuse_unconfigurable(agent_row)
    wanted = merged(agent_row, changes)
    _check(ctx, agent_row, wanted)
    if not _differs(agent_row, wanted):
        raise Conflict("It is configured like that already.", "There is nothing to propose.")
    company = ctx.tx.existing(people.COMPANY)
    for_people = is_for_people(wanted, configuration_of(agent_row))
    # An agent has one tool for both, so its proposal takes effect if it may change; a person who
    # proposes wants a decision.
    may_change = (
        ctx.actor.kind is ActorKind.AGENT
        and ctx.decide(
            Action.CONFIG_CHANGE,
            home=agent_row.id,
            for_people=_is_for_people(ctx, agent_row, changes),
        ).allowed
    )
    if may_change or (not company.require_approval_for_config_changes and not for_people):
        new = apply(ctx, agent_row, wanted, RevisionSource.PROPOSAL)
        return {"agent": views.agent(new), "approval": None, **promises.warned(ctx, new)}
    payload = proposal(agent_row, wanted, reason)
    approval = approval_engine.ask(ctx, ApprovalType.CONFIG_CHANGE, payload, agent=agent_row)
    seen = as_seen(ctx, views.approval(approval))
    return {"agent": views.agent(agent_row), "approval": seen}


@query(
    "configuration.revisions",
    AsRoute("GET /agents/{id}/config-revisions", "list_config_revisions", page="number"),
)
def revisions(
    ctx: Context, *, agent: AgentRef, before: int = NEWEST, limit: int = 100
) -> list[shapes.ConfigRevisionShape]:
    """Revisions of an agent's configuration, newest first, each with its changes."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    _require_reading(ctx, agent_row)
    before = min(before, NEWEST)
    rows = ctx.tx.all(
        statements.CONFIG_REVISIONS, agent=agent_row.id, before=before, limit=limit + 1
    )
    older: list[ConfigRevision | None] = [*rows[1:], None]
    return [_revision(now, was) for now, was in zip(rows, older, strict=True)][:limit]


@query("configuration.compare")
def compare(ctx: Context, *, agent: str, older: int, newer: int) -> list[shapes.DifferenceShape]:
    """Differences between two revisions; that a secret changed, never its value."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    _require_reading(ctx, agent_row)
    was, now = (
        ctx.tx.one(statements.CONFIG_REVISION, agent=agent_row.id, revision="", number=number)
        for number in (older, newer)
    )
    if was is None or now is None:
        raise NotFound("There is no such revision.", "List the agent's revisions.")
    return difference(json.loads(was.config), json.loads(now.config))


@command(
    "configuration.rollback",
    AsRoute(
        "POST /agents/{id}/config-revisions/{revisionId}/rollback",
        "roll_back_configuration",
        as_seen=True,
    ),
)
def rollback(
    ctx: Context, *, agent: AgentRef, revision: Annotated[str, Reference("revision")]
) -> shapes.ConfiguredAgentShape:
    """Make an earlier configuration the current one again, as a new revision."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    earlier = ctx.tx.one(
        statements.CONFIG_REVISION,
        agent=agent_row.id,
        revision=revision if is_id(revision) else "",
        number=int(revision) if revision.isascii() and revision.isdigit() else -1,
    )
    _require_changing(ctx, agent_row, {} if earlier is None else json.loads(earlier.config))
    if earlier is None:
        raise NotFound("There is no such revision.", "List the agent's revisions.")
    new = apply(ctx, agent_row, json.loads(earlier.config), RevisionSource.ROLLBACK)
    return {**views.agent(new), **_shown(new), "warning": promises.warning(ctx, new)}


def merged(agent: Agent, changes: Mapping[str, Any]) -> dict[str, object]:
    """Return a whole configuration: the agent's present one with these keys replaced.

    A secret that was shown redacted and comes back so keeps its value.
    """
    current = configuration_of(agent)
    known = {
        field.key: field.empty if changes[field.key] is None else changes[field.key]
        for field in CONFIGURED
        if field.key in changes
    }
    if not known:
        raise BadInput("Nothing is to change.", f"Give one of {', '.join(CONFIG_KEYS)}.")
    return {**current, **{key: restore(new, current.get(key)) for key, new in known.items()}}


def proposal(agent: Agent, wanted: dict[str, object], why: str) -> dict[str, object]:
    return {
        "agentId": agent.id,
        "name": agent.name,
        "reason": why,
        "baseRevision": agent.config_revision,
        "changed": (keys := changed(configuration_of(agent), wanted)),
        "configuration": {key: wanted[key] for key in keys},
        "difference": difference(configuration_of(agent), wanted),
    }


def as_seen(ctx: Context, view: Asked) -> Asked:
    """An approval without the values that a proposal would replace, unless the caller may read
    them."""
    payload = view["payload"]
    if "difference" in payload:
        changes = cast(list[shapes.DifferenceShape], payload["difference"])
        view["payload"] = {**payload, "difference": changes_seen(ctx, changes)}
    return view


def changes_seen(
    ctx: Context, changes: list[shapes.DifferenceShape]
) -> list[shapes.DifferenceShape]:
    """Changes without the values that they replace, unless the caller may read them."""
    if is_readable(ctx):
        return changes
    return [{"path": entry["path"], "now": entry["now"]} for entry in changes]


def proposed(ctx: Context, approval: Approval, step: str) -> tuple[JsonObject, Agent]:
    """Return the payload of a proposal and its agent, or refuse it if that is gone."""
    payload = json.loads(approval.payload)
    agent = lookup.agent_row(ctx, payload["agentId"])
    if agent is None or agent.status is AgentStatus.TERMINATED:
        raise Conflict("The agent is gone.", step)
    return payload, agent


def take_effect(ctx: Context, approval: Approval) -> None:
    """Apply an approved proposal, if the agent's configuration is still the one that it was made
    for."""
    payload, agent = proposed(ctx, approval, "Reject the proposal.")
    if agent.config_revision != payload["baseRevision"]:
        raise Conflict(
            f"{agent.name} was configured differently meanwhile.",
            "Ask for a revision, or reject it.",
            code="stale_revision",
        )
    wanted = {**configuration_of(agent), **payload["configuration"]}
    apply(ctx, agent, wanted, RevisionSource.PROPOSAL, approval)


def resubmitted(ctx: Context, approval: Approval, changes: Mapping[str, Any]) -> dict[str, object]:
    """The proposal again, based on the agent's present configuration."""
    payload, agent = proposed(ctx, approval, "Cancel the proposal.")
    configuration = payload["configuration"]
    inner = changes.get("configuration")
    more = {**(inner if isinstance(inner, Mapping) else {}), **changes}
    known = {key: restore(more[key], configuration.get(key)) for key in CONFIG_KEYS if key in more}
    wanted = merged(agent, {**configuration, **known})
    _check(ctx, agent, wanted)
    reason = changes.get("reason", payload["reason"])
    return proposal(
        agent, wanted, clean_text(reason, "reason", longest=LONGEST_REASON, empty_ok=True)
    )


def apply(
    ctx: Context,
    agent: Agent,
    wanted: Mapping[str, Any],
    source: RevisionSource,
    approval: Approval | None = None,
) -> Agent:
    """Give an agent a new configuration, stored as a revision."""
    if source is not RevisionSource.RESUBMIT:
        _refuse_unconfigurable(agent)
    spec = _check(ctx, agent, wanted)
    before, stored = configuration_of(agent), row(spec)
    if not ctx.tx.run(
        statements.CONFIGURE_AGENT,
        agent=agent.id,
        seen_revision=agent.config_revision,
        new_key=name_key(spec.name),
        **{f"new_{field.name}": stored[field.name] for field in CONFIGURED},
    ):
        raise Conflict("Its configuration changed meanwhile.")
    new = lookup.known_agent(ctx, agent.id)
    kept = keep(ctx, new, source, before, approval)
    ledger.change_limits(ctx, agent, new)
    budgets.relieve(ctx)
    if new.status is AgentStatus.ERROR:
        tree.set_status(ctx, new, AgentStatus.IDLE)  # with other settings it may work
    waking.wake_afresh(ctx, agent.id, "its settings changed")
    ctx.tx.run(
        job_statements.CONFIGURE_HELD,
        agent=new.id,
        new_type=new.adapter_type,
        new_config=new.adapter_config,
    )
    ctx.record(
        "agent.configure",
        f"agent:{agent.id}",
        {
            "revision": kept.number,
            "changed": json.loads(kept.changed_keys),
            "source": source.value,
            "approval": approval.id if approval else None,
        },
    )
    return new


def keep(
    ctx: Context,
    agent: Agent,
    source: RevisionSource,
    before: dict[str, object] | None = None,
    approval: Approval | None = None,
) -> ConfigRevision:
    """Store the present configuration of an agent as a revision."""
    revision, approval_id = RevisionId(ctx.ids.new()), approval.id if approval else None
    kept = revision_of(
        agent, revision, source, ctx.actor, ctx.now, before=before, approval=approval_id
    )
    ctx.tx.add(kept)
    return kept


def _refuse_unconfigurable(agent: Agent) -> None:
    if agent.status is AgentStatus.TERMINATED:
        raise Conflict(f"{agent.name} is terminated.", "Choose an agent that works here.")
    if agent.status is AgentStatus.PENDING_APPROVAL:
        raise Conflict(
            f"{agent.name} awaits approval as it is.", "Request a revision of the hire instead."
        )


def _check(ctx: Context, agent: Agent, wanted: Mapping[str, Any]) -> AgentSpec:
    spec = agent_spec.from_configuration(wanted)
    if agent.seat_user_id is not None and spec.adapter_type != "human":
        raise Conflict(
            f"A person holds {agent.name}'s seat.", "Give the seat back to a program first."
        )
    taken = lookup.living_agent(ctx, spec.name)
    if taken is not None and taken.id != agent.id:
        raise AlreadyExists(f"There is an agent named {spec.name!r} already.")
    return spec


def _check_seen(agent: Agent, seen: int | None) -> None:
    if seen is not None and seen != agent.config_revision:
        now = agent.config_revision
        raise stale(f"Its configuration is at revision {now}, not {seen}.", revision=now)


def _require_reading(ctx: Context, agent: Agent | None) -> None:
    part = ctx.membership.scope_agent_id if ctx.membership else None
    ctx.require(
        Action.CONFIG_READ,
        HIRING,
        on=f"agent:{agent.id}" if agent else "agent-configurations",
        home=agent.id if agent else part,
    )


def _shown(agent: Agent) -> shapes.ConfigurationShape:
    """A configuration without secrets, and the names of those that were redacted."""
    described, removed = views.description(agent)
    shown = {
        "agent_id": agent.id,
        "company_id": agent.company_id,
        "status": agent.status.value,
        "reports_to": agent.boss_id,
        "revision": agent.config_revision,
        "redacted": removed,
        **described,
    }
    return cast(shapes.ConfigurationShape, shown)


def _revision(now: ConfigRevision, was: ConfigRevision | None) -> shapes.ConfigRevisionShape:
    config = json.loads(now.config)
    shown, removed = without_secrets(config)
    changes = [] if was is None else difference(json.loads(was.config), config)
    return {**_stored(now), "configuration": shown, "difference": changes, "redacted": removed}


_stored = views.view_of(
    ConfigRevision,
    shapes.ConfigRevisionShape,
    configuration="config",
    changed="changed_keys",
    difference=lambda _: [],
    redacted=lambda _: [],
)


def difference(old: dict[str, object], new: dict[str, object]) -> list[shapes.DifferenceShape]:
    """Return the changed leaves; of a secret only that it changed."""
    before, after = without_secrets(old)[0], without_secrets(new)[0]
    return [
        {"path": ".".join(keys), "was": value_at(before, keys), "now": value_at(after, keys)}
        for keys in changed_paths(old, new)
    ]
