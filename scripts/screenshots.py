"""Pictures of every page, wide and on a phone, by day and by night: `make screenshots`.

They are in build/screenshots, for the work on the pages; two of them are for the README. Three
companies are shown: one that works, a new one, and one of a thousand agents, most of which stand
still. Names of pages take those alone: `scripts/screenshots.py first agent --company thousand`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pictured_company import Company, earlier_runs, thousand_agents
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "build" / "screenshots"
KEPT = ROOT / "docs" / "images"
LARGEST_KEPT = 220_000
PROGRAMS = ("chromium", "chromium-browser", "chromium-headless-shell")
SIZES = {"wide": (1440, 900), "large": (1920, 1080), "phone": (390, 844)}
#: The README is read at half that size.
KEPT_SIZE = (1280, 860)
SET_UP = (
    *("adapters", "secrets", "mcp-servers", "repositories", "checks", "channels", "folders"),
    *("schedules", "budgets", "jobs", "keys"),
)
TABS = ("work", "mail", "runs", "rights", "configuration")
#: Each page under the name of its picture.
PAGES = {
    "first": "/",
    "search": "/search?q=read",
    "design": "/design",
    "account": "/account",
    "setup": "/setup",
    **{f"setup-{one}": f"/setup/{one}" for one in SET_UP},
    "levels": "/companies/{company}/levels",
    "new-secret": "/setup/secrets/new",
    "new-channel": "/setup/channels/new",
    "new-schedule": "/setup/schedules/new",
    "new-mcp-server": "/setup/mcp-servers/new",
    "new-repository": "/setup/repositories/new",
    "new-check": "/setup/checks/new",
    "new-folder": "/setup/folders/new",
    "new-budget": "/setup/budgets/new",
    "new-key": "/setup/keys/new",
    "settings": "/companies/{company}/settings",
    "person": "/companies/{company}/people/{user}",
    "new-company": "/companies/new",
    "instance": "/instance",
    "apply": "/apply",
    "as-of": "/as-of",
    "as-of-now": "/as-of?at={now}",
    "as-of-permissions": "/as-of?at={now}&what=grants",
    "organisation": "/org",
    "chart": "/org?view=chart",
    "move": "/org/change?agent={agent}",
    "agent": "/agents/{agent}",
    **{f"agent-{one}": f"/agents/{{agent}}?tab={one}" for one in TABS},
    "terminate": "/agents/{agent}/terminate",
    "update": "/agents/{agent}/update",
    "state-document": "/agents/{agent}/state",
    "hire": "/hire",
    "approvals": "/approvals",
    "approval": "/approvals/{approval}",
    "outcomes": "/outcomes",
    "outcomes-list": "/outcomes?view=list",
    "graph": "/outcomes?view=graph&status=all",
    "outcome": "/outcomes/{outcome}",
    "files": "/files",
    "file": "/files/{file}",
    "file-edit": "/files/{file}/edit",
    "changes": "/files/{file}?version=2&against=1",
    "proposals": "/changes",
    "review": "/changes/{change}",
    "review-split": "/changes/{change}?view=split",
    "mail": "/inbox",
    "letter": "/inbox/{letter}",
    "runs": "/runs",
    "timeline": "/runs?view=timeline",
    "run": "/runs/{run}",
    "troubled-run": "/runs/{troubled}",
    "record": "/events",
    "record-every": "/events?every=1",
    "authority": "/events/{event}",
    "missing": "/no/such/page",
}
#: For the README: the name of a picture, what is preferred to it if it is there, by day or night.
README = (("first", (), "light"), ("approval", ("organisation",), "dark"))
COMPANIES = ("working", "new", "thousand")
#: What is in a company before its instance starts.
FILLED_BY = {"working": earlier_runs, "thousand": thousand_agents}


def main() -> int:
    wanted = _arguments()
    pages = {name: PAGES[name] for name in wanted.pages or PAGES}
    taken: list[str] = []
    for name in wanted.company or COMPANIES:
        with (
            tempfile.TemporaryDirectory(prefix="remit-pictures-") as home,
            tempfile.TemporaryDirectory(prefix="remit-programs-") as programs,
        ):
            if name in FILLED_BY:
                FILLED_BY[name](Path(home))
            with _instance(home) as url, _browser() as browser:
                company = Company(url, _board(home), Path(programs))
                known = _made(company, home) if name == "working" else _found(company)
                addresses = _addresses(pages, known)
                state = _signed_in(browser, company.call("POST", "/api/login-links")["url"])
                before = "" if name == "working" else f"{name}-"
                named = {f"{before}{one}": address for one, address in addresses.items()}
                taken += _take(browser, url, named, state, wanted.size or list(SIZES))
                if name == "working" and {usual for usual, _, _ in README} <= addresses.keys():
                    _keep(browser, url, addresses, state, taken)
    print(f"{len(taken)} pages in {PICTURES.relative_to(ROOT)}")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Take pictures of pages.")
    parser.add_argument("pages", nargs="*", choices=[*PAGES, []], metavar="PAGE")
    parser.add_argument("--company", action="append", choices=COMPANIES)
    parser.add_argument("--size", action="append", choices=list(SIZES))
    return parser.parse_args()


def _board(home: str) -> str:
    return (Path(home) / "board.token").read_text().strip()


def _tail(home: str, run: str) -> None:
    """What a terminal shows of a run that did not go smoothly."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    program = [str(Path(sys.executable).with_name("remit")), "run", "tail", run, "--no-follow"]
    told = subprocess.run(
        program, env={**os.environ, "REMIT_HOME": home}, capture_output=True, text=True, check=True
    )
    (PICTURES / "troubled-run.txt").write_text(told.stdout + told.stderr)


