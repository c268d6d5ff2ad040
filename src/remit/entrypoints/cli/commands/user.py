"""`remit user`: people with a part in a company, and their tokens."""

from __future__ import annotations

from typing import Any

import click

from remit.entrypoints.cli import output, tokens
from remit.entrypoints.cli.options import Group, Session, limit_option, pass_session
from remit.ids import short


@click.group(cls=Group)
def user() -> None:
    """People with a part in a company, and their tokens."""


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


@user.command("list")
@limit_option
@pass_session
def list_(session: Session, limit: int) -> None:
    """List the people of the company."""
    found = session.listed(session.under_company("users"), limit)

    def draw(users: list[dict[str, Any]]) -> None:
        scopes = [one.get("scopeAgentId") for one in users]
        names = session.names if any(scopes) else {}
        rows = [
            (
                one["name"],
                one["role"],
                names.get(scope, scope) if scope else "whole company",
                short(one["id"]),
            )
            for one, scope in zip(users, scopes, strict=True)
        ]
        output.table(("name", "role", "over", "id"), rows, empty="Nobody has a part in it.")

    session.show(found, draw)


@user.command()
@click.argument("name")
@pass_session
def remove(session: Session, name: str) -> None:
    """Take away a person's part in the company."""
    answer = session.client.send("DELETE", session.under_company("users", _bare(name)))
    session.show(answer, lambda _: output.say(f"{name} has no part in the company any more."))


@user.command()
@click.argument("name")
@tokens.token_options
@pass_session
def token(session: Session, /, name: str, **options: Any) -> None:
    """Make a token for a person; it is shown once."""
    tokens.carry_out(session, session.under_company("users", _bare(name), "tokens"), **options)


def _bare(name: str) -> str:
    return name.removeprefix("user:")


def _draw(one: dict[str, Any]) -> None:
    output.fields(
        {
            "name": one["name"],
            "id": one["id"],
            "role": one["role"],
            "over": one.get("scopeAgentId") or "whole company",
        }
    )
