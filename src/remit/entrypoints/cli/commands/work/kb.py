"""`remit kb`: the knowledge base."""

import contextlib
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, BinaryIO, cast
from urllib.parse import quote

import click

from remit.entrypoints.cli.client import PIECE, save, with_query
from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.options import Group, limit_option, option
from remit.entrypoints.cli.parameters import Whole
from remit.entrypoints.cli.session import Session, View, path, pick
from remit.errors import TooLarge
from remit.ids import is_id, looks_like_id, short

LARGEST = 32 * 1024 * 1024
_IN_MEMORY = 1024 * 1024
_SEEN = re.compile(r"[0-9]{1,10}:[0-9a-f]{64}")

id_argument = click.argument("id_", metavar="ID")
source_argument = click.argument("source", metavar="[FILE|-]", default="-")


kb = Group("kb", help="The knowledge base: files with versions.")


@kb.command("list")
@limit_option
def list_(session: Session, limit: int) -> None:
    """List the files that you may read."""
    everything = session.listed(session.under_company("files"), limit)
    readable = [file for file in everything if file["level"] != "none"]
    empty = "There are no files that you may read."
    session.show(readable, lambda files: _draw_list(session, files, empty))


@kb.command()
@click.argument("query", nargs=-1)
@option("--limit", "At most so many.", type=Whole(1, 999), default=50, show_default=True)
def browse(session: Session, query: tuple[str, ...], limit: int) -> None:
    """Search the descriptions of files; without words, the newest."""
    words = " ".join(query)
    matches = session.listed(session.under_company("files"), limit, query=words or None)
    session.show(matches, lambda files: _draw_list(session, files, "No file matches."))


@kb.command()
@id_argument
@option("--version", "An older version.", type=Whole(min=1))
def cat(session: Session, id_: str, version: int | None) -> None:
    """Write a file's bytes to standard output."""
    write_out(session, id_, version=version)


def write_out(session: Session, id_: str, **query: object) -> None:
    """Write a file's bytes to standard output, in the version that the query names."""
    target = with_query(path("files", file_id(session, id_), "content"), query)
    response = session.client.open(target)
    if session.as_json:
        seen = (response.getheader("ETag") or "").strip('"').partition(":")
        print(output.as_json(_described(id_, seen[0], seen[2], response.read())))
        return
    save(response, sys.stdout.buffer, "file")


def _described(id_: str, version: str, sha256: str, content: bytes) -> View:
    known: dict[str, Any] = {"id": id_, "version": int(version or 0), "hash": sha256}
    try:
        return {**known, "content": content.decode()}
    except UnicodeDecodeError:
        from base64 import b64encode

        return {**known, "content_base64": b64encode(content).decode()}


@kb.command(
    examples=(
        'remit kb create "House style" style.md',
        'echo "Be brief." | remit kb create "Tone"',
    ),
)
@click.argument("description")
@source_argument
@option("--unlisted", "Only who has a grant learns of it.")
def create(session: Session, description: str, source: str, unlisted: bool) -> None:
    """Make a file from FILE, or from standard input."""
    with spooled(source) as (stream, size):
        answer = store(session, description, stream, size, unlisted=unlisted)
    id_ = short(answer["id"])
    sentences = [
        f"Stored kb://{id_}, {output.size(answer['size'])}: {answer['description']}",
        f"Next: remit send AGENT --attach {id_}, or remit grant give AGENT kb_file:{id_} read",
    ]
    session.done(answer, sentences, partial(_draw, session))


def store(
    session: Session, description: str, stream: BinaryIO, size: int, *, unlisted: bool
) -> View:
    """Store a stream as a new file."""
    target = f"{session.under_company('files')}?description={quote(description, safe='')}"
    file: View = session.client.upload(
        "POST", target + ("&unlisted=true" if unlisted else ""), stream, _bytes(size)
    )
    return file


def _bytes(size: int) -> dict[str, str]:
    return {"Content-Type": "application/octet-stream", "Content-Length": str(size)}


@kb.command(
    examples=('remit kb write "House style" style.md',),
)
@id_argument
@source_argument
@option("--if-version V:HASH", "Only if this is still the latest version; otherwise whichever is.")
def write(session: Session, id_: str, source: str, if_version: str | None) -> None:
    """Write a new version of a file from FILE, or from standard input."""
    if if_version is not None and not _SEEN.fullmatch(if_version):
        raise click.BadParameter(
            "it is a version and a hash, such as 3:9f86d0…", param_hint="--if-version"
        )
    with spooled(source) as (stream, size):
        file = file_id(session, id_)
        if if_version is None:
            now = session.client.get(path("files", file))
            file, if_version = now["id"], f"{now['version']}:{now['hash']}"
        headers = {**_bytes(size), "If-Match": f'"{if_version}"'}
        answer = session.client.upload("PUT", path("files", file, "content"), stream, headers)
    told = f"version {answer['version']}, {output.size(answer['size'])}: {answer['description']}"
    session.done(answer, [f"Wrote kb://{short(answer['id'])}, {told}"], partial(_draw, session))


@contextlib.contextmanager
def spooled(source: str) -> Iterator[tuple[BinaryIO, int]]:
    """Context manager: a copy of the input, of known size and seekable so that an upload can be
    retried."""
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spool:
        if source != "-":
            with Path(source).open("rb") as file:
                size = _copy(file, spool)
        else:
            if sys.stdin.isatty():
                output.note("Reading from the terminal; end with Ctrl-D.")
            size = _copy(sys.stdin.buffer, spool)
        spool.seek(0)
        yield cast(BinaryIO, spool), size


def _copy(source: BinaryIO, spool: IO[bytes]) -> int:
    """Copy an input and return its size; refuse more than `LARGEST`, so that an endless one
    ends."""
    size = 0
    while piece := source.read(PIECE):
        size += len(piece)
        if size > LARGEST:
            raise TooLarge(f"The input is larger than {output.size(LARGEST)}.")
        spool.write(piece)
    return size


def file_id(session: Session, text: str) -> str:
    """A file by its id or a part of it, or by its description where only one has that."""
    text = text.removeprefix("kb://").removeprefix("kb_file:")
    if is_id(text) or (looks_like_id(text) and not session.is_company_named):
        return text
    files = session.client.each(session.under_company("files"))
    return str(pick(files, text, "file", "See `remit kb browse`.", "description")["id"])


def _author(session: Session, row: View) -> str:
    kind = "agent" if row.get("agentId") else "user"
    id_ = row.get("agentId") or row.get("userId")
    return f"{kind}:{session.known(id_)}" if id_ else "remit"


kb.rows(
    *("history", "version: {number}", "at: {at:when}", ("by", _author), "size: {size:size}"),
    ("hash", lambda _, row: row["hash"][:16]),
    empty="It has no versions.",
)
kb.rows(
    *("log", "at: {at:when}", "access", "version", ("by", _author)), empty="Nobody has used it yet."
)


def _draw_list(session: Session, files: list[View], empty: str) -> None:
    cells.table(
        *(session, files, "id: {id:short}", "level", "version", "size: {size:size}"),
        *("updated: {updatedAt:when}", "description"),
        empty=empty,
    )


def _draw(session: Session, view: View) -> None:
    cells.fields(session, view, "id", "description", "version", "hash", "size: {size:size}")
