"""Scenarios: stories in files, with agents, the board's actions and the expected results.

    name: A landing page
    agents:
      - name: ceo
        script:
          - on: mail
            matching: landing page
            do:
              - outcome_create: {parent_id: $me, title: Landing page}
                save: page
              - outcome_complete: {id: $page.id, note: It is there.}
              - reply: It is done.
    board:
      - send: {to: "agent:ceo", body: Build a landing page.}
      - rest:
    expect:
      - mail: {to: board, contains: done}
      - outcome: {title: Landing page, status: completed}

In a simulation, agents follow their scripts. With a real adapter, the scripts are ignored and the
agents decide by themselves; the board's actions and the expected results are the same.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from remit.clock import DAY, HOUR, MINUTE, SECOND, Micros
from remit.errors import BadInput
from remit.services.command import Verb
from remit.services.governance import approvals
from remit.services.knowledge import files
from remit.services.messaging import mail as mail_verbs
from remit.services.messaging import questions, threads
from remit.services.organisation import agents
from remit.services.record import events
from remit.services.work import outcomes
from remit.testing.agent import ToolRefused
from remit.testing.simulation import Letter, Simulation, Turn

_SPAN = re.compile(r"(\d+)\s*(s|m|h|d)")
_UNITS: Mapping[str, Micros] = {"s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}
_REFERENCE = re.compile(r"\$(\w+)(?:\.(\w+))?")
LARGEST_FILE = 1024 * 1024
#: Deepest nesting of a file.
DEEPEST = 64


class Failed(AssertionError):
    """An expected result is missing."""


@dataclass(frozen=True)
class Reaction:
    """Reaction of an agent to a message, or to its first run without one."""

    on: str
    matching: str = ""
    do: Sequence[Mapping[str, Any]] = ()

    def concerns(self, letter: Letter) -> bool:
        return self.matching.lower() in f"{letter.subject}\n{letter.body}".lower()


@dataclass(frozen=True)
class Part:
    """One agent of the story."""

    name: str
    boss: str | None = None
    post: Mapping[str, Any] = field(default_factory=dict)
    script: Sequence[Reaction] = ()


@dataclass(frozen=True)
class Scenario:
    name: str
    parts: Sequence[Part]
    board: Sequence[Mapping[str, Any]]
    expect: Sequence[Mapping[str, Any]]


class Stage(Protocol):
    """The environment in which a scenario is played."""

    company: str

    def do(self, verb: Verb[..., Any], **given: Any) -> Any:
        """Call a verb as the board."""

    def cast(self, part: Part) -> None:
        """Set up the agent of a part."""

    def rest(self) -> None:
        """Wait until no agent has anything to do."""

    def wait(self, time: Micros) -> None:
        """Let time pass."""

    def crash(self) -> None:
        """Kill the instance and start it again."""


# ── reading ─────────────────────────────────────────────────────────────────────────────────────


def read(path: Path) -> Scenario:
    return parse(load(path))


def load(path: Path) -> object:
    """Load the YAML of a scenario file."""
    import yaml

    try:
        if path.stat().st_size > LARGEST_FILE:
            raise BadInput(f"{path} is larger than a scenario can be.", "Shorten it.")
        text = path.read_text()
        _check_plain(yaml.scan(text), path)
        return yaml.safe_load(text)
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}).", "Check the path.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        place = str(error).splitlines()[-1].strip()
        raise BadInput(f"{path} is not YAML ({place}).", "Correct the file.") from error


def _check_plain(tokens: Iterable[Any], path: Path) -> None:
    """Refuse aliases and deep nesting before parsing: few lines can expand beyond all memory."""
    depth = 0
    for token in tokens:
        kind = type(token).__name__
        if kind == "AliasToken":
            raise BadInput(f"{path} refers to parts of itself.", "Write each part where it is.")
        depth += kind.endswith("StartToken") - kind.endswith("EndToken")
        if depth > DEEPEST:
            raise BadInput(f"{path} is nested deeper than {DEEPEST} levels.", "Correct the file.")


def parse(document: object) -> Scenario:
    top = _mapping(document, "scenario", {"name", "agents", "board", "expect"})
    return Scenario(
        str(top.get("name") or "A scenario"),
        [_part(one, f"agents[{index}]") for index, one in enumerate(_list(top, "agents"))],
        [_step(one, f"board[{index}]", _BOARD) for index, one in enumerate(_list(top, "board"))],
        [_step(one, f"expect[{index}]", _EXPECT) for index, one in enumerate(_list(top, "expect"))],
    )


def _part(document: object, at: str) -> Part:
    found = _mapping(document, at, None)
    if not isinstance(found.get("name"), str):
        raise BadInput(f"{at}.name: is required.", "Give the agent a name.")
    known = {"name", "boss", "script", "role", "title", "prompt", "capabilities", "adapter_config"}
    if unknown := set(found) - known:
        raise BadInput(f"{at}.{min(unknown)}: is not known.", f"Known: {', '.join(sorted(known))}.")
    post = {key: found[key] for key in known - {"name", "boss", "script"} if key in found}
    reactions = [
        _reaction(one, f"{at}.script[{index}]") for index, one in enumerate(_list(found, "script"))
    ]
    return Part(found["name"], found.get("boss"), post, reactions)


def _reaction(document: object, at: str) -> Reaction:
    found = _mapping(document, at, {"on", "matching", "do"})
    # YAML reads the bare word `on` as true.
    on = found.get("on", found.get(True, "mail"))  # type: ignore[call-overload]
    if on not in ("mail", "start"):
        raise BadInput(f"{at}.on: must be mail or start.", "Choose one of these.")
    steps = [
        _mapping(one, f"{at}.do[{index}]", None) for index, one in enumerate(_list(found, "do"))
    ]
    return Reaction(str(on), str(found.get("matching", "")), steps)


def _step(document: object, at: str, known: Iterable[str]) -> Mapping[str, Any]:
    found = {document: None} if isinstance(document, str) else _mapping(document, at, None)
    if len(found) != 1 or next(iter(found)) not in known:
        raise BadInput(f"{at}: must be one of {', '.join(known)}.", "Give exactly one.")
    return found


def _mapping(document: object, at: str, known: set[str] | None) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise BadInput(f"{at}: must be a mapping.", "Indent its keys below it.")
    if known is not None and (unknown := {str(key) for key in document if key is not True} - known):
        raise BadInput(f"{at}.{min(unknown)}: is not known.", f"Known: {', '.join(sorted(known))}.")
    return document


def _list(document: Mapping[str, Any], key: str) -> Sequence[Any]:
    found = document.get(key) or []
    if not isinstance(found, list):
        raise BadInput(f"{key}: must be a list.", "Begin each entry with a dash.")
    return found


# ── playing ─────────────────────────────────────────────────────────────────────────────────────


class Simulated:
    """A stage on which the agents follow their scripts."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.company = sim.company
        self._parts: dict[str, Part] = {}
        #: Values that the steps of each agent saved, across its runs, in place of a model's memory.
        self._saved: dict[str, dict[str, Any]] = {}
        self._started: set[str] = set()

    def do(self, verb: Verb[..., Any], **given: Any) -> Any:
        return self.sim.do(verb, **given)

    def cast(self, part: Part) -> None:
        self._parts[part.name] = part
        if part.name == self.sim.root.name:
            self.sim.root.script = self._play
        elif part.boss is not None:
            boss = next(one for one in self.sim.members.values() if one.name == part.boss)
            post = {key: value for key, value in part.post.items() if key != "adapter_config"}
            self.sim.agent(part.name, self._play, boss=boss, **post)
        # An agent without a boss in the file is hired in the story.

    def rest(self) -> None:
        for view in self.sim.ask(agents.listing, company=self.company, limit=1000):
            if view["id"] not in self.sim.members:
                self.sim.adopt(view["id"], self._play)
            self.sim.members[view["id"]].script = self._play
        self.sim.run()

    def wait(self, time: Micros) -> None:
        self.sim.clock.advance(time)
        self.rest()

    def crash(self) -> None:
        self.sim.crash()

    def _play(self, turn: Turn) -> None:
        part = self._parts.get(turn.agent.name)
        if part is None:
            return
        saved = self._saved.setdefault(part.name, {"me": turn.agent.id})
        for letter in turn.mail:
            for reaction in part.script:
                if reaction.on == "mail" and reaction.concerns(letter):
                    _react(turn, reaction, letter, saved)
                    break
        if not turn.mail and part.name not in self._started:
            self._started.add(part.name)
            for reaction in part.script:
                if reaction.on == "start":
                    _react(turn, reaction, None, saved)


