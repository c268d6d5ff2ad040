"""Delivery of a run's final text: to the agent that it names, or back to the sender of the mail.

`@name` at the beginning delivers it to that agent, `@human` to the board. An agent with `autoReply`
answers every letter of its run with it. The rules of mail hold for both, and the hop limit of a
thread ends endless exchanges.
"""

import json
import re

from remit.errors import RemitError
from remit.model.execution.run import Run
from remit.model.messaging.mail import Message
from remit.model.organisation.agent import Agent
from remit.model.organisation.decision import Decision, Effect
from remit.model.organisation.principal import Principal
from remit.services.command import Context
from remit.services.messaging import mail, origins

_MENTION = re.compile(r"\A\s*@([A-Za-z0-9][A-Za-z0-9-]{0,63})[ \t]*[:,]?[ \t]*\n?")
_FINAL_WORDS = Decision(Effect.ALLOW, "self", "The run's own last words.", "rule:self")
HUMAN = "human"


def deliver(ctx: Context, agent: Agent, run: Run, text: str) -> None:
    """Send the final text of a run as mail, if it names a receiver or the agent replies
    automatically."""
    mention = _MENTION.match(text)
    body = text[mention.end() :].strip() if mention else text.strip()
    if not body:
        return
    taken = origins.taken_up(ctx, run)
    if mention is not None:
        name = mention[1]
        to = "board" if name.casefold() == HUMAN else f"agent:{name}"
        _send(ctx, agent, run, to, body, taken[-1] if taken else None)
    elif json.loads(agent.runtime_config).get("autoReply") is True:
        for message in taken:
            _send(ctx, agent, run, _sender(message), body, message)


def _sender(message: Message) -> str | None:
    if message.channel is not None:
        return message.channel
    if message.sender_agent_id is not None:
        return f"agent:{message.sender_agent_id}"
    return None if message.sender_user_id is None else f"user:{message.sender_user_id}"


def _send(
    ctx: Context, agent: Agent, run: Run, to: str | None, body: str, answered: Message | None
) -> None:
    if to is None:
        return  # Remit itself wrote it and reads no answers
    with ctx.acting_as(Principal.of(agent, run.id)):
        try:
            mail.post(ctx, to=to, text=body, reply_to=answered.id if answered else None)
        except RemitError as error:
            ctx.record(
                "run.undelivered",
                f"run:{run.id}",
                {"to": to, "why": error.sentence, "code": error.reason},
                _FINAL_WORDS,
            )
