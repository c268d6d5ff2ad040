"""Telling people outside that something needs them: once for each thing and each way.

A person can name a webhook; whoever runs the instance can name a command for them, in a file of
the instance that no verb writes. Each notice is held by a lease while it goes out, as mail to
channels is, and what was decided meanwhile does not go out any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remit.channels import registry
from remit.clock import MINUTE, SECOND, Micros
from remit.errors import BadInput, Conflict
from remit.ids import CompanyId, TokenKind, UserId, new_token
from remit.model.decision import Decision, Effect
from remit.model.mail import MOST_ATTEMPTS
from remit.model.principal import ActorKind, Principal
from remit.model.wish import Hook, Notice, NoticeStatus, Way
from remit.services import lookup, needs_you, views
from remit.services.command import Answer, Context, command, logged, query
from remit.services.running import system_only
from remit.store import notices as statements
from remit.store import people
from remit.store.statement import row

#: Between the attempts.
BACKOFF = (10 * SECOND, 2 * MINUTE)
#: Longer than any attempt takes; then somebody else tries.
LEASE_TIME = 90 * SECOND
MOST_AT_ONCE = 100
MOST_SHOWN = 20
LONGEST_WHY = 300
#: What a person asks for to see whether it arrives, and not again before this.
TRIAL = "test"
TRIAL_PAUSE = 5 * SECOND
_SYSTEM = Decision(Effect.ALLOW, "system", "Remit does this by itself.", "rule:system")


@query("notices.show")
def show(ctx: Context, *, company: str | None = None) -> dict[str, Any]:
    """Where the calling person is told, and what became of the last notices."""
    me = _me(ctx, company)
    hook = ctx.tx.one(statements.HOOK, company=ctx.company, user=me)
    latest = ctx.tx.all(statements.LATEST, user=me, limit=MOST_SHOWN)
    return {
        "user_id": me,
        "company_id": ctx.company,
        "webhook": None if hook is None else hook.url,
        "latest": [_view(one) for one in latest if one.company_id == ctx.company],
    }


@command("notices.set_webhook")
def set_webhook(ctx: Context, *, company: str | None = None, url: str | None) -> Answer:
    """Have the calling person told at an address, or at none. What is sent is signed with a key
    that is shown once."""
    me = _me(ctx, company)
    if url is not None:
        registry.validate_url(url)
    assert ctx.company is not None
    ctx.tx.run(statements.DELETE_HOOK, company=ctx.company, user=me)
    if url is not None:
        key = new_token(TokenKind.CHANNEL)
        hook = Hook(CompanyId(ctx.company), me, url, key, ctx.now)
        ctx.tx.run(statements.INSERT_HOOK, **row(hook))
        ctx.secrets["key"] = key
    ctx.record("notice.set", f"user:{me}", {"webhook": url is not None})
    return {"user_id": me, "company_id": ctx.company, "webhook": url, "key": None}


@command("notices.try_out")
def try_out(ctx: Context, *, company: str | None = None, by_command: bool = False) -> Answer:
    """Tell the calling person that this is a test, in every way that they are told; with
    `by_command` also by the command that whoever runs the instance named for them."""
    me = _me(ctx, company)
    ways = [Way.COMMAND] if by_command else []
    if ctx.tx.one(statements.HOOK, company=ctx.company, user=me) is not None:
        ways.append(Way.WEBHOOK)
    if not ways:
        raise Conflict("You are told nowhere outside.", "Name a webhook first.")
    before = ctx.tx.all(statements.LATEST, user=me, limit=MOST_SHOWN)
    if any(one.kind == TRIAL and one.created_at + TRIAL_PAUSE > ctx.now for one in before):
        raise Conflict("That was tried just now.", "Wait a few seconds.")
    trial = {"kind": TRIAL, "id": ctx.ids.new()}
    for way in ways:
        ctx.tx.run(statements.INSERT_NOTICE, **row(_new(ctx, me, way, trial)))
    ctx.record("notice.try", f"user:{me}", {"ways": [way.value for way in ways]})
    return {"user_id": me, "company_id": ctx.company, "ways": [way.value for way in ways]}


def _me(ctx: Context, company: str | None) -> UserId:
    lookup.company_of_caller(ctx, company)
    if ctx.actor.kind is not ActorKind.USER:
        raise BadInput("Only people are told.", "Agents are started by their mail.")
    ctx.accept_rule(views.OWN)
    return UserId(ctx.actor.id)


def _view(notice: Notice) -> dict[str, Any]:
    return {
        "id": notice.id,
        "way": notice.way.value,
        "kind": notice.kind,
        "subject_id": notice.subject_id,
        "status": notice.status.value,
        "attempt": notice.attempt,
        "why": notice.ended_why,
        "created_at": views.time(notice.created_at),
        "ended_at": views.time(notice.ended_at),
    }


# ── for the process that tells ──────────────────────────────────────────────────────────────────


@query("notices.companies")
def companies(ctx: Context, *, commands: Sequence[str]) -> list[str]:
    """Companies with somebody who is to be told; `commands` names the users that have one."""
    system_only(ctx)
    found = list(ctx.tx.all(statements.COMPANIES_WITH_HOOKS))
    for user in commands:
        found += ctx.tx.all(statements.COMPANIES_OF, user=user)
    return list(dict.fromkeys(found))


@logged("notices.look")
def look(ctx: Context, *, company: str, commands: Sequence[str]) -> int:
    """Put what needs somebody and is new to them in line; answers how much that is."""
    system_only(ctx)
    ctx.enter(company)
    ctx.take_turn()
    told = [(hook.user_id, Way.WEBHOOK) for hook in ctx.tx.all(statements.HOOKS, company=company)]
    told += [(UserId(user), Way.COMMAND) for user in commands]
    new = 0
    for user, way in told:
        for item in _needs(ctx, user):
            about = {"user": user, "way": way.value, "kind": item["kind"], "subject": item["id"]}
            if ctx.tx.one(statements.KNOWN, **about) is None:
                ctx.tx.run(statements.INSERT_NOTICE, **row(_new(ctx, user, way, item)))
                new += 1
    return new


def _new(ctx: Context, user: UserId, way: Way, item: dict[str, Any]) -> Notice:
    return Notice(
        id=ctx.ids.new(),
        company_id=CompanyId(ctx.company or ""),
        user_id=user,
        way=way,
        kind=item["kind"],
        subject_id=item["id"],
        status=NoticeStatus.QUEUED,
        next_at=ctx.now,
        attempt=0,
        worker=None,
        epoch=0,
        lease_until=None,
        created_at=ctx.now,
        ended_at=None,
        ended_why=None,
    )


def _needs(ctx: Context, user: str) -> list[dict[str, Any]]:
    """What needs a person in the company, as they would see it themselves."""
    found = ctx.tx.one(people.USER, user=user)
    if found is None or ctx.tx.one(people.MEMBERSHIP, company=ctx.company, user=user) is None:
        return []
    with ctx.acting_as(Principal(ActorKind.USER, found.id, found.name)):
        return needs_you.here(ctx)


@query("notices.ready")
def ready(ctx: Context, *, commands: Sequence[str]) -> list[str]:
    """Notices that can go out now; by command only those of users who have one here."""
    system_only(ctx)
    found = ctx.tx.all(statements.READY, now=ctx.now, limit=MOST_AT_ONCE)
    return [one.id for one in found if one.way is Way.WEBHOOK or one.user_id in commands]


@query("notices.next_due")
def next_due(ctx: Context) -> Micros | None:
    """When a notice is tried again."""
    system_only(ctx)
    return ctx.tx.one(statements.NEXT_DUE, now=ctx.now)


@query("notices.silent")
def silent(ctx: Context, *, alone: bool = False) -> list[tuple[str, int]]:
    """What somebody set out to deliver who was not heard of; with `alone`, all that is held."""
    system_only(ctx)
    found = ctx.tx.all(statements.LEASED)
    return [(one.id, one.epoch) for one in found if alone or (one.lease_until or 0) <= ctx.now]


@logged("notices.claim")
def claim(
    ctx: Context, *, notice: str, worker: str, lease: Micros = LEASE_TIME
) -> dict[str, Any] | None:
    """Set out to deliver a notice: what is needed for it. None when somebody else does, or what it
    is about does not need the person any more."""
    found = _entered(ctx, notice)
    ctx.take_turn()
    item = _item(ctx, found)
    hook = ctx.tx.one(statements.HOOK, company=ctx.company, user=found.user_id)
    if item is None or (found.way is Way.WEBHOOK and hook is None):
        _close(ctx, found, "it was dealt with before" if item is None else "the webhook is gone")
        return None
    if not ctx.tx.run(
        statements.CLAIM, notice=notice, now=ctx.now, until=ctx.now + lease, new_worker=worker
    ):
        return None
    company = ctx.tx.one(people.COMPANY, company=ctx.company)
    agent = lookup.agent_row(ctx, item["agent_id"]) if item["agent_id"] else None
    return {
        "epoch": found.epoch + 1,
        "user_id": found.user_id,
        "way": found.way.value,
        "url": hook.url if hook is not None else None,
        "key": hook.key if hook is not None else None,
        "document": {
            "id": found.id,
            "kind": item["kind"],
            "subject": item["id"],
            "title": item["title"],
            "agent": agent.name if agent else None,
            "company": company.name if company else None,
            "since": item["since"],
            "cause": item["cause"],
            "next": item["next"],
        },
    }


def _item(ctx: Context, notice: Notice) -> dict[str, Any] | None:
    """What a notice is about, if that still needs its person."""
    here = ctx.tx.one(people.MEMBERSHIP, company=ctx.company, user=notice.user_id)
    if notice.kind == TRIAL and here is not None:
        return {
            "kind": TRIAL,
            "id": notice.subject_id,
            "title": "This is a test",
            "agent_id": None,
            "since": views.time(notice.created_at),
            "cause": "You asked for it.",
            "next": "",
        }
    about = (notice.kind, notice.subject_id)
    found = _needs(ctx, notice.user_id)
    return next((one for one in found if (one["kind"], one["id"]) == about), None)


@command("notices.delivered")
def delivered(ctx: Context, *, notice: str, epoch: int) -> Answer:
    """The person was told."""
    found = _entered(ctx, notice)
    _end(ctx, found, epoch, NoticeStatus.DONE, "delivered")
    ctx.record("notice.deliver", f"notice:{notice}", _about(found), _SYSTEM)
    return {"id": notice, "status": NoticeStatus.DONE.value}


@command("notices.failed")
def failed(
    ctx: Context,
    *,
    notice: str,
    epoch: int,
    why: str,
    for_good: bool = False,
    backoff: tuple[Micros, ...] = BACKOFF,
) -> Answer:
    """It did not get through: it is tried again later, or given up if that happened too often."""
    found = _entered(ctx, notice)
    why = why[:LONGEST_WHY]
    over = for_good or found.attempt >= MOST_ATTEMPTS
    if over:
        _end(ctx, found, epoch, NoticeStatus.DEAD, why)
    elif not ctx.tx.run(
        statements.RETRY,
        notice=notice,
        epoch=epoch,
        new_next=ctx.now + backoff[min(found.attempt, len(backoff)) - 1],
        why=why,
    ):
        raise _lost()
    ctx.record("notice.fail", f"notice:{notice}", {**_about(found), "why": why}, _SYSTEM)
    status = NoticeStatus.DEAD if over else NoticeStatus.QUEUED
    return {"id": notice, "status": status.value}


def _entered(ctx: Context, notice: str) -> Notice:
    """A notice as it is, for Remit itself."""
    system_only(ctx)
    found = ctx.tx.one(statements.NOTICE, notice=notice)
    assert found is not None
    ctx.enter(found.company_id)
    ctx.accept_rule(_SYSTEM)
    again = ctx.tx.one(statements.NOTICE, notice=notice)  # the turn may have taken a while
    assert again is not None
    return again


def _end(ctx: Context, found: Notice, epoch: int, status: NoticeStatus, why: str) -> None:
    if not ctx.tx.run(
        statements.END_HELD,
        notice=found.id,
        epoch=epoch,
        new_status=status.value,
        now=ctx.now,
        why=why,
    ):
        raise _lost()


def _close(ctx: Context, found: Notice, why: str) -> None:
    ctx.tx.run(
        statements.END,
        notice=found.id,
        new_status=NoticeStatus.CANCELLED.value,
        now=ctx.now,
        why=why,
    )


def _lost() -> Conflict:
    return Conflict("The notice is over, or somebody else's.", code="lost")


def _about(found: Notice) -> dict[str, Any]:
    return {
        "user": found.user_id,
        "way": found.way.value,
        "kind": found.kind,
        "subject": found.subject_id,
        "attempt": found.attempt,
    }
