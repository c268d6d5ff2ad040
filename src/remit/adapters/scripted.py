"""An agent without a model: it executes the same script in each run."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from remit import threads
from remit.adapters.contract import Adapter, Check, Environment
from remit.adapters.reading import answered, mapping
from remit.adapters.running import RunContext, RunResult
from remit.adapters.settings import Config
from remit.model.execution import transcript
from remit.model.execution.transcript import Entry, EntryKind
from remit.model.text import plural
from remit.model.work.wish import NOTHING_DONE

if TYPE_CHECKING:
    from remit.testing import ScriptedAgent, ToolRefused


#: The answer to a person who wrote to an agent that has only a script, and an empty one.
NO_MODEL = (
    f"{NOTHING_DONE} To let me work, "
    "install Claude Code or Codex where Remit runs, give it a key, and choose it as my adapter: "
    "`remit agent set {name} adapterType=claude` (or codex, or llm). To see what is "
    "missing: `remit adapter test claude`."
)


class Step(Config):
    tool: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")] = Field(
        description="One of the tools that the agent has, such as mail_send."
    )
    arguments: dict[Annotated[str, Field(max_length=64)], Any] = Field(
        default_factory=dict,
        max_length=50,
        description="Its arguments, as a model would write them.",
    )


class ScriptedConfig(Config):
    script: list[Step] = Field(
        default_factory=list,
        max_length=200,
        description="The tools to call in each run, one after the other; the first refusal ends "
        "the run. []: the agent acknowledges its mail, and says to each person who wrote that it "
        "has no model.",
    )
    timeout_seconds: int = Field(
        default=60, ge=1, le=3600, description="A run that takes longer is stopped."
    )


class Scripted(Adapter):
    """Calls tools as a script says. For demonstrations and tests: it needs no model and no key."""

    type = "scripted"
    takes_tokens = False
    Config = ScriptedConfig
    background = True
    safety = ("A script acts with the agent's rights and checks nothing before it acts.",)
    examples = {  # noqa: RUF012  # read only
        "One that only reads its mail": {},
        "One that reports": {
            "script": [
                {"tool": "log_submit", "arguments": {"summary": "I was here."}},
                {"tool": "mail_send", "arguments": {"to": "agent:ceo", "body": "Done."}},
            ]
        },
    }

    def check(
        self, config: ScriptedConfig | None = None, environment: Environment | None = None
    ) -> Check:
        del config, environment  # everything it needs is part of Remit
        return Check(True, "It can be used.")

    async def run(self, context: RunContext) -> RunResult:
        if context.background:
            return RunResult(True, text=context.turn)  # a job has no tools
        over = threading.Event()
        try:
            return await threads.alone(_follow, context, over)
        finally:
            over.set()


def _follow(context: RunContext, over: threading.Event) -> RunResult:
    from remit.testing import ScriptedAgent, ToolRefused

    steps = [(step.tool, step.arguments) for step in context.config.script]
    tool = "mail_inbox"
    with ScriptedAgent(context.url, context.token) as agent:
        try:
            for tool, arguments in steps:
                if over.is_set():
                    return RunResult(False, reason="cancelled")
                context.tell(Entry(EntryKind.CALL, transcript.arguments(arguments), tool))
                answer = agent.call(tool, **arguments)
                context.tell(Entry(EntryKind.RESULT, transcript.arguments(answer), tool))
            tool = "mail_inbox"
            mail = agent.call(tool)["messages"]
            if not steps:
                _own_up(context, agent, mail)
            if mail:
                agent.call("mail_ack", ids=[message["id"] for message in mail])
        except ToolRefused as refusal:
            context.tell(_refused(tool, refusal))
            return RunResult(False, reason=refusal.code, error=str(refusal))
    return RunResult(True, text=f"{plural(len(steps), 'step')}, {plural(len(mail), 'message')}")


def _refused(tool: str, refusal: ToolRefused) -> Entry:
    if mapping(refusal.details.get("decision")).get("effect") == "deny":
        return Entry(EntryKind.DENIED, str(refusal), tool)
    return answered(tool, None, str(refusal), failed=True)


def _own_up(context: RunContext, agent: ScriptedAgent, mail: Sequence[Mapping[str, Any]]) -> None:
    """Answer each message of a person once, saying that nothing will result from it.

    Only people are answered: two agents of this kind would answer each other for ever.
    """
    from remit.testing import ToolRefused

    for message in mail:
        if not message["sender"].startswith("user:"):
            continue
        try:
            agent.call(
                "mail_send",
                to=message["sender"],
                subject=message["subject"],
                body=NO_MODEL.format(name=context.agent["name"]),
                reply_to=message["id"],
                idempotency_key=f"no-model-{message['id']}",
            )
        except ToolRefused as refusal:
            context.log(f"{message['sender']} is not answered: {refusal}")
