"""Statements about waits and submissions."""

from __future__ import annotations

from sqlalchemy import and_, delete, exists, func, insert, literal, not_, or_, select, update
from sqlalchemy import bindparam as bind

from remit.model.outcome import Outcome
from remit.model.wait import Submission, Wait
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import agents, outcomes, submissions, wait_outcomes, waits

_wait = columns(waits, Wait)
_outcome = columns(outcomes, Outcome)
_submission = columns(submissions, Submission)

INSERT_WAIT = change(insert(waits))
INSERT_WAIT_OUTCOME = change(insert(wait_outcomes))
COUNT_WAITS = change(
    update(outcomes)
    .where(outcomes.c.id == bind("outcome"))
    .values(open_waits=outcomes.c.open_waits + bind("step"))
)
WAIT = Statement(
    select(*_wait).where(waits.c.kind == bind("kind"), waits.c.subject_id == bind("subject")),
    into(Wait),
)
WAITS_OF = Statement(
    select(*_wait).where(waits.c.agent_id == bind("agent")).order_by(waits.c.id), into(Wait)
)
AWAITED_OF = Statement(
    select(*_wait).where(waits.c.awaited_agent_id == bind("agent")).order_by(waits.c.id),
    into(Wait),
)
WAITS_OF_OUTCOME = Statement(
    select(*_wait)
    .join(wait_outcomes, wait_outcomes.c.wait_id == waits.c.id)
    .where(wait_outcomes.c.outcome_id == bind("outcome"))
    .order_by(waits.c.since, waits.c.id),
    into(Wait),
)
#: Whether it is an agent's to judge what was handed in of an outcome.
AWAITED_VERDICT = Statement(
    select(waits.c.id)
    .join(wait_outcomes, wait_outcomes.c.wait_id == waits.c.id)
    .where(
        wait_outcomes.c.outcome_id == bind("outcome"),
        waits.c.kind == literal("submission"),
        waits.c.awaited_agent_id == bind("agent"),
    ),
    scalar,
)
#: What a wait keeps from being worked on.
OUTCOMES_OF_WAIT = Statement(
    select(*_outcome)
    .join(wait_outcomes, wait_outcomes.c.outcome_id == outcomes.c.id)
    .where(wait_outcomes.c.wait_id == bind("wait"))
    .order_by(outcomes.c.id),
    into(Outcome),
)
#: Waits of an agent for a reply to one of the messages of a thread.
REPLIES_AWAITED = Statement(
    select(*_wait).where(
        waits.c.agent_id == bind("agent"),
        waits.c.kind == literal("reply"),
        waits.c.subject_id.in_(
            select(bind("message").label("id")).union_all(select(bind("thread").label("id")))
        ),
    ),
    into(Wait),
)
#: What agents wait with, by what they wait for: the subject, the agent's name and a title.
HELD_UP = Statement(
    select(waits.c.subject_id, agents.c.name, outcomes.c.title)
    .join(wait_outcomes, wait_outcomes.c.wait_id == waits.c.id)
    .join(outcomes, outcomes.c.id == wait_outcomes.c.outcome_id)
    .join(agents, agents.c.id == waits.c.agent_id)
    .where(
        waits.c.company_id == bind("company"),
        waits.c.kind.in_([literal("question"), literal("approval")]),
    )
    .order_by(waits.c.id, outcomes.c.id)
    .limit(bind("limit")),
    lambda subject, name, title: (str(subject), str(name), str(title)),
)
DELETE_WAIT = change(delete(waits).where(waits.c.id == bind("wait")))
DELETE_WAIT_OUTCOMES = change(delete(wait_outcomes).where(wait_outcomes.c.wait_id == bind("wait")))
FORGET_OUTCOME = change(delete(wait_outcomes).where(wait_outcomes.c.outcome_id == bind("outcome")))
#: What an agent raised about outcomes that are somebody else's now.
FORGET_MOVED = change(
    delete(wait_outcomes).where(
        exists().where(waits.c.id == wait_outcomes.c.wait_id, waits.c.agent_id == bind("agent")),
        exists().where(
            outcomes.c.id == wait_outcomes.c.outcome_id, outcomes.c.owner_id != bind("agent")
        ),
    )
)
DELETE_WAIT_OUTCOMES_OF = change(
    delete(wait_outcomes).where(
        wait_outcomes.c.wait_id.in_(select(waits.c.id).where(waits.c.agent_id == bind("agent")))
    )
)
DELETE_WAITS_OF = change(delete(waits).where(waits.c.agent_id == bind("agent")))
AWAIT_SOMEBODY_ELSE = change(
    update(waits)
    .where(waits.c.id == bind("wait"))
    .values(
        awaited_agent_id=bind("new_agent"),
        awaited_user_id=bind("new_user"),
        reminders=bind("new_reminders"),
        remind_at=bind("at"),
    )
)
REMINDED = change(
    update(waits)
    .where(waits.c.id == bind("wait"))
    .values(reminders=bind("new_reminders"), remind_at=bind("at"))
)
#: Whom to remind now.
TO_REMIND = Statement(
    select(*_wait)
    .where(waits.c.remind_at.is_not(None), waits.c.remind_at <= bind("now"))
    .order_by(waits.c.remind_at, waits.c.id)
    .limit(bind("limit")),
    into(Wait),
)
NEXT_REMINDER = Statement(
    select(func.min(waits.c.remind_at)).where(
        waits.c.remind_at.is_not(None), waits.c.remind_at > bind("now")
    ),
    scalar,
)
#: Whatever of an agent waits, or waits for something that has to end first.
HELD_UP_OF = Statement(
    select(*_outcome)
    .where(
        outcomes.c.owner_id == bind("agent"),
        outcomes.c.status == literal("open"),
        outcomes.c.open_waits > literal(0),
    )
    .order_by(outcomes.c.id)
    .limit(bind("limit")),
    into(Outcome),
)

