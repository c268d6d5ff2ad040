"""The knowledge base: decisions and records about files. Their bytes: `file_contents.py`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from remit.authority import Action, GivenFacts
from remit.errors import BadInput, Conflict, NotFound, RemitError
from remit.ids import END_OF_IDS, AgentId, FileId, is_id
from remit.model.organisation.decision import Effect
from remit.model.organisation.grant import Level, kb_file
from remit.model.organisation.principal import ActorKind
from remit.model.text import clean_text, relevance, search_words
from remit.model.work.file import (
    LONGEST_DESCRIPTION,
    MOST_INDEXED_WORDS,
    Access,
    File,
    FileKind,
    Version,
)
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, logged, query
from remit.services.fields import FileRef, Limit, Text
from remit.services.knowledge import documents
from remit.services.rights import grants
from remit.services.subjects import decide_file, require_file
from remit.services.surfaces import AsCommand, AsRoute, AsTool
from remit.services.verbs import Added
from remit.store.blob_store.spool import Content
from remit.store.engine.statement import SQLITE, renewed
from remit.store.messaging import mail as mail_statements
from remit.store.work import files as statements

MOST_WORDS = 16
#: Most matches that are ranked; of more, the newest.
MOST_RANKED = 200
LAST = (1 << 62) - 1
#: A search in contents opens at most so many files for a page, and none that is larger.
MOST_OPENED = 200
LARGEST_SEARCHED = 256 * 1024


@command("files.create")
def create(
    ctx: Context,
    *,
    company: str | None,
    new_id: str,
    description: object,
    sha256: str,
    size: int,
    is_text: bool,
    links: Sequence[str] = (),
    unlisted: bool = False,
) -> shapes.FileShape:
    """Create a file whose first version is stored already; its creator may write it."""
    description = clean_text(description, "description", longest=LONGEST_DESCRIPTION)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.FILE_CREATE, on=f"kb_file:{new_id}", home=_home(ctx))
    assert is_id(new_id)
    stored = documents.stored_as(Content(sha256, size, tuple(links), is_text))
    place: Any = {"home": _home(ctx), "unlisted": unlisted, "file_id": new_id}
    new = documents.create(ctx, FileKind.FILE, description, "", stored=stored, **place)
    _note_access(ctx, new.id, Access.WRITE, new.version)
    index(ctx, new.id, description)
    details: dict[str, object] = {"description": description, "version": 1, "hash": sha256}
    if ctx.actor.agent_id is not None:
        details["grant"] = grants.give_by_rule(ctx, ctx.actor.agent_id, new.id, Level.WRITE).id
    ctx.record("file.create", f"kb_file:{new.id}", details)
    return views.file(new)


@query("files.may_write")
def may_write(ctx: Context, *, file: str, version: object, sha256: object) -> str:
    """Refuse early a write that would be refused late, before any bytes are stored. Returns the
    id."""
    # Approval is asked for by the write itself; bytes that are stored before do no harm.
    file_row = lookup.file(ctx, file)
    require_file(ctx, Action.FILE_WRITE, file_row, asking_too=True)
    documents.refuse_direct_writing(file_row)
    _check_seen(file_row, version, sha256)
    return file_row.id


@query("files.may_create")
def may_create(ctx: Context, *, company: str | None) -> None:
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.FILE_CREATE, on="kb_file", home=_home(ctx))


@command("files.write")
def write(
    ctx: Context,
    *,
    file: str,
    seen_version: object,
    seen_hash: object,
    sha256: str,
    size: int,
    is_text: bool,
    links: Sequence[str] = (),
) -> shapes.FileShape:
    """Write a new version, provided that the caller saw the latest one."""
    file_row = lookup.file(ctx, file)
    require_file(ctx, Action.FILE_WRITE, file_row)
    _check_seen(file_row, seen_version, seen_hash)
    documents.refuse_direct_writing(file_row)
    content: Any = {"sha256": sha256, "size": size, "is_text": is_text, "links": len(links)}
    new = replace(file_row, version=file_row.version + 1, updated_at=ctx.now, **content)
    if not documents.advance(ctx, file_row, new):
        raise _stale(file_row)
    documents.add_version(ctx, new, links)
    _note_access(ctx, new.id, Access.WRITE, new.version)
    ctx.record(
        "file.write", f"kb_file:{new.id}", {"version": new.version, "hash": sha256, "size": size}
    )
    return views.file(new)


@command("files.describe", AsRoute("PATCH /files/{id}", "change_file"))
def describe(
    ctx: Context,
    *,
    file: FileRef,
    description: Annotated[str, Text(LONGEST_DESCRIPTION)] | None = None,
    unlisted: bool | None = None,
) -> shapes.FileShape:
    """Change what a file is called, or who learns of it; its contents stay."""
    file_row = lookup.file(ctx, file)
    require_file(ctx, Action.FILE_WRITE, file_row)
    documents.refuse_direct_writing(file_row)
    new = replace(
        file_row,
        description=file_row.description if description is None else description,
        unlisted=file_row.unlisted if unlisted is None else unlisted,
    )
    ctx.tx.run(statements.DESCRIBE_FILE, file=new.id, **renewed(new))
    index(ctx, new.id, new.description)
    about = {"description": new.description, "unlisted": new.unlisted}
    ctx.record("file.describe", f"kb_file:{new.id}", about)
    return views.file(new)


@logged("files.read")
def read(
    ctx: Context, *, file: str, version: object = None, access: str = "read"
) -> shapes.ReadableShape:
    """Authorise the read of a version, and record it in the file's access log."""
    file_row = lookup.file(ctx, file)
    require_file(ctx, Action.FILE_READ, file_row)
    wanted = _version(ctx, file_row, version)
    _note_access(ctx, file_row.id, Access(access), wanted.number)
    return {
        **views.file(file_row),
        "version": wanted.number,
        "hash": wanted.sha256,
        "size": wanted.size,
        "is_text": wanted.is_text,
        "current_version": file_row.version,
        "heading": documents.heading(ctx, file_row) if version is None else None,
    }


