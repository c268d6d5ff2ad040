"""Checks of proposed changes: queued with each proposal, shown with it, required for a merge.

They run on the author's code: the command and the files that it protects are the repository's, all
else that they run was written by the author.
"""

import json
from dataclasses import asdict

from remit.errors import Conflict
from remit.model.connections import check as model
from remit.model.connections.change import Change
from remit.model.connections.check import ChangeCheck, CheckResult, CheckSource
from remit.model.connections.repo import Repo
from remit.model.messaging.mail import DeliveryStatus
from remit.services import shapes, views
from remit.services.command import Context
from remit.services.new_rows import new_in_line
from remit.store.connections import checks as statements


def begin(ctx: Context, change: Change, repo: Repo) -> list[ChangeCheck]:
    """Queue every check of the repository for the proposed head; cancel the unfinished ones."""
    leave(ctx, change, "something else is proposed")
    new_checks = [
        ChangeCheck(
            **new_in_line(ctx),
            repo_id=repo.id,
            change_id=change.id,
            name=wanted.name,
            head_commit=change.head_commit,
            base_commit=change.base_commit,
            details=json.dumps(asdict(wanted), ensure_ascii=False),
        )
        for wanted in model.read(repo.checks)
    ]
    for check in new_checks:
        ctx.tx.add(check)
    return new_checks


def leave(ctx: Context, change: Change, why: str) -> None:
    """Cancel the unfinished checks of a change; a worker that runs one learns so at its next
    renewal."""
    for check in ctx.tx.all(statements.UNFINISHED_OF, change=change.id):
        ended = {"new_status": DeliveryStatus.CANCELLED.value, "now": ctx.now, "why": why}
        ctx.tx.run(statements.CHECKS.close, check=check.id, **ended)


def of_change(ctx: Context, change: Change) -> list[ChangeCheck]:
    """Return the last check of each name for the proposed head and base."""
    checks = ctx.tx.all(statements.OF_HEAD, change=change.id, head=change.head_commit)
    last = {check.name: check for check in checks if check.base_commit == change.base_commit}
    return list(last.values())


def refuse_unchecked(
    ctx: Context, change: Change, repo: Repo, *, still_running: bool = False
) -> None:
    """Refuse a merge unless every required check passed, as the board defines it now. With
    `still_running`, a check without a result yet is no reason to refuse."""
    states = {check.name: check for check in of_change(ctx, change)}
    for wanted in model.read(repo.checks):
        latest = states.get(wanted.name)
        # A result of a command that the board has replaced since does not count.
        tried = None if latest is None else model.read_one(json.loads(latest.details))
        if tried is not None and not wanted.tries_the_same(tried):
            latest = None
        if not wanted.required or (latest and latest.result is CheckResult.PASSED):
            continue
        state = "not run as it is now" if latest is None else latest.state
        unfinished = (DeliveryStatus.QUEUED, DeliveryStatus.LEASED)
        waits = latest is not None and latest.status in unfinished
        if waits and still_running:
            continue
        raise Conflict(
            f"The check {wanted.name} has to pass on exactly this commit first; it is {state}.",
            "Wait for it." if waits else f"Have it run again: `remit change check {change.id}`.",
            code="unchecked",
        )


def at_forge(change: Change) -> list[shapes.ChangeCheckShape]:
    """Return the checks of the forge, in the same shape."""
    seen = json.loads(change.request_seen or "{}")
    return [
        {
            "id": str(check["id"]),
            "name": check["name"],
            "source": CheckSource.FORGE.value,
            "state": check["state"],
            "head": seen.get("head") or change.head_commit,
            "log": check.get("tail") or None,
            "url": check["url"],
            "command": None,
            "required": False,
            "evidence_id": None,
            "why": None,
            "at": None,
        }
        for check in seen.get("checks", ())
    ]


view = views.view_of(
    ChangeCheck,
    shapes.ChangeCheckShape,
    source=lambda _: CheckSource.REMIT,
    state="state",
    command=lambda check: json.loads(check.details).get("command"),
    required=lambda check: bool(json.loads(check.details).get("required")),
    head="head_commit",
    why="ended_why",
    url=lambda _: None,
    at=lambda check: check.ended_at or check.created_at,
)
