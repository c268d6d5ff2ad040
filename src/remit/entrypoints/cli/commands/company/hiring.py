"""`remit agent hire|set|permissions|wake`: hiring and configuration of agents."""

import json
from collections.abc import Callable
from typing import Any

import click

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command, F, option, stated, together
from remit.entrypoints.cli.parameters import (
    ADAPTER,
    AGENT,
    JSON,
    TEXT,
    Whole,
    json_object,
    text_or_file,
)
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import RemitError
from remit.ids import short
from remit.model.organisation.agent_spec import CONFIGURED, Field, Holds

_INLINE = {"JSON|@FILE": JSON, "TEXT|@FILE": TEXT}
LEVELS = ("restricted", "standard", "privileged", "boss")
_BY_KEY = {field.key: field for field in CONFIGURED}
_KEYS = ", ".join([*_BY_KEY][:-1]) + f" and {[*_BY_KEY][-1]}"


def _option(field: Field) -> Callable[[F], F]:
    """The option that sets a field of the description; its parameter is the field's key."""
    more: dict[str, Any] = {}
    if field.holds is Holds.ROLE:
        more = {"default": field.default, "show_default": True}
    elif field.holds is Holds.AMOUNT:
        more = {"type": Whole(min=0)}
    elif field.key == "adapterType":
        more = {"type": ADAPTER}
    part = field.part
    if part.metavar in _INLINE:
        more = {"type": _INLINE[part.metavar]}
    return click.option(part.option, field.key, metavar=part.metavar, help=part.help, **more)


#: Options that describe a new agent, for `create` and `hire` alike.
description_options = together(
    click.argument("name"),
    *(_option(field) for field in CONFIGURED if field.part.option),
    option("--boss AGENT", "The boss it reports to; you, if left out.", field="reportsTo"),
    option("--purpose TEXT", "The outcome it is responsible for."),
    option("--once", "The purpose can be accomplished: it is worked on at once, and then done."),
    option("--level", "Permission level.", field="permissionLevel", type=click.Choice(LEVELS)),
)


def described(options: View) -> View:
    """Build the request body from the description options."""
    body = stated(options)
    if body.pop("once"):
        if "purpose" not in body:
            raise click.UsageError("--once needs a --purpose.")
        body["perpetual"] = False
    return body


@click.command(
    cls=Command,
    examples=(
        'remit agent hire writer --boss ceo --prompt "Write pages."',
        "remit agent hire writer --adapter claude --budget 2000",
    ),
)
@description_options
@option("--outcome ID", "Hand this outcome to it.", field="outcomeId")
@option("--reason TEXT", "Reason for the hire, for whoever approves it.")
def hire(session: Session, /, **options: Any) -> None:
    """Request a new agent; it waits for approval if the company requires that."""
    body = described(options)
    answer = session.client.send("POST", session.under_company("agent-hires"), body)

    def draw(hired: View) -> None:
        agent, approval = hired["agent"], hired["approval"]
        if approval is None:
            output.say(f"{agent['name']} is {agent['status']} and can be given work.")
            output.say(f'  remit send {agent["name"]} "…"')
            return
        output.say(f"{agent['name']} waits for approval.")
        output.say(f"  remit approval show {agent['name']}")

    session.show(answer, draw)
    note_warning(answer)
    note_missing(session, answer["agent"])


