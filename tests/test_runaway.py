"""Runs that run away: turns and identical calls are counted by every adapter, and at the tools."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from remit.adapters.claude import claude_cli
from remit.adapters.codex import codex_cli
from remit.adapters.pace import Pace, same_call
from remit.errors import Refused
from remit.model.execution.calls import Calls, with_calls
from remit.model.execution.fault import Fault
from remit.model.execution.limit import FAILED_CALLS, MAX_TURNS, REPETITION, RUNAWAY
from remit.runtime.runs.execution import report
from remit.runtime.runs.liveness import Streaks
from remit.services.execution import runs
from remit.services.people import companies
from remit.services.screens import needs_you
from remit.testing import ScriptedAgent, ToolRefused
from tests.agent_stage import Stage, stage

# ── counting ────────────────────────────────────────────────────────────────────────────────────


def often(pace: Pace, times: int, tool: str = "t", arguments: Any = None, **more: Any) -> None:
    for _ in range(times):
        pace.call(tool, arguments or {}, **more)


@pytest.mark.requirement("FX-11")
def test_the_same_call_is_made_so_often_in_a_row_and_not_once_more() -> None:
    pace = Pace(repeats=10)
    often(pace, 10, "mail_inbox")
    with pytest.raises(Refused) as caught:
        pace.call("mail_inbox", {})
    assert caught.value.reason == REPETITION
    assert (
        caught.value.sentence == "It called mail_inbox 10 times in a row with the same arguments."
    )
    pace = Pace(repeats=10)
    for _ in range(30):  # something else in between, by name or by arguments
        pace.call("mail_inbox", {})
        pace.call("kb_read", {"id": "a"})
        pace.call("kb_read", {"id": "b"})
    for by in ("one", "two", ""):  # those who work for it at the same time are counted apart
        often(pace, 10, "kb_read", {"id": "c"}, by=by)
    often(Pace(), 1_000)


@pytest.mark.requirement("FX-64")
def test_so_many_calls_in_a_row_may_fail_and_one_that_succeeds_begins_anew() -> None:
    pace = Pace(failures=25)
    for _ in range(24):
        pace.ended("Bash", failed=True)
    pace.ended("Read", failed=False)
    for _ in range(24):
        pace.ended("Bash", failed=True)
    with pytest.raises(Refused) as caught:
        pace.ended("Bash", failed=True)
    assert caught.value.reason == FAILED_CALLS
    assert caught.value.sentence == (
        "25 of its calls in a row were refused or failed, the last one of Bash."
    )
    for _ in range(1_000):
        Pace().ended("Bash", failed=True)


def test_the_calls_of_a_run_are_told_in_one_sentence() -> None:
    calls = Calls()
    assert with_calls(None, calls) == "It took too much."
    for number in range(100):
        calls.made("kb_read")
        calls.ended("kb_read", failed=number > 2)
    for name in ("mail_inbox", "mail_inbox", "Bash", "Bash", "Bash", "budget", "a\nb\x1b[2J"):
        calls.made(name)
    assert with_calls("It took 100 turns.", calls) == (
        "It took 100 turns. Its calls: 100 × kb_read, 97 refused or failed; 3 × Bash; "  # noqa: RUF001
        "2 × mail_inbox; 2 × others."  # noqa: RUF001
    )
    many = Calls()
    for number in range(10_000):
        many.made(f"tool-{number}" * 100)
    assert "9950 × other tools" in many.sentence()  # noqa: RUF001
    only = Calls()
    only.made("a\nb\x1b[2J")
    assert only.sentence() == "Its calls: 1 × a?b?2J."  # noqa: RUF001


def test_a_turn_more_than_the_limit_ends_a_run() -> None:
    Pace(turns=100).turn(100)
    Pace().turn(10_000)
    with pytest.raises(Refused) as caught:
        Pace(turns=100).turn(101)
    assert (caught.value.reason, caught.value.sentence) == (MAX_TURNS, "It took 100 turns.")


def test_calls_are_the_same_whatever_their_key_and_their_order() -> None:
    assert same_call("t", {"a": 1, "b": 2}) == same_call("t", {"b": 2, "a": 1})
    assert same_call("t", {"a": 1, "idempotency_key": "x"}) == same_call("t", {"a": 1})
    assert same_call("t", {"a": 1}) != same_call("u", {"a": 1})
    assert same_call("t", {"a": 1}) != same_call("t", {"a": "1"})
    long = "x" * 5_000_000
    assert same_call("t", {"a": long}) == same_call("t", {"a": long})
    assert same_call("t", {"a": long}) != same_call("t", {"a": long + "y"})
    assert len(same_call("t", {"a": long})[1]) < 3_000
    assert same_call("t", "ls") != same_call("t", "ls -l")
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert same_call("t", {"a": deep}) == ("t", "")


def test_tools_of_others_interrupt_what_remit_sees() -> None:
    streaks = Streaks()
    pace = Pace(repeats=10, elsewhere=lambda: streaks.interrupt("run"))
    call = same_call("mail_inbox", {})
    assert [streaks.count("run", call) for _ in range(3)] == [1, 2, 3]
    assert streaks.count("other", call) == 1
    pace.call("mcp__remit__mail_inbox", {}, ours=True)
    assert streaks.count("run", call) == 4
    pace.call("Bash", {"command": "make"})
    assert streaks.count("run", call) == 1


@pytest.mark.requirement("FX-11")
def test_what_a_limit_ended_has_a_fault_of_its_own() -> None:
    from remit.adapters.running import RunResult

    assert RUNAWAY == {
        "max_turns": Fault.TURNS,
        "repetition": Fault.REPETITION,
        "failed_calls": Fault.REPETITION,
    }
    assert report(RunResult(False, reason="max_turns"))["fault"] == "turns"
    assert report(RunResult(False, reason="repetition"))["fault"] == "repetition"
    assert report(RunResult(True))["fault"] is None


# ── what adapters see ───────────────────────────────────────────────────────────────────────────


def line(**event: Any) -> str:
    return json.dumps(event)


def test_claude_says_its_turns_and_calls() -> None:
    events = claude_cli.Events()

    def message(name: str, *parts: dict[str, Any], parent: str | None = None) -> None:
        start = {"type": "message_start", "message": {"id": name, "usage": {"input_tokens": 9}}}
        events.read(line(type="stream_event", event=start, parent_tool_use_id=parent))
        for part in parts:
            said = {"id": name, "content": [part], "usage": {"input_tokens": 9}}
            events.read(line(type="assistant", message=said, parent_tool_use_id=parent))

    use = {"type": "tool_use", "name": "Bash", "input": {"command": "ls"}}
    message("m1", {"type": "text", "text": "I look."}, use)
    message("m2", use, use)
    message("m3", use, parent="toolu_1")
    assert events.turns == 2
    assert events.calls == [("Bash", {"command": "ls"}, "")] * 3 + [
        ("Bash", {"command": "ls"}, "toolu_1")
    ]
    results = [
        {"type": "tool_result", "tool_use_id": "a", "is_error": True},
        {"type": "tool_result", "tool_use_id": "b"},
        {"type": "tool_result", "tool_use_id": "unknown", "is_error": True},
    ]
    message("m4", {**use, "id": "a"}, {**use, "id": "b", "name": "Read"}, parent="toolu_1")
    events.read(line(type="user", message={"content": results}))
    events.read(line(type="user", message={"content": "plain text"}))
    assert events.ends == [("Bash", True), ("Read", False)]
    # Cut off in the middle, it has read what it was given.
    assert events.spent.tokens_in == 36


def test_codex_says_its_calls_once_and_its_record_has_the_turns(tmp_path: Path) -> None:
    events = codex_cli.Events()
    call = {"id": "i1", "type": "mcp_tool_call", "server": "remit", "tool": "t", "arguments": {}}
    for when in ("item.started", "item.completed"):
        events.read(line(type=when, item=call))
    shell = {"id": "i2", "type": "command_execution", "command": "ls"}
    events.read(line(type="item.completed", item=shell))
    assert events.calls == [("remit/t", {}), ("a command", "ls")]
    assert events.ends == [("remit/t", False), ("a command", False)]
    for ended in ({"status": "failed"}, {"status": "completed", "exit_code": 1}):
        events.read(line(type="item.completed", item={**shell, **ended}))
    assert events.ends[2:] == [("a command", True)] * 2

    folder = tmp_path / "sessions/2026/01/02"
    folder.mkdir(parents=True)
    record = folder / "rollout-x-0123456789abcdef.jsonl"
    turn = line(payload={"type": "token_count", "info": {"total_token_usage": {}}}) + "\n"
    before = line(payload={"type": "token_count", "info": None}) + "\n"
    record.write_text(before + turn * 2)
    turns = codex_cli._Turns(tmp_path, None)
    assert turns.count("0123456789abcdef") == 2
    with record.open("a") as file:
        file.write(turn + turn[:20])
    assert turns.count("0123456789abcdef") == 3
    with record.open("a") as file:
        file.write(turn[20:] + "x" * 600_000)
    for _ in range(4):
        turns.count("0123456789abcdef")
    with record.open("a") as file:
        file.write("\n" + turn)
    assert turns.count("0123456789abcdef") == 5
    # A later run of the same conversation counts for itself.
    session = codex_cli.Session("0123456789abcdef")
    later = codex_cli._Turns(tmp_path, session)
    assert later.count(session.thread) == 0
    assert codex_cli._Turns(tmp_path, None).count("../../etc") == 0


# ── at the tools, whatever the program is ───────────────────────────────────────────────────────


def calls(number: int, **arguments: Any) -> list[dict[str, Any]]:
    return [{"tool": "mail_inbox", "arguments": arguments} for _ in range(number)]


async def needs(at: Stage, kind: str) -> list[dict[str, Any]]:
    found = await at.app.gate(at.board, needs_you.listing)
    return [one for one in found if one["kind"] == kind]


@pytest.mark.requirement("FX-11")
def test_a_program_that_repeats_itself_is_ended_at_the_tools(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage(tmp_path) as at:
            company = (await at.app.gate(at.board, companies.listing))[0]["id"]
            enough = [*calls(10), {"tool": "budget", "arguments": {}}, *calls(9)]
            await at.cast("scripted", {"script": enough})
            await at.send("Please do it.")
            (run,) = await at.over()
            assert run["status"] == "completed", run["error"]
            limits = {"identicalCalls": 5}
            await at.app.gate(at.board, companies.change, company=company, limits=limits)
            await at.cast("scripted", {"script": calls(6)})
            await at.send("Please do it again.")
            run = (await at.over(2))[1]
            assert (run["status"], run["exit_reason"]) == ("failed", "repetition")
            assert run["error"] == (
                "It called mail_inbox 5 times in a row with the same arguments. "
                "Its calls: 6 × mail_inbox."  # noqa: RUF001
            )
            (item,) = await needs(at, "runaway")
            assert item["next"].startswith(f"remit run tail {run['id']}, then remit cancel ")

    asyncio.run(story())


@pytest.mark.requirement("FX-64")
def test_a_program_whose_calls_fail_is_ended_at_the_tools(tmp_path: Path) -> None:
    """Each call differs from the one before, so that only their failing shows the loop."""

    def call_in_vain(agent: ScriptedAgent, number: int) -> None:
        agent.call("kb_read", id=f"00000000-0000-0000-0000-{number:012}")

    def play(url: str, token: str) -> None:
        with ScriptedAgent(url, token) as agent:
            for number in range(24):
                with pytest.raises(ToolRefused, match="not_found"):
                    call_in_vain(agent, number)
            agent.call("budget")
            for number in range(24):
                with pytest.raises(ToolRefused, match="not_found"):
                    call_in_vain(agent, number)
            with pytest.raises(ConnectionError, match="The token was revoked"):
                call_in_vain(agent, 24)

    async def story() -> None:
        async with stage(tmp_path) as at:
            begun = await at.app.gate(
                at.board, runs.start, agent="ceo", run=at.app.ids.new(), workspace=None
            )
            await asyncio.to_thread(play, at.url, begun["token"])
            (run,) = await at.runs()
            assert (run["status"], run["exit_reason"]) == ("failed", FAILED_CALLS)
            assert run["fault"] == "repetition"
            assert run["error"] == (
                "25 of its calls in a row were refused or failed, the last one of kb_read. Its "
                "calls: 49 × kb_read, 49 refused or failed; 1 × budget."  # noqa: RUF001
            )
            (item,) = await needs(at, "runaway")
            assert item["next"] == f"remit run tail {run['id']}, then remit agent pause ceo"

    asyncio.run(story())
