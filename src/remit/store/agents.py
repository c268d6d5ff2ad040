"""Statements about agents, the tree they form, their mandates and their runs."""

from __future__ import annotations

from sqlalchemy import Boolean, and_, insert, literal, or_, select, true, update
from sqlalchemy import bindparam as bind

from remit.model.agent import DEEPEST_TREE, Agent
from remit.model.outcome import Outcome
from remit.model.run import Run
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import agents, outcomes, runs

INSERT_AGENT = change(insert(agents))
AGENT = Statement(
    select(*columns(agents, Agent)).where(
        agents.c.company_id == bind("company"), agents.c.id == bind("agent")
    ),
    into(Agent),
)
#: Where an id leads when only the id is known.
AGENT_ANYWHERE = Statement(
    select(*columns(agents, Agent)).where(agents.c.id == bind("agent")), into(Agent)
)
LIVING_AGENT_BY_NAME = Statement(
    select(*columns(agents, Agent)).where(
        agents.c.company_id == bind("company"),
        agents.c.name_key == bind("name_key"),
        agents.c.status != literal("terminated"),
    ),
    into(Agent),
)
#: Two of them are enough to know that a prefix is ambiguous.
AGENTS_BY_PREFIX = Statement(
    select(*columns(agents, Agent))
    .where(
        agents.c.company_id == bind("company"),
        agents.c.id >= bind("low"),
        agents.c.id < bind("high"),
    )
    .limit(2),
    into(Agent),
)
AGENTS = Statement(
    select(*columns(agents, Agent))
    .where(
        agents.c.company_id == bind("company"),
        agents.c.id > bind("after"),
        or_(
            agents.c.status != literal("terminated"),
            bind("terminated_too", type_=Boolean) == true(),
        ),
    )
    .order_by(agents.c.id)
    .limit(bind("limit")),
    into(Agent),
)
SET_AGENT_STATUS = change(
    update(agents)
    .where(agents.c.id == bind("agent"), agents.c.status == bind("was"))
    .values(status=bind("new_status"), updated_at=bind("now"))
)
LIVING_REPORT = Statement(
    select(agents.c.id)
    .where(agents.c.boss_id == bind("agent"), agents.c.status != literal("terminated"))
    .limit(1),
    scalar,
)

_start = (
    select(agents.c.id, agents.c.boss_id, literal(0).label("depth"))
    .where(agents.c.company_id == bind("company"), agents.c.id == bind("agent"))
    .cte("chain", recursive=True)
)
_chain = _start.union_all(
    select(agents.c.id, agents.c.boss_id, _start.c.depth + 1).where(
        and_(agents.c.id == _start.c.boss_id, _start.c.depth <= DEEPEST_TREE)
    )
)
#: An agent and all bosses above it, itself first. Longer than allowed means: do not trust it.
CHAIN_OF_BOSSES = Statement(select(_chain.c.id).order_by(_chain.c.depth), scalar)

# Mandates

INSERT_OUTCOME = change(insert(outcomes))
OUTCOME = Statement(
    select(*columns(outcomes, Outcome)).where(
        outcomes.c.company_id == bind("company"), outcomes.c.id == bind("outcome")
    ),
    into(Outcome),
)
OUTCOMES_BY_PREFIX = Statement(
    select(*columns(outcomes, Outcome))
    .where(
        outcomes.c.company_id == bind("company"),
        outcomes.c.id >= bind("low"),
        outcomes.c.id < bind("high"),
    )
    .limit(2),
    into(Outcome),
)
OUTCOME_ANYWHERE = Statement(
    select(*columns(outcomes, Outcome)).where(outcomes.c.id == bind("outcome")), into(Outcome)
)
FINISH_OUTCOME = change(
    update(outcomes)
    .where(outcomes.c.id == bind("outcome"), outcomes.c.status == literal("open"))
    .values(status=bind("new_status"), finished_at=bind("now"))
)

# Runs

INSERT_RUN = change(insert(runs))
RUN = Statement(select(*columns(runs, Run)).where(runs.c.id == bind("run")), into(Run))
LIVE_RUN_OF = Statement(
    select(*columns(runs, Run)).where(
        runs.c.agent_id == bind("agent"), runs.c.status == literal("running")
    ),
    into(Run),
)
LIVE_RUNS = Statement(
    select(*columns(runs, Run)).where(runs.c.status == literal("running")), into(Run)
)
END_RUN = change(
    update(runs)
    .where(runs.c.id == bind("run"), runs.c.status == literal("running"))
    .values(status=bind("new_status"), ended_at=bind("now"))
)
