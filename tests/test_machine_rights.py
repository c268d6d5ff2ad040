"""The whole machine is given by people: whoever holds it passes it on to nobody, by no verb."""

import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from remit.errors import RemitError
from remit.services.execution import run_start
from remit.services.governance import approvals
from remit.services.hiring import agent_update, configuration, helper_creation, hiring
from remit.services.identity import as_system
from remit.services.organisation import agents, permissions, reorganise
from remit.services.people import companies
from remit.services.record import events
from remit.services.rights import capability_requests, grants
from remit.services.work import delegation, outcomes
from tests.company import Company, Member
from tests.governance import empower, hire
from tests.organisation import refusal
from tests.working import end

pytestmark = pytest.mark.requirement("FX-81")

MACHINE = {"resource": "full_access", "level": "use"}
PADDED = {"resource": " full_access ", "level": "use"}
OUTSIDE = {"adapterType": "process", "adapterConfig": {"command": "true", "sandbox": "full"}}
INSIDE = {"adapterType": "process", "adapterConfig": {"command": "true"}}


class Room:
    """ceo ─ actor ─ report, in a company that asks nobody; every agent but the report holds
    `full_access`, and nobody has another sandbox than the usual one."""

    def __init__(self, company: Company, who: str) -> None:
        self.company, self.who = company, who
        company.call(
            company.board,
            companies.change,
            company=company.id,
            require_board_approval_for_new_agents=False,
            require_approval_for_config_changes=False,
        )
        self.actor = company.ceo if who == "CEO" else company.agent("actor")
        self.report = company.agent("report", self.actor.name)
        company.call(company.board, permissions.change, agent=self.actor.id, can_create=True)
        if who == "level boss":
            company.call(company.board, permissions.change, agent=self.actor.id, level="boss")
        if who in ("holder", "level boss", "CEO"):
            empower(company, self.actor, "full_access")
        empower(company, self.actor, "approval.decide")
        self.caller = company.board if who == "board" else self.actor.caller

    def act(self, verb: Any, **arguments: Any) -> Any:
        return self.company.call(self.caller, verb, **arguments)

    def by_report(self, verb: Any, **arguments: Any) -> Any:
        return self.company.call(self.report.caller, verb, **arguments)

    def beyond(self) -> set[tuple[str, str]]:
        """Who holds the whole machine, or is set to use it, whether or not both come together."""
        held = self.company.sql(
            "SELECT a.name FROM grants g JOIN agents a ON a.id = g.holder_id"
            " WHERE g.resource_id = 'full_access' AND g.mode <> 'deny' AND g.revoked_at IS NULL"
        )
        set_up = self.company.sql(
            "SELECT name, adapter_config FROM agents WHERE status <> 'pending_approval'"
        )
        return {(name, "grant") for (name,) in held} | {
            (name, "sandbox")
            for name, config in set_up
            if json.loads(config).get("sandbox") == "full"
        }


def _requested(room: Room) -> None:
    asked = room.by_report(
        capability_requests.request_capability, **MACHINE, why="I need the machine"
    )
    # It is for the board; the agent's boss is not asked, and may not answer.
    assert asked["to"] == "board"
    room.act(capability_requests.grant_request, request=asked["id"])


def _asked_of_the_boss(room: Room) -> None:
    """A request that an older version sent to the agent's boss."""
    asked = room.by_report(
        capability_requests.request_capability, resource="agent.create", level="use", why="so"
    )
    wish = {"agent": room.report.id, **MACHINE}
    room.company.sql("UPDATE messages SET request = ? WHERE id = ?", json.dumps(wish), asked["id"])
    room.act(capability_requests.grant_request, request=asked["id"])


def _delegated(room: Room, **more: Any) -> None:
    part = room.company.call(
        room.actor.caller, outcomes.create, parent=room.actor.id, title="A part"
    )
    room.act(delegation.delegate, outcome=part["id"], **more)


def _rolled_back(room: Room) -> None:
    change: Any = {"agent": room.report.id, "changes": OUTSIDE}
    room.company.call(room.company.board, configuration.change, **change)
    change["changes"] = INSIDE
    room.company.call(room.company.board, configuration.change, **change)
    room.act(configuration.rollback, agent=room.report.id, revision="2")


def _decided(room: Room) -> None:
    deputy = room.company.agent("deputy", "report")
    made = room.by_report(configuration.propose, agent=deputy.id, changes=OUTSIDE)
    room.act(approvals.approve, approval=made["approval"]["id"])


def _hire_decided(room: Room, wish: dict[str, str]) -> None:
    empower(room.company, room.report, "agent.create")
    made = hire(room.company, room.report.caller, "deputy", given=[wish])
    room.act(approvals.approve, approval=made["approval"]["id"])


def _seated(room: Room) -> None:
    seat = {"op": "seat", "agent": "report"}
    settings = {"adapter_type": "process", "adapter_config": OUTSIDE["adapterConfig"]}
    room.act(reorganise.reorganise, company=None, operations=[{**seat, **settings}])


