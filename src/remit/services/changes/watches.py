"""Watches: for each repository with a forge, one process polls the forge, by a lease.

A webhook only brings the next poll forward. Its content is not used, so a replayed one gains
nothing.
"""

import json

from remit.authority import Action
from remit.clock import MINUTE, SECOND, Micros
from remit.model.connections.forge import ForgeWatch
from remit.model.connections.repo import Repo
from remit.model.work.outcome import Outcome, OutcomeStatus
from remit.services import lookup, shapes, views
from remit.services.command import FOR_REMIT, Context, logged, query
from remit.services.fields import CompanyRef
from remit.services.queues import MOST_AT_ONCE, Leases
from remit.services.surfaces import AsRoute
from remit.store.connections import forges as statements
from remit.store.connections import repos as repo_statements
from remit.store.work import outcomes as outcome_statements

#: Renewed during the poll; once it expires, another process may poll.
LEASE = 30 * SECOND
#: Between two polls while something is open there, and while nothing is.
SOON = MINUTE
LATER = 10 * MINUTE
#: Between polls after failures in a row.
PAUSES = (30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE)
#: Least time between polls, however often a webhook calls.
_LEAST = 5 * SECOND
_LONGEST_PROBLEM = 300
_MOST_CURSOR = 200_000
MOST_PARTS = 500
_LEASES = Leases(statements.WATCHES)


@query("watches.ready", FOR_REMIT)
def ready(ctx: Context) -> list[str]:
    """Return the repositories whose forge is due for a poll."""
    return [watch.repo_id for watch in ctx.tx.all(statements.UNWATCHED, limit=MOST_AT_ONCE)]


@query("watches.next_due", FOR_REMIT)
def next_due(ctx: Context) -> Micros | None:
    """Return the time of the next poll of any forge."""
    return ctx.tx.one(statements.NEXT_WATCH)


@logged("watches.claim", FOR_REMIT)
def claim(
    ctx: Context, *, repo: str, worker: str, lease: Micros = LEASE
) -> shapes.ClaimedWatchShape | None:
    """Claim the watch of a repository. Returns what a poll needs; None if another process has
    it."""
    repo_row = ctx.tx.one(repo_statements.REPO_BY_ID, repo=repo)
    if repo_row is None or repo_row.forge is None or not _LEASES.claim(ctx, repo, worker, lease):
        return None
    ctx.enter(repo_row.company_id)
    watch = ctx.tx.existing(statements.WATCHES.row, repo=repo)
    some = {"repo": repo, "limit": MOST_AT_ONCE}
    return {
        "epoch": watch.epoch,
        "repo": repo_row,
        "cursor": watch.cursor,
        "requests": [
            {"change": change, "known": list(ctx.tx.all(statements.KNOWN_OF, change=change.id))}
            for change in ctx.tx.all(statements.REQUESTED, **some)
        ],
        "to_close": [
            {"change": change.id, "number": change.request_number}
            for change in ctx.tx.all(statements.TO_CLOSE, **some)
            if change.request_number is not None
        ],
        "to_tell": [
            {
                "comment": comment.id,
                "change": comment.change_id,
                "body": comment.body,
                "place": comment.place,
            }
            for comment in ctx.tx.all(statements.TO_TELL, **some)
        ],
        "issues": list(ctx.tx.all(statements.ISSUES_OF, repo=repo)),
        "issues_to_tell": [
            _told_of(ctx, issue.id, issue.number, issue.outcome_id)
            for issue in ctx.tx.all(statements.ISSUES_TO_TELL, **some)
        ],
    }


def _told_of(ctx: Context, issue: str, number: int, outcome: str) -> shapes.IssueToTellShape:
    outcome_row = lookup.known_outcome(ctx, outcome)
    return {
        "issue": issue,
        "number": number,
        "done": outcome_row.status is OutcomeStatus.COMPLETED,
        "links": sorted(_taken_in(ctx, outcome_row)),
    }


def _taken_in(ctx: Context, root: Outcome) -> set[str]:
    """Return links to the merged changes of an outcome and its parts."""
    links, seen, waiting = set(), {root.id}, [root.id]
    while waiting and len(seen) < MOST_PARTS:
        outcome = waiting.pop()
        for change in ctx.tx.all(statements.MERGED_FOR, outcome=outcome, limit=MOST_AT_ONCE):
            links.add(change.request_url or change.merged_commit or "")
        for part in ctx.tx.all(outcome_statements.CHILDREN, outcome=outcome, limit=MOST_PARTS):
            if part.id not in seen:
                seen.add(part.id)
                waiting.append(part.id)
    return links


