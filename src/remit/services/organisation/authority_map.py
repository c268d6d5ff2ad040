"""Map of authority: who supervises, judges, owns or holds what, so that a change shows as gains and
losses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from remit.ids import AgentId, UserId
from remit.model.organisation.agent import DEEPEST_TREE, Agent, AgentStatus
from remit.model.organisation.grant import Mode
from remit.services import lookup, shapes
from remit.services.command import Context
from remit.store.organisation import agents as statements
from remit.store.organisation import grants as grant_statements
from remit.store.work import outcomes as outcome_statements

_ALL = 1_000_000


@dataclass(frozen=True)
class Map:
    """Facts of the form (who, which right, over what) about these agents and all below them."""

    agents: set[AgentId]
    #: Agents whose own authority may change without a move, not that of all below them.
    bosses: set[AgentId]
    facts: dict[tuple[str, str, str], shapes.FactShape]

    def changes(self, after: Map) -> list[shapes.SayShape]:
        lost = [(key, "loses") for key in self.facts.keys() - after.facts.keys()]
        gained = [(key, "gains") for key in after.facts.keys() - self.facts.keys()]
        return [
            {"change": change, **(self.facts if change == "loses" else after.facts)[key]}
            for key, change in sorted(lost + gained)
        ]


def snapshot(ctx: Context, agents: Iterable[AgentId], bosses: Iterable[AgentId]) -> Map:
    """Collect the authority of others over these agents, and theirs over outcomes and resources."""
    concerned: dict[AgentId, Agent] = {}
    for boss in bosses:
        concerned[boss] = lookup.known_agent(ctx, boss)  # bosses are never deleted
    whole = {"after": "", "limit": _ALL}
    owned = {boss: ctx.tx.all(outcome_statements.OWNED_BY, owner=boss, **whole) for boss in bosses}
    held = {boss: ctx.tx.all(grant_statements.HELD_BY, holder=boss, **whole) for boss in bosses}
    agents = list(agents)
    covered: set[AgentId] = set()
    for top in agents:
        if top in covered:
            continue
        reach = {"company": ctx.company, "agent": top}
        below = {member.id: member for member in ctx.tx.all(statements.SUBTREE_OF_AGENT, **reach)}
        fresh = {key: member for key, member in below.items() if key not in concerned}
        covered |= below.keys()
        concerned |= fresh
        for outcome in ctx.tx.all(outcome_statements.OWNED_BELOW_AGENT, **reach):
            if outcome.owner_id in fresh:
                owned.setdefault(outcome.owner_id, []).append(outcome)
        for grant in ctx.tx.all(grant_statements.HELD_BELOW_AGENT, **reach):
            if grant.holder_id in fresh:
                held.setdefault(grant.holder_id, []).append(grant)
    chains: dict[AgentId, tuple[AgentId, ...]] = {}

    def chain(agent: AgentId) -> tuple[AgentId, ...]:
        """Like `Context.boss_chain`, with one query for each boss, not for each agent."""
        if agent not in chains:
            known = concerned.get(agent)
            chains[agent] = ()  # a cycle leads back here and stays empty
            if known is None or known.boss_id is None:
                chains[agent] = ctx.boss_chain(agent)
            else:
                above = chain(known.boss_id)
                whole = (agent, *above) if above else ()
                chains[agent] = whole if len(whole) <= DEEPEST_TREE else ()
        return chains[agent]

    facts: dict[tuple[str, str, str], shapes.FactShape] = {}

    def add(who: str, right: str, over: str, name: str, over_name: str) -> None:
        facts[who, right, over] = shapes.FactShape(
            who=who, who_name=name, right=right, over=over, over_name=over_name
        )

    def add_person(user: UserId | None, right: str, over: Agent) -> None:
        if user is not None:
            add(f"user:{user}", right, over.id, lookup.user_name(ctx, user, user), over.name)

    names = {agent.id: agent.name for agent in concerned.values()}

    def name_of(agent: AgentId) -> str:
        if agent not in names:
            names[agent] = lookup.name_of(ctx, agent)
        return names[agent]

    for agent in concerned.values():
        if agent.status is AgentStatus.TERMINATED:
            continue
        add_person(agent.boss_user_id, "is boss of", agent)
        for depth, boss in enumerate(chain(agent.id)[1:]):
            add(boss, "supervises", agent.id, name_of(boss), agent.name)
            if depth == 0:
                add(boss, "is boss of", agent.id, name_of(boss), agent.name)
        add_person(agent.seat_user_id, "acts as", agent)
        for outcome in owned.get(agent.id, ()):
            add(agent.id, "owns", outcome.id, agent.name, outcome.title)
            if outcome.delegated and outcome.delegator_id is not None:
                judge = outcome.delegator_id
                add(judge, "judges", outcome.id, name_of(judge), outcome.title)
        for grant in held.get(agent.id, ()):
            right = "holds" if grant.mode is Mode.ALLOW else f"holds ({grant.mode.value})"
            what = f"{grant.resource} {grant.level.word}"
            add(agent.id, right, what, agent.name, what)
    return Map(set(concerned).difference(bosses) | set(agents), set(bosses), facts)
