"""Statements about the watching of forges: repositories, requests, issues."""

from sqlalchemy import and_, exists, literal, literal_column, null, or_, select
from sqlalchemy import bindparam as bind

from remit.clock import DAY
from remit.model.connections.change import Change, ChangeComment
from remit.model.connections.forge import ForgeIssue, ForgeWatch
from remit.store.engine.statement import Rows, new, values_of
from remit.store.organisation.halts import accepted
from remit.store.queues import LeasedQueue
from remit.store.tables import (
    change_comments,
    changes,
    forge_issues,
    forge_watches,
    outcomes,
    repos,
)

_free = and_(
    accepted(forge_watches),
    or_(
        and_(forge_watches.c.next_at <= bind("now"), forge_watches.c.lease_until.is_(None)),
        forge_watches.c.lease_until <= bind("now"),
    ),
)
WATCHES = LeasedQueue(
    ForgeWatch,
    "repo",
    key="repo_id",
    waiting=_free,
    held=forge_watches.c.lease_until.is_not(None),
    # Moved a day ahead, so that a `RING` during the visit shows: it brings the time forward again.
    next_at=forge_watches.c.next_at + literal(DAY),
)
_there = exists().where(
    repos.c.id == forge_watches.c.repo_id, repos.c.removed_at.is_(None), repos.c.forge.is_not(None)
)
#: Watches that are due for a visit of their forge.
UNWATCHED = WATCHES.find(_there, _free, limit=bind("limit"))
#: The time at which the next watch is due.
NEXT_WATCH = WATCHES.next_free(_there, accepted(forge_watches))
_nobody = {"lease_until": null(), "worker": null()}
#: Ends the lease of a watch: stores its cursor, its failure if any, and the next time.
RELEASE = WATCHES.update(
    WATCHES.by_holder,
    **_nobody,
    next_at=bind("due"),
    looked_at=bind("now"),
    **new("failures", "problem", "cursor"),
)
#: Resets a watch: drops its lease, cursor and failures, and makes it due at once.
RESTART = WATCHES.change(
    **_nobody,
    epoch=forge_watches.c.epoch + 1,
    next_at=bind("now"),
    cursor=literal_column("'{}'"),
    problem=null(),
    failures=literal_column("0"),
)
#: Frees all leased watches, at a start when no other process can hold one.
FREE = WATCHES.update(
    forge_watches.c.lease_until.is_not(None),
    **_nobody,
    epoch=forge_watches.c.epoch + 1,
    next_at=bind("now"),
)
#: Makes a watch due sooner, because of news at the forge or for it.
RING = WATCHES.change(forge_watches.c.next_at > bind("due"), next_at=bind("due"))
#: Makes the watch of an issue's repository due sooner; the issue is found by its outcome.
RING_FOR_OUTCOME = WATCHES.update(
    forge_watches.c.next_at > bind("due"),
    forge_watches.c.repo_id.in_(
        select(forge_issues.c.repo_id).where(forge_issues.c.outcome_id == bind("outcome"))
    ),
    next_at=bind("due"),
)
#: The watches of a company.
WATCHES_OF = WATCHES.find(_there, company_id="company")

_CHANGES = Rows(Change)
_requested = changes.c.request_number.is_not(None)
#: The open changes of a repository that have a request at the forge.
REQUESTED = _CHANGES.find(
    _requested, changes.c.status == literal_column("'open'"), repo_id="repo", limit=bind("limit")
)
#: Closed changes whose requests are still open at the forge.
TO_CLOSE = _CHANGES.find(
    _requested,
    changes.c.status == literal_column("'closed'"),
    changes.c.request_seen.like('%"state": "open"%'),
    repo_id="repo",
    limit=bind("limit"),
)
#: The merged changes for an outcome.
MERGED_FOR = _CHANGES.find(
    changes.c.status == literal_column("'merged'"), outcome_id="outcome", limit=bind("limit")
)
#: Records the request of a change at the forge.
SET_REQUEST = _CHANGES.update(
    changes.c.id == bind("change"), **new("request_number", "request_url", "request_seen")
)
#: Records the last known state of a change's request.
SET_SEEN = _CHANGES.update(changes.c.id == bind("change"), **new("request_seen"))

_COMMENTS = Rows(ChangeComment)
#: Whether a comment of the forge was taken in already.
KNOWN = _COMMENTS.any(change_id="change", outside_id="outside")
#: The forge's ids of the comments on a change that were taken in or sent.
KNOWN_OF = values_of(
    change_comments.c.outside_id, change_comments.c.outside_id.is_not(None), change_id="change"
)
#: Comments of authors on their open changes that were not sent to the forge.
TO_TELL = _COMMENTS.find(
    change_comments.c.outside_id.is_(None),
    changes.c.repo_id == bind("repo"),
    changes.c.agent_id == change_comments.c.agent_id,
    _requested,
    changes.c.status == literal_column("'open'"),
    join=(changes, changes.c.id == change_comments.c.change_id),
    limit=bind("limit"),
)
#: Records the forge's id of a comment.
SET_OUTSIDE_ID = _COMMENTS.update(
    change_comments.c.id == bind("comment"),
    change_comments.c.outside_id.is_(None),
    outside_id=bind("outside"),
)

_ISSUES = Rows(ForgeIssue)
#: An issue of a repository, by its number, with its outcome.
ISSUE = _ISSUES.one(repo_id="repo", number="number")
#: The numbers of a repository's issues that became outcomes.
ISSUES_OF = values_of(forge_issues.c.number, repo_id="repo")
#: Issues whose outcome ended, without a comment at the forge that says so.
ISSUES_TO_TELL = _ISSUES.find(
    forge_issues.c.told.is_(None),
    outcomes.c.status != literal_column("'open'"),
    join=(outcomes, outcomes.c.id == forge_issues.c.outcome_id),
    repo_id="repo",
    limit=bind("limit"),
)
#: Records the comment that told an issue how its outcome ended.
ISSUE_TOLD = _ISSUES.update(
    forge_issues.c.id == bind("issue"),
    forge_issues.c.told.is_(None),
    told=bind("outside"),
    told_at=bind("now"),
)
