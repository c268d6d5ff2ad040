"""`remit agent`: agents, their tree and their keys."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import click

from remit.entrypoints.cli import following, tokens
from remit.entrypoints.cli.commands.company import budget as budgets
from remit.entrypoints.cli.commands.company import hiring, lending
from remit.entrypoints.cli.drawing import cells, output, reorganisation, run_view, trees
from remit.entrypoints.cli.following import watch_option
from remit.entrypoints.cli.options import Group, limit_option, option
from remit.entrypoints.cli.parameters import AGENT, AGENT_NAME, BOSS, Whole
from remit.entrypoints.cli.session import Session, View, path
from remit.ids import short
from remit.model.connections.diff import visible

name_argument = click.argument("name", type=AGENT)

depth_option = option("--depth", "So many levels; everything otherwise.", type=Whole(min=1))


agent = Group("agent", help="Agents and their keys.")


@agent.command("list")
@option("--all", "Include terminated agents.", field="everybody")
@limit_option
@watch_option
def list_(session: Session, everybody: bool, limit: int, watch: bool) -> None:
    """List the agents of the company."""

    def draw(agents: list[View]) -> None:
        names = {row["id"]: row["name"] for row in agents}
        cells.table(
            *(session, agents, "name", "role", "title", "status"),
            ("boss", lambda _, row: names.get(row["reportsTo"], row["reportsTo"] or "board")),
            *("adapter: {adapterType}", "id: {id:short}"),
            empty="The company has no agents.",
        )

    target, every = session.under_company("agents"), "true" if everybody else None
    following.show(session, draw, target, limit, watch=watch, terminated=every)


@agent.command()
@depth_option
def tree(session: Session, depth: int | None) -> None:
    """Draw who reports to whom."""
    forest = session.client.get(session.under_company("org"))
    session.show(forest, lambda all_: trees.draw_agents(session.company["name"], all_, depth))


@agent.command(
    examples=(
        "remit agent create researcher --boss ceo --adapter claude",
        "remit agent create translator --boss ceo --prompt @brief.md",
    ),
)
@hiring.description_options
def create(session: Session, /, **options: Any) -> None:
    """Create an agent directly, as the board; nobody is asked.

    It is started by mail and by outcomes, not by being created.
    """
    body = hiring.described(options)
    new_agent = session.client.send("POST", session.under_company("agents"), body)
    session.done(new_agent, _created(session, new_agent), partial(_draw, session))
    hiring.note_warning(new_agent)
    hiring.note_missing(session, new_agent)


def _created(session: Session, new_agent: View) -> Iterator[str]:
    boss = session.agent_name(new_agent["reportsTo"]) if new_agent["reportsTo"] else "the board"
    name = new_agent["name"]
    if new_agent["adapterType"] == "human":
        yield f"Agent {name} created: a person's seat that reports to {boss}."
        if not new_agent["seatUserId"]:
            yield f"Next: remit org seat {name} --user NAME"
        return
    yield f"Agent {name} created: it reports to {boss} and is run by {new_agent['adapterType']}."
    yield f'Next: remit send {name} "…", or give it an outcome'


@agent.command()
@name_argument
@option("--subtree", "Everybody below it, too, all or none.")
@option("--dry-run", "Only tell who and what would end.")
@option("--yes", "Do not ask for confirmation, with --subtree.")
def terminate(session: Session, name: str, subtree: bool, dry_run: bool, yes: bool) -> None:
    """End an agent; its history stays."""
    target = path("agents", name, "terminate")
    body = {"subtree": subtree, "dryRun": dry_run}

    def ask() -> str:
        _draw_ended(session.client.send("POST", target, {**body, "dryRun": True}))
        return "End all of them?"

    if subtree and not dry_run and not yes:
        session.confirm("terminate --subtree", ask, "Nobody was terminated.")
    session.show(session.client.send("POST", target, body), _draw_ended)


def _draw_ended(answer: View) -> None:
    preview = answer["dryRun"]
    if len(answer["agentsEnded"]) == 1:
        would = "would be" if preview else "is"
        output.say(f"{answer['name']} {would} terminated.")
    else:
        names = ", ".join(agent["name"] for agent in answer["agentsEnded"])
        would = "would end" if preview else "ended"
        output.say(f"{len(answer['agentsEnded'])} agents {would}: {names}.")
    for outcome in answer["outcomesMoved"]:
        output.say(f"  {outcome['title']} goes to {outcome['owner']}.")
    if preview:
        output.say(
            f"  {len(answer['outcomesClosed'])} outcomes would be closed. Nothing was changed."
        )


@agent.command()
@name_argument
@option("--dry-run", "Only tell what would change.")
def update(session: Session, name: str, dry_run: bool) -> None:
    """Apply the current settings and program of an agent, in a new session."""
    answer = session.client.send("POST", path("agents", name, "update"), {"dryRun": dry_run})

    def draw(view: View) -> None:
        if view["dryRun"]:
            output.say("This would change (nothing was changed):")
        for change in view["changes"]:
            was, now = (output.as_json(change.get(key), one_line=True) for key in ("was", "now"))
            before = f"{was} → " if "was" in change else ""
            output.say(f"  {change['path']}: {before}{now}")
        if not view["changes"]:
            output.say("Its settings stay as they are.")
        if view["approval"]:
            output.say(
                f"That waits for approval: remit approval show {short(view['approval']['id'])}"
            )
            return
        if view["runTold"]:
            output.say("Its run is told to save its state and end; it is started again afterwards.")
        if not view["dryRun"]:
            session_ended = "; its conversation ended" if view["sessionEnded"] else ""
            output.say(f"{view['name']} is at revision {view['revision']}{session_ended}.")

    session.show(answer, draw)


@agent.command()
@click.argument("name", type=AGENT_NAME)
@option("--yes", "Do not ask for confirmation.")
def purge(session: Session, name: str, yes: bool) -> None:
    """Delete for good what a terminated agent left; the record stays."""
    target = path("agents", session.agent_id_ever(name), "purge")
    if not yes:
        what = f"Remove the keys, memory, sessions and logs of {output.clean(name)} for good?"
        session.confirm("purge", lambda: what, "Nothing was removed.")
    session.change("POST", target, tells="{name} is purged.")


@agent.command()
@name_argument
def stop(session: Session, name: str) -> None:
    """End an agent's run, and start none until it is resumed."""
    stopped = "{name} is stopped; `remit resume {name}` lets it work again."
    session.change("POST", path("agents", name, "stop"), tells=stopped)


