"""Statements about bindings, and about what goes out and comes in through channels."""

from __future__ import annotations

from sqlalchemy import (
    Boolean,
    and_,
    delete,
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

from remit.model.channel import Binding, ChannelDelivery, Receipt
from remit.store.agents import BELOW_AGENT
from remit.store.halts import stopped
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import agent_bindings, channel_deliveries, channel_receipts

# Bindings

_binding = columns(agent_bindings, Binding)
_there = agent_bindings.c.removed_at.is_(None)

INSERT_BINDING = change(insert(agent_bindings))
#: What an agent is bound to, of one kind.
BOUND = Statement(
    select(*_binding).where(
        agent_bindings.c.agent_id == bind("agent"),
        agent_bindings.c.adapter_type == bind("kind"),
        _there,
    ),
    into(Binding),
)
BOUND_BY_TOKEN = Statement(
    select(*_binding).where(
        agent_bindings.c.adapter_type == bind("kind"),
        agent_bindings.c.adapter_token == bind("digest"),
        _there,
    ),
    into(Binding),
)
BINDING = Statement(
    select(*_binding).where(
        agent_bindings.c.company_id == bind("company"),
        agent_bindings.c.id == bind("binding"),
        _there,
    ),
    into(Binding),
)
BINDINGS = Statement(
    select(*_binding)
    .where(
        agent_bindings.c.company_id == bind("company"),
        agent_bindings.c.id > bind("after"),
        or_(bind("any_agent", type_=Boolean) == true(), agent_bindings.c.agent_id == bind("agent")),
        _there,
    )
    .order_by(agent_bindings.c.id)
    .limit(bind("limit")),
    into(Binding),
)
CONFIGURE_BINDING = change(
    update(agent_bindings)
    .where(agent_bindings.c.id == bind("binding"), _there)
    .values(adapter_config=bind("new_config"))
)
REMOVE_BINDING = change(
    update(agent_bindings)
    .where(agent_bindings.c.id == bind("binding"), _there)
    .values(removed_at=bind("now"))
)
BINDING_EVER = Statement(
    select(*_binding).where(agent_bindings.c.id == bind("binding")), into(Binding)
)
#: Its agent works again.
BIND_AGAIN = change(
    update(agent_bindings).where(agent_bindings.c.id == bind("binding")).values(removed_at=null())
)
#: When an agent is purged: also what is known of those that were removed.
_its = select(agent_bindings.c.id).where(agent_bindings.c.agent_id == bind("agent"))
FORGET_RECEIPTS = change(delete(channel_receipts).where(channel_receipts.c.binding_id.in_(_its)))
FORGET_BINDINGS = change(delete(agent_bindings).where(agent_bindings.c.agent_id == bind("agent")))

# What goes out

_delivery = columns(channel_deliveries, ChannelDelivery)
#: Constants are written out so that the partial indexes are seen to match.
_status = channel_deliveries.c.status
_unfinished = _status.in_([literal_column("'queued'"), literal_column("'leased'")])
_queued = _status == literal_column("'queued'")
_leased = _status == literal_column("'leased'")
_dead = _status == literal_column("'dead'")
_one = channel_deliveries.c.message_id == bind("message")
_held = and_(_one, _leased, channel_deliveries.c.epoch == bind("epoch"))

INSERT_DELIVERY = change(insert(channel_deliveries))
DELIVERY = Statement(select(*_delivery).where(_one), into(ChannelDelivery))
COUNT_UNFINISHED = Statement(
    select(func.count()).where(channel_deliveries.c.agent_id == bind("agent"), _unfinished), scalar
)
UNFINISHED_OF = Statement(
    select(*_delivery)
    .where(
        channel_deliveries.c.agent_id == bind("agent"),
        channel_deliveries.c.adapter_type == bind("kind"),
        _unfinished,
    )
    .order_by(channel_deliveries.c.message_id),
    into(ChannelDelivery),
)
_earlier = channel_deliveries.alias("earlier")
#: What was said before goes out before, to the same place; what waits for its time holds up nobody.
_in_turn = ~(
    select(_earlier.c.message_id)
    .where(
        _earlier.c.agent_id == channel_deliveries.c.agent_id,
        _earlier.c.adapter_type == channel_deliveries.c.adapter_type,
        _earlier.c.address == channel_deliveries.c.address,
        _earlier.c.status.in_([literal_column("'queued'"), literal_column("'leased'")]),
        _earlier.c.message_id < channel_deliveries.c.message_id,
        _earlier.c.deliver_at <= bind("now"),
    )
    .exists()
)
READY = Statement(
    select(*_delivery)
    .where(
        _queued,
        channel_deliveries.c.next_at <= bind("now"),
        _in_turn,
        not_(stopped(channel_deliveries)),
    )
    .order_by(channel_deliveries.c.next_at, channel_deliveries.c.message_id)
    .limit(bind("limit")),
    into(ChannelDelivery),
)
NEXT_DUE = Statement(
    select(func.min(channel_deliveries.c.next_at)).where(
        _queued, channel_deliveries.c.next_at > bind("now")
    ),
    scalar,
)
CLAIM = change(
    update(channel_deliveries)
    .where(_one, _queued, channel_deliveries.c.next_at <= bind("now"))
    .values(
        status="leased",
        worker=bind("new_worker"),
        epoch=channel_deliveries.c.epoch + 1,
        attempt=channel_deliveries.c.attempt + 1,
        lease_until=bind("until"),
    )
)
LEASED = Statement(select(*_delivery).where(_leased), into(ChannelDelivery))
EXPIRED = Statement(
    select(*_delivery)
    .where(_leased, channel_deliveries.c.lease_until <= bind("now"))
    .order_by(channel_deliveries.c.message_id)
    .limit(bind("limit")),
    into(ChannelDelivery),
)
RETRY = change(
    update(channel_deliveries)
    .where(_held)
    .values(
        status="queued",
        worker=null(),
        lease_until=null(),
        next_at=bind("new_next"),
        ended_why=bind("why"),
    )
)
#: Its process is being stopped before anything was sent, which is no fault of the message.
PUT_BACK = change(
    update(channel_deliveries)
    .where(_held)
    .values(
        status="queued",
        worker=null(),
        lease_until=null(),
        attempt=channel_deliveries.c.attempt - 1,
    )
)
_end = {
    "status": bind("new_status"),
    "lease_until": null(),
    "ended_at": bind("now"),
    "ended_why": bind("why"),
}
#: By who holds it, and by nobody else.
END_HELD = change(update(channel_deliveries).where(_held).values(_end))
END = change(update(channel_deliveries).where(_one, _unfinished).values(_end))
REVIVE = change(
    update(channel_deliveries)
    .where(_one, _dead)
    .values(status="queued", attempt=0, next_at=bind("now"), ended_at=null(), ended_why=null())
)
DISCARD = change(
    update(channel_deliveries).where(_one, _dead).values(status="cancelled", ended_at=bind("now"))
)
DEAD = Statement(
    select(*_delivery)
    .where(channel_deliveries.c.company_id == bind("company"), _dead)
    .order_by(channel_deliveries.c.message_id.desc())
    .limit(bind("limit")),
    into(ChannelDelivery),
)
_below = channel_deliveries.c.agent_id.in_(select(BELOW_AGENT.c.id))
#: Of an agent and everybody below it, like the following.
DEAD_BELOW = Statement(
    select(*_delivery)
    .where(channel_deliveries.c.company_id == bind("company"), _below, _dead)
    .order_by(channel_deliveries.c.message_id)
    .limit(bind("limit")),
    into(ChannelDelivery),
)
DEFERRED_BELOW = Statement(
    select(*_delivery)
    .where(_below, _queued, channel_deliveries.c.deliver_at > bind("now"))
    .order_by(channel_deliveries.c.deliver_at, channel_deliveries.c.message_id)
    .limit(bind("limit")),
    into(ChannelDelivery),
)

# What came in

_receipt = columns(channel_receipts, Receipt)
INSERT_RECEIPT = change(insert(channel_receipts))
RECEIPT = Statement(
    select(*_receipt).where(
        channel_receipts.c.binding_id == bind("binding"),
        channel_receipts.c.outside_id == bind("outside_id"),
    ),
    into(Receipt),
)
#: As the outside calls a message that came from there.
OUTSIDE_ID = Statement(
    select(channel_receipts.c.outside_id).where(channel_receipts.c.message_id == bind("message")),
    scalar,
)
