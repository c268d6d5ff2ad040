"""Databases as each released schema left them, with rows in every table that it had.

One company grows through all releases: it first does what could be done in the first one, then what
came with the second, and so on. After each it is kept as it is; its rows, with the columns of that
schema, then make a database of that release.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import ColumnElement, Connection, column, inspect, select

from remit.services import (
    agents,
    approvals,
    budgets,
    claiming,
    companies,
    configuration,
    delegation,
    halts,
    job_work,
    limits,
    mcp_servers,
    notices,
    outbox,
    outcomes,
    policies,
    questions,
    repos,
    runs,
    schedules,
    secrets,
    submitting,
)
from remit.services.identity import Caller, as_system
from remit.store import copying, migrate
from remit.store.tables import metadata
from tests import background, governance, mailing
from tests.budgeting import set_budget, spend
from tests.channel_stage import arrive, bind
from tests.company import Company, Member, keyed, opened
from tests.organisation import work
from tests.templates import copy_sqlite
from tests.working import claim, end

MIGRATIONS = Path(migrate.__file__).parent / "migrations"


def revisions() -> list[str]:
    """All that were released, the oldest first."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    found = ScriptDirectory.from_config(config).walk_revisions()
    return sorted(one.revision for one in found)


def _0001(company: Company) -> None:
    lead = company.agent("lead")
    worker = company.agent("worker", boss="lead")
    company.agent("helper", boss="worker", perpetual=True)
    gone = company.agent("gone", boss="lead")
    first = company.file(lead.caller, b"before", "From before")
    linked = f"See kb://{first['id']}, Äöü".encode()
    second = company.file(keyed(lead.caller, "once"), linked, "Linked, with a key")
    company.write(lead.caller, second, linked + b" again")
    company.give(lead.caller, worker, first, "read")
    company.read(worker.caller, first["id"])
    company.user("observer", role="observer")
    test = work(company, lead.caller, lead.id, "Test", urgent=True)
    work(company, lead.caller, lead.id, "Ship", blocked_by=[test], description="All of it")
    done = work(company, lead.caller, lead.id, "Done")
    found: Any = {"note": "It is", "evidence": [first["id"]]}
    company.call(lead.caller, outcomes.complete, outcome=done, **found)
    run = company.run(lead)
    company.call(run.caller, agents.submit_log, summary="Half way")
    company.call(as_system(), runs.end, run=run.id)
    company.call(company.board, agents.terminate, agent=gone.id)


def _0002(company: Company) -> None:
    lead = member(company, "lead")
    letter = mailing.send(company, company.board, "agent:lead", "Look", subject="At this")
    mailing.send(company, company.board, "agent:lead", "And wait for this")
    run = company.run(lead)
    mailing.take(company, run, limit=1)
    mailing.send(company, run.caller, "board", "I did", reply_to=letter["id"])
    mailing.ack(company, run.caller, letter)
    mailing.end(company, run)
    asked = company.call(lead.caller, questions.ask, question="May I?", to="board")
    company.call(company.board, questions.answer, question=asked["id"], answer="Yes")
    company.call(lead.caller, questions.ask, question="And now?", to="board")
    company.call(lead.caller, schedules.add, body="Stand up", cron="0 9 * * 1-5")
    handed = work(company, lead.caller, lead.id, "Handed over")
    company.call(lead.caller, delegation.delegate, outcome=handed, to="worker")


def _0003(company: Company) -> None:
    lead = member(company, "lead")
    asked = governance.ask(company, lead.caller, "More room")
    governance.send_back(company, asked, "How much?")
    governance.resubmit(company, lead.caller, asked, size=3)
    governance.approve(company, governance.ask(company, lead.caller, "Granted"))
    governance.reject(company, governance.ask(company, lead.caller, "Denied"), note="No")
    company.call(company.board, approvals.comment, approval=asked["id"], body="Hm")
    setting: Any = {"require_board_approval_for_new_agents": True}
    company.call(company.board, companies.change, company=company.id, **setting)
    governance.hire(company, company.ceo.caller, "candidate")
    company.call(company.board, configuration.change, agent="lead", changes={"title": "Boss"})


