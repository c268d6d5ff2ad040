"""Errands at remotes: leased, retried, and idempotent as far as a remote allows.

An errand is queued in the transaction that makes it necessary. Its worker reads the state of the
remote first, and skips what is there already.
"""

import json
from collections.abc import Sequence
from typing import Any

from remit.clock import HOUR, MINUTE, SECOND, Micros
from remit.errors import Conflict
from remit.model.connections.change import Change, ChangeErrand, Errand
from remit.model.connections.repo import PushMode
from remit.model.messaging.mail import DeliveryStatus
from remit.services import shapes
from remit.services.changes import changes
from remit.services.command import FOR_REMIT, Context, command
from remit.services.governance import approval_engine
from remit.services.new_rows import new_in_line
from remit.services.queues import Deliveries
from remit.store.connections import changes as statements

#: Longer than a fetch and a push of a large repository may take.
LEASE: Micros = 30 * MINUTE
#: A remote may be down for a while.
BACKOFF = (10 * SECOND, 30 * SECOND, 2 * MINUTE, 10 * MINUTE, 30 * MINUTE, HOUR)
MOST_ATTEMPTS = 9
_QUEUE = Deliveries(
    statements.ERRANDS,
    delivered="errand.done",
    failed="errand.fail",
    about=lambda errand: {
        "kind": errand.kind.value,
        "change": errand.change_id,
        "attempt": errand.attempt,
    },
)


ready = _QUEUE.readies("errands", statements.READY, "repo_id")
next_due, expired, under_way = _QUEUE.looks("errands")


def _brief(ctx: Context, errand: ChangeErrand) -> shapes.ClaimedErrandShape:
    change = changes.existing(ctx, errand.change_id)
    return {
        "epoch": errand.epoch,
        "errand": errand.id,
        "details": errand.details,
        "change": change,
        **changes.source(ctx, change),
        "identity": changes.identity(ctx, change.agent_id),
    }


claim = _QUEUE.claims("errands", LEASE, _brief)


@command("errands.pushing", FOR_REMIT)
def pushing(ctx: Context, *, errand: str, epoch: int, head: str) -> shapes.OfChangeShape:
    """Record this head before it is pushed: if the remote has it after a crash, Remit pushed it."""
    errand_row, change = held(ctx, errand, epoch)
    unseen = head != change.released_commit
    if unseen and changes.repo_of(ctx, change).push == PushMode.AFTER_LOOK:
        raise Conflict("No person has looked at it yet.", "Push it from its page.")
    details = json.loads(errand_row.details)
    heads = [*details.get("pushed", []), head][-20:]
    new = json.dumps({**details, "pushed": heads})
    ctx.tx.run(statements.SET_DETAILS, errand=errand, epoch=epoch, new_details=new)
    ctx.record("change.push", f"change:{change.id}", {"head": head, "to": change.remote_branch})
    return {"change": change.id}


@command("errands.published", FOR_REMIT)
def published(ctx: Context, *, errand: str, epoch: int, head: str) -> shapes.OfChangeShape:
    """Record that the remote has this head of the change."""
    _, change = held(ctx, errand, epoch)
    ctx.tx.run(statements.PUBLISHED, change=change.id, new_published_commit=head)
    about = {"head": head, "branch": change.remote_branch}
    ctx.record("change.publish", f"change:{change.id}", about)
    return {"change": change.id}


@command("errands.delivered", FOR_REMIT)
def delivered(ctx: Context, *, errand: str, epoch: int) -> shapes.EndedShape:
    """Mark an errand as done."""
    return _QUEUE.delivered(ctx, errand, epoch)


def _tell(ctx: Context, errand: ChangeErrand, why: str) -> None:
    """Mail the author that an errand failed for good, and of a merge also its decider."""
    change = changes.existing(ctx, errand.change_id)
    subject = f"Could not {errand.kind.value}: {change.title}"
    sentence = f"It could not be done at the remote: {why}."
    changes.tell(ctx, change, subject, f"{sentence} Propose it again when that is fixed.")
    if errand.kind is Errand.MERGE and (decider := change.decided_by) is not None:
        about = f"About change {change.id}, which you decided to merge."
        text = f"{about}\n\n{sentence} Its author knows; decide again when it proposes anew.\n"
        approval_engine.tell(ctx, decider, subject, text)


failed = _QUEUE.fails("errands", usual=BACKOFF, most=MOST_ATTEMPTS, gave_up=_tell)
take_over = _QUEUE.takes_over("errands", most=MOST_ATTEMPTS, gave_up=_tell)
put_back = _QUEUE.puts_back("errands", "errand.put_back")


def put(ctx: Context, change: Change, kind: Errand, **details: Any) -> None:
    """Queue an errand about a change. A publication pushes what is proposed at that time, so there
    is at most one that has not begun."""
    waiting = ctx.tx.all(statements.UNFINISHED_OF, change=change.id)
    if kind is Errand.PUBLISH and any(
        other.kind is kind and other.status is DeliveryStatus.QUEUED for other in waiting
    ):
        return
    errand = ChangeErrand(
        **new_in_line(ctx),
        repo_id=change.repo_id,
        change_id=change.id,
        kind=kind,
        details=json.dumps(details),
    )
    ctx.tx.add(errand)


def is_merging(ctx: Context, change: Change) -> bool:
    waiting = ctx.tx.all(statements.UNFINISHED_OF, change=change.id)
    return any(errand.kind is Errand.MERGE for errand in waiting)


def refuse_merging(ctx: Context, change: Change) -> None:
    """Refuse to alter a change that is being merged: it stays as it was when that was decided."""
    if is_merging(ctx, change):
        raise Conflict(
            "It is being merged already.",
            "Wait: its author has mail when it is in or could not be taken in.",
        )


def cancel(ctx: Context, waiting: Sequence[ChangeErrand], why: str) -> None:
    for errand in waiting:
        _QUEUE.close(ctx, errand.id, DeliveryStatus.CANCELLED, why)


def held(ctx: Context, errand: str, epoch: int) -> tuple[ChangeErrand, Change]:
    """Return an errand and its change, if the worker still has its lease; else raise."""
    errand_row = _QUEUE.entered(ctx, errand)
    if errand_row.epoch != epoch or errand_row.lease_until is None:
        raise _QUEUE.lost()
    return errand_row, changes.existing(ctx, errand_row.change_id)
