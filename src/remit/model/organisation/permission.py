"""Permissions of an agent beyond its mandate, and the four levels that bundle them.

A level sets the hiring permission and gives action capabilities. Besides, `boss` is authority: over
agents below it, most of what a board member may do (`remit.authority.boss`). The levels of a
company are its `permission_policy`: shipped as presets, edited by the board.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from remit.errors import BadInput
from remit.model.organisation.grant import ACTIONS, APPROVAL_DECIDE, FULL_ACCESS, INSTANCE_CONFIGURE
from remit.model.text import one_of

CAN_CREATE_AGENTS = "canCreateAgents"
#: A permission of another system, whose clients send it.
CAN_ASSIGN_TASKS = "canAssignTasks"


PermissionLevel = StrEnum("PermissionLevel", "RESTRICTED STANDARD PRIVILEGED BOSS")


#: Reach of an agent's authority like a board member's. BELOW: agents below it. COMPANY: all agents
#: except itself and those above it.
Reach = StrEnum("Reach", "NOBODY BELOW COMPANY")


@dataclass(frozen=True, slots=True)
class Preset:
    """Rights that a level bundles."""

    #: None: the default, by which only the CEO may.
    can_create_agents: bool | None
    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    governs: Reach = Reach.NOBODY

    def as_dict(self) -> dict[str, Any]:
        return {
            CAN_CREATE_AGENTS: self.can_create_agents,
            "allow": list(self.allowed),
            "deny": list(self.denied),
            "governs": self.governs.value,
        }


PRESETS: dict[PermissionLevel, Preset] = {
    PermissionLevel.RESTRICTED: Preset(
        can_create_agents=False, denied=(FULL_ACCESS, INSTANCE_CONFIGURE, APPROVAL_DECIDE)
    ),
    PermissionLevel.STANDARD: Preset(can_create_agents=None),
    PermissionLevel.PRIVILEGED: Preset(can_create_agents=True),
    PermissionLevel.BOSS: Preset(
        can_create_agents=True, allowed=(APPROVAL_DECIDE, INSTANCE_CONFIGURE), governs=Reach.BELOW
    ),
}


@dataclass(frozen=True, slots=True)
class Policy:
    """Permission levels of one company; unedited levels are the presets."""

    #: Number of changes.
    version: int
    edited: Mapping[PermissionLevel, Preset]

    def __getitem__(self, level: PermissionLevel) -> Preset:
        return self.edited.get(level, PRESETS[level])

    def with_level(self, level: PermissionLevel, preset: Preset) -> Policy:
        others = {known: settings for known, settings in self.edited.items() if known is not level}
        changed = {} if preset == PRESETS[level] else {level: preset}
        return Policy(self.version + 1, {**others, **changed})

    def stored(self) -> str:
        """Serialise for the company's row; an empty object if it was never changed."""
        if not self.version:
            return "{}"
        levels = {
            level.value: settings.as_dict() for level, settings in sorted(self.edited.items())
        }
        return json.dumps({"version": self.version, "levels": levels})


def policy(stored: str) -> Policy:
    """Parse the text of `Policy.stored`."""
    document: dict[str, Any] = json.loads(stored)
    levels = {
        PermissionLevel(name): preset(
            PermissionLevel(name), PRESETS[PermissionLevel(name)], settings
        )
        for name, settings in document.get("levels", {}).items()
    }
    return Policy(document.get("version", 0), levels)


def preset(level: PermissionLevel, now: Preset, settings: object) -> Preset:
    """Return a level with some settings replaced; BadInput for invalid ones."""
    if not isinstance(settings, Mapping):
        raise BadInput(f"{level.value}: must be an object.", f"Known: {', '.join(LEVEL_SETTINGS)}.")
    for key in settings:
        if key not in LEVEL_SETTINGS:
            raise BadInput(
                f"{level.value}.{str(key)[:40]}: is not known.",
                f"Known: {', '.join(LEVEL_SETTINGS)}.",
            )
    new = now
    if CAN_CREATE_AGENTS in settings:
        new = replace(new, can_create_agents=_maybe_flag(settings[CAN_CREATE_AGENTS]))
    if "allow" in settings:
        new = replace(new, allowed=_actions(settings["allow"], "allow"))
    if "deny" in settings:
        new = replace(new, denied=_actions(settings["deny"], "deny"))
    if "governs" in settings:
        new = replace(new, governs=one_of(Reach, settings["governs"], "governs"))
    both = sorted(set(new.allowed) & set(new.denied))
    if both:
        raise BadInput(
            f"{both[0]} cannot be allowed and denied at once.", "Name it in one of the two lists."
        )
    if new.governs is not Reach.NOBODY and level is not PermissionLevel.BOSS:
        raise BadInput(
            f"Agents with the level {level.value} govern nobody.",
            "Only the level boss has a say over others.",
        )
    return new


#: The settings of a level.
LEVEL_SETTINGS = (CAN_CREATE_AGENTS, "allow", "deny", "governs")


def _maybe_flag(value: object) -> bool | None:
    if value is None or isinstance(value, bool):
        return value
    raise BadInput(
        f"{CAN_CREATE_AGENTS}: must be true, false or null.", "Null: the CEO may, others may not."
    )


def _actions(value: object, field: str) -> tuple[str, ...]:
    known = ", ".join(sorted(ACTIONS))
    if not isinstance(value, list | tuple) or not all(isinstance(entry, str) for entry in value):
        raise BadInput(f"{field}: must be a list of actions.", f"Actions are {known}.")
    for action in value:
        if action not in ACTIONS:
            raise BadInput(f"{field}: {action[:40]!r} is not an action.", f"Actions are {known}.")
    return tuple(dict.fromkeys(value))


def permission_level(text: object) -> PermissionLevel:
    return one_of(PermissionLevel, text, "permissionLevel")


def refuse_assigning(permission: object) -> None:
    """Refuse another system's permission to assign tasks, unless it is false: here that right
    follows from owning an outcome and from the tree."""
    if permission is not None and permission is not False:
        raise BadInput(
            f"{CAN_ASSIGN_TASKS}: there is no such permission here.",
            "Leave it out: who owns an outcome delegates it to those who report to it.",
        )
