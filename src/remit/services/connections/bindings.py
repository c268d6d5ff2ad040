"""Bindings of agents to channels. The board makes and ends them.

A binding has a token, which is shown once to its maker and stored as a digest. The outside presents
it to write to the agent; it gives access to nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlsplit

from remit.authority import Action
from remit.channels import registry
from remit.clock import Micros
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound
from remit.ids import (
    AgentId,
    BindingId,
    CompanyId,
    MessageId,
    TokenKind,
    is_id,
    new_token,
    token_digest,
)
from remit.model.messaging.channel import Binding, channel_kind
from remit.model.organisation.agent import Agent, AgentStatus
from remit.services import lookup, shapes, views
from remit.services.chat import posts, receivers
from remit.services.command import Context, command, query
from remit.services.connections import outbox, secrets
from remit.services.fields import AgentRef, CompanyRef, Help, OnlyAgent, Reference, Text
from remit.services.redaction import REMOVED, without_secrets
from remit.services.surfaces import AsCommand, AsRoute
from remit.services.verbs import preview_of
from remit.store.messaging import channels as statements

HELD = "It was imported without its secret, and does not work until it has one."
HELD_STEP = "Bind the agent again: `remit bind add AGENT CHANNEL --secret NAME`."


@command(
    "bindings.add",
    AsRoute(
        "POST /companies/{companyId}/bindings",
        "add_binding",
        201,
        words="The answer has the token, once; the outside shows it at `POST /api/channels/:kind`.",
        spelled={"kind": "adapterType", "config": "adapterConfig"},
    ),
)
def add(
    ctx: Context,
    *,
    company: CompanyRef | None,
    agent: AgentRef,
    kind: Annotated[str, Text(40), Help("The kind of channel, such as webhook.")],
    config: Annotated[dict[str, object], Help("As the channel's documentation says.")]
    | None = None,
    replace: Annotated[bool, Help("It may be there already; it gets a new token.")] = False,
) -> shapes.NewBindingShape:
    """Bind an agent to a channel; `replace` says anew how, with a new token."""
    lookup.company_of_caller(ctx, company)
    agent_row = _bindable(ctx, agent)
    called = channel_kind(kind)
    was = live(ctx, agent_row.id, called)
    if was is not None and not (replace or was.held):
        raise AlreadyExists(
            f"{agent_row.name} is bound to {called} already.",
            "Remove that binding first, or replace it with --replace.",
        )
    new_config = config or {}
    if was is not None and was.held:
        new_config = _completed(was, new_config)
    new_binding, token = bind(ctx, agent_row, called, new_config, was)
    ctx.secrets["token"] = token
    # A repeat of the same request gets everything but the token, which is shown once.
    return {**view(ctx, new_binding), "token": None}


def _completed(held: Binding, config: Mapping[str, Any]) -> dict[str, object]:
    """Merge new settings into those of an import; refuse while something that was left out is
    missing."""
    whole = {**json.loads(held.adapter_config), **config}
    missing = [key for key, value in whole.items() if _is_cut(value)]
    if missing:
        raise BadInput(f"The export left out {', '.join(missing)}.", "Set it in the configuration.")
    return whole


#: The binding as it would be, to try its channel before it is made.
preview = preview_of("bindings.preview", add)


def bind(
    ctx: Context, agent: Agent, kind: str, config: Mapping[str, Any], was: Binding | None = None
) -> tuple[Binding, str]:
    """Make a binding, in place of an earlier one; returns it with its token."""
    decision = _require(ctx, agent)
    text = settings(ctx, kind, config)
    _require_alone(ctx, agent, kind, text)
    if was is not None:
        ctx.tx.run(statements.REMOVE_BINDING, binding=was.id)
        _close(ctx, was)
        ctx.record("binding.delete", f"binding:{was.id}", _about(was), decision)
    binding, token = _add(ctx, agent.id, kind, text, ctx.now)
    receivers.begin(ctx, binding)
    ctx.record("binding.create", f"binding:{binding.id}", _about(binding), decision)
    return binding, token


def configure(ctx: Context, agent: Agent, binding: Binding, config: Mapping[str, Any]) -> Binding:
    """Change the settings of a binding; its token stays."""
    decision = _require(ctx, agent)
    text = settings(ctx, binding.adapter_type, config)
    _require_alone(ctx, agent, binding.adapter_type, text)
    ctx.tx.run(statements.CONFIGURE_BINDING, binding=binding.id, new_config=text)
    ctx.record("binding.change", f"binding:{binding.id}", _about(binding), decision)
    binding_row = live(ctx, agent.id, binding.adapter_type)
    assert binding_row is not None
    receivers.begin(ctx, binding_row)
    return binding_row


def settings(ctx: Context, kind: str, config: Mapping[str, Any]) -> str:
    """Return settings as the channel's model validates them; a secret that they name must exist."""
    text = registry.installed.validate(kind, config)
    name = registry.secret_of(json.loads(text))
    secrets.require_all(ctx, [] if name is None else [name])
    return text


