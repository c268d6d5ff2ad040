"""Every page of an instance, with something of each kind on it.

`PAGES` are the addresses; `tests/test_web_every_page.py` compares them with the routes, so that no
page is forgotten. `SENT` are those that only a form leads to. Their other states
are looked at in `tests/test_web_every_state.py`.
"""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from remit.adapters import registry
from remit.entrypoints.web.pages.setup import checklist
from remit.services.changes import proposals
from remit.services.identity import Caller
from tests import chat_stage
from tests.browsing import Office
from tests.company import run_sql
from tests.review_stage import Checkout

WIDTHS = (1440, 1920, 390)
SCHEMES = ("light", "dark")
_NOUNS = (
    *("secrets", "mcp-servers", "repositories", "checks", "folders", "channels"),
    *("schedules", "budgets", "keys"),
)
TABS = ("work", "mail", "rights", "configuration", "runs")
#: Each page, with names in the place of what it is about.
PAGES = (
    *("/", "/?range=24h", "/search?q=a", "/design", "/account", "/no/such/page", "/hire"),
    *("/companies/{company}", "/companies/{company}/settings", "/companies/{company}/levels"),
    *("/companies/{company}/people/{user}", "/companies/new", "/companies/{company}/acceptance"),
    *("/org", "/org?view=chart", "/org/change?agent={agent}"),
    *("/agents/{agent}", *(f"/agents/{{agent}}?tab={tab}" for tab in TABS)),
    *("/agents/{agent}/terminate", "/agents/{agent}/update"),
    *(
        "/approvals",
        "/approvals/{approval}",
        "/confirmations/{confirmation}",
        "/changes",
        "/changes/{change}",
    ),
    *("/changes/{change}?view=split", "/outcomes", "/outcomes?view=list", "/outcomes?view=graph"),
    *("/outcomes/{agent}", "/outcomes/{submitted}"),
    *("/files", "/files/{file}", "/files/{file}?version=2&against=1", "/files/{file}/edit"),
    *("/inbox", "/inbox/{message}", "/inbox/{sent}/take-back"),
    *("/runs", "/runs?view=timeline", "/runs/{run}", "/events", "/events?every=1"),
    "/events/{event}",
    *("/setup", "/setup/adapters", "/setup/jobs"),
    *(f"/setup/{noun}" for noun in _NOUNS),
    *(f"/setup/{noun}/new" for noun in _NOUNS),
    "/setup/repositories/pushing?repo=site",
    *("/instance", "/apply", "/as-of", "/as-of?at={now}"),
)
#: Pages without the frame that the others have.
BARE = ("/login", "/agents/{agent}/state")
#: Pages that a form leads to, with what is sent to them.
SENT: dict[str, dict[str, str]] = {
    "/account/webhook": {"company": "{company}", "webhook": "https://hooks.example.com/remit"},
    "/account/chat-code": {"kind": "telegram"},
    "/account/tokens": {"label": "laptop"},
    "/account/link": {},
    "/companies/{company}/people": {"person": "ann", "role": "observer"},
    "/companies/{company}/people/{user}/tokens": {"label": "laptop"},
    "/companies/{company}/people/{other}/links": {},
    "/org/preview": {"op": "move", "agent": "{agent}", "to": "Submitter"},
    "/org/undo": {"event": "{moved}", "step": "look"},
    "/instance/doctor": {},
}
#: What a browser asks for that is no page.
NO_PAGES = {
    "/static/{name}": "sheets, scripts and icons",
    "/live": "the stream that tells of changes",
    "/needs/news": "what a notification says, as JSON",
    "/runs/{run}/log.txt": "a log as text",
    "/runs/{run}/log/{number:int}": "an entry of a log as text",
    "/instance/backups/{name}": "a backup to download",
    "/{path:path}": "any other address, which is /no/such/page",
}


def shape(path: str) -> str:
    """An address without the names in it."""
    return re.sub(r"\{\w+\}", "*", path.partition("?")[0])


def name_of(address: str) -> str:
    return re.sub(r"\W+", "-", address).strip("-") or "first"


class Proposals:
    """A repository of the office, and an agent that proposes to it."""

    def __init__(self, office: Office, place: Path, forge: Any = None) -> None:
        self.office = office
        self.name = place.name[:40].replace("_", "-")
        self.there = Checkout(forge.bare.parent if forge else place / "there")
        about = {"name": self.name, "url": str(self.there.bare)}
        if forge is not None:
            secret = {"name": "web-forge", "source": "env", "place": "WEB_FORGE_TOKEN"}
            office.board.must("POST", office.path("secrets"), secret)
            about |= {"url": f"{forge.base}/acme/site.git", "username": "bot"}
            about |= {"secret": "web-forge", "forge": forge.kind}
        self.repo = office.board.must("POST", office.path("repos"), about)["id"]
        self.author = office.agent("author" if forge else self.name)
        grant = {"to": self.author["id"], "resource": f"repo:{self.name}", "level": "propose"}
        office.board.must("POST", office.path("grants"), grant)

    def propose(self, files: dict[str, str], **more: Any) -> str:
        app = self.office.running.app
        author = self.author["name"]
        proposal = self.there.proposal(app, files, author=author, name=self.name, **more)
        run = self.office.begin(self.author)
        change = self.office.do(app.gate(Caller(run.token), proposals.propose, **proposal))
        self.office.end(run)
        return str(change["change"])

    def shown(self, change: str) -> dict[str, Any]:
        document: dict[str, Any] = self.office.board.must("GET", f"/api/changes/{change}")
        return document


