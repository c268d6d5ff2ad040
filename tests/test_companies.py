"""Companies: their names, their boundary, the people with a part in them."""

from collections.abc import Callable
from typing import Any

import pytest

from remit.clock import SystemClock
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound, Refused, Unauthenticated
from remit.services.execution import runs
from remit.services.identity import Caller
from remit.services.knowledge import files
from remit.services.organisation import agents
from remit.services.people import companies, users
from remit.services.record import events
from remit.services.rights import grants
from remit.services.work import outcomes
from tests.company import Company


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


def test_a_first_start_makes_a_company_with_a_root_agent_whose_boss_is_a_person(
    company: Company,
) -> None:
    ceo = company.call(company.board, agents.show, agent="ceo")
    me = company.call(company.board, users.me)
    assert (ceo["reports_to"], ceo["boss_user_id"]) == (None, me["id"])


def test_a_second_start_changes_nothing(company: Company) -> None:
    before = company.call(company.board, events.verify, company=company.id)
    assert company.wait(company.app.first_start()) is False
    assert company.call(company.board, events.verify, company=company.id) == before


def test_a_lost_board_token_is_replaced_at_the_next_start(company: Company) -> None:
    company.app.settings.board_token_file.unlink()
    company.wait(company.app.first_start())
    renewed = Caller(company.app.settings.board_token_file.read_text().strip())
    assert renewed.token != company.board.token
    assert company.call(renewed, users.me) == company.call(company.board, users.me)


def test_company_names_are_unique_without_regard_to_case(company: Company) -> None:
    company.call(company.board, companies.create, name="Acme")
    with pytest.raises(AlreadyExists):
        company.call(company.board, companies.create, name="ACME")
    with pytest.raises(AlreadyExists, match="'acme'"):
        company.call(company.board, companies.change, company=company.id, name="acme")
    company.call(company.board, companies.change, company="Acme", name="ACME")


def test_only_people_are_told_how_far_records_are(company: Company) -> None:
    positions = company.call(company.board, companies.positions)
    assert positions[company.id] > 0
    with pytest.raises(BadInput, match="for people"):
        company.call(company.ceo.caller, companies.positions)


def test_only_operators_create_companies(company: Company) -> None:
    person = company.user("ann")
    with pytest.raises(Refused) as refused:
        company.call(person, companies.create, name="Acme")
    assert refused.value.reason == "not_operator"


def test_a_company_can_be_renamed_by_its_board_alone(company: Company) -> None:
    company.call(company.board, companies.change, company=company.id, name="New name")
    assert company.call(company.board, companies.show, company="new NAME")["id"] == company.id
    with pytest.raises(Refused):
        company.call(company.ceo.caller, companies.change, company=company.id, name="Mine")


@pytest.mark.parametrize("name", ["", "   ", "a" * 101, "a\x00b", "\ud800", 7, None, "a\u202eb"])
def test_bad_company_names_are_refused(company: Company, name: object) -> None:
    with pytest.raises(BadInput):
        company.call(company.board, companies.create, name=name)  # type: ignore[arg-type]


