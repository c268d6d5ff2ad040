"""The workspace: the folder of one run, whose contents are untrusted.

Any file in it may be a trap: a symlink to a secret, a hard link, a fifo that blocks, a folder that
is swapped during a check. So no path is resolved twice: every step starts from an open folder,
follows no symlink, and checks the opened file instead of its name.
"""

import contextlib
import errno
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from remit.errors import AlreadyExists, BadInput, Conflict, NotFound, Unavailable
from remit.ids import is_id, random_name
from remit.store.blob_store.blobs import storage_error, write_all

#: Where a run finds copies of knowledge-base files.
KB_FOLDER = ".kb"

_LONGEST_PATH = 4096
_LONGEST_NAME = 255
_CHUNK = 256 * 1024
_ATTEMPTS = 20
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: opening a fifo returns at once.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def create_workspace(root: Path, run_id: str) -> Path:
    """Make a new, empty folder that only this user can enter."""
    if not is_id(run_id):
        raise BadInput(f"{run_id[:60]!r} is not the id of a run.")
    path = root / run_id
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.mkdir(mode=0o700)
    except FileExistsError:
        raise AlreadyExists(f"Run {run_id} has a workspace already.", "Start a new run.") from None
    except OSError as error:
        raise storage_error(error) from error
    return path


def open_inside(workspace: Path | str, path: str) -> BinaryIO:
    """Open a regular file of the workspace by its relative or absolute path."""
    *folders, name = _components(os.fspath(workspace), path)
    try:
        with _walked(workspace, folders) as here:
            fd = os.open(name, _FILE, dir_fd=here)
    except OSError as error:
        raise _open_error(error, path) from error
    try:
        _check_file(os.fstat(fd), path)
        return os.fdopen(fd, "rb")
    except BaseException:
        os.close(fd)
        raise


def names_inside(workspace: Path | str, folder: str, most: int) -> list[str]:
    """Return the names in a folder of the workspace, sorted; none of a folder that is missing or
    is reached through a link. No more than `most` are looked at."""
    try:
        with (
            _walked(workspace, _components(os.fspath(workspace), folder)) as here,
            os.scandir(here) as entries,
        ):
            return sorted(entry.name for entry in islice(entries, most))
    except OSError:
        return []


def materialise(workspace: Path | str, name: str, stream: BinaryIO) -> Path:
    """Write a read-only copy of the stream to `.kb/<name>`, atomically."""
    if name in ("", ".", "..") or "/" in name:
        raise BadInput(f"{name[:60]!r} is not the name of a file.")
    _check_text(name)
    temporary = f".{random_name()}"
    try:
        with _kb_folder(os.fspath(workspace)) as folder:
            try:
                _copy(stream, temporary, folder)
                # Replaces a symlink planted under this name; it does not follow it.
                os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary, dir_fd=folder)
                raise
    except IsADirectoryError:
        raise Conflict(
            f"{KB_FOLDER}/{name} is a folder in the workspace.", "Remove that folder."
        ) from None
    except OSError as error:
        raise storage_error(error) from error
    return Path(workspace, KB_FOLDER, name)


def move_inside(workspace: Path | str, path: str, folder: Path) -> Path:
    """Move a folder into the workspace, atomically, to an unused path or an empty folder.

    Parent folders are made; none is entered through a symlink. The folder must lie on the same
    file system.
    """
    *folders, name = _components(os.fspath(workspace), path)
    try:
        with _walked(workspace, folders, make=True) as here:
            # Takes the place of an empty folder, and follows no symlink of that name.
            os.rename(folder, name, dst_dir_fd=here)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise Conflict(
                f"There is something at {path[:200]!r} already.", "Choose another place."
            ) from error
        if error.errno == errno.ENOENT and not os.path.isdir(workspace):
            raise Conflict("The run is over, and its workspace with it.") from error
        raise _open_error(error, path) from error
    return Path(workspace, *folders, name)


def destroy_workspace(path: Path | str) -> None:
    """Remove the workspace and its contents, read-only or not. Safe to repeat.

    Every folder is first moved to the top under a new name and then emptied. So the depth that an
    agent built costs neither stack nor descriptors; and a mount point, which cannot be moved, stops
    the removal before it deletes files outside.
    """
    path = os.fspath(path)
    try:
        for _ in range(_ATTEMPTS):
            try:
                if not stat.S_ISDIR(os.lstat(path).st_mode):
                    os.unlink(path)
                    return
                _make_writable(path)
                with _opened(path) as top:
                    _clear(top)
                os.rmdir(path)
                return
            except FileNotFoundError:
                if not os.path.lexists(path):
                    return
            except OSError as error:
                # A process still writes into it; take another round.
                if error.errno != errno.ENOTEMPTY:
                    raise
    except OSError as error:
        raise Unavailable(
            f"The workspace could not be removed: {os.strerror(error.errno or 0)}.",
            "Look for mounts and foreign files in it, then remove it by hand.",
        ) from error
    raise Unavailable("The workspace is still being written to.", "Stop the run's processes.")


def _components(workspace: str, path: str) -> list[str]:
    """Return the path components from the workspace to the file, at least one."""
    if not path:
        raise BadInput("The path is empty.", "Give a path inside the workspace.")
    _check_text(path)
    parts = _split(path)
    if ".." in parts:
        raise _outside(path)
    if path.startswith("/"):
        for root in (os.path.abspath(workspace), os.path.realpath(workspace)):
            steps = _split(root)
            if parts[: len(steps)] == steps:
                parts = parts[len(steps) :]
                break
        else:
            raise _outside(path)
    if not parts:
        raise _not_a_file(path)
    return parts


