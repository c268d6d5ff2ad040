"""Settings as form fields, generated from models and declarations.

An adapter or a channel has a model, a verb has typed parameters; either becomes `Setting`s, which
one template renders. The form has text, and the result is a document. A nested model becomes fields
of its own; only a value without a model is written as JSON.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypedDict, Unpack

from pydantic import BaseModel

from remit.adapters import registry
from remit.entrypoints.declared import chosen
from remit.entrypoints.web.forms import Form
from remit.errors import BadInput, RemitError
from remit.services.fields import Field
from remit.services.verbs import Verb

#: Prefix of a setting's key in the names of form fields.
PREFIX: Final = "c-"
_ROOT: Final = "adapterConfig"
#: Texts with a higher limit get a field of several lines.
_ONE_LINE: Final = 300
#: Settings whose value is one of the company's secrets, whichever model declares them.
_SECRETS: Final = frozenset({"secretRef", "secret"})
#: Parameters that name things, with the kind of the thing.
_NAMED: Final = {"secret": "secret", "api_secret": "secret", "hook": "secret", "repo": "repo"}
#: Labels of keys that are unclear by themselves; a model may also give titles.
_LABELS: Final = {
    "env": "Environment variables",
    "cwd": "Working folder",
    "timeoutSeconds": "Time limit (seconds)",
    "silenceSeconds": "Silence limit (seconds)",
    "memoryMb": "Memory limit (MiB)",
    "secretRef": "Key or signature (secret)",
    "baseUrl": "API address",
    "url": "Address",
    "ref": "Branch or tag",
    "maxRetries": "Retries",
    "to": "Send to",
    "at": "Once, at",
    "cron": "Repeated, as cron",
    "body": "Text",
    "hours": "Link is good for (hours)",
}
#: Optional settings that come first.
_LEADING: Final = frozenset({"model", "secretRef", "provider", "url"})
_NULL: Final = re.compile(r"\bnull: ")
_SHELL: Final = re.compile(r", which its \w+ registers with `remit secret set`")
_LOCAL: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?")
_WORDS: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_SPELLED: Final = {
    "api": "API",
    "imap": "IMAP",
    "smtp": "SMTP",
    "url": "URL",
    "id": "ID",
    "mcp": "MCP",
    "llm": "LLM",
    "mb": "(MiB)",
}
_SPELLED_LAST: Final = {"seconds": "(seconds)", "usd": "(USD)"}


@dataclass(frozen=True)
class Setting:
    #: Key in the document; with a dot inside of another.
    key: str
    #: text, area, number, moment, yes_no, choice, lines, pairs or json.
    kind: str
    required: bool
    description: str
    #: Default in words, for an empty field.
    default: str
    options: tuple[Any, ...] = ()
    label: str = ""
    #: Kind of thing that it names, for a picker.
    picks: str = ""

    @property
    def name(self) -> str:
        return f"{PREFIX}{self.key}"

    @property
    def leads(self) -> bool:
        """Return whether it is optional, and yet what most people want to set."""
        return self.key in _LEADING


# ── from a model ────────────────────────────────────────────────────────────────────────────────


def settings(adapter_type: str) -> list[Setting]:
    """Settings of an adapter; first those that have to be set."""
    return of_model(registry.get(adapter_type).Config)


class How(TypedDict, total=False):
    """How a form differs from the model or the verb that its fields are made from."""

    #: Replace texts that are for programs, by the key of the setting.
    labels: Mapping[str, str]
    words: Mapping[str, str]
    #: Keys that the page knows by itself.
    without: Collection[str]
    #: Keys that only the page requires.
    needed: Collection[str]


def of_model(model: type[BaseModel], **how: Unpack[How]) -> list[Setting]:
    """Return the settings of a model."""
    schema = model.model_json_schema(by_alias=True)
    titles = {field.alias or name: field.title for name, field in model.model_fields.items()}
    return _changed(_of_schema(schema, schema.get("$defs", {}), titles), how)


def _changed(settings: Iterable[Setting], how: How) -> list[Setting]:
    """Return the settings of a form, first those that have to be set."""
    labels, words = how.get("labels", {}), how.get("words", {})
    form_fields = [
        replace(
            setting,
            label=labels.get(setting.key, setting.label),
            description=words.get(setting.key, setting.description),
            required=setting.required or setting.key in how.get("needed", ()),
        )
        for setting in settings
        if setting.key not in how.get("without", ())
    ]
    return sorted(form_fields, key=lambda setting: (not setting.required, not setting.leads))


def _of_schema(
    schema: Mapping[str, Any],
    definitions: Mapping[str, Any],
    titles: Mapping[str, str | None],
    above: Setting | None = None,
) -> Iterable[Setting]:
    required = set(schema.get("required", ())) if above is None else set()
    for key, raw in schema.get("properties", {}).items():
        plain = _plain(raw, definitions)
        kind, options = _kind(plain, definitions)
        default = raw.get("default")
        label = titles.get(key) or humanised(key)
        setting = Setting(
            key if above is None else f"{above.key}.{key}",
            kind,
            key in required,
            _SHELL.sub("", _NULL.sub("Empty: ", raw.get("description", ""))),
            "" if key in required or default in (None, [], {}) else _shown(default),
            options,
            label if above is None else f"{above.label}: {label[:1].lower()}{label[1:]}",
            "secret" if key in _SECRETS else "",
        )
        if plain.get("properties") and above is None:
            yield from _of_schema(plain, definitions, {}, setting)
        else:
            yield setting


def humanised(key: str) -> str:
    """A key as a label: `maxBudgetUsd` is "Max budget (USD)"."""
    if key in _LABELS:
        return _LABELS[key]
    words = [word.lower() for word in _WORDS.findall(key.replace("_", " "))]
    if len(words) > 1:
        words[-1] = _SPELLED_LAST.get(words[-1], words[-1])
    text = " ".join(_SPELLED.get(word, word) for word in words)
    return text[:1].upper() + text[1:]


def _plain(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of a value that is not null."""
    if "$ref" in schema:
        return _plain(definitions.get(schema["$ref"].rpartition("/")[2], {}), definitions)
    choices = [choice for choice in schema.get("anyOf", ()) if choice.get("type") != "null"]
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
    values = [entry for entry in inside if isinstance(entry, Mapping)]
    return bool(values) and all(
        _plain(entry, definitions).get("type") == "string" for entry in values
    )


