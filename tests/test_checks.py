"""Checks of what is proposed: run on the author's code, by the repository's command, once."""

import contextlib
import ctypes
import json
import mmap
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.errors import AwaitsApproval, BadInput, Conflict, NotFound, Refused
from remit.model.connections import check as model
from remit.runtime.runs import held_commands
from remit.runtime.sandbox import sandbox_policy
from remit.services.changes import changes, checking, reviews
from remit.services.connections import repo_checks, repos
from remit.services.identity import as_system
from remit.services.knowledge import files
from remit.services.work import outcomes
from tests.change_stage import NEXT, add_repo, author, give, propose
from tests.company import Answer, Company, Run
from tests.git_remote import git
from tests.governance import approve as approve_call
from tests.mailing import send
from tests.review_stage import Site
from tests.working import eventually

held = pytest.mark.skipif(not sandbox_policy.look().usable, reason="there is no sandbox here")
NOBODY = 65534
MAKEFILE = "test:\n\t@sh tests/run.sh\n"
RUN = "grep -q 'a + b' app.py || { echo 'add() subtracts' >&2; exit 3; }\n"
GOOD = {"app.py": "def add(a, b):\n    return a + b\n"}
BAD = {"app.py": "def add(a, b):\n    return a * b\n"}


@pytest.fixture
def site(small: Company, tmp_path: Path) -> Site:
    made = Site(small, tmp_path / "there")
    made.push_main({"Makefile": MAKEFILE, "tests/run.sh": RUN})
    return made


def name_check(company: Company, **more: Any) -> Answer:
    about = {"company": company.id, "repo": "site", "check": "test", "command": "make test", **more}
    return company.call(company.board, repo_checks.set_check, **about)


def run_checks(company: Company) -> int:
    return company.wait(company.app.checker.tick())


def checks_of(company: Company, made: Answer, who: Any = None) -> list[Answer]:
    return company.call(who or company.board, checking.of, change=made["change"])


def seen(made: Answer) -> dict[str, Any]:
    return {"change": made["change"], "head": made["commit"], "base": made["base"]}


# ── what is run ─────────────────────────────────────────────────────────────────────────────────


@held
@pytest.mark.requirement("FX-30", "FX-32", "BX-11")
def test_a_failed_check_comes_to_its_author_and_a_mended_one_passes(site: Site) -> None:
    company, run = site.company, site.author()
    name_check(company, required=True, protected=["Makefile", "tests/**"])
    about = company.call(run.caller, outcomes.create, parent=run.agent_id, title="Mend add")
    made = site.propose(run, BAD, outcome=about["id"])
    assert [one["state"] for one in checks_of(company, made)] == ["waiting"]
    assert run_checks(company) == 1
    (failed,) = checks_of(company, made, run.caller)
    assert (failed["state"], failed["head"]) == ("failed", made["commit"])
    assert "add() subtracts" in failed["log"]
    subjects = [one["subject"] for one in letters(company, run)]
    assert subjects == ["Check test failed: Add, do not subtract"]
    evidence = company.call(run.caller, files.show, file=failed["evidence_id"])
    assert evidence["description"].startswith("Check test failed")
    with pytest.raises(Conflict, match="it is failed"):
        company.call(company.board, reviews.merge, **seen(made))
    mended = site.propose(run, GOOD)
    assert mended["change"] == made["change"]
    assert run_checks(company) == 1
    assert [one["state"] for one in checks_of(company, mended)] == ["passed"]
    company.call(company.board, reviews.merge, **seen(mended))
    site.carry_out()
    assert site.shown(made["change"])["status"] == "merged"
    # What passed is in the evidence that the author hands in.
    ((merged,),) = company.sql("SELECT id FROM files WHERE description LIKE 'Merged: %'")
    (passed,) = checks_of(company, mended)
    expected = f"- check test: passed, kb_file:{passed['evidence_id']}\n"
    assert expected.encode() in company.read(run.caller, merged)[1]


