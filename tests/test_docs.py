"""What the documents claim exists."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from remit.entrypoints.cli.main import cli
from tests.marks import all_tests
from tests.test_cli_help import commands

REPOSITORY = Path(__file__).parent.parent
DOCUMENTS = sorted([REPOSITORY / "README.md", *REPOSITORY.glob("docs/*.md")])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_every_proof_that_a_document_names_exists(document: Path) -> None:
    named = set(re.findall(r"tests/\w+\.py::\w+", document.read_text()))
    known = set(all_tests())
    assert named <= known, sorted(named - known)


def test_the_guarantees_say_what_was_tried_and_what_proves_them(
    request: pytest.FixtureRequest,
) -> None:
    text = (REPOSITORY / "docs" / "guarantees.md").read_text()
    found = re.findall(r"^\| (.+?) \| (.*?) \| (`tests/.*`) \|$", text, re.MULTILINE)
    assert len(found) >= 100
    if request.config.getoption("fast"):
        return
    # Where a whole file is run, the number of its cases is known.
    cases = Counter(item.nodeid.partition("[")[0] for item in request.session.items)
    for promise, tried, proof in found:
        assert tried, promise
        named = re.findall(r"tests/\w+\.py::\w+", proof)
        said = re.fullmatch(r"([\d,]+) cases?(?:, [\d,]+ more in the campaign)?", tried)
        if said and all(name in cases for name in named):
            assert int(said[1].replace(",", "")) == sum(cases[name] for name in named), promise


def test_every_threat_names_the_attack_that_was_tried() -> None:
    text = (REPOSITORY / "docs" / "security-model.md").read_text()
    protected = text.partition("## What is protected")[2].partition("## What is NOT")[0]
    rows = [line for line in protected.splitlines() if line.startswith("| ")]
    threats = [row for row in rows if not row.startswith("| Threat ")]
    assert len(threats) >= 55
    for row in threats:
        assert len(row.strip("|").split(" | ")) == 3, row
        assert re.search(r"tests/\w+\.py::\w+", row), row


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_source_files_that_a_document_names_exist(document: Path) -> None:
    for name in re.findall(
        r"`((?:services|authority|store|entrypoints|model)/[\w/]+\.py)`", document.read_text()
    ):
        assert (REPOSITORY / "src" / "remit" / name).exists(), f"{document.name} names {name}"


@pytest.mark.requirement("HB-20")
def test_the_documents_say_what_a_workspace_does_not_protect() -> None:
    runtime = (REPOSITORY / "docs" / "runtime.md").read_text()
    security = (REPOSITORY / "docs" / "security-model.md").read_text()
    readme = (REPOSITORY / "README.md").read_text()
    assert "What is **not** held: the network" in runtime
    assert "Without either sandbox, programs are not started at all" in runtime
    assert "A workspace is a folder, not a sandbox" in security
    assert "The sandbox does not hold the network" in readme


def test_the_readme_stays_short() -> None:
    assert len((REPOSITORY / "README.md").read_text().splitlines()) < 150


def shell_lines(text: str) -> list[list[str]]:
    """The `remit` command lines in the shell examples of a document."""
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    lines = [line.partition(" #")[0] for block in blocks for line in block.splitlines()]
    return [
        shlex.split(line.rpartition("| ")[2]) for line in lines if re.search(r"(^|\| )remit ", line)
    ]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_examples_use_commands_and_options_that_exist(document: Path) -> None:
    known = dict(commands(cli))
    for _, *words in shell_lines(document.read_text()):
        paths = [" ".join(["remit", *words[:depth]]) for depth in (2, 1)]
        path = next(path for path in paths if path in known)
        options = {name for option in known[path].params for name in option.opts}
        used = {word for word in words if word.startswith("--")}
        assert used <= options, f"{document.name}: {' '.join(words)}"


def test_the_readme_shows_commands() -> None:
    assert len(shell_lines((REPOSITORY / "README.md").read_text())) >= 15
