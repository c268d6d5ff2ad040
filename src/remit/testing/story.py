"""Stories: scenarios that are narrated step by step, each with an action and its checks.

    story:
      - title: A file, and who may read it
      - begin: {editor: $company.root_agent_id}
      - editor: {kb_create: {description: Facts, content: It works.}}
        save: facts
        say: writes down the facts
      - writer: {kb_read: {id: $facts.id}}
        refused: no_capability

A step is a call by the board or by an agent whose run was begun; a name with a dot is a verb, any
other a tool, called over MCP. `$facts.id` stands for a saved value, `{facts.id}` for its text in
another text; in such a path `*` maps over a list, and `#` counts it. A step is checked by `expect`
(these values), `contains`, `lacks` (this text, in a text or in one of a list), `only` (a list of
one), `refused` (with this code) and `cut_off`. Its `say` is narrated only if all checks pass;
`patiently` repeats the call until they do. `if` and `unless` skip a step.
"""

import asyncio
import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from remit.app import App
from remit.errors import BadInput, Conflict, RemitError
from remit.runtime.runs import lifecycle
from remit.runtime.runs.worker import Worker
from remit.services.identity import Caller
from remit.services.verbs import verb_named
from remit.testing.agent import ScriptedAgent, ToolRefused
from remit.testing.scenario import load

PATIENCE_SECONDS = 10.0
_STEP_SECONDS = 0.05
_REFERENCE = re.compile(r"\$([\w.*#]+)")
_WITHIN = re.compile(r"\{([a-z][\w.*#]*)\}")
_ABOUT_A_CALL = {
    *("save", "say", "show", "expect", "contains", "lacks", "only"),
    *("refused", "cut_off", "patiently", "if", "unless"),
}

Step = Mapping[str, Any]


class WentWrong(Exception):
    """The story cannot continue after an unexpected result."""


class Teller(Protocol):
    """Narrator of a story, for people."""

    def title(self, text: str) -> None: ...

    def say(self, who: str, what: str) -> None: ...

    def refused(self, text: str) -> None: ...

    def show(self, kind: str, value: Any) -> None: ...


