"""Agents that try to get something else into a repository, or out of it, than they may."""

import asyncio
import base64
import contextlib
import hashlib
import zlib
from pathlib import Path
from typing import Any

import pytest

import remit
from remit.errors import BadInput, Conflict, NotFound, RemitError, TooLarge, Unauthenticated
from remit.runtime.repos import proposals, quarantine
from remit.runtime.repos.forges import without_orders
from remit.runtime.sandbox import sandbox_policy
from remit.services.changes import changes, reviews
from remit.services.changes import proposals as proposed
from remit.services.connections import repos
from remit.services.redaction import program_text
from tests.company import Company, Run
from tests.forge_stage import staged
from tests.git_remote import Remote, git
from tests.test_proposals import at_work, commit, propose, publish, remote

__all__ = ["remote"]
pytestmark = pytest.mark.skipif(not sandbox_policy.look().usable, reason="there is no sandbox here")


def planted(run: Run, *entries: str, branch: str = "fix") -> Path:
    """A branch with a tree as no `git add` makes it: lines of `git mktree`."""
    copy = run.workspace / "site"
    blob = git(copy, "hash-object", "-w", "--stdin", stdin="x\n")
    lines = "".join(one.replace("BLOB", blob) + "\0" for one in entries)
    tree = git(copy, "mktree", "-z", "--missing", stdin=lines)
    head = git(copy, "commit-tree", "-p", "origin/main", "-m", "x", tree)
    git(copy, "update-ref", f"refs/heads/{branch}", head)
    return copy


@pytest.mark.requirement("FX-28")
def test_names_and_modes_that_mean_more_somewhere_are_refused(
    small: Company, remote: Remote
) -> None:
    """`.git` as NTFS and HFS+ take it, settings of git as links, what is neither file nor link."""
    run = at_work(small, remote)
    copy = planted(run, "100644 blob BLOB\tx")
    inner = git(copy, "rev-parse", "fix^{tree}")
    names = (".GIT", ".git.", "git~1", ".g\u200cit", ".git::$INDEX_ALLOCATION")
    tries = [f"040000 tree {inner}\t{name}" for name in names]
    tries += [f"100644 blob BLOB\t{name}" for name in ("a\\b", "..", "-x")]
    tries += [f"120000 blob BLOB\t{name}" for name in (".gitmodules", "GITMOD~1")]
    tries += [f"{mode} blob BLOB\todd" for mode in ("100666", "060000")]
    for one in tries:
        planted(run, "100644 blob BLOB\tREADME.md", one)
        with contextlib.suppress(BadInput):
            propose(small, run)
            pytest.fail(f"{one!r} was taken")


@pytest.mark.requirement("FX-28")
@pytest.mark.parametrize(
    "path",
    [
        "../x",
        "a/../x",
        "a//x",
        "./x",
        ".git/config",
        "a/.GIT/x",
        "git~1/x",
        "a/.g\u200cit",
        ".git. /x",
    ],
)
def test_a_name_where_git_keeps_its_own_is_refused_whatever_git_says(path: str) -> None:
    """git refuses most of them before; which, depends on its version."""
    with pytest.raises(BadInput, match="a part that git reserves"):
        quarantine.check_path(path)


@pytest.mark.requirement("FX-28")
def test_a_few_objects_that_stand_for_endless_files_are_refused_at_once(
    small: Company, remote: Remote
) -> None:
    run = at_work(small, remote)
    copy = planted(run, *(f"100644 blob BLOB\tf{number}" for number in range(10)))
    for _ in range(20):
        tree = git(copy, "rev-parse", "fix^{tree}")
        planted(run, *(f"040000 tree {tree}\tf{number}" for number in range(10)))
    with pytest.raises(TooLarge, match="It touches more"):
        propose(small, run)


@pytest.mark.requirement("FX-28")
def test_objects_elsewhere_are_no_part_of_a_copy(
    small: Company, remote: Remote, tmp_path: Path
) -> None:
    """A copy that borrows from a folder that its agent cannot read has nothing of it."""
    other = Remote(tmp_path / "remotes" / "other")
    hidden = other.commit({"plan.txt": "not for you\n"})
    run = at_work(small, remote)
    copy = run.workspace / "site"
    (copy / ".git/objects/info").mkdir(exist_ok=True)
    (copy / ".git/objects/info/alternates").write_text(f"{other.path}/.git/objects\n")
    (copy / ".git/refs/heads/fix").write_text(f"{hidden}\n")
    with pytest.raises(RemitError, match="cannot read the branch"):
        propose(small, run)


