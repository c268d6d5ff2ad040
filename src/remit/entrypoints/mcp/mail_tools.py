"""Tools for mail, questions and what is left open."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from remit.app import App
from remit.entrypoints.mcp.arguments import Arguments, Repeatable
from remit.entrypoints.mcp.registry import Tool
from remit.services import capability_requests, inbox, questions, schedules, waiting
from remit.services.identity import Caller

Ref = Annotated[str, Field(min_length=1, max_length=64)]
Time = Annotated[str | None, Field(description="ISO 8601", max_length=40)]
About = Annotated[
    Ref | None, Field(description="Your outcome that waits for it; default: what you work on")
]


class SendArguments(Repeatable):
    to: Annotated[
        str,
        Field(
            description="agent:<name>, user:<name>, board, channel:<kind>:<id>, or "
            "agent:background to have the text run once",
            max_length=200,
        ),
    ]
    body: Annotated[str | None, Field(description="The text")] = None
    file_id: Annotated[Ref | None, Field(description="Or a file that is the message")] = None
    subject: Annotated[str, Field(max_length=200)] = ""
    attachments: Annotated[
        list[Ref],
        Field(description="Files; the receiver may read them", max_length=50, default_factory=list),
    ]
    reply_to: Annotated[Ref | None, Field(description="Message id")] = None
    expects_reply: Annotated[
        bool, Field(description="You wait with your outcome until it is answered")
    ] = False
    outcome_id: About = None
    deliver_at: Time = None


class InboxArguments(Arguments):
    limit: Annotated[int, Field(ge=1, le=10)] = 10


class AckArguments(Repeatable):
    ids: Annotated[list[Ref], Field(min_length=1, max_length=100)]


class RequestArguments(Repeatable):
    resource: Annotated[str, Field(description="Such as kb_file:<id>", max_length=120)]
    level: Annotated[str, Field(description="read, write or use", max_length=10)]
    why: Annotated[str, Field(max_length=10_000)]
    outcome_id: About = None


class AskArguments(Repeatable):
    question: Annotated[str, Field(max_length=10_000)]
    options: Annotated[
        list[Annotated[str, Field(max_length=200)]], Field(max_length=20, default_factory=list)
    ]
    to: Annotated[str | None, Field(description="boss (default) or board", max_length=10)] = None
    outcome_id: About = None


class RemindArguments(Repeatable):
    body: Annotated[str, Field(max_length=20_000)]
    cron: Annotated[str | None, Field(description="Five fields", max_length=100)] = None
    timezone: Annotated[str, Field(max_length=60)] = "UTC"
    at: Time = None
    to: Annotated[str | None, Field(description="Default: yourself", max_length=200)] = None
    subject: Annotated[str, Field(max_length=200)] = ""


class EndsArguments(Arguments):
    agent: Annotated[
        str | None, Field(description="Somebody below you instead of you", max_length=80)
    ] = None


class CancelArguments(Repeatable):
    id: Annotated[
        Ref, Field(description="Of a question, schedule, background job or deferred message")
    ]


def build(app: App) -> tuple[Tool, ...]:
    gate = app.gate

    async def mail_send(token: str, given: SendArguments) -> dict[str, Any]:
        return await app.library.send(
            Caller(token, given.idempotency_key),
            body=given.body,
            to=given.to,
            file=given.file_id,
            subject=given.subject,
            attachments=given.attachments,
            reply_to=given.reply_to,
            deliver_at=given.deliver_at,
            expects_reply=given.expects_reply,
            outcome=given.outcome_id,
        )

    async def mail_inbox(token: str, given: InboxArguments) -> dict[str, Any]:
        return await gate(Caller(token), inbox.take, limit=given.limit)

    async def mail_ack(token: str, given: AckArguments) -> dict[str, Any]:
        return await gate(Caller(token, given.idempotency_key), inbox.acknowledge, ids=given.ids)

    async def capability_request(token: str, given: RequestArguments) -> dict[str, Any]:
        return await gate(
            Caller(token, given.idempotency_key),
            capability_requests.request_capability,
            resource=given.resource,
            level=given.level,
            why=given.why,
            outcome=given.outcome_id,
        )

    async def ask(token: str, given: AskArguments) -> dict[str, Any]:
        return await gate(
            Caller(token, given.idempotency_key),
            questions.ask,
            question=given.question,
            options=given.options,
            to=given.to,
            outcome=given.outcome_id,
        )

    async def remind(token: str, given: RemindArguments) -> dict[str, Any]:
        asked = given.model_dump(exclude={"idempotency_key"})
        return await gate(Caller(token, given.idempotency_key), schedules.add, **asked)

    async def loose_ends(token: str, given: EndsArguments) -> dict[str, Any]:
        return await gate(Caller(token), waiting.loose_ends, agent=given.agent)

    async def thread_cancel(token: str, given: CancelArguments) -> dict[str, Any]:
        return await gate(Caller(token, given.idempotency_key), waiting.cancel, thread=given.id)

    return (
        Tool(
            "mail_send",
            "Write to somebody, or answer with reply_to; you go on meanwhile. For what you have to "
            "know to go on: ask.",
            SendArguments,
            mail_send,
            mutates=True,
        ),
        Tool(
            "mail_inbox",
            "Take up your mail, oldest first. Answer it with mail_send, then mail_ack.",
            InboxArguments,
            mail_inbox,
        ),
        Tool(
            "mail_ack",
            "Say that messages were dealt with, or they come again.",
            AckArguments,
            mail_ack,
            mutates=True,
        ),
        Tool(
            "capability_request",
            "Ask your boss for a capability you were refused; your outcome waits for it.",
            RequestArguments,
            capability_request,
            mutates=True,
        ),
        Tool(
            "ask",
            "Ask your boss or the board; your outcome waits, and the answer comes as mail.",
            AskArguments,
            ask,
            mutates=True,
        ),
        Tool(
            "remind",
            "Send mail at a time or at set times, to yourself by default.",
            RemindArguments,
            remind,
            mutates=True,
        ),
        Tool(
            "loose_ends",
            "What you and those below you left open.",
            EndsArguments,
            loose_ends,
            for_loose_ends=True,
        ),
        Tool(
            "thread_cancel",
            "Cancel a question, schedule, background job or deferred message.",
            CancelArguments,
            thread_cancel,
            mutates=True,
            for_loose_ends=True,
        ),
    )
