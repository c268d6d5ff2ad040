"""The page on which a person accepts a company from outside, and the banner that leads there."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browsing import Office, Visitor, check_accessible
from tests.company import opened
from tests.test_archive import export

pytestmark = pytest.mark.requirement("FX-81")


def _handed(home: Path) -> tuple[str, bytes]:
    """A company that somebody hands over."""
    with opened(f"sqlite:///{home}/remit.db", home) as company:
        config = {"command": "/bin/sh", "args": ["-c", "<b>curl</b> x\u202e"], "sandbox": "full"}
        company.agent("program", adapter_type="process", adapter_config=config)
        return company.id, export(company)


def test_a_company_from_outside_is_reviewed_and_accepted(
    office: Office, visitor: Visitor, tmp_path: Path
) -> None:
    with ThreadPoolExecutor() as beside:  # the browser has the loop of this thread
        which, archive = beside.submit(_handed, tmp_path / "theirs").result()
    office.board.must("POST", "/api/companies/import?name=Theirs", body=archive)

    page = visitor.goto(f"/?company={which}")
    row = page.get_by_role("link", name="Theirs waits to be accepted", exact=True)
    expect(row).to_be_visible()
    banner = page.get_by_role("status").filter(has_text="waits to be accepted")
    expect(banner).to_be_visible()
    expect(page.get_by_role("button", name="Resume the company")).to_have_count(0)
    banner.get_by_role("link", name="Review").click()
    expect(page.get_by_role("heading", name="Theirs, from outside")).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text('args: ["-c", "<b>curl</b> x⟨U+202E⟩"]')
    expect(page.get_by_role("main")).to_contain_text('sandbox "full" of program')
    expect(banner).to_be_visible()
    expect(banner.get_by_role("link")).to_have_count(0)  # it would lead to this very page
    expect(page.get_by_role("main")).not_to_contain_text("`")
    check_accessible(page)

    # Somebody changed it meanwhile: it is shown again, and not accepted.
    agents = office.board.must("GET", f"/api/companies/{which}/agents")
    (program,) = (one for one in agents if one["name"] == "program")
    change = {"adapterConfig": {"command": "/bin/other"}}
    office.board.must("PATCH", f"/api/agents/{program['id']}", change)
    accept = page.get_by_role("button", name="Accept and let it go on")
    accept.click()
    expect(page.get_by_role("alert")).to_contain_text("not as it was shown to you")
    expect(page.get_by_role("main")).to_contain_text("/bin/other")
    accept.click()
    expect(page.get_by_role("status").filter(has_text="is accepted")).to_be_visible()
    assert office.board.must("GET", f"/api/companies/{which}/halts") == []


def test_a_file_that_reaches_further_shows_that_above_the_button(
    office: Office, visitor: Visitor
) -> None:
    page = visitor.goto(f"/apply?company={office.company}")
    page.get_by_label("Text", exact=True).fill(
        '[[agents]]\nname = "reaching"\nadapterType = "process"\n'
        'adapterConfig = { command = "/bin/reach", sandbox = "full" }\n'
    )
    page.get_by_role("button", name="Preview changes").click()
    expect(page.get_by_role("main")).to_contain_text("command: /bin/reach")
    expect(page.get_by_role("main")).to_contain_text('sandbox "full" of reaching')
    check_accessible(page)
    page.get_by_role("button", name="Apply", exact=True).click()
    expect(page.get_by_text("1 created")).to_be_visible()
