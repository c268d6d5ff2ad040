"""Proposals of real copies, through a sandbox, to real remotes; and agents that wish harm."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from remit.errors import BadInput, Conflict, Refused, TooLarge
from remit.runtime.repos import proposals, quarantine
from remit.runtime.sandbox import sandbox_policy
from remit.services.changes import changes
from remit.services.changes import proposals as proposed
from remit.services.connections import folders, repos
from remit.services.rights import grants
from remit.testing import ToolRefused
from tests.change_stage import give
from tests.company import Answer, Company, Run
from tests.git_remote import ENV, Remote, git
from tests.test_mcp_tools import serving

pytestmark = pytest.mark.skipif(not sandbox_policy.look().usable, reason="there is no sandbox here")


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    made = Remote(tmp_path / "remotes" / "site")
    git(made.path, "config", "receive.denyCurrentBranch", "ignore")
    return made


def at_work(company: Company, remote: Remote, name: str = "writer", **more: Any) -> Run:
    """An agent with a clone that it may propose from."""
    company.call(company.board, repos.add, company=company.id, name="site", url=remote.url, **more)
    member = company.agent(name)
    give(company, member)
    run = company.run(member)
    company.wait(company.app.repos.clone(run.caller, name="site"))
    return run


def commit(run: Run, files: dict[str, str], branch: str = "fix", message: str = "Mend it") -> str:
    """As the agent does it, with the identity that its clone has."""
    copy = run.workspace / "site"
    env = {key: value for key, value in ENV.items() if not key.startswith(("GIT_A", "GIT_COMM"))}
    if branch not in git(copy, "branch", "--list", "--format=%(refname:short)").split():
        git(copy, "checkout", "--quiet", "-b", branch)
    for name, content in files.items():
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text(content)
    for words in (["add", "--all", "--force"], ["commit", "--quiet", "-m", message]):
        subprocess.run(["git", "-C", str(copy), *words], env=env, check=True)
    return git(copy, "rev-parse", "HEAD")


def propose(company: Company, run: Run, branch: str = "fix", **more: Any) -> Answer:
    asked = {"name": "site", "branch": branch, "title": "Mend it", **more}
    return company.wait(company.app.proposals.propose(run.caller, **asked))


def publish(company: Company) -> int:
    return company.wait(company.app.publisher.tick())


@pytest.mark.requirement("FX-28", "FX-29")
def test_a_branch_of_a_run_becomes_a_branch_of_the_remote(company: Company, remote: Remote) -> None:
    base = remote.head()
    run = at_work(company, remote)
    commit(run, {"src/app.py": "print(2)\n"})
    made = propose(company, run, description="It printed 1.")
    assert made["base"] == base
    assert publish(company) == 1
    assert git(remote.path, "rev-parse", "remit/writer/fix") == made["commit"]
    shown = git(remote.path, "show", "--no-patch", "--format=%an <%ae>|%cn|%B", "remit/writer/fix")
    author, committer, message = shown.split("|")
    assert author.startswith("writer <writer@")
    assert committer == "Remit"
    assert "Mend it" in message
    assert "Accountable: " in message
    found = company.call(company.board, changes.show, change=made["change"])
    assert (found["published"], found["waiting"], found["paths"]) == (True, [], ["src/app.py"])


@pytest.mark.requirement("FX-28")
def test_the_next_run_goes_on_from_what_was_proposed(small: Company, remote: Remote) -> None:
    run = at_work(small, remote)
    commit(run, {"a.txt": "one\n"})
    first = propose(small, run)
    publish(small)
    cloned = small.wait(
        small.app.repos.clone(run.caller, name="site", ref="fix", place="again/site")
    )
    assert cloned["commit"] == first["commit"]
    copy = Path(cloned["path"])
    assert git(copy, "branch", "--show-current") == "fix"
    (copy / "a.txt").write_text("two\n")
    git(copy, "commit", "--quiet", "-am", "Better")
    second = propose(small, run, place="again/site")
    assert second["change"] == first["change"]
    publish(small)
    assert git(remote.path, "rev-parse", "remit/writer/fix~1") == first["commit"]
    assert git(remote.path, "show", "-s", "--format=%an", "remit/writer/fix") == "writer"


@pytest.mark.requirement("FX-64")
def test_the_same_files_in_a_newer_commit_are_no_news(small: Company, remote: Remote) -> None:
    run = at_work(small, remote)
    commit(run, {"a.txt": "one\n"})
    first = propose(small, run)
    publish(small)
    copy = run.workspace / "site"
    for date in ("2026-01-02T00:00:00Z", "2026-01-03T00:00:00Z"):
        git(copy, "commit", "--quiet", "--amend", "--no-edit", f"--date={date}")
        again = propose(small, run)
        assert {name: again[name] for name in ("change", "commit")} == {
            name: first[name] for name in ("change", "commit")
        }
        assert again["note"].startswith("Nothing new was proposed")
        assert publish(small) == 0
    shown = small.call(small.board, changes.show, change=first["change"])
    assert (shown["revision"], shown["waiting"]) == (1, [])
    # Other words are worth a look, and so are other files.
    reworded = propose(small, run, title="Mend it well")
    assert reworded["commit"] != first["commit"]
    commit(run, {"a.txt": "two\n"})
    assert propose(small, run, title="Mend it well")["commit"] != reworded["commit"]
    assert publish(small) == 1


@pytest.mark.requirement("FX-28")
def test_an_errand_that_is_done_again_pushes_nothing_twice(small: Company, remote: Remote) -> None:
    run = at_work(small, remote)
    commit(run, {"a.txt": "one\n"})
    made = propose(small, run)
    publish(small)
    small.sql("UPDATE change_errands SET status = 'queued', ended_at = NULL, next_at = 0")
    small.sql("UPDATE changes SET published_commit = NULL")
    assert publish(small) == 1
    assert git(remote.path, "rev-parse", "remit/writer/fix") == made["commit"]
    assert git(remote.path, "branch", "--list", "remit/*").split() == ["remit/writer/fix"]


@pytest.mark.requirement("FX-28")
def test_a_branch_that_somebody_else_moved_is_left_alone(small: Company, remote: Remote) -> None:
    run = at_work(small, remote)
    commit(run, {"a.txt": "one\n"})
    propose(small, run)
    git(remote.path, "branch", "remit/writer/fix", "main")
    publish(small)
    assert git(remote.path, "rev-parse", "remit/writer/fix") == remote.head()
    found = small.call(small.board, changes.listing, company=small.id)[0]
    detail = small.call(small.board, changes.show, change=found["id"])
    assert "somebody else moved" in detail["problems"][0]


POSED = """Mend

