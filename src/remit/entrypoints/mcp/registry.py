"""Tools: a name, a schema, and a function.

Arguments come from a model that may write anything at all. They are checked here, once, so that
a tool sees valid values or is not called, and the agent reads what is wrong and where.
"""

import json
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from remit.errors import BadInput
from remit.model.text import closest
from remit.services.identity import Caller

#: Deepest nesting of arguments that is accepted.
DEEPEST = 32
#: The largest integer that every database and every JSON reader can hold exactly enough.
LARGEST_NUMBER = 2**63 - 1

_REPORTED_AT_ONCE = 3
#: Most errors that are looked at: a list of thousands may be wrong in each entry.
_LOOKED_AT = 100
_LONGEST_PATH_PART = 60
_LONGEST_MESSAGE = 300
#: A longer text is not parsed to see whether it is quoted JSON.
_LONGEST_TEXT = 100_000
_NUMBER, _OBJECT = "a number without quotes", "a JSON object"
#: The wanted value in words, by Pydantic's name of the problem.
_WANTED = {
    "string_type": "text, in quotes",
    "int_type": _NUMBER,
    "int_parsing": _NUMBER,
    "float_type": _NUMBER,
    "bool_type": "true or false without quotes",
    "list_type": "a JSON list",
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
}


#: Takes the caller and the checked arguments, and returns plain JSON values.
Call = Callable[[Caller, Any], Awaitable[dict[str, Any]]]


#: The argument of a tool that changes something with which a repeated call is recognised.
KEY: Final = "idempotency_key"


@dataclass(frozen=True)
class Tool:
    """One thing that an agent can call."""

    name: str
    #: Short: every agent pays for it in every conversation.
    description: str
    #: Its JSON schema is the tool's input schema; None when `schema` is.
    arguments: type[BaseModel] | None
    call: Call
    mutates: bool = False
    #: Kind of thing that an agent must have a use for to be shown the tool; empty: shown to all.
    offer: str = ""
    #: Of another server's tool: its schema. That server checks the arguments, and its answer is
    #: passed on as it is.
    schema: dict[str, Any] | None = None


def caller(token: str, arguments: object) -> Caller:
    """Return the caller of a tool, with the idempotency key among its checked arguments."""
    return Caller(token, getattr(arguments, KEY, None))


def validate(tool: Tool, arguments: object) -> Any:
    """Return the arguments as the tool's model; BadInput names the wrong field."""
    check_values(arguments)
    if tool.arguments is None:
        return arguments
    try:
        checked = tool.arguments.model_validate(arguments)
    except ValidationError as wrong:
        raise _bad_input(tool, tool.arguments, wrong, arguments) from None
    _check_numbers(checked)
    return checked


def check_values(arguments: object) -> None:
    """Refuse what JSON can carry and no tool takes: lone surrogates, huge numbers, deep nesting."""
    if not isinstance(arguments, Mapping):
        raise BadInput(
            "arguments: must be an object with named values.",
            "Send the arguments as a JSON object, not as a list or as text that holds one.",
        )
    if not _plain(arguments):
        _explain(arguments)


def _plain(arguments: object) -> bool:
    """Return whether all values are storable; several times as fast as naming the wrong one."""
    level: list[Any] = [arguments]
    for _ in range(DEEPEST + 1):
        inner: list[Any] = []
        for value in level:
            kind = type(value)
            if kind is str:
                if not value.isascii() and not _is_text(value):
                    return False
            elif kind is dict:
                inner.extend(value.values())
                inner.extend(value)
            elif kind is list:
                inner.extend(value)
            elif kind is int or kind is float:
                if not -LARGEST_NUMBER <= value <= LARGEST_NUMBER:
                    return False
            elif kind is not bool and value is not None:
                return False
        if not inner:
            return True
        level = inner
    return False


def _explain(arguments: object) -> None:
    """Raise BadInput that names the wrong value and its path."""
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), arguments)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, str):
            if not _is_text(value):
                raise BadInput(f"{_shown(path)}: contains half a character (a lone surrogate).")
        elif isinstance(value, bool) or value is None:
            continue
        elif isinstance(value, int | float):
            _check_number(path, value)
        elif len(path) >= DEEPEST:
            raise BadInput(f"{_shown(path[:3])}: is nested deeper than {DEEPEST} levels.")
        elif isinstance(value, Mapping):
            for key, inner in value.items():
                if not _is_text(key):
                    raise BadInput(f"{_shown((*path, key))}: is not a valid name.")
                pending.append(((*path, key), inner))
        elif isinstance(value, list):
            pending.extend(((*path, index), inner) for index, inner in enumerate(value))


