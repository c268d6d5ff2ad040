"""The page of a repository on which an operator sets when and where proposals are pushed."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from remit.entrypoints.web.pages.setup.connections import REPOS
from remit.entrypoints.web.pages.setup.noun import MOST
from remit.entrypoints.web.site import Done, Page, Routes, Site, Visit
from remit.entrypoints.web.text import common_queries
from remit.errors import NotFound
from remit.model.connections.repo import PushMode
from remit.services.connections import repos

PATH: Final = f"{REPOS.path}/pushing"


class Way(NamedTuple):
    """A way that proposals take to the remote: its name, and what follows from it."""

    mode: str
    label: str
    consequence: str


WAYS: Final = (
    Way(
        PushMode.AT_ONCE,
        "At once",
        "Each proposal is pushed to a branch of the repository as it comes. The CI of the forge "
        "runs what the agent wrote (scripts, tests, build files) before anybody has looked at it, "
        "with the secrets that it gives to branches. Proposals that wait for a look are pushed "
        "when you save this.",
    ),
    Way(
        PushMode.AFTER_LOOK,
        "After a person's look",
        "Nothing is pushed before a person has looked at exactly these commits, and each later "
        "proposal is looked at anew. Until then no check of the forge runs, and the change is "
        "among what awaits you. Commits that were pushed before stay there.",
    ),
    Way(
        PushMode.FORK,
        "To a fork",
        "Proposals are pushed to the fork at once, and requests are opened from there. GitHub and "
        "Gitea give a request of a fork no secrets, unless a workflow says pull_request_target; "
        "on GitLab its pipeline runs in the fork. Keep secrets out of the fork.",
    ),
)
#: Fields about the fork; they are used for no other way.
_OF_FORK: Final = ("fork", "fork_username", "fork_secret")


def routes(site: Site) -> Routes:
    return site.form(PATH, show, save)


def show(visit: Visit) -> Page:
    repo = _chosen(visit)
    kept = {name: repo[name] or "" for name in ("push", *_OF_FORK)}
    return visit.show(
        "setup/pushing.html",
        noun=REPOS,
        repo=repo,
        ways=WAYS,
        typed={name: visit.form.text(name, value) for name, value in kept.items()},
        path=PATH,
        picks=common_queries.picks(visit, "secret"),
    )


async def save(visit: Visit) -> Done:
    repo, push = visit.argument("repo"), visit.form.text("push")
    names = _OF_FORK if push == PushMode.FORK else ()
    of_fork: Any = {name: visit.form.maybe(name) for name in names}
    await visit.do(repos.set_, company=visit.company_id, name=repo, push=push, **of_fork)
    (label,) = (way.label.lower() for way in WAYS if way.mode == push)
    return Done(visit.link(REPOS.path), f"Proposals to {repo} are pushed {label}.")


def _chosen(visit: Visit) -> Mapping[str, Any]:
    """Return the repository that the address names."""
    listed = visit.ask(repos.listing, company=visit.company_id, limit=MOST)
    for repo in listed:
        if repo["name"] == visit.argument("repo"):
            return repo
    raise NotFound("There is no such repository.", "Choose one of the list.")
