"""SVG drawing of outcomes, in light and dark colours."""

import math
import unicodedata
from collections.abc import Callable, Mapping
from html import escape
from typing import Any

from remit.entrypoints.graph_layout import Layout, Point, Sizes, arrange

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


def draw(graph: Mapping[str, Any], link: Callable[[str], str] | None = None) -> str:
    """Draw a graph of outcomes as an SVG document; `link` makes an address from an id."""
    nodes, parts, blockers, placed = _arranged(graph)
    drawn = [_line(placed.lines[edge], "line", "end") for edge in parts]
    drawn += [_line(placed.lines[edge], "line blocks", "start") for edge in blockers]
    drawn += [_box(placed.boxes[node_id], node, link) for node_id, node in nodes.items()]
    return _page(placed, _heading(graph), drawn)


def embed(
    graph: Mapping[str, Any], link: Callable[[str], str], *, name: str, here: str = ""
) -> str:
    """Draw the graph as an SVG element of a page: without a style, with its own element ids.

    The node `here` is highlighted.
    """
    nodes, parts, blockers, placed = _arranged(graph)
    width, height = math.ceil(placed.width), math.ceil(placed.height)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    box = f'x="-12" y="-20" width="{_SIZES.width:.0f}" height="{_SIZES.height:.0f}" rx="6"'
    arrow = f"url(#{name}-arrow)"
    return "\n".join(
        (
            f'<svg class="graph" {size} role="group" aria-label="Drawing of outcomes">',
            f'<defs>{_arrow(f"{name}-arrow")}<rect id="{name}-box" {box}/></defs>',
            f'<g class="line" marker-end="{arrow}">',
            *(f'<path d="{_path(placed.lines[edge], 0)}"/>' for edge in parts),
            f'</g><g class="line blocks" marker-start="{arrow}">',
            *(f'<path d="{_path(placed.lines[edge], 0)}"/>' for edge in blockers),
            "</g>",
            *(
                _node(placed.boxes[node_id], node, link(node_id), f"{name}-box", node_id == here)
                for node_id, node in nodes.items()
            ),
            "</svg>",
        )
    )


def _node(corner: Point, node: Mapping[str, Any], link: str, box: str, here: bool) -> str:
    """Draw a box, positioned once by a transform for all its parts."""
    title = str(node["title"])
    rows = _rows(title)
    first, *more = rows
    lines = [f"<text>{_text(first)}</text>"]
    lines += [f'<text y="{15 * number}">{_text(row)}</text>' for number, row in enumerate(more, 1)]
    whole = f"<title>{_text(title)}</title>" if rows[-1].endswith("…") else ""
    kind = f"box {_status(node)} here" if here else f"box {_status(node)}"
    x, y = corner[0] + 12, corner[1] + 20
    return (
        f'<a href="{escape(link)}" transform="translate({x:.0f} {y:.0f})">'
        f'<use href="#{box}" class="{kind}"/>{"".join(lines)}'
        f'<text class="dim" y="29">{_caption(node)}</text>{whole}</a>'
    )


def _caption(node: Mapping[str, Any]) -> str:
    """Line below the title: state, owner, and the number of parts that are not shown."""
    state = str(node.get("state") or node["status"])
    hidden = f" · +{node['hidden']} below" if node.get("hidden") else ""
    caption = f"{'in parts' if state == 'split' else state} · {node['owner']}{hidden}"
    return _text(_cut(caption, _ROW_LENGTH + 5))


def _status(node: Mapping[str, Any]) -> str:
    if node.get("state"):
        return str(node["state"])
    return node["status"] if node["status"] in ("open", "completed", "closed") else "open"


Edges = list[tuple[str, str]]


def _arranged(
    graph: Mapping[str, Any],
) -> tuple[dict[str, Mapping[str, Any]], Edges, Edges, Layout]:
    """Return the nodes by id, the lines to parts and to blockers, and where all of it goes."""
    nodes = {node["id"]: node for node in graph["nodes"]}
    parts = [(parent, child) for parent, child in graph["parts"]]
    known = set(parts)
    # A part that also blocks its outcome is drawn as its part.
    waits = ((waiting, blocker) for blocker, waiting in graph["blockers"])
    blockers = [edge for edge in waits if edge not in known]
    return nodes, parts, blockers, arrange(list(nodes), [*parts, *blockers], _SIZES)


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


def _line(points: list[Point], kind: str, end: str) -> str:
    return f'<path class="{kind}" d="{_path(points)}" marker-{end}="url(#arrow)"/>'


def _path(points: list[Point], digits: int = 1) -> str:
    """Return path data: straight within a layer, past other boxes, and curved between layers."""

    def at(*values: float) -> str:
        return " ".join(f"{value:.{digits}f}" for value in values)

    (x, y), *rest = points
    path = [f"M{at(x, y)}"]
    for number, (right, down) in enumerate(rest):
        if number % 2:
            path.append(f"L{at(right, down)}")
        else:
            middle = (x + right) / 2
            path.append(f"C{at(middle, y, middle, down, right, down)}")
        x, y = right, down
    return "".join(path)


def _box(corner: Point, node: Mapping[str, Any], link: Callable[[str], str] | None) -> str:
    x, y = corner
    rows = _rows(str(node["title"]))
    first = y + (18 if len(rows) > 1 else 22)
    lines = [
        f'<text x="{x + 12:.1f}" y="{first + 15 * number:.1f}">{_text(row)}</text>'
        for number, row in enumerate(rows)
    ]
    box = (
        f"<g><title>{_text(node['title'])} ({_text(node['status'])})</title>"
        f'<rect class="box {_status(node)}" x="{x:.1f}" y="{y:.1f}" width="{_SIZES.width:.0f}"'
        f' height="{_SIZES.height:.0f}" rx="6"/>{"".join(lines)}'
        f'<text class="dim" x="{x + 12:.1f}" y="{y + 48:.1f}">{_caption(node)}</text></g>'
    )
    return box if link is None else f'<a href="{escape(link(node["id"]))}">{box}</a>'


def _rows(title: str) -> list[str]:
    """Wrap a title to the lines of a box."""
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
    """Return the width in Latin letters; East Asian ones count twice."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)


def _text(value: object) -> str:
    """Escape a text for XML, and replace characters that XML cannot hold."""
    text = str(value)
    if text.isascii() and text.isprintable():
        return escape(text)
    return escape("".join(char if _is_xml(char) else "\N{REPLACEMENT CHARACTER}" for char in text))


def _is_xml(char: str) -> bool:
    return char.isprintable() and not 0xD800 <= ord(char) <= 0xDFFF and ord(char) & 0xFFFE != 0xFFFE
