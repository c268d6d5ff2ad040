"""Confirmations: decisions that somebody asked for by a channel that others could write to as them.

The decision takes effect when the person confirms it where they are signed in.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from remit.clock import DAY, Micros
from remit.ids import BindingId, CompanyId, UserId

#: A decision that was not confirmed within this time is dropped.
CONFIRMATION_LASTS: Micros = DAY

#: Treatment of decisions by such a channel, e-mail above all. DIRECT: they take effect at once.
MailDecisions = StrEnum("MailDecisions", "CONFIRM DIRECT")


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A decision that waits for the confirmation of the person in whose name it came."""

    id: str
    company_id: CompanyId
    user_id: UserId
    #: The binding through which it came.
    binding_id: BindingId | None
    #: The account it came from, such as `email:ann@example.org`.
    account: str
    #: The thing that it is about, such as `approval:<id>`.
    subject: str
    #: The decision in words.
    title: str
    #: JSON: `act` and its arguments.
    act: str
    created_at: Micros
    expires_at: Micros
    ended_at: Micros | None = None
    #: `confirmed` or `dismissed`.
    ended_why: str | None = None
