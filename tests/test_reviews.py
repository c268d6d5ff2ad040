"""Judging changes: exactly what was shown is taken in, once, and nobody judges their own."""

from pathlib import Path
from typing import Any

import pytest

from remit.channels.contract import Undelivered
from remit.clock import HOUR
from remit.errors import AwaitsApproval, Conflict, Refused, RemitError
from remit.model.connections.diff import MOST_LINES, visible
from remit.runtime.repos import git as git_child
from remit.services.changes import errands, proposals, reviews
from remit.services.identity import as_system
from remit.services.organisation import halts
from tests.change_stage import give
from tests.company import Answer, Company
from tests.git_remote import git
from tests.governance import approve as approve_call
from tests.mailing import unread
from tests.review_stage import Site

GOOD = {"app.py": "def add(a, b):\n    return a + b\n"}


@pytest.fixture
def site(small: Company, tmp_path: Path) -> Site:
    return Site(small, tmp_path / "there")


def seen(made: Answer) -> dict[str, Any]:
    return {"change": made["change"], "head": made["commit"], "base": made["base"]}


def merge(site: Site, made: Answer, who: Any = None, **more: Any) -> Answer:
    return site.company.call(who or site.company.board, reviews.merge, **seen(made), **more)


# ── what is shown ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-30")
def test_a_change_is_shown_file_by_file_with_the_words_that_differ(site: Site) -> None:
    made = site.propose(site.author(), {**GOOD, "new.txt": "one\n", "README.md": "y\n"})
    diff = site.company.wait(site.reviews.diff(site.company.board, made["change"]))
    assert [(one.path, one.status, one.added, one.removed) for one in diff.files] == [
        ("README.md", "changed", 1, 1),
        ("app.py", "changed", 1, 1),
        ("new.txt", "added", 1, 0),
    ]
    (hunk,) = diff.files[1].hunks
    assert [(one.kind, one.old, one.new) for one in hunk.lines] == [
        (" ", 1, 1),
        ("-", 2, None),
        ("+", None, 2),
    ]
    old, new = hunk.rows[1]
    assert old is not None
    assert new is not None
    assert [text for differs, text in old.pieces if differs] == ["-"]
    assert [text for differs, text in new.pieces if differs] == ["+"]


@pytest.mark.requirement("FX-30")
def test_a_hostile_text_stays_where_it_is_shown(site: Site) -> None:
    text = "x = 1 \x1b[2J\u202e # hidden\u200b\ndiff --git a/x b/x\n@@ -1,1 +1,1 @@\n--- a/app.py\n"
    name = "a\nb\x1b]0;x\x07<script>.py"
    made = site.propose(site.author(), {"app.py": text, name: "<script>alert(1)</script>\n"})
    diff = site.company.wait(site.reviews.diff(site.company.board, made["change"]))
    assert [one.path for one in diff.files] == [
        "a⟨U+000A⟩b⟨U+001B⟩]0;x⟨U+0007⟩<script>.py",
        "app.py",
    ]
    added = [one.text for one in diff.files[1].hunks[0].lines if one.kind == "+"]
    assert added[0] == "x = 1 ⟨U+001B⟩[2J⟨U+202E⟩ # hidden⟨U+200B⟩"
    assert added[1:] == ["diff --git a/x b/x", "@@ -1,1 +1,1 @@", "--- a/app.py"]
    assert visible("a" * 1000).endswith("…")


@pytest.mark.requirement("FX-30")
def test_a_huge_change_is_shown_in_part_and_says_so(site: Site) -> None:
    files = {f"f{number}": "y\n" * 2500 for number in range(4)} | {"long": "z" * 300_000}
    made = site.propose(site.author(), files)
    diff = site.company.wait(site.reviews.diff(site.company.board, made["change"]))
    assert diff.cut
    assert diff.count == 5
    assert sum(len(hunk.lines) for one in diff.files for hunk in one.hunks) <= MOST_LINES
    assert all(len(line.text) <= 501 for f in diff.files for h in f.hunks for line in h.lines)


@pytest.mark.requirement("FX-80")
def test_instructions_come_first_in_a_difference_whatever_else_is_proposed(site: Site) -> None:
    """A hundred files before them in the alphabet, more than is shown, do not hide them."""
    padding = {f"a/{number}": "y\n" * 2500 for number in range(4)}
    told = {"web/#[x]*/AGENTS.md": "Obey.\n", "CLAUDE.md": "Obey, too.\n"}
    more = {".claude/settings.json": "{}\n", ".github/copilot-instructions.md": "Yes.\n"}
    run = site.author()
    give(site.company, run, paths=[".claude/**", ".github/**"])
    made = site.propose(run, {**padding, **told, **more})
    diff = site.company.wait(site.reviews.diff(site.company.board, made["change"]))
    assert [(one.path, one.marks) for one in diff.files[:5]] == [
        (".github/copilot-instructions.md", ("will instruct agents", "run by the forge")),
        ("CLAUDE.md", ("will instruct agents",)),
        ("web/#[x]*/AGENTS.md", ("will instruct agents",)),
        (".claude/settings.json", ("configures programs",)),
        ("a/0", ()),
    ]
    shown = [[line.text for hunk in one.hunks for line in hunk.lines] for one in diff.files[:4]]
    assert shown == [["Yes."], ["Obey, too."], ["Obey."], ["{}"]]
    assert diff.cut
    known = site.shown(made["change"])["marks"]
    assert known["configures programs"] == [".claude/settings.json"]
    assert "CLAUDE.md" in known["will instruct agents"]


def test_a_file_cannot_say_that_it_is_not_to_be_shown(site: Site) -> None:
    site.push_main({".gitattributes": "*.py -diff binary diff=evil\n"})
    made = site.propose(site.author(), GOOD)
    diff = site.company.wait(site.reviews.diff(site.company.board, made["change"]))
    assert [one.hunks != [] for one in diff.files] == [True]


# ── deciding ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-30")
def test_a_returned_change_goes_back_to_its_author_as_mail(site: Site) -> None:
    run = site.author()
    made = site.propose(run, {"app.py": "pass\n"})
    company = site.company
    company.call(company.board, reviews.return_, **seen(made), note="Keep the function.")
    (letter,) = unread(company, run.caller)
    assert letter["subject"] == "Returned: Add, do not subtract"
    shown = site.shown(made["change"])
    assert shown["decision"]["decision"] == "returned"
    with pytest.raises(Conflict, match="was returned"):
        merge(site, made)
    again = site.propose(run, GOOD)
    assert again["change"] == made["change"]
    assert not site.shown(made["change"])["decision"]["is_current"]
    merge(site, again)


@pytest.mark.requirement("FX-30")
@pytest.mark.parametrize("verb", [reviews.approve, reviews.merge, reviews.return_])
def test_what_was_not_shown_is_not_decided_about(site: Site, verb: Any) -> None:
    run = site.author()
    before = site.propose(run, {"app.py": "pass\n"})
    after = site.propose(run, GOOD)
    company = site.company
    note = {"note": "no"} if verb is reviews.return_ else {}
    for wrong in (
        seen(before),
        {**seen(after), "base": after["commit"]},
        {**seen(after), "head": after["base"]},
        {**seen(after), "head": "0" * 40},
    ):
        with pytest.raises(Conflict) as moved:
            company.call(company.board, verb, **wrong, **note)
        assert moved.value.reason == "change_moved"
    company.call(company.board, verb, **seen(after), **note)


@pytest.mark.requirement("FX-30")
def test_nobody_judges_their_own_change_and_an_agent_asks_before_it_merges(site: Site) -> None:
    company = site.company
    author, other = site.author(), company.agent("judge")
    proposes = company.agent("proposes")
    give(company, proposes, "propose")
    made = site.propose(author, GOOD)
    for verb in (reviews.approve, reviews.merge):
        with pytest.raises(Refused, match="gives merge"):
            company.call(proposes.caller, verb, **seen(made))
    give(company, author, "merge", mode="allow")
    for verb in (reviews.approve, reviews.merge):
        with pytest.raises(Refused) as refused:
            company.call(author.caller, verb, **seen(made))
        assert refused.value.reason == "own_change"
    judge = company.run(other)
    with pytest.raises(RemitError):  # it does not even know of it
        company.call(judge.caller, reviews.approve, **seen(made))
    give(company, other, "merge")
    company.call(judge.caller, reviews.approve, **seen(made), note="Fine.")
    shown = site.shown(made["change"])
    assert shown["decision"]["agent_id"] == other.id
    with pytest.raises(AwaitsApproval) as waits:
        company.call(judge.caller, reviews.merge, **seen(made))
    assert site.shown(made["change"])["status"] == "open"
    approve_call(company, {"id": waits.value.details["approval_id"]})
    site.carry_out()
    assert site.shown(made["change"])["status"] == "merged"


# ── taking in ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-30")
@pytest.mark.parametrize("method", ["merge", "squash", "ff"])
def test_each_way_takes_in_what_was_shown_and_the_author_has_evidence(
    site: Site, method: str
) -> None:
    run = site.author()
    made = site.propose(run, GOOD)
    before = site.main()
    assert merge(site, made, method=method)["status"] == "open"
    site.carry_out()
    shown = site.shown(made["change"])
    assert (shown["status"], shown["merged_commit"]) == ("merged", site.main())
    assert git(site.bare, "show", "main:app.py") == GOOD["app.py"].strip()
    parents = git(site.bare, "log", "-1", "--format=%P", "main").split()
    expected = {"merge": [before, made["commit"]], "squash": [before], "ff": [before]}
    assert parents == expected[method]
    if method != "ff":
        assert made["change"] in git(site.bare, "log", "-1", "--format=%B", "main")
    letter = unread(site.company, run.caller)[-1]
    assert letter["subject"] == "Merged: Add, do not subtract"


@pytest.mark.requirement("FX-30")
def test_what_came_in_meanwhile_stays_and_what_disagrees_is_refused(site: Site) -> None:
    run = site.author()
    fine = site.propose(run, GOOD)
    clash = site.propose(run, {"README.md": "mine\n"}, branch="clash", title="Clash")
    newer = site.push_main({"README.md": "theirs\n"})
    merge(site, fine)
    site.carry_out()
    assert git(site.bare, "show", "main:README.md") == "theirs"
    assert newer in git(site.bare, "log", "--format=%H", "main")
    merge(site, clash, method="ff", note="x")
    site.carry_out()
    assert site.shown(clash["change"])["problems"] != []
    merge(site, clash)
    site.carry_out()
    shown = site.shown(clash["change"])
    assert (shown["status"], shown["conflicts"]) == ("open", True)
    assert git(site.bare, "show", "main:README.md") == "theirs"
    for told in (run.caller, site.company.board):
        subjects = [one["subject"] for one in unread(site.company, told)]
        assert subjects.count("Could not merge: Clash") == 2


@pytest.mark.requirement("FX-30")
def test_it_is_merged_once_however_often_that_is_asked_for(site: Site) -> None:
    made = site.propose(site.author(), GOOD)
    company = site.company
    both = company.together(
        [company.app.gate(company.board, reviews.merge, **seen(made)) for _ in range(2)]
    )
    assert sorted(isinstance(one, Conflict) for one in both) == [False, True]
    site.carry_out()
    with pytest.raises(Conflict, match="is merged"):
        merge(site, made)
    assert company.call(as_system(), errands.ready) == []
    assert company.call(as_system(), reviews.ready) == []
    assert len(git(site.bare, "log", "--format=%H", "--merges", "main").split()) == 1


