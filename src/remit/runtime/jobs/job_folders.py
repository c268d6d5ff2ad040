"""Folders of background jobs: a fresh workspace and home for each attempt, deleted at its end."""

import logging
from dataclasses import dataclass
from pathlib import Path

from remit import threads
from remit.errors import Conflict, RemitError
from remit.runtime.runs.processes import end_leftovers_of_jobs
from remit.runtime.runs.workspace import destroy_workspace
from remit.services.command import Gate
from remit.services.execution import job_queue
from remit.services.identity import as_system
from remit.store.blob_store.blobs import storage_error

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class JobFolder:
    """The folder of one attempt at a job, so that two attempts never share one."""

    root: Path
    job: str
    epoch: int

    @property
    def name(self) -> str:
        return f"{self.job}-{self.epoch}"

    @property
    def path(self) -> Path:
        return self.root / self.name

    @property
    def workspace(self) -> Path:
        return self.path / "work"

    @property
    def home(self) -> Path:
        return self.path / "home"

    def make(self) -> None:
        destroy_workspace(self.path)
        try:
            for folder in (self.workspace / ".tmp", self.home):
                folder.mkdir(mode=0o700, parents=True)
        except OSError as error:
            raise storage_error(error) from error

    def remove(self) -> None:
        """Remove the folder; one that cannot be removed is left and logged."""
        _remove(self.path)

    def clear(self) -> None:
        """Kill the leftover processes of a dead worker's attempt, and remove its folder."""
        end_leftovers_of_jobs(self.path)
        _remove(self.path)


async def recover(gate: Gate, root: Path, *, alone: bool) -> None:
    """After a start, kill leftover programs of a former instance, and requeue its jobs.

    Beside other workers on the same database, their jobs are left to them and to their leases.
    """
    held = await gate(as_system(), job_queue.running)
    living = set() if alone else {JobFolder(root, *claim).name for claim in held}
    await threads.ENDINGS.run(end_leftovers_of_jobs, root, living)
    for job, epoch in held if alone else ():
        try:
            await gate(as_system(), job_queue.take_over, job=job, epoch=epoch, alone=True)
        except Conflict:
            continue
    await threads.FILES.run(_tidy, root, living)


def _tidy(root: Path, living: set[str]) -> None:
    for folder in root.iterdir() if root.is_dir() else ():
        if folder.name not in living:
            _remove(folder)


def _remove(folder: Path) -> None:
    try:
        destroy_workspace(folder)
    except RemitError as error:
        log.warning("the folder of a background job is left: %s", error)
