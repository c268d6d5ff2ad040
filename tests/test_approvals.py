"""Approvals: who asks, who decides, what becomes of it, and that it stays so."""

import re
from pathlib import Path
from typing import Any

import pytest

import remit
from remit.clock import DAY, SECOND, to_iso
from remit.errors import BadInput, Conflict
from remit.ids import END_OF_IDS
from remit.services.governance import approvals
from remit.services.hiring import configuration
from remit.services.identity import as_system
from remit.services.organisation import agents, reorganise
from remit.services.record import events
from remit.services.screens import needs_you
from remit.testing.clock import VirtualClock
from tests.company import Answer, Company
from tests.governance import (
    approve,
    ask,
    copies,
    count,
    empower,
    hire,
    letters,
    propose,
    resubmit,
    seen,
    send_back,
    statements_counted,
    waiting_for,
)
from tests.organisation import dump, refusal
from tests.statements import statements_that_set


@pytest.fixture
def asks_before_hiring() -> bool:
    return True


# ── the table ───────────────────────────────────────────────────────────────────────────────────

#: What each status may become, written down a second time.
EDGES = {
    ("pending", "request_revision"): "revision_requested",
    ("pending", "approve"): "approved",
    ("pending", "reject"): "rejected",
    ("pending", "cancel"): "cancelled",
    ("revision_requested", "resubmit"): "pending",
    ("revision_requested", "reject"): "rejected",
    ("revision_requested", "cancel"): "cancelled",
}
WAYS_THERE = {
    "pending": (),
    "revision_requested": ("request_revision",),
    "approved": ("approve",),
    "rejected": ("reject",),
    "cancelled": ("cancel",),
}
VERBS: dict[str, Any] = {
    "approve": approvals.approve,
    "reject": approvals.reject,
    "request_revision": approvals.request_revision,
    "resubmit": approvals.resubmit,
    "cancel": approvals.cancel,
}


@pytest.mark.requirement("PC-24", "PC-25", "PC-26", "PC-27", "PC-32", "PC-22", "PC-78")
def test_every_edge_of_the_table_is_walked_or_refused(company: Company) -> None:
    for status, way in WAYS_THERE.items():
        for name, verb in VERBS.items():
            made = ask(company, company.ceo.caller, f"{name} when {status}")
            for step in way:
                company.call(company.board, VERBS[step], approval=made["id"])
            assert seen(company, made)["status"] == status
            wanted = EDGES.get((status, name))
            if wanted is None:
                before = seen(company, made)
                reason = refusal(company, company.board, verb, approval=made["id"])
                assert reason == "wrong_status", (status, name)
                assert seen(company, made) == before
            else:
                company.call(company.board, verb, approval=made["id"])
                assert seen(company, made)["status"] == wanted


@pytest.mark.requirement("PC-32")
def test_one_service_alone_moves_an_approval() -> None:
    source = Path(remit.__file__).parent
    texts = {path.relative_to(source).as_posix(): path.read_text() for path in source.rglob("*.py")}
    moves = {name for name, text in texts.items() if "MOVE_APPROVAL" in text}
    assert moves == {"store/organisation/governance.py", "services/governance/approval_engine.py"}
    changes = {n for n, text in texts.items() if re.search(r"(update|Rows)\(approvals\b", text)}
    assert changes == {"store/organisation/governance.py"}
    # No other statement has a say in it.
    moving = statements_that_set("approvals", "status")
    assert moving == {"remit.store.organisation.governance.MOVE_APPROVAL"}
    tables = {name for name, text in texts.items() if re.search(r"(?i)update approvals", text)}
    assert {name for name in tables if "/migrations/" not in name} == set()


@pytest.mark.requirement("PC-26")
def test_what_was_sent_back_is_resubmitted_before_it_is_approved(company: Company) -> None:
    made = ask(company, company.ceo.caller)
    send_back(company, made, "Say why.")
    with pytest.raises(Conflict) as refused:
        approve(company, made)
    assert refused.value.step == "The agent that asked has to submit it again first."
    again = resubmit(company, company.ceo.caller, made, title="Because")
    assert (again["status"], again["revision"]) == ("pending", 2)
    assert approve(company, made, expected_revision=2)["status"] == "approved"


