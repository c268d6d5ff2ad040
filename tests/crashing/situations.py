"""For every verb that changes something, a situation in which it succeeds.

One company has all of a chapter that are tried, so that it is made once and copied. A verb without
a situation fails `test_the_matrix_knows_every_verb_that_changes_something`.
"""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from remit.testing.clock import A_DAY, VirtualClock
from tests.company import Company, opened
from tests.crashing import (  # noqa: F401  each of them adds its situations
    of_agents,
    of_approvals,
    of_changes,
    of_channels,
    of_chats,
    of_checks,
    of_connections,
    of_forges,
    of_mail,
    of_people,
    of_reviews,
    of_runs,
    of_wishes,
    of_work,
)
from tests.crashing.scene import SITUATIONS, Scene, chapter_of, verb_of
from tests.mailing import send

__all__ = ["SITUATIONS", "build", "chapter_of", "verb_of"]


def build(url: str, home: Path, names: Sequence[str] = ()) -> dict[str, Any]:
    """The company with all situations, or with those that are named; answers the call of each."""
    clock = VirtualClock(A_DAY)
    made: dict[str, Any] = {}
    with opened(url, home, clock, asks_before_hiring=True) as company:
        for number, (name, body) in enumerate(SITUATIONS.items()):
            if names and name not in names:
                continue
            scene = Scene(company, verb_of(name), number)
            try:
                made[name] = asdict(body(scene))
            except Exception as error:
                error.add_note(f"while preparing {name}")
                raise
    if any(call["through"] == "archive.import_" for call in made.values()):
        with opened(f"sqlite:///{home.parent}/elsewhere.db", home.parent / "elsewhere") as other:
            _archive(other, home.parent / "archive")
    return {"calls": made}


def _archive(company: Company, place: Path) -> None:
    """An export of another instance, with files and mail in it."""
    member = company.agent("far", prompt="Be far away.")
    company.file(company.board, b"Far away.", "a far file")
    send(company, company.board, f"agent:{member.id}", "Come home.")

    async def whole() -> bytes:
        outline = await company.app.archive.export(company.board, company.id)
        return b"".join([piece async for piece in company.app.archive.stream(outline)])

    place.write_bytes(company.wait(whole()))