class Player:
    """Plays a story in a running instance."""

    def __init__(
        self, app: App, url: str, board: Caller, teller: Teller, known: Mapping[str, Any]
    ) -> None:
        self._app = app
        self._url = url
        self._teller = teller
        self._saved = dict(known)
        self._callers = {"board": board}
        self._runs: dict[str, lifecycle.LiveRun] = {}
        self._agents: dict[str, ScriptedAgent] = {}
        self._worker: Worker | None = None

    async def play(self, steps: Sequence[Step]) -> bool:
        """Play the steps; returns whether all checks passed."""
        try:
            outcomes = [await self._step(step) for step in steps]
        except (RemitError, ToolRefused, ConnectionError, WentWrong) as wrong:
            # A story that cannot continue has failed.
            self._teller.refused(str(wrong))
            return False
        finally:
            for agent in self._agents.values():
                agent.close()
            if self._worker is not None:
                await self._worker.stop()
        return all(outcomes)

    async def _step(self, step: Step) -> bool:
        if ("if" in step and not self._saved[step["if"]]) or (
            "unless" in step and self._saved[step["unless"]]
        ):
            return True
        kind = next(key for key in step if key not in _ABOUT_A_CALL)
        content = self._resolved(step[kind])
        match kind:
            case "title":
                self._teller.title(content)
            case "begin":
                for name, agent in content.items():
                    await self._begin(name, agent)
            case "finish":
                for name in content:
                    with contextlib.suppress(Conflict):  # one that was shut down has ended
                        await lifecycle.finish(self._app.gate, self._runs[name])
            case "file":
                (self._runs[content["of"]].workspace / content["name"]).write_text(content["text"])
            case "worker":
                self._worker = Worker(self._app, self._url)
                self._worker.start()
                self._saved["worker"] = {"name": self._worker.name}
            case "pick":
                rows, wanted = content["from"], content["where"]
                rows = [row for row in rows if wanted.items() <= row.items()]
                self._saved[step["save"]] = rows
                return self._came_about(kind, step)
            case _:
                return await self._act(kind, content or {}, step)
        return True

    async def _begin(self, name: str, agent: str) -> None:
        app = self._app
        run = await lifecycle.begin(app.gate, app.ids, app.settings.workspaces, agent)
        self._runs[name], self._callers[name] = run, Caller(run.token)
        if name in self._agents:
            self._agents[name].close()
        self._agents[name] = ScriptedAgent(self._url, run.token)

    async def _act(self, who: str, call: Mapping[str, Any], step: Step) -> bool:
        [(what, arguments)] = call.items() or [("", None)]
        for _ in range(int(PATIENCE_SECONDS / _STEP_SECONDS) if "patiently" in step else 1):
            answer = await self._call(who, what, arguments or {}, step) if what else None
            if "save" in step:
                self._saved[step["save"]] = answer
            if not (wrong := self._wrong(step)):
                break
            await asyncio.sleep(_STEP_SECONDS)
        if wrong and "patiently" in step:
            raise WentWrong(f"{step['patiently']} ({wrong})")
        return self._came_about(who, step)

    async def _call(self, who: str, what: str, arguments: Mapping[str, Any], step: Step) -> Any:
        try:
            if "." in what:
                return await self._app.gate(self._callers[who], verb_named(what), **arguments)
            # In a thread, because the call blocks, and the instance runs in this process.
            call: Callable[..., Any] = self._agents[who].call
            answer = await asyncio.to_thread(call, what, **arguments)
        except ToolRefused as refused:
            if refused.code != step.get("refused"):
                raise
            self._teller.refused(str(refused))
            return refused.details
        except ConnectionError:
            if "cut_off" not in step:
                raise
            return None
        if "refused" in step or "cut_off" in step:
            raise WentWrong(f"{what} of {who} should have been refused.")
        return answer

    def _came_about(self, who: str, step: Step) -> bool:
        if wrong := self._wrong(step):
            self._teller.refused(wrong)
            return False
        if "say" in step:
            self._teller.say(who, self._resolved(step["say"]))
        for kind, value in step.get("show", {}).items():
            self._teller.show(kind, self._resolved(value))
        return True

    def _wrong(self, step: Step) -> str:
        """Return the first failed check of the step; empty if all pass."""
        if "only" in step and (count := len(self._at(step["only"]))) != 1:
            return f"There should be one {step['only']}, and there are {count}."
        for path, wanted in step.get("expect", {}).items():
            if (value := self._at(path)) != self._resolved(wanted):
                return f"{path} is {value!r}."
        for kind in ("contains", "lacks"):
            for path, wanted in step.get(kind, {}).items():
                texts = [value] if isinstance(value := self._at(path), str) else value
                if any(self._resolved(wanted) in text for text in texts) != (kind == "contains"):
                    return f"{path} is {value!r}."
        return ""

    def _resolved(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {key: self._resolved(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [self._resolved(entry) for entry in value]
        if not isinstance(value, str):
            return value
        if reference := _REFERENCE.fullmatch(value):
            return self._at(reference[1])
        return _WITHIN.sub(lambda within: str(self._at(within[1])), value)

    def _at(self, path: str) -> Any:
        try:
            return _part(self._saved, path.split("."))
        except (AttributeError, KeyError, IndexError, TypeError) as error:
            raise WentWrong(f"There is no {path}.") from error


def _part(value: Any, path: Sequence[str]) -> Any:
    if not path:
        return value
    first, *rest = path
    if first == "*":
        return [_part(entry, rest) for entry in value]
    if first == "#":
        return len(value)
    if hasattr(value, "_fields"):
        return _part(getattr(value, first), rest)
    return _part(value[int(first) if isinstance(value, list | tuple) else first], rest)


def read(path: Path) -> Sequence[Step]:
    """Read the steps of a story, each with one action."""
    document = load(path)
    steps = document.get("story") if isinstance(document, Mapping) else None
    if not isinstance(steps, list):
        raise BadInput("story: must be a list.", "Begin each entry with a dash.")
    for number, step in enumerate(steps):
        if not isinstance(step, Mapping) or len(set(step) - _ABOUT_A_CALL) != 1:
            raise BadInput(f"story[{number}]: must have one thing that is done.", "Split it.")
    return steps