@query("files.show", AsRoute("GET /files/{id}", "show_file"))
def show(ctx: Context, *, file: FileRef) -> shapes.FileWithLinksShape:
    """Metadata of a file; its links only for those who may read it."""
    file_row = lookup.file(ctx, file)
    require_file(ctx, Action.FILE_SEE, file_row)
    linking = ctx.tx.all(
        statements.BACKLINKS, file=file_row.id, limit=200, **lookup.visibility(ctx)
    )
    links: shapes.LinksShape = {}
    if decide_file(ctx, Action.FILE_READ, file_row).allowed:
        links["links"] = ctx.tx.all(statements.LINKS, file=file_row.id)
    return {
        **views.file(file_row, level(ctx, file_row)),
        "linked_from": [
            {"id": source.id, "description": source.description}
            for source in linking
            if source.company_id == ctx.company
        ],
        **links,
    }


@query(
    "files.history",
    AsTool("kb_history", id="file", without=("before",), answer="versions"),
    AsRoute("GET /files/{id}/versions", "list_versions", page="number"),
    AsCommand("kb history", "List the versions of a file, the newest first."),
)
def history(
    ctx: Context, *, file: FileRef, before: int = LAST, limit: Limit = 100
) -> list[shapes.VersionShape]:
    """Versions of a file, newest first."""
    file_row = lookup.file(ctx, file)
    require_file(ctx, Action.FILE_READ, file_row)
    page: Any = {"before": min(before, 2**31 - 1), "limit": limit}
    rows = ctx.tx.all(statements.VERSIONS, file=file_row.id, **page)
    return [views.version(version) for version in rows]


@query(
    "files.accesses",
    AsRoute("GET /files/{id}/log", "list_accesses", page="id"),
    AsCommand("kb log", "List who read and wrote a file, the newest first."),
)
def accesses(
    ctx: Context, *, file: FileRef, before: int = LAST, limit: int = 100
) -> list[shapes.AccessShape]:
    """Access log of a file, newest first."""
    file_row = lookup.file(ctx, file)
    require_file(ctx, Action.FILE_AUDIT, file_row)
    return [
        {"id": entry.id, **views.access(entry)}
        for entry in ctx.tx.all(statements.ACCESSES, file=file_row.id, before=before, limit=limit)
    ]


