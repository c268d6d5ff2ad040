"""Statements for reading mail: inboxes as they are shown, and sent messages."""

from sqlalchemy import and_, exists, literal_column, or_
from sqlalchemy import bindparam as bind

from remit.model.messaging.mail import Delivery, Message
from remit.store.engine.statement import Rows, unless
from remit.store.tables import deliveries, memberships, messages

_MESSAGES = Rows(Message)
_DELIVERIES = Rows(Delivery)
#: Constants are written out, so that the planner uses the partial indexes.
_queued = deliveries.c.status == literal_column("'queued'")
_waiting = deliveries.c.status.in_([literal_column("'queued'"), literal_column("'leased'")])

#: A person's mail in the companies of which they are members, by company and then by position.
INBOX_OF_USER = _DELIVERIES.find(
    unless("everything", _queued),
    unless("any_company", deliveries.c.company_id == bind("only_company")),
    or_(
        deliveries.c.company_id > bind("company"),
        and_(deliveries.c.company_id == bind("company"), deliveries.c.position > bind("position")),
    ),
    deliveries.c.position.is_not(None),
    user_id="user",
    join=(
        memberships,
        and_(
            memberships.c.company_id == deliveries.c.company_id,
            memberships.c.user_id == deliveries.c.user_id,
        ),
    ),
    order=[deliveries.c.company_id, deliveries.c.position],
    limit=bind("limit"),
)
#: A person's mail in one company, the newest first.
NEWEST_OF_USER = _DELIVERIES.find(
    unless("everything", _queued),
    deliveries.c.position < bind("position"),
    user_id="user",
    company_id="company",
    order=[deliveries.c.position.desc()],
    limit=bind("limit"),
)
#: All mail that an agent ever received, in the order of its queue.
EVERYTHING_FOR_AGENT = _DELIVERIES.find(
    deliveries.c.position > bind("position"),
    agent_id="agent",
    order=[deliveries.c.position],
    limit=bind("limit"),
)
#: Deliveries that wait for an agent or are with its run, in the order of its queue.
UNREAD_BY_AGENT = _DELIVERIES.find(
    _waiting,
    deliveries.c.position > bind("position"),
    agent_id="agent",
    order=[deliveries.c.position],
    limit=bind("limit"),
)

#: Messages that an agent sent, or has received by now, newest first.
MESSAGES_WITH_AGENT = _MESSAGES.before(
    or_(
        messages.c.sender_agent_id == bind("agent"),
        exists().where(
            deliveries.c.message_id == messages.c.id,
            deliveries.c.agent_id == bind("agent"),
            deliveries.c.position.is_not(None),
        ),
    ),
    company_id="company",
)
