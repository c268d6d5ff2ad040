"""Logs: to the terminal and to a file that does not grow for ever, never with a token."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Iterator
from logging.handlers import RotatingFileHandler
from pathlib import Path

LARGEST_LOG = 5 * 1024 * 1024
OLDER_LOGS = 3

_TOKEN = re.compile(r"(rmt_[a-z]+_)[A-Za-z0-9_-]+")


class Redacting(logging.Formatter):
    """Looks at the finished line, so that a traceback cannot carry a token out either."""

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record))


def redact(text: str) -> str:
    return _TOKEN.sub(r"\1…", text)


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