@held
@pytest.mark.requirement("FX-32")
def test_the_command_and_protected_files_are_those_of_the_base(site: Site) -> None:
    """However the author rewrites, shadows, removes or links them."""
    company, run = site.company, site.author()
    name_check(company, protected=["Makefile", "GNUmakefile", "tests/**"])
    cheat = {
        "Makefile": "test:\n\t@echo cheated\n",
        "GNUmakefile": "test:\n\t@echo cheated\n",
        "tests/run.sh": "echo cheated\n",
        "tests/sitecustomize.py": "x = 1\n",
        **BAD,
    }
    made = site.propose(run, cheat)
    run_checks(company)
    (failed,) = checks_of(company, made)
    assert failed["state"] == "failed"
    assert "cheated" not in failed["log"]
    # A folder that became a link to what the author wrote.
    git(site.work, "checkout", "--quiet", "-B", "linked", "main")
    git(site.work, "rm", "-r", "--quiet", "tests")
    (site.work / "mine").mkdir()
    (site.work / "mine/run.sh").write_text("echo cheated\n")
    (site.work / "tests").symlink_to("mine")
    linked = site.propose(run, BAD, branch="linked")
    run_checks(company)
    (failed,) = checks_of(company, linked)
    assert failed["state"] == "failed"
    assert "cheated" not in failed["log"]


@held
@pytest.mark.requirement("FX-32")
def test_a_file_that_the_command_names_is_the_bases(site: Site) -> None:
    company, run = site.company, site.author()
    name_check(company, command="sh ./tests/run.sh", protected=[])
    made = site.propose(run, {"tests/run.sh": "echo cheated\n", **BAD})
    run_checks(company)
    assert [one["state"] for one in checks_of(company, made)] == ["failed"]


@held
@pytest.mark.requirement("FX-32")
def test_no_attribute_of_the_author_makes_another_script_of_the_bases(site: Site) -> None:
    """With a carriage return behind it `set -e` is an error, and no error ends the script."""
    company, run = site.company, site.author()
    script = "set -e\ntest -f good\nfalse\n:\n"
    site.push_main({"run.sh": script, "id.sh": "test '$Id$' = '$''Id$'\n"})
    name_check(company, command="sh run.sh; a=$?; sh id.sh || exit 9; exit $a", protected=["*.sh"])
    tricks = "*.sh text eol=crlf\nid.sh ident\n"
    made = site.propose(run, {".gitattributes": tricks, "good": "x\n"})
    run_checks(company)
    (found,) = checks_of(company, made)
    assert (found["state"], found["log"]) == ("failed", "")
    _, evidence = company.read(run.caller, found["evidence_id"])
    assert b"ended with 1" in evidence


