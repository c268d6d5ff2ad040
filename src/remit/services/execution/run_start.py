"""Start of a run: the state of its agent, the mail that it takes up, and its memory."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from remit.adapters import registry
from remit.clock import DAY, HOUR, MINUTE, SECOND, Micros
from remit.errors import Conflict, RemitError
from remit.model.connections.commit_identity import CommitIdentity
from remit.model.connections.lent_plugin import LentPlugin
from remit.model.connections.mcp_server import McpServer
from remit.model.execution.cost import Price
from remit.model.execution.limit import stored
from remit.model.organisation.agent import Agent
from remit.model.organisation.principal import Principal
from remit.services import lookup, shapes, views
from remit.services.changes import changes
from remit.services.command import FOR_REMIT, Answer, Context, logged
from remit.services.connections import folders, lent_plugins, mcp_servers
from remit.services.execution import situation
from remit.services.execution.run_queue import has_full_access
from remit.services.execution.running import entered
from remit.services.identity import Caller, identify
from remit.services.knowledge import documents, files
from remit.services.messaging import inbox
from remit.services.screens import overview
from remit.services.spending import ledger, limits
from remit.services.verbs import Added
from remit.store.execution import leases
from remit.store.execution import runs as statements
from remit.store.organisation import people

#: A session in which so many runs failed in a row is not resumed: it may be the cause.
MOST_FAILURES_OF_SESSION = 2
#: How many days of notes a new session begins with; none unless `runtimeConfig` says so.
DAILY_NOTES = "dailyNotes"
_BEGUN_ANEW = (
    "conversation: this is a new one, because the kept one was not only written by your program\n"
)
_UNITS = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}


class Memory(NamedTuple):
    """A document of the agent's memory, in the version that it may read."""

    title: str
    is_note: bool
    version: Answer


@dataclass(frozen=True, kw_only=True)
class Briefing:
    """Everything that a run starts with."""

    #: The remainder of each kind of budget.
    left: Mapping[str, int]
    limits: Mapping[str, int | None]
    #: Of its model; None where it is not known.
    price: Price | None
    agent: Mapping[str, Any]
    company: shapes.CompanyShape
    boss: shapes.BossShape
    mandate: shapes.MandateShape
    situation: str
    full_access: bool
    injected: Sequence[McpServer]
    #: The session to resume.
    session: statements.Session | None
    now: Micros
    turn: inbox.Turn
    offers: frozenset[str]
    folders: folders.Shown
    lent: Sequence[LentPlugin]
    memory: Sequence[Memory]


@logged("claiming.briefing", FOR_REMIT, Added("token", ""))
def briefing(ctx: Context, *, run: str, token: str) -> Briefing:
    """Everything that a run starts with; for Remit itself.

    What the agent gets of its mail, rights and files is decided and recorded as in its own calls,
    by the token of the run.
    """
    run_row = entered(ctx, run)
    ctx.lock_company()  # so that no token is revoked meanwhile
    agent = lookup.known_agent(ctx, run_row.agent_id)
    company = ctx.tx.existing(people.COMPANY, company=run_row.company_id)
    settings = registry.usable(agent.adapter_type, json.loads(agent.adapter_config))
    stored_session = ctx.tx.one(statements.SESSION, agent=agent.id)
    policy = getattr(settings, "session_policy", None)
    session = _resumed(ctx, agent, stored_session, policy)
    left = limits.capped(
        ctx, {kind.value: means.left for kind, means in ledger.means(ctx, agent.id).items()}
    )
    injected = mcp_servers.injected.body(ctx, company=agent.company_id, agent=agent.id)
    me = identify(ctx.tx, Caller(token), ctx.now)
    if me.run_id != run_row.id:
        raise Conflict("The token is of another run.")
    with ctx.acting_as(me):
        to_know = inbox.take_to_know(ctx, run_row, situation.MOST_TO_KNOW)
        turn = inbox.turn.body(ctx)
        offers = overview.offered.body(ctx)
        memory = [] if session else _memory(ctx, agent)
    told = situation.of_run(ctx, run_row, agent, to_know)
    if stored_session is not None and stored_session.session_id == statements.ALTERED:
        told += _BEGUN_ANEW
    return Briefing(
        left=left,
        limits=stored(company.limits).view(),
        price=Price.read(run_row.price),
        agent={
            **views.agent(agent),
            "prompt": agent.prompt,
            "adapter_config": json.loads(agent.adapter_config),
            "runtime_config": json.loads(agent.runtime_config),
        },
        company=views.company(company),
        boss=situation.boss(ctx, agent),
        mandate=situation.mandate(ctx, agent),
        situation=told,
        full_access=has_full_access(ctx, agent),
        injected=injected,
        session=session,
        now=ctx.now,
        turn=turn,
        offers=offers,
        folders=shown_folders(ctx, me, agent),
        lent=lent_plugins.lent_to(ctx, agent),
        memory=memory,
    )


