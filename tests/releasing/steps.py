"""Steps of a release on the terminal: what is done, how long it took, and why it failed."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


class Failed(Exception):
    """A step found that this cannot be released."""


@dataclass
class Steps:
    """Runs named steps, and keeps the result of each."""

    #: By name: the state, the seconds that it took, and what it says.
    done: dict[str, tuple[str, float, str]] = field(default_factory=dict)

    @contextmanager
    def step(self, name: str) -> Iterator[list[str]]:
        """Context manager: one step, which may add remarks. A failure is told, and ends all."""
        remarks: list[str] = []
        began = time.monotonic()
        print(f"{name} …", flush=True)
        try:
            yield remarks
        except Exception as error:
            self._keep(name, "failed", began, [*remarks, str(error)])
            raise
        self._keep(name, "ok", began, remarks)

    def _keep(self, name: str, state: str, began: float, remarks: Sequence[str]) -> None:
        seconds, told = time.monotonic() - began, "; ".join(remarks)
        self.done[name] = (state, seconds, told)
        print(f"  {state}, {seconds:.1f} s{f': {told}' if told else ''}", flush=True)


def run(
    *words: str | Path,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    seconds: float = 600,
) -> str:
    """Run a program to its end and return its output; a failure says what it wrote."""
    done = subprocess.run(
        words,
        cwd=folder,
        env=None if environment is None else dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    if done.returncode:
        command = " ".join(str(word) for word in words)
        raise Failed(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout
