"""Real agents are stopped within one turn of the model, and what they took is never lost.

The programs are the real Claude Code and Codex, and the loop of the extra `llm`; the model behind
them is a script on loopback that counts how often it is asked.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from remit.clock import day_of
from remit.services.hiring import configuration
from remit.services.organisation import agents, idleness
from remit.services.people import companies
from remit.services.screens import needs_you
from remit.services.spending import budgets
from tests.agent_stage import Answer, Stage, stage
from tests.agents.fake_anthropic import FakeAnthropic, Step, Use
from tests.http_client import Child
from tests.real_programs import (
    KINDS,
    RESUMED,
    command,
    config,
    model,
    story_of,
    surroundings,
    tool,
)
from tests.working import eventually

__all__ = ["surroundings"]  # a fixture

#: What the scripted models say that one turn takes.
TURN = {"claude": 15, "codex": 105, "llm": 105}


def endless(kind: str) -> list[Step]:
    return [Use(tool(kind, "mail_inbox"), {}) for _ in range(40)]


async def limited(at: Stage, **limits: int) -> None:
    await at.app.gate(at.board, configuration.change, agent="ceo", changes=limits)


async def seen(at: Stage) -> Answer:
    return await at.app.gate(at.board, budgets.show, agent="ceo")


async def idle(at: Stage) -> str:
    return str((await at.app.gate(at.board, idleness.why_idle, agent="ceo"))["reason"])


@pytest.mark.requirement("BX-09")
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_over_its_tokens_is_ended_within_one_turn(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        command(kind)
        turn = TURN[kind]
        with model(kind, endless(kind)) as fake:
            async with stage(tmp_path) as at:
                # No model answers at once, and what takes no time cannot be noticed in time.
                fake.delay_seconds = 0.5
                await limited(at, budgetMonthlyTokens=3 * turn)
                await at.cast(kind, config(kind, fake))
                await at.send("Please do it.")
                (run,) = await at.over()
                assert (run["status"], run["exit_reason"]) == ("failed", "budget"), run["error"]
                # The third turn is the last that it has; none is begun knowingly after that.
                asked = len(fake.requests)
                assert 3 <= asked <= 4
                assert run["tokens_in"] + run["tokens_out"] in (3 * turn, 4 * turn)
                side = (await seen(at))["tokens"]
                assert side["left"] == 0
                assert side["spent"] == side["spent_by_itself"] >= 3 * turn
                assert await idle(at) == "budget"
                # It is not started for that mail again, until there is something.
                assert len(await at.runs()) == 1
                await limited(at, budgetMonthlyTokens=4 * turn + turn // 2)
                _, again = await at.over(2)
                assert again["exit_reason"] == "budget"
                assert len(fake.requests) - asked <= 3

    asyncio.run(story())


@pytest.mark.requirement("BX-09")
def test_claude_gets_no_more_money_than_is_left(tmp_path: Path) -> None:
    async def story() -> None:
        command("claude")
        with model("claude", endless("claude")) as fake:
            async with stage(tmp_path) as at:
                # One turn costs 105 millionths of a dollar, so most of a cent has to be gone.
                await limited(at, budgetMonthlyCents=1)
                await _leave(at, micros=250)
                await at.cast("claude", config("claude", fake, maxBudgetUsd=5))
                await at.send("Please do it.")
                (run,) = await at.over()
                assert (run["status"], run["exit_reason"]) == ("failed", "budget"), run["error"]
                assert len(fake.requests) == 3
                assert run["cost_usd"] == pytest.approx(0.000315)
                assert (await seen(at))["money"]["left"] == 0
                assert await idle(at) == "budget"

    asyncio.run(story())


async def _leave(at: Stage, micros: int) -> None:
    """As if everything else had been spent before."""
    found = await seen(at)
    spent = found["money"]["left"] - micros

    def take(tx: Any) -> None:
        tx.execute("UPDATE budget_accounts SET charged = :spent", {"spent": spent})

    await at.app.gate.database.write(take)


@pytest.mark.parametrize("kind", KINDS)
def test_who_has_enough_is_not_disturbed_and_each_turn_is_counted_once(
    kind: str, tmp_path: Path
) -> None:
    async def story() -> None:
        command(kind)
        script = [*story_of(kind, "It is green."), *story_of(kind, "It is blue.")]
        with model(kind, script) as fake:
            async with stage(tmp_path) as at:
                await limited(at, budgetMonthlyTokens=10 * TURN[kind])
                await at.cast(kind, config(kind, fake, **RESUMED))
                await at.send("What colour is grass?")
                (first,) = await at.over(1)
                assert first["status"] == "completed", first["error"]
                side = (await seen(at))["tokens"]
                assert side["spent"] == 5 * TURN[kind]
                await at.send("And the sky?")
                _, second = await at.over(2)
                # Its last turn takes the last there is, which is no reason to cut it off.
                assert second["status"] == "completed", second["error"]
                assert (await seen(at))["tokens"]["left"] == 0
                assert second["tokens_in"] == first["tokens_in"]

    asyncio.run(story())


async def limit(at: Stage, **limits: int) -> None:
    company = (await at.app.gate(at.board, companies.listing))[0]["id"]
    await at.app.gate(at.board, companies.change, company=company, limits=limits)


@pytest.mark.requirement("FX-11", "FX-12")
@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_repeats_itself_is_ended_after_ten_calls(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        command(kind)
        script = [*story_of(kind, "It is green."), *endless(kind)]
        with model(kind, script) as fake:
            async with stage(tmp_path) as at:
                await at.cast(kind, config(kind, fake, **RESUMED))
                await at.send("What colour is grass?")
                (first,) = await at.over()
                asked = len(fake.requests)
                # A turn's tokens are read beside it, and took longer than 0.1 s once.
                fake.delay_seconds = 0.3
                await at.send("Please do it.")
                run = (await at.over(2))[1]
                assert (run["status"], run["exit_reason"]) == ("failed", "repetition"), run["error"]
                assert "10 times in a row" in run["error"]
                # The eleventh call is the one too many; the model may be asked while it is noticed.
                turns = len(fake.requests) - asked
                assert 11 <= turns <= 12
                taken = run["tokens_in"] + run["tokens_out"]
                assert 10 * TURN[kind] <= taken <= turns * TURN[kind]
                found = await at.app.gate(at.board, needs_you.listing)
                (item,) = [one for one in found if one["kind"] == "runaway"]
                assert item["next"].startswith(f"remit run tail {run['id']}, then remit cancel ")
                if kind == "claude":
                    # It was cut off before it could say what it cost: as much as before.
                    price = first["cost_usd"] / (first["tokens_in"] + first["tokens_out"])
                    assert run["cost_estimated"]
                    assert run["cost_usd"] == pytest.approx(taken * price, abs=1e-6)

    asyncio.run(story())


@pytest.mark.requirement("FX-11")
@pytest.mark.parametrize("kind", KINDS)
def test_a_run_ends_with_its_last_turn(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        command(kind)
        script: list[Step] = [
            Use(tool(kind, "kb_browse"), {"query": f"number {number}"}) for number in range(40)
        ]
        with model(kind, script) as fake:
            async with stage(tmp_path) as at:
                fake.delay_seconds = 0.3
                await limit(at, turnsPerRun=4)
                await at.cast(kind, config(kind, fake))
                await at.send("Please do it.")
                run = await at.first_over()
                assert (run["status"], run["exit_reason"]) == ("failed", "max_turns"), run["error"]
                # Codex has no limit of its own, so the turn after the last is cut off.
                turns = (run["tokens_in"] + run["tokens_out"]) // TURN[kind]
                assert 4 <= turns <= (6 if kind == "codex" else 4)

    asyncio.run(story())


@pytest.mark.requirement("FX-11", "FX-12")
def test_the_money_of_a_day_ends_a_run_of_claude(tmp_path: Path) -> None:
    async def story() -> None:
        command("claude")
        with model("claude", endless("claude")) as fake:
            async with stage(tmp_path) as at:
                # One turn costs 105 millionths of a dollar, so most of a cent has to be gone.
                await limit(at, companyCentsPerDay=1)
                await at.cast("claude", config("claude", fake, maxBudgetUsd=5))
                await _spent_today(at, micros=10_000 - 250)
                await at.send("Please do it.")
                (run,) = await at.over()
                assert (run["status"], run["exit_reason"]) == ("failed", "budget"), run["error"]
                assert len(fake.requests) == 3
                assert run["cost_usd"] == pytest.approx(0.000315)
                assert await idle(at) == "limit"
                assert len(await at.runs()) == 1

    asyncio.run(story())


async def _spent_today(at: Stage, micros: int) -> None:
    """As if somebody had spent so much before."""
    ceo = await at.app.gate(at.board, agents.show, agent="ceo")
    row = {
        "agent": ceo["id"],
        "company": ceo["company_id"],
        "day": day_of(at.app.clock.now()),
        "micros": micros,
    }

    def take(tx: Any) -> None:
        tx.execute("INSERT INTO spending VALUES (:agent, :day, :company, :micros, 0)", row)

    await at.app.gate.database.write(take)


@pytest.mark.requirement("BX-09")
def test_what_a_run_took_is_known_after_kill_9(tmp_path: Path) -> None:
    """The whole instance is killed in the middle of a run, and started again."""
    script: list[Step] = [
        Use("Bash", {"command": "true", "description": "x"}),
        # Claude Code refuses to wait by `sleep`.
        Use("Bash", {"command": "tail -f /dev/null", "description": "x"}),
    ]
    more = {"tools": None, "permissionMode": "bypassPermissions"}
    with FakeAnthropic(script) as fake:
        given = config("claude", fake, **more)
        with Child(tmp_path) as child:
            board = child.wait_until_ready()
            company = board.must("GET", "/api/companies")[0]["id"]
            ceo = board.must("GET", f"/api/companies/{company}/agents")[0]["id"]
            wanted = {"adapterType": "claude", "adapterConfig": given, "budgetMonthlyTokens": 1_000}
            board.must("PATCH", f"/api/agents/{ceo}", wanted)
            letter = {"to": f"agent:{ceo}", "body": "Please do it."}
            board.must("POST", f"/api/companies/{company}/messages", letter)

            def taken() -> int:
                found = board.must("GET", f"/api/companies/{company}/runs?live=true")
                return sum(one["tokensIn"] + one["tokensOut"] for one in found)

            eventually(lambda: taken() >= 2 * TURN["claude"], 60)
            child.stop(signal.SIGKILL)
        with Child(tmp_path) as child:
            board = child.wait_until_ready()
            run = board.must("GET", f"/api/companies/{company}/runs")[-1]
            assert (run["status"], run["exitReason"]) == ("lost", "lost")
            assert run["tokensIn"] + run["tokensOut"] == 2 * TURN["claude"]
            side = board.must("GET", f"/api/agents/{ceo}/budget")["tokens"]
            assert side["spent"] >= 2 * TURN["claude"]
            assert side["limit"] == 1_000
