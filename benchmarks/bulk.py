"""Rows in bulk, as if they had been created one by one: all constraints of the database hold."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Table, create_engine, insert, text

from benchmarks.harness import KIB_4
from benchmarks.office import Office
from remit.clock import DAY
from remit.ids import CompanyId, EventId
from remit.model.event import Event
from remit.model.organisation.grant import Level, Mode, ResourceKind
from remit.model.organisation.principal import ActorKind
from remit.model.text import name_key, search_words
from remit.model.work.file import FileKind
from remit.store import tables
from remit.store.blob_store.blobs import EMPTY
from remit.store.engine.statement import row
from remit.store.record.events import event_hash

COMMON_WORD, RARE_WORD = "report", "needle"
_AT_ONCE = 5_000

_INDEX = text("INSERT INTO file_search (rowid, file_id, words) VALUES (:row, :file, :words)")
_PREREQS = text("""
    UPDATE outcomes SET open_prereqs = (
        SELECT count(*) FROM outcome_edges e JOIN outcomes part ON part.id = e.child_id
        WHERE e.parent_id = outcomes.id AND part.status = 'open'
    ) + (
        SELECT count(*) FROM outcome_blockers b JOIN outcomes other ON other.id = b.blocker_id
        WHERE b.outcome_id = outcomes.id AND other.status = 'open'
    ) WHERE company_id = :company
