"""Statements of a leased queue, built from the columns of its table.

A row waits until it is due, is claimed with a lease for a worker, and is requeued or ends. Each
claim raises the row's epoch, a fencing token: a holder's change names the epoch of its claim, so
that a worker which lost its lease changes nothing.
"""

from typing import Any, TypeVar

from sqlalchemy import ColumnElement, and_, func, literal_column, null, or_, select
from sqlalchemy import bindparam as bind

from remit.clock import MINUTE
from remit.store.engine.statement import Rows, Statement, scalar
from remit.store.tables.base import STORED

T = TypeVar("T")

#: Longest pause after a failure, in queues that detect a clock that was set back.
LONGEST_PAUSE = 30 * MINUTE


class LeasedQueue(Rows[T]):
    """The statements of every queue. `waiting` and `held` are conditions on its rows, `claims` are
    values that a claim writes besides the lease, and `noun` names the parameter of a row's key."""

    def __init__(
        self,
        value: type[T],
        noun: str,
        *,
        key: str = "id",
        waiting: ColumnElement[bool],
        held: ColumnElement[bool],
        **claims: Any,
    ) -> None:
        super().__init__(value, key)
        table = self.table
        self.noun = noun
        self.by_key = self.key == bind(noun)
        self.by_holder = and_(self.by_key, held, table.c.epoch == bind("epoch"))
        lease: dict[str, Any] = {"lease_until": bind("until"), "worker": bind("new_worker")}
        #: The row of a key.
        self.row = self.one(self.by_key)
        #: Claim a waiting row with a lease; of concurrent workers, one succeeds.
        self.claim = self.change(waiting, epoch=table.c.epoch + 1, **lease, **claims)
        #: The rows that workers hold.
        self.claimed = self.find(held)
        #: Extend the holder's lease.
        self.renew = self.update(self.by_holder, lease_until=bind("until"))
        #: Lock a row whose lease is unchanged since it was read, before it is taken from its
        #: holder; a renewal after that comes too late.
        self.seize = self.update(
            self.by_holder, table.c.lease_until == bind("until"), worker=table.c.worker
        )

    def next_free(self, *where: ColumnElement[bool]) -> Statement[Any]:
        """Select the next time at which a row that no worker holds becomes due."""
        free, when = self.table.c.lease_until.is_(None), self.table.c.next_at
        return Statement(select(func.min(when)).where(*where, free, when > bind("now")), scalar)

    def change(self, *where: ColumnElement[bool], **values: Any) -> Statement[None]:
        """Update one row by its key, if it meets the conditions."""
        return self.update(self.by_key, *where, **values)


class StatusQueue(LeasedQueue[T]):
    """A queue whose rows have a `status`: queued, held or ended."""

    def __init__(
        self,
        value: type[T],
        noun: str,
        *,
        held: str = "leased",
        due: str = "next_at",
        attempts: str = "attempt",
        why: str = "ended_why",
        resets: tuple[str, ...] = (),
        unless: ColumnElement[bool] | None = None,
        created: ColumnElement[Any] | None = None,
        **claims: Any,
    ) -> None:
        """`held` is the status of a claimed row; the others name columns: the time when a row is
        due, the number of claims, the reason of its end, and the columns that the end of a lease
        clears. A row for which `unless` holds is not claimed. With `created`, the time of a row's
        creation, a clock that was set back delays no row: one that was due at its creation is due,
        and so is a failed one whose next attempt is farther away than the longest pause."""
        table = STORED[value]
        # Constants are written out, so that the planner uses the partial index.
        status, when, count = table.c.status, table.c[due], table.c[attempts]
        self.queued = status == literal_column("'queued'")
        self.running = status == literal_column(f"'{held}'")
        self.unfinished = status.in_([literal_column("'queued'"), literal_column(f"'{held}'")])
        self.is_due = when <= bind("now")
        #: Longest pause after a failure; None if there is no limit.
        self.longest_pause = None if created is None else LONGEST_PAUSE
        if created is not None:
            too_far = when - literal_column(str(LONGEST_PAUSE)) > bind("now")
            self.is_due = or_(
                self.is_due, when <= created, and_(table.c[why].is_not(None), too_far)
            )
        self.can_begin = and_(self.queued, self.is_due, *([] if unless is None else [~unless]))
        super().__init__(
            value,
            noun,
            waiting=self.can_begin,
            held=self.running,
            **{"status": held, attempts: count + 1, **claims},
        )
        #: The rows that workers hold.
        self.claimed = self.find(self.unfinished, self.running)
        #: Rows whose lease has expired.
        over = table.c.lease_until <= bind("now")
        self.expired = self.find(self.unfinished, self.running, over, limit=bind("limit"))
        #: The next time at which a waiting row becomes due.
        self.next_due = Statement(
            select(func.min(when)).where(self.unfinished, self.queued, when > bind("now")), scalar
        )
        self._empty = {"lease_until": null(), **dict.fromkeys(resets, null())}
        #: Requeue a row for a retry at a later time.
        self.retry = self.requeue(**{due: bind("due"), why: bind("why")})
        #: Requeue a row, for example because its worker stops; the attempt does not count.
        self.put_back = self.requeue(**{attempts: count - 1})
        #: Requeue a row because the server outside asked to wait; the attempt does not count.
        self.wait = self.requeue(**{due: bind("due"), why: bind("why"), attempts: count - 1})
        end = {**self._empty, "status": bind("new_status"), "ended_at": bind("now")}
        #: End a row, by its holder.
        self.end = self.update(self.by_holder, **end, **{why: bind("why")})
        #: End an unfinished row, whether a worker holds it or not.
        self.close = self.change(self.unfinished, **end, **{why: bind("why")})

    def in_turn(self, *line: str, from_: str | None = None) -> ColumnElement[bool]:
        """A condition for order: no earlier unfinished row has the same values in the columns
        `line`. Rows before their time in the column `from_` block no others."""
        earlier = self.table.alias("earlier")
        same = [earlier.c[name] == self.table.c[name] for name in line]
        before = earlier.c[self.key.name] < self.key
        unfinished = earlier.c.status.in_([literal_column("'queued'"), literal_column("'leased'")])
        begun = [earlier.c[from_] <= bind("now")] if from_ else []
        query = select(earlier.c[self.key.name]).where(*same, unfinished, before, *begun)
        return ~query.exists()

    def requeue(self, **values: Any) -> Statement[None]:
        """Requeue a row, by its holder."""
        back = {"status": "queued", "worker": null(), **self._empty, **values}
        return self.update(self.by_holder, **back)
