"""Statements about messages, deliveries, schedules and questions."""

import sqlalchemy as sa
from sqlalchemy import bindparam as bind

from remit.model.messaging.mail import TRIED_ONCE, Delivery, Message
from remit.model.messaging.question import Question
from remit.model.messaging.schedule import Schedule
from remit.store.engine.statement import Rows, Statement, new, scalar, unless
from remit.store.organisation.agents import BELOW_AGENT, VACANT
from remit.store.organisation.halts import stopped
from remit.store.tables import (
    agents,
    companies,
    deliveries,
    memberships,
    messages,
    questions,
    schedules,
)

#: Most rows that are read for a prefix of an id.
MOST_MATCHES = 1000

# Messages

_MESSAGES = Rows(Message)
#: One message by id, of any company.
MESSAGE_ANYWHERE = _MESSAGES.keyed(id="message")
#: The receiver of a delivery; as an expression without an index it leaves the planner the narrower
#: indexes by message and by time.
_receiver = sa.func.coalesce(deliveries.c.agent_id, deliveries.c.user_id)
#: Mail of the caller, and mail that its reports sent; with the switch `any_party`, all mail.
_party = sa.or_(
    messages.c.sender_agent_id == bind("me"),
    sa.exists().where(deliveries.c.message_id == messages.c.id, _receiver == bind("me")),
    messages.c.sender_agent_id.in_(sa.select(agents.c.id).where(agents.c.boss_id == bind("me"))),
    bind("any_party", type_=sa.Boolean) == sa.true(),
)
#: The caller's messages whose ids lie between two.
MESSAGES_BY_PREFIX = _MESSAGES.between(_party, company_id="company", limit=MOST_MATCHES, order=None)
#: Letters that an agent wrote to itself in runs and that came of a letter, or of none.
OWN_LETTERS = _MESSAGES.find(
    messages.c.id >= bind("since"),
    messages.c.address == sa.literal("agent:").concat(messages.c.sender_agent_id),
    messages.c.sender_run_id.is_not(None),
    sa.func.coalesce(messages.c.origin_id, sa.literal(""))
    == sa.func.coalesce(bind("origin", type_=sa.Text), sa.literal("")),
    sender_agent_id="agent",
    limit=bind("limit"),
)
#: A thread's messages, oldest first.
THREAD = _MESSAGES.find(thread_id="thread", limit=bind("limit"))
#: A company's mail, newest first.
MESSAGES = _MESSAGES.before(company_id="company")

#: The message that carries a question: the first one after the question was stored.
LETTER_OF_QUESTION = _MESSAGES.find(
    messages.c.id > bind("question"), company_id="company", question_id="question", limit=1
)
#: All messages that carry a question, also those to its later receivers.
LETTERS_OF_QUESTION = _MESSAGES.keyed(question_id="question")
#: Settles the request of a message, once.
SETTLE_REQUEST = _MESSAGES.update(
    messages.c.id == bind("message"),
    messages.c.request == bind("seen_request"),
    request=bind("new_request"),
)
#: The first message whose text is a file, among messages since a given id.
SENT_AS = Statement(
    sa.select(messages.c.id)
    .where(
        messages.c.company_id == bind("company"),
        messages.c.id >= bind("since"),
        messages.c.body_file_id == bind("file"),
    )
    .order_by(messages.c.id)
    .limit(1),
    scalar,
)
#: Whether a person received a file by mail, as the text or as an attachment.
RECEIVED = Statement(
    sa.select(messages.c.id)
    .join(deliveries, deliveries.c.message_id == messages.c.id)
    .where(
        deliveries.c.user_id == bind("user"),
        deliveries.c.company_id == bind("company"),
        deliveries.c.position.is_not(None),
        sa.or_(
            messages.c.body_file_id == bind("file"), messages.c.attachments.like(bind("attached"))
        ),
    )
    .limit(1),
    scalar,
)

# Deliveries

_DELIVERIES = Rows(Delivery)
_one = deliveries.c.id == bind("delivery")
#: Constants are written out, so that the planner uses the partial indexes.
_waiting = deliveries.c.status.in_([sa.literal_column("'queued'"), sa.literal_column("'leased'")])
_queued = deliveries.c.status == sa.literal_column("'queued'")
_leased = deliveries.c.status == sa.literal_column("'leased'")
_deferred = deliveries.c.status == sa.literal_column("'deferred'")
_dead = deliveries.c.status == sa.literal_column("'dead'")
_by_time = (deliveries.c.deliver_at, deliveries.c.id)
_its_message = (messages, messages.c.id == deliveries.c.message_id)

