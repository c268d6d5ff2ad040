"""Sending and receiving in tests."""

from typing import Any

import pytest

from remit.errors import RemitError
from remit.services.execution import runs
from remit.services.identity import Caller, as_system
from remit.services.messaging import inbox, threads
from remit.services.people import companies
from remit.services.work import outcomes
from tests.company import Answer, Company, Member, Run


def send(company: Company, caller: Caller, to: str, body: Any = "text", /, **more: Any) -> Answer:
    return company.wait(company.app.library.send(caller, to=to, body=body, **more))


def refused(at: Company, caller: Caller, to: Any, /, *, body: Any = "text", **more: Any) -> str:
    """The reason code with which a message is refused."""
    with pytest.raises(RemitError) as caught:
        send(at, caller, to, body, **more)
    return caught.value.reason


def look(company: Company, member: Member) -> list[Answer]:
    """What waits for an agent; nothing is taken up."""
    messages: list[Answer] = company.call(member.caller, inbox.take)["messages"]
    return messages


def bodies(messages: list[Answer]) -> list[str]:
    return [message["body"] for message in messages]


def take(company: Company, run: Run, limit: int = 10) -> list[Answer]:
    """What a run takes up."""
    messages: list[Answer] = company.call(run.caller, inbox.take, limit=limit)["messages"]
    return messages


def end(company: Company, run: Run, status: str = "completed", **report: Any) -> None:
    company.call(as_system(), runs.end, run=run.id, status=status, report=report)


def ack(company: Company, caller: Caller, *messages: Answer) -> list[str]:
    done: list[str] = company.call(
        caller, inbox.acknowledge, ids=[message["id"] for message in messages]
    )["acknowledged"]
    return done


def unread(company: Company, caller: Caller, **more: Any) -> list[Answer]:
    """A person's unread mail, newest first."""
    return company.call(caller, threads.own_inbox, company=company.id, **more)[::-1]


def messaging(company: Company, setting: str) -> None:
    company.call(company.board, companies.change, company=company.id, messaging=setting)


def to_do(company: Company, member: Member) -> list[str]:
    open_outcomes = company.call(member.caller, outcomes.listing, actionable=True)
    return [outcome["title"] for outcome in open_outcomes]


def tick(company: Company) -> None:
    """Let what is due happen, as often as there is something."""
    while company.wait(company.app.clockwork.tick()):
        pass