def _react(turn: Turn, reaction: Reaction, letter: Letter | None, saved: dict[str, Any]) -> None:
    saved["mail"] = None if letter is None else asdict(letter)
    for step in reaction.do:
        [(verb, given)] = [(key, value) for key, value in step.items() if key != "save"]
        arguments = _resolved(given, saved)
        if verb == "reply":
            assert letter is not None, "there is nothing to reply to"
            answer: Any = turn.reply(letter, str(arguments))
        elif verb == "say":
            turn.words = str(arguments)
            continue
        else:
            answer = turn.call(verb, **(arguments or {}))
        if "save" in step:
            saved[str(step["save"])] = answer


def _resolved(value: Any, saved: Mapping[str, Any]) -> Any:
    """Replace `$name` and `$name.field` by the saved answers of earlier steps."""
    if isinstance(value, Mapping):
        return {key: _resolved(one, saved) for key, one in value.items()}
    if isinstance(value, list):
        return [_resolved(one, saved) for one in value]
    if not isinstance(value, str) or not (found := _REFERENCE.fullmatch(value)):
        return value
    known = saved.get(found[1])
    if known is None:
        raise ToolRefused(f"unknown: Nothing was saved as {found[1]!r}.", {})
    return known[found[2]] if found[2] else known


def play(scenario: Scenario, stage: Stage) -> list[str]:
    """Play a scenario; returns the expected results, or raises Failed."""
    for part in scenario.parts:
        stage.cast(part)
    for step in scenario.board:
        [(kind, given)] = step.items()
        _BOARD[kind](stage, given)
    stage.rest()
    return [_expected(stage, step) for step in scenario.expect]


