"""The story of the README, played by the real programs, while a person or a provider takes long.

A wish comes by mail; the root agent hires somebody for it, a person approves, the work comes back,
is judged, and the person is told. The programs take the models that they take by default, which
call tools in their own ways. Only the models are scripts, and only the waiting is not waited for:
the clock of the instance leaps.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from remit.clock import HOUR, MINUTE, Micros
from remit.services.governance import approvals
from remit.services.messaging import threads
from remit.services.screens import needs_you
from remit.services.work import outcomes
from tests.agent_stage import LeapingClock, Stage, stage, until
from tests.agents.fake_model import Request, Say, Step, ToolResult
from tests.real_programs import (
    Fake,
    answer_of,
    by_default,
    command,
    model,
    said_to,
    surroundings,
    use,
)

__all__ = ["surroundings"]

WISH = "I wish for a page about us."
RESULT = "The page about us is done."
#: Plan, write, judge; nobody is started to read that the hire was approved or the work accepted.
WANTED_RUNS = 4
#: In this order: of the root agent, and of whom it hires.
PAIRS = [("claude", "codex"), ("codex", "claude")]


class Root:
    """Plans, hires and ends; judges what is submitted, and tells the board. Remembers nothing."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.hire: dict[str, Any] = {}

    def __call__(self, request: Request) -> Sequence[Step]:
        told = said_to(dict(request))
        if "To judge: The page" in told:
            return self._judge(told)
        return self._plan() if WISH in told else [Say("There is nothing to do.")]

    def _plan(self) -> Sequence[Step]:
        def create(listed: ToolResult) -> dict[str, Any]:
            return {"parent_id": answer_of(listed)["outcomes"][0]["id"], "title": "The page"}

        def delegate(created: ToolResult) -> dict[str, Any]:
            return {"outcome_id": answer_of(created)["id"], "hire": self.hire}

        return [
            use(self._kind, "outcome_list", {}),
            use(self._kind, "outcome_create", create),
            use(self._kind, "delegate", delegate),
            Say("I asked for a writer."),
        ]

    def _judge(self, told: str) -> Sequence[Step]:
        (page,) = set(re.findall(r"hands in 'The page' \(outcome:([0-9a-f-]{36})\)", told))
        return [
            use(self._kind, "outcome_complete", {"id": page, "note": "I read it."}),
            use(self._kind, "mail_send", {"to": "board", "subject": "Done", "body": RESULT}),
            Say("It is judged, and the board knows."),
        ]


