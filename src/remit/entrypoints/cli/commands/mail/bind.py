"""`remit bind`: which agents are reached through which channels."""

from typing import Any

import click

from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.options import Group, option, stated
from remit.entrypoints.cli.parameters import AGENT_NAME
from remit.entrypoints.cli.session import Session, View
from remit.errors import NotFound

#: Built-in channels with a receiver, so that no sender needs the binding's token.
_LISTENING = ("telegram", "slack", "email")


bind = Group("bind", help="Channels that agents are bound to.")


@bind.command(
    examples=(
        "remit bind add writer webhook --to https://example.org/hook",
        "remit bind add writer slack --secret slack-bot",
    ),
)
@click.argument("agent", type=AGENT_NAME)
@click.argument("channel")
@option("--to URL", "Where its messages go.", field="address")
@option("--secret NAME", "A secret of the company: a bot's token, or what to sign with.")
@option("--config JSON|@FILE", "All settings, for channels of plugins.")
@option("--replace", "Replace an existing binding; it gets a new token.")
def add(
    session: Session,
    /,
    channel: str,
    address: str | None,
    secret: str | None,
    config: Any,
    **options: Any,
) -> None:
    """Bind an agent to a channel, such as webhook. The token is shown once."""
    settings = (config or {}) | stated({"url": address, "secretRef": secret})
    body = {**options, "adapterType": channel, "adapterConfig": settings}
    answer = session.client.send("POST", session.under_company("bindings"), body)

    def draw(binding: View) -> None:
        output.say(f"{binding['agentName']} is bound to {binding['adapterType']}.")
        if channel in _LISTENING:
            output.say("  Somebody listens within seconds; `remit doctor` says whether it works.")
        elif binding["token"] is not None:
            place = f"{session.url_for_others}/api/channels/{binding['adapterType']}"
            output.say(
                f"  token: {binding['token']}",
                "  Keep it where messages come from; it is not shown again.",
                f"  They are posted to {place}.",
            )

    session.show(answer, draw)


def _settings(_: Session, row: View) -> str:
    return ", ".join(f"{key}={value}" for key, value in row["adapterConfig"].items())


bind.rows(
    *("list", "agent: {agentName}", "channel: {adapterType}", ("settings", _settings)),
    "since: {createdAt:when}",
    ("state", lambda _, row: ": ".join(filter(None, (row["state"], row["problem"])))),
    "last heard: {heardAt:when}",
    empty="No agent is bound to a channel.",
)


@bind.command(
    examples=("remit bind test writer slack",),
)
@click.argument("agent", type=AGENT_NAME)
@click.argument("channel")
def test(session: Session, agent: str, channel: str) -> int:
    """Check the credentials of a binding with the server of its channel."""
    path = session.under_company("bindings", _id(session, agent, channel), "test")
    answer = session.client.send("POST", path, {})

    def draw(view: View) -> None:
        if view["usable"]:
            output.say(view["sentence"])
        else:
            output.error(view["sentence"], view["nextStep"])

    session.show(answer, draw)
    return 0 if answer["usable"] else 1


def _id(session: Session, agent: str, channel: str) -> str:
    bindings = session.client.get(session.under_company("bindings"), agent=agent)
    ids = [binding["id"] for binding in bindings if binding["adapterType"] == channel]
    if not ids:
        raise NotFound(f"{agent} is not bound to {channel}.", "See `remit bind list`.")
    return str(ids[0])


@bind.command(
    examples=("remit bind remove writer webhook",),
)
@click.argument("agent", type=AGENT_NAME)
@click.argument("channel")
def remove(session: Session, agent: str, channel: str) -> None:
    """Unbind an agent from a channel; its token opens nothing any more."""
    target = session.under_company("bindings", _id(session, agent, channel))
    gone = session.client.send("DELETE", target)
    session.show(gone, lambda _: output.say(f"{agent} is not bound to {channel} any more."))


@bind.command()
@click.argument("channel", required=False)
def channels(session: Session, channel: str | None) -> None:
    """List the channels that are installed, or say how a binding to one is configured."""
    channel_kinds = session.client.get(session.under_company("channels"))
    if channel is not None:
        channel_kinds = [kind for kind in channel_kinds if kind["type"] == channel]
        if not channel_kinds:
            raise NotFound(f"There is no channel {channel!r} here.", "See `remit bind channels`.")

    def draw(kinds: list[View]) -> None:
        if channel is not None:
            output.say(*(kinds[0]["problem"] or kinds[0]["text"]).splitlines())
            return
        described = ("description", lambda _, kind: kind["problem"] or kind["summary"])
        cells.table(session, kinds, "channel: {type}", described, empty="No channel is installed.")

    session.show(channel_kinds, draw)
