"""Statements about the knowledge base: files, versions, links, access, search."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import (
    Boolean,
    and_,
    delete,
    exists,
    false,
    insert,
    literal,
    literal_column,
    or_,
    select,
    text,
    true,
    update,
)
from sqlalchemy import bindparam as bind

from remit.model.file import AccessEntry, File, Version
from remit.model.grant import Level, Mode
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import access_log, file_links, file_versions, files, grants

INSERT_FILE = change(
    insert(files).values(
        {column.name: bind(column.name) for column in files.c if column.name != "search_row"}
    )
)
FILE = Statement(
    select(*columns(files, File)).where(
        files.c.company_id == bind("company"), files.c.id == bind("file")
    ),
    into(File),
)
FILE_ANYWHERE = Statement(
    select(*columns(files, File)).where(files.c.id == bind("file")), into(File)
)
#: The optimistic lock: changes nothing unless the caller saw the latest version.
ADVANCE_FILE = change(
    update(files)
    .where(
        files.c.id == bind("file"),
        files.c.version == bind("seen_version"),
        files.c.sha256 == bind("seen_sha256"),
    )
    .values(
        version=bind("new_version"),
        sha256=bind("new_sha256"),
        size=bind("new_size"),
        is_text=bind("new_is_text"),
        links=bind("new_links"),
        updated_at=bind("now"),
    )
)
DESCRIBE_FILE = change(
    update(files)
    .where(files.c.id == bind("file"))
    .values(
        description=bind("new_description"), unlisted=bind("new_unlisted"), updated_at=bind("now")
    )
)

# Versions

INSERT_VERSION = change(insert(file_versions))
VERSIONS = Statement(
    select(*columns(file_versions, Version))
    .where(file_versions.c.file_id == bind("file"), file_versions.c.number < bind("before"))
    .order_by(file_versions.c.number.desc())
    .limit(bind("limit")),
    into(Version),
)
VERSION = Statement(
    select(*columns(file_versions, Version)).where(
        file_versions.c.file_id == bind("file"), file_versions.c.number == bind("number")
    ),
    into(Version),
)
VERSION_AT = Statement(
    select(file_versions.c.number)
    .where(file_versions.c.file_id == bind("file"), file_versions.c.at <= bind("at"))
    .order_by(file_versions.c.number.desc())
    .limit(1),
    scalar,
)
#: Whether a blob belongs to a version.
REFERENCED = Statement(
    select(literal(1)).where(
        exists().where(
            file_versions.c.file_id == bind("file"), file_versions.c.sha256 == bind("sha256")
        )
    ),
    scalar,
)

# Access

INSERT_ACCESS = change(
    insert(access_log).values(
        {column.name: bind(column.name) for column in access_log.c if column.name != "id"}
    )
)
ACCESSES = Statement(
    select(*columns(access_log, AccessEntry))
    .where(access_log.c.file_id == bind("file"), access_log.c.id < bind("before"))
    .order_by(access_log.c.id.desc())
    .limit(bind("limit")),
    into(AccessEntry),
)

# Links

CLEAR_LINKS = change(delete(file_links).where(file_links.c.file_id == bind("file")))
INSERT_LINK = change(insert(file_links))
LINKS = Statement(
    select(file_links.c.target_id)
    .where(file_links.c.file_id == bind("file"))
    .order_by(file_links.c.target_id),
    scalar,
)

# What a caller may know of. An agent sees what is listed and what it can read; a user sees
# everything in their part of the company, which the service checks file by file.

_on_file = (
    grants.c.holder_id == bind("holder"),
    grants.c.kind == literal("kb_file"),
    grants.c.resource_id == files.c.id,
    grants.c.revoked_at.is_(None),
    or_(grants.c.expires_at.is_(None), grants.c.expires_at > bind("now")),
)
_conferred = exists().where(
    *_on_file,
    grants.c.level >= literal(int(Level.READ)),
    grants.c.mode != literal(Mode.DENY.value),
)
_denied = exists().where(
    *_on_file,
    grants.c.level <= literal(int(Level.READ)),
    grants.c.mode == literal(Mode.DENY.value),
)
_readable = and_(_conferred.correlate(files), ~_denied.correlate(files))
_visible = or_(
    files.c.unlisted == false(), bind("sees_unlisted", type_=Boolean) == true(), _readable
)

FILES_BY_PREFIX = Statement(
    select(*columns(files, File))
    .where(
        files.c.company_id == bind("company"),
        files.c.id >= bind("low"),
        files.c.id < bind("high"),
        _visible,
    )
    .limit(20),
    into(File),
)
# The newest files: everything for who sees everything; for others what is listed, and apart from
# that what is not listed and yet theirs. Each is a walk down one index.
_newest = (
    select(*columns(files, File))
    .where(
        files.c.company_id == bind("company"),
        files.c.id < bind("before"),
        # What Remit keeps itself is found through its outcome or agent.
        files.c.kind == literal_column("'file'"),
    )
    .order_by(files.c.id.desc())
    .limit(bind("limit"))
)
NEWEST_FILES = Statement(_newest, into(File))
NEWEST_LISTED = Statement(
    _newest.where(files.c.unlisted == literal_column("false")),
    into(File),
    sqlite=_newest.where(files.c.unlisted == literal_column("0")),
)
# Bounded, and so computed first: walking the files instead would pass over all that are hidden.
_mine = (
    select(grants.c.resource_id)
    .where(
        grants.c.holder_id == bind("holder"),
        grants.c.kind == literal("kb_file"),
        grants.c.revoked_at.is_(None),
        grants.c.resource_id < bind("before"),
    )
    .distinct()
    .order_by(grants.c.resource_id.desc())
    .limit(literal_column("10000"))
    .subquery("mine")
)
NEWEST_UNLISTED = Statement(
    select(*columns(files, File))
    .join(_mine, _mine.c.resource_id == files.c.id)
    .where(files.c.unlisted == true(), files.c.kind == literal("file"), _readable)
    .order_by(_mine.c.resource_id.desc())
    .limit(bind("limit")),
    into(File),
)
#: Links come from the same company or are of no concern; the caller leaves out the others.
BACKLINKS = Statement(
    select(*columns(files, File))
    .join(file_links, file_links.c.file_id == files.c.id)
    .where(file_links.c.target_id == bind("file"), _visible)
    .order_by(file_links.c.file_id)
    .limit(bind("limit")),
    into(File),
)
_held = (
    select(grants.c.resource_id)
    .where(
        grants.c.holder_id == bind("holder"),
        grants.c.kind == literal("kb_file"),
        grants.c.revoked_at.is_(None),
        grants.c.level >= literal(int(Level.READ)),
        grants.c.mode != literal(Mode.DENY.value),
        grants.c.resource_id > bind("after"),
    )
    .distinct()
    .order_by(grants.c.resource_id)
    .limit(bind("limit"))
    .subquery("held")
)
#: Files an agent holds something on; the caller's levels are then decided one by one.
HELD_FILES = Statement(
    select(*columns(files, File))
    .join(_held, _held.c.resource_id == files.c.id)
    .order_by(files.c.id),
    into(File),
)

# Search. Words are folded before they come here, so that both databases find the same. What is
# found are candidates, the newest ones if there are very many; ranking them is the caller's.

_FILE_COLUMNS = ", ".join(f"f.{column.name}" for column in columns(files, File))
_ON_FILE_TEXT = """
    SELECT 1 FROM grants g WHERE g.holder_id = :holder AND g.kind = 'kb_file'
    AND g.resource_id = f.id AND g.revoked_at IS NULL
    AND (g.expires_at IS NULL OR g.expires_at > :now)
