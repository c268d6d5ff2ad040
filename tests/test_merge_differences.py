"""A merge is approved with its difference: all of it in the statement, or numbers and a link."""

import json
from pathlib import Path

import pytest

from remit.model.connections import whole_diff
from remit.model.organisation.statement import as_text
from remit.runtime.sandbox import sandbox_policy
from remit.services.changes import reviews
from remit.services.governance import approvals
from tests.change_stage import give
from tests.company import Answer, Company, Run
from tests.git_remote import Remote
from tests.statement_stage import asks_before_everything, text_of, under
from tests.test_parking import parked
from tests.test_proposals import at_work, commit, propose, remote

__all__ = ["remote"]  # a fixture

pytestmark = [
    pytest.mark.requirement("FX-61"),
    pytest.mark.skipif(not sandbox_policy.look().usable, reason="there is no sandbox here"),
]
ELSEWHERE = "Its lines are not shown here"


@pytest.fixture
def asking(small: Company) -> Company:
    return asks_before_everything(small)


def asked_to_merge(company: Company, made: Answer, name: str = "judge") -> Answer:
    """Another agent asks whether it may have a change merged."""
    judge = company.agent(name)
    give(company, judge, "merge")
    run = company.run(judge)
    about: Answer = {"change": made["change"], "head": made["commit"], "base": made["base"]}
    return parked(lambda: company.call(run.caller, reviews.merge, **about))


def difference(company: Company, approval: Answer, path: str) -> list[str]:
    """The lines of a file in the statement of a request."""
    shown = company.call(company.board, approvals.show, approval=approval["id"])["statement"]
    entries = [entry for section in shown["sections"] for entry in section["entries"]]
    found = [entry["lines"] for entry in entries if entry["name"] == f'difference of "{path}"']
    assert len(found) == 1, as_text(shown)
    return list(found[0])


def written(run: Run, name: str, content: bytes) -> None:
    (run.workspace / "site" / name).write_bytes(content)


def test_every_line_that_a_merge_changes_is_shown(asking: Company, remote: Remote) -> None:
    run = at_work(asking, remote)
    commit(run, {"kept.txt": "one\ntwo\nthree\n", "old.txt": "a\nb\nc\nd\n", "run.sh": "ls\n"})
    first = propose(asking, run)
    copy = run.workspace / "site"
    (copy / "old.txt").rename(copy / "new.txt")
    (copy / "run.sh").chmod(0o755)
    written(run, "image.png", b"\x89PNG\0\x01")
    written(run, "latin.txt", b"caf\xe9\n")
    commit(run, {"kept.txt": "one\n2\nthree\n", "AGENTS.md": "Obey.\n", "end.txt": "no end"})
    made = propose(asking, run)
    assert made["change"] == first["change"]
    approval = asked_to_merge(asking, made)
    shown = asking.call(asking.board, approvals.show, approval=approval["id"])["statement"]
    assert shown["whole"]
    assert difference(asking, approval, "kept.txt") == ["… from line 1", "+ one", "+ 2", "+ three"]
    assert difference(asking, approval, "end.txt")[1:] == [
        "+ no end",
        "… no newline at the end of the file",
    ]
    assert difference(asking, approval, "run.sh") == ["… now a program", "… from line 1", "+ ls"]
    assert difference(asking, approval, "image.png") == ["… a content that is no text"]
    assert difference(asking, approval, "latin.txt")[1:] == ["+ caf\\xe9"]
    text = as_text(shown)
    assert "files[0]: AGENTS.md (will instruct agents, 1 added, 0 removed)\n" in text
    assert text.index('difference of "AGENTS.md":') < text.index('difference of "end.txt":')
    assert ELSEWHERE not in text
    assert "remit change show" in under(text, "difference")


def test_lines_are_shown_against_what_the_branch_has(asking: Company, remote: Remote) -> None:
    """Removed lines and renamed files, beside the base of the repository."""
    lines = "".join(f"{number}\n" for number in range(40))
    remote.commit({"long.txt": lines, "before.txt": lines * 2})
    run = at_work(asking, remote)
    copy = run.workspace / "site"
    (copy / "before.txt").rename(copy / "after it.txt")
    commit(run, {"long.txt": lines.replace("7\n", "seven\n", 1).replace("33\n", "")})
    approval = asked_to_merge(asking, propose(asking, run))
    assert difference(asking, approval, "long.txt") == [
        *("… from line 5", "  4", "  5", "  6", "- 7", "+ seven", "  8", "  9", "  10"),
        *("… from line 31", "  30", "  31", "  32", "- 33", "  34", "  35", "  36"),
    ]
    assert difference(asking, approval, "after it.txt") == ["… from the file before.txt"]


