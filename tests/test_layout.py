"""The layers of the package and the one owner of each outside thing, read from the imports.

Also what has no place in the repository at all.
"""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.selection import repeated

REPOSITORY = Path(__file__).parent.parent
ROOT = REPOSITORY / "src" / "remit"

#: Folders that tools fill with what they can make again.
CACHES = {
    "__pycache__",
    ".hypothesis",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".schemathesis",
}

#: Of one folder, besides its `__init__`.
MOST_MODULES = 21

LEAVES = {"errors", "extras", "ids", "clock", "threads", "version"}
NOUNS = LEAVES | {"model"}
RULES = NOUNS | {"settings", "authority", "store"}
EVERYTHING = RULES | {
    *("services", "runtime", "adapters", "channels", "forges", "entrypoints", "app", "testing")
}

# Which parts of the package a part may import, besides itself.
MAY_IMPORT = {
    "": NOUNS | {"settings"},
    "__main__": {"entrypoints"},
    "errors": set(),
    "extras": {"version"},
    "threads": set(),
    "version": set(),
    "ids": {"errors", "clock"},
    "clock": {"errors"},
    "settings": LEAVES,
    "model": LEAVES,
    "authority": NOUNS,
    "store": NOUNS | {"settings"},
    "services": RULES | {"adapters", "channels"},
    "runtime": RULES | {"services", "adapters", "channels", "forges", "prompts"},
    # What a run gives an adapter is its contract; it knows nothing of who carries the run out.
    "adapters": NOUNS,
    # A channel is described and checked as an adapter is, and calls the outside in the same way.
    "channels": NOUNS | {"adapters"},
    # A forge calls the outside in the same way, too.
    "forges": NOUNS | {"adapters"},
    "prompts": set(),
    "entrypoints": RULES | {"services", "runtime", "adapters", "channels", "app"},
    "app": EVERYTHING - {"testing"},
    "testing": EVERYTHING,
}
MAY_ALSO_IMPORT = {
    # The demonstration is a company of scripted agents.
    "entrypoints.cli": {"testing"},
    # A scripted agent is one of those that tests play with.
    "adapters.scripted": {"testing"},
}

DATABASE = {"store"}
WEB = {"entrypoints"}
PROCESSES = {"runtime", "adapters", "entrypoints.cli", "testing"}
TIME = {"clock"}
CHANCE = {"ids", "testing"}
OWNERS = {
    "sqlite3": DATABASE,
    "sqlalchemy": DATABASE,
    "psycopg": DATABASE,
    "psycopg_pool": DATABASE,
    "alembic": DATABASE,
    "obstore": DATABASE,
    "mcp": {"entrypoints.mcp"},
    "mcp_types": {"entrypoints.mcp"},
    "fastapi": WEB,
    "starlette": WEB,
    "uvicorn": WEB,
    # The version of a checkout is asked of git, also by the build.
    "subprocess": PROCESSES | {"version"},
    "asyncio.create_subprocess_exec": PROCESSES,
    "asyncio.create_subprocess_shell": PROCESSES,
    "os.fork": PROCESSES,
    "os.popen": PROCESSES,
    "os.posix_spawn": PROCESSES,
    "os.system": PROCESSES,
    # Durations are measured where processes and requests are; what is recorded is not.
    "time": TIME | {"runtime", "entrypoints"},
    "time.time": TIME,
    "time.time_ns": TIME,
    "datetime.datetime.now": TIME,
    "datetime.datetime.today": TIME,
    "datetime.datetime.utcnow": TIME,
    "datetime.date.today": TIME,
    "sqlalchemy.func.now": TIME,
    "sqlalchemy.func.current_timestamp": TIME,
    "secrets": CHANCE,
    "random": CHANCE,
    "uuid": CHANCE,
    "os.urandom": CHANCE,
}


def within(name: str, owner: str) -> bool:
    return name == owner or name.startswith(f"{owner}.")


