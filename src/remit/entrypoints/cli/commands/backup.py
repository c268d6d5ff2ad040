"""A backup of the instance in this home, and back again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit.entrypoints.cli import output
from remit.entrypoints.cli.options import Command, Session, pass_session
from remit.errors import Conflict, Unsupported
from remit.settings import Settings, load

if TYPE_CHECKING:
    from remit.store.backup import Contents


@click.command("backup", cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@pass_session
def backup(session: Session, file: Path) -> None:
    """Write the instance to a file, while it works.

    It is the one in this home; whoever has FILE has everything.
    """
    from remit.store import backup as backups
    from remit.store.blobs import open_blobs
    from remit.store.migrate import sqlite_path

    settings = _embedded()
    database = sqlite_path(settings.database_url)
    if not database.exists():
        raise Conflict(f"There is no instance in {settings.home}.", "Set REMIT_HOME.")
    blobs = open_blobs(settings.blob_url, settings.run_folder)
    _tell(session, file, backups.create(database, blobs, file.absolute()))


@click.command("restore", cls=Command)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@pass_session
def restore(session: Session, file: Path) -> None:
    """Put a backup into an empty home.

    All of it is verified first. Then start it with `remit up`.
    """
    from remit.store import backup as backups

    _tell(session, file, backups.restore(file, _embedded().home))


def _embedded() -> Settings:
    settings = load()
    if not settings.database_url.startswith("sqlite:"):
        raise Unsupported(
            "This is for instances on SQLite.",
            "Use pg_dump for the database, and keep the versions of the object store.",
        )
    return settings


def _tell(session: Session, file: Path, found: Contents) -> None:
    from dataclasses import asdict

    if session.as_json:
        output.say(output.as_json({"file": str(file), **asdict(found)}))
    else:
        output.say(
            f"{file}: {found.companies} companies, {found.events} events and {found.contents} "
            f"contents ({output.size(found.bytes)}), all of them verified."
        )
