"""Every verb that changes something, killed at every point, on both databases.

On SQLite `make test` tries each verb; of those that keep nothing in files, the first of a chapter
also with half a commit and a start afterwards, and the campaign the others. On PostgreSQL it tries
a part, and the campaign the rest.

What a killed process leaves is nothing or everything, once; the same call made again is answered
as if nothing had happened; and what lies about is taken away. In `tests/crashing`, `points.py`
names the points, `situations.py` has a row for each verb, and `matrix.py` says what must be true.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import pytest
from _pytest.mark import ParameterSet

from remit.services.context import Kind
from remit.services.verbs import all_verbs
from tests.crashing.matrix import Matrix, Trial
from tests.crashing.situations import SITUATIONS, chapter_of, verb_of
from tests.crashing.stage import Stage

#: On PostgreSQL, `make test` tries one in so many of some chapters, the first among them;
STEP = 16
#: and these, because hardly any other comes by the points where something is in a file of its own.
ALWAYS = {"bootstrap.first_start", "mail.send", "secrets.put", "secrets.remove"}
REST = "SQLite shows it for each verb in `make test`, and a part of some chapters on PostgreSQL"
#: In these chapters; a company has to be prepared for each.
CHAPTERS = {"mail", "runs", "work", "approvals", "changes"}
THOROUGH = "half a commit and a start are tried with the first verb of each chapter in `make test`"
#: The first of them prepares the company, which takes long on a machine that has much else to do.
SECONDS = 300


MatrixOf = Callable[[str, str], Matrix]


def cases() -> Iterator[ParameterSet]:
    """Chapter by chapter; what stands before the colon is run by one worker, see `selection`."""
    for chapter, names in groupby(SITUATIONS, chapter_of):
        for number, name in enumerate(names):
            for engine in ("sqlite", "postgresql"):
                tried = name in ALWAYS or (chapter in CHAPTERS and number % STEP == 0)
                rest = engine == "postgresql" and not tried
                marks = [pytest.mark.campaign(REST)] if rest else []
                which = f"{chapter}: {name}-{engine}"
                yield pytest.param(name, engine, number == 0, id=which, marks=marks)
                if engine == "sqlite" and number:
                    more = [pytest.mark.campaign(THOROUGH)]
                    yield pytest.param(name, engine, True, id=f"{which}-thorough", marks=more)


def always(chapter: str) -> set[str]:
    return {name for name in ALWAYS if chapter_of(name) == chapter}


def _given(item: pytest.Item) -> dict[str, Any]:
    return getattr(getattr(item, "callspec", None), "params", {})


@pytest.fixture(scope="module")
def matrix_of(request: pytest.FixtureRequest) -> Iterator[MatrixOf]:
    """The matrix of a situation on a database; the first of its chapter prepares it."""
    stage = Stage()
    made: dict[tuple[str, str], Matrix] = {}
    tried: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for item in request.session.items:
        if item.path == request.path and "engine" in (given := _given(item)):
            tried[chapter_of(given["name"]), given["engine"]].add(given["name"])

    def found(name: str, engine: str) -> Matrix:
        key = chapter_of(name), engine
        if key not in made:
            postgres = engine == "postgresql"
            cluster = request.getfixturevalue("postgres_cluster") if postgres else None
            made[key] = Matrix(stage, sorted(tried[key] | always(chapter_of(name))), cluster)
        return made[key]

    yield found
    for one in made.values():
        one.close()
    stage.close()


@pytest.mark.timeout(SECONDS)
@pytest.mark.requirement("BX-05", "BX-06")
@pytest.mark.parametrize(("name", "engine", "thorough"), list(cases()))
def test_a_call_that_is_killed_at_any_point_has_happened_once_or_not_at_all(
    matrix_of: MatrixOf, name: str, engine: str, thorough: bool
) -> None:
    Trial(matrix_of(name, engine), name, thorough=thorough or engine == "postgresql").run()


@pytest.mark.requirement("BX-05", "BX-06")
def test_the_matrix_knows_every_verb_that_changes_something() -> None:
    ours = {name for name, verb in all_verbs().items() if verb.kind is not Kind.QUERY}
    assert {verb_of(name) for name in SITUATIONS} == ours


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize(
    ("harm", "noticed"),
    [
        pytest.param(harm, noticed, id=f"mail: {harm}")
        for harm, noticed in (
            ("forget_answers", "the repeat, after a kill"),
            ("commit_early", "and something is there"),
            ("commit_late", "it leaves something, or not"),
            ("sweep_nothing", "what is stored is what rows name"),
        )
    ],
)
def test_a_build_that_is_broken_would_be_noticed(
    matrix_of: MatrixOf, harm: str, noticed: str
) -> None:
    with pytest.raises(AssertionError, match=noticed):
        Trial(matrix_of("mail.send", "sqlite"), "mail.send", harm).run()
