"""Schedules: again and again or once, in time zones, over gaps and jumps of the clock."""

from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from remit.clock import DAY, HOUR, MINUTE, SECOND, Micros, from_iso, to_iso
from remit.errors import BadInput
from remit.model.messaging.schedule import next_time
from remit.runtime.timers import Clockwork
from remit.services.command import Gate
from remit.services.identity import Caller
from remit.services.messaging import pending_items, schedules
from remit.services.organisation import agents
from remit.services.record import events
from remit.services.rights import grants
from remit.testing.clock import VirtualClock
from tests.company import Answer, Company, Member, opened
from tests.mailing import ack, bodies, end, look, messaging, send, take, tick, unread
from tests.organisation import problems, refusal


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(from_iso("2026-06-01T08:00:00Z"))


#: For rules that no database has a part in.
rules = pytest.mark.parametrize("company", ["sqlite"], indirect=True)


def add(company: Company, caller: Caller, **more: Any) -> Answer:
    return company.call(caller, schedules.add, **{"body": "stand-up", **more})


def read_all(company: Company, member: Member) -> list[str]:
    """Take everything up, as runs do."""
    got = []
    run = company.run(member)
    while found := take(company, run):
        got += bodies(found)
        ack(company, run.caller, *found)
    end(company, run)
    return got


# ── when ────────────────────────────────────────────────────────────────────────────────────────


def times(cron: str, zone: str, start: str, count: int) -> list[str]:
    found = []
    at: Micros = from_iso(start)
    for _ in range(count):
        at = next_time(cron, zone, at)
        local = datetime.fromisoformat(to_iso(at)).astimezone(ZoneInfo(zone))
        found.append(local.strftime("%d %H:%M%z"))
    return found


@pytest.mark.parametrize(
    ("cron", "zone", "start", "expected"),
    [
        ("0 9 * * 1-5", "UTC", "2026-06-05T09:00:00Z", ["08 09:00+0000", "09 09:00+0000"]),
        ("0 9 * * *", "Asia/Tokyo", "2026-06-05T00:00:00Z", ["06 09:00+0900"]),
        # A night without 02:30, and one with two of them.
        ("30 2 * * *", "Europe/Zurich", "2026-03-28T12:00:00Z", ["29 03:00+0200", "30 02:30+0200"]),
        ("30 2 * * *", "Europe/Zurich", "2026-10-24T12:00:00Z", ["25 02:30+0200", "26 02:30+0100"]),
        ("0 0 29 2 *", "UTC", "2026-06-05T00:00:00Z", ["29 00:00+0000"]),
        ("*/15 * * * *", "UTC", "2026-06-05T00:14:59.999999Z", ["05 00:15+0000", "05 00:30+0000"]),
    ],
)
def test_the_next_time_is_in_the_zone_of_the_schedule(
    cron: str, zone: str, start: str, expected: list[str]
) -> None:
    assert times(cron, zone, start, len(expected)) == expected


@pytest.mark.parametrize(
    ("cron", "zone"),
    [
        ("", "UTC"),
        ("x", "UTC"),
        ("* * * *", "UTC"),
        ("* * * * * *", "UTC"),
        ("61 * * * *", "UTC"),
        ("0 0 31 2 *", "UTC"),
        ("@daily", "UTC"),
        ("0 9 * * *", "Europe/Nowhere"),
        ("0 9 * * *", "../../etc/passwd"),
        ("0 9 * * *", ""),
    ],
)
def test_what_never_comes_is_refused(cron: str, zone: str) -> None:
    with pytest.raises(BadInput):
        next_time(cron, zone, 0)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"cron": "0 9 * * *", "at": "2026-07-01T00:00:00Z"},
        {"at": "2026-06-01T08:00:00Z"},
        {"at": "2020-01-01T00:00:00Z"},
        {"at": "soon"},
        {"at": 5},
        {"cron": 5},
        {"cron": "0 9 * * *", "timezone": 5},
        {"cron": "0 9 * * *", "timezone": "x" * 61},
        {"cron": "* " * 60},
        {"cron": "0 9 * * *", "body": ""},
        {"cron": "0 9 * * *", "body": "x" * 20_001},
        {"cron": "0 9 * * *", "subject": "a\x07"},
        {"cron": "0 9 * * *", "to": "pigeon:x"},
    ],
)
def test_what_is_no_schedule_is_refused(small: Company, more: dict[str, Any]) -> None:
    assert refusal(small, small.ceo.caller, schedules.add, **{"body": "x", **more}) == "invalid"
    assert small.sql("SELECT count(*) FROM schedules") == [(0,)]


