"""Statements about what would start agents of a company."""

from typing import NamedTuple

from sqlalchemy import bindparam as bind
from sqlalchemy import func, literal, select

from remit.ids import AgentId, MessageId
from remit.store.engine.statement import Statement, counted
from remit.store.tables import agents, deliveries, messages, outcomes


class WaitingLetter(NamedTuple):
    agent_id: AgentId
    message_id: MessageId
    subject: str


#: Mail that waits for agents of a company, or will.
WAITING_MAIL = Statement(
    select(deliveries.c.agent_id, messages.c.id, messages.c.subject)
    .join(messages, messages.c.id == deliveries.c.message_id)
    .join(agents, agents.c.id == deliveries.c.agent_id)
    .where(
        deliveries.c.company_id == bind("company"),
        deliveries.c.status.in_([literal("queued"), literal("deferred"), literal("leased")]),
        agents.c.adapter_type != literal("human"),
    )
    .order_by(messages.c.id, deliveries.c.id),
    WaitingLetter,
)
#: How many open outcomes each agent of a company has.
OPEN_OUTCOMES = Statement(
    select(outcomes.c.owner_id, func.count())
    .where(outcomes.c.company_id == bind("company"), outcomes.c.status == literal("open"))
    .group_by(outcomes.c.owner_id)
    .order_by(outcomes.c.owner_id),
    counted,
)
