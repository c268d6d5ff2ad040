"""Declaration of the records of an export: each key once, for writing and for reading.

    GRANT = Record(Grant, "id", "holder=holder_id", Entry("note", line(100)), …)

An attribute whose type determines its kind needs only its key, with the attribute's name if that
differs. Undeclared attributes are not exported: they are read as None, or passed to `read`.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import NoneType
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar, get_args, get_type_hints

from remit.clock import to_iso
from remit.ids import AgentId, UserId
from remit.model.text import clean_line, clean_text
from remit.services.archive.fields import LARGEST_NUMBER, PERSON, Fields
from remit.services.archive.text import Noted
from remit.services.shape_basics import JsonObject

T = TypeVar("T")
Names = Mapping[str, str]

NOBODY: Final[Names] = {}
#: Instead of a default: the key is required.
REQUIRED: Final = object()


class Kind(NamedTuple):
    """The writer and the reader of a value."""

    write: Callable[[Any], Any]
    read: Callable[[Fields, str], Any]


def _as_it_is(value: Any) -> Any:
    return value


ID: Final = Kind(_as_it_is, Fields.id)
#: An agent's id, written with the agent's name as a comment.
NAMED: Final = Kind(_as_it_is, Fields.id)
TIME: Final = Kind(to_iso, Fields.time)
FLAG: Final = Kind(_as_it_is, Fields.flag)
SHA256: Final = Kind(_as_it_is, Fields.sha256)
#: A list of ids, stored as JSON.
IDS: Final = Kind(json.loads, lambda fields, key: json.dumps(fields.ids(key)))


def word(kind: type[StrEnum]) -> Kind:
    return Kind(lambda value: value.value, lambda fields, key: fields.one_of(key, kind))


def number(*, least: int = 1, most: int = LARGEST_NUMBER) -> Kind:
    return Kind(_as_it_is, lambda fields, key: fields.number(key, least=least, most=most))


def raw(longest: int) -> Kind:
    """A text that is kept unchanged, blanks included."""
    return Kind(_as_it_is, lambda fields, key: fields.text(key, longest))


def line(longest: int, *, empty: bool = False) -> Kind:
    return checked(lambda value, key: clean_line(value, key, longest=longest, empty_ok=empty))


def prose(longest: int, *, empty: bool = False) -> Kind:
    return checked(lambda value, key: clean_text(value, key, longest=longest, empty_ok=empty))


def checked(check: Callable[[Any, str], Any]) -> Kind:
    """A text that must be exactly as Remit would have stored it."""
    return Kind(_as_it_is, lambda fields, key: fields.clean(key, lambda value: check(value, key)))


#: Endings of keys whose numbers are times.
_TIMES: Final = frozenset({"at", "since", "until"})


class Key(Protocol):
    """One or more attributes under a key of a record."""

    def write(self, value: Any, names: Names, /) -> JsonObject: ...

    def read(self, fields: Fields, /) -> JsonObject: ...


@dataclass(frozen=True, slots=True)
class Entry:
    """One attribute under one key. A default may be absent, and is written as null."""

    key: str
    kind: Kind
    attribute: str = ""
    default: Any = REQUIRED
    #: Whether the default is left out instead of written as null.
    sparse: bool = False
    #: The value for older exports, which lack the key.
    before: Any = REQUIRED

    def write(self, value: Any, names: Names) -> JsonObject:
        content = getattr(value, self.attribute or self.key)
        if content == self.default:
            return {} if self.sparse else {self.key: None}
        written = self.kind.write(content)
        return {self.key: Noted(written, names.get(content)) if self.kind is NAMED else written}

    def read(self, fields: Fields) -> JsonObject:
        absent = self.default if self.before is REQUIRED else self.before
        if absent is not REQUIRED and fields.get(self.key) is None:
            content = absent
        else:
            content = self.kind.read(fields, self.key)
        return {self.attribute or self.key: content}


@dataclass(frozen=True, slots=True)
class Author:
    """An agent, a person (without a name), or None."""

    key: str
    agent: str
    user: str
    required: bool = False

    def write(self, value: Any, names: Names) -> JsonObject:
        return {self.key: by_whom(getattr(value, self.agent), getattr(value, self.user), names)}

    def read(self, fields: Fields) -> JsonObject:
        agent, user = fields.author(self.key)
        if self.required and agent is None and user is None:
            raise fields.wrong(self.key, "must be person or agent:ID")
        return {self.agent: agent, self.user: user}


@dataclass(frozen=True, slots=True)
class Boss:
    """Boss of an agent: another agent, or a person."""

    key: str = "boss"

    def write(self, value: Any, names: Names) -> JsonObject:
        boss = value.boss_id
        return {self.key: PERSON if boss is None else Noted(boss, names.get(boss))}

    def read(self, fields: Fields) -> JsonObject:
        boss = None if fields.get(self.key) == PERSON else AgentId(fields.id(self.key))
        return {"boss_id": boss, "boss_user_id": None if boss else fields.importer}


@dataclass(frozen=True, slots=True)
class Given:
    """A key whose value is passed to `write`, and read by the caller of `read`."""

    key: str

    def write(self, *_: Any) -> JsonObject:
        return {self.key: None}

    def read(self, _: Fields) -> JsonObject:
        return {}


class Record(Generic[T]):
    """One kind of record: its class, and its keys in the order in which they are written."""

    def __init__(self, make: type[T], *keys: Key | str) -> None:
        self._make: Any = make
        hints = get_type_hints(make)
        self._keys = [_plain(key, hints) if isinstance(key, str) else key for key in keys]
        self._absent = {
            field.name: None
            for field in dataclasses.fields(make)  # type: ignore[arg-type]  # all are dataclasses
            if field.default is dataclasses.MISSING
        }

    def write(self, value: T, names: Names = NOBODY, **arguments: Any) -> JsonObject:
        written: JsonObject = {}
        for key in self._keys:
            written |= key.write(value, names)
        return {**written, **arguments}

    def read(self, fields: Fields, **arguments: Any) -> T:
        """Return the record of a document; refuse a document with fields that were not read."""
        record = self.read_some(fields, **arguments)
        fields.done()
        return record

    def read_some(self, fields: Fields, **arguments: Any) -> T:
        attributes = dict(self._absent)
        for key in self._keys:
            attributes |= key.read(fields)
        record: T = self._make(**{**attributes, **arguments})
        return record


def _plain(declared: str, hints: Mapping[str, Any]) -> Entry:
    """Entry of an attribute whose type determines its kind; one that may be None may be absent."""
    key, _, attribute = declared.partition("=")
    hint = hints[attribute or key]
    kinds = [kind for kind in get_args(hint) or (hint,) if kind is not NoneType]
    default = None if NoneType in get_args(hint) else REQUIRED
    return Entry(key, _kind(key, *kinds), attribute, default)


def _kind(key: str, hint: Any) -> Kind:
    if hint is bool:
        return FLAG
    if hint is int:
        return TIME if key.rpartition("_")[2] in _TIMES else number()
    if hint is AgentId and key != "id":
        return NAMED
    if getattr(hint, "__supertype__", None) is str:
        return ID
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return word(hint)
    raise TypeError(f"how {key} is written has to be declared")


def by_whom(agent: str | None, user: UserId | str | None, names: Names = NOBODY) -> str | None:
    if agent is not None:
        return Noted(f"agent:{agent}", names.get(agent))
    return None if user is None else PERSON
