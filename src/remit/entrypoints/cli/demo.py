"""A company at work in a temporary home: scripted agents, real calls, no model and no key.

`demo.yaml` has the story; this module plays and prints it.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from remit.entrypoints.cli.drawing import trees
from remit.entrypoints.serve import running
from remit.runtime.sandbox import sandbox_policy
from remit.services.identity import Caller
from remit.services.people import companies, sessions
from remit.settings import load
from remit.testing import story

STORY = Path(__file__).with_name("demo.yaml")
_PAUSE_SECONDS = 0.25
_WIDTH = 8
#: Seconds within which an interrupt that ended a program is heard here as well.
_UNTIL_HEARD = 1.0
#: Exit code of a program that SIGINT ended.
_INTERRUPTED = 130


def run(*, serve: bool = False, speed: str = "normal", as_json: bool = False) -> int:
    """Play the story, check that it came out right, and return the exit code."""
    pause = 0.0 if speed == "fast" or as_json else _PAUSE_SECONDS
    narrator = Narrator(pause, quiet=as_json)
    with tempfile.TemporaryDirectory(prefix="remit-demo-") as home:
        code = asyncio.run(_play(Path(home), narrator, serve))
    if as_json:
        print(json.dumps({"ok": code == 0, "story": narrator.told}, ensure_ascii=False))
    return code


async def _play(home: Path, narrator: Narrator, serve: bool) -> int:
    steps = story.read(STORY)
    held = sandbox_policy.look()
    known = {"sandboxed": held.usable, "sandbox": {"reason": held.reason}}
    async with running(load({"REMIT_HOME": str(home)})) as (app, url, stopped):
        board = Caller((home / "board.token").read_text().strip())
        if serve:
            link = (await app.gate(board, sessions.create_link))["token"]
            narrator.line(f"Watch it in a browser: {url}/login?token={link}")
        playing = asyncio.create_task(story.Player(app, url, board, narrator, known).play(steps))
        await asyncio.wait([playing, stopped], return_when=asyncio.FIRST_COMPLETED)
        if playing.done() and not playing.result():
            # Ctrl-C reaches the programs of agents, too, and their end may be noticed first.
            await asyncio.wait([stopped], timeout=_UNTIL_HEARD)
        if not playing.done() or (stopped.done() and not playing.result()):
            playing.cancel()
            await asyncio.wait([playing])
            narrator.line("Stopped before the end of the story.")
            return 0 if serve else _INTERRUPTED
        came_out_right = playing.result()
        narrator.line()
        narrator.line(
            "Everything came out as it should." if came_out_right else "Something is wrong."
        )
        if serve:
            narrator.line()
            told = (await app.gate(board, companies.listing))[-1]["name"]
            narrator.line(f"The company is still there at {url}. Stop it with Ctrl-C.")
            narrator.line("In another terminal: a link that signs you in, and who is there.")
            for command in ("open", "agent tree"):
                narrator.line(f"  REMIT_HOME={home} REMIT_COMPANY={told} remit {command}")
            await stopped
    return 0 if came_out_right else 1


class Narrator:
    """Tells a story on the terminal, one line at a time."""

    def __init__(self, pause: float, *, quiet: bool = False) -> None:
        self._console = Console(highlight=False, soft_wrap=True, quiet=quiet)
        self._pause = pause
        #: Speakers and sentences, for readers of JSON.
        self.told: list[tuple[str, str]] = []

    def title(self, text: str) -> None:
        self.line()
        self._console.print(Text(text, style="bold"))

    def say(self, who: str, what: str) -> None:
        self._tell(who, Text(f"  {who:<{_WIDTH}}", style="cyan") + Text(what), what)

    def refused(self, text: str) -> None:
        shown = Text(f"  {'✗':<{_WIDTH}}", style="red") + Text(text, style="dim")
        self._tell("refused", shown, text)

    def show(self, kind: str, value: Any) -> None:
        if kind == "refusal":
            self.refused(value)
        elif kind == "chain":
            self.say("why?", " ← ".join(f"{step['who']} {step['action']}" for step in value))
        elif kind == "tree":
            self.line(f"  {value['title']} ({value['status']})")
            for branch, label, status in trees.lines(value["children"], "children", _line):
                self.line(f"  {branch}{label} ({status})")
        else:
            # A turn begins with a greeting of three lines.
            for line in filter(None, value.splitlines()[3 if kind == "turn" else 0 :]):
                self.line(f"          │ {line}")

    def line(self, text: str = "") -> None:
        self._console.print(Text(text))

    def _tell(self, who: str, shown: Text, what: str) -> None:
        self.told.append((who, what))
        time.sleep(self._pause)
        self._console.print(shown)


def _line(branch: str, node: dict[str, Any]) -> trees.Line:
    marks = ("!" if node.get("urgent") else "") + ("*" if node.get("important") else "")
    status = node["status"]
    if status == "open":
        status = "open, ready" if node["actionable"] else "open, waits"
    return trees.Line(branch, f"{marks} {node['title']}".strip(), status)
