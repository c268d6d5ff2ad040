"""Fixtures that every test may use."""

from __future__ import annotations

import gc
import importlib
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from remit.clock import Clock
from remit.testing.clock import VirtualClock
from tests import founding, postgres, run_folder
from tests.company import Company, opened
from tests.organisation import problems
from tests.run_folder import RunFolder
from tests.selection import (  # noqa: F401  hooks
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_ignore_collect,
    pytest_terminal_summary,
    pytest_xdist_make_scheduler,
)
from tests.templates import copy_tables_at_starts, lay_tables

if TYPE_CHECKING:
    # A browser takes a second to import, and most tests need none.
    from playwright.sync_api import Browser

    from tests.browsing import Launched, Office, Visitor
    from tests.http_client import Client

# Collecting the tests makes things that all stay: looking for garbage there takes seconds.
gc.disable()

HERE = Path(__file__).parent
RUN = pytest.StashKey[RunFolder]()


def pytest_configure(config: pytest.Config) -> None:
    # A shell without job control starts what is followed by `&` with SIGINT ignored. Every child
    # would inherit that, and a test that interrupts one would wait for it for ever.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Each of the many programs that tests start would compile all of its source.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    # A worker inherits the folder from the process that started the run.
    if not hasattr(config, "workerinput"):
        config.stash[RUN] = run_folder.begin()
    copy_tables_at_starts()


def pytest_sessionstart(session: pytest.Session) -> None:
    """Load a share of the files that is another worker's last: what one worker compiled, the
    others find, and not every one of them compiles all."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None or [Path(name).resolve() for name in session.config.args] != [HERE]:
        return
    files = sorted(
        path for path in HERE.glob("test_*.py") if not pytest_ignore_collect(path, session.config)
    )
    number, of = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
    for path in files[number::of]:
        with suppress(Exception):  # the collection says which, and shows where
            importlib.import_module(f"{HERE.name}.{path.stem}")


def pytest_collection_finish() -> None:
    # What is here now, six thousand tests and all that they import, is not looked through again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    # What a file leaves stays: caches, mostly. Looking through it with each test after takes more
    # and more.
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    if RUN in config.stash:
        postgres.stop(config.stash[RUN])
        config.stash[RUN].remove()


@pytest.fixture(scope="session")
def postgres_cluster() -> postgres.Cluster:
    """The PostgreSQL server of this test run."""
    try:
        return postgres.shared_cluster(run_folder.current())
    except postgres.PostgresMissing as error:
        sentence = str(error)
    pytest.fail(sentence, pytrace=False)


@pytest.fixture(params=["sqlite", "postgresql"])
def empty_database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database without tables; a test that asks for it runs once per engine."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/remit.db"
        return
    cluster: postgres.Cluster = request.getfixturevalue("postgres_cluster")
    url = cluster.empty_database()
    yield url
    cluster.drop_database(url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a database with all tables and no rows; a test runs once per engine."""
    if request.param == "sqlite":
        yield lay_tables(f"sqlite:///{tmp_path}/remit.db")
        return
    cluster: postgres.Cluster = request.getfixturevalue("postgres_cluster")
    url = cluster.migrated_database()
    yield url
    cluster.drop_database(url)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def served_database(request: pytest.FixtureRequest) -> Iterator[str | None]:
    """The database of an instance that the tests of a file share; None is SQLite in its home."""
    if request.param == "sqlite":
        yield None
        return
    cluster: postgres.Cluster = request.getfixturevalue("postgres_cluster")
    url = cluster.migrated_database()
    yield url
    cluster.drop_database(url)


@pytest.fixture
def clock() -> Clock:
    """The clock of the company; a file that wants another one says so."""
    return VirtualClock()


@pytest.fixture
def asks_before_hiring() -> bool:
    """Whether a hire waits for the board, as in a new company; most tests are not about that."""
    return False


@pytest.fixture(params=["sqlite", "postgresql"])
def company(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock, asks_before_hiring: bool
) -> Iterator[Company]:
    """A company on each database in turn; nothing may be broken in it when the test ends."""
    if request.param == "sqlite":
        with _begun(tmp_path, clock, asks_before_hiring) as company:
            yield company
            _check(request, company)
        return
    cluster: postgres.Cluster = request.getfixturevalue("postgres_cluster")
    with _begun(tmp_path, clock, asks_before_hiring, cluster) as company:
        yield company
        _check(request, company)
    cluster.drop_database(company.url)


@pytest.fixture
def small(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock, asks_before_hiring: bool
) -> Iterator[Company]:
    """A company on SQLite alone, for what does not depend on the database."""
    with _begun(tmp_path, clock, asks_before_hiring) as company:
        yield company
        _check(request, company)


@contextmanager
def _begun(
    place: Path,
    clock: Clock,
    asks_before_hiring: bool,
    cluster: postgres.Cluster | None = None,
) -> Iterator[Company]:
    """A company that was founded just now, or a copy of one."""
    home, file = place / "home", place / "remit.db"
    template = founding.template(clock, asks_before_hiring, cluster)
    if template is None:
        url = cluster.migrated_database() if cluster else f"sqlite:///{file}"
        with opened(url, home, clock, asks_before_hiring=asks_before_hiring) as company:
            yield company
        return
    template.copy_home(home)
    url = template.copy_postgres(cluster) if cluster else template.copy_sqlite(file)
    with opened(url, home, clock, founded=template.founded) as company:
        yield company


def _check(request: pytest.FixtureRequest, company: Company) -> None:
    if request.node.get_closest_marker("tampers") is None:
        assert problems(company) == []


@pytest.fixture(scope="session")
def launched_chromium() -> Iterator[Launched]:
    """One browser for the tests of a worker."""
    from tests import browsing

    with browsing.launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def chromium(launched_chromium: Launched) -> Iterator[Browser]:
    """The browser, in use by the tests of a file; most visitors have a profile of their own."""
    with launched_chromium.in_use() as browser:
        yield browser


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """An instance with its first company, shared by the tests of a file."""
    from tests import browsing

    with browsing.opened(tmp_path_factory.mktemp("office")) as instance:
        yield instance


@pytest.fixture(scope="module")
def board_at_browser(chromium: Browser, office: Office) -> Iterator[Visitor]:
    from tests import browsing

    board = browsing.Visitor(chromium, office)
    yield board
    board.close()


@pytest.fixture
def visitor(board_at_browser: Visitor) -> Iterator[Visitor]:
    """The board at a browser; the test fails when the browser complained about anything."""
    board_at_browser.start_afresh()
    yield board_at_browser
    assert not board_at_browser.problems, board_at_browser.problems


@pytest.fixture
def visit(chromium: Browser, office: Office) -> Iterator[Callable[..., Visitor]]:
    """Makes more visitors: `visit(who, viewport=…, color_scheme="dark", java_script_enabled=…)`."""
    from tests import browsing

    visitors: list[Visitor] = []

    def visitor(who: Client | None = None, **options: Any) -> Visitor:
        visitors.append(browsing.Visitor(chromium, office, who, **options))
        return visitors[-1]

    yield visitor
    for guest in visitors:
        guest.close()
        assert not guest.problems, guest.problems


@pytest.fixture(autouse=True, scope="session")
def _unhurried() -> Iterator[None]:
    """Servers of this process hold wrong tokens back only where a test asks for that, because many
    tests try many of them."""
    from remit.entrypoints.http.server import strangers
    from tests.http_client import UNHURRIED

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strangers, "SOURCE", UNHURRIED)
        patch.setattr(strangers, "TARGET", UNHURRIED)
        yield
