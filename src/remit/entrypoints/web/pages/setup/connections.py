"""Set-up of connections: secrets, MCP servers, repositories and channels."""

import asyncio
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from remit import threads
from remit.channels import registry
from remit.entrypoints.binding_trial import asked
from remit.entrypoints.http.routes.connections import ServerBody
from remit.entrypoints.web.pages.setup.noun import (
    MOST,
    Act,
    Given,
    Noun,
    Row,
    Tried,
    does,
    fields_of,
    rows_of,
    saves,
)
from remit.entrypoints.web.site import Page, Visit
from remit.entrypoints.web.text import settings_form
from remit.entrypoints.web.text.settings_form import Setting
from remit.errors import BadInput, Conflict, NotFound, Refused, RemitError
from remit.model.connections.folder import KEY_FILES
from remit.model.connections.secret import Secret, parse_place, source_name
from remit.model.text import plural
from remit.services.command import Verb
from remit.services.connections import bindings, folders, mcp_servers, repo_checks, repos, secrets
from remit.services.identity import as_system

#: Kind of a secret whose value the instance stores.
_VALUE = "value"


# ── secrets ─────────────────────────────────────────────────────────────────────────────────────


def _secret_rows(visit: Visit) -> list[Secret]:
    return visit.ask(secrets.listing, company=visit.company_id, limit=MOST)


async def _looked_for(visit: Visit, listed: list[Secret]) -> list[Row]:
    """Rows of secrets, with whether each can be read here."""
    problems = await visit.site.app.vault.problems(listed)
    return [
        Row(
            secret.name,
            secret.name,
            (_where(visit, secret), secret.version),
            ("good", "found") if why is None else ("bad", "missing"),
            why or "",
        )
        for secret, why in zip(listed, problems, strict=True)
    ]


def _where(visit: Visit, secret: Secret) -> str:
    if visit.site.app.vault.keeps(secret.place):
        return "kept by this instance"
    shown = secrets.view(secret)
    source = {"env": "variable"}.get(str(shown["source"]), str(shown["source"]))
    return f"{source} {shown['place']}" if shown["place"] else source


def _secret_kinds(visit: Visit) -> Sequence[tuple[str, str]]:
    words = {
        "env": "A variable of the instance's environment",
        "file": "A file on the instance's machine",
        "command": "The output of a command",
    }
    known = [(name, words.get(name, name)) for name in visit.site.app.vault.source_names]
    return [(_VALUE, "A value that the instance keeps"), *known]


def _secret_fields(visit: Visit) -> list[Setting]:
    name = Setting(
        "name", "text", True, "Small letters and digits, such as github-token.", "", (), "Name"
    )
    kind = SECRETS.kind(visit)
    if kind == _VALUE:
        value = Setting(
            "value", "password", True, "It is kept in a file and never shown.", "", (), "Value"
        )
        return [name, value]
    help_ = {
        "env": "The variable's name.",
        "file": "The path of the file.",
        "command": "The program and its arguments, one on each line.",
    }.get(kind, "As the plugin wants it.")
    lines = "lines" if kind == "command" else "text"
    return [name, Setting("place", lines, True, help_, "", (), "Source")]


async def _test_secret(visit: Visit, arguments: Given) -> Tried:
    kind, vault = SECRETS.kind(visit), visit.site.app.vault
    if kind != _VALUE:
        vault.check_source(source_name(kind))
    await visit.do(secrets.may_change, company=visit.company_id, name=arguments["name"])
    if kind == _VALUE:
        return Tried(True, "A value needs no test.", "Save it.")
    problem = await vault.try_place(kind, parse_place(kind, arguments["place"]))
    if problem is not None:
        return Tried(False, problem, "Check the source, or save it and fix that later.")
    return Tried(True, "The secret can be read.", "Its value is not shown.")


async def _save_secret(visit: Visit, arguments: Given) -> str:
    kind, vault, company = SECRETS.kind(visit), visit.site.app.vault, visit.company_id
    if kind == _VALUE:
        await vault.put(visit.caller, company=company, **arguments)
    else:
        vault.check_source(source_name(kind))
        answer = await visit.do(secrets.put, company=company, source=kind, **arguments)
        await vault.settled(answer)
    return f"The secret {arguments['name']} is saved."


