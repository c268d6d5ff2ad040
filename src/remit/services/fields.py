"""Types of verbs' parameters: the one place that declares which values each takes.

A type is `Annotated` with marks. The surfaces derive their schemas and checks from them, and texts
are cleaned before the verb sees them:

    def reopen(ctx: Context, *, outcome: OutcomeRef, note: Annotated[Remark, Help("Why.")] = "")
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Union, Unpack, get_args, get_origin, get_type_hints

from remit.errors import BadInput
from remit.model.messaging.mail import LONGEST_SUBJECT
from remit.model.text import LONGEST_NAME, LONGEST_REASON, clean_line, clean_name, clean_text
from remit.services.shape_basics import MOMENT

#: Longest id, prefix of an id, name or address.
LONGEST_REFERENCE: Final = 200
LONGEST_MOMENT: Final = 40


@dataclass(frozen=True)
class Help:
    """The description of a parameter. `model` shows it to models too, which costs tokens in every
    run."""

    text: str
    model: bool = False


@dataclass(frozen=True)
class Text:
    """A text of at most so many characters; cleaned before the verb is called."""

    longest: int
    empty: bool = False
    one_line: bool = False

    def clean(self, value: object, name: str) -> str:
        clean = clean_line if self.one_line else clean_text
        return clean(value, name, longest=self.longest, empty_ok=self.empty)


@dataclass(frozen=True)
class Exact(Text):
    """A name in one line: surrounding spaces are refused, not dropped, so that no two texts mean
    the same."""

    one_line: bool = True

    def clean(self, value: object, name: str) -> str:
        cleaned = super().clean(value, name)
        if cleaned != value:
            raise BadInput(f"{name} has space around it.", "Leave it out.")
        return cleaned


@dataclass(frozen=True)
class PlainName(Text):
    """A name as in an address: letters, digits, single inner hyphens."""

    longest: int = LONGEST_NAME

    def clean(self, value: object, name: str) -> str:
        return clean_name(value, name)


@dataclass(frozen=True)
class Stored:
    """A text that is stored as a file before the verb is called; the verb gets `new_id` and
    `new_stored`."""


@dataclass(frozen=True)
class Cleared:
    """Over HTTP, null differs from absence: it clears the value. The verb gets an empty text."""

    #: The effect of null.
    what: str


@dataclass(frozen=True)
class Reference:
    """An id, a prefix of one, or a name, of this kind of thing."""

    kind: str


@dataclass(frozen=True)
class Range:
    """Inclusive bounds of a whole number."""

    least: int
    most: int


@dataclass(frozen=True)
class Words:
    """The allowed words. A function returns those that are valid at the time of the call."""

    known: tuple[str, ...] | Callable[[], Iterable[str]]


@dataclass(frozen=True)
class Most:
    """The longest allowed list."""

    entries: int


#: Which of the words are allowed depends on another parameter, so the verb looks and says.
CHECKED_BY_VERB: Final = "checked by the verb"

#: The name of an agent or a person.
Name = Annotated[str, PlainName()]
OutcomeRef = Annotated[str, Reference("outcome"), Help("Outcome id", model=True)]
AgentRef = Annotated[str, Reference("agent")]
#: Narrows a list to one agent's.
OnlyAgent = Annotated[AgentRef, Help("Only this agent's.")]
#: The caller's own outcome that waits meanwhile.
AboutOutcome = Annotated[OutcomeRef, Help("Yours that it is about and that waits", model=True)]
MessageRef = Annotated[str, Reference("message")]
#: `agent:<name>`, `user:<name>`, `board` and so on.
Address = Annotated[str, Reference("address")]
Subject = Annotated[str, Text(LONGEST_SUBJECT, empty=True, one_line=True)]
#: Whether a list includes those that have ended.
EndedToo = Annotated[bool, Help("Also those that have ended.")]
GrantRef = Annotated[str, Reference("grant"), Help("Grant id", model=True)]
#: Such as `kb_file:<id>`.
ResourceRef = Annotated[str, Reference("resource")]
ApprovalRef = Annotated[str, Reference("approval"), Help("Approval id", model=True)]
ChangeRef = Annotated[str, Reference("change"), Help("Change id", model=True)]
UserRef = Annotated[str, Reference("user")]
QuestionRef = Annotated[str, Reference("question")]
ScheduleRef = Annotated[str, Reference("schedule")]
JobRef = Annotated[str, Reference("job")]
CompanyRef = Annotated[str, Reference("company")]
FileRef = Annotated[str, Reference("file"), Help("File id", model=True)]
FileRefs = Annotated[Sequence[Annotated[str, Reference("file")]], Most(50)]
#: Another agent instead of oneself, for tools that read.
OfAnother = Annotated[AgentRef, Help("Somebody below you", model=True)]
#: Why something is done, refused or given up; a remark may be empty.
Reason = Annotated[str, Text(LONGEST_REASON)]
Remark = Annotated[str, Text(LONGEST_REASON, empty=True)]
Evidence = Annotated[FileRefs, Help("Files that show it", model=True)]
Moment = Annotated[str, MOMENT, Help("ISO 8601", model=True)]
#: Limit of a list without pages, and the id that it continues after.
Limit = Annotated[int, Range(1, 500)]
After = Annotated[str, Text(36, empty=True)]


@dataclass(frozen=True)
class Field:
    """A parameter of a verb, or an entry of a list, with the marks of its type."""

    name: str
    #: str, int, bool, float, list or dict.
    kind: Any
    marks: tuple[Any, ...]
    entries: Field | None = None
    optional: bool = False
    default: Any = inspect.Parameter.empty

    @property
    def required(self) -> bool:
        return self.default is inspect.Parameter.empty

    @property
    def help(self) -> Help | None:
        """The outermost `Help`, which overrides inner ones."""
        return next((mark for mark in reversed(self.marks) if isinstance(mark, Help)), None)

    @property
    def text(self) -> Text | None:
        return next((mark for mark in reversed(self.marks) if isinstance(mark, Text)), None)

    @property
    def is_cleaned(self) -> bool:
        if self.entries is not None:
            return self.entries.is_cleaned
        return self.text is not None or bool(self.words)

    def clean(self, value: Any, called: str) -> Any:
        """Return the value as the verb gets it; errors use the name `called`."""
        if self.entries is not None:
            return [self.entries.clean(entry, self.entries.name) for entry in value]
        if self.words and not self.is_checked_by_verb and value not in self.words:
            known = ", ".join(self.words)
            raise BadInput(f"{called} must be one of {known}.", "Choose one of these.")
        return value if self.text is None else self.text.clean(value, called)

    @property
    def reference(self) -> Reference | None:
        return next((mark for mark in self.marks if isinstance(mark, Reference)), None)

    @property
    def range(self) -> Range | None:
        return next((mark for mark in reversed(self.marks) if isinstance(mark, Range)), None)

    @property
    def most(self) -> int | None:
        return next((mark.entries for mark in self.marks if isinstance(mark, Most)), None)

    @property
    def moment(self) -> bool:
        return MOMENT in self.marks

    @property
    def is_checked_by_verb(self) -> bool:
        return CHECKED_BY_VERB in self.marks

    @property
    def words(self) -> tuple[str, ...]:
        """The allowed values, if the parameter is one of a few words."""
        for mark in self.marks:
            if isinstance(mark, Words):
                return mark.known if isinstance(mark.known, tuple) else tuple(sorted(mark.known()))
            if isinstance(mark, type) and issubclass(mark, Enum):
                return tuple(str(getattr(word, "word", word.value)) for word in mark)
        return ()


def spread_shared(body: Callable[..., Any]) -> None:
    """Make each key of `**shared: Unpack[Keys]` a parameter of its own; an absent optional one is
    None. Verbs with the same parameters declare them once, as a TypedDict."""
    own = inspect.signature(body)
    rest = next(
        (
            parameter
            for parameter in own.parameters.values()
            if parameter.kind is parameter.VAR_KEYWORD
        ),
        None,
    )
    shares = rest is not None and (
        rest.annotation.startswith("Unpack[")
        if isinstance(rest.annotation, str)
        else get_origin(rest.annotation) is Unpack
    )
    if rest is None or not shares:
        return
    [keys] = get_args(get_type_hints(body, include_extras=True)[rest.name])
    shared = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if name in keys.__required_keys__ else None,
        )
        for name in keys.__annotations__
    ]
    kept = [parameter for parameter in own.parameters.values() if parameter is not rest]
    body.__signature__ = own.replace(parameters=[*kept, *shared])  # type: ignore[attr-defined]
    body.__annotations__ |= get_type_hints(keys, include_extras=True)


def fields_of(body: Callable[..., Any]) -> dict[str, Field]:
    """Return the parameters of a verb, without the context."""
    hints = get_type_hints(body, include_extras=True)
    _, *parameters = inspect.signature(body).parameters.values()
    return {
        parameter.name: _field(parameter.name, hints[parameter.name], (), parameter.default)
        for parameter in parameters
    }


def _field(
    name: str, kind: Any, marks: tuple[Any, ...], default: Any, optional: bool = False
) -> Field:
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _field(name, inner[0], (*inner[1:], *marks), default, optional)
    if origin in (Union, UnionType):
        choices = [choice for choice in inner if choice is not NoneType]
        kind = choices[0] if len(choices) == 1 else Any
        return _field(name, kind, marks, default, NoneType in inner)
    if origin in (list, Sequence):
        entries = _field(name.removesuffix("s"), inner[0], (), inspect.Parameter.empty)
        return Field(name, list, marks, entries, optional, default)
    is_document = origin in (dict, Mapping)
    return Field(name, dict if is_document else kind, marks, None, optional, default)
