"""Simulation of a company in one thread: real services, a virtual clock, agents as functions.

    with Simulation(seed=1) as sim:
        ceo = sim.agent("ceo", lambda turn: [turn.reply(one, "Done.") for one in turn.mail])
        sim.send(ceo, "Please build a landing page.")
        sim.run()
        assert [letter.body for letter in sim.mail()] == ["Done."]

All calls take the same path as in production, from the token to the event; only the disk, the clock
and the agents' programs are simulated. A crash discards the object that represents the process, and
opens another one on the committed data.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

from remit.app import App
from remit.clock import HOUR, SECOND, Micros
from remit.entrypoints.mcp.registry import caller, validate
from remit.entrypoints.mcp.tools.listing import build_tools
from remit.errors import Conflict, NotFound, RemitError
from remit.ids import Ids
from remit.services.command import Verb
from remit.services.execution import accounts, run_queue, runs
from remit.services.identity import Caller, as_system
from remit.services.messaging import inbox, mail, schedules, threads
from remit.services.organisation import agents
from remit.services.people import companies, users
from remit.services.spending import limits
from remit.services.work import outcomes
from remit.settings import load
from remit.store.engine.migrate import migrate
from remit.testing.agent import ToolRefused
from remit.testing.clock import VirtualClock
from remit.testing.database import Crash, CrashingBlobs, CrashPoint, InlineDatabase, Moment
from remit.testing.door import Door, Response

R = TypeVar("R")

#: A file system in memory, where there is one: syncs cost nothing there.
_MEMORY = Path("/dev/shm")  # noqa: S108  # folders below it are made by tempfile
#: Most turns of a run; more count as an endless loop.
MOST_TURNS = 10_000


@dataclass(frozen=True)
class Letter:
    """A message as its receiver reads it."""

    id: str
    sender: str
    subject: str
    body: str
    may_have_been_handled: bool = False


@dataclass(eq=False)
class Turn:
    """One run of an agent: its input, and what it can do."""

    sim: Simulation
    agent: Member
    run: str
    token: str
    #: Mail of the run, which a successful end marks as handled.
    mail: list[Letter] = field(default_factory=list)
    #: Its final answer.
    words: str = ""

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool as a model would; raises ToolRefused with the code of a refusal."""
        return self.sim.call_tool(self.token, tool, arguments)

    def send(self, to: str | Member, body: str, subject: str = "") -> dict[str, Any]:
        return self.call("mail_send", to=_address(to), body=body, subject=subject)

    def reply(self, letter: Letter, body: str) -> dict[str, Any]:
        return self.call("mail_send", to=letter.sender, body=body, reply_to=letter.id)


Script = Callable[[Turn], object]


@dataclass
class Member:
    """An agent of the simulated company, with the script of its runs."""

    id: str
    name: str
    script: Script
    #: How often it ran.
    turns: int = field(default=0, compare=False)

    @property
    def address(self) -> str:
        return f"agent:{self.id}"


def idle(_: Turn) -> None:
    """The script that does nothing; its mail counts as handled."""


