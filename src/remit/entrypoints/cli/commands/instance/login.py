"""`remit login`: keep an address and a token."""

import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command, option
from remit.entrypoints.cli.session import Session, path
from remit.errors import BadInput
from remit.ids import looks_like_token, random_name
from remit.settings import prepare_home


@click.command(cls=Command)
@click.argument("secret", required=False, metavar="[TOKEN|-]")
@option("--show", "Show who you are signed in as, instead.")
def login(session: Session, secret: str | None, show: bool) -> None:
    """Store an address and a token for later commands.

    They are checked first. `-` reads the token from standard input; without one you are asked.
    """
    if show:
        if secret is not None:
            raise click.UsageError("--show takes no token.")
        me = session.client.get(path("me"))
        session.show({**me, "url": session.url}, _draw)
        return
    token = _read_token(session, secret)
    me = session.connect(token).get(path("me"))
    prepare_home(session.settings)
    kept_in = session.settings.home / "remit.toml"
    values = {"url": session.url, "token": token}
    if session.is_here and session.settings.url:
        del values["url"]  # it stays the address for others
    keep(kept_in, values)
    session.show({**me, "url": session.url}, _draw)
    output.note(f"Kept in {kept_in}.")


def _read_token(session: Session, secret: str | None) -> str:
    text = secret or session.token_option
    if text == "-":
        text = sys.stdin.readline()
    elif text is None and sys.stdin.isatty():
        text = click.prompt("Token", hide_input=True, err=True)
    elif text is None:
        raise click.UsageError("No token was given; write `-` to read it from standard input.")
    token = str(text).strip()
    if not looks_like_token(token) or not token.isascii() or not token.isprintable():
        raise BadInput("That is not a token of Remit's.", "A token begins with rmt_.")
    return token


def keep(file: Path, values: dict[str, str]) -> None:
    """Set values in a settings file and leave the rest of it as it is."""
    old = file.read_text() if file.exists() else ""
    everything = {**tomllib.loads(old), **values}
    ours = re.compile(rf"\s*({'|'.join(values)})\s*=")
    lines = [line for line in old.splitlines() if not ours.match(line)]
    # Tables come last: a line behind the head of one would belong to it.
    heads = (number for number, line in enumerate(lines) if line.lstrip().startswith("["))
    end = next(heads, len(lines))
    text = "\n".join([*lines[:end], *_assignments(values), *lines[end:]]) + "\n"
    if not _says(text, everything):  # a value spans lines
        text = "\n".join(_assignments(everything)) + "\n"
    new = file.with_name(f"{file.name}.{random_name()}")
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)


def _assignments(values: dict[str, Any]) -> list[str]:
    return [f"{name} = {_toml(value)}" for name, value in values.items()]


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        inside = (f"{_toml(name)} = {_toml(inner)}" for name, inner in value.items())
        return f"{{{', '.join(inside)}}}"
    # A JSON string is a TOML string, but for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _says(text: str, wanted: dict[str, Any]) -> bool:
    try:
        return tomllib.loads(text) == wanted
    except tomllib.TOMLDecodeError:
        return False


def _draw(me: dict[str, Any]) -> None:
    role = " (operator)" if me.get("operator") else ""
    output.say(f"You are {me['kind']} {me['name']}{role} at {me['url']}.")
