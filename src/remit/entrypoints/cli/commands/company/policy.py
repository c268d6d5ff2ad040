"""`remit company policy`: what the permission levels bundle."""

from typing import Any

import click

from remit.entrypoints.cli.commands.company.hiring import LEVELS
from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.options import Group, Session, option, stated

_CREATES = {"yes": True, "no": False, "default": None}
_SAYS = {None: "the CEO may", True: "yes", False: "no"}


policy = Group("policy", help="Permission levels, and the actions that each bundles.")


@policy.command("set")
@click.argument("level", type=click.Choice(LEVELS))
@option(
    "--create-agents",
    "Whether it hires; default: the CEO alone.",
    type=click.Choice(sorted(_CREATES)),
)
@option("--allow ACTION…", "All that it allows; repeat it.")
@option("--deny ACTION…", "All that it denies; repeat it.")
@option("--no-allow", "It allows nothing.")
@option("--no-deny", "It denies nothing.")
@option("--governs nobody|below|company", "Over whom the level boss has a say.")
@option("--shipped", "As Remit ships it, instead.")
def set_(
    session: Session, /, level: str, create_agents: str | None, shipped: bool, **given: Any
) -> None:
    """Change what a permission level bundles; whoever has the level follows."""
    nothing: dict[str, Any] = {name: [] for name in ("allow", "deny") if given.pop(f"no_{name}")}
    body = nothing | stated(given) | ({"shipped": True} if shipped else {})
    if create_agents is not None:
        body["canCreateAgents"] = _CREATES[create_agents]
    if not body:
        raise click.UsageError("Nothing is to be changed.")
    target = session.under_company("permission-policy")
    done = session.client.send("PATCH", target, {"level": level, **body})

    def draw(one: dict[str, Any]) -> None:
        _draw(session, one)
        if one["agentsChanged"]:
            output.say(f"Changed with it: {', '.join(one['agentsChanged'])}.")

    session.show(done, draw)


def _draw(session: Session, one: dict[str, Any]) -> None:
    levels = [{"level": level, **said} for level, said in one["levels"].items()]
    cells.table(
        *(session, levels, "level"),
        ("creates agents", lambda _, said: _SAYS[said["canCreateAgents"]]),
        ("allows", lambda _, said: ", ".join(said["allow"]) or "-"),
        ("denies", lambda _, said: ", ".join(said["deny"]) or "-"),
        *("governs", "agents", ("", lambda _, said: "" if said["shipped"] else "changed")),
        empty="There are no levels.",
    )


policy.draw = _draw
