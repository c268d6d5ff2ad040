"""A small company to test with: a real instance on a real database, called without async."""

import asyncio
import sqlite3
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import psycopg

from remit.app import App
from remit.clock import Clock, SystemClock
from remit.model.organisation.grant import kb_file
from remit.runtime.runs.workspace import create_workspace
from remit.services.command import Verb
from remit.services.execution import runs
from remit.services.identity import Caller, as_system
from remit.services.knowledge import files
from remit.services.organisation import agents
from remit.services.people import companies, users
from remit.services.rights import grants
from remit.settings import Settings, load
from remit.store.engine.database import open_database
from remit.store.engine.migrate import is_sqlite, sqlite_path
from tests.postgres import KeptConnection
from tests.templates import lay_tables

P = ParamSpec("P")
R = TypeVar("R")
Answer = dict[str, Any]
#: Tests look again and again until they see what they wait for.
_LOOKING = KeptConnection()


@dataclass(frozen=True)
class Member:
    """An agent, and how it calls."""

    id: str
    name: str
    caller: Caller


@dataclass(frozen=True)
class Founded:
    """A company as it is when a test begins, and how it is called."""

    board: Caller
    id: str
    ceo: Member


@dataclass(frozen=True)
class Run:
    """An agent at work."""

    id: str
    agent_id: str
    caller: Caller
    workspace: Path


def settings(url: str, home: Path) -> Settings:
    return load({"REMIT_HOME": str(home), "REMIT_DATABASE_URL": url})


def keyed(caller: Caller, key: str) -> Caller:
    return replace(caller, key=key)


