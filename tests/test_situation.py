"""What a run is told of where it stands: why, what is due, what waits for whom."""

from __future__ import annotations

import pytest

from remit.services import claiming, configuration, outcomes, questions, submitting
from remit.services import situation as services_situation
from remit.services.identity import as_system
from tests.company import Company, Member


def situation(company: Company, member: Member) -> str:
    run = company.run(member)
    told: str = company.call(as_system(), claiming.briefing, run=run.id)["situation"]
    return told


@pytest.mark.requirement("FX-16")
def test_outcomes_waits_reports_and_budget_are_said_in_one_place(company: Company) -> None:
    lead = company.agent("lead")
    dev = company.agent("dev", "lead")
    company.call(
        company.board, configuration.change, agent="lead", changes={"budgetMonthlyCents": 250}
    )
    page = company.call(
        lead.caller, outcomes.create, parent=lead.id, title='The "page"\nof ours', urgent=True
    )
    shop = company.call(lead.caller, outcomes.create, parent=lead.id, title="The shop")
    company.call(lead.caller, questions.ask, question="Red?", to="board", outcome=shop["id"])
    company.call(dev.caller, submitting.submit, outcome=dev.id, note="Done.")
    told = situation(company, lead).splitlines()
    assert told[0].startswith("why-this-run: ")
    assert f"- \"The 'page' of ours\" outcome:{page['id']} (urgent, due now)" in told
    (waiting,) = [line for line in told if shop["id"] in line]
    assert "(waits for the board to answer a question since " in waiting
    assert any(line.startswith("- dev waits with 'What dev is for'") for line in told)
    (report,) = [line for line in told if line.startswith("- agent:dev ")]
    assert "(waits for lead to judge what it handed in since " in report
    assert told[-1] == "budget-left: $2.50"


@pytest.mark.requirement("FX-16")
def test_who_has_much_is_told_the_first_of_it(company: Company) -> None:
    lead = company.agent("lead")
    for number in range(20):
        company.call(lead.caller, outcomes.create, parent=lead.id, title=f"Part {number}")
    told = situation(company, lead).splitlines()
    assert sum(line.startswith("- ") for line in told) == 13
    assert "- … and 9 more" in told


@pytest.mark.requirement("FX-16")
def test_a_prompt_says_what_the_mandate_is(company: Company) -> None:
    dev = company.agent("dev", purpose="Sell more")
    version = company.call(company.board, outcomes.show, outcome=dev.id)["version"]
    purpose = "Twice as much as last year. " * 100
    company.call(
        company.board, outcomes.change, outcome=dev.id, version=version, description=purpose
    )
    told = company.call(as_system(), claiming.briefing, run=company.run(dev).id)["mandate"]
    assert told["title"] == "Sell more"
    assert told["purpose"] == purpose[: services_situation.MOST_PURPOSE].strip()