def test_a_hostile_line_stays_a_line_of_its_file(asking: Company, remote: Remote) -> None:
    """No text of a file passes for a header, another file or words of Remit, and none is cut."""
    hostile = (
        "x = 1 \x1b[2J\u202e\ttab\r\n"
        "diff --git a/other b/other\n@@ -1,1 +1,1 @@\n--- a/other\n+++ b/other\n"
        "difference of other:\n… no newline at the end of the file\n"
        f"{'long ' * 600}end\n"
    )
    run = at_work(asking, remote)
    commit(run, {"app.py": hostile, "a: b\u202e.py": "x\n"})
    approval = asked_to_merge(asking, propose(asking, run))
    lines = difference(asking, approval, "app.py")
    assert lines[0] == "… from line 1"
    assert all(line.startswith("+ ") for line in lines[1:])
    assert len(lines) == 1 + hostile.count("\n")
    assert "⟨U+001B" in lines[1]
    assert "⟨U+202E" in lines[1]
    assert "⟨U+000D" in lines[1]
    assert lines[-1].endswith("long end")
    for line in text_of(asking, approval).splitlines():
        assert not line.startswith(("difference of other", "--- ", "+++ "))


def test_a_difference_that_is_too_large_is_counted_and_linked(
    asking: Company, remote: Remote
) -> None:
    run = at_work(asking, remote)
    commit(run, {"small.txt": "one\n", "large.txt": "0123456\n" * (whole_diff.LARGEST // 8)})
    approval = asked_to_merge(asking, propose(asking, run))
    text = text_of(asking, approval)
    assert ELSEWHERE in text
    assert "difference of" not in text
    assert f"large.txt ({whole_diff.LARGEST // 8} added, 0 removed)" in text
    assert "small.txt (1 added, 0 removed)" in text
    assert "remit change show" in under(text, "difference")


def test_a_request_shows_the_commits_that_it_names(asking: Company, remote: Remote) -> None:
    """A later proposal has a difference of its own, and the earlier request says that it moved."""
    run = at_work(asking, remote)
    commit(run, {"a.txt": "one\n"})
    first = asked_to_merge(asking, propose(asking, run))
    commit(run, {"a.txt": "two\n"})
    second = asked_to_merge(asking, propose(asking, run), "another")
    assert difference(asking, second, "a.txt")[1:] == ["+ two"]
    assert "Other commits are proposed by now" in text_of(asking, first)


@pytest.mark.tampers
@pytest.mark.parametrize("what", ["bytes", "record"])
def test_a_difference_that_is_not_what_was_proposed_is_not_shown(
    what: str, asking: Company, remote: Remote
) -> None:
    """Its hash is in the chain: neither the document nor the event that names it can be another."""
    run = at_work(asking, remote)
    commit(run, {"a.txt": "one\n"})
    approval = asked_to_merge(asking, propose(asking, run))
    assert difference(asking, approval, "a.txt")[1:] == ["+ one"]
    ((recorded,),) = asking.sql("SELECT details FROM events WHERE action = 'change.propose'")
    details = json.loads(recorded)
    kept = details["difference"]
    place = next(Path(asking.app.settings.home, "blobs").rglob(f"*{kept['sha256']}*"))
    harmless = place.read_bytes().replace(b"one", b"two")
    if what == "bytes":
        place.write_bytes(harmless)
    else:
        with asking.app.blobs.receive(1 << 20) as spool:
            spool.write(harmless)
            other = asking.app.blobs.put(kept["file"], spool).sha256
        details["difference"] = {**kept, "sha256": other}
        asking.sql("DROP TRIGGER events_no_update")
        tampered = "UPDATE events SET details = ? WHERE action = 'change.propose'"
        asking.sql(tampered, json.dumps(details))
    text = text_of(asking, approval)
    assert ELSEWHERE in text
    assert "+ two" not in text
