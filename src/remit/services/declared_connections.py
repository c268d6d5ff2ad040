"""What lies outside, in a document that declares a company: secrets, repositories, MCP servers and
bindings. A document says where a secret is found, and never what it is."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from remit.errors import Conflict
from remit.model.agent import Agent, AgentStatus
from remit.model.channel import channel_kind
from remit.model.mcp_server import McpServer, define, server_name
from remit.model.secret import parse_place, secret_name, shown_place, source_name
from remit.services import bindings, lookup, mcp_servers, repos, secrets
from remit.services.command import Context
from remit.services.declared import Entry, Plan, at, once, text
from remit.services.redaction import REMOVED, restore
from remit.store import mcp_servers as server_statements
from remit.store import secrets as secret_statements
from remit.store.statement import row

SECRET = ("name", "source", "place")
REPO = ("name", "url", "ref", "username", "secret")
#: As they are called in a file, and what the verb calls them.
_SERVER = {
    "command": "command",
    "url": "url",
    "env": "env",
    "secretEnv": "secret_env",
    "headers": "headers",
    "secretHeaders": "secret_headers",
    "inject": "inject",
}
MCP_SERVER = ("name", *_SERVER)
BINDING = ("agent", "adapterType", "adapterConfig")


def secrets_(ctx: Context, plan: Plan, given: list[Entry]) -> None:
    seen: dict[str, str] = {}
    for number, entry in enumerate(given):
        path = f"secrets[{number}]"
        once(seen, text(path, entry, "name"), path)
        with at(path, SECRET):
            called = secret_name(entry["name"])
            source = source_name(entry.get("source"))
            place = parse_place(source, entry.get("place"))
            found = ctx.tx.one(secret_statements.SECRET_NAMED, company=ctx.company, name=called)
            wish = {"source": source, "place": entry["place"]}
            if found is not None and (found.source, found.place) == (source, place):
                plan.add(path, "secret", called, "unchanged")
                continue
            made = secrets.put.body(ctx, company=ctx.company, name=called, **wish)
            if found is None:
                plan.add(path, "secret", called, "create")
                continue
            plan.replaced.append(made["replaced"])
            was = {"source": found.source, "place": shown_place(found)}
            now = {"source": made["source"], "place": made["place"]}
            plan.compare(path, "secret", called, _differences(was, now))


def repos_(ctx: Context, plan: Plan, given: list[Entry]) -> None:
    seen: dict[str, str] = {}
    for number, entry in enumerate(given):
        path = f"repos[{number}]"
        once(seen, text(path, entry, "name"), path)
        with at(path, REPO):
            wanted = repos.wanted(**{"url": None, **entry})
            found = repos.of_name(ctx, wanted.name)
            if found is None:
                repos.add.body(ctx, company=ctx.company, **entry)
                plan.add(path, "repo", wanted.name, "create")
                continue
            changes = [
                {"path": key, "was": getattr(found, key), "now": getattr(wanted, key)}
                for key in REPO
                if getattr(found, key) != getattr(wanted, key)
            ]
            if changes:
                repos.change(ctx, found, wanted)
            plan.compare(path, "repo", found.name, changes)


def mcp_servers_(ctx: Context, plan: Plan, given: list[Entry]) -> None:
    seen: dict[str, str] = {}
    for number, entry in enumerate(given):
        path = f"mcp_servers[{number}]"
        once(seen, text(path, entry, "name"), path)
        with at(path, MCP_SERVER):
            called = server_name(entry["name"])
            found = ctx.tx.one(server_statements.SERVER_NAMED, company=ctx.company, name=called)
            wish = {ours: entry.get(theirs) for theirs, ours in _SERVER.items()}
            wish["inject"] = entry.get("inject", False)
            wish = _as_it_was(wish, found)
            wanted = row(define(**wish))
            if found is not None and all(row(found)[key] == one for key, one in wanted.items()):
                plan.add(path, "MCP server", called, "unchanged")
                continue
            was = {} if found is None else mcp_servers.view(ctx, found)
            now = mcp_servers.add.body(
                ctx, company=ctx.company, name=called, definition=wish, replace=True
            )
            if found is None:
                plan.add(path, "MCP server", called, "create")
                continue
            shown = [{theirs: one[ours] for theirs, ours in _SERVER.items()} for one in (was, now)]
            changes = _differences(*shown)
            hidden = _hidden("env" if found.command else "headers")
            plan.compare(path, "MCP server", called, changes or hidden)


def _as_it_was(wish: dict[str, Any], found: McpServer | None) -> dict[str, Any]:
    """What was shown as taken out and comes back like that stays what it was."""
    if found is None:
        return wish
    kept = {key: restore(wish[key], found.settings) for key in ("env", "headers") if wish[key]}
    if wish["command"]:
        kept["command"] = restore(wish["command"], found.argv)
    return {**wish, **kept}


def bindings_(ctx: Context, plan: Plan, given: list[Entry]) -> None:
    """A binding is known by its agent and the kind of channel; a new one gets a token, which is
    shown once."""
    seen: dict[Any, str] = {}
    for number, entry in enumerate(given):
        path = f"bindings[{number}]"
        text(path, entry, "agent")
        with at(path, BINDING):
            agent = _working(ctx, entry["agent"])
            kind = channel_kind(entry.get("adapterType"))
            once(seen, (agent.id, kind), path)
            config = entry.get("adapterConfig", {})
            found = bindings.live(ctx, agent.id, kind)
            name = f"{agent.name} {kind}"
            if found is None:
                _, token = bindings.bind(ctx, agent, kind, config)
                shown = {"agent": agent.name, "adapter_type": kind, "token": token}
                plan.tokens.append(shown)
                plan.add(path, "binding", name, "create")
                continue
            was = json.loads(found.adapter_config)
            if isinstance(config, Mapping):
                # What comes back as it was shown stays what it was.
                seen_as = bindings.shown(was)
                config = {
                    key: was[key] if seen_as.get(key) == value else value
                    for key, value in config.items()
                }
            now = json.loads(bindings.settings(ctx, kind, config))
            if was == now:
                plan.add(path, "binding", name, "unchanged")
                continue
            bindings.configure(ctx, agent, found, config)
            changes = [
                {**one, "path": f"adapterConfig.{one['path']}"}
                for one in _differences(bindings.shown(was), bindings.shown(now))
            ]
            plan.compare(path, "binding", name, changes or _hidden("adapterConfig"))


def _working(ctx: Context, text: str) -> Agent:
    found = lookup.agent(ctx, text)
    if found.status in (AgentStatus.TERMINATED, AgentStatus.PENDING_APPROVAL):
        raise Conflict(f"{found.name} does not work here.", "Bind an agent that does.")
    return found


def _hidden(path: str) -> list[dict[str, Any]]:
    """That something changed which is not shown."""
    return [{"path": path, "was": REMOVED, "now": REMOVED}]


def _differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"path": key, "was": was.get(key), "now": now.get(key)}
        for key in dict.fromkeys((*was, *now))
        if was.get(key) != now.get(key)
    ]
