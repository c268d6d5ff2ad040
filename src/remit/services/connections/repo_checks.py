"""Checks of a repository: commands of the board that run on each proposal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from remit.authority import Action
from remit.errors import Conflict, NotFound
from remit.model.connections import check as checks
from remit.model.connections.repo import Repo, repo_name
from remit.model.organisation.path_pattern import LONGEST_PATTERN, MOST_PATTERNS
from remit.services import lookup, shapes
from remit.services.command import Context, command, query
from remit.services.connections import repos
from remit.services.fields import CompanyRef, Exact, Help, Most, Range, Text
from remit.services.surfaces import AsCommand, AsRoute
from remit.store.connections import checks as statements

_RepoName = Annotated[str, Exact(64), Help("The repository.")]
_CheckName = Annotated[str, Exact(64), Help("Name of the check, such as test.")]


@command(
    "repos.set_check",
    AsRoute(
        "POST /companies/{companyId}/repos/{name}/checks",
        "set_repo_check",
        spelled={"repo": "name"},
    ),
    AsCommand(
        "repo check",
        said="{name} is run on what is proposed from now on.",
        examples=('remit repo check site tests "make test" --required',),
    ),
)
def set_check(
    ctx: Context,
    *,
    company: CompanyRef | None,
    repo: _RepoName,
    check: _CheckName,
    command: Annotated[
        str,
        Text(checks.LONGEST_COMMAND, one_line=True),
        Help("A line for the shell, such as 'make test'."),
    ],
    seconds: Annotated[
        int, Range(checks.LEAST_SECONDS, checks.MOST_SECONDS), Help("How long it may take.")
    ] = checks.DEFAULT_SECONDS,
    network: Annotated[bool, Help("Whether it reaches the network.")] = False,
    required: Annotated[bool, Help("Whether nothing is merged that it did not pass.")] = False,
    protected: Annotated[
        Sequence[Annotated[str, Text(LONGEST_PATTERN, one_line=True)]],
        Most(MOST_PATTERNS),
        Help("Files that are taken from the base, such as tests/**; a Makefile unless said."),
    ]
    | None = None,
) -> shapes.RepoCheckShape:
    """Have a command run in a sandbox on every change that is proposed to a repository."""
    lookup.company_of_caller(ctx, company)
    # This machine runs the command: as delicate as adding a repository, which it fetches.
    ctx.require(Action.REPO_ADD, on=f"repo:{repo_name(repo)}")
    repo_row = repos.named(ctx, repo)
    kept = checks.DEFAULT_PROTECTED if protected is None else protected
    new_check = checks.repo_check(
        check, command, kept, seconds=seconds, network=network, required=required
    )
    others = [other for other in checks.read(repo_row.checks) if other.name != new_check.name]
    if len(others) >= checks.MOST_CHECKS:
        raise Conflict(f"It has {checks.MOST_CHECKS} checks.", "Remove some of them first.")
    save(ctx, repo_row, [*others, new_check])
    return repos.view_check(new_check)


@command(
    "repos.remove_check",
    AsRoute(
        "DELETE /companies/{companyId}/repos/{name}/checks/{check}",
        "remove_repo_check",
        spelled={"repo": "name"},
    ),
    AsCommand(
        "repo uncheck",
        said="{name} is not run any more.",
        examples=("remit repo uncheck site tests",),
    ),
)
def remove_check(
    ctx: Context, *, company: CompanyRef | None, repo: _RepoName, check: _CheckName
) -> shapes.RepoCheckShape:
    """Remove a check: it is neither run nor required for what is proposed from now on."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.REPO_CHANGE, on=f"repo:{repo_name(repo)}")
    repo_row = repos.named(ctx, repo)
    before = checks.read(repo_row.checks)
    gone = next((old_check for old_check in before if old_check.name == check), None)
    if gone is None:
        raise NotFound(f"{repo} has no check {check[:64]!r}.", f"See `remit repo checks {repo}`.")
    save(ctx, repo_row, [old_check for old_check in before if old_check is not gone])
    return repos.view_check(gone)


@query(
    "repos.checks",
    AsRoute(
        "GET /companies/{companyId}/repos/{name}/checks",
        "list_repo_checks",
        page="name",
        spelled={"repo": "name"},
    ),
    AsCommand("repo checks", "List what is run on each proposal to a repository."),
)
def listing(
    ctx: Context, *, company: CompanyRef | None = None, repo: _RepoName
) -> list[shapes.RepoCheckShape]:
    """Checks that run on each change that is proposed to a repository."""
    lookup.company_of_caller(ctx, company)
    ctx.require(Action.REPO_READ, repos.CONFIGURING, on=f"repo:{repo_name(repo)}")
    return [repos.view_check(check) for check in checks.read(repos.named(ctx, repo).checks)]


def save(ctx: Context, repo: Repo, wanted: Sequence[checks.RepoCheck]) -> None:
    stored = checks.stored(sorted(wanted, key=lambda check: check.name))
    seen = {"repo": repo.id, "seen_version": repo.version}
    if not ctx.tx.run(statements.SET_CHECKS, **seen, new_checks=stored):
        raise Conflict("The repository was changed meanwhile.", "Try it again.")
    about = {check.name: check.command for check in wanted}
    required = sorted(check.name for check in wanted if check.required)
    ctx.record("repo.checks", f"repo:{repo.name}", {"checks": about, "required": required})
