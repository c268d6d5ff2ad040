"""Signs of overload of an agent, so that it, or its boss, may delegate some of its work."""

from collections.abc import Iterable

from remit.clock import DAY, Micros
from remit.model.organisation.agent import Agent
from remit.services import shapes
from remit.services.command import Context
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import workload as statements

#: This many unread messages are a sign: they take two turns to read.
MUCH_MAIL = 20
#: This many outcomes, untouched for this long, are a sign.
MANY_OUTCOMES = 10
UNTOUCHED: Micros = DAY
#: A session of so many tokens is long.
LONG_CONTEXT = 150_000


def of(ctx: Context, agents: Iterable[Agent]) -> list[shapes.SignShape]:
    return [
        {
            "kind": "delegate",
            "id": agent.id,
            "company_id": agent.company_id,
            "title": f"{agent.name} may delegate: {sign}",
            "agent_id": agent.id,
            "since": None,
        }
        for agent in agents
        for sign in _signs(ctx, agent)
    ]


def _signs(ctx: Context, agent: Agent) -> Iterable[str]:
    mail = ctx.tx.one(mail_statements.COUNT_WAITING, agent=agent.id) or 0
    if mail >= MUCH_MAIL:
        yield f"{mail} messages wait for it"
    idle = ctx.tx.one(statements.IDLE_OUTCOMES, agent=agent.id, before=ctx.now - UNTOUCHED)
    if (idle or 0) >= MANY_OUTCOMES:
        yield f"it could work on {idle} outcomes and has not touched them for a day"
    context = ctx.tx.one(statements.LAST_CONTEXT, agent=agent.id) or 0
    if context >= LONG_CONTEXT:
        yield f"its last run took {context} tokens of context"
