"""Processes that approve something and are killed at one of their statements."""

import asyncio
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remit.app import App
from remit.services.governance import approvals
from remit.services.identity import Caller
from remit.store.engine.postgres import PostgresTransaction
from remit.store.engine.sqlite import SqliteTransaction
from tests.company import settings
from tests.runtime_stage import Stage, fork_on_order
from tests.working import alive, eventually

MODULE = "tests.decision_stage"
FAILED = "it failed"


@dataclass
class Decision:
    url: str
    home: str
    approval: str
    #: At which statement it is killed; after the answer if it has fewer.
    dies_at: int
    #: Where it says what it was answered.
    said: str


def decide_and_die(stage: Stage, decision: Decision) -> str:
    """What it was answered before it was killed."""
    path = Path(decision.said)
    path.unlink(missing_ok=True)
    pid = stage.begin(decision, wait=False)
    eventually(lambda: not alive(pid))
    answer = path.read_text() if path.exists() else ""
    assert answer != FAILED, "it was not killed; what it said is above"
    return answer


def be(order: dict[str, Any]) -> None:
    decision = Decision(**order)
    try:
        asyncio.run(_decide(decision))
    finally:  # whoever is killed does not come here
        _say(decision, FAILED)


def _say(decision: Decision, answer: str) -> None:
    Path(decision.said).write_text(answer)


async def _decide(decision: Decision) -> None:
    app = App(settings(decision.url, Path(decision.home)))
    me = Caller(app.settings.board_token_file.read_text().strip())
    left = decision.dies_at

    def counting(run: Callable[..., Any]) -> Callable[..., Any]:
        def execute(self: Any, sql: str, parameters: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return run(self, sql, parameters)

        return execute

    for kind in (SqliteTransaction, PostgresTransaction):
        kind.execute = counting(kind.execute)  # type: ignore[method-assign]
    done = await app.gate(me, approvals.approve, approval=decision.approval, note="Yes.")
    _say(decision, str(done["status"]))
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    fork_on_order(be)
