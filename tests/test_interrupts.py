"""What a shell without job control starts with `&` ignores SIGINT: this test run, and Remit."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_cli import Home

ROOT = Path(__file__).parent.parent
SECONDS = 30


def in_background(*command: str) -> list[str]:
    """The command that starts another as such a shell does."""
    return ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *command]


def test_a_child_of_a_test_is_ended_by_an_interrupt() -> None:
    waiting = "print('ready', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", waiting],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGINT)
        try:
            assert child.wait(SECONDS) == -signal.SIGINT
        finally:
            child.kill()


@pytest.mark.parametrize(
    "workers", [1, pytest.param(0, marks=pytest.mark.campaign("`make test` has workers"))]
)
def test_a_test_run_in_the_background_interrupts_its_children(tmp_path: Path, workers: int) -> None:
    # It is a run of its own, and no worker of this one.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
    }
    done = subprocess.run(
        in_background(
            *(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", str(workers)),
            *("--basetemp", str(tmp_path / "inner"), "--timeout", str(SECONDS)),
            f"{Path(__file__)}::{test_a_child_of_a_test_is_ended_by_an_interrupt.__name__}",
        ),
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_in_the_background_sigterm_ends_what_an_interrupt_does_not(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with subprocess.Popen(
        in_background(*home.command("up", "--port", "0", "--slots", "0", "--json")),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=home.environment,
    ) as instance:
        try:
            assert instance.stdout is not None
            while instance.stdout.readline() != b"}\n":
                assert instance.poll() is None
            follow(home)
            instance.send_signal(signal.SIGTERM)
            assert instance.wait(SECONDS) == 0
        finally:
            instance.kill()


def follow(home: Home) -> None:
    with subprocess.Popen(
        in_background(*home.command("event", "tail", "--json", "--after", "0")),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env=home.environment,
    ) as tail:
        try:
            assert tail.stdout is not None
            assert json.loads(tail.stdout.readline())["seq"] == 1
            tail.send_signal(signal.SIGINT)
            home.json("agent", "create", "newcomer")
            while json.loads(tail.stdout.readline())["action"] != "agent.create":
                pass
            tail.send_signal(signal.SIGTERM)
            assert tail.wait(SECONDS) == -signal.SIGTERM
        finally:
            tail.kill()
