"""Repositories: which there are, and who may clone one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from typing import Annotated, Any, TypedDict, Unpack

from remit.authority import Action
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound
from remit.ids import CompanyId
from remit.model.connections import check
from remit.model.connections.check import RepoCheck
from remit.model.connections.forge import (
    LONGEST_LABEL,
    ForgeKind,
    ForgeWatch,
    api_address,
    host_and_path,
)
from remit.model.connections.forge import people as people_of
from remit.model.connections.repo import (
    LONGEST_REF,
    LONGEST_URL,
    LONGEST_USER,
    ForgeSettings,
    PushMode,
    PushSettings,
    Repo,
    RepoSpec,
    is_https,
    is_local,
    repo_name,
    repo_ref,
    repo_url,
    user_name,
)
from remit.model.organisation.decision import Effect
from remit.model.organisation.grant import INSTANCE_CONFIGURE, Resource, ResourceKind
from remit.model.organisation.principal import ActorKind
from remit.model.text import clean_line
from remit.services import lookup, shapes, views
from remit.services.command import FOR_REMIT, Arguments, Context, command, logged, query
from remit.services.fields import CompanyRef, Exact, Help, Text
from remit.services.new_rows import first_version
from remit.services.surfaces import AsCommand, AsRoute
from remit.services.verbs import Added
from remit.store.connections import folders as folder_statements
from remit.store.connections import forges as forge_statements
from remit.store.connections import repos as statements
from remit.store.organisation import grants as grant_statements

MOST_REPOS = 1000
FORGE_FIELDS = tuple(field.name for field in fields(ForgeSettings))
PUSH_FIELDS = tuple(field.name for field in fields(PushSettings) if field.name not in FORGE_FIELDS)
_OWN_FIELDS = ("name", "url", "ref", "username", "secret", "instructions")
_NAME = Exact(64)


def wanted(**description: object) -> RepoSpec:
    """Validate the description of a repository."""
    settings = {
        name: read(description.get(name))
        for name, read in _READ.items()
        if name in ("name", "url") or description.get(name) is not None
    }
    kind = settings.get("forge")
    if kind is None and any(description.get(name) is not None for name in FORGE_FIELDS[1:]):
        raise BadInput("Settings of a forge need its kind.", "Name it: github, gitlab or gitea.")
    spec = RepoSpec(**settings)
    if kind is not None:
        _check_forge(spec)
    _check_push(spec)
    if is_local(spec.url) and (spec.username or spec.secret):
        raise BadInput("A folder of this machine needs no secret.", "Leave it out.")
    if spec.username and not spec.secret:
        raise BadInput("A username needs a secret.", "Name the secret with its password or token.")
    return spec


def _forge_kind(text: object) -> str | None:
    if text is None or text == ForgeKind.NONE.value:
        return None
    if text not in list(ForgeKind):
        raise BadInput("forge must be github, gitlab, gitea or none.", "Choose one of these.")
    return str(text)


def _push_mode(text: object) -> str:
    if text not in list(PushMode):
        raise BadInput("push must be at_once, after_look or fork.", "Choose one of these.")
    return str(text)


def _yes_or_no(value: object) -> bool:
    if not isinstance(value, bool):
        raise BadInput("instructions must be yes or no.", "Give true or false.")
    return value


def _secret_name(text: object) -> str:
    try:
        return repo_name(text)
    except BadInput:
        raise BadInput("secret must be the name of a secret.", "Name it, not its value.") from None


#: The reader of each field of a description; the first error is reported in this order.
_READ: Mapping[str, Callable[[object], Any]] = {
    "forge": _forge_kind,
    "name": repo_name,
    "url": repo_url,
    "ref": repo_ref,
    "username": user_name,
    "secret": _secret_name,
    "instructions": _yes_or_no,
    "api": api_address,
    "api_secret": _secret_name,
    "hook": _secret_name,
    "people": people_of,
    "label": lambda text: clean_line(text, "label", longest=LONGEST_LABEL),
    "push": _push_mode,
    "fork": repo_url,
    "fork_username": user_name,
    "fork_secret": _secret_name,
}


def _about(new: RepoSpec) -> Arguments:
    """Fields of a description besides the name."""
    return {key: value for key, value in asdict(new).items() if key != "name"}


def _check_forge(spec: RepoSpec) -> None:
    if is_local(spec.url) or "/" not in host_and_path(spec.url)[1]:
        raise BadInput(
            "A forge is found by the address of its repository.",
            "Give it as https://host/owner/name or git@host:owner/name.",
        )
    if spec.api_secret is None and (spec.secret is None or not is_https(spec.url)):
        raise BadInput(
            "The API of the forge needs a token.",
            "Name the secret with its token: --api-secret NAME.",
        )
    if spec.label is not None and spec.people == "[]":
        raise BadInput(
            "Nobody's label would count.", "Name the people whose label makes an outcome."
        )


def _check_push(spec: RepoSpec) -> None:
    if spec.push != PushMode.FORK:
        if spec.fork or spec.fork_username or spec.fork_secret:
            raise BadInput("Nothing is pushed to the fork.", "Say so, too: --push fork.")
        return
    if spec.fork is None:
        raise BadInput("push to a fork needs its address.", "Give it: --fork URL.")
    if spec.fork_username and not spec.fork_secret:
        raise BadInput("A username needs a secret.", "Name that of the fork: --fork-secret NAME.")
    if is_local(spec.fork) and spec.fork_secret:
        raise BadInput("A folder of this machine needs no secret.", "Leave it out.")
    ours, theirs = host_and_path(spec.url), host_and_path(spec.fork)
    if ours == theirs:
        raise BadInput("That is the repository itself.", "Name a fork of it.")
    if spec.forge is not None and (ours[0] != theirs[0] or "/" not in theirs[1]):
        raise BadInput(
            "A request goes from a fork to a repository of the same forge.",
            "Name a fork there, or leave the forge out.",
        )


#: The right to list all repositories, and to have one fetched.
CONFIGURING = Resource(ResourceKind.ACTION, INSTANCE_CONFIGURE)


_Secret = Annotated[str, _NAME]
Forge = Annotated[str, ForgeKind, Help("Kind of forge around it, to open requests there.")]


Instructions = Annotated[
    bool, Help("Tell runs the instructions in a copy, such as AGENTS.md; yes unless said.")
]


class AroundForge(TypedDict, total=False):
    """Access to a forge, and the people who are heard there."""

    api: (
        Annotated[str, Exact(LONGEST_URL), Help("Where the forge is asked; default: at its host.")]
        | None
    )
    api_secret: (
        Annotated[_Secret, Help("The name of the secret that opens the API, if another does.")]
        | None
    )
    hook: Annotated[_Secret, Help("The name of the secret that signs webhooks.")] | None
    people: (
        Annotated[
            str,
            Text(4000, one_line=True),
            Help("People who are heard besides those who may push, with commas."),
        ]
        | None
    )
    label: (
        Annotated[
            str,
            Text(LONGEST_LABEL, one_line=True),
            Help("Set by one of them, it makes an issue work."),
        ]
        | None
    )


class Pushed(TypedDict, total=False):
    """The way that proposals take to the remote."""

    push: (
        Annotated[
            str,
            PushMode,
            Help("When proposals are pushed: at_once, after a person's look, or to a fork."),
        ]
        | None
    )
    fork: Annotated[str, Exact(LONGEST_URL), Help("The address of the fork.")] | None
    fork_username: (
        Annotated[str, Exact(LONGEST_USER), Help("The account of its secret, at the remote.")]
        | None
    )
    fork_secret: Annotated[_Secret, Help("The name of the secret that opens the fork.")] | None


class AroundNew(AroundForge, Pushed, total=False):
    """Settings of a new repository besides its address."""


@command(
    "repos.add",
    *(Added(name, None) for name in (*FORGE_FIELDS, *PUSH_FIELDS)),
    Added("instructions", None),
    AsRoute("POST /companies/{companyId}/repos", "add_repo", 201),
    AsCommand(
        "repo add",
        said="{name} is added.",
        spelled={"url": "address"},
        examples=(
            "remit repo add site https://github.com/example/site.git",
            "remit repo add site https://github.com/example/site.git --secret github",
        ),
    ),
)
def add(
    ctx: Context,
    *,
    company: CompanyRef | None,
    name: Annotated[str, _NAME],
    url: Annotated[str, Exact(LONGEST_URL)],
    ref: Annotated[str, Exact(LONGEST_REF), Help("To clone unless another is asked for.")]
    | None = None,
    username: Annotated[str, Exact(LONGEST_USER), Help("The account of the secret, at the remote.")]
    | None = None,
    secret: Annotated[str, _NAME, Help("The name of the secret that opens it.")] | None = None,
    forge: Forge | None = None,
    instructions: Instructions | None = None,
    **around: Unpack[AroundNew],
) -> shapes.RepoShape:
    """Add a repository; this instance then fetches it."""
    more: dict[str, object] = {"username": username, "secret": secret, "instructions": instructions}
    new = wanted(name=name, url=url, ref=ref, **more, forge=forge, **around)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.REPO_ADD, on=f"repo:{new.name}")
    if of_name(ctx, new.name) is not None:
        raise AlreadyExists(f"There is a repository named {new.name!r} already.")
    return view(insert(ctx, new))


@command(
    "repos.set_forge",
    AsRoute("POST /companies/{companyId}/repos/{name}/forge", "set_forge"),
    AsCommand(
        "repo forge",
        said="The forge of {name} is set.",
        examples=("remit repo forge site github --api-secret github",),
    ),
)
def set_forge(
    ctx: Context,
    *,
    company: CompanyRef | None,
    name: Annotated[str, _NAME],
    forge: Forge,
    **around: Unpack[AroundForge],
) -> shapes.RepoShape:
    """Replace the forge settings of a repository; `none`: branches only, no requests."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.REPO_ADD, on=f"repo:{repo_name(name)}")
    repo = named(ctx, name)
    kept = {key: getattr(repo, key) for key in (*_OWN_FIELDS, *PUSH_FIELDS)}
    change(ctx, repo, wanted(**kept, forge=forge, **around))
    return view(named(ctx, name))


