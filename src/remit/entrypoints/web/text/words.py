"""Filters of the templates: values as text for people."""

import json
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup

from remit.clock import SECOND, from_iso
from remit.entrypoints.cost_text import cost, cost_if_any
from remit.entrypoints.web.text import commands
from remit.model import text_diff
from remit.model.connections.diff import visible
from remit.model.execution import transcript
from remit.model.messaging.mail import MARKS, Mark
from remit.model.text import dollars as in_dollars
from remit.model.text import plural

#: Labels of statuses for people.
STATUS: Final = {
    "pending_approval": "awaits approval",
    "revision_requested": "sent back",
    "error": "stopped",
}
#: Style of each state; all others are idle.
STATE: Final = {
    name: look
    for look, names in (
        ("work", "running work"),
        ("good", "completed approved accepted good done passed merged"),
        ("wait", "pending pending_approval revision_requested paused ask warn approval question"),
        ("wait", "submitted waiting blocked unread returned"),
        ("bad", "error failed lost rejected dead_letter deny refused failed_run budget"),
        ("bad", "budget_stop bad stopped halted overdue"),
    )
    for name in names.split()
}
MONTHS: Final = (
    *("Jan", "Feb", "Mar", "Apr", "May", "Jun"),
    *("Jul", "Aug", "Sep", "Oct", "Nov", "Dec"),
)
_LONGEST_DIFF: Final = 4000
_LONGEST_TEXT: Final = 256 * 1024
#: Rendering this much takes a good part of a second in the worst case.
_LONGEST_MARKDOWN: Final = 48 * 1024

#: References between files. The page of a file redirects to an outcome's.
_REFERENCE: Final = re.compile(
    r"kb://([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
)
_HEADING: Final = re.compile(r"h([1-6])")
#: Headings of a page and its parts; those of a text begin one level below.
_ABOVE: Final = 2


_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)[\d:.]*(?:Z|\+00:00)")


_SENTENCE_END: Final = re.compile(r"(?<=[.!?]) (?=[A-Z`])")


def without_commands(text: str) -> str:
    """Remove sentences with commands, unless all have one: a page has buttons."""
    if "`remit " not in text:
        return text
    kept = [part for part in _SENTENCE_END.split(text) if "`remit " not in part]
    return " ".join(kept) or text


def with_readable_times(sentence: str) -> str:
    """Return a sentence with times in a readable form."""
    return _TIME.sub(r"\1 \2 UTC", sentence)


def sentence(text: str) -> Markup:
    """Return a sentence with times that a script makes relative to now."""
    text, markup, at = without_commands(text), Markup(""), 0
    for match in _TIME.finditer(text):
        before = text[at : match.start()].removesuffix("at ")
        plain = before.removesuffix("since ")
        # Avoids "since 5 minutes ago".
        drawn = "{}{}" if plain == before else "{}({})"
        markup += Markup(drawn).format(plain, time(match[0]))  # noqa: S704  # ours
        at = match.end()
    return markup + text[at:]


def _fit_in(state: StateCore) -> None:
    """Shift headings below those of the page, without a gap in levels; make references links."""
    last = _ABOVE
    for token in state.tokens:
        heading = _HEADING.fullmatch(token.tag)
        if heading and token.nesting == 1:
            last = min(int(heading[1]) + _ABOVE, last + 1, 6)
        if heading:
            token.tag = f"h{last}"
        if token.children:
            token.children = [new for old in token.children for new in _linked(old)]


def _linked(token: Token) -> list[Token]:
    if token.type == "link_open":
        reference = _REFERENCE.fullmatch(str(token.attrGet("href")))
        if reference:
            token.attrSet("href", f"/files/{reference[1]}")
    if token.type != "text" or "kb://" not in token.content:
        return [token]
    tokens: list[Token] = []
    at = 0
    for match in _REFERENCE.finditer(token.content):
        tokens.append(Token("text", "", 0, content=token.content[at : match.start()]))
        tokens.append(Token("link_open", "a", 1, attrs={"href": f"/files/{match[1]}"}))
        tokens.append(Token("text", "", 0, content=f"kb://…{match[1][-8:]}"))
        tokens.append(Token("link_close", "a", -1))
        at = match.end()
    return [*tokens, Token("text", "", 0, content=token.content[at:])]


# Untrusted text: no HTML and no remote images; only text, links, lists, tables, code.
_markdown = (
    MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")
)
_markdown.core.ruler.push("fit_in", _fit_in)


@lru_cache(maxsize=64)
def markdown(text: str | None) -> Markup:
    """Render untrusted Markdown as safe HTML.

    Cached, because pages refresh with the same texts. Beyond a limit the text is not rendered, only
    shown.
    """
    whole = (text or "")[:_LONGEST_TEXT]
    end = len(whole)
    if end > _LONGEST_MARKDOWN:
        end = whole.rfind("\n", 0, _LONGEST_MARKDOWN) + 1 or _LONGEST_MARKDOWN
    rendered = _markdown.render(whole[:end])
    # Links lead to other sites, which must learn nothing of the page.
    safe = rendered.replace("<a href=", '<a rel="noopener noreferrer nofollow" href=')
    # Long lines are scrolled with the keyboard, too.
    safe = safe.replace("<pre>", '<pre tabindex="0">')
    rest = Markup('<pre tabindex="0">{}</pre>').format(whole[end:]) if end < len(whole) else ""
    return Markup(safe) + rest  # noqa: S704  # the renderer escapes


