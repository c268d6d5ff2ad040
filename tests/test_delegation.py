"""Handing outcomes over, the boundary that this draws, and taking them back."""

from dataclasses import dataclass
from typing import Any

import pytest

from remit.clock import HOUR, to_iso
from remit.errors import BadInput, NotFound, Refused, RemitError, Unauthenticated
from remit.services.identity import Caller
from remit.services.knowledge import files
from remit.services.organisation import agents
from remit.services.people import users
from remit.services.record import events
from remit.services.rights import grants
from remit.services.work import delegation, outcome_walks, outcomes
from remit.testing.clock import VirtualClock
from tests.company import Company, Member
from tests.organisation import (
    RECORD,
    change,
    code,
    dump,
    given,
    hire,
    many,
    member,
    problems,
    refusal,
    shown,
    work,
)


def owners(company: Company, *found: str) -> list[str]:
    return [shown(company, one)["owner_id"] for one in found]


def status(company: Company, agent: Member) -> str:
    return str(company.call(company.board, agents.show, agent=agent.id)["status"])


def is_dead(company: Company, caller: Caller) -> bool:
    try:
        company.call(caller, users.me)
    except Unauthenticated:
        return True
    return False


@dataclass(frozen=True)
class World:
    """ceo ▸ lead (for `goal`) ▸ dev (for `part`); beside them peer ▸ helper."""

    company: Company
    lead: Member
    dev: Member
    peer: Member
    helper: Member
    #: goal ▸ plan ▸ part ▸ inner, and goal ▸ aside
    goal: str
    plan: str
    part: str
    inner: str
    aside: str

    @property
    def ceo(self) -> Member:
        return self.company.ceo


def build(company: Company) -> World:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    lead = hire(company, ceo.caller, goal, "lead")
    plan = work(company, lead.caller, goal, "Plan")
    aside = work(company, lead.caller, goal, "Aside")
    part = work(company, lead.caller, plan, "Part")
    dev = hire(company, lead.caller, part, "dev")
    inner = work(company, dev.caller, part, "Inner")
    other = work(company, ceo.caller, ceo.id, "Other")
    peer = hire(company, ceo.caller, other, "peer")
    helper = hire(company, peer.caller, work(company, peer.caller, other, "Help"), "helper")
    return World(company, lead, dev, peer, helper, goal, plan, part, inner, aside)


# ── handing over ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-96", "AG-68", "AG-69", "AG-105")
def test_delegating_makes_an_agent_with_the_id_of_the_outcome(company: Company) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    made = company.call(
        ceo.caller,
        delegation.delegate,
        outcome=goal,
        hire={"name": "lead", "role": "engineer", "title": "Lead", "adapter_type": "scripted"},
    )
    agent = made["agent"]
    assert agent["id"] == goal
    assert (agent["name"], agent["role"], agent["reports_to"]) == ("lead", "engineer", ceo.id)
    view = made["outcome"]
    assert (view["owner_id"], view["delegated"], view["delegator_id"]) == (goal, True, ceo.id)
    lead = member(company, agent)
    rights = company.call(lead.caller, grants.listing, company=None, derived=True)
    by_rule = {(right["resource"], right["level"]) for right in rights if right.get("derived")}
    assert (f"outcome:{goal}", "read") in by_rule
    assert (f"message:{ceo.id}", "use") in by_rule
    assert all(right["reason"] for right in rights)


@pytest.mark.requirement("AG-98", "AG-103", "AG-28")
def test_everything_below_that_is_the_delegators_goes_along(company: Company) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    below = [goal]
    for _ in range(3):
        below += [work(company, ceo.caller, below[-1]), work(company, ceo.caller, below[-1])]
    company.call(ceo.caller, outcomes.complete, outcome=below[-1])
    beside = work(company, ceo.caller, ceo.id, "Beside")
    lead = hire(company, ceo.caller, goal, "lead")
    assert set(owners(company, *below)) == {lead.id}
    assert owners(company, beside) == [ceo.id]
    change(company, lead.caller, below[1], title="Mine now")
    assert refusal(
        company, ceo.caller, outcomes.change, outcome=below[1], version=2, title="No"
    ) == ("delegated_away")


