"""A company that is believable to look at: twelve agents who get an app to its first readers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

#: What Claude Code printed in a run with denials, retries and a long result.
TROUBLED = Path(__file__).parent.parent / "tests" / "agents" / "streams" / "claude.jsonl"
#: Name, role, title, boss, and what they are there for.
PEOPLE = (
    ("Mira", "ceo", "Leads the company", None, ""),
    ("Tomas", "cto", "Engineering", "Mira", "The app works, and goes on working"),
    ("Ines", "cmo", "Readers and press", "Mira", "People know what Lantern is"),
    ("Oskar", "cfo", "Money", "Mira", "We know what everything costs"),
    ("Lena", "engineer", "Server", "Tomas", "The server answers"),
    ("Jun", "engineer", "Apps", "Tomas", "The apps are a joy to read with"),
    ("Priya", "qa", "Testing", "Tomas", "What we ship was tried first"),
    ("Felix", "devops", "Operations", "Tomas", "It runs while we sleep"),
    ("Nora", "general", "Writing", "Ines", "What we say is worth reading"),
    ("Sam", "designer", "Drawing", "Ines", "It looks like one thing"),
    ("Aiko", "researcher", "Research", "Ines", "We know who reads, and why"),
    ("Ruth", "general", "Bookkeeping", "Oskar", "The books are right"),
)
#: As every new company has them; the one of earlier runs is made without.
LIMITS = {"turnsPerRun": 100, "identicalCalls": 10, "agentRunsPerHour": 60}
LIMITS |= {"agentTokensPerDay": 20_000_000, "companyRunsPerHour": 300, "companyCentsPerDay": 5000}
PLAN = """# Launch plan

The reading app is in the hands of **a thousand readers** by the end of the month.

| When | What | Who |
|------|------|-----|
| Week 1 | Closed test with forty readers | Priya |
| Week 2 | Announcement and press kit | Nora |
| Week 3 | Both stores | Jun |
| Week 4 | A thousand readers | Ines |

## What we do not do

- no discounts before the first hundred paid
- no second language before the first is good
"""
ANNOUNCEMENT = """# A book in your pocket

Lantern reads with you: it remembers where you stopped, and who you wanted to tell about it.

It costs less than a paperback, and it does not sell what you read to anybody.
"""
INTERVIEWS = """# Forty readers

- 31 read before they sleep, and want **less light**
- 22 lose their place when they change devices
- 9 would pay for a shared shelf
"""
BEFORE = """def resume(reader, devices):
    \"\"\"Where a reader goes on.\"\"\"
    return devices[0].place


def finished(reader):
    return reader.place == reader.book.pages
"""
AFTER = """def resume(reader, devices):
    \"\"\"Where a reader goes on: the place that was kept last, on whichever device.\"\"\"
    kept = [device.place for device in devices if device.place is not None]
    if not kept:
        return reader.book.first
    return sorted(kept)[-1]


def finished(reader):
    return reader.place.page == reader.book.pages
"""
#: An engineer without a model: it takes a copy, commits, and proposes.
PROPOSES = """
import json, os, subprocess, urllib.request
def call(tool, **given):
    said = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    said["params"] = {"name": tool, "arguments": given}
    head = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    head |= {"MCP-Protocol-Version": "2025-06-18"}
    head |= {"Authorization": "Bearer " + os.environ["REMIT_TOKEN"]}
    address, data = os.environ["REMIT_URL"] + "/mcp", json.dumps(said).encode()
    asked = urllib.request.Request(address, data, head)
    answer = json.load(urllib.request.urlopen(asked))["result"]
    assert not answer.get("isError"), answer
def git(*words):
    subprocess.run(["git", "-C", "reader", *words], check=True)
call("repo_clone", name="reader")
git("checkout", "--quiet", "-b", "keep-the-place")
open("reader/place.py", "w").write(AFTER)
open("reader/NEWS.md", "a").write("- The place is kept when a phone is changed.\\n")
git("commit", "--quiet", "--all", "--message", "Keep the place between devices")
call("repo_propose", name="reader", branch="keep-the-place",
    title="Keep the place when a reader changes devices",
    description="**22 of 40 readers** lose their place. The last place that was kept counts, "
    "wherever it was kept.")
