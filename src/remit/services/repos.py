"""Repositories: which there are, and who may have a copy of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from remit.authority import Action
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound
from remit.ids import CompanyId, RepoId
from remit.model.decision import Effect
from remit.model.grant import INSTANCE_CONFIGURE, Resource, ResourceKind
from remit.model.principal import ActorKind
from remit.model.repo import (
    Repo,
    is_local,
    repo_name,
    repo_ref,
    repo_url,
    user_name,
)
from remit.services import lookup, shapes, views
from remit.services.command import Answer, Context, command, logged, query
from remit.services.running import system_only
from remit.store import grants as grant_statements
from remit.store import repos as statements
from remit.store.statement import row

MOST_REPOS = 1000


@dataclass(frozen=True, slots=True)
class Wanted:
    """A repository as somebody describes it, checked."""

    name: str
    url: str
    ref: str | None = None
    username: str | None = None
    secret: str | None = None


def wanted(
    *,
    name: object,
    url: object,
    ref: object = None,
    username: object = None,
    secret: object = None,
) -> Wanted:
    found = Wanted(
        name=repo_name(name),
        url=repo_url(url),
        ref=None if ref is None else repo_ref(ref),
        username=None if username is None else user_name(username),
        secret=None if secret is None else _secret_name(secret),
    )
    if is_local(found.url) and (found.username or found.secret):
        raise BadInput("A folder of this machine needs no secret.", "Leave it out.")
    if found.username and not found.secret:
        raise BadInput("A username alone opens nothing.", "Name the secret that goes with it.")
    return found


#: What an agent needs to know of all of them, and to have one fetched.
CONFIGURING = Resource(ResourceKind.ACTION, INSTANCE_CONFIGURE)


@command("repos.add")
def add(
    ctx: Context,
    *,
    company: str | None,
    name: object,
    url: object,
    ref: object = None,
    username: object = None,
    secret: object = None,
) -> Answer:
    """Make a repository known to a company. From then on this machine fetches it."""
    new = wanted(name=name, url=url, ref=ref, username=username, secret=secret)
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.REPO_ADD, on=f"repo:{new.name}")
    if of_name(ctx, new.name) is not None:
        raise AlreadyExists(f"There is a repository named {new.name!r} already.")
    return view(insert(ctx, new))


@query("repos.listing")
def listing(
    ctx: Context, *, company: str | None = None, after: str = "", limit: int = 100
) -> list[dict[str, Any]]:
    """All of them for people; for an agent those that it may have, if need be after asking."""
    lookup.company_of_caller(ctx, company)
    agent = ctx.actor.kind is ActorKind.AGENT
    if agent and ctx.decide(Action.REPO_READ, CONFIGURING).allowed:
        agent = False  # it may know of all, like a person
    if not agent:
        ctx.require(Action.REPO_READ, CONFIGURING, on="repos")
    most = MOST_REPOS if agent else limit
    found = ctx.tx.all(statements.REPOS, company=ctx.company, after=after, limit=most)
    if not agent:
        return [view(one) for one in found]
    decided = [(one, ctx.decide(Action.REPO_USE, resource(one.name)).effect) for one in found]
    return [
        {
            "id": one.id,
            "name": one.name,
            "url": one.url,
            "ref": one.ref,
            "mode": "ask" if effect is Effect.ASK else "allow",
        }
        for one, effect in decided
        if effect is not Effect.DENY
    ][:limit]


@command("repos.remove")
def remove(ctx: Context, *, company: str | None, name: str) -> Answer:
    """Forget a repository, and every right to it: its name may come to mean another."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.REPO_CHANGE, on=f"repo:{repo_name(name)}")
    found = named(ctx, name)
    ctx.tx.run(statements.REMOVE_REPO, repo=found.id, now=ctx.now)
    gone = ctx.tx.all(
        grant_statements.REVOKE_ON,
        company=ctx.company,
        kind=ResourceKind.REPO.value,
        resource=found.name,
        now=ctx.now,
    )
    ctx.record("repo.remove", f"repo:{found.name}", {"url": found.url, "revoked": sorted(gone)})
    return {"name": found.name, "company_id": found.company_id, "revoked": sorted(gone)}


