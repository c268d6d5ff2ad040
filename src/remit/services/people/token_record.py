"""Tokens in the record: each is an event with its digest, and so is its end.

Who can write to the database could add a token, but not its event without breaking the chain;
`event verify` compares the two (`services/record/evidence.py`).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from remit.ids import token_digest
from remit.model.organisation.decision import Decision
from remit.model.organisation.principal import Token
from remit.services.command import Context
from remit.store.engine.statement import Statement
from remit.store.organisation import people


def add(ctx: Context, token: Token, secret: str, by: Decision | None = None) -> None:
    """Store a token, and record its digest, holder and expiry; neither holds the token itself."""
    digest = token_digest(secret)
    about = {
        "kind": token.kind.value,
        "label": token.label,
        # The digest of the digest: that one finds the token, and stays in the database alone.
        "digest": token_digest(digest),
        "expires_at": token.expires_at,
        "user_id": token.user_id,
        "agent_id": token.agent_id,
        "run_id": token.run_id,
    }
    event = ctx.record("token.create", f"token:{token.id}", about, by)
    ctx.tx.add(replace(token, event_id=event), digest=digest)


def end_of(
    ctx: Context, *, agent: str | None = None, user: str | None = None
) -> Sequence[people.Ended]:
    """Revoke all tokens of an agent or a person."""
    return end(ctx, people.REVOKE_TOKENS_OF, agent=agent, user=user)


def end(ctx: Context, revoking: Statement[people.Ended], **of: Any) -> Sequence[people.Ended]:
    """Revoke tokens, and record that; returns those that were valid until now."""
    gone = ctx.tx.all(revoking, **of)
    ended(ctx, gone)
    return gone


def ended(ctx: Context, tokens: Sequence[people.Ended]) -> None:
    """Record that tokens were revoked. That of a run ends with the event of the run's end."""
    for token in sorted(tokens, key=lambda token: token.id):
        if token.run_id is None:
            holder = {"user_id": token.user_id, "agent_id": token.agent_id}
            about = {name: id_ for name, id_ in holder.items() if id_ is not None}
            ctx.record("token.revoke", f"token:{token.id}", about)
