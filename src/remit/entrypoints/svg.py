"""Outcomes as a drawing that any browser shows, by day and by night."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping
from html import escape
from typing import Any, NamedTuple

from remit.model.layout import Layout, Point, Sizes, arrange

_LETTER = 7.2
_SIZES = Sizes()
_ROWS = 2
_ROW_LENGTH = int((_SIZES.width - 24) / _LETTER)
_HEAD = 40

# Plain rules instead of variables, for programs that know only a little of CSS.
_STYLE = """
svg{color-scheme:light dark}
text{font:13px system-ui,sans-serif;fill:#1f2328}
.page{fill:#fff}
.heading{font-size:16px;font-weight:600}
.dim{font-size:11px;fill:#59636e}
.box{stroke-width:1.5}
.open{fill:#ddf4ff;stroke:#0969da}
.completed{fill:#dafbe1;stroke:#1a7f37}
.closed{fill:#eff1f3;stroke:#818b98;stroke-dasharray:4 3}
.line{fill:none;stroke:#818b98;stroke-width:1.5}
.blocks{stroke-dasharray:5 4}
.head{fill:#818b98}
@media(prefers-color-scheme:dark){
text{fill:#f0f6fc}
.page{fill:#0d1117}
.dim{fill:#9198a1}
.open{fill:#0c2d52;stroke:#4493f8}
.completed{fill:#12361f;stroke:#3fb950}
.closed{fill:#21262d;stroke:#656c76}
.line{stroke:#656c76}
.head{fill:#656c76}
}
"""


class Drawing(NamedTuple):
    """A part of a page that is drawn. How it looks is said in the page's style sheet."""

    markup: str
    width: int
    height: int


def draw(graph: Mapping[str, Any], link: Callable[[str], str] | None = None) -> str:
    """The drawing of what `picture.show` found; `link` makes an address from an id."""
    placed, drawn = _shapes(graph, link, "arrow")
    return _page(placed, _heading(graph), drawn)


def embed(
    graph: Mapping[str, Any], link: Callable[[str], str], *, name: str, here: str = ""
) -> Drawing:
    """The same for the middle of a page: no style, and a name of its own for what it refers to.

    What `here` names stands out.
    """
    placed, drawn = _shapes(graph, link, f"{name}-arrow", here)
    width, height = math.ceil(placed.width), math.ceil(placed.height)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    markup = "\n".join(
        (
            f'<svg class="graph" {size} role="group" aria-label="{_heading(graph)}">',
            f"<defs>{_arrow(f'{name}-arrow')}</defs>",
            *drawn,
            "</svg>",
        )
    )
    return Drawing(markup, width, height)


def _shapes(
    graph: Mapping[str, Any], link: Callable[[str], str] | None, arrow: str, here: str = ""
) -> tuple[Layout, list[str]]:
    nodes = {node["id"]: node for node in graph["nodes"]}
    parts = [(parent, child) for parent, child in graph["parts"]]
    known = set(parts)
    # What is part of an outcome and blocks it, too, is drawn as its part.
    waits = ((waiting, blocker) for blocker, waiting in graph["blockers"])
    blockers = [edge for edge in waits if edge not in known]
    placed = arrange(list(nodes), [*parts, *blockers], _SIZES)
    drawn = [_line(placed.lines[edge], "line", "end", arrow) for edge in parts]
    drawn += [_line(placed.lines[edge], "line blocks", "start", arrow) for edge in blockers]
    drawn += [_box(placed.boxes[one], node, link, one == here) for one, node in nodes.items()]
    return placed, drawn


def _arrow(name: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
        ' orient="auto-start-reverse"><path class="head" d="M0 0L8 4L0 8z"/></marker>'
    )


def _page(placed: Layout, heading: str, drawn: list[str]) -> str:
    width, height = max(placed.width, 420), placed.height + _HEAD
    size = f'width="{width:.0f}" height="{height:.0f}"'
    return "\n".join(
        (
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title">',
            f'<title id="title">{heading}</title>',
            f"<style>{_STYLE}</style><defs>{_arrow('arrow')}</defs>",
            f'<rect class="page" {size}/>',
            f'<text class="heading" x="{_SIZES.margin:.0f}" y="28">{heading}</text>',
            f'<g transform="translate(0 {_HEAD})">',
            *drawn,
            "</g></svg>\n",
        )
    )


def _heading(graph: Mapping[str, Any]) -> str:
    count = len(graph["nodes"])
    if graph["cut_off"]:
        shown = f"the oldest {count} outcomes; there are more than a drawing can show"
    else:
        shown = f"{count} outcome{'' if count == 1 else 's'}"
    return _text(f"{graph['company']}: {shown}")


def _line(points: list[Point], kind: str, end: str, arrow: str) -> str:
    """Straight past other boxes, bent in the gaps between layers."""
    (x, y), *rest = points
    path = [f"M{x:.1f} {y:.1f}"]
    for number, (right, down) in enumerate(rest):
        if number % 2:
            path.append(f"L{right:.1f} {down:.1f}")
        else:
            middle = (x + right) / 2
            path.append(f"C{middle:.1f} {y:.1f} {middle:.1f} {down:.1f} {right:.1f} {down:.1f}")
        x, y = right, down
    return f'<path class="{kind}" d="{"".join(path)}" marker-{end}="url(#{arrow})"/>'


def _box(
    corner: Point, node: Mapping[str, Any], link: Callable[[str], str] | None, here: bool
) -> str:
    x, y = corner
    status = node["status"] if node["status"] in ("open", "completed", "closed") else "open"
    kind = f"box {status} here" if here else f"box {status}"
    rows = _rows(str(node["title"]))
    first = y + (18 if len(rows) > 1 else 22)
    lines = [
        f'<text x="{x + 12:.1f}" y="{first + 15 * number:.1f}">{_text(row)}</text>'
        for number, row in enumerate(rows)
    ]
    below = _cut(f"{node['status']} · {node['owner']}", _ROW_LENGTH + 5)
    box = (
        f"<g><title>{_text(node['title'])} ({_text(node['status'])})</title>"
        f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{_SIZES.width:.0f}"'
        f' height="{_SIZES.height:.0f}" rx="6"/>{"".join(lines)}'
        f'<text class="dim" x="{x + 12:.1f}" y="{y + 48:.1f}">{_text(below)}</text></g>'
    )
    return box if link is None else f'<a href="{escape(link(node["id"]))}">{box}</a>'


def _rows(title: str) -> list[str]:
    """A title over as many lines as a box has."""
    rows = [""]
    for word in title.split():
        if not rows[-1] or _length(f"{rows[-1]} {word}") <= _ROW_LENGTH:
            rows[-1] = f"{rows[-1]} {word}".strip()
        else:
            rows.append(word)
    if len(rows) > _ROWS:
        rows = [*rows[: _ROWS - 1], " ".join(rows[_ROWS - 1 :])]
    return [_cut(row, _ROW_LENGTH) for row in rows]


def _cut(text: str, longest: int) -> str:
    if _length(text) <= longest:
        return text
    while text and _length(text) >= longest:
        text = text[:-1]
    return text.rstrip() + "…"


def _length(text: str) -> int:
    """In Latin letters; others can be twice as wide."""
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _text(value: object) -> str:
    """Somebody's words in XML: no markup, and no characters that XML cannot hold."""
    text = str(value)
    return escape("".join(char if _is_xml(char) else "\N{REPLACEMENT CHARACTER}" for char in text))


def _is_xml(char: str) -> bool:
    return char.isprintable() and not 0xD800 <= ord(char) <= 0xDFFF and ord(char) & 0xFFFE != 0xFFFE