@pytest.mark.requirement("FX-30", "FX-31")
def test_nothing_is_proposed_while_it_is_merged_so_the_evidence_names_what_was(site: Site) -> None:
    run = site.author()
    made = site.propose(run, GOOD)
    merge(site, made)
    for verb in (reviews.approve, reviews.return_):
        with pytest.raises(Conflict, match="being merged"):
            site.company.call(site.company.board, verb, **seen(made), note="Hm.")
    with pytest.raises(Conflict, match="being merged") as refused:
        site.propose(run, {"app.py": "pass\n"})
    assert (refused.value.status, "has mail" in refused.value.step) == (409, True)
    with pytest.raises(Conflict, match="being merged"):
        site.company.call(run.caller, proposals.prepare, name="site", branch="fix")
    site.propose(run, {"README.md": "y\n"}, branch="another")
    site.carry_out()
    ((evidence,),) = site.company.sql("SELECT id FROM files WHERE description LIKE 'Merged: %'")
    _, text = site.company.read(run.caller, evidence)
    for commit in (made["commit"], made["base"], site.main()):
        assert commit in text.decode()
    again = site.propose(run, {"app.py": "pass\n"})
    assert again["change"] != made["change"], "what is in is in; the branch begins anew"


@pytest.mark.requirement("FX-30")
def test_another_head_while_it_waits_to_be_merged_is_not_taken_in(site: Site) -> None:
    """Neither the new one, which nobody approved, nor the old one, which its author withdrew."""
    run = site.author()
    made = site.propose(run, GOOD)
    before = site.main()
    merge(site, made)
    claimed = site.claim()
    site.company.sql("UPDATE changes SET head_commit = ? WHERE id = ?", "e" * 40, made["change"])
    site.carry_out(claimed)
    assert site.main() == before
    assert site.shown(made["change"])["status"] == "open"


