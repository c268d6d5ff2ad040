"""Workspaces of runs that went wrong: kept for a while, for people, and for nobody else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from remit.clock import HOUR
from remit.errors import BadInput
from remit.runtime.runs import lifecycle as local_runs
from remit.runtime.runs.lifecycle import RetainedWorkspaces
from remit.runtime.runs.workspace import move_inside, open_inside
from remit.services.execution import runs
from remit.services.identity import as_system
from remit.settings import load
from tests.company import Company, Run, opened
from tests.mailing import send
from tests.working import at_work, claim, listed, log_of, over, program


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Company]:
    """On the clock of this machine, for workers."""
    with opened(f"sqlite:///{tmp_path}/remit.db", tmp_path / "home") as made:
        yield made


def kept(company: Company) -> list[str]:
    folder = company.home / "run" / "kept"
    return sorted(os.listdir(folder)) if folder.exists() else []


def gone_wrong(company: Company, name: str, size: int = 10, status: str = "failed") -> Run:
    """A run that left something, and is over."""
    run = company.run(company.agent(name))
    (run.workspace / "left.txt").write_bytes(b"x" * size)
    company.call(as_system(), runs.end, run=run.id, status=status)
    company.wait(company.app.kept.put_away(run.id, run.workspace))
    return run


def shown(company: Company, run: Run) -> dict[str, str] | None:
    return company.app.kept.of(company.call(company.board, runs.show, run=run.id))


@pytest.mark.parametrize("status", ["failed", "lost"])
def test_what_a_run_left_that_went_wrong_is_kept_for_a_day(company: Company, status: str) -> None:
    run = gone_wrong(company, "dev", status=status)
    assert not run.workspace.exists()
    place = shown(company, run)
    assert place is not None
    assert (Path(place["path"]) / "left.txt").read_bytes() == b"x" * 10
    assert place["until"] == "2027-01-16T08:00:00.000000+00:00"
    company.clock.advance(24 * HOUR - 1)  # type: ignore[attr-defined]
    company.wait(company.app.kept.tidy())
    assert kept(company) == [run.id]
    company.clock.advance(1)  # type: ignore[attr-defined]
    company.wait(company.app.kept.tidy())
    assert kept(company) == []
    assert shown(company, run) is None


@pytest.mark.parametrize("status", ["completed", "cancelled"])
def test_what_went_well_is_not_kept(company: Company, status: str) -> None:
    run = gone_wrong(company, "dev", status=status)
    assert not run.workspace.exists()
    assert kept(company) == []


def test_the_oldest_go_when_there_are_too_many_or_too_much(company: Company) -> None:
    app = company.app
    app.kept = RetainedWorkspaces(app.gate, app.clock, app.settings, most=3, most_bytes=50_000)
    made = []
    for number in range(5):
        made.append(gone_wrong(company, f"dev-{number}").id)
        company.clock.advance(HOUR)  # type: ignore[attr-defined]
    assert kept(company) == made[2:]
    large = gone_wrong(company, "large", 30_000).id
    assert large in kept(company)
    huge = gone_wrong(company, "huge", 100_000).id
    assert huge not in kept(company), "one that is too much alone takes no other along"
    assert large in kept(company)


def test_what_cannot_be_measured_is_not_kept(company: Company) -> None:
    run = company.run(company.agent("dev"))
    here = os.open(run.workspace, os.O_RDONLY)
    for _ in range(1500):  # deeper than any path can say
        os.mkdir("deep", dir_fd=here)
        below = os.open("deep", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    company.call(as_system(), runs.end, run=run.id, status="failed")
    company.wait(company.app.kept.put_away(run.id, run.workspace))
    assert kept(company) == []
    assert not run.workspace.exists()


def test_keeping_can_be_switched_off_and_the_setting_is_checked(tmp_path: Path) -> None:
    home = {"REMIT_HOME": str(tmp_path)}
    assert load(home).keep_failed_workspaces == 24
    assert load({**home, "REMIT_KEEP_FAILED_WORKSPACES": "0"}).keep_failed_workspaces == 0
    for wrong in ("x", "-1", "1.5", "9" * 9):
        with pytest.raises(BadInput, match="keep_failed_workspaces"):
            load({**home, "REMIT_KEEP_FAILED_WORKSPACES": wrong})
    (tmp_path / "remit.toml").write_text('keep_failed_workspaces = "2"\n')
    assert load(home).keep_failed_workspaces == 2


def test_nothing_is_kept_when_it_is_switched_off(company: Company) -> None:
    app = company.app
    off = load({"REMIT_HOME": str(company.home), "REMIT_KEEP_FAILED_WORKSPACES": "0"})
    app.kept = RetainedWorkspaces(app.gate, app.clock, off)
    run = gone_wrong(company, "dev")
    assert not run.workspace.exists()
    assert kept(company) == []


def test_what_was_running_when_the_instance_died_is_kept_at_the_next_start(
    company: Company,
) -> None:
    dev, other = company.agent("dev", adapter_type="scripted"), company.agent("other")
    lost, over_ = claim(company, dev), company.run(other)
    lost.workspace.mkdir()
    (lost.workspace / "half.txt").write_text("half")
    company.call(as_system(), runs.end, run=over_.id, status="failed")  # and then it died
    settings = company.app.settings
    company.wait(local_runs.recover(company.app.gate, settings.workspaces, company.app.kept))
    assert kept(company) == sorted([lost.id, over_.id])
    assert list(settings.workspaces.iterdir()) == []


def test_a_folder_of_nobody_is_removed_and_one_whose_end_is_not_written_stays(
    company: Company,
) -> None:
    run = company.run(company.agent("dev"))
    company.wait(company.app.kept.put_away(run.id, run.workspace))
    (company.home / "run" / "kept" / "rubbish").mkdir()
    company.wait(company.app.kept.tidy())
    assert kept(company) == [run.id]


def test_a_failed_program_leaves_its_workspace_and_no_other_run_can_read_it(
    live: Company,
) -> None:
    dev = program(live, "dev", "echo secret > left.txt; exit 1")
    send(live, live.board, "agent:dev")
    at_work(live, lambda: over(live, dev)() and kept(live))
    failed = listed(live, dev)[-1]
    place = Path(live.app.kept.of(failed)["path"])  # type: ignore[index]
    assert (place / "left.txt").read_text() == "secret\n"
    spy = program(live, "spy", f"cat {place}/left.txt; ls {place.parent}; echo done")
    send(live, live.board, "agent:spy")
    at_work(live, over(live, spy))
    said = log_of(live, listed(live, spy)[-1])
    assert "done" in said
    assert "secret" not in said
    assert failed["id"] not in said.replace(str(place), "")


def test_no_path_in_a_workspace_leads_there(live: Company) -> None:
    run = gone_wrong(live, "other")
    place = live.home / "run" / "kept" / run.id
    at = live.run(live.agent("dev"))
    (at.workspace / "link").symlink_to(place)
    for path in (str(place / "left.txt"), "link/left.txt", f"../../kept/{run.id}/left.txt"):
        with pytest.raises(BadInput):
            open_inside(at.workspace, path)
    with pytest.raises(BadInput):
        move_inside(at.workspace, "link/x", at.workspace)
