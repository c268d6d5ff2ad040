"""Links in place of commands in Remit's sentences, to the page that does the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from markupsafe import Markup

#: Label and address by the first words of a command; `{}` stands for its argument.
PLACES: Final = {
    "account": ("Set-up", "/setup"),
    "adapter": ("Programs and models", "/setup/adapters"),
    "agent resume": ("“Resume” of {}", "/org?q={}"),
    "agent set": ("the configuration of {}", "/org?q={}"),
    "approval show": ("the approval", "/approvals/{}"),
    "bind": ("Channels", "/setup/channels"),
    "change": ("Changes", "/changes"),
    "company": ("Set-up", "/setup"),
    "doctor": ("Doctor", "/instance"),
    "event verify": ("Verify", "/events"),
    "folder": ("Folders", "/setup/folders"),
    "inbox": ("Mail", "/inbox"),
    "link": ("Account", "/account"),
    "mcp": ("MCP servers", "/setup/mcp-servers"),
    "org": ("Organisation", "/org"),
    "outcome show": ("the outcome", "/outcomes/{}"),
    "repo check": ("Checks of repositories", "/setup/checks"),
    "repo checks": ("Checks of repositories", "/setup/checks"),
    "run show": ("open the run", "/runs/{}"),
    "secret": ("Secrets", "/setup/secrets"),
    "user": ("Set-up", "/setup"),
}
_COMMAND: Final = re.compile(r"`remit ([^`\n]+)`")
_LITERAL: Final = re.compile(r"`([^`\n]+)`")


def place(command: str) -> tuple[str, str] | None:
    """Label and address of the page that does the same as a command."""
    noun, _, rest = command.partition(" ")
    verb, _, rest = rest.partition(" ")
    found = PLACES.get(f"{noun} {verb}") or PLACES.get(noun)
    if found is None:
        return None
    words, address = found
    if "{}" not in address:
        return found
    argument = rest.split(" ", 1)[0]
    return (words.format(argument), address.format(quote(argument, safe=""))) if argument else None


def _split(text: str) -> Iterator[tuple[str, tuple[str, str] | None]]:
    """Yield the text before each command, with the place that replaces the command."""
    at = 0
    for match in _COMMAND.finditer(text):
        if found := place(match[1]):
            yield text[at : match.start()], found
            at = match.end()
    yield text[at:], None


def linked(text: str) -> Markup:
    """Return a sentence with links in place of commands; other literals become code."""
    made = Markup("")
    for before, found in _split(text):
        made += _with_literals(before)
        if found:
            made += Markup('<a href="{1}">{0}</a>').format(*found)
    return made


def _with_literals(text: str) -> Markup:
    made, at = Markup(""), 0
    for match in _LITERAL.finditer(text):
        made += Markup("{}<code>{}</code>").format(text[at : match.start()], match[1])
        at = match.end()
    return made + text[at:]


def worded(text: str) -> str:
    """Like `linked`, with labels only, where no link can stand."""
    return "".join(before + (found[0] if found else "") for before, found in _split(text))


def in_markdown(text: str) -> str:
    """Replace commands in Markdown by links, except in code blocks."""
    if "`remit " not in text:
        return text
    lines, listing = [], False
    for line in text.splitlines(keepends=True):
        listing ^= line.lstrip().startswith(("```", "~~~"))
        if not listing:
            line = "".join(
                before + (f"[{found[0]}]({found[1]})" if found else "")
                for before, found in _split(line)
            )
        lines.append(line)
    return "".join(lines)
