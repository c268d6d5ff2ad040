"""Agents: create, list, show, control, terminate; and their keys."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from remit.authority import Action
from remit.clock import Micros
from remit.errors import Conflict, NotFound
from remit.ids import TokenKind
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.agent_spec import FIELDS, AgentSpec
from remit.model.organisation.approval import ApprovalType
from remit.model.organisation.configuration import is_for_people
from remit.model.organisation.permission import PermissionLevel, permission_level
from remit.model.organisation.principal import ActorKind
from remit.model.text import LONGEST_LABEL, clean_line
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, query
from remit.services.execution import jobs, waking
from remit.services.fields import AgentRef, Help, Limit, OfAnother, Reference, Remark, Text
from remit.services.governance import approval_engine
from remit.services.hiring import agent_spec
from remit.services.knowledge import documents
from remit.services.messaging import mail
from remit.services.organisation import permissions, termination, tree
from remit.services.people import token_record, users
from remit.services.rights import grants
from remit.services.spending import promises
from remit.services.subjects import require_file
from remit.services.surfaces import AsCommand, AsRoute, AsTool
from remit.services.verbs import Added, preview_of
from remit.services.work import outcome_ending
from remit.store.engine.statement import row
from remit.store.execution import runs as run_statements
from remit.store.organisation import agents as statements
from remit.store.organisation import people
from remit.store.record import events as event_log


@command("agents.create", Added("level", None), described=FIELDS)
def create(
    ctx: Context,
    /,
    *,
    company: str | None,
    reports_to: str | None = None,
    purpose: object = None,
    perpetual: object = None,
    level: object = None,
    given: Sequence[Mapping[str, Any]] = (),
    **described: object,
) -> shapes.CreatedAgentShape:
    """Create an agent directly, with its mandate, permission level and first grants; for the board.

    It needs no approval; the record names its creator.
    """
    lookup.company_of_caller(ctx, company)
    boss = lookup.agent(ctx, reports_to) if reports_to else None
    spec = agent_spec.new(ctx, described, boss)
    require_appointing(ctx, spec, boss)
    wanted_level = None if level is None else permission_level(level)
    if wanted_level is not None:
        home = boss.id if boss else None
        permissions.require_level(ctx, wanted_level, on=f"agent:{spec.name}", home=home)
    agent, _ = tree.create_with_mandate(ctx, spec, boss, purpose=purpose, perpetual=perpetual)
    if wanted_level is not None:
        permissions.set_level(ctx, agent, wanted_level)
    for wish in given:
        grants.give_to(ctx, agent, wish)
    keep_appointment(ctx, agent, wanted_level)
    created = agent if wanted_level is None else lookup.known_agent(ctx, agent.id)
    return {**views.agent(created), **promises.warned(ctx, created)}


def require_appointing(ctx: Context, spec: AgentSpec, boss: Agent | None) -> None:
    """Refuse unless the caller may create such an agent below this boss."""
    settings = {"adapterConfig": json.loads(spec.adapter_config)}
    ctx.require(
        Action.AGENT_APPOINT,
        on=f"agent:{spec.name}",
        home=boss.id if boss else None,
        for_people=ctx.actor.kind is ActorKind.AGENT and is_for_people(settings),
    )
    if ctx.actor.kind is ActorKind.AGENT and spec.permissions != "{}":
        ctx.require(Action.AGENT_PERMIT, on=f"agent:{spec.name}")


def keep_appointment(ctx: Context, agent: Agent, level: PermissionLevel | None = None) -> None:
    """Record an approved hire for an agent that a person created directly."""
    if ctx.actor.kind is ActorKind.USER:
        terms: dict[str, Any] = {"permissionLevel": level.value} if level else {}
        mandate = lookup.known_outcome(ctx, agent.id)
        approval_engine.decided_already(
            ctx,
            ApprovalType.HIRE_AGENT,
            approval_engine.hire_payload(agent, mandate, requested_by=None, **terms),
            agent=agent.id,
            note="Created by the board",
        )


@query("agents.listing")
def listing(
    ctx: Context,
    *,
    company: str | None,
    after: str = "",
    limit: int = 100,
    terminated: bool = False,
) -> list[shapes.AgentShape]:
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.AGENT_READ, on="agents")
    rows = ctx.tx.all(statements.AGENTS, after=after, limit=limit, terminated_too=terminated)
    return [views.agent(row) for row in rows]


@query("agents.show")
def show(ctx: Context, *, agent: str) -> shapes.AgentShape:
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.AGENT_READ, on=f"agent:{agent_row.id}", home=agent_row.id)
    return views.agent(agent_row)


@command(
    "agents.terminate",
    Added("subtree", False),
    AsRoute(
        "POST /agents/{id}/terminate",
        "terminate_agent",
        as_seen=True,
        preview="agents.preview_terminate",
    ),
    AsRoute(
        "DELETE /agents/{id}",
        "delete_agent",
        words="The same as terminate: its history stays.",
        without=("subtree",),
        as_seen=True,
    ),
)
def terminate(
    ctx: Context,
    *,
    agent: AgentRef,
    subtree: Annotated[bool, Help("Everybody below it, too, all or none.")] = False,
) -> shapes.TerminatedAgentShape:
    """End an agent softly: its mandate closes, its credentials die, its history stays."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.lock_company()
    ctx.require(Action.AGENT_TERMINATE, over=agent_row.id)
    ended = termination.end(ctx, agent_row, subtree=subtree)
    status = AgentStatus.TERMINATED.value
    return {**views.agent(agent_row), "status": status, **ended, "dry_run": False}


