"""What the sources of the tests say about them: their names, their marks, their docstrings."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent

TEST_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Test:
    """A test as its source declares it; `marked` are the requirements it is marked with."""

    __test__ = False

    marked: frozenset[str]
    docstring: str


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
                tests[f"{prefix}::{node.name}"] = Test(marks, ast.get_docstring(node) or "")

    visit(path, ast.parse(source).body, frozenset())
    return tests


@cache
def all_tests() -> dict[str, Test]:
    """Return the tests of the project by their node names."""
    tests: dict[str, Test] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        tests |= declared_tests(path.relative_to(ROOT).as_posix(), path.read_text())
    return tests


def nodes_by_id(tests: Mapping[str, Test]) -> dict[str, list[str]]:
    """Return, for each requirement that is marked anywhere, the names of its tests."""
    nodes: dict[str, list[str]] = {}
    for node, test in tests.items():
        for name in test.marked:
            nodes.setdefault(name, []).append(node)
    return nodes