@pytest.mark.requirement("AG-98")
def test_what_others_own_or_share_stays_where_it_is(company: Company) -> None:
    """D-08, with a second owner, a shared part, and what hangs below each."""
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    other = work(company, ceo.caller, ceo.id, "Other")
    shared = work(company, ceo.caller, goal, "Shared", parents=[other])
    below_shared = work(company, ceo.caller, shared, "Below what is shared")
    both = work(company, ceo.caller, below_shared, "Also of the goal", parents=[goal])
    foreign = work(company, ceo.caller, goal, "Somebody else's")
    plain = work(company, ceo.caller, goal, "Plain")
    twice = work(company, ceo.caller, plain, "Reached twice", parents=[goal])
    peer = hire(company, ceo.caller, other, "peer")
    assert owners(company, shared, below_shared) == [peer.id, peer.id]
    company.call(company.board, delegation.reclaim, outcome=other, reason="Set the scene.")
    assert owners(company, other, shared, below_shared) == [ceo.id] * 3
    worker = hire(company, ceo.caller, foreign, "worker")
    lead_goal = work(company, ceo.caller, ceo.id, "For a peer")
    peer = hire(company, ceo.caller, lead_goal, "peer")
    # The peer's work now has a part that stays with the boss.
    change(company, company.board, shared, parents=[goal, peer.id])
    lead = hire(company, ceo.caller, goal, "lead")
    assert owners(company, goal, plain, twice) == [lead.id] * 3
    assert owners(company, shared, below_shared, both) == [ceo.id] * 3
    assert owners(company, foreign) == [worker.id]
    # Who judges the foreign one did not change, nor did whose report that is.
    assert shown(company, foreign)["delegator_id"] == ceo.id


@pytest.mark.requirement("AG-98")
def test_what_somebody_elses_work_reaches_through_ones_own_stays_too(company: Company) -> None:
    ceo = company.ceo
    peer = hire(company, ceo.caller, work(company, ceo.caller, ceo.id, "Peer's"), "peer")
    bridge = work(company, ceo.caller, ceo.id, "Mine, and a part of the peer's")
    change(company, company.board, bridge, parents=[ceo.id, peer.id])
    goal = work(company, ceo.caller, ceo.id, "Goal")
    reached = work(company, ceo.caller, goal, "Reached over the bridge", parents=[bridge])
    lead = hire(company, ceo.caller, goal, "lead")
    assert owners(company, goal, bridge, reached) == [lead.id, ceo.id, ceo.id]


@pytest.mark.requirement("AG-104", "AG-101", "AG-102", "AG-70")
def test_who_reads_and_writes_what_after_a_delegation(company: Company) -> None:
    world = build(company)
    everything = [world.goal, world.plan, world.part, world.inner, world.aside]
    for outcome in everything:
        company.call(world.ceo.caller, outcomes.show, outcome=outcome)
    for outcome in (company.ceo.id, *everything):
        company.call(world.lead.caller, outcomes.show, outcome=outcome)
    for outcome in (company.ceo.id, world.goal, world.plan, world.part, world.inner):
        company.call(world.dev.caller, outcomes.show, outcome=outcome)
    chains = company.call(world.dev.caller, outcome_walks.ancestors, outcome=world.inner)["chains"]
    assert chains == [[world.inner, world.part, world.plan, world.goal, company.ceo.id]]
    # The child writes what it makes, below what it can only read.
    change(company, world.dev.caller, world.inner, title="Mine")
    made = work(company, world.dev.caller, world.inner, "More")
    company.call(world.dev.caller, outcomes.close, outcome=made, rationale="Disproven.")


@pytest.mark.requirement("AG-98", "AG-69")
def test_a_report_can_be_given_more_and_keeps_what_it_had(company: Company) -> None:
    ceo = company.ceo
    lead = hire(company, ceo.caller, work(company, ceo.caller, ceo.id, "First"), "lead")
    more = work(company, ceo.caller, ceo.id, "More")
    below = work(company, ceo.caller, more, "Below it")
    answer = given(company, ceo.caller, more, lead)
    assert (answer["agent"]["id"], answer["moved"]) == (lead.id, 1)
    assert owners(company, more, below, lead.id) == [lead.id] * 3
    # It is like a second mandate.
    assert refusal(company, lead.caller, outcomes.complete, outcome=more) == "own_mandate"
    assert refusal(company, ceo.caller, outcomes.close, outcome=below, rationale="No") == (
        "delegated_away"
    )
    company.call(lead.caller, outcomes.complete, outcome=below)
    company.call(ceo.caller, outcomes.complete, outcome=more)
    assert status(company, lead) == "idle"


