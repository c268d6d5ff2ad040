"""An agent's configuration: its adapter, settings and instructions, as numbered revisions."""

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from remit.clock import Micros
from remit.ids import AgentId, ApprovalId, CompanyId, RevisionId, UserId
from remit.model.organisation.agent import Agent
from remit.model.organisation.agent_spec import CONFIGURED, AgentSpec
from remit.model.organisation.principal import Principal

#: External keys of a configuration.
CONFIG_KEYS = tuple(field.key for field in CONFIGURED)


RevisionSource = StrEnum("RevisionSource", "CREATE CHANGE PROPOSAL ROLLBACK RESUBMIT SEAT")


@dataclass(frozen=True, slots=True)
class ConfigRevision:
    id: RevisionId
    company_id: CompanyId
    agent_id: AgentId
    number: int
    #: JSON text of the whole configuration.
    config: str
    #: JSON text: the keys that differ from the revision before.
    changed_keys: str
    source: RevisionSource
    approval_id: ApprovalId | None
    created_by_agent_id: AgentId | None
    created_by_user_id: UserId | None
    created_at: Micros


def revision_of(
    agent: Agent,
    id_: RevisionId,
    source: RevisionSource,
    by: Principal,
    at: Micros,
    *,
    before: dict[str, Any] | None = None,
    approval: ApprovalId | None = None,
) -> ConfigRevision:
    """Return the current configuration of an agent as a revision; `before` is the previous one."""
    now = configuration_of(agent)
    return ConfigRevision(
        id=id_,
        company_id=agent.company_id,
        agent_id=agent.id,
        number=agent.config_revision,
        config=json.dumps(now),
        changed_keys=json.dumps(list(CONFIG_KEYS) if before is None else changed(before, now)),
        source=source,
        approval_id=approval,
        created_by_agent_id=by.agent_id,
        created_by_user_id=by.user_id,
        created_at=at,
    )


def configuration_of(agent: AgentSpec) -> dict[str, Any]:
    """Return an agent's configuration with its secrets."""
    return {field.key: field.shown(getattr(agent, field.name)) for field in CONFIGURED}


#: Settings that name a secret, or an address that Remit itself calls: with the task and a token, or
#: with a model's key that the worker has and the agent does not see.
_LENDING = frozenset(
    {"secretRef", "secret_ref", "url", "cancelUrl", "cancel_url", "baseUrl", "base_url"}
)


def lends_secret(new: dict[str, Any], old: dict[str, Any] | None = None) -> bool:
    """Return whether a configuration newly decides about a secret: names one, or the address where
    one is sent, with a changed adapter or changed settings."""
    settings = new["adapterConfig"]
    if not any(settings.get(name) for name in _LENDING):
        return False
    return old is None or _runs_another(new, old)


def _runs_another(new: dict[str, Any], old: dict[str, Any]) -> bool:
    return any(old[key] != new[key] for key in ("adapterType", "adapterConfig"))


#: Sandbox setting that gives a program the whole machine.
FULL = "full"


def is_for_people(new: dict[str, Any], old: dict[str, Any] | None = None) -> bool:
    """Return whether only people may decide about a configuration: it decides about a secret, or
    gives a program the whole machine, or says what such a program is."""
    full = new["adapterConfig"].get("sandbox") == FULL
    return lends_secret(new, old) or (full and (old is None or _runs_another(new, old)))


def changed(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    return [key for key in CONFIG_KEYS if old.get(key) != new.get(key)]


def changed_paths(old: Any, new: Any, above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths at which two documents differ, as deep as both are objects."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return [] if old == new else [above]
    return [
        path
        for key in [*old, *(key for key in new if key not in old)]
        for path in changed_paths(old.get(key), new.get(key), (*above, str(key)))
    ]


def value_at(document: Any, keys: tuple[str, ...]) -> Any:
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document
