"""Entries of Claude Code's conversations, `projects/<folder>/<id>.jsonl`; each run appends some."""

import re
from collections.abc import Mapping
from typing import Any

from remit.adapters.conversation import Conversation, texts

#: Attachments that Claude adds between answers, and the only texts that they have.
_COUNTS = {
    "total_tokens_reminder": re.compile(r"<total_tokens>\d+ tokens left</total_tokens>"),
    "budget_usd": re.compile(r"USD budget: \$[\d.]+/\$[\d.]+; \$-?[\d.]+ remaining"),
}


def _answers(entry: Mapping[str, Any]) -> bool:
    return entry.get("type") == "assistant"


def _foreign(entry: Mapping[str, Any], turn: str, answered: bool) -> str | None:
    kind = entry.get("type")
    if kind == "user":
        return _foreign_words(entry, turn)
    if kind == "attachment":
        return "a reminder was added" if answered and not _is_count(entry) else None
    if kind == "queue-operation" and entry.get("content", turn) != turn:
        return "a turn was queued that is not Remit's"
    # Of the rest, a summary stands for what was said before; others are for the program alone.
    return "it was summarised" if kind in ("summary", "system") else None


def _foreign_words(entry: Mapping[str, Any], turn: str) -> str | None:
    message = entry.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    if entry.get("isCompactSummary"):
        return "it was summarised"
    if texts(content) == [turn]:
        return None
    if isinstance(content, list) and content and all(map(_is_result, content)):
        return None
    return "it has a turn that is not Remit's"


def _is_result(part: object) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "tool_result"


def _is_count(entry: Mapping[str, Any]) -> bool:
    attachment, rendered = entry.get("attachment"), entry.get("rendered", [])
    kind = attachment.get("type") if isinstance(attachment, Mapping) else None
    counts = _COUNTS.get(str(kind))
    if counts is None or not isinstance(rendered, list):
        return False
    shown = texts([{"text": part.get("content")} for part in rendered if isinstance(part, Mapping)])
    own = attachment.get("text", "") if isinstance(attachment, Mapping) else None
    return (
        shown is not None
        and len(shown) == len(rendered)
        and all(counts.fullmatch(_reminder_in(text)) for text in shown)
        and isinstance(own, str)
        and (not own or counts.fullmatch(own) is not None)
    )


def _reminder_in(text: str) -> str:
    """Return what stands in a reminder; nothing if the text is another one."""
    begin, end = "<system-reminder>\n", "\n</system-reminder>"
    whole = text.startswith(begin) and text.endswith(end)
    return text[len(begin) : -len(end)] if whole else ""


CONVERSATION = Conversation(".claude", ("projects/*.jsonl",), _foreign, _answers)