preview_terminate = preview_of("agents.preview_terminate", terminate)


@command("agents.wake", AsRoute("POST /agents/{id}/wakeup", "wake_agent", 202, as_seen=True))
def wake(ctx: Context, *, agent: AgentRef, reason: Remark | None = "") -> shapes.WokenAgentShape:
    """Send an agent mail that says why, so that it is started; for all who may write to it."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    if agent_row.status not in (AgentStatus.IDLE, AgentStatus.RUNNING, AgentStatus.ERROR):
        raise Conflict(
            f"{agent_row.name} is {agent_row.status.value.replace('_', ' ')}.",
            "It can be woken once it works again.",
        )
    to = f"agent:{agent_row.id}"
    text = reason or "Wake up."
    message = mail.post(ctx, to=to, subject="Wake up", text=text, wishes=bool(reason))
    why_not = mail.not_started(ctx, message)
    return {**views.agent(agent_row), "message_id": message.id, "not_started": why_not}


@command("agents.stop")
def stop(ctx: Context, *, agent: str) -> shapes.AgentShape:
    """End what an agent is doing and keep it from being started."""
    agent_row = require_control(ctx, agent)
    outcome_ending.stop(ctx, agent_row)
    idle = lookup.known_agent(ctx, agent_row.id)
    if idle.status is not AgentStatus.PAUSED:
        tree.set_status(ctx, idle, AgentStatus.PAUSED)
    jobs.stop_all(ctx, agent_row, f"{agent_row.name} was stopped")
    ctx.record("agent.stop", f"agent:{agent_row.id}", {"name": agent_row.name})
    return {**views.agent(agent_row), "status": AgentStatus.PAUSED.value}


@command(
    "agents.start",
    AsRoute("POST /agents/{id}/start", "start_agent", as_seen=True),
    AsCommand("agent start", said="{name} is started; it runs as soon as it has work."),
)
def start(ctx: Context, *, agent: AgentRef) -> shapes.AgentShape:
    """Let a stopped agent work again; it is started when there is something to do."""
    return _control(ctx, agent, AgentStatus.IDLE, "agent.start")


@command(
    "agents.restart",
    AsRoute("POST /agents/{id}/restart", "restart_agent", as_seen=True),
    AsCommand("agent restart", said="{name} is restarted."),
)
def restart(ctx: Context, *, agent: AgentRef) -> shapes.AgentShape:
    """End an agent's run, and start a new one at once."""
    agent_row = require_control(ctx, agent, lifts=True)
    outcome_ending.stop(ctx, agent_row)
    idle = lookup.known_agent(ctx, agent_row.id)
    if idle.status in (AgentStatus.PAUSED, AgentStatus.ERROR):
        tree.set_status(ctx, idle, AgentStatus.IDLE)
    waking.look_now(ctx, agent_row.id)
    waking.wake_afresh(ctx, agent_row.id, "it was restarted")
    return _controlled(ctx, agent_row, "agent.restart")


