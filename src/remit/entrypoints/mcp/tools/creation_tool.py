"""`create_agent`: a helper with a fixed form of answers, created after a person approved it.

Every result is one JSON object with the same five keys in the same order:

    {"status", "name", "agentId", "approvalId", "message"}

`status` is `created`, `denied`, `pending_approval` or `error`; in the last three there is no agent.
Only unreadable arguments are refused as with any other tool, before a person is asked.
"""

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, Final

from pydantic import Field, model_validator

from remit.app import App
from remit.entrypoints.mcp.arguments import Repeatable, tool
from remit.entrypoints.mcp.registry import KEY, Tool
from remit.errors import AwaitsApproval, RemitError
from remit.model.organisation.approval import OPEN, ApprovalStatus
from remit.services.governance import approvals
from remit.services.hiring import helper_creation
from remit.services.identity import Caller
from remit.services.people import users

#: Longest wait for a decision while a person is connected. Clients give up after a minute.
LONGEST_WAIT_SECONDS: Final = 50.0
_POLL_SECONDS: Final = 0.5

#: Misspellings of models, and their meaning.
ALIASES: Final = {
    "auto-reply": "autoReply",
    "auto_reply": "autoReply",
    "next agent": "nextAgent",
    "next-agent": "nextAgent",
    "next_agent": "nextAgent",
}


class CreateAgentArguments(Repeatable):
    name: Annotated[str, Field(max_length=64)]
    role: Annotated[str | None, Field(description="Its task, in a sentence")] = None
    auto_reply: Annotated[
        bool | None, Field(alias="autoReply", description="Answer without a mention; yes")
    ] = None
    next_agent: Annotated[
        str | None,
        Field(alias="nextAgent", description="Its receiver; human", max_length=100),
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _canonical(cls, arguments: Any) -> Any:
        """Replace aliases by the canonical name, unless that is given, too."""
        if not isinstance(arguments, dict):
            return arguments
        known = {key: value for key, value in arguments.items() if key not in ALIASES}
        for alias, name in ALIASES.items():
            if alias in arguments:
                known.setdefault(name, arguments[alias])
        return known


def build(
    app: App, attached: Callable[[str], int], *, longest_wait: float = LONGEST_WAIT_SECONDS
) -> tuple[Tool, ...]:
    async def create_agent(caller: Caller, arguments: CreateAgentArguments) -> dict[str, Any]:
        """Create a helper that only answers mail, once a person said yes. For work: delegate with
        hire."""
        name = arguments.name
        description = {"role": None} | arguments.model_dump(exclude_none=True, exclude={KEY})
        try:
            return _created(await app.gate(caller, helper_creation.create_agent, **description))
        except AwaitsApproval as waits:
            approval = str(waits.details["approval_id"])
        except RemitError as error:
            return _not_created(name, error)
        decided = await _wait_for_somebody(caller, approval)
        if decided is not None and decided["status"] == ApprovalStatus.APPROVED:
            return _created(decided["result"], approval)  # carried out by the approval itself
        return _undone(name, approval, decided)

    async def _wait_for_somebody(caller: Caller, approval: str) -> dict[str, Any] | None:
        """Wait for a decision while a person is connected; None if none comes in time."""
        company = (await app.gate(caller, users.me))["company_id"]
        left = longest_wait
        while company is not None and left > 0 and attached(company):
            await asyncio.sleep(min(_POLL_SECONDS, left))
            left -= _POLL_SECONDS
            try:
                request = await app.gate(caller, approvals.show, approval=approval)
            except RemitError:
                return None  # the agent that asked is gone, too
            if request["status"] != ApprovalStatus.PENDING:
                return request
        return None

    return (tool(create_agent),)


def result(
    status: str, name: str, agent: str | None, approval: str | None, message: str
) -> dict[str, Any]:
    return {
        "status": status,
        "name": name,
        "agentId": agent,
        "approvalId": approval,
        "message": message,
    }


def _created(answer: dict[str, Any], approval: str | None = None) -> dict[str, Any]:
    agent = answer["agent"]
    message = f"Agent {agent['name']} was created."
    return result("created", agent["name"], agent["id"], approval, message)


def _not_created(name: str, error: RemitError) -> dict[str, Any]:
    status = "denied" if error.reason == "rejected" else "error"
    approval = error.details.get("approval_id")
    message = f"Agent {name} was not created: {error.sentence}"
    return result(status, name, None, approval, message)


def _undone(name: str, approval: str, decided: dict[str, Any] | None) -> dict[str, Any]:
    if decided is None or decided["status"] in OPEN:
        message = f"Agent {name} was not created: a person has to say yes first."
        return result("pending_approval", name, None, approval, message)
    note = f" {decided['decision_note']}" if decided["decision_note"] else ""
    message = f"Agent {name} was not created: the request was {decided['status']}.{note}"
    return result("denied", name, None, approval, message)
