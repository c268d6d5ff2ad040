"""Connections in a document that declares a company: secrets, repositories, checks, MCP servers,
bindings and folders. A document has the place of a secret, never its value."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from remit.errors import BadInput, Conflict
from remit.model.connections import check as checks
from remit.model.connections.folder import FolderKind, folder_path, set_variables
from remit.model.connections.mcp_server import McpServer, define, server_name
from remit.model.connections.secret import parse_place, secret_name, shown_place, source_name
from remit.model.messaging.channel import channel_kind
from remit.model.organisation.agent import Agent, AgentStatus
from remit.services import lookup
from remit.services.command import Context
from remit.services.connections import bindings, folders, mcp_servers, repo_checks, repos, secrets
from remit.services.declared.declaration import Entry, Once, Plan, Section, differences, fitting
from remit.services.redaction import REMOVED, restore
from remit.store.connections import folders as folder_statements
from remit.store.connections import mcp_servers as server_statements
from remit.store.connections import secrets as secret_statements
from remit.store.engine.statement import row

SECRET = ("name", "source", "place")
REPO = (
    *("name", "url", "ref", "username", "secret", "instructions"),
    *(*repos.FORGE_FIELDS, *repos.PUSH_FIELDS),
)
#: Names of settings in a file, and the verb's names for them.
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
CHECK = ("repo", "name", "command", "seconds", "network", "required", "protected")
FOLDER = ("agent", "repo", "path", "megabytes", "instructions")
MOUNT = ("path", "agent", "programs", "variables")


def _secret(ctx: Context, plan: Plan, entry: Entry, once: Once) -> tuple[str, list[Any] | None]:
    once(entry["name"])
    called = secret_name(entry["name"])
    source = source_name(entry.get("source"))
    place = parse_place(source, entry.get("place"))
    secret = ctx.tx.one(secret_statements.SECRET_NAMED, name=called)
    if secret is not None and (secret.source, secret.place) == (source, place):
        return called, []
    wish = {"source": source, "place": entry["place"]}
    stored = secrets.put.body(ctx, company=ctx.company, name=called, **wish)
    if secret is None:
        return called, None
    plan.replaced.append(stored["replaced"])
    was = {"source": secret.source, "place": shown_place(secret)}
    return called, differences(was, {"source": stored["source"], "place": stored["place"]})


def _repo(ctx: Context, _: Plan, entry: Entry, once: Once) -> tuple[str, list[Any] | None]:
    once(entry["name"])
    wanted = repos.wanted(**{"url": None, **entry})
    repo = repos.of_name(ctx, wanted.name)
    if repo is None:
        repos.add.body(ctx, company=ctx.company, **entry)
        return wanted.name, None
    changes = differences(*({key: getattr(spec, key) for key in REPO} for spec in (repo, wanted)))
    if changes:
        repos.change(ctx, repo, wanted)
    return repo.name, changes


def _check(ctx: Context, _: Plan, entry: Entry, once: Once) -> tuple[str, list[Any] | None]:
    """Carry out a check: identified by its repository and its name, and declared as a whole."""
    once((entry["repo"], entry["name"]))
    if REMOVED in entry["command"]:
        raise BadInput("command: something was taken out of it.", "Say it anew, without a secret.")
    described = {"check" if key == "name" else key: value for key, value in entry.items()}
    arguments = fitting(repo_checks.set_check, described)
    repo = repos.named(ctx, arguments["repo"])
    was = next(
        (check for check in checks.read(repo.checks) if check.name == arguments["check"]), None
    )
    about = {key: value for key, value in arguments.items() if key not in ("repo", "check")}
    now = checks.repo_check(arguments["check"], **{"protected": checks.DEFAULT_PROTECTED, **about})
    name = f"{repo.name} {now.name}"
    if was != now:
        repo_checks.set_check.body(ctx, company=ctx.company, **arguments)
    return name, None if was is None else differences(asdict(was), asdict(now))


def _mcp_server(ctx: Context, _: Plan, entry: Entry, once: Once) -> tuple[str, list[Any] | None]:
    once(entry["name"])
    called = server_name(entry["name"])
    server = ctx.tx.one(server_statements.SERVER_NAMED, name=called)
    wish = {ours: entry.get(theirs) for theirs, ours in _SERVER.items()}
    wish["inject"] = entry.get("inject", False)
    wish = _as_it_was(wish, server)
    wanted = row(define(**wish))
    if server is not None and all(row(server)[key] == setting for key, setting in wanted.items()):
        return called, []
    was = {} if server is None else dict(mcp_servers.view(ctx, server))
    now = mcp_servers.add.body(ctx, company=ctx.company, name=called, definition=wish, replace=True)
    if server is None:
        return called, None
    shown = [{theirs: view[ours] for theirs, ours in _SERVER.items()} for view in (was, now)]
    return called, differences(*shown) or _hidden("env" if server.command else "headers")


def _as_it_was(wish: dict[str, object], server: McpServer | None) -> dict[str, object]:
    """Return the wished settings, with stored values in place of redacted ones."""
    if server is None:
        return wish
    kept = {key: restore(wish[key], server.settings) for key in ("env", "headers") if wish[key]}
    if wish["command"]:
        kept["command"] = restore(wish["command"], server.argv)
    return {**wish, **kept}


def _binding(ctx: Context, plan: Plan, entry: Entry, once: Once) -> tuple[str, list[Any] | None]:
    """Carry out a binding: identified by its agent and the kind of channel; a new one gets a token,
    which is shown once."""
    agent = _working(ctx, entry["agent"])
    kind = channel_kind(entry.get("adapterType"))
    once((agent.id, kind))
    config = entry.get("adapterConfig", {})
    binding = bindings.live(ctx, agent.id, kind)
    name = f"{agent.name} {kind}"
    if binding is None or binding.held:
        _, token = bindings.bind(ctx, agent, kind, config, binding)
        plan.tokens.append({"agent": agent.name, "adapter_type": kind, "token": token})
        return name, None
    was = json.loads(binding.adapter_config)
    if isinstance(config, Mapping):
        # A secret that comes back as it was shown keeps its value.
        seen_as = bindings.shown(was)
        config = {
            key: was[key] if seen_as.get(key) == value else value for key, value in config.items()
        }
    now = json.loads(bindings.settings(ctx, kind, config))
    if was == now:
        return name, []
    bindings.configure(ctx, agent, binding, config)
    changes = [
        {**change, "path": f"adapterConfig.{change['path']}"}
        for change in differences(bindings.shown(was), bindings.shown(now))
    ]
    return name, changes or _hidden("adapterConfig")


def _folder(ctx: Context, _: Plan, entry: Entry, once: Once) -> tuple[str, list[Any] | None]:
    """Carry out the one folder of an agent. It is never replaced automatically, because the content
    of a copy is deleted with it."""
    agent = _working(ctx, entry["agent"])
    once(agent.id)
    arguments = {**fitting(folders.bind, entry), "agent": agent.id}
    folder = ctx.tx.one(folder_statements.WORK_FOLDER, agent=agent.id)
    if folder is None:
        new_folder = folders.bind.body(ctx, company=ctx.company, **arguments)
        return f"{agent.name} {new_folder['title']}", None
    shown = folders.view(ctx, folder)
    if any(arguments.get(key, shown[key]) != shown[key] for key in ("repo", "path")):
        raise Conflict(
            f"{agent.name} works in {shown['title']}.",
            f"Remove that first, with what is in a copy: `remit folder remove {folder.id}`.",
        )
    was = {"megabytes": folder.most_megabytes, "instructions": folder.instructions}
    wish = {key: arguments[key] for key in was if arguments.get(key) is not None}
    changes = differences(was, {**was, **wish})
    if changes:
        folders.change.body(ctx, company=ctx.company, folder=folder.id, **wish)
    return f"{agent.name} {shown['title']}", changes


def _mount(ctx: Context, _: Plan, entry: Entry, once: Once) -> tuple[str, list[Any] | None]:
    """Carry out a mount: identified by its path and its agent, and declared as a whole."""
    arguments = fitting(folders.mount, entry)
    path = folder_path(arguments["path"])
    agent = None if "agent" not in arguments else _working(ctx, arguments["agent"])
    known = (path, None if agent is None else agent.id)
    once(known)
    here = ctx.tx.all(folder_statements.FOLDERS, after="", limit=folders.MOST_FOLDERS)
    tools = (folder for folder in here if folder.kind is FolderKind.TOOLS)
    mount = next((tool for tool in tools if (tool.path, tool.agent_id) == known), None)
    now = {
        "programs": arguments.get("programs", []),
        "variables": json.loads(set_variables(arguments.get("variables", ()))),
    }
    was = {} if mount is None else {key: json.loads(getattr(mount, key)) for key in now}
    changes = differences(was, now)
    if mount is not None:
        if not changes:
            return path, []
        folders.remove.body(ctx, company=ctx.company, folder=mount.id)
    folders.mount.body(ctx, company=ctx.company, **arguments)
    return path, changes if mount is not None else None


def _working(ctx: Context, text: str) -> Agent:
    agent = lookup.agent(ctx, text)
    if agent.status in (AgentStatus.TERMINATED, AgentStatus.PENDING_APPROVAL):
        raise Conflict(f"{agent.name} does not work here.", "Bind an agent that does.")
    return agent


def _hidden(path: str) -> list[dict[str, object]]:
    """A change of a value that is not shown."""
    return [{"path": path, "was": REMOVED, "now": REMOVED}]


SECTIONS = {
    "secrets": Section("secret", SECRET, ("name",), _secret),
    "repos": Section("repo", REPO, ("name",), _repo),
    "checks": Section("check", CHECK, ("repo", "name", "command"), _check),
    "mcp_servers": Section("MCP server", MCP_SERVER, ("name",), _mcp_server),
    "bindings": Section("binding", BINDING, ("agent",), _binding),
    "folders": Section("folder", FOLDER, ("agent",), _folder),
    "mounts": Section("mount", MOUNT, ("path",), _mount),
}
