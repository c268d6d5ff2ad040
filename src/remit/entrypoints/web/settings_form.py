"""An adapter's settings as the fields of a form, made from its own model.

What a person types is text; what the adapter takes is a document. Settings that are more than one
value, a list of lines or names with values are written as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from remit.adapters import registry
from remit.entrypoints.web.forms import Form
from remit.errors import BadInput

#: Before the key of a setting in the names of the form's fields.
PREFIX: Final = "c-"
_ROOT: Final = "adapterConfig"


@dataclass(frozen=True)
class Setting:
    key: str
    #: text, number, yes_no, choice, lines, pairs or json.
    kind: str
    required: bool
    description: str
    #: What it is when nothing is typed, in words.
    default: str
    options: tuple[Any, ...] = ()

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.key}"


def settings(adapter_type: str) -> list[Setting]:
    """What can be set; first what has to be."""
    schema = registry.get(adapter_type).Config.model_json_schema(by_alias=True)
    definitions = schema.get("$defs", {})
    required = set(schema.get("required", ()))
    found = []
    for key, raw in schema.get("properties", {}).items():
        plain = _plain(raw, definitions)
        kind, options = _kind(plain, definitions)
        default = raw.get("default")
        found.append(
            Setting(
                key,
                kind,
                key in required,
                raw.get("description", ""),
                "" if key in required or default in (None, [], {}) else _shown(default),
                options,
            )
        )
    return sorted(found, key=lambda one: not one.required)


def _plain(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a value is when it is not null."""
    if "$ref" in schema:
        return _plain(definitions.get(schema["$ref"].rpartition("/")[2], {}), definitions)
    choices = [one for one in schema.get("anyOf", ()) if one.get("type") != "null"]
    return _plain(choices[0], definitions) if len(choices) == 1 else schema


def _kind(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    if "enum" in schema:
        return "choice", tuple(schema["enum"])
    if "const" in schema:
        return "choice", (schema["const"],)
    match schema.get("type"):
        case "string":
            return "text", ()
        case "integer" | "number":
            return "number", ()
        case "boolean":
            return "yes_no", ()
        case "array" if _plain(schema.get("items", {}), definitions).get("type") == "string":
            return "lines", ()
        case "object" if not schema.get("properties") and _of_text(schema, definitions):
            return "pairs", ()
        case _:
            return "json", ()


def _of_text(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> bool:
    inside = [*schema.get("patternProperties", {}).values(), schema.get("additionalProperties")]
    values = [one for one in inside if isinstance(one, Mapping)]
    return bool(values) and all(_plain(one, definitions).get("type") == "string" for one in values)


def read(adapter_type: str, form: Form) -> dict[str, Any]:
    """The document that was typed; what was left empty is not in it."""
    found: dict[str, Any] = {}
    for setting in settings(adapter_type):
        text = form.text(setting.name)
        if text:
            found[setting.key] = _value(setting, text)
    return found


def _value(setting: Setting, text: str) -> Any:
    match setting.kind:
        case "number":
            try:
                return int(text) if text.lstrip("-").isdecimal() else float(text)
            except ValueError:
                raise wrong(setting.key, "must be a number") from None
        case "yes_no":
            return text == "true"
        case "choice":
            return next((one for one in setting.options if str(one) == text), text)
        case "lines":
            return [line for line in text.split("\n") if line.strip()]
        case "pairs":
            return dict(_pair(setting, line) for line in text.split("\n") if line.strip())
        case "json":
            try:
                return json.loads(text)
            except (ValueError, RecursionError):
                raise wrong(setting.key, "is not JSON") from None
        case _:
            return text


def _pair(setting: Setting, line: str) -> tuple[str, str]:
    name, equals, value = line.partition("=")
    if not equals:
        raise wrong(setting.key, "has a line without =; write NAME=VALUE")
    return name.strip(), value


def written(adapter_type: str, config: Mapping[str, Any]) -> dict[str, str] | None:
    """A document as what would have been typed; None when fields cannot say it."""
    found: dict[str, str] = {}
    for setting in settings(adapter_type):
        if config.get(setting.key) is not None:
            text = _text(setting, config[setting.key])
            if text is None:
                return None
            found[setting.name] = text
    known = {setting.key for setting in settings(adapter_type)}
    return found if all(key in known for key in config) else None


def _text(setting: Setting, value: Any) -> str | None:
    match setting.kind:
        case "lines":
            if isinstance(value, list) and value and all(_is_line(one) for one in value):
                return "\n".join(value)
            return None
        case "pairs":
            if not isinstance(value, Mapping) or not all(map(_is_line, value.values())):
                return None
            return "\n".join(f"{name}={one}" for name, one in value.items())
        case "json":
            return json.dumps(value, indent=2, ensure_ascii=False)
        case "yes_no":
            return _shown(value) if isinstance(value, bool) else None
        case _:
            return None if isinstance(value, dict | list | bool) else str(value)


def _is_line(value: object) -> bool:
    return isinstance(value, str) and "\n" not in value and bool(value.strip())


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def wrong(key: str, what: str) -> BadInput:
    path = f"{_ROOT}.{key}"
    return BadInput(
        f"{path}: {what}.", "Correct the field.", details={"path": path, "problems": {path: what}}
    )


def problems(details: Mapping[str, Any]) -> dict[str, str]:
    """What is wrong with which setting, by its key."""
    found: dict[str, str] = {}
    for path, what in (details.get("problems") or {}).items():
        inner = str(path).removeprefix(_ROOT).lstrip(".")
        key = inner.partition(".")[0].partition("[")[0]
        rest = inner[len(key) :].lstrip(".")
        sentence = f"{rest}: {what}." if rest else f"{str(what)[:1].upper()}{str(what)[1:]}."
        found.setdefault(key, sentence)
    return found
