"""Files of the knowledge base, their versions and who touched them."""

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, FileId, RunId, UserId

LONGEST_DESCRIPTION = 2_000
#: Descriptions are short; this bounds what one of them puts into the index.
MOST_INDEXED_WORDS = 400


#: OUTCOME: the document of the outcome with the same id; read and written as that outcome is.
#: STATE: an agent's working memory. LOG: what an agent's runs did; its id is made from the
#: agent's, its lines are events.
FileKind = StrEnum("FileKind", "FILE OUTCOME STATE LOG")


@dataclass(frozen=True, slots=True)
class File:
    id: FileId
    company_id: CompanyId
    kind: FileKind
    description: str
    #: Only readers and writers learn that it exists.
    unlisted: bool
    #: The agent under whose part of the tree it lies; None means the company as a whole.
    home_agent_id: AgentId | None
    version: int
    sha256: str
    size: int
    is_text: bool
    #: How many files the latest version links to.
    links: int
    created_at: Micros
    updated_at: Micros
    #: The text of a message or the bundle of a change: found with these, not among other files.
    letter: bool = False


@dataclass(frozen=True, slots=True)
class Version:
    file_id: FileId
    number: int
    sha256: str
    size: int
    is_text: bool
    at: Micros
    agent_id: AgentId | None
    user_id: UserId | None
    run_id: RunId | None


#: COPY: a copy was put into the workspace of a run.
Access = StrEnum("Access", "READ WRITE COPY")


@dataclass(frozen=True, slots=True)
class AccessEntry:
    id: int
    file_id: FileId
    at: Micros
    access: Access
    version: int
    agent_id: AgentId | None
    user_id: UserId | None
    run_id: RunId | None
