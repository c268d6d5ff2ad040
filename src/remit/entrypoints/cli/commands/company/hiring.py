"""`remit agent hire|set|permissions|wake`: hiring and configuration of agents."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from remit.entrypoints.cli import setup_note
from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command, Session, pass_session
from remit.ids import short
from remit.model.organisation.agent_spec import CONFIGURED, Field, Holds

F = TypeVar("F", bound=Callable[..., Any])

LEVELS = ("restricted", "standard", "privileged", "boss")
_BY_KEY = {one.key: one for one in CONFIGURED}
_KEYS = ", ".join([*_BY_KEY][:-1]) + f" and {[*_BY_KEY][-1]}"


def description_options(command: F) -> F:
    """Decorator: the options that describe a new agent, for `create` and `hire` alike."""
    for option in reversed(
        [
            click.argument("name"),
            *(_option(one) for one in CONFIGURED if one.part.option),
            click.option(
                "--boss", metavar="AGENT", help="The boss it reports to; you, if left out."
            ),
            click.option("--purpose", metavar="TEXT", help="The outcome it is responsible for."),
            click.option(
                "--once",
                is_flag=True,
                help="The purpose can be accomplished: it is worked on at once, and then done.",
            ),
        ]
    ):
        command = option(command)
    return command


def _option(field: Field) -> Callable[[F], F]:
    """The option that sets a field of the description; its parameter is the field's key."""
    more: dict[str, Any] = {}
    if field.holds is Holds.ROLE:
        more = {"default": field.default, "show_default": True}
    elif field.holds is Holds.AMOUNT:
        more = {"type": click.IntRange(min=0)}
    part = field.part
    return click.option(part.option, field.key, metavar=part.metavar, help=part.help, **more)


def described(session: Session, said: dict[str, Any]) -> dict[str, Any]:
    """Build the request body from the description options."""
    body = dict(said)
    boss = body.pop("boss")
    if body.pop("once"):
        if body["purpose"] is None:
            raise click.UsageError("--once needs a --purpose.")
        body["perpetual"] = False
    if boss is not None:
        body["reportsTo"] = session.agent_id(boss)
    body = {key: value for key, value in body.items() if value is not None}
    for field in CONFIGURED:
        if field.key in body and field.part.metavar == "JSON|@FILE":
            body[field.key] = json_object(body[field.key], field.part.option)
        elif field.key in body and field.part.metavar == "TEXT|@FILE":
            body[field.key] = _text_or_file(body[field.key], field.part.option)
    return body


@click.command(cls=Command)
@description_options
@click.option("--outcome", "outcomeId", metavar="ID", help="Hand this outcome to it.")
@click.option("--level", "permissionLevel", type=click.Choice(LEVELS), help="Permission level.")
@click.option("--reason", metavar="TEXT", help="Reason for the hire, for who approves it.")
@pass_session
def hire(session: Session, /, **said: Any) -> None:
    """Ask for an agent; where the company wants to be asked it waits for approval."""
    body = described(session, said)
    answer = session.client.send("POST", session.under_company("agent-hires"), body)

    def draw(hired: dict[str, Any]) -> None:
        agent, approval = hired["agent"], hired["approval"]
        if approval is None:
            output.say(f"{agent['name']} is {agent['status']} and can be given work.")
            output.say(f'  remit send {agent["name"]} "…"')
            return
        output.say(f"{agent['name']} waits for approval.")
        output.say(f"  remit approval show {agent['name']}")

    session.show(answer, draw)
    setup_note.tell(session, answer["agent"])


