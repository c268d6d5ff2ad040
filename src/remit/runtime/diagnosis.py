"""Diagnosis of this installation: checks that try each part, with the next step for a problem."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, PackagePath, distribution
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from remit import version as versions
from remit.clock import SECOND, SystemClock
from remit.errors import RemitError
from remit.extras import how_to_install
from remit.model.connections.repo import PushMode, Repo
from remit.model.execution import prices
from remit.settings import Settings

if TYPE_CHECKING:
    from remit.services.command import Gate

OLDEST_PYTHON: Final = (3, 11)
EXTRAS: Final = {
    "llm": "pydantic_ai",
    "postgres": "psycopg",
    "s3": "obstore",
    "email": "imapclient",
    "slack": "slack_sdk",
    "telegram": "aiogram",
}
#: One file of each kind that the package holds besides modules.
_DATA: Final = (
    "skills/remit/SKILL.md",
    "skills/remit-create-agent/SKILL.md",
    "entrypoints/cli/demo.yaml",
    "entrypoints/web/templates/base.html",
    "entrypoints/web/static/remit.css",
)
_ABOUT_THE_REST: Final = "Run only agents that you trust with it."


class Finding(NamedTuple):
    check: str
    state: str  # ok, warn or fail
    found: str
    next_step: str = ""


Check = Callable[[Settings], Iterator[Finding]]


def look(settings: Settings, checks: tuple[Check, ...] | None = None) -> list[Finding]:
    """Run all checks on this machine; takes seconds, because programs are started."""
    return [finding for check in checks or CHECKS for finding in guarded(check, settings)]


#: Age of a price list after which a newer one is worth an installation.
_OLD_PRICES: Final = timedelta(days=180)


def guarded(check: Check, settings: Settings) -> Iterator[Finding]:
    """Run one check; an unexpected exception becomes a finding and does not end the others."""
    name = check.__name__.strip("_").replace("_", " ")
    try:
        yield from check(settings)
    except RemitError as error:
        yield Finding(name, "fail", error.sentence, error.step)
    except Exception as error:
        yield Finding(name, "fail", f"{type(error).__name__}: {error}", "Report it.")


def _python(_: Settings) -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= OLDEST_PYTHON
    yield Finding("python", "ok" if good else "fail", version, "" if good else "Use 3.11 or newer.")


def _package(_: Settings) -> Iterator[Finding]:
    """Look for the files of the package that are no modules: a build can leave them out."""
    missing = [name for name in _DATA if not files("remit").joinpath(name).is_file()]
    with contextlib.suppress(PackageNotFoundError):
        missing += [str(file) for file in distribution("remit").files or () if _is_gone(file)]
    if missing:
        others = f", and {len(missing) - 1} more" if missing[1:] else ""
        sentence = f"{missing[0]} is missing{others}"
        yield Finding("package", "fail", sentence, "Install Remit again, from another build.")
    else:
        yield Finding("package", "ok", f"{versions.current()}, complete")


def _is_gone(file: PackagePath) -> bool:
    # Compiled files may be removed; they are made again.
    return file.suffix != ".pyc" and not Path(str(file.locate())).exists()


def _prices(_: Settings) -> Iterator[Finding]:
    """Say how old the price list is. Nothing fetches a newer one."""
    from remit.adapters import price_table

    today = datetime.fromtimestamp(SystemClock().now() / SECOND, UTC).date()
    newest = price_table.newest(today)
    sentence = f"{price_table.name()}; its newest change of a price is of {newest}"
    if today - newest > _OLD_PRICES:
        yield Finding("prices", "warn", sentence, "Install a newer Remit, or genai-prices alone.")
    else:
        yield Finding("prices", "ok", sentence)


def _sqlite(_: Settings) -> Iterator[Finding]:
    from remit.store.engine.sqlite import connect

    connection = connect(Path(":memory:"))
    try:
        version = connection.execute("SELECT sqlite_version()").fetchone()[0]
        options = {row[0] for row in connection.execute("PRAGMA compile_options")}
    finally:
        connection.close()
    if "ENABLE_FTS5" in options:
        yield Finding("sqlite", "ok", f"{version} with FTS5")
    else:
        yield Finding("sqlite", "fail", f"{version} without FTS5", "Use a Python that has it.")


def _home(settings: Settings) -> Iterator[Finding]:
    home = settings.home
    if not home.exists():
        yield Finding("home", "warn", f"{home} does not exist", "`remit up` makes it.")
    elif not home.is_dir() or not os.access(home, os.W_OK | os.X_OK):
        yield Finding("home", "fail", f"{home} cannot be written", "Set another REMIT_HOME.")
    else:
        yield _private("home", home.stat(), str(home), 0o700)


def _board_token(settings: Settings) -> Iterator[Finding]:
    file = settings.board_token_file
    if not file.exists():
        yield Finding("board token", "warn", f"{file} does not exist", "`remit up` makes it.")
    else:
        yield _private("board token", file.stat(), str(file), 0o600)


def _private(check: str, status: os.stat_result, place: str, wanted: int) -> Finding:
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o077:
        return Finding(
            check, "fail", f"{place} has mode {mode:o}", f"Run `chmod {wanted:o} {place}`."
        )
    return Finding(check, "ok", f"{place} ({mode:o})")


def _database(settings: Settings) -> Iterator[Finding]:
    from remit.store.engine.migrate import HEAD, is_sqlite, refuse_unknown, sqlite_path

    if is_sqlite(settings.database_url) and not sqlite_path(settings.database_url).exists():
        yield Finding("database", "warn", "there is none yet", "`remit up` makes it.")
        return
    schema = _schema(settings)
    refuse_unknown(schema)
    if schema == HEAD:
        yield Finding("database", "ok", f"reachable, schema {schema}")
    else:
        state = f"schema {schema or 'missing'}, this program has {HEAD}"
        yield Finding("database", "warn", state, "`remit up` brings it up to date.")


def _schema(settings: Settings) -> str | None:
    """Read the schema's revision without changing the database."""
    from remit.store.engine import database as databases
    from remit.store.engine.database import Transaction

    def look(transaction: Transaction) -> str | None:
        row = transaction.execute("SELECT version_num FROM alembic_version", {}).fetchone()
        return None if row is None else str(row[0])

    database = databases.open_database(settings.database_url)
    try:
        return database.submit_read(look).result(timeout=15)
    finally:
        database.close()


