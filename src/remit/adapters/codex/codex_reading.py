"""Reader of Codex' event stream, for people."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from remit.adapters import reading
from remit.adapters.reading import mapping, number, sequence, words
from remit.model.execution.transcript import Entry, EntryKind, arguments, name

_RETRIED = re.compile(r"Reconnecting\.\.\. (\d{1,6})/(\d{1,6})(?: \((.*)\))?$", re.DOTALL)
_SHELL = re.compile(r"(?:/[a-z/]{0,40})?(?:ba|z|da)?sh -l?c (['\"]?)(.*)\1$", re.DOTALL)
_WAIT = re.compile(r"(?:try|retry)(?:ing)? again in (\d{1,9}(?:\.\d{1,6})?) ?(ms|s)")
_CALLS = frozenset({"mcp_tool_call", "command_execution", "file_change", "web_search"})


class CodexReader(reading.JsonReader):
    sees_denials = True

    def __init__(self) -> None:
        self._begun = reading.Known()

    def meaning(self, event: Mapping[str, Any]) -> Iterable[Entry]:
        match event.get("type"):
            case "item.started":
                return self._begins(mapping(event.get("item")))
            case "item.completed":
                return self._ends(mapping(event.get("item")))
            case "error":
                return (_error(str(event.get("message") or "an error")),)
            case "thread.started" | "turn.started" | "item.updated":
                return ()
            case "turn.completed" | "turn.failed":
                return ()  # the end of the run is known from its result
            case _:
                return (Entry(EntryKind.PRINTED, arguments(dict(event))),)

    def _begins(self, item: Mapping[str, Any]) -> Iterator[Entry]:
        call = name(item.get("id"))
        if str(item.get("type")) in _CALLS and self._begun.get(call) is None:
            self._begun.put(call, "begun")
            yield Entry(EntryKind.CALL, _given(item), _tool(item), call)

    def _ends(self, item: Mapping[str, Any]) -> Iterator[Entry]:
        text = str(item.get("text") or item.get("message") or "")
        match item.get("type"):
            case "agent_message":
                yield Entry(EntryKind.SAID, text)
            case "reasoning":
                yield Entry(EntryKind.THOUGHT, text)
            case "error":
                yield Entry(EntryKind.PRINTED, text, stream="stderr")
            case kind if str(kind) in _CALLS:
                yield from self._begins(item)
                yield _result(item)
            case "todo_list":
                steps = map(mapping, sequence(item.get("items")))
                yield Entry(EntryKind.THOUGHT, "\n".join(str(step.get("text")) for step in steps))
            case _:
                yield Entry(EntryKind.PRINTED, arguments(dict(item)))


def _tool(item: Mapping[str, Any]) -> str:
    match item.get("type"):
        case "mcp_tool_call":
            tool, server = name(item.get("tool")), name(item.get("server"))
            return tool if server == "remit" else f"{server}/{tool}"
        case "command_execution":
            return "shell"
        case "file_change":
            return "edit"
        case _:
            return "web_search"


def _given(item: Mapping[str, Any]) -> str:
    match item.get("type"):
        case "mcp_tool_call":
            return arguments(item.get("arguments"))
        case "command_execution":
            command = str(item.get("command") or "")
            inner = _SHELL.match(command)
            return inner[2] if inner else command
        case "file_change":
            changes = map(mapping, sequence(item.get("changes")))
            return ", ".join(f"{change.get('kind')} {change.get('path')}" for change in changes)
        case _:
            return str(item.get("query") or "")


def _result(item: Mapping[str, Any]) -> Entry:
    tool, call = _tool(item), name(item.get("id"))
    failed = item.get("status") in ("failed", "declined")
    text = words(mapping(item.get("result")).get("content"))
    if item.get("type") == "command_execution":
        text = str(item.get("aggregated_output") or "")
        code = item.get("exit_code")
        if isinstance(code, int) and code:
            failed, text = True, f"exit code {code}\n{text}".rstrip("\n")
    if error := mapping(item.get("error")).get("message"):
        text = str(error)
    if item.get("status") == "declined":
        return Entry(EntryKind.DENIED, text, tool, call)
    return reading.answered(tool, call, text, failed=failed)


def _error(message: str) -> Entry:
    retried = _RETRIED.match(message)
    if retried is None:
        return Entry(EntryKind.PRINTED, message, stream="stderr")
    why = retried[3] or "the model's server did not answer"
    wait = _WAIT.search(why)
    return Entry(
        EntryKind.RETRY,
        why,
        attempt=number(int(retried[1])),
        most=number(int(retried[2])),
        wait_ms=int(float(wait[1]) * (1 if wait[2] == "ms" else 1000)) if wait else None,
    )