def _0004(company: Company) -> None:
    """One run that ended, with all that is known of it, and one under way."""
    for name in ("first", "second"):
        company.call(
            company.board,
            agents.create,
            company=company.id,
            name=name,
            purpose="Run",
            perpetual=False,
            adapter_type="scripted",
        )
        run = claim(company, member(company, name))
        piece = {"number": 1, "at": company.app.clock.now(), "stream": "stdout", "text": "Hello"}
        company.call(as_system(), claiming.append_log, run=run.id, pieces=[piece])
        kept: Any = {
            "adapter_type": "scripted",
            "session_id": "s",
            "begun_at": 1,
            "context_tokens": 5,
        }
        company.call(as_system(), claiming.keep_session, run=run.id, **kept)
        if name == "first":
            end(company, run, "failed", error="It broke", exit_reason="error")


def _0005(company: Company) -> None:
    here: Any = {"company": company.id}
    company.call(company.board, secrets.put, **here, name="key", source="env", place="A_VARIABLE")
    program = {"command": ["/bin/true"], "env": {"A": "b"}}
    company.call(company.board, mcp_servers.add, **here, name="up", definition=program)
    company.call(company.board, repos.add, **here, name="site", url="https://git.example/site.git")


def _0006(company: Company) -> None:
    background.ask(company, member(company, "first"), "Count.")


def _0007(company: Company) -> None:
    lead, worker = member(company, "lead"), member(company, "worker")
    set_budget(company, company.ceo, cents=5_000, tokens=900_000)
    set_budget(company, lead, cents=500, tokens=1_000)
    part = work(company, lead.caller, lead.id, "Paid for")
    asked: Any = {"outcome": part, "to": "worker", "budget": {"tokens": 100}}
    company.call(lead.caller, delegation.delegate, **asked)
    set_budget(company, worker, tokens=10)
    run = company.run(worker)
    spend(company, run, tokens=500)
    company.call(as_system(), runs.end, run=run.id)
    company.call(as_system(), budgets.hold, agent=worker.id)


def _0008(company: Company) -> None:
    """One message that went out, one in line, and one that came in."""
    worker = member(company, "worker")
    bound = bind(company, worker, "https://chat.example.org/in")
    arrive(company, bound["token"])
    went = mailing.send(company, worker.caller, "channel:webhook:room-7", "It went")
    company.call(as_system(), outbox.claim, message=went["id"], worker="w")
    company.call(as_system(), outbox.delivered, message=went["id"], epoch=1)
    mailing.send(company, worker.caller, "channel:webhook:room-7", "It will go")


def _0010(company: Company) -> None:
    """One halt of a person, and one of an agent."""
    lead = member(company, "lead")
    company.call(company.board, halts.stop, agent="first", note="Wait")
    company.call(lead.caller, halts.stop, agent="worker")


def _0012(company: Company) -> None:
    """Something handed in, and a question: two that wait."""
    lead = member(company, "lead")
    company.call(lead.caller, questions.ask, question="Which one?", to="board")
    once = company.agent("once", "lead", adapter_type="scripted")
    company.call(once.caller, submitting.submit, outcome=once.id, note="It is done.")


def _0013(company: Company) -> None:
    """An account that is closed, and an agent that waits for it."""
    made = company.agent("waits", adapter_type="claude", adapter_config={"secretRef": "key"})
    run = claim(company, made)
    end(company, run, "failed", error="usage limit reached", fault="rate", fault_until=1 << 52)


def _0014(company: Company) -> None:
    """A letter with something made of it, an unread one, and somebody who is told outside."""
    lead = member(company, "lead")
    mailing.send(company, company.board, "agent:lead", "Make a page")
    run = company.run(lead)
    mailing.take(company, run)
    work(company, run.caller, lead.id, "The page")
    company.call(as_system(), runs.end, run=run.id)
    mailing.send(company, company.board, "agent:lead", "And another")
    url = "https://chat.example.org/me"
    company.call(company.board, notices.set_webhook, company=company.id, url=url)
    company.call(as_system(), notices.look, company=company.id, commands=[])


def _0015(company: Company) -> None:
    """A limit that somebody set, and one that was reached."""
    worker = company.agent("limited", "lead", adapter_type="scripted")
    given = {"agentRunsPerHour": 1}
    company.call(company.board, companies.change, company=company.id, limits=given)
    end(company, claim(company, worker))
    company.call(as_system(), limits.hold, agent=worker.id)


