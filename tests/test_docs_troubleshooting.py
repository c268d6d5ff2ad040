"""docs/troubleshooting.md quotes the program word for word."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
PAGE = (REPOSITORY / "docs" / "troubleshooting.md").read_text()
QUOTED = re.findall(r"^\| `([^`]+)` \|", PAGE, re.MULTILINE)
GAP = "…"


@cache
def said_by_the_program() -> str:
    """All texts in the source, one a line; a gap for each value that is filled in."""
    texts = []
    for path in sorted((REPOSITORY / "src").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.JoinedStr):
                texts.append("".join(_part(part) for part in node.values))
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                texts.append(node.value)
    return "\n".join(text.replace("\n", " ") for text in texts)


def _part(part: ast.expr) -> str:
    return part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else GAP


def in_source(words: str) -> bool:
    """Whether the program has texts with these words, in this order within each."""
    # A sentence may be made of two texts, as one with its cause and one with its end.
    sentences = re.split(r"(?<=[.…]) (?=It )", words)
    return all(_is_said(sentence) for sentence in sentences if sentence != GAP)


def _is_said(sentence: str) -> bool:
    pieces = [piece for piece in sentence.split(GAP) if piece.strip(" .()")]
    pattern = ".*".join(re.escape(piece) for piece in pieces)
    return bool(pieces) and re.search(pattern, said_by_the_program()) is not None


@pytest.mark.requirement("FX-59")
@pytest.mark.parametrize("words", QUOTED)
def test_the_program_says_what_the_page_quotes(words: str) -> None:
    assert in_source(words), words


def test_the_page_quotes_enough_and_a_wrong_quotation_is_found() -> None:
    assert len(QUOTED) >= 40
    assert not in_source("Port … on … cannot be taken (…).")
    assert not in_source("It is paused; somebody must resume it.")
