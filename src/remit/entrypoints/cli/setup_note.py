"""Note after a set-up: whether the agent could work where the instance runs."""

from collections.abc import Mapping
from typing import Any

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Session
from remit.errors import RemitError

#: These need nothing.
_ALWAYS = ("human", "scripted")


def tell(session: Session, agent: Mapping[str, Any]) -> None:
    """A missing program, key or option is said now, and not when the first mail has come."""
    type_ = agent.get("adapterType")
    if type_ is None or type_ in _ALWAYS:
        return
    target = session.under_company("adapters", type_, "test-environment")
    try:
        found = session.client.send("POST", target, {"agentId": agent["id"]})
    except RemitError:
        return  # it is set up; whoever may not try it out is told by whoever may
    if not found["usable"]:
        warn(agent["name"], found)


def warn(name: str, found: Mapping[str, Any]) -> None:
    output.note(f"warning: {name} cannot work yet: {found['sentence']}")
    output.note(f"  next: {found['nextStep']}")
