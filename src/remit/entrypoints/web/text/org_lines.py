"""The organisation as lines of an indented list, depth first; and as a chart: boxes in layers, with
the state and spending of each branch."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from markupsafe import Markup

from remit.entrypoints import cost_text
from remit.entrypoints.graph_layout import Sizes, arrange

#: Most boxes: the upper levels are drawn, lower ones are behind a link.
MOST_BOXES: Final = 120
_SIZES: Final = Sizes(width=208, height=56, between_layers=56, between_boxes=12)
_LETTERS: Final = 26


@dataclass
class Node:
    """One agent with its direct reports."""

    agent: Mapping[str, Any]
    reports: list[Node] = field(default_factory=list)
    #: Number of agents below, reports of reports included.
    below: int = 0
    #: Whether the search finds the agent itself; `kept` is also true above a found one.
    found: bool = True
    kept: bool = True


@dataclass(frozen=True)
class Line:
    agent: Mapping[str, Any]
    reports: int
    below: int
    #: False for a boss that is kept only because of an agent below it.
    found: bool
    #: Whether a list of reports follows, and how many lists end here.
    opens: bool
    closes: int
    #: Number of agents below, if direct reports of it are not shown; else 0.
    hidden: int


def plant(agents: Iterable[Mapping[str, Any]]) -> list[Node]:
    """Return agents as a forest, each of them once even if the stored tree has a cycle."""
    nodes = {agent["id"]: Node(agent) for agent in agents}
    tops: list[Node] = []
    for own, node in nodes.items():
        boss = nodes.get(node.agent["reports_to"] or "")
        (tops if boss is None else boss.reports).append(node)
        assert own == node.agent["id"]
    reached = {node.agent["id"] for node in _walk(tops)}
    for own, node in nodes.items():
        if own not in reached:  # part of a cycle, or below one: cut it open here
            boss = nodes[node.agent["reports_to"]]
            boss.reports.remove(node)
            tops.append(node)
            reached |= {below.agent["id"] for below in _walk([node])}
    for node in reversed(list(_walk(tops))):
        node.below = sum(1 + report.below for report in node.reports)
    return tops


def _walk(tops: Iterable[Node]) -> Iterator[Node]:
    """Walk level by level, so that a boss always comes before its reports."""
    waiting = deque(tops)
    seen: set[int] = set()
    while waiting:
        node = waiting.popleft()
        if id(node) not in seen:
            seen.add(id(node))
            yield node
            waiting.extend(node.reports)


def part_of(tops: list[Node], agent: str) -> Node | None:
    return next((node for node in _walk(tops) if node.agent["id"] == agent), None)


def everybody_below(node: Node) -> set[str]:
    return {below.agent["id"] for below in _walk([node])}


def seek(tops: list[Node], text: str, word: str) -> int:
    """Mark agents that match and the bosses above them; return the number of matches."""
    sought = text.casefold().split()
    number = 0
    for node in reversed(list(_walk(tops))):
        agent = node.agent
        description = f"{agent['name']} {agent['title']} {agent['role']}".casefold()
        node.found = all(term in description for term in sought) and word in ("", agent["word"])
        node.kept = node.found or any(report.kept for report in node.reports)
        number += node.found
    return number


def lines(tops: list[Node], most: int) -> list[Line]:
    """Return at most `most` lines, the upper levels first; omitted agents are counted at their
    boss."""
    kept = [node for node in _walk(tops) if node.kept]
    shown = {id(node) for node in kept[:most]}
    outline: list[Line] = []
    # Stack of nodes, each with the number of lists that end after it.
    waiting: list[tuple[Node, int]] = []
    _push(waiting, [node for node in tops if id(node) in shown], 0)
    while waiting:
        node, closes = waiting.pop()
        inner = [report for report in node.reports if id(report) in shown]
        hidden = sum(report.kept and id(report) not in shown for report in node.reports)
        outline.append(
            Line(
                agent=node.agent,
                reports=len(node.reports),
                below=node.below,
                found=node.found,
                opens=bool(inner),
                closes=0 if inner else closes,
                hidden=node.below if hidden else 0,
            )
        )
        _push(waiting, inner, closes + 1)
    return outline


def _push(waiting: list[tuple[Node, int]], nodes: list[Node], closes: int) -> None:
    """Push siblings; the last one also ends its list, and every list that it is the last of."""
    for place, node in enumerate(reversed(nodes)):
        waiting.append((node, closes if place == 0 else 0))


# ── as a chart ──────────────────────────────────────────────────────────────────────────────────


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
    cost = cost_text.cost_if_any(about["cost_below"]) if about else ""
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