@pytest.mark.requirement("FX-30")
@pytest.mark.parametrize("dies", ["before the push", "after the push"])
def test_who_goes_on_after_a_crash_merges_once(
    site: Site, dies: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = site.propose(site.author(), GOOD)
    merge(site, made)
    claimed = site.claim()
    from remit.runtime.repos.mirrors import Mirror

    real = Mirror.move_branch

    async def die(self: Mirror, *about: Any) -> None:
        if dies == "after the push":
            await real(self, *about)
        raise KeyboardInterrupt

    monkeypatch.setattr(Mirror, "move_branch", die)
    with pytest.raises(KeyboardInterrupt):
        site.carry_out(claimed)
    monkeypatch.setattr(Mirror, "move_branch", real)
    assert site.shown(made["change"])["status"] == "open"
    company = site.company
    company.call(
        as_system(), errands.take_over, errand=claimed["errand"], epoch=claimed["epoch"], alone=True
    )
    site.push_main({"other.txt": "x\n"}) if dies == "before the push" else None
    site.carry_out()
    shown = site.shown(made["change"])
    merges = git(site.bare, "log", "--format=%H", "--merges", "main").split()
    assert merges == [shown["merged_commit"]]
    with pytest.raises(Conflict):  # who was thought dead
        company.call(
            as_system(),
            reviews.taken_in,
            errand=claimed["errand"],
            epoch=claimed["epoch"],
            commit="0" * 40,
        )


@pytest.mark.requirement("FX-30")
def test_a_merge_outlives_many_kills_and_is_given_up_aloud(site: Site) -> None:
    company = site.company
    made = site.propose(site.author(), GOOD)

    def killed(times: int) -> None:
        for _ in range(times):
            claimed = site.claim()
            held = {"errand": claimed["errand"], "epoch": claimed["epoch"]}
            company.call(as_system(), errands.take_over, **held, alone=True)

    merge(site, made)
    killed(errands.MOST_ATTEMPTS)
    assert company.call(as_system(), reviews.ready) == []
    told = "SELECT count(*) FROM messages WHERE subject LIKE 'Could not merge: %'"
    assert company.sql(told) == [(2,)], "its author, and who decided"
    merge(site, made)
    killed(errands.MOST_ATTEMPTS - 1)
    site.carry_out()
    assert site.shown(made["change"])["status"] == "merged"


@pytest.mark.requirement("FX-30")
def test_a_branch_that_moves_between_fetch_and_push_is_not_overwritten(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = site.propose(site.author(), GOOD)
    merge(site, made)
    from remit.runtime.repos.mirrors import Mirror

    real = Mirror.move_branch

    async def late(self: Mirror, *about: Any) -> None:
        site.push_main({"other.txt": "x\n"})
        monkeypatch.setattr(Mirror, "move_branch", real)
        await real(self, *about)

    monkeypatch.setattr(Mirror, "move_branch", late)
    claimed = site.claim()
    with pytest.raises(git_child.GitFailed):
        site.carry_out(claimed)
    assert git(site.bare, "show", "main:other.txt") == "x"
    company = site.company
    held = {"errand": claimed["errand"], "epoch": claimed["epoch"]}
    company.call(as_system(), errands.failed, **held, why="moved", backoff=(0,))
    site.carry_out()
    assert git(site.bare, "show", "main:other.txt") == "x"
    assert site.shown(made["change"])["status"] == "merged"


@pytest.mark.requirement("FX-13")
def test_what_is_being_merged_when_its_author_is_stopped_is_merged_later(site: Site) -> None:
    company, before = site.company, site.main()
    made = site.propose(site.author(), GOOD)
    merge(site, made)
    claimed = site.claim()
    company.call(company.board, halts.stop, company=company.id)
    with pytest.raises(Undelivered, match="is stopped"):
        site.carry_out(claimed)
    held = {"errand": claimed["errand"], "epoch": claimed["epoch"]}
    company.call(as_system(), errands.failed, **held, why="stopped", retry_after=0)
    company.wait(company.app.merger.tick())
    assert (site.main(), site.shown(made["change"])["status"]) == (before, "open")
    company.call(company.board, halts.go, company=company.id)
    company.wait(company.app.merger.tick())
    assert site.shown(made["change"])["status"] == "merged"


def test_a_branch_that_was_rewritten_is_not_merged_into(site: Site) -> None:
    site.push_main({"more.txt": "x\n"})
    made = site.propose(site.author(), GOOD)
    site.company.wait(site.reviews.diff(site.company.board, made["change"]))
    git(site.bare, "update-ref", "refs/heads/main", git(site.bare, "rev-parse", "main~1"))
    merge(site, made)
    site.carry_out()
    assert site.shown(made["change"])["conflicts"] is True


def test_the_bytes_of_a_change_that_are_not_whole_are_an_error(site: Site) -> None:
    made = site.propose(site.author(), GOOD)
    company = site.company
    company.sql("UPDATE changes SET head_commit = ? WHERE id = ?", "d" * 40, made["change"])
    known = company.call(company.board, reviews.material, change=made["change"])
    diff, why = company.wait(site.reviews.shown(known))
    assert diff is None
    assert "not whole" in why
    assert known["judges"]


@pytest.mark.requirement("FX-30")
def test_the_instance_takes_in_by_itself_and_says_who_stands_for_it(site: Site) -> None:
    made = site.propose(site.author(), GOOD, description="It subtracted.")
    merge(site, made, method="squash")
    assert site.company.wait(site.merger.tick()) == 0, "what goes before is not done yet"
    site.publish()
    assert site.company.wait(site.merger.tick()) == 1
    shown = site.shown(made["change"])
    assert (shown["status"], shown["merged_commit"]) == ("merged", site.main())
    said = git(site.bare, "log", "-1", "--format=%an|%cn|%B", "main")
    assert said.startswith("author|Remit|Add, do not subtract\n\nIt subtracted.\n\nRemit-Change: ")
    assert "\nAccountable: " in said


def test_a_remote_that_is_away_is_tried_again_later(site: Site) -> None:
    made = site.propose(site.author(), GOOD)
    merge(site, made)
    site.publish()
    site.bare.rename(site.bare.with_name("away"))
    assert site.company.wait(site.merger.tick()) == 1
    assert site.shown(made["change"])["waiting"] == ["merge"]
    site.bare.with_name("away").rename(site.bare)
    site.company.clock.advance(HOUR)  # type: ignore[attr-defined]
    assert site.company.wait(site.merger.tick()) == 1
    assert site.shown(made["change"])["status"] == "merged"
