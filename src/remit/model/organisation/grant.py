"""Capabilities: an agent's right on a resource, which can be passed on only narrower."""

import re
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from remit.clock import Micros
from remit.errors import BadInput
from remit.ids import AgentId, CompanyId, GrantId, OutcomeId, UserId, looks_like_id, normalise
from remit.model.organisation.path_pattern import read
from remit.model.text import clean_name, one_of


class Level(IntEnum):
    """Level of access to a resource. Files, outcomes and repositories have degrees; other things
    are only used."""

    NONE = 0
    READ = 1
    WRITE = 2
    USE = 3
    #: Of a repository: propose changes to it, and merge them.
    PROPOSE = 4
    MERGE = 5

    @property
    def word(self) -> str:
        return self.name.lower()


#: ASK: every use needs a person's approval.
Mode = StrEnum("Mode", "ALLOW ASK DENY")


ResourceKind = StrEnum("ResourceKind", "KB_FILE OUTCOME MESSAGE MCP_SERVER REPO CHANNEL ACTION")


AGENT_CREATE = "agent.create"
#: Decide about requests of agents below.
APPROVAL_DECIDE = "approval.decide"
FULL_ACCESS = "full_access"
INSTANCE_CONFIGURE = "instance.configure"
#: Rights without a single resource.
ACTIONS = frozenset({AGENT_CREATE, APPROVAL_DECIDE, FULL_ACCESS, INSTANCE_CONFIGURE})

#: Actions that only people give, because they reach beyond every company: the machine itself.
RIGHTS_OVER_MACHINE = frozenset({FULL_ACCESS})

#: `message:background` is about background jobs, not about an agent.
IN_BACKGROUND = "background"

LEVELS: dict[ResourceKind, tuple[Level, ...]] = {
    ResourceKind.KB_FILE: (Level.NONE, Level.READ, Level.WRITE),
    ResourceKind.OUTCOME: (Level.READ, Level.WRITE),
    ResourceKind.REPO: (Level.READ, Level.PROPOSE, Level.MERGE),
}
_USE_ONLY = (Level.USE,)
_WITH_ID = frozenset({ResourceKind.KB_FILE, ResourceKind.OUTCOME, ResourceKind.MESSAGE})
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Resource:
    kind: ResourceKind
    id: str

    def __str__(self) -> str:
        return self.id if self.kind is ResourceKind.ACTION else f"{self.kind.value}:{self.id}"


def kb_file(file_id: str) -> Resource:
    return Resource(ResourceKind.KB_FILE, file_id)


def parse_resource(text: object) -> Resource:
    """Read `kb_file:<id>`, `repo:<name>`, … or a bare action such as `agent.create`."""
    if not isinstance(text, str):
        raise BadInput("resource must be text.", "Write it like kb_file:<id>.")
    head, colon, tail = text.strip().partition(":")
    if not colon:
        if head in ACTIONS:
            return Resource(ResourceKind.ACTION, head)
        raise BadInput(
            f"{head[:60]!r} is not an action that can be granted.",
            f"Use one of {', '.join(sorted(ACTIONS))}, or kind:id.",
        )
    try:
        kind = ResourceKind(head)
    except ValueError:
        kind = ResourceKind.ACTION
    if kind is ResourceKind.ACTION:
        kinds = ", ".join(kind.value for kind in ResourceKind if kind is not ResourceKind.ACTION)
        raise BadInput(f"{head[:60]!r} is not a kind of resource.", f"Use one of {kinds}.")
    if kind is ResourceKind.MESSAGE and tail.removeprefix("agent:").casefold() == IN_BACKGROUND:
        return Resource(kind, IN_BACKGROUND)
    if kind is ResourceKind.MESSAGE and not looks_like_id(tail):
        # An agent's name or address, which the granting service resolves.
        who = tail.removeprefix("agent:")
        return Resource(kind, f"agent:{who if looks_like_id(who) else clean_name(who)}")
    if kind in _WITH_ID:
        return Resource(kind, normalise(tail))
    if not _PLAIN.fullmatch(tail):
        raise BadInput(f"{tail[:60]!r} is not a name.", f"Write it like {kind.value}:main.")
    return Resource(kind, tail)


def is_over_machine(resource: object) -> bool:
    """Return whether a text from outside names a right over the machine."""
    return isinstance(resource, str) and resource.strip() in RIGHTS_OVER_MACHINE


def parse_level(text: object, kind: ResourceKind) -> Level:
    allowed = LEVELS.get(kind, _USE_ONLY)
    if kind is ResourceKind.REPO and text == Level.USE.word:
        text = Level.READ.word  # the name of the level before there were degrees
    for level in allowed:
        if text == level.word:
            return level
    words = ", ".join(level.word for level in allowed)
    raise BadInput(f"level must be {words} for {kind.value}.", "Choose one of these levels.")


def parse_mode(text: object) -> Mode:
    return one_of(Mode, text, "mode")


@dataclass(frozen=True, slots=True)
class Grant:
    id: GrantId
    company_id: CompanyId
    holder_id: AgentId
    kind: ResourceKind
    resource_id: str
    level: Level
    mode: Mode
    #: The grant ends when this outcome does.
    scope_id: OutcomeId | None
    #: The grant it was narrowed from; None when it came from a person or from authorship.
    parent_id: GrantId | None
    granted_by_agent: AgentId | None
    granted_by_user: UserId | None
    created_at: Micros
    expires_at: Micros | None
    revoked_at: Micros | None = None
    used_at: Micros | None = None
    #: Of a repository: JSON lists of patterns of files and target branches that limit it.
    paths: str | None = None
    branches: str | None = None

    @property
    def limited_paths(self) -> tuple[str, ...] | None:
        return read(self.paths)

    @property
    def limited_branches(self) -> tuple[str, ...] | None:
        return read(self.branches)

    @property
    def is_limited(self) -> bool:
        return self.paths is not None or self.branches is not None

    @property
    def resource(self) -> Resource:
        return Resource(self.kind, self.resource_id)

    @property
    def by_authorship(self) -> bool:
        return self.granted_by_agent is None and self.granted_by_user is None

    def live(self, now: Micros) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)
