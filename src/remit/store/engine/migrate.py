"""Migration of a database to the schema of this program, and refusal of unknown schemas."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import (
    Column,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    create_engine,
    inspect,
    text,
)
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DatabaseError, OperationalError

from remit.errors import BadInput, Unavailable, Unsupported
from remit.store.engine.sqlite import connect
from remit.store.tables import metadata
from remit.store.tables.base import copied
from remit.store.tables.engine_specific import STATEMENTS

#: The revisions, that of v0.1.0 first; the name of a revision's file begins with it.
SCHEMAS = tuple(
    sorted(
        file.name[:4]
        for file in (Path(__file__).parents[1] / "migrations/versions").glob("[0-9]*.py")
    )
)
HEAD = SCHEMAS[-1]
#: Alembic's table with the revision of a database, defined as Alembic creates it.
_VERSION = Table(
    "alembic_version",
    MetaData(),
    Column("version_num", String(32), nullable=False),
    PrimaryKeyConstraint("version_num", name="alembic_version_pkc"),
)
_SQLITE = "sqlite:///"
#: Lock of PostgreSQL that serializes processes which migrate at the same time.
TAKE_TURN = "SELECT pg_advisory_xact_lock(7236)"


def is_sqlite(url: str) -> bool:
    if url.startswith(_SQLITE):
        return True
    if urlsplit(url).scheme in ("postgresql", "postgres"):
        return False
    raise BadInput(
        "The database address is neither sqlite:///… nor postgresql://….",
        "Correct REMIT_DATABASE_URL.",
    )


def sqlite_path(url: str) -> Path:
    return Path(url.removeprefix(_SQLITE))


def migrate(url: str) -> str | None:
    """Migrate to the head. Returns the revision before, "" for an empty database, or None if
    nothing changed."""
    engine = engine_of(url)
    try:
        with engine.connect() as connection:
            schema = revision(connection)
            if schema == HEAD:
                return None
            refuse_unknown(schema)
            connection.rollback()
            upgrade(connection)
            return schema or ""
    except OperationalError as error:
        raise Unavailable(
            "The database cannot be reached.", "Start it, or correct REMIT_DATABASE_URL."
        ) from error
    except DatabaseError as error:
        raise Unavailable(
            f"The database cannot be read ({error.orig}).",
            "Point REMIT_DATABASE_URL to a database of Remit's, or restore a backup.",
        ) from error
    finally:
        engine.dispose()


def refuse_unknown(schema: str | None, what: str = "The database") -> None:
    """Refuse a revision that this program does not know: using it could damage the data."""
    if schema is None or schema in SCHEMAS:
        return
    if schema > HEAD:
        raise Unsupported(
            f"{what} has schema {schema}, which is newer than this program ({HEAD}).",
            "Run a newer Remit, or restore a backup made with this one.",
        )
    raise Unsupported(
        f"{what} has schema {schema}, which no release had: a version under development made it.",
        "Run that version to export each company (`remit company export`), and import it here.",
    )


def revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if version is None else str(version)


def upgrade(connection: Connection, to: str = HEAD, *, commit: bool = True) -> None:
    """Bring an open database to a revision; without a commit, the caller goes on from there.

    All in one transaction, also on SQLite: a start that is cut off leaves the old schema. Two
    processes that start at the same time are serialized.
    """
    sqlite = connection.dialect.name == "sqlite"
    connection.execute(text("BEGIN IMMEDIATE" if sqlite else TAKE_TURN))
    if to == HEAD and revision(connection) is None:
        _create(connection)
    else:
        _run_migrations(connection, to)
    if commit:
        connection.commit()


def _create(connection: Connection) -> None:
    """Create all tables of the head in an empty database; ten times as fast as all migrations."""
    # On a copy: SQLAlchemy remembers constraints that PostgreSQL adds by ALTER, and would leave
    # them out of the table from then on.
    tables = MetaData(naming_convention=metadata.naming_convention)
    for table in metadata.sorted_tables:
        copied(table, tables)
    tables.create_all(connection, checkfirst=False)
    for statement in STATEMENTS[connection.dialect.name]:
        connection.execute(text(statement))
    _VERSION.create(connection, checkfirst=True)
    connection.execute(_VERSION.insert().values(version_num=HEAD))


def _run_migrations(connection: Connection, to: str) -> None:
    # Imported here: Alembic takes a fifth of a second, which most starts can do without.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parents[1] / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, to)


def engine_of(url: str) -> Engine:
    if is_sqlite(url):
        path = sqlite_path(url)
        options: dict[str, Any] = {"creator": lambda: connect(path)}
        return create_engine("sqlite://", **options)
    return create_engine(
        url.replace("postgres://", "postgresql://", 1).replace(
            "postgresql://", "postgresql+psycopg://", 1
        )
    )
