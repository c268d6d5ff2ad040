"""docs/stopping.md: every way to stop or resume, and an example that is played."""

import re
import shlex
from pathlib import Path

import click
import pytest

from remit.entrypoints.cli.main import cli
from tests.test_cli import Home, remit
from tests.test_cli_help import commands

__all__ = ["remit"]

PAGE = (Path(__file__).parent.parent / "docs" / "stopping.md").read_text()
#: Words in a command's name by which it stops or resumes something.
STOPS = {
    *("abort", "cancel", "close", "down", "go", "pause", "purge", "reclaim", "reopen", "restart"),
    *("resume", "revoke", "start", "stop", "terminate"),
}


def test_the_table_has_every_command_that_stops_or_resumes() -> None:
    ending = {
        name
        for name, command in commands(cli)
        if name.split()[-1] in STOPS and not isinstance(command, click.Group)
    }
    assert sorted(name for name in ending if f"`{name}" not in PAGE) == []


@pytest.mark.requirement("FX-60")
def test_the_example_works_as_printed(remit: Home) -> None:
    (block,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    told = ""
    for line in block.splitlines():
        done = remit(*shlex.split(line.partition(" #")[0])[1:])
        assert done.code == 0, f"{line}: {done.err}"
        told += done.out
    assert "tester: It is paused" in told
    assert "ceo and everybody below it were stopped by board" in told
    assert "(A look at the figures first)" in told
