"""The lines of the organisation, whatever the tree is like."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from remit.entrypoints.web.text import org_lines


def agent(own: str, boss: str | None, **more: Any) -> dict[str, Any]:
    found = {"id": own, "reports_to": boss, "name": own, "title": "", "role": "engineer"}
    return {**found, "word": "idle", **more}


def nested(lines: list[org_lines.Line]) -> dict[str, str | None]:
    """Who stands below whom in the list that is written, read as a browser reads it."""
    bosses: dict[str, str | None] = {}
    above: list[str] = []
    for line in lines:
        own = line.agent["id"]
        bosses[own] = above[-1] if above else None
        if line.opens:
            above.append(own)
        for _ in range(line.closes):
            above.pop()
    assert not above, "every list that was begun is ended"
    return bosses


# On a busy machine the first examples take longer than Hypothesis expects.
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(min_value=-1, max_value=30), max_size=30), st.integers(1, 40))
def test_every_tree_is_written_with_each_agent_once_below_its_boss(
    bosses: list[int], most: int
) -> None:
    # Any boss at all: also cycles, oneself, and somebody who is not there.
    rows = [agent(str(own), None if boss < 0 else str(boss)) for own, boss in enumerate(bosses)]
    tops = org_lines.plant(rows)
    org_lines.seek(tops, "", "")
    whole = nested(org_lines.lines(tops, 1000))
    assert sorted(whole) == sorted(row["id"] for row in rows)
    for row in rows:
        assert whole[row["id"]] in (row["reports_to"], None)
    cut = nested(org_lines.lines(tops, most))
    assert len(cut) == min(most, len(rows))
    assert all(whole[own] == boss for own, boss in cut.items())


def test_who_is_sought_is_shown_with_the_bosses_above() -> None:
    rows = [
        agent("ceo", None),
        agent("ada", "ceo", title="Head of Kernels"),
        agent("bob", "ada", word="paused"),
        agent("eve", "ceo"),
    ]
    for text, word, shown in (
        ("kernel ADA", "", ["ceo", "ada"]),
        ("", "paused", ["ceo", "ada", "bob"]),
        ("nobody", "", []),
        ("bob", "idle", []),
    ):
        tops = org_lines.plant(rows)
        number = org_lines.seek(tops, text, word)
        lines = org_lines.lines(tops, 100)
        assert [line.agent["id"] for line in lines] == shown
        assert sum(line.found for line in lines) == number


def test_what_is_left_out_is_counted_at_its_boss() -> None:
    rows = [agent("ceo", None), *(agent(f"a{n}", "ceo") for n in range(3)), agent("b", "a0")]
    tops = org_lines.plant(rows)
    org_lines.seek(tops, "", "")
    lines = {line.agent["id"]: line for line in org_lines.lines(tops, 4)}
    assert list(lines) == ["ceo", "a0", "a1", "a2"]
    assert (lines["a0"].hidden, lines["a1"].hidden) == (1, 0)
    assert (lines["ceo"].reports, lines["ceo"].below) == (3, 4)


def test_a_company_of_ten_thousand_is_cut_at_once() -> None:
    rows = [agent(str(n), str((n - 1) // 8) if n else None) for n in range(10_000)]
    began = time.perf_counter()
    tops = org_lines.plant(rows)
    assert org_lines.seek(tops, "", "idle") == 10_000
    lines = org_lines.lines(tops, 1500)
    assert time.perf_counter() - began < 3
    assert len(lines) == 1500
    assert lines[0].below == 9_999
    assert sum(line.hidden > 0 for line in lines) > 0