@agent.command(
    examples=("remit agent move writer ceo",),
)
@name_argument
@click.argument("boss", metavar="BOSS|board", type=BOSS)
@reorganisation.dry_run_option
def move(session: Session, name: str, boss: str, dry_run: bool) -> None:
    """Give an agent another boss; it brings along everybody below it."""
    reorganisation.move(session, name, boss, dry_run)


@agent.command()
@name_argument
@option("--printed", "Output of its newest run, instead.")
@option("--follow", "The same, and what it goes on to print.")
@limit_option
def logs(session: Session, name: str, printed: bool, follow: bool, limit: int) -> None:
    """Show the activity that an agent's runs reported, the newest first."""
    if printed or follow:
        run = run_view.run_id(session, session.agent_name(name))
        run_view.tail(session, run, go_on=follow)
        return
    log = session.listed(path("agents", name, "log"), limit)

    def draw(entries: list[View]) -> None:
        if not entries:
            output.say(
                "Its runs have reported no activity.",
                f"  remit agent logs {output.clean(name)} --printed   what the newest one printed",
            )
        for entry in entries:
            run = f"  run {entry['runId']}" if entry["runId"] else ""
            output.say(f"{output.when(entry['at'])}{run}")
            output.say(*(f"  {line}" for line in entry["summary"].splitlines()))

    session.show(log, draw)


@agent.command()
@name_argument
@tokens.token_options
def token(session: Session, /, name: str, **options: Any) -> None:
    """Make a key for an agent; it is shown once."""
    tokens.carry_out(session, path("agents", name, "keys"), **options)


for command in (*hiring.COMMANDS, budgets.budget, lending.lend):
    agent.add_command(command)


def _boss(session: Session, view: View) -> str:
    return session.agent_name(view["reportsTo"]) if view["reportsTo"] else "board"


def _draw(session: Session, view: View) -> None:
    cells.fields(
        *(session, view, "name", "id", "role", "title", "status", ("boss", _boss)),
        *("adapter: {adapterType}", "may hire: {permissions[canCreateAgents]:yes}"),
        *("level: {permissionLevel}", ("budget", budgets.in_words), "seat: {seatUserId:known}"),
        ("lent", lambda _, row: "; ".join(map(visible, row.get("lent", ())))),
        *("state: kb://{stateFileId}", "log: kb://{logFileId}"),
        *("created: {createdAt:when}", "updated: {updatedAt:when}"),
    )


agent.draw = _draw
