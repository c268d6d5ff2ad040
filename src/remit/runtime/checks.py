"""Whether an adapter can work here with certain settings, looked at without trusting them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from remit.adapters import looking, registry
from remit.adapters.contract import Check
from remit.runtime import sandbox


def check(adapter: str, config: Mapping[str, Any] | None, secret: Path) -> Check:
    """What an adapter finds when it looks around; programs that it asks see nothing of `secret`.

    An agent that hires chooses the program of its report. It is started in the sandbox, as a run
    would start it, and not at all with the rights of whoever looks; where there is no sandbox, no
    agent has a program of its own to name.
    """

    def hold(
        argv: Sequence[str], env: Mapping[str, str], home: Path
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        if not sandbox.look().usable:
            return argv, env
        inside = sandbox.wrap(argv, env=env, workspace=home, home=home, cwd=home, hidden=[secret])
        return inside, sandbox.outer(env)

    with looking.held(hold):
        return registry.check(adapter, config)
