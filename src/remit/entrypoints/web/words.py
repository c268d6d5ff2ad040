"""How values read on a page."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markupsafe import Markup

from remit.clock import SECOND, from_iso
from remit.model import transcript
from remit.model.mail import MARKS, Mark

#: What a status is called where a person reads it.
STATUS: Final = {
    "pending_approval": "awaits approval",
    "revision_requested": "sent back",
    "error": "stopped",
}
_LONGEST_DIFF: Final = 4000
_LONGEST_TEXT: Final = 256 * 1024
#: Setting this much takes a good part of a second when somebody means it badly.
_LONGEST_MARKDOWN: Final = 48 * 1024

#: What knowledge refers to each other by; the page of a file leads on to that of an outcome.
_REFERENCE: Final = re.compile(
    r"kb://([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
)
_HEADING: Final = re.compile(r"h([1-6])")
#: A page and its parts have titles of their own; headings in a text begin below these.
_ABOVE: Final = 2


_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)T(\d\d:\d\d)[\d:.]*(?:Z|\+00:00)")


def with_readable_times(sentence: str) -> str:
    """A sentence with times as a person reads them."""
    return _TIME.sub(r"\1 \2 UTC", sentence)


def _fit_in(state: StateCore) -> None:
    """Headings below those of the page, without leaving one out; references as links."""
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
        found = _REFERENCE.fullmatch(str(token.attrGet("href")))
        if found:
            token.attrSet("href", f"/files/{found[1]}")
    if token.type != "text" or "kb://" not in token.content:
        return [token]
    made: list[Token] = []
    at = 0
    for match in _REFERENCE.finditer(token.content):
        made.append(Token("text", "", 0, content=token.content[at : match.start()]))
        made.append(Token("link_open", "a", 1, attrs={"href": f"/files/{match[1]}"}))
        made.append(Token("text", "", 0, content=f"kb://…{match[1][-8:]}"))
        made.append(Token("link_close", "a", -1))
        at = match.end()
    return [*made, Token("text", "", 0, content=token.content[at:])]


# No HTML of somebody else, no pictures from elsewhere: text, links, lists, tables, code.
_markdown = (
    MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")
)
_markdown.core.ruler.push("fit_in", _fit_in)


@lru_cache(maxsize=64)
def markdown(text: str | None) -> Markup:
    """Somebody's text, as HTML that holds nothing but text.

    Pages look again and again at the same texts. What is very long is not set, only shown.
    """
    whole = (text or "")[:_LONGEST_TEXT]
    end = len(whole)
    if end > _LONGEST_MARKDOWN:
        end = whole.rfind("\n", 0, _LONGEST_MARKDOWN) + 1 or _LONGEST_MARKDOWN
    rendered = _markdown.render(whole[:end])
    # Links lead away from here: who follows one does not take the page along.
    safe = rendered.replace("<a href=", '<a rel="noopener noreferrer nofollow" href=')
    rest = Markup("<pre>{}</pre>").format(whole[end:]) if end < len(whole) else Markup("")
    return Markup(safe) + rest  # noqa: S704  # the renderer escapes


def status(value: str) -> str:
    return STATUS.get(value, value.replace("_", " "))


def time(value: str | None) -> Markup:
    """Readable as it is; a script makes it local and relative."""
    if not value:
        return Markup("")
    plain = value[:16].replace("T", " ")
    return Markup('<relative-time datetime="{}">{} UTC</relative-time>').format(value, plain)


def short(value: str | None) -> str:
    """As much of an id as tells it from others."""
    return (value or "")[-8:]


def money(cents: int | None) -> str:
    return "" if cents is None else f"${cents / 100:,.2f}"


def micros(value: int | None) -> str:
    """Millionths of a dollar."""
    return "" if value is None else f"${value / 1_000_000:,.4f}".rstrip("0").rstrip(".")


def dollars(value: float | None) -> str:
    """Small amounts count where turns cost fractions of a cent."""
    if not value:
        return "" if value is None else "$0"
    return f"${value:,.2f}" if value >= 1 else f"${value:.4f}"


def took(run: Mapping[str, Any]) -> str:
    """How long something with a beginning and an end lasted."""
    if not run.get("started_at") or not run.get("completed_at"):
        return ""
    seconds = (from_iso(run["completed_at"]) - from_iso(run["started_at"])) / SECOND
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


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
    """A document as somebody would write it."""
    try:
        return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True)
    except RecursionError:
        return "(nested too deep to be shown)"


def diff(before: Any, after: Any) -> list[tuple[str, str]]:
    """Lines with what became of them: same, added, removed."""
    old, new = _lines(before), _lines(after)
    if len(old) + len(new) > _LONGEST_DIFF:
        # Finding what stayed takes time that grows with the square.
        removed = [("removed", line) for line in old[:_LONGEST_DIFF]]
        added = [("added", line) for line in new[:_LONGEST_DIFF]]
        left = len(old) + len(new) - len(removed) - len(added)
        return removed + added + ([("same", f"… and {left:,} more lines")] if left else [])
    found: list[tuple[str, str]] = []
    for what, i, j, k, m in difflib.SequenceMatcher(None, old, new).get_opcodes():
        if what == "equal":
            found += [("same", line) for line in old[i:j]]
            continue
        found += [("removed", line) for line in old[i:j]]
        found += [("added", line) for line in new[k:m]]
    return found


def _lines(value: Any) -> list[str]:
    text = value if isinstance(value, str) else pretty(value)
    return text.splitlines()


def mark(word: str) -> str:
    """Why Remit sent something, in a sentence."""
    said = MARKS[Mark(word)]
    return f"{said[0].upper()}{said[1:]}."


FILTERS: Final = {
    "markdown": markdown,
    "status": status,
    "time": time,
    "short": short,
    "money": money,
    "micros": micros,
    "count": count,
    "size": size,
    "dollars": dollars,
    "took": took,
    "denials": transcript.denials,
    "pretty": pretty,
    "diff": diff,
    "mark": mark,
}
