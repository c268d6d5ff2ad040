"""The demonstration as people start it: it tells the truth, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
from pathlib import Path

import pytest

from remit.errors import BadInput
from remit.testing import story
from tests import cli_forks

LONGEST_SECONDS = 30
CHAPTERS = [
    "A company of two agents",
    "A wish, by mail",
    "Knowledge, and who may read it",
    "Two writers, no lost update",
    "Nobody comes in unasked",
    "A hire, sent back and approved",
    "A mandate, taken apart",
    "The hired agents at work",
    "A question, and its answer",
    "Who decides what",
    "Taken back, and verified",
    "The result, by mail",
    "Where it stands",
    "A program, started by its mail",
    "The record",
]


class Demo:
    """A demonstration in a process group and with a folder for temporary files of its own."""

    def __init__(self, folder: Path, *arguments: str, sabotage: str = "") -> None:
        self.folder = folder
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            # A socket or a file that is left open is an error.
            with cli_forks.instances().start(
                ["demo", *arguments],
                {
                    "PATH": os.environ["PATH"],
                    "HOME": str(folder),
                    "TMPDIR": str(folder),
                    "LANG": "C.UTF-8",
                },
                (None, out.fileno(), err.fileno()),
                script=f"{sabotage}\n{cli_forks.COMMAND_LINE}",
                new_session=True,
            ) as process:
                self.group, self.code = process.pid, process.wait(LONGEST_SECONDS)
            out.seek(0)
            err.seek(0)
            self.out, self.err = out.read().decode(), err.read().decode()

    def left_nothing(self) -> bool:
        with pytest.raises(ProcessLookupError):
            os.killpg(self.group, 0)
        return list(self.folder.iterdir()) == []


def test_the_demonstration_tells_its_story_and_leaves_nothing_behind(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "--speed", "fast")
    assert (demo.code, demo.err) == (0, "")
    lines = demo.out.splitlines()
    assert [line for line in lines if line in CHAPTERS] == CHAPTERS
    assert lines[-1] == "Everything came out as it should."
    assert "no_capability: " in demo.out
    assert "conflict: " in demo.out
    assert "not_in_reach: " in demo.out
    assert "          │ from-board: yes" in lines
    assert demo.left_nothing()


def test_the_story_is_there_as_json_too(tmp_path: Path) -> None:
    demo = Demo(tmp_path, "--json")
    assert (demo.code, demo.err) == (0, "")
    told = json.loads(demo.out)
    assert told["ok"] is True
    assert [who for who, _ in told["story"]][:2] == ["board", "board"]
    assert all(len(line) == 2 for line in told["story"])
    assert demo.left_nothing()


def test_the_story_is_the_same_on_a_machine_without_a_sandbox(tmp_path: Path) -> None:
    missing = """
from remit.runtime.sandbox import sandbox_policy
nothing = sandbox_policy.Found(None, "bubblewrap (bwrap) is not installed")
sandbox_policy.look = lambda: nothing
"""
    demo = Demo(tmp_path, "--speed", "fast", sabotage=missing)
    assert (demo.code, demo.err) == (0, "")
    (said,) = [line for line in demo.out.splitlines() if "no sandbox here" in line]
    assert said.endswith("bubblewrap (bwrap) is not installed")
    assert demo.left_nothing()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("until", ["Stop it with Ctrl-C", CHAPTERS[0], "and replies to scribe"])
def test_a_demonstration_that_serves_ends_at_once_and_leaves_nothing(
    until: str, number: signal.Signals, tmp_path: Path
) -> None:
    surroundings = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    speed = "normal" if until == CHAPTERS[0] else "fast"
    words = ["demo", "--serve", "--speed", speed]
    with cli_forks.instances().open(words, surroundings, errors=True, new_session=True) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        said = [demo.stdout.readline().decode()]
        assert "/login?token=rmt_login_" in said[0]
        while until not in said[-1]:
            said.append(demo.stdout.readline().decode())
            assert said[-1]
        # A terminal interrupts the programs of agents as well, which the story notices.
        (os.killpg if number == signal.SIGINT else os.kill)(demo.pid, number)
        # Far below the 9 seconds after which a process that hangs is cut off.
        assert demo.wait(7) == 0
        assert demo.stderr.read() == b""
        with pytest.raises(ProcessLookupError):
            os.killpg(demo.pid, 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("story: {a: b}", "story: must be a list"),
        ("- a", "story: must be a list"),
        ("story: [{say: Nothing is done.}]", "story[0]: must have one thing that is done"),
        ("story: [{title: One, begin: {}}]", "story[0]: must have one thing that is done"),
        ("story: [", "is not YAML"),
    ],
)
def test_a_story_that_cannot_be_told_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "story.yaml").write_text(text)
    with pytest.raises(BadInput, match=re.escape(sentence)):
        story.read(tmp_path / "story.yaml")


# ── a demonstration that cannot fail shows nothing ──────────────────────────────────────────────

SABOTAGE = {
    "everything is allowed": """
from importlib import import_module
from remit.model.organisation.decision import Decision, Effect
yes = Decision(Effect.ALLOW, "sabotage", "Anything goes.", "rule:sabotage")
import_module("remit.authority.decide").holding = lambda *_: yes
""",
    "updates are lost": """
from remit.services.knowledge import files
files._check_seen = lambda *_: None
""",
    "the record does not hold": """
from remit.services import verbs
from remit.services.record import events
from remit.services.command import Kind, Verb
broken = lambda ctx, *, company: {"ok": False, "events": 1}
verbs._VERBS["events.verify"] = Verb("events.verify", Kind.QUERY, broken)
""",
    "hires need nobody": """
from remit.services import verbs
from remit.services.people import companies
made = companies.create.body
def careless(ctx, **given):
    answer = made(ctx, **given)
    ctx.tx.execute("UPDATE companies SET require_board_approval_for_new_agents = 0", {})
    return answer
create = type(companies.create)("companies.create", companies.create.kind, careless)
verbs._VERBS["companies.create"] = create
""",
    "mail is lost": """
from remit.services.messaging import inbox
inbox.deliver = lambda *_, **__: None
""",
    "what is attached cannot be read": """
from remit.services.rights import grants
grants.share = lambda *_, **__: None
""",
    "mail comes again after it was acknowledged": """
from remit.services.messaging import inbox
inbox._end = lambda *_, **__: None
""",
    "an answer goes nowhere": """
from remit.services.messaging import answering
answering.close = lambda ctx, found, *_: found
""",
    "nobody is started": """
from remit.services.execution import waking
waking.wake = lambda *_, **__: False
from remit.services.execution import run_queue, runs
from remit.services.command import Kind, Verb
run_queue.ready = Verb("claiming.ready", Kind.QUERY, lambda ctx, **_: [])
from remit.testing import story
story.PATIENCE_SECONDS = 0.5  # later nobody would come either
""",
    "a run's token outlives it": """
from remit.services.execution import runs
from remit.services.command import Kind, Verb
runs.end = Verb("runs.end", Kind.QUERY, lambda ctx, *, run, status: {})
""",
}


@pytest.mark.parametrize("wrong", SABOTAGE)
def test_the_demonstration_fails_when_the_instance_is_wrong(tmp_path: Path, wrong: str) -> None:
    demo = Demo(tmp_path, "--speed", "fast", sabotage=SABOTAGE[wrong])
    assert demo.code == 1
    assert CHAPTERS[0] in demo.out
    assert demo.out.splitlines()[-1] == "Something is wrong."
    assert demo.err == ""
    assert demo.left_nothing()