@pytest.mark.requirement("AG-41", "BX-14")
def test_what_belongs_to_another_company_does_not_exist_for_its_neighbours(
    company: Company,
) -> None:
    file = company.file(company.ceo.caller, b"ours", "ours")
    grant = company.call(company.ceo.caller, grants.listing, company=None)[0]
    event = company.call(company.board, events.listing, company=company.id, limit=1)[0]
    run = company.run(company.ceo)
    key = company.call(company.board, agents.keys, agent=company.ceo.id)[0]["id"]
    neighbour = company.second_company()
    other = neighbour.agent
    attempts: list[Callable[[Caller], Any]] = [
        lambda who: company.call(who, companies.show, company=company.id),
        lambda who: company.call(who, companies.show, company="My company"),
        lambda who: company.call(who, companies.change, company=company.id, name="x"),
        lambda who: company.call(who, users.listing, company=company.id),
        lambda who: company.call(who, users.add, company=company.id, name="x"),
        lambda who: company.call(who, agents.listing, company=company.id),
        lambda who: company.call(who, agents.show, agent=company.ceo.id),
        lambda who: company.call(who, agents.show, agent="ceo"),
        lambda who: company.call(who, agents.terminate, agent=company.ceo.id),
        lambda who: company.call(who, agents.create_key, agent=company.ceo.id),
        lambda who: company.call(who, agents.keys, agent=company.ceo.id),
        lambda who: company.call(who, agents.revoke_key, agent=company.ceo.id, key=key),
        lambda who: company.call(who, agents.create, company=company.id, name="x"),
        lambda who: company.call(who, outcomes.show, outcome=company.ceo.id),
        lambda who: company.call(who, outcomes.close, outcome=company.ceo.id, rationale="x"),
        lambda who: company.call(who, runs.end, run=run.id),
        lambda who: company.call(
            who, runs.start, agent=company.ceo.id, run=company.app.ids.new(), workspace=None
        ),
        lambda who: company.read(who, file["id"]),
        lambda who: company.write(who, file, b"x"),
        lambda who: company.call(who, files.show, file=file["id"]),
        lambda who: company.call(who, files.show, file=f"kb://{file['id']}"),
        lambda who: company.call(who, files.show, file=file["id"][:20]),
        lambda who: company.call(who, files.describe, file=file["id"], unlisted=True),
        lambda who: company.call(who, files.history, file=file["id"]),
        lambda who: company.call(who, files.accesses, file=file["id"]),
        lambda who: company.call(who, files.browse, company=company.id),
        lambda who: company.call(who, grants.revoke, grant=grant["id"]),
        lambda who: company.give(who, other, file, "read"),
        lambda who: company.call(
            who,
            grants.give,
            company=neighbour.id,
            to=other.id,
            resource=f"kb_file:{file['id']}",
            level="read",
        ),
        lambda who: company.call(who, grants.listing, company=company.id),
        lambda who: company.call(who, grants.listing, company=None, agent=company.ceo.id),
        lambda who: company.call(who, events.listing, company=company.id),
        lambda who: company.call(who, events.verify, company=company.id),
        lambda who: company.call(who, events.why, event=event["id"]),
    ]
    before = company.call(company.board, events.verify, company=company.id)
    for who in (neighbour.board, other.caller):
        for attempt in attempts:
            with pytest.raises(NotFound):
                attempt(who)
    assert company.call(company.board, events.verify, company=company.id) == before
    assert company.found(company.board) == [file["id"]]


def test_a_grant_cannot_name_an_agent_or_outcome_of_another_company(company: Company) -> None:
    neighbour = company.second_company()
    file = company.file(company.board)
    with pytest.raises(NotFound):
        company.give(company.board, neighbour.agent, file, "read")
    with pytest.raises(NotFound):
        company.give(company.board, company.ceo, file, "read", scope=neighbour.agent.id)
    for resource in (f"message:{neighbour.agent.id}", f"outcome:{neighbour.agent.id}"):
        with pytest.raises(NotFound):
            company.call(
                company.board,
                grants.give,
                company=company.id,
                to="ceo",
                resource=resource,
                level="read" if resource.startswith("outcome") else "use",
            )


def test_an_observer_sees_everything_and_changes_nothing(company: Company) -> None:
    file = company.file(company.ceo.caller, b"plan", "plan", unlisted=True)
    observer = company.user("olga", "observer")
    assert company.read(observer, file["id"])[1] == b"plan"
    assert company.found(observer) == [file["id"]]
    attempts: list[Callable[[], Any]] = [
        lambda: company.write(observer, file, b"x"),
        lambda: company.file(observer),
        lambda: company.give(observer, company.ceo, file, "read"),
        lambda: company.call(observer, agents.create, company=company.id, name="x"),
        lambda: company.call(observer, agents.create_key, agent="ceo"),
        lambda: company.call(observer, agents.terminate, agent="ceo"),
        lambda: company.call(observer, users.add, company=company.id, name="x"),
        lambda: company.call(observer, outcomes.close, outcome=company.ceo.id, rationale="x"),
    ]
    for attempt in attempts:
        with pytest.raises(Refused) as refused:
            attempt()
        assert refused.value.reason == "observer"


