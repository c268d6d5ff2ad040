"""The repository cache: real git, real remotes, and agents that wish it harm."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from remit.clock import HOUR, MINUTE
from remit.errors import BadInput, Conflict, NotFound, Refused, RemitError, TooLarge, Unavailable
from remit.runtime.repos import clones
from remit.runtime.repos.cache import Repos
from remit.runtime.secrets.values import SecretOf
from remit.services.connections import mcp_servers, repos
from remit.services.execution import runs
from remit.services.governance import approvals
from remit.services.identity import Caller, as_system
from remit.services.record import events
from remit.services.rights import grants
from remit.testing import ToolRefused
from tests import cli_forks
from tests.company import Answer, Company, Member, Run
from tests.git_remote import PASSWORD, Remote, asked, counted, git, https, trust
from tests.governance import approve
from tests.test_mcp_tools import serving


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path / "remotes" / "site")


def add(company: Company, url: str, name: str = "site", **more: Any) -> Answer:
    return company.call(company.board, repos.add, company=company.id, name=name, url=url, **more)


def give(company: Company, to: Member, name: str = "site", mode: str = "allow") -> None:
    company.call(
        company.board,
        grants.give,
        company=company.id,
        to=to.id,
        resource=f"repo:{name}",
        level="read",
        mode=mode,
    )


def clone(company: Company, run: Run, name: str = "site", **more: Any) -> Answer:
    return company.wait(company.app.repos.clone(run.caller, name=name, **more))


def worker(company: Company, name: str = "worker", mode: str = "allow") -> Run:
    """An agent at work that may have the repository."""
    made = company.agent(name)
    give(company, made, mode=mode)
    return company.run(made)


def repos_with(company: Company, secret_of: SecretOf) -> Repos:
    """Copies that are made with these secrets."""
    app = company.app
    return Repos(app.gate, company.clock, company.home, secret_of, app.library, app.forges)


def mirror(company: Company, name: str = "site") -> Path:
    return company.home / "repos" / company.id / f"{name}.git"


def actions(company: Company) -> list[str]:
    found = company.call(company.board, events.listing, company=company.id, limit=1000)
    return [event["action"] for event in found if event["allowed"]]


# ── the ordinary way ────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-24")
def test_a_repository_is_cloned_into_the_workspace_from_a_local_copy(
    company: Company, remote: Remote
) -> None:
    commit = remote.commit({"src/app.py": "print(1)\n"})
    add(company, remote.url)
    run = worker(company)
    answer = clone(company, run)
    where = Path(answer["path"])
    assert where == run.workspace / "site"
    assert (answer["ref"], answer["commit"]) == ("main", commit)
    assert (where / "src/app.py").read_text() == "print(1)\n"
    assert git(where, "remote", "get-url", "origin") == remote.url
    assert git(where, "status", "--porcelain", "--branch") == "## main...origin/main"
    assert git(where, "fsck", "--full") == ""
    shutil.rmtree(remote.path)  # the copy serves on while it is fresh
    again = clone(company, run, place="deep/er/second")
    assert again["path"] == str(run.workspace / "deep/er/second")
    assert "note" not in again
    assert actions(company).count("repo.clone") == 2


@pytest.mark.requirement("AG-24")
@pytest.mark.slow
def test_twenty_agents_at_once_cause_one_fetch(
    small: Company, remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, log = counted(tmp_path / "bin")
    monkeypatch.setenv("PATH", path)
    add(small, remote.url)
    at_work = [worker(small, f"worker-{number}") for number in range(20)]

    def all_at_once(place: str) -> set[str]:
        answers = small.together(
            [small.app.repos.clone(run.caller, name="site", place=place) for run in at_work]
        )
        assert all(isinstance(answer, dict) for answer in answers), answers
        return {answer["commit"] for answer in answers}  # type: ignore[index]

    assert all_at_once("one") == {remote.head()}
    assert asked(log, "fetch") == 1
    newer = remote.commit({"more.txt": "x"})
    assert newer not in all_at_once("two"), "it is fresh"
    assert asked(log, "fetch") == 1
    small.clock.advance(MINUTE)  # type: ignore[attr-defined]
    assert all_at_once("three") == {newer}
    assert asked(log, "fetch") == 2


_OTHER = """
import asyncio, json, sys
from pathlib import Path
from remit.clock import SystemClock
from remit.model.connections.repo import Repo
from remit.runtime.repos.git import NOBODY
from remit.runtime.repos.mirrors import Mirror