# ── from a verb ─────────────────────────────────────────────────────────────────────────────────


def of_verb(verb: Verb[..., Any], **how: Unpack[How]) -> list[Setting]:
    """Return the form fields of a verb's parameters."""
    return _changed(map(_of_field, chosen(verb, ("company",))), how)


def _of_field(field: Field) -> Setting:
    kind, options = "text", field.words
    if field.entries is not None:
        kind = "lines"
    elif options:
        kind = "choice"
    elif field.kind in (bool, int, float, dict):
        kind = {bool: "yes_no", dict: "json"}.get(field.kind, "number")
    elif field.moment:
        kind = "moment"
    elif field.text is not None and not field.text.one_line and field.text.longest > _ONE_LINE:
        kind = "area"
    picks = field.reference.kind if field.reference is not None else ""
    default = "" if field.required or not field.default else _shown(field.default)
    text = "" if field.help is None else field.help.text
    return Setting(
        field.name,
        kind,
        field.required,
        f"{text.rstrip('.')}." if text else "",
        default,
        options,
        humanised(field.name),
        picks or _NAMED.get(field.name, ""),
    )


# ── what was typed, and what is there ───────────────────────────────────────────────────────────


def read(of: str | Sequence[Setting], form: Form) -> dict[str, Any]:
    """Return the document that was typed, without empty fields."""
    document: dict[str, Any] = {}
    for setting in _known(of):
        text = form.text(setting.name)
        if not text:
            continue
        *above, key = setting.key.split(".")
        place = document
        for name in above:
            place = place.setdefault(name, {})
        place[key] = _value(setting, text)
    return document


