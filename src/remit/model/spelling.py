"""Texts as they stand: nothing is invisible, turns the direction of writing, or breaks a line.

For texts that somebody reads before they decide. Two different texts are spelled differently.
"""

import json
import re
import unicodedata
from itertools import groupby
from typing import Final

#: Controls, format characters (direction, joiners, tags), surrogates, private and unassigned ones,
#: separators. A space is the only separator that is shown as it is.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Zs"})
#: The first and the last of each range with the property Default_Ignorable_Code_Point, which Python
#: does not tell: programs that know nothing else of them show nothing.
_IGNORABLE: Final = (
    *((0xAD, 0xAD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5)),
    *((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164)),
    *((0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8)),
    *((0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
#: Other letters, marks and symbols without a shape: blank Braille, joiners of Tifinagh, Brahmi,
#: Zanabazar, Soyombo and Kawi, blank hieroglyphs, the filler of Khitan, the selector of Duployan,
#: the null notehead. Signs that stack letters of a living script, as of Burmese and Khmer, change
#: the shape of these, and stay.
_BLANK: Final = (
    *(0x2800, 0x2D7F, 0x1107F, 0x11A47, 0x11A99, 0x11F42, 0x13441, 0x13442),
    *(0x16FE4, 0x1BC9D, 0x1D159),
)
_SHAPELESS: Final = frozenset(
    [*_BLANK, *(code for first, last in _IGNORABLE for code in range(first, last + 1))]
)
_KEPT: Final = frozenset(" \t")
#: Characters that Unicode gives no name.
_NAMES: Final = {
    0x00: "NULL",
    0x07: "BELL",
    0x08: "BACKSPACE",
    0x0A: "LINE FEED",
    0x0B: "LINE TABULATION",
    0x0C: "FORM FEED",
    0x0D: "CARRIAGE RETURN",
    0x1B: "ESCAPE",
    0x7F: "DELETE",
    0x85: "NEXT LINE",
}
#: Begins what is spelled out, so one that stands in the text is spelled out itself.
_OPENS: Final = "⟨"
#: So many blanks could push what follows onto a line of its own.
_BLANKS: Final = re.compile(r"[ \t]{40,}")
_TAB: Final = "\t"
#: Names that need no quotation marks.
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,80}")


def spelled(text: str) -> str:
    """Return a text as one line in which every character is seen."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(map(_shown, text))
    return _BLANKS.sub(_counted, text) if "  " in text or "\t" in text else text


def spelled_lines(text: str) -> list[str]:
    """Return the lines of a text, each spelled; only a line feed ends a line."""
    return [spelled(line) for line in text.split("\n")]


def spelled_value(value: object) -> str:
    """Return a value of a document that is no text of several lines, on one line. A text that could
    be taken for something else, such as a number, has quotation marks."""
    if not isinstance(value, str):
        return json.dumps(value)
    shown = spelled(value)
    return json.dumps(shown, ensure_ascii=False) if _is_ambiguous(value) else shown


def spelled_name(name: str) -> str:
    """Return a key of a document; in quotation marks, unless it is plain."""
    if _PLAIN_NAME.fullmatch(name):
        return name
    return json.dumps("\n".join(spelled_lines(name)), ensure_ascii=False)


def _is_ambiguous(text: str) -> bool:
    if text != text.strip() or text[:1] in ('"', "{", "[") or not text:
        return True
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def _shown(char: str) -> str:
    code = ord(char)
    hidden = unicodedata.category(char) in _HIDDEN and char not in _KEPT
    if not hidden and code not in _SHAPELESS and char != _OPENS:
        return char
    name = unicodedata.name(char, "") or _NAMES.get(code, "")
    return f"{_OPENS}U+{code:04X}{' ' if name else ''}{name}⟩"


def _counted(blanks: re.Match[str]) -> str:
    runs = ((char, len([*run])) for char, run in groupby(blanks[0]))
    words = [f"{number} {'TABS' if char == _TAB else 'BLANKS'}" for char, number in runs]
    return f"{_OPENS}{', '.join(words)}⟩"
