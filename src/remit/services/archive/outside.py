"""Authority that an archive has in it and an import does not take over."""

import json
from dataclasses import replace

from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.grant import RIGHTS_OVER_MACHINE, Mode, ResourceKind
from remit.model.organisation.permission import policy
from remit.services.acceptance import machine_rights
from remit.services.archive.plan import Plan


def leave_out(plan: Plan) -> None:
    """Take all rights over the machine out of a plan, and note them there. Former configurations
    lose them, too, so that none comes back with an earlier revision."""
    _policy(plan)
    for id_, agent in plan.agents.items():
        kept, gone = machine_rights.without(json.loads(agent.adapter_config), agent.name)
        if gone:
            plan.agents[id_] = replace(agent, adapter_config=json.dumps(kept))
            if agent.status is not AgentStatus.TERMINATED:
                plan.left_out += gone
    for revision_id, revision in plan.configurations.items():
        config = json.loads(revision.config)
        if isinstance(config["adapterConfig"], dict):
            kept, gone = machine_rights.without(config["adapterConfig"], "")
            if gone:
                config = json.dumps({**config, "adapterConfig": kept})
                plan.configurations[revision_id] = replace(revision, config=config)
    _grants(plan)


def _policy(plan: Plan) -> None:
    levels = policy(plan.company.permission_policy)
    edited = {}
    for level, preset in levels.edited.items():
        allowed, gone = machine_rights.of_policy(preset.allowed, level.value)
        edited[level] = replace(preset, allowed=tuple(allowed))
        plan.left_out += gone
    stored = replace(levels, edited=edited).stored()
    plan.company = replace(plan.company, permission_policy=stored)


def _grants(plan: Plan) -> None:
    """A denial stays: it gives nothing."""
    for id_, grant in list(plan.grants.items()):
        if (
            grant.kind is ResourceKind.ACTION
            and grant.resource_id in RIGHTS_OVER_MACHINE
            and grant.mode is not Mode.DENY
        ):
            del plan.grants[id_]
            plan.left_out.append(machine_rights.of_grant(plan.agents[grant.holder_id].name))
