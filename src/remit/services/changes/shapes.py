"""Changes as answers show them."""

from typing import Annotated, TypedDict

from remit.model.connections.change import ChangeDecision, ChangeStatus, Side
from remit.model.connections.check import CheckSource
from remit.model.connections.forge import CheckState, RequestState
from remit.services.shape_basics import Moment


class ProposedShape(TypedDict):
    change: str
    commit: str
    base: str
    #: Where it is pushed to.
    branch: str


class ChangeDecisionShape(TypedDict):
    decision: Annotated[str, ChangeDecision]
    note: str
    #: What it was decided about.
    head: str
    base: str
    agent_id: str | None
    user_id: str | None
    at: Moment | None
    #: Whether that is what is proposed now.
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
    #: What would be taken in there.
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


class ChangeShape(TypedDict):
    id: str
    company_id: str
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
    #: Whether the remote has what is proposed now.
    published: bool
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
    #: Who said it at the forge.
    outside: str | None
    at: Moment


class ChangeCheckShape(TypedDict):
    """Run on the author's code."""

    id: str
    name: str
    source: Annotated[str, CheckSource]
    #: waiting, running, passed, failed, broken (it could not be run) or left.
    state: str
    command: str | None
    required: bool
    head: str
    #: The end of what it printed.
    log: str | None
    why: str | None
    url: str | None
    evidence_id: str | None
    at: Moment | None


class ChangeDetailShape(ChangeShape):
    paths: list[str]
    checks: list[ChangeCheckShape]
    comments: list[ChangeCommentShape]
    #: What is still to be done outside, and what could not be done there.
    waiting: list[str]
    problems: list[str]


class DiffLineShape(TypedDict):
    #: A blank, `+` or `-`.
    kind: str
    text: str
    old: int | None
    new: int | None
    #: From and to, of the characters that differ from the line that it takes the place of.
    words: list[list[int]]


class HunkShape(TypedDict):
    heading: str
    lines: list[DiffLineShape]


class FileDiffShape(TypedDict):
    path: str
    old_path: str
    status: str
    note: str
    #: None for what is not text.
    added: int | None
    removed: int | None
    hunks: list[HunkShape]
    cut: bool


class DiffShape(TypedDict):
    """Diff of a change, as far as it is shown."""

    base: str
    head: str
    files: list[FileDiffShape]
    count: int
    added: int
    removed: int
    cut: bool
