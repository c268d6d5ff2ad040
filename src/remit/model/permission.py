"""What an agent is permitted beyond its mandate, and the four levels that bundle it.

A level is a preset over the one capability model: it sets the hiring permission and gives action
capabilities. Nothing asks for a level when it decides; it asks for the permission or capability.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from remit.errors import BadInput
from remit.model.grant import APPROVAL_DECIDE, FULL_ACCESS, INSTANCE_CONFIGURE

CAN_CREATE_AGENTS = "canCreateAgents"


class PermissionLevel(StrEnum):
    RESTRICTED = "restricted"
    STANDARD = "standard"
    PRIVILEGED = "privileged"
    BOSS = "boss"


@dataclass(frozen=True, slots=True)
class Preset:
    #: None leaves it to the default: the CEO may, others may not.
    can_create_agents: bool | None
    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()


PRESETS: dict[PermissionLevel, Preset] = {
    PermissionLevel.RESTRICTED: Preset(
        can_create_agents=False, denied=(FULL_ACCESS, INSTANCE_CONFIGURE, APPROVAL_DECIDE)
    ),
    PermissionLevel.STANDARD: Preset(can_create_agents=None),
    PermissionLevel.PRIVILEGED: Preset(can_create_agents=True),
    PermissionLevel.BOSS: Preset(
        can_create_agents=True, allowed=(APPROVAL_DECIDE, INSTANCE_CONFIGURE)
    ),
}


def permission_level(text: object) -> PermissionLevel:
    try:
        return PermissionLevel(text)  # type: ignore[arg-type]  # anything else is the error we report
    except ValueError:
        known = ", ".join(level.value for level in PermissionLevel)
        raise BadInput(f"permissionLevel must be one of {known}.", "Choose one of these.") from None


def permissions(given: object) -> str:
    """The stored form of permissions: the hiring permission, or nothing."""
    if given is None:
        return "{}"
    if not isinstance(given, dict):
        raise BadInput("permissions must be an object.", f"Send {{{CAN_CREATE_AGENTS!r}: true}}.")
    for key in given:
        if key != CAN_CREATE_AGENTS:
            raise BadInput(
                f"permissions.{str(key)[:40]}: is not known.", f"Known is {CAN_CREATE_AGENTS}."
            )
    value = given.get(CAN_CREATE_AGENTS)
    if value is None:
        return "{}"
    if not isinstance(value, bool):
        raise BadInput(
            f"permissions.{CAN_CREATE_AGENTS}: must be true or false.", "Send a boolean."
        )
    return json.dumps({CAN_CREATE_AGENTS: value})


def can_create_agents(stored: str) -> bool | None:
    """What was said about hiring; None when nothing was."""
    if stored == "{}":
        return None
    value: Any = json.loads(stored).get(CAN_CREATE_AGENTS)
    return value if isinstance(value, bool) else None
