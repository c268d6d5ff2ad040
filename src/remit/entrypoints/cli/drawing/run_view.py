"""Views of runs: a table, one run, and a log that is followed."""

import sys
from collections.abc import Iterator

from remit.clock import HOUR, MINUTE, SECOND, SystemClock, from_iso
from remit.entrypoints import cost_text
from remit.entrypoints.cli import following
from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.session import Session, View, path, pick
from remit.errors import NotFound
from remit.ids import is_id, looks_like_id, short
from remit.model.execution import transcript


def run_id(session: Session, text: str) -> str:
    """Resolve a run by its id or a part of it, or the newest run of an agent."""
    name = text.removeprefix("run:")
    if is_id(name):
        return name
    if looks_like_id(name) and not session.is_company_named:
        # The instance looks it up in the companies of the caller.
        return str(session.client.get(path("runs", name))["id"])
    target = session.under_company("runs")
    agent = session.agent_named(name)
    if agent is None:
        return str(pick(session.client.each(target), name, "run", "See `remit run list`.")["id"])
    newest = list(session.client.each(target, 1, agent=agent["id"]))
    if not newest:
        raise NotFound(f"{name} has not run yet.", f"`remit agent why-idle {name}` tells why.")
    return str(newest[0]["id"])


def draw_list(session: Session, runs: list[View], empty: str) -> None:
    cells.table(
        *(session, runs, "id: {id:short}", "agent: {agentId:known}", "status"),
        *("started: {startedAt:when}", ("took", took), ("tokens", tokens), ("cost", cost)),
        ("why", _why),
        empty=empty,
    )


def _why(_: Session, run: View) -> str:
    return "; ".join(filter(None, (run["error"] or run["why"], transcript.denials(run["denied"]))))


def draw(session: Session, run: View) -> None:
    cells.fields(
        *(session, run, "id", "agent: {agentId:name}", "status", "why"),
        *("started: {startedAt:when}", "ended: {completedAt:when}", ("took", took)),
        *("reason: {exitReason}", "error", ("denied", _denied), "mail: {envelopeIds:list}"),
        *("tokens in: {tokensIn}", "tokens out: {tokensOut}", "from cache: {tokensCached}"),
        *(("cost", cost), "context: {contextLength}", "session: {sessionId}"),
        *("adapter: {adapterType}", "worker", "accountable: {accountableUserId:known}"),
        *("log: {logBytes:size}", ("kept", _kept)),
    )
    if run["finalResponse"]:
        output.say("", *run["finalResponse"].splitlines())


def _denied(_: Session, run: View) -> str:
    return ", ".join(
        denial["tool"] if denial["count"] == 1 else f"{denial['tool']} ({denial['count']} times)"
        for denial in run["denied"]
    )


def _kept(_: Session, run: View) -> str | None:
    """Path of the run's kept workspace, and until when it is kept."""
    workspace = run.get("kept")
    if workspace is None:
        return None
    return f"{workspace['path']} until {output.when(workspace['until'])}"


def took(_: Session, run: View) -> str:
    """How long it took, or has taken so far."""
    ended = from_iso(run["completedAt"]) if run["completedAt"] else SystemClock().now()
    passed = max(0, ended - from_iso(run["startedAt"]))
    if passed < MINUTE:
        return f"{passed / SECOND:.1f} s"
    if passed < 2 * HOUR:
        return f"{passed // MINUTE} min"
    return f"{passed // HOUR} h {passed % HOUR // MINUTE} min"


def tokens(_: Session, run: View) -> str:
    total = run["tokensIn"] + run["tokensOut"]
    return str(total) if total else ""


def cost(_: Session, run: View) -> str:
    """Cost of a run or a job: marked where it is an estimate, and ? where nobody knows it."""
    return cost_text.cost_if_any(run)


def follow(session: Session, run: str, form: dict[str, str]) -> Iterator[View]:
    """Yield every part of a log, until the run ends."""
    from remit.entrypoints.cli.client import with_query

    target = with_query(path("runs", run, "log"), {"follow": "1", **form})
    return following.resumed(session.connect(session.token), target, "number")


def tail(session: Session, run: str, *, go_on: bool, raw: bool = False, full: bool = False) -> None:
    """Print a run's transcript and, with `go_on`, follow it; `raw` prints its program's output
    instead."""
    form = {} if raw else {"as": "transcript", "whole": "true" if full else "false"}
    printer = _Printer()
    where = path("runs", run, "log")
    parts = follow(session, run, form) if go_on else session.client.each(where, None, **form)
    hidden = False
    for part in parts:
        if session.as_json:
            print(output.as_json(part, one_line=True), flush=True)
        elif raw:
            printer.add(part["text"])
        else:
            printer.add(f"{part['shown']}\n")
            hidden = hidden or part["cut"]
    printer.end()
    if hidden:
        output.note(
            f"[…] is where something is left out; `remit run tail {short(run)} --full` has all."
        )
    if go_on and raw and not session.as_json:
        ended = session.client.get(path("runs", run))
        why = f": {ended['error']}" if ended["error"] else ""
        output.note(f"The run is {ended['status']}{why}.")


class _Printer:
    """Line buffer: text comes in pieces, and is printed in cleaned whole lines."""

    def __init__(self) -> None:
        self._rest = ""

    def add(self, text: str) -> None:
        *lines, self._rest = (self._rest + text).split("\n")
        output.say(*(line.removesuffix("\r") for line in lines))
        sys.stdout.flush()

    def end(self) -> None:
        if self._rest:
            output.say(self._rest)
            self._rest = ""
