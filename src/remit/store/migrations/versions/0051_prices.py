"""Prices with runs and jobs, prices that companies set, and tokens of unknown cost in the ledger.

Until now, tokens without a price were charged as $0.00. The ledger learns from the runs which
tokens these were, and which money was estimated.
"""

from alembic import op

from remit.store.migrations import additions

revision = "0051"
down_revision = "0049"

_DAY = 86_400_000_000
_OF_THE_DAY = f"""
    FROM runs
    WHERE runs.agent_id = spending.agent_id
    AND runs.ended_at >= spending.day AND runs.ended_at < spending.day + {_DAY}
"""
FILL = f"""
    UPDATE spending SET
    tokens_unpriced = (
        SELECT coalesce(sum(runs.tokens_in + runs.tokens_out), 0) {_OF_THE_DAY}
        AND runs.cost_micros = 0
    ),
    money_estimated = (
        SELECT coalesce(sum(runs.cost_micros), 0) {_OF_THE_DAY} AND runs.cost_estimated
    )
"""  # noqa: S608 - of constants


def upgrade() -> None:
    additions.make(revision)
    op.execute(FILL)
