"""Statements about wishes: messages from people to agents, and the results of each."""

from sqlalchemy import and_, exists, false, func, literal, literal_column, null, or_, select, true
from sqlalchemy import bindparam as bind

from remit.model.execution.job import Job
from remit.model.execution.run import Run
from remit.model.messaging.mail import Delivery, Message
from remit.model.messaging.question import Question
from remit.model.organisation.approval import Approval
from remit.model.work.outcome import Outcome
from remit.model.work.wish import Wish
from remit.store.engine.statement import Rows, values_of
from remit.store.tables import (
    approvals,
    deliveries,
    events,
    jobs,
    messages,
    outcome_edges,
    outcomes,
    questions,
    runs,
    wishes,
)

_DELIVERIES = Rows(Delivery)
_QUESTIONS = Rows(Question)
_JOBS = Rows(Job)
_RUNS = Rows(Run)
_WISHES = Rows(Wish, "message_id")
_OUTCOMES = Rows(Outcome)
_MESSAGES = Rows(Message)
_APPROVALS = Rows(Approval)
#: Constants are written out, so that the planner uses the partial indexes.
_open = wishes.c.status == literal_column("'open'")
_one = wishes.c.message_id == bind("message")

#: One wish by its message.
WISH = _WISHES.one(_one).keep()
#: Sets the time of an open wish's next check.
LOOK_AT = _WISHES.update(_one, _open, look_at=bind("at"))
#: Brings the next check of an open wish, and of those that share its result, forward to a time.
LOOK_BY = _WISHES.update(
    or_(_one, wishes.c.shared_with == bind("message")),
    _open,
    wishes.c.look_at > bind("at"),
    look_at=bind("at"),
)
#: Has an open wish share the result of another wish.
SHARE = _WISHES.update(_one, _open, shared_with=bind("new_with"))
#: Open wishes that share the result of another.
SHARING = _WISHES.find(_open, shared_with="message")
#: Whether a wish shares its result with another.
IS_SHARED = _WISHES.any(
    or_(and_(_one, wishes.c.shared_with.is_not(None)), wishes.c.shared_with == bind("message"))
)
#: Ends an open wish.
END_WISH = _WISHES.update(_one, _open, status="ended", ended_at=bind("now"), ended_why=bind("why"))
#: Opens a wish again.
REOPEN_WISH = _WISHES.update(
    _one, status="open", ended_at=null(), ended_why=null(), look_at=bind("at")
)
#: Open wishes whose next check is due.
DUE = _WISHES.find(
    _open,
    wishes.c.look_at <= bind("now"),
    order=[wishes.c.look_at, wishes.c.message_id],
    limit=bind("limit"),
)
#: A person's open wishes in a company.
OPEN_OF_USER = _WISHES.find(_open, user_id="user", company_id="company", limit=bind("limit"))
#: A person's wishes in a company, newest first.
NEWEST_OF_USER = _WISHES.find(
    user_id="user", company_id="company", order=[wishes.c.message_id.desc()], limit=bind("limit")
)

# Results of a wish

