"""Run the measurements that were named, or all of them."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from benchmarks import harness

#: Each is a module with `measure`, and what its table is about.
MEASUREMENTS = {
    "decide": "Decisions a second, facts in memory",
    "services": "Service calls against the bare disk, one caller",
    "postgres": "The same service calls on PostgreSQL",
    "tools": "Knowledge base through MCP against a tool that does nothing",
    "content": "File contents over HTTP",
    "door": "What others wait while strangers and agents send all that they may",
    "held": "What others wait while one looks at the most of a large company",
    "scale": "100,000 files and grants against 1,000",
    "organisation": "Outcomes and the tree of agents",
    "governance": "Hiring, approving and looking at agents over HTTP",
    "mail": "Mail: how soon it is seen, and among how much of it",
    "runtime": "Agents: how soon they start, how many, and what waiting costs",
    "pages": "Pages of the dashboard, of a large company against a small one",
    "repos": "Repositories: a copy for an agent",
    "simulation": "Simulated companies, checked after every step",
    "statements": "Statements of one call",
    "walk": "Files that a tool call walks through",
    "requests": "What a model is sent first, by the real programs",
    "startup": "Starting, idling, and what an agent pays before it begins",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(MEASUREMENTS))
    parser.add_argument("--quick", action="store_true", help="less exact, under a minute")
    given = parser.parse_args()
    unknown = [name for name in given.names if name not in MEASUREMENTS]
    if unknown:
        parser.error(f"no measurement named {unknown[0]}; there are {', '.join(MEASUREMENTS)}")
    began = time.monotonic()
    missed = 0
    with tempfile.TemporaryDirectory(prefix="remit-bench-") as folder:
        print(harness.machine(Path(folder)))
        for name in given.names or MEASUREMENTS:
            harness.print_heading(f"{name}: {MEASUREMENTS[name]}")
            measure: harness.Measurement = import_module(f"benchmarks.{name}").measure
            for row in measure(harness.Plan(Path(folder), given.quick)):
                harness.print_row(row)
                missed += row.ok is False
    over = f"{missed} over budget" if missed else "everything within budget"
    print(f"\n{over}; took {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
