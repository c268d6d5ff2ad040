"""A worker in a process of its own."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from remit.app import App
from remit.runtime.runs.worker import Worker
from tests import cli_forks
from tests.company import Company, settings
from tests.working import NOWHERE


@contextlib.contextmanager
def beside(company: Company, name: str, slots: int) -> Iterator[None]:
    """One beside the test, killed at the end."""
    arguments = [company.url, str(company.home), name, str(slots)]
    script = f"from {__name__} import main\nmain()"
    with cli_forks.instances().start(arguments, os.environ, (None, 1, 2), script=script):
        yield


def main() -> None:
    asyncio.run(_work(*sys.argv[1:]))


async def _work(url: str, home: str, name: str, slots: str) -> None:
    worker = Worker(App(settings(url, Path(home))), NOWHERE, name=name, slots=int(slots))
    worker.start()
    await asyncio.Event().wait()
