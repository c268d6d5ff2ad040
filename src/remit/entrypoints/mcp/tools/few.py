"""The short list of tools for small models.

Every tool costs a model tokens and attention. A model with a context of a few thousand tokens does
better with those that most work needs; the others can still be called by name.
"""

import re
from collections.abc import Sequence
from typing import Any, Final

from remit.entrypoints.mcp.registry import Tool

#: The query parameter that asks for few tools.
PARAMETER: Final = "tools"
VALUE: Final = "few"

NAMES: Final = (
    *("mail_inbox", "mail_send", "mail_ack"),
    *("kb_browse", "kb_read", "kb_create", "kb_write"),
    *("outcome_list", "outcome_submit", "log_submit"),
)
#: Argument that a model has no use for: its program repeats no call by itself.
_LEFT_OUT: Final = "idempotency_key"
#: Descriptions that say no more than the names do.
_SAYS_NOTHING: Final = re.compile(r"[A-Z][a-z]+ id")


def few(tools: Sequence[Tool]) -> list[Tool]:
    """Return the most important tools, and all of other servers, which were granted for a
    reason."""
    return [tool for tool in tools if tool.name in NAMES or tool.schema is not None]


def simpler(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema without the arguments and words that a model has no use for."""
    properties = {
        name: _without_empty_words(property_schema)
        for name, property_schema in schema.get("properties", {}).items()
        if name != _LEFT_OUT
    }
    return {**schema, "properties": properties}


def _without_empty_words(schema: dict[str, Any]) -> dict[str, Any]:
    if not _SAYS_NOTHING.fullmatch(schema.get("description", "")):
        return schema
    return {key: value for key, value in schema.items() if key != "description"}
