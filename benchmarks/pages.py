"""Pages of the dashboard: what they take of the server, how large they are, and what growing costs.

The server's time is what its process computes: other programs on the machine do not count.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode, urlsplit

from benchmarks import office
from benchmarks.bulk import (
    fill,
    fill_events,
    fill_leases,
    fill_mail_of_user,
    fill_outcomes,
    fill_runs,
    fill_tree,
    stop_agents,
)
from benchmarks.harness import KIB_4, Plan, Row, shown
from benchmarks.instance import Instance, started
from benchmarks.office import Office
from benchmarks.wire import Wire
from remit.services.people import users

MOST_SECONDS, MOST_BYTES = 0.300, 150_000
#: The first page is looked at most, and fetched again whenever something happens.
FIRST_SECONDS, FIRST_BYTES = 0.100, 60_000
#: Agents, outcomes, files, events, letters to the board: of a company that grew, and of a new one.
LARGE, SMALL = (1_000, 10_000, 1_000, 100_000, 200), (10, 20, 10, 100, 5)
HURRIED = (200, 2_000, 200, 5_000, 50)
#: As much of what is repeated as tells two pages apart.
FEWEST = 8
PAGES = (
    ("/", "first page"),
    ("/outcomes", "outcomes"),
    ("/outcomes?view=list", "outcomes as a list"),
    ("/outcomes?query=Part+1", "outcomes by a word of the title"),
    ("/outcomes?actionable=1", "outcomes that can be worked on"),
    ("/outcomes?view=graph", "the graph of outcomes"),
    ("/outcomes/{root}", "the outcome at the top"),
    ("/events", "events"),
    ("/events?every=1", "every event"),
    ("/events?range=yesterday", "events of yesterday"),
    ("/events?q=part", "events by a word"),
    ("/events?refused=1", "events, refused only"),
    ("/events/{event}", "one event"),
    ("/files", "files"),
    ("/files?query=measured", "files by a word of the title"),
    ("/files?query=measured&inside=1", "files by a word of their contents"),
    ("/files/{file}", "one file"),
    ("/approvals", "approvals"),
    ("/changes", "changes"),
    ("/org", "organisation"),
    ("/org?q=1", "organisation by a word"),
    ("/org?status=error", "organisation, stopped only"),
    ("/org?view=chart", "the organisation as a chart"),
    ("/org/change?agent={root}", "moving an agent"),
    ("/hire", "hiring"),
    ("/agents/{root}", "one agent"),
    ("/agents/{root}?tab=work", "the work of an agent"),
    ("/agents/{root}?tab=mail", "the mail of an agent"),
    ("/agents/{root}?tab=runs", "the runs of an agent"),
    ("/agents/{root}?tab=rights", "the permissions of an agent"),
    ("/agents/{root}?tab=configuration", "the configuration of an agent"),
    ("/inbox", "mail"),
    ("/inbox?box=all", "all mail"),
    ("/inbox/{letter}", "one letter"),
    ("/runs", "runs"),
    ("/runs?status=failed", "failed runs"),
    ("/runs?view=timeline", "runs over time"),
    ("/runs/{run}", "one run"),
    ("/search?q=part", "search"),
    ("/search?q=measured&inside=1", "search in contents"),
    ("/companies/{company}/settings", "settings"),
    ("/companies/{company}/levels", "permission levels"),
    ("/setup", "set-up"),
    ("/setup/adapters", "programs and models"),
    ("/setup/budgets", "budgets"),
    ("/setup/keys", "agent keys"),
    ("/setup/channels/new", "a new channel"),
    ("/as-of?at={now}", "the organisation as of a time"),
    ("/as-of?at={now}&what=grants", "permissions as of a time"),
    ("/account", "account"),
    ("/instance", "instance"),
    ("/design", "design"),
)


def measure(plan: Plan) -> Iterator[Row]:
    with contextlib.ExitStack() as stack:
        large = Reader(stack, plan.home("pages-large"), HURRIED if plan.quick else LARGE)
        small = Reader(stack, plan.home("pages-small"), SMALL)
        for path, name in PAGES:
            if not large.has(path):
                continue  # a page that this edition does not have
            taken, in_small = large.takes(path, plan), small.takes(path, plan)
            yield _row(name, large.sizes[path], taken, in_small)


def _row(name: str, size: int, taken: float, in_small: float) -> Row:
    first = name == PAGES[0][1]
    most_seconds = FIRST_SECONDS if first else MOST_SECONDS
    most_bytes = FIRST_BYTES if first else MOST_BYTES
    return Row(
        name,
        f"{shown(taken)}, {size / 1000:.0f} kB",
        f"a small company: {shown(in_small)}",
        taken / in_small,
        f"< {most_seconds * 1000:.0f} ms, {most_bytes // 1000} kB",
        taken < most_seconds and size < most_bytes,
    )


def _processor(pid: int) -> float:
    """Return the seconds that a process has computed, by Linux's clock of the process."""
    return time.clock_gettime(~pid << 3 | 2)


