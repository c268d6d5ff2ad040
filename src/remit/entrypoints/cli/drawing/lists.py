"""Lists on a terminal: columns beside each other as long as there is room, the rest below its row.

Nothing is left out, whatever the width. A column without room in the row stands below it, indented.
Texts leave the row first, the rightmost before the others, then names, numbers and times.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from remit.entrypoints.cli.drawing import columns, terminal
from remit.entrypoints.cli.drawing.columns import Kind
from remit.entrypoints.cli.drawing.terminal import Style, painted

_GAP = "  "
_INDENT = "  "
_BAR = "  │ "
#: Cells up to which a plain column is never broken, the first one among them.
_WHOLE, _WHOLE_FIRST = 24, 36
#: Least width of a text beside others, and the most lines that it takes there.
_LEAST_TEXT = 24
_MOST_LINES = 3
#: A word of at most so many cells is not broken there.
_WHOLE_WORD = 60
_LEAST_PREVIEW = 30
_LEAST_FIRST = 8
#: The order in which kinds leave the row when it is too wide.
_LEAVES = (Kind.STEP, Kind.TEXT, Kind.PREVIEW, Kind.SUBJECT, Kind.PLAIN)
#: The order in which they stand below it.
_BELOW = (Kind.SUBJECT, Kind.PREVIEW, Kind.PLAIN, Kind.TEXT, Kind.STEP)
#: Kinds that need no heading there.
_QUOTED = (Kind.SUBJECT, Kind.PREVIEW)

Row = Sequence[str]


class _Column(NamedTuple):
    number: int
    heading: str
    kind: Kind
    #: Width of its widest cell, and the least width that it can be drawn in.
    natural: int
    least: int
    is_empty: bool


def lines(headings: Sequence[str], rows: Sequence[Row], width: int) -> Iterator[str]:
    """Draw rows below their headings, in lines of at most `width` cells."""
    # Two spaces stand between columns, and in no cell.
    rows = [[" ".join(cell.split()) for cell in row] for row in rows]
    everything = [
        _column(number, heading, [row[number] for row in rows])
        for number, heading in enumerate(headings)
    ]
    beside, below = _arranged(everything, width)
    widths = _widths(beside, width)
    titles = [
        _padded(painted(column.heading.upper(), Style.BOLD), column.heading, widths[column.number])
        for column in beside
    ]
    yield _GAP.join(titles).rstrip()
    for row in rows:
        yield from _beside(beside, widths, row)
        yield from _below(below, row, width)


def _column(number: int, heading: str, texts: Sequence[str]) -> _Column:
    kind = columns.kind(heading)
    natural = max(map(terminal.cells, (heading, *texts)))
    least = natural
    match kind:
        case Kind.PLAIN:
            whole = _WHOLE if number else _WHOLE_FIRST
            least = max(min(natural, whole), len(heading))
        case Kind.SUBJECT | Kind.TEXT:
            words = (terminal.cells(word) for text in texts for word in text.split(" "))
            word = min(_WHOLE_WORD, max(words, default=0))
            third = -(-natural // _MOST_LINES)
            least = min(natural, max(_LEAST_TEXT, third, word, len(heading)))
        case Kind.PREVIEW:
            least = min(natural, _LEAST_PREVIEW)
    return _Column(number, heading, kind, natural, least, not any(texts))


def _arranged(everything: list[_Column], width: int) -> tuple[list[_Column], list[_Column]]:
    """Return the columns beside each other, and those that have no room there."""
    beside, below = list(everything), []
    leaving = [
        column
        for kind in _LEAVES
        for column in reversed(everything[1:])  # the first one says whose row it is
        if column.kind is kind
    ]
    for column in sorted(leaving, key=lambda column: not column.is_empty):
        if _room(beside, width) >= 0:
            break
        beside.remove(column)
        below.append(column)
    return beside, sorted(below, key=lambda column: (_BELOW.index(column.kind), column.number))


def _room(beside: Sequence[_Column], width: int) -> int:
    """Return the rest of the width, below zero if the columns are too wide."""
    return width - sum(column.least for column in beside) - len(_GAP) * (len(beside) - 1)


def _widths(beside: Sequence[_Column], width: int) -> dict[int, int]:
    """Share the rest of the width: names and numbers get all that they need, then texts equal
    parts."""
    widths = {column.number: column.least for column in beside}
    room = _room(beside, width)
    first = beside[0]
    if room < 0:
        widths[first.number] = max(_LEAST_FIRST, first.least + room)
        return widths
    for wanted in ({Kind.PLAIN, Kind.KEY, Kind.STEP}, {Kind.SUBJECT, Kind.TEXT, Kind.PREVIEW}):
        growing = sorted(
            (column for column in beside if column.kind in wanted),
            key=lambda column: column.natural - column.least,
        )
        for left, column in zip(range(len(growing), 0, -1), growing, strict=True):
            more = min(column.natural - column.least, room // left)
            widths[column.number] += more
            room -= more
    return widths


def _beside(beside: Sequence[_Column], widths: dict[int, int], row: Row) -> Iterator[str]:
    """The lines of a row: as many as its longest cell takes."""
    drawn = []
    for column in beside:
        text, room = row[column.number], widths[column.number]
        if column.kind is Kind.PREVIEW:
            drawn.append([terminal.fit(text, room)])
        else:
            drawn.append(terminal.wrapped(text, room))
    for line in range(max(map(len, drawn))):
        pieces = []
        for column, cell in zip(beside, drawn, strict=True):
            piece = cell[line] if line < len(cell) else ""
            colour = _style(column, row[column.number])
            pieces.append(_padded(painted(piece, colour), piece, widths[column.number]))
        yield _GAP.join(pieces).rstrip()


def _below(below: Sequence[_Column], row: Row, width: int) -> Iterator[str]:
    """The lines below a row: short cells together, texts on lines of their own."""
    short = [column for column in below if column.kind is Kind.PLAIN and row[column.number]]
    for column in below:
        text = row[column.number]
        if not text:
            continue
        if column.kind in _QUOTED:
            yield from _quoted(column, text, width - len(_BAR))
        elif column.kind is not Kind.PLAIN:
            yield from _labelled(column, text, width - len(_INDENT))
        elif column is short[0]:
            yield from _together(short, row, width - len(_INDENT))


def _quoted(column: _Column, text: str, room: int) -> Iterator[str]:
    """A text without its heading, behind a bar: it cannot pass for a cell that has one."""
    is_whole = column.kind is Kind.SUBJECT
    for line in terminal.wrapped(text, room) if is_whole else [terminal.fit(text, room)]:
        yield _BAR + painted(line, _style(column, text))


def _together(short: Sequence[_Column], row: Row, room: int) -> Iterator[str]:
    """Short cells behind their headings, as many on a line as there is room for."""
    line, taken = "", 0
    for column in short:
        text = row[column.number]
        whole = terminal.cells(f"{column.heading}: {text}")
        if taken and taken + len(_GAP) + whole > room:
            yield _INDENT + line
            line, taken = "", 0
        if whole > room:
            yield from _labelled(column, text, room)
            continue
        gap = _GAP if taken else ""
        line += gap + _label(column) + painted(text, _style(column, text))
        taken += len(gap) + whole
    if taken:
        yield _INDENT + line


def _labelled(column: _Column, text: str, room: int) -> Iterator[str]:
    """A text behind its heading; further lines are indented more than any heading is."""
    label = f"{column.heading}: " if column.heading else ""
    colour = _style(column, text)
    first, *others = terminal.wrapped(label + text, room, hanging=len(_INDENT))
    if first.startswith(label):
        yield _INDENT + _label(column) + painted(first[len(label) :], colour)
    else:  # not even the first word has room behind the heading
        yield _INDENT + first
    for line in others:
        yield 2 * _INDENT + painted(line, colour)


def _label(column: _Column) -> str:
    return painted(f"{column.heading}:", Style.DIM) + " " if column.heading else ""


def _style(column: _Column, text: str) -> Style | None:
    return Style.DIM if column.kind is Kind.PREVIEW else columns.style(column.heading, text)


def _padded(drawn: str, text: str, width: int) -> str:
    return drawn + " " * (width - terminal.cells(text))
