"""Agents: create, list, show, terminate; and their keys."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from remit.authority import Action
from remit.clock import Micros
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound
from remit.ids import AgentId, FileId, TokenKind, UserId
from remit.model.agent import Agent, AgentStatus
from remit.model.approval import ApprovalType
from remit.model.configuration import RevisionSource, is_for_people
from remit.model.file import FileKind
from remit.model.outcome import LONGEST_TITLE, Outcome, OutcomeStatus
from remit.model.permission import PermissionLevel
from remit.model.principal import ActorKind
from remit.model.text import LONGEST_LABEL, LONGEST_REASON, clean_line, clean_text, name_key
from remit.services import (
    approval_engine,
    configuration,
    default_adapter,
    documents,
    finishing,
    grants,
    jobs,
    ledger,
    lookup,
    mail,
    origins,
    outcomes,
    posts,
    termination,
    tree,
    users,
    views,
    waking,
)
from remit.services.command import Answer, Context, command, logged, query
from remit.services.opening import open_outcome, write_document
from remit.services.permissions import begin as begin_level
from remit.services.permissions import hiring_facts
from remit.services.verbs import Added
from remit.store import agents as statements
from remit.store import events as event_log
from remit.store import people
from remit.store import runs as run_statements
from remit.store.statement import row

#: Why an agent is woken that was taken on for something that can be accomplished.
WORK_FROM_THE_START = "its mandate can be worked on"


@command("agents.create")
def create(
    ctx: Context,
    *,
    company: str | None,
    name: object,
    reports_to: str | None = None,
    purpose: object = None,
    perpetual: object = None,
    role: object = "general",
    title: object = "",
    capabilities: object = "",
    prompt: object = "",
    adapter_type: object = None,
    adapter_config: object = None,
    runtime_config: object = None,
    budget_monthly_cents: object = None,
    budget_monthly_tokens: object = None,
    metadata: object = None,
    permissions: object = None,
    given: Sequence[Mapping[str, Any]] = (),
) -> Answer:
    """Bring an agent into being directly, with its mandate and first grants. The board does this.

    It needs nobody's approval, and the record says who did it.
    """
    lookup.company_of_caller(ctx, company)
    boss = lookup.agent(ctx, reports_to) if reports_to else None
    described = {
        "name": name,
        "role": role,
        "title": title,
        "capabilities": capabilities,
        "prompt": prompt,
        "adapter_type": adapter_type,
        "adapter_config": adapter_config,
        "runtime_config": runtime_config,
        "budget_monthly_cents": budget_monthly_cents,
        "budget_monthly_tokens": budget_monthly_tokens,
        "metadata": metadata,
        "permissions": permissions,
    }
    post = posts.new_post(**default_adapter.fill_in(ctx, described, boss))
    require_appointing(ctx, post, boss)
    agent = found(ctx, post, boss, purpose=purpose, perpetual=perpetual)
    for wish in given:
        grants.give_to(ctx, agent, wish)
    keep_appointment(ctx, agent)
    return views.agent(agent)


def require_appointing(ctx: Context, post: posts.Post, boss: Agent | None) -> None:
    """Whether the caller may bring such an agent into being there; ends the call otherwise."""
    settings = {"adapterConfig": json.loads(post.adapter_config)}
    ctx.require(
        Action.AGENT_APPOINT,
        on=f"agent:{post.name}",
        home=boss.id if boss else None,
        for_people=ctx.actor.kind is ActorKind.AGENT and is_for_people(settings),
    )
    if ctx.actor.kind is ActorKind.AGENT and post.permissions != "{}":
        ctx.require(Action.AGENT_PERMIT, on=f"agent:{post.name}", **hiring_facts(ctx))


def keep_appointment(ctx: Context, agent: Agent) -> None:
    """A person created it directly; the record of hires says so."""
    if ctx.actor.kind is ActorKind.USER:
        approval_engine.decided_already(
            ctx,
            ApprovalType.HIRE_AGENT,
            posts.hire_payload(agent, requested_by=None),
            agent=agent.id,
            note="Created by the board",
        )


def found(
    ctx: Context,
    post: posts.Post,
    boss: Agent | None,
    *,
    purpose: object = None,
    perpetual: object = None,
    boss_user: UserId | None = None,
    status: AgentStatus = AgentStatus.IDLE,
) -> Agent:
    """An agent with a mandate of its own, which is a part of its boss's.

    The mandate is perpetual: the agent works when there is mail or an outcome for it. One that is
    not can be accomplished, and is itself work from the first moment.
    """
    if not isinstance(perpetual, bool | None):
        raise BadInput("perpetual: must be true or false.", "Send a boolean.")
    aim = clean_line(
        purpose or post.title or f"Act as {post.role.value}", "purpose", longest=LONGEST_TITLE
    )
    mandate = open_outcome(
        ctx,
        title=aim,
        perpetual=perpetual is not False,
        delegator=boss.id if boss else None,
        origin=origins.of_caller(ctx),
    )
    agent = appoint(ctx, post, mandate, boss, status, boss_user=boss_user)
    write_document(ctx, mandate, "")
    ctx.record(
        "outcome.create",
        f"outcome:{mandate.id}",
        {"title": aim, "owner": mandate.owner_id, "parents": [boss.id] if boss else []},
    )
    if boss is not None and outcomes.require(ctx, boss.id).status is OutcomeStatus.OPEN:
        outcomes.connect(ctx, boss.id, mandate.id)
    waking.news(ctx, mandate, WORK_FROM_THE_START)
    return agent


def appoint(
    ctx: Context,
    post: posts.Post,
    mandate: Outcome,
    boss: Agent | None,
    status: AgentStatus = AgentStatus.IDLE,
    *,
    boss_user: UserId | None = None,
) -> Agent:
    """Put an agent into its place: below its boss, or at the root below a user, who is the one
    that asks unless another is named."""
    if boss is not None:
        tree.check_boss(ctx, boss)
    check_name(ctx, post.name)
    agent = Agent(
        id=AgentId(mandate.id),
        company_id=mandate.company_id,
        name=post.name,
        role=post.role,
        title=post.title,
        status=status,
        boss_id=boss.id if boss else None,
        boss_user_id=None if boss else boss_user or _boss_user(ctx),
        adapter_type=post.adapter_type,
        adapter_config=post.adapter_config,
        seat_user_id=None,
        prompt=post.prompt,
        capabilities=post.capabilities,
        permissions=post.permissions,
        permission_level=PermissionLevel.STANDARD,
        runtime_config=post.runtime_config,
        budget_monthly_cents=post.budget_monthly_cents,
        budget_monthly_tokens=post.budget_monthly_tokens,
        metadata=post.metadata,
        config_revision=1,
        state_file_id=FileId(ctx.ids.new()),
        log_file_id=FileId(ctx.ids.new()),
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    ctx.tx.run(statements.INSERT_AGENT, **row(agent, name_key=name_key(post.name)))
    tree.take_place(ctx, agent.id, agent.boss_id, agent.boss_user_id)
    _keep_books(ctx, agent)
    ctx.record(
        "agent.create",
        f"agent:{agent.id}",
        {
            "name": post.name,
            "role": post.role.value,
            "boss": agent.boss_id,
            "boss_user": agent.boss_user_id,
            "adapter_type": post.adapter_type,
            "mandate": mandate.title,
            "status": status.value,
        },
    )
    configuration.keep(ctx, agent, RevisionSource.CREATE)
    ledger.open_accounts(ctx, agent)
    if status is not AgentStatus.PENDING_APPROVAL:
        begin_level(ctx, agent)
    return agent


def check_name(ctx: Context, name: str) -> None:
    if ctx.tx.one(statements.LIVING_AGENT_BY_NAME, company=ctx.company, name_key=name_key(name)):
        raise AlreadyExists(f"There is an agent named {name!r} already.")


def _keep_books(ctx: Context, agent: Agent) -> None:
    """The agent's working memory, which it writes, and the log of its runs, which it reads."""
    for file_id, kind, what in (
        (agent.state_file_id, FileKind.STATE, "State"),
        (agent.log_file_id, FileKind.LOG, "Activity log"),
    ):
        documents.create(ctx, kind, f"{what} of {agent.name}", "", home=agent.id, file_id=file_id)


