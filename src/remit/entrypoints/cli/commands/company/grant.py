"""`remit grant`: list, give and revoke capabilities of agents, and find unused ones."""

from collections.abc import Iterator
from typing import Any

import click

from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.commands.work.kb import file_id
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.drawing.letters import message_id
from remit.entrypoints.cli.drawing.outcome_view import outcome_id
from remit.entrypoints.cli.options import Group, Session, limit_option, pass_session
from remit.errors import BadInput
from remit.ids import normalise, short

grant = Group("grant", help="Capabilities that agents hold.")


@grant.command("list")
@click.option("--agent", metavar="AGENT", help="Only what this agent holds.")
@limit_option
@pass_session
def list_(session: Session, agent: str | None, limit: int) -> None:
    """List the grants in force; of one agent, also what it may without one."""
    holder = session.agent_id(agent) if agent else None
    found = session.listed(session.under_company("grants"), limit, agent=holder, derived="1")
    session.show(found, lambda grants: _draw_list(session, grants, "No grants are in force."))


@grant.command()
@click.argument("agent", required=False)
@click.argument("resource", required=False)
@click.argument("level", required=False)
@click.option("--request", metavar="ID", help="Give what this message asks for, and nothing else.")
@click.option(
    "--mode",
    type=click.Choice(["allow", "ask", "deny"]),
    help="Default: allow; ask for merge on a repository.",
)
@click.option("--scope", metavar="OUTCOME", help="It ends with this outcome; else the mandate.")
@click.option("--expires", metavar="TIME", help="Until when (ISO 8601).")
@click.option(
    "--path",
    "paths",
    metavar="PATTERN",
    multiple=True,
    help="Of a repository: only these files, such as 'src/**'. Repeatable.",
)
@click.option(
    "--branch",
    "branches",
    metavar="PATTERN",
    multiple=True,
    help="Of a repository: only into these branches. Repeatable.",
)
@pass_session
def give(
    session: Session,
    agent: str | None,
    resource: str | None,
    level: str | None,
    request: str | None,
    mode: str | None,
    scope: str | None,
    expires: str | None,
    paths: tuple[str, ...],
    branches: tuple[str, ...],
) -> None:
    """Give an agent a capability, such as `kb_file:ID read`."""
    if request is not None:
        if agent is not None or mode or scope or expires or paths or branches:
            raise click.UsageError("--request says all there is to say.")
        answer = session.client.send(
            "POST", path("messages", message_id(session, request), "grant")
        )
        session.done(answer, _given(session, answer), lambda one: _draw(session, one))
        return
    if agent is None or resource is None or level is None:
        raise click.UsageError("Missing argument: AGENT, RESOURCE and LEVEL, or --request.")
    what = _resource(session, resource)
    body: dict[str, Any] = {"to": session.agent_id(agent), "resource": what, "level": level}
    more = {"mode": mode, "paths": list(paths), "branches": list(branches)}
    body |= {key: value for key, value in more.items() if value}
    if scope:
        body["scope"] = outcome_id(session, scope)
    if expires:
        body["expiresAt"] = expires
    answer = session.client.send("POST", session.under_company("grants"), body)
    session.done(answer, _given(session, answer), lambda one: _draw(session, one))


def _resource(session: Session, text: str) -> str:
    """Replace the name of a file or an outcome in a resource by its id."""
    kind, colon, named = text.partition(":")
    if colon and kind == "kb_file":
        return f"{kind}:{file_id(session, named)}"
    return f"{kind}:{outcome_id(session, named)}" if colon and kind == "outcome" else text


def _given(session: Session, one: dict[str, Any]) -> Iterator[str]:
    name, what = session.agent_name(one["holderId"]), _called(session, one["resource"])
    has = "is denied" if one["mode"] == "deny" else "has"
    until = f" until {output.when(one['expiresAt'])}" if one["expiresAt"] else ""
    asks = ", and asks before each use" if one["mode"] == "ask" else ""
    yield f"{name} {has} {one['level']} on {what}{until}{asks}."
    yield f"  remit grant revoke {short(one['id'])}   takes it back"


def _called(session: Session, resource: str) -> str:
    """Return a resource for people: a message's agent by its name, other ids shortened."""
    kind, _, named = resource.partition(":")
    agent = session.names.get(named.removeprefix("agent:")) if kind == "message" else None
    return f"{kind}:agent:{agent}" if agent else output.shortened(resource)


@grant.command()
@click.argument("id_", metavar="ID")
@pass_session
def revoke(session: Session, id_: str) -> None:
    """Take a grant back, with everything passed on from it."""
    id_ = normalise(id_.removeprefix("grant:"))
    named = session.is_company_named
    target = session.under_company("grants", id_) if named else path("grants", id_)
    answer = session.client.send("DELETE", target)
    session.show(answer, lambda gone: output.say(f"Revoked {_count(len(gone['revoked']))}."))


@grant.command()
@click.option("--agent", metavar="AGENT", help="Only what this agent holds.")
@click.option("--revoke", "revoke_them", is_flag=True, help="Take them back.")
@click.option("--yes", is_flag=True, help="Do not ask before.")
@pass_session
def unused(session: Session, agent: str | None, revoke_them: bool, yes: bool) -> None:
    """List grants that were never used, and perhaps take them back."""
    holder = session.agent_id(agent) if agent else None
    found = list(session.client.each(session.under_company("grants"), agent=holder, unused="1"))
    if not revoke_them:
        empty = "Every grant in force has been used."
        session.show(found, lambda grants: _draw_list(session, grants, empty))
        return
    if found and not yes:
        if session.as_json:
            raise click.UsageError("--revoke with --json needs --yes.")
        _draw_list(session, found, "")
        if not click.confirm(f"Revoke {_count(len(found))}?", err=True):
            raise BadInput("Nothing was revoked.", "Repeat it with --yes if you are sure.")
    gone = _revoke_all(session, found)
    session.show({"revoked": gone}, lambda _: output.say(f"Revoked {_count(len(gone))}."))


def _revoke_all(session: Session, grants: list[dict[str, Any]]) -> list[str]:
    gone: dict[str, None] = {}
    for one in grants:
        if one["id"] not in gone:  # revoked already with the grant it was derived from
            answer = session.client.send("DELETE", path("grants", one["id"]))
            gone.update(dict.fromkeys(answer["revoked"]))
    return list(gone)


def _count(number: int) -> str:
    return f"{number} grant" if number == 1 else f"{number} grants"


def _draw_list(session: Session, grants: list[dict[str, Any]], empty: str) -> None:
    rows = [
        (
            session.names.get(one["holderId"], one["holderId"]),
            output.shortened(one["resource"]),
            one["level"],
            one["mode"],
            one.get("reason") or "",
            output.when(one.get("expiresAt")),
            "" if one.get("derived") else output.when(one["usedAt"]) or "never",
            "by rule" if one.get("derived") else short(one["id"]),
        )
        for one in grants
    ]
    columns = ("agent", "resource", "level", "mode", "why", "expires", "used", "id")
    output.table(columns, rows, empty=empty)


def _draw(session: Session, one: dict[str, Any]) -> None:
    output.fields(
        {
            "id": one["id"],
            "agent": session.agent_name(one["holderId"]),
            "resource": one["resource"],
            "level": one["level"],
            "mode": one["mode"],
            "scope": one["scope"],
            "expires": output.when(one["expiresAt"]),
            "paths": ", ".join(one.get("paths", ())) or None,
            "branches": ", ".join(one.get("branches", ())) or None,
        }
    )
