"""Differences of changes, stored with their proposals: a document of Remit, whose hash is in the
chained event of the proposal.

A request to merge shows the document, where git and the repository are out of reach. A proposal of
before there were such documents has none.
"""

import hashlib
import json
from typing import Any, Final, TypedDict

from remit.errors import RemitError
from remit.ids import AgentId
from remit.model.connections import whole_diff
from remit.model.connections.change import LONGEST_TITLE, Change
from remit.model.connections.whole_diff import FileDifference
from remit.model.work.file import FileKind
from remit.services.command import Context
from remit.services.knowledge import documents
from remit.store.record import events as event_log

_PROPOSED: Final = "change.propose"


class Recorded(TypedDict):
    """Id and hash of the document of a difference."""

    file: str
    sha256: str


def keep(ctx: Context, author: AgentId, title: str, kept: Any) -> Recorded | None:
    """Make a document of a difference whose bytes are stored, as `kept` says; None if there is
    none, or the bytes were removed while the proposal waited for approval."""
    if kept is None:
        return None
    stored: documents.Stored = kept["stored"]
    if _bytes(ctx, kept["id"], stored["sha256"]) is None:
        return None
    file = documents.create(
        *(ctx, FileKind.FILE, f"Difference of {title}"[:LONGEST_TITLE], ""),
        home=author,
        file_id=kept["id"],
        stored=stored,
        unlisted=True,
        letter=True,
    )
    return {"file": file.id, "sha256": file.sha256}


def recorded(ctx: Context, change: Change) -> Recorded | None:
    """Return the difference that the last proposal of a change recorded for these commits."""
    last = ctx.tx.one(event_log.LAST_OF, resource=f"change:{change.id}", action=_PROPOSED)
    commits = {"head": change.head_commit, "base": change.base_commit}
    if last is None or not event_log.tells_of(last, **commits):
        return None
    difference: Recorded | None = json.loads(last.details).get("difference")
    return difference


def of(ctx: Context, change: Change) -> list[FileDifference] | None:
    """Return the difference of a change by file; None where it is not known."""
    kept = recorded(ctx, change)
    content = None if kept is None else _bytes(ctx, kept["file"], kept["sha256"])
    return None if content is None else whole_diff.read(content)


def _bytes(ctx: Context, file: str, sha256: str) -> bytes | None:
    """Return the bytes of a document, if they have this hash."""
    try:
        with ctx.blobs.open(file, sha256) as stream:
            content = stream.read()
    except (RemitError, OSError):
        return None
    return content if hashlib.sha256(content).hexdigest() == sha256 else None
