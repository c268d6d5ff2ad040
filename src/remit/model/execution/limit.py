"""Limits of runs, agents and companies, beyond which a person has to look.

They apply by default. Turns, identical and failed calls end a run; the others delay starts until
the hour or the day has passed, or until the limit is raised.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from remit.clock import HOUR, Micros
from remit.errors import BadInput
from remit.ids import AgentId, CompanyId
from remit.model.execution.budget import CENT, Kind, shown
from remit.model.execution.fault import Fault


class Limit(StrEnum):
    TURNS_PER_RUN = "turns_per_run"
    IDENTICAL_CALLS = "identical_calls"
    FAILED_CALLS = "failed_calls"
    AGENT_RUNS_PER_HOUR = "agent_runs_per_hour"
    AGENT_TOKENS_PER_DAY = "agent_tokens_per_day"
    COMPANY_RUNS_PER_HOUR = "company_runs_per_hour"
    COMPANY_CENTS_PER_DAY = "company_cents_per_day"

    @property
    def spelled(self) -> str:
        """Return the name that people write: in commands, in files and over HTTP."""
        first, *rest = self.value.split("_")
        return first + "".join(word.capitalize() for word in rest)


#: The meaning of each, in words.
WORDS: Final[Mapping[Limit, str]] = {
    Limit.TURNS_PER_RUN: "turns of the model in one run",
    Limit.IDENTICAL_CALLS: "identical calls in a row in one run",
    Limit.FAILED_CALLS: "refused or failed calls in a row in one run",
    Limit.AGENT_RUNS_PER_HOUR: "runs of one agent within an hour",
    Limit.AGENT_TOKENS_PER_DAY: "tokens of one agent in a day (UTC)",
    Limit.COMPANY_RUNS_PER_HOUR: "runs of the company within an hour",
    Limit.COMPANY_CENTS_PER_DAY: "cents that the company spends in a day (UTC)",
}
#: Exit reasons of runs that a limit ended, with their faults.
MAX_TURNS: Final = "max_turns"
REPETITION: Final = "repetition"
FAILED_CALLS: Final = "failed_calls"
RUNAWAY: Final[Mapping[str, Fault]] = {
    MAX_TURNS: Fault.TURNS,
    REPETITION: Fault.REPETITION,
    FAILED_CALLS: Fault.REPETITION,
}
_ENDED_BY: Final[Mapping[str, Limit]] = {
    MAX_TURNS: Limit.TURNS_PER_RUN,
    REPETITION: Limit.IDENTICAL_CALLS,
    FAILED_CALLS: Limit.FAILED_CALLS,
}
LARGEST: Final = 10**15
_OFF: Final = ("none", "")


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a company, with the defaults; None for no limit."""

    turns_per_run: int | None = 100
    identical_calls: int | None = 10
    failed_calls: int | None = 25
    agent_runs_per_hour: int | None = 60
    agent_tokens_per_day: int | None = 20_000_000
    company_runs_per_hour: int | None = 300
    company_cents_per_day: int | None = 50_00

    def of(self, limit: Limit) -> int | None:
        number: int | None = getattr(self, limit.value)
        return number

    @property
    def money_per_day(self) -> int | None:
        """The daily limit in millionths of a dollar."""
        return None if self.company_cents_per_day is None else self.company_cents_per_day * CENT

    def view(self) -> dict[str, int | None]:
        return {limit.value: self.of(limit) for limit in Limit}


#: Default limits.
DEFAULTS: Final = {limit: Limits().of(limit) or 0 for limit in Limit}


def stored(text: str) -> Limits:
    """Parse the limits of a company's row: JSON with those that were set."""
    return Limits(**json.loads(text))


def changed(text: str, limits: object) -> str:
    """Return the row's text with these limits set; 0, None or "none" for no limit."""
    if not isinstance(limits, Mapping):
        raise BadInput("limits: must be an object.", f"Name one of {_known()}.")
    kept: dict[str, int | None] = json.loads(text)
    for name, value in limits.items():
        limit = _named(name)
        kept[limit.value] = _number(limit, value)
    return json.dumps(kept, sort_keys=True)


def is_as_before(text: str, limits: object) -> bool:
    """Return whether setting these limits would change nothing."""
    return stored(changed(text, limits)) == stored(text)


def _named(name: object) -> Limit:
    for limit in Limit:
        if name in (limit.value, limit.spelled):
            return limit
    raise BadInput(f"limits: {str(name)[:60]!r} is not known.", f"Known are {_known()}.")


def _number(limit: Limit, value: object) -> int | None:
    text = value.strip().lower() if isinstance(value, str) else None
    if value is None or text in _OFF:
        return None
    if text is not None and text.isascii() and text.isdigit() and len(text) < 20:
        value = int(text)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST:
        raise BadInput(
            f"limits.{limit.spelled}: must be a whole number that is not below 0.",
            "0 or none means no limit.",
        )
    return value or None


def _known() -> str:
    return ", ".join(limit.spelled for limit in Limit)


def amount_shown(limit: Limit, amount: int | None) -> str:
    """Return a limit's amount in words."""
    if amount is None:
        return "no limit"
    if limit is Limit.COMPANY_CENTS_PER_DAY:
        return shown(Kind.MONEY, amount * CENT)
    return f"{amount:,}"


def raised(amount: int) -> int:
    """Return the next higher limit, as a suggestion."""
    return min(2 * amount, LARGEST)


def command_that_sets(limit: Limit, amount: int) -> str:
    return f"remit company set --limit {limit.spelled}={amount}"


def command_that_raises(limit: Limit, amount: int) -> str:
    return command_that_sets(limit, raised(amount))


def ended_by(exit_reason: str | None) -> Limit | None:
    """Return the limit that ended a run, by its exit reason; None if none did."""
    return _ENDED_BY.get(exit_reason or "")


@dataclass(frozen=True, slots=True)
class Reached:
    """A reached limit, which delays starts."""

    id: str
    company_id: CompanyId
    #: None for a limit of the company.
    agent_id: AgentId | None
    name: Limit
    #: When it was first reached, in a series of occurrences.
    since: Micros
    #: Until when no run is started.
    until: Micros

    @property
    def told_until(self) -> Micros:
        """Time until which reaching it again is not reported: within an hour, single runs become
        possible again and again."""
        hourly = self.name in (Limit.AGENT_RUNS_PER_HOUR, Limit.COMPANY_RUNS_PER_HOUR)
        return max(self.until, self.since + HOUR) if hourly else self.until