class Company:
    """The first company of an instance, with its board and its root agent."""

    id: str
    board: Caller
    ceo: Member
    #: For looking into the database around Remit.
    _beside: sqlite3.Connection | psycopg.Connection[Any] | None = None
    _closed = False

    def __init__(
        self,
        url: str,
        home: Path,
        clock: Clock | None = None,
        *,
        asks_before_hiring: bool = False,
        founded: Founded | None = None,
    ) -> None:
        """Of an instance that starts; or that has started before and holds a `founded` company."""
        self.url = url
        self.home = home
        self.clock = clock or SystemClock()
        self._runner = asyncio.Runner()
        try:
            self.app = App(
                settings(url if founded else lay_tables(url), home),
                self.clock,
                database=open_database(url) if founded else None,
            )
        except BaseException:
            self._runner.close()
            raise
        if founded is not None:
            self.board, self.id, self.ceo = founded.board, founded.id, founded.ceo
            return
        self.wait(self.app.first_start())
        self.board = Caller(self.app.settings.board_token_file.read_text().strip())
        first = self.call(self.board, companies.listing)[0]
        self.id = first["id"]
        if not asks_before_hiring and first["require_board_approval_for_new_agents"]:
            # Most tests are about what agents do once they work, so their hires work at once.
            self.call(
                self.board,
                companies.change,
                company=self.id,
                require_board_approval_for_new_agents=False,
            )
        self.ceo = self._member(self.call(self.board, agents.show, agent="ceo"))

    def close(self) -> None:
        if self._beside is not None:
            self._beside.close()
            self._beside = None
        self._closed = True
        self.wait(self.app.aclose())
        self._runner.close()

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        # Its own `run` sets a handler for signals first, which spells out the last answer.
        return self._runner.get_loop().run_until_complete(work)

    def call(self, caller: Caller, verb: Verb[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return self.wait(self.app.gate(caller, verb, *args, **kwargs))

    def together(self, work: Sequence[Coroutine[Any, Any, R]]) -> list[R | BaseException]:
        """Do all of it at once; what went wrong stands where its answer would."""

        async def gather() -> list[R | BaseException]:
            return await asyncio.gather(*work, return_exceptions=True)

        return self.wait(gather())

    # ── members ─────────────────────────────────────────────────────────────────────────────

    def agent(self, name: str, boss: str | None = "ceo", **options: Any) -> Member:
        """Somebody with something to do; `perpetual=True` makes it a standing post."""
        described = {"purpose": f"What {name} is for", "perpetual": False, **options}
        agent = self.call(
            self.board, agents.create, company=self.id, name=name, reports_to=boss, **described
        )
        return self._member(agent)

    def user(self, name: str, role: str = "board", scope: str | None = None) -> Caller:
        self.call(self.board, users.add, company=self.id, name=name, role=role, scope=scope)
        return self.token_of(name)

    def token_of(self, user: str) -> Caller:
        token = self.call(
            self.board, users.create_token, company=self.id, user=user, expires_at=None
        )
        return Caller(token["token"])

    def run(self, member: Member) -> Run:
        run_id = self.app.ids.new()
        folder = create_workspace(self.app.settings.workspaces, run_id)
        started = self.call(
            as_system(), runs.start, agent=member.id, run=run_id, workspace=str(folder)
        )
        return Run(run_id, member.id, Caller(started["token"]), folder)

    def second_company(self, name: str = "Elsewhere") -> "Neighbour":
        """Another company on the same instance, with a board and an agent of its own."""
        # What is called ceo here is not to be found there.
        company = self.call(self.board, companies.create, name=name, root_name="chief")
        company_id: str = company["id"]
        self.call(self.board, users.add, company=company_id, name="foreigner")
        token = self.call(
            self.board, users.create_token, company=company_id, user="foreigner", expires_at=None
        )
        foreigner = Caller(token["token"])
        stranger = self.call(foreigner, agents.create, company=company_id, name="stranger")
        key = self.call(foreigner, agents.create_key, agent=stranger["id"])
        return Neighbour(
            company_id, foreigner, Member(stranger["id"], "stranger", Caller(key["token"]))
        )

    def _member(self, agent: Answer) -> Member:
        key = self.call(self.board, agents.create_key, agent=agent["id"])
        return Member(agent["id"], agent["name"], Caller(key["token"]))

    # ── files and grants ────────────────────────────────────────────────────────────────────

    def file(
        self,
        caller: Caller,
        content: bytes = b"text",
        description: str = "notes",
        *,
        unlisted: bool = False,
    ) -> Answer:
        return self.wait(
            self.app.library.create(
                caller, content, company=self.id, description=description, unlisted=unlisted
            )
        )

    def read(self, caller: Caller, file: str, version: int | None = None) -> tuple[Answer, bytes]:
        return self.wait(self.app.library.read(caller, file=file, version=version))

    def write(self, caller: Caller, seen: Answer, content: bytes) -> Answer:
        return self.wait(
            self.app.library.write(
                caller, content, file=seen["id"], version=seen["version"], sha256=seen["hash"]
            )
        )

    def give(self, caller: Caller, to: Member, file: Answer, level: str, **options: Any) -> Answer:
        return self.call(
            caller,
            grants.give,
            company=self.id,
            to=to.id,
            resource=str(kb_file(file["id"])),
            level=level,
            **options,
        )

    def found(self, caller: Caller, words: str = "") -> list[str]:
        """The ids that a search finds."""
        matches = self.call(caller, files.browse, company=self.id, words=words)
        return [file["id"] for file in matches]

    # ── the database, as somebody with access to it sees it ─────────────────────────────────

    def sql(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        if self._closed:
            return run_sql(self.url, statement, *parameters)
        if self._beside is None:
            self._beside = connect(self.url)
        return _run(self._beside, statement, *parameters)


@dataclass(frozen=True)
class Neighbour:
    """Another company on the same instance."""

    id: str
    board: Caller
    agent: Member


@contextmanager
def opened(url: str, home: Path, clock: Clock | None = None, **options: Any) -> Iterator[Company]:
    company = Company(url, home, clock, **options)
    try:
        yield company
    finally:
        company.close()


def connect(url: str) -> sqlite3.Connection | psycopg.Connection[Any]:
    """A connection around Remit, in which every statement is a transaction of its own."""
    if not is_sqlite(url):
        return psycopg.connect(url, autocommit=True)
    connection = sqlite3.connect(
        sqlite_path(url), timeout=30, isolation_level=None, check_same_thread=False
    )
    connection.execute("PRAGMA foreign_keys=ON")
    return connection


def run_sql(url: str, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Run one statement around Remit; `?` stands for a parameter."""
    if not is_sqlite(url):
        return _LOOKING.execute(url, statement.replace("?", "%s"), parameters)
    connection = connect(url)
    try:
        return _run(connection, statement, *parameters)
    finally:
        connection.close()


def _run(
    connection: sqlite3.Connection | psycopg.Connection[Any], statement: str, *parameters: object
) -> list[tuple[Any, ...]]:
    if isinstance(connection, sqlite3.Connection):
        return connection.execute(statement, parameters).fetchall()
    cursor = connection.execute(statement.replace("?", "%s"), parameters)
    return cursor.fetchall() if cursor.description else []