WAYS: dict[str, Callable[[Room], object]] = {
    "give": lambda room: room.act(grants.give, company=None, to=room.report.id, **MACHINE),
    "give, padded": lambda room: room.act(grants.give, company=None, to="report", **PADDED),
    "grant what was asked for": _requested,
    "grant what was asked of the boss": _asked_of_the_boss,
    "create with the grant": lambda room: room.act(
        agents.create, company=None, name="new", reports_to=room.actor.name, given=[MACHINE]
    ),
    "create outside": lambda room: room.act(
        agents.create,
        company=None,
        name="new",
        reports_to=room.actor.name,
        adapter_type="process",
        adapter_config=OUTSIDE["adapterConfig"],
    ),
    "hire with the grant": lambda room: room.act(
        hiring.hire, company=None, name="new", adapter_type="scripted", given=[MACHINE]
    ),
    "hire with the grant, padded": lambda room: room.act(
        hiring.hire, company=None, name="new", adapter_type="scripted", given=[PADDED]
    ),
    "hire outside": lambda room: room.act(
        hiring.hire,
        company=None,
        name="new",
        adapter_type="process",
        adapter_config=OUTSIDE["adapterConfig"],
    ),
    "hand over with the grant": lambda room: _delegated(room, to="report", given=[MACHINE]),
    "hand over to a hire with the grant": lambda room: _delegated(
        room, hire={"name": "new", "adapter_type": "scripted"}, given=[MACHINE]
    ),
    "hand over to a hire outside": lambda room: _delegated(
        room,
        hire={
            "name": "new",
            "adapter_type": "process",
            "adapter_config": OUTSIDE["adapterConfig"],
        },
    ),
    "configure a report": lambda room: room.act(
        configuration.change, agent=room.report.id, changes=OUTSIDE
    ),
    "configure itself": lambda room: room.act(
        configuration.change, agent=room.actor.id, changes=OUTSIDE
    ),
    "propose for a report": lambda room: room.act(
        configuration.propose, agent=room.report.id, changes=OUTSIDE
    ),
    "propose for itself": lambda room: room.act(
        configuration.propose, agent=room.actor.id, changes=OUTSIDE
    ),
    "roll back": _rolled_back,
    "decide about a configuration": _decided,
    "decide about a hire": lambda room: _hire_decided(room, MACHINE),
    "decide about a hire, padded": lambda room: _hire_decided(room, PADDED),
    "seat a program": _seated,
}
#: Ways in which the board does it at once; in the others a person decides a second time, or the
#: verb is one of agents.
BY_THE_BOARD = {
    *("give", "give, padded", "grant what was asked for", "grant what was asked of the boss"),
    *("create with the grant", "create outside", "hire with the grant", "hire outside"),
    *("hire with the grant, padded", "hand over with the grant", "configure a report"),
    *("hand over to a hire with the grant", "hand over to a hire outside", "configure itself"),
    *("roll back", "decide about a configuration", "decide about a hire", "seat a program"),
    "decide about a hire, padded",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("who", ["holder", "boss", "level boss", "CEO", "board"])
def test_only_people_give_the_whole_machine(small: Company, who: str, way: str) -> None:
    room = Room(small, who)
    before = room.beyond()
    with suppress(RemitError):
        WAYS[way](room)
    gained = room.beyond() - before
    if who == "board":
        assert bool(gained) is (way in BY_THE_BOARD), gained
    else:
        assert not gained


def test_a_helper_and_an_update_take_no_sandbox_over(small: Company) -> None:
    room = Room(small, "holder")
    small.call(small.board, configuration.change, agent=room.actor.id, changes=OUTSIDE)
    room.act(agent_update.update, agent=room.report.id)
    with suppress(RemitError):
        room.act(helper_creation.create_agent, name="helper")
    (waits,) = small.call(small.board, approvals.listing, company=small.id, status="pending")
    small.call(small.board, approvals.approve, approval=waits["id"])
    assert room.beyond() == {("actor", "grant"), ("actor", "sandbox")}
    # What runs outside of the sandbox is for people to say, too, also where nobody else is asked.
    other = {"adapterConfig": {"command": "false", "sandbox": "full"}}
    small.call(small.board, configuration.change, agent=room.report.id, changes=OUTSIDE)
    made = room.act(configuration.propose, agent=room.report.id, changes=other)
    assert made["approval"] is not None
    small.call(small.board, permissions.change, agent=room.actor.id, level="boss")
    change = {"agent": room.report.id, "changes": other}
    assert refusal(small, room.caller, configuration.change, **change) == "board_only"


def test_who_approves_a_hire_with_the_whole_machine_gives_it(small: Company) -> None:
    room = Room(small, "boss")  # which does not hold it
    made = hire(small, room.caller, "new", given=[MACHINE])
    small.call(small.board, approvals.approve, approval=made["approval"]["id"])
    (given,) = small.sql(
        "SELECT granted_by_agent, granted_by_user FROM grants WHERE resource_id = 'full_access'"
    )
    assert given[0] is None
    assert given[1] is not None


def test_what_an_agent_passed_on_before_counts_for_nothing_and_is_ended(small: Company) -> None:
    """As earlier versions let an agent do."""
    room = Room(small, "holder")
    own = small.sql("SELECT id FROM grants WHERE resource_id = 'full_access'")[0][0]
    given = small.call(small.board, grants.give, company=None, to=room.report.id, **MACHINE)["id"]
    assert _may_leave_the_sandbox(small, room.report)
    small.sql(
        "UPDATE grants SET parent_id = ?, granted_by_agent = ?, granted_by_user = NULL"
        " WHERE id = ?",
        *(own, room.actor.id, given),
    )
    assert not _may_leave_the_sandbox(small, room.report)

    small.wait(small.app.first_start(alone=False))
    small.wait(small.app.first_start(alone=False))  # a second time there is nothing to end
    assert room.beyond() == {("actor", "grant")}
    ended = [
        event
        for event in small.call(small.board, events.listing, company=small.id)
        if event["action"] == "grant.revoke" and event["resource"] == f"grant:{given}"
    ]
    assert [event["reason"] for event in ended] == ["people_decide"]


def _may_leave_the_sandbox(company: Company, agent: Member) -> bool:
    run = company.run(agent)
    told = company.call(as_system(), run_start.briefing, run=run.id, token=run.caller.token)
    end(company, run)
    return told.full_access
