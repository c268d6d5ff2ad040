"""Tools for hiring, approvals, configurations, and for supervising reports.

Their arguments are named as over HTTP, because agents read one documentation for both; snake_case
is accepted, too.
"""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, AliasGenerator, ConfigDict, Field, StrictBool
from pydantic.alias_generators import to_camel

from remit import threads
from remit.adapters import hiring_docs
from remit.app import App
from remit.entrypoints import setup_warnings
from remit.entrypoints.described_agent import describing
from remit.entrypoints.mcp.arguments import Arguments, Repeatable, of_agent, tool
from remit.entrypoints.mcp.registry import KEY, Tool
from remit.entrypoints.mcp.tools import run_log
from remit.errors import BadInput
from remit.model.organisation.agent_spec import FIELDS
from remit.model.organisation.statement import as_text
from remit.services.governance import approvals
from remit.services.hiring import agent_update, configuration, hiring
from remit.services.identity import Caller
from remit.services.organisation import agents, halts

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


@describing(FIELDS.values(), of_agent)
class HireArguments(Repeatable):
    model_config = _BOTH

    idempotency_key: Annotated[
        str | None, Field(validation_alias="idempotency_key", max_length=255)
    ] = None
    reports_to: Annotated[Ref | None, Field(description="You, or somebody below you")] = None
    outcome_id: Annotated[Ref | None, Field(description="Hand this outcome to it")] = None
    purpose: Annotated[str | None, Field(description="Or a mandate of its own")] = None
    perpetual: Annotated[bool | None, Field(description="false: accomplished once")] = None
    grants: Annotated[list[HiringGrant], Field(max_length=100, default_factory=list)]
    reason: Annotated[
        str | None, Field(description="For whoever approves", max_length=hiring.LONGEST_REASON)
    ] = None


class ViewArguments(Arguments):
    id: Annotated[ApprovalRef | None, Field(description="Without: those that concern you")] = None
    status: Annotated[str | None, Field(description="Such as pending", max_length=40)] = None


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


class ControlArguments(Repeatable):
    agent: Annotated[Ref, Field(description="Somebody below you")]
    action: Literal[
        "stop", "go", "start", "restart", "pause", "resume", "update", "terminate", "logs"
    ]
    subtree: Annotated[
        StrictBool, Field(description="stop, go, terminate: it and everybody below it")
    ] = False
    note: Annotated[str, Field(max_length=1000, description="Why")] = ""


#: Fields of an approval in a list; its payload is shown one by one.
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

    # Not declared: its arguments describe an agent in both spellings, and its answer may have a
    # warning.
    async def hire_agent(caller: Caller, arguments: HireArguments) -> Object:
        """Hire an agent for a lasting post below you; it may wait for approval. To have one outcome
        done: delegate with hire."""
        described = arguments.model_dump(exclude_none=True, exclude={"grants", "outcome_id", KEY})
        answer = await gate(
            caller,
            hiring.hire,
            company=None,
            outcome=arguments.outcome_id,
            given=[grant.model_dump() for grant in arguments.grants],
            **described,
        )
        return await setup_warnings.of_hire(app, answer, described)

    # One tool for the list and for one of them: agents pay for each tool.
    async def approval_view(caller: Caller, arguments: ViewArguments) -> Object:
        """A request: its revisions, comments, and decision."""
        if arguments.id is not None:
            request = await gate(caller, approvals.look, approval=arguments.id)
            stated = request.pop("statement")
            if stated["may_decide"]:  # as text, which is half as long as JSON
                request["statement"] = as_text(stated)
            return request
        requests = await gate(
            caller, approvals.listing, company=None, status=arguments.status, limit=MOST_LISTED
        )
        return {"approvals": [{key: request[key] for key in _LISTED} for request in requests]}

    # One tool for three verbs, for the same reason.
    async def approval_decide(caller: Caller, arguments: DecideArguments) -> Object:
        """Decide about what somebody below you asked for."""
        return await gate(
            caller,
            _DECISIONS[arguments.decision],
            approval=arguments.id,
            note=arguments.note,
            expected_revision=arguments.revision,
        )

    # One tool for the list and for one of them: agents pay for each tool.
    async def agent_configurations(caller: Caller, arguments: ConfigurationsArguments) -> Object:
        """How agents are configured, without secrets: look before you hire or propose."""
        if arguments.agent is not None:
            return await gate(caller, configuration.show, agent=arguments.agent)
        configurations = await gate(
            caller,
            configuration.listing,
            company=None,
            after=arguments.after,
            limit=arguments.limit,
        )
        return {"configurations": configurations}

    # The documents are installed with the adapters; the verb only checks who may read them.
    async def adapter_docs(caller: Caller, arguments: DocsArguments) -> Object:
        """Adapters and their settings, for hire_agent and propose_config."""
        await gate(caller, configuration.may_read)
        if arguments.adapter is None:
            return {"text": await threads.CHECKS.run(hiring_docs.index_text)}
        return {"text": await threads.CHECKS.run(hiring_docs.adapter_text, arguments.adapter)}

    async def subtree_control(caller: Caller, arguments: ControlArguments) -> Object:
        if arguments.action == "stop":
            return await gate(caller, halts.stop, agent=arguments.agent, note=arguments.note)
        if arguments.action in ("go", "start"):
            return await gate(caller, halts.go, agent=arguments.agent)
        raise BadInput(
            "Only stop, go and terminate work on a subtree.",
            "Use one of these actions, or leave subtree out.",
        )

    async def terminate(caller: Caller, arguments: ControlArguments) -> Object:
        done = await gate(
            caller, agents.terminate, agent=arguments.agent, subtree=arguments.subtree
        )
        ended = ("agents_ended", "outcomes_closed", "outcomes_moved")
        return {key: done[key] for key in ("id", "name", "status", *ended)}

    async def update(caller: Caller, arguments: ControlArguments) -> Object:
        done = await gate(caller, agent_update.update, agent=arguments.agent)
        shown = ("changes", "revision", "run_told", "session_ended")
        waits = {"approval_id": done["approval"]["id"]} if done["approval"] else {}
        return {**{key: done[key] for key in ("id", "name", "status", *shown)}, **waits}

    # One tool for all of these verbs, because agents pay for each tool.
    async def agent_control(caller: Caller, arguments: ControlArguments) -> Object:
        """Control an agent below you: stop ends its run, go undoes that; pause lets its run end;
        update gives it its current settings and program; logs shows the output of its runs."""
        if arguments.action == "logs":
            return await run_log.latest(gate, caller, arguments.agent)
        if arguments.action == "terminate":
            return await terminate(caller, arguments)
        if arguments.subtree:
            return await subtree_control(caller, arguments)
        if arguments.action == "update":
            return await update(caller, arguments)
        verb = _CONTROLS[arguments.action]
        done = await gate(caller, verb, agent=arguments.agent)
        return {key: done[key] for key in ("id", "name", "status")}

    return (
        tool(hire_agent, offer="hiring"),
        tool(approval_view, offer="approvals"),
        tool(approval_decide, offer="deciding"),
        tool(agent_configurations, offer="configurations"),
        tool(adapter_docs, offer="configurations"),
        tool(agent_control, offer="reports"),
    )
