"""What a model is shown of an answer: names, nothing empty, the next step."""

from __future__ import annotations

import json
from typing import Any

import pytest

from remit.clock import Micros
from remit.entrypoints.mcp.lean import LeanCall
from remit.entrypoints.mcp.registry import validate
from remit.entrypoints.mcp.tools.listing import build_tools
from remit.model.organisation.principal import Principal
from remit.services import command, identity
from remit.services.identity import Caller
from remit.services.organisation import agents
from remit.store.engine.database import Transaction
from tests.company import Company, Member


def shown(company: Company, member: Member, tool: str, **arguments: Any) -> tuple[int, Any]:
    """How long the answer of the service is, and what is left of it."""

    async def call() -> tuple[int, Any]:
        called = build_tools(company.app)[tool]
        checked = validate(called, arguments)
        lean = LeanCall(called, member.caller.token, checked)
        answer = await called.call(lean.caller, checked)
        return len(json.dumps(answer)), lean.shorten(answer)

    return company.wait(call())


@pytest.mark.requirement("FX-17")
def test_an_outcome_names_its_owner_and_leaves_out_what_is_not_so(company: Company) -> None:
    dev = company.agent("dev", "ceo")
    _, made = shown(company, dev, "outcome_create", parent_id=dev.id, title="A page", urgent=True)
    assert made["owner"] == "agent:dev"
    assert made["urgent"] is True
    assert not {"owner_id", "company_id", "important", "verdict", "deferred_until"} & set(made)
    long, seen = shown(company, dev, "outcome_view", id=made["id"])
    assert seen["history"][0]["by"] == "agent:dev"
    assert len(json.dumps(seen)) < 0.7 * long
    long, tree = shown(company, company.ceo, "outcome_subtree", id=company.ceo.id)
    assert tree["children"][0]["owner"] == "agent:dev"
    assert len(json.dumps(tree)) < 0.6 * long


def test_names_are_looked_up_in_the_transaction_of_the_call(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    dev = company.agent("dev", "ceo")
    callers = []

    def identify(tx: Transaction, caller: Caller, now: Micros) -> Principal:
        callers.append(caller)
        return identity.identify(tx, caller, now)

    monkeypatch.setattr(command, "identify", identify)
    arguments = {"parent_id": dev.id, "title": "A page", "idempotency_key": "once"}
    for _ in range(2):  # the stored answer is shown with names, too
        _, outcome = shown(company, dev, "outcome_create", **arguments)
        assert outcome["owner"] == "agent:dev"
    _, tree = shown(company, company.ceo, "outcome_subtree", id=company.ceo.id)
    assert tree["children"][0]["owner"] == "agent:dev"
    assert len(callers) == 3
    assert company.sql("SELECT count(*) FROM outcomes WHERE title = 'A page'") == [(1,)]


@pytest.mark.requirement("FX-17")
def test_what_waits_for_somebody_says_what_comes_next(company: Company) -> None:
    dev = company.agent("dev", "ceo")
    _, asked = shown(company, dev, "ask", question="Red?", to="board")
    assert "comes as mail" in asked["next_step"]
    _, handed_in = shown(company, dev, "outcome_submit", id=dev.id, note="Done.")
    assert "verdict comes as mail" in handed_in["next_step"]


@pytest.mark.requirement("FX-17")
def test_letters_come_from_names_that_can_be_written_to(company: Company) -> None:
    dev = company.agent("dev", "ceo")
    shown(company, company.ceo, "mail_send", to="agent:dev", subject="Hello", body="There.")
    _, inbox = shown(company, dev, "mail_inbox")
    assert [one["sender"] for one in inbox["messages"]] == ["agent:ceo"]
    _, sent = shown(company, dev, "mail_send", to=inbox["messages"][0]["sender"], body="Yes?")
    assert sent["id"]


def test_who_is_gone_is_not_taken_for_somebody_with_the_same_name(company: Company) -> None:
    old = company.agent("dev", "ceo")
    shown(company, old, "mail_send", to="agent:ceo", subject="Hello", body="There.")
    company.call(company.board, agents.terminate, agent=old.id)
    company.agent("dev", "ceo")
    _, inbox = shown(company, company.ceo, "mail_inbox")
    assert f"agent:{old.id}" in [one["sender"] for one in inbox["messages"]]


def test_what_has_a_fixed_form_is_left_as_it_is(company: Company) -> None:
    _, made = shown(company, company.ceo, "kb_create", description="x", content="y")
    assert set(made) == {"id", "version", "hash"}
