"""The record in words: what each action is called."""

import ast
import re
from pathlib import Path

import pytest

from remit.authority import Action
from remit.entrypoints.web.text import event_text

SERVICES = Path(__file__).parent.parent / "src" / "remit" / "services"
_RECORDS = ("record", "_record", "_answer")


def recorded() -> set[str]:
    """The actions that the services name when they record something."""
    found = set()
    for path in SERVICES.rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text())):
            name = getattr(call, "func", None)
            if getattr(name, "attr", getattr(name, "id", "")) not in _RECORDS:
                continue
            texts = [one.value for one in ast.walk(call) if isinstance(one, ast.Constant)]
            texts += [text for one in ast.walk(call) for text in _chosen(one)]
            found |= {one for one in texts if isinstance(one, str)}
    return {one for one in found if re.fullmatch(r"[a-z_]+\.[a-z_]+", one)}


def _chosen(node: ast.AST) -> list[str]:
    """The texts that `f"folder.{'bind' if … else 'mount'}"` can be."""
    match node:
        case ast.JoinedStr(
            values=[ast.Constant(value=str(noun)), ast.FormattedValue(value=ast.IfExp() as either)]
        ):
            verbs = [each.value for each in (either.body, either.orelse) if hasattr(each, "value")]
            return [f"{noun}{verb}" for verb in verbs]
    return []


@pytest.mark.requirement("FX-50")
def test_every_action_has_words() -> None:
    known = recorded()
    assert {"outcome.create", "folder.mount"} <= known
    without = {
        one
        for one in known | {action.value for action in Action}
        if event_text.past(one).startswith("did ")
    }
    assert not without
