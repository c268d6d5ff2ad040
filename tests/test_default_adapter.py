"""An agent that is created without many words: what runs it, what starts it, and who sits there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.errors import BadInput
from remit.model.execution.run import FAILURES_TOLD
from remit.services.hiring import configuration, hiring
from remit.services.identity import Caller
from remit.services.organisation import agents, idleness, reorganise
from remit.services.people import users
from remit.services.rights import grants
from remit.services.screens import needs_you
from remit.services.work import outcomes
from tests.company import Answer, Company, Member, opened
from tests.governance import approve, hire
from tests.mailing import look, send, unread
from tests.working import (
    at_work,
    claim,
    end,
    is_awake,
    lease,
    listed,
    over,
    statuses,
    why_idle,
)

PROCESS = {"command": "/bin/cat"}


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Company]:
    """With the clock on the wall, for workers."""
    with opened(f"sqlite:///{tmp_path}/remit.db", tmp_path / "home") as company:
        yield company


def create(company: Company, name: str, **more: Any) -> Answer:
    return company.call(company.board, agents.create, company=company.id, name=name, **more)


def runs_with(company: Company, agent: Answer) -> tuple[str, Any]:
    found = company.call(company.board, configuration.show, agent=agent["id"])
    return found["adapter_type"], found["adapter_config"]


# ── what runs it ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-22")
def test_without_an_adapter_it_is_that_of_the_boss_with_its_settings(company: Company) -> None:
    create(company, "lead", reports_to="ceo", adapter_type="process", adapter_config=PROCESS)
    assert runs_with(company, create(company, "a", reports_to="lead")) == ("process", PROCESS)
    assert runs_with(company, create(company, "b", reports_to="ceo")) == ("scripted", {})
    other = {"command": "/bin/echo"}
    given = create(company, "c", reports_to="lead", adapter_config=other)
    assert runs_with(company, given) == ("process", other)
    # What is said counts, and brings no settings along that belong to something else.
    said = create(company, "d", reports_to="lead", adapter_type="scripted")
    assert runs_with(company, said) == ("scripted", {})
    hired = hire(company, company.board, "e", reports_to="lead", adapter_type=None)["agent"]
    assert runs_with(company, hired) == ("process", PROCESS)


@pytest.mark.requirement("FX-22")
def test_without_a_boss_to_follow_it_is_the_first_that_can_be_used(company: Company) -> None:
    company.app.gate.usable_adapter = "codex"
    assert runs_with(company, create(company, "root")) == ("codex", {})
    assert runs_with(
        company, hire(company, company.board, "hired", adapter_type=None)["agent"]
    ) == ("codex", {})
    seat = create(company, "seat", adapter_type="human")
    assert runs_with(company, seat) == ("human", {})
    assert runs_with(company, create(company, "below", reports_to="seat")) == ("codex", {})
    # A person in between is passed over.
    create(company, "inner", reports_to="ceo", adapter_type="human")
    assert runs_with(company, create(company, "last", reports_to="inner")) == ("scripted", {})


@pytest.mark.requirement("FX-22")
def test_a_layer_that_is_put_in_is_run_like_the_boss_above_it(company: Company) -> None:
    create(company, "dev", reports_to="ceo", adapter_type="process", adapter_config=PROCESS)
    operation = {"op": "insert_layer", "agents": ["dev"], "name": "lead"}
    company.call(company.board, reorganise.reorganise, company=company.id, operations=[operation])
    lead = company.call(company.board, agents.show, agent="lead")
    assert runs_with(company, lead) == ("scripted", {})
    assert company.call(company.board, outcomes.show, outcome=lead["id"])["perpetual"]


def test_a_lent_secret_is_not_passed_on_without_a_person(company: Company) -> None:
    """Below somebody whose settings name a secret a hire waits, although hires do not wait."""
    lends = {"secretRef": "model-key"}
    create(
        company,
        "lead",
        reports_to="ceo",
        adapter_type="claude",
        adapter_config=lends,
        permissions={"canCreateAgents": True},
    )
    key = company.call(company.board, agents.create_key, agent="lead")
    asked = company.call(Caller(key["token"]), hiring.hire, company=None, name="helper")
    assert asked["approval"] is not None
    assert asked["agent"]["status"] == "pending_approval"


# ── what starts it ──────────────────────────────────────────────────────────────────────────────


def perpetual(company: Company, agent: Answer) -> bool:
    return bool(company.call(company.board, outcomes.show, outcome=agent["id"])["perpetual"])


@pytest.mark.requirement("FX-22")
def test_a_purpose_is_perpetual_unless_it_is_said_to_be_done_once(company: Company) -> None:
    cases: list[tuple[dict[str, Any], bool]] = [
        ({}, True),
        ({"purpose": "Write what is needed"}, True),
        ({"purpose": "Write what is needed", "perpetual": True}, True),
        ({"purpose": "Write the page", "perpetual": False}, False),
    ]
    for number, (given, expected) in enumerate(cases):
        made = create(company, f"made-{number}", reports_to="ceo", **given)
        hired = hire(company, company.ceo.caller, f"hired-{number}", **given)["agent"]
        for one in (made, hired):
            assert perpetual(company, one) is expected
            member = Member(one["id"], one["name"], company.board)
            # What can be accomplished is work; being taken on is not.
            assert is_awake(company, member) is not expected
            assert why_idle(company, member) == ("no_work" if expected else "no_slot")
    with pytest.raises(BadInput, match="perpetual"):
        create(company, "wrong", perpetual="no")


@pytest.mark.requirement("FX-22")
def test_being_approved_starts_nothing_by_itself(company: Company) -> None:
    company.sql("UPDATE companies SET require_board_approval_for_new_agents = true")
    asked = hire(company, company.ceo.caller, "writer", purpose="Write what is needed")
    approve(company, asked["approval"])
    writer = Member(asked["agent"]["id"], "writer", company.board)
    assert lease(company, writer) is None
    send(company, company.board, "agent:writer", "A page, please.")
    assert is_awake(company, writer)


@pytest.mark.requirement("FX-22", "HB-29")
def test_the_first_agent_of_the_readme_works_for_mail_and_stays_well(real: Company) -> None:
    script = "cat > /dev/null; echo done"
    made = create(
        real,
        "writer",
        reports_to="ceo",
        adapter_type="process",
        adapter_config={"command": "/bin/sh", "args": ["-c", script]},
        purpose="Write what is needed",
    )
    writer = Member(made["id"], "writer", real.board)
    # A worker is there for somebody else meanwhile, and does not start it.
    other = real.agent(
        "other",
        adapter_type="process",
        adapter_config={"command": "/bin/sh", "args": ["-c", script]},
        perpetual=True,
    )
    send(real, real.board, "agent:other", "You, please.")
    at_work(real, over(real, other))
    assert listed(real, writer) == []
    send(real, real.board, "agent:writer", "A page, please.")
    at_work(real, over(real, writer))
    assert statuses(real, writer) == ["completed"]
    assert real.call(real.board, agents.show, agent="writer")["status"] == "idle"
    assert why_idle(real, writer) == "no_work"


# ── seats ───────────────────────────────────────────────────────────────────────────────────────


def titles(company: Company, caller: Any) -> list[str]:
    found = company.call(caller, needs_you.listing, company=company.id)
    return [one["title"] for one in found if one["kind"] == "mail"]


def seat(company: Company, agent: str, user: str) -> None:
    operation = {"op": "seat", "agent": agent, "user": user}
    company.call(company.board, reorganise.reorganise, company=company.id, operations=[operation])


@pytest.mark.requirement("FX-22")
def test_a_seat_without_a_person_says_so_and_its_mail_reaches_the_board(company: Company) -> None:
    made = create(company, "desk", reports_to="ceo", adapter_type="human")
    why = company.call(company.board, idleness.why_idle, agent=made["id"])
    assert why["reason"] == "no_person"
    assert "nobody holds it" in why["sentence"]
    assert "remit org seat desk --user NAME" in why["sentence"]
    send(company, company.ceo.caller, "agent:desk", "Who reads this?", subject="Hello")
    assert [one["subject"] for one in unread(company, company.board)] == ["Hello"]
    assert titles(company, company.board) == ["Hello"]
    # Who wrote it is shown that it waits, and gets no copy.
    send(company, company.board, "agent:desk", "And this?", subject="Mine")
    assert [one["subject"] for one in unread(company, company.board)] == ["Hello"]
    assert "Mine (for desk, a seat that nobody holds)" in titles(company, company.board)
    # Of the board, those read it whose part of the company it is.
    create(company, "elsewhere", reports_to="ceo")
    part, apart = company.user("ann", scope="desk"), company.user("bob", scope="elsewhere")
    send(company, company.ceo.caller, "agent:desk", "And now?", subject="Again")
    assert [one["subject"] for one in unread(company, part)] == ["Again"]
    assert unread(company, apart) == []
    assert titles(company, apart) == []
    # Somebody who sits there finds all of it, and the board no more.
    company.user("eve", role="observer")
    seat(company, "desk", "eve")
    assert sorted(titles(company, company.token_of("eve"))) == ["Again", "Hello", "Mine"]
    assert company.call(company.board, idleness.why_idle, agent="desk")["reason"] == "person"
    send(company, company.ceo.caller, "agent:desk", "Good.", subject="Later")
    assert "Later" not in [one["subject"] for one in unread(company, company.board)]
    assert not any("seat" in title for title in titles(company, company.board))
    # Who leaves the company leaves the seat.
    company.call(company.board, users.remove, company=company.id, user="eve")
    assert company.call(company.board, idleness.why_idle, agent="desk")["reason"] == "no_person"
    assert "Later (for desk, a seat that nobody holds)" in titles(company, company.board)


# ── small things ────────────────────────────────────────────────────────────────────────────────


def test_whom_one_may_write_to_is_named_by_the_bare_name(company: Company) -> None:
    bb, cc = company.agent("bb"), company.agent("cc")
    for number, text in enumerate(("message:bb", "message:agent:bb", f"message:{bb.id}")):
        made = company.call(
            company.board, grants.give, company=company.id, to=cc.id, resource=text, level="use"
        )
        assert made["resource"] == f"message:{bb.id}", number
    send(company, cc.caller, "agent:bb", "Hello.")
    for wrong in ("message:", "message:two words", "message:a\nb", "message:agent:"):
        with pytest.raises(BadInput):
            company.call(
                company.board,
                grants.give,
                company=company.id,
                to=cc.id,
                resource=wrong,
                level="use",
            )


def test_a_reason_that_is_a_sentence_does_not_end_in_two_full_stops(company: Company) -> None:
    dev = company.agent("dev", perpetual=True)
    for number in range(FAILURES_TOLD):
        send(company, company.board, "agent:dev", f"{number}")
        company.sql("UPDATE agent_leases SET due_at = 0")
        error = "The program claude is not installed here."
        end(company, claim(company, dev), "failed", error=error)
        sentence = company.call(company.board, idleness.why_idle, agent="dev")["sentence"]
        assert "not installed here" in sentence
        assert ".." not in sentence
        assert ".)." not in sentence
    told = [one["body"] for one in look(company, company.ceo) if one["sender"] == "system"]
    assert len(told) == 2
    assert not any(".." in body for body in told), told
