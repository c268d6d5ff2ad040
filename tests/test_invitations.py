"""Invitations, tokens of one's own, and signing in without a shell."""

import re
from typing import Any

import pytest

from remit.clock import DAY, HOUR, MINUTE, moment, to_iso
from remit.errors import BadInput, Conflict, NotFound, Refused, Unauthenticated
from remit.ids import token_digest
from remit.services.identity import Caller, as_system
from remit.services.organisation import agents
from remit.services.people import sessions, tokens, users
from remit.services.record import events
from remit.testing.clock import VirtualClock
from tests.company import Company, keyed


def opened(company: Company, link: str) -> Caller:
    return Caller(company.call(as_system(), sessions.redeem, link=link)["token"])


@pytest.mark.requirement("FX-49")
def test_who_is_new_gets_a_link_that_signs_them_in_once(company: Company) -> None:
    asked: dict[str, Any] = {
        "company": company.id,
        "name": "ann",
        "role": "observer",
        "scope": "ceo",
    }
    made = company.call(keyed(company.board, "k"), tokens.invite, **asked)
    again = company.call(keyed(company.board, "k"), tokens.invite, **asked)
    assert again == {**made, "token": None}
    with pytest.raises(Unauthenticated):
        company.call(Caller(made["token"]), users.me)  # it opens a session and nothing else
    session = opened(company, made["token"])
    assert company.call(session, users.me)["name"] == "ann"
    with pytest.raises(Unauthenticated):
        opened(company, made["token"])
    with pytest.raises(Conflict):
        company.call(company.board, tokens.invite, **asked)
    with pytest.raises(Refused):
        company.call(session, tokens.invite, company=company.id, name="eve")


def test_a_link_ends_by_itself_or_when_it_is_revoked_or_another_is_made(
    company: Company, clock: VirtualClock
) -> None:
    def invited(name: str) -> dict[str, Any]:
        return company.call(company.board, tokens.invite, company=company.id, name=name)

    late, revoked, replaced = invited("ann"), invited("bea"), invited("cem")
    listed = company.call(company.board, tokens.links, company=company.id)
    assert {one["id"] for one in listed} == {one["link_id"] for one in (late, revoked, replaced)}
    assert not any("token" in one or "digest" in one for one in listed)
    company.call(
        company.board, users.revoke_token, company=company.id, user="bea", token=revoked["link_id"]
    )
    fresh = company.call(
        company.board, tokens.create_link, company=company.id, user="cem", hours=200
    )
    with pytest.raises(Unauthenticated):
        opened(company, replaced["token"])  # not only because its time is over
    clock.advance(tokens.USUAL_HOURS * HOUR)
    for one in (late, revoked, replaced):
        with pytest.raises(Unauthenticated):
            opened(company, one["token"])
    assert company.call(opened(company, fresh["token"]), users.me)["name"] == "cem"
    for hours in (0, tokens.MOST_HOURS + 1, -1):
        with pytest.raises(BadInput):
            company.call(
                company.board,
                tokens.create_link,
                company=company.id,
                user="cem",
                hours=hours,
            )


def test_no_board_gets_a_link_that_opens_what_is_not_theirs(company: Company) -> None:
    elsewhere = company.second_company()
    company.user("ann", "observer")
    made = company.call(elsewhere.board, tokens.invite, company=elsewhere.id, name="ann")
    assert (made["known"], made["token"]) == (True, None)
    for name in ("ann", "board"):
        for verb in (users.create_token, tokens.create_link):
            with pytest.raises(Conflict):
                company.call(elsewhere.board, verb, company=elsewhere.id, user=name)
    # Who is board of all these companies may.
    assert company.token_of("ann").token


def test_a_link_that_somebody_kept_ends_when_its_person_gets_a_part_elsewhere(
    company: Company,
) -> None:
    elsewhere = company.second_company()
    kept = company.call(elsewhere.board, tokens.invite, company=elsewhere.id, name="ann")
    company.call(company.board, users.add, company=company.id, name="ann")
    with pytest.raises(Unauthenticated):
        opened(company, kept["token"])


@pytest.mark.parametrize("role", ["observer", "board"])
def test_whoever_is_not_board_of_the_whole_invites_nobody(company: Company, role: str) -> None:
    who = company.user("ann", role, scope="ceo" if role == "board" else None)
    for verb, given in (
        (tokens.invite, {"name": "eve"}),
        (tokens.create_link, {"user": "board"}),
    ):
        with pytest.raises((Refused, NotFound)):
            company.call(who, verb, company=company.id, **given)


def test_a_person_makes_and_ends_tokens_of_their_own(company: Company, clock: VirtualClock) -> None:
    made = company.call(company.board, tokens.invite, company=company.id, name="ann")
    session = opened(company, made["token"])
    token = company.call(session, tokens.create, label="my tablet", days=30)
    mine = Caller(token["token"])
    assert company.call(mine, users.me)["name"] == "ann"
    assert company.call(Caller(company.call(mine, sessions.open_)["token"]), users.me)
    assert "my tablet" in {one["label"] for one in company.call(session, tokens.listing)}
    with pytest.raises(NotFound):
        company.call(company.user("eve", "observer"), tokens.revoke, token=token["id"])
    company.call(session, tokens.revoke, token=token["id"])
    with pytest.raises(Unauthenticated):
        company.call(mine, users.me)
    for days in (0, 4000):
        with pytest.raises(BadInput, match="days must be from 1"):
            company.call(session, tokens.create, days=days)
    later = Caller(company.call(session, tokens.create, days=1)["token"])
    clock.advance(DAY)
    with pytest.raises(Unauthenticated):
        company.call(later, users.me)


