"""Note after a set-up: whether the agent could work where the instance runs."""

from collections.abc import Mapping
from typing import Any

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Session
from remit.errors import RemitError

#: Adapters that need no program and no key.
_ALWAYS = ("human", "scripted")


def tell(session: Session, agent: Mapping[str, Any]) -> None:
    """Warn about a missing program, key or option now, not when the first mail arrives."""
    type_ = agent.get("adapterType")
    if type_ is None or type_ in _ALWAYS:
        return
    target = session.under_company("adapters", type_, "test-environment")
    try:
        check = session.client.send("POST", target, {"agentId": agent["id"]})
    except RemitError:
        return  # it is set up; a caller who may not test it gets no warning
    if not check["usable"]:
        warn(agent["name"], check)


def warn(name: str, check: Mapping[str, Any]) -> None:
    output.note(f"warning: {name} cannot work yet: {check['sentence']}")
    output.note(f"  next: {check['nextStep']}")
