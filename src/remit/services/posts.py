"""A post: what is known of an agent before it has a place, checked and in its stored form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from remit.adapters import registry
from remit.errors import BadInput
from remit.model.agent import Agent, AgentRole, agent_name
from remit.model.configuration import configuration_of
from remit.model.permission import permissions as checked_permissions
from remit.model.text import clean_line, clean_text

LONGEST_TITLE = 100
LONGEST_PROMPT = 50_000
LONGEST_CAPABILITIES = 10_000
LARGEST_CONFIG = 64 * 1024
LARGEST_BUDGET = 10**12


@dataclass(frozen=True, slots=True)
class Post:
    name: str
    role: AgentRole
    title: str
    capabilities: str
    prompt: str
    adapter_type: str
    adapter_config: str
    runtime_config: str
    budget_monthly_cents: int | None
    budget_monthly_tokens: int | None
    metadata: str
    permissions: str


def new_post(
    *,
    name: object,
    role: object = "general",
    title: object = "",
    capabilities: object = "",
    prompt: object = "",
    adapter_type: object,
    adapter_config: object = None,
    runtime_config: object = None,
    budget_monthly_cents: object = None,
    budget_monthly_tokens: object = None,
    metadata: object = None,
    permissions: object = None,
) -> Post:
    kind = adapter(adapter_type)
    return Post(
        name=agent_name(name),
        role=agent_role(role),
        title=clean_line(
            "" if title is None else title, "title", longest=LONGEST_TITLE, empty_ok=True
        ),
        capabilities=clean_text(
            "" if capabilities is None else capabilities,
            "capabilities",
            longest=LONGEST_CAPABILITIES,
            empty_ok=True,
        ),
        prompt=clean_text(
            "" if prompt is None else prompt, "prompt", longest=LONGEST_PROMPT, empty_ok=True
        ),
        adapter_type=kind,
        adapter_config=adapter_settings(kind, adapter_config),
        runtime_config=document(runtime_config, "runtimeConfig"),
        budget_monthly_cents=budget(budget_monthly_cents),
        budget_monthly_tokens=budget(budget_monthly_tokens, "budgetMonthlyTokens"),
        metadata=document(metadata, "metadata"),
        permissions=checked_permissions(permissions),
    )


#: How the fields of a post are called where it is described from outside.
FIELDS = {
    "name": "name",
    "role": "role",
    "title": "title",
    "capabilities": "capabilities",
    "prompt": "prompt",
    "adapterType": "adapter_type",
    "adapterConfig": "adapter_config",
    "runtimeConfig": "runtime_config",
    "budgetMonthlyCents": "budget_monthly_cents",
    "budgetMonthlyTokens": "budget_monthly_tokens",
    "metadata": "metadata",
}


def from_configuration(config: Mapping[str, Any]) -> Post:
    """A post as a configuration describes it, checked again."""
    return new_post(**{ours: config.get(theirs) for theirs, ours in FIELDS.items()})


def settled(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration as it would be stored: checked, and with what null and blanks stand for."""
    post = from_configuration(config)
    stored = {theirs: getattr(post, ours) for theirs, ours in FIELDS.items()}
    for key in ("adapterConfig", "runtimeConfig", "metadata"):
        stored[key] = json.loads(stored[key])
    return {**stored, "role": post.role.value}


def hire_payload(
    agent: Agent,
    *,
    requested_by: str | None,
    outcome: str | None = None,
    grants: list[dict[str, Any]] | None = None,
) -> dict[str, Any]:
    """What is approved when an agent is hired: who, where, with which configuration and rights."""
    return {
        "agentId": agent.id,
        "requestedByAgentId": requested_by,
        "name": agent.name,
        "role": agent.role.value,
        "title": agent.title,
        "reportsTo": agent.boss_id,
        "outcomeId": outcome,
        "permissions": json.loads(agent.permissions),
        "grants": grants or [],
        "requestedConfigurationSnapshot": configuration_of(agent),
    }


def agent_role(text: object) -> AgentRole:
    try:
        return AgentRole(text)  # type: ignore[arg-type]  # anything else is the error we report
    except ValueError:
        known = ", ".join(role.value for role in AgentRole)
        raise BadInput(f"role must be one of {known}.", "Choose one of these roles.") from None


def adapter_types() -> Iterable[str]:
    """What can run an agent here."""
    return registry.types()


def adapter(text: object) -> str:
    if not isinstance(text, str) or text not in registry.types():
        known = ", ".join(sorted(registry.types()))
        raise BadInput(f"adapterType must be one of {known}.", "Choose one of these adapters.")
    return text


def adapter_settings(kind: str, config: object) -> str:
    """Settings as the adapter's own model takes them."""
    text = document(config, "adapterConfig")
    registry.validate(kind, json.loads(text))
    return text


def document(value: object, field: str) -> str:
    """A JSON object of somebody else's, bounded."""
    if value is None:
        return "{}"
    if not isinstance(value, Mapping):
        raise BadInput(f"{field}: must be an object.", f"Send {field} as a JSON object.")
    text = json.dumps(dict(value), ensure_ascii=True)
    if len(text) > LARGEST_CONFIG:
        raise BadInput(
            f"{field} is larger than {LARGEST_CONFIG // 1024} KiB.", "Keep long texts in files."
        )
    return text


def budget(value: object, field: str = "budgetMonthlyCents") -> int | None:
    """Whole cents, or whole tokens; nothing means no limit."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= LARGEST_BUDGET:
        what = "cents" if field.endswith("Cents") else "tokens"
        raise BadInput(f"{field}: must be a whole number of {what}, 0 or more.", "Send an integer.")
    return value
