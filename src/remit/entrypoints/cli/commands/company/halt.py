"""`remit stop` and `remit go`: halt the company or a subtree, and let it go on."""

from typing import Any

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import AGENT, Command, option
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import RemitError
from remit.model.text import plural


@click.command(cls=Command)
@click.argument("agent", required=False, type=AGENT)
@option("--note, --reason TEXT", "Why, for everybody who looks.", field="note")
def stop(session: Session, agent: str | None, note: str | None) -> None:
    """Halt the company, or AGENT and everybody below it.

    Runs end and nothing starts until `remit go`. Mail is kept, and the instance runs on;
    `remit down` stops the instance.
    """
    target, body = _reach(session, agent, "stop")
    answer = session.client.send("POST", target, {"note": note, **body} if note else body)

    def draw(halt: View) -> None:
        what = _what(session, halt)
        if halt["already"]:
            output.say(
                f"{what} stopped already, by {halt['byName']} at {output.when(halt['since'])}."
            )
        else:
            ended = plural(halt["runsEnded"], "run")
            output.say(f"{what} stopped; {ended} ended. Mail is kept, and the instance runs on.")
        output.say(f"`{go_command(halt)}` lets it go on.")

    session.show(answer, draw)


@click.command(cls=Command)
@click.argument("agent", required=False, type=AGENT)
def go(session: Session, agent: str | None) -> None:
    """Lift the halt of the company, or of AGENT and everybody below it.

    Only that halt is removed: one of the company and one of a subtree are lifted one by one.
    """
    target, body = _reach(session, agent, "go")
    answer = session.client.send("POST", target, body or None)

    def draw(halt: View) -> None:
        output.say(f"{halt['agent'] or session.company['name']} goes on.")
        for other in halt["left"]:
            output.say(line(other))

    session.show(answer, draw)


def _reach(session: Session, agent: str | None, verb: str) -> tuple[str, dict[str, Any]]:
    """Return the path and the body of a request about the company, or an agent and those below."""
    if agent is None:
        return session.under_company(verb), {}
    return path("agents", agent, verb), {"subtree": True}


def _what(session: Session, halt: View) -> str:
    if halt["agentId"] is None:
        return f"{session.company['name']} is"
    return f"{halt['agent']} and everybody below it are"


def line(halt: View) -> str:
    """A halt in one line: its reach, by whom, since when, why, and the command that lifts it."""
    if halt.get("awaitsAcceptance"):
        return (
            f"The company came from outside, imported by {halt['byName']} "
            f"{output.when(halt['since'])}; nothing of it starts until it is accepted: "
            "`remit company accept`."
        )
    what = "The company is" if halt["agentId"] is None else f"{halt['agent']} and below are"
    because = f" ({halt['note']})" if halt["note"] else ""
    return (
        f"{what} stopped by {halt['byName']} since {output.when(halt['since'])}{because}; "
        f"`{go_command(halt)}` lets it go on."
    )


def go_command(halt: View) -> str:
    if halt.get("awaitsAcceptance"):
        return "remit company accept"
    return "remit go" if halt["agentId"] is None else f"remit go {halt['agent']}"


def listed(session: Session, company: str) -> list[View]:
    """The halts of a company; none when the instance is too old to know them."""
    try:
        return list(session.client.each(path("companies", company, "halts")))
    except RemitError:
        return []
