"""One agent from all sides, and a hire that is only tried out; on both databases."""

from __future__ import annotations

from typing import Any

import pytest

from remit.errors import AlreadyExists, BadInput, NotFound, Refused
from remit.services.governance import approvals
from remit.services.hiring import configuration, hire_preview
from remit.services.identity import Caller
from remit.services.messaging import mail
from remit.services.record import events
from remit.services.screens import agent_page
from remit.services.work import outcomes
from tests.company import Answer, Company
from tests.governance import approve, hire, resubmit, send_back
from tests.organisation import dump
from tests.working import claim
from tests.working import end as end_run

SECRET = "sk-live-0123456789abcdef0123"


@pytest.fixture
def asks_before_hiring() -> bool:
    return True


def seen(company: Company, agent: str, by: Caller | None = None) -> Answer:
    return company.call(by or company.board, agent_page.show, agent=agent)


def refused(company: Company) -> int:
    found = company.call(company.board, events.listing, company=company.id, limit=500)
    return sum(not one["allowed"] for one in found)


def test_who_looks_learns_what_they_may_see_and_do_and_nothing_is_refused(company: Company) -> None:
    lead = company.agent("lead")
    worker = company.agent("worker", boss="lead")
    company.agent("beside")
    whole = seen(company, lead.id)
    assert (whole["boss"]["name"], whole["accountable"]) == ("ceo", "board")
    assert [one["name"] for one in whole["reports"]] == ["worker"]
    assert whole["report_count"] == 1
    assert {"control", "terminate", "configure", "permit", "give", "write"} <= whole["may"]
    assert whole["sees"] == {"work", "mail", "rights", "configuration", "runs", "state"}
    assert whole["idle"]["sentence"]
    watching = seen(company, lead.id, company.user("watcher", "observer"))
    assert watching["may"] == set()
    assert watching["sees"] == whole["sees"]
    partly = company.user("partner", scope="lead")
    assert "control" in seen(company, worker.id, partly)["may"]
    outside = seen(company, company.ceo.id, partly)
    assert outside["sees"] == set()
    assert not outside["may"] - {"write"}
    assert (outside["idle"], outside["unread"], outside["permissions"]) == (None, None, None)
    assert refused(company) == 0
    with pytest.raises(NotFound):
        seen(company, "nobody")


def test_what_an_agent_does_and_did_is_counted(company: Company) -> None:
    lead = company.agent("lead", purpose="It shines", adapter_type="scripted")
    for number in range(3):
        company.call(
            company.board, mail.send, company=company.id, to="agent:lead", body=f"n {number}"
        )
    assert seen(company, lead.id)["unread"] == 3
    live = claim(company, lead)
    assert seen(company, lead.id)["run"]["id"] == live.id
    company.call(live.caller, mail.send, to="board", subject="Back", body="Here.")
    end_run(company, live, tokens_in=10, tokens_out=4, cost_micros=2500)
    assert seen(company, lead.id)["run"] is None
    totals = company.call(company.board, agent_page.run_totals, agent=lead.id)
    assert totals == {
        "runs": 1,
        "tokens_in": 10,
        "tokens_out": 4,
        "tokens_cached": 0,
        "cost_usd": 0.0025,
        "cost_estimated": False,
        "tokens_unpriced": 0,
    }
    none = company.call(company.board, agent_page.run_totals, agent=company.ceo.id)
    assert set(none.values()) == {0}
    known = company.call(company.board, agent_page.overview, agent=lead.id)
    assert known["mandate"]["title"] == "It shines"
    assert known["last_run"]["id"] == live.id
    letters = company.call(company.board, agent_page.correspondence, agent=lead.id, limit=2)
    assert letters[0]["subject"] == "Back"
    assert all(one["readable"] for one in letters)
    older = company.call(
        company.board, agent_page.correspondence, agent=lead.id, before=letters[-1]["id"]
    )
    assert not {one["id"] for one in older} & {one["id"] for one in letters}
    with pytest.raises(Refused):
        company.call(
            company.user("partner", scope="lead"), agent_page.run_totals, agent=company.ceo.id
        )


def test_a_pending_agent_names_its_hire(company: Company) -> None:
    made = hire(company, company.ceo.caller, "newcomer")
    found = seen(company, made["agent"]["id"])
    assert found["approval_id"] == made["approval"]["id"]
    approve(company, made["approval"])
    assert seen(company, made["agent"]["id"])["approval_id"] is None
    names = [
        one["name"]
        for one in company.call(company.board, agent_page.roster, company=company.id, limit=10)
    ]
    assert names == ["ceo", "newcomer"]


