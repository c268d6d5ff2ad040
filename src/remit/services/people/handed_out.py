"""Credentials that a person made for others: sign-in links, tokens, and the tokens of channels.

Whoever made one may have kept it. One that nobody uses yet ends with the membership of its maker,
who may be the only one to know it. A credential in use stays, and is named for the board.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from remit.channels import registry
from remit.errors import BadInput
from remit.ids import TokenKind, new_token, token_digest
from remit.model.messaging.channel import Binding
from remit.model.organisation.principal import Token
from remit.model.organisation.user import Handed, User
from remit.services import lookup
from remit.services.people import token_record
from remit.store.messaging import channels
from remit.store.organisation import people
from remit.store.paging import each
from remit.store.record import events as log

if TYPE_CHECKING:
    from remit.services import shapes
    from remit.services.command import Context

_KINDS = {
    TokenKind.LOGIN: Handed.LINK,
    TokenKind.USER: Handed.TOKEN,
    TokenKind.SESSION: Handed.SESSION,
}


@dataclass(frozen=True, slots=True)
class HandedOut:
    """A credential for somebody else, and whether it ends with the membership of its maker."""

    kind: Handed
    id: str
    #: Name of the person or the agent that it is for.
    name: str
    ends: bool
    agent_id: str | None = None
    #: Kind of the channel.
    channel: str = ""

    @property
    def reference(self) -> str:
        return f"{'binding' if self.kind is Handed.CHANNEL else 'token'}:{self.id}"

    def view(self, maker: str) -> shapes.HandedOutShape:
        """Return it with the reason why it ends or stays, and what the board can do."""
        why, step = self._words(maker)
        return {
            "kind": self.kind.value,
            "id": self.id,
            "name": self.name,
            "ends": self.ends,
            "why": why,
            "next_step": step,
        }

    def _words(self, maker: str) -> tuple[str, str]:
        if self.kind is Handed.CHANNEL:
            again = f"`remit bind add {self.name} {self.channel} --replace` makes a new token."
            if not self.ends:
                return f"The outside uses it; {maker} may know it.", f"To be sure: {again}"
            return "Nothing has used it.", f"If somebody needs it: {again}"
        if self.kind is Handed.LINK:
            return "Nobody has signed in with it.", f"`remit user link {self.name}` makes another."
        if self.ends:
            step = f"`remit user link {self.name}` or `remit user token {self.name}` makes another."
            return f"Nothing shows that {self.name} uses it.", step
        if self.kind is Handed.SESSION:
            step = f"Let {self.name} look at the sessions on their account page, and end others."
        else:
            step = (
                f"To be sure: `remit user token {self.name} --revoke {self.id}`, and"
                f" `remit user token {self.name}` for another."
            )
        return f"{self.name} uses it; {maker} may know it.", step


def by(ctx: Context, maker: User) -> list[HandedOut]:
    """Return the credentials that a person made for others in the company and are still good."""
    return [*_tokens(ctx, maker), *_channels(ctx, maker)]


def end_unused(ctx: Context, credentials: Sequence[HandedOut]) -> None:
    """End those that nobody uses."""
    for credential in credentials:
        if not credential.ends:
            continue
        if credential.kind is not Handed.CHANNEL:
            token_record.end(ctx, people.REVOKE_TOKEN, token=credential.id)
            continue
        # The channel still sends and receives; nobody is told this token.
        token = token_digest(new_token(TokenKind.CHANNEL))
        ctx.tx.run(channels.REPLACE_TOKEN, binding=credential.id, new_token=token)
        about = {
            "agent_id": credential.agent_id,
            "adapter_type": credential.channel,
            "token": "ended",
        }
        ctx.record("binding.change", credential.reference, about)


def _tokens(ctx: Context, maker: User) -> Iterator[HandedOut]:
    for token in ctx.tx.all(people.HANDED_OUT, user=maker.id):
        holder = ctx.tx.existing(people.USER, user=token.user_id)
        kind = _KINDS[token.kind]
        ends = kind is Handed.LINK or (kind is Handed.TOKEN and not _is_used(ctx, token))
        yield HandedOut(kind, token.id, holder.name, ends)


def _is_used(ctx: Context, token: Token) -> bool:
    """Whether it is sure that a person uses a token. Calls with a token leave no trace of it, so
    that what a person did shows it only if they have no other token."""
    others = [
        other
        for other in ctx.tx.all(people.EVER_OF_USER, user=token.user_id)
        if other.id != token.id
    ]
    if any(other.made_with == token.id for other in others):
        return True
    acted = ctx.tx.one(log.HAS_ACTED, user=token.user_id, since=token.created_at)
    return not others and acted is not None


def _channels(ctx: Context, maker: User) -> Iterator[HandedOut]:
    for binding in each(ctx.tx, channels.BINDINGS, agent=None):
        creation = ctx.tx.one(
            log.LAST_OF, resource=f"binding:{binding.id}", action="binding.create"
        )
        if creation is None or creation.actor_id != maker.id or binding.held:
            continue
        agent = lookup.name_of(ctx, binding.agent_id)
        kind = binding.adapter_type
        ends = not _is_in_use(ctx, binding)
        yield HandedOut(Handed.CHANNEL, binding.id, agent, ends, binding.agent_id, kind)


def _is_in_use(ctx: Context, binding: Binding) -> bool:
    """Whether the outside uses the token of a binding: to write to the agent, or to check what
    comes from it. A channel that fetches its messages never shows the token to anybody."""
    try:
        if registry.get(binding.adapter_type).receives:
            return False
    except BadInput:
        pass  # its plugin is missing, and may come back
    return (
        ctx.tx.one(channels.ANY_RECEIPT, binding=binding.id) is not None
        or ctx.tx.one(channels.ANY_SENT, agent=binding.agent_id, kind=binding.adapter_type)
        is not None
    )
