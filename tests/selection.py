"""Which tests a run leaves out, and why.

`make test` leaves out the campaign: tests marked `campaign("why")`, which repeat with other seeds,
or measure for long, what a shorter test shows already, and on PostgreSQL those that repeat there
what others do (`tests/choosing.py`, or marked `campaign_on_postgresql("why")`). `make test-fast`
also leaves out what needs a browser, an agent's program, PostgreSQL or processes of its own; it is
for between two edits.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

import pytest

#: Files that a fast run leaves out, with what takes their time.
SLOW_FILES = {
    "test_web_*.py": "a browser",
    "test_real_agents.py": "agents' programs",
    "test_real_story.py": "agents' programs",
    "test_change_stories.py": "agents' programs, and processes that are killed",
    "test_adapter_conformance.py": "agents' programs",
    "test_job_agents.py": "agents' programs",
    "test_budget_runs.py": "agents' programs",
    "test_secret_isolation.py": "agents' programs",
    "test_cli*.py": "the command line, a process a command",
    "test_connections.py": "the command line",
    "test_demo.py": "the demonstration, several times",
    "test_serve.py": "instances in processes of their own",
    "test_ending.py": "instances in processes of their own",
    "test_run_tokens.py": "agents' processes",
    "test_interrupts.py": "instances in processes of their own",
    "test_benchmarks.py": "benchmarks",
    "test_crash_matrix.py": "processes that are killed",
    "test_*_crash.py": "processes that are killed",
    "test_*_kills.py": "processes that are killed",
    "test_linearizability.py": "processes that are killed",
    "test_full_disk.py": "disks that are full",
    "test_sandbox.py": "sandboxes",
    "test_landlock.py": "sandboxes",
    "test_working_folder.py": "agents' programs",
    "test_backup.py": "instances in processes of their own",
    "test_upgrades.py": "a database of every schema",
    "test_releases.py": "a database of every release",
    "test_simulation.py": "whole simulations",
    "test_week.py": "whole simulations",
    "test_*_histories.py": "thousands of random histories",
    "test_attacks_*.py": "attacks on every route",
    "test_*_surfaces.py": "the command line",
    "test_budget_interfaces.py": "the command line",
    "test_http_secrets.py": "the command line",
    "test_repos*.py": "git",
    "test_proposals.py": "git",
    "test_reviews.py": "git",
    "test_commit_identity.py": "git",
    "test_checks.py": "git, and sandboxes",
    "test_forges.py": "git, and servers in processes of their own",
    "test_telegram*.py": "a library that takes seconds to import",
    "test_chat_matrix.py": "a library that takes seconds to import",
    "test_proxies.py": "proxies in processes of their own",
    "test_email.py": "servers in processes of their own",
    "test_adding_a_verb.py": "the whole project, imported anew",
    "test_upstream.py": "servers in processes of their own",
    "test_blobs.py": "a bucket on a server of its own",
    "test_worker.py": "agents' processes",
    "test_jobs.py": "agents' processes",
    "test_misbehaving.py": "agents' processes",
    "test_halted_runs.py": "agents' processes",
    "test_clock_jumps.py": "agents' processes",
    "test_*_concurrency.py": "processes that race",
}

#: Files that take minutes, the longest first.
LONGEST = (
    "test_crash_matrix.py",
    "test_attacks_ids.py",
    "test_runtime_kills.py",
    "test_upgrades.py",
    "test_serve.py",
    "test_web_every_page.py",
    "test_web_agent.py",
    "test_simulation.py",
    "test_real_agents.py",
    "test_cli.py",
)

#: Files that are too long for one worker: tests with the same word before a colon stay together.
SPREAD = ("test_crash_matrix.py",)

#: Files that share what takes seconds to load, so that one worker loads it, by what that is.
TOGETHER = {
    "test_telegram*.py": "aiogram",
    "test_chat_matrix.py": "aiogram",
    "test_chat_statements.py": "aiogram",
    "test_channel_addresses.py": "aiogram",
    "test_authorship.py": "aiogram",
}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> object:
    if config.getoption("dist") != "loadfile":
        return None

    from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]

    class ByChapter(LoadFileScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return _scope(nodeid)

    return ByChapter(config, log)


def _scope(nodeid: str) -> str:
    """Tests of one scope go to one worker, for what they share; that is a file mostly, or a part of
    it."""
    file, _, test = nodeid.partition("::")
    name = Path(file).name
    for pattern, shared in TOGETHER.items():
        if fnmatch(name, pattern):
            return shared
    if name not in SPREAD:
        return file
    return f"{file}[{test.partition('[')[2].partition(':')[0]}]"


def histories(few: int, many: int) -> pytest.MarkDecorator:
    """How many random histories a test goes through, as `examples`."""
    more = pytest.mark.campaign("more random histories of the same kind")
    return pytest.mark.parametrize("examples", [few, pytest.param(many, marks=more)])


#: How many cases of each test this run leaves out.
LEFT_OUT = pytest.StashKey[Counter[str]]()
GUARANTEES = Path(__file__).parent.parent / "docs" / "guarantees.md"

#: Tests whose run on PostgreSQL is the campaign's.
REPEATED = Path(__file__).parent / "repeated_on_postgresql.txt"


def name_of(item: pytest.Item) -> str:
    """Of a test, whatever it is given."""
    return f"{item.path.name}::{item.name.partition('[')[0]}"


@cache
def repeated() -> frozenset[str]:
    lines = REPEATED.read_text().splitlines()
    return frozenset(line for line in lines if not line.startswith("#"))


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("remit")
    group.addoption(
        "--fast", action="store_true", help="only what is quick: see tests/selection.py"
    )
    group.addoption("--campaign", action="store_true", help="only the tests of the campaign")
    group.addoption("--everything", action="store_true", help="nothing is left out")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file that is left out as a whole is not even read."""
    left_out = config.getoption("fast") and _is_slow(collection_path.name)
    return True if left_out else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    wanted: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (wanted if _is_wanted(config, item) else left_out).append(item)
    config.stash[LEFT_OUT] = Counter(case_of(item.nodeid) for item in left_out)
    config.hook.pytest_deselected(items=left_out)
    # Files go to the workers in this order: a slow one that began last would keep all waiting.
    items[:] = sorted(wanted, key=_when)


