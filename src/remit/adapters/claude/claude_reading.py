"""Reader of Claude Code's event stream, for people."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from remit.adapters import reading
from remit.adapters.reading import mapping, number, sequence, words
from remit.model.execution.transcript import Entry, EntryKind, arguments, name

_OURS = "mcp__remit__"
_OF_SERVERS = "mcp__"
#: The model's name on lines that Claude Code wrote itself.
_OF_THE_PROGRAM = "<synthetic>"


class ClaudeReader(reading.JsonReader):
    sees_denials = True
    #: Events for programs: of these, people are shown nothing.
    _UNSEEN = ("system", "stream_event", "rate_limit_event", "control_response", "tool_progress")

    def __init__(self) -> None:
        self._tools = reading.Known()
        self._denied = reading.Known()

    def meaning(self, event: Mapping[str, Any]) -> Iterable[Entry]:
        match event.get("type"), event.get("subtype"):
            case "assistant", _:
                return self._said(mapping(event.get("message")))
            case "user", _:
                return self._answered(mapping(event.get("message")))
            case "system", "permission_denied":
                return self._denies(event, str(event.get("message") or ""))
            case "system", "api_retry":
                return (_retry(event),)
            case "result", _:
                return self._result(event)
            case kind, _ if kind in self._UNSEEN:
                return ()
            case _ if "permission_denials" in event or "duration_api_ms" in event:
                return self._result(event)
            case _:
                return (Entry(EntryKind.PRINTED, arguments(dict(event))),)

    def _said(self, message: Mapping[str, Any]) -> Iterator[Entry]:
        content = message.get("content")
        if message.get("model") == _OF_THE_PROGRAM:
            yield Entry(EntryKind.PRINTED, words(content), stream="stderr")
            return
        if isinstance(content, str):
            yield Entry(EntryKind.SAID, content)
        for part in map(mapping, sequence(content)):
            match part.get("type"):
                case "text" if part.get("text"):
                    yield Entry(EntryKind.SAID, str(part["text"]))
                case "thinking" if part.get("thinking"):
                    yield Entry(EntryKind.THOUGHT, str(part["thinking"]))
                case "tool_use" | "server_tool_use" | "mcp_tool_use":
                    tool, call = tool_name(part.get("name")), name(part.get("id"))
                    self._tools.put(call, tool)
                    yield Entry(EntryKind.CALL, arguments(part.get("input")), tool, call)
                case _:
                    pass

    def _answered(self, message: Mapping[str, Any]) -> Iterator[Entry]:
        for part in map(mapping, sequence(message.get("content"))):
            if part.get("type") != "tool_result":
                continue
            call = name(part.get("tool_use_id"))
            if self._denied.get(call) is not None:
                continue  # repeats the denial for the model
            text = words(part.get("content"))
            text = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
            failed = part.get("is_error") is True
            entry = reading.answered(self._tools.get(call) or "?", call, text, failed=failed)
            if entry.kind is EntryKind.DENIED:
                self._denied.put(call, text)
            yield entry

    def _denies(self, event: Mapping[str, Any], why: str) -> Iterator[Entry]:
        call = name(event.get("tool_use_id"))
        if self._denied.get(call) is None:
            self._denied.put(call, why)
            # The rest is advice to the model.
            text = why.partition(" IMPORTANT:")[0]
            yield Entry(EntryKind.DENIED, text, tool_name(event.get("tool_name")), call)

    def _result(self, event: Mapping[str, Any]) -> Iterator[Entry]:
        """Yield the denials that the result lists; its other contents are known already."""
        for denial in map(mapping, sequence(event.get("permission_denials"))):
            yield from self._denies(denial, "")


def _retry(event: Mapping[str, Any]) -> Entry:
    status = number(event.get("error_status"))
    why = str(event.get("error") or "the model's server did not answer")
    return Entry(
        EntryKind.RETRY,
        f"{why} ({status})" if status else why,
        attempt=number(event.get("attempt")),
        most=number(event.get("max_retries")),
        wait_ms=number(event.get("retry_delay_ms")),
    )


def tool_name(tool: object) -> str:
    """Return a tool's name for people: Remit's by their own name, others as server/tool."""
    known = name(tool)
    if known.startswith(_OURS):
        return known.removeprefix(_OURS) or known
    if known.startswith(_OF_SERVERS):
        return known.removeprefix(_OF_SERVERS).replace("__", "/", 1)
    return known
