"""Trees on the terminal: branches, the label of each node, and a second column about it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from remit.entrypoints.cli.drawing import columns, output, terminal

Node = dict[str, Any]

#: Least width of a label, however deep its branch is.
_SHORTEST_LABEL = 16
#: Cells of branches that leave room for such a label.
_USUAL_BRANCH = 8
_GAP = 2
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
    """Print lines, with labels cut to the terminal's width if there is one. Where labels would have
    no room beside their descriptions, these stand below."""
    shown = [Line(branch, output.clean(label), output.clean(tail)) for branch, label, tail in rows]
    width = terminal.width()
    tails = max((terminal.cells(line.tail) for line in shown), default=0)
    if width is not None and width - tails - _GAP < _SHORTEST_LABEL + _USUAL_BRANCH:
        _draw_stacked(shown, width)
        return
    lefts = max((len(line.branch) + terminal.cells(line.label) for line in shown), default=0)
    column = min(lefts, _FURTHEST if width is None else width - tails - _GAP)
    for branch, label, tail in shown:
        if width is not None:
            room = (column if aligned else width - terminal.cells(tail) - _GAP) - len(branch)
            label = terminal.fit(label, max(_SHORTEST_LABEL, room))
        gap = " " * (column - len(branch) - terminal.cells(label)) + " " if aligned else ""
        print(f"{branch}{label}{gap} {_coloured(tail)}".rstrip())


def _draw_stacked(shown: Sequence[Line], width: int) -> None:
    """Print the description of each node below its label, on as many lines as it takes."""
    for number, (branch, label, tail) in enumerate(shown):
        print(branch + terminal.fit(label, max(_SHORTEST_LABEL, width - len(branch))))
        following = shown[number + 1].branch if number + 1 < len(shown) else ""
        lead = _continued(branch, following)
        for line in terminal.wrapped(tail, max(_SHORTEST_LABEL, width - len(lead))):
            if line:
                print(lead + _coloured(line))


def _continued(branch: str, following: str) -> str:
    """The branches that run on past a node, and the one to what is below it."""
    own = branch.replace("├── ", "│   ").replace("└── ", "    ")
    return own + ("│   " if len(following) > len(branch) else "    ")


def _coloured(tail: str) -> str:
    """A tail with its state, which comes first, in colour."""
    state, dot, rest = tail.partition(" · ")
    return terminal.painted(state, columns.state_style(state)) + dot + rest


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
