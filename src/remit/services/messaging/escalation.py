"""Reminders of waits, and escalation where these do not help.

An awaited agent that does not decide is reminded at growing intervals. If it still does not, is
gone, or is no longer the asker's boss, the next above is awaited, at last the board. A person has
it in their list all the time, and is reminded once, after a day.
"""

from contextlib import suppress

from remit.clock import DAY, Micros
from remit.errors import Conflict, NotFound
from remit.ids import AgentId, ApprovalId, MessageId, QuestionId, UserId
from remit.model.messaging.mail import heading
from remit.model.messaging.question import QuestionStatus
from remit.model.organisation.agent import Agent
from remit.model.organisation.decision import BY_REMIT
from remit.model.organisation.principal import SYSTEM
from remit.model.work.wait import Wait, WaitKind
from remit.services import lookup, shapes
from remit.services.command import FOR_REMIT, Context, command
from remit.services.governance import approval_engine
from remit.services.messaging import answering, inbox, mail
from remit.services.organisation import tree
from remit.services.queues import companies_due, due_here
from remit.services.work import waits
from remit.store.messaging import mail as statements
from remit.store.organisation import governance
from remit.store.work import files as file_statements
from remit.store.work import waits as wait_statements


def next_above(ctx: Context, wait: Wait) -> AgentId | None:
    """Return the agent that is awaited next if the present one does not decide; None for the board.

    A capability is given by the asker's boss or by people, and a reply comes from the addressee, so
    these are never passed to an agent further up.
    """
    if wait.kind in (WaitKind.CAPABILITY, WaitKind.REPLY):
        return None
    awaited = lookup.agent_row(ctx, wait.awaited_agent_id or "")
    above = tree.living_boss(ctx, awaited) if awaited else None
    return above if above != wait.agent_id else None


def pass_on(
    ctx: Context, wait: Wait, to: AgentId | None, why: str, *, user: UserId | None = None
) -> None:
    """Make an agent, a person or the board the awaited one, and tell them."""
    waits.redirect(ctx, wait.kind, wait.subject_id, to, user)
    if wait.kind is WaitKind.QUESTION:
        _pass_question(ctx, QuestionId(wait.subject_id), to, why)
        return
    if wait.kind is WaitKind.APPROVAL:
        ctx.tx.run(governance.ROUTE_APPROVAL, approval=ApprovalId(wait.subject_id), new_agent=to)
    if wait.kind is WaitKind.CAPABILITY and to is not None:
        _hand_on(ctx, MessageId(wait.subject_id), to)
    address = f"agent:{to}" if to else f"user:{user}" if user else "board"
    approval_engine.tell(
        ctx,
        address,
        f"Still awaited: {waits.subject(ctx, wait)}",
        f"{waits.waiting_for_you(ctx, wait)} {why}",
        about=waits.matter(wait.kind, wait.subject_id),
    )


def _remind(ctx: Context, wait: Wait, address: str) -> None:
    """Remind the awaited one. An agent answers a question by a reply to this letter; a person finds
    the question in their list."""
    is_question = wait.kind is WaitKind.QUESTION and address.startswith("agent:")
    approval_engine.tell(
        ctx,
        address,
        f"Still awaited: {waits.subject(ctx, wait)}",
        waits.waiting_for_you(ctx, wait),
        question=QuestionId(wait.subject_id) if is_question else None,
        about=waits.matter(wait.kind, wait.subject_id),
    )


def receiver_gone(ctx: Context, agent: AgentId) -> None:
    """Escalate the waits for an agent that is gone: waits for its replies end, others pass to the
    next above."""
    gone = lookup.known_agent(ctx, agent)
    for wait in ctx.tx.all(wait_statements.AWAITED_OF, agent=agent):
        if wait.kind is WaitKind.REPLY:
            no_reply = f"Nobody will reply to your message (message:{wait.subject_id})"
            waits.end_one(ctx, wait, f"{no_reply}: {gone.name} works here no more. Go on without.")
        elif wait.kind is not WaitKind.APPROVAL:  # approvals are routed again by their own module
            why = f"{gone.name}, who was to decide, works here no more."
            pass_on(ctx, wait, _living_above(ctx, wait, gone), why)


def boss_changed(ctx: Context, agent: str, before: AgentId | None) -> None:
    """Pass what an agent raised with its former boss on to its present one."""
    moved = lookup.agent_row(ctx, agent)
    if moved is None or before is None:
        return
    for wait in waits.of_agent(ctx, agent):
        if wait.awaited_agent_id != before or wait.kind is WaitKind.REPLY:
            continue
        if wait.kind is WaitKind.APPROVAL:
            # An approval stays pending; it is routed to the new boss.
            approval = ctx.tx.existing(governance.APPROVAL_ANYWHERE, approval=wait.subject_id)
            approval_engine.route_again(ctx, approval)
            continue
        why = f"You are the boss of {moved.name} now."
        pass_on(ctx, wait, moved.boss_id, why, user=moved.boss_user_id)


