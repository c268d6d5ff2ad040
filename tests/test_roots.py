"""The root of a company: there from its creation on, replaced but not removed, and restored."""

from collections.abc import Callable
from typing import Any

import pytest

from remit.clock import SystemClock
from remit.errors import BadInput, Conflict, Refused, RemitError, Unauthenticated
from remit.services.hiring import hiring
from remit.services.identity import Caller, as_system
from remit.services.organisation import agents, reorganise, roots, termination
from remit.services.people import companies, users
from remit.services.record import events
from remit.services.screens import overview
from remit.services.work import outcomes
from tests.company import Answer, Company, Member
from tests.mailing import send, unread
from tests.rootless import remove_root
from tests.working import end


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


def created(company: Company, **given: Any) -> tuple[Answer, Answer]:
    """A company, and its root agent."""
    made = company.call(company.board, companies.create, **{"name": "Acme", **given})
    return made, company.call(company.board, agents.show, agent=made["root_agent_id"])


def start_again(company: Company) -> list[str]:
    """What the next start of the instance put right."""

    company.app.restored.clear()
    company.wait(company.app.first_start(alone=False))
    return list(company.app.restored)


def agents_of(company: Company, which: str) -> list[Answer]:
    return company.call(company.board, agents.listing, company=which, terminated=True)


def of_action(company: Company, which: str, action: str) -> list[Answer]:
    found = company.call(company.board, events.listing, company=which, limit=1000)
    return [one for one in found if one["action"] == action]


# ── what a company begins with ──────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-14", "AG-85")
def test_a_company_created_later_begins_like_the_first_one(company: Company) -> None:
    made, root = created(company)
    first = company.call(company.board, agents.show, agent=company.ceo.id)
    alike = ("name", "role", "title", "status", "adapter_type", "boss_user_id", "reports_to")
    assert {key: root[key] for key in alike} == {key: first[key] for key in alike}
    for one in (first, root):
        mandate = company.call(company.board, outcomes.show, outcome=one["id"])
        assert (mandate["perpetual"], mandate["owner_id"]) == (True, one["id"])
        assert (mandate["status"], mandate["title"]) == ("open", roots.PURPOSE)
        with pytest.raises(Conflict, match="never completed"):
            company.call(company.board, outcomes.complete, outcome=one["id"])
    # One transaction: there is no moment at which the company has no root.
    (event,) = of_action(company, made["id"], "company.create")
    (agent,) = of_action(company, made["id"], "agent.create")
    assert event["at"] == agent["at"]
    assert company.call(as_system(), roots.missing) == []


@pytest.mark.requirement("FX-14")
def test_the_root_can_be_named_and_told_what_runs_it(company: Company) -> None:
    config = {"command": "/bin/true"}
    _, root = created(company, root_name="editor", adapter_type="process", adapter_config=config)
    assert (root["name"], root["adapter_type"]) == ("editor", "process")
    company.app.gate.usable_adapter = "claude"
    _, other = created(company, name="Other")
    assert (other["name"], other["adapter_type"]) == ("ceo", "claude")


def test_a_root_that_cannot_be_leaves_no_company_behind(company: Company) -> None:
    before = company.call(company.board, companies.listing)
    for wrong in (
        {"root_name": "two words"},
        {"root_name": "board"},
        {"adapter_type": "no-such"},
        {"adapter_type": "process"},
        {"adapter_type": "process", "adapter_config": {"command": 7}},
    ):
        with pytest.raises(BadInput):
            created(company, **wrong)
    with pytest.raises(Refused):
        company.call(company.user("ann"), companies.create, name="Mine")
    assert company.call(company.board, companies.listing) == before


# ── replaced, not removed ───────────────────────────────────────────────────────────────────────


def remove_layer(company: Company, agent: str) -> Answer:
    operations = [{"op": "remove_layer", "agent": agent}]
    return company.call(
        company.board, reorganise.reorganise, company=company.id, operations=operations
    )


@pytest.mark.requirement("FX-14", "HH-23")
def test_the_root_agent_is_not_removed_in_any_way(company: Company) -> None:
    before = company.call(company.board, events.verify, company=company.id)
    attempts: tuple[Callable[[], object], ...] = (
        lambda: company.call(company.board, agents.terminate, agent="ceo"),
        lambda: company.call(company.board, outcomes.close, outcome=company.ceo.id, rationale="x"),
        lambda: remove_layer(company, "ceo"),
    )
    for attempt in attempts:
        with pytest.raises(Conflict, match="ceo is the root agent") as refused:
            attempt()
        assert refused.value.reason == "root_agent"
        assert "Create another agent without a boss" in refused.value.step
    assert company.call(company.board, events.verify, company=company.id) == before
    assert company.call(company.ceo.caller, overview.me)["status"] == "idle"


@pytest.mark.requirement("FX-14")
def test_the_root_agent_is_replaced_by_another_or_by_its_reports(company: Company) -> None:
    lead = company.agent("lead", boss=None, perpetual=True)
    company.call(company.board, agents.terminate, agent="ceo")
    writer = company.agent("writer", boss="lead")
    remove_layer(company, "lead")
    found = company.call(company.board, agents.show, agent=writer.id)
    assert (found["reports_to"], found["status"]) == (None, "idle")
    assert start_again(company) == []
    assert {one["id"]: one["status"] for one in agents_of(company, company.id)} == {
        company.ceo.id: "terminated",
        lead.id: "terminated",
        writer.id: "idle",
    }