def module_name(path: Path) -> str:
    """Return the dotted name below the package: `services.files`, or nothing for the package."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


def imported_names(tree: ast.Module) -> Iterator[tuple[str, str, int]]:
    """Yield each import as (name in this module, what it stands for, line)."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first = alias.name.split(".")[0]
                yield alias.asname or first, alias.name if alias.asname else first, node.lineno
                yield "", alias.name, node.lineno
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            for alias in node.names:
                yield alias.asname or alias.name, f"{source}.{alias.name}", node.lineno


def used_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield the full name of everything imported and of every attribute reached through it."""
    names: dict[str, str] = {}
    for local, full, line in imported_names(tree):
        names[local] = full
        yield full, line
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            attributes: list[str] = []
            value: ast.expr = node
            while isinstance(value, ast.Attribute):
                attributes.insert(0, value.attr)
                value = value.value
            if isinstance(value, ast.Name) and value.id in names:
                yield ".".join([names[value.id], *attributes]), node.lineno


def violations(module: str, source: str) -> list[str]:
    """Return what is wrong with the source of `module`, one sentence each."""
    tree = ast.parse(source)
    layer = module.split(".")[0]
    if layer not in MAY_IMPORT:
        return [f"{layer} is not a part of the package that this test knows"]
    found: dict[str, None] = {}
    if ast.get_docstring(tree) is None:
        found["the module has no docstring"] = None
    allowed = MAY_IMPORT[layer] | {layer}
    for prefix, more in MAY_ALSO_IMPORT.items():
        if within(module, prefix):
            allowed |= more
    for name, line in used_names(tree):
        if name.startswith("."):
            found[f"line {line}: relative import of {name}"] = None
        if within(name, "remit"):
            target = name.split(".")[1] if "." in name else ""
            if target in MAY_IMPORT and target not in allowed | {""}:
                found[f"line {line}: {layer or 'the package'} must not import {target}"] = None
        for thing, owners in OWNERS.items():
            if within(name, thing) and not any(within(module, owner) for owner in owners):
                found[f"line {line}: {thing} belongs to {' and '.join(sorted(owners))}"] = None
    return list(found)


def test_every_module_keeps_to_its_layer_and_to_what_it_owns() -> None:
    problems = [
        f"{path.relative_to(ROOT.parent)}: {problem}"
        for path in sorted(ROOT.rglob("*.py"))
        for problem in violations(module_name(path), path.read_text())
    ]
    assert not problems, "\n" + "\n".join(problems)


@pytest.mark.parametrize(
    ("module", "statement", "problem"),
    [
        ("authority.decide", "from remit.store import facts", "authority must not import store"),
        ("store.facts", "import remit.authority.decide", "store must not import authority"),
        ("store.facts", "from remit import services", "store must not import services"),
        ("model.agent", "from remit.settings import Settings", "model must not import settings"),
        ("ids", "from remit.model import agent", "ids must not import model"),
        ("services.files", "from remit.entrypoints.http import x", "must not import entrypoints"),
        ("services.files", "from remit.app import build", "services must not import app"),
        ("runtime.runs", "import remit.entrypoints", "runtime must not import entrypoints"),
        ("runtime.runs", "from remit.app import App", "runtime must not import app"),
        ("adapters.claude", "from remit.runtime import x", "adapters must not import runtime"),
        ("adapters.claude", "from remit.services import x", "adapters must not import services"),
        ("entrypoints.http.app", "import remit.testing", "entrypoints must not import testing"),
        ("services.files", "from . import mail", "relative import"),
        ("services.files", "import sqlalchemy as sa", "sqlalchemy belongs to store"),
        ("services.files", "import sqlite3", "sqlite3 belongs to store"),
        ("runtime.x", "from psycopg.rows import dict_row", "psycopg belongs to store"),
        ("services.files", "def f():\n    import obstore", "obstore belongs to store"),
        ("entrypoints.http.app", "import mcp.types", "mcp belongs to entrypoints.mcp"),
        ("services.files", "from fastapi import FastAPI", "fastapi belongs to entrypoints"),
        ("services.files", "import subprocess", "subprocess belongs to"),
        ("services.x", "import asyncio\nasyncio.create_subprocess_exec('a')", "belongs to"),
        ("services.files", "import time", "time belongs to"),
        ("runtime.runs", "import time\ntime.time()", "time.time belongs to clock"),
        ("runtime.runs", "from time import time", "time.time belongs to clock"),
        ("model.x", "from datetime import datetime as d\nd.now()", "datetime.now belongs to clock"),
        ("model.x", "import datetime\nx = datetime.date.today", "date.today belongs to clock"),
        ("store.tables", "from sqlalchemy import func\nfunc.now()", "func.now belongs to clock"),
        ("model.agent", "from uuid import uuid4", "uuid belongs to ids and testing"),
        ("runtime.runs", "import os\nos.urandom(8)", "os.urandom belongs to ids and testing"),
        ("helpers.x", "", "not a part of the package"),
    ],
)
def test_a_violation_is_caught(module: str, statement: str, problem: str) -> None:
    assert any(problem in found for found in violations(module, f'"""A module."""\n{statement}\n'))


def test_a_module_without_a_docstring_is_caught() -> None:
    assert violations("model.agent", "VALUE = 1\n") == ["the module has no docstring"]


@pytest.mark.parametrize(
    ("module", "statement"),
    [
        ("", "from remit.errors import RemitError"),
        ("app", "from remit.adapters import claude\nfrom remit.entrypoints.http import app"),
        ("services.files", "from remit.store import files\nfrom remit.authority import decide"),
        ("store.tables", "import sqlalchemy as sa\nfrom remit.model import agent"),
        ("adapters.claude", "import subprocess\nfrom remit.model import agent"),
        ("entrypoints.cli.demo", "from remit.testing import company"),
        ("entrypoints.mcp.server", "from mcp.server import MCPServer"),
        ("runtime.runs", "import time\ntime.monotonic()"),
        ("model.x", "from datetime import UTC, datetime\ndatetime.fromtimestamp(0, UTC)"),
        ("testing.chance", "import random"),
    ],
)
def test_what_the_layers_allow_is_not_reported(module: str, statement: str) -> None:
    assert violations(module, f'"""A module."""\n{statement}\n') == []


def test_the_contributing_page_lists_every_folder_with_its_purpose() -> None:
    listed = {
        line.removeprefix("- ")
        for line in (REPOSITORY / "CONTRIBUTING.md").read_text().splitlines()
        if line.startswith("- `") and "`: " in line
    }
    there = {
        f"`{package.parent.relative_to(ROOT)}`: {' '.join(purpose(package).split())}"
        for package in ROOT.rglob("*/__init__.py")
    }
    assert listed == there


def purpose(package: Path) -> str:
    return (ast.get_docstring(ast.parse(package.read_text())) or "").split("\n\n")[0]


#: It has a file for each revision, by number, and every change of a table adds one.
REVISIONS = "store/migrations/versions"


def test_no_folder_has_more_modules_than_one_can_look_through() -> None:
    crowded = {
        str(package.parent.relative_to(ROOT))
        for package in ROOT.rglob("*/__init__.py")
        if len(list(package.parent.glob("*.py"))) - 1 > MOST_MODULES
    } - {REVISIONS}
    assert crowded == set()


def test_no_cache_is_in_the_repository() -> None:
    if not (REPOSITORY / ".git").exists():
        return  # an unpacked archive, which has what the repository had
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    tracked = [Path(name) for name in listed.stdout.split("\0") if name]
    assert Path("tests/test_layout.py") in tracked
    assert [str(path) for path in tracked if CACHES & set(path.parts)] == []


@pytest.mark.slow
def test_every_story_inside_a_test_is_told() -> None:
    """A function inside a test that nobody calls makes it a test that cannot fail."""
    untold = [
        f"{file.name}:{inner.lineno}: {inner.name}"
        for file in sorted((REPOSITORY / "tests").rglob("*.py"))
        for test in ast.walk(ast.parse(file.read_text()))
        if isinstance(test, ast.FunctionDef) and test.name.startswith("test_")
        for inner in test.body
        if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)) and not inner.decorator_list
        if not any(isinstance(n, ast.Name) and n.id == inner.name for n in ast.walk(test))
    ]
    assert untold == []


def test_what_is_left_out_on_postgresql_is_a_test_that_runs_on_both() -> None:
    gone = []
    for name in sorted(repeated()):
        file, _, test = name.partition("::")
        source = (REPOSITORY / "tests" / file).read_text()
        if f"\ndef {test}(" not in source or "postgres_cluster" in source:
            gone.append(name)
    assert gone == []


#: How a statement of the store is made.
STATEMENT = re.compile(r"Statement\(|\.(find|one|update|delete|count|change|row)\(|\bchange\(")
#: Openings that hide the noun: of docstrings, labels and errors; of comments; of any sentence; of
#: paragraphs and entries of lists in prose. A question may have them.
RIDDLE = re.compile(
    r'"(?:Whoever|Whatever|Whom?|Whose|What(?! you wrote)|Those (?:that|who)|That (?:the|an?)) '
    r'[^"?\n]*["\n]'
    r"|(?:#:?|//|\{#) (?:What|Who|Whoever|Whatever|Those) .*"
    r"|(?<=[.:;] )(?:What|Who|Whoever|Whatever|Whose|Those)\b[^?\n]*$",
    re.MULTILINE,
)
RIDDLE_IN_PROSE = re.compile(
    r"^(?:- )?(?:What|Who|Whoever|Whatever|Those) [^?\n]*$"
    r"|(?<=[.:;] )(?:What|Who|Whoever|Whatever|Whose|Those)\b[^?\n]*$",
    re.MULTILINE,
)
#: Never edited once they are there.
MIGRATIONS = "store/migrations/versions"


def test_every_statement_has_a_line_that_says_what_it_answers() -> None:
    bare = []
    for path in sorted((ROOT / "store").rglob("*.py")):
        lines = path.read_text().splitlines()
        for node in ast.parse("\n".join(lines)).body:
            if isinstance(node, ast.Assign) and STATEMENT.search(ast.unparse(node.value)):
                name = ast.unparse(node.targets[0])
                if name.isupper() and not name.startswith("_"):
                    said = lines[node.lineno - 2].startswith("#")
                    bare += [] if said else [f"{path.relative_to(ROOT)}:{node.lineno} {name}"]
    assert bare == []


def test_sentences_begin_with_what_they_are_about() -> None:
    code = [path for path in ROOT.rglob("*") if path.suffix in (".py", ".js", ".html")]
    prose = [*(REPOSITORY / "docs").glob("*.md"), *REPOSITORY.glob("*.md")]
    riddles = [
        f"{path.relative_to(REPOSITORY)}: {found[0][:80]}"
        for paths, pattern in ((code, RIDDLE), (prose, RIDDLE_IN_PROSE))
        for path in sorted(paths)
        if MIGRATIONS not in str(path)
        for found in pattern.finditer(path.read_text())
    ]
    assert riddles == []


#: Names that say neither what a value is nor of which kind.
NAMELESS = {"found", "one", "given", "said", "asked", "made"}
#: Parameters of `remit.testing` that other programs may name.
NAMED_BY_OTHERS = {"testing/invariants.py: found", "testing/linearizability.py: given"}
VERB = re.compile(r"(command|query|logged)\(")


def bound_in(function: ast.AST) -> Iterator[str]:
    """Names that a function binds: parameters, unless they are stored with calls, and locals."""
    decorators = getattr(function, "decorator_list", ())
    is_verb = any(VERB.match(ast.unparse(decorator)) for decorator in decorators)
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg) and not is_verb:
            yield node.arg
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name


def test_no_function_uses_a_name_that_says_nothing() -> None:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    nameless = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in ROOT.rglob("*.py")
        if MIGRATIONS not in str(path)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, functions)
        for name in bound_in(node)
        if name.rstrip("_") in NAMELESS
    }
    assert nameless == NAMED_BY_OTHERS
