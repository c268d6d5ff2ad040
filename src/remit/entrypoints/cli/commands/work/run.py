"""`remit run`: runs of agents, their output, and cancelling them."""

import click

from remit.entrypoints.cli import following
from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.drawing import output, run_view
from remit.entrypoints.cli.following import watch_option
from remit.entrypoints.cli.options import LIMITED, Group, Session, pass_session

id_argument = click.argument("id_", metavar="ID|AGENT")


run = Group("run", help="Runs: agents at work.")


@run.command("list")
@click.option("--live", is_flag=True, help="Only those that have not ended.")
@click.option("--agent", metavar="NAME", help="Only of this agent.")
@click.option("--limit", **LIMITED | {"default": 50})
@watch_option
@pass_session
def list_(session: Session, live: bool, agent: str | None, limit: int, watch: bool) -> None:
    """List runs, the newest first."""
    target = session.under_company("runs")
    wanted = {"live": "true" if live else None, "agent": agent and session.agent_id(agent)}
    empty = "Nobody is running." if live else "Nobody has run yet."
    following.show(
        session,
        lambda: session.listed(target, limit, **wanted),
        lambda runs: run_view.draw_list(session, runs, empty),
        watch=watch,
    )


run.shows(
    *("runs", "ID|AGENT", run_view.run_id, run_view.draw),
    "Show one run, or the newest of an agent.",
)


@run.command()
@id_argument
@click.option("--no-follow", is_flag=True, help="Only what is there already.")
@click.option("--full", is_flag=True, help="Cut nothing: whole arguments and results.")
@click.option("--raw", is_flag=True, help="Output of its program, as it was printed.")
@pass_session
def tail(session: Session, id_: str, no_follow: bool, full: bool, raw: bool) -> None:
    """Show what a run says, calls and gets back, until it ends.

    `->` is a call, `<-` its result, `!!` a denial, `~~` a retry, `--` a turn of the model and `==`
    the end. With --json each of these is a line.
    """
    if raw and full:
        raise click.UsageError("--raw cuts nothing; leave --full out.")
    run = run_view.run_id(session, id_)
    run_view.tail(session, run, go_on=not no_follow, raw=raw, full=full)


@run.command()
@id_argument
@click.option("--reason", default="", help="Why; it is kept with the run.")
@pass_session
def cancel(session: Session, id_: str, reason: str) -> None:
    """End a run; what it took up is not given to another."""
    target = path("runs", run_view.run_id(session, id_), "cancel")
    answer = session.client.send("POST", target, {"reason": reason})
    session.show(answer, lambda one: output.say(f"The run is {one['status']}."))