def _made(company: Company, home: str) -> dict[str, str]:
    """What the places in addresses stand for in the company that works."""
    company.make()
    _tail(home, company.troubled)
    return {
        "company": company.id,
        "agent": company.ids["Lena"],
        "approval": company.hire["id"],
        "outcome": company.outcomes["app"],
        "file": company.plan["id"],
        "run": company.run,
        "troubled": company.troubled,
        "event": company.event,
        "change": company.change,
        "letter": company.call("GET", company.here("messages"))[0]["id"],
        "user": company.call("GET", "/api/me")["id"],
        "now": _now(),
    }


def _found(company: Company) -> dict[str, str]:
    """The same in a company that is there already: what it has of each kind."""
    company.id = company.call("GET", "/api/companies")[0]["id"]
    lists = {"agent": "agents", "outcome": "outcomes", "file": "files", "run": "runs"}
    lists |= {"event": "events", "letter": "messages", "approval": "approvals"}
    known = {"company": company.id, "user": company.call("GET", "/api/me")["id"], "now": _now()}
    for name, path in lists.items():
        for one in company.call("GET", company.here(f"{path}?limit=1")):
            known[name] = one["id"]
    return known


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _addresses(pages: dict[str, str], known: dict[str, str]) -> dict[str, str]:
    """Without those that are about something that is not there."""
    return {
        name: address.format(**known)
        for name, address in pages.items()
        if set(re.findall(r"\{(\w+)\}", address)) <= known.keys()
    }


@contextlib.contextmanager
def _instance(home: str) -> Iterator[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("REMIT_")}
    remit = Path(sys.executable).with_name("remit")
    program = [str(remit), "up", "--port", "0", "--slots", "2"]
    with subprocess.Popen(
        program, env={**kept, "REMIT_HOME": home}, stdout=subprocess.DEVNULL
    ) as process:
        try:
            yield _listening(Path(home), process)
        finally:
            process.terminate()


def _listening(home: Path, process: subprocess.Popen[bytes]) -> str:
    """Where it listens, once it does."""
    for _ in range(300):
        with contextlib.suppress(OSError, IndexError):
            url = (home / "run" / "instance.lock").read_text().splitlines()[1]
            if (home / "board.token").exists() and _answers(url):
                return url
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit("The instance did not start.")


def _answers(url: str) -> bool:
    from urllib.request import urlopen

    with contextlib.suppress(OSError), urlopen(f"{url}/health", timeout=5) as answer:  # noqa: S310
        return bool(answer.status == 200)
    return False


@contextlib.contextmanager
def _browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def _signed_in(browser: Browser, link: str) -> dict[str, object]:
    context = browser.new_context()
    page = context.new_page()
    page.goto(link)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_load_state()
    state: dict[str, object] = context.storage_state()  # type: ignore[assignment]
    context.close()
    return state


def _take(
    browser: Browser,
    url: str,
    addresses: dict[str, str],
    state: dict[str, object],
    sizes: Sequence[str],
) -> list[str]:
    PICTURES.mkdir(parents=True, exist_ok=True)
    for size in sizes:
        for scheme in ("light", "dark"):
            page = _page(browser, state, size, scheme)
            for name, address in addresses.items():
                _open(page, url + address)
                page.screenshot(path=PICTURES / f"{name}-{size}-{scheme}.png", full_page=True)
            page.context.close()
    return list(addresses)


def _page(browser: Browser, state: dict[str, object], size: str, scheme: str) -> Page:
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,  # type: ignore[arg-type]
        storage_state=state,  # type: ignore[arg-type]
    )
    return context.new_page()


def _open(page: Page, address: str) -> None:
    page.goto(address)
    if page.locator("[data-live-state]").count():
        page.locator("[data-live-state][data-on]").wait_for()


def _keep(
    browser: Browser,
    url: str,
    addresses: dict[str, str],
    state: dict[str, object],
    taken: list[str],
) -> None:
    """The two for the README: as much as fits a window, and small enough to load at once."""
    KEPT.mkdir(parents=True, exist_ok=True)
    for number, (usual, preferred, scheme) in enumerate(README, 1):
        name = next((one for one in preferred if one in taken), usual)
        page = _page(browser, state, "wide", scheme)
        page.set_viewport_size({"width": KEPT_SIZE[0], "height": KEPT_SIZE[1]})
        _open(page, url + addresses[name])
        path = KEPT / f"dashboard-{number}.png"
        page.screenshot(path=path)
        page.context.close()
        size = path.stat().st_size
        print(f"{path.relative_to(ROOT)}: {name}, {scheme}, {size // 1000} kB")
        if size > LARGEST_KEPT:
            raise SystemExit("That is too large for a README.")


if __name__ == "__main__":
    sys.exit(main())