async def _remove_secret(visit: Visit, name: str) -> str:
    await visit.site.app.vault.remove(visit.caller, company=visit.company_id, name=name)
    return f"The secret {name} is removed."


SECRETS = Noun(
    *("secrets", "Secrets", "secret", "secret"),
    about="Keys and passwords, by name. Agents, servers and repositories name them; nobody is "
    "shown a value.",
    empty="No secrets yet.",
    step="Add the key of a model or a password; servers, repositories and agents then name it.",
    columns=("Found in", "Version"),
    rows=_secret_rows,
    complete=_looked_for,
    fields=_secret_fields,
    save=_save_secret,
    test=_test_secret,
    operators=True,
    kinds=_secret_kinds,
    acts={"remove": Act("Remove", _remove_secret, "Remove the secret {}?")},
)


# ── MCP servers ─────────────────────────────────────────────────────────────────────────────────


def _server_row(server: Mapping[str, Any]) -> Row:
    place = server["url"] or " ".join(server["command"] or ())
    agents = len(server["holders"])
    return Row(
        server["name"], server["name"], (place, plural(agents, "agent") if agents else "nobody")
    )


_TRANSPORTS = (("program", "A program on this machine"), ("address", "An address (HTTP)"))
_OF_PROGRAM = ("command", "env", "secretEnv", "inject")
_OF_ADDRESS = ("url", "headers", "secretHeaders")
_LABELS = {
    "command": "Program and arguments",
    "env": "Variables",
    "secretEnv": "Variables with secrets",
    "secretHeaders": "Headers with secrets",
    "inject": "Give the variables to programs of agents, too",
}
_WORDS = {
    "name": "Small letters and digits, such as github.",
    "command": "One on each line: the program first.",
    "env": "NAME=VALUE, one on each line.",
    "secretEnv": "NAME=SECRET, one on each line; SECRET is the name of one.",
    "headers": "NAME=VALUE, one on each line.",
    "secretHeaders": "Such as Authorization=Bearer {github-token}, one on each line.",
    "inject": "Not safe: agents then see the values.",
}


def _server_fields(visit: Visit) -> list[Setting]:
    kind = SERVERS.kind(visit)
    without = _OF_ADDRESS if kind == "program" else _OF_PROGRAM
    return settings_form.of_model(
        ServerBody,
        labels=_LABELS,
        words=_WORDS,
        without=("replace", *without),
        needed=("command", "url"),  # one of the two is required, which the schema does not express
    )


def _described(visit: Visit, arguments: Given) -> Given:
    """Arguments of a verb that takes the description of a server."""
    body = ServerBody.model_validate(arguments)
    definition = body.model_dump(exclude={"name", "replace"})
    name = arguments.get("name")
    return {"company": visit.company_id, "name": name, "definition": definition}


async def _tried_server(visit: Visit, server: Any) -> Tried:
    # Imported here, because it takes a second and is seldom needed.
    upstream = await asyncio.to_thread(import_module, "remit.entrypoints.mcp.upstream")
    trial = await upstream.try_out(visit.site.app, server)
    if not trial["usable"]:
        return Tried(False, trial["error"], trial["complaint"])
    tools = [f"{tool['name']}: {(tool['description'] or '')[:120]}" for tool in trial["tools"]]
    return Tried(True, f"It answers, with {plural(len(tools), 'tool')}.", "", tools[:50])


async def _test_new_server(visit: Visit, arguments: Given) -> Tried:
    candidate = await visit.do(mcp_servers.try_new, **_described(visit, arguments))
    return await _tried_server(visit, candidate)


async def _test_server(visit: Visit, name: str) -> Tried:
    allowed = await visit.do(mcp_servers.try_out, company=visit.company_id, name=name)
    server = await visit.site.app.gate(
        as_system(), mcp_servers.find, company=allowed["company_id"], name=allowed["name"]
    )
    return await _tried_server(visit, server)


async def _save_server(visit: Visit, arguments: Given) -> str:
    await visit.do(mcp_servers.add, **_described(visit, arguments))
    return f"Agents can be granted mcp_server:{arguments.get('name')} now."


