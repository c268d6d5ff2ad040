"""`remit mcp` and `remit mcp-stdio`: MCP servers for agents, and Remit's own for other clients."""

import shlex
import sys
from typing import Any

import click

from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.options import Command, Group, option, stated
from remit.entrypoints.cli.parameters import command_words
from remit.entrypoints.cli.session import Session, View
from remit.errors import Unauthenticated


@click.command("mcp-stdio", cls=Command)
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
@option("--command COMMAND", "A program on the instance's machine.")
@option("--url URL", "An address that speaks MCP over HTTP.", field="url_")
@option("--env K=V…", "A variable of the program.")
@option("--secret-env K=SECRET…", "The same, from a secret.", field="secretEnv")
@option("--header K=V…", "A header for the address.", field="headers")
@option(
    "--secret-header K=SECRET…",
    "The same, from a secret: 'Authorization=Bearer {github-token}'.",
    field="secretHeaders",
)
@option("--inject", "Give the variables to agents, too. Not safe.")
@option("--replace", "Replace the settings of a registered server.")
def add(session: Session, /, command: str | None, url_: str | None, **options: Any) -> None:
    """Register a server. Then let agents use it: `remit grant give AGENT mcp_server:NAME use`."""
    if (command is None) == (url_ is None):
        raise click.UsageError("Give either --command or --url.")
    body = stated(
        {**options, "command": None if command is None else command_words(command), "url": url_}
    )
    for key in ("env", "secretEnv", "headers", "secretHeaders"):
        if key in body:
            body[key] = dict(map(_pair, body[key]))
    answer = session.client.send("POST", session.under_company("mcp-servers"), body)
    name = answer["name"]
    sentences = [
        f"{name} is registered.",
        f"Next: remit mcp test {name}, then remit grant give AGENT mcp_server:{name} use",
    ]
    session.done(answer, sentences, lambda server: _draw(session, server))


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.UsageError(f"{name[:40]!r} is not of the form K=V.")
    return name.strip(), value


@mcp.command()
@click.argument("name")
def test(session: Session, name: str) -> int:
    """Start a server and list its tools, as agents would see them."""
    answer = session.client.send("POST", session.under_company("mcp-servers", name, "test"), {})

    def draw(view: View) -> None:
        if not view["usable"]:
            output.error(view["error"], view["complaint"] or "See to the server, and try again.")
            return
        row = ("tool: {name}", "description")
        cells.table(session, view["tools"], *row, empty="It has no tools.")

    session.show(answer, draw)
    return 0 if answer["usable"] else 1


def _where(_: Session, server: View) -> str:
    return server["url"] or shlex.join(server["command"])


def _holders(session: Session, server: View) -> str:
    return ", ".join(session.names.get(id_, id_) for id_ in server["holders"])


mcp.rows(
    *("list", "name", ("where", _where), ("holders", _holders)),
    ("", lambda _, server: "injected" if server["inject"] else ""),
    empty="There are no MCP servers.",
)


def _draw(session: Session, server: View) -> None:
    cells.fields(
        *(session, server, "name", ("where", _where)),
        ("secrets", lambda _, view: ", ".join([*view["secretEnv"], *view["secretHeaders"]])),
        ("injected", lambda _, view: "yes: agents can read them" if view["inject"] else None),
        *("version", ("holders", _holders)),
    )