# ── sending ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("HH-30", "HB-29")
def test_a_reminder_comes_to_its_owner_once(company: Company, clock: VirtualClock) -> None:
    made = add(company, company.ceo.caller, at="2026-06-01T09:00:00Z", subject="Wake up")
    assert (made["to"], made["status"]) == (f"agent:{company.ceo.id}", "active")
    clock.advance(HOUR - 1)
    tick(company)
    assert look(company, company.ceo) == []
    clock.advance(1)
    tick(company)
    (found,) = look(company, company.ceo)
    assert (found["subject"], found["body"]) == ("Wake up", "stand-up")
    assert (found["sender"], found["from_board"]) == (f"agent:{company.ceo.id}", False)
    clock.advance(DAY)
    tick(company)
    assert len(look(company, company.ceo)) == 1
    (kept,) = company.call(company.ceo.caller, schedules.listing, ended_too=True)
    assert (kept["status"], kept["next_at"]) == ("done", None)
    assert company.call(company.ceo.caller, schedules.listing) == []


@rules
def test_a_schedule_comes_again_and_again(company: Company, clock: VirtualClock) -> None:
    add(company, company.ceo.caller, cron="0 9 * * *", timezone="Europe/Zurich")
    for _ in range(3 * 24):
        clock.advance(HOUR)
        tick(company)
    # 09:00 in Zurich is 07:00 in UTC; it was 08:00 in UTC at the start.
    assert read_all(company, company.ceo) == ["stand-up"] * 3


def test_what_was_missed_while_nobody_watched_is_sent_once(
    database_url: str, tmp_path: Path, clock: VirtualClock
) -> None:
    home = tmp_path / "home"
    with opened(database_url, home, clock) as company:
        add(company, company.ceo.caller, cron="*/5 * * * *", body="often")
        add(company, company.ceo.caller, at="2026-06-01T09:00:00Z", body="once")
        send(company, company.board, "agent:ceo", "mail", deliver_at="2026-06-01T08:30:00Z")
    clock.advance(3 * DAY + MINUTE)
    with opened(database_url, home, clock) as company:
        tick(company)
        assert sorted(read_all(company, company.ceo)) == ["mail", "often", "once"]
        clock.advance(4 * MINUTE)
        tick(company)
        assert read_all(company, company.ceo) == ["often"]
        assert problems(company) == []


@pytest.mark.parametrize("jumps", [(HOUR, -HOUR), (-HOUR, HOUR), (-HOUR, -HOUR, 2 * HOUR)])
def test_a_clock_that_jumps_repeats_nothing_and_loses_nothing(
    company: Company, clock: VirtualClock, jumps: tuple[Micros, ...]
) -> None:
    add(company, company.ceo.caller, cron="30 8 * * *", body="daily")
    add(company, company.ceo.caller, at="2026-06-01T08:45:00Z", body="once")
    got: list[str] = []
    for jump in (*jumps, HOUR, *jumps):
        clock.advance(jump)
        tick(company)
        got += read_all(company, company.ceo)
    assert sorted(got) == ["daily", "once"]
    clock.advance(DAY)
    tick(company)
    assert read_all(company, company.ceo) == ["daily"]


def test_several_instances_fire_a_schedule_once(company: Company, clock: VirtualClock) -> None:
    for n in range(5):
        add(company, company.ceo.caller, cron="* * * * *", body=f"number {n}")
    clock.advance(MINUTE)
    company.together([company.app.clockwork.tick() for _ in range(6)])
    assert read_all(company, company.ceo) == [f"number {n}" for n in range(5)]


