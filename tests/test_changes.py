"""Changes of repositories: who may propose what, what is said, and what becomes of one."""

from typing import Any

import pytest

from remit.errors import AwaitsApproval, BadInput, Conflict, NotFound, Refused
from remit.model.organisation import path_pattern
from remit.runtime import diagnosis
from remit.services.changes import changes, errands, proposals, reviews
from remit.services.connections import repos
from remit.services.identity import as_system
from remit.services.knowledge import files
from remit.services.rights import grants
from remit.services.screens import agent_page
from remit.services.work import outcomes
from tests.change_stage import BASE, HEAD, NEXT, add_repo, author, claimed, give, propose
from tests.company import Company
from tests.governance import approve


@pytest.mark.requirement("FX-28")
def test_levels_of_a_repository_are_read_propose_and_merge(company: Company) -> None:
    add_repo(company)
    reader, proposer = author(company, "reader", level="read"), author(company, "proposer")
    with pytest.raises(Refused, match="no capability that gives propose"):
        propose(company, reader)
    made = propose(company, proposer)
    assert (made["commit"], made["branch"]) == (HEAD, "remit/proposer/fix")
    assert company.call(company.board, files.browse, company=company.id) == [], "no file to read"
    merger = company.agent("merger")
    assert give(company, merger, "merge")["mode"] == "ask", "unless the board says otherwise"
    assert give(company, merger, "merge", mode="allow")["mode"] == "allow"
    with pytest.raises(BadInput, match="level must be read, propose, merge"):
        give(company, merger, "write")
    assert give(company, merger, "use")["level"] == "read", "as it was called before"


@pytest.mark.requirement("FX-28")
def test_files_and_branches_limit_what_may_be_proposed(company: Company) -> None:
    add_repo(company)
    writer = author(company, "writer", paths=["docs/**", "*.md"], branches=["main", "release/*"])
    propose(company, writer, paths=["docs/a/b.md", "README.md"])
    with pytest.raises(Refused) as refused:
        propose(company, writer, paths=["docs/a.md", "src/app.py"])
    assert refused.value.reason == "outside_limits"
    assert "src/app.py" in refused.value.sentence
    with pytest.raises(Refused, match="into other"):
        propose(company, writer, paths=["docs/a.md"], target="other")
    propose(company, writer, paths=["docs/a.md"], target="release/2", branch="again")
    propose(company, writer, paths=[], branch="merged")  # a merge may leave every file as it was
    with pytest.raises(Refused):
        propose(company, writer, paths=[], target="other", branch="merged")


@pytest.mark.requirement("FX-28")
@pytest.mark.parametrize(
    "path",
    [
        *(".github/workflows/ci.yml", ".GitHub/x", ".gitlab-ci.yml", ".gitea/a", ".forgejo/a"),
        *(".githooks/pre-commit", "Jenkinsfile", ".lfsconfig"),
        *(".github", ".GitHooks"),  # a link may stand in their place
    ],
)
def test_what_a_forge_executes_needs_a_grant_that_names_it(small: Company, path: str) -> None:
    add_repo(small)
    run = author(small)
    give(small, run, paths=["**"])
    give(small, run, mode="ask", paths=["**"])
    with pytest.raises(Refused) as refused:
        propose(small, run, paths=["src/a.py", path])
    assert refused.value.reason == "executed_by_forge"
    assert path in refused.value.sentence


@pytest.mark.requirement("FX-28")
def test_a_grant_that_names_what_a_forge_executes_lets_it_be_proposed(small: Company) -> None:
    add_repo(small)
    run = author(small)
    give(small, run, paths=[".github/workflows/**"])
    propose(small, run, paths=["src/a.py", ".github/workflows/ci.yml"])
    with pytest.raises(Refused, match="github/CODEOWNERS"):
        propose(small, run, paths=[".github/CODEOWNERS"])


