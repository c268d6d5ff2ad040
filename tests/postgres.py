"""One private PostgreSQL for a whole test run.

The first test that needs it starts it; every worker of the run shares it; the process that started
the run stops it. Each test has a database of its own.
"""

import atexit
import json
import os
import pwd
import secrets
import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from remit.store.engine import migrate
from tests.run_folder import RunFolder, locked

SUPERUSER = "remit"
SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = '{folder}'
port = {port}
max_connections = 200
shared_buffers = 32MB
wal_level = minimal
max_wal_senders = 0
min_wal_size = 16MB
max_wal_size = 256MB
"""
#: A test kills programs, never this server, so nothing has to survive that it dies.
NOT_DURABLE = """
fsync = off
synchronous_commit = off
full_page_writes = off
autovacuum_naptime = 10s
"""


class PostgresMissing(Exception):
    """The server programs are not installed."""


class PostgresFailed(Exception):
    """A server program ended with an error."""


@dataclass(frozen=True)
class Cluster:
    """A running server and the databases in it."""

    folder: str
    port: int

    def url(self, database: str) -> str:
        return f"postgresql://{SUPERUSER}@127.0.0.1:{self.port}/{database}"

    def empty_database(self) -> str:
        """Make a database without tables, and return its address."""
        return self._create("template0")

    def migrated_database(self, name: str = "") -> str:
        """Make a database with all tables and no rows, and return its address."""
        return self._create(self._migrated(), name)

    def copy(self, sealed: str) -> str:
        """Make a database like one that was sealed, and return its address."""
        return self._create(sealed)

    def seal(self, name: str) -> None:
        """Let nobody connect: a connection to it would make each copy of it fail."""
        statement = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false")
        self._execute(statement.format(sql.Identifier(name)))

    def drop_database(self, url: str) -> None:
        """Remove a database, also when somebody is still connected to it."""
        name = sql.Identifier(url.rsplit("/", 1)[1])
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))

    def _migrated(self) -> str:
        """The database that is copied; whoever asks first in a run makes it."""
        name = "migrated"
        with locked(Path(self.folder, f"{name}.lock")):
            done = Path(self.folder, f"{name}.done")
            if not done.exists():
                self._create("template0", name)
                migrate.migrate(self.url(name))
                self.seal(name)
                done.touch()
        return name

    def _create(self, template: str, name: str = "") -> str:
        name = name or f"test_{secrets.token_hex(6)}"
        # Without syncs, copying the files takes a tenth of what copying through the log does.
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY FILE_COPY")
        self._execute(statement.format(sql.Identifier(name), sql.Identifier(template)))
        return self.url(name)

    def _execute(self, statement: sql.Composed) -> None:
        _ADMINISTRATION.execute(self.url("postgres"), statement)


class KeptConnection:
    """A connection that stays for the next statement: a new one is a new process of the server,
    which learns of every table that it is asked for."""

    def __init__(self) -> None:
        #: While nobody uses it; whoever comes at the same time has another one.
        self._idle: dict[str, psycopg.Connection[Any]] = {}
        atexit.register(self.close)

    def execute(
        self, url: str, statement: str | sql.Composed, parameters: tuple[object, ...] = ()
    ) -> list[tuple[Any, ...]]:
        """Run one statement, which is a transaction of its own."""
        kept = self._idle.pop(url, None)
        self.close()  # of another database, which may be gone
        connection = kept or psycopg.connect(url, autocommit=True)
        try:
            cursor = connection.execute(statement, parameters)
            rows = cursor.fetchall() if cursor.description else []
        except BaseException:
            was_ended = kept is not None and kept.broken  # by a test, before it was asked
            connection.close()
            if not was_ended:
                raise
            return self.execute(url, statement, parameters)
        self._idle[url] = connection
        return rows

    def close(self) -> None:
        while self._idle:
            self._idle.popitem()[1].close()


#: For making and removing databases.
_ADMINISTRATION = KeptConnection()


def shared_cluster(run: RunFolder, *, durable: bool = False) -> Cluster:
    """Return the server of this run; start it if nobody has."""
    with run.locked("postgres"):
        record = run.path / "postgres.json"
        if record.exists():
            return Cluster(**json.loads(record.read_text()))
        folder = run.path / "postgres"
        folder.mkdir()
        if (account := _account()) is not None:
            os.chown(folder, account.pw_uid, account.pw_gid)
        cluster = _start(folder, run.owner, SETTINGS if durable else SETTINGS + NOT_DURABLE)
        record.write_text(json.dumps(asdict(cluster)))
        return cluster


def stop(run: RunFolder) -> None:
    """Stop the server of this run, if there is one."""
    folder = run.path / "postgres"
    if (folder / "data" / "postmaster.pid").exists():
        program = str(find_programs() / "pg_ctl")
        _run([program, "stop", "--mode=immediate", "-D", f"{folder}/data"], folder)


def find_programs() -> Path:
    """Return the folder with the server programs."""
    for folder in _usual_folders():
        if all((folder / name).is_file() for name in ("postgres", "initdb", "pg_ctl")):
            return folder
    raise PostgresMissing(
        "The PostgreSQL server programs are not installed; run scripts/test-deps, which installs "
        "them without starting a system server."
    )


def _usual_folders() -> Iterator[Path]:
    if program := shutil.which("pg_config"):
        answer = subprocess.run([program, "--bindir"], capture_output=True, text=True, check=False)
        if answer.returncode == 0:
            yield Path(answer.stdout.strip())
    versions = Path("/usr/lib/postgresql").glob("*/bin")
    yield from sorted(versions, key=lambda folder: float(folder.parent.name), reverse=True)


def _start(folder: Path, owner: int, settings: str) -> Cluster:
    programs = find_programs()
    data = folder / "data"
    initdb = [str(programs / "initdb"), "-D", str(data), "-U", SUPERUSER, "--auth=trust"]
    _run([*initdb, "--encoding=UTF8", "--locale=C", "--no-sync", "--wal-segsize=4"], folder)
    configuration = data / "postgresql.conf"
    defaults = configuration.read_text()
    # Another process may take the free port before the server does.
    for attempt in range(3):
        port = _free_port()
        configuration.write_text(defaults + settings.format(folder=folder, port=port))
        try:
            log = folder / "log"
            _run([str(programs / "pg_ctl"), "start", "-D", str(data), "-l", str(log)], folder)
            break
        except PostgresFailed:
            if attempt == 2:
                raise
    _stop_when_gone(owner, programs, folder)
    return Cluster(str(folder), port)


def _stop_when_gone(owner: int, programs: Path, folder: Path) -> None:
    """Have the server stopped even if the test run is killed and cannot do so itself."""
    script = 'tail --pid="$1" -f /dev/null; "$2" stop -m immediate -D "$3/data"; rm -rf "$3/.."'
    arguments = [str(owner), str(programs / "pg_ctl"), str(folder)]
    _run(["setsid", "--fork", "sh", "-c", script, "sh", *arguments], folder, quiet=True)


def _run(command: list[str], folder: Path, *, quiet: bool = False) -> None:
    """Run a program from `folder`, as an unprivileged user: the server refuses to be root."""
    account = _account()
    output = subprocess.DEVNULL if quiet else subprocess.PIPE
    answer = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=output,
        text=True,
        check=False,
        timeout=60,
        user=account.pw_uid if account else None,
        group=account.pw_gid if account else None,
        extra_groups=[] if account else None,
    )
    if answer.returncode != 0:
        log = folder / "log"
        details = (answer.stderr or "") + (log.read_text() if log.exists() else "")
        raise PostgresFailed(f"{' '.join(command)} failed:\n{details}")


def _account() -> pwd.struct_passwd | None:
    """Return the unprivileged account to use, or None when we are unprivileged already."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        return pwd.getpwnam("nobody")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