@lru_cache(maxsize=512)
def input_schema(model: type[BaseModel], strict: bool = False) -> dict[str, Any]:
    """The model's JSON schema without what costs tokens and tells an agent nothing.

    With `strict` it also excludes other properties, for clients that validate arguments themselves.
    A model learns that from its first error; stating it 37 times takes 270 tokens.
    """
    whole = model.model_json_schema()
    schema = _compact(whole, whole.get("$defs", {}), ())
    schema.setdefault("properties", {})
    return _closed(schema) if strict else schema


def schema_of(tool: Tool, *, strict: bool = False) -> dict[str, Any]:
    return input_schema(tool.arguments, strict) if tool.arguments is not None else tool.schema or {}


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The same schema, in which objects with named properties have no others."""
    closed = {
        key: {name: _closed(inner) for name, inner in value.items()}
        if key == "properties"
        else _closed(value)
        if key == "items" and isinstance(value, dict)
        else [_closed(inner) for inner in value]
        if key in ("anyOf", "oneOf", "allOf")
        else value
        for key, value in schema.items()
    }
    return {**closed, "additionalProperties": False} if "properties" in closed else closed


def _compact(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], inside: tuple[str, ...]
) -> dict[str, Any]:
    if "$ref" in schema:
        name = schema["$ref"].removeprefix("#/$defs/")
        if name in inside:
            raise TypeError(f"{name} contains itself; a tool's arguments must be finite")
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _compact({**definitions[name], **beside}, definitions, (*inside, name))

    compact: dict[str, Any] = {}
    for key, value in schema.items():
        match key, value:
            case ("title" | "$defs", _) | ("additionalProperties", bool()):
                continue
            case ("default", None | "" | False) | (
                "maxLength" | "minLength" | "maxItems" | "minItems" | "maximum" | "minimum",
                _,
            ):
                continue  # an error names the argument and its limit
            case "properties", dict():
                compact[key] = {
                    name: _compact(field, definitions, inside) for name, field in value.items()
                }
            case ("items" | "additionalProperties", dict()):
                compact[key] = _compact(value, definitions, inside)
            case ("anyOf" | "oneOf", list()):
                choices = [_compact(choice, definitions, inside) for choice in value]
                choices = [choice for choice in choices if choice != {"type": "null"}]
                if len(choices) == 1:
                    compact = {**choices[0], **compact}
                else:
                    compact[key] = choices
            case ("allOf" | "prefixItems", list()):
                compact[key] = [_compact(part, definitions, inside) for part in value]
            case "discriminator", _:
                continue
            case _:
                compact[key] = value
    return compact


#: Arguments by the names that models give them.
_ALSO_CALLED = {"message": "body", "text": "body", "content": "body"}


def _bad_input(
    tool: Tool, model: type[BaseModel], wrong: ValidationError, arguments: object
) -> BadInput:
    problems = wrong.errors(include_url=False, include_context=False)
    looked_at = problems[:_LOOKED_AT]
    # Ordered sets: a union repeats itself.
    sentences: dict[str, None] = {}
    steps: dict[str, None] = {}
    renamed = _renamed(model, looked_at)
    for problem in looked_at:
        path = _path(problem["loc"], arguments, keep_last=problem["type"] == "missing")
        sentences[f"{_shown(path)}: {_what(model, problem['type'], problem['msg'], path)}"] = None
        if problem["type"] == "extra_forbidden" and (name := renamed.get(path)):
            steps[f"write {name} instead of {_shown(path)}"] = None
        elif not (problem["type"] == "missing" and _shown(path) in renamed.values()):
            steps[_step(model, problem["type"], path, problem["input"])] = None
    shown = list(sentences)[:_REPORTED_AT_ONCE]
    more = len(sentences) - len(shown) + len(problems[_LOOKED_AT:])
    return BadInput(
        "; ".join(shown) + (f"; and {more} more." if more else "."),
        f"Call {tool.name} again: {'; '.join(list(steps)[:_REPORTED_AT_ONCE])}.",
    )


def _renamed(
    model: type[BaseModel], problems: Sequence[ErrorDetails]
) -> dict[tuple[str | int, ...], str]:
    """Map each unknown argument to the one that was probably meant, if there is just one."""
    at_top = [problem for problem in problems if len(problem["loc"]) == 1]
    unknown = [str(problem["loc"][0]) for problem in at_top if problem["type"] == "extra_forbidden"]
    missing = [str(problem["loc"][0]) for problem in at_top if problem["type"] == "missing"]
    if len(unknown) == len(missing) == 1:
        return {(unknown[0],): missing[0]}
    renamed: dict[tuple[str | int, ...], str] = {}
    properties = input_schema(model)["properties"]
    for name in unknown:
        if (usual := _ALSO_CALLED.get(name)) in properties:
            renamed[(name,)] = str(usual)
            continue
        likely = closest(name, missing) or closest(name, properties)
        if len(likely) == 1:
            renamed[(name,)] = likely[0]
    return renamed


def _step(model: type[BaseModel], kind: str, path: tuple[str | int, ...], value: object) -> str:
    """Next step after one mistake in the arguments."""
    name = _shown(path)
    schema = input_schema(model)["properties"]
    if kind == "missing":
        description = schema[name].get("description") if len(path) == 1 and name in schema else None
        return f"add {name}" + (f" ({description})" if description else "")
    if kind == "extra_forbidden":
        return f"leave {name} out"
    if isinstance(value, str) and kind in _WANTED and _holds_json(value):
        return f"give {name} as JSON itself, not as text that holds it"
    if kind in _WANTED:
        return f"give {name} as {_WANTED[kind]}"
    if kind == "literal_error":
        return f"choose one of these for {name}"
    if kind in ("string_too_long", "too_long"):
        return f"shorten {name}; what is long can be kept in a file (kb_create)"
    return f"correct {name}"


def _holds_json(text: str) -> bool:
    """Return whether a text is a JSON list or object that was put into quotes."""
    if len(text) > _LONGEST_TEXT or not text.lstrip().startswith(("[", "{")):
        return False
    try:
        return isinstance(json.loads(text), list | dict)
    except (ValueError, RecursionError):
        return False


def _what(model: type[BaseModel], kind: str, message: str, path: tuple[str | int, ...]) -> str:
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        if len(path) != 1:
            return "is not known"
        known = ", ".join(model.model_fields)
        return f"is not known; known are {known}" if known else "is not known; there are none"
    plain = message.removeprefix("Value error, ").removeprefix("Input ").rstrip(".")
    printable = plain.encode("utf-8", "backslashreplace").decode()
    return printable[:1].lower() + printable[1:_LONGEST_MESSAGE]


def _path(
    location: tuple[str | int, ...], arguments: object, *, keep_last: bool
) -> tuple[str | int, ...]:
    """Pydantic's location without its names for the branches of a union."""
    here: Any = arguments
    path: list[str | int] = []
    for position, part in enumerate(location):
        known = isinstance(here, Mapping) and part in here
        known = known or (isinstance(here, list) and part in range(len(here)))
        if known:
            here = here[part]
        if known or (keep_last and position == len(location) - 1):
            path.append(part)
    return tuple(path)


