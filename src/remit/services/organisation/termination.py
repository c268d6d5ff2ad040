"""Termination of an agent, or of an agent with everybody below it; its purge; and its deletion.

A subtree ends from the bottom up, as if its agents were terminated one by one: mandates close, and
their other outcomes go to the next above, in the end to the boss of the subtree.

Termination is soft and keeps everything. A purge comes after it and is for the board alone: keys,
sessions, logs of runs, memory and the secrets in its settings are deleted, and on each machine its
home and what was kept of its runs. Its name, its runs in numbers, its approvals and every event
stay, so the hash chain is intact and no reference dangles.
"""

import json

from remit.authority import Action
from remit.errors import Conflict
from remit.ids import is_id
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.agent_spec import DOCUMENTS, PROSE
from remit.model.work.outcome import OutcomeKind, OutcomeStatus
from remit.services import lookup, shapes, views
from remit.services.command import Context, command
from remit.services.knowledge import documents
from remit.services.organisation import tree
from remit.services.redaction import text_without_secrets, without_secrets
from remit.services.work import outcome_ending
from remit.store.connections import folders as folder_statements
from remit.store.connections import lent_plugins as lent_statements
from remit.store.engine.statement import renewed
from remit.store.execution import runs as run_statements
from remit.store.messaging import channels as channel_statements
from remit.store.messaging import chat as chat_statements
from remit.store.organisation import agents as statements
from remit.store.organisation import governance, purging
from remit.store.work import files as file_statements
from remit.store.work import outcomes as outcome_statements

_PURGED = "Removed when the agent was purged.\n"


def end(ctx: Context, agent: Agent, *, subtree: bool) -> shapes.TerminationShape:
    """Terminate an agent, and with `subtree` all below it; returns the agents and outcomes
    concerned."""
    tree.check_transition(agent, AgentStatus.TERMINATED)
    if agent.status is AgentStatus.PENDING_APPROVAL:
        raise Conflict(
            f"{agent.name} awaits approval.", "Reject the hire, or withdraw it, instead."
        )
    if not subtree and ctx.tx.one(statements.LIVING_REPORT, agent=agent.id) is not None:
        raise Conflict(
            f"{agent.name} still has reports.",
            "Terminate it with everybody below it (`--subtree`), or move its reports first.",
        )
    below = ctx.tx.all(statements.SUBTREE_OF_AGENT, agent=agent.id)
    living = [member for member in below if member.status is not AgentStatus.TERMINATED]
    going = sorted(living, key=lambda member: (len(ctx.boss_chain(member.id)), member.name))
    owned = {
        outcome.id: outcome
        for member in going
        for outcome in ctx.tx.all(
            outcome_statements.OWNED_BY,
            owner=member.id,
            after="",
            limit=outcome_ending.MOST_AT_ONCE,
        )
        if outcome.status is OutcomeStatus.OPEN and outcome.kind is OutcomeKind.WORK
    }
    for ended_agent in reversed(going):
        _end_one(ctx, ended_agent.id)
    closed: list[shapes.TitledShape] = []
    moved: list[shapes.MovedOutcomeShape] = []
    for outcome in owned.values():
        # Outcomes are never deleted.
        now = lookup.known_outcome(ctx, outcome.id)
        brief: shapes.TitledShape = {"id": now.id, "title": now.title}
        if now.status is not OutcomeStatus.OPEN:
            closed.append(brief)
        else:
            moved.append(
                {**brief, "owner_id": now.owner_id, "owner": lookup.name_of(ctx, now.owner_id)}
            )
    return {
        "agents_ended": [{"id": member.id, "name": member.name} for member in going],
        "outcomes_closed": closed,
        "outcomes_moved": moved,
    }


def _end_one(ctx: Context, agent_id: str) -> None:
    agent = lookup.known_agent(ctx, agent_id)
    if agent.status is AgentStatus.TERMINATED:
        return  # it ended with a mandate that it was hired for
    # Every agent has a mandate.
    mandate = lookup.known_outcome(ctx, agent.id)
    if mandate.status is OutcomeStatus.OPEN and mandate.owner_id == agent.id:
        outcome_ending.finish_tree(
            ctx, mandate, OutcomeStatus.CLOSED, f"{agent.name} was terminated"
        )
    else:
        outcome_ending.deactivate(ctx, agent)


# ── purge ───────────────────────────────────────────────────────────────────────────────────────


