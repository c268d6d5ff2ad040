"""A company: the boundary that everything belongs to."""

from __future__ import annotations

from dataclasses import dataclass

from remit.clock import Micros
from remit.ids import CompanyId
from remit.model.mail import Messaging
from remit.model.text import clean_line


@dataclass(frozen=True, slots=True)
class Company:
    id: CompanyId
    name: str
    messaging: Messaging
    created_at: Micros


def company_name(text: object) -> str:
    return clean_line(text, "name", longest=100)
