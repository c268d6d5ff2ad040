"""`remit backup` and `remit restore`: the instance of this home in one file."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command
from remit.entrypoints.cli.session import Session
from remit.errors import BadInput
from remit.model.text import plural
from remit.settings import Settings

if TYPE_CHECKING:
    from remit.store.backups.backup import Contents
    from remit.store.blob_store.blobs import BlobStore


#: Parts of a home folder that a backup does not have.
LEFT_OUT = (
    "the board's token",
    "values of secrets",
    "remit.toml",
    "home folders of agents",
    "copies of repositories",
    "logs",
)


@click.command("backup", cls=Command, examples=("remit backup /backups/monday.tar",))
@click.argument("file", type=click.Path(path_type=Path))
def backup(session: Session, file: Path) -> None:
    """Write a backup of the instance to a file, while it runs.

    It is the instance of this home folder, with its database: everything that the companies know
    and did, so keep FILE safe.

    Left out are the board's token, the values of secrets, remit.toml, the home folders of agents,
    copies of repositories and logs. Keep `secrets`, `agents` and `remit.toml` of the home folder
    yourself.
    """
    from remit.store.backups import backup as backups

    _check_folder(file.absolute().parent)
    settings = session.settings
    summary = backups.create(settings.database_url, _blobs(settings), file.absolute())
    _tell(session, file, summary, "", left_out=LEFT_OUT)
    if not session.as_json:
        output.say(f"Left out: {', '.join(LEFT_OUT)}.")


def _check_folder(folder: Path) -> None:
    """Refuse a folder that no file can be written to."""
    if not folder.exists():
        raise BadInput(f"There is no folder {folder}.", "Make it first, or choose another path.")
    if not folder.is_dir():
        raise BadInput(f"{folder} is not a folder.", "Choose another path.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise BadInput(f"You may not write to {folder}.", "Choose another path.")


@click.command("restore", cls=Command, examples=("REMIT_HOME=~/restored remit restore monday.tar",))
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def restore(session: Session, file: Path) -> None:
    """Restore a backup where no instance exists yet.

    All of it is verified first. A backup of SQLite can be restored to PostgreSQL, and the reverse.
    Then start it with `remit up`.
    """
    from remit.store.backups import backup as backups

    settings = session.settings
    url = settings.database_url
    _tell(session, file, backups.restore(file, settings.home, url, _blobs(settings)), "Restored ")


def _blobs(settings: Settings) -> Callable[[], BlobStore]:
    """Return a function that opens the blob store, so that no unused folder is made."""
    from remit.store.blob_store.blobs import open_blobs

    return lambda: open_blobs(settings.blob_url, settings.run_folder)


def _tell(
    session: Session, file: Path, summary: Contents, done: str, **more: Sequence[str]
) -> None:
    from dataclasses import asdict

    if session.as_json:
        output.say(output.as_json({"file": str(file), **asdict(summary), **more}))
    else:
        companies = plural(summary.companies, "company", "companies")
        events, contents = plural(summary.events, "event"), plural(summary.contents, "content")
        output.say(
            f"{done}{file}: {companies}, {events} and {contents} "
            f"({output.size(summary.bytes)}), all of them verified. "
            f"Remit {summary.version or '(unknown version)'} wrote it."
        )
