"""The knowledge base: what is decided and recorded about files. Their bytes are in `library.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remit.authority import Action, holding
from remit.errors import BadInput, Conflict, NotFound
from remit.ids import AgentId, FileId, is_id
from remit.model.decision import Effect
from remit.model.file import LONGEST_DESCRIPTION, Access, File, Version
from remit.model.grant import Level, kb_file
from remit.model.principal import ActorKind
from remit.model.text import clean_text, relevance, search_words
from remit.services import grants, lookup, views
from remit.services.command import Answer, Context, command, logged, query
from remit.store import files as statements
from remit.store.statement import SQLITE

MOST_WORDS = 16
#: More matches than this are not all ranked; the newest are.
MOST_RANKED = 200
#: Descriptions are short; this bounds what one of them puts into the index.
MOST_INDEXED_WORDS = 400
END_OF_IDS = "g"
LAST = (1 << 62) - 1


@command
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
) -> Answer:
    """A new file whose first version is stored already; its maker may write it."""
    description = clean_text(description, "description", longest=LONGEST_DESCRIPTION)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.FILE_CREATE, on=f"kb_file:{new_id}", home=_home(ctx))
    assert is_id(new_id)
    assert ctx.company is not None
    new = File(
        id=FileId(new_id),
        company_id=ctx.company,
        description=description,
        unlisted=unlisted,
        home_agent_id=_home(ctx),
        version=1,
        sha256=sha256,
        size=size,
        is_text=is_text,
        links=len(links),
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    ctx.tx.run(
        statements.INSERT_FILE,
        id=new.id,
        company_id=new.company_id,
        description=new.description,
        unlisted=new.unlisted,
        home_agent_id=new.home_agent_id,
        version=new.version,
        sha256=new.sha256,
        size=new.size,
        is_text=new.is_text,
        links=new.links,
        created_at=ctx.now,
        updated_at=ctx.now,
    )
    _add_version(ctx, new, links)
    _index(ctx, new.id, description)
    details: dict[str, Any] = {"description": description, "version": 1, "hash": sha256}
    if ctx.actor.agent_id is not None:
        details["grant"] = grants.give_by_authorship(ctx, ctx.actor.agent_id, new.id).id
    ctx.record("file.create", f"kb_file:{new.id}", details)
    return views.file(new)


@query
def may_write(ctx: Context, *, file: str, version: object, sha256: object) -> str:
    """Refuse early what would be refused late, before any bytes are stored. Answers the id."""
    found = lookup.file(ctx, file, Action.FILE_WRITE)
    _check_seen(found, version, sha256)
    return found.id


@query
def may_create(ctx: Context, *, company: str | None) -> None:
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.FILE_CREATE, on="kb_file", home=_home(ctx))


@command
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
) -> Answer:
    """A new version, provided that the caller saw the latest one."""
    found = lookup.file(ctx, file, Action.FILE_WRITE)
    _check_seen(found, seen_version, seen_hash)
    new = File(
        id=found.id,
        company_id=found.company_id,
        description=found.description,
        unlisted=found.unlisted,
        home_agent_id=found.home_agent_id,
        version=found.version + 1,
        sha256=sha256,
        size=size,
        is_text=is_text,
        links=len(links),
        created_at=found.created_at,
        updated_at=ctx.now,
    )
    if not ctx.tx.run(
        statements.ADVANCE_FILE,
        file=found.id,
        seen_version=found.version,
        seen_sha256=found.sha256,
        new_version=new.version,
        new_sha256=sha256,
        new_size=size,
        new_is_text=is_text,
        new_links=len(links),
        now=ctx.now,
    ):
        raise _stale(found)
    if found.links:
        ctx.tx.run(statements.CLEAR_LINKS, file=found.id)
    _add_version(ctx, new, links)
    ctx.record(
        "file.write", f"kb_file:{new.id}", {"version": new.version, "hash": sha256, "size": size}
    )
    return views.file(new)


@command
def describe(
    ctx: Context, *, file: str, description: object = None, unlisted: bool | None = None
) -> Answer:
    """Change what a file is called, or who learns of it; its contents stay."""
    found = lookup.file(ctx, file, Action.FILE_WRITE)
    new_description = (
        found.description
        if description is None
        else clean_text(description, "description", longest=LONGEST_DESCRIPTION)
    )
    hidden = found.unlisted if unlisted is None else unlisted
    ctx.tx.run(
        statements.DESCRIBE_FILE,
        file=found.id,
        new_description=new_description,
        new_unlisted=hidden,
        now=ctx.now,
    )
    _index(ctx, found.id, new_description)
    ctx.record(
        "file.describe", f"kb_file:{found.id}", {"description": new_description, "unlisted": hidden}
    )
    return {**views.file(found), "description": new_description, "unlisted": hidden}


@logged
def read(
    ctx: Context, *, file: str, version: object = None, access: str = "read"
) -> dict[str, Any]:
    """Leave to read a version, noted in the file's access log."""
    found = lookup.file(ctx, file, Action.FILE_READ)
    wanted = _version(ctx, found, version)
    _note_access(ctx, found.id, Access(access), wanted.number)
    return {
        **views.file(found),
        "version": wanted.number,
        "hash": wanted.sha256,
        "size": wanted.size,
        "is_text": wanted.is_text,
        "current_version": found.version,
    }


