"""Claude Code's command line: how a run is put to it, and how its events are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from remit.adapters.running import RunContext, RunResult, Usage
from remit.errors import Unsupported

#: Said by Claude on its way, so that the log is not all that tells of a stuck run.
_FAILED_SERVER = "Claude could not reach Remit's tools ({})."
_REASONS = {
    "authentication_error": "auth",
    "permission_error": "auth",
    "rate_limit_error": "rate_limited",
    "overloaded_error": "overloaded",
}


def command_line(context: RunContext, program: str) -> list[str]:
    config = context.config
    server = {
        "type": "http",
        "url": f"{context.url}/mcp",
        "headers": {"Authorization": "Bearer ${REMIT_TOKEN}"},
        "alwaysLoad": True,
    }
    command = [
        *(program, "-p", "--output-format", "stream-json", "--verbose"),
        *("--mcp-config", json.dumps({"mcpServers": {"remit": server}}), "--strict-mcp-config"),
        *("--setting-sources", "", "--permission-mode", config.permission_mode),
        *("--allowedTools", ",".join(["mcp__remit", *config.allowed_tools])),
        *("--append-system-prompt", context.instructions),
        *("--system-prompt-snapshot", "off"),
    ]
    if config.tools is not None:
        command += ["--tools", ",".join(config.tools)]
    if config.disallowed_tools:
        command += ["--disallowedTools", ",".join(config.disallowed_tools)]
    if config.model:
        command += ["--model", config.model]
    if config.reasoning_effort and config.reasoning_effort != "none":
        command += ["--effort", config.reasoning_effort]
    if config.max_turns:
        command += ["--max-turns", str(config.max_turns)]
    if config.max_budget_usd:
        command += ["--max-budget-usd", str(config.max_budget_usd)]
    if context.session:
        command += ["--resume", context.session]
    return command


def environment(context: RunContext) -> dict[str, str]:
    config = context.config
    told = {
        **context.environment(),
        "CLAUDE_CONFIG_DIR": str(context.home / ".claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_MAX_RETRIES": str(config.max_retries),
        # Inside the sandbox it may be root; it is not on the machine.
        "IS_SANDBOX": "1",
        **context.credentials,
        **config.env,
    }
    if config.base_url:
        told["ANTHROPIC_BASE_URL"] = config.base_url
    if config.reasoning_effort == "none":
        told["MAX_THINKING_TOKENS"] = "0"
    return told


class Events:
    """Reads the stream of events; the last word is the result."""

    def __init__(self) -> None:
        self.session: str | None = None
        self.result: Mapping[str, Any] | None = None
        self.server: str | None = None
        self.retries = 0
        self.context_tokens = 0

    def read(self, line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            return  # something else that is printed; it is in the log
        if not isinstance(event, dict):
            return
        match event.get("type"), event.get("subtype"):
            case "system", "init":
                self.session = event.get("session_id")
                servers = event.get("mcp_servers") or []
                self.server = next(
                    (one.get("status") for one in servers if one.get("name") == "remit"), None
                )
            case "system", "api_retry":
                self.retries += 1
            case "assistant", _:
                usage = (event.get("message") or {}).get("usage") or {}
                self.context_tokens = max(self.context_tokens, _input(usage))
            case "result", _:
                self.result = event
            case _:
                pass

    def outcome(self, code: int) -> RunResult:
        if self.result is None:
            return RunResult(
                False,
                reason="crashed",
                error=f"Claude ended with {code} before it answered",
                session=self.session,
            )
        usage = self.result.get("usage") or {}
        spent = Usage(
            tokens_in=_input(usage),
            tokens_out=int(usage.get("output_tokens") or 0),
            tokens_cached=int(usage.get("cache_read_input_tokens") or 0),
            cost_micros=_cost(self.result),
        )
        text = str(self.result.get("result") or "")
        if self.result.get("is_error"):
            kind = str(self.result.get("api_error_type") or "")
            reason = _REASONS.get(kind) or str(
                self.result.get("terminal_reason") or self.result.get("subtype") or "failed"
            )
            error = text[:500] or f"Claude ended with {reason}"
            return RunResult(False, text, reason, error, spent, self.session, self.context_tokens)
        if self.server not in (None, "connected"):
            return RunResult(
                False, text, "no_tools", _FAILED_SERVER.format(self.server), spent, self.session
            )
        return RunResult(True, text, "completed", None, spent, self.session, self.context_tokens)


def _input(usage: Mapping[str, Any]) -> int:
    return sum(
        int(usage.get(name) or 0)
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    )


def _cost(result: Mapping[str, Any]) -> int:
    """Of this run: the total of a resumed session is that of all its runs."""
    since = result.get("model_usage_since_last_result")
    if isinstance(since, Mapping):
        costs = [
            float(one.get("costUSD") or 0) for one in since.values() if isinstance(one, Mapping)
        ]
        return round(sum(costs) * 1_000_000)
    return round(float(result.get("total_cost_usd") or 0) * 1_000_000)


async def run(context: RunContext, program: str | None) -> RunResult:
    if program is None:
        raise Unsupported(
            "The program claude is not installed here.", "Install Claude Code on this worker."
        )
    events = Events()
    child = await context.start(
        command_line(context, program),
        env=environment(context),
        stdin=context.turn.encode(),
        full_access=context.config.sandbox == "full",
    )
    async for line in child.lines():
        events.read(line)
    return events.outcome(await child.wait())