def test_a_root_that_only_waits_for_approval_does_not_count(company: Company) -> None:
    company.call(
        company.board,
        companies.change,
        company=company.id,
        require_board_approval_for_new_agents=True,
    )
    company.call(company.board, hiring.hire, company=company.id, name="next")
    with pytest.raises(Conflict, match="root agent"):
        company.call(company.board, agents.terminate, agent="ceo")


# ── restored ────────────────────────────────────────────────────────────────────────────────────


def without_root(company: Company, agent: str | None = None) -> None:
    company.wait(remove_root(company.app, agent or company.ceo.id))


@pytest.mark.requirement("FX-14", "HH-23")
def test_a_terminated_root_is_reinstated_at_the_next_start(company: Company) -> None:
    send(company, company.board, "agent:ceo", "Please.")
    without_root(company)
    second, root = created(company, root_name="chief")
    assert company.call(as_system(), roots.missing) == [company.id]
    (sentence,) = start_again(company)
    assert sentence == "ceo, the root agent of My company, was gone and works again."
    ceo = company.call(company.board, agents.show, agent=company.ceo.id)
    assert (ceo["id"], ceo["status"], ceo["reports_to"]) == (company.ceo.id, "idle", None)
    mandate = company.call(company.board, outcomes.show, outcome=ceo["id"])
    assert (mandate["status"], mandate["perpetual"]) == ("open", True)
    # Its credentials are dead; it gets new ones.
    with pytest.raises(Unauthenticated):
        company.call(company.ceo.caller, overview.me)
    key = company.call(company.board, agents.create_key, agent=ceo["id"])
    assert company.call(Caller(key["token"]), overview.me)["id"] == ceo["id"]
    run = company.run(Member(ceo["id"], "ceo", Caller(key["token"])))
    assert company.call(run.caller, overview.me)["run_id"] == run.id
    end(company, run)
    # It is in the record, and the board is told.
    (event,) = of_action(company, company.id, "company.restore_root")
    assert (event["actor"], event["details"]["reinstated"]) == ("system", True)
    assert event["details"]["agent"] == ceo["id"]
    assert "The root agent was restored" in [
        one["subject"] for one in unread(company, company.board)
    ]
    assert company.call(company.board, events.verify, company=company.id)["ok"]
    # The other company was not touched, and a further start changes nothing.
    assert [one["id"] for one in agents_of(company, second["id"])] == [root["id"]]
    before = company.call(company.board, events.verify, company=company.id)
    assert start_again(company) == []
    assert company.call(company.board, events.verify, company=company.id) == before


@pytest.mark.requirement("FX-14", "HH-23")
def test_in_the_place_of_a_purged_root_comes_a_new_one(company: Company) -> None:
    without_root(company)
    company.call(company.board, termination.purge, agent=company.ceo.id)
    company.app.gate.usable_adapter = "scripted"
    (sentence,) = start_again(company)
    assert sentence == "My company had no root agent; ceo is its new one."
    ceo = company.call(company.board, agents.show, agent="ceo")
    assert ceo["id"] != company.ceo.id
    mandate = company.call(company.board, outcomes.show, outcome=ceo["id"])
    assert (mandate["perpetual"], mandate["title"]) == (True, roots.PURPOSE)
    (event,) = of_action(company, company.id, "company.restore_root")
    assert event["details"] == {"agent": ceo["id"], "name": "ceo", "reinstated": False}
    assert start_again(company) == []


def test_a_name_that_was_given_away_is_not_taken_back(company: Company) -> None:
    company.call(
        company.board,
        companies.change,
        company=company.id,
        require_board_approval_for_new_agents=True,
    )
    without_root(company)
    company.call(company.board, hiring.hire, company=company.id, name="ceo")
    assert start_again(company) == ["My company had no root agent; ceo-2 is its new one."]


def test_a_root_whose_boss_left_reports_to_who_is_on_the_board(company: Company) -> None:
    ann = company.user("ann")
    made = company.call(
        ann, agents.create, company=company.id, name="lead", purpose="Lead", reports_to=None
    )
    company.call(company.board, agents.terminate, agent="ceo")
    company.call(company.board, users.remove, company=company.id, user="ann")
    without_root(company, made["id"])
    assert len(start_again(company)) == 1
    lead = company.call(company.board, agents.show, agent="lead")
    assert lead["id"] == made["id"]
    assert lead["boss_user_id"] == company.call(company.board, users.me)["id"]


@pytest.mark.requirement("FX-14")
def test_several_starts_at_once_restore_once(company: Company) -> None:
    without_root(company)
    found = company.together(
        [company.app.gate(as_system(), roots.restore, company=company.id) for _ in range(5)]
    )
    assert sorted(type(one).__name__ for one in found) == ["Conflict"] * 4 + ["dict"]
    assert len(of_action(company, company.id, "company.restore_root")) == 1
    assert len(agents_of(company, company.id)) == 1


def test_nobody_but_remit_restores(company: Company) -> None:
    without_root(company)
    for caller in (company.board, company.ceo.caller):
        with pytest.raises(RemitError):
            company.call(caller, roots.restore, company=company.id)
    assert company.call(as_system(), roots.missing) == [company.id]
