"""Statements about repositories."""

from __future__ import annotations

from sqlalchemy import bindparam as bind
from sqlalchemy import insert, select, update

from remit.model.repo import Repo
from remit.store.statement import Statement, change, columns, into
from remit.store.tables import repos

_all = columns(repos, Repo)

INSERT_REPO = change(insert(repos))
REPO = Statement(
    select(*_all).where(
        repos.c.company_id == bind("company"),
        repos.c.name == bind("name"),
        repos.c.removed_at.is_(None),
    ),
    into(Repo),
)
REPOS = Statement(
    select(*_all)
    .where(
        repos.c.company_id == bind("company"),
        repos.c.removed_at.is_(None),
        repos.c.id > bind("after"),
    )
    .order_by(repos.c.id)
    .limit(bind("limit")),
    into(Repo),
)
CHANGE_REPO = change(
    update(repos)
    .where(repos.c.id == bind("repo"), repos.c.version == bind("seen_version"))
    .values(
        url=bind("new_url"),
        ref=bind("new_ref"),
        username=bind("new_username"),
        secret=bind("new_secret"),
        version=repos.c.version + 1,
        updated_at=bind("now"),
    )
)
REMOVE_REPO = change(
    update(repos)
    .where(repos.c.id == bind("repo"), repos.c.removed_at.is_(None))
    .values(removed_at=bind("now"), updated_at=bind("now"))
)
