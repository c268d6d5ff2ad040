"""What the permission levels bundle, who says so, and the say that the level `boss` gives."""

from collections.abc import Callable
from typing import Any

import pytest

from remit.clock import SystemClock
from remit.errors import BadInput, Conflict, Refused
from remit.services.connections import bindings, secrets
from remit.services.governance import approvals
from remit.services.hiring import configuration, hiring
from remit.services.messaging import questions, schedules, threads
from remit.services.organisation import agents, halts, permissions, reorganise, termination
from remit.services.people import companies, users
from remit.services.record import events
from remit.services.rights import grants
from remit.services.work import delegation, outcomes
from tests import mailing
from tests.company import Company, Member
from tests.governance import approve, ask, empower, hire, propose
from tests.organisation import member, refusal, shown, work

SHIPPED = {
    "restricted": (False, [], ["full_access", "instance.configure", "approval.decide"], "nobody"),
    "standard": (None, [], [], "nobody"),
    "privileged": (True, [], [], "nobody"),
    "boss": (True, ["approval.decide", "instance.configure"], [], "below"),
}


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


def change(company: Company, level: str, **more: Any) -> Any:
    caller = more.pop("by", company.board)
    return company.call(caller, permissions.change_policy, company=company.id, level=level, **more)


def set_level(company: Company, who: Member, level: str) -> None:
    company.call(company.board, permissions.change, agent=who.id, level=level)


def rights(company: Company, who: Member) -> dict[str, str]:
    held = company.call(company.board, grants.listing, company=company.id, agent=who.id)
    return {one["resource"]: one["mode"] for one in held if ":" not in one["resource"]}


# ── the policy ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("HB-08", "HB-09")
def test_the_levels_are_data_of_the_company_and_shipped_as_presets(company: Company) -> None:
    policy = company.call(company.board, permissions.show_policy, company=company.id)
    assert policy["version"] == 0
    for level, expected in SHIPPED.items():
        one = policy["levels"][level]
        assert (one["canCreateAgents"], one["allow"], one["deny"], one["governs"]) == expected
        assert one["shipped"] is True
    assert policy["levels"]["standard"]["agents"] == 1


@pytest.mark.requirement("HB-08")
def test_the_board_alone_sees_and_edits_the_policy(company: Company) -> None:
    lead = company.agent("lead")
    set_level(company, lead, "boss")
    guest, partial = company.user("guest", "observer"), company.user("partial", scope="lead")
    settings = {"level": "boss", "settings": {"governs": "company"}}
    for who, looking, changing in (
        (company.ceo.caller, "board_only", "board_only"),
        (lead.caller, "board_only", "board_only"),
        (partial, "outside_scope", "outside_scope"),
        (guest, None, "observer"),
    ):
        if looking is not None:
            assert refusal(company, who, permissions.show_policy, company=company.id) == looking
        else:
            company.call(who, permissions.show_policy, company=company.id)
        assert (
            refusal(company, who, permissions.change_policy, company=company.id, **settings)
            == changing
        )
    stranger = company.second_company()
    assert (
        refusal(company, stranger.agent.caller, permissions.show_policy, company=company.id)
        == "not_found"
    )


@pytest.mark.requirement("HB-08")
def test_a_change_reaches_whoever_has_the_level_and_leaves_the_rest_alone(company: Company) -> None:
    lead, other = company.agent("lead"), company.agent("other")
    set_level(company, lead, "privileged")
    empower(company, lead, "full_access")
    done = change(
        company,
        "privileged",
        settings={"allow": ["approval.decide"], "deny": ["instance.configure"]},
        expected_version=0,
    )
    assert (done["version"], done["agents_changed"]) == (1, ["lead"])
    assert rights(company, lead) == {
        "approval.decide": "allow", "full_access": "allow", "instance.configure": "deny",
    }  # fmt: skip
    assert rights(company, other) == {}
    recorded = company.call(company.board, events.listing, company=company.id)
    event = next(one for one in recorded if one["action"] == "policy.change")
    assert event["details"]["was"]["allow"] == []
    assert event["details"]["now"]["deny"] == ["instance.configure"]
    # Whoever gets the level now gets it as it is now.
    set_level(company, other, "privileged")
    assert rights(company, other) == {"approval.decide": "allow", "instance.configure": "deny"}
    # As shipped again; what was given apart from the level stays.
    done = change(company, "privileged")
    assert sorted(done["agents_changed"]) == ["lead", "other"]
    assert rights(company, lead) == {"full_access": "allow"}
    assert done["levels"]["privileged"]["shipped"] is True
    assert company.call(company.board, agents.show, agent=lead.id)["permissions"] == {
        "canCreateAgents": True
    }
    done = change(company, "privileged", settings={"canCreateAgents": False})
    assert refusal(company, lead.caller, hiring.hire, company=None, name="x") == "may_not_hire"


