"""The description of an agent is declared once; a new field of it is a change of three files."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import remit
from remit.model.organisation.agent_spec import CONFIGURED, FIELDS, Holds

SOURCE = Path(remit.__path__[0])
#: Where a field has a meaning of its own there may be more.
MOST_FILES = 6


def test_a_field_of_the_description_is_named_in_few_files() -> None:
    """The newest field: its declaration, its column, its migration, and what it is for."""
    name = "budget_monthly_tokens"
    naming = [one for one in SOURCE.rglob("*.py") if re.search(rf"\b{name}\b", one.read_text())]
    assert name in FIELDS
    assert len(naming) <= MOST_FILES, naming


def test_every_field_has_a_name_outside_and_a_default() -> None:
    assert len({one.key for one in FIELDS.values()}) == len(FIELDS)
    for one in CONFIGURED:
        if one.holds in (Holds.NAME, Holds.ADAPTER):
            continue
        stored = one.checked(one.default)
        assert one.checked(one.shown(stored)) == stored, one.name
    options = [one.part.option for one in CONFIGURED if one.part.option]
    assert len(options) == len(set(options))


PROGRAM = """
import asyncio, json, sys, tempfile
from pathlib import Path
from remit.app import App
from remit.entrypoints.cli.commands.company.hiring import hire
from remit.entrypoints.http.server.asgi import build_asgi
from remit.entrypoints.mcp.registry import input_schema
from remit.entrypoints.mcp.tools.listing import build_tools
from remit.services.declared import declared_company
from remit.services.hiring import configuration, hiring
from remit.services.organisation import agents
from remit.services.identity import Caller
from remit.settings import load

async def main(home):
    async with App(load({"REMIT_HOME": str(home)})) as app:
        await app.first_start()
        board = Caller(app.settings.board_token_file.read_text().strip())
        [root] = await app.gate(board, agents.listing, company=None)
        hired = await app.gate(board, hiring.hire, company=None, name="one", nickname=" Uno ")
        made = await app.gate(board, agents.create, company=None, name="two")
        entry = {"name": "two", "nickname": "Due"}
        await app.gate(board, declared_company.apply, company=None, document={"agents": [entry]})
        shown = await app.gate(board, configuration.show, agent=made["id"])
        revisions = await app.gate(board, configuration.revisions, agent=made["id"])
        tool = build_tools(app)["hire_agent"]
        document = build_asgi(app).api.openapi()["components"]["schemas"]
        outline = await app.archive.export(board, root["company_id"])
        export = b"".join([piece async for piece in app.archive.stream(outline)])
        bodies = [name for name, one in document.items() if "nickname" in one.get("properties", ())]
        print(json.dumps({
            "hired": hired["agent"]["nickname"],
            "shown": shown["nickname"],
            "changed": revisions[0]["changed"],
            "tool": "nickname" in input_schema(tool.arguments)["properties"],
            "bodies": bodies,
            "option": any("--nickname" in one.opts for one in hire.params),
            "exported": b'nickname = "Uno"' in export,
        }))

with tempfile.TemporaryDirectory() as home:
    asyncio.run(main(Path(home)))
"""


@pytest.mark.slow
def test_a_new_field_is_a_change_of_three_files(tmp_path: Path) -> None:
    copy = tmp_path / "remit"
    shutil.copytree(SOURCE, copy)  # with what is compiled: only the changed files differ
    spec, table = copy / "model/organisation/agent_spec.py", copy / "store/tables/organisation.py"
    part = 'Part(Holds.LINE, 40, listed=True, later=True, option="--nickname", label="Nickname")'
    field = "    metadata: Annotated["
    assert spec.read_text().count(field) == 1
    spec.write_text(
        spec.read_text().replace(field, f"    nickname: Annotated[str, {part}]\n{field}")
    )
    default = '        "metadata": "{}",\n'
    assert table.read_text().count(default) == 1
    new = '        "nickname": "",\n'
    table.write_text(table.read_text().replace(default, default + new))
    versions = copy / "store/migrations/versions"
    head = max(one.name[:4] for one in versions.glob("[0-9]*.py"))
    (versions / "9000_nickname.py").write_text(
        f'from alembic import op\n\nrevision = "9000"\ndown_revision = "{head}"\n\n\n'
        "def upgrade() -> None:\n"
        """    op.execute("ALTER TABLE agents ADD COLUMN nickname TEXT DEFAULT '' NOT NULL")\n"""
    )
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["hired"], found["shown"], found["changed"]) == ("Uno", "Due", ["nickname"])
    assert [found[one] for one in ("tool", "option", "exported")] == [True] * 3
    assert {"Agent", "AgentBody", "HireBody", "AgentChange", "ProposalBody"} <= set(found["bodies"])