@command(
    "agents.abort",
    AsRoute("POST /agents/{id}/abort", "abort_agent", as_seen=True),
    AsCommand("agent abort", said="The run of {name} is aborted; new work starts it again."),
)
def abort(ctx: Context, *, agent: AgentRef) -> shapes.AgentShape:
    """End an agent's run; new work starts it again."""
    agent_row = require_control(ctx, agent)
    if ctx.tx.one(run_statements.LIVE_RUN_OF, agent=agent_row.id) is None:
        raise Conflict(f"{agent_row.name} is not running.", "There is nothing to end.")
    outcome_ending.stop(ctx, agent_row)
    return _controlled(ctx, agent_row, "agent.abort")


@command(
    "agents.new_session",
    AsRoute("POST /agents/{id}/new-session", "begin_new_session", as_seen=True),
    AsCommand("agent new-session", said="The next run of {name} begins a new conversation."),
)
def new_session(ctx: Context, *, agent: AgentRef) -> shapes.AgentShape:
    """Have an agent's next run begin a new conversation; what it wrote down stays."""
    agent_row = require_control(ctx, agent)
    whose = (agent_row.id, agent_row.company_id, agent_row.adapter_type)
    afresh = run_statements.Session(*whose, run_statements.FRESH, ctx.now, ctx.now, 0)
    ctx.tx.run(run_statements.KEEP_SESSION, **row(afresh))
    ctx.record("agent.new_session", f"agent:{agent_row.id}", {"name": agent_row.name})
    return views.agent(agent_row)


@command(
    "agents.pause",
    AsRoute("POST /agents/{id}/pause", "pause_agent", as_seen=True),
    AsCommand(
        "agent pause",
        said="{name} is paused; `remit resume {name}` ends the pause.",
    ),
)
def pause(ctx: Context, *, agent: AgentRef) -> shapes.AgentShape:
    """Keep an agent from being started until it is resumed."""
    return _control(ctx, agent, AgentStatus.PAUSED, "agent.pause")


@command(
    "agents.resume",
    AsRoute("POST /agents/{id}/resume", "resume_agent", as_seen=True),
    AsCommand("agent resume", said="{name} is resumed; it runs as soon as it has work."),
)
def resume(ctx: Context, *, agent: AgentRef) -> shapes.AgentShape:
    """Let a paused agent be started again."""
    return _control(ctx, agent, AgentStatus.IDLE, "agent.resume")


def _controlled(ctx: Context, agent: Agent, event: str) -> shapes.AgentShape:
    ctx.record(event, f"agent:{agent.id}", {"name": agent.name})
    return views.agent(lookup.known_agent(ctx, agent.id))


def require_control(ctx: Context, text: str, *, lifts: bool = False) -> Agent:
    """Return an agent that the caller may control: one above it, or a person over its part of the
    company.

    With `lifts`, the act would end a pause, so the caller must also be allowed to lift that.
    """
    agent = lookup.agent_anywhere(ctx, text)
    ctx.require(
        Action.AGENT_CONTROL, over=agent.id, by_person=lifts and _is_paused_by_person(ctx, agent)
    )
    agent.require_operational("Choose an agent that works here.")
    return agent


def _is_paused_by_person(ctx: Context, agent: Agent) -> bool:
    """Return whether a person paused it since it was last resumed, or it is unknown who did."""
    if agent.status is not AgentStatus.PAUSED:
        return False
    kinds = ctx.tx.all(event_log.PAUSED_BY, resource=f"agent:{agent.id}")
    return not kinds or ActorKind.USER.value in kinds


def _control(ctx: Context, text: str, wanted: AgentStatus, action: str) -> shapes.AgentShape:
    agent = require_control(ctx, text, lifts=wanted is AgentStatus.IDLE)
    if wanted is AgentStatus.IDLE and agent.status not in (AgentStatus.PAUSED, AgentStatus.ERROR):
        raise Conflict(f"{agent.name} is not paused.", "Look at the agent's status.")
    tree.set_status(ctx, agent, wanted)
    if wanted is AgentStatus.IDLE and (
        ctx.tx.one(run_statements.LIVE_RUN_OF, agent=agent.id) is not None
    ):
        # Its run continued during the pause.
        wanted = AgentStatus.RUNNING
        tree.set_status(ctx, replace(agent, status=AgentStatus.IDLE), wanted)
    ctx.record(action, f"agent:{agent.id}", {"name": agent.name})
    if wanted is AgentStatus.IDLE:
        waking.wake_afresh(ctx, agent.id, "it was resumed")
    return {**views.agent(agent), "status": wanted.value}


