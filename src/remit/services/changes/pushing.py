"""The way of proposals to the remote: at once, or once a person has looked at the commits.

The CI of a forge runs each push, with the secrets of the repository, whatever files the forge calls
workflows: a build runs the scripts, tests and configuration of the author.
"""

from remit.errors import Conflict
from remit.model.connections.change import Change, Errand
from remit.model.connections.repo import Repo
from remit.model.organisation.principal import ActorKind
from remit.services.changes import changes, errands
from remit.services.command import Context
from remit.store.connections import changes as statements

_MOST = 10_000


def queue(ctx: Context, change: Change, repo: Repo) -> None:
    """Queue the push of a proposal, unless a person has to look at it first."""
    if not change.awaits_look(repo.push):
        errands.put(ctx, change, Errand.PUBLISH)


def queue_all_in(ctx: Context, repo: Repo) -> None:
    """Queue the push of all open changes of a repository that is pushed to in another way now."""
    for change in ctx.tx.all(statements.OPEN_IN_REPO, repo=repo.id, limit=_MOST):
        queue(ctx, change, repo)


def release(ctx: Context, change: Change) -> Change:
    """Let the proposed commits go to the remote, if a person has to look at them first and the
    caller did. An agent releases nothing."""
    repo = changes.repo_of(ctx, change)
    if not change.awaits_look(repo.push):
        return change
    if ctx.actor.kind is not ActorKind.USER:
        raise Conflict(
            f"No person has looked at it yet, so it is not pushed to {repo.name}.",
            "Wait: the board sees it among what awaits it.",
            code="awaits_look",
        )
    ctx.tx.run(statements.RELEASE, change=change.id, new_released_commit=change.head_commit)
    about = {"head": change.head_commit, "base": change.base_commit}
    ctx.record("change.release", f"change:{change.id}", about)
    errands.put(ctx, change, Errand.PUBLISH)
    return changes.existing(ctx, change.id)
