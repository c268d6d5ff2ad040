"""What the documents claim exists."""

from __future__ import annotations

import importlib
import re
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import click
import pytest

from remit.entrypoints.cli.main import cli
from remit.entrypoints.cli.overview import ALIASES
from remit.entrypoints.http.server import protocol
from remit.ids import TokenKind, new_token
from remit.model.messaging.mail import MOST_HOPS
from remit.services.connections import channels
from tests import full_disk, test_crash_matrix, test_linearizability, test_runtime_kills
from tests.crashing.situations import SITUATIONS, verb_of
from tests.marks import all_tests
from tests.selection import LEFT_OUT, case_of, not_tried
from tests.test_cli_help import commands

REPOSITORY = Path(__file__).parent.parent
#: The tests that kill at random, and where.
KILLS = {
    "test_an_instance_and_its_agents_are_killed_at_random_moments": "SQLite",
    "test_workers_and_agents_on_one_database_are_killed_at_random_moments": "PostgreSQL",
}
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
    other = any(request.config.getoption(one) for one in ("fast", "campaign", "everything"))
    # Where a whole file is run, the number of its cases is known.
    cases = Counter(case_of(item.nodeid) for item in request.session.items)
    more = request.config.stash[LEFT_OUT]
    for promise, tried, proof in found:
        assert tried, promise
        named = re.findall(r"tests/\w+\.py::\w+", proof)
        said = re.fullmatch(r"([\d,]+) cases?(?:, ([\d,]+) more in the campaign)?", tried)
        if said is None:
            # A figure that nobody counts is soon wrong.
            assert not re.search(r"\d", tried) or tried == histories(named[0]), promise
        elif not other and all(cases[one] or more[one] for one in named):
            counts = [sum(counted[name] for name in named) for counted in (cases, more)]
            told = [int((figure or "0").replace(",", "")) for figure in said.groups()]
            # On PostgreSQL the campaign repeats most of what is not counted here.
            assert told[0] == counts[0], promise
            assert told[1] in (0, counts[1]), promise


def histories(test: str) -> str:
    """How many random histories a test goes through, by its mark."""
    file, _, name = test.partition("::")
    function = getattr(importlib.import_module(file.removesuffix(".py").replace("/", ".")), name)
    few = next(mark.args[1][0] for mark in function.pytestmark if mark.args[:1] == ("examples",))
    return f"{few} histories"


def test_the_figures_beside_the_promises_are_those_of_the_tests() -> None:
    text = (REPOSITORY / "docs" / "guarantees.md").read_text()
    cases = [case.values for case in test_crash_matrix.cases() if not case.marks]
    both = {engine: sum(case[1] == engine for case in cases) for engine in ("sqlite", "postgresql")}
    halves = sum(case[1:] == ("sqlite", True) for case in cases)
    verbs = len({verb_of(name) for name in SITUATIONS})
    assert len(SITUATIONS) == both["sqlite"]
    rest = len(SITUATIONS) - both["postgresql"]
    kills = [(where, *trials(getattr(test_runtime_kills, name))) for name, where in KILLS.items()]
    disks, commits = len(full_disk.STORIES), len(test_runtime_kills.VERBS)
    for wanted in (
        f"{verbs} verbs in {len(SITUATIONS)} situations are killed like this",
        f"PostgreSQL {both['postgresql']} of them are, of every kind, and the other {rest} in the",
        f"| everything is done and nothing committed | {both['sqlite']} | {both['postgresql']} |",
        f"| the commit is half written | {halves}, and wherever a call writes a file; all in the",
        f"| the commit is on its way and nobody waits for it | | {both['postgresql']} |",
        f"| it is committed and nobody was told | {both['sqlite']} | {both['postgresql']} |",
        *(f"moment, {what} | {few}, {many} more in the campaign |" for what, few, many in kills),
        f"each of {commits} commits of a run | {commits}, {2 * commits} more in the campaign |",
        f"| a full disk: by others, by a program, at the start | {disks} |",
        f"{test_linearizability.OPERATIONS:,} operations on each database",
    ):
        assert wanted in text, wanted