@pytest.mark.requirement("FX-80")
@pytest.mark.parametrize(
    "path",
    [
        *(".claude/settings.json", ".Claude/settings.json", ".claude /settings.json", ".mcp.json"),
        *("web/.codex/config.toml", ".vscode/tasks.json", ".envrc", ".claude", ".npmrc"),
    ],
)
def test_configuration_of_programs_needs_a_grant_that_names_it(small: Company, path: str) -> None:
    add_repo(small)
    run = author(small)
    give(small, run, paths=["**"])
    with pytest.raises(Refused) as refused:
        propose(small, run, paths=["src/a.py", path])
    assert refused.value.reason == "configures_programs"
    assert path in refused.value.sentence
    give(small, run, paths=[path])
    propose(small, run, paths=["src/a.py", path])


@pytest.mark.requirement("FX-80")
def test_instructions_of_a_folder_need_no_grant_that_names_them(small: Company) -> None:
    add_repo(small)
    run = author(small)
    propose(small, run, paths=["CLAUDE.md", "web/AGENTS.md", ".claude/skills/deploy/SKILL.md"])


@pytest.mark.requirement("FX-80")
def test_doctor_lists_whose_last_proposal_would_be_refused_now(company: Company) -> None:
    """As after an upgrade: what the files of the proposal need was not asked for at the time."""
    add_repo(company)
    plain, earlier, late = (author(company, name) for name in ("plain", "earlier", "late"))
    named = [give(company, run, paths=[".claude/**"]) for run in (earlier, late)]
    propose(company, plain, paths=["src/a.py"])
    for run in (earlier, late):
        propose(company, run, paths=[".claude/settings.json"])
    propose(company, earlier, paths=["src/a.py"], head=NEXT)
    assert list(diagnosis.proposals(company.app.settings)) == []
    for grant in named:
        company.call(company.board, grants.revoke, grant=grant["id"])
    (found,) = diagnosis.proposals(company.app.settings)
    assert found.state == "warn"
    assert found.found.startswith("late would be refused what it last proposed to site: .claude/")
    assert "remit grant give late repo:site propose --path" in found.next_step


@pytest.mark.requirement("FX-28", "FX-80")
@pytest.mark.parametrize("path", [".github/workflows/ci.yml", ".claude/settings.json"])
def test_an_approval_that_the_whole_repository_needs_is_needed_for_named_files_too(
    small: Company, path: str
) -> None:
    add_repo(small)
    run = small.run(small.agent("careful"))
    give(small, run, mode="ask")
    give(small, run, paths=[f"{path.partition('/')[0]}/**"])
    with pytest.raises(AwaitsApproval):
        propose(small, run, paths=[path])


@pytest.mark.requirement("FX-28")
def test_ask_about_some_files_asks_about_a_change_of_them_and_approval_takes_it_in(
    company: Company,
) -> None:
    add_repo(company)
    run = author(company)
    give(company, run, mode="ask", paths=["db/**"])
    propose(company, run, branch="other")
    with pytest.raises(AwaitsApproval) as waits:
        propose(company, run, paths=["db/schema.sql", "src/app.py"])
    approve(company, {"id": waits.value.details["approval_id"]})
    found = company.call(company.board, changes.listing, company=company.id)
    assert [one["branch"] for one in found] == ["fix", "other"]
    assert found[0]["agent_id"] == run.agent_id


@pytest.mark.requirement("FX-28")
def test_a_denied_file_denies_the_change(small: Company) -> None:
    add_repo(small)
    run = author(small)
    give(small, run, mode="deny", paths=["secret/**"])
    with pytest.raises(Refused, match=r"secret/x was denied"):
        propose(small, run, paths=["a", "secret/x"])
    propose(small, run, paths=["a"])


