"""Plugins that agents are lent: skills, commands and agents of a project or a person, by choice.

The caller sends the files themselves and is shown what of them would be lent; the digest of that
makes sure that nothing else is. The copy is what runs read, whatever becomes of the folder.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

from remit.authority import Action
from remit.clock import to_iso
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound
from remit.ids import LentPluginId
from remit.model.connections.lent_plugin import (
    LONGEST_SOURCE,
    MOST_PLUGINS,
    Lendable,
    LentItem,
    LentPlugin,
    lendable,
    plugin_name,
    unpacked,
)
from remit.model.organisation.agent import Agent, AgentStatus
from remit.services import lookup, shapes
from remit.services.command import Context, command, query
from remit.services.fields import AgentRef, Help, Text
from remit.services.surfaces import AsRoute
from remit.services.verbs import preview_of
from remit.store.connections import lent_plugins as statements

Name = Annotated[str, Text(64, one_line=True)]
Source = Annotated[str, Text(LONGEST_SOURCE, one_line=True), Help("Where it was copied from.")]


# The route shows what would be lent, too, so it is written by hand.
@command("lent_plugins.lend")
def lend(
    ctx: Context,
    *,
    agent: AgentRef,
    name: Annotated[Name, Help("Prefix of each skill in a program: NAME:skill.")],
    source: Source,
    files: Annotated[Mapping[str, Any], Help("Contents in base64, by path.")],
    seen: Annotated[str, Text(64, one_line=True), Help("Digest of what was shown.")] | None = None,
) -> shapes.LentPluginShape:
    """Lend skills, commands and agents to an agent, which its runs find from then on."""
    called, copied = plugin_name(name), lendable(_decoded(files))
    agent_row = _concerned(ctx, agent)
    if seen is not None and seen != copied.sha256:
        raise Conflict("Something else is in the folder than what was shown.", "Look again.")
    lent = ctx.tx.all(statements.OF_AGENT, agent=agent_row.id)
    if len(lent) >= MOST_PLUGINS:
        raise Conflict(f"{agent_row.name} is lent {MOST_PLUGINS} plugins.", "Take one back first.")
    if any(plugin.name == called for plugin in lent):
        raise AlreadyExists(
            f"{agent_row.name} is lent a plugin {called} already.",
            f"Take it back first: `remit agent lend {agent_row.name} --remove {called}`.",
        )
    plugin = LentPlugin(
        LentPluginId(ctx.ids.new()),
        agent_row.company_id,
        ctx.now,
        agent_row.id,
        called,
        source,
        copied.sha256,
        copied.packed,
    )
    ctx.tx.add(plugin)
    about = {"name": called, "source": source, "sha256": copied.sha256}
    items = [f"{item.kind.value} {item.name}" for item in copied.items]
    ctx.record("agent.lend", f"agent:{agent_row.id}", {**about, "items": items})
    return _view(plugin, copied)


#: Shows the plugin and its digest without lending it.
preview = preview_of("lent_plugins.preview", lend)


@query("lent_plugins.listing", AsRoute("GET /agents/{id}/lent", "list_lent_plugins"))
def listing(ctx: Context, *, agent: AgentRef) -> list[shapes.LentPluginShape]:
    """Plugins that an agent is lent."""
    agent_row = lookup.agent_anywhere(ctx, agent)
    ctx.require(Action.CONFIG_READ, on=f"agent:{agent_row.id}", home=agent_row.id)
    return [
        _view(plugin, lendable(unpacked(plugin.contents)))
        for plugin in ctx.tx.all(statements.OF_AGENT, agent=agent_row.id)
    ]


@command("lent_plugins.take_back", AsRoute("DELETE /agents/{id}/lent/{plugin}", "take_plugin_back"))
def take_back(ctx: Context, *, agent: AgentRef, plugin: Name) -> shapes.RemovedShape:
    """Take a plugin back from an agent; runs that begin from now on do not find it."""
    agent_row = _concerned(ctx, agent, also_terminated=True)
    lent = ctx.tx.all(statements.OF_AGENT, agent=agent_row.id)
    there = next((row for row in lent if plugin in (row.id, row.name)), None)
    if there is None:
        raise NotFound(
            f"{agent_row.name} is lent no plugin {plugin[:64]!r}.",
            f"See `remit agent lend {agent_row.name}`.",
        )
    ctx.tx.run(statements.TAKE_BACK, plugin=there.id)
    about = {"name": there.name, "sha256": there.sha256}
    ctx.record("agent.take_back", f"agent:{agent_row.id}", about)
    return {"id": there.id, "removed": True}


def lent_to(ctx: Context, agent: Agent) -> list[LentPlugin]:
    """Return the plugins that a run of an agent is lent."""
    return list(ctx.tx.all(statements.OF_AGENT, company=agent.company_id, agent=agent.id))


def _concerned(ctx: Context, text: str, *, also_terminated: bool = False) -> Agent:
    agent = lookup.agent_anywhere(ctx, text)
    ctx.require(Action.AGENT_LEND, on=f"agent:{agent.id}", home=agent.id)
    if agent.status is AgentStatus.TERMINATED and not also_terminated:
        raise Conflict(f"{agent.name} is terminated.", "Lend to an agent that works here.")
    return agent


def _decoded(files: Mapping[str, Any]) -> dict[str, bytes]:
    try:
        return {path: base64.b64decode(raw, validate=True) for path, raw in files.items()}
    except (binascii.Error, TypeError, ValueError):
        raise BadInput("files must be base64 by path.", "Encode each file by itself.") from None


def _view(plugin: LentPlugin, copied: Lendable) -> shapes.LentPluginShape:
    return {
        "id": plugin.id,
        "agent_id": plugin.agent_id,
        "name": plugin.name,
        "source": plugin.source,
        "sha256": plugin.sha256,
        "created_at": to_iso(plugin.created_at),
        "items": [_view_item(item) for item in copied.items],
        "left_out": list(copied.left_out),
        "dry_run": False,
    }


def _view_item(item: LentItem) -> shapes.LentItemShape:
    shown = asdict(item)
    return {
        "kind": item.kind.value,
        "name": item.name,
        "description": item.description,
        "files": list(shown["files"]),
        "starts": list(shown["starts"]),
        "text": item.text,
    }
