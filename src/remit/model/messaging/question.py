"""Questions: requests for information. Answering one never changes rights."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from remit.clock import Micros
from remit.ids import AgentId, CompanyId, QuestionId

LONGEST_QUESTION = 10_000
MOST_OPTIONS = 20


QuestionStatus = StrEnum("QuestionStatus", "OPEN ANSWERED CANCELLED")


#: A number that somebody writes instead of an option.
_NUMBER = re.compile(r"(?:no\.? ?|number |option )?#?(\d{1,2})[.)]?", re.IGNORECASE)
_OTHER = re.compile(r"other\s*[:,-]\s*(\S.*)", re.IGNORECASE | re.DOTALL)


def chosen(text: str, options: Sequence[str]) -> str | None:
    """Return the option that an answer names, in any letter case and also with a full stop behind
    it; None if it names none."""
    named = text.strip().casefold()
    for wanted in (named, named.rstrip(".!").rstrip()):
        for option in options:
            if option.casefold() == wanted:
                return option
    return None


def picked(text: str, options: Sequence[str]) -> str | None:
    """Return the option that an answer names where the options are listed: as `chosen` does, by its
    number, or by how it begins if no other option begins so."""
    option = chosen(text, options)
    if option is not None:
        return option
    named = text.strip().rstrip(".!").rstrip()
    number = _NUMBER.fullmatch(text.strip())
    if number is not None:
        place = int(number[1])
        return options[place - 1] if are_numbered(options) and 0 < place <= len(options) else None
    begun = [option for option in options if named and _begins(option, named)]
    return begun[0] if len(begun) == 1 else None


def in_other_words(text: str) -> str | None:
    """Return an answer that says to be none of the options: `other: mauve`; None if it does not."""
    match = _OTHER.fullmatch(text.strip())
    return match[1].strip() if match else None


def are_numbered(options: Sequence[str]) -> bool:
    """Return whether options are listed with numbers: not if one could be taken for a number."""
    return not any(_NUMBER.fullmatch(option.strip()) for option in options)


def _begins(option: str, words: str) -> bool:
    return option.casefold().startswith(words.casefold())


@dataclass(frozen=True, slots=True)
class Question:
    id: QuestionId
    company_id: CompanyId
    agent_id: AgentId
    #: The boss it is for; the board when None.
    to_agent_id: AgentId | None
    text: str
    #: JSON text: the options, if any.
    options: str
    created_at: Micros
    status: QuestionStatus = QuestionStatus.OPEN
    answer: str | None = None
    answered_by: str | None = None
    ended_at: Micros | None = None
