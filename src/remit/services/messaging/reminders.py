"""Reminders of waits, and escalation where these do not help.

An awaited agent that does not decide is reminded at growing intervals; then the next above is
awaited, at last the board. A person has it in their list all the time, and is reminded once, after
a day.
"""

from remit.clock import DAY, Micros
from remit.model.organisation.decision import BY_REMIT
from remit.model.work.wait import Wait
from remit.services import shapes
from remit.services.command import FOR_REMIT, Context, command
from remit.services.messaging import escalation
from remit.services.queues import companies_due, due_here
from remit.services.work import waits
from remit.store.work import waits as statements

companies = companies_due("reminding.companies", statements.TO_REMIND)


@command("reminding.remind", FOR_REMIT)
def remind(ctx: Context, *, company: str) -> shapes.RemindedShape:
    """Remind the awaited agents and people of a company whose interval has passed, once each."""
    ctx.enter(company)
    ctx.allow_by_rule(BY_REMIT)
    due = due_here(ctx, statements.TO_REMIND)
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
    escalation.remind(ctx, wait, f"agent:{wait.awaited_agent_id}")


def _remind_person(ctx: Context, wait: Wait) -> None:
    """Remind a person once; after another interval, the whole board."""
    to = f"user:{wait.awaited_user_id}" if wait.awaited_user_id else "board"
    if wait.reminders == 0:
        _note(ctx, wait, 1, ctx.now + DAY if wait.awaited_user_id else None)
    else:
        to = "board"
        waits.redirect(ctx, wait.kind, wait.subject_id, None)
        _note(ctx, wait, 1, None)
    escalation.remind(ctx, wait, to)


def _turn_to_next_above(ctx: Context, wait: Wait) -> None:
    """Pass a wait on to the next above, at last the board."""
    above = escalation.next_above(ctx, wait)
    why = f"{waits.awaited(ctx, wait)} was reminded of it and did not decide."
    escalation.pass_on(ctx, wait, above, why)
    if above is None:
        _note(ctx, wait, 1, None)


def _note(ctx: Context, wait: Wait, reminders: int, at: int | None) -> None:
    ctx.tx.run(statements.REMINDED, wait=wait.id, new_reminders=reminders, at=at)
