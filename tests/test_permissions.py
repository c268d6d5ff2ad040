"""Who may create agents, who says so, and the four levels that bundle such rights."""

from sqlite3 import IntegrityError
from typing import Any

import pytest
from psycopg import IntegrityError as ServerIntegrityError

from remit.clock import SystemClock
from remit.errors import BadInput, Refused
from remit.services.governance import approvals
from remit.services.hiring import configuration, hiring
from remit.services.organisation import agents, permissions
from remit.services.people import companies
from remit.services.rights import grants
from remit.store.tables.organisation import agents as agents_table
from tests.company import Company, Member
from tests.governance import ask, empower, hire
from tests.organisation import refusal


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


@pytest.fixture
def asks_before_hiring() -> bool:
    return True


def may_hire(company: Company, who: Member) -> bool:
    """What the agent can really do, found out by doing it."""
    shown = company.call(company.board, agents.show, agent=who.id)["permissions"]
    try:
        made = hire(company, who.caller, f"try-{company.app.ids.new()[-12:]}")
    except Refused:
        return False
    company.call(company.board, approvals.reject, approval=made["approval"]["id"])
    assert shown == {"canCreateAgents": True}
    return True


def permit(company: Company, caller: Any, agent: str, can: object = True) -> Any:
    return company.call(caller, permissions.change, agent=agent, can_create=can)


@pytest.mark.requirement("PC-05", "PC-06")
def test_by_default_the_ceo_may_create_agents_and_nobody_else(company: Company) -> None:
    lead = company.agent("lead")
    below = company.agent("below", "lead", role="ceo")
    assert company.sql("SELECT DISTINCT permissions FROM agents") == [("{}",)]
    assert agents_table.c.permissions.server_default is not None
    with pytest.raises(
        (IntegrityError, ServerIntegrityError)
    ):  # the database itself takes no agent without
        company.sql("UPDATE agents SET permissions = NULL")
    shown = company.call(company.board, agents.listing, company=company.id)
    told = {one["name"]: one["permissions"]["canCreateAgents"] for one in shown}
    assert told == {"ceo": True, "lead": False, "below": False}
    assert may_hire(company, company.ceo)
    assert not may_hire(company, lead)
    # A title is not a right: who reports to an agent does not lead the company.
    assert not may_hire(company, below)
    assert refusal(company, below.caller, permissions.change, agent="lead", can_create=True) == (
        "not_ceo"
    )


@pytest.mark.requirement("PC-07", "PC-11")
def test_there_is_one_permission_and_it_is_a_boolean(company: Company) -> None:
    lead = company.agent("lead")
    for wrong in ("yes", 1, ["x"], {"x": 1}):
        with pytest.raises(BadInput):
            permit(company, company.board, lead.id, wrong)
    neither_nor_both: list[dict[str, Any]] = [{}, {"can_create": True, "level": "boss"}]
    for both in neither_nor_both:
        with pytest.raises(BadInput):
            company.call(company.board, permissions.change, agent=lead.id, **both)
    for more in (
        {"canCreateAgents": True, "isAdmin": True},
        {"admin": True},
        ["canCreateAgents"],
        {"canCreateAgents": 1},
    ):
        with pytest.raises(BadInput):
            company.agent("other", permissions=more)


@pytest.mark.requirement("PC-08", "PC-09", "PC-10", "PC-13")
def test_the_board_and_the_ceo_edit_permissions_and_nobody_else(company: Company) -> None:
    lead, worker = company.agent("lead"), company.agent("worker", "lead")
    permit(company, company.board, lead.id)
    assert may_hire(company, lead)
    # Holding the permission does not let one pass it on, or keep it.
    for target in (worker, lead, company.ceo):
        assert (
            refusal(company, lead.caller, permissions.change, agent=target.id, can_create=True)
            == "not_ceo"
        )
    permit(company, company.ceo.caller, worker.id)
    assert may_hire(company, worker)
    permit(company, company.ceo.caller, lead.id, False)
    assert not may_hire(company, lead)
    for can in (True, False):
        assert (
            refusal(
                company,
                company.ceo.caller,
                permissions.change,
                agent=company.ceo.id,
                can_create=can,
            )
            == "own_permissions"
        )
    permit(company, company.board, company.ceo.id, False)
    assert not may_hire(company, company.ceo)
    neighbour = company.second_company()
    assert (
        refusal(
            company,
            company.ceo.caller,
            permissions.change,
            agent=neighbour.agent.id,
            can_create=True,
        )
        == "not_found"
    )


