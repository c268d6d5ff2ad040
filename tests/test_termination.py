"""Ending an agent with everybody below it, in one step."""

import pytest

from remit.errors import Conflict, RemitError, Unauthenticated
from remit.services.identity import Caller
from remit.services.messaging import schedules
from remit.services.organisation import agents, halts
from remit.services.people import companies
from remit.services.rights import grants
from remit.services.screens import needs_you, overview
from remit.services.work import outcomes
from tests import mailing
from tests.company import Answer, Company, Member
from tests.governance import hire as ask_for
from tests.organisation import problems, refusal, shown, work


class Team:
    """ceo ─ head ─ lead ─ dev, and a peer below head."""

    def __init__(self, company: Company) -> None:
        self.head = company.agent("head")
        self.lead = company.agent("lead", "head")
        self.dev = company.agent("dev", "lead")
        self.peer = company.agent("peer", "head")

    @property
    def all(self) -> tuple[Member, ...]:
        return (self.head, self.lead, self.dev, self.peer)


def status(company: Company, who: Member) -> str:
    return str(company.call(company.board, agents.show, agent=who.id)["status"])


def end(company: Company, who: Member, by: Caller | None = None) -> Answer:
    return company.call(by or company.board, agents.terminate, agent=who.id, subtree=True)


@pytest.mark.requirement("HH-41")
def test_a_letter_to_somebody_gone_can_only_be_dismissed(small: Company) -> None:
    dev = small.agent("dev", perpetual=True)
    letter = mailing.send(small, small.board, "agent:dev", "Work.")
    small.call(small.board, agents.terminate, agent=dev.id)
    rows = small.call(small.board, needs_you.listing, company=small.id)
    (row,) = [row for row in rows if row["kind"] == "dead_letter"]
    assert row["next"] == f"remit read {letter['id']} --discard"


def test_a_subtree_ends_in_one_step_and_what_goes_on_is_above_it(company: Company) -> None:
    ceo, team = company.ceo, Team(company)
    goal = work(company, ceo.caller, ceo.id, "Goal")
    shared = work(company, team.dev.caller, team.dev.id, "Shared")
    version = shown(company, shared)["version"]
    company.call(
        company.board,
        outcomes.change,
        outcome=shared,
        version=version,
        parents=[team.dev.id, goal],
    )
    inner = work(company, team.lead.caller, team.lead.id, "Inner")
    run = company.run(team.dev)
    company.call(company.board, agents.pause, agent=team.peer.id)
    done = end(company, team.head, ceo.caller)
    assert [one["name"] for one in done["agents_ended"]] == ["head", "lead", "peer", "dev"]
    for one in team.all:
        assert status(company, one) == "terminated"
        assert shown(company, one.id)["status"] == "closed"
        with pytest.raises(Unauthenticated):
            company.call(one.caller, overview.me)
    with pytest.raises(Unauthenticated):
        company.call(run.caller, overview.me)
    assert shown(company, inner)["status"] == "closed"
    # What is also for something that goes on is its owner's now.
    assert (shown(company, shared)["status"], shown(company, shared)["owner_id"]) == (
        "open",
        ceo.id,
    )
    assert done["outcomes_moved"] == [
        {"id": shared, "title": "Shared", "owner_id": ceo.id, "owner": "ceo"}
    ]
    assert {one["id"] for one in done["outcomes_closed"]} == {
        inner,
        *(one.id for one in team.all),
    }
    assert problems(company) == []


@pytest.mark.requirement("HH-41")
def test_the_preview_says_the_same_and_changes_nothing(company: Company) -> None:
    team = Team(company)
    work(company, team.lead.caller, team.lead.id, "Inner")
    (before,) = company.sql("SELECT count(*) FROM events")
    seen = company.call(company.board, agents.preview_terminate, agent=team.head.id, subtree=True)
    assert company.sql("SELECT count(*) FROM events") == [before]
    assert [status(company, one) for one in team.all] == ["idle"] * 4
    done = end(company, team.head)
    assert seen == {**done, "dry_run": True}


