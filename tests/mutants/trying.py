"""Runs the tests that have to notice a mutant, in the process that was forked for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests import run_folder
from tests.mutants import ROOT

#: Raised in Remit, they show that the code is broken, not that a test noticed what it does.
CRUDE = (SyntaxError, ImportError, NameError, AttributeError, TypeError)


class Watching:
    """A plugin that keeps what a mutant's tests came to."""

    def __init__(self, engine: str) -> None:
        self.engine = engine
        self.passed: set[str] = set()
        #: The first failure, and whether a test noticed something there.
        self.first: tuple[bool, str] | None = None

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        other = {"sqlite": "postgresql", "postgresql": "sqlite"}[self.engine]
        items[:] = [one for one in items if other not in _given(one)]

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
        outcome = yield
        report = outcome.get_result()
        if report.passed and report.when == "call":
            self.passed.add(item.nodeid)
        elif report.failed and self.first is None:
            error = call.excinfo.value if call.excinfo is not None else None
            honest = report.when != "setup" and not (isinstance(error, CRUDE) and _is_ours(error))
            words = str(error).strip().splitlines()
            said = f"{type(error).__name__}: {words[0][:100] if words else ''}"
            self.first = (honest, f"{item.nodeid.removeprefix('tests/')} ({said})")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed and self.first is None:
            self.first = (False, f"cannot be read: {report.nodeid}")


def _is_ours(error: BaseException) -> bool:
    """Whether it was raised in Remit and not in a test."""
    where = error.__traceback__
    while where is not None and where.tb_next is not None:
        where = where.tb_next
    return where is None or "/remit/" in where.tb_frame.f_code.co_filename


def _given(item: pytest.Item) -> list[object]:
    return list(getattr(getattr(item, "callspec", None), "params", {}).values())


def attempt(
    tests: Sequence[str], engine: str, given: str, templates: Path | None, *, keep: bool
) -> tuple[str, str]:
    """Whether one of the tests fails, and which; what was laid once is in `templates`."""
    watching = Watching(engine)
    if templates is not None:
        _begin_with(templates)
    if templates is not None and keep:
        _keep_in(templates)
    options = ["-x", "-q", "--tb=short", "-p", "no:cacheprovider"]
    options += ["-p", "pytest_timeout", "-p", "_hypothesis_pytestplugin"]
    # What was imported before the fork is a plugin's own.
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning", f"--rootdir={ROOT}"]
    options += ["-k", given] if given else []
    code = pytest.main([*options, *(f"tests/{one}" for one in tests)], plugins=[watching])
    if watching.first is not None:
        honest, told = watching.first
        return ("noticed" if honest else "broke"), told
    if code != 0 or not watching.passed:
        return "broke", f"pytest ended with {int(code)} after {len(watching.passed)} tests"
    return "passed", f"{len(watching.passed)} tests"


def _begin_with(templates: Path) -> None:
    """Have the run begin with the tables and companies that an earlier one laid."""
    begin = run_folder.begin

    def begin_there(*, on_disk: bool = False) -> run_folder.RunFolder:
        run = begin(on_disk=on_disk)
        for one in templates.iterdir():
            if not one.name.startswith("."):
                (shutil.copytree if one.is_dir() else shutil.copy2)(one, run.path / one.name)
        return run

    run_folder.begin = begin_there


def _keep_in(templates: Path) -> None:
    """Have the run leave its tables and companies to those that follow."""
    remove = run_folder.RunFolder.remove

    def keep_and_remove(self: run_folder.RunFolder) -> None:
        for one in [self.path / "migrated.db", *self.path.glob("founded_sqlite_*/")]:
            if one.exists() and not (templates / one.name).exists():
                beside = templates / f".{one.name}-{os.getpid()}"
                (shutil.copytree if one.is_dir() else shutil.copy2)(one, beside)
                if not (templates / one.name).exists():
                    beside.rename(templates / one.name)
        remove(self)

    run_folder.RunFolder.remove = keep_and_remove  # type: ignore[method-assign]
