"""The command line as people use it: child processes against a real instance."""

import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import cli_forks
from tests.cli_forks import Forked

SOURCE = Path(__file__).parent.parent / "src"
MODULE = "remit.entrypoints.cli.main"
NOWHERE = "http://127.0.0.1:1"
WELCOME = {
    *("url", "pid", "login_url", "token_file", "agent", "can_work", "sentence"),
    *("spending", "tried", "restored", "outside"),
}


class Result(NamedTuple):
    code: int
    out: str
    err: str
    raw: bytes

    @property
    def answer(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


class Home:
    """A home folder and the commands run in it."""

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": str(SOURCE),
            "REMIT_HOME": str(folder),
            **(environment or {}),
        }

    def command(self, *arguments: str, warnings: bool = True) -> list[str]:
        strict = ["-W", "error"] if warnings else []
        return [sys.executable, *strict, "-m", MODULE, *arguments]

    def __call__(
        self,
        *arguments: str,
        stdin: bytes = b"",
        environment: Mapping[str, str] | None = None,
        warnings: bool = True,
    ) -> Result:
        env = {**self.environment, **(environment or {})}
        if warnings and not any(name.startswith("PYTHONIO") for name in env):
            code, out, err = self._forks(arguments).run([*arguments], env, stdin)
        else:
            done = subprocess.run(
                self.command(*arguments, warnings=warnings),
                input=stdin,
                capture_output=True,
                env=env,
                timeout=60,
                check=False,
            )
            code, out, err = done.returncode, done.stdout, done.stderr
        assert b"Traceback" not in err, err.decode()
        return Result(code, out.decode(errors="replace"), err.decode(), out)

    def json(self, *arguments: str, stdin: bytes = b"") -> Any:
        return self(*arguments, "--json", stdin=stdin).answer

    def start(self, *arguments: str) -> Forked:
        """One that goes on, and whose output is read as it comes."""
        return self._forks(arguments).open([*arguments], self.environment, errors=False)

    def _forks(self, arguments: tuple[str, ...]) -> cli_forks.Forks:
        is_long = not {"up", "serve", "worker"}.isdisjoint(arguments)
        return cli_forks.instances() if is_long else cli_forks.commands()


@pytest.fixture(scope="module")
def remit(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Home]:
    """A home whose instance is running. It starts agents for modules that give it slots; the
    others play the agents themselves."""
    slots = str(getattr(request.module, "SLOTS", 0))
    home = Home(tmp_path_factory.mktemp("home"))
    with home.start("up", "--port", "0", "--slots", slots, "--json") as instance:
        assert instance.stdout is not None
        text = ""
        while not text.endswith("}\n"):
            line = instance.stdout.readline().decode()
            assert line, f"the instance did not start; it said {text!r}"
            text += line
        welcome = json.loads(text)
        assert set(welcome) == WELCOME
        yield home
        instance.send_signal(signal.SIGTERM)
        assert instance.wait(30) == 0


@pytest.fixture
def only(remit: Home, request: pytest.FixtureRequest) -> Home:
    """The same instance through the eyes of a user with one fresh company of their own."""
    number = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:8]
    company = remit.json("company", "create", f"Company {number}")
    remit.json("--company", company["id"], "user", "add", f"u{number}")
    token = remit.json("--company", company["id"], "user", "token", f"u{number}")["token"]
    return Home(remit.folder, {"REMIT_TOKEN": token})


def refused(result: Result, code: int, sentence: str) -> None:
    """An error is one sentence and one next step on standard error, and nothing else; with --json
    they are in one line of JSON."""
    assert result.code == code, result
    assert result.out == ""
    if result.err.startswith("{"):
        answer = json.loads(result.err)
        assert {"error", "code", "next_step"} <= answer.keys()
        assert sentence in answer["error"]
        return
    first, second = result.err.splitlines()
    assert first.startswith("error: ")
    assert sentence in first
    assert second.startswith("  next: ")


# Companies