@logged("repos.sync")
def sync(ctx: Context, *, company: str | None, name: str) -> Answer:
    """Have it fetched now. Answers all that this takes, for our own side."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.REPO_SYNC, CONFIGURING, on=f"repo:{repo_name(name)}")
    found = named(ctx, name)
    ctx.record("repo.sync", f"repo:{found.name}", {"url": found.url})
    return row(found)


@logged("repos.use")
def use(ctx: Context, *, name: str, ref: str | None = None, place: str | None = None) -> Answer:
    """Have a copy of it in one's workspace. Answers all that this takes, for our own side.

    Decided before it is looked for, so that nobody learns which names there are.
    """
    lookup.company_of_caller(ctx, None)
    ctx.require(Action.REPO_USE, resource(repo_name(name)))
    if ref is not None:
        repo_ref(ref)
    if ctx.actor.workspace is None:
        raise BadInput("Only a run has a workspace.", "Clone it with git, where you are.")
    found = named(ctx, name)
    ctx.record(
        "repo.clone", f"repo:{found.name}", {"url": found.url, "ref": ref or found.ref, "to": place}
    )
    return {**row(found), "workspace": ctx.actor.workspace}


@query("repos.still_there")
def still_there(ctx: Context, *, company: str, names: Sequence[str]) -> list[str]:
    """Which of these a company still has; for Remit itself."""
    system_only(ctx)
    return [
        name
        for name in names
        if ctx.tx.one(statements.REPO, company=CompanyId(company), name=name) is not None
    ]


def of_name(ctx: Context, name: str) -> Repo | None:
    return ctx.tx.one(statements.REPO, company=ctx.company, name=name)


def named(ctx: Context, name: str) -> Repo:
    found = of_name(ctx, name)
    if found is None:
        raise NotFound(f"There is no repository {name[:64]!r} here.", "List the repositories.")
    return found


def insert(ctx: Context, new: Wanted) -> Repo:
    if len(ctx.tx.all(statements.REPOS, company=ctx.company, after="", limit=MOST_REPOS)) >= (
        MOST_REPOS
    ):
        raise Conflict(f"The company has {MOST_REPOS} repositories.", "Remove some of them first.")
    repo = Repo(
        id=RepoId(ctx.ids.new()),
        company_id=CompanyId(ctx.company or ""),
        name=new.name,
        url=new.url,
        ref=new.ref,
        username=new.username,
        secret=new.secret,
        version=1,
        created_at=ctx.now,
        updated_at=ctx.now,
        removed_at=None,
    )
    ctx.tx.run(statements.INSERT_REPO, **row(repo))
    ctx.record(
        "repo.add",
        f"repo:{repo.name}",
        {"url": repo.url, "ref": repo.ref, "username": repo.username, "secret": repo.secret},
    )
    return repo


def change(ctx: Context, found: Repo, new: Wanted) -> None:
    """Describe it differently; as delicate as naming it in the first place."""
    ctx.require(Action.REPO_ADD, on=f"repo:{found.name}")
    if not ctx.tx.run(
        statements.CHANGE_REPO,
        repo=found.id,
        seen_version=found.version,
        new_url=new.url,
        new_ref=new.ref,
        new_username=new.username,
        new_secret=new.secret,
        now=ctx.now,
    ):
        raise Conflict("The repository was changed meanwhile.")
    now = {"url": new.url, "ref": new.ref, "username": new.username, "secret": new.secret}
    ctx.record(
        "repo.change",
        f"repo:{found.name}",
        {key: value for key, value in now.items() if value != getattr(found, key)},
    )


def resource(name: str) -> Resource:
    return Resource(ResourceKind.REPO, name)


def view(value: Repo) -> dict[str, Any]:
    shown: shapes.RepoShape = {
        "id": value.id,
        "company_id": value.company_id,
        "name": value.name,
        "url": value.url,
        "ref": value.ref,
        "username": value.username,
        "secret": value.secret,
        "created_at": views.time(value.created_at),
        "updated_at": views.time(value.updated_at),
    }
    return cast(dict[str, Any], shown)


def _secret_name(text: object) -> str:
    try:
        return repo_name(text)
    except BadInput:
        raise BadInput("secret must be the name of a secret.", "Name it, not its value.") from None