def _require_alone(ctx: Context, agent: Agent, kind: str, config: str) -> None:
    other = _listener(ctx, agent, kind, config)
    if other is not None:
        raise Conflict(
            f"{other} is bound to that {kind} already, and of two each would get a part of what"
            " comes.",
            "Give each agent its own, with a secret of its own; or remove that binding first.",
        )


def _listener(ctx: Context, agent: Agent, kind: str, config: str) -> str | None:
    """Return the name of another agent whose binding listens at the same place, if there is one."""
    wanted = _place(kind, config)
    if wanted is None:
        return None
    for binding in ctx.tx.all(statements.BOUND_TO_KIND, kind=kind):
        if binding.agent_id != agent.id and _place(kind, binding.adapter_config) == wanted:
            return lookup.known_agent(ctx, binding.agent_id).name
    return None


def _place(kind: str, config: str) -> str | None:
    try:
        return registry.get(kind).place(registry.installed.read(kind, json.loads(config)))
    except BadInput:  # settings that the channel rejects listen nowhere
        return None


@query("bindings.channels", AsRoute("GET /companies/{companyId}/channels", "list_channels"))
def channels(ctx: Context, *, company: CompanyRef | None) -> list[shapes.ChannelShape]:
    """The kinds of channels that there are here, and how a binding to each is configured."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="channels")
    kinds: list[shapes.ChannelShape] = [
        {
            "type": channel.type,
            "summary": channel.summary,
            "text": channel.configuration_doc(),
            "problem": None,
        }
        for channel in registry.installed.all()
    ]
    return kinds + [
        {"type": name, "summary": "", "text": "", "problem": problem}
        for name, problem in sorted(registry.installed.problems().items())
    ]


@query(
    "bindings.listing",
    AsRoute("GET /companies/{companyId}/bindings", "list_bindings", page="id"),
    AsCommand("bind list", "List the bindings. Never their tokens."),
)
def listing(
    ctx: Context,
    *,
    company: CompanyRef | None = None,
    agent: OnlyAgent | None = None,
    after: str = "",
    limit: int = 100,
) -> list[shapes.BindingShape]:
    """The bindings of a company, or of one agent; an agent sees its own."""
    lookup.company_of_caller(ctx, company)
    whose = lookup.agent_ever(ctx, agent).id if agent else ctx.actor.agent_id
    ctx.require(Action.BINDING_READ, on=f"agent:{whose}" if whose else "bindings", over=whose)
    rows = ctx.tx.all(statements.BINDINGS, agent=whose, after=after, limit=limit)
    return [view(ctx, row) for row in rows]


@command(
    "bindings.remove", AsRoute("DELETE /companies/{companyId}/bindings/{id}", "remove_binding")
)
def remove(
    ctx: Context, *, company: CompanyRef | None, binding: Annotated[str, Reference("binding")]
) -> shapes.RemovedShape:
    """End a binding: nothing comes in by its token any more, and what has not gone out is dead."""
    lookup.company_of_caller(ctx, company)
    binding_row = _known(ctx, binding)
    decision = ctx.require(
        Action.BINDING_CHANGE, on=f"binding:{binding_row.id}", home=binding_row.agent_id
    )
    end(ctx, binding_row)
    ctx.allow_by_rule(decision)
    return {"id": binding_row.id, "removed": True}


@command("bindings.try_out")
def try_out(ctx: Context, *, company: str | None, binding: str) -> shapes.TestedBindingShape:
    """Record that a binding is tested, because the test sends its secret to the outside."""
    lookup.company_of_caller(ctx, company)
    bound = _known(ctx, binding)
    ctx.require(Action.BINDING_CHANGE, on=f"binding:{bound.id}", home=bound.agent_id)
    ctx.record("binding.test", f"binding:{bound.id}", _about(bound))
    return {"id": bound.id, "kind": bound.adapter_type, "held": bound.held}


def _known(ctx: Context, binding: str) -> Binding:
    bound = ctx.tx.one(statements.BINDING, binding=binding)
    if bound is None or not is_id(binding):
        raise NotFound("There is no such binding here.", "See `remit bind list`.")
    return bound


def end(ctx: Context, binding: Binding) -> list[MessageId]:
    """End a binding; returns the messages that were never sent and are dead now."""
    ctx.tx.run(statements.REMOVE_BINDING, binding=binding.id)
    unsent = outbox.bury(ctx, binding.agent_id, binding.adapter_type)
    _close(ctx, binding)
    ctx.record("binding.delete", f"binding:{binding.id}", _about(binding))
    return unsent


def hold(ctx: Context, agent: AgentId, kind: str, config: str, created_at: Micros) -> None:
    """Make a binding that came with an import. It is held until the board binds the agent again,
    because nobody here has confirmed its address or its secret."""
    _add(ctx, agent, kind, config, created_at, held=True)


def _add(
    ctx: Context, agent: AgentId, kind: str, config: str, created_at: Micros, *, held: bool = False
) -> tuple[Binding, str]:
    token = new_token(TokenKind.CHANNEL)
    binding = Binding(
        id=BindingId(ctx.ids.new()),
        company_id=CompanyId(ctx.company or ""),
        agent_id=agent,
        adapter_type=kind,
        adapter_token=token_digest(token),
        adapter_config=config,
        created_at=created_at,
        removed_at=None,
        held=held,
    )
    ctx.tx.add(binding)
    return binding, token


def bind_again(ctx: Context, agent: Agent, binding: str) -> str | None:
    """Restore the binding of a restored agent; returns why not, if that is impossible."""
    was = ctx.tx.one(statements.BINDING_EVER, binding=binding)
    if was is None or was.agent_id != agent.id:
        return "it is known no more"
    if live(ctx, agent.id, was.adapter_type) is not None:
        return "it is bound anew by now"
    if (other := _listener(ctx, agent, was.adapter_type, was.adapter_config)) is not None:
        return f"{other} listens there by now"
    ctx.tx.run(statements.BIND_AGAIN, binding=was.id)
    if not was.held:
        receivers.begin(ctx, was)
    ctx.record("binding.restore", f"binding:{was.id}", _about(was))
    return None


def end_all(ctx: Context, agent: Agent) -> shapes.EndedBindingsShape:
    """End every binding of an agent that is gone; returns what ended."""
    ended: shapes.EndedBindingsShape = {"bindings": {}, "unsent": []}
    for binding in ctx.tx.all(statements.BINDINGS, agent=agent.id, after="", limit=1 << 30):
        ended["unsent"] += end(ctx, binding)
        ended["bindings"][binding.id] = binding.adapter_type
    return ended


def _close(ctx: Context, binding: Binding) -> None:
    """Stop the receiver of a binding, and cancel Remit's own undelivered posts."""
    receivers.end(ctx, binding.id)
    posts.bury(ctx, binding)


