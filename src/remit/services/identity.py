"""Identification of the caller, by its token alone."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from remit.clock import Micros, moment
from remit.errors import Stopped, Unauthenticated
from remit.ids import looks_like_token, token_digest
from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.principal import SYSTEM, ActorKind, Principal
from remit.store.engine.database import Transaction
from remit.store.messaging.chat import ACCOUNT
from remit.store.organisation.halts import COVERING
from remit.store.organisation.people import IDENTITY, USER, Identity

if TYPE_CHECKING:
    from remit.services.context import Context


@dataclass(frozen=True, slots=True)
class Caller:
    """The credentials of a request: a token, and perhaps an idempotency key."""

    token: str
    key: str | None = None
    #: Remit itself. No entry point can set it from outside.
    system: bool = False
    #: The linked account of a person in a chat, who counts as its user while it is linked. No entry
    #: point can set it from outside.
    account: str | None = None
    #: The company in which names are looked up, for a member of several.
    company: str | None = None
    #: Called with the answer of each verb, in the verb's transaction, with a context that can only
    #: read. A refusal in it does not change the answer.
    on_answer: Callable[[Context, object], None] | None = field(
        default=None, repr=False, compare=False
    )


def as_system(key: str | None = None) -> Caller:
    return Caller("", key, system=True)


def as_linked(account: str, company: str) -> Caller:
    """A person in a chat, in the company of the agent that they write to."""
    return Caller("", account=account, company=company)


def identify(tx: Transaction, caller: Caller, now: Micros) -> Principal:
    if caller.system:
        return SYSTEM
    if caller.account is not None:
        linked = tx.one(ACCOUNT, id=caller.account, now=now)
        user = linked and tx.one(USER, user=linked.user_id)
        if not user:
            raise Unauthenticated("The account is not linked any more.", "Link it again.")
        return Principal(ActorKind.USER, user.id, user.name, operator=user.operator)
    if not looks_like_token(caller.token):
        raise Unauthenticated("No valid token was presented.")
    digest = token_digest(caller.token)
    identity = tx.one(IDENTITY, digest=digest)
    if identity is None or not hmac.compare_digest(identity.digest, digest):
        raise Unauthenticated("The token is not known here.")
    if identity.event_id is None:
        raise Unauthenticated(
            "The token is not in the record: something other than Remit wrote it.",
            "Have a new one made, and run `remit event verify`.",
        )
    if identity.kind == "login":
        raise Unauthenticated("A login link opens a session; it is not a token for calls.")
    if identity.revoked_at is not None:
        raise Unauthenticated("The token was revoked.")
    if identity.expires_at is not None and now >= identity.expires_at:
        raise Unauthenticated("The token has expired.")
    if identity.run_id is not None and identity.run_status != "running":
        raise Unauthenticated("The run that this token belonged to has ended.")
    if identity.agent_status == AgentStatus.PENDING_APPROVAL:
        # Every request is refused until the hire is decided, even those that decide nothing.
        raise Unauthenticated(
            "The agent that this token belongs to awaits approval.", "Wait for the decision."
        )
    if identity.agent_id is not None:
        if identity.some_halt:
            _refuse_stopped(tx, identity)
        return Principal(
            ActorKind.AGENT,
            identity.agent_id,
            identity.agent_name or "",
            identity.company_id,
            identity.run_id,
            identity.workspace,
            AgentStatus(identity.agent_status or "terminated"),
        )
    assert identity.user_id is not None, "the database lets a token name a user or an agent"
    return Principal(
        ActorKind.USER, identity.user_id, identity.user_name or "", operator=bool(identity.operator)
    )


def _refuse_stopped(tx: Transaction, identity: Identity) -> None:
    """Refuse an agent's token while a halt covers the agent."""
    halt = next(iter(tx.all(COVERING, company=identity.company_id, agent=identity.agent_id)), None)
    if halt is not None:
        what = "The company was" if halt.agent_id is None else "Your part of the company was"
        because = f": {halt.note}" if halt.note else "."
        raise Stopped(f"{what} stopped at {moment(halt.created_at)}{because}")