@pytest.mark.requirement("FX-28")
def test_what_is_passed_on_is_no_wider_than_what_is_held(company: Company) -> None:
    add_repo(company)
    boss = company.agent("boss")
    report = company.agent("report", boss="boss")
    give(company, boss, paths=["src/**"], branches=["main"])

    def pass_on(level: str = "propose", **more: Any) -> dict[str, Any]:
        wish: dict[str, Any] = {"to": report.id, "resource": "repo:site", "level": level, **more}
        return company.call(boss.caller, grants.give, company=None, **wish)

    assert pass_on()["paths"] == ["src/**"], "as much as the source has"
    narrower = pass_on(paths=["src/web/*.py"])
    assert (narrower["paths"], narrower["branches"]) == (["src/web/*.py"], ["main"])
    wishes: list[Any] = [{"paths": ["**"]}, {"paths": ["src/**", "docs/**"]}, {"branches": ["*"]}]
    for wider in wishes:
        with pytest.raises(Refused, match="your own capability does not name"):
            pass_on(**wider)
    with pytest.raises(Refused):
        pass_on("merge")
    give(company, boss, mode="deny", paths=["src/secret/**"])
    with pytest.raises(Refused, match="Part of what you pass on was denied"):
        pass_on()
    assert pass_on(paths=["src/web/**"])["mode"] == "allow", "it lies apart"
    give(company, boss, mode="ask", paths=["src/web/**"])
    assert pass_on(paths=["src/web/**"])["mode"] == "ask"


@pytest.mark.requirement("FX-28")
def test_who_holds_all_files_cannot_pass_on_what_a_forge_executes(small: Company) -> None:
    add_repo(small)
    boss = small.agent("boss")
    report = small.agent("report", boss="boss")
    give(small, boss)
    wish: dict[str, Any] = {"to": report.id, "resource": "repo:site", "level": "propose"}
    with pytest.raises(Refused, match="does not name"):
        small.call(boss.caller, grants.give, company=None, **wish, paths=[".github/**"])
    small.call(boss.caller, grants.give, company=None, **wish, paths=["**"])


@pytest.mark.requirement("FX-28")
def test_limits_are_patterns_of_repositories_only(small: Company) -> None:
    add_repo(small)
    member = small.agent("somebody")
    for bad in ("/etc", "a//b", "../x", "a/../b", "**/x", "a**", "", "a/"):
        with pytest.raises(BadInput):
            give(small, member, paths=[bad])
    with pytest.raises(BadInput, match="Only propose and merge"):
        give(small, member, "read", paths=["src/**"])


@pytest.mark.requirement("FX-28")
def test_one_branch_is_one_change_and_a_new_head_is_a_revision(company: Company) -> None:
    add_repo(company)
    run = author(company)
    first = propose(company, run)
    again = propose(company, run)
    assert again["change"] == first["change"]
    second = propose(company, run, head=NEXT, title="Mend it better")
    assert second["change"] == first["change"]
    shown = company.call(company.board, changes.show, change=first["change"])
    assert (shown["head"], shown["base"], shown["title"]) == (NEXT, BASE, "Mend it better")
    assert shown["waiting"] == ["publish"], "one errand, which takes what is proposed then"
    assert not shown["published"]
    held = claimed(company)
    assert (held["change"].head_commit, held["identity"]["agent"]) == (NEXT, "author")


@pytest.mark.requirement("FX-28", "FX-30")
def test_commits_keep_the_words_that_they_were_shown_with(company: Company) -> None:
    """The title and the description are the message of a merge, and who decides names commits."""
    add_repo(company)
    run = author(company)
    first = propose(company, run, description="As agreed.")
    company.call(company.board, reviews.approve, change=first["change"], head=HEAD, base=BASE)
    for other in ({"title": "Free everything"}, {"description": "Closes #1"}):
        with pytest.raises(Conflict, match="with another title or description"):
            propose(company, run, **{"description": "As agreed.", **other})
    propose(company, run, head=NEXT, title="Free everything")
    with pytest.raises(Conflict, match="with another title or description"):
        propose(company, run, title="Free everything")
    propose(company, run, description="As agreed.")
    shown = company.call(company.board, changes.show, change=first["change"])
    assert (shown["title"], shown["description"]) == ("Mend it", "As agreed.")
    assert shown["decision"]["is_current"], "it is what was approved"