class Simulation:
    def __init__(self, seed: int = 0, *, name: str = "Simulated") -> None:
        self.seed = seed
        self.chance = random.Random(seed)  # noqa: S311  # a seed must give the same company again
        self.clock = VirtualClock()
        self.members: dict[str, Member] = {}
        #: The events as sentences, which a failure prints.
        self.story: list[str] = []
        self.crashes = 0
        self._loop = asyncio.new_event_loop()
        root = _MEMORY if _MEMORY.is_dir() else None
        self._folder = Path(tempfile.mkdtemp(prefix="remit-sim-", dir=root))
        self._settings = load({"REMIT_HOME": str(self._folder)})
        self._folder.chmod(0o700)
        (self._folder / "remit.db").write_bytes(_schema())
        # Kept across crashes, so that ids stay monotonic.
        self._ids = Ids(self.clock, self.chance.getrandbits)
        self.crash_point: CrashPoint | None = None
        self._open()
        self.app: App
        self.do_async(self.app.first_start())
        self.board = Caller(self._settings.board_token_file.read_text().strip())
        company = self.ask(companies.listing, caller=self.board)[0]
        self.company: str = company["id"]
        if name:
            self.do(companies.change, company=self.company, name=name)
        staff = self.ask(agents.listing, caller=self.board, company=self.company)
        self.root = self._member(staff[0], idle)

    # ── life ────────────────────────────────────────────────────────────────────────────────

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, trace: object) -> None:
        if error is not None and not isinstance(error, Crash):
            error.add_note(f"seed {self.seed}; the story:\n" + "\n".join(self.story[-50:]))
        self.close()

    def close(self) -> None:
        self.do_async(self.app.aclose())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _open(self) -> None:
        self.database = InlineDatabase(self._folder / "remit.db")
        self.database.crash_point = self._crash_point
        self.app = App(
            self._settings,
            self.clock,
            ids=self._ids,
            database=self.database,
            blobs=CrashingBlobs(self._folder / "blobs", self._crash_point),
        )
        self._tools = build_tools(self.app)

    def _crash_point(self, moment: Moment) -> None:
        if self.crash_point is not None:
            self.crash_point(moment)

    def crash(self) -> None:
        """Kill the instance and start it again."""
        self.crashes += 1
        self.say("The instance is killed and started again.")
        point, self.crash_point = self.crash_point, None
        self.app.library.close()
        self.database.close()
        self._open()
        self.do_async(self.app.first_start())
        self.crash_point = point

    @contextlib.contextmanager
    def crashing(self, point: CrashPoint) -> Iterator[None]:
        """Context manager: set a function that decides at each crash point whether to crash."""
        before, self.crash_point = self.crash_point, point
        try:
            yield
        finally:
            self.crash_point = before

    def say(self, sentence: str) -> None:
        self.story.append(sentence)

    # ── building ────────────────────────────────────────────────────────────────────────────

    def agent(
        self, name: str, script: Script = idle, *, boss: Member | None = None, **post: Any
    ) -> Member:
        """Create an agent as the board; the root agent's name returns the root agent."""
        if boss is None and name == self.root.name:
            self.root.script = script
            return self.root
        above = boss or self.root
        view = self.do(
            agents.create,
            company=self.company,
            name=name,
            adapter_type="scripted",
            reports_to=above.id,
            **post,
        )
        self.say(f"{name} is taken on below {above.name}.")
        return self._member(view, script)

    def _member(self, view: dict[str, Any], script: Script) -> Member:
        member = Member(view["id"], view["name"], script)
        self.members[member.id] = member
        return member

    def adopt(self, agent: str, script: Script = idle) -> Member:
        """Add an agent that was created in another way, such as by a hire."""
        return self._member(self.ask(agents.show, agent=agent), script)

    # ── doing ───────────────────────────────────────────────────────────────────────────────

    def do(self, verb: Verb[..., R], caller: Caller | None = None, **arguments: Any) -> R:
        """Call a verb, as the board unless another caller is given."""
        answer: R = self.do_async(self.app.gate(caller or self.board, verb, **arguments))
        return answer

    def ask(self, verb: Verb[..., R], caller: Caller | None = None, **arguments: Any) -> R:
        """Call a query, as `do` does."""
        return self.do(verb, caller, **arguments)

    def do_async(self, work: Any) -> Any:
        return self._loop.run_until_complete(work)

    def call_tool(self, token: str, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        tool = self._tools.get(name)
        if tool is None:
            raise ToolRefused(f"not_found: There is no tool {name!r}.", {})
        try:
            checked = validate(tool, arguments)
            answer: dict[str, Any] = self.do_async(tool.call(caller(token, checked), checked))
        except RemitError as error:
            raise ToolRefused(error.as_text(), error.details) from None
        return answer

    def request(
        self, method: str, address: str, *, caller: Caller | None = None, **more: Any
    ) -> Response:
        """Send an HTTP request, as the board unless another caller is given; see `Door.request`."""
        token = (caller or self.board).token
        answer: Response = self.do_async(self.door.request(method, address, token=token, **more))
        return answer

    @functools.cached_property
    def door(self) -> Door:
        return Door(lambda: self.app)

    def send(self, to: str | Member, body: str, subject: str = "", **more: Any) -> dict[str, Any]:
        """Send mail from the board."""
        self.say(f"The board writes to {to.name if isinstance(to, Member) else to}: {body[:60]!r}")
        sent: dict[str, Any] = self.do(
            mail.send, to=_address(to), company=self.company, body=body, subject=subject, **more
        )
        return sent

    # ── working ─────────────────────────────────────────────────────────────────────────────

    def ready(self) -> list[str]:
        """Return the agents that a worker would start now."""
        return [agent.agent_id for agent in self.ask(run_queue.ready, caller=as_system())]

    def turn(self, agent: str) -> bool:
        """Run an agent's script once; returns whether the agent had work."""
        run = self._ids.new()
        try:
            claimed = self.do(
                run_queue.claim,
                caller=as_system(),
                agent=agent,
                run=run,
                workspace=str(self._settings.workspaces / run),
                worker="simulated",
            )
        except (Conflict, NotFound) as refusal:
            self.refused(agent, refusal)
            return False
        member = self.members.get(agent) or self.adopt(agent)
        member.turns += 1
        turn = Turn(self, member, run, claimed["token"])
        status, report = "completed", {}
        try:
            taken = self.do(inbox.take, caller=Caller(claimed["token"]))
            turn.mail = [_letter(message) for message in taken["messages"]]
            self.say(f"{member.name} runs ({claimed['why']}) with {len(turn.mail)} messages.")
            member.script(turn)
            report = {"final_response": turn.words or None}
        except ToolRefused as refusal:
            status, report = "failed", {"error": str(refusal), "exit_reason": refusal.code}
        except AgentDied as died:
            status, report = "lost", {"error": str(died), "exit_reason": "crashed"}
        except RunFailed as failed:
            status, report = "failed", dict(failed.report)
        except RemitError as error:
            status, report = "failed", {"error": error.sentence, "exit_reason": error.reason}
        if report.get("error"):
            self.say(f"The run of {member.name} {status}: {report['error']}")
        with contextlib.suppress(Conflict, NotFound):  # it was ended meanwhile
            self.do(
                runs.end,
                caller=as_system(),
                run=run,
                status=status,
                seen=claimed["seen"],
                report=report,
            )
        return True

    def refused(self, agent: str, refusal: RemitError) -> None:
        """Handle the refusal of a start as a worker does."""
        with contextlib.suppress(RemitError):
            if refusal.reason == limits.REACHED:
                self.do(limits.hold, caller=as_system(), agent=agent)
            elif refusal.reason == accounts.HELD:
                self.do(accounts.wait, caller=as_system(), agent=agent, worker="simulated")
            elif refusal.reason != accounts.OPENING:
                self.do(run_queue.settle, caller=as_system(), agent=agent)

    def step(self) -> bool:
        """Run one of the ready agents, chosen at random; returns whether one had work."""
        self.tick()
        ready = sorted(self.ready())
        self.chance.shuffle(ready)
        return any(self.turn(agent) for agent in ready)

    def tick(self) -> None:
        """Run due timers: deferred mail, schedules, expired approvals."""
        self.do_async(self.app.clockwork.tick())

    def sweep(self) -> None:
        """Run the repairs: leases of dead workers, wrong times, agents that were not woken."""
        # No agent works between two turns, so the holder of any lease is gone.
        for run, until in self.ask(run_queue.held, caller=as_system()).items():
            with contextlib.suppress(Conflict):
                self.do(run_queue.take_over, caller=as_system(), run=run, until=until)
        for agent in self.ask(run_queue.misdated, caller=as_system()):
            self.do(run_queue.redate, caller=as_system(), agent=agent)
        for company in self.ask(run_queue.forgotten, caller=as_system()):
            self.do(run_queue.sweep, caller=as_system(), company=company)

    def run(self, most: int = MOST_TURNS, *, patience: Micros = HOUR) -> int:
        """Run agents until none has anything to do within `patience`; returns the turns."""
        turns = 0
        until = self.clock.now() + patience
        while turns < most:
            try:
                self.sweep()
                if self.step():
                    turns += 1
                    continue
            except Crash:
                self.crash()
                continue
            following = self._next_time()
            if following is None or following > until:
                return turns
            self.clock.advance(max(following - self.clock.now(), SECOND))
        raise AssertionError(f"after {most} turns there is still something to do")

    def _next_time(self) -> Micros | None:
        known = self.ask(run_queue.next_ready, caller=as_system())
        times = [*known, self.ask(schedules.next_due, caller=as_system())]
        later = [time for time in times if time is not None]
        return min(later, default=None)

    # ── looking ─────────────────────────────────────────────────────────────────────────────

    def mail(self, to: Member | None = None) -> list[Letter]:
        """Return all mail of the board or of an agent, oldest first."""
        if to is None:
            views = self.ask(threads.own_inbox, company=self.company, everything=True, limit=1000)
        else:
            views = self.ask(threads.inbox_of, agent=to.id, everything=True, limit=1000)
        return [_letter(view) for view in views]

    def reports(self, member: Member) -> list[Member]:
        """Return the direct reports that the simulation knows."""
        staff = self.ask(agents.listing, company=self.company, limit=1000)
        below = [agent["id"] for agent in staff if agent["reports_to"] == member.id]
        return [self.members[id_] for id_ in below if id_ in self.members]

    def outcomes(self, **filters: Any) -> list[dict[str, Any]]:
        return self.ask(outcomes.listing, company=self.company, limit=1000, **filters)

    def status(self, member: Member) -> str:
        return str(self.ask(agents.show, agent=member.id)["status"])

    def person(self, name: str, role: str = "board") -> Caller:
        """Add a person; returns their caller."""
        user = self.do(users.add, company=self.company, name=name, role=role)
        key = self.do(users.create_token, company=self.company, user=user["id"], expires_at=None)
        return Caller(key["token"])


class RunFailed(Exception):
    """Raised by a script whose run fails with this report, such as one that a limit ends."""

    def __init__(self, error: str, **report: str | None) -> None:
        super().__init__(error)
        self.report = {"error": error, **report}


class AgentDied(Exception):
    """Raised by a script to simulate that the agent's program died."""


def _letter(view: dict[str, Any]) -> Letter:
    return Letter(
        view["id"],
        view["sender"],
        view["subject"],
        view["body"],
        bool(view.get("may_have_been_handled")),
    )


def _address(to: str | Member) -> str:
    return to.address if isinstance(to, Member) else to


@functools.cache
def _schema() -> bytes:
    """Return an empty database file with the schema, made once and copied for every company."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "remit.db"
        migrate(f"sqlite:///{path}")
        return path.read_bytes()


__all__: Sequence[str] = [
    "AgentDied",
    "Letter",
    "Member",
    "RunFailed",
    "Script",
    "Simulation",
    "Turn",
    "idle",
]
