"""Housekeeping of stored answers, so that the database stays small."""

from remit.clock import Micros
from remit.services.command import FOR_REMIT, Context, logged
from remit.store.record import events


@logged("maintenance.forget_answers", FOR_REMIT)
def forget_answers(ctx: Context, *, before: Micros) -> int:
    """Delete stored answers to idempotency keys that are too old for a retry. They are not part of
    the record."""
    return ctx.tx.run(events.FORGET_ANSWERS, before=before)
