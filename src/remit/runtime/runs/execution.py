"""Execution of one run, from its claim to its result."""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, TypeVar

from remit import threads
from remit.adapters import registry
from remit.adapters.contract import Adapter
from remit.adapters.pace import Pace
from remit.adapters.running import RunResult
from remit.adapters.setup import detect
from remit.clock import Clock
from remit.errors import RemitError
from remit.ids import Ids
from remit.model.connections.mcp_server import McpServer
from remit.model.connections.secret import filled, named_in
from remit.model.execution.calls import with_calls
from remit.model.execution.fault import Fault
from remit.model.execution.limit import RUNAWAY
from remit.runtime.deadlines import leave_behind, uninterrupted
from remit.runtime.repos.cache import Repos
from remit.runtime.runs import changed_files, checks, conditions, homes, prompt, skill_folders
from remit.runtime.runs.context import Context
from remit.runtime.runs.conversations import Kept
from remit.runtime.runs.journal import Journal
from remit.runtime.runs.lifecycle import RetainedWorkspaces
from remit.runtime.runs.liveness import Signs, Streaks
from remit.runtime.runs.prompt import remembered
from remit.runtime.runs.workspace import create_workspace
from remit.runtime.sandbox.places import Place, Places
from remit.runtime.secrets.values import Vault
from remit.services.command import Gate
from remit.services.execution import run_queue, run_start
from remit.services.execution.run_endings import CONTEXT_FULL
from remit.services.identity import as_system
from remit.services.knowledge.file_contents import Library
from remit.services.redaction import Known
from remit.services.redaction import error_without_secrets as told
from remit.settings import Settings

T = TypeVar("T")
log = logging.getLogger(__name__)

DEFAULT_TIMEOUT = 3600
#: How long a cancelled adapter may take to end.
LET_GO_SECONDS = 3.0


class Instance(Protocol):
    """The parts of the instance that a worker needs."""

    settings: Settings
    clock: Clock
    ids: Ids
    gate: Gate
    library: Library
    vault: Vault
    repos: Repos
    kept: RetainedWorkspaces
    streaks: Streaks
    signs: Signs
    places: Places


@dataclass(frozen=True)
class Claimed:
    """A run that a worker has claimed by a lease."""

    run_id: str
    agent_id: str
    company_id: str
    adapter_type: str
    token: str
    epoch: int
    seen: int
    workspace: Path
    #: Whether the run probes a closed account.
    probe: bool = False


class _Faulty(Exception):
    """Raised when a run cannot begin; carries its result with the fault."""

    def __init__(self, result: RunResult) -> None:
        super().__init__(result.error)
        self.result = result


async def execute(app: Instance, url: str, claimed: Claimed) -> RunResult:
    """Execute a run; returns its result, also for a failure."""
    return await ended(_execute(app, url, claimed), f"run {claimed.run_id}")


async def ended(work: Awaitable[RunResult], title: str) -> RunResult:
    """Await the result of a run or a job; failures become results, only cancellation is raised."""
    try:
        return await work
    except _Faulty as faulty:
        return faulty.result
    except RemitError as error:
        return RunResult(False, reason=error.reason, error=error.sentence)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        return RunResult(False, reason="storage", error=f"its folders cannot be used ({reason})")
    except Exception as error:
        log.exception("%s could not be carried out", title)
        return RunResult(False, reason="internal", error=f"Remit failed ({told(error)})")


async def _execute(app: Instance, url: str, claimed: Claimed) -> RunResult:
    create_workspace(claimed.workspace.parent, claimed.workspace.name)
    briefing = await app.gate(
        as_system(), run_start.briefing, run=claimed.run_id, token=claimed.token
    )
    adapter = registry.get(briefing.agent["adapter_type"])
    kept = _kept(app, claimed, briefing, adapter)
    why = None
    if kept is not None and briefing.session is not None:
        why = await threads.FILES.run(kept.problem)
    if why is not None:
        await app.gate(
            as_system(),
            run_queue.keep_session,
            run=claimed.run_id,
            adapter_type=claimed.adapter_type,
            session_id=None,
            begun_at=briefing.now,
            context_tokens=0,
            altered=why,
        )
        briefing = await app.gate(
            as_system(), run_start.briefing, run=claimed.run_id, token=claimed.token
        )
    context = await _prepare(app, url, claimed, briefing, adapter)
    if why is not None:
        context.log(f"The conversation is not resumed: {why}. A new one is begun.")
    if kept is not None:
        await kept.watch(resumed=briefing.session is not None)
        context.kept = kept
    before = await threads.FILES.run(changed_files.look, _worked_in(context))
    app.places.open(claimed.token, context.place)
    try:
        result = context.advised(context.judged(await call(adapter, context)))
        result = replace(result, acted=result.acted or context.pace.acted)
        if result.reason in RUNAWAY:
            result = replace(result, error=with_calls(result.error, context.pace.calls))
    finally:
        app.places.close(claimed.token)
        await uninterrupted(context.close())
    if not result.ok:
        digest = await threads.FILES.run(changed_files.digest_since, before)
        result = replace(result, changed_files=digest)
    await _keep_session(app, briefing, context, result)
    return context.without_secrets(result)


