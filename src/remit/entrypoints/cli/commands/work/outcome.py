"""`remit outcome`: outcomes, their owners and their state."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import click

from remit.entrypoints.cli import following
from remit.entrypoints.cli.commands.work.outcome_graph import graph
from remit.entrypoints.cli.drawing import outcome_view as view
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.following import watch_option
from remit.entrypoints.cli.options import Group, limit_option, option, stated
from remit.entrypoints.cli.parameters import OUTCOME, OUTCOME_NAME, Whole
from remit.entrypoints.cli.session import Session, View, path
from remit.ids import short
from remit.model.text import plural

id_argument = click.argument("id_", metavar="ID", type=OUTCOME)


@click.group(cls=Group)
def outcome() -> None:
    """Outcomes, such as an agent's mandate.

    An outcome is named by its id or its title, and a mandate also by its agent's name.
    """


@outcome.command("list")
@option("--owner AGENT", "Only what this agent owns.")
@option("--status open|completed|closed")
@option("--actionable", "Only what the owner can work on now.", flag_value="1")
@option("--stale", "Only stale ones, which make no progress.", flag_value="1")
@limit_option
@watch_option
def list_(session: Session, /, limit: int, watch: bool, **wanted: str | None) -> None:
    """List outcomes: the company's, or your own if you are an agent."""
    draw = partial(view.draw_list, session, empty="There are no outcomes.")
    target = session.under_company("outcomes")
    following.show(session, draw, target, limit, watch=watch, **wanted)


@outcome.command()
@click.argument("id_", metavar="[ID]", required=False, type=OUTCOME_NAME)
@option("--depth", "The most levels to draw.", type=Whole(0, 100))
@option("--open", "Only what is not finished.", field="open_only")
@option("--ids", "With whole ids.")
def tree(session: Session, id_: str | None, depth: int | None, open_only: bool, ids: bool) -> None:
    """Draw the tree of outcomes: all of them, or those below ID."""
    forest = view.fetch_forest(session, id_, depth)
    if open_only:
        forest = [node for node in map(view.only_open, forest) if node is not None]

    def draw(roots: list[View]) -> None:
        if not roots:
            output.say("There are no outcomes.")
        elif id_ is None and len(roots) > 1:
            below = None if depth is None else depth + 1
            view.draw_tree(session, session.company["name"], roots, below, ids=ids)
        else:
            view.draw_tree(session, None, roots, depth, ids=ids)

    session.show(forest, draw)


outcome.shows(*(OUTCOME, view.draw_whole), "Show one outcome: why, how, and what happened to it.")


@outcome.command(
    examples=('remit outcome create "Translate the page" --parent ceo --urgent',),
)
@click.argument("title")
@option(
    "--parent ID",
    "Outcome that it is a part of, or an agent.",
    field="parentId",
    required=True,
    type=OUTCOME,
)
@option("--also ID…", "Other outcomes that it is for.", field="parents", type=OUTCOME)
@option("--blocked-by ID…", "Outcomes that it waits for.", field="blockedBy", type=OUTCOME)
@option("--description TEXT", "More about it, in Markdown.", default="")
@option("--urgent", "It is urgent.")
@option("--important", "It is important.")
@option("--defer TIME", "Not before this time (ISO 8601).", field="deferredUntil")
def create(session: Session, /, **options: Any) -> None:
    """Create a part of an outcome."""
    answer = session.client.send("POST", session.under_company("outcomes"), options)
    session.done(answer, _created(session, answer), partial(view.draw, session))


def _created(session: Session, new_outcome: View) -> Iterator[str]:
    id_, owner = short(new_outcome["id"]), session.agent_name(new_outcome["ownerId"])
    yield f"Created {id_}: {new_outcome['title']} ({view.status(new_outcome)}), which {owner} owns."
    yield f"Next: remit outcome delegate {id_} --to AGENT, or leave it to {owner}"


