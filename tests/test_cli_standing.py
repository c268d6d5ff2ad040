"""`remit` without a command."""

from __future__ import annotations

import re
from pathlib import Path

from tests.test_cli import NOWHERE, Home, only, remit

__all__ = ["only", "remit"]


def test_without_an_instance_it_says_how_to_begin_and_exits_0(tmp_path: Path) -> None:
    home = Home(tmp_path / "none")
    shown = home()
    assert (shown.code, shown.err) == (0, "")
    assert f"No instance runs in {home.folder}." in shown.out
    assert "  remit demo " in shown.out
    assert "  remit up " in shown.out
    assert home.json()["running"] is False
    assert not home.folder.exists()
    assert f"No instance runs in {NOWHERE}." in home("--url", NOWHERE).out


def test_with_an_instance_it_says_where_things_stand(only: Home) -> None:
    shown = only()
    assert (shown.code, shown.err) == (0, "")
    assert shown.out.startswith("Remit runs at http://127.0.0.1:")
    assert re.search(r"^Company \w+: 1 agent, 0 at work; today \$0\.00", shown.out, re.MULTILINE)
    assert "Nothing awaits you." in shown.out
    only("agent", "hire", "ann", "--boss", "ceo")
    only("stop", "--note", "Audit")
    shown = only()
    assert "1 thing awaits you:" in shown.out
    assert "    next: remit approval show " in shown.out
    assert "(Audit); `remit resume` ends the halt." in shown.out
    answer = only.json()
    assert [item["kind"] for item in answer["needs_you"]] == ["approval"]
    assert answer["companies"][0]["halts"][0]["note"] == "Audit"
    stranger = only("--token", "rmt_user_wrong")
    assert (stranger.code, "  next: " in stranger.out) == (0, True)