@pytest.mark.requirement("HH-41")
def test_destroying_reaches_descendants_and_never_oneself_or_those_above(company: Company) -> None:
    team, other = Team(company), company.second_company().agent
    for verb in (agents.terminate, agents.preview_terminate):
        for who, whom in (
            (team.head, team.head), (team.lead, team.head), (team.dev, company.ceo),
            (team.peer, team.lead), (company.ceo, company.ceo),
        ):  # fmt: skip
            assert refusal(company, who.caller, verb, agent=whom.id, subtree=True) == (
                "not_below_you"
            )
        for whom in team.all:
            assert refusal(company, other.caller, verb, agent=whom.id, subtree=True) == "not_found"
    # Without the word for it, whoever has reports stays.
    with pytest.raises(Conflict, match="still has reports") as caught:
        company.call(company.board, agents.terminate, agent=team.head.id)
    assert "--subtree" in caught.value.step
    with pytest.raises(Conflict, match="root agent"):
        company.call(company.board, agents.terminate, agent=company.ceo.id, subtree=True)
    assert status(company, team.dev) == "idle"
    end(company, team.lead, team.head.caller)
    assert [status(company, one) for one in team.all] == [
        "idle", "terminated", "terminated", "idle",
    ]  # fmt: skip
    assert refusal(company, company.board, agents.terminate, agent=team.lead.id, subtree=True) == (
        "conflict"
    )


def test_whoever_awaits_approval_below_goes_along_and_the_request_is_withdrawn(
    company: Company,
) -> None:
    team = Team(company)
    company.call(
        company.board,
        companies.change,
        company=company.id,
        require_board_approval_for_new_agents=True,
    )
    company.call(company.board, grants.give, company=company.id, to="lead",
                 resource="agent.create", level="use")  # fmt: skip
    made = ask_for(company, team.lead.caller, "waiting")
    assert end(company, team.head)["agents_ended"][-1]["name"] == "waiting"
    waiting = company.call(company.board, agents.show, agent=made["agent"]["id"])
    assert waiting["status"] == "terminated"
    assert company.sql("SELECT status FROM approvals WHERE id = ?", made["approval"]["id"]) == [
        ("cancelled",)
    ]
    assert problems(company) == []


def test_mail_and_schedules_of_a_subtree_end_with_it(company: Company) -> None:
    team = Team(company)
    company.call(team.dev.caller, schedules.add, body="Look", cron="0 9 * * *")
    mailing.send(company, team.head.caller, "agent:lead", "Do it")
    company.call(company.board, halts.stop, agent=team.lead.id)
    end(company, team.head)
    assert company.sql("SELECT count(*) FROM deliveries WHERE status = 'queued'") == [(0,)]


def test_of_two_who_end_the_same_subtree_one_does(company: Company) -> None:
    team = Team(company)
    gate = company.app.gate
    done = company.together(
        [
            gate(company.board, agents.terminate, agent=team.head.id, subtree=True),
            gate(company.ceo.caller, agents.terminate, agent=team.head.id, subtree=True),
            gate(team.head.caller, agents.terminate, agent=team.lead.id, subtree=True),
        ]
    )
    failed = [one for one in done if isinstance(one, BaseException)]
    assert all(isinstance(one, RemitError) for one in failed)
    assert len(failed) in (1, 2)
    assert {status(company, one) for one in team.all} == {"terminated"}
    assert problems(company) == []


def test_repeating_with_the_same_key_answers_the_same(company: Company) -> None:
    team = Team(company)
    keyed = Caller(company.board.token, key="once")
    first = company.call(keyed, agents.terminate, agent=team.head.id, subtree=True)
    assert company.call(keyed, agents.terminate, agent=team.head.id, subtree=True) == first
