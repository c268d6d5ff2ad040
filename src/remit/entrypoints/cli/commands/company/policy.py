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
    session: Session, /, level: str, create_agents: str | None, shipped: bool, **options: Any
) -> None:
    """Change what a permission level bundles; whoever has the level follows."""
    nothing: dict[str, Any] = {name: [] for name in ("allow", "deny") if options.pop(f"no_{name}")}
    body = nothing | stated(options) | ({"shipped": True} if shipped else {})
    if create_agents is not None:
        body["canCreateAgents"] = _CREATES[create_agents]
    if not body:
        raise click.UsageError("Nothing is to be changed.")
    target = session.under_company("permission-policy")
    done = session.client.send("PATCH", target, {"level": level, **body})

    def draw(view: dict[str, Any]) -> None:
        _draw(session, view)
        if view["agentsChanged"]:
            output.say(f"Changed with it: {', '.join(view['agentsChanged'])}.")

    session.show(done, draw)


def _draw(session: Session, view: dict[str, Any]) -> None:
    levels = [{"level": level, **bundle} for level, bundle in view["levels"].items()]
    cells.table(
        *(session, levels, "level"),
        ("creates agents", lambda _, row: _SAYS[row["canCreateAgents"]]),
        ("allows", lambda _, row: ", ".join(row["allow"]) or "-"),
        ("denies", lambda _, row: ", ".join(row["deny"]) or "-"),
        *("governs", "agents", ("", lambda _, row: "" if row["shipped"] else "changed")),
        empty="There are no levels.",
    )


policy.draw = _draw
