"""Statements about runs, their conversations and their logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    Boolean,
    Select,
    and_,
    delete,
    exists,
    func,
    insert,
    literal,
    not_,
    or_,
    select,
    true,
    update,
)
from sqlalchemy import bindparam as bind
from sqlalchemy.dialects import postgresql, sqlite

from remit.clock import Micros
from remit.ids import AgentId, CompanyId
from remit.model.fault import CONSEQUENCES
from remit.model.run import Run
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import (
    agent_sessions,
    agents,
    events,
    files,
    run_logs,
    runs,
)

_all = columns(runs, Run)

_OF_OTHERS = [literal(fault) for fault, one in CONSEQUENCES.items() if one.holds is not None]

INSERT_RUN = change(insert(runs))
RUN = Statement(select(*_all).where(runs.c.id == bind("run")), into(Run))
RUNS_BY_PREFIX = Statement(
    select(*_all)
    .where(
        runs.c.company_id == bind("company"),
        runs.c.id >= bind("low"),
        runs.c.id < bind("high"),
    )
    .order_by(runs.c.id)
    .limit(1000),
    into(Run),
)
#: A run that was stopped from outside did not end badly.
_badly = and_(
    runs.c.status.in_([literal("failed"), literal("lost")]),
    func.coalesce(runs.c.exit_reason, literal("")) != literal("stopped"),
)
LIVE_RUN_OF = Statement(
    select(*_all).where(runs.c.agent_id == bind("agent"), runs.c.status == literal("running")),
    into(Run),
)
LIVE_RUNS = Statement(select(*_all).where(runs.c.status == literal("running")), into(Run))
#: Newest first; of one agent, and only live ones, if asked.
RUNS = Statement(
    select(*_all)
    .where(
        runs.c.company_id == bind("company"),
        runs.c.id < bind("before"),
        or_(runs.c.agent_id == bind("agent"), bind("any_agent", type_=Boolean) == true()),
        or_(runs.c.status == literal("running"), bind("ended_too", type_=Boolean) == true()),
    )
    .order_by(runs.c.id.desc())
    .limit(bind("limit")),
    into(Run),
)
_later = runs.alias("later")
#: Runs that ended badly and were not followed by another; a person has to look at them.
FAILED_RUNS = Statement(
    select(*_all)
    .where(
        runs.c.company_id == bind("company"),
        _badly,
        # What closed an account or a set-up is said once for all.
        or_(runs.c.fault.is_(None), runs.c.fault.not_in(_OF_OTHERS)),
        ~exists().where(_later.c.agent_id == runs.c.agent_id, _later.c.id > runs.c.id),
    )
    .order_by(runs.c.id.desc())
    .limit(bind("limit")),
    into(Run),
)
END_RUN = change(
    update(runs)
    .where(runs.c.id == bind("run"), runs.c.status == literal("running"))
    .values(status=bind("new_status"), ended_at=bind("now"))
)
#: Why a run was ended that could not say so itself.
EXPLAIN_RUN = change(
    update(runs)
    .where(runs.c.id == bind("run"))
    .values(exit_reason=bind("reason"), error=bind("new_error"))
)
#: What is known of a run only when it is over.
REPORT_RUN = change(
    update(runs)
    .where(runs.c.id == bind("run"))
    .values(
        {
            name: bind(f"new_{name}")
            for name in (
                "session_id",
                "final_response",
                "context_length",
                "exit_reason",
                "error",
                "fault",
                "fault_until",
            )
        }
    )
)
#: Whether an agent had a run that ended well after another.
GOOD_RUN_SINCE = Statement(
    select(literal(1))
    .where(
        runs.c.agent_id == bind("agent"),
        runs.c.id > bind("run"),
        runs.c.status == literal("completed"),
    )
    .limit(1),
    scalar,
)
#: What it has taken from a model, so far or in all.
COUNT_USAGE = change(
    update(runs)
    .where(runs.c.id == bind("run"))
    .values(
        {
            name: bind(f"new_{name}")
            for name in (
                *("tokens_in", "tokens_out", "tokens_cached"),
                *("cost_micros", "cost_estimated"),
            )
        }
    )
)


def _price(newest: Select[Any]) -> Statement[tuple[int, int]]:
    """What some of the newest runs cost, and how many tokens they took for that."""
    some = newest.subquery()
    return Statement(
        select(
            func.coalesce(func.sum(some.c.cost_micros), 0).cast(BigInteger),
            func.coalesce(func.sum(some.c.tokens_in + some.c.tokens_out), 0).cast(BigInteger),
        ).where(
            some.c.adapter_type == bind("adapter"),
            some.c.cost_micros > 0,
            not_(some.c.cost_estimated),
        ),
        lambda cost, tokens: (int(cost), int(tokens)),
    )


_newest = select(
    runs.c.adapter_type,
    runs.c.cost_micros,
    runs.c.cost_estimated,
    runs.c.tokens_in,
    runs.c.tokens_out,
).order_by(runs.c.id.desc())
PRICE_OF_AGENT = _price(_newest.where(runs.c.agent_id == bind("agent")).limit(100))
PRICE_IN_COMPANY = _price(_newest.where(runs.c.company_id == bind("company")).limit(500))
TOOK_UP = change(
    update(runs).where(runs.c.id == bind("run")).values(message_ids=bind("new_message_ids"))
)
#: What an agent keeps for itself: its state document and its daily notes.
_own_memory = (
    select(literal("kb_file:").concat(agents.c.state_file_id))
    .where(agents.c.id == bind("agent"))
    .union_all(
        select(literal("kb_file:").concat(files.c.id)).where(
            files.c.home_agent_id == bind("agent"),
            files.c.description.like("memories/____-__-__.md"),
        )
    )
)
#: How much a run did that somebody else could notice. Saying goodbye, fetching what it needs and
#: writing to its own memory do not count.
PROGRESS_OF = Statement(
    select(func.count())
    .select_from(events)
    .where(
        events.c.run_id == bind("run"),
        events.c.allowed == true(),
        events.c.action.not_in(
            [literal("log.submit"), literal("approval.remind"), literal("repo.clone")]
        ),
        events.c.resource.not_in(_own_memory),
    ),
    scalar,
)
#: The same without acknowledging mail, which nobody outside notices.
MADE_BY = Statement(
    select(func.count())
    .select_from(events)
    .where(
        events.c.run_id == bind("run"),
        events.c.allowed == true(),
        events.c.action.not_in(
            [
                literal(action)
                for action in (
                    "log.submit",
                    "message.ack",
                    "approval.remind",
                    "repo.clone",
                    "run.undelivered",
                )
            ]
        ),
        events.c.resource.not_in(_own_memory),
    ),
    scalar,
)
#: Whether a run brought something to an end, or to somebody else.
FINISHED_SOMETHING = Statement(
    select(func.count())
    .select_from(events)
    .where(
        events.c.run_id == bind("run"),
        events.c.allowed == true(),
        events.c.action.in_(
            [
                literal(f"outcome.{verb}")
                for verb in ("complete", "close", "submit", "return", "delegate")
            ]
        ),
    ),
    scalar,
)
SHOW = change(update(runs).where(runs.c.id == bind("run")).values(shown=bind("place")))
GO_ON = change(update(runs).where(runs.c.id == bind("run")).values(goes_on=true()))

# Sessions


@dataclass(frozen=True, slots=True)
class Session:
    agent_id: AgentId
    company_id: CompanyId
    adapter_type: str
    session_id: str
    begun_at: Micros
    used_at: Micros
    context_tokens: int


SESSION = Statement(
    select(*columns(agent_sessions, Session)).where(agent_sessions.c.agent_id == bind("agent")),
    into(Session),
)


def _keep_session(dialect: object) -> object:
    new = dialect.insert(agent_sessions)  # type: ignore[attr-defined]
    return new.on_conflict_do_update(
        index_elements=[agent_sessions.c.agent_id],
        set_={
            name: new.excluded[name]
            for name in ("adapter_type", "session_id", "begun_at", "used_at", "context_tokens")
        },
    )


KEEP_SESSION = change(_keep_session(postgresql), sqlite=_keep_session(sqlite))  # type: ignore[arg-type]
FORGET_SESSION = change(agent_sessions.delete().where(agent_sessions.c.agent_id == bind("agent")))

# Logs

INSERT_LOG = change(insert(run_logs))
COUNT_LOG = change(
    update(runs).where(runs.c.id == bind("run")).values(log_bytes=runs.c.log_bytes + bind("more"))
)


@dataclass(frozen=True, slots=True)
class LogPiece:
    number: int
    at: Micros
    stream: str
    text: str


#: Before the first piece of a log: not printed, but counted while it was, as JSON text.
NUMBER_OF_DENIALS = 0
_counts = run_logs.c.number == literal(NUMBER_OF_DENIALS)
FORGET_DENIALS = change(delete(run_logs).where(run_logs.c.run_id == bind("run"), _counts))
#: Of the runs between two ids, these included; each by the key of its log.
DENIALS = Statement(
    select(runs.c.id, run_logs.c.text)
    .join(run_logs, and_(run_logs.c.run_id == runs.c.id, _counts))
    .where(
        runs.c.company_id == bind("company"),
        runs.c.id >= bind("first"),
        runs.c.id <= bind("last"),
    ),
    lambda run, text: (str(run), str(text)),
)
LOG = Statement(
    select(run_logs.c.number, run_logs.c.at, run_logs.c.stream, run_logs.c.text)
    .where(run_logs.c.run_id == bind("run"), run_logs.c.number > bind("after"))
    .order_by(run_logs.c.number)
    .limit(bind("limit")),
    into(LogPiece),
)
#: Newest first: runs that ended badly, whatever came after them.
ENDED_BADLY = Statement(
    select(*_all)
    .where(
        runs.c.company_id == bind("company"),
        runs.c.id < bind("before"),
        _badly,
    )
    .order_by(runs.c.id.desc())
    .limit(bind("limit")),
    into(Run),
)
