"""The tool for budgets, listed for agents whose spending is limited."""

from typing import Annotated, Any

from pydantic import Field

from remit.app import App
from remit.entrypoints.mcp.arguments import Repeatable, tool
from remit.entrypoints.mcp.registry import Tool
from remit.services.governance import approvals
from remit.services.identity import Caller
from remit.services.spending import budgets

Amount = Annotated[int | None, Field(ge=0, le=10**12)]


class BudgetArguments(Repeatable):
    agent: Annotated[str | None, Field(description="Somebody below you", max_length=80)] = None
    monthly_cents: Annotated[Amount, Field(description="Ask for this much a month instead")] = None
    monthly_tokens: Amount = None
    why: Annotated[str, Field(max_length=2_000)] = ""


def build(app: App) -> tuple[Tool, ...]:
    async def budget(caller: Caller, arguments: BudgetArguments) -> dict[str, Any]:
        """Your budget of this month and its rest; or ask the board for more."""
        amounts = {
            "budgetMonthlyCents": arguments.monthly_cents,
            "budgetMonthlyTokens": arguments.monthly_tokens,
        }
        wanted = {key: value for key, value in amounts.items() if value is not None}
        if wanted:
            return await app.gate(
                caller,
                approvals.request,
                company=None,
                kind="budget",
                payload={**wanted, "agentId": arguments.agent, "why": arguments.why},
            )
        if arguments.agent is None:
            return await app.gate(caller, budgets.mine)
        return await app.gate(caller, budgets.show, agent=arguments.agent)

    return (tool(budget, offer="budget"),)
