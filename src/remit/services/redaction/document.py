"""The walk through a document: judgements by names, passed down to the values below them."""

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from remit.services.redaction import rules, text
from remit.services.redaction.rules import REMOVED, Says, says, word_set

_DEEPEST = 64
_LONGEST_IN_PATH = 80
_LONGEST_ERROR = 450

# Variables that control how a program runs, not its access.
_OPEN_VARIABLES = word_set(
    "CI CLICOLOR COLORTERM COLUMNS DEBIAN_FRONTEND DEBUG EDITOR FORCE_COLOR HOST HOSTNAME "
    "IS_SANDBOX LANG LANGUAGE LINES LOGLEVEL LOGNAME LOG_FORMAT LOG_LEVEL MAX_THINKING_TOKENS "
    "NODE_ENV NO_COLOR PAGER PORT PYTHONDONTWRITEBYTECODE PYTHONHASHSEED PYTHONUNBUFFERED "
    "PYTHONUTF8 RUST_BACKTRACE RUST_LOG SHLVL TERM TZ USER VERBOSE VISUAL"
)
_OPEN_PATHS = word_set(
    "GOPATH GOROOT HOME JAVA_HOME LD_LIBRARY_PATH MANPATH NODE_PATH OLDPWD PATH PWD PYTHONPATH "
    "SHELL TEMP TMP TMPDIR VIRTUAL_ENV"
)
_PATH = re.compile(r"[/~.$]|[A-Za-z]:[\\/]")
_OPEN_ENVIRONMENTS = word_set(
    "production prod staging stage development dev test testing local ci qa sandbox preview"
)
_OPEN_HEADERS = word_set(
    "accept acceptcharset acceptencoding acceptlanguage cachecontrol connection contentencoding "
    "contentlanguage contentlength contenttype date host ifmatch ifnonematch origin pragma prefer "
    "range referer useragent vary"
)
# In {"name": "API_KEY", "value": "…"}, one value is the name of the other.
_NAMES = ("name", "key", "variable", "header", "field")
_VALUES = ("value", "values", "default", "content", "defaultValue", "default_value")

# Too short for any shape, without an assignment; or an id. Most values are like that.
_PLAIN = re.compile(r"[A-Za-z0-9._/]{0,15}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,63}")
_FLAG = re.compile(r"--?[A-Za-z][\w.-]{0,80}")
_LONG_FLAG = re.compile(r"--[a-z]{2,20}(?:-[a-z]{1,20}){0,3}")
_VARIABLE_FLAGS = frozenset({"-e", "--env", "--build-arg"})
_HEADER_FLAGS = frozenset({"-H", "--header"})
_USER_FLAGS = frozenset({"-u", "--user", "--proxy-user"})
# 'name': { or name={, inside something that is not JSON as a whole
_OBJECT = re.compile(
    r"(?:[\"']([^\"'\\\n]{1,80})[\"']\s{0,4}:|(?<![\w-])([A-Za-z_][\w.-]{0,63})=)\s{0,4}\{"
)
# The rest of the object; or of the text, if a quotation does not end
_INSIDE = re.compile(
    r"(?:[^{}\"']++|\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|\{[^{}]*+\})*+(?:[\"'].*\Z)?",
    re.DOTALL,
)
_TOLD_BY_FIRST = re.compile(
    r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|[A-Z][a-z]+(?:-[A-Z][a-z]+)+|(?i:authorization)"
)


def without_secrets(value: Any) -> tuple[Any, list[str]]:
    """Return the value with the marker in place of its secrets, and their paths.

    Idempotent, paths included.
    """
    walk = _Walk()
    return walk.value(value, "", Says.NOTHING, 0), walk.removed


def text_without_secrets(prose: str) -> tuple[str, bool]:
    """Return a text with the marker in place of everything that looks like a secret, and whether it
    has a marker now, including earlier ones: a re-imported export gives the same export again."""
    clean = text.cut_words(_cut(prose), _is_secret)
    return clean, REMOVED in clean


def error_without_secrets(error: BaseException) -> str:
    """An error, for readers who may not see its data."""
    return text_without_secrets(repr(error))[0][:_LONGEST_ERROR]


