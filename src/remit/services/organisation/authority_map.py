"""Map of authority: who supervises, judges, owns or holds what, so that a change shows as gains and
losses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from remit.ids import AgentId
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
        concerned[boss] = ctx.tx.existing(statements.AGENT, agent=boss)  # bosses are never deleted
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
    chains = _Chains(ctx, concerned)
    facts: dict[tuple[str, str, str], shapes.FactShape] = {}

    def add(who: str, right: str, over: str, name: str, over_name: str) -> None:
        facts[who, right, over] = {
            "who": who,
            "who_name": name,
            "right": right,
            "over": over,
            "over_name": over_name,
        }

    names = {agent.id: agent.name for agent in concerned.values()}

    def name_of(agent: AgentId) -> str:
        if agent not in names:
            names[agent] = lookup.name_of(ctx, agent)
        return names[agent]

    for agent in concerned.values():
        if agent.status is AgentStatus.TERMINATED:
            continue
        if agent.boss_user_id is not None:
            boss_user = agent.boss_user_id
            add(
                f"user:{boss_user}",
                "is boss of",
                agent.id,
                lookup.user_name(ctx, boss_user, boss_user),
                agent.name,
            )
        for depth, boss in enumerate(chains.above(agent)):
            add(boss, "supervises", agent.id, name_of(boss), agent.name)
            if depth == 0:
                add(boss, "is boss of", agent.id, name_of(boss), agent.name)
        if agent.seat_user_id is not None:
            seated = agent.seat_user_id
            add(
                f"user:{seated}",
                "acts as",
                agent.id,
                lookup.user_name(ctx, seated, seated),
                agent.name,
            )
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


class _Chains:
    """Chains of bosses above agents, cached: one query for each boss, not for each agent."""

    def __init__(self, ctx: Context, known: dict[AgentId, Agent]) -> None:
        self._ctx = ctx
        self._known = known
        self._found: dict[AgentId, tuple[AgentId, ...]] = {}

    def above(self, agent: Agent) -> tuple[AgentId, ...]:
        return self._place(agent.id)[1:]

    def _place(self, agent: AgentId) -> tuple[AgentId, ...]:
        """Like `Context.boss_chain`: empty if the tree has a cycle or is too deep."""
        if agent not in self._found:
            known = self._known.get(agent)
            self._found[agent] = ()  # a cycle leads back here and stays empty
            if known is None or known.boss_id is None:
                self._found[agent] = self._ctx.boss_chain(agent)
            else:
                above = self._place(known.boss_id)
                whole = (agent, *above) if above else ()
                self._found[agent] = whole if len(whole) <= DEEPEST_TREE else ()
        return self._found[agent]
