"""Consistency checks of an export: a tree, a graph without cycles, narrowing grants.

The services keep these invariants step by step; an import has to check them all at once.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from remit.authority import covers
from remit.clock import Micros
from remit.errors import BadInput
from remit.ids import AgentId, FileId, OutcomeId
from remit.model.organisation.agent import DEEPEST_TREE, Agent, AgentStatus
from remit.model.organisation.grant import IN_BACKGROUND, Grant, Mode, ResourceKind
from remit.model.text import name_key
from remit.model.work.file import FileKind
from remit.model.work.outcome import OutcomeStatus
from remit.services.archive import governance, mail
from remit.services.archive.layout import meta_path, outcome_path
from remit.services.archive.plan import Plan, in_order, known


def check(plan: Plan, now: Micros) -> None:
    """Refuse an inconsistent plan, and compute what follows from it."""
    _check_agents(plan)
    _check_outcomes(plan)
    _check_files(plan)
    _check_grants(plan, now)
    mail.check(plan)
    governance.check(plan)
    _count_prerequisites(plan)


def bosses_first(plan: Plan) -> list[Agent]:
    above = {agent.id: filter(None, [agent.boss_id]) for agent in plan.agents.values()}
    return [plan.agents[agent_id] for agent_id in in_order(above)]


def parents_first(plan: Plan) -> list[Grant]:
    above = {grant.id: filter(None, [grant.parent_id]) for grant in plan.grants.values()}
    return [plan.grants[grant_id] for grant_id in in_order(above)]


def _check_agents(plan: Plan) -> None:
    names: dict[str, str] = {}
    for agent in plan.agents.values():
        where = plan.where[agent.id]
        known(agent.boss_id, plan.agents, where, "boss")
        if OutcomeId(agent.id) not in plan.outcomes:
            raise BadInput(f"{where}: its mandate, outcomes/{agent.id}.md, is missing.")
        for name, file_id, kind in (
            ("state_file", agent.state_file_id, FileKind.STATE),
            ("log_file", agent.log_file_id, FileKind.LOG),
        ):
            book = plan.files.get(file_id)
            if book is None or book.file.kind is not kind or book.file.home_agent_id != agent.id:
                raise BadInput(f"{where}: {name} is not a {kind.value} of this agent.")
        if agent.status is not AgentStatus.TERMINATED:
            other = names.setdefault(name_key(agent.name), where)
            if other != where:
                raise BadInput(f"{where}: has the name of {other}.")
    for place in plan.places:
        known(place.boss_id, plan.agents, plan.where[place.agent_id], "a former boss")
    _check_tree(plan)


def _check_tree(plan: Plan) -> None:
    depth: dict[AgentId, int] = {}
    for agent in bosses_first(plan):
        depth[agent.id] = 1 + (depth[agent.boss_id] if agent.boss_id else 0)
        if depth[agent.id] > DEEPEST_TREE:
            raise BadInput(
                f"{plan.where[agent.id]}: the tree is more than {DEEPEST_TREE} agents deep."
            )
    for agent_id in plan.agents.keys() - depth.keys():
        raise BadInput(f"{plan.where[agent_id]}: its bosses go round in a circle.")


def _check_outcomes(plan: Plan) -> None:
    for outcome in plan.outcomes.values():
        where = outcome_path(outcome.id)
        known(outcome.owner_id, plan.agents, where, "owner")
        known(outcome.delegator_id, plan.agents, where, "delegator")
        for parent in plan.parents[outcome.id]:
            known(parent, plan.outcomes, where, "a parent")
        for blocker in plan.blockers[outcome.id]:
            known(blocker, plan.outcomes, where, "what it is blocked by")
        is_open = outcome.status is OutcomeStatus.OPEN
        if is_open != (outcome.finished_at is None):
            raise BadInput(f"{where}: finished_at belongs to what is finished, and only there.")
        if is_open and outcome.verdict is not None:
            raise BadInput(f"{where}: has a verdict and is open.")
        if outcome.perpetual and outcome.status is OutcomeStatus.COMPLETED:
            raise BadInput(f"{where}: is perpetual, so it cannot be completed.")
        if outcome.delegator_id is not None and not outcome.delegated:
            raise BadInput(f"{where}: has a delegator and is not delegated.")
        document = plan.files.get(FileId(outcome.id))
        if document is None or document.file.kind is not FileKind.OUTCOME:
            raise BadInput(f"{where}: its document, files/{outcome.id}/meta.toml, is missing.")
    # A part has to come before the outcome that waits for it, for children and blockers alike.
    waits: dict[OutcomeId, list[OutcomeId]] = {id_: [] for id_ in plan.outcomes}
    for child, parents in plan.parents.items():
        for parent in parents:
            waits[parent].append(child)
    for outcome_id, blockers in plan.blockers.items():
        waits[outcome_id] += blockers
    for outcome_id in sorted(plan.outcomes.keys() - set(in_order(waits))):
        raise BadInput(f"{outcome_path(outcome_id)}: is part of outcomes that wait for each other.")


def _check_files(plan: Plan) -> None:
    states = {agent.state_file_id for agent in plan.agents.values()}
    logs = {agent.log_file_id for agent in plan.agents.values()}
    kept = states | logs | {FileId(outcome_id) for outcome_id in plan.outcomes}
    for stored in plan.files.values():
        file, where = stored.file, meta_path(stored.file.id)
        known(file.home_agent_id, plan.agents, where, "home")
        for version in stored.versions:
            known(version.agent_id, plan.agents, where, "an author")
        expected = {
            FileKind.OUTCOME: OutcomeId(file.id) in plan.outcomes,
            FileKind.STATE: file.id in states,
            FileKind.LOG: file.id in logs,
            FileKind.FILE: file.id not in kept,
        }
        if not expected[file.kind]:
            raise BadInput(f"{where}: is not the {file.kind.value} of anything here.")


def _check_grants(plan: Plan, now: Micros) -> None:
    held: dict[tuple[str, ResourceKind, str], list[Grant]] = {}
    for grant in plan.grants.values():
        where = plan.where[grant.id]
        known(grant.holder_id, plan.agents, where, "holder")
        known(grant.granted_by_agent, plan.agents, where, "granted_by")
        known(grant.parent_id, plan.grants, where, "parent")
        if grant.scope_id is not None:
            known(grant.scope_id, plan.outcomes, where, "scope")
            if plan.outcomes[grant.scope_id].status is not OutcomeStatus.OPEN:
                raise BadInput(f"{where}: its scope is finished, so it has ended.")
        _check_resource(plan, grant, where)
        _check_source(plan, grant, where)
        held.setdefault((grant.holder_id, grant.kind, grant.resource_id), []).append(grant)
    for grant in plan.grants.values():
        if grant.parent_id is not None:
            mine = held[(plan.grants[grant.parent_id].holder_id, grant.kind, grant.resource_id)]
            if grant.live(now) and not covers(mine, grant, now):
                raise BadInput(f"{plan.where[grant.id]}: exceeds what its granter holds.")
    if len(parents_first(plan)) != len(plan.grants):
        raise BadInput("grants.jsonl: some grants rest on each other.")
    plan.grants = {
        live_grant.id: live_grant for live_grant in plan.grants.values() if live_grant.live(now)
    }


def _check_resource(plan: Plan, grant: Grant, where: str) -> None:
    known: Mapping[ResourceKind, Iterable[str]] = {
        ResourceKind.KB_FILE: plan.files,
        ResourceKind.OUTCOME: plan.outcomes,
        ResourceKind.MESSAGE: {*plan.agents, IN_BACKGROUND},
    }
    if grant.kind in known and grant.resource_id not in known[grant.kind]:
        raise BadInput(f"{where}: {grant.resource} is not here.")


def _check_source(plan: Plan, grant: Grant, where: str) -> None:
    """Check that a grant by an agent is not wider than its parent."""
    if (grant.parent_id is None) != (grant.granted_by_agent is None):
        raise BadInput(f"{where}: what an agent gives comes from a grant that it holds.")
    if grant.parent_id is None:
        return
    source = plan.grants[grant.parent_id]
    if source.holder_id != grant.granted_by_agent or source.resource != grant.resource:
        raise BadInput(f"{where}: its parent is not a grant of its granter on the same resource.")
    wider = (
        grant.level > source.level
        or source.mode is Mode.DENY
        or (source.mode is Mode.ASK and grant.mode is Mode.ALLOW)
    )
    if source.expires_at is not None:
        wider |= grant.expires_at is None or grant.expires_at > source.expires_at
    if wider:
        raise BadInput(f"{where}: exceeds its parent.")


def _count_prerequisites(plan: Plan) -> None:
    is_open = {
        outcome.id for outcome in plan.outcomes.values() if outcome.status is OutcomeStatus.OPEN
    }
    waiting = {
        blocked: sum(blocker in is_open for blocker in blockers)
        for blocked, blockers in plan.blockers.items()
    }
    for child in is_open:
        for parent in plan.parents[child]:
            waiting[parent] += 1
    for outcome_id, count in waiting.items():
        plan.outcomes[outcome_id] = replace(plan.outcomes[outcome_id], open_prereqs=count)