# The names in documents repeat.
_name_without_secrets = lru_cache(maxsize=8192)(text_without_secrets)


def _is_secret(candidate: str) -> bool:
    try:
        inner = text.as_json(candidate)
    except text.Repeated:
        return True
    if inner is not None:
        return bool(without_secrets(inner)[1])
    return _cut(candidate) != candidate


def _cut(prose: str) -> str:
    """Redact a text, including an environment in it, such as `'env': {'NAME': 'value'}`."""
    cut = text.cut(prose)
    if "{" not in cut:
        return cut
    pieces, seen = [], 0
    for match in _OBJECT.finditer(cut):
        if match.start() < seen or says(match[1] or match[2]) is not Says.ENVIRONMENT:
            continue
        if (inside := _INSIDE.match(cut, match.end())) is not None:
            pieces += [cut[seen : match.end()], _without_values(inside[0])]
            seen = inside.end()
    return "".join([*pieces, cut[seen:]])


def _without_values(inside: str) -> str:
    if text.PAIR.sub("", inside).strip(" \t\r\n,"):
        return REMOVED  # not only pairs, or the end of the object is missing
    return text.PAIR.sub(_unless_open, inside)


def _unless_open(match: re.Match[str]) -> str:
    value = match[2].strip("\"'")
    stays = not value or _Walk().value(value, "", _variable(match[1]), 0) == value
    return match[0] if stays else text.in_place(match, 2)


class _Walk:
    """One walk through a document. A `Says` is the judgement of a value by the names above it."""

    def __init__(self) -> None:
        self.removed: list[str] = []

    def value(self, value: Any, path: str, judgement: Says, depth: int) -> Any:
        if value is None or isinstance(value, bool) or value in ("", [], {}):
            return value
        if depth > _DEEPEST:
            return self._hide(path)
        if isinstance(value, Mapping):
            return self._object(value, path, judgement, depth)
        if isinstance(value, list | tuple):
            return self._list(value, path, judgement, depth)
        if isinstance(value, str):
            return self._told(value, path, judgement, depth)
        hidden = (Says.SECRET, Says.IDENTIFIER, Says.ENVIRONMENT, Says.HEADERS)
        return self._hide(path) if judgement in hidden else value

    def _hide(self, path: str) -> str:
        self.removed.append(path)
        return REMOVED

    def _object(self, value: Mapping[Any, Any], path: str, judgement: Says, depth: int) -> Any:
        # Directly inside an `env`, `name` and `value` are ordinary variables.
        sets = (Says.ENVIRONMENT, Says.HEADERS)
        named = _named(value) if judgement not in sets or path.endswith("]") else None
        fields: dict[str, object] = {}
        for name, inner in value.items():
            name = str(name)
            shown = self._name(name, path, fields)
            here = f"{path}.{shown[:_LONGEST_IN_PATH]}" if path else shown[:_LONGEST_IN_PATH]
            below = _below(judgement, named if named and name in _VALUES else name)
            if named and name in _NAMES and judgement is not Says.SECRET:
                below = Says.NOTHING if _VARIABLE.fullmatch(named) else Says.LABEL
            fields[shown] = self.value(inner, here, below, depth + 1)
        return fields

    def _name(self, name: str, path: str, taken: Mapping[str, Any]) -> str:
        look = _name_without_secrets if len(name) <= _LONGEST_IN_PATH else text_without_secrets
        shown, was_secret = look(name)
        if was_secret:
            number = sum(REMOVED in other for other in taken)
            shown = f"{REMOVED} {number + 1}" if number else REMOVED
            self.removed.append(f"{path}.{shown}" if path else shown)
        return shown

    def _list(self, value: Iterable[Any], path: str, judgement: Says, depth: int) -> list[Any]:
        entries: list[Any] = []
        before: Any = None
        items = list(value)
        for number, inner in enumerate(items):
            here = f"{path}[{number}]"
            below = _after(before, inner) if judgement is Says.NOTHING else judgement
            if number == 1 and len(items) == 2 and below is Says.NOTHING:
                below = _told_by_first(before)
            entries.append(self.value(inner, here, below, depth + 1))
            before = inner
        return entries

    def _told(self, value: str, path: str, judgement: Says, depth: int) -> str:
        match judgement:
            case Says.NOTHING:
                return self._string(value, path, depth)
            case Says.SECRET:
                return self._hide(path)
            case Says.ENVIRONMENT:
                if value.lower() in _OPEN_ENVIRONMENTS:
                    return value
                name, _, assigned = value.partition("=")
                stays = _Walk().value(assigned, "", _variable(name), depth) == assigned != ""
            case Says.HEADERS:
                stays = _is_open_header(value)
            case Says.OPEN:
                stays = not rules.is_random(value)
            case Says.OPEN_PATHS:
                stays = _PATH.match(value) is not None and not rules.is_random(value)
            case _:
                stays = text.fits(judgement, value)
        return self._string(value, path, depth) if stays else self._hide(path)

    def _string(self, value: str, path: str, depth: int) -> str:
        if _PLAIN.fullmatch(value):
            return value
        try:
            inner = text.as_json(value)
        except text.Repeated:
            return self._hide(path)
        if inner is not None:
            # Settings that are stored as JSON inside JSON, as a change of seats does.
            before = len(self.removed)
            clean = self.value(inner, path, Says.NOTHING, depth + 1)
            return json.dumps(clean) if len(self.removed) > before else value
        clean, was_secret = text_without_secrets(value)
        if not was_secret and not rules.hides(value, _is_secret):
            return value
        # A one-line value is redacted as a whole; the rest of a longer text stays readable.
        self.removed.append(path)
        return clean if was_secret and "\n" in value.strip() else REMOVED


