"""`remit user`: people with a part in a company, and their tokens."""

from typing import Any

import click

from remit.entrypoints.cli import tokens
from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.options import Group, option, stated
from remit.entrypoints.cli.parameters import AGENT_NAME
from remit.entrypoints.cli.session import Session, View

role_option = option("--role board|observer", default="board", show_default=True)
hours_option = option("--hours INTEGER", "How long the link is good; 72, if left out.")

user = Group("user", help="People with a part in a company, and their tokens.")


@user.command()
@click.argument("name")
@role_option
@option("--scope AGENT", "Only this agent and everybody below it.", type=AGENT_NAME)
def add(session: Session, name: str, role: str, scope: str | None) -> None:
    """Give a person a part in the company."""
    top = None if scope is None else session.agent_id(scope)
    body = stated({"name": name, "role": role, "scope": top})
    answer = session.client.send("POST", session.under_company("users"), body)
    what = "is on the board of" if role == "board" else "observes"
    over = f"{scope} and below" if scope is not None else session.company["name"]
    sentences = [f"{answer['name']} {what} {over}."]
    if role == "observer":
        sentences.append(
            f"An observer changes nothing and reads all that is about {over}: mail, files, logs "
            "of runs, configurations without keys."
        )
    sentences.append(f"Next: remit user token {answer['name']}")
    session.done(answer, sentences, lambda person: _draw(session, person))


# Not declared: it draws what ends, and what the board has to look at.
@user.command()
@click.argument("name")
@option("--dry-run", "Only tell what would end.")
def remove(session: Session, name: str, dry_run: bool) -> None:
    """Take away a person's part in the company."""
    target = session.under_company("users", name)
    answer = session.client.send("DELETE", f"{target}?dryRun=true" if dry_run else target)
    session.show(answer, _draw_removed)


def _draw_removed(answer: View) -> None:
    would = "would have" if answer["dryRun"] else "has"
    output.say(f"{answer['name']} {would} no part in the company any more.")
    ended = "Would end:" if answer["dryRun"] else "Ended:"
    for heading, ends in ((ended, True), ("Still good:", False)):
        credentials = [each for each in answer["handedOut"] if each["ends"] is ends]
        if credentials:
            output.say(heading)
        for each in credentials:
            output.say(f"  {each['kind']} {each['id']} for {each['name']}. {each['why']}")
            output.say(f"    {each['nextStep']}")
    if answer["dryRun"]:
        output.say("Nothing was changed.")


# Not declared: the link uses the address that this command connects to.
@user.command()
@click.argument("name")
@role_option
@option("--scope AGENT", "Only this agent and everybody below it.")
@hours_option
def invite(session: Session, /, **options: Any) -> None:
    """Give a person a part in the company, with a link that signs them in."""
    answer = session.client.send("POST", session.under_company("invitations"), stated(options))
    session.show(answer, lambda invitation: _draw_link(session, invitation))


@user.command()
@click.argument("name")
@hours_option
def link(session: Session, /, name: str, **options: Any) -> None:
    """Make a new one-time sign-in link for a person; their earlier links end."""
    target = session.under_company("users", name, "links")
    answer = session.client.send("POST", target, stated(options))
    session.show(answer, lambda invitation: _draw_link(session, invitation))


def _draw_link(session: Session, invitation: View) -> None:
    if invitation.get("known"):
        output.say(f"{invitation['name']} is known here already, and signs in as before.")
    elif invitation.get("token"):
        output.say(f"{session.url.rstrip('/')}/login?token={invitation['token']}")
        until = output.when(invitation["expiresAt"])
        output.note(f"It signs in once, until {until}; it is not shown again.")
    else:
        output.note("The link was shown already. Make another with `remit user link`.")


def _over(session: Session, row: View) -> str:
    scope = row.get("scopeAgentId")
    return session.known(scope) if scope else "whole company"


user.rows(
    *("list", "name", "role", ("over", _over), "id: {id:short}"), empty="Nobody has a part in it."
)


# Not declared: one command creates, lists and revokes tokens.
@user.command()
@click.argument("name")
@tokens.token_options
def token(session: Session, /, name: str, **options: Any) -> None:
    """Make a token for a person; it is shown once."""
    tokens.carry_out(session, session.under_company("users", name, "tokens"), **options)


def _draw(session: Session, person: View) -> None:
    over = ("over", lambda _, view: view.get("scopeAgentId") or "whole company")
    cells.fields(session, person, "name", "id", "role", over)
