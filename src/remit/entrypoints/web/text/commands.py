"""Links in place of commands in Remit's sentences, to the page that does the same."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import quote

from markupsafe import Markup, escape

#: Label and address by the first words of a command; `{}` stands for its argument.
PLACES: Final = {
    "account": ("Set-up", "/setup"),
    "adapter": ("Programs and models", "/setup/adapters"),
    "agent lend": ("the configuration of {}", "/org?q={}"),
    "agent resume": ("“Resume” of {}", "/org?q={}"),
    "agent set": ("the configuration of {}", "/org?q={}"),
    "approval approve": ("Approvals", "/approvals"),
    "approval show": ("the approval", "/approvals/{}"),
    "bind": ("Channels", "/setup/channels"),
    "cancel": ("“Take back”", "/inbox/{}/take-back"),
    "change": ("Changes", "/changes"),
    "company": ("Set-up", "/setup"),
    "confirm": ("the decision", "/confirmations/{}"),
    "doctor": ("Doctor", "/instance"),
    "event verify": ("Verify", "/events"),
    "folder": ("Folders", "/setup/folders"),
    "grant give": ("the rights of {}", "/org?q={}"),
    "inbox": ("Mail", "/inbox"),
    "link": ("Account", "/account"),
    "mcp": ("MCP servers", "/setup/mcp-servers"),
    "org": ("Organisation", "/org"),
    "outcome show": ("the outcome", "/outcomes/{}"),
    "read": ("the letter", "/inbox/{}"),
    "repo check": ("Checks of repositories", "/setup/checks"),
    "repo checks": ("Checks of repositories", "/setup/checks"),
    "repo set": ("how proposals to {} are pushed", "/setup/repositories/pushing?repo={}"),
    "resume": ("“Resume” of {}", "/org?q={}"),
    "run show": ("open the run", "/runs/{}"),
    "secret": ("Secrets", "/setup/secrets"),
    "user": ("Set-up", "/setup"),
}
_COMMAND: Final = re.compile(r"`remit ([^`\n]+)`")
_LITERAL: Final = re.compile(r"`([^`\n]+)`")


def place(command: str) -> tuple[str, str] | None:
    """Label and address of the page that does the same as a command."""
    noun, _, rest = command.partition(" ")
    verb, _, after_verb = rest.partition(" ")
    link = PLACES.get(f"{noun} {verb}")
    if link is not None:
        rest = after_verb
    else:
        link = PLACES.get(noun)
    if link is None:
        return None
    words, address = link
    if "{}" not in address:
        return link
    argument = rest.split(" ", 1)[0]
    return (words.format(argument), address.format(quote(argument, safe=""))) if argument else None


def _split(text: str) -> Iterator[tuple[str, tuple[str, str] | None]]:
    """Yield the text before each command, with the place that replaces the command."""
    at = 0
    for match in _COMMAND.finditer(text):
        if link := place(match[1]):
            yield text[at : match.start()], link
            at = match.end()
    yield text[at:], None


def linked(text: str) -> Markup:
    """Return a sentence with links in place of commands; other literals become code."""
    markup = Markup("")
    for before, link in _split(text):
        markup += _with_literals(before)
        if link:
            markup += Markup('<a href="{1}">{0}</a>').format(*link)
    return markup


def _with_literals(text: str) -> Markup:
    return Markup(_LITERAL.sub(r"<code>\1</code>", str(escape(text))))  # noqa: S704  # ours


def worded(text: str, form: str = "{0}") -> str:
    """Like `linked`, with labels only, where no link can stand; or with links of another form."""
    return "".join(before + (form.format(*link) if link else "") for before, link in _split(text))


def in_markdown(text: str) -> str:
    """Replace commands in Markdown by links, except in code blocks."""
    if "`remit " not in text:
        return text
    lines, listing = [], False
    for line in text.splitlines(keepends=True):
        listing ^= line.lstrip().startswith(("```", "~~~"))
        if not listing:
            line = worded(line, "[{0}]({1})")
        lines.append(line)
    return "".join(lines)
