"""View of an approval: the request in words, its payload, changes between revisions, comments."""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from remit.entrypoints.approval_text import asks_to, difference
from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import RemitError
from remit.ids import short
from remit.model.text import monthly

_INDENT = "  "
#: Keys of a payload that are shown elsewhere or are for programs.
_NOT_SHOWN = frozenset(
    {
        *("agentId", "requestedByAgentId", "requestedConfigurationSnapshot", "configuration"),
        *("difference", "changed", "name", "role", "title", "reportsTo", "outcomeId", "prepared"),
        *("baseRevision", "options", "verb", "basis"),
    }
)
#: Keys of a hire's payload that are shown in words.
_OF_A_HIRE = frozenset(
    {*("grants", "permissions", "permissionLevel", "setAside", "reason"), *("purpose", "perpetual")}
)


def who(session: Session, view: Mapping[str, Any], role: str) -> str:
    """The agent or the person in a pair of fields such as requestedByAgentId and …UserId."""
    id_ = view.get(f"{role}AgentId") or view.get(f"{role}UserId")
    return session.known(id_) if id_ else ""


def draw(session: Session, request: View) -> None:
    payload, revisions = request["payload"], request["revisions"]
    said_by = who(session, request, "requestedBy")
    output.say(f"{said_by or 'Somebody'} asks to {asks_to(request, called(session, request))}.")
    output.say("")
    cells.fields(
        *(session, request, "id", "status: {status:words}", "revision", "asked: {createdAt:when}"),
        *("expires: {expiresAt:when}", "decided: {decidedAt:when}"),
        *(("by", lambda session, view: who(session, view, "decidedBy")), "note: {decisionNote}"),
        *("boss: {payload[reportsTo]:known}", "outcome: {payload[outcomeId]}"),
    )
    if request["altered"]:
        output.note("It was altered: it is not what was submitted. Reject it, and ask anew.")
    hidden_keys = _NOT_SHOWN
    if request["type"] == "hire_agent":
        _section("The hire", _hire(session, payload))
        hidden_keys |= _OF_A_HIRE
    details = {key: value for key, value in payload.items() if key not in hidden_keys and value}
    if request["type"] == "config_change":
        _section("Changes", _changes(payload["difference"]))
    elif "requestedConfigurationSnapshot" in payload:
        config = payload["requestedConfigurationSnapshot"]
        _section("Configuration", _lines({key: value for key, value in config.items() if value}))
    _section("Asked for", _lines(details))
    if len(revisions) > 1:
        before, now = revisions[-2], revisions[-1]
        title = f"Revision {now['number']} compared with {before['number']}"
        _section(title, _changes(difference(before["payload"], now["payload"])))
    if request["redacted"]:
        _section("Not shown because it is secret", [str(path) for path in request["redacted"]])
    if request["comments"]:
        _section("Comments", _thread(session, request["comments"]))
    if request["status"] == "pending":
        output.say("")
        if (change := _change_of(request)) is not None:
            output.say(f"Look at it before: `remit change show {short(change)}`.")
        verbs = "reject" if request["altered"] else "approve|reject|revise"
        output.say(f"Decide with `remit approval {verbs} {short(request['id'])}`.")


def called(session: Session, request: Mapping[str, Any]) -> dict[str, str]:
    """Return the title of the change that a capability would be used for, by its resource."""
    change = _change_of(request)
    with suppress(RemitError):  # it may be hidden from whoever reads this
        if change is not None:
            answer = session.client.get(path("changes", change))
            into = f"{answer['repo']}, into {answer['target']}"
            return {f"change:{change}": f"“{answer['title']}” ({into})"}
    return {}


def _change_of(request: Mapping[str, Any]) -> str | None:
    kind, _, named = str(request["payload"].get("resource") or "").partition(":")
    return named if request["type"] == "capability_use" and kind == "change" else None


def _hire(session: Session, payload: Mapping[str, Any]) -> Iterator[str]:
    """The agent that an approval would hire."""
    config = payload.get("requestedConfigurationSnapshot") or {}
    mandate = payload.get("outcomeId") or payload.get("agentId")
    with suppress(RemitError):  # it may be gone with an agent that was deleted
        outcome = session.client.get(path("outcomes", str(mandate)))
        yield f"mandate: {payload.get('purpose', outcome['title'])}"
        yield from (f"{_INDENT}{line}" for line in outcome["description"].splitlines())
    yield f"budget: {monthly(config) or 'none: unlimited'}"
    if payload.get("setAside"):
        yield f"set aside for it: {_value(payload['setAside'])}"
    grants = payload.get("grants") or []
    yield f"grants: {'none but what its place brings' if not grants else ''}".rstrip()
    for grant in grants:
        mode = "" if grant.get("mode") in (None, "allow") else f" ({grant['mode']})"
        resource = output.shortened(str(grant.get("resource")))
        yield f"{_INDENT}{grant.get('level')} on {resource}{mode}"
    may_hire = (payload.get("permissions") or {}).get("canCreateAgents")
    yield f"may hire: {'yes' if may_hire else 'no'}"
    if payload.get("permissionLevel"):
        yield f"level: {payload['permissionLevel']}"
    if payload.get("reason"):
        yield f"reason: {payload['reason']}"


def _section(title: str, lines: Any) -> None:
    entries = list(lines)
    if entries:
        output.say("", title)
        output.say(*(f"{_INDENT}{line}" for line in entries))


def _lines(document: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """A document, one value a line; texts of several lines stand below their name."""
    for key, value in document.items():
        name = f"{above}{key}"
        if isinstance(value, dict):
            yield from _lines(value, f"{name}.")
        elif isinstance(value, str) and "\n" in value.strip():
            yield f"{name}:"
            yield from (f"{_INDENT}{line}" for line in value.splitlines())
        else:
            yield f"{name}: {_value(value)}"


def _changes(changes: list[View]) -> Iterator[str]:
    for change in changes:
        if change["was"] is not None:
            yield f"- {change['path']}: {_value(change['was'])}"
        if change["now"] is not None:
            yield f"+ {change['path']}: {_value(change['now'])}"
        if change["was"] == change["now"]:
            yield f"{_INDENT}(a secret in it is different)"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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
