"""Real agents work complete stories: mail in, tools, mail back; in new and resumed conversations.

The programs are the real Claude Code and Codex, and the loop of the extra `llm`; only the model
behind them is a script on loopback. Each story has an instance, a worker and a home of its own.
Where a program is not installed that is said, and skipped.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from remit.adapters.codex import codex_cli
from remit.clock import SECOND, from_iso
from remit.entrypoints.cli.commands.company import lending
from remit.model.connections.lent_plugin import LentPlugin
from remit.model.execution import account
from remit.model.execution.account import PROBES
from remit.services.connections import folders, lent_plugins
from remit.services.messaging import threads
from remit.services.organisation import idleness
from remit.services.screens import needs_you
from remit.testing import Simulation, scenario
from remit.testing.real import real_stage
from tests.agent_stage import Answer, Stage, stage
from tests.agents.fake_anthropic import FakeAnthropic
from tests.agents.fake_model import Say, Step, Use
from tests.real_programs import (
    KEY,
    KINDS,
    MISTAKES,
    RESUMED,
    command,
    config,
    mistaken_story,
    model,
    prompt_of,
    said_to,
    story_of,
    surroundings,
    tool,
)

__all__ = ["surroundings"]

ADDRESSES = {"claude": "ANTHROPIC_BASE_URL", "codex": "OPENAI_BASE_URL"}
PRICES = {"input": 2, "output": 10, "cached": 0.5}


async def worked(at: Stage, count: int) -> Answer:
    found = await at.over(count)
    run = found[count - 1]
    assert run["status"] == "completed", (run["error"], await at.log(run))
    return run


@pytest.mark.requirement("FX-20", "FX-21", "HB-13", "HB-15", "HB-21")
@pytest.mark.parametrize("kind", KINDS)
def test_a_wish_is_worked_on_and_answered_in_a_new_conversation(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Nobody is there; what is on this machine, Remit included, is reached without it.
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "intern.example")

    async def story() -> None:
        command(kind)
        with model(kind, story_of(kind, "It is green.")) as fake:
            async with stage(tmp_path) as at:
                priced = {} if kind == "claude" else {"prices": PRICES}
                settings = config(kind, fake, **priced)
                if kind in ADDRESSES:  # the worker's, lent with its key
                    monkeypatch.setenv(ADDRESSES[kind], settings.pop("baseUrl"))
                await at.cast(kind, settings)
                await at.send("What colour is grass?")
                run = await worked(at, 1)
                assert fake.failures == []
                if priced:
                    fresh = run["tokens_in"] - run["tokens_cached"]
                    cost = 2 * fresh + 0.5 * run["tokens_cached"] + 10 * run["tokens_out"]
                    assert run["cost_usd"] == pytest.approx(cost / 1_000_000, abs=1e-6)
                assert run["cost_usd"] > 0
                assert "It is green." in await at.mail()
                assert run["final_response"] == "I am done: It is green."
                assert run["tokens_in"] > 0
                assert run["tokens_out"] > 0
                assert run["session_id"] or kind == "llm"
                assert KEY not in await at.log(run)
                done = await at.transcript(run)
                kinds = [entry.kind.value for entry in done]
                calls = [entry.tool for entry in done if entry.kind.value == "call"]
                assert calls == ["mail_inbox", "mail_ack", "kb_create", "mail_send"]
                assert kinds.count("result") == len(calls)
                turns = [entry.turn or 0 for entry in done if entry.kind.value == "turn"]
                # Codex says nothing of its turns; they are looked for, several times a second.
                assert turns == sorted(turns)
                assert (len(turns) == 5 or kind == "codex", 0 < len(turns) <= 5) == (True, True)
                assert "I am done: It is green." in [entry.text for entry in done]
                assert (kinds[-1], done[-1].tokens_in) == ("end", run["tokens_in"])
        assert "ceo" in prompt_of(fake.requests[0])
        assert "What colour is grass?" in said_to(fake.requests[0])
        if kind == "llm":  # a model on this machine
            tools = fake.requests[0]["tools"]
            assert len(tools) == 10
            assert len(json.dumps(tools, separators=(",", ":"))) / 4 <= 1_500
            assert "the tools that are listed to you and no others" in prompt_of(fake.requests[0])

    asyncio.run(story())


#: Of Claude's first request, about; half of them are Claude's own.
MOST_TOKENS = 9_500
#: Tools of Claude that would do what Remit does, past its record and its rights.
RIVALS = {"Agent", "Task", "Workflow", "SendMessage", "ListAgents", "ScheduleWakeup", "CronCreate"}


#: What Codex' own models would be told of agents of their own.
RIVAL_WORDS = ("spawn_agent", "sub-agent", "<multi_agent", "<collaboration_mode", "duration_ms")


@pytest.mark.requirement("FX-17", "FX-18")
@pytest.mark.parametrize(
    ("kind", "named"),
    [("claude", None), ("codex", None), ("codex", "gpt-5.5"), ("llm", "a-model")],
)
def test_the_models_that_programs_take_by_default_find_the_tools_and_learn_from_mistakes(
    kind: str, named: str | None, tmp_path: Path
) -> None:
    """To these Codex does not list the tools of a server: its newest writes code that calls them,
    the other one searches for them."""

    async def story() -> None:
        command(kind)
        with model(kind, mistaken_story(kind, named, "It is green.")) as fake:
            async with stage(tmp_path) as at:
                given = {**config(kind, fake), "model": named}
                given.pop("tools", None)
                await at.cast(kind, given)
                await at.send("What colour is grass?")
                run = await worked(at, 1)
                assert fake.failures == []
                assert "It is green." in await at.mail()
                done = await at.transcript(run)
                calls = [entry.tool for entry in done if entry.kind.value == "call"]
                assert calls[-2:] == ["mail_send", "mail_send"]
        heard = [result.text for result in fake.results()]
        # Claude itself makes a list of a text that holds one.
        for sentence, step in MISTAKES[1 if kind == "claude" else 0 :]:
            (answer,) = [text for text in heard if sentence in text]
            assert step in answer
            following = heard[heard.index(answer) + 1]
            assert not [
                word for word in ("Next: ", '"code":"', '"isError":true') if word in following
            ]
        first = json.dumps(fake.requests[0], separators=(",", ":"), ensure_ascii=False)
        if isinstance(fake, FakeAnthropic):
            listed = set(fake.tools())
            assert {"Read", "Edit", "Write", "Bash", "mcp__remit__mail_send"} <= listed
            assert not listed & RIVALS
            assert len(first) / 4 < MOST_TOKENS
        elif kind == "codex":
            assert not [word for word in RIVAL_WORDS if word in first]
            assert '"mail_inbox"' not in first  # it is not listed
            assert "mail_inbox" in heard[0]  # and is found

    asyncio.run(story())


@pytest.mark.requirement("HB-21", "HB-31", "HB-56")
@pytest.mark.parametrize("kind", KINDS)
def test_a_conversation_goes_on_in_the_next_run_and_each_run_counts_for_itself(
    kind: str, tmp_path: Path
) -> None:
    async def story() -> None:
        command(kind)
        script = [*story_of(kind, "It is green."), *story_of(kind, "It is blue.")]
        with model(kind, script) as fake:
            async with stage(tmp_path) as at:
                await at.cast(kind, config(kind, fake, **RESUMED))
                await at.send("What colour is grass?")
                first = await worked(at, 1)
                plant(at.settings.home / "agents" / first["agent_id"])
                await at.send("And the sky?")
                second = await worked(at, 2)
                assert fake.failures == []
                assert PLANTED not in json.dumps(fake.requests)
                assert set(await at.mail()) >= {"It is green.", "It is blue."}
        heard = said_to(fake.requests[-1])
        assert "What colour is grass?" in heard
        assert "And the sky?" in heard
        assert first["session_id"].split("/")[0] == second["session_id"].split("/")[0]
        for counted in ("tokens_in", "tokens_out", "tokens_cached", "cost_usd"):
            assert first[counted] == second[counted], counted
        # Byte for byte, so that the provider's cache hits; Codex adds to it in each run.
        assert prompt_of(fake.requests[-1]).startswith(prompt_of(fake.requests[0])[:-1])

    asyncio.run(story())


#: What the programs would read as instructions if it lay in the home of an agent.
PLANTED = "planted-4711"
_HOOK = {"hooks": [{"type": "command", "command": f"echo {PLANTED}"}]}
_SKILL = f"---\nname: {PLANTED}\ndescription: {PLANTED}\n---\n{PLANTED}\n"
PLACES = {
    ".claude/CLAUDE.md": PLANTED,
    ".claude/rules/one.md": PLANTED,
    ".claude/settings.json": json.dumps({"hooks": {"SessionStart": [_HOOK]}}),
    ".claude/skills/one/SKILL.md": _SKILL,
    ".claude/agents/one.md": _SKILL,
    ".claude/output-styles/one.md": _SKILL,
    ".codex/AGENTS.md": PLANTED,
    ".codex/AGENTS.override.md": PLANTED,
    ".codex/config.toml": f'instructions = "{PLANTED}"\nproject_doc_fallback_filenames = []\n',
    ".codex/skills/one/SKILL.md": _SKILL,
    ".agents/skills/one/SKILL.md": _SKILL,
}


def plant(home: Path) -> None:
    for place, text in PLACES.items():
        (home / place).parent.mkdir(parents=True, exist_ok=True)
        (home / place).write_text(text)


@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_a_lost_conversation_is_begun_anew(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        command(kind)
        with model(kind, [Say("first")]) as fake:
            async with stage(tmp_path) as at:
                await at.cast(kind, config(kind, fake, **RESUMED))
                await at.send("One.")
                run = await worked(at, 1)
                records = list((at.settings.home / "agents" / run["agent_id"]).rglob("*.jsonl"))
                assert records
                for record in records:
                    record.unlink()
                for other in (at.settings.home / "agents" / run["agent_id"]).rglob("*.sqlite*"):
                    other.unlink()
                await at.send("Two.")
                again = await worked(at, 2)
                assert again["final_response"] == "first"
                assert again["session_id"].split("/")[0] != run["session_id"].split("/")[0]

    asyncio.run(story())


OTHER_PROVIDERS = pytest.mark.campaign("other names of the same kind")
PROVIDERS = [
    pytest.param(name, marks=() if name == "openai" else OTHER_PROVIDERS)
    for name in sorted(codex_cli.BUILT_IN)
]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_codex_reaches_an_address_in_the_name_of_a_provider_of_its_own(
    provider: str, tmp_path: Path
) -> None:
    async def story() -> None:
        with model("codex", [Say("Here I am.")]) as fake:
            async with stage(tmp_path) as at:
                await at.cast("codex", config("codex", fake, provider=provider))
                await at.send("Are you there?")
                run = await worked(at, 1)
                assert (run["status"], run["final_response"]) == ("completed", "Here I am.")

    asyncio.run(story())


OTHER_ANSWERS = pytest.mark.campaign(
    "other numbers in the same answer; test_adapter_faults has all"
)
FAULTS = [
    (401, {"auth"}),
    pytest.param(402, {"billing"}, marks=OTHER_ANSWERS),
    pytest.param(403, {"auth"}, marks=OTHER_ANSWERS),
    (429, {"rate"}),
    (500, {"overload"}),
    ("cut", {"network"}),
]


@pytest.mark.requirement("FX-09")
@pytest.mark.parametrize(("fault", "named"), FAULTS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_the_model_refuses_is_named_and_not_tried_for_minutes(
    kind: str, fault: Any, named: set[str], tmp_path: Path
) -> None:
    async def story() -> None:
        command(kind)
        with model(kind, [Say("never heard " * 50)], fault=fault) as fake:
            async with stage(tmp_path) as at:
                await at.cast(kind, config(kind, fake, maxRetries=1))
                await at.send("Please do it.")
                await at.begun()
                (run, *_) = await at.over(seconds=30)
                asked, begun = len(fake.requests), len(await at.runs())
                assert run["status"] == "failed"
                assert run["fault"] in named, (run["exit_reason"], run["error"])
                assert run["error"]
                most = 1 if fault in (401, 402, 403) else 12
                assert 1 <= asked <= most * begun
                (account,) = await at.accounts()
                assert (account["state"] == "open", account["fault"]) == (False, run["fault"])
                letters = await at.deliveries()
                assert letters == [("queued", 1)]

    asyncio.run(story())


SAME_ANSWERS = pytest.mark.campaign("the others are answered so, and wait by the same rule")


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        *(("claude", 429), ("codex", 500), ("llm", 401), ("llm", "cut")),
        *(pytest.param("llm", fault, marks=SAME_ANSWERS) for fault in (429, 500)),
    ],
)
def test_a_model_that_goes_on_refusing_is_asked_less_and_less_and_told_of_once(
    kind: str, fault: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The board reads one message, however often it is tried. After an overload a free question
    decides whether it is tried, which is answered here."""
    shorter = tuple(pause // 10 for pause in PROBES)
    monkeypatch.setattr(account, "PROBES", shorter)

    async def story() -> None:
        command(kind)
        with model(kind, [Say("never heard")], fault=fault) as fake:
            fake.lists = fault == 500
            async with stage(tmp_path) as at:
                await at.hire("dev", kind, config(kind, fake, maxRetries=0))
                await at.send("Please do it.", to="agent:dev")
                found = await at.over(3, seconds=60)
                mine = [run for run in found if run["adapter_type"] == kind]
                while len(mine) < 3:
                    await asyncio.sleep(0.1)
                    found = await at.over(3, seconds=60)
                    mine = [run for run in found if run["adapter_type"] == kind]
                assert {run["status"] for run in mine} == {"failed"}
                ends = [from_iso(run["completed_at"]) for run in mine]
                begins = [from_iso(run["started_at"]) for run in mine]
                pauses = [later - sooner for sooner, later in zip(ends, begins[1:], strict=False)]
                assert pauses[0] >= shorter[0]
                assert pauses[1] >= shorter[0 if fault == 429 else 1]
                told = await at.app.gate(at.board, threads.listing, company=None)
                subjects = [one["subject"] for one in told if one["subject"]]
                assert len(subjects) == 1, [run["error"] for run in mine]
                assert subjects[0].endswith(f" cannot be used: {mine[-1]['fault']}")
                assert await at.deliveries() == [("queued", 1)]

    asyncio.run(story())


@pytest.mark.requirement("FX-09", "FX-10")
@pytest.mark.parametrize("kind", ["claude", "llm"])
def test_a_provider_that_says_when_to_come_back_is_believed(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        command(kind)
        with model(kind, [Say("never heard")], fault=429) as fake:
            fake.retry_after = 2
            async with stage(tmp_path) as at:
                await at.cast(kind, config(kind, fake, maxRetries=1))
                await at.send("Please do it.")
                await at.begun()
                (run, *_) = await at.over(seconds=30)
                assert run["fault"] == "rate"
                left = from_iso(run["fault_until"]) - from_iso(run["completed_at"])
                assert SECOND < left <= 2 * SECOND, left
                fake.fault = None
                found = await at.over(2, seconds=30)
                assert found[1]["status"] == "completed"
                assert (await at.accounts())[0]["state"] == "open"

    asyncio.run(story())


@pytest.mark.parametrize(
    ("more", "reason"), [({"maxTurns": 2}, "max_turns"), ({"maxBudgetUsd": 0.0001}, "budget")]
)
def test_claude_is_held_by_its_limits(more: dict[str, Any], reason: str, tmp_path: Path) -> None:
    async def story() -> None:
        command("claude")
        with model("claude", story_of("claude", "x")) as fake:
            async with stage(tmp_path) as at:
                await at.cast("claude", config("claude", fake, **more))
                await at.send("Please do it.")
                await at.begun()
                (run, *_) = await at.over()
                assert (run["status"], run["exit_reason"]) == ("failed", reason)
                assert run["tokens_in"] > 0
                assert run["cost_usd"] > 0

    asyncio.run(story())


@pytest.mark.requirement("FX-64")
def test_a_looping_claude_is_stopped_within_two_runs_with_one_row(tmp_path: Path) -> None:
    """It looks for another file each turn, none of which exists."""

    def another(number: int) -> Use:
        name = f"00000000-0000-0000-0000-{number:012}"
        return Use(tool("claude", "kb_read"), {"id": name})

    async def story() -> None:
        command("claude")
        with model("claude", [another(number) for number in range(60)]) as fake:
            async with stage(tmp_path) as at:
                await at.cast("claude", config("claude", fake))
                await at.send("Please do it.")
                first, second = await at.over(2)
                for run in (first, second):
                    assert (run["status"], run["exit_reason"]) == ("failed", "failed_calls")
                (item,) = await at.app.gate(at.board, needs_you.listing)
                assert item["kind"] == "runaway"
                assert item["title"].startswith("ceo gets nothing done: 2 runs in a row were ended")
                assert "25 × kb_read, 25 refused or failed" in item["cause"]  # noqa: RUF001
                assert item["next"].startswith(f"remit run tail {second['id']}, then remit cancel ")
                awake = await at.app.gate(at.board, idleness.why_idle, agent="ceo")
                assert awake["reason"] == "backoff"
                assert len(fake.requests) < 60

    asyncio.run(story())


def test_claude_has_all_tools_the_skills_and_no_questions_in_its_sandbox(tmp_path: Path) -> None:
    async def story() -> None:
        command("claude")
        outside = tmp_path / "outside"
        script: list[Step] = [
            Use("Bash", {"command": "touch inside && touch /etc/x; id -u; ls", "description": "x"}),
            Use("Write", {"file_path": str(outside), "content": "x"}),
            Say("done"),
        ]
        more = {"tools": None, "permissionMode": "bypassPermissions", "reasoningEffort": "low"}
        with model("claude", script) as fake:
            async with stage(tmp_path / "home") as at:
                await at.cast("claude", config("claude", fake, **more))
                await at.send("Please do it.")
                await worked(at, 1)
            shell, written = fake.results()
            assert "inside" in shell.text
            assert re.search("Read-only file system|Permission denied", shell.text)
            assert not outside.exists()
            del written  # what it wrote is nowhere, whatever it was told
            assert "remit-create-agent" in said_to(fake.requests[0])
            assert "Skill" in fake.tools()  # type: ignore[union-attr]

    asyncio.run(story())


def test_codex_runs_commands_in_our_sandbox(tmp_path: Path) -> None:
    async def story() -> None:
        command("codex")
        call = {"cmd": "touch inside && ls && touch /etc/x"}
        with model("codex", [Use("exec_command", call), Say("done")]) as fake:
            async with stage(tmp_path) as at:
                await at.cast("codex", config("codex", fake))
                await at.send("Please do it.")
                await worked(at, 1)
            (shell,) = fake.results()
            assert "inside" in shell.text
            assert "Read-only file system" in shell.text
            assert "remit-create-agent" in said_to(fake.requests[0])

    asyncio.run(story())


#: A project whose one test fails until somebody mends it.
PROJECT = {
    "Makefile": "test: built\n\tpython3 check.py\n\nbuilt:\n\techo building; date +%N >built\n",
    "app.py": "def add(a, b):\n    return a\n",
    "check.py": "from app import add\n\nassert add(2, 2) == 4, 'wrong'\nprint('all is well')\n",
}


@pytest.mark.requirement("FX-32")
@pytest.mark.parametrize(
    "kind",
    ["claude", pytest.param("codex", marks=pytest.mark.campaign("the same folder and sandbox"))],
)
def test_a_project_is_built_tested_and_mended_in_a_folder_that_stays(
    kind: str, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for name, content in PROJECT.items():
        (project / name).write_text(content)

    def shell(line: str) -> Use:
        if kind == "claude":
            return Use("Bash", {"command": line, "description": "work"})
        return Use("exec_command", {"cmd": line})

    def script(request: Mapping[str, Any]) -> list[Step]:
        mends = "Mend it" in said_to(dict(request))
        line = "sed -i 's/return a/return a + b/' app.py && make test" if mends else "make test"
        return [*story_of(kind, "")[:2], shell(line), Say("That is all.")]

    async def story() -> None:
        command(kind)
        more: dict[str, Any] = {}
        if kind == "claude":
            more = {"tools": None, "permissionMode": "bypassPermissions"}
        with model(kind, script) as fake:
            async with stage(tmp_path / "home") as at:
                await at.cast(kind, config(kind, fake, **more))
                await at.app.gate(
                    at.board, folders.bind, company=None, agent="ceo", path=str(project)
                )
                await at.send("Does it work?")
                await worked(at, 1)
                built = (project / "built").read_text()
                await at.send("Mend it, please.")
                await worked(at, 2)
        told = [one.text for request in fake.requests for one in fake.results_in(request)]
        first = next(text for text in told if "wrong" in text)
        second = next(text for text in told if "all is well" in text)
        assert "building" in first
        assert "building" not in second, "what the first run built is there"
        assert (project / "built").read_text() == built

    asyncio.run(story())


@pytest.mark.requirement("FX-80")
@pytest.mark.parametrize("kind", KINDS)
def test_the_instructions_of_a_folder_reach_the_model_once_and_in_the_turn(
    kind: str, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    (project / "docs").mkdir(parents=True)
    (project / "CLAUDE.md").write_text("MARK-OF-CLAUDE\n@docs/more.md\n")
    (project / "AGENTS.md").write_text("MARK-OF-AGENTS\n")
    (project / "docs" / "more.md").write_text("MARK-OF-IMPORT\n")

    async def story() -> None:
        command(kind)
        with model(kind, [Say("done")]) as fake:
            async with stage(tmp_path / "home") as at:
                await at.cast(kind, config(kind, fake))
                await at.app.gate(
                    at.board, folders.bind, company=None, agent="ceo", path=str(project)
                )
                await at.send("Hello.")
                await worked(at, 1)
        first = fake.requests[0]
        for mark in ("MARK-OF-CLAUDE", "MARK-OF-AGENTS", "MARK-OF-IMPORT"):
            assert json.dumps(first).count(mark) == 1
            assert f"| {mark}" in said_to(first)
            assert mark not in prompt_of(first)
        said = said_to(first)
        assert said.index("# This folder") < said.index("MARK-OF-AGENTS") < said.index("Hello.")

    asyncio.run(story())


LENT = {
    "skills/deploy/SKILL.md": "---\nname: deploy\ndescription: HOW-TO-DEPLOY\n---\nPush it.\n",
    "commands/mend.md": "---\ndescription: HOW-TO-MEND\n---\nMend $1.\n",
}


@pytest.mark.requirement("HB-14", "FX-79")
@pytest.mark.parametrize(
    ("kind", "filtered"), [("claude", True), ("codex", True), ("claude", False)]
)
def test_a_lent_plugin_brings_its_skills_and_no_hooks(
    kind: str, filtered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last is the control: with the hooks that Remit leaves out, a program of theirs runs."""
    project = tmp_path / "project"
    project.mkdir()
    hook = {"hooks": [{"type": "command", "command": f"touch {project}/hooked"}]}
    hooks = json.dumps({"hooks": {"SessionStart": [hook]}})
    if not filtered:
        plain = LentPlugin.files
        monkeypatch.setattr(
            LentPlugin,
            "files",
            lambda plugin: {
                **plain(plugin),
                PurePosixPath("hooks/hooks.json"): hooks.encode(),
            },
        )
    folder = tmp_path / "team"
    for name, text in {**LENT, "hooks/hooks.json": hooks}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)

    async def story() -> None:
        command(kind)
        more: dict[str, Any] = {"tools": ["Skill"]} if kind == "claude" else {}
        with model(kind, [Say("done")]) as fake:
            async with stage(tmp_path / "home") as at:
                await at.cast(kind, config(kind, fake, **more))
                await at.app.gate(
                    at.board, folders.bind, company=None, agent="ceo", path=str(project)
                )
                files = {
                    path: base64.b64encode(raw).decode()
                    for path, raw in lending.read_folder(folder)[0].items()
                }
                await at.app.gate(
                    *(at.board, lent_plugins.lend),
                    agent="ceo",
                    name="team",
                    source=str(folder),
                    files=files,
                )
                await at.send("Hello.")
                await worked(at, 1)
                first = len(fake.requests)
                await at.app.gate(at.board, lent_plugins.take_back, agent="ceo", plugin="team")
                await at.send("Hello again.")
                await worked(at, 2)
        request = json.dumps(fake.requests[0])
        assert "HOW-TO-DEPLOY" in request
        if kind == "claude":
            assert "team:deploy" in request
            assert "team:mend" in request
        else:
            assert "skills/deploy/SKILL.md" in prompt_of(fake.requests[0])
        assert (project / "hooked").exists() is not filtered
        assert "HOW-TO-DEPLOY" not in json.dumps(fake.requests[first])

    asyncio.run(story())


SCENARIO = """
name: A colour
agents:
  - name: ceo
    script:
      - on: mail
        matching: grass
        do:
          - mail_send: {to: board, subject: Done, body: It is green.}
board:
  - send: {to: "agent:ceo", body: "What colour is grass?"}
  - rest
expect:
  - mail: {to: board, contains: green}
  - event: {action: message.send, at_least: 2}
"""


@pytest.mark.requirement("BX-13")
@pytest.mark.parametrize("kind", KINDS)
def test_one_scenario_file_is_played_by_scripts_and_by_real_agents(
    kind: str, tmp_path: Path
) -> None:
    command(kind)
    file = tmp_path / "colour.yaml"
    file.write_text(SCENARIO)
    found = scenario.read(file)
    with Simulation() as sim:
        played = scenario.play(found, scenario.Simulated(sim))
    with (
        model(kind, story_of(kind, "It is green.")) as fake,
        real_stage(kind, config(kind, fake), patience=90) as at,
    ):
        assert len(scenario.play(found, at)) == len(played) == 2
        assert fake.requests
