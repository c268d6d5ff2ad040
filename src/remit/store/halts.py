"""Statements about halts, and the condition by which others leave out what is stopped."""

from __future__ import annotations

from sqlalchemy import (
    ColumnElement,
    Table,
    and_,
    delete,
    exists,
    insert,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy import bindparam as bind

from remit.model.agent import DEEPEST_TREE
from remit.model.halt import Halt
from remit.model.job import Job
from remit.model.run import Run
from remit.store.agents import BELOW_AGENT, BOSSES_OF
from remit.store.statement import Statement, change, columns, into
from remit.store.tables import agents, halts, jobs, runs

_halt = columns(halts, Halt)

INSERT_HALT = change(insert(halts))
DELETE_HALT = change(delete(halts).where(halts.c.id == bind("halt")))
#: Whoever is above its maker and stops the same makes it theirs.
TAKE_OVER_HALT = change(
    update(halts)
    .where(halts.c.id == bind("halt"))
    .values(
        made_by_user_id=bind("new_user"),
        made_by_agent_id=bind("new_agent"),
        note=bind("new_note"),
        created_at=bind("now"),
    )
)
#: The company's own comes first, then the oldest.
HALTS = Statement(
    select(*_halt)
    .where(halts.c.company_id == bind("company"))
    .order_by(halts.c.agent_id.is_not(None), halts.c.created_at, halts.c.id),
    into(Halt),
)
HALT_OF_COMPANY = Statement(
    select(*_halt).where(halts.c.company_id == bind("company"), halts.c.agent_id.is_(None)),
    into(Halt),
)
HALT_OF_AGENT = Statement(select(*_halt).where(halts.c.agent_id == bind("agent")), into(Halt))
#: What stops an agent, the widest first.
COVERING = Statement(
    select(*_halt)
    .outerjoin(BOSSES_OF, BOSSES_OF.c.id == halts.c.agent_id)
    .where(
        halts.c.company_id == bind("company"),
        or_(halts.c.agent_id.is_(None), BOSSES_OF.c.id.is_not(None)),
    )
    .order_by(halts.c.agent_id.is_not(None), BOSSES_OF.c.depth.desc()),
    into(Halt),
)

_live = runs.c.status == literal("running")
LIVE_RUNS_IN = Statement(
    select(*columns(runs, Run))
    .where(runs.c.company_id == bind("company"), _live)
    .order_by(runs.c.id),
    into(Run),
)
LIVE_RUNS_BELOW = Statement(
    select(*columns(runs, Run))
    .where(runs.c.agent_id.in_(select(BELOW_AGENT.c.id)), _live)
    .order_by(runs.c.id),
    into(Run),
)
_running = jobs.c.status == literal("running")
RUNNING_JOBS_IN = Statement(
    select(*columns(jobs, Job))
    .where(jobs.c.company_id == bind("company"), _running)
    .order_by(jobs.c.id),
    into(Job),
)
RUNNING_JOBS_BELOW = Statement(
    select(*columns(jobs, Job))
    .where(jobs.c.agent_id.in_(select(BELOW_AGENT.c.id)), _running)
    .order_by(jobs.c.id),
    into(Job),
)


def stopped(table: Table) -> ColumnElement[bool]:
    """Whether the agent of a row is covered by a halt.

    A company without halts costs one look into an index; in others the bosses of the row's agent
    are looked up, so the cost follows the rows that are asked about and not the size of the tree.
    """
    company, agent = table.c.company_id, table.c.agent_id
    own, boss, whole, any_halt = (
        agents.alias("a"),
        agents.alias("b"),
        halts.alias("w"),
        halts.alias("h"),
    )
    seed = (
        select(own.c.id, own.c.boss_id, literal(0).label("depth"))
        .where(own.c.id == agent)
        .correlate(table)
        .cte("above", recursive=True, nesting=True)
    )
    above = seed.union_all(
        select(boss.c.id, boss.c.boss_id, seed.c.depth + 1).where(
            and_(boss.c.id == seed.c.boss_id, seed.c.depth <= DEEPEST_TREE)
        )
    )
    return and_(
        exists().where(any_halt.c.company_id == company),
        or_(
            exists().where(whole.c.company_id == company, whole.c.agent_id.is_(None)),
            exists(
                select(literal(1)).select_from(halts.join(above, above.c.id == halts.c.agent_id))
            ),
        ),
    )
