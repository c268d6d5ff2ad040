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
    """Looks at the finished entry, so that a traceback cannot carry a secret out either.

    Whatever others wrote into it stays behind a margin, and steers no terminal: an entry of ours
    begins a line, and nothing else does.
    """

    def format(self, record: logging.LogRecord) -> str:
        first, *others = redact(super().format(record)).split("\n")
        return "\n".join([harmless(first), *(f"  | {harmless(line)}" for line in others)])


def harmless(line: str) -> str:
    """Without control and direction characters, which are shown instead."""
    if line.isprintable():
        return line
    return "".join(
        char
        if char == "\t" or char.isprintable()
        else char.encode("unicode_escape", "surrogatepass").decode()
        for char in line
    )


def redact(text: str) -> str:
    """By the rules of every other way out, and of a token of ours the kind alone."""
    return text_without_secrets(_TOKEN.sub(r"\1…", text))[0]


@contextlib.contextmanager
def keep_logs(folder: Path, *, stderr: bool, name: str = "remit.log") -> Iterator[None]:
    """Everything of ours, and what others warn of."""
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