def test_a_delegation_names_one_receiver_that_can_act(company: Company) -> None:
    world = build(company)
    ceo, own = world.ceo, work(company, company.ceo.caller, company.ceo.id, "Own")

    def refused(outcome: str, **to: Any) -> str:
        return refusal(company, ceo.caller, delegation.delegate, outcome=outcome, **to)

    assert refused(own) == "invalid"
    assert refused(own, to="lead", hire={"name": "new"}) == "invalid"
    assert refused(own, to="nobody") == "not_found"
    assert refused(own, to="dev") == "not_your_report"
    assert refused(own, to="ceo") == "not_your_report"
    assert refused(own, hire={"name": "LEAD"}) == "already_exists"
    assert refused(own, hire={"name": "new", "boss": "lead"}) == "invalid"
    assert refused(own, hire={}) == "invalid"
    gone = company.agent("gone")
    company.call(company.board, agents.terminate, agent=gone.id)
    assert refused(own, to=gone.id) == "conflict"
    assert refused(world.goal, to="lead") == "delegated_away"
    assert refused(company.ceo.id, to="lead") == "own_mandate"
    assert (
        refusal(company, company.board, delegation.delegate, outcome=company.ceo.id, to="lead")
        == "conflict"
    )
    company.call(ceo.caller, outcomes.complete, outcome=own)
    assert refused(own, to="lead") == "conflict"
    assert owners(company, own) == [ceo.id]


@pytest.mark.requirement("AG-97", "AG-105", "AG-49")
def test_grants_come_with_the_outcome_and_end_with_it(
    company: Company, clock: VirtualClock
) -> None:
    ceo = company.ceo
    paper, plan = company.file(ceo.caller), company.file(ceo.caller)
    goal = work(company, ceo.caller, ceo.id, "Goal")
    until = to_iso(clock.now() + HOUR)
    lead = hire(
        company,
        ceo.caller,
        goal,
        "lead",
        given=[
            {"resource": f"kb_file:{paper['id']}", "level": "write"},
            {"resource": f"kb_file:{plan['id']}", "level": "read", "expires_at": until},
            # Whatever is asked for, it lasts as long as the outcome.
            {"resource": f"kb_file:{plan['id']}", "level": "read", "scope": ceo.id},
        ],
    )
    held = company.call(lead.caller, grants.listing, company=None)
    passed_on = [grant for grant in held if grant["granted_by"] == f"agent:{ceo.id}"]
    assert len(passed_on) == 3
    assert {grant["scope"] for grant in passed_on} == {goal}
    # Passed further down, it ends just as well.
    dev = hire(
        company,
        lead.caller,
        work(company, lead.caller, goal, "Part"),
        "dev",
        given=[{"resource": f"kb_file:{paper['id']}", "level": "read"}],
    )
    company.read(dev.caller, paper["id"])
    company.call(ceo.caller, outcomes.complete, outcome=goal)
    live = company.call(company.board, grants.listing, company=company.id)
    assert {grant["holder_id"] for grant in live if grant["scope"]} == set()


@pytest.mark.requirement("AG-97")
def test_nobody_hands_over_more_than_they_hold(company: Company) -> None:
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    secret = company.file(company.board)
    before = dump(company, RECORD)
    assert (
        refusal(
            company,
            ceo.caller,
            delegation.delegate,
            outcome=goal,
            hire={"name": "lead"},
            given=[{"resource": f"kb_file:{secret['id']}", "level": "read"}],
        )
        == "not_held"
    )
    with pytest.raises(BadInput):
        hire(company, ceo.caller, goal, "lead", given=[{}] * 101)
    # All or nothing: no agent came into being, nothing moved.
    assert dump(company, RECORD) == before


# ── the boundary ────────────────────────────────────────────────────────────────────────────────

OPERATIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "view": (outcomes.show, {}),
    "ancestors": (outcome_walks.ancestors, {}),
    "subtree": (outcome_walks.subtree, {}),
    "create": (outcomes.create, {"title": "Reaching in"}),
    "change": (outcomes.change, {"version": 1, "title": "Reaching in"}),
    "describe": (outcomes.change, {"version": 1, "description": "Reaching in"}),
    "reparent": (outcomes.change, {"version": 1, "parents": []}),
    "block": (outcomes.change, {"version": 1, "blocked_by": []}),
    "complete": (outcomes.complete, {}),
    "close": (outcomes.close, {"rationale": "Reaching in."}),
    "reopen": (outcomes.reopen, {}),
    "delegate": (delegation.delegate, {"hire": {"name": "spy"}}),
    "reclaim": (delegation.reclaim, {"reason": "Reaching in."}),
}
LOOKING = {"view", "ancestors", "subtree"}
CHANGING = {"change", "describe", "reparent", "block"}
JUDGING = {"complete", "close", "reopen"}
ACTING = set(OPERATIONS) - LOOKING

