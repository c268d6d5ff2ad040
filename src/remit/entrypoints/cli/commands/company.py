"""`remit company`: create, list, show, set; and its permission policy."""

from __future__ import annotations

from typing import Any

import click

from remit.entrypoints.cli import output
from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.commands.archive import export, import_
from remit.entrypoints.cli.commands.hiring import json_object
from remit.entrypoints.cli.commands.policy import policy
from remit.entrypoints.cli.options import Group, Session, limit_option, pass_session
from remit.ids import short
from remit.model.limit import WORDS, Limit, amount_shown


@click.group(cls=Group)
def company() -> None:
    """Companies."""


@company.command()
@click.argument("name")
@click.option("--root", "rootName", metavar="NAME", help="Its root agent; ceo, if left out.")
@click.option(
    "--adapter",
    "adapterType",
    help="What runs the root agent; the first that can be used, if left out.",
)
@click.option("--config", metavar="JSON|@FILE", help="Settings of the adapter.")
@pass_session
def create(session: Session, /, config: str | None, **given: str | None) -> None:
    """Create a company with its root agent; you are its board."""
    body: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if config is not None:
        body["adapterConfig"] = json_object(config)
    made = session.client.send("POST", path("companies"), body)

    root = body.get("rootName", "ceo")
    said = [
        f"{made['name']} is there, with {root}; you are its board.",
        f'Next: remit --company "{made["name"]}" send {root} "…"',
    ]
    session.done(made, said, _draw)


@company.command("list")
@limit_option
@pass_session
def list_(session: Session, limit: int) -> None:
    """List the companies you have a part in."""
    found = session.listed(path("companies"), limit)

    def draw(companies: list[dict[str, Any]]) -> None:
        rows = [
            (one["name"], short(one["id"]), output.when(one.get("createdAt"))) for one in companies
        ]
        output.table(("name", "id", "created"), rows, empty="You have no part in a company.")

    session.show(found, draw)


@company.command()
@click.argument("name", required=False)
@pass_session
def show(session: Session, name: str | None) -> None:
    """Show one company."""
    session.company_option = name or session.company_option
    session.show(session.client.get(session.under_company()), _draw)


@company.command("set")
@click.option("--name", help="Its new name.")
@click.option(
    "--messaging",
    type=click.Choice(["chain", "team", "subtree", "open"]),
    help="Who may write to whom, besides bosses and their reports.",
)
@click.option("--approve-hires", type=bool, metavar="yes|no", help="Whether a hire waits for you.")
@click.option(
    "--approve-config",
    type=bool,
    metavar="yes|no",
    help="Whether a configuration that an agent proposes waits for you.",
)
@click.option("--chat-provider", metavar="NAME", help="What runs agents that agents create.")
@click.option("--chat-model", metavar="NAME", help="Its model. An empty text takes it back.")
@click.option(
    "--review-hours",
    metavar="HOURS",
    help="After how many hours each what does not move is looked at again, such as 1,4,24.",
)
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="NAME=NUMBER",
    help="A limit, such as agentRunsPerHour=120; none turns it off. Can be repeated.",
)
@pass_session
def set_(
    session: Session,
    name: str | None,
    messaging: str | None,
    approve_hires: bool | None,
    approve_config: bool | None,
    chat_provider: str | None,
    chat_model: str | None,
    review_hours: str | None,
    limits: tuple[str, ...],
) -> None:
    """Change a company's settings."""
    given = {
        "name": name,
        "messaging": messaging,
        "requireBoardApprovalForNewAgents": approve_hires,
        "requireApprovalForConfigChanges": approve_config,
        "chatLLMProvider": chat_provider,
        "chatLLMModel": chat_model,
        "reviewHours": review_hours,
        "limits": dict(map(_limit, limits)) or None,
    }
    body = {field: value for field, value in given.items() if value is not None}
    if not body:
        raise click.UsageError("Nothing is to be changed.")
    session.show(session.client.send("PATCH", session.under_company(), body), _draw)


def _draw(one: dict[str, Any]) -> None:
    output.fields(
        {
            "name": one["name"],
            "id": one["id"],
            "messaging": one.get("messaging"),
            "hires": _waits(one.get("requireBoardApprovalForNewAgents")),
            "configuration": _waits(one.get("requireApprovalForConfigChanges")),
            "chat provider": one.get("chatLLMProvider"),
            "chat model": one.get("chatLLMModel"),
            "reviews after": f"{one['reviewHours']} hours" if "reviewHours" in one else None,
            **_limits(one.get("limits") or {}),
            "created": output.when(one.get("createdAt")),
        }
    )


def _limit(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not name or not equals:
        raise click.UsageError(f"--limit {given}: write NAME=NUMBER, such as agentRunsPerHour=120.")
    return name.strip(), value.strip()


def _limits(given: dict[str, int | None]) -> dict[str, str]:
    """How much of what; as the option spells it."""
    return {
        limit.spelled: f"{amount_shown(limit, given[limit.spelled])} ({WORDS[limit]})"
        for limit in Limit
        if limit.spelled in given
    }


def _waits(flag: bool | None) -> str | None:
    return None if flag is None else "wait for the board" if flag else "take effect at once"


company.add_command(policy)
company.add_command(export)
company.add_command(import_)