def _shown(path: tuple[str | int, ...]) -> str:
    parts: list[str] = []
    for part in path:
        text = str(part).encode("unicode_escape").decode("ascii")
        parts.append(text if len(text) <= _LONGEST_PATH_PART else f"{text[:_LONGEST_PATH_PART]}…")
    return ".".join(parts) or "arguments"


def _is_text(value: str) -> bool:
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_number(path: tuple[str | int, ...], number: Any) -> None:
    if isinstance(number, float) and not math.isfinite(number):
        raise BadInput(f"{_shown(path)}: must be a finite number.")
    if abs(number) > LARGEST_NUMBER:
        raise BadInput(f"{_shown(path)}: is too large a number.")


def _check_numbers(model: BaseModel) -> None:
    """Check the numbers of a model again: one may have been parsed from a string."""
    pending: list[tuple[tuple[str | int, ...], Any]] = [((), model)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, bool | str):
            continue
        if isinstance(value, int | float):
            _check_number(path, value)
        elif isinstance(value, BaseModel):
            pending.extend(((*path, name), inner) for name, inner in value)
        elif isinstance(value, Mapping):
            pending.extend(((*path, name), inner) for name, inner in value.items())
        elif isinstance(value, list | tuple):
            pending.extend(((*path, index), inner) for index, inner in enumerate(value))
