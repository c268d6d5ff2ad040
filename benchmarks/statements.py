"""Statements of one call: each is a way to the database and back, and the company waits for most.

The second call of its kind is counted, so nothing that happens only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

from benchmarks import office
from benchmarks.harness import KIB_4, Plan, Row
from benchmarks.office import Office
from remit.services.governance import approvals
from remit.services.hiring import hiring
from remit.store.engine.sqlite import SqliteTransaction

#: At most, without the beginning and the commit.
BUDGETS = {"kb_read": 4, "kb_write": 7, "outcome create": 8, "mail": 10, "approve": 14, "hire": 16}


def measure(plan: Plan) -> Iterator[Row]:
    with office.opened(plan.home("statements")) as here:
        calls = _calls(here)
        for name, most in BUDGETS.items():
            calls[name]()
            run = _counted(calls[name])
            yield Row(name, f"{run} statements", "", None, f"≤ {most}", run <= most)


def _counted(call: Callable[[], object]) -> int:
    """Count the statements of a call."""
    execute, counted = SqliteTransaction.execute, 0

    def counting(tx: SqliteTransaction, sql: str, parameters: dict[str, object]) -> object:
        nonlocal counted
        counted += 1
        return execute(tx, sql, parameters)

    SqliteTransaction.execute = counting  # type: ignore[assignment,method-assign]
    try:
        call()
    finally:
        SqliteTransaction.execute = execute  # type: ignore[method-assign]
    return counted


def _calls(here: Office) -> dict[str, Callable[[], object]]:
    file, number = here.file(KIB_4), count()

    def write() -> None:
        nonlocal file
        file = here.write(file, b"%08d" % next(number) + KIB_4[8:])

    def hire() -> str:
        made = here.call(
            here.agent,
            hiring.hire,
            company=None,
            name=f"hired-{next(number)}",
            adapter_type="scripted",
        )
        return str(made["approval"]["id"])

    asked = iter([hire() for _ in range(2)])
    here.call(here.board, approvals.approve, approval=hire())
    return {
        "kb_read": lambda: here.read(file["id"]),
        "kb_write": write,
        "outcome create": lambda: here.wait(
            here.app.library.create_outcome(
                here.agent, title="A part", parent=here.agent_id, description="Do it."
            )
        ),
        "mail": lambda: here.wait(
            here.app.library.send(here.board, to="agent:ceo", body="Have a look at this.")
        ),
        "approve": lambda: here.call(here.board, approvals.approve, approval=next(asked)),
        "hire": hire,
    }