Co-authored-by: Ann <ann@evil.example>
co-authored-by : Ann <ann@evil.example>
  Co-Authored-By: Ann <ann@evil.example>
Signed-off-by: Linus <linus@evil.example>
Reviewed-by: Linus <linus@evil.example>
On-behalf-of: @acme <acme@evil.example>
Accountable: Linus <linus@evil.example>
Remit-Change: 0 evil.example
\rCo-authored-by: Ann <ann@evil.example>
\x0cCo-authored-by: Ann <ann@evil.example>
\u2028Co-authored-by: Ann <ann@evil.example>
Co-authored-by= Ann <ann@evil.example>"""


def raw(copy: Path, head: str, *headers: str, message: str = "x") -> str:
    """A commit as no porcelain writes it, on the branch."""
    tree = git(copy, "rev-parse", "HEAD^{tree}")
    text = "\n".join((f"tree {tree}", f"parent {head}", *headers, "", message, ""))
    made = git(copy, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=text)
    git(copy, "update-ref", "refs/heads/fix", made)
    return made


LINUS = "Linus <linus@evil.example> 1700000000 +0000"
WHO = (f"author {LINUS}", f"committer {LINUS}")


@pytest.mark.requirement("FX-29")
def test_commits_that_pose_reach_the_remote_as_the_agents(small: Company, remote: Remote) -> None:
    """Whatever they claim is written anew: authors, committers, signatures, trailers, encodings."""
    run = at_work(small, remote)
    copy = run.workspace / "site"
    first = commit(run, {"a.txt": "x\n"})
    signature = "gpgsig -----BEGIN SSH SIGNATURE-----\n evil.example\n -----END SSH SIGNATURE-----"
    raw(copy, first, *WHO, "encoding evil.example", signature, message=POSED)
    made = propose(small, run)
    publish(small)
    shown = git(remote.path, "log", "--format=raw", f"main..{made['commit']}")
    assert "evil.example" not in shown
    assert "Linus" not in shown
    assert shown.count("author writer <") == 2
    assert shown.count("committer Remit <") == 2
    assert "gpgsig" not in shown
    # The trailers that git itself reads, of each commit.
    named = git(remote.path, "log", "--format=%(trailers:only)", f"main..{made['commit']}")
    assert {line.split(":")[0] for line in named.splitlines() if line} == {"Accountable"}


@pytest.mark.requirement("FX-28", "FX-29")
def test_a_parent_that_git_does_not_read_brings_no_history_along(
    small: Company, remote: Remote
) -> None:
    """A header that stands again below the others is nobody's parent; a graft brings its objects.

    Otherwise a commit that poses, and that nobody looked at, came in as a second parent."""
    run = at_work(small, remote)
    copy = run.workspace / "site"
    first = commit(run, {"a.txt": "x\n"})
    git(copy, "checkout", "--quiet", "--orphan", "side")
    (copy / "key.pem").write_text("-----BEGIN RSA PRIVATE KEY-----\nabc\n")
    git(copy, "add", "--all")
    git(copy, "commit", "--quiet", "--author", "Linus <linus@evil.example>", "-m", "Unseen")
    unseen = git(copy, "rev-parse", "HEAD")
    git(copy, "checkout", "--quiet", "fix")
    tip = raw(copy, first, *WHO, f"parent {unseen}")
    (copy / ".git/info").mkdir(exist_ok=True)
    (copy / ".git/info/grafts").write_text(f"{tip} {first} {unseen}\n")
    made = propose(small, run)
    publish(small)
    parents = git(remote.path, "log", "--format=%P", "-1", made["commit"]).split()
    assert len(parents) == 1
    assert "Unseen" not in git(remote.path, "log", "--all", "--format=%s")
    assert small.call(small.board, changes.show, change=made["change"])["paths"] == ["a.txt"]


@pytest.mark.requirement("FX-28")
def test_a_secret_is_refused_with_its_place(small: Company, remote: Remote) -> None:
    run = at_work(small, remote)
    commit(run, {"ok.txt": "fine\n", "b/key.pem": "-----BEGIN RSA PRIVATE KEY-----\nabc\n"})
    with pytest.raises(BadInput, match=r"b/key\.pem"):
        propose(small, run)
    git(run.workspace / "site", "checkout", "--quiet", "-B", "fix", "origin/main")
    commit(run, {"key.py": 'KEY = "ghp_0123456789abcdefghijABCDEFGHIJ012345"\n'})
    # Also when a later commit takes it out: it would be in the history.
    (run.workspace / "site" / "key.py").unlink()
    commit(run, {"other.txt": "x\n"})
    with pytest.raises(BadInput, match=r"key\.py, line 1, looks"):
        propose(small, run)


@pytest.mark.requirement("FX-28")
def test_links_submodules_and_odd_names_are_refused(small: Company, remote: Remote) -> None:
    run = at_work(small, remote)
    copy = run.workspace / "site"
    tries = {"/etc/passwd": "leads out", "../../x": "leads out", ".git/config": "into .git"}
    for number, (leads, said) in enumerate(tries.items()):
        git(copy, "checkout", "--quiet", "-B", f"try{number}", "origin/main")
        (copy / "link").symlink_to(leads)
        commit(run, {f"x{number}": "x"}, branch=f"try{number}")
        with pytest.raises(BadInput, match=said):
            propose(small, run, branch=f"try{number}")
    git(copy, "checkout", "--quiet", "-B", "sub", "origin/main")
    git(copy, "update-index", "--add", "--cacheinfo", f"160000,{remote.head()},lib")
    git(copy, "commit", "--quiet", "-m", "x")
    with pytest.raises(BadInput, match="submodule"):
        propose(small, run, branch="sub")


@pytest.mark.requirement("FX-28")
def test_objects_that_git_finds_wrong_are_refused(small: Company, remote: Remote) -> None:
    """A tree with one name twice: which of the two somebody sees depends on who looks."""
    run = at_work(small, remote)
    copy = run.workspace / "site"
    commit(run, {"a": "x\n"})
    entry = b"100644 a\0" + bytes.fromhex(git(copy, "rev-parse", "HEAD:a"))
    (run.workspace / "tree").write_bytes(entry * 2)
    made = ("hash-object", "-t", "tree", "-w", "--literally", str(run.workspace / "tree"))
    wrong = git(copy, "commit-tree", "-p", "HEAD", "-m", "x", git(copy, *made))
    git(copy, "update-ref", "refs/heads/fix", wrong)
    with pytest.raises(BadInput, match="git does not take the objects"):
        propose(small, run)


@pytest.mark.requirement("FX-28")
def test_a_branch_that_moves_while_it_is_read_is_not_proposed(
    small: Company, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = at_work(small, remote)
    commit(run, {"a.txt": "one\n"})
    read = proposals._inside

    async def moved(*args: Any) -> bytes:
        said = await read(*args)
        if "rev-parse" in args:
            commit(run, {"a.txt": "two\n"})
        return said

    monkeypatch.setattr(proposals, "_inside", moved)
    with pytest.raises(Conflict, match="moved while it was read"):
        propose(small, run)


@pytest.mark.requirement("FX-28")
def test_what_came_and_went_again_counts_as_touched(small: Company, remote: Remote) -> None:
    """It would be in the history."""
    run = at_work(small, remote)
    give(small, run, mode="deny", paths=["secret/**"])
    commit(run, {"secret/plan": "x\n"})
    (run.workspace / "site" / "secret" / "plan").unlink()
    commit(run, {"other.txt": "x\n"})
    with pytest.raises(Refused, match="secret/plan was denied"):
        propose(small, run)


@pytest.mark.requirement("FX-28")
def test_what_the_copy_wants_run_is_run_nowhere(
    small: Company, remote: Remote, tmp_path: Path
) -> None:
    """Hooks, filters, monitors and aliases of an agent's copy reach nothing outside its sandbox."""
    run = at_work(small, remote)
    copy, trap = run.workspace / "site", tmp_path / "trapped"
    script = run.workspace / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch {trap}\ncat\n")
    script.chmod(0o755)
    commit(run, {"a.txt": "x\n", ".gitattributes": "* filter=trap diff=trap\n"})
    for key in ("core.fsmonitor", "filter.trap.clean", "filter.trap.smudge", "diff.trap.textconv"):
        git(copy, "config", key, str(script))
    for hook in ("pre-push", "reference-transaction", "post-checkout"):
        (copy / ".git/hooks").mkdir(exist_ok=True)
        (copy / ".git/hooks" / hook).write_text(script.read_text())
        (copy / ".git/hooks" / hook).chmod(0o755)
    propose(small, run)
    publish(small)
    assert not trap.exists()
    assert git(remote.path, "rev-parse", "--verify", "remit/writer/fix")