@query("agents.listing")
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


@query("agents.show")
def show(ctx: Context, *, agent: str) -> dict[str, Any]:
    found = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.AGENT_READ, on=f"agent:{found.id}", home=found.id)
    return views.agent(found)


@query("agents.me")
def me(ctx: Context) -> dict[str, Any]:
    """The agent that is calling."""
    found = _myself(ctx)
    ctx.require(Action.AGENT_READ, on=f"agent:{found.id}")
    return {**views.agent(found), "run_id": ctx.actor.run_id}


@command("agents.terminate", Added("subtree", False))
def terminate(ctx: Context, *, agent: str, subtree: bool = False) -> Answer:
    """End an agent softly: its mandate closes, its credentials die, its history stays.

    With `subtree` everybody below it ends, too, all or none.
    """
    return _terminate(ctx, agent, subtree)


@logged("agents.preview_terminate")
def preview_terminate(ctx: Context, *, agent: str, subtree: bool = False) -> Answer:
    """Exactly who and what would end, without ending it."""
    answer = _terminate(ctx, agent, subtree)
    ctx.tx.restart()
    return {**answer, "dry_run": True}


def _terminate(ctx: Context, text: str, subtree: bool) -> Answer:
    found = lookup.agent_anywhere(ctx, text)
    ctx.take_turn()
    ctx.require(
        Action.AGENT_TERMINATE, on=f"agent:{found.id}", home=found.id, place=ctx.place(found.id)
    )
    ended = termination.end(ctx, found, subtree=subtree)
    return {
        **views.agent(found),
        "status": AgentStatus.TERMINATED.value,
        **ended,
        "dry_run": False,
    }