def _living_above(ctx: Context, wait: Wait, gone: Agent) -> AgentId | None:
    if wait.kind is WaitKind.CAPABILITY:
        asker = lookup.agent_row(ctx, wait.agent_id)
        return asker.boss_id if asker and asker.boss_id != gone.id else None
    above = tree.living_boss(ctx, gone)
    return above if above != wait.agent_id else None


def _pass_question(ctx: Context, question_id: QuestionId, to: AgentId | None, why: str) -> None:
    """Pass a question on by a new letter, and settle the earlier letters."""
    question = ctx.tx.one(statements.QUESTION_ANYWHERE, question=question_id)
    if question is None or question.status is not QuestionStatus.OPEN:
        return
    first = answering.letter_of(ctx, question)
    answering.settle_letters(ctx, question, "it was passed on")
    ctx.tx.run(statements.PASS_ON, question=question.id, new_agent=to)
    asker = lookup.known_agent(ctx, question.agent_id).name
    how = f"{why} Answer by replying to this message, to agent:{asker}."
    with ctx.acting_as(SYSTEM):
        with suppress(NotFound, Conflict):
            mail.post(
                ctx,
                to=f"agent:{to}" if to else "board",
                subject=heading("Question", question.text),
                text=f"{asker} asks:\n\n{answering.as_letter(question, how)}",
                question=question.id,
                origin=first.origin_id if first is not None else None,
            )
        ctx.record("question.pass_on", f"question:{question.id}", {"to": to or "board", "why": why})


def _hand_on(ctx: Context, request: MessageId, to: AgentId) -> None:
    """Deliver a request for a capability to another agent, so that it is granted or refused by its
    id."""
    message = ctx.tx.existing(statements.MESSAGE_ANYWHERE, message=request)
    inbox.settle(ctx, message, "it was passed on")
    # The body of a message is never deleted.
    body = ctx.tx.existing(file_statements.FILE, file=message.body_file_id)
    inbox.deliver(ctx, message, ctx.now, agent=to, files=(body,))


# ── reminders ───────────────────────────────────────────────────────────────────────────────────

companies = companies_due("reminding.companies", wait_statements.TO_REMIND)


@command("reminding.remind", FOR_REMIT)
def remind(ctx: Context, *, company: str) -> shapes.RemindedShape:
    """Remind the awaited agents and people of a company whose interval has passed, once each."""
    ctx.enter(company)
    ctx.allow_by_rule(BY_REMIT)
    due = due_here(ctx, wait_statements.TO_REMIND)
    for wait in due:
        if wait.awaited_agent_id is None:
            _remind_person(ctx, wait)
        elif wait.reminders + 1 < len(pauses := waits.reminders(ctx, wait.awaited_agent_id)):
            _remind_agent(ctx, wait, pauses)
        else:
            _turn_to_next_above(ctx, wait)
    ctx.record("wait.remind", f"company:{company}", {"waits": [wait.id for wait in due]}, BY_REMIT)
    return {"reminded": len(due)}


def _remind_agent(ctx: Context, wait: Wait, pauses: tuple[Micros, ...]) -> None:
    number = wait.reminders + 1
    _note(ctx, wait, number, ctx.now + pauses[number])
    _remind(ctx, wait, f"agent:{wait.awaited_agent_id}")


def _remind_person(ctx: Context, wait: Wait) -> None:
    """Remind a person once; after another interval, the whole board."""
    to = f"user:{wait.awaited_user_id}" if wait.awaited_user_id else "board"
    if wait.reminders == 0:
        _note(ctx, wait, 1, ctx.now + DAY if wait.awaited_user_id else None)
    else:
        to = "board"
        waits.redirect(ctx, wait.kind, wait.subject_id, None)
        _note(ctx, wait, 1, None)
    _remind(ctx, wait, to)


def _turn_to_next_above(ctx: Context, wait: Wait) -> None:
    """Pass a wait on to the next above, at last the board."""
    above = next_above(ctx, wait)
    why = f"{waits.awaited(ctx, wait)} was reminded of it and did not decide."
    pass_on(ctx, wait, above, why)
    if above is None:
        _note(ctx, wait, 1, None)


def _note(ctx: Context, wait: Wait, reminders: int, at: int | None) -> None:
    ctx.tx.run(wait_statements.REMINDED, wait=wait.id, new_reminders=reminders, at=at)
