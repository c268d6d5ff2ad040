"""Typical mistakes of models: each is answered with a sentence and a next step that works.

A row is a call that models make, and the call that its answer leads to. Where the right value can
be read off the answer, the row reads it there; and the answer names the tool that comes next,
unless it is the same one again.
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx2
import pytest

from remit.clock import DAY, to_iso
from remit.entrypoints.mcp.endpoint import Endpoint, build_endpoint
from remit.entrypoints.mcp.tools.listing import build_listed, build_tools
from remit.services.identity import Caller
from remit.testing import VirtualClock
from tests.company import Company, Member
from tests.organisation import work

MOST_WORDS = 60
_SENTENCE = re.compile(r"[A-Za-z`'][^\n]{8,400}\.")


@dataclass(frozen=True)
class Told:
    """What a model reads of a call that was refused."""

    text: str
    code: str
    error: str
    next_step: str
    details: dict[str, Any]

    def word(self, pattern: str) -> str:
        """What the answer offers, as a model would pick it out."""
        found = re.search(pattern, f"{self.error} {self.next_step}")
        assert found is not None, f"{pattern} is not in {self.text}"
        return found[1] if found.groups() else found[0]


@dataclass(frozen=True)
class Cast:
    """A company with a boss, two reports of it, and things to be wrong about."""

    company: Company
    ceo: Member
    dev: Member
    peer: Member
    #: A part of dev's mandate, and something of the peer's.
    part: str
    foreign: str
    #: Written by the ceo: nobody else may read it, and one that dev could read until yesterday.
    closed: dict[str, Any]
    lent: dict[str, Any]
    letter: str


Arguments = Mapping[str, Any]
Call = tuple[str, Arguments]


@dataclass(frozen=True)
class Mistake:
    """A wrong call, and the right one as its answer says it."""

    name: str
    wrong: Callable[[Cast], Call]
    code: str
    right: Callable[[Cast, Told], Call]
    by: str = "dev"
    #: What has to be called before, so that it is wrong.
    before: Callable[[Cast], list[Call]] = field(default=lambda _: [])


def _again(tool: str, **arguments: Any) -> Callable[[Cast, Told], Call]:
    return lambda _cast, _told: (tool, arguments)


MISTAKES = [
    Mistake(
        "an argument that has another name",
        lambda cast: ("outcome_create", {"parent": cast.dev.id, "title": "A page"}),
        "invalid",
        lambda cast, told: (
            "outcome_create",
            {told.word(r"write (\w+) instead of parent"): cast.dev.id, "title": "A page"},
        ),
    ),
    Mistake(
        "an argument that is called otherwise elsewhere",
        lambda cast: ("mail_send", {"recipient": "board", "body": "Hello"}),
        "invalid",
        lambda cast, told: (
            "mail_send",
            {told.word(r"write (\w+) instead of recipient"): "board", "body": "Hello"},
        ),
    ),
    Mistake(
        "a text that is called otherwise, where nothing is missing without it",
        lambda cast: ("mail_send", {"to": "board", "message": "Hello"}),
        "invalid",
        lambda cast, told: (
            "mail_send",
            {"to": "board", told.word(r"write (\w+) instead of message"): "Hello"},
        ),
    ),
    Mistake(
        "an argument that does not exist",
        lambda cast: ("mail_send", {"to": "board", "body": "x", "priority": "high"}),
        "invalid",
        lambda cast, told: (
            "mail_send",
            {"to": "board", "body": "x" if told.word("leave priority out") else ""},
        ),
    ),
    Mistake(
        "a required argument that is missing",
        lambda cast: ("outcome_create", {"title": "A page"}),
        "invalid",
        lambda cast, told: (
            "outcome_create",
            {"title": "A page", told.word(r"add (\w+) \(Outcome id\)"): cast.dev.id},
        ),
    ),
    Mistake(
        "a number in quotes",
        lambda cast: ("outcome_update", {"id": cast.part, "version": "1", "urgent": True}),
        "invalid",
        lambda cast, told: (
            told.word(r"Call (\w+) again: give version as a number"),
            {"id": cast.part, "version": 1, "urgent": True},
        ),
    ),
    Mistake(
        "a list as text that holds it",
        lambda cast: ("mail_ack", {"ids": json.dumps([cast.letter])}),
        "invalid",
        lambda cast, told: (
            told.word(r"Call (\w+) again: give ids as JSON itself"),
            {"ids": [cast.letter]},
        ),
    ),
    Mistake(
        "one thing where a list is meant",
        lambda cast: ("mail_ack", {"ids": cast.letter}),
        "invalid",
        lambda cast, told: (
            told.word(r"Call (\w+) again: give ids as a JSON list"),
            {"ids": [cast.letter]},
        ),
    ),
    Mistake(
        "a choice that does not exist",
        lambda cast: ("outcome_list", {"status": "done"}),
        "invalid",
        lambda cast, told: ("outcome_list", {"status": told.word("'(completed)'")}),
    ),
    Mistake(
        "a text that is too long",
        lambda cast: ("outcome_create", {"parent_id": cast.dev.id, "title": "A page " * 100}),
        "invalid",
        lambda cast, told: (
            "outcome_create",
            {
                "parent_id": cast.dev.id,
                "title": ("A page " * 100)[: int(told.word(r"at most (\d+) characters"))],
            },
        ),
    ),
    Mistake(
        "a tool that is called otherwise",
        lambda cast: ("send_mail", {"to": "board", "body": "Hello"}),
        "not_found",
        lambda cast, told: (told.word(r"Call (\w+)\."), {"to": "board", "body": "Hello"}),
    ),
    Mistake(
        "a tool of another system",
        lambda cast: ("complete_task", {"id": cast.part}),
        "not_found",
        lambda cast, told: (told.word(r"outcome_complete"), {"id": cast.part}),
    ),
    Mistake(
        "a title where an id is meant",
        lambda cast: ("outcome_view", {"id": "Build it"}),
        "invalid",
        lambda cast, told: (told.word("outcome_list"), {}),
    ),
    Mistake(
        "an id with a slip of the pen",
        lambda cast: ("outcome_view", {"id": _slipped(cast.part)}),
        "not_found",
        lambda cast, told: (told.word("outcome_list"), {}),
    ),
    Mistake(
        "a file id that is none",
        lambda cast: ("kb_read", {"id": "notes.md"}),
        "invalid",
        lambda cast, told: (told.word("kb_browse"), {"query": "notes"}),
    ),
    Mistake(
        "a name with a slip of the pen",
        lambda cast: ("mail_send", {"to": "agent:helpr", "body": "Hello"}),
        "not_found",
        lambda cast, told: ("mail_send", {"to": told.word(r"agent:helper"), "body": "Hello"}),
    ),
    Mistake(
        "a person by what people call them",
        lambda cast: ("mail_send", {"to": "Ann Smith", "body": "It is done."}),
        "not_found",
        lambda cast, told: ("mail_send", {"to": told.word(r"\bboard\b"), "body": "It is done."}),
    ),
    Mistake(
        "neither content nor a path",
        lambda cast: ("kb_create", {"description": "Notes"}),
        "invalid",
        lambda cast, told: (
            "kb_create",
            {"description": "Notes", told.word(r"either path or (content)"): "text"},
        ),
    ),
    Mistake(
        "a time in words",
        lambda cast: ("remind", {"body": "Look again", "at": "tomorrow"}),
        "invalid",
        lambda cast, told: (
            "remind",
            {"body": "Look again", "at": told.word(r"like (\S+)\.").replace("2026", "2126")},
        ),
    ),
    Mistake(
        "its own mandate completed",
        lambda cast: ("outcome_complete", {"id": cast.peer.id}),
        "own_mandate",
        lambda cast, told: (told.word(r"Hand it in with (\w+)"), {"id": cast.peer.id}),
        by="peer",
        before=lambda cast: [("outcome_complete", {"id": cast.foreign})],
    ),
    Mistake(
        "handed in twice",
        lambda cast: ("outcome_submit", {"id": cast.peer.id}),
        "submitted",
        lambda cast, told: (
            "log_submit",
            {"summary": told.word("end your run; the verdict comes as mail")},
        ),
        by="peer",
    ),
    Mistake(
        "what is one's own handed in for a verdict",
        lambda cast: ("outcome_submit", {"id": cast.part}),
        "yours_to_judge",
        lambda cast, told: (told.word("outcome_complete"), {"id": cast.part}),
        before=lambda cast: [("outcome_reopen", {"id": cast.part})],
    ),
    Mistake(
        "a verdict on what nobody handed in",
        lambda cast: ("outcome_return", {"id": cast.dev.id, "note": "Not yet."}),
        "not_submitted",
        lambda cast, told: (told.word("mail_send"), {"to": "agent:dev", "body": "Not yet."}),
        by="ceo",
    ),
    Mistake(
        "something delegated to oneself",
        lambda cast: ("delegate", {"outcome_id": cast.part, "to": "agent:dev"}),
        "not_your_report",
        lambda cast, told: (
            "outcome_update" if told.word("Work on it") else "",
            {"id": cast.part, "version": _version(cast), "urgent": False},
        ),
        before=lambda cast: [("outcome_reopen", {"id": cast.part})],
    ),
    Mistake(
        "an outcome of somebody else changed",
        lambda cast: ("outcome_complete", {"id": cast.foreign}),
        "not_found",
        lambda cast, told: (told.word("outcome_list"), {}),
    ),
    Mistake(
        "a part of what was handed over changed",
        lambda cast: ("outcome_update", {"id": cast.part, "version": 1, "urgent": True}),
        "delegated_away",
        lambda cast, told: (told.word("mail_send"), {"to": "agent:dev", "body": "Hurry."}),
        by="ceo",
    ),
    Mistake(
        "a file that it may not read",
        lambda cast: ("kb_read", {"id": cast.closed["id"]}),
        "no_capability",
        lambda cast, told: (told.word("capability_request"), _asked_for(told)),
    ),
    Mistake(
        "a grant that has expired",
        lambda cast: ("kb_read", {"id": cast.lent["id"]}),
        "no_capability",
        lambda cast, told: (
            told.word("capability_request") if told.word("has expired") else "",
            _asked_for(told),
        ),
    ),
    Mistake(
        "a capability passed on that it does not hold",
        lambda cast: (
            "capability_grant",
            {"to": "agent:helper", "resource": f"kb_file:{cast.closed['id']}", "level": "read"},
        ),
        "not_held",
        lambda cast, told: (
            told.word("capability_request"),
            {"resource": f"kb_file:{cast.closed['id']}", "level": "read", "why": "To pass it on."},
        ),
    ),
    Mistake(
        "a hire without permission",
        lambda cast: ("hire_agent", {"name": "artist"}),
        "may_not_hire",
        lambda cast, told: (told.word(r"Ask your boss \((\w+)\)"), {"question": "Hire an artist?"}),
    ),
    Mistake(
        "a file that somebody else wrote to since",
        lambda cast: (
            "kb_write",
            {"id": cast.closed["id"], "content": "Mine", "version": 1, "hash": "0" * 64},
        ),
        "conflict",
        lambda cast, told: (
            "kb_write",
            {
                "id": cast.closed["id"],
                "content": "Mine",
                "version": told.details["version"],
                "hash": told.details["hash"],
            },
        ),
        by="ceo",
    ),
    Mistake(
        "an outcome that was changed since",
        lambda cast: ("outcome_update", {"id": cast.part, "version": 99, "important": True}),
        "conflict",
        lambda cast, told: (
            "outcome_update",
            {"id": cast.part, "version": told.details["version"], "important": True},
        ),
    ),
    Mistake(
        "a key for another request",
        lambda cast: (
            "mail_send",
            {"to": "board", "body": "Other", "idempotency_key": "the-same"},
        ),
        "key_reused",
        lambda cast, told: (
            "mail_send",
            {"to": "board", "body": "Other", "idempotency_key": told.word("new")},
        ),
        before=lambda cast: [
            ("mail_send", {"to": "board", "body": "One", "idempotency_key": "the-same"})
        ],
    ),
]


def _slipped(id_: str) -> str:
    return id_[:-1] + ("0" if id_[-1] != "0" else "1")


def _version(cast: Cast) -> int:
    return int(cast.company.sql("SELECT version FROM outcomes WHERE id = ?", cast.part)[0][0])


def _asked_for(told: Told) -> dict[str, str]:
    """The arguments of a request, as the answer has them."""
    return {
        "resource": told.word(r"with resource (\S+)"),
        "level": told.word(r"and level (\w+)"),
        "why": "I need it.",
    }


# ── over MCP, in this process ───────────────────────────────────────────────────────────────────


@asynccontextmanager
async def _connected(company: Company) -> AsyncIterator[httpx2.AsyncClient]:
    endpoint = _endpoint(company)
    async with (
        endpoint.lifespan(),
        httpx2.AsyncClient(
            transport=httpx2.ASGITransport(endpoint), base_url="http://127.0.0.1"
        ) as client,
    ):
        yield client


def _endpoint(company: Company) -> Endpoint:
    tools = build_tools(company.app)
    return build_endpoint(
        tools=tools,
        listed=build_listed(company.app, tools),
        authenticate=lambda token: company.app.gate.check(Caller(token)),
        version="1",
        allowed_hosts=[],
    )


async def _call(client: httpx2.AsyncClient, member: Member, call: Call) -> dict[str, Any]:
    tool, arguments = call
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": dict(arguments)},
    }
    headers = {
        "Authorization": f"Bearer {member.caller.token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }
    answer = await client.post("/mcp", json=message, headers=headers)
    result: dict[str, Any] = answer.json()["result"]
    return result


def _told(result: Mapping[str, Any]) -> Told:
    facts = result["structuredContent"]
    return Told(
        result["content"][0]["text"],
        facts["code"],
        facts["error"],
        facts["next_step"],
        facts.get("details", {}),
    )


@pytest.fixture
def cast(small: Company, clock: VirtualClock) -> Cast:
    ceo = small.ceo
    dev, peer = small.agent("dev"), small.agent("peer")
    small.agent("helper", "dev")
    closed = small.file(ceo.caller, b"secret", "notes of the ceo")
    lent = small.file(ceo.caller, b"lent", "lent notes")
    soon = to_iso(clock.now() + DAY)
    small.give(ceo.caller, dev, lent, "read", expires_at=soon)
    clock.advance(2 * DAY)
    part = work(small, dev.caller, dev.id, "Build it")
    foreign = work(small, peer.caller, peer.id, "Not yours")
    sent = small.wait(small.app.library.send(ceo.caller, to="agent:dev", body="Hello"))
    return Cast(small, ceo, dev, peer, part, foreign, closed, lent, sent["id"])


@pytest.mark.requirement("FX-17")
def test_each_typical_mistake_is_answered_so_that_the_next_call_is_right(cast: Cast) -> None:
    assert len(MISTAKES) >= 20
    wrong: list[str] = []

    async def make(client: httpx2.AsyncClient, mistake: Mistake) -> None:
        member: Member = getattr(cast, mistake.by)
        for call in mistake.before(cast):
            await _call(client, member, call)
        tool, arguments = mistake.wrong(cast)
        result = await _call(client, member, (tool, arguments))
        assert result.get("isError"), (mistake.name, result)
        told = _told(result)
        assert told.code == mistake.code, told.text
        assert told.text == f"{told.code}: {told.error} Next: {told.next_step}"
        assert _SENTENCE.fullmatch(told.error), told.error
        assert _SENTENCE.fullmatch(told.next_step), told.next_step
        assert len(told.text.split()) <= MOST_WORDS, told.text
        following, given = mistake.right(cast, told)
        named = following in (tool, "log_submit") or following in told.text
        assert named or "Work on it" in told.next_step, (following, told.text)
        done = await _call(client, member, (following, given))
        assert not done.get("isError"), done["content"]

    async def make_all() -> None:
        async with _connected(cast.company) as client:
            for mistake in MISTAKES:
                try:
                    await make(client, mistake)
                except AssertionError as error:
                    wrong.append(f"{mistake.name}: {error}")

    cast.company.wait(make_all())
    assert not wrong, "\n\n".join(wrong)