@pytest.mark.requirement("AG-88")
@rules
def test_a_schedule_can_send_to_whom_its_owner_may_write(
    company: Company, clock: VirtualClock
) -> None:
    worker, peer = company.agent("worker"), company.agent("peer")
    assert (
        refusal(company, worker.caller, schedules.add, body="x", cron="* * * * *", to="agent:peer")
        == "not_in_reach"
    )
    assert (
        refusal(
            company, worker.caller, schedules.add, body="x", cron="* * * * *", to="channel:slack:x"
        )
        == "not_bound"
    )
    # In whose name a person plans it is who must be allowed.
    assert (
        refusal(
            company,
            company.board,
            schedules.add,
            body="x",
            cron="* * * * *",
            agent="worker",
            to="agent:peer",
        )
        == "not_in_reach"
    )
    add(company, company.board, cron="* * * * *", agent="worker", to="agent:ceo", body="report")
    add(company, worker.caller, cron="* * * * *", to="board", body="to the board")
    # What tells those below what to do may be a clock.
    add(company, company.board, cron="* * * * *", agent="ceo", to="agent:peer", body="Do it again.")
    clock.advance(MINUTE)
    tick(company)
    assert [(one["body"], one["sender_name"]) for one in look(company, peer)] == [
        ("Do it again.", "ceo")
    ]
    (found,) = look(company, company.ceo)
    # It speaks in its owner's name, whoever planned it.
    assert (found["body"], found["sender_name"], found["from_board"]) == ("report", "worker", False)
    assert bodies(unread(company, company.board)) == ["to the board"]


@rules
def test_a_schedule_means_the_agent_and_not_its_name(company: Company, clock: VirtualClock) -> None:
    old = company.agent("worker")
    add(company, company.ceo.caller, cron="* * * * *", to="agent:worker")
    company.call(company.board, agents.terminate, agent=old.id)
    new = company.agent("worker")
    clock.advance(MINUTE)
    tick(company)
    assert look(company, new) == []


@rules
def test_a_schedule_that_cannot_be_sent_ends_and_its_owner_is_told(
    company: Company, clock: VirtualClock
) -> None:
    worker, peer = company.agent("worker"), company.agent("peer")
    messaging(company, "team")
    made = add(company, worker.caller, cron="* * * * *", to="agent:peer")
    messaging(company, "chain")
    for _ in range(3):
        clock.advance(MINUTE)
        tick(company)
    assert look(company, peer) == []
    (told,) = look(company, worker)
    assert told["sender"] == "system"
    assert told["subject"] == "Schedule ended: stand-up"
    assert made["id"] in told["body"]
    (kept,) = company.call(worker.caller, schedules.listing, ended_too=True)
    assert kept["status"] == "cancelled"


def test_what_an_agent_planned_ends_with_it(company: Company, clock: VirtualClock) -> None:
    worker = company.agent("worker")
    add(company, worker.caller, cron="* * * * *", to="agent:ceo")
    company.call(company.board, agents.terminate, agent="worker")
    clock.advance(DAY)
    tick(company)
    assert look(company, company.ceo) == []
    assert company.sql("SELECT status FROM schedules") == [("cancelled",)]
    assert company.call(company.board, events.verify, company=company.id)["ok"]


# ── who plans, sees and cancels ─────────────────────────────────────────────────────────────────


@pytest.mark.requirement("HH-40", "HH-16")
def test_a_reminder_is_cancelled_by_its_owner_or_from_above(
    company: Company, clock: VirtualClock
) -> None:
    lead, other = company.agent("lead"), company.agent("other")
    worker = company.agent("worker", "lead")
    below = company.agent("below", "worker")
    chief = company.user("chief", scope="lead")
    stranger = company.user("stranger", scope="other")
    watcher = company.user("watcher", role="observer")
    made = add(company, worker.caller, cron="* * * * *")["id"]
    for caller in (other.caller, below.caller):
        assert refusal(company, caller, pending_items.cancel, thread=made) == "not_found"
    assert (
        refusal(company, stranger, pending_items.cancel_schedule, schedule=made) == "outside_scope"
    )
    assert refusal(company, watcher, pending_items.cancel_schedule, schedule=made) == "observer"
    for caller in (worker.caller, lead.caller, company.ceo.caller, company.board, chief):
        made = add(company, worker.caller, cron="* * * * *")["id"]
        clock.advance(1)
        company.call(caller, pending_items.cancel, thread=made)
        assert refusal(company, caller, pending_items.cancel, thread=made) == "conflict"
    clock.advance(MINUTE)
    tick(company)
    assert len(look(company, worker)) == 1


@pytest.mark.requirement("HH-40")
def test_the_beginning_of_an_id_is_enough_to_cancel(company: Company, clock: VirtualClock) -> None:
    worker = company.agent("worker")
    other = company.agent("other")
    made = add(company, worker.caller, cron="* * * * *")["id"]
    add(company, other.caller, cron="* * * * *")
    company.call(worker.caller, pending_items.cancel, thread=made[:13])
    assert company.sql("SELECT agent_id FROM schedules WHERE status = 'active'") == [(other.id,)]


