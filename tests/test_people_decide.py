"""What only people decide, one by one: no agent does, whatever right to decide it has."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from remit.services.governance import approvals
from remit.services.hiring import configuration, helper_creation
from remit.services.identity import Caller
from remit.services.organisation import permissions
from tests.company import Answer, Company, Member
from tests.governance import approve, ask, empower, hire, propose, reject, seen
from tests.organisation import refusal
from tests.statement_stage import rewritten
from tests.test_parking import gate, parked, send
from tests.test_reorganise import apply as reorganise

DECISIONS = (approvals.approve, approvals.reject, approvals.request_revision)
SECRET = {"provider": "openai", "model": "x", "secretRef": "key"}
ADDRESS = {"provider": "openai", "model": "x", "baseUrl": "https://models.example"}
WHOLE_MACHINE = {"command": "x", "sandbox": "full"}


@pytest.fixture
def asks_before_hiring() -> bool:
    return True


class Firm:
    """The root agent may decide by a right, the chief by its level; both are above the lead."""

    def __init__(self, company: Company) -> None:
        self.company = company
        company.call(company.board, permissions.change, agent=company.ceo.id, can_create=True)
        self.chief = company.agent("chief")
        self.lead = company.agent("lead", boss="chief")
        self.worker = company.agent("worker", boss="lead")
        empower(company, company.ceo)
        self.set_level(self.chief, "boss")
        company.call(company.board, permissions.change, agent=self.lead.id, can_create=True)

    def set_level(self, who: Member, level: str) -> None:
        self.company.call(self.company.board, permissions.change, agent=who.id, level=level)

    def hires(self, by: Caller | None = None, **more: Any) -> Answer:
        caller = by or self.company.board
        approval: Answer = hire(self.company, caller, "newbie", reports_to="lead", **more)[
            "approval"
        ]
        return approval

    def changes(self, adapter: str, settings: Answer) -> Answer:
        return propose(
            self.company,
            self.lead.caller,
            self.worker.id,
            adapterType=adapter,
            adapterConfig=settings,
        )

    def budget_of(self, who: Member) -> Answer:
        payload = {"agentId": who.id, "budgetMonthlyCents": 5}
        return self.company.call(
            self.lead.caller, approvals.request, company=None, kind="budget", payload=payload
        )

    def borrows(self) -> Answer:
        """A helper with the adapter of its requester, whose settings lend a secret."""
        company, lead = self.company, self.lead
        company.call(
            company.board,
            configuration.change,
            agent=lead.id,
            changes={"adapterType": "llm", "adapterConfig": SECRET},
        )
        return parked(
            lambda: company.call(lead.caller, helper_creation.create_agent, name="helper")
        )

    def of_a_boss(self) -> Answer:
        self.set_level(self.lead, "boss")
        return ask(self.company, self.lead.caller)

    def about_a_boss(self) -> Answer:
        """Only the agent concerned has the level; the one that asks is as any other."""
        self.set_level(self.worker, "boss")
        return propose(self.company, self.lead.caller, self.worker.id, title="Other")


#: What only people decide; the plain ones beside them show that the deciders decide otherwise.
FOR_PEOPLE: dict[str, Callable[[Firm], Answer]] = {
    "a hire with a level": lambda firm: firm.hires(level="privileged"),
    "a hire with permissions": lambda firm: firm.hires(permissions={"canCreateAgents": True}),
    "a hire with full access": lambda firm: firm.hires(
        given=[{"resource": "full_access", "level": "use"}]
    ),
    "a hire with a secret": lambda firm: firm.hires(
        firm.lead.caller, adapter_type="llm", adapter_config=SECRET
    ),
    "a hire with an address for a key": lambda firm: firm.hires(
        firm.lead.caller, adapter_type="llm", adapter_config=ADDRESS
    ),
    "a hire without a sandbox": lambda firm: firm.hires(
        adapter_type="process", adapter_config=WHOLE_MACHINE
    ),
    "a change to a secret": lambda firm: firm.changes("llm", SECRET),
    "a change to an address for a key": lambda firm: firm.changes("llm", ADDRESS),
    "a helper that borrows a secret": Firm.borrows,
    "a request of a boss": Firm.of_a_boss,
    "a change of a boss": Firm.about_a_boss,
}
PLAIN: dict[str, Callable[[Firm], Answer]] = {
    "a hire": lambda firm: firm.hires(firm.lead.caller),
    "a change": lambda firm: propose(firm.company, firm.lead.caller, firm.worker.id, title="Other"),
    "a budget": lambda firm: firm.budget_of(firm.worker),
    "a request": lambda firm: ask(firm.company, firm.lead.caller),
}
DECIDERS: dict[str, Callable[[Firm], Member]] = {
    "by right": lambda firm: firm.company.ceo,
    "by level": lambda firm: firm.chief,
}


@pytest.mark.requirement("BX-10", "HB-10")
@pytest.mark.parametrize("decider", DECIDERS)
@pytest.mark.parametrize("what", FOR_PEOPLE)
def test_no_agent_decides_what_people_decide_alone(small: Company, what: str, decider: str) -> None:
    firm = Firm(small)
    made = FOR_PEOPLE[what](firm)
    assert seen(small, made)["routed_to_agent_id"] is None
    by = DECIDERS[decider](firm).caller
    for verb in DECISIONS:
        assert refusal(small, by, verb, approval=made["id"]) == "people_decide", verb
    assert seen(small, made)["status"] == "pending"
    assert approve(small, made)["status"] == "approved"


@pytest.mark.requirement("BX-10", "HB-10")
@pytest.mark.parametrize("decider", DECIDERS)
@pytest.mark.parametrize("what", PLAIN)
def test_the_same_agents_decide_what_is_plain(small: Company, what: str, decider: str) -> None:
    """Otherwise the test above would show nothing."""
    firm = Firm(small)
    made = PLAIN[what](firm)
    assert approve(small, made, DECIDERS[decider](firm).caller)["status"] == "approved"


@pytest.mark.requirement("BX-10", "HB-10")
@pytest.mark.parametrize("decider", DECIDERS)
def test_what_a_boss_gains_by_is_decided_by_people_while_it_has_the_level(
    small: Company, decider: str
) -> None:
    firm = Firm(small)
    firm.set_level(firm.worker, "boss")
    by = DECIDERS[decider](firm)
    budget = firm.budget_of(firm.worker)
    for verb in DECISIONS:
        assert refusal(small, by.caller, verb, approval=budget["id"]) == "people_decide"
    firm.set_level(firm.worker, "standard")
    assert approve(small, budget, by.caller)["status"] == "approved"


@pytest.mark.tampers
@pytest.mark.requirement("BX-10")
@pytest.mark.parametrize("decider", DECIDERS)
def test_no_agent_decides_what_was_altered(small: Company, decider: str) -> None:
    firm = Firm(small)
    made = ask(small, firm.lead.caller)
    small.sql("UPDATE approvals SET payload = '{}' WHERE id = ?", made["id"])
    by = DECIDERS[decider](firm).caller
    for verb in DECISIONS:
        assert refusal(small, by, verb, approval=made["id"]) == "people_decide"
    assert reject(small, made)["status"] == "rejected"


@pytest.mark.requirement("BX-10")
@pytest.mark.parametrize("decider", DECIDERS)
def test_the_use_of_the_whole_machine_is_decided_by_people(small: Company, decider: str) -> None:
    firm = Firm(small)
    gate(small, firm.lead, f"message:{small.ceo.id}", "use")
    call = parked(lambda: send(small, firm.lead.caller))
    stored = small.sql("SELECT payload FROM approvals WHERE id = ?", call["id"])[0][0]
    by = DECIDERS[decider](firm).caller
    rewritten(small, call, {**json.loads(stored), "resource": "full_access"})
    for verb in DECISIONS:
        assert refusal(small, by, verb, approval=call["id"]) == "people_decide", verb
    rewritten(small, call, json.loads(stored))
    assert approve(small, call, by)["status"] == "approved", "the control"


@pytest.mark.requirement("BX-10", "HB-10")
def test_no_agent_decides_what_it_or_its_boss_gains_by(small: Company) -> None:
    """The requester is below who would decide, and who gains by it is above by now."""
    firm = Firm(small)
    firm.set_level(firm.chief, "standard")
    empower(small, firm.chief)
    made, later = firm.budget_of(firm.worker), firm.budget_of(firm.worker)
    assert approve(small, made, firm.chief.caller)["status"] == "approved", "the control"
    reorganise(
        small,
        {"op": "move", "agent": "worker", "to": "ceo"},
        {"op": "move", "agent": "chief", "to": "worker"},
    )
    for verb in DECISIONS:
        assert refusal(small, firm.chief.caller, verb, approval=later["id"]) == "people_decide"
    assert approve(small, later)["status"] == "approved"
