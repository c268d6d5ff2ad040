"""Requests for capabilities: an agent asks its boss by mail, who gives it or refuses.

The agent waits meanwhile with what it needs the capability for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from remit.authority import Action, holding
from remit.errors import BadInput, Conflict
from remit.model.agent import Agent
from remit.model.grant import parse_level, parse_resource
from remit.model.mail import LONGEST_SUBJECT, Message
from remit.model.text import LONGEST_REASON, clean_text
from remit.model.wait import WaitKind
from remit.services import cycles, grants, inbox, letters, lookup, mail, views, waits
from remit.services.command import Answer, Context, command
from remit.services.verbs import Added
from remit.store import mail as statements
from remit.store import waits as wait_statements


@command("mail.request_capability", Added("outcome", None))
def request_capability(
    ctx: Context, *, resource: object, level: object, why: object, outcome: str | None = None
) -> Answer:
    """Ask one's boss for a capability; the boss can give it by naming the message."""
    wanted = parse_resource(resource)
    level = parse_level(level, wanted.kind).word
    reason = clean_text(why, "why", longest=LONGEST_REASON)
    lookup.company_of_caller(ctx, None)
    me = lookup.agent_row(ctx, ctx.actor.id)
    if me is None:
        raise BadInput("Agents ask for capabilities.", "Grant it to the agent instead.")
    ctx.require(Action.QUESTION_ASK, on=f"agent:{me.id}", place=(me.id,))
    about = waits.own(lookup.outcome_anywhere(ctx, outcome), me.id) if outcome else None
    request = {"agent": me.id, "resource": str(wanted), "level": level}
    message = mail.post(
        ctx,
        to=f"agent:{me.boss_id}" if me.boss_id else "board",
        text=f"{me.name} asks for {level} on {wanted}.\n\n{reason}\n\n"
        "To give it: capability_grant with request set to this message's id. "
        "To refuse it: capability_refuse with the same, and why.\n",
        subject=f"Request: {level} on {wanted}"[:LONGEST_SUBJECT],
        request=json.dumps(request),
    )
    wait = waits.begin(
        ctx,
        WaitKind.CAPABILITY,
        message.id,
        me.id,
        to_agent=me.boss_id,
        to_user=me.boss_user_id,
        about=about,
    )
    return {**views.message(message), "request": request, **cycles.told(ctx, wait)}


@command("mail.grant_request")
def grant_request(ctx: Context, *, request: str) -> Answer:
    """Give what a message asked for, as it was asked for, once; and tell who asked."""
    message, asked = _open_request(ctx, request)
    receiver = lookup.agent(ctx, asked["agent"])
    waits.end(ctx, WaitKind.CAPABILITY, message.id)
    grant = grants.give_to(ctx, receiver, asked)
    _settle(ctx, message, {**asked, "grant": grant.id}, "granted")
    mail.post(
        ctx,
        to=f"agent:{receiver.id}",
        text=f"You may now {asked['level']} {asked['resource']}, as you asked.\n",
        subject=f"Granted: {asked['level']} on {asked['resource']}"[:LONGEST_SUBJECT],
        reply_to=message,
    )
    return views.grant(grant)


@command("mail.refuse_request")
def refuse_request(ctx: Context, *, request: str, why: object) -> Answer:
    """Refuse what a message asked for, and tell who asked; whoever could give it can."""
    reason = clean_text(why, "why", longest=LONGEST_REASON)
    message, asked = _open_request(ctx, request)
    asker = lookup.agent(ctx, asked["agent"])
    ctx.require(
        Action.AGENT_CONTROL, on=f"message:{message.id}", home=asker.id, place=ctx.place(asker.id)
    )
    _settle(ctx, message, {**asked, "refused": reason}, "refused")
    ctx.record("capability.refuse", f"message:{message.id}", {"agent": asker.id, "why": reason})
    mail.post(
        ctx,
        to=f"agent:{asker.id}",
        text=f"You will not get {asked['level']} on {asked['resource']}: {reason}\n",
        subject=f"Refused: {asked['level']} on {asked['resource']}"[:LONGEST_SUBJECT],
        reply_to=message,
    )
    return {**views.message(message), "request": {**asked, "refused": reason}}


def _open_request(ctx: Context, text: str) -> tuple[Message, dict[str, Any]]:
    message = letters.seen(ctx, text)
    if message.request is None:
        raise BadInput("That message asks for nothing.", "Name a capability request.")
    asked: dict[str, Any] = json.loads(message.request)
    _check_undecided(asked)
    return message, asked


def _check_undecided(asked: Mapping[str, Any]) -> None:
    if "grant" in asked:
        raise Conflict("It was granted already.", "Look at the agent's capabilities.")
    if "refused" in asked:
        raise Conflict("It was refused already.", "Grant the capability directly.")


def _settle(ctx: Context, message: Message, settled: dict[str, Any], word: str) -> None:
    if not ctx.tx.run(
        statements.SETTLE_REQUEST,
        message=message.id,
        seen_request=message.request,
        new_request=json.dumps(settled),
    ):
        raise Conflict("It was decided just now.", "Look at the agent's capabilities.")
    inbox.settle(ctx, message, word)
    waits.end(ctx, WaitKind.CAPABILITY, message.id)


def met(ctx: Context, holder: Agent) -> None:
    """An agent holds more than before; what it asked for may be among it."""
    for wait in ctx.tx.all(wait_statements.WAITS_OF, agent=holder.id):
        if wait.kind is not WaitKind.CAPABILITY:
            continue
        message = ctx.tx.one(statements.MESSAGE_ANYWHERE, message=wait.subject_id)
        assert message is not None
        asked = json.loads(message.request or "{}")
        resource = parse_resource(asked["resource"])
        level = parse_level(asked["level"], resource.kind)
        held = ctx.held(holder.id, resource)
        if holding(held, level, ctx.now).allowed:
            held_now = f"You hold {asked['level']} on {asked['resource']} now, as you had asked."
            waits.end_one(ctx, wait, held_now)
            _settle(ctx, message, {**asked, "grant": held[-1].id}, "granted")
