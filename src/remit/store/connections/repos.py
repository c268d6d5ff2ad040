"""Statements about repositories."""

from dataclasses import fields

from sqlalchemy import bindparam as bind

from remit.model.connections.repo import Repo, RepoSpec
from remit.store.engine.statement import Rows
from remit.store.tables import repos

_REPOS = Rows(Repo)
_there = repos.c.removed_at.is_(None)

#: The company's repository of that name.
REPO = _REPOS.one(_there, company_id="company", name="name")
#: A repository by its id, unless it was removed.
REPO_BY_ID = _REPOS.one(_there, id="repo")
#: A page of the company's repositories, by id.
REPOS = _REPOS.after(_there, company_id="company")
#: The repositories of all companies that have a forge.
FORGED = _REPOS.find(_there, repos.c.forge.is_not(None), limit=bind("limit"))
#: Stores new settings of a repository, if it still is at the version that was seen.
CHANGE_REPO = _REPOS.next_version(
    repos.c.id == bind("repo"),
    repos.c.version == bind("seen_version"),
    of=[field.name for field in fields(RepoSpec) if field.name != "name"],
)
#: Marks a repository as removed.
REMOVE_REPO = _REPOS.mark_removed(id="repo")
#: A repository, also one that was removed.
REPO_EVER = _REPOS.one(repos.c.id == bind("repo"))
