"""What every chapter of the demonstration needs: a company, agents that act, and a check."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from remit.app import App
from remit.entrypoints.cli.narrator import Narrator
from remit.errors import Conflict
from remit.runtime import runs
from remit.services.identity import Caller
from remit.testing import ScriptedAgent, ToolRefused

T = TypeVar("T")


class WentWrong(Exception):
    """The story cannot go on, because something is not as it has to be."""


class Stage:
    """Each chapter does something real, says what happened, and checks that it did."""

    #: Set once the company exists.
    company: str

    def __init__(self, app: App, url: str, board: Caller, narrator: Narrator) -> None:
        self.app = app
        self.url = url
        self.board = board
        self.narrator = narrator
        self.came_out_right = True

    async def start(self, agent: str) -> runs.LiveRun:
        return await runs.begin(self.app.gate, self.app.ids, self.app.settings.workspaces, agent)

    async def finish(self, run: runs.LiveRun) -> None:
        with contextlib.suppress(Conflict):  # whoever was shut down is not running any more
            await runs.finish(self.app.gate, run)

    async def refused(self, agent: ScriptedAgent, tool: str, /, **arguments: Any) -> ToolRefused:
        """A call that must be refused; the refusal is shown as the agent reads it."""
        try:
            await call(agent, tool, **arguments)
        except ToolRefused as refused:
            self.narrator.refused(str(refused))
            return refused
        self.came_out_right = False
        return ToolRefused("allowed: It should have been refused.", {})

    def expect(self, true: bool) -> None:
        self.came_out_right = self.came_out_right and true


def only(found: Sequence[T], what: str) -> T:
    """The one that has to be there."""
    if len(found) != 1:
        raise WentWrong(f"There should be one {what}, and there are {len(found)}.")
    return found[0]


async def call(agent: ScriptedAgent, tool: str, /, **arguments: Any) -> dict[str, Any]:
    """Agents are other programs; their calls must not hold up the instance in this one."""
    work: Callable[..., dict[str, Any]] = agent.call
    return await asyncio.to_thread(work, tool, **arguments)