async def _remove_server(visit: Visit, name: str) -> str:
    done = await visit.do(mcp_servers.remove, company=visit.company_id, name=name)
    return f"{name} is removed, and {plural(len(done['revoked']), 'permission')} to use it."


SERVERS = Noun(
    *("mcp-servers", "MCP servers", "MCP server", "tool"),
    about="External tools that agents call through Remit, once granted.",
    empty="No MCP servers yet.",
    step="Add one, then grant it to the agents that need its tools.",
    columns=("Program or address", "Granted to"),
    rows=rows_of(mcp_servers.listing, _server_row),
    fields=_server_fields,
    save=_save_server,
    test=_test_new_server,
    operators=True,
    kinds=lambda _: _TRANSPORTS,
    acts={
        "test": Act("Test", _test_server),
        "remove": Act("Remove", _remove_server, "Remove {} and every right to use it?"),
    },
)


# ── repositories ────────────────────────────────────────────────────────────────────────────────


#: The ways that proposals take to the remote, in the list.
_PUSHED = {"at_once": "at once", "after_look": "after a look", "fork": "to a fork"}


def _repo_rows(visit: Visit) -> list[Row]:
    rows = visit.ask(repos.listing, company=visit.company_id, limit=MOST)
    return [_repo_row(visit, repo) for repo in rows]


def _repo_row(visit: Visit, repo: Mapping[str, Any]) -> Row:
    opened = (repo.get("secret") or "none", repo.get("forge") or "none", _told(repo))
    place = (repo["url"], repo.get("ref") or "default branch")
    way = _PUSHED.get(repo.get("push") or "", "")
    link = visit.link("/setup/repositories/pushing", repo=repo["name"])
    return Row(repo["name"], repo["name"], (*place, *opened, way), link=link)


async def _test_repo(visit: Visit, arguments: Given) -> Tried:
    try:
        remote = await visit.site.app.repos.try_out(
            visit.caller, company=visit.company_id, **arguments
        )
    except RemitError as error:
        if isinstance(error, BadInput | Refused | Conflict):
            raise
        return Tried(False, error.sentence, error.step)
    return Tried(True, f"The repository answers; HEAD is {remote['head'] or 'not set'}.")


async def _sync_repo(visit: Visit, name: str) -> Tried:
    try:
        done = await visit.site.app.repos.sync(visit.caller, company=visit.company_id, name=name)
    except RemitError as error:
        if isinstance(error, Refused | NotFound):
            raise
        return Tried(False, error.sentence, error.step)
    return Tried(True, f"{done['name']} is fetched.")


async def _remove_repo(visit: Visit, name: str) -> str:
    await visit.site.app.repos.remove(visit.caller, company=visit.company_id, name=name)
    return f"{name} is removed."


def _told(row: Mapping[str, Any]) -> str:
    return "told" if row.get("instructions") else "left out"


async def _switch_repo(visit: Visit, name: str) -> str:
    here = visit.site.app.gate
    rows = await here(visit.caller, repos.listing, company=visit.company_id, limit=MOST)
    told = any(row["name"] == name and row.get("instructions") for row in rows)
    await visit.do(repos.set_, company=visit.company_id, name=name, instructions=not told)
    return f"Runs {'are not' if told else 'are'} told its instructions from now on."


REPOS = Noun(
    *("repositories", "Repositories", "repository", "repo"),
    about="Repositories that agents get copies of, once granted.",
    empty="No repositories yet.",
    step="Add one, then grant agents to read it, to propose changes, or to merge them.",
    columns=("Address", "Branch or tag", "Secret", "Forge", "Instructions", "Pushed"),
    rows=_repo_rows,
    fields=fields_of(
        repos.add,
        labels={
            "api": "API of the forge",
            "hook": "Webhook secret",
            "people": "People whose words count",
            "label": "Label that makes an outcome",
        },
    ),
    save=saves(repos.add, "{name} added."),
    test=_test_repo,
    operators=True,
    acts={
        "sync": Act("Fetch now", _sync_repo),
        "instructions": Act("Switch instructions", _switch_repo),
        "remove": Act("Remove", _remove_repo, "Remove {}, its copy and every right to it?"),
    },
)


