"""Reversible steps that a reorganisation consists of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from remit.errors import Conflict
from remit.ids import AgentId, UserId
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.configuration import RevisionSource, configuration_of
from remit.model.organisation.grant import Grant
from remit.model.work.outcome import Outcome, OutcomeStatus
from remit.services import lookup
from remit.services.command import Context
from remit.services.execution import waking
from remit.services.hiring import configuration
from remit.services.messaging import escalation
from remit.services.organisation import halts, tree
from remit.services.people import token_record
from remit.services.rights import grants
from remit.services.shape_basics import JsonObject
from remit.services.work import outcome_ending, outcomes
from remit.store.organisation import agents as statements
from remit.store.organisation import grants as grant_statements
from remit.store.work import outcomes as outcome_statements

Step = JsonObject


class Steps:
    """The steps of a reorganisation in order, as plain data that an event can store."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._done: list[Step] = []
        #: New grants by the revoked ones that they replace.
        self._again: dict[str, str] = {}

    @classmethod
    def from_json(cls, ctx: Context, steps: Sequence[Step]) -> Steps:
        restored = cls(ctx)
        restored._done = list(steps)
        return restored

    def as_json(self) -> list[Step]:
        return self._done

    def agents(self) -> set[AgentId]:
        return {AgentId(step["agent"]) for step in self._done if "agent" in step}

    def bosses(self) -> set[AgentId]:
        """Return the agents that outcomes were moved to or from."""
        return {
            AgentId(owner)
            for step in self._done
            if step["step"] == "owner"
            for owner in (step["from"][0], step["to"][0])
        }

    def move(self, agent: Agent, boss: Agent | None) -> None:
        """Put an agent below another boss, or at the root: its mandate becomes a part of the new
        boss's, who also judges what the former boss had delegated to it."""
        user = None if boss else self._ctx.actor.user_id
        if agent.boss_id is not None and outcomes.has_edge(self._ctx, agent.boss_id, agent.id):
            self.remove_edge(agent.boss_id, agent.id)
        self._place(
            agent.id, (agent.boss_id, agent.boss_user_id), (boss.id if boss else None, user)
        )
        for outcome in self._ctx.tx.all(outcome_statements.DELEGATED_TO, owner=agent.id):
            if outcome.delegator_id == agent.boss_id:
                self._delegator(outcome.id, agent.boss_id, boss.id if boss else None)
        if boss is not None:
            self.add_edge(boss.id, agent.id)

    def seat(self, agent: Agent, adapter: str, config: str, user: UserId | None) -> None:
        was = [agent.adapter_type, agent.adapter_config, agent.seat_user_id]
        self._seat(agent.id, was, [adapter, config, user])

    def take_over(self, outcome: Outcome, owner: Agent) -> None:
        was = [outcome.owner_id, outcome.delegated, outcome.delegator_id]
        self._owner(outcome.id, was, [owner.id, False, None])

    def keep_grants(self, layer: Agent) -> None:
        """Keep the grants that a leaving agent passed on, by linking them to the source of its
        own."""
        for grant in self._ctx.tx.all(grant_statements.GIVEN_BY, granter=layer.id):
            source = self._grant(grant.parent_id or "")
            if source.scope_id is not None:
                self._source(grant.id, _source_of(grant), _source_of(source))

    def add_edge(self, parent: str, child: str) -> None:
        if outcomes.has_edge(self._ctx, parent, child):
            return
        outcomes.connect(self._ctx, parent, child)
        self._done.append({"step": "connect", "parent": parent, "child": child})

    def remove_edge(self, parent: str, child: str) -> None:
        self._expect(outcomes.has_edge(self._ctx, parent, child), True, "The place of an outcome")
        outcomes.disconnect(self._ctx, parent, child)
        self._done.append({"step": "disconnect", "parent": parent, "child": child})

    def created(self, agent: Agent) -> None:
        self._done.append({"step": "create", "agent": agent.id})

    def terminate(self, agent: Agent) -> None:
        now = self._now(agent.id)
        revoked = outcome_ending.deactivate(self._ctx, now)
        self._done.append(
            {
                "step": "terminate",
                "agent": agent.id,
                "paused": now.status is AgentStatus.PAUSED,
                "revoked": revoked,
            }
        )

    def close(self, outcome: Outcome) -> None:
        verdict = outcome_ending.verdict_of(self._ctx, "the layer was removed")
        revoked = outcome_ending.finish_one(self._ctx, outcome, OutcomeStatus.CLOSED, verdict)
        self._ctx.record(
            "outcome.close", f"outcome:{outcome.id}", {"note": "the layer was removed"}
        )
        self._done.append({"step": "close", "outcome": outcome.id, "revoked": revoked})

    def undo(self) -> Steps:
        """Reverse the steps, the last one first; refuses if something was changed since."""
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
            case "source":
                self._source(step["grant"], step["to"], step["from"])
            case "regrant":
                self._revoke(step["grant"])
            case "revoke":
                self._give_again(step["revoked"])
            case "close":
                self._reopen(step["outcome"])
                self._give_again(step["revoked"])
            case "reopen":
                self.close(lookup.known_outcome(self._ctx, step["outcome"]))
            case "terminate":
                self._reinstate(step["agent"], paused=step["paused"])
                self._give_again(step["revoked"])
            case "reinstate":
                self.terminate(self._with_empty_hands(step["agent"]))
            case "create":
                agent = self._with_empty_hands(step["agent"])
                self.close(lookup.known_outcome(self._ctx, agent.id))
                self.terminate(agent)

    def _reopen(self, outcome_id: str) -> None:
        outcome = lookup.known_outcome(self._ctx, outcome_id)
        self._expect(outcome.status, OutcomeStatus.CLOSED, outcome.title)
        outcome_ending.reopen_along(self._ctx, outcome, "the layer came back")
        self._done.append({"step": "reopen", "outcome": outcome_id})

    def _reinstate(self, agent_id: str, *, paused: bool) -> None:
        agent = self._now(agent_id)
        self._expect(agent.status, AgentStatus.TERMINATED, agent.name)
        taken = lookup.living_agent(self._ctx, agent.name)
        if taken is not None:
            raise Conflict(f"The name {agent.name} was given away since.", "Rename that agent.")
        if agent.boss_id is not None:
            tree.check_boss(self._ctx, self._now(agent.boss_id))
        tree.reinstate(self._ctx, agent, paused=paused)
        self._done.append({"step": "reinstate", "agent": agent_id})

    def _with_empty_hands(self, agent_id: str) -> Agent:
        """Return an agent that is about to be terminated; refuses one that got work or reports."""
        agent = self._now(agent_id)
        owned = self._ctx.tx.all(
            outcome_statements.OWNED_BY, owner=agent_id, after="", limit=outcome_ending.MOST_AT_ONCE
        )
        busy = any(
            outcome.status is OutcomeStatus.OPEN and outcome.id != agent_id for outcome in owned
        )
        if busy or self._ctx.tx.one(statements.LIVING_REPORT, agent=agent_id) is not None:
            raise Conflict(
                f"{agent.name} has work or reports by now.", "Look at the tree, then move by hand."
            )
        return agent

    def _source(self, grant: str, was: Sequence[Any], to: Sequence[Any]) -> None:
        now = self._grant(grant)
        source = self._again.get(str(to[0]), to[0])
        if _source_of(now) != list(was) or now.revoked_at is not None:
            return  # somebody changed this grant since
        if source is not None and self._grant(source).revoked_at is not None:
            return
        self._ctx.tx.run(
            grant_statements.SET_SOURCE,
            grant=grant,
            new_parent=source,
            new_agent=to[1],
            new_user=to[2],
        )
        self._done.append(
            {"step": "source", "grant": grant, "from": list(was), "to": [source, *to[1:]]}
        )

    def _give_again(self, revoked: Sequence[str]) -> None:
        """Restore the grants that were revoked along, as far as they could be given now."""
        for old in sorted(revoked):
            was = self._grant(old)
            new = grants.give_again(self._ctx, was, self._again.get(was.parent_id or ""))
            if new is not None:
                self._again[old] = new.id
                self._done.append({"step": "regrant", "grant": new.id})

    def _revoke(self, grant: str) -> None:
        gone = self._ctx.tx.all(grant_statements.REVOKE_WITH_DERIVED, grant=grant)
        self._done.append({"step": "revoke", "revoked": sorted(gone)})

    def _place(self, agent: str, was: tuple[Any, Any], to: tuple[Any, Any]) -> None:
        now = self._now(agent)
        self._expect((now.boss_id, now.boss_user_id), was, now.name)
        self._expect(now.status is AgentStatus.TERMINATED, False, now.name)
        if to[0] is not None:
            tree.check_move(self._ctx, now, self._now(to[0]))
        self._ctx.tx.run(statements.MOVE_AGENT, agent=agent, new_boss=to[0], new_boss_user=to[1])
        tree.take_place(self._ctx, agent, to[0], to[1])
        halts.arrived(self._ctx, agent)
        escalation.boss_changed(self._ctx, agent, was[0])
        self._done.append({"step": "place", "agent": agent, "from": list(was), "to": list(to)})

    def _seat(self, agent: str, was: Sequence[Any], to: Sequence[Any]) -> None:
        now = self._now(agent)
        self._expect([now.adapter_type, now.adapter_config, now.seat_user_id], list(was), now.name)
        # The person who held the seat must not act for the agent any more.
        outcome_ending.stop(self._ctx, now)
        token_record.end_of(self._ctx, agent=agent)
        self._ctx.tx.run(
            statements.SEAT_AGENT, agent=agent, new_adapter=to[0], new_config=to[1], new_seat=to[2]
        )
        configuration.keep(self._ctx, self._now(agent), RevisionSource.SEAT, configuration_of(now))
        waking.look_now(self._ctx, now.id)
        waking.wake_afresh(self._ctx, agent, "somebody else sits there now")
        self._done.append({"step": "seat", "agent": agent, "from": list(was), "to": list(to)})

    def _delegator(self, outcome_id: str, was: str | None, to: str | None) -> None:
        outcome = lookup.known_outcome(self._ctx, outcome_id)
        self._expect(outcome.delegator_id, was, outcome.title)
        self._ctx.tx.run(outcome_statements.CHANGE_DELEGATOR, outcome=outcome_id, new_delegator=to)
        self._done.append({"step": "delegator", "outcome": outcome_id, "from": was, "to": to})

    def _owner(self, outcome_id: str, was: Sequence[Any], to: Sequence[Any]) -> None:
        outcome = lookup.known_outcome(self._ctx, outcome_id)
        self._expect(
            [outcome.owner_id, outcome.delegated, outcome.delegator_id], list(was), outcome.title
        )
        self._expect(self._now(to[0]).status is AgentStatus.TERMINATED, False, outcome.title)
        tree.hand_over(self._ctx, outcome_id, to[0], delegated=to[1], delegator=to[2])
        self._done.append(
            {"step": "owner", "outcome": outcome_id, "from": list(was), "to": list(to)}
        )

    def _expect(self, now: object, was: object, what: str) -> None:
        if now != was:
            raise Conflict(f"{what} was changed since.", "Look at the tree, then move by hand.")

    def _now(self, agent_id: str) -> Agent:
        return lookup.known_agent(self._ctx, agent_id)

    def _grant(self, grant_id: str) -> Grant:
        # Grants are never deleted.
        return self._ctx.tx.existing(grant_statements.GRANT_ANYWHERE, grant=grant_id)


def _source_of(grant: Grant) -> list[Any]:
    return [grant.parent_id, grant.granted_by_agent, grant.granted_by_user]
