"""`remit stop` and `remit resume`: halt the company or a subtree, and resume it."""

from typing import Any, NamedTuple

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command, option
from remit.entrypoints.cli.parameters import AGENT
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import RemitError
from remit.model.text import plural


@click.command(
    cls=Command,
    examples=(
        "remit stop",
        'remit stop writer --note "wrong brief"',
    ),
)
@click.argument("agent", required=False, type=AGENT)
@option("--note, --reason TEXT", "Why, for everybody who looks.", field="note")
def stop(session: Session, agent: str | None, note: str | None) -> None:
    """Halt the company, or AGENT and everybody below it.

    Runs end and nothing starts until `remit resume`. Mail is kept, and the instance runs on.

    All ways to stop:

    \b
    To stop                            Command                     To undo
    the company                        remit stop                  remit resume
    an agent and everybody below it    remit stop AGENT            remit resume AGENT
    one agent, its run included        remit agent stop AGENT      remit resume AGENT
    one agent, after its run           remit agent pause AGENT     remit resume AGENT
    one agent's run; new work          remit agent abort AGENT     (by itself)
      starts it again
    one agent, to begin anew           remit agent restart AGENT   (by itself)
    one run and the mail it took up    remit run cancel ID         (not undone)
    a request and what came of it      remit cancel ID             remit send
    delegated work, by force           remit outcome reclaim ID    remit outcome delegate ID
    an agent for ever                  remit agent terminate AGENT
    the instance and all it runs       remit down                  remit up
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
        output.say(f"`{go_command(halt)}` ends the halt.")

    session.show(answer, draw)


@click.command(
    cls=Command,
    examples=("remit resume", "remit resume writer"),
)
@click.argument("agent", required=False, type=AGENT)
def resume(session: Session, agent: str | None) -> None:
    """End the halt of the company, or the halt and the pause of AGENT, and say which.

    Only what is named ends: a halt of the company stays when AGENT is resumed, and the reverse.
    `remit stop --help` lists all ways to stop.
    """
    named = _named(session, agent)
    answer: View = {}
    if named.is_halted or not named.is_paused:  # without either, the refusal says what there is
        target, body = _reach(session, agent, "go")
        answer = session.client.send("POST", target, body or None)
    if named.is_paused:
        answer = {**session.client.send("POST", path("agents", str(agent), "resume")), **answer}
    ended = [
        word for word, was in (("halt", "lifted" in answer), ("pause", named.is_paused)) if was
    ]
    left = answer.get("left")
    if left is None:
        left = [halt for halt in listed(session, named.company) if halt["agentId"] is None]

    def draw(_: View) -> None:
        output.say(f"Resumed {named.name}: ended its {' and its '.join(ended)}.")
        for other in left:
            output.say(line(other))

    session.show({**answer, "left": left, "ended": ended}, draw)


class _Named(NamedTuple):
    """The company or the agent that is to go on, and what keeps it from that."""

    name: str
    company: str
    is_halted: bool
    is_paused: bool = False


def _named(session: Session, agent: str | None) -> _Named:
    if agent is None:
        return _Named(session.company["name"], session.company["id"], is_halted=True)
    view = session.client.get(path("agents", agent))
    halts = listed(session, view["companyId"])
    return _Named(
        view["name"],
        view["companyId"],
        is_halted=any(halt["agentId"] == view["id"] for halt in halts),
        is_paused=view["status"] == "paused",
    )


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
        f"`{go_command(halt)}` ends the halt."
    )


def go_command(halt: View) -> str:
    if halt.get("awaitsAcceptance"):
        return "remit company accept"
    return "remit resume" if halt["agentId"] is None else f"remit resume {halt['agent']}"


def listed(session: Session, company: str) -> list[View]:
    """The halts of a company; none when the instance is too old to know them."""
    try:
        return list(session.client.each(path("companies", company, "halts")))
    except RemitError:
        return []
