"""Changes in the browser: read side by side, talked about by line, judged as they were shown."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from remit.services.changes import watches
from remit.services.identity import as_system
from tests.browsing import PHONE, Office, Visitor, check_accessible, check_fits
from tests.forge_server import TOKEN, forge
from tests.git_remote import trust
from tests.page_stage import Proposals
from tests.web_stage import HOSTILE
from tests.working import eventually

GOOD = {"app.py": "def add(a, b):\n    return a + b\n"}


@pytest.fixture
def proposals(office: Office, tmp_path: Path) -> Proposals:
    return Proposals(office, tmp_path)


@pytest.mark.requirement("FX-30")
def test_a_change_is_found_read_commented_by_line_and_merged(
    proposals: Proposals, visitor: Visitor
) -> None:
    change = proposals.propose({**GOOD, "new.txt": "one\ntwo\n"}, description="It is **wrong**.")
    page = visitor.goto("/changes")
    page.get_by_role("link", name="Add, do not subtract").first.click()
    expect(page.get_by_role("heading", name="2 files +3")).to_be_visible()
    lines = page.get_by_role("region", name="Lines of app.py", exact=True)
    expect(lines.locator(".removed mark")).to_have_text("-")
    expect(lines.locator(".added mark")).to_have_text("+")
    check_accessible(page)
    page.get_by_role("link", name="Side by side").click()
    expect(page.locator(".lines-split .sides").first).to_be_visible()
    check_accessible(page)
    page.get_by_text("About a line").click()
    page.get_by_label("Comment", exact=True).fill("Why **plus**?")
    page.get_by_label("File", exact=True).select_option("app.py")
    page.get_by_role("spinbutton", name="Line").fill("2")
    page.get_by_role("button", name="Add comment").click()
    expect(page.locator(".lines .said")).to_contain_text("Why plus?")
    page.get_by_label("Note").fill("Good.")
    page.get_by_role("button", name="Merge").click()
    expect(page.locator("[data-part=state]")).to_contain_text("approved")
    assert "merge" in proposals.shown(change)["waiting"]


def test_a_proposal_is_pushed_from_its_page_after_a_look(
    proposals: Proposals, visitor: Visitor
) -> None:
    office = proposals.office
    office.board.must("PATCH", office.path(f"repos/{proposals.name}"), {"push": "after_look"})
    change = proposals.propose(GOOD)
    page = visitor.goto("/")
    page.get_by_role("link", name="Review: push Add, do not subtract").click()
    expect(page.locator("[data-part=state]")).to_contain_text("waits for a person's look")
    check_accessible(page)
    page.get_by_role("button", name="Push to the forge").click()
    expect(page.locator("[data-part=state]")).not_to_contain_text("waits for a person's look")
    assert proposals.shown(change)["waiting"] == ["publish"]


@pytest.mark.requirement("FX-80")
def test_a_change_says_first_that_it_will_instruct_agents(
    proposals: Proposals, visitor: Visitor
) -> None:
    change = proposals.propose({**GOOD, "web/AGENTS.md": "Obey.\n"})
    page = visitor.goto(f"/changes/{change}")
    files = page.locator(".change-file")
    expect(files.first.locator("h3")).to_contain_text("web/AGENTS.md")
    expect(files.first).to_contain_text("will instruct agents")
    expect(files.nth(1)).not_to_contain_text("will instruct agents")
    decide = page.locator("section", has=page.get_by_role("heading", name="Decide"))
    expect(decide).to_contain_text("will instruct agents web/AGENTS.md")
    check_accessible(page)


@pytest.mark.requirement("FX-30")
def test_what_was_proposed_after_the_page_was_opened_is_not_decided_about(
    proposals: Proposals, visitor: Visitor
) -> None:
    change = proposals.propose({"app.py": "pass\n"})
    page = visitor.goto(f"/changes/{change}")
    proposals.propose(GOOD)
    page.get_by_label("Note").fill("As I saw it.")
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("alert")).to_contain_text("Something else is proposed by now")
    assert proposals.shown(change)["decision"] is None


def test_hostile_text_is_only_text_and_fits_on_a_phone(
    proposals: Proposals, visitor: Visitor
) -> None:
    text = HOSTILE + "\n" + "x" * 3000 + "\u202e\n"
    change = proposals.propose({"a<b>.py": text}, title=HOSTILE[:150], description=HOSTILE)
    page = visitor.goto(f"/changes/{change}")
    expect(page.locator(".lines")).to_contain_text("⟨U+202E⟩")
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    check_fits(page)
    check_accessible(page)


@pytest.mark.requirement("FX-30", "FX-31")
def test_what_happened_at_the_forge_is_on_the_page(
    office: Office, visitor: Visitor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever asks to look need not wait until that was not asked for a while.
    monkeypatch.setattr(watches, "_LEAST", 0)
    monkeypatch.setenv("WEB_FORGE_TOKEN", TOKEN)
    app = office.running.app
    with forge("github", tmp_path / "remotes/acme/site.git", tmp_path) as there:
        trust(monkeypatch, there.certificate)
        proposals = Proposals(office, tmp_path, there)
        change = proposals.propose(GOOD)

        def look_until(seen: Callable[[], object]) -> None:
            async def look() -> None:
                await app.publisher.tick()
                await app.gate(as_system(), watches.ring, repo=proposals.repo)
                await app.watcher.tick()

            def looked() -> object:
                office.do(look())
                return seen()

            eventually(looked)

        look_until(lambda: proposals.shown(change)["request"])
        (pull,) = there.pulls
        there.check(there.head(pull.branch), "unit", False)
        there.pushers.add("alice")
        said = {"path": "app.py", "line": 2, "commit": there.head(pull.branch)}
        there.say(pull.number, "alice", "Why **plus**?", **said)
        there.say(pull.number, "alice", "No.", verdict="changes", commit=said["commit"])
        there.say(pull.number, "mallory", HOSTILE)
        look_until(lambda: len(proposals.shown(change)["comments"]) == 3)
        page = visitor.goto(f"/changes/{change}")
        state = page.locator("[data-part=state]")
        expect(state.get_by_role("link", name=str(pull.number))).to_have_attribute(
            "href", f"{there.base}/acme/site/pull/{pull.number}"
        )
        expect(state).to_contain_text("changes requested by alice")
        expect(state).to_contain_text("failed unit")
        expect(page.locator(".lines .said")).to_contain_text("Why plus?")
        expect(page.get_by_text("mallory (from outside)")).to_be_visible()
        check_accessible(page)
        expect(
            page.get_by_label("Merge", exact=True).locator("option[value=squash]")
        ).to_have_count(1)
        # GitHub does not fast-forward.
        expect(page.get_by_label("Merge", exact=True).locator("option[value=ff]")).to_have_count(0)
        office.board.must("DELETE", office.path(f"repos/{proposals.name}"))