renew = _LEASES.renews("watches")


@logged("watches.ended", FOR_REMIT)
def ended(
    ctx: Context,
    *,
    repo: str,
    epoch: int,
    cursor: dict[str, object],
    busy: bool = False,
    problem: str | None = None,
    retry_after: Micros = 0,
) -> None:
    """End a poll: store the cursor for the next one, and when that is due."""
    watch = ctx.tx.existing(statements.WATCHES.row, repo=repo)
    failures = 0 if problem is None else watch.failures + 1
    pause = PAUSES[min(failures, len(PAUSES)) - 1] if failures else SOON if busy else LATER
    kept = json.dumps(cursor)
    due = ctx.now + max(pause, retry_after)
    # A webhook that came during this poll asks for another one.
    rung = watch.next_at <= ctx.now + _LEAST
    _LEASES.fenced(
        ctx,
        statements.RELEASE,
        (repo, epoch),
        now=ctx.now,
        due=ctx.now + _LEAST if rung and not failures and not retry_after else due,
        new_failures=failures,
        new_problem=None if problem is None else problem[:_LONGEST_PROBLEM],
        new_cursor=kept if len(kept) <= _MOST_CURSOR else "{}",
    )


@logged("watches.free", FOR_REMIT)
def free(ctx: Context) -> None:
    """Free all leases: there is no other process."""
    ctx.tx.run(statements.FREE)


@logged("watches.ring", FOR_REMIT)
def ring(ctx: Context, *, repo: str) -> None:
    """Bring the next poll forward, as a webhook asks."""
    ring_for(ctx, repo)


@query("watches.hook", FOR_REMIT)
def hook(ctx: Context, *, repo: str) -> shapes.HookShape | None:
    """Signing of a webhook: the kind of forge and the name of a secret."""
    repo_row = ctx.tx.one(repo_statements.REPO_BY_ID, repo=repo)
    if repo_row is None or repo_row.forge is None or repo_row.hook is None:
        return None
    return {"company": repo_row.company_id, "forge": repo_row.forge, "hook": repo_row.hook}


def ring_for(ctx: Context, repo: str) -> None:
    """Bring the next poll of a repository's forge forward, if it has one."""
    watch = ctx.tx.one(statements.WATCHES.row, repo=repo)
    if watch is not None:
        due = max(ctx.now, (watch.looked_at or 0) + _LEAST)
        ctx.tx.run(statements.RING, repo=repo, due=due)


def held(ctx: Context, repo: str, epoch: int) -> Repo:
    """Return the repository, if the process still has its lease; else raise."""
    repo_row = ctx.tx.existing(repo_statements.REPO_EVER, repo=repo)
    ctx.enter(repo_row.company_id)
    ctx.lock_company()  # a poll may find nothing new, and then nothing is recorded
    ctx.require(Action.RUN_CHANGE, on=f"repo:{repo_row.name}")
    watch = ctx.tx.existing(statements.WATCHES.row, repo=repo)
    if watch.epoch != epoch or watch.lease_until is None or repo_row.removed_at is not None:
        raise _LEASES.lost()
    return repo_row


def people_of(repo: Repo) -> set[str]:
    """Return the listed people in lower case."""
    return {name.lower() for name in json.loads(repo.people)}


def name_of(ctx: Context, repo: str) -> str:
    return ctx.tx.existing(repo_statements.REPO_EVER, repo=repo).name


@query(
    "watches.listing", AsRoute("GET /companies/{companyId}/forges", "list_forges", page="repo_id")
)
def listing(ctx: Context, *, company: CompanyRef | None) -> list[shapes.ForgeWatchShape]:
    """The state of the forge of each repository: whether it answers, or its problem."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.REPO_READ, on="repos")
    watches = ctx.tx.all(statements.WATCHES_OF)
    return [_view(watch, repo=name_of(ctx, watch.repo_id)) for watch in watches]


_view = views.view_of(
    ForgeWatch,
    shapes.ForgeWatchShape,
    supplied={"repo"},
    state=lambda it: "failing" if it.problem else "watched" if it.looked_at else "waiting",
)