@pytest.mark.requirement("FX-28")
def test_names_of_branches_that_git_would_misread_are_refused(
    small: Company, remote: Remote
) -> None:
    run = at_work(small, remote)
    for branch in ("../x", "a..b", "-x", "x.lock", "a b", "refs/heads/", "x^", "@"):
        with pytest.raises(BadInput):
            propose(small, run, branch=branch)
    for branch in ("refs/tags/x", "refs/heads/HEAD", "x" * 101):
        with pytest.raises(BadInput, match="branch must be a name"):
            propose(small, run, branch=branch)


@pytest.mark.requirement("FX-28")
def test_what_is_much_only_together_is_refused(
    small: Company, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = at_work(small, remote)
    commit(run, {f"f{number}": f"{number}" * 400 for number in range(4)})
    with monkeypatch.context() as less:
        less.setattr(quarantine, "LARGEST_TOTAL", 1500)
        with pytest.raises(TooLarge, match="all together"):
            propose(small, run)
    with monkeypatch.context() as less:
        less.setattr(quarantine, "_LONGEST_LIST", 100)
        with pytest.raises(TooLarge, match="touches more than"):
            propose(small, run)
    propose(small, run)


@pytest.mark.requirement("FX-28")
def test_what_is_too_large_is_refused(
    small: Company, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = at_work(small, remote)
    commit(run, {"big.bin": "x" * 5000}, message="Much " * 1000)
    monkeypatch.setattr(quarantine, "LARGEST_COMMIT", 1000)
    with pytest.raises(TooLarge, match=r"The commit [0-9a-f]{12} is too large"):
        propose(small, run)
    monkeypatch.setattr(quarantine, "LARGEST_COMMIT", 1 << 20)
    monkeypatch.setattr(quarantine, "LARGEST_BLOB", 1000)
    with pytest.raises(TooLarge, match=r"big.bin is too large"):
        propose(small, run)
    monkeypatch.setattr(proposals, "LARGEST_BUNDLE", 100)
    with pytest.raises(TooLarge, match="The proposal has more"):
        propose(small, run)


@pytest.mark.requirement("FX-28")
def test_a_folder_elsewhere_is_no_copy_of_the_run(
    small: Company, remote: Remote, tmp_path: Path
) -> None:
    run = at_work(small, remote)
    with pytest.raises(Conflict, match="cannot read the branch"):
        small.wait(
            small.app.proposals.propose(
                run.caller, name="site", branch="main", title="x", place=str(remote.path)
            )
        )
    with pytest.raises(BadInput, match="is in main already"):
        propose(small, run, branch="main")


@pytest.mark.requirement("FX-28")
def test_without_the_level_nothing_is_read(small: Company, remote: Remote) -> None:
    run = at_work(small, remote)
    other = small.run(small.agent("reader"))
    give(small, other, "read")
    with pytest.raises(Refused, match="propose"):
        propose(small, other)
    assert run.workspace.is_dir()


@pytest.mark.requirement("FX-28", "AG-24")
def test_an_agent_proposes_and_looks_at_it_through_its_tools(
    remote: Remote, tmp_path: Path
) -> None:
    with serving(tmp_path / "instance") as site:
        site.call(site.board, repos.add, company=site.company, name="site", url=remote.url)
        member = site.member()
        wish = {"to": member.id, "resource": "repo:site", "level": "propose"}
        site.call(site.board, grants.give, company=site.company, **wish)
        with site.at_work(member) as (run, agent):
            agent.call("repo_clone", name="site", dir="work/site")
            copy = run.workspace / "work/site"
            git(copy, "checkout", "--quiet", "-b", "fix")
            (copy / "a.txt").write_text("one\n")
            git(copy, "add", "a.txt")
            git(copy, "commit", "--quiet", "-m", "Mend it")
            wish = {"name": "site", "branch": "fix", "title": "Mend it", "dir": "work/site"}
            made = agent.call("repo_propose", **wish, idempotency_key="once")
            again = agent.call("repo_propose", **wish, idempotency_key="once")
            assert {key: made[key] for key in again} == again
            with pytest.raises(ToolRefused, match="cannot read the branch"):
                agent.call("repo_propose", **wish | {"branch": "nowhere"})
            place = f"remit/{member.name}/fix"
            assert made["branch"] == place
            assert site.wait(site.app.publisher.tick()) == 1
            agent.call("repo_comment", change=made["change"], body="Ready.")
            (shown,) = agent.call("repo_status", change=made["change"])["changes"]
            assert shown["published"]
            assert [one["body"] for one in shown["comments"]] == ["Ready."]
        assert git(remote.path, "rev-parse", place) == made["commit"]


@pytest.mark.requirement("FX-28", "FX-32")
def test_a_lasting_folder_is_proposed_from_without_naming_it(
    small: Company, remote: Remote
) -> None:
    run = at_work(small, remote)
    bound = small.call(small.board, folders.bind, company=small.id, agent=run.agent_id, repo="site")
    work = small.app.settings.home / "projects" / run.agent_id / bound["id"]
    ((about,),) = small.sql("SELECT id FROM repos")
    repo = small.call(run.caller, proposed.prepare, name="site", branch="fix")["repo"]
    assert repo.id == about
    small.wait(small.app.repos.lasting(repo, work))
    git(work, "checkout", "--quiet", "-b", "fix")
    (work / "app.py").write_text("print(3)\n")
    git(work, "add", "--all")
    git(work, "commit", "--quiet", "-m", "Mend it")
    made = propose(small, run)
    shown = small.call(small.board, changes.show, change=made["change"])
    assert shown["paths"] == ["app.py"]
    commit(run, {"other.py": "x = 1\n"}, branch="other")
    named = propose(small, run, branch="other", place="site")
    assert small.call(small.board, changes.show, change=named["change"])["paths"] == ["other.py"]
