"""Registry of one kind of plugin, built in or installed, and validation of settings by a plugin's
model. A validation error names the place, never the value.

Plugins are imported lazily, because most commands need none. A plugin that cannot be loaded is
reported by `problems()` and does not affect the others.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from remit.errors import BadInput, NotFound, RemitError

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

    from remit.adapters.contract import Check

    _Model = type[BaseModel]

log = logging.getLogger(__name__)

ROOT = "adapterConfig"
LARGEST = 64 * 1024
DEEPEST = 32

_REPORTED_AT_ONCE = 3
#: Most problems in the details of an error, for a form that shows each at its field.
_MOST_REPORTED = 20
_LONGEST_MESSAGE = 200
# Names that an error may show; any other may be a secret that slipped into the wrong place.
_TELLABLE = re.compile(r"[A-Za-z]{1,20}(?:[_-]?[A-Za-z]{1,20}){0,3}|[A-Z][A-Z0-9_]{0,40}")
# Kinds of problems whose messages are Remit's own, or show only the allowed values.
_SAFE = frozenset(
    {"missing", "extra_forbidden", "literal_error", "enum", "string_pattern_mismatch"}
)
_NEXT = "Read the adapter's documentation with adapter_docs, or `remit adapter show TYPE`."


class Typed(Protocol):
    type: ClassVar[str]
    #: The model of its settings.
    Config: ClassVar[_Model]


P = TypeVar("P", bound=Typed)


class Plugins(ABC, Generic[P]):
    """Plugins of one entry point group, by their type."""

    #: The word for one plugin of this kind.
    noun: ClassVar[str]
    group: ClassVar[str]
    #: Import path of each built-in plugin, by type.
    built_in: ClassVar[Mapping[str, str]]
    #: The error for an unknown type.
    missing: ClassVar[type[RemitError]] = NotFound

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._loaded: dict[str, P] = {}
        self._plugins: dict[str, P] | None = None
        self._problems: dict[str, str] = {}

    @abstractmethod
    def adopt(self, candidate: object) -> P:
        """Return an instance of a plugin's class; raises with a reason if it has not the right
        shape or cannot be documented."""

    def types(self) -> list[str]:
        """List the types: built-in ones first, then plugins by name."""
        return [*self.built_in, *sorted(self._found())]

    def get(self, type_: str) -> P:
        if type_ in self.built_in:
            return self._built_in(type_)
        plugin = self._found().get(type_)
        if plugin is None:
            raise self.missing(
                f"There is no {self.noun} {type_[:40]!r} here.",
                f"Known: {', '.join(self.types())}.",
            )
        return plugin

    def read(self, type_: str, config: object) -> BaseModel:
        """Parse settings with the plugin's model; raises BadInput that names the wrong field."""
        return read(self.get(type_).Config, config)

    def all(self) -> list[P]:
        return [self.get(type_) for type_ in self.types()]

    def problems(self) -> dict[str, str]:
        """Return the plugins that cannot be used, each with a reason."""
        self._found()
        return dict(self._problems)

    def check(
        self, type_: str, config: object = None, environment: Mapping[str, str] | None = None
    ) -> Check:
        """Check whether a plugin can work here; may take seconds, so call it in a thread."""
        from remit.adapters.contract import looked

        plugin: Any = self.get(type_)
        read = None if config is None else self.read(type_, config)
        return looked(plugin, read, os.environ if environment is None else environment)

    def _built_in(self, type_: str) -> P:
        with self._lock:
            if type_ not in self._loaded:
                module, _, name = self.built_in[type_].partition(":")
                self._loaded[type_] = getattr(importlib.import_module(module), name)()
            return self._loaded[type_]

    def _found(self) -> dict[str, P]:
        with self._lock:
            if self._plugins is None:
                self._plugins = {}
                for entry in sorted(entry_points(group=self.group), key=lambda point: point.name):
                    self._load(entry, self._plugins)
            return self._plugins

    def _load(self, entry: EntryPoint, plugins: dict[str, P]) -> None:
        try:
            plugin = self.adopt(entry.load())
            if plugin.type in self.built_in or plugin.type in plugins:
                raise ValueError(f"calls itself {plugin.type}, as another {self.noun} does")
        except (Exception, SystemExit) as error:
            # A plugin may raise anything during its import; the others must still load.
            reason = f"{entry.value} cannot be used: {type(error).__name__}: {error}"
            self._problems[entry.name] = " ".join(reason.split())[:300]
            log.warning("%s plugin %s: %s", self.noun, entry.name, self._problems[entry.name])
        else:
            plugins[plugin.type] = plugin


