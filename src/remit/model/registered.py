"""Base class of rows that a company registers by name: versioned, and kept after removal."""

from dataclasses import dataclass

from remit.clock import Micros
from remit.ids import CompanyId


@dataclass(frozen=True, kw_only=True)
class Registered:
    __slots__ = ()  # subclasses define theirs, also beside another base

    company_id: CompanyId
    #: Unique among rows that are not removed.
    name: str
    version: int
    created_at: Micros
    updated_at: Micros
    removed_at: Micros | None = None