@pytest.mark.requirement("FX-28")
def test_a_history_that_is_replaced_in_the_copy_is_proposed_as_it_is(
    small: Company, remote: Remote
) -> None:
    run = at_work(small, remote)
    copy = run.workspace / "site"
    true = commit(run, {"a.txt": "true\n"})
    git(copy, "checkout", "--quiet", "-b", "shown", "origin/main")
    shown = commit(run, {"a.txt": "shown\n"}, branch="shown")
    git(copy, "replace", true, shown)
    made = propose(small, run)
    publish(small)
    assert git(remote.path, "show", f"{made['commit']}:a.txt") == "true"
    diff = small.wait(small.app.reviews.diff(small.board, made["change"]))
    assert [line.text for line in diff.files[0].hunks[0].lines] == ["true"]


#: Settings that have git run something, or read another file.
_TRAPS = (
    *("core.sshCommand", "core.fsmonitor", "core.gitProxy", "core.pager", "core.editor"),
    *("core.alternateRefsCommand", "remote.origin.uploadpack", "remote.origin.receivepack"),
    *("uploadpack.packObjectsHook", "credential.helper", "gpg.program", "diff.external"),
    *("filter.trap.process", "merge.trap.driver", "alias.fetch", "alias.rev-parse"),
)


@pytest.mark.requirement("FX-28", "FX-32")
def test_what_a_lasting_copy_is_set_to_runs_nothing_outside_a_sandbox(
    small: Company, remote: Remote, tmp_path: Path
) -> None:
    run = at_work(small, remote)
    repo = small.call(run.caller, proposed.prepare, name="site", branch="fix")["repo"]
    work = small.home / "projects" / "lasting"
    small.wait(small.app.repos.lasting(repo, work))
    trap, script = tmp_path / "trapped", work / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch {trap} {small.home}/trapped\nexec cat\n")
    script.chmod(0o755)
    hooks = work / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "post-checkout", "pre-auto-gc", "fsmonitor-watchman"):
        (hooks / name).symlink_to(script)
    settings = work / "more"
    for key in _TRAPS:
        git(work, "config", "--file", str(settings), key, str(script))
    git(work, "config", "--file", str(settings), "core.hooksPath", str(hooks))
    git(work, "config", "includeIf.gitdir:/.path", str(settings))
    git(work, "config", "include.path", str(settings))
    (work / ".git/objects/info/alternates").write_text(f"{remote.path}/.git/objects\n")
    (work / ".gitattributes").write_text("* filter=trap diff=trap merge=trap\n")
    remote.commit({"more.txt": "later\n"})
    small.wait(small.app.repos.newest(repo))
    small.wait(small.app.repos.lasting(repo, work))
    copy = run.workspace / "site"
    commit(run, {"a.txt": "x\n"})
    git(copy, "config", "include.path", str(settings))
    settings.rename(copy / ".git" / "more")
    git(copy, "config", "include.path", "more")
    propose(small, run)
    publish(small)
    assert not trap.exists()
    assert not (small.home / "trapped").exists()
    assert git(remote.path, "rev-parse", "--verify", "remit/writer/fix")


@pytest.mark.requirement("FX-28")
def test_a_secret_in_words_or_names_is_refused_with_its_place(
    small: Company, remote: Remote
) -> None:
    secret = SECRET
    run = at_work(small, remote)
    commit(run, {"a.txt": "x\n"}, message=f"Mend\n\nWith {secret}")
    with pytest.raises(BadInput, match=r"The message of [0-9a-f]{12}, line 3"):
        propose(small, run)
    git(run.workspace / "site", "checkout", "--quiet", "-B", "named", "origin/main")
    commit(run, {f"b/{secret}": "x\n"}, branch="named")
    with pytest.raises(BadInput, match="The name of a file"):
        propose(small, run, branch="named")
    git(run.workspace / "site", "checkout", "--quiet", "-B", "plain", "origin/main")
    commit(run, {"a.txt": "x\n"}, branch="plain")
    for words in ({"title": secret}, {"description": f"One.\n{secret}"}):
        with pytest.raises(BadInput, match="looks like a secret"):
            propose(small, run, branch="plain", **words)
    assert propose(small, run, branch="plain")["commit"]


