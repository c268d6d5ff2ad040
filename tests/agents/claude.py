"""Claude Code without a person: one prompt, one stream of events, a private home."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.agents import program

Server = dict[str, Any]


def http_server(url: str, token: str) -> Server:
    """An MCP server over HTTP, as Claude's configuration names it."""
    return {"type": "http", "url": url, "headers": {"Authorization": f"Bearer {token}"}}


def stdio_server(command: Sequence[str], env: Mapping[str, str]) -> Server:
    return {"type": "stdio", "command": command[0], "args": list(command[1:]), "env": dict(env)}


@dataclass(frozen=True)
class Outcome:
    """How a run of Claude ended."""

    code: int
    events: list[dict[str, Any]]
    errors: str

    @property
    def result(self) -> dict[str, Any]:
        """The last word of a run. A run without one has crashed."""
        results = [event for event in self.events if event["type"] == "result"]
        assert results, f"claude ended with {self.code} and no result: {self.errors[-2000:]}"
        return results[-1]

    @property
    def server_status(self) -> dict[str, str]:
        """For each MCP server whether Claude could connect: a failure does not fail the run."""
        started = next(event for event in self.events if event.get("subtype") == "init")
        return {server["name"]: server["status"] for server in started["mcp_servers"]}


def environment(home: Path, model_url: str) -> dict[str, str]:
    """Everything the program gets to know; nothing is inherited."""
    (home / "tmp").mkdir(parents=True, exist_ok=True)
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": str(home),
        "CLAUDE_CONFIG_DIR": str(home / ".claude"),
        "TMPDIR": str(home / "tmp"),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "ANTHROPIC_API_KEY": "sk-fake",
        "ANTHROPIC_BASE_URL": model_url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_MAX_RETRIES": "2",
        "MAX_THINKING_TOKENS": "0",
    }


def run(
    prompt: str,
    *,
    model_url: str,
    home: Path,
    servers: Mapping[str, Server],
    timeout: float = 90,
    extra: Sequence[str] = (),
) -> Outcome:
    """Run to the end. Only the tools of `servers` exist, and all of them are allowed."""
    command = [
        *(str(program("claude")), "-p", prompt),
        *("--output-format", "stream-json", "--verbose", "--model", "claude-sonnet-4-5"),
        *("--mcp-config", json.dumps({"mcpServers": dict(servers)}), "--strict-mcp-config"),
        *("--tools", "", "--allowedTools", ",".join(f"mcp__{name}" for name in servers)),
        *("--permission-mode", "dontAsk", "--setting-sources", "", "--max-turns", "20"),
        *extra,
    ]
    work = home / "work"
    work.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        command,
        cwd=work,
        env=environment(home, model_url),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=timeout,
        check=False,
    )
    lines = done.stdout.decode().splitlines()
    events = [json.loads(line) for line in lines if line.startswith("{")]
    return Outcome(done.returncode, events, done.stderr.decode(errors="replace"))
