"""Two people at once, a revision just then, a process that dies: one decision, one effect."""

import itertools
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.clock import SystemClock
from remit.errors import AwaitsApproval, Conflict
from remit.services.governance import approvals
from remit.services.hiring import configuration, helper_creation
from remit.services.knowledge import files
from remit.services.organisation import agents
from remit.services.record import events
from remit.services.rights import grants
from remit.services.work import delegation, outcomes
from remit.store.engine.postgres import PostgresTransaction
from remit.store.engine.sqlite import SqliteTransaction
from tests import decision_stage, runtime_stage
from tests.company import Answer, Company, opened
from tests.decision_stage import Decision, decide_and_die
from tests.governance import ask, count, hire, propose, resubmit, seen, send_back
from tests.organisation import dump, problems, shown, work
from tests.runtime_stage import Stage


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


@pytest.fixture
def asks_before_hiring() -> bool:
    return True


def won(results: list[Any]) -> list[Any]:
    """What succeeded; whatever did not was told that somebody was faster."""
    lost = [one for one in results if isinstance(one, BaseException)]
    assert all(isinstance(one, Conflict) for one in lost), lost
    return [one for one in results if not isinstance(one, BaseException)]


# ── at once ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-10")
def test_the_first_answer_wins_and_there_is_no_second(company: Company) -> None:
    people = [company.board, *(company.user(f"member-{n}") for n in range(3))]
    verbs: tuple[Any, ...] = (
        approvals.approve,
        approvals.reject,
        approvals.request_revision,
        approvals.cancel,
    )
    for round_ in range(4):
        made = hire(company, company.ceo.caller, f"agent-{round_}")
        results = company.together(
            [
                company.app.gate(who, verb, approval=made["approval"]["id"], note=verb.name)
                for who, verb in itertools.product(people, verbs)
            ]
        )
        # Sent back and then rejected or withdrawn is two steps, in that order; nothing else is.
        steps = [one["status"] for one in won(results)]
        ended = Counter(steps)
        assert ended["approved"] + ended["rejected"] + ended["cancelled"] <= 1
        assert ended["revision_requested"] <= 1
        final = seen(company, made["approval"])
        assert final["status"] in steps
        agent = company.call(company.board, agents.show, agent=made["agent"]["id"])["status"]
        expected = {
            "approved": "idle",
            "rejected": "terminated",
            "cancelled": "terminated",
            "revision_requested": "pending_approval",
        }
        assert agent == expected[final["status"]]
        log = company.call(company.board, events.listing, company=company.id, limit=100)
        took_effect = [
            one
            for one in log
            if one["action"] in ("agent.hire", "agent.terminate")
            and one["resource"] == f"agent:{made['agent']['id']}"
        ]
        assert len(took_effect) == (0 if agent == "pending_approval" else 1)
    assert company.call(company.board, events.verify, company=company.id)["ok"]


@pytest.mark.requirement("BX-10")
def test_a_revision_that_was_just_replaced_is_not_approved(company: Company) -> None:
    """Whoever looked at revision 2 approves that or nothing, whatever happens meanwhile."""
    lead = company.agent("lead")
    for round_ in range(5):
        made = propose(company, company.ceo.caller, lead.id, title=f"Seen {round_}")
        send_back(company, made)
        resubmit(company, company.ceo.caller, made, title=f"Seen again {round_}")
        gate = company.app.gate
        results = company.together(
            [
                gate(company.board, approvals.request_revision, approval=made["id"]),
                gate(
                    company.ceo.caller,
                    approvals.resubmit,
                    approval=made["id"],
                    payload={"title": f"Unseen {round_}"},
                ),
                gate(company.board, approvals.approve, approval=made["id"], expected_revision=2),
            ]
        )
        won(results)
        now = seen(company, made)
        title = company.call(company.board, agents.show, agent=lead.id)["title"]
        if now["status"] == "approved":
            assert (now["revision"], title) == (2, f"Seen again {round_}")
        else:
            assert not title.endswith(str(round_))
            approvals_left = seen(company, made)["revision"]
            assert approvals_left in (2, 3)


def test_the_same_call_at_once_is_one_question_and_one_use(company: Company) -> None:
    lead = company.agent("lead")
    file = company.file(company.board, b"plans")
    company.call(
        company.board,
        grants.give,
        company=company.id,
        to=lead.id,
        resource=f"kb_file:{file['id']}",
        level="read",
        mode="ask",
    )

    def read_at_once() -> list[Any]:
        return company.together(
            [company.app.gate(lead.caller, files.read, file=file["id"]) for _ in range(8)]
        )

    waiting = {one.details["approval_id"] for one in read_at_once()}
    assert len(waiting) == 1
    company.call(company.board, approvals.approve, approval=waiting.pop())
    results = read_at_once()
    assert sum(isinstance(one, dict) for one in results) == 1
    again = {one.details["approval_id"] for one in results if isinstance(one, AwaitsApproval)}
    assert len(again) == 1
    reads = company.call(company.board, files.accesses, file=file["id"])
    assert [one["access"] for one in reads] == ["read", "write"]


def test_create_agent_at_once_is_one_agent(company: Company) -> None:
    def create_at_once() -> list[Any]:
        return company.together(
            [
                company.app.gate(company.ceo.caller, helper_creation.create_agent, name="scout")
                for _ in range(6)
            ]
        )

    waiting = {one.details["approval_id"] for one in create_at_once()}
    assert len(waiting) == 1
    approval = waiting.pop()
    deciding = [
        company.app.gate(company.board, approvals.approve, approval=approval) for _ in range(4)
    ]
    assert len(won(company.together(deciding))) == 1
    assert count(company, "agents", "name = 'scout'") == 1


