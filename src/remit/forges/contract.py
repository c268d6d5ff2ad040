"""The contract of a forge.

    probe          check the token with one request
    find, open, update, close     the one request for a change
    request        the state of a request; None if it is unchanged
    said, checks   comments and verdicts on a request; checks of a commit, None if unchanged
    log            the end of a check's log
    merge          merge exactly the given head
    comments, comment             comments on a request or an issue
    may_push       whether a person may push to the repository
    issues, labelled_by           issues with a label, and the person who set it

A forge is stateless, except for the entity tags of its `Api`.
"""

from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from remit.forges.api import Api
from remit.forges.gitea import Gitea
from remit.forges.github import GitHub
from remit.forges.gitlab import GitLab
from remit.model.connections.forge import (
    ForgeKind,
    host_and_path,
    usual_api,
)
from remit.model.connections.repo import Repo

#: Each class has these calls, Gitea by GitHub's; the type checker verifies every use of both.
Forge = GitHub | GitLab

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
    forge_class = _KINDS[kind]
    base = repo.api or usual_api(kind, repo.url)
    # A forge under a path of its host has its repositories under the same path.
    below = urlsplit(base).path.partition("/api/")[0].strip("/")
    project, source = (
        path.removeprefix(f"{below}/") if below else path
        for _, path in (host_and_path(repo.url), host_and_path(repo.pushed_to.url))
    )
    api = Api(base, forge_class.headers(token), without_token, tags=tags, private=private)
    return forge_class(api, project, source), api
