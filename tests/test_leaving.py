"""A person who is removed from a company keeps nothing there, also as a member of another one."""

from typing import Any

import pytest

from remit.errors import Unauthenticated
from remit.services.connections import notices
from remit.services.identity import Caller
from remit.services.organisation import agents, reorganise
from remit.services.people import users
from remit.services.record import events
from remit.services.screens import needs_you, overview
from tests.company import Company, Member
from tests.organisation import refusal

pytestmark = [pytest.mark.requirement("FX-81"), pytest.mark.requirement("BX-07")]


class Leaver:
    """Ann: board member of two companies, in a seat of the first one, with keys of its agents."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.lead, self.dev = company.agent("lead"), company.agent("dev")
        self.caller = company.user("ann")
        self.there = company.second_company().id
        company.call(company.board, users.add, company=self.there, name="ann")
        seat = {"op": "seat", "agent": "lead", "user": "ann"}
        company.call(company.board, reorganise.reorganise, company=company.id, operations=[seat])
        self.seat_key = self.key(self.lead)
        self.dev_key = self.key(self.dev)
        hook: Any = {"company": company.id, "url": "https://pager.example.org/x"}
        company.call(self.caller, notices.set_webhook, **hook)

    def key(self, agent: Member) -> Caller:
        made = self.company.call(self.caller, agents.create_key, agent=agent.id)
        return Caller(made["token"])

    def leave(self) -> None:
        company = self.company
        company.call(company.board, users.remove, company=company.id, user="ann")


@pytest.fixture
def ann(company: Company) -> Leaver:
    return Leaver(company)


def test_a_member_of_another_company_who_was_removed_here_makes_no_keys(ann: Leaver) -> None:
    company = ann.company
    about: Any = {"agent": ann.lead.id}
    assert company.call(ann.caller, agents.create_key, **about)["token"]  # a control
    ann.leave()
    # Ann still signs in, for the other company.
    assert company.call(ann.caller, needs_you.listing, company=ann.there) == []
    for verb in (agents.create_key, agents.keys, agents.show):
        assert refusal(company, ann.caller, verb, **about) == "not_found"
    for row in company.sql("SELECT seat_user_id FROM agents"):
        assert row == (None,)


def test_a_seat_that_stayed_in_the_database_opens_nothing_either(ann: Leaver) -> None:
    """As instances of earlier versions have it."""
    company = ann.company
    person = company.sql("SELECT id FROM users WHERE name = 'ann'")[0][0]
    ann.leave()
    company.sql("UPDATE agents SET seat_user_id = ? WHERE id = ?", person, ann.lead.id)
    assert refusal(company, ann.caller, agents.create_key, agent=ann.lead.id) == "not_found"
    # Who comes back as somebody who looks has no seat to act from.
    company.call(company.board, users.add, company=company.id, name="ann", role="observer")
    assert refusal(company, ann.caller, agents.create_key, agent=ann.lead.id) == "observer"


def test_keys_that_they_made_end_and_those_of_others_stay(ann: Leaver) -> None:
    company = ann.company
    for key, agent in ((ann.seat_key, ann.lead), (ann.dev_key, ann.dev)):
        assert company.call(key, overview.me)["id"] == agent.id
    ann.leave()
    for key in (ann.seat_key, ann.dev_key):
        with pytest.raises(Unauthenticated):
            company.call(key, overview.me)
    assert company.call(ann.dev.caller, overview.me)["id"] == ann.dev.id  # made by the board
    record = company.call(company.board, events.listing, company=company.id)
    (event,) = (one for one in record if one["action"] == "user.remove")
    assert event["details"]["seats"] == [ann.lead.id]
    assert set(event["details"]["keys_of"]) == {ann.dev.id}


def test_nothing_they_had_comes_back_with_them(ann: Leaver) -> None:
    company = ann.company
    ann.leave()
    company.call(company.board, users.add, company=company.id, name="ann")
    assert company.call(ann.caller, notices.show, company=company.id)["webhook"] is None
    shown = company.call(company.board, agents.show, agent=ann.lead.id)
    assert shown["seat_user_id"] is None
