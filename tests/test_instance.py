"""The instance itself, for its operators: what its machine can do, and backups."""

import os

import pytest

from remit.errors import Conflict, NotFound, Refused
from remit.runtime import backups as kept
from remit.services.identity import Caller
from remit.services.people import instance
from remit.services.record import events
from remit.testing.clock import VirtualClock
from tests.company import Company, keyed


def outsiders(company: Company) -> list[Caller]:
    """Everybody who is no operator: a board member, one of a part, an observer, an agent."""
    return [
        company.user("ann"),
        company.user("bea", scope="ceo"),
        company.user("cem", "observer"),
        company.agent("ada").caller,
    ]


@pytest.mark.requirement("FX-49")
def test_an_operator_makes_lists_takes_and_deletes_backups(
    small: Company, clock: VirtualClock
) -> None:
    backups = small.app.backups
    made = small.wait(backups.make(keyed(small.board, "k")))
    assert (made["companies"], made["writing"]) == (1, False)
    clock.advance(1_000_000)
    assert small.wait(backups.make(keyed(small.board, "k")))["name"] == made["name"]
    [listed] = small.wait(backups.listing(small.board))
    path = small.wait(backups.take(small.board, listed["name"]))
    assert os.stat(path).st_mode & 0o077 == 0
    assert path.stat().st_size == listed["bytes"]
    small.wait(backups.remove(small.board, listed["name"]))
    assert small.wait(backups.listing(small.board)) == []
    told = [one["action"] for one in small.call(small.board, events.listing, company=small.id)]
    assert [one for one in told if one.startswith("backup.")][::-1] == [
        "backup.create",
        "backup.download",
        "backup.remove",
    ]


def test_nobody_else_learns_of_backups_or_of_the_machine(small: Company) -> None:
    small.wait(small.app.backups.make(small.board))
    name = small.wait(small.app.backups.listing(small.board))[0]["name"]
    for who in outsiders(small):
        for work in (
            small.app.backups.make(who),
            small.app.backups.listing(who),
            small.app.backups.take(who, name),
            small.app.backups.remove(who, name),
            small.app.gate(who, instance.may_operate, what="doctor"),
        ):
            with pytest.raises((Refused, NotFound)):
                small.wait(work)
    assert small.wait(small.app.backups.listing(small.board))[0]["name"] == name


def test_no_name_leads_out_of_the_folder_of_backups(small: Company) -> None:
    folder = small.app.backups.folder
    folder.mkdir(exist_ok=True)
    (folder / "remit-link.backup").symlink_to(small.app.settings.board_token_file)
    (folder / "notes.txt").write_text("mine")
    for name in ("../board.token", "remit-link.backup", "notes.txt", "", ".", "/etc/passwd"):
        for work in (small.app.backups.take, small.app.backups.remove):
            with pytest.raises(NotFound):
                small.wait(work(small.board, name))
    assert small.wait(small.app.backups.listing(small.board)) == []


def test_there_is_an_end_to_how_many_backups_are_kept(
    small: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MOST", 1)
    small.wait(small.app.backups.make(small.board))
    with pytest.raises(Conflict, match="1 backups"):
        small.wait(small.app.backups.make(small.board))
