"""The walk of the documents from a repository to a merged change, each line as it is there."""

import json
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from remit.runtime.sandbox import sandbox_policy
from remit.services.changes import changes
from remit.services.governance import approvals
from remit.testing import ToolRefused
from tests.git_remote import ENV
from tests.test_cli import Home
from tests.test_mcp_tools import Member, Site, serving

WALK = Path(__file__).parent.parent / "docs" / "repos-walk.md"


class Walk:
    def __init__(self, site: Site, place: Path) -> None:
        self.site, self.place = site, place
        told = {"REMIT_URL": site.url, "REMIT_TOKEN": site.board.token or ""}
        self.home = Home(site.app.settings.home, told)

    def line(self, line: str) -> str:
        """What a person or a program in a workspace types."""
        if line.startswith("remit "):
            words = shlex.split(self.filled(line).replace("$PWD", str(self.place)))
            done = self.home(*words[1:])
            assert done.code == 0, f"{line}: {done.err}"
            return done.out
        return self.shell(line, self.place)

    def shell(self, line: str, at: Path) -> str:
        done = subprocess.run(
            ["/bin/sh", "-c", line], cwd=at, env=ENV, text=True, capture_output=True, check=False
        )
        assert done.returncode == 0, f"{line}: {done.stderr}"
        return done.stdout

    def agent(self, name: str, lines: list[str]) -> str:
        """A run of an agent; answers what it was refused last."""
        ((found,),) = self.site.sql("SELECT id FROM agents WHERE name = ?", name)
        refused = ""
        with self.site.at_work(Member(found, name, "", "", "")) as (run, tools):
            for line in lines:
                assert not refused, refused
                if line.startswith("$ "):
                    self.shell(line[2:], run.workspace)
                    continue
                tool, _, arguments = self.filled(line).partition(" ")
                try:
                    tools.call(tool, **json.loads(arguments))
                except ToolRefused as error:
                    refused = str(error)
        return refused

    def filled(self, line: str) -> str:
        """With the ids that were shown."""
        known: dict[str, str] = {}
        for one in self.site.call(self.site.board, changes.listing, company=self.site.company):
            known |= {"CHANGE": one["id"], "HEAD": one["head"], "BASE": one["base"]}
        for asked in self.site.call(self.site.board, approvals.listing, company=self.site.company):
            known |= {"APPROVAL": asked["id"]} if asked["status"] == "pending" else {}
        return re.sub(r"\b(CHANGE|HEAD|BASE|APPROVAL)\b", lambda word: known[word[0]], line)

    def background(self) -> None:
        """What the instance does by itself."""
        for one in (self.site.app.publisher, self.site.app.checker, self.site.app.merger):
            self.site.wait(one.tick())


@pytest.mark.skipif(not sandbox_policy.look().usable, reason="there is no sandbox here")
@pytest.mark.requirement("FX-28", "FX-30", "FX-32")
def test_the_walk_leads_from_a_repository_to_a_merged_change(tmp_path: Path) -> None:
    (place := tmp_path / "place").mkdir()
    said: dict[str, str] = {}
    with serving(tmp_path / "instance") as site:
        walk = Walk(site, place)
        blocks = re.findall(r"```(\w+)\n(.*?)```", WALK.read_text(), flags=re.DOTALL)
        for who, block in blocks:
            lines = block.splitlines()
            if who == "sh":
                said |= {line: walk.line(line) for line in lines}
            else:
                said[who] = walk.agent(who, lines)
                assert who == "reviewer" or not said[who], said[who]
            walk.background()
    assert [who for who, _ in blocks if who != "sh"] == ["author", "author", "reviewer"]
    assert said["reviewer"].startswith("pending_approval"), "it asks before it merges"
    asked = said["remit approval list"]
    assert "merge “Add, do not subtract” (shop, into main)" in asked, "what is asked has a name"
    assert "failed" in said["remit change show CHANGE"]
    assert any("Next: remit grant give AGENT repo:shop" in one for one in said.values())
    assert not any("repo:test" in one for one in said.values()), "test is a check"
    assert "Check test failed" in said["remit inbox --agent author"]
    assert "Add, do not subtract" in said["remit change list --status merged"]
    assert re.search(r"Author: author .*Remit-Change: ", said["git -C work log -1"], re.DOTALL)
    assert (place / "work" / "app.py").read_text().endswith("a + b\n")
