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
HEAD = "0008"
_SQLITE = "sqlite:///"


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
    engine = _engine(url)
    try:
        with engine.connect() as connection:
            found = revision(connection)
            if found == HEAD:
                return None
            if found is not None and found > HEAD:
                raise Unsupported(
                    f"The database has schema {found}, which is newer than this program ({HEAD}).",
                    "Run a newer Remit, or restore a backup made with this one.",
                )
            connection.rollback()
            _upgrade(connection)
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


def revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def _upgrade(connection: Connection) -> None:
    # Alembic takes a fifth of a second to import; a start that migrates nothing is spared it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _engine(url: str) -> Engine:
    if is_sqlite(url):
        path = sqlite_path(url)
        options: dict[str, Any] = {"creator": lambda: connect(path)}
        return create_engine("sqlite://", **options)
    return create_engine(
        url.replace("postgres://", "postgresql://", 1).replace(
            "postgresql://", "postgresql+psycopg://", 1
        )
    )
