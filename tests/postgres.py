"""One private PostgreSQL for a whole test run.

The first test that needs it starts it; every worker of the run shares it; the process that started
the run stops it. Each test has a database of its own.
"""

import fcntl
import json
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psycopg
from psycopg import sql

VARIABLE = "REMIT_TEST_POSTGRES"
SUPERUSER = "remit"
SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = '{folder}'
port = {port}
fsync = on
max_connections = 200
shared_buffers = 32MB
wal_level = minimal
max_wal_senders = 0
min_wal_size = 16MB
max_wal_size = 256MB
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

    def create_database(self, template: str | None = None) -> str:
        """Make a fresh database, empty or as a copy of `template`, and return its address."""
        name = f"test_{secrets.token_hex(6)}"
        self._create(name, template or "template0")
        return self.url(name)

    def drop_database(self, url: str) -> None:
        """Remove a database, also when somebody is still connected to it."""
        name = sql.Identifier(url.rsplit("/", 1)[1])
        self._execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))

    def template(self, name: str, prepare: Callable[[str], None]) -> str:
        """Return the template called `name`; whoever asks first in a run fills it by `prepare`."""
        with _locked(Path(self.folder)):
            done = Path(self.folder, f"{name}.template")
            if not done.exists():
                identifier = sql.Identifier(name)
                drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
                self._execute(drop.format(identifier))
                self._create(name, "template0")
                prepare(self.url(name))
                # A connection left open to a template would make each copy of it fail.
                seal = sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false")
                self._execute(seal.format(identifier))
                done.touch()
        return name

    def _create(self, name: str, template: str) -> None:
        statement = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        self._execute(statement.format(sql.Identifier(name), sql.Identifier(template)))

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement)


def announce() -> Path:
    """Name the folder of this run's server, for this process and for the workers it starts."""
    folder = Path(tempfile.mkdtemp(prefix="remit-pg-"))
    if (account := _account()) is not None:
        os.chown(folder, account.pw_uid, account.pw_gid)
    os.environ[VARIABLE] = f"{os.getpid()}:{folder}"
    return folder


def shared_cluster() -> Cluster:
    """Return the server of this run; start it if nobody has."""
    owner, _, name = os.environ[VARIABLE].partition(":")
    folder = Path(name)
    with _locked(folder):
        record = folder / "cluster.json"
        if record.exists():
            return Cluster(**json.loads(record.read_text()))
        cluster = _start(folder, int(owner))
        record.write_text(json.dumps(asdict(cluster)))
        return cluster


def dispose(folder: Path) -> None:
    """Stop the server in `folder`, if there is one, and remove the folder."""
    try:
        if (folder / "data" / "postmaster.pid").exists():
            program = str(find_programs() / "pg_ctl")
            _run([program, "stop", "--mode=immediate", "-D", f"{folder}/data"], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


def _start(folder: Path, owner: int) -> Cluster:
    programs = find_programs()
    data = folder / "data"
    initdb = [str(programs / "initdb"), "-D", str(data), "-U", SUPERUSER, "--auth=trust"]
    _run([*initdb, "--encoding=UTF8", "--locale=C", "--no-sync", "--wal-segsize=4"], folder)
    configuration = data / "postgresql.conf"
    defaults = configuration.read_text()
    # Another process may take the free port before the server does.
    for attempt in range(3):
        port = _free_port()
        configuration.write_text(defaults + SETTINGS.format(folder=folder, port=port))
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
    script = 'tail --pid="$1" -f /dev/null; "$2" stop -m immediate -D "$3/data"; rm -rf "$3"'
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


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
