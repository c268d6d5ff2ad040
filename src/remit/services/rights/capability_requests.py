"""Requests for capabilities: an agent asks its boss by mail, who grants or refuses it.

Meanwhile the agent's outcomes wait for which it needs the capability.
"""

import json
from typing import Annotated

from remit.authority import Action, holding
from remit.errors import BadInput, Conflict
from remit.model.messaging.mail import LONGEST_SUBJECT, Message
from remit.model.organisation.agent import Agent
from remit.model.organisation.grant import is_over_machine, parse_level, parse_resource
from remit.model.work.wait import WaitKind
from remit.services import lookup, shapes, views
from remit.services.command import Context, command
from remit.services.fields import AboutOutcome, Help, MessageRef, Reason, ResourceRef, Words
from remit.services.messaging import inbox, letters, mail
from remit.services.rights import grants
from remit.services.subjects import OUTCOME
from remit.services.surfaces import AsCommand, AsRoute, AsTool
from remit.services.verbs import Added
from remit.services.work import cycles, waits
from remit.store.messaging import mail as statements
from remit.store.work import waits as wait_statements


@command(
    "mail.request_capability",
    Added("outcome", None),
    AsTool("capability_request", spelled={"outcome": "outcome_id"}),
)
def request_capability(
    ctx: Context,
    *,
    resource: Annotated[ResourceRef, Help("Such as kb_file:<id>", model=True)],
    level: Annotated[str, Words(("read", "write", "use", "propose", "merge"))],
    why: Reason,
    outcome: AboutOutcome | None = None,
) -> shapes.SentRequestShape:
    """Ask your boss for a capability you were refused; your outcome waits for it."""
    wanted = parse_resource(resource)
    level = parse_level(level, wanted.kind).word
    lookup.company_of_caller(ctx, None)
    me = lookup.agent_row(ctx, ctx.actor.id)
    if me is None:
        raise BadInput("Agents ask for capabilities.", "Grant it to the agent instead.")
    ctx.require(Action.QUESTION_ASK, on=f"agent:{me.id}", place=(me.id,))
    about = waits.own(lookup.find(ctx, OUTCOME, outcome), me.id) if outcome else None
    request: shapes.CapabilityRequestShape = {
        "agent": me.id,
        "resource": str(wanted),
        "level": level,
    }
    # No agent gives the whole machine, so its boss is not asked for that.
    boss = None if is_over_machine(request["resource"]) else me.boss_id
    message = mail.post(
        ctx,
        to=f"agent:{boss}" if boss else "board",
        text=f"{me.name} asks for {level} on {wanted}.\n\n{why}\n\n"
        "To give it: capability_grant with request set to this message's id. "
        "To refuse it: capability_refuse with the same, and why.\n",
        subject=f"Request: {level} on {wanted}"[:LONGEST_SUBJECT],
        request=json.dumps(request),
    )
    wait = waits.begin_for_capability(ctx, message, me, about)
    return {**views.message(message), "request": request, **cycles.told(ctx, wait)}


@command(
    "mail.grant_request",
    AsRoute("POST /messages/{id}/grant", "grant_request", spelled={"request": "id"}),
)
def grant_request(ctx: Context, *, request: MessageRef) -> shapes.GrantShape:
    """Give what a message asked for, as it was asked for, once; and tell who asked."""
    message, wish = _open_request(ctx, request)
    receiver = lookup.agent(ctx, wish["agent"])
    waits.end(ctx, WaitKind.CAPABILITY, message.id)
    grant = grants.give_to(ctx, receiver, wish)
    _settle(ctx, message, {**wish, "grant": grant.id}, "granted")
    told = f"You may now {wish['level']} {wish['resource']}, as you asked."
    _tell(ctx, message, wish, "Granted", told)
    return views.grant(grant)


@command(
    "mail.refuse_request",
    AsTool("capability_refuse", "Refuse what a report asked for; it learns why.", offer="reports"),
    AsRoute("POST /messages/{id}/refuse", "refuse_request", spelled={"request": "id"}),
    AsCommand(
        "grant refuse",
        said="Refused; who asked is told why.",
        examples=('remit grant refuse 4b6f2d91a0c7 "The style is not yours to change."',),
    ),
)
def refuse_request(
    ctx: Context,
    *,
    request: Annotated[MessageRef, Help("Message that asks for it", model=True)],
    why: Reason,
) -> shapes.MessageShape:
    """Refuse what a message asks for, and say why."""
    message, wish = _open_request(ctx, request)
    asker = lookup.agent(ctx, wish["agent"])
    ctx.require(Action.AGENT_CONTROL, on=f"message:{message.id}", over=asker.id)
    _settle(ctx, message, {**wish, "refused": why}, "refused")
    ctx.record("capability.refuse", f"message:{message.id}", {"agent": asker.id, "why": why})
    told = f"You will not get {wish['level']} on {wish['resource']}: {why}"
    _tell(ctx, message, wish, "Refused", told)
    return {**views.message(message), "request": {**wish, "refused": why}}


def _tell(
    ctx: Context, message: Message, wish: shapes.CapabilityRequestShape, verdict: str, text: str
) -> None:
    """Mail the verdict on a request to the agent that asked."""
    subject = f"{verdict}: {wish['level']} on {wish['resource']}"[:LONGEST_SUBJECT]
    to = f"agent:{wish['agent']}"
    mail.post(ctx, to=to, text=f"{text}\n", subject=subject, reply_to=message)


def _open_request(ctx: Context, text: str) -> tuple[Message, shapes.CapabilityRequestShape]:
    message = letters.require_reading(ctx, lookup.find(ctx, letters.MESSAGE, text))
    if message.request is None:
        raise BadInput("That message asks for nothing.", "Name a capability request.")
    wish: shapes.CapabilityRequestShape = json.loads(message.request)
    if "grant" in wish:
        raise Conflict("It was granted already.", "Look at the agent's capabilities.")
    if "refused" in wish:
        raise Conflict("It was refused already.", "Grant the capability directly.")
    return message, wish


def _settle(
    ctx: Context, message: Message, settled: shapes.CapabilityRequestShape, word: str
) -> None:
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
    """Settle the open requests of an agent that a new grant satisfies."""
    for wait in ctx.tx.all(wait_statements.WAITS_OF, agent=holder.id):
        if wait.kind is not WaitKind.CAPABILITY:
            continue
        message = ctx.tx.existing(statements.MESSAGE_ANYWHERE, message=wait.subject_id)
        wish: shapes.CapabilityRequestShape = json.loads(message.request or "{}")
        resource = parse_resource(wish["resource"])
        level = parse_level(wish["level"], resource.kind)
        held = ctx.held(holder.id, resource)
        if holding(held, level, ctx.now).allowed:
            held_now = f"You hold {wish['level']} on {wish['resource']} now, as you had asked."
            waits.end_one(ctx, wait, held_now)
            _settle(ctx, message, {**wish, "grant": held[-1].id}, "granted")