def _blobs(settings: Settings) -> Iterator[Finding]:
    from remit.store.blob_store.blobs import open_blobs

    if not settings.home.exists():
        yield Finding("blobs", "warn", "there are none yet", "`remit up` makes their place.")
        return
    yield Finding("blobs", "ok", open_blobs(settings.blob_url, settings.run_folder).check())


@contextlib.contextmanager
def _data(settings: Settings) -> Iterator[Gate | None]:
    """Context manager: a way to the data of an instance; None where there is none that this
    version can read."""
    from remit.clock import SystemClock
    from remit.ids import Ids
    from remit.services.command import Gate
    from remit.store.blob_store.blobs import open_blobs
    from remit.store.engine.database import open_database
    from remit.store.engine.migrate import HEAD, is_sqlite, sqlite_path

    url = settings.database_url
    if (is_sqlite(url) and not sqlite_path(url).exists()) or _schema(settings) != HEAD:
        yield None
        return
    clock, database = SystemClock(), open_database(url)
    try:
        blobs = open_blobs(settings.blob_url, settings.run_folder)
        gate = Gate(database, clock, Ids(clock), blobs)
        gate.prices = prices.of_instance(settings.prices)
        yield gate
    finally:
        database.close()


def _contents(settings: Settings) -> Iterator[Finding]:
    """Look whether the contents that the database names are in the blob store: the newest ones."""
    from remit.services.knowledge.file_contents import Library

    with _data(settings) as gate:
        if gate is None:
            return
        library = Library(gate, gate.blobs, gate.ids)
        try:
            newest, missing = asyncio.run(library.newest())
        finally:
            library.close()
    if missing:
        sentence = f"the blob store lacks {missing} of the {newest} newest contents"
        step = "Restore the blobs, or correct REMIT_BLOB_URL."
        yield Finding("contents", "fail", sentence, step)
    else:
        yield Finding("contents", "ok", f"the {newest} newest are there" if newest else "none yet")


def forges(settings: Settings) -> Iterator[Finding]:
    """Check the token of each forge with one request for its repository."""
    from remit.runtime.repos.forges import Forges
    from remit.runtime.secrets.values import Vault

    with _data(settings) as gate:
        if gate is None:
            return
        problems = Forges(Vault(gate, settings.secrets).value).each(gate)
        for repo, problem in asyncio.run(problems):
            sentence = problem or f"{repo.forge} knows the token"
            step = "See to the address and the token of the repository." if problem else ""
            yield Finding(f"forge of {repo.name}", "warn" if problem else "ok", sentence, step)
            yield _pushes(repo)


def proposals(settings: Settings) -> Iterator[Finding]:
    """Look for agents whose last proposals would be refused now."""
    from remit.services.changes.proposals import refused_now
    from remit.services.identity import as_system

    with _data(settings) as gate:
        if gate is None:
            return
        for agent, repo, sentence in asyncio.run(gate(as_system(), refused_now)):
            problem = f"{agent} would be refused what it last proposed to {repo}: {sentence}"
            step = f"Name the files: `remit grant give {agent} repo:{repo} propose --path PATTERN`."
            yield Finding("proposals", "warn", problem, step)


