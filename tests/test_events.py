"""The record: whole, in order, and leading from an effect back to a person."""

import asyncio
import sqlite3
from dataclasses import fields, replace
from typing import Any

import psycopg
import pytest

from remit.clock import SystemClock
from remit.errors import NotFound, Refused
from remit.model.event import GENESIS, Event
from remit.services.identity import Caller
from remit.services.organisation import agents
from remit.services.record import events
from remit.services.rights import grants
from remit.store.engine.migrate import is_sqlite
from remit.store.record.events import event_hash
from tests.company import Company


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


def verify(company: Company) -> dict[str, object]:
    return company.call(company.board, events.verify, company=company.id)


def faults(company: Company) -> set[tuple[int, str]]:
    found = company.call(company.board, events.verify, company=company.id)["faults"]
    return {(fault["seq"], fault["kind"]) for fault in found}


def busy(company: Company) -> int:
    """Fill the record a little; answers how many events it has."""
    for n in range(6):
        company.file(company.ceo.caller, b"%d" % n)
    count = verify(company)["events"]
    assert isinstance(count, int)
    return count


def unlock(company: Company) -> None:
    """Take the protection off, as somebody can who owns the database."""
    if is_sqlite(company.url):
        company.sql("DROP TRIGGER events_no_update")
        company.sql("DROP TRIGGER events_no_delete")
    else:
        company.sql("DROP TRIGGER events_append_only ON events")


@pytest.mark.requirement("BX-03")
def test_every_event_follows_the_one_before(company: Company) -> None:
    count = busy(company)
    log = company.call(company.board, events.listing, company=company.id, after=0, limit=1000)
    assert [event["seq"] for event in log] == list(range(1, count + 1))
    rows = company.sql("SELECT prev_hash, hash FROM events ORDER BY seq")
    assert [row[0] for row in rows] == [GENESIS, *(row[1] for row in rows[:-1])]
    answer = verify(company)
    assert (answer["ok"], answer["faults"], answer["hash"]) == (True, [], rows[-1][1])


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET reason = 'x' WHERE seq = 1",
        "DELETE FROM events WHERE seq = 1",
        "DELETE FROM events",
    ],
)
def test_the_database_itself_refuses_to_change_the_past(company: Company, statement: str) -> None:
    before = verify(company)
    with pytest.raises((sqlite3.DatabaseError, psycopg.DatabaseError), match="append-only"):
        company.sql(statement)
    assert verify(company) == before


def test_the_whole_record_cannot_be_emptied_at_once(company: Company) -> None:
    if not is_sqlite(company.url):
        with pytest.raises(psycopg.DatabaseError, match="append-only"):
            company.sql("TRUNCATE events")
    assert verify(company)["ok"]


COLUMNS = [
    "id", "at", "actor_kind", "actor_id", "run_id", "action", "resource", "allowed", "reason",
    "basis", "details",
]  # fmt: skip


def test_a_change_to_any_field_is_found_and_named(company: Company) -> None:
    busy(company)
    unlock(company)
    true = "1" if is_sqlite(company.url) else "true"
    values = {
        "id": f"'{company.app.ids.new()}'",
        "at": "at + 1",
        "actor_kind": "'system'",
        "run_id": f"'{company.app.ids.new()}'",
        "allowed": f"NOT (allowed = {true})",
    }
    for column in COLUMNS:
        kept = company.sql(f"SELECT {column} FROM events WHERE seq = 4")[0][0]  # noqa: S608
        value = values.get(column, f"{column} || ' '")
        company.sql(f"UPDATE events SET {column} = {value} WHERE seq = 4")  # noqa: S608
        assert faults(company) == {(4, "changed")}, column
        company.sql(f"UPDATE events SET {column} = ? WHERE seq = 4", kept)  # noqa: S608
        assert faults(company) == set()


@pytest.mark.tampers
@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("DELETE FROM events WHERE seq = 1", {(1, "removed")}),
        ("DELETE FROM events WHERE seq = 4", {(4, "removed")}),
        ("DELETE FROM events WHERE seq IN (4, 5)", {(4, "removed")}),
        ("DELETE FROM events WHERE seq IN (3, 5)", {(3, "removed"), (5, "removed")}),
        ("DELETE FROM events WHERE seq > 5", {(6, "removed")}),
        ("DELETE FROM events", {(1, "removed")}),
        ("UPDATE event_heads SET seq = seq - 1", None),
        ("UPDATE event_heads SET hash = 'x'", None),
        ("UPDATE events SET prev_hash = 'x' WHERE seq = 4", {(4, "reordered"), (4, "changed")}),
        ("UPDATE events SET hash = 'x' WHERE seq = 4", {(4, "changed"), (5, "reordered")}),
    ],
)
def test_removed_and_rewired_events_are_found_and_named(
    company: Company, statement: str, expected: set[tuple[int, str]] | None
) -> None:
    count = busy(company)
    unlock(company)
    company.sql(statement)
    # Tokens that the missing events made are named, too.
    broken = {(seq, kind) for seq, kind in faults(company) if kind != "unrecorded"}
    assert broken == (expected or {(count + 1, "changed")})
    assert verify(company)["ok"] is False


