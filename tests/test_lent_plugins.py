"""Lending: skills, commands and agents of a folder, shown before, copied, and taken back."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from remit.errors import AlreadyExists, BadInput, Conflict, NotFound, Refused, RemitError
from remit.model.connections.lent_plugin import LARGEST_PLUGIN, arranged, lendable
from remit.runtime.runs import skill_folders
from remit.services.connections import lent_plugins
from remit.services.organisation import agents, termination
from remit.services.record import events
from remit.services.screens import overview
from tests.company import Answer, Company, Member
from tests.git_remote import Remote, git
from tests.test_cli import Home, remit
from tests.test_repos import add

__all__ = ["remit"]

SKILL = "---\nname: deploy\ndescription: How to deploy\n---\nPush it.\n"
FILES = {
    "skills/deploy/SKILL.md": SKILL,
    "skills/deploy/scripts/run.sh": "echo run\n",
    "commands/fix.md": "---\ndescription: Fix it\n---\nFix $1. !`git status`\n",
    "agents/reader.md": "---\nname: reader\ntools: Read, Grep\n---\nRead.\n",
}


def encoded(files: Mapping[str, str | bytes]) -> dict[str, str]:
    raw = {path: text.encode() if isinstance(text, str) else text for path, text in files.items()}
    return {path: base64.b64encode(content).decode() for path, content in raw.items()}


def lend(
    company: Company, agent: Member, verb: Any = lent_plugins.lend, by: Any = None, **more: Any
) -> Answer:
    asked: dict[str, Any] = {"name": "Team", "source": "/srv/site", "files": encoded(FILES), **more}
    return company.call(by or company.board, verb, agent=agent.id, **asked)


def listed(company: Company, agent: Member) -> list[Answer]:
    found: list[Answer] = company.call(company.board, lent_plugins.listing, agent=agent.id)
    return found


@pytest.mark.requirement("HB-14", "FX-79")
def test_what_is_lent_is_shown_before_and_nothing_else_is_lent(company: Company) -> None:
    agent = company.agent("coder")
    shown = lend(company, agent, lent_plugins.preview)
    assert shown["dry_run"]
    assert listed(company, agent) == []
    assert [(item["kind"], item["name"], item["description"]) for item in shown["items"]] == [
        ("agent", "reader", ""),
        ("command", "fix", "Fix it"),
        ("skill", "deploy", "How to deploy"),
    ]
    assert shown["items"][1]["starts"] == ["git status"]
    assert shown["items"][2]["files"] == ["skills/deploy/SKILL.md", "skills/deploy/scripts/run.sh"]
    changed = encoded({**FILES, "skills/deploy/SKILL.md": SKILL + "Delete all.\n"})
    with pytest.raises(Conflict, match="Something else"):
        lend(company, agent, files=changed, seen=shown["sha256"])
    beside = encoded({**FILES, "skills/deploy/scripts/run.sh": "rm -rf /\n"})
    with pytest.raises(Conflict, match="Something else"):
        lend(company, agent, files=beside, seen=shown["sha256"])
    lent = lend(company, agent, seen=shown["sha256"])
    assert lent["name"] == "team"
    assert [one["sha256"] for one in listed(company, agent)] == [shown["sha256"]]
    assert company.call(company.board, overview.agent, agent=agent.id)["lent"] == [
        "team from /srv/site"
    ]
    with pytest.raises(AlreadyExists):
        lend(company, agent)


@pytest.mark.requirement("HB-14")
def test_a_plugin_is_taken_back_and_its_copy_goes(company: Company) -> None:
    agent, other = company.agent("coder"), company.agent("other")
    lend(company, agent)
    assert listed(company, other) == []
    company.call(company.board, lent_plugins.take_back, agent=agent.id, plugin="team")
    assert listed(company, agent) == []
    assert company.sql("SELECT contents FROM lent_plugins") == [("",)]
    with pytest.raises(NotFound):
        company.call(company.board, lent_plugins.take_back, agent=agent.id, plugin="team")
    lend(company, agent)
    found = company.call(company.board, events.listing, company=company.id, limit=1000)
    told = [event["action"] for event in found if event["action"].startswith("agent.")]
    assert told[:3] == ["agent.lend", "agent.take_back", "agent.lend"]


@pytest.mark.requirement("HB-14")
def test_only_people_lend(company: Company) -> None:
    boss, agent = company.agent("boss"), company.agent("coder", boss="boss")
    caller = company.run(boss).caller
    with pytest.raises(Refused):
        lend(company, agent, by=caller)
    with pytest.raises(Refused):
        lend(company, agent, lent_plugins.preview, by=caller)
    lend(company, agent)
    with pytest.raises(Refused):
        company.call(caller, lent_plugins.take_back, agent=agent.id, plugin="team")


def test_purging_an_agent_takes_the_copy_along(small: Company) -> None:
    agent = small.agent("coder")
    lend(small, agent)
    small.call(small.board, agents.terminate, agent=agent.id)
    with pytest.raises(Conflict, match="is terminated"):
        lend(small, agent, name="more")
    small.call(small.board, termination.purge, agent=agent.id)
    assert small.sql("SELECT contents FROM lent_plugins") == [("",)]


@pytest.mark.requirement("HB-14")
@pytest.mark.parametrize(
    ("path", "text"),
    [
        *(("hooks/hooks.json", "{}"), (".mcp.json", "{}"), ("settings.json", "{}")),
        *(("../x", ""), ("skills/../../x/SKILL.md", ""), ("/etc/x", ""), ("skills/a\nb/x", "")),
        *((".claude-plugin/plugin.json", "{}"), ("skills\\x\\SKILL.md", "")),
    ],
)
def test_a_path_that_is_no_skill_is_refused(small: Company, path: str, text: str) -> None:
    with pytest.raises(BadInput, match="can be lent"):
        lend(small, small.agent("coder"), files=encoded({**FILES, path: text}))


@pytest.mark.parametrize(
    "given",
    [
        *({"files": {}}, {"files": {"skills/a/SKILL.md": "not base64!"}}, {"name": "remit"}),
        *({"name": "a b"}, {"files": encoded({"skills/deploy/notes.md": "no skill"})}),
        {"files": encoded({"skills/a/SKILL.md": b"\xff\xfe"})},
        {"files": encoded({"skills/a/SKILL.md": "x" * (LARGEST_PLUGIN + 1)})},
        {"files": encoded({f"skills/a/{number}": "x" for number in range(400)})},
    ],
)
def test_bad_input_is_refused(small: Company, given: dict[str, Any]) -> None:
    with pytest.raises(RemitError) as refused:
        lend(small, small.agent("coder"), **given)
    assert refused.value.status in (413, 422)


HOOKS = "hooks:\n  SessionStart:\n    - command: touch /tmp/x\n"
HEADS = (
    f"---\nname: a\n{HOOKS}description: d\n---\n",
    "---\nname: a\n'hooks': {Stop: [{command: x}]}\ndescription: d\n---\n",
    '---\nname: a\n"hooks" : {Stop: []}\ndescription: d\n---\n',
    "---\n{name: a, hooks: {Stop: []}}\n---\n",
    "---\nname: a\n? hooks\n: {Stop: []}\ndescription: d\n---\n",
    "---  \r\nname: a\r\nhooks: {Stop: []}\r\ndescription: d\r\n---\r\n",
    "\ufeff---\nname: a\nhooks: {Stop: []}\ndescription: d\n---\n",
    "---\nname: a\nx: &a\n  hooks: 1\n<<: *a\ndescription: d\n---\n",
    '---\nname: a\ndescription: "d"\nallowed-tools: Bash\nmcpServers: {x: {command: y}}\n---\n',
    '---\nname: a\ndescription: "d\\nhooks: 1"\n---\n',
    "---\nname: a\ndescription: >\n  d\n  hooks: 1\npermissionMode: bypassPermissions\n---\n",
    "---\nhooks: 1\n---\n---\nhooks: 2\n---\n",
    "--- \nhooks: 1\n",
)


@pytest.mark.requirement("HB-14")
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("path", ["skills/a/SKILL.md", "agents/a.md", "commands/a.md"])
def test_no_head_keeps_hooks_servers_or_permissions(path: str, head: str) -> None:
    found = lendable({path: f"{head}Body.\n".encode()})
    text = found.contents[path].decode()
    assert text.startswith("---\n")
    kept = text.removeprefix("---\n").partition("---\n")[0].splitlines()
    for line in kept:
        key, _, value = line.partition(": ")
        assert key in ("name", "description")
        assert json.loads(value) is not None
    assert text.endswith("Body.\n")
    again = lendable(found.contents)
    assert again.contents == found.contents, "what was lent is lent again as it is"


def test_a_hidden_file_beside_a_skill_stays_behind() -> None:
    skill = b"---\ndescription: Tidy\n---\nTidy up.\n"
    copied = lendable({"skills/tidy/SKILL.md": skill, "skills/tidy/.mcp.json": b"{}"})
    assert set(copied.contents) == {"skills/tidy/SKILL.md"}
    assert copied.left_out == ("skills/tidy/.mcp.json",)


@pytest.mark.parametrize("value", ["{hooks: x}", "yes", "true # and", "[]"])
def test_a_flag_in_a_head_is_true_or_false(value: str) -> None:
    skill = f"---\ndescription: Tidy\nuser-invocable: {value}\n---\nTidy up.\n".encode()
    copied = lendable({"skills/tidy/SKILL.md": skill})
    assert b"user-invocable" not in copied.contents["skills/tidy/SKILL.md"]


@pytest.mark.requirement("HB-14")
def test_the_head_of_a_skill_is_read_behind_a_byte_order_mark() -> None:
    skill = "\ufeff---\ndescription: Tidy\nhooks: x\n---\nTidy up.\n".encode()
    copied = lendable({"skills/tidy/SKILL.md": skill})
    assert copied.left_out == ("skills/tidy/SKILL.md: hooks",)
    (item,) = copied.items
    assert item.description == "Tidy"
    assert item.text == '---\ndescription: "Tidy"\n---\nTidy up.\n'


def test_a_byte_order_mark_before_a_text_without_a_head_is_left_out() -> None:
    copied = lendable({"commands/tidy.md": "\ufeff---\nTidy up.\n".encode()})
    (item,) = copied.items
    assert item.text == '---\ndescription: ""\n---\n---\nTidy up.\n'


@pytest.mark.requirement("HB-14")
def test_the_whole_text_of_a_skill_and_what_it_starts_are_shown() -> None:
    """Whoever lends it reads all that a model would, and every command that starts by itself."""
    lines = "".join(f"Step {number}.\n" for number in range(200))
    text = f'---\ndescription: "d"\n---\n{lines}!`uname -a`\n```!\nmake all\nmake test\n```\n'
    (item,) = lendable({"skills/a/SKILL.md": text.encode()}).items
    assert item.text == text
    assert item.starts == ("uname -a", "make all\nmake test")


def test_the_head_of_a_skill_is_rewritten_however_its_file_is_spelled() -> None:
    skill = b"---\ndescription: Tidy\nhooks: x\n---\nTidy up.\n"
    copied = lendable({"skills/tidy/Skill.md": skill})
    assert b"hooks" not in copied.contents["skills/tidy/Skill.md"]


@pytest.mark.requirement("HB-14")
def test_what_stays_behind_is_said() -> None:
    found = lendable({"skills/a/SKILL.md": f"---\nname: a\n{HOOKS}---\n".encode()})
    assert found.left_out == ("skills/a/SKILL.md: hooks",)
    limited = lendable({"agents/a.md": b"---\nname: a\ntools:\n  - Read\n  - Grep\n---\nRead.\n"})
    assert b'tools: "Read, Grep"\n' in limited.contents["agents/a.md"]


@pytest.mark.requirement("HB-14")
@pytest.mark.parametrize(
    ("paths", "chosen", "left_out"),
    [
        (
            ["README.md", ".claude/skills/a/SKILL.md", ".claude/settings.json", ".mcp.json"],
            {"skills/a/SKILL.md": ".claude/skills/a/SKILL.md"},
            [".claude/settings.json", ".mcp.json"],
        ),
        (
            ["skills/a/SKILL.md", "commands/b.md", "hooks/hooks.json", ".mcp.json"],
            {"skills/a/SKILL.md": "skills/a/SKILL.md", "commands/b.md": "commands/b.md"},
            [".mcp.json", "hooks/hooks.json"],
        ),
        (
            ["SKILL.md", "more/x.md", ".env"],
            {"skills/here/SKILL.md": "SKILL.md", "skills/here/more/x.md": "more/x.md"},
            [".env"],
        ),
        (
            ["a/SKILL.md", "b/x.md", "a/auth.json"],
            {"skills/a/SKILL.md": "a/SKILL.md"},
            ["a/auth.json", "b/x.md"],
        ),
        (
            ["commands/code.md", ".claude/skills/a/SKILL.md"],
            {"skills/a/SKILL.md": ".claude/skills/a/SKILL.md"},
            [],
        ),
        (
            [".claude-plugin/plugin.json", "commands/b.md", ".claude/skills/a/SKILL.md"],
            {"commands/b.md": "commands/b.md"},
            [".claude-plugin/plugin.json", ".claude/skills/a/SKILL.md"],
        ),
        (
            [".agents/skills/a/SKILL.md", ".claude/commands/b.md"],
            {
                "skills/a/SKILL.md": ".agents/skills/a/SKILL.md",
                "commands/b.md": ".claude/commands/b.md",
            },
            [],
        ),
    ],
)
def test_a_folder_is_a_project_a_plugin_skills_or_one_skill(
    paths: list[str], chosen: dict[str, str], left_out: list[str]
) -> None:
    assert arranged(paths, "here") == (chosen, left_out)


# ── from a repository, and at the terminal ──────────────────────────────────────────────────────


@pytest.mark.requirement("HB-14")
def test_the_skills_of_a_repository_are_read_from_its_commit(
    company: Company, tmp_path: Path
) -> None:
    remote = Remote(tmp_path / "remotes" / "site")
    remote.commit({".claude/skills/deploy/SKILL.md": SKILL, ".claude/settings.json": "{}"})
    (remote.path / ".claude/skills/link").symlink_to("/etc")
    git(remote.path, "add", "-A")
    git(remote.path, "commit", "-qm", "Link")
    add(company, remote.url)
    here: dict[str, Any] = {"company": company.id, "name": "site", "ref": None}
    read = company.app.repos.lendable
    found = company.wait(read(company.board, **here, folder=""))
    assert [file["path"] for file in found["files"]] == ["skills/deploy/SKILL.md"]
    assert base64.b64decode(found["files"][0]["content"]).decode() == SKILL
    assert found["left_out"] == [".claude/settings.json"]
    one = company.wait(read(company.board, **here, folder=".claude/skills/deploy"))
    assert [file["path"] for file in one["files"]] == ["skills/deploy/SKILL.md"]
    for folder in ("../x", "-x", ":(top)x"):
        with pytest.raises(BadInput):
            company.wait(read(company.board, **here, folder=folder))
    with pytest.raises(NotFound):
        company.wait(read(company.board, **here, folder="nowhere"))
    caller = company.run(company.ceo).caller
    with pytest.raises(Refused):
        company.wait(read(caller, **here, folder=""))


@pytest.mark.requirement("HB-14", "FX-79")
def test_a_folder_is_lent_at_the_terminal_after_it_was_shown(remit: Home, tmp_path: Path) -> None:
    project = tmp_path / "Site"
    for path, text in {
        ".claude/skills/deploy/SKILL.md": f"---\nname: deploy\n{HOOKS}---\nPush\u202eit.\n",
        ".claude/settings.json": "{}",
        ".claude/skills/deploy/.env": "TOKEN=x",
        "src/app.py": "pass",
    }.items():
        (project / path).parent.mkdir(parents=True, exist_ok=True)
        (project / path).write_text(text)
    (project / ".claude/skills/out").symlink_to("/etc")
    shown = remit("agent", "lend", "ceo", str(project), "--dry-run", "--text")
    assert shown.code == 0, shown.err
    assert "skill site:deploy" in shown.out
    assert "| Push⟨U+202E⟩it." in shown.out
    for stayed in (".claude/settings.json", "deploy/.env", "skills/deploy/SKILL.md: hooks"):
        assert stayed in shown.out.partition("left out: ")[2]
    assert "It is lent no plugin." in remit("agent", "lend", "ceo").out
    unconfirmed = remit("agent", "lend", "ceo", str(project), "--text")
    assert unconfirmed.code != 0
    assert "Add --dry-run to look without lending, or --yes to lend" in unconfirmed.err
    assert remit("agent", "lend", "ceo", str(project), "--yes").code == 0
    listed = remit("agent", "lend", "ceo").out
    assert "skill site:deploy" in listed
    assert "Push" not in listed
    assert "| Push⟨U+202E⟩it." in remit("agent", "lend", "ceo", "--text").out
    assert "site from " in remit("agent", "show", "ceo").out
    assert remit("agent", "lend", "ceo", "--remove", "site").code == 0
    assert "It is lent no plugin." in remit("agent", "lend", "ceo").out
    home = tmp_path / ".claude"
    (home / "commands").mkdir(parents=True)
    (home / "commands" / "mend.md").write_text("Mend $1.\n")
    (home / ".credentials.json").write_text("{}")
    (home / "projects").mkdir()
    (home / "projects" / "talk.jsonl").write_text("secret")
    shown = remit("agent", "lend", "ceo", str(home), "--dry-run")
    assert "command claude:mend" in shown.out
    assert "left out: .credentials.json, projects" in shown.out
    missing = remit("agent", "lend", "ceo", str(tmp_path / "none"), "--yes")
    assert "There is no folder" in missing.err


def test_a_link_in_place_of_a_folder_of_skills_is_replaced(tmp_path: Path) -> None:
    wanted = {PurePosixPath("skills/tidy/SKILL.md"): b"Tidy up.\n"}
    made = skill_folders.kept(tmp_path, "plugin", wanted)
    made.rename(tmp_path / "elsewhere")
    made.symlink_to(tmp_path / "elsewhere")
    assert not skill_folders.kept(tmp_path, "plugin", wanted).is_symlink()
