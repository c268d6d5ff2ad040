"""Mail, questions and schedules in an export: writing, reading, and how they fit together.

All people are one, as everywhere in an export: a message to several of them is one to `person`, and
awaits the importer if it awaited any of them.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

from remit.errors import BadInput
from remit.ids import AgentId
from remit.model.messaging.chat import LONGEST_LABEL
from remit.model.messaging.mail import (
    LONGEST_SUBJECT,
    MOST_ATTEMPTS,
    TRIED_ONCE,
    AddressKind,
    Delivery,
    DeliveryStatus,
    Message,
    parse_address,
)
from remit.model.messaging.question import LONGEST_QUESTION, MOST_OPTIONS, Question, QuestionStatus
from remit.model.messaging.schedule import Schedule, ScheduleStatus, next_time, zone
from remit.model.organisation.grant import parse_level, parse_resource
from remit.model.organisation.principal import ActorKind
from remit.model.text import clean_line
from remit.model.work.outcome import OutcomeKind, OutcomeStatus
from remit.services.archive import layout
from remit.services.archive.fields import PERSON, Fields
from remit.services.archive.layout import outcome_path
from remit.services.archive.plan import Plan, in_order, known
from remit.services.archive.records import (
    FLAG,
    ID,
    IDS,
    Author,
    Entry,
    Kind,
    Record,
    line,
    number,
    prose,
    raw,
)
from remit.services.messaging.schedules import LONGEST_BODY
from remit.services.shape_basics import JsonObject

_LAST_POSITION = 2**62


def _without_person(address: str) -> str:
    return PERSON if parse_address(address).kind is AddressKind.USER else address


def _read_address(fields: Fields, key: str) -> str:
    written = fields.get(key)
    if written == PERSON:
        return f"user:{fields.importer}"
    if fields.clean(key, parse_address).kind is AddressKind.USER:
        raise fields.wrong(key, "names a person, who is not part of an export")
    return str(written)


def _read_channel(fields: Fields, key: str) -> str:
    """Read the outside address that a message came from."""
    if fields.clean(key, parse_address).kind is not AddressKind.CHANNEL:
        raise fields.wrong(key, "is not the address of a channel")
    return str(fields.get(key))


def _read_request(fields: Fields, key: str) -> str:
    request_fields = fields.inner(key, fields.get(key))
    resource = request_fields.clean("resource", parse_resource)
    if str(resource) != request_fields.get("resource"):
        raise request_fields.wrong("resource", "is not written as Remit writes it")
    request_fields.clean("level", lambda text: parse_level(text, resource.kind))
    request = {
        "agent": request_fields.id("agent"),
        "resource": str(resource),
        "level": request_fields.get("level"),
    }
    if request_fields.get("grant") is not None:
        request["grant"] = request_fields.id("grant")  # which may have been revoked since
    request_fields.done()
    return json.dumps(request)


def _read_options(fields: Fields, key: str) -> str:
    written = fields.texts(key)
    if len(written) > MOST_OPTIONS:
        raise fields.wrong(key, f"must be at most {MOST_OPTIONS}")
    options = fields.clean(
        key, lambda all_: [clean_line(option, "option", longest=200) for option in all_ or ()]
    )
    if options != written:
        raise fields.wrong(key, "have blanks or characters that Remit does not keep")
    return json.dumps(options)


def _read_asked(fields: Fields, key: str) -> AgentId | None:
    if fields.get(key) == "board":
        return None
    agent = fields.author(key)[0]
    if agent is None:
        raise fields.wrong(key, "must be board or agent:ID")
    return agent


def _read_answered_by(fields: Fields, key: str) -> str | None:
    agent, user = fields.author(key)
    return f"agent:{agent}" if agent else f"user:{user}" if user else None


def _read_timezone(fields: Fields, key: str) -> str:
    fields.clean(key, zone)
    return fields.text(key, 60)


def _read_cron(fields: Fields, key: str) -> str:
    timezone, created_at = _read_timezone(fields, "timezone"), fields.time("created_at")
    fields.clean(key, lambda text: next_time(text, timezone, created_at))
    return fields.text(key, 100)


_ADDRESS = Kind(_without_person, _read_address)
_SUBJECT = line(LONGEST_SUBJECT, empty=True)

MESSAGE = Record(
    Message,
    *("id", "thread=thread_id", "reply_to"),
    Author("from", "sender_agent_id", "sender_user_id"),
    "from_board",
    Entry("to", _ADDRESS, "address"),
    Entry("subject", _SUBJECT),
    *("body=body_file_id", "body_version"),
    Entry("attachments", IDS),
    Entry("hops", number(least=0)),
    *("at_most_once", "question=question_id"),
    Entry("request", Kind(json.loads, _read_request), default=None),
    Entry("background", FLAG, default=False, sparse=True),
    Entry("channel", Kind(str, _read_channel), default=None, sparse=True),
    Entry("outside_sender", line(LONGEST_LABEL), default=None, sparse=True),
    Entry("to_know", FLAG, default=False, sparse=True),
    Entry("outcome", ID, "outcome_id", default=None, sparse=True),
    "created_at",
)
DELIVERY = Record(
    Delivery,
    Author("to", "agent_id", "user_id", required=True),
    *("status", "deliver_at"),
    Entry("position", number(most=_LAST_POSITION), default=None),
    Entry("attempt", number(most=MOST_ATTEMPTS)),
    Entry("begun", FLAG, default=False, sparse=True),
    "ended_at",
    Entry("ended_why", line(200), default=None),
)
QUESTION = Record(
    Question,
    *("id", "agent=agent_id"),
    Entry(
        "to",
        Kind(lambda agent: "board" if agent is None else f"agent:{agent}", _read_asked),
        "to_agent_id",
    ),
    Entry("text", prose(LONGEST_QUESTION)),
    Entry("options", Kind(json.loads, _read_options)),
    "status",
    Entry("answer", raw(LONGEST_QUESTION), default=None),
    Entry("ended_by", Kind(layout.author, _read_answered_by), "answered_by"),
    *("created_at", "ended_at"),
)
SCHEDULE = Record(
    Schedule,
    *("id", "agent=agent_id"),
    Entry("cron", Kind(str, _read_cron), default=None),
    Entry("timezone", Kind(str, _read_timezone)),
    Entry("to", _ADDRESS, "address"),
    Entry("subject", _SUBJECT),
    Entry("body", prose(LONGEST_BODY)),
    *("status", "next_at", "last_at", "created_at"),
)


def message(value: Message, deliveries: Sequence[Delivery]) -> JsonObject:
    travelling = [_without_run(value, delivery) for delivery in _one_for_people(deliveries)]
    return MESSAGE.write(value, deliveries=[DELIVERY.write(delivery) for delivery in travelling])


def _one_for_people(deliveries: Sequence[Delivery]) -> Iterator[Delivery]:
    to_people = [personal for personal in deliveries if personal.user_id is not None]
    waits_most = min(
        to_people, key=lambda personal: (personal.ended_at is not None, personal.id), default=None
    )
    for delivery in deliveries:
        if delivery.user_id is None or delivery is waits_most:
            yield delivery


def _without_run(message: Message, value: Delivery) -> Delivery:
    """A delivery without the run that took it up, which is not exported."""
    if value.status is not DeliveryStatus.LEASED:
        return value
    if message.at_most_once:
        end = value.deliver_at
        return replace(value, status=DeliveryStatus.DONE, ended_at=end, ended_why=TRIED_ONCE)
    # The run may have handled it, so the next run is told.
    return replace(value, status=DeliveryStatus.QUEUED, begun=True)


def _read_message(plan: Plan, fields: Fields) -> None:
    agent, user = fields.author("from")
    kind = ActorKind.AGENT if agent else ActorKind.USER if user else ActorKind.SYSTEM
    deliveries = fields.tables("deliveries")
    read = MESSAGE.read(fields, company_id=plan.company.id, sender_kind=kind)
    if read.from_board and user is None:
        raise fields.wrong("from_board", "is true and no person wrote it")
    if read.background and kind is not ActorKind.SYSTEM:
        raise fields.wrong("background", "is true and somebody wrote it")
    if read.to_know and kind is not ActorKind.SYSTEM:
        raise fields.wrong("to_know", "is true and somebody wrote it")
    if read.channel is not None and (read.background or kind is ActorKind.AGENT):
        raise fields.wrong("channel", "is given and somebody here wrote it")
    plan.deliveries += [
        _read_delivery(plan, read, delivery_fields) for delivery_fields in deliveries
    ]
    plan.add(plan.messages, read.id, read, fields.path)


def _read_delivery(plan: Plan, message: Message, fields: Fields) -> Delivery:
    read = DELIVERY.read(fields, id=0, company_id=plan.company.id, message_id=message.id)
    if read.status is DeliveryStatus.LEASED:
        read = replace(read, status=DeliveryStatus.QUEUED)
    if read.position is None and read.status not in (
        DeliveryStatus.DEFERRED,
        DeliveryStatus.CANCELLED,
    ):
        raise fields.wrong("position", "is missing")
    if read.position is not None and read.status is DeliveryStatus.DEFERRED:
        raise fields.wrong("position", "is given when a message becomes visible")
    waits = read.status in (DeliveryStatus.DEFERRED, DeliveryStatus.QUEUED)
    if waits != (read.ended_at is None):
        raise fields.wrong("ended_at", "belongs to what is done, dead or cancelled, and only there")
    return read


def _read_question(plan: Plan, fields: Fields) -> None:
    read = QUESTION.read(fields, company_id=plan.company.id)
    if (read.status is QuestionStatus.OPEN) != (read.ended_at is None):
        raise fields.wrong("ended_at", "belongs to what was answered or cancelled, and only there")
    if (read.status is QuestionStatus.ANSWERED) != (read.answer is not None):
        raise fields.wrong("answer", "belongs to what was answered, and only there")
    plan.add(plan.questions, read.id, read, fields.path)


def _read_schedule(plan: Plan, fields: Fields) -> None:
    read = SCHEDULE.read(fields, company_id=plan.company.id)
    if (read.status is ScheduleStatus.ACTIVE) != (read.next_at is not None):
        raise fields.wrong("next_at", "belongs to what is active, and only there")
    plan.add(plan.schedules, read.id, read, fields.path)


#: Readers of one line, by file.
READERS = {
    layout.QUESTIONS: _read_question,
    layout.MAIL: _read_message,
    layout.SCHEDULES: _read_schedule,
}


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
    above = {message.id: filter(None, [message.reply_to]) for message in plan.messages.values()}
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