#: A condition: the message of the wish itself, or one that resulted from it.
_of_wish = or_(messages.c.id == bind("message"), messages.c.origin_id == bind("message"))
#: A letter to know keeps no wish in work, and whoever reads one works on no wish by that.
_to_act_on = messages.c.to_know == false()
#: Messages that resulted from a wish.
LETTERS_OF = _MESSAGES.find(origin_id="message", limit=bind("limit"))
#: Deliveries to agents of a wish's message and its resulting messages that are not processed.
UNREAD_OF = _DELIVERIES.find(
    _of_wish,
    _to_act_on,
    deliveries.c.agent_id.is_not(None),
    deliveries.c.status.in_([literal("deferred"), literal("queued"), literal("leased")]),
    join=(messages, messages.c.id == deliveries.c.message_id),
)
#: Outcomes that resulted from a wish.
OUTCOMES_OF = _OUTCOMES.find(origin_id="message").keep()
#: Questions that were asked because of a wish.
QUESTIONS_OF = _QUESTIONS.find(
    questions.c.id.in_(
        select(messages.c.question_id).where(
            messages.c.origin_id == bind("message"), messages.c.question_id.is_not(None)
        )
    )
)
#: Whether an outcome is the mandate of an agent whose hire was not approved.
OF_NOBODY = _APPROVALS.any(
    approvals.c.type == literal_column("'hire_agent'"),
    approvals.c.status.in_([literal_column("'rejected'"), literal_column("'cancelled'")]),
    agent_id="outcome",
)
#: Unfinished background jobs that resulted from a wish.
UNFINISHED_JOBS_OF = _JOBS.find(
    messages.c.origin_id == bind("message"),
    jobs.c.status.in_([literal_column("'queued'"), literal_column("'running'")]),
    join=(messages, messages.c.id == jobs.c.message_id),
)
_runs_of = (
    select(deliveries.c.run_id)
    .join(messages, messages.c.id == deliveries.c.message_id)
    .where(_of_wish, _to_act_on, deliveries.c.run_id.is_not(None))
)
#: Runs that took up a wish's message or a resulting one.
RUNS_OF = _RUNS.find(runs.c.id.in_(_runs_of)).keep()
#: Undecided approvals that these runs asked for.
UNDECIDED_OF = _APPROVALS.find(
    approvals.c.status.in_(
        [literal_column("'pending'"), literal_column("'revision_requested'")],
    ),
    approvals.c.requested_by_run_id.in_(_runs_of),
    order=[approvals.c.id],
    limit=bind("limit"),
)
#: The last runs of the receiver that had taken up a wish's message and ended since a time.
TRIED_BY = _RUNS.find(
    runs.c.ended_at >= bind("since"),
    runs.c.message_ids.like(bind("quoted")),
    agent_id="agent",
    order=[runs.c.id.desc()],
    limit=bind("limit"),
)
#: A condition: the message went to the person's inbox, or to the chat from which they wrote.
_to_person = or_(
    exists().where(deliveries.c.message_id == messages.c.id, deliveries.c.user_id == bind("user")),
    messages.c.address == bind("place"),
)
_from_agent = or_(messages.c.sender_kind == literal_column("'agent'"), messages.c.mark.is_not(None))
#: Messages to the person since a time: in the thread, as a result of the wish, or from the run that
#: took it up if they reply to no other message.
ANSWERS_TO = _MESSAGES.after(
    messages.c.created_at >= bind("since"),
    or_(
        messages.c.thread_id == bind("thread"),
        messages.c.origin_id == bind("message"),
        and_(messages.c.sender_run_id == bind("run"), messages.c.reply_to.is_(None)),
    ),
    # A question is no answer.
    messages.c.question_id.is_(None),
    messages.c.request.is_(None),
    _from_agent,
    _to_person,
    company_id="company",
).keep()
#: The time of the newest message that belongs to a wish, without letters of agents to themselves.
LAST_WRITTEN = values_of(
    func.max(messages.c.created_at),
    _of_wish,
    or_(
        messages.c.sender_agent_id.is_(None),
        messages.c.address != literal("agent:").concat(messages.c.sender_agent_id),
    ),
)
#: The newest message from a person that belongs to a wish.
LAST_SAID = values_of(
    func.max(messages.c.id), _of_wish, messages.c.sender_kind == literal_column("'user'")
)
#: The origins of an outcome: its own, or else those of its parents.
_start = (
    select(outcomes.c.id, outcomes.c.origin_id)
    .where(outcomes.c.id == bind("outcome"))
    .cte("behind", recursive=True)
)
_parent = outcomes.alias("parent")
_behind = _start.union(
    select(_parent.c.id, _parent.c.origin_id)
    .join(outcome_edges, outcome_edges.c.parent_id == _parent.c.id)
    .where(outcome_edges.c.child_id == _start.c.id, _start.c.origin_id.is_(None))
)
#: The wishes from which an outcome resulted, directly or through its parents.
ORIGINS_BEHIND = values_of(_behind.c.origin_id, _behind.c.origin_id.is_not(None), distinct=True)
#: The resources of a run's events of one action, such as requests that await a decision.
RAISED_BY_RUN = values_of(
    events.c.resource,
    events.c.allowed == true(),
    run_id="run",
    action="action",
    order=[events.c.seq],
)
#: Messages of a person, newest first.
SENT_BY_USER = _MESSAGES.before(sender_user_id="user", company_id="company")
