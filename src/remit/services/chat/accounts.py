"""Linked accounts: chat accounts of users, proved by a code that the user sent from them.

A signed-in user gets a code and sends it to an agent in a direct conversation. From then on
messages of that account have the user's authority, until the user or an operator revokes it, or the
token that the user was signed in with ends.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Mapping
from typing import Annotated

from remit.channels import registry
from remit.errors import BadInput, NotFound
from remit.ids import TokenId, UserId, is_id, new_code, token_digest
from remit.model.messaging.channel import Binding
from remit.model.messaging.chat import CODE_LASTS, LinkCode, LinkedAccount
from remit.model.messaging.confirmation import MailDecisions
from remit.model.organisation.decision import Decision, Effect
from remit.model.organisation.principal import ActorKind
from remit.services import lookup, shapes, views
from remit.services.command import Context, command, query
from remit.services.fields import Help, Reference, Text
from remit.services.new_rows import new_row
from remit.services.people import users
from remit.services.surfaces import AsCommand, AsRoute
from remit.store.messaging import chat as statements
from remit.store.organisation import people

_OWN = Decision(Effect.ALLOW, "self", "It is your own account.", "rule:self")
_CODE = re.compile(r"(?:/(?:start|link)(?:@\w+)?\s+)?([A-HJ-NP-Z2-9]{10})")
#: A person has a few devices, not hundreds.
MOST_ACCOUNTS = 50


@command(
    "linked_accounts.code",
    AsRoute("POST /linked-accounts", "link_account", 201, words="A code, shown this once."),
)
def code(
    ctx: Context, *, kind: Annotated[str, Text(40), Help("The kind of channel, such as telegram.")]
) -> shapes.LinkCodeShape:
    """A code that links one chat account to the user who asks, within fifteen minutes."""
    _allow_own(ctx)
    channel = registry.get(kind)
    if not channel.vouches:
        raise BadInput(
            f"{kind} cannot prove who speaks, so no account of it can be linked.",
            "Use a channel that can, such as telegram.",
        )
    linked = ctx.tx.all(statements.ACCOUNTS_OF_USER, user=ctx.actor.id)
    if len(linked) >= MOST_ACCOUNTS:
        raise BadInput(f"You have {MOST_ACCOUNTS} linked accounts.", "Revoke one first.")
    text = new_code()
    link_code = LinkCode(
        digest=token_digest(text),
        user_id=UserId(ctx.actor.id),
        kind=kind,
        created_at=ctx.now,
        expires_at=ctx.now + CODE_LASTS,
        made_with=origin.id if (origin := users.origin(ctx)) is not None else None,
    )
    # One at a time: the next code invalidates one that somebody else may have seen.
    ctx.tx.run(statements.FORGET_CODES, user=ctx.actor.id, kind=kind)
    ctx.tx.add(link_code)
    ctx.record("linked_account.code", f"user:{ctx.actor.id}", {"kind": kind})
    ctx.secrets["code"] = text
    return {"kind": kind, "code": None, "expires_at": views.time(link_code.expires_at)}


@query(
    "linked_accounts.mine",
    AsRoute("GET /linked-accounts", "list_linked_accounts", page="id"),
    AsCommand("link list", "List your linked accounts."),
)
def mine(ctx: Context) -> list[shapes.LinkedAccountShape]:
    """The chat accounts that are linked to the calling person."""
    _person(ctx)
    return [view(account) for account in ctx.tx.all(statements.ACCOUNTS_OF_USER, user=ctx.actor.id)]


@command(
    "linked_accounts.revoke",
    AsRoute("DELETE /linked-accounts/{id}", "revoke_linked_account", spelled={"account": "id"}),
    AsCommand("link revoke", said="{label} is not linked any more."),
)
def revoke(
    ctx: Context, *, account: Annotated[str, Reference("linked account")]
) -> shapes.LinkedAccountShape:
    """End one's own link; an operator may end anybody's. Its messages are a stranger's then."""
    _allow_own(ctx)
    account_row = ctx.tx.one(statements.ACCOUNT, id=account) if is_id(account) else None
    if account_row is None or (account_row.user_id != ctx.actor.id and not ctx.actor.operator):
        raise NotFound("There is no such linked account.", "See `remit link list`.")
    ctx.tx.run(statements.REVOKE_ACCOUNT, id_=account_row.id)
    ctx.record("linked_account.revoke", f"user:{account_row.user_id}", _about(account_row))
    return view(account_row)


