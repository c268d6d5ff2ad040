"""View of an approval: the request in words, its statement, earlier revisions, comments."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from remit.entrypoints.approval_text import asks_to
from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import RemitError
from remit.ids import short
from remit.model.organisation.statement import as_lines, as_text
from remit.model.spelling import spelled

_INDENT = "  "


def who(session: Session, view: Mapping[str, Any], role: str) -> str:
    """The agent or the person in a pair of fields such as requestedByAgentId and …UserId."""
    id_ = view.get(f"{role}AgentId") or view.get(f"{role}UserId")
    return session.known(id_) if id_ else ""


def draw(session: Session, request: View) -> None:
    said_by = who(session, request, "requestedBy")
    output.say(f"{said_by or 'Somebody'} asks to {asks_to(request, called(session, request))}.")
    output.say("")
    cells.fields(
        *(session, request, "id", "status: {status:words}", "revision", "asked: {createdAt:when}"),
        *("expires: {expiresAt:when}", "decided: {decidedAt:when}"),
        *(("by", lambda session, view: who(session, view, "decidedBy")), "note: {decisionNote}"),
    )
    output.say("", *as_text(request["statement"]).splitlines())
    for revision in reversed(request["revisions"][1:-1]):
        number = revision["number"]
        output.say("", f"REVISION {number} COMPARED WITH {number - 1}")
        output.say(*as_lines(revision["changes"]))
    if request["comments"]:
        thread = _thread(session, request["comments"])
        output.say("", "COMMENTS", *(f"{_INDENT}{line}" for line in thread))
    if request["status"] == "pending":
        id_ = short(request["id"])
        seen = f"{id_} --revision {request['revision']}"
        output.say("")
        if (change := _change_of(request)) is not None:
            output.say(f"Look at it before: `remit change show {short(change)}`.")
        if request["statement"]["whole"]:
            output.say(f"Decide with `remit approval approve {seen}`, or reject or revise {id_}.")
        else:
            output.say(f"Not all of it can be shown: `remit approval reject {id_}`.")


#: Routes of things that a capability is used on, and the key of each one's title.
_TITLED: Final = {
    "change": ("changes", "title"),
    "kb_file": ("files", "description"),
    "outcome": ("outcomes", "title"),
}


def called(session: Session, request: Mapping[str, Any]) -> dict[str, str]:
    """Return the title of what a capability would be used on, by its resource."""
    resource = _resource_of(request)
    kind, _, named = resource.partition(":")
    if kind not in _TITLED:
        return {}
    if resource not in session.names:
        route, key = _TITLED[kind]
        with suppress(RemitError):  # it may be hidden from whoever reads this
            answer = session.client.get(path(route, named))
            into = f" ({answer['repo']}, into {answer['target']})" if kind == "change" else ""
            session.names[resource] = f"“{spelled(answer[key])}”{into}"
    return {resource: session.names[resource]} if resource in session.names else {}


def _resource_of(request: Mapping[str, Any]) -> str:
    """Return the resource of a call that waits; empty for another request."""
    is_call = request["type"] == "capability_use"
    return str(request["payload"].get("resource") or "") if is_call else ""


def _change_of(request: Mapping[str, Any]) -> str | None:
    kind, _, named = _resource_of(request).partition(":")
    return named if kind == "change" else None


def _thread(session: Session, comments: list[View]) -> Iterator[str]:
    """Each comment, with the answers to it below, indented."""
    below: dict[str | None, list[View]] = {}
    for comment in comments:
        below.setdefault(comment["replyTo"], []).append(comment)
    pending = [(comment, 0) for comment in reversed(below.get(None, []))]
    while pending:
        comment, depth = pending.pop()
        indent = _INDENT * depth
        author = who(session, comment, "author")
        yield f"{indent}{author}, {output.when(comment['createdAt'])}  {comment['id']}"
        yield from (f"{indent}{_INDENT}{line}" for line in comment["body"].splitlines())
        pending += [(answer, depth + 1) for answer in reversed(below.get(comment["id"], []))]
