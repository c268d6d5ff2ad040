"""Statements about wishes: what people wrote to agents, and what came of it."""

from __future__ import annotations

from sqlalchemy import (
    and_,
    exists,
    func,
    insert,
    literal,
    literal_column,
    null,
    or_,
    select,
    true,
    update,
)
from sqlalchemy import bindparam as bind

from remit.model.job import Job
from remit.model.mail import Delivery, Message
from remit.model.outcome import Outcome
from remit.model.question import Question
from remit.model.run import Run
from remit.model.wish import Wish
from remit.store.statement import Statement, change, columns, into, scalar
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

_wish = columns(wishes, Wish)
_outcome = columns(outcomes, Outcome)
_message = columns(messages, Message)
#: Constants are written out so that the partial indexes are seen to match.
_open = wishes.c.status == literal_column("'open'")
_one = wishes.c.message_id == bind("message")

INSERT_WISH = change(insert(wishes))
WISH = Statement(select(*_wish).where(_one), into(Wish))
LOOK_AT = change(update(wishes).where(_one, _open).values(look_at=bind("at")))
#: Not later than this; what is looked at sooner stays so.
LOOK_BY = change(
    update(wishes)
    .where(
        or_(_one, wishes.c.shared_with == bind("message")),
        _open,
        wishes.c.look_at > bind("at"),
    )
    .values(look_at=bind("at"))
)
SHARE = change(update(wishes).where(_one, _open).values(shared_with=bind("new_with")))
#: Open wishes for which everything was made that was made of a letter.
SHARING = Statement(
    select(*_wish)
    .where(wishes.c.shared_with == bind("message"), _open)
    .order_by(wishes.c.message_id),
    into(Wish),
)
#: Whether what was made of a letter may be for another as well.
IS_SHARED = Statement(
    select(wishes.c.message_id)
    .where(
        or_(
            and_(_one, wishes.c.shared_with.is_not(None)),
            wishes.c.shared_with == bind("message"),
        )
    )
    .limit(1),
    scalar,
)
END_WISH = change(
    update(wishes)
    .where(_one, _open)
    .values(status="ended", ended_at=bind("now"), ended_why=bind("why"))
)
REOPEN_WISH = change(
    update(wishes)
    .where(_one)
    .values(status="open", ended_at=null(), ended_why=null(), look_at=bind("at"))
)
DUE = Statement(
    select(*_wish)
    .where(_open, wishes.c.look_at <= bind("now"))
    .order_by(wishes.c.look_at, wishes.c.message_id)
    .limit(bind("limit")),
    into(Wish),
)
OPEN_OF_USER = Statement(
    select(*_wish)
    .where(
        wishes.c.user_id == bind("user"),
        wishes.c.company_id == bind("company"),
        _open,
    )
    .order_by(wishes.c.message_id)
    .limit(bind("limit")),
    into(Wish),
)

# What came of a letter

#: The letter itself and those that came of it.
_of_wish = or_(messages.c.id == bind("message"), messages.c.origin_id == bind("message"))
LETTERS_OF = Statement(
    select(*_message)
    .where(messages.c.origin_id == bind("message"))
    .order_by(messages.c.id)
    .limit(bind("limit")),
    into(Message),
)
#: The letter and those that came of it, as long as an agent has not dealt with them.
UNREAD_OF = Statement(
    select(*columns(deliveries, Delivery))
    .join(messages, messages.c.id == deliveries.c.message_id)
    .where(
        _of_wish,
        deliveries.c.agent_id.is_not(None),
        deliveries.c.status.in_([literal("deferred"), literal("queued"), literal("leased")]),
    )
    .order_by(deliveries.c.id),
    into(Delivery),
)
OUTCOMES_OF = Statement(
    select(*_outcome).where(outcomes.c.origin_id == bind("message")).order_by(outcomes.c.id),
    into(Outcome),
)
QUESTIONS_OF = Statement(
    select(*columns(questions, Question))
    .where(
        questions.c.id.in_(
            select(messages.c.question_id).where(
                messages.c.origin_id == bind("message"), messages.c.question_id.is_not(None)
            )
        )
    )
    .order_by(questions.c.id),
    into(Question),
)
UNFINISHED_JOBS_OF = Statement(
    select(*columns(jobs, Job))
    .join(messages, messages.c.id == jobs.c.message_id)
    .where(
        messages.c.origin_id == bind("message"),
        jobs.c.status.in_([literal_column("'queued'"), literal_column("'running'")]),
    )
    .order_by(jobs.c.id),
    into(Job),
)
#: Runs that took up the letter, or one that came of it.
RUNS_OF = Statement(
    select(*columns(runs, Run))
    .where(
        runs.c.id.in_(
            select(deliveries.c.run_id)
            .join(messages, messages.c.id == deliveries.c.message_id)
            .where(_of_wish, deliveries.c.run_id.is_not(None))
        )
    )
    .order_by(runs.c.id),
    into(Run),
)
#: Runs of the receiver that took it up and gave it back.
TRIED_BY = Statement(
    select(*columns(runs, Run))
    .where(
        runs.c.agent_id == bind("agent"),
        runs.c.ended_at >= bind("since"),
        runs.c.message_ids.like(bind("quoted")),
    )
    .order_by(runs.c.id)
    .limit(bind("limit")),
    into(Run),
)
_to_person = exists().where(
    deliveries.c.message_id == messages.c.id, deliveries.c.user_id == bind("user")
)
_from_agent = or_(messages.c.sender_kind == literal_column("'agent'"), messages.c.mark.is_not(None))
#: What was written to the person since: in the thread, because of the letter, or by the run that
#: had it, without naming any letter.
ANSWERS_TO = Statement(
    select(*_message)
    .where(
        messages.c.id > bind("after"),
        messages.c.created_at >= bind("since"),
        or_(
            messages.c.thread_id == bind("thread"),
            messages.c.origin_id == bind("message"),
            and_(messages.c.sender_run_id == bind("run"), messages.c.reply_to.is_(None)),
        ),
        messages.c.company_id == bind("company"),
        # Who asks has not answered.
        messages.c.question_id.is_(None),
        messages.c.request.is_(None),
        _from_agent,
        _to_person,
    )
    .order_by(messages.c.id)
    .limit(bind("limit")),
    into(Message),
)
#: The last that the person said which belongs to the wish.
LAST_SAID = Statement(
    select(func.max(messages.c.id)).where(
        _of_wish, messages.c.sender_kind == literal_column("'user'")
    ),
    scalar,
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
ORIGINS_BEHIND = Statement(
    select(_behind.c.origin_id).where(_behind.c.origin_id.is_not(None)).distinct(), scalar
)
#: What runs raised that has to be decided: the resource of the event.
RAISED_BY_RUN = Statement(
    select(events.c.resource)
    .where(
        events.c.run_id == bind("run"),
        events.c.allowed == true(),
        events.c.action == bind("action"),
    )
    .order_by(events.c.seq),
    scalar,
)
#: What a person wrote, newest first.
SENT_BY_USER = Statement(
    select(*_message)
    .where(
        messages.c.sender_user_id == bind("user"),
        messages.c.company_id == bind("company"),
        messages.c.id < bind("before"),
    )
    .order_by(messages.c.id.desc())
    .limit(bind("limit")),
    into(Message),
)