# ── what is approved is what was asked ──────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-10")
def test_a_decision_names_the_revision_that_was_seen(company: Company) -> None:
    made = ask(company, company.ceo.caller)
    send_back(company, made)
    now = resubmit(company, company.ceo.caller, made, title="Something else")
    assert now["digest"] != made["digest"]
    for verb in (approvals.approve, approvals.reject, approvals.request_revision):
        with pytest.raises(Conflict) as stale:
            company.call(company.board, verb, approval=made["id"], expected_revision=1)
        assert stale.value.reason == "stale_revision"
        assert stale.value.details == {"revision": 2, "digest": now["digest"]}
    assert seen(company, made)["status"] == "pending"


def test_every_revision_stays_to_be_seen_with_its_digest(company: Company) -> None:
    made = ask(company, company.ceo.caller, "One")
    for title in ("Two", "Three"):
        send_back(company, made)
        resubmit(company, company.ceo.caller, made, title=title)
    send_back(company, made)
    resubmit(company, company.ceo.caller, made)
    shown = seen(company, made)
    told = [(one["number"], one["payload"]["title"]) for one in shown["revisions"]]
    assert told == [(1, "One"), (2, "Two"), (3, "Three"), (4, "Three")]
    digests = [one["digest"] for one in shown["revisions"]]
    assert len(set(digests)) == 3
    assert digests[2] == digests[3] == shown["digest"]
    assert {one["author_agent_id"] for one in shown["revisions"]} == {company.ceo.id}


@pytest.mark.requirement("PC-31", "PC-48")
def test_notes_stay_among_the_comments_after_a_resubmission(company: Company) -> None:
    made = ask(company, company.ceo.caller)
    send_back(company, made, "Too vague.")
    assert seen(company, made)["decision_note"] == "Too vague."
    resubmit(company, company.ceo.caller, made, title="Precisely this")
    decided = approve(company, made, note="Now it is clear.")
    assert decided["decision_note"] == "Now it is clear."
    said = company.call(company.board, approvals.comments, approval=made["id"])
    assert [one["body"] for one in said] == ["Too vague.", "Now it is clear."]


# ── who decides ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-10", "HB-10", "BX-18")
def test_it_is_routed_to_the_first_above_who_may_decide(company: Company) -> None:
    lead = company.agent("lead")
    company.agent("worker", "lead")
    intern = company.agent("intern", "worker")
    empower(company, company.ceo)
    assert ask(company, lead.caller)["routed_to_agent_id"] == company.ceo.id
    empower(company, lead)
    made = ask(company, intern.caller, "A bigger desk")
    assert made["routed_to_agent_id"] == lead.id
    assert [one["subject"] for one in letters(company, lead)] == ["To decide: A bigger desk"]
    # The board may always; it finds it among what awaits it.
    assert made["id"] in waiting_for(company, company.board)
    assert ask(company, company.ceo.caller)["routed_to_agent_id"] is None
    assert approve(company, made, lead.caller)["decided_by_agent_id"] == lead.id


def test_who_may_decide_is_looked_for_again_when_it_is_resubmitted(company: Company) -> None:
    lead, worker = company.agent("lead"), company.agent("worker", "lead")
    made = ask(company, worker.caller)
    assert made["routed_to_agent_id"] is None
    send_back(company, made)
    empower(company, lead)
    again = resubmit(company, worker.caller, made)
    assert again["routed_to_agent_id"] == lead.id
    assert len(letters(company, lead)) == 1


def test_when_the_one_to_decide_leaves_the_next_above_is_asked(company: Company) -> None:
    empower(company, company.ceo)
    lead = company.agent("lead")
    company.agent("peer")
    worker = company.agent("worker", "lead")
    empower(company, lead)
    made = ask(company, worker.caller, "A chair")
    company.call(
        company.board,
        reorganise.reorganise,
        company=company.id,
        operations=[{"op": "move", "agent": "worker", "to": "peer"}],
    )
    assert seen(company, made)["routed_to_agent_id"] == company.ceo.id
    assert [one["subject"] for one in letters(company, company.ceo)] == ["To decide: A chair"]
    company.call(company.board, agents.terminate, agent=lead.id)
    assert letters(company, company.ceo) == []


