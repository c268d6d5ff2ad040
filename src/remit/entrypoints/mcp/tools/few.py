"""The tools that a small model is told of.

Every tool costs a model tokens and attention. One with a few thousand tokens of room does better
with those that most work is done with; the rest can still be called by whoever knows of it.
"""

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
#: A small model repeats nothing on purpose.
_LEFT_OUT: Final = "idempotency_key"


def few(tools: Sequence[Tool]) -> list[Tool]:
    """Ours that matter most, and those of other servers: they were granted for a reason."""
    return [tool for tool in tools if tool.name in NAMES or tool.schema is not None]


def simpler(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without what a small model has no use for."""
    properties = {
        name: one for name, one in schema.get("properties", {}).items() if name != _LEFT_OUT
    }
    return {**schema, "properties": properties}
