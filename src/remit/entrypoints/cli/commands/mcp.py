"""`remit mcp-stdio`."""

from __future__ import annotations

import sys

import click

from remit.entrypoints.cli.options import Command, Session, pass_session
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
