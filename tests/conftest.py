"""Fixtures that every test may use."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests import postgres

SERVER_FOLDER = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
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
