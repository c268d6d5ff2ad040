"""Connections in an export: bindings of agents to channels, and the set-up for `remit apply`.

Bindings have no credentials. Their settings are not trusted: an imported binding is held until the
importer binds the agent again.

Repositories, checks and folders are a document for `remit apply`. An import does not carry it out,
because it names what an instance fetches and runs. The person who moves a company reads it, and
applies it. It has names of secrets but no values, and no folders of the machine.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from remit.errors import BadInput
from remit.model.connections import check as checks
from remit.model.connections.repo import is_local
from remit.model.messaging.channel import Binding, channel_kind
from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.agent_spec import document
from remit.services import lookup
from remit.services.archive import layout
from remit.services.archive.fields import Fields
from remit.services.archive.plan import Plan, known
from remit.services.archive.records import Entry, Kind, Record, checked
from remit.services.archive.text import line
from remit.services.command import Context
from remit.services.connections import bindings, folders, repos
from remit.services.declared.declared_connections import REPO
from remit.services.redaction import text_without_secrets
from remit.services.shape_basics import JsonObject
from remit.store.connections import folders as folder_statements
from remit.store.connections import repos as repo_statements
from remit.store.messaging import channels as statements


def setup(ctx: Context) -> JsonObject:
    """The document of repositories, checks and folders."""
    here: Any = {"company": ctx.company, "after": ""}
    known = ctx.tx.all(repo_statements.REPOS, **here, limit=repos.MOST_REPOS)
    known.sort(key=lambda row: row.name)
    document: JsonObject = {"repos": [], "checks": [], "folders": []}
    for repo in known:
        about: JsonObject = {key: getattr(repo, key) for key in REPO}
        about |= {"people": ", ".join(json.loads(repo.people)) or None}
        document["repos"].append({**about, "url": None if is_local(repo.url) else repo.url})
        for check in checks.read(repo.checks):
            command = text_without_secrets(check.command)[0]
            document["checks"].append({"repo": repo.name, **asdict(check), "command": command})
    for folder in ctx.tx.all(folder_statements.FOLDERS, **here, limit=folders.MOST_FOLDERS):
        agent = lookup.agent_row(ctx, folder.agent_id or "")
        if folder.repo_id and agent and agent.status is not AgentStatus.TERMINATED:
            about = {"agent": agent.name, "repo": folders.view(ctx, folder)["repo"]}
            about |= {"megabytes": folder.most_megabytes, "instructions": folder.instructions}
            document["folders"].append(about)
    document["folders"].sort(key=lambda entry: entry["agent"])
    return document


def _read_config(fields: Fields, key: str) -> str:
    try:
        config = json.loads(document(fields.get(key), key))
    except BadInput as error:
        raise fields.wrong(key, f"is refused: {error.sentence.rstrip('.')}") from None
    return json.dumps(bindings.shown(config), sort_keys=True)


BINDING = Record(
    Binding,
    "agent=agent_id",
    Entry("kind", checked(lambda text, _: channel_kind(text)), "adapter_type"),
    Entry(
        "config",
        Kind(lambda text: bindings.shown(json.loads(text)), _read_config),
        "adapter_config",
    ),
    "created_at",
)


def binding_lines(ctx: Context) -> Iterator[bytes]:
    for binding in ctx.tx.all(statements.BINDINGS, agent=None, after="", limit=1 << 30):
        yield line(BINDING.write(binding))


def _read_binding(plan: Plan, fields: Fields) -> None:
    arguments = {"id": "", "company_id": plan.company.id, "adapter_token": ""}
    read = BINDING.read(fields, **arguments, removed_at=None, held=True)
    known(read.agent_id, plan.agents, fields.path, "agent")
    if plan.agents[read.agent_id].status is AgentStatus.TERMINATED:
        raise fields.wrong("agent", "is terminated, so it is bound to nothing")
    plan.add(plan.bindings, f"{read.agent_id}/{read.adapter_type}", read, fields.path)


READERS = {layout.BINDINGS: _read_binding}
