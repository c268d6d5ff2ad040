"""`remit up --detach`, `down` and the lock, and what a command imports."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.app import App
from remit.settings import load
from tests.model_server import ModelServer
from tests.rootless import remove_root
from tests.test_cli import Home, refused

KEY = "sk-fake-0123456789-abcdef"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path / "home")
    yield home
    home("down")


def test_an_instance_goes_to_the_background_and_is_stopped(home: Home) -> None:
    # A real start, in the background and of the command; elsewhere both are forked.
    started = home("up", "--detach", "--port", "0", "--json", warnings=False).answer
    assert os.getsid(started["pid"]) == started["pid"]
    assert (home.folder / "board.token").stat().st_mode & 0o777 == 0o600
    status = home.json("status")
    assert (status["pid"], status["url"]) == (started["pid"], started["url"])
    assert [company["name"] for company in status["companies"]] == ["My company"]
    log = (home.folder / "logs" / "remit.log").read_text()
    assert "rmt_" not in log

    refused(home("up", "--detach", "--port", "0"), 4, str(started["pid"]))
    refused(home("up", "--port", "0"), 4, str(started["pid"]))

    assert home.json("down") == {"stopped": True, "pid": started["pid"]}
    assert home.json("down") == {"stopped": False, "pid": None}
    assert home("down").out.startswith("No instance is running in ")
    refused(home("status", "--url", started["url"]), 5, "No instance answers")


def test_the_welcome_says_what_to_do_next(home: Home) -> None:
    shown = home("up", "--detach", "--port", "0").out
    assert "/login?token=rmt_login_" in shown
    assert str(home.folder / "board.token") in shown
    assert shown.count("  remit ") == 3
    assert "No agent has a model, so nothing is spent." in shown
    home("agent", "set", "ceo", "adapterType=claude")
    spends = "It spends at most $50.00 a day; change: remit company set --limit companyCentsPerDay="
    home("down")
    shown = home("up", "--detach", "--port", "0").out
    assert [line for line in shown.splitlines() if line.startswith(spends)] == [f"{spends}10000"]
    home("company", "set", "--limit", "companyCentsPerDay=none")
    home("down")
    assert "Nothing limits what it spends in a day." in home("up", "--detach", "--port", "0").out


@pytest.mark.requirement("FX-14", "HH-23")
def test_a_root_agent_that_was_missing_is_restored_and_said_once(home: Home) -> None:
    home("up", "--detach", "--port", "0", "--slots", "0")
    ceo = home.json("agent", "show", "ceo")
    home("down")

    async def remove() -> None:
        async with App(load({"REMIT_HOME": str(home.folder)})) as app:
            await remove_root(app, ceo["id"])

    asyncio.run(remove())
    sentence = "ceo, the root agent of My company, was gone and works again."
    shown = home("up", "--detach", "--port", "0", "--slots", "0").out
    assert shown.splitlines().count(sentence) == 1
    assert home.json("agent", "show", "ceo")["id"] == ceo["id"]
    assert sentence in home("inbox").out
    (event,) = home.json("event", "list", "--about", "company.restore_root")
    assert event["resource"].startswith("company:")
    home("down")
    again = home.json("up", "--detach", "--port", "0", "--slots", "0")
    assert again["restored"] == []


def test_what_is_missing_for_real_work_is_one_sentence(home: Home, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "claude").write_text("#!/bin/sh\necho 9.0.1\n")
    (programs / "claude").chmod(0o755)
    plain = {"PATH": f"{programs}:/usr/bin:/bin"}
    with ModelServer("claude-x") as server:
        keyed = {**plain, "ANTHROPIC_API_KEY": KEY, "ANTHROPIC_BASE_URL": server.url}
        for number, (more, type_, sentence) in enumerate(
            [
                ({"PATH": "/usr/bin:/bin"}, "scripted", "neither claude nor codex is installed."),
                (plain, "scripted", "no key for it is configured."),
                (keyed, "claude", "ceo works with claude"),
            ]
        ):
            other = Home(tmp_path / str(number), more)
            try:
                said = other("up", "--detach", "--port", "0", "--slots", "0", "--json").answer
                assert sentence in said["sentence"]
                assert said["sentence"].count(". ") == 0
                assert said["can_work"] is (type_ == "claude")
                assert other.json("agent", "show", "ceo")["adapter_type"] == type_
                if type_ == "claude":
                    assert said["tried"]["ok"] is True
                    look_at_set_up(other, server)
                else:
                    assert said["tried"] is None
            finally:
                other("down")
        assert KEY not in (other.folder / "logs" / "remit.log").read_text()


def look_at_set_up(home: Home, server: ModelServer) -> None:
    """Of an agent that is run by claude: what its model answers, and what is missing for others."""
    right = home("adapter", "test", "claude")
    assert right.code == 0
    assert "took the key ANTHROPIC_API_KEY" in right.out
    server.status = 401
    wrong = home("adapter", "test", "--agent", "ceo")
    assert wrong.code == 1
    assert f"{server.host} refuses the key ANTHROPIC_API_KEY (401).\n  next: Give" in wrong.out
    asked = len(server.asked)
    assert home("adapter", "test", "claude", "--no-try").code == 0
    refused(home("adapter", "test"), 2, "--agent")
    refused(home("adapter", "test", "claude", "--agent", "ceo"), 2, "--agent")
    # Whoever is set up so that it cannot work is told of at once.
    made = home("agent", "create", "dev", "--adapter", "codex")
    assert made.code == 0
    assert made.err.startswith("warning: dev cannot work yet: The program codex is not installed")
    assert "  next: " in made.err
    assert home("agent", "create", "fine", "--adapter", "claude").err == ""
    changed = home("agent", "set", "fine", "adapterConfig.command=claude-99")
    assert "warning: fine cannot work yet" in changed.err
    assert home("agent", "set", "fine", "title=Dev").err == ""
    hired = home("agent", "hire", "later", "--adapter", "codex", "--boss", "fine")
    assert "warning: later cannot work yet" in hired.err
    assert len(server.asked) == asked
    assert KEY not in right.out + wrong.out + made.err


@pytest.mark.requirement("FX-21")
def test_a_model_is_named_at_the_start_and_runs_the_root_agent(home: Home) -> None:
    for wrong, sentence in (
        (("--model", "qwen3"), "does not say who serves the model"),
        (("--model", "openai/gpt-x"), "no key of a provider"),
        (("--model-url", "http://127.0.0.1:1/v1"), "--model-url needs a --model"),
    ):
        failed = home("up", "--detach", "--port", "0", *wrong)
        assert failed.code != 0
        assert sentence in failed.err
    assert not (home.folder / "board.token").exists()

    with ModelServer("org/small") as server:
        model = ("--model", "org/small", "--model-url", f"{server.url}/v1")
        begin = ("up", "--detach", "--port", "0", "--slots", "0")
        shown = home(*begin, *model).out
        assert "ceo works with org/small and is started by its mail." in shown
        assert f"Tried: org/small is there at {server.host}, which answered in " in shown
        ceo = home.json("agent", "show", "ceo")
        settings = {"provider": "compatible", "model": "org/small", "baseUrl": f"{server.url}/v1"}
        assert (ceo["adapter_type"], ceo["adapter_config"]) == ("llm", settings)
        home("agent", "set", "ceo", "adapterConfig.maxTurns=9")
        home("down")

        # Another model takes its place and leaves the rest.
        asked = len(server.asked)
        again = home(*begin, "--no-try", "--model", "ollama/other").out
        assert "ceo works with other" in again
        assert "Tried" not in again
        assert len(server.asked) == asked
        config = home.json("agent", "show", "ceo")["adapter_config"]
        assert (config["provider"], config["model"], config["maxTurns"]) == ("ollama", "other", 9)


def test_without_slots_nobody_is_started(home: Home) -> None:
    assert home("up", "--detach", "--port", "0", "--slots", "0").code == 0
    home("send", "ceo", "hello")
    assert home.json("agent", "why-idle", "ceo")["reason"] == "no_slot"
    assert home.json("status")["runs"] == 0
    assert home.json("run", "list") == []


def test_an_instance_that_cannot_start_says_why(home: Home) -> None:
    url = home("up", "--detach", "--port", "0", "--json").answer["url"]
    other = Home(home.folder.parent / "other")
    refused(other("up", "--detach", "--port", url.rpartition(":")[2]), 4, "cannot be used")
    assert not (other.folder / "remit.db").exists()
    broken = Home(home.folder.parent / "broken", {"REMIT_DATABASE_URL": "mysql://x"})
    refused(broken("up", "--detach", "--port", "0"), 1, "sqlite:///")
    refused(home("up", "--port", "99999"), 2, "--port")


def test_down_spares_a_process_that_does_not_hold_the_lock(home: Home) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as bystander:
        (home.folder / "run").mkdir(parents=True)
        lock = home.folder / "run" / "instance.lock"
        lock.write_text(f"{bystander.pid}\nhttp://127.0.0.1:1\n")
        assert home.json("down")["stopped"] is False
        assert bystander.poll() is None
        lock.write_text("not a number\n")
        assert home.json("down")["stopped"] is False
        assert bystander.stdin is not None
        bystander.stdin.close()


def test_an_instance_that_was_killed_is_not_taken_for_running(home: Home) -> None:
    started = home("up", "--detach", "--port", "0", "--json").answer
    os.kill(started["pid"], signal.SIGKILL)
    while home("status", "--url", started["url"]).code == 0:
        pass
    assert home.json("down")["stopped"] is False
    again = home("up", "--detach", "--port", "0", "--json").answer
    assert again["pid"] != started["pid"]


def test_ctrl_c_ends_an_instance_in_the_foreground(home: Home) -> None:
    with subprocess.Popen(
        home.command("up", "--port", "0", "--json"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=home.environment,
    ) as instance:
        try:
            assert instance.stdout is not None
            while instance.stdout.readline() != b"}\n":
                assert instance.poll() is None
            instance.send_signal(signal.SIGINT)
            assert instance.wait(30) == 0
        finally:
            instance.kill()


def test_doctor_on_an_empty_home_says_how_to_begin(tmp_path: Path) -> None:
    home = Home(tmp_path / "nothing")
    findings = {finding["check"]: finding for finding in home.json("doctor")}
    assert findings["home"]["state"] == findings["database"]["state"] == "warn"
    assert "remit up" in findings["instance"]["next_step"]
    assert not home.folder.exists()


def test_doctor_fails_when_others_can_read_the_token(home: Home) -> None:
    assert home("up", "--detach", "--port", "0").code == 0
    (home.folder / "board.token").chmod(0o644)
    result = home("doctor")
    assert result.code == 1
    assert f"chmod 600 {home.folder}/board.token" in result.out


def test_verify_names_the_event_that_was_changed(home: Home) -> None:
    assert home("up", "--detach", "--port", "0").code == 0
    assert home("down").code == 0
    script = (
        "import sqlite3, sys\n"
        "database = sqlite3.connect(sys.argv[1])\n"
        "for (name,) in database.execute('SELECT name FROM sqlite_master '\n"
        "    \"WHERE type = 'trigger' AND tbl_name = 'events'\").fetchall():\n"
        "    database.execute(f'DROP TRIGGER {name}')\n"
        "database.execute(\"UPDATE events SET details = '{}' WHERE seq = 2\")\n"
        "database.commit()\n"
    )
    subprocess.run([sys.executable, "-c", script, home.folder / "remit.db"], check=True, timeout=30)
    assert home("up", "--detach", "--port", "0").code == 0
    verdict = home("event", "verify")
    assert verdict.code == 1
    assert "event 2: " in verdict.err
    assert home("event", "verify", "--json").code == 1


@pytest.mark.parametrize("arguments", [["--help"], ["company", "list"], ["kb", "--help"]])
def test_a_command_imports_only_what_it_needs(home: Home, arguments: list[str]) -> None:
    if "list" in arguments:
        assert home("up", "--detach", "--port", "0").code == 0
    script = (
        "import sys\n"
        "from remit.entrypoints.cli.main import run\n"
        f"assert run({arguments!r}) == 0\n"
        "heavy = {'fastapi', 'mcp', 'sqlalchemy', 'pydantic', 'rich', 'starlette', 'asyncio'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        env=home.environment,
        timeout=60,
        check=True,
    )
    assert done.stderr == b"[]\n"