# Submissions

INSERT_SUBMISSION = change(insert(submissions))
OPEN_SUBMISSION = Statement(
    select(*_submission).where(
        submissions.c.outcome_id == bind("outcome"), submissions.c.status == literal("open")
    ),
    into(Submission),
)
SUBMISSION = Statement(
    select(*_submission).where(submissions.c.id == bind("submission")), into(Submission)
)
SUBMISSIONS_OF = Statement(
    select(*_submission)
    .where(submissions.c.outcome_id == bind("outcome"))
    .order_by(submissions.c.id.desc())
    .limit(bind("limit")),
    into(Submission),
)
END_SUBMISSION = change(
    update(submissions)
    .where(submissions.c.id == bind("submission"), submissions.c.status == literal("open"))
    .values(
        status=bind("new_status"),
        verdict_note=bind("new_note"),
        judged_by=bind("by"),
        ended_at=bind("now"),
    )
)
COUNT_RETURNS = Statement(
    select(func.count())
    .select_from(submissions)
    .where(
        submissions.c.outcome_id == bind("outcome"), submissions.c.status == literal("returned")
    ),
    scalar,
)
#: What awaits the verdict of people: of one, or of whoever is on the board.
SUBMITTED_TO_PEOPLE = Statement(
    select(*_wait)
    .where(
        waits.c.company_id == bind("company"),
        waits.c.kind == literal("submission"),
        waits.c.awaited_agent_id.is_(None),
        or_(waits.c.awaited_user_id.is_(None), waits.c.awaited_user_id == bind("user")),
    )
    .order_by(waits.c.id)
    .limit(bind("limit")),
    into(Wait),
)
#: The same for the seats that a person holds.
SUBMITTED_TO_AGENT = Statement(
    select(*_wait)
    .where(and_(waits.c.awaited_agent_id == bind("agent"), waits.c.kind == literal("submission")))
    .order_by(waits.c.id)
    .limit(bind("limit")),
    into(Wait),
)
#: What was handed in of an outcome that is somebody else's now.
WITHDRAW_MOVED = change(
    update(submissions)
    .where(
        submissions.c.agent_id == bind("agent"),
        submissions.c.status == literal("open"),
        exists().where(
            outcomes.c.id == submissions.c.outcome_id, outcomes.c.owner_id != bind("agent")
        ),
    )
    .values(status=literal("withdrawn"), judged_by=bind("by"), ended_at=bind("now"))
)
FORGET_ENDED_SUBMISSIONS = change(
    delete(waits).where(
        waits.c.agent_id == bind("agent"),
        waits.c.kind == literal("submission"),
        not_(
            exists().where(
                submissions.c.id == waits.c.subject_id, submissions.c.status == literal("open")
            )
        ),
    )
)
