"""Short ids, as lists show them: the random end of an id, which names it wherever one is wanted."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from remit.clock import MINUTE
from remit.entrypoints.cli.session import pick
from remit.errors import BadInput, NotFound, RemitError
from remit.ids import Ids, is_id, is_part_of, looks_like_id, short
from remit.services.execution import runs
from remit.services.governance import approvals
from remit.services.hiring import hiring
from remit.services.knowledge import files
from remit.services.messaging import pending_items, questions, schedules, threads
from remit.services.organisation import agents
from remit.services.people import companies
from remit.services.record import events
from remit.services.rights import grants
from remit.services.work import outcomes
from remit.store.engine.migrate import is_sqlite
from remit.store.engine.statement import POSTGRESQL, SQLITE
from remit.store.record.short_ids import BY_SHORT_ID
from remit.testing import VirtualClock
from tests.company import Company
from tests.mailing import send
from tests.organisation import refusal

#: Made a minute apart, and the same at the end.
TWINS = ("01890000-0000-7000-8000-0123456789ab", "01890001-0000-7000-8000-0123456789ab")
ASKING: dict[str, Any] = {"require_board_approval_for_new_agents": True}


@given(st.lists(st.integers(0, 2 * MINUTE), min_size=1, max_size=300))
def test_a_short_id_means_one_whatever_was_made_beside_it(moments: list[int]) -> None:
    clock = VirtualClock()
    ids = Ids(clock)
    made = []
    for moment in moments:
        clock.advance(moment if moment % 3 == 0 else 0)  # most are made at the same moment
        made.append(ids.new())
    entries = [{"id": one, "name": f"agent {number}"} for number, one in enumerate(made)]
    for one in made:
        assert len(short(one)) == 12
        assert looks_like_id(short(one))
        assert not is_id(short(one))
        assert [other for other in made if is_part_of(other, short(one))] == [one]
        for typed in (short(one), short(one).upper(), one, one[:23], one.replace("-", "")):
            assert pick(entries, typed, "agent", "")["id"] == one


def test_what_means_several_is_answered_with_them() -> None:
    entries = [{"id": one, "name": "same"} for one in TWINS]
    for typed in ("0123456789ab", "01234567", "same"):
        with pytest.raises(BadInput) as caught:
            pick(entries, typed, "agent", "")
        assert caught.value.reason == "ambiguous"
        assert all(one in caught.value.sentence for one in TWINS)
    assert pick(entries, "01890000", "agent", "")["id"] == TWINS[0]
    with pytest.raises(NotFound):
        pick(entries, "other", "agent", "See the list.")


@pytest.mark.requirement("FX-47")
def test_a_person_who_mistypes_a_name_is_asked_for_the_one_they_mean(company: Company) -> None:
    worker = company.agent("Mira")
    company.agent("Nobody-like-her")
    with pytest.raises(NotFound) as caught:
        company.call(company.board, agents.show, agent="Mirra")
    assert (caught.value.sentence, caught.value.step) == (
        "There is no agent named 'Mirra' here.",
        "Did you mean Mira?",
    )
    company.call(company.board, agents.terminate, agent=worker.id)
    with pytest.raises(NotFound) as caught:
        company.call(company.board, agents.show, agent="Mirra")
    assert "Mira?" not in caught.value.step


def test_every_kind_goes_by_the_end_of_its_id(company: Company) -> None:
    """The clock stands still, so all ids begin alike, as those do that are made together."""
    worker = company.agent("worker")
    company.call(company.board, companies.change, company=company.id, **ASKING)
    for number in range(2):
        company.file(company.board, b"text", f"notes {number}")
        send(company, company.board, "agent:worker", "hello")
        company.call(worker.caller, questions.ask, question="Which?")
        company.call(worker.caller, schedules.add, body="x", cron="* * * * *")
        company.call(company.ceo.caller, hiring.hire, company=None, name=f"new{number}")
        company.run(company.agent(f"busy{number}"))
        file = company.file(company.board)
        company.give(company.board, worker, file, "read")
    shown: dict[str, Any] = {
        "agent": lambda one: company.call(company.board, agents.show, agent=one),
        "approval": lambda one: company.call(company.board, approvals.show, approval=one),
        "file": lambda one: company.call(company.board, files.show, file=one),
        "message": lambda one: company.call(company.board, threads.show, message=one),
        "outcome": lambda one: company.call(company.board, outcomes.show, outcome=one),
        "run": lambda one: company.call(company.board, runs.show, run=one),
    }
    for what, show in shown.items():
        ids = [row[0] for row in company.sql(f"SELECT id FROM {what}s")]  # noqa: S608
        assert len(ids) >= 2
        for one in ids:
            assert show(short(one))["id"] == one, what
            assert show(f"{what}:{short(one)}" if what == "approval" else one)["id"] == one
    for (one,) in company.sql("SELECT id FROM events WHERE action = 'file.create'"):
        why = company.call(company.board, events.why, event=short(one))
        assert why["steps"][0]["id"] == one
    (first, second) = (row[0] for row in company.sql("SELECT id FROM questions ORDER BY id"))
    company.call(company.board, questions.answer, question=short(second), answer="This.")
    company.call(worker.caller, pending_items.cancel, thread=short(first))
    for (one,) in company.sql("SELECT id FROM schedules"):
        company.call(worker.caller, pending_items.cancel, thread=short(one))
    given = company.call(company.board, grants.listing, company=company.id, agent="worker")
    for one in (grant["id"] for grant in given if not grant.get("derived")):
        assert one in company.call(company.board, grants.revoke, grant=short(one))["revoked"]


def test_an_outcome_shows_its_origin_by_what_its_list_shows(small: Company) -> None:
    (one,) = small.sql("SELECT id FROM outcomes WHERE owner_id = id LIMIT 1")[0]
    why = small.call(small.board, events.why, event=short(one))
    assert why["authorised_by"] == "user:board"


def test_the_end_of_an_id_means_what_the_caller_can_see(small: Company) -> None:
    neighbour = small.second_company()
    hidden = small.file(small.board, b"text", "hidden", unlisted=True)
    for caller in (neighbour.board, neighbour.agent.caller):
        for verb, name, one in (
            (files.show, "file", hidden["id"]),
            (agents.show, "agent", small.ceo.id),
            (outcomes.show, "outcome", small.ceo.id),
        ):
            assert refusal(small, caller, verb, **{name: short(one)}) == "not_found"
    worker = small.agent("worker")
    assert refusal(small, worker.caller, files.show, file=short(hidden["id"])) == "not_found"


def test_what_is_hidden_sounds_as_if_it_were_not_there_however_it_is_named(
    small: Company,
) -> None:
    worker, stranger = small.agent("worker"), small.agent("stranger")
    hidden = small.file(small.board, b"text", "hidden", unlisted=True)
    asked = small.call(worker.caller, questions.ask, question="Which?")
    planned = small.call(worker.caller, schedules.add, body="x", cron="* * * * *")
    sent = send(small, small.board, "agent:worker", "hello")
    part = small.call(worker.caller, outcomes.create, parent=worker.id, title="A part")
    small.call(small.board, companies.change, company=small.id, **ASKING)
    hire = small.call(small.ceo.caller, hiring.hire, company=None, name="new")["approval"]
    given = small.give(small.board, worker, hidden, "read")
    tried: list[tuple[Any, dict[str, Any], str]] = [
        (files.show, {}, hidden["id"]),
        (questions.answer, {"answer": "This."}, asked["id"]),
        (pending_items.cancel_question, {}, asked["id"]),
        (pending_items.cancel_schedule, {}, planned["id"]),
        (threads.show, {}, sent["id"]),
        (pending_items.cancel_message, {}, sent["id"]),
        (outcomes.show, {}, part["id"]),
        (approvals.show, {}, hire["id"]),
        (grants.revoke, {}, given["id"]),
    ]
    for verb, more, one in tried:
        name = next(iter(verb.parameters))
        answers = set()
        for named in (one, one.upper(), short(one), small.app.ids.new(), "0123456789ab"):
            with pytest.raises(RemitError) as caught:
                small.call(stranger.caller, verb, **{name: named}, **more)
            error = caught.value
            answers.add((error.reason, error.sentence, error.step, str(error.details)))
        assert len(answers) == 1, answers
        assert answers.pop()[0] == "not_found"
    denied = small.sql(
        "SELECT resource FROM events WHERE allowed = 0 AND actor_id = ?", stranger.id
    )
    assert {resource.split(":")[1] for (resource,) in denied} == {one for _, _, one in tried}


def test_a_part_of_an_id_does_not_list_what_is_hidden(small: Company) -> None:
    """Ids begin with the time, so the beginning of one is that of all that was made with it."""
    stranger, worker = small.agent("stranger"), small.agent("worker")
    file = small.file(small.board)
    given = [small.give(small.board, worker, file, level)["id"] for level in ("read", "write")]
    (event, _) = (row[0] for row in small.sql("SELECT id FROM events ORDER BY seq DESC LIMIT 2"))
    for verb, one in ((grants.revoke, given[0]), (events.why, event)):
        name = next(iter(verb.parameters))
        assert refusal(small, small.board, verb, **{name: one[:13]}) == "ambiguous"
        for caller in (stranger.caller, small.user(f"over{name}", scope="stranger")):
            assert refusal(small, caller, verb, **{name: one[:13]}) == "not_found"


def test_who_may_only_look_is_told_so_however_it_is_named(small: Company) -> None:
    observer = small.user("watcher", "observer")
    asked = small.call(small.agent("worker").caller, questions.ask, question="Which?")["id"]
    for named in (asked, short(asked)):
        assert refusal(small, observer, pending_items.cancel, thread=named) == "observer"


def test_somebody_with_several_companies_need_not_say_which(small: Company) -> None:
    """A list over all companies shows ids of all; the board has a part in both."""
    small.second_company()
    file = small.file(small.board)
    sent = send(small, small.board, "agent:ceo", "hello", company=small.id)
    assert small.call(small.board, files.show, file=short(file["id"]))["id"] == file["id"]
    assert small.call(small.board, threads.show, message=short(sent["id"]))["id"] == sent["id"]
    assert refusal(small, small.board, files.show, file="0123456789ab") == "not_found"


def test_twins_are_named_and_nothing_is_done(
    small: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(small.app.ids, "_chance", lambda _: 0x0123456789AB)
    twins = sorted(small.file(small.board)["id"] for _ in range(2))
    assert short(twins[0]) == short(twins[1]) == "0123456789ab"
    with pytest.raises(RemitError) as caught:
        small.call(small.board, files.show, file=short(twins[0]))
    assert caught.value.reason == "ambiguous"
    assert caught.value.details == {"candidates": twins}
    assert all(twin in caught.value.sentence for twin in twins)
    assert small.call(small.board, files.show, file=twins[1])["id"] == twins[1]
    assert refusal(small, small.board, files.show, file="not an id") == "invalid"


def test_a_short_id_is_found_by_an_index(company: Company) -> None:
    """Whatever else is in the table: a caller's transaction does not wait for a walk over it."""
    sqlite = is_sqlite(company.url)
    dialect, explain = (SQLITE, "EXPLAIN QUERY PLAN ") if sqlite else (POSTGRESQL, "EXPLAIN ")
    if not sqlite:
        company.sql("SET enable_seqscan = off")  # of a small table the whole is read sooner
    for what, statement in BY_SHORT_ID.items():
        sql, constants = statement.compiled(dialect)
        given = {**constants, "low": "0123456789ab", "high": "0123456789abg", "company": "x"}
        for name, value in given.items():
            mark = f":{name}" if sqlite else f"%({name})s"
            sql = sql.replace(mark, str(value) if isinstance(value, int) else f"'{value}'")
        plan = " ".join(str(row) for row in company.sql(explain + sql))
        assert f"ix_{what}s_short_id" in plan, (sql, plan)