def letter(text: str | None) -> Markup:
    """Render a letter, with links to pages in place of Remit's commands."""
    return markdown(commands.in_markdown(text or ""))


def sender(message: Mapping[str, Any]) -> str:
    """The author of a letter."""
    return "Remit" if message["sender"] == "system" else str(message["sender_name"])


_MARKS: Final = re.compile(r"(?m)^[ \t]*(?:#{1,6}|>)[ \t]*|\*\*|__|`")
_ITEM: Final = re.compile(r"(?m)^[ \t]*[-*+] ")


def gist(text: str | None, longest: int = 280) -> str:
    """Return the beginning of a text on one line, without Markdown."""
    plain = " ".join(_MARKS.sub("", _ITEM.sub("· ", commands.worded(text or ""))).split())
    if len(plain) <= longest:
        return plain
    cut = plain[:longest]
    return (cut.rpartition(" ")[0] or cut) + "…"


def status(value: str) -> str:
    return STATUS.get(value, value.replace("_", " "))


_MOMENT: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)")


def time(value: str | None) -> Markup:
    """Return a time that is readable as it is, and that a script makes local and relative."""
    if not value:
        return Markup("")
    plain = value[:16].replace("T", " ")
    if _MOMENT.fullmatch(value):  # what a page has hundreds of is not taken apart by `format`
        drawn = f'<relative-time datetime="{value[:19]}Z">{plain} UTC</relative-time>'
        return Markup(drawn)  # noqa: S704  # digits
    return Markup('<relative-time datetime="{}">{} UTC</relative-time>').format(value, plain)


def short(value: str | None) -> str:
    """Return the end of an id, which distinguishes it."""
    return (value or "")[-8:]


def state(value: str) -> str:
    """Return the CSS class of a state."""
    return f"is-{STATE.get(value, 'idle')}"


def dollars(value: float | None) -> str:
    return "" if value is None else in_dollars(value)


def rounded(value: float) -> str:
    """Return money for the grid of a chart."""
    if 0 < value < 0.1:
        return f"${value:.3f}"
    return f"${value:,.2f}".removesuffix(".00") if value < 100 else f"${value:,.0f}"


def money(cents: int | None) -> str:
    return dollars(None if cents is None else cents / 100)


def micros(value: int | None) -> str:
    """Return millionths of a dollar as money."""
    return dollars(None if value is None else value / 1_000_000)


def lasting(seconds: float) -> str:
    """Return a duration in at most two units."""
    if seconds < 0.05:
        return "<0.1 s"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    return f"{hours // 24} d"


def took(run: Mapping[str, Any]) -> str:
    """Return the duration between start and end."""
    if not run.get("started_at") or not run.get("completed_at"):
        return ""
    return lasting((from_iso(run["completed_at"]) - from_iso(run["started_at"])) / SECOND)


def count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def size(value: int | None) -> str:
    if value is None:
        return ""
    amount = float(value)
    for unit in ("bytes", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def pretty(value: Any) -> str:
    """Return a document as indented JSON."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    except RecursionError:
        return "(nested too deep to be shown)"


def diff(before: Any, after: Any) -> list[tuple[str, str]]:
    """Return lines marked as same, added or removed."""
    old, new = _lines(before), _lines(after)
    if len(old) + len(new) > _LONGEST_DIFF:
        # Comparing lines takes quadratic time.
        removed = [("removed", line) for line in old[:_LONGEST_DIFF]]
        added = [("added", line) for line in new[:_LONGEST_DIFF]]
        left = len(old) + len(new) - len(removed) - len(added)
        return removed + added + ([("same", f"… and {left:,} more lines")] if left else [])
    return text_diff.changed(old, new)


def _lines(value: Any) -> list[str]:
    text = value if isinstance(value, str) else pretty(value)
    return text.splitlines()


def mark(word: str) -> str:
    """Return the reason of a message from Remit as a sentence."""
    reason = MARKS[Mark(word)]
    return f"{reason[0].upper()}{reason[1:]}."


def label(key: str) -> str:
    """Label of the key of a setting: `sessionPolicy` is “Session policy”."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", key).lower()
    return f"{words[:1].upper()}{words[1:]}"


def standing(outcome: Mapping[str, Any]) -> str:
    """Return the state of an outcome in a few words."""
    if outcome["status"] != "open":
        return status(outcome["status"]).capitalize()
    if outcome["perpetual"]:
        return "Ongoing"
    if outcome.get("waiting"):
        return "Waiting"
    why = str(outcome.get("why_not_actionable") or "")
    if blocked := re.search(r"waits for ([\d,]+) open", why):
        return f"Blocked by {plural(int(blocked[1].replace(',', '')), 'outcome')}"
    if outcome.get("deferred_until") and why:
        return f"Deferred until {outcome['deferred_until'][:10]}"
    return why.capitalize() or "Ready"


#: The filters, by the names of their functions.
FILTERS: Final[dict[str, Callable[..., Any]]] = {
    **{
        function.__name__: function
        for function in (
            *(commands.linked, commands.worded, cost, cost_if_any, count, diff, dollars, gist),
            *(label, lasting, letter),
            *(mark, micros, money, pretty, sender, sentence, short, size, standing, state, status),
            *(time, took, transcript.denials),
        )
    },
    "markdown": markdown,
    "readable": with_readable_times,
    "shown": visible,
}
