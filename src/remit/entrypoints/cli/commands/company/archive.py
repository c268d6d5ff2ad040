"""`remit company export` and `remit company import`: a whole company in a folder."""

import contextlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO, cast

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command, option
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import BadInput, Conflict

_PIECE = 256 * 1024
_IN_MEMORY = 8 * 1024 * 1024
#: Read timeout: the instance writes a large company down before it sends the first byte.
_SILENCE = 600.0
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@click.command(cls=Command)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
def export(session: Session, folder: Path) -> None:
    """Write the whole company to a new folder, as readable text and without secrets."""
    _check_new(folder)
    response = session.client.open(session.under_company("export"), silence=_SILENCE)
    count = _unpack(cast(BinaryIO, response), folder)
    company = session.company
    sentence = f"{company['name']} is in {folder} ({count} files)."
    answer = {"id": company["id"], "folder": str(folder), "files": count}
    session.show(answer, lambda _: output.say(sentence))


@click.command("import", cls=Command)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@option("--name TEXT", "Another name for it.")
def import_(session: Session, folder: Path, name: str | None) -> None:
    """Make a company from an exported folder; you are its board.

    It is halted until you accept it: `remit company accept`.
    """
    from urllib.parse import quote

    target = path("companies", "import") + (f"?name={quote(name, safe='')}" if name else "")
    with _packed(folder) as (stream, size):
        headers = {"Content-Type": "application/x-tar", "Content-Length": str(size)}
        answer = session.client.upload("POST", target, stream, headers)
    session.show(answer, _draw)
    if answer["awaitsAcceptance"] and not session.as_json:
        called = shlex.quote(answer["name"])
        output.say(
            "It is halted until you accept it. "
            f"`remit company accept {called}` shows what it would run, and lets it go on."
        )
    if answer["setup"]:
        output.note(
            "Repositories, checks and folders wait to be applied. Read them first: "
            f"`remit apply {folder / 'setup.toml'} --dry-run`."
        )


def _draw(answer: View) -> None:
    output.fields({name: answer[name] for name in ("name", "id", "agents", "outcomes", "files")})
    for sentence in answer["leftOut"]:
        output.note(f"Left out: {sentence}.")
    for agent, settings in answer["removed"].items():
        output.note(f"{agent}: give again what was taken out: {', '.join(settings)}.")
    if answer["bindings"]:
        output.note(
            f"Bindings that wait for their secrets: {answer['bindings']}. See `remit bind list`."
        )


def _check_new(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise Conflict(f"{folder} is not a folder.", "Name a new one.")
    if folder.is_dir() and any(folder.iterdir()):
        raise Conflict(f"{folder} is not empty.", "Name a new folder.")


def _unpack(stream: BinaryIO, folder: Path) -> int:
    """Unpack into a temporary folder and rename it at the end: there is a whole folder or none."""
    from remit.services.archive import tar

    target = folder.absolute()
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    count = 0

    def write(entry: tar.Entry) -> None:
        file = beside / entry.path  # which `tar` has found to be a plain relative name
        file.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(file, _NEW_FILE, 0o644), "wb") as sink:
            _copy(stream, sink, entry.size)
        _read(stream, tar.padding(entry.size))

    try:
        for _ in tar.walk(lambda size: _read(stream, size), write):
            count += 1
        beside.rename(target)
    except BaseException:
        shutil.rmtree(beside, ignore_errors=True)
        raise
    return count


def _read(stream: BinaryIO, size: int) -> bytes:
    """Read `size` bytes, or fewer at the end of the stream."""
    content = b""
    while len(content) < size and (piece := stream.read(size - len(content))):
        content += piece
    return content


def _copy(source: BinaryIO, sink: IO[bytes], size: int) -> None:
    while size:
        piece = source.read(min(size, _PIECE))
        if not piece:
            raise BadInput("The archive ends too early.", "Try again.")
        sink.write(piece)
        size -= len(piece)


@contextlib.contextmanager
def _packed(folder: Path) -> Iterator[tuple[BinaryIO, int]]:
    """Context manager: the folder as a tar of known size, seekable so that the upload can be
    retried."""
    from remit.services.archive import tar

    if not (folder / "company.toml").is_file():
        raise BadInput(f"{folder} has no company.toml.", "Name a folder that was exported.")
    with tempfile.SpooledTemporaryFile(_IN_MEMORY) as spool:
        for name, file in _files(folder, ""):
            with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW), "rb") as source:
                size = os.fstat(source.fileno()).st_size
                spool.write(tar.header(tar.check_path(name), size))
                _copy(source, spool, size)
                spool.write(bytes(tar.padding(size)))
        spool.write(tar.END)
        size = spool.tell()
        spool.seek(0)
        yield cast(BinaryIO, spool), size


def _files(folder: Path, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the plain files in a stable order. Dot files are Git's or the desktop's, and are
    skipped."""
    with os.scandir(folder) as entries:
        sorted_entries = sorted(entries, key=lambda entry: entry.name)
    for entry in sorted_entries:
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path), f"{prefix}{entry.name}/")
        elif entry.is_file(follow_symlinks=False):
            yield f"{prefix}{entry.name}", entry.path
        else:
            raise BadInput(f"{entry.path} is not a plain file.", "Remove it.")
