"""An instance with other MCP servers behind it, and agents that use them."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from remit.app import App
from remit.entrypoints.mcp import upstream
from remit.entrypoints.serve import running
from remit.runtime.runs.lifecycle import LiveRun, begin
from remit.services.connections import mcp_servers
from remit.services.execution import runs
from remit.services.identity import Caller, as_system
from remit.services.organisation import agents
from remit.services.rights import grants
from remit.settings import load
from remit.testing import ScriptedAgent

SERVER = Path(__file__).parent / "upstream_server.py"
SECRET = "correct-horse-battery-staple-4711"


#: By which a server can tell that it was given the right one.
SHA256 = hashlib.sha256(SECRET.encode()).hexdigest()


def command(mode: str = "good") -> list[str]:
    return [sys.executable, "-I", str(SERVER), mode]


@dataclass
class Site:
    app: App
    url: str
    board: Caller
    company: str
    ceo: str

    async def secret(self, name: str = "key", value: str = SECRET) -> None:
        await self.app.vault.put(self.board, company=self.company, name=name, value=value)

    async def server(self, name: str = "up", mode: str = "good", **more: Any) -> None:
        replace = more.pop("replace", False)
        definition = {"command": command(mode), **more} if "url" not in more else more
        await self.app.gate(
            self.board,
            mcp_servers.add,
            company=self.company,
            name=name,
            definition=definition,
            replace=replace,
        )

    async def grant(self, name: str = "up", agent: str | None = None, **more: Any) -> str:
        grant = await self.app.gate(
            self.board,
            grants.give,
            company=self.company,
            to=agent or self.ceo,
            resource=f"mcp_server:{name}",
            level="use",
            **more,
        )
        return str(grant["id"])

    async def begin(self, agent: str | None = None) -> LiveRun:
        app = self.app
        return await begin(app.gate, app.ids, app.settings.workspaces, agent or self.ceo)

    async def end(self, run: LiveRun) -> None:
        await self.app.gate(as_system(), runs.end, run=run.id, status="completed", report={})

    async def tools(self, token: str) -> dict[str, dict[str, Any]]:
        def ask() -> dict[str, dict[str, Any]]:
            with ScriptedAgent(self.url, token) as agent:
                tools = agent._request("tools/list", {})["tools"]
            return {tool["name"]: tool for tool in tools}

        return await asyncio.to_thread(ask)

    async def call(self, token: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """The whole result, or ToolRefused."""

        def ask() -> dict[str, Any]:
            with ScriptedAgent(self.url, token) as agent:
                result: dict[str, Any] = agent._request(
                    "tools/call", {"name": tool, "arguments": arguments}
                )
            return result

        return await asyncio.to_thread(ask)

    async def text(self, token: str, tool: str, **arguments: Any) -> str:
        result = await self.call(token, tool, **arguments)
        return str(result["content"][0]["text"])

    async def refusal(self, token: str, tool: str, **arguments: Any) -> str:
        result = await self.call(token, tool, **arguments)
        assert result.get("isError"), result
        return str(result["content"][0]["text"])


@contextlib.asynccontextmanager
async def site(home: Path, **patience: float) -> AsyncIterator[Site]:
    """Without a worker; runs are begun by hand."""
    settings = load({"REMIT_HOME": str(home)})
    before = upstream.Patience
    if patience:
        upstream.Patience = lambda: before(**patience)  # type: ignore[assignment,misc]
    try:
        async with running(settings) as (app, url, _):
            board = Caller(settings.board_token_file.read_text().strip())
            ceo = await app.gate(board, agents.show, agent="ceo")
            yield Site(app, url, board, ceo["company_id"], ceo["id"])
    finally:
        upstream.Patience = before  # type: ignore[misc]
