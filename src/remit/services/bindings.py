"""Bindings: which agent is reached through which channel. The board makes and ends them.

A binding has a token, which is shown to whoever makes it and is kept as a digest. The outside shows
it to write to the agent, and it opens nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from remit.authority import Action
from remit.channels import registry
from remit.errors import AlreadyExists, Conflict, NotFound
from remit.ids import BindingId, CompanyId, MessageId, TokenKind, is_id, new_token, token_digest
from remit.model.agent import Agent, AgentStatus
from remit.model.channel import Binding, channel_kind
from remit.services import lookup, outbox, secrets, shapes, views
from remit.services.command import Answer, Context, command, query
from remit.services.redaction import without_secrets
from remit.store import channels as statements
from remit.store.statement import row


@command("bindings.add")
def add(
    ctx: Context,
    *,
    company: str | None,
    agent: str,
    kind: object,
    config: Mapping[str, Any] | None = None,
    replace: bool = False,
) -> Answer:
    """Bind an agent to a channel; `replace` says anew how, with a new token."""
    lookup.company_of_caller(ctx, company)
    found = _bindable(ctx, agent)
    called = channel_kind(kind)
    was = live(ctx, found.id, called)
    if was is not None and not replace:
        raise AlreadyExists(
            f"{found.name} is bound to {called} already.",
            "Remove that binding first, or replace it with --replace.",
        )
    made, token = bind(ctx, found, called, config or {}, was)
    ctx.secrets["token"] = token
    # A repeat of the same request gets everything but the token, which is shown once.
    return {**view(ctx, made), "token": None}


def bind(
    ctx: Context, agent: Agent, kind: str, config: Mapping[str, Any], was: Binding | None = None
) -> tuple[Binding, str]:
    """Make the binding, in place of one that was there; answers with its token."""
    decision = _require(ctx, agent)
    text = settings(ctx, kind, config)
    if was is not None:
        ctx.tx.run(statements.REMOVE_BINDING, binding=was.id, now=ctx.now)
        ctx.record("binding.delete", f"binding:{was.id}", _about(was), decision)
    token = new_token(TokenKind.CHANNEL)
    made = Binding(
        id=BindingId(ctx.ids.new()),
        company_id=CompanyId(ctx.company or ""),
        agent_id=agent.id,
        adapter_type=kind,
        adapter_token=token_digest(token),
        adapter_config=text,
        created_at=ctx.now,
        removed_at=None,
    )
    ctx.tx.run(statements.INSERT_BINDING, **row(made))
    ctx.record("binding.create", f"binding:{made.id}", _about(made), decision)
    return made, token


def configure(ctx: Context, agent: Agent, binding: Binding, config: Mapping[str, Any]) -> Binding:
    """Say anew how a binding works; its token stays."""
    decision = _require(ctx, agent)
    text = settings(ctx, binding.adapter_type, config)
    ctx.tx.run(statements.CONFIGURE_BINDING, binding=binding.id, new_config=text)
    ctx.record("binding.change", f"binding:{binding.id}", _about(binding), decision)
    found = live(ctx, agent.id, binding.adapter_type)
    assert found is not None
    return found


def settings(ctx: Context, kind: str, config: Mapping[str, Any]) -> str:
    """A binding's settings as the channel's own model takes them; a secret they name is there."""
    text = registry.installed.validate(kind, config)
    name = registry.secret_of(json.loads(text))
    secrets.require_all(ctx, [] if name is None else [name])
    return text


@query("bindings.channels")
def channels(ctx: Context, *, company: str | None) -> list[dict[str, Any]]:
    """The kinds of channels that there are here, and how a binding to each is configured."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.COMPANY_READ, on="channels")
    found = [
        {
            "type": one.type,
            "summary": one.summary,
            "text": one.configuration_doc(),
            "problem": None,
        }
        for one in registry.installed.all()
    ]
    return found + [
        {"type": name, "summary": "", "text": "", "problem": problem}
        for name, problem in sorted(registry.installed.problems().items())
    ]


@query("bindings.listing")
def listing(
    ctx: Context,
    *,
    company: str | None = None,
    agent: str | None = None,
    after: str = "",
    limit: int = 100,
) -> list[dict[str, Any]]:
    """The bindings of a company, or of one agent; an agent sees its own."""
    lookup.company_of_caller(ctx, company)
    whose = lookup.agent_ever(ctx, agent).id if agent else ctx.actor.agent_id
    ctx.require(
        Action.BINDING_READ, on=f"agent:{whose}" if whose else "bindings", place=ctx.place(whose)
    )
    found = ctx.tx.all(
        statements.BINDINGS,
        company=ctx.company,
        agent=whose or "",
        any_agent=whose is None,
        after=after,
        limit=limit,
    )
    return [view(ctx, one) for one in found]


