"""Taking agents on: with and without being asked, for posts and for outcomes; and refusing them."""

import sys
from typing import Any

import pytest

from remit.clock import DAY, to_iso
from remit.errors import AlreadyExists, BadInput, Conflict
from remit.services.governance import approvals
from remit.services.hiring import configuration, hiring
from remit.services.knowledge import files
from remit.services.organisation import agents, idleness, reorganise
from remit.services.people import companies, users
from remit.services.record import events
from remit.services.rights import grants
from remit.services.work import delegation, outcomes
from remit.store.engine.migrate import is_sqlite
from remit.testing.clock import VirtualClock
from tests.company import Answer, Company
from tests.governance import (
    approve,
    count,
    empower,
    hire,
    hired,
    letters,
    reject,
    resubmit,
    seen,
    send_back,
)
from tests.organisation import dump, member, refusal, shown, work
from tests.walking import Walk, re_entries


@pytest.fixture
def asks_before_hiring() -> bool:
    return True


def ask_no_more(company: Company) -> None:
    company.call(
        company.board,
        companies.change,
        company=company.id,
        require_board_approval_for_new_agents=False,
    )


def delegated(company: Company, outcome: str, name: str = "taker", **more: Any) -> Answer:
    wanted = {"name": name, "adapter_type": "scripted"}
    return company.call(
        company.ceo.caller, delegation.delegate, outcome=outcome, hire=wanted, **more
    )


def status(company: Company, agent: Answer | str) -> str:
    which = agent if isinstance(agent, str) else agent["id"]
    return str(company.call(company.board, agents.show, agent=which)["status"])


# ── the setting ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("PC-01", "PC-02", "PC-03", "PC-04")
def test_a_new_company_wants_to_be_asked_until_it_says_otherwise(company: Company) -> None:
    made = company.call(company.board, companies.create, name="New")
    assert made["require_board_approval_for_new_agents"] is True
    (stored,) = company.sql(
        "SELECT require_board_approval_for_new_agents FROM companies WHERE id = ?", made["id"]
    )[0]
    assert bool(stored) is True
    with pytest.raises(TypeError):
        companies.create.body(  # type: ignore[call-arg]
            None,  # type: ignore[arg-type]
            name="Never asks",
            require_board_approval_for_new_agents=False,
        )
    for wrong in ("no", 0, [True]):
        with pytest.raises(BadInput):
            company.call(
                company.board,
                companies.change,
                company=made["id"],
                require_board_approval_for_new_agents=wrong,  # type: ignore[arg-type]
            )
    changed = company.call(
        company.board,
        companies.change,
        company=made["id"],
        require_board_approval_for_new_agents=False,
    )
    assert changed["require_board_approval_for_new_agents"] is False
    again = company.call(company.board, companies.show, company=made["id"])
    assert again["require_board_approval_for_new_agents"] is False
    assert (
        refusal(
            company,
            company.ceo.caller,
            companies.change,
            company=company.id,
            require_board_approval_for_new_agents=False,
        )
        == "board_only"
    )


@pytest.mark.requirement("PC-34", "PC-35", "PC-36", "PC-40", "PC-33", "PC-78")
def test_where_the_company_asks_a_hire_waits_for_the_board(company: Company) -> None:
    made = hire(company, company.ceo.caller, "designer", role="designer", title="Designer")
    assert made["agent"]["status"] == "pending_approval"
    approval = made["approval"]
    assert (approval["type"], approval["status"]) == ("hire_agent", "pending")
    assert approval["payload"]["agentId"] == approval["agent_id"] == made["agent"]["id"]
    assert approval["payload"]["reportsTo"] == company.ceo.id
    approve(company, approval, note="Welcome.")
    assert status(company, made["agent"]) == "idle"
    log = company.call(company.board, events.listing, company=company.id, limit=30)
    about = [one["action"] for one in reversed(log) if one["action"][:6] in ("agent.", "approv")]
    assert about[-4:] == ["agent.create", "approval.request", "approval.approve", "agent.hire"]