def test_resources_have_names_for_those_who_may_know_them(company: Company) -> None:
    lead = company.agent("lead", purpose="Secret aim")
    texts = {f"outcome:{lead.id}", f"message:{lead.id}", f"agent:{lead.id}", "full_access", "x:y"}
    texts |= {f"kb_file:{seen(company, lead.id)['state_file_id']}", "agent:lead", ""}
    found = company.call(company.board, agent_page.resources, company=company.id, named=texts)
    assert found[f"outcome:{lead.id}"]["name"] == "Secret aim"
    assert found[f"agent:{lead.id}"] == {"kind": "agent", "id": lead.id, "name": "lead"}
    assert {"full_access", "x:y", "agent:lead", ""}.isdisjoint(found)
    company.agent("beside")
    partly = company.user("partner", scope="beside")
    theirs = company.call(partly, agent_page.resources, company=company.id, named=texts)
    assert f"outcome:{lead.id}" not in theirs
    assert refused(company) == 0


def test_those_most_alike_are_shown_first_without_their_secrets(company: Company) -> None:
    settings = {"command": "work", "env": {"API_KEY": SECRET}}
    company.agent("far", role="designer", adapter_type="human")
    company.agent("role", role="engineer", adapter_type="human")
    company.agent("both", role="engineer", adapter_type="process", adapter_config=settings)
    company.agent("adapter", role="qa", adapter_type="process", adapter_config=settings)
    found = company.call(
        company.board,
        configuration.related,
        company=company.id,
        role="engineer",
        adapter_type="process",
    )
    assert [one["name"] for one in found] == ["both", "adapter", "role"]
    assert SECRET not in str(found)
    partly = company.user("partner", scope="role")
    theirs = company.call(
        partly, configuration.related, company=company.id, role="engineer", adapter_type="process"
    )
    assert [one["name"] for one in theirs] == ["role"]


def test_any_two_revisions_are_compared_and_secrets_stay_secret(company: Company) -> None:
    lead = company.agent(
        "lead", adapter_type="process", adapter_config={"command": "a", "env": {"API_KEY": SECRET}}
    )
    for changes in (
        {"prompt": "P"},
        {"adapterConfig": {"command": "b", "env": {"API_KEY": "x" * 20}}},
    ):
        company.call(company.board, configuration.change, agent=lead.id, changes=changes)
    found = company.call(company.board, configuration.compare, agent=lead.id, older=1, newer=3)
    assert {one["path"] for one in found} == {
        "prompt",
        "adapterConfig.command",
        "adapterConfig.env.API_KEY",
    }
    assert SECRET not in str(found)
    with pytest.raises(NotFound):
        company.call(company.board, configuration.compare, agent=lead.id, older=1, newer=9)


def test_what_happened_to_an_approval_is_told_in_order(company: Company) -> None:
    made = hire(company, company.ceo.caller, "newcomer")["approval"]
    send_back(company, made, "Not yet.")
    resubmit(company, company.ceo.caller, made, title="Better")
    approve(company, made)
    found = company.call(company.board, approvals.history, approval=made["id"])
    assert [one["action"] for one in found] == [
        "approval.request",
        "approval.revise",
        "approval.resubmit",
        "approval.approve",
    ]
    assert found[1]["why"] == "Not yet."


def preview(company: Company, by: Caller | None = None, **asked: Any) -> Answer:
    described = {"name": "newcomer", "reports_to": "ceo", "outcome": None, **asked}
    return company.call(
        by or company.board, hire_preview.preview, company=company.id, asked=described
    )


def test_a_preview_shows_what_would_be_and_leaves_nothing(company: Company) -> None:
    company.agent("peer")
    before = dump(company)
    found = preview(
        company,
        prompt="Do it.",
        permissions={"canCreateAgents": True},
        given=[{"resource": "full_access", "level": "use", "mode": "ask"}],
    )
    assert (found["agent"]["name"], found["agent"]["prompt"]) == ("newcomer", "Do it.")
    assert (found["boss"]["name"], "hiring" in found["can"]) == ("ceo", True)
    held = {(one["resource"], one["mode"]) for one in found["rights"]}
    assert ("full_access", "ask") in held
    assert (f"message:{company.ceo.id}", "allow") in held
    assert dump(company) == before
    for asked, error in (
        ({"name": "peer"}, AlreadyExists),
        ({"name": "not a name"}, BadInput),
        ({"reports_to": "nobody"}, NotFound),
        ({"given": [{"resource": "nonsense", "level": "use"}]}, BadInput),
    ):
        with pytest.raises(error):
            preview(company, **asked)
    assert dump(company) == before


def test_a_preview_for_an_outcome_is_as_after_the_approval(company: Company) -> None:
    aim = company.call(company.ceo.caller, outcomes.create, parent=company.ceo.id, title="A garden")
    before = dump(company)
    found = preview(company, reports_to=None, outcome=aim["id"])
    assert (found["agent"]["id"], found["agent"]["status"]) == (aim["id"], "idle")
    assert dump(company) == before


def test_only_who_may_hire_may_preview(company: Company) -> None:
    with pytest.raises(Refused):
        preview(company, company.user("watcher", "observer"))
    assert refused(company) == 1
