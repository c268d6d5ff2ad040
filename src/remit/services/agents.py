"""Agents: create, list, show, terminate; and their keys."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from remit.authority import Action
from remit.clock import Micros
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound
from remit.ids import AgentId, TokenKind, UserId
from remit.model.agent import DEEPEST_TREE, TRANSITIONS, Agent, AgentRole, AgentStatus, agent_name
from remit.model.outcome import OutcomeStatus
from remit.model.principal import ActorKind
from remit.model.text import clean_line, name_key
from remit.services import grants, lookup, outcomes, users, views
from remit.services.command import Answer, Context, command, query
from remit.store import agents as statements
from remit.store import people

LONGEST_CONFIG = 64 * 1024
#: Programs that can execute an agent; a person in the seat starts none.
ADAPTER_TYPES = frozenset({"claude", "codex", "llm", "process", "http", "human", "scripted"})


@command
def create(
    ctx: Context,
    *,
    company: str | None,
    name: object,
    role: object = "general",
    title: object = "",
    reports_to: str | None = None,
    adapter_type: object = "human",
    adapter_config: Mapping[str, Any] | None = None,
    purpose: object = None,
    perpetual: bool = False,
    given: Sequence[Mapping[str, Any]] = (),
) -> Answer:
    """Bring an agent into being, with the outcome it is responsible for and its first grants."""
    name = agent_name(name)
    role = agent_role(role)
    title = clean_line(title, "title", longest=100, empty_ok=True)
    kind = adapter(adapter_type)
    config = adapter_settings(adapter_config)
    lookup.company_of_caller(ctx, company)
    boss = lookup.agent(ctx, reports_to) if reports_to else None
    ctx.require(
        Action.AGENT_CREATE,
        on=f"agent:{name}",
        home=boss.id if boss else None,
    )
    if boss is not None:
        _check_boss(ctx, boss)
    if _name_taken(ctx, name):
        raise AlreadyExists(f"There is an agent named {name!r} already.")
    mandate = outcomes.open_outcome(
        ctx,
        owner=None,
        title=clean_line(purpose or title or f"Act as {role.value}", "purpose", longest=200),
        perpetual=perpetual,
    )
    agent = Agent(
        id=AgentId(mandate.id),
        company_id=mandate.company_id,
        name=name,
        role=role,
        title=title,
        status=AgentStatus.IDLE,
        boss_id=boss.id if boss else None,
        boss_user_id=None if boss else _boss_user(ctx),
        adapter_type=kind,
        adapter_config=config,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    ctx.tx.run(
        statements.INSERT_AGENT,
        id=agent.id,
        company_id=agent.company_id,
        name=name,
        name_key=name_key(name),
        role=role.value,
        title=title,
        status=agent.status.value,
        boss_id=agent.boss_id,
        boss_user_id=agent.boss_user_id,
        adapter_type=kind,
        adapter_config=config,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    ctx.record(
        "agent.create",
        f"agent:{agent.id}",
        {
            "name": name,
            "role": role.value,
            "boss": agent.boss_id,
            "boss_user": agent.boss_user_id,
            "adapter_type": kind,
            "mandate": mandate.title,
        },
    )
    for wish in given:
        grants.give_to(ctx, agent, wish)
    return views.agent(agent)


@query
def listing(
    ctx: Context,
    *,
    company: str | None,
    after: str = "",
    limit: int = 100,
    terminated: bool = False,
) -> list[dict[str, Any]]:
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.AGENT_READ, on="agents")
    return [
        views.agent(found)
        for found in ctx.tx.all(
            statements.AGENTS,
            company=ctx.company,
            after=after,
            limit=limit,
            terminated_too=terminated,
        )
    ]


@query
def show(ctx: Context, *, agent: str) -> dict[str, Any]:
    found = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.AGENT_READ, on=f"agent:{found.id}", home=found.id)
    return views.agent(found)


@query
def me(ctx: Context) -> dict[str, Any]:
    """The agent that is calling."""
    if ctx.actor.agent_id is None:
        raise NotFound("You are a user, not an agent.", "Use an agent's token.")
    found = lookup.agent_anywhere(ctx, ctx.actor.agent_id)
    ctx.require(Action.AGENT_READ, on=f"agent:{found.id}")
    return {**views.agent(found), "run_id": ctx.actor.run_id}


@command
def terminate(ctx: Context, *, agent: str) -> Answer:
    """End an agent softly: its mandate closes, its credentials die, its history stays."""
    found = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.AGENT_TERMINATE, on=f"agent:{found.id}", home=found.id)
    check_transition(found, AgentStatus.TERMINATED)
    if ctx.tx.one(statements.LIVING_REPORT, agent=found.id) is not None:
        raise Conflict(
            f"{found.name} still has reports.", "Terminate its reports first, or move them."
        )
    set_status(ctx, found, AgentStatus.TERMINATED)
    ctx.tx.run(people.REVOKE_TOKENS_OF, agent=found.id, user=None, run=None, now=ctx.now)
    live = ctx.tx.one(statements.LIVE_RUN_OF, agent=found.id)
    if live is not None:
        ctx.tx.run(statements.END_RUN, run=live.id, new_status="cancelled", now=ctx.now)
    mandate = ctx.tx.one(statements.OUTCOME, company=ctx.company, outcome=found.id)
    ended: list[str] = []
    if mandate is not None and mandate.status is OutcomeStatus.OPEN:
        ended = outcomes.finish_outcome(ctx, mandate.id, OutcomeStatus.CLOSED)
    ctx.record(
        "agent.terminate",
        f"agent:{found.id}",
        {"name": found.name, "revoked": ended, "run": live.id if live else None},
    )
    return {**views.agent(found), "status": AgentStatus.TERMINATED.value}


@command
def create_key(
    ctx: Context, *, agent: str, label: object = "", expires_at: Micros | None = None
) -> Answer:
    label = clean_line(label, "label", longest=100, empty_ok=True)
    found = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.KEY_CHANGE, on=f"agent:{found.id}", home=found.id)
    if found.status in (AgentStatus.TERMINATED, AgentStatus.PENDING_APPROVAL):
        raise Conflict(
            f"{found.name} is {found.status.value.replace('_', ' ')}.",
            "Keys are for agents that can act.",
        )
    return users.issue(ctx, TokenKind.AGENT, label, expires_at, agent=found.id)


@query
def keys(ctx: Context, *, agent: str) -> list[dict[str, Any]]:
    found = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.KEY_READ, on=f"agent:{found.id}", home=found.id)
    return [views.token(key) for key in ctx.tx.all(people.AGENT_KEYS, agent=found.id)]


@command
def revoke_key(ctx: Context, *, agent: str, key: str) -> Answer:
    found = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.KEY_CHANGE, on=f"agent:{found.id}", home=found.id)
    token = ctx.tx.one(people.TOKEN, token=key)
    if token is None or token.agent_id != found.id:
        raise NotFound("There is no such key.")
    ctx.tx.run(people.REVOKE_TOKEN, token=token.id, now=ctx.now)
    ctx.record("token.revoke", f"token:{token.id}", {"agent_id": found.id})
    return {"id": token.id, "revoked": True}


def agent_role(text: object) -> AgentRole:
    try:
        return AgentRole(text)  # type: ignore[arg-type]  # anything else is the error we report
    except ValueError:
        known = ", ".join(role.value for role in AgentRole)
        raise BadInput(f"role must be one of {known}.", "Choose one of these roles.") from None


def adapter(text: object) -> str:
    if not isinstance(text, str) or text not in ADAPTER_TYPES:
        known = ", ".join(sorted(ADAPTER_TYPES))
        raise BadInput(f"adapterType must be one of {known}.", "Choose one of these adapters.")
    return text


def adapter_settings(config: Mapping[str, Any] | None) -> str:
    text = json.dumps(dict(config or {}), ensure_ascii=True)
    if len(text) > LONGEST_CONFIG:
        raise BadInput("adapterConfig is larger than 64 KiB.", "Keep long texts in files.")
    return text


def check_transition(agent: Agent, wanted: AgentStatus) -> None:
    if wanted not in TRANSITIONS[agent.status]:
        raise Conflict(
            f"{agent.name} is {agent.status.value.replace('_', ' ')} "
            f"and cannot become {wanted.value.replace('_', ' ')}.",
            "Look at the agent's status.",
        )


def set_status(ctx: Context, agent: Agent, wanted: AgentStatus) -> None:
    """The only place where a status changes."""
    check_transition(agent, wanted)
    ctx.tx.run(
        statements.SET_AGENT_STATUS,
        agent=agent.id,
        was=agent.status.value,
        new_status=wanted.value,
        now=ctx.now,
    )


def _check_boss(ctx: Context, boss: Agent) -> None:
    if boss.status in (AgentStatus.TERMINATED, AgentStatus.PENDING_APPROVAL):
        raise Conflict(
            f"{boss.name} is {boss.status.value.replace('_', ' ')} and cannot have reports.",
            "Choose another boss.",
        )
    depth = len(ctx.place(boss.id))
    if depth == 0 or depth >= DEEPEST_TREE:
        raise BadInput(
            f"The tree may be at most {DEEPEST_TREE} agents deep.", "Choose a boss further up."
        )


def _name_taken(ctx: Context, name: str) -> bool:
    return (
        ctx.tx.one(statements.LIVING_AGENT_BY_NAME, company=ctx.company, name_key=name_key(name))
        is not None
    )


def _boss_user(ctx: Context) -> UserId:
    if ctx.actor.kind is not ActorKind.USER:
        raise BadInput("A root agent reports to a user.", "Name the boss with reportsTo.")
    return UserId(ctx.actor.id)
