"""Changes of MCP servers, and their effect on a running agent.

The database is authoritative: a right that was taken is refused from then on, one that was given
can be used. A running program has its list of tools already, so the agent is told by mail to save
its state and end. It is then started again with a new list, because it has mail: that one, or one
that tells it to go on.
"""

import json
from collections.abc import Iterable, Sequence

from remit.model.connections.mcp_server import SEPARATOR
from remit.model.execution.run import Run
from remit.model.organisation.grant import Grant, Mode, ResourceKind
from remit.services.command import Context
from remit.services.governance import approval_engine
from remit.store.connections import mcp_servers as statements
from remit.store.execution import leases
from remit.store.execution import runs as run_statements
from remit.store.record import events as event_log

SUBJECT = "Your tools change"
CHANGED = "Your tools have changed"
_GO_ON = (
    "You were started again, with the tools and the set-up that you have now. Go on with what you "
    "left, if there is anything; otherwise acknowledge this and end."
)
_STEP = (
    "Your tools were listed when you were started. Save your state and end your run as soon as "
    "you can; you are started again with the new ones."
)


def given(ctx: Context, grant: Grant) -> None:
    """Tell a running agent that it was granted or forbidden a server, if the grant is of one."""
    if grant.kind is not ResourceKind.MCP_SERVER:
        return
    name = grant.resource_id
    if grant.mode is Mode.DENY:
        text = f"You may not use the MCP server {name} any more; its tools are refused from now on."
    else:
        asks = " Each use has to be approved." if grant.mode is Mode.ASK else ""
        text = (
            f"You may use the MCP server {name} now. Its tools are named {name}{SEPARATOR}….{asks}"
        )
    _tell(ctx, [grant.holder_id], text)


def taken(ctx: Context, revoked: Sequence[str]) -> None:
    """Tell the running holders of the grants that were just revoked, if they were of servers and no
    other is left."""
    if not revoked:
        return
    gone = set(revoked)
    for grant in ctx.tx.all(statements.TAKEN_NOW):
        if grant.id in gone:
            held = ctx.held(grant.holder_id, grant.resource)
            if not any(other.live(ctx.now) for other in held):
                _tell(
                    ctx,
                    [grant.holder_id],
                    f"The MCP server {grant.resource_id} was taken from you; its tools are "
                    "refused from now on.",
                )


def server_changed(ctx: Context, name: str) -> None:
    """Tell the running holders of a server that its definition was replaced."""
    held = ctx.tx.all(statements.HELD_ON_SERVER, name=name)
    holders = dict.fromkeys(grant.holder_id for grant in held if grant.mode is not Mode.DENY)
    _tell(ctx, holders, f"The MCP server {name} was set up anew; its tools may be others now.")


#: Name of the event of an agent's update.
UPDATED = "agent.update"
_SET_UP = (
    "You are set up anew. This run goes on as it began: save your state and end it as soon as you "
    "can; you are started again with the new set-up."
)


def updated(ctx: Context, agent: str) -> None:
    """Tell a running agent that it was updated; its run keeps the old set-up until it ends."""
    if ctx.tx.one(run_statements.LIVE_RUN_OF, agent=agent) is not None:
        approval_engine.tell(ctx, f"agent:{agent}", "Your set-up changes", _SET_UP)


def is_outdated(ctx: Context, run: Run) -> bool:
    """Return whether the agent of a run was updated since it began."""
    last = ctx.tx.one(
        event_log.LAST_OF, company=run.company_id, resource=f"agent:{run.agent_id}", action=UPDATED
    )
    if last is None:
        return False
    return last.at > run.started_at or json.loads(last.details)["run"] == run.id


def go_on(ctx: Context, run: Run) -> None:
    """Mail an agent whose tools or set-up changed during the run that ended, if nothing else is due
    to it: it may have ended for that, and has to be started to continue its work."""
    if ctx.tx.one(leases.HAS_WORK, agent=run.agent_id) is not None:
        return
    since = {"company": run.company_id, "agent": run.agent_id, "since": run.started_at}
    if ctx.tx.one(statements.CHANGED_SINCE, **since) is not None or is_outdated(ctx, run):
        approval_engine.tell(ctx, f"agent:{run.agent_id}", CHANGED, _GO_ON)


def _tell(ctx: Context, agents: Iterable[str], text: str) -> None:
    for agent in agents:
        if ctx.tx.one(run_statements.LIVE_RUN_OF, agent=agent) is not None:
            approval_engine.tell(ctx, f"agent:{agent}", SUBJECT, f"{text}\n\n{_STEP}")
