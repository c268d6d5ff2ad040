"""Statements about the knowledge base: files, versions, links, access, search."""

from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy import bindparam as bind

from remit.model.organisation.grant import Level, Mode
from remit.model.work.file import AccessEntry, File, Version
from remit.store.engine.statement import (
    Rows,
    Statement,
    change,
    columns,
    delete_from,
    into,
    new,
    scalar,
    values_of,
)
from remit.store.organisation.grants import LIVE
from remit.store.tables import file_links, file_versions, files, grants, messages

_FILES = Rows(File)
_FILE_VERSIONS = Rows(Version, "number")
_ACCESS_LOG = Rows(AccessEntry)

#: Adds a file.
INSERT_FILE = _FILES.insert_without("search_row")
#: The company's file of that id.
FILE = _FILES.one(company_id="company", id="file")
#: One file by id, of any company.
FILE_ANYWHERE = _FILES.one(id="file")
#: The optimistic lock: changes nothing unless the caller saw the latest version.
ADVANCE_FILE = _FILES.update(
    files.c.id == bind("file"),
    files.c.version == bind("seen_version"),
    files.c.sha256 == bind("seen_sha256"),
    **new("version", "sha256", "size", "is_text", "links"),
    updated_at=bind("now"),
)
#: Stores the description of a file, and whether lists show it.
DESCRIBE_FILE = _FILES.update(
    files.c.id == bind("file"), **new("description", "unlisted"), updated_at=bind("now")
)

# Versions

#: A page of a file's versions, newest first.
VERSIONS = _FILE_VERSIONS.before(file_id="file")
#: One version of a file.
VERSION = _FILE_VERSIONS.keyed(number="number", file_id="file")
#: The number of a file's version at a time.
VERSION_AT = values_of(
    file_versions.c.number,
    file_versions.c.at <= bind("at"),
    file_id="file",
    order=[file_versions.c.number.desc()],
    limit=1,
)
#: Whether a blob belongs to a version.
REFERENCED = _FILE_VERSIONS.any(file_id="file", sha256="sha256")

# Access

#: Adds an entry to a file's access log.
INSERT_ACCESS = _ACCESS_LOG.insert_without("id")
#: A page of a file's access log, newest first.
ACCESSES = _ACCESS_LOG.before(file_id="file")

# Links

#: Deletes the links out of a file.
CLEAR_LINKS = delete_from(file_links, file_id="file")
#: Adds a link from a file to another.
INSERT_LINK = change(sa.insert(file_links))
#: The files that a file links to.
LINKS = values_of(file_links.c.target_id, file_id="file", order=[file_links.c.target_id])

# Files that a caller may know of. An agent sees what is listed and what it can read; a user sees
# everything in their part of the company, which the service checks file by file.

_on_file = (
    grants.c.holder_id == bind("holder"),
    grants.c.kind == sa.literal("kb_file"),
    grants.c.resource_id == files.c.id,
    LIVE,
)
_conferred = sa.exists().where(
    *_on_file,
    grants.c.level >= sa.literal(int(Level.READ)),
    grants.c.mode != sa.literal(Mode.DENY.value),
)
_denied = sa.exists().where(
    *_on_file,
    grants.c.level <= sa.literal(int(Level.READ)),
    grants.c.mode == sa.literal(Mode.DENY.value),
)
_readable = sa.and_(_conferred.correlate(files), ~_denied.correlate(files))
_visible = sa.or_(
    files.c.unlisted == sa.false(), bind("sees_unlisted", type_=sa.Boolean) == sa.true(), _readable
)

