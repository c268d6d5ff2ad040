"""One background job, from the claim to its answer."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

from remit.adapters import registry
from remit.adapters.contract import Adapter
from remit.adapters.running import RunResult, Usage
from remit.errors import RemitError, Unsupported
from remit.runtime.execution import Context, Instance, call, lent_to, uninterrupted
from remit.runtime.job_folders import JobFolder
from remit.runtime.journal import Journal
from remit.runtime.processes import end_leftovers_of_jobs
from remit.runtime.workspace import materialise
from remit.services import job_work
from remit.services.identity import as_system

log = logging.getLogger(__name__)

#: Of what an attachment is about.
_TITLE = 200


class Unkept(Journal):
    """What a job prints is kept by nobody; its answer is."""

    def __init__(self) -> None:
        pass

    def add(self, text: str, stream: str) -> None:
        pass

    async def close(self) -> None:
        pass


@dataclass
class JobContext(Context):
    """A run without Remit."""

    background: bool = True
    folder: JobFolder | None = None

    async def reported(self) -> RunResult:
        raise Unsupported("A background job has nobody elsewhere to wait for.")

    async def close(self) -> None:
        """Nothing of the job stays alive."""
        await asyncio.gather(*(child.end() for child in self.children), return_exceptions=True)
        if self.folder is not None and any(not child.sandboxed for child in self.children):
            await asyncio.to_thread(end_leftovers_of_jobs, self.folder.path)


@dataclass
class Spent:
    """What a job has taken so far, for when it is cut off."""

    context: JobContext | None = None

    @property
    def usage(self) -> Usage:
        return Usage() if self.context is None else self.context.spent


async def execute(app: Instance, held: job_work.Held, folder: JobFolder, spent: Spent) -> RunResult:
    """Carry a job out and say how it ended; only being cancelled is not an end like others."""
    try:
        return await _execute(app, held, folder, spent)
    except RemitError as error:
        return RunResult(False, reason=error.reason, error=error.sentence)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return RunResult(False, reason="storage", error=f"its folders cannot be used ({reason})")
    except Exception as error:
        log.exception("background job %s could not be carried out", held[0])
        return RunResult(False, reason="internal", error=f"Remit failed ({error!r})"[:500])


async def _execute(
    app: Instance, held: job_work.Held, folder: JobFolder, spent: Spent
) -> RunResult:
    job, epoch = held
    known = await app.gate(as_system(), job_work.material, job=job, epoch=epoch)
    adapter = registry.get(known["adapter_type"])
    if not adapter.background:
        raise Unsupported(f"The adapter {adapter.type} cannot do background jobs.")
    await asyncio.to_thread(folder.make)
    text = await app.library.run(_text, app, folder.workspace, known)
    context = _context(adapter, app, job, folder, known, text)
    spent.context = context
    try:
        return await call(adapter, context)
    finally:
        await uninterrupted(context.close())


def _context(
    adapter: Adapter,
    app: Instance,
    job: str,
    folder: JobFolder,
    known: dict[str, Any],
    text: str,
) -> JobContext:
    return JobContext(
        config=registry.read(known["adapter_type"], known["adapter_config"]),
        agent=known["agent"],
        run_id=job,
        url="",
        token="",
        workspace=folder.workspace,
        home=folder.home,
        instructions="",
        turn=text,
        session=None,
        credentials=lent_to(adapter),
        journal=Unkept(),
        gate=app.gate,
        may_have_full_access=known["full_access"],
        hidden=[app.settings.home],
        folder=folder,
    )


def _text(app: Instance, workspace: Path, known: dict[str, Any]) -> str:
    """What was sent, and the list of what came along, each a file that can only be read."""
    blobs = app.library.blobs
    with blobs.open(known["body"]["id"], known["body"]["hash"]) as stream:
        text = stream.read().decode(errors="replace")
    lines = [text if text.strip() else known["subject"]]
    if known["attachments"]:
        lines += ["", "Attachments:"]
    for file in known["attachments"]:
        with blobs.open(file["id"], file["hash"]) as stream:
            if file["heading"] is not None:
                stream = BytesIO(file["heading"].encode() + stream.read())
            place = materialise(workspace, file["id"], stream)
        title = " ".join(str(file["description"]).split())[:_TITLE]
        lines.append(f"- {place} ({title})")
    return "\n".join(lines)
