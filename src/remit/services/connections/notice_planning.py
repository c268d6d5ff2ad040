"""Planning of notices: which item is told to whom, in which ways, alone, in a digest, or as an
escalation because another person did not decide in time.

A notice in a chat is shown once, in the person's own direct conversation, and marked when its items
were dealt with elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from remit.clock import Micros, from_iso
from remit.ids import UserId
from remit.model.messaging.channel import Binding
from remit.model.messaging.chat import LinkedAccount, Post
from remit.model.messaging.mail import DeliveryStatus
from remit.model.messaging.notice import DIGEST, ESCALATED, TRIAL, Notice, Rules, Way
from remit.model.organisation.principal import ActorKind, Principal
from remit.model.organisation.user import UserRole
from remit.model.spelling import spelled
from remit.services import shapes
from remit.services.chat import items, posts
from remit.services.command import FOR_REMIT, Context, logged, query
from remit.services.new_rows import new_in_line
from remit.services.screens import needs_you
from remit.services.shape_basics import JsonObject
from remit.store.messaging import channels as channel_statements
from remit.store.messaging import chat as chat_statements
from remit.store.messaging import confirmations
from remit.store.messaging import notices as statements
from remit.store.organisation import governance, people
from remit.store.organisation import halts as halt_statements

_DEALT_WITH = "✓ Dealt with."
_MOST_PEOPLE = 500
#: At most so many posts are updated; older ones stay as they are.
_MOST_SHOWN = 200
#: Items that need somebody, by kind and id.
Needs = dict[tuple[str, str], shapes.AwaitingShape]


@dataclass(frozen=True)
class Person:
    """A person who gets notices."""

    user: UserId
    rules: Rules
    #: The default ways, and all ways that work for this person.
    usual: tuple[str, ...]
    possible: tuple[str, ...]
    needs: Needs
    #: By channel, since when the person has a linked account there.
    linked: Mapping[str, Micros]

    def ways(self, kind: str) -> Sequence[str]:
        """Return the ways for a kind. If a route names only ways that do not work, the default
        ones."""
        routed = self.rules.ways(kind)
        if routed is None:
            return self.usual
        there = [way for way in routed if way in self.possible]
        return there if there or not routed or Way.BROWSER in routed else self.usual

    def ways_of_escalated(self, kind: str) -> Sequence[str]:
        if ESCALATED in self.rules.routes:
            return self.ways(ESCALATED)
        return self.ways(kind) or self.usual or self.possible


@query("notices.companies", FOR_REMIT)
def companies(ctx: Context, *, commands: Sequence[str]) -> list[str]:
    """Return the companies with somebody who gets notices; `commands` are the users with a
    command."""
    company_ids = list(ctx.tx.all(statements.COMPANIES_TO_LOOK_AT))
    for user in commands:
        company_ids += ctx.tx.all(statements.COMPANIES_OF, user=user)
    return list(dict.fromkeys(company_ids))


@logged("notices.look", FOR_REMIT)
def look(ctx: Context, *, company: str, commands: Sequence[str]) -> int:
    """Queue the new notices of a company and update shown posts; returns how many of both."""
    ctx.enter(company)
    ctx.lock_company()
    if ctx.tx.one(halt_statements.UNACCEPTED) is not None:
        return 0  # nothing of it goes out
    told = _people(ctx, commands)
    new = 0
    for person in told.values():
        new += _tell(ctx, person) + _digest(ctx, person) + _mark(ctx, person)
    for person in told.values():
        new += _escalate(ctx, person, told)
    # Including posts that people asked for, such as by /needs.
    for subject in ctx.tx.all(chat_statements.DECIDABLE, company=company, limit=_MOST_SHOWN):
        new += items.refresh(ctx, subject)
    return new


def new_notice(
    ctx: Context, user: UserId, way: str, item: Mapping[str, Any], due: Micros, **more: Any
) -> Notice:
    what = {"user_id": user, "way": way, "kind": item["kind"], "subject_id": item["id"]}
    notice = Notice(**{**new_in_line(ctx), **what, "next_at": due, **more})
    ctx.tx.add(notice)
    return notice


def needs_of(ctx: Context, user: str) -> Needs:
    """Return the items that need a person in the company, as that person would see them."""
    user_row = ctx.tx.one(people.USER, user=user)
    if user_row is None or ctx.tx.one(people.MEMBERSHIP, user=user) is None:
        return {}
    with ctx.acting_as(Principal(ActorKind.USER, user_row.id, user_row.name)):
        return {(item["kind"], item["id"]): item for item in needs_you.here(ctx)}


def _people(ctx: Context, commands: Sequence[str]) -> dict[str, Person]:
    hooked = {hook.user_id for hook in ctx.tx.all(statements.HOOKS)}
    ruled = {row.user_id: row for row in ctx.tx.all(statements.ALL_RULES)}
    persons: dict[str, Person] = {}
    linked = ctx.tx.all(statements.LINKED_USERS)
    named = [*sorted(hooked), *sorted(linked), *commands, *ruled]
    for user in dict.fromkeys(map(UserId, named)):
        ways = [Way.WEBHOOK.value] if user in hooked else []
        ways += [Way.COMMAND.value] if user in commands else []
        chats = chats_of(ctx, user)
        rules = Rules.read(ruled[user].rules) if user in ruled else Rules()
        needs = needs_of(ctx, user)
        since = {kind: min(_linked_since(ctx, user, kind)) for kind in chats}
        persons[user] = Person(user, rules, (*ways, *chats[:1]), (*ways, *chats), needs, since)
    return persons


def _tell(ctx: Context, person: Person) -> int:
    """Queue a notice for each item, unless it belongs in the digest or is too recent. A letter of
    before the person linked an account is no news there."""
    new = 0
    for item in person.needs.values():
        since = from_iso(item["since"]) if item["since"] else ctx.now
        if person.rules.is_gathered(item["kind"]) or not person.rules.is_told(since, ctx.now):
            continue
        for way in person.ways(item["kind"]):
            is_old = item["kind"] == "mail" and since < person.linked.get(way, 0)
            if not is_old and not _is_asked_there(ctx, person, way, item):
                new += _tell_of(ctx, person, way, item)
    return new


def _is_asked_there(ctx: Context, person: Person, way: str, item: Mapping[str, Any]) -> bool:
    """Return whether a decision to confirm came by this way, where the answer to it says so."""
    if item["kind"] != "confirmation":
        return False
    row = ctx.tx.one(confirmations.OF_USER, id=item["id"], user=person.user)
    return row is not None and row.account.partition(":")[0] == way


def _tell_of(ctx: Context, person: Person, way: str, item: Mapping[str, Any], **more: Any) -> int:
    due = person.rules.not_before(item["kind"], ctx.now)
    if _is_known(ctx, person, way, item):
        return _tell_again(ctx, person, way, item, due)
    new_notice(ctx, person.user, way, item, due, **more)
    return 1


def _is_known(ctx: Context, person: Person, way: str, item: Mapping[str, Any]) -> bool:
    about = {"user": person.user, "way": way, "kind": item["kind"], "subject": item["id"]}
    return ctx.tx.one(statements.KNOWN, **about) is not None


def _tell_again(
    ctx: Context, person: Person, way: str, item: Mapping[str, Any], due: Micros
) -> int:
    """Queue a notice in a chat again if its item was asked for anew since; returns how many that
    are. The outside of a webhook would take it for a repeat."""
    since = _asked_at(ctx, item)
    if way in tuple(Way) or not 0 < since <= ctx.now:  # the clock may have been set back
        return 0
    about = {"by_way": way, "of_kind": item["kind"], "subject": item["id"]}
    return ctx.tx.run(statements.RENEW, **about, user=person.user, since=since, due=due)


def _asked_at(ctx: Context, item: Mapping[str, Any]) -> Micros:
    """Return when an item was asked for last, which may be again after it was sent back; 0 for one
    that is asked for once."""
    if item["kind"] == "submission":
        return from_iso(item["since"]) if item["since"] else 0
    if item["kind"] == "approval":
        approval = items.approval_of(ctx, item["id"])
        about = {"approval": approval.id, "number": approval.revision}
        revision = ctx.tx.one(governance.REVISION, **about) if approval.revision > 1 else None
        return revision.created_at if revision is not None else 0
    return 0


def _digest(ctx: Context, person: Person) -> int:
    """Queue the daily digest, if its time has come since the last one."""
    stored = ctx.tx.one(statements.RULES, user=person.user)
    slot = person.rules.last_digest(ctx.now)
    if stored is None or not person.rules.digest or slot == stored.digested_at:
        return 0
    ctx.tx.run(statements.DIGESTED, user=person.user, at=slot)
    if slot < stored.digested_at:
        return 0  # the clock was set back; that digest has told of these items
    by_way: dict[str, list[shapes.AwaitingShape]] = {}
    for item in person.needs.values():
        for way in person.ways(item["kind"]) if person.rules.is_gathered(item["kind"]) else ():
            if not _is_known(ctx, person, way, item):
                by_way.setdefault(way, []).append(item)
    for way, together in by_way.items():
        due = person.rules.not_before(DIGEST, ctx.now)
        # A digest is its own subject; its items count as told from now on.
        about = ctx.ids.new()
        digest = new_notice(ctx, person.user, way, {"kind": DIGEST, "id": about}, due, id=about)
        ended = {"status": DeliveryStatus.DONE, "ended_at": ctx.now, "ended_why": "in a digest"}
        for item in together:
            new_notice(ctx, person.user, way, item, ctx.now, digest_id=digest.id, **ended)
    return len(by_way)


def _mark(ctx: Context, person: Person) -> int:
    """Mark posts in chats as settled once their items are dealt with."""
    about = {"company": ctx.company, "user": person.user, "limit": _MOST_SHOWN}
    shown = ctx.tx.all(statements.CHANGEABLE, **about)
    return sum(_settle(ctx, notice, person.needs) for notice in shown)


def _escalate(ctx: Context, person: Person, told: Mapping[str, Person]) -> int:
    """Escalate overdue items: tell the next person who can decide."""
    if not person.rules.escalate_minutes:
        return 0
    deputies = [told[user] for user in _deputies(ctx, person) if user in told]
    new = 0
    for about, item in person.needs.items():
        since = from_iso(item["since"]) if item["since"] else ctx.now
        if not person.rules.is_late(since, ctx.now):
            continue
        for deputy in deputies:
            ways = deputy.ways_of_escalated(item["kind"]) if about in deputy.needs else ()
            for way in ways:
                new += _tell_of(ctx, deputy, way, item, escalated_from=person.user)
            if ways:
                break  # only the next person escalates further
    return new


def _deputies(ctx: Context, person: Person) -> Sequence[str]:
    """Deputies of a person: the one they named, or the other board members, next in line first."""
    if person.rules.escalate_to:
        return [person.rules.escalate_to]
    members = ctx.tx.all(people.MEMBERS, after="", limit=_MOST_PEOPLE)
    board = [member for member in members if member.role is UserRole.BOARD]
    board.sort(key=lambda member: (member.created_at, member.user_id))
    order = [member.user_id for member in board]
    if person.user not in order:
        return order
    at = order.index(person.user)
    return [*order[at + 1 :], *order[:at]]


# ── in chats ────────────────────────────────────────────────────────────────────────────────────


def chats_of(ctx: Context, user: str) -> list[str]:
    """Return the channels that a person can be told by, the default one first: that which the
    person used last, e-mail after chats, because it is read later."""
    linked = [account for account in _linked(ctx, user) if _binding(ctx, account) is not None]
    linked.sort(key=lambda account: (account.kind == "email", -account.used_at))
    return list(dict.fromkeys(account.kind for account in linked))


def show(ctx: Context, notice: Notice, document: Mapping[str, Any]) -> Post | None:
    """Post a notice in the person's own conversation; None if they are not linked there any
    more."""
    for account in _linked(ctx, notice.user_id):
        binding = _binding(ctx, account) if account.kind == notice.way else None
        if binding is not None:
            user = ctx.tx.existing(people.USER, user=notice.user_id)
            # The notice is rendered with its receiver's rights.
            with ctx.acting_as(Principal(ActorKind.USER, user.id, user.name)):
                return _post(ctx, binding, account.conversation, document)
    return None


def _settle(ctx: Context, notice: Notice, needs: Mapping[tuple[str, str], object]) -> int:
    """Mark the settled items of a shown notice; returns 1 if its post changed."""
    content: JsonObject = json.loads(notice.told or "{}")
    told = content.get("items", [content])
    over = [entry for entry in told if (entry["kind"], entry["subject"]) not in needs]
    post = ctx.tx.one(chat_statements.POSTS.row, post=notice.post_id)
    if post is None or notice.kind == TRIAL or len(over) <= notice.settled:
        return 0
    ctx.tx.run(statements.SETTLE, notice=notice.id, number=len(over))
    if not posts.can_edit(notice.way):
        return 0
    user = ctx.tx.existing(people.USER, user=notice.user_id)
    with ctx.acting_as(Principal(ActorKind.USER, user.id, user.name)):
        if notice.kind == "mail" and post.subject:
            posts.mark(ctx, post, _DEALT_WITH)
        elif post.subject:
            items.refresh(ctx, post.subject)
        else:
            for item in over:
                item["settled"] = True
            posts.revise(ctx, post, text_of(content))
    return 1


def state(ctx: Context, notice: Notice) -> tuple[DeliveryStatus, str | None]:
    """State of a notice, or of its post, if it is shown in a chat."""
    post = ctx.tx.one(chat_statements.POSTS.row, post=notice.post_id) if notice.post_id else None
    return (notice.status, notice.ended_why) if post is None else (post.status, post.ended_why)


def text_of(document: Mapping[str, Any]) -> str:
    """Text of a notice in a chat, in which the words of others end no line."""
    lines = [f"{document['company']}: {document['title']}" if document["company"] else ""]
    if document.get("escalatedFrom"):
        lines.append(f"{document['escalatedFrom']} did not decide it in time.")
    for item in document.get("items", ()):
        done = " ✓" if item.get("settled") else ""
        lines.append(f"- {item['kind'].replace('_', ' ')}: {item['title']}{done}")
    if document.get("agent"):
        lines.append(f"{document['kind'].replace('_', ' ')}, from {document['agent']}")
    lines += [str(document[key]) for key in ("cause", "next") if document.get(key)]
    shown = [spelled(" ".join(line.split())) for line in lines]
    return "\n".join([*shown, *([_DEALT_WITH] if document.get("settled") else [])])


def _post(ctx: Context, binding: Binding, conversation: str, document: Mapping[str, Any]) -> Post:
    kind, subject = document["kind"], document["subject"]
    shown = items.show(ctx, binding, conversation, kind, subject)
    return shown or posts.put(ctx, binding, conversation, text_of(document))


def _linked(ctx: Context, user: str) -> list[LinkedAccount]:
    """Return the accounts that are linked through bindings of this company. The operator of another
    company's bot could read what is sent through it."""
    accounts = ctx.tx.all(chat_statements.ACCOUNTS_OF_USER, user=user)
    return [account for account in accounts if account.company_id == ctx.company]


def _linked_since(ctx: Context, user: str, kind: str) -> list[Micros]:
    return [account.created_at for account in _linked(ctx, user) if account.kind == kind]


def _binding(ctx: Context, account: LinkedAccount) -> Binding | None:
    binding = ctx.tx.one(channel_statements.BINDING_EVER, binding=account.binding_id)
    return binding if binding is not None and binding.removed_at is None else None
