"""Documents that Remit writes itself: of outcomes, of an agent's memory, and its activity log.

An outcome's document shows its current status, reasons and parts above the prose that people and
agents wrote. An activity log shows the summaries that runs submitted. Neither can be overwritten
through the knowledge base. Daily notes are files of an agent's own, found by their descriptions.
"""

import json
import re
from dataclasses import asdict, replace
from typing import Any, cast

from remit.authority import Action
from remit.clock import to_iso
from remit.errors import BadInput
from remit.ids import AgentId, CompanyId, FileId
from remit.model.work.file import File, FileKind, Version
from remit.model.work.outcome import Outcome, OutcomeStatus
from remit.services import lookup, shapes
from remit.services.command import Context, query
from remit.store.blob_store.blobs import EMPTY
from remit.store.blob_store.spool import Content
from remit.store.engine.statement import renewed, row
from remit.store.organisation import workload
from remit.store.record import events as event_log
from remit.store.work import files as statements
from remit.store.work import outcomes as outcome_statements

#: Larger than any text that comes with a verb.
_LARGEST = 4 * 1024 * 1024
#: How many entries of a log are shown in one read.
_SHOWN_ENTRIES = 200
#: Greater than the number of any event.
_NEWEST = (1 << 62) - 1

Stored = shapes.StoredShape


def store(ctx: Context, file_id: str, text: str) -> Stored:
    """Make a text durable under a file's id, before the row that references it is committed."""
    if not text:
        return {"sha256": EMPTY, "size": 0, "is_text": True, "links": ()}
    with ctx.blobs.receive(_LARGEST) as spool:
        spool.write(text.encode())
        return stored_as(ctx.blobs.put(file_id, spool))


def stored_as(content: Content) -> Stored:
    return cast(Stored, asdict(content))


def create(
    ctx: Context,
    kind: FileKind,
    description: str,
    text: str,
    *,
    home: AgentId | None,
    file_id: str | None = None,
    stored: Stored | None = None,
    unlisted: bool = False,
    letter: bool = False,
) -> File:
    """Create a document; its bytes may have been stored already, under the same id."""
    new_id = file_id or ctx.ids.new()
    stored = stored or store(ctx, new_id, text)
    file = _new(ctx, new_id, kind, description, home, stored, unlisted=unlisted, letter=letter)
    ctx.tx.run(statements.INSERT_FILE, **row(file))
    add_version(ctx, file, stored["links"])
    return file


def create_empty(ctx: Context, home: AgentId, *new: tuple[str, FileKind, str]) -> None:
    """Several documents that nothing was written in yet: the id, kind and description of each."""
    files = [_new(ctx, id_, kind, what, home, store(ctx, id_, "")) for id_, kind, what in new]
    ctx.tx.run_for_each(statements.INSERT_FILE, [row(file) for file in files])
    ctx.tx.add(*(_version(ctx, file) for file in files))


def _new(
    ctx: Context,
    id_: str,
    kind: FileKind,
    description: str,
    home: AgentId | None,
    stored: Stored,
    *,
    unlisted: bool = False,
    letter: bool = False,
) -> File:
    return File(
        id=FileId(id_),
        company_id=CompanyId(ctx.company or ""),
        kind=kind,
        description=description,
        # Remit's own documents are found through their outcome or agent, not by browsing.
        unlisted=unlisted or kind is not FileKind.FILE,
        home_agent_id=home,
        version=1,
        sha256=stored["sha256"],
        size=stored["size"],
        is_text=stored["is_text"],
        links=len(stored["links"]),
        created_at=ctx.now,
        updated_at=ctx.now,
        letter=letter,
    )


def rewrite(ctx: Context, file: File, text: str) -> File:
    """Write the next version of a document that only Remit writes."""
    stored = store(ctx, file.id, text)
    content: Any = {**stored, "links": len(stored["links"])}
    new = replace(file, version=file.version + 1, **content)
    advance(ctx, file, new)
    written = ctx.tx.existing(statements.FILE, file=file.id)
    add_version(ctx, written, stored["links"])
    return written


def advance(ctx: Context, was: File, new: File) -> bool:
    """Replace the current version by the next one; False if another was written meanwhile."""
    seen = {"seen_version": was.version, "seen_sha256": was.sha256}
    if not ctx.tx.run(statements.ADVANCE_FILE, file=was.id, **seen, **renewed(new)):
        return False
    if was.links:
        ctx.tx.run(statements.CLEAR_LINKS, file=was.id)
    return True


def rename(ctx: Context, file_id: str, description: str) -> None:
    """Rename a document along with its outcome."""
    ctx.tx.run(
        statements.DESCRIBE_FILE, file=file_id, new_description=description, new_unlisted=True
    )


