"""Consistency checks of the mail of an export, in itself and with its company."""

import json

from remit.errors import BadInput
from remit.ids import AgentId, MessageId
from remit.model.messaging.mail import AddressKind, DeliveryStatus, Message, parse_address
from remit.model.work.outcome import OutcomeKind, OutcomeStatus
from remit.services.archive.layout import outcome_path
from remit.services.archive.plan import Plan
from remit.services.archive.references import in_order, known


def check(plan: Plan) -> None:
    for message in plan.messages.values():
        _check_message(plan, message)
    if len(answered_first(plan)) != len(plan.messages):
        raise BadInput("mail.jsonl: some messages answer each other.")
    _check_deliveries(plan)
    _check_inboxes(plan)
    for question in plan.questions.values():
        where = plan.where[question.id]
        known(question.agent_id, plan.agents, where, "agent")
        known(question.to_agent_id, plan.agents, where, "to")
        if question.answered_by is not None and question.answered_by.startswith("agent:"):
            by = question.answered_by.removeprefix("agent:")
            known(by, plan.agents, where, "ended_by")
    for schedule in plan.schedules.values():
        known(schedule.agent_id, plan.agents, plan.where[schedule.id], "agent")


def answered_first(plan: Plan) -> list[Message]:
    above: dict[MessageId, list[MessageId]] = {
        message.id: [message.reply_to] if message.reply_to else []
        for message in plan.messages.values()
    }
    return [plan.messages[message_id] for message_id in in_order(above)]


def _check_message(plan: Plan, message: Message) -> None:
    where = plan.where[message.id]
    known(message.sender_agent_id, plan.agents, where, "from")
    address = parse_address(message.address)
    if address.kind is AddressKind.AGENT:
        known(address.who, plan.agents, where, "to")
    known(message.body_file_id, plan.files, where, "body")
    if message.body_version > plan.files[message.body_file_id].file.version:
        raise BadInput(f"{where}: body_version {message.body_version} is not here.")
    for file in json.loads(message.attachments):
        known(file, plan.files, where, "an attachment")
    known(message.thread_id, plan.messages, where, "thread")
    known(message.reply_to, plan.messages, where, "reply_to")
    before = message if message.reply_to is None else plan.messages[message.reply_to]
    if before.thread_id != message.thread_id:
        raise BadInput(f"{where}: is in another thread than what it answers.")
    known(message.question_id, plan.questions, where, "question")
    if message.request is not None:
        known(json.loads(message.request)["agent"], plan.agents, where, "request, agent")


def _check_deliveries(plan: Plan) -> None:
    reached: set[tuple[str, str]] = set()
    positions: set[int] = set()
    for delivery in plan.deliveries:
        where = plan.where[delivery.message_id]
        known(delivery.agent_id, plan.agents, where, "a receiver")
        receiver = (delivery.message_id, delivery.agent_id or "")
        if receiver in reached:
            raise BadInput(f"{where}: reaches somebody twice.")
        reached.add(receiver)
        if delivery.position is not None:
            if delivery.position in positions:
                raise BadInput(f"{where}: position {delivery.position} is given twice.")
            positions.add(delivery.position)


def _check_inboxes(plan: Plan) -> None:
    """Check that an agent's inbox is open exactly while mail waits for it."""
    waits = {
        delivery.agent_id
        for delivery in plan.deliveries
        if delivery.status is DeliveryStatus.QUEUED
    }
    inboxes: set[AgentId] = set()
    for outcome in plan.outcomes.values():
        if outcome.kind is not OutcomeKind.INBOX:
            continue
        where = outcome_path(outcome.id)
        if outcome.owner_id in inboxes:
            raise BadInput(f"{where}: its owner has another inbox.")
        if outcome.delegated or outcome.perpetual:
            raise BadInput(f"{where}: an inbox is neither delegated nor perpetual.")
        if (outcome.status is OutcomeStatus.OPEN) != (outcome.owner_id in waits):
            raise BadInput(f"{where}: an inbox is open exactly while mail waits for its owner.")
        inboxes.add(outcome.owner_id)
    for agent in plan.agents.values():
        if agent.id in waits - inboxes:
            raise BadInput(f"{plan.where[agent.id]}: mail waits for it, and it has no inbox.")
