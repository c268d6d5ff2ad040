"""Rows that a company registers by name: a change is a new version, a removed row is kept."""

from dataclasses import dataclass

from remit.clock import Micros
from remit.ids import CompanyId


@dataclass(frozen=True, kw_only=True)
class Registered:
    __slots__ = ()  # whoever inherits makes them, also beside another base

    company_id: CompanyId
    #: Unique among those that were not removed.
    name: str
    version: int
    created_at: Micros
    updated_at: Micros
    removed_at: Micros | None = None