async def main():
    folder, repo = Path(sys.argv[1]), Repo(**json.loads(sys.argv[2]))
    mark = await Mirror(folder, repo, SystemClock()).fetch(NOBODY, int(sys.argv[3]))
    print(mark.fetched_at)

asyncio.run(main())
"""


def test_processes_that_want_the_same_share_one_fetch(
    remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, log = counted(tmp_path / "bin")
    monkeypatch.setenv("PATH", path)
    repo = {
        "id": "r",
        "company_id": "c",
        "name": "site",
        "url": remote.url,
        "ref": None,
        "username": None,
        "secret": None,
        "version": 1,
        "created_at": 0,
        "updated_at": 0,
        "removed_at": None,
    }
    given = [str(tmp_path / "c"), json.dumps(repo), "0"]
    said = set()
    with contextlib.ExitStack() as over:
        forks = cli_forks.instances()
        for other in [
            over.enter_context(forks.open(given, os.environ, errors=False, script=_OTHER))
            for _ in range(4)
        ]:
            assert other.wait(60) == 0
            assert other.stdout is not None
            said.add(other.stdout.read())
    assert len(said) == 1
    assert asked(log, "fetch") == 1


def test_branches_tags_and_commits_are_found_and_nothing_else(
    company: Company, remote: Remote
) -> None:
    first = remote.head()
    git(remote.path, "tag", "--annotate", "v1", "--message", "one")
    git(remote.path, "checkout", "--quiet", "-b", "feature/#1")
    second = remote.commit({"new.txt": "x"})
    git(remote.path, "checkout", "--quiet", "main")
    add(company, remote.url, ref="v1")
    run = worker(company)
    assert clone(company, run, place="a")["commit"] == first
    branch = clone(company, run, place="b", ref="feature/#1")
    assert branch["commit"] == second
    assert git(Path(branch["path"]), "branch", "--show-current") == "feature/#1"
    detached = clone(company, run, place="c", ref=second[:12])
    assert git(Path(detached["path"]), "rev-parse", "HEAD") == second
    assert clone(company, run, place="d", ref="refs/tags/v1")["commit"] == first
    with pytest.raises(NotFound, match="no branch, tag or commit 'nothing'"):
        clone(company, run, place="e", ref="nothing")
    with pytest.raises(NotFound):
        clone(company, run, place="e", ref="deadbeef" * 5)
    for ref in ("--upload-pack=touch /tmp/x", "-b", "a..b", "main^{tree}", "x:y", "", "a\nb", "@"):
        with pytest.raises(BadInput):
            clone(company, run, place="e", ref=ref)
    assert not (run.workspace / "e").exists()


def test_what_was_just_pushed_is_found_although_the_copy_is_fresh(
    company: Company, remote: Remote
) -> None:
    add(company, remote.url)
    run = worker(company)
    clone(company, run, place="a")
    git(remote.path, "checkout", "--quiet", "-b", "new")
    commit = remote.commit({"new.txt": "x"})
    assert clone(company, run, place="b", ref="new")["commit"] == commit


def test_a_branch_that_is_gone_at_the_remote_is_gone_here_and_a_forced_one_follows(
    company: Company, remote: Remote
) -> None:
    git(remote.path, "branch", "old")
    add(company, remote.url)
    run = worker(company)
    clone(company, run, place="a", ref="old")
    git(remote.path, "branch", "--delete", "old")
    git(remote.path, "commit", "--quiet", "--amend", "--message", "again")
    company.clock.advance(2 * MINUTE)  # type: ignore[attr-defined]
    assert clone(company, run, place="b")["commit"] == remote.head()
    with pytest.raises(NotFound):
        clone(company, run, place="c", ref="old")


def test_a_remote_with_another_usual_branch_or_with_nothing(small: Company, tmp_path: Path) -> None:
    trunk = Remote(tmp_path / "trunk", branch="trunk")
    empty = tmp_path / "empty"
    empty.mkdir()
    git(empty, "init", "--quiet", "--bare", ".")
    add(small, trunk.url)
    add(small, str(empty), name="empty")
    run = worker(small)
    give(small, Member(run.agent_id, "worker", run.caller), "empty")
    assert clone(small, run)["ref"] == "trunk"
    with pytest.raises(Conflict, match="nothing on its usual branch"):
        clone(small, run, "empty")


# ── who may ─────────────────────────────────────────────────────────────────────────────────────


def test_without_the_capability_nobody_gets_it_or_learns_of_it(
    company: Company, remote: Remote
) -> None:
    add(company, remote.url)
    other = company.run(company.agent("other"))
    for name in ("site", "there-is-none"):
        with pytest.raises(Refused) as refused:
            clone(company, other, name)
        assert refused.value.reason == "no_capability"
        assert refused.value.step == (
            f"Ask your boss for it: capability_request with resource repo:{name} and level read."
        )
    assert company.call(other.caller, repos.listing) == []
    assert not mirror(company).exists(), "nothing was fetched for nothing"
    allowed = worker(company)
    (listed,) = company.call(allowed.caller, repos.listing)
    assert (listed["name"], listed["mode"]) == ("site", "allow")
    give(company, Member(allowed.agent_id, "worker", allowed.caller), "gone")
    with pytest.raises(NotFound):
        clone(company, allowed, "gone")


def test_one_that_is_to_be_asked_for_waits_for_a_person_and_then_is_made_once(
    company: Company, remote: Remote
) -> None:
    add(company, remote.url)
    run = worker(company, mode="ask")
    assert company.call(run.caller, repos.listing)[0]["mode"] == "ask"
    with pytest.raises(Refused) as waiting:
        clone(company, run)
    assert waiting.value.reason == "pending_approval"
    assert not (run.workspace / "site").exists()
    found = company.call(
        company.board, approvals.show, approval=waiting.value.details["approval_id"]
    )
    assert found["payload"]["arguments"] == {"name": "site", "ref": None, "place": None}
    approve(company, found)
    assert Path(clone(company, run)["path"]).is_dir()
    with pytest.raises(Refused):
        clone(company, run, place="another")


def test_a_denied_agent_and_one_whose_run_is_over_get_nothing(
    company: Company, remote: Remote
) -> None:
    add(company, remote.url)
    with pytest.raises(Refused) as denied:
        clone(company, worker(company, mode="deny"))
    assert denied.value.reason == "denied_by_grant"
    run = worker(company, "second")
    company.call(as_system(), runs.end, run=run.id)
    with pytest.raises(RemitError, match="was revoked"):
        clone(company, run)
    member = company.agent("by-key")
    give(company, member)
    with pytest.raises(BadInput, match="Only a run has a workspace"):
        company.wait(company.app.repos.clone(member.caller, name="site"))


def test_only_a_board_member_who_is_an_operator_names_addresses(
    company: Company, remote: Remote
) -> None:
    plain = company.user("plain")
    observer = company.user("watcher", role="observer")

    def reason(caller: Caller, verb: Any, **more: Any) -> str:
        with pytest.raises(RemitError) as refused:
            company.call(caller, verb, company=company.id, name="site", **more)
        return refused.value.reason

    assert reason(plain, repos.add, url=remote.url) == "not_operator"
    assert reason(observer, repos.add, url=remote.url) == "observer"
    assert reason(company.ceo.caller, repos.add, url=remote.url) == "board_only"
    add(company, remote.url)
    assert reason(observer, repos.remove) == "observer"
    assert reason(company.ceo.caller, repos.remove) == "board_only"
    assert company.call(observer, repos.listing, company=company.id)[0]["name"] == "site"
    scoped = company.user("scoped", scope="ceo")
    assert reason(scoped, repos.remove) == "outside_scope"
    assert company.wait(company.app.repos.sync(plain, company=company.id, name="site"))["head"]
    neighbour = company.second_company()
    assert reason(neighbour.board, repos.remove) == "not_found"
    assert company.call(neighbour.board, repos.listing, company=neighbour.id) == []


def test_the_same_name_in_two_companies_is_two_repositories(
    company: Company, remote: Remote, tmp_path: Path
) -> None:
    other = Remote(tmp_path / "remotes" / "other")
    other.commit({"other.txt": "x"})
    neighbour = company.second_company()
    add(company, remote.url)
    company.call(company.board, repos.add, company=neighbour.id, name="site", url=other.url)
    run = worker(company)
    company.call(
        company.board,
        grants.give,
        company=neighbour.id,
        to=neighbour.agent.id,
        resource="repo:site",
        level="use",
    )
    theirs = company.run(neighbour.agent)
    assert clone(company, run)["commit"] == remote.head()
    assert clone(company, theirs)["commit"] == other.head()


def test_removing_takes_the_copy_and_every_right_along(company: Company, remote: Remote) -> None:
    run = worker(company)  # a right can be given before the thing is there
    with pytest.raises(NotFound):
        clone(company, run)
    add(company, remote.url)
    clone(company, run)
    with pytest.raises(Conflict):
        add(company, remote.url)
    gone = company.wait(company.app.repos.remove(company.board, company=company.id, name="site"))
    assert len(gone["revoked"]) == 1
    assert not mirror(company).exists()
    add(company, remote.url)
    with pytest.raises(Refused):
        clone(company, run, place="again")


# ── what can go wrong ───────────────────────────────────────────────────────────────────────────


def test_a_remote_that_is_down_leaves_the_copy_in_use_and_says_how_old_it_is(
    company: Company, remote: Remote
) -> None:
    add(company, remote.url)
    run = worker(company)
    commit = clone(company, run, place="a")["commit"]
    remote.path.rename(remote.path.with_name("away"))
    company.clock.advance(HOUR)  # type: ignore[attr-defined]
    answer = clone(company, run, place="b")
    assert answer["commit"] == commit
    assert answer["note"].startswith("This is from 3600 seconds ago; the remote fails now: ")
    with pytest.raises(Unavailable, match="site cannot be fetched"):
        company.wait(company.app.repos.sync(company.board, company=company.id, name="site"))


def test_a_remote_that_was_never_reached_is_an_error_and_not_asked_by_everybody(
    company: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, log = counted(tmp_path / "bin")
    monkeypatch.setenv("PATH", path)
    add(company, str(tmp_path / "nowhere"))
    run = worker(company)
    for _ in range(3):
        with pytest.raises(Unavailable, match="site cannot be fetched"):
            clone(company, run)
    assert asked(log, "fetch") == 1
    assert list((company.home / "repos" / company.id).glob(".site~*")) == []


@pytest.mark.parametrize("harm", ["packs", "refs", "mark", "head", "rubbish"])
def test_a_broken_copy_is_noticed_and_made_again(small: Company, remote: Remote, harm: str) -> None:
    remote.commit({f"file{number}.txt": str(number) * 5000 for number in range(20)})
    add(small, remote.url)
    run = worker(small)
    clone(small, run, place="a")
    copy = mirror(small)
    if harm == "packs":
        for pack in copy.glob("objects/pack/*.pack"):
            pack.chmod(0o644)
            pack.write_bytes(pack.read_bytes()[:100] + b"\0" * 4000)
    elif harm == "refs":
        shutil.rmtree(copy / "refs")
        (copy / "packed-refs").unlink(missing_ok=True)
    elif harm == "mark":
        (copy / "remit.json").write_text("{")
    elif harm == "head":
        (copy / "HEAD").write_text("rubbish\n")
    else:
        shutil.rmtree(copy)
        copy.write_text("not even a folder")
    answer = clone(small, run, place="b")
    assert git(Path(answer["path"]), "fsck", "--full") == ""
    assert (Path(answer["path"]) / "file7.txt").read_text() == "7" * 5000


def test_a_copy_that_rots_where_nobody_looks_is_noticed_by_a_sync(
    small: Company, remote: Remote
) -> None:
    add(small, remote.url)
    clone(small, worker(small))
    (pack,) = mirror(small).glob("objects/pack/*.pack")
    whole = pack.read_bytes()
    pack.chmod(0o644)
    pack.write_bytes(whole[:-30] + b"\1" + whole[-29:])
    small.wait(small.app.repos.sync(small.board, company=small.id, name="site"))
    assert git(mirror(small), "fsck", "--full", "--no-dangling") == ""


def test_what_somebody_left_who_was_killed_while_fetching_is_cleared_away(
    small: Company, remote: Remote
) -> None:
    add(small, remote.url)
    run = worker(small)
    clone(small, run, place="a")
    copy = mirror(small)
    for left in (
        "packed-refs.lock",
        "HEAD.lock",
        "refs/heads/main.lock",
        "objects/pack/tmp_pack_x",
    ):
        (copy / left).parent.mkdir(parents=True, exist_ok=True)
        (copy / left).write_text("half")
    (copy.parent / ".site~half").mkdir()
    stage = small.home / "run" / "clones" / "999999999-half"
    stage.mkdir(parents=True)
    commit = remote.commit({"b.txt": "x"})
    small.clock.advance(2 * MINUTE)  # type: ignore[attr-defined]
    assert clone(small, run, place="b")["commit"] == commit
    assert not (copy.parent / ".site~half").exists()
    small.wait(small.app.repos.tidy())
    assert not stage.exists()


def test_a_copy_of_what_another_instance_removed_is_tidied_away(
    small: Company, remote: Remote
) -> None:
    add(small, remote.url)
    clone(small, worker(small))
    small.call(small.board, repos.remove, company=small.id, name="site")
    assert mirror(small).exists()
    small.wait(small.app.repos.tidy())
    assert not mirror(small).exists()


# ── agents that wish us harm ────────────────────────────────────────────────────────────────────


def test_an_agent_cannot_reach_our_copy_through_its_own(small: Company, remote: Remote) -> None:
    add(small, remote.url)
    run = worker(small)
    where = Path(clone(small, run, place="a")["path"])
    ours = {file.stat().st_ino for file in mirror(small).rglob("*")}
    theirs = {file.lstat().st_ino for file in where.rglob("*")}
    assert not ours & theirs, "nothing is linked"
    assert not (where / ".git/objects/info/alternates").exists()
    for file in where.rglob("*"):
        if file.is_file():
            file.chmod(0o644)
            file.write_bytes(b"broken")
    assert git(Path(clone(small, run, place="b")["path"]), "fsck", "--full") == ""


@pytest.mark.parametrize(
    "place", ["../out", "/etc/x", "link/x", "a/../../x", "", ".", "\0", "x" * 5000]
)
def test_a_copy_lands_nowhere_but_in_the_workspace(
    small: Company, remote: Remote, tmp_path: Path, place: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    add(small, remote.url)
    run = worker(small)
    (run.workspace / "link").symlink_to(outside)
    if place == "":
        assert clone(small, run, place=place)["path"] == str(run.workspace / "site")
        return
    with pytest.raises(RemitError):
        clone(small, run, place=place)
    assert list(outside.iterdir()) == []
    assert list((small.home / "run" / "clones").iterdir()) == []


def test_what_is_there_already_is_not_overwritten(
    small: Company, remote: Remote, tmp_path: Path
) -> None:
    add(small, remote.url)
    run = worker(small)
    (run.workspace / "full").mkdir()
    (run.workspace / "full" / "mine.txt").write_text("mine")
    (run.workspace / "file").write_text("mine")
    (run.workspace / "empty").mkdir()
    (run.workspace / "dangling").symlink_to(tmp_path / "not-there")
    for place in ("full", "file", "dangling", "file/below"):
        with pytest.raises(RemitError):
            clone(small, run, place=place)
    assert (run.workspace / "full" / "mine.txt").read_text() == "mine"
    assert not (tmp_path / "not-there").exists()
    assert clone(small, run, place="empty")["path"] == str(run.workspace / "empty")


def test_a_workspace_that_goes_meanwhile_takes_nothing_in(small: Company, remote: Remote) -> None:
    add(small, remote.url)
    run = worker(small)
    shutil.rmtree(run.workspace)
    with pytest.raises(Conflict, match="The run is over"):
        clone(small, run)
    assert list((small.home / "run" / "clones").iterdir()) == []


def test_a_hostile_repository_runs_nothing_and_leads_nowhere(
    small: Company, remote: Remote, tmp_path: Path
) -> None:
    trap = tmp_path / "trap"
    hook = f"#!/bin/sh\ntouch {trap}\n"
    (remote.path / "escape").symlink_to("/etc/passwd")
    (remote.path / "up").symlink_to("../../../..")
    remote.commit(
        {
            ".gitattributes": "*.txt filter=evil\n*.bin filter=lfs diff=lfs\n",
            "x.txt": "x",
            "y.bin": "version https://git-lfs.github.com/spec/v1\n",
            ".gitmodules": f'[submodule "s"]\n path = s\n url = ext::sh -c "touch {trap}"\n',
            "hooks/post-checkout": hook,
        }
    )
    git(remote.path, "update-index", "--add", "--cacheinfo", f"160000,{remote.head()},s")
    git(remote.path, "commit", "--quiet", "--message", "with a submodule")
    for name in ("post-checkout", "post-merge", "pre-commit"):
        (remote.path / ".git/hooks").mkdir(exist_ok=True)
        (remote.path / ".git/hooks" / name).write_text(hook)
        (remote.path / ".git/hooks" / name).chmod(0o755)
    git(remote.path, "config", "uploadpack.packObjectsHook", f"touch {trap}")
    git(remote.path, "config", "filter.evil.smudge", f"touch {trap}")
    add(small, remote.url)
    run = worker(small)
    answer = clone(small, run)
    where = Path(answer["path"])
    assert not trap.exists()
    assert answer["submodules_not_fetched"] == ["s"]
    assert "pointers" in answer["lfs"]
    assert (where / "escape").is_symlink()
    assert not (where / ".git/hooks").exists()
    assert "evil" not in (where / ".git/config").read_text()


def test_a_tree_that_goes_through_a_symlink_or_into_git_itself_is_refused(
    small: Company, remote: Remote, tmp_path: Path
) -> None:
    """Such trees cannot be made by git's own commands, so the objects are written by hand."""
    blob = git(remote.path, "hash-object", "-w", "--stdin", stdin="#!/bin/sh\n")
    hooks = git(remote.path, "mktree", stdin=f"100755 blob {blob}\tpost-checkout\n")
    inner = git(remote.path, "mktree", stdin=f"040000 tree {hooks}\thooks\n")
    raw = b"40000 .git\0" + bytes.fromhex(inner)
    tree = (
        subprocess.run(
            [
                "git",
                "-C",
                str(remote.path),
                "hash-object",
                "-t",
                "tree",
                "-w",
                "--literally",
                "--stdin",
            ],
            input=raw,
            capture_output=True,
            check=True,
        )
        .stdout.decode()
        .strip()
    )
    commit = git(remote.path, "commit-tree", tree, "-m", "evil")
    git(remote.path, "update-ref", "refs/heads/main", commit)
    add(small, remote.url)
    run = worker(small)
    with pytest.raises(Unavailable, match="cannot be copied"):
        clone(small, run)
    assert list(run.workspace.iterdir()) == []