def code_in(text: str) -> str | None:
    """Return the code that a text consists of, if it does."""
    match = _CODE.fullmatch(text.strip())
    return match[1] if match else None


def redeem(ctx: Context, binding: Binding, text: str) -> LinkCode:
    """Use up a code that was sent through a binding; refused if it is not good there."""
    digest = token_digest(text)
    link_code = ctx.tx.one(statements.CODE, digest=digest)
    good = (
        link_code is not None
        and hmac.compare_digest(link_code.digest, digest)
        and link_code.kind == binding.adapter_type
        and abs(ctx.now - link_code.created_at) < CODE_LASTS  # the clock may have been set back
        and ctx.tx.one(people.MEMBERSHIP, company=binding.company_id, user=link_code.user_id)
        is not None
    )
    # If several messages bring the code at the same time, one alone finds it unused.
    if link_code is None or not good or not ctx.tx.run(statements.USE_CODE, code=digest):
        raise BadInput("That code is not good here, or not any more.", "Get a new one.")
    return link_code


def link(
    ctx: Context,
    binding: Binding,
    sender: Mapping[str, str],
    place: str,
    made_with: TokenId | None,
) -> None:
    """Link an account to the acting user, who got the code with `made_with`."""
    kind, realm = binding.adapter_type, realm_of(binding)
    whose = {"of_kind": kind, "of_realm": realm, "of_account": sender["id"]}
    ctx.tx.run(statements.REVOKE_ACCOUNT_OF, **whose)
    account = LinkedAccount(
        **new_row(ctx),
        user_id=UserId(ctx.actor.id),
        kind=kind,
        realm=realm,
        account=sender["id"],
        label=sender["name"],
        conversation=place,
        binding_id=binding.id,
        used_at=ctx.now,
        made_with=made_with,
    )
    ctx.tx.add(account)
    ctx.record("linked_account.link", f"user:{ctx.actor.id}", _about(account), _OWN)


def decisions_wait(ctx: Context, binding: Binding) -> bool:
    """Return whether decisions through a binding wait for a confirmation of their person."""
    company = ctx.tx.existing(people.COMPANY)
    is_sure = not registry.get(binding.adapter_type).forgeable
    return not is_sure and company.mail_decisions is MailDecisions.CONFIRM


def realm_of(binding: Binding) -> str:
    """Return the authority that vouches for the senders of a binding. Where who has the credentials
    can speak as any sender, it is believed in its own company alone."""
    channel = registry.get(binding.adapter_type)
    config = registry.installed.read(binding.adapter_type, json.loads(binding.adapter_config))
    realm = channel.realm(config)
    return f"{binding.company_id}/{realm}" if channel.forgeable else realm


view = views.view_of(LinkedAccount, shapes.LinkedAccountShape)


def _about(account: LinkedAccount) -> dict[str, str]:
    return {
        "linked": account.id,
        "kind": account.kind,
        "account": account.account,
        "label": account.label,
    }


def _person(ctx: Context) -> None:
    if ctx.actor.kind is not ActorKind.USER:
        raise NotFound("Only people link accounts.", "Ask the board for a binding.")


def _allow_own(ctx: Context) -> None:
    """Allow a user to change their own links, recorded in the first company that they are in.
    Refused to a linked account: control of the chat account must not be enough to keep it
    linked."""
    _person(ctx)
    if ctx.caller is not None and ctx.caller.account is not None:
        raise NotFound("Accounts are linked where one signed in.", "Use the web or the CLI.")
    companies = ctx.tx.all(people.COMPANIES_OF_USER, user=ctx.actor.id, after="", limit=1)
    ctx.enter(lookup.only(companies, "company").id)
    ctx.allow_by_rule(_OWN)
