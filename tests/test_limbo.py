"""An agent that awaits approval exists, is seen by everybody, and finds every door shut."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from remit.errors import Conflict, Unauthenticated
from remit.ids import TokenKind, new_token, token_digest
from remit.model.organisation.agent import TRANSITIONS, AgentStatus
from remit.services.connections import bindings
from remit.services.execution import runs
from remit.services.governance import approvals
from remit.services.hiring import configuration, hiring
from remit.services.identity import Caller, as_system
from remit.services.knowledge import files
from remit.services.messaging import schedules
from remit.services.organisation import agents, permissions, reorganise
from remit.services.people import users
from remit.services.rights import grants
from remit.services.screens import overview
from remit.services.work import delegation, outcomes
from remit.testing.clock import VirtualClock
from tests.company import Answer, Company, opened
from tests.governance import approve, hire, reject, seen
from tests.organisation import RECORD, dump, problems, refusal, work


@dataclass(frozen=True)
class World:
    company: Company
    #: Awaits approval for a post.
    agent: Answer
    approval: Answer
    #: Awaits approval to take an outcome over.
    for_outcome: Answer

    @property
    def id(self) -> str:
        return str(self.agent["id"])

    def door(self, caller: Caller, verb: Any, /, **given: Any) -> str:
        """A door is shut, and nobody came one step further by trying it."""
        before = self.statuses()
        reason = refusal(self.company, caller, verb, **given)
        assert self.statuses() == before == {"pending_approval"}
        return reason

    def statuses(self) -> set[str]:
        return {
            self.company.call(self.company.board, agents.show, agent=one["id"])["status"]
            for one in (self.agent, self.for_outcome)
        }


@pytest.fixture
def world(request: pytest.FixtureRequest, database_url: str, tmp_path: Path) -> Iterator[World]:
    home = tmp_path / "home"
    with opened(database_url, home, VirtualClock(), asks_before_hiring=True) as company:
        made = hire(company, company.ceo.caller, "limbo", role="engineer")
        goal = work(company, company.ceo.caller, company.ceo.id, "Goal")
        wanted = {"name": "later", "adapter_type": "scripted"}
        handed = company.call(company.ceo.caller, delegation.delegate, outcome=goal, hire=wanted)
        yield World(company, made["agent"], made["approval"], handed["agent"])
        tampered = request.node.get_closest_marker("tampers") is not None
        assert problems(company, verify=not tampered) == []


@pytest.mark.requirement("PC-14", "PC-15", "PC-35", "PC-36", "PC-28")
def test_it_is_a_real_agent_that_everybody_sees(world: World) -> None:
    company = world.company
    working = {"idle", "running", "paused", "error", "terminated"}
    assert set(AgentStatus) == {*working, "pending_approval"}
    # It becomes one that works, or none; nobody else comes to it.
    assert TRANSITIONS[AgentStatus.PENDING_APPROVAL] == {AgentStatus.IDLE, AgentStatus.TERMINATED}
    assert not any(AgentStatus.PENDING_APPROVAL in to for to in TRANSITIONS.values())
    shown = company.call(company.ceo.caller, agents.show, agent="limbo")
    assert (shown["status"], shown["reports_to"]) == ("pending_approval", company.ceo.id)
    listed = company.call(company.board, agents.listing, company=company.id)
    assert {"limbo", "later"} <= {one["name"] for one in listed}
    payload = seen(company, world.approval)["payload"]
    assert payload["agentId"] == world.id
    assert payload["requestedByAgentId"] == company.ceo.id
    assert payload["requestedConfigurationSnapshot"]["role"] == "engineer"
    # Its papers can be read by those above, as with any other.
    assert company.read(company.ceo.caller, shown["state_file_id"])[1] == b""


@pytest.mark.requirement("PC-16", "PC-21", "PC-78")
def test_no_run_is_started(world: World) -> None:
    for agent in (world.agent, world.for_outcome):
        run = world.company.app.ids.new()
        assert (
            world.door(as_system(), runs.start, agent=agent["id"], run=run, workspace=None)
            == "conflict"
        )
    assert world.company.sql("SELECT count(*) FROM runs") == [(0,)]


@pytest.mark.requirement("PC-16", "PC-21", "PC-78")
def test_it_is_not_woken(world: World) -> None:
    company = world.company
    before = dump(company, RECORD)
    for caller in (company.board, company.ceo.caller):
        # By its own check, not only because no mail reaches it.
        with pytest.raises(Conflict, match="is pending approval") as refused:
            company.call(caller, agents.wake, agent=world.id)
        assert "woken once it works" in refused.value.step
    assert dump(company, RECORD) == before


@pytest.mark.requirement("PC-16")
def test_no_mail_reaches_it(world: World) -> None:
    company = world.company
    for caller in (company.board, company.ceo.caller):
        with pytest.raises(Conflict):
            company.wait(company.app.library.send(caller, to="agent:limbo", body="Hello"))
    assert company.sql("SELECT count(*) FROM deliveries") == [(0,)]


def test_nothing_is_scheduled_for_it(world: World) -> None:
    assert (
        world.door(
            world.company.board,
            schedules.add,
            company=world.company.id,
            agent="limbo",
            cron="0 9 * * *",
            body="Wake up",
        )
        == "conflict"
    )


@pytest.mark.requirement("PC-17", "PC-21", "PC-78")
def test_nothing_is_delegated_to_it(world: World) -> None:
    ceo = world.company.ceo
    part = work(world.company, ceo.caller, ceo.id)
    for caller in (ceo.caller, world.company.board):
        assert world.door(caller, delegation.delegate, outcome=part, to="limbo") == "conflict"


@pytest.mark.requirement("PC-17", "PC-21")
def test_no_outcome_is_created_for_it(world: World) -> None:
    company = world.company
    given: dict[str, Any] = {"parent": world.id, "title": "Do this"}
    assert world.door(company.board, outcomes.create, **given) == "conflict"
    assert world.door(company.ceo.caller, outcomes.create, **given) == "delegated_away"
    assert company.sql("SELECT count(*) FROM outcomes WHERE owner_id = ?", world.id) == [(1,)]


@pytest.mark.requirement("PC-18", "PC-21", "PC-78")
def test_no_key_is_created_for_it(world: World) -> None:
    assert world.door(world.company.board, agents.create_key, agent=world.id) == "conflict"
    assert world.company.sql("SELECT count(*) FROM tokens WHERE agent_id = ?", world.id) == [(0,)]


@pytest.mark.tampers
@pytest.mark.requirement("PC-19", "PC-21")
def test_a_key_that_it_has_all_the_same_opens_nothing(world: World) -> None:
    """As if it had been carried over from another machine; it works once the agent does."""
    company = world.company
    token = new_token(TokenKind.AGENT)
    company.sql(
        "INSERT INTO tokens (id, digest, kind, company_id, agent_id, label, created_at, event_id)"
        " VALUES (?, ?, 'agent', ?, ?, '', 0, ?)",
        company.app.ids.new(),
        token_digest(token),
        company.id,
        world.id,
        company.app.ids.new(),
    )
    key = Caller(token)
    for attempt in (
        lambda: company.call(key, overview.me),
        lambda: company.call(key, users.me),
        lambda: company.call(key, files.browse, company=None),
        lambda: company.call(key, approvals.show, approval=world.approval["id"]),
        lambda: company.call(key, approvals.approve, approval=world.approval["id"]),
        lambda: company.file(key),
        lambda: company.wait(company.app.library.send(key, to="board", body="Let me in")),
        lambda: company.call(Caller(token, "key-1"), outcomes.create, parent=world.id, title="x"),
    ):
        with pytest.raises(Unauthenticated):
            attempt()
    approve(company, world.approval)
    assert company.call(key, overview.me)["name"] == "limbo"


@pytest.mark.requirement("PC-20", "PC-22", "PC-33", "PC-78")
def test_its_status_follows_its_approval_and_nothing_else(world: World) -> None:
    for verb in (agents.pause, agents.resume, agents.terminate):
        for caller in (world.company.board, world.company.ceo.caller):
            for agent in (world.agent, world.for_outcome):
                assert world.door(caller, verb, agent=agent["id"]) == "conflict", verb.name
                with pytest.raises(Conflict, match=r"pending approval|awaits approval"):
                    world.company.call(caller, verb, agent=agent["id"])
    assert seen(world.company, world.approval)["status"] == "pending"


@pytest.mark.requirement("PC-20")
def test_its_configuration_stays_as_it_was_asked_for(world: World) -> None:
    company = world.company
    change: dict[str, Any] = {"agent": world.id, "changes": {"prompt": "Other"}}
    assert world.door(company.board, configuration.change, **change) == "conflict"
    assert world.door(company.ceo.caller, configuration.propose, **change) == "conflict"
    assert (
        world.door(company.board, configuration.rollback, agent=world.id, revision="1")
        == "conflict"
    )
    shown = company.call(company.board, configuration.show, agent=world.id)
    assert (shown["revision"], shown["prompt"]) == (1, "")


def test_it_gets_no_permissions_and_no_rights(world: World) -> None:
    company = world.company
    for given in ({"can_create": True}, {"level": "boss"}):
        assert world.door(company.board, permissions.change, agent=world.id, **given) == "conflict"
    file = company.file(company.board)
    for resource, level in ((f"kb_file:{file['id']}", "read"), ("approval.decide", "use")):
        assert (
            world.door(
                company.board,
                grants.give,
                company=company.id,
                to="limbo",
                resource=resource,
                level=level,
            )
            == "conflict"
        )
    assert company.sql("SELECT count(*) FROM grants WHERE holder_id = ?", world.id) == [(0,)]


OPERATIONS: tuple[dict[str, Any], ...] = (
    {"op": "move", "agent": "limbo", "to": "peer"},
    {"op": "move", "agent": "limbo", "to": "board"},
    {"op": "move", "agent": "peer", "to": "limbo"},
    {"op": "insert_layer", "agents": ["limbo"], "name": "layer"},
    {"op": "insert_layer", "agents": ["peer", "limbo"], "name": "layer"},
    {"op": "remove_layer", "agent": "limbo"},
    {"op": "remove_layer", "agent": "ceo"},
    {"op": "seat", "agent": "limbo", "user": "board"},
    {"op": "seat", "agent": "limbo", "adapter_type": "human"},
)


def test_it_is_bound_to_no_channel_and_nobody_asks_for_its_budget(world: World) -> None:
    company = world.company
    about: Any = {"company": company.id, "agent": world.id, "kind": "webhook"}
    assert world.door(company.board, bindings.add, **about, config={}) == "conflict"
    payload = {"agentId": world.id, "budgetMonthlyCents": 100}
    about = {"company": company.id, "kind": "budget", "payload": payload}
    assert world.door(company.ceo.caller, approvals.request, **about) == "conflict"


@pytest.mark.requirement("PC-20")
def test_it_stays_where_it_was_asked_for(world: World) -> None:
    company = world.company
    company.agent("peer")
    for operation in OPERATIONS:
        for verb in (reorganise.preview, reorganise.reorganise):
            reason = world.door(company.board, verb, company=company.id, operations=[operation])
            assert reason == "conflict", operation


def test_it_is_nobodys_boss(world: World) -> None:
    company = world.company
    given: dict[str, Any] = {"company": company.id, "name": "x", "reports_to": "limbo"}
    assert world.door(company.board, agents.create, **given) == "conflict"
    for caller in (company.board, company.ceo.caller):
        given["adapter_type"] = "scripted"
        assert world.door(caller, hiring.hire, **given) == "conflict"


def test_whoever_is_above_it_stays_as_well(world: World) -> None:
    company = world.company
    lead = company.agent("lead", permissions={"canCreateAgents": True})
    below = hire(company, lead.caller, "below")
    assert refusal(company, company.board, agents.terminate, agent=lead.id) == "conflict"
    reject(company, below["approval"])
    company.call(company.board, agents.terminate, agent=lead.id)


@pytest.mark.requirement("PC-40")
def test_all_doors_open_with_the_approval(world: World) -> None:
    company = world.company
    approve(company, world.approval)
    assert company.call(company.board, agents.show, agent=world.id)["status"] == "idle"
    key = Caller(company.call(company.board, agents.create_key, agent=world.id)["token"])
    assert company.call(key, overview.me)["id"] == world.id
    company.call(company.board, agents.wake, agent=world.id)
    part = work(company, company.ceo.caller, company.ceo.id)
    company.call(company.ceo.caller, delegation.delegate, outcome=part, to="limbo")
    company.call(company.board, permissions.change, agent=world.id, can_create=True)
    company.call(company.board, configuration.change, agent=world.id, changes={"prompt": "Go."})
    company.call(company.board, agents.pause, agent=world.id)
    company.call(company.board, agents.resume, agent=world.id)
    run = company.app.ids.new()
    company.call(as_system(), runs.start, agent=world.id, run=run, workspace=None)