def test_a_new_agent_has_what_the_standard_level_bundles(company: Company) -> None:
    change(company, "standard", settings={"canCreateAgents": True, "deny": ["full_access"]})
    lead = company.agent("lead")
    assert rights(company, lead) == {"full_access": "deny"}
    assert company.call(company.board, agents.show, agent=lead.id)["permissions"] == {
        "canCreateAgents": True
    }
    reasons = company.call(company.board, grants.listing, company=company.id, agent=lead.id)
    assert "comes with its level" in {one["reason"] for one in reasons}
    company.call(
        company.board,
        companies.change,
        company=company.id,
        require_board_approval_for_new_agents=True,
    )
    made = hire(company, lead.caller, "waiting")
    waiting = made["agent"]["id"]
    assert company.sql("SELECT count(*) FROM grants WHERE holder_id = ?", waiting) == [(0,)]
    approve(company, made["approval"])
    assert rights(company, member(company, made["agent"])) == {"full_access": "deny"}


def test_a_policy_that_makes_no_sense_is_refused(company: Company) -> None:
    for level, settings in (
        ("emperor", {}),
        ("boss", {"governs": "everything"}),
        ("boss", {"power": 9}),
        ("boss", {"allow": ["fly"]}),
        ("boss", {"allow": "full_access"}),
        ("boss", {"allow": [["x"]]}),
        ("boss", {"canCreateAgents": "yes"}),
        ("boss", {"deny": ["approval.decide"]}),
        ("privileged", {"governs": "below"}),
        ("boss", ["governs"]),
    ):
        with pytest.raises(BadInput):
            change(company, level, settings=settings)
    with pytest.raises(Conflict, match="already"):
        change(company, "boss", settings={"governs": "below"})
    change(company, "boss", settings={"governs": "company"}, expected_version=0)
    with pytest.raises(Conflict, match="version 1"):
        change(company, "boss", expected_version=0)
    assert company.call(company.board, permissions.show_policy, company=company.id)["version"] == 1


# ── what the level boss may ─────────────────────────────────────────────────────────────────────


