"""The run contract: what a run gives an adapter and wants back, also a plugin."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from remit.adapters.pace import Pace
from remit.adapters.settings import Prices
from remit.errors import Unsupported
from remit.model.execution.transcript import Entry, line_of


@dataclass(frozen=True)
class Usage:
    """Tokens and cost that a run took from a model."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    #: In millionths of a dollar.
    cost_micros: int = 0

    def priced_at(self, prices: Prices | None) -> Usage:
        """The same with what it cost; a dollar for a million tokens is a millionth for each."""
        if prices is None:
            return self
        cached = prices.input if prices.cached is None else prices.cached
        cost = (
            (self.tokens_in - self.tokens_cached) * prices.input
            + self.tokens_cached * cached
            + self.tokens_out * prices.output
        )
        return replace(self, cost_micros=max(round(cost), 0))


@dataclass(frozen=True)
class RunResult:
    """How a run ended, as its adapter saw it."""

    ok: bool
    #: The last words of the agent.
    text: str = ""
    #: One word: completed, api_error, auth, rate_limited, max_turns, budget, timeout, crashed…
    reason: str = "completed"
    #: One sentence for a person, when it did not end well.
    error: str | None = None
    usage: Usage = field(default_factory=Usage)
    #: The session to resume next time, if the adapter can.
    session: str | None = None
    #: How long the conversation has become.
    context_tokens: int | None = None
    #: The fault of a run that did not end well: one of `remit.model.execution.fault.Fault`.
    #: None: what `reason` stands for, if it is one of the words above, and the agent's otherwise.
    #: It decides whether the agent, everybody on this worker or everybody with this account waits.
    fault: str | None = None
    #: Until when that lasts, if the provider said so, in microseconds since 1970. It is believed
    #: for a day at most.
    until: int | None = None


#: At the end of the address of Remit's tools: a small model is told of the most important alone.
FEW_TOOLS = "?tools=few"


class Child(ABC):
    """A program that was started for a run. It ends with the run, and so do its children."""

    pid: int

    @abstractmethod
    def lines(self) -> AsyncIterator[str]:
        """Standard output, line by line; it is in the log as well."""

    @abstractmethod
    async def wait(self) -> int:
        """Its exit code; negative for a signal."""

    @abstractmethod
    async def end(self) -> None:
        """End it before its time, with everything it started."""


