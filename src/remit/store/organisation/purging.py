"""Statements that purge the contents an agent left, and keep the record of its existence."""

from sqlalchemy import BindParameter, delete, func, literal, null, or_, select, update
from sqlalchemy import bindparam as bind

from remit.model.organisation.agent_spec import DOCUMENTS, PROSE
from remit.store.engine.statement import Statement, change, scalar
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

#: Deletes the conversation of an agent.
FORGET_SESSIONS = change(delete(agent_sessions).where(agent_sessions.c.agent_id == _it))
#: Deletes the tokens of an agent.
FORGET_TOKENS = change(delete(tokens).where(tokens.c.agent_id == _it))
#: Deletes the stored answers to an agent's calls.
FORGET_ANSWERS = change(delete(answers).where(answers.c.actor == bind("actor")))
#: Deletes the logs of an agent's runs.
FORGET_LOGS = change(delete(run_logs).where(run_logs.c.run_id.in_(_its_runs)))
#: Clears the texts of an agent's runs; their existence, end and cost remain.
SILENCE_RUNS = change(
    update(runs)
    .where(runs.c.agent_id == _it)
    .values(final_response=null(), session_id=null(), log_bytes=literal(0))
)
#: All configurations of an agent.
CONFIGS = Statement(
    select(config_revisions.c.id, config_revisions.c.config).where(
        config_revisions.c.agent_id == _it
    ),
    lambda revision, config: (revision, config),
)
#: Replaces the contents of one configuration.
REPLACE_CONFIG = change(
    update(config_revisions)
    .where(config_revisions.c.id == bind("revision"))
    .values(config=bind("new_config"))
)
#: Replaces an agent's settings and prompt.
REPLACE_SETTINGS = change(
    update(agents)
    .where(agents.c.id == _it)
    .values(
        **{one.name: bind(f"new_{one.name}") for one in (*DOCUMENTS, *PROSE)},
        updated_at=bind("now"),
    )
)
#: Whether a file is in use: sent with a message, or quoted in the verdict of an outcome.
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
#: Empties all versions of a file; their authors and times remain.
BLANK_VERSIONS = change(
    update(file_versions)
    .where(file_versions.c.file_id == bind("file"))
    .values(sha256=bind("new_sha256"), size=bind("new_size"), is_text=bind("new_is_text"))
)