@command(
    "repos.set",
    AsRoute("PATCH /companies/{companyId}/repos/{name}", "set_repo"),
    AsCommand("repo set", said="{name} is changed."),
)
def set_(
    ctx: Context,
    *,
    company: CompanyRef | None,
    name: Annotated[str, _NAME],
    instructions: Instructions | None = None,
    **pushed: Unpack[Pushed],
) -> shapes.RepoShape:
    """Change when and where proposals are pushed, and whether runs are told the instructions in a
    copy. The CI of a forge runs each push to the repository itself, with its secrets."""
    if instructions is None and all(value is None for value in pushed.values()):
        raise BadInput("There is nothing to change.", "Give push or instructions.")
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.REPO_ADD, on=f"repo:{repo_name(name)}")
    repo = named(ctx, name)
    spec = RepoSpec(**{field.name: getattr(repo, field.name) for field in fields(RepoSpec)})
    if any(value is not None for value in pushed.values()):
        kept = {key: getattr(repo, key) for key in (*_OWN_FIELDS, *FORGE_FIELDS)}
        kept["people"] = None if repo.forge is None else json.loads(repo.people)
        spec = wanted(**{**kept, "push": repo.push, **pushed})
    if instructions is not None:
        spec = replace(spec, instructions=instructions)
    change(ctx, repo, spec)
    return view(named(ctx, name))


