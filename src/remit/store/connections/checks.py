"""Statements about checks of changes."""

from sqlalchemy import bindparam as bind
from sqlalchemy import exists

from remit.model.connections.check import ChangeCheck
from remit.model.connections.repo import Repo
from remit.store.engine.statement import Rows, new
from remit.store.organisation.halts import stopped
from remit.store.queues import StatusQueue
from remit.store.tables import change_checks, changes, repos

_halted = exists().where(changes.c.id == change_checks.c.change_id, stopped(changes))
CHECKS = StatusQueue(ChangeCheck, "check", unless=_halted)
#: Checks that can be run now.
READY = CHECKS.find(
    CHECKS.can_begin,
    order=[change_checks.c.next_at, change_checks.c.id],
    limit=bind("limit"),
)
#: All checks of one head of a change, oldest first.
OF_HEAD = CHECKS.find(change_id="change", head_commit="head")
#: The checks still to be run for a change.
UNFINISHED_OF = CHECKS.find(CHECKS.unfinished, change_id="change")
#: Records the result of a check, unless its lease has passed to another worker.
RESULT = CHECKS.update(
    CHECKS.by_key, change_checks.c.epoch == bind("epoch"), **new("result", "log", "evidence_id")
)
#: Sets the checks of a repository, if it still is at the version that was seen.
SET_CHECKS = Rows(Repo).next_version(
    repos.c.id == bind("repo"),
    repos.c.version == bind("seen_version"),
    repos.c.removed_at.is_(None),
    of=["checks"],
)
