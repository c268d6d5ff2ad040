"""Secrets in running text: a command line, a header, a line of a settings file, prose.

Only the secret itself is replaced, so that the rest stays readable.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from remit.services.redaction import rules
from remit.services.redaction.rules import REMOVED, Says, says

_VALUE = r"(\"[^\"\n]{0,4096}\"|'[^'\n]{0,4096}'|[^\s\"'&;]{1,4096})"
# NAME=value, --name=value, ?name=value&
_ASSIGNED = re.compile(rf"(?<![\w-])(-{{0,2}}[A-Za-z_][\w.-]{{0,63}})=(?!=){_VALUE}")
# --name value
_FLAGGED = re.compile(rf"(?<!\S)(--?[A-Za-z][\w-]{{1,63}})[ \t]{{1,4}}(?!-){_VALUE}")
# '--name', 'value', as a list of arguments is printed
_LISTED = re.compile(
    r"[\"'](--?[A-Za-z][\w-]{1,63})[\"'],\s{0,4}(\"[^\"\n]{0,4096}\"|'[^'\n]{0,4096}')"
)
# -u name:password
_USER = re.compile(r"(?<!\S)(-u|--user|--proxy-user)[ \t=]{1,4}([^\s:]{1,256}:\S{1,1024})")
# "name": "value", inside something that is not JSON as a whole
PAIR = re.compile(
    r"[\"']([^\"'\\\n]{1,80})[\"']\s{0,4}:\s{0,4}"
    r"(\"(?:[^\"\\\n]|\\.){0,4096}\"|'(?:[^'\\\n]|\\.){0,4096}'|[^\s,}\]\"']{1,4096})"
)
# name: value, alone on its line
_LINE = re.compile(
    r"^[ \t>*-]{0,8}[\"']?([\w.-]{1,64})[\"']?[ \t]{0,4}[:=][ \t]{0,4}(\S{1,4096})[ \t]{0,8}$",
    re.MULTILINE,
)
_HEADER = re.compile(r"^[ \t]{0,8}([A-Za-z][\w-]{0,63}):[ \t]{0,4}(\S[^\n]{0,8192})$", re.MULTILINE)
# 'name: value' between quotes, as an argument of a command
_QUOTED_HEADER = re.compile(r"[\"']([A-Za-z][\w-]{0,63}):[ \t]{0,4}([^\"'\n]{1,4096})[\"']")
_WHOLE_HEADERS = frozenset({"authorization", "proxyauthorization", "cookie", "setcookie"})

# A placeholder for a secret is not a secret.
_PLACE = re.compile(r"\$\{?[A-Z][A-Z0-9_]{0,63}\}?|<[a-z][a-z _-]{0,40}>|\{\{ ?[\w.]{1,64} ?\}\}")
_AMOUNT = re.compile(
    r"[0-9]{1,12}(?:\.[0-9]{1,6})?\s?[A-Za-z%]{0,2}"
    r"|\d{4}-\d\d-\d\d(?:[T ][0-9:.+Z-]{1,20})?"
)
_LABEL = re.compile(r"[A-Z]?[a-z]{1,16}|[A-Z]{1,16}|[0-9]{1,4}")
_BETWEEN_LABELS = re.compile(r"[ _.:/-]{1,2}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ADDRESS = re.compile(
    r"(?:[a-z][a-z0-9+.-]{1,15}://[\w.-]{1,255}|localhost|[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63}){1,10})?"
    r"(?::\d{1,5})?(?:[/?#]\S{0,2000})?"
)
_PATH = re.compile(r"(?:[\w .@~+-]{0,255}[/\\]){1,64}[\w .@~+-]{0,255}|[\w-]{1,64}\.[a-z]{1,8}")
_LONGEST_LABEL = 64
_SHORTEST_HIDDEN = 16


class Repeated(ValueError):
    """A JSON object with a repeated key; parsers differ in which one they return."""


def cut(text: str) -> str:
    """Return the text with the marker in place of every secret that is not encoded."""
    text = rules.cut(text)
    if "=" in text:
        text = _ASSIGNED.sub(_unless_harmless, text)
    if ":" in text or "=" in text:
        text = PAIR.sub(_unless_harmless, text)
        text = _LINE.sub(_unless_harmless, text)
        text = _HEADER.sub(_unless_prose, text)
        text = _QUOTED_HEADER.sub(_unless_prose, text)
    if "-" in text:
        text = _FLAGGED.sub(_unless_harmless, text)
        text = _LISTED.sub(_unless_harmless, text)
        text = _USER.sub(lambda match: in_place(match, 2), text)
    return text


def cut_words(text: str, is_secret: Callable[[str], bool]) -> str:
    """Return the text with the marker in place of words that contain an encoded secret."""

    def unless_plain(match: re.Match[str]) -> str:
        word = match[0]
        if len(word) < _SHORTEST_HIDDEN and word.isascii() and "%" not in word:
            return word
        return REMOVED if rules.hides(word, is_secret) else word

    return re.sub(r"\S+", unless_plain, text)


def as_json(text: str) -> Any:
    """Return the object, list or string that a text encodes as JSON; None if it encodes none.
    Raises `Repeated`."""
    if text.lstrip()[:1] not in ("{", "[", '"') or len(text) < 2:
        return None
    try:
        value = json.loads(text, object_pairs_hook=_object)
    except Repeated:
        raise
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list | str) else None


def fits(kind: Says, value: str) -> bool:
    """Return whether a value has the form that a name about a secret announces, such as an amount,
    a path or a label, so that it may stay."""
    if rules.cut(value) != value:
        return False
    match kind:
        case Says.AMOUNT:
            return _AMOUNT.fullmatch(value) is not None
        case Says.ADDRESS:
            return _ADDRESS.fullmatch(value) is not None and not rules.is_random(value)
        case Says.PATH:
            return _PATH.fullmatch(value) is not None and not rules.is_random(value)
        case Says.LABEL:
            return is_label(value)
        case Says.IDENTIFIER:
            return _UUID.fullmatch(value) is not None
    return False


def is_label(value: str) -> bool:
    """Return whether a value is words and small numbers, as in `openai-production-2` or
    `HTTP_PROXY`."""
    if not value or len(value) > _LONGEST_LABEL:
        return False
    return all(_LABEL.fullmatch(part) for part in _BETWEEN_LABELS.split(value))


def _unless_harmless(match: re.Match[str]) -> str:
    name, value = match[1].lstrip("-"), match[2].strip("\"'")
    kind = says(name)
    if kind in (Says.NOTHING, Says.ENVIRONMENT, Says.HEADERS) or not value:
        return match[0]
    if _PLACE.fullmatch(value) or value in ("true", "false", "null", "none", "None"):
        return match[0]
    if kind is not Says.SECRET and fits(kind, value):
        return match[0]
    return in_place(match, 2)


def _unless_prose(match: re.Match[str]) -> str:
    name, words = match[1], match[2].split()
    if says(name) is not Says.SECRET:
        return match[0]
    if name.replace("-", "").lower() not in _WHOLE_HEADERS and len(words) > 2:
        return match[0]
    if not words or _PLACE.fullmatch(words[-1]):
        return match[0]
    return in_place(match, 2)


def in_place(match: re.Match[str], group: int) -> str:
    whole, start = match[0], match.start()
    return whole[: match.start(group) - start] + REMOVED + whole[match.end(group) - start :]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise Repeated
    return fields
