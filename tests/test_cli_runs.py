"""Agents that are really started: mail in, a program runs, and its answer comes back."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from remit.ids import short
from remit.runtime.sandbox import sandbox_policy
from tests import postgres
from tests.test_cli import Home, only, refused, remit

__all__ = ["only", "remit"]  # fixtures

T = TypeVar("T")
SECONDS = 30.0

if not sandbox_policy.look().usable:  # pragma: no cover  says it where people look
    pytest.skip(
        f"no program can be started: {sandbox_policy.look().reason}", allow_module_level=True
    )

#: Agents are really started here.
SLOTS = 4


def until(look: Callable[[], T | None], what: str) -> T:
    """Wait for something that has to come about by itself."""
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.1)
    raise AssertionError(f"{what} did not come about")


def shell(script: str) -> str:
    return json.dumps({"command": "/bin/sh", "args": ["-c", script]})


def hire(home: Home, name: str, script: str) -> None:
    """An agent that is a shell script; what it says last goes back to who wrote."""
    told = ("--adapter", "process", "--config", shell(script), "--purpose", "Count", "--once")
    home.json("agent", "create", name, *told)
    home.json("agent", "set", name, 'runtimeConfig={"autoReply": true}')


def settled(home: Home, name: str) -> list[dict[str, Any]]:
    """The runs of an agent, once there are some and none is under way."""

    def look() -> list[dict[str, Any]] | None:
        found: list[dict[str, Any]] = home.json("run", "list", "--agent", name)
        return found if found and all(one["status"] != "running" for one in found) else None

    return until(look, f"the end of {name}'s runs")


def running(home: Home, name: str) -> str:
    """The id of the run that an agent has under way, once it printed something."""

    def look() -> str | None:
        found = home.json("run", "list", "--live", "--agent", name)
        return found[0]["id"] if found and found[0]["log_bytes"] else None

    return until(look, f"a run of {name}")


@pytest.fixture
def quiet(only: Home) -> Iterator[Home]:
    """Whatever still runs at the end is stopped, so that it does not disturb the next test."""
    yield only
    for one in only.json("run", "list", "--live"):
        only("run", "cancel", one["id"])


@pytest.mark.requirement("AG-92")
def test_a_wish_by_mail_starts_a_program_and_its_answer_comes_back(quiet: Home) -> None:
    hire(quiet, "counter", """cat > task.json; echo counting; echo '{"text": "Twelve."}'""")
    settled(quiet, "counter")
    sent = quiet.json("send", "counter", "How many?")

    def answer() -> Any:
        return [one for one in quiet.json("inbox") if one["reply_to"] == sent["id"]]

    (letter,) = until(answer, "an answer")
    assert quiet.json("read", letter["id"])["body"].strip() == "Twelve."
    (run,) = [one for one in settled(quiet, "counter") if one["envelope_ids"] == [sent["id"]]]
    assert (run["status"], run["final_response"]) == ("completed", "Twelve.")
    shown = quiet("run", "show", run["id"][:23]).out
    assert re.search(r"^agent +counter$", shown, re.MULTILINE)
    assert shown.endswith("\n\nTwelve.\n")
    assert "counting\n" in quiet("run", "tail", run["id"]).out
    assert "counting\n" in quiet("agent", "logs", "counter", "--printed").out


def test_the_scripted_root_reads_its_mail(remit: Home) -> None:
    sent = remit.json("send", "ceo", "Good morning", "--company", "My company")
    runs = until(
        lambda: [
            one
            for one in remit.json("run", "list", "--company", "My company")
            if sent["id"] in one["envelope_ids"] and one["status"] == "completed"
        ],
        "a run of the root",
    )
    assert runs[0]["adapter_type"] == "scripted"


def test_a_log_is_followed_until_the_run_ends(quiet: Home) -> None:
    hire(quiet, "slow", "echo one; sleep 1; printf 'tw'; printf 'o\\033[31m\\n'; echo three >&2")
    run = running(quiet, "slow")
    tailed = quiet("run", "tail", run)
    assert tailed.out.splitlines()[:1] == ["one"]
    assert {"two\\x1b[31m", "three"} <= set(tailed.out.splitlines())
    assert tailed.out.splitlines()[-1].startswith("== completed: ")
    assert tailed.err == ""
    entries = [json.loads(line) for line in quiet("run", "tail", run, "--json").out.splitlines()]
    assert [one["number"] for one in entries] == list(range(1, len(entries) + 1))
    assert {one["kind"] for one in entries} == {"printed", "end"}
    assert quiet("agent", "logs", "slow", "--follow").out == tailed.out
    raw = quiet("run", "tail", run, "--raw")
    assert set(raw.out.splitlines()) == {"one", "two\\x1b[31m", "three"}
    assert raw.err == "The run is completed.\n"
    printed = quiet("run", "tail", run, "--raw", "--json").out.splitlines()
    assert {json.loads(line)["stream"] for line in printed} == {"stdout", "stderr"}
    refused(quiet("run", "tail", run, "--raw", "--full"), 2, "--full")


@pytest.mark.requirement("FX-20")
def test_a_run_reads_as_calls_results_and_denials_and_lists_say_what_was_denied(
    quiet: Home,
) -> None:
    long = "x" * 900
    steps: list[dict[str, Any]] = [
        {"tool": "kb_create", "arguments": {"description": "Notes", "content": long}},
        {"tool": "outcome_close", "arguments": {"rationale": "done"}},
    ]
    quiet.json("agent", "create", "judge", "--purpose", "Judge", "--adapter", "scripted")
    mandate = quiet.json("agent", "show", "judge")["id"]
    steps[1]["arguments"]["id"] = mandate
    quiet.json("agent", "set", "judge", f"adapterConfig={json.dumps({'script': steps})}")
    quiet.json("send", "judge", "Go on.")
    run = settled(quiet, "judge")[0]
    tailed = quiet("run", "tail", "judge")
    called, answered, closing, denied, *_, end = tailed.out.splitlines()
    assert called.startswith('-> kb_create(description="Notes", content="xxx')
    assert called.endswith(" […])")
    assert answered.startswith("<- kb_create: ")
    assert closing == f'-> outcome_close(rationale="done", id="{mandate}")'
    assert denied.startswith("!! denied outcome_close: own_mandate: ")
    assert end.startswith("== failed (fault: agent): own_mandate: ")
    assert "--full" in tailed.err
    assert long in quiet("run", "tail", "judge", "--full", "--no-follow").out
    assert "1 denied: outcome_close" in quiet("run", "list", "--agent", "judge").out
    assert re.search(r"^denied +outcome_close$", quiet("run", "show", run["id"]).out, re.MULTILINE)
    quiet("agent", "stop", "judge")


def test_runs_of_an_agent_that_is_gone_have_its_name(quiet: Home) -> None:
    quiet.json("agent", "create", "gone", "--purpose", "Be gone", "--adapter", "scripted")
    quiet.json("send", "gone", "Go on.")
    run = settled(quiet, "gone")[0]
    quiet("agent", "terminate", "gone")
    listed = quiet("run", "list").out
    assert re.search(rf"^{short(run['id'])} +gone ", listed, re.MULTILINE), listed


def test_what_a_failed_run_left_is_shown_where_it_is_kept(quiet: Home) -> None:
    hire(quiet, "clumsy", "echo half > left.txt; exit 3")
    run = settled(quiet, "clumsy")[-1]
    shown = until(
        lambda: quiet.json("run", "show", run["id"])["kept"], "the workspace that is kept"
    )
    assert (Path(shown["path"]) / "left.txt").read_text() == "half\n"
    line = re.search(
        r"^kept +(\S+) until (\S+)$", quiet("run", "show", run["id"]).out, re.MULTILINE
    )
    assert line is not None
    assert line[1] == shown["path"]
    quiet("agent", "stop", "clumsy")


@pytest.mark.requirement("HB-60", "HB-61")
def test_a_cancelled_run_ends_with_its_program(quiet: Home) -> None:
    hire(quiet, "endless", "echo here; exec sleep 1000")
    run = running(quiet, "endless")
    said = quiet("run", "cancel", run[:18], "--reason", "enough")
    assert said.out == "The run is cancelled.\n"
    shown = quiet.json("run", "show", run)
    assert (shown["status"], shown["error"]) == ("cancelled", "enough")
    refused(quiet("run", "cancel", run), 4, "ended already")
    refused(quiet("agent", "abort", "endless"), 4, "not running")
    # What it had printed by then is kept, and following it ends at once.
    assert quiet("run", "tail", run, "--raw").out == "here\n"
    assert quiet("run", "tail", run).out.startswith("here\n== cancelled: enough; ")


@pytest.mark.requirement("HH-12", "HB-60", "HH-27")
def test_an_agent_is_stopped_started_restarted_and_aborted(quiet: Home) -> None:
    hire(quiet, "busy", "echo here; exec sleep 1000")
    first = running(quiet, "busy")
    assert quiet("agent", "why-idle", "busy").out == "busy: It is running.\n"
    assert quiet("agent", "stop", "busy").out.startswith("busy is stopped; ")
    assert quiet.json("run", "show", first)["status"] == "cancelled"
    assert quiet.json("agent", "why-idle", "busy")["reason"] == "paused"
    assert quiet("agent", "start", "busy").out.startswith("busy is started; ")
    refused(quiet("agent", "start", "busy"), 4, "not paused")
    quiet("agent", "wake", "busy", "go on")
    second = running(quiet, "busy")
    assert quiet("agent", "restart", "busy").code == 0
    third = until(
        lambda: next(
            (one["id"] for one in quiet.json("run", "list", "--live", "--agent", "busy")), None
        ),
        "another run",
    )
    assert len({first, second, third}) == 3
    assert quiet("agent", "abort", "busy").code == 0
    assert quiet.json("run", "show", third)["status"] == "cancelled"


@pytest.mark.requirement("AG-93", "BX-17", "FX-01")
def test_top_shows_who_runs_and_why_others_do_not(quiet: Home) -> None:
    usage = '{"text": "x", "usage": {"tokens_in": 30, "tokens_out": 12, "cost_micros": 2500}}'
    hire(quiet, "thrifty", f"echo '{usage}'")
    settled(quiet, "thrifty")
    hire(quiet, "busy", "echo here; exec sleep 1000")
    quiet("agent", "create", "resting")
    quiet("agent", "pause", "resting")
    running(quiet, "busy")
    seen = quiet.json("top")
    assert [one["agent"] for one in seen["running"]] == ["busy"]
    assert seen["running"][0]["why"]
    idle = {one["agent"]: one["reason"] for one in seen["idle"]}
    assert idle["resting"] == "paused"
    assert "thrifty" in idle
    today = seen["today"]
    assert today["runs"] >= 2
    assert (today["tokens_in"] % 30, today["tokens_in"] > 0, today["cost_usd"] > 0) == (
        0,
        True,
        True,
    )
    shown = quiet("top", "--once").out
    assert re.search(r"\nRUNNING +FOR +TOKENS +COST +DOING +WHY\nbusy ", shown)
    assert "It is paused; somebody has to resume it." in shown
    assert quiet("top").out.splitlines()[2] == shown.splitlines()[2]  # nobody watches a pipe
    assert quiet.json("status")["runs"] >= 1


def test_top_goes_on_in_a_terminal_until_it_is_interrupted(quiet: Home) -> None:
    quiet("agent", "create", "watched")
    main, terminal = pty.openpty()
    with subprocess.Popen(
        quiet.command("top", "--every", "0.2"),
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**quiet.environment, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"},
        start_new_session=True,
    ) as process:
        os.close(terminal)
        text, end = "", time.monotonic() + SECONDS
        while text.count("watched") < 2 and time.monotonic() < end:
            if select.select([main], [], [], 1)[0]:
                text += os.read(main, 65536).decode(errors="replace")
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 0
    os.close(main)
    assert text.count("watched") >= 2


def test_runs_that_are_not_there_are_said_so(quiet: Home) -> None:
    assert quiet("run", "list").out == "Nobody has run yet.\n"
    assert quiet("run", "list", "--live").out == "Nobody is running.\n"
    refused(quiet("run", "show", "01890000-0000-7000-8000-000000000000"), 3, "no such run")
    refused(quiet("run", "tail", "nobody"), 3, "nobody")
    quiet("agent", "create", "person")
    refused(quiet("run", "show", "person"), 3, "person has not run yet")
    refused(quiet("agent", "why-idle", "nobody"), 3, "nobody")


# ── several processes ───────────────────────────────────────────────────────────────────────────


def test_a_worker_does_not_join_an_instance_on_sqlite(remit: Home) -> None:
    refused(remit("worker"), 4, "SQLite is for one process")
    refused(remit("worker", "--name", "../x"), 2, "--name")
    refused(remit("worker", "--slots", "0"), 2, "--slots")


def test_a_worker_refuses_a_database_that_nobody_has_set_up(tmp_path: Path) -> None:
    refused(Home(tmp_path / "home")("worker"), 1, "no company in this database")


def test_serve_and_worker_are_separate_processes_on_one_database(
    tmp_path: Path, postgres_cluster: postgres.Cluster
) -> None:
    shared = {
        "REMIT_DATABASE_URL": postgres_cluster.migrated_database(),
        "REMIT_BLOB_URL": (tmp_path / "blobs").as_uri(),
    }
    home = Home(tmp_path / "serving", shared)
    elsewhere = Home(tmp_path / "working", shared)
    with Background(home, "serve", "--port", "0") as serving:
        assert serving.said["url"].startswith("http://127.0.0.1:")
        hire(home, "remote", """echo here; echo '{"text": "Done."}'""")
        time.sleep(1.5)  # a worker that was there would have looked within a second
        assert home.json("run", "list", "--agent", "remote") == []
        assert home.json("agent", "why-idle", "remote")["reason"] in ("no_slot", "no_worker")
        with Background(elsewhere, "worker", "--name", "two", "--slots", "2") as working:
            assert (working.said["name"], working.said["slots"]) == ("two", 2)
            assert not (elsewhere.folder / "board.token").exists()
            (run, *_) = settled(home, "remote")
            assert (run["status"], run["worker"]) == ("completed", "two")
            assert home("run", "tail", run["id"]).out.startswith("here\n")
            assert (elsewhere.folder / "logs" / "worker-two.log").exists()


class Background:
    """A process of Remit that goes on, and what it said when it was ready."""

    def __init__(self, home: Home, *arguments: str) -> None:
        self._process = home.start(*arguments, "--json")
        assert self._process.stdout is not None
        text = ""
        while not text.endswith("}\n"):
            line = self._process.stdout.readline().decode()
            assert line, f"it did not start; it said {text!r}"
            text += line
        self.said: dict[str, Any] = json.loads(text)

    def __enter__(self) -> Background:
        return self

    def __exit__(self, *_: object) -> None:
        with self._process:
            self._process.send_signal(signal.SIGTERM)
            assert self._process.wait(SECONDS) == 0
