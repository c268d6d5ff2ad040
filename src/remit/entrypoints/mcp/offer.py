"""Tools of another MCP server as agents see them: renamed, bounded, nothing added.

A server's text about its tools is untrusted. It is passed on, because no tool could be used without
it, but only up to a limit, and under a name that shows its server.
"""

import hashlib
import json
import logging
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from remit.entrypoints.mcp.registry import check_values
from remit.errors import RemitError
from remit.model.connections.mcp_server import SEPARATOR

log = logging.getLogger(__name__)

MOST_TOOLS: Final = 128
LONGEST_DESCRIPTION: Final = 2000
LARGEST_SCHEMA: Final = 32 * 1024
#: Characters of all tools of one server together.
LARGEST_OFFER: Final = 256 * 1024
#: Clients add a prefix, and models accept names of up to 128 characters.
LONGEST_NAME: Final = 100
_CUT: Final = " […]"
_STRANGE: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Offered:
    """One tool of one server."""

    #: As agents call it.
    name: str
    #: As its server calls it.
    original: str
    description: str
    schema: dict[str, Any]


def offer(server: str, tools: Iterable[dict[str, Any]]) -> list[Offered]:
    """A server's tools as agents see them; what cannot be passed on is left out and logged."""
    offered: dict[str, Offered] = {}
    room = LARGEST_OFFER
    for tool in tools:
        entry = _offered(server, tool)
        if entry is None or entry.name in offered:
            log.warning("a tool of the MCP server %s cannot be offered", server)
            continue
        room -= len(entry.name) + len(entry.description) + len(json.dumps(entry.schema))
        if room < 0 or len(offered) >= MOST_TOOLS:
            log.warning("the MCP server %s has more tools than can be offered", server)
            break
        offered[entry.name] = entry
    return list(offered.values())


def _offered(server: str, tool: dict[str, Any]) -> Offered | None:
    original, schema = tool.get("name"), tool.get("inputSchema")
    if not isinstance(original, str) or not original or not isinstance(schema, dict):
        return None
    try:
        check_values({"name": original, "schema": schema})
        if len(json.dumps(schema)) > LARGEST_SCHEMA or schema.get("type", "object") != "object":
            return None
    except (RemitError, ValueError, RecursionError):
        return None
    return Offered(
        exposed_name(server, original),
        original,
        _described(tool.get("description")),
        {**schema, "type": "object"},
    )


def exposed_name(server: str, original: str) -> str:
    """Return a name that every client accepts; a changed one ends with a digest of the original."""
    prefix = f"{server}{SEPARATOR}"
    name = prefix + _STRANGE.sub("_", original)
    if name == prefix + original and len(name) <= LONGEST_NAME:
        return name
    mark = hashlib.sha256(original.encode(errors="replace")).hexdigest()[:8]
    return f"{name[: LONGEST_NAME - len(mark) - 1]}_{mark}"


def _described(text: object) -> str:
    if not isinstance(text, str):
        return ""
    plain = "".join(char if char.isprintable() or char in "\n\t" else " " for char in text)
    plain = plain.encode(errors="replace").decode()
    if len(plain) <= LONGEST_DESCRIPTION:
        return plain
    return plain[: LONGEST_DESCRIPTION - len(_CUT)] + _CUT