def _worked_in(context: Context) -> list[Path]:
    """Return the folders in which a run leaves its work, without its home."""
    lasting = context.conditions.work
    return [*([] if lasting is None else [lasting]), context.workspace, context.starts_in]


def _kept(
    app: Instance, claimed: Claimed, briefing: run_start.Briefing, adapter: Adapter
) -> Kept | None:
    """The conversations of the agent, if its program keeps any and not for the whole machine."""
    config = registry.read(briefing.agent["adapter_type"], briefing.agent["adapter_config"])
    lasting = getattr(config, "session_policy", None) is not None
    if adapter.conversation is None or not lasting or getattr(config, "sandbox", "") == "full":
        return None
    home = homes.set_up(app.settings.home, claimed.agent_id)
    return Kept(app.settings.home, claimed.agent_id, home, adapter.conversation)


async def _prepare(
    app: Instance, url: str, claimed: Claimed, briefing: run_start.Briefing, adapter: Adapter
) -> Context:
    agent = briefing.agent
    config = registry.read(agent["adapter_type"], agent["adapter_config"])
    taken, session = briefing.turn, briefing.session
    home = homes.set_up(app.settings.home, claimed.agent_id)
    await threads.FILES.run(homes.forget_start_files, home)
    (claimed.workspace / ".tmp").mkdir(mode=0o700, exist_ok=True)
    run_conditions = await conditions.prepare(app.settings.home, app.repos, briefing.folders)
    lent = adapter.lending(config, os.environ)
    secret = await _own_secret(app, claimed, config)
    injected, values = await _injected(app, claimed, briefing.injected)
    known = Known((claimed.token, *lent.hidden, *values, *([secret] if secret else ())))
    return Context(
        config=config,
        agent=agent,
        run_id=claimed.run_id,
        url=(app.settings.url or url).rstrip("/") if adapter.remote else url,
        token=claimed.token,
        workspace=claimed.workspace,
        home=home,
        skills=await _skills(app, adapter, briefing),
        instructions=prompt.instructions(
            agent=agent,
            boss=briefing.boss,
            company=briefing.company,
            mandate=briefing.mandate,
            can=briefing.offers,
        ),
        turn=prompt.turn(
            taken.text,
            situation=briefing.situation + await threads.FILES.run(run_conditions.told),
            mail=bool(taken.ids),
            memory=await remembered(app.library, briefing.memory),
            folder=await threads.FILES.run(run_conditions.instructions),
        ),
        session=session.session_id if session else None,
        credentials=lent.keys,
        beside=lent.beside,
        journal=Journal(app.gate, app.clock, claimed.run_id, known, adapter.reader()),
        gate=app.gate,
        may_have_full_access=briefing.full_access,
        price=briefing.price,
        money_left=briefing.left.get("money"),
        most_turns=briefing.limits["turns_per_run"],
        pace=Pace(
            turns=briefing.limits["turns_per_run"],
            repeats=briefing.limits["identical_calls"],
            failures=briefing.limits["failed_calls"],
            # Only the adapter sees calls of other tools than Remit's; they interrupt the streak.
            elsewhere=lambda: app.streaks.interrupt(claimed.run_id),
            calls=app.streaks.calls(claimed.run_id),
        ),
        known=known,
        secret=secret,
        injected=injected,
        hidden=[app.settings.home],
        conditions=run_conditions,
        probes=claimed.probe,
        signs=app.signs,
        place=Place(claimed.run_id, anywhere=adapter.remote),
    )


async def _skills(app: Instance, adapter: Adapter, briefing: run_start.Briefing) -> list[Path]:
    """Return the folders with Remit's skills and with what the agent is lent."""
    if not adapter.reads_skills:
        return []
    home, agent = app.settings.home, briefing.agent["id"]
    own = await threads.FILES.run(skill_folders.of_remit, home)
    return [own, *await threads.FILES.run(skill_folders.lent_to, home, agent, briefing.lent)]


async def _own_secret(app: Instance, claimed: Claimed, config: Any) -> str | None:
    """Return the secret that the agent's configuration names; its use was authorised when it was
    set."""
    name = getattr(config, "secret_ref", None)
    if name is None:
        return None
    try:
        return await app.vault.value(claimed.company_id, name)
    except RemitError as error:
        raise _Faulty(
            RunResult(False, reason=error.reason, error=error.sentence, fault=Fault.AUTH)
        ) from error


