"""Mail: what is sent, what arrives, and what becomes of it."""

import itertools
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from remit.clock import DAY, HOUR, MINUTE, SECOND, to_iso
from remit.errors import NotFound, RemitError, Unauthenticated
from remit.model.messaging.mail import MOST_ATTEMPTS, MOST_HOPS
from remit.services.execution import runs
from remit.services.identity import Caller, as_system
from remit.services.knowledge import files
from remit.services.messaging import inbox, pending_items, threads
from remit.services.organisation import agents, reorganise
from remit.services.people import companies, users
from remit.services.rights import capability_requests, grants
from remit.services.screens import needs_you
from remit.services.work import delegation, outcomes
from remit.store.engine.database import Transaction
from remit.store.engine.migrate import is_sqlite
from remit.testing.clock import VirtualClock
from tests.company import Company, Member, keyed, opened
from tests.mailing import (
    ack,
    bodies,
    end,
    look,
    messaging,
    refused,
    send,
    take,
    tick,
    to_do,
    unread,
)
from tests.organisation import code, problems, refusal, work
from tests.organisation import member as with_key

#: For rules that no database has a part in.
rules = pytest.mark.parametrize("company", ["sqlite"], indirect=True)


def statuses(company: Company, message: dict[str, Any]) -> list[tuple[str, int]]:
    return [
        (status, attempt)
        for status, attempt in company.sql(
            "SELECT status, attempt FROM deliveries WHERE message_id = ? ORDER BY id",
            message["id"],
        )
    ]


@pytest.mark.requirement("AG-94")
def test_a_person_reads_the_newest_mail_first_page_by_page(company: Company) -> None:
    for number in range(3):
        send(company, company.ceo.caller, "board", f"Day {number}")

    def page(**more: Any) -> list[Any]:
        return company.call(company.board, threads.newest, company=company.id, limit=2, **more)

    first = page()
    assert bodies(first) == ["Day 2", "Day 1"]
    assert bodies(page(before=first[-1]["position"])) == ["Day 0"]
    ack(company, company.board, first[0])
    assert bodies(page()) == ["Day 1", "Day 0"]
    assert bodies(page(everything=True)) == ["Day 2", "Day 1"]


