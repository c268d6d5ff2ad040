"""What the crash matrix found, one story each."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from remit.app import App
from remit.clock import DAY, SystemClock
from remit.errors import RemitError
from remit.runtime.runs import lifecycle as live_runs
from remit.runtime.secrets.values import Vault
from remit.services.identity import Caller, as_system
from remit.services.organisation import agents
from remit.services.people import companies, instance, sessions
from tests.company import Company, keyed, opened, settings


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


@pytest.fixture
def company(small: Company) -> Company:
    return small


class Died(BaseException):
    """Stands for kill -9: nothing that would tidy up runs."""


def test_a_value_that_no_secret_names_is_deleted_when_it_is_old(company: Company) -> None:
    """Killed between the file and the row, or between the row and the former file."""
    vault = company.app.vault
    given = {"company": company.id, "name": "key"}
    company.wait(vault.put(company.board, **given, value="a value that is named"))
    named = company.home / company.sql("SELECT place FROM secrets")[0][0]
    lost = company.home / company.wait(vault.keep(company.id, "a value without a row"))
    young = company.home / company.wait(vault.keep(company.id, "a value on its way"))
    elsewhere = company.home / company.wait(
        vault.keep(company.app.ids.new(), "of another database")
    )
    long_ago = (SystemClock().now() - 2 * DAY) / 1_000_000
    for path in (named, lost, elsewhere):
        os.utime(path, (long_ago, long_ago))
    company.wait(company.app.tidy())
    assert not lost.exists()
    assert all(path.exists() for path in (named, young, elsewhere))
    assert company.wait(vault.value(company.id, "key")) == "a value that is named"


def test_a_value_that_was_replaced_by_a_process_that_died_is_deleted(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault, given = company.app.vault, {"company": company.id, "name": "key"}
    company.wait(vault.put(company.board, **given, value="the first value"))
    (first,) = company.home.glob("secrets/*/*")

    async def dying(*_: Any) -> None:
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(Vault, "discard", dying)
        with pytest.raises(Died):
            company.wait(vault.put(company.board, **given, value="the second value"))
    assert first.exists()
    assert company.wait(vault.value(company.id, "key")) == "the second value"
    os.utime(first, (0, 0))
    company.wait(company.app.tidy())
    assert not first.exists()
    assert company.wait(vault.value(company.id, "key")) == "the second value"


@pytest.mark.parametrize("committed", [False, True])
def test_a_new_board_token_opens_the_instance_although_its_maker_died(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    """It used to be in its file before the database knew it, where it stayed and opened nothing."""
    url, home = f"sqlite:///{tmp_path}/remit.db", tmp_path / "home"
    with opened(url, home) as company:
        place = company.app.settings.board_token_file
    place.unlink()

    async def start() -> None:
        async with App(settings(url, home)) as app:
            gate = app.gate

            async def dying(caller: Any, verb: Any, **given: Any) -> Any:
                if verb is instance.renew_board_token:
                    if committed:
                        await gate(caller, verb, **given)
                    raise Died
                return await gate(caller, verb, **given)

            monkeypatch.setattr(app, "gate", dying)
            await app.first_start()

    with pytest.raises(Died):
        asyncio.run(start())
    assert not place.exists()
    with opened(url, home) as company:
        assert company.call(Caller(place.read_text().strip()), companies.listing)
        made = company.sql("SELECT count(*) FROM tokens WHERE label LIKE 'board.token%'")
        assert made == [(2,)], "the first one, and one that was renewed"
    assert [path.name for path in home.glob("board.token*")] == ["board.token"]


def test_a_run_that_was_not_begun_leaves_no_folder(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing would have led from a folder without a run to whoever removes it."""
    where = (company.app.gate, company.app.ids, company.app.settings.workspaces)
    company.call(company.board, agents.pause, agent="ceo")
    with pytest.raises(RemitError):
        company.wait(live_runs.begin(*where, company.ceo.id))
    assert os.listdir(company.app.settings.workspaces) == []


def test_a_run_whose_folder_cannot_be_made_is_over(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = (company.app.gate, company.app.ids, company.app.settings.workspaces)

    def full(*_: Any) -> None:
        raise OSError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(live_runs, "create_workspace", full)
        with pytest.raises(OSError, match="no room"):
            company.wait(live_runs.begin(*where, company.ceo.id))
    assert company.sql("SELECT status FROM runs") == [("failed",)]
    run = company.wait(live_runs.begin(*where, company.ceo.id))
    assert run.workspace.is_dir()
    company.wait(live_runs.finish(company.app.gate, run))


def test_a_key_stays_that_of_who_called_when_the_verb_goes_on_as_somebody_else(
    company: Company,
) -> None:
    """Signing in is asked for by Remit and recorded as the person's own doing."""
    link = company.call(company.board, sessions.create_link)["token"]
    first = company.call(as_system("k"), sessions.redeem, link=link)
    again = company.call(as_system("k"), sessions.redeem, link=link)
    assert again == {**first, "token": None}
    # The person's own key of that name is free.
    made = company.call(keyed(company.board, "k"), agents.create, company=company.id, name="new")
    assert made["name"] == "new"
