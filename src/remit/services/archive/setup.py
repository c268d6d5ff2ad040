"""Repositories, checks and folders of an export, as a document for `remit apply`.

An import does not carry it out, because it names what an instance fetches and runs. The person who
moves a company reads it, and applies it. It has names of secrets but no values, and no folders of
the machine.
"""

import json
from dataclasses import asdict
from typing import Any

from remit.model.connections import check as checks
from remit.model.connections.repo import is_local
from remit.model.organisation.agent import AgentStatus
from remit.services import lookup
from remit.services.command import Context
from remit.services.connections import folders, repos
from remit.services.declared.declared_connections import REPO
from remit.services.redaction import text_without_secrets
from remit.services.shape_basics import JsonObject
from remit.store.connections import folders as folder_statements
from remit.store.connections import repos as repo_statements


def written(ctx: Context) -> JsonObject:
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
            document["folders"].append({**about, "megabytes": folder.most_megabytes})
    document["folders"].sort(key=lambda entry: entry["agent"])
    return document
