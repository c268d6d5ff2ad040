"""Every verb that changes something, killed at every point, on both databases.

What a killed process leaves is nothing or everything, once; the same call made again is answered
as if nothing had happened; and what lies about is taken away. In `tests/crashing`, `points.py`
names the points, `situations.py` has a row for each verb, and `matrix.py` says what must be true.
"""

from collections.abc import Callable, Iterator

import pytest

from remit.services.context import Kind
from remit.services.verbs import all_verbs
from tests.crashing.matrix import Matrix, Trial
from tests.crashing.situations import SITUATIONS, verb_of

DATABASES = ("sqlite", "postgresql")
#: The first of them prepares the company, which takes long on a machine that has much else to do.
SECONDS = 300


@pytest.fixture(scope="module")
def matrix_of(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Matrix]]:
    """The matrix on a database, which is prepared by the first test that asks for it."""
    made: dict[str, Matrix] = {}

    def found(engine: str) -> Matrix:
        if engine not in made:
            postgres = engine == "postgresql"
            made[engine] = Matrix(request.getfixturevalue("postgres_cluster") if postgres else None)
        return made[engine]

    yield found
    for one in made.values():
        one.close()


@pytest.mark.timeout(SECONDS)
@pytest.mark.requirement("BX-05", "BX-06")
@pytest.mark.parametrize("engine", DATABASES)
@pytest.mark.parametrize("name", SITUATIONS)
def test_a_call_that_is_killed_at_any_point_has_happened_once_or_not_at_all(
    matrix_of: Callable[[str], Matrix], name: str, engine: str
) -> None:
    Trial(matrix_of(engine), name).run()


@pytest.mark.requirement("BX-05", "BX-06")
def test_the_matrix_knows_every_verb_that_changes_something() -> None:
    ours = {name for name, verb in all_verbs().items() if verb.kind is not Kind.QUERY}
    assert {verb_of(name) for name in SITUATIONS} == ours


@pytest.mark.timeout(SECONDS)
@pytest.mark.parametrize(
    ("harm", "noticed"),
    [
        ("forget_answers", "the repeat, after a kill"),
        ("commit_early", "and something is there"),
        ("commit_late", "it leaves something, or not"),
        ("sweep_nothing", "what is stored is what rows name"),
    ],
)
def test_a_build_that_is_broken_would_be_noticed(
    matrix_of: Callable[[str], Matrix], harm: str, noticed: str
) -> None:
    with pytest.raises(AssertionError, match=noticed):
        Trial(matrix_of("sqlite"), "mail.send", harm).run()
