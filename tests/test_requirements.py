"""The rows of the requirements and the marks of the tests agree."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import pytest

from tests.marks import Test, all_tests, declared_tests, nodes_by_id
from tests.requirements import ROWS, TOTALS, Row, described, main

ID = re.compile(rf"\b(?:{'|'.join(TOTALS)})-\d+\b")


def table_problems(rows: Iterable[Row], totals: Mapping[str, int]) -> list[str]:
    """Return what is wrong with the rows themselves."""
    rows = list(rows)
    problems = [f"{row.id} has no sentence" for row in rows if not row.sentence.strip()]
    counts = Counter(row.id for row in rows)
    problems += [f"{name} is there {count} times" for name, count in counts.items() if count > 1]
    expected = {f"{prefix}-{n:02}" for prefix, total in totals.items() for n in range(1, total + 1)}
    problems += [f"{name} is missing" for name in sorted(expected - set(counts))]
    problems += [f"{name} is not a requirement" for name in sorted(set(counts) - expected)]
    return problems


def agreement_problems(rows: Iterable[Row], tests: Mapping[str, Test]) -> list[str]:
    """Return where the rows and the tests contradict each other."""
    rows = list(rows)
    shown = nodes_by_id(tests)
    problems = []
    for row in rows:
        if row.deferred:
            problems += [
                f"{row.id} is deferred, and {node} shows it" for node in shown.get(row.id, [])
            ]
        elif row.id not in shown:
            problems.append(f"{row.id} has neither a test nor a deferral")
        if row.lacking and row.id not in shown:
            problems.append(f"{row.id} lacks something and has no test")
    known = {row.id for row in rows}
    for node, test in tests.items():
        named = test.marked | set(ID.findall(test.docstring))
        unknown = sorted(named - known)
        problems += [f"{node} names {name}, which is not a requirement" for name in unknown]
    return problems


def test_the_table_is_whole() -> None:
    problems = table_problems(ROWS, TOTALS)
    assert not problems, "\n" + "\n".join(problems)


def test_every_requirement_has_a_marked_test_or_a_deferral() -> None:
    problems = agreement_problems(ROWS, all_tests())
    assert not problems, "\n" + "\n".join(problems)


GOOD = Row("AG-01", "A sentence.")
DEFERRED = Row("AG-01", "A sentence.", deferred="later")
MARKED = "@pytest.mark.requirement('AG-01')\ndef test_it(): ..."


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([Row("AG-01", "")], "AG-01 has no sentence"),
        ([Row("AG-01", " ", deferred="later")], "AG-01 has no sentence"),
        ([GOOD, GOOD], "AG-01 is there 2 times"),
        ([GOOD, Row("AG-03", "s")], "AG-02 is missing"),
        ([GOOD, Row("AG-04", "s")], "AG-04 is not a requirement"),
        ([GOOD, Row("XX-01", "s")], "XX-01 is not a requirement"),
    ],
)
def test_a_bad_table_is_caught(rows: list[Row], problem: str) -> None:
    assert problem in table_problems(rows, {"AG": 3})


def test_a_good_table_passes() -> None:
    assert table_problems([GOOD, Row("AG-02", "s", deferred="later")], {"AG": 2}) == []


@pytest.mark.parametrize(
    ("row", "source", "problem"),
    [
        (GOOD, "def test_it(): ...", "AG-01 has neither a test nor a deferral"),
        (GOOD, "def test_it():\n    'AG-01'", "AG-01 has neither a test nor a deferral"),
        (GOOD, MARKED.replace("test_it", "helper"), "AG-01 has neither a test nor a deferral"),
        (DEFERRED, MARKED, "AG-01 is deferred, and tests/test_a.py::test_it shows it"),
        (Row("AG-01", "s", lacking="more"), "", "AG-01 lacks something and has no test"),
        (
            Row("AG-01", "s", deferred="later", lacking="more"),
            "",
            "AG-01 lacks something and has no test",
        ),
        (GOOD, MARKED.replace("'AG-01'", "'AG-01', 'AG-99'"), "names AG-99, which"),
        (GOOD, MARKED.replace("'AG-01'", "'AG-01', 'ZZ-1'"), "names ZZ-1, which"),
        (GOOD, MARKED.replace("'AG-01'", "AG"), "names AG, which"),
        (GOOD, f"pytestmark = pytest.mark.requirement('AG-98')\n{MARKED}", "names AG-98, which"),
        (GOOD, "def test_it():\n    'Shows AG-97.'", "names AG-97, which"),
    ],
)
def test_a_disagreement_is_caught(row: Row, source: str, problem: str) -> None:
    found = agreement_problems([row], declared_tests("tests/test_a.py", source))
    assert any(problem in each for each in found), found


@pytest.mark.parametrize(
    ("row", "source"),
    [
        (GOOD, MARKED),
        (Row("AG-01", "s", lacking="more"), MARKED),
        (DEFERRED, "def test_it(): ..."),
        (DEFERRED, "def test_it():\n    'Beside AG-01.'"),
    ],
)
def test_an_agreement_passes(row: Row, source: str) -> None:
    assert agreement_problems([row], declared_tests("tests/test_a.py", source)) == []


@pytest.mark.parametrize(
    ("node", "source"),
    [
        ("test_it", "@pytest.mark.requirement('AG-01')\ndef test_it(): ..."),
        ("test_it", "@pytest.mark.requirement('AG-01')\nasync def test_it(): ..."),
        ("test_it", "pytestmark = pytest.mark.requirement('AG-01')\ndef test_it(): ..."),
        (
            "test_it",
            "pytestmark = [pytest.mark.x, pytest.mark.requirement('AG-01')]\ndef test_it(): ...",
        ),
        (
            "TestIt::test_it",
            "class TestIt:\n  @pytest.mark.requirement('AG-01')\n  def test_it(self): ...",
        ),
        (
            "TestIt::test_it",
            "@pytest.mark.requirement('AG-01')\nclass TestIt:\n  def test_it(self): ...",
        ),
    ],
)
def test_a_marked_test_is_recognised(node: str, source: str) -> None:
    found = nodes_by_id(declared_tests("tests/test_a.py", source))
    assert found == {"AG-01": [f"tests/test_a.py::{node}"]}


def test_a_row_is_described_with_all_that_is_known_of_it() -> None:
    partly = Row("AG-01", "A sentence.", lacking="The rest.")
    assert described(partly, ["a::b", "c::d"]).splitlines() == [
        "AG-01  A sentence.",
        "    a::b",
        "    c::d",
        "    Lacking: The rest.",
    ]
    assert described(DEFERRED, []).splitlines() == ["AG-01  A sentence.", "    Deferred: later."]


def test_rows_are_printed_by_id_or_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["BX-12", "HB-20"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in told if line[0] != " "] == ["HB-20", "BX-12"]
    node = "tests/test_docs.py::test_the_documents_say_what_a_workspace_does_not_protect"
    assert told[1] == f"    {node}"
    assert told[-1].startswith("    Deferred: ")
    assert main([]) == 0
    told = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in told if line[0] != " "] == [row.id for row in ROWS]
    assert main(["BX-12", "ZZ-01"]) == 2
    assert capsys.readouterr() == ("", "Not a requirement: ZZ-01\n")