@pytest.mark.tampers
@pytest.mark.requirement("BX-03")
def test_a_record_that_was_built_anew_does_not_have_the_hash_that_somebody_kept(
    small: Company,
) -> None:
    """Who owns the database can chain all of it again; only a hash kept elsewhere shows that."""

    def verified(expect: str | None) -> dict[str, Any]:
        return small.call(small.board, events.verify, company=small.id, expect=expect)

    count = busy(small)
    kept = [row[0] for row in small.sql("SELECT hash FROM events ORDER BY seq")]
    for one in (GENESIS, kept[0], kept[count // 2], kept[-1]):
        assert verified(one)["ok"], one
    foreign = {"seq": count, "kind": "replaced"}
    for one in ("a" * 64, kept[-1][::-1]):
        answer = verified(one)
        assert not answer["ok"]
        (fault,) = answer["faults"]
        assert {**fault, **foreign} == fault
        assert "nowhere in the chain" in fault["sentence"]
    unlock(small)
    small.sql("UPDATE events SET reason = 'x' WHERE seq = 3")
    rows = small.call(small.board, events.listing, company=small.id, after=0, limit=1000)
    previous = GENESIS
    names = [field.name for field in fields(Event)]
    for seq in range(1, len(rows) + 1):
        (row,) = small.sql(f"SELECT {', '.join(names)} FROM events WHERE seq = ?", seq)  # noqa: S608
        event = Event(**{**dict(zip(names, row, strict=True)), "prev_hash": previous})
        event = replace(event, allowed=bool(event.allowed))
        previous = event_hash(event)
        small.sql(
            "UPDATE events SET prev_hash = ?, hash = ? WHERE seq = ?",
            *(event.prev_hash, previous, seq),
        )
    small.sql("UPDATE event_heads SET hash = ? WHERE company_id = ?", previous, small.id)
    assert verified(None)["ok"]
    assert verified(kept[1])["ok"]
    assert not verified(kept[2])["ok"]
    assert not verified(kept[-1])["ok"]


@pytest.mark.tampers
def test_reordered_events_are_found_and_named(company: Company) -> None:
    busy(company)
    unlock(company)
    for old, new in ((4, 1004), (5, 4), (1004, 5)):
        company.sql("UPDATE events SET seq = ? WHERE seq = ?", new, old)
    found = faults(company)
    assert {(4, "changed"), (5, "changed"), (4, "reordered"), (5, "reordered")} <= found


@pytest.mark.tampers
def test_an_invented_event_is_found_and_named(company: Company) -> None:
    count = busy(company)
    columns = "company_id, at, actor_kind, actor_id, run_id, action, resource, allowed, reason,"
    columns += " basis, details, prev_hash, hash"
    company.sql(
        f"INSERT INTO events (seq, id, {columns})"  # noqa: S608
        f" SELECT seq + 1, ?, {columns} FROM events WHERE seq = ?",
        company.app.ids.new(),
        count,
    )
    assert {(count + 1, "changed"), (count + 1, "reordered")} <= faults(company)


def test_the_record_is_whole_at_every_moment_while_it_grows(company: Company) -> None:
    async def check() -> list[bool]:
        done = asyncio.Event()
        answers: list[bool] = []

        async def write() -> None:
            for n in range(60):
                await company.app.library.create(
                    company.ceo.caller, b"%d" % n, company=None, description="x"
                )
            done.set()

        async def watch() -> None:
            while not done.is_set():
                answer = await company.app.gate(company.board, events.verify, company=company.id)
                answers.append(answer["ok"])

        await asyncio.gather(write(), watch(), watch())
        return answers

    answers = company.wait(check())
    assert len(answers) >= 5
    assert all(answers)


def test_each_company_has_a_record_of_its_own(company: Company) -> None:
    neighbour = company.second_company()
    before = verify(company)
    company.call(neighbour.board, agents.create, company=neighbour.id, name="busy")
    assert verify(company) == before
    other = company.call(neighbour.board, events.verify, company=neighbour.id)
    assert other["ok"]


def test_agents_and_observers_of_a_part_do_not_read_the_record(company: Company) -> None:
    lead = company.agent("lead")
    partial = company.user("pat", "observer", "lead")
    for caller in (company.ceo.caller, lead.caller, partial):
        with pytest.raises(Refused):
            company.call(caller, events.listing, company=None)
        with pytest.raises(Refused):
            company.call(caller, events.verify, company=None)
    whole = company.user("olga", "observer")
    assert company.call(whole, events.verify, company=company.id)["ok"]


# ── why ─────────────────────────────────────────────────────────────────────────────────────────


def newest(company: Company, action: str) -> str:
    log = company.call(company.board, events.listing, company=company.id)
    return str(next(event["id"] for event in log if event["action"] == action))


@pytest.mark.requirement("BX-03")
def test_why_walks_from_a_write_over_two_levels_of_grants_to_the_person(
    company: Company,
) -> None:
    lead = company.agent("lead")
    worker = company.agent("worker", "lead")
    ann = company.user("ann")
    file = company.file(company.board)
    top = company.give(ann, company.ceo, file, "write")
    middle = company.give(company.ceo.caller, lead, file, "write")
    low = company.give(lead.caller, worker, file, "write")
    run = company.run(worker)
    company.write(run.caller, file, b"by the worker")
    answer = company.call(company.board, events.why, event=newest(company, "file.write"))
    assert [(step["action"], step["resource"], step["who"]) for step in answer["steps"]] == [
        ("file.write", f"kb_file:{file['id']}", "agent:worker"),
        ("grant.give", f"grant:{low['id']}", "agent:lead"),
        ("grant.give", f"grant:{middle['id']}", "agent:ceo"),
        ("grant.give", f"grant:{top['id']}", "user:ann"),
    ]
    assert answer["authorised_by"] == "user:ann"
    assert answer["steps"][0]["run_id"] == run.id
    for step, grant in zip(answer["steps"], (low, middle, top), strict=False):
        assert step["basis"] == f"grant:{grant['id']}"
        assert step["reason"]


@pytest.mark.requirement("BX-03")
def test_why_holds_after_the_grants_are_gone(company: Company) -> None:
    lead = company.agent("lead")
    file = company.file(company.board)
    top = company.give(company.board, company.ceo, file, "write")
    company.give(company.ceo.caller, lead, file, "write")
    company.write(lead.caller, file, b"by the lead")
    company.call(company.board, grants.revoke, grant=top["id"])
    company.call(company.board, agents.terminate, agent="lead")
    answer = company.call(company.board, events.why, event=newest(company, "file.write"))
    assert [step["who"] for step in answer["steps"]] == ["agent:lead", "agent:ceo", "user:board"]
    assert answer["authorised_by"] == "user:board"


@pytest.mark.requirement("BX-03")
def test_what_an_agent_does_by_itself_leads_to_whoever_made_the_agent(company: Company) -> None:
    ann = company.user("ann")
    company.call(ann, agents.create, company=company.id, name="lead", reports_to="ceo")
    key = company.call(company.board, agents.create_key, agent="lead")
    lead = Caller(key["token"])
    file = company.file(lead)
    company.write(lead, file, b"more")
    for action in ("file.create", "file.write"):
        answer = company.call(company.board, events.why, event=newest(company, action))
        assert [step["action"] for step in answer["steps"]] == [action, "agent.create"]
        assert answer["authorised_by"] == "user:ann"


@pytest.mark.requirement("BX-03")
def test_why_explains_a_refusal_too(company: Company) -> None:
    file = company.file(company.board)
    ann = company.user("ann")
    company.give(ann, company.ceo, file, "read", mode="deny")
    with pytest.raises(Refused):
        company.read(company.ceo.caller, file["id"])
    answer = company.call(company.board, events.why, event=newest(company, "file.read"))
    assert answer["steps"][0]["allowed"] is False
    assert answer["steps"][0]["reason"] == "denied_by_grant"
    assert answer["authorised_by"] == "user:ann"


def test_an_event_is_found_by_the_beginning_of_its_id_among_ones_own(company: Company) -> None:
    company.file(company.board)
    event = newest(company, "file.create")
    neighbour = company.second_company()
    assert company.call(company.user("ann"), events.why, event=event[:28])["event_id"] == event
    for name in (event, event[:28]):
        with pytest.raises(NotFound):
            company.call(neighbour.board, events.why, event=name)
    mine = company.call(neighbour.board, events.listing, company=neighbour.id, limit=1)[0]["id"]
    found = company.call(neighbour.board, events.why, event=mine[:28])
    assert found["event_id"] == mine
