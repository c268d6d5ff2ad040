"""One run, from the claim to the last word."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from remit.adapters import registry
from remit.adapters.running import Child, RunContext, RunResult
from remit.app import App
from remit.errors import Refused, RemitError
from remit.runtime import sandbox
from remit.runtime.journal import Journal
from remit.runtime.processes import ChildProcess
from remit.runtime.prompt import instructions
from remit.runtime.sessions import resumable
from remit.services import inbox, runs
from remit.services.identity import Caller, as_system

log = logging.getLogger(__name__)

DEFAULT_TIMEOUT = 3600
_NOTHING_IN_MAIL = "There is no new mail. Look at your outcomes and go on with your work.\n"


@dataclass(frozen=True)
class Claimed:
    """What a worker holds while a run lasts."""

    run_id: str
    agent_id: str
    company_id: str
    token: str
    epoch: int
    seen: int
    workspace: Path


@dataclass
class Context(RunContext):
    config: Any
    agent: Mapping[str, Any]
    run_id: str
    url: str
    token: str
    workspace: Path
    home: Path
    instructions: str
    turn: str
    session: str | None
    credentials: Mapping[str, str]
    journal: Journal
    may_have_full_access: bool
    #: What is Remit's own; no run sees it.
    hidden: Sequence[Path] = ()
    children: list[ChildProcess] = field(default_factory=list)

    async def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        stdin: bytes = b"",
        full_access: bool = False,
    ) -> Child:
        folder = self.workspace if cwd is None else self.workspace / cwd
        if full_access:
            if not self.may_have_full_access:
                raise Refused(
                    "This agent has no full access to the machine.",
                    "Set sandbox to workspace, or let the board grant full_access.",
                    code="no_full_access",
                )
            command = sandbox.tie_to_parent(sandbox.limits(argv))
        else:
            command = sandbox.wrap(
                argv,
                env=env,
                workspace=self.workspace,
                home=self.home,
                cwd=folder,
                hidden=self.hidden,
            )
        child = await ChildProcess.begin(
            command, env=env, cwd=folder, stdin=stdin, log=self.journal.add
        )
        self.children.append(child)
        return child

    def log(self, text: str, stream: str = "remit") -> None:
        self.journal.add(text.rstrip("\n") + "\n", stream)


async def execute(app: App, url: str, claimed: Claimed) -> RunResult:
    """Carry a run out and say how it ended; whatever happens, nothing of it stays alive."""
    briefing = await app.gate(as_system(), runs.briefing, run=claimed.run_id)
    agent = briefing["agent"]
    adapter = registry.get(agent["adapter_type"])
    config = registry.read(agent["adapter_type"], agent["adapter_config"])
    caller = Caller(claimed.token)
    turn = await app.gate(caller, inbox.turn)
    await app.gate(as_system(), runs.took_up, run=claimed.run_id, messages=turn["ids"])
    memory = await _memory(app, caller, agent)
    go_on = resumable(
        briefing["session"],
        getattr(config, "session_policy", None),
        agent["adapter_type"],
        briefing["now"],
    )
    home = app.settings.home / "agents" / claimed.agent_id
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    (claimed.workspace / ".tmp").mkdir(mode=0o700, exist_ok=True)
    lent = {name: os.environ[name] for name in adapter.lends if os.environ.get(name)}
    hidden = (claimed.token, *lent.values())
    journal = Journal(app.gate, app.clock, claimed.run_id, hidden)
    context = Context(
        config=config,
        agent=agent,
        run_id=claimed.run_id,
        url=url,
        token=claimed.token,
        workspace=claimed.workspace,
        home=home,
        instructions=instructions(
            agent=agent, boss=briefing["boss"], company=briefing["company"], tools=[], memory=memory
        ),
        turn=turn["text"] if turn["ids"] else turn["text"] + "\n" + _NOTHING_IN_MAIL,
        session=briefing["session"]["session_id"] if go_on else None,
        credentials=lent,
        journal=journal,
        may_have_full_access=briefing["full_access"],
        hidden=[app.settings.home],
    )
    timeout = getattr(config, "timeout_seconds", DEFAULT_TIMEOUT)
    try:
        async with asyncio.timeout(timeout):
            result = await adapter.run(context)
    except TimeoutError:
        result = RunResult(False, reason="timeout", error=f"it took longer than {timeout} seconds")
    except RemitError as error:
        result = RunResult(False, reason=error.reason, error=error.sentence)
    except Exception as error:
        log.exception("the adapter %s failed in run %s", agent["adapter_type"], claimed.run_id)
        result = RunResult(False, reason="adapter", error=f"its adapter failed ({error!r})"[:500])
    finally:
        for child in context.children:
            await child.end()
        with contextlib.suppress(RemitError):
            await journal.close()
    await _keep_session(app, agent, briefing, context, result)
    return result


async def _memory(app: App, caller: Caller, agent: Mapping[str, Any]) -> str:
    """The agent's state document, as it left it."""
    try:
        _, content = await app.library.read(caller, file=agent["state_file_id"])
    except RemitError:
        return ""
    return content.decode(errors="replace").strip()


async def _keep_session(
    app: App,
    agent: Mapping[str, Any],
    briefing: Mapping[str, Any],
    context: Context,
    result: RunResult,
) -> None:
    if getattr(context.config, "session_policy", None) is None:
        return
    begun = briefing["session"]["begun_at"] if context.session else briefing["now"]
    with contextlib.suppress(RemitError):
        await app.gate(
            as_system(),
            runs.keep_session,
            agent=agent["id"],
            adapter_type=agent["adapter_type"],
            session_id=result.session if result.ok else context.session,
            begun_at=begun,
            context_tokens=result.context_tokens or 0,
        )


def report(result: RunResult) -> dict[str, Any]:
    """What is kept of a result."""
    return {
        "session_id": result.session,
        "final_response": result.text[:100_000] or None,
        "context_length": result.context_tokens,
        "tokens_in": result.usage.tokens_in,
        "tokens_out": result.usage.tokens_out,
        "tokens_cached": result.usage.tokens_cached,
        "cost_micros": result.usage.cost_micros,
        "exit_reason": result.reason,
        "error": result.error,
    }