SECRET = "ghp_0123456789abcdefghijABCDEFGHIJ012345"


@pytest.mark.requirement("FX-28")
def test_a_secret_is_found_in_whatever_file_it_is(small: Company, remote: Remote) -> None:
    """Also beyond the first megabyte, far out in a line, in UTF-16, and in what is no text."""
    run = at_work(small, remote)
    copy = run.workspace / "site"
    zeros, far = b"\0" * 20, b"x = 1;" * 5000
    tries = {
        "line 150001": b"1,2,3,4\n" * 150_000 + SECRET.encode(),
        "line 2": b"\n" + far + b' const key = "%s";' % SECRET.encode() + far,
        "line 3": f"one\ntwo\npassword: {SECRET}\n".encode("utf-16"),
        "byte 21": zeros + f"token {SECRET}".encode() + zeros,
        "byte 22": b"\1" + zeros + f"token {SECRET}".encode("utf-16-le") + zeros,
    }
    for place, content in tries.items():
        assert program_text.in_file(content) == place
    (copy / "data").write_bytes(tries["line 150001"])
    commit(run, {})
    with pytest.raises(BadInput, match="data, line 150001, looks like a secret"):
        propose(small, run)
    # Neither a program nor a large table is taken for one.
    program, table = zeros + b"usage: %s --password=%s" + zeros, b"key,value,1234\n" * 10_000
    assert program_text.in_file(program) is None
    assert program_text.in_file(table) is None
    assert program_text.in_file(tries["line 3"], tries["line 3"]) is None, "it was there before"
    assert program_text.in_file(tries["byte 21"], tries["byte 21"] + zeros) is None


_SECRETS = f"""
password = "Summer2024x"
"clientSecret": "q8RzT1vWxY3k",
DB_PASSWORD=Summer2024x
export API_KEY=8f14e45fceea167a5a36dedd4bea2543
api_key: 8f14e45fceea167a5a36dedd4bea2543
AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY
connect("postgres://app:Summer2024x@db.example.org/shop")
connect("postgres://{{user}}:Summer2024x@db.example.org/shop")
curl --token 8f14e45fceea167a5a36dedd4bea2543
headers = {{"Authorization": "Bearer 8f14e45fceea167a"}}
kept = "{base64.b64encode(SECRET.encode()).decode()}"
kept = "{SECRET.encode().hex()}"
key = "8f14e45fceea167a5a36dedd4bea2543"
"""
_CODE = """
found.sort(key=len, reverse=True)
key = self.key
lasttoken = token2_of(line)
token = new_token(TokenKind.CHANNEL)
tokens_cached: int = 12345678
"secret": NAME,
"session_id": session[:LONGEST_SESSION] if session else None,
password = os.environ["DB_PASSWORD_2"]
password: ${DB_PASSWORD_2}
"token": "Enter the 6 digits that we sent you",
secret = "openai-production-2"
url = "https://{user}:{password}@example.org"
url = f"https://bot:{quote(word)}@example.org"
DATABASE=postgres://postgres:postgres@localhost:5432/test
def crypt(word, salt=None):
'HAVE_STRUCT_PASSWD_PW_GECOS': 1,
password = "a plain word"
keys = sorted(form.keys())
adapter_token=token_digest(token),
run --key-file=/etc/keys/server1.pem --password-stdin
"""


@pytest.mark.requirement("FX-28")
@pytest.mark.parametrize(("lines", "refused"), [(_SECRETS, True), (_CODE, False)])
def test_a_secret_is_told_from_a_program_that_speaks_of_one(lines: str, refused: bool) -> None:
    for line in lines.strip().splitlines():
        assert (program_text.in_text(line) == 1) is refused, line


@pytest.mark.requirement("FX-28")
def test_no_file_of_ours_is_taken_for_a_secret() -> None:
    """What is proposed is mostly programs: some of the largest that we have."""
    found = sorted(Path(remit.__file__).parent.rglob("*.py"), key=lambda one: one.stat().st_size)
    for file in found[-15:]:
        assert program_text.in_file(file.read_bytes()) is None, file


