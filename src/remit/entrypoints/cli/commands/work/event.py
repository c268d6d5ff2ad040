"""`remit event`, `remit why` and `remit as-of`: the record, chains of causes, and the past."""

import click

from remit.entrypoints.cli.commands.work.kb import write_out
from remit.entrypoints.cli.drawing import cells, output, trees
from remit.entrypoints.cli.drawing.outcome_view import outcome_id
from remit.entrypoints.cli.following import follow, newest
from remit.entrypoints.cli.options import LIMITED, Command, Group, option
from remit.entrypoints.cli.parameters import AGENT_NAME, OUTCOME_NAME, Whole
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import RemitError
from remit.ids import looks_like_id, normalise

event = Group("event", help="Events, in a tamper-evident record.")


@event.command("list")
@click.option("--limit", **LIMITED | {"default": 50})
@option("--about ACTION", "Such as file, or file.write.", default="")
@option("--by NAME", "Only events of this agent, person or Remit.", default="")
@option("--refused", "Only what was refused.")
def list_(session: Session, limit: int, about: str, by: str, refused: bool) -> None:
    """List events, the newest first."""
    wanted = {"action": about or None, "actor": by or None, "refused": refused or None}
    session.show_table(
        session.listed(session.under_company("events"), limit, **wanted),
        *("seq", "at: {at:when}", ("who", lambda session, row: _who(session, row["actor"]))),
        *("action", "resource: {resource:ids}"),
        ("refused", lambda _, row: "" if row["allowed"] else row["reason"]),
        "id: {id:short}",
        empty="Nothing has happened yet.",
    )


@event.command()
@option("--after SEQ", "Begin after this one.", type=Whole(min=0))
def tail(session: Session, after: int | None) -> None:
    """Follow the record as it grows; with --json one event a line."""
    last = newest(session) if after is None else after
    for entry in follow(session, last, session.connect(session.token)):
        if session.as_json:
            print(output.as_json(entry, one_line=True), flush=True)
        else:
            allowed = "" if entry["allowed"] else f"  refused: {entry['reason']}"
            line = f"{output.when(entry['at'])}  {_who(session, entry['actor'])}  {entry['action']}"
            print(output.clean(f"{line}  {entry['resource']}{allowed}"), flush=True)


@event.command()
@option("--expect HASH", "A hash from an earlier check; it must be there.")
def verify(session: Session, expect: str | None) -> None:
    """Check that nobody changed the record; exits 1 and names the events if somebody did."""
    answer = session.client.get(session.under_company("events", "verify"), expect=expect)

    def draw(view: View) -> None:
        if view["ok"]:
            output.say(f"The record is whole: {view['events']} events, up to {view['hash']}.")

        for fault in view["faults"]:
            place = f"event {fault['seq']}: " if fault["seq"] else ""
            output.note(f"{place}{fault['sentence']}")

    session.show(answer, draw)
    if not answer["ok"]:
        raise RemitError(
            "The record was changed.",
            "Compare it with a backup, from these events on.",
            code="record_changed",
        )


@click.command(
    cls=Command,
    examples=(
        "remit why writer  # who wanted this agent",
        'remit why "Write a page about our app"  # an outcome by its title',
    ),
)
@click.argument("id_", metavar="ID|AGENT|TITLE", type=OUTCOME_NAME)
def why(session: Session, id_: str) -> None:
    """Walk from an event, an outcome or an agent back to the person who wanted it.

    That is who authorised it, or wished for it. Events and outcomes go by id; an outcome also by
    its title, and an agent by its name."""
    bare = id_.removeprefix("event:").removeprefix("outcome:").removeprefix("agent:")
    subject_id = normalise(bare) if looks_like_id(bare) else outcome_id(session, bare)
    session.show(session.client.get(path("events", subject_id, "why")), _draw_chain)


def _draw_chain(answer: View) -> None:
    for depth, step in enumerate(answer["steps"]):
        lead = "" if depth == 0 else f"{'   ' * (depth - 1)}└─ because "
        verb = "did" if step["allowed"] else f"was refused ({step['reason']})"
        output.say(
            f"{lead}{step['who']} {verb} {step['action']} {step['resource']}"
            f" at {output.when(step['at'])} [{step['basis']}]"
        )
    by = answer.get("authorisedBy")
    output.say(f"Authorised by {by}." if by else "It does not lead back to a person.")
    if wish := answer.get("wish"):
        called = f" {wish['subject']!r}" if wish["subject"] else ""
        output.say(
            f"It began with a letter{called} of {wish['by']}, {output.when(wish['at'])}: "
            f"remit read {wish['messageId']}"
        )


def _who(session: Session, actor: str) -> str:
    kind, colon, id_ = actor.partition(":")
    if kind == "agent" and id_ not in session.names:
        return f"{kind}:{session.agent_name(id_)}"
    return f"{kind}:{session.names.get(id_, id_)}" if colon else actor


@click.command(
    "as-of",
    cls=Command,
    examples=(
        "remit as-of 2026-01-15 org",
        "remit as-of 2026-01-15T09:00:00Z grants --agent writer",
        "remit as-of 2026-01-15 file 4b6f2d91a0c7",
    ),
)
@click.argument("time")
@click.argument("what", type=click.Choice(["org", "grants", "file"]))
@click.argument("id_", metavar="[FILE_ID]", required=False)
@option("--agent AGENT", "Only what this agent held.", type=AGENT_NAME)
def as_of(session: Session, time: str, what: str, id_: str | None, agent: str | None) -> None:
    """Show the tree, the grants or a file as they were at a time."""
    if (what == "file") != (id_ is not None):
        raise click.UsageError("A file, and only a file, is named by its id.")
    if agent is not None and what != "grants":
        raise click.UsageError("--agent goes with grants.")
    if id_ is not None:
        write_out(session, id_, at=time)
        return
    entries = list(
        session.client.each(session.under_company("as-of"), at=time, what=what, agent=agent)
    )
    if what == "org":
        forest = trees.nested(entries)
        title = f"{session.company['name']} at {time}"
        session.show(forest, lambda all_: trees.draw_agents(title, all_))
    else:
        session.show(entries, lambda grants: _draw_grants(session, grants))


def _draw_grants(session: Session, grants: list[View]) -> None:
    cells.table(
        *(session, grants, "agent: {holderId:name}"),
        *("resource: {resource:ids}", "level", "mode", "since: {createdAt:when}"),
        *("expires: {expiresAt:when}", "id: {id:short}"),
        empty="No grants were in force then.",
    )