def case_of(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def not_tried(skipped: Iterable[str]) -> int:
    """How many cases that the guarantees count were skipped."""
    counted = set(re.findall(r"tests/\w+\.py::\w+", GUARANTEES.read_text()))
    return sum(case_of(nodeid) in counted for nodeid in skipped)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What was skipped was not tried, whatever a document says."""
    count = not_tried(report.nodeid for report in terminalreporter.stats.get("skipped", ()))
    if count:
        terminalreporter.write_line(
            f"NOT TRIED HERE: {count} of the cases that docs/guarantees.md counts; "
            "see what was skipped, and why.",
            yellow=True,
        )


def _when(item: pytest.Item) -> int:
    if item.path.name in LONGEST:
        return LONGEST.index(item.path.name)
    return len(LONGEST) + (not _is_in_slow_file(item))


def _is_wanted(config: pytest.Config, item: pytest.Item) -> bool:
    campaign = item.get_closest_marker("campaign")
    on_postgresql = item.get_closest_marker("campaign_on_postgresql")
    for mark in (campaign, on_postgresql):
        if mark is not None and not (mark.args and mark.args[0]):
            raise pytest.UsageError(f"{item.nodeid} is of the campaign and does not say why")
    if config.getoption("everything"):
        return True
    is_of_campaign = (
        campaign is not None
        or (on_postgresql is not None and _is_on_postgresql(item))
        or _is_repeated(item)
    )
    if config.getoption("campaign"):
        return is_of_campaign
    if is_of_campaign:
        return False
    return not config.getoption("fast") or _is_quick(item)


def _is_repeated(item: pytest.Item) -> bool:
    """Whether it does on PostgreSQL what it does on SQLite and others do on PostgreSQL."""
    return _is_on_postgresql(item) and name_of(item) in repeated()


def _is_on_postgresql(item: pytest.Item) -> bool:
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return "postgresql" in [value for value in parameters.values() if isinstance(value, str)]


def _is_quick(item: pytest.Item) -> bool:
    if _is_in_slow_file(item):
        return False
    fixtures = set(getattr(item, "fixturenames", ()))
    return (
        not fixtures & {"chromium", "postgres_cluster"}
        and not _is_on_postgresql(item)
        and item.get_closest_marker("programs") is None
        and item.get_closest_marker("slow") is None
    )


def _is_in_slow_file(item: pytest.Item) -> bool:
    return _is_slow(item.path.name)


@cache
def _is_slow(name: str) -> bool:
    return any(fnmatch(name, pattern) for pattern in SLOW_FILES)
