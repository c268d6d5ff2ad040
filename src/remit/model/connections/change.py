"""Changes that agents propose to repositories, until they are merged, declined or withdrawn."""

import json
from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.errors import BadInput
from remit.ids import (
    AgentId,
    ChangeCommentId,
    ChangeId,
    CompanyId,
    FileId,
    OutcomeId,
    RepoId,
    RunId,
    UserId,
)
from remit.model.connections.repo import PushMode, repo_ref
from remit.model.leased import Queued

LONGEST_TITLE = 200
LONGEST_DESCRIPTION = 20_000
LONGEST_COMMENT = 20_000
LONGEST_PATH = 1000
LONGEST_BRANCH = 100
#: Prefix of all branches that Remit pushes; it pushes no other.
REMOTE_FOLDER = "remit"


#: CLOSED: declined or withdrawn.
ChangeStatus = StrEnum("ChangeStatus", "OPEN MERGED CLOSED")


#: RETURNED: its author is to change something first.
ChangeDecision = StrEnum("ChangeDecision", "APPROVED RETURNED")


#: How commits are merged. MERGE: by a merge commit. SQUASH: as one commit. FAST_FORWARD: as they
#: are, if nothing else was merged since.
MergeMethod = StrEnum("MergeMethod", {"MERGE": "merge", "SQUASH": "squash", "FAST_FORWARD": "ff"})


#: The version of a file: as it was, or as it is proposed.
Side = StrEnum("Side", "OLD NEW")


#: Work at the remote for a change. PUBLISH: push it to its branch.
Errand = StrEnum("Errand", "PUBLISH MERGE")


@dataclass(frozen=True, slots=True)
class Change:
    id: ChangeId
    company_id: CompanyId
    repo_id: RepoId
    #: Its author, and the run that proposed it last.
    agent_id: AgentId
    run_id: RunId | None
    outcome_id: OutcomeId | None
    #: The author's name for the branch, and the remote branch that it is pushed to.
    branch: str
    remote_branch: str
    #: The target branch.
    target: str
    title: str
    description: str
    #: Its merge base and its head, which a decision is about.
    base_commit: str
    head_commit: str
    #: JSON list of the files that it touches.
    paths: str
    #: The objects between base and head, as a git bundle.
    bundle_id: FileId
    #: Incremented with every new head.
    revision: int
    status: ChangeStatus
    version: int
    created_at: Micros
    updated_at: Micros
    #: The commit that was pushed last.
    published_commit: str | None = None
    #: Whether it conflicts with the target; None if unknown.
    conflicts: bool | None = None
    decision: ChangeDecision | None = None
    decision_note: str | None = None
    #: The head and the base that the decision was about.
    decided_head: str | None = None
    decided_base: str | None = None
    decided_by_agent: AgentId | None = None
    decided_by_user: UserId | None = None
    decided_at: Micros | None = None
    #: The commit that merged it.
    merged_commit: str | None = None
    ended_at: Micros | None = None
    ended_why: str | None = None
    #: The request at the forge, and its last state there as JSON.
    request_number: int | None = None
    request_url: str | None = None
    request_seen: str | None = None
    #: The head that a person let go to the remote, where that takes a look.
    released_commit: str | None = None

    def awaits_look(self, push: str) -> bool:
        """Return whether a person has to look at it before it is pushed in this mode."""
        unseen = self.released_commit != self.head_commit
        return push == PushMode.AFTER_LOOK and self.status is ChangeStatus.OPEN and unseen

    @property
    def touched(self) -> tuple[str, ...]:
        return tuple(json.loads(self.paths))

    @property
    def ref(self) -> str:
        """Return the ref of its head, in its bundle and in mirrors of the repository."""
        return f"refs/{self.remote_branch}"

    @property
    def decided_by(self) -> str | None:
        """Return the address of the last decider; None before a decision."""
        if self.decided_by_agent is not None:
            return f"agent:{self.decided_by_agent}"
        return f"user:{self.decided_by_user}" if self.decided_by_user is not None else None

    @property
    def is_decided(self) -> bool:
        """Return whether the last decision is about the current head and base."""
        return self.decision is not None and (self.decided_head, self.decided_base) == (
            self.head_commit,
            self.base_commit,
        )


@dataclass(frozen=True, slots=True)
class ChangeComment:
    id: ChangeCommentId
    company_id: CompanyId
    change_id: ChangeId
    #: Commit that the comment is about, and perhaps a line of a file.
    head_commit: str
    path: str | None
    line: int | None
    side: Side | None
    body: str
    agent_id: AgentId | None
    user_id: UserId | None
    created_at: Micros
    #: Its id at the forge, if it was written or published there.
    outside_id: str | None = None
    #: The author at the forge, and whether Remit listens to them: others are from outside.
    outside_author: str | None = None
    heard: bool | None = None

    @property
    def place(self) -> str:
        """Return the file and line as the end of a clause; empty if it is about the change."""
        if self.path is None:
            return ""
        return f" about {self.path}" + (f", line {self.line}" if self.line else "")


@dataclass(frozen=True, slots=True)
class ChangeErrand(Queued):
    """Queued work at the remote."""

    repo_id: RepoId
    change_id: ChangeId
    kind: Errand
    #: JSON: arguments of this kind besides the change.
    details: str


def branch_name(text: object) -> str:
    """Validate an author's name of a branch; it becomes part of a remote branch's name."""
    branch = repo_ref(text)
    bare = branch.removeprefix("refs/heads/")
    if len(bare) > LONGEST_BRANCH or bare.startswith("refs/") or bare == "HEAD":
        raise BadInput(
            f"branch must be a name of at most {LONGEST_BRANCH} characters.",
            "Call it after what it does, such as fix-login.",
        )
    return bare


def remote_branch(agent: str, branch: str) -> str:
    """Return the remote branch that an agent's branch is pushed to."""
    own = f"{REMOTE_FOLDER}/{agent}/"
    return branch if branch.startswith(own) else own + branch
