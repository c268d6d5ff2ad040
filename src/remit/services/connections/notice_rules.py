"""Rules of notices: which kinds a person gets, in which ways and when; each person sets their
own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

from remit.channels import registry
from remit.clock import from_iso
from remit.errors import BadInput
from remit.ids import CompanyId, UserId
from remit.model.messaging import notice as model
from remit.model.messaging.schedule import zone
from remit.model.organisation.principal import ActorKind
from remit.model.organisation.user import UserRole
from remit.model.text import name_key
from remit.services import lookup, shapes, views
from remit.services.command import Arguments, Context, command, query
from remit.services.fields import Cleared, CompanyRef, Help, Most, Range, Text, UserRef, Words
from remit.services.screens import needs_you
from remit.services.surfaces import AsRoute
from remit.store.messaging import notices as statements
from remit.store.organisation import people

Kinds = Annotated[Sequence[Annotated[str, Words(model.KINDS)]], Most(len(model.KINDS))]
Minutes = Annotated[int, Range(0, model.LONGEST_MINUTES)]


@command(
    "notice_rules.change", AsRoute("PATCH /companies/{companyId}/notify/rules", "set_notify_rules")
)
def change(
    ctx: Context,
    *,
    company: CompanyRef | None = None,
    routes: Annotated[
        Mapping[str, object],
        Help("By kind, `all` or `escalated`: a list of ways; null for the usual ones again."),
    ]
    | None = None,
    time_zone: Annotated[str, Text(60), Help("Such as Europe/Zurich.")] | None = None,
    quiet: Annotated[
        str, Text(20, empty=True), Help("Quiet hours, such as 22:00-07:00."), Cleared("for none")
    ]
    | None = None,
    urgent: Annotated[Kinds, Help("Kinds that are told in quiet hours, too.")] | None = None,
    digest: Annotated[Kinds, Help("Kinds that are told together once a day.")] | None = None,
    digest_at: Annotated[str, Text(10), Help("When, such as 08:00.")] | None = None,
    after_minutes: Annotated[Minutes, Help("Be told only of what waited so long.")] | None = None,
    escalate_minutes: Annotated[
        Minutes, Help("Have somebody else told of what waited so long; 0 for never.")
    ]
    | None = None,
    escalate_to: Annotated[
        UserRef,
        Text(200, empty=True),
        Help("The person who is told then."),
        Cleared("for the next member of the board"),
    ]
    | None = None,
) -> shapes.NoticeRulesShape:
    """Say which kinds of notices the calling person gets, where and when. Omitted settings
    stay as they are."""
    me = allow_own(ctx, company)
    was = of(ctx, me)
    settings: Arguments = {
        "routes": None if routes is None else _routes(was.routes, routes),
        "time_zone": None if time_zone is None else str(zone(time_zone)),
        "urgent": None if urgent is None else tuple(urgent),
        "digest": None if digest is None else tuple(digest),
        "digest_at": None if digest_at is None else model.minute_of(digest_at, "digestAt"),
        "after_minutes": after_minutes,
        "escalate_minutes": escalate_minutes,
    }
    rules = replace(was, **{name: value for name, value in settings.items() if value is not None})
    if quiet is not None:
        rules = replace(rules, quiet=model.span_of(quiet))
    if escalate_to is not None:
        rules = replace(rules, escalate_to=_deputy(ctx, me, escalate_to))
    ctx.tx.run(statements.DELETE_RULES, user=me)
    stored = model.StoredRules(CompanyId(ctx.company or ""), me, rules.written(), ctx.now)
    ctx.tx.add(stored)
    ctx.tx.run(statements.RETIME, user=me)
    ctx.record("notice.set", f"user:{me}", {"rules": model.shown(rules)})
    return view(ctx, rules)


@query("notice_rules.news")
def news(ctx: Context) -> list[shapes.NewsShape]:
    """Items that await the calling person, and whether their browser is to notify of each now."""
    items = needs_you.listing.body(ctx)
    known: dict[str, model.Rules] = {}
    entries: list[shapes.NewsShape] = []
    for item in items:
        company = item["company_id"] or ""
        rules = known.setdefault(company, of(ctx, ctx.actor.id, company))
        ways = rules.ways(item["kind"])
        told = (
            (ways is None or model.Way.BROWSER in ways)
            and not rules.is_gathered(item["kind"])
            and (item["since"] is None or rules.is_told(from_iso(item["since"]), ctx.now))
            and rules.not_before(item["kind"], ctx.now) <= ctx.now
        )
        entries.append(
            {"kind": item["kind"], "id": item["id"], "title": item["title"], "tell": told}
        )
    return entries


def of(ctx: Context, user: str, company: str | None = None) -> model.Rules:
    """Return a person's rules; the default tells everything at once."""
    stored = ctx.tx.one(statements.RULES, company=company or ctx.company, user=user)
    return model.Rules() if stored is None else model.Rules.read(stored.rules)


def allow_own(ctx: Context, company: str | None) -> UserId:
    lookup.company_of_caller(ctx, company)
    if ctx.actor.kind is not ActorKind.USER:
        raise BadInput("Only people are told.", "Agents are started by their mail.")
    ctx.allow_by_rule(views.OWN)
    return UserId(ctx.actor.id)


def view(ctx: Context, rules: model.Rules) -> shapes.NoticeRulesShape:
    shown = model.shown(rules)
    deputy = ctx.tx.one(people.USER, user=rules.escalate_to) if rules.escalate_to else None
    return {**shown, "escalate_to": deputy.name if deputy else None}  # type: ignore[typeddict-item]


def _routes(
    was: Mapping[str, tuple[str, ...]], changes: Mapping[str, Any]
) -> dict[str, tuple[str, ...]]:
    routes = dict(was)
    ways = {*model.Way, *registry.installed.types()}
    for kind, named in changes.items():
        if kind not in (*model.KINDS, model.ALL, model.ESCALATED):
            raise BadInput(
                f"{kind[:40]!r} is no kind of notice.",
                f"Kinds: {', '.join((*model.KINDS, model.ALL))}.",
            )
        if named is None:
            routes.pop(kind, None)
            continue
        if not isinstance(named, list) or not all(isinstance(way, str) for way in named):
            raise BadInput(f"routes: {kind} must be a list of ways.", "Give [] for nowhere.")
        unknown = [way for way in named if way not in ways]
        if unknown:
            raise BadInput(
                f"{unknown[0][:40]!r} is no way of telling you.",
                f"Ways: {', '.join(sorted(ways))}.",
            )
        routes[kind] = tuple(dict.fromkeys(named))
    return routes


def _deputy(ctx: Context, me: str, name: str) -> str | None:
    if not name:
        return None
    user = ctx.tx.one(people.USER_BY_NAME, name_key=name_key(name.removeprefix("user:")))
    part = user and ctx.tx.one(people.MEMBERSHIP, user=user.id)
    if user is None or not part or part.role is not UserRole.BOARD or user.id == me:
        raise BadInput("escalateTo must be another member of this board.", "See `remit user list`.")
    return user.id