@pytest.mark.requirement("AG-91")
def test_a_board_member_over_one_part_has_no_say_elsewhere(company: Company) -> None:
    lead = company.agent("lead")
    worker = company.agent("worker", "lead")
    other = company.agent("other")
    inside = company.file(worker.caller, b"in", "inside", unlisted=True)
    outside = company.file(other.caller, b"out", "outside")
    hidden = company.file(other.caller, b"hidden", "hidden", unlisted=True)
    person = company.user("pat", "board", "lead")

    assert company.read(person, inside["id"])[1] == b"in"
    assert company.give(person, lead, inside, "read")["level"] == "read"
    assert company.call(person, agents.create, company=None, name="new", reports_to="worker")
    company.call(person, agents.terminate, agent="new")
    with pytest.raises(Refused) as refused:
        company.read(person, outside["id"])
    assert refused.value.reason == "outside_scope"
    with pytest.raises(NotFound):
        company.read(person, hidden["id"])
    for attempt in (
        lambda: company.give(person, lead, outside, "read"),
        lambda: company.give(person, other, inside, "read"),
        lambda: company.call(person, agents.create, company=None, name="x", reports_to="other"),
        lambda: company.call(person, agents.create, company=None, name="x"),
        lambda: company.call(person, agents.terminate, agent="other"),
        lambda: company.call(person, users.add, company=company.id, name="x"),
        lambda: company.call(person, events.listing, company=None),
        lambda: company.call(person, companies.change, company=company.id, name="x"),
        lambda: company.call(
            person,
            grants.give,
            company=None,
            to="lead",
            resource="agent.create",
            level="use",
        ),
    ):
        with pytest.raises(Refused) as refused:
            attempt()
        assert refused.value.reason == "outside_scope"


def test_a_person_who_leaves_loses_their_tokens_and_the_last_board_member_stays(
    company: Company,
) -> None:
    person = company.user("ann")
    company.call(company.board, users.remove, company=company.id, user="ann")
    with pytest.raises(Unauthenticated):
        company.call(person, users.me)
    with pytest.raises(Conflict):
        company.call(company.board, users.remove, company=company.id, user="board")


def test_the_beginning_of_an_id_is_enough_wherever_an_id_is(company: Company) -> None:
    lead = company.agent("lead")
    file = company.file(company.ceo.caller)
    person = company.user("ann")
    for who in (person, company.ceo.caller):
        assert company.call(who, companies.show, company=company.id[:23])["id"] == company.id
        assert company.call(who, agents.show, agent=lead.id[:23])["id"] == lead.id
        assert company.call(who, agents.show, agent=lead.id[:23].upper())["id"] == lead.id
        assert company.call(who, outcomes.show, outcome=lead.id[:23])["id"] == lead.id
        assert company.call(who, files.show, file=file["id"][:23])["id"] == file["id"]
        short = {**file, "id": file["id"][:23]}
        given = company.give(who, lead, short, "read", scope=lead.id[:23])
        assert (given["resource"], given["scope"]) == (f"kb_file:{file['id']}", lead.id)
        answer = company.call(who, grants.revoke, grant=given["id"][:23])
        assert answer["id"] == given["id"]


def test_the_beginning_of_two_ids_is_ambiguous_and_too_short_a_one_is_refused(
    company: Company,
) -> None:
    common = company.agent("lead").id[:8]
    company.agent("other")
    company.file(company.board)
    company.file(company.board)
    with pytest.raises(BadInput, match="Several"):
        company.call(company.board, files.show, file=company.found(company.board)[0][:8])
    with pytest.raises(BadInput, match="Several"):
        company.call(company.board, outcomes.show, outcome=common)
    with pytest.raises(BadInput):
        company.call(company.board, files.show, file=common[:7])


@pytest.mark.parametrize("text", ["a\x00b", "\ud800", "x" * 5000, "", "'; DROP TABLE agents; --"])
def test_hostile_names_and_ids_are_not_found_or_bad_input(company: Company, text: str) -> None:
    file = company.file(company.board)
    for attempt in (
        lambda: company.call(company.board, companies.show, company=text),
        lambda: company.call(company.board, agents.show, agent=text),
        lambda: company.call(company.board, users.tokens, company=company.id, user=text),
        lambda: company.call(company.board, users.revoke_token, company=company.id, token=text),
        lambda: company.call(company.board, agents.revoke_key, agent="ceo", key=text),
        lambda: company.call(company.board, files.show, file=text),
        lambda: company.call(company.board, outcomes.show, outcome=text),
        lambda: company.call(company.board, grants.revoke, grant=text),
        lambda: company.call(company.board, events.why, event=text),
        lambda: company.give(company.board, company.ceo, file, "read", scope=text),
        lambda: company.call(
            company.board,
            grants.give,
            company=company.id,
            to=text,
            resource=f"kb_file:{file['id']}",
            level="read",
        ),
    ):
        with pytest.raises((NotFound, BadInput)):
            attempt()


def test_numbers_that_no_database_can_hold_are_bad_input(company: Company) -> None:
    with pytest.raises(BadInput):
        company.call(company.board, events.listing, company=company.id, after=1 << 80)