async def _injected(
    app: Instance, claimed: Claimed, servers: Iterable[McpServer]
) -> tuple[dict[str, str], list[str]]:
    """Return the variables to inject into the agent's programs, and the secrets in them."""
    variables: dict[str, str] = {}
    secrets: dict[str, str] = {}
    for server in servers:
        values = await app.vault.values(claimed.company_id, named_in(server.templates.values()))
        secrets |= values
        variables |= server.settings
        variables |= {name: filled(text, values) for name, text in server.templates.items()}
    return variables, list(secrets.values())


async def call(adapter: Adapter, context: Context) -> RunResult:
    """Have an adapter execute a run, within the time limit of its configuration."""
    context.signs.begin(context.run_id)
    with detect.held(checks.without(context.hidden)):  # for what it asks its program beforehand
        # A task of its own, so that an adapter which ignores cancellation blocks nothing.
        working = asyncio.create_task(adapter.run(context))
    try:
        given_up = await _watch(working, context)
        if given_up is None and not working.cancelled():
            return working.result()
        reason, sentence = given_up or ("adapter", _defect(adapter, "it gave up by itself"))
    except RemitError as error:
        reason, sentence = error.reason, error.sentence
    except Exception as error:
        log.exception("the adapter %s failed in run %s", adapter.type, context.run_id)
        reason, sentence = "adapter", _defect(adapter, told(error))
    finally:
        context.signs.forget(context.run_id)
        await uninterrupted(_let_go(working, adapter, context.run_id))
    return RunResult(False, reason=reason, error=sentence, usage=context.spent)


def _defect(adapter: Adapter, cause: str) -> str:
    """Say that an adapter failed, which is not the doing of its agent."""
    return (
        f"the adapter {adapter.type} failed inside Remit ({cause}): the agent did nothing wrong; "
        "`remit doctor` checks the installation"
    )


async def _watch(working: asyncio.Task[RunResult], context: Context) -> tuple[str, str] | None:
    """Wait for the end of a run; return why it is given up, if it takes or is silent too long."""
    seconds = getattr(context.config, "timeout_seconds", DEFAULT_TIMEOUT)
    quiet = getattr(context.config, "silence_seconds", None)
    end = time.monotonic() + seconds
    while not working.done():
        left = end - time.monotonic()
        if left <= 0:
            return "timeout", f"it took longer than {seconds} seconds"
        if quiet is not None:
            patience = quiet - context.signs.silence(context.run_id)
            if patience <= 0:
                return "silent", f"it showed no activity for {quiet} seconds"
            left = min(left, patience)
        await asyncio.wait([working], timeout=left)
    return None


async def _let_go(working: asyncio.Task[RunResult], adapter: Adapter, run: str) -> None:
    if working.done():
        return
    working.cancel()
    await asyncio.wait([working], timeout=LET_GO_SECONDS)
    if not working.done():
        log.error("the adapter %s does not let go of run %s; it is left behind", adapter.type, run)
        leave_behind(working)
    elif not working.cancelled() and (error := working.exception()) is not None:
        log.info("run %s was cancelled while its adapter failed: %r", run, error)


async def _keep_session(
    app: Instance, briefing: run_start.Briefing, context: Context, result: RunResult
) -> None:
    if getattr(context.config, "session_policy", None) is None:
        return
    before = briefing.session
    kept = result.session if result.ok else context.session
    if result.reason == CONTEXT_FULL:
        kept = None  # the next run begins a new conversation, from the agent's own notes
    try:
        await app.gate(
            as_system(),
            run_queue.keep_session,
            run=context.run_id,
            adapter_type=context.agent["adapter_type"],
            session_id=kept,
            begun_at=before.begun_at if before else briefing.now,
            context_tokens=result.context_tokens or (before.context_tokens if before else 0),
            altered=context.altered,
        )
    except RemitError as error:
        log.warning("the session of run %s is not kept: %s", context.run_id, error)


def report(result: RunResult) -> dict[str, Any]:
    """Return the fields of a result that are stored."""
    return {
        "session_id": result.session,
        "final_response": result.text or None,
        "context_length": result.context_tokens,
        "tokens_in": result.usage.tokens_in,
        "tokens_out": result.usage.tokens_out,
        "tokens_cached": result.usage.tokens_cached,
        "cost_micros": result.usage.cost_micros,
        "cost_estimated": result.usage.cost_estimated,
        "exit_reason": result.reason,
        "error": result.error,
        "fault": result.fault or RUNAWAY.get(result.reason),
        "fault_until": result.until,
        "acted": result.acted,
        "changed_files": result.changed_files,
    }