def test_a_few_objects_that_stand_for_endless_files_are_refused(
    small: Company, remote: Remote
) -> None:
    below = git(remote.path, "hash-object", "-w", "--stdin", stdin="boom")
    kind = "100644 blob"
    for _ in range(10):
        entries = "".join(f"{kind} {below}\tf{number}\n" for number in range(10))
        below, kind = git(remote.path, "mktree", stdin=entries), "040000 tree"
    commit = git(remote.path, "commit-tree", below, "-m", "boom")
    git(remote.path, "update-ref", "refs/heads/main", commit)
    add(small, remote.url)
    run = worker(small)
    with pytest.raises(TooLarge, match=f"more than {clones.MOST_FILES} files"):
        clone(small, run)
    assert list(run.workspace.iterdir()) == []


@pytest.mark.parametrize(
    "url",
    [
        "ext::sh -c 'touch x'",
        "ext::sh",
        "fd::17",
        "http://example.com/x",
        "git://example.com/x",
        "ftp://example.com/x",
        "https://user:pass@example.com/x",
        "https://token@example.com/x",
        "ssh://-oProxyCommand=x/y",
        "ssh://git@-oProxyCommand=x/y",
        "-oProxyCommand=x:y",
        "git@-x:y",
        "git@host:-x",
        "--upload-pack=x",
        "relative/path",
        "file://host/x",
        "https://example.com",
        "https://exa mple.com/x",
        "https://example.com/x\n",
        "https://example.com:99999/x",
        "https:///x",
        "",
        7,
        None,
        "https://" + "x" * 5000,
    ],
)
def test_addresses_that_run_something_or_hold_a_password_are_refused(
    small: Company, url: Any
) -> None:
    with pytest.raises(BadInput):
        add(small, url)