@command("bindings.remove")
def remove(ctx: Context, *, company: str | None, binding: str) -> Answer:
    """End a binding: nothing comes in by its token any more, and what has not gone out is dead."""
    lookup.company_of_caller(ctx, company)
    found = ctx.tx.one(statements.BINDING, company=ctx.company, binding=binding)
    if found is None or not is_id(binding):
        raise NotFound("There is no such binding here.", "See `remit bind list`.")
    decision = ctx.require(Action.BINDING_CHANGE, on=f"binding:{found.id}", home=found.agent_id)
    end(ctx, found)
    ctx.accept_rule(decision)
    return {"id": found.id, "removed": True}


def end(ctx: Context, binding: Binding) -> list[MessageId]:
    """Answers what waited to go out, and is dead now."""
    ctx.tx.run(statements.REMOVE_BINDING, binding=binding.id, now=ctx.now)
    unsent = outbox.bury(ctx, binding.agent_id, binding.adapter_type)
    ctx.record("binding.delete", f"binding:{binding.id}", _about(binding))
    return unsent


def bind_again(ctx: Context, agent: Agent, binding: str) -> str | None:
    """Bind an agent that works again as it was bound; why not, if that cannot be."""
    was = ctx.tx.one(statements.BINDING_EVER, binding=binding)
    if was is None or was.agent_id != agent.id:
        return "it is known no more"
    if live(ctx, agent.id, was.adapter_type) is not None:
        return "it is bound anew by now"
    ctx.tx.run(statements.BIND_AGAIN, binding=was.id)
    ctx.record("binding.restore", f"binding:{was.id}", _about(was))
    return None


def end_all(ctx: Context, agent: Agent) -> dict[str, Any]:
    """When an agent is gone, nobody reaches it. Answers what ended."""
    ended: dict[str, Any] = {"bindings": {}, "unsent": []}
    for binding in ctx.tx.all(
        statements.BINDINGS,
        company=ctx.company,
        agent=agent.id,
        any_agent=False,
        after="",
        limit=1 << 30,
    ):
        ended["unsent"] += end(ctx, binding)
        ended["bindings"][binding.id] = binding.adapter_type
    return ended


def live(ctx: Context, agent: str, kind: str) -> Binding | None:
    """How an agent is bound to a kind of channel, if it is."""
    return ctx.tx.one(statements.BOUND, agent=agent, kind=kind)


def view(ctx: Context, binding: Binding) -> dict[str, Any]:
    """A binding as it is shown: never its token, and no secret of its settings."""
    agent = lookup.agent_row(ctx, binding.agent_id)
    seen: shapes.BindingShape = {
        "id": binding.id,
        "company_id": binding.company_id,
        "agent_id": binding.agent_id,
        "agent_name": agent.name if agent else binding.agent_id,
        "adapter_type": binding.adapter_type,
        "adapter_config": shown(json.loads(binding.adapter_config)),
        "created_at": views.time(binding.created_at),
    }
    return cast(dict[str, Any], seen)


def shown(config: Mapping[str, Any]) -> dict[str, Any]:
    """Settings without what opens something. Of an address only whose it is: for many services
    the rest of it is the key."""
    cut = {key: _cut(value) for key, value in config.items()}
    clean: dict[str, Any] = without_secrets(cut)[0]
    return clean


def _cut(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        return value
    parts = urlsplit(value)
    rest = "/…" if parts.path.strip("/") or parts.query else parts.path
    return f"{parts.scheme}://{parts.netloc}{rest}"


def _bindable(ctx: Context, text: str) -> Agent:
    found = lookup.agent_ever(ctx, text)
    _require(ctx, found)
    if found.status is AgentStatus.TERMINATED:
        raise Conflict(f"{found.name} is terminated.", "Bind an agent that works here.")
    if found.status is AgentStatus.PENDING_APPROVAL:
        raise Conflict(f"{found.name} awaits approval.", "Bind it when its hire is approved.")
    return found


def _require(ctx: Context, agent: Agent) -> Any:
    return ctx.require(
        Action.BINDING_CHANGE,
        on=f"agent:{agent.id}",
        home=agent.id,
    )


def _about(binding: Binding) -> dict[str, Any]:
    return {"agent_id": binding.agent_id, "adapter_type": binding.adapter_type}
