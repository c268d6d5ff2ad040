"""A company without its root agent, as earlier versions could leave one behind."""

from unittest.mock import patch

from remit.app import App
from remit.model.organisation.decision import Decision, Effect
from remit.model.work.outcome import OutcomeStatus
from remit.services import lookup
from remit.services.command import Answer, Context, command
from remit.services.identity import as_system
from remit.services.organisation import tree
from remit.services.work import outcome_ending
from remit.store.organisation import agents as statements


@command("tests.remove_root")
def _remove_root(ctx: Context, *, agent: str) -> Answer:
    row = ctx.tx.one(statements.AGENT_ANYWHERE, agent=agent)
    assert row is not None
    ctx.enter(row.company_id)
    ctx.allow_by_rule(Decision(Effect.ALLOW, "tests", "For a test.", "rule:tests"))
    mandate = lookup.known_outcome(ctx, row.id)
    with patch.object(tree, "check_root_stays"):
        outcome_ending.finish_tree(ctx, mandate, OutcomeStatus.CLOSED, f"{row.name} was terminated")
    return {}


async def remove_root(app: App, agent: str) -> None:
    """Terminate an agent, whether or not another root is left."""
    await app.gate(as_system(), _remove_root, agent=agent)
