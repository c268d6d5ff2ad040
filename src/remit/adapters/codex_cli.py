"""Codex' command line: how a run is put to it, and how its events are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from remit.adapters.running import RunContext, RunResult, Usage
from remit.errors import Unsupported

_KEY = "OPENAI_API_KEY"


def command_line(context: RunContext, program: str) -> list[str]:
    config = context.config
    settings: dict[str, Any] = {
        "analytics.enabled": False,
        "check_for_update_on_startup": False,
        "mcp_servers.remit.url": f"{context.url}/mcp",
        "mcp_servers.remit.bearer_token_env_var": "REMIT_TOKEN",
        "mcp_servers.remit.required": True,
        "mcp_servers.remit.default_tools_approval_mode": "approve",
        "developer_instructions": context.instructions,
        "web_search": "live" if config.web_search else "disabled",
    }
    provider = config.provider or ("custom" if config.base_url else None)
    if provider:
        settings["model_provider"] = provider
    if provider and config.base_url:
        settings |= {
            f"model_providers.{provider}.name": provider,
            f"model_providers.{provider}.base_url": config.base_url,
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
    if context.session:
        command += ["resume", context.session]
    command += ["--json", "--skip-git-repo-check", "--disable", "plugins"]
    if context.session is None:
        # Our own sandbox is around it; a second one inside needs what the first one takes away.
        inner = "danger-full-access" if config.sandbox == "workspace" else config.codex_sandbox
        command += ["-s", inner]
    if config.model:
        command += ["-m", config.model]
    for feature in config.disabled_features:
        command += ["--disable", feature]
    for name, value in settings.items():
        command += ["-c", f"{name}={json.dumps(value)}"]
    return [*command, "-"]


def environment(context: RunContext) -> dict[str, str]:
    return {
        **context.environment(),
        "CODEX_HOME": str(context.home / ".codex"),
        **context.credentials,
        **context.config.env,
    }


class Events:
    """Reads the stream of events; a turn that completed is the result."""

    def __init__(self) -> None:
        self.session: str | None = None
        self.text = ""
        self.usage: Mapping[str, Any] = {}
        self.error: str | None = None
        self.done = False

    def read(self, line: str) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            return
        if not isinstance(event, dict):
            return
        match event.get("type"):
            case "thread.started":
                self.session = event.get("thread_id")
            case "item.completed":
                item = event.get("item") or {}
                if item.get("type") == "agent_message":
                    self.text = str(item.get("text") or "")
            case "turn.completed":
                self.done, self.usage = True, event.get("usage") or {}
            case "turn.failed":
                self.error = str((event.get("error") or {}).get("message") or "the turn failed")
            case "error":
                self.error = self.error or str(event.get("message") or "an error")
            case _:
                pass

    def outcome(self, code: int) -> RunResult:
        total = int(self.usage.get("input_tokens") or 0)
        spent = Usage(
            tokens_in=total,
            tokens_out=int(self.usage.get("output_tokens") or 0),
            tokens_cached=int(self.usage.get("cached_input_tokens") or 0),
        )
        if self.done and code == 0:
            return RunResult(True, self.text, "completed", None, spent, self.session, total)
        reason = "crashed" if self.error is None else _reason(self.error)
        error = (self.error or f"Codex ended with {code} before it answered")[:500]
        return RunResult(False, self.text, reason, error, spent, self.session, total)


def _reason(error: str) -> str:
    for sign, reason in (("401", "auth"), ("403", "auth"), ("429", "rate_limited")):
        if sign in error:
            return reason
    return "api_error"


async def run(context: RunContext, program: str | None) -> RunResult:
    if program is None:
        raise Unsupported("The program codex is not installed here.", "Install Codex on it.")
    (context.home / ".codex").mkdir(mode=0o700, exist_ok=True)
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
