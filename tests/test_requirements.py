"""The table of requirements and the tests agree."""

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.requirements import ROWS, TOTALS, Row

ROOT = Path(__file__).parent.parent
ID = re.compile(rf"\b(?:{'|'.join(TOTALS)})-\d+\b")

TEST_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Test:
    """A test as its source declares it."""

    __test__ = False

    marked: frozenset[str]
    mentioned: frozenset[str]


def marked_ids(expressions: Iterable[ast.expr]) -> Iterator[str]:
    """Yield the ids in `pytest.mark.requirement(...)` calls."""
    for expression in expressions:
        if isinstance(expression, ast.List | ast.Tuple):
            yield from marked_ids(expression.elts)
        elif (
            isinstance(expression, ast.Call)
            and ast.unparse(expression.func) == "pytest.mark.requirement"
        ):
            for argument in expression.args:
                if isinstance(argument, ast.Constant):
                    yield str(argument.value)
                else:
                    yield ast.unparse(argument)


def shared_marks(body: Iterable[ast.stmt]) -> Iterator[ast.expr]:
    """Yield the value of `pytestmark` in a module or class."""
    for statement in body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "pytestmark"
            for target in statement.targets
        ):
            yield statement.value


def declared_tests(path: str, source: str) -> dict[str, Test]:
    """Return the tests of a file by their node names."""
    tests: dict[str, Test] = {}

    def visit(prefix: str, body: list[ast.stmt], inherited: frozenset[str]) -> None:
        inherited |= frozenset(marked_ids(shared_marks(body)))
        for node in body:
            if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
                marks = inherited | frozenset(marked_ids(node.decorator_list))
                visit(f"{prefix}::{node.name}", node.body, marks)
            elif isinstance(node, TEST_FUNCTION) and node.name.startswith("test"):
                marks = inherited | frozenset(marked_ids(node.decorator_list))
                mentioned = frozenset(ID.findall(ast.get_docstring(node) or ""))
                tests[f"{prefix}::{node.name}"] = Test(marks, mentioned)

    visit(path, ast.parse(source).body, frozenset())
    return tests


def table_problems(rows: Iterable[Row], totals: Mapping[str, int]) -> list[str]:
    """Return what is wrong with the rows themselves."""
    rows = list(rows)
    problems = []
    for row in rows:
        if row.tests and row.deferred:
            problems.append(f"{row.id} has tests and is deferred")
        if not row.tests and not row.deferred:
            problems.append(f"{row.id} has neither tests nor a deferral")
        if not row.statement:
            problems.append(f"{row.id} has no statement")
    counts = Counter(row.id for row in rows)
    problems += [f"{name} is there {count} times" for name, count in counts.items() if count > 1]
    expected = {f"{prefix}-{n:02}" for prefix, total in totals.items() for n in range(1, total + 1)}
    problems += [f"{name} is missing" for name in sorted(expected - set(counts))]
    problems += [f"{name} is not a requirement" for name in sorted(set(counts) - expected)]
    return problems


def agreement_problems(rows: Iterable[Row], tests: Mapping[str, Test]) -> list[str]:
    """Return where the rows and the tests contradict each other."""
    rows = list(rows)
    problems = []
    for row in rows:
        for node in row.tests:
            if node not in tests:
                problems.append(f"{row.id} lists {node}, which does not exist")
            elif row.id not in tests[node].marked:
                problems.append(f"{row.id} lists {node}, which is not marked with it")
    known = {row.id for row in rows}
    for node, test in tests.items():
        unknown = sorted((test.marked | test.mentioned) - known)
        problems += [f"{node} names {name}, which is not a requirement" for name in unknown]
    return problems


def all_tests() -> dict[str, Test]:
    tests: dict[str, Test] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        tests |= declared_tests(path.relative_to(ROOT).as_posix(), path.read_text())
    return tests


def test_every_requirement_has_tests_or_a_deferral() -> None:
    problems = table_problems(ROWS, TOTALS)
    assert not problems, "\n" + "\n".join(problems)


def test_the_listed_tests_exist_and_carry_the_requirement() -> None:
    problems = agreement_problems(ROWS, all_tests())
    assert not problems, "\n" + "\n".join(problems)


GOOD = Row("AG-01", "a statement", tests=("tests/test_a.py::test_it",))


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([Row("AG-01", "s", tests=("t",), deferred="later")], "AG-01 has tests and is deferred"),
        ([Row("AG-01", "s")], "AG-01 has neither tests nor a deferral"),
        ([Row("AG-01", "", deferred="later")], "AG-01 has no statement"),
        ([GOOD, GOOD], "AG-01 is there 2 times"),
        ([GOOD, Row("AG-03", "s", deferred="later")], "AG-02 is missing"),
        ([GOOD, Row("AG-04", "s", deferred="later")], "AG-04 is not a requirement"),
        ([GOOD, Row("XX-01", "s", deferred="later")], "XX-01 is not a requirement"),
    ],
)
def test_a_bad_table_is_caught(rows: list[Row], problem: str) -> None:
    assert problem in table_problems(rows, {"AG": 3})


def test_a_good_table_passes() -> None:
    assert table_problems([GOOD, Row("AG-02", "s", deferred="later")], {"AG": 2}) == []


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def test_other(): ...", "which does not exist"),
        ("def test_it(): ...", "which is not marked with it"),
        ("@pytest.mark.requirement('AG-01', 'AG-99')\ndef test_it(): ...", "names AG-99"),
        ("@pytest.mark.requirement('AG-01', 'ZZ-1')\ndef test_it(): ...", "names ZZ-1"),
        ("@pytest.mark.requirement(AG)\ndef test_it(): ...", "names AG, which"),
        ("pytestmark = pytest.mark.requirement('AG-98')\ndef test_it(): ...", "names AG-98"),
        ("def test_it():\n    'Shows AG-97.'", "names AG-97"),
    ],
)
def test_a_disagreement_is_caught(source: str, problem: str) -> None:
    found = agreement_problems([GOOD], declared_tests("tests/test_a.py", source))
    assert any(problem in each for each in found)


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
    row = Row("AG-01", "a statement", tests=(f"tests/test_a.py::{node}",))
    assert agreement_problems([row], declared_tests("tests/test_a.py", source)) == []
