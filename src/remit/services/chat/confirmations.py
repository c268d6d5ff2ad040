"""Confirmations of decisions that came by a channel which others could write to in one's name.

Whoever has a mailbox's password can put e-mails of anybody into it. So what an e-mail decides
waits, bound to exactly what was shown, until its person confirms it where they are signed in: on
the page or with `remit confirm`. The board can have decisions by e-mail take effect at once.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from remit.clock import moment
from remit.errors import Conflict, NotFound
from remit.ids import BindingId, UserId, looks_like_id, short
from remit.ids import is_part_of as is_part
from remit.model.messaging.channel import Binding
from remit.model.messaging.confirmation import CONFIRMATION_LASTS, Confirmation
from remit.model.organisation.decision import Decision, Effect
from remit.model.organisation.principal import ActorKind
from remit.services import lookup, shapes, views
from remit.services.chat import decisions
from remit.services.command import Context, command, query
from remit.services.fields import Help, Reference
from remit.services.new_rows import new_row
from remit.services.surfaces import AsRoute
from remit.store.messaging import confirmations as statements

_OWN = Decision(Effect.ALLOW, "self", "You asked for it yourself.", "rule:self")
#: A person confirms a decision or dismisses it; nobody has hundreds of them.
MAX_WAITING = 50
ConfirmationRef = Annotated[
    str, Reference("confirmation"), Help("Id of the confirmation, as the answer by mail says it.")
]


def ask(ctx: Context, binding: Binding, account: str, act: decisions.Act) -> str:
    """Have the acting person confirm an act that came from an account in their name; returns what
    they are told."""
    document = json.dumps(act, sort_keys=True)
    row = ctx.tx.one(statements.SAME, user=ctx.actor.id, act=document)
    if row is None:
        if len(ctx.tx.all(statements.WAITING, user=ctx.actor.id)) >= MAX_WAITING:
            step = "Confirm or dismiss some of them on your first page."
            raise Conflict(f"{MAX_WAITING} decisions of yours wait for a confirmation.", step)
        row = Confirmation(
            **new_row(ctx),
            user_id=UserId(ctx.actor.id),
            binding_id=BindingId(binding.id),
            account=account,
            subject=decisions.subject(act),
            title=decisions.title(ctx, act),
            act=document,
            expires_at=ctx.now + CONFIRMATION_LASTS,
        )
        ctx.tx.add(row)
        ctx.record("confirmation.ask", row.subject, _about(row), _OWN)
    return _told(ctx, row)


def _told(ctx: Context, row: Confirmation) -> str:
    command = f"`remit confirm {short(row.id)}`"
    url = ctx.outside_url
    page = row.subject.replace(":", "s/", 1) if row.subject.startswith("approval:") else ""
    page = page or f"confirmations/{row.id}"
    place = command if url is None else f"{url}/{page}, or {command}"
    return "\n".join(
        [
            f"Not done yet: {row.title}",
            f"Confirm it where you are signed in: {place}",
            f"It can be confirmed until {moment(row.expires_at)}.",
            "If you did not write that, dismiss it there: somebody else can write to the mailbox.",
        ]
    )


@query("confirmations.mine", AsRoute("GET /confirmations", "list_confirmations"))
def mine(ctx: Context) -> list[shapes.ConfirmationShape]:
    """Decisions in the caller's name, by e-mail, that wait for the caller's confirmation."""
    _person(ctx)
    rows = ctx.tx.all(statements.WAITING_ANYWHERE, user=ctx.actor.id)
    return [view(row) for row in rows]


@query("confirmations.show", AsRoute("GET /confirmations/{id}", "show_confirmation"))
def show(ctx: Context, *, confirmation: ConfirmationRef) -> shapes.ConfirmationShape:
    """One decision by e-mail that waits for the caller's confirmation, or how that ended."""
    return view(_own(ctx, confirmation))


@command("confirmations.confirm", AsRoute("POST /confirmations/{id}/confirm", "confirm_decision"))
def confirm(ctx: Context, *, confirmation: ConfirmationRef) -> shapes.ConfirmedShape:
    """Confirm a decision of one's own that came by e-mail; it takes effect with that."""
    row = _ended(ctx, confirmation, "confirmed")
    done = decisions.carry_out(ctx, json.loads(row.act))
    ctx.record("confirmation.confirm", row.subject, _about(row), _OWN)
    return {**view(ctx.tx.existing(statements.OF_USER, **_key(ctx, row))), "done": done}


@command("confirmations.dismiss", AsRoute("DELETE /confirmations/{id}", "dismiss_decision"))
def dismiss(ctx: Context, *, confirmation: ConfirmationRef) -> shapes.ConfirmationShape:
    """Dismiss a decision that came by e-mail in one's name; nothing is done."""
    row = _ended(ctx, confirmation, "dismissed")
    ctx.record("confirmation.dismiss", row.subject, _about(row), _OWN)
    return view(ctx.tx.existing(statements.OF_USER, **_key(ctx, row)))


view = views.view_of(
    Confirmation, shapes.ConfirmationShape, act=lambda row: json.loads(row.act)["act"]
)


def _ended(ctx: Context, confirmation: str, why: str) -> Confirmation:
    """End a decision that waits, as the person in whose name it came."""
    if ctx.caller is not None and ctx.caller.account is not None:
        raise NotFound("Decisions are confirmed where one signed in.", "Use the web or the CLI.")
    row = _own(ctx, confirmation)
    ctx.enter(row.company_id)
    ctx.allow_by_rule(_OWN)
    if row.ended_why is not None:
        raise Conflict(f"It was {row.ended_why} already.", "Nothing more is to be done.")
    if not ctx.tx.run(statements.END, id_=row.id, why=why):
        raise Conflict("It was not confirmed in time.", "Decide it anew.", code="expired")
    return row


def _own(ctx: Context, text: str) -> Confirmation:
    """Return a decision that came in the name of the calling person."""
    _person(ctx)
    row = ctx.tx.one(statements.OF_USER, id=text, user=ctx.actor.id)
    if row is not None:
        return row
    rows = ctx.tx.all(statements.WAITING_ANYWHERE, user=ctx.actor.id) if looks_like_id(text) else []
    return lookup.only([row for row in rows if is_part(row.id, text)], "confirmation")


def _key(ctx: Context, row: Confirmation) -> dict[str, Any]:
    return {"id": row.id, "user": ctx.actor.id}


def _about(row: Confirmation) -> dict[str, str]:
    return {"confirmation": row.id, "decision": row.title, "via": row.account}


def _person(ctx: Context) -> None:
    if ctx.actor.kind is not ActorKind.USER:
        raise NotFound("Only people confirm decisions.", "Decide it with the tool for that.")