#: Who, on what: which operations are refused, and with which reason.
BOUNDARY: list[tuple[str, str, set[str], str]] = [
    # The boss, on what it delegated and inside of it.
    ("ceo", "goal", {"create", "delegate"}, "delegated_away"),
    ("ceo", "plan", ACTING, "delegated_away"),
    ("ceo", "aside", ACTING, "delegated_away"),
    # The boss's boss, below a report of its report.
    ("ceo", "part", ACTING, "skip_level"),
    ("ceo", "inner", ACTING, "skip_level"),
    # The child, on its own mandate.
    ("lead", "goal", CHANGING | JUDGING | {"delegate"}, "own_mandate"),
    ("lead", "goal", {"reclaim"}, "not_delegated"),
    ("lead", "plan", {"reclaim"}, "not_delegated"),
    ("lead", "part", {"create", "delegate"}, "delegated_away"),
    ("lead", "inner", ACTING, "delegated_away"),
    ("lead", "root", ACTING, "read_only"),
    ("dev", "part", CHANGING | JUDGING | {"delegate"}, "own_mandate"),
    # Upward, it sees why and changes nothing.
    ("dev", "plan", ACTING, "read_only"),
    ("dev", "goal", ACTING, "read_only"),
    ("dev", "root", ACTING, "read_only"),
    ("dev", "aside", set(OPERATIONS), "not_found"),
    # Beside it, and beside that; and in another company.
    *(
        (who, what, set(OPERATIONS), "not_found")
        for who in ("peer", "helper", "stranger")
        for what in ("goal", "plan", "part", "inner", "aside")
    ),
    ("peer", "root", ACTING, "read_only"),
    ("stranger", "root", set(OPERATIONS), "not_found"),
]


@pytest.mark.requirement("AG-39", "AG-99", "AG-102", "AG-106", "AG-107", "AG-31")
def test_everything_beyond_the_boundary_is_refused_with_its_reason(company: Company) -> None:
    world = build(company)
    stranger = company.second_company().agent
    callers = {
        "ceo": world.ceo, "lead": world.lead, "dev": world.dev, "peer": world.peer,
        "helper": world.helper, "stranger": stranger,
    }  # fmt: skip
    targets = {
        "root": company.ceo.id, "goal": world.goal, "plan": world.plan, "part": world.part,
        "inner": world.inner, "aside": world.aside,
    }  # fmt: skip
    before = dump(company, RECORD)
    seen: set[tuple[str, str, str]] = set()
    for who, what, operations, reason in BOUNDARY:
        for operation in sorted(operations):
            verb, arguments = OPERATIONS[operation]
            name = "parent" if operation == "create" else "outcome"
            got = refusal(company, callers[who].caller, verb, **{name: targets[what]}, **arguments)
            assert (who, what, operation, got) == (who, what, operation, reason)
            seen.add((who, what, operation))
        # The document says the same as the tools.
        document = {"id": targets[what], "version": 1, "hash": "0" * 64}
        with pytest.raises(RemitError):
            company.write(callers[who].caller, document, b"Reaching in")
        if reason == "not_found":
            with pytest.raises(NotFound):
                company.read(callers[who].caller, targets[what])
    assert len(seen) > 250
    assert dump(company, {*RECORD, "access_log"}) == {
        name: rows for name, rows in before.items() if name != "access_log"
    }
    # What is refused to an agent that may know of the outcome is in the record.
    recorded = company.call(company.board, events.listing, company=company.id, limit=500)
    reasons = {event["reason"] for event in recorded if not event["allowed"]}
    assert {"delegated_away", "skip_level", "own_mandate", "read_only", "no_relation"} <= reasons


@pytest.mark.requirement("AG-100", "AG-108", "AG-101", "AG-36")
def test_a_boss_reads_all_and_changes_and_judges_what_it_delegated(company: Company) -> None:
    world = build(company)
    for outcome in (world.goal, world.plan, world.part, world.inner):
        for verb in (outcomes.show, outcome_walks.ancestors, outcome_walks.subtree):
            assert company.call(world.ceo.caller, verb, outcome=outcome)
    change(company, world.ceo.caller, world.goal, title="Sharper", description="As agreed.")
    change(company, world.ceo.caller, world.goal, blocked_by=[world.peer.id])
    change(company, world.ceo.caller, world.goal, blocked_by=[], urgent=True)
    done = company.call(world.ceo.caller, outcomes.complete, outcome=world.goal)
    assert done["status"] == "completed"


@pytest.mark.requirement("AG-107")
def test_a_boss_grants_to_its_own_reports_only(company: Company) -> None:
    world = build(company)
    paper = company.file(company.ceo.caller)
    with pytest.raises(Refused) as refused:
        company.give(company.ceo.caller, world.dev, paper, "read")
    assert refused.value.reason == "not_your_report"


