"""Configurations: changed by the board, proposed from above, kept, compared and taken back."""

import json
from typing import Any

import pytest

from remit.errors import AlreadyExists, BadInput, Conflict
from remit.services.governance import approvals
from remit.services.hiring import configuration
from remit.services.organisation import agents, reorganise
from remit.services.people import companies
from remit.services.record import events
from remit.services.redaction import REMOVED
from tests.company import Answer, Company, Member
from tests.governance import approve, letters, propose, reject, resubmit, seen, send_back
from tests.organisation import dump, refusal

SECRET = "sk-live-0123456789abcdef0123"
OTHER = "sk-live-ffffffffffffffffffff"
PROCESS = {"command": "work", "env": {"API_KEY": SECRET, "LANG": "C"}, "args": ["--fast"]}


@pytest.fixture
def lead(company: Company) -> Member:
    return company.agent("lead", adapter_type="process", adapter_config=PROCESS, prompt="Lead.")


def change(company: Company, agent: Member, **changes: Any) -> Answer:
    return company.call(company.board, configuration.change, agent=agent.id, changes=changes)


def revisions(company: Company, agent: Member, **page: Any) -> list[Answer]:
    return company.call(company.board, configuration.revisions, agent=agent.id, **page)


def stored(company: Company, agent: Member) -> Answer:
    (text,) = company.sql("SELECT adapter_config FROM agents WHERE id = ?", agent.id)[0]
    found: Answer = json.loads(text)
    return found


@pytest.mark.requirement("PC-50", "PC-51", "PC-53", "PC-54")
def test_it_is_read_without_its_secrets_and_says_which(company: Company, lead: Member) -> None:
    shown = company.call(company.board, configuration.show, agent=lead.id)
    assert shown["adapter_config"]["env"] == {"API_KEY": REMOVED, "LANG": "C"}
    assert shown["adapter_config"]["command"] == "work"
    assert "adapterConfig.env.API_KEY" in shown["redacted"]
    assert (shown["prompt"], shown["revision"]) == ("Lead.", 1)
    listed = company.call(company.board, configuration.listing, company=company.id)
    assert [one["name"] for one in listed] == ["ceo", "lead"]
    assert SECRET not in json.dumps([shown, listed])


@pytest.mark.requirement("HH-24", "HB-16", "HB-17", "HB-18")
def test_the_board_changes_it_and_every_revision_stays(company: Company, lead: Member) -> None:
    changed = change(company, lead, prompt="Lead well.", title="Head")
    assert (changed["revision"], changed["prompt"]) == (2, "Lead well.")
    change(company, lead, adapterType="claude", adapterConfig={"model": None})
    newest, second, first = revisions(company, lead)
    assert [one["number"] for one in (first, second, newest)] == [1, 2, 3]
    assert [one["source"] for one in (first, second, newest)] == ["create", "change", "change"]
    assert second["changed"] == ["title", "prompt"]
    assert second["difference"] == [
        {"path": "title", "was": "", "now": "Head"},
        {"path": "prompt", "was": "Lead.", "now": "Lead well."},
    ]
    assert {"adapterType", "adapterConfig"} == set(newest["changed"])
    assert SECRET not in json.dumps([first, second, newest])
    # Page by page, each with what it changed.
    (page,) = revisions(company, lead, before=3, limit=1)
    assert page == second


def test_a_secret_that_comes_back_as_it_was_shown_stays_what_it_was(
    company: Company, lead: Member
) -> None:
    shown = company.call(company.board, configuration.show, agent=lead.id)["adapter_config"]
    change(company, lead, adapterConfig={**shown, "args": ["--slow"]})
    assert stored(company, lead) == {**PROCESS, "args": ["--slow"]}
    change(company, lead, adapterConfig={**PROCESS, "env": {"API_KEY": OTHER}})
    newest = revisions(company, lead)[0]
    # That it changed is told; what it was or is, is not.
    assert {"path": "adapterConfig.env.API_KEY", "was": REMOVED, "now": REMOVED} in (
        newest["difference"]
    )
    assert SECRET not in json.dumps(newest)
    assert OTHER not in json.dumps(newest)
    with pytest.raises(BadInput):
        change(company, lead, adapterConfig={"command": "x", "env": {"NEW_TOKEN": REMOVED}})


WRONG: tuple[dict[str, Any], ...] = (
    {},
    {"surprise": 1},
    {"adapterType": "nonsense"},
    {"adapterConfig": {"command": "x", "surprise": 1}},
    {"adapterConfig": []},
    {"adapterConfig": {"command": "x" * 70_000}},
    {"adapterType": "http"},
    {"role": "emperor"},
    {"name": "two words"},
    {"budgetMonthlyCents": -5},
    {"runtimeConfig": "fast"},
    {"metadata": 7},
    {"prompt": "x" * 60_000},
)


