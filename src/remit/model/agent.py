"""Agents: durable members of a company, each with one place in its tree."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.errors import BadInput
from remit.ids import AgentId, CompanyId, FileId, UserId, looks_like_id
from remit.model.permission import PermissionLevel
from remit.model.text import clean_name

#: Names that addresses need for themselves.
RESERVED_NAMES = frozenset({"background", "board", "human", "system"})

#: The adapter of a seat that a person holds.
HUMAN = "human"

#: A chain of bosses longer than this is refused; readers give up at it as well.
DEEPEST_TREE = 32


class AgentRole(StrEnum):
    CEO = "ceo"
    CTO = "cto"
    CMO = "cmo"
    CFO = "cfo"
    SECURITY = "security"
    ENGINEER = "engineer"
    DESIGNER = "designer"
    PM = "pm"
    QA = "qa"
    DEVOPS = "devops"
    RESEARCHER = "researcher"
    GENERAL = "general"


class AgentStatus(StrEnum):
    PENDING_APPROVAL = "pending_approval"
    IDLE = "idle"
    RUNNING = "running"
    PAUSED = "paused"
    ERROR = "error"
    TERMINATED = "terminated"


#: What each status may become. Nothing leaves `terminated`.
TRANSITIONS: dict[AgentStatus, frozenset[AgentStatus]] = {
    AgentStatus.PENDING_APPROVAL: frozenset({AgentStatus.IDLE, AgentStatus.TERMINATED}),
    AgentStatus.IDLE: frozenset(
        {AgentStatus.RUNNING, AgentStatus.PAUSED, AgentStatus.ERROR, AgentStatus.TERMINATED}
    ),
    AgentStatus.RUNNING: frozenset(
        {AgentStatus.IDLE, AgentStatus.PAUSED, AgentStatus.ERROR, AgentStatus.TERMINATED}
    ),
    AgentStatus.PAUSED: frozenset({AgentStatus.IDLE, AgentStatus.TERMINATED}),
    AgentStatus.ERROR: frozenset({AgentStatus.IDLE, AgentStatus.PAUSED, AgentStatus.TERMINATED}),
    AgentStatus.TERMINATED: frozenset(),
}

#: Statuses in which an agent's credentials open doors.
OPERATIONAL = frozenset(
    {AgentStatus.IDLE, AgentStatus.RUNNING, AgentStatus.PAUSED, AgentStatus.ERROR}
)


@dataclass(frozen=True, slots=True)
class Agent:
    #: Equal to the id of its mandate.
    id: AgentId
    company_id: CompanyId
    name: str
    role: AgentRole
    title: str
    status: AgentStatus
    #: Exactly one of the two is set; a root agent's boss is a user.
    boss_id: AgentId | None
    boss_user_id: UserId | None
    adapter_type: str
    #: JSON text, as the adapter's own model will read it.
    adapter_config: str
    #: The person in the seat, when the adapter is `human`.
    seat_user_id: UserId | None
    #: What the agent is told about itself, besides its role.
    prompt: str
    #: What it can do, in words.
    capabilities: str
    #: JSON text; see `permission.py`.
    permissions: str
    permission_level: PermissionLevel
    #: JSON text: how it is run, whatever runs it.
    runtime_config: str
    #: None means that nobody set a limit.
    budget_monthly_cents: int | None
    budget_monthly_tokens: int | None
    #: JSON text that others keep here; Remit does not read it.
    metadata: str
    #: Number of the configuration it has now.
    config_revision: int
    state_file_id: FileId
    log_file_id: FileId
    created_at: Micros
    updated_at: Micros

    @property
    def is_ceo(self) -> bool:
        """The role alone gives nothing: only below a person it is what it says."""
        return self.role is AgentRole.CEO and self.boss_id is None


def agent_name(text: object) -> str:
    name = clean_name(text)
    if name.casefold() in RESERVED_NAMES:
        raise BadInput(f"The name '{name}' is reserved.", "Choose another name.")
    if looks_like_id(name):
        raise BadInput(f"The name '{name}' could be taken for an id.", "Choose another name.")
    return name