#: The files that the caller may see and whose ids lie between two.
FILES_BY_PREFIX = _FILES.between(_visible, company_id="company", limit=20)
# The newest files. A caller who sees everything gets all; for others, listed files and unlisted
# files that were shared with them are two statements. Each walks down one index.
_newest = (
    _FILES.select(
        files.c.id < bind("before"),
        # Remit's own documents are found through their outcome or agent.
        files.c.kind == sa.literal_column("'file'"),
        company_id="company",
    )
    .order_by(files.c.id.desc())
    .limit(bind("limit"))
)
#: The newest files of a company, texts of messages too, for a caller who sees everything.
NEWEST_FILES = Statement(_newest, into(File))
#: The newest files of a company without texts of messages, for a caller who sees everything.
NEWEST_WRITTEN = Statement(
    _newest.where(files.c.letter == sa.literal_column("false")),
    into(File),
    sqlite=_newest.where(files.c.letter == sa.literal_column("0")),
)
#: The newest files of all companies whose content is stored.
NEWEST_STORED = _FILES.find(files.c.size > 0, order=[files.c.id.desc()], limit=5)
#: Marks the files of an imported company that are texts of its messages.
KNOW_LETTERS = _FILES.update(
    files.c.company_id == bind("company"),
    files.c.unlisted == sa.true(),
    sa.or_(files.c.description == sa.literal("Message"), files.c.description.like("Message: %")),
    files.c.id.in_(
        sa.select(messages.c.body_file_id).where(messages.c.company_id == bind("company"))
    ),
    letter=True,
)
#: The newest listed files of a company.
NEWEST_LISTED = Statement(
    _newest.where(files.c.unlisted == sa.literal_column("false")),
    into(File),
    sqlite=_newest.where(files.c.unlisted == sa.literal_column("0")),
)
# Bounded, so that it is computed first: walking the files instead would read all hidden ones.
_granted = (
    sa.select(grants.c.resource_id)
    .where(
        grants.c.holder_id == bind("holder"),
        grants.c.kind == sa.literal("kb_file"),
        grants.c.revoked_at.is_(None),
    )
    .distinct()
)
_mine = (
    _granted.where(grants.c.resource_id < bind("before"))
    .order_by(grants.c.resource_id.desc())
    .limit(sa.literal_column("10000"))
    .subquery("mine")
)
#: The newest unlisted files that were shared with the caller.
NEWEST_UNLISTED = _FILES.find(
    files.c.unlisted == sa.true(),
    files.c.kind == sa.literal("file"),
    _readable,
    join=(_mine, _mine.c.resource_id == files.c.id),
    order=[_mine.c.resource_id.desc()],
    limit=bind("limit"),
)
#: The files with a link to a file that the caller may see; the caller drops other companies' files.
BACKLINKS = _FILES.find(
    file_links.c.target_id == bind("file"),
    _visible,
    join=(file_links, file_links.c.file_id == files.c.id),
    order=[file_links.c.file_id],
    limit=bind("limit"),
)
_held = (
    _granted.where(
        grants.c.level >= sa.literal(int(Level.READ)),
        grants.c.mode != sa.literal(Mode.DENY.value),
        grants.c.resource_id > bind("after"),
    )
    .order_by(grants.c.resource_id)
    .limit(bind("limit"))
    .subquery("held")
)
#: A page of the files on which an agent holds a grant; the service then decides each level.
HELD_FILES = _FILES.find(join=(_held, _held.c.resource_id == files.c.id))

# Search. Words are folded by the caller, so that both databases find the same. The results are
# candidates, the newest ones if there are very many; the caller ranks them.

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
#: Files that the caller may see and that contain all words, newest first.
MATCHING_FILES = Statement(
    # The text is composed of column names and constants only.
    sa.text(f"""
        SELECT {_FILE_COLUMNS} FROM to_tsquery('simple', :match) AS q(words)
        JOIN file_search s ON s.words @@ q.words JOIN files f ON f.id = s.file_id
        WHERE {_VISIBLE_TEXT} ORDER BY f.id DESC LIMIT :limit
    """).bindparams(no=False, yes=True),  # noqa: S608
    into(File),
    # CROSS JOIN makes SQLite walk the matches and not the files.
    sqlite=sa.text(f"""
        SELECT {_FILE_COLUMNS} FROM file_search s CROSS JOIN files f ON f.id = s.file_id
        WHERE file_search MATCH :match AND {_VISIBLE_TEXT}
        ORDER BY s.rowid DESC LIMIT :limit
    """).bindparams(no=False, yes=True),  # noqa: S608
)
#: The next row number of SQLite's search index; it grows, so that the newest files come first.
NEXT_SEARCH_ROW = Statement(
    sa.text("SELECT 0 WHERE FALSE"),
    scalar,
    sqlite=sa.text("SELECT rowid + 1 FROM file_search ORDER BY rowid DESC LIMIT 1"),
)
#: The row of a file in SQLite's search index.
SEARCH_ROW = values_of(files.c.search_row, id="file")
#: Sets the row of a file in SQLite's search index.
SET_SEARCH_ROW = _FILES.update(files.c.id == bind("file"), search_row=bind("new_row"))
#: Stores the search words of a file, in place of the earlier ones.
INDEX_FILE = change(
    sa.text(
        "INSERT INTO file_search (file_id, words) VALUES (:file, to_tsvector('simple', :words))"
        " ON CONFLICT (file_id) DO UPDATE SET words = excluded.words"
    ),
    sqlite=sa.text(
        "INSERT OR REPLACE INTO file_search (rowid, file_id, words) VALUES (:row, :file, :words)"
    ),
)


def match_all(words: Sequence[str], *, sqlite: bool) -> str:
    """Return a full-text query for files that contain every word as a prefix."""
    if sqlite:
        return " AND ".join(f'"{word}"*' for word in words)
    return " & ".join(f"'{word}':*" for word in words)