def live(ctx: Context, agent: str, kind: str) -> Binding | None:
    """Return the binding of an agent to a kind of channel, including one that is held."""
    return ctx.tx.one(statements.BINDING_OF, agent=agent, kind=kind)


def speaking(ctx: Context, agent: str, kind: str) -> Binding | None:
    """Return the binding of an agent to a kind of channel, unless it is held."""
    return ctx.tx.one(statements.BOUND, agent=agent, kind=kind)


def view(ctx: Context, binding: Binding) -> shapes.BindingShape:
    """A binding without its token and without the secrets of its settings."""
    return _view(
        binding,
        agent_name=lookup.name_of(ctx, binding.agent_id),
        adapter_config=shown(json.loads(binding.adapter_config)),
        **_state(ctx, binding),
    )


_view = views.view_of(
    Binding,
    shapes.BindingShape,
    supplied={"agent_name", "adapter_config", "state", "problem", "heard_at"},
)


def _state(ctx: Context, binding: Binding) -> shapes.BindingStateShape:
    if binding.held:
        return {"state": "held", "problem": HELD, "heard_at": None}
    receiver = receivers.of(ctx, binding.id)
    if receiver is None:
        return {"state": "bound", "problem": None, "heard_at": None}
    seen = receivers.view(ctx, receiver)
    return {"state": seen["state"], "problem": seen["problem"], "heard_at": seen["heard_at"]}


def shown(config: Mapping[str, Any]) -> dict[str, object]:
    """Settings without credentials. An address is cut to its host: for many services the path is
    the key."""
    cut = {key: _cut(value) for key, value in config.items()}
    clean: dict[str, object] = without_secrets(cut)[0]
    return clean


def _cut(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        return value
    parts = urlsplit(value)
    rest = "/…" if parts.path.strip("/") or parts.query else parts.path
    return f"{parts.scheme}://{parts.netloc}{rest}"


def _is_cut(value: Any) -> bool:
    return REMOVED in json.dumps(value) or (isinstance(value, str) and value.endswith("/…"))


def _bindable(ctx: Context, text: str) -> Agent:
    agent = lookup.agent_ever(ctx, text)
    _require(ctx, agent)
    if agent.status is AgentStatus.TERMINATED:
        raise Conflict(f"{agent.name} is terminated.", "Bind an agent that works here.")
    if agent.status is AgentStatus.PENDING_APPROVAL:
        raise Conflict(f"{agent.name} awaits approval.", "Bind it when its hire is approved.")
    return agent


def _require(ctx: Context, agent: Agent) -> Any:
    return ctx.require(Action.BINDING_CHANGE, on=f"agent:{agent.id}", home=agent.id)


def _about(binding: Binding) -> dict[str, object]:
    return {"agent_id": binding.agent_id, "adapter_type": binding.adapter_type}
