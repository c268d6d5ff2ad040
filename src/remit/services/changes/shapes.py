"""Changes as answers show them."""

from typing import Annotated, TypedDict

from remit.model.connections.change import Change, ChangeDecision, ChangeStatus, Side
from remit.model.connections.check import CheckSource, RepoCheck
from remit.model.connections.folder import Folder
from remit.model.connections.forge import CheckState, RequestState
from remit.model.connections.repo import Repo
from remit.services.shape_basics import Moment, NamedShape, OwnedShape


class ProposedShape(TypedDict):
    change: str
    commit: str
    base: str
    #: The branch at the remote that it is pushed to.
    branch: str
    #: Whether it is pushed once a person has looked at it.
    awaits_look: bool


class ChangeDecisionShape(TypedDict):
    decision: Annotated[str, ChangeDecision]
    note: str
    #: The commits that were decided about.
    head: str
    base: str
    agent_id: str | None
    user_id: str | None
    at: Moment | None
    #: Whether these are the commits that are proposed now.
    is_current: bool


class ForgeCheckShape(TypedDict):
    name: str
    state: Annotated[str, CheckState]
    url: str


class ReviewShape(TypedDict):
    by: str
    verdict: str


class RequestShape(TypedDict):
    """The request at the forge, as it was seen last."""

    number: int
    url: str
    state: Annotated[str, RequestState]
    #: The commits that would be merged there.
    head: str | None
    mergeable: bool | None
    checks: list[ForgeCheckShape]
    reviews: list[ReviewShape]


class ForgeWatchShape(TypedDict):
    repo_id: str
    repo: str
    #: failing, watched or waiting
    state: str
    problem: str | None
    looked_at: Moment | None
    next_at: Moment


class ChangeShape(OwnedShape):
    repo: str
    agent_id: str
    run_id: str | None
    outcome_id: str | None
    branch: str
    remote_branch: str
    target: str
    title: str
    description: str
    base: str
    head: str
    revision: int
    status: Annotated[str, ChangeStatus]
    #: Whether the remote has the proposed head, and whether a person has to look at it first.
    published: bool
    awaits_look: bool
    conflicts: bool | None
    decision: ChangeDecisionShape | None
    merged_commit: str | None
    request: RequestShape | None
    created_at: Moment
    updated_at: Moment
    ended_at: Moment | None
    ended_why: str | None


class ChangeCommentShape(TypedDict):
    id: str
    change_id: str
    head: str
    path: str | None
    line: int | None
    side: Annotated[str, Side] | None
    body: str
    agent_id: str | None
    user_id: str | None
    #: The author at the forge.
    outside: str | None
    at: Moment


class ChangeCheckShape(NamedShape):
    """A check of a change, or a status that its forge reports."""

    source: Annotated[str, CheckSource]
    #: waiting, running, passed, failed, broken (it could not be run) or left.
    state: str
    command: str | None
    required: bool
    head: str
    #: The tail of its output.
    log: str | None
    why: str | None
    url: str | None
    evidence_id: str | None
    at: Moment | None


class ChangeDetailShape(ChangeShape):
    paths: list[str]
    #: Paths of files with an effect on agents, programs or the forge, by that effect in words.
    marks: dict[str, list[str]]
    checks: list[ChangeCheckShape]
    comments: list[ChangeCommentShape]
    #: Errands still to be done outside, and those that failed there.
    waiting: list[str]
    problems: list[str]


# ── for the workers ─────────────────────────────────────────────────────────────────────────────


class BundleShape(TypedDict):
    """The file with the commits of a change."""

    id: str
    sha256: str


class CommitterShape(TypedDict):
    """Parts of a commit's identity: an agent, on behalf of a person."""

    agent: str
    company: str
    person: str | None
    committer: str | None
    co_authors: str | None
    signing: str | None


class ChangeSourceShape(TypedDict):
    """The repository and the bundle with the commits of a change."""

    repo: Repo
    bundle: BundleShape


class _ClaimedShape(ChangeSourceShape):
    epoch: int
    change: Change


class ClaimedErrandShape(_ClaimedShape):
    errand: str
    #: JSON, different for each kind of errand.
    details: str
    identity: CommitterShape


class ClaimedCheckShape(_ClaimedShape):
    check: str
    wanted: RepoCheck
    #: Tool chains that its agent's runs see.
    tools: list[Folder]


class ReviewMaterialShape(ChangeSourceShape):
    change: Change
    detail: ChangeDetailShape
    #: Whether the caller may decide about it, if need be after approval.
    judges: bool


class WatchedRequestShape(TypedDict):
    change: Change
    #: Ids of comments at the forge.
    known: list[str]


class RequestToCloseShape(TypedDict):
    change: str
    number: int


class CommentToTellShape(TypedDict):
    comment: str
    change: str
    body: str
    place: str


class IssueToTellShape(TypedDict):
    issue: str
    number: int
    done: bool
    #: Requests or commits that its outcome led to.
    links: list[str]


class ClaimedWatchShape(TypedDict):
    epoch: int
    repo: Repo
    #: JSON that the last poll left for the next one.
    cursor: str
    requests: list[WatchedRequestShape]
    to_close: list[RequestToCloseShape]
    to_tell: list[CommentToTellShape]
    #: Numbers of the issues that became outcomes.
    issues: list[int]
    issues_to_tell: list[IssueToTellShape]


class HookShape(TypedDict):
    """Signing of a webhook: the kind of forge and the name of a secret."""

    company: str
    forge: str
    hook: str


class OfChangeShape(TypedDict):
    """Something that was done about a change."""

    change: str


class ToldCommentShape(TypedDict):
    comment: str
    #: Its id at the forge.
    outside: str


class TakenIssueShape(TypedDict):
    outcome: str | None


class ToldIssueShape(TypedDict):
    issue: str


class PreparedShape(TypedDict):
    """A proposal that a run may make."""

    repo: Repo
    workspace: str
    remote_branch: str
    #: The head that is proposed now.
    before: str | None
    #: None for the default branch of the remote.
    target: str | None
    identity: CommitterShape


class ProposedBranchShape(TypedDict):
    ref: str
    branch: str
    head: str
    bundle_id: str
    sha256: str


class CloneShape(TypedDict):
    """Input of a run's clone besides the repository."""

    identity: CommitterShape
    #: The agent's own change with the branch name that it asked for.
    change: ProposedBranchShape | None
