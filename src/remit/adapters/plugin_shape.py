"""The shape of a plugin's class, which need not derive from Remit's: its structural check, and the
documentation of its settings, generated from its pydantic model."""

import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeVar, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

B = TypeVar("B")
_WIDTH = 100
_LONGEST_DEFAULT = 200
_DEEPEST = 6


class Unfit(Exception):
    """A class that cannot be used as a plugin, with the reason."""


#: An alias, because inside the class `type` is an attribute.
_Model = type[BaseModel]


class Described:
    """The description of a plugin. The docstring of a class without a `summary` of its own becomes
    its summary."""

    #: Its name, such as in `adapterType`.
    type: ClassVar[str]
    #: One sentence; unless given, the docstring of the class.
    summary: ClassVar[str] = ""
    #: The keys of `adapterConfig`; the description of a field is its documentation.
    Config: ClassVar[_Model]
    #: Warnings for the person who configures it.
    safety: ClassVar[Sequence[str]] = ()
    #: Whole values of `adapterConfig` that work, each with a word on what it is for.
    examples: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__doc__ and "summary" not in vars(cls):
            cls.summary = " ".join(cls.__doc__.partition("\n\n")[0].split())

    @classmethod
    def documented(cls, around: Mapping[str, Any] | None = None) -> str:
        """Return the documentation of its settings; `around` are the other fields of an example."""
        about = (cls.type, cls.summary, cls.Config)
        return configuration_doc(*about, safety=cls.safety, examples=cls.examples, around=around)


def fitting(
    candidate: object, base: type[B], types: re.Pattern[str], parts: Sequence[str]
) -> type[B]:
    """Check that a class has a `type`, a `Config` and all of `parts`; return it as a subclass of
    `base`."""
    if not isinstance(candidate, type):
        raise Unfit("is not a class")
    name = getattr(candidate, "type", None)
    if not isinstance(name, str) or not types.fullmatch(name):
        raise Unfit(f"has no `type` like {types.pattern}")
    config = getattr(candidate, "Config", None)
    if not isinstance(config, type) or not issubclass(config, BaseModel):
        raise Unfit("has no `Config` that is a pydantic model")
    for part in parts:
        if getattr(candidate, part, None) in (None, getattr(base, part)):
            raise Unfit(f"has no `{part}()`")
    if issubclass(candidate, base):
        return candidate
    doc = inspect.getdoc(candidate) or ""
    more: dict[str, Any] = {}
    if not hasattr(candidate, "summary"):
        more["summary"] = doc.partition("\n")[0]
    return type(candidate.__name__, (candidate, base), more)


# ── documentation ─────────────────────────────────────────────────────────────────────────────────


def configuration_doc(
    type_: str,
    summary: str,
    model: type[BaseModel],
    *,
    safety: Sequence[str] = (),
    examples: Mapping[str, Mapping[str, Any]] | None = None,
    around: Mapping[str, Any] | None = None,
) -> str:
    """Keys, defaults, bounds, descriptions, safety notes and examples as plain text.

    `around` are the other fields of an example; by default those of a new agent.
    """
    lines = [f"# {type_}", "", *_wrapped(summary, ""), *([""] if summary else [])]
    lines += [f'adapterType: "{type_}". The keys below are the keys of adapterConfig.']
    required: list[str] = []
    optional: list[str] = []
    for field, entry in _entries(model, "", 0):
        (required if field.is_required() else optional).extend(entry)
    lines += ["", "## Required keys", "", *(required or ["None."])]
    lines += ["", "## Optional keys", "", *(optional or ["None."])]
    extra = model.model_config.get("extra")
    if extra == "forbid":
        lines += ["", "Other keys are refused."]
    if safety:
        lines += ["", "## Safety", ""]
        for note in safety:
            lines += _wrapped(note, "- ")
    lines += ["", "## Examples"]
    for title, config in (examples or {"The smallest": _smallest(model)}).items():
        payload = {**(around or {"name": "ada", "role": "engineer"}), "adapterType": type_}
        lines += ["", f"{title}:", json.dumps({**payload, "adapterConfig": config}, indent=2)]
    return "\n".join(lines) + "\n"


