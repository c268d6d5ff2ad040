"""Statements about halts, and the condition with which other statements skip stopped agents."""

from sqlalchemy import ColumnElement, Table, and_, exists, literal, not_, or_, select
from sqlalchemy import bindparam as bind

from remit.model.connections.check import ChangeCheck
from remit.model.execution.job import Job
from remit.model.execution.run import Run
from remit.model.organisation.agent import DEEPEST_TREE
from remit.model.organisation.halt import Halt
from remit.store.engine.statement import Rows, Statement, into, new
from remit.store.organisation.agents import BELOW_AGENT, BOSSES_OF
from remit.store.tables import agents, change_checks, changes, halts, jobs, runs

_RUNS = Rows(Run)
_JOBS = Rows(Job)
_CHECKS = Rows(ChangeCheck)
_HALTS = Rows(Halt)

#: Ends a halt.
DELETE_HALT = _HALTS.delete(id="halt")
#: Passes a halt to a higher-ranking maker who stops the same part.
TAKE_OVER_HALT = _HALTS.update(
    halts.c.id == bind("halt"),
    **new("note", "made_by_user_id", "made_by_agent_id"),
    created_at=bind("now"),
)
#: All halts of a company, that of the whole company first, then the oldest.
HALTS = _HALTS.find(
    company_id="company", order=[halts.c.agent_id.is_not(None), halts.c.created_at, halts.c.id]
)
#: The halt of a whole company.
HALT_OF_COMPANY = _HALTS.one(halts.c.agent_id.is_(None), company_id="company")
#: The halt of an agent and those below it.
HALT_OF_AGENT = _HALTS.one(agent_id="agent")
#: The halts that stop an agent, the widest first.
COVERING = Statement(
    _HALTS.select(
        or_(halts.c.agent_id.is_(None), BOSSES_OF.c.id.is_not(None)), company_id="company"
    )
    .outerjoin(BOSSES_OF, BOSSES_OF.c.id == halts.c.agent_id)
    .order_by(halts.c.agent_id.is_not(None), BOSSES_OF.c.depth.desc()),
    into(Halt),
).keep()

#: The halt of a company that came from outside and that nobody has accepted.
UNACCEPTED = _HALTS.one(halts.c.left_out.is_not(None), company_id="company")
#: Ends the halt of a company that a person accepts.
ACCEPT = _HALTS.delete(halts.c.left_out.is_not(None), company_id="company")


def accepted(table: Table) -> ColumnElement[bool]:
    """A condition: the company of the row did not come from outside, or a person accepted it."""
    return not_(
        exists().where(halts.c.company_id == table.c.company_id, halts.c.left_out.is_not(None))
    )


_live = runs.c.status == literal("running")
#: Running runs of a company.
LIVE_RUNS_IN = _RUNS.find(_live, company_id="company")
#: Running runs of an agent and those below it.
LIVE_RUNS_BELOW = _RUNS.find(runs.c.agent_id.in_(select(BELOW_AGENT.c.id)), _live)
_running = jobs.c.status == literal("running")
#: Running jobs of a company.
RUNNING_JOBS_IN = _JOBS.find(_running, company_id="company")
#: Running jobs of an agent and those below it.
RUNNING_JOBS_BELOW = _JOBS.find(jobs.c.agent_id.in_(select(BELOW_AGENT.c.id)), _running)
_checked = change_checks.c.status == literal("leased")
_below = select(changes.c.id).where(changes.c.agent_id.in_(select(BELOW_AGENT.c.id)))
#: Checks under way in a company.
CHECKS_UNDER_WAY_IN = _CHECKS.find(_checked, company_id="company")
#: Checks under way on changes of an agent and those below it.
CHECKS_UNDER_WAY_BELOW = _CHECKS.find(change_checks.c.change_id.in_(_below), _checked)


def stopped(table: Table) -> ColumnElement[bool]:
    """A condition: the agent of the row is covered by a halt.

    A company without halts costs one index look-up; otherwise the bosses of the row's agent are
    looked up, so the cost grows with the rows examined and not with the size of the tree.
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
