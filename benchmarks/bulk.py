"""Many rows at once, as if they had come one by one: all that the database checks holds."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from typing import Any

from sqlalchemy import Connection, create_engine, event, insert, text

from benchmarks.harness import KIB_4
from benchmarks.office import Office
from remit.model.grant import Level, Mode, ResourceKind
from remit.model.text import name_key, search_words
from remit.store import tables

COMMON_WORD, RARE_WORD = "report", "needle"
_AT_ONCE = 5_000

_INDEX = text("INSERT INTO file_search (rowid, file_id, words) VALUES (:row, :file, :words)")


def fill(here: Office, count: int) -> list[str]:
    """Files of the root agent, the younger half unlisted, each with the grant of its author."""
    ids = [here.app.ids.new() for _ in range(count)]
    with _connected(here) as connection:
        for start in range(0, count, _AT_ONCE):
            numbered = list(enumerate(ids))[start : start + _AT_ONCE]
            some = [_file(here, number, file, number >= count // 2) for number, file in numbered]
            connection.execute(insert(tables.files), some)
            connection.execute(insert(tables.file_versions), [_version(here, row) for row in some])
            connection.execute(insert(tables.grants), [_grant(here, row) for row in some])
            connection.execute(_INDEX, [_index(row) for row in some])
    return ids


def fill_agents(here: Office, count: int) -> None:
    """Agents that report to the root agent, each with its mandate."""
    now = here.app.clock.now()
    mandates, people = [], []
    for number in range(count):
        shared = {"id": here.app.ids.new(), "company_id": here.company, "created_at": now}
        mandates.append(
            {
                **shared,
                "title": f"Mandate {number}",
                "status": "open",
                "perpetual": False,
                "owner_id": shared["id"],
                "finished_at": None,
            }
        )
        people.append(
            {
                **shared,
                "name": f"idle-{number}",
                "name_key": name_key(f"idle-{number}"),
                "role": "general",
                "title": "",
                "status": "idle",
                "boss_id": here.agent_id,
                "boss_user_id": None,
                "adapter_type": "scripted",
                "adapter_config": "{}",
                "updated_at": now,
            }
        )
    with _connected(here) as connection:
        connection.execute(insert(tables.outcomes), mandates)
        connection.execute(insert(tables.agents), people)


@contextlib.contextmanager
def _connected(here: Office) -> Iterator[Connection]:
    """One transaction on the instance's database, with foreign keys checked."""
    engine = create_engine(here.app.settings.database_url)
    event.listen(engine, "connect", _check_foreign_keys)
    try:
        with engine.begin() as connection:
            yield connection
    finally:
        engine.dispose()


def _check_foreign_keys(connection: Any, _: object) -> None:
    connection.execute("PRAGMA foreign_keys=ON")


def _file(here: Office, number: int, file: str, unlisted: bool) -> dict[str, Any]:
    rare = f" {RARE_WORD}" if number == 17 else ""
    now = here.app.clock.now()
    return {
        "id": file,
        "company_id": here.company,
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


def _version(here: Office, file: dict[str, Any]) -> dict[str, Any]:
    same = {name: file[name] for name in ("sha256", "size", "is_text")}
    author = {"agent_id": here.agent_id, "user_id": None, "run_id": None}
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