def read_call(of: Sequence[Setting], form: Form) -> dict[str, Any]:
    """Like `read`, for a verb: its required parameters must be given."""
    arguments = read(of, form)
    for setting in of:
        if setting.required and setting.key not in arguments:
            raise wrong(setting.key, "is missing")
    return arguments


def _known(of: str | Sequence[Setting]) -> Sequence[Setting]:
    return settings(of) if isinstance(of, str) else of


def _value(setting: Setting, text: str) -> Any:
    match setting.kind:
        case "number":
            try:
                return int(text) if text.lstrip("-").isdecimal() else float(text)
            except ValueError:
                raise wrong(setting.key, "must be a number") from None
        case "yes_no":
            return text == "true"
        case "moment":  # a browser sends no time zone; it is UTC
            return f"{text}Z" if _LOCAL.fullmatch(text) else text
        case "choice":
            return next((option for option in setting.options if str(option) == text), text)
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


def written(of: str | Sequence[Setting], config: Mapping[str, Any]) -> dict[str, str] | None:
    """Return a document as typed fields; None if fields cannot express it."""
    typed: dict[str, str] = {}
    known = {setting.key: setting for setting in _known(of)}
    for key, value in _flat(config, known).items():
        if value is None:
            continue
        setting = known.get(key)
        text = None if setting is None else _text(setting, value)
        if setting is None or text is None:
            return None
        typed[setting.name] = text
    return typed


def _flat(config: Mapping[str, Any], known: Mapping[str, Setting]) -> dict[str, Any]:
    """Flatten nested values to dotted keys; an empty document stays, which no field expresses."""
    inner = {key.partition(".")[0] for key in known if "." in key}
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if key in inner and isinstance(value, Mapping) and value:
            flat |= {f"{key}.{name}": part for name, part in value.items()}
        else:
            flat[key] = value
    return flat


def _text(setting: Setting, value: Any) -> str | None:
    match setting.kind:
        case "lines":
            if isinstance(value, list) and value and all(_is_line(line) for line in value):
                return "\n".join(value)
            return None
        case "pairs":
            if not isinstance(value, Mapping) or not all(map(_is_line, value.values())):
                return None
            return "\n".join(f"{name}={text}" for name, text in value.items())
        case "json":
            return as_json(value)
        case "yes_no":
            return _shown(value) if isinstance(value, bool) else None
        case _:
            return None if isinstance(value, dict | list | bool) else str(value)


def _is_line(value: object) -> bool:
    return isinstance(value, str) and "\n" not in value and bool(value.strip())


def as_json(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def typed(form: Form) -> dict[str, str]:
    """Return the form's settings as they were typed, by the names of their fields."""
    return {name: form.text(name) for name in form.fields if name.startswith(PREFIX)}


def wrong(key: str, what: str) -> BadInput:
    path = f"{_ROOT}.{key}"
    return BadInput(
        f"{humanised(key.rpartition('.')[2])}: {what}.",
        "Correct the field.",
        details={"path": path, "problems": {path: what}},
    )


def problems(error: RemitError | None) -> dict[str, str]:
    """Return problems by the key of their setting, and by that of the setting around it."""
    sentences: dict[str, str] = {}
    for path, what in ((error and error.details.get("problems")) or {}).items():
        inner = str(path).removeprefix(_ROOT).lstrip(".")
        key = inner.partition(".")[0].partition("[")[0]
        rest = inner[len(key) :].lstrip(".")
        alone = f"{str(what)[:1].upper()}{str(what)[1:]}."
        sentences.setdefault(key, f"{rest}: {what}." if rest else alone)
        sentences.setdefault(inner, alone)
    return sentences


def number_or_none(text: str, name: str) -> float | None:
    """Parse a typed amount; None for no limit."""
    if text.strip().lower() in ("none", "no limit"):
        return None
    try:
        amount = float(text.strip().lstrip("$").replace(",", ""))
    except ValueError:
        amount = -1.0
    if not 0 <= amount < 1e10:
        raise wrong(name, "must be a number, 0 or more, or none")
    return amount
