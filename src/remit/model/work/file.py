"""Files of the knowledge base, their versions and accesses."""

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, FileId, RunId, UserId

LONGEST_DESCRIPTION = 2_000
#: Most words of a description in the search index.
MOST_INDEXED_WORDS = 400


#: OUTCOME: the document of the outcome with the same id, under the rights of that outcome. STATE:
#: an agent's working memory. LOG: an agent's activity log; its id is derived from the agent's, and
#: its lines are events.
FileKind = StrEnum("FileKind", "FILE OUTCOME STATE LOG")


@dataclass(frozen=True, slots=True)
class File:
    id: FileId
    company_id: CompanyId
    kind: FileKind
    description: str
    #: Whether only its readers and writers learn that it exists.
    unlisted: bool
    #: Agent whose part of the tree it lies in; None for the company as a whole.
    home_agent_id: AgentId | None
    version: int
    sha256: str
    size: int
    is_text: bool
    #: Number of files that the latest version links to.
    links: int
    created_at: Micros
    updated_at: Micros
    #: Whether it is a message's text or a change's bundle: found with these, not among other files.
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
