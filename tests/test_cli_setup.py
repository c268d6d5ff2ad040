"""Repositories, files that declare a company, and purging, from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.git_remote import Remote
from tests.test_cli import Home, only, refused, remit

__all__ = ["only", "remit"]  # fixtures

SETUP = """
[company]
messaging = "team"

[[agents]]
name = "editor"
role = "pm"
adapterType = "scripted"

[[agents]]
name = "writer"
title = "Writes"
reportsTo = "editor"
adapterType = "process"
adapterConfig = { command = "/bin/true", env = { API_KEY = "sk-ant-api03-abcdefghijklmnopqrstu" } }

[[grants]]
agent = "writer"
resource = "repo:site"
level = "use"
expiresAt = 2999-01-01T00:00:00Z

[[schedules]]
agent = "editor"
subject = "Weekly"
body = "What was written?"
cron = "0 9 * * 1"
"""


@pytest.fixture
def operator(remit: Home) -> Home:
    """The board of the first company, which also runs the instance."""
    return Home(remit.folder, {"REMIT_COMPANY": "My company"})


def test_a_grant_of_what_is_not_there_yet_says_so(operator: Home, tmp_path: Path) -> None:
    given = operator("grant", "give", "ceo", "repo:sight", "read").out
    assert given.endswith("There is no repo:sight yet; `remit repo add sight …` adds it.\n")
    operator.json("repo", "add", "seen", Remote(tmp_path / "seen").url)
    assert "There is no" not in operator("grant", "give", "ceo", "repo:seen", "read").out
    operator.json("repo", "remove", "seen")
    tools = operator("grant", "give", "ceo", "mcp_server:tools", "use").out
    assert "`remit mcp add tools …` adds it" in tools


def test_a_repository_is_added_synced_listed_and_removed(
    operator: Home, only: Home, tmp_path: Path
) -> None:
    remote = Remote(tmp_path / "site")
    refused(only("repo", "add", "site", remote.url), 1, "Only an operator")
    made = operator.json("repo", "add", "site", remote.url, "--ref", "main")
    assert (made["name"], made["ref"], made["secret"]) == ("site", "main", None)
    refused(operator("repo", "add", "site", remote.url), 4, "already")
    refused(operator("repo", "add", "x", "ext::sh"), 2, "is not an address")
    head = operator("repo", "list").out.splitlines()[0].split()
    assert head == ["NAME", "REF", "SECRET", "FORGE", "URL"]
    (synced,) = operator.json("repo", "sync")
    assert (synced["head"], synced["branches"]) == ("main", 1)
    remote.path.rename(tmp_path / "away")
    refused(operator("repo", "sync", "site"), 1, "site cannot be fetched")
    refused(operator("repo", "sync", "other"), 3, "There is no repository")
    assert operator("repo", "remove", "site").out == "site is removed; 0 grants ended with it.\n"
    assert operator("repo", "list").out == "There are no repositories.\n"


def test_a_file_is_planned_applied_and_applied_again(only: Home, tmp_path: Path) -> None:
    file = tmp_path / "company.toml"
    file.write_text(SETUP)
    planned = only("apply", str(file), "--dry-run").out
    assert "~ company" in planned
    assert '    messaging: "chain" → "team"' in planned
    assert "+ agent writer" in planned
    assert planned.endswith("4 to create, 1 to change, 0 unchanged.\n")
    assert [one["name"] for one in only.json("agent", "list")] == ["ceo"]
    done = only("apply", str(file), "--yes").out
    assert done.endswith("4 created, 1 changed, 0 unchanged.\n")
    assert "sk-ant" not in planned + done
    events = len(only.json("event", "list"))
    again = only("apply", str(file)).out
    assert again.endswith("There is nothing to do.\n")
    assert len(only.json("event", "list")) == events
    as_json = only.json("agent", "show", "writer")
    assert as_json["title"] == "Writes"
    document = json.dumps({"agents": [{"name": "writer", "title": "Writes more"}]})
    changed = only.json("apply", "-", stdin=document.encode())
    assert (changed["changed"], changed["dry_run"], changed["warnings"]) == (1, False, [])
    missing = {"adapterType": "codex", "adapterConfig": {"command": "/nowhere/codex"}}
    document = json.dumps({"agents": [{"name": "coder", **missing}, {"name": "writer"}]})
    for more in (["--dry-run"], ["--yes"]):
        warned = only("apply", "-", *more, stdin=document.encode())
        assert warned.code == 0
        said = "warning: coder cannot work yet: The program /nowhere/codex is not installed"
        assert warned.err.startswith(said)
        assert warned.err.splitlines()[1].startswith("  next: Install Codex")
        assert "writer" not in warned.err
    assert only.json("event", "verify")["ok"] is True


def test_files_that_cannot_be_applied_are_errors(only: Home, tmp_path: Path) -> None:
    def said(content: str, name: str = "x.toml") -> tuple[int, str]:
        file = tmp_path / name
        file.write_text(content)
        result = only("apply", str(file))
        return result.code, result.err

    assert "YAML files are not read" in said("x: 1", "x.yaml")[1]
    assert "cannot be read" in said("[[agents]")[1]
    assert "cannot be read" in said("{", "x.json")[1]
    assert "must hold an object" in said("[]", "x.json")[1]
    assert "bindings[0].name: is not known" in said("[[bindings]]\nname = 'x'\n")[1]
    assert "agents[0].role must be one of" in said("[[agents]]\nname='x'\nrole='king'\n")[1]
    assert "agents[1].foo: is not known" in said("[[agents]]\nname='x'\n[[agents]]\nfoo=1\n")[1]
    assert [one["name"] for one in only.json("agent", "list")] == ["ceo"]
    refused(only("apply", str(tmp_path / "missing.toml")), 2, "missing.toml")


def test_a_terminated_agent_is_purged_after_asking(only: Home) -> None:
    only.json("agent", "create", "dev")
    refused(only("agent", "purge", "dev", "--yes"), 4, "dev is not terminated")
    only("agent", "terminate", "dev")
    asked = only("agent", "purge", "dev", stdin=b"n\n")
    assert asked.code == 1
    assert "Nothing was removed" in asked.err
    assert only("agent", "purge", "dev", "--json").code == 2
    assert only("agent", "purge", "dev", "--yes").out == "dev is purged.\n"
    refused(only("agent", "purge", "dev", "--yes"), 4, "dev was purged already")
    company = only.json("company", "list")[0]["id"]
    refused(only("agent", "purge", "dev", "--yes", "--company", company), 4, "purged already")
    refused(only("agent", "purge", "nobody", "--yes"), 3, "There is no agent named")
