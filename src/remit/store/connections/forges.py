"""Statements about what is watched at forges: repositories, requests, issues."""

from sqlalchemy import and_, exists, literal, literal_column, null, or_, select
from sqlalchemy import bindparam as bind

from remit.clock import DAY
from remit.model.connections.change import Change, ChangeComment
from remit.model.connections.forge import ForgeIssue, ForgeWatch
from remit.store.engine.statement import Rows, new, values_of
from remit.store.queues import LeasedQueue
from remit.store.tables import (
    change_comments,
    changes,
    forge_issues,
    forge_watches,
    outcomes,
    repos,
)

_free = or_(
    and_(forge_watches.c.next_at <= bind("now"), forge_watches.c.lease_until.is_(None)),
    forge_watches.c.lease_until <= bind("now"),
)
WATCHES = LeasedQueue(
    ForgeWatch,
    "repo",
    key="repo_id",
    waiting=_free,
    held=forge_watches.c.lease_until.is_not(None),
    # Far away, so that whoever rings during the look is seen to have done so.
    next_at=forge_watches.c.next_at + literal(DAY),
)
_there = exists().where(
    repos.c.id == forge_watches.c.repo_id, repos.c.removed_at.is_(None), repos.c.forge.is_not(None)
)
#: Watches whose forge is to be looked at now.
UNWATCHED = WATCHES.find(_there, _free, limit=bind("limit"))
#: When the next of them is due.
NEXT_WATCH = WATCHES.next_free(_there)
_nobody = {"lease_until": null(), "worker": null()}
#: The look is over: why it failed if it did, what to go on from, and when.
RELEASE = WATCHES.update(
    WATCHES.by_holder,
    **_nobody,
    next_at=bind("due"),
    looked_at=bind("now"),
    **new("failures", "problem", "cursor"),
)
#: All that is known of it counts for nothing any more.
RESTART = WATCHES.change(
    **_nobody,
    epoch=forge_watches.c.epoch + 1,
    next_at=bind("now"),
    cursor=literal_column("'{}'"),
    problem=null(),
    failures=literal_column("0"),
)
#: Nobody looks, because there is no process that could.
FREE = WATCHES.update(
    forge_watches.c.lease_until.is_not(None),
    **_nobody,
    epoch=forge_watches.c.epoch + 1,
    next_at=bind("now"),
)
#: Something happened there, or is to be told there: look sooner.
RING = WATCHES.change(forge_watches.c.next_at > bind("due"), next_at=bind("due"))
#: The same for the forge of an issue, by what was to come of it.
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
#: Changes whose requests are looked at.
REQUESTED = _CHANGES.find(
    _requested, changes.c.status == literal_column("'open'"), repo_id="repo", limit=bind("limit")
)
#: Changes that ended here while their requests are open there.
TO_CLOSE = _CHANGES.find(
    _requested,
    changes.c.status == literal_column("'closed'"),
    changes.c.request_seen.like('%"state": "open"%'),
    repo_id="repo",
    limit=bind("limit"),
)
#: Changes for an outcome that were taken in.
MERGED_FOR = _CHANGES.find(
    changes.c.status == literal_column("'merged'"), outcome_id="outcome", limit=bind("limit")
)
#: Its request.
SET_REQUEST = _CHANGES.update(
    changes.c.id == bind("change"), **new("request_number", "request_url", "request_seen")
)
#: Records the forge's last news about a change.
SET_SEEN = _CHANGES.update(changes.c.id == bind("change"), **new("request_seen"))

_COMMENTS = Rows(ChangeComment)
#: Whether something that was said there is known.
KNOWN = _COMMENTS.any(change_id="change", outside_id="outside")
#: The known comments of the forge.
KNOWN_OF = values_of(
    change_comments.c.outside_id, change_comments.c.outside_id.is_not(None), change_id="change"
)
#: Comments of authors on their changes that the forge has not been told.
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
#: The outcome of an issue.
ISSUE = _ISSUES.one(repo_id="repo", number="number")
#: The numbers of those that became something.
ISSUES_OF = values_of(forge_issues.c.number, repo_id="repo")
#: Issues whose outcome is over, which nobody has said there.
ISSUES_TO_TELL = _ISSUES.find(
    forge_issues.c.told.is_(None),
    outcomes.c.status != literal_column("'open'"),
    join=(outcomes, outcomes.c.id == forge_issues.c.outcome_id),
    repo_id="repo",
    limit=bind("limit"),
)
#: It is said.
ISSUE_TOLD = _ISSUES.update(
    forge_issues.c.id == bind("issue"),
    forge_issues.c.told.is_(None),
    told=bind("outside"),
    told_at=bind("now"),
)