@command("agents.wake")
def wake(ctx: Context, *, agent: str, reason: object = "") -> Answer:
    """Give an agent something to look at, so that it is started. Whoever may write to it may."""
    why = clean_text(reason, "reason", longest=LONGEST_REASON, empty_ok=True)
    found = lookup.agent_anywhere(ctx, agent)
    if found.status not in (AgentStatus.IDLE, AgentStatus.RUNNING, AgentStatus.ERROR):
        raise Conflict(
            f"{found.name} is {found.status.value.replace('_', ' ')}.",
            "It can be woken once it works again.",
        )
    message = mail.post(ctx, to=f"agent:{found.id}", subject="Wake up", text=why or "Wake up.")
    return {**views.agent(found), "message_id": message.id}


@command("agents.stop")
def stop(ctx: Context, *, agent: str) -> Answer:
    """End what an agent is doing and keep it from being started."""
    found = _controlled(ctx, agent)
    finishing.stop(ctx, found)
    idle = lookup.agent_row(ctx, found.id)
    assert idle is not None
    if idle.status is not AgentStatus.PAUSED:
        tree.set_status(ctx, idle, AgentStatus.PAUSED)
    jobs.stop_all(ctx, found, f"{found.name} was stopped")
    ctx.record("agent.stop", f"agent:{found.id}", {"name": found.name})
    return {**views.agent(found), "status": AgentStatus.PAUSED.value}


@command("agents.start")
def start(ctx: Context, *, agent: str) -> Answer:
    """Let a stopped agent work again; it is started when there is something to do."""
    return _control(ctx, agent, AgentStatus.IDLE, "agent.start")


@command("agents.restart")
def restart(ctx: Context, *, agent: str) -> Answer:
    """End what an agent is doing, and begin anew at once."""
    found = _controlled(ctx, agent, lifts=True)
    finishing.stop(ctx, found)
    idle = lookup.agent_row(ctx, found.id)
    assert idle is not None
    if idle.status in (AgentStatus.PAUSED, AgentStatus.ERROR):
        tree.set_status(ctx, idle, AgentStatus.IDLE)
    waking.look_now(ctx, found.id)
    waking.wake_afresh(ctx, found.id, "it was restarted")
    ctx.record("agent.restart", f"agent:{found.id}", {"name": found.name})
    now = lookup.agent_row(ctx, found.id)
    assert now is not None
    return views.agent(now)


@command("agents.abort")
def abort(ctx: Context, *, agent: str) -> Answer:
    """End the run that an agent has under way; it may be started again for something new."""
    found = _controlled(ctx, agent)
    if ctx.tx.one(run_statements.LIVE_RUN_OF, agent=found.id) is None:
        raise Conflict(f"{found.name} is not running.", "There is nothing to end.")
    finishing.stop(ctx, found)
    ctx.record("agent.abort", f"agent:{found.id}", {"name": found.name})
    now = lookup.agent_row(ctx, found.id)
    assert now is not None
    return views.agent(now)


@command("agents.pause")
def pause(ctx: Context, *, agent: str) -> Answer:
    """Keep an agent from being started, until somebody resumes it."""
    return _control(ctx, agent, AgentStatus.PAUSED, "agent.pause")


@command("agents.resume")
def resume(ctx: Context, *, agent: str) -> Answer:
    return _control(ctx, agent, AgentStatus.IDLE, "agent.resume")


def _controlled(ctx: Context, text: str, *, lifts: bool = False) -> Agent:
    """An agent that the caller is above, or that is in their part of the company.

    With `lifts`, a pause would end by this; the caller has to be somebody who may lift it.
    """
    found = lookup.agent_anywhere(ctx, text)
    ctx.require(
        Action.AGENT_CONTROL,
        on=f"agent:{found.id}",
        home=found.id,
        place=ctx.place(found.id),
        by_person=lifts and _is_paused_by_person(ctx, found),
    )
    if found.status in (AgentStatus.TERMINATED, AgentStatus.PENDING_APPROVAL):
        raise Conflict(
            f"{found.name} is {found.status.value.replace('_', ' ')}.",
            "Choose an agent that works here.",
        )
    return found


