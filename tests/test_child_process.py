"""A child that is ended is over, whoever holds its pipes and however full they are."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from remit.runtime.child_process import end_child
from remit.runtime.repos import git

SOON = 10.0


class EnoughHeard(Exception):
    pass


async def listen_until_enough(command: list[str], cwd: Path) -> None:
    def take(piece: bytes) -> None:
        raise EnoughHeard

    async with asyncio.timeout(SOON):
        await git.run_command(command, env=os.environ, cwd=cwd, seconds=60, take=take)


@pytest.mark.requirement("FX-15")
def test_what_got_away_with_the_pipe_keeps_nobody_waiting(tmp_path: Path) -> None:
    escape = 'setsid sh -c "echo \\$\\$ > escaped; exec sleep 60" & '
    talk = "until [ -s escaped ]; do sleep 0.01; done; while :; do echo on; done"
    try:
        with pytest.raises(EnoughHeard):
            asyncio.run(listen_until_enough(["sh", "-c", escape + talk], tmp_path))
    finally:
        os.kill(int((tmp_path / "escaped").read_text()), signal.SIGKILL)


@pytest.mark.requirement("FX-15")
def test_a_child_is_over_though_nobody_read_what_it_said() -> None:
    async def story() -> int | None:
        process = await asyncio.create_subprocess_exec(
            "yes", stdout=asyncio.subprocess.PIPE, start_new_session=True
        )
        assert process.stdout is not None
        await process.stdout.readexactly(1)
        await asyncio.sleep(0.1)  # the reader is full and has stopped reading the pipe
        async with asyncio.timeout(SOON):
            await end_child(process)
        return process.returncode

    assert asyncio.run(story()) == -signal.SIGKILL


def test_input_is_there_at_once_and_takes_nothing_back(tmp_path: Path) -> None:
    """A program may give up on an empty pipe; what it writes to its input has no place."""
    script = "cat; cat < /dev/stdin; (echo more >&0) 2> refused || true; wc -c < refused"

    async def run() -> bytes:
        command = ["sh", "-c", script]
        return await git.run_command(
            command, env=os.environ, cwd=tmp_path, seconds=SOON, stdin=b"a prompt\n" * 100_000
        )

    first, _, rest = asyncio.run(run()).partition(b"a prompt\n" * 200_000)
    assert first == b""
    assert int(rest) > 0
