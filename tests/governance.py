"""A company that wants to be asked before it takes somebody on; how its tests ask and decide."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from remit.services.governance import approvals
from remit.services.hiring import configuration, hiring
from remit.services.identity import Caller
from remit.services.messaging import inbox
from remit.services.rights import grants
from remit.services.screens import needs_you
from remit.store.engine.migrate import is_sqlite, sqlite_path
from remit.store.engine.postgres import PostgresTransaction
from remit.store.engine.sqlite import SqliteTransaction
from tests.company import Answer, Company, Member
from tests.organisation import member


def hire(company: Company, caller: Caller, name: str, **more: Any) -> Answer:
    """Ask for an agent; answers the agent and the approval it waits for, if any."""
    more.setdefault("adapter_type", "scripted")
    return company.call(caller, hiring.hire, company=company.id, name=name, **more)


def hired(company: Company, caller: Caller, name: str, **more: Any) -> Member:
    """Ask for an agent and take it on at once."""
    answer = hire(company, caller, name, **more)
    if answer["approval"] is not None:
        approve(company, answer["approval"])
    return member(company, answer["agent"])


def propose(company: Company, caller: Caller, agent: str, **changes: Any) -> Answer:
    answer = company.call(caller, configuration.propose, agent=agent, changes=changes, reason="why")
    approval: Answer = answer["approval"]
    return approval


def ask(company: Company, caller: Caller, title: str = "May I?", **more: Any) -> Answer:
    return company.call(
        caller,
        approvals.request,
        company=company.id,
        kind="request_board_approval",
        payload={"title": title},
        **more,
    )


def approve(company: Company, approval: Answer, by: Caller | None = None, **more: Any) -> Answer:
    return company.call(by or company.board, approvals.approve, approval=approval["id"], **more)


def reject(company: Company, approval: Answer, by: Caller | None = None, **more: Any) -> Answer:
    return company.call(by or company.board, approvals.reject, approval=approval["id"], **more)


def send_back(company: Company, approval: Answer, note: str | None = None) -> Answer:
    return company.call(
        company.board, approvals.request_revision, approval=approval["id"], note=note
    )


def resubmit(company: Company, caller: Caller, approval: Answer, **payload: Any) -> Answer:
    return company.call(caller, approvals.resubmit, approval=approval["id"], payload=payload)


def seen(company: Company, approval: Answer | str, by: Caller | None = None) -> Answer:
    which = approval if isinstance(approval, str) else approval["id"]
    return company.call(by or company.board, approvals.show, approval=which)


def empower(company: Company, who: Member, action: str = "approval.decide", **more: Any) -> Answer:
    return company.call(
        company.board,
        grants.give,
        company=company.id,
        to=who.id,
        resource=action,
        level="use",
        **more,
    )


def letters(company: Company, who: Member) -> list[Answer]:
    """The mail that somebody has got since they last looked."""
    taken = company.call(who.caller, inbox.take)["messages"]
    if taken:
        company.call(who.caller, inbox.acknowledge, ids=[letter["id"] for letter in taken])
    return list(taken)


def waiting_for(company: Company, caller: Caller) -> list[str]:
    """The ids of the approvals among what awaits a person."""
    needs = company.call(caller, needs_you.listing, company=company.id)
    return [item["id"] for item in needs if item["kind"] == "approval"]


def count(company: Company, table: str, where: str = "1 = 1", *parameters: object) -> int:
    rows = company.sql(f"SELECT count(*) FROM {table} WHERE {where}", *parameters)  # noqa: S608
    return int(rows[0][0])


def copies(company: Company, approval: Answer, number: int) -> list[str]:
    """The same request many times over, written around Remit."""
    columns = (
        "company_id, type, status, requested_by_agent_id, home_agent_id, payload, revision,"
        " digest, created_at, updated_at"
    )
    ids = [company.app.ids.new() for _ in range(number)]
    text = f"INSERT INTO approvals (id, {columns}) SELECT ?, {columns} FROM approvals WHERE id = ?"  # noqa: S608
    database: Any
    if is_sqlite(company.url):
        database = sqlite3.connect(sqlite_path(company.url), timeout=30)
    else:
        database = psycopg.connect(company.url)
        text = text.replace("?", "%s")
    database.cursor().executemany(text, [(id_, approval["id"]) for id_ in ids])
    kept = "number, payload, digest, author_agent_id, created_at"
    text = (
        f"INSERT INTO approval_revisions (approval_id, {kept}) SELECT ?, {kept}"  # noqa: S608
        " FROM approval_revisions WHERE approval_id = ?"
    )
    if not is_sqlite(company.url):
        text = text.replace("?", "%s")
    database.cursor().executemany(text, [(id_, approval["id"]) for id_ in ids])
    database.commit()
    database.close()
    return ids


@contextmanager
def statements_counted(patch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Every statement that is run meanwhile."""
    run: list[str] = []
    with patch.context() as patched:
        for kind in (SqliteTransaction, PostgresTransaction):

            def execute(self: Any, sql: str, parameters: Any, _execute: Any = kind.execute) -> Any:
                run.append(sql)
                return _execute(self, sql, parameters)

            patched.setattr(kind, "execute", execute)
        yield run
