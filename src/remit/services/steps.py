"""The small steps a reorganisation consists of, each with the way back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remit.errors import Conflict
from remit.ids import AgentId, UserId
from remit.model.agent import Agent
from remit.model.outcome import Outcome, OutcomeStatus
from remit.model.text import name_key
from remit.services import finishing, outcomes, tree
from remit.services.command import Context
from remit.store import agents as statements
from remit.store import outcomes as outcome_statements

Step = dict[str, Any]


class Steps:
    """What was done, in order. Every step is plain data, so that an event can keep it."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._done: list[Step] = []

    @classmethod
    def from_json(cls, ctx: Context, steps: Sequence[Step]) -> Steps:
        found = cls(ctx)
        found._done = list(steps)
        return found

    def as_json(self) -> list[Step]:
        return self._done

    def agents(self) -> set[AgentId]:
        return {AgentId(step["agent"]) for step in self._done if "agent" in step}

    def move(self, agent: Agent, boss: Agent | None) -> None:
        """Another boss; what the old one delegated to the agent is judged by the new one."""
        user = None if boss else self._ctx.actor.user_id
        self._place(
            agent.id,
            (agent.boss_id, agent.boss_user_id),
            (boss.id if boss else None, user),
        )
        for outcome in self._ctx.tx.all(outcome_statements.DELEGATED_TO, owner=agent.id):
            if outcome.delegator_id == agent.boss_id:
                self._delegator(outcome.id, agent.boss_id, boss.id if boss else None)

    def seat(self, agent: Agent, adapter: str, config: str, user: UserId | None) -> None:
        was = [agent.adapter_type, agent.adapter_config, agent.seat_user_id]
        self._seat(agent.id, was, [adapter, config, user])

    def change_owner(self, outcome: Outcome, owner: Agent) -> None:
        self._owner(outcome.id, outcome.owner_id, owner.id)

    def add_edge(self, parent: str, child: str) -> None:
        if outcomes.has_edge(self._ctx, parent, child):
            return
        outcomes.connect(self._ctx, parent, child)
        self._done.append({"step": "connect", "parent": parent, "child": child})

    def remove_edge(self, parent: str, child: str) -> None:
        outcomes.disconnect(self._ctx, parent, child)
        self._done.append({"step": "disconnect", "parent": parent, "child": child})

    def created(self, agent: Agent) -> None:
        self._done.append({"step": "create", "agent": agent.id})

    def terminate(self, agent: Agent) -> None:
        finishing.deactivate(self._ctx, self._now(agent.id))
        self._done.append({"step": "terminate", "agent": agent.id})

    def close(self, outcome: Outcome) -> None:
        finishing.finish_one(
            self._ctx,
            outcome,
            OutcomeStatus.CLOSED,
            {"note": "the layer was removed", "evidence": [], "by": self._ctx.actor.address},
        )
        self._ctx.record(
            "outcome.close", f"outcome:{outcome.id}", {"note": "the layer was removed"}
        )
        self._done.append({"step": "close", "outcome": outcome.id})

    def undo(self) -> Steps:
        """Go back step by step; refuses when something was changed since."""
        back = Steps(self._ctx)
        for step in reversed(self._done):
            back._undo_one(step)
        return back

    def _undo_one(self, step: Step) -> None:
        match step["step"]:
            case "place":
                self._place(step["agent"], tuple(step["to"]), tuple(step["from"]))
            case "delegator":
                self._delegator(step["outcome"], step["to"], step["from"])
            case "owner":
                self._owner(step["outcome"], step["to"], step["from"])
            case "seat":
                self._seat(step["agent"], step["to"], step["from"])
            case "connect":
                self.remove_edge(step["parent"], step["child"])
            case "disconnect":
                self.add_edge(step["parent"], step["child"])
            case "close":
                found = outcomes.require(self._ctx, step["outcome"])
                finishing.reopen_outcome(self._ctx, found, keep_owner=True)
                self._done.append({"step": "reopen", "outcome": step["outcome"]})
            case "reopen":
                self.close(outcomes.require(self._ctx, step["outcome"]))
            case "terminate":
                self._reinstate(step["agent"])
            case "create" | "reinstate":
                agent = self._now(step["agent"])
                self.close(outcomes.require(self._ctx, agent.id))
                self.terminate(agent)

    def _reinstate(self, agent_id: str) -> None:
        agent = self._now(agent_id)
        taken = self._ctx.tx.one(
            statements.LIVING_AGENT_BY_NAME,
            company=self._ctx.company,
            name_key=name_key(agent.name),
        )
        if taken is not None:
            raise Conflict(f"The name {agent.name} was given away since.", "Rename that agent.")
        tree.reinstate(self._ctx, agent)
        self._done.append({"step": "reinstate", "agent": agent_id})

    def _place(self, agent: str, was: tuple[Any, Any], to: tuple[Any, Any]) -> None:
        now = self._now(agent)
        self._expect((now.boss_id, now.boss_user_id), was, now.name)
        self._ctx.tx.run(
            statements.MOVE_AGENT,
            agent=agent,
            new_boss=to[0],
            new_boss_user=to[1],
            now=self._ctx.now,
        )
        tree.take_place(self._ctx, agent, to[0], to[1])
        self._done.append({"step": "place", "agent": agent, "from": list(was), "to": list(to)})

    def _seat(self, agent: str, was: Sequence[Any], to: Sequence[Any]) -> None:
        now = self._now(agent)
        self._expect([now.adapter_type, now.adapter_config, now.seat_user_id], list(was), now.name)
        self._ctx.tx.run(
            statements.SEAT_AGENT,
            agent=agent,
            new_adapter=to[0],
            new_config=to[1],
            new_seat=to[2],
            now=self._ctx.now,
        )
        self._done.append({"step": "seat", "agent": agent, "from": list(was), "to": list(to)})

    def _delegator(self, outcome: str, was: str | None, to: str | None) -> None:
        found = outcomes.require(self._ctx, outcome)
        self._expect(found.delegator_id, was, found.title)
        self._ctx.tx.run(
            outcome_statements.CHANGE_DELEGATOR,
            outcome=outcome,
            new_delegator=to,
            now=self._ctx.now,
        )
        self._done.append({"step": "delegator", "outcome": outcome, "from": was, "to": to})

    def _owner(self, outcome: str, was: str, to: str) -> None:
        found = outcomes.require(self._ctx, outcome)
        self._expect(found.owner_id, was, found.title)
        self._ctx.tx.run(
            outcome_statements.CHANGE_OWNER, outcome=outcome, new_owner=to, now=self._ctx.now
        )
        self._done.append({"step": "owner", "outcome": outcome, "from": was, "to": to})

    def _expect(self, now: object, was: object, what: str) -> None:
        if now != was:
            raise Conflict(f"{what} was changed since.", "Look at the tree, then move by hand.")

    def _now(self, agent: str) -> Agent:
        found = self._ctx.tx.one(statements.AGENT, company=self._ctx.company, agent=agent)
        assert found is not None, "agents are never deleted"
        return found
