"""Logs: to the terminal and to a file that does not grow for ever, never with a secret."""

import contextlib
import logging
import re
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

from remit.services.redaction import text_without_secrets

LARGEST_LOG = 5 * 1024 * 1024
OLDER_LOGS = 3

_TOKEN = re.compile(r"(rmt_[a-z]+_)[A-Za-z0-9_-]+")


class Redacting(logging.Formatter):
    """Formatter that redacts the finished entry, so that a traceback cannot leak a secret either.

    Further lines get a margin and control characters are escaped, so that text of others neither
    imitates an entry nor steers a terminal.
    """

    def format(self, record: logging.LogRecord) -> str:
        first, *others = redact(super().format(record)).split("\n")
        return "\n".join([harmless(first), *(f"  | {harmless(line)}" for line in others)])


def harmless(line: str) -> str:
    """Escape control and direction characters."""
    if line.isprintable():
        return line
    return "".join(
        char
        if char == "\t" or char.isprintable()
        else char.encode("unicode_escape", "surrogatepass").decode()
        for char in line
    )


def redact(text: str) -> str:
    """Redact by the rules of every other output, and Remit's own tokens except for their kind."""
    return text_without_secrets(_TOKEN.sub(r"\1…", text))[0]


@contextlib.contextmanager
def keep_logs(folder: Path, *, stderr: bool, name: str = "remit.log") -> Iterator[None]:
    """Context manager: log all entries of Remit, and warnings of libraries."""
    formatter = Redacting("%(asctime)s %(levelname)s %(name)s: %(message)s")
    file = RotatingFileHandler(
        folder / name, maxBytes=LARGEST_LOG, backupCount=OLDER_LOGS, encoding="utf-8"
    )
    handlers: list[logging.Handler] = [file, *([logging.StreamHandler()] if stderr else [])]
    root, ours = logging.getLogger(), logging.getLogger("remit")
    before = ours.level
    for handler in handlers:
        handler.setFormatter(formatter)
        root.addHandler(handler)
    ours.setLevel(logging.INFO)
    try:
        yield
    finally:
        ours.setLevel(before)
        for handler in handlers:
            root.removeHandler(handler)
            with contextlib.suppress(OSError):  # on a full disk its last lines are lost
                handler.close()
