"""The demonstration: a whole story that checks itself."""

import json
import time
from pathlib import Path

from tests.test_cli import Home


def test_the_demonstration_comes_out_right_and_hurries_if_asked(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    began = time.monotonic()
    told = home("demo", "--speed", "fast", warnings=False)
    assert told.code == 0, told.out
    assert time.monotonic() - began < 20
    assert told.out.rstrip().endswith("Everything came out as it should.")
    assert "own_mandate:" in told.out
    assert "delegated_away:" in told.out
    assert "Handover: The press has it" in told.out
    assert "└── A list of newspapers (open, ready)" in told.out
    assert not home.folder.exists(), "it leaves the home of its user alone"


def test_the_demonstration_is_told_as_json(tmp_path: Path) -> None:
    told = Home(tmp_path)("demo", "--json", warnings=False)
    answer = json.loads(told.out)
    assert answer["ok"] is True
    who = [name for name, _ in answer["story"]]
    assert {"board", "editor", "scribe", "herald", "verify"} <= set(who)
    assert who.count("refused") == 5
