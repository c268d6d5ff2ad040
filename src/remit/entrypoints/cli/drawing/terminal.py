"""The terminal: its width and its colours, and texts that are fitted to it."""

import os
import shutil
import sys
from enum import Enum

#: Narrower terminals are drawn for as if they had this width.
_LEAST_WIDTH = 40


class Style(Enum):
    """How a piece of text stands out: a code of the terminal."""

    BOLD = "1"
    DIM = "2"
    RED = "31"
    GREEN = "32"
    YELLOW = "33"


def width() -> int | None:
    """Return the width of lines; None without a terminal or COLUMNS, so that nothing is cut off."""
    if not sys.stdout.isatty() and not os.environ.get("COLUMNS"):
        return None
    return max(_LEAST_WIDTH, shutil.get_terminal_size().columns)


def own_width() -> int | None:
    """Return the width of the terminal that is written to; None for everything else."""
    return width() if sys.stdout.isatty() else None


def has_colours() -> bool:
    """Whether text may be styled: on a terminal, unless NO_COLOR is set."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return sys.stdout.isatty() and not plain


def painted(text: str, style: Style | None) -> str:
    """Return the text in a style, or as it is where nothing is styled."""
    if style is None or not text or not has_colours():
        return text
    return f"\x1b[{style.value}m{text}\x1b[0m"


def cells(text: str) -> int:
    """The cells that a text takes; wide characters take two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fit(text: str, room: int) -> str:
    """Cut a text to `room` cells, and mark the cut with an ellipsis."""
    if cells(text) <= room:
        return text
    from rich.cells import set_cell_size

    return set_cell_size(text, room - 1) + "…"


def wrapped(text: str, room: int, *, hanging: int = 0, chops: bool = True) -> list[str]:
    """Break a text at spaces into lines of at most `room` cells, `hanging` fewer after the first.
    A word that is longer is broken, too, if `chops` is set."""
    lines = [""]
    for word in text.split(" "):
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if cells(joined) <= room - (hanging if len(lines) > 1 else 0):
            lines[-1] = joined
            continue
        pieces = _chopped(word, room - hanging) if chops else [word]
        lines = [*lines, *pieces] if lines[-1] else pieces
    return lines


def _chopped(word: str, room: int) -> list[str]:
    if cells(word) <= room:
        return [word]
    from rich.cells import chop_cells

    return chop_cells(word, room)