@pytest.mark.requirement("FX-28")
def test_links_that_lead_out_through_another_or_into_git_are_refused(
    small: Company, remote: Remote
) -> None:
    """`a/..` is the folder above what `a` leads to, and not the one that `a` is in."""
    run = at_work(small, remote)
    copy = run.workspace / "site"
    tries = {
        "../here/../../etc": "leads out",
        "./here/.././x": "leads out",
        "a/../../..": "leads out",
        "../.g\u200cit/config": "into .git",
        ".git::$INDEX_ALLOCATION/config": "into .git",
        "../GIT~1": "into .git",
    }
    for leads, said in tries.items():
        git(copy, "checkout", "--quiet", "-B", "fix", "origin/main")
        (copy / "here").symlink_to(".")
        (copy / "deep").mkdir(exist_ok=True)
        (copy / "deep" / "link").symlink_to(leads)
        commit(run, {})
        with pytest.raises(BadInput, match=f"deep/link is a symlink .*{said}"):
            propose(small, run)
    git(copy, "checkout", "--quiet", "-B", "fix", "origin/main")
    (copy / "deep").mkdir()
    (copy / "deep" / "link").symlink_to("../README.md")
    commit(run, {})
    assert propose(small, run)["commit"]


@pytest.mark.requirement("FX-28")
@pytest.mark.parametrize("depth", [0, 1, 2, 4])
def test_a_link_goes_up_to_the_root_of_the_repository_and_not_above_it(
    small: Company, remote: Remote, depth: int
) -> None:
    run = at_work(small, remote)
    copy = run.workspace / "site"
    folder = copy.joinpath(*"abcd"[:depth])
    up = "../" * depth
    for leads in (f"{up}../x", f"{up}..", f"./{up}../site", f"{up}../README.md"):
        git(copy, "checkout", "--quiet", "-B", "fix", "origin/main")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "link").symlink_to(leads)
        commit(run, {})
        with pytest.raises(BadInput, match="link is a symlink that leads out of the repository"):
            propose(small, run)
    git(copy, "checkout", "--quiet", "-B", "fix", "origin/main")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "link").symlink_to(f"{up}README.md")
    commit(run, {})
    assert propose(small, run)["commit"]


@pytest.mark.requirement("FX-28")
def test_a_link_or_a_submodule_that_came_and_went_is_refused(
    small: Company, remote: Remote
) -> None:
    """It would be in the history, which somebody may look at; also one that only a merge had."""
    run = at_work(small, remote)
    planted(run, "120000 blob BLOB\tlink", "100644 blob BLOB\tREADME.md")
    copy = run.workspace / "site"
    blob = git(copy, "hash-object", "-w", "--stdin", stdin="../../etc")
    out = planted(run, f"120000 blob {blob}\tlink", "100644 blob BLOB\tREADME.md")
    sub = f"160000 commit {remote.head()}\tlib"
    for entry, said in ((f"120000 blob {blob}\tlink", "leads out"), (sub, "submodule")):
        planted(run, entry, "100644 blob BLOB\tREADME.md")
        tree = git(out, "rev-parse", "origin/main^{tree}")
        for parents in (("-p", "fix"), ("-p", "fix", "-p", "origin/main")):
            head = git(out, "commit-tree", *parents, "-m", "x", tree)
        git(out, "update-ref", "refs/heads/fix", head)
        with pytest.raises(BadInput, match=said):
            propose(small, run)


@pytest.mark.requirement("FX-28")
def test_a_copy_that_hides_a_part_of_its_history_is_refused(small: Company, remote: Remote) -> None:
    """A bundle that builds on what we do not have, a shallow copy, and one that is elsewhere."""
    run = at_work(small, remote)
    copy = run.workspace / "site"
    first = commit(run, {"a.txt": "one\n" * 100})
    commit(run, {"a.txt": "one\n" * 100 + "two\n"})
    git(copy, "update-ref", "refs/remotes/origin/known", first)
    with pytest.raises(BadInput, match="git does not take the objects"):
        propose(small, run)
    git(copy, "update-ref", "-d", "refs/remotes/origin/known")
    (copy / ".git" / "shallow").write_text(f"{first}\n")
    made = propose(small, run)
    shown = small.wait(small.app.reviews.diff(small.board, made["change"]))
    assert (shown.files[0].path, shown.files[0].added) == ("a.txt", 101), "all of it, all the same"
    (copy / ".git").rename(run.workspace / "moved")
    (copy / ".git").write_text(f"gitdir: {remote.path}/.git\n")
    with pytest.raises(RemitError, match="cannot read the branch"):
        propose(small, run)