#: Takes the next position of a company's queue; the lock on its event head prevents duplicates.
NEXT_POSITION = Statement(
    sa.update(companies)
    .where(companies.c.id == bind("company"))
    .values(mail_position=companies.c.mail_position + 1)
    .returning(companies.c.mail_position),
    scalar,
)
#: Adds a delivery: one message for one recipient.
INSERT_DELIVERY = _DELIVERIES.insert_without("id", "faults", "alone_run_id")
#: The letters of Remit about a matter.
LETTERS_ABOUT = _MESSAGES.find(company_id="company", about="about")
#: Whether a person has read a letter about a matter since a time.
WAS_READ_ABOUT = _MESSAGES.any(
    messages.c.created_at >= bind("since"),
    sa.exists().where(
        deliveries.c.message_id == messages.c.id,
        deliveries.c.user_id.is_not(None),
        deliveries.c.status == sa.literal_column("'done'"),
    ),
    company_id="company",
    about="about",
)
#: The newest letters of people to the owner of an outcome about it, since a time.
FROM_PEOPLE_ABOUT = _MESSAGES.find(
    messages.c.outcome_id == bind("outcome"),
    messages.c.sender_kind == sa.literal_column("'user'"),
    messages.c.created_at >= bind("since"),
    sa.exists().where(
        deliveries.c.message_id == messages.c.id, deliveries.c.agent_id == bind("owner")
    ),
    order=[messages.c.id.desc()],
    limit=bind("limit"),
)
#: All deliveries of a message.
DELIVERIES_OF = _DELIVERIES.keyed(message_id="message", order=[deliveries.c.id])
#: Mail that waits for an agent or is with its run, in the order of its queue.
WAITING_FOR_AGENT = _DELIVERIES.find(
    _waiting,
    unless("any_run", _queued, deliveries.c.run_id == bind("run")),
    agent_id="agent",
    order=[deliveries.c.position],
    limit=bind("limit"),
)
#: Of this mail, what is to act on, or only to know.
TO_ACT_ON, TO_KNOW = (
    _DELIVERIES.find(
        _waiting,
        unless("any_run", _queued, deliveries.c.run_id == bind("run")),
        messages.c.to_know == known,
        deliveries.c.agent_id == bind("agent"),
        join=_its_message,
        order=[deliveries.c.position],
        limit=bind("limit"),
    )
    for known in (sa.false(), sa.true())
)
#: Mail that waits for vacant seats, in the order of the queue.
WAITING_FOR_NOBODY = _DELIVERIES.find(
    _waiting,
    _queued,
    deliveries.c.agent_id.in_(sa.select(agents.c.id).where(*VACANT)),
    order=[deliveries.c.position],
    limit=bind("limit"),
)
#: How many letters to act on wait for an agent or are with its run.
COUNT_WAITING = Statement(
    sa.select(sa.func.count())
    .select_from(deliveries.join(*_its_message))
    .where(deliveries.c.agent_id == bind("agent"), _waiting, messages.c.to_know == sa.false()),
    scalar,
)
#: Gives a queued delivery to a run.
LEASE = _DELIVERIES.update(_one, _queued, status="leased", run_id=bind("run"))
#: Ends a delivery that is queued, with a run, or deferred.
END_DELIVERY = _DELIVERIES.update(
    _one,
    sa.or_(_waiting, _deferred),
    status=bind("new_status"),
    ended_at=bind("now"),
    ended_why=bind("why"),
)
#: Requeues a delivery after a run that did not end well.
RETURN = _DELIVERIES.update(
    _one,
    _leased,
    **new("attempt", "faults", "position"),
    status="queued",
    run_id=sa.null(),
    begun=bind("new_begun", type_=sa.Boolean),
    alone_run_id=bind("new_alone"),
)
#: Queues a dead delivery again, with a new count of attempts.
REVIVE = _DELIVERIES.update(
    _one,
    _dead,
    position=bind("new_position"),
    status="queued",
    run_id=sa.null(),
    attempt=1,
    faults=0,
    alone_run_id=sa.null(),
    ended_at=sa.null(),
    ended_why=sa.null(),
)
#: Cancels a dead delivery.
DISCARD = _DELIVERIES.update(_one, _dead, status="cancelled", ended_at=bind("now"))
#: The deliveries that a run holds.
LEASED_TO = _DELIVERIES.find(_leased, run_id="run", order=())
#: Whether a letter that a run took up was given up when the run failed.
GIVEN_UP_BY = _DELIVERIES.any(
    sa.or_(
        deliveries.c.status == sa.literal_column("'dead'"),
        deliveries.c.ended_why == sa.literal_column(f"'{TRIED_ONCE}'"),
    ),
    run_id="run",
)
#: Deferred mail of a company that has come due, earliest first.
DUE = _DELIVERIES.find(
    _deferred,
    deliveries.c.deliver_at <= bind("now"),
    company_id="company",
    order=_by_time,
    limit=bind("limit"),
)
#: Deferred mail for one receiver that has come due, earliest first.
DUE_FOR = _DELIVERIES.find(
    _deferred, deliveries.c.deliver_at <= bind("now"), _receiver == bind("receiver"), order=_by_time
)
#: The companies with deferred mail that has come due.
COMPANIES_DUE = Statement(
    sa.select(deliveries.c.company_id)
    .where(_deferred, deliveries.c.deliver_at <= bind("now"))
    .distinct(),
    scalar,
)
#: Queues a deferred delivery whose time has come.
ARRIVE = _DELIVERIES.update(_one, _deferred, position=bind("new_position"), status="queued")
#: The earliest time of a deferred delivery.
NEXT_DUE = Statement(sa.select(sa.func.min(deliveries.c.deliver_at)).where(_deferred), scalar)
#: The company's dead deliveries, newest first.
DEAD = _DELIVERIES.find(
    _dead, company_id="company", order=[deliveries.c.id.desc()], limit=bind("limit")
)
#: Dead deliveries that can be retried: the receiver exists, and the message broke no run.
DEAD_BY_OTHERS = _DELIVERIES.find(
    _dead,
    deliveries.c.ended_why.not_in([bind("gone"), bind("broke"), bind("unreadable")]),
    agents.c.status != sa.literal_column("'terminated'"),
    company_id="company",
    join=(agents, agents.c.id == deliveries.c.agent_id),
)
#: Deferred deliveries of what an agent sent, by time.
DEFERRED_BY = _DELIVERIES.find(
    messages.c.sender_agent_id == bind("agent"),
    _deferred,
    join=_its_message,
    order=[deliveries.c.deliver_at],
    limit=bind("limit"),
)
_below = sa.select(BELOW_AGENT.c.id)
#: Deferred deliveries of mail that an agent or those below it sent, earliest first.
DEFERRED_BELOW = _DELIVERIES.find(
    messages.c.sender_agent_id.in_(_below),
    _deferred,
    join=_its_message,
    order=_by_time,
    limit=bind("limit"),
)
#: Dead deliveries of an agent and those below it.
DEAD_BELOW = _DELIVERIES.find(
    deliveries.c.agent_id.in_(_below), _dead, company_id="company", limit=bind("limit")
)
#: The board's members, each with the agent at the top of their part; None is the whole company.
BOARD = Statement(
    sa.select(memberships.c.user_id, memberships.c.scope_agent_id)
    .where(
        memberships.c.company_id == bind("company"),
        memberships.c.role == sa.literal_column("'board'"),
    )
    .order_by(memberships.c.user_id),
    lambda user, scope: (user, scope),
)