def add_version(ctx: Context, file: File, links: Any) -> None:
    ctx.tx.add(_version(ctx, file))
    for target in links:
        ctx.tx.run(statements.INSERT_LINK, file_id=file.id, target_id=target)


def _version(ctx: Context, file: File) -> Version:
    who = (ctx.actor.agent_id, ctx.actor.user_id, ctx.actor.run_id)
    content = (file.sha256, file.size, file.is_text)
    return Version(file.id, file.version, *content, ctx.now, *who)


def prose(ctx: Context, file_id: str) -> str:
    """Return the stored text of a document, which people and agents wrote."""
    file = ctx.tx.one(statements.FILE, file=file_id)
    if file is None:
        return ""
    with ctx.blobs.open(file.id, file.sha256) as stream:
        return stream.read().decode(errors="replace")


def heading(ctx: Context, file: File) -> str | None:
    """Return the text that Remit generates above (or instead of) the stored text of a document."""
    if file.kind is FileKind.OUTCOME:
        outcome = ctx.tx.one(outcome_statements.OUTCOME, outcome=file.id)
        return None if outcome is None else outcome_heading(ctx, outcome)
    if file.kind is FileKind.LOG:
        return activity_log(ctx, file)
    return None


def outcome_heading(ctx: Context, outcome: Outcome) -> str:
    """Status, rationale, reasons and parts, as Markdown."""
    lines = [f"# {outcome.title}", "", f"Status: {outcome.status.value}"]
    lines.append(f"Owner: {outcome.owner_id}")
    if outcome.status is not OutcomeStatus.OPEN and outcome.verdict:
        verdict = json.loads(outcome.verdict)
        lines.append(f"Rationale: {verdict.get('note') or 'none given'}")
        lines += [
            f"Evidence: kb://{seen['id']} version {seen['version']} ({seen['hash']})"
            for seen in verdict.get("evidence", ())
        ]
    for title, statement, more in (
        ("Why", outcome_statements.PARENTS, {}),
        ("How", outcome_statements.CHILDREN, {"limit": 500}),
        ("Waits for", outcome_statements.BLOCKERS, {}),
    ):
        others = ctx.tx.all(statement, outcome=outcome.id, **more)
        if others:
            lines += ["", f"## {title}", ""]
            lines += [f"- kb://{other.id} {other.title} ({other.status.value})" for other in others]
    return "\n".join(lines) + "\n\n"


def activity_log(ctx: Context, file: File) -> str:
    entries = log_entries(ctx, file.home_agent_id or "", _SHOWN_ENTRIES)
    lines = [f"# {file.description}", ""]
    for entry in entries:
        lines += [f"## {entry['at']}", "", entry["summary"], ""]
    return "\n".join(lines)


def log_entries(
    ctx: Context, agent: str, limit: int, before: int | None = None
) -> list[shapes.LogEntryShape]:
    """Return the log entries of an agent's runs, newest first."""
    events = ctx.tx.all(
        event_log.ON_BEFORE,
        resource=f"log:{agent}",
        before=_NEWEST if before is None else before,
        refused_too=False,
        limit=limit,
    )
    return [
        {
            "at": to_iso(event.at),
            "run_id": event.run_id,
            "summary": json.loads(event.details)["summary"],
            "seq": event.seq,
        }
        for event in events
    ]


def refuse_direct_writing(file: File) -> None:
    if file.kind is FileKind.OUTCOME:
        raise BadInput(
            "This is the document of an outcome.", "Change it with outcome_update.", code="outcome"
        )
    if file.kind is FileKind.LOG:
        raise BadInput(
            "An activity log is appended to by Remit.",
            "Submit a summary with log_submit.",
            code="activity_log",
        )


# ── daily notes ─────────────────────────────────────────────────────────────────────────────────

MOST_DAYS = 30
#: The description of the file of a day's notes.
_NAME = re.compile(r"memories/(\d{4}-\d\d-\d\d)\.md")


@query("notes.recent")
def recent(ctx: Context, *, days: int) -> list[tuple[str, str]]:
    """Return the caller's notes of the latest days that have any: day and file, latest first."""
    lookup.company_of_caller(ctx, None)
    me = ctx.actor.agent_id
    if me is None:
        raise BadInput("Only agents have notes.", "Look into the knowledge base.")
    ctx.require(Action.MESSAGE_READ, on="notes", place=(me,))
    files: dict[str, str] = {}
    for file, description in ctx.tx.all(workload.NOTES, agent=me, limit=4 * MOST_DAYS):
        if name := _NAME.fullmatch(description):
            files.setdefault(name[1], file)
    return list(files.items())[: min(max(days, 0), MOST_DAYS)]
