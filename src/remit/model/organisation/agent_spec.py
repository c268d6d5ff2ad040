"""The description of an agent, declared once.

A field declares its kind, limits and words. Rows, views, configurations and their comparison,
request bodies, tool arguments, command-line options, `apply` and exports follow from that. So a new
field is declared here, gets a column in the table of agents, and a migration.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Annotated, Any, Final, get_type_hints

from remit.errors import BadInput
from remit.ids import looks_like_id
from remit.model.organisation.permission import (
    CAN_ASSIGN_TASKS,
    CAN_CREATE_AGENTS,
    refuse_assigning,
)
from remit.model.text import LONGEST_NAME, clean_line, clean_name, clean_text, one_of

#: Names that addresses use for other receivers.
RESERVED_NAMES = frozenset({"background", "board", "human", "system"})
LARGEST_DOCUMENT = 64 * 1024
LARGEST_BUDGET = 10**12


AgentRole = StrEnum(
    "AgentRole", "CEO CTO CMO CFO SECURITY ENGINEER DESIGNER PM QA DEVOPS RESEARCHER GENERAL"
)


#: Kind of a field's value, which decides how each surface parses and shows it. DOCUMENT: a JSON
#: object, stored as text. AMOUNT: a whole number, or None for no limit.
Holds = StrEnum("Holds", "NAME ROLE LINE TEXT ADAPTER DOCUMENT AMOUNT PERMISSIONS")


@dataclass(frozen=True, slots=True)
class Part:
    """Declaration of a field."""

    holds: Holds
    longest: int = 0
    #: Shown in every view of the agent, not only in its configuration.
    listed: bool = False
    #: If listed: shown only to readers of configurations.
    private: bool = False
    #: Also in the short description of a helper for one outcome or of a layer.
    short: bool = False
    #: Added after the first release: configurations in older exports lack it.
    later: bool = False
    #: A shorter name that tools accept, too.
    also: str = ""
    #: Description of the tool argument.
    hint: str = ""
    #: Label and remark of the form field; none without a label.
    label: str = ""
    remark: str = ""
    #: Command-line option, its metavar and its help.
    option: str = ""
    metavar: str | None = None
    help: str = ""


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """An agent's description in its stored form: checked, and documents as JSON text."""

    name: Annotated[str, Part(Holds.NAME, LONGEST_NAME, listed=True, short=True)]
    role: Annotated[
        AgentRole,
        Part(Holds.ROLE, 20, listed=True, short=True, option="--role", help="Such as engineer."),
    ]
    title: Annotated[
        str,
        Part(
            Holds.LINE,
            100,
            listed=True,
            short=True,
            label="Title",
            option="--title",
            help="Its title.",
        ),
    ]
    #: Its abilities, in words.
    capabilities: Annotated[
        str,
        Part(
            Holds.TEXT,
            10_000,
            listed=True,
            hint="Abilities, in prose",
            label="Capabilities",
            remark="Abilities, in words. Others read them when they look for somebody.",
            option="--capabilities",
            metavar="TEXT",
            help="Abilities, in words.",
        ),
    ]
    #: Instructions to the agent about itself, besides its role.
    prompt: Annotated[
        str,
        Part(
            Holds.TEXT,
            50_000,
            short=True,
            label="Instructions",
            remark="Markdown. It comes on top of what every agent is told.",
            option="--prompt",
            metavar="TEXT|@FILE",
            help="Instructions, besides its role.",
        ),
    ]
    adapter_type: Annotated[
        str,
        Part(
            Holds.ADAPTER,
            listed=True,
            short=True,
            also="adapter",
            hint="Yours, by default; see adapter_docs",
            option="--adapter",
            help="Adapter, or human for a person's seat; as its boss, or else the first "
            "that can be used, if left out.",
        ),
    ]
    #: Settings for the adapter's own model.
    adapter_config: Annotated[
        str,
        Part(
            Holds.DOCUMENT,
            short=True,
            also="config",
            option="--config",
            metavar="JSON|@FILE",
            help="Settings of the adapter.",
        ),
    ]
    #: Settings that do not depend on the adapter.
    runtime_config: Annotated[str, Part(Holds.DOCUMENT)]
    budget_monthly_cents: Annotated[
        int | None,
        Part(Holds.AMOUNT, listed=True, private=True, option="--budget", help="Cents a month."),
    ]
    budget_monthly_tokens: Annotated[
        int | None,
        Part(
            Holds.AMOUNT,
            listed=True,
            private=True,
            later=True,
            option="--tokens",
            help="Tokens a month.",
        ),
    ]
    #: Data of other programs; Remit does not read it.
    metadata: Annotated[str, Part(Holds.DOCUMENT)]
    #: See `permission.py`. Given with a hire, and changed by a verb of its own.
    permissions: Annotated[str, Part(Holds.PERMISSIONS)]


