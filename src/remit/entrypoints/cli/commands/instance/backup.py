"""`remit backup` and `remit restore`: the instance of this home in one file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command
from remit.entrypoints.cli.session import Session
from remit.model.text import plural
from remit.settings import Settings, load

if TYPE_CHECKING:
    from remit.store.backups.backup import Contents
    from remit.store.blob_store.blobs import BlobStore


@click.command("backup", cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
def backup(session: Session, file: Path) -> None:
    """Write a backup of the instance to a file, while it runs.

    It is the instance of this home folder, with its database. FILE holds everything: keep it safe.
    """
    from remit.store.backups import backup as backups

    settings = load()
    summary = backups.create(settings.database_url, _blobs(settings), file.absolute())
    _tell(session, file, summary, "")


@click.command("restore", cls=Command)
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def restore(session: Session, file: Path) -> None:
    """Restore a backup where no instance exists yet.

    All of it is verified first. A backup of SQLite can be restored to PostgreSQL, and the reverse.
    Then start it with `remit up`.
    """
    from remit.store.backups import backup as backups

    settings = load()
    url = settings.database_url
    _tell(session, file, backups.restore(file, settings.home, url, _blobs(settings)), "Restored ")


def _blobs(settings: Settings) -> Callable[[], BlobStore]:
    """Return a function that opens the blob store, so that no unused folder is made."""
    from remit.store.blob_store.blobs import open_blobs

    return lambda: open_blobs(settings.blob_url, settings.run_folder)


def _tell(session: Session, file: Path, summary: Contents, done: str) -> None:
    from dataclasses import asdict

    if session.as_json:
        output.say(output.as_json({"file": str(file), **asdict(summary)}))
    else:
        companies = plural(summary.companies, "company", "companies")
        events, contents = plural(summary.events, "event"), plural(summary.contents, "content")
        output.say(
            f"{done}{file}: {companies}, {events} and {contents} "
            f"({output.size(summary.bytes)}), all of them verified. "
            f"Remit {summary.version or '(unknown version)'} wrote it."
        )
