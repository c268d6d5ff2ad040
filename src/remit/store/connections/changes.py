"""Statements about changes, comments on them, and errands at their remotes."""

from sqlalchemy import bindparam as bind
from sqlalchemy import exists, literal_column, null, or_

from remit.model.connections.change import Change, ChangeComment, ChangeErrand
from remit.store.connections.checks import CHECKS
from remit.store.engine.statement import Rows, if_asked, new
from remit.store.organisation.halts import stopped
from remit.store.queues import StatusQueue
from remit.store.tables import change_checks, change_errands, changes, repos

_CHANGES = Rows(Change)
_open = changes.c.status == literal_column("'open'")
_one = changes.c.id == bind("change")
_seen = changes.c.version == bind("seen_version")
_step = {"version": changes.c.version + 1, "updated_at": bind("now")}

#: One change by id, of any company.
CHANGE = _CHANGES.one(_one)
#: The company's changes whose ids lie between two.
CHANGES_BY_PREFIX = _CHANGES.between(company_id="company", limit=20)
#: The open change of a branch of the remote.
OF_BRANCH = _CHANGES.one(_open, repo_id="repo", remote_branch="branch")
#: A page of a company's changes, newest first; of one agent, repository or status, if asked.
CHANGES = _CHANGES.before(
    if_asked(changes.c.agent_id, "agent"),
    if_asked(changes.c.repo_id, "repo"),
    if_asked(changes.c.status, "status"),
    company_id="company",
)
#: The newest changes of all companies.
NEWEST = _CHANGES.find(order=[changes.c.id.desc()], limit=bind("limit"))
#: The open changes of a repository.
OPEN_IN_REPO = _CHANGES.find(_open, repo_id="repo", limit=bind("limit"))
#: Stores another head and its proposal as the next revision of an open change.
REVISE = _CHANGES.update(
    _one,
    _open,
    _seen,
    **new("run_id", "outcome_id", "target", "title", "description", "base_commit", "head_commit"),
    **new("paths", "bundle_id"),
    revision=changes.c.revision + 1,
    conflicts=null(),
    **_step,
)
#: Records the commit of a change that was pushed to the remote.
PUBLISHED = _CHANGES.update(_one, **new("published_commit"), **_step)
#: Stores the commit of an open change that a person let go to the remote.
RELEASE = _CHANGES.update(_one, _open, **new("released_commit"), **_step)
#: The open changes of a company that are pushed once a person has looked at them, oldest first.
AWAITING_LOOK = _CHANGES.find(
    _open,
    repos.c.push == literal_column("'after_look'"),
    or_(changes.c.released_commit.is_(None), changes.c.released_commit != changes.c.head_commit),
    join=(repos, repos.c.id == changes.c.repo_id),
    company_id="company",
    order=[changes.c.id],
    limit=bind("limit"),
)
#: Stores the merge conflicts of an open change, or that there are none.
SET_CONFLICTS = _CHANGES.update(_one, _open, conflicts=bind("new_conflicts"), **_step)
#: Stores a decision about a change, unless the change moved on since the decider read it.
DECIDE = _CHANGES.update(
    _one,
    _open,
    _seen,
    **new("decision", "decision_note", "decided_head", "decided_base"),
    **new("decided_by_agent", "decided_by_user"),
    decided_at=bind("now"),
    **_step,
)
#: Ends an open change.
END = _CHANGES.update(
    _one, _open, **new("status", "merged_commit", "ended_why"), ended_at=bind("now"), **_step
)

_COMMENTS = Rows(ChangeComment)
#: A page of the comments on a change, oldest first.
COMMENTS = _COMMENTS.after(change_id="change")

#: Errands wait while the author of their change is stopped.
_halted = exists().where(changes.c.id == change_errands.c.change_id, stopped(changes))
ERRANDS = StatusQueue(ChangeErrand, "errand", unless=_halted)
#: Earlier errands for the same change go first.
_in_turn = ERRANDS.in_turn("repo_id", "change_id")
#: Errands that can be done now, except merges.
READY = ERRANDS.find(
    ERRANDS.can_begin,
    _in_turn,
    change_errands.c.kind != literal_column("'merge'"),
    order=[change_errands.c.next_at, change_errands.c.id],
    limit=bind("limit"),
)
#: A required check of the same change has no result yet.
_being_checked = exists().where(
    change_checks.c.change_id == change_errands.c.change_id,
    CHECKS.unfinished,
    change_checks.c.details.like('%"required": true%'),
)
#: Merge errands that can be done now; the merger has a loop of its own.
READY_TO_MERGE = ERRANDS.find(
    ERRANDS.can_begin,
    _in_turn,
    ~_being_checked,
    change_errands.c.kind == literal_column("'merge'"),
    order=[change_errands.c.next_at, change_errands.c.id],
    limit=bind("limit"),
)
#: The errands still to be done for a change.
UNFINISHED_OF = ERRANDS.find(ERRANDS.unfinished, change_id="change")
#: The errands that failed for a change.
DEAD_OF = ERRANDS.find(change_errands.c.status == literal_column("'dead'"), change_id="change")
#: The errands still to be done in a repository.
UNFINISHED_IN = ERRANDS.find(ERRANDS.unfinished, repo_id="repo")
#: Stores details for the holder of an errand.
SET_DETAILS = ERRANDS.update(ERRANDS.by_holder, details=bind("new_details"))
