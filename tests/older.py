"""Databases as each schema left them, with rows in every table that it had.

One company grows through all schemas: it first does what could be done with the first one, then
what came with the second, and so on. After each it is kept as it is; its rows, with the columns of
that schema, then make a database of that schema.
"""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, column, inspect, select

from remit.channels.contract import Incoming, Sender
from remit.runtime.delivery.connecting import Connector
from remit.runtime.delivery.receiving import IntakeLoop
from remit.services.changes import checking, errands, requests, reviews, watches
from remit.services.chat import accounts, intake, receivers
from remit.services.connections import (
    bindings,
    folders,
    lent_plugins,
    mcp_servers,
    notice_planning,
    notice_rules,
    notices,
    outbox,
    repo_checks,
    repos,
    secrets,
)
from remit.services.execution import job_queue, run_queue, runs
from remit.services.governance import approvals
from remit.services.hiring import configuration
from remit.services.identity import Caller, as_system
from remit.services.messaging import questions, schedules
from remit.services.organisation import agents, halts, permissions
from remit.services.people import companies
from remit.services.spending import budgets, limits
from remit.services.work import delegation, outcomes, submitting
from remit.store.backups import copying
from remit.store.engine import migrate
from remit.store.tables import metadata
from tests import background, change_stage, chat_stage, governance, mailing
from tests.budgeting import set_budget, spend
from tests.channel_stage import arrive, bind
from tests.company import Company, Member, keyed, opened
from tests.organisation import work
from tests.templates import copy_sqlite
from tests.working import claim, end


def _organisation(company: Company) -> None:
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
    proof: Any = {"note": "It is", "evidence": [first["id"]]}
    company.call(lead.caller, outcomes.complete, outcome=done, **proof)
    run = company.run(lead)
    company.call(run.caller, agents.submit_log, summary="Half way")
    company.call(as_system(), runs.end, run=run.id)
    company.call(company.board, agents.terminate, agent=gone.id)


def _mail(company: Company) -> None:
    lead = member(company, "lead")
    letter = mailing.send(company, company.board, "agent:lead", "Look", subject="At this")
    mailing.send(company, company.board, "agent:lead", "And wait for this")
    run = company.run(lead)
    mailing.take(company, run, limit=1)
    mailing.send(company, run.caller, "board", "I did", reply_to=letter["id"])
    mailing.ack(company, run.caller, letter)
    mailing.end(company, run)
    question = company.call(lead.caller, questions.ask, question="May I?", to="board")
    company.call(company.board, questions.answer, question=question["id"], answer="Yes")
    company.call(lead.caller, questions.ask, question="And now?", to="board")
    company.call(lead.caller, schedules.add, body="Stand up", cron="0 9 * * 1-5")
    handed = work(company, lead.caller, lead.id, "Handed over")
    company.call(lead.caller, delegation.delegate, outcome=handed, to="worker")


def _governance(company: Company) -> None:
    lead = member(company, "lead")
    approval = governance.ask(company, lead.caller, "More room")
    governance.send_back(company, approval, "How much?")
    governance.resubmit(company, lead.caller, approval, size=3)
    governance.approve(company, governance.ask(company, lead.caller, "Granted"))
    governance.reject(company, governance.ask(company, lead.caller, "Denied"), note="No")
    company.call(company.board, approvals.comment, approval=approval["id"], body="Hm")
    setting: Any = {"require_board_approval_for_new_agents": True}
    company.call(company.board, companies.change, company=company.id, **setting)
    governance.hire(company, company.ceo.caller, "candidate")
    company.call(company.board, configuration.change, agent="lead", changes={"title": "Boss"})


def _runs(company: Company) -> None:
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
        company.call(as_system(), run_queue.append_log, run=run.id, pieces=[piece])
        kept: Any = {
            "adapter_type": "scripted",
            "session_id": "s",
            "begun_at": 1,
            "context_tokens": 5,
        }
        company.call(as_system(), run_queue.keep_session, run=run.id, **kept)
        if name == "first":
            end(company, run, "failed", error="It broke", exit_reason="error")


def _connections(company: Company) -> None:
    here: Any = {"company": company.id}
    company.call(company.board, secrets.put, **here, name="key", source="env", place="A_VARIABLE")
    program = {"command": ["/bin/true"], "env": {"A": "b"}}
    company.call(company.board, mcp_servers.add, **here, name="up", definition=program)
    company.call(company.board, repos.add, **here, name="site", url="https://git.example/site.git")


def _jobs(company: Company) -> None:
    background.ask(company, member(company, "first"), "Count.")