class Firm:
    """ceo ─ boss ─ lead ─ worker, and an aside with a helper."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.boss = company.agent("boss")
        self.lead = company.agent("lead", "boss", perpetual=True)
        self.worker = company.agent("worker", "lead")
        self.aside = company.agent("aside")
        self.helper = company.agent("helper", "aside")
        set_level(company, self.boss, "boss")

    def by_boss(self, verb: Any, **arguments: Any) -> Any:
        return self.company.call(self.boss.caller, verb, **arguments)

    def refused(self, verb: Any, **arguments: Any) -> str:
        return refusal(self.company, self.boss.caller, verb, **arguments)


@pytest.fixture
def firm(company: Company) -> Firm:
    return Firm(company)


@pytest.mark.requirement("HB-10")
def test_a_boss_does_over_those_below_what_a_board_member_may(firm: Firm) -> None:
    company, worker, lead = firm.company, firm.worker, firm.lead
    done = firm.by_boss(configuration.change, agent=worker.id, changes={"prompt": "Be brief."})
    assert done["prompt"] == "Be brief."
    firm.by_boss(configuration.rollback, agent=worker.id, revision="1")
    # A proposal of whoever could make the change is made at once.
    assert propose(company, firm.boss.caller, worker.id, prompt="Be clear.") is None
    part = firm.by_boss(outcomes.create, parent=worker.id, title="A part")
    assert part["owner_id"] == worker.id
    firm.by_boss(outcomes.change, outcome=part["id"], version=part["version"], title="This part")
    firm.by_boss(outcomes.complete, outcome=part["id"])
    file = company.file(worker.caller, b"notes", unlisted=True)
    assert company.read(firm.boss.caller, file["id"])[1] == b"notes"
    mailing.send(company, firm.boss.caller, "agent:worker", "How far are you?")
    assert firm.by_boss(threads.inbox_of, agent=worker.id)
    asked = company.call(worker.caller, questions.ask, question="Which colour?")
    firm.by_boss(questions.answer, question=asked["id"], answer="Blue")
    firm.by_boss(schedules.add, agent=worker.id, to="agent:worker", body="Look", cron="0 9 * * *")
    given = company.give(lead.caller, worker, company.file(lead.caller), "read")
    firm.by_boss(grants.revoke, grant=given["id"])
    own = company.file(firm.boss.caller, b"mine")
    company.give(firm.boss.caller, worker, own, "read")
    assert company.read(worker.caller, own["id"])[1] == b"mine"
    assert firm.by_boss(agents.keys, agent=worker.id)
    firm.by_boss(agents.create, company=None, name="extra", reports_to="lead")
    moves = [{"op": "move", "agent": "extra", "to": "worker"}]
    firm.by_boss(reorganise.reorganise, company=None, operations=moves)
    assert company.call(company.board, agents.show, agent="extra")["reports_to"] == worker.id
    firm.by_boss(outcomes.complete, outcome=worker.id)
    assert company.call(company.board, agents.show, agent=worker.id)["status"] == "terminated"
    basis = company.sql("SELECT DISTINCT basis FROM events WHERE reason = 'boss_level'")
    assert basis == [("rule:boss_level",)]


def out_of_reach(firm: Firm, target: Member) -> list[tuple[Any, dict[str, Any]]]:
    """What a boss may do to somebody below it, tried on somebody else."""
    file = firm.company.file(target.caller, unlisted=True)["id"]
    return [
        (configuration.change, {"agent": target.id, "changes": {"title": "x"}}),
        (configuration.change, {"agent": target.id, "changes": {"budgetMonthlyCents": 9_000}}),
        (outcomes.create, {"parent": target.id, "title": "x"}),
        (outcomes.complete, {"outcome": target.id}),
        (threads.inbox_of, {"agent": target.id}),
        (agents.keys, {"agent": target.id}),
        (agents.create, {"company": None, "name": "x", "reports_to": target.id}),
        (
            grants.give,
            {"company": None, "to": target.id, "resource": f"kb_file:{file}", "level": "read"},
        ),
        (reorganise.reorganise, {"company": None, "operations": [
            {"op": "move", "agent": "worker", "to": target.id}]}),
    ]  # fmt: skip


@pytest.mark.requirement("HB-10")
@pytest.mark.parametrize("whom", ["boss", "ceo", "aside", "helper"])
def test_a_boss_has_no_such_say_over_itself_those_above_and_those_beside(
    firm: Firm, whom: str
) -> None:
    company = firm.company
    target = {
        "boss": firm.boss,
        "ceo": company.ceo,
        "aside": firm.aside,
        "helper": firm.helper,
    }[whom]
    for verb, arguments in out_of_reach(firm, target):
        if whom == "boss" and verb is threads.inbox_of:
            continue  # its own
        if whom == "boss" and verb is outcomes.create:
            continue  # its own work
        firm.refused(verb, **arguments)


@pytest.mark.requirement("HB-10")
def test_a_boss_has_no_say_over_another_agent_with_that_level(firm: Firm) -> None:
    set_level(firm.company, firm.worker, "boss")
    for verb, arguments in out_of_reach(firm, firm.worker):
        firm.refused(verb, **arguments)
    # What any agent above may, it may.
    firm.by_boss(agents.pause, agent=firm.worker.id)


PEOPLE: dict[str, Callable[[Firm], tuple[Any, dict[str, Any]]]] = {
    "own level": lambda firm: (permissions.change, {"agent": firm.boss.id, "level": "privileged"}),
    "levels": lambda firm: (permissions.change, {"agent": firm.worker.id, "level": "privileged"}),
    "permissions": lambda firm: (permissions.change, {"agent": firm.worker.id, "can_create": True}),
    "permissions with an agent": lambda firm: (
        agents.create,
        {
            "company": None,
            "name": "x",
            "reports_to": "lead",
            "permissions": {"canCreateAgents": True},
        },
    ),
    "own mandate": lambda firm: (outcomes.complete, {"outcome": firm.boss.id}),
    "own grants": lambda firm: (
        grants.give,
        {"company": None, "to": "boss", "resource": "full_access", "level": "use"},
    ),
    "own budget": lambda firm: (
        configuration.change,
        {"agent": firm.boss.id, "changes": {"budgetMonthlyCents": 1}},
    ),
    "policy": lambda firm: (
        permissions.change_policy,
        {"level": "boss", "settings": {"governs": "company"}},
    ),
    "users": lambda firm: (users.add, {"company": firm.company.id, "name": "somebody"}),
    "seats": lambda firm: (
        reorganise.reorganise,
        {"company": None, "operations": [{"op": "seat", "agent": "worker", "user": "board"}]},
    ),
    "linked accounts": lambda firm: (
        bindings.add,
        {"company": None, "agent": firm.worker.id, "kind": "webhook"},
    ),
    "keys": lambda firm: (agents.create_key, {"agent": firm.worker.id}),
    "secrets": lambda firm: (
        secrets.put,
        {"company": None, "name": "key", "source": "env", "place": "X"},
    ),
    "lending a secret": lambda firm: (
        configuration.change,
        {
            "agent": firm.worker.id,
            "changes": {"adapterType": "llm", "adapterConfig": {"secretRef": "key"}},
        },
    ),
    "lending a secret with an agent": lambda firm: (
        agents.create,
        {
            "company": None,
            "name": "x",
            "reports_to": "lead",
            "adapter_type": "llm",
            "adapter_config": {"secretRef": "key"},
        },
    ),
    "full access": lambda firm: (
        grants.give,
        {"company": None, "to": "worker", "resource": "full_access", "level": "use"},
    ),
    "full sandbox": lambda firm: (
        configuration.change,
        {
            "agent": firm.worker.id,
            "changes": {
                "adapterType": "process",
                "adapterConfig": {"command": "x", "sandbox": "full"},
            },
        },
    ),
    "company settings": lambda firm: (
        companies.change,
        {"company": firm.company.id, "require_board_approval_for_new_agents": False},
    ),
}


@pytest.mark.requirement("HB-10", "PC-10", "HB-19")
@pytest.mark.parametrize("what", PEOPLE)
@pytest.mark.parametrize("reach", ["below", "company"])
def test_what_only_people_do_is_refused_to_a_boss(small: Company, what: str, reach: str) -> None:
    firm = Firm(small)
    if reach == "company":
        change(small, "boss", settings={"governs": reach})
    verb, arguments = PEOPLE[what](firm)
    with pytest.raises(Refused):
        firm.by_boss(verb, **arguments)


@pytest.mark.requirement("HB-10", "FX-13")
def test_a_boss_lifts_no_halt_no_pause_and_no_denial_of_a_person(firm: Firm) -> None:
    company, worker = firm.company, firm.worker
    company.call(company.board, halts.stop, agent=worker.id)
    assert firm.refused(halts.go, agent=worker.id) == "stopped_by_person"
    company.call(company.board, halts.go, agent=worker.id)
    company.call(company.board, agents.pause, agent=worker.id)
    assert firm.refused(agents.resume, agent=worker.id) == "paused_by_person"
    company.call(company.board, agents.resume, agent=worker.id)
    denied = empower(company, worker, "instance.configure", mode="deny")
    assert firm.refused(grants.revoke, grant=denied["id"]) == "not_found"
    company.call(company.board, agents.terminate, agent=worker.id)
    assert firm.refused(termination.purge, agent=worker.id) == "board_only"
    # What was denied to the boss itself goes before its level.
    file = company.file(firm.lead.caller)
    company.give(company.board, firm.boss, file, "read", mode="deny")
    with pytest.raises(Refused, match="denied explicitly"):
        company.read(firm.boss.caller, file["id"])


@pytest.mark.requirement("HB-10", "BX-10")
def test_a_boss_decides_nothing_that_it_or_another_boss_asked_for_or_gains_by(
    firm: Firm,
) -> None:
    company, worker = firm.company, firm.worker
    plain = ask(company, worker.caller)
    assert plain["routed_to_agent_id"] == firm.boss.id
    approve(company, plain, firm.boss.caller)
    own = ask(company, firm.boss.caller)
    assert own["routed_to_agent_id"] is None
    assert firm.refused(approvals.approve, approval=own["id"]) == "own_request"
    above = ask(company, company.ceo.caller)
    assert firm.refused(approvals.approve, approval=above["id"]) == "not_found"
    set_level(company, firm.lead, "boss")
    of_boss = ask(company, firm.lead.caller)
    assert of_boss["routed_to_agent_id"] is None
    for who in (firm.boss, company.ceo):
        if who is company.ceo:
            empower(company, company.ceo)
        assert refusal(company, who.caller, approvals.approve, approval=of_boss["id"]) == (
            "people_decide"
        )
    budget = company.call(
        company.ceo.caller,
        approvals.request,
        company=None,
        kind="budget",
        payload={"agentId": firm.boss.id, "budgetMonthlyCents": 5},
    )
    assert firm.refused(approvals.approve, approval=budget["id"]) == "not_found"
    company.call(company.board, approvals.approve, approval=of_boss["id"])


@pytest.mark.requirement("HB-10", "BX-10")
def test_a_boss_decides_about_no_secret_and_no_level(firm: Firm) -> None:
    company, lead = firm.company, firm.lead
    company.call(company.board, permissions.change, agent=lead.id, can_create=True)
    secret = {"provider": "openai", "model": "x", "secretRef": "key"}
    lends = hire(company, lead.caller, "lent", adapter_type="llm", adapter_config=secret)
    assert lends["approval"]["routed_to_agent_id"] is None
    assert firm.refused(approvals.approve, approval=lends["approval"]["id"]) == "people_decide"
    proposed = propose(
        company, lead.caller, firm.worker.id, adapterType="llm", adapterConfig=secret
    )
    assert firm.refused(approvals.approve, approval=proposed["id"]) == "people_decide"
    # Looking and saying something about it is another matter.
    firm.by_boss(approvals.comment, approval=proposed["id"], body="I would not.")


@pytest.mark.requirement("HB-08", "HB-10")
def test_the_board_widens_and_ends_the_say_of_the_level(firm: Firm) -> None:
    company = firm.company
    settings = {"title": "Helper"}
    assert firm.refused(configuration.change, agent=firm.helper.id, changes=settings) == (
        "board_only"
    )
    change(company, "boss", settings={"governs": "company"})
    firm.by_boss(configuration.change, agent=firm.helper.id, changes=settings)
    firm.by_boss(agents.pause, agent=firm.aside.id)
    for target in (firm.boss, company.ceo):
        assert firm.refused(configuration.change, agent=target.id, changes=settings) == (
            "board_only"
        )
    asked = ask(company, firm.helper.caller)
    assert asked["routed_to_agent_id"] is None  # nobody above it may
    approve(company, asked, firm.boss.caller)
    change(company, "boss", settings={"governs": "nobody"})
    for target in (firm.helper, firm.worker):
        assert firm.refused(configuration.change, agent=target.id, changes={"title": "x"}) == (
            "board_only"
        )
    # The capability that the level gives is another thing, and stays.
    mine = ask(company, firm.worker.caller)
    assert mine["routed_to_agent_id"] == firm.boss.id


def test_a_boss_without_the_capability_to_decide_decides_by_its_level(firm: Firm) -> None:
    company = firm.company
    change(company, "boss", settings={"allow": []})
    assert rights(company, firm.boss) == {}
    asked = ask(company, firm.worker.caller)
    assert asked["routed_to_agent_id"] == firm.boss.id
    approve(company, asked, firm.boss.caller)
    empower(company, firm.boss, mode="deny")
    other = ask(company, firm.worker.caller)
    assert other["routed_to_agent_id"] is None
    assert firm.refused(approvals.approve, approval=other["id"]) == "denied_by_grant"


def test_a_delegation_that_a_boss_makes_in_its_reports_stead_is_the_owners(firm: Firm) -> None:
    company, lead = firm.company, firm.lead
    task = work(company, lead.caller, lead.id, "Task")
    firm.by_boss(delegation.delegate, outcome=task, to="worker")
    view = shown(company, task)
    assert (view["owner_id"], view["delegator_id"]) == (firm.worker.id, lead.id)
    firm.by_boss(delegation.reclaim, outcome=task, reason="Another way")
    assert shown(company, task)["owner_id"] == lead.id
