"""Evidence in the record for rows that carry authority: requests for approval, and tokens.

The events hold the digests of both. A row that was written past Remit, with the database's
password, has no such event, or one that says something else.
"""

import hmac
import json
from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

from remit.ids import token_digest
from remit.model.event import Event
from remit.model.organisation.approval import OPEN, Approval, is_as_asked
from remit.services.command import Context
from remit.store.organisation import governance, people
from remit.store.paging import each
from remit.store.record import company_dump
from remit.store.record import events as log
from remit.store.record.events import Fault

_MOST_FAULTS = 100
_REVOKING = "token.revoke"


class Submitted(NamedTuple):
    """A revision of a request, as its event has it."""

    seq: int
    digest: str


class Evidence:
    """Digests of requests and ends of tokens, collected from a company's events."""

    def __init__(self) -> None:
        self._submitted: dict[str, dict[int, Submitted]] = {}
        self._revoked: dict[str, int] = {}

    def see(self, event: Event) -> None:
        """Collect what an event says."""
        if not event.allowed:
            return
        _, _, subject = event.resource.partition(":")
        if event.action in log.SUBMITTING:
            try:
                told = json.loads(event.details)
                revision, digest = told["revision"], told["digest"]
            except (ValueError, LookupError, TypeError):
                return  # the event was changed, which its hash shows
            self._submitted.setdefault(subject, {})[revision] = Submitted(event.seq, digest)
        elif event.action == _REVOKING:
            self._revoked[subject] = event.seq

    def faults(self, ctx: Context) -> list[Fault]:
        """Return the rows that differ from what the events say."""
        return [*islice(chain(self._of_approvals(ctx), self._of_tokens(ctx)), _MOST_FAULTS)]

    def _of_approvals(self, ctx: Context) -> Iterator[Fault]:
        for approval in each(ctx.tx, company_dump.APPROVALS):
            submitted = self._submitted.get(approval.id, {})
            latest = submitted.get(approval.revision)
            if latest is None:
                if approval.status in OPEN:
                    sentence = (
                        f"approval:{approval.id} awaits a decision, but no event asks for it."
                    )
                    yield Fault(0, "unrecorded", sentence)
            elif not self._is_whole(ctx, approval, submitted):
                yield Fault(latest.seq, "altered", f"approval:{approval.id} is another than this.")

    def _is_whole(self, ctx: Context, approval: Approval, submitted: dict[int, Submitted]) -> bool:
        """Whether the request and each of its revisions is what was submitted."""
        submitted_now = submitted[approval.revision]
        if not _is_same(approval.digest, submitted_now.digest) or not is_as_asked(approval):
            return False
        revisions = ctx.tx.all(governance.REVISIONS, approval=approval.id)
        return {revision.number for revision in revisions} >= submitted.keys() and all(
            _is_same(revision.digest, submitted[revision.number].digest) and is_as_asked(revision)
            for revision in revisions
            if revision.number in submitted
        )

    def _of_tokens(self, ctx: Context) -> Iterator[Fault]:
        """Tokens that are valid now and should not be. Others open nothing."""
        # Its person may be in other companies alone by now, or in none.
        for valid in each(ctx.tx, people.VALID):
            if (revoked := self._revoked.get(valid.id)) is not None:
                yield Fault(revoked, "revived", f"token:{valid.id} was revoked, and is valid.")
        for token in each(ctx.tx, people.OPENING):
            if token.id in self._revoked:
                continue
            if ctx.tx.one(log.HAPPENED_ANYWHERE, resource=f"token:{token.id}", action=_REVOKING):
                sentence = f"token:{token.id} was revoked in another company, and is valid."
                yield Fault(0, "revived", sentence)
                continue
            event = ctx.tx.one(log.EVENT_ANYWHERE, event=token.event_id or "")
            holder = token.user_id or token.agent_id
            if event is None or event.resource != f"token:{token.id}" or not event.allowed:
                sentence = f"token:{token.id} of {holder} is valid, but no event made it."
                yield Fault(0, "unrecorded", sentence)
            elif not log.tells_of(event, **_terms(token)):
                seq = event.seq if event.company_id == ctx.company else 0
                sentence = f"token:{token.id} of {holder} is another than its event says."
                yield Fault(seq, "altered", sentence)
            elif token.run_id is not None and ctx.tx.one(
                log.HAPPENED, resource=f"run:{token.run_id}", action="run.end"
            ):
                yield Fault(0, "revived", f"token:{token.id} is valid, but its run has ended.")


def _is_same(digest: str, told: str) -> bool:
    """Whether two digests are the same, in a time that does not say how much of them is."""
    return hmac.compare_digest(str(digest).encode(), str(told).encode())


def _terms(token: people.Opening) -> dict[str, object]:
    """Return the details that the event of a token has: its digest, its holder and its expiry."""
    return {
        "kind": token.kind.value,
        "digest": token_digest(token.digest),
        "expires_at": token.expires_at,
        "user_id": token.user_id,
        "agent_id": token.agent_id,
        "run_id": token.run_id,
    }