"""


def earlier_runs(home: Path) -> None:
    """Two weeks that went before, so that charts have something to show."""
    with _benchmarks().office.opened(home) as here:
        _benchmarks().bulk.fill_runs(here, [here.agent_id], 240)


def thousand_agents(home: Path) -> None:
    """A company of a thousand, after a night in which most of it stood still."""
    pages = _benchmarks().pages
    with _benchmarks().office.opened(home) as here:
        pages.fill_company(here, 1_000, 1_000, 100, 2_000, 20)


def _benchmarks() -> Any:
    """They are beside this folder, and no part of what is installed."""
    root = str(Path(__file__).parent.parent)
    if root not in sys.path:
        sys.path.insert(0, root)
    import benchmarks
    import benchmarks.bulk
    import benchmarks.office
    import benchmarks.pages

    return benchmarks


class Company:
    """Made over HTTP, as any client would."""

    def __init__(self, url: str, board: str, folder: Path) -> None:
        self.url, self.board, self.folder = url, board, folder
        self.ids: dict[str, str] = {}
        self.keys: dict[str, str] = {}

    def call(
        self, method: str, path: str, document: Any = None, *, by: str = "", **headers: str
    ) -> Any:
        place = urlsplit(self.url)
        connection = HTTPConnection(place.hostname or "", place.port, timeout=60)
        sent = {"Authorization": f"Bearer {self.keys[by] if by else self.board}", **headers}
        body = document
        if document is not None and not isinstance(document, bytes):
            body, sent["Content-Type"] = json.dumps(document), "application/json"
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 300 and by != "Jun":
            raise SystemExit(f"{method} {path}: {answer.status} {text.decode()[:300]}")
        return json.loads(text) if text[:1] in b"[{" else None

    def here(self, path: str) -> str:
        return f"/api/companies/{self.id}/{path}"

    def make(self) -> None:
        """Everything that the pictures show."""
        self.id = self.call("GET", "/api/companies")[0]["id"]
        self.call("PATCH", f"/api/companies/{self.id}", {"name": "Lantern", "limits": LIMITS})
        self._hire_everybody()
        self._plan_work()
        self._write()
        self._talk()
        self._work()
        self._struggle()
        self._propose()
        self._set_up()
        self._be_busy()

    def _hire_everybody(self) -> None:
        first = self.call("GET", self.here("agents"))[0]
        for name, role, title, boss, purpose in PEOPLE:
            asked: dict[str, Any] = {"name": name, "role": role, "title": title}
            asked["capabilities"] = f"{title}, and says so when something is in the way."
            asked["adapterType"] = "scripted"
            if boss is None:
                self.ids[name] = first["id"]
                self.call("PATCH", f"/api/agents/{first['id']}", asked)
            else:
                asked["adapterConfig"] = {"script": _script(name, boss)}
                asked["purpose"] = purpose
                made = self.call(
                    "POST", self.here("agents"), {**asked, "reportsTo": self.ids[boss]}
                )
                self.ids[name] = made.get("agent", made)["id"]
            key = self.call("POST", f"/api/agents/{self.ids[name]}/keys", {"label": "pictures"})
            self.keys[name] = key["token"]

    def outcome(self, by: str, parent: str, title: str, **more: Any) -> str:
        asked = {"parentId": parent, "title": title, **more}
        made: str = self.call("POST", self.here("outcomes"), asked, by=by)["id"]
        return made

    def _plan_work(self) -> None:
        readers = self.outcome(
            "Mira",
            self.ids["Mira"],
            "A thousand people read with Lantern",
            description="Counted as readers who came back **in the second week**.",
            important=True,
        )
        app = self.outcome("Mira", readers, "The app is in both stores", important=True)
        known = self.outcome("Mira", readers, "Readers have heard of it")
        paid = self.outcome("Mira", readers, "It pays for itself", blockedBy=[app])
        for outcome, owner in ((app, "Tomas"), (known, "Ines"), (paid, "Oskar")):
            self.call(
                "POST", f"/api/outcomes/{outcome}/delegate", {"to": self.ids[owner]}, by="Mira"
            )
        server = self.outcome("Tomas", app, "The server keeps every reader's place", urgent=True)
        tested = self.outcome("Tomas", app, "Forty readers tried it for a week")
        store = self.outcome(
            "Tomas", app, "Both stores accept it", blockedBy=[server, tested], urgent=True
        )
        self.outcome("Tomas", server, "Nothing is lost when a phone dies")
        self.outcome("Tomas", server, "It answers within a tenth of a second")
        self.outcome("Tomas", store, "The listing says what it does")
        text = self.outcome("Ines", known, "The announcement is written")
        self.outcome("Ines", known, "Twenty newspapers have it", blockedBy=[text])
        asked = self.outcome("Ines", known, "We know what readers want")
        self.outcome("Oskar", paid, "A price is chosen")
        self.outcomes = {"top": readers, "app": app, "text": text, "asked": asked, "server": server}
        for outcome, by, owner in ((server, "Tomas", "Lena"), (tested, "Tomas", "Priya")):
            self.call("POST", f"/api/outcomes/{outcome}/delegate", {"to": self.ids[owner]}, by=by)

    def file(self, by: str, description: str, content: str) -> dict[str, Any]:
        asked = {"description": description, "content": content}
        made: dict[str, Any] = self.call("POST", self.here("files"), asked, by=by)
        return made

    def _rewrite(self, by: str, seen: dict[str, Any], content: str) -> dict[str, Any]:
        made: dict[str, Any] = self.call(
            "PUT",
            f"/api/files/{seen['id']}/content",
            content.encode(),
            by=by,
            **{"If-Match": f'"{seen["version"]}:{seen["hash"]}"'},
        )
        return made

    def _write(self) -> None:
        plan = self.file("Mira", "Launch plan", PLAN.partition("## What")[0])
        self.plan = self._rewrite("Mira", plan, PLAN)
        for name in ("Tomas", "Ines"):
            grant = {"to": self.ids[name], "resource": f"kb_file:{plan['id']}", "level": "write"}
            self.call("POST", self.here("grants"), grant, by="Mira")
        draft = self.file("Ines", "Announcement", "To be written.\n")
        draft = self._rewrite("Ines", draft, ANNOUNCEMENT)
        notes = self.file("Ines", "What forty readers said", INTERVIEWS)
        self.call("GET", f"/api/files/{notes['id']}/content", by="Jun")
        self.call(
            "POST",
            f"/api/outcomes/{self.outcomes['text']}/complete",
            {"evidence": [draft["id"]], "note": "Short, true, and not a word about disruption."},
            by="Ines",
        )
        self.call(
            "POST",
            f"/api/outcomes/{self.outcomes['asked']}/complete",
            {"evidence": [notes["id"]], "note": "Forty were asked; less light comes first."},
            by="Ines",
        )

    def _talk(self) -> None:
        hire = {
            "name": "Elif",
            "role": "engineer",
            "title": "Accessibility",
            "adapterType": "scripted",
            "prompt": "# You see to it that everybody can read\n\n- try each page with a keyboard\n"
            "- listen to it with a screen reader\n- write down what is in the way",
            "capabilities": "Knows what a screen reader does with a page.",
        }
        self.hire = self.call("POST", self.here("agent-hires"), hire, by="Mira")["approval"]
        self.call(
            "POST",
            f"/api/approvals/{self.hire['id']}/comments",
            {"body": "Nine of forty readers enlarge the text. We should know what breaks then."},
            by="Mira",
        )
        question = {"question": "Which price do we start with?", "to": "board"}
        question["options"] = ["€ 4.99", "€ 6.99", "€ 9.99"]
        self.call("POST", self.here("questions"), question, by="Mira")
        letter = {
            "to": "board",
            "subject": "Where we stand this week",
            "body": "The announcement is written and forty readers were asked. The server is what "
            "everything waits for; Lena is on it.",
        }
        self.call("POST", self.here("messages"), letter, by="Mira")

    def _work(self) -> None:
        """Let some of them run, and wait until they have."""
        for name in ("Lena", "Priya", "Nora"):
            letter = {"to": f"agent:{name}", "subject": "How far are you?", "body": "In a line."}
            self.call("POST", self.here("messages"), letter)
        for _ in range(120):
            runs = self.call("GET", self.here("runs"))
            over = [run for run in runs if run["status"] not in ("running", "queued")]
            if len({run["agentId"] for run in over}) >= 3:
                break
            time.sleep(0.5)
        self.run = max(runs, key=lambda run: run["agentId"] == self.ids["Lena"])["id"]
        events = self.call("GET", self.here("events?action=file.write"))
        self.event = events[0]["id"]

    def _be_busy(self) -> None:
        """Two that are at work while the pictures are taken, and one that cannot go on."""
        talking = "while sleep 1; do echo 'drawing the fourth of nine screens'; done"
        reading = "while sleep 1; do echo 'interview 31 of 40: wants less light'; done"
        for name, command in (("Sam", talking), ("Aiko", reading)):
            config = {"command": "sh", "args": ["-c", command]}
            asked = {"adapterType": "process", "adapterConfig": config}
            self.call("PATCH", f"/api/agents/{self.ids[name]}", asked)
            subject = {"Sam": "The screens of the reader", "Aiko": "What forty readers said"}[name]
            letter = {"to": f"agent:{name}", "subject": subject, "body": "Go on."}
            self.call("POST", self.here("messages"), letter)
        self.call("POST", f"/api/agents/{self.ids['Felix']}/pause")
        # Without a script the first page would say that she has no model.
        script = [{"tool": "outcome_list", "arguments": {}}]
        self.call("PATCH", f"/api/agents/{self.ids['Mira']}", {"adapterConfig": {"script": script}})
        for _ in range(60):
            live = self.call("GET", self.here("runs?live=true"))
            if len(live) >= 2:
                break
            time.sleep(0.5)
        time.sleep(2)

    def _propose(self) -> None:
        """A change to a repository, with a comment, that waits to be judged."""
        work, bare = self.folder / "reader", self.folder / "reader.git"
        work.mkdir()
        (work / "place.py").write_text(BEFORE)
        (work / "NEWS.md").write_text("# News\n\n- Less light in the evening.\n")
        who = {"GIT_AUTHOR_NAME": "Tomas", "GIT_AUTHOR_EMAIL": "tomas@lantern.example"}
        who |= {"GIT_COMMITTER_NAME": "Tomas", "GIT_COMMITTER_EMAIL": "tomas@lantern.example"}
        for words in (
            ("init", "--quiet", "--initial-branch=main"),
            ("add", "--all"),
            ("commit", "--quiet", "--message", "Begin"),
            ("clone", "--quiet", "--bare", ".", str(bare)),
        ):
            subprocess.run(["git", *words], cwd=work, env={**os.environ, **who}, check=True)
        self.call("POST", self.here("repos"), {"name": "reader", "url": str(bare)})
        program = f"AFTER = {AFTER!r}\n{PROPOSES}"
        asked = {"name": "Kai", "role": "engineer", "title": "Apps", "adapterType": "scripted"}
        made = self.call("POST", self.here("agents"), {**asked, "reportsTo": self.ids["Tomas"]})
        author = made.get("agent", made)["id"]
        grant = {"to": f"agent:{author}", "resource": "repo:reader", "level": "propose"}
        self.call("POST", self.here("grants"), grant)
        config = {"command": sys.executable, "args": ["-c", program]}
        changed = {"adapterType": "process", "adapterConfig": config}
        self.call("PATCH", f"/api/agents/{author}", changed)
        self.call("POST", self.here("messages"), {"to": "agent:Kai", "body": "Keep the place."})
        found: list[dict[str, Any]] = []
        for _ in range(120):
            found = self.call("GET", self.here("changes"))
            if found:
                break
            time.sleep(0.5)
        if not found:
            raise SystemExit("No change was proposed.")
        self.change = found[0]["id"]
        comment = {"body": "What if two devices kept it in the same second?", "path": "place.py"}
        comment |= {"line": 6, "side": "new", "head": found[0]["head"]}
        self.call("POST", f"/api/changes/{self.change}/comments", comment)

    def _set_up(self) -> None:
        """Something of each kind that is set up, some of which does not work yet."""
        for name, place in (("store-key", "PATH"), ("github-token", "LANTERN_GITHUB_TOKEN")):
            secret = {"name": name, "source": "env", "place": place}
            self.call("POST", self.here("secrets"), secret)
        tickets = {"name": "tickets", "command": ["npx", "tickets-mcp", "--project", "lantern"]}
        search = {"name": "search", "url": "https://search.lantern.example/mcp"}
        for server in (tickets, search):
            self.call("POST", self.here("mcp-servers"), server)
        check = {"check": "tests", "command": "make test", "required": True}
        self.call("POST", self.here("repos/reader/checks"), check)
        self.call("POST", self.here("mounts"), {"path": "/usr/share", "programs": ["bin"]})
        hook = {"agent": self.ids["Ines"], "adapterType": "webhook"}
        hook["adapterConfig"] = {"url": "https://chat.lantern.example/hooks/readers"}
        self.call("POST", self.here("bindings"), hook)
        weekly = {"agent": self.ids["Mira"], "subject": "The week in five lines", "to": "board"}
        weekly |= {"body": "What was reached, and what is in the way.", "cron": "0 9 * * 1"}
        books = {"agent": self.ids["Ruth"], "subject": "Close the books", "body": "Of the month."}
        for schedule in (weekly, {**books, "at": "2027-01-31T18:00:00Z"}):
            self.call("POST", self.here("schedules"), schedule)
        for name, cents, tokens in (("Mira", 20_000, None), ("Tomas", 4_000, 2_000_000)):
            limits = {"budgetMonthlyCents": cents, "budgetMonthlyTokens": tokens}
            self.call("PATCH", f"/api/agents/{self.ids[name]}", limits)
        part = {"name": "greta", "role": "observer", "scope": self.ids["Ines"]}
        for person in ({"name": "jonas", "role": "board"}, part):
            self.call("POST", self.here("users"), person)

    def _struggle(self) -> None:
        """A run that did not go smoothly; its program only repeats what a real one printed."""
        program = self.folder / "claude"
        slowly = "while IFS= read -r line; do printf '%s\\n' \"$line\"; sleep 0.2; done"
        program.write_text(f"#!/bin/sh\n{slowly} <<'END'\n{TROUBLED.read_text()}END\n")
        program.chmod(0o755)
        asked = {
            "name": "Vera",
            "role": "engineer",
            "adapterType": "claude",
            "adapterConfig": {
                "command": str(program),
                "env": {"ANTHROPIC_API_KEY": "sk-not-a-key"},
            },
            "reportsTo": self.ids["Tomas"],
        }
        made = self.call("POST", self.here("agents"), asked)
        vera = made.get("agent", made)["id"]
        self.call("POST", self.here("messages"), {"to": "agent:Vera", "body": "Try the build."})
        for _ in range(120):
            runs = self.call("GET", self.here(f"runs?agent={vera}"))
            if runs and runs[0]["status"] not in ("running", "queued"):
                break
            time.sleep(0.5)
        self.troubled = runs[0]["id"]


def _script(name: str, boss: str) -> list[dict[str, Any]]:
    said = {
        "Lena": "The place is kept through a restart. Left: what happens when a phone dies.",
        "Priya": "Thirty-four of forty readers came back on the second day.",
        "Nora": "The press kit is with twelve newspapers.",
    }
    if name not in said:
        return []
    letter = {"to": f"agent:{boss}", "subject": "Where I am", "body": said[name]}
    return [
        {"tool": "outcome_list", "arguments": {}},
        {"tool": "log_submit", "arguments": {"summary": said[name]}},
        {"tool": "mail_send", "arguments": letter},
    ]
