"""What Remit does by itself to stay small."""

from __future__ import annotations

from remit.clock import Micros
from remit.errors import NotFound
from remit.model.principal import ActorKind
from remit.services.command import Context, logged
from remit.store import events


@logged("maintenance.forget_answers")
def forget_answers(ctx: Context, *, before: Micros) -> int:
    """Drop stored answers nobody will ask for again. They are not part of the record."""
    if ctx.actor.kind is not ActorKind.SYSTEM:
        raise NotFound("There is nothing here with that id.")
    return ctx.tx.run(events.FORGET_ANSWERS, before=before)
