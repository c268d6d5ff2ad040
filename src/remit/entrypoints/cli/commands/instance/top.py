"""`remit top`: who is at work and on what, why others are idle, and what today has cost."""

import sys
import time
from collections.abc import Iterator
from typing import Any

import click

from remit.clock import SystemClock, to_iso
from remit.entrypoints import budget_text, cost_text
from remit.entrypoints.cli.commands.company import account, halt
from remit.entrypoints.cli.drawing import output, run_view
from remit.entrypoints.cli.options import Command, option
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import RemitError
from remit.model.execution.cost import Cost
from remit.model.text import plural

#: Most idle agents whose reason is fetched at each refresh.
MOST_IDLE = 30
MOST_RUNS = 200
MOST_EVENTS = 200
MOST_BUDGETS = 5


@click.command(
    cls=Command,
    examples=(
        "remit top",
        "remit top --once",
    ),
)
@option("--once", "Print one snapshot and exit.")
@option(
    "--every",
    "Seconds between refreshes.",
    type=click.FloatRange(min=0.2, max=3600),
    default=2.0,
    show_default=True,
)
def top(session: Session, once: bool, every: float) -> None:
    """Watch who is at work, and why others are not.

    It refreshes until Ctrl-C. Output that is not a terminal gets one snapshot.
    """
    if session.as_json:
        print(output.as_json(look(session)))
    elif once or not sys.stdout.isatty():
        _print(look(session))
    else:
        _watch(session, every)


def look(session: Session) -> View:
    """Fetch everything that `top` shows."""
    client = session.client
    agents = {agent["id"]: agent for agent in client.each(session.under_company("agents"))}
    live = list(client.each(session.under_company("runs"), MOST_RUNS, live="true"))
    doing = _doing(session) if live else {}
    busy = {run["agentId"] for run in live}
    idle = [agent for agent in agents.values() if agent["id"] not in busy]
    return {
        "company": session.company["name"],
        "halts": session.visible("halts"),
        "held": account.held(session),
        "agents": len(agents),
        "running": [
            {
                "agent": agents[run["agentId"]]["name"] if run["agentId"] in agents else "",
                "agentId": run["agentId"],
                "runId": run["id"],
                "why": run["why"],
                "doing": doing.get(run["id"], ""),
                "took": run_view.took(session, run),
                "tokens": run["tokensIn"] + run["tokensOut"],
                "costUsd": run["costUsd"],
                "costEstimated": run["costEstimated"],
                "tokensUnpriced": run["tokensUnpriced"],
            }
            for run in live
        ],
        "idle": [_idle(session, agent) for agent in idle[:MOST_IDLE]],
        "idleNotShown": max(0, len(idle) - MOST_IDLE),
        "today": _today(session),
        "budgets": _budgets(session),
        "limits": _limits(session),
    }


def _idle(session: Session, agent: View) -> View:
    try:
        answer = session.client.get(path("agents", agent["id"], "why-idle"))
    except RemitError as error:
        answer = {"reason": "unknown", "sentence": error.sentence}
    return {
        "agent": agent["name"],
        "agentId": agent["id"],
        "reason": answer["reason"],
        "sentence": answer["sentence"],
    }


def _doing(session: Session) -> dict[str, str]:
    """The newest event of each run; none if the caller may not read the record."""
    last: dict[str, str] = {}
    for event in session.visible("events", most=MOST_EVENTS):
        if event["runId"]:
            doing = f"{event['action']} {output.shortened(event['resource'])}"
            last.setdefault(event["runId"], doing)
    return last


def _today(session: Session) -> View:
    """Usage of the runs of this day (UTC), so far."""
    midnight = to_iso(SystemClock().now())[:10]
    sums: dict[str, Any] = {"runs": 0, "failed": 0, "tokensIn": 0, "tokensOut": 0}
    cost = Cost()
    for run in session.client.each(session.under_company("runs")):
        if run["startedAt"] < midnight:
            break
        sums["runs"] += 1
        sums["failed"] += run["status"] in ("failed", "lost") and run["exitReason"] != "stopped"
        for key in ("tokensIn", "tokensOut"):
            sums[key] += run[key]
        micros = round((run["costUsd"] or 0) * 1_000_000)
        cost += Cost(micros, run["costEstimated"], run["tokensUnpriced"])
    return {
        **sums,
        "costUsd": cost.usd,
        "costEstimated": cost.estimated,
        "tokensUnpriced": cost.unpriced,
    }


