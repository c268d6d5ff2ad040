"""Statements about messages, deliveries, schedules and questions."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    and_,
    exists,
    func,
    insert,
    literal_column,
    not_,
    null,
    or_,
    select,
    true,
    update,
)
from sqlalchemy import bindparam as bind

from remit.model.mail import Delivery, Message
from remit.model.question import Question
from remit.model.schedule import Schedule
from remit.store.agents import BELOW_AGENT
from remit.store.halts import stopped
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import (
    agents,
    companies,
    deliveries,
    memberships,
    messages,
    questions,
    schedules,
)

#: How many are looked at when somebody gives the beginning of an id.
MOST_MATCHES = 1000

# Messages

_message = columns(messages, Message)
INSERT_MESSAGE = change(insert(messages))
MESSAGE_ANYWHERE = Statement(
    select(*_message).where(messages.c.id == bind("message")), into(Message)
)
#: Whom a delivery is for. No index is on it, so that a narrower one is used: by message, by time.
_receiver = func.coalesce(deliveries.c.agent_id, deliveries.c.user_id)
#: One's own mail and that of one's reports, or anybody's.
_party = or_(
    messages.c.sender_agent_id == bind("me"),
    exists().where(deliveries.c.message_id == messages.c.id, _receiver == bind("me")),
    messages.c.sender_agent_id.in_(select(agents.c.id).where(agents.c.boss_id == bind("me"))),
    bind("any_party", type_=Boolean) == true(),
)
MESSAGES_BY_PREFIX = Statement(
    select(*_message)
    .where(
        messages.c.company_id == bind("company"),
        messages.c.id >= bind("low"),
        messages.c.id < bind("high"),
        _party,
    )
    .order_by(messages.c.id)
    .limit(MOST_MATCHES),
    into(Message),
)
THREAD = Statement(
    select(*_message)
    .where(messages.c.thread_id == bind("thread"))
    .order_by(messages.c.id)
    .limit(bind("limit")),
    into(Message),
)
#: A company's mail, newest first.
MESSAGES = Statement(
    select(*_message)
    .where(messages.c.company_id == bind("company"), messages.c.id < bind("before"))
    .order_by(messages.c.id.desc())
    .limit(bind("limit")),
    into(Message),
)

#: The letter that carries a question is sent right after the question is kept.
LETTER_OF_QUESTION = Statement(
    select(*_message)
    .where(
        messages.c.company_id == bind("company"),
        messages.c.id > bind("question"),
        messages.c.question_id == bind("question"),
    )
    .order_by(messages.c.id)
    .limit(1),
    into(Message),
)
#: That one, and those by which whoever is to answer it was told since.
LETTERS_OF_QUESTION = Statement(
    select(*_message).where(messages.c.question_id == bind("question")).order_by(messages.c.id),
    into(Message),
)
#: A request is settled once.
SETTLE_REQUEST = change(
    update(messages)
    .where(messages.c.id == bind("message"), messages.c.request == bind("seen_request"))
    .values(request=bind("new_request"))
)
#: Whether a file came to a person by mail.
RECEIVED = Statement(
    select(messages.c.id)
    .join(deliveries, deliveries.c.message_id == messages.c.id)
    .where(
        deliveries.c.user_id == bind("user"),
        deliveries.c.company_id == bind("company"),
        deliveries.c.position.is_not(None),
        or_(messages.c.body_file_id == bind("file"), messages.c.attachments.like(bind("attached"))),
    )
    .limit(1),
    scalar,
)

# Deliveries

_delivery = columns(deliveries, Delivery)
#: Constants are written out so that the partial indexes are seen to match.
_waiting = deliveries.c.status.in_([literal_column("'queued'"), literal_column("'leased'")])
_queued = deliveries.c.status == literal_column("'queued'")
_leased = deliveries.c.status == literal_column("'leased'")
_deferred = deliveries.c.status == literal_column("'deferred'")
_dead = deliveries.c.status == literal_column("'dead'")

#: The next place in line. The company's turn is ours, so nobody else takes it.
NEXT_POSITION = Statement(
    update(companies)
    .where(companies.c.id == bind("company"))
    .values(mail_position=companies.c.mail_position + 1)
    .returning(companies.c.mail_position),
    scalar,
)
INSERT_DELIVERY = change(
    insert(deliveries).values(
        {
            column.name: bind(column.name)
            for column in deliveries.c
            if column.name not in ("id", "faults", "alone_run_id")
        }
    )
)
DELIVERIES_OF = Statement(
    select(*_delivery).where(deliveries.c.message_id == bind("message")).order_by(deliveries.c.id),
    into(Delivery),
)
#: What waits for an agent, in the order it came.
WAITING_FOR_AGENT = Statement(
    select(*_delivery)
    .where(
        deliveries.c.agent_id == bind("agent"),
        _waiting,
        or_(bind("any_run", type_=Boolean) == true(), _queued, deliveries.c.run_id == bind("run")),
    )
    .order_by(deliveries.c.position)
    .limit(bind("limit")),
    into(Delivery),
)
COUNT_WAITING = Statement(
    select(func.count()).where(deliveries.c.agent_id == bind("agent"), _waiting), scalar
)
LEASE = change(
    update(deliveries)
    .where(deliveries.c.id == bind("delivery"), _queued)
    .values(status="leased", run_id=bind("run"))
)
END_DELIVERY = change(
    update(deliveries)
    .where(deliveries.c.id == bind("delivery"), or_(_waiting, _deferred))
    .values(status=bind("new_status"), ended_at=bind("now"), ended_why=bind("why"))
)
#: A run did not end well: what it had taken up comes again.
RETURN = change(
    update(deliveries)
    .where(deliveries.c.id == bind("delivery"), _leased)
    .values(
        status="queued",
        run_id=null(),
        attempt=bind("new_attempt"),
        begun=bind("new_begun", type_=Boolean),
        faults=bind("new_faults"),
        alone_run_id=bind("new_alone"),
        position=bind("new_position"),
    )
)
REVIVE = change(
    update(deliveries)
    .where(deliveries.c.id == bind("delivery"), _dead)
    .values(
        status="queued",
        run_id=null(),
        attempt=1,
        faults=0,
        alone_run_id=null(),
        ended_at=null(),
        ended_why=null(),
        position=bind("new_position"),
    )
)
DISCARD = change(
    update(deliveries)
    .where(deliveries.c.id == bind("delivery"), _dead)
    .values(status="cancelled", ended_at=bind("now"))
)
LEASED_TO = Statement(
    select(*_delivery).where(deliveries.c.run_id == bind("run"), _leased), into(Delivery)
)
#: What has come due, in the order it was meant to come.
DUE = Statement(
    select(*_delivery)
    .where(
        _deferred,
        deliveries.c.company_id == bind("company"),
        deliveries.c.deliver_at <= bind("now"),
    )
    .order_by(deliveries.c.deliver_at, deliveries.c.id)
    .limit(bind("limit")),
    into(Delivery),
)
#: The same for one receiver.
DUE_FOR = Statement(
    select(*_delivery)
    .where(
        _deferred,
        deliveries.c.deliver_at <= bind("now"),
        _receiver == bind("receiver"),
    )
    .order_by(deliveries.c.deliver_at, deliveries.c.id),
    into(Delivery),
)
#: The companies in which something has come due.
COMPANIES_DUE = Statement(
    select(deliveries.c.company_id)
    .where(_deferred, deliveries.c.deliver_at <= bind("now"))
    .distinct(),
    scalar,
)
ARRIVE = change(
    update(deliveries)
    .where(deliveries.c.id == bind("delivery"), _deferred)
    .values(status="queued", position=bind("new_position"))
)
NEXT_DUE = Statement(select(func.min(deliveries.c.deliver_at)).where(_deferred), scalar)
DEAD = Statement(
    select(*_delivery)
    .where(deliveries.c.company_id == bind("company"), _dead)
    .order_by(deliveries.c.id.desc())
    .limit(bind("limit")),
    into(Delivery),
)
#: Those that somebody could handle, and that did not break whoever read them; oldest first.
DEAD_BY_OTHERS = Statement(
    select(*_delivery)
    .join(agents, agents.c.id == deliveries.c.agent_id)
    .where(
        deliveries.c.company_id == bind("company"),
        _dead,
        deliveries.c.ended_why.not_in([bind("gone"), bind("broke"), bind("unreadable")]),
        agents.c.status != literal_column("'terminated'"),
    )
    .order_by(deliveries.c.id),
    into(Delivery),
)
DEFERRED_BY = Statement(
    select(*_delivery)
    .join(messages, messages.c.id == deliveries.c.message_id)
    .where(messages.c.sender_agent_id == bind("agent"), _deferred)
    .order_by(deliveries.c.deliver_at)
    .limit(bind("limit")),
    into(Delivery),
)
_below = select(BELOW_AGENT.c.id)
#: Of an agent and everybody below it, like the following.
DEFERRED_BELOW = Statement(
    select(*_delivery)
    .join(messages, messages.c.id == deliveries.c.message_id)
    .where(messages.c.sender_agent_id.in_(_below), _deferred)
    .order_by(deliveries.c.deliver_at, deliveries.c.id)
    .limit(bind("limit")),
    into(Delivery),
)
DEAD_BELOW = Statement(
    select(*_delivery)
    .where(deliveries.c.company_id == bind("company"), deliveries.c.agent_id.in_(_below), _dead)
    .order_by(deliveries.c.id)
    .limit(bind("limit")),
    into(Delivery),
)
#: The board's members with the part of the company each is over; None is all of it.
BOARD = Statement(
    select(memberships.c.user_id, memberships.c.scope_agent_id)
    .where(
        memberships.c.company_id == bind("company"),
        memberships.c.role == literal_column("'board'"),
    )
    .order_by(memberships.c.user_id),
    lambda user, scope: (user, scope),
)

# Schedules

_schedule = columns(schedules, Schedule)
INSERT_SCHEDULE = change(insert(schedules))
SCHEDULE_ANYWHERE = Statement(
    select(*_schedule).where(schedules.c.id == bind("schedule")), into(Schedule)
)
SCHEDULES = Statement(
    select(*_schedule)
    .where(
        schedules.c.company_id == bind("company"),
        schedules.c.id > bind("after"),
        or_(bind("any_agent", type_=Boolean) == true(), schedules.c.agent_id == bind("agent")),
        or_(bind("ended_too", type_=Boolean) == true(), schedules.c.next_at.is_not(None)),
    )
    .order_by(schedules.c.id)
    .limit(bind("limit")),
    into(Schedule),
)
_active = schedules.c.status == literal_column("'active'")
#: What a stopped agent would have sent waits; it is sent once when the agent goes on.
_goes_on = not_(stopped(schedules))
_due = and_(_active, schedules.c.next_at <= bind("now"), _goes_on)
SCHEDULES_BELOW = Statement(
    select(*_schedule)
    .where(schedules.c.agent_id.in_(_below), _active)
    .order_by(schedules.c.id)
    .limit(bind("limit")),
    into(Schedule),
)
SCHEDULES_DUE = Statement(
    select(*_schedule)
    .where(_due, schedules.c.company_id == bind("company"))
    .order_by(schedules.c.next_at, schedules.c.id)
    .limit(bind("limit")),
    into(Schedule),
)
COMPANIES_WITH_SCHEDULES_DUE = Statement(
    select(schedules.c.company_id).where(_due).distinct(),
    scalar,
)
SCHEDULES_BY_PREFIX = Statement(
    select(*_schedule)
    .where(
        schedules.c.company_id == bind("company"),
        schedules.c.id >= bind("low"),
        schedules.c.id < bind("high"),
    )
    .order_by(schedules.c.id)
    .limit(MOST_MATCHES),
    into(Schedule),
)
#: When an agent is gone, so is what it would have sent.
ACTIVE_SCHEDULES_OF = Statement(
    select(*_schedule).where(schedules.c.agent_id == bind("agent"), _active), into(Schedule)
)
#: Its owner works again.
GO_ON_WITH_SCHEDULE = change(
    update(schedules)
    .where(
        schedules.c.id == bind("schedule"),
        schedules.c.agent_id == bind("agent"),
        schedules.c.status == literal_column("'cancelled'"),
    )
    .values(status="active", next_at=bind("new_next"))
)
CANCEL_SCHEDULES_OF = change(
    update(schedules)
    .where(schedules.c.agent_id == bind("agent"), _active)
    .values(status="cancelled", next_at=null())
)
NEXT_SCHEDULE = Statement(
    select(schedules.c.next_at).where(_active, _goes_on).order_by(schedules.c.next_at).limit(1),
    scalar,
)
MOVE_SCHEDULE = change(
    update(schedules)
    .where(schedules.c.id == bind("schedule"), _active)
    .values(status=bind("new_status"), next_at=bind("new_next"), last_at=bind("new_last"))
)

# Questions

_question = columns(questions, Question)
INSERT_QUESTION = change(insert(questions))
QUESTION_ANYWHERE = Statement(
    select(*_question).where(questions.c.id == bind("question")), into(Question)
)
QUESTIONS = Statement(
    select(*_question)
    .where(
        questions.c.company_id == bind("company"),
        questions.c.id > bind("after"),
        or_(bind("any_agent", type_=Boolean) == true(), questions.c.agent_id == bind("agent")),
        or_(bind("ended_too", type_=Boolean) == true(), questions.c.ended_at.is_(None)),
    )
    .order_by(questions.c.id)
    .limit(bind("limit")),
    into(Question),
)
QUESTIONS_BY_PREFIX = Statement(
    select(*_question)
    .where(
        questions.c.company_id == bind("company"),
        questions.c.id >= bind("low"),
        questions.c.id < bind("high"),
    )
    .order_by(questions.c.id)
    .limit(MOST_MATCHES),
    into(Question),
)
_open = questions.c.status == literal_column("'open'")
QUESTIONS_BELOW = Statement(
    select(*_question)
    .where(questions.c.company_id == bind("company"), questions.c.agent_id.in_(_below), _open)
    .order_by(questions.c.id)
    .limit(bind("limit")),
    into(Question),
)
#: The letters that carry what an agent asks.
LETTERS_OF_QUESTIONS_OF = Statement(
    select(*_message)
    .where(
        messages.c.question_id.in_(
            select(questions.c.id).where(
                questions.c.company_id == bind("company"),
                questions.c.agent_id == bind("agent"),
                _open,
            )
        )
    )
    .order_by(messages.c.id),
    into(Message),
)
CANCEL_QUESTIONS_OF = change(
    update(questions)
    .where(questions.c.company_id == bind("company"), questions.c.agent_id == bind("agent"), _open)
    .values(status="cancelled", answered_by=bind("by"), ended_at=bind("now"))
)
#: Who asked works again, and still wants to know.
ASK_AGAIN = change(
    update(questions)
    .where(
        questions.c.id == bind("question"),
        questions.c.agent_id == bind("agent"),
        questions.c.status == literal_column("'cancelled'"),
    )
    .values(status="open", answered_by=null(), ended_at=null())
)
#: Somebody else is asked; the board when nobody is named.
PASS_ON = change(
    update(questions)
    .where(questions.c.id == bind("question"), _open)
    .values(to_agent_id=bind("new_agent"))
)
OPEN_FOR_BOARD = Statement(
    select(*_question)
    .where(
        questions.c.company_id == bind("company"),
        questions.c.status == literal_column("'open'"),
        questions.c.to_agent_id.is_(None),
    )
    .order_by(questions.c.id)
    .limit(bind("limit")),
    into(Question),
)
END_QUESTION = change(
    update(questions)
    .where(questions.c.id == bind("question"), questions.c.status == literal_column("'open'"))
    .values(
        status=bind("new_status"),
        answer=bind("new_answer"),
        answered_by=bind("by"),
        ended_at=bind("now"),
    )
)
