"""Codex' command line: arguments and environment of a run, and the parser of its events."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from remit import threads
from remit.adapters import faults
from remit.adapters.codex import codex_wall
from remit.adapters.codex.codex_wall import toml
from remit.adapters.running import Child, RunContext, RunResult, Usage, start_program
from remit.adapters.setup import skills
from remit.adapters.setup.detect import path_with
from remit.model.execution.cost import Price

_KEY = "OPENAI_API_KEY"
#: Note for models to which Codex does not list a server's tools, only its name.
_HOW_TO_CALL = (
    "The tools of remit may not be listed to you. In `exec` call them like `text(await "
    "tools.mcp__remit__mail_inbox({}))`, and `ALL_TOOLS` describes them; where there is "
    "`tool_search`, search for remit."
)
#: Settings that disable Codex' own agents for its newest models; `--disable` does not cover them.
_AGENTS = "multi_agent_v2"
_NO_AGENTS = {
    f"features.{_AGENTS}.disable_native_tools": True,
    f"features.{_AGENTS}.root_agent_usage_hint_text": "",
    f"features.{_AGENTS}.multi_agent_mode_hint_text": "",
}
#: Providers that Codex brings along; it does not start where a setting changes one of them.
BUILT_IN = frozenset({"openai", "ollama", "lmstudio", "amazon-bedrock"})
#: Variable of the worker with the address; Codex gets the address as a setting.
ADDRESS = "OPENAI_BASE_URL"
#: The oldest version that does what a run relies on: versions before it ignore the setting that
#: disables agents of their own.
OLDEST = "0.163.0"
#: Options without which `codex exec` cannot be used.
OPTIONS = (
    *("--json", "--skip-git-repo-check", "--disable", "--config", "--model"),
    *("--ignore-user-config", "--ignore-rules"),
)
_OWN_KEY = "CODEX_API_KEY"
_REFUSED_KEY = re.compile(r"status (401|402|403)\b")
_NO_SUCH_SESSION = re.compile(r"no rollout found|thread .{0,100} not found", re.IGNORECASE)
_NO_TOOLS = re.compile(r"required MCP servers? failed", re.IGNORECASE)
_RETRIED = re.compile(r"^Reconnecting\.\.\. \d+/\d+ \((.*)\)$", re.DOTALL)
_LONGEST_TAIL = 256 * 1024
_LONGEST_ANSWER = 4 << 20
_ID = re.compile(r"[0-9a-f-]{8,64}")
_LOOK_SECONDS = 0.1
_COMMAND = "a command"
#: States of a call that did not succeed.
_FAILED = ("failed", "declined")
_REMIT = "remit/"


@dataclass(frozen=True)
class Session:
    """A thread and its usage so far, to subtract: Codex counts by thread, Remit by run."""

    thread: str
    taken: Usage = field(default_factory=Usage)

    @classmethod
    def read(cls, text: str | None) -> Session | None:
        if text is None:
            return None
        thread, *numbers = text.split("/")
        known = [int(number) for number in numbers if number.isdigit()]
        return cls(thread, Usage(known[0], known[1], known[2]) if len(known) == 3 else Usage())

    def __str__(self) -> str:
        taken = self.taken
        return f"{self.thread}/{taken.tokens_in}/{taken.tokens_out}/{taken.tokens_cached}"


def command_line(context: RunContext, program: str, session: Session | None) -> list[str]:
    config = context.config
    # Remit's sandbox surrounds it; a nested one would need rights that the outer one removes.
    inner = "danger-full-access" if config.sandbox == "workspace" else config.codex_sandbox
    settings: dict[str, Any] = {
        "analytics.enabled": False,
        "check_for_update_on_startup": False,
        "approval_policy": "never",
        "sandbox_mode": inner,
        **({} if context.background else _remit(context)),
        "web_search": "live" if config.web_search else "disabled",
        # These instructions assume a person at the screen.
        "include_collaboration_mode_instructions": False,
        **(_NO_AGENTS if _AGENTS in config.disabled_features else {}),
        **codex_wall.settings(context.starts_in),
    }
    address = config.base_url or context.beside.get(ADDRESS)
    provider = config.provider or ("custom" if address else None)
    if provider in BUILT_IN and address:
        provider = f"{provider}-custom"
    if provider:
        settings["model_provider"] = provider
    if provider and address:
        settings |= {
            f"model_providers.{provider}.name": provider,
            f"model_providers.{provider}.base_url": address,
            f"model_providers.{provider}.wire_api": "responses",
            f"model_providers.{provider}.env_key": _KEY,
            f"model_providers.{provider}.request_max_retries": config.max_retries,
            f"model_providers.{provider}.stream_max_retries": config.max_retries,
        }
    if config.reasoning_effort:
        settings["model_reasoning_effort"] = config.reasoning_effort
    if config.network_access:
        settings["sandbox_workspace_write.network_access"] = True
    command = [program, "exec"]
    if session:
        command += ["resume", session.thread]
    command += ["--json", "--skip-git-repo-check", "--disable", "plugins", *codex_wall.OPTIONS]
    if context.background:
        # With full access the home is shared, so nothing of the job may be stored there.
        command += ["--ephemeral", "--output-last-message", str(_last_message(context))]
    if config.model:
        command += ["-m", config.model]
    for feature in config.disabled_features:
        command += ["--disable", feature]
    for name, value in settings.items():
        command += ["-c", f"{name}={toml(value)}"]
    return [*command, "-"]


def _remit(context: RunContext) -> dict[str, Any]:
    """Return the settings that connect a run to Remit; a background job gets none."""
    return {
        "mcp_servers.remit.url": f"{context.url}/mcp",
        "mcp_servers.remit.bearer_token_env_var": "REMIT_TOKEN",
        "mcp_servers.remit.required": True,
        # Generous, because Remit proxies other servers, which have to be started and may be slow.
        "mcp_servers.remit.startup_timeout_sec": 30,
        "mcp_servers.remit.tool_timeout_sec": 180,
        "mcp_servers.remit.default_tools_approval_mode": "approve",
        "developer_instructions": _instructions(context),
    }


def _instructions(context: RunContext) -> str:
    parts = [context.instructions, _HOW_TO_CALL, skills.listing(context.skills)]
    return "\n".join(filter(None, parts))


def _last_message(context: RunContext) -> Path:
    """Return the file in which Codex stores the answer of a background job."""
    return context.home / ".codex" / "last-message.md"


def environment(context: RunContext, program: str) -> dict[str, str]:
    told = context.environment()
    told |= {
        "PATH": path_with(program, told["PATH"]),
        "CODEX_HOME": str(context.home / ".codex"),
        **codex_wall.NO_REPOSITORY,
        **{name: value for name, value in context.beside.items() if name != ADDRESS},
        **context.credentials,
        **context.config.env,
    }
    if key := context.key():
        told[_KEY] = key
    if told.get(_KEY):
        told.setdefault(_OWN_KEY, told[_KEY])  # the only variable it accepts for OpenAI itself
    return told


class Events:
    """Parser of the event stream; a completed turn is the result."""

    def __init__(self, session: Session | None = None, price: Price | None = None) -> None:
        self._price = price
        self.thread: str | None = session.thread if session else None
        self.before = session.taken if session else Usage()
        self.text = ""
        self.usage: Mapping[str, Any] | None = None
        #: The usage of the thread so far, from Codex' own record.
        self.counted: Usage | None = None
        self.error: str | None = None
        self.hopeless = False
        #: Calls not yet counted: the tool and its arguments.
        self.calls: list[tuple[str, Any]] = []
        #: Ends of calls not yet counted: the tool, and whether it failed.
        self.ends: list[tuple[str, bool]] = []
        self._called: set[str] = set()

    def read(self, line: str) -> None:
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict):
            return
        match event.get("type"):
            case "thread.started":
                self.thread = event.get("thread_id")
            case "item.started":
                self._look_at_call(event.get("item") or {})
            case "item.completed":
                item = event.get("item") or {}
                self._look_at_call(item)
                self._look_at_end(item)
                if item.get("type") == "agent_message":
                    self.text = str(item.get("text") or "")
            case "turn.completed":
                self.usage, self.error = event.get("usage") or {}, None
            case "turn.failed":
                self.error = str((event.get("error") or {}).get("message") or "the turn failed")
            case "error":
                self.error = _RETRIED.sub(r"\1", str(event.get("message") or "an error"))
                self.hopeless = self.hopeless or bool(_REFUSED_KEY.search(self.error))
            case _:
                pass

    def _look_at_call(self, item: Mapping[str, Any]) -> None:
        """Note a call once, although both its beginning and its end are reported."""
        name, tool = str(item.get("id")), _tool(item)
        if tool is None or name in self._called:
            return
        arguments = item.get("command" if tool == _COMMAND else "arguments")
        self.calls.append((tool, arguments))
        self._called.add(name)

    def _look_at_end(self, item: Mapping[str, Any]) -> None:
        tool = _tool(item)
        if tool is not None:
            failed = item.get("status") in _FAILED or bool(item.get("exit_code"))
            self.ends.append((tool, failed))

    @property
    def taken(self) -> Usage:
        """The usage of the whole thread."""
        if self.usage is None:
            return self.counted or self.before
        return _usage(self.usage)

    @property
    def spent(self) -> Usage:
        """The usage of this run."""
        return Usage(
            tokens_in=max(0, self.taken.tokens_in - self.before.tokens_in),
            tokens_out=max(0, self.taken.tokens_out - self.before.tokens_out),
            tokens_cached=max(0, self.taken.tokens_cached - self.before.tokens_cached),
        ).priced_at(self._price)

    def outcome(self, code: int, complaint: str = "") -> RunResult:
        """Return the result of the run; `complaint` is the end of the error output."""
        session = str(Session(self.thread, self.taken)) if self.thread else None
        if self.usage is not None and self.error is None and code == 0:
            return RunResult(True, self.text, "completed", None, self.spent, session)
        error = self.error or complaint or f"Codex ended with {code} and no result."
        reason, seen = _reason(error)
        return RunResult(
            False,
            "",
            reason,
            error[:500],
            self.spent,
            session,
            fault=seen.fault if seen else None,
            until=seen.until if seen else None,
        )


def _tool(item: Mapping[str, Any]) -> str | None:
    """The tool that an item is a call of; None for other items."""
    match item.get("type"):
        case "mcp_tool_call":
            return f"{item.get('server')}/{item.get('tool')}"
        case "command_execution":
            return _COMMAND
        case _:
            return None


def _reason(error: str) -> tuple[str, faults.Seen | None]:
    """Return the reason of a failure in one word, and its fault."""
    if _NO_SUCH_SESSION.search(error):
        return "session_lost", None
    if _NO_TOOLS.search(error):
        return "no_tools", None
    if error.startswith("Codex ended with"):
        return "crashed", None
    seen = faults.in_words(error)
    return (seen.reason, seen) if seen else ("api_error", None)


async def attempt(
    context: RunContext, program: str, login: Path | None, session: Session | None
) -> RunResult:
    """Start the program once; returns its result. `login` is the worker's, for a run without a
    key."""
    events = Events(session, context.price)
    told = environment(context, program)
    argv = await threads.alone(command_line, context, program, session)
    if login is not None and context.config.sandbox == "full":
        # Beside the worker's login lie a person's own settings, instructions and keys.
        _link(login, Path(told["CODEX_HOME"]))
        login = None
    sealed = [Path(told["CODEX_HOME"], name) for name in codex_wall.INSTRUCTIONS]
    child = await start_program(context, argv, told, login, ("CODEX_HOME", ".codex"), sealed=sealed)
    home = Path(told["CODEX_HOME"])
    turns = _Turns(home, session)
    reading = asyncio.create_task(_read(child, events, context))
    watching = asyncio.create_task(_watch(context, events, home, turns))
    try:
        await asyncio.wait([reading, watching], return_when=asyncio.FIRST_COMPLETED)
        if watching.done():
            # Raises when the budget or the turns are used up, which ends the run and its program.
            watching.result()
        code = await reading
    finally:
        for task in (reading, watching):
            task.cancel()
        await asyncio.gather(reading, watching, return_exceptions=True)
        if events.usage is None and events.thread is not None:
            last = _progress(home, events.thread)  # includes a turn that was cut off
            events.counted = last.taken if last else events.counted
        context.spent = events.spent
        if session is not None:
            # Also after a failure, so that the next run does not count this run's usage again.
            context.session = str(Session(session.thread, events.taken))
    result = events.outcome(code, context.complaint)
    if context.background and result.ok:
        return replace(result, text=_tail(_last_message(context), _LONGEST_ANSWER) or result.text)
    if events.thread is None or not result.ok:
        return result
    progress = _progress(home, events.thread)
    return replace(result, context_tokens=progress.context) if progress else result


def _link(login: Path, home: Path) -> None:
    """Have Codex use the worker's login from a home of its own, also when it renews it."""
    place = home / login.name
    place.unlink(missing_ok=True)
    place.symlink_to(login)