def _budgets(session: Session) -> list[View]:
    """The rest of each topmost budget this month: of agents whose boss has none."""
    rows = session.visible("budgets", most=MOST_RUNS)
    limited = {row["agentId"] for row in rows if budget_text.short(row)}
    return [
        {"agent": row["name"], "agentId": row["agentId"], "left": budget_text.short(row)}
        for row in rows
        if row["agentId"] in limited and row["reportsTo"] not in limited
    ]


def _limits(session: Session) -> list[View]:
    """Arrivals limits that the caller may raise."""
    try:
        rows = list(session.client.each(path("needs-you"), company=session.company["id"]))
    except RemitError:
        return []
    return [
        {"title": row["title"], "command": row["next"], "agentId": row["agentId"]}
        for row in rows
        if row["kind"] == "limit"
    ]


def _limit_line(limit: View) -> str:
    return f"LIMIT: {limit['title']} `{limit['command']}` raises it."


def _summary(view: View) -> str:
    today = view["today"]
    cost = cost_text.cost(today)
    left = "; ".join(
        f"{budget['agent']} {budget['left']}" for budget in view["budgets"][:MOST_BUDGETS]
    )
    everybody = plural(view["agents"], "agent")
    return (
        f"{view['company']}: {len(view['running'])} of {everybody} running. "
        f"Today {plural(today['runs'], 'run')}, {today['failed']} failed, "
        f"{today['tokensIn']} tokens in, {today['tokensOut']} out, {cost}."
        + (f" Left this month: {left}." if left else "")
    )


def _notices(view: View) -> list[str]:
    """Causes that keep many from working: halts, closed accounts, and reached limits."""
    return [
        *map(halt.line, view["halts"]),
        *map(account.line, view["held"]),
        *map(_limit_line, view["limits"]),
    ]


_RUNNING = ("running", "for", "tokens", "cost", "doing", "why")
_IDLE = ("idle", "reason", "why")


Rows = list[tuple[str, ...]]


def _rows(view: View) -> tuple[Rows, Rows]:
    """The cells of those who run, and of those who are idle."""
    running: Rows = [
        (
            *(run["agent"], run["took"], str(run["tokens"] or ""), cost_text.cost_if_any(run)),
            *(run["doing"], run["why"]),
        )
        for run in view["running"]
    ]
    idle: Rows = [
        (agent["agent"], agent["reason"].replace("_", " "), output.timed(agent["sentence"]))
        for agent in view["idle"]
    ]
    return running, idle


def _print(view: View) -> None:
    running, idle = _rows(view)
    output.say(*_head(view), "")
    output.table(_RUNNING, running, empty="Nobody is running.")
    if idle:
        output.say("")
        output.table(_IDLE, idle, empty="")
    if view["idleNotShown"]:
        output.say(f"and {view['idleNotShown']} more")


def _watch(session: Session, every: float) -> None:
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    with Live(console=console, screen=True, auto_refresh=False) as screen:
        try:
            while True:
                began = time.monotonic()
                try:
                    drawn = _drawn(look(session), console.height)
                except RemitError as error:
                    drawn = _trouble(error)
                screen.update(drawn, refresh=True)
                time.sleep(max(0.1, every - (time.monotonic() - began)))
        except KeyboardInterrupt:
            return


def _trouble(error: RemitError) -> Any:
    from rich.text import Text

    return Text(output.clean(f"{error.sentence} {error.step} Trying again."))


def _drawn(view: View, height: int) -> Any:
    """The screen: as many lines as it has, those about who is at work first."""
    from rich.text import Text

    running, idle = _rows(view)
    lines = [*_head(view), ""]
    lines += _table(_RUNNING, running) if running else ["Nobody is running."]
    if idle:
        lines += ["", *_table(_IDLE, idle)]
    if len(lines) > height:
        lines[height - 1 :] = ["…"]
    return Text.from_ansi("\n".join(lines))


def _head(view: View) -> list[str]:
    """The summary, and what keeps many from working, in lines of the terminal."""
    texts = [output.clean(text) for text in (_summary(view), *_notices(view))]
    return [line for text in texts for line in output.broken(text)]


def _table(columns: tuple[str, ...], rows: Rows) -> Iterator[str]:
    return output.table_lines(columns, [[output.clean(cell) for cell in row] for row in rows])