@dataclass(frozen=True, slots=True)
class Field:
    """A declared field with its names: `name` inside, `key` outside."""

    name: str
    key: str
    part: Part

    @property
    def holds(self) -> Holds:
        return self.part.holds

    @property
    def empty(self) -> Any:
        """Return the external value that null stands for."""
        return _EMPTY.get(self.holds)

    @property
    def default(self) -> Any:
        """Return the default for a new agent; a role cannot be empty."""
        return AgentRole.GENERAL.value if self.holds is Holds.ROLE else self.empty

    @property
    def rows(self) -> int:
        """Return the height of its form field."""
        return 6 if self.part.longest > 10_000 else 2

    def checked(self, value: object) -> Any:
        """Validate an external value and return its stored form; BadInput for an invalid one."""
        if value is None:
            value = self.empty
        return _CHECKS[self.holds](value, self)

    def shown(self, stored: Any) -> Any:
        """Return a stored value in its external form."""
        if self.holds is Holds.DOCUMENT:
            return json.loads(stored)
        return stored.value if isinstance(stored, AgentRole) else stored


def agent_name(text: object) -> str:
    name = clean_name(text)
    if name.casefold() in RESERVED_NAMES:
        raise BadInput(f"The name '{name}' is reserved.", "Choose another name.")
    if looks_like_id(name):
        raise BadInput(f"The name '{name}' could be taken for an id.", "Choose another name.")
    return name


def document(value: object, key: str) -> str:
    """Validate a JSON object of bounded size."""
    if not isinstance(value, Mapping):
        raise BadInput(f"{key}: must be an object.", f"Send {key} as a JSON object.")
    text = json.dumps(dict(value), ensure_ascii=True)
    if len(text) > LARGEST_DOCUMENT:
        raise BadInput(
            f"{key} is larger than {LARGEST_DOCUMENT // 1024} KiB.", "Keep long texts in files."
        )
    return text


def amount(value: object, key: str) -> int | None:
    """Validate whole cents or tokens; None means no limit."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_BUDGET:
        what = "cents" if key.endswith("Cents") else "tokens"
        raise BadInput(f"{key}: must be a whole number of {what}, 0 or more.", "Send an integer.")
    return value


def permissions(settings: object) -> str:
    """Validate permissions and return their stored form: the hiring permission, or none."""
    if settings is None:
        return "{}"
    if not isinstance(settings, dict):
        raise BadInput("permissions must be an object.", f"Send {{{CAN_CREATE_AGENTS!r}: true}}.")
    refuse_assigning(settings.get(CAN_ASSIGN_TASKS))
    for key in settings:
        if key not in (CAN_CREATE_AGENTS, CAN_ASSIGN_TASKS):
            raise BadInput(
                f"permissions.{str(key)[:40]}: is not known.", f"Known is {CAN_CREATE_AGENTS}."
            )
    value = settings.get(CAN_CREATE_AGENTS)
    if value is None:
        return "{}"
    if not isinstance(value, bool):
        raise BadInput(
            f"permissions.{CAN_CREATE_AGENTS}: must be true or false.", "Send a boolean."
        )
    return json.dumps({CAN_CREATE_AGENTS: value})


def _role(value: object) -> AgentRole:
    return one_of(AgentRole, value, "role")


_EMPTY: Final[Mapping[Holds, Any]] = {Holds.LINE: "", Holds.TEXT: "", Holds.DOCUMENT: {}}
_CHECKS: Final[Mapping[Holds, Callable[[Any, Field], Any]]] = {
    Holds.NAME: lambda value, _: agent_name(value),
    Holds.ROLE: lambda value, _: _role(value),
    Holds.LINE: lambda value, it: clean_line(value, it.key, longest=it.part.longest, empty_ok=True),
    Holds.TEXT: lambda value, it: clean_text(value, it.key, longest=it.part.longest, empty_ok=True),
    # Services know which adapters are installed.
    Holds.ADAPTER: lambda value, _: value,
    Holds.DOCUMENT: lambda value, it: document(value, it.key),
    Holds.AMOUNT: lambda value, it: amount(value, it.key),
    Holds.PERMISSIONS: lambda value, _: permissions(value),
}


def _camel(name: str) -> str:
    first, *more = name.split("_")
    return first + "".join(word.capitalize() for word in more)


def _declared() -> dict[str, Field]:
    hints = get_type_hints(AgentSpec, include_extras=True)
    return {
        field.name: Field(field.name, _camel(field.name), hints[field.name].__metadata__[0])
        for field in fields(AgentSpec)
    }


#: Every field by its name, in the order of configurations.
FIELDS: Final[Mapping[str, Field]] = _declared()
#: Fields of a configuration; permissions are changed separately.
CONFIGURED: Final = tuple(
    field for field in FIELDS.values() if field.holds is not Holds.PERMISSIONS
)
FORM: Final = tuple(field for field in CONFIGURED if field.part.label)
LISTED: Final = tuple(field for field in CONFIGURED if field.part.listed)
SHORT: Final = tuple(field for field in CONFIGURED if field.part.short)
DOCUMENTS: Final = tuple(field for field in CONFIGURED if field.holds is Holds.DOCUMENT)
#: Free texts, in which a secret may have been written.
PROSE: Final = tuple(field for field in CONFIGURED if field.holds is Holds.TEXT)


def values(spec: AgentSpec) -> dict[str, Any]:
    """Return all fields of a description in stored form."""
    return {name: getattr(spec, name) for name in FIELDS}
