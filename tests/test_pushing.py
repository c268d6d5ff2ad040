"""When and where proposals are pushed: at once, after a person's look, or to a fork."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.errors import BadInput, Conflict, Refused
from remit.runtime import diagnosis
from remit.services.changes import changes, reviews
from remit.services.connections import repos, secrets
from remit.services.record import events
from remit.services.screens import needs_you
from tests.change_stage import HEAD, NEXT, add_repo, author, give, propose
from tests.company import Answer, Company
from tests.forge_server import TOKEN
from tests.forge_stage import BETTER, ForgeStage, staged
from tests.git_remote import git

KINDS = ("github", "gitlab", "gitea")


@pytest.fixture
def github(small: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ForgeStage]:
    with staged("github", small, tmp_path, monkeypatch, push="after_look") as stage:
        yield stage


def seen(made: Answer) -> Answer:
    return {"change": made["change"], "head": made["commit"], "base": made["base"]}


def to_look_at(company: Company) -> list[Answer]:
    needs = company.call(company.board, needs_you.listing, company=company.id)
    return [item for item in needs if item["kind"] == "change"]


def branches(bare: Path) -> set[str]:
    listed = git(bare, "for-each-ref", "--format=%(refname)", "refs/heads")
    return {name.removeprefix("refs/heads/") for name in listed.splitlines()}


# ── after a look ────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_pushed_before_a_person_has_looked(github: ForgeStage) -> None:
    company, run = github.company, github.author()
    made = github.propose(run)
    assert made["awaits_look"]
    assert github.shown(made["change"])["waiting"] == []
    github.publish()
    assert branches(github.bare) == {"main"}
    assert (github.forge.pulls, github.forge.requests) == ([], [])
    (item,) = to_look_at(company)
    assert item["id"] == made["change"]
    assert item["cause"] == "1 file for main of site; the forge runs it once it is pushed."
    assert "remit change push" in item["next"]
    shown = github.shown(made["change"])
    assert (shown["awaits_look"], shown["published"], shown["waiting"]) == (True, False, [])
    done = company.call(company.board, reviews.push, **seen(made))
    assert (done["awaits_look"], to_look_at(company)) == (False, [])
    github.publish()
    assert branches(github.bare) == {"main", "remit/author/fix"}
    (pull,) = github.forge.pulls
    assert github.forge.tip(pull) == made["commit"]
    assert github.shown(made["change"])["published"]
    with pytest.raises(Conflict, match="pushed already"):
        company.call(company.board, reviews.push, **seen(made))
    recorded = company.call(company.board, events.listing, company=company.id, limit=1000)
    (event,) = [one for one in recorded if one["action"] == "change.release"]
    assert event["details"]["head"] == made["commit"]


def test_each_head_is_looked_at(github: ForgeStage) -> None:
    """What the first look saw is not what a later proposal has in it."""
    company, run = github.company, github.author()
    first = github.propose(run)
    company.call(company.board, reviews.push, **seen(first))
    # Another head is proposed between the look and the push.
    second = github.propose(run, files=BETTER)
    github.publish()
    assert branches(github.bare) == {"main"}
    assert [item["id"] for item in to_look_at(company)] == [first["change"]]
    with pytest.raises(Conflict, match="Something else is proposed"):
        company.call(company.board, reviews.push, **seen(first))
    company.call(company.board, reviews.push, **seen(second))
    github.publish()
    assert github.forge.head("remit/author/fix") == second["commit"]


@pytest.mark.parametrize("decision", ["approve", "merge"])
def test_to_approve_or_to_merge_is_a_look(github: ForgeStage, decision: str) -> None:
    company, run = github.company, github.author()
    made = github.propose(run)
    verb: Any = {"approve": reviews.approve, "merge": reviews.merge}[decision]
    company.call(company.board, verb, **seen(made))
    github.publish()
    assert github.forge.head("remit/author/fix") == made["commit"]
    if decision == "merge":
        github.merge()
        assert github.shown(made["change"])["status"] == "merged"


def test_an_agent_looks_for_nobody(github: ForgeStage) -> None:
    company, run = github.company, github.author()
    lead = company.agent("lead")
    give(company, lead, "merge", mode="allow")
    made = github.propose(run)
    judge = company.run(lead).caller
    for verb in (reviews.push, reviews.merge):
        with pytest.raises(Conflict, match="No person has looked at it yet"):
            company.call(judge, verb, **seen(made))
    company.call(judge, reviews.approve, **seen(made))  # it says something, and lets nothing go
    github.publish()
    assert branches(github.bare) == {"main"}
    with pytest.raises(Refused):
        company.call(run.caller, reviews.push, **seen(made))
    guest = company.user("guest", "observer")
    with pytest.raises(Refused):
        company.call(guest, reviews.push, **seen(made))
    for caller in (guest, judge, run.caller):
        with pytest.raises(Refused):
            company.call(caller, repos.set_, company=company.id, name="site", push="at_once")


def test_an_errand_that_was_in_line_pushes_nothing_unseen(small: Company) -> None:
    """The mode was changed while it waited."""
    add_repo(small)
    run = author(small)
    made = propose(small, run)
    (waiting,) = small.sql("SELECT kind FROM change_errands WHERE status = 'queued'")
    assert waiting == ("publish",)
    small.call(small.board, repos.set_, company=small.id, name="site", push="after_look")
    assert small.wait(small.app.publisher.tick()) == 1
    assert small.sql("SELECT DISTINCT status FROM change_errands") == [("done",)]
    assert small.call(small.board, changes.show, change=made["change"])["problems"] == []
    # Looked at or not needed any more, it is in line again.
    small.call(small.board, repos.set_, company=small.id, name="site", push="at_once")
    assert small.sql("SELECT count(*) FROM change_errands WHERE status = 'queued'") == [(1,)]


def test_the_record_before_a_push_refuses_what_nobody_saw(small: Company) -> None:
    """The last check, in the transaction before the push: another head came in between."""
    from remit.services.changes import errands
    from remit.services.identity import as_system

    add_repo(small, push="after_look")
    run = author(small)
    made = propose(small, run)
    small.call(small.board, reviews.push, **seen(made))
    ((errand,),) = small.sql("SELECT id FROM change_errands")
    claimed = small.call(as_system(), errands.claim, errand=errand, worker="w")
    assert claimed is not None
    later = propose(small, run, head=NEXT)
    assert later["commit"] != HEAD
    told = {"errand": errand, "epoch": claimed["epoch"]}
    with pytest.raises(Conflict, match="No person has looked"):
        small.call(as_system(), errands.pushing, head=NEXT, **told)
    small.call(as_system(), errands.pushing, head=HEAD, **told)


# ── to a fork ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", KINDS)
def test_a_proposal_goes_to_the_fork_and_its_request_to_the_repository(
    kind: str, small: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with staged(kind, small, tmp_path, monkeypatch) as stage:
        fork = tmp_path / "remotes" / "sandbox" / "site.git"
        fork.parent.mkdir()
        git(tmp_path, "clone", "--quiet", "--bare", str(stage.bare), str(fork))
        stage.forge.fork = fork
        monkeypatch.setenv("FORK_TOKEN", TOKEN)
        where: Answer = {"source": "env", "place": "FORK_TOKEN"}
        small.call(small.board, secrets.put, company=small.id, name="fork-token", **where)
        small.call(
            small.board,
            repos.set_,
            company=small.id,
            name="site",
            push="fork",
            fork=f"{stage.forge.base}/sandbox/site.git",
            fork_username="bot",
            fork_secret="fork-token",
        )
        run = stage.author()
        made = stage.propose(run)
        stage.publish()
        assert stage.shown(made["change"])["problems"] == []
        assert branches(stage.bare) == {"main"}, "nothing is in the repository with the secrets"
        assert branches(fork) == {"main", "remit/author/fix"}
        (pull,) = stage.forge.pulls
        assert (pull.forked, pull.target) == (True, "main")
        # The next head updates the same request.
        again = stage.propose(run, files=BETTER)
        stage.publish()
        assert stage.shown(made["change"])["problems"] == []
        assert (len(stage.forge.pulls), stage.forge.tip(pull)) == (1, again["commit"])
        small.call(small.board, reviews.merge, **seen(again))
        stage.merge()
        assert stage.shown(made["change"])["status"] == "merged"
        assert branches(stage.bare) == {"main"}


def test_a_fork_is_opened_with_its_own_secret(small: Company) -> None:
    """The secret of the repository is not shown to another place, nor is its user name."""
    fork: Answer = {"push": "fork", "fork": "https://example.invalid/bots/site.git"}
    opens: Answer = {"username": "acme", "secret": "ours"}
    for name in ("ours", "theirs"):
        where: Answer = {"source": "env", "place": name.upper()}
        small.call(small.board, secrets.put, company=small.id, name=name, **where)

    here: Answer = {"company": small.id, "name": "site"}
    small.call(small.board, repos.add, url="https://example.invalid/acme/site.git", **here, **opens)

    def pushed_with(**more: Any) -> tuple[str, str | None, str | None]:
        small.call(small.board, repos.set_, **here, **fork, **more)
        place = small.call(small.board, repos.look_into, **here).pushed_to
        return place.url, place.username, place.secret

    assert pushed_with() == (fork["fork"], None, None)
    with_secret = pushed_with(fork_username="bot", fork_secret="theirs")
    assert with_secret == (fork["fork"], "bot", "theirs")


# ── its settings ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"push": "later"}, "must be one of at_once, after_look, fork"),
        ({"push": "fork"}, "needs its address"),
        ({"fork": "https://example.invalid/b/site.git"}, "Nothing is pushed to the fork"),
        ({"push": "fork", "fork": "https://example.invalid/a/site.git"}, "the repository itself"),
        ({"push": "fork", "fork": "ftp://x/y"}, "not fetched by"),
        (
            {"push": "fork", "fork": "https://example.invalid/b/s", "fork_username": "x"},
            "needs a secret",
        ),
        (
            {
                "push": "fork",
                "fork": "https://elsewhere.invalid/b/s",
                "forge": "github",
                "api_secret": "t",
            },
            "the same forge",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(small: Company, given: Answer, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        add_repo(small, **given)


def test_other_settings_leave_the_way_of_proposals_as_it_is(small: Company) -> None:
    add_repo(small, push="after_look", forge="github", api_secret="t", people="ann")
    small.call(
        *(small.board, repos.set_forge),
        company=small.id,
        name="site",
        forge="gitea",
        api_secret="t",
        people="bea",
    )
    here: Answer = {"company": small.id, "name": "site"}
    fork = "https://example.invalid/b/site.git"
    shown = small.call(small.board, repos.set_, **here, push="fork", fork=fork)
    assert (shown["push"], shown["fork"], shown["forge"]) == ("fork", fork, "gitea")
    assert shown["people"] == ["bea"]
    shown = small.call(small.board, repos.set_, **here, push="at_once")
    assert (shown["push"], shown["fork"]) == ("at_once", None)


def test_the_doctor_says_what_runs_in_the_ci_of_a_forge(github: ForgeStage) -> None:
    company = github.company

    def found() -> tuple[str, str]:
        settings = company.app.settings
        findings = [one for one in diagnosis.forges(settings) if one.check == "proposals to site"]
        (one,) = findings
        return one.state, one.found

    assert found() == ("ok", "pushed once a person has looked at the commits")
    company.call(company.board, repos.set_, company=company.id, name="site", push="at_once")
    state, sentence = found()
    assert state == "warn"
    assert "CI of the forge runs what agents wrote" in sentence
