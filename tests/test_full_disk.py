"""A disk that is really full: the instance says so, loses nothing, and goes on when there is room.

The disk is a small tmpfs in a mount namespace of its own, which needs root.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.full_disk import STORIES

ROOT = Path(__file__).parent.parent
SIZE = "40m"
_MOUNTED = 'mount -t tmpfs -o size="$0",mode=700 remit "$1" && shift && exec "$@"'


def on_a_small_disk(place: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            *("unshare", "--mount", "--propagation", "private"),
            *("/bin/sh", "-c", _MOUNTED, SIZE, str(place), *command),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


@pytest.mark.parametrize("story", STORIES)
def test_a_full_disk_loses_nothing_and_is_said(story: str, tmp_path: Path) -> None:
    tried = on_a_small_disk(tmp_path, "/bin/true")
    if tried.returncode != 0:
        pytest.skip(f"A REALLY FULL DISK IS NOT TESTED: no small one here ({tried.stderr.strip()})")
    told = on_a_small_disk(tmp_path, sys.executable, "-m", "tests.full_disk", story, str(tmp_path))
    assert told.returncode == 0, told.stderr[-4000:]
    assert told.stdout.endswith("told\n")
