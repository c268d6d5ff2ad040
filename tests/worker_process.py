"""A worker in a process of its own: `python -m tests.worker_process URL HOME NAME SLOTS`."""

import asyncio
import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from remit.app import App
from remit.runtime.worker import Worker
from tests.company import Company, settings
from tests.working import NOWHERE

ROOT = Path(__file__).parent.parent


@contextlib.contextmanager
def beside(company: Company, name: str, slots: int) -> Iterator[None]:
    """One beside the test, killed at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", __name__, company.url, str(company.home), name, str(slots)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


async def _work(url: str, home: str, name: str, slots: str) -> None:
    worker = Worker(App(settings(url, Path(home))), NOWHERE, name=name, slots=int(slots))
    worker.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(_work(*sys.argv[1:]))
