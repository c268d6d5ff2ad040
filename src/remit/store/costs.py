"""Sums of what runs cost, by the rules of `Priced.cost`: known, estimated, and of unknown cost."""

import sqlalchemy as sa

from remit.store.tables import runs

_nobody_said = sa.and_(
    runs.c.cost_micros == 0,
    runs.c.price.is_(None),
    runs.c.status != sa.literal_column("'running'"),
)
#: The tokens of a run of which nobody knows what they cost.
UNPRICED = sa.case((_nobody_said, runs.c.tokens_in + runs.c.tokens_out), else_=0)
#: The part of a run's cost that is an estimate.
ESTIMATED = sa.case((runs.c.cost_estimated, runs.c.cost_micros), else_=0)


def _sum(amount: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    return sa.func.coalesce(sa.func.sum(amount), 0).cast(sa.BigInteger)


#: The arguments of `cost_of`, as sums over runs.
SUMS = (_sum(runs.c.cost_micros), _sum(ESTIMATED), _sum(UNPRICED))
