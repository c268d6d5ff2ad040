"""The README as a reader follows it, and the first look of docs/troubleshooting.md: each of their
commands, in their order, in a new home."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent
README = (REPOSITORY / "README.md").read_text()
FENCED = re.compile(r"```sh\n(.*?)```", re.DOTALL)
BLOCKS = FENCED.findall(README)
LOOKING = FENCED.findall((REPOSITORY / "docs" / "troubleshooting.md").read_text())
MAKE = [line for block in BLOCKS for line in block.splitlines() if line.startswith("make ")]
#: In the place of the program: the usual port may be in use, so the instance picks a free one.
PROGRAM = """#!/bin/sh
[ "$1" = up ] && shift && set -- up --port 0 "$@"
exec {remit} "$@"
"""
#: The reader takes longer than the agent, whose run the next commands show.
RUN_ENDED = "until remit run list | grep -q completed; do sleep 0.1; done\n"
LONGEST_SECONDS = 120


@pytest.mark.parametrize("line", MAKE)
def test_the_readme_names_targets_of_make(line: str) -> None:
    done = subprocess.run(
        ["make", "-n", *line.split()[1:]],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    assert ".venv/bin/remit demo" in done.stdout


def test_the_readme_shows_the_live_demonstration() -> None:
    """What it does is tested with `remit demo --serve` itself."""
    assert MAKE == ["make live"]
    makefile = (REPOSITORY / "Makefile").read_text()
    assert re.search(r"^live: .*\n\t@exec \$\(BIN\)/remit demo --serve$", makefile, re.MULTILINE)


@pytest.mark.requirement("FX-59", "FX-60")
def test_the_commands_of_the_readme_work_as_printed(tmp_path: Path) -> None:
    program = tmp_path / ".venv" / "bin" / "remit"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM.format(remit=Path(sys.executable).with_name("remit")))
    program.chmod(0o755)
    script = "".join(block for block in BLOCKS if not block.startswith("make "))
    script = script.replace("\nremit stop ", "\n" + "".join(LOOKING) + "remit stop ")
    assert script.count("\nremit ") >= 15
    script = re.sub(r"^(remit send .*\n)", rf"\1{RUN_ENDED}", script, flags=re.MULTILINE)
    (played := tmp_path / "played.sh").write_text(script)
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    try:
        done = subprocess.run(
            ["/bin/sh", "-ev", played],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LONGEST_SECONDS,
            check=False,
        )
    finally:
        subprocess.run([program, "down"], env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "error:" not in done.stderr
    for said in (
        "/login?token=rmt_login_",
        "Sent ",
        "Letter from ceo",
        "Its hire was sent back",
        "My company is stopped",
        "Resumed My company: ended its halt.",
        "Authorised by user:board.",
        "The record is whole",
    ):
        assert said in done.stdout, said
