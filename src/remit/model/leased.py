"""Base classes of queue rows: leased by one worker, retried, and ended."""

from dataclasses import dataclass

from remit.clock import Micros
from remit.ids import CompanyId
from remit.model.messaging.mail import DeliveryStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    worker: str | None = None
    #: Incremented by every claim; an older epoch has lost the lease.
    epoch: int = 0
    lease_until: Micros | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried(Leased):
    #: Number of attempts.
    attempt: int = 0
    ended_at: Micros | None = None
    #: Reason of the end or of the last failure.
    ended_why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued(Tried):
    """A queued item with an id of its own."""

    id: str
    company_id: CompanyId
    status: DeliveryStatus
    #: Not tried before this time.
    next_at: Micros
    created_at: Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled(Leased):
    """An item that is polled regularly by the lease's holder."""

    company_id: CompanyId
    #: Not tried before this time.
    next_at: Micros
    failures: int = 0
    #: Why the last poll failed; None if it did not.
    problem: str | None = None
