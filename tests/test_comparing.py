"""What changed between two texts, and texts on a page."""

from __future__ import annotations

import random
import time

import pytest

from remit.entrypoints.web.text import words
from remit.model.text_diff import MOST_SHOWN, compare

OUTCOME = "01a1e010-f95a-719e-8b54-f315996e295d"


def test_changed_lines_are_shown_with_a_few_around_them() -> None:
    before = "\n".join(f"line {number}" for number in range(40))
    found = compare(before, before.replace("line 20", "another"))
    assert found.lines[0] == ("gap", "17")
    assert ("removed", "line 20") in found.lines
    assert ("added", "another") in found.lines
    assert found.lines[-1] == ("gap", "16")
    assert (found.added, found.removed, found.cut_off) == (1, 1, False)
    assert compare("same", "same").added == 0
    assert compare("", "new").lines == [("added", "new")]
    assert compare("old", "").lines == [("removed", "old")]
    assert compare("a\n", "a\nb\n").lines == [("same", "a"), ("added", "b"), ("same", "")]


def test_texts_made_to_be_slow_are_compared_in_a_moment_and_cut_off() -> None:
    chance = random.Random(1)
    lines = [str(chance.random()) for _ in range(20_000)]
    other = lines[:]
    chance.shuffle(other)
    began = time.perf_counter()
    found = compare("\n".join(lines), "\n".join(other))
    assert time.perf_counter() - began < 10
    assert found.cut_off
    assert len(found.lines) <= MOST_SHOWN


def test_headings_of_a_text_stand_below_those_of_the_page() -> None:
    shown = words.markdown("#### Deep\n\n# Top\n\n###### Deepest\n")
    assert [shown[at + 1 : at + 3] for at in range(len(shown)) if shown[at : at + 2] == "<h"] == [
        "h3",
        "h3",
        "h4",
    ]


def test_references_to_knowledge_become_links_except_in_code() -> None:
    shown = words.markdown(f"See kb://{OUTCOME}, [it](kb://{OUTCOME}) and `kb://{OUTCOME}`; kb://x")
    assert shown.count(f'href="/files/{OUTCOME}"') == 2
    assert f"<code>kb://{OUTCOME}</code>" in shown
    assert "kb://x" in shown


@pytest.mark.slow
def test_hostile_markdown_stays_text_and_takes_no_time() -> None:
    for text in (
        "[x](javascript:alert(1))",
        "[x](data:text/html,<script>alert(1)</script>)",
        "![x](https://example.org/spy.png)",
        "<img src=x onerror=alert(1)>",
        "<script>alert(1)</script>",
        f"kb://{OUTCOME}<script>",
    ):
        shown = words.markdown(text)
        assert "<img" not in shown
        assert "<script" not in shown
        assert 'href="javascript' not in shown
        assert 'href="data' not in shown
    for text in ("[" * 50_000, ">" * 50_000, "*a_" * 20_000, "`" * 50_000, "a" * 100_000):
        began = time.perf_counter()
        words.markdown(text)
        assert time.perf_counter() - began < 10, text[:3]


def test_text_that_is_scrolled_is_reached_with_the_keyboard() -> None:
    code = "```\n<pre>\n```\n"
    shown = words.markdown(code + "para *em*\n" * 10_000)
    assert shown.count("<pre") == shown.count('<pre tabindex="0">') == 2
    assert "&lt;pre&gt;" in shown


def test_what_is_too_long_to_be_set_is_shown_as_it_stands() -> None:
    long = "para *em*\n" * 10_000 + "<script>the end</script>"
    shown = words.markdown(long)
    assert "<em>em</em>" in shown
    assert shown.endswith("&lt;script&gt;the end&lt;/script&gt;</pre>")
