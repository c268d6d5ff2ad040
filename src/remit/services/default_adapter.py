"""What runs an agent when nobody said it: what runs its boss, or else the first that can be used.

A person is nobody's default. Below a seat that a person holds, the next above it counts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from remit.model.agent import HUMAN, Agent
from remit.services import lookup
from remit.services.command import Context

#: Access to the whole machine is granted to one agent at a time.
_OWN = "sandbox"


def fill_in(ctx: Context, described: Mapping[str, Any], boss: Agent | None) -> dict[str, Any]:
    """The description with an adapter; one that is taken over comes with its settings, unless
    others are given."""
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
    """The nearest, from the boss upwards, that a program runs."""
    while boss is not None and boss.adapter_type == HUMAN:
        boss = lookup.agent_row(ctx, boss.boss_id) if boss.boss_id else None
    return boss