# ── checks of repositories ──────────────────────────────────────────────────────────────────────


def _check_rows(visit: Visit) -> list[Row]:
    rows = visit.ask(repos.listing, company=visit.company_id, limit=MOST)
    return [
        Row(
            f"{repo['name']}/{check['name']}",
            check["name"],
            (repo["name"], check["command"], "yes" if check["required"] else "no"),
        )
        for repo in rows
        for check in repo.get("checks", ())
    ]


async def _remove_check(visit: Visit, which: str) -> str:
    repo, _, check = which.partition("/")
    await visit.do(repo_checks.remove_check, company=visit.company_id, repo=repo, check=check)
    return f"{check} removed."


CHECKS = Noun(
    *("checks", "Checks of repositories", "check", "tick"),
    about="Commands that run in a sandbox on every change that an agent proposes.",
    empty="No checks yet.",
    step="Add a repository, then the command that tests it; a required one keeps from merging "
    "what fails.",
    columns=("Repository", "Command", "Required to merge"),
    rows=_check_rows,
    fields=fields_of(
        repo_checks.set_check,
        labels={
            "repo": "Repository",
            "check": "Name",
            "seconds": "Time limit (seconds)",
            "network": "Network access",
            "required": "Required to merge",
            "protected": "Protected files",
        },
        words={
            "repo": "Its changes are checked.",
            "check": "Such as test.",
            "seconds": "A check that takes longer has failed.",
            "network": "The command reaches the network.",
            "required": "A change that fails it is not merged.",
            "protected": "Taken from the base, whatever the change did to them, such as tests/**. "
            "Empty: the Makefile. One on each line.",
        },
    ),
    save=saves(repo_checks.set_check, "{name} runs on every change proposed from now on."),
    operators=True,
    acts={"remove": Act("Remove", _remove_check, "Remove the check {}?")},
)


# ── channels ────────────────────────────────────────────────────────────────────────────────────


def _binding_row(binding: Mapping[str, Any]) -> Row:
    return Row(
        binding["id"],
        binding["agent_name"],
        (binding["adapter_type"], _settings_shown(binding["adapter_config"])),
        link=f"/agents/{binding['agent_id']}?tab=mail",
        state=BINDING_STATES.get(binding["state"]),
        note=binding["problem"] or "",
    )


#: Style and label of each state.
BINDING_STATES = {
    "listening": ("good", "listening"),
    "waiting": ("wait", "not listening yet"),
    "failing": ("bad", "failing"),
    "held": ("wait", "waits for its secret"),
}


def _settings_shown(config: Mapping[str, Any]) -> str:
    return ", ".join(f"{settings_form.humanised(key)}: {value}" for key, value in config.items())


def _channel_kinds(_: Visit) -> Sequence[tuple[str, str]]:
    return [(channel.type, channel.type.capitalize()) for channel in registry.installed.all()]


def _binding_fields(visit: Visit) -> list[Setting]:
    kind = CHANNELS.kind(visit)
    own = settings_form.of_verb(bindings.add, without=("kind", "config", "replace"))
    return [*own, *settings_form.of_model(registry.get(kind).Config)] if kind else own


def _call(visit: Visit, arguments: Given) -> Given:
    """Arguments of a verb that binds an agent; what is not its own is a setting of the channel."""
    own = bindings.add.fields.keys()
    return {
        "company": visit.company_id,
        "kind": CHANNELS.kind(visit),
        "config": {key: value for key, value in arguments.items() if key not in own},
        **{key: value for key, value in arguments.items() if key in own},
    }


async def _test_binding(visit: Visit, arguments: Given) -> Tried:
    call = _call(visit, arguments)
    await visit.do(bindings.preview, **call)
    read = registry.installed.read(call["kind"], call["config"])
    trial = await threads.CHECKS.run(registry.get(call["kind"]).check, read)
    return Tried(trial.usable, trial.sentence, trial.next_step)