def test_people_change_permissions_in_their_part_and_observers_nowhere(company: Company) -> None:
    lead, peer = company.agent("lead"), company.agent("peer")
    partial = company.user("partial", scope="lead")
    observer = company.user("guest", "observer")
    permit(company, partial, lead.id)
    assert refusal(company, partial, permissions.change, agent=peer.id, can_create=True) == (
        "outside_scope"
    )
    assert refusal(company, observer, permissions.change, agent=lead.id, can_create=False) == (
        "observer"
    )
    assert may_hire(company, lead)


def test_a_denial_by_grant_goes_before_the_permission(company: Company) -> None:
    empower(company, company.ceo, "agent.create", mode="deny")
    assert refusal(company, company.ceo.caller, hiring.hire, company=None, name="x") == (
        "denied_by_grant"
    )
    lead = company.agent("lead")
    empower(company, lead, "agent.create")
    made = hire(company, lead.caller, "helper")
    assert made["approval"]["status"] == "pending"
    permit(company, company.board, lead.id, False)
    assert refusal(company, lead.caller, hiring.hire, company=None, name="y") == "may_not_hire"


@pytest.mark.requirement("HB-08", "HB-09", "HB-10", "HB-18")
def test_a_level_is_a_bundle_of_rights_and_replaces_what_was_there(company: Company) -> None:
    lead, worker = company.agent("lead"), company.agent("worker", "lead")

    def level(name: str) -> str:
        changed = company.call(company.board, permissions.change, agent=lead.id, level=name)
        return str(changed["permission_level"])

    def rights() -> dict[str, str]:
        held = company.call(company.board, grants.listing, company=company.id, agent=lead.id)
        return {one["resource"]: one["mode"] for one in held if ":" not in one["resource"]}

    assert company.call(company.board, agents.show, agent=lead.id)["permission_level"] == "standard"
    assert level("boss") == "boss"
    assert rights() == {"approval.decide": "allow", "instance.configure": "allow"}
    assert may_hire(company, lead)
    made = ask(company, worker.caller)
    assert made["routed_to_agent_id"] == lead.id
    company.call(lead.caller, approvals.approve, approval=made["id"])
    level("privileged")
    assert rights() == {}
    assert may_hire(company, lead)
    other = ask(company, worker.caller)
    assert refusal(company, lead.caller, approvals.approve, approval=other["id"]) == (
        "board_decides"
    )
    level("restricted")
    assert set(rights().values()) == {"deny"}
    assert not may_hire(company, lead)
    assert refusal(company, lead.caller, hiring.hire, company=None, name="z") == "may_not_hire"
    level("standard")
    assert rights() == {}
    assert not may_hire(company, lead)
    with pytest.raises(BadInput):
        level("emperor")


def test_levels_are_set_by_people(company: Company) -> None:
    lead = company.agent("lead")
    for caller in (company.ceo.caller, lead.caller):
        for name in ("boss", "restricted"):
            assert refusal(company, caller, permissions.change, agent=lead.id, level=name) == (
                "board_only"
            )
    # A right over the whole company is not for who has a part of it.
    partial = company.user("partial", scope="lead")
    assert refusal(company, partial, permissions.change, agent=lead.id, level="boss") == (
        "outside_scope"
    )
    assert company.call(company.board, agents.show, agent=lead.id)["permission_level"] == "standard"