@click.command(
    "set",
    cls=Command,
    help=f"""Change an agent's configuration.

    Keys are {_KEYS}; adapterConfig.KEY=VALUE changes one setting in it. A file holds them as JSON.
    """,
    examples=(
        "remit agent set writer title=Editor budgetMonthlyCents=2000",
        "remit agent set writer adapterType=claude adapterConfig.model=opus",
        "remit agent set writer settings.json --propose",
    ),
)
@click.argument("name", type=AGENT)
@click.argument("changes", nargs=-1, metavar="KEY=VALUE|FILE…", required=True)
@option("--revision", "Only if it is still at this revision.", type=Whole(min=1))
@option("--propose", "Ask for it instead of doing it.")
@option("--reason TEXT", "Why, if it is a proposal.", default="")
def set_(
    session: Session,
    name: str,
    changes: tuple[str, ...],
    revision: int | None,
    propose: bool,
    reason: str,
) -> None:
    body: dict[str, Any] = {}
    for change in changes:
        _add(session, name, body, change)
    if revision is not None:
        body["expectedRevision"] = revision
    if not propose:
        answer = session.client.send("PATCH", path("agents", name), body)
        predicate = (
            f"is at revision {answer['configRevision']}" if "configRevision" in answer else ""
        )
        session.show(answer, lambda view: output.say(f"{view['name']} {predicate}."))
        note_warning(answer)
        if {"adapterType", "adapterConfig"} & body.keys():
            note_missing(session, answer)
        return
    target = path("agents", name, "config-proposals")
    answer = session.client.send("POST", target, {**body, "reason": reason})

    def draw(proposed: View) -> None:
        if proposed["approval"] is None:
            output.say(f"{proposed['agent']['name']} was changed.")
        else:
            output.say("It waits for approval.")
            output.say(f"  remit approval show {short(proposed['approval']['id'])}")

    session.show(answer, draw)


@click.command(cls=Command)
@click.argument("name", type=AGENT)
@option("--hire yes|no", "Whether it may hire.", field="may_hire")
@option("--level", "Its permission level.", type=click.Choice(LEVELS))
def permissions(session: Session, name: str, may_hire: bool | None, level: str | None) -> None:
    """Show or change what an agent is permitted."""
    if may_hire is not None and level is not None:
        raise click.UsageError("--hire and --level exclude each other.")
    if may_hire is not None:
        body: dict[str, Any] = {"canCreateAgents": may_hire}
        answer = session.client.send("PATCH", path("agents", name, "permissions"), body)
    elif level is not None:
        body = {"permissionLevel": level}
        answer = session.client.send("PATCH", path("agents", name, "permission-level"), body)
    else:
        answer = session.client.get(path("agents", name))

    def draw(view: View) -> None:
        may = (view.get("permissions") or {}).get("canCreateAgents")
        if may is None:
            output.say(f"You may not see what {view['name']} is permitted.")
            return
        output.say(
            f"{view['name']} may {'' if may else 'not '}hire; level {view['permissionLevel']}."
        )

    session.show(answer, draw)


@click.command(
    cls=Command,
    examples=('remit agent wake writer "The brief has changed."',),
)
@click.argument("name", type=AGENT)
@click.argument("reason", default="")
def wake(session: Session, name: str, reason: str) -> None:
    """Send an agent mail that says why, so that it is started."""
    answer = session.client.send("POST", path("agents", name, "wakeup"), {"reason": reason})

    def draw(view: View) -> None:
        why_not = view.get("notStarted")
        output.say(
            f"{view['name']} has mail. {output.timed(why_not)}"
            if why_not
            else f"{view['name']} has mail and will look at it."
        )

    session.show(answer, draw)


COMMANDS: tuple[click.Command, ...] = (hire, set_, permissions, wake)


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
        body[key] = text_or_file(value, key)


def _loose(value: str) -> Any:
    """Parse a value as JSON; if it is none, return the text itself."""
    try:
        return json.loads(value)
    except ValueError:
        return value


def note_warning(answer: View) -> None:
    """Warn that a budget of money does not hold an agent."""
    if answer.get("warning"):
        output.note(f"warning: {answer['warning']}")


def note_missing(session: Session, agent: View) -> None:
    """Warn about a missing program, key or option now, not when the first mail arrives."""
    type_ = agent.get("adapterType")
    if type_ is None or type_ in ("human", "scripted"):
        return
    target = session.under_company("adapters", type_, "test-environment")
    try:
        check = session.client.send("POST", target, {"agentId": agent["id"]})
    except RemitError:
        return  # it is set up; a caller who may not test it gets no warning
    if not check["usable"]:
        warn(agent["name"], check)


def warn(name: str, check: View) -> None:
    about = "" if check.get("about") == "budget" else " cannot work yet"
    output.note(f"warning: {name}{about}: {check['sentence']}")
    output.note(f"  next: {check['nextStep']}")
