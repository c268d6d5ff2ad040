"""Entries of Codex' conversations: `sessions/…/rollout-*.jsonl`, appended to by each run."""

from collections.abc import Mapping
from typing import Any

from remit.adapters.conversation import Conversation, texts

#: Entries besides messages that Codex adds between answers.
_BESIDES = frozenset({"event_msg", "token_usage_record", "response_item"})
_SURROUNDINGS = "<environment_context>"


def _message(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    payload = entry.get("payload")
    return payload if isinstance(payload, Mapping) else {}


def _answers(entry: Mapping[str, Any]) -> bool:
    payload = _message(entry)
    of_others = payload.get("type") == "message" and payload.get("role") != "assistant"
    return entry.get("type") == "response_item" and not of_others


def _foreign(entry: Mapping[str, Any], turn: str, answered: bool) -> str | None:
    kind, payload = entry.get("type"), _message(entry)
    if kind == "compacted":
        return "it was summarised"
    if kind == "response_item" and payload.get("type") == "message":
        return _foreign_words(payload, turn, answered)
    return "its settings were changed" if answered and kind not in _BESIDES else None


def _foreign_words(message: Mapping[str, Any], turn: str, answered: bool) -> str | None:
    if message.get("role") == "assistant":
        return None
    words = texts(message.get("content"))
    if not answered:
        if message.get("role") == "developer" or words == [turn]:
            return None
        if words is not None and all(text.startswith(_SURROUNDINGS) for text in words):
            return None
    return "it has a turn that is not Remit's"


CONVERSATION = Conversation(".codex", ("sessions/*.jsonl",), _foreign, _answers)
