"""Letters of agents to themselves: each arrives after a pause, which grows with repetition.

An agent that writes to itself in each run would be started again and again by its own mail. The
pauses are those between the runs of an agent that goes on by itself.
"""

from remit.clock import DAY, Micros
from remit.ids import AgentId, MessageId, earliest_id
from remit.model.execution.run import NUDGES
from remit.services.command import Context
from remit.store.messaging import mail as statements


def due(ctx: Context, agent: AgentId, origin: MessageId | None, wanted: Micros) -> Micros:
    """Return when a letter of an agent to itself arrives: at the wanted time, but not before the
    pause after its letters to itself of the last day that came of the same letter of a person."""
    before = ctx.tx.all(
        statements.OWN_LETTERS,
        agent=agent,
        since=earliest_id(ctx.now - DAY),
        origin=origin,
        limit=len(NUDGES),
    )
    return max(wanted, ctx.now + NUDGES[min(len(before), len(NUDGES) - 1)])