def test_a_read_grant_opens_an_outcome_and_no_more(company: Company) -> None:
    world = build(company)
    company.call(
        company.board,
        grants.give,
        company=company.id,
        to="peer",
        resource=f"outcome:{world.plan}",
        level="read",
    )
    assert company.call(world.peer.caller, outcomes.show, outcome=world.plan)["title"] == "Plan"
    assert "# Plan" in company.read(world.peer.caller, world.plan)[1].decode()
    for operation in sorted(ACTING):
        verb, arguments = OPERATIONS[operation]
        name = "parent" if operation == "create" else "outcome"
        assert (
            refusal(company, world.peer.caller, verb, **{name: world.plan}, **arguments)
            == "read_only"
        )
    assert refusal(company, world.peer.caller, outcomes.show, outcome=world.part) == "not_found"


def test_a_write_grant_lets_change_and_judge_but_not_hand_over(company: Company) -> None:
    world = build(company)
    for resource in (world.plan, world.goal):
        company.call(
            company.board,
            grants.give,
            company=company.id,
            to="peer",
            resource=f"outcome:{resource}",
            level="write",
        )
    change(company, world.peer.caller, world.plan, title="With leave")
    assert refusal(company, world.peer.caller, outcomes.create, parent=world.plan, title="No") == (
        "read_only"
    )
    assert refusal(
        company, world.peer.caller, delegation.reclaim, outcome=world.goal, reason="No"
    ) == ("read_only")
    company.call(world.peer.caller, outcomes.close, outcome=world.goal, rationale="With leave.")


def test_the_board_can_deny_and_gate_what_follows_from_the_tree(company: Company) -> None:
    """D-12: what is explicit beats what is derived."""
    world = build(company)

    def give(mode: str, level: str) -> str:
        made = company.call(
            company.board,
            grants.give,
            company=company.id,
            to="lead",
            resource=f"outcome:{world.plan}",
            level=level,
            mode=mode,
        )
        return str(made["id"])

    denied = give("deny", "write")
    company.call(world.lead.caller, outcomes.show, outcome=world.plan)
    assert (
        refusal(company, world.lead.caller, outcomes.create, parent=world.plan, title="No")
        == "denied_by_grant"
    )
    company.call(company.board, grants.revoke, grant=denied)
    give("ask", "write")
    assert (
        refusal(company, world.lead.caller, outcomes.create, parent=world.plan, title="No")
        == "pending_approval"
    )
    company.call(world.lead.caller, outcomes.show, outcome=world.plan)


def test_nobody_learns_of_an_outcome_by_granting_or_scoping(company: Company) -> None:
    """Naming what one may not know of looks like naming what is not there."""
    world = build(company)
    paper = company.file(world.peer.caller)
    nothing = world.goal[:-4] + ("0000" if not world.goal.endswith("0000") else "1111")
    for outcome in (world.inner, nothing):
        for wish in (
            {"resource": f"outcome:{outcome}", "level": "read"},
            {"resource": f"kb_file:{paper['id']}", "level": "read", "scope": outcome},
        ):
            assert (
                refusal(company, world.peer.caller, grants.give, company=None, to="helper", **wish)
                == "not_found"
            )


# ── ending well ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-110", "AG-113", "AG-115", "AG-68")
@pytest.mark.parametrize("verb", ["complete", "close"])
def test_judging_a_mandate_shuts_its_agents_down_at_every_level(
    company: Company, verb: str
) -> None:
    world = build(company)
    paper = company.file(company.ceo.caller)
    company.give(company.ceo.caller, world.lead, paper, "read", scope=world.goal)
    company.give(world.lead.caller, world.dev, paper, "read", scope=world.part)
    run = company.run(world.dev)
    note = {"note": "Well done."} if verb == "complete" else {"rationale": "Disproven."}
    done = company.call(world.ceo.caller, getattr(outcomes, verb), outcome=world.goal, **note)
    assert done["verdict"]["note"] in ("Well done.", "Disproven.")
    for agent in (world.lead, world.dev):
        assert status(company, agent) == "terminated"
        assert is_dead(company, agent.caller)
    assert is_dead(company, run.caller)
    assert company.sql("SELECT status FROM runs WHERE id = ?", run.id) == [("cancelled",)]
    assert {shown(company, one)["status"] for one in (world.plan, world.part, world.inner)} == {
        "closed"
    }
    live = company.call(company.board, grants.listing, company=company.id)
    assert not [grant for grant in live if grant["holder_id"] in (world.lead.id, world.dev.id)
                and grant["scope"]]  # fmt: skip
    assert status(company, world.peer) == "idle"
    # What they were stays readable by their bosses.
    for agent in (world.lead, world.dev):
        view = company.call(world.ceo.caller, agents.show, agent=agent.id)
        for document in (view["state_file_id"], view["log_file_id"], agent.id):
            company.read(world.ceo.caller, document)
    # And the names are free.
    company.agent("lead")


