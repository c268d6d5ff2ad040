"""Does what CONTRIBUTING.md says under "Adding a verb", and finds the verb on every surface."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.agents import REPOSITORY

LOOK = """
import asyncio
import json
import os

from remit.app import App
from remit.entrypoints import reference
from remit.entrypoints.cli.main import run
from remit.services.command import verb_named
from remit.services.identity import Caller
from remit.services.organisation import agents
from remit.services.record import events
from remit.settings import load


async def call(home):
    async with App(load({"REMIT_HOME": home})) as app:
        await app.first_start()
        board = Caller(app.settings.board_token_file.read_text().strip())
        [root] = await app.gate(board, agents.listing, company=None)
        greet = verb_named("greetings.greet")
        answer = await app.gate(board, greet, agent=root["name"], note="Good morning")
        [event] = await app.gate(board, events.listing, company=None, limit=1)
        return answer, event


reference.WHOLE.parent.mkdir()
document, tools = reference.write()
(tool,) = [tool for tool in tools if tool.name == "greet"]
print(json.dumps({
    "tool": [tool.description, tool.mutates, reference.schema_of(tool)],
    "route": document["paths"]["/api/agents/{id}/greet"]["post"],
    "body": document["components"]["schemas"]["GreetAgentBody"],
    "reference": reference.WHOLE.read_text(),
    "called": asyncio.run(call(os.environ["HOME"])),
}))
run(["agent", "greet", "--help"])
"""


def test_a_verb_that_is_added_as_described_is_on_every_surface(tmp_path: Path) -> None:
    page = (REPOSITORY / "CONTRIBUTING.md").read_text().partition("\n## Adding a verb\n")[2]
    (code,) = re.findall(r"^```python\n(.*?)^```$", page.partition("\n## ")[0], re.DOTALL | re.M)
    shutil.copytree(REPOSITORY / "src", tmp_path / "src")
    (tmp_path / "src/remit/services/greetings.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-c", LOOK],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path / "src"), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed, help_ = done.stdout.split("\n", 1)
    surfaces = json.loads(printed)
    description, mutates, schema = surfaces["tool"]
    assert (description, mutates) == ("Greet an agent.", True)
    assert list(schema["properties"]) == ["idempotency_key", "id", "note"]
    assert schema["required"] == ["id"]
    route = surfaces["route"]
    assert (route["operationId"], route["description"]) == ("greet_agent", "Greet an agent.")
    assert route["parameters"][0]["name"] == "id"
    assert {"200", "403", "404"} <= set(route["responses"])
    assert surfaces["body"]["properties"]["note"]["description"] == "What to say."
    answer, event = surfaces["called"]
    assert (event["action"], event["details"]) == ("agent.greet", {"note": "Good morning"})
    assert event["resource"] == f"agent:{answer['id']}"
    assert help_.startswith("Usage: remit agent greet [OPTIONS] AGENT\n\n  Greet an agent.\n")
    assert "--note TEXT" in help_
    for heading in ("### greet", "### POST /api/agents/{id}/greet", "### remit agent greet AGENT"):
        assert f"\n{heading}\n" in surfaces["reference"]