# Schedules

_SCHEDULES = Rows(Schedule)
#: One schedule by id, of any company.
SCHEDULE_ANYWHERE = _SCHEDULES.one(id="schedule")
#: A page of schedules: of one agent or of all, ended ones too or not.
SCHEDULES = _SCHEDULES.listed(schedules.c.next_at.is_not(None))
_active = schedules.c.status == sa.literal_column("'active'")
#: Schedules of a stopped agent wait; they are sent once when the agent goes on.
_goes_on = sa.not_(stopped(schedules))
_due = sa.and_(_active, schedules.c.next_at <= bind("now"), _goes_on)
#: Active schedules of an agent and those below it.
SCHEDULES_BELOW = _SCHEDULES.find(schedules.c.agent_id.in_(_below), _active, limit=bind("limit"))
#: The company's schedules whose time has come, earliest first.
SCHEDULES_DUE = _SCHEDULES.find(
    _due, company_id="company", order=[schedules.c.next_at, schedules.c.id], limit=bind("limit")
)
#: The companies that have a schedule whose time has come.
COMPANIES_WITH_SCHEDULES_DUE = Statement(
    sa.select(schedules.c.company_id).where(_due).distinct(), scalar
)
#: The company's schedules whose ids lie between two.
SCHEDULES_BY_PREFIX = _SCHEDULES.between(company_id="company", limit=MOST_MATCHES, order=None)
#: The active schedules of an agent, which end with it.
ACTIVE_SCHEDULES_OF = _SCHEDULES.find(_active, agent_id="agent", order=())
#: Resumes a cancelled schedule, because its agent was reinstated.
GO_ON_WITH_SCHEDULE = _SCHEDULES.update(
    schedules.c.id == bind("schedule"),
    schedules.c.agent_id == bind("agent"),
    schedules.c.status == sa.literal_column("'cancelled'"),
    status="active",
    next_at=bind("new_next"),
)
#: Cancels all active schedules of an agent.
CANCEL_SCHEDULES_OF = _SCHEDULES.update(
    schedules.c.agent_id == bind("agent"), _active, status="cancelled", next_at=sa.null()
)
#: The earliest time of an active schedule whose agent is not stopped.
NEXT_SCHEDULE = Statement(
    sa.select(schedules.c.next_at).where(_active, _goes_on).order_by(schedules.c.next_at).limit(1),
    scalar,
)
#: Stores the status, next time and last time of an active schedule.
MOVE_SCHEDULE = _SCHEDULES.update(
    schedules.c.id == bind("schedule"), _active, **new("status", "next_at", "last_at")
)