@pytest.mark.requirement("AG-111", "AG-112")
def test_an_agent_ends_its_parts_itself_and_never_its_mandate(company: Company) -> None:
    world = build(company)
    company.call(world.dev.caller, outcomes.close, outcome=world.inner, rationale="Disproven.")
    assert "Rationale: Disproven." in company.read(world.dev.caller, world.inner)[1].decode()
    for verb, more in ((outcomes.close, {"rationale": "No."}), (outcomes.complete, {})):
        assert refusal(company, world.dev.caller, verb, outcome=world.part, **more) == "own_mandate"
    # Its boss sees that nothing is left to do below, and that the mandate is open.
    assert company.call(world.lead.caller, outcomes.show, outcome=world.part)["actionable"]


def test_finishing_reaches_no_agent_that_works_for_somebody_else(company: Company) -> None:
    """Where an outcome hangs in the graph does not decide whose it is."""
    world = build(company)
    # The board makes the peer's mandate a part of the lead's plan, and of nothing else.
    change(company, company.board, world.peer.id, parents=[world.plan])
    company.call(world.lead.caller, outcomes.close, outcome=world.plan, rationale="Given up.")
    assert status(company, world.dev) == "terminated"
    assert status(company, world.peer) == "idle"
    assert shown(company, world.peer.id)["status"] == "open"
    change(company, company.board, world.peer.id, parents=[world.goal])
    company.call(world.ceo.caller, delegation.reclaim, outcome=world.goal, reason="Back.")
    assert status(company, world.peer) == "idle"
    assert owners(company, world.peer.id) == [world.peer.id]


def test_the_end_of_a_root_agent_leaves_nothing_open_and_ownerless(company: Company) -> None:
    world = build(company)
    other_root = company.agent("second", None)
    shared = work(company, company.ceo.caller, company.ceo.id, "Shared")
    change(company, company.board, shared, parents=[company.ceo.id, other_root.id])
    company.call(company.board, outcomes.close, outcome=company.ceo.id, rationale="Sold.")
    assert {status(company, one) for one in (world.ceo, world.lead, world.dev, world.helper)} == {
        "terminated"
    }
    assert status(company, other_root) == "idle"
    assert problems(company) == []


# ── taking back ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement(
    "AG-109", "AG-114", "AG-115", "AG-116", "AG-117", "AG-118", "AG-113", "AG-28"
)
def test_a_reclaim_takes_everything_back(company: Company) -> None:
    world = build(company)
    paper = company.file(company.ceo.caller)
    company.give(company.ceo.caller, world.lead, paper, "write", scope=world.goal)
    company.give(world.lead.caller, world.dev, paper, "read", scope=world.part)
    company.call(world.lead.caller, outcomes.complete, outcome=world.aside)
    for agent, text in ((world.lead, b"I had a plan."), (world.dev, b"I was nearly there.")):
        state = company.call(company.board, agents.show, agent=agent.id)["state_file_id"]
        company.write(agent.caller, company.read(agent.caller, state)[0], text)
        company.call(agent.caller, agents.submit_log, summary=f"{agent.name} worked.")
    lead_run, dev_run = company.run(world.lead), company.run(world.dev)

    answer = company.call(
        world.ceo.caller, delegation.reclaim, outcome=world.goal, reason="It went astray."
    )

    # Steps 1 and 2: every run below is stopped, every token dead.
    for run in (lead_run, dev_run):
        assert company.sql("SELECT status FROM runs WHERE id = ?", run.id) == [("cancelled",)]
        assert is_dead(company, run.caller)
    assert is_dead(company, world.lead.caller)
    # Step 3: deactivated, not deleted.
    assert sorted(answer["agents"]) == sorted([world.lead.id, world.dev.id])
    assert [status(company, agent) for agent in (world.lead, world.dev)] == ["terminated"] * 2
    # Step 4: the boss owns all of it again, with write.
    everything = [world.goal, world.plan, world.part, world.inner, world.aside]
    assert set(owners(company, *everything)) == {company.ceo.id}
    assert not any(shown(company, outcome)["delegated"] for outcome in everything)
    change(company, company.ceo.caller, world.inner, title="Mine again")
    work(company, company.ceo.caller, world.part, "On with it")
    # Step 5: what was given for it is gone, at every level.
    live = company.call(company.board, grants.listing, company=company.id)
    assert {grant["holder_id"] for grant in live if grant["resource"].endswith(paper["id"])} == {
        company.ceo.id
    }
    # Step 6: what they knew and did can be read.
    for agent, text in ((world.lead, b"I had a plan."), (world.dev, b"I was nearly there.")):
        view = company.call(company.ceo.caller, agents.show, agent=agent.id)
        assert company.read(company.ceo.caller, view["state_file_id"])[1] == text
        log = company.read(company.ceo.caller, view["log_file_id"])[1].decode()
        assert f"{agent.name} worked." in log
        assert company.call(company.ceo.caller, files.history, file=view["state_file_id"])
    history = company.call(company.ceo.caller, outcomes.show, outcome=world.goal)["history"]
    assert (history[0]["action"], history[0]["why"]) == ("outcome.reclaim", "It went astray.")
    _, handover = company.read(company.ceo.caller, answer["handover_file_id"])
    for word in ("It went astray.", "lead", "dev", world.plan, world.inner):
        assert word in handover.decode()
    assert company.found(company.ceo.caller, "handover") == [answer["handover_file_id"]]
    # Beside it nothing happened.
    assert [status(company, agent) for agent in (world.peer, world.helper)] == ["idle"] * 2