@pytest.mark.requirement("BX-10")
def test_nobody_decides_their_own_request_or_one_from_elsewhere(company: Company) -> None:
    lead, worker = company.agent("lead"), company.agent("worker", "lead")
    peer = company.agent("peer")
    for who in (lead, worker, peer):
        empower(company, who)
    own = ask(company, lead.caller)
    below = ask(company, worker.caller)
    for verb in (approvals.approve, approvals.reject, approvals.request_revision):
        assert refusal(company, lead.caller, verb, approval=own["id"]) == "own_request"
        # Neither from beside nor from below can anybody know of it.
        assert refusal(company, peer.caller, verb, approval=below["id"]) == "not_found"
        assert refusal(company, worker.caller, verb, approval=own["id"]) == "not_found"
    assert refusal(company, company.ceo.caller, approvals.approve, approval=own["id"]) == (
        "board_decides"
    )
    assert {seen(company, one)["status"] for one in (own, below)} == {"pending"}


def test_a_right_to_decide_that_itself_needs_approval_decides_nothing(company: Company) -> None:
    lead = company.agent("lead")
    worker = company.agent("worker", "lead")
    empower(company, lead, mode="ask")
    made = ask(company, worker.caller)
    assert made["routed_to_agent_id"] is None
    assert refusal(company, lead.caller, approvals.approve, approval=made["id"]) == "board_decides"


def test_what_a_person_asked_for_is_not_for_agents(company: Company) -> None:
    empower(company, company.ceo)
    lead = company.agent("lead")
    made = hire(company, company.board, "helper", reports_to="lead")["approval"]
    assert made["routed_to_agent_id"] is None
    assert seen(company, made, company.ceo.caller)["status"] == "pending"
    for who in (lead, company.ceo):
        assert refusal(company, who.caller, approvals.cancel, approval=made["id"]) == "not_yours"
        reason = refusal(company, who.caller, approvals.approve, approval=made["id"])
        assert reason == "board_decides"
    assert approve(company, made)["status"] == "approved"


def test_an_approval_is_unknown_to_those_it_does_not_concern(company: Company) -> None:
    lead, peer = company.agent("lead"), company.agent("peer")
    made = ask(company, lead.caller)
    for verb, more in (
        (approvals.show, {}),
        (approvals.comments, {}),
        (approvals.comment, {"body": "hm"}),
        (approvals.approve, {}),
        (approvals.resubmit, {}),
        (approvals.cancel, {}),
        (approvals.delete_agent, {}),
    ):
        for named in (made["id"], made["id"][:18]):
            assert refusal(company, peer.caller, verb, approval=named, **more) == "not_found"
    assert company.call(peer.caller, approvals.listing, company=None) == []
    stranger = company.second_company().agent
    assert refusal(company, stranger.caller, approvals.show, approval=made["id"]) == "not_found"
    # Those above see it, and so does who asked; the beginning of its id is enough for them.
    for who in (lead, company.ceo):
        assert seen(company, made["id"][:20], who.caller)["id"] == made["id"]


@pytest.mark.requirement("AG-91")
def test_board_members_of_a_part_decide_about_that_part(company: Company) -> None:
    lead, peer = company.agent("lead"), company.agent("peer")
    worker = company.agent("worker", "lead")
    partial = company.user("partial", scope="lead")
    inside, outside = ask(company, worker.caller), ask(company, peer.caller)
    assert ask(company, lead.caller)["status"] == "pending"
    assert refusal(company, partial, approvals.approve, approval=outside["id"]) == "not_found"
    assert refusal(company, partial, approvals.show, approval=outside["id"]) == "not_found"
    listed = company.call(partial, approvals.listing, company=company.id)
    assert outside["id"] not in [one["id"] for one in listed]
    assert outside["id"] not in waiting_for(company, partial)
    assert inside["id"] in waiting_for(company, partial)
    assert approve(company, inside, partial)["status"] == "approved"


def test_observers_only_look(company: Company) -> None:
    observer = company.user("guest", "observer")
    made = ask(company, company.ceo.caller)
    assert seen(company, made, observer)["status"] == "pending"
    for verb, more in (
        (approvals.approve, {}),
        (approvals.reject, {}),
        (approvals.request_revision, {}),
        (approvals.resubmit, {}),
        (approvals.cancel, {}),
        (approvals.comment, {"body": "hm"}),
        (approvals.delete_agent, {}),
    ):
        assert refusal(company, observer, verb, approval=made["id"], **more) == "observer"
    assert refusal(
        company, observer, approvals.request, company=company.id, kind="budget", payload={}
    )
    assert waiting_for(company, observer) == []


def test_those_above_withdraw_what_somebody_below_asked_for(company: Company) -> None:
    lead = company.agent("lead")
    made = ask(company, lead.caller, "A yacht")
    cancelled = company.call(
        company.ceo.caller, approvals.cancel, approval=made["id"], note="No yachts."
    )
    assert cancelled["status"] == "cancelled"
    (letter,) = letters(company, lead)
    assert letter["subject"] == "Cancelled: A yacht"
    assert "No yachts." in letter["body"]


