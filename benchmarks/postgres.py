"""The same service calls on PostgreSQL, next to SQLite in the same run."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from benchmarks import office
from benchmarks.harness import Plan, Row, compared, interleaved
from benchmarks.services import verbs

_NAMES = {
    "me": "who am I (query)",
    "show": "look at a file (query)",
    "read": "read 4 KiB (access-log row)",
    "write": "write 4 KiB (version, rows, event)",
}


def measure(plan: Plan) -> Iterator[Row]:
    try:
        from tests import postgres, run_folder
    except ImportError as error:
        yield Row("skipped", f"the private server needs {error.name}, which is not here")
        return
    with contextlib.ExitStack() as stack:
        run = run_folder.begin(on_disk=True)
        stack.callback(run.remove)
        stack.callback(postgres.stop, run)
        try:
            url = postgres.shared_cluster(run, durable=True).empty_database()
        except postgres.PostgresMissing as error:
            yield Row("skipped", str(error))
            return
        on_server = stack.enter_context(office.opened(plan.home("postgres"), url))
        on_sqlite = stack.enter_context(office.opened(plan.home("beside-postgres")))
        works = {f"{name} server": work for name, work in verbs(on_server).items()}
        works |= {f"{name} sqlite": work for name, work in verbs(on_sqlite).items()}
        taken = interleaved(works, plan.some(200), seconds=plan.patience)
    for name, words in _NAMES.items():
        yield compared(words, taken[f"{name} server"].p50, "SQLite", taken[f"{name} sqlite"].p50)