@dataclass(kw_only=True)
class RunContext(ABC):
    """One run of one agent, or one background job of it."""

    #: A job has a text and gives an answer: no address and token of Remit, no instructions, no
    #: conversation, and a home that goes with it.
    background: bool = False
    #: As the adapter's own `Config`.
    config: Any
    agent: Mapping[str, Any]
    run_id: str
    #: Where Remit is reached, and the token that lives as long as the run.
    url: str
    token: str
    workspace: Path
    #: A folder that the agent's programs keep between runs.
    home: Path
    #: The part of the prompt that is the same in all runs of an agent; it comes first.
    instructions: str
    #: The part of the prompt about this run.
    turn: str
    #: The conversation to go on with; None begins a new one.
    session: str | None
    #: The key for the model, lent by the worker, by variable.
    credentials: Mapping[str, str]
    #: Settings that belong to the key: addresses, regions, proxies, certificates.
    beside: Mapping[str, str] = field(default_factory=dict)
    #: The value of the secret that `secretRef` of the configuration names.
    secret: str | None = None
    #: The usage of the model so far, as far as the adapter knows.
    spent: Usage = Usage()
    #: The agent's money left, in millionths of a dollar; None without a limit.
    money_left: int | None = None
    #: The last that its programs printed on their standard error.
    complaint: str = ""
    #: How many turns of the model a run may take; None without a limit.
    most_turns: int | None = None
    #: Counts turns and calls, for those who see them; raises when the run is to end.
    pace: Pace = field(default_factory=Pace)

    @abstractmethod
    async def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        stdin: bytes = b"",
        full_access: bool = False,
        lent: Mapping[Path, Path] | None = None,
        unlogged: str | None = None,
    ) -> Child:
        """Start a program in the run's sandbox, with this environment and nothing else.

        `lent` are files of the worker, each with the place at which the program finds it. Lines of
        its standard output that begin with `unlogged` are not kept.
        """

    async def forget(self, name: str, keep: Sequence[str] = ()) -> None:
        """Take away what earlier runs left in a folder of the home that its program reads
        instructions and settings from, except for files that match these patterns; make it if it
        is missing."""
        del keep  # only a run of Remit has a home that outlives it
        (self.home / name).mkdir(mode=0o700, exist_ok=True)

    async def spend(self, spent: Usage, *, last: bool = False, turns: int | None = None) -> None:
        """Say what the run has taken so far, after each turn of the model; or after several, if
        `turns` says how many there were in all.

        Raises when nothing is left to spend, which ends the run; not if the model is not going to
        be asked again, because this was the `last` turn.
        """
        del last, turns  # only a run of Remit knows of budgets
        self.spent = spent

    @abstractmethod
    def log(self, text: str, stream: str = "remit") -> None:
        """Keep a line in the log of the run."""

    def tell(self, entry: Entry) -> None:
        """Keep something in the log that no program prints: what the model said, a call, a result,
        a denial. People read it as such."""
        self.log(line_of(entry))

    @abstractmethod
    async def reported(self) -> RunResult:
        """Wait until whoever has the token says how the run ended; for agents elsewhere."""

    def fewest_turns(self, own: int | None) -> int | None:
        """The company's limit, or that of the run's own configuration if it is less."""
        return min((one for one in (own, self.most_turns) if one is not None), default=None)

    def key(self) -> str | None:
        """The key for a model or a remote agent, if the configuration names a secret."""
        name = getattr(self.config, "secret_ref", None)
        if name is not None and self.secret is None:
            raise Unsupported(
                f"The secret {name!r} is not there.",
                f"Let an operator register it with `remit secret set {name}`.",
                code="secret",
            )
        return self.secret

    def task(self) -> dict[str, Any]:
        """Description of a run, for programs and agents elsewhere that take it as JSON."""
        if self.background:
            return {"job": self.run_id, "turn": self.turn}
        return {
            "run": self.run_id,
            "agent": {name: self.agent[name] for name in ("id", "name", "role", "title")},
            "instructions": self.instructions,
            "turn": self.turn,
            "session": self.session,
        }

    def environment(self) -> dict[str, str]:
        """Variables of every program of a run; one of a job is told nothing of Remit."""
        return {
            **({} if self.background else self._about_remit()),
            "HOME": str(self.home),
            "TMPDIR": str(self.workspace / ".tmp"),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
        }

    def _about_remit(self) -> dict[str, str]:
        boss = self.agent.get("reports_to") or self.agent.get("boss_user_id") or ""
        return {
            "REMIT_URL": self.url,
            "REMIT_TOKEN": self.token,
            "REMIT_AGENT": str(self.agent["id"]),
            "REMIT_RUN": self.run_id,
            "REMIT_BOSS": str(boss),
            "REMIT_WORKSPACE": str(self.workspace),
        }


async def start_program(
    context: RunContext,
    argv: Sequence[str],
    told: dict[str, str],
    login: Path | None,
    place: tuple[str, str],
    **more: Any,
) -> Child:
    """Start an agent's program with a login of the worker, if there is one: without a sandbox
    where it lies, which a variable tells; in it, lent to the folder of the home."""
    variable, folder = place
    full, lent = context.config.sandbox == "full", {}
    if login is not None and full:
        told[variable] = str(login.parent)
    elif login is not None:
        lent[login] = context.home / folder / login.name
    cwd = None if context.config.cwd is None else Path(context.config.cwd)
    stdin = context.turn.encode()
    return await context.start(
        argv, env=told, cwd=cwd, stdin=stdin, full_access=full, lent=lent, **more
    )
