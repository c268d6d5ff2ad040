"""Validation of an adapter's settings by its model; errors name the field, never the value."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from remit.errors import BadInput

ROOT = "adapterConfig"
LARGEST = 64 * 1024
DEEPEST = 32

_REPORTED_AT_ONCE = 3
#: Most problems in the details, for a form that shows each at its field.
_MOST_REPORTED = 20
_LONGEST_MESSAGE = 200
# Names of fields that may be repeated in an error; others might be misplaced secrets.
_TELLABLE = re.compile(r"[A-Za-z]{1,20}(?:[_-]?[A-Za-z]{1,20}){0,3}|[A-Z][A-Z0-9_]{0,40}")
# Kinds of problems whose messages never contain the value.
_SAFE = frozenset(
    {"missing", "extra_forbidden", "literal_error", "enum", "string_pattern_mismatch"}
)
_NEXT = "Read the adapter's documentation with adapter_docs, or `remit adapter show TYPE`."


def plain(config: object) -> dict[str, Any]:
    """Return a copy of the settings as plain JSON values; raises BadInput."""
    if not isinstance(config, Mapping):
        raise BadInput(f"{ROOT}: must be an object.", _NEXT)
    try:
        text = json.dumps(dict(config), allow_nan=False, ensure_ascii=False)
        text.encode()
        copied: dict[str, Any] = json.loads(text)
    except RecursionError:
        raise _wrong(ROOT, "is nested too deep") from None
    except UnicodeError:
        raise _wrong(ROOT, "contains half a character (a lone surrogate)") from None
    except (TypeError, ValueError):
        raise _wrong(ROOT, "must hold only what JSON can hold") from None
    if len(text.encode()) > LARGEST:
        raise _wrong(ROOT, f"is larger than {LARGEST // 1024} KiB; keep long texts in files")
    if _depth(copied) > DEEPEST:
        raise _wrong(ROOT, f"is nested deeper than {DEEPEST} levels")
    return copied


def read(model: type[BaseModel], config: object) -> BaseModel:
    """Parse the settings with the adapter's model; raises BadInput that names the field."""
    given = plain(config)
    try:
        return model.model_validate(given)
    except ValidationError as wrong:
        raise _bad_input(model, wrong, given) from None
    except Exception as error:
        # An exception of a plugin's validator, whose text may contain the value.
        raise _wrong(ROOT, f"is refused by the adapter ({type(error).__name__})") from None


def validate(model: type[BaseModel], config: object) -> dict[str, Any]:
    """Validate the settings and return them as given, without the defaults."""
    read(model, config)
    return plain(config)


def _bad_input(
    model: type[BaseModel], wrong: ValidationError, given: Mapping[str, Any]
) -> BadInput:
    found: dict[str, str] = {}
    for problem in wrong.errors(include_url=False, include_input=False, include_context=False):
        path = _path(problem["loc"], given, model)
        found.setdefault(path, _what(model, problem["type"], problem["msg"], path, given))
    told = [f"{path}: {what}" for path, what in found.items()][:_REPORTED_AT_ONCE]
    more = len(found) - len(told)
    sentence = "; ".join(told) + (f"; and {more} more." if more else ".")
    each = dict(list(found.items())[:_MOST_REPORTED])
    return BadInput(sentence, _NEXT, details={"path": next(iter(found)), "problems": each})


def _what(
    model: type[BaseModel], kind: str, message: str, path: str, given: Mapping[str, Any]
) -> str:
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        known = ", ".join(field.alias or name for name, field in model.model_fields.items())
        at_top = path.count(".") < 2
        return f"is not known; known are {known or 'none'}" if at_top else "is not known"
    plain_words = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if kind not in _SAFE and any(text in plain_words for text in _texts(given)):
        return "is not valid"
    plain_words = plain_words.removeprefix("Input ").rstrip(".")[:_LONGEST_MESSAGE]
    return plain_words[:1].lower() + plain_words[1:]


def _path(location: tuple[str | int, ...], given: Any, model: type[BaseModel]) -> str:
    """Return the path of a problem, without pydantic's names for the branches of a union."""
    known = {field.alias or name for name, field in model.model_fields.items()}
    path, here = ROOT, given
    for position, part in enumerate(location):
        if isinstance(here, list) and isinstance(part, int) and part < len(here):
            path, here = f"{path}[{part}]", here[part]
        elif isinstance(here, Mapping) and (part in here or position == len(location) - 1):
            name = str(part)
            if part not in here and name.startswith(("[", "function-")):
                continue
            told = name in known or _TELLABLE.fullmatch(name) is not None
            path, here = f"{path}.{name if told else '(a name)'}", here.get(part)
    return path


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in the settings that a message must not repeat."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, Mapping):
            pending.extend(one.values())
            yield from (name for name in one if len(name) > 40)
        elif isinstance(one, list):
            pending.extend(one)
        elif isinstance(one, str) and len(one) > 2:
            yield one


def _depth(value: Any) -> int:
    deepest, pending = 0, [(value, 1)]
    while pending:
        one, depth = pending.pop()
        deepest = max(deepest, depth)
        inner = one.values() if isinstance(one, Mapping) else one if isinstance(one, list) else ()
        pending.extend((each, depth + 1) for each in inner)
    return deepest


def _wrong(path: str, what: str) -> BadInput:
    return BadInput(f"{path}: {what}.", _NEXT, details={"path": path})
