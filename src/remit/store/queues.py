"""Statements of a leased queue, built from the columns of its table.

A row waits until it is due, is claimed with a lease for a worker, and goes back or ends. Each
claim raises the row's epoch: a change by a holder names the epoch of its claim, so that who lost
the lease to somebody else changes nothing.
"""

from typing import Any, TypeVar

from sqlalchemy import ColumnElement, and_, func, literal_column, null, or_, select
from sqlalchemy import bindparam as bind

from remit.clock import MINUTE
from remit.store.engine.statement import Rows, Statement, scalar
from remit.store.tables.base import STORED

T = TypeVar("T")

#: For what failed in a queue whose rows do not wait for a clock that was set back.
LONGEST_PAUSE = 30 * MINUTE


class LeasedQueue(Rows[T]):
    """The statements of every queue. `waiting` and `held` are conditions of its rows, `claims` is
    what a claim writes besides the lease, and `noun` is what statements call the key of a row."""

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
        #: Take a waiting row on; for one worker, the others change nothing.
        self.claim = self.change(waiting, epoch=table.c.epoch + 1, **lease, **claims)
        #: The rows that are held, and by whom.
        self.claimed = self.find(held)
        #: Go on holding it.
        self.renew = self.update(self.by_holder, lease_until=bind("until"))
        #: Take hold of a lease that says what it said before; who renews it meanwhile is too late.
        self.seize = self.update(
            self.by_holder, table.c.lease_until == bind("until"), worker=table.c.worker
        )

    def next_free(self, *where: ColumnElement[bool]) -> Statement[Any]:
        """When the first row becomes due that nobody holds and that has to wait for its time."""
        free, when = self.table.c.lease_until.is_(None), self.table.c.next_at
        return Statement(select(func.min(when)).where(*where, free, when > bind("now")), scalar)

    def change(self, *where: ColumnElement[bool], **values: Any) -> Statement[None]:
        """A change of one row, under some conditions."""
        return self.update(self.by_key, *where, **values)


class StatusQueue(LeasedQueue[T]):
    """A queue whose rows say in `status` whether they wait, are held or are over."""

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
        made: ColumnElement[Any] | None = None,
        **claims: Any,
    ) -> None:
        """`held` is the status of a claimed row; the others name columns: when it is due, how often
        it was claimed, why it ended, and what is emptied with the end of a lease. Nobody
        claims a row for which `unless` holds. With `made`, the time when a row was made, a clock
        that was set back keeps nobody waiting: what was due at once then is due, and so is what was
        put off for longer than anything is."""
        table = STORED[value]
        # Constants are written out so that the partial index is seen to match.
        status, when, count = table.c.status, table.c[due], table.c[attempts]
        self.queued = status == literal_column("'queued'")
        self.running = status == literal_column(f"'{held}'")
        self.unfinished = status.in_([literal_column("'queued'"), literal_column(f"'{held}'")])
        self.is_due = when <= bind("now")
        #: Nothing that failed is put off for longer; None if there is no such time.
        self.longest_pause = None if made is None else LONGEST_PAUSE
        if made is not None:
            too_far = when - literal_column(str(LONGEST_PAUSE)) > bind("now")
            self.is_due = or_(self.is_due, when <= made, and_(table.c[why].is_not(None), too_far))
        self.can_begin = and_(self.queued, self.is_due, *([] if unless is None else [~unless]))
        super().__init__(
            value,
            noun,
            waiting=self.can_begin,
            held=self.running,
            **{"status": held, attempts: count + 1, **claims},
        )
        #: The rows that are held, and by whom.
        self.claimed = self.find(self.unfinished, self.running)
        #: Rows whose lease is over, by the clock.
        over = table.c.lease_until <= bind("now")
        self.expired = self.find(self.unfinished, self.running, over, limit=bind("limit"))
        #: When the first row becomes due that has to wait for its time.
        self.next_due = Statement(
            select(func.min(when)).where(self.unfinished, self.queued, when > bind("now")), scalar
        )
        self._empty = {"lease_until": null(), **dict.fromkeys(resets, null())}
        #: Back in line, to be tried again when it is due.
        self.retry = self.requeue(**{due: bind("due"), why: bind("why")})
        #: Back in line as if it had not been claimed, because its worker is stopped.
        self.put_back = self.requeue(**{attempts: count - 1})
        #: Back in line because the outside asked for patience; that attempt does not count.
        self.wait = self.requeue(**{due: bind("due"), why: bind("why"), attempts: count - 1})
        end = {**self._empty, "status": bind("new_status"), "ended_at": bind("now")}
        #: The end of it, from its holder.
        self.end = self.update(self.by_holder, **end, **{why: bind("why")})
        #: The end of it, whoever holds it.
        self.close = self.change(self.unfinished, **end, **{why: bind("why")})

    def in_turn(self, *line: str, from_: str | None = None) -> ColumnElement[bool]:
        """Whether no unfinished row comes before, of those with the same values in these columns;
        one that waits for a time in the column `from_` holds up nobody."""
        earlier = self.table.alias("earlier")
        same = [earlier.c[name] == self.table.c[name] for name in line]
        before = earlier.c[self.key.name] < self.key
        unfinished = earlier.c.status.in_([literal_column("'queued'"), literal_column("'leased'")])
        begun = [earlier.c[from_] <= bind("now")] if from_ else []
        found = select(earlier.c[self.key.name]).where(*same, unfinished, before, *begun)
        return ~found.exists()

    def requeue(self, **values: Any) -> Statement[None]:
        """Back in line, by its holder."""
        back = {"status": "queued", "worker": null(), **self._empty, **values}
        return self.update(self.by_holder, **back)
