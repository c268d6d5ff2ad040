"""Changes to the code that a test must notice.

Each table in this folder lists places that carry a promise: a rule, a check, a bound. A mutant is
the code with one of them changed, and names the tests that have to fail then. `make mutants` tries
every one of them; a mutant that no named test notices is a hole in the proof.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "remit"
TABLES = Path(__file__).parent
DOCUMENT = ROOT / "docs" / "mutants.md"


class WrongMutant(ValueError):
    """A table says something that cannot be tried."""


@dataclass(frozen=True)
class Mutant:
    #: Short and stable; `--only` takes it.
    name: str
    #: The file of the table that it is in.
    area: str
    #: What would be untrue if nobody noticed.
    breaks: str
    #: Below `src/remit`.
    file: str
    was: str
    now: str
    #: Node ids below `tests`, without what a test is given: any of them may be the one to notice.
    tests: tuple[str, ...]
    #: What a test has to be given, as for `-k`; keeps a parametrized test short.
    given: str = ""
    engine: str = "sqlite"

    @property
    def path(self) -> Path:
        return SOURCE / self.file

    @property
    def lays_tables(self) -> bool:
        """Whether a company that was founded without it would hide it, or show it too soon."""
        return self.file.startswith(
            ("store/tables/", "store/migrations/", "store/record/events.py")
        )

    def source(self) -> str:
        """The file with the change in it."""
        text = self.path.read_text()
        times = text.count(self.was)
        if times != 1:
            raise WrongMutant(
                f"{self.name}: {self.file} has {self.was!r} {times} times instead of once;"
                f" correct tests/mutants/{self.area}.toml."
            )
        return text.replace(self.was, self.now)


_KEYS = {"name", "breaks", "file", "was", "now", "tests", "given", "engine"}


def mutants() -> list[Mutant]:
    """All of them, as the tables have them."""
    found = []
    for table in sorted(TABLES.glob("*.toml")):
        for row in tomllib.loads(table.read_text())["mutant"]:
            unknown = row.keys() - _KEYS
            if unknown:
                raise WrongMutant(f"{table.name}: {row.get('name')} has an unknown {min(unknown)}.")
            found.append(Mutant(area=table.stem, **{**row, "tests": tuple(row["tests"])}))
    twice = [name for name, times in Counter(one.name for one in found).items() if times > 1]
    if twice:
        raise WrongMutant(f"{twice[0]} is there twice.")
    return found


def document(of: Iterable[Mutant]) -> str:
    """The tables as `docs/mutants.md` shows them."""
    by_area: dict[str, list[Mutant]] = {}
    for one in of:
        by_area.setdefault(one.area, []).append(one)
    total = sum(map(len, by_area.values()))
    lines = [
        "# Mutants",
        "",
        "A promise is worth as much as the test that would notice if it were broken. `make",
        f"mutants` changes the code at {total} places that carry one, one at a time and in a",
        "copy, and runs the tests that have to notice. It fails when they do not. `make campaign`",
        "does so, too, and `make test` tries a few. To add a place, add it to a table in",
        "`tests/mutants`;",
        "`python -m tests.mutants --write` writes this page anew.",
    ]
    for area, listed in by_area.items():
        lines += ["", f"## {area.replace('_', ' ').capitalize()}", ""]
        lines += ["| | What would be untrue | Where | Noticed by |", "|---|---|---|---|"]
        lines += [f"| {one.name} | {one.breaks} | `{one.file}` | {_tests(one)} |" for one in listed]
    return "\n".join(lines) + "\n"


def _tests(mutant: Mutant) -> str:
    return ", ".join(f"`{test}`" for test in mutant.tests)