@command(
    "agents.submit_log",
    Added("go_on", False),
    AsTool("log_submit", "Add what this run did to the activity log, at the end of it."),
)
def submit_log(
    ctx: Context,
    *,
    summary: Annotated[str, Text(20_000), Help("Your work and findings", model=True)],
    go_on: Annotated[
        bool, Help("You have more to do: start you again at once", model=True)
    ] = False,
) -> shapes.SubmittedLogShape:
    """Summary of a run in its own words, for the agent's activity log.

    With `go_on` it has more to do and wants to be started again at once.
    """
    me = _myself(ctx)
    ctx.require(Action.LOG_WRITE, on=f"log:{me.id}", place=(me.id,))
    event = ctx.record("log.submit", f"log:{me.id}", {"summary": summary})
    if go_on and ctx.actor.run_id is not None:
        ctx.tx.run(run_statements.GO_ON, run=ctx.actor.run_id)
        waking.acted(ctx, me.id)
    return {"event_id": event, "log_file_id": me.log_file_id}


@query(
    "agents.read_log",
    # Over HTTP it is a list, so that route is written by hand.
    AsTool("log_read", "The activity log of past runs.", without=("before",)),
)
def read_log(
    ctx: Context, *, agent: OfAnother | None = None, limit: Limit = 20, before: int | None = None
) -> shapes.AgentLogShape:
    """An agent's activity log: its own, or that of somebody below it."""
    agent_row = lookup.agent_anywhere(ctx, agent) if agent else _myself(ctx)
    require_file(ctx, Action.FILE_READ, lookup.file(ctx, agent_row.log_file_id))
    return {
        "agent_id": agent_row.id,
        "entries": documents.log_entries(ctx, agent_row.id, limit, before),
    }


def _myself(ctx: Context) -> Agent:
    return lookup.myself(ctx, NotFound("You are a user, not an agent.", "Name the agent."))


@command("agents.create_key")
def create_key(
    ctx: Context, *, agent: str, label: object = "", expires_at: Micros | None = None
) -> shapes.NewTokenShape:
    label = clean_line(label, "label", longest=LONGEST_LABEL, empty_ok=True)
    agent_row = _require_keys(ctx, agent)
    agent_row.require_operational("Keys are for agents that can act.")
    return users.issue(ctx, TokenKind.AGENT, label, expires_at, agent=agent_row.id)


def _require_keys(ctx: Context, text: str) -> Agent:
    """Return an agent whose keys the caller may change."""
    agent = lookup.agent_anywhere(ctx, text)
    on, seat = f"agent:{agent.id}", agent.seat_user_id
    ctx.require(Action.KEY_CHANGE, on=on, home=agent.id, seat_user=seat)
    return agent


@query("agents.keys", AsRoute("GET /agents/{id}/keys", "list_keys", page="id"))
def keys(ctx: Context, *, agent: AgentRef) -> list[shapes.KeyShape]:
    """An agent's keys, without what they open with."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.KEY_READ, on=f"agent:{agent_row.id}", home=agent_row.id)
    held = ctx.tx.all(people.AGENT_KEYS, agent=agent_row.id)
    # Elsewhere the label is called name.
    return [{**views.token(key), "name": key.label} for key in held]


@query("agents.keyed")
def keyed(ctx: Context, *, company: str | None) -> list[shapes.NamedShape]:
    """List the agents with a live key, within the caller's part of the company."""
    lookup.company_of_caller(ctx, company)
    scope = ctx.membership.scope_agent_id if ctx.membership else None
    ctx.require(Action.KEY_READ, on="keys", home=scope)
    ids = ctx.tx.all(people.KEYED_AGENTS)
    return [
        {"id": agent, "name": lookup.known_agent(ctx, agent).name}
        for agent in ids
        if scope is None or scope in ctx.boss_chain(agent)
    ]


@command("agents.revoke_key", AsRoute("DELETE /agents/{id}/keys/{keyId}", "revoke_key"))
def revoke_key(
    ctx: Context, *, agent: AgentRef, key: Annotated[str, Reference("key")]
) -> shapes.RevokedShape:
    """End one of an agent's keys."""
    agent_row = _require_keys(ctx, agent)
    token = ctx.tx.one(people.TOKEN, token=key)
    if token is None or token.agent_id != agent_row.id:
        raise NotFound("There is no such key.")
    if not token_record.end(ctx, people.REVOKE_TOKEN, token=token.id):
        ctx.record("token.revoke", f"token:{token.id}", {"agent_id": agent_row.id})
    return {"id": token.id, "revoked": True}