def limited(company: Company, clock: VirtualClock, user: str = "board") -> Caller:
    """A person's token that is good for an hour."""
    about: Any = {"company": company.id, "user": user, "expires_at": to_iso(clock.now() + HOUR)}
    return Caller(company.call(company.board, users.create_token, **about)["token"])


def all_it_makes(company: Company, caller: Caller) -> list[Caller]:
    """What comes of every verb that makes something to come with."""

    def made(verb: Any, **given: Any) -> str:
        return str(company.call(caller, verb, **given)["token"])

    here: Any = {"company": company.id}
    links = [
        made(sessions.create_link),
        made(tokens.invite, **here, name=f"new-{token_digest(caller.token)[:8]}"),
        made(tokens.create_link, **here, user="bea"),
    ]
    lasting = [
        made(tokens.create),
        made(users.create_token, **here, user="bea"),
        made(agents.create_key, agent="ceo"),
        made(sessions.open_),
    ]
    return [*map(Caller, lasting), *(opened(company, one) for one in links)]


def is_good(company: Company, caller: Caller) -> bool:
    try:
        return bool(company.call(caller, users.me))
    except Unauthenticated:
        return False


def test_nothing_that_a_token_makes_outlives_it(company: Company, clock: VirtualClock) -> None:
    company.user("bea")
    first = limited(company, clock)
    clock.advance(20 * MINUTE)
    made = all_it_makes(company, first)
    people = [one for one in made if company.call(one, users.me)["kind"] == "user"]
    made += [later for one in people for later in all_it_makes(company, one)]
    assert len(made) == 7 + 6 * 7
    clock.advance(39 * MINUTE)
    assert all(is_good(company, one) for one in made)
    clock.advance(MINUTE)
    assert not any(is_good(company, one) for one in made)


def test_what_would_outlive_its_maker_is_refused_and_says_until_when(
    company: Company, clock: VirtualClock
) -> None:
    company.user("bea")
    here: Any = {"company": company.id}
    end, late = (to_iso(clock.now() + HOUR + more) for more in (0, 1))
    token = limited(company, clock)
    for caller in (token, Caller(company.call(token, sessions.open_)["token"])):
        for verb, given in (
            (tokens.create, {"days": 1}),
            (users.create_token, {**here, "user": "bea", "expires_at": late}),
            (agents.create_key, {"agent": "ceo", "expires_at": clock.now() + HOUR + 1}),
            (tokens.invite, {**here, "name": "eve", "hours": 2}),
            (tokens.create_link, {**here, "user": "bea", "hours": 2}),
        ):
            with pytest.raises(BadInput, match=re.escape(moment(clock.now() + HOUR))) as refused:
                company.call(caller, verb, **given)
            assert "sign in with what lasts longer" in refused.value.step
        at_last = company.call(caller, users.create_token, **here, user="bea", expires_at=end)
        assert at_last["expires_at"] == end
    # What lasts for ever makes what lasts longer than the session in between, and no surprises.
    session = opened(company, company.call(company.board, sessions.create_link)["token"])
    year = company.call(session, tokens.create, days=tokens.MOST_DAYS)
    assert year["expires_at"] == to_iso(clock.now() + tokens.MOST_DAYS * DAY)
    assert company.call(session, users.create_token, **here, user="bea")["expires_at"] is None
    usual = company.call(session, tokens.create)
    assert usual["expires_at"] == to_iso(clock.now() + tokens.USUAL_DAYS * DAY)


def test_a_revoked_token_takes_what_its_person_opened_with_it_along(company: Company) -> None:
    """Sessions and unused links; not tokens, so that a new one can take the place of an old one."""
    ann = company.user("ann")
    (old,) = company.call(ann, tokens.listing)
    by_token, beside = (Caller(company.call(ann, sessions.open_)["token"]) for _ in range(2))
    by_link = opened(company, company.call(by_token, sessions.create_link)["token"])
    unused = company.call(by_link, sessions.create_link)["token"]
    next_one = Caller(company.call(by_link, tokens.create)["token"])
    later = Caller(company.call(next_one, sessions.open_)["token"])
    made = company.call(ann, tokens.invite, company=company.id, name="eve")
    eve = opened(company, made["token"])
    company.call(beside, sessions.end, session=beside.token)
    assert is_good(company, by_link)  # the end of one session is the end of nothing else
    company.call(later, tokens.revoke, token=old["id"])
    assert not any(is_good(company, one) for one in (ann, by_token, by_link))
    with pytest.raises(Unauthenticated):
        opened(company, unused)
    assert all(is_good(company, one) for one in (next_one, later, eve))
    (mine,) = (one for one in company.call(later, tokens.listing) if not one["revoked_at"])
    about: Any = {"company": company.id, "user": "ann", "token": mine["id"]}
    company.call(company.board, users.revoke_token, **about)
    assert not any(is_good(company, one) for one in (next_one, later))


def test_no_agent_signs_in_or_has_tokens_of_a_person(company: Company) -> None:
    key = company.agent("ada").caller
    for verb in (sessions.open_, tokens.create):
        with pytest.raises(NotFound):
            company.call(key, verb)
    with pytest.raises(NotFound):
        company.call(key, tokens.listing)


def test_no_event_holds_a_link_or_a_token(company: Company) -> None:
    made = company.call(company.board, tokens.invite, company=company.id, name="ann")
    token = company.call(opened(company, made["token"]), tokens.create)
    told = str(company.call(company.board, events.listing, company=company.id))
    assert made["token"] not in told
    assert token["token"] not in told
