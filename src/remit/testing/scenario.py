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

    def do(self, verb: Verb[..., Any], **arguments: Any) -> Any:
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

    if path.suffix == ".toml":
        raise BadInput(
            f"{path} is not a scenario: scenarios are YAML.",
            "Name a scenario; `remit apply` takes the file of a company.",
        )
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise BadInput(f"{path} is larger than a scenario can be.", "Shorten it.")
        text = path.read_text()
        _check_plain(yaml.scan(text), path)
        return yaml.safe_load(text)
    except OSError as error:
        raise BadInput(f"{path} cannot be read ({error.strerror}).", "Check the path.") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise BadInput(f"{path} is not YAML ({_place(error)}).", "Correct the file.") from error


def _place(error: Exception) -> str:
    """Return what is wrong with a file, and the line if the parser knows it."""
    mark = getattr(error, "problem_mark", None)
    where = "" if mark is None else f"line {mark.line + 1}: "
    return where + str(getattr(error, "problem", None) or error).splitlines()[-1].strip()


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
        [_part(part, f"agents[{index}]") for index, part in enumerate(_list(top, "agents"))],
        [_step(step, f"board[{index}]", _BOARD) for index, step in enumerate(_list(top, "board"))],
        [
            _step(step, f"expect[{index}]", _EXPECT)
            for index, step in enumerate(_list(top, "expect"))
        ],
    )


def _part(document: object, at: str) -> Part:
    fields = _mapping(document, at, None)
    if not isinstance(fields.get("name"), str):
        raise BadInput(f"{at}.name: is required.", "Give the agent a name.")
    known = {"name", "boss", "script", "role", "title", "prompt", "capabilities", "adapter_config"}
    if unknown := set(fields) - known:
        raise BadInput(f"{at}.{min(unknown)}: is not known.", f"Known: {', '.join(sorted(known))}.")
    post = {key: fields[key] for key in known - {"name", "boss", "script"} if key in fields}
    reactions = [
        _reaction(reaction, f"{at}.script[{index}]")
        for index, reaction in enumerate(_list(fields, "script"))
    ]
    return Part(fields["name"], fields.get("boss"), post, reactions)


def _reaction(document: object, at: str) -> Reaction:
    fields = _mapping(document, at, {"on", "matching", "do"})
    # YAML reads the bare word `on` as true.
    on = fields.get("on", fields.get(True, "mail"))  # type: ignore[call-overload]
    if on not in ("mail", "start"):
        raise BadInput(f"{at}.on: must be mail or start.", "Choose one of these.")
    steps = [
        _mapping(step, f"{at}.do[{index}]", None) for index, step in enumerate(_list(fields, "do"))
    ]
    return Reaction(str(on), str(fields.get("matching", "")), steps)


def _step(document: object, at: str, known: Iterable[str]) -> Mapping[str, Any]:
    step = {document: None} if isinstance(document, str) else _mapping(document, at, None)
    if len(step) != 1 or next(iter(step)) not in known:
        raise BadInput(f"{at}: must be one of {', '.join(known)}.", "Give exactly one.")
    return step


def _mapping(document: object, at: str, known: set[str] | None) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise BadInput(f"{at}: must be a mapping.", "Indent its keys below it.")
    if known is not None and (unknown := {str(key) for key in document if key is not True} - known):
        raise BadInput(f"{at}.{min(unknown)}: is not known.", f"Known: {', '.join(sorted(known))}.")
    return document


def _list(document: Mapping[str, Any], key: str) -> Sequence[Any]:
    entries = document.get(key) or []
    if not isinstance(entries, list):
        raise BadInput(f"{key}: must be a list.", "Begin each entry with a dash.")
    return entries


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

    def do(self, verb: Verb[..., Any], **arguments: Any) -> Any:
        return self.sim.do(verb, **arguments)

    def cast(self, part: Part) -> None:
        self._parts[part.name] = part
        if part.name == self.sim.root.name:
            self.sim.root.script = self._play
        elif part.boss is not None:
            boss = next(member for member in self.sim.members.values() if member.name == part.boss)
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
        [(verb, template)] = [(key, value) for key, value in step.items() if key != "save"]
        arguments = _resolved(template, saved)
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
        return {key: _resolved(entry, saved) for key, entry in value.items()}
    if isinstance(value, list):
        return [_resolved(entry, saved) for entry in value]
    if not isinstance(value, str) or not (reference := _REFERENCE.fullmatch(value)):
        return value
    known = saved.get(reference[1])
    if known is None:
        raise ToolRefused(f"unknown: Nothing was saved as {reference[1]!r}.", {})
    return known[reference[2]] if reference[2] else known


