"""A stage with real agents: a separate instance with a worker and a real adapter."""

import asyncio
import contextlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

from remit.app import App
from remit.clock import SECOND, Micros
from remit.entrypoints.serve import running
from remit.errors import BadInput, Unsupported
from remit.runtime.runs.worker import Worker
from remit.services.command import Verb
from remit.services.execution import run_queue
from remit.services.hiring import configuration
from remit.services.identity import Caller, as_system
from remit.services.organisation import agents
from remit.services.people import companies
from remit.settings import load
from remit.testing.scenario import Part

#: Between two checks whether all agents are idle.
_LOOK_SECONDS = 0.2
#: Number of successive idle checks after which agents are at rest, because mail may be on its way.
_QUIET_LOOKS = 5


class RealStage:
    """A stage in a temporary home."""

    def __init__(
        self,
        runner: asyncio.Runner,
        app: App,
        adapter: str,
        config: Mapping[str, Any],
        patience: float,
    ) -> None:
        self._runner = runner
        self._app = app
        self._adapter = adapter
        self._config = dict(config)
        self._patience = patience
        self._board = Caller(app.settings.board_token_file.read_text().strip())
        self.company: str = self.do(companies.listing)[0]["id"]

    def do(self, verb: Verb[..., Any], **arguments: Any) -> Any:
        return self._runner.run(self._app.gate(self._board, verb, **arguments))

    def cast(self, part: Part) -> None:
        staff = self.do(agents.listing, company=self.company, limit=1000)
        by_name = {agent["name"]: agent for agent in staff}
        post = dict(part.post)
        config = {**self._config, **post.pop("adapter_config", {})}
        if part.name in by_name:
            changes = {"adapterType": self._adapter, "adapterConfig": config}
            if "prompt" in post:
                changes["prompt"] = post["prompt"]
            self.do(configuration.change, agent=by_name[part.name]["id"], changes=changes)
        elif part.boss is not None:
            self.do(
                agents.create,
                company=self.company,
                name=part.name,
                reports_to=by_name[part.boss]["id"],
                adapter_type=self._adapter,
                adapter_config=config,
                **post,
            )

    def rest(self) -> None:
        self._runner.run(self._rest())

    async def _rest(self) -> None:
        quiet = 0
        left = self._patience
        while quiet < _QUIET_LOOKS:
            ready = await self._app.gate(as_system(), run_queue.ready)
            live = await self._app.gate(as_system(), run_queue.live)
            quiet = 0 if ready or live else quiet + 1
            await asyncio.sleep(_LOOK_SECONDS)
            left -= _LOOK_SECONDS
            if left <= 0:
                raise BadInput(
                    f"After {self._patience:.0f} seconds agents are still at work.",
                    "Allow more with --patience, or look at what they do.",
                )

    def wait(self, time: Micros) -> None:
        if time > 60 * SECOND:
            raise Unsupported("Real time cannot be skipped.", "Simulate it, or wait less.")
        self._runner.run(asyncio.sleep(time / SECOND))
        self.rest()

    def crash(self) -> None:
        raise Unsupported("A real instance is not killed here.", "Simulate it instead.")


@contextlib.contextmanager
def real_stage(
    adapter: str, config: Mapping[str, Any], *, patience: float = 600
) -> Iterator[RealStage]:
    with contextlib.ExitStack() as opened:
        folder = tempfile.mkdtemp(prefix="remit-scenario-")
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        runner = opened.enter_context(asyncio.Runner())
        instance = running(load({"REMIT_HOME": folder}))
        app, url, _ = runner.run(instance.__aenter__())
        opened.callback(lambda: runner.run(instance.__aexit__(None, None, None)))
        worker = runner.run(_started(app, url))
        opened.callback(lambda: runner.run(worker.stop()))
        yield RealStage(runner, app, adapter, config, patience)


async def _started(app: App, url: str) -> Worker:
    worker = Worker(app, url)
    worker.start()
    return worker