@outcome.command()
@id_argument
@option("--title TEXT", "A new title.")
@option("--description TEXT", "A new description, in Markdown.")
@option("--urgent/--not-urgent", "Whether it is urgent.", default=None)
@option("--important/--not-important", "Whether it is important.", default=None)
@option("--defer TIME|never", "Not before this time, or no longer deferred.", field="deferredUntil")
@option(
    "--parent ID…", "Outcomes that it is for, instead of before.", field="parents", type=OUTCOME
)
@option("--blocked-by ID…", "Outcomes that it waits for, instead.", field="blockedBy", type=OUTCOME)
@option("--unblock", "It waits for nothing any more.")
@option("--version INTEGER", "Only if this is its version; otherwise whichever is.")
def update(
    session: Session, /, id_: str, unblock: bool, version: int | None, **options: Any
) -> None:
    """Change an outcome: its texts, priority, parents or what it waits for."""
    body = stated(options)
    if unblock and "blockedBy" in body:
        raise click.UsageError("--unblock and --blocked-by exclude each other.")
    if unblock:
        body["blockedBy"] = []
    if body.get("deferredUntil") == "never":
        body["deferredUntil"] = None
    if not body:
        raise click.UsageError("Nothing is to be changed.")
    target = path("outcomes", id_)
    body["version"] = session.client.get(target)["version"] if version is None else version
    answer = session.client.send("PATCH", target, body)
    sentences = [f"Changed {short(answer['id'])}: {answer['title']} ({view.status(answer)})."]
    session.done(answer, sentences, partial(view.draw, session))


@outcome.command(
    examples=(
        'remit outcome delegate "Translate the page" --to writer',
        'remit outcome delegate "Translate the page" --hire translator --role researcher',
    ),
)
@id_argument
@option("--to AGENT", "A report of its owner.")
@option("--hire NAME", "Or a new agent of this name.")
@option("--role TEXT", "The new agent's role.")
@option("--title TEXT", "Name of the new agent.")
@option("--adapter ADAPTER", "How the new agent is executed.", field="adapterType")
@option("--config JSON", "Settings of the adapter.", field="adapterConfig")
@option("--prompt TEXT", "Instructions for the new agent.")
@option("--grant RESOURCE LEVEL…", "Capabilities that it will need.", nargs=2)
@option("--budget", "Cents, set aside for it.", type=Whole(min=1))
@option("--tokens", "Tokens, set aside for it.", type=Whole(min=1))
def delegate(
    session: Session,
    /,
    id_: str,
    to: str | None,
    hire: str | None,
    grant: tuple[tuple[str, str], ...],
    budget: int | None,
    tokens: int | None,
    **options: Any,
) -> None:
    """Hand an outcome to a report, or to an agent that is hired for it."""
    if (to is None) == (hire is None):
        raise click.UsageError("Give either --to or --hire.")
    fields = stated(options)
    if to is not None and fields:
        raise click.UsageError("Only a new agent (--hire) is described.")
    body: dict[str, Any] = {
        "grants": [{"resource": resource, "level": level} for resource, level in grant]
    }
    if budget is not None or tokens is not None:
        body["budget"] = {"moneyCents": budget, "tokens": tokens}
    body |= {"to": to} if to is not None else {"hire": {"name": hire, **fields}}
    target = path("outcomes", id_, "delegate")

    def draw(answer: View) -> None:
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


@outcome.command(
    examples=('remit outcome reclaim "Translate the page" "The market has changed."',),
)
@id_argument
@click.argument("reason")
def reclaim(session: Session, id_: str, reason: str) -> None:
    """Take a delegated outcome back by force; the agents below it stop."""
    answer = session.client.send("POST", path("outcomes", id_, "reclaim"), {"reason": reason})

    def draw(answer: View) -> None:
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


def _consequences(answer: View) -> list[str]:
    """Sentences about the agents and things that ended or were restored."""
    sentences = []
    if answer.get("agentsEnded"):
        first, *below = (agent["name"] for agent in answer["agentsEnded"])
        more = f" and {len(below)} below" if below else ""
        them = "them" if below else "it"
        back = f"`remit outcome reopen {short(answer['id'])}` brings {them} back"
        sentences.append(f"Ends {first}{more}; {back}.")
    if answer.get("agentsRestored"):
        names = ", ".join(agent["name"] for agent in answer["agentsRestored"])
        sentences.append(f"Back at work: {names}, with new credentials and a new session.")
    if answer.get("thingsRestored"):
        counted = (plural(n, _THINGS[what]) for what, n in answer["thingsRestored"].items())
        sentences.append(f"Also back: {', '.join(counted)}.")
    sentences += answer.get("staysEnded", ())
    sentences += [
        f"{gone['name']} stays ended: {gone['why']}." for gone in answer.get("notRestored", ())
    ]
    return sentences


outcome.add_command(graph)
outcome.draw, outcome.more = view.draw, _consequences
