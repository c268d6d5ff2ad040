"""The contract of a forge.

    probe          check the token with one request
    find, open, update, close     the one request for a change
    request, said, checks         the state, comments and checks of a request, if changed
    log            the end of a check's log
    merge          merge exactly the given head
    comments, comment             comments on a request or an issue
    may_push       whether a person may push to the repository
    issues, labelled_by           issues with a label, and the person who set it

A forge is stateless, except for the entity tags of its `Api`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol
from urllib.parse import urlsplit

from remit.forges.api import Api
from remit.forges.gitea import Gitea
from remit.forges.github import GitHub
from remit.forges.gitlab import GitLab
from remit.model.connections.change import MergeMethod
from remit.model.connections.forge import (
    ForgeCheck,
    ForgeKind,
    Issue,
    Person,
    Request,
    Said,
    host_and_path,
    usual_api,
)
from remit.model.connections.repo import Repo


class Forge(Protocol):
    async def probe(self) -> str: ...
    async def find(self, branch: str) -> Sequence[Request]: ...
    async def open(self, branch: str, target: str, title: str, body: str) -> Request: ...
    async def update(self, number: int, target: str, title: str, body: str) -> Request: ...
    async def close(self, number: int) -> None: ...
    async def request(self, number: int) -> Request | None: ...
    async def said(self, number: int) -> Sequence[Said]: ...
    async def checks(self, head: str) -> Sequence[ForgeCheck] | None: ...
    async def log(self, check: ForgeCheck) -> str: ...
    async def merge(
        self, number: int, head: str, method: MergeMethod, title: str, body: str
    ) -> None: ...
    async def comments(self, number: int, *, issue: bool) -> Sequence[Said]: ...
    async def comment(self, number: int, body: str, *, issue: bool) -> str: ...
    async def may_push(self, person: Person) -> bool: ...
    async def issues(self, label: str) -> Sequence[Issue]: ...
    async def labelled_by(self, number: int, label: str) -> str | None: ...


_KINDS: dict[ForgeKind, type[GitHub] | type[GitLab]] = {
    ForgeKind.GITHUB: GitHub,
    ForgeKind.GITLAB: GitLab,
    ForgeKind.GITEA: Gitea,
}


def forge_of(
    repo: Repo,
    token: str,
    without_token: Callable[[str], str],
    tags: Mapping[str, str] | None = None,
    *,
    private: bool = False,
) -> tuple[Forge, Api]:
    """Return the forge of a repository, with a token; `without_token` redacts the token from texts
    of the forge."""
    kind = ForgeKind(repo.forge or ForgeKind.NONE)
    made = _KINDS[kind]
    base = repo.api or usual_api(kind, repo.url)
    _, project = host_and_path(repo.url)
    # A forge under a path of its host has its repositories under the same path.
    below = urlsplit(base).path.partition("/api/")[0].strip("/")
    api = Api(base, made.headers(token), without_token, tags=tags, private=private)
    return made(api, project.removeprefix(f"{below}/") if below else project), api
