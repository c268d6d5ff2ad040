"""The result of the last acceptance, as a page of the documentation."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from tests.releasing.artifacts import Built
from tests.releasing.steps import Steps, run

PAGE = Path("docs/acceptance.md")
_HEAD = """# The last acceptance

`make accept` wrote this page, when all of its steps had passed. [Releasing](releasing.md) says what
they do.

"""


def write(root: Path, built: Built, steps: Steps) -> None:
    commit = run("git", "-C", built.tree, "rev-parse", "HEAD").strip()
    day = datetime.now(UTC).date()
    (root / PAGE).write_text(text(built.version, commit, str(day), steps), encoding="utf-8")


def text(number: str, commit: str, day: str, steps: Steps) -> str:
    lines = [
        f"- Version: `{number}`",
        f"- Commit: `{commit}`",
        f"- Day: {day}",
        "",
        "| Step | Result | Seconds | Remarks |",
        "|---|---|---|---|",
        *(
            f"| {name} | {state} | {seconds:.0f} | {told.replace('|', '/')} |"
            for name, (state, seconds, told) in steps.done.items()
        ),
    ]
    return _HEAD + "\n".join(lines) + "\n"
