"""Says when an agent is set up that it cannot work where the instance runs, and what is missing.

It is set up all the same: its worker may be another machine, and what is missing can be added.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from remit import threads
from remit.app import App
from remit.errors import RemitError
from remit.runtime.runs import checks

#: These need nothing.
ALWAYS_WORK: Final = frozenset({"human", "scripted"})
#: Of a file with many agents; each of them may take seconds.
MOST_CHECKED: Final = 20

Warned = dict[str, Any]


async def of(app: App, adapter: object, config: object) -> Warned | None:
    """Missing set-up of an agent with these settings; None when nothing is."""
    if not isinstance(adapter, str) or adapter in ALWAYS_WORK:
        return None
    settings = config if isinstance(config, Mapping) else None
    try:
        found = await threads.CHECKS.run(checks.check, adapter, settings, app.settings.home)
    except RemitError:
        return None  # settings that are wrong are refused by whoever keeps them
    if found.usable:
        return None
    return {"sentence": found.sentence, "next_step": found.next_step}


async def of_hire(app: App, answer: dict[str, Any], described: Mapping[str, Any]) -> dict[str, Any]:
    """Answer to an agent that hired somebody, with a warning if there is one.

    No program is started here because an agent named it.
    """
    adapter, config = described["adapter_type"], described.get("adapter_config")
    if "command" in (config or {}):
        return answer
    found = await of(app, adapter, config)
    if found is None:
        return answer
    name = answer["agent"]["name"]
    said = f"{name} cannot work yet: {found['sentence']} Next: {found['next_step']}"
    return {**answer, "warning": said}


async def of_document(
    app: App, document: Mapping[str, Any], plan: Sequence[Mapping[str, Any]]
) -> list[Warned]:
    """For the agents that a file creates or changes, and whose adapter it names."""
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
        asked = agent.get("adapterType"), agent.get("adapterConfig")
        key = json.dumps(asked, sort_keys=True, default=str)
        if key not in known:
            if len(known) >= MOST_CHECKED:
                continue
            known[key] = await of(app, *asked)
        found = known[key]
        if found is not None:
            warned.append({"agent": agent["name"], **found})
    return warned