def _entries(
    model: type[BaseModel], prefix: str, depth: int
) -> Iterator[tuple[FieldInfo, list[str]]]:
    """The lines of each key, with those of the keys inside it."""
    schema = model.model_json_schema(by_alias=True)
    properties, definitions = schema.get("properties", {}), schema.get("$defs", {})
    for name, field in model.model_fields.items():
        key = prefix + (field.alias or name)
        shape = _shape(properties.get(field.alias or name, {}), definitions)
        lines = [f"{key}: {shape}. {_default(field)}"]
        lines += _wrapped(field.description or "", "    ")
        inner, mark = _inner_model(field.annotation)
        if inner is not None and depth < _DEEPEST:
            for _, below in _entries(inner, f"{key}{mark}.", depth + 1):
                lines += below
        yield field, lines


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "Required."
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is PydanticUndefined:
        return "Optional."
    shown = json.dumps(to_jsonable_python(value, fallback=str, by_alias=True))
    return f"Default: {shown[:_LONGEST_DEFAULT]}."


def _shape(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    """Return the type and the bounds of a value in words."""
    if "$ref" in schema:
        return _shape(definitions.get(schema["$ref"].rpartition("/")[2], {}), definitions)
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return "one of " + ", ".join(json.dumps(value) for value in schema["enum"])
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(dict.fromkeys(_shape(choice, definitions) for choice in choices))
    if len(schema.get("allOf", ())) == 1:
        return _shape(schema["allOf"][0], definitions)
    return _plain_shape(schema, definitions)


def _plain_shape(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> str:
    match schema.get("type"):
        case "array":
            items = _shape(schema.get("items", {}), definitions)
            return f"list of {items}{_bounds(schema, 'Items', 'entries')}"
        case "object":
            values = schema.get("additionalProperties")
            inside = ""
            if isinstance(values, Mapping) and values:
                inside = f" of {_shape(values, definitions)}"
            names = schema.get("propertyNames", {})
            named = f", names like {names['pattern']}" if "pattern" in names else ""
            return f"object{inside}{named}{_bounds(schema, 'Properties', 'entries')}"
        case "string":
            pattern = f", like {schema['pattern']}" if "pattern" in schema else ""
            return f"text{_bounds(schema, 'Length', 'characters')}{pattern}"
        case "integer":
            return f"whole number{_range(schema)}"
        case "number":
            return f"number{_range(schema)}"
        case "boolean":
            return "true or false"
        case "null":
            return "null"
        case _:
            return "any value"


def _bounds(schema: Mapping[str, Any], what: str, unit: str) -> str:
    least, most = schema.get(f"min{what}"), schema.get(f"max{what}")
    if least and most:
        return f", {least} to {most} {unit}"
    if most:
        return f", at most {most} {unit}"
    return f", at least {least} {unit}" if least else ""


def _range(schema: Mapping[str, Any]) -> str:
    words = {
        "minimum": "at least",
        "exclusiveMinimum": "more than",
        "maximum": "at most",
        "exclusiveMaximum": "less than",
    }
    return "".join(f", {words[key]} {schema[key]}" for key in words if key in schema)


def _inner_model(annotation: Any) -> tuple[type[BaseModel] | None, str]:
    """Return the model inside an annotation, and the mark after its key: "[]" for a list."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, ""
    for argument in get_args(annotation):
        inner, mark = _inner_model(argument)
        if inner is not None:
            origin = getattr(annotation, "__origin__", None)
            return inner, ("[]" if origin in (list, Sequence) else "") + mark
    return None, ""


def _smallest(model: type[BaseModel]) -> dict[str, Any]:
    """Return an example with placeholders for all required keys, for an adapter without any."""
    return {
        field.alias or name: f"<{field.description or name}>"
        for name, field in model.model_fields.items()
        if field.is_required()
    }


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()),
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=" " * len(indent),
        break_long_words=False,
        break_on_hyphens=False,
    )