@query
def show(ctx: Context, *, file: str) -> dict[str, Any]:
    """What may be known about a file; what it links to only by those who may read it."""
    found = lookup.file(ctx, file, Action.FILE_SEE)
    view = views.file(found, level(ctx, found))
    view["linked_from"] = [
        {"id": source.id, "description": source.description}
        for source in ctx.tx.all(
            statements.BACKLINKS, file=found.id, limit=200, **lookup.sight(ctx)
        )
        if source.company_id == ctx.company
    ]
    if _may_read(ctx, found):
        view["links"] = ctx.tx.all(statements.LINKS, file=found.id)
    return view


@query
def history(
    ctx: Context, *, file: str, before: int = LAST, limit: int = 100
) -> list[dict[str, Any]]:
    found = lookup.file(ctx, file, Action.FILE_READ)
    return [
        views.version(version)
        for version in ctx.tx.all(
            statements.VERSIONS, file=found.id, before=min(before, 2**31 - 1), limit=limit
        )
    ]


@query
def accesses(
    ctx: Context, *, file: str, before: int = LAST, limit: int = 100
) -> list[dict[str, Any]]:
    """Who read and wrote the file, newest first."""
    found = lookup.file(ctx, file, Action.FILE_AUDIT)
    return [
        {"id": entry.id, **views.access(entry)}
        for entry in ctx.tx.all(statements.ACCESSES, file=found.id, before=before, limit=limit)
    ]


