"""`remit mcp` and `remit mcp-stdio`: MCP servers for agents, and Remit's own for other clients."""

import shlex
import sys
from typing import Any

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command, Group, Session, pass_session
from remit.errors import Unauthenticated


@click.command("mcp-stdio", cls=Command)
@pass_session
def mcp_stdio(session: Session) -> int:
    """Serve MCP on standard input and output.

    For clients that cannot speak MCP over HTTP. The token says which agent is served.
    """
    from remit.entrypoints.cli.mcp_stdio import serve

    if session.token is None:
        raise Unauthenticated(f"There is no token for {session.url}.", "Set REMIT_TOKEN.")
    return serve(session.url, session.token, sys.stdin.buffer, sys.stdout.buffer)


mcp = Group("mcp", help="MCP servers that agents use through Remit.")


class _Naming(Command):
    """Command whose `--url` is the MCP server's; the instance's goes before: `remit mcp --url URL
    add`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [option for option in self.params if option.name != "url"]


@mcp.command(cls=_Naming)
@click.argument("name")
@click.option("--command", metavar="COMMAND", help="A program on the instance's machine.")
@click.option("--url", "address", metavar="URL", help="An address that speaks MCP over HTTP.")
@click.option("--env", multiple=True, metavar="K=V", help="A variable of the program.")
@click.option("--secret-env", multiple=True, metavar="K=SECRET", help="The same, from a secret.")
@click.option("--header", multiple=True, metavar="K=V", help="A header for the address.")
@click.option(
    "--secret-header",
    multiple=True,
    metavar="K=SECRET",
    help="The same, from a secret: 'Authorization=Bearer {github-token}'.",
)
@click.option("--inject", is_flag=True, help="Give the variables to agents, too. Not safe.")
@click.option("--replace", is_flag=True, help="Say anew what a server is.")
@pass_session
def add(
    session: Session,
    name: str,
    command: str | None,
    address: str | None,
    env: tuple[str, ...],
    secret_env: tuple[str, ...],
    header: tuple[str, ...],
    secret_header: tuple[str, ...],
    inject: bool,
    replace: bool,
) -> None:
    """Register a server. Then let agents use it: `remit grant give AGENT mcp_server:NAME use`."""
    if (command is None) == (address is None):
        raise click.UsageError("Give either --command or --url.")
    body: dict[str, Any] = {"name": name, "inject": inject, "replace": replace}
    body |= {"command": _split(command)} if command is not None else {"url": address}
    for key, pairs in (
        ("env", env),
        ("secretEnv", secret_env),
        ("headers", header),
        ("secretHeaders", secret_header),
    ):
        if pairs:
            body[key] = dict(_pair(pair) for pair in pairs)
    answer = session.client.send("POST", session.under_company("mcp-servers"), body)
    name = answer["name"]
    said = [
        f"{name} is registered.",
        f"Next: remit mcp test {name}, then remit grant give AGENT mcp_server:{name} use",
    ]
    session.done(answer, said, lambda one: _draw(session, one))


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise click.UsageError(f"--command: {error}.") from None


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.UsageError(f"{name[:40]!r} is not of the form K=V.")
    return name.strip(), value


@mcp.rows("list", "name", "where", "holders", "", empty="There are no MCP servers.")
def _row(session: Session, one: dict[str, Any]) -> tuple[str, ...]:
    return one["name"], _where(one), _holders(session, one), "injected" if one["inject"] else ""


@mcp.command()
@click.argument("name")
@pass_session
def test(session: Session, name: str) -> int:
    """Start a server and list its tools, as agents would see them."""
    found = session.client.send("POST", session.under_company("mcp-servers", name, "test"), {})

    def draw(one: dict[str, Any]) -> None:
        if not one["usable"]:
            output.error(one["error"], one["complaint"] or "See to the server, and try again.")
            return
        rows = [(tool["name"], tool["description"]) for tool in one["tools"]]
        output.table(("tool", "description"), rows, empty="It has no tools.")

    session.show(found, draw)
    return 0 if found["usable"] else 1


def _draw(session: Session, one: dict[str, Any]) -> None:
    output.fields(
        {
            "name": one["name"],
            "where": _where(one),
            "secrets": ", ".join([*one["secretEnv"], *one["secretHeaders"]]),
            "injected": "yes: agents can read them" if one["inject"] else None,
            "version": one["version"],
            "holders": _holders(session, one),
        }
    )


def _where(one: dict[str, Any]) -> str:
    return one["url"] or shlex.join(one["command"])


def _holders(session: Session, one: dict[str, Any]) -> str:
    return ", ".join(session.names.get(id_, id_) for id_ in one["holders"])
