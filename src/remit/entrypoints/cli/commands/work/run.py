"""`remit run` and `remit job`: runs and background jobs of agents."""

from functools import partial

import click

from remit.entrypoints.cli import following
from remit.entrypoints.cli.drawing import cells, run_view
from remit.entrypoints.cli.following import watch_option
from remit.entrypoints.cli.options import LIMITED, Group, option
from remit.entrypoints.cli.parameters import AGENT, REFERENCES
from remit.entrypoints.cli.session import Session, View, path, picked

id_argument = click.argument("id_", metavar="ID|AGENT", type=REFERENCES["run"])


run = Group("run", help="Runs: agents at work.")


@run.command("list")
@option("--live", "Only those that have not ended.", flag_value="true")
@option("--agent NAME", "Only of this agent.", type=AGENT)
@click.option("--limit", **LIMITED | {"default": 50})
@watch_option
def list_(session: Session, /, limit: int, watch: bool, **wanted: str | None) -> None:
    """List runs, the newest first."""
    empty = "Nobody is running." if wanted["live"] else "Nobody has run yet."
    draw = partial(run_view.draw_list, session, empty=empty)
    following.show(session, draw, session.under_company("runs"), limit, watch=watch, **wanted)


run.shows(*(REFERENCES["run"], run_view.draw), "Show one run, or the newest of an agent.")


@run.command()
@id_argument
@option("--no-follow", "Print what is there and exit.")
@option("--full", "Show whole arguments and results.")
@option("--raw", "Output of its program, as it was printed.")
def tail(session: Session, id_: str, no_follow: bool, full: bool, raw: bool) -> None:
    """Show what a run says, calls and gets back, until it ends.

    `->` is a call, `<-` its result, `!!` a denial, `~~` a retry, `--` a turn of the model and `==`
    the end. With --json each of these is a line.
    """
    if raw and full:
        raise click.UsageError("--raw cuts nothing; leave --full out.")
    run_view.tail(session, id_, go_on=not no_follow, raw=raw, full=full)


@run.command()
@id_argument
@option("--reason TEXT", "Why; it is kept with the run.", default="")
def cancel(session: Session, id_: str, reason: str) -> None:
    """Cancel a run; the mail that it took up is not given to another run."""
    target = path("runs", id_, "cancel")
    session.change("POST", target, {"reason": reason}, tells="The run is {status}.")


job = Group("job", help="Background jobs of agents.")


def _took(session: Session, view: View) -> str:
    return run_view.took(session, view) if view["startedAt"] else ""


def job_id(session: Session, text: str) -> str:
    return picked(session, text, "job", "See `remit job list`.")


def _draw(session: Session, view: View) -> None:
    cells.fields(
        *(session, view, "id", "agent: {agentId:name}", "status", "error", "waits for: {waitsFor}"),
        *("message: {messageId}", "answer: {answerId}", "asked for: {createdAt:when}"),
        *("due: {dueAt:when}", "started: {startedAt:when}", "ended: {completedAt:when}"),
        *(("took", _took), "attempts", "adapter: {adapterType}", "worker"),
        *("tokens in: {tokensIn}", "tokens out: {tokensOut}", "from cache: {tokensCached}"),
        ("cost", run_view.cost),
    )


job.rows(
    *("list", "id: {id:short}", "agent: {agentId:known}", "status", "asked for: {createdAt:when}"),
    *(("took", _took), ("tokens", run_view.tokens)),
    ("why", lambda _, row: row["error"] or row["waitsFor"]),
    empty="There are no background jobs.",
)
job.shows(
    *(REFERENCES["job"], _draw),
    "Show one job; what was asked and answered is mail, see `remit read`.",
)
