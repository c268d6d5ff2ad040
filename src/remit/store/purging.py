"""Statements that take out what an agent left, and leave that it was there."""

from __future__ import annotations

from sqlalchemy import BindParameter, delete, func, literal, null, or_, select, update
from sqlalchemy import bindparam as bind

from remit.store.statement import Statement, change, scalar
from remit.store.tables import (
    agent_sessions,
    agents,
    answers,
    config_revisions,
    file_versions,
    messages,
    outcomes,
    run_logs,
    runs,
    tokens,
)

_it: BindParameter[str] = bind("agent")
_its_runs = select(runs.c.id).where(runs.c.agent_id == _it)

FORGET_SESSIONS = change(delete(agent_sessions).where(agent_sessions.c.agent_id == _it))
FORGET_TOKENS = change(delete(tokens).where(tokens.c.agent_id == _it))
FORGET_ANSWERS = change(delete(answers).where(answers.c.actor == bind("actor")))
FORGET_LOGS = change(delete(run_logs).where(run_logs.c.run_id.in_(_its_runs)))
#: What a run said is gone; that it ran, how it ended and what it cost stays.
SILENCE_RUNS = change(
    update(runs)
    .where(runs.c.agent_id == _it)
    .values(final_response=null(), session_id=null(), log_bytes=literal(0))
)
CONFIGS = Statement(
    select(config_revisions.c.id, config_revisions.c.config).where(
        config_revisions.c.agent_id == _it
    ),
    lambda revision, config: (revision, config),
)
REPLACE_CONFIG = change(
    update(config_revisions)
    .where(config_revisions.c.id == bind("revision"))
    .values(config=bind("new_config"))
)
REPLACE_SETTINGS = change(
    update(agents)
    .where(agents.c.id == _it)
    .values(
        adapter_config=bind("new_adapter_config"),
        runtime_config=bind("new_runtime_config"),
        metadata=bind("new_metadata"),
        prompt=bind("new_prompt"),
        capabilities=bind("new_capabilities"),
        updated_at=bind("now"),
    )
)
#: Somebody got the file, or something was judged by it.
RELIED_UPON = Statement(
    select(func.count()).where(
        or_(
            select(messages.c.id)
            .where(
                messages.c.company_id == bind("company"),
                or_(
                    messages.c.body_file_id == bind("file"),
                    messages.c.attachments.like(bind("quoted")),
                ),
            )
            .exists(),
            select(outcomes.c.id)
            .where(
                outcomes.c.company_id == bind("company"), outcomes.c.verdict.like(bind("quoted"))
            )
            .exists(),
        )
    ),
    scalar,
)
#: Who wrote which version and when stays; what it said does not.
BLANK_VERSIONS = change(
    update(file_versions)
    .where(file_versions.c.file_id == bind("file"))
    .values(sha256=bind("new_sha256"), size=bind("new_size"), is_text=bind("new_is_text"))
)
