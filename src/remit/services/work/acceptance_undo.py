"""Undo of an acceptance: the agents that it terminated are restored, with the outcomes that it
closed.

They keep their ids and places, are paused if they were, and get back their grants, waits,
schedules, mail, background jobs and bindings; credentials and sessions are new. The answer
names the rest with the reason.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from remit.errors import BadInput, Conflict
from remit.ids import UserId, short
from remit.model.organisation.agent import OPERATIONAL, Agent, AgentStatus
from remit.model.text import plural
from remit.model.work.outcome import Outcome, OutcomeStatus
from remit.model.work.wait import WaitKind
from remit.services import lookup, shapes
from remit.services.command import Context
from remit.services.connections import bindings, outbox
from remit.services.execution import jobs
from remit.services.messaging import escalation, inbox
from remit.services.organisation import tree
from remit.services.rights import grants
from remit.services.shape_basics import JsonObject
from remit.services.spending import ledger
from remit.services.work import outcome_ending, waits
from remit.store.execution import runs as run_statements
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import grants as grant_statements
from remit.store.record import events as event_log
from remit.store.work import outcomes as statements


@dataclass
class Restored:
    agents: list[Agent] = field(default_factory=list)
    #: Agents that stay terminated, by name, and why.
    left_out: dict[str, str] = field(default_factory=dict)
    #: Other things that were restored, and how many of each.
    things: Counter[str] = field(default_factory=Counter)
    #: Things of these agents that stay ended, a sentence each.
    lost: list[str] = field(default_factory=list)

    def has(self, agent: str) -> bool:
        return any(row.id == agent for row in self.agents)

    def as_dict(self) -> shapes.RestorationShape:
        return {
            "agents_restored": [{"id": agent.id, "name": agent.name} for agent in self.agents],
            "not_restored": [{"name": name, "why": why} for name, why in self.left_out.items()],
            "things_restored": dict(self.things),
            "stays_ended": self.lost,
        }


def take_back(ctx: Context, outcome: Outcome) -> Restored:
    """Reopen a finished outcome, and restore everything that ended because it was accepted."""
    restored = Restored()
    was_accepted = outcome.status is OutcomeStatus.COMPLETED
    verdict = _details(ctx, f"outcome:{outcome.id}", "outcome.complete") if was_accepted else {}
    _bring_back_agents(ctx, verdict.get("agents_were", {}), restored)
    outcome_ending.reopen_outcome(ctx, outcome, keep_owner=restored.has(outcome.owner_id))
    if restored.agents:
        lost = [*verdict["revoked"], *_reopen_parts(ctx, outcome, verdict["closed"], restored)]
        for agent in restored.agents:
            _give_mandate_back(ctx, agent, outcome)
            lost += _details(ctx, f"agent:{agent.id}", "agent.terminate")["revoked"]
        _give_again(ctx, lost)
        for agent in restored.agents:
            _bring_back_things(ctx, agent, restored)
    return restored


def _bring_back_things(ctx: Context, agent: Agent, restored: Restored) -> None:
    """Restore the things that ended with an agent and were not touched since."""
    details = _details(ctx, f"agent:{agent.id}", "agent.terminate")
    ended = details.get("ended", {})
    kept_from: dict[str, str | None] = {}
    for binding, kind in ended.get("bindings", {}).items():
        kept_from[f"Its {kind} binding"] = why = bindings.bind_again(ctx, agent, binding)
        restored.things["bindings"] += why is None
    for message in ended.get("unsent", ()):
        restored.things["unsent"] += outbox.unbury(ctx, message)
    for message in ended.get("letters", ()):
        restored.things["letters"] += inbox.unbury(ctx, agent.id, message)
    for schedule, at in ended.get("schedules", {}).items():
        restored.things["schedules"] += ctx.tx.run(
            mail_statements.GO_ON_WITH_SCHEDULE, schedule=schedule, agent=agent.id, new_next=at
        )
    for job in ended.get("jobs", ()):
        kept_from[f"Its background job {short(job)}"] = why = jobs.take_up_again(ctx, agent, job)
        restored.things["jobs"] += why is None
    for wait in ended.get("waits", ()):
        restored.things["waits"] += _wait_again(ctx, agent, wait)
    restored.things = +restored.things
    restored.lost += [
        f"{agent.name}: {what} stays ended: {why}." for what, why in kept_from.items() if why
    ]
    if count := details.get("withdrawn"):
        requests = plural(count, "request")
        restored.lost.append(
            f"{agent.name}: {requests} for approval stay{'s' * (count == 1)} withdrawn."
        )


def _wait_again(ctx: Context, agent: Agent, was: Mapping[str, Any]) -> bool:
    """Begin a wait of a restored agent again; returns whether anybody can still answer it."""
    kind, subject = WaitKind(was["kind"]), str(was["subject"])
    awaited = lookup.agent_row(ctx, was["agent"] or "")
    is_gone = awaited is not None and awaited.status is AgentStatus.TERMINATED
    about = [
        outcome
        for outcome_id in was["outcomes"]
        if (outcome := ctx.tx.one(statements.OUTCOME, outcome=outcome_id)) is not None
        and outcome.status is OutcomeStatus.OPEN
        and outcome.owner_id == agent.id
    ]
    if kind in (WaitKind.APPROVAL, WaitKind.SUBMISSION) or (kind is WaitKind.REPLY and is_gone):
        return False
    if kind is WaitKind.QUESTION and not ctx.tx.run(
        mail_statements.ASK_AGAIN, question=subject, agent=agent.id
    ):
        return False
    wait = waits.begin(
        ctx,
        kind,
        subject,
        agent.id,
        to_agent=awaited.id if awaited is not None else None,
        to_user=UserId(was["user"]) if was["user"] else None,
        about=None if was.get("desk") else about,
    )
    if is_gone:
        above = escalation.next_above(ctx, wait)
        escalation.pass_on(ctx, wait, above, f"{waits.awaited(ctx, wait)} works here no more.")
    elif kind is WaitKind.QUESTION:
        # The letter with the question was settled when its asker ended.
        why = f"{agent.name} works again, and still wants to know."
        escalation.pass_on(ctx, wait, wait.awaited_agent_id, why, user=wait.awaited_user_id)
    return True


def _details(ctx: Context, resource: str, action: str) -> JsonObject:
    """Return the details of the last event of an action on a resource."""
    event = ctx.tx.one(event_log.LAST_OF, resource=resource, action=action)
    known: JsonObject = {} if event is None else json.loads(event.details)
    return known


def _bring_back_agents(ctx: Context, were: Mapping[str, str], restored: Restored) -> None:
    ended = [agent for agent_id in were if (agent := lookup.agent_row(ctx, agent_id)) is not None]
    # Bosses first: no agent is restored below one that is still terminated.
    for agent in sorted(ended, key=lambda ended_agent: len(ctx.boss_chain(ended_agent.id))):
        was = AgentStatus(were[agent.id])
        if agent.status is not AgentStatus.TERMINATED or was not in OPERATIONAL:
            continue
        why = _why_not(ctx, agent)
        if why is not None:
            restored.left_out[agent.name] = why
            continue
        ctx.tx.run(run_statements.FORGET_SESSION, agent=agent.id)
        tree.reinstate(ctx, agent, paused=was is AgentStatus.PAUSED)
        working = lookup.known_agent(ctx, agent.id)
        ledger.open_accounts(ctx, working)
        restored.agents.append(working)


def _why_not(ctx: Context, agent: Agent) -> str | None:
    if tree.is_purged(ctx, agent):
        return "it was purged since"
    if lookup.living_agent(ctx, agent.name):
        return "another agent has its name by now"
    if agent.boss_id is None:
        return None
    boss = lookup.known_agent(ctx, agent.boss_id)
    try:
        tree.check_boss(ctx, boss)
    except (Conflict, BadInput) as error:
        return error.sentence.rstrip(".")
    return None


def _reopen_parts(
    ctx: Context, outcome: Outcome, closed: Sequence[str], restored: Restored
) -> list[str]:
    """Reopen the parts that were closed along and not touched since; returns the grants that had
    ended with them."""
    lost: list[str] = []
    for part_id in closed:
        part = ctx.tx.one(statements.OUTCOME, outcome=part_id)
        if part is None:
            continue  # the mandate of an agent that was never hired, deleted with it
        if part.status is OutcomeStatus.CLOSED and part.finished_at == outcome.finished_at:
            lost += _details(ctx, f"outcome:{part.id}", "outcome.close").get("revoked", ())
            outcome_ending.reopen_along(
                ctx, part, f"reopened with {outcome.title}", keep_owner=restored.has(part.owner_id)
            )
    return lost


def _give_mandate_back(ctx: Context, agent: Agent, accepted: Outcome) -> None:
    """Give an agent its mandate back, even if somebody above took it over meanwhile."""
    mandate = lookup.known_outcome(ctx, agent.id)  # every agent has a mandate
    if mandate.status is not OutcomeStatus.OPEN:
        outcome_ending.reopen_along(ctx, mandate, f"reopened with {accepted.title}")
    if mandate.owner_id != agent.id:
        tree.hand_over(ctx, mandate.id, agent.id, delegated=True, delegator=agent.boss_id)


def _give_again(ctx: Context, lost: Sequence[str]) -> None:
    """Restore the grants that ended with the acceptance, as far as they could be given now."""
    again: dict[str, str] = {}
    for grant_id in sorted(set(lost)):
        # Grants are never deleted.
        was = ctx.tx.existing(grant_statements.GRANT_ANYWHERE, grant=grant_id)
        new = grants.give_again(ctx, was, again.get(was.parent_id or ""))
        if new is not None:
            again[was.id] = new.id
