"""Pictures of every page, wide and on a phone, by day and by night: `make screenshots`.

They are for whoever works on the pages, in build/screenshots; two of them are for the README.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from pictured_company import Company
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "build" / "screenshots"
KEPT = ROOT / "docs" / "images"
LARGEST_KEPT = 150_000
PROGRAMS = ("chromium", "chromium-browser", "chromium-headless-shell")
SIZES = {"wide": (1280, 860), "phone": (390, 844)}
#: Each page under the name of its picture. What this edition does not have is left out.
PAGES = {
    "needs-you": "/",
    "company": "/companies/{company}",
    "settings": "/companies/{company}/settings",
    "organisation": "/org",
    "agent": "/agents/{agent}",
    "hire": "/hire",
    "approvals": "/approvals",
    "approval": "/approvals/{approval}",
    "outcomes": "/outcomes",
    "graph": "/outcomes?view=graph&status=all",
    "outcome": "/outcomes/{outcome}",
    "files": "/files",
    "file": "/files/{file}",
    "changes": "/files/{file}?version=2&against=1",
    "mail": "/inbox",
    "runs": "/runs",
    "run": "/runs/{run}",
    "troubled-run": "/runs/{troubled}",
    "events": "/events",
    "authority": "/events/{event}",
}
#: For the README: the name of a picture, what is preferred to it if it is there, by day or night.
README = (("needs-you", (), "light"), ("approval", ("organisation",), "dark"))


def main() -> int:
    with (
        tempfile.TemporaryDirectory(prefix="remit-pictures-") as home,
        tempfile.TemporaryDirectory(prefix="remit-programs-") as programs,
        _instance(home) as url,
    ):
        board = (Path(home) / "board.token").read_text().strip()
        company = Company(url, board, Path(programs))
        company.make()
        addresses = _addresses(company)
        _tail(home, company.troubled)
        link = company.call("POST", "/api/login-links")["url"]
        with _browser() as browser:
            state = _signed_in(browser, link)
            taken = _take(browser, url, addresses, state)
            _keep(browser, url, addresses, state, taken)
    print(f"{len(taken)} pages in {PICTURES.relative_to(ROOT)}")
    return 0


def _tail(home: str, run: str) -> None:
    """What a terminal shows of a run that did not go smoothly."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    program = [str(Path(sys.executable).with_name("remit")), "run", "tail", run, "--no-follow"]
    told = subprocess.run(
        program, env={**os.environ, "REMIT_HOME": home}, capture_output=True, text=True, check=True
    )
    (PICTURES / "troubled-run.txt").write_text(told.stdout + told.stderr)


def _addresses(company: Company) -> dict[str, str]:
    known = {
        "company": company.id,
        "agent": company.ids["Lena"],
        "approval": company.hire["id"],
        "outcome": company.outcomes["app"],
        "file": company.plan["id"],
        "run": company.run,
        "troubled": company.troubled,
        "event": company.event,
    }
    return {name: address.format(**known) for name, address in PAGES.items()}


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
    browser: Browser, url: str, addresses: dict[str, str], state: dict[str, object]
) -> list[str]:
    PICTURES.mkdir(parents=True, exist_ok=True)
    taken: list[str] = []
    missing: set[str] = set()
    for size in SIZES:
        for scheme in ("light", "dark"):
            page = _page(browser, state, size, scheme)
            for name, address in addresses.items():
                if name in missing or not _open(page, url + address):
                    if name not in missing:
                        print(f"there is no page {address.partition('?')[0]}")
                    missing.add(name)
                    continue
                page.screenshot(path=PICTURES / f"{name}-{size}-{scheme}.png", full_page=True)
                if name not in taken:
                    taken.append(name)
            page.context.close()
    return taken


def _page(browser: Browser, state: dict[str, object], size: str, scheme: str) -> Page:
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,  # type: ignore[arg-type]
        storage_state=state,  # type: ignore[arg-type]
    )
    return context.new_page()


def _open(page: Page, address: str) -> bool:
    answer = page.goto(address)
    if answer is None or answer.status == 404:
        return False
    page.locator("[data-live-state][data-on]").wait_for()
    return True


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
