"""`remit agent`: agents, their tree and their keys."""

from __future__ import annotations

import json
from typing import Any

import click

from remit.entrypoints.cli import output, tokens
from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.options import Group, Session, limit_option, pass_session


@click.group(cls=Group)
def agent() -> None:
    """Agents and their keys."""


@agent.command("list")
@click.option("--all", "everybody", is_flag=True, help="Terminated agents, too.")
@limit_option
@pass_session
def list_(session: Session, everybody: bool, limit: int) -> None:
    """List the agents of the company."""
    found = session.listed(
        session.under_company("agents"), limit, terminated="true" if everybody else None
    )

    def draw(agents: list[dict[str, Any]]) -> None:
        ids = output.short_ids(one["id"] for one in agents)
        names = {one["id"]: one["name"] for one in agents}
        rows = [
            (
                one["name"],
                one["role"],
                one["title"],
                one["status"],
                names.get(one["reportsTo"], one["reportsTo"] or "board"),
                one["adapterType"],
                ids[one["id"]],
            )
            for one in agents
        ]
        columns = ("name", "role", "title", "status", "boss", "adapter", "id")
        output.table(columns, rows, empty="The company has no agents.")

    session.show(found, draw)


@agent.command()
@pass_session
def tree(session: Session) -> None:
    """Draw who reports to whom."""
    reports: dict[str | None, list[dict[str, Any]]] = {}
    known = {one["id"] for one in session.agents}
    for one in session.agents:
        # Whoever may see only a part of the tree sees it hang from the top.
        boss = one["reportsTo"] if one["reportsTo"] in known else None
        reports.setdefault(boss, []).append(one)

    def nested(boss: str | None) -> list[dict[str, Any]]:
        return [{**one, "reports": nested(one["id"])} for one in reports.get(boss, [])]

    def draw(forest: list[dict[str, Any]]) -> None:
        output.say(session.company["name"])
        if not forest:
            output.say("  The company has no agents.")
        _draw_branch(forest, "")

    session.show(nested(None), draw)


def _draw_branch(branch: list[dict[str, Any]], indent: str) -> None:
    for one in branch:
        last = one is branch[-1]
        title = f", {one['title']}" if one["title"] else ""
        print(
            f"{indent}{'└── ' if last else '├── '}"
            + output.clean(f"{one['name']} ({one['role']}{title}) {one['status']}")
        )
        _draw_branch(one["reports"], indent + ("    " if last else "│   "))


@agent.command()
@click.argument("name")
@pass_session
def show(session: Session, name: str) -> None:
    """Show one agent, by name or id."""
    found = session.client.get(path("agents", session.agent_id(name)))
    session.show(found, lambda one: _draw(session, one))


@agent.command()
@click.argument("name")
@click.option("--role", default="general", show_default=True, help="Such as engineer or pm.")
@click.option("--title", default="", help="What it is called.")
@click.option("--boss", metavar="AGENT", help="Whom it reports to; you, if left out.")
@click.option("--adapter", default="human", show_default=True, help="How it is executed.")
@click.option("--config", metavar="JSON", help="Settings of the adapter.")
@click.option("--purpose", metavar="TEXT", help="The outcome it is responsible for.")
@pass_session
def create(
    session: Session,
    name: str,
    role: str,
    title: str,
    boss: str | None,
    adapter: str,
    config: str | None,
    purpose: str | None,
) -> None:
    """Create an agent, as the board."""
    body: dict[str, Any] = {"name": name, "role": role, "title": title, "adapterType": adapter}
    if boss is not None:
        body["reportsTo"] = session.agent_id(boss)
    if config is not None:
        body["adapterConfig"] = _json_object(config)
    if purpose is not None:
        body["purpose"] = purpose
    made = session.client.send("POST", session.under_company("agents"), body)
    session.show(made, lambda one: _draw(session, one))


@agent.command()
@click.argument("name")
@pass_session
def terminate(session: Session, name: str) -> None:
    """End an agent; its history stays."""
    target = path("agents", session.agent_id(name), "terminate")
    answer = session.client.send("POST", target)
    session.show(answer, lambda one: output.say(f"{one['name']} is terminated."))


@agent.command()
@click.argument("name")
@tokens.token_options
@pass_session
def token(session: Session, /, name: str, **options: Any) -> None:
    """Make a key for an agent; it is shown once."""
    tokens.carry_out(session, path("agents", session.agent_id(name), "keys"), **options)


def _json_object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise click.BadParameter("it must be a JSON object", param_hint="--config")
    return found


def _draw(session: Session, one: dict[str, Any]) -> None:
    boss = one["reportsTo"]
    output.fields(
        {
            "name": one["name"],
            "id": one["id"],
            "role": one["role"],
            "title": one["title"],
            "status": one["status"],
            "boss": session.agent_name(boss) if boss else "board",
            "adapter": one["adapterType"],
            "created": output.when(one["createdAt"]),
            "updated": output.when(one["updatedAt"]),
        }
    )