@logged("repos.try_out")
def try_out(ctx: Context, *, company: str | None, asked: Mapping[str, Any]) -> Repo:
    """Check that the repository could be added, before its remote is contacted; changes nothing.
    Returns its row, for the fetch."""
    repo_view = add.body(ctx, company=company, **asked)
    repo = named(ctx, repo_view["name"])
    ctx.tx.restart()
    return repo


@query(
    "repos.listing",
    AsRoute("GET /companies/{companyId}/repos", "list_repos", page="id"),
    AsCommand("repo list", "List the repositories of the company."),
)
def listing(
    ctx: Context, *, company: CompanyRef | None = None, after: str = "", limit: int = 100
) -> list[shapes.RepoShape | shapes.UsableRepoShape]:
    """All repositories for people; for an agent those that it may have, some only on approval."""
    lookup.company_of_caller(ctx, company)
    if ctx.actor.kind is not ActorKind.AGENT or ctx.decide(Action.REPO_READ, CONFIGURING).allowed:
        ctx.require(Action.REPO_READ, CONFIGURING, on="repos")
        return [view(repo) for repo in ctx.tx.all(statements.REPOS, after=after, limit=limit)]
    rows = ctx.tx.all(statements.REPOS, after=after, limit=MOST_REPOS)
    decided = [(repo, ctx.decide(Action.REPO_USE, resource(repo.name)).effect) for repo in rows]
    usable: list[shapes.RepoShape | shapes.UsableRepoShape] = [
        _usable(repo, mode="ask" if effect is Effect.ASK else "allow")
        for repo, effect in decided
        if effect is not Effect.DENY
    ]
    return usable[:limit]


@command("repos.remove")
def remove(ctx: Context, *, company: str | None, name: str) -> shapes.RepoOfCompanyShape:
    """Remove a repository with the rights to it and its open changes: its name may be given to
    another."""
    from remit.services.changes import endings  # they rest on repositories

    lookup.company_of_caller(ctx, company)
    ctx.require(Action.REPO_CHANGE, on=f"repo:{repo_name(name)}")
    repo = named(ctx, name)
    endings.end_all_in(ctx, repo)
    ctx.tx.run(statements.REMOVE_REPO, repo=repo.id)
    ctx.tx.run(folder_statements.REMOVE_FOLDERS_OF_REPO, repo=repo.id)
    gone = ctx.tx.all(grant_statements.REVOKE_ON, kind=ResourceKind.REPO.value, resource=repo.name)
    ctx.record("repo.remove", f"repo:{repo.name}", {"url": repo.url, "revoked": sorted(gone)})
    return {"name": repo.name, "company_id": repo.company_id, "revoked": sorted(gone)}