def test_a_list_of_mail_takes_no_more_statements_than_two_letters(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sent them, to whomever, and however their texts are stored."""
    others = [company.agent(name) for name in ("ada", "bob")]
    shared = company.file(company.ceo.caller, b"Read this")
    counted: list[str] = []
    run = Transaction._run

    def counting(tx: Transaction, statement: Any, parameters: Any) -> Any:
        counted.append(statement.compiled(tx.dialect)[0])
        return run(tx, statement, parameters)

    monkeypatch.setattr(Transaction, "_run", counting)

    def taken(verb: Any) -> tuple[int, list[str]]:
        counted.clear()
        found = company.call(company.board, verb, company=company.id)
        return len(counted), [one["sender_name"] for one in found]

    lists: list[Any] = [threads.newest, threads.own_inbox, threads.listing]

    def fill(rounds: int) -> list[tuple[int, list[str]]]:
        for number in range(rounds):
            for one in (company.ceo, *others):
                send(company, one.caller, "board", f"Letter {number}")
            send(company, company.board, "agent:ada", f"Answer {number}")
        send(company, company.ceo.caller, "board", None, file=shared["id"])
        return [taken(verb) for verb in lists]

    few, many = fill(1), fill(8)
    for (before, _), (after, names), verb in zip(few, many, lists, strict=True):
        assert after == before, verb.name
        assert {"ceo", "ada", "bob"} <= set(names), verb.name


# ── a message is a file that somebody may read ──────────────────────────────────────────────────


@pytest.mark.requirement("AG-59", "AG-60", "AG-63")
def test_a_message_is_a_file_that_its_receiver_may_read(company: Company) -> None:
    worker = company.agent("worker")
    sent = send(company, company.ceo.caller, "agent:worker", "Build it.", subject="A task")
    assert (sent["sender"], sent["from_board"]) == (f"agent:{company.ceo.id}", False)
    (found,) = look(company, worker)
    assert (found["id"], found["subject"], found["body"]) == (sent["id"], "A task", "Build it.")
    assert found["sender_name"] == "ceo"
    assert company.read(worker.caller, sent["file_id"])[1] == b"Build it."
    shown = company.call(worker.caller, files.show, file=sent["file_id"])
    assert (shown["unlisted"], shown["version"]) == (True, 1)
    # Nobody changes what was said, not even who said it; and nobody else learns that it was.
    for caller in (company.ceo.caller, worker.caller):
        with pytest.raises(RemitError) as caught:
            company.write(caller, shown, b"Burn it.")
        assert caught.value.reason == "no_capability"
    stranger = company.agent("stranger")
    with pytest.raises(NotFound):
        company.read(stranger.caller, sent["file_id"])
    assert refusal(company, stranger.caller, threads.show, message=sent["id"]) == "not_found"


@pytest.mark.requirement("AG-59", "AG-63")
def test_reading_the_inbox_is_another_call_and_takes_nothing_away(company: Company) -> None:
    for n in range(3):
        send(company, company.board, "agent:ceo", f"number {n}")
    for _ in range(2):
        found = company.call(company.ceo.caller, inbox.take)
        assert bodies(found["messages"]) == ["number 0", "number 1", "number 2"]
        assert found["waiting"] == 3
    assert len(company.call(company.ceo.caller, inbox.take, limit=2)["messages"]) == 2
    assert len(company.call(company.ceo.caller, inbox.take, limit=-5)["messages"]) == 1


@pytest.mark.requirement("AG-60")
@rules
def test_a_file_can_be_the_message_and_is_shown_as_it_was_then(company: Company) -> None:
    worker = company.agent("worker")
    file = company.file(worker.caller, b"first", "report")
    sent = send(company, worker.caller, "agent:ceo", None, file=file["id"])
    company.write(worker.caller, file, b"second")
    assert bodies(look(company, company.ceo)) == ["first"]
    assert sent["file_id"] == file["id"]
    assert company.read(company.ceo.caller, file["id"])[1] == b"second"


@pytest.mark.requirement("AG-60")
@rules
def test_sending_is_in_the_record_with_its_basis(company: Company) -> None:
    worker = company.agent("worker")
    send(company, worker.caller, "agent:ceo")
    assert refused(company, worker.caller, "agent:worker-2") == "not_found"
    company.agent("peer")
    assert refused(company, worker.caller, "agent:peer") == "not_in_reach"
    kept = company.sql(
        "SELECT allowed, basis FROM events WHERE action = 'message.send' ORDER BY seq"
    )
    assert [(bool(allowed), basis) for allowed, basis in kept] == [
        (True, "rule:report"),
        (False, "rule:not_in_reach"),
    ]


def test_a_repeated_request_sends_once(company: Company) -> None:
    caller = keyed(company.board, "key-1")
    for body in ("hello", b"hello"):
        caller = replace(caller, key=f"key {type(body)}")
        first = send(company, caller, "agent:ceo", body)
        assert send(company, caller, "agent:ceo", body)["id"] == first["id"]
        other = "other" if isinstance(body, str) else b"other"
        assert refused(company, caller, "agent:ceo", body=other) == "key_reused"
    assert bodies(look(company, company.ceo)) == ["hello", "hello"]


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"subject": "x" * 201}, "invalid"),
        ({"subject": "two\x07bells"}, "invalid"),
        ({"subject": "turned \u202e around"}, "invalid"),
        ({"subject": "half \ud800"}, "invalid"),
        ({"subject": 5}, "invalid"),
        ({"body": ""}, "invalid"),
        ({"body": " \n "}, "invalid"),
        ({"body": "half \ud800"}, "invalid"),
        ({"body": None}, "invalid"),
        ({"file": "01a1df44"}, "invalid"),
        ({"attachments": ["01a1df44-1a6e-7342-8028-357c3d9b3a11"]}, "not_found"),
        ({"attachments": ["x"]}, "invalid"),
        ({"attachments": ["01a1df44"] * 51}, "invalid"),
        ({"reply_to": "01a1df44-1a6e-7342-8028-357c3d9b3a11"}, "not_found"),
        ({"deliver_at": "tomorrow"}, "invalid"),
        ({"deliver_at": 5}, "invalid"),
        ({"expects_reply": True}, "invalid"),
    ],
)
def test_what_is_no_message_is_refused_and_leaves_nothing(
    small: Company, more: dict[str, Any], reason: str
) -> None:
    assert refused(small, small.board, "agent:ceo", **{"body": "text", **more}) == reason
    assert small.sql("SELECT count(*) FROM messages") == [(0,)]
    assert small.sql("SELECT count(*) FROM files WHERE description LIKE 'Message%'") == [(0,)]


def test_a_reply_is_expected_of_somebody_who_can_reply(small: Company) -> None:
    assert refused(small, small.ceo.caller, "agent:ceo", expects_reply=True) == "invalid"
    assert small.sql("SELECT count(*) FROM waits") == [(0,)]


def test_an_inbox_is_an_agents_and_so_many_are_acknowledged_at_once(small: Company) -> None:
    assert refusal(small, small.board, inbox.take) == "invalid"
    for ids in ([], [small.app.ids.new()] * 101):
        assert refusal(small, small.ceo.caller, inbox.acknowledge, ids=ids) == "invalid"


def test_a_subject_is_folded_into_one_line(small: Company) -> None:
    sent = send(small, small.board, "agent:ceo", subject=" a\n b\u2028c\x85d\te ")
    assert sent["subject"] == "a b c d e"


# ── addresses ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-59")
def test_an_agent_is_addressed_by_name_id_or_the_beginning_of_its_id(small: Company) -> None:
    who = small.ceo.id
    for to in ("agent:ceo", "ceo", "agent:CEO", f"agent:{who}", who[:18], f"agent:{who[:13]}"):
        send(small, small.board, to, to)
    assert len(look(small, small.ceo)) == 6
    assert {message["to"] for message in look(small, small.ceo)} == {f"agent:{who}"}


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("", "invalid"),
        ("agent:", "invalid"),
        ("pigeon:ceo", "invalid"),
        ("channel:", "invalid"),
        ("channel:Slack", "invalid"),
        (None, "invalid"),
        (["agent:ceo"], "invalid"),
        ("a" * 201, "invalid"),
        ("agent:nobody", "not_found"),
        ("user:nobody", "not_found"),
        ("agent:background", "agents_only"),
    ],
)
def test_what_is_no_address_is_refused(small: Company, to: Any, reason: str) -> None:
    assert refused(small, small.board, to) == reason


def test_a_channel_is_refused_with_a_way_on(small: Company) -> None:
    with pytest.raises(RemitError) as caught:
        send(small, small.ceo.caller, "channel:slack:general")
    assert caught.value.reason == "not_bound"
    assert "board" in caught.value.step


@pytest.mark.requirement("AG-86", "AG-88")
def test_the_board_is_everybody_with_a_say_over_the_sender(company: Company) -> None:
    lead, other = company.agent("lead"), company.agent("other")
    worker = company.agent("worker", "lead")
    over_lead = company.user("over-lead", scope="lead")
    over_worker = company.user("over-worker", scope="worker")
    over_other = company.user("over-other", scope="other")
    watcher = company.user("watcher", role="observer")
    everybody = (company.board, over_lead, over_worker, over_other, watcher)
    for sender in (company.ceo, lead, worker, other):
        send(company, sender.caller, "board", f"from {sender.name}")
    got = [set(bodies(unread(company, person))) for person in everybody]
    assert got == [
        {"from ceo", "from lead", "from worker", "from other"},
        {"from lead", "from worker"},
        {"from worker"},
        {"from other"},
        set(),
    ]
    # A person who read it does not make the others have read it.
    (mine,) = unread(company, over_worker)
    ack(company, over_worker, mine)
    assert unread(company, over_worker) == []
    assert bodies(unread(company, over_worker, everything=True)) == ["from worker"]
    assert len(unread(company, over_lead)) == 2


@pytest.mark.requirement("AG-86")
@rules
def test_an_agent_writes_to_a_person_over_it_and_to_no_other(company: Company) -> None:
    company.agent("lead")
    worker = company.agent("worker", "lead")
    over_lead = company.user("over-lead", scope="lead")
    company.user("over-other", scope=company.agent("other").name)
    company.user("watcher", role="observer")
    send(company, worker.caller, "user:over-lead", "a report")
    assert bodies(unread(company, over_lead)) == ["a report"]
    for person in ("over-other", "watcher"):
        assert refused(company, worker.caller, f"user:{person}") == "not_in_reach"
    neighbour = company.second_company()
    assert refused(company, worker.caller, "user:foreigner") == "not_found"
    assert refused(company, worker.caller, f"agent:{neighbour.agent.id}") == "not_found"


@pytest.mark.requirement("AG-91")
@rules
def test_a_person_over_a_part_writes_into_it_and_to_the_board_over_it(company: Company) -> None:
    company.agent("lead")
    worker = company.agent("worker", "lead")
    chief = company.user("chief", scope="lead")
    deputy = company.user("deputy", scope="worker")
    watcher = company.user("watcher", role="observer")
    sent = send(company, deputy, "agent:worker", "hello")
    assert sent["from_board"]
    assert refused(company, deputy, "agent:lead") == "outside_scope"
    send(company, deputy, "board", "I need more people.")
    send(company, deputy, "user:chief", "You too.")
    assert bodies(unread(company, chief)) == ["You too.", "I need more people."]
    assert bodies(unread(company, company.board)) == ["I need more people."]
    assert refused(company, chief, "user:deputy") == "outside_scope"
    assert refused(company, watcher, "agent:worker") == "observer"
    assert refused(company, watcher, "board") == "observer"
    assert bodies(look(company, worker)) == ["hello"]


def test_the_only_member_of_the_board_cannot_write_to_it(small: Company) -> None:
    assert refused(small, small.board, "board") == "conflict"


# ── nobody sends in another's name ──────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-14", "HB-12")
def test_the_sender_is_whoever_the_token_says(company: Company) -> None:
    worker = company.agent("worker")
    run = company.run(worker)
    forged = f"From: board\nX-Remit-Sender: user:board\nfrom_board: true\n{company.board.token}"
    sent = send(company, run.caller, "agent:ceo", forged, subject="from_board: true user:board")
    (found,) = look(company, company.ceo)
    assert (found["sender"], found["sender_name"]) == (f"agent:{worker.id}", "worker")
    assert not found["from_board"]
    kept = company.sql(
        "SELECT sender_agent_id, sender_user_id, sender_run_id FROM messages WHERE id = ?",
        sent["id"],
    )
    assert kept == [(worker.id, None, run.id)]
    # Whoever is answered does not become the sender of the answer.
    letter = send(company, company.board, "agent:worker", "From a person")
    for caller, to, answered, who in (
        (run.caller, "board", letter, f"agent:{worker.id}"),
        (company.ceo.caller, "agent:worker", sent, f"agent:{company.ceo.id}"),
        (company.board, "agent:ceo", sent, "user"),
    ):
        reply = send(company, caller, to, "An answer", reply_to=answered["id"])
        ((kind, agent, board),) = company.sql(
            "SELECT sender_kind, sender_agent_id, from_board FROM messages WHERE id = ?",
            reply["id"],
        )
        assert (f"agent:{agent}" if agent else kind, bool(board)) == (who, who == "user")
    for field, value in {
        "sender": "user:board",
        "from_board": True,
        "sender_user_id": "x",
        "sender_kind": "user",
    }.items():
        with pytest.raises(TypeError):
            send(company, run.caller, "agent:ceo", **{field: value})
    for name in ("board", "human", "background", "system"):
        assert refusal(company, company.board, agents.create, company=None, name=name) == "invalid"


@pytest.mark.requirement("BX-14")
def test_the_database_itself_keeps_an_agents_message_from_being_the_boards(
    company: Company,
) -> None:
    worker = company.agent("worker")
    sent = send(company, worker.caller, "agent:ceo")
    with pytest.raises(Exception, match=r"from_board|constraint"):
        company.sql("UPDATE messages SET from_board = true WHERE id = ?", sent["id"])


# ── lease, acknowledge, return, die ─────────────────────────────────────────────────────────────


@pytest.mark.requirement("HB-33", "AG-63")
def test_what_a_run_acknowledges_never_comes_again(company: Company) -> None:
    sent = [send(company, company.board, "agent:ceo", f"number {n}") for n in range(3)]
    run = company.run(company.ceo)
    first, second, third = take(company, run)
    assert [one["status"] for one in (first, second, third)] == ["queued"] * 3
    assert statuses(company, sent[0]) == [("leased", 1)]
    assert ack(company, run.caller, first) == [first["id"]]
    # Saying it twice is no mistake.
    assert ack(company, run.caller, first, second) == [first["id"], second["id"]]
    end(company, run, "failed")
    assert [statuses(company, one) for one in sent] == [
        [("done", 1)],
        [("done", 1)],
        [("queued", 1)],
    ]
    assert bodies(look(company, company.ceo)) == ["number 2"]


@pytest.mark.requirement("HB-34")
@pytest.mark.parametrize("how", ["failed", "lost"])
def test_a_run_that_fails_gives_back_as_often_as_it_takes(company: Company, how: str) -> None:
    sent = send(company, company.board, "agent:ceo", "text")
    for number in range(2 * MOST_ATTEMPTS):
        run = company.run(company.ceo)
        (found,) = take(company, run)
        assert (found["attempt"], found["may_have_been_handled"]) == (1, number > 0)
        end(company, run, how)
    assert statuses(company, sent) == [("queued", 1)]


@pytest.mark.requirement("HB-34")
def test_after_three_faults_of_a_letter_a_person_must_look(company: Company) -> None:
    sent = send(company, company.board, "agent:ceo", "poison", subject="Bad news")
    for attempt in (1, 2, 3):
        run = company.run(company.ceo)
        (found,) = take(company, run)
        assert found["attempt"] == attempt
        assert found["may_have_been_handled"] == (attempt > 1)
        end(company, run, "failed", fault="message")
    assert statuses(company, sent) == [("dead", 3)]
    assert look(company, company.ceo) == []
    assert to_do(company, company.ceo) == []
    items = company.call(company.board, needs_you.listing)
    assert [(one["kind"], one["id"]) for one in items if one["kind"] == "dead_letter"] == [
        ("dead_letter", sent["id"])
    ]
    # It is not the agent's any more, whatever it says.
    assert ack(company, company.ceo.caller, sent) == []
    company.call(company.board, pending_items.revive, message=sent["id"])
    run = company.run(company.ceo)
    (again,) = take(company, run)
    assert (again["body"], again["attempt"]) == ("poison", 1)
    end(company, run)
    assert refusal(company, company.board, pending_items.revive, message=sent["id"]) == "conflict"


@pytest.mark.requirement("HB-34")
@rules
def test_a_message_to_be_tried_once_is_tried_once(company: Company) -> None:
    once = send(company, company.board, "agent:ceo", "launch", at_most_once=True)
    often = send(company, company.board, "agent:ceo", "land")
    run = company.run(company.ceo)
    take(company, run)
    end(company, run, "failed")
    assert statuses(company, once) == [("done", 1)]
    assert statuses(company, often) == [("queued", 1)]
    assert bodies(look(company, company.ceo)) == ["land"]


@pytest.mark.requirement("HB-33", "HB-34", "HB-61")
@pytest.mark.parametrize("how", ["completed", "cancelled"])
@rules
def test_what_a_run_took_up_is_done_when_it_ends_well_or_is_cancelled(
    company: Company, how: str
) -> None:
    taken = send(company, company.board, "agent:ceo", "taken")
    run = company.run(company.ceo)
    take(company, run)
    left = send(company, company.board, "agent:ceo", "left")
    end(company, run, how)
    assert statuses(company, taken) == [("done", 1)]
    assert statuses(company, left) == [("queued", 1)]


@pytest.mark.requirement("HB-29", "HB-34")
def test_after_a_crash_a_restart_returns_what_was_taken_up(
    database_url: str, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    with opened(database_url, home) as company:
        send(company, company.board, "agent:ceo", "hello")
        take(company, company.run(company.ceo))
        # The process is gone without a word.
    with opened(database_url, home) as company:
        (found,) = look(company, company.ceo)
        assert (found["body"], found["status"]) == ("hello", "queued")
        assert found["may_have_been_handled"]
        assert to_do(company, company.ceo)[0] == "Process inbox"
        assert problems(company) == []


def test_two_workers_leasing_one_inbox_get_each_message_once(company: Company) -> None:
    for n in range(20):
        send(company, company.board, "agent:ceo", f"number {n}")
    run = company.run(company.ceo)
    # The database lets an agent have one run; a second worker is refused.
    with pytest.raises(RemitError):
        company.run(company.ceo)
    got = company.together([company.app.gate(run.caller, inbox.take, limit=10) for _ in range(8)])
    for answer in got:
        assert isinstance(answer, dict)
        assert bodies(answer["messages"]) == [f"number {n}" for n in range(10)]
    leased = company.sql(
        "SELECT count(*), count(DISTINCT id) FROM deliveries WHERE status = 'leased'"
    )
    assert leased == [(10, 10)]
    # Acknowledged by both at once: once each, in any order.
    ids = [message["id"] for message in got[0]["messages"]]  # type: ignore[index]
    done = company.together(
        [company.app.gate(run.caller, inbox.acknowledge, ids=ids) for _ in range(4)]
    )
    assert [answer for answer in done if answer != {"acknowledged": ids}] == []
    assert bodies(take(company, run)) == [f"number {n}" for n in range(10, 20)]
    end(company, run)


@rules
def test_a_run_that_was_taken_over_takes_nothing_up_any_more(company: Company) -> None:
    send(company, company.board, "agent:ceo", "hello")
    old = company.run(company.ceo)
    end(company, old, "lost")
    new = company.run(company.ceo)
    assert bodies(take(company, new)) == ["hello"]
    with pytest.raises(Unauthenticated):
        company.call(old.caller, inbox.take)
    with pytest.raises(Unauthenticated):
        company.call(old.caller, inbox.acknowledge, ids=["01a1df44"])
    end(company, new)


def test_a_run_that_ends_while_it_asks_takes_nothing_up(company: Company) -> None:
    """Otherwise the message would be leased for good to a run that nobody ends again."""
    if is_sqlite(company.url):
        return  # there, one call is over before the next begins
    send(company, company.board, "agent:ceo", "hello")
    run = company.run(company.ceo)
    with psycopg.connect(company.url, autocommit=True) as watch, psycopg.connect(company.url) as db:
        db.execute("SELECT 1 FROM event_heads FOR UPDATE")
        asked = company.app.gate.database.submit_write(
            company.app.gate._work(run.caller, inbox.take, (), {})
        )
        waits = (
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        until = time.monotonic() + 10
        while watch.execute(waits).fetchone() == (0,):
            assert time.monotonic() < until
        db.execute("UPDATE runs SET status = 'lost', ended_at = 1 WHERE id = %s", (run.id,))
        db.commit()
        assert isinstance(asked.exception(10), Unauthenticated)
    assert company.sql("SELECT status FROM deliveries") == [("queued",)]
    company.sql("UPDATE agents SET status = 'idle' WHERE id = ?", company.ceo.id)


# ── order ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@pytest.mark.campaign_on_postgresql("two workers share an inbox there each time")
def test_a_thousand_messages_from_many_at_once_keep_each_senders_order(company: Company) -> None:
    senders = [company.agent(f"worker-{n}") for n in range(10)]
    each = 100 if is_sqlite(company.url) else 20

    async def all_of(member: Member) -> None:
        for n in range(each):
            await company.app.library.send(
                member.caller, to="agent:ceo", body=f"{member.name} {n:03}"
            )

    assert company.together([all_of(member) for member in senders]) == [None] * 10
    got: list[str] = []
    run = company.run(company.ceo)
    while found := take(company, run):
        got += bodies(found)
        ack(company, run.caller, *found)
    end(company, run)
    assert len(got) == len(set(got)) == 10 * each
    for member in senders:
        mine = [body for body in got if body.startswith(f"{member.name} ")]
        assert mine == sorted(mine)
    positions = company.sql("SELECT count(DISTINCT position), max(position) FROM deliveries")
    assert positions == [(10 * each, 10 * each)]


def test_a_body_of_twenty_mebibytes_arrives_whole(company: Company) -> None:
    body = bytes(range(32, 127)) * (20 * 1024 * 1024 // 95 + 1)
    body = body[: 20 * 1024 * 1024]
    sent = send(company, company.board, "agent:ceo", body)
    (found,) = look(company, company.ceo)
    assert found["body_cut"]
    assert len(found["body"]) == 64 * 1024
    assert company.read(company.ceo.caller, sent["file_id"])[1] == body
    assert (
        refused(company, company.board, "agent:ceo", body=b"x" * (33 * 1024 * 1024)) == "too_large"
    )


# ── the outcome that is open while there is mail ────────────────────────────────────────────────


@pytest.mark.requirement("AG-64", "AG-87")
def test_mail_opens_one_outcome_and_the_last_of_it_closes_it(company: Company) -> None:
    assert to_do(company, company.ceo) == []
    for n in range(3):
        send(company, company.board, "agent:ceo", f"number {n}")
        assert to_do(company, company.ceo) == ["Process inbox"]
    run = company.run(company.ceo)
    messages = take(company, run)
    ack(company, run.caller, *messages[:2])
    assert to_do(company, company.ceo) == ["Process inbox"]
    ack(company, run.caller, messages[2])
    assert to_do(company, company.ceo) == []
    end(company, run)
    send(company, company.board, "agent:ceo", "again")
    assert to_do(company, company.ceo) == ["Process inbox"]
    kept = company.sql("SELECT count(*) FROM outcomes WHERE kind = 'inbox'")
    assert kept == [(1,)]


@pytest.mark.requirement("AG-64")
@rules
def test_the_inbox_outcome_is_not_for_hands(company: Company) -> None:
    lead = company.agent("lead")
    report = company.agent("report", "lead")
    mine = work(company, lead.caller, lead.id)
    send(company, company.ceo.caller, "agent:lead", "hello")
    send(company, lead.caller, "agent:report", "hello")
    found = company.call(lead.caller, outcomes.listing, actionable=True)
    (it,) = [one["id"] for one in found if one["title"] == "Process inbox"]
    for caller in (lead.caller, company.board):
        assert (
            refusal(company, caller, outcomes.complete, outcome=it, note="done") == "kept_by_remit"
        )
        assert (
            refusal(company, caller, outcomes.close, outcome=it, rationale="x") == "kept_by_remit"
        )
        assert refusal(company, caller, outcomes.create, parent=it, title="part") == "kept_by_remit"
        assert (
            refusal(company, caller, outcomes.change, outcome=it, version=1, title="Mine")
            == "kept_by_remit"
        )
        assert (
            refusal(company, caller, outcomes.change, outcome=mine, version=1, blocked_by=[it])
            == "invalid"
        )
        assert (
            refusal(company, caller, outcomes.create, parent=lead.id, title="x", blocked_by=[it])
            == "invalid"
        )
    assert (
        refusal(company, lead.caller, delegation.delegate, outcome=it, to="report")
        == "kept_by_remit"
    )
    # Others see no more of it than of any outcome.
    assert refusal(company, report.caller, outcomes.complete, outcome=it, note="x") == "not_found"
    assert (
        refusal(company, company.ceo.caller, delegation.reclaim, outcome=it, reason="x")
        == "delegated_away"
    )
    file = company.file(company.board, b"x")
    with pytest.raises(RemitError) as caught:
        company.give(company.board, lead, file, "read", scope=it)
    assert caught.value.reason == "invalid"
    assert to_do(company, lead) == ["Process inbox", "work"]


@pytest.mark.requirement("AG-64")
def test_a_removed_layer_leaves_its_inbox_to_the_dead_letters(company: Company) -> None:
    lead = company.agent("lead")
    company.agent("report", "lead")
    task = work(company, lead.caller, lead.id)
    send(company, company.board, "agent:ceo", "to the boss")
    sent = send(company, company.ceo.caller, "agent:lead", "to the layer")
    done = company.call(
        company.board,
        reorganise.reorganise,
        company=company.id,
        operations=[{"op": "remove_layer", "agent": "lead"}],
    )
    assert statuses(company, sent) == [("dead", 1)]
    assert bodies(look(company, company.ceo)) == ["to the boss"]
    owners = company.sql(
        "SELECT owner_id, status FROM outcomes WHERE kind = 'inbox' ORDER BY status"
    )
    assert owners == [(lead.id, "completed"), (company.ceo.id, "open")]
    assert company.sql("SELECT owner_id FROM outcomes WHERE id = ?", task) == [(company.ceo.id,)]
    company.call(company.board, reorganise.undo, company=company.id, event=done["event_id"])
    company.call(company.board, pending_items.revive, message=sent["id"])
    back = with_key(company, company.call(company.board, agents.show, agent="lead"))
    assert bodies(look(company, back)) == ["to the layer"]


@pytest.mark.requirement("AG-87")
@rules
def test_a_person_writes_to_the_root_agent_which_then_has_something_to_do(
    company: Company,
) -> None:
    sent = send(company, company.board, "agent:ceo", "Please build a shop.")
    assert sent["from_board"]
    assert to_do(company, company.ceo) == ["Process inbox"]


# ── later ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-62", "HH-30", "HB-29")
def test_a_deferred_message_is_not_there_before_its_time(
    company: Company, clock: VirtualClock
) -> None:
    worker = company.agent("worker")
    file = company.file(company.ceo.caller, b"secret", "plan", unlisted=True)
    sent = send(
        company,
        company.ceo.caller,
        "agent:worker",
        "tomorrow",
        subject="Surprise",
        deliver_at=to_iso(clock.now() + DAY),
        attachments=[file["id"]],
    )
    myself = send(
        company, worker.caller, "agent:worker", "to me", deliver_at=to_iso(clock.now() + DAY)
    )
    for step in (0, DAY - 1):
        clock.advance(step)
        tick(company)
        assert look(company, worker) == []
        assert "Process inbox" not in to_do(company, worker)
        for hidden in (sent["file_id"], file["id"]):
            with pytest.raises(NotFound):
                company.read(worker.caller, hidden)
        assert refusal(company, worker.caller, threads.show, message=sent["id"]) == "not_found"
        assert refusal(company, worker.caller, inbox.acknowledge, ids=[sent["id"]]) == "not_found"
        # Whoever wrote it knows it.
        company.call(worker.caller, threads.show, message=myself["id"])
    clock.advance(1)
    tick(company)
    assert bodies(look(company, worker)) == ["tomorrow", "to me"]
    assert "Process inbox" in to_do(company, worker)
    assert company.read(worker.caller, file["id"])[1] == b"secret"
    tick(company)
    assert len(look(company, worker)) == 2


@pytest.mark.requirement("AG-62", "HB-29")
def test_what_came_due_while_nobody_watched_comes_once_and_in_order(
    database_url: str, tmp_path: Path, clock: VirtualClock
) -> None:
    home = tmp_path / "home"
    with opened(database_url, home, clock) as company:
        for hour in (3, 1, 2):
            for n in range(2):
                send(
                    company,
                    company.board,
                    "agent:ceo",
                    f"hour {hour} number {n}",
                    deliver_at=to_iso(clock.now() + hour * HOUR),
                )
        for n in range(101):  # more than are handled at once
            send(
                company,
                company.board,
                "agent:ceo",
                f"later {n:03}",
                deliver_at=to_iso(clock.now() + 4 * HOUR),
            )
    clock.advance(DAY)
    with opened(database_url, home, clock) as company:
        tick(company)
        got = []
        run = company.run(company.ceo)
        while found := take(company, run):
            got += bodies(found)
            ack(company, run.caller, *found)
        end(company, run)
        assert got == [
            *(f"hour {hour} number {n}" for hour in (1, 2, 3) for n in range(2)),
            *(f"later {n:03}" for n in range(101)),
        ]
        assert problems(company) == []


@pytest.mark.requirement("AG-62")
def test_what_was_due_comes_before_what_is_sent_afterwards(
    company: Company, clock: VirtualClock
) -> None:
    worker = company.agent("worker")
    for n in (2, 1):
        later = to_iso(clock.now() + n * HOUR)
        send(company, worker.caller, "agent:ceo", f"due {n}", deliver_at=later)
        send(company, worker.caller, "board", f"due {n}", deliver_at=later)
        send(company, worker.caller, "agent:worker", "another's", deliver_at=later)
    clock.advance(DAY)
    # The instance was down, and somebody is faster than whoever sees to what is due.
    send(company, worker.caller, "agent:ceo", "now")
    send(company, worker.caller, "board", "now")
    tick(company)
    assert bodies(look(company, company.ceo)) == ["due 1", "due 2", "now"]
    assert bodies(unread(company, company.board)) == ["now", "due 2", "due 1"]
    assert len(look(company, worker)) == 2


@pytest.mark.requirement("AG-62")
def test_a_clock_that_jumps_loses_and_repeats_nothing(
    company: Company, clock: VirtualClock
) -> None:
    start = clock.now()
    for minutes in range(-30, 120, 10):
        send(
            company,
            company.board,
            "agent:ceo",
            f"minute {minutes:+04}",
            deliver_at=to_iso(start + minutes * MINUTE),
        )
    expected = [f"minute {minutes:+04}" for minutes in range(-30, 120, 10)]
    got: list[str] = []
    latest = start
    for jump in (-HOUR, HOUR, HOUR, -HOUR, 20 * MINUTE, -HOUR, HOUR, HOUR, -HOUR, 2 * HOUR):
        clock.advance(jump)
        latest = max(latest, clock.now())
        tick(company)
        send(company, company.board, "agent:ceo", f"now {len(got)}")
        run = company.run(company.ceo)
        while found := take(company, run):
            got += bodies(found)
            ack(company, run.caller, *found)
        end(company, run)
        timed = [body for body in got if body.startswith("minute")]
        # Nothing is early by the latest that the clock has shown, nothing due is missing.
        assert timed == [
            body for n, body in enumerate(expected) if start + (n - 3) * 10 * MINUTE <= latest
        ]
    assert [body for body in got if body.startswith("minute")] == expected
    assert len(got) == len(set(got)) == len(expected) + 10


def test_two_instances_deliver_what_is_due_once(company: Company, clock: VirtualClock) -> None:
    for n in range(20):
        send(
            company,
            company.board,
            "agent:ceo",
            f"number {n:02}",
            deliver_at=to_iso(clock.now() + n + 1),
        )
    clock.advance(SECOND)
    company.together([company.app.clockwork.tick() for _ in range(6)])
    got = []
    run = company.run(company.ceo)
    while found := take(company, run):
        got += bodies(found)
        ack(company, run.caller, *found)
    end(company, run)
    assert got == [f"number {n:02}" for n in range(20)]


@rules
def test_what_the_sender_may_not_read_any_more_does_not_travel(
    company: Company, clock: VirtualClock
) -> None:
    worker = company.agent("worker")
    file = company.file(company.board, b"secret", "plan", unlisted=True)
    given = company.give(company.board, company.ceo, file, "read")
    send(
        company,
        company.ceo.caller,
        "agent:worker",
        "see this",
        deliver_at=to_iso(clock.now() + HOUR),
        attachments=[file["id"]],
    )
    company.call(company.board, grants.revoke, grant=given["id"])
    clock.advance(HOUR)
    tick(company)
    assert bodies(look(company, worker)) == ["see this"]
    with pytest.raises(NotFound):
        company.read(worker.caller, file["id"])


# ── those who are gone, not here yet, or paused ─────────────────────────────────────────────────


def test_mail_to_somebody_who_is_gone_awaits_a_person(
    company: Company, clock: VirtualClock
) -> None:
    worker = company.agent("worker")
    waits = send(company, company.ceo.caller, "agent:worker", "waits")
    held = send(
        company, company.ceo.caller, "agent:worker", "held", deliver_at=to_iso(clock.now() + HOUR)
    )
    taken = send(company, company.ceo.caller, "agent:worker", "taken")
    run = company.run(worker)
    ack(company, run.caller, taken)
    company.call(company.board, agents.terminate, agent="worker")
    assert statuses(company, waits) == [("dead", 1)]
    assert statuses(company, held) == [("deferred", 1)]
    clock.advance(HOUR)
    tick(company)
    assert statuses(company, held) == [("dead", 1)]
    assert statuses(company, taken) == [("done", 1)]
    dead = company.call(company.board, needs_you.listing)
    assert {one["id"] for one in dead if one["kind"] == "dead_letter"} == {waits["id"], held["id"]}
    assert refusal(company, company.board, pending_items.revive, message=waits["id"]) == "conflict"
    company.call(company.board, pending_items.discard, message=waits["id"])
    dead = company.call(company.board, needs_you.listing)
    assert {one["id"] for one in dead if one["kind"] == "dead_letter"} == {held["id"]}
    for to in ("agent:worker", f"agent:{worker.id}"):
        with pytest.raises(RemitError) as caught:
            send(company, company.ceo.caller, to)
        assert (caught.value.reason, caught.value.step) == ("conflict", "Write to its boss.")


@rules
def test_mail_waits_for_a_paused_agent_and_is_refused_for_one_not_hired_yet(
    company: Company,
) -> None:
    worker = company.agent("worker")
    company.call(company.board, agents.pause, agent="worker")
    send(company, company.ceo.caller, "agent:worker", "when you are back")
    company.call(company.board, agents.resume, agent="worker")
    assert bodies(look(company, worker)) == ["when you are back"]
    newcomer = company.agent("newcomer")
    company.sql("UPDATE agents SET status = 'pending_approval' WHERE id = ?", newcomer.id)
    with pytest.raises(RemitError) as caught:
        send(company, company.ceo.caller, "agent:newcomer")
    assert caught.value.reason == "conflict"
    assert "approved" in caught.value.step
    assert company.sql("SELECT count(*) FROM outcomes WHERE kind = 'inbox'") == [(1,)]


@rules
def test_the_agent_that_took_over_a_name_does_not_get_the_others_mail(company: Company) -> None:
    old = company.agent("worker")
    send(company, company.ceo.caller, "agent:worker", "for the old one")
    company.call(company.board, agents.terminate, agent=old.id)
    new = company.agent("worker")
    assert look(company, new) == []
    send(company, company.ceo.caller, "agent:worker", "for the new one")
    assert bodies(look(company, new)) == ["for the new one"]


# ── threads ─────────────────────────────────────────────────────────────────────────────────────


def test_a_thread_ends_loops(small: Company) -> None:
    worker = small.agent("worker")
    message = send(small, worker.caller, "agent:ceo", "ping")
    thread = message["thread_id"]
    pair = itertools.cycle([(small.ceo, "agent:worker"), (worker, "agent:ceo")])
    for _ in range(MOST_HOPS):
        who, to = next(pair)
        message = send(small, who.caller, to, "pong", reply_to=message["id"])
        assert message["thread_id"] == thread
    who, to = next(pair)
    assert refused(small, who.caller, to, reply_to=message["id"]) == "hop_limit"
    send(small, who.caller, to, "a new thread")


def test_only_what_one_can_see_can_be_answered_or_looked_up(company: Company) -> None:
    worker, other = company.agent("worker"), company.agent("other")
    sent = send(company, company.ceo.caller, "agent:worker", "between us")
    assert refused(company, other.caller, "agent:ceo", reply_to=sent["id"]) == "not_found"
    assert refused(company, other.caller, "agent:ceo", reply_to=sent["id"][:18]) == "not_found"
    assert refusal(company, other.caller, inbox.acknowledge, ids=[sent["id"]]) == "not_found"
    # Whoever sent it did not receive it.
    assert refusal(company, company.ceo.caller, inbox.acknowledge, ids=[sent["id"]]) == "not_found"
    answer = send(company, worker.caller, "agent:ceo", "yes", reply_to=sent["id"][:18])
    assert (answer["reply_to"], answer["thread_id"]) == (sent["id"], sent["id"])
    neighbour = company.second_company()
    for caller in (neighbour.board, neighbour.agent.caller):
        assert refusal(company, caller, threads.show, message=sent["id"]) == "not_found"
        assert refusal(company, caller, inbox.acknowledge, ids=[sent["id"]]) == "not_found"


def test_the_beginning_of_an_id_means_what_the_caller_can_see(company: Company) -> None:
    worker, other = company.agent("worker"), company.agent("other")
    mine = send(company, company.ceo.caller, "agent:worker", "mine")
    theirs = send(company, company.ceo.caller, "agent:other", "theirs")
    # The clock stands still, so the times in both ids are the same.
    prefix = mine["id"][:13]
    assert theirs["id"].startswith(prefix)
    for member, sent in ((worker, mine), (other, theirs)):
        shown = company.call(member.caller, threads.show, message=prefix)
        assert shown["id"] == sent["id"]
        done = company.call(member.caller, inbox.acknowledge, ids=[prefix])
        assert done["acknowledged"] == [sent["id"]]
    assert refusal(company, company.ceo.caller, threads.show, message=prefix) == "ambiguous"


@pytest.mark.requirement("HH-17")
def test_the_common_boss_can_read_what_its_reports_write_to_each_other(company: Company) -> None:
    messaging(company, "team")
    lead = company.agent("lead")
    a, b = company.agent("a", "lead"), company.agent("b", "lead")
    first = send(company, a.caller, "agent:b", "Shall we?")
    send(company, b.caller, "agent:a", "We shall.", reply_to=first["id"])
    for caller in (a.caller, b.caller, lead.caller, company.board):
        shown = company.call(caller, threads.show, message=first["id"])
        assert bodies(shown["thread"]) == ["Shall we?", "We shall."]
    assert company.read(lead.caller, first["file_id"])[1] == b"Shall we?"
    # It is not in the boss's inbox, and no business of anybody else.
    assert look(company, lead) == []
    peer = company.agent("peer", "lead")
    for member in (company.ceo, peer):
        assert refusal(company, member.caller, threads.show, message=first["id"]) == "not_found"


# ── attachments ─────────────────────────────────────────────────────────────────────────────────


def test_an_attachment_gives_its_receiver_read_and_says_why(company: Company) -> None:
    worker = company.agent("worker")
    file = company.file(worker.caller, b"result", "result", unlisted=True)
    with pytest.raises(NotFound):
        company.read(company.ceo.caller, file["id"])
    sent = send(
        company, worker.caller, "agent:ceo", "done", attachments=[file["id"], f"kb://{file['id']}"]
    )
    assert sent["attachments"] == [file["id"]]
    assert company.read(company.ceo.caller, file["id"])[1] == b"result"
    with pytest.raises(RemitError) as caught:
        company.write(company.ceo.caller, file, b"mine now")
    assert caught.value.reason == "no_capability"
    held = company.call(company.ceo.caller, grants.listing, company=None)
    (grant,) = [one for one in held if one["resource"] == f"kb_file:{file['id']}"]
    assert (grant["level"], grant["granted_by"]) == ("read", f"agent:{worker.id}")
    assert grant["reason"] == "received it by mail"
    details = [
        json.loads(text)
        for (text,) in company.sql("SELECT details FROM events WHERE action = 'grant.give'")
    ]
    assert [one["by_mail"] for one in details if one["resource"] == grant["resource"]] == [True]
    # Sent again, it is not given again.
    send(company, worker.caller, "agent:ceo", "done", attachments=[file["id"]])
    again = company.call(company.ceo.caller, grants.listing, company=None)
    assert len([one for one in again if one["resource"] == grant["resource"]]) == 1


@rules
def test_only_what_one_may_read_can_be_attached(company: Company) -> None:
    worker = company.agent("worker")
    hidden = company.file(company.ceo.caller, b"secret", "hidden", unlisted=True)
    known = company.file(company.ceo.caller, b"secret", "known")
    gated = company.file(company.board, b"secret", "gated")
    company.give(company.board, worker, gated, "read", mode="ask")
    for file, reason in (
        (hidden, "not_found"),
        (known, "no_capability"),
        (gated, "pending_approval"),
    ):
        assert refused(company, worker.caller, "agent:ceo", attachments=[file["id"]]) == reason
    assert (
        refused(company, worker.caller, "agent:ceo", body=None, file=known["id"]) == "no_capability"
    )
    assert look(company, company.ceo) == []


@rules
def test_what_was_passed_on_goes_with_what_it_came_from(company: Company) -> None:
    worker = company.agent("worker")
    file = company.file(company.board, b"secret", "plan")
    given = company.give(company.board, worker, file, "write")
    send(company, worker.caller, "agent:ceo", "look", attachments=[file["id"]])
    company.read(company.ceo.caller, file["id"])
    company.call(company.board, grants.revoke, grant=given["id"])
    with pytest.raises(RemitError) as caught:
        company.read(company.ceo.caller, file["id"])
    assert caught.value.reason == "no_capability"


@rules
def test_an_explicit_prohibition_outlasts_an_attachment(company: Company) -> None:
    worker = company.agent("worker")
    file = company.file(worker.caller, b"secret", "plan")
    company.give(company.board, company.ceo, file, "read", mode="deny")
    send(company, worker.caller, "agent:ceo", "look", attachments=[file["id"]])
    with pytest.raises(RemitError) as caught:
        company.read(company.ceo.caller, file["id"])
    assert caught.value.reason == "denied_by_grant"


@rules
def test_an_outcome_can_be_attached_for_a_sibling(company: Company) -> None:
    messaging(company, "team")
    a, b = company.agent("a"), company.agent("b")
    task = work(company, a.caller, a.id, "A task")
    assert refusal(company, b.caller, outcomes.show, outcome=task) == "not_found"
    send(company, a.caller, "agent:b", "have a look", attachments=[task])
    assert company.call(b.caller, outcomes.show, outcome=task)["title"] == "A task"
    assert refusal(company, b.caller, outcomes.close, outcome=task, rationale="x") == "read_only"
    # Whoever sees it anyway needs no grant for it.
    send(company, a.caller, "agent:ceo", "have a look", attachments=[task])
    held = company.call(company.ceo.caller, grants.listing, company=None)
    assert f"outcome:{task}" not in {one["resource"] for one in held}


def test_a_person_over_a_part_reads_what_was_sent_to_them(company: Company) -> None:
    worker = company.agent("worker")
    other = company.agent("other")
    chief = company.user("chief", scope="worker")
    file = company.file(other.caller, b"from elsewhere", "elsewhere", unlisted=True)
    company.give(company.board, worker, file, "read")
    with pytest.raises(NotFound):
        company.read(chief, file["id"])
    send(company, worker.caller, "user:chief", "look", attachments=[file["id"]])
    assert company.read(chief, file["id"])[1] == b"from elsewhere"
    nobody = company.user("nobody", scope="other")
    unrelated = company.file(worker.caller, b"x", "x", unlisted=True)
    with pytest.raises(NotFound):
        company.read(nobody, unrelated["id"])


# ── asking for a capability ─────────────────────────────────────────────────────────────────────


def ask_for(company: Company, member: Member, resource: str, level: str = "read") -> dict[str, Any]:
    return company.call(
        member.caller,
        capability_requests.request_capability,
        resource=resource,
        level=level,
        why="I need it.",
    )


@pytest.mark.requirement("AG-105")
def test_a_report_asks_and_its_boss_grants_in_one_step_and_once(company: Company) -> None:
    worker = company.agent("worker")
    file = company.file(company.ceo.caller, b"plan", "plan")
    request = ask_for(company, worker, f"kb_file:{file['id']}")
    (letter,) = look(company, company.ceo)
    assert letter["id"] == request["id"]
    assert letter["request"]["resource"] == f"kb_file:{file['id']}"
    assert letter["body"].startswith("worker asks for read on kb_file:")
    given = company.call(
        company.ceo.caller, capability_requests.grant_request, request=letter["id"]
    )
    assert (given["level"], given["granted_by"]) == ("read", f"agent:{company.ceo.id}")
    assert company.read(worker.caller, file["id"])[1] == b"plan"
    (told,) = look(company, worker)
    assert told["reply_to"] == request["id"]
    assert look(company, company.ceo) == []
    for caller in (company.ceo.caller, company.board):
        assert (
            refusal(company, caller, capability_requests.grant_request, request=request["id"])
            == "conflict"
        )
    held = company.call(worker.caller, grants.listing, company=None)
    assert len([one for one in held if one["resource"] == f"kb_file:{file['id']}"]) == 1


@pytest.mark.requirement("AG-105")
@rules
def test_a_request_gives_nothing_by_itself_and_never_more_than_the_boss_has(
    company: Company,
) -> None:
    lead = company.agent("lead")
    worker = company.agent("worker", "lead")
    file = company.file(company.board, b"plan", "plan")
    company.give(company.board, lead, file, "read")
    request = ask_for(company, worker, f"kb_file:{file['id']}", "write")
    with pytest.raises(RemitError):
        company.read(worker.caller, file["id"])
    refusals = [
        (lead.caller, "not_held"),
        (worker.caller, "not_your_report"),
        (company.ceo.caller, "not_found"),
    ]
    for caller, reason in refusals:
        assert (
            refusal(company, caller, capability_requests.grant_request, request=request["id"])
            == reason
        )
    plain = send(company, worker.caller, "agent:lead", "please")
    assert (
        refusal(company, lead.caller, capability_requests.grant_request, request=plain["id"])
        == "invalid"
    )
    company.call(company.board, capability_requests.grant_request, request=request["id"])
    company.write(worker.caller, file, b"mine")
    for resource, level in (("kb_file:x", "read"), (f"kb_file:{file['id']}", "use"), ("x", "read")):
        assert (
            refusal(
                company,
                worker.caller,
                capability_requests.request_capability,
                resource=resource,
                level=level,
                why="x",
            )
            == "invalid"
        )


@pytest.mark.requirement("AG-105")
def test_two_who_grant_at_once_grant_once(company: Company) -> None:
    worker = company.agent("worker")
    file = company.file(company.ceo.caller, b"plan", "plan")
    request = ask_for(company, worker, f"kb_file:{file['id']}")
    got = company.together(
        [
            company.app.gate(caller, capability_requests.grant_request, request=request["id"])
            for caller in (company.ceo.caller, company.board) * 3
        ]
    )
    lost = [code(one) for one in got if isinstance(one, BaseException)]
    assert lost == ["conflict"] * 5
    held = company.call(worker.caller, grants.listing, company=None)
    assert len([one for one in held if one["resource"] == f"kb_file:{file['id']}"]) == 1


@pytest.mark.requirement("AG-105")
@rules
def test_the_root_agent_asks_the_board(company: Company) -> None:
    file = company.file(company.board, b"plan", "plan")
    request = ask_for(company, company.ceo, f"kb_file:{file['id']}")
    (letter,) = unread(company, company.board)
    assert letter["id"] == request["id"]
    company.call(company.board, capability_requests.grant_request, request=request["id"])
    assert unread(company, company.board) == []
    assert company.read(company.ceo.caller, file["id"])[1] == b"plan"


# ── companies are apart ─────────────────────────────────────────────────────────────────────────


def test_mail_stays_in_its_company(company: Company, clock: VirtualClock) -> None:
    neighbour = company.second_company()
    company.call(company.board, companies.change, company=neighbour.id, messaging="open")
    messaging(company, "open")
    assert refused(company, company.ceo.caller, f"agent:{neighbour.agent.id}") == "not_found"
    assert (
        refused(company, company.board, f"agent:{neighbour.agent.id}", company=company.id)
        == "not_found"
    )
    file = company.file(company.ceo.caller, b"x")
    assert (
        refused(
            company,
            company.board,
            "agent:stranger",
            company=neighbour.id,
            attachments=[file["id"]],
        )
        == "not_found"
    )
    send(
        company,
        neighbour.board,
        "agent:stranger",
        "hello",
        deliver_at=to_iso(clock.now() + SECOND),
    )
    clock.advance(SECOND)
    tick(company)
    found: list[dict[str, Any]] = company.call(neighbour.agent.caller, inbox.take)["messages"]
    assert bodies(found) == ["hello"]
    assert look(company, company.ceo) == []


def test_somebody_without_a_part_reaches_nobody(small: Company) -> None:
    leaver = small.user("leaver")
    small.call(small.board, users.remove, company=small.id, user="leaver")
    with pytest.raises(RemitError):
        send(small, leaver, "agent:ceo")
    with pytest.raises(Unauthenticated):
        send(small, Caller("rmt_user_x"), "agent:ceo")
    # Nothing but Remit ends runs.
    run = small.run(small.ceo)
    for caller in (run.caller, small.ceo.caller):
        assert refusal(small, caller, runs.end, run=run.id) == "board_only"
    small.call(as_system(), runs.end, run=run.id)