@query("files.listing")
def listing(
    ctx: Context, *, company: str | None, after: str = "", limit: int = 100
) -> list[shapes.FileShape]:
    """List the files that the calling agent can read or write, with its level on each."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="files")
    page = _own_books(ctx)
    own = [book["id"] for book in page]
    if after in own:  # its own documents come first, whatever their ids
        page, after = page[own.index(after) + 1 :], ""
    elif after:
        page = []
    while len(page) < limit:
        files = ctx.tx.all(statements.HELD_FILES, holder=ctx.actor.id, after=after, limit=limit)
        # Denied and expired files do not use up the page.
        with_level = ((file, level(ctx, file)) for file in files)
        page += [views.file(file, held) for file, held in with_level if held is not Level.NONE]
        if len(files) < limit:
            break
        after = files[-1].id
    return page[:limit]


def _own_books(ctx: Context) -> list[shapes.FileShape]:
    """The calling agent's memory and log, which need no grant."""
    me = lookup.agent_row(ctx, ctx.actor.id)
    if me is None:
        return []
    books = [
        ctx.tx.one(statements.FILE, file=file_id) for file_id in (me.state_file_id, me.log_file_id)
    ]
    return [views.file(book, level(ctx, book)) for book in books if book is not None]


@query("files.browse", Added("letters", False))
def browse(
    ctx: Context,
    *,
    company: str | None,
    words: object = "",
    letters: bool = False,
    before: str = END_OF_IDS,
    limit: int = 50,
) -> list[shapes.FileShape]:
    """Search the descriptions of files that the caller may know of. Without words, list the newest;
    `letters` includes the texts of messages."""
    text = clean_text(words, "query", longest=500, empty_ok=True)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="files")
    if sought := search_words(text)[:MOST_WORDS]:
        candidates = ctx.tx.all(
            statements.MATCHING_FILES,
            match=statements.match_all(sought, sqlite=ctx.tx.dialect is SQLITE),
            limit=max(MOST_RANKED, limit),
            **lookup.visibility(ctx),
        )
        # The sort is stable, so among equals the newest stay first.
        candidates.sort(key=lambda file: -relevance(search_words(file.description), sought))
        files = candidates[:limit]
    else:
        files = [] if text else _newest(ctx, before, limit, letters)
    return [views.file(file, level(ctx, file)) for file in files]


def _newest(ctx: Context, before: str, limit: int, letters: bool) -> list[File]:
    """Return the files that the caller may know of, newest first."""
    sight = lookup.visibility(ctx)
    page = {"company": ctx.company, "before": before, "limit": limit}
    if sight["sees_unlisted"]:
        wanted = statements.NEWEST_FILES if letters else statements.NEWEST_WRITTEN
        return ctx.tx.all(wanted, **page)
    files = ctx.tx.all(statements.NEWEST_LISTED, **page)
    if sight["holder"]:
        unlisted = ctx.tx.all(statements.NEWEST_UNLISTED, holder=sight["holder"], **page)
        files = sorted([*files, *unlisted], key=lambda file: file.id, reverse=True)
    return files[:limit]


