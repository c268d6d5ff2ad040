"""Statements about agents, the tree they form, and their runs."""

from __future__ import annotations

from dataclasses import dataclass, fields

from sqlalchemy import (
    Boolean,
    and_,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    true,
    update,
)
from sqlalchemy import bindparam as bind

from remit.clock import Micros
from remit.ids import AgentId, UserId
from remit.model.agent import DEEPEST_TREE, Agent
from remit.store.statement import Statement, change, columns, into, scalar
from remit.store.tables import agent_places, agents, companies, memberships

INSERT_AGENT = change(insert(agents))
AGENT = Statement(
    select(*columns(agents, Agent)).where(
        agents.c.company_id == bind("company"), agents.c.id == bind("agent")
    ),
    into(Agent),
)
#: Where an id leads when only the id is known.
#: Those that a person has to see to.
IN_ERROR = Statement(
    select(*columns(agents, Agent))
    .where(agents.c.company_id == bind("company"), agents.c.status == literal_column("'error'"))
    .order_by(agents.c.id)
    .limit(bind("limit")),
    into(Agent),
)
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
#: Also those who are gone, newest first.
AGENTS_EVER_NAMED = Statement(
    select(*columns(agents, Agent))
    .where(agents.c.company_id == bind("company"), agents.c.name_key == bind("name_key"))
    .order_by(agents.c.id.desc()),
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
    .limit(20),
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
AWAITING_APPROVAL = Statement(
    select(*columns(agents, Agent)).where(
        agents.c.company_id == bind("company"), agents.c.status == literal("pending_approval")
    ),
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
#: An agent and its bosses; other statements look at what these have.
BOSSES_OF = _start.union_all(
    select(agents.c.id, agents.c.boss_id, _start.c.depth + 1).where(
        and_(agents.c.id == _start.c.boss_id, _start.c.depth <= DEEPEST_TREE)
    )
)
#: An agent and all bosses above it, itself first. Longer than allowed means: do not trust it.
CHAIN_OF_BOSSES = Statement(select(BOSSES_OF.c.id).order_by(BOSSES_OF.c.depth), scalar)

_seed = (
    select(agents.c.id, literal(0).label("depth"))
    .where(agents.c.company_id == bind("company"), agents.c.id == bind("agent"))
    .cte("below", recursive=True)
)
#: An agent and everybody below it; other statements look at what these have.
BELOW_AGENT = _seed.union(
    select(agents.c.id, _seed.c.depth + 1).where(
        and_(agents.c.boss_id == _seed.c.id, _seed.c.depth <= DEEPEST_TREE)
    )
)
_member = agents.alias("member")
#: An agent and everybody below it, nearest first.
SUBTREE_OF_AGENT = Statement(
    select(*(_member.c[column.name] for column in columns(agents, Agent)))
    .join(BELOW_AGENT, BELOW_AGENT.c.id == _member.c.id)
    .order_by(BELOW_AGENT.c.depth, _member.c.id),
    into(Agent),
)
#: How many levels there are below an agent.
LEVELS_BELOW = Statement(select(func.max(BELOW_AGENT.c.depth)), scalar)
REPORTS = Statement(
    select(*columns(agents, Agent))
    .where(agents.c.boss_id == bind("agent"), agents.c.status != literal("terminated"))
    .order_by(agents.c.id),
    into(Agent),
)
#: The agents whose seats a person holds.
SEATS_OF = Statement(
    select(agents.c.id).where(
        agents.c.company_id == bind("company"), agents.c.seat_user_id == bind("user")
    ),
    scalar,
)
MOVE_AGENT = change(
    update(agents)
    .where(agents.c.id == bind("agent"))
    .values(boss_id=bind("new_boss"), boss_user_id=bind("new_boss_user"), updated_at=bind("now"))
)
SEAT_AGENT = change(
    update(agents)
    .where(agents.c.id == bind("agent"))
    .values(
        adapter_type=bind("new_adapter"),
        adapter_config=bind("new_config"),
        seat_user_id=bind("new_seat"),
        config_revision=agents.c.config_revision + 1,
        updated_at=bind("now"),
    )
)

# Who reported to whom, and when


@dataclass(frozen=True, slots=True)
class Place:
    agent_id: AgentId
    boss_id: AgentId | None
    boss_user_id: UserId | None
    since: Micros
    until: Micros | None


INSERT_PLACE = change(
    insert(agent_places).values(
        {column.name: bind(column.name) for column in agent_places.c if column.name != "id"}
    )
)
END_PLACE = change(
    update(agent_places)
    .where(agent_places.c.agent_id == bind("agent"), agent_places.c.until.is_(None))
    .values(until=bind("now"))
)
PLACES_AT = Statement(
    select(*(agent_places.c[field.name] for field in fields(Place)))
    .where(
        agent_places.c.company_id == bind("company"),
        agent_places.c.since <= bind("at"),
        or_(agent_places.c.until.is_(None), agent_places.c.until > bind("at")),
    )
    .order_by(agent_places.c.agent_id),
    into(Place),
)
#: Those who report to a person.
ROOTS = Statement(
    select(*columns(agents, Agent))
    .where(
        agents.c.company_id == bind("company"),
        agents.c.boss_id.is_(None),
        agents.c.status != literal("terminated"),
    )
    .order_by(agents.c.id)
    .limit(bind("limit")),
    into(Agent),
)
_works = agents.c.status.not_in([literal("terminated"), literal("pending_approval")])
#: Somebody who reports to a person and was taken on.
WORKING_ROOT = Statement(
    select(agents.c.id)
    .where(agents.c.company_id == bind("company"), agents.c.boss_id.is_(None), _works)
    .limit(1),
    scalar,
)
COMPANIES_WITHOUT_ROOT = Statement(
    select(companies.c.id)
    .where(
        ~select(agents.c.id)
        .where(agents.c.company_id == companies.c.id, agents.c.boss_id.is_(None), _works)
        .exists()
    )
    .order_by(companies.c.id),
    scalar,
)
#: Seats for a person that nobody with a part in the company holds.
VACANT_SEATS = Statement(
    select(*columns(agents, Agent))
    .where(
        agents.c.company_id == bind("company"),
        agents.c.adapter_type == literal("human"),
        _works,
        or_(
            agents.c.seat_user_id.is_(None),
            ~select(memberships.c.user_id)
            .where(
                memberships.c.company_id == agents.c.company_id,
                memberships.c.user_id == agents.c.seat_user_id,
            )
            .exists(),
        ),
    )
    .order_by(agents.c.id),
    into(Agent),
)
#: Those who reported to a person when they were terminated, the last one first.
FORMER_ROOTS = Statement(
    select(*columns(agents, Agent))
    .where(
        agents.c.company_id == bind("company"),
        agents.c.boss_id.is_(None),
        agents.c.status == literal("terminated"),
    )
    .order_by(agents.c.updated_at.desc(), agents.c.id.desc()),
    into(Agent),
)