@pytest.mark.requirement("HB-09", "HB-18")
def test_an_agent_is_created_with_a_level_and_further_grants_in_one_step(company: Company) -> None:
    right = {"resource": "full_access", "level": "use"}
    view = company.call(
        company.board, agents.create, company=None, name="lead", level="boss", given=[right]
    )
    assert (view["permission_level"], view["permissions"]) == ("boss", {"canCreateAgents": True})
    held = company.call(company.board, grants.listing, company=company.id, agent=view["id"])
    rights = {grant["resource"] for grant in held if ":" not in grant["resource"]}
    assert rights == {"approval.decide", "instance.configure", "full_access"}
    decided = company.call(company.board, approvals.listing, company=company.id)
    payloads = [row["payload"] for row in decided if row["payload"]["agentId"] == view["id"]]
    assert [payload["permissionLevel"] for payload in payloads] == ["boss"]

    # Who has a part of the company gives none of its levels that reach further.
    partial = company.user("partial", scope="lead")
    below: dict[str, Any] = {"company": None, "name": "below", "reports_to": view["id"]}
    assert refusal(company, partial, agents.create, **below, level="boss") == "outside_scope"
    # Also if the level comes with no action that would have to be granted.
    company.call(company.board, permissions.change_policy, level="boss", settings={"allow": []})
    assert refusal(company, partial, agents.create, **below, level="boss") == "outside_scope"
    with pytest.raises(BadInput):
        company.call(company.board, agents.create, **below, level="emperor")
    assert company.call(partial, agents.create, **below)["permission_level"] == "standard"


def test_a_hire_without_approval_keeps_granted_actions_beside_its_level(company: Company) -> None:
    company.call(
        company.board,
        companies.change,
        company=company.id,
        require_board_approval_for_new_agents=False,
    )
    right = {"resource": "full_access", "level": "use"}
    new = hire(company, company.board, "lead", level="boss", given=[right])["agent"]
    held = company.call(company.board, grants.listing, company=company.id, agent=new["id"])
    assert "full_access" in {grant["resource"] for grant in held}


@pytest.mark.requirement("PC-52", "PC-56")
def test_configurations_are_read_by_those_who_may_hire(company: Company) -> None:
    lead, peer = company.agent("lead", prompt="Lead."), company.agent("peer")
    for who in (company.board, company.ceo.caller, company.user("guest", "observer")):
        assert company.call(who, configuration.show, agent=lead.id)["prompt"] == "Lead."
        names = [
            one["name"] for one in company.call(who, configuration.listing, company=company.id)
        ]
        assert names == ["ceo", "lead", "peer"]
    for target in (lead, peer, company.ceo):
        assert refusal(company, peer.caller, configuration.show, agent=target.id) == (
            "no_configurations"
        )
    assert refusal(company, peer.caller, configuration.listing, company=None) == "no_configurations"
    assert refusal(company, peer.caller, configuration.revisions, agent=peer.id) == (
        "no_configurations"
    )
    assert refusal(company, peer.caller, configuration.may_read) == "no_configurations"
    permit(company, company.board, peer.id)
    for target in (lead, peer):
        assert company.call(peer.caller, configuration.show, agent=target.id)["revision"] == 1
    company.call(peer.caller, configuration.may_read)
    shown = company.call(lead.caller, agents.show, agent=peer.id)
    assert (shown["name"], shown["role"], shown["status"]) == ("peer", "general", "idle")
    assert not {"prompt", "adapter_config", "runtime_config", "metadata"} & set(shown)


def test_who_has_a_part_reads_the_configurations_of_that_part(company: Company) -> None:
    lead, peer = company.agent("lead"), company.agent("peer")
    worker = company.agent("worker", "lead")
    partial = company.user("partial", scope="lead")
    names = [
        one["name"] for one in company.call(partial, configuration.listing, company=company.id)
    ]
    assert names == ["lead", "worker"]
    page = company.call(partial, configuration.listing, company=company.id, after=lead.id, limit=1)
    assert [one["agent_id"] for one in page] == [worker.id]
    assert refusal(company, partial, configuration.show, agent=peer.id) == "outside_scope"
    company.call(partial, configuration.may_read, company=company.id)