def trials(function: Any) -> tuple[int, int]:
    """How often a test kills in each `make test`, and in the campaign."""
    cases = next(mark.args[1] for mark in function.pytestmark if mark.name == "parametrize")
    (_, few), *others = cases
    return few, sum(case.values[1] for case in others)


def test_the_figures_of_the_security_model_are_those_of_the_code() -> None:
    text = (REPOSITORY / "docs" / "security-model.md").read_text()
    bits = 6 * len(new_token(TokenKind.RUN).split("_", 2)[2])
    assert 256 <= bits < 264
    for wanted in (
        f"{protocol.HEAD_SECONDS:.0f} seconds for a head of",
        f"a head of {protocol.LARGEST_HEAD // 1024} KiB, ",
        f"{protocol.SILENT_SECONDS:.0f} between pieces of a body",
        f"an inbox takes {channels.MOST_WAITING:,}",
        "digests of 256-bit tokens",
    ):
        assert wanted in text, wanted
    assert MOST_HOPS == 20
    assert "no more than twenty answers to answers" in text


def test_what_is_skipped_does_not_count_as_tried() -> None:
    proof = "tests/test_sandbox.py::test_a_hostile_program_does_not_get_out"
    assert not_tried([f"{proof}[a]", f"{proof}[b]", "tests/test_docs.py::test_x"]) == 2


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


def anchors(document: Path) -> set[str]:
    """The places in a document that a link can name, as GitHub makes them of its headings."""
    text = re.sub(r"^```.*?^```", "", document.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    kept = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {name.replace(" ", "-") for name in kept} | set(re.findall(r'<a id="(.+?)">', text))


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_to_a_section_find_it(document: Path) -> None:
    for target, anchor in re.findall(r"\]\(([\w./-]*)#([\w-]+)\)", document.read_text()):
        there = (document.parent / target) if target else document
        assert anchor in anchors(there), f"{document.name} links to {target}#{anchor}"


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
    assert "**Not held:** the network" in runtime
    assert "Without either sandbox, programs are not started at all" in runtime
    assert "A workspace is a folder, not a sandbox" in security
    assert "The sandbox does not limit the network" in readme


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
        words = [*ALIASES.get(words[0], words[:1]), *words[1:]]
        paths = [" ".join(["remit", *words[:depth]]) for depth in (2, 1)]
        path = next(path for path in paths if path in known)
        params = known[path].params
        options = {name for each in params for name in (*each.opts, *each.secondary_opts)}
        used = {word for word in words if word.startswith("--")}
        assert used <= options, f"{document.name}: {' '.join(words)}"


#: In tables and sentences; what follows a name in capitals is the reader's.
INLINE = re.compile(r"`(remit [a-z][^`]*)`")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_the_commands_within_a_sentence_exist(document: Path) -> None:
    known = dict(commands(cli))
    for text in INLINE.findall(document.read_text().replace("\n", " ")):
        path, *words = text.replace("\\|", "|").split()
        while words and f"{path} {words[0]}" in known:
            path = f"{path} {words.pop(0)}"
        command = known[path]
        if isinstance(command, click.Group) and words and words[0] not in ALIASES:
            # Only a name in the reader's words or a choice may follow a noun.
            assert not re.fullmatch(r"[a-z][a-z-]*", words[0]), f"{document.name}: {text}"
        options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        used = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
        assert used <= options, f"{document.name}: {text}"


@pytest.mark.requirement("FX-59")
def test_the_index_has_every_page_by_its_title() -> None:
    index = REPOSITORY / "docs" / "README.md"
    listed = dict(re.findall(r"\[([^\]]+)\]\(([\w-]+\.md)\)", index.read_text()))
    titles = {
        path.read_text().partition("\n")[0].removeprefix("# "): path.name
        for path in DOCUMENTS
        if path.parent == index.parent and path != index
    }
    assert listed == titles


def test_the_readme_shows_commands() -> None:
    assert len(shell_lines((REPOSITORY / "README.md").read_text())) >= 15