def models(settings: Settings) -> Iterator[Finding]:
    """Look for models in use that have no price: limits and budgets of money do not hold them."""
    from remit.services.identity import as_system
    from remit.services.spending import promises

    with _data(settings) as gate:
        if gate is None:
            return
        for company in asyncio.run(gate(as_system(), promises.companies)):
            name, kinds = asyncio.run(gate(as_system(), promises.unpriced, company=company))
            check = f"costs of {name}"
            if not kinds:
                yield Finding(check, "ok", "the cost of each agent is known")
                continue
            named = ", ".join(kinds[:3]) + (f" and {len(kinds) - 3} more" if kinds[3:] else "")
            sentence = f"not known of {named}; only limits in tokens hold there"
            step = (
                "Name the model; `remit company set --price MODEL=INPUT/OUTPUT` gives it a price, "
                "and so does [prices] in remit.toml for every company."
            )
            yield Finding(check, "warn", sentence, step)


def _secrets(settings: Settings) -> Iterator[Finding]:
    """Try to read each secret that lies in a file; no value is shown. The instance may have other
    variables than this process, and a command may ask for something."""
    from remit.model.connections.secret import FILE
    from remit.runtime.secrets.values import Vault
    from remit.services.connections import secrets
    from remit.services.identity import as_system

    with _data(settings) as gate:
        if gate is None:
            return

        async def tried(gate: Gate) -> list[tuple[str, str | None]]:
            registered = await gate(as_system(), secrets.registered)
            rows = [row for row in registered if row.source == FILE]
            problems = await Vault(gate, settings.secrets).problems(rows)
            return [(row.name, problem) for row, problem in zip(rows, problems, strict=True)]

        for name, problem in asyncio.run(tried(gate)):
            step = f"Set it again with `remit secret set {name}`." if problem else ""
            yield Finding(f"secret {name}", "fail" if problem else "ok", problem or "is read", step)


def _pushes(repo: Repo) -> Finding:
    """Say whether the CI of a forge runs proposals before a person has looked at them."""
    name = f"proposals to {repo.name}"
    if repo.push == PushMode.AFTER_LOOK:
        return Finding(name, "ok", "pushed once a person has looked at the commits")
    if repo.push == PushMode.FORK:
        return Finding(name, "ok", f"pushed to {repo.fork}; keep secrets out of its CI")
    return Finding(
        name,
        "warn",
        "pushed at once: the CI of the forge runs what agents wrote (scripts, tests, build files), "
        "with the secrets that the repository gives to its branches",
        f"`remit repo set {repo.name} --push after_look`, or push to a fork without secrets; if "
        "the CI has no secrets, leave it.",
    )


def sandbox(_: Settings) -> Iterator[Finding]:
    """Try the sandbox for programs of runs on this machine, and report its gaps."""
    from remit.runtime.sandbox import sandbox_policy

    trial = sandbox_policy.look()
    if not trial.usable:
        yield Finding(
            "sandbox",
            "warn",
            f"{trial.reason}; programs of agents are refused, except with full_access",
            "Install bubblewrap.",
        )
        return
    yield Finding("sandbox", "ok", f"{trial.name} holds the programs of runs")
    for held in trial.enforced:
        yield Finding("sandbox holds", "ok", held)
    for free in trial.not_enforced:
        yield Finding("sandbox does not hold", "warn", free, _ABOUT_THE_REST)


def adapters(_: Settings) -> Iterator[Finding]:
    """Check which adapters a worker with this environment can use."""
    from remit.adapters import registry

    for type_ in registry.types():
        readiness = registry.check(type_)
        state = "ok" if readiness.usable else "warn"
        yield Finding(f"adapter {type_}", state, readiness.sentence, readiness.next_step)
    for name, reason in registry.problems().items():
        yield Finding(f"adapter plugin {name}", "warn", reason, "Look at the plugin.")


def _extras(_: Settings) -> Iterator[Finding]:
    for extra, module in EXTRAS.items():
        if find_spec(module) is not None:
            yield Finding(f"{extra} extra", "ok", f"{module} is installed")
        else:
            yield Finding(f"{extra} extra", "warn", "not installed", how_to_install(extra))


CHECKS: Final[tuple[Check, ...]] = (
    _python,
    _package,
    _prices,
    _sqlite,
    _home,
    _board_token,
    _database,
    _blobs,
    _contents,
    _secrets,
    forges,
    proposals,
    models,
    sandbox,
    adapters,
    _extras,
)
