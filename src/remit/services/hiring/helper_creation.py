"""`create_agent`: a helper with a fixed form of answering, which exists once a person approved it.

Every agent may ask for one. An agent without the permission to create agents has at most three
undecided requests.
"""

import json
from collections.abc import Mapping
from typing import Any

from remit.authority import Action
from remit.errors import BadInput, Conflict
from remit.model.organisation.agent import Agent
from remit.model.organisation.agent_spec import AgentSpec, agent_name
from remit.model.organisation.approval import ApprovalType
from remit.model.organisation.company import Company
from remit.model.organisation.decision import Decision, Effect
from remit.model.text import clean_line
from remit.services import lookup, shapes, views
from remit.services.command import Arguments, Context, approved, command
from remit.services.hiring import agent_spec
from remit.services.organisation import tree
from remit.services.organisation.permissions import HIRING
from remit.store.organisation import governance, people

LONGEST_ROLE = 500
DEFAULT_PROVIDER = "openai"
DEFAULT_MODEL = "gpt-4"
#: Most undecided requests of an agent that may not create agents.
MOST_UNDECIDED = 3
#: Reason code of a decision against an agent without the permission to create agents.
_UNPERMITTED = "may_not_hire"


@command("hiring.create_agent")
def create_agent(
    ctx: Context,
    *,
    name: object,
    role: object = None,
    auto_reply: object = True,
    next_agent: object = "human",
) -> shapes.CreatedHelperShape:
    """Create a helper with a fixed form of answering, once a person has approved it."""
    lookup.company_of_caller(ctx, None)
    called = agent_name(name)
    described = clean_role(role)
    follower = clean_line(next_agent, "nextAgent", longest=100)
    if not isinstance(auto_reply, bool):
        raise BadInput("autoReply: must be true or false.", "Send a boolean.")
    me = lookup.agent_row(ctx, ctx.actor.id)
    if me is None:
        raise BadInput("Agents use this.", "Create an agent directly instead.")
    spec = _helper(ctx, me, called, described, follower, auto_reply=auto_reply)
    decision = ctx.decide(Action.AGENT_CREATE, HIRING)
    permitted = decision.reason != _UNPERMITTED

    def vet(now: Context) -> None:
        tree.check_name(now, spec.name)
        if not permitted:
            _check_undecided(now)

    ctx.accept(
        Action.AGENT_CREATE, f"agent:{spec.name}", _person_decides(ctx, decision), before_asking=vet
    )
    agent, _ = tree.create_with_mandate(ctx, spec, me)
    return {"agent": views.agent(agent), "prompt": agent.prompt}


def asked_for(ctx: Context, me: Agent, arguments: Mapping[str, Any]) -> AgentSpec:
    """Return the helper that a call of `create_agent` makes, for whoever approves the call."""
    return _helper(
        *(ctx, me, agent_name(arguments.get("name")), clean_role(arguments.get("role"))),
        clean_line(arguments.get("next_agent", "human"), "nextAgent", longest=100),
        auto_reply=bool(arguments.get("auto_reply", True)),
    )


def _helper(
    ctx: Context, me: Agent, name: str, role: str, follower: str, *, auto_reply: bool
) -> AgentSpec:
    return agent_spec.read(
        {
            "name": name,
            "title": role[:100],
            "prompt": prompt_for(name, role, follower),
            "runtime_config": {"type": "default", "autoReply": auto_reply, "nextAgent": follower},
            **_helper_adapter(ctx, ctx.tx.existing(people.COMPANY), me),
        }
    )


def _helper_adapter(ctx: Context, company: Company, me: Agent) -> Arguments:
    """Return the adapter of a helper: the model that the company chose for helpers, or else the
    adapter of the requester."""
    chosen = {"provider": company.chat_llm_provider, "model": company.chat_llm_model}
    if any(chosen.values()):
        description: Arguments = {"adapter_type": "llm"}
    else:
        description = agent_spec.with_adapter(ctx, {}, me)
    if description["adapter_type"] == "llm":
        description["adapter_config"] = {
            "provider": DEFAULT_PROVIDER,
            "model": DEFAULT_MODEL,
            **(description.get("adapter_config") or {}),
            **{key: value for key, value in chosen.items() if value},
        }
    return description


def _person_decides(ctx: Context, decision: Decision) -> Decision:
    """Require approval by a person, whatever the company's settings: `create_agent` creates nothing
    unapproved.

    An agent without the permission to create agents may ask, too. One that had it when asking and
    lost it since is refused.
    """
    permitted = decision.reason != _UNPERMITTED
    if permitted and decision.effect is not Effect.ALLOW:
        return decision
    if ctx.ticket is None:
        return Decision(
            Effect.ASK, "needs_approval", "A person has to say yes first.", decision.basis
        )
    if permitted:
        return decision
    approval = ctx.tx.existing(governance.APPROVAL_ANYWHERE, approval=ctx.ticket)
    asked_without = json.loads(approval.payload)["basis"] == decision.basis
    return approved(ctx.ticket) if asked_without else decision


def _check_undecided(ctx: Context) -> None:
    waiting = [
        approval
        for approval in ctx.tx.all(governance.UNDECIDED_OF_AGENT, agent=ctx.actor.id)
        if approval.requested_by_agent_id == ctx.actor.id
        and approval.type is ApprovalType.CAPABILITY_USE
        and json.loads(approval.payload)["verb"] == create_agent.name
        and not approval.expired(ctx.now)
    ]
    if len(waiting) >= MOST_UNDECIDED:
        raise Conflict(
            f"You asked for {len(waiting)} agents that nobody has decided about; without the "
            f"permission to create agents at most {MOST_UNDECIDED} wait at once.",
            "Wait for a decision, or ask your boss.",
            code="too_many_undecided",
        )


def clean_role(role: object) -> str:
    """Fold blanks and cut the length: the text comes from a model and goes into another one's
    prompt."""
    if role is None:
        return ""
    if not isinstance(role, str):
        raise BadInput("role must be text.", "Send role as a string.")
    start = role[: 10 * LONGEST_ROLE]
    plain = "".join(char if char.isprintable() else " " for char in start)
    return " ".join(plain.split())[:LONGEST_ROLE].rstrip()


def prompt_for(name: str, role: str, next_agent: str) -> str:
    """The whole prompt of a helper; deterministic."""
    sentence = f" Your role is {role.rstrip('.')}." if role else ""
    return (
        f"You are agent {name}.{sentence}\n"
        "\n"
        "Always respond in exactly this structure:\n"
        f"@{next_agent}\n"
        "{Your response}"
    )