"""
_VISIBLE_TEXT = f"""
    f.company_id = :company AND (f.unlisted = :no OR :sees_unlisted = :yes OR (
        EXISTS ({_ON_FILE_TEXT} AND g.level >= {int(Level.READ)} AND g.mode <> 'deny')
        AND NOT EXISTS ({_ON_FILE_TEXT} AND g.level <= {int(Level.READ)} AND g.mode = 'deny')))
"""
MATCHING_FILES = Statement(
    # Only our own column names and constants are put together here.
    text(f"""
        SELECT {_FILE_COLUMNS} FROM to_tsquery('simple', :match) AS q(words)
        JOIN file_search s ON s.words @@ q.words JOIN files f ON f.id = s.file_id
        WHERE {_VISIBLE_TEXT} ORDER BY f.id DESC LIMIT :limit
    """).bindparams(no=False, yes=True),  # noqa: S608
    into(File),
    # CROSS JOIN, so that SQLite walks the matches and not the files.
    sqlite=text(f"""
        SELECT {_FILE_COLUMNS} FROM file_search s CROSS JOIN files f ON f.id = s.file_id
        WHERE file_search MATCH :match AND {_VISIBLE_TEXT}
        ORDER BY s.rowid DESC LIMIT :limit
    """).bindparams(no=False, yes=True),  # noqa: S608
)
#: SQLite's index knows a file by a number that grows, so that the newest come first.
NEXT_SEARCH_ROW = Statement(
    text("SELECT 0 WHERE FALSE"),
    scalar,
    sqlite=text("SELECT rowid + 1 FROM file_search ORDER BY rowid DESC LIMIT 1"),
)
SEARCH_ROW = Statement(select(files.c.search_row).where(files.c.id == bind("file")), scalar)
SET_SEARCH_ROW = change(
    update(files).where(files.c.id == bind("file")).values(search_row=bind("new_row"))
)
INDEX_FILE = change(
    text(
        "INSERT INTO file_search (file_id, words) VALUES (:file, to_tsvector('simple', :words))"
        " ON CONFLICT (file_id) DO UPDATE SET words = excluded.words"
    ),
    sqlite=text(
        "INSERT OR REPLACE INTO file_search (rowid, file_id, words) VALUES (:row, :file, :words)"
    ),
)


def match_all(words: Sequence[str], *, sqlite: bool) -> str:
    """A search for files that have every word, each as the beginning of one."""
    if sqlite:
        return " AND ".join(f'"{word}"*' for word in words)
    return " & ".join(f"'{word}':*" for word in words)