# ── being told ──────────────────────────────────────────────────────────────────────────────────


VERDICTS: tuple[tuple[Any, str], ...] = (
    (approvals.approve, "Approved"),
    (approvals.reject, "Rejected"),
    (approvals.request_revision, "To be revised"),
    (approvals.cancel, "Cancelled"),
)


@pytest.mark.requirement("BX-10")
def test_who_asked_is_woken_with_what_was_decided_and_why(company: Company) -> None:
    lead = company.agent("lead")
    for verb, verdict in VERDICTS:
        made = ask(company, lead.caller, "A bigger desk")
        company.call(company.board, verb, approval=made["id"], note="Measured twice.")
        (letter,) = letters(company, lead)
        assert letter["subject"] == f"{verdict}: A bigger desk"
        assert letter["sender"] == "system"
        assert "By board" in letter["body"]
        assert "Measured twice." in letter["body"]
        assert made["id"] in letter["body"]


@pytest.mark.requirement("PC-29", "PC-30")
def test_comments_and_replies_reach_those_who_are_concerned(company: Company) -> None:
    lead, worker = company.agent("lead"), company.agent("worker", "lead")
    empower(company, lead)
    made = ask(company, worker.caller, "A desk")
    letters(company, lead)
    first = company.call(company.board, approvals.comment, approval=made["id"], body="Which one?")
    assert first["author_user_id"] is not None
    assert [one["subject"] for one in letters(company, worker)] == ["Comment on: A desk"]
    answer = company.call(
        worker.caller,
        approvals.comment,
        approval=made["id"],
        body="The oak one.",
        reply_to=first["id"],
    )
    assert (answer["author_agent_id"], answer["reply_to"]) == (worker.id, first["id"])
    assert len(letters(company, lead)) == 2
    assert letters(company, worker) == []
    listed = company.call(worker.caller, approvals.comments, approval=made["id"])
    assert [one["body"] for one in listed] == ["Which one?", "The oak one."]
    other = ask(company, worker.caller)
    reason = refusal(
        company,
        company.board,
        approvals.comment,
        approval=other["id"],
        body="hm",
        reply_to=first["id"],
    )
    assert reason == "not_found"


def test_a_title_full_of_odd_characters_can_be_decided(company: Company) -> None:
    made = ask(company, company.ceo.caller, "line\nbreak\u202e \ud800 nul\x00" + "x" * 500)
    approve(company, made)
    (letter,) = letters(company, company.ceo)
    assert letter["subject"].startswith("Approved: line break nul x")


@pytest.mark.requirement("PC-49")
def test_every_step_is_in_the_record(company: Company) -> None:
    made = ask(company, company.ceo.caller)
    company.call(company.board, approvals.comment, approval=made["id"], body="Hm.")
    send_back(company, made, "No.")
    resubmit(company, company.ceo.caller, made)
    approve(company, made, note="Yes.")
    log = company.call(company.board, events.listing, company=company.id, limit=50)
    mine = [one for one in log if one["resource"] == f"approval:{made['id']}"]
    assert [one["action"] for one in reversed(mine)] == [
        "approval.request",
        "approval.comment",
        "approval.revise",
        "approval.resubmit",
        "approval.approve",
    ]
    assert mine[0]["details"]["digest"] == seen(company, made)["digest"]


# ── time ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-10")
def test_what_nobody_decides_in_time_is_given_up(company: Company, clock: VirtualClock) -> None:
    until = clock.now() + DAY
    made = ask(company, company.ceo.caller, "Soon", expires_at=to_iso(until))
    company.wait(company.app.clockwork.tick())
    clock.advance(DAY - SECOND)
    company.wait(company.app.clockwork.tick())
    assert made["id"] in waiting_for(company, company.board)
    clock.advance(SECOND)
    # Exactly then it is over, also before anybody noticed.
    assert refusal(company, company.board, approvals.approve, approval=made["id"]) == "expired"
    assert made["id"] not in waiting_for(company, company.board)
    assert company.wait(company.app.clockwork.tick()) == 1
    given_up = seen(company, made)
    assert (given_up["status"], given_up["decision_note"]) == ("cancelled", "timeout")
    (letter,) = letters(company, company.ceo)
    assert letter["subject"] == "Cancelled: nobody decided in time: Soon"
    assert company.wait(company.app.clockwork.tick()) == 0
    clock.advance(-2 * DAY)  # a clock that is put back brings nothing back
    assert refusal(company, company.board, approvals.approve, approval=made["id"]) == "wrong_status"