@pytest.mark.requirement("AG-116", "AG-117")
def test_a_boss_keeps_what_it_held_for_the_outcome_itself(company: Company) -> None:
    ceo = company.ceo
    paper = company.file(company.board)
    goal = work(company, ceo.caller, ceo.id, "Goal")
    company.give(company.board, ceo, paper, "read", scope=goal)
    lead = hire(
        company, ceo.caller, goal, "lead",
        given=[{"resource": f"kb_file:{paper['id']}", "level": "read"}],
    )  # fmt: skip
    company.read(lead.caller, paper["id"])
    company.call(ceo.caller, delegation.reclaim, outcome=goal, reason="Back to me.")
    company.read(ceo.caller, paper["id"])
    company.call(ceo.caller, outcomes.complete, outcome=goal)
    with pytest.raises(Refused):
        company.read(ceo.caller, paper["id"])


@pytest.mark.requirement("AG-109", "AG-114", "AG-116", "AG-117")
def test_what_existing_reports_were_given_comes_back_over_any_number_of_levels(
    company: Company,
) -> None:
    ceo = company.ceo
    lead = company.agent("lead")
    dev = company.agent("dev", "lead")
    tester = company.agent("tester", "dev")
    paper = company.file(ceo.caller)
    wish = [{"resource": f"kb_file:{paper['id']}", "level": "read"}]
    goal = work(company, ceo.caller, ceo.id, "Goal")
    given(company, ceo.caller, goal, lead, given=wish)
    part = work(company, lead.caller, goal, "Part")
    given(company, lead.caller, part, dev, given=wish)
    inner = work(company, dev.caller, part, "Inner")
    given(company, dev.caller, inner, tester, given=wish)
    leaf = work(company, tester.caller, inner, "Leaf")
    run = company.run(tester)
    kept = work(company, dev.caller, dev.id, "Not part of it")
    answer = company.call(ceo.caller, delegation.reclaim, outcome=goal, reason="Other plans.")
    assert answer["agents"] == []
    assert set(owners(company, goal, part, inner, leaf)) == {ceo.id}
    assert not any(shown(company, one)["delegated"] for one in (goal, part, inner, leaf))
    # They stay, with what else they have; what they were doing is cut off.
    assert [status(company, one) for one in (lead, dev, tester)] == ["idle"] * 3
    assert is_dead(company, run.caller)
    assert owners(company, kept, lead.id, dev.id) == [dev.id, lead.id, dev.id]
    for agent in (lead, dev, tester):
        with pytest.raises(Refused):
            company.read(agent.caller, paper["id"])


@pytest.mark.requirement("AG-109")
def test_only_what_is_delegated_and_open_can_be_reclaimed(company: Company) -> None:
    world = build(company)
    own = work(company, company.ceo.caller, company.ceo.id, "Own")
    for caller, outcome, reason in (
        (company.ceo.caller, own, "not_delegated"),
        (company.board, own, "conflict"),
        (company.board, company.ceo.id, "conflict"),
        (company.ceo.caller, world.part, "skip_level"),
        (world.dev.caller, world.part, "not_delegated"),
    ):
        got = refusal(company, caller, delegation.reclaim, outcome=outcome, reason="Back.")
        assert got == reason
    with pytest.raises(BadInput):
        company.call(company.ceo.caller, delegation.reclaim, outcome=world.goal, reason=" ")
    company.call(company.ceo.caller, outcomes.complete, outcome=world.goal)
    assert (
        refusal(company, company.ceo.caller, delegation.reclaim, outcome=world.goal, reason="Late")
        == "conflict"
    )


