"""Who commits are by: the agent, for a person, as the company says; nobody that it poses as."""

import json
from pathlib import Path
from typing import Any

import pytest

from remit.errors import BadInput, Conflict, Refused, RemitError
from remit.model.connections.commit_identity import CommitIdentity
from remit.runtime.repos.signing import Signer, new_key
from remit.runtime.sandbox import sandbox_policy
from remit.services.changes import changes, reviews
from remit.services.connections import secrets
from remit.services.people import companies
from tests.company import Answer, Company
from tests.git_remote import Remote, git
from tests.test_proposals import at_work, commit, propose, publish, remote

__all__ = ["remote"]
COMMITTER, CO_AUTHORS = (
    "Acme Bot <bot@acme.example>",
    "Ann <ann@acme.example>, Bo <bo@acme.example>",
)
SAID = "%an <%ae>|%cn <%ce>|%G?|%GF|%B"

needs_sandbox = pytest.mark.skipif(
    not sandbox_policy.look().usable, reason="there is no sandbox here"
)


def change(company: Company, **more: Any) -> Answer:
    return company.call(company.board, companies.change, company=company.id, **more)


def make_key(company: Company) -> Answer:
    return company.wait(company.app.signing.make(company.board, company=company.id))


def said_of(remote: Remote, ref: str, key: Answer, folder: Path) -> list[str]:
    """As somebody sees a commit who trusts the public key."""
    trusted = folder / "allowed"
    trusted.write_text(f"bot@acme.example {key['public_key']}\n")
    trusting = ("-c", f"gpg.ssh.allowedSignersFile={trusted}")
    return git(remote.path, *trusting, "show", "-s", f"--format={SAID}", ref).split("|")


@needs_sandbox
@pytest.mark.requirement("FX-29")
@pytest.mark.parametrize("method", ["merge", "squash", "ff"])
def test_what_is_proposed_and_what_is_merged_is_by_the_same_and_signed(
    small: Company, remote: Remote, tmp_path: Path, method: str
) -> None:
    change(small, commit_committer=COMMITTER, commit_co_authors=CO_AUTHORS)
    key = make_key(small)
    run = at_work(small, remote)
    commit(run, {"a.txt": "one\n"})
    commit(run, {"a.txt": "two\n"}, message="Better")
    made = propose(small, run)
    assert propose(small, run)["commit"] == made["commit"], "the same again is the same"
    publish(small)
    seen = {"change": made["change"], "head": made["commit"], "base": made["base"]}
    small.call(small.board, reviews.merge, **seen, method=method)
    small.wait(small.app.merger.tick())
    assert small.call(small.board, changes.show, change=made["change"])["status"] == "merged"
    assert git(remote.path, "rev-parse", "main") != made["base"]
    for ref in ("remit/writer/fix", "remit/writer/fix~1", "main"):
        author, committer, verdict, fingerprint, message = said_of(remote, ref, key, tmp_path)
        assert author.startswith("writer <writer@"), ref
        assert (committer, verdict, fingerprint) == (COMMITTER, "G", key["fingerprint"]), ref
        trailers = [line for line in message.splitlines() if ": " in line and "remit/" not in line]
        assert trailers[-3:-1] == [f"Co-authored-by: {one}" for one in CO_AUTHORS.split(", ")], ref
        assert trailers[-1].startswith("Accountable: "), ref


@pytest.mark.parametrize("name", ["Linus", "<a@b>", "A <a b@c>", "A <a@b> x", ". <a@b>"])
def test_names_that_git_would_read_otherwise_are_refused(small: Company, name: str) -> None:
    for field in ("commit_committer", "commit_co_authors"):
        with pytest.raises(BadInput):
            change(small, **{field: name})
    with pytest.raises(BadInput, match="one name"):
        change(small, commit_committer=CO_AUTHORS)


@pytest.mark.requirement("FX-29")
def test_settings_of_commits_are_kept_and_taken_back(company: Company) -> None:
    wanted = {"commit_committer": COMMITTER, "commit_co_authors": CO_AUTHORS.replace(", ", ";")}
    found = change(company, **wanted, commit_signing="my-key")
    assert (found["commit_committer"], found["commit_co_authors"]) == (COMMITTER, CO_AUTHORS)
    assert found["commit_signing"] == "my-key"
    found = change(company, commit_committer="", commit_co_authors="", commit_signing="")
    assert not any(found[name] for name in (*wanted, "commit_signing"))


def test_a_message_is_the_agents_but_for_who_stands_for_it() -> None:
    who = CommitIdentity.of("w", "c", "Ann", co_authors="B <b@c>")
    text = "Why: it stood by: itself\n\nRefs: 12\nFixed-by: x\nStandby: no"
    assert who.message(text) == (
        "Why: it stood by: itself\n\nRefs: 12\nStandby: no\n\nCo-authored-by: B <b@c>\n"
        "Accountable: Ann\n"
    )


@needs_sandbox
@pytest.mark.requirement("FX-29")
def test_without_the_key_nothing_is_proposed_unsigned(
    small: Company, remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = at_work(small, remote)
    commit(run, {"a.txt": "one\n"})
    change(small, commit_signing="my-key")
    with pytest.raises(RemitError, match=r"There is no secret .my-key."):
        propose(small, run)
    monkeypatch.setenv("MY_KEY", "no key at all")
    place: dict[str, Any] = {"name": "my-key", "source": "env", "place": "MY_KEY"}
    small.call(small.board, secrets.put, company=small.id, **place)
    with pytest.raises(BadInput, match="no ed25519 key"):
        propose(small, run)
    with pytest.raises(Conflict, match="signed with it"):
        small.call(small.board, secrets.remove, company=small.id, name="my-key")


@pytest.mark.requirement("FX-29")
def test_a_key_is_made_by_the_board_shown_by_its_public_half_and_replaced(small: Company) -> None:
    nobody = {"secret": None, "public_key": None, "fingerprint": None}
    shown = small.app.signing.shown
    assert small.wait(shown(small.board, company=small.id)) == nobody
    first = make_key(small)
    assert first["public_key"].startswith("ssh-ed25519 ")
    again = make_key(small)
    assert again["fingerprint"] != first["fingerprint"]
    assert small.wait(shown(small.board, company=small.id)) == again
    (kept,) = (small.home / "secrets" / small.id).iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    private = kept.read_text().splitlines()[1]
    assert private not in json.dumps(small.sql("SELECT details FROM events"))
    member = small.run(small.agent("writer"))
    with pytest.raises(Refused):
        small.wait(small.app.signing.make(member.caller, company=None))
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_a_signature_is_the_same_each_time() -> None:
    signer = Signer.of("key", new_key())
    text = b"tree " + b"0" * 40 + b"\nauthor x\n\nx\n"
    assert signer.signed(text) == signer.signed(text)
    assert b"\ngpgsig-sha256 " in signer.signed(b"tree " + b"0" * 64 + b"\n\nx\n")
