"""How values read on a page."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any, Final

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

#: What a status is called where a person reads it.
STATUS: Final = {
    "pending_approval": "awaits approval",
    "revision_requested": "sent back",
    "error": "stopped",
}
_LONGEST_MARKDOWN: Final = 256 * 1024
_LONGEST_DIFF: Final = 4000

# No HTML of somebody else, no pictures from elsewhere: text, links, lists, tables, code.
_markdown = (
    MarkdownIt("commonmark", {"html": False, "linkify": False}).enable("table").disable("image")
)


def markdown(text: str | None) -> Markup:
    """Somebody's text, as HTML that holds nothing but text."""
    whole = (text or "")[:_LONGEST_MARKDOWN]
    tokens = _markdown.parse(whole)
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            # The headings of a page are ours; somebody's text only looks like one.
            if token.nesting == 1:
                token.attrSet("class", f"heading {token.tag}")
            token.tag = "p"
    rendered = str(_markdown.renderer.render(tokens, _markdown.options, {}))
    # Links lead away from here: who follows one does not take the page along.
    safe = rendered.replace("<a href=", '<a rel="noopener noreferrer nofollow" href=')
    return Markup(safe)  # noqa: S704  # the renderer escapes


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


def plural(number: int, one: str, several: str | None = None) -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def lines(mapping: Mapping[str, Any]) -> Markup:
    """A mapping as the rows of a definition list."""
    rows = (f"<dt>{escape(key)}</dt><dd>{escape(value)}</dd>" for key, value in mapping.items())
    return Markup("".join(rows))  # noqa: S704  # each part is escaped


FILTERS: Final = {
    "markdown": markdown,
    "status": status,
    "time": time,
    "short": short,
    "money": money,
    "micros": micros,
    "count": count,
    "size": size,
    "pretty": pretty,
    "diff": diff,
}