class Writer:
    """Writes the page and submits it."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._page = ""

    def __call__(self, request: Request) -> Sequence[Step]:
        def create(listed: ToolResult) -> dict[str, Any]:
            (self._page,) = (
                one["id"] for one in answer_of(listed)["outcomes"] if one["title"] == "The page"
            )
            return {"description": "The page", "content": "# About us"}

        def submit(created: ToolResult) -> dict[str, Any]:
            return {
                "id": self._page,
                "evidence": [answer_of(created)["id"]],
                "note": "It is written.",
            }

        return [
            use(self._kind, "outcome_list", {}),
            use(self._kind, "kb_create", create),
            use(self._kind, "outcome_submit", submit),
            Say("Submitted."),
        ]


async def later(at: Stage, clock: LeapingClock, time: Micros, step: Micros = 5 * MINUTE) -> None:
    """Time passes, and whatever comes due meanwhile is done."""
    for _ in range(time // step):
        clock.ahead += step
        while await at.app.clockwork.tick():
            pass
        if await at.is_busy():
            await at.rest()


async def approved(at: Stage) -> None:
    (asked,) = await at.app.gate(at.board, approvals.listing, company=None, status="pending")
    await at.app.gate(at.board, approvals.approve, approval=asked["id"])


async def comes_to_a_good_end(at: Stage, fakes: Sequence[Fake]) -> None:
    assert [fake.failures for fake in fakes] == [[] for _ in fakes]
    assert [text for text in await at.mail() if RESULT in text] == [RESULT]
    found = await at.app.gate(at.board, outcomes.listing, company=None, status="completed")
    assert "The page" in [one["title"] for one in found]
    assert {status for status, _ in await at.deliveries()} == {"done"}


@pytest.mark.requirement("FX-01", "FX-03", "FX-04")
@pytest.mark.parametrize(("root", "writer"), PAIRS)
def test_a_person_takes_an_hour_and_no_run_is_wasted(
    root: str, writer: str, tmp_path: Path
) -> None:
    async def story() -> None:
        command(root), command(writer)
        boss, clock = Root(root), LeapingClock()
        with model(root, boss) as above, model(writer, Writer(writer)) as below:
            async with stage(tmp_path, clock=clock) as at:
                boss.hire = {"name": "Ada", "adapter": writer, "config": by_default(writer, below)}
                await at.cast(root, by_default(root, above))
                await at.send(WISH)
                await at.over(1)
                await at.rest()
                await later(at, clock, HOUR)
                waiting = [one["kind"] for one in await at.app.gate(at.board, needs_you.listing)]
                assert "approval" in waiting
                await approved(at)
                await at.rest()
                await later(at, clock, HOUR)
                found = await at.runs()
                assert {run["status"] for run in found} == {"completed"}
                assert len(found) == WANTED_RUNS, [run["reason"] for run in found]
                await comes_to_a_good_end(at, [above, below])

    asyncio.run(story())


@pytest.mark.requirement("FX-07")
@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_a_model_that_answers_in_text_answers_the_person(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        command(kind)
        clock = LeapingClock()
        with model(kind, [Say("Done! I have mailed you the page.")]) as fake:
            async with stage(tmp_path, clock=clock) as at:
                await at.cast(kind, by_default(kind, fake))
                await at.send(WISH)
                await at.over(1)
                await at.rest()
                await later(at, clock, HOUR)
                (answer,) = await at.mail()
                assert "Done! I have mailed you the page." in answer
                assert len(await at.runs()) == 1

    asyncio.run(story())


@pytest.mark.requirement("FX-08", "FX-10")
def test_providers_fail_for_ten_minutes_and_the_wish_comes_to_its_end(tmp_path: Path) -> None:
    async def story() -> None:
        (root, writer) = PAIRS[0]
        command(root), command(writer)
        boss, clock = Root(root), LeapingClock()
        with (
            model(root, boss, fault=500) as above,
            model(writer, Writer(writer), fault=500) as below,
        ):
            async with stage(tmp_path, clock=clock) as at:
                set_up = by_default(writer, below, maxRetries=0)
                boss.hire = {"name": "Ada", "adapter": writer, "config": set_up}
                await at.cast(root, by_default(root, above, maxRetries=0))
                await at.send(WISH)
                await ten_bad_minutes(at, clock, above, ("queued", 1))
                await approved(at)
                await ten_bad_minutes(at, clock, below)
                await later(at, clock, HOUR)
                found = await at.runs()
                failed = [run for run in found if run["status"] == "failed"]
                assert {run["fault"] for run in failed} == {"overload"}
                assert len(found) - len(failed) <= WANTED_RUNS
                assert len(failed) <= 2
                await comes_to_a_good_end(at, [above, below])

    asyncio.run(story())


async def ten_bad_minutes(
    at: Stage, clock: LeapingClock, provider: Fake, waits: tuple[str, int] | None = None
) -> None:
    """The provider is asked each minute, and no run is started until it answers."""
    await at.rest()
    clock.ahead += MINUTE
    await until(lambda: provider.listed > 0)
    begun = len(await at.runs())
    for _ in range(10):
        listed = provider.listed
        clock.ahead += MINUTE
        await until(lambda: provider.listed > listed)  # noqa: B023
    assert len(await at.runs()) == begun
    assert waits is None or waits in await at.deliveries()
    assert (await at.runs())[-1]["status"] == "failed"
    provider.fault = None
    clock.ahead += MINUTE
    await at.over(begun + 1)
    await at.rest()


@pytest.mark.requirement("FX-63")
@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_a_one_word_answer_reaches_the_model_with_its_question(kind: str, tmp_path: Path) -> None:
    def brain(request: Request) -> Sequence[Step]:
        told = said_to(dict(request))
        if "| blue" in told:
            asked = "Red or blue for the page?" in told.rpartition("earlier: ")[2]
            return [Say("Blue it is." if asked else "What is blue?")]
        return [Say("Red or blue for the page?")]

    async def story() -> None:
        command(kind)
        with model(kind, brain) as fake:
            async with stage(tmp_path) as at:
                await at.cast(kind, by_default(kind, fake))
                await at.send(WISH)
                await at.over(1)
                await at.rest()
                (question,) = await at.app.gate(at.board, threads.own_inbox)
                await at.app.library.send(
                    at.board, to="agent:ceo", body="blue", reply_to=question["id"]
                )
                await at.over(2)
                await at.rest()
                assert any("Blue it is." in text for text in await at.mail())

    asyncio.run(story())