async def _read(child: Child, events: Events, context: RunContext) -> int:
    async for line in child.lines():
        events.read(line)
        while events.calls:
            name, arguments = events.calls.pop(0)
            context.pace.call(name, arguments, ours=name.startswith(_REMIT))
        while events.ends:
            name, failed = events.ends.pop(0)
            if not name.startswith(_REMIT):
                context.pace.ended(name, failed=failed)
        if events.hopeless:
            await child.end()
            break
    return await child.wait()


async def _watch(context: RunContext, events: Events, home: Path, turns: _Turns) -> None:
    """Report the usage after each turn, from Codex' record; its events have it only at the end."""
    counted = None
    while True:
        await asyncio.sleep(_LOOK_SECONDS)
        if events.thread is None or events.usage is not None:
            continue
        progress = await threads.alone(_progress, home, events.thread)
        if progress is not None and progress.taken != counted:
            counted = events.counted = progress.taken
            turn_count = await threads.alone(turns.count, events.thread)
            await context.spend(events.spent, last=progress.over, turns=turn_count)
            context.pace.turn(turn_count)


class _Turns:
    """Counts the turns of this run in Codex' record, to which each run of a thread appends."""

    def __init__(self, home: Path, session: Session | None) -> None:
        self._home = home
        record = _record(home, session.thread) if session else None
        self._read = _size(record) if record else 0
        self._counted = 0

    def count(self, thread: str) -> int:
        record = _record(self._home, thread)
        if record is None:
            return self._counted
        new = _part(record, self._read, _LONGEST_TAIL)
        whole = new[: new.rfind(b"\n") + 1]
        if not whole and len(new) == _LONGEST_TAIL:
            whole = new  # a line too long to be a count
        self._read += len(whole)
        # A conversation begins with a count without numbers, which is no turn.
        self._counted += sum(
            b'"token_count"' in line and b'"total_token_usage"' in line
            for line in whole.splitlines()
        )
        return self._counted


