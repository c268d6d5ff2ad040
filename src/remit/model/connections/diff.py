"""Diffs of changes: parsed from git's output, bounded, and escaped for display.

Contents and names of files are untrusted: a character that moves a cursor, changes the direction of
writing or is invisible is shown by its number.
"""

import difflib
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from remit.model.connections.file_roles import MARKS, marks

#: Bounds on what is shown of one change; the rest is in the commits themselves.
MOST_FILES = 500
MOST_LINES = 6000
MOST_LINES_OF_FILE = 2000
LONGEST_LINE = 500
#: Most lines that are compared word by word.
_MOST_PAIRS = 400
_HEAD = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
#: Characters that a pattern of git reads as more than themselves.
_NOT_LITERAL = re.compile(r"[#*?\[\]\\]")
_ESCAPED = r"\\\g<0>"
_WORD = re.compile(r"\w+|\s+|.")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Least similarity of two lines that are compared word by word.
_ALIKE = 0.4
_STATUS = {"A": "added", "D": "removed", "R": "renamed", "C": "copied", "T": "retyped"}
_MODES = {"100644": "a file", "100755": "a program", "120000": "a link", "160000": "a submodule"}
#: Start and end, in characters of a line.
Span = tuple[int, int]


@dataclass(frozen=True)
class DiffLine:
    """A line of a file, as it was or as it is proposed."""

    #: A blank, `+` or `-`.
    kind: str
    text: str
    #: Its number in the old file and in the new one.
    old: int | None
    new: int | None
    #: Spans that differ from the line it replaces.
    words: tuple[Span, ...] = ()

    @property
    def pieces(self) -> list[tuple[bool, str]]:
        """Split the line into pieces, each with whether it differs."""
        pieces, at = [], 0
        for start, end in self.words:
            pieces += [(False, self.text[at:start]), (True, self.text[start:end])]
            at = end
        return [piece for piece in (*pieces, (False, self.text[at:])) if piece[1]]


@dataclass(frozen=True)
class Hunk:
    """Lines of a file that belong together."""

    heading: str
    lines: tuple[DiffLine, ...]

    @property
    def rows(self) -> list[tuple[DiffLine | None, DiffLine | None]]:
        """Return pairs of lines, the old file beside the new one."""
        rows: list[tuple[DiffLine | None, DiffLine | None]] = []
        for block in _blocks(self.lines):
            if block[0].kind == " ":
                rows += [(line, line) for line in block]
                continue
            old = [line for line in block if line.kind == "-"]
            new = [line for line in block if line.kind == "+"]
            rows += zip_longest(old, new)
        return rows


@dataclass
class FileDiff:
    """Diff of one file."""

    path: str
    old_path: str
    status: str
    #: A new kind of the file, such as a program or a link.
    note: str = ""
    #: Its effect on agents, programs and the forge, in words; such files come first.
    marks: tuple[str, ...] = ()
    #: None for what is not text.
    added: int | None = None
    removed: int | None = None
    hunks: list[Hunk] = field(default_factory=list)
    #: Whether parts of it are not shown.
    cut: bool = False


@dataclass
class Diff:
    """Diff of a change, as far as it is shown."""

    base: str
    head: str
    files: list[FileDiff]
    #: Totals of all files, shown or not.
    count: int
    added: int
    removed: int
    cut: bool = False


def visible(text: str, longest: int = LONGEST_LINE) -> str:
    """Escape a text for display anywhere: no control and no invisible characters."""
    shown = text[:longest]
    if not shown.isprintable():
        shown = "".join(_shown(char) for char in shown)
    return shown + ("…" if len(text) > longest else "")


def _shown(char: str) -> str:
    if char == "\t":
        return "    "
    hidden = unicodedata.category(char) in _HIDDEN
    return f"⟨U+{ord(char):04X}⟩" if hidden else char


@dataclass(frozen=True)
class Entry:
    """An entry of `git diff --raw -z`."""

    old_mode: str
    new_mode: str
    status: str
    old: str
    new: str

    @property
    def marks(self) -> tuple[str, ...]:
        return marks(self.old, self.new)


def entries_of(fields: Sequence[str]) -> tuple[list[Entry], int]:
    """Return the entries of a listing, and where they end in it."""
    entries, at = [], 0
    while at < len(fields) and fields[at].startswith(":"):
        old_mode, new_mode, _, _, status = fields[at][1:].split(" ")
        renamed = status[0] in "RC"
        old, new = fields[at + 1], fields[at + 2] if renamed else fields[at + 1]
        entries.append(Entry(old_mode, new_mode, status[0], old, new))
        at += 3 if renamed else 2
    return entries, at


def order(printed: bytes) -> bytes:
    """Return an order for `git diff -O`: files with a mark come first, whatever else is proposed.
    `printed` is the output that `files_of` parses."""
    entries, _ = entries_of(printed.decode(errors="surrogateescape").split("\0"))
    marked = sorted((entry for entry in entries if entry.marks), key=_rank)
    lines = "".join(f"{_NOT_LITERAL.sub(_ESCAPED, entry.new)}\n" for entry in marked)
    return lines.encode(errors="surrogateescape")


def _rank(entry: Entry) -> int:
    return MARKS.index(entry.marks[0])


def files_of(printed: bytes) -> list[FileDiff]:
    """Parse the output of `git diff --raw --numstat -z --no-abbrev`."""
    fields = printed.decode(errors="replace").split("\0")
    entries, at = entries_of(fields)
    files = {
        entry.new: FileDiff(
            visible(entry.new),
            visible(entry.old),
            _STATUS.get(entry.status, "changed"),
            mode_note(entry.old_mode, entry.new_mode),
            entry.marks,
            0,
            0,
        )
        for entry in entries
    }
    for name, (added, removed) in counts(fields, at).items():
        if name in files:
            files[name].added, files[name].removed = added, removed
    return list(files.values())