# ── settings ────────────────────────────────────────────────────────────────────────────────────


def plain(config: object) -> dict[str, Any]:
    """Return a copy of the settings as plain JSON values; raises BadInput for any others."""
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
    """Parse settings with a plugin's model; raises BadInput that names the wrong field."""
    from pydantic import ValidationError

    settings = plain(config)
    try:
        return model.model_validate(settings)
    except ValidationError as wrong:
        raise _bad_input(model, wrong, settings) from None
    except Exception as error:
        # From a plugin's validator; its text may contain the settings, so only the type is shown.
        raise _wrong(ROOT, f"is refused by the adapter ({type(error).__name__})") from None


def validate(model: type[BaseModel], config: object) -> dict[str, Any]:
    """Validate settings; return them as given, without the model's defaults."""
    read(model, config)
    return plain(config)


def _bad_input(
    model: type[BaseModel], wrong: ValidationError, settings: Mapping[str, Any]
) -> BadInput:
    problems: dict[str, str] = {}
    for problem in wrong.errors(include_url=False, include_input=False, include_context=False):
        path = _path(problem["loc"], settings, model)
        problems.setdefault(path, _what(model, problem["type"], problem["msg"], path, settings))
    told = [f"{path}: {what}" for path, what in problems.items()][:_REPORTED_AT_ONCE]
    more = len(problems) - len(told)
    sentence = "; ".join(told) + (f"; and {more} more." if more else ".")
    each = dict(list(problems.items())[:_MOST_REPORTED])
    return BadInput(sentence, _NEXT, details={"path": next(iter(problems)), "problems": each})


def _what(
    model: type[BaseModel], kind: str, message: str, path: str, settings: Mapping[str, Any]
) -> str:
    if kind == "missing":
        return "is required"
    if kind == "extra_forbidden":
        known = ", ".join(field.alias or name for name, field in model.model_fields.items())
        at_top = path.count(".") < 2
        return f"is not known; known are {known or 'none'}" if at_top else "is not known"
    plain_words = message.removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if kind not in _SAFE and any(text in plain_words for text in _texts(settings)):
        return "is not valid"
    plain_words = plain_words.removeprefix("Input ").rstrip(".")[:_LONGEST_MESSAGE]
    return plain_words[:1].lower() + plain_words[1:]


def _path(location: tuple[str | int, ...], settings: Any, model: type[BaseModel]) -> str:
    """Return the path of a problem, without pydantic's names for the branches of a union."""
    known = {field.alias or name for name, field in model.model_fields.items()}
    path, here = ROOT, settings
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
    """Yield the texts of the settings that a message must not repeat."""
    pending = [value]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            pending.extend(part.values())
            yield from (name for name in part if len(name) > 40)
        elif isinstance(part, list):
            pending.extend(part)
        elif isinstance(part, str) and len(part) > 2:
            yield part


def _depth(value: Any) -> int:
    deepest, pending = 0, [(value, 1)]
    while pending:
        part, depth = pending.pop()
        deepest = max(deepest, depth)
        inner = (
            part.values() if isinstance(part, Mapping) else part if isinstance(part, list) else ()
        )
        pending.extend((each, depth + 1) for each in inner)
    return deepest


def _wrong(path: str, what: str) -> BadInput:
    return BadInput(f"{path}: {what}.", _NEXT, details={"path": path})
