"""Rows of queues: held by one worker until the lease ends, tried again, and over."""

from dataclasses import dataclass

from remit.clock import Micros
from remit.ids import CompanyId
from remit.model.messaging.mail import DeliveryStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    worker: str | None = None
    #: Goes up with every claim; who holds an older one has lost it.
    epoch: int = 0
    lease_until: Micros | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried(Leased):
    #: How often somebody set out to do it.
    attempt: int = 0
    ended_at: Micros | None = None
    #: How it ended, or why the last attempt failed.
    ended_why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued(Tried):
    """Waits in line with an id of its own."""

    id: str
    company_id: CompanyId
    status: DeliveryStatus
    #: Not tried before this time.
    next_at: Micros
    created_at: Micros


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled(Leased):
    """Looked after again and again by whoever holds the lease."""

    company_id: CompanyId
    #: Not tried before this time.
    next_at: Micros
    failures: int = 0
    #: Why it cannot be looked after now, if so.
    problem: str | None = None
