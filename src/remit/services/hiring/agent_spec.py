"""Descriptions of agents from outside: validated, with the settings checked by their adapter."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from remit.adapters import registry
from remit.errors import BadInput
from remit.model.organisation.agent import HUMAN, Agent
from remit.model.organisation.agent_spec import CONFIGURED, FIELDS, AgentSpec, document
from remit.model.organisation.configuration import configuration_of
from remit.services import lookup
from remit.services.command import Context

#: Access to the whole machine is granted to each agent by itself, so it is not inherited.
_OWN = "sandbox"


def read(described: Mapping[str, object]) -> AgentSpec:
    """Validate the description of a new agent, by field names; None is the default."""
    unknown = described.keys() - FIELDS.keys()
    if unknown:
        known = ", ".join(sorted(field.key for field in CONFIGURED))
        raise BadInput(f"hire has an unknown field {min(unknown)[:40]!r}.", f"Known: {known}.")
    description = {name: value for name, value in described.items() if value is not None}
    return _checked({name: description.get(name, field.default) for name, field in FIELDS.items()})


def _checked(described: Mapping[str, object]) -> AgentSpec:
    kind = adapter(described.get("adapter_type"))
    spec = AgentSpec(**{name: field.checked(described.get(name)) for name, field in FIELDS.items()})
    registry.read(kind, json.loads(spec.adapter_config))
    return spec


def new(ctx: Context, described: Mapping[str, object], boss: Agent | None) -> AgentSpec:
    """Validate the description of a new agent, with the adapter inherited from its boss."""
    return read(with_adapter(ctx, described, boss))


def with_adapter(
    ctx: Context, described: Mapping[str, object], boss: Agent | None
) -> dict[str, object]:
    """Return the description with an adapter: unless it names one, the adapter of its boss, with
    the boss's settings unless others are given, or else the first adapter that is usable here."""
    if described.get("adapter_type") is not None:
        return dict(described)
    model = _above(ctx, boss)
    if model is None:
        return {**described, "adapter_type": ctx.usable_adapter}
    settings = described.get("adapter_config")
    if settings is None:
        settings = {
            key: value for key, value in json.loads(model.adapter_config).items() if key != _OWN
        }
    return {**described, "adapter_type": model.adapter_type, "adapter_config": settings}


def _above(ctx: Context, boss: Agent | None) -> Agent | None:
    """Return the nearest agent, from the boss upwards, that a program runs; people are skipped."""
    while boss is not None and boss.adapter_type == HUMAN:
        boss = lookup.agent_row(ctx, boss.boss_id) if boss.boss_id else None
    return boss


def from_configuration(config: Mapping[str, Any]) -> AgentSpec:
    """Validate a stored configuration again, as a description."""
    return _checked({field.name: config.get(field.key) for field in CONFIGURED})


def settled(config: Mapping[str, Any]) -> dict[str, object]:
    """Return a configuration as it would be stored: validated, with defaults for null and
    blanks."""
    return configuration_of(from_configuration(config))


def adapter_types() -> Iterable[str]:
    """The adapters that can run an agent here."""
    return registry.types()


def adapter(text: object) -> str:
    if not isinstance(text, str) or text not in registry.types():
        known = ", ".join(sorted(registry.types()))
        raise BadInput(f"adapterType must be one of {known}.", "Choose one of these adapters.")
    return text


def adapter_settings(kind: str, config: object) -> str:
    """Validate settings with the adapter's own model."""
    text = document({} if config is None else config, "adapterConfig")
    registry.read(kind, json.loads(text))
    return text
