"""Updating an agent: the set-up as it is now, a new session, and a run that is told."""

from typing import Any

import pytest

from remit.adapters.registry import WITHOUT_MODEL
from remit.errors import Conflict
from remit.services.execution import run_queue, run_start, runs
from remit.services.governance import approvals
from remit.services.hiring import agent_update, configuration
from remit.services.identity import as_system
from remit.services.organisation import agents, permissions
from remit.services.people import companies
from tests import mailing
from tests.company import Company, Member, Run
from tests.organisation import refusal

CLAUDE: Any = {"adapter_type": "claude", "adapter_config": {"model": "opus"}}


def update(company: Company, who: Member, by: Any = None) -> Any:
    return company.call(by or company.board, agent_update.update, agent=who.id)


def preview(company: Company, who: Member) -> Any:
    return company.call(company.board, agent_update.preview, agent=who.id)


def keep_session(company: Company, run: Run, session: str = "s-1") -> None:
    company.call(
        as_system(),
        run_queue.keep_session,
        run=run.id,
        adapter_type="claude",
        session_id=session,
        begun_at=company.app.clock.now(),
        context_tokens=10,
    )


def sessions(company: Company, who: Member) -> list[str]:
    found = company.sql("SELECT session_id FROM agent_sessions WHERE agent_id = ?", who.id)
    return [session for (session,) in found]


def finish(company: Company, run: Run) -> None:
    company.call(as_system(), runs.end, run=run.id, status="completed")


@pytest.mark.requirement("HH-12", "HH-27")
def test_any_ancestor_and_nobody_else_updates_an_agent(company: Company) -> None:
    lead = company.agent("lead")
    dev = company.agent("dev", "lead", **CLAUDE)
    peer = company.agent("peer")
    for who in (lead, company.ceo):
        assert update(company, dev, who.caller)["changes"] == []
    for who, whom in ((dev, dev), (dev, lead), (peer, dev), (lead, company.ceo)):
        for verb in (agent_update.update, agent_update.preview):
            assert refusal(company, who.caller, verb, agent=whom.id) == "not_below_you"
    guest, partial = company.user("guest", "observer"), company.user("partial", scope="lead")
    assert refusal(company, guest, agent_update.update, agent=dev.id) == "observer"
    assert refusal(company, partial, agent_update.update, agent=peer.id) == "outside_scope"
    update(company, dev, partial)
    stranger = company.second_company().agent
    assert refusal(company, stranger.caller, agent_update.update, agent=dev.id) == "not_found"


@pytest.mark.requirement("HH-27", "AG-55")
def test_an_agent_at_work_is_told_and_begins_anew_when_it_ends(company: Company) -> None:
    dev = company.agent("dev", perpetual=True, **CLAUDE)
    first = company.run(dev)
    keep_session(company, first)
    assert sessions(company, dev) == ["s-1"]
    done = update(company, dev)
    assert (done["run_told"], done["session_ended"]) == (first.id, True)
    assert sessions(company, dev) == []
    (letter,) = [
        one for one in mailing.take(company, first) if one["subject"] == "Your set-up changes"
    ]
    assert "save your state and end it" in letter["body"]
    # It goes on as it began, and what it leaves is not what the next one goes on with.
    keep_session(company, first)
    assert sessions(company, dev) == []
    finish(company, first)
    second = company.run(dev)
    keep_session(company, second, "s-2")
    assert sessions(company, dev) == ["s-2"]
    shown = company.call(company.board, configuration.revisions, agent=dev.id)
    assert [one["number"] for one in shown] == [2, 1]
    assert shown[0]["changed"] == []


@pytest.mark.requirement("HH-27")
def test_settings_that_the_adapter_does_not_know_any_more_go(company: Company) -> None:
    dev = company.agent("dev", **CLAUDE)
    company.sql(
        "UPDATE agents SET adapter_config = ? WHERE id = ?",
        '{"model": "opus", "ancientSetting": 3}',
        dev.id,
    )
    seen = preview(company, dev)
    assert seen["changes"] == [{"path": "adapterConfig.ancientSetting", "was": 3, "now": None}]
    assert seen["dry_run"] is True
    assert company.call(company.board, configuration.show, agent=dev.id)["revision"] == 1
    done = update(company, dev)
    assert (done["changes"], done["revision"]) == (seen["changes"], 2)
    now = company.call(company.board, configuration.show, agent=dev.id)
    assert now["adapter_config"] == {"model": "opus"}


@pytest.mark.requirement("HH-27", "FX-22")
def test_whoever_had_no_model_gets_the_first_that_is_usable_now(company: Company) -> None:
    dev = company.agent("dev", adapter_type=WITHOUT_MODEL)
    company.agent("scripted", adapter_type=WITHOUT_MODEL, adapter_config={"script": []})
    assert update(company, dev)["changes"] == []
    company.app.gate.usable_adapter = "claude"
    company.call(
        company.board,
        configuration.change,
        agent=company.ceo.id,
        changes={"adapterType": "claude", "adapterConfig": {"model": "opus"}},
    )
    changes = {one["path"]: one["now"] for one in update(company, dev)["changes"]}
    assert changes == {"adapterType": "claude", "adapterConfig.model": "opus"}
    # An adapter that is not installed any more is replaced as well.
    company.sql("UPDATE agents SET adapter_type = 'gone' WHERE id = ?", dev.id)
    assert update(company, dev)["adapter_type"] == "claude"
    # And the next run is carried out with it.
    run = company.run(dev)
    given = {"run": run.id, "token": run.caller.token}
    started = company.call(as_system(), run_start.briefing, **given).agent
    assert (started["adapter_type"], started["adapter_config"]) == ("claude", {"model": "opus"})


@pytest.mark.requirement("HH-12", "FX-22")
def test_a_changed_set_up_waits_for_a_person_when_an_agent_asks_for_it(company: Company) -> None:
    lead = company.agent("lead", **CLAUDE)
    dev = company.agent("dev", "lead", adapter_type=WITHOUT_MODEL)
    company.call(
        company.board,
        companies.change,
        company=company.id,
        require_approval_for_config_changes=True,
    )
    asked = update(company, dev, lead.caller)
    assert asked["approval"]["status"] == "pending"
    # Who may not read configurations sees what comes, and not what it replaces.
    assert {"path": "adapterType", "now": "claude"} in asked["changes"]
    now = company.call(company.board, configuration.show, agent=dev.id)
    assert (now["adapter_type"], now["revision"]) == (WITHOUT_MODEL, 1)
    company.call(company.board, approvals.approve, approval=asked["approval"]["id"])
    assert company.call(company.board, configuration.show, agent=dev.id)["adapter_type"] == "claude"
    # An agent with the level boss changes it at once.
    other = company.agent("other", "lead", adapter_type=WITHOUT_MODEL)
    company.call(company.board, permissions.change, agent=lead.id, level="boss")
    assert update(company, other, lead.caller)["approval"] is None


def test_who_cannot_be_updated_says_so(company: Company) -> None:
    seat = company.agent("seat", adapter_type="human")
    with pytest.raises(Conflict, match="seat of a person"):
        update(company, seat)
    dev = company.agent("dev")
    company.call(company.board, agents.terminate, agent=dev.id)
    with pytest.raises(Conflict, match="terminated"):
        update(company, dev)


def test_a_paused_agent_is_updated_and_stays_paused(company: Company) -> None:
    dev = company.agent("dev", **CLAUDE)
    company.call(company.board, agents.pause, agent=dev.id)
    assert update(company, dev)["status"] == "paused"
    assert company.sql("SELECT status FROM agents WHERE id = ?", dev.id) == [("paused",)]
