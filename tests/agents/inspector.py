"""The MCP inspector without its window: a second, independent client of the protocol."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import playwright
import pytest

from tests.agents import ClientMissing, program

Era = Literal["legacy", "modern"]
_SAME = pytest.mark.campaign("each era and each way is tried in `make test`, in the other pairs")
#: How it reaches a server, and which protocol it speaks.
INSPECTED = [
    *(("http", "modern"), ("stdio", "legacy")),
    *(pytest.param(*pair, marks=_SAME) for pair in (("http", "legacy"), ("stdio", "modern"))),
]

#: The inspector asks for a newer Node.js than Debian has; the browser's driver brings one.
NODE = Path(playwright.__file__).parent / "driver" / "node"


@dataclass(frozen=True)
class Inspector:
    """Speaks to one server. Make it with `over_http` or `over_stdio`."""

    home: Path
    target: tuple[str, ...]
    options: tuple[str, ...] = ()
    timeout: float = 60

    @classmethod
    def over_http(cls, home: Path, url: str, token: str, era: Era = "legacy") -> Inspector:
        header = ("--header", f"Authorization: Bearer {token}")
        return cls(home, (url,), ("--transport", "http", "--protocol-era", era, *header))

    @classmethod
    def over_stdio(
        cls, home: Path, command: Sequence[str], env: Mapping[str, str], era: Era = "legacy"
    ) -> Inspector:
        options = [part for key, value in env.items() for part in ("-e", f"{key}={value}")]
        return cls(home, tuple(command), ("--transport", "stdio", "--protocol-era", era, *options))

    def tools(self) -> list[dict[str, Any]]:
        """The tools, each checked by the inspector for whether all clients can use its schema."""
        listed: list[dict[str, Any]] = self._run("--method", "tools/list", "--strict")["tools"]
        return listed

    def call(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        options = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
        return self._run("--method", "tools/call", *options)

    def _run(self, *request: str) -> dict[str, Any]:
        if not NODE.exists():
            raise ClientMissing(f"{NODE} is missing; run make setup, then try again.")
        self.home.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(
            [
                *(str(NODE), str(program("mcp-inspector")), "--cli", "--quiet"),
                *(*self.options, *request, "--", *self.target),
            ],
            env={"PATH": "/usr/bin:/bin", "HOME": str(self.home), "LANG": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=self.timeout,
            check=False,
        )
        try:
            answer: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            heard = (done.stdout + done.stderr).decode(errors="replace")
            raise AssertionError(f"the inspector ended with {done.returncode}: {heard}") from None
        return answer
