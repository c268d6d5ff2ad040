"""`remit outcome`: outcomes, their owners and their state."""

from collections.abc import Iterator
from typing import Any

import click

from remit.entrypoints.cli import following
from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.commands.company.hiring import json_object
from remit.entrypoints.cli.commands.work.outcome_graph import graph
from remit.entrypoints.cli.drawing import outcome_view as view
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.following import watch_option
from remit.entrypoints.cli.options import Group, Session, limit_option, pass_session
from remit.ids import short
from remit.model.text import plural

id_argument = click.argument("id_", metavar="ID")


@click.group(cls=Group)
def outcome() -> None:
    """Outcomes, such as an agent's mandate.

    An outcome is named by its id or its title, and a mandate also by its agent's name.
    """


@outcome.command("list")
@click.option("--owner", metavar="AGENT", help="Only what this agent owns.")
@click.option("--status", type=click.Choice(["open", "completed", "closed"]))
@click.option("--actionable", is_flag=True, help="Only what the owner can work on now.")
@click.option("--stale", is_flag=True, help="Only what does not move.")
@limit_option
@watch_option
@pass_session
def list_(
    session: Session,
    owner: str | None,
    status: str | None,
    actionable: bool,
    stale: bool,
    limit: int,
    watch: bool,
) -> None:
    """List outcomes: the company's, or your own if you are an agent."""
    target = session.under_company("outcomes")
    wanted = {
        "owner": session.agent_id(owner) if owner else None,
        "status": status,
        "actionable": "1" if actionable else None,
        "stale": "1" if stale else None,
    }
    following.show(
        session,
        lambda: session.listed(target, limit, **wanted),
        lambda all_: view.draw_list(session, all_, "There are no outcomes."),
        watch=watch,
    )


@outcome.command()
@click.argument("id_", metavar="[ID]", required=False)
@click.option("--depth", type=click.IntRange(0, 100), help="So many levels below.")
@click.option("--open", "open_only", is_flag=True, help="Only what is not finished.")
@click.option("--ids", is_flag=True, help="With whole ids.")
@pass_session
def tree(session: Session, id_: str | None, depth: int | None, open_only: bool, ids: bool) -> None:
    """Draw what consists of what; everything, or what is below one."""
    forest = view.fetch_forest(session, id_, depth)
    if open_only:
        forest = [node for node in map(view.only_open, forest) if node is not None]

    def draw(roots: list[dict[str, Any]]) -> None:
        if not roots:
            output.say("There are no outcomes.")
        elif id_ is None and len(roots) > 1:
            below = None if depth is None else depth + 1
            view.draw_tree(session, session.company["name"], roots, below, ids=ids)
        else:
            view.draw_tree(session, None, roots, depth, ids=ids)

    session.show(forest, draw)


outcome.shows(
    *("outcomes", "ID", view.outcome_id, view.draw_whole),
    "Show one outcome: why, how, and what happened to it.",
)


@outcome.command()
@click.argument("title")
@click.option(
    "--parent", metavar="ID", required=True, help="Outcome that it is a part of, or an agent."
)
@click.option("--also", metavar="ID", multiple=True, help="Other outcomes that it is for.")
@click.option("--blocked-by", metavar="ID", multiple=True, help="Outcomes that it waits for.")
@click.option("--description", default="", help="More about it, in Markdown.")
@click.option("--urgent", is_flag=True, help="It is urgent.")
@click.option("--important", is_flag=True, help="It is important.")
@click.option("--defer", metavar="TIME", help="Not before this time (ISO 8601).")
@pass_session
def create(
    session: Session,
    title: str,
    parent: str,
    also: tuple[str, ...],
    blocked_by: tuple[str, ...],
    description: str,
    urgent: bool,
    important: bool,
    defer: str | None,
) -> None:
    """Create a part of an outcome."""
    body = {
        "parentId": view.outcome_id(session, parent),
        "title": title,
        "description": description,
        "parents": [view.outcome_id(session, other) for other in also],
        "blockedBy": [view.outcome_id(session, other) for other in blocked_by],
        "urgent": urgent,
        "important": important,
        "deferredUntil": defer,
    }
    answer = session.client.send("POST", session.under_company("outcomes"), body)
    session.done(answer, _created(session, answer), lambda one: view.draw(session, one))


def _created(session: Session, one: dict[str, Any]) -> Iterator[str]:
    id_, owner = short(one["id"]), session.agent_name(one["ownerId"])
    yield f"Created {id_}: {one['title']} ({view.status(one)}), which {owner} owns."
    yield f"Next: remit outcome delegate {id_} --to AGENT, or leave it to {owner}"


