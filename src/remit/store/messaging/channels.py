"""Statements about bindings, and about outgoing and incoming messages of channels."""

from sqlalchemy import and_, delete, false, literal_column, not_, null, select
from sqlalchemy import bindparam as bind

from remit.model.messaging.channel import Binding, ChannelDelivery, Receipt
from remit.store.engine.statement import Rows, change, if_asked
from remit.store.organisation.agents import BELOW_AGENT
from remit.store.organisation.halts import stopped
from remit.store.queues import StatusQueue
from remit.store.tables import agent_bindings, channel_deliveries, channel_receipts, messages

# Bindings

_BINDINGS = Rows(Binding)
_there = agent_bindings.c.removed_at.is_(None)
_speaks = and_(_there, agent_bindings.c.held.is_(false()))
_one = agent_bindings.c.id == bind("binding")

#: The active binding of an agent to one kind of channel.
BOUND = _BINDINGS.one(_speaks, agent_id="agent", adapter_type="kind")
#: The binding of an agent to one kind of channel, also one that is held until it has its secret.
BINDING_OF = _BINDINGS.one(_there, agent_id="agent", adapter_type="kind")
#: The binding of a kind of channel with this token.
BOUND_BY_TOKEN = _BINDINGS.one(
    _speaks, agent_bindings.c.adapter_token == bind("digest"), adapter_type="kind"
)
#: One binding of a company.
BINDING = _BINDINGS.one(_one, _there, company_id="company")
#: A page of the bindings of a company, or of one agent in it.
BINDINGS = _BINDINGS.after(
    _there, if_asked(agent_bindings.c.agent_id, "agent"), company_id="company"
)
#: The bindings of a company to one kind of channel.
BOUND_TO_KIND = _BINDINGS.find(_speaks, company_id="company", adapter_type="kind")
#: Sets another configuration of a binding.
CONFIGURE_BINDING = _BINDINGS.update(_one, _there, adapter_config=bind("new_config"))
#: Replaces the token of a binding.
REPLACE_TOKEN = _BINDINGS.update(_one, _there, adapter_token=bind("new_token"))
#: Removes a binding.
REMOVE_BINDING = _BINDINGS.update(_one, _there, removed_at=bind("now"))
#: A binding, also one that was removed.
BINDING_EVER = _BINDINGS.one(_one)
#: Restores a removed binding, because its agent was reinstated.
BIND_AGAIN = _BINDINGS.update(_one, removed_at=null())
_its = select(agent_bindings.c.id).where(agent_bindings.c.agent_id == bind("agent"))
#: Deletes the receipts of a purged agent's bindings.
FORGET_RECEIPTS = change(delete(channel_receipts).where(channel_receipts.c.binding_id.in_(_its)))
#: Deletes the bindings of a purged agent, also removed ones.
FORGET_BINDINGS = change(delete(agent_bindings).where(agent_bindings.c.agent_id == bind("agent")))

# Outgoing messages

_sent_at = (
    select(messages.c.created_at)
    .where(messages.c.id == channel_deliveries.c.message_id)
    .scalar_subquery()
)
QUEUE = StatusQueue(ChannelDelivery, "message", key="message_id", created=_sent_at)
_unfinished, _queued = QUEUE.unfinished, QUEUE.queued
_dead = channel_deliveries.c.status == literal_column("'dead'")

#: Whether a message of an agent has gone out to a kind of channel.
ANY_SENT = QUEUE.any(
    channel_deliveries.c.status == literal_column("'done'"), agent_id="agent", adapter_type="kind"
)
#: How many messages of an agent have not gone out.
COUNT_UNFINISHED = QUEUE.count(_unfinished, agent_id="agent")
#: Messages of an agent to a kind of channel that have not gone out.
UNFINISHED_OF = QUEUE.find(_unfinished, agent_id="agent", adapter_type="kind")
#: Messages to one address are sent in order; deferred ones block no others.
_in_turn = QUEUE.in_turn("agent_id", "adapter_type", "address", from_="deliver_at")
#: Messages that can go out now.
READY = QUEUE.find(
    _queued,
    QUEUE.is_due,
    _in_turn,
    not_(stopped(channel_deliveries)),
    order=[channel_deliveries.c.next_at, channel_deliveries.c.message_id],
    limit=bind("limit"),
)
#: Records the id that the chat system gave to a message.
TAKEN = QUEUE.update(QUEUE.by_holder, outside_id=bind("outside"))
#: Queues an undelivered message again.
REVIVE = QUEUE.change(
    _dead, status="queued", attempt=0, next_at=bind("now"), ended_at=null(), ended_why=null()
)
#: Gives up an undelivered message.
DISCARD = QUEUE.change(_dead, status="cancelled", ended_at=bind("now"))
#: Undelivered messages of a company, newest first.
DEAD = QUEUE.find(
    _dead, company_id="company", order=[channel_deliveries.c.message_id.desc()], limit=bind("limit")
)
_below = channel_deliveries.c.agent_id.in_(select(BELOW_AGENT.c.id))
#: Undelivered messages of an agent and everybody below it.
DEAD_BELOW = QUEUE.find(_below, _dead, company_id="company", limit=bind("limit"))
#: Deferred messages of an agent and everybody below it.
DEFERRED_BELOW = QUEUE.find(
    _below,
    _queued,
    channel_deliveries.c.deliver_at > bind("now"),
    order=[channel_deliveries.c.deliver_at, channel_deliveries.c.message_id],
    limit=bind("limit"),
)

# Incoming messages

_RECEIPTS = Rows(Receipt, "binding_id")
#: The receipt of an incoming message, which deduplicates it.
RECEIPT = _RECEIPTS.one(binding_id="binding", outside_id="outside_id")
#: Whether anything came in by a binding.
ANY_RECEIPT = _RECEIPTS.any(binding_id="binding")
#: The receipt of a message that came through a channel.
RECEIPT_OF = _RECEIPTS.one(message_id="message")
