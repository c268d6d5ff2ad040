"""Rights over the machine in what comes from outside: they are left out, and named.

They are given to an agent on one machine by a person who knows that machine. A file that was
written elsewhere, or by somebody else, gives none.
"""

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from remit.model.organisation.configuration import FULL
from remit.model.organisation.grant import FULL_ACCESS, RIGHTS_OVER_MACHINE

#: Settings of adapters with the value that gives a program the machine, or that holds only once it
#: has the machine. In the sandbox, leaving them out changes nothing.
_SETTINGS: Final = {
    "sandbox": FULL,
    "codexSandbox": "danger-full-access",
    "codex_sandbox": "danger-full-access",
    "permissionMode": "bypassPermissions",
    "permission_mode": "bypassPermissions",
}
_FOLDER: Final = "cwd"


def without(
    config: Mapping[str, Any], agent: str, has: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], list[str]]:
    """Return the settings of an adapter without rights over the machine, and what was left out;
    what the agent `has` already stays."""
    has = has or {}
    gone = [
        name
        for name, value in config.items()
        if _SETTINGS.get(name) == value and has.get(name) != value
    ]
    kept = {name: value for name, value in config.items() if name not in gone}
    if "sandbox" in gone and _leaves_workspace(kept.get(_FOLDER)):
        gone.append(_FOLDER)  # it is refused in the sandbox
        del kept[_FOLDER]
    return kept, [_setting(agent, name, config[name]) for name in gone]


def of_policy(
    actions: Iterable[str], level: str, has: Sequence[str] = ()
) -> tuple[list[str], list[str]]:
    """Return the actions that a level allows, without those over the machine."""
    actions = list(actions)
    gone = [action for action in actions if action in RIGHTS_OVER_MACHINE and action not in has]
    kept = [action for action in actions if action not in gone]
    return kept, [
        f"{action} of the level {level}; allow it yourself with "
        f"`remit company policy set {level} --allow {action}`"
        for action in gone
    ]


def of_grant(agent: str) -> str:
    return (
        f"{FULL_ACCESS} of {agent}; grant it yourself with "
        f"`remit grant give {agent} {FULL_ACCESS} use`"
    )


def _setting(agent: str, name: str, value: object) -> str:
    shown = json.dumps(value, ensure_ascii=False)
    setting = shlex.quote(f"adapterConfig.{name}={value if isinstance(value, str) else shown}")
    return f"{name} {shown} of {agent}; set it yourself with `remit agent set {agent} {setting}`"


def _leaves_workspace(folder: object) -> bool:
    if not isinstance(folder, str):
        return False
    steps = folder.replace("\\", "/")
    return steps.startswith(("/", "~")) or ".." in steps.split("/")
