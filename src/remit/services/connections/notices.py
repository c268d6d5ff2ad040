"""Notices to people outside: once for each item and each way.

A person can set a webhook; the operator of the machine can set a command for a person, in a file of
the instance that no verb writes. A notice is leased while it is delivered, like mail to channels,
and is cancelled if its item was dealt with before.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, cast

from remit.channels import registry
from remit.clock import SECOND, Micros
from remit.errors import Conflict
from remit.ids import CompanyId, TokenKind, new_token
from remit.model.messaging.mail import DeliveryStatus
from remit.model.messaging.notice import DIGEST, TRIAL, Hook, Notice, Way
from remit.model.text import plural
from remit.services import lookup, shapes, views
from remit.services.command import FOR_REMIT, Context, command, logged, query
from remit.services.connections import notice_planning, notice_rules
from remit.services.fields import Cleared, CompanyRef, Help, Text
from remit.services.queues import DELIVERY_LEASE, MOST_AT_ONCE, Deliveries
from remit.services.surfaces import AsRoute
from remit.services.verbs import Added
from remit.store.messaging import notices as statements
from remit.store.organisation import people

MOST_SHOWN = 20
LONGEST_WEBHOOK = 2_000
#: Least time between two tests that a person asks for.
TRIAL_PAUSE = 5 * SECOND
_QUEUE = Deliveries(
    statements.QUEUE,
    delivered="notice.deliver",
    failed="notice.fail",
    about=lambda notice: {
        "user": notice.user_id,
        "way": notice.way,
        "kind": notice.kind,
        "subject": notice.subject_id,
        "attempt": notice.attempt,
    },
)


@query("notices.show")
def show(ctx: Context, *, company: str | None = None) -> shapes.NotifiedShape:
    """Return how the calling person is told, and the last notices."""
    me = notice_rules.allow_own(ctx, company)
    hook = ctx.tx.one(statements.HOOK, user=me)
    latest = ctx.tx.all(statements.LATEST, user=me, limit=MOST_SHOWN)
    return {
        "user_id": me,
        "company_id": ctx.company,
        "webhook": None if hook is None else hook.url,
        "chats": notice_planning.chats_of(ctx, me),
        "rules": notice_rules.view(ctx, notice_rules.of(ctx, me)),
        "latest": [_view(ctx, notice) for notice in latest if notice.company_id == ctx.company],
    }


@command(
    "notices.set_webhook",
    AsRoute("PATCH /companies/{companyId}/notify", "set_notify", spelled={"url": "webhook"}),
)
def set_webhook(
    ctx: Context,
    *,
    company: CompanyRef | None = None,
    url: Annotated[
        str,
        Text(LONGEST_WEBHOOK, empty=True, one_line=True),
        Help("Where to post what needs you, signed."),
        Cleared("for nowhere"),
    ]
    | None,
) -> shapes.WebhookShape:
    """Have the calling person told at an address, or at none. Posts are signed with a key
    that is shown once."""
    me = notice_rules.allow_own(ctx, company)
    if url:
        registry.validate_url(url)
    assert ctx.company is not None
    ctx.tx.run(statements.DELETE_HOOK, user=me)
    if url:
        key = new_token(TokenKind.CHANNEL)
        hook = Hook(CompanyId(ctx.company), me, url, key, ctx.now)
        ctx.tx.add(hook)
        ctx.secrets["key"] = key
    ctx.record("notice.set", f"user:{me}", {"webhook": bool(url)})
    return {"user_id": me, "company_id": ctx.company, "webhook": url or None, "key": None}


@command("notices.try_out")
def try_out(
    ctx: Context, *, company: str | None = None, by_command: bool = False
) -> shapes.TrialShape:
    """Send the calling person a test notice in every way that they are told; with `by_command` also
    by the command that the operator of the machine set for them."""
    me = notice_rules.allow_own(ctx, company)
    ways = [Way.COMMAND.value] if by_command else []
    if ctx.tx.one(statements.HOOK, user=me) is not None:
        ways.append(Way.WEBHOOK.value)
    ways += notice_planning.chats_of(ctx, me)
    if not ways:
        raise Conflict(
            "You are told nowhere outside.", "Name a webhook, or link a chat account, first."
        )
    before = ctx.tx.all(statements.LATEST, user=me, limit=MOST_SHOWN)
    if any(notice.kind == TRIAL and notice.created_at + TRIAL_PAUSE > ctx.now for notice in before):
        raise Conflict("That was tried just now.", "Wait a few seconds.")
    trial = {"kind": TRIAL, "id": ctx.ids.new()}
    for way in ways:
        notice_planning.new_notice(ctx, me, way, trial, ctx.now)
    ctx.record("notice.try", f"user:{me}", {"ways": ways})
    return {"user_id": me, "company_id": ctx.company, "ways": ways}


def _view(ctx: Context, notice: Notice) -> shapes.NoticeShape:
    status, why = notice_planning.state(ctx, notice)
    return _shown(notice, status=status.value, why=why)


_shown = views.view_of(Notice, shapes.NoticeShape, supplied={"status", "why"})


# ── for the process that delivers them ──────────────────────────────────────────────────────────


@query("notices.ready", FOR_REMIT)
def ready(ctx: Context, *, commands: Sequence[str]) -> list[str]:
    """Return the notices that are due; those by command only for users who have one here."""
    rows = ctx.tx.all(statements.READY, limit=MOST_AT_ONCE)
    return [row.id for row in rows if row.way != Way.COMMAND or row.user_id in commands]


next_due, expired, under_way = _QUEUE.looks("notices")
held, renew = _QUEUE.holds("notices"), _QUEUE.renews("notices")


@logged("notices.claim", FOR_REMIT)
def claim(
    ctx: Context, *, notice: str, worker: str, lease: Micros = DELIVERY_LEASE
) -> shapes.ClaimedNoticeShape | None:
    """Claim a notice. Returns what its delivery needs; None if another process has it, it has to
    wait, it was posted in a chat, or its item does not need the person any more."""
    notice_row = _QUEUE.entered(ctx, notice)
    ctx.lock_company()
    needs = notice_planning.needs_of(ctx, notice_row.user_id)
    hook = ctx.tx.one(statements.HOOK, user=notice_row.user_id)
    document = _document(ctx, notice_row, needs)
    if document is None or (notice_row.way == Way.WEBHOOK and hook is None):
        why = "it was dealt with before" if document is None else "the webhook is gone"
        _QUEUE.close(ctx, notice, DeliveryStatus.CANCELLED, why)
        return None
    due = notice_rules.of(ctx, notice_row.user_id).not_before(notice_row.kind, ctx.now)
    if due > ctx.now and notice_row.kind != TRIAL:
        ctx.tx.run(statements.POSTPONE, notice=notice, due=due)
        return None
    if notice_row.way not in tuple(Way):
        _show(ctx, notice_row, document)
        return None
    if not _QUEUE.claim(ctx, notice, worker, lease):
        return None
    return {
        "epoch": notice_row.epoch + 1,
        "user_id": notice_row.user_id,
        "way": notice_row.way,
        "url": hook.url if hook is not None else None,
        "key": hook.key if hook is not None else None,
        "document": document,
    }


def _show(ctx: Context, notice: Notice, document: shapes.NoticeDocumentShape) -> None:
    """Post a notice in a chat, which has a queue of its own, and end it in this one."""
    post = notice_planning.show(ctx, notice, document)
    if post is None:
        _QUEUE.close(ctx, notice.id, DeliveryStatus.CANCELLED, "you are not linked there any more")
        return
    ctx.tx.run(statements.SHOWN, notice=notice.id, shown=post.id, what=json.dumps(document))
    _QUEUE.close(ctx, notice.id, DeliveryStatus.DONE, "shown")


def _document(
    ctx: Context, notice: Notice, needs: notice_planning.Needs
) -> shapes.NoticeDocumentShape | None:
    """Content of a notice; None if its item does not need the person any more."""
    company = ctx.tx.one(people.COMPANY)
    name = company.name if company else None
    if notice.kind == TRIAL:
        if ctx.tx.one(people.MEMBERSHIP, user=notice.user_id) is None:
            return None
        return _of_itself(notice, name, "This is a test", cause="You asked for it.")
    if notice.kind == DIGEST:
        told = ctx.tx.all(statements.IN_DIGEST, digest=notice.id)
        keys = [(row.kind, row.subject_id) for row in told]
        items = [_said(ctx, needs[key]) for key in keys if key in needs]
        if not items:
            return None
        title = f"{plural(len(items), 'thing')} {'need' if len(items) > 1 else 'needs'} you"
        digest = _of_itself(notice, name, title, step="remit needs-you")
        return {**digest, "subject": notice.id, "items": items}
    item = needs.get((notice.kind, notice.subject_id))
    if item is None:
        return None
    late = ctx.tx.one(people.USER, user=notice.escalated_from) if notice.escalated_from else None
    content = {**_said(ctx, item), "escalatedFrom": late.name if late else None}
    return cast(shapes.NoticeDocumentShape, {"id": notice.id, "company": name, **content})


def _of_itself(
    notice: Notice, company: str | None, title: str, *, cause: str = "", step: str = ""
) -> shapes.NoticeDocumentShape:
    """Content of a notice without an item."""
    return {
        "id": notice.id,
        "company": company,
        "kind": notice.kind,
        "subject": notice.subject_id,
        "title": title,
        "agent": None,
        "since": views.time(notice.created_at),
        "cause": cause,
        "next": step,
    }


def _said(ctx: Context, item: shapes.AwaitingShape) -> shapes.ToldItemShape:
    agent = lookup.agent_row(ctx, item["agent_id"]) if item["agent_id"] else None
    return {
        "kind": item["kind"],
        "subject": item["id"],
        "title": item["title"],
        "agent": agent.name if agent else None,
        "since": item["since"],
        "cause": item["cause"],
        "next": item.get("next", ""),
    }


@command("notices.delivered", FOR_REMIT)
def delivered(ctx: Context, *, notice: str, epoch: int) -> shapes.EndedShape:
    """Mark a notice as delivered."""
    return _QUEUE.delivered(ctx, notice, epoch)


failed = _QUEUE.fails("notices", Added("retry_after", None))
take_over = _QUEUE.takes_over("notices")