@outcome.command()
@id_argument
@click.option("--title", help="A new title.")
@click.option("--description", help="A new description, in Markdown.")
@click.option("--urgent/--not-urgent", default=None, help="Whether it is urgent.")
@click.option("--important/--not-important", default=None, help="Whether it is important.")
@click.option("--defer", metavar="TIME|never", help="Not before this time, or no longer deferred.")
@click.option(
    "--parent", metavar="ID", multiple=True, help="Outcomes that it is for, instead of before."
)
@click.option(
    "--blocked-by", metavar="ID", multiple=True, help="Outcomes that it waits for, instead."
)
@click.option("--unblock", is_flag=True, help="It waits for nothing any more.")
@click.option("--version", type=int, help="Only if this is its version; otherwise whichever is.")
@pass_session
def update(
    session: Session,
    /,
    id_: str,
    parent: tuple[str, ...],
    blocked_by: tuple[str, ...],
    unblock: bool,
    defer: str | None,
    version: int | None,
    **given: Any,
) -> None:
    """Change what an outcome is, how it ranks, what it is for or waits for."""
    if unblock and blocked_by:
        raise click.UsageError("--unblock and --blocked-by exclude each other.")
    body = {name: value for name, value in given.items() if value is not None}
    if parent:
        body["parents"] = [view.outcome_id(session, other) for other in parent]
    if blocked_by or unblock:
        body["blockedBy"] = [view.outcome_id(session, other) for other in blocked_by]
    if defer is not None:
        body["deferredUntil"] = None if defer == "never" else defer
    if not body:
        raise click.UsageError("Nothing is to be changed.")
    target = path("outcomes", view.outcome_id(session, id_))
    body["version"] = session.client.get(target)["version"] if version is None else version
    answer = session.client.send("PATCH", target, body)
    said = [f"Changed {short(answer['id'])}: {answer['title']} ({view.status(answer)})."]
    session.done(answer, said, lambda one: view.draw(session, one))


@outcome.command()
@id_argument
@click.option("--to", metavar="AGENT", help="A report of its owner.")
@click.option("--hire", metavar="NAME", help="Or a new agent of this name.")
@click.option("--role", help="The new agent's role.")
@click.option("--title", help="Name of the new agent.")
@click.option("--adapter", help="How the new agent is executed.")
@click.option("--config", metavar="JSON", help="Settings of the adapter.")
@click.option("--prompt", help="Instructions for the new agent.")
@click.option(
    "--grant",
    nargs=2,
    metavar="RESOURCE LEVEL",
    multiple=True,
    help="Capabilities that it will need.",
)
@click.option("--budget", type=click.IntRange(min=1), help="Cents, set aside for it.")
@click.option("--tokens", type=click.IntRange(min=1), help="Tokens, set aside for it.")
@pass_session
def delegate(
    session: Session,
    /,
    id_: str,
    to: str | None,
    hire: str | None,
    config: str | None,
    adapter: str | None,
    grant: tuple[tuple[str, str], ...],
    budget: int | None,
    tokens: int | None,
    **given: str | None,
) -> None:
    """Hand an outcome to a report, or to an agent that is hired for it."""
    if (to is None) == (hire is None):
        raise click.UsageError("Give either --to or --hire.")
    fields: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if adapter is not None:
        fields["adapterType"] = adapter
    if config is not None:
        fields["adapterConfig"] = json_object(config)
    if to is not None and fields:
        raise click.UsageError("Only a new agent (--hire) is described.")
    body: dict[str, Any] = {
        "grants": [{"resource": resource, "level": level} for resource, level in grant]
    }
    if budget is not None or tokens is not None:
        body["budget"] = {"moneyCents": budget, "tokens": tokens}
    body |= {"to": session.agent_id(to)} if to is not None else {"hire": {"name": hire, **fields}}
    target = path("outcomes", view.outcome_id(session, id_), "delegate")

    def draw(answer: dict[str, Any]) -> None:
        moved = answer["moved"]
        along = f", with {moved} below it" if moved else ""
        name, approval = answer["agent"]["name"], answer["approval"]
        if approval is not None:
            output.say(f"{name} takes it over once the hire is approved.")
            output.say(f"  remit approval show {name}")
        else:
            output.say(f"{name} is responsible for it{along}.")
        if session.verbose:
            view.draw(session, answer["outcome"])

    session.show(session.client.send("POST", target, body), draw)


@outcome.command()
@id_argument
@click.argument("reason")
@pass_session
def reclaim(session: Session, id_: str, reason: str) -> None:
    """Take a delegated outcome back by force; the agents below it stop."""
    target = path("outcomes", view.outcome_id(session, id_), "reclaim")
    answer = session.client.send("POST", target, {"reason": reason})

    def draw(answer: dict[str, Any]) -> None:
        names = view.owner_names(session)
        gone = ", ".join(names.get(agent, agent) for agent in answer["agents"]) or "nobody"
        output.say(f"Reclaimed; shut down: {gone}.")
        output.say(f"Handover: `remit kb cat {short(answer['handoverFileId'])}`.")
        if session.verbose:
            view.draw(session, answer["outcome"])

    session.show(answer, draw)


#: Words, in the singular, for what is restored with an agent.
_THINGS = {
    "bindings": "channel",
    "jobs": "background job",
    "letters": "letter",
    "schedules": "schedule",
    "unsent": "unsent message",
    "waits": "wait",
}


def _consequences(one: dict[str, Any]) -> list[str]:
    """Sentences about the agents and things that ended or were restored."""
    said = []
    if one.get("agentsEnded"):
        first, *below = (agent["name"] for agent in one["agentsEnded"])
        more = f" and {len(below)} below" if below else ""
        them = "them" if below else "it"
        back = f"`remit outcome reopen {short(one['id'])}` brings {them} back"
        said.append(f"Ends {first}{more}; {back}.")
    if one.get("agentsRestored"):
        names = ", ".join(agent["name"] for agent in one["agentsRestored"])
        said.append(f"Back at work: {names}, with new credentials and a new session.")
    if one.get("thingsRestored"):
        counted = (plural(n, _THINGS[what]) for what, n in one["thingsRestored"].items())
        said.append(f"Also back: {', '.join(counted)}.")
    said += one.get("staysEnded", ())
    said += [f"{gone['name']} stays ended: {gone['why']}." for gone in one.get("notRestored", ())]
    return said


outcome.add_command(graph)
outcome.draw, outcome.more = view.draw, _consequences