class Reader:
    """A person at a browser, as far as the instance notices."""

    def __init__(
        self,
        stack: contextlib.ExitStack,
        home: Path,
        sizes: tuple[int, int, int, int, int],
        *,
        watched: bool = False,
    ) -> None:
        with office.opened(home) as here:
            self.root = here.agent_id
            fill_company(here, *sizes)
        self.instance = stack.enter_context(started(home, watched=watched))
        self.cookie = _signed_in(self.instance)
        self._stack = stack
        self.sizes: dict[str, int] = {}
        self._names = {"root": self.root, "company": self.instance.company}
        for name, of in (("run", "runs"), ("file", "files"), ("event", "activity")):
            found = self.instance.ask("GET", f"/api/companies/{self.instance.company}/{of}?limit=1")
            self._names[name] = found[0]["id"]
        letters = self.instance.ask("GET", f"/api/companies/{self.instance.company}/messages")
        self._names["letter"] = letters[0]["id"]
        self._names["now"] = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())

    def address(self, path: str) -> str:
        return path.format(**self._names)

    def takes(self, path: str, plan: Plan) -> float:
        """Return the seconds of the server's own computing for one view of a page."""
        get = self.get(path)
        get()
        count = max(plan.some(20), FEWEST)
        before = _processor(self.instance.pid)
        for _ in range(count):
            get()
        return (_processor(self.instance.pid) - before) / count

    def has(self, path: str) -> bool:
        place = urlsplit(self.instance.url)
        connection = HTTPConnection(place.hostname or "", place.port, timeout=30)
        try:
            connection.request("GET", self.address(path), headers={"Cookie": self.cookie})
            return connection.getresponse().status == 200
        finally:
            connection.close()

    def get(self, path: str) -> Callable[[], object]:
        def request() -> bytes:
            host = urlsplit(self.instance.url).netloc
            return (
                f"GET {self.address(path)} HTTP/1.1\r\nHost: {host}\r\n"
                f"Cookie: {self.cookie}\r\n\r\n"
            ).encode()

        def take(size: int) -> None:
            self.sizes[path] = size

        wire = Wire(self.instance.url, _Get(request, take))
        self._stack.callback(wire.close)
        return wire.exchange


class _Get:
    def __init__(self, request: Callable[[], bytes], take: Callable[[int], None]) -> None:
        self.request = request
        self._take = take

    def take(self, _head: bytes, body: bytes, /) -> None:
        self._take(len(body))


def fill_company(
    here: Office, agents: int, outcomes: int, files: int, events: int, letters: int
) -> None:
    # Ten reports each, as deep as that takes.
    below = fill_tree(here, [None if n < 10 else n // 10 - 1 for n in range(agents)])
    fill_leases(here, below, 0)
    fill_runs(here, below, 10 * agents)
    # As after a night with a broken program: most stand still, and a few work.
    stop_agents(here, below[: agents * 7 // 8], "3 runs in a row changed nothing.")
    fill_outcomes(here, here.agent_id, outcomes)
    fill(here, files)
    person = here.call(here.board, users.me)["id"]
    fill_mail_of_user(here, person, letters, here.file(KIB_4)["id"], "queued")
    fill_events(here, events)


def _signed_in(instance: Instance) -> str:
    link = instance.ask("POST", "/api/login-links")["url"]
    place = urlsplit(instance.url)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=30)
    try:
        connection.request(
            "POST",
            "/login",
            urlencode({"token": urlsplit(link).query.partition("=")[2]}),
            {
                "Content-Type": "application/x-www-form-urlencoded",
                "Sec-Fetch-Site": "same-origin",
            },
        )
        response = connection.getresponse()
        assert response.status == 303, response.read()
        return str(response.getheader("Set-Cookie")).partition(";")[0]
    finally:
        connection.close()