def test_a_hire_goes_back_to_a_service_that_it_left_at_most_three_times(
    small: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it is made of follows one another, so that it can be read from beginning to end."""
    walk, boss, answer = Walk(), hiring._boss, hiring.answer

    def beginning(*given: Any) -> Any:
        sys.setprofile(walk)
        return boss(*given)

    def ending(*given: Any) -> Any:
        found = answer(*given)
        sys.setprofile(None)
        return found

    monkeypatch.setattr(hiring, "_boss", beginning)
    monkeypatch.setattr(hiring, "answer", ending)
    walk.recording = True
    hire(small, small.ceo.caller, "worker")
    walk.recording = False
    assert walk.services[0] == "hiring/hiring"
    assert "governance/approval_engine" in walk.services
    assert re_entries(walk.services) <= 3, walk.services


def test_a_hire_that_is_submitted_again_keeps_its_place_and_says_so(company: Company) -> None:
    ceo, other = company.ceo.caller, company.agent("other")
    made = hire(company, ceo, "designer")
    send_back(company, made["approval"], "Below other.")
    for changed in ({"reportsTo": "other"}, {"reportsTo": other.id}, {"outcomeId": other.id}):
        with pytest.raises(BadInput, match=r"keeps its (boss|outcome)") as caught:
            resubmit(company, ceo, made["approval"], **changed)
        assert caught.value.step == "Withdraw it, and ask anew."
    others: dict[str, Any] = {"perpetual": False, "setAside": {"money": 5}}
    for key, value in others.items():
        with pytest.raises(BadInput, match=r"keeps its (kind of mandate|reservation)"):
            resubmit(company, ceo, made["approval"], **{key: value})
    kept = {
        key: made["approval"]["payload"][key] for key in ("reportsTo", "outcomeId", "perpetual")
    }
    assert resubmit(company, ceo, made["approval"], **kept)["status"] == "pending"
    send_back(company, made["approval"], "Well?")
    assert resubmit(company, ceo, made["approval"], reportsTo="ceo")["status"] == "pending"


@pytest.mark.requirement("HB-18")
def test_permissions_in_a_hire_that_is_submitted_again_are_those_of_who_is_hired(
    company: Company,
) -> None:
    ceo, lead = company.ceo.caller, company.agent("lead", permissions={"canCreateAgents": True})
    made = hire(company, ceo, "designer")
    assert made["approval"]["payload"]["permissions"] == {}
    send_back(company, made["approval"], "It should hire.")
    again = resubmit(company, ceo, made["approval"], permissions={"canCreateAgents": True})
    assert again["payload"]["permissions"] == {"canCreateAgents": True}
    send_back(company, made["approval"], "And the rest?")
    assert resubmit(company, ceo, made["approval"], title="Artist")["payload"]["permissions"] == {
        "canCreateAgents": True
    }
    approve(company, made["approval"], expected_revision=3)
    shown = company.call(company.board, agents.show, agent="designer")
    assert shown["permissions"] == {"canCreateAgents": True}
    # From those alone who could have asked for it in the first place.
    asked = hire(company, lead.caller, "helper")["approval"]
    send_back(company, asked)
    for wish, code in (
        ({"permissions": {"canCreateAgents": True}}, "not_ceo"),
        ({"permissionLevel": "boss"}, "board_only"),
    ):
        again = {"approval": asked["id"], "payload": wish}
        assert refusal(company, lead.caller, approvals.resubmit, **again) == code
    with pytest.raises(BadInput, match="is not known"):
        resubmit(company, lead.caller, asked, permissions={"canFly": True})
    own = hire(company, company.board, "trusted", reports_to="ceo")["approval"]
    send_back(company, own)
    again = resubmit(company, company.board, own, permissionLevel="boss")
    assert again["payload"]["permissionLevel"] == "boss"
    approve(company, own)
    shown = company.call(company.board, agents.show, agent="trusted")
    assert shown["permission_level"] == "boss"


def test_whoever_approves_reads_what_the_agent_is_needed_for(company: Company) -> None:
    made = hire(company, company.ceo.caller, "designer", reason=" We need a logo. ")
    assert made["approval"]["payload"]["reason"] == "We need a logo."
    send_back(company, made["approval"], "By when?")
    again = resubmit(company, company.ceo.caller, made["approval"], title="Designer")
    assert again["payload"]["reason"] == "We need a logo."
    send_back(company, made["approval"], "By when?")
    again = resubmit(company, company.ceo.caller, made["approval"], reason="A logo by May.")
    assert again["payload"]["reason"] == "A logo by May."
    # It is no part of what the agent is, and need not be given.
    assert "reason" not in again["payload"]["requestedConfigurationSnapshot"]
    assert "reason" not in hire(company, company.ceo.caller, "other")["approval"]["payload"]
    goal = work(company, company.ceo.caller, company.ceo.id)
    wanted = {"name": "taker", "adapter_type": "scripted", "reason": "I lack the time."}
    handed = company.call(company.ceo.caller, delegation.delegate, outcome=goal, hire=wanted)
    assert handed["approval"]["payload"]["reason"] == "I lack the time."
    with pytest.raises(BadInput, match="reason"):
        hire(company, company.ceo.caller, "long", reason="x" * 3_000)


@pytest.mark.requirement("PC-37", "PC-78")
def test_where_it_does_not_the_agent_works_at_once(company: Company) -> None:
    ask_no_more(company)
    before = count(company, "approvals")
    made = hire(company, company.ceo.caller, "designer")
    assert (made["agent"]["status"], made["approval"]) == ("idle", None)
    assert count(company, "approvals") == before


@pytest.mark.requirement("PC-38", "PC-39")
def test_the_board_creates_directly_and_the_record_says_so(company: Company) -> None:
    made = company.call(
        company.board, agents.create, company=company.id, name="direct", reports_to="ceo"
    )
    assert made["status"] == "idle"
    (found,) = [
        one
        for one in company.call(company.board, approvals.listing, company=company.id)
        if one["agent_id"] == made["id"]
    ]
    assert (found["status"], found["requested_by_agent_id"]) == ("approved", None)
    assert found["decided_by_user_id"] == found["requested_by_user_id"] is not None
    assert found["payload"]["requestedConfigurationSnapshot"]["name"] == "direct"
    for verb in (approvals.approve, approvals.reject, approvals.cancel):
        assert refusal(company, company.board, verb, approval=found["id"]) == "wrong_status"
    assert (
        refusal(company, company.ceo.caller, agents.create, company=None, name="x") == "board_only"
    )


@pytest.mark.requirement("PC-12", "PC-34")
def test_only_who_may_create_agents_hires_for_a_post(company: Company) -> None:
    lead = company.agent("lead")
    before = dump(company, {"events", "event_heads"})
    assert refusal(company, lead.caller, hiring.hire, company=None, name="x") == "may_not_hire"
    assert dump(company, {"events", "event_heads"}) == before
    permitted = company.agent("permitted", permissions={"canCreateAgents": True})
    made = hire(company, permitted.caller, "helper")
    assert made["agent"]["reports_to"] == permitted.id
    neighbour = company.second_company()
    with pytest.raises(Exception, match="no such company"):
        company.call(permitted.caller, hiring.hire, company=neighbour.id, name="spy")


@pytest.mark.requirement("HH-13")
def test_an_agent_hires_below_itself_and_nowhere_else(company: Company) -> None:
    lead = company.agent("lead", permissions={"canCreateAgents": True})
    company.agent("worker", "lead")
    company.agent("peer")
    assert hire(company, lead.caller, "a")["agent"]["reports_to"] == lead.id
    below = hire(company, lead.caller, "b", reports_to="worker")["agent"]
    assert below["reports_to"] == company.call(company.board, agents.show, agent="worker")["id"]
    for boss in ("ceo", "peer"):
        assert (
            refusal(company, lead.caller, hiring.hire, company=None, name="c", reports_to=boss)
            == "not_below_you"
        )
    root = hire(company, company.board, "founder", role="ceo")
    approve(company, root["approval"])
    assert status(company, root["agent"]) == "idle"


def test_what_is_not_said_is_as_at_the_boss(company: Company) -> None:
    lead = company.agent("lead", adapter_type="llm", permissions={"canCreateAgents": True})
    made = company.call(lead.caller, hiring.hire, company=None, name="same")
    assert made["agent"]["adapter_type"] == "llm"
    assert made["approval"]["status"] == "pending"
    with pytest.raises(BadInput, match="known"):
        company.call(
            lead.caller,
            delegation.delegate,
            outcome=work(company, lead.caller, lead.id),
            hire={"name": "x", "boss": "ceo"},
        )
    for wrong in ({"adapter_type": "nonsense"}, {"adapter_config": {"surprise": 1}}, {"role": "x"}):
        with pytest.raises(BadInput):
            hire(company, company.ceo.caller, "wrong", **wrong)


# ── not taking somebody on ──────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("PC-41", "PC-42", "PC-33")
@pytest.mark.parametrize("verb", [approvals.reject, approvals.cancel])
def test_who_is_not_taken_on_is_terminated_and_the_name_is_free(
    company: Company, verb: Any
) -> None:
    made = hire(company, company.ceo.caller, "designer")
    company.call(company.board, verb, approval=made["approval"]["id"], note="Not now.")
    assert status(company, made["agent"]) == "terminated"
    assert shown(company, made["agent"]["id"])["status"] == "closed"
    again = hire(company, company.ceo.caller, "Designer")
    assert again["agent"]["id"] != made["agent"]["id"]
    assert status(company, again["agent"]) == "pending_approval"


@pytest.mark.requirement("PC-42")
def test_a_disapproved_agent_is_deleted_and_its_approval_stays(company: Company) -> None:
    made = hire(company, company.ceo.caller, "designer")
    approval, agent = made["approval"], made["agent"]
    company.call(company.board, approvals.comment, approval=approval["id"], body="Hm.")
    assert (
        refusal(company, company.board, approvals.delete_agent, approval=approval["id"])
        == "conflict"
    )
    reject(company, approval, note="No.")
    assert (
        refusal(company, company.ceo.caller, approvals.delete_agent, approval=approval["id"])
        == "board_only"
    )
    gone = company.call(company.board, approvals.delete_agent, approval=approval["id"])
    assert gone == {"id": agent["id"], "deleted": True, "approval_id": approval["id"]}
    assert refusal(company, company.board, agents.show, agent=agent["id"]) == "not_found"
    kept = seen(company, approval)
    assert (kept["status"], kept["agent_id"]) == ("rejected", None)
    assert kept["payload"]["agentId"] == agent["id"]
    assert [one["body"] for one in kept["comments"]] == ["Hm.", "No."]
    assert (
        refusal(company, company.board, approvals.delete_agent, approval=approval["id"])
        == "not_found"
    )
    assert company.call(company.board, events.verify, company=company.id)["ok"]


def test_who_was_taken_on_is_not_deleted(company: Company) -> None:
    made = hire(company, company.ceo.caller, "designer")
    approve(company, made["approval"])
    company.call(company.board, agents.terminate, agent=made["agent"]["id"])
    assert (
        refusal(company, company.board, approvals.delete_agent, approval=made["approval"]["id"])
        == "conflict"
    )


def test_deleting_leaves_nothing_dangling_whatever_others_did_with_it(company: Company) -> None:
    board, ceo = company.board, company.ceo
    helper = company.agent("helper")
    made = hire(company, ceo.caller, "designer")
    agent = made["agent"]
    papers = (agent["state_file_id"], agent["log_file_id"], agent["id"])
    for paper in papers:
        company.read(ceo.caller, paper)
    # Others refer to it in every way that is open to them.
    company.give(board, helper, {"id": papers[0]}, "read")
    company.call(
        board,
        grants.give,
        company=company.id,
        to=helper.id,
        resource=f"message:{agent['id']}",
        level="use",
    )
    file = company.file(board, f"see kb://{agent['id']}".encode())
    company.give(board, helper, file, "read", scope=agent["id"])
    company.wait(company.app.library.send(board, body=None, to="agent:helper", file=papers[1]))
    own = work(company, ceo.caller, ceo.id, "Also for the designer")
    company.call(
        ceo.caller,
        outcomes.change,
        outcome=own,
        version=1,
        blocked_by=[agent["id"]],
    )
    reject(company, made["approval"])
    company.call(board, approvals.delete_agent, approval=made["approval"]["id"])
    assert shown(company, own)["blocked_by"] == []
    _assert_no_reference_to(company, agent["id"], *papers[:1])
    # What was sent to somebody stays theirs.
    assert company.read(helper.caller, papers[1])[1] == b""
    assert refusal(company, board, files.show, file=papers[0]) == "not_found"
    if is_sqlite(company.url):
        assert company.sql("PRAGMA foreign_key_check") == []


#: What keeps names of what is gone: the record, requests as they were made, and links in prose.
REMEMBERS = frozenset(
    {
        "events", "event_heads", "answers", "approvals", "approval_revisions", "file_links",
        "grants",
    }
)  # fmt: skip


def _assert_no_reference_to(company: Company, *ids: str) -> None:
    for table, rows in dump(company, REMEMBERS).items():
        for row in rows:
            assert not any(one in row for one in ids), (table, row)
    for one in ids:
        assert count(company, "grants", "resource_id = ? AND revoked_at IS NULL", one) == 0
        assert count(company, "grants", "holder_id = ? OR scope_id = ?", one, one) == 0
        assert count(company, "approvals", "agent_id = ? OR home_agent_id = ?", one, one) == 0


def test_an_agent_that_is_somebodys_part_is_not_deleted_under_them(company: Company) -> None:
    made = hire(company, company.board, "founder")  # reports to a person
    company.user("partial", scope="founder")
    reject(company, made["approval"])
    with pytest.raises(Conflict, match="partial"):
        company.call(company.board, approvals.delete_agent, approval=made["approval"]["id"])
    company.call(company.board, users.remove, company=company.id, user="partial")
    company.call(company.board, approvals.delete_agent, approval=made["approval"]["id"])
    _assert_no_reference_to(company, made["agent"]["id"])


# ── a hire for an outcome ───────────────────────────────────────────────────────────────────────


def test_responsibility_moves_when_the_hire_takes_effect(company: Company) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    part = work(company, ceo.caller, goal, "Part")
    made = delegated(company, goal)
    assert made["agent"]["id"] == goal
    assert (made["outcome"]["owner_id"], made["outcome"]["delegated"]) == (ceo.id, False)
    # Until then, the owner goes on as before.
    later = work(company, ceo.caller, goal, "Another part")
    company.call(ceo.caller, outcomes.change, outcome=goal, version=1, title="Better goal")
    with pytest.raises(Conflict, match="by now"):  # the board has read the other title
        approve(company, made["approval"])
    send_back(company, made["approval"])
    resubmit(company, ceo.caller, made["approval"])
    approve(company, made["approval"])
    for outcome in (goal, part, later):
        assert shown(company, outcome)["owner_id"] == goal
    taken = shown(company, goal)
    assert (taken["delegated"], taken["delegator_id"]) == (True, ceo.id)
    assert taken["title"] == "Better goal"


def test_one_hire_at_a_time_waits_for_an_outcome(company: Company) -> None:
    company.agent("report")
    goal = work(company, company.ceo.caller, company.ceo.id, "Goal")
    first = delegated(company, goal)
    for other in ({"to": "report"}, {"hire": {"name": "second", "adapter_type": "scripted"}}):
        assert (
            refusal(company, company.ceo.caller, delegation.delegate, outcome=goal, **other)
            == "conflict"
        )
    reject(company, first["approval"])
    assert shown(company, goal)["owner_id"] == company.ceo.id
    assert (shown(company, goal)["status"], status(company, goal)) == ("open", "terminated")
    company.call(company.ceo.caller, delegation.delegate, outcome=goal, to="report")


def test_who_was_deleted_can_be_hired_for_the_same_outcome_again(company: Company) -> None:
    goal = work(company, company.ceo.caller, company.ceo.id, "Goal")
    first = delegated(company, goal)
    reject(company, first["approval"])
    company.call(company.board, approvals.delete_agent, approval=first["approval"]["id"])
    again = delegated(company, goal)
    assert again["agent"]["id"] == goal
    approve(company, again["approval"])
    assert shown(company, goal)["owner_id"] == goal
    assert seen(company, first["approval"])["payload"]["agentId"] == goal


@pytest.mark.parametrize("who", ["owner", "board"])
def test_a_hire_is_withdrawn_when_its_outcome_is_finished(company: Company, who: str) -> None:
    goal = work(company, company.ceo.caller, company.ceo.id, "Goal")
    part = work(company, company.ceo.caller, goal, "Part")
    made = delegated(company, part)
    caller = company.board if who == "board" else company.ceo.caller
    company.call(caller, outcomes.close, outcome=goal, rationale="Not wanted.")
    assert seen(company, made["approval"])["status"] == "cancelled"
    assert status(company, part) == "terminated"
    told = [one["subject"] for one in letters(company, company.ceo)]
    by_board = ["Closed: Goal", "Cancelled: hire taker as general"]
    assert told == (by_board if who == "board" else [])


def test_a_hire_is_withdrawn_when_its_outcome_is_reclaimed(company: Company) -> None:
    lead = company.agent("lead")
    goal = work(company, company.ceo.caller, company.ceo.id, "Goal")
    company.call(company.ceo.caller, delegation.delegate, outcome=goal, to="lead")
    part = work(company, lead.caller, goal, "Part")
    made = company.call(
        lead.caller,
        delegation.delegate,
        outcome=part,
        hire={"name": "helper", "adapter_type": "scripted"},
    )
    company.call(company.ceo.caller, delegation.reclaim, outcome=goal, reason="Mine again.")
    assert seen(company, made["approval"])["status"] == "cancelled"
    assert shown(company, part)["owner_id"] == company.ceo.id
    assert [one["subject"] for one in letters(company, lead)] == [
        "Cancelled: hire helper as general"
    ]


@pytest.mark.parametrize("by", ["agent", "board"])
def test_a_hire_for_what_went_to_another_owner_is_not_approved(company: Company, by: str) -> None:
    lead = company.agent("lead")
    goal = work(company, company.ceo.caller, company.ceo.id, "Goal")
    part = work(company, company.ceo.caller, goal, "Part")
    made = (
        delegated(company, part)
        if by == "agent"
        else hire(company, company.board, "taker", outcome=part)
    )
    company.call(company.ceo.caller, delegation.delegate, outcome=goal, to="lead")
    assert shown(company, part)["owner_id"] == lead.id
    before = dump(company)
    with pytest.raises(Conflict):
        approve(company, made["approval"])
    assert dump(company) == before
    reject(company, made["approval"])
    assert (shown(company, part)["status"], status(company, part)) == ("open", "terminated")


def test_everybody_below_one_who_goes_is_not_hired_any_more(company: Company) -> None:
    lead = company.agent("lead", permissions={"canCreateAgents": True})
    made = hire(company, lead.caller, "helper")
    goal = work(company, lead.caller, lead.id)
    handed = company.call(
        lead.caller,
        delegation.delegate,
        outcome=goal,
        hire={"name": "taker", "adapter_type": "scripted"},
    )
    company.call(company.board, outcomes.close, outcome=lead.id, rationale="Closed.")
    for one in (made, handed):
        assert seen(company, one["approval"])["status"] == "cancelled"
        assert status(company, one["agent"]) == "terminated"


def test_a_boss_that_moves_takes_the_hire_along(company: Company) -> None:
    lead = company.agent("lead", permissions={"canCreateAgents": True})
    company.agent("peer")
    made = hire(company, lead.caller, "helper")
    company.call(
        company.board,
        reorganise.reorganise,
        company=company.id,
        operations=[{"op": "move", "agent": "lead", "to": "peer"}],
    )
    approve(company, made["approval"])
    assert status(company, made["agent"]) == "idle"


# ── what comes with a hire ──────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-01")
def test_grants_are_weighed_when_asked_for_and_given_when_approved(company: Company) -> None:
    ceo = company.ceo
    file = company.file(ceo.caller)
    resource = f"kb_file:{file['id']}"
    secret = company.file(company.board, b"x", "secret", unlisted=True)
    for beyond in (
        {"resource": f"kb_file:{secret['id']}", "level": "read"},
        {"resource": "approval.decide", "level": "use"},
        {"resource": resource, "level": "read", "mode": "deny"},
        "nonsense",
    ):
        assert refusal(
            company, ceo.caller, hiring.hire, company=None, name="x", given=[beyond]
        ) in ("not_found", "not_held", "invalid")
    made = hire(company, ceo.caller, "reader", given=[{"resource": resource, "level": "read"}])
    assert count(company, "grants", "holder_id = ?", made["agent"]["id"]) == 0
    approve(company, made["approval"])
    reader = member(company, made["agent"])
    assert company.read(reader.caller, file["id"])[1] == b"text"
    (held,) = company.call(reader.caller, grants.listing, company=None)
    assert (held["granted_by"], held["scope"]) == (f"agent:{ceo.id}", reader.id)


def test_what_the_requester_has_lost_meanwhile_is_not_given(
    company: Company, clock: VirtualClock
) -> None:
    lead = company.agent("lead", permissions={"canCreateAgents": True})
    file = company.file(company.board)
    resource = f"kb_file:{file['id']}"
    held = company.give(company.board, lead, file, "write")
    until = to_iso(clock.now() + DAY)
    lost = hire(company, lead.caller, "one", given=[{"resource": resource, "level": "read"}])
    over = hire(
        company,
        lead.caller,
        "two",
        given=[{"resource": resource, "level": "read", "expires_at": until}],
    )
    clock.advance(2 * DAY)
    with pytest.raises(Conflict, match="cannot be carried out any more"):
        approve(company, over["approval"])
    company.call(company.board, grants.revoke, grant=held["id"])
    before = dump(company)
    with pytest.raises(Conflict, match="cannot be carried out any more"):
        approve(company, lost["approval"])
    assert dump(company) == before  # not even a refusal is recorded as the board's
    send_back(company, lost["approval"], "Without the file.")
    resubmit(company, lead.caller, lost["approval"], grants=[])
    approve(company, lost["approval"])
    assert status(company, lost["agent"]) == "idle"


@pytest.mark.requirement("PC-32", "PC-78")
def test_the_revision_that_is_approved_is_the_agent_that_works(company: Company) -> None:
    made = hire(
        company,
        company.ceo.caller,
        "designer",
        prompt="Draw.",
        adapter_type="process",
        adapter_config={"command": "draw", "env": {"API_KEY": "sk-live-0123456789abcdef0123"}},
    )
    shown_config = made["approval"]["payload"]["requestedConfigurationSnapshot"]
    assert "sk-live" not in str(made)
    send_back(company, made["approval"], "Which tools?")
    changed = {**shown_config["adapterConfig"], "args": ["--svg"]}
    again = resubmit(
        company,
        company.ceo.caller,
        made["approval"],
        name="artist",
        prompt="Draw with a pen.",
        requestedConfigurationSnapshot={"adapterConfig": changed},
    )
    assert again["payload"]["name"] == "artist"
    approve(company, made["approval"], expected_revision=2)
    name, prompt, config = company.sql(
        "SELECT name, prompt, adapter_config FROM agents WHERE id = ?", made["agent"]["id"]
    )[0]
    assert (name, prompt) == ("artist", "Draw with a pen.")
    # The secret that nobody could see came back as what it was.
    assert "sk-live-0123456789abcdef0123" in config
    assert "--svg" in config
    assert hired(company, company.ceo.caller, "designer").name == "designer"
    with pytest.raises(AlreadyExists):
        hire(company, company.ceo.caller, "artist")


def test_a_revision_must_be_possible_too(company: Company) -> None:
    company.agent("taken")
    made = hire(company, company.ceo.caller, "designer")
    send_back(company, made["approval"])
    for wrong in (
        {"name": "taken"},
        {"role": "emperor"},
        {"adapterConfig": {"surprise": True}},
        {"grants": [{"resource": "approval.decide", "level": "use"}]},
        {"grants": "all"},
        {"requestedConfigurationSnapshot": "whole"},
    ):
        before = dump(company, {"events", "event_heads"})
        assert refusal(
            company,
            company.ceo.caller,
            approvals.resubmit,
            approval=made["approval"]["id"],
            payload=wrong,
        )
        assert dump(company, {"events", "event_heads"}) == before


@pytest.mark.requirement("HB-18")
def test_permissions_and_levels_come_with_a_hire_from_those_who_set_them(
    company: Company,
) -> None:
    lead = company.agent("lead", permissions={"canCreateAgents": True})
    asked: dict[str, Any] = {"company": None, "name": "x", "adapter_type": "scripted"}
    assert (
        refusal(company, lead.caller, hiring.hire, **asked, permissions={"canCreateAgents": True})
        == "not_ceo"
    )
    for caller in (lead.caller, company.ceo.caller):
        assert refusal(company, caller, hiring.hire, **asked, level="boss") == "board_only"
    made = hire(company, company.ceo.caller, "second", permissions={"canCreateAgents": True})
    approve(company, made["approval"])
    shown_agent = company.call(company.board, agents.show, agent="second")
    assert shown_agent["permissions"] == {"canCreateAgents": True}
    config = {
        "model": "claude-opus-4-5",
        "reasoningEffort": "xhigh",
        "sessionPolicy": {"idleTime": "2h", "maxContextTokens": 150_000},
    }
    trusted = hire(
        company,
        company.board,
        "trusted",
        reports_to="ceo",
        level="boss",
        adapter_type="claude",
        adapter_config=config,
    )
    assert count(company, "grants", "holder_id = ?", trusted["agent"]["id"]) == 0
    # No agent gives a level, not even by deciding about it.
    empower(company, company.ceo)
    assert (
        refusal(
            company,
            company.ceo.caller,
            approvals.approve,
            approval=trusted["approval"]["id"],
        )
        == "people_decide"
    )
    approve(company, trusted["approval"])
    shown_agent = company.call(company.board, agents.show, agent="trusted")
    assert shown_agent["permission_level"] == "boss"
    kept = company.call(company.board, configuration.show, agent="trusted")
    assert (kept["adapter_type"], kept["adapter_config"]) == ("claude", config)
    later = {"model": None, "reasoningEffort": None, "sessionPolicy": {"idleTime": "1h"}}
    company.call(
        company.board, configuration.change, agent="trusted", changes={"adapterConfig": later}
    )
    kept = company.call(company.board, configuration.show, agent="trusted")
    assert kept["adapter_config"] == later
    assert count(company, "grants", "holder_id = ?", trusted["agent"]["id"]) == 2


def test_a_hire_gated_by_a_grant_asks_even_if_the_company_does_not(company: Company) -> None:
    ask_no_more(company)
    empower(company, company.ceo, "agent.create", mode="ask")
    made = hire(company, company.ceo.caller, "designer")
    assert made["agent"]["status"] == "pending_approval"
    approve(company, made["approval"])
    assert status(company, made["agent"]) == "idle"
    company.call(
        company.board,
        grants.give,
        company=company.id,
        to="ceo",
        resource="agent.create",
        level="use",
        mode="deny",
    )
    assert (
        refusal(company, company.ceo.caller, hiring.hire, company=None, name="x")
        == "denied_by_grant"
    )


@pytest.mark.requirement("HH-24")
def test_the_configuration_of_a_hire_is_its_first_revision(company: Company) -> None:
    made = hired(company, company.ceo.caller, "designer", prompt="Draw.")
    (first,) = company.call(company.board, configuration.revisions, agent=made.id)
    assert (first["number"], first["source"]) == (1, "create")
    assert first["configuration"]["prompt"] == "Draw."


def test_a_hire_for_an_outcome_reports_to_its_owner(small: Company) -> None:
    small.agent("other")
    goal = work(small, small.ceo.caller, small.ceo.id, "Goal")
    with pytest.raises(BadInput, match="reports to ceo, who owns it"):
        hire(small, small.board, "dev", outcome=goal, reports_to="other")


def test_a_hire_that_was_sent_back_says_who_has_to_revise_it(company: Company) -> None:
    board = company.call(company.board, users.me)["name"]
    for caller, requester in ((company.ceo.caller, "ceo"), (company.board, board)):
        made = hire(company, caller, f"new-{requester}")

        def sentence(made: Answer = made) -> str:
            idle = company.call(company.board, idleness.why_idle, agent=made["agent"]["id"])
            assert idle["reason"] == "approval"
            return str(idle["sentence"])

        assert sentence() == "Waits for its hire to be approved."
        send_back(company, made["approval"])
        assert sentence() == f"Its hire was sent back; {requester} has to revise it."
        resubmit(company, caller, made["approval"])
        assert sentence() == "Waits for its hire to be approved."
