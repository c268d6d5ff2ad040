"""Outcomes: what can be done with them, and the graph they form."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from remit.clock import HOUR, to_iso
from remit.errors import BadInput, Conflict, NotFound, Refused, RemitError, Unauthenticated
from remit.model.work.outcome import MOST_PARENTS
from remit.services.execution import job_queue
from remit.services.governance import approvals
from remit.services.hiring import hiring
from remit.services.identity import Caller, as_system
from remit.services.knowledge import files
from remit.services.messaging import pending_items, questions, schedules
from remit.services.organisation import agents, reorganise, termination
from remit.services.people import companies, users
from remit.services.record import events
from remit.services.rights import grants
from remit.services.screens import outcome_tree
from remit.services.work import delegation, outcome_walks, outcomes
from remit.services.work.outcome_walks import MOST_CHAINS
from remit.store.engine.statement import SQLITE
from remit.store.work import outcomes as statements
from remit.testing.clock import VirtualClock
from tests import mailing
from tests.channel_stage import bind
from tests.company import Company, Member, opened
from tests.governance import ask
from tests.organisation import change, code, hire, member, problems, refusal, shown, work
from tests.working import ignored


def code_of_change(company: Company, outcome: str, **what: Any) -> str:
    version = shown(company, outcome)["version"]
    return refusal(
        company, company.ceo.caller, outcomes.change, outcome=outcome, version=version, **what
    )


def document(company: Company, caller: Caller, outcome: str) -> str:
    return company.read(caller, outcome)[1].decode()


def ids(found: list[dict[str, Any]]) -> list[str]:
    return [one["id"] for one in found]


# ── making and looking ──────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-25", "AG-28", "AG-35", "AG-103")
def test_whoever_creates_a_part_owns_it(company: Company) -> None:
    made = company.call(
        company.ceo.caller,
        outcomes.create,
        parent=company.ceo.id,
        title="Open a shop",
        description="On *Main Street*.",
    )
    assert made["owner_id"] == company.ceo.id
    assert made["status"] == "open"
    assert not made["delegated"]
    assert document(company, company.ceo.caller, made["id"]).endswith("On *Main Street*.")
    kept = company.sql("SELECT kind, id FROM files WHERE id = ?", made["id"])
    assert kept == [("outcome", made["id"])]


@pytest.mark.requirement("AG-35", "AG-28")
def test_what_a_person_creates_belongs_to_the_owner_of_what_it_is_for(small: Company) -> None:
    lead = small.agent("lead")
    made = small.call(small.board, outcomes.create, parent=lead.id, title="Do this")
    assert made["owner_id"] == lead.id
    assert ids(small.call(lead.caller, outcomes.listing, actionable=True)) == [made["id"]]


@pytest.mark.requirement("AG-32", "AG-30", "AG-27")
def test_a_view_shows_why_how_owner_and_history(company: Company) -> None:
    ceo = company.ceo
    first = work(company, ceo.caller, ceo.id, "First reason")
    second = work(company, ceo.caller, ceo.id, "Second reason")
    both = work(company, ceo.caller, first, "For both", parents=[second])
    before = work(company, ceo.caller, ceo.id, "Before it")
    change(company, ceo.caller, both, blocked_by=[before])
    part = work(company, ceo.caller, both, "A part")
    view = company.call(ceo.caller, outcomes.show, outcome=both)
    assert {one["title"] for one in view["parents"]} == {"First reason", "Second reason"}
    assert ids(view["children"]) == [part]
    assert ids(view["blocked_by"]) == [before]
    assert view["owner_id"] == ceo.id
    assert [line["action"] for line in view["history"]] == ["outcome.change", "outcome.create"]


@pytest.mark.requirement("AG-30", "AG-113", "AG-31")
def test_the_history_tells_who_did_what_when_and_why(company: Company, clock: VirtualClock) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    run = company.run(ceo)
    clock.advance(HOUR)
    part = work(company, run.caller, goal, "Part")
    clock.advance(HOUR)
    company.call(run.caller, outcomes.close, outcome=part, rationale="It cannot work.")
    clock.advance(HOUR)
    company.call(company.board, outcomes.reopen, outcome=part, note="Try once more.")
    reopened, closed, created = company.call(ceo.caller, outcomes.show, outcome=part)["history"]
    assert (created["action"], created["by"]) == ("outcome.create", f"agent:{ceo.id}")
    assert (created["run_id"], created["at"]) == (run.id, to_iso(clock.now() - 2 * HOUR))
    assert (closed["action"], closed["why"]) == ("outcome.close", "It cannot work.")
    assert closed["at"] == to_iso(clock.now() - HOUR)
    assert reopened["by"].startswith("user:")
    assert reopened["why"] == "Try once more."


@pytest.mark.requirement("AG-30")
def test_the_history_of_a_mandate_begins_with_its_creation(small: Company) -> None:
    lead = small.agent("lead")
    assert small.call(lead.caller, outcomes.show, outcome=lead.id)["history"][-1]["action"] == (
        "outcome.create"
    )


@pytest.mark.requirement("AG-26", "AG-38", "AG-113", "AG-31")
def test_the_document_tells_state_reason_and_relations(company: Company) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal", description="Prose stays.")
    part = work(company, ceo.caller, goal, "Part")
    before = work(company, ceo.caller, ceo.id, "Before")
    change(company, ceo.caller, goal, blocked_by=[before])
    text = document(company, ceo.caller, goal)
    assert "# Goal" in text
    assert "Status: open" in text
    assert f"Owner: {ceo.id}" in text
    for heading, other in (("Why", ceo.id), ("How", part), ("Waits for", before)):
        assert f"- kb://{other} " in text.partition(f"## {heading}")[2].partition("##")[0]
    company.call(ceo.caller, outcomes.close, outcome=goal, rationale="The market is gone.")
    text = document(company, ceo.caller, goal)
    assert "Status: closed" in text
    assert "Rationale: The market is gone." in text
    assert text.endswith("Prose stays.")


@pytest.mark.requirement("AG-26", "AG-39")
def test_a_document_follows_its_outcome_and_is_written_by_nothing_else(company: Company) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal", description="First.")
    seen, _ = company.read(ceo.caller, goal)
    with pytest.raises(BadInput) as refused:
        company.write(ceo.caller, seen, b"Status: completed")
    assert refused.value.reason == "outcome"
    change(company, ceo.caller, goal, title="Better goal", description="Second.")
    seen, content = company.read(ceo.caller, goal)
    assert content.decode().startswith("# Better goal")
    assert content.decode().endswith("Second.")
    assert seen["description"] == "Better goal"
    assert company.read(ceo.caller, goal, 1)[1] == b"First."


@pytest.mark.requirement("AG-31", "AG-39")
def test_a_document_is_read_by_those_who_may_read_the_outcome(company: Company) -> None:
    goal = work(company, company.ceo.caller, company.ceo.id, "Goal")
    lead = hire(company, company.ceo.caller, goal, "lead")
    peer = company.agent("peer")
    for reader in (company.ceo, lead):
        assert "# Goal" in document(company, reader.caller, goal)
        assert company.call(reader.caller, outcomes.show, outcome=goal)["history"]
        assert company.call(reader.caller, files.history, file=goal)
    with pytest.raises(NotFound):
        document(company, peer.caller, goal)
    assert refusal(company, peer.caller, outcomes.show, outcome=goal) == "not_found"
    assert refusal(company, peer.caller, files.history, file=goal) == "not_found"


def test_an_outcome_is_found_by_the_first_digits_of_its_id(small: Company) -> None:
    ceo = small.ceo
    goal = work(small, ceo.caller, ceo.id, "Goal")
    digits = goal[:23]
    assert small.call(ceo.caller, outcomes.show, outcome=digits)["id"] == goal
    # Named twice is still one reason and one blocker.
    part = work(small, ceo.caller, goal, "Part", parents=[digits], blocked_by=[])
    other = work(small, ceo.caller, goal, "Other", blocked_by=[part, part[:23]])
    assert ids(shown(small, part)["parents"]) == [goal]
    assert ids(shown(small, other)["blocked_by"]) == [part]


@pytest.mark.requirement("AG-29")
def test_open_outcomes_of_an_agent_are_listed_and_filtered(company: Company) -> None:
    lead = company.agent("lead")
    made = [work(company, lead.caller, lead.id, f"Part {n}") for n in range(5)]
    company.call(lead.caller, outcomes.complete, outcome=made[0])
    company.call(lead.caller, outcomes.close, outcome=made[1], rationale="No.")
    listed = company.call(lead.caller, outcomes.listing, status="open")
    assert ids(listed) == sorted([lead.id, *made[2:]])
    assert ids(company.call(lead.caller, outcomes.listing, status="completed")) == [made[0]]
    page = company.call(lead.caller, outcomes.listing, limit=2)
    rest = company.call(lead.caller, outcomes.listing, after=page[-1]["id"])
    assert ids(page) + ids(rest) == sorted([lead.id, *made])
    assert ids(company.call(company.ceo.caller, outcomes.listing, owner="lead")) == sorted(
        [lead.id, *made]
    )
    assert refusal(company, lead.caller, outcomes.listing, owner="ceo") == "not_below_you"
    with pytest.raises(BadInput):
        company.call(lead.caller, outcomes.listing, status="blocked")


@pytest.mark.requirement("AG-29")
def test_what_an_agent_can_work_on_is_found_by_an_index(small: Company) -> None:
    """AG-29: the cost follows the agent's own outcomes, not the company's."""
    sql, constants = statements.ACTIONABLE.compiled(SQLITE)
    bound = {**constants, "owner": small.ceo.id, "now": 0, "limit": 10}
    for name, value in sorted(bound.items(), key=lambda item: -len(item[0])):
        sql = sql.replace(f":{name}", repr(value))
    plan = json.dumps(small.sql(f"EXPLAIN QUERY PLAN {sql}"))
    assert "ix_outcomes_pressing" in plan
    assert "SCAN" not in plan
    assert "TEMP B-TREE" not in plan


# ── changing ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-36")
def test_text_rank_and_relations_are_changed_and_recorded(
    company: Company, clock: VirtualClock
) -> None:
    ceo = company.ceo
    first = work(company, ceo.caller, ceo.id, "First")
    second = work(company, ceo.caller, ceo.id, "Second")
    goal = work(company, ceo.caller, first, "Goal")
    later = to_iso(clock.now() + HOUR)
    changed = change(
        company,
        ceo.caller,
        goal,
        title="Goal!",
        urgent=True,
        important=True,
        deferred_until=later,
        parents=[second],
        blocked_by=[first],
    )
    assert changed["version"] == 2
    view = shown(company, goal)
    assert (view["title"], view["urgent"], view["important"]) == ("Goal!", True, True)
    assert view["deferred_until"] == later
    assert (ids(view["parents"]), ids(view["blocked_by"])) == ([second], [first])
    assert change(company, ceo.caller, goal, deferred_until="")["deferred_until"] is None
    assert change(company, ceo.caller, goal, blocked_by=[])["urgent"]
    assert shown(company, goal)["blocked_by"] == []
    recorded = company.call(company.board, events.listing, company=company.id, limit=3)
    assert [event["action"] for event in recorded] == ["outcome.change"] * 3
    assert recorded[2]["details"]["parents"] == [second]


@pytest.mark.requirement("AG-36")
def test_a_change_needs_the_version_it_was_made_for(company: Company) -> None:
    goal = work(company, company.ceo.caller, company.ceo.id)
    company.call(company.ceo.caller, outcomes.change, outcome=goal, version=1, title="New")
    for stale in (1, 3, "2", None):
        with pytest.raises(Conflict) as conflict:
            company.call(
                company.ceo.caller,
                outcomes.change,
                outcome=goal,
                version=stale,  # type: ignore[arg-type]
                title="Newer",
            )
        assert conflict.value.details["version"] == 2
    assert shown(company, goal)["title"] == "New"


@pytest.mark.requirement("AG-36")
def test_one_of_many_changes_at_once_wins(company: Company) -> None:
    goal = work(company, company.ceo.caller, company.ceo.id)
    answers = company.together(
        [
            company.app.gate(
                company.ceo.caller, outcomes.change, outcome=goal, version=1, title=f"Title {n}"
            )
            for n in range(8)
        ]
    )
    won = [answer for answer in answers if isinstance(answer, dict)]
    assert len(won) == 1
    assert {code(answer) for answer in answers if isinstance(answer, BaseException)} == {"conflict"}
    assert shown(company, goal)["title"] == won[0]["title"]


@pytest.mark.requirement("AG-36")
def test_an_outcome_keeps_at_least_one_reason_unless_it_is_a_mandate(company: Company) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    with pytest.raises(BadInput):
        change(company, ceo.caller, goal, parents=[])
    lead = hire(company, ceo.caller, goal, "lead")
    change(company, ceo.caller, goal, parents=[])
    assert shown(company, goal)["parents"] == []
    assert shown(company, ceo.id)["children"] == []
    change(company, ceo.caller, lead.id, parents=[ceo.id])
    many = [work(company, ceo.caller, ceo.id) for _ in range(MOST_PARENTS + 1)]
    with pytest.raises(BadInput):
        change(company, ceo.caller, goal, parents=many)
    change(company, ceo.caller, goal, parents=many[1:])


@pytest.mark.parametrize("title", ["", "  ", "x" * 201, "a\x00b", "zero​width", None, 7])
def test_a_title_is_one_plain_line(small: Company, title: Any) -> None:
    with pytest.raises(BadInput):
        small.call(small.ceo.caller, outcomes.create, parent=small.ceo.id, title=title)


# ── finishing and reopening ─────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-37", "AG-30")
def test_an_outcome_is_completed_once_its_parts_are(company: Company) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    part = work(company, ceo.caller, goal, "Part")
    blocker = work(company, ceo.caller, ceo.id, "Blocker")
    change(company, ceo.caller, goal, blocked_by=[blocker])
    for waiting in (part, blocker):
        assert refusal(company, ceo.caller, outcomes.complete, outcome=goal) == "conflict"
        company.call(ceo.caller, outcomes.complete, outcome=waiting)
    done = company.call(ceo.caller, outcomes.complete, outcome=goal, note="It stands.")
    assert done["status"] == "completed"
    assert done["verdict"]["note"] == "It stands."
    assert done["finished_at"] is not None
    for verb in (outcomes.complete, outcomes.close):
        more: dict[str, Any] = {} if verb is outcomes.complete else {"rationale": "Again."}
        assert refusal(company, ceo.caller, verb, outcome=goal, **more) == "conflict"
    assert refusal(company, ceo.caller, outcomes.create, parent=goal, title="Late") == "conflict"


@pytest.mark.requirement("AG-38", "AG-111")
def test_closing_takes_a_reason_and_what_was_only_for_it(company: Company) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    other = work(company, ceo.caller, ceo.id, "Other")
    only = work(company, ceo.caller, goal, "Only for the goal")
    below = work(company, ceo.caller, only, "And below")
    shared = work(company, ceo.caller, goal, "Also for the other", parents=[other])
    with_it = work(company, ceo.caller, shared, "Goes on with it")
    for rationale in ("", "   ", None):
        with pytest.raises(BadInput):
            company.call(ceo.caller, outcomes.close, outcome=goal, rationale=rationale)  # type: ignore[arg-type]
    company.call(ceo.caller, outcomes.close, outcome=goal, rationale="Not wanted.")
    status = {one: shown(company, one)["status"] for one in (goal, only, below, shared, with_it)}
    assert status == {
        goal: "closed", only: "closed", below: "closed", shared: "open", with_it: "open",
    }  # fmt: skip
    assert shown(company, below)["history"][0]["why"] == "closed with Goal"
    assert shown(company, below)["verdict"]["note"] == "closed with Goal"


@pytest.mark.requirement("AG-40")
def test_a_dead_end_is_closed_and_replaced(company: Company) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    first = work(company, ceo.caller, goal, "First try")
    company.call(ceo.caller, outcomes.close, outcome=first, rationale="Disproven.")
    second = work(company, ceo.caller, goal, "Second try")
    assert {one["title"]: one["status"] for one in shown(company, goal)["children"]} == {
        "First try": "closed",
        "Second try": "open",
    }
    company.call(ceo.caller, outcomes.complete, outcome=second)
    company.call(ceo.caller, outcomes.complete, outcome=goal)


@pytest.mark.requirement("AG-85", "AG-37")
def test_a_perpetual_outcome_is_never_completed(company: Company) -> None:
    assert shown(company, company.ceo.id)["perpetual"]
    for caller in (company.board, company.ceo.caller):
        with pytest.raises(RemitError):
            company.call(caller, outcomes.complete, outcome=company.ceo.id)
    with pytest.raises(Exception, match=r"(?i)check"):
        company.sql(
            "UPDATE outcomes SET status = 'completed', finished_at = 1 WHERE id = ?",
            company.ceo.id,
        )
    assert shown(company, company.ceo.id)["status"] == "open"


@pytest.mark.requirement("BX-11", "AG-110")
def test_a_verdict_records_who_judged_and_on_what_evidence(company: Company) -> None:
    goal = work(company, company.ceo.caller, company.ceo.id, "Goal")
    lead = hire(company, company.ceo.caller, goal, "lead")
    report = company.file(lead.caller, b"It works.")
    judging = company.run(company.ceo)
    assert refusal(
        company, judging.caller, outcomes.complete, outcome=goal, evidence=[report["id"]]
    ) == ("no_capability")
    company.give(company.board, company.ceo, report, "read")
    done = company.call(
        judging.caller,
        outcomes.complete,
        outcome=goal,
        evidence=[f"kb://{report['id']}", report["id"]],
        note="Seen.",
    )
    verdict = done["verdict"]
    assert verdict["by"] == f"agent:{company.ceo.id}"
    assert verdict["run_id"] == judging.id
    seen = {"id": report["id"], "version": 1, "hash": report["hash"]}
    assert verdict["evidence"] == [seen]
    company.write(company.board, report, b"It never worked.")
    assert shown(company, goal)["verdict"] == verdict
    text = document(company, company.ceo.caller, goal)
    assert f"kb://{report['id']} version 1 ({report['hash']})" in text
    recorded = company.call(company.board, events.listing, company=company.id, limit=20)
    judged = next(event for event in recorded if event["action"] == "outcome.complete")
    assert judged["details"]["evidence"] == verdict["evidence"]


@pytest.mark.requirement("BX-11", "AG-102", "AG-110")
def test_nobody_completes_their_own_mandate(company: Company) -> None:
    lead = company.agent("lead")
    company.call(
        company.board,
        grants.give,
        company=company.id,
        to="lead",
        resource=f"outcome:{lead.id}",
        level="write",
    )
    for verb, more in (
        (outcomes.complete, {}),
        (outcomes.close, {"rationale": "Done with it."}),
        (outcomes.reopen, {}),
    ):
        assert refusal(company, lead.caller, verb, outcome=lead.id, **more) == "own_mandate"
    company.call(company.ceo.caller, outcomes.complete, outcome=lead.id)


def test_an_outcome_is_reopened_by_whoever_could_judge_it(company: Company) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    lead = hire(company, ceo.caller, goal, "lead")
    part = work(company, lead.caller, goal, "Part")
    inner = work(company, lead.caller, part, "Inner")
    company.call(lead.caller, outcomes.complete, outcome=inner)
    company.call(lead.caller, outcomes.complete, outcome=part)
    assert refusal(company, ceo.caller, outcomes.reopen, outcome=part) == "delegated_away"
    assert refusal(company, lead.caller, outcomes.reopen, outcome=inner) == "conflict"
    reopened = company.call(lead.caller, outcomes.reopen, outcome=part, note="Not yet.")
    assert (reopened["status"], reopened["verdict"]) == ("open", None)
    assert refusal(company, lead.caller, outcomes.reopen, outcome=part) == "conflict"
    company.call(lead.caller, outcomes.reopen, outcome=inner)
    assert shown(company, part)["why_not_actionable"] is not None


@pytest.mark.requirement("FX-02")
def test_taking_an_acceptance_back_brings_the_agents_back_that_it_ended(company: Company) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    lead = hire(company, ceo.caller, goal, "lead")
    part = work(company, lead.caller, goal, "Part")
    dev = hire(company, lead.caller, part, "dev")
    rest = company.agent("rest", "lead")
    company.call(company.board, agents.pause, agent=rest.id)
    plan = company.file(ceo.caller, b"A plan")
    company.give(ceo.caller, lead, plan, "read")
    company.give(lead.caller, dev, plan, "read", scope=part)
    assert {one["name"] for one in shown(company, goal)["would_end"]} == {"lead", "dev", "rest"}
    done = company.call(ceo.caller, outcomes.complete, outcome=goal)
    assert {one["name"] for one in done["agents_ended"]} == {"lead", "dev", "rest"}
    undone = company.call(ceo.caller, outcomes.reopen, outcome=goal, note="Not yet.")
    assert {one["name"] for one in undone["agents_restored"]} == {"lead", "dev", "rest"}
    assert undone["not_restored"] == []
    for one, status in ((lead, "idle"), (dev, "idle"), (rest, "paused")):
        assert company.call(company.board, agents.show, agent=one.id)["status"] == status
        view = shown(company, one.id)
        assert (view["status"], view["owner_id"], view["delegated"]) == ("open", one.id, True)
    # The keys stay dead; what they held came back, also what was passed on.
    with pytest.raises(Unauthenticated):
        company.read(dev.caller, plan["id"])
    for one in (lead, dev):
        again = member(company, {"id": one.id, "name": one.name})
        assert company.read(again.caller, plan["id"])[1] == b"A plan"
    again = member(company, undone["agents_restored"][0])
    told = [one["subject"] for one in mailing.look(company, again)]
    assert "Reopened: Goal" in told
    # And once more: it ends them again, and can be taken back again.
    company.call(ceo.caller, outcomes.complete, outcome=goal)
    again_undone = company.call(ceo.caller, outcomes.reopen, outcome=goal)
    assert len(again_undone["agents_restored"]) == 3


@pytest.mark.requirement("FX-02")
def test_what_ended_with_an_agent_comes_back_with_it_exactly_once(
    company: Company, clock: VirtualClock
) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    lead = hire(company, ceo.caller, goal, "lead")
    mailing.send(company, company.board, "agent:lead", "Unread")
    ignored = mailing.send(company, company.board, "agent:lead", "Nobody misses it")
    bind(company, lead, "https://chat.example.org/hook")
    mailing.send(company, lead.caller, "channel:webhook:room", "Hello")
    for text in ("Count.", "Measure."):
        mailing.send(company, lead.caller, "agent:background", text, at_most_once=True)
    (begun, _) = company.call(as_system(), job_queue.ready)
    company.call(as_system(), job_queue.claim, job=begun, worker="w")
    weekly = {"body": "Weekly", "cron": "0 9 * * 1"}
    soon = {"body": "Once", "at": to_iso(clock.now() + HOUR)}
    for plan in (weekly, soon):
        company.call(lead.caller, schedules.add, **plan)
    asked = company.call(lead.caller, questions.ask, question="Which colour?")

    def kept() -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        found["jobs"] = sorted(company.sql("SELECT status, id FROM jobs"))
        found["schedules"] = sorted(company.sql("SELECT id, status, next_at FROM schedules"))
        found["bindings"] = company.sql("SELECT id, removed_at FROM agent_bindings")
        found["unsent"] = company.sql("SELECT status, attempt FROM channel_deliveries")
        found["waits"] = company.sql("SELECT kind, subject_id, awaited_agent_id FROM waits")
        found["letters"] = [
            one["subject"] or one["body"] for one in mailing.look(company, member_of(lead))
        ]
        return found

    def member_of(one: Member) -> Member:
        return member(company, {"id": one.id, "name": one.name})

    before = kept()
    company.call(ceo.caller, outcomes.complete, outcome=goal)
    company.call(company.board, pending_items.discard, message=ignored["id"])
    clock.advance(2 * HOUR)
    undone = company.call(ceo.caller, outcomes.reopen, outcome=goal)
    assert undone["things_restored"] == {
        "bindings": 1, "unsent": 1, "letters": 1, "schedules": 2, "jobs": 1, "waits": 1,
    }  # fmt: skip
    (lost,) = undone["stays_ended"]
    assert lost.endswith("it had been begun and is for once.")
    after = kept()
    assert [status for status, _ in after["jobs"]] == ["cancelled", "queued"]
    assert after["letters"] == ["Unread", "Reopened: Goal"]
    for what in ("schedules", "bindings", "unsent", "waits"):
        assert after[what] == before[what], what
    (wait,) = after["waits"]
    assert wait[:2] == ("question", asked["id"])
    # What was missed is sent once.
    mailing.tick(company)
    assert kept()["letters"].count("Once") == 1
    # What came back once is not there twice after the next time.
    company.call(ceo.caller, outcomes.complete, outcome=goal)
    again = company.call(ceo.caller, outcomes.reopen, outcome=goal)
    assert again["things_restored"]["bindings"] == again["things_restored"]["schedules"] == 1
    assert len(company.sql("SELECT id FROM agent_bindings")) == 1
    assert kept()["letters"].count("Unread") == 1


@pytest.mark.requirement("FX-02")
def test_what_was_raised_with_a_boss_that_ends_too_is_nobody_elses_and_comes_back(
    company: Company,
) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    lead = hire(company, ceo.caller, goal, "lead")
    dev = hire(company, lead.caller, work(company, lead.caller, goal, "Part"), "dev")
    asked = company.call(dev.caller, questions.ask, question="Which colour?")
    company.call(dev.caller, questions.ask, question="Why?", to="board")
    mailing.look(company, ceo)
    company.call(company.board, outcomes.complete, outcome=goal)
    assert [one["subject"] for one in mailing.look(company, ceo)] == ["Completed: Goal"]
    assert mailing.unread(company, company.board) == []
    undone = company.call(company.board, outcomes.reopen, outcome=goal)
    assert undone["things_restored"] == {"waits": 2}
    waiting = company.sql(
        "SELECT subject_id, awaited_agent_id FROM waits WHERE agent_id = ?", dev.id
    )
    assert (asked["id"], lead.id) in waiting
    again = member(company, {"id": lead.id, "name": "lead"})
    question, _ = mailing.look(company, again)
    assert "Which colour?" in question["body"]
    mailing.send(company, again.caller, "agent:dev", "Red", reply_to=question["id"])
    (board_is_asked,) = mailing.unread(company, company.board)
    assert board_is_asked["subject"] == "Question: Why?"
    assert len(company.sql("SELECT id FROM waits")) == 1


@pytest.mark.requirement("FX-02")
def test_whoever_cannot_come_back_is_named_and_the_mandate_goes_to_its_judge(
    company: Company,
) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    lead = hire(company, ceo.caller, goal, "lead")
    company.call(ceo.caller, outcomes.complete, outcome=goal)
    company.agent("lead")
    undone = company.call(ceo.caller, outcomes.reopen, outcome=goal)
    assert undone["agents_restored"] == []
    assert undone["not_restored"] == [{"name": "lead", "why": "another agent has its name by now"}]
    view = shown(company, goal)
    assert (view["owner_id"], view["delegated"]) == (ceo.id, False)
    assert company.call(company.board, agents.show, agent=lead.id)["status"] == "terminated"
    work(company, ceo.caller, goal, "The boss works on it")
    other = work(company, ceo.caller, ceo.id, "Other")
    gone = hire(company, ceo.caller, other, "gone")
    company.call(ceo.caller, outcomes.complete, outcome=other)
    company.call(company.board, termination.purge, agent=gone.id)
    undone = company.call(ceo.caller, outcomes.reopen, outcome=other)
    assert undone["not_restored"] == [{"name": "gone", "why": "it was purged since"}]


@pytest.mark.requirement("FX-02")
def test_waits_come_back_as_far_as_somebody_is_left_to_end_them(small: Company) -> None:
    ceo = small.ceo
    goal = work(small, ceo.caller, ceo.id, "Goal")
    lead = hire(small, ceo.caller, goal, "lead")
    ask(small, lead.caller, "May I buy it?")
    leaver, stayer = small.agent("leaver"), small.agent("stayer")
    small.call(small.board, companies.change, company=small.id, messaging="open")
    for to in (leaver, stayer):
        mailing.send(small, lead.caller, f"agent:{to.name}", "Which colour?", expects_reply=True)
    assert len(small.sql("SELECT id FROM waits")) == 3
    small.call(ceo.caller, outcomes.complete, outcome=goal)
    assert small.sql("SELECT id FROM waits") == []
    small.call(small.board, agents.terminate, agent=leaver.id)
    undone = small.call(ceo.caller, outcomes.reopen, outcome=goal)
    assert undone["things_restored"]["waits"] == 1
    assert small.sql("SELECT kind, awaited_agent_id FROM waits") == [("reply", stayer.id)]
    assert undone["stays_ended"] == ["lead: 1 request for approval stays withdrawn."]


@pytest.mark.requirement("FX-02")
def test_a_question_that_was_passed_on_to_somebody_who_left_meanwhile_goes_further_up(
    small: Company, clock: VirtualClock
) -> None:
    head = small.agent("head", adapter_type="scripted", perpetual=True)
    goal = work(small, head.caller, head.id, "Goal")
    lead = hire(small, head.caller, goal, "lead")
    dev = hire(small, lead.caller, work(small, lead.caller, goal, "Part"), "dev")
    asked = small.call(dev.caller, questions.ask, question="Which colour?")
    ignored(small, clock, lead, "a question of dev")
    assert small.sql("SELECT awaited_agent_id FROM waits") == [(head.id,)]
    small.call(
        small.board,
        reorganise.reorganise,
        company=small.id,
        operations=[{"op": "move", "agent": "lead", "to": "ceo"}],
    )
    small.call(small.board, outcomes.complete, outcome=goal)
    small.call(small.board, agents.terminate, agent="head")
    mailing.look(small, small.ceo)
    small.call(small.board, outcomes.reopen, outcome=goal)
    assert small.sql("SELECT subject_id, awaited_agent_id FROM waits") == [
        (asked["id"], small.ceo.id)
    ]
    told = [one for one in mailing.look(small, small.ceo) if one["question_id"] == asked["id"]]
    assert len(told) == 1
    assert "head works here no more" in told[0]["body"]


@pytest.mark.requirement("FX-02")
def test_a_right_that_could_not_be_given_now_does_not_come_back(small: Company) -> None:
    ceo = small.ceo
    goal = work(small, ceo.caller, ceo.id, "Goal")
    lead = hire(small, ceo.caller, goal, "lead")
    plan = small.file(ceo.caller, b"A plan")
    small.give(ceo.caller, lead, plan, "read")
    small.call(ceo.caller, outcomes.complete, outcome=goal)
    small.give(small.board, ceo, plan, "read", mode="deny")
    undone = small.call(ceo.caller, outcomes.reopen, outcome=goal)
    again = member(small, undone["agents_restored"][0])
    with pytest.raises(Refused):
        small.read(again.caller, plan["id"])


@pytest.mark.requirement("FX-02")
def test_a_hire_that_nobody_had_approved_does_not_come_back(small: Company) -> None:
    ceo = small.ceo
    goal = work(small, ceo.caller, ceo.id, "Goal")
    lead = hire(small, ceo.caller, goal, "lead")
    small.call(
        small.board,
        companies.change,
        company=small.id,
        require_board_approval_for_new_agents=True,
    )
    hopeful = small.call(
        lead.caller,
        delegation.delegate,
        outcome=work(small, lead.caller, goal, "Part"),
        hire={"name": "hopeful"},
    )["agent"]["id"]
    assert small.call(small.board, agents.show, agent=hopeful)["status"] == "pending_approval"
    small.call(ceo.caller, outcomes.complete, outcome=goal)
    undone = small.call(ceo.caller, outcomes.reopen, outcome=goal)
    assert [one["name"] for one in undone["agents_restored"]] == ["lead"]
    assert undone["not_restored"] == []
    assert small.call(small.board, agents.show, agent=hopeful)["status"] == "terminated"


def test_a_hire_that_was_deleted_meanwhile_does_not_hold_up_a_reopening(company: Company) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    lead = hire(company, ceo.caller, goal, "lead")
    setting: Any = {"company": company.id, "require_board_approval_for_new_agents": True}
    company.call(company.board, companies.change, **setting)
    asked = company.call(
        company.board, hiring.hire, company=company.id, reports_to=lead.id, name="hopeful"
    )
    company.call(ceo.caller, outcomes.complete, outcome=goal)
    company.call(company.board, approvals.delete_agent, approval=asked["approval"]["id"])
    undone = company.call(ceo.caller, outcomes.reopen, outcome=goal)
    assert [one["name"] for one in undone["agents_restored"]] == ["lead"]
    assert shown(company, goal)["status"] == "open"


def test_what_was_given_up_is_reopened_without_the_agent_that_left(company: Company) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    lead = hire(company, ceo.caller, goal, "lead")
    company.call(ceo.caller, outcomes.close, outcome=goal, rationale="Not wanted.")
    company.call(ceo.caller, outcomes.reopen, outcome=goal)
    assert shown(company, goal)["owner_id"] == ceo.id
    assert company.call(company.board, agents.show, agent=lead.id)["status"] == "terminated"


def test_a_part_that_was_accepted_before_keeps_its_agent_ended(company: Company) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    lead = hire(company, ceo.caller, goal, "lead")
    part = work(company, lead.caller, goal, "Part")
    dev = hire(company, lead.caller, part, "dev")
    company.call(lead.caller, outcomes.complete, outcome=part)
    company.call(ceo.caller, outcomes.complete, outcome=goal)
    undone = company.call(company.board, outcomes.reopen, outcome=goal)
    assert [one["id"] for one in undone["agents_restored"]] == [lead.id]
    assert shown(company, part)["status"] == "completed"
    undone = company.call(company.board, outcomes.reopen, outcome=part)
    assert [one["id"] for one in undone["agents_restored"]] == [dev.id]


def test_each_outcome_says_in_a_word_how_it_stands(small: Company, clock: VirtualClock) -> None:
    ceo = small.ceo
    made = {
        name: work(small, ceo.caller, ceo.id, name)
        for name in ("done", "given up", "split", "first", "second", "later", "ready")
    }
    made["part"] = work(small, ceo.caller, made["split"], "part")
    small.call(ceo.caller, outcomes.complete, outcome=made["done"])
    small.call(ceo.caller, outcomes.close, outcome=made["given up"], rationale="Not wanted.")
    change(small, ceo.caller, made["second"], blocked_by=[made["first"]])
    change(small, ceo.caller, made["later"], deferred_until=to_iso(clock.now() + HOUR))
    look: Any = {"company": small.id, "outcomes": [*made.values(), ceo.id]}
    states = small.call(small.board, outcome_tree.states, **look)
    assert {name: states[outcome] for name, outcome in made.items()} == {
        "done": "completed",
        "given up": "closed",
        "split": "split",
        "first": "ready",
        "second": "blocked",
        "later": "deferred",
        "ready": "ready",
        "part": "ready",
    }
    assert states[ceo.id] == "ongoing"
    clock.advance(HOUR)
    assert small.call(small.board, outcome_tree.states, **look)[made["later"]] == "ready"
    refused = refusal(
        small, ceo.caller, outcomes.change, outcome=made["done"], version=2, title="Again"
    )
    assert refused == "conflict"


# ── what can be worked on ───────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-29")
def test_an_outcome_can_be_worked_on_exactly_when_nothing_stands_in_its_way(
    company: Company, clock: VirtualClock
) -> None:
    ceo = company.ceo

    def state(outcome: str) -> tuple[bool, str | None]:
        view = shown(company, outcome)
        listed = outcome in ids(company.call(ceo.caller, outcomes.listing, actionable=True))
        assert listed is (view["actionable"] and view["owner_id"] == ceo.id)
        return view["actionable"], view["why_not_actionable"]

    assert state(ceo.id) == (False, "it is perpetual; work on what is below it")
    goal = work(company, ceo.caller, ceo.id, "Goal")
    assert state(goal) == (True, None)
    part = work(company, ceo.caller, goal, "Part")
    assert state(goal) == (False, "it waits for 1 open outcome below it or before it")
    company.call(ceo.caller, outcomes.complete, outcome=part)
    assert state(goal) == (True, None)
    blocker = work(company, ceo.caller, ceo.id, "Blocker")
    change(company, ceo.caller, goal, blocked_by=[blocker])
    assert state(goal)[0] is False
    company.call(ceo.caller, outcomes.close, outcome=blocker, rationale="Not needed.")
    assert state(goal) == (True, None)
    company.call(ceo.caller, outcomes.reopen, outcome=blocker)
    assert state(goal)[0] is False
    change(company, ceo.caller, goal, blocked_by=[])
    change(company, ceo.caller, goal, deferred_until=to_iso(clock.now() + HOUR))
    assert state(goal) == (False, "it is deferred to a later time")
    clock.advance(HOUR - 1)
    assert state(goal)[0] is False
    clock.advance(1)
    assert state(goal) == (True, None)
    company.call(ceo.caller, outcomes.complete, outcome=goal)
    assert state(goal) == (False, "it is completed")


@pytest.mark.requirement("AG-29", "AG-70")
def test_what_is_delegated_is_worked_on_by_its_agent_and_not_by_the_delegator(
    company: Company,
) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    assert ids(company.call(ceo.caller, outcomes.listing, actionable=True)) == [goal]
    lead = hire(company, ceo.caller, goal, "lead")
    assert company.call(ceo.caller, outcomes.listing, actionable=True) == []
    # A mandate without parts is worked on by its agent.
    assert ids(company.call(lead.caller, outcomes.listing, actionable=True)) == [goal]
    part = work(company, lead.caller, goal, "Part")
    assert ids(company.call(lead.caller, outcomes.listing, actionable=True)) == [part]


def test_the_important_comes_before_the_urgent(company: Company) -> None:
    ceo = company.ceo
    made = {
        (urgent, important): work(company, ceo.caller, ceo.id, urgent=urgent, important=important)
        for urgent, important in itertools.product((False, True), repeat=2)
    }
    assert ids(company.call(ceo.caller, outcomes.listing, actionable=True)) == [
        made[True, True],
        made[False, True],
        made[True, False],
        made[False, False],
    ]


# ── walks ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-33", "AG-27")
def test_every_chain_of_reasons_is_shown(company: Company) -> None:
    ceo = company.ceo
    left = work(company, ceo.caller, ceo.id, "Left")
    right = work(company, ceo.caller, ceo.id, "Right")
    middle = work(company, ceo.caller, left, "Middle", parents=[right, ceo.id])
    leaf = work(company, ceo.caller, middle, "Leaf")
    found = company.call(ceo.caller, outcome_walks.ancestors, outcome=leaf)
    assert sorted(found["chains"]) == sorted(
        [
            [leaf, middle, left, ceo.id],
            [leaf, middle, right, ceo.id],
            [leaf, middle, ceo.id],
        ]
    )
    assert not found["more_chains"]
    assert set(ids(found["outcomes"])) == {leaf, middle, left, right, ceo.id}
    assert {(edge["parent"], edge["child"]) for edge in found["edges"]} == {
        (middle, leaf), (left, middle), (right, middle), (ceo.id, middle),
        (ceo.id, left), (ceo.id, right),
    }  # fmt: skip


@pytest.mark.requirement("AG-33", "AG-34")
def test_sixteen_stacked_diamonds_show_200_chains_and_say_that_there_are_more(
    company: Company,
) -> None:
    ceo = company.ceo
    top = work(company, ceo.caller, ceo.id, "Top")
    for _ in range(16):
        left = work(company, ceo.caller, top)
        right = work(company, ceo.caller, top)
        top = work(company, ceo.caller, left, parents=[right])
    found = company.call(ceo.caller, outcome_walks.ancestors, outcome=top)
    assert len(found["chains"]) == MOST_CHAINS == 200
    assert found["more_chains"] is True
    assert len({tuple(chain) for chain in found["chains"]}) == 200
    assert {len(chain) for chain in found["chains"]} == {34}
    assert len(found["outcomes"]) == 50
    assert len(found["edges"]) == 65
    below = company.call(ceo.caller, outcome_walks.subtree, outcome=ceo.id)
    nodes = [below]
    seen = 0
    while nodes:
        node = nodes.pop()
        seen += "elsewhere" not in node
        nodes += node.get("children", [])
    assert seen == 50


@pytest.mark.requirement("AG-34")
def test_a_subtree_is_shown_down_to_a_depth(company: Company) -> None:
    ceo = company.ceo
    first = work(company, ceo.caller, ceo.id, "First")
    second = work(company, ceo.caller, first, "Second")
    third = work(company, ceo.caller, second, "Third", parents=[first])
    whole = company.call(ceo.caller, outcome_walks.subtree, outcome=ceo.id)
    assert not whole["cut_off"]
    (one,) = whole["children"]
    assert {child["id"] for child in one["children"]} == {second, third}
    two = next(child for child in one["children"] if child["id"] == second)
    assert [child["elsewhere"] for child in two["children"]] == [True]
    assert (
        company.call(ceo.caller, outcome_walks.subtree, outcome=ceo.id, depth=0)["children"] == []
    )
    shallow = company.call(ceo.caller, outcome_walks.subtree, outcome=ceo.id, depth=1)
    assert ids(shallow["children"]) == [first]
    assert shallow["children"][0]["children"] == []
    for depth in (-1, 100_000):
        with pytest.raises(BadInput):
            company.call(ceo.caller, outcome_walks.subtree, outcome=ceo.id, depth=depth)
    few = company.call(ceo.caller, outcome_walks.subtree, outcome=ceo.id, most=2)
    assert few["cut_off"]
    assert third not in json.dumps(few)


@pytest.mark.requirement("AG-39", "AG-104")
def test_a_walk_goes_no_further_than_the_caller_may_read(company: Company) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    mine = hire(company, ceo.caller, work(company, ceo.caller, goal, "Mine"), "mine")
    theirs = hire(company, ceo.caller, work(company, ceo.caller, goal, "Theirs"), "theirs")
    secret = work(company, theirs.caller, theirs.id, "Secret")
    # The goal is a reason for my work, so I read it, and see that it has another part.
    seen = company.call(mine.caller, outcome_walks.subtree, outcome=goal)
    assert {child["id"]: child.get("hidden", False) for child in seen["children"]} == {
        mine.id: False,
        theirs.id: True,
    }
    assert secret not in json.dumps(seen)
    assert secret in json.dumps(company.call(ceo.caller, outcome_walks.subtree, outcome=goal))
    # Upward: a reason that only somebody else has is the end of what I see.
    part = work(company, mine.caller, mine.id, "Part")
    change(company, company.board, part, parents=[mine.id, secret])
    above = company.call(mine.caller, outcome_walks.ancestors, outcome=part)
    assert theirs.id not in json.dumps(above["chains"])
    assert [part, secret] in above["chains"]
    assert [part, mine.id, goal, ceo.id] in above["chains"]


def test_observers_look_and_people_with_a_part_see_that_part(company: Company) -> None:
    lead, peer = company.agent("lead"), company.agent("peer")
    inside = work(company, lead.caller, lead.id, "Inside")
    outside = work(company, peer.caller, peer.id, "Outside")
    observer = company.user("observer", role="observer")
    partial = company.user("partial", scope="lead")
    assert company.call(observer, outcomes.show, outcome=outside)["title"] == "Outside"
    assert refusal(company, observer, outcomes.create, parent=lead.id, title="No") == "observer"
    assert len(company.call(observer, outcomes.listing, company=company.id)) == 5
    assert ids(company.call(observer, outcomes.listing, owner="peer")) == [peer.id, outside]
    assert company.call(partial, outcomes.show, outcome=inside)["title"] == "Inside"
    company.call(partial, outcomes.create, parent=inside, title="Mine to say")
    assert refusal(company, partial, outcomes.show, outcome=outside) == "not_found"
    assert refusal(company, partial, outcomes.create, parent=outside, title="No") == "not_found"
    with pytest.raises(RemitError):
        company.call(partial, outcomes.listing, company=company.id)
    assert inside in ids(company.call(partial, outcomes.listing, owner="lead"))
    assert "Outside" not in json.dumps(
        company.call(partial, outcome_walks.ancestors, outcome=inside)["outcomes"]
    )


def test_one_call_works_in_one_company(company: Company) -> None:
    """A person with a part in two companies cannot tie them together."""
    there = company.second_company()
    company.call(company.board, users.add, company=company.id, name="foreigner", role="observer")
    ours = work(company, company.ceo.caller, company.ceo.id, "Ours")
    theirs = work(company, there.board, there.agent.id, "Theirs")
    foreign = company.wait(
        company.app.library.create(there.board, b"x", company=there.id, description="theirs")
    )["id"]
    both = there.board
    for arguments in (
        {"parent": theirs, "parents": [ours], "title": "Both"},
        {"parent": theirs, "blocked_by": [ours], "title": "Both"},
    ):
        assert refusal(company, both, outcomes.create, **arguments) == "not_found"
    seen = company.call(both, outcomes.show, outcome=theirs)["version"]
    for what in ({"parents": [ours]}, {"blocked_by": [ours]}):
        assert (
            refusal(company, both, outcomes.change, outcome=theirs, version=seen, **what)
            == "not_found"
        )
    assert refusal(company, company.board, outcomes.complete, outcome=ours, evidence=[foreign]) == (
        "not_found"
    )
    assert shown(company, ours)["status"] == "open"


# ── cycles ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-27")
@pytest.mark.parametrize("back", ["parents", "blocked_by"])
@pytest.mark.parametrize("kinds", list(itertools.product(("part", "blocker"), repeat=2)))
def test_nothing_waits_for_itself(small: Company, kinds: tuple[str, str], back: str) -> None:
    """Over parts, blockers and every mix of both, at any distance."""
    ceo = small.ceo
    first = work(small, ceo.caller, ceo.id, "0")
    chain = [first]
    for kind in kinds:
        if kind == "part":
            chain.append(work(small, ceo.caller, chain[-1]))
        else:
            chain.append(work(small, ceo.caller, ceo.id))
            change(small, ceo.caller, chain[-2], blocked_by=[chain[-1]])
    # Each depends on the next one; none can come to depend on itself or on one before it.
    for whole, part in itertools.combinations_with_replacement(chain, 2):
        if back == "parents":
            target, wanted = whole, part
        else:
            target, wanted = part, whole
        assert code_of_change(small, target, **{back: [wanted]}) == "cycle"


@pytest.mark.requirement("AG-27")
def test_two_changes_that_are_fine_alone_never_make_a_cycle_together(company: Company) -> None:
    """50 rounds: each of two outcomes comes to wait for the other, at the same time."""
    ceo = company.ceo
    kinds = list(itertools.product(("parents", "blocked_by"), repeat=2))
    for number in range(50):
        one, two = (work(company, ceo.caller, ceo.id) for _ in range(2))
        first, second = kinds[number % 4]

        def wish(kind: str, outcome: str, other: str) -> Any:
            """`other` comes to depend on `outcome`."""
            target, what = (outcome, [other]) if kind == "parents" else (other, [outcome])
            relations: dict[str, Any] = {kind: what}
            return company.app.gate(
                ceo.caller, outcomes.change, outcome=target, version=1, **relations
            )

        answers = company.together([wish(first, one, two), wish(second, two, one)])
        lost = [answer for answer in answers if isinstance(answer, BaseException)]
        assert len(lost) == 1
        assert code(lost[0]) in ("cycle", "conflict")
    assert problems(company) == []


@pytest.mark.requirement("AG-27", "HH-20")
def test_a_cycle_written_around_remit_hangs_nothing(database_url: str, tmp_path: Path) -> None:
    with opened(database_url, tmp_path / "home") as company:
        ceo = company.ceo
        goal = work(company, ceo.caller, ceo.id, "Goal")
        part = work(company, ceo.caller, goal, "Part")
        inner = work(company, ceo.caller, part, "Inner")
        company.sql(
            "INSERT INTO outcome_edges (company_id, parent_id, child_id) VALUES (?, ?, ?)",
            company.id,
            inner,
            goal,
        )
        company.sql("UPDATE outcomes SET open_prereqs = 1 WHERE id = ?", inner)
        assert company.call(ceo.caller, outcome_walks.ancestors, outcome=inner)["chains"]
        assert company.call(ceo.caller, outcome_walks.subtree, outcome=goal)["children"]
        work(company, ceo.caller, inner, "More", parents=[goal])
        lead = hire(company, ceo.caller, part, "lead")
        assert shown(company, inner)["owner_id"] == lead.id
        company.call(ceo.caller, outcomes.close, outcome=part, rationale="A mess.")
        assert shown(company, part)["status"] == "closed"
        assert company.call(company.board, events.verify, company=company.id)["ok"]


# ── many ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_long_braid_is_closed_without_delay(small: Company) -> None:
    """Every part hangs below the two before it; there are more ways through it than atoms."""
    ceo = small.ceo
    top = work(small, ceo.caller, ceo.id, "Top")
    braid = [top, work(small, ceo.caller, top)]
    for _ in range(400):
        braid.append(work(small, ceo.caller, braid[-1], parents=[braid[-2]]))
    closed = small.call(ceo.caller, outcomes.close, outcome=top, rationale="Enough.")
    assert closed["status"] == "closed"
    assert small.sql("SELECT count(*) FROM outcomes WHERE status = 'open'") == [(1,)]


def test_refused_operations_leave_the_graph_alone(company: Company) -> None:
    lead = company.agent("lead")
    part = work(company, lead.caller, lead.id, "Part")
    peer = company.agent("peer")
    with pytest.raises(Refused):
        company.call(company.ceo.caller, outcomes.create, parent=part, title="Reaching in")
    with pytest.raises(NotFound):
        company.call(peer.caller, outcomes.create, parent=part, title="Reaching over")
    assert shown(company, part)["children"] == []