def test_what_the_adapter_or_the_model_does_not_take_is_refused(
    company: Company, lead: Member
) -> None:
    before = dump(company)
    for wrong in WRONG:
        for verb, caller in (
            (configuration.change, company.board),
            (configuration.propose, company.ceo.caller),
        ):
            reason = refusal(company, caller, verb, agent=lead.id, changes=wrong)
            assert reason == "invalid", wrong
    assert dump(company) == before


def test_only_the_latest_is_changed_and_names_stay_unique(company: Company, lead: Member) -> None:
    company.agent("peer")
    change(company, lead, title="Head")
    with pytest.raises(Conflict) as stale:
        company.call(
            company.board,
            configuration.change,
            agent=lead.id,
            changes={"title": "Other"},
            expected_revision=1,
        )
    assert (stale.value.reason, stale.value.details) == ("stale_revision", {"revision": 2})
    with pytest.raises(AlreadyExists):
        change(company, lead, name="Peer")
    change(company, lead, name="Lead")
    assert company.call(company.board, agents.show, agent="LEAD")["name"] == "Lead"
    for caller in (company.ceo.caller, lead.caller):
        assert refusal(
            company, caller, configuration.change, agent=lead.id, changes={"title": "x"}
        ) == ("board_only")
        assert refusal(company, caller, configuration.rollback, agent=lead.id, revision="1") == (
            "board_only"
        )


@pytest.mark.requirement("HH-25")
def test_a_change_is_taken_back_as_a_new_revision(company: Company, lead: Member) -> None:
    change(company, lead, prompt="Worse.", adapterType="scripted", adapterConfig={})
    first = revisions(company, lead)[-1]
    for named in ("1", first["id"]):
        back = company.call(company.board, configuration.rollback, agent=lead.id, revision=named)
        assert back["prompt"] == "Lead."
    assert stored(company, lead) == PROCESS  # with the secret that nobody saw
    assert [(one["number"], one["source"]) for one in revisions(company, lead)] == [
        (4, "rollback"),
        (3, "rollback"),
        (2, "change"),
        (1, "create"),
    ]
    for missing in ("9", "0", "x", company.app.ids.new(), "1.5"):
        assert (
            refusal(company, company.board, configuration.rollback, agent=lead.id, revision=missing)
            == "not_found"
        )


# ── proposals ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("HH-14", "HH-24", "HH-25")
def test_any_ancestor_proposes_and_the_board_decides(company: Company, lead: Member) -> None:
    worker = company.agent("worker", "lead")
    for caller in (lead.caller, company.ceo.caller):
        made = propose(company, caller, worker.id, title="Chief", prompt="Work.")
        assert made["payload"]["changed"] == ["title", "prompt"]
        assert made["payload"]["configuration"] == {"title": "Chief", "prompt": "Work."}
        assert made["agent_id"] == worker.id
        reject(company, made)
    # Neither oneself, nor upward, nor aside.
    peer = company.agent("peer")
    for caller, target in (
        (worker.caller, worker),
        (worker.caller, lead),
        (peer.caller, worker),
        (company.ceo.caller, company.ceo),
    ):
        assert (
            refusal(company, caller, configuration.propose, agent=target.id, changes={"title": "x"})
            == "not_below_you"
        )
    made = propose(company, lead.caller, worker.id, title="Chief")
    assert revisions(company, worker)[0]["number"] == 1
    approve(company, made)
    newest = revisions(company, worker)[0]
    assert (newest["source"], newest["approval_id"]) == ("proposal", made["id"])
    assert company.call(company.board, agents.show, agent=worker.id)["title"] == "Chief"
    assert letters(company, lead)[-1]["subject"] == "Approved: change title of worker"


@pytest.mark.requirement("PC-52")
def test_a_proposal_does_not_show_what_its_author_may_not_read(
    company: Company, lead: Member
) -> None:
    worker = company.agent(
        "worker", "lead", adapter_type="process", adapter_config=PROCESS, prompt="Hidden words."
    )
    made = propose(company, lead.caller, worker.id, prompt="New words.")
    for view in (made, seen(company, made, lead.caller)):
        assert "Hidden words." not in json.dumps(view)
        assert "New words." in json.dumps(view)
    # Who decides sees what would be replaced.
    assert seen(company, made)["payload"]["difference"] == [
        {"path": "prompt", "was": "Hidden words.", "now": "New words."}
    ]
    mine = company.call(lead.caller, approvals.listing, company=None)
    assert "Hidden words." not in json.dumps(mine)
    secret = propose(
        company,
        company.ceo.caller,
        worker.id,
        adapterConfig={**PROCESS, "env": {"API_KEY": OTHER}},
    )
    for caller in (company.board, company.ceo.caller):
        text = json.dumps(seen(company, secret, caller))
        assert SECRET not in text
        assert OTHER not in text
    approve(company, secret)
    assert stored(company, worker)["env"] == {"API_KEY": OTHER}


