"""Writing a company down.

    decide and record ─► an outline, from one snapshot of the database ─► the tar, as it is read

The outline is a temporary file: texts as they will be, and where the bytes of each version are.
Versions never change and are never deleted, so their bytes can be fetched while the caller reads;
nobody waits for a slow caller, and nothing but a page of rows and a piece of a file is in memory.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import IO, BinaryIO, Self

from remit.authority import Action
from remit.errors import NotFound, Unavailable
from remit.model.work.file import FileKind
from remit.model.work.outcome import Outcome, OutcomeKind, OutcomeStatus
from remit.services import lookup, shapes
from remit.services.archive import connections, governance, layout, mail, tar
from remit.services.archive.text import dump, line, with_prose
from remit.services.command import Context, command, query
from remit.services.knowledge.file_contents import PIECE
from remit.services.work import waits
from remit.store.blob_store.blobs import BlobStore
from remit.store.messaging.mail import DELIVERIES_OF
from remit.store.organisation import people
from remit.store.organisation.governance import COMMENTS, REVISIONS
from remit.store.organisation.grants import LIVE_IN_COMPANY
from remit.store.paging import each
from remit.store.record import company_dump
from remit.store.record import events as event_log
from remit.store.work.files import FILE
from remit.store.work.outcomes import OUTCOME

_TEXT, _BLOB = b"T", b"B"
_LENGTH = struct.Struct(">Q")


@command("exporting.begin")
def begin(ctx: Context, *, company: str) -> shapes.ExportedShape:
    """Authorise the export of a whole company, and record it."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_EXPORT, on=f"company:{ctx.company}")
    ctx.record("company.export", f"company:{ctx.company}", {"format": layout.FORMAT})
    return {"id": ctx.company}


@query("exporting.write_outline")
def write_outline(ctx: Context, *, company: str, new_outline: Outline) -> None:
    """Write the outline of the company's archive, from one snapshot."""
    outline = new_outline.afresh()
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_EXPORT, on=f"company:{ctx.company}")
    company_row = ctx.tx.one(people.COMPANY)
    if company_row is None:
        raise NotFound.of("company")
    agents = list(each(ctx.tx, company_dump.AGENTS))
    names: dict[str, str] = {agent.id: agent.name for agent in agents}
    members = ctx.tx.all(people.MEMBERS, after="", limit=100_000)
    seats = {agent.name: agent.seat_user_id for agent in agents if agent.seat_user_id}

    outline.text(layout.README, layout.README_TEXT)
    outline.text(layout.ATTRIBUTES, layout.ATTRIBUTES_TEXT)
    outline.text(layout.COMPANY, dump(layout.company(company_row, members, seats)).encode())
    for agent in agents:
        mandate = ctx.tx.existing(OUTCOME, outcome=agent.id)  # an agent has a mandate
        places = ctx.tx.all(company_dump.PLACES, agent=agent.id)
        head, prompt = layout.agent(agent, mandate.title, names, places)
        prose = f"\n{prompt}\n".encode() if prompt else b""
        outline.text(layout.agent_path(agent), with_prose(head) + prose)
    with_mail = set(ctx.tx.all(company_dump.AGENTS_WITH_MAIL))
    for outcome in each(ctx.tx, company_dump.OUTCOMES):
        if outcome.kind is OutcomeKind.INBOX:
            outcome = _without_runs(outcome, outcome.owner_id in with_mail)
        head = layout.outcome(
            outcome,
            names,
            ctx.tx.all(company_dump.PARENTS, outcome=outcome.id),
            ctx.tx.all(company_dump.BLOCKERS, outcome=outcome.id),
            [
                waits.matter(wait.kind, wait.subject_id)
                for wait in (waits.of_outcome(ctx, outcome.id) if outcome.open_waits else ())
                if wait.kind in waits.BEGUN_AGAIN
            ],
        )
        # An outcome and its document are created together.
        document = ctx.tx.existing(FILE, file=outcome.id)
        path = layout.outcome_path(outcome.id)
        outline.prose(path, with_prose(head), document.id, document.sha256, document.size)
    for file in each(ctx.tx, company_dump.FILES):
        versions = ctx.tx.all(company_dump.VERSIONS, file=file.id)
        meta = layout.file(file, names, versions)
        outline.text(layout.meta_path(file.id), dump(meta).encode())
        for version in versions:
            if file.kind is not FileKind.OUTCOME or version.number != file.version:
                path = layout.version_path(file, version.number)
                outline.blob(path, file.id, version.sha256, version.size)
    grants = each(ctx.tx, LIVE_IN_COMPANY)
    outline.lines(layout.GRANTS, (line(layout.grant(grant)) for grant in grants))
    outline.lines(layout.MAIL, _mail(ctx))
    questions = each(ctx.tx, company_dump.QUESTIONS)
    outline.lines(layout.QUESTIONS, (line(mail.QUESTION.write(question)) for question in questions))
    schedules = each(ctx.tx, company_dump.SCHEDULES)
    outline.lines(layout.SCHEDULES, (line(mail.SCHEDULE.write(schedule)) for schedule in schedules))
    written = {
        approval.id
        for approval in each(ctx.tx, company_dump.APPROVALS)
        if governance.travels(approval)
    }
    outline.lines(layout.APPROVALS, _approvals(ctx))
    configs = each(ctx.tx, company_dump.CONFIGURATIONS)
    outline.lines(
        layout.CONFIGURATIONS,
        (line(governance.configuration(config, written)) for config in configs),
    )
    outline.lines(layout.BINDINGS, connections.binding_lines(ctx))
    outline.text(layout.SETUP, dump(connections.setup(ctx)).encode())
    events = each(ctx.tx, event_log.EVENTS_AFTER, key="seq", after=0)
    outline.lines(layout.EVENTS, (line(layout.event(event)) for event in events))
    outline.end()


