"""`remit company policy`: what the permission levels bundle."""

from typing import Any

import click

from remit.entrypoints.cli.commands.company.hiring import LEVELS
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Group, Session, pass_session

_CREATES = {"yes": True, "no": False, "default": None}
_SAYS = {None: "the CEO may", True: "yes", False: "no"}


policy = Group("policy", help="Permission levels, and the actions that each bundles.")


@policy.command("set")
@click.argument("level", type=click.Choice(LEVELS))
@click.option(
    "--create-agents",
    type=click.Choice(sorted(_CREATES)),
    help="Whether it hires; default: the CEO alone.",
)
@click.option("--allow", metavar="ACTION", multiple=True, help="All that it allows; repeat it.")
@click.option("--deny", metavar="ACTION", multiple=True, help="All that it denies; repeat it.")
@click.option("--no-allow", is_flag=True, help="It allows nothing.")
@click.option("--no-deny", is_flag=True, help="It denies nothing.")
@click.option(
    "--governs",
    type=click.Choice(["nobody", "below", "company"]),
    help="Over whom the level boss has a say.",
)
@click.option("--shipped", is_flag=True, help="As Remit ships it, instead.")
@pass_session
def set_(
    session: Session,
    level: str,
    create_agents: str | None,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    no_allow: bool,
    no_deny: bool,
    governs: str | None,
    shipped: bool,
) -> None:
    """Change what a permission level bundles; whoever has the level follows."""
    body: dict[str, Any] = {"shipped": True} if shipped else {}
    if create_agents is not None:
        body["canCreateAgents"] = _CREATES[create_agents]
    if allow or no_allow:
        body["allow"] = list(allow)
    if deny or no_deny:
        body["deny"] = list(deny)
    if governs is not None:
        body["governs"] = governs
    if not body:
        raise click.UsageError("Nothing is to be changed.")
    target = session.under_company("permission-policy")
    done = session.client.send("PATCH", target, {"level": level, **body})

    def draw(one: dict[str, Any]) -> None:
        _draw(one)
        if one["agentsChanged"]:
            output.say(f"Changed with it: {', '.join(one['agentsChanged'])}.")

    session.show(done, draw)


def _draw(one: dict[str, Any]) -> None:
    rows = [
        (
            level,
            _SAYS[said["canCreateAgents"]],
            ", ".join(said["allow"]) or "-",
            ", ".join(said["deny"]) or "-",
            said["governs"],
            str(said["agents"]),
            "" if said["shipped"] else "changed",
        )
        for level, said in one["levels"].items()
    ]
    columns = ("level", "creates agents", "allows", "denies", "governs", "agents", "")
    output.table(columns, rows, empty="There are no levels.")


policy.draw = lambda _, one: _draw(one)