def _is_paused_by_person(ctx: Context, agent: Agent) -> bool:
    """Whether a person paused it since it was last resumed, or nobody knows who did."""
    if agent.status is not AgentStatus.PAUSED:
        return False
    kinds = ctx.tx.all(event_log.PAUSED_BY, company=ctx.company, resource=f"agent:{agent.id}")
    return not kinds or ActorKind.USER.value in kinds


def _control(ctx: Context, text: str, wanted: AgentStatus, action: str) -> Answer:
    found = _controlled(ctx, text, lifts=wanted is AgentStatus.IDLE)
    if wanted is AgentStatus.IDLE and found.status not in (AgentStatus.PAUSED, AgentStatus.ERROR):
        raise Conflict(f"{found.name} is not paused.", "Look at the agent's status.")
    tree.set_status(ctx, found, wanted)
    if wanted is AgentStatus.IDLE and (
        ctx.tx.one(run_statements.LIVE_RUN_OF, agent=found.id) is not None
    ):
        # It went on while it was paused.
        wanted = AgentStatus.RUNNING
        tree.set_status(ctx, replace(found, status=AgentStatus.IDLE), wanted)
    ctx.record(action, f"agent:{found.id}", {"name": found.name})
    if wanted is AgentStatus.IDLE:
        waking.wake_afresh(ctx, found.id, "it was resumed")
    return {**views.agent(found), "status": wanted.value}


@command("agents.submit_log", Added("go_on", False))
def submit_log(ctx: Context, *, summary: object, go_on: bool = False) -> Answer:
    """What a run did, in its own words; it becomes part of the agent's activity log.

    With `go_on` it has more to do and wants to be started again at once.
    """
    text = clean_text(summary, "summary", longest=20_000)
    me = _myself(ctx)
    ctx.require(Action.LOG_WRITE, on=f"log:{me.id}", place=(me.id,))
    event = ctx.record("log.submit", f"log:{me.id}", {"summary": text})
    if go_on and ctx.actor.run_id is not None:
        ctx.tx.run(run_statements.GO_ON, run=ctx.actor.run_id)
    return {"event_id": event, "log_file_id": me.log_file_id}


@query("agents.read_log")
def read_log(
    ctx: Context, *, agent: str | None = None, limit: int = 50, before: int | None = None
) -> dict[str, Any]:
    """An agent's activity log: its own, or that of somebody below it."""
    found = lookup.agent_anywhere(ctx, agent) if agent else _myself(ctx)
    lookup.file(ctx, found.log_file_id, Action.FILE_READ)
    return {"agent_id": found.id, "entries": documents.log_entries(ctx, found.id, limit, before)}


def _myself(ctx: Context) -> Agent:
    if ctx.actor.agent_id is None:
        raise NotFound("You are a user, not an agent.", "Name the agent.")
    return lookup.agent_anywhere(ctx, ctx.actor.agent_id)


@command("agents.create_key")
def create_key(
    ctx: Context, *, agent: str, label: object = "", expires_at: Micros | None = None
) -> Answer:
    label = clean_line(label, "label", longest=LONGEST_LABEL, empty_ok=True)
    found = lookup.agent_anywhere(ctx, agent)
    ctx.require(
        Action.KEY_CHANGE, on=f"agent:{found.id}", home=found.id, seat_user=found.seat_user_id
    )
    if found.status in (AgentStatus.TERMINATED, AgentStatus.PENDING_APPROVAL):
        raise Conflict(
            f"{found.name} is {found.status.value.replace('_', ' ')}.",
            "Keys are for agents that can act.",
        )
    return users.issue(ctx, TokenKind.AGENT, label, expires_at, agent=found.id)


@query("agents.keys")
def keys(ctx: Context, *, agent: str) -> list[dict[str, Any]]:
    found = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.KEY_READ, on=f"agent:{found.id}", home=found.id)
    return [views.token(key) for key in ctx.tx.all(people.AGENT_KEYS, agent=found.id)]


@command("agents.revoke_key")
def revoke_key(ctx: Context, *, agent: str, key: str) -> Answer:
    found = lookup.agent_anywhere(ctx, agent)
    ctx.require(
        Action.KEY_CHANGE, on=f"agent:{found.id}", home=found.id, seat_user=found.seat_user_id
    )
    token = ctx.tx.one(people.TOKEN, token=key)
    if token is None or token.agent_id != found.id:
        raise NotFound("There is no such key.")
    ctx.tx.run(people.REVOKE_TOKEN, token=token.id, now=ctx.now)
    ctx.record("token.revoke", f"token:{token.id}", {"agent_id": found.id})
    return {"id": token.id, "revoked": True}


def _boss_user(ctx: Context) -> UserId:
    if ctx.actor.kind is not ActorKind.USER:
        raise BadInput("A root agent reports to a user.", "Name the boss with reportsTo.")
    return UserId(ctx.actor.id)
