"""Tools for hiring, approvals, configurations, and for supervising reports.

Their arguments are named as over HTTP, because the documentation that agents read is one for both;
the same in snake_case is taken as well.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, AliasGenerator, ConfigDict, Field, StrictBool
from pydantic.alias_generators import to_camel

from remit import threads
from remit.adapters import reflection
from remit.app import App
from remit.entrypoints import setup_warnings
from remit.entrypoints.mcp import run_log
from remit.entrypoints.mcp.arguments import Arguments, Repeatable
from remit.entrypoints.mcp.registry import Tool
from remit.errors import BadInput
from remit.services import agents, approvals, configuration, halts, hiring, updating
from remit.services.identity import Caller

Ref = Annotated[str, Field(min_length=1, max_length=80)]
ApprovalRef = Annotated[str, Field(description="Approval id", min_length=1, max_length=64)]
Object = dict[str, Any]

_BOTH = ConfigDict(
    extra="forbid",
    strict=True,
    alias_generator=AliasGenerator(
        validation_alias=lambda name: AliasChoices(to_camel(name), name)
    ),
)


class HiringGrant(Arguments):
    model_config = _BOTH

    resource: Annotated[str, Field(max_length=120)]
    level: Annotated[str, Field(max_length=10)]
    scope: Annotated[str | None, Field(max_length=64)] = None
    expires_at: Annotated[str | None, Field(max_length=40)] = None


class HireArguments(Repeatable):
    model_config = _BOTH

    idempotency_key: Annotated[
        str | None, Field(validation_alias="idempotency_key", max_length=255)
    ] = None
    name: Annotated[str, Field(max_length=64)]
    role: Annotated[str | None, Field(max_length=20)] = None
    title: Annotated[str | None, Field(max_length=100)] = None
    reports_to: Annotated[Ref | None, Field(description="You, or somebody below you")] = None
    capabilities: Annotated[str | None, Field(description="What it can do, in prose")] = None
    prompt: str | None = None
    adapter_type: Annotated[
        str | None,
        Field(
            description="As yours, if left out; see adapter_docs",
            validation_alias=AliasChoices("adapterType", "adapter_type", "adapter"),
        ),
    ] = None
    adapter_config: Annotated[
        Object | None,
        Field(validation_alias=AliasChoices("adapterConfig", "adapter_config", "config")),
    ] = None
    runtime_config: Object | None = None
    budget_monthly_cents: int | None = None
    budget_monthly_tokens: int | None = None
    metadata: Object | None = None
    permissions: Object | None = None
    outcome_id: Annotated[Ref | None, Field(description="Hand this outcome to it")] = None
    purpose: Annotated[str | None, Field(description="Or a mandate of its own")] = None
    perpetual: Annotated[
        bool | None, Field(description="false: the purpose is accomplished once; true otherwise")
    ] = None
    grants: Annotated[list[HiringGrant], Field(max_length=100, default_factory=list)]
    reason: Annotated[
        str | None, Field(description="For whoever approves", max_length=hiring.LONGEST_REASON)
    ] = None


class ViewArguments(Arguments):
    id: Annotated[ApprovalRef | None, Field(description="Without: those that concern you")] = None
    status: Annotated[str | None, Field(description="Such as pending", max_length=40)] = None


class CommentArguments(Repeatable):
    id: ApprovalRef
    body: str
    reply_to: Annotated[Ref | None, Field(description="Comment id")] = None


class ResubmitArguments(Repeatable):
    id: ApprovalRef
    payload: Annotated[
        Object | None, Field(description="What is to be different; the rest stays")
    ] = None


class DecideArguments(Repeatable):
    id: ApprovalRef
    decision: Literal["approve", "reject", "revise"]
    note: str | None = None
    revision: Annotated[int, Field(description="The revision you looked at", ge=1, le=2**30)]


class ConfigurationsArguments(Arguments):
    agent: Annotated[Ref | None, Field(description="One instead of all")] = None
    after: Annotated[str, Field(max_length=36)] = ""
    limit: Annotated[int, Field(ge=1, le=500)] = 50


class DocsArguments(Arguments):
    adapter: Annotated[str | None, Field(description="Without: the index", max_length=40)] = None


class ProposeArguments(Repeatable):
    agent: Annotated[Ref, Field(description="Somebody below you")]
    changes: Annotated[
        Object, Field(description="Such as prompt, title, adapterType, adapterConfig")
    ]
    reason: str = ""
    expected_revision: Annotated[int | None, Field(ge=1, le=2**30)] = None


class ControlArguments(Repeatable):
    agent: Annotated[Ref, Field(description="Somebody below you")]
    action: Literal[
        "stop", "go", "start", "restart", "pause", "resume", "update", "terminate", "logs"
    ]
    subtree: Annotated[
        StrictBool, Field(description="stop, go, terminate: it and everybody below it")
    ] = False
    note: Annotated[str, Field(max_length=1000, description="Why a subtree is stopped")] = ""


#: Of an approval in a list; what exactly was asked for is seen one by one.
_LISTED = (
    *("id", "type", "status", "revision", "agent_id", "requested_by_agent_id"),
    *("decision_note", "created_at", "decided_at"),
)
MOST_LISTED = 50
_DECISIONS = {
    "approve": approvals.approve,
    "reject": approvals.reject,
    "revise": approvals.request_revision,
}
_CONTROLS = {
    "stop": agents.stop,
    "go": agents.start,
    "start": agents.start,
    "restart": agents.restart,
    "pause": agents.pause,
    "resume": agents.resume,
}


def build(app: App) -> tuple[Tool, ...]:
    gate = app.gate

    async def hire_agent(token: str, given: HireArguments) -> Object:
        asked = given.model_dump(
            exclude_none=True, exclude={"grants", "outcome_id", "idempotency_key"}
        )
        answer = await gate(
            Caller(token, given.idempotency_key),
            hiring.hire,
            company=None,
            outcome=given.outcome_id,
            given=[grant.model_dump() for grant in given.grants],
            **asked,
        )
        return await setup_warnings.of_hire(app, answer, given.adapter_type, given.adapter_config)

    async def approval_view(token: str, given: ViewArguments) -> Object:
        if given.id is not None:
            return await gate(Caller(token), approvals.show, approval=given.id)
        found = await gate(
            Caller(token), approvals.listing, company=None, status=given.status, limit=MOST_LISTED
        )
        return {"approvals": [{key: one[key] for key in _LISTED} for one in found]}

    async def approval_comment(token: str, given: CommentArguments) -> Object:
        return await gate(
            Caller(token, given.idempotency_key),
            approvals.comment,
            approval=given.id,
            body=given.body,
            reply_to=given.reply_to,
        )

    async def approval_resubmit(token: str, given: ResubmitArguments) -> Object:
        return await gate(
            Caller(token, given.idempotency_key),
            approvals.resubmit,
            approval=given.id,
            payload=given.payload,
        )

    async def approval_decide(token: str, given: DecideArguments) -> Object:
        return await gate(
            Caller(token, given.idempotency_key),
            _DECISIONS[given.decision],
            approval=given.id,
            note=given.note,
            expected_revision=given.revision,
        )

    async def agent_configurations(token: str, given: ConfigurationsArguments) -> Object:
        if given.agent is not None:
            return await gate(Caller(token), configuration.show, agent=given.agent)
        found = await gate(
            Caller(token),
            configuration.listing,
            company=None,
            after=given.after,
            limit=given.limit,
        )
        return {"configurations": found}

    async def adapter_docs(token: str, given: DocsArguments) -> Object:
        await gate(Caller(token), configuration.may_read)
        if given.adapter is None:
            return {"text": await threads.CHECKS.run(reflection.index_text)}
        return {"text": await threads.CHECKS.run(reflection.adapter_text, given.adapter)}

    async def propose_config(token: str, given: ProposeArguments) -> Object:
        return await gate(
            Caller(token, given.idempotency_key),
            configuration.propose,
            agent=given.agent,
            changes=given.changes,
            reason=given.reason,
            expected_revision=given.expected_revision,
        )

    async def subtree_control(who: Caller, given: ControlArguments) -> Object:
        if given.action == "stop":
            return await gate(who, halts.stop, agent=given.agent, note=given.note)
        if given.action in ("go", "start"):
            return await gate(who, halts.go, agent=given.agent)
        raise BadInput(
            "A subtree is stopped, let go on or terminated.",
            "Use the action stop, go or terminate.",
        )

    async def terminate(who: Caller, given: ControlArguments) -> Object:
        done = await gate(who, agents.terminate, agent=given.agent, subtree=given.subtree)
        ended = ("agents_ended", "outcomes_closed", "outcomes_moved")
        return {key: done[key] for key in ("id", "name", "status", *ended)}

    async def update(who: Caller, given: ControlArguments) -> Object:
        done = await gate(who, updating.update, agent=given.agent)
        shown = ("changes", "revision", "run_told", "session_ended")
        waits = {"approval_id": done["approval"]["id"]} if done["approval"] else {}
        return {**{key: done[key] for key in ("id", "name", "status", *shown)}, **waits}

    async def agent_control(token: str, given: ControlArguments) -> Object:
        if given.action == "logs":
            return await run_log.latest(gate, Caller(token), given.agent)
        who = Caller(token, given.idempotency_key)
        if given.action == "terminate":
            return await terminate(who, given)
        if given.subtree:
            return await subtree_control(who, given)
        if given.action == "update":
            return await update(who, given)
        verb = _CONTROLS[given.action]
        done = await gate(who, verb, agent=given.agent)
        return {key: done[key] for key in ("id", "name", "status")}

    return (
        Tool(
            "hire_agent",
            "Hire an agent for a lasting post below you; it may wait for approval. To have one "
            "outcome done: delegate with hire.",
            HireArguments,
            hire_agent,
            mutates=True,
            offer="hiring",
        ),
        Tool(
            "approval_view",
            "What was asked for: its revisions, comments, and decision.",
            ViewArguments,
            approval_view,
            offer="approvals",
        ),
        Tool(
            "approval_comment",
            "Say something about an approval.",
            CommentArguments,
            approval_comment,
            mutates=True,
            offer="approvals",
        ),
        Tool(
            "approval_resubmit",
            "Submit again what was sent back to you for revision.",
            ResubmitArguments,
            approval_resubmit,
            mutates=True,
            offer="approvals",
        ),
        Tool(
            "approval_decide",
            "Decide about what somebody below you asked for.",
            DecideArguments,
            approval_decide,
            mutates=True,
            offer="deciding",
        ),
        Tool(
            "agent_configurations",
            "How agents are configured, without secrets: look before you hire or propose.",
            ConfigurationsArguments,
            agent_configurations,
            offer="configurations",
        ),
        Tool(
            "adapter_docs",
            "Which adapters there are and what can be set, for hire_agent and propose_config.",
            DocsArguments,
            adapter_docs,
            offer="configurations",
        ),
        Tool(
            "propose_config",
            "Propose another configuration for somebody below you.",
            ProposeArguments,
            propose_config,
            mutates=True,
            offer="reports",
        ),
        Tool(
            "agent_control",
            "Stop (ends its run), let go on, restart, pause (lets its run end), resume, update (to "
            "its settings and program as they are now) or terminate somebody below you, or read "
            "what its runs printed. Stop, go and terminate reach everybody below it with subtree.",
            ControlArguments,
            agent_control,
            mutates=True,
            offer="reports",
        ),
    )
