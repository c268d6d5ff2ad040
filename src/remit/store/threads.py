"""Statements for looking at mail: inboxes as they are shown, and what was sent."""

from __future__ import annotations

from sqlalchemy import Boolean, and_, exists, literal_column, or_, select, true
from sqlalchemy import bindparam as bind

from remit.model.mail import Delivery, Message
from remit.store.statement import Statement, columns, into
from remit.store.tables import deliveries, memberships, messages

_delivery = columns(deliveries, Delivery)
#: Constants are written out so that the partial indexes are seen to match.
_queued = deliveries.c.status == literal_column("'queued'")
_waiting = deliveries.c.status.in_([literal_column("'queued'"), literal_column("'leased'")])

#: A person's mail where they still have a part, company by company, each in the order it came.
INBOX_OF_USER = Statement(
    select(*_delivery)
    .join(
        memberships,
        and_(
            memberships.c.company_id == deliveries.c.company_id,
            memberships.c.user_id == deliveries.c.user_id,
        ),
    )
    .where(
        deliveries.c.user_id == bind("user"),
        or_(bind("everything", type_=Boolean) == true(), _queued),
        or_(
            bind("any_company", type_=Boolean) == true(),
            deliveries.c.company_id == bind("only_company"),
        ),
        or_(
            deliveries.c.company_id > bind("company"),
            and_(
                deliveries.c.company_id == bind("company"),
                deliveries.c.position > bind("position"),
            ),
        ),
        deliveries.c.position.is_not(None),
    )
    .order_by(deliveries.c.company_id, deliveries.c.position)
    .limit(bind("limit")),
    into(Delivery),
)
#: All that ever came for an agent, in the order it came.
EVERYTHING_FOR_AGENT = Statement(
    select(*_delivery)
    .where(deliveries.c.agent_id == bind("agent"), deliveries.c.position > bind("position"))
    .order_by(deliveries.c.position)
    .limit(bind("limit")),
    into(Delivery),
)
UNREAD_BY_AGENT = Statement(
    select(*_delivery)
    .where(
        deliveries.c.agent_id == bind("agent"),
        _waiting,
        deliveries.c.position > bind("position"),
    )
    .order_by(deliveries.c.position)
    .limit(bind("limit")),
    into(Delivery),
)

#: What an agent sent, or has received by now, newest first.
MESSAGES_WITH_AGENT = Statement(
    select(*columns(messages, Message))
    .where(
        messages.c.company_id == bind("company"),
        messages.c.id < bind("before"),
        or_(
            messages.c.sender_agent_id == bind("agent"),
            exists().where(
                deliveries.c.message_id == messages.c.id,
                deliveries.c.agent_id == bind("agent"),
                deliveries.c.position.is_not(None),
            ),
        ),
    )
    .order_by(messages.c.id.desc())
    .limit(bind("limit")),
    into(Message),
)
