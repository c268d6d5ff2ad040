"""Mail, questions and schedules in an export: how each is written down, and read again.

All people are one, as everywhere in an export: a message to several of them is one to `person`,
and awaits whoever imports the company if it awaited any of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from remit.clock import to_iso
from remit.ids import AgentId, FileId, MessageId, QuestionId, ScheduleId
from remit.model.grant import parse_level, parse_resource
from remit.model.mail import (
    LONGEST_SUBJECT,
    MOST_ATTEMPTS,
    AddressKind,
    Delivery,
    DeliveryStatus,
    Message,
    parse_address,
)
from remit.model.principal import ActorKind
from remit.model.question import LONGEST_QUESTION, MOST_OPTIONS, Question, QuestionStatus
from remit.model.schedule import Schedule, ScheduleStatus, next_time, zone
from remit.model.text import clean_line, clean_text
from remit.services.archive import layout
from remit.services.archive.fields import Fields
from remit.services.archive.folder import Folder
from remit.services.archive.plan import Plan
from remit.services.schedules import LONGEST_BODY

_LAST_POSITION = 2**62


def message(value: Message, deliveries: Sequence[Delivery]) -> dict[str, Any]:
    return {
        "id": value.id,
        "thread": value.thread_id,
        "reply_to": value.reply_to,
        "from": layout.by_whom(value.sender_agent_id, value.sender_user_id, {}),
        "from_board": value.from_board,
        "to": _without_person(value.address),
        "subject": value.subject,
        "body": value.body_file_id,
        "body_version": value.body_version,
        "attachments": json.loads(value.attachments),
        "hops": value.hops,
        "at_most_once": value.at_most_once,
        "question": value.question_id,
        "request": None if value.request is None else json.loads(value.request),
        **({"background": True} if value.background else {}),
        **({} if value.channel is None else {"channel": value.channel}),
        "created_at": to_iso(value.created_at),
        "deliveries": [_delivery(value, one) for one in _one_for_people(deliveries)],
    }


def question(value: Question) -> dict[str, Any]:
    return {
        "id": value.id,
        "agent": value.agent_id,
        "to": "board" if value.to_agent_id is None else f"agent:{value.to_agent_id}",
        "text": value.text,
        "options": json.loads(value.options),
        "status": value.status.value,
        "answer": value.answer,
        "ended_by": layout.author(value.answered_by),
        "created_at": to_iso(value.created_at),
        "ended_at": layout.time(value.ended_at),
    }


def schedule(value: Schedule) -> dict[str, Any]:
    return {
        "id": value.id,
        "agent": value.agent_id,
        "cron": value.cron,
        "timezone": value.timezone,
        "to": _without_person(value.address),
        "subject": value.subject,
        "body": value.body,
        "status": value.status.value,
        "next_at": layout.time(value.next_at),
        "last_at": layout.time(value.last_at),
        "created_at": to_iso(value.created_at),
    }


def read(plan: Plan, folder: Folder) -> None:
    """What the files say, each line by itself."""
    for where, row in folder.lines(layout.QUESTIONS):
        _read_question(plan, Fields(where, row))
    for where, row in folder.lines(layout.MAIL):
        _read_message(plan, Fields(where, row))
    for where, row in folder.lines(layout.SCHEDULES):
        _read_schedule(plan, Fields(where, row))


def _one_for_people(deliveries: Sequence[Delivery]) -> Iterator[Delivery]:
    to_people = [one for one in deliveries if one.user_id is not None]
    waits_most = min(to_people, key=lambda one: (one.ended_at is not None, one.id), default=None)
    for one in deliveries:
        if one.user_id is None or one is waits_most:
            yield one


def _delivery(message: Message, value: Delivery) -> dict[str, Any]:
    """As it is without the run that took it up, which stays where it runs."""
    status, begun = value.status, value.begun
    ended_at, why = value.ended_at, value.ended_why
    if status is DeliveryStatus.LEASED and message.at_most_once:
        status, ended_at, why = DeliveryStatus.DONE, value.deliver_at, "tried once, as asked"
    elif status is DeliveryStatus.LEASED:
        # The run may have handled it, so the next one is told.
        status, begun = DeliveryStatus.QUEUED, True
    return {
        "to": layout.by_whom(value.agent_id, value.user_id, {}),
        "status": status.value,
        "deliver_at": to_iso(value.deliver_at),
        "position": value.position,
        "attempt": value.attempt,
        **({"begun": True} if begun else {}),
        "ended_at": layout.time(ended_at),
        "ended_why": why,
    }


def _without_person(address: str) -> str:
    return layout.PERSON if parse_address(address).kind is AddressKind.USER else address


def _read_message(plan: Plan, fields: Fields) -> None:
    agent, user = fields.author("from", plan.importer)
    kind = ActorKind.AGENT if agent else ActorKind.USER if user else ActorKind.SYSTEM
    reply_to, asked = fields.maybe_id("reply_to"), fields.maybe_id("question")
    read = Message(
        id=MessageId(fields.id("id")),
        company_id=plan.company.id,
        thread_id=MessageId(fields.id("thread")),
        reply_to=None if reply_to is None else MessageId(reply_to),
        sender_kind=kind,
        sender_agent_id=agent,
        sender_user_id=user,
        sender_run_id=None,
        from_board=fields.flag("from_board"),
        address=_address(plan, fields),
        subject=_subject(fields),
        body_file_id=FileId(fields.id("body")),
        body_version=fields.number("body_version"),
        attachments=json.dumps(fields.ids("attachments")),
        hops=fields.number("hops", least=0),
        at_most_once=fields.flag("at_most_once"),
        question_id=None if asked is None else QuestionId(asked),
        request=_request(fields),
        background=fields.flag("background"),
        channel=_channel(fields),
        created_at=fields.time("created_at"),
    )
    if read.from_board and user is None:
        raise fields.wrong("from_board", "is true and no person wrote it")
    if read.background and kind is not ActorKind.SYSTEM:
        raise fields.wrong("background", "is true and somebody wrote it")
    if read.channel is not None and (read.background or kind is not ActorKind.SYSTEM):
        raise fields.wrong("channel", "is given and somebody here wrote it")
    for one in fields.tables("deliveries"):
        plan.deliveries.append(_read_delivery(plan, read, one))
    fields.done()
    plan.add(plan.messages, read.id, read, fields.path)


def _read_delivery(plan: Plan, message: Message, fields: Fields) -> Delivery:
    agent, user = fields.author("to", plan.importer)
    if agent is None and user is None:
        raise fields.wrong("to", "must be person or agent:ID")
    given = fields.one_of("status", DeliveryStatus)
    status = DeliveryStatus.QUEUED if given is DeliveryStatus.LEASED else given
    position = None
    if fields.get("position") is not None:
        position = fields.number("position", most=_LAST_POSITION)
    elif status not in (DeliveryStatus.DEFERRED, DeliveryStatus.CANCELLED):
        raise fields.wrong("position", "is missing")
    if position is not None and status is DeliveryStatus.DEFERRED:
        raise fields.wrong("position", "is given when a message becomes visible")
    ended_at = fields.maybe_time("ended_at")
    waits = status in (DeliveryStatus.DEFERRED, DeliveryStatus.QUEUED)
    if waits != (ended_at is None):
        raise fields.wrong("ended_at", "belongs to what is done, dead or cancelled, and only there")
    why = fields.maybe("ended_why", lambda text: clean_line(text, "ended_why", longest=200))
    read = Delivery(
        id=0,
        company_id=plan.company.id,
        message_id=message.id,
        agent_id=agent,
        user_id=user,
        status=status,
        deliver_at=fields.time("deliver_at"),
        position=position,
        attempt=fields.number("attempt", most=MOST_ATTEMPTS),
        run_id=None,
        ended_at=ended_at,
        ended_why=why,
        begun=fields.flag("begun"),
    )
    fields.done()
    return read


def _request(fields: Fields) -> str | None:
    if fields.get("request") is None:
        return None
    given = Fields(f"{fields.path}, request", fields.get("request"))
    resource = given.clean("resource", parse_resource)
    if str(resource) != given.get("resource"):
        raise given.wrong("resource", "is not written as Remit writes it")
    given.clean("level", lambda text: parse_level(text, resource.kind))
    asked = {
        "agent": given.id("agent"),
        "resource": str(resource),
        "level": given.get("level"),
    }
    if given.get("grant") is not None:
        asked["grant"] = given.id("grant")  # which may have been revoked since
    given.done()
    return json.dumps(asked)


def _read_question(plan: Plan, fields: Fields) -> None:
    agent, user = fields.author("ended_by", plan.importer)
    if len(fields.texts("options")) > MOST_OPTIONS:
        raise fields.wrong("options", f"must be at most {MOST_OPTIONS}")
    options = fields.clean(
        "options", lambda all_: [clean_line(one, "option", longest=200) for one in all_ or ()]
    )
    if options != fields.texts("options"):
        raise fields.wrong("options", "have blanks or characters that Remit does not keep")
    boss = fields.get("to")
    read = Question(
        id=QuestionId(fields.id("id")),
        company_id=plan.company.id,
        agent_id=AgentId(fields.id("agent")),
        to_agent_id=None if boss == "board" else fields.author("to", plan.importer)[0],
        text=fields.clean("text", lambda text: clean_text(text, "text", longest=LONGEST_QUESTION)),
        options=json.dumps(options),
        status=fields.one_of("status", QuestionStatus),
        answer=None if fields.get("answer") is None else fields.text("answer", LONGEST_QUESTION),
        answered_by=f"agent:{agent}" if agent else f"user:{user}" if user else None,
        created_at=fields.time("created_at"),
        ended_at=fields.maybe_time("ended_at"),
    )
    if boss != "board" and read.to_agent_id is None:
        raise fields.wrong("to", "must be board or agent:ID")
    if (read.status is QuestionStatus.OPEN) != (read.ended_at is None):
        raise fields.wrong("ended_at", "belongs to what was answered or cancelled, and only there")
    if (read.status is QuestionStatus.ANSWERED) != (read.answer is not None):
        raise fields.wrong("answer", "belongs to what was answered, and only there")
    fields.done()
    plan.add(plan.questions, read.id, read, fields.path)


def _read_schedule(plan: Plan, fields: Fields) -> None:
    timezone = fields.text("timezone", 60)
    fields.clean("timezone", zone)
    created_at = fields.time("created_at")
    cron = None if fields.get("cron") is None else fields.text("cron", 100)
    fields.maybe("cron", lambda text: next_time(text, timezone, created_at))
    read = Schedule(
        id=ScheduleId(fields.id("id")),
        company_id=plan.company.id,
        agent_id=AgentId(fields.id("agent")),
        cron=cron,
        timezone=timezone,
        address=_address(plan, fields),
        subject=_subject(fields),
        body=fields.clean("body", lambda text: clean_text(text, "body", longest=LONGEST_BODY)),
        status=fields.one_of("status", ScheduleStatus),
        next_at=fields.maybe_time("next_at"),
        last_at=fields.maybe_time("last_at"),
        created_at=created_at,
    )
    if (read.status is ScheduleStatus.ACTIVE) != (read.next_at is not None):
        raise fields.wrong("next_at", "belongs to what is active, and only there")
    fields.done()
    plan.add(plan.schedules, read.id, read, fields.path)


def _address(plan: Plan, fields: Fields) -> str:
    written = fields.get("to")
    if written == layout.PERSON:
        return f"user:{plan.importer}"
    if fields.clean("to", parse_address).kind is AddressKind.USER:
        raise fields.wrong("to", "names a person, who is not part of an export")
    return str(written)


def _channel(fields: Fields) -> str | None:
    """The address outside from which it came."""
    written = fields.get("channel")
    if written is None:
        return None
    if fields.clean("channel", parse_address).kind is not AddressKind.CHANNEL:
        raise fields.wrong("channel", "is not the address of a channel")
    return str(written)


def _subject(fields: Fields) -> str:
    return fields.clean(
        "subject", lambda text: clean_line(text, "subject", longest=LONGEST_SUBJECT, empty_ok=True)
    )