@rules
def test_an_agent_plans_for_itself_and_people_for_their_part(company: Company) -> None:
    worker = company.agent("worker")
    chief = company.user("chief", scope="worker")
    every = {"body": "x", "cron": "* * * * *"}
    assert (
        refusal(company, company.ceo.caller, schedules.add, agent="worker", **every) == "not_found"
    )
    assert refusal(company, chief, schedules.add, agent="ceo", **every) == "outside_scope"
    assert refusal(company, chief, schedules.add, **every) == "invalid"
    company.call(chief, schedules.add, agent="worker", **every)
    add(company, company.ceo.caller, cron="* * * * *")
    assert len(company.call(company.board, schedules.listing)) == 2
    assert len(company.call(company.board, schedules.listing, limit=1)) == 1
    (seen,) = company.call(chief, schedules.listing, limit=1)
    assert seen["agent_id"] == worker.id
    (seen,) = company.call(worker.caller, schedules.listing)
    assert seen["agent_id"] == worker.id
    (seen,) = company.call(company.ceo.caller, schedules.listing, agent="worker")
    assert seen["agent_id"] == worker.id
    assert refusal(company, worker.caller, schedules.listing, agent="ceo") == "not_found"


@pytest.mark.requirement("AG-62")
@rules
def test_deferred_mail_is_cancelled_by_its_sender_or_from_above(
    company: Company, clock: VirtualClock
) -> None:
    lead = company.agent("lead")
    worker = company.agent("worker", "lead")
    chief = company.user("chief", scope="lead")
    later = to_iso(clock.now() + HOUR)
    for sender, callers in (
        (worker.caller, (worker.caller, lead.caller, company.ceo.caller, chief, company.board)),
        (chief, (chief, company.board)),
    ):
        for caller in callers:
            sent = send(company, sender, "agent:lead", "later", deliver_at=later)
            # Its receiver does not know of it, unless it is above the sender anyway.
            company.call(caller, pending_items.cancel, thread=sent["id"])
            assert refusal(company, caller, pending_items.cancel, thread=sent["id"]) == "conflict"
    held = send(company, company.ceo.caller, "agent:lead", "later", deliver_at=later)
    for caller in (lead.caller, worker.caller):
        assert refusal(company, caller, pending_items.cancel, thread=held["id"]) == "not_found"
    clock.advance(HOUR)
    tick(company)
    assert bodies(look(company, lead)) == ["later"]
    assert (
        refusal(company, company.ceo.caller, pending_items.cancel, thread=held["id"]) == "conflict"
    )


# ── the clockwork itself ────────────────────────────────────────────────────────────────────────


@rules
def test_one_companys_trouble_is_not_anothers(company: Company, clock: VirtualClock) -> None:
    neighbour = company.second_company()
    for caller, to in ((company.board, "agent:ceo"), (neighbour.board, "agent:stranger")):
        where = company.id if to == "agent:ceo" else neighbour.id
        send(company, caller, to, "hello", company=where, deliver_at=to_iso(clock.now() + SECOND))
    clock.advance(SECOND)

    class Broken(Gate):
        async def __call__(self, caller: Any, verb: Any, *args: Any, **more: Any) -> Any:
            if more.get("company") == company.id:
                raise RuntimeError("no luck")
            return await super().__call__(caller, verb, *args, **more)

    gate = company.app.gate
    broken = Broken(gate.database, gate.clock, gate.ids, gate.blobs)
    assert company.wait(Clockwork(broken).tick()) == 1
    assert company.sql("SELECT status FROM deliveries WHERE company_id = ?", neighbour.id) == [
        ("queued",)
    ]
    assert look(company, company.ceo) == []
    tick(company)
    assert bodies(look(company, company.ceo)) == ["hello"]


def test_time_matters_to_remit_alone(small: Company) -> None:
    add(small, small.ceo.caller, cron="* * * * *")
    for caller in (small.board, small.ceo.caller):
        assert refusal(small, caller, schedules.companies_due) == "not_found"
        assert refusal(small, caller, schedules.next_due) == "not_found"
    held = small.call(small.ceo.caller, grants.listing, company=None)
    assert held == []
