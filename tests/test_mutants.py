"""That the mutants can be tried: `make mutants` tries them all, and this a few."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants import DOCUMENT, ROOT, Mutant, document, mutants
from tests.selection import repeated

#: Of several parts, each with tests that need no company.
SAMPLE = ("S04", "S48", "S50", "S59", "AG-119")


def functions(path: Path) -> set[str]:
    return set(re.findall(r"^(?:async )?def (\w+)\(", path.read_text(), re.MULTILINE))


def test_every_mutant_can_be_made_and_names_tests_that_exist() -> None:
    known: dict[str, set[str]] = {}
    for mutant in mutants():
        assert mutant.source() != mutant.path.read_text()
        assert mutant.tests, mutant.name
        assert re.fullmatch(r"[A-Z].*[^.]", mutant.breaks), mutant.name
        for test in mutant.tests:
            file, _, name = test.partition("::")
            path = ROOT / "tests" / file
            if file not in known:
                known[file] = functions(path)
            assert name in known[file], f"{mutant.name}: {test}"
            run_there = mutant.engine == "sqlite" or test not in repeated()
            assert run_there, f"{mutant.name}: {test} is not run on {mutant.engine}"


def test_there_are_many_of_them_and_the_documents_list_them_all() -> None:
    listed = mutants()
    assert len(listed) >= 150
    written = DOCUMENT.read_text()
    assert written == document(listed), "run `python -m tests.mutants --write`"


@pytest.mark.slow
def test_a_few_of_them_are_noticed() -> None:
    done = _tried("--only", *SAMPLE, "--changed-only")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(SAMPLE)} of {len(SAMPLE)} mutants noticed" in done.stdout


def test_a_mutant_that_cannot_be_made_is_said() -> None:
    mutant = Mutant("x", "table", "Y", "ids.py", "not in the file", "", ("test_a.py::test_b",))
    with pytest.raises(ValueError, match=r"ids.py has 'not in the file' 0 times"):
        mutant.source()


def _tried(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Another process: this one has threads, and a fork would have only one of them."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "tests.mutants", *arguments],
        cwd=ROOT,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
    )
