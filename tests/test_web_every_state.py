"""Pages in their other states: empty, refused, with a mistake, after a form."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests import page_stage
from tests.browsing import (
    PHONE,
    Office,
    Visitor,
    check_accessible,
    check_drawn,
    check_fits,
    check_what_opens,
)
from tests.page_stage import BARE, PAGES, SENT

#: The same for pages that show something else before a form was sent.
ANSWERED: dict[str, dict[str, str]] = {
    "/hire": {"step": "preview", "name": "Elif", "role": "engineer", "adapter": "scripted"},
    "/apply": {"step": "try", "document": '[[agents]]\nname = "applied"\n'},
    "/setup/keys/new": {"c-agent": "Everywhere", "c-label": "laptop"},
    "/setup/secrets/new": {"kind": "env", "c-name": "one", "c-place": "NO_VAR", "step": "test"},
    "/events/verify": {},
}
#: Forms with a mistake.
MISTAKEN: dict[str, dict[str, str]] = {
    "/hire": {"step": "preview", "name": "not a name!"},
    "/org/preview": {"op": "move", "agent": "{agent}", "to": "Nobody"},
    "/apply": {"step": "try", "document": "[[agents"},
    "/setup/secrets/new": {"kind": "value"},
    "/companies/{company}/tell": {"to": "{agent}", "body": ""},
    "/companies/{company}/settings/limits": {"company_cents_per_day": "many"},
    "/files/{file}/edit": {"text": "Mine.", "version": "1", "hash": "0"},
    "/outcomes/{agent}/change": {"new_title": "Another", "version": "99"},
    "/agents/{agent}/configuration": {
        "tab": "configuration",
        "json": "1",
        "what": "change",
        "adapterConfig": "{",
    },
    "/approvals/{approval}/decide": {"decision": "approve", "revision": "7"},
    "/account/tokens": {"days": "many"},
    "/login": {"token": "rmt_user_nonsense"},
}
#: Pages of a company in which nothing has happened.
EMPTY = (
    *("/outcomes?status=completed", "/outcomes?view=list&query=nothing"),
    *("/org?q=nobody", "/files", "/inbox"),
    *(
        "/approvals?status=pending",
        "/changes",
        "/runs",
        "/runs?view=timeline",
        "/events?q=nothing",
        "/search?q=nothing",
    ),
    *(f"/setup/{noun}" for noun in ("secrets", "mcp-servers", "repositories", "checks", "keys")),
    *(f"/setup/{noun}" for noun in ("folders", "channels", "schedules", "budgets", "jobs")),
    "/as-of?at=2001-01-01T00:00",
)
#: What somebody sees who may change nothing.
READ_ONLY = (
    *("/", "/hire", "/apply", "/companies/new", "/instance", "/setup", "/setup/secrets/new"),
    *("/companies/{company}/settings", "/companies/{company}/levels", "/org/change?agent={agent}"),
    *("/agents/{agent}?tab=rights", "/agents/{agent}?tab=configuration", "/approvals/{approval}"),
    *("/changes/{change}", "/files/{file}/edit", "/outcomes/{submitted}"),
    "/setup/repositories/pushing?repo=site",
)


@pytest.fixture(scope="module")
def known(office: Office) -> Iterator[dict[str, str]]:
    with page_stage.staged(office) as found:
        below = office.agent("Moved", boss=found["agent"])
        done = office.board.must(
            "POST",
            office.path("reorganise"),
            {"operations": [{"op": "move", "agent": below["id"], "to": "agent:Submitter"}]},
        )
        found["moved"] = done["eventId"]
        found["empty"] = office.board.must("POST", "/api/companies", {"name": "Empty"})["id"]
        yield found


@pytest.fixture(scope="module")
def reader(chromium: Any, office: Office) -> Iterator[Visitor]:
    """Colours change at once, so that none is looked at on its way to another."""
    found = Visitor(chromium, office, reduced_motion="reduce")
    yield found
    found.close()


@pytest.fixture(scope="module")
def watcher(office: Office) -> Any:
    return office.user("watcher", "observer")


@dataclass(frozen=True)
class Look:
    """How a page is looked at by all rules of axe."""

    scheme: str
    width: int

    def check(self, page: Any) -> None:
        self.take(page)
        check_accessible(page)
        for width in (1440, PHONE["width"]):
            page.set_viewport_size({"width": width, "height": 900})
            check_fits(page)
            check_drawn(page)

    def take(self, page: Any) -> None:
        page.emulate_media(color_scheme=self.scheme)
        page.set_viewport_size({"width": self.width, "height": 900})


@pytest.fixture(
    params=[
        pytest.param(Look("dark", PHONE["width"]), id="phone by night"),
        pytest.param(
            Look("light", 1440),
            id="desk by day",
            marks=pytest.mark.campaign("each page is looked at so by test_web_every_page.py"),
        ),
    ]
)
def look(request: pytest.FixtureRequest) -> Look:
    found: Look = request.param
    return found


def send(page: Any, address: str, fields: dict[str, str], known: dict[str, str]) -> None:
    """A form as a browser sends it without scripts."""
    page.goto("/login")
    filled = {name: _named(value, known) for name, value in fields.items()}
    with page.expect_navigation():
        page.evaluate(
            """([address, fields]) => {
              const form = document.createElement("form");
              Object.assign(form, {method: "post", action: address});
              for (const [name, value] of Object.entries(fields)) {
                const field = document.createElement("textarea");
                form.append(Object.assign(field, {name, value}));
              }
              document.body.append(form);
              form.submit();
            }""",
            [address.format(**known), filled],
        )


def _named(value: str, known: dict[str, str]) -> str:
    whole = re.fullmatch(r"\{(\w+)\}", value)
    return known[whole[1]] if whole else value


@pytest.mark.requirement("FX-47")
@pytest.mark.parametrize("address", [*SENT, *ANSWERED])
def test_what_a_form_answers_is_accessible_and_fits(
    address: str, known: dict[str, str], reader: Visitor, look: Look
) -> None:
    page = reader.page
    send(page, address, {**SENT, **ANSWERED}[address], known)
    assert page.locator("main [role=alert]").count() == 0, page.locator("main").inner_text()
    look.check(page)


@pytest.mark.requirement("FX-47")
@pytest.mark.parametrize("address", MISTAKEN)
def test_a_mistake_is_told_on_a_page_that_is_accessible_and_fits(
    address: str, known: dict[str, str], reader: Visitor, look: Look
) -> None:
    page = reader.page
    send(page, address, MISTAKEN[address], known)
    assert page.get_by_role("alert").first.inner_text()
    look.check(page)


@pytest.mark.requirement("FX-47")
@pytest.mark.parametrize("address", EMPTY)
def test_a_page_with_nothing_on_it_is_accessible_and_fits(
    address: str, known: dict[str, str], reader: Visitor, look: Look
) -> None:
    sign = "&" if "?" in address else "?"
    page = reader.goto(f"{address}{sign}company={known['empty']}")
    assert page.locator(".empty").count(), "it says that there is nothing, and what comes here"
    look.check(page)


@pytest.mark.requirement("FX-47")
def test_what_an_observer_sees_is_accessible_and_fits(
    known: dict[str, str], visit: Callable[..., Visitor], watcher: Any, look: Look
) -> None:
    page = visit(watcher, reduced_motion="reduce").page
    for address in READ_ONLY:
        page.goto(address.format(**known))
        assert page.locator("main button.good, main button.danger").count() == 0, address
        look.check(page)


@pytest.mark.campaign("tests/test_web_every_page.py opens it all each time, on a phone by night")
@pytest.mark.requirement("FX-47")
def test_everything_that_opens_is_accessible_on_a_desk_by_day(
    known: dict[str, str], reader: Visitor
) -> None:
    page, tried = reader.page, set[str]()
    Look("light", 1440).take(page)
    for address in PAGES:
        page.goto(address.format(**known))
        check_what_opens(page, tried)


@pytest.mark.parametrize("address", BARE)
def test_a_page_without_the_frame_is_accessible_and_fits(
    address: str, known: dict[str, str], reader: Visitor, look: Look
) -> None:
    look.check(reader.goto(address.format(**known)))