def play(scenario: Scenario, stage: Stage) -> list[str]:
    """Play a scenario; returns the expected results, or raises Failed."""
    for part in scenario.parts:
        stage.cast(part)
    for step in scenario.board:
        [(kind, arguments)] = step.items()
        _BOARD[kind](stage, arguments)
    stage.rest()
    return [_expected(stage, step) for step in scenario.expect]


def _decide(verb: Verb[..., Any]) -> Any:
    def decide(stage: Stage, wanted: Any) -> None:
        stage.rest()
        rows = stage.do(approvals.listing, company=stage.company, status="pending", limit=100)
        words = str(wanted or "").lower()
        chosen = [row for row in rows if words in str(row["payload"]).lower()]
        if not chosen:
            raise Failed(f"no pending approval matches {wanted!r}")
        for approval in chosen:
            stage.do(verb, approval=approval["id"], expected_revision=approval["revision"])

    return decide


def _answer(stage: Stage, arguments: Any) -> None:
    stage.rest()
    wanted = str(arguments.get("question", "")).lower()
    rows = stage.do(questions.listing, company=stage.company, limit=100)
    chosen = [row for row in rows if wanted in row["question"].lower()]
    if not chosen:
        raise Failed(f"nobody asked {wanted!r}")
    stage.do(questions.answer, question=chosen[0]["id"], answer=arguments["with"])


def _span(text: Any) -> Micros:
    span = _SPAN.fullmatch(str(text).strip())
    if span is None:
        raise BadInput(f"{text!r} is not a span of time.", "Write it like 90s, 15m, 2h or 1d.")
    return int(span[1]) * _UNITS[span[2]]


_BOARD: Mapping[str, Any] = {
    "send": lambda stage, mail: stage.do(mail_verbs.send, company=stage.company, **mail),
    "rest": lambda stage, _: stage.rest(),
    "approve": _decide(approvals.approve),
    "reject": _decide(approvals.reject),
    "answer": _answer,
    "wait": lambda stage, span: stage.wait(_span(span)),
    "crash": lambda stage, _: stage.crash(),
}


def _expected(stage: Stage, step: Mapping[str, Any]) -> str:
    [(kind, wanted)] = step.items()
    count = _EXPECT[kind](stage, wanted)
    least = int(wanted.get("at_least", 1))
    most = wanted.get("at_most")
    phrase = f"{kind} {', '.join(f'{key} {value}' for key, value in wanted.items())}"
    if count < least or (most is not None and count > int(most)):
        raise Failed(f"expected {phrase}; there are {count}")
    return f"{phrase}: {count}"


def _matching(rows: Iterable[Mapping[str, Any]], wanted: Mapping[str, Any], *names: str) -> int:
    """Count the rows that have these values; texts are compared without case."""
    texts = {key: str(value).lower() for key, value in wanted.items() if key in names}
    return sum(
        all(str(row.get(key, "")).lower() == value for key, value in texts.items()) for row in rows
    )


def _letters(stage: Stage, wanted: Mapping[str, Any]) -> int:
    to = str(wanted.get("to", "board"))
    if to == "board":
        letters = stage.do(threads.own_inbox, company=stage.company, everything=True, limit=1000)
    else:
        letters = stage.do(
            threads.inbox_of, agent=to.removeprefix("agent:"), everything=True, limit=1000
        )
    words = str(wanted.get("contains", "")).lower()
    return sum(words in f"{letter['subject']}\n{letter['body']}".lower() for letter in letters)


def _outcomes(stage: Stage, wanted: Mapping[str, Any]) -> int:
    views = stage.do(outcomes.listing, company=stage.company, limit=1000)
    staff = stage.do(agents.listing, company=stage.company, limit=1000, terminated=True)
    names = {agent["id"]: agent["name"] for agent in staff}
    rows = [{**view, "owner": names.get(view["owner_id"], "")} for view in views]
    return _matching(rows, wanted, "title", "status", "owner")


def _listed(verb: Verb[..., Any], *names: str, **filters: Any) -> Any:
    """Return a function that counts the rows of a list with the wanted values of these fields."""

    def count(stage: Stage, wanted: Mapping[str, Any]) -> int:
        rows = stage.do(verb, company=stage.company, limit=1000, **filters)
        return _matching(rows, wanted, *names)

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
