"""Commands that notify people: a file of the instance, which no verb and no route writes.

Write access to this file is the right to run programs as the instance. So a file that other users
could have written is refused.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import stat
from pathlib import Path

from remit.errors import BadInput, Unavailable
from remit.ids import is_id, random_name

#: Name of the file in the home folder of the instance.
NOTIFY_FILE = "notify.json"
#: Placeholder in the words of a command, replaced by the text of the notice.
TEXT = "{text}"
_LARGEST = 1 << 20


def read(file: Path) -> dict[str, str]:
    """Return the command of each user, by id; empty without a file. Raises `Unavailable`."""
    try:
        with file.open("rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
                raise _not_believed(file, "belongs to somebody else")
            if status.st_mode & 0o022:
                raise _not_believed(file, "can be written by others")
            known = json.loads(stream.read(_LARGEST))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise _not_believed(file, f"cannot be read ({type(error).__name__})") from None
    if not isinstance(known, dict) or not all(
        is_id(user) and isinstance(command, str) for user, command in known.items()
    ):
        raise _not_believed(file, "does not name a command for each user")
    return known


def write(file: Path, user: str, command: str | None) -> None:
    """Set or remove the command of a user; the file is replaced atomically."""
    known = read(file)
    known.pop(user, None)
    if command is not None:
        words(command)
        known[user] = command
    new = file.with_name(f".{random_name()}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        json.dump(known, stream, indent=1)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)


def words(command: str) -> list[str]:
    """Return the words of a command, which runs without a shell; refuses one that cannot run."""
    try:
        parts = shlex.split(command)
    except ValueError as error:
        raise BadInput(f"The command cannot be read: {error}.", "Check its quotes.") from None
    if not parts or TEXT in parts[0]:
        raise BadInput("The command is empty.", "Begin with a program.")
    if shutil.which(parts[0]) is None:
        raise BadInput(f"There is no program {parts[0]!r} here.", "Give its whole path.")
    return parts


def _not_believed(file: Path, why: str) -> Unavailable:
    return Unavailable(
        f"{file} {why}, so no command is run.", "Remove it, then set the command again."
    )
