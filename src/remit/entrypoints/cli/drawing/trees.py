"""Trees on the terminal: branches, the label of each node, and a second column about it."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from remit.entrypoints.cli.drawing import output

Node = dict[str, Any]

#: Least width of a label, however deep its branch is.
_SHORTEST_LABEL = 16
#: Rightmost start of the second column when lines may be of any length.
_FURTHEST = 72


class Line(NamedTuple):
    branch: str
    label: str
    tail: str


def lines(
    nodes: Sequence[Node],
    inner: str,
    line: Callable[[str, Node], Line],
    *,
    depth: int | None = None,
    lead: str = "",
) -> Iterator[Line]:
    """Yield the lines of a forest; `inner` is the key of a node's children."""
    for node in nodes:
        last = node is nodes[-1]
        yield line(lead + ("└── " if last else "├── "), node)
        below = node.get(inner) or []
        deeper = lead + ("    " if last else "│   ")
        if depth is None or depth > 1:
            less = None if depth is None else depth - 1
            yield from lines(below, inner, line, depth=less, lead=deeper)
        if hidden := node.get("more") or (len(below) if depth == 1 else 0):
            yield Line(f"{deeper}└── ", f"… {hidden} more below", "")


def draw(rows: Sequence[Line], *, aligned: bool = True) -> None:
    """Print lines, cut to the terminal's width if there is one."""
    from rich.cells import cell_len

    shown = [Line(branch, output.clean(label), output.clean(tail)) for branch, label, tail in rows]
    width = terminal_width()
    tails = max((cell_len(line.tail) for line in shown), default=0)
    lefts = max((len(line.branch) + cell_len(line.label) for line in shown), default=0)
    column = min(lefts, _FURTHEST if width is None else max(_SHORTEST_LABEL, width - tails - 2))
    for branch, label, tail in shown:
        if width is not None:
            room = (column if aligned else width - cell_len(tail) - 2) - len(branch)
            label = fit(label, max(_SHORTEST_LABEL, room))
        gap = " " * (column - len(branch) - cell_len(label)) + " " if aligned else ""
        print(f"{branch}{label}{gap} {tail}".rstrip())


def terminal_width() -> int | None:
    """Return the width of lines; None without a terminal or COLUMNS, so that nothing is cut off."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return None
    return max(40, shutil.get_terminal_size().columns)


def fit(text: str, width: int) -> str:
    """Cut a text to `width` cells, and mark the cut with an ellipsis."""
    from rich.cells import cell_len, set_cell_size

    return text if cell_len(text) <= width else set_cell_size(text, width - 1) + "…"


# Agents


def draw_agents(title: str, forest: Sequence[Node], depth: int | None = None) -> None:
    output.say(title)
    if not forest:
        output.say("  The company has no agents.")
    draw(list(lines(forest, "reports", _agent_line, depth=depth)), aligned=False)


def _agent_line(branch: str, agent: Node) -> Line:
    title = f", {agent['title']}" if agent.get("title") else ""
    status = (agent.get("status") or "").replace("_", " ")
    return Line(branch, f"{agent['name']} ({agent['role']}{title})", status)


def nested(agents: Sequence[Node]) -> list[Node]:
    """Return a flat list of agents as a forest. An agent whose boss is not in it becomes a root."""
    nodes = {agent["id"]: {**agent, "reports": []} for agent in agents}
    forest: list[Node] = []
    for node in nodes.values():
        boss = nodes.get(node["reportsTo"])
        (forest if boss is None else boss["reports"]).append(node)
    return forest
