"""Fixtures that every test may use."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import postgres

if TYPE_CHECKING:
    # A browser takes a second to import, and most tests need none.
    from playwright.sync_api import Browser

    from tests.browsing import Office, Visitor
    from tests.http_client import Client

SERVER_FOLDER = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    # A shell without job control starts what is followed by `&` with SIGINT ignored. Every child
    # would inherit that, and a test that interrupts one would wait for it for ever.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # A worker inherits the folder from the process that started the run.
    if not hasattr(config, "workerinput"):
        config.stash[SERVER_FOLDER] = postgres.announce()


def pytest_unconfigure(config: pytest.Config) -> None:
    if SERVER_FOLDER in config.stash:
        postgres.dispose(config.stash[SERVER_FOLDER])


@pytest.fixture(scope="session")
def postgres_cluster() -> postgres.Cluster:
    """The PostgreSQL server of this test run."""
    try:
        return postgres.shared_cluster()
    except postgres.PostgresMissing as error:
        sentence = str(error)
    pytest.fail(sentence, pytrace=False)


@pytest.fixture(scope="session")
def postgres_url_factory(postgres_cluster: postgres.Cluster) -> Callable[[str | None], str]:
    """Makes a fresh PostgreSQL database, empty or from a template, and returns its address.

    The databases go away with the server; `postgres_cluster.drop_database` removes one earlier.
    """
    return postgres_cluster.create_database


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a fresh, empty database; a test that asks for it runs once per engine."""
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path}/remit.db"
        return
    cluster: postgres.Cluster = request.getfixturevalue("postgres_cluster")
    url = cluster.create_database()
    yield url
    cluster.drop_database(url)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """One browser for the tests of a file; each visitor has a profile of their own.

    It brings an event loop that runs as long as it does, and tests of other files have their own.
    """
    from tests import browsing

    with browsing.launched() as browser:
        yield browser


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    """An instance with its first company, shared by the tests of a file."""
    from tests import browsing

    with browsing.opened(tmp_path_factory.mktemp("office")) as found:
        yield found


@pytest.fixture
def visitor(chromium: Browser, office: Office) -> Iterator[Visitor]:
    """The board at a browser; the test fails when the browser complained about anything."""
    from tests import browsing

    found = browsing.Visitor(chromium, office)
    yield found
    found.close()
    assert not found.problems, found.problems


@pytest.fixture
def visit(chromium: Browser, office: Office) -> Iterator[Callable[..., Visitor]]:
    """Makes more visitors: `visit(who, viewport=…, color_scheme="dark", java_script_enabled=…)`."""
    from tests import browsing

    made: list[Visitor] = []

    def visitor(who: Client | None = None, **options: object) -> Visitor:
        made.append(browsing.Visitor(chromium, office, who, **options))
        return made[-1]

    yield visitor
    for one in made:
        one.close()
        assert not one.problems, one.problems