@pytest.mark.requirement("FX-32")
@pytest.mark.parametrize("told", [True, False], ids=["as root", "as anybody"])
def test_a_removed_file_that_is_only_in_memory_is_counted(
    told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if told and os.geteuid() != 0:
        pytest.skip("the kernel says this to root alone")
    look = os.stat

    def refused(place: Any, **more: Any) -> os.stat_result:
        if "/map_files/" in str(place) and not told:
            raise PermissionError
        return look(place, **more)

    monkeypatch.setattr(os, "stat", refused)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        file = Path(made, "gone")
        file.write_bytes(b"x" * (4 << 20))
        libc, half = ctypes.CDLL(None), ctypes.c_size_t(2 << 20)  # Python's own keeps it open
        libc.mmap.restype = ctypes.c_void_p
        with file.open("rb") as opened:
            at = libc.mmap(None, half, mmap.PROT_READ, mmap.MAP_PRIVATE, opened.fileno(), 0)
        file.unlink()
        assert held_commands.used([Path(made)], [os.getpid()]) == (4 if told else 2) << 20
        assert libc.munmap(ctypes.c_void_p(at), half) == 0
        assert held_commands.used([Path(made)], [os.getpid()]) == 0


@held
@pytest.mark.requirement("FX-32")
def test_a_check_that_fills_the_disk_is_ended(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    company, run = site.company, site.author()
    monkeypatch.setattr("remit.runtime.repos.checking.MOST_DISK", 16 << 20)
    name_check(company, command="for n in 1 2 3 4; do head -c 8m /dev/zero >f$n; done; sleep 99")
    made = site.propose(run, GOOD)
    run_checks(company)
    (found,) = checks_of(company, made)
    assert found["state"] == "failed"
    _, evidence = company.read(run.caller, found["evidence_id"])
    assert b"wrote more than 16 MiB" in evidence


@contextlib.contextmanager
def somebody(place: Path) -> Iterator[None]:
    """As somebody whom a closed folder keeps out, which it does not do to root."""
    if os.geteuid() != 0:
        yield
        return
    for one in (place, *place.rglob("*")):
        os.chown(one, NOBODY, -1)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.requirement("FX-32")
def test_what_is_hidden_on_the_disk_is_counted_and_left_as_it_was() -> None:
    """Closed folders, one in the other, and a file that was removed and is open."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        folder = Path(made)
        (folder / "a" / "b").mkdir(parents=True)
        for place in ("a/b/big", "a/big", "gone"):
            (folder / place).write_bytes(b"x" * (1 << 20))
        closed = {folder / "a" / "b": 0o300, folder / "a": 0o000}
        for one, mode in closed.items():
            one.chmod(mode)
        with (folder / "gone").open("rb"), somebody(folder):
            (folder / "gone").unlink()
            assert held_commands.used([folder], [os.getpid()]) == 3 << 20
            assert held_commands.used([folder], []) == 2 << 20
        for one, mode in closed.items():
            assert one.stat().st_mode & 0o777 == mode


@held
@pytest.mark.requirement("FX-32")
def test_a_check_has_no_secret_no_network_and_nothing_of_the_instance(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    company, run = site.company, site.author()
    monkeypatch.setenv("REMIT_TEST_SECRET", "hunter2hunter2")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        name_check(
            company,
            command=f"env; ls {company.app.settings.home} 2>&1; git config --list; "
            f"bash -c 'echo hello >/dev/tcp/127.0.0.1/{port}' && echo reached; exit 1",
        )
        made = site.propose(run, GOOD)
        run_checks(company)
    (found,) = checks_of(company, made)
    assert "CI=true" in found["log"]
    assert "hunter2" not in found["log"]
    assert "reached" not in found["log"]
    assert "remit.db" not in found["log"]
    assert "TOKEN" not in found["log"]


@pytest.mark.requirement("FX-32")
def test_the_log_of_a_check_is_readable_and_has_no_secret(small: Company) -> None:
    add_repo(small)
    run = author(small)
    name_check(small)
    made = propose(small, run)
    ((check, _),) = small.call(as_system(), checking.ready)
    held = small.call(as_system(), checking.claim, check=check, worker="w")
    assert held is not None
    key = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
    # Colours in the midst of it do not hide it from the search.
    log = f"sorted(rows, key=len)\n{key}\n{key[:9]}\033[0m{key[9:]}\nkey: other\n"
    about: dict[str, Any] = {"check": check, "epoch": held["epoch"], "code": 1, "log": log}
    small.call(as_system(), checking.delivered, **about)
    (found,) = checks_of(small, made)
    hidden = "***REDACTED***"
    assert found["log"] == f"sorted(rows, key=len)\n{hidden}\n{hidden}\nkey: other\n"
    _, evidence = small.read(run.caller, found["evidence_id"])
    assert b"sorted(rows, key=len)" in evidence
    assert key.encode() not in evidence


@held
@pytest.mark.requirement("FX-32")
def test_a_check_ends_in_its_time_and_says_so_much(site: Site) -> None:
    company, run = site.company, site.author()
    name_check(
        company,
        command="yes | head -c 300000; printf '\\033[31mred\\033[0m\\a\\n'; sleep 99",
        seconds=2,
    )
    made = site.propose(run, GOOD)
    run_checks(company)
    (found,) = checks_of(company, made)
    assert found["state"] == "failed"
    assert len(found["log"]) == model.LONGEST_LOG
    assert found["log"].endswith("red?\n")
    _, evidence = company.read(run.caller, found["evidence_id"])
    assert b"took longer than 2 seconds" in evidence
    assert b"Run by Remit on the author's code" in evidence


@held
def test_a_check_that_nobody_wants_any_more_is_ended_and_leaves_nothing(site: Site) -> None:
    company, run = site.company, site.author()
    name_check(company, command="sleep 99")
    first = site.propose(run, BAD)
    checker = company.app.checker

    async def start() -> None:
        checker.start()

    company.wait(start())
    eventually(lambda: company.call(as_system(), checking.under_way))
    name_check(company, command="true")
    site.propose(run, GOOD)
    eventually(lambda: [one["state"] for one in checks_of(company, first)] == ["passed"])
    company.wait(checker.stop())
    stage = company.app.settings.home / "run" / "clones"
    assert list(stage.iterdir()) == []


@held
def test_a_process_that_died_has_its_check_run_again_with_one_result(site: Site) -> None:
    company, run = site.company, site.author()
    name_check(company)
    made = site.propose(run, BAD)
    ((check, _),) = company.call(as_system(), checking.ready)
    company.call(as_system(), checking.claim, check=check, worker="died")
    assert run_checks(company) == 0, "somebody runs it"
    late: dict[str, Any] = {"check": check, "epoch": 1, "code": 0, "log": "I was slow"}
    company.wait(company.app.checker.recover())
    company.call(as_system(), checking.claim, check=check, worker="next")
    with pytest.raises(Conflict):
        company.call(as_system(), checking.delivered, **late)
    company.wait(company.app.checker.recover())
    assert run_checks(company) == 1
    assert [one["state"] for one in checks_of(company, made)] == ["failed"]
    assert len(letters(company, run)) == 1


# ── who may, and what is required ───────────────────────────────────────────────────────────────


def finish(
    company: Company, code: int | None = 0, log: str = "", *, most: int | None = None
) -> None:
    for check, _ in company.call(as_system(), checking.ready)[:most]:
        held = company.call(as_system(), checking.claim, check=check, worker="w")
        assert held is not None
        ended: dict[str, Any] = {"check": check, "epoch": held["epoch"], "code": code, "log": log}
        company.call(as_system(), checking.delivered, **ended)


def letters(company: Company, run: Run) -> list[Answer]:
    found = company.sql(
        "SELECT m.id, m.subject FROM messages m JOIN deliveries d ON d.message_id = m.id"
        " WHERE d.agent_id = ? AND m.subject LIKE 'Check %' ORDER BY m.id",
        run.agent_id,
    )
    return [{"id": one[0], "subject": one[1]} for one in found]


@pytest.mark.requirement("FX-30")
def test_only_what_a_required_check_passed_is_merged(company: Company) -> None:
    add_repo(company)
    run = author(company)
    made = propose(company, run)
    name_check(company, required=True)
    with pytest.raises(Conflict, match="it is not run") as refused:
        company.call(company.board, reviews.merge, **seen(made))
    assert "remit change check" in refused.value.step
    company.call(company.board, checking.again, change=made["change"])
    finish(company, 1)
    with pytest.raises(Conflict, match="it is failed"):
        company.call(company.board, reviews.merge, **seen(made))
    company.call(run.caller, checking.again, change=made["change"])
    finish(company, 0)
    shown = company.call(company.board, changes.show, change=made["change"])
    assert [one["state"] for one in shown["checks"]] == ["passed"], "the last of a name counts"
    mended = propose(company, run, head=NEXT)
    company.call(company.board, reviews.merge, **seen(mended))
    with pytest.raises(Conflict, match="merged already"):
        company.call(company.board, checking.again, change=made["change"])


@pytest.mark.requirement("FX-30", "BX-11")
def test_an_author_hears_once_for_each_head_that_all_checks_passed(small: Company) -> None:
    """And not at all where that changes nothing: a letter starts a run."""
    add_repo(small)
    run, found = author(small), "All checks passed: Mend it"
    for name in ("test", "lint"):
        name_check(small, check=name)
    made = propose(small, run)
    finish(small, 0, most=1)
    assert count(small, run, found) == 0, "one of two"
    finish(small, 0)
    assert count(small, run, found) == 1
    small.call(run.caller, checking.again, change=made["change"])
    finish(small, 0)
    assert count(small, run, found) == 1, "of this head it is known"
    propose(small, run, head=NEXT)
    finish(small, 0, most=1)
    finish(small, 1)
    assert count(small, run, found) == 1, "not all of them"
    # Somebody decided already, or is awaited.
    decided = propose(small, run)
    small.call(small.board, reviews.approve, **seen(decided))
    finish(small, 0)
    assert count(small, run, found) == 1
    about = small.call(run.caller, outcomes.create, parent=run.agent_id, title="Mend")
    send(small, run.caller, "agent:ceo", "May I?", expects_reply=True, outcome=about["id"])
    waits = {"branch": "other", "outcome": about["id"], "title": "Wait"}
    propose(small, run, **waits)
    finish(small, 0)
    assert count(small, run, "All checks passed: Wait") == 0


def count(company: Company, run: Run, subject: str) -> int:
    asked = "SELECT count(*) FROM messages m JOIN deliveries d ON d.message_id = m.id"
    ((found,),) = company.sql(
        f"{asked} WHERE d.agent_id = ? AND m.subject = ?", run.agent_id, subject
    )
    return int(found)


@pytest.mark.requirement("FX-30")
@pytest.mark.parametrize("other", ["head", "base"])
def test_what_passed_on_another_head_or_base_did_not_pass(small: Company, other: str) -> None:
    add_repo(small)
    run = author(small)
    name_check(small, required=True)
    propose(small, run)
    finish(small, 0)
    # What was proposed while nothing was required has no check of its own.
    small.call(small.board, repo_checks.remove_check, company=small.id, repo="site", check="test")
    made = propose(small, run, **{other: NEXT})
    name_check(small, required=True)
    with pytest.raises(Conflict, match="it is not run"):
        small.call(small.board, reviews.merge, **seen(made))


@pytest.mark.requirement("FX-30")
@pytest.mark.parametrize(("code", "status"), [(0, "merged"), (1, "open")])
def test_a_merge_waits_for_the_required_check_that_still_runs(
    site: Site, code: int, status: str
) -> None:
    company, run = site.company, site.author()
    name_check(company, required=True)
    made, before = site.propose(run, GOOD), site.main()
    company.call(company.board, reviews.merge, **seen(made))
    site.publish()
    assert company.wait(site.merger.tick()) == 0, "its check has no result yet"
    assert (site.main(), site.shown(made["change"])["waiting"]) == (before, ["merge"])
    finish(company, code)
    assert company.wait(site.merger.tick()) == 1
    assert site.shown(made["change"])["status"] == status
    assert (site.main() == before) == (status == "open")
    said = {one.partition(":")[0] for (one,) in company.sql("SELECT subject FROM messages")}
    assert said == ({"Merged"} if status == "merged" else {"Check test failed", "Could not merge"})


@pytest.mark.requirement("FX-30")
def test_a_check_that_the_board_replaced_holds_back_every_way_of_merging(site: Site) -> None:
    """What passed the old command did not pass the new one: asked, approved later, carried out."""
    company, run, judge = site.company, site.author(), site.company.agent("judge")
    give(company, judge, "merge")
    name_check(company, command="true", required=True)
    made, before = site.propose(run, GOOD), site.main()
    finish(company, 0)
    with pytest.raises(AwaitsApproval) as waits:
        company.call(company.run(judge).caller, reviews.merge, **seen(made))
    name_check(company, required=True)
    with pytest.raises(Conflict, match="not run as it is now"):
        company.call(company.board, reviews.merge, **seen(made))
    with pytest.raises(Conflict, match="not run as it is now"):
        approve_call(company, {"id": waits.value.details["approval_id"]})
    company.call(company.board, checking.again, change=made["change"])
    finish(company, 0)
    name_check(company, required=True, seconds=5)
    company.call(company.board, reviews.merge, **seen(made))
    name_check(company, required=True, protected=["tests/**"])
    site.carry_out()
    assert (site.main(), site.shown(made["change"])["status"]) == (before, "open")


def test_a_check_that_cannot_be_run_says_so_and_blames_nobody(small: Company) -> None:
    add_repo(small)
    run = author(small)
    name_check(small, required=True)
    made = propose(small, run)
    for _ in range(2):
        ((check, _),) = small.call(as_system(), checking.ready)
        held = small.call(as_system(), checking.claim, check=check, worker="w")
        assert held is not None
        about: dict[str, Any] = {"check": check, "epoch": held["epoch"], "backoff": (0,)}
        small.call(as_system(), checking.failed, **about, why="no sandbox")
    assert letters(small, run) == []
    held = small.call(as_system(), checking.claim, check=check, worker="w")
    assert held is not None
    small.call(as_system(), checking.take_over, check=check, epoch=held["epoch"], alone=True)
    (found,) = checks_of(small, made)
    assert (found["state"], found["log"]) == ("broken", None)
    (letter,) = letters(small, run)
    assert letter["subject"].startswith("Check test could not be run")
    with pytest.raises(Conflict, match="it is broken"):
        small.call(small.board, reviews.merge, **seen(made))


def test_who_runs_the_instance_says_what_is_run(small: Company) -> None:
    add_repo(small)
    run = author(small)
    with pytest.raises(Refused):
        small.call(
            run.caller, repo_checks.set_check, company=None, repo="site", check="x", command="true"
        )
    bad: list[dict[str, Any]] = [{"check": "a b"}, {"protected": ["../x"]}, {"repo": "none"}]
    for wrong in bad:
        with pytest.raises((BadInput, NotFound)):
            name_check(small, **wrong)
    name_check(small, network=True)
    name_check(small, command="make check", seconds=5)
    (found,) = small.call(small.board, repo_checks.listing, company=small.id, repo="site")
    assert found == {
        "name": "test",
        "command": "make check",
        "seconds": 5,
        "network": False,
        "required": False,
        "protected": list(model.DEFAULT_PROTECTED),
    }
    (listed,) = small.call(small.board, repos.listing, company=small.id)
    assert listed["checks"] == [found]
    gone = {"company": small.id, "repo": "site", "check": "test"}
    small.call(small.board, repo_checks.remove_check, **gone)
    with pytest.raises(NotFound):
        small.call(small.board, repo_checks.remove_check, **gone)
    with pytest.raises(Conflict, match="has no checks"):
        small.call(small.board, checking.again, change=propose(small, run)["change"])


def test_a_secret_in_what_was_printed_is_taken_out(small: Company) -> None:
    add_repo(small)
    name_check(small)
    made = propose(small, author(small))
    token = "ghp_" + "a1B2c3D4e5" * 4
    finish(small, 1, f"token={token}\n\x00\ud800end\n")
    (found,) = checks_of(small, made)
    assert token not in json.dumps(found)
    assert found["log"].endswith("end\n")