def _filled(office: Office, place: Path) -> dict[str, str]:
    """Something of each kind, so that no page is empty: what the names in `PAGES` stand for."""
    board, path = office.board, office.path
    agent = office.agent("Everywhere", title="<b>Seen</b> on every page")
    mine = office.as_agent(agent)
    file = mine.must("POST", path("files"), {"description": "Plan", "content": "# Plan"})
    mine.must(
        "PUT",
        f"/api/files/{file['id']}/content",
        body=b"# Plan\n\nMore.",
        headers={"If-Match": f'"{file["version"]}:{file["hash"]}"'},
    )
    letter = mine.must(
        "POST", path("messages"), {"to": "board", "subject": "News", "body": "**Good.**"}
    )
    mine.must("POST", path("messages"), {"to": "board", "subject": "More", "body": "Soon."})
    mine.must("POST", path("questions"), {"question": "Which?", "options": ["a", "b"]})
    mine.must("POST", path("questions"), {"question": "And why?"})
    hired = office.hire("Asked", prompt="Be kind.")
    sent = board.must(
        "POST", path("messages"), {"to": "agent:Everywhere", "subject": "Do", "body": "It."}
    )
    submitter = office.agent("Submitter", purpose="The fence stands", perpetual=False)
    office.as_agent(submitter).must(
        "POST", f"/api/outcomes/{submitter['id']}/submit", {"note": "All of it."}
    )
    _set_up(office, agent)
    change = Proposals(office, place).propose({"app.py": "def add(a, b):\n    return a + b\n"})
    run = office.begin(agent)
    office.print(run, 1, "one line\n")
    office.end(run, "failed")
    # Pages look the same however soon they are opened: the pause after a failure is over.
    url = office.running.app.settings.database_url
    run_sql(url, "UPDATE agent_leases SET due_at = 0 WHERE agent_id = ?", agent["id"])
    event = board.must("GET", path("events?limit=1"))[0]
    me = board.must("GET", "/api/me")["id"]
    [binding, *_] = board.must("GET", path("bindings"))
    return {
        "confirmation": chat_stage.to_confirm(
            office.running.app, office.company, me, binding["id"]
        ),
        "company": office.company,
        "agent": agent["id"],
        "submitted": submitter["id"],
        "file": file["id"],
        "message": letter["id"],
        "sent": sent["id"],
        "approval": hired["approval"]["id"],
        "change": change,
        "run": run.id,
        "event": event["id"],
        "user": me,
        "other": board.must("POST", path("users"), {"name": "other", "role": "board"})["id"],
        # Whole seconds, none of which may lie before something here was made.
        "now": (datetime.now(UTC) + timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%S"),
    }


def _set_up(office: Office, agent: dict[str, Any]) -> None:
    """One of each thing that is set up."""
    board, path = office.board, office.path
    board.must(
        "POST", path("secrets"), {"name": "github", "source": "env", "place": "GITHUB_TOKEN"}
    )
    board.must("POST", path("mcp-servers"), {"name": "tickets", "command": ["tickets-mcp"]})
    board.must("PATCH", f"/api/agents/{agent['id']}", {"budgetMonthlyCents": 2500})
    board.must("POST", path("bindings"), {"agent": agent["id"], "adapterType": "webhook"})
    daily = {"agent": agent["id"], "subject": "Daily", "body": "Report.", "cron": "0 9 * * *"}
    board.must("POST", path("schedules"), daily)


@contextlib.contextmanager
def staged(office: Office) -> Iterator[dict[str, str]]:
    """An office with something of each kind, which looks the same on every machine: also the paths
    that are shown have the same length."""
    with (
        _same_machine(office),
        tempfile.TemporaryDirectory(prefix="remit-site-", dir="/tmp") as place,
    ):
        yield _filled(office, Path(place) / "site")


@contextlib.contextmanager
def _same_machine(office: Office) -> Iterator[None]:
    """Pages that tell what the machine has tell the same on every machine."""
    app = office.running.app
    with pytest.MonkeyPatch.context() as patch:
        known = [
            adapter for adapter in registry.all() if type(adapter).__module__.startswith("remit.")
        ]
        patch.setattr(checklist, "_sandbox", lambda: (True, "bubblewrap"))
        patch.setattr(app.gate, "usable_adapter", "scripted")
        patch.setattr(registry, "all", lambda: known)
        patch.setattr(registry, "problems", dict)
        patch.setattr(app.backups, "folder", Path("/var/lib/remit/backups"))
        yield