def test_usual_addresses_are_taken(small: Company) -> None:
    for number, url in enumerate(
        [
            "https://github.com/a/b.git",
            "https://localhost:8443/a",
            "https://[::1]:8443/a",
            "ssh://git@example.com:2222/a/b.git",
            "git@github.com:a/b.git",
            "example.com:b.git",
            "/srv/git/a b.git".replace(" ", "-"),
            "file:///srv/git/a.git",
        ]
    ):
        add(small, url, name=f"r{number}")


@pytest.mark.parametrize(
    ("url", "more", "sentence"),
    [
        ("/srv/git/a.git", {"secret": "key"}, "A folder of this machine needs no secret"),
        ("https://example.com/a.git", {"username": "me"}, "A username needs a secret"),
    ],
)
def test_descriptions_that_fit_no_remote_are_refused(
    small: Company, url: str, more: dict[str, str], sentence: str
) -> None:
    with pytest.raises(BadInput, match=sentence):
        add(small, url, **more)


def test_a_repository_without_a_forge_says_so_and_a_company_has_so_many(
    small: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert add(small, "https://example.com/a.git", forge="none")["forge"] is None
    monkeypatch.setattr(repos, "MOST_REPOS", 1)
    with pytest.raises(Conflict, match="The company has 1 repositories"):
        add(small, "https://example.com/b.git", name="other")


@pytest.mark.parametrize("name", ["", "-x", ".x", "../x", "a/b", "a b", "x" * 65, "ä", "a\n"])
def test_names_that_are_no_plain_names_are_refused(
    small: Company, remote: Remote, name: str
) -> None:
    with pytest.raises(BadInput):
        add(small, remote.url, name=name)
    with pytest.raises(BadInput):
        clone(small, worker(small), name)


# ── secrets ─────────────────────────────────────────────────────────────────────────────────────


def test_a_password_opens_the_remote_and_is_found_nowhere_else(
    small: Company, remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked_for: list[tuple[str, str]] = []

    async def secret_of(company: str, name: str) -> str:
        asked_for.append((company, name))
        return PASSWORD

    path, log = counted(tmp_path / "bin")
    monkeypatch.setenv("PATH", path)
    with https(tmp_path / "remotes", tmp_path) as server:
        trust(monkeypatch, server.certificate)
        add(small, f"{server.url}/site/.git", username="bot", secret="git-token")
        run = worker(small)
        with pytest.raises(RemitError, match=r"There is no secret .git-token."):
            clone(small, run)
        small.app.repos = repos_with(small, secret_of)
        where = Path(clone(small, run)["path"])
        assert (where / "README.md").read_text() == "first\n"
        assert asked_for == [(small.id, "git-token")]
        assert git(where, "remote", "get-url", "origin") == f"{server.url}/site/.git"
        assert PASSWORD not in git(where, "config", "--list")
    assert PASSWORD not in log.read_text(), "no command line has it"
    for place in (where, small.home / "repos"):
        for file in place.rglob("*"):
            if file.is_file():
                assert PASSWORD.encode() not in file.read_bytes(), file
    for statement in ("SELECT details FROM events", "SELECT url FROM repos"):
        assert PASSWORD not in str(small.sql(statement))


def test_a_wrong_password_and_a_remote_that_leads_elsewhere_are_errors(
    small: Company, remote: Remote, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def secret_of(company: str, name: str) -> str:
        return "wrong-password"

    small.app.repos = repos_with(small, secret_of)
    with https(tmp_path / "remotes", tmp_path) as server:
        trust(monkeypatch, server.certificate)
        add(small, f"{server.url}/site/.git", username="bot", secret="git-token")
        run = worker(small)
        with pytest.raises(Unavailable) as wrong:
            clone(small, run)
        assert "wrong-password" not in wrong.value.sentence
        server.elsewhere = "https://localhost:1"
        with pytest.raises(Unavailable):
            small.wait(small.app.repos.sync(small.board, company=small.id, name="site"))


def test_a_secret_of_several_lines_is_no_password(small: Company) -> None:
    async def secret_of(company: str, name: str) -> str:
        return "one\nhost=elsewhere"

    small.app.repos = repos_with(small, secret_of)
    add(small, "https://localhost:1/x", secret="s")
    with pytest.raises(BadInput, match="several lines"):
        clone(small, worker(small))


def test_ssh_gets_the_key_as_a_file_that_is_gone_afterwards_and_asks_nobody(
    small: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def secret_of(company: str, name: str) -> str:
        return "-----BEGIN OPENSSH PRIVATE KEY-----\nkey\n-----END OPENSSH PRIVATE KEY-----"

    seen = tmp_path / "seen"
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" >>' + f"{seen}\n"
        f'while [ $# -gt 0 ]; do [ "$1" = -i ] && cat "$2" >>{seen} && stat -c %a "$2" >>{seen};'
        " shift; done\necho 'Host key verification failed.' >&2; exit 255\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    small.app.repos = repos_with(small, secret_of)
    add(small, "git@example.com:a/b.git", secret="deploy-key")
    with pytest.raises(Unavailable, match="cannot be fetched"):
        clone(small, worker(small))
    said = seen.read_text().splitlines()
    assert {"BatchMode=yes", "StrictHostKeyChecking=yes", "IdentitiesOnly=yes"} <= set(said)
    assert {"key", "600"} <= set(said)
    assert list((small.home / "repos").glob(".key-*")) == []
    # Whoever was killed meanwhile left it behind.
    left = small.home / "repos" / f".key-{1 << 30}-x"
    used = small.home / "repos" / f".key-{os.getpid()}-x"
    for file in (left, used):
        file.touch()
    small.wait(small.app.repos.tidy())
    assert (left.exists(), used.exists()) == (False, True)


def test_closing_the_instance_ends_a_fetch_that_is_under_way(
    small: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    started = tmp_path / "started"
    program.write_text(f"#!/bin/sh\ntouch {started}\nsleep 600\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    add(small, "git@example.com:a/b.git")
    run = worker(small)

    async def story() -> None:
        waiting = asyncio.create_task(small.app.repos.clone(run.caller, name="site"))
        async with asyncio.timeout(20):
            while not started.exists():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await small.app.repos.close()
            with pytest.raises(asyncio.CancelledError):
                await waiting

    small.wait(story())


@pytest.mark.requirement("HH-28", "HH-33", "HH-19")
def test_an_agent_that_configures_the_instance_knows_and_fetches(
    company: Company, remote: Remote
) -> None:
    add(company, remote.url)
    # Being at the root is no such right.
    plain, keeper = company.agent("plain", None), company.agent("keeper")
    company.call(
        company.board,
        grants.give,
        company=company.id,
        to=keeper.id,
        resource="instance.configure",
        level="use",
    )
    assert company.call(plain.caller, repos.listing) == []
    assert [one["name"] for one in company.call(keeper.caller, repos.listing)] == ["site"]
    with pytest.raises(Refused):
        company.call(plain.caller, repos.sync, company=None, name="site")
    assert company.call(keeper.caller, repos.sync, company=None, name="site").name == "site"
    assert company.call(keeper.caller, mcp_servers.listing, company=None) == []
    with pytest.raises(Refused):
        company.call(plain.caller, mcp_servers.listing, company=None)
    # To name an address is something else.
    with pytest.raises(Refused):
        company.call(keeper.caller, repos.add, company=None, name="x", url=remote.url)


def test_an_agent_lists_and_clones_through_its_tool(remote: Remote, tmp_path: Path) -> None:
    with serving(tmp_path / "instance") as site:
        about: Any = {"name": "site", "url": remote.url}
        site.call(site.board, repos.add, company=site.company, **about)
        member = site.member()
        wish = {"to": member.id, "resource": "repo:site", "level": "use"}
        with site.at_work(member) as (run, agent):
            assert agent.call("repo_clone") == {"repos": []}
            with pytest.raises(ToolRefused, match=r"no_capability: .*repo:site and level read"):
                agent.call("repo_clone", name="site")
            site.call(site.board, grants.give, company=site.company, **wish)
            (listed,) = agent.call("repo_clone")["repos"]
            assert listed == {"name": "site", "url": remote.url, "mode": "allow"}
            answer = agent.call("repo_clone", name="site", dir="work/site", ref="main")
            assert answer["path"] == str(run.workspace / "work/site")
            assert git(run.workspace / "work/site", "rev-parse", "HEAD") == answer["commit"]
            with pytest.raises(ToolRefused, match="There is something at 'work/site' already"):
                agent.call("repo_clone", name="site", dir="work/site")