@query
def listing(
    ctx: Context, *, company: str | None, after: str = "", limit: int = 100
) -> list[dict[str, Any]]:
    """The files the calling agent can read or write, with the level it has."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="files")
    page: list[dict[str, Any]] = []
    while len(page) < limit:
        found = ctx.tx.all(
            statements.HELD_FILES,
            company=ctx.company,
            holder=ctx.actor.id,
            after=after,
            limit=limit,
        )
        # What was denied or has expired leaves room for what comes next.
        with_level = ((file, level(ctx, file)) for file in found)
        page += [views.file(file, held) for file, held in with_level if held is not Level.NONE]
        if len(found) < limit:
            break
        after = found[-1].id
    return page[:limit]


@query
def browse(
    ctx: Context,
    *,
    company: str | None,
    words: object = "",
    before: str = END_OF_IDS,
    limit: int = 50,
) -> list[dict[str, Any]]:
    """Search the descriptions of what the caller may know of; without words, the newest."""
    text = clean_text(words, "query", longest=500, empty_ok=True)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="files")
    if sought := search_words(text)[:MOST_WORDS]:
        candidates = ctx.tx.all(
            statements.MATCHING_FILES,
            match=statements.match_all(sought, sqlite=ctx.tx.dialect is SQLITE),
            company=ctx.company,
            limit=max(MOST_RANKED, limit),
            **lookup.sight(ctx),
        )
        # Newest first among equals: the sort keeps the order it finds.
        candidates.sort(key=lambda file: -relevance(search_words(file.description), sought))
        found = candidates[:limit]
    else:
        found = [] if text else _newest(ctx, before, limit)
    return [views.file(file, level(ctx, file)) for file in found]


def _newest(ctx: Context, before: str, limit: int) -> list[File]:
    """What the caller may know of, newest first."""
    sight = lookup.sight(ctx)
    page = {"company": ctx.company, "before": before, "limit": limit}
    if sight["sees_unlisted"]:
        return ctx.tx.all(statements.NEWEST_FILES, **page)
    found = ctx.tx.all(statements.NEWEST_LISTED, **page)
    if sight["holder"]:
        mine = ctx.tx.all(statements.NEWEST_UNLISTED, holder=sight["holder"], now=ctx.now, **page)
        found = sorted([*found, *mine], key=lambda file: file.id, reverse=True)
    return found[:limit]


def level(ctx: Context, file: File) -> Level:
    """The one level the caller has on a file."""
    if ctx.actor.kind is ActorKind.AGENT:
        held = ctx.held(ctx.actor.id, kb_file(file.id))
        for wanted in (Level.WRITE, Level.READ):
            if holding(held, wanted, ctx.now).effect is not Effect.DENY:
                return wanted
        return Level.NONE
    for wanted, action in ((Level.WRITE, Action.FILE_WRITE), (Level.READ, Action.FILE_READ)):
        if ctx.decide(action, kb_file(file.id), home=file.home_agent_id).allowed:
            return wanted
    return Level.NONE


def _may_read(ctx: Context, file: File) -> bool:
    return ctx.decide(
        Action.FILE_READ,
        kb_file(file.id),
        home=file.home_agent_id,
        listed=not file.unlisted,
    ).allowed


def _home(ctx: Context) -> AgentId | None:
    """Under whose part of the tree a new file lies: its maker's, or that of a user's scope."""
    if ctx.actor.agent_id is not None:
        return ctx.actor.agent_id
    return ctx.membership.scope_agent_id if ctx.membership else None


def _version(ctx: Context, file: File, number: object) -> Version:
    if number is None:
        return Version(
            file.id,
            file.version,
            file.sha256,
            file.size,
            file.is_text,
            file.updated_at,
            None,
            None,
            None,
        )
    if not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 2**31:
        raise BadInput("version must be a positive whole number.", "See the file's history.")
    found = ctx.tx.one(statements.VERSION, file=file.id, number=number)
    if found is None:
        raise NotFound(f"The file has no version {number}.", "See the file's history.")
    return found


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


def _add_version(ctx: Context, file: File, links: Sequence[str]) -> None:
    ctx.tx.run(
        statements.INSERT_VERSION,
        file_id=file.id,
        number=file.version,
        sha256=file.sha256,
        size=file.size,
        is_text=file.is_text,
        at=ctx.now,
        agent_id=ctx.actor.agent_id,
        user_id=ctx.actor.user_id,
        run_id=ctx.actor.run_id,
    )
    for target in links:
        ctx.tx.run(statements.INSERT_LINK, file_id=file.id, target_id=target)
    _note_access(ctx, file.id, Access.WRITE, file.version)


def _note_access(ctx: Context, file: FileId, access: Access, version: int) -> None:
    ctx.tx.run(
        statements.INSERT_ACCESS,
        file_id=file,
        at=ctx.now,
        access=access.value,
        version=version,
        agent_id=ctx.actor.agent_id,
        user_id=ctx.actor.user_id,
        run_id=ctx.actor.run_id,
    )


def _index(ctx: Context, file: FileId, description: str) -> None:
    words = " ".join(search_words(description)[:MOST_INDEXED_WORDS])
    parameters: dict[str, Any] = {"file": file, "words": words}
    if ctx.tx.dialect is SQLITE:
        row = ctx.tx.one(statements.SEARCH_ROW, file=file)
        if row is None:
            row = ctx.tx.one(statements.NEXT_SEARCH_ROW) or 1
            ctx.tx.run(statements.SET_SEARCH_ROW, file=file, new_row=row)
        parameters["row"] = row
    ctx.tx.run(statements.INDEX_FILE, **parameters)