@click.command(
    "set",
    cls=Command,
    help=f"""Change an agent's configuration.

    Keys are {_KEYS}; adapterConfig.KEY=VALUE changes one setting in it. A file holds them as JSON.
    """,
)
@click.argument("name")
@click.argument("changes", nargs=-1, metavar="KEY=VALUE|FILE…", required=True)
@click.option("--revision", type=click.IntRange(min=1), help="Only if it still is at this one.")
@click.option("--propose", is_flag=True, help="Ask for it instead of doing it.")
@click.option("--reason", default="", help="Why, if it is a proposal.")
@pass_session
def set_(
    session: Session,
    name: str,
    changes: tuple[str, ...],
    revision: int | None,
    propose: bool,
    reason: str,
) -> None:
    agent = session.agent_id(name)
    body: dict[str, Any] = {}
    for change in changes:
        _add(session, agent, body, change)
    if revision is not None:
        body["expectedRevision"] = revision
    if not propose:
        answer = session.client.send("PATCH", path("agents", agent), body)
        said = f"is at revision {answer['configRevision']}" if "configRevision" in answer else ""
        session.show(answer, lambda one: output.say(f"{one['name']} {said}."))
        if {"adapterType", "adapterConfig"} & body.keys():
            setup_note.tell(session, answer)
        return
    target = path("agents", agent, "config-proposals")
    answer = session.client.send("POST", target, {**body, "reason": reason})

    def draw(proposed: dict[str, Any]) -> None:
        if proposed["approval"] is None:
            output.say(f"{proposed['agent']['name']} was changed.")
        else:
            output.say("It waits for approval.")
            output.say(f"  remit approval show {short(proposed['approval']['id'])}")

    session.show(answer, draw)


@click.command(cls=Command)
@click.argument("name")
@click.option("--hire", "may_hire", type=bool, metavar="yes|no", help="Whether it may hire.")
@click.option("--level", type=click.Choice(LEVELS), help="A bundle of what it may do.")
@pass_session
def permissions(session: Session, name: str, may_hire: bool | None, level: str | None) -> None:
    """Show or change what an agent is permitted."""
    agent = session.agent_id(name)
    if may_hire is not None and level is not None:
        raise click.UsageError("--hire and --level exclude each other.")
    if may_hire is not None:
        body: dict[str, Any] = {"canCreateAgents": may_hire}
        answer = session.client.send("PATCH", path("agents", agent, "permissions"), body)
    elif level is not None:
        body = {"permissionLevel": level}
        answer = session.client.send("PATCH", path("agents", agent, "permission-level"), body)
    else:
        answer = session.client.get(path("agents", agent))

    def draw(one: dict[str, Any]) -> None:
        may = (one.get("permissions") or {}).get("canCreateAgents")
        if may is None:
            output.say(f"You may not see what {one['name']} is permitted.")
            return
        output.say(
            f"{one['name']} may {'' if may else 'not '}hire; level {one['permissionLevel']}."
        )

    session.show(answer, draw)


@click.command(cls=Command)
@click.argument("name")
@click.argument("reason", default="")
@pass_session
def wake(session: Session, name: str, reason: str) -> None:
    """Send an agent mail that says why, so that it is started."""
    target = path("agents", session.agent_id(name), "wakeup")
    answer = session.client.send("POST", target, {"reason": reason})
    session.show(answer, lambda one: output.say(f"{one['name']} has mail and will look at it."))


COMMANDS: tuple[click.Command, ...] = (hire, set_, permissions, wake)


def json_object(text: str, option: str = "--config") -> dict[str, Any]:
    try:
        found = json.loads(_text_or_file(text, option))
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise click.BadParameter("it must be a JSON object", param_hint=option)
    return found


def _text_or_file(text: str, option: str) -> str:
    """Return the text, or the content of the file that `@PATH` names."""
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).read_text()
    except UnicodeDecodeError:
        raise click.BadParameter("the file is not UTF-8 text", param_hint=option) from None


def _add(session: Session, agent: str, body: dict[str, Any], change: str) -> None:
    """Add one KEY=VALUE change, or a JSON file of changes, to the body."""
    key, sign, value = change.partition("=")
    if not sign:
        body.update(json_object("@" + change, change))
        return
    whole, dot, inner = key.partition(".")
    holds = _BY_KEY[whole].holds if whole in _BY_KEY else None
    if dot and holds is Holds.DOCUMENT:
        if whole not in body:
            shown = session.client.get(path("agents", agent, "configuration"))
            body[whole] = shown[whole]  # masked secrets are sent back as shown, and stay
        body[whole] = {**body[whole], inner: _loose(value)}
    elif dot or holds is None:
        known = ", ".join(sorted(_BY_KEY))
        raise click.UsageError(f"{key!r} is not a setting of an agent; there are {known}.")
    elif holds is Holds.DOCUMENT:
        body[key] = json_object(value, key)
    elif holds is Holds.AMOUNT:
        body[key] = _loose(value)
    else:
        body[key] = _text_or_file(value, key)


def _loose(value: str) -> Any:
    """Parse a value as JSON; if it is none, return the text itself."""
    try:
        return json.loads(value)
    except ValueError:
        return value
