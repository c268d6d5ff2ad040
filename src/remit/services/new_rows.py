"""Initial columns of new rows: what all of a kind have in common."""

from remit.model.messaging.mail import DeliveryStatus
from remit.services.command import Arguments, Context


def new_row(ctx: Context) -> Arguments:
    """An id of its own, the company of the call, and the time."""
    return {"id": ctx.ids.new(), "company_id": ctx.company, "created_at": ctx.now}


def first_version(ctx: Context) -> Arguments:
    """The columns of `new_row`, and those of a row whose changes are counted."""
    return {**new_row(ctx), "version": 1, "updated_at": ctx.now}


def new_in_line(ctx: Context) -> Arguments:
    """The columns of `new_row`, and those of a row that is queued and due at once."""
    return {**new_row(ctx), "status": DeliveryStatus.QUEUED, "next_at": ctx.now}