def shown_folders(ctx: Context, me: Principal, agent: Agent) -> folders.Shown:
    """The folders of an agent's run or job, with its present rights."""
    with ctx.acting_as(me):
        shown = folders.shown_to(ctx, agent)
    if shown.repo is not None:
        shown = shown._replace(who=CommitIdentity.of(**changes.identity(ctx, agent.id)))
    return shown


def _memory(ctx: Context, agent: Agent) -> list[Memory]:
    """The agent's memory for a new session: its state document, then its notes, if it wants them.
    Each read is authorised and in the access log."""
    wanted = [("your state document", False, str(agent.state_file_id))]
    days = json.loads(agent.runtime_config).get(DAILY_NOTES)
    if isinstance(days, int) and not isinstance(days, bool) and days > 0:
        wanted += [
            (f"your notes of {day}", True, file)
            for day, file in documents.recent.body(ctx, days=days)
        ]
    memories = []
    for title, is_note, file in wanted:
        try:
            version = files.read.body(ctx, file=file)
        except RemitError:
            ctx.record_refusal()
        else:
            memories.append(Memory(title, is_note, version))
    return memories


def _resumed(
    ctx: Context, agent: Agent, session: statements.Session | None, policy: Any
) -> statements.Session | None:
    """The session that the run resumes; None if it begins a new one."""
    lease = ctx.tx.one(leases.LEASE, agent=agent.id)
    if lease is not None and lease.failures >= MOST_FAILURES_OF_SESSION:
        return None
    return session if resumable(session, policy, agent.adapter_type, ctx.now) else None


def resumable(
    session: statements.Session | None, policy: Any, adapter_type: str, now: Micros
) -> bool:
    """Return whether the agent's policy lets a session be resumed; without a policy, never."""
    if session is None or policy is None or session.adapter_type != adapter_type:
        return False
    if session.session_id in (statements.FRESH, statements.ALTERED):
        return False
    if policy.max_age and now - session.begun_at > _duration(policy.max_age):
        return False
    if policy.idle_time and now - session.used_at > _duration(policy.idle_time):
        return False
    if policy.max_context_tokens and session.context_tokens > policy.max_context_tokens:
        return False
    return not (policy.daily_reset_at and _reset_between(policy.daily_reset_at, session, now))


def _duration(text: str) -> Micros:
    """Parse `90s`, `15m`, `2h` or `7d`."""
    return int(text[:-1]) * _UNITS[text[-1]]


def _reset_between(at: str, session: statements.Session, now: Micros) -> bool:
    """Return whether that time of day has passed since the session was last used."""
    hour, minute = (int(part) for part in at.split(":"))
    today = datetime.fromtimestamp(now / SECOND, UTC)
    reset = today.replace(hour=hour, minute=minute, second=0, microsecond=0)
    last = int(reset.timestamp()) * SECOND
    if last > now:
        last -= DAY
    return session.used_at < last
