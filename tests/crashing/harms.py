"""Builds that are broken in one way each, to see that the matrix notices."""

from typing import Any

from remit.services.context import Context
from remit.store.blob_store.blobs import LocalBlobs
from remit.store.blob_store.orphan_sweep import SweepReport
from remit.store.engine.database import Transaction
from remit.store.record import events
from tests.crashing.points import put


def forget_answers() -> None:
    """What a key was answered with is not kept."""
    run = Transaction.run

    def running(tx: Any, statement: Any, **given: Any) -> int:
        return 1 if statement is events.INSERT_ANSWER else run(tx, statement, **given)

    put(Transaction, "run", running)


def commit_early() -> None:
    """What was done until something is recorded is committed by itself."""
    record = Context.record

    def recording(ctx: Any, *given: Any, **more: Any) -> Any:
        connection = ctx.tx._connection
        for statement in ("COMMIT", "BEGIN IMMEDIATE", "SAVEPOINT job"):
            connection.execute(statement)
        return record(ctx, *given, **more)

    put(Context, "record", recording)


def commit_late() -> None:
    """It is said to be done, and is not."""
    from remit.store.engine import sqlite

    together = sqlite._commit_together

    def forgetting(connection: Any, batch: Any) -> None:
        class Forgetful:
            in_transaction = True
            executemany = connection.executemany

            def execute(self, statement: str, *given: Any) -> Any:
                wanted = "ROLLBACK" if statement == "COMMIT" else statement
                return connection.execute(wanted, *given)

        forgetful: Any = Forgetful()
        together(forgetful, batch)

    put(sqlite, "_commit_together", forgetting)


def sweep_nothing() -> None:
    """Bytes that no row names stay."""
    put(LocalBlobs, "sweep", lambda *_: SweepReport(0, 0, 0, 0))


HARMS = {
    "forget_answers": forget_answers,
    "commit_early": commit_early,
    "commit_late": commit_late,
    "sweep_nothing": sweep_nothing,
}