def _split(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _check_text(path: str) -> None:
    try:
        raw = os.fsencode(path)
    except UnicodeEncodeError:
        raise BadInput("The path is not valid text.") from None
    if b"\0" in raw:
        raise BadInput("The path holds a NUL byte.")
    too_long = len(raw) > _LONGEST_PATH or max(map(len, raw.split(b"/"))) > _LONGEST_NAME
    if too_long:
        raise BadInput("The path is too long.", "Use shorter names.")


def _open_folder(path: str, dir_fd: int | None = None) -> int:
    """Open a folder, never through a symlink, which raises ELOOP."""
    try:
        return os.open(path, _FOLDER, dir_fd=dir_fd)
    except NotADirectoryError:
        mode = os.stat(path, dir_fd=dir_fd, follow_symlinks=False).st_mode
        if stat.S_ISLNK(mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None
        raise


@contextmanager
def _walked(workspace: Path | str, folders: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """Context manager: a descriptor of the last of some folders, each opened from the one before;
    `make` makes missing ones."""
    here = _open_folder(os.fspath(workspace))
    try:
        for folder in folders:
            if make:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(folder, 0o700, dir_fd=here)
            left, here = here, _open_folder(folder, here)
            os.close(left)
        yield here
    finally:
        os.close(here)


@contextmanager
def _opened(path: str, dir_fd: int | None = None) -> Iterator[int]:
    fd = _open_folder(path, dir_fd)
    try:
        yield fd
    finally:
        os.close(fd)


def _check_file(status: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise _not_a_file(path)
    if status.st_nlink > 1:
        raise BadInput(
            f"{path[:200]!r} has several hard links, so it may be a file from outside.",
            "Copy it within the workspace and give the copy.",
            code="hard_linked",
        )


def _open_error(error: OSError, path: str) -> Exception:
    match error.errno:
        case errno.ELOOP:
            return _outside(path)
        case errno.ENOENT | errno.ENOTDIR:
            return NotFound(
                f"There is no file {path[:200]!r} in the workspace.",
                "List the workspace and check the path.",
            )
        case errno.ENXIO | errno.ENODEV:  # a socket, or a device without a driver
            return _not_a_file(path)
        case errno.EACCES | errno.EPERM:
            return BadInput(
                f"{path[:200]!r} may not be read.",
                "Make it readable for its owner.",
                code="unreadable",
            )
    return storage_error(error)


def _outside(path: str) -> BadInput:
    return BadInput(
        f"{path[:200]!r} leads out of the workspace or through a symlink.",
        "Copy the file into the workspace and give its path there.",
        code="outside_workspace",
    )


def _not_a_file(path: str) -> BadInput:
    return BadInput(
        f"{path[:200]!r} is not a regular file.", "Give the path of a file.", code="not_a_file"
    )


@contextmanager
def _kb_folder(workspace: str) -> Iterator[int]:
    """Context manager: the folder `.kb`; a file or link that the agent put there is removed."""
    with _opened(workspace) as top:
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(FileExistsError):
                os.mkdir(KB_FOLDER, 0o700, dir_fd=top)
            try:
                fd = os.open(KB_FOLDER, _FOLDER, dir_fd=top)
            except FileNotFoundError:
                continue
            except NotADirectoryError:
                with contextlib.suppress(FileNotFoundError, IsADirectoryError):
                    os.unlink(KB_FOLDER, dir_fd=top)
                continue
            break
        else:
            raise Conflict(f"The workspace keeps changing its {KB_FOLDER} folder.")
    try:
        os.fchmod(fd, 0o700)
        yield fd
    finally:
        os.close(fd)


def _copy(stream: BinaryIO, name: str, folder: int) -> None:
    fd = os.open(name, _NEW_FILE, 0o600, dir_fd=folder)
    try:
        while chunk := stream.read(_CHUNK):
            write_all(fd, chunk)
        os.fchmod(fd, 0o444)
    finally:
        os.close(fd)


def _clear(top: int) -> None:
    doomed = _strip(top, top)
    while doomed:
        name = doomed.pop()
        _make_writable(name, top)
        with _opened(name, top) as folder:
            doomed += _strip(folder, top)
        os.rmdir(name, dir_fd=top)


def _strip(folder: int, top: int) -> list[str]:
    """Unlink the files of a folder, and move its folders to the top; return their new names."""
    with os.scandir(folder) as entries:
        listing = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    moved = []
    for name, is_folder in listing:
        if not is_folder:
            os.unlink(name, dir_fd=folder)
            continue
        new_name = random_name()
        try:
            os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=top)
        except PermissionError:  # a folder must be writable to change its parent
            _make_writable(name, folder)
            os.rename(name, new_name, src_dir_fd=folder, dst_dir_fd=top)
        moved.append(new_name)
    return moved


def _make_writable(name: str, dir_fd: int | None = None) -> None:
    """chmod a folder, even one without read permission, and never the target of a symlink."""
    if sys.platform == "linux":
        flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(name, flags, dir_fd=dir_fd)
        try:
            os.chmod(f"/proc/self/fd/{fd}", 0o700)
        finally:
            os.close(fd)
    else:
        os.chmod(name, 0o700, dir_fd=dir_fd, follow_symlinks=False)