@pytest.mark.requirement("FX-28")
def test_an_open_change_goes_into_the_branch_that_was_shown(company: Company) -> None:
    """Who decides names commits; those may lie the same way from another branch."""
    add_repo(company)
    run = author(company)
    made = propose(company, run, target="release")
    with pytest.raises(Conflict, match="is proposed for release already"):
        propose(company, run, target="main")
    asked: dict[str, Any] = {"name": "site", "branch": "fix", "target": None, "outcome": None}
    assert company.call(run.caller, proposals.prepare, **asked)["target"] == "release"
    company.call(run.caller, reviews.withdraw, change=made["change"])
    assert propose(company, run, target="main")["change"] != made["change"]


@pytest.mark.requirement("FX-28")
def test_a_change_is_seen_by_its_author_its_bosses_and_readers_of_the_repository(
    company: Company,
) -> None:
    add_repo(company)
    run, stranger = author(company), company.agent("stranger")
    change = propose(company, run)["change"]
    reader = company.agent("reader")
    give(company, reader, "read")
    for who in (run.caller, reader.caller, company.board):
        assert company.call(who, changes.show, change=change)["id"] == change
    named: Any = {"company": company.id, "named": [f"change:{change}"]}
    (shown,) = company.call(company.board, agent_page.resources, **named).values()
    assert shown == {"kind": "change", "id": change, "name": "“Mend it” (site, into main)"}
    assert company.call(stranger.caller, agent_page.resources, **named) == {}
    with pytest.raises(NotFound):
        company.call(stranger.caller, changes.show, change=change)
    assert company.call(stranger.caller, changes.listing) == []
    with pytest.raises(Refused):
        company.call(reader.caller, reviews.comment, change=change, body="Hm.")


@pytest.mark.requirement("FX-31")
def test_a_comment_reaches_the_author_as_mail_and_makes_its_outcome_due(company: Company) -> None:
    add_repo(company)
    run = author(company)
    outcome = company.call(run.caller, outcomes.create, parent=run.agent_id, title="Mend the login")
    change = propose(company, run, outcome=outcome["id"])["change"]
    company.call(
        company.board, reviews.comment, change=change, body="Why so?", path="src/app.py", line=3
    )
    letters = company.sql("SELECT subject FROM messages WHERE address = ?", f"agent:{run.agent_id}")
    assert ("Comment on Mend it",) in [tuple(one) for one in letters]
    ((news, seen),) = company.sql("SELECT news, seen FROM outcomes WHERE id = ?", outcome["id"])
    assert news > seen
    (said,) = company.call(run.caller, changes.status)[0]["comments"]
    assert (said["path"], said["line"], said["side"]) == ("src/app.py", 3, "new")
    with pytest.raises(BadInput, match="Which file is the line in"):
        company.call(company.board, reviews.comment, change=change, body="Why so?", line=3)


@pytest.mark.requirement("FX-28")
def test_what_is_published_is_fenced_by_the_lease(company: Company) -> None:
    add_repo(company)
    run = author(company)
    change = propose(company, run)["change"]
    held = claimed(company)
    done = {"head": HEAD}
    with pytest.raises(Conflict):
        company.call(as_system(), errands.published, errand=held["errand"], epoch=7, **done)
    company.call(as_system(), errands.published, errand=held["errand"], epoch=1, **done)
    company.call(as_system(), errands.delivered, errand=held["errand"], epoch=1)
    shown = company.call(company.board, changes.show, change=change)
    assert (shown["published"], shown["waiting"]) == (True, [])


@pytest.mark.requirement("FX-28", "FX-31")
def test_a_repository_that_is_removed_ends_what_is_open_in_it(company: Company) -> None:
    add_repo(company)
    add_repo(company, "other")
    run = author(company)
    give(company, run, name="other")
    gone, kept = propose(company, run), propose(company, run, name="other")
    company.call(
        company.board, reviews.merge, change=gone["change"], head=gone["commit"], base=gone["base"]
    )
    held = claimed(company)
    company.call(company.board, repos.remove, company=company.id, name="site")
    shown = company.call(company.board, changes.show, change=gone["change"])
    assert (shown["status"], shown["waiting"]) == ("closed", [])
    assert company.call(company.board, changes.show, change=kept["change"])["status"] == "open"
    letters = company.sql("SELECT subject FROM messages WHERE address = ?", f"agent:{run.agent_id}")
    assert ("Closed: Mend it",) in [tuple(one) for one in letters]
    # Who set out to push it before does not go on.
    about = {"errand": held["errand"], "epoch": held["epoch"]}
    with pytest.raises(Conflict):
        company.call(as_system(), errands.pushing, **about, head=HEAD)
    assert company.call(as_system(), reviews.ready) == []
    # Under the same name there may be another, for which a branch begins anew.
    add_repo(company)
    give(company, run)
    assert propose(company, run)["change"] != gone["change"]


