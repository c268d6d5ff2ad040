"""Reminding those who are awaited, and turning to the next above when that does not help.

An agent that is awaited and does not decide hears of it again at growing intervals; then who is
above it is awaited, at last the board. A person finds it in their list all the time, and hears
of it once more after a day.
"""

from __future__ import annotations

from remit.clock import DAY, Micros
from remit.model.decision import Decision, Effect
from remit.model.wait import Wait
from remit.services import passing_on, waits
from remit.services.command import Answer, Context, command, query
from remit.services.running import system_only
from remit.store import waits as statements

MOST_AT_ONCE = 100
_SYSTEM = Decision(Effect.ALLOW, "system", "Remit does this by itself.", "rule:system")


@query("reminding.companies")
def companies(ctx: Context) -> list[str]:
    """Companies in which somebody is to be reminded now; for Remit itself."""
    system_only(ctx)
    found = ctx.tx.all(statements.TO_REMIND, now=ctx.now, limit=MOST_AT_ONCE)
    return list(dict.fromkeys(wait.company_id for wait in found))


@command("reminding.remind")
def remind(ctx: Context, *, company: str) -> Answer:
    """Remind whoever is awaited in a company, each once for each interval."""
    system_only(ctx)
    ctx.enter(company)
    ctx.accept_rule(_SYSTEM)
    found = [
        wait
        for wait in ctx.tx.all(statements.TO_REMIND, now=ctx.now, limit=MOST_AT_ONCE)
        if wait.company_id == ctx.company
    ]
    for wait in found:
        if wait.awaited_agent_id is None:
            _remind_person(ctx, wait)
        elif wait.reminders + 1 < len(pauses := waits.reminders(ctx, wait.awaited_agent_id)):
            _remind_agent(ctx, wait, pauses)
        else:
            _turn_to_next_above(ctx, wait)
    ctx.record("wait.remind", f"company:{company}", {"waits": [wait.id for wait in found]}, _SYSTEM)
    return {"reminded": len(found)}


def _remind_agent(ctx: Context, wait: Wait, pauses: tuple[Micros, ...]) -> None:
    number = wait.reminders + 1
    _note(ctx, wait, number, ctx.now + pauses[number])
    passing_on.remind(ctx, wait, f"agent:{wait.awaited_agent_id}")


def _remind_person(ctx: Context, wait: Wait) -> None:
    """Once more, and then whoever else may decide."""
    to = f"user:{wait.awaited_user_id}" if wait.awaited_user_id else "board"
    if wait.reminders == 0:
        _note(ctx, wait, 1, ctx.now + DAY if wait.awaited_user_id else None)
    else:
        to = "board"
        waits.redirect(ctx, wait.kind, wait.subject_id, None)
        _note(ctx, wait, 1, None)
    passing_on.remind(ctx, wait, to)


def _turn_to_next_above(ctx: Context, wait: Wait) -> None:
    """The boss of who does not decide is awaited from now on, at last the board."""
    above = passing_on.next_above(ctx, wait)
    why = f"{waits.awaited(ctx, wait)} was reminded of it and did not decide."
    passing_on.pass_on(ctx, wait, above, why)
    if above is None:
        _note(ctx, wait, 1, None)


def _note(ctx: Context, wait: Wait, reminders: int, at: int | None) -> None:
    ctx.tx.run(statements.REMINDED, wait=wait.id, new_reminders=reminders, at=at)
