"""The company as it was: who held what, who reported to whom, what a file said."""

from typing import Any

import pytest

from remit.clock import HOUR, MINUTE, to_iso
from remit.errors import BadInput, NotFound
from remit.services.organisation import agents, reorganise
from remit.services.record import events
from remit.services.rights import grants
from remit.services.work import delegation, outcomes
from remit.testing.clock import VirtualClock
from tests.company import Company, Member
from tests.mailing import send
from tests.organisation import change, hire, refusal, work


def tick(clock: VirtualClock) -> str:
    """An hour passes; answers the moment in between."""
    clock.advance(HOUR // 2)
    between = to_iso(clock.now())
    clock.advance(HOUR // 2)
    return between


def org(company: Company, at: str) -> dict[str, str | None]:
    found = company.call(company.board, events.org_at, company=company.id, at=at)
    return {agent["name"]: agent["reports_to"] for agent in found}


def held(company: Company, at: str, agent: str | None = None) -> set[tuple[str, str]]:
    found = company.call(
        company.board, events.grants_at, company=company.id, at=at, agent=agent, limit=1000
    )
    return {(grant["resource"], grant["level"]) for grant in found if grant["scope"]}


@pytest.mark.requirement("BX-04", "HH-01")
def test_who_reported_to_whom_at_any_time(company: Company, clock: VirtualClock) -> None:
    before_all = to_iso(clock.now() - MINUTE)
    start = tick(clock)
    lead, peer = company.agent("lead"), company.agent("peer")
    dev = company.agent("dev", "lead")
    hired = tick(clock)
    ops: list[list[dict[str, Any]]] = [
        [{"op": "move", "agent": "dev", "to": "peer"}],
        [{"op": "insert_layer", "agents": ["lead", "peer"], "name": "layer"}],
        [{"op": "remove_layer", "agent": "peer"}],
    ]
    done, moments = [], []
    for operations in ops:
        done.append(
            company.call(
                company.board, reorganise.reorganise, company=company.id, operations=operations
            )
        )
        moments.append(tick(clock))
    layer = company.call(company.board, agents.show, agent="layer")["id"]
    company.call(company.board, reorganise.undo, company=company.id, event=done[-1]["event_id"])
    undone = tick(clock)
    company.call(company.board, agents.terminate, agent=dev.id)
    gone = tick(clock)
    ceo = company.ceo.id
    assert org(company, before_all) == {}
    assert org(company, start) == {"ceo": None}
    assert org(company, hired) == {"ceo": None, "lead": ceo, "peer": ceo, "dev": lead.id}
    assert org(company, moments[0]) == {"ceo": None, "lead": ceo, "peer": ceo, "dev": peer.id}
    layered = {"ceo": None, "layer": ceo, "lead": layer, "peer": layer, "dev": peer.id}
    assert org(company, moments[1]) == layered
    assert org(company, moments[2]) == {"ceo": None, "layer": ceo, "lead": layer, "dev": layer}
    assert org(company, undone) == layered
    assert org(company, gone) == {k: v for k, v in layered.items() if k != "dev"}


@pytest.mark.requirement("BX-04")
def test_who_held_what_at_any_time(company: Company, clock: VirtualClock) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    paper = company.file(ceo.caller)
    resource = f"kb_file:{paper['id']}"
    lead = hire(company, ceo.caller, goal, "lead")
    nothing = tick(clock)
    given = company.give(ceo.caller, lead, paper, "write")
    until = company.give(ceo.caller, lead, paper, "read", expires_at=to_iso(clock.now() + 2 * HOUR))
    both = tick(clock)
    company.call(ceo.caller, grants.revoke, grant=given["id"])
    one = tick(clock)
    expired = tick(clock)
    company.give(ceo.caller, lead, paper, "write")
    again = tick(clock)
    company.call(ceo.caller, delegation.reclaim, outcome=goal, reason="Back.")
    gone = tick(clock)
    assert until["expires_at"] is not None
    assert held(company, nothing, "lead") == set()
    assert held(company, both, "lead") == {(resource, "write"), (resource, "read")}
    assert held(company, one, "lead") == {(resource, "read")}
    assert held(company, expired, "lead") == set()
    assert held(company, again, "lead") == {(resource, "write")}
    # By name also of somebody who left, and of everybody.
    assert held(company, gone, "lead") == held(company, gone) == set()
    assert held(company, both) == {(resource, "write"), (resource, "read")}


@pytest.mark.requirement("BX-04", "BX-08")
def test_an_undone_reorganisation_does_not_rewrite_who_held_what(
    company: Company, clock: VirtualClock
) -> None:
    lead = company.agent("lead")
    paper = company.file(company.board)
    company.give(company.board, lead, paper, "read")
    right = {(f"kb_file:{paper['id']}", "read")}
    before = tick(clock)
    done = company.call(
        company.board,
        reorganise.reorganise,
        company=company.id,
        operations=[{"op": "remove_layer", "agent": "lead"}],
    )
    without = tick(clock)
    company.call(company.board, reorganise.undo, company=company.id, event=done["event_id"])
    after = tick(clock)
    assert [held(company, at, "lead") for at in (before, without, after)] == [right, set(), right]


@pytest.mark.requirement("BX-04")
def test_what_a_file_said_at_any_time(company: Company, clock: VirtualClock) -> None:
    ceo = company.ceo
    before = tick(clock)
    paper = company.file(ceo.caller, b"first")
    first = tick(clock)
    company.write(ceo.caller, paper, b"second")
    second = tick(clock)
    goal = work(company, ceo.caller, ceo.id, "Goal", description="As it was.")
    as_it_was = tick(clock)
    change(company, ceo.caller, goal, description="As it is.")
    as_it_is = tick(clock)

    def said(file: str, at: str) -> bytes:
        version = company.call(ceo.caller, events.version_at, file=file, at=at)
        return company.read(ceo.caller, file, version)[1]

    assert (said(paper["id"], first), said(paper["id"], second)) == (b"first", b"second")
    assert (said(goal, as_it_was), said(goal, as_it_is)) == (b"As it was.", b"As it is.")
    with pytest.raises(NotFound):
        said(paper["id"], before)


@pytest.mark.requirement("BX-04")
def test_a_moment_belongs_to_what_happened_at_it(company: Company, clock: VirtualClock) -> None:
    """At the very time of a change, the change has happened."""
    clock.advance(HOUR)
    company.agent("lead")
    now = to_iso(clock.now())
    assert set(org(company, now)) == {"ceo", "lead"}
    assert set(org(company, to_iso(clock.now() - 1))) == {"ceo"}
    company.call(company.board, agents.terminate, agent="lead")
    assert set(org(company, now)) == {"ceo"}


def test_what_came_by_mail_is_left_out_of_past_grants_on_request(
    company: Company, clock: VirtualClock
) -> None:
    worker = company.agent("worker")
    file = company.file(worker.caller, unlisted=True)
    send(company, worker.caller, "agent:ceo", "done", attachments=[file["id"]])
    at, about = tick(clock), f"kb_file:{file['id']}"

    def holders(**more: Any) -> set[str]:
        found = company.call(company.board, events.grants_at, company=company.id, at=at, **more)
        return {grant["holder_id"] for grant in found if grant["resource"] == about}

    assert holders() == {worker.id, company.ceo.id}
    assert holders(besides_mail=True) == {worker.id}


@pytest.mark.requirement("BX-04")
def test_the_past_is_for_the_board_and_has_happened(company: Company, clock: VirtualClock) -> None:
    lead = company.agent("lead")
    now = to_iso(clock.now())
    partial = company.user("partial", scope="lead")
    stranger = company.second_company()
    verbs: list[Any] = [events.org_at, events.grants_at]
    for verb in verbs:
        assert refusal(company, lead.caller, verb, company=None, at=now) == "board_only"
        assert refusal(company, partial, verb, company=company.id, at=now) == "outside_scope"
        assert refusal(company, stranger.board, verb, company=company.id, at=now) == "not_found"
        for at in (to_iso(clock.now() + 1), "yesterday", ""):
            with pytest.raises(BadInput):
                company.call(company.board, verb, company=company.id, at=at)
    secret = company.file(lead.caller, unlisted=True)
    assert (
        refusal(company, company.ceo.caller, events.version_at, file=secret["id"], at=now)
        == "not_found"
    )


@pytest.mark.requirement("AG-30", "AG-113", "BX-04")
def test_the_history_of_an_outcome_outlives_its_agents(
    company: Company, clock: VirtualClock
) -> None:
    ceo: Member = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    lead = hire(company, ceo.caller, goal, "lead")
    part = work(company, lead.caller, goal, "Part")
    tick(clock)
    company.call(ceo.caller, delegation.reclaim, outcome=goal, reason="Back.")
    tick(clock)
    company.call(ceo.caller, outcomes.close, outcome=part, rationale="No more.")
    happened = company.call(ceo.caller, outcomes.show, outcome=part)["history"]
    assert [(line["action"], line["by"]) for line in happened] == [
        ("outcome.close", f"agent:{ceo.id}"),
        ("outcome.create", f"agent:{lead.id}"),
    ]
    whole = company.call(ceo.caller, outcomes.show, outcome=goal)["history"]
    assert [line["action"] for line in whole] == [
        "outcome.reclaim", "outcome.delegate", "outcome.create",
    ]  # fmt: skip
