"""The first agent of an instance without a model: it says so, once to each letter."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from remit.services.messaging import threads
from remit.testing import ScriptedAgent, ToolRefused
from tests.agent_stage import Stage, stage


def answers(at: Stage) -> Any:
    return at.app.gate(at.board, threads.own_inbox, company=None, everything=True)


@pytest.mark.slow
def test_an_agent_without_a_model_says_so_once_to_each_letter_of_a_person(tmp_path: Path) -> None:
    async def story() -> None:
        async with stage(tmp_path) as at:
            await at.send("Write a page.")
            await at.over(1)
            await at.send("Did you?")
            await at.over(2)
            found = await answers(at)
            assert len(found) == 2
            for one in found:
                assert "I have no model" in one["body"]
                assert "remit agent set ceo adapterType=claude" in one["body"]
            # An agent that writes is not answered: two of a kind would never stop.
            await at.hire("other", "scripted", {"script": [SEND]}, perpetual=True)
            await at.send("Go.", to="agent:other")
            runs = await at.over(4)
            assert {run["status"] for run in runs} == {"completed"}
            await at.rest()
            assert len(await at.runs()) == len(runs)
            assert len(await answers(at)) == 2

    asyncio.run(story())


SEND = {"tool": "mail_send", "arguments": {"to": "agent:ceo", "body": "Hello."}}


@pytest.mark.slow
def test_it_says_so_once_even_if_its_run_has_to_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = ScriptedAgent.call
    refused: list[str] = []

    def fails_once(self: ScriptedAgent, tool: str, **arguments: Any) -> dict[str, Any]:
        if tool == "mail_ack" and not refused:
            refused.append(tool)
            raise ToolRefused("unavailable: Not now.", {})
        return call(self, tool, **arguments)

    monkeypatch.setattr(ScriptedAgent, "call", fails_once)

    async def story() -> None:
        async with stage(tmp_path) as at:
            await at.send("Write a page.")
            runs = await at.over(2)
            assert [run["status"] for run in runs] == ["failed", "completed"]
            bodies = [one["body"] for one in await answers(at)]
            assert sum("I have no model" in body for body in bodies) == 1

    asyncio.run(story())