def test_only_remit_itself_gives_up_and_only_what_is_due(company: Company) -> None:
    made = ask(company, company.ceo.caller)
    for caller in (company.board, company.ceo.caller):
        assert refusal(company, caller, approvals.expire, approval=made["id"]) == "not_found"
        assert refusal(company, caller, approvals.due) == "not_found"
    assert refusal(company, as_system(), approvals.expire, approval=made["id"]) == "conflict"
    with pytest.raises(BadInput):
        ask(company, company.ceo.caller, expires_at="2001-01-01T00:00:00Z")


# ── what follows ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("PC-23")
def test_a_strategy_is_approved_without_further_effect(company: Company) -> None:
    made = company.call(
        company.ceo.caller,
        approvals.request,
        company=None,
        kind="approve_ceo_strategy",
        payload={"title": "Grow", "plan": "slowly"},
    )
    assert approve(company, made)["status"] == "approved"
    for kind in ("hire_agent", "config_change", "capability_use", "nonsense", None):
        assert (
            refusal(
                company,
                company.ceo.caller,
                approvals.request,
                company=None,
                kind=kind,
                payload={},
            )
            == "invalid"
        )


def test_a_budget_takes_effect_with_its_approval(company: Company) -> None:
    lead = company.agent("lead")

    def want(caller: Any, **payload: Any) -> Answer:
        return company.call(caller, approvals.request, company=None, kind="budget", payload=payload)

    made = want(lead.caller, budgetMonthlyCents=5000)
    send_back(company, made, "Less.")
    resubmit(company, lead.caller, made, budgetMonthlyCents=3000)
    approve(company, made)
    shown = company.call(company.board, agents.show, agent=lead.id)
    assert shown["budget_monthly_cents"] == 3000
    newest = company.call(company.board, configuration.revisions, agent=lead.id)[0]
    assert (newest["changed"], newest["approval_id"]) == (["budgetMonthlyCents"], made["id"])
    assert want(company.ceo.caller, agentId=lead.id, budgetMonthlyCents=1)["agent_id"] == lead.id
    for wrong in (-1, 1.5, "many", None, True, 10**18):
        with pytest.raises(BadInput):
            want(lead.caller, budgetMonthlyCents=wrong)
    # Nobody asks for what is another's.
    assert (
        refusal(
            company,
            lead.caller,
            approvals.request,
            company=None,
            kind="budget",
            payload={"agentId": company.ceo.id, "budgetMonthlyCents": 1},
        )
        == "not_found"
    )


@pytest.mark.requirement("BX-10")
def test_an_effect_that_fails_leaves_the_approval_undecided(company: Company) -> None:
    lead = company.agent("lead")
    made = propose(company, company.ceo.caller, lead.id, title="First")
    other = propose(company, company.ceo.caller, lead.id, title="Second")
    approve(company, made)
    before = dump(company)
    with pytest.raises(Conflict) as stale:
        approve(company, other, note="Both.")
    assert stale.value.reason == "stale_revision"
    assert dump(company) == before
    assert seen(company, other)["status"] == "pending"


def test_what_somebody_asked_for_goes_with_them(company: Company) -> None:
    lead = company.agent("lead")
    asked = ask(company, lead.caller)
    about = propose(company, company.ceo.caller, lead.id, title="X")
    company.call(company.board, agents.terminate, agent=lead.id)
    for one in (asked, about):
        gone = seen(company, one)
        assert (gone["status"], gone["decision_note"]) == ("cancelled", "lead was shut down")
    # Who proposed something about it is told; who is gone is not.
    assert [one["subject"] for one in letters(company, company.ceo)] == [
        "Cancelled: change title of lead"
    ]
    assert count(company, "deliveries", "status = 'dead'") == 0


def test_a_hire_that_somebody_asked_for_elsewhere_goes_with_them(company: Company) -> None:
    lead = company.agent("lead", permissions={"canCreateAgents": True})
    company.agent("worker", "lead")
    made = hire(company, lead.caller, "helper", reports_to="worker")
    company.call(
        company.board,
        reorganise.reorganise,
        company=company.id,
        operations=[{"op": "move", "agent": "worker", "to": "ceo"}],
    )
    company.call(company.board, agents.terminate, agent=lead.id)
    assert seen(company, made["approval"])["status"] == "cancelled"
    helper = company.call(company.board, agents.show, agent=made["agent"]["id"])
    assert helper["status"] == "terminated"