@logged("repos.sync")
def sync(ctx: Context, *, company: str | None, name: str) -> Repo:
    """Record that a repository is fetched now, and return it for the fetch."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.REPO_SYNC, CONFIGURING, on=f"repo:{repo_name(name)}")
    repo = named(ctx, name)
    ctx.record("repo.sync", f"repo:{repo.name}", {"url": repo.url})
    return repo


@logged("repos.look_into")
def look_into(ctx: Context, *, company: str | None, name: str, ref: str | None = None) -> Repo:
    """Record that a person reads files of a repository, to lend them; returns it."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.REPO_CHANGE, on=f"repo:{repo_name(name)}")
    if ref is not None:
        repo_ref(ref)
    repo = named(ctx, name)
    ctx.record("repo.look_into", f"repo:{repo.name}", {"ref": ref or repo.ref})
    return repo


@logged("repos.use")
def use(
    ctx: Context, *, name: str, ref: str | None = None, place: str | None = None
) -> tuple[Repo, str]:
    """Authorise and record a clone into the caller's workspace; returns the repository and that
    workspace.

    Decided before the name is looked up, so that nobody learns which names exist.
    """
    lookup.company_of_caller(ctx, None)
    ctx.require(Action.REPO_USE, resource(repo_name(name)))
    if ref is not None:
        repo_ref(ref)
    if ctx.actor.workspace is None:
        raise BadInput("Only a run has a workspace.", "Clone it with git, where you are.")
    repo = named(ctx, name)
    ctx.record(
        "repo.clone", f"repo:{repo.name}", {"url": repo.url, "ref": ref or repo.ref, "to": place}
    )
    return repo, ctx.actor.workspace


@query("repos.forged", FOR_REMIT)
def forged(ctx: Context, *, limit: int = 100) -> list[Repo]:
    """Repositories with a forge."""
    return list(ctx.tx.all(statements.FORGED, limit=limit))


@query("repos.still_there", FOR_REMIT)
def still_there(ctx: Context, *, company: str, names: Sequence[str]) -> list[str]:
    """Return those of the names that the company still has."""
    return [
        name
        for name in names
        if ctx.tx.one(statements.REPO, company=CompanyId(company), name=name) is not None
    ]


def of_name(ctx: Context, name: str) -> Repo | None:
    return ctx.tx.one(statements.REPO, name=name)


def named(ctx: Context, name: str) -> Repo:
    repo = of_name(ctx, name)
    if repo is None:
        raise NotFound(f"There is no repository {name[:64]!r} here.", "List the repositories.")
    return repo


def insert(ctx: Context, new: RepoSpec) -> Repo:
    if len(ctx.tx.all(statements.REPOS, after="", limit=MOST_REPOS)) >= MOST_REPOS:
        raise Conflict(f"The company has {MOST_REPOS} repositories.", "Remove some of them first.")
    repo = Repo(**first_version(ctx), **asdict(new))
    ctx.tx.add(repo)
    ctx.record("repo.add", f"repo:{repo.name}", _about(new))
    _watch(ctx, repo)
    return repo


def _watch(ctx: Context, repo: Repo) -> None:
    """Have the forge of a repository polled, if it has one; a watch that exists starts afresh."""
    if ctx.tx.run(forge_statements.RESTART, repo=repo.id) or repo.forge is None:
        return
    watch = ForgeWatch(repo_id=repo.id, company_id=repo.company_id, next_at=ctx.now)
    ctx.tx.add(watch)


def change(ctx: Context, repo: Repo, new: RepoSpec) -> None:
    """Change the description of a repository; as delicate as adding one."""
    from remit.services.changes import pushing  # changes rest on repositories

    ctx.require(Action.REPO_ADD, on=f"repo:{repo.name}")
    if not ctx.tx.run(
        statements.CHANGE_REPO,
        repo=repo.id,
        seen_version=repo.version,
        **{f"new_{key}": value for key, value in _about(new).items()},
    ):
        raise Conflict("The repository was changed meanwhile.")
    changed = {key: value for key, value in _about(new).items() if value != getattr(repo, key)}
    ctx.record("repo.change", f"repo:{repo.name}", changed)
    now = named(ctx, repo.name)
    _watch(ctx, now)
    if now.push != repo.push:
        pushing.queue_all_in(ctx, now)


def resource(name: str) -> Resource:
    return Resource(ResourceKind.REPO, name)


view = views.view_of(
    Repo,
    shapes.RepoShape,
    checks=lambda repo: [view_check(repo_check) for repo_check in check.read(repo.checks)],
)
_usable = views.view_of(Repo, shapes.UsableRepoShape, supplied={"mode"})


def view_check(value: RepoCheck) -> shapes.RepoCheckShape:
    return {**asdict(value), "protected": list(value.protected)}  # type: ignore[typeddict-item]