def _below(judgement: Says, name: str) -> Says:
    """Judgement of the value under a name, given the judgement of the names above it."""
    if judgement is Says.ENVIRONMENT:
        return _variable(name)
    if judgement is Says.HEADERS:
        return Says.OPEN if _header(name) in _OPEN_HEADERS else Says.SECRET
    if judgement is Says.AMOUNT and says(name) is Says.NOTHING:
        return Says.AMOUNT
    return says(name) if judgement is not Says.SECRET else Says.SECRET


def _named(value: Mapping[Any, Any]) -> str | None:
    if not any(name in value for name in _VALUES):
        return None
    return next((value[name] for name in _NAMES if isinstance(value.get(name), str)), None)


def _after(before: Any, value: Any) -> Says:
    """Judgement of an argument by the one before, as in ["--api-key", "…"]."""
    if not isinstance(before, str) or not isinstance(value, str) or not _FLAG.fullmatch(before):
        return Says.NOTHING
    if before in _VARIABLE_FLAGS:
        return Says.ENVIRONMENT if "=" in value else Says.NOTHING
    if before in _HEADER_FLAGS:
        return Says.HEADERS
    if before in _USER_FLAGS:
        return Says.SECRET if ":" in value else Says.NOTHING
    if _LONG_FLAG.fullmatch(value):
        return Says.NOTHING
    judgement = says(before.lstrip("-"))
    return Says.NOTHING if judgement in (Says.ENVIRONMENT, Says.HEADERS) else judgement


def _told_by_first(first: Any) -> Says:
    if isinstance(first, str) and _TOLD_BY_FIRST.fullmatch(first[:100]):
        return says(first)
    return Says.NOTHING


def _variable(name: str) -> Says:
    name = name.upper()
    if name in _OPEN_PATHS or (name.startswith("XDG_") and name.endswith(("_HOME", "_DIR"))):
        return Says.OPEN_PATHS
    return Says.OPEN if name in _OPEN_VARIABLES or name.startswith("LC_") else Says.SECRET


def _is_open_header(value: str) -> bool:
    name, colon, rest = value.partition(":")
    if not colon:
        return text.is_label(value)  # {"header": "X-Api-Key"} only names one
    return _header(name) in _OPEN_HEADERS and not rules.is_random(rest)


def _header(name: str) -> str:
    return name.replace("-", "").replace("_", "").strip().lower()