def test_a_pattern_of_paths_is_matched_in_a_moment() -> None:
    """A regular expression with as many stars would not end before the test does."""
    assert not path_pattern.matches("a" * 4000, "*a" * 90 + "b")
    for path, pattern, fits in (
        ("docs/guide.md", "docs/*.md", True),
        ("docs/guide.txt", "docs/*.md", False),
        ("docs/a/guide.md", "docs/*.md", False),
        ("docs/guide.md/a", "docs/*.md", False),
        ("docs", "docs/*.md", False),
        ("src/a/b.py", "src/**", True),
        ("src", "src/**", False),
        ("src/", "src/**", False),
        ("aba", "ab*ba", False),
        ("abba", "ab*ba", True),
    ):
        assert path_pattern.matches(path, pattern) is fits, (path, pattern)


@pytest.mark.requirement("FX-28")
def test_one_pattern_lies_within_another_or_not() -> None:
    """Where it is in doubt it lies neither within nor apart."""
    for inner, outer, inside, beside in (
        ("src/a.py", "src/**", True, False),
        ("src/**", "src/a.py", False, False),
        ("src/**", "src/*", False, False),
        ("src/a/b", "src/*", False, True),
        ("src/*.py", "src/*", True, False),
        ("src/*", "src/*.py", False, False),
        ("src/a*", "src/*b", False, False),
        ("src", "src/**", False, True),
        ("docs/**", "src/**", False, True),
        ("src/a.py", "src/*.md", False, True),
        ("src/*.md", "src/a.py", False, True),
        ("src/*", "docs/a", False, True),
    ):
        assert path_pattern.within(inner, outer) is inside, (inner, outer)
        assert path_pattern.apart(inner, outer) is beside, (inner, outer)
        assert path_pattern.within(inner, inner)


@pytest.mark.requirement("FX-30")
def test_a_change_is_declined_by_who_judges_and_withdrawn_by_its_author(company: Company) -> None:
    add_repo(company)
    run, other = author(company), author(company, "other")
    made = propose(company, run)
    shown = {"change": made["change"], "head": made["commit"], "base": made["base"]}
    for who in (run, other):
        with pytest.raises(Refused):
            company.call(who.caller, reviews.decline, **shown, note="No.")
    for caller in (other.caller, company.board):
        with pytest.raises(Refused, match="by its author alone"):
            company.call(caller, reviews.withdraw, change=made["change"])
    with pytest.raises(Conflict, match="Something else is proposed"):
        company.call(company.board, reviews.decline, **{**shown, "head": NEXT}, note="No.")
    ended = company.call(company.board, reviews.decline, **shown, note="Not wanted.")
    assert ended["status"] == "closed"
    assert company.call(as_system(), errands.ready) == [], "nothing of it is pushed any more"
    letters = company.sql("SELECT subject FROM messages WHERE address = ?", f"agent:{run.agent_id}")
    assert ("Declined: Mend it",) in [tuple(one) for one in letters]
    again = propose(company, run)
    assert again["change"] != made["change"], "the branch may be proposed anew"
    company.call(run.caller, reviews.withdraw, change=again["change"])
    with pytest.raises(Conflict, match="is closed"):
        company.call(run.caller, reviews.withdraw, change=again["change"])
    third = propose(company, run)
    seen = {"change": third["change"], "head": third["commit"], "base": third["base"]}
    company.call(company.board, reviews.merge, **seen)
    with pytest.raises(Conflict, match="being merged"):
        company.call(run.caller, reviews.withdraw, change=third["change"])
