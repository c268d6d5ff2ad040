"""`remit user`: people with a part in a company, and their tokens."""

from typing import Any

import click

from remit.entrypoints.cli import tokens
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Group, Session, pass_session
from remit.ids import short

user = Group("user", help="People with a part in a company, and their tokens.")


@user.command()
@click.argument("name")
@click.option(
    "--role", type=click.Choice(["board", "observer"]), default="board", show_default=True
)
@click.option("--scope", metavar="AGENT", help="Only this agent and everybody below it.")
@pass_session
def add(session: Session, name: str, role: str, scope: str | None) -> None:
    """Give a person a part in the company."""
    body = {"name": name, "role": role}
    if scope is not None:
        body["scope"] = session.agent_id(scope)
    answer = session.client.send("POST", session.under_company("users"), body)
    what = "is on the board of" if role == "board" else "observes"
    over = f"{scope} and below" if scope is not None else session.company["name"]
    said = [f"{answer['name']} {what} {over}."]
    if role == "observer":
        said.append(
            f"An observer changes nothing and reads all that is about {over}: mail, files, logs "
            "of runs, configurations without keys."
        )
    said.append(f"Next: remit user token {answer['name']}")
    session.done(answer, said, _draw)


# Not declared: the link uses the address that this command connects to.
@user.command()
@click.argument("name")
@click.option(
    "--role", type=click.Choice(["board", "observer"]), default="board", show_default=True
)
@click.option("--scope", metavar="AGENT", help="Only this agent and everybody below it.")
@click.option("--hours", type=int, help="How long the link is good; 72, if left out.")
@pass_session
def invite(session: Session, name: str, role: str, scope: str | None, hours: int | None) -> None:
    """Give a person a part in the company, with a link that signs them in."""
    body: dict[str, Any] = {"name": name, "role": role}
    if scope is not None:
        body["scope"] = session.agent_id(scope)
    if hours is not None:
        body["hours"] = hours
    answer = session.client.send("POST", session.under_company("invitations"), body)
    session.show(answer, lambda one: _draw_link(session, one))


@user.command()
@click.argument("name")
@click.option("--hours", type=int, help="How long the link is good; 72, if left out.")
@pass_session
def link(session: Session, name: str, hours: int | None) -> None:
    """Make another link that signs a person in, once; those before it end."""
    target = session.under_company("users", name, "links")
    answer = session.client.send("POST", target, {} if hours is None else {"hours": hours})
    session.show(answer, lambda one: _draw_link(session, one))


def _draw_link(session: Session, one: dict[str, Any]) -> None:
    if one.get("known"):
        output.say(f"{one['name']} is known here already, and signs in as before.")
    elif one.get("token"):
        output.say(f"{session.url.rstrip('/')}/login?token={one['token']}")
        until = output.when(one["expiresAt"])
        output.note(f"It signs in once, until {until}; it is not shown again.")
    else:
        output.note("The link was shown already. Make another with `remit user link`.")


@user.rows("list", "name", "role", "over", "id", empty="Nobody has a part in it.")
def _row(session: Session, one: dict[str, Any]) -> tuple[str, ...]:
    scope = one.get("scopeAgentId")
    over = session.names.get(scope, scope) if scope else "whole company"
    return one["name"], one["role"], over, short(one["id"])


# Not declared: one command creates, lists and revokes tokens.
@user.command()
@click.argument("name")
@tokens.token_options
@pass_session
def token(session: Session, /, name: str, **options: Any) -> None:
    """Make a token for a person; it is shown once."""
    tokens.carry_out(session, session.under_company("users", name, "tokens"), **options)


def _draw(one: dict[str, Any]) -> None:
    output.fields(
        {
            "name": one["name"],
            "id": one["id"],
            "role": one["role"],
            "over": one.get("scopeAgentId") or "whole company",
        }
    )