# Questions

_QUESTIONS = Rows(Question)
#: One question by id, of any company.
QUESTION_ANYWHERE = _QUESTIONS.one(id="question")
#: A page of questions: of one agent or of all, ended ones too or not.
QUESTIONS = _QUESTIONS.listed(questions.c.ended_at.is_(None))
#: The company's questions whose ids lie between two.
QUESTIONS_BY_PREFIX = _QUESTIONS.between(company_id="company", limit=MOST_MATCHES, order=None)
_open = questions.c.status == sa.literal_column("'open'")
#: Open questions of an agent and those below it.
QUESTIONS_BELOW = _QUESTIONS.find(
    questions.c.agent_id.in_(_below), _open, company_id="company", limit=bind("limit")
)
#: The messages that carry an agent's open questions.
LETTERS_OF_QUESTIONS_OF = _MESSAGES.find(
    messages.c.question_id.in_(
        sa.select(questions.c.id).where(
            questions.c.company_id == bind("company"), questions.c.agent_id == bind("agent"), _open
        )
    )
)
#: Cancels all open questions of an agent.
CANCEL_QUESTIONS_OF = _QUESTIONS.update(
    questions.c.company_id == bind("company"),
    questions.c.agent_id == bind("agent"),
    _open,
    status="cancelled",
    answered_by=bind("by"),
    ended_at=bind("now"),
)
#: Reopens a cancelled question, because its asker was reinstated.
ASK_AGAIN = _QUESTIONS.update(
    questions.c.id == bind("question"),
    questions.c.agent_id == bind("agent"),
    questions.c.status == sa.literal_column("'cancelled'"),
    status="open",
    answered_by=sa.null(),
    ended_at=sa.null(),
)
#: Passes an open question on to another agent; NULL means to the board.
PASS_ON = _QUESTIONS.update(
    questions.c.id == bind("question"), _open, to_agent_id=bind("new_agent")
)
#: The company's open questions to the board.
OPEN_FOR_BOARD = _QUESTIONS.find(
    _open, questions.c.to_agent_id.is_(None), company_id="company", limit=bind("limit")
)
#: Ends an open question, with its answer if there is one.
END_QUESTION = _QUESTIONS.update(
    questions.c.id == bind("question"),
    _open,
    **new("status", "answer"),
    answered_by=bind("by"),
    ended_at=bind("now"),
)