def test_a_company_is_created_listed_shown_and_renamed(only: Home) -> None:
    (company,) = only.json("company", "list")
    assert {"id", "name", "created_at", "role", "scope_agent_id"} <= set(company)
    table = only("company", "list").out.splitlines()
    assert table[0].split() == ["NAME", "ID", "CREATED"]
    assert company["name"] in table[1]
    assert company["id"][-12:] in table[1]
    assert company["id"] not in table[1]
    assert re.search(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$", table[1])

    renamed = only.json("company", "set", "--name", f"{company['name']} & sons")
    assert only.json("company", "show") == renamed
    assert company["id"] in only("company", "show").out


def test_a_company_name_is_taken_only_once(only: Home, remit: Home) -> None:
    (company,) = only.json("company", "list")
    refused(remit("company", "create", company["name"].upper()), 4, "already")


def test_who_has_several_companies_says_which(remit: Home, only: Home) -> None:
    (mine,) = only.json("company", "list")
    refused(remit("agent", "list"), 2, "My company")
    shown = [
        remit("--company", mine["name"], "company", "show", "--json"),
        remit("company", "--company", mine["id"], "show", "--json"),
        remit("company", "show", "--json", "--company", mine["id"][:18]),
        remit("company", "show", "--json", environment={"REMIT_COMPANY": mine["name"].lower()}),
        remit("--json", "company", "show", mine["name"]),
    ]
    assert [result.answer for result in shown] == [mine] * len(shown)
    refused(remit("--company", "Nothing", "agent", "list"), 3, "Nothing")


# People


def test_a_person_is_added_gets_a_token_and_is_removed(only: Home) -> None:
    added = only.json("user", "add", "ann-lee", "--role", "observer")
    assert (added["name"], added["role"], added["scope_agent_id"]) == ("ann-lee", "observer", None)
    assert "observer" in only("user", "list").out

    made = only("user", "token", "ann-lee", "--label", "laptop")
    token = made.out.strip()
    assert token.startswith("rmt_user_")
    assert "not shown again" in made.err
    (listed,) = only.json("user", "token", "ann-lee", "--list")
    assert listed["label"] == "laptop"
    assert token not in json.dumps(listed)
    assert only("--token", token, "company", "list").code == 0
    refused(only("company", "set", "--name", "Mine now", "--token", token), 1, "")

    assert only.json("user", "token", "ann-lee", "--revoke", listed["id"])["revoked"] is True
    refused(only("--token", token, "company", "list"), 1, "revoked")
    refused(only("user", "token", "ann-lee", "--revoke", ""), 3, "no token")
    assert only("user", "remove", "ann-lee").code == 0
    refused(only("user", "remove", "ann-lee"), 3, "no such user")


def test_a_removal_says_what_the_person_made_for_others(only: Home) -> None:
    only("user", "add", "maker")
    token = only("user", "token", "maker").out.strip()
    assert only("--token", token, "user", "invite", "guest").code == 0
    seen = only("user", "remove", "maker", "--dry-run").out
    assert "maker would have no part in the company any more." in seen
    assert "Would end:" in seen
    assert "for guest. Nobody has signed in with it." in seen
    assert "remit user link guest" in seen
    assert "Nothing was changed." in seen
    assert "maker" in only("user", "list").out
    done = only("user", "remove", "maker")
    assert done.code == 0
    assert "Ended:" in done.out
    assert "maker" not in only("user", "list").out
    only("user", "remove", "guest")


def test_a_person_who_exists_is_not_added_twice(only: Home) -> None:
    only.json("user", "add", "bert")
    refused(only("user", "add", "bert"), 4, "already")


# Agents


def test_agents_are_created_listed_drawn_and_terminated(only: Home) -> None:
    assert [one["name"] for one in only.json("agent", "list")] == ["ceo"]
    assert only("agent", "tree").out.splitlines()[1:] == ["└── ceo (ceo, Chief executive) idle"]

    boss = only.json("agent", "create", "boss", "--role", "ceo", "--title", "Chief")
    config = '{"command": "x", "env": {"aB": "1"}}'
    only.json("agent", "create", "left", "--boss", "boss", "--adapter=process", "--config", config)
    only.json("agent", "create", "right", "--boss", f"agent:{boss['id']}")
    only.json("agent", "create", "below", "--boss", "LEFT", "--purpose", "See to it")
    assert only("agent", "tree").out.splitlines()[1:] == [
        "├── ceo (ceo, Chief executive) idle",
        "└── boss (ceo, Chief) idle",
        "    ├── left (general) idle",
        "    │   └── below (general) idle",
        "    └── right (general) idle",
    ]
    _, tree = only.json("agent", "tree")
    assert [report["name"] for report in tree["reports"]] == ["left", "right"]
    table = only("agent", "list").out
    assert re.search(r"^below +general +idle +left +process +[0-9a-f]{12}$", table, re.MULTILINE)
    assert re.search(r"^right +general +idle +boss +scripted +", table, re.MULTILINE)

    shown = only.json("agent", "show", "below")
    assert shown["reports_to"] == only.json("agent", "show", "left")["id"]
    assert "left" in only("agent", "show", shown["id"]).out

    refused(only("agent", "terminate", "left"), 4, "reports")
    assert only.json("agent", "terminate", "below")["status"] == "terminated"
    assert "below" not in only("agent", "list").out
    assert "below" in only("agent", "list", "--all").out


@pytest.mark.requirement("FX-14")
def test_a_company_is_created_with_its_root_agent_which_stays(remit: Home) -> None:
    made = remit.json("company", "create", "Rooted")
    named = ("--company", made["id"])
    (ceo,) = remit.json("agent", "list", *named)
    assert (ceo["id"], ceo["name"], ceo["adapter_type"]) == (
        made["root_agent_id"],
        "ceo",
        "scripted",
    )
    refused(remit("agent", "terminate", "ceo", *named), 4, "root agent")
    assert remit.json("send", "ceo", "Hello.", *named)["id"]
    config = '{"command": "/bin/cat"}'
    told = remit(
        *("company", "create", "Other root", "--root", "editor"),
        *("--adapter", "process", "--config", config),
    )
    assert 'send editor "…"' in told.out
    (editor,) = remit.json("agent", "list", "--company", "Other root")
    assert (editor["name"], editor["adapter_type"]) == ("editor", "process")


@pytest.mark.requirement("FX-22")
def test_an_agent_is_created_with_few_words(only: Home) -> None:
    only.json("agent", "create", "plain", "--boss", "ceo", "--purpose", "Write what is needed")
    only.json("agent", "create", "once", "--boss", "ceo", "--purpose", "Write it", "--once")
    only.json("agent", "create", "desk", "--boss", "ceo", "--adapter", "human")
    found = {one["name"]: one["adapter_type"] for one in only.json("agent", "list")}
    assert found == {"ceo": "scripted", "plain": "scripted", "once": "scripted", "desk": "human"}
    reasons = {name: only.json("agent", "why-idle", name)["reason"] for name in found}
    assert reasons == {
        "ceo": "blocked",
        "plain": "no_work",
        "once": "no_slot",
        "desk": "no_person",
    }
    assert "remit org seat desk --user NAME" in only("agent", "why-idle", "desk").out
    assert only.json("run", "list") == []
    refused(only("agent", "create", "x", "--once"), 2, "--once needs a --purpose")
    hired = only.json("agent", "hire", "asked", "--boss", "ceo", "--purpose", "Do it", "--once")
    assert hired["approval"]["status"] == "pending"
    assert only.json("outcome", "show", "asked")["perpetual"] is False


def test_an_agent_that_is_not_there_is_not_found(only: Home) -> None:
    refused(only("agent", "show", "nobody"), 3, "nobody")
    refused(only("agent", "create", "x", "--boss", "nobody"), 3, "nobody")


def test_a_bad_agent_is_refused(only: Home) -> None:
    refused(only("agent", "create", "two words"), 2, "name")
    refused(only("agent", "create", "x", "--config", "[1]"), 2, "JSON object")
    refused(only("agent", "create"), 2, "NAME")


def test_an_agents_key_is_shown_once_and_opens_its_door(only: Home) -> None:
    agent = only.json("agent", "create", "worker")
    key = only("agent", "token", "worker").out.strip()
    me = only("login", "--show", "--json", "--token", key).answer
    assert (me["kind"], me["id"]) == ("agent", agent["id"])
    (listed,) = only.json("agent", "token", "worker", "--list")
    only.json("agent", "token", "worker", "--revoke", listed["id"][:18])
    refused(only("--token", key, "company", "show"), 1, "revoked")
    refused(only("agent", "token", "worker", "--list", "--revoke", "x"), 2, "exclude")


def test_an_agent_is_found_by_name_in_the_company_that_was_named(remit: Home, only: Home) -> None:
    made = only.json("agent", "create", "namesake")
    (company,) = only.json("company", "list")
    named = ("--company", company["id"])
    assert remit.json("agent", "show", "namesake", *named) == made
    assert remit.json("agent", "show", made["id"][:18], *named) == made
    refused(remit("agent", "show", "nobody", *named), 3, "nobody")


# Outcomes


def test_a_mandate_is_shown_completed_and_closed(only: Home) -> None:
    done = only.json("agent", "create", "done", "--purpose", "Get it done", "--once")
    only.json("agent", "create", "dropped")
    shown = only.json("outcome", "show", "done")
    assert (shown["title"], shown["status"], shown["owner_id"]) == (
        "Get it done",
        "open",
        done["id"],
    )
    finished = only.json("outcome", "complete", done["id"], "--note", "It works")
    assert finished["status"] == "completed"
    assert "closed" in only("outcome", "close", "dropped", "Not wanted").out
    refused(only("outcome", "complete", "done"), 4, "completed already")
    refused(only("outcome", "show", "01234567-89ab-7def-8123-456789abcdef"), 3, "outcome")
    refused(only("outcome", "close", "dropped"), 2, "RATIONALE")


# Files


def test_a_file_is_created_read_and_written(only: Home, tmp_path: Path) -> None:
    assert only("kb", "list").out == "There are no files that you may read.\n"
    source = tmp_path / "goals.md"
    source.write_bytes(b"grow\r\n\x00\xff")
    made = only.json("kb", "create", "Our yearly goals", str(source))
    assert made["hash"] == hashlib.sha256(b"grow\r\n\x00\xff").hexdigest()
    assert only("kb", "cat", made["id"]).raw == b"grow\r\n\x00\xff"
    assert only.json("kb", "cat", made["id"])["content_base64"] == "Z3Jvdw0KAP8="

    written = only.json("kb", "write", made["id"], stdin=b"shrink")
    assert written["version"] == 2
    assert only.json("kb", "cat", f"kb://{made['id']}")["content"] == "shrink"
    assert only("kb", "cat", made["id"], "--version", "1").raw == b"grow\r\n\x00\xff"
    refused(only("kb", "cat", made["id"], "--version", "9"), 3, "version 9")

    assert [one["number"] for one in only.json("kb", "history", made["id"])] == [2, 1]
    history = only("kb", "history", made["id"], "--limit", "1")
    assert re.search(r"^2 .* user:u\w+ +6 B +", history.out, re.MULTILINE)
    assert "--limit 0 shows all" in history.err
    accesses = only.json("kb", "log", made["id"])
    assert [one["access"] for one in accesses] == ["read", "read", "write", "read", "read", "write"]
    assert "read" in only("kb", "log", made["id"]).out


def test_a_write_that_missed_a_version_is_a_conflict(only: Home) -> None:
    made = only.json("kb", "create", "x", "-", stdin=b"one")
    seen = f"{made['version']}:{made['hash']}"
    assert only.json("kb", "write", made["id"], "--if-version", seen, stdin=b"two")["version"] == 2
    refused(only("kb", "write", made["id"], "--if-version", seen, stdin=b"three"), 4, "version 2")
    assert only("kb", "cat", made["id"]).raw == b"two"
    refused(only("kb", "write", made["id"], "--if-version", "2", stdin=b"x"), 2, "--if-version")


def test_files_are_found_by_their_description(only: Home) -> None:
    wanted = only.json("kb", "create", "Recipes for pancakes", stdin=b"milk")
    only.json("kb", "create", "Something else", stdin=b"milk")
    assert [one["id"] for one in only.json("kb", "browse", "pancakes", "recipes")] == [wanted["id"]]
    assert len(only.json("kb", "browse")) == 2
    assert only("kb", "browse", "waffles").out == "No file matches.\n"
    shown = [line.split()[0] for line in only("kb", "list").out.splitlines()[1:]]
    assert len(set(shown)) == 2
    for short in shown:
        assert only("kb", "cat", short).raw == b"milk"


def test_an_unlisted_file_is_hidden_from_agents(only: Home) -> None:
    only.json("agent", "create", "worker")
    key = only("agent", "token", "worker").out.strip()
    hidden = only.json("kb", "create", "Secret plans", "--unlisted", stdin=b"x")
    assert "Secret plans" not in only("kb", "browse", "--token", key).out
    refused(only("kb", "cat", hidden["id"], "--token", key), 3, "")


def test_20_mib_go_through_both_ways(only: Home, tmp_path: Path) -> None:
    content = os.urandom(1024 * 1024) * 20
    source = tmp_path / "big"
    source.write_bytes(content)
    made = only.json("kb", "create", "big", str(source))
    assert made["size"] == len(content)
    assert only("kb", "cat", made["id"]).raw == content
    assert only.json("kb", "write", made["id"], stdin=content[1:])["version"] == 2


def test_more_than_the_largest_file_is_refused(only: Home) -> None:
    refused(only("kb", "create", "x", stdin=bytes(32 * 1024 * 1024 + 1)), 1, "32.0 MiB")


def test_a_file_that_cannot_be_read_is_named(only: Home, tmp_path: Path) -> None:
    refused(only("kb", "create", "x", str(tmp_path / "missing")), 2, "missing")
    refused(only("kb", "create", "x", str(tmp_path)), 2, "directory")
    refused(only("kb", "cat", "01234567-89ab-7def-8123-456789abcdef"), 3, "file")
    refused(only("kb", "cat", "goals"), 3, "no file 'goals'")


def test_what_agents_wrote_cannot_steer_a_terminal(only: Home) -> None:
    hostile = "\x1b]0;owned\x07\x1b[31mred\u202eder\u2028 [bold]x[/bold]\x9b2J"
    made = only.json("kb", "create", hostile, stdin=b"\x1b[31mraw")
    assert made["description"] == hostile
    shown = only("kb", "list").out
    assert "\\x1b]0;owned\\x07" in shown
    assert "\\u202e" in shown
    assert "[bold]x[/bold]" in shown
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", shown)
    assert only("kb", "cat", made["id"]).raw == b"\x1b[31mraw"
    refused(only("kb", "create", " ", stdin=b""), 2, "empty")
    refused(only("agent", "show", "a\x1b[31mb"), 2, "")


# Grants


def test_a_grant_is_given_listed_and_revoked(only: Home) -> None:
    besides = "No grants are in force, except any that came with mail; --mail shows these.\n"
    assert only("grant", "list").out == besides
    assert only("grant", "list", "--mail").out == "No grants are in force.\n"
    only.json("agent", "create", "worker")
    key = only("agent", "token", "worker").out.strip()
    file = only.json("kb", "create", "x", stdin=b"content")
    resource = f"kb_file:{file['id']}"
    refused(only("kb", "cat", file["id"], "--token", key), 1, "no capability")

    grant = only.json(
        "grant", "give", "worker", resource, "read", "--expires", "2999-01-01T00:00:00Z"
    )
    assert (grant["resource"], grant["level"], grant["mode"]) == (resource, "read", "allow")
    assert only("kb", "cat", file["id"], "--token", key).raw == b"content"
    refused(only("kb", "write", file["id"], "--token", key, stdin=b"x"), 1, "no capability")
    assert re.search(
        r"^worker +kb_file:x +read +allow .* 2999-01-01T00:00:00Z ",
        only("grant", "list", "--agent", "worker").out,
        re.MULTILINE,
    )
    assert only.json("grant", "unused") == []

    assert only("grant", "revoke", grant["id"][-12:]).out == "Revoked 1 grant.\n"
    refused(only("kb", "cat", file["id"], "--token", key), 1, "no capability")
    refused(only("grant", "revoke", grant["id"]), 4, "already")


def test_rights_that_came_with_mail_are_listed_when_asked_for(only: Home) -> None:
    only.json("agent", "create", "worker")
    sent, given = (only.json("kb", "create", name, stdin=b"x") for name in ("Sent", "Given"))
    only.json("send", "worker", "Read this.", "--attach", sent["id"])
    only.json("grant", "give", "worker", f"kb_file:{given['id']}", "write")
    usual = only("grant", "list", "--agent", "worker").out
    assert re.search(r"^worker +kb_file:Given +write ", usual, re.MULTILINE)
    assert "Sent" not in usual
    assert "kb_file:Sent" in only("grant", "list", "--mail").out
    for more in ([], ["--agent", "worker"]):
        assert "by mail" not in only("grant", "list", *more).out
        assert "received it by mail" in only("grant", "list", "--mail", *more).out
        # JSON is what it was.
        held = only.json("grant", "list", *more)
        assert f"kb_file:{sent['id']}" in {grant["resource"] for grant in held}
        assert not any("title" in grant for grant in held)
    key = only("agent", "token", "worker").out.strip()
    own = only("grant", "list", "--token", key).out
    assert "kb_file:Given" in own
    assert "by mail" not in own


def test_a_bad_grant_is_refused(only: Home) -> None:
    only.json("agent", "create", "worker")
    refused(only("grant", "give", "worker", "nonsense", "read"), 2, "nonsense")
    refused(only("grant", "give", "worker", "agent.create", "read"), 2, "level")
    refused(only("grant", "give", "worker", "agent.create", "use", "--mode", "x"), 2, "--mode")


@pytest.mark.requirement("BX-19")
def test_unused_grants_go_after_a_confirmation(only: Home) -> None:
    only.json("agent", "create", "worker")
    for server in ("one", "two"):
        only.json("grant", "give", "worker", f"mcp_server:{server}", "use", "--mode", "ask")
    assert len(only.json("grant", "unused", "--agent", "worker")) == 2

    declined = only("grant", "unused", "--revoke", stdin=b"n\n")
    assert declined.code == 1
    assert "Nothing was revoked" in declined.err
    assert only("grant", "unused", "--revoke", stdin=b"").code == 1
    refused(only("grant", "unused", "--revoke", "--json"), 2, "--yes")
    held = [one["resource"] for one in only.json("grant", "list")]
    assert sorted(held) == ["mcp_server:one", "mcp_server:two"]

    assert "Revoked 2 grants." in only("grant", "unused", "--revoke", stdin=b"y\n").out
    assert only.json("grant", "unused", "--revoke", "--yes") == {"revoked": []}
    assert only("grant", "unused").out == "Every grant in force has been used.\n"


# The record


def test_events_are_listed_newest_first_and_keep_their_details(only: Home) -> None:
    only.json("agent", "create", "worker")
    events = only.json("event", "list")
    assert [one["seq"] for one in events] == list(range(len(events), 0, -1))
    appointment, mandate, agent = events[:3]
    assert appointment["action"] == "approval.approve"
    assert (mandate["action"], agent["action"]) == ("outcome.create", "agent.create")
    assert agent["details"]["name"] == "worker"
    assert agent["resource"].removeprefix("agent:") == mandate["details"]["owner"]
    table = only("event", "list", "--limit", "2")
    assert len(table.out.splitlines()) == 3
    assert "user:u" in table.out


def test_events_are_listed_by_kind_by_actor_and_when_refused(only: Home) -> None:
    only.json("agent", "create", "worker")
    key = only("agent", "token", "worker").out.strip()
    file = only.json("kb", "create", "x", stdin=b"1")
    assert only("kb", "cat", file["id"], "--token", key).code != 0
    refused = only.json("event", "list", "--refused")
    assert [one["action"] for one in refused] == ["file.read"]
    assert only.json("event", "list", "--by", "worker", "--about", "file") == refused
    assert only.json("event", "list", "--about", "file.create")[0]["details"]["version"] == 1


def test_the_record_is_verified(only: Home) -> None:
    assert only.json("event", "verify")["ok"] is True
    assert only("event", "verify").out.startswith("The record is whole: ")


def test_why_leads_from_an_effect_to_a_person(only: Home) -> None:
    only.json("agent", "create", "worker")
    key = only("agent", "token", "worker").out.strip()
    file = only.json("kb", "create", "x", stdin=b"1")
    only.json("grant", "give", "worker", f"kb_file:{file['id']}", "write")
    assert only("kb", "write", file["id"], "--token", key, stdin=b"2").code == 0

    effect = only.json("event", "list", "--limit", "1")[0]
    steps = [(step["who"], step["action"]) for step in only.json("why", effect["id"])["steps"]]
    assert steps[0] == ("agent:worker", "file.write")
    assert steps[-1][1] == "grant.give"
    drawn = only("why", effect["id"]).out.splitlines()
    assert drawn[0].startswith("agent:worker did file.write kb_file:")
    assert drawn[1].startswith("└─ because user:u")
    assert drawn[-1].startswith("Authorised by user:u")
    refused(only("why", "01234567-89ab-7def-8123-456789abcdef"), 3, "event")
    # By name: of the agent, or of an outcome.
    drawn = only("why", "worker").out.splitlines()
    assert drawn[0].startswith("user:u")
    assert " did outcome.create outcome:" in drawn[0]
    made = only.json("outcome", "create", "Launch the site", "--parent", "worker")
    assert only.json("why", "launch the site")["steps"][0]["resource"] == f"outcome:{made['id']}"
    refused(only("why", "nonsense"), 3, "There is no outcome or agent 'nonsense' here.")


def test_a_shell_completes_names_and_ids(only: Home) -> None:
    for name in ("worker", "Woodcutter", "baker"):
        only.json("agent", "create", name)

    def completed(*words: str) -> list[str]:
        asked = {
            "_REMIT_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(("remit", *words)),
            "COMP_CWORD": str(len(words)),
        }
        result = only(environment=asked)
        assert (result.code, result.err) == (0, "")
        return [line.partition(",")[2] for line in result.out.splitlines() if line]

    for words in (
        ("agent", "show"),
        ("send",),
        ("run", "tail"),
        ("why",),
        ("agent", "create", "new", "--boss"),
    ):
        assert completed(*words, "wo") == ["Woodcutter", "worker"], words
    assert completed("agent", "create", "wo") == []

    for words in (("adapter", "show"), ("agent", "create", "new", "--adapter")):
        assert completed(*words, "scr") == ["scripted"], words
    assert completed("outcome", "delegate", "x", "--hire", "y", "--adapter", "scr") == ["scripted"]
    outcome = only.json("outcome", "create", "Translate the page", "--parent", "worker")["id"]
    for typed in ("Tran", outcome[-12:-4]):
        assert completed("outcome", "show", typed) == [outcome[-12:]]
    assert completed("outcome", "create", "part", "--parent", "wo") == ["Woodcutter", "worker"]
    approval = only.json("agent", "hire", "wright")["approval"]["id"]
    for command in (("approve",), ("reject",), ("approval", "show"), ("approval", "comment")):
        assert completed(*command, approval[-12:-4]) == [approval[-12:]], command
        assert completed(*command, "wr") == ["wright"], command
    only.environment["REMIT_URL"] = "http://127.0.0.1:1"
    assert completed("agent", "show", "wo") == []


def test_tail_follows_the_record(only: Home) -> None:
    with only.start("event", "tail", "--json", "--after", "0") as tail:
        assert tail.stdout is not None
        first = json.loads(tail.stdout.readline())
        assert first["seq"] == 1
        only.json("agent", "create", "newcomer")
        named: list[str] = []
        while "newcomer" not in named:
            event = json.loads(tail.stdout.readline())
            if event["action"] == "agent.create":
                named.append(event["details"]["name"])
        assert named == ["ceo", "newcomer"]
        tail.send_signal(signal.SIGINT)
        assert tail.wait(10) == 130


def test_tail_shows_people_lines(only: Home) -> None:
    only.json("agent", "create", "worker")
    with only.start("event", "tail", "--after", "0") as tail:
        assert tail.stdout is not None
        assert b"  user:" in tail.stdout.readline()
        tail.send_signal(signal.SIGINT)
        assert tail.wait(10) == 130


# Signing in


def test_login_keeps_address_and_token_and_nothing_else_changes(
    remit: Home, only: Home, tmp_path: Path
) -> None:
    url = remit.json("status")["url"]
    elsewhere = Home(tmp_path)
    settings = tmp_path / "remit.toml"
    settings.write_text('# mine\ncompany = "My company"\nurl = "http://old"\n')
    token = only.environment["REMIT_TOKEN"]
    me = elsewhere("login", "--url", url, "-", "--json", stdin=f"{token}\n".encode()).answer
    assert me["name"].startswith("u")
    assert settings.stat().st_mode & 0o777 == 0o600
    assert settings.read_text().splitlines() == [
        "# mine",
        'company = "My company"',
        f'url = "{url}"',
        f'token = "{token}"',
    ]
    assert me["name"] in elsewhere("login", "--show").out
    assert elsewhere("company", "list").code == 0
    refused(elsewhere("login", "--url", NOWHERE, token), 5, "No instance")
    refused(elsewhere("login", "--url", url, "rmt_user_wrong"), 1, "not known")
    refused(elsewhere("login", "--url", url, "password"), 2, "not a token")
    refused(elsewhere("login", "--url", url), 2, "standard input")
    assert token in settings.read_text()


def test_a_kept_token_goes_to_no_other_address(only: Home, tmp_path: Path) -> None:
    url = only.json("status")["url"]
    elsewhere = Home(tmp_path)
    assert elsewhere("login", "--url", url, only.environment["REMIT_TOKEN"]).code == 0
    other = url.replace("127.0.0.1", "localhost")
    refused(elsewhere("company", "list", "--url", other), 1, "no token")


def test_without_a_token_only_the_status_is_seen(remit: Home, tmp_path: Path) -> None:
    url = remit.json("status")["url"]
    stranger = Home(tmp_path)
    refused(stranger("company", "list", "--url", url), 1, "no token")
    shown = stranger("status", "--url", url)
    assert shown.code == 0
    assert "remit login" in shown.err
    refused(stranger("company", "list", "--url", url, "--token", "é"), 1, "token")


def test_open_prints_a_link(remit: Home) -> None:
    link = remit.json("open")["url"]
    assert link.startswith(remit.json("status")["url"] + "/login?token=rmt_login_")
    assert remit("open").out.strip() != link


# The instance


def test_status_says_what_is_there(remit: Home, only: Home) -> None:
    only.json("agent", "create", "worker")
    status = only.json("status")
    assert status["running"] is True
    assert [company["agents"] for company in status["companies"]] == [2]  # one is the root
    assert status["companies"][0]["name"] in only("status").out


def test_an_instance_that_cannot_be_reached_is_exit_code_5(remit: Home) -> None:
    refused(remit("company", "list", "--url", NOWHERE), 5, NOWHERE)
    refused(remit("status", "--url", NOWHERE), 5, NOWHERE)
    down = remit("status", "--url", NOWHERE, "--json")
    assert (down.code, json.loads(down.out)) == (5, {"running": False, "url": NOWHERE})
    refused(remit("company", "list", "--url", "ftp://x"), 2, "not an address")
    refused(remit("company", "list", "--url", "http://["), 2, "not an address")


def test_doctor_finds_this_installation_well(remit: Home) -> None:
    findings = {finding["check"]: finding for finding in remit.json("doctor")}
    well = ("python", "sqlite", "home", "board token", "database", "blobs", "instance")
    assert {findings[check]["state"] for check in well} == {"ok"}
    assert "programs of" in findings["sandbox"]["found"]
    assert {"adapter claude", "adapter codex", "postgres extra", "s3 extra"} <= set(findings)
    assert all(finding["next_step"] for finding in findings.values() if finding["state"] != "ok")


@pytest.mark.requirement("FX-78", "FX-80")
def test_a_bound_project_is_said_to_hide_its_keys(remit: Home, only: Home, tmp_path: Path) -> None:
    work = tmp_path / "work"
    for name in (".claude/.credentials.json", ".codex/config.toml", "sub/.env", "app.py"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("x")
    only.json("agent", "create", "worker")
    company = ("--company", only.json("company", "list")[0]["id"])
    bound = remit(*company, "folder", "bind", "worker", "--path", str(work)).out
    assert f"worker works in {work}" in bound
    assert "Hidden from its runs, as keys: .credentials.json, auth.json, " in bound
    found = [one["found"] for one in remit.json(*company, "doctor") if one["check"] == "folder"]
    hidden = f"hidden from runs in {work}, as keys: .claude/.credentials.json, sub/.env"
    assert f"worker works in {work}" in found
    assert hidden in found


def test_mcp_is_served_on_standard_input_and_output(only: Home) -> None:
    only.json("agent", "create", "worker")
    key = only("agent", "token", "worker").out.strip()
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    }
    line = json.dumps(hello).encode() + b"\n"
    done = only("mcp-stdio", "--token", key, stdin=line, warnings=False)
    assert done.answer["result"]["serverInfo"]["name"] == "remit"
    nobody = Home(only.folder / "empty")
    refused(nobody("mcp-stdio"), 1, "no token")


# Piping


def test_a_reader_that_leaves_early_hears_no_complaint(only: Home) -> None:
    file = only.json("kb", "create", "long", stdin=b"line\n" * 1_000_000)
    for arguments in (("kb", "cat", file["id"]), ("kb", "cat", file["id"], "--json"), ("--help",)):
        shell = f"{shlex.join(only.command(*arguments))} | head -c 1"
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", shell],
            capture_output=True,
            env=only.environment,
            timeout=60,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")


def test_output_that_cannot_be_written_is_an_error(remit: Home) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            remit.command("company", "list"),
            stdout=full,
            stderr=subprocess.PIPE,
            env=remit.environment,
            timeout=60,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.startswith(b"error: No space left on device.")
    assert len(done.stderr.splitlines()) == 2


def test_a_terminal_that_knows_only_ascii_is_no_obstacle(only: Home) -> None:
    only.json("agent", "create", "worker")
    drawn = only("agent", "tree", environment={"PYTHONIOENCODING": "ascii"})
    assert drawn.code == 0
    assert "worker" in drawn.out
