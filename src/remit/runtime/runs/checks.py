"""Checks of an adapter with untrusted settings, inside the sandbox."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from remit.adapters import registry
from remit.adapters.contract import Check
from remit.adapters.setup import detect
from remit.runtime.sandbox import sandbox_policy


def check(adapter: str, config: Mapping[str, Any] | None, secret: Path) -> Check:
    """Return the result of an adapter's check; programs that it starts cannot see `secret`.

    An agent that hires chooses the program of its report, so the check starts it in the sandbox, as
    a run would, and not with the worker's rights. Where there is no sandbox, agents cannot name
    programs, and the check starts those of the board directly.
    """
    with detect.held(without([secret])):
        return registry.check(adapter, config)


def without(hidden: Sequence[Path]) -> detect.Hold:
    """Return a wrapper of commands that starts them in the sandbox, without these folders."""

    def hold(
        argv: Sequence[str], env: Mapping[str, str], home: Path
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        if not sandbox_policy.look().usable:
            return argv, env
        inside = sandbox_policy.wrap(
            argv, env=env, workspace=home, home=home, cwd=home, hidden=hidden
        )
        return inside, sandbox_policy.outer(env)

    return hold
