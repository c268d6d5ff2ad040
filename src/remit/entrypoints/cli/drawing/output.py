"""Output for people and programs: tables, short ids and times, JSON, errors."""

import json
import re
import sys
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from remit.clock import DAY, HOUR, MINUTE, SystemClock, from_iso
from remit.entrypoints.cli.drawing import terminal
from remit.ids import short

#: Keys whose values are free documents and keep their own keys.
OPAQUE = frozenset(
    {
        *("details", "adapterConfig", "runtimeConfig", "metadata", "permissions"),
        *("payload", "result", "configuration", "was", "now"),
        *("env", "secretEnv", "headers", "secretHeaders"),
    }
)
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?\+00:00")
_INNER_CAPITAL = re.compile(r"(?<=[a-z0-9])([A-Z])|(?<=[A-Z])([A-Z][a-z])")
#: Invisible or steering: controls, format characters such as bidi marks, separators, surrogates.
_STEERING = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_GAP = "  "
#: Width of a table where lines may be of any length.
_WIDEST = 10_000
#: Least width of the value of a field.
_LEAST_VALUE = 16


def clean(text: object) -> str:
    """Return one line in which control and invisible characters are escaped."""
    line = str(text)
    if line.isascii() and line.isprintable():
        return line
    return "".join(
        char if unicodedata.category(char) not in _STEERING else _visible(char) for char in line
    )


def _visible(char: str) -> str:
    return " " if char in "\n\t" else char.encode("unicode_escape", "surrogatepass").decode()


def say(*lines: object) -> None:
    """Print lines on standard output, each one cleaned."""
    for line in lines:
        print(clean(line))


def broken(text: str) -> list[str]:
    """Break a text into lines as wide as the terminal; one line if there is none."""
    width = terminal.own_width()
    return [text] if width is None else terminal.wrapped(text, width, chops=False)


def note(line: str) -> None:
    """Print a remark on standard error, apart from the result."""
    print(clean(timed(line)), file=sys.stderr)


def error(sentence: str, step: str) -> None:
    print(f"error: {clean(timed(sentence))}\n  next: {clean(step)}", file=sys.stderr)


def when(time: str | None) -> str:
    """A time to the second."""
    if not time:
        return ""
    if time.endswith("+00:00"):
        return time[:19] + "Z"
    return time


def timed(sentence: str) -> str:
    """A sentence of an instance, with its times to the second."""
    return _MOMENT.sub(lambda moment: when(moment[0]), sentence)


def age(time: str | None) -> str:
    """Return the time passed in a few characters, such as "3 h"; a date after two weeks."""
    if not time:
        return ""
    passed = SystemClock().now() - from_iso(time)
    if passed < MINUTE:
        return "now"
    for unit, word, until in ((MINUTE, "min", HOUR), (HOUR, "h", DAY), (DAY, "d", 14 * DAY)):
        if passed < until:
            return f"{passed // unit} {word}"
    return time[:10]


def snake(value: Any) -> Any:
    """The same answer with snake_case keys."""
    if isinstance(value, dict):
        return {
            _INNER_CAPITAL.sub(r"_\1\2", key).lower(): inner if key in OPAQUE else snake(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [snake(inner) for inner in value]
    return value


def as_json(value: Any, *, one_line: bool = False) -> str:
    if one_line:
        return json.dumps(snake(value), separators=(",", ":"))
    return json.dumps(snake(value), indent=2)


def shortened(text: str) -> str:
    """Return a text with its UUIDs replaced by short ids."""
    return _UUID.sub(lambda match: short(match[0]), text)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str) -> None:
    """Print rows under headings, fitted to the terminal if there is one; a pipe gets one line for
    each, of any length."""
    if not rows:
        say(empty)
        return
    cells = [[clean("" if cell is None else cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        for line in table_lines(columns, cells):
            print(line)
        return
    headings = [column.upper() for column in columns]
    widths = [max(map(len, column)) for column in zip(headings, *cells, strict=True)]
    for row in (headings, *cells):
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print(_GAP.join(padded).rstrip())


def table_lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table on this terminal; of cells that are clean."""
    # Not needed in a pipe.
    from remit.entrypoints.cli.drawing import lists

    return lists.lines(columns, rows, terminal.width() or _WIDEST)


def fields(values: Mapping[str, object]) -> None:
    """Print one field a line, without empty ones; on a terminal a long value goes on below its
    beginning."""
    shown = {name: value for name, value in values.items() if value not in (None, "", [])}
    width = max((len(name) for name in shown), default=0)
    columns = terminal.own_width()
    room = None if columns is None else max(_LEAST_VALUE, columns - width - len(_GAP))
    for name, value in shown.items():
        text = clean(value)
        # A longer word, such as an address, stays whole so that it can be copied.
        first, *others = [text] if room is None else terminal.wrapped(text, room, chops=False)
        print(f"{name.ljust(width)}{_GAP}{first}")
        for line in others:
            print(f"{' ' * width}{_GAP}{line}")


def size(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    if count < 1024 * 1024:
        return f"{count / 1024:.1f} KiB"
    return f"{count / (1024 * 1024):.1f} MiB"
