"""Statements that purge the contents an agent left, and keep the record of its existence."""

from sqlalchemy import BindParameter, exists, func, literal, null, or_, select
from sqlalchemy import bindparam as bind

from remit.model.execution.run import Run
from remit.model.organisation.agent import Agent
from remit.model.organisation.agent_spec import DOCUMENTS, PROSE
from remit.model.organisation.configuration import ConfigRevision
from remit.model.work.file import Version
from remit.store.engine.statement import Rows, Statement, delete_from, new, scalar
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
FORGET_SESSIONS = delete_from(agent_sessions, agent_id="agent")
#: Deletes the tokens of an agent.
FORGET_TOKENS = delete_from(tokens, agent_id="agent")
#: Deletes the stored answers to an agent's calls.
FORGET_ANSWERS = delete_from(answers, actor="actor")
#: Deletes the logs of an agent's runs.
FORGET_LOGS = delete_from(run_logs, run_logs.c.run_id.in_(_its_runs))
#: Clears the texts of an agent's runs; their existence, end and cost remain.
SILENCE_RUNS = Rows(Run).update(
    runs.c.agent_id == _it, final_response=null(), session_id=null(), log_bytes=literal(0)
)
#: All configurations of an agent.
CONFIGS = Statement(
    select(config_revisions.c.id, config_revisions.c.config).where(
        config_revisions.c.agent_id == _it
    ),
    lambda revision, config: (revision, config),
)
#: Replaces the contents of one configuration.
REPLACE_CONFIG = Rows(ConfigRevision).update(
    config_revisions.c.id == bind("revision"), **new("config")
)
#: Replaces an agent's settings and prompt.
REPLACE_SETTINGS = Rows(Agent).update(
    agents.c.id == _it,
    **new(*(field.name for field in (*DOCUMENTS, *PROSE))),
    updated_at=bind("now"),
)
#: Whether a file is in use: sent with a message, or quoted in the verdict of an outcome.
RELIED_UPON = Statement(
    select(func.count()).where(
        or_(
            exists().where(
                messages.c.company_id == bind("company"),
                or_(
                    messages.c.body_file_id == bind("file"),
                    messages.c.attachments.like(bind("quoted")),
                ),
            ),
            exists().where(
                outcomes.c.company_id == bind("company"), outcomes.c.verdict.like(bind("quoted"))
            ),
        )
    ),
    scalar,
)
#: Empties all versions of a file; their authors and times remain.
BLANK_VERSIONS = Rows(Version, "number").update(
    file_versions.c.file_id == bind("file"), **new("sha256", "size", "is_text")
)