def _budgets(company: Company) -> None:
    lead, worker = member(company, "lead"), member(company, "worker")
    set_budget(company, company.ceo, cents=5_000, tokens=900_000)
    set_budget(company, lead, cents=500, tokens=1_000)
    part = work(company, lead.caller, lead.id, "Paid for")
    order: Any = {"outcome": part, "to": "worker", "budget": {"tokens": 100}}
    company.call(lead.caller, delegation.delegate, **order)
    set_budget(company, worker, tokens=10)
    run = company.run(worker)
    spend(company, run, tokens=500)
    company.call(as_system(), runs.end, run=run.id)
    company.call(as_system(), budgets.hold, agent=worker.id)


def _channels(company: Company) -> None:
    """One message that went out, one in line, and one that came in."""
    worker = member(company, "worker")
    bound = bind(company, worker, "https://chat.example.org/in")
    arrive(company, bound["token"])
    went = mailing.send(company, worker.caller, "channel:webhook:room-7", "It went")
    company.call(as_system(), outbox.claim, message=went["id"], worker="w")
    company.call(as_system(), outbox.delivered, message=went["id"], epoch=1)
    mailing.send(company, worker.caller, "channel:webhook:room-7", "It will go")


def _halts(company: Company) -> None:
    """One halt of a person, and one of an agent."""
    lead = member(company, "lead")
    company.call(company.board, halts.stop, agent="first", note="Wait")
    company.call(lead.caller, halts.stop, agent="worker")


def _waits(company: Company) -> None:
    """Something handed in, and a question: two that wait."""
    lead = member(company, "lead")
    company.call(lead.caller, questions.ask, question="Which one?", to="board")
    once = company.agent("once", "lead", adapter_type="scripted")
    company.call(once.caller, submitting.submit, outcome=once.id, note="It is done.")


def _accounts(company: Company) -> None:
    """An account that is closed, and an agent that waits for it."""
    agent = company.agent("waits", adapter_type="claude", adapter_config={"secretRef": "key"})
    run = claim(company, agent)
    end(company, run, "failed", error="usage limit reached", fault="rate", fault_until=1 << 52)


def _wishes(company: Company) -> None:
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
    company.call(as_system(), notice_planning.look, company=company.id, commands=[])


def _limits(company: Company) -> None:
    """A limit that somebody set, and one that was reached."""
    worker = company.agent("limited", "lead", adapter_type="scripted")
    limit = {"agentRunsPerHour": 1}
    company.call(company.board, companies.change, company=company.id, limits=limit)
    end(company, claim(company, worker))
    company.call(as_system(), limits.hold, agent=worker.id)


def _policies(company: Company) -> None:
    """A permission level that the board changed."""
    settings = {"allow": ["approval.decide"]}
    company.call(company.board, permissions.change_policy, level="privileged", settings=settings)


def _held_jobs(company: Company) -> None:
    """A background job that waits for an account that is closed, and a question passed on."""
    agent = company.agent(
        "asks", "lead", adapter_type="claude", adapter_config={"secretRef": "key"}
    )
    mailing.send(company, agent.caller, "agent:background", "Count.")
    (job,) = company.sql("SELECT id FROM jobs ORDER BY id DESC LIMIT 1")[0]
    company.call(as_system(), job_queue.wait, job=job, worker="w")
    company.call(agent.caller, questions.ask, question="Which colour?")


def _folders(company: Company) -> None:
    """A folder that an agent works in."""
    shown: Any = {"agent": "lead", "path": "/srv/site"}
    company.call(company.board, folders.bind, company=company.id, **shown)


def _lent(company: Company) -> None:
    """An agent that is lent a skill."""
    files = {"skills/deploy/SKILL.md": base64.b64encode(b"Push it.").decode()}
    lent: Any = {"agent": "lead", "name": "team", "source": "/srv/site", "files": files}
    company.call(company.board, lent_plugins.lend, **lent)


def _rules(company: Company) -> None:
    """Somebody who said what reaches them, and when."""
    rules: dict[str, Any] = {"quiet": "22:00-07:00", "digest": ["mail"], "escalate_minutes": 30}
    company.call(company.board, notice_rules.change, company=company.id, **rules)


def _chats(company: Company) -> None:
    """A person who linked an account in a chat and was shown what awaits them, with buttons."""
    config = {"secretRef": "key"}
    kind: Any = {"agent": "lead", "kind": "telegram", "config": config}
    bound = company.call(company.board, bindings.add, company=company.id, **kind)["id"]
    held = company.call(as_system(), receivers.claim, binding=bound, worker="w")
    assert held is not None
    code = company.call(company.board, accounts.code, kind="telegram")["code"]
    governance.ask(company, member(company, "lead").caller, "A room")
    app = company.app
    loop = IntakeLoop(app.gate, app.ids, Connector(app.vault.value))
    for number, text in enumerate((code, "/needs", "And this is for later.")):
        message = Incoming(str(number), "5", Sender("5", "Ann"), text, direct=True)
        about: Any = {"binding": bound, "epoch": held["epoch"]}
        company.call(as_system(), intake.store, **about, said=[intake.document_of(message)])
        if number < 2:
            assert company.wait(loop.tick())

    [[user]] = company.sql("SELECT user_id FROM linked_accounts LIMIT 1")
    chat_stage.to_confirm(app, company.id, user, bound)


