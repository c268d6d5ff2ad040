"""Statements about waits and submissions."""

from sqlalchemy import and_, exists, func, insert, literal, not_, or_, select, true
from sqlalchemy import bindparam as bind

from remit.model.work.outcome import Outcome
from remit.model.work.wait import Submission, Wait
from remit.store.engine.statement import Rows, Statement, change, delete_from, values_of
from remit.store.tables import agents, outcomes, submissions, wait_outcomes, waits

_WAITS = Rows(Wait)
_OUTCOMES = Rows(Outcome)
_SUBMISSIONS = Rows(Submission)

#: Lets an outcome rest while a wait is open.
INSERT_WAIT_OUTCOME = change(insert(wait_outcomes))
#: Adds to the number of open waits of the outcomes that rest for a wait.
COUNT_WAITS = _OUTCOMES.update(
    outcomes.c.id.in_(
        select(wait_outcomes.c.outcome_id).where(wait_outcomes.c.wait_id == bind("wait"))
    ),
    open_waits=outcomes.c.open_waits + bind("step"),
)
#: The wait for one question, approval, request or submission.
WAIT = _WAITS.one(kind="kind", subject_id="subject")
#: All waits of an agent.
WAITS_OF = _WAITS.find(agent_id="agent")
#: The place in the record of the newest wait of an agent's desk.
NEWEST_OF_DESK = values_of(
    func.max(waits.c.place), waits.c.desk == true(), waits.c.agent_id == bind("agent")
)
#: The waits of an agent's desk, longest first.
WAITS_OF_DESK = _WAITS.find(
    waits.c.desk == true(),
    agent_id="agent",
    order=[waits.c.place],
    limit=bind("limit"),
)
#: All waits of others that an agent can end.
AWAITED_OF = _WAITS.find(awaited_agent_id="agent")
#: All waits that an outcome rests for, longest first.
WAITS_OF_OUTCOME = _WAITS.find(
    wait_outcomes.c.outcome_id == bind("outcome"),
    join=(wait_outcomes, wait_outcomes.c.wait_id == waits.c.id),
    order=[waits.c.since, waits.c.id],
)
#: Whether an agent is to judge the submission of an outcome.
AWAITED_VERDICT = values_of(
    waits.c.id,
    wait_outcomes.c.outcome_id == bind("outcome"),
    waits.c.kind == literal("submission"),
    join=(wait_outcomes, wait_outcomes.c.wait_id == waits.c.id),
    awaited_agent_id="agent",
)
#: The outcomes that a wait keeps from being worked on.
OUTCOMES_OF_WAIT = _OUTCOMES.find(
    wait_outcomes.c.wait_id == bind("wait"),
    join=(wait_outcomes, wait_outcomes.c.outcome_id == outcomes.c.id),
)
#: Waits of an agent for a reply to a message or to the first message of its thread.
REPLIES_AWAITED = _WAITS.find(
    waits.c.kind == literal("reply"),
    waits.c.subject_id.in_(
        select(bind("message").label("id")).union_all(select(bind("thread").label("id")))
    ),
    agent_id="agent",
    order=(),
)
#: Agents that wait for questions and approvals: the subject, the agent's name, and an outcome's
#: title.
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
#: Ends a wait.
DELETE_WAIT = _WAITS.delete(id="wait")
#: Frees the outcomes that rest for a wait.
DELETE_WAIT_OUTCOMES = delete_from(wait_outcomes, wait_id="wait")
#: Frees an outcome from all waits.
FORGET_OUTCOME = delete_from(wait_outcomes, outcome_id="outcome")
#: Detaches an agent's waits from outcomes that another agent owns now.
FORGET_MOVED = delete_from(
    wait_outcomes,
    exists().where(waits.c.id == wait_outcomes.c.wait_id, waits.c.agent_id == bind("agent")),
    exists().where(
        outcomes.c.id == wait_outcomes.c.outcome_id, outcomes.c.owner_id != bind("agent")
    ),
)
#: Frees the outcomes that rest for waits of an agent.
DELETE_WAIT_OUTCOMES_OF = delete_from(
    wait_outcomes,
    wait_outcomes.c.wait_id.in_(select(waits.c.id).where(waits.c.agent_id == bind("agent"))),
)
#: Ends all waits of an agent.
DELETE_WAITS_OF = _WAITS.delete(agent_id="agent")
#: Makes another agent or person the one that a wait is for.
AWAIT_SOMEBODY_ELSE = _WAITS.update(
    waits.c.id == bind("wait"),
    reminders=bind("new_reminders"),
    awaited_agent_id=bind("new_agent"),
    awaited_user_id=bind("new_user"),
    remind_at=bind("at"),
)
#: Stores the number of reminders of a wait, and the time of the next.
REMINDED = _WAITS.update(
    waits.c.id == bind("wait"), reminders=bind("new_reminders"), remind_at=bind("at")
)
#: Waits whose awaited person or agent is to be reminded now.
TO_REMIND = _WAITS.find(
    waits.c.remind_at.is_not(None),
    waits.c.remind_at <= bind("now"),
    order=[waits.c.remind_at, waits.c.id],
    limit=bind("limit"),
)
#: Open outcomes of an agent that rest for a wait.
HELD_UP_OF = _OUTCOMES.find(
    outcomes.c.status == literal("open"),
    outcomes.c.open_waits > literal(0),
    owner_id="agent",
    limit=bind("limit"),
)