# ── many ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.tampers
def test_500_that_wait_are_listed_page_by_page_without_asking_about_each(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    lead, peer = company.agent("lead"), company.agent("peer")
    partial = company.user("partial", scope="peer")
    many = copies(company, ask(company, lead.caller), 520)
    mine = ask(company, peer.caller)
    for caller, expected in ((company.board, len(many) + 2), (partial, 1)):
        found: list[str] = []
        with statements_counted(monkeypatch) as run:
            before = END_OF_IDS
            while True:
                page = company.call(
                    caller, approvals.listing, company=company.id, status="pending", before=before
                )
                found += [one["id"] for one in page]
                if len(page) < 100:
                    break
                before = page[-1]["id"]
        pending = [one for one in found if one in {*many, mine["id"]}]
        assert len(found) == expected
        assert pending == sorted(pending, reverse=True)
        assert len(run) < 60, len(run)
    with statements_counted(monkeypatch) as run:
        assert len(waiting_for(company, company.board)) == 500
        # What others decide about does not crowd out what this member has to.
        assert waiting_for(company, partial) == [mine["id"]]
    assert len(run) < 60, len(run)
    with statements_counted(monkeypatch) as run:
        approve(company, mine)
    assert len(run) < 60, len(run)


def test_an_agents_list_has_what_it_asked_for_and_what_it_is_to_decide(company: Company) -> None:
    lead, worker = company.agent("lead"), company.agent("worker", "lead")
    empower(company, lead)
    own, below = ask(company, lead.caller), ask(company, worker.caller)
    ask(company, company.ceo.caller)
    listed = company.call(lead.caller, approvals.listing, company=None)
    assert [one["id"] for one in listed] == [below["id"], own["id"]]
    approve(company, below, lead.caller)
    pending = company.call(lead.caller, approvals.listing, company=None, status="pending")
    assert [one["id"] for one in pending] == [own["id"]]
    assert refusal(company, lead.caller, approvals.listing, company=None, status="x") == "invalid"


def test_what_somebody_was_to_decide_who_is_gone_goes_further_up(small: Company) -> None:
    head = small.agent("head", perpetual=True)
    small.agent("lead", "head", perpetual=True)
    dev = small.agent("dev", "lead")
    for one in (head, small.ceo):
        empower(small, one)
    asked = ask(small, dev.caller, "May I buy it?")
    assert seen(small, asked)["routed_to_agent_id"] == head.id
    operations = [{"op": "remove_layer", "agent": "head"}]
    small.call(small.board, reorganise.reorganise, company=small.id, operations=operations)
    assert seen(small, asked)["routed_to_agent_id"] == small.ceo.id
    (told,) = letters(small, small.ceo)
    assert "May I buy it?" in told["subject"]
    assert approve(small, asked, small.ceo.caller)["status"] == "approved"


@pytest.mark.requirement("BX-18")
def test_what_awaits_a_person_says_what_is_asked_for(company: Company) -> None:
    ceo = company.ceo
    company.agent("dev")
    terms = {"title": "Press", "budget_monthly_cents": 500, "budget_monthly_tokens": 2000}
    asked_for = [
        hire(company, ceo.caller, "writer", role="engineer", **terms)["approval"],
        hire(company, ceo.caller, "free")["approval"],
        propose(company, ceo.caller, "dev", title="Printer"),
        ask(company, ceo.caller, "May I?"),
        company.call(
            ceo.caller,
            approvals.request,
            company=company.id,
            kind="budget",
            payload={"budgetMonthlyCents": 1250},
        ),
    ]
    rows = company.call(company.board, needs_you.listing, company=company.id)
    causes = {row["id"]: row["cause"] for row in rows}
    waits = "ceo waits for it with 'Help the people of this company accomplish their work'."
    budget = "a budget of $5.00 and 2,000 tokens a month"
    assert [causes[approval["id"]] for approval in asked_for] == [
        f"ceo asks to hire writer as engineer (Press), reporting to ceo, with {budget}.",
        "ceo asks to hire free as general, reporting to ceo, with no budget of its own.",
        "ceo asks to change title of dev.",
        "ceo asks for a decision.",
        f"ceo asks for a budget of $12.50 a month. {waits}",
    ]
