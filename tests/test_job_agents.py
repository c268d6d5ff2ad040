"""Background jobs by the real programs of Claude and Codex, and by a model without a program.

The models behind them are scripts, which tell what they were told.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from remit.runtime.jobs import Jobs
from remit.runtime.sandbox import sandbox_policy
from remit.services.connections import folders
from remit.services.execution import jobs
from remit.services.identity import Caller
from remit.services.messaging import inbox
from remit.services.organisation import agents
from remit.services.rights import grants
from tests.agent_stage import Answer, Stage, stage
from tests.agents.fake_anthropic import FakeAnthropic, Say, Step, Use
from tests.real_programs import KEY, KINDS, command, config, model, prompt_of, said_to

TEXT = "How many legs has a spider?"
#: What only Remit could have told it.
OURS = ("REMIT", "Remit", "rmt_", "mcp__remit", "outcome_", "kb_read", "log_submit", "helper (")


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    if not sandbox_policy.look().usable:
        pytest.skip(f"REAL AGENTS ARE NOT TESTED: {sandbox_policy.look().reason}")
    monkeypatch.setenv("HOME", "/nonexistent")
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.setenv(name, KEY)


async def asked(
    at: Stage,
    kind: str,
    settings: dict[str, Any],
    attachment: str | None = None,
    folder: Path | None = None,
) -> Answer:
    """A job of an agent that is set up so, once it is over; and its answer."""
    made = await at.hire("helper", kind, settings)
    key = await at.app.gate(at.board, agents.create_key, agent=made["id"])
    helper = Caller(key["token"])
    if folder is not None:
        about = {"company": made["company_id"], "agent": made["id"], "path": str(folder)}
        await at.app.gate(at.board, folders.bind, **about)
    if attachment is not None:
        await at.app.gate(
            at.board,
            grants.give,
            company=made["company_id"],
            to=made["id"],
            resource=f"kb_file:{attachment}",
            level="read",
        )
    attached = [attachment] if attachment else []
    await at.app.library.send(helper, body=TEXT, to="agent:background", attachments=attached)
    carrier = Jobs(at.app)
    carrier.start()
    try:
        job = await _over(at)
    finally:
        await carrier.stop()
    taken = await at.app.gate(helper, inbox.take)
    (answer,) = [one for one in taken["messages"] if one["sender"] == "agent:background"]
    return {**job, "answer": answer["body"]}


async def _over(at: Stage) -> Answer:
    return await _found(at, lambda job: job["status"] not in ("queued", "running"))


async def _found(at: Stage, is_so: Callable[[Answer], bool]) -> Answer:
    async with asyncio.timeout(60):
        while True:
            (job,) = await at.app.gate(at.board, jobs.listing, company=None)
            if is_so(job):
                return job
            await asyncio.sleep(0.05)


@pytest.mark.requirement("HB-41", "HB-43", "HB-46")
@pytest.mark.parametrize("kind", KINDS)
def test_the_last_word_is_the_answer_and_the_first_is_only_the_text(
    kind: str, tmp_path: Path
) -> None:
    async def story() -> None:
        command(kind)
        with model(kind, [Say("Eight.\n\nAlways eight.")]) as fake:
            async with stage(tmp_path, working=False) as at:
                more = {} if kind == "llm" else {"reasoningEffort": "low"}
                job = await asked(at, kind, config(kind, fake, **more))
                assert job["status"] == "completed", job["error"]
                assert job["answer"] == "Eight.\n\nAlways eight."
                assert job["tokens_in"] > 0
                assert job["tokens_out"] > 0
                assert list(at.settings.job_folder.iterdir()) == []
            assert fake.failures == []
            first = fake.requests[0]
            assert TEXT in said_to(first)
            told = prompt_of(first) + said_to(first) + json.dumps(first.get("tools") or [])
            assert [word for word in OURS if word in told] == []
            assert first["model"] == ("claude-sonnet-4-5" if kind == "claude" else "a-model")
            if kind == "codex":
                assert first["reasoning"]["effort"] == "low"

    asyncio.run(story())


@pytest.mark.requirement("HB-44", "HB-40")
@pytest.mark.parametrize("kind", ["claude", "codex"])
def test_its_commands_find_the_attachments_and_no_token(kind: str, tmp_path: Path) -> None:
    async def story() -> None:
        command(kind)
        shell = "env; cat .kb/*; ls -A"
        step: Step = Use("Bash", {"command": shell, "description": "x"})
        more: dict[str, Any] = {"tools": None, "permissionMode": "bypassPermissions"}
        if kind == "codex":
            step, more = Use("exec_command", {"cmd": shell}), {}
        with model(kind, [step, Say("Seen.")]) as fake:
            async with stage(tmp_path, working=False) as at:
                file = await at.app.library.create(
                    at.board, b"eight legs", company=None, description="Legs"
                )
                job = await asked(at, kind, config(kind, fake, **more), file["id"])
                assert job["answer"] == "Seen.", job
            (seen,) = fake.results()
            assert "eight legs" in seen.text
            assert "HOME=" in seen.text
            assert "REMIT_" not in seen.text
            assert "rmt_" not in seen.text
            assert ".claude/skills" not in seen.text
            assert ".agents" not in seen.text

    asyncio.run(story())


@pytest.mark.requirement("FX-80")
def test_a_job_is_told_the_instructions_of_its_folder_before_its_text(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("MARK-OF-AGENTS\n")

    async def story() -> None:
        command("claude")
        with model("claude", [Say("Eight.")]) as fake:
            async with stage(tmp_path / "home", working=False) as at:
                await asked(at, "claude", config("claude", fake), folder=project)
        first = fake.requests[0]
        assert json.dumps(first).count("MARK-OF-AGENTS") == 1
        assert said_to(first).index("| MARK-OF-AGENTS") < said_to(first).index(TEXT)

    asyncio.run(story())


@pytest.mark.requirement("FX-10")
def test_a_job_waits_for_the_account_that_its_model_refuses(tmp_path: Path) -> None:
    async def story() -> None:
        command("claude")
        with FakeAnthropic([], fault=401) as fake:
            async with stage(tmp_path, working=False) as at:
                made = await at.hire("helper", "claude", config("claude", fake))
                key = await at.app.gate(at.board, agents.create_key, agent=made["id"])
                await at.app.library.send(Caller(key["token"]), body=TEXT, to="agent:background")
                carrier = Jobs(at.app)
                carrier.start()
                try:
                    job = await _found(at, lambda job: job["waits_for"] is not None)
                finally:
                    await carrier.stop()
                assert (job["status"], job["attempts"]) == ("queued", 0)
                assert "refuses the key (401)" in job["waits_for"]

    asyncio.run(story())
