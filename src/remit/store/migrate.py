"""Bring a database to the schema of this program, or say why that is not possible."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqlalchemy import create_engine, inspect, text
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.exc import DatabaseError, OperationalError

from remit.errors import BadInput, Unavailable, Unsupported
from remit.store.sqlite import connect

#: The newest revision under `migrations/versions`; a test keeps it true.
HEAD = "0018"
_SQLITE = "sqlite:///"
#: On PostgreSQL, those who make or change the tables at once wait for each other.
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
    """Migrate to the head; answers the revision it came from when something changed."""
    engine = engine_of(url)
    try:
        with engine.connect() as connection:
            found = revision(connection)
            if found == HEAD:
                return None
            refuse_newer(found)
            connection.rollback()
            upgrade(connection)
            return found or ""
    except OperationalError as error:
        raise Unavailable(
            "The database cannot be reached.",
            "Start it, or correct REMIT_DATABASE_URL.",
        ) from error
    except DatabaseError as error:
        raise Unavailable(
            f"The database cannot be read ({error.orig}).",
            "Point REMIT_DATABASE_URL to a database of Remit's, or restore a backup.",
        ) from error
    finally:
        engine.dispose()


def refuse_newer(found: str | None, what: str = "The database") -> None:
    """A program does not touch what a later one made: it would not know what it breaks."""
    if found is not None and found > HEAD:
        raise Unsupported(
            f"{what} has schema {found}, which is newer than this program ({HEAD}).",
            "Run a newer Remit, or restore a backup made with this one.",
        )


def revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def upgrade(connection: Connection, to: str = "head", *, commit: bool = True) -> None:
    """Bring an open database to a revision; without a commit, the caller goes on from there."""
    # Alembic takes a fifth of a second to import; a start that migrates nothing is spared it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    config.attributes["commit"] = commit
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
