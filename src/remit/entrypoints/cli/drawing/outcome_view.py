"""Outcomes on the command line: their names, tables and trees."""

from typing import Any

from remit.entrypoints.cli.drawing import cells, output, trees
from remit.entrypoints.cli.session import Session, path, pick
from remit.ids import is_id, looks_like_id
from remit.model.text import name_key

Outcome = dict[str, Any]

_SHOWN_HISTORY = 10


def outcome_id(session: Session, text: str) -> str:
    """Resolve an outcome by its id or a part of it, by its title, or a mandate by its agent's
    name."""
    text = text.removeprefix("outcome:").removeprefix("kb://")
    if is_id(text):
        return text
    if looks_like_id(text) and not session.is_company_named:
        return text  # the instance looks it up in the companies of the caller
    named = session.agent_named(text)
    if named is not None:
        return str(named["id"])  # a mandate has the id of its agent
    known = list(session.client.each(session.under_company("outcomes")))
    # A finished outcome does not stand in the way of an open one with the same title.
    being = [outcome for outcome in known if _is_open(outcome)]
    where = (
        being if any(name_key(outcome["title"]) == name_key(text) for outcome in being) else known
    )
    what = "outcome or agent"
    return str(pick(where, text, what, "See `remit outcome tree`.", "title")["id"])


def owner_names(session: Session) -> dict[str, str]:
    """Names of agents by id, terminated ones included."""
    return {agent["id"]: agent["name"] for agent in session.agents_ever}


def marks(outcome: Outcome) -> str:
    return ("!" if outcome.get("urgent") else "") + ("*" if outcome.get("important") else "")


def status(outcome: Outcome) -> str:
    """The status in words, with what an owner wants to know of an open one."""
    if outcome["status"] != "open":
        return str(outcome["status"])
    if outcome.get("waiting"):
        return "open, waits"
    if outcome.get("actionable"):
        return "open, ready"
    if outcome.get("perpetual"):
        return "open, perpetual"
    if str(outcome.get("whyNotActionable", "")).startswith("it is deferred"):
        return f"open, deferred to {outcome['deferredUntil'][:10]}"
    return "open, waits"


def draw_list(session: Session, outcomes: list[Outcome], empty: str) -> None:
    names = owner_names(session)
    cells.table(
        *(session, outcomes, "title", ("rank", lambda _, outcome: marks(outcome))),
        ("status", _status),
        ("owner", lambda _, outcome: names.get(outcome["ownerId"], outcome["ownerId"])),
        ("delegated", lambda _, outcome: "yes" if outcome["delegated"] else ""),
        "id: {id:short}",
        empty=empty,
    )


def only_open(node: Outcome) -> Outcome | None:
    """Prune a tree to its open outcomes and their ancestors; None if there are none."""
    if node.get("elsewhere"):
        return node if node["status"] == "open" else None
    kept = [inner for inner in map(only_open, node["children"]) if inner is not None]
    return {**node, "children": kept} if kept or node["status"] == "open" else None


def draw_tree(
    session: Session, title: str | None, forest: list[Outcome], depth: int | None, *, ids: bool
) -> None:
    """Print a forest: below its title, or without one with each root on a line of its own."""
    names = owner_names(session)

    def line(branch: str, node: Outcome) -> trees.Line:
        rank = marks(node)
        label = f"{rank} {node['title']}" if rank else node["title"]
        owner = names.get(node["ownerId"], node["ownerId"])
        who = f"delegated to {owner}" if node.get("delegated") else owner
        what = "shown elsewhere" if node.get("elsewhere") else f"{status(node)} · {who}"
        return trees.Line(branch, label, f"{what} · {node['id']}" if ids else what)

    rows = []
    if title is not None:
        rows = [trees.Line("", title, ""), *trees.lines(forest, "children", line, depth=depth)]
    else:
        for root in forest:
            rows.append(line("", root))
            if depth != 0:
                rows += trees.lines(root["children"], "children", line, depth=depth)
    trees.draw(rows)
    if any(row.label.startswith(("!", "*")) for row in rows):
        output.say("", "! urgent  * important")


def draw(session: Session, outcome: Outcome) -> None:
    cells.fields(
        *(session, outcome, "title", "id", ("status", _status), ("rank", _rank)),
        *("perpetual: {perpetual:yes}", "owner: {ownerId:name}"),
        "delegated by: {delegatorId:name}",
        ("not ready", lambda _, view: view.get("whyNotActionable") if _is_open(view) else None),
        *("deferred: {deferredUntil:when}", "note: {verdict[note]}", ("evidence", _evidence)),
        *("version", "created: {createdAt:when}", "finished: {finishedAt:when}"),
    )


def _is_open(outcome: Outcome) -> bool:
    return bool(outcome["status"] == "open")


def _status(_: Session, outcome: Outcome) -> str:
    return status(outcome)


def _rank(_: Session, outcome: Outcome) -> str:
    return ", ".join(word for word in ("urgent", "important") if outcome[word])


def _evidence(_: Session, outcome: Outcome) -> str:
    seen = (outcome.get("verdict") or {}).get("evidence", ())
    return ", ".join(f"kb://{file['id']} version {file['version']}" for file in seen)


def draw_whole(session: Session, outcome: Outcome) -> None:
    draw(session, outcome)
    if outcome["description"]:
        output.say("", *outcome["description"].splitlines())
    if outcome["wish"]:
        output.say("", f"Made of a letter: remit read {outcome['wish']['messageId']}")
    for title, key in (("Why", "parents"), ("How", "children"), ("Waits for", "blockedBy")):
        if outcome[key]:
            output.say("", f"{title}:")
            output.say(*(f"  {other['title']} ({other['status']})" for other in outcome[key]))
    if outcome["history"]:
        output.say("", "History:")
        for event in outcome["history"][:_SHOWN_HISTORY]:
            allowed = "" if event["allowed"] else " (refused)"
            why = f": {event['why']}" if event["why"] else ""
            kind, _, id_ = event["by"].partition(":")
            by = session.known(id_) if id_ else kind
            output.say(f"  {output.when(event['at'])}  {event['action']}{allowed} by {by}{why}")


def fetch_forest(session: Session, id_: str | None, depth: int | None) -> list[Outcome]:
    """One outcome with what is below it, or everything that the caller has."""
    if id_ is not None:
        roots = [outcome_id(session, id_)]
    elif session.client.get(path("me"))["kind"] == "agent":
        roots = [session.client.get(path("agents", "me"))["id"]]
    else:
        outcomes = session.client.each(session.under_company("outcomes"), roots="1")
        roots = [outcome["id"] for outcome in outcomes]
    return [session.client.get(path("outcomes", root, "subtree"), depth=depth) for root in roots]
