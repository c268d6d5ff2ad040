"""Shapes of the acceptance of a company from outside."""

from __future__ import annotations

from typing import TypedDict


class ReachShape(TypedDict):
    """One thing that a company would run, reach or be lent, as plain text."""

    #: Such as `program`, `address`, `key` or `right`.
    kind: str
    #: The owner: an agent, or the company.
    of: str
    text: str


class ReachedShape(TypedDict):
    entries: list[ReachShape]
    #: Keys among the entries that are set for the process that answers.
    keys_here: list[str]
    #: Rights over the machine that were not taken over, each with the command that gives it.
    left_out: list[str]
    #: Accepting says it, so that nothing is accepted but what was shown.
    digest: str


class AcceptanceShape(ReachedShape):
    company_id: str
    name: str
    #: Whether the company waits to be accepted.
    awaits: bool
    #: Whether the caller is one of those who may accept it.
    may_accept: bool


class AcceptedShape(TypedDict):
    company_id: str
    name: str
    accepted: bool
    digest: str
