"""Text of people and agents, validated and formatted; documents as text, and their digests."""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from enum import Enum
from typing import TypeVar

from remit.errors import BadInput

Choice = TypeVar("Choice", bound=Enum)

#: HB-02. Names are used in addresses and on command lines, so they stay this plain.
NAME = re.compile(r"[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*")
LONGEST_NAME = 64
#: Longest label besides a name.
LONGEST_LABEL = 100
#: Longest reason of a request, a refusal or another action.
LONGEST_REASON = 10_000
#: Longest word in the search index. PostgreSQL accepts none of more than 2 KiB.
LONGEST_WORD = 64
#: Most suggestions for an unknown word.
_MOST_LIKELY = 3


def clean_text(text: object, field: str, *, longest: int, empty_ok: bool = False) -> str:
    """Validate a text of several lines: valid Unicode, no NUL, bounded, trimmed."""
    if not isinstance(text, str):
        raise BadInput(f"{field} must be text.", f"Send {field} as a string.")
    if len(text) > longest:
        raise BadInput(f"{field} is longer than {longest} characters.", f"Shorten {field}.")
    if "\x00" in text or any(0xD800 <= ord(char) <= 0xDFFF for char in text):
        raise BadInput(f"{field} has a character that is not text.", "Send valid UTF-8.")
    text = text.strip()
    if not text and not empty_ok:
        raise BadInput(f"{field} is empty.", f"Give {field}.")
    return text


def clean_line(text: object, field: str, *, longest: int, empty_ok: bool = False) -> str:
    """Validate a line: like a text, without control characters, with blanks folded."""
    line = " ".join(clean_text(text, field, longest=longest, empty_ok=empty_ok).split())
    if any(unicodedata.category(char) in ("Cc", "Cf") for char in line):
        raise BadInput(
            f"{field} has control or invisible characters.", f"Write {field} as one plain line."
        )
    return line


def clean_name(text: object, field: str = "name") -> str:
    """Validate a name for addresses: letters, digits, single inner hyphens."""
    if not isinstance(text, str) or not NAME.fullmatch(text) or len(text) > LONGEST_NAME:
        raise BadInput(
            f"{field} must be letters and digits with single hyphens between, "
            f"at most {LONGEST_NAME}.",
            "Choose a name such as 'web-designer'.",
        )
    return text


def matching(text: object, pattern: re.Pattern[str], rule: str, next_step: str) -> str:
    """Validate a text that a pattern matches as a whole; `rule` is the pattern in words."""
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise BadInput(rule, next_step)
    return text


def one_of(kind: type[Choice], value: object, field: str) -> Choice:
    """Return the member of an enum with this value; BadInput if there is none."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise BadInput(f"{field} must be one of {known}.", "Choose one of these.") from None


def name_key(name: str) -> str:
    """Return the key by which names are compared: they are unique whatever their case."""
    return name.casefold()


def search_words(text: str) -> list[str]:
    """Split a text into words for full-text search, folded the same way for every database."""
    folded = unicodedata.normalize("NFKD", text).casefold()
    bare = "".join(char for char in folded if not unicodedata.combining(char))
    return [word[:LONGEST_WORD] for word in re.findall(r"[^\W_]+", bare)]


def relevance(words: Sequence[str], sought: Sequence[str]) -> float:
    """Score a text for the sought words: a whole word counts twice as much as a prefix."""
    if not words:
        return 0.0
    hits = sum(
        2 if word == wanted else 1 for word in words for wanted in sought if word.startswith(wanted)
    )
    return hits / len(words)


def closest(word: str, known: Iterable[str]) -> list[str]:
    """Return the known words that were probably meant, the likeliest first."""
    names = list(known)
    parts = _words(word)
    rearranged = [name for name in names if parts and _words(name) == parts]
    plain = {name.lower(): name for name in names}
    near = get_close_matches(word[:LONGEST_NAME].lower(), plain, n=2, cutoff=0.7)
    likely = list(dict.fromkeys([*rearranged, *(plain[spelling] for spelling in near)]))
    return likely or [name for name in names if parts & _words(name)][:_MOST_LIKELY]


def _words(name: str) -> frozenset[str]:
    """Split a name into words, so that `sendMail`, `mail-send` and `mcp__remit__mail_send` are
    equal."""
    bare = name[:LONGEST_NAME].removeprefix("mcp__remit__")
    parted = "".join(f"_{char.lower()}" if char.isupper() else char for char in bare)
    words = parted.replace("-", "_").replace(".", "_").split("_")
    return frozenset(word.removesuffix("s") for word in words) - {"", "id"}


#: Created once: `json.dumps` creates one for each call.
_ENCODER = json.JSONEncoder(ensure_ascii=True, sort_keys=True, separators=(",", ":"))


def canonical(document: object) -> str:
    """Serialise a document to the same text whatever the order of its keys."""
    return _ENCODER.encode(document)


def digest_of(document: object) -> str:
    """Hash a document; the order of its keys does not matter."""
    return hashlib.sha256(canonical(document).encode()).hexdigest()


def dollars(value: float) -> str:
    """Format money with two places; a positive amount below a cent is shown as such."""
    return "<$0.01" if 0 < value < 0.01 else f"${value:,.2f}"


def monthly(fields: Mapping[str, object]) -> str:
    """A monthly budget in words; nothing if there is none."""
    cents, tokens = fields.get("budgetMonthlyCents"), fields.get("budgetMonthlyTokens")
    parts = [dollars(cents / 100)] if isinstance(cents, int) else []
    parts += [f"{tokens:,} tokens"] if isinstance(tokens, int) else []
    return f"{' and '.join(parts)} a month" if parts else ""


def plural(number: int, singular: str, several: str | None = None) -> str:
    """Return a number with its noun: `1 case`, `2 cases`."""
    return f"{number:,} {singular if number == 1 else several or singular + 's'}"
