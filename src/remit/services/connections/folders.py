"""Folders of workers' machines that runs see, chosen by the board alone.

Paths are checked here as text. The worker checks the place itself before each run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, NamedTuple

from remit.authority import Action
from remit.clock import Micros
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound
from remit.ids import AgentId, CompanyId, FolderId, is_id
from remit.model.connections.commit_identity import CommitIdentity
from remit.model.connections.folder import (
    DEFAULT_MEGABYTES,
    LEAST_MEGABYTES,
    LONGEST_PATH,
    MOST_MEGABYTES,
    MOST_PROGRAMS,
    MOST_VARIABLES,
    Folder,
    FolderKind,
    folder_path,
    overlap,
    program_folders,
    set_variables,
)
from remit.model.connections.repo import Repo
from remit.model.execution.job import JobStatus
from remit.model.organisation.agent import Agent, AgentStatus
from remit.model.organisation.decision import Effect
from remit.services import lookup, shapes, views
from remit.services.command import FOR_REMIT, Context, command, query
from remit.services.connections import repos
from remit.services.fields import AgentRef, CompanyRef, Help, Most, Range, Reference, Text
from remit.services.surfaces import AsCommand, AsRoute
from remit.services.verbs import Added
from remit.store.connections import folders as statements
from remit.store.connections import repos as repo_statements
from remit.store.engine.statement import row
from remit.store.execution import jobs as job_statements
from remit.store.execution import runs as run_statements

MOST_FOLDERS = 200
Place = Annotated[str, Text(LONGEST_PATH, one_line=True)]


Quota = Annotated[
    int,
    Range(LEAST_MEGABYTES, MOST_MEGABYTES),
    Help(f"How much it may hold; {DEFAULT_MEGABYTES} unless said."),
]
Instructions = Annotated[
    bool, Help("Tell runs the instructions in it, such as AGENTS.md; yes unless said.")
]


@command(
    "folders.bind",
    Added("instructions", None),
    AsRoute("POST /companies/{companyId}/folders", "bind_folder", 201),
    AsCommand("folder bind", said="{agentName} works in {title} from its next run on."),
)
def bind(
    ctx: Context,
    *,
    company: CompanyRef | None,
    agent: AgentRef,
    repo: Annotated[str, Text(64, one_line=True), Help("A repository; Remit keeps a copy.")]
    | None = None,
    path: Annotated[
        Place, Help("A folder of the machine, written to; files with keys in it are hidden.")
    ]
    | None = None,
    megabytes: Quota | None = None,
    instructions: Instructions | None = None,
) -> shapes.FolderShape:
    """Give an agent a lasting folder to work in: a copy of a repository, or one of the machine."""
    if (repo is None) == (path is None):
        raise BadInput("Give either a repository or a path.", "Use one of the two.")
    place = None if path is None else folder_path(path)
    lookup.company_of_caller(ctx, company)
    agent_row = lookup.agent(ctx, agent)
    ctx.require(Action.FOLDER_CHANGE, on=f"agent:{agent_row.id}")
    if agent_row.status is AgentStatus.TERMINATED:
        raise Conflict(f"{agent_row.name} is terminated.", "Bind an agent that works here.")
    if ctx.tx.one(statements.WORK_FOLDER, agent=agent_row.id) is not None:
        raise AlreadyExists(
            f"{agent_row.name} has a folder already.", "Remove it first: `remit folder list`."
        )
    copied = None if repo is None else repos.named(ctx, repo)
    if place is not None:
        _refuse_overlap(ctx, place, FolderKind.WORK)
    limit = DEFAULT_MEGABYTES if megabytes is None else megabytes
    folder = Folder(
        *_new(ctx),
        *(FolderKind.WORK, agent_row.id, place),
        most_megabytes=limit,
        instructions=instructions is not False,
    )
    return _add(ctx, folder if copied is None else replace(folder, repo_id=copied.id))


@command(
    "folders.mount",
    AsRoute("POST /companies/{companyId}/mounts", "mount_folder", 201),
    AsCommand("folder mount", said="Runs see {path} from now on, and cannot change it."),
)
def mount(
    ctx: Context,
    *,
    company: CompanyRef | None,
    path: Annotated[Place, Help("A tool chain or cache on the machine where agents run.")],
    agent: Annotated[AgentRef, Help("Only for this agent.")] | None = None,
    programs: Annotated[
        Sequence[Annotated[str, Text(200, one_line=True)]],
        Most(MOST_PROGRAMS),
        Help("Folders in it that go to the front of PATH, such as bin."),
    ] = (),
    variables: Annotated[
        Sequence[Annotated[str, Text(1100, one_line=True)]],
        Most(MOST_VARIABLES),
        Help("NAME=VALUE to set for programs, such as GOROOT=/opt/go."),
    ] = (),
) -> shapes.FolderShape:
    """Show a folder of the machine to runs, read only."""
    place, added, named = folder_path(path), program_folders(programs), set_variables(variables)
    lookup.company_of_caller(ctx, company)
    agent_row = None if agent is None else lookup.agent(ctx, agent)
    ctx.require(Action.FOLDER_CHANGE, on=f"folder:{place}")
    _refuse_overlap(ctx, place, FolderKind.TOOLS)
    owner = None if agent_row is None else agent_row.id
    return _add(ctx, Folder(*_new(ctx), FolderKind.TOOLS, owner, place, None, added, named))


@query(
    "folders.listing",
    AsRoute("GET /companies/{companyId}/folders", "list_folders", page="id"),
    AsCommand("folder list", "List the folders that runs of this company are shown."),
)
def listing(
    ctx: Context, *, company: CompanyRef | None = None, after: str = "", limit: int = 100
) -> list[shapes.FolderShape]:
    """Folders that runs are shown beside their workspace, home and the system."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.REPO_READ, repos.CONFIGURING, on="folders")
    rows = ctx.tx.all(statements.FOLDERS, after=after, limit=limit)
    return [view(ctx, folder) for folder in rows]


