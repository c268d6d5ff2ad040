"""Inbound messages of channels: with a binding's token, or proved by its channel."""

import json
from typing import Annotated, Any, Final, cast

from fastapi import APIRouter, Path, Request, Response

from remit.app import App
from remit.channels.contract import Undelivered, Unproven
from remit.entrypoints import bodies
from remit.entrypoints.binding_trial import asked
from remit.entrypoints.http.wire import json_document
from remit.entrypoints.http.wire.caller import caller
from remit.entrypoints.http.wire.fields import CompanyId, Id, new_router
from remit.errors import BadInput, Unavailable
from remit.ids import token_digest
from remit.model.messaging.channel import LARGEST_TEXT, LONGEST_CONVERSATION, LONGEST_OUTSIDE_ID
from remit.services.chat import intake
from remit.services.chat.shapes import PostedShape
from remit.services.connections import channels
from remit.services.identity import as_system

#: JSON may escape one character as six.
LARGEST_BODY: Final = 6 * LARGEST_TEXT + 8 * 1024
#: Larger than a message of any channel; its files are fetched apart.
LARGEST_POST: Final = 1024 * 1024
_TEXT: Final = {"type": "string"}
_BODY: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["id", "conversation", "body"],
    "properties": {
        "id": {
            **_TEXT,
            "maxLength": LONGEST_OUTSIDE_ID,
            "description": "The sender's own; a repeat under the same id changes nothing.",
        },
        "conversation": {
            **_TEXT,
            "maxLength": LONGEST_CONVERSATION,
            "description": "The room or person that an answer should go to.",
        },
        "body": {**_TEXT, "description": f"At most {LARGEST_TEXT >> 10} KiB."},
        "subject": _TEXT,
        "replyTo": {**_TEXT, "description": "The id of a message that was sent there."},
    },
}


def router(app: App) -> APIRouter:
    routes = new_router("channels", "/api", public=True)

    @routes.post(
        "/channels/{kind}",
        status_code=201,
        responses={200: {"description": "It came before.", "content": {json_document.JSON: {}}}},
        openapi_extra={
            "requestBody": {"required": True, "content": {json_document.JSON: {"schema": _BODY}}}
        },
    )
    async def receive_message(
        request: Request, kind: Annotated[str, Path(min_length=1, max_length=40)]
    ) -> Response:
        """Mail from outside to the agent that the token is bound to; 200 when it came before."""
        # The token of a person or an agent is not bound to anything, so it is refused as well.
        bearer = {"kind": kind, "digest": token_digest(caller(request).token)}
        await app.gate(as_system(), channels.admit, **bearer)
        json_document.check_type(request.headers)
        sent = await bodies.whole(request.scope, request.receive, LARGEST_BODY)
        document = await bodies.apart(len(sent), json_document.read, sent)
        if not isinstance(document, dict):
            raise BadInput("The body must be an object.", "Send id, conversation and body.")
        answer = await app.gate(
            as_system(),
            channels.receive,
            **bearer,
            outside=document.get("id"),
            conversation=document.get("conversation"),
            body=document.get("body"),
            subject=document.get("subject") or "",
            reply_to=document.get("replyTo"),
        )
        return json_document.reply(answer, 200 if answer["duplicate"] else 201)

    # The format is the channel's own, so the route is not in /openapi.json.
    @routes.post("/channels/{kind}/{binding}", include_in_schema=False)
    async def take_post(request: Request, kind: str, binding: str) -> Response:
        """Post of a binding's outside; answered when it is stored."""
        view = await app.gate(as_system(), channels.posted, kind=kind, binding=binding)
        claimed = cast(PostedShape, view)
        channel = app.connector.channel(claimed)
        connection = await app.connector.connection(claimed)
        try:
            channel.prove(connection, request.headers)
        except Unproven:
            raise channels.unproven() from None
        sent = await bodies.whole(request.scope, request.receive, LARGEST_POST)
        try:
            came = await channel.accept(connection, sent)
        except Undelivered as error:
            wrong = BadInput if error.for_good else Unavailable
            raise wrong(f"It cannot be taken: {error.sentence}.", "Send it again.") from None
        messages = [message for message in map(intake.kept, came.said) if message is not None]
        if messages:
            await app.gate(as_system(), intake.store, binding=binding, epoch=None, said=messages)
        return Response(json.dumps(dict(came.answer)), media_type=json_document.JSON)

    return routes


def trials(app: App) -> APIRouter:
    routes = new_router("bindings", "/api")

    @routes.post("/companies/{companyId}/bindings/{id}/test")
    async def test_binding(request: Request, company: CompanyId, binding: Id) -> Response:
        """Check the credentials of a binding with the server of its channel."""
        trial = await asked(app, caller(request), company, binding)
        return json_document.reply({"id": binding, **trial})

    return routes