def test_what_was_proposed_for_an_earlier_revision_is_not_applied(
    company: Company, lead: Member
) -> None:
    made = propose(company, company.ceo.caller, lead.id, title="Chief")
    change(company, lead, prompt="Meanwhile.")
    with pytest.raises(Conflict) as stale:
        approve(company, made)
    assert stale.value.reason == "stale_revision"
    assert seen(company, made)["status"] == "pending"
    send_back(company, made, "On top of the new one, please.")
    again = resubmit(company, company.ceo.caller, made, prompt="Together.")
    assert again["payload"]["baseRevision"] == 2
    approve(company, made)
    shown = company.call(company.board, configuration.show, agent=lead.id)
    assert (shown["title"], shown["prompt"], shown["revision"]) == ("Chief", "Together.", 3)


def test_nothing_new_is_not_proposed(company: Company, lead: Member) -> None:
    same = {
        "prompt": "Lead.",
        "adapterConfig": {**PROCESS, "env": {"API_KEY": REMOVED, "LANG": "C"}},
    }
    assert (
        refusal(company, company.ceo.caller, configuration.propose, agent=lead.id, changes=same)
        == "conflict"
    )


def test_where_the_company_does_not_ask_a_proposal_takes_effect_at_once(
    company: Company, lead: Member
) -> None:
    company.call(
        company.board,
        companies.change,
        company=company.id,
        require_approval_for_config_changes=False,
    )
    made = company.call(
        company.ceo.caller,
        configuration.propose,
        agent=lead.id,
        changes={"title": "Chief"},
    )
    assert (made["approval"], made["agent"]["title"]) == (None, "Chief")
    newest = revisions(company, lead)[0]
    assert (newest["source"], newest["created_by_agent_id"]) == ("proposal", company.ceo.id)


def test_a_role_below_an_agent_gives_nothing_by_proposal_either(
    company: Company, lead: Member
) -> None:
    approve(company, propose(company, company.ceo.caller, lead.id, role="ceo"))
    shown = company.call(company.board, agents.show, agent=lead.id)
    assert (shown["role"], shown["permissions"]) == ("ceo", {"canCreateAgents": False})


# ── seats ───────────────────────────────────────────────────────────────────────────────────────


def test_a_seat_is_a_revision_too(company: Company, lead: Member) -> None:
    def seat(**how: Any) -> Answer:
        return company.call(
            company.board,
            reorganise.reorganise,
            company=company.id,
            operations=[{"op": "seat", "agent": "lead", **how}],
        )

    taken = seat(user="board")
    newest = revisions(company, lead)[0]
    assert (newest["number"], newest["source"]) == (2, "seat")
    assert newest["configuration"]["adapterType"] == "human"
    # A person sits there, so no program is put in by a mere change.
    with pytest.raises(Conflict, match="seat"):
        change(company, lead, adapterType="scripted", adapterConfig={})
    change(company, lead, prompt="Dear person.")
    with pytest.raises(Conflict, match="seat"):
        company.call(company.board, configuration.rollback, agent=lead.id, revision="1")
    company.call(company.board, reorganise.undo, company=company.id, event=taken["event_id"])
    assert stored(company, lead) == PROCESS
    assert [one["source"] for one in revisions(company, lead)] == [
        "seat",
        "change",
        "seat",
        "create",
    ]
    seat(adapter_type="scripted")
    log = company.call(company.board, events.listing, company=company.id, limit=50)
    assert SECRET not in json.dumps(log)


def test_a_terminated_agent_stays_as_it_was(company: Company, lead: Member) -> None:
    company.call(company.board, agents.terminate, agent=lead.id)
    for verb, more in (
        (configuration.change, {"changes": {"title": "x"}}),
        (configuration.propose, {"changes": {"title": "x"}}),
        (configuration.rollback, {"revision": "1"}),
    ):
        assert refusal(company, company.board, verb, agent=lead.id, **more) == "conflict"
    assert len(revisions(company, lead)) == 1