# Submissions

#: The submission of an outcome that nobody has judged.
OPEN_SUBMISSION = _SUBMISSIONS.one(submissions.c.status == literal("open"), outcome_id="outcome")
#: The newest submissions of an outcome.
SUBMISSIONS_OF = _SUBMISSIONS.find(
    outcome_id="outcome", order=[submissions.c.id.desc()], limit=bind("limit")
)
#: Ends an open submission with a verdict.
END_SUBMISSION = _SUBMISSIONS.update(
    submissions.c.id == bind("submission"),
    submissions.c.status == literal("open"),
    status=bind("new_status"),
    verdict_note=bind("new_note"),
    judged_by=bind("by"),
    ended_at=bind("now"),
)
#: How often an outcome was returned to its owner.
COUNT_RETURNS = _SUBMISSIONS.count(
    submissions.c.status == literal("returned"), outcome_id="outcome"
)
#: Submissions that await the verdict of people: of one, or of the board.
SUBMITTED_TO_PEOPLE = _WAITS.find(
    waits.c.kind == literal("submission"),
    waits.c.awaited_agent_id.is_(None),
    or_(waits.c.awaited_user_id.is_(None), waits.c.awaited_user_id == bind("user")),
    company_id="company",
    limit=bind("limit"),
)
#: Submissions that await the verdict of an agent, such as a seat that a person holds.
SUBMITTED_TO_AGENT = _WAITS.find(
    and_(waits.c.awaited_agent_id == bind("agent"), waits.c.kind == literal("submission")),
    limit=bind("limit"),
)
#: Withdraws an agent's open submissions of outcomes that another agent owns now.
WITHDRAW_MOVED = _SUBMISSIONS.update(
    submissions.c.agent_id == bind("agent"),
    submissions.c.status == literal("open"),
    exists().where(outcomes.c.id == submissions.c.outcome_id, outcomes.c.owner_id != bind("agent")),
    status=literal("withdrawn"),
    judged_by=bind("by"),
    ended_at=bind("now"),
)
#: Ends an agent's waits for submissions that are not open any more.
FORGET_ENDED_SUBMISSIONS = _WAITS.delete(
    waits.c.kind == literal("submission"),
    not_(
        exists().where(
            submissions.c.id == waits.c.subject_id, submissions.c.status == literal("open")
        )
    ),
    agent_id="agent",
)
