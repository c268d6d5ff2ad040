"""Purge of an agent: its data is deleted, the record of what it did stays.

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
from remit.services import lookup, shapes, views
from remit.services.command import Context, command
from remit.services.knowledge import documents
from remit.services.organisation import tree
from remit.services.redaction import text_without_secrets, without_secrets
from remit.store.connections import folders as folder_statements
from remit.store.engine.statement import renewed
from remit.store.execution import runs as run_statements
from remit.store.messaging import channels as channel_statements
from remit.store.messaging import chat as chat_statements
from remit.store.organisation import purging as statements
from remit.store.work import files as file_statements

_GONE = "Removed when the agent was purged.\n"


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
    ctx.tx.run(statements.FORGET_SESSIONS, **about)
    ctx.tx.run(statements.FORGET_ANSWERS, actor=f"agent:{agent_row.id}")
    ctx.tx.run(channel_statements.FORGET_RECEIPTS, **about)
    for forget in chat_statements.FORGET_CHATS:
        ctx.tx.run(forget, **about)
    removed: shapes.PurgedShape = {
        "bindings": ctx.tx.run(channel_statements.FORGET_BINDINGS, **about),
        "tokens": ctx.tx.run(statements.FORGET_TOKENS, **about),
        "log_pieces": ctx.tx.run(statements.FORGET_LOGS, **about),
        "runs": ctx.tx.run(statements.SILENCE_RUNS, **about),
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
    for revision, config in ctx.tx.all(statements.CONFIGS, agent=agent.id):
        clean, paths = without_secrets(json.loads(config))
        count += len(paths)
        if paths:
            ctx.tx.run(statements.REPLACE_CONFIG, revision=revision, new_config=json.dumps(clean))
    documents_ = {
        field.name: json.dumps(without_secrets(field.shown(getattr(agent, field.name)))[0])
        for field in DOCUMENTS
    }
    texts = {field.name: text_without_secrets(getattr(agent, field.name))[0] for field in PROSE}
    ctx.tx.run(
        statements.REPLACE_SETTINGS,
        agent=agent.id,
        **{f"new_{name}": value for name, value in (documents_ | texts).items()},
    )
    return count


def _blank_memory(ctx: Context, agent: Agent) -> bool:
    """Blank an agent's memory, unless it was sent to somebody or is evidence; returns whether it
    was blanked."""
    file = ctx.tx.existing(file_statements.FILE, file=agent.state_file_id)
    if ctx.tx.one(statements.RELIED_UPON, file=file.id, quoted=f'%"{file.id}"%'):
        return False
    blank = documents.rewrite(ctx, file, _GONE)
    ctx.tx.run(statements.BLANK_VERSIONS, file=file.id, **renewed(blank))
    return True
