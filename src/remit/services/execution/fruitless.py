"""Runs that were cut off without an effect: how many in a row, and who is told.

A loop with changing arguments reads, is refused and takes its mail up again and again, so it is
known by what it achieves. Files that its program changed count as well, unless the run before
changed them in the same way, but only for a few runs in a row: the work has to reach others some
time.

The second run in a row that achieved nothing is followed by the pauses of an agent that failed many
times. Its boss and whoever wished for the work are told, once.
"""

import json
from collections.abc import Sequence

from remit.model.execution.fault import Fault, says_nothing
from remit.model.execution.run import FAILURES_TOLD, Run
from remit.model.messaging.turn import quoted
from remit.model.organisation.agent import Agent
from remit.model.text import plural
from remit.model.work.wish import Wish, WishStatus
from remit.services import lookup
from remit.services.command import Context
from remit.services.governance import approval_engine
from remit.services.messaging import origins
from remit.services.spending import budgets
from remit.store.execution import runs as statements
from remit.store.messaging import mail as mail_statements
from remit.store.work import wishes as wish_statements

#: Faults of runs that were ended because they took too much.
_TOO_MUCH = frozenset({Fault.TURNS, Fault.CONTEXT, Fault.REPETITION})
#: From this number on, runs in a row without an effect are a sign of a loop.
_A_LOOP = 2
#: Most runs in a row that get on by changed files alone.
MOST_BY_FILES = 5
#: Most runs of an agent that are looked at.
_MOST_RUNS = 20
#: Longest quotation of a run's own error, in characters.
_QUOTED = 500
_TRIED_AGAIN = (
    "It is tried again at growing intervals of up to an hour, and when something new comes."
)


def has_effect(ctx: Context, run: Run) -> bool:
    """Return whether a run did something that others could notice."""
    return bool(ctx.tx.one(statements.EFFECTS_OF, run=run.id, agent=run.agent_id))


def was_cut(run: Run) -> bool:
    """Return whether a limit ended a run: its turns, context, calls or budget."""
    return run.fault in _TOO_MUCH or (run.fault == Fault.AGENT and run.exit_reason == budgets.OVER)


def in_a_row(ctx: Context, agent: str) -> int:
    """Return how many of an agent's last runs were cut off and achieved nothing."""
    row = _without_effect(ctx, agent)
    by_files = (
        number
        for number, run in enumerate(row)
        if _is_new(run.changed_files, before=row[number + 1 :])
    )
    return next(by_files, len(row))


def got_on_with_files(ctx: Context, run: Run, changed_files: str | None) -> bool:
    """Return whether the files that an ending run changed are progress."""
    before = [other for other in _without_effect(ctx, run.agent_id) if other.id != run.id]
    return _is_new(changed_files, before=before)


def _is_new(changed_files: str | None, *, before: Sequence[Run]) -> bool:
    """Return whether changed files are progress after these runs without an effect, the newest
    first."""
    if changed_files is None or len(before) >= MOST_BY_FILES:
        return False
    return not before or before[0].changed_files != changed_files


def _without_effect(ctx: Context, agent: str) -> list[Run]:
    """Return the last runs of an agent, the newest first, that were cut off without an effect. Runs
    that were stopped, or that a closed account ended, neither count nor end the row."""
    row = []
    for run in ctx.tx.all(statements.NEWEST_OF_AGENT, agent=agent, limit=_MOST_RUNS):
        if run.is_live or (run.fault is not None and says_nothing(Fault(run.fault))):
            continue
        if not was_cut(run) or has_effect(ctx, run):
            break
        row.append(run)
    return row


def as_failures(runs: int, failures: int) -> int:
    """Return the failures in a row that so many fruitless runs count as, after some failures: the
    second counts as many, so that the pause after it is minutes long."""
    return max(failures + 1, FAILURES_TOLD) if runs >= _A_LOOP else failures + 1


def wishes_behind(ctx: Context, run: Run) -> list[Wish]:
    """Return the open wishes that a run was about, by its mail and by its outcomes."""
    letters = origins.of_letters(ctx, run)
    for outcome in json.loads(run.outcome_ids):
        letters += ctx.tx.all(wish_statements.ORIGINS_BEHIND, outcome=outcome)
    wishes = (ctx.tx.one(wish_statements.WISH, message=letter) for letter in dict.fromkeys(letters))
    return [wish for wish in wishes if wish is not None and wish.status is WishStatus.OPEN]


def next_step(ctx: Context, run: Run) -> str:
    """Return the commands for a run without an effect: look at it, then end what it is about."""
    look = f"remit run tail {run.id}"
    if wishes := wishes_behind(ctx, run):
        return f"{look}, then remit cancel {wishes[0].message_id}"
    return f"{look}, then remit agent pause {lookup.name_of(ctx, run.agent_id)}"


def tell_boss(ctx: Context, agent: Agent, run: Run, runs: int, boss: str) -> None:
    """Tell the boss of an agent whose runs have no effect."""
    if agent.boss_id is None:
        step = f"To see what it does, and to end it: {next_step(ctx, run)}."
    else:
        step = "Change or close what it works on. A letter to it starts it at once."
    text = (
        f"{plural(runs, 'run')} in a row of {agent.name} took too much and had no effect, the last "
        f"one with {_in_its_words(run)} {_TRIED_AGAIN}\n\n{step}"
    )
    approval_engine.tell(ctx, boss, f"{agent.name} gets nothing done", text)


def tell_wishers(ctx: Context, agent: Agent, run: Run, boss: str) -> None:
    """Tell the people whose wishes a run was about that the agent could not do it so far, except
    its boss, who is told anyway."""
    told = {boss}
    for wish in wishes_behind(ctx, run):
        to = f"user:{wish.user_id}"
        if to in told:
            continue
        told.add(to)
        letter = ctx.tx.existing(mail_statements.MESSAGE_ANYWHERE, message=wish.message_id)
        subject = f": {letter.subject}" if letter.subject else ""
        text = (
            f"{agent.name} could not do what you asked for (message:{letter.id}): its last run "
            f"ended with {_in_its_words(run)} {_TRIED_AGAIN}\n\n"
            f"`remit read {letter.id}` shows what became of it; `remit cancel {letter.id}` takes "
            "it back."
        )
        approval_engine.tell(
            ctx, to, f"{agent.name} could not do it{subject}", text, origin=letter.id
        )


def _in_its_words(run: Run) -> str:
    error = (run.error or run.exit_reason or run.status.value).removesuffix(".")
    return f"these words, which are its program's and not Remit's: {quoted(error, _QUOTED)}."
