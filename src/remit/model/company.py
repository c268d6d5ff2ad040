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
    #: A hire waits for a person.
    require_board_approval_for_new_agents: bool
    #: A change of configuration that an agent proposes waits for a person.
    require_approval_for_config_changes: bool
    #: What agents that agents create are run by, unless told otherwise.
    chat_llm_provider: str | None
    chat_llm_model: str | None
    created_at: Micros


def company_name(text: object) -> str:
    return clean_line(text, "name", longest=100)
