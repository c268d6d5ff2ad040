"""A person who is removed from a company keeps nothing there, also as a member of another one."""

from typing import Any

import pytest

from remit.channels import registry
from remit.errors import RemitError, Unauthenticated
from remit.ids import token_digest
from remit.services.connections import bindings, channels, notices, secrets
from remit.services.identity import Caller, as_system
from remit.services.organisation import agents, reorganise
from remit.services.people import sessions, tokens, users
from remit.services.record import events
from remit.services.screens import needs_you, overview
from tests.company import Answer, Company, Member
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


# ── what a leaver made for others ───────────────────────────────────────────────────────────────


def by_ann(ann: Leaver, verb: Any, **told: Any) -> Answer:
    company = ann.company
    answer: Answer = company.call(ann.caller, verb, company=company.id, **told)
    return answer


def opens(company: Company, link: str) -> bool:
    try:
        company.call(as_system(), sessions.redeem, link=link)
    except Unauthenticated:
        return False
    return True


def works(company: Company, token: str) -> bool:
    try:
        company.call(Caller(token), users.me)
    except Unauthenticated:
        return False
    return True


def writes(company: Company, kind: str, token: str) -> bool:
    """Whether a token of a channel brings mail to its agent."""
    outside = company.app.ids.new()
    told: Any = {"kind": kind, "digest": token_digest(token), "outside": outside, "body": "Hi"}
    try:
        company.call(as_system(), channels.receive, conversation="room", **told)
    except RemitError:
        return False
    return True


def removed(ann: Leaver) -> dict[tuple[str, str], bool]:
    """What the removal says about each credential: whether it ends."""
    company = ann.company
    answer = company.call(company.board, users.remove, company=company.id, user="ann")
    for one in answer["handed_out"]:
        assert one["why"]
        assert one["next_step"]
    return {(one["kind"], one["name"]): one["ends"] for one in answer["handed_out"]}


def test_links_that_they_made_for_others_end(ann: Leaver) -> None:
    company = ann.company
    for name in ("bob", "cyd", "dan"):
        by_ann(ann, users.add, name=name)
    link, control = (by_ann(ann, tokens.create_link, user=name) for name in ("bob", "cyd"))
    assert opens(company, control["token"])  # before
    boards = company.call(company.board, tokens.create_link, company=company.id, user="dan")
    handed_out = removed(ann)
    assert not opens(company, link["token"])
    assert opens(company, boards["token"])  # of somebody else
    # Cyd's session goes on, and is named.
    assert handed_out == {("link", "bob"): True, ("session", "cyd"): False}


def test_tokens_that_they_made_for_others_end_unless_somebody_uses_them(ann: Leaver) -> None:
    company = ann.company
    made = {}
    for name in ("unused", "web", "program", "spare"):
        by_ann(ann, users.add, name=name)
        made[name] = by_ann(ann, users.create_token, user=name)["token"]
    company.call(Caller(made["web"]), sessions.open_)
    company.call(Caller(made["program"]), users.add, company=company.id, name="eli")
    # A second token for somebody who works here with another one.
    company.call(Caller(made["spare"]), users.add, company=company.id, name="flo")
    second = by_ann(ann, users.create_token, user="spare")["token"]
    handed_out = removed(ann)
    still = {name: works(company, token) for name, token in made.items()}
    assert still == {"unused": False, "web": True, "program": True, "spare": False}
    assert not works(company, second)
    assert handed_out["token", "unused"]
    assert not handed_out["token", "web"]
    assert not handed_out["token", "program"]


def test_tokens_of_channels_that_they_bound_end_unless_the_outside_uses_them(ann: Leaver) -> None:
    company = ann.company
    agents_ = {name: company.agent(name) for name in ("silent", "busy", "theirs")}
    told: Any = {"kind": "webhook", "config": {"url": "https://chat.example.org/in"}}
    silent, busy = (by_ann(ann, bindings.add, agent=name, **told) for name in ("silent", "busy"))
    board = {"company": company.id, "agent": agents_["theirs"].id, **told}
    theirs = company.call(company.board, bindings.add, **board)
    assert writes(company, "webhook", busy["token"])
    handed_out = removed(ann)
    assert handed_out == {("channel", "silent"): True, ("channel", "busy"): False}
    assert not writes(company, "webhook", silent["token"])
    assert writes(company, "webhook", busy["token"])
    assert writes(company, "webhook", theirs["token"])
    # The binding itself stays: the agent still writes to the outside.
    rows = company.call(company.board, bindings.listing, company=company.id)
    assert {row["agent_name"] for row in rows} == {"silent", "busy", "theirs"}


def test_the_token_of_a_channel_that_fetches_ends_although_the_channel_is_used(
    ann: Leaver,
) -> None:
    """Nothing outside ever has that token, and with it one could write as anybody there."""
    if "telegram" not in {channel.type for channel in registry.installed.all()}:
        pytest.skip("no extra")
    company = ann.company
    place: Any = {"name": "bot", "source": "env", "place": "REMIT_BOT"}
    company.call(company.board, secrets.put, company=company.id, **place)
    bound = by_ann(
        ann, bindings.add, agent=ann.dev.id, kind="telegram", config={"secretRef": "bot"}
    )
    assert writes(company, "telegram", bound["token"])  # a control
    assert removed(ann) == {("channel", "dev"): True}
    assert not writes(company, "telegram", bound["token"])


def test_the_removal_is_previewed_and_is_on_record(ann: Leaver) -> None:
    company = ann.company
    by_ann(ann, users.add, name="bob")
    link = by_ann(ann, tokens.create_link, user="bob")
    told: Any = {"company": company.id, "user": "ann"}
    seen = company.call(company.board, users.preview_removal, **told)
    assert seen["dry_run"]
    assert seen["handed_out"] == company.call(company.board, users.list_handed_out, **told)
    done = company.call(company.board, users.remove, **told)
    assert done == {**seen, "dry_run": False}
    assert [(one["id"], one["ends"]) for one in done["handed_out"]] == [(link["id"], True)]
    record = company.call(company.board, events.listing, company=company.id)
    (event,) = (one for one in record if one["action"] == "user.remove")
    assert event["details"]["handed_out_ended"] == [f"token:{link['id']}"]
    ended = {one["resource"] for one in record if one["action"] == "token.revoke"}
    assert f"token:{link['id']}" in ended
    assert company.call(company.board, events.verify, company=company.id)["ok"]


def test_what_they_made_in_another_company_stays(ann: Leaver) -> None:
    company = ann.company
    company.call(ann.caller, users.add, company=ann.there, name="gus")
    link = company.call(ann.caller, tokens.create_link, company=ann.there, user="gus")
    assert removed(ann) == {}
    assert opens(company, link["token"])
