"""The run contract: the context that a run gives an adapter, and the result that it expects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from remit.adapters.pace import Pace
from remit.errors import Unsupported
from remit.model.execution.cost import Price
from remit.model.execution.transcript import Entry, line_of


@dataclass(frozen=True)
class Usage:
    """Tokens and cost that a run took from a model."""

    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    #: The cost in millionths of a dollar; 0 with tokens: not known.
    cost_micros: int = 0
    #: Whether the cost is an estimate.
    cost_estimated: bool = False

    def priced_at(self, price: Price | None) -> Usage:
        """Add the cost by a price."""
        if price is None:
            return self
        cost = price.of(self.tokens_in, self.tokens_out, self.tokens_cached)
        return replace(self, cost_micros=cost, cost_estimated=price.listed and cost > 0)


@dataclass(frozen=True)
class RunResult:
    """The end of a run, as its adapter reports it."""

    ok: bool
    #: The final answer of the agent.
    text: str = ""
    #: One word: completed, api_error, auth, rate_limited, max_turns, budget, timeout, crashed…
    reason: str = "completed"
    #: One sentence for a person about a failure.
    error: str | None = None
    usage: Usage = field(default_factory=Usage)
    #: The session to resume next time, if the adapter can.
    session: str | None = None
    #: The length of the conversation in tokens.
    context_tokens: int | None = None
    #: The fault of a failed run, one of `remit.model.execution.fault.Fault`. None: the one that
    #: `reason` implies, if it is one of the words above, and the agent's otherwise. It decides
    #: whether the agent, all agents on this worker or all agents with this account wait.
    fault: str | None = None
    #: Until when the fault lasts, if the provider named a time, in microseconds since 1970; at most
    #: a day from now is believed.
    until: int | None = None
    #: Whether it did something that Remit cannot see, such as calls of a shell. Calls that are
    #: reported to `RunContext.pace` count by themselves.
    acted: bool = False
    #: Digest of the files that a failed run changed. Remit works it out; adapters leave it alone.
    changed_files: str | None = None


#: Suffix of the address of Remit's tools that limits them to the most important, for small models.
FEW_TOOLS = "?tools=few"


class Child(ABC):
    """A program that was started for a run. It ends with the run, and so do its children."""

    pid: int

    @abstractmethod
    def lines(self) -> AsyncIterator[str]:
        """Yield the lines of its standard output, which is logged as well."""

    @abstractmethod
    async def wait(self) -> int:
        """Wait for its end; return its exit code, negative for a signal."""

    @abstractmethod
    async def end(self) -> None:
        """End it early, with all processes that it started."""


@dataclass(kw_only=True)
class RunContext(ABC):
    """One run of one agent, or one background job of it."""

    #: Whether this is a background job, which gets a text and returns an answer: without address
    #: and token of Remit, without instructions and conversation, with a temporary home.
    background: bool = False
    #: The settings, as the adapter's own `Config`.
    config: Any
    agent: Mapping[str, Any]
    run_id: str
    #: The address of Remit, and the token that is valid as long as the run.
    url: str
    token: str
    workspace: Path
    #: A folder that the agent's programs keep between runs.
    home: Path
    #: The part of the prompt that is the same in all runs of an agent; it comes first.
    instructions: str
    #: The part of the prompt about this run.
    turn: str
    #: The conversation to resume; None begins a new one.
    session: str | None
    #: The key for the model, lent by the worker, by variable.
    credentials: Mapping[str, str]
    #: Settings that belong to the key: addresses, regions, proxies, certificates.
    beside: Mapping[str, str] = field(default_factory=dict)
    #: The value of the secret that `secretRef` of the configuration names.
    secret: str | None = None
    #: The price of the model; None where it is not known.
    price: Price | None = None
    #: The usage of the model so far, as far as the adapter knows.
    spent: Usage = Usage()
    #: The agent's money left, in millionths of a dollar; None without a limit.
    money_left: int | None = None
    #: The end of what the program started last printed on standard error.
    complaint: str = ""
    #: A sentence about the set-up that is added to the error of a failed run.
    advice: str = ""
    #: Folders with skills, each a plugin of Claude Code, which no run can change.
    skills: Sequence[Path] = ()
    #: How many turns of the model a run may take; None without a limit.
    most_turns: int | None = None
    #: Counters to which the adapter reports turns and calls; they raise when the run is to end.
    pace: Pace = field(default_factory=Pace)

    @property
    def starts_in(self) -> Path:
        """The folder in which its programs start, whose contents are not to be trusted."""
        cwd = getattr(self.config, "cwd", None)
        return self.workspace if cwd is None else self.workspace / cwd

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
        sealed: Sequence[Path] = (),
        unlogged: str | None = None,
    ) -> Child:
        """Start a program in the run's sandbox, with this environment and nothing else.

        `lent` are files of the worker, each with its path in the sandbox. `sealed` are files of the
        home that stay empty during the run, where the sandbox can enforce that. Lines of standard
        output that begin with `unlogged` are not logged.
        """

    async def forget(self, name: str, keep: Sequence[str] = ()) -> None:
        """Empty a folder of the home from which its program reads instructions and settings, which
        earlier runs may have left, except for files that match these patterns; make it if it is
        missing."""
        del keep  # only a real run has a lasting home
        (self.home / name).mkdir(mode=0o700, exist_ok=True)

    async def spend(self, spent: Usage, *, last: bool = False, turns: int | None = None) -> None:
        """Report the usage of the run so far, after each turn of the model; or after several turns,
        with their total number in `turns`.

        Raises when the budget is used up, which ends the run; except after the `last` turn, when
        the model is not asked again.
        """
        del last, turns  # only a real run has a budget
        self.spent = spent

    @abstractmethod
    def log(self, text: str, stream: str = "remit") -> None:
        """Add a line to the log of the run."""

    def tell(self, entry: Entry) -> None:
        """Add an entry to the log that no program printed: a text of the model, a call, a result or
        a denial."""
        self.log(line_of(entry))

    @abstractmethod
    async def reported(self) -> RunResult:
        """Wait for the report of an agent elsewhere about the end of the run."""

    def fewest_turns(self, own: int | None) -> int | None:
        """Return the lower of the company's limit and the configuration's own."""
        return min((limit for limit in (own, self.most_turns) if limit is not None), default=None)

    def key(self) -> str | None:
        """Return the key for a model or a remote agent, if the configuration names a secret."""
        name = getattr(self.config, "secret_ref", None)
        if name is not None and self.secret is None:
            raise Unsupported(
                f"The secret {name!r} is not there.",
                f"Let an operator register it with `remit secret set {name}`.",
                code="secret",
            )
        return self.secret

    def task(self) -> dict[str, Any]:
        """Return a description of the run as JSON, for programs and agents elsewhere."""
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
        """Return the variables of every program of a run; those of a job have none about Remit."""
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
    """Start an agent's program, with the worker's login file if there is one: mounted into the home
    in a sandbox, or named by a variable without one."""
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