@query("files.containing", Added("letters", False))
def containing(
    ctx: Context,
    *,
    company: str | None,
    words: object,
    letters: bool = False,
    before: str = END_OF_IDS,
    limit: int = 20,
) -> shapes.FoundTextsShape:
    """Search the newest texts of files for words as they stand, newest first; `letters` includes
    the texts of messages. For people.

    Each page reads a limited number of files: `before` of the answer continues the search.
    """
    text = clean_text(words, "query", longest=500).strip().casefold()
    if ctx.actor.kind is not ActorKind.USER:
        raise BadInput("This search is for people.", "Search the descriptions.")
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="files")
    looked = _newest(ctx, before, MOST_OPENED, letters)
    excerpts: list[shapes.FoundTextShape] = []
    place = before
    for file in looked:
        if len(excerpts) == limit:
            break
        place = file.id
        if not file.is_text or file.size > LARGEST_SEARCHED or level(ctx, file) is Level.NONE:
            continue
        try:
            with ctx.blobs.open(file.id, file.sha256) as stream:
                content = stream.read(LARGEST_SEARCHED).decode(errors="replace")
        except RemitError:
            continue  # its page says what is wrong with it
        at = content.casefold().find(text)
        if at >= 0:
            excerpt = " ".join(content[max(0, at - 60) : at + len(text) + 90].split())
            letter = None
            if letters and file.unlisted:
                # Ids are ordered by time, and a text exists before its message.
                sent = {"file": file.id, "since": file.id[:8]}
                letter = ctx.tx.one(mail_statements.SENT_AS, **sent)
            view = views.file(file, level(ctx, file))
            excerpts.append({**view, "excerpt": excerpt, "message_id": letter})
    more = len(looked) == MOST_OPENED or len(excerpts) == limit
    return {"files": excerpts, "before": place if more and place != before else None}


def level(ctx: Context, file: File) -> Level:
    """Return the highest level that the caller has on a file; a use that needs approval counts as
    had."""
    held: GivenFacts = {}
    if ctx.actor.kind is ActorKind.AGENT and file.kind is not FileKind.OUTCOME:
        held["held"] = tuple(ctx.held(ctx.actor.id, kb_file(file.id)))
    for wanted, action in ((Level.WRITE, Action.FILE_WRITE), (Level.READ, Action.FILE_READ)):
        if decide_file(ctx, action, file, **held).effect is not Effect.DENY:
            return wanted
    return Level.NONE


def _home(ctx: Context) -> AgentId | None:
    """Return the agent below which a new file is placed: its creator, or the top of a user's
    part."""
    if ctx.actor.agent_id is not None:
        return ctx.actor.agent_id
    return ctx.membership.scope_agent_id if ctx.membership else None


def _version(ctx: Context, file: File, number: object) -> Version:
    if number is None:
        content = (file.sha256, file.size, file.is_text)
        return Version(file.id, file.version, *content, file.updated_at, None, None, None)
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 2**31:
        raise BadInput("version must be a positive whole number.", "See the file's history.")
    version = ctx.tx.one(statements.VERSION, file=file.id, number=number)
    if version is None:
        raise NotFound(f"The file has no version {number}.", "See the file's history.")
    return version


def _check_seen(file: File, version: object, sha256: object) -> None:
    if version is None or sha256 is None:
        raise BadInput(
            "Overwriting takes the version and hash you last read.", "Read the file first."
        )
    if not isinstance(version, int) or isinstance(version, bool) or not isinstance(sha256, str):
        raise BadInput(
            "version must be a number and hash the text you last read.", "Read the file again."
        )
    if (version, sha256) != (file.version, file.sha256):
        raise _stale(file)


def _stale(file: File) -> Conflict:
    return Conflict(
        f"The file is at version {file.version} now.",
        "Read it again, merge your change, and write with the current version and hash.",
        details={"version": file.version, "hash": file.sha256},
    )


def _note_access(ctx: Context, file: FileId, access: Access, version: int) -> None:
    ctx.tx.run(
        statements.INSERT_ACCESS,
        file_id=file,
        at=ctx.now,
        access=access.value,
        version=version,
        **ctx.author,
    )


def index(ctx: Context, file: FileId, description: str) -> None:
    """Index a file by the words of its description."""
    words = " ".join(search_words(description)[:MOST_INDEXED_WORDS])
    parameters: dict[str, object] = {"file": file, "words": words}
    if ctx.tx.dialect is SQLITE:
        row = ctx.tx.one(statements.SEARCH_ROW, file=file)
        if row is None:
            row = ctx.tx.one(statements.NEXT_SEARCH_ROW) or 1
            ctx.tx.run(statements.SET_SEARCH_ROW, file=file, new_row=row)
        parameters["row"] = row
    ctx.tx.run(statements.INDEX_FILE, **parameters)
