"""Contents that a call would write, as the difference to what they replace, and commits to merge.

A call that waits has its bytes stored already; its arguments, and so its digest, have their hash.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from remit.authority import Action
from remit.errors import RemitError
from remit.ids import short
from remit.model.connections.change import Change
from remit.model.connections.file_roles import marks
from remit.model.connections.whole_diff import LEFT_OUT, FileDifference
from remit.model.organisation.approval import Approval
from remit.model.organisation.statement import EntryKind
from remit.model.spelling import spelled, spelled_lines, spelled_name
from remit.model.work.file import File
from remit.services.changes import changes, differences
from remit.services.command import Context
from remit.services.governance.shapes import EntryShape
from remit.services.governance.statement_dangers import of_files
from remit.services.governance.statement_leaves import (
    entry,
    fact,
    text_difference,
    words,
)
from remit.services.redaction import text_without_secrets
from remit.services.subjects import decide_file
from remit.store.connections import changes as change_statements
from remit.store.work import files as file_statements

#: Largest text that is shown; a larger one is looked at by itself, as a binary content is.
LARGEST_SHOWN: Final = 256 * 1024
#: First bytes of some types of files.
_TYPES: Final = {
    b"\x89PNG": "PNG image",
    b"\xff\xd8\xff": "JPEG image",
    b"GIF8": "GIF image",
    b"%PDF": "PDF document",
    b"PK\x03\x04": "ZIP archive, or a document that is one",
    b"\x1f\x8b": "gzip archive",
    b"\x7fELF": "program (ELF)",
    b"MZ": "program (Windows)",
    b"# v2 git bundle": "git bundle",
    b"# v3 git bundle": "git bundle",
    b"SQLite format 3": "SQLite database",
}


_ELSEWHERE: Final = (
    "Its lines are not shown here, because they are too many or were not kept. Look at them first."
)


@dataclass
class Contents:
    """Entries about contents, whether they show all of it, and dangers of it in sentences."""

    entries: list[EntryShape] = field(default_factory=list)
    whole: bool = True
    dangers: list[str] = field(default_factory=list)


def written(ctx: Context, approval: Approval, arguments: object, *, mine: bool) -> Contents:
    """Return what a call would write, unless its `arguments` have it as a text; `mine` if the
    reader decides about it or asked for it."""
    file_id, sha256 = approval.blob_file_id, approval.blob_sha256
    if file_id is None or sha256 is None:
        return Contents()
    if isinstance(arguments, Mapping) and sha256 in map(_hash_of, arguments.values()):
        return Contents()
    replaced = ctx.tx.one(file_statements.FILE, file=file_id)
    if not mine and (replaced is None or not _may_read(ctx, replaced)):
        return Contents([entry("", EntryKind.NOTE, "Its content is not yours to read.")], False)
    try:
        content = _bytes(ctx, file_id, sha256)
    except (RemitError, OSError):
        lost = "Its content cannot be read here, so it cannot be approved."
        return Contents([entry("", EntryKind.NOTE, lost)], False)
    if len(content) <= LARGEST_SHOWN and hashlib.sha256(content).hexdigest() != sha256:
        other = "Its stored content is another than the one that was asked for; reject it."
        return Contents([entry("", EntryKind.NOTE, other)], False)
    if replaced is not None and _text(content) is not None:
        return Contents([*_replacing(ctx, approval, replaced, content)])
    return Contents([*_new(approval, content), *_replaced_bytes(replaced)])


def merged(ctx: Context, payload: Mapping[str, Any]) -> Contents:
    """Return the change that a call would merge: its commits, its files, and where to look."""
    kind, _, named = str(payload.get("resource") or "").partition(":")
    if kind != "change":
        return Contents()
    change = ctx.tx.one(change_statements.CHANGE, change=named)
    if change is None or change.company_id != ctx.company or not changes.sees(ctx, change):
        gone = "The change is not here, or not yours to see."
        return Contents([entry("", EntryKind.NOTE, gone)], False)
    entries = [*_merging(ctx, change, payload.get("arguments") or {})]
    return Contents(entries, dangers=[*of_files(changes.marked(change))])


def _merging(ctx: Context, change: Change, arguments: Mapping[str, Any]) -> Iterator[EntryShape]:
    repo = changes.repo_of(ctx, change)
    yield fact("repository", repo.name)
    yield fact("into", change.target)
    yield words("title", change.title)
    if change.description:
        yield words("description", change.description)
    yield fact("base", change.base_commit)
    yield fact("head", change.head_commit)
    if (arguments.get("head"), arguments.get("base")) != (change.head_commit, change.base_commit):
        moved = "Other commits are proposed by now, so the merge that was asked for is refused."
        yield entry("", EntryKind.NOTE, moved)
    known = differences.of(ctx, change)
    counted = {file.path: _counted(file) for file in known or ()}
    for number, touched in enumerate(change.touched):
        about = [*marks(touched), *counted.get(touched, ())]
        yield fact(f"files[{number}]", touched, ", ".join(about))
    for file in known or ():
        if file.lines is not None:
            yield entry(
                f"difference of {spelled_name(file.path)}", EntryKind.DIFFERENCE, *_changed(file)
            )
    if known is None or any(file.lines is None for file in known):
        yield entry("", EntryKind.NOTE, _ELSEWHERE)
    yield entry(
        "difference",
        EntryKind.LINK,
        f"/changes/{change.id}",
        f"remit change show {short(change.id)}",
    )


def _counted(file: FileDifference) -> list[str]:
    """Return how many lines of a file differ."""
    if file.added is None or file.removed is None:
        return ["no text"]
    return [f"{file.added} added, {file.removed} removed"]


def _changed(file: FileDifference) -> Iterator[str]:
    """The lines of a file that differ, without secrets."""
    if file.was != file.path:
        yield f"{LEFT_OUT} from the file {spelled(file.was)}"
    if file.note:
        yield f"{LEFT_OUT} {file.note}"
    if file.added is None:
        yield f"{LEFT_OUT} a content that is no text"
    if file.lines:
        yield from spelled_lines(text_without_secrets("\n".join(file.lines))[0])


def _replacing(
    ctx: Context, approval: Approval, file: File, content: bytes
) -> Iterator[EntryShape]:
    """The content of a text file beside the present one."""
    new = _text(content) or ""
    yield words("file", text_without_secrets(file.description)[0])
    if not _may_read(ctx, file):
        hidden = "The content that it replaces is not yours to read; the new one is below."
        yield entry("", EntryKind.NOTE, hidden)
        yield words("content", text_without_secrets(new)[0])
        return
    try:
        before = _text(_bytes(ctx, file.id, file.sha256))
    except (RemitError, OSError):
        before = None
    if before is None:
        yield entry("", EntryKind.NOTE, "It replaces a content that is no text, or cannot be read.")
        yield from _replaced_bytes(file)
        yield from _new(approval, content)
        return
    shown = [text_without_secrets(side)[0] for side in (before, new)]
    if before == new:
        yield entry("", EntryKind.NOTE, "The content stays the same.")
    elif shown[0] == shown[1]:
        yield entry("", EntryKind.NOTE, "Only a secret in it is different.")
    yield text_difference("content", *shown)


def _new(approval: Approval, content: bytes) -> Iterator[EntryShape]:
    """A content that replaces no text."""
    text = _text(content)
    if text is not None:
        yield words("content", text_without_secrets(text)[0])
        return
    big = len(content) > LARGEST_SHOWN
    plain = "text that is too long to be shown here" if big and b"\0" not in content else "unknown"
    kind = next((kind for start, kind in _TYPES.items() if content.startswith(start)), plain)
    yield fact("content.type", kind)
    yield fact("content.size", _size(approval) if big else len(content))
    yield fact("content.sha256", approval.blob_sha256)
    yield entry(
        "content",
        EntryKind.LINK,
        f"/api/approvals/{approval.id}/content",
        f"remit approval content {short(approval.id)}",
    )


def _replaced_bytes(file: File | None) -> Iterator[EntryShape]:
    if file is not None:
        yield words("file", text_without_secrets(file.description)[0])
        yield fact("replaces.size", file.size)
        yield fact("replaces.sha256", file.sha256)


def _may_read(ctx: Context, file: File) -> bool:
    return decide_file(ctx, Action.FILE_READ, file).allowed


def _bytes(ctx: Context, file_id: str, sha256: str) -> bytes:
    """Return the bytes of a content; of a larger one than can be shown, only the first."""
    with ctx.blobs.open(file_id, sha256) as stream:
        return stream.read(LARGEST_SHOWN + 1)


def _size(approval: Approval) -> object:
    """Return the size of a stored content, as the payload says it."""
    payload = json.loads(approval.payload)
    stored = payload["prepared"].get("new_stored") or payload["arguments"]
    return stored.get("size")


def _hash_of(value: object) -> str:
    encoded = value.encode(errors="replace") if isinstance(value, str) else b""
    return hashlib.sha256(encoded).hexdigest()


def _text(content: bytes) -> str | None:
    """Return a content as text; None if it is none, or too large to be shown."""
    if len(content) > LARGEST_SHOWN or b"\0" in content:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return text