def counts(fields: Sequence[str], at: int) -> dict[str, tuple[int | None, int | None]]:
    """Return the numbers of added and removed lines by file, which follow the entries of a listing;
    None for what is no text."""
    numbers: dict[str, tuple[int | None, int | None]] = {}
    while at < len(fields) and fields[at]:
        added, removed, name = fields[at].split("\t", 2)
        if not name:
            name, at = fields[at + 2], at + 2
        numbers[name] = (_number(added), _number(removed))
        at += 1
    return numbers


def _number(text: str) -> int | None:
    return None if text == "-" else int(text)


def mode_note(old: str, new: str) -> str:
    """Say in words what a file becomes, where it is more than another text."""
    if old == new or (old == "000000" and new == "100644") or new == "000000":
        return ""
    return f"now {_MODES.get(new, new)}"


def read(base: str, head: str, files: Sequence[FileDiff], patch: bytes, *, cut: bool) -> Diff:
    """Add the hunks of a patch to its files, which come in the same order."""
    shown = list(files[:MOST_FILES])
    diff = Diff(
        base,
        head,
        shown,
        len(files),
        sum(entry.added or 0 for entry in files),
        sum(entry.removed or 0 for entry in files),
        cut or len(shown) < len(files),
    )
    at, left = -1, MOST_LINES
    lines = iter(patch.decode(errors="replace").split("\n"))
    for line in lines:
        if line.startswith("diff --git "):
            at += 1
            continue
        begun = hunk_begins(line)
        if begun is None or not 0 <= at < len(shown):
            continue
        file = shown[at]
        hunk = _hunk(begun, lines)
        room = min(left, MOST_LINES_OF_FILE - sum(len(earlier.lines) for earlier in file.hunks))
        if len(hunk.lines) > room:
            hunk = Hunk(hunk.heading, hunk.lines[: max(room, 0)])
            file.cut = diff.cut = True
        left -= len(hunk.lines)
        if hunk.lines:
            file.hunks.append(hunk)
    if cut and 0 <= at < len(shown):
        shown[at].cut = True
    _compare(diff)
    return diff


def hunk_begins(line: str) -> re.Match[str] | None:
    """Return the header of a hunk: where it begins before and after, and how many lines it has."""
    return _HEAD.match(line)


def hunk_lines(begun: re.Match[str], lines: Iterator[str]) -> Iterator[str]:
    """Yield as many lines as the hunk's header counts, so that no line of a file passes for a
    header."""
    old_left, new_left = int(begun[2] or 1), int(begun[4] or 1)
    while old_left > 0 or new_left > 0:
        line = next(lines, None)
        if line is None:
            break
        yield line
        kind = line[:1] or " "
        old_left -= kind not in "+\\"
        new_left -= kind not in "-\\"


def _hunk(begun: re.Match[str], lines: Iterator[str]) -> Hunk:
    old, new = int(begun[1]), int(begun[3])
    diff_lines = []
    for line in hunk_lines(begun, lines):
        kind, text = line[:1] or " ", visible(line[1:].removesuffix("\r"))
        if kind == "\\":
            continue
        diff_line = DiffLine(kind, text, None if kind == "+" else old, None if kind == "-" else new)
        diff_lines.append(diff_line)
        old += kind != "+"
        new += kind != "-"
    return Hunk(visible(begun[5], 120), tuple(diff_lines))


def _blocks(lines: Sequence[DiffLine]) -> Iterator[list[DiffLine]]:
    """Yield blocks of unchanged lines and of replaced ones, in order."""
    block: list[DiffLine] = []
    for line in lines:
        fits = block and (block[-1].kind == " ") == (line.kind == " ")
        if block and (not fits or (block[-1].kind == "+" and line.kind == "-")):
            yield block
            block = []
        block.append(line)
    if block:
        yield block


def _compare(diff: Diff) -> None:
    """Find the words that differ between a line and its replacement."""
    left = _MOST_PAIRS
    for file in diff.files:
        for number, hunk in enumerate(file.hunks):
            lines: list[DiffLine] = []
            for block in _blocks(hunk.lines):
                old = [line for line in block if line.kind == "-"]
                new = [line for line in block if line.kind == "+"]
                if old and new and left > 0 and len(old) == len(new):
                    left -= len(old)
                    pairs = [_words(*pair) for pair in zip(old, new, strict=True)]
                    block = [pair[0] for pair in pairs] + [pair[1] for pair in pairs]
                lines += block
            file.hunks[number] = Hunk(hunk.heading, tuple(lines))


def _words(old: DiffLine, new: DiffLine) -> tuple[DiffLine, DiffLine]:
    first, second = _WORD.findall(old.text), _WORD.findall(new.text)
    match = difflib.SequenceMatcher(None, first, second, autojunk=False)
    if match.ratio() < _ALIKE:
        return old, new
    spans: tuple[list[Span], list[Span]] = ([], [])
    for kind, *ends in match.get_opcodes():
        if kind != "equal":
            for side, words in enumerate((first, second)):
                start, end = ends[2 * side : 2 * side + 2]
                begin = sum(len(word) for word in words[:start])
                length = sum(len(word) for word in words[start:end])
                if length:
                    spans[side].append((begin, begin + length))
    return (
        DiffLine(old.kind, old.text, old.old, old.new, tuple(spans[0])),
        DiffLine(new.kind, new.text, new.old, new.new, tuple(spans[1])),
    )