def _changes(company: Company) -> None:
    """A change with a comment, and another that came to be published."""
    author = company.agent("proposes", "lead", adapter_type="scripted")
    change_stage.give(company, author, paths=["src/**"])
    run = company.run(author)
    first = change_stage.propose(company, run)
    company.call(company.board, reviews.comment, change=first["change"], body="Why?")
    held = change_stage.claimed(company)
    done = {"errand": held["errand"], "epoch": 1, "head": change_stage.HEAD}
    company.call(as_system(), errands.published, **done)
    change_stage.propose(company, run, branch="other")


def _forges(company: Company) -> None:
    """A change with a request at a forge, and an issue that became an outcome."""
    about: dict[str, Any] = {"forge": "github", "secret": "key", "people": "lead", "label": "x"}
    change_stage.add_repo(company, "forged", **about)
    ((repo,),) = company.sql("SELECT id FROM repos WHERE name = 'forged'")
    held = company.call(as_system(), watches.claim, repo=repo, worker="w")
    assert held is not None
    issue: dict[str, Any] = {"number": 1, "url": "https://example.invalid/1", "title": "Mend it"}
    told: dict[str, Any] = {"body": "It is broken.", "author": "nobody", "labelled_by": "lead"}
    company.call(as_system(), requests.take_issue, repo=repo, epoch=held["epoch"], **issue, **told)


def _checks(company: Company) -> None:
    """A check that ran, and one that waits."""
    about: dict[str, Any] = {"company": company.id, "repo": "site", "command": "make test"}
    company.call(company.board, repo_checks.set_check, check="test", **about)
    run = company.run(company.agent("checked", "lead", adapter_type="scripted"))
    change_stage.give(company, run)
    change_stage.propose(company, run, branch="checked")
    ((check, _),) = company.call(as_system(), checking.ready)
    company.call(as_system(), checking.claim, check=check, worker="w")
    ended: dict[str, Any] = {"check": check, "epoch": 1, "code": 1, "log": "no\n"}
    company.call(as_system(), checking.delivered, **ended)
    change_stage.propose(company, run, branch="unchecked")


def _looks(company: Company) -> None:
    asked = governance.ask(company, company.ceo.caller, "Seen")
    company.call(company.board, approvals.look, approval=asked["id"])


#: What could be done at each schema, and not before.
CHAPTERS: dict[str, tuple[Callable[[Company], None], ...]] = {
    "0008": (
        *(_organisation, _mail, _governance, _runs),
        *(_connections, _jobs, _budgets, _channels),
    ),
    "0018": (_halts, _waits, _accounts, _wishes, _limits, _policies, _held_jobs),
    "0025": (_folders,),
    "0026": (_rules,),
    "0027": (_chats,),
    "0028": (_changes,),
    "0033": (_forges,),
    "0035": (_checks,),
    "0041": (_looks,),
    "0046": (_lent,),
}


def live_through(company: Company, schema: str) -> None:
    for chapter in CHAPTERS.get(schema, ()):
        chapter(company)


def member(company: Company, name: str) -> Member:
    agent = company.call(company.board, agents.show, agent=name)
    key = company.call(company.board, agents.create_key, agent=agent["id"])
    return Member(agent["id"], name, Caller(key["token"]))


#: Columns that have another name since a schema: the table, what it was called, and is called.
RENAMED = {
    "0018": ("spending", "month", "day"),
}


class Ages:
    """The company as it was at the end of each schema."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self._folder = folder
        url = f"sqlite:///{folder}/grows.db"
        for name in migrate.SCHEMAS:
            with opened(url, self.home) as company:
                live_through(company, name)
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
        """A database as that schema left it."""
        if migrate.is_sqlite(url):
            template = self._folder / f"{name}-made.db"
            if not template.exists():
                with connected(f"sqlite:///{self.at(name)}") as source:
                    copying.into_file(source, name, template)
            copy_sqlite(template, migrate.sqlite_path(url))
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
                    select(
                        *(_column(name, column_name, there[name]) for column_name in names)
                    ).select_from(metadata.tables[name])
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
            details["name"]
            for details in seen.get_columns(table.name)
            if details["name"] != "search_row"
        ]
        for table in metadata.sorted_tables
        if table.name in there
    }


def had(url: str) -> dict[str, list[str]]:
    with connected(url) as connection:
        return columns_of(connection)
