"""The organisation as a chart: boxes in layers, with the state and spending of each branch."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from remit.entrypoints.graph_layout import Sizes, arrange
from remit.entrypoints.web.text.org_lines import Node
from remit.entrypoints.web.text.words import micros

#: Most boxes: the upper levels are drawn, lower ones are behind a link.
MOST_BOXES: Final = 120
_SIZES: Final = Sizes(width=208, height=56, between_layers=56, between_boxes=12)
_LETTERS: Final = 26


def draw(
    tops: Sequence[Node], known: Mapping[str, Mapping[str, Any]], branch: Callable[[str], str]
) -> Markup:
    """Draw the chart; `known` is the result of `org_page.lines`, `branch` the address of a part."""
    shown = _upper(tops)
    edges = [
        (str(node.agent["id"]), str(report.agent["id"]))
        for node in shown.values()
        for report in node.reports
        if report.agent["id"] in shown
    ]
    placed = arrange(list(shown), edges, _SIZES)
    width, height = math.ceil(placed.width), math.ceil(placed.height)
    out = [
        Markup(
            '<svg class="graph chart-of-org" viewBox="0 0 {} {}" width="{}" height="{}"'
            ' role="group" aria-label="Organisation chart">'
        ).format(width, height, width, height)
    ]
    for edge in edges:
        points = placed.lines[edge]
        (x, y), (to_x, to_y) = points[0], points[-1]
        middle = (x + to_x) / 2
        out.append(
            Markup(
                '<path class="line" d="M{:.0f} {:.0f}C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}"/>'
            ).format(x, y, middle, y, middle, to_y, to_x, to_y)
        )
    for own, node in shown.items():
        left_out = any(report.agent["id"] not in shown for report in node.reports)
        out.append(
            _box(placed.boxes[own], node, known.get(own, {}), branch(own) if left_out else "")
        )
    return Markup("").join([*out, Markup("</svg>")])


def _upper(tops: Sequence[Node]) -> dict[str, Node]:
    """Return the upper levels, up to `MOST_BOXES` agents."""
    nodes: dict[str, Node] = {}
    level = list(tops)
    while level and len(nodes) < MOST_BOXES:
        for node in level[: MOST_BOXES - len(nodes)]:
            nodes[str(node.agent["id"])] = node
        level = [report for node in level for report in node.reports if node.agent["id"] in nodes]
    return nodes


def _box(corner: tuple[float, float], node: Node, about: Mapping[str, Any], branch: str) -> Markup:
    agent = node.agent
    title = str(agent["title"] or agent["role"])[:_LETTERS]
    # A branch that is not drawn shows the worst state in it.
    kind = about.get("worst_kind" if branch else "kind", "idle")
    word = about.get("worst" if branch else "word", agent["status"])
    cost = micros(about.get("spent_below", 0)) if about.get("spent_below") else ""
    caption = " · ".join(
        filter(None, (str(word), cost, f"{node.below:,} below" if node.below else ""))
    )
    more = (
        Markup(
            '<a href="{}"><title>Open this branch</title>'
            '<text class="more" x="184" y="16">+</text></a>'
        ).format(branch)
        if branch
        else Markup("")
    )
    return Markup(
        '<g transform="translate({:.0f} {:.0f})" data-agent="{}"><a href="/agents/{}">'
        '<rect class="box is-{}" width="{:.0f}" height="{:.0f}" rx="6"/>'
        '<text class="name" x="12" y="17">{}</text><text class="dim" x="12" y="32">{}</text>'
        '<text class="dim is-{}" x="12" y="47">{}</text></a>{}</g>'
    ).format(
        corner[0],
        corner[1],
        agent["id"],
        agent["id"],
        kind,
        _SIZES.width,
        _SIZES.height,
        str(agent["name"])[:_LETTERS],
        title,
        kind,
        caption[: _LETTERS + 8],
        more,
    )
