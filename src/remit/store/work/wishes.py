"""Statements about wishes: what people wrote to agents, and what came of it."""

from sqlalchemy import and_, exists, func, literal, literal_column, null, or_, select, true
from sqlalchemy import bindparam as bind

from remit.model.execution.job import Job
from remit.model.execution.run import Run
from remit.model.messaging.mail import Delivery, Message
from remit.model.messaging.question import Question
from remit.model.work.outcome import Outcome
from remit.model.work.wish import Wish
from remit.store.engine.statement import Rows, values_of
from remit.store.tables import (
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
#: Constants are written out so that the partial indexes are seen to match.
_open = wishes.c.status == literal_column("'open'")
_one = wishes.c.message_id == bind("message")

#: One wish by its message.
WISH = _WISHES.one(_one).keep()
#: When an open wish is looked at next.
LOOK_AT = _WISHES.update(_one, _open, look_at=bind("at"))
#: Not later than this; what is looked at sooner stays so.
LOOK_BY = _WISHES.update(
    or_(_one, wishes.c.shared_with == bind("message")),
    _open,
    wishes.c.look_at > bind("at"),
    look_at=bind("at"),
)
#: The wish whose result an open wish shares.
SHARE = _WISHES.update(_one, _open, shared_with=bind("new_with"))
#: Open wishes for which everything was made that was made of a letter.
SHARING = _WISHES.find(_open, shared_with="message")
#: Whether what was made of a letter may be for another as well.
IS_SHARED = _WISHES.any(
    or_(and_(_one, wishes.c.shared_with.is_not(None)), wishes.c.shared_with == bind("message"))
)
#: Ends an open wish.
END_WISH = _WISHES.update(_one, _open, status="ended", ended_at=bind("now"), ended_why=bind("why"))
#: Opens a wish again.
REOPEN_WISH = _WISHES.update(
    _one, status="open", ended_at=null(), ended_why=null(), look_at=bind("at")
)
#: Open wishes whose time to be looked at has come.
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

# Results of a letter

#: The letter itself and those that came of it.
_of_wish = or_(messages.c.id == bind("message"), messages.c.origin_id == bind("message"))
#: Messages that came of a wish.
LETTERS_OF = _MESSAGES.find(origin_id="message", limit=bind("limit"))
#: The letter and those that came of it, as long as an agent has not dealt with them.
UNREAD_OF = _DELIVERIES.find(
    _of_wish,
    deliveries.c.agent_id.is_not(None),
    deliveries.c.status.in_([literal("deferred"), literal("queued"), literal("leased")]),
    join=(messages, messages.c.id == deliveries.c.message_id),
)
#: Outcomes that came of a wish.
OUTCOMES_OF = _OUTCOMES.find(origin_id="message").keep()
#: Questions that were asked because of a wish.
QUESTIONS_OF = _QUESTIONS.find(
    questions.c.id.in_(
        select(messages.c.question_id).where(
            messages.c.origin_id == bind("message"), messages.c.question_id.is_not(None)
        )
    )
)
#: Background jobs of a wish that are not finished.
UNFINISHED_JOBS_OF = _JOBS.find(
    messages.c.origin_id == bind("message"),
    jobs.c.status.in_([literal_column("'queued'"), literal_column("'running'")]),
    join=(messages, messages.c.id == jobs.c.message_id),
)
#: Runs that took up the letter, or one that came of it.
RUNS_OF = _RUNS.find(
    runs.c.id.in_(
        select(deliveries.c.run_id)
        .join(messages, messages.c.id == deliveries.c.message_id)
        .where(_of_wish, deliveries.c.run_id.is_not(None))
    )
).keep()
#: Runs of the receiver that took it up and gave it back.
TRIED_BY = _RUNS.find(
    runs.c.ended_at >= bind("since"),
    runs.c.message_ids.like(bind("quoted")),
    agent_id="agent",
    limit=bind("limit"),
)
#: Into their inbox, or to the chat from which they wrote.
_to_person = or_(
    exists().where(deliveries.c.message_id == messages.c.id, deliveries.c.user_id == bind("user")),
    messages.c.address == bind("place"),
)
_from_agent = or_(messages.c.sender_kind == literal_column("'agent'"), messages.c.mark.is_not(None))
#: Messages to the person since: in the thread, because of the letter, or by the run that
#: had it, without naming any letter.
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
#: The last that the person said which belongs to the wish.
LAST_SAID = values_of(
    func.max(messages.c.id), _of_wish, messages.c.sender_kind == literal_column("'user'")
)
#: The letters behind an outcome: its own, or else those of what it is a part of.
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
#: The wishes behind an outcome and what it is a part of.
ORIGINS_BEHIND = values_of(_behind.c.origin_id, _behind.c.origin_id.is_not(None), distinct=True)
#: Requests of runs that have to be decided: the resource of the event.
RAISED_BY_RUN = values_of(
    events.c.resource,
    events.c.allowed == true(),
    run_id="run",
    action="action",
    order=[events.c.seq],
)
#: Letters of a person, newest first.
SENT_BY_USER = _MESSAGES.before(sender_user_id="user", company_id="company")