def _send(stage: Stage, given: Any) -> None:
    stage.do(mail_verbs.send, company=stage.company, **given)


def _decide(verb: Verb[..., Any]) -> Any:
    def decide(stage: Stage, wanted: Any) -> None:
        stage.rest()
        found = stage.do(approvals.listing, company=stage.company, status="pending", limit=100)
        words = str(wanted or "").lower()
        chosen = [one for one in found if words in str(one["payload"]).lower()]
        if not chosen:
            raise Failed(f"no pending approval matches {wanted!r}")
        for one in chosen:
            stage.do(verb, approval=one["id"], expected_revision=one["revision"])

    return decide


def _answer(stage: Stage, given: Any) -> None:
    stage.rest()
    wanted = str(given.get("question", "")).lower()
    found = stage.do(questions.listing, company=stage.company, limit=100)
    chosen = [one for one in found if wanted in one["question"].lower()]
    if not chosen:
        raise Failed(f"nobody asked {wanted!r}")
    stage.do(questions.answer, question=chosen[0]["id"], answer=given["with"])


def _span(text: Any) -> Micros:
    found = _SPAN.fullmatch(str(text).strip())
    if found is None:
        raise BadInput(f"{text!r} is not a span of time.", "Write it like 90s, 15m, 2h or 1d.")
    return int(found[1]) * _UNITS[found[2]]


_BOARD: Mapping[str, Any] = {
    "send": _send,
    "rest": lambda stage, _: stage.rest(),
    "approve": _decide(approvals.approve),
    "reject": _decide(approvals.reject),
    "answer": _answer,
    "wait": lambda stage, given: stage.wait(_span(given)),
    "crash": lambda stage, _: stage.crash(),
}


def _expected(stage: Stage, step: Mapping[str, Any]) -> str:
    [(kind, wanted)] = step.items()
    found = _EXPECT[kind](stage, wanted)
    least = int(wanted.get("at_least", 1))
    most = wanted.get("at_most")
    told = f"{kind} {', '.join(f'{key} {value}' for key, value in wanted.items())}"
    if found < least or (most is not None and found > int(most)):
        raise Failed(f"expected {told}; there are {found}")
    return f"{told}: {found}"


def _matching(rows: Iterable[Mapping[str, Any]], wanted: Mapping[str, Any], *names: str) -> int:
    """Count the rows that have these values; texts are compared without case."""
    asked = {key: str(value).lower() for key, value in wanted.items() if key in names}
    return sum(
        all(str(one.get(key, "")).lower() == value for key, value in asked.items()) for one in rows
    )


def _letters(stage: Stage, wanted: Mapping[str, Any]) -> int:
    to = str(wanted.get("to", "board"))
    if to == "board":
        found = stage.do(threads.own_inbox, company=stage.company, everything=True, limit=1000)
    else:
        found = stage.do(
            threads.inbox_of, agent=to.removeprefix("agent:"), everything=True, limit=1000
        )
    words = str(wanted.get("contains", "")).lower()
    return sum(words in f"{one['subject']}\n{one['body']}".lower() for one in found)


def _outcomes(stage: Stage, wanted: Mapping[str, Any]) -> int:
    found = stage.do(outcomes.listing, company=stage.company, limit=1000)
    staff = stage.do(agents.listing, company=stage.company, limit=1000, terminated=True)
    names = {one["id"]: one["name"] for one in staff}
    rows = [{**one, "owner": names.get(one["owner_id"], "")} for one in found]
    return _matching(rows, wanted, "title", "status", "owner")


def _listed(verb: Verb[..., Any], *names: str, **filters: Any) -> Any:
    """Return a function that counts the rows of a list with the wanted values of these fields."""

    def count(stage: Stage, wanted: Mapping[str, Any]) -> int:
        found = stage.do(verb, company=stage.company, limit=1000, **filters)
        return _matching(found, wanted, *names)

    return count


_EXPECT: Mapping[str, Any] = {
    "mail": _letters,
    "outcome": _outcomes,
    "agent": _listed(agents.listing, "name", "status", "role", "title", terminated=True),
    "event": _listed(events.listing, "action", "reason"),
    "approval": _listed(approvals.listing, "type", "status"),
    "file": _listed(files.browse, "description"),
}

__all__ = ["Failed", "Part", "Scenario", "Simulated", "Stage", "parse", "play", "read"]
