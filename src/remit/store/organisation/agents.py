"""Statements about agents, the tree they form, and their runs."""

from dataclasses import dataclass

from sqlalchemy import and_, exists, func, literal, null, or_, select
from sqlalchemy import bindparam as bind

from remit.clock import Micros
from remit.ids import AgentId, UserId
from remit.model.organisation.agent import DEEPEST_TREE, Agent
from remit.store.engine.statement import Rows, Statement, columns, into, scalar, unless, values_of
from remit.store.tables import agent_places, agents, companies, memberships

_AGENTS = Rows(Agent)
_one = agents.c.id == bind("agent")
_not_terminated = agents.c.status != literal("terminated")

#: The company's agent of that id.
AGENT = _AGENTS.keyed(company_id="company", id="agent")
#: One agent by id, of any company.
AGENT_ANYWHERE = _AGENTS.keyed(id="agent")
#: The company's agent of that name that is not terminated.
LIVING_AGENT_BY_NAME = _AGENTS.one(_not_terminated, company_id="company", name_key="name_key")
#: The company's agents of that name, also terminated ones, newest first.
AGENTS_EVER_NAMED = _AGENTS.find(
    company_id="company", name_key="name_key", order=[agents.c.id.desc()]
)
#: The company's agents whose ids lie between two; more than one makes a prefix ambiguous.
AGENTS_BY_PREFIX = _AGENTS.between(company_id="company", limit=20)
#: A page of the company's agents, by id.
AGENTS = _AGENTS.after(unless("terminated_too", _not_terminated), company_id="company")
#: The company's agents that wait for approval.
AWAITING_APPROVAL = _AGENTS.find(
    agents.c.status == literal("pending_approval"), company_id="company", order=()
)
#: Moves an agent to another status, if it has the expected one.
SET_AGENT_STATUS = _AGENTS.update(
    _one, agents.c.status == bind("was"), status=bind("new_status"), updated_at=bind("now")
)
#: Whether an agent has a report that is not terminated.
LIVING_REPORT = _AGENTS.any(_not_terminated, boss_id="agent")

_start = (
    select(agents.c.id, agents.c.boss_id, literal(0).label("depth"))
    .where(agents.c.company_id == bind("company"), agents.c.id == bind("agent"))
    .cte("chain", recursive=True)
)
#: An agent and its bosses, for conditions of other statements.
BOSSES_OF = _start.union_all(
    select(agents.c.id, agents.c.boss_id, _start.c.depth + 1).where(
        and_(agents.c.id == _start.c.boss_id, _start.c.depth <= DEEPEST_TREE)
    )
)
#: An agent and all bosses above it, itself first. A chain longer than the deepest tree is corrupt.
CHAIN_OF_BOSSES = Statement(select(BOSSES_OF.c.id).order_by(BOSSES_OF.c.depth), scalar).keep()

_seed = (
    select(agents.c.id, literal(0).label("depth"))
    .where(agents.c.company_id == bind("company"), agents.c.id == bind("agent"))
    .cte("below", recursive=True)
)
#: An agent and everybody below it, for conditions of other statements.
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
LEVELS_BELOW = values_of(func.max(BELOW_AGENT.c.depth))
#: The reports of an agent that are not terminated.
REPORTS = _AGENTS.find(_not_terminated, boss_id="agent")
#: The agents whose seats a person holds.
SEATS_OF = values_of(agents.c.id, company_id="company", seat_user_id="user")
#: Takes all seats of a company from a person.
VACATE_SEATS = _AGENTS.update(
    agents.c.company_id == bind("company"),
    agents.c.seat_user_id == bind("user"),
    seat_user_id=null(),
    updated_at=bind("now"),
)
#: Moves an agent below another boss.
MOVE_AGENT = _AGENTS.update(
    _one, boss_id=bind("new_boss"), boss_user_id=bind("new_boss_user"), updated_at=bind("now")
)
#: Gives an agent another person or adapter, as its next configuration.
SEAT_AGENT = _AGENTS.update(
    _one,
    adapter_type=bind("new_adapter"),
    adapter_config=bind("new_config"),
    seat_user_id=bind("new_seat"),
    config_revision=agents.c.config_revision + 1,
    updated_at=bind("now"),
)

# Reporting lines over time


@dataclass(frozen=True, slots=True)
class Place:
    agent_id: AgentId
    boss_id: AgentId | None
    boss_user_id: UserId | None
    since: Micros
    until: Micros | None


_PLACES = Rows(Place, "agent_id", table=agent_places)
#: Begins an agent's place below a boss.
INSERT_PLACE = _PLACES.insert_without("id")
#: Ends an agent's present place.
END_PLACE = _PLACES.update(
    agent_places.c.agent_id == bind("agent"), agent_places.c.until.is_(None), until=bind("now")
)
#: The reporting lines of a company at a time.
PLACES_AT = _PLACES.find(
    agent_places.c.since <= bind("at"),
    or_(agent_places.c.until.is_(None), agent_places.c.until > bind("at")),
    company_id="company",
)
#: Agents that report to a person.
ROOTS = _AGENTS.find(
    agents.c.boss_id.is_(None), _not_terminated, company_id="company", limit=bind("limit")
)
_works = agents.c.status.not_in([literal("terminated"), literal("pending_approval")])
#: An agent of the company that reports to a person and is hired and not terminated.
WORKING_ROOT = _AGENTS.any(agents.c.boss_id.is_(None), _works, company_id="company")
#: The companies that have no working agent at the top.
COMPANIES_WITHOUT_ROOT = values_of(
    companies.c.id,
    ~exists().where(agents.c.company_id == companies.c.id, agents.c.boss_id.is_(None), _works),
    order=[companies.c.id],
)
#: Conditions: a seat for a person that no member of the company holds.
VACANT = (
    agents.c.company_id == bind("company"),
    agents.c.adapter_type == literal("human"),
    _works,
    or_(
        agents.c.seat_user_id.is_(None),
        ~exists().where(
            memberships.c.company_id == agents.c.company_id,
            memberships.c.user_id == agents.c.seat_user_id,
        ),
    ),
)
#: Agents that reported to a person when they were terminated, the last one first.
FORMER_ROOTS = _AGENTS.find(
    agents.c.boss_id.is_(None),
    agents.c.status == literal("terminated"),
    company_id="company",
    order=[agents.c.updated_at.desc(), agents.c.id.desc()],
)
