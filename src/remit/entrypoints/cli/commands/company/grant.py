"""`remit grant`: list, give and revoke capabilities of agents, and find unused ones."""

from collections.abc import Iterator
from contextlib import suppress

import click

from remit.entrypoints.cli.commands.work.kb import file_id
from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.drawing.outcome_view import outcome_id
from remit.entrypoints.cli.options import Group, limit_option, option, stated
from remit.entrypoints.cli.parameters import AGENT, MESSAGE
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import RemitError
from remit.ids import normalise, short

holder_option = option("--agent AGENT", "Only what this agent holds.")

#: Longest title of a file or an outcome in a list.
LONGEST_TITLE = 60

#: Things that a right may name before they are there: their list, and the command that adds one.
_ADDED_BY = {"repo": ("repos", "remit repo add"), "mcp_server": ("mcp-servers", "remit mcp add")}

grant = Group("grant", help="Capabilities that agents hold.")


@grant.command("list")
@holder_option
@option("--mail", "With those that came with mail; JSON has them always.")
@limit_option
def list_(session: Session, agent: str | None, mail: bool, limit: int) -> None:
    """List the grants in force; of one agent, also what it may without one."""
    query: dict[str, object] = {"agent": agent, "derived": "1"}
    empty = "No grants are in force."
    if not session.as_json:
        query["titles"] = "1"
        if not mail:
            query["besidesMail"] = "1"
            empty = "No grants are in force, except any that came with mail; --mail shows these."
    answer = session.listed(session.under_company("grants"), limit, **query)
    session.show(answer, lambda grants: _draw_list(session, grants, empty))


@grant.command(
    examples=(
        "remit grant give writer kb_file:4b6f2d91a0c7 read",
        "remit grant give writer repo:site propose --branch main",
        "remit grant give writer agent.create use --mode ask",
    ),
)
@click.argument("to", metavar="[AGENT]", required=False, type=AGENT)
@click.argument("resource", required=False)
@click.argument("level", required=False)
@option("--request ID", "Give what this message asks for, and nothing else.", type=MESSAGE)
@option("--mode allow|ask|deny", "Default: allow; ask for merge on a repository.")
@option("--scope OUTCOME", "It ends with this outcome; else the mandate.")
@option("--expires TIME", "Time when it expires (ISO 8601).", field="expiresAt")
@option(
    "--path PATTERN…",
    "Of a repository: only these files, such as 'src/**'. Repeatable.",
    field="paths",
)
@option(
    "--branch PATTERN…", "Of a repository: only into these branches. Repeatable.", field="branches"
)
def give(session: Session, /, request: str | None, **options: object) -> None:
    """Give an agent a capability, such as `kb_file:ID read`."""
    body = stated(options)
    if request is not None:
        if body:
            raise click.UsageError("--request says all there is to say.")
        answer = session.client.send("POST", path("messages", request, "grant"))
    elif {"to", "resource", "level"} <= body.keys():
        body["resource"] = _resource(session, body["resource"])
        answer = session.client.send("POST", session.under_company("grants"), body)
    else:
        raise click.UsageError("Missing argument: AGENT, RESOURCE and LEVEL, or --request.")
    session.done(answer, _given(session, answer), lambda view: _draw(session, view))


def _resource(session: Session, text: str) -> str:
    """Replace the name of a file or an outcome in a resource by its id."""
    kind, colon, named = text.partition(":")
    if colon and kind == "kb_file":
        return f"{kind}:{file_id(session, named)}"
    return f"{kind}:{outcome_id(session, named)}" if colon and kind == "outcome" else text


def _given(session: Session, view: View) -> Iterator[str]:
    name, what = session.agent_name(view["holderId"]), _called(session, view["resource"])
    has = "is denied" if view["mode"] == "deny" else "has"
    until = f" until {output.when(view['expiresAt'])}" if view["expiresAt"] else ""
    asks = ", and asks before each use" if view["mode"] == "ask" else ""
    yield f"{name} {has} {view['level']} on {what}{until}{asks}."
    yield f"  remit grant revoke {short(view['id'])}   takes it back"
    yield from _not_there_yet(session, view["resource"])