def _without_runs(inbox: Outcome, waiting: bool) -> Outcome:
    """An inbox as if no run had taken mail up."""
    if waiting == (inbox.status is OutcomeStatus.OPEN):
        return inbox
    if waiting:
        return replace(inbox, status=OutcomeStatus.OPEN, finished_at=None, verdict=None)
    return replace(inbox, status=OutcomeStatus.COMPLETED, finished_at=inbox.updated_at)


def _mail(ctx: Context) -> Iterator[bytes]:
    for message in each(ctx.tx, company_dump.MESSAGES):
        deliveries = ctx.tx.all(DELIVERIES_OF, message=message.id)
        yield line(mail.message(message, deliveries))


def _approvals(ctx: Context) -> Iterator[bytes]:
    for approval in each(ctx.tx, company_dump.APPROVALS):
        if governance.travels(approval):
            revisions = ctx.tx.all(REVISIONS, approval=approval.id)
            comments = ctx.tx.all(COMMENTS, approval=approval.id, after="", limit=1 << 30)
            yield line(governance.approval(approval, revisions, comments))


class Outline:
    """An archive in a temporary file, with references in place of stored bytes."""

    def __init__(self, folder: Path) -> None:
        self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  until close()
        #: Size of the whole archive.
        self.size = 0

    def afresh(self) -> Self:
        """Clear the outline: a database may retry a read."""
        self._file.seek(0)
        self._file.truncate()
        self.size = 0
        return self

    def text(self, path: str, content: bytes) -> None:
        self._plain(tar.header(path, len(content)))
        self._plain(content + bytes(tar.padding(len(content))))

    def blob(self, path: str, file_id: str, sha256: str, size: int) -> None:
        self._plain(tar.header(path, size))
        self._blob(file_id, sha256, size)
        self._plain(bytes(tar.padding(size)))

    def prose(self, path: str, head: bytes, file_id: str, sha256: str, size: int) -> None:
        """Write a file that has a head, and below it the prose of a stored version."""
        if not size:
            self.text(path, head)
            return
        whole_size = len(head) + size + 2
        self._plain(tar.header(path, whole_size))
        self._plain(head + b"\n")
        self._blob(file_id, sha256, size)
        self._plain(b"\n" + bytes(tar.padding(whole_size)))

    def lines(self, path: str, rows: Iterable[bytes]) -> None:
        """Write a file whose size is known only at its end."""
        start = self._file.tell()
        self._plain(bytes(tar.BLOCK))
        size = 0
        for row in rows:
            self._plain(row)
            size += len(row)
        self._plain(bytes(tar.padding(size)))
        end = self._file.tell()
        self._file.seek(start + 1 + _LENGTH.size)
        self._file.write(tar.header(path, size))
        self._file.seek(end)

    def end(self) -> None:
        self._plain(tar.END)
        self._file.flush()

    def pieces(self, blobs: BlobStore) -> Iterator[bytes]:
        """The bytes of the archive, in pieces of a useful size."""
        self._file.seek(0)
        waiting = bytearray()
        for chunk in self._chunks(blobs):
            waiting += chunk
            if len(waiting) >= PIECE:
                yield bytes(waiting)
                waiting.clear()
        if waiting:
            yield bytes(waiting)

    def close(self) -> None:
        self._file.close()

    def _chunks(self, blobs: BlobStore) -> Iterator[bytes]:
        while kind := self._file.read(1):
            (length,) = _LENGTH.unpack(self._file.read(_LENGTH.size))
            if kind == _TEXT:
                yield from _exactly(self._file, length, "outline")
                continue
            file_id, sha256 = self._file.read(36).decode(), self._file.read(64).decode()
            with blobs.open(file_id, sha256) as stream:
                yield from _exactly(stream, length, file_id)

    def _plain(self, content: bytes) -> None:
        if content:
            self._file.write(_TEXT + _LENGTH.pack(len(content)) + content)
            self.size += len(content)

    def _blob(self, file_id: str, sha256: str, size: int) -> None:
        if size:
            pointer = file_id.encode() + sha256.encode()
            self._file.write(_BLOB + _LENGTH.pack(size) + pointer)
            self.size += size


def _exactly(stream: IO[bytes] | BinaryIO, length: int, what: str) -> Iterator[bytes]:
    while length:
        piece = stream.read(min(length, PIECE))
        if not piece:
            raise Unavailable(f"The content of {what} ends too early.", "Run `remit doctor`.")
        length -= len(piece)
        yield piece