@pytest.mark.requirement("FX-28")
def test_a_few_bytes_that_stand_for_endless_ones_are_refused_at_once(
    small: Company, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A difference that copies one megabyte 65,536 times: git would make it in memory."""
    run = at_work(small, remote)
    commit(run, {"a.txt": "one\n"})
    read = proposals._inside

    async def bomb(*args: Any) -> bytes:
        said = await read(*args)
        return said.partition(b"\n\n")[0] + b"\n\n" + delta_bomb() if "bundle" in args else said

    monkeypatch.setattr(proposals, "_inside", bomb)
    with pytest.raises(BadInput, match="git does not take the objects"):
        propose(small, run)


def delta_bomb(size: int = 1 << 20, copies: int = 1 << 16) -> bytes:
    """A pack of two objects: a file, and another that is this one again and again."""
    base = bytes(size)
    name = hashlib.sha1(b"blob %d\0" % size + base, usedforsecurity=False).digest()
    # Copy from 0, with the third byte of the length.
    difference = _varint(size) + _varint(size * copies) + b"\xc0\x10" * copies
    pack = b"PACK" + (2).to_bytes(4) + (2).to_bytes(4)
    pack += _entry(3, size) + zlib.compress(base)
    pack += _entry(7, len(difference)) + name + zlib.compress(difference)
    return pack + hashlib.sha1(pack, usedforsecurity=False).digest()


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 0x7F:
        found.append(0x80 | number & 0x7F)
        number >>= 7
    return bytes([*found, number])


def _entry(kind: int, size: int) -> bytes:
    first, rest = kind << 4 | size & 0x0F, size >> 4
    return bytes([first | 0x80]) + _varint(rest) if rest else bytes([first])


@pytest.mark.requirement("FX-28")
def test_a_branch_that_git_cannot_have_beside_another_is_refused(
    small: Company, remote: Remote
) -> None:
    run = at_work(small, remote)
    commit(run, {"a.txt": "x\n"})
    propose(small, run)
    git(run.workspace / "site", "checkout", "--quiet", "-B", "other", "origin/main")
    git(run.workspace / "site", "branch", "--quiet", "-M", "fix", "old")
    commit(run, {"b.txt": "x\n"}, branch="fix/more")
    with pytest.raises(Conflict, match="beside"):
        propose(small, run, branch="fix/more")
    assert len(small.call(small.board, changes.listing, company=small.id)) == 1


@pytest.mark.requirement("FX-28")
def test_what_belongs_into_lfs_is_refused_and_what_lies_beside_it_is_taken(
    small: Company, remote: Remote
) -> None:
    def pointer(of: str) -> str:
        oid = hashlib.sha256(of.encode()).hexdigest()
        return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 12345\n"

    kept = {".gitattributes": "*.bin filter=lfs -text\nplain/* !filter\n", "a.bin": pointer("a")}
    remote.commit({**kept, "old.bin": "not in LFS, though it should be\n"})
    run = at_work(small, remote)
    copy = run.workspace / "site"
    git(copy, "config", "filter.lfs.clean", "cat")
    for branch, files, why in [
        ("new", {"b.bin": pointer("b")}, "b.bin is a Git LFS pointer"),
        ("unasked", {"c.txt": pointer("c")}, "c.txt is a Git LFS pointer"),
        ("changed", {"a.bin": pointer("other")}, "a.bin is a Git LFS pointer"),
        ("contents", {"a.bin": "large\n"}, "a.bin is kept in Git LFS"),
        ("more", {"d/e.bin": "large\n"}, "d/e.bin is kept in Git LFS"),
        ("rule", {".gitattributes": "*.dat filter=lfs\n", "f.dat": "x\n"}, "f.dat is kept in"),
    ]:
        git(copy, "checkout", "--quiet", "main")
        commit(run, files, branch)
        with pytest.raises(BadInput, match=why) as refused:
            propose(small, run, branch)
        assert refused.value.reason == "lfs"
    git(copy, "checkout", "--quiet", "main")
    git(copy, "mv", "a.bin", "moved.bin")
    fine = {"app.py": "x = 1\n", "plain/g.bin": "small\n", "old.bin": "as before\n"}
    commit(run, {**fine, ".gitattributes": kept[".gitattributes"] + "*.dat filter=lfs\n"}, "fine")
    assert propose(small, run, "fine")["change"]


@pytest.mark.requirement("FX-28")
def test_a_bundle_that_leaves_something_out_is_refused(
    small: Company, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = at_work(small, remote)
    commit(run, {"a.txt": "one\n"})
    read = proposals._inside

    async def filtered(*args: Any) -> bytes:
        said = await read(*args)
        return said.replace(b"# v2 git bundle\n", b"# v3 git bundle\n@filter=blob:none\n", 1)

    monkeypatch.setattr(proposals, "_inside", filtered)
    with pytest.raises(BadInput, match="is not whole"):
        propose(small, run)


def test_what_an_agent_says_at_a_forge_is_no_order() -> None:
    said = "/merge\n  /approve\n> /close\n- /label x\r/assign me\n\u2028/lock\n@bors r+ /ok a/b"
    found = without_orders(said)
    assert not any(line.lstrip(" >-").startswith("/") for line in found.splitlines())
    assert "@bors" not in found
    assert "/ok a/b" in found


@pytest.mark.requirement("FX-28", "FX-31")
def test_neither_a_request_nor_a_comment_gives_orders_to_the_forge(
    small: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GitLab does what a line says that begins with a slash, with the rights of our account."""
    with staged("gitlab", small, tmp_path, monkeypatch) as stage:
        author = stage.author()
        made, pull = stage.proposed(author, description="Mend: key=len.\n/merge\n@bot merge")
        said = f"/approve\nDone with {SECRET}."
        small.call(author.caller, reviews.comment, change=made["change"], body=said)
        stage.look()
        assert "Mend: key=len." in pull.body, "it is no secret"
        told = [pull.body, *(one.body for one in stage.forge.talk)]
        assert len(told) == 2
        for text in told:
            assert "/" in text
            assert not any(line.startswith("/") for line in text.splitlines())
            assert "@bot" not in text
            assert SECRET not in text


@pytest.mark.requirement("FX-31")
def test_a_webhook_that_is_not_signed_reads_no_secret_and_learns_nothing(small: Company) -> None:
    about: dict[str, Any] = {"name": "site", "url": "https://example.invalid/a/site"}
    told: dict[str, Any] = {"forge": "github", "hook": "hook", "secret": "t"}
    repo = small.call(small.board, repos.add, company=small.id, **about, **told)["id"]
    asked: list[str] = []

    async def secret_of(company: str, name: str) -> str:
        asked.append(name)
        raise NotFound("There is no secret.")

    small.app.forges._secret_of = secret_of
    signed = {"X-Hub-Signature-256": "sha256=00"}
    answers = []
    for to, headers in ((repo, {}), ("nothing", {}), ("nothing", signed), (repo, signed)):
        with pytest.raises(Unauthenticated) as refused:
            small.wait(small.app.forges.rung(small.app.gate, to, headers, b"{}"))
        answers.append(str(refused.value))
        assert asked == (["hook"] if headers and to == repo else [])
    assert len(set(answers)) == 1


@pytest.mark.requirement("AG-24")
def test_what_was_pushed_a_moment_ago_is_found_also_while_somebody_fetches(
    small: Company, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever fetches already may have looked before it was pushed."""
    run = at_work(small, remote)
    kept = small.app.repos
    mirror = kept._mirror(small.call(run.caller, proposed.prepare, name="site", branch="x")["repo"])

    fetch, shared, branch = kept._fetch, kept._shared, "new"

    async def both() -> Any:
        looked, joined = asyncio.Event(), asyncio.Event()

        async def slow(*args: Any, **more: Any) -> Any:
            mark = await fetch(*args, **more)
            looked.set()
            await joined.wait()
            return mark

        async def joins(*args: Any, **more: Any) -> Any:
            joined.set()
            return await shared(*args, **more)

        monkeypatch.setattr(kept, "_fetch", slow)
        early = asyncio.create_task(shared(mirror, since=small.clock.now()))
        await looked.wait()
        git(remote.path, "branch", branch, "main")
        monkeypatch.setattr(kept, "_fetch", fetch)
        monkeypatch.setattr(kept, "_shared", joins)
        found = await kept.clone(run.caller, name="site", ref=branch, place="late")
        await early
        return found

    assert small.wait(both())["commit"] == remote.head()
    branch = "newer"
    git(remote.path, "branch", branch, "main")
    assert small.wait(kept.clone(run.caller, name="site", ref=branch, place="later"))["commit"]
