"""Drawing outcomes: where boxes go, and what the drawing says."""

import random
import re
import time
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from remit.entrypoints import svg
from remit.entrypoints.graph_layout import Layout, Sizes, arrange, crossings
from remit.services.people import users
from remit.services.work import outcome_walks, outcomes
from tests.company import Company, opened
from tests.http_client import serving

Graph = tuple[list[str], list[tuple[str, str]]]
SVG = "{http://www.w3.org/2000/svg}"
SIZES = Sizes()


def acyclic(nodes: int, edges: int, seed: int) -> Graph:
    """A graph in which everything but the first is for something earlier."""
    chance = random.Random(seed)
    names = [f"n{number}" for number in range(nodes)]
    found = {(names[chance.randrange(n // 3 + 1)], names[n]) for n in range(1, nodes)}
    while len(found) < edges:
        first, second = sorted(chance.sample(range(nodes), 2))
        found.add((names[first], names[second]))
    return names, sorted(found)


def assert_clear(layout: Layout) -> None:
    """No two boxes touch, and all are on the page."""
    boxes = sorted(layout.boxes.values())
    for (x, y), (other_x, other_y) in pairwise(boxes):
        assert other_x >= x + SIZES.width or other_y >= y + SIZES.height
    for x, y in boxes:
        assert 0 <= x <= layout.width - SIZES.width
        assert 0 <= y <= layout.height - SIZES.height


@pytest.mark.parametrize("seed", range(20))
def test_boxes_never_overlap_and_lines_go_to_the_right(seed: int) -> None:
    nodes, edges = acyclic(60, 110, seed)
    layout = arrange(nodes, edges)
    assert set(layout.boxes) == set(nodes)
    assert set(layout.lines) == set(edges)
    assert_clear(layout)
    for (source, target), points in layout.lines.items():
        assert points[0] == (
            layout.boxes[source][0] + SIZES.width,
            layout.boxes[source][1] + SIZES.height / 2,
        )
        assert points[-1] == (layout.boxes[target][0], layout.boxes[target][1] + SIZES.height / 2)
        assert all(before[0] < behind[0] for before, behind in pairwise(points))


@pytest.mark.parametrize("seed", range(10))
def test_a_line_never_runs_through_a_box(seed: int) -> None:
    nodes, edges = acyclic(40, 70, seed)
    layout = arrange(nodes, edges)
    for points in layout.lines.values():
        for (left, y), (_, end) in pairwise(points[1:-1]):
            if y == end:  # the level stretch in which it passes a layer
                for x, top in layout.boxes.values():
                    assert x != left or not top < y < top + SIZES.height


def test_the_same_graph_is_drawn_the_same_way() -> None:
    nodes, edges = acyclic(80, 120, 1)
    assert arrange(nodes, edges) == arrange(nodes, edges)
    assert arrange(nodes, [*edges, *edges]) == arrange(nodes, edges)


def test_five_hundred_outcomes_are_placed_in_a_moment() -> None:
    nodes, edges = acyclic(500, 800, 1)
    best = min(_seconds(nodes, edges) for _ in range(5))  # of the processor, whoever else is busy
    assert best < 0.2, f"{best * 1000:.0f} ms"


def _seconds(nodes: list[str], edges: list[tuple[str, str]]) -> float:
    start = time.process_time()
    assert_clear(arrange(nodes, edges))
    return time.process_time() - start


@pytest.mark.parametrize(
    ("nodes", "edges"),
    [
        ([], []),
        (["a"], []),
        (["a"], [("a", "a"), ("a", "gone")]),
        (["a", "b", "c"], [("a", "b"), ("b", "c"), ("c", "a")]),
        (["a", "b"], [("a", "b"), ("b", "a")]),
        ([f"n{n}" for n in range(300)], []),
        ([f"n{n}" for n in range(300)], [(f"n{n}", f"n{n + 1}") for n in range(299)]),
        (
            [f"n{n}" for n in range(300)],
            [("n0", f"n{n}") for n in range(1, 300)] + [(f"n{n}", f"n{n + 1}") for n in range(299)],
        ),
    ],
    ids=["nothing", "one", "itself", "circle", "pair", "loose", "chain", "fan"],
)
def test_odd_graphs_are_placed_as_well(nodes: list[str], edges: list[tuple[str, str]]) -> None:
    layout = arrange(nodes, edges)
    assert set(layout.boxes) == set(nodes)
    assert_clear(layout)


def test_crossings_are_counted() -> None:
    assert crossings("ab", "xy", [("a", "x"), ("b", "y")]) == 0
    assert crossings("ab", "xy", [("a", "y"), ("b", "x")]) == 1
    every = [(one, other) for one in "abc" for other in "xyz"]
    assert crossings("abc", "xyz", every) == 9


def test_a_graph_that_can_be_drawn_without_crossings_is() -> None:
    """A tree, given in an order that crosses everywhere."""
    nodes = [f"n{number}" for number in range(63)]
    edges = [(f"n{(number - 1) // 2}", f"n{number}") for number in range(1, 63)]
    random.Random(3).shuffle(nodes)
    assert _crossings(arrange(nodes, edges), edges) == 0


def test_sweeping_saves_most_crossings() -> None:
    nodes, edges = acyclic(120, 170, 5)
    drawn = _crossings(arrange(nodes, edges), edges)
    chance = random.Random(5)
    shuffled = arrange(nodes, edges)
    columns: dict[float, list[str]] = {}
    for node, (x, _) in shuffled.boxes.items():
        columns.setdefault(x, []).append(node)
    boxes = dict(shuffled.boxes)
    for members in columns.values():
        places = [boxes[node] for node in members]
        chance.shuffle(places)
        boxes.update(zip(members, places, strict=True))
    assert drawn * 2 < _crossings(shuffled._replace(boxes=boxes), edges)


def _crossings(layout: Layout, edges: list[tuple[str, str]]) -> int:
    """Between neighbouring layers, from where the boxes are in the end."""
    columns: dict[float, list[str]] = {}
    for node in sorted(layout.boxes, key=lambda node: layout.boxes[node][1]):
        columns.setdefault(layout.boxes[node][0], []).append(node)
    return sum(
        crossings(columns[left], columns[right], edges) for left, right in pairwise(sorted(columns))
    )


# What the drawing says

HOSTILE = [
    "</title><script>alert(1)</script>",
    '" onload="alert(1)" x=\'&amp;',
    "]]><!-- &#x3c;",
    "\u202egnp.exe \u0007 \ufffe \ud800",
    "長い題名" * 40,
    "a" * 200,
    "",
]


def graph_of(titles: list[str], **more: Any) -> dict[str, Any]:
    nodes = [
        {"id": f"id{n}", "title": title, "status": "open", "owner_id": "x", "owner": title[:64]}
        for n, title in enumerate(titles)
    ]
    parts = [[f"id{n}", f"id{n + 1}"] for n in range(len(titles) - 1)]
    return {
        "company": titles[0] if titles else "",
        "nodes": nodes,
        "parts": parts,
        "blockers": [],
        "cut_off": False,
        **more,
    }


def test_a_drawing_of_hostile_titles_is_plain_xml() -> None:
    drawing = svg.draw(graph_of(HOSTILE), link=lambda id_: f"javascript:'\"<{id_}>")
    root = ElementTree.fromstring(drawing.encode())  # noqa: S314  we made it
    assert {element.tag.removeprefix(SVG) for element in root.iter()} == {
        *("svg", "title", "style", "defs", "marker", "path", "rect", "text", "g", "a"),
    }
    for element in root.iter():
        assert not any(name.startswith("on") for name in element.attrib)
    shown = [element.text for element in root.iter(f"{SVG}title")]
    assert any("</title><script>alert(1)</script>" in (text or "") for text in shown)


def test_a_drawing_tells_status_and_owner_in_words_by_day_and_by_night() -> None:
    graph = graph_of(["Ship it", "Build it", "Sell it"])
    graph["nodes"][1]["status"] = "completed"
    graph["nodes"][2]["status"] = "closed"
    graph["blockers"] = [["id1", "id2"], ["id0", "id1"]]
    drawing = svg.draw(graph)
    assert "prefers-color-scheme:dark" in drawing
    root = ElementTree.fromstring(drawing)  # noqa: S314
    words = [element.text for element in root.iter(f"{SVG}text")]
    assert {"open · Ship it", "completed · Build it", "closed · Sell it"} <= set(words)
    lines = [path.attrib for path in root.iter(f"{SVG}path") if "d" in path.attrib]
    assert sum("marker-end" in line for line in lines) == 2
    assert sum("marker-start" in line for line in lines) == 2
    assert "<a " not in drawing


def test_a_drawing_says_when_it_is_not_everything() -> None:
    assert "there are more" in svg.draw(graph_of(["a"], cut_off=True))
    assert "1 outcome<" in svg.draw(graph_of(["a"]))
    assert ElementTree.fromstring(svg.draw(graph_of([]))) is not None  # noqa: S314


@pytest.mark.slow
def test_two_thousand_outcomes_are_drawn_in_seconds() -> None:
    nodes, edges = acyclic(2000, 3200, 2)
    graph = graph_of([f"Outcome {n}" for n in range(2000)])
    graph["parts"] = [[a.replace("n", "id"), b.replace("n", "id")] for a, b in edges]
    start = time.process_time()
    assert svg.draw(graph).count('class="box') == len(nodes)
    assert time.process_time() - start < 5


# Who sees what


def below(company: Company, title: str, parent: str, **options: Any) -> str:
    made = company.call(company.ceo.caller, outcomes.create, parent=parent, title=title, **options)
    return str(made["id"])


def test_everybody_is_shown_what_they_may_read(database_url: str, tmp_path: Path) -> None:
    with opened(database_url, tmp_path) as company:
        worker = company.agent("worker")
        company.agent("other")
        goal = below(company, "Goal", company.ceo.id)
        first = below(company, "First", goal)
        second = below(company, "Second", goal, blocked_by=[first])
        whole = company.call(company.board, outcome_walks.drawing, company=company.id)
        assert {node["title"] for node in whole["nodes"]} >= {"Goal", "First", "Second"}
        assert [goal, first] in whole["parts"]
        assert whole["blockers"] == [[first, second]]
        assert not whole["cut_off"]
        part = company.call(company.board, outcome_walks.drawing, company=company.id, root=goal)
        assert {node["title"] for node in part["nodes"]} == {"Goal", "First", "Second"}
        seen = company.call(worker.caller, outcome_walks.drawing, company=company.id)
        ids = {node["id"] for node in seen["nodes"]}
        assert worker.id in ids
        assert not ids & {goal, first, second}
        company.call(company.board, users.add, company=company.id, name="eye", role="observer")
        eye = company.token_of("eye")
        assert company.call(eye, outcome_walks.drawing, company=company.id) == whole


def test_a_drawing_has_a_limit_and_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcome_walks, "MOST_DRAWN", 3)
    with opened(f"sqlite:///{tmp_path}/remit.db", tmp_path) as company:
        for number in range(4):
            below(company, f"Goal {number}", company.ceo.id)
        shown = company.call(company.board, outcome_walks.drawing, company=company.id)
        assert (len(shown["nodes"]), shown["cut_off"], shown["most"]) == (3, True, 3)


def test_the_drawing_over_http_cannot_act_as_a_page_of_ours(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        board = running.board
        (company,) = board.must("GET", "/api/companies")
        target = f"/api/companies/{company['id']}/outcomes/graph"
        answer = board("GET", f"{target}.svg")
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "image/svg+xml"
        policy = answer.headers["Content-Security-Policy"]
        assert policy.startswith("sandbox; default-src 'none'")
        assert "script" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert ElementTree.fromstring(answer.body).tag == f"{SVG}svg"  # noqa: S314
        assert re.search(rb"open \xc2\xb7 ceo", answer.body)
        nodes = board.must("GET", f"{target}.json")["nodes"]
        assert [node["owner"] for node in nodes] == ["ceo"]
        below_one = board("GET", f"{target}.svg?root={nodes[0]['id']}")
        assert below_one.status == 200
        assert board("GET", f"{target}.svg?root={company['id']}").status == 404
        assert running.client()("GET", f"{target}.svg").status == 401
