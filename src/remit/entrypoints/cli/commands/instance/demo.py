"""`remit demo`: the command alone; the demo's module is imported only when it runs."""

from importlib import import_module

import click

from remit.entrypoints.cli.options import Command, Session, option


@click.command(cls=Command)
@option("--serve", "Leave the demonstrated company running.")
@option("--speed normal|fast", "The speed of the demonstration.", default="normal")
def demo(session: Session, serve: bool, speed: str) -> int:
    """Show a company at work, without a model or a key."""
    story = import_module("remit.entrypoints.cli.demo")
    return int(story.run(serve=serve, speed=speed, as_json=session.as_json))
