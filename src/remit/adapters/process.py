"""Any program that reads a task as JSON and answers as JSON."""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from remit.adapters import program_answer
from remit.adapters.contract import Adapter, Check, Environment
from remit.adapters.reading import Reader
from remit.adapters.running import RunContext, RunResult
from remit.adapters.settings import Program, RunSettings, Seconds, Text, optional
from remit.adapters.setup.detect import find_program
from remit.model.execution.fault import Fault
from remit.model.execution.transcript import Entry, EntryKind


class ProcessConfig(RunSettings):
    command: Program = Field(
        description="The program: a name on the PATH, a path, or a path inside the workspace. It "
        "is started directly, not by a shell."
    )
    args: list[Text] = Field(
        default_factory=list,
        max_length=200,
        description="Its arguments, one entry each, passed as they are. Not for secrets: other "
        "users of the machine see them.",
    )
    silence_seconds: Seconds | None = optional(
        "A run of which nothing was heard for so long is stopped: no output of the "
        "program, no call of a tool of Remit. null: only timeoutSeconds stops it."
    )


class AnswerReader(Reader):
    """Reader that shows the text of a JSON answer."""

    def read(self, line: str) -> Iterable[Entry]:
        text = program_answer.parse(line).get("text") if line.startswith("{") else None
        if isinstance(text, str) and text != line:
            return (Entry(EntryKind.SAID, text),)
        return super().read(line)


class Process(Adapter):
    """Starts a program for each run. It gets the task as JSON on its standard input, answers as
    JSON on its standard output, and can call Remit with REMIT_URL and REMIT_TOKEN."""

    type = "process"
    Config = ProcessConfig
    reads_with = AnswerReader
    background = True
    safety = (
        (
            "Task: one line of JSON with run, agent, instructions, turn and session. Answer: the "
            "last line printed, a JSON object with ok, text, error, session and usage (tokens_in, "
            "tokens_out, tokens_cached, cost_micros), all optional; other text is taken as text. "
            "A failure that is not the agent's names its fault (auth, rate, overload, billing, "
            "network, setup, message) and, if that is known, until when. "
            "An exit code other than 0 is a failure. The task of a background job has only job and "
            "turn."
        ),
        (
            "In the sandbox the program sees the system, its own package or environment, the "
            "workspace and its home. Scripts that `args` name have to be in one of these."
        ),
        (
            "The program is code that you trust with everything the agent may do; the sandbox "
            "holds it in its workspace."
        ),
        'sandbox "full" gives it everything that the worker\'s user can do.',
        (
            "Write `args` as a list. There is no shell, so nothing is expanded and nothing can be "
            "smuggled in, unless command is a shell."
        ),
    )
    examples = {  # noqa: RUF012  # read only
        "A script": {"command": "python3", "args": ["worker.py", "--verbose"]},
        "With limits": {
            "command": "/opt/agents/triage",
            "env": {"LOG_LEVEL": "info"},
            "cwd": "work",
            "timeoutSeconds": 300,
            "sandbox": "workspace",
        },
    }

    def check(
        self, config: ProcessConfig | None = None, environment: Environment | None = None
    ) -> Check:
        if config is None:
            return Check(True, "It can be used; each agent names its own program.")
        path = config.env.get("PATH") or (environment or {}).get("PATH", "")
        program = find_program(config.command, {"PATH": path} if path else {})
        inside = "/" in config.command and not config.command.startswith("/")
        facts = {"program": program}
        if program is None and not inside:
            return Check(
                False,
                "The program is not installed here, or cannot be executed.",
                "Correct `command`, or install it on every worker.",
                facts,
            )
        if program is None:
            return Check(True, "The program is expected in the workspace of a run.", "", facts)
        return Check(True, f"The program is {program}.", "", facts)

    async def run(self, context: RunContext) -> RunResult:
        config: ProcessConfig = context.config
        child = await context.start(
            [config.command, *config.args],
            env={**context.environment(), **config.env},
            cwd=None if config.cwd is None else Path(config.cwd),
            stdin=json.dumps(context.task()).encode() + b"\n",
            full_access=config.sandbox == "full",
        )
        last = ""
        async for line in child.lines():
            last = line if line.strip() else last
        code = await child.wait()
        result = program_answer.result_of(
            program_answer.parse(last), failure=_failure(code, context.complaint)
        )
        if code != 0 and not last and _was_not_started(config.command, context.complaint):
            sentence = f"The program {config.command!r} is not there, or cannot be executed."
            return replace(result, reason="program", error=sentence, fault=Fault.SETUP)
        return result


def _was_not_started(command: str, complaint: str) -> bool:
    """Return whether the sandbox reported that it could not start the program."""
    return any(
        f"{command}: {why}" in complaint
        for why in ("No such file or directory", "Permission denied", "Exec format error")
    )


def _failure(code: int, complaint: str) -> str | None:
    if code == 0:
        return None
    if code < 0:
        return f"the program was ended by signal {-code}"
    last = complaint.splitlines()[-1] if complaint else ""
    return f"the program ended with {code}{': ' if last else ''}{last}"
