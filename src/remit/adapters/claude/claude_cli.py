"""Claude Code's command line: arguments and environment of a run, and the parser of its events."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from remit.adapters import faults
from remit.adapters.reading import parsed
from remit.adapters.running import RunContext, RunResult, Usage, start_program
from remit.adapters.setup.detect import path_with

_SERVER = "remit"
#: Prefix of Remit's own tools, whose calls are counted at its endpoint.
_OURS = f"mcp__{_SERVER}__"
_NO_TOOLS = "Claude could not reach Remit's tools ({})."
_NO_SUCH_SESSION = "No conversation found"
_NOT_LOGGED_IN = "Not logged in"
_REASONS = {
    "error_max_turns": "max_turns",
    "error_max_budget_usd": "budget",
    "prompt_too_long": "context_full",
}
#: Stop reasons after which the model is not asked again.
_FINAL = frozenset({"end_turn", "stop_sequence", "refusal"})
#: Prefix of streamed partial messages, which are counted but not logged.
_STREAMED = '{"type":"stream_event"'
#: Status codes of a refused or unpaid key, for which a retry is useless.
_HOPELESS = (401, 402, 403)
#: A run that has to wait longer than this ends; the hold on its account then waits instead.
_LONGEST_WAIT_MS = 60_000
#: Most characters of an answer whose end is missing.
_LONGEST_CUT = 50_000
_CUT_OFF = "The answer of the model was cut off in the middle."


#: The oldest version that does what a run relies on. Versions before 2.1.257 cannot replace the
#: prompt of a resumed conversation; versions before 2.1.299 quote files that a letter names with
#: an @; versions before 2.1.309 count the cost of a conversation's earlier runs again.
OLDEST = "2.1.309"
#: Options without which Claude Code cannot be used.
OPTIONS = (
    *("--output-format", "--verbose", "--include-partial-messages", "--mcp-config"),
    *("--strict-mcp-config", "--setting-sources", "--plugin-dir", "--permission-mode"),
    "--append-system-prompt",
    *("--system-prompt-snapshot", "--exclude-dynamic-system-prompt-sections", "--allowedTools"),
    "--resume",
)


def command_line(context: RunContext, program: str, session: str | None) -> list[str]:
    config = context.config
    command = [
        *(program, "-p", "--output-format", "stream-json", "--verbose"),
        # Otherwise the usage of a turn is known only at the end of the run.
        "--include-partial-messages",
        *("--mcp-config", json.dumps({"mcpServers": _servers(context)}), "--strict-mcp-config"),
        # No settings, hooks, instructions, skills, commands and agents of a person, of the folder
        # that it works in or of those above: that folder is data.
        *("--setting-sources", "", "--permission-mode", _mode(config)),
        *(part for folder in context.skills for part in ("--plugin-dir", str(folder))),
    ]
    if context.background:
        command.append("--no-session-persistence")  # with full access the home is a shared one
    else:
        command += [
            *("--append-system-prompt", context.instructions),
            # Otherwise a resumed conversation keeps the prompt of its first run.
            *("--system-prompt-snapshot", "off"),
            # Parts that differ from run to run come after the prompt, so that the provider's cache
            # hits.
            "--exclude-dynamic-system-prompt-sections",
        ]
    allowed = [*(f"mcp__{name}" for name in _servers(context)), *config.allowed_tools]
    effort = config.reasoning_effort
    options = {
        "--allowedTools": ",".join(allowed) or None,
        "--tools": None if config.tools is None else ",".join(config.tools),
        "--disallowedTools": ",".join(config.disallowed_tools) or None,
        "--model": config.model,
        "--effort": None if effort == "none" else effort,
        "--max-turns": context.fewest_turns(config.max_turns) or None,
        "--max-budget-usd": _limit(context),
        "--resume": session or None,
    }
    for option, value in options.items():
        command += [] if value is None else [option, str(value)]
    return command


def _mode(config: Any) -> str:
    """Return the permission mode; the default lets Claude act freely inside the sandbox."""
    mode: str | None = config.permission_mode
    return mode or ("dontAsk" if config.sandbox == "full" else "bypassPermissions")


def _limit(context: RunContext) -> str | None:
    """Return the cost limit of the run: its own, or the rest of the agent's budget, if less."""
    own, left = context.config.max_budget_usd, context.money_left
    if left is None or (own is not None and own <= left / 1_000_000):
        return None if own is None else str(own)
    return f"{left / 1_000_000:.6f}"