@pytest.mark.requirement("AG-96", "AG-116")
def test_what_was_reclaimed_can_be_delegated_again(company: Company) -> None:
    world = build(company)
    ceo = company.ceo
    company.call(ceo.caller, delegation.reclaim, outcome=world.goal, reason="Start over.")
    second = company.call(
        ceo.caller, delegation.delegate, outcome=world.goal, hire={"name": "lead"}
    )
    # The id of the first agent stays its own, so the second has a mandate in between.
    again = second["agent"]["id"]
    assert again == second["outcome"]["id"] != world.goal
    assert [one["id"] for one in shown(company, again)["parents"]] == [world.goal]
    assert set(owners(company, again, world.plan, world.part, world.inner)) == {again}
    assert owners(company, world.goal) == [ceo.id]
    assert shown(company, again)["history"][-1]["action"] == "outcome.create"
    assert problems(company) == []
    company.call(ceo.caller, delegation.reclaim, outcome=again, reason="And over.")
    third = company.call(ceo.caller, delegation.delegate, outcome=world.goal, to="peer")
    assert third["moved"] == 5
    assert set(owners(company, world.goal, again, world.plan, world.inner)) == {world.peer.id}
    company.call(ceo.caller, outcomes.complete, outcome=world.goal)
    assert status(company, world.peer) == "idle"


# ── at the same time ────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-109", "AG-116")
def test_a_reclaim_and_a_completion_at_the_same_time_take_turns(company: Company) -> None:
    ceo = company.ceo
    for number in range(12):
        goal = work(company, ceo.caller, ceo.id, "Goal")
        lead = hire(company, ceo.caller, goal, f"lead-{number}")
        part = work(company, lead.caller, goal, "Part")
        gate = company.app.gate
        calls = [
            gate(ceo.caller, delegation.reclaim, outcome=goal, reason="Back."),
            gate(ceo.caller, outcomes.complete, outcome=goal),
            gate(lead.caller, outcomes.complete, outcome=part),
            gate(lead.caller, outcomes.create, parent=goal, title="More"),
            gate(lead.caller, agents.submit_log, summary="Still here."),
        ]
        answers = company.together(calls[number % 2 :] + calls[: number % 2])
        for answer in answers:
            if isinstance(answer, BaseException):
                assert isinstance(answer, RemitError), answer
        assert problems(company) == []
        # Nobody did anything after they were shut down.
        done = company.call(company.board, events.listing, company=company.id, limit=30)
        ended = max(e["seq"] for e in done if e["resource"] == f"agent:{lead.id}")
        late = [e for e in done if e["actor"] == f"agent:{lead.id}" and e["seq"] > ended]
        assert [event for event in late if event["allowed"]] == []


@pytest.mark.requirement("AG-98", "AG-28")
def test_overlapping_parts_delegated_at_once_have_one_owner_each(company: Company) -> None:
    ceo = company.ceo
    for number in range(10):
        left = work(company, ceo.caller, ceo.id, "Left")
        right = work(company, ceo.caller, ceo.id, "Right")
        shared = work(company, ceo.caller, left, "Shared", parents=[right])
        leaf = work(company, ceo.caller, shared, "Leaf")
        answers = company.together(
            [
                company.app.gate(
                    ceo.caller, delegation.delegate, outcome=one, hire={"name": f"{name}-{number}"}
                )
                for name, one in (("left", left), ("right", right), ("leaf", leaf))
            ]
        )
        for answer in answers:
            if isinstance(answer, BaseException):
                assert code(answer) in ("delegated_away", "conflict"), answer
        assert owners(company, shared)[0] in (left, right)
    assert problems(company) == []


def test_the_same_outcome_is_delegated_once(company: Company) -> None:
    goal = work(company, company.ceo.caller, company.ceo.id, "Goal")
    answers = company.together(
        [
            company.app.gate(
                company.ceo.caller, delegation.delegate, outcome=goal, hire={"name": f"lead-{n}"}
            )
            for n in range(6)
        ]
    )
    assert len([answer for answer in answers if isinstance(answer, dict)]) == 1
    assert len(company.call(company.board, agents.listing, company=company.id)) == 2


@pytest.mark.requirement("AG-98", "AG-116")
def test_ten_thousand_outcomes_change_hands_in_one_transaction(company: Company) -> None:
    """D-09: handing over costs an update of owners, not a right for each."""
    ceo = company.ceo
    goal = work(company, ceo.caller, ceo.id, "Goal")
    many(company, goal, 10_000)
    before = len(company.sql("SELECT id FROM grants"))
    answer = company.call(ceo.caller, delegation.delegate, outcome=goal, hire={"name": "lead"})
    assert answer["moved"] == 10_000
    assert company.sql(
        "SELECT owner_id, count(*) FROM outcomes WHERE id <> ? GROUP BY owner_id", ceo.id
    ) == [(goal, 10_001)]
    assert len(company.sql("SELECT id FROM grants")) <= before + 2
    company.call(ceo.caller, delegation.reclaim, outcome=goal, reason="Too much.")
    assert company.sql("SELECT DISTINCT owner_id FROM outcomes") == [(ceo.id,)]
