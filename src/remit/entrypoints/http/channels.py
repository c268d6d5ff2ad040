"""Where the outside writes to agents: with the token of a binding, and with no other."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Path, Request, Response

from remit.app import App
from remit.entrypoints import bodies
from remit.entrypoints.http import document
from remit.entrypoints.http.caller import caller
from remit.entrypoints.http.fields import new_router
from remit.errors import BadInput
from remit.ids import token_digest
from remit.model.channel import LARGEST_TEXT, LONGEST_CONVERSATION, LONGEST_OUTSIDE_ID
from remit.services import channels
from remit.services.identity import as_system

#: JSON may write one character as six.
LARGEST_BODY: Final = 6 * LARGEST_TEXT + 8 * 1024
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
        responses={200: {"description": "It came before."}},
        openapi_extra={
            "requestBody": {"required": True, "content": {document.JSON: {"schema": _BODY}}}
        },
    )
    async def receive_message(
        request: Request, kind: Annotated[str, Path(min_length=1, max_length=40)]
    ) -> Response:
        """Mail from outside to the agent that the token is bound to; 200 when it came before."""
        # The token of a person or an agent is not bound to anything, so it is refused as well.
        bearer = {"kind": kind, "digest": token_digest(caller(request).token)}
        await app.gate(as_system(), channels.admit, **bearer)
        document.check_type(request.headers)
        sent = await bodies.whole(request.scope, request.receive, LARGEST_BODY)
        said = await bodies.apart(len(sent), document.read, sent)
        if not isinstance(said, dict):
            raise BadInput("The body must be an object.", "Send id, conversation and body.")
        answer = await app.gate(
            as_system(),
            channels.receive,
            **bearer,
            outside=said.get("id"),
            conversation=said.get("conversation"),
            body=said.get("body"),
            subject=said.get("subject") or "",
            reply_to=said.get("replyTo"),
        )
        return document.reply(answer, 200 if answer["duplicate"] else 201)

    return routes