@command(
    "folders.remove",
    AsRoute("DELETE /companies/{companyId}/folders/{id}", "remove_folder"),
    AsCommand("folder remove", said="Runs that begin from now on do not see it."),
)
def remove(
    ctx: Context, *, company: CompanyRef | None, folder: Annotated[str, Reference("folder")]
) -> shapes.RemovedShape:
    """Stop showing a folder to runs. A folder of the machine stays as it is; a copy
    that Remit kept goes when the worker tidies up."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.FOLDER_CHANGE, on=f"folder:{folder[:36]}")
    folder_row = _existing(ctx, folder)
    ctx.tx.run(statements.REMOVE_FOLDER, folder=folder_row.id)
    ctx.record("folder.remove", f"folder:{folder_row.id}", _about(folder_row))
    return {"id": folder_row.id, "removed": True}


@command(
    "folders.change",
    AsRoute("PATCH /companies/{companyId}/folders/{id}", "change_folder"),
    AsCommand("folder set", said="{title} is changed."),
)
def change(
    ctx: Context,
    *,
    company: CompanyRef | None,
    folder: Annotated[str, Reference("folder")],
    megabytes: Quota | None = None,
    instructions: Instructions | None = None,
) -> shapes.FolderShape:
    """Change the quota of the folder that an agent works in, or whether runs are told the
    instructions in it. Its content stays."""
    if megabytes is None and instructions is None:
        raise BadInput("There is nothing to change.", "Give megabytes or instructions.")
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.FOLDER_CHANGE, on=f"folder:{folder[:36]}")
    was = _existing(ctx, folder)
    if was.kind is not FolderKind.WORK:
        raise Conflict("Only a folder that an agent works in is changed.", "Mount it anew.")
    now = replace(
        was,
        most_megabytes=was.most_megabytes if megabytes is None else megabytes,
        instructions=was.instructions if instructions is None else instructions,
    )
    settings = {"megabytes": "most_megabytes", "instructions": "instructions"}
    changed = {
        name: {"was": getattr(was, column), "now": getattr(now, column)}
        for name, column in settings.items()
        if getattr(was, column) != getattr(now, column)
    }
    ctx.tx.run(
        statements.CHANGE,
        folder=was.id,
        new_most_megabytes=now.most_megabytes,
        new_instructions=now.instructions,
    )
    ctx.record("folder.change", f"folder:{was.id}", changed)
    return view(ctx, now)


@query("folders.kept", FOR_REMIT)
def kept(ctx: Context, *, folders: Sequence[str]) -> list[str]:
    """Return those of the folders that are in use, including removed ones that a live run or job
    may still use."""
    rows = [ctx.tx.one(statements.FOLDER_ANYWHERE, folder=folder_id) for folder_id in folders]
    return [
        folder.id
        for folder in rows
        if folder is not None and (folder.removed_at is None or _works(ctx, folder.agent_id))
    ]


def _works(ctx: Context, agent: AgentId | None) -> bool:
    jobs = ctx.tx.all(job_statements.UNFINISHED_OF, agent=agent)
    running = any(job.status is JobStatus.RUNNING for job in jobs)
    return running or ctx.tx.one(run_statements.LIVE_RUN_OF, agent=agent) is not None


@query("folders.of_run")
def of_run(ctx: Context) -> Folder | None:
    """Return the folder that the calling run works in, if it has one."""
    if ctx.actor.agent_id is None or ctx.actor.workspace is None:
        return None
    return ctx.tx.one(statements.WORK_FOLDER, agent=ctx.actor.agent_id)


class Shown(NamedTuple):
    """The folders of a run: tool chains, and one to work in, perhaps a copy of a repository."""

    tools: list[Folder]
    work: Folder | None = None
    repo: Repo | None = None
    note: str = ""
    #: The committer to configure in a new copy.
    who: CommitIdentity | None = None


def shown_to(ctx: Context, agent: Agent) -> Shown:
    """Return the folders of the calling agent's run. A copy of a repository requires the right to
    clone it at this time."""
    answer = Shown([])
    for folder in ctx.tx.all(statements.FOLDERS_OF, company=agent.company_id, agent=agent.id):
        if folder.kind is FolderKind.TOOLS:
            answer.tools.append(folder)
        elif folder.repo_id is None:
            answer = answer._replace(work=folder)
        else:
            repo = ctx.tx.one(repo_statements.REPO_BY_ID, repo=folder.repo_id)
            if repo is None:
                continue
            if ctx.decide(Action.REPO_USE, repos.resource(repo.name)).effect is Effect.DENY:
                note = f"your folder is not there: you may not have repo:{repo.name}"
                answer = answer._replace(note=note)
                continue
            answer = answer._replace(work=folder, repo=repo)
    return answer


def _existing(ctx: Context, folder: str) -> Folder:
    """Return a folder of the company that is not removed."""
    row = ctx.tx.one(statements.FOLDER_ANYWHERE, folder=folder) if is_id(folder) else None
    if row is None or row.company_id != ctx.company or row.removed_at is not None:
        raise NotFound("There is no such folder here.", "See `remit folder list`.")
    return row


def _new(ctx: Context) -> tuple[FolderId, CompanyId, Micros]:
    """First fields of every new folder."""
    return FolderId(ctx.ids.new()), CompanyId(ctx.company or ""), ctx.now


def _add(ctx: Context, folder: Folder) -> shapes.FolderShape:
    here = ctx.tx.all(statements.FOLDERS, after="", limit=MOST_FOLDERS)
    if len(here) >= MOST_FOLDERS:
        raise Conflict(f"The company has {MOST_FOLDERS} folders.", "Remove some of them first.")
    ctx.tx.add(folder)
    ctx.record(
        f"folder.{'bind' if folder.kind is FolderKind.WORK else 'mount'}",
        f"folder:{folder.id}",
        _about(folder),
    )
    return view(ctx, folder)


def _refuse_overlap(ctx: Context, path: str, kind: FolderKind) -> None:
    """Refuse a folder that overlaps one that another agent writes, or a tool chain: its agent could
    change the programs of others."""
    for other in ctx.tx.all(statements.PLACES):
        both_read = kind is FolderKind.TOOLS and other.kind is FolderKind.TOOLS
        if other.path is not None and not both_read and overlap(path, other.path):
            raise Conflict(
                f"{path} meets a folder that runs are shown already.",
                "One agent alone writes to a folder, and no tool chain lies in it.",
            )


def view(ctx: Context, folder: Folder) -> shapes.FolderShape:
    agent = lookup.agent_row(ctx, folder.agent_id) if folder.agent_id else None
    repo = ctx.tx.one(repo_statements.REPO_BY_ID, repo=folder.repo_id) if folder.repo_id else None
    return _view(
        folder,
        agent_name=agent and agent.name,
        title=folder.path or f"repo:{repo.name if repo else folder.repo_id}",
        repo=repo and repo.name,
        hides=list(folder.hides),
    )


_view = views.view_of(
    Folder,
    shapes.FolderShape,
    supplied={"agent_name", "title", "repo", "hides"},
    megabytes="most_megabytes",
)


def _about(folder: Folder) -> dict[str, object]:
    about = row(folder)
    return {
        name: about[name]
        for name in ("kind", "agent_id", "path", "repo_id", "programs", "variables")
        if about[name] is not None
    }
