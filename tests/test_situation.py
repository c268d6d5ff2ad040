"""What a run is told of where it stands: why, what is due, what waits for whom."""

from __future__ import annotations

import pytest

from remit.errors import Conflict, RemitError, Unsupported
from remit.services.execution import run_start
from remit.services.execution import situation as services_situation
from remit.services.hiring import configuration
from remit.services.identity import as_system
from remit.services.knowledge import files
from remit.services.messaging import questions
from remit.services.organisation import agents, halts
from remit.services.record import events
from remit.services.screens import overview
from remit.services.work import outcomes, submitting
from tests.company import Company, Member
from tests.mailing import send


def situation(company: Company, member: Member) -> str:
    return briefing(company, member).situation


def briefing(company: Company, member: Member) -> run_start.Briefing:
    run = company.run(member)
    return company.call(as_system(), run_start.briefing, run=run.id, token=run.caller.token)


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
    told = briefing(company, dev).mandate
    assert told["title"] == "Sell more"
    assert told["purpose"] == purpose[: services_situation.MOST_PURPOSE].strip()


# ── all that a run starts with ──────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-16")
def test_a_run_starts_with_its_mail_its_offers_and_its_memory_in_one_call(
    company: Company,
) -> None:
    dev = company.agent("dev")
    letter = send(company, company.board, f"agent:{dev.id}", "Look at this.")
    run = company.run(dev)
    given = {"run": run.id, "token": run.caller.token}
    started = company.call(as_system(), run_start.briefing, **given)
    assert started.turn.ids == [letter["id"]]
    assert "Look at this." in started.turn.text
    assert started.offers == company.call(run.caller, overview.offered)
    assert (started.injected, started.session) == ([], None)
    (state,) = started.memory
    seen = company.call(company.board, files.accesses, file=state.version["id"], limit=1)[0]
    assert (seen["access"], seen["agent_id"], seen["run_id"]) == ("read", dev.id, run.id)
    taken = "SELECT status, run_id FROM deliveries WHERE message_id = ?"
    assert company.sql(taken, letter["id"]) == [("leased", run.id)]


def test_a_memory_that_may_not_be_read_is_left_out_and_the_refusal_recorded(
    company: Company,
) -> None:
    dev = company.agent("dev")
    state = company.call(company.board, agents.show, agent=dev.id)["state_file_id"]
    company.give(company.board, dev, {"id": state}, "read", mode="deny")
    assert briefing(company, dev).memory == []
    event = company.call(company.board, events.listing, company=company.id, limit=1)[0]
    assert (event["action"], event["allowed"], event["actor"]) == (
        "file.read",
        False,
        f"agent:{dev.id}",
    )


def test_a_run_that_cannot_start_takes_nothing_up(company: Company) -> None:
    dev, other = company.agent("dev"), company.agent("other")
    send(company, company.board, f"agent:{dev.id}", "Look at this.")
    run, beside = company.run(dev), company.run(other)
    tried = {"run": run.id, "token": run.caller.token}
    with pytest.raises(Conflict):
        company.call(as_system(), run_start.briefing, run=run.id, token=beside.caller.token)
    company.sql("UPDATE agents SET adapter_type = 'gone' WHERE id = ?", dev.id)
    with pytest.raises(Unsupported):
        company.call(as_system(), run_start.briefing, **tried)
    company.sql("UPDATE agents SET adapter_type = 'scripted' WHERE id = ?", dev.id)
    company.call(company.board, halts.stop, company=company.id, agent=None, note="")
    with pytest.raises(RemitError) as stopped:
        company.call(as_system(), run_start.briefing, **tried)
    assert stopped.value.reason in ("stopped", "unauthenticated")
    assert company.sql("SELECT status, run_id FROM deliveries") == [("queued", None)]
