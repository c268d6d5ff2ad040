"""Tools for work: outcomes, handing them over, and the log of what was done."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from remit.app import App
from remit.entrypoints import setup_warnings
from remit.entrypoints.mcp.arguments import Arguments, Repeatable
from remit.entrypoints.mcp.registry import Tool
from remit.services import agents, delegation, graph, outcomes, submitting
from remit.services.identity import Caller

OutcomeRef = Annotated[str, Field(description="Outcome id", max_length=64)]
Text = Annotated[str, Field(max_length=100_000)]
Refs = Annotated[list[Annotated[str, Field(max_length=64)]], Field(max_length=50)]


class ViewArguments(Arguments):
    id: OutcomeRef


class SubtreeArguments(Arguments):
    id: OutcomeRef
    depth: Annotated[int | None, Field(ge=0, le=100)] = None


class ListArguments(Arguments):
    owner: Annotated[
        str | None, Field(description="Somebody below you instead of you", max_length=80)
    ] = None
    status: Literal["open", "completed", "closed"] | None = None
    actionable: Annotated[bool, Field(description="Only what can be worked on now")] = False
    after: Annotated[str, Field(max_length=36)] = ""
    limit: Annotated[int, Field(ge=1, le=500)] = 100


class _Fields(Repeatable):
    parents: Annotated[Refs | None, Field(description="What it is for")] = None
    blocked_by: Annotated[Refs | None, Field(description="What it waits for")] = None
    urgent: bool | None = None
    important: bool | None = None
    deferred_until: Annotated[str | None, Field(description="ISO 8601", max_length=40)] = None


class CreateArguments(_Fields):
    parent_id: OutcomeRef
    title: Annotated[str, Field(max_length=200)]
    description: Annotated[Text, Field(description="Markdown")] = ""


class UpdateArguments(_Fields):
    id: OutcomeRef
    version: Annotated[int, Field(description="The version you last saw")]
    title: Annotated[str | None, Field(max_length=200)] = None
    description: Text | None = None


class CompleteArguments(Repeatable):
    id: OutcomeRef
    evidence: Annotated[Refs, Field(description="Files that show it", default_factory=list)]
    note: Annotated[str, Field(max_length=10_000)] = ""


class SubmitArguments(Repeatable):
    id: OutcomeRef
    evidence: Annotated[Refs, Field(description="Files that show it", default_factory=list)]
    note: Annotated[str, Field(description="What was accomplished", max_length=10_000)] = ""


class ReturnArguments(Repeatable):
    id: OutcomeRef
    note: Annotated[str, Field(description="What is missing", max_length=10_000)]


class CloseArguments(Repeatable):
    id: OutcomeRef
    rationale: Annotated[str, Field(description="Why it will not be done", max_length=10_000)]


class ReopenArguments(Repeatable):
    id: OutcomeRef
    note: Annotated[str, Field(max_length=10_000)] = ""


class Hire(Arguments):
    name: Annotated[str, Field(max_length=64)]
    role: Annotated[str, Field(max_length=20)] = "general"
    title: Annotated[str, Field(max_length=100)] = ""
    adapter: Annotated[str | None, Field(description="Like yours", max_length=20)] = None
    config: Annotated[dict[str, Any], Field(default_factory=dict)]
    prompt: Annotated[str, Field(max_length=50_000)] = ""
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
        Field(description="What it will need; ends with it", max_length=100, default_factory=list),
    ]
    budget: Annotated[Budget | None, Field(description="Set aside for it, out of your budget")] = (
        None
    )


class ReclaimArguments(Repeatable):
    outcome_id: OutcomeRef
    reason: Annotated[str, Field(max_length=10_000)]


class LogReadArguments(Arguments):
    agent: Annotated[
        str | None, Field(description="Somebody below you instead of you", max_length=80)
    ] = None
    limit: Annotated[int, Field(ge=1, le=500)] = 20


class LogSubmitArguments(Repeatable):
    summary: Annotated[str, Field(description="What you did and found", max_length=20_000)]
    go_on: Annotated[bool, Field(description="You have more to do: start you again at once")] = (
        False
    )


def build(app: App) -> tuple[Tool, ...]:
    gate = app.gate

    async def outcome_list(token: str, given: ListArguments) -> dict[str, Any]:
        found = await gate(Caller(token), outcomes.listing, **given.model_dump())
        return {"outcomes": found}

    async def outcome_view(token: str, given: ViewArguments) -> dict[str, Any]:
        return await gate(Caller(token), outcomes.show, outcome=given.id)

    async def outcome_ancestors(token: str, given: ViewArguments) -> dict[str, Any]:
        return await gate(Caller(token), graph.ancestors, outcome=given.id)

    async def outcome_subtree(token: str, given: SubtreeArguments) -> dict[str, Any]:
        return await gate(Caller(token), graph.subtree, outcome=given.id, depth=given.depth)

    async def outcome_create(token: str, given: CreateArguments) -> dict[str, Any]:
        return await app.library.create_outcome(
            Caller(token, given.idempotency_key),
            parent=given.parent_id,
            title=given.title,
            description=given.description,
            parents=given.parents or [],
            blocked_by=given.blocked_by or [],
            urgent=bool(given.urgent),
            important=bool(given.important),
            deferred_until=given.deferred_until,
        )

    async def outcome_update(token: str, given: UpdateArguments) -> dict[str, Any]:
        asked = given.model_dump(exclude={"id", "idempotency_key"}, exclude_none=True)
        return await gate(
            Caller(token, given.idempotency_key), outcomes.change, outcome=given.id, **asked
        )

    async def outcome_complete(token: str, given: CompleteArguments) -> dict[str, Any]:
        return await gate(
            Caller(token, given.idempotency_key),
            outcomes.complete,
            outcome=given.id,
            evidence=given.evidence,
            note=given.note,
        )

    async def outcome_submit(token: str, given: SubmitArguments) -> dict[str, Any]:
        return await gate(
            Caller(token, given.idempotency_key),
            submitting.submit,
            outcome=given.id,
            evidence=given.evidence,
            note=given.note,
        )

    async def outcome_return(token: str, given: ReturnArguments) -> dict[str, Any]:
        return await gate(
            Caller(token, given.idempotency_key),
            submitting.send_back,
            outcome=given.id,
            note=given.note,
        )

    async def outcome_close(token: str, given: CloseArguments) -> dict[str, Any]:
        return await gate(
            Caller(token, given.idempotency_key),
            outcomes.close,
            outcome=given.id,
            rationale=given.rationale,
        )

    async def outcome_reopen(token: str, given: ReopenArguments) -> dict[str, Any]:
        return await gate(
            Caller(token, given.idempotency_key),
            outcomes.reopen,
            outcome=given.id,
            note=given.note,
        )

    async def delegate(token: str, given: DelegateArguments) -> dict[str, Any]:
        hire = None
        if given.hire is not None:
            hire = given.hire.model_dump(exclude={"adapter", "config"})
            hire |= {"adapter_type": given.hire.adapter, "adapter_config": given.hire.config}
        answer = await gate(
            Caller(token, given.idempotency_key),
            delegation.delegate,
            outcome=given.outcome_id,
            to=given.to,
            hire=hire,
            given=[grant.model_dump() for grant in given.grants],
            budget=given.budget.model_dump() if given.budget else None,
        )
        if given.hire is None:
            return answer
        return await setup_warnings.of_hire(app, answer, given.hire.adapter, given.hire.config)

    async def reclaim(token: str, given: ReclaimArguments) -> dict[str, Any]:
        return await gate(
            Caller(token, given.idempotency_key),
            delegation.reclaim,
            outcome=given.outcome_id,
            reason=given.reason,
        )

    async def log_read(token: str, given: LogReadArguments) -> dict[str, Any]:
        return await gate(Caller(token), agents.read_log, agent=given.agent, limit=given.limit)

    async def log_submit(token: str, given: LogSubmitArguments) -> dict[str, Any]:
        return await gate(
            Caller(token, given.idempotency_key),
            agents.submit_log,
            summary=given.summary,
            go_on=given.go_on,
        )

    return (
        Tool(
            "outcome_list",
            "Your outcomes, with ids. What one consists of: outcome_subtree.",
            ListArguments,
            outcome_list,
        ),
        Tool(
            "outcome_view",
            "One outcome: why, how, owner, history, and whether it can be worked on.",
            ViewArguments,
            outcome_view,
        ),
        Tool(
            "outcome_ancestors",
            "Every chain of reasons for an outcome.",
            ViewArguments,
            outcome_ancestors,
        ),
        Tool(
            "outcome_subtree",
            "An outcome and everything it consists of.",
            SubtreeArguments,
            outcome_subtree,
        ),
        Tool(
            "outcome_create",
            "Create a part of an outcome, which you own: to plan, or to delegate it.",
            CreateArguments,
            outcome_create,
            mutates=True,
        ),
        Tool(
            "outcome_update",
            "Change an outcome you own or delegated.",
            UpdateArguments,
            outcome_update,
            mutates=True,
        ),
        Tool(
            "outcome_submit",
            "Hand in your mandate, or an outcome delegated to you, for the verdict of your boss, "
            "which comes as mail. Your other outcomes: outcome_complete.",
            SubmitArguments,
            outcome_submit,
            mutates=True,
        ),
        Tool(
            "outcome_return",
            "Not yet: send back what a report handed in, and say what is missing.",
            ReturnArguments,
            outcome_return,
            mutates=True,
            offer="reports",
        ),
        Tool(
            "outcome_complete",
            "Say that an outcome of yours is accomplished, or accept what a report handed in. Your "
            "own mandate: outcome_submit.",
            CompleteArguments,
            outcome_complete,
            mutates=True,
        ),
        Tool(
            "outcome_close",
            "Give an outcome up and say why.",
            CloseArguments,
            outcome_close,
            mutates=True,
        ),
        Tool(
            "outcome_reopen",
            "Take a completion or closure back.",
            ReopenArguments,
            outcome_reopen,
            mutates=True,
        ),
        Tool(
            "delegate",
            "Hand an outcome and what is below it to a report (to), or to a new agent for just "
            "that (hire). For a lasting post: hire_agent.",
            DelegateArguments,
            delegate,
            mutates=True,
        ),
        Tool(
            "reclaim",
            "Take a delegated outcome back by force; its agents stop.",
            ReclaimArguments,
            reclaim,
            mutates=True,
        ),
        Tool("log_read", "The activity log of past runs.", LogReadArguments, log_read),
        Tool(
            "log_submit",
            "Add what this run did to the activity log, at the end of it.",
            LogSubmitArguments,
            log_submit,
            mutates=True,
        ),
    )
