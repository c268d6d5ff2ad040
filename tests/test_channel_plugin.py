"""A channel as its document has it: it passes the suite, and people talk to an agent through it."""

import asyncio
import importlib
import json
import re
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from remit.adapters import plugins
from remit.channels import registry
from remit.runtime.delivery.connecting import Connector
from remit.runtime.delivery.outbox import Outbox, Posts
from remit.runtime.delivery.receiving import IntakeLoop, Receivers
from remit.services.chat import accounts
from remit.services.connections import bindings
from remit.services.governance import approvals
from remit.services.messaging import inbox
from tests.company import Company
from tests.governance import ask
from tests.mailing import send

DOCUMENT = Path(__file__).parent.parent / "docs" / "channel-plugin.md"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The programs of the document, where they can be imported."""
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)
    assert [name for name, _ in blocks] == ["spool.py", "test_spool.py"]
    for name, code in blocks:
        (tmp_path / name).write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name, _ in blocks:
        sys.modules.pop(name.removesuffix(".py"), None)


@pytest.mark.requirement("FX-24")
def test_a_channel_written_from_the_document_passes_the_suite(written: Path) -> None:
    suite: Any = importlib.import_module("test_spool")
    suite.test_spool_keeps_what_a_channel_promises(written / "stands")


class Spoken:
    """A company whose agent is bound to that channel, and somebody at the folder."""

    def __init__(self, company: Company, folder: Path) -> None:
        self.c, self.folder = company, folder
        gate, self.connector = company.app.gate, Connector(company.app.vault.value)
        self.intake = IntakeLoop(gate, company.app.ids, self.connector)
        self.out = (Posts(gate, self.connector), Outbox(gate, self.connector))
        about: Any = {"company": company.id, "agent": "ceo", "kind": "spool"}
        company.call(company.board, bindings.add, **about, config={"folder": str(folder)})
        self.number = 0

    def say(self, **said: Any) -> list[Any]:
        """Ann puts it into the folder; answers what lies in the other one, the newest last."""
        self.number += 1
        file = self.folder / "in" / f"{self.number:04}.json"
        file.write_text(json.dumps({"from": "ann", "name": "Ann", **said}))

        async def heard() -> None:
            receivers = Receivers(self.c.app.gate, self.connector)
            receivers.start()
            try:
                async with asyncio.timeout(20):
                    while file.exists():  # noqa: ASYNC110  # of a folder
                        await asyncio.sleep(0.01)
            finally:
                await receivers.stop()

        self.c.wait(heard())
        return self.go()

    def go(self) -> list[Any]:
        for loop in (self.intake, *self.out):
            while self.c.wait(loop.tick()):
                pass
        found = sorted((self.folder / "out").glob("*.json"), key=lambda one: one.stat().st_mtime_ns)
        return [json.loads(one.read_text()) for one in found]


@pytest.mark.requirement("FX-24", "FX-25", "FX-26")
def test_people_talk_to_an_agent_through_it(
    written: Path, small: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = [EntryPoint("spool", "spool:Spool", registry.Registry.group)]
    monkeypatch.setattr(plugins, "entry_points", lambda **_: entries)
    monkeypatch.setattr(registry, "installed", registry.Registry())
    assert "A folder with" in registry.get("spool").configuration_doc()
    folder = written / "folder"
    for name in ("in", "out"):
        (folder / name).mkdir(parents=True)
    assert registry.installed.check("spool", {"folder": str(folder)}).usable
    there = Spoken(small, folder)
    assert "not linked" in there.say(text="/stop")[-1]["text"]
    code = small.call(small.board, accounts.code, kind="spool")["code"]
    assert "is linked to board" in there.say(text=code)[-1]["text"]
    (folder / "in" / "plan.txt").write_text("a plan")
    there.say(text="How much?", files=[["plan.txt", "plan.txt", "text/plain", 6]])
    [letter] = small.call(small.ceo.caller, inbox.take)["messages"]
    assert (letter["from_board"], letter["outside_sender"]) == (True, "Ann")
    assert small.read(small.ceo.caller, letter["attachments"][0])[1] == b"a plan"
    send(small, small.ceo.caller, letter["sender"], "Seven.", reply_to=letter["id"])
    assert there.go()[-1] | {"buttons": None} == {
        "to": "ann",
        "text": "ceo:\nSeven.",
        "buttons": None,
        "answers": "0003.json",
        "files": 0,
    }
    approval = ask(small, small.ceo.caller, "May I?")
    shown = there.say(text="/needs")
    buttons = next(dict(one["buttons"]) for one in shown if one["buttons"])
    decided = there.say(tapped=buttons["Approve"])
    assert any("Approved by board" in one["text"] for one in decided)
    about = {"approval": approval["id"]}
    assert small.call(small.board, approvals.show, **about)["status"] == "approved"