def _0016(company: Company) -> None:
    """A permission level that the board changed."""
    settings = {"allow": ["approval.decide"]}
    company.call(company.board, policies.change, level="privileged", settings=settings)


def _0017(company: Company) -> None:
    """A background job that waits for an account that is closed, and a question passed on."""
    made = company.agent("asks", "lead", adapter_type="claude", adapter_config={"secretRef": "key"})
    mailing.send(company, made.caller, "agent:background", "Count.")
    (job,) = company.sql("SELECT id FROM jobs ORDER BY id DESC LIMIT 1")[0]
    company.call(as_system(), job_work.wait, job=job, worker="w")
    company.call(made.caller, questions.ask, question="Which colour?")


#: What came with each release; a release after these brought nothing that a row here shows.
CHAPTERS: dict[str, Callable[[Company], None]] = {
    "0001": _0001,
    "0002": _0002,
    "0003": _0003,
    "0004": _0004,
    "0005": _0005,
    "0006": _0006,
    "0007": _0007,
    "0008": _0008,
    "0010": _0010,
    "0012": _0012,
    "0013": _0013,
    "0014": _0014,
    "0015": _0015,
    "0016": _0016,
    "0017": _0017,
}


def member(company: Company, name: str) -> Member:
    found = company.call(company.board, agents.show, agent=name)
    key = company.call(company.board, agents.create_key, agent=found["id"])
    return Member(found["id"], name, Caller(key["token"]))


#: Columns that have another name since a revision: the table, what it was called, and is called.
RENAMED = {
    "0015": ("spending", "month", "day"),
}


class Ages:
    """The company as it was at the end of each release."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self._folder = folder
        url = f"sqlite:///{folder}/grows.db"
        for name in revisions():
            with opened(url, self.home) as company:
                if name in CHAPTERS:
                    CHAPTERS[name](company)
            copy_sqlite(folder / "grows.db", self.at(name))
            self._name_as_before(name)

    def _name_as_before(self, name: str) -> None:
        with closing(sqlite3.connect(self.at(name))) as beside:
            for since, (table, before, now) in RENAMED.items():
                if name < since:
                    beside.execute(f"ALTER TABLE {table} RENAME COLUMN {now} TO {before}")

    def at(self, name: str) -> Path:
        return self._folder / f"{name}.db"

    def make(self, name: str, url: str) -> None:
        """A database as that release left it."""
        if migrate.is_sqlite(url):
            with connected(f"sqlite:///{self.at(name)}") as source:
                copying.into_file(source, name, migrate.sqlite_path(url))
        else:
            with connected(url) as target:
                copying.into_postgres(self.at(name), name, target)


@contextmanager
def connected(url: str) -> Iterator[Connection]:
    engine = migrate.engine_of(url)
    try:
        with engine.connect() as connection, connection.begin():
            yield connection
    finally:
        engine.dispose()


def rows(url: str, columns: Mapping[str, list[str]] | None = None) -> dict[str, list[str]]:
    """Everything in a database, or these columns of it, but where its search has it."""
    with connected(url) as connection:
        there = columns_of(connection)
        wanted = columns if columns is not None else there
        return {
            name: sorted(
                repr(tuple(row))
                for row in connection.execute(
                    select(*(_column(name, one, there[name]) for one in names)).select_from(
                        metadata.tables[name]
                    )
                )
            )
            for name, names in wanted.items()
        }


def _column(table: str, name: str, there: list[str]) -> ColumnElement[Any]:
    """By its name of then or of now, whichever it has."""
    now = next((new for its, old, new in RENAMED.values() if (its, old) == (table, name)), name)
    return column(name if name in there else now, metadata.tables[table].c[now].type)


def columns_of(connection: Connection) -> dict[str, list[str]]:
    seen = inspect(connection)
    there = set(seen.get_table_names())
    return {
        table.name: [
            one["name"] for one in seen.get_columns(table.name) if one["name"] != "search_row"
        ]
        for table in metadata.sorted_tables
        if table.name in there
    }


def had(url: str) -> dict[str, list[str]]:
    with connected(url) as connection:
        return columns_of(connection)