def test_a_hire_and_what_it_is_for_change_at_once(company: Company) -> None:
    """Whatever comes first, responsibility lies with exactly one agent who can act."""
    for round_ in range(4):
        goal = work(company, company.ceo.caller, company.ceo.id, f"Goal {round_}")
        made = company.call(
            company.ceo.caller,
            delegation.delegate,
            outcome=goal,
            hire={"name": f"taker-{round_}", "adapter_type": "scripted"},
        )
        gate = company.app.gate
        results = company.together(
            [
                gate(company.board, approvals.approve, approval=made["approval"]["id"]),
                gate(company.board, outcomes.close, outcome=goal, rationale="Not wanted."),
            ]
        )
        won(results)
        outcome = shown(company, goal)
        agent = company.call(company.board, agents.show, agent=goal)["status"]
        assert (outcome["status"], agent) == ("closed", "terminated")
        assert seen(company, made["approval"])["status"] in ("approved", "cancelled")
    assert problems(company) == []


# ── killed ──────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with runtime_stage.opened(decision_stage.MODULE) as found:
        yield found


@pytest.mark.requirement("BX-10", "BX-05")
def test_a_process_killed_anywhere_in_a_decision_has_decided_nothing_or_everything(
    database_url: str, tmp_path: Path, stage: Stage
) -> None:
    """Decision, effect and mail are one commit: there is no moment between them to be killed in."""
    home = tmp_path / "home"
    with opened(database_url, home, asks_before_hiring=True) as company:
        goal = work(company, company.ceo.caller, company.ceo.id, "Goal")
        made = company.call(
            company.ceo.caller,
            delegation.delegate,
            outcome=goal,
            hire={"name": "taker", "adapter_type": "scripted"},
        )
        approval: Answer = made["approval"]
        before = dump(company)

    def killed_at(statement: int) -> str:
        told = (database_url, str(home), approval["id"], statement, str(tmp_path / "said"))
        return decide_and_die(stage, Decision(*told))

    # Early, in the middle and late in the transaction; then after the answer was given.
    for at in (3, 14, 30):
        assert killed_at(at) == ""
        with opened(database_url, home, asks_before_hiring=True) as company:
            after = dump(company, {"tokens", "events", "event_heads"})
            assert after == {name: rows for name, rows in before.items() if name in after}
            assert seen(company, approval)["status"] == "pending"
    assert killed_at(10**6) == "approved"
    with opened(database_url, home, asks_before_hiring=True) as company:
        assert seen(company, approval)["status"] == "approved"
        assert shown(company, goal)["owner_id"] == goal
        assert company.call(company.board, agents.show, agent=goal)["status"] == "idle"
        mail = company.sql("SELECT subject FROM messages")
        assert mail == [("Approved: hire taker as general",)]
        assert problems(company) == []


class Crash(Exception):
    """Stands for whatever can go wrong between two statements."""


@pytest.mark.requirement("BX-10")
def test_a_decision_that_breaks_off_at_any_statement_changes_nothing(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = company.file(company.ceo.caller)
    made = hire(
        company,
        company.ceo.caller,
        "reader",
        given=[{"resource": f"kb_file:{file['id']}", "level": "read"}],
    )
    before = dump(company)
    points = 0
    while True:
        left = points + 1
        with monkeypatch.context() as patched:
            for kind in (SqliteTransaction, PostgresTransaction):

                def execute(
                    self: Any, sql: str, parameters: Any, _execute: Any = kind.execute
                ) -> Any:
                    nonlocal left
                    left -= 1
                    if left == 0:
                        raise Crash
                    return _execute(self, sql, parameters)

                patched.setattr(kind, "execute", execute)
            try:
                company.call(company.board, approvals.approve, approval=made["approval"]["id"])
            except Crash:
                points += 1
            else:
                break
        if points % 5 == 0:
            assert dump(company) == before
    assert points > 30
    assert company.call(company.board, agents.show, agent="reader")["status"] == "idle"
    assert count(company, "messages") == 1
    assert count(company, "grants", "holder_id = ?", made["agent"]["id"]) == 1


@pytest.mark.requirement("BX-10")
def test_everything_undecided_survives_a_restart(database_url: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with opened(database_url, home, asks_before_hiring=True) as company:
        lead = company.agent("lead")
        hired = hire(company, company.ceo.caller, "helper")["approval"]
        proposed = propose(company, company.ceo.caller, lead.id, title="Chief")
        asked = ask(company, company.ceo.caller)
        with pytest.raises(AwaitsApproval) as waits:
            company.call(company.ceo.caller, helper_creation.create_agent, name="scout")
        parked = {"id": waits.value.details["approval_id"]}
        send_back(company, asked)
        views = [seen(company, one) for one in (hired, proposed, asked, parked)]
    with opened(database_url, home, asks_before_hiring=True) as company:
        assert [seen(company, one) for one in (hired, proposed, asked, parked)] == views
        for one in (hired, proposed, parked):
            company.call(company.board, approvals.approve, approval=one["id"])
        names = {one["name"] for one in company.call(company.board, agents.listing, company=None)}
        assert {"helper", "scout"} <= names
        shown_config = company.call(company.board, configuration.show, agent="lead")
        assert shown_config["title"] == "Chief"
