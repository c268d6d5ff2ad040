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

INSERT_FILE = change(insert(files))
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
    .limit(2),
    into(File),
)
RECENT_FILES = Statement(
    select(*columns(files, File))
    .where(files.c.company_id == bind("company"), files.c.id < bind("before"), _visible)
    .order_by(files.c.id.desc())
    .limit(bind("limit")),
    into(File),
)
BACKLINKS = Statement(
    select(*columns(files, File))
    .join(file_links, file_links.c.file_id == files.c.id)
    .where(file_links.c.target_id == bind("file"), files.c.company_id == bind("company"), _visible)
    .order_by(files.c.id)
    .limit(bind("limit")),
    into(File),
)
_held = grants.alias("held")
#: Files an agent holds something on; the caller's levels are then decided one by one.
HELD_FILES = Statement(
    select(*columns(files, File))
    .where(
        files.c.company_id == bind("company"),
        files.c.id > bind("after"),
        files.c.id.in_(
            select(_held.c.resource_id).where(
                _held.c.holder_id == bind("holder"),
                _held.c.kind == literal("kb_file"),
                _held.c.revoked_at.is_(None),
                _held.c.level >= literal(int(Level.READ)),
                _held.c.mode != literal(Mode.DENY.value),
                _held.c.resource_id > bind("after"),
            )
        ),
    )
    .order_by(files.c.id)
    .limit(bind("limit")),
    into(File),
)

# Search. Words are folded before they come here, so that both databases find the same. Ranking is
# done over a bounded number of candidates: a very common word must not cost a scan of everything.

_CANDIDATES = 1_000
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
SEARCH_FILES = Statement(
    # Only our own column names and constants are put together here.
    text(f"""
        SELECT {_FILE_COLUMNS} FROM (
            SELECT s.file_id, ts_rank(s.words, q.words) AS score
            FROM to_tsquery('simple', :match) AS q(words)
            JOIN file_search s ON s.words @@ q.words
            JOIN files f ON f.id = s.file_id
            WHERE {_VISIBLE_TEXT}
            LIMIT {_CANDIDATES}
        ) best JOIN files f ON f.id = best.file_id
        ORDER BY best.score DESC, f.id DESC LIMIT :limit
    """).bindparams(no=False, yes=True),  # noqa: S608
    into(File),
    sqlite=text(f"""
        SELECT {_FILE_COLUMNS} FROM (
            SELECT s.file_id, bm25(file_search) AS score
            FROM file_search s JOIN files f ON f.id = s.file_id
            WHERE file_search MATCH :match AND {_VISIBLE_TEXT}
            LIMIT {_CANDIDATES}
        ) best JOIN files f ON f.id = best.file_id
        ORDER BY best.score, f.id DESC LIMIT :limit
    """).bindparams(no=False, yes=True),  # noqa: S608
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


def search_row(file_id: str) -> int:
    """The number under which SQLite's index knows a file: the random half of its id."""
    return int(file_id.replace("-", "")[16:], 16) & (1 << 62) - 1


def match_all(words: Sequence[str], *, sqlite: bool) -> str:
    """A search for files that have every word, each as the beginning of one."""
    if sqlite:
        return " AND ".join(f'"{word}"*' for word in words)
    return " & ".join(f"'{word}':*" for word in words)