def _servers(context: RunContext) -> dict[str, Any]:
    """Return Remit as an MCP server for a run; nothing for a background job."""
    if context.background:
        return {}
    server = {
        "type": "http",
        "url": f"{context.url}/mcp",
        "headers": {"Authorization": "Bearer ${REMIT_TOKEN}"},
        "alwaysLoad": True,
    }
    return {_SERVER: server}


def environment(context: RunContext, program: str) -> dict[str, str]:
    config = context.config
    told = context.environment()
    told |= {
        "PATH": path_with(program, told["PATH"]),
        "CLAUDE_CONFIG_DIR": str(context.home / ".claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        # Nothing of its folder is read by Claude itself: no instructions, no files that a letter
        # names with an @, no commits and branches.
        "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",
        "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
        "CLAUDE_CODE_DISABLE_GIT_INSTRUCTIONS": "1",
        # An agent's memory is in the knowledge base, where its boss can read it.
        "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
        # They are for a person at a terminal, and their list is longer than Remit's prompt.
        "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
        # A line that differs from run to run at the very top spoils the cache of other providers.
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
        "CLAUDE_CODE_MAX_RETRIES": str(config.max_retries),
        # Inside the sandbox it may be root; it is not on the machine.
        "IS_SANDBOX": "1",
        **context.beside,
        **context.credentials,
        **config.env,
    }
    if key := context.key():
        told["ANTHROPIC_API_KEY"] = key
    if config.base_url:
        told["ANTHROPIC_BASE_URL"] = config.base_url
    if config.reasoning_effort == "none":
        told["MAX_THINKING_TOKENS"] = "0"
    return told


class Events:
    """Parser of the event stream; the last event is the result."""

    def __init__(self, *, with_tools: bool = True) -> None:
        self._with_tools = with_tools
        self.session: str | None = None
        self.result: Mapping[str, Any] | None = None
        #: Why no result can be expected: a reason and a sentence.
        self.hopeless: tuple[str, str] | None = None
        #: The answer to the last failed request to the model's server, and the wait after it.
        self._seen: faults.Seen | None = None
        self._delay_ms = 0.0
        #: Whether the model is in the middle of an answer.
        self._answering = False
        self.context_tokens = 0
        self._messages: dict[str, Mapping[str, Any]] = {}
        self._streams = False
        #: Whether the model will be asked again, according to its last turn.
        self.goes_on = True
        #: Number of turns of the model, without those of its subagents.
        self.turns = 0
        #: Calls not yet counted: the tool, its arguments, and the subagent's call or "".
        self.calls: list[tuple[str, Any, str]] = []
        #: Ends of calls not yet counted: the tool, and whether it failed.
        self.ends: list[tuple[str, bool]] = []
        #: The tools of calls that have not ended, by call.
        self._open_calls: dict[str, str] = {}

    def read(self, line: str) -> bool:
        """Read a line; return whether it ends a turn of the model."""
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            event = _cut_result(line)  # None for other output, which is in the log
        if not isinstance(event, dict):
            return False
        match event.get("type"), event.get("subtype"):
            case "system", "init":
                self.session = event.get("session_id")
                self._look_at_servers(event.get("mcp_servers") or [])
            case "system", "api_retry":
                self._retries(event)
            case "assistant", _:
                message = event.get("message") or {}
                usage = message.get("usage") or {}
                self._look_at_calls(event, message)
                self._count_turn(event, message)
                self.context_tokens = max(self.context_tokens, _input(usage))
                if message.get("stop_reason") and event.get("parent_tool_use_id") is None:
                    self._answering = False
                # One event for each part of a message, all with the usage at its beginning.
                self._messages.setdefault(str(message.get("id")), usage)
                return not self._streams and _calls(message)
            case "user", _:
                self._look_at_results(event.get("message") or {})
            case "stream_event", _:
                return self._hear(event)
            case "result", _:
                self.result = event
            case _:
                pass
        return False

    def _hear(self, event: Mapping[str, Any]) -> bool:
        self._streams = True
        part = event.get("event")
        if not isinstance(part, dict):
            return False
        if event.get("parent_tool_use_id") is None:
            self._answering = self._answering or part.get("type") == "message_start"
        if part.get("type") == "message_start":
            message = part.get("message") or {}
            self._count_turn(event, message)
            self._messages[str(message.get("id"))] = message.get("usage") or {}
        if part.get("type") != "message_delta":
            return False
        name = str(event.get("api_message_id") or next(reversed(self._messages), ""))
        known = {key: count for key, count in (part.get("usage") or {}).items() if count}
        self._messages[name] = {**self._messages.get(name, {}), **known}
        stopped = (part.get("delta") or {}).get("stop_reason")
        if stopped and event.get("parent_tool_use_id") is None:
            self._answering = False
        self.goes_on = stopped not in _FINAL or event.get("parent_tool_use_id") is not None
        return True

    def _count_turn(self, event: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        if str(message.get("id")) not in self._messages and not event.get("parent_tool_use_id"):
            self.turns += 1

    def _look_at_calls(self, event: Mapping[str, Any], message: Mapping[str, Any]) -> None:
        by = str(event.get("parent_tool_use_id") or "")
        for part in message.get("content") or ():
            if isinstance(part, dict) and part.get("type") == "tool_use":
                self.calls.append((str(part.get("name")), part.get("input"), by))
                self._open_calls[str(part.get("id"))] = str(part.get("name"))

    def _look_at_results(self, message: Mapping[str, Any]) -> None:
        parts = message.get("content")
        for part in parts if isinstance(parts, list) else ():
            if isinstance(part, dict) and part.get("type") == "tool_result":
                tool = self._open_calls.pop(str(part.get("tool_use_id")), None)
                if tool is not None:
                    self.ends.append((tool, part.get("is_error") is True))

    def _retries(self, event: Mapping[str, Any]) -> None:
        """Note a retry of Claude Code; give up if the key is refused or the wait is too long."""
        status, delay = event.get("error_status"), event.get("retry_delay_ms")
        error = str(event.get("error") or "")
        seen = faults.by_status(status, error) if isinstance(status, int) else None
        self._seen = seen or faults.in_words(error) or self._seen
        # Claude's own backoff tells nothing; only the server's delay dates the end of a limit.
        wants = status == 429 and isinstance(delay, int | float)
        self._delay_ms = float(delay) if wants and isinstance(delay, int | float) else 0.0
        if status in _HOPELESS:
            sentence = f"The model's server refuses the key ({status})."
            if status == 402:
                sentence = "The model's server requires payment (402)."
            self.hopeless = (seen.reason if seen else "auth", sentence)
        elif self._delay_ms > _LONGEST_WAIT_MS:
            seconds = self._delay_ms / 1000
            sentence = f"The model's server wants to be asked again in {seconds:.0f} s (429)."
            self.hopeless = ("rate_limited", sentence)

    def _look_at_servers(self, servers: list[Mapping[str, Any]]) -> None:
        if not self._with_tools:
            return
        status = next(
            (server.get("status") for server in servers if server.get("name") == _SERVER), None
        )
        if status != "connected":
            self.hopeless = ("no_tools", _NO_TOOLS.format(status or "not configured"))

    @property
    def spent(self) -> Usage:
        """The usage of this run; the totals of a resumed session include its earlier runs."""
        total = (self.result or {}).get("usage") or {}
        # A program that was cut off reports no total, so its messages are added up.
        usages = [total] if _input(total) else list(self._messages.values())
        return Usage(
            tokens_in=sum(map(_input, usages)),
            tokens_out=sum(_number(usage, "output_tokens") for usage in usages),
            tokens_cached=sum(_number(usage, "cache_read_input_tokens") for usage in usages),
            cost_micros=_cost(self.result or {}),
        )

    def outcome(self, code: int, complaint: str = "") -> RunResult:
        """Return the result of the run; `complaint` is the end of the error output."""
        if self.result is not None and not self.result.get("is_error") and not self.hopeless:
            if self._answering:
                # It retried after a lost connection, and then took the partial text as the answer.
                return self._ended(False, "", "cut_off", _CUT_OFF)
            text = str(self.result.get("result") or "")
            return self._ended(True, text, "completed", None)
        if self.hopeless:
            return self._ended(False, "", *self.hopeless, seen=self._dated(self._seen))
        if self.result is None:
            return self._without_result(code, complaint)
        errors = map(str, self.result.get("errors") or ())
        message = str(self.result.get("result") or "; ".join(errors))
        reason, seen = self._reason(self.result, message)
        return self._ended(
            False, "", reason, message[:500] or f"Claude ended with {reason}.", seen=seen
        )

    def _without_result(self, code: int, complaint: str) -> RunResult:
        last = complaint.splitlines()[-1].strip() if complaint else ""
        error = f"Claude ended with {code} and no result{': ' if last else '.'}{last}"
        seen = None if self._messages else faults.in_words(complaint)
        return self._ended(False, "", seen.reason if seen else "crashed", error[:500], seen=seen)

    def _reason(self, result: Mapping[str, Any], message: str) -> tuple[str, faults.Seen | None]:
        """Return the reason of a failure in one word, and its fault."""
        if _NO_SUCH_SESSION in message:
            return "session_lost", None
        for name in ("subtype", "terminal_reason"):
            if result.get(name) in _REASONS:
                return _REASONS[result[name]], None
        status = result.get("api_error_status")
        seen = faults.by_status(status, message) if isinstance(status, int) else None
        if seen is None and (status is not None or result.get("terminal_reason") == "api_error"):
            seen = faults.in_words(message)
        seen = seen or (faults.in_words(message) if message.startswith(_NOT_LOGGED_IN) else None)
        if seen is None:
            return str(result.get("terminal_reason") or "failed"), None
        return seen.reason, self._dated(seen)

    def _dated(self, seen: faults.Seen | None) -> faults.Seen | None:
        """Add the end of the limit to a fault, from the delay that the server named."""
        if seen is None or seen.until is not None or not self._delay_ms:
            return seen
        return faults.by_status(429, headers={"retry-after-ms": str(int(self._delay_ms))})

    def _ended(
        self, ok: bool, text: str, reason: str, error: str | None, seen: faults.Seen | None = None
    ) -> RunResult:
        return RunResult(
            ok,
            text,
            reason,
            error,
            self.spent,
            self.session,
            self.context_tokens or None,
            fault=seen.fault if seen else None,
            until=seen.until if seen else None,
        )


def _cut_result(line: str) -> dict[str, Any] | None:
    """Recover the result from a line that was cut because of its length."""
    event = parsed(line) or {}
    if "duration_api_ms" not in event or "result" not in event:
        return None
    text = str(event["result"])[:_LONGEST_CUT]
    return {"type": "result", "is_error": event.get("is_error") is True, "result": text}


def _calls(message: Mapping[str, Any]) -> bool:
    parts = message.get("content")
    return isinstance(parts, list) and any(
        isinstance(part, dict) and part.get("type") == "tool_use" for part in parts
    )


def _number(usage: Mapping[str, Any], name: str) -> int:
    return int(usage.get(name) or 0)


def _input(usage: Mapping[str, Any]) -> int:
    return sum(
        _number(usage, name)
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )


def _cost(result: Mapping[str, Any]) -> int:
    since = result.get("model_usage_since_last_result")
    if isinstance(since, Mapping):
        costs = [
            float(usage.get("costUSD") or 0)
            for usage in since.values()
            if isinstance(usage, Mapping)
        ]
        return round(sum(costs) * 1_000_000)
    return round(float(result.get("total_cost_usd") or 0) * 1_000_000)


async def attempt(
    context: RunContext, program: str, login: Path | None, session: str | None
) -> RunResult:
    """Start the program once; returns its result. `login` is the worker's, for a run without a
    key."""
    events = Events(with_tools=not context.background)
    told, argv = environment(context, program), command_line(context, program, session)
    place = ("CLAUDE_CONFIG_DIR", ".claude")
    child = await start_program(context, argv, told, login, place, unlogged=_STREAMED)
    try:
        async for line in child.lines():
            if events.read(line):
                await context.spend(events.spent, last=not events.goes_on)
            _keep_pace(context, events)
            if events.hopeless:
                await child.end()
                break
        return events.outcome(await child.wait(), context.complaint)
    finally:
        context.spent = events.spent  # including a turn that was cut off


def _keep_pace(context: RunContext, events: Events) -> None:
    while events.calls:
        name, arguments, by = events.calls.pop(0)
        context.pace.call(name, arguments, by=by, ours=name.startswith(_OURS))
    while events.ends:
        name, failed = events.ends.pop(0)
        if not name.startswith(_OURS):
            context.pace.ended(name, failed=failed)
    context.pace.turn(events.turns)