def _not_there_yet(session: Session, resource: str) -> Iterator[str]:
    """A line if a right is to a thing that nobody has added, which a wrong name looks like."""
    kind, _, name = resource.partition(":")
    if kind not in _ADDED_BY:
        return
    things, command = _ADDED_BY[kind]
    with suppress(RemitError):
        names = {thing["name"] for thing in session.client.each(session.under_company(things))}
        if name not in names:
            yield f"There is no {resource} yet; `{command} {name} …` adds it."


def _called(session: Session, resource: str) -> str:
    """Return a resource for people: a message's agent by its name, other ids shortened."""
    kind, _, named = resource.partition(":")
    agent = session.names.get(named.removeprefix("agent:")) if kind == "message" else None
    return f"{kind}:agent:{agent}" if agent else output.shortened(resource)


@grant.command()
@click.argument("id_", metavar="ID")
def revoke(session: Session, id_: str) -> None:
    """Take a grant back, with everything passed on from it."""
    id_ = normalise(id_.removeprefix("grant:"))
    named = session.is_company_named
    target = session.under_company("grants", id_) if named else path("grants", id_)
    answer = session.client.send("DELETE", target)
    session.show(answer, lambda gone: output.say(f"Revoked {_count(len(gone['revoked']))}."))


@grant.command()
@holder_option
@option("--revoke", "Take them back.", field="revoke_them")
@option("--yes", "Do not ask for confirmation.")
def unused(session: Session, agent: str | None, revoke_them: bool, yes: bool) -> None:
    """List grants that were never used; --revoke revokes them."""
    unused_grants = list(
        session.client.each(
            session.under_company("grants"),
            agent=agent,
            unused="1",
            titles=None if session.as_json else "1",
        )
    )
    if not revoke_them:
        empty = "Every grant in force has been used."
        session.show(unused_grants, lambda grants: _draw_list(session, grants, empty))
        return

    def ask() -> str:
        _draw_list(session, unused_grants, "")
        return f"Revoke {_count(len(unused_grants))}?"

    if unused_grants and not yes:
        session.confirm("--revoke", ask, "Nothing was revoked.")
    gone = _revoke_all(session, unused_grants)
    session.show({"revoked": gone}, lambda _: output.say(f"Revoked {_count(len(gone))}."))


def _revoke_all(session: Session, grants: list[View]) -> list[str]:
    gone: dict[str, None] = {}
    for view in grants:
        if view["id"] not in gone:  # revoked already with the grant it was derived from
            answer = session.client.send("DELETE", path("grants", view["id"]))
            gone.update(dict.fromkeys(answer["revoked"]))
    return list(gone)


def _count(number: int) -> str:
    return f"{number} grant" if number == 1 else f"{number} grants"


def _used(_: Session, row: View) -> str:
    return "" if row.get("derived") else output.when(row["usedAt"]) or "never"


def _resource_of(session: Session, row: View) -> str:
    """A file or an outcome by its title, as `grant give` takes it."""
    if "title" not in row:
        return _called(session, row["resource"])
    return f"{row['resource'].partition(':')[0]}:{row['title'][:LONGEST_TITLE]}"


def _draw_list(session: Session, grants: list[View], empty: str) -> None:
    cells.table(
        *(session, grants, "agent: {holderId:known}", ("resource", _resource_of), "level", "mode"),
        *("why: {reason}", "expires: {expiresAt:when}", ("used", _used)),
        ("id", lambda _, row: "by rule" if row.get("derived") else short(row["id"])),
        empty=empty,
    )


def _draw(session: Session, view: View) -> None:
    cells.fields(
        *(session, view, "id", "agent: {holderId:name}", "resource", "level", "mode", "scope"),
        *("expires: {expiresAt:when}", "paths: {paths:list}", "branches: {branches:list}"),
    )
