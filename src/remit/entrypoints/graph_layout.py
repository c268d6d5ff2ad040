"""Layered layout of a graph: from left to right, with few crossing lines.

Each node is in the layer behind everything that points to it (longest path). A line over several
layers bends at a dummy in each of them. Within a layer nodes move towards the middle of their
neighbours (barycentre), back and forth, and the order with the fewest crossings is kept.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

SWEEPS = 8
#: Most dummies in all; a line that would need more is drawn straight.
MOST_DUMMIES = 20_000

Point = tuple[float, float]
Edge = tuple[str, str]


class Sizes(NamedTuple):
    width: float = 220
    height: float = 56
    between_layers: float = 80
    between_boxes: float = 18
    #: Room for a passing line.
    dummy: float = 10
    margin: float = 24


class Layout(NamedTuple):
    width: float
    height: float
    #: The upper left corner of each box.
    boxes: dict[str, Point]
    #: Where each line goes: out of one box, through its bends, into another.
    lines: dict[Edge, list[Point]]


def arrange(nodes: Sequence[str], edges: Iterable[Edge], sizes: Sizes | None = None) -> Layout:
    """Place nodes so that every edge goes to the right, as far as there is no cycle."""
    sizes = sizes or Sizes()
    known = dict.fromkeys(nodes)
    lines = [edge for edge in dict.fromkeys(edges) if edge[0] != edge[1]]
    lines = [edge for edge in lines if edge[0] in known and edge[1] in known]
    layer = _layers(list(known), lines)
    paths = _with_dummies(lines, layer)
    links = [pair for path in paths.values() for pair in pairwise(path)]
    order = _ordered(layer, links)
    centre = _centres(order, links, layer, sizes, known)
    return _drawn(known, paths, layer, centre, sizes)


def crossings(upper: Sequence[str], lower: Sequence[str], links: Iterable[Edge]) -> int:
    """Count the crossings of the lines between two layers."""
    at = {node: number for number, node in enumerate(upper)}
    to = {node: number for number, node in enumerate(lower)}
    ends = sorted((at[a], to[b]) for a, b in links if a in at and b in to)
    seen: list[int] = []
    total = 0
    for _, end in ends:
        total += len(seen) - bisect_right(seen, end)
        insort(seen, end)
    return total


def _layers(nodes: list[str], edges: list[Edge]) -> dict[str, int]:
    behind: dict[str, list[str]] = {node: [] for node in nodes}
    waiting = dict.fromkeys(nodes, 0)
    for source, target in edges:
        behind[source].append(target)
        waiting[target] += 1
    layer = dict.fromkeys(nodes, 0)
    ready = [node for node in nodes if not waiting[node]]
    left = dict.fromkeys(nodes)
    while left:
        # A cycle is entered at its first node; the line that closes it goes back to the left.
        for node in ready or [next(iter(left))]:
            if node not in left:
                continue
            del left[node]
            for target in behind[node]:
                if target in left:
                    layer[target] = max(layer[target], layer[node] + 1)
                    waiting[target] -= 1
        ready = [node for node in left if waiting[node] <= 0]
    return layer


def _with_dummies(edges: list[Edge], layer: dict[str, int]) -> dict[Edge, list[str]]:
    """Return the path of each line from left to right, and put its dummies into their layers."""
    paths: dict[Edge, list[str]] = {}
    budget = MOST_DUMMIES
    for source, target in edges:
        first, last = sorted((source, target), key=lambda node: layer[node])
        between = range(layer[first] + 1, layer[last])
        if len(between) > budget:
            paths[source, target] = [first, last]
            continue
        budget -= len(between)
        dummies = [f"\0{source}\0{target}\0{number}" for number in between]
        layer.update(zip(dummies, between, strict=True))
        paths[source, target] = [first, *dummies, last]
    return paths


def _ordered(layer: Mapping[str, int], links: list[Edge]) -> list[list[str]]:
    """The nodes of each layer, from top to bottom."""
    rows: list[list[str]] = [[] for _ in range(max(layer.values(), default=-1) + 1)]
    for node, number in layer.items():
        rows[number].append(node)
    before, behind, between = _neighbours(links, layer)
    best, fewest = [list(row) for row in rows], _all_crossings(rows, between)
    for sweep in range(SWEEPS):
        if not fewest:
            break
        forth = sweep % 2 == 0
        numbers = range(1, len(rows)) if forth else range(len(rows) - 2, -1, -1)
        for number in numbers:
            fixed = {node: at for at, node in enumerate(rows[number - 1 if forth else number + 1])}
            _sort_by_middle(rows[number], before if forth else behind, fixed)
        now = _all_crossings(rows, between)
        if now < fewest:
            best, fewest = [list(row) for row in rows], now
    return best


def _neighbours(
    links: list[Edge], layer: Mapping[str, int]
) -> tuple[dict[str, list[str]], dict[str, list[str]], list[list[Edge]]]:
    before: dict[str, list[str]] = {}
    behind: dict[str, list[str]] = {}
    between: list[list[Edge]] = [[] for _ in range(max(layer.values(), default=0) + 1)]
    for source, target in links:
        before.setdefault(target, []).append(source)
        behind.setdefault(source, []).append(target)
        if layer[target] == layer[source] + 1:
            between[layer[source]].append((source, target))
    return before, behind, between


def _all_crossings(rows: list[list[str]], between: list[list[Edge]]) -> int:
    return sum(
        crossings(upper, lower, links)
        for upper, lower, links in zip(rows, rows[1:], between, strict=False)
    )


def _sort_by_middle(
    row: list[str], neighbours: Mapping[str, list[str]], fixed: Mapping[str, int]
) -> None:
    middle: dict[str, float] = {}
    for at, node in enumerate(row):
        near = [fixed[other] for other in neighbours.get(node, ()) if other in fixed]
        middle[node] = sum(near) / len(near) if near else float(at)
    row.sort(key=lambda node: middle[node])


def _centres(
    order: list[list[str]],
    links: list[Edge],
    layer: Mapping[str, int],
    sizes: Sizes,
    known: Mapping[str, None],
) -> dict[str, float]:
    """Return the vertical centre of each node: near its neighbours, without overlap."""
    before, behind, _ = _neighbours(links, layer)
    room = {node: sizes.height if node in known else sizes.dummy for row in order for node in row}
    centre: dict[str, float] = {}
    for row in order:
        _pack(row, dict.fromkeys(row, 0.0), room, centre, sizes)
    for sweep in range(4):
        for row in order if sweep % 2 == 0 else reversed(order):
            wanted = {}
            for node in row:
                near = [*before.get(node, ()), *behind.get(node, ())] if sweep else before.get(node)
                wanted[node] = sum(centre[o] for o in near) / len(near) if near else centre[node]
            _pack(row, wanted, room, centre, sizes)
    top = min((centre[node] - room[node] / 2 for node in centre), default=0.0)
    return {node: at - top + sizes.margin for node, at in centre.items()}


def _pack(
    row: list[str],
    wanted: Mapping[str, float],
    room: Mapping[str, float],
    centre: dict[str, float],
    sizes: Sizes,
) -> None:
    """Put nodes at their wanted places; colliding ones are moved around the mean of their
    wishes."""
    #: Groups of touching nodes: the first node, the sum of wanted places, the number of nodes.
    groups: list[tuple[int, float, int]] = []
    offsets = [0.0]
    for upper, lower in pairwise(row):
        offsets.append(offsets[-1] + (room[upper] + room[lower]) / 2 + sizes.between_boxes)
    for number, node in enumerate(row):
        group = (number, wanted[node] - offsets[number], 1)
        while groups and groups[-1][1] / groups[-1][2] > group[1] / group[2]:
            first, total, count = groups.pop()
            group = (first, total + group[1], count + group[2])
        groups.append(group)
    for first, total, count in groups:
        for number in range(first, first + count):
            centre[row[number]] = total / count + offsets[number]


def _drawn(
    known: Mapping[str, None],
    paths: Mapping[Edge, list[str]],
    layer: Mapping[str, int],
    centre: Mapping[str, float],
    sizes: Sizes,
) -> Layout:
    step = sizes.width + sizes.between_layers
    left = {node: sizes.margin + number * step for node, number in layer.items()}
    boxes = {node: (left[node], centre[node] - sizes.height / 2) for node in known}
    lines: dict[Edge, list[Point]] = {}
    for edge, path in paths.items():
        points = [(left[path[0]] + sizes.width, centre[path[0]])]
        for dummy in path[1:-1]:
            points += [(left[dummy], centre[dummy]), (left[dummy] + sizes.width, centre[dummy])]
        points.append((left[path[-1]], centre[path[-1]]))
        lines[edge] = points if path[0] == edge[0] else points[::-1]
    depth = max(layer.values(), default=0)
    width = 2 * sizes.margin + depth * step + sizes.width
    height = max(centre.values(), default=0.0) + sizes.height / 2 + sizes.margin
    return Layout(width, height, boxes, lines)