@command("purging.purge")
def purge(ctx: Context, *, agent: str) -> shapes.PurgedAgentShape:
    """Delete the data of a terminated agent for good."""
    agent_row = _named(ctx, agent)
    ctx.require(Action.AGENT_PURGE, on=f"agent:{agent_row.id}", home=agent_row.id)
    if agent_row.status is not AgentStatus.TERMINATED:
        raise Conflict(f"{agent_row.name} is not terminated.", "Terminate it first.")
    if tree.is_purged(ctx, agent_row):
        raise Conflict(f"{agent_row.name} was purged already.")
    assert ctx.tx.one(run_statements.LIVE_RUN_OF, agent=agent_row.id) is None, "it is terminated"
    about: dict[str, object] = {"agent": agent_row.id}
    ctx.tx.run(folder_statements.REMOVE_FOLDERS_OF_AGENT, **about)
    ctx.tx.run(lent_statements.TAKE_BACK_ALL, **about)
    ctx.tx.run(purging.FORGET_SESSIONS, **about)
    ctx.tx.run(purging.FORGET_ANSWERS, actor=f"agent:{agent_row.id}")
    ctx.tx.run(channel_statements.FORGET_RECEIPTS, **about)
    for forget in chat_statements.FORGET_CHATS:
        ctx.tx.run(forget, **about)
    removed: shapes.PurgedShape = {
        "bindings": ctx.tx.run(channel_statements.FORGET_BINDINGS, **about),
        "tokens": ctx.tx.run(purging.FORGET_TOKENS, **about),
        "log_pieces": ctx.tx.run(purging.FORGET_LOGS, **about),
        "runs": ctx.tx.run(purging.SILENCE_RUNS, **about),
        "secrets": _blank_settings(ctx, agent_row),
        "memory": _blank_memory(ctx, agent_row),
    }
    ctx.record(tree.PURGED, f"agent:{agent_row.id}", {"name": agent_row.name, **removed})
    now = lookup.known_agent(ctx, agent_row.id)
    return {**views.agent(now), "removed": removed}


def _named(ctx: Context, text: str) -> Agent:
    """Return an agent, also by a name that no living agent has."""
    if is_id(text):
        return lookup.agent_anywhere(ctx, text)
    lookup.company_of_caller(ctx, None)
    return lookup.agent_ever(ctx, text)


def _blank_settings(ctx: Context, agent: Agent) -> int:
    """Replace every secret in its configurations by the redaction marker; returns how many."""
    count = 0
    for revision, config in ctx.tx.all(purging.CONFIGS, agent=agent.id):
        clean, paths = without_secrets(json.loads(config))
        count += len(paths)
        if paths:
            ctx.tx.run(purging.REPLACE_CONFIG, revision=revision, new_config=json.dumps(clean))
    documents_ = {
        field.name: json.dumps(without_secrets(field.shown(getattr(agent, field.name)))[0])
        for field in DOCUMENTS
    }
    texts = {field.name: text_without_secrets(getattr(agent, field.name))[0] for field in PROSE}
    ctx.tx.run(
        purging.REPLACE_SETTINGS,
        agent=agent.id,
        **{f"new_{name}": value for name, value in (documents_ | texts).items()},
    )
    return count


def _blank_memory(ctx: Context, agent: Agent) -> bool:
    """Blank an agent's memory, unless it was sent to somebody or is evidence; returns whether it
    was blanked."""
    file = ctx.tx.existing(file_statements.FILE, file=agent.state_file_id)
    if ctx.tx.one(purging.RELIED_UPON, file=file.id, quoted=f'%"{file.id}"%'):
        return False
    blank = documents.rewrite(ctx, file, _PURGED)
    ctx.tx.run(purging.BLANK_VERSIONS, file=file.id, **renewed(blank))
    return True


# ── deletion ────────────────────────────────────────────────────────────────────────────────────


def delete(ctx: Context, agent: Agent) -> None:
    """Delete an agent that was never approved: its row, its place, its documents. Its approval, the
    comments on that, and the events stay."""
    _check_no_member_has_it(ctx, agent)
    mandate = ctx.tx.one(outcome_statements.OUTCOME, outcome=agent.id)
    own = mandate is not None and mandate.owner_id == agent.id
    for statement in governance.FORGET_AGENT:
        ctx.tx.run(statement, agent=agent.id)
    if own:
        for statement in governance.FORGET_OUTCOME:
            ctx.tx.run(statement, outcome=agent.id)
    for file_id in (agent.state_file_id, agent.log_file_id, *([agent.id] if own else [])):
        _delete_paper(ctx, file_id)
    # Outcome and agent refer to each other; either order is fine until the commit.
    ctx.tx.run(governance.DELETE_AGENT, agent=agent.id)
    if own:
        ctx.tx.run(governance.DELETE_OUTCOME, outcome=agent.id)


def _check_no_member_has_it(ctx: Context, agent: Agent) -> None:
    """Refuse while a member's part of the company is this agent: what part they get instead is for
    a person to decide."""
    member = ctx.tx.one(governance.MEMBER_OVER, agent=agent.id)
    if member is not None:
        raise Conflict(
            f"{member}'s part of the company is {agent.name}.",
            "Give that member another part first.",
        )


def _delete_paper(ctx: Context, file_id: str) -> None:
    """Delete a document of the agent, or keep it as a file if it was sent to others."""
    if ctx.tx.one(governance.SENT_FILE, file=file_id) is not None:
        ctx.tx.run(governance.KEEP_AS_FILE, file=file_id)
        return
    for statement in governance.DELETE_FILE:
        ctx.tx.run(statement, file=file_id)