""")


def fill(here: Office, count: int) -> list[str]:
    """Files of the root agent, the younger half unlisted, each with the grant of its author."""
    ids = [here.app.ids.new() for _ in range(count)]
    with _connected(here) as connection:
        for start in range(0, count, _AT_ONCE):
            numbered = list(enumerate(ids))[start : start + _AT_ONCE]
            some = [_file(here, number, file, number >= count // 2) for number, file in numbered]
            connection.execute(insert(tables.files), some)
            connection.execute(insert(tables.file_versions), [_version(row) for row in some])
            connection.execute(insert(tables.grants), [_grant(here, row) for row in some])
            connection.execute(_INDEX, [_index(row) for row in some])
    return ids


def fill_agents(here: Office, count: int) -> None:
    """Agents that report to the root agent, each with its mandate, its memory and its log."""
    fill_tree(here, [None] * count)


def fill_tree(here: Office, bosses: Sequence[int | None]) -> list[str]:
    """Agents below one another: each names the number of its boss, None for the root agent."""
    ids = [here.app.ids.new() for _ in bosses]
    now = here.app.clock.now()
    above = [here.agent_id if boss is None else ids[boss] for boss in bosses]
    with _connected(here) as connection:
        for start in range(0, len(ids), _AT_ONCE):
            some = range(start, min(start + _AT_ONCE, len(ids)))
            books = {number: (here.app.ids.new(), here.app.ids.new()) for number in some}
            mandates = [
                _outcome(here, ids[number], f"Mandate {number}", ids[number], above[number])
                for number in some
            ]
            people = [
                _agent(here, number, ids[number], above[number], *books[number]) for number in some
            ]
            papers = [
                _paper(here, file, ids[number], kind)
                for number in some
                for kind, file in zip(
                    ("outcome", "state", "log"), (ids[number], *books[number]), strict=True
                )
            ]
            places = [
                {
                    "company_id": here.company,
                    "agent_id": ids[number],
                    "boss_id": above[number],
                    "boss_user_id": None,
                    "since": now,
                    "until": None,
                }
                for number in some
            ]
            connection.execute(insert(tables.outcomes), mandates)
            connection.execute(insert(tables.agents), people)
            connection.execute(insert(tables.files), papers)
            connection.execute(insert(tables.file_versions), [_version(paper) for paper in papers])
            connection.execute(insert(tables.agent_places), places)
            connection.execute(
                insert(tables.outcome_edges),
                [_edge(here, above[number], ids[number]) for number in some],
            )
        _count_prereqs(connection, here)
    return ids


def make_programs(here: Office, command: str) -> None:
    """All agents are a program from now on, each of those with something to do.

    The root agent, too, which hears of their runs: nobody listens where its adapter would call.
    """
    config = json.dumps({"command": command})
    with _connected(here) as connection:
        connection.execute(
            text("UPDATE agents SET adapter_type = 'process', adapter_config = :config"),
            {"config": config},
        )
        connection.execute(text("UPDATE outcomes SET news = 1 WHERE title LIKE 'Mandate %'"))


def fill_leases(here: Office, agents: Sequence[str], awake: int) -> None:
    """All have been at work before; the first of them have something to do again."""
    rows = [
        {
            "agent_id": agent,
            "company_id": here.company,
            "wake_seq": 2 if number < awake else 1,
            "done_seq": 1,
            "epoch": 1,
            "lease_until": None,
            "worker": None,
            "due_at": 1,
            "why": "mail",
            "idle_runs": 0,
            "failures": 0,
            "told": None,
        }
        for number, agent in enumerate(agents)
    ]
    with _connected(here) as connection:
        for start in range(0, len(rows), _AT_ONCE):
            connection.execute(insert(tables.agent_leases), rows[start : start + _AT_ONCE])


def stop_agents(here: Office, agents: Sequence[str], why: str) -> None:
    """Agents with leases that a person has to see to, all for the same cause."""
    with _connected(here) as connection:
        for agent in agents:
            now = here.app.clock.now()
            known = {"agent": agent, "why": why, "now": now, "later": now + DAY}
            connection.execute(text("UPDATE agents SET status = 'error' WHERE id = :agent"), known)
            connection.execute(
                text(
                    # Nobody looks before tomorrow whether they could work again.
                    "UPDATE agent_leases SET told = :why, failing_since = :now, failures = 3,"
                    " due_at = :later"
                    " WHERE agent_id = :agent"
                ),
                known,
            )


def fill_runs(here: Office, agents: Sequence[str], count: int, days: int = 14) -> None:
    """Runs that ended, spread over days, each eighth of them badly; and what they cost."""
    now = here.app.clock.now()
    spent: dict[tuple[str, int], int] = {}
    rows = []
    for number in range(count):
        # Uneven on purpose, with a burst now and then.
        began = now - days * DAY + (number * number * 7_919_000_133) % (days * DAY)
        agent, cost = agents[number % len(agents)], 1_000 * (number % 37)
        failed = number % 8 == 0
        rows.append(
            {
                "id": _id_at(began, number),
                "company_id": here.company,
                "agent_id": agent,
                "status": "failed" if failed else "completed",
                "started_at": began,
                "ended_at": began + 60_000_000,
                "why": "mail",
                "cost_micros": cost,
                "error": "host unreachable" if failed else None,
            }
        )
        day = began - began % DAY
        spent[agent, day] = spent.get((agent, day), 0) + cost
    with _connected(here) as connection:
        for start in range(0, count, _AT_ONCE):
            connection.execute(insert(tables.runs), rows[start : start + _AT_ONCE])
        _insert(
            connection,
            tables.spending,
            [
                {
                    "agent_id": agent,
                    "day": day,
                    "company_id": here.company,
                    "money_micros": cost,
                    "tokens": cost // 10,
                }
                for (agent, day), cost in spent.items()
            ],
        )


def _id_at(at: int, number: int) -> str:
    """As an id would have been then."""
    text_ = f"{at // 1000:012x}7{number % 4096:03x}8{number:015x}"
    return f"{text_[:8]}-{text_[8:12]}-{text_[12:16]}-{text_[16:20]}-{text_[20:32]}"


def fill_outcomes(here: Office, parent: str, count: int, wide: int = 10) -> list[str]:
    """Outcomes of the root agent below one of its own, at most `wide` below each."""
    ids = [here.app.ids.new() for _ in range(count)]
    above = [parent if number == 0 else ids[(number - 1) // wide] for number in range(count)]
    rows = [
        _outcome(here, own, f"Part {number}", here.agent_id, None) for number, own in enumerate(ids)
    ]
    papers = [_paper(here, own, here.agent_id, "outcome") for own in ids]
    with _connected(here) as connection:
        connection.execute(insert(tables.outcomes), rows)
        connection.execute(insert(tables.files), papers)
        connection.execute(insert(tables.file_versions), [_version(paper) for paper in papers])
        edges = [_edge(here, whole, part) for whole, part in zip(above, ids, strict=True)]
        connection.execute(insert(tables.outcome_edges), edges)
        _count_prereqs(connection, here)
    return ids


def fill_mail(here: Office, receivers: Sequence[str], each: int, body: str) -> None:
    """Mail from the root agent that waits for others: one file, sent to each again and again."""
    count = len(receivers) * each
    inboxes = [here.app.ids.new() for _ in receivers]
    with _connected(here) as connection:
        work = [
            _outcome(here, own, "Process inbox", receiver, None) | {"kind": "inbox"}
            for own, receiver in zip(inboxes, receivers, strict=True)
        ]
        papers = [
            _paper(here, own, receiver, "outcome")
            for own, receiver in zip(inboxes, receivers, strict=True)
        ]
        _insert(connection, tables.outcomes, work)
        _insert(connection, tables.files, papers)
        _insert(connection, tables.file_versions, [_version(paper) for paper in papers])
        placed = connection.execute(_POSITION, {"company": here.company}).scalar_one()
        for start in range(0, count, _AT_ONCE):
            some = range(start, min(start + _AT_ONCE, count))
            letters = [_letter(here, body, receivers[n % len(receivers)]) for n in some]
            connection.execute(insert(tables.messages), letters)
            delivered = [
                _delivery(letter, placed + number + 1, agent=receivers[number % len(receivers)])
                for number, letter in zip(some, letters, strict=True)
            ]
            connection.execute(insert(tables.deliveries), delivered)
        connection.execute(_PLACED, {"company": here.company, "position": placed + count})


def fill_mail_of_user(here: Office, user: str, count: int, body: str, status: str) -> None:
    """Mail to a person, read or not."""
    with _connected(here) as connection:
        placed = connection.execute(_POSITION, {"company": here.company}).scalar_one()
        letters = [_letter(here, body, user) | {"address": f"user:{user}"} for _ in range(count)]
        _insert(connection, tables.messages, letters)
        ended = here.app.clock.now() if status == "done" else None
        delivered = [
            _delivery(letter, placed + number, user=user) | {"status": status, "ended_at": ended}
            for number, letter in enumerate(letters, 1)
        ]
        _insert(connection, tables.deliveries, delivered)
        connection.execute(_PLACED, {"company": here.company, "position": placed + count})


def fill_deferred(here: Office, senders: Sequence[str], each: int, body: str) -> None:
    """Mail that agents sent to themselves for tomorrow."""
    tomorrow = here.app.clock.now() + DAY
    letters = [
        _letter(here, body, sender) | {"sender_agent_id": sender}
        for sender in senders
        for _ in range(each)
    ]
    held = [
        _delivery(letter, None, agent=letter["sender_agent_id"])
        | {"status": "deferred", "deliver_at": tomorrow}
        for letter in letters
    ]
    with _connected(here) as connection:
        _insert(connection, tables.messages, letters)
        _insert(connection, tables.deliveries, held)


def fill_events(here: Office, count: int) -> None:
    """What happened to nothing in particular, chained as ever; one in a thousand was refused."""
    with _connected(here) as connection:
        seq, last = connection.execute(_HEAD, {"company": here.company}).one()
        for start in range(0, count, _AT_ONCE):
            some = []
            for number in range(start, min(start + _AT_ONCE, count)):
                seq += 1
                event = Event(
                    company_id=CompanyId(here.company),
                    seq=seq,
                    id=EventId(here.app.ids.new()),
                    at=here.app.clock.now(),
                    actor_kind=ActorKind.AGENT,
                    actor_id=here.agent_id,
                    run_id=None,
                    action="file.read" if number % 1000 == 0 else "outcome.change",
                    resource=f"outcome:{here.agent_id}",
                    allowed=number % 1000 != 0,
                    reason="measured",
                    basis="rule:measured",
                    details="{}",
                    prev_hash=last,
                    hash="",
                )
                last = event_hash(event)
                some.append(row(replace(event, hash=last)))
            connection.execute(insert(tables.events), some)
        connection.execute(_MOVED, {"company": here.company, "seq": seq, "hash": last})


def _insert(connection: Connection, table: Table, rows: Sequence[dict[str, Any]]) -> None:
    for start in range(0, len(rows), _AT_ONCE):
        connection.execute(insert(table), rows[start : start + _AT_ONCE])


def _letter(here: Office, body: str, receiver: str) -> dict[str, Any]:
    own = here.app.ids.new()
    return {
        "id": own,
        "company_id": here.company,
        "thread_id": own,
        "reply_to": None,
        "sender_kind": "agent",
        "sender_agent_id": here.agent_id,
        "sender_user_id": None,
        "sender_run_id": None,
        "from_board": False,
        "address": f"agent:{receiver}",
        "subject": "Measured",
        "body_file_id": body,
        "body_version": 1,
        "attachments": "[]",
        "hops": 0,
        "at_most_once": False,
        "question_id": None,
        "request": None,
        "created_at": here.app.clock.now(),
    }


def _delivery(
    letter: dict[str, Any],
    position: int | None,
    *,
    agent: str | None = None,
    user: str | None = None,
) -> dict[str, Any]:
    return {
        "company_id": letter["company_id"],
        "message_id": letter["id"],
        "agent_id": agent,
        "user_id": user,
        "status": "queued",
        "deliver_at": letter["created_at"],
        "position": position,
        "attempt": 1,
        "run_id": None,
        "ended_at": None,
        "ended_why": None,
    }


def _outcome(
    here: Office, own: str, title: str, owner: str, delegator: str | None
) -> dict[str, Any]:
    now = here.app.clock.now()
    return {
        "id": own,
        "company_id": here.company,
        "title": title,
        "status": "open",
        "perpetual": False,
        "owner_id": owner,
        "delegated": delegator is not None,
        "delegator_id": delegator,
        "urgent": False,
        "important": False,
        "deferred_until": None,
        "open_prereqs": 0,
        "verdict": None,
        "version": 1,
        "created_at": now,
        "updated_at": now,
        "finished_at": None,
    }


def _agent(here: Office, number: int, own: str, boss: str, state: str, log: str) -> dict[str, Any]:
    now = here.app.clock.now()
    return {
        "id": own,
        "company_id": here.company,
        "name": f"idle-{number}",
        "name_key": name_key(f"idle-{number}"),
        "role": "general",
        "title": "",
        "status": "idle",
        "boss_id": boss,
        "boss_user_id": None,
        "adapter_type": "human",  # seats of people, which no worker starts
        "adapter_config": "{}",
        "seat_user_id": None,
        "prompt": "",
        "state_file_id": state,
        "log_file_id": log,
        "created_at": now,
        "updated_at": now,
    }


def _paper(here: Office, file: str, home: str, kind: str) -> dict[str, Any]:
    """The document of an outcome, or an agent's memory or log; not in the index of words, and
    empty, so that a run finds all of its bytes."""
    found = _file(here, 0, file, unlisted=False) | {"sha256": EMPTY, "size": 0}
    return {**found, "kind": kind, "home_agent_id": home, "description": kind, "search_row": None}


def _edge(here: Office, whole: str, part: str) -> dict[str, Any]:
    return {"company_id": here.company, "parent_id": whole, "child_id": part}


def _count_prereqs(connection: Connection, here: Office) -> None:
    """As the services keep it: how much of what an outcome consists of is open."""
    connection.execute(_PREREQS, {"company": here.company})


_HEAD = text("SELECT seq, hash FROM event_heads WHERE company_id = :company")
_MOVED = text("UPDATE event_heads SET seq = :seq, hash = :hash WHERE company_id = :company")
_POSITION = text("SELECT mail_position FROM companies WHERE id = :company")
_PLACED = text("UPDATE companies SET mail_position = :position WHERE id = :company")


@contextlib.contextmanager
def _connected(here: Office) -> Iterator[Connection]:
    """One transaction on the instance's database; that all keys lead somewhere is checked at once.

    Row by row SQLite would look for what waits for each new row, in tables without an index for it.
    """
    engine = create_engine(here.app.settings.database_url)
    try:
        with engine.begin() as connection:
            yield connection
            astray = connection.execute(text("PRAGMA foreign_key_check")).first()
            assert astray is None, astray
    finally:
        engine.dispose()


def _file(here: Office, number: int, file: str, unlisted: bool) -> dict[str, Any]:
    rare = f" {RARE_WORD}" if number == 17 else ""
    now = here.app.clock.now()
    return {
        "id": file,
        "company_id": here.company,
        "kind": FileKind.FILE.value,
        "description": f"{COMMON_WORD} number {number}{rare} about topic {number % 97}",
        "unlisted": unlisted,
        "home_agent_id": here.agent_id,
        "version": 1,
        "sha256": hashlib.sha256(KIB_4).hexdigest(),
        "size": len(KIB_4),
        "is_text": True,
        "links": 0,
        # Above whatever the services have numbered so far.
        "search_row": 1_000_000 + number,
        "created_at": now,
        "updated_at": now,
    }


def _version(file: dict[str, Any]) -> dict[str, Any]:
    same = {name: file[name] for name in ("sha256", "size", "is_text")}
    author = {"agent_id": file["home_agent_id"], "user_id": None, "run_id": None}
    return {"file_id": file["id"], "number": 1, "at": file["created_at"], **same, **author}


def _grant(here: Office, file: dict[str, Any]) -> dict[str, Any]:
    nothing = ("scope_id", "parent_id", "granted_by_agent", "granted_by_user", "expires_at")
    return {
        "id": here.app.ids.new(),
        "company_id": here.company,
        "holder_id": here.agent_id,
        "kind": ResourceKind.KB_FILE.value,
        "resource_id": file["id"],
        "level": int(Level.WRITE),
        "mode": Mode.ALLOW.value,
        "created_at": file["created_at"],
        "revoked_at": None,
        "used_at": None,
        **dict.fromkeys(nothing),
    }


def _index(file: dict[str, Any]) -> dict[str, Any]:
    words = " ".join(search_words(file["description"]))
    return {"row": file["search_row"], "file": file["id"], "words": words}
