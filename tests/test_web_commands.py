"""Commands in sentences: on a page the place where the same is done stands for each."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import remit
from remit.entrypoints.web.text import commands, words
from tests.browsing import Office
from tests.web_attacks import web_routes

SOURCE = Path(remit.__file__).parent
#: What a shell alone does: before there are pages, or without the instance.
SHELL_ALONE = {"up", "login", "open", "apply", "revive", "kb", "notify", "down"}


def sentences() -> Iterator[str]:
    """Texts of everything below the entrypoints, docstrings aside."""
    for path in SOURCE.rglob("*.py"):
        if "entrypoints" in path.parts or "migrations" in path.parts:
            continue
        tree = ast.parse(path.read_text())
        documented = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = (one.value if isinstance(one, ast.Constant) else "X" for one in node.values)
                yield "".join(map(str, parts))
            elif isinstance(node, ast.Constant) and id(node) not in documented:
                yield str(node.value)


def test_every_command_that_a_sentence_names_has_a_place_on_the_pages() -> None:
    named = {found for text in sentences() for found in re.findall(r"`remit ([a-z][^`]*)`", text)}
    assert len(named) > 20
    without = {one for one in named if commands.place(one) is None}
    assert {one.partition(" ")[0] for one in without} <= SHELL_ALONE, without


@pytest.mark.requirement("FX-49")
def test_every_place_is_a_page(office: Office) -> None:
    pages = {path for method, path in web_routes(office.running.app) if method == "GET"}
    shapes = [re.compile(re.sub(r"\{\w+\}", "[^/]+", path)) for path in pages - {"/{path:path}"}]
    for words_, address in commands.PLACES.values():
        path = address.format("x").partition("?")[0]
        assert any(shape.fullmatch(path) for shape in shapes), (words_, address)


def test_a_command_becomes_a_link_in_sentences_and_letters() -> None:
    told = "It did: `remit run show 12`. See `remit <b>`, or `remit agent set a&b x=y`."
    assert commands.linked(told) == (
        'It did: <a href="/runs/12">open the run</a>. See <code>remit &lt;b&gt;</code>, or '
        '<a href="/org?q=a%26b">the configuration of a&amp;b</a>.'
    )
    assert commands.linked("`remit read 12` shows it; `remit cancel 12` takes it back.") == (
        '<a href="/inbox/12">the letter</a> shows it; '
        '<a href="/inbox/12/take-back">“Take back”</a> takes it back.'
    )
    assert commands.worded("Run `remit doctor`, then wait.") == "Run Doctor, then wait."
    letter = "Look: `remit run show 12`.\n\n```\n`remit run show 13`\n```\n"
    assert "/runs/12" in words.letter(letter)
    assert "/runs/13" not in words.letter(letter)


def test_a_command_without_its_argument_is_no_link_but_a_literal() -> None:
    for text in ("remit run show", "remit read", "remit no such", "remit", "command"):
        assert commands.linked(f"Set `{text}`.") == f"Set <code>{text}</code>."
    assert commands.linked("`<b>` and `") == "<code>&lt;b&gt;</code> and `"


def test_a_gist_has_no_marks_of_markdown() -> None:
    text = "# Be kind\n\n- try **each** page\n- write `it` down\n\nSee `remit run show 12`."
    assert words.gist(text) == "Be kind · try each page · write it down See open the run."
    assert words.gist("a long word " * 50, 20) == "a long word a long…"
