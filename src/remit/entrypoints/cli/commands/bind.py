"""`remit bind`: which agents are reached through which channels."""

from __future__ import annotations

from typing import Any

import click

from remit.entrypoints.cli import output
from remit.entrypoints.cli.commands.hiring import json_object
from remit.entrypoints.cli.options import Group, Session, limit_option, pass_session
from remit.errors import NotFound


@click.group(cls=Group)
def bind() -> None:
    """Channels that agents are bound to."""


@bind.command()
@click.argument("agent")
@click.argument("channel")
@click.option("--to", "address", metavar="URL", help="Where its messages go.")
@click.option("--secret", metavar="NAME", help="A secret of the company to sign them with.")
@click.option("--config", metavar="JSON|@FILE", help="All settings, for channels of plugins.")
@click.option("--replace", is_flag=True, help="Say anew how it is bound, with a new token.")
@pass_session
def add(
    session: Session,
    agent: str,
    channel: str,
    address: str | None,
    secret: str | None,
    config: str | None,
    replace: bool,
) -> None:
    """Bind an agent to a channel, such as webhook. The token is shown once."""
    settings = {} if config is None else json_object(config, "--config")
    if address is not None:
        settings["url"] = address
    if secret is not None:
        settings["secretRef"] = secret
    body = {"agent": agent, "adapterType": channel, "adapterConfig": settings, "replace": replace}
    made = session.client.send("POST", session.under_company("bindings"), body)

    def draw(one: dict[str, Any]) -> None:
        output.say(f"{one['agentName']} is bound to {one['adapterType']}.")
        if one["token"] is not None:
            output.say(
                f"  token: {one['token']}",
                "  Keep it where messages come from; it is not shown again.",
                f"  They are posted to {session.url}/api/channels/{one['adapterType']}.",
            )

    session.show(made, draw)


@bind.command("list")
@click.option("--agent", metavar="AGENT", help="Only of this agent.")
@limit_option
@pass_session
def list_(session: Session, agent: str | None, limit: int) -> None:
    """List the bindings. Never their tokens."""
    query = {} if agent is None else {"agent": agent}
    found = session.listed(session.under_company("bindings"), limit, **query)

    def draw(bindings: list[dict[str, Any]]) -> None:
        rows = [
            (one["agentName"], one["adapterType"], _settings(one), output.when(one["createdAt"]))
            for one in bindings
        ]
        columns = ("agent", "channel", "settings", "since")
        output.table(columns, rows, empty="No agent is bound to a channel.")

    session.show(found, draw)


@bind.command()
@click.argument("agent")
@click.argument("channel")
@pass_session
def remove(session: Session, agent: str, channel: str) -> None:
    """Unbind an agent from a channel; its token opens nothing any more."""
    found = session.client.get(session.under_company("bindings"), agent=agent)
    ids = [one["id"] for one in found if one["adapterType"] == channel]
    if not ids:
        raise NotFound(f"{agent} is not bound to {channel}.", "See `remit bind list`.")
    gone = session.client.send("DELETE", session.under_company("bindings", ids[0]))
    session.show(gone, lambda _: output.say(f"{agent} is not bound to {channel} any more."))


@bind.command()
@click.argument("channel", required=False)
@pass_session
def channels(session: Session, channel: str | None) -> None:
    """List the channels that are installed, or say how a binding to one is configured."""
    found = session.client.get(session.under_company("channels"))
    if channel is not None:
        found = [one for one in found if one["type"] == channel]
        if not found:
            raise NotFound(f"There is no channel {channel!r} here.", "See `remit bind channels`.")

    def draw(kinds: list[dict[str, Any]]) -> None:
        if channel is not None:
            output.say(*(kinds[0]["problem"] or kinds[0]["text"]).splitlines())
            return
        rows = [(one["type"], one["problem"] or one["summary"]) for one in kinds]
        output.table(("channel", "description"), rows, empty="No channel is installed.")

    session.show(found, draw)


def _settings(one: dict[str, Any]) -> str:
    return ", ".join(f"{key}={value}" for key, value in one["adapterConfig"].items())
