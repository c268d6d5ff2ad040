"""`remit version`."""

import click

from remit import __version__
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command, Session


@click.command(cls=Command)
def version(session: Session) -> None:
    """Print the version."""
    session.show({"version": __version__}, lambda answer: output.say(f"remit {answer['version']}"))