@dataclass(frozen=True)
class _Progress:
    """The progress of a thread, from Codex' own record."""

    taken: Usage
    #: The length of the conversation in tokens.
    context: int
    #: Whether the model answered with words, and not with a call.
    over: bool


def _progress(home: Path, thread: str) -> _Progress | None:
    record = _record(home, thread)
    progress: _Progress | None = None
    over = False
    for line in _tail(record).splitlines() if record else ():
        counts = '"token_count"' in line
        if not counts and '"response_item"' not in line:
            continue
        # The agent can write this file, so bad lines are skipped.
        with contextlib.suppress(ValueError, KeyError, TypeError, AttributeError):
            payload = json.loads(line)["payload"]
            if not counts:
                over = payload.get("type") == "message" and payload.get("role") == "assistant"
                continue
            info = payload["info"]
            context = int(info["last_token_usage"]["input_tokens"])
            progress = _Progress(_usage(info["total_token_usage"]), context, over)
    return progress


def _record(home: Path, thread: str) -> Path | None:
    if not _ID.fullmatch(thread):
        return None
    records = sorted(home.glob(f"sessions/*/*/*/rollout-*-{thread}.jsonl"))
    return records[-1] if records else None


def _usage(counted: Mapping[str, Any]) -> Usage:
    return Usage(
        tokens_in=max(int(counted.get("input_tokens") or 0), 0),
        tokens_out=max(int(counted.get("output_tokens") or 0), 0),
        tokens_cached=max(int(counted.get("cached_input_tokens") or 0), 0),
    )


def _tail(record: Path, longest: int = _LONGEST_TAIL) -> str:
    return _part(record, -longest, longest).decode(errors="replace")


def _part(record: Path, start: int, longest: int) -> bytes:
    """Read a part of a file that the agent can write: links and special files count as empty. A
    negative start counts from the end."""
    try:
        opened = os.open(record, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    with os.fdopen(opened, "rb") as file:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            return b""
        file.seek(start if start >= 0 else max(0, status.st_size + start))
        return file.read(longest)


def _size(record: Path) -> int:
    try:
        return record.lstat().st_size
    except OSError:
        return 0
