"""The tool that delegates an outcome.

The other tools for outcomes are declared with their verbs; this one may also hire, and warns of a
missing set-up of the new agent.
"""

from typing import Annotated, Any

from pydantic import Field

from remit.app import App
from remit.entrypoints import setup_warnings
from remit.entrypoints.described_agent import describing
from remit.entrypoints.mcp.arguments import Arguments, Repeatable, of_helper, tool
from remit.entrypoints.mcp.registry import Tool
from remit.model.organisation.agent_spec import SHORT
from remit.services.identity import Caller
from remit.services.work import delegation

OutcomeRef = Annotated[str, Field(description="Outcome id", max_length=64)]


@describing(SHORT, of_helper)
class Hire(Arguments):
    reason: Annotated[str, Field(max_length=2_000)] = ""


class Grant(Arguments):
    resource: Annotated[str, Field(max_length=120)]
    level: Annotated[str, Field(max_length=10)]
    expires_at: Annotated[str | None, Field(max_length=40)] = None


class Budget(Arguments):
    money_cents: int | None = None
    tokens: int | None = None


class DelegateArguments(Repeatable):
    outcome_id: OutcomeRef
    to: Annotated[str | None, Field(description="A report of yours", max_length=80)] = None
    hire: Annotated[Hire | None, Field(description="Or a new agent for it")] = None
    grants: Annotated[
        list[Grant],
        Field(
            description="Capabilities for it; they end with it",
            max_length=100,
            default_factory=list,
        ),
    ]
    budget: Annotated[Budget | None, Field(description="Set aside for it, out of your budget")] = (
        None
    )


def build(app: App) -> tuple[Tool, ...]:
    gate = app.gate

    async def delegate(caller: Caller, arguments: DelegateArguments) -> dict[str, Any]:
        """Hand an outcome and what is below it to a report (to), or to a new agent for just that
        (hire). For a lasting post: hire_agent."""
        hire = None if arguments.hire is None else arguments.hire.model_dump()
        answer = await gate(
            caller,
            delegation.delegate,
            outcome=arguments.outcome_id,
            to=arguments.to,
            hire=hire,
            given=[grant.model_dump() for grant in arguments.grants],
            budget=arguments.budget.model_dump() if arguments.budget else None,
        )
        return await setup_warnings.of_hire(app, answer, hire or {})

    return (tool(delegate),)
