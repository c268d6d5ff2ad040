"""Purging an agent: what it left is taken out, and the record of what it did stays.

Terminating is soft and keeps everything. Purging comes after it and is for the board alone: keys,
conversations, what its runs printed, its memory and the secrets in its settings go, and on each
machine its home and what was kept of its runs. Its name, its runs in numbers, its approvals and
every event stay, so the chain holds and nothing refers to nothing.
"""

from __future__ import annotations

import json
from typing import Any

from remit.authority import Action
from remit.errors import Conflict
from remit.ids import is_id
from remit.model.agent import Agent, AgentStatus
from remit.services import documents, lookup, tree, views
from remit.services.command import Answer, Context, command
from remit.services.redaction import text_without_secrets, without_secrets
from remit.store import channels as channel_statements
from remit.store import files as file_statements
from remit.store import purging as statements
from remit.store import runs as run_statements

_GONE = "Removed when the agent was purged.\n"


@command("purging.purge")
def purge(ctx: Context, *, agent: str) -> Answer:
    """Take out for good what a terminated agent left."""
    found = _named(ctx, agent)
    ctx.require(Action.AGENT_PURGE, on=f"agent:{found.id}", home=found.id)
    if found.status is not AgentStatus.TERMINATED:
        raise Conflict(f"{found.name} is not terminated.", "Terminate it first.")
    if tree.is_purged(ctx, found):
        raise Conflict(f"{found.name} was purged already.")
    assert ctx.tx.one(run_statements.LIVE_RUN_OF, agent=found.id) is None, "it is terminated"
    about: dict[str, Any] = {"agent": found.id}
    ctx.tx.run(statements.FORGET_SESSIONS, **about)
    ctx.tx.run(statements.FORGET_ANSWERS, actor=f"agent:{found.id}")
    ctx.tx.run(channel_statements.FORGET_RECEIPTS, **about)
    removed = {
        "bindings": ctx.tx.run(channel_statements.FORGET_BINDINGS, **about),
        "tokens": ctx.tx.run(statements.FORGET_TOKENS, **about),
        "log_pieces": ctx.tx.run(statements.FORGET_LOGS, **about),
        "runs": ctx.tx.run(statements.SILENCE_RUNS, **about),
        "secrets": _blank_settings(ctx, found),
        "memory": _blank_memory(ctx, found),
    }
    ctx.record(tree.PURGED, f"agent:{found.id}", {"name": found.name, **removed})
    now = lookup.agent_row(ctx, found.id)
    assert now is not None
    return {**views.agent(now), "removed": removed}


def _named(ctx: Context, text: str) -> Agent:
    """Also by a name that nobody has any more."""
    if is_id(text):
        return lookup.agent_anywhere(ctx, text)
    lookup.company_of_caller(ctx, None)
    return lookup.agent_ever(ctx, text)


def _blank_settings(ctx: Context, agent: Agent) -> int:
    """The marker in place of every secret in what it was configured with; answers how many."""
    count = 0
    for revision, config in ctx.tx.all(statements.CONFIGS, agent=agent.id):
        clean, paths = without_secrets(json.loads(config))
        count += len(paths)
        if paths:
            ctx.tx.run(statements.REPLACE_CONFIG, revision=revision, new_config=json.dumps(clean))
    documents_ = {
        name: json.dumps(without_secrets(json.loads(getattr(agent, name)))[0])
        for name in ("adapter_config", "runtime_config", "metadata")
    }
    texts = {
        name: text_without_secrets(getattr(agent, name))[0] for name in ("prompt", "capabilities")
    }
    ctx.tx.run(
        statements.REPLACE_SETTINGS,
        agent=agent.id,
        now=ctx.now,
        **{f"new_{name}": value for name, value in (documents_ | texts).items()},
    )
    return count


def _blank_memory(ctx: Context, agent: Agent) -> bool:
    """What it remembered goes, unless it was sent to somebody or something was judged by it."""
    file = ctx.tx.one(file_statements.FILE, company=ctx.company, file=agent.state_file_id)
    assert file is not None
    if ctx.tx.one(
        statements.RELIED_UPON, company=ctx.company, file=file.id, quoted=f'%"{file.id}"%'
    ):
        return False
    blank = documents.rewrite(ctx, file, _GONE)
    ctx.tx.run(
        statements.BLANK_VERSIONS,
        file=file.id,
        new_sha256=blank.sha256,
        new_size=blank.size,
        new_is_text=blank.is_text,
    )
    return True
