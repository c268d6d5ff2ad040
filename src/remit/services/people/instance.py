"""The instance itself: operators inspect the machine and manage backups.

None of this belongs to a company; it is recorded in the first company of the operator.
"""

from remit.authority import Action
from remit.errors import NotFound
from remit.model.organisation.principal import ActorKind
from remit.services import lookup, shapes
from remit.services.command import Context, command, query
from remit.store.organisation import people


@query("instance.may_operate")
def may_operate(ctx: Context, *, what: str) -> None:
    """Check that the caller is an operator of this instance, before the machine is inspected."""
    _require(ctx, what)


@command("instance.begin_backup")
def begin_backup(ctx: Context, *, new_name: str) -> shapes.NamedBackupShape:
    """Record that an operator has a backup written, under the name `new_name`."""
    _require(ctx, f"backup:{new_name}")
    ctx.record("backup.create", f"backup:{new_name}", {})
    return {"name": new_name}


@command("instance.take_backup")
def take_backup(ctx: Context, *, name: str) -> shapes.NamedBackupShape:
    """Record that an operator downloads a backup."""
    _require(ctx, f"backup:{name}")
    ctx.record("backup.download", f"backup:{name}", {})
    return {"name": name}


@command("instance.remove_backup")
def remove_backup(ctx: Context, *, name: str) -> shapes.RemovedBackupShape:
    """Record that an operator deletes a backup."""
    _require(ctx, f"backup:{name}")
    ctx.record("backup.remove", f"backup:{name}", {})
    return {"name": name, "removed": True}


def _require(ctx: Context, on: str) -> None:
    if ctx.actor.kind is not ActorKind.USER:
        raise NotFound("There is nothing here with that id.")
    mine = ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after="", limit=1)
    ctx.enter(lookup.only(mine, "company").id)
    ctx.require(Action.INSTANCE_OPERATE, on=on)
