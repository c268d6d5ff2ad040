"""Warnings for an agent that cannot work on the instance's machine, with the missing set-up.

The agent is set up all the same: its worker may run on another machine, and what is missing can be
added.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from remit import threads
from remit.app import App
from remit.errors import RemitError
from remit.runtime.runs import checks

#: Adapters that need no set-up.
ALWAYS_WORK: Final = frozenset({"human", "scripted"})
#: Most agents of a file that are checked; each check may take seconds.
MOST_CHECKED: Final = 20

Warned = dict[str, Any]


async def of(app: App, adapter: object, config: object) -> Warned | None:
    """Return a warning about an agent with these settings; None if nothing is missing."""
    if not isinstance(adapter, str) or adapter in ALWAYS_WORK:
        return None
    settings = config if isinstance(config, Mapping) else None
    try:
        check = await threads.CHECKS.run(checks.check, adapter, settings, app.settings.home)
    except RemitError:
        return None  # invalid settings are refused when they are stored
    if check.usable:
        return None
    return {"sentence": check.sentence, "next_step": check.next_step}


async def of_hire(app: App, answer: dict[str, Any], described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a hire by an agent, with a warning if something is missing.

    Settings with a command are not checked: no program is started because an agent named it.
    """
    adapter, config = described.get("adapter_type"), described.get("adapter_config")
    # Without an adapter it has its boss's, and works as the boss does.
    may_check = adapter is not None and "command" not in (config or {})
    missing = await of(app, adapter, config) if may_check else None
    sentences = [answer["warning"]] if "warning" in answer else []
    if missing is not None:
        name = answer["agent"]["name"]
        step = f"Next: {missing['next_step']}"
        sentences.insert(0, f"{name} cannot work yet: {missing['sentence']} {step}")
    return {**answer, "warning": " ".join(sentences)} if sentences else answer


async def of_document(
    app: App, document: Mapping[str, Any], plan: Sequence[Mapping[str, Any]]
) -> list[Warned]:
    """Return warnings for the agents that a file creates or changes, if it names their adapter."""
    new = {
        entry["name"]
        for entry in plan
        if entry["kind"] == "agent" and entry["action"] in ("create", "change")
    }
    known: dict[str, Warned | None] = {}
    warned: list[Warned] = []
    for agent in document.get("agents", ()):
        if agent.get("name") not in new:
            continue
        setup = agent.get("adapterType"), agent.get("adapterConfig")
        key = json.dumps(setup, sort_keys=True, default=str)
        if key not in known:
            if len(known) >= MOST_CHECKED:
                continue
            known[key] = await of(app, *setup)
        warning = known[key]
        if warning is not None:
            warned.append({"agent": agent["name"], "about": "setup", **warning})
    return warned
