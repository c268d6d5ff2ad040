"""The benchmarks run and print their tables. How fast anything is, is not a test's business."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LONG = pytest.mark.campaign("measures for half a minute, and shows only that its table is whole")


def bench(*arguments: str, module: str = "benchmarks") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", module, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_a_measurement_prints_the_machine_and_its_table() -> None:
    done = bench("decide", "--quick")
    assert (done.returncode, done.stderr) == (0, "")
    machine, _, title, headings, *rows, _, verdict = done.stdout.splitlines()
    assert re.match(r"\d+ cores, .+, Python 3\.\d+\.\d+, .+, fsync of 4 KiB p50 .+", machine)
    assert title.startswith("decide: ")
    assert headings.split()[:2] == ["what", "measured"]
    for grants, row in zip((1, 5, 50), rows, strict=True):
        promised = r" ≥ 100,000 +(ok|OVER)" if grants < 50 else r"[\d,]+$"
        assert re.search(rf"with {grants} grants on it +[\d,]+ a second .+{promised}", row)
    assert re.fullmatch(r"(everything within budget|\d over budget); took \d+ s", verdict)


#: Statements that calls may take, so that none takes more unseen. A run takes about 140; the rest
#: is room for its worker, which looks for others more often while the machine is busy.
MOST_STATEMENTS = {
    "kb_read": 4,
    "kb_write": 9,
    "outcome create": 12,
    "mail": 22,
    # It compares the request with the record, and takes unread letters about it off the lists.
    "approve": 34,
    "hire": 35,
    # It shows approvals whole, with the names of what they are about, and costs that are true.
    "first page": 111,
    "run of /bin/true": 170,
}


def test_statements_of_calls_are_counted_and_become_no_more() -> None:
    done = bench("statements", "--quick")
    assert (done.returncode, done.stderr) == (0, "")
    row = re.compile(r"^  (\w.*?) +(\d+) statements.* ≤ \d+", re.MULTILINE)
    taken = {name: int(count) for name, count in row.findall(done.stdout)}
    assert taken.keys() == MOST_STATEMENTS.keys()
    more = {name: count for name, count in taken.items() if count > MOST_STATEMENTS[name]}
    assert not more, f"look into {more}, or allow it"


@LONG
def test_mail_is_measured_through_all_that_it_goes_through() -> None:
    done = bench("mail", "--quick")
    assert (done.returncode, done.stderr) == (0, "")
    rows = "\n".join(done.stdout.splitlines()[4:-2])
    for name in (
        "sent and seen over HTTP",
        "sent and seen over MCP",
        "look into an inbox, 10,000 waiting",
        "take up 10 letters, 10,000 waiting",
        "send one more, 10,000 waiting",
        "send over HTTP, 16 clients",
        "needs-you, 1,000 elsewhere",
        "loose ends, 1,000 elsewhere",
        "deferred in good time",
        "deferred while the clock slept",
    ):
        assert name in rows


@LONG
def test_what_a_model_is_sent_first_is_measured_for_each_program() -> None:
    done = bench("requests", "--quick")
    assert (done.returncode, done.stderr) == (0, "")
    rows = "\n".join(done.stdout.splitlines()[4:-2])
    for program in ("claude", "codex", "codex with gpt-5.5", "llm"):
        assert f"{program}: first request" in rows


@LONG
def test_runs_are_measured_from_the_wake_to_the_end() -> None:
    done = bench("runtime", "--quick")
    assert (done.returncode, done.stderr) == (0, "")
    rows = "\n".join(done.stdout.splitlines()[4:-2])
    for name in (
        "from the message to the running program",
        "runs of /bin/true, 4 slots",
        "100 agents woken at once",
        "who is ready: 100 of 10,000 agents",
        "a worker with 1,000 idle agents",
    ):
        assert name in rows


@LONG
def test_hiring_and_deciding_are_measured_against_the_peer() -> None:
    done = bench("governance", "--quick")
    assert (done.returncode, done.stderr) == (0, "")
    rows = "\n".join(done.stdout.splitlines()[4:-2])
    for name in ("hire", "approve", "list 1,000 agents"):
        assert f"{name}, 1 client:" in rows
        assert f"{name}, 16 clients:" in rows
    for name in ("read one agent, 1 client:", "read one of 1,000 agents, 1 client:"):
        assert name in rows


@LONG
def test_copies_of_repositories_are_measured_against_plain_ones() -> None:
    done = bench("repos", "--quick")
    assert (done.returncode, done.stderr) == (0, "")
    assert "a clone for an agent, 2,000 files" in done.stdout
    assert "cp -r: " in done.stdout


def test_a_measurement_that_does_not_exist_is_an_error_of_usage() -> None:
    done = bench("nonsense")
    assert done.returncode == 2
    assert "there are decide, " in done.stderr


@LONG
def test_pages_are_measured_against_their_budget_and_a_small_company() -> None:
    done = bench("pages", "--quick")
    assert (done.returncode, done.stderr) == (0, "")
    rows = done.stdout.splitlines()[4:-2]
    for name, most in (
        ("first page", "100 ms, 60 kB"),
        *((name, "300 ms, 150 kB") for name in ("outcomes", "the graph of outcomes", "events")),
    ):
        row = next(row for row in rows if row.strip().startswith(name))
        assert re.search(rf"kB +a small company: .+x +< {most} +(ok|OVER)", row), row


@LONG
def test_requests_are_measured_against_an_earlier_revision() -> None:
    done = bench("HEAD", "--rounds", "1", module="benchmarks.against")
    assert (done.returncode, done.stderr) == (0, "")
    _, _, title, _, *rows = done.stdout.splitlines()
    assert title == "against HEAD: processor time of a request"
    for name in ("letter over MCP", "approve", "write a file over MCP", "letters a second"):
        row = next(row for row in rows if row.strip().startswith(name))
        assert re.search(r"before: \S+.* +\d+\.\d\dx$", row), row
    unknown = bench("nowhere", module="benchmarks.against")
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert unknown.stderr.endswith("git has no revision 'nowhere'\n")