async def _save_binding(visit: Visit, arguments: Given) -> Page:
    binding = await visit.do(bindings.add, **_call(visit, arguments))
    kind = CHANNELS.kind(visit)
    return visit.show(
        "setup/shown_once.html",
        noun=CHANNELS,
        said=f"{binding['agent_name']} is bound to {kind}",
        token=binding["token"],
        about=f"The other side presents it with each message, at POST /api/channels/{kind}.",
    )


async def _try_binding(visit: Visit, binding: str) -> Tried:
    trial = await asked(visit.site.app, visit.caller, visit.company_id, binding)
    return Tried(trial["usable"], trial["sentence"], trial["next_step"])


CHANNELS = Noun(
    *("channels", "Channels", "channel", "channel"),
    about="Chat systems that agents are bound to; messages from there arrive as mail.",
    empty="No agent is bound to a channel yet.",
    step="Connect one, so that people can write to an agent from their chat.",
    heading="Agent",
    columns=("Kind", "Settings"),
    rows=rows_of(bindings.listing, _binding_row),
    fields=_binding_fields,
    save=_save_binding,
    test=_test_binding,
    kinds=_channel_kinds,
    verb="Connect",
    acts={
        "test": Act("Test", _try_binding),
        "remove": Act(
            "Remove",
            does(bindings.remove, "binding", "Channel removed; its token is revoked."),
            "Unbind {} from this channel?",
        ),
    },
)

# ── folders ─────────────────────────────────────────────────────────────────────────────────────

_FOLDER_VERBS: dict[str, Verb[..., Any]] = {"work": folders.bind, "tools": folders.mount}


def _folder_row(folder: Mapping[str, Any]) -> Row:
    called = str(folder.get("title") or folder.get("path") or folder["id"])
    return Row(
        folder["id"],
        called,
        (
            folder.get("kind") or "",
            folder.get("agent_name") or "everybody",
            _told(folder) if folder.get("kind") == "work" else "",
        ),
    )


async def _switch_folder(visit: Visit, folder: str) -> str:
    here = visit.site.app.gate
    rows = await here(visit.caller, folders.listing, company=visit.company_id, limit=MOST)
    told = any(row["id"] == folder and row["instructions"] for row in rows)
    await visit.do(folders.change, company=visit.company_id, folder=folder, instructions=not told)
    return f"Runs {'are not' if told else 'are'} told its instructions from now on."


def _folder_kinds(_: Visit) -> Sequence[tuple[str, str]]:
    return (("work", "A lasting folder that an agent works in"), ("tools", "Tools, read only"))


def _folder_fields(visit: Visit) -> list[Setting]:
    return settings_form.of_verb(
        _FOLDER_VERBS[FOLDERS.kind(visit)],
        labels={
            "repo": "Repository",
            "megabytes": "Size limit (MB)",
            "programs": "Folders with programs",
            "variables": "Environment variables",
        },
        words={
            "repo": "Remit keeps a copy of it, in which the agent works.",
            "path": "A folder of this machine. Give it or a repository. Files that hold keys by "
            f"their names are hidden in it: {', '.join(KEY_FILES)}.",
        }
        if FOLDERS.kind(visit) == "work"
        else {},
    )


async def _save_folder(visit: Visit, arguments: Given) -> str:
    await visit.do(_FOLDER_VERBS[FOLDERS.kind(visit)], company=visit.company_id, **arguments)
    return "New runs see the folder."


FOLDERS = Noun(
    *("folders", "Folders", "folder", "file"),
    about="Folders of the machine that runs see beside their workspace: repositories to work in, "
    "tool chains and caches.",
    empty="No folders yet.",
    step="Add a lasting folder that an agent works in, or tools that every run may use.",
    columns=("Kind", "For", "Instructions"),
    rows=rows_of(folders.listing, _folder_row),
    fields=_folder_fields,
    save=_save_folder,
    operators=True,
    kinds=_folder_kinds,
    acts={
        "instructions": Act("Switch instructions", _switch_folder),
        "remove": Act(
            "Remove",
            does(folders.remove, "folder", "New runs do not see the folder."),
            "Remove the folder {}?",
        ),
    },
)

ALL = (SECRETS, SERVERS, REPOS, CHECKS, FOLDERS, CHANNELS)
