"""An instance inside this process, for measurements of the services without any transport."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from remit.app import App
from remit.model.execution.limit import Limit
from remit.services.command import Verb
from remit.services.identity import Caller
from remit.services.organisation import agents
from remit.services.people import companies
from remit.settings import load

P = ParamSpec("P")
R = TypeVar("R")


@dataclass
class Office:
    """The first company of an instance, called without async."""

    app: App
    board: Caller
    company: str
    #: The root agent, and how it calls.
    agent_id: str
    agent: Caller
    _runner: asyncio.Runner

    def call(self, caller: Caller, verb: Verb[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return self.wait(self.app.gate(caller, verb, *args, **kwargs))

    def wait(self, work: Awaitable[R]) -> R:
        return self._runner.get_loop().run_until_complete(work)

    def file(self, content: bytes, description: str = "Measured") -> dict[str, Any]:
        return self.wait(
            self.app.library.create(
                self.agent, content, company=self.company, description=description
            )
        )

    def read(self, file: str) -> None:
        self.wait(self.app.library.read(self.agent, file=file))

    def write(self, seen: dict[str, Any], content: bytes) -> dict[str, Any]:
        return self.wait(
            self.app.library.write(
                self.agent, content, file=seen["id"], version=seen["version"], sha256=seen["hash"]
            )
        )


@contextlib.contextmanager
def opened(home: Path, database_url: str | None = None) -> Iterator[Office]:
    settings = load({"REMIT_HOME": str(home), "REMIT_DATABASE_URL": database_url or ""})
    with asyncio.Runner() as runner:
        app = App(settings)
        try:
            runner.run(app.first_start())
            board = Caller(settings.board_token_file.read_text().strip())
            company = runner.run(app.gate(board, companies.listing))[0]["id"]
            # What is measured is work, not how it is slowed down.
            none = {limit.value: None for limit in Limit}
            runner.run(app.gate(board, companies.change, company=company, limits=none))
            root = runner.run(app.gate(board, agents.show, agent="ceo"))["id"]
            key = runner.run(app.gate(board, agents.create_key, agent=root))["token"]
            yield Office(app, board, company, root, Caller(key), runner)
        finally:
            runner.run(app.aclose())
