"""The tools that every agent has, on a real instance, through every kind of client."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import http.client
import json
import os
import random
import stat
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar
from urllib.parse import urlsplit

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from remit.adapters.running import FEW_TOOLS
from remit.app import App
from remit.entrypoints.mcp.tools import few
from remit.entrypoints.mcp.tools.kb_tools import MOST_INLINE
from remit.entrypoints.serve import running
from remit.runtime.runs import lifecycle
from remit.services.command import Verb
from remit.services.identity import Caller
from remit.services.knowledge import files
from remit.services.messaging import mail
from remit.services.organisation import agents
from remit.services.people import companies, users
from remit.services.record import events
from remit.testing import ScriptedAgent, ToolRefused
from tests import declared
from tests.agents import REPOSITORY, claude
from tests.agents.fake_anthropic import FakeAnthropic, Say, Step, Use
from tests.agents.inspector import INSPECTED, Era, Inspector
from tests.company import run_sql
from tests.http_client import settings_for

P = ParamSpec("P")
R = TypeVar("R")

EARLIER, LATER = "2025-06-18", "2026-07-28"
MODES = pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", LATER)])
BASE_TOOLS = sorted(
    [
        *declared.tools(),
        "kb_list",
        "kb_browse",
        "kb_read",
        "kb_create",
        "kb_write",
        "delegate",
        "capability_grant",
        "repo_clone",
        "create_agent",
    ]
)
#: Listed only for those with reports, or with something left open.
FOR_LOOSE_ENDS = declared.tools("loose_ends")
#: Listed only for those with reports, among the others.
FOR_JUDGES = declared.tools("reports")
EVERY_TOOL = sorted([*BASE_TOOLS, *FOR_LOOSE_ENDS, *FOR_JUDGES])
#: What comes on top for those with reports; the rest of governance has tests of its own.
FOR_BOSSES = ["approval_view", *declared.tools("approvals"), "agent_control"]
#: In a run, tools for approvals are listed only while one is undecided.
IN_A_RUN_OF_A_BOSS = sorted([*EVERY_TOOL, "agent_control"])
LOOKING = {
    *declared.tools_that_look(),
    *("kb_list", "kb_browse", "kb_read"),
    "repo_clone",
}
#: What all agents pay for in every conversation, in tokens; with the prompt it is Remit's share
#: of a request, of which at most 6,000 are ours.
MOST_TOKENS = 3_400
ABSENT = "01890000-0000-7000-8000-000000000000"


# ── the instance under test ─────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Member:
    id: str
    name: str
    key: str
    #: Its memory and its activity log, which every listing of its files begins with.
    state: str
    log: str


class Site:
    """A running instance, and the board's hand on it."""

    def __init__(self, app: App, url: str, loop: asyncio.AbstractEventLoop) -> None:
        self.app, self.url, self._loop = app, url, loop
        self.board = Caller(app.settings.board_token_file.read_text().strip())
        self.company: str = self.call(self.board, companies.listing)[0]["id"]
        self._last = 0

    def wait(self, work: Coroutine[Any, Any, R]) -> R:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def call(self, caller: Caller, verb: Verb[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return self.wait(self.app.gate(caller, verb, *args, **kwargs))

    def member(self, boss: Member | None = None) -> Member:
        """A new agent, with a key."""
        self._last += 1
        name = f"agent-{self._last}"
        made = self.call(
            self.board,
            agents.create,
            company=self.company,
            name=name,
            reports_to=boss.id if boss else None,
            adapter_type="scripted",
        )
        key = self.call(self.board, agents.create_key, agent=made["id"])
        books = self.sql("SELECT state_file_id, log_file_id FROM agents WHERE id = ?", made["id"])
        return Member(made["id"], name, key["token"], *books[0])

    def end_no_run_for_failed_calls(self) -> None:
        """Switch off the limit that ends a run whose calls all fail."""
        off: Any = {"failedCalls": "none"}
        self.call(self.board, companies.change, company=self.company, limits=off)

    def begin(self, member: Member) -> lifecycle.LiveRun:
        settings = self.app.settings
        return self.wait(
            lifecycle.begin(self.app.gate, self.app.ids, settings.workspaces, member.id)
        )

    def finish(self, run: lifecycle.LiveRun) -> None:
        self.wait(lifecycle.finish(self.app.gate, run))

    @contextlib.contextmanager
    def at_work(self, member: Member) -> Iterator[tuple[lifecycle.LiveRun, ScriptedAgent]]:
        run = self.begin(member)
        try:
            with ScriptedAgent(self.url, run.token) as agent:
                yield run, agent
        finally:
            self.finish(run)

    def events_of(self, member: Member) -> list[dict[str, Any]]:
        """What one agent did or tried, oldest first."""
        found = self.call(self.board, events.listing, company=self.company, limit=1000)
        mine = [event for event in found if event["actor"] == f"agent:{member.id}"]
        return sorted(mine, key=lambda event: int(event["seq"]))

    def accesses(self, file: str) -> list[tuple[str, int]]:
        found = self.call(self.board, files.accesses, file=file)
        return [(entry["access"], entry["version"]) for entry in reversed(found)]

    def sql(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        return run_sql(self.app.settings.database_url, statement, *parameters)


@contextlib.contextmanager
def serving(home: Path) -> Iterator[Site]:
    """The whole instance, in a thread, until the block ends."""
    loop = asyncio.new_event_loop()
    ready, stop = threading.Event(), asyncio.Event()
    found: list[tuple[App, str]] = []

    async def main() -> None:
        async with running(settings_for(home)) as (app, url, _):
            found.append((app, url))
            ready.set()
            await stop.wait()

    def work() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            try:
                runner.run(main())
            finally:
                ready.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert ready.wait(60)
    assert found, "the instance did not start"
    try:
        yield Site(*found[0], loop)
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("home")) as instance:
        yield instance


@pytest.fixture
def boss(site: Site) -> Member:
    return site.member()


@pytest.fixture
def report(site: Site, boss: Member) -> Member:
    return site.member(boss)


@pytest.fixture
def run(site: Site, boss: Member) -> Iterator[tuple[lifecycle.LiveRun, ScriptedAgent]]:
    """The boss at work."""
    with site.at_work(boss) as working:
        yield working


@pytest.fixture
def at_work(run: tuple[lifecycle.LiveRun, ScriptedAgent]) -> ScriptedAgent:
    return run[1]


@pytest.fixture
def workspace(run: tuple[lifecycle.LiveRun, ScriptedAgent]) -> Path:
    return run[0].workspace


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def refusal(agent: ScriptedAgent, tool: str, /, **arguments: Any) -> ToolRefused:
    with pytest.raises(ToolRefused) as refused:
        agent.call(tool, **arguments)
    assert ": " in str(refused.value)
    assert " Next: " in str(refused.value)
    return refused.value


def created(agent: ScriptedAgent, content: str = "text", **more: Any) -> dict[str, Any]:
    return agent.call("kb_create", **{"description": "notes", "content": content, **more})


def books(member: Member, folder: Path | None = None) -> list[dict[str, Any]]:
    """How a listing of an agent's files begins, before it wrote anything."""
    return [
        {
            "id": file,
            "description": f"{what} of {member.name}",
            "version": 1,
            "level": level,
            "path": str(folder / f"{file}.v1") if folder else None,
        }
        for file, what, level in (
            (member.state, "State", "write"),
            (member.log, "Activity log", "read"),
        )
    ]


def by_rule(member: Member, boss: Member | None = None) -> list[tuple[str, str, str]]:
    """What an agent may without a grant: the resource, the level, and why."""
    return [
        (f"outcome:{member.id}", "read", "the mandate; the work is below it"),
        (f"kb_file:{member.state}", "write", "its memory"),
        (f"kb_file:{member.log}", "read", "its activity log"),
        *([(f"message:{boss.id}", "use", "its boss")] if boss else []),
    ]


# ── creating, reading, writing ──────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-13", "AG-20")
def test_a_file_is_created_from_a_path_in_the_workspace(
    at_work: ScriptedAgent, workspace: Path
) -> None:
    (workspace / "deep" / "er").mkdir(parents=True)
    (workspace / "deep" / "er" / "plan.md").write_text("grüß dich\n")
    whole = sha256("grüß dich\n".encode())
    for path in ("deep/er/plan.md", "./deep//er/plan.md", str(workspace / "deep/er/plan.md")):
        made = at_work.call("kb_create", description="The plan", path=path)
        assert made == {"id": made["id"], "version": 1, "hash": whole}
        assert at_work.call("kb_read", id=made["id"])["content"] == "grüß dich\n"


@pytest.mark.requirement("AG-18", "AG-20")
def test_a_read_answers_content_version_and_hash(at_work: ScriptedAgent) -> None:
    made = created(at_work, "one")
    assert made == {"id": made["id"], "version": 1, "hash": sha256(b"one")}
    assert at_work.call("kb_read", id=made["id"]) == {**made, "content": "one"}
    for name in (f"kb://{made['id']}", made["id"].upper(), made["id"].replace("-", "")):
        assert at_work.call("kb_read", id=name)["id"] == made["id"]


@pytest.mark.requirement("AG-13", "AG-19")
def test_a_write_takes_a_path_and_what_was_last_read(
    at_work: ScriptedAgent, workspace: Path
) -> None:
    made = created(at_work, "one")
    (workspace / "two.txt").write_text("two")
    done = at_work.call("kb_write", path="two.txt", **made)
    assert done == {"id": made["id"], "version": 2, "hash": sha256(b"two")}
    done = at_work.call("kb_write", content="three", **done)
    assert done == {"id": made["id"], "version": 3, "hash": sha256(b"three")}
    assert at_work.call("kb_read", id=made["id"])["content"] == "three"


@pytest.mark.requirement("AG-22")
def test_an_old_version_is_read_by_its_number(at_work: ScriptedAgent) -> None:
    made = created(at_work, "one")
    at_work.call("kb_write", content="two", **made)
    old = at_work.call("kb_read", id=made["id"], version=1)
    assert old == {**made, "content": "one", "current_version": 2}
    assert at_work.call("kb_read", id=made["id"], version=2)["content"] == "two"
    assert refusal(at_work, "kb_read", id=made["id"], version=3).code == "not_found"


@pytest.mark.requirement("AG-21")
def test_a_history_has_numbers_hashes_sizes_times_and_authors(
    site: Site, boss: Member, run: tuple[lifecycle.LiveRun, ScriptedAgent]
) -> None:
    live, agent = run
    made = created(agent, "one")
    agent.call("kb_write", content="three", **made)
    versions = agent.call("kb_history", id=made["id"])["versions"]
    assert [(each["number"], each["hash"], each["size"]) for each in versions] == [
        (2, sha256(b"three"), 5),
        (1, sha256(b"one"), 3),
    ]
    for each in versions:
        assert (each["agent_id"], each["user_id"], each["run_id"]) == (boss.id, None, live.id)
        assert each["at"].endswith("+00:00")
        assert set(each) == {"number", "hash", "size", "at", "agent_id", "user_id", "run_id"}
    assert len(agent.call("kb_history", id=made["id"], limit=1)["versions"]) == 1


def test_content_that_is_not_text_travels_as_base64(
    at_work: ScriptedAgent, workspace: Path
) -> None:
    raw = bytes(range(256)) * 10
    encoded = base64.b64encode(raw).decode()
    made = created(at_work, encoded, encoding="base64")
    assert made["hash"] == sha256(raw)
    expected = {**made, "content": encoded, "encoding": "base64"}
    assert at_work.call("kb_read", id=made["id"]) == expected
    (workspace / "raw").write_bytes(raw + b"\xff")
    done = at_work.call("kb_write", path="raw", **made)
    assert done["hash"] == sha256(raw + b"\xff")
    again = at_work.call(
        "kb_write", content=base64.b64encode(b"text").decode(), encoding="base64", **done
    )
    # Text comes back as text, however it arrived.
    assert at_work.call("kb_read", id=made["id"]) == {**again, "content": "text"}
    assert refusal(at_work, "kb_write", content="no base64!", encoding="base64", **again).code == (
        "invalid"
    )


def test_more_than_a_model_can_read_is_put_into_the_workspace(
    site: Site, boss: Member, at_work: ScriptedAgent, workspace: Path
) -> None:
    inline, large = b"a" * MOST_INLINE, b"b" * (MOST_INLINE + 1)
    (workspace / "large").write_bytes(large)
    small = created(at_work, inline.decode())
    made = at_work.call("kb_create", description="large", path="large")
    assert at_work.call("kb_read", id=small["id"])["content"] == inline.decode()
    read = at_work.call("kb_read", id=made["id"])
    place = workspace / ".kb" / f"{made['id']}.v1"
    assert read == {**made, "content": None, "path": str(place)}
    assert place.read_bytes() == large
    with ScriptedAgent(site.url, boss.key) as outside:
        refused = refusal(outside, "kb_read", id=made["id"])
        assert refused.code == "too_large"
        assert f"/api/files/{made['id']}/content" in str(refused)
        assert outside.call("kb_read", id=small["id"])["content"] == inline.decode()


def test_a_stale_write_tells_the_current_version_and_hash(at_work: ScriptedAgent) -> None:
    made = created(at_work, "one")
    current = at_work.call("kb_write", content="two", **made)
    for seen in (made, {**current, "version": 9}, {**current, "hash": made["hash"]}):
        refused = refusal(at_work, "kb_write", content="lost?", **seen)
        assert refused.code == "conflict"
        assert refused.details == {"version": 2, "hash": sha256(b"two")}
    assert at_work.call("kb_read", id=made["id"])["content"] == "two"
    assert len(at_work.call("kb_history", id=made["id"])["versions"]) == 2


def test_a_repeated_key_repeats_the_answer_and_nothing_else(
    site: Site, boss: Member, report: Member, at_work: ScriptedAgent
) -> None:
    made = created(at_work, "one", idempotency_key="create")
    assert created(at_work, "one", idempotency_key="create") == made
    assert (
        refusal(
            at_work, "kb_create", description="notes", content="other", idempotency_key="create"
        ).code
        == "key_reused"
    )
    change = {"content": "two", "idempotency_key": "write"}
    done = at_work.call("kb_write", **made, **change)
    at_work.call("kb_write", content="three", **done)
    assert at_work.call("kb_write", **made, **change) == done
    wish = {"to": report.id, "resource": f"kb_file:{made['id']}", "level": "read"}
    grant = at_work.call("capability_grant", **wish, idempotency_key="grant")
    assert at_work.call("capability_grant", **wish, idempotency_key="grant") == grant
    gone = at_work.call("capability_revoke", id=grant["id"], idempotency_key="revoke")
    assert at_work.call("capability_revoke", id=grant["id"], idempotency_key="revoke") == gone
    done_by_boss = [event["action"] for event in site.events_of(boss)]
    assert done_by_boss == ["file.create", "file.write", "file.write", "grant.give", "grant.revoke"]


# ── the workspace is the limit ──────────────────────────────────────────────────────────────────


def set_traps(workspace: Path, outside: Path) -> dict[str, tuple[str, str]]:
    """Paths that must not be imported: what to send, and how it is refused."""
    secret = outside / "secret"
    secret.write_text("secret")
    (outside / "folder").mkdir()
    (outside / "folder" / "secret").write_text("secret")
    (workspace / "folder").mkdir()
    (workspace / "link").symlink_to(secret)
    (workspace / "inner").symlink_to(workspace / "mine")
    (workspace / "mine").write_text("mine")
    (workspace / "tunnel").symlink_to(outside / "folder")
    (workspace / "loop").symlink_to("loop")
    os.link(secret, workspace / "hard")
    os.mkfifo(workspace / "fifo")
    return {
        "up": ("../secret", "outside_workspace"),
        "up from a folder": ("folder/../../secret", "outside_workspace"),
        "up and back": ("folder/../mine", "outside_workspace"),
        "absolute": (str(secret), "outside_workspace"),
        "absolute, through the workspace": (f"{workspace}/../secret", "outside_workspace"),
        "a name that begins like it": (f"{workspace}x/secret", "outside_workspace"),
        "a symlink": ("link", "outside_workspace"),
        "a symlink to the inside": ("inner", "outside_workspace"),
        "a symlink to itself": ("loop", "outside_workspace"),
        "through a symlink": ("tunnel/secret", "outside_workspace"),
        "a hard link": ("hard", "hard_linked"),
        "a fifo": ("fifo", "not_a_file"),
        "a folder": ("folder", "not_a_file"),
        "the workspace": (".", "not_a_file"),
        "nothing": ("", "invalid"),
        "a NUL": ("mi\0ne", "invalid"),
        "a long name": ("x" * 300, "invalid"),
        "missing": ("absent", "not_found"),
        "below a file": ("mine/x", "not_found"),
    }


@pytest.mark.requirement("AG-13", "AG-19", "AG-20")
def test_no_path_leads_out_of_the_workspace(
    site: Site, boss: Member, at_work: ScriptedAgent, workspace: Path, tmp_path: Path
) -> None:
    site.end_no_run_for_failed_calls()
    made = created(at_work, "one")
    for name, (path, code) in set_traps(workspace, tmp_path).items():
        refused = refusal(at_work, "kb_create", description="stolen", path=path)
        assert refused.code == code, (name, refused)
        assert refusal(at_work, "kb_write", path=path, **made).code == code, name
        assert "secret\n" not in str(refused)
    assert [event["action"] for event in site.events_of(boss)] == ["file.create"]
    assert at_work.call("kb_read", id=made["id"])["version"] == 1


def test_a_path_or_content_and_not_both(
    site: Site, boss: Member, at_work: ScriptedAgent, workspace: Path
) -> None:
    (workspace / "mine").write_text("mine")
    assert refusal(at_work, "kb_create", description="both", path="mine", content="x").code == (
        "invalid"
    )
    assert refusal(at_work, "kb_create", description="neither").code == "invalid"
    with ScriptedAgent(site.url, boss.key) as outside:
        refused = refusal(outside, "kb_create", description="no workspace", path="mine")
        assert "Only a run has a workspace." in str(refused)


# ── listing and searching ───────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-16")
def test_a_list_has_what_can_be_read_or_written_with_a_copy_of_each(
    site: Site, boss: Member, report: Member, at_work: ScriptedAgent
) -> None:
    written = created(at_work, "to write", description="W")
    readable = created(at_work, "to read", description="R")
    created(at_work, "hidden", description="N")
    for file, level in ((written, "write"), (readable, "read")):
        at_work.call(
            "capability_grant", to=report.id, resource=f"kb_file:{file['id']}", level=level
        )
    with site.at_work(report) as (run, agent):
        folder = run.workspace / ".kb"
        assert agent.call("kb_list") == {
            "files": [
                *books(report, folder),
                *(
                    {
                        "id": file["id"],
                        "description": description,
                        "version": 1,
                        "level": level,
                        "path": str(folder / f"{file['id']}.v1"),
                    }
                    for file, description, level in (
                        (written, "W", "write"),
                        (readable, "R", "read"),
                    )
                ),
            ]
        }
        seen = ""
        for next_one in (report.state, report.log, written["id"], readable["id"]):
            page = agent.call("kb_list", limit=1, after=seen)["files"]
            assert [each["id"] for each in page] == [next_one]
            seen = next_one
        assert agent.call("kb_list", after=seen) == {"files": []}
    with ScriptedAgent(site.url, report.key) as outside:
        assert [file["path"] for file in outside.call("kb_list")["files"]] == [None] * 4


@pytest.mark.requirement("AG-16")
def test_a_file_that_is_older_than_its_reader_is_on_some_page(
    site: Site, boss: Member, at_work: ScriptedAgent
) -> None:
    old = created(at_work)
    young = site.member(boss)
    at_work.call("capability_grant", to=young.id, resource=f"kb_file:{old['id']}", level="read")
    expected = [young.state, young.log, old["id"]]
    with ScriptedAgent(site.url, young.key) as agent:
        for size in (1, 2, 3):
            found: list[str] = []
            while page := agent.call("kb_list", limit=size, after=(found or [""])[-1])["files"]:
                found += [file["id"] for file in page]
            assert found == expected


@pytest.mark.requirement("AG-16")
def test_a_copy_is_read_only_has_the_content_and_is_made_once_per_version(
    site: Site, at_work: ScriptedAgent, workspace: Path
) -> None:
    made = created(at_work, "one")

    def copy() -> Path:
        listed = at_work.call("kb_list")["files"]
        return Path(next(file["path"] for file in listed if file["id"] == made["id"]))

    def identity(path: Path) -> tuple[int, int]:
        status = path.stat()
        return status.st_ino, status.st_mtime_ns

    first = copy()
    before = identity(first)
    assert first.read_text() == "one"
    assert stat.S_IMODE(first.stat().st_mode) == 0o444
    assert first.is_relative_to(workspace)
    assert copy() == first
    assert identity(first) == before
    assert site.accesses(made["id"]) == [("write", 1), ("copy", 1)]
    at_work.call("kb_write", content="two", **made)
    second = copy()
    assert (first.read_text(), second.read_text()) == ("one", "two")
    assert site.accesses(made["id"])[2:] == [("write", 2), ("copy", 2)]


def test_a_symlink_in_place_of_the_copies_is_not_followed(
    at_work: ScriptedAgent, workspace: Path, tmp_path: Path
) -> None:
    made = created(at_work, "one")
    (workspace / ".kb").symlink_to(tmp_path)
    listed = at_work.call("kb_list")["files"][-1]["path"]
    assert list(tmp_path.iterdir()) == []
    assert Path(listed).read_text() == "one"
    assert not (workspace / ".kb").is_symlink()
    assert listed.endswith(f"{made['id']}.v1")


@pytest.mark.requirement("AG-16")
def test_a_file_that_is_no_longer_granted_is_no_longer_listed(
    site: Site, report: Member, at_work: ScriptedAgent
) -> None:
    made = created(at_work)
    grant = at_work.call(
        "capability_grant", to=report.id, resource=f"kb_file:{made['id']}", level="read"
    )
    with site.at_work(report) as (_, agent):
        listed = [file["id"] for file in agent.call("kb_list")["files"]]
        assert listed == [report.state, report.log, made["id"]]
        at_work.call("capability_revoke", id=grant["id"])
        listed = [file["id"] for file in agent.call("kb_list")["files"]]
        assert listed == [report.state, report.log]


@pytest.mark.requirement("AG-17")
def test_a_search_finds_descriptions_of_all_that_may_be_known(
    site: Site, report: Member, at_work: ScriptedAgent
) -> None:
    word = f"zebra{random.Random(report.id).randrange(10**9)}"
    plain = created(at_work, description=f"Crossing of the {word}")
    best = created(at_work, description=f"{word} {word}")
    created(at_work, description=f"Secret {word}", unlisted=True)
    at_work.call("capability_grant", to=report.id, resource=f"kb_file:{best['id']}", level="read")
    with site.at_work(report) as (_, agent):
        found = agent.call("kb_browse", query=word.upper())
        assert found == {
            "files": [
                {"id": best["id"], "description": f"{word} {word}", "level": "read"},
                {"id": plain["id"], "description": f"Crossing of the {word}", "level": "none"},
            ]
        }
        assert agent.call("kb_browse", query=f"{word} crossing")["files"] == found["files"][1:]
        assert agent.call("kb_browse", query="nowhere-to-be-found") == {"files": []}
        assert len(agent.call("kb_browse", query=word, limit=1)["files"]) == 1
    assert len(at_work.call("kb_browse", query=word)["files"]) == 3
    assert {file["level"] for file in at_work.call("kb_browse", query=word)["files"]} == {"write"}


# ── capabilities ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-56")
def test_an_agent_lists_what_it_holds_and_why(
    site: Site, boss: Member, report: Member, at_work: ScriptedAgent
) -> None:
    made = created(at_work)
    resource = f"kb_file:{made['id']}"
    given = at_work.call(
        "capability_grant", to=f"agent:{report.name}", resource=resource, level="read"
    )
    mine = at_work.call("capability_list")["capabilities"]
    assert [(each["resource"], each["level"], each["reason"]) for each in mine] == [
        *by_rule(boss),
        (f"message:{report.id}", "use", f"its report {report.name}"),
        (f"outcome:{report.id}", "write", "delegated it, and will judge it"),
        (resource, "write", "made the file"),
    ]
    assert ["id" not in each for each in mine] == [True] * 5 + [False]
    assert [each.get("derived", False) for each in mine] == [True] * 5 + [False]
    with site.at_work(report) as (_, agent):
        theirs = agent.call("capability_list")
        *derived, last = theirs["capabilities"]
        assert last == {**given, "reason": "granted by its boss"}
        assert last["scope"] == report.id
        assert derived == [
            {
                "resource": held,
                "level": level,
                "mode": "allow",
                "reason": why,
                "derived": True,
                "holder": f"agent:{report.name}",
            }
            for held, level, why in by_rule(report, boss)
        ]
        assert at_work.call("capability_list", agent=report.name) == theirs
        assert refusal(agent, "capability_list", agent=boss.name).code == "not_your_report"
        assert agent.call("capability_list", after=given["id"]) == {"capabilities": []}


@pytest.mark.requirement("AG-57")
def test_a_grant_to_a_report_is_never_wider_than_what_is_held(
    site: Site, boss: Member, report: Member, at_work: ScriptedAgent
) -> None:
    below = site.member(report)
    made = created(at_work)
    wish = {"resource": f"kb_file:{made['id']}", "level": "read"}
    given = at_work.call("capability_grant", to=report.id, **wish)
    held = (given["holder"], given["level"], given["mode"])
    assert held == (f"agent:{report.name}", "read", "allow")
    assert given["granted_by"] == f"agent:{boss.name}"
    with site.at_work(report) as (_, agent):
        assert agent.call("kb_read", id=made["id"])["content"] == "text"
        assert refusal(agent, "kb_write", content="x", **made).code == "no_capability"
        wider = {**wish, "level": "write"}
        assert refusal(agent, "capability_grant", to=below.id, **wider).code == "not_held"
        passed = agent.call("capability_grant", to=below.id, **wish)
        assert passed["parent_id"] == given["id"]
        assert refusal(agent, "capability_grant", to=boss.id, **wish).code == "not_your_report"
    assert refusal(at_work, "capability_grant", to=below.id, **wish).code == "not_your_report"
    assert refusal(at_work, "capability_grant", to="nobody", **wish).code == "not_found"
    gone = at_work.call("capability_revoke", id=given["id"])
    assert gone == {"id": given["id"], "revoked": sorted([given["id"], passed["id"]])}
    with ScriptedAgent(site.url, below.key) as last:
        assert refusal(last, "kb_read", id=made["id"]).code == "no_capability"


@pytest.mark.requirement("AG-57")
def test_a_grant_ends_with_its_scope_or_at_its_time(report: Member, at_work: ScriptedAgent) -> None:
    made = created(at_work)
    wish = {"to": report.id, "resource": f"kb_file:{made['id']}", "level": "read"}
    given = at_work.call("capability_grant", **wish, expires_at="2999-01-01T00:00:00+00:00")
    assert given["expires_at"] == "2999-01-01T00:00:00.000000+00:00"
    assert given["scope"] == report.id
    past = refusal(at_work, "capability_grant", **wish, expires_at="2001-01-01T00:00:00+00:00")
    assert past.code == "already_expired"
    assert refusal(at_work, "capability_grant", **wish, scope=ABSENT).code == "not_found"


# ── who calls ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-53", "AG-80")
def test_every_agent_has_every_base_tool_and_the_operation_is_refused(
    site: Site, boss: Member, at_work: ScriptedAgent
) -> None:
    made = created(at_work, unlisted=False)
    secret = created(at_work, unlisted=True)
    grant = at_work.call("capability_list")["capabilities"][-1]
    stranger = site.member()
    with site.at_work(stranger) as (run, agent):
        assert agent.tools() == BASE_TOOLS
        seen = {"version": made["version"], "hash": made["hash"]}
        refused = [
            refusal(agent, "kb_read", id=made["id"]).code,
            refusal(agent, "kb_write", id=made["id"], content="x", **seen).code,
            refusal(agent, "kb_history", id=made["id"]).code,
            refusal(
                agent,
                "capability_grant",
                to=boss.id,
                resource=f"kb_file:{made['id']}",
                level="read",
            ).code,
            refusal(agent, "capability_revoke", id=grant["id"]).code,
            refusal(agent, "capability_list", agent=boss.name).code,
            refusal(agent, "kb_read", id=secret["id"]).code,
            refusal(agent, "outcome_view", id=boss.id).code,
            refusal(agent, "outcome_ancestors", id=boss.id).code,
            refusal(agent, "outcome_subtree", id=boss.id).code,
            refusal(agent, "outcome_list", owner=boss.name).code,
            refusal(agent, "outcome_create", parent_id=boss.id, title="x").code,
            refusal(agent, "outcome_update", id=boss.id, version=1, title="x").code,
            refusal(agent, "outcome_complete", id=boss.id).code,
            refusal(agent, "outcome_close", id=boss.id, rationale="x").code,
            refusal(agent, "outcome_reopen", id=boss.id).code,
            refusal(agent, "delegate", outcome_id=boss.id, hire={"name": "x"}).code,
            refusal(agent, "reclaim", outcome_id=boss.id, reason="x").code,
            refusal(agent, "log_read", agent=boss.name).code,
            refusal(agent, "mail_send", to=boss.name, body="x").code,
            refusal(agent, "remind", to=boss.name, body="x", cron="0 9 * * *").code,
            refusal(agent, "loose_ends", agent=boss.name).code,
        ]
        assert refused == [
            *("no_capability", "no_capability", "no_capability"),
            *("not_your_report", "not_found", "not_your_report", "not_found"),
            *("not_found", "not_found", "not_found", "not_below_you"),
            *("not_found",) * 8,
            *("not_in_reach", "not_in_reach", "not_found"),
        ]
        assert agent.call("kb_list") == {"files": books(stranger, run.workspace / ".kb")}
        assert created(agent)["version"] == 1
        tried = site.events_of(stranger)
        assert [event["allowed"] for event in tried] == [False] * len(refused) + [True]
        assert {event["run_id"] for event in tried} == {run.id}
        assert {event["action"] for event in tried[:3]} == {"file.read", "file.write"}
    assert site.accesses(made["id"]) == [("write", 1)]


def test_a_token_dies_with_its_run_and_a_key_with_its_agent(site: Site, boss: Member) -> None:
    with ScriptedAgent(site.url, boss.key) as outside:
        file = outside.call("kb_create", description="Early", content="early")
    run = site.begin(boss)
    with ScriptedAgent(site.url, run.token) as agent:
        assert file["id"] in {one["id"] for one in agent.call("kb_list")["files"]}
        site.finish(run)
        with pytest.raises(ConnectionError, match=r"401.*The token was revoked"):
            agent.call("kb_list")
        with pytest.raises(ConnectionError, match="401"):
            agent.tools()
        for tool in ("no_such_tool", *EVERY_TOOL):  # also those that fail before they ask anything
            with pytest.raises(ConnectionError, match="401"):
                agent.call(tool)
        before = blobs(site)
        kept = {"kb_create": {"content": "late", "description": "late"}}
        kept["mail_send"] = {"to": "board", "body": "late"}
        kept["outcome_create"] = {"parent_id": boss.id, "title": "late", "description": "late"}
        for tool, given in kept.items():
            with pytest.raises(ConnectionError, match="401"):
                agent.call(tool, **given)
        assert blobs(site) == before
        with pytest.raises(ConnectionError, match="401"):
            agent.call("kb_write", id=file["id"], content="late", version=1, hash=file["hash"])
        assert {path for path in blobs(site) if "/.trash/" not in path} == before
    with ScriptedAgent(site.url, boss.key) as outside:
        assert outside.tools() == BASE_TOOLS
        site.call(site.board, agents.terminate, agent=boss.id)
        with pytest.raises(ConnectionError, match="401"):
            outside.call("kb_list")


def blobs(site: Site) -> set[str]:
    folder = site.app.settings.home / "blobs"
    return {str(path) for path in folder.rglob("*") if path.is_file()}


def test_a_call_that_is_answered_is_one_transaction(
    site: Site, boss: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caller is identified by what is done, not once more before."""
    database, seen = site.app.gate.database, list[str]()
    for name in ("submit_read", "submit_write"):
        submit = getattr(database, name)

        def counted(work: Any, name: str = name, submit: Any = submit) -> Any:
            seen.append(name)
            return submit(work)

        monkeypatch.setattr(database, name, counted)
    with ScriptedAgent(site.url, boss.key) as agent:
        agent.call("kb_browse")
        for tool, given, expected in (
            ("kb_browse", {}, ["submit_read"]),
            ("mail_inbox", {}, ["submit_write"]),
            ("log_submit", {"summary": "Here."}, ["submit_write"]),
        ):
            seen.clear()
            agent.call(tool, **given)
            assert seen == expected, (tool, seen)


def test_a_person_uses_the_tools_with_a_person_s_rights(
    site: Site, boss: Member, at_work: ScriptedAgent
) -> None:
    made = created(at_work, "one", description="for the board too")
    with ScriptedAgent(site.url, site.board.token) as board:
        assert board.tools() == BASE_TOOLS
        assert board.call("kb_read", id=made["id"])["content"] == "one"
        done = board.call("kb_write", content="two", **made)
        latest = board.call("kb_history", id=made["id"])["versions"][0]
        assert (latest["number"], latest["agent_id"], latest["run_id"]) == (2, None, None)
        assert latest["user_id"] is not None
        assert refusal(board, "kb_write", path="x", **done).code == "invalid"
        given = board.call("capability_grant", to=boss.id, resource="agent.create", level="use")
        assert given["granted_by"].startswith("user:")
    site.call(site.board, users.add, company=site.company, name="onlooker", role="observer")
    token = site.call(
        site.board, users.create_token, company=site.company, user="onlooker", expires_at=None
    )
    with ScriptedAgent(site.url, token["token"]) as observer:
        assert observer.call("kb_read", id=made["id"])["content"] == "two"
        assert refusal(observer, "kb_write", content="x", **done).code == "observer"
        assert refusal(observer, "kb_create", description="x", content="x").code == "observer"


def test_the_tools_of_one_company_do_not_reach_into_another(
    site: Site, at_work: ScriptedAgent
) -> None:
    made = created(at_work, description="a quokka in the first company")
    other = site.call(site.board, companies.create, name="Elsewhere")["id"]
    stranger = site.call(
        site.board, agents.create, company=other, name="stranger", adapter_type="scripted"
    )
    key = site.call(site.board, agents.create_key, agent=stranger["id"])["token"]
    with ScriptedAgent(site.url, key) as agent:
        for tool, more in (
            ("kb_read", {}),
            ("kb_history", {}),
            ("kb_write", {"content": "x", "version": 1, "hash": made["hash"]}),
        ):
            assert refusal(agent, tool, id=made["id"], **more).code == "not_found"
        assert agent.call("kb_browse", query="quokka") == {"files": []}
        listed = agent.call("kb_list")["files"]
        assert [file["description"] for file in listed] == [
            "State of stranger",
            "Activity log of stranger",
        ]


# ── what the tools look like ────────────────────────────────────────────────────────────────────


class Wire:
    """Messages as bytes over one kept connection, in either generation of the protocol."""

    def __init__(self, url: str, token: str, version: str, path: str = "/mcp") -> None:
        place = urlsplit(url)
        self._connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
        self._token, self._version, self._path = token, version, path

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": self._version,
        }
        if self._version == LATER:
            headers |= {"Mcp-Method": method, **_name_header(params)}
            meta = {
                "io.modelcontextprotocol/protocolVersion": LATER,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            params = {**params, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self._connection.request("POST", self._path, json.dumps(message).encode(), headers)
        response = self._connection.getresponse()
        body = response.read()
        assert response.status == 200, (params, response.status, body)
        return json.loads(body)["result"]

    def call(self, tool: str, arguments: Any) -> Any:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})


def _name_header(params: dict[str, Any]) -> dict[str, str]:
    return {"Mcp-Name": params["name"]} if "name" in params else {}


@pytest.mark.requirement("AG-53", "FX-16")
@pytest.mark.parametrize("version", [EARLIER, LATER])
def test_the_tool_list_is_small_and_says_which_tools_only_look(
    site: Site, boss: Member, version: str
) -> None:
    run = site.begin(boss)
    with Wire(site.url, run.token, version) as wire:
        base = wire.ask("tools/list", {})["tools"]
    with Wire(site.url, boss.key, version) as wire:
        strict = wire.ask("tools/list", {})["tools"]
        site.member(boss)
        listed = wire.ask("tools/list", {})["tools"]
    assert [tool["name"] for tool in base] == BASE_TOOLS
    # Whoever checks arguments by a schema is told that there are no others; a model in a run is
    # spared the words.
    assert all("additionalProperties" not in tool["inputSchema"] for tool in base)
    assert all(tool["inputSchema"]["additionalProperties"] is False for tool in strict)
    schemas = {tool["name"]: tool["inputSchema"]["properties"] for tool in strict}
    assert schemas["delegate"]["grants"]["items"]["additionalProperties"] is False
    assert "additionalProperties" not in schemas["delegate"]["hire"]["properties"]["config"]
    assert set(schemas["outcome_create"]) >= {"parent_id", "title"}
    (create,) = [tool for tool in strict if tool["name"] == "outcome_create"]
    assert create["inputSchema"]["required"] == ["parent_id", "title"]
    assert [tool["name"] for tool in listed] == sorted([*EVERY_TOOL, *FOR_BOSSES])
    assert len(json.dumps(base, separators=(",", ":"))) / 4 < MOST_TOKENS
    looking = {tool["name"] for tool in listed if tool.get("annotations", {}).get("readOnlyHint")}
    # Those about changes are listed only for who may propose some.
    assert looking == (LOOKING | {"approval_view"}) - set(declared.tools("changes"))
    for tool in listed:
        assert tool["description"]
        keyed = "idempotency_key" in tool["inputSchema"]["properties"]
        assert keyed == (tool["name"] not in looking)


@pytest.mark.requirement("FX-21")
@pytest.mark.parametrize("version", [EARLIER, LATER])
def test_a_small_model_is_told_of_ten_tools_and_can_call_the_others(
    site: Site, boss: Member, version: str
) -> None:
    site.member(boss)  # one with reports has the most tools
    with Wire(site.url, boss.key, version, f"/mcp{FEW_TOOLS}") as wire:
        listed = wire.ask("tools/list", {})["tools"]
        assert not wire.call("outcome_view", {"id": boss.id}).get("isError")
        # The same key in the arguments is still understood.
        noted = {"summary": "looked", "idempotency_key": "once"}
        assert not wire.call("log_submit", noted).get("isError")
    assert sorted(tool["name"] for tool in listed) == sorted(few.NAMES)
    assert len(listed) <= 10
    assert len(json.dumps(listed, separators=(",", ":"))) / 4 <= 1_500
    assert all("idempotency_key" not in tool["inputSchema"]["properties"] for tool in listed)
    with Wire(site.url, boss.key, version, "/mcp?tools=many") as wire:
        assert len(wire.ask("tools/list", {})["tools"]) > 30


# ── arguments from a confused model ─────────────────────────────────────────────────────────────

ODD_TEXT: list[Any] = [5, 1.5, True, [], {}, ["x"], {"a": "b"}, "\ud800"]
ODD_NUMBER: list[Any] = ["5", 1.5, True, None, [], {}, 2**63, -(2**70), float("nan"), float("inf")]
ODD_ID: list[Any] = [*ODD_TEXT, None, "", "x", "../..", "%", "*", "\0", "kb://", ABSENT, "0" * 65]
ODD_ID += ["'; DROP TABLE files; --", "00000000", "\u202e", "agent:ceo", "g" * 36]


@dataclass(frozen=True)
class Confusion:
    """Good arguments of each tool, and values that are wrong in each place."""

    good: dict[str, dict[str, Any]]
    bad: dict[str, list[Any]]
    required: dict[str, list[str]]

    def arguments(self, chance: random.Random, tool: str) -> Any:
        """Almost right, wrong in at least one way."""
        if chance.random() < 0.02:
            return chance.choice([[], [1], "x", 5, True, [{"id": "x"}]])
        given = dict(self.good[tool])
        for name in list(given):
            if name not in self.required[tool] and chance.random() < 0.5:
                del given[name]
        kind = chance.random()
        if kind < 0.1 and self.required[tool]:
            del given[chance.choice(self.required[tool])]
        elif kind < 0.2:
            given[
                chance.choice(["x", "", "ID", "token", "company", "agent_id", "\ud83d", "ключ"])
            ] = 1
        else:
            places = [name for name in self.good[tool] if name in self.bad]
            for name in chance.sample(places, chance.randint(1, min(3, len(places)))):
                given[name] = chance.choice(self.bad_values(tool, name))
        return given

    def bad_values(self, tool: str, name: str) -> list[Any]:
        return self.bad.get(f"{tool}.{name}", self.bad[name])


class Raised(NamedTuple):
    """What one agent is to hand in, to judge and to decide."""

    task: str
    handed_in: str
    request: str
    #: A letter to answer, and one to handle.
    letter: str
    handled: str


def raise_something(
    site: Site, boss: ScriptedAgent, clumsy: tuple[Member, ScriptedAgent], report: Member
) -> Raised:
    """Something that the boss gave to an agent, and what that agent's report raised with it."""
    member, agent = clumsy

    def lent(by: ScriptedAgent, to: Member) -> str:
        mandate = by.call("outcome_list")["outcomes"][0]["id"]
        made: str = by.call("outcome_create", parent_id=mandate, title="task")["id"]
        by.call("delegate", outcome_id=made, to=to.name)
        return made

    task, handed_in = lent(boss, member), lent(agent, report)
    with site.at_work(report) as (_, below):
        below.call("outcome_submit", id=handed_in, note="It is done.")
        asked = below.call("capability_request", resource="repo:site", level="use", why="Please.")
    letter, handled = (
        boss.call("mail_send", to=member.name, body=text)["id"] for text in ("one", "two")
    )
    return Raised(task, handed_in, asked["id"], letter, handled)


def confusion(
    agent: ScriptedAgent,
    workspace: Path,
    outside: Path,
    foreign: str,
    report: Member,
    superior: Member,
    raised: Raised,
) -> Confusion:
    boss, above = superior.name, superior.id
    (workspace / "good").write_text("good")
    traps = [path for path, _ in set_traps(workspace, outside).values()]
    mine = created(agent, "mine", description="mine")
    grant = agent.call(
        "capability_grant", to=report.id, resource=f"kb_file:{mine['id']}", level="read"
    )
    mandate = agent.call("outcome_list")["outcomes"][0]["id"]
    part, done, lent = (
        agent.call("outcome_create", parent_id=mandate, title=title)
        for title in ("part", "done", "lent")
    )
    agent.call("outcome_complete", id=done["id"])
    agent.call("delegate", outcome_id=lent["id"], to=report.name)
    question = agent.call("ask", question="May I?")
    spare, given_up = (
        agent.call("outcome_create", parent_id=part["id"], title=title)["id"]
        for title in ("spare", "given up")
    )
    things = {"outcome": part["id"], "agent": report.name, "file": mine["id"]}
    things |= {"message": raised.handled, "thread": question["id"], "address": report.name}
    things |= {"grant": grant["id"], "resource": f"kb_file:{foreign}"}
    things |= dict.fromkeys(("approval", "change", "comment"), ABSENT)  # tried elsewhere
    good: dict[str, dict[str, Any]] = declared.arguments(things, whole=True) | {
        "kb_list": {"limit": 5, "after": ""},
        "kb_browse": {"query": "mine", "limit": 5},
        "kb_read": {"id": mine["id"], "version": 1},
        "kb_create": {
            "description": "d",
            "content": "c",
            "encoding": "utf-8",
            "unlisted": False,
            "idempotency_key": "key",
        },
        "kb_write": {**mine, "path": "good", "encoding": "utf-8", "idempotency_key": "key"},
    }
    # What has to be in a certain state for it.
    good["outcome_create"] |= {"parents": [mandate], "blocked_by": [spare]}
    good["outcome_update"] |= {
        "version": part["version"],
        "parents": [mandate],
        "blocked_by": [done["id"]],
    }
    good["propose_config"] |= {"changes": {"title": "Chief"}}
    del good["propose_config"]["reason"]  # it need not be given, so an empty one is not wrong
    good["outcome_complete"]["id"] = spare
    good["outcome_submit"]["id"] = raised.task
    good["outcome_return"]["id"] = raised.handed_in
    good["outcome_close"]["id"] = given_up
    good["outcome_reopen"]["id"] = done["id"]
    good["capability_refuse"]["request"] = raised.request
    for tool in ("ask", "capability_request"):
        del good[tool]["outcome_id"]  # none and an empty one are what it works on
    good["reclaim"]["outcome_id"] = lent["id"]
    good |= {
        "delegate": {
            "outcome_id": part["id"],
            "hire": {"name": "hired"},
            "grants": [{"resource": f"kb_file:{mine['id']}", "level": "read"}],
            "idempotency_key": "key",
        },
        "mail_send": {
            "to": report.name,
            "body": "b",
            "subject": "s",
            "attachments": [mine["id"]],
            "reply_to": raised.letter,
            "deliver_at": "2999-01-01T00:00:00+00:00",
            "idempotency_key": "key",
        },
        "remind": {
            "body": "b",
            "cron": "0 9 * * 1-5",
            "timezone": "Europe/Zurich",
            "to": report.name,
            "subject": "s",
            "idempotency_key": "key",
        },
        "capability_grant": {
            "to": report.name,
            "resource": f"kb_file:{mine['id']}",
            "level": "read",
            "scope": report.id,
            "expires_at": "2999-01-01T00:00:00+00:00",
            "idempotency_key": "key",
        },
        "repo_clone": {"name": None, "ref": None, "dir": None},
    }
    odd_agent: list[Any] = [*ODD_TEXT, "", "nobody", boss, ABSENT, "\0", "x" * 81, "agent:"]
    odd_outcome: list[Any] = [*ODD_ID, foreign, mine["id"], above]
    odd_outcomes: list[Any] = [
        5,
        1.5,
        True,
        "x",
        {},
        ["x"],
        [5],
        [None],
        [ABSENT],
        [above],
        ["x"] * 51,
    ]
    odd_receiver: list[Any] = [*ODD_TEXT, "", "nobody", ABSENT, "\0", "x" * 201, "agent:"]
    odd_receiver += ["user:nobody", "channel:telegram:1", "everybody:", "agent:a b"]
    odd_line: list[Any] = [*ODD_TEXT, None, "a\0b", "x" * 201, "\u202e"]
    bad: dict[str, list[Any]] = {
        "mail_send.to": [*odd_receiver, None],
        "remind.to": odd_receiver,
        "ask.to": [*ODD_TEXT, "", "nobody", boss, "BOSS"],
        "mail_send.body": [*ODD_TEXT, None],
        "remind.body": [*ODD_TEXT, None, "", " \n", "a\0b", "x" * 20_001],
        "subject": odd_line,
        "attachments": [5, "x", {}, ["x"], [5], [None], [ABSENT], [foreign], ["x"] * 51],
        "reply_to": [*ODD_TEXT, "", "x", ABSENT, foreign, mine["id"], "0" * 65],
        "deliver_at": [*ODD_TEXT, "", "yesterday", "9999-99-99"],
        "mail_inbox.limit": [*ODD_NUMBER, 0, -1, 11],
        "ids": [5, "x", {}, [], ["x"], [5], [None], [ABSENT], [foreign], ["x"] * 101],
        "capability_request.resource": [
            *(*ODD_TEXT, None, "", "kb_file:", "kb_file:x", "nothing:1", "x" * 121, "repo:\0"),
        ],
        "why": [*ODD_TEXT, None, "", " \n", "a\0b", "x" * 10_001],
        "request": [*ODD_ID, foreign, mine["id"], raised.letter, raised.task],
        "outcome_return.note": [*ODD_TEXT, None, "", " \n", "a\0b", "x" * 10_001],
        "question": [*ODD_TEXT, None, "", " \n", "a\0b", "x" * 10_001],
        "options": [5, "x", {}, [5], [None], [""], ["a\0b"], ["x" * 201], ["x"] * 21],
        "cron": [*ODD_TEXT, None, "", "* * *", "99 * * * *", "0 0 30 2 *", "x" * 101, "\0"],
        "timezone": [*ODD_TEXT, None, "", "Mars/Base", "../etc/passwd", "x" * 61, "\0"],
        "loose_ends.agent": [*ODD_TEXT, "nobody", boss, ABSENT, "\0", "x" * 81, "agent:"],
        "thread_cancel.id": [*ODD_ID, foreign, mine["id"]],
        "change": [*(odd for odd in ODD_ID if odd is not None), foreign, mine["id"]],
        **{f"{tool}.id": odd_outcome for tool in good if tool.startswith("outcome_")},
        # What it works for, an agent may look at.
        **{f"{tool}.id": odd_outcome[:-1] for tool in LOOKING if tool.startswith("outcome_")},
        "outcome_id": odd_outcome,
        "parent_id": odd_outcome,
        "owner": [*ODD_TEXT, "nobody", boss, ABSENT, "\0", "x" * 81, "agent:"],
        "status": [*ODD_TEXT, "", "OPEN", "done"],
        "depth": [*(odd for odd in ODD_NUMBER if odd is not None), -1, 101],
        "title": [*ODD_TEXT, "", " ", "a\0b", "x" * 201],
        "urgent": [5, "yes", [], 1.5],
        "important": [5, "yes", {}, 1.5],
        "deferred_until": [*ODD_TEXT, "yesterday", "9999-99-99"],
        "parents": odd_outcomes,
        "blocked_by": odd_outcomes,
        "evidence": [5, 1.5, True, "x", {}, ["x"], [5], [None], [ABSENT], [foreign], ["x"] * 51],
        "note": [*ODD_TEXT, None, "a\0b", "x" * 10_001],
        "rationale": [*ODD_TEXT, None, "", " \n", "a\0b", "x" * 10_001],
        "reason": [*ODD_TEXT, None, "", " \n", "a\0b", "x" * 10_001],
        "summary": [*ODD_TEXT, None, "", "a\0b", "x" * 20_001],
        "hire": [
            5,
            "x",
            [],
            {},
            {"name": 5},
            {"name": "a b"},
            {"name": boss},
            {"name": "x", "y": 1},
        ],
        "grants": [
            5,
            "x",
            {},
            [5],
            [{}],
            [{"resource": "x"}],
            [{"resource": "x", "level": "read"}],
        ],
        "outcome_list.after": [*ODD_TEXT, None, "x" * 37],
        "outcome_create.description": [*ODD_TEXT, None, "a\0b", "x" * 100_001],
        "outcome_update.description": [*ODD_TEXT, "a\0b", "x" * 100_001],
        "actionable": [5, "yes", "true", None, [], 1.5],
        "limit": [*ODD_NUMBER, 0, -1, 501],
        "after": [*ODD_TEXT, None, "x" * 37],
        "query": [*ODD_TEXT, None, "x" * 501, "a\0b"],
        "id": [*ODD_ID, foreign],
        "version": [*(odd for odd in ODD_NUMBER if odd is not None), 0, -1, 2, 2**31],
        "hash": [*ODD_TEXT, None, "", "0" * 64, "x" * 65],
        "description": [*ODD_TEXT, None, "", "  \n", "x" * 2001, "a\0b"],
        "content": [*ODD_TEXT, None],
        "path": [*ODD_TEXT, None, *traps, "/etc/passwd", "x" * 5000],
        "encoding": [*ODD_TEXT, None, "", "latin-1", "UTF-8"],
        "unlisted": [5, "yes", "true", None, [], 1.5],
        "idempotency_key": [*ODD_TEXT, "", "x" * 256, "a\nb"],
        "agent": odd_agent,
        "log_read.agent": [odd for odd in odd_agent if odd != ""],
        "to": [*odd_agent, None],
        "resource": [
            *ODD_TEXT,
            None,
            "",
            "kb_file:",
            "kb_file:x",
            f"kb_file:{ABSENT}",
            "nothing:1",
            f"kb_file:{foreign}",
            "agent.create",
            "message:agent:nobody",
            "x" * 121,
            "repo:\0",
        ],
        "level": [*ODD_TEXT, None, "", "use", "write ", "READ", "admin"],
        "repo_clone.name": [*ODD_TEXT, "", "nothing", "../x", "-x", "a\0b", "x" * 65],
        "ref": [*ODD_TEXT, "", "main", "--upload-pack=x", "a\0b", "x" * 201],
        "dir": [*ODD_TEXT, "", "here", "../x", "/etc", "a\0b", "x" * 4097],
        "scope": [*ODD_TEXT, "", "x", ABSENT, "outcome:zz", "\0" * 8],
        "expires_at": [*ODD_TEXT, "", "yesterday", "2001-01-01T00:00:00+00:00", "9999-99-99"],
    }
    required = {
        **{tool: declared.required(tool) for tool in declared.arguments(things)},
        "kb_read": ["id"],
        "kb_create": ["description", "content"],
        "kb_write": ["id", "version", "hash", "path"],
        "delegate": ["outcome_id", "hire"],
        "mail_send": ["to", "body"],
        "remind": ["body", "cron"],
        "capability_grant": ["to", "resource", "level"],
    }
    tried = {tool: good[tool] for tool in EVERY_TOOL if tool in good}
    return Confusion(tried, bad, {tool: required.get(tool, []) for tool in tried})


def everything(site: Site) -> dict[str, list[tuple[Any, ...]]]:
    """All that the database holds, except what is meant to grow with refusals."""
    names = site.sql("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    kept = [name for (name,) in names if name not in ("events", "event_heads")]
    return {name: site.sql(f'SELECT * FROM "{name}"') for name in kept}  # noqa: S608  our tables


@pytest.mark.requirement("AG-53")
@pytest.mark.parametrize("version", [EARLIER, LATER])
@pytest.mark.parametrize(
    "count", [1_500, pytest.param(10_000, marks=pytest.mark.campaign("more of the same kind"))]
)
@pytest.mark.slow
def test_thousands_of_wrong_calls_are_refused_and_change_nothing(
    tmp_path: Path, version: str, count: int, caplog: pytest.LogCaptureFixture
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    chance = random.Random(f"confused {version}")
    with serving(tmp_path / "home") as site:
        site.end_no_run_for_failed_calls()
        boss = site.member()
        clumsy = site.member(boss)
        report = site.member(clumsy)
        with site.at_work(clumsy) as (run, agent):
            with site.at_work(boss) as (_, owner):
                foreign = created(owner)["id"]
                raised = raise_something(site, owner, (clumsy, agent), report)
            wrong = confusion(agent, run.workspace, outside, foreign, report, boss, raised)
            # create_agent answers in a form of its own, whatever is wrong.
            assert set(EVERY_TOOL) - set(wrong.good) == {"create_agent"}
            before = everything(site)
            happened = len(site.sql("SELECT 1 FROM events"))
            with Wire(site.url, run.token, version) as wire:
                for _ in range(count):
                    tool = chance.choice([one for one in EVERY_TOOL if one in wrong.good])
                    arguments = wrong.arguments(chance, tool)
                    result = wire.call(tool, arguments)
                    said = result["content"][0]["text"]
                    assert result.get("isError") is True, (tool, arguments, said)
                    assert not said.startswith("internal:"), (tool, arguments, said)
                    assert " Next: " in said, (tool, arguments, said)
            assert everything(site) == before
            refused = site.sql(
                "SELECT allowed, actor_id, run_id FROM events ORDER BY seq LIMIT -1 OFFSET ?",
                happened,
            )
            assert set(refused) == {(0, clumsy.id, run.id)}
            for tool, arguments in wrong.good.items():
                keyless = {k: v for k, v in arguments.items() if k != "idempotency_key"}
                agent.call(tool, **keyless)  # what was made wrong was right
        assert site.call(site.board, events.verify, company=site.company)["ok"]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


# ── other clients ───────────────────────────────────────────────────────────────────────────────


async def exercise_work(
    call: Callable[..., Coroutine[Any, Any, dict[str, Any]]], report: Member, *, evidence: str
) -> None:
    """The tools for outcomes and logs; the caller is the boss of `report`."""
    mandate = (await call("outcome_list"))["outcomes"][0]["id"]
    part = await call("outcome_create", parent_id=mandate, title="Etwas Großes")
    step = await call("outcome_create", parent_id=part["id"], title="A step")
    changed = await call("outcome_update", id=step["id"], version=1, urgent=True)
    assert (changed["urgent"], changed["version"]) == (True, 2)
    done = await call("outcome_complete", id=step["id"], evidence=[evidence], note="done")
    assert done["verdict"]["evidence"][0]["id"] == evidence
    assert (await call("outcome_reopen", id=step["id"]))["status"] == "open"
    moved = await call("delegate", outcome_id=part["id"], to=f"agent:{report.name}")
    assert (moved["agent"]["id"], moved["moved"]) == (report.id, 1)
    back = await call("reclaim", outcome_id=part["id"], reason="changed my mind")
    assert back["outcome"]["owner"].startswith("agent:")
    tree = await call("outcome_subtree", id=part["id"])
    assert [child["id"] for child in tree["children"]] == [step["id"]]
    assert (await call("outcome_view", id=step["id"]))["parents"][0]["id"] == part["id"]
    chains = json.dumps(await call("outcome_ancestors", id=step["id"]))
    assert mandate in chains
    closed = await call("outcome_close", id=part["id"], rationale="not needed")
    assert closed["status"] == "closed"
    await call("log_submit", summary="Used every tool.")
    assert (await call("log_read"))["entries"][0]["summary"] == "Used every tool."


async def exercise_mail(
    call: Callable[..., Coroutine[Any, Any, dict[str, Any]]],
    site: Site,
    report: Member,
    *,
    file: str,
) -> None:
    """The tools for mail; the caller is the boss of `report`."""
    me = (await call("outcome_list"))["outcomes"][0]["id"]
    await call("mail_send", to=report.name, body="Grüße 🙂", subject="s", attachments=[file])

    def written() -> str:
        sent = site.call(
            site.board,
            mail.send,
            company=site.company,
            to=f"agent:{me}",
            body="Grüße 🙂",
            subject="s",
            attachments=[file],
        )
        return str(sent["id"])

    sent = await asyncio.to_thread(written)
    (letter,) = (await call("mail_inbox"))["messages"]
    assert (letter["id"], letter["body"], letter["attachments"]) == (sent, "Grüße 🙂", [file])
    assert (await call("mail_ack", ids=[sent]))["acknowledged"] == [sent]
    assert (await call("mail_inbox"))["messages"] == []
    wish = {"resource": "agent.create", "level": "use", "why": "There is much to do."}
    assert (await call("capability_request", **wish))["request"]["agent"] == me
    asked = await call("ask", question="Red or blue?", options=["red", "blue"], to="board")
    planned = await call("remind", body="Look again.", cron="0 9 * * *", timezone="UTC")
    ends = (await call("loose_ends"))["loose_ends"]
    assert {end["id"] for end in ends} == {asked["id"], planned["id"]}
    for end in ends:
        assert (await call("thread_cancel", id=end["id"]))["status"] == "cancelled"
    assert (await call("loose_ends", agent=report.name))["loose_ends"] == []


async def exercise(client: Client, site: Site, report: Member) -> None:
    """Every tool once, as a client that knows nothing of us uses them."""

    async def call(tool: str, **arguments: Any) -> dict[str, Any]:
        result = await client.call_tool(tool, arguments)
        assert not result.is_error, result
        assert result.content[0].model_dump()["text"] == json.dumps(
            result.structured_content, ensure_ascii=False, separators=(",", ":")
        )
        return dict(result.structured_content or {})

    listed = await client.list_tools()
    assert [tool.name for tool in listed.tools] == IN_A_RUN_OF_A_BOSS
    made = await call("kb_create", description="Grüße 🙂", content="eins")
    assert await call("kb_read", id=made["id"]) == {**made, "content": "eins"}
    done = await call("kb_write", content="zwei", **made)
    assert done["version"] == 2
    versions = (await call("kb_history", id=made["id"]))["versions"]
    assert [each["number"] for each in versions] == [2, 1]
    assert made["id"] in [file["id"] for file in (await call("kb_list"))["files"]]
    found = (await call("kb_browse", query="GRÜSSE"))["files"]
    assert made["id"] in [file["id"] for file in found]
    wish = {"to": report.name, "resource": f"kb_file:{made['id']}", "level": "read"}
    grant = await call("capability_grant", **wish)
    held = (await call("capability_list", agent=report.name))["capabilities"]
    assert grant["id"] in [each.get("id") for each in held]
    assert (await call("capability_revoke", id=grant["id"]))["revoked"] == [grant["id"]]
    await exercise_work(call, report, evidence=made["id"])
    await exercise_mail(call, site, report, file=made["id"])
    stale = await client.call_tool("kb_write", {**made, "content": "drei"})
    assert stale.is_error
    text = stale.content[0].model_dump()["text"]
    assert text.startswith("conflict: The file is at version 2 now. Next: ")
    current = {"version": 2, "hash": done["hash"]}
    facts = stale.structured_content
    assert facts is not None
    assert (facts["code"], facts["details"]) == ("conflict", current)
    assert facts["error"] in text
    assert facts["next_step"] in text


@MODES
@pytest.mark.requirement("AG-18", "AG-19", "AG-20", "AG-21", "AG-56", "AG-57", "FX-17")
def test_the_official_client_uses_every_tool(
    site: Site, boss: Member, report: Member, mode: str, version: str
) -> None:
    async def main(token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as over:
            transport = streamable_http_client(f"{site.url}/mcp", http_client=over)
            async with Client(transport, mode=mode) as client:
                assert client.protocol_version == version
                await exercise(client, site, report)

    with site.at_work(boss) as (run, _):
        asyncio.run(main(run.token))


def bridge(site: Site, token: str) -> tuple[list[str], dict[str, str]]:
    """`remit mcp-stdio`, as a client's configuration names it."""
    command = [sys.executable, "-m", "remit.entrypoints.cli.main", "mcp-stdio"]
    return command, {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(REPOSITORY / "src"),
        "REMIT_HOME": str(site.app.settings.home / "none"),
        "REMIT_URL": site.url,
        "REMIT_TOKEN": token,
    }


@MODES
def test_every_tool_works_through_the_bridge(
    site: Site, boss: Member, report: Member, mode: str, version: str
) -> None:
    async def main(token: str) -> None:
        (program, *arguments), environment = bridge(site, token)
        child = StdioServerParameters(command=program, args=arguments, env=environment)
        async with Client(child, mode=mode) as client:
            assert client.protocol_version == version
            await exercise(client, site, report)

    with site.at_work(boss) as (run, _):
        asyncio.run(main(run.token))


@pytest.mark.requirement("FX-17")
@pytest.mark.parametrize(("over", "era"), INSPECTED)
@pytest.mark.programs
def test_the_inspector_finds_nothing_wrong(
    site: Site, boss: Member, tmp_path: Path, era: Era, over: str
) -> None:
    if over == "http":
        inspector = Inspector.over_http(tmp_path, f"{site.url}/mcp", boss.key, era)
    else:
        inspector = Inspector.over_stdio(tmp_path, *bridge(site, boss.key), era)
    assert [tool["name"] for tool in inspector.tools()] == BASE_TOOLS
    made = inspector.call("kb_create", {"description": "seen", "content": "by the inspector"})
    seen = made["structuredContent"]
    read = inspector.call("kb_read", {"id": seen["id"]})
    assert read["structuredContent"] == {**seen, "content": "by the inspector"}
    wrong = inspector.call("kb_read", {"id": ABSENT})
    assert wrong["isError"] is True
    assert wrong["content"][0]["text"].startswith("not_found: There is no such file. Next: ")


@pytest.mark.requirement("AG-13", "AG-18", "AG-19", "AG-20", "AG-53")
@pytest.mark.parametrize("over", ["http", "stdio"])
@pytest.mark.programs
def test_claude_works_in_the_knowledge_base_and_is_refused_what_is_not_its_own(
    site: Site, boss: Member, at_work: ScriptedAgent, tmp_path: Path, over: str
) -> None:
    foreign = created(at_work, "not for everybody")["id"]
    worker = site.member()
    run = site.begin(worker)
    (run.workspace / "draft.md").write_text("A draft.\n")
    seen: dict[str, Any] = {}

    def remember(result: Callable[[], Any]) -> dict[str, Any]:
        seen.update(result())
        return seen

    script: list[Step] = [
        Use("mcp__remit__kb_create", {"description": "The draft", "path": "draft.md"}),
        Use("mcp__remit__kb_read", lambda made: {"id": remember(made.json)["id"]}),
        Use(
            "mcp__remit__kb_write",
            lambda read: {
                **{name: read.json()[name] for name in ("id", "version", "hash")},
                "content": read.json()["content"] + "And a second line.\n",
            },
        ),
        Use("mcp__remit__kb_read", {"id": foreign}),
        Use("mcp__remit__kb_list", {}),
        Say("Done."),
    ]
    servers = {
        "http": claude.http_server(f"{site.url}/mcp", run.token),
        "stdio": claude.stdio_server(*bridge(site, run.token)),
    }
    with FakeAnthropic(script) as model:
        ended = claude.run(
            "Go.", model_url=model.url, home=tmp_path, servers={"remit": servers[over]}
        )
    site.finish(run)
    assert not model.failures
    assert ended.server_status == {"remit": "connected"}
    assert (ended.result["result"], ended.result["is_error"]) == ("Done.", False)
    assert {f"mcp__remit__{name}" for name in BASE_TOOLS} <= set(model.tools())
    _, read, written, refused, listed = model.results()
    assert read.json()["content"] == "A draft.\n"
    assert written.json()["version"] == 2
    assert refused.is_error
    assert refused.text.startswith("no_capability: You hold no capability that gives read here.")
    assert [file["id"] for file in listed.json()["files"]] == [worker.state, worker.log, seen["id"]]
    happened = [
        (event["action"], event["resource"], event["allowed"], event["run_id"])
        for event in site.events_of(worker)
    ]
    assert happened == [
        ("file.create", f"kb_file:{seen['id']}", True, run.id),
        ("file.write", f"kb_file:{seen['id']}", True, run.id),
        ("file.read", f"kb_file:{foreign}", False, run.id),
    ]
