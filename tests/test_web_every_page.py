"""Every page: by day and by night, on a phone, a desk and a wide screen."""

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import pictures
from tests.browsing import Office, Visitor, check_accessible, check_drawn, check_fits

PAGES = Path(__file__).parent.parent / "src" / "remit" / "entrypoints" / "web" / "pages"
WIDTHS = (1440, 1920, 390)
#: Each page with what stands for the places in its address.
ADDRESSES = (
    *("/", "/?range=24h", "/search?q=a", "/design", "/account", "/setup", "/no/such/page"),
    *(
        "/companies/{company}",
        "/companies/{company}/settings",
        "/org",
        "/org/change?agent={agent}",
        "/hire",
    ),
    *("/agents/{agent}", "/agents/{agent}?tab=work", "/agents/{agent}?tab=mail"),
    *("/agents/{agent}?tab=rights", "/agents/{agent}?tab=configuration"),
    *("/agents/{agent}?tab=runs", "/agents/{agent}/terminate"),
    *("/approvals", "/approvals/{approval}", "/outcomes", "/outcomes?view=graph"),
    *("/outcomes/{agent}", "/files", "/files/{file}", "/files/{file}/edit", "/inbox"),
    *("/inbox/{message}", "/runs", "/runs/{run}", "/events", "/events/{event}"),
    *("/companies/{company}/people/{user}", "/companies/{company}/people", "/companies/new"),
    *("/instance", "/apply", "/as-of", "/changes", "/setup/secrets", "/setup/adapters"),
)
#: What stands there depends on what the machine has; they have no picture.
OF_THE_MACHINE = ("/setup", "/setup/adapters", "/instance")
#: Pages that are another when they are asked for, have no frame, or are tested where they are made.
LEFT_OUT = re.compile(
    r".*(/links?|/chat-code|/tokens|/webhook|/preview|/undo|/doctor|/news|/take-back|/update|/levels)"
    r"|.*/state|/instance/backups/.*|/changes/.*"
)


@pytest.fixture(scope="module")
def known(office: Office) -> dict[str, str]:
    """Something of each kind, so that no page is empty."""
    agent = office.agent("Everywhere", title="<b>Seen</b> on every page")
    mine = office.as_agent(agent)
    file = mine.must("POST", office.path("files"), {"description": "Plan", "content": "# Plan"})
    letter = mine.must(
        "POST", office.path("messages"), {"to": "board", "subject": "News", "body": "**Good.**"}
    )
    mine.must("POST", office.path("messages"), {"to": "board", "subject": "More", "body": "Soon."})
    mine.must("POST", office.path("questions"), {"question": "Which?", "options": ["a", "b"]})
    mine.must("POST", office.path("questions"), {"question": "And why?"})
    hired = office.hire("Asked", prompt="Be kind.")
    office.board.must(
        "POST", office.path("messages"), {"to": "agent:Everywhere", "subject": "Do", "body": "It."}
    )
    run = office.begin(agent)
    office.print(run, 1, "one line\n")
    office.end(run, "failed")
    event = office.board.must("GET", office.path("events?limit=1"))[0]
    return {
        "company": office.company,
        "agent": agent["id"],
        "file": file["id"],
        "message": letter["id"],
        "approval": hired["approval"]["id"],
        "run": run.id,
        "event": event["id"],
        "user": office.board.must("GET", "/api/me")["id"],
    }


@pytest.fixture(scope="module")
def reader(chromium: Any, office: Office) -> Iterator[Visitor]:
    found = Visitor(chromium, office, color_scheme="light", reduced_motion="reduce")
    yield found
    found.close()


@pytest.fixture(scope="module")
def desk(chromium: Any) -> Iterator[Any]:
    found = chromium.new_page()
    yield found
    found.close()


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.requirement("FX-47")
def test_a_page_is_accessible_and_fits(
    address: str, known: dict[str, str], reader: Visitor, desk: Any
) -> None:
    """All rules of axe by day on a desk and on a phone; by night what depends on colours; at each
    width what can be measured, and the whole as it was last looked at (`tests/pictures`)."""
    page = reader.page
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    page.emulate_media(color_scheme="light")
    answer = page.goto(address.format(**known))
    assert answer is not None
    assert answer.status in (200, 404 if address.startswith("/no/") else 200), address
    assert page.locator("nav[aria-label=Pages]").count() == 1, "a page has the frame of all pages"
    check_accessible(page)
    check_fits(page)
    check_drawn(page)
    page.emulate_media(color_scheme="dark")
    check_accessible(page, "color-contrast")
    page.set_viewport_size({"width": WIDTHS[2], "height": 800})
    check_accessible(page)
    check_fits(page)
    check_drawn(page)
    page.set_viewport_size({"width": WIDTHS[1], "height": 1000})
    check_fits(page)
    check_drawn(page)
    if address not in OF_THE_MACHINE:
        page.emulate_media(color_scheme="light")
        name = re.sub(r"\W+", "-", address).strip("-") or "first"
        pictures.compare(page, desk, name)


def test_every_page_is_looked_at() -> None:
    """A new page is added to the list above."""
    declared = {
        path
        for module in PAGES.rglob("*.py")
        for path in re.findall(r'site\.page\(\s*f?"([^"]+)"', module.read_text())
    }
    listed = {_shape(address.partition("?")[0]) for address in ADDRESSES}
    own = {path for path in declared if path.startswith("/") and not LEFT_OUT.fullmatch(path)}
    assert {_shape(path) for path in own} - listed == set()


def _shape(path: str) -> str:
    return re.sub(r"\{+\w+\}+", "*", path)


def test_what_all_pages_share_is_light_on_the_wire(office: Office) -> None:
    page = office.running.client()("GET", "/").body.decode()
    shared = set(re.findall(r"/static/[\w.]+", page)) | {
        f"/static/{name}"
        for name in ("page.js", "notify.js", "palette.js", "events.js", "icons.svg", "remit.css")
    }
    weight = 0
    for path in shared:
        packed = office.running.client()("GET", path, headers={"Accept-Encoding": "gzip"})
        assert packed.headers["Content-Encoding"] == "gzip"
        assert gzip.decompress(packed.body) == office.running.client()("GET", path).body
        weight += len(packed.body)
    assert weight < 25_000, f"{weight:,} bytes"


def test_strangers_meet_a_page_that_says_how_to_sign_in(
    office: Office, visit: Callable[..., Visitor]
) -> None:
    for scheme in ("light", "dark"):
        visitor = visit(color_scheme=scheme)
        visitor.context.clear_cookies()
        for address in ("/", "/login", "/runs"):
            page = visitor.goto(address)
            check_accessible(page)
            check_fits(page)


def test_what_is_broken_cut_off_or_covered_is_noticed(desk: Any) -> None:
    for html, told in (
        ("<h2 style='width: 9px; overflow-wrap: anywhere'>Inbox</h2>", "a word is broken"),
        ("<p style='width: 9px; overflow: hidden; white-space: nowrap'>Inbox</p>", "cut off"),
        ("<main><button>a</button><button style='margin-left: -15px'>b</button></main>", "covered"),
        ("<h2>Inbox</h2><main><button>a</button> <button>b</button></main>", ""),
    ):
        desk.set_content(html)
        found = pictures.within(desk, "drawn")
        assert [one.partition(":")[0] for one in found] == ([told] if told else [])
