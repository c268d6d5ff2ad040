"""`remit secret`: where the values of secrets are found."""

import os
import sys

import click

from remit.entrypoints.cli.options import Group, limit_option, option
from remit.entrypoints.cli.parameters import command_words
from remit.entrypoints.cli.session import Session

_LONGEST = 1 << 20


secret = Group("secret", help="Secrets, and where their values are stored.")


@secret.command("set")
@click.argument("name")
@option("--env NAME", "A variable of the instance's environment.", field="variable")
@option("--file PATH", "A file on its machine, with mode 0600.", field="path")
@option("--command COMMAND", "Output of a program: 'op read op://…'.")
@option("--source SOURCE", "Source that a plugin adds; with --place.")
@option("--place TEXT", "The place of the value, in the form of that source.")
def set_(
    session: Session,
    name: str,
    variable: str | None,
    path: str | None,
    command: str | None,
    source: str | None,
    place: str | None,
) -> None:
    """Register a secret, or change it.

    Without an option its value is read from standard input, and kept by the instance in a file of
    its own. It is never an argument, because others on the machine see those.
    """
    if (source is None) != (place is None):
        raise click.UsageError("--source and --place belong together.")
    if path is not None and session.is_local:
        path = os.path.abspath(os.path.expanduser(path))
    words = None if command is None else command_words(command)
    places = (("env", variable), ("file", path), ("command", words), (source, place))
    sources = [{"source": kind, "place": where} for kind, where in places if where is not None]
    if len(sources) > 1:
        raise click.UsageError("Give one of --env, --file, --command and --source.")
    body = {"name": name, **(sources[0] if sources else {"value": _value(name)})}
    where = "{name} is found in {source} {place}."
    session.change("POST", session.under_company("secrets"), body, tells=where)


def _value(name: str) -> str:
    if sys.stdin.isatty():
        value: str = click.prompt(f"Value of {name}", hide_input=True, err=True)
        return value
    return sys.stdin.read(_LONGEST)


@secret.command("list")
@limit_option
def list_(session: Session, limit: int) -> None:
    """List secrets: where they are, and whether they can be read there. Never their values."""
    secrets = session.listed(session.under_company("secrets"), limit)
    session.show_table(
        secrets,
        *("name", "source", "place", ("found", lambda _, row: row["problem"] or "found")),
        empty="There are no secrets.",
    )


@secret.command()
@click.argument("name")
def remove(session: Session, name: str) -> None:
    """Forget a secret; a value that the instance kept is deleted."""
    session.change("DELETE", session.under_company("secrets", name), tells="{name} is forgotten.")
