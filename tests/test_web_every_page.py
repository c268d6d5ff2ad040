"""Every page: by day and by night, on a phone, a desk and a wide screen."""

import gzip
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from remit.clock import Micros
from remit.entrypoints.http.wire.caller import COOKIE
from remit.model.organisation.principal import Principal
from remit.services import command
from remit.services.identity import Caller, identify
from remit.store.engine.database import Transaction
from tests import page_stage, pictures
from tests.browsing import (
    Office,
    Visitor,
    check_accessible,
    check_drawn,
    check_fits,
    check_what_opens,
)
from tests.page_stage import BARE, NO_PAGES, PAGES, SCHEMES, SENT, WIDTHS, name_of, shape
from tests.web_attacks import web_routes


@pytest.fixture(scope="module")
def known(office: Office) -> Iterator[dict[str, str]]:
    with page_stage.staged(office) as found:
        yield found


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


@pytest.fixture(scope="module")
def tried() -> set[str]:
    """What was opened on earlier pages."""
    return set()


def opened(reader: Visitor, address: str, known: dict[str, str]) -> Any:
    page = reader.page
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    page.emulate_media(color_scheme="light")
    answer = page.goto(address.format(**known))
    assert answer is not None
    assert answer.status == (404 if address.startswith("/no/") else 200), address
    return page


@pytest.mark.parametrize("address", PAGES)
@pytest.mark.requirement("FX-47")
def test_a_page_is_accessible_and_fits(
    address: str, known: dict[str, str], reader: Visitor, desk: Any, tried: set[str]
) -> None:
    """All rules of axe by day on a desk and by night on a phone, there also of what opens; at each
    width what can be measured, and the whole as it was last looked at (`tests/pictures`)."""
    page = opened(reader, address, known)
    assert page.locator("nav[aria-label=Pages]").count() == 1, "a page has the frame of all pages"
    check_accessible(page)
    check_fits(page)
    check_drawn(page)
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": WIDTHS[2], "height": 800})
    check_accessible(page)
    check_fits(page)
    check_drawn(page)
    check_what_opens(page, tried)
    assert {"palette", "keys"} <= tried, "they are in the frame of all pages"
    page.set_viewport_size({"width": WIDTHS[1], "height": 1100})
    check_fits(page)
    check_drawn(page)
    page.emulate_media(color_scheme="light")
    pictures.compare(page, desk, name_of(address))


@pytest.mark.campaign("every rule of axe in all six settings, of which two are tried each time")
@pytest.mark.parametrize("address", PAGES)
@pytest.mark.requirement("FX-47")
def test_a_page_is_accessible_in_every_setting(
    address: str, known: dict[str, str], reader: Visitor
) -> None:
    page = opened(reader, address, known)
    for scheme in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            check_accessible(page)
            check_fits(page)


def test_every_page_is_looked_at(office: Office) -> None:
    """A new page is added to `page_stage.PAGES`; one that a form leads to, to `SENT`."""
    shown = {path for method, path in web_routes(office.running.app) if method == "GET"}
    listed = {shape(address) for address in (*PAGES, *BARE, *SENT)}
    assert {shape(path) for path in shown - NO_PAGES.keys()} - listed == set()
    assert NO_PAGES.keys() - shown == set()


def test_every_picture_is_of_a_page() -> None:
    kept = {path.stem for path in pictures.FOLDER.glob("*.png")}
    assert kept == {name_of(address) for address in PAGES}


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
    for scheme in SCHEMES:
        visitor = visit(color_scheme=scheme)
        visitor.context.clear_cookies()
        for address in ("/", "/login", "/runs"):
            page = visitor.goto(address)
            check_accessible(page)
            check_fits(page)


def test_what_is_not_accessible_is_noticed(desk: Any) -> None:
    page = (
        "<html lang=en><title>Inbox</title><main><h1>Inbox</h1>{}</main></html>"  # nothing is wrong
    )
    for part, rule in (
        ("<input>", "label"),
        ("<button></button>", "button-name"),
        ("<p style='color: #bbb; background: #fff'>Quiet</p>", "color-contrast"),
        ("<div role=nothing>a</div>", "aria-roles"),
        ("<img src=data:>", "image-alt"),
    ):
        desk.set_content(page.format(part))
        with pytest.raises(AssertionError, match=f"(?m)^{rule}: .*{part[:4]}"):
            check_accessible(desk)
    desk.set_content(page.format(""))
    check_accessible(desk)


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


def test_what_differs_in_one_place_of_a_picture_is_noticed(desk: Any) -> None:
    """A block of 12 by 10 pixels in the second of two pictures, all of it in one square."""
    plain, blot = desk.evaluate(
        """() => [0, 12].map((size) => {
          const canvas = Object.assign(document.createElement("canvas"), { width: 50, height: 60 });
          const paper = canvas.getContext("2d");
          paper.fillStyle = "#888";
          paper.fillRect(0, 0, 50, 60);
          paper.fillStyle = "#8f8";
          paper.fillRect(31, 45, size, 10);
          return canvas.toDataURL();
        })"""
    )
    both: str = pictures.within(desk, "together", [plain, plain])
    assert pictures.within(desk, "differ", [both, [plain, plain], pictures.SAME]) == 0
    assert pictures.within(desk, "differ", [both, [plain, blot], pictures.SAME]) == 12 * 10 / 16**2
    assert pictures.within(desk, "differ", [both, [plain, blot], 0x77]) == 0
    assert pictures.within(desk, "differ", [both, [plain], pictures.SAME]) == 1


#: Pages whose making is kept in the record, which takes a transaction of its own, before or
#: between: how many there are, and what is kept.
RECORDED = {
    "/agents/{agent}/terminate": (2, "a preview"),
    "/agents/{agent}/update": (2, "a preview"),
    "/files/{file}": (3, "a reading, if who looks may, which the page lists"),
    "/files/{file}?version=2&against=1": (4, "two readings"),
    "/files/{file}/edit": (2, "a reading"),
    "/inbox/{message}": (2, "a reading"),
    "/inbox/{sent}/take-back": (3, "a preview and a reading"),
}


def test_a_page_is_one_transaction_of_its_reader(
    office: Office, known: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a page shows is of one moment, and who looks is identified once in it."""
    seen: list[str] = []
    session = office.session(office.board)

    def counted(tx: Transaction, caller: Caller, now: Micros) -> Principal:
        if caller.token == session:  # other pages may be open
            seen.append(caller.token)
        return identify(tx, caller, now)

    monkeypatch.setattr(command, "identify", counted)
    cookie = {"Cookie": f"{COOKIE}={session}"}
    # Requests on the first page are kept as looked at, once.
    office.running.client()("GET", "/", headers=cookie)
    taken = {}
    for address in PAGES:
        seen.clear()
        office.running.client()("GET", address.format(**known), headers=cookie)
        taken[address] = len(seen)
    more = {address: times for address, times in taken.items() if times > 1}
    assert more == {address: times for address, (times, _) in RECORDED.items()}
