"""Outcomes on the command line: their names, tables and trees."""

from typing import Any

from remit.entrypoints.cli.address import path
from remit.entrypoints.cli.drawing import cells, output, trees
from remit.entrypoints.cli.options import Session, pick
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
    being = [one for one in known if _is_open(one)]
    where = being if any(name_key(one["title"]) == name_key(text) for one in being) else known
    what = "outcome or agent"
    return str(pick(where, text, what, "See `remit outcome tree`.", "title")["id"])


def owner_names(session: Session) -> dict[str, str]:
    """Names of agents by id, terminated ones included."""
    return {one["id"]: one["name"] for one in session.agents_ever}


def marks(one: Outcome) -> str:
    return ("!" if one.get("urgent") else "") + ("*" if one.get("important") else "")


def status(one: Outcome) -> str:
    """The status in words, with what an owner wants to know of an open one."""
    if one["status"] != "open":
        return str(one["status"])
    if one.get("actionable"):
        return "open, ready"
    if one.get("perpetual"):
        return "open, perpetual"
    if str(one.get("whyNotActionable", "")).startswith("it is deferred"):
        return f"open, deferred to {one['deferredUntil'][:10]}"
    return "open, waits"


def draw_list(session: Session, found: list[Outcome], empty: str) -> None:
    names = owner_names(session)
    cells.table(
        *(session, found, "title", ("rank", lambda _, one: marks(one)), ("status", _status)),
        ("owner", lambda _, one: names.get(one["ownerId"], one["ownerId"])),
        ("delegated", lambda _, one: "yes" if one["delegated"] else ""),
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

    found = []
    if title is not None:
        found = [trees.Line("", title, ""), *trees.lines(forest, "children", line, depth=depth)]
    else:
        for root in forest:
            found.append(line("", root))
            if depth != 0:
                found += trees.lines(root["children"], "children", line, depth=depth)
    trees.draw(found)
    if any(one.label.startswith(("!", "*")) for one in found):
        output.say("", "! urgent  * important")


def draw(session: Session, one: Outcome) -> None:
    cells.fields(
        *(session, one, "title", "id", ("status", _status), ("rank", _rank)),
        *("perpetual: {perpetual:yes}", "owner: {ownerId:name}"),
        "delegated by: {delegatorId:name}",
        ("not ready", lambda _, one: one.get("whyNotActionable") if _is_open(one) else None),
        *("deferred: {deferredUntil:when}", "note: {verdict[note]}", ("evidence", _evidence)),
        *("version", "created: {createdAt:when}", "finished: {finishedAt:when}"),
    )


def _is_open(one: Outcome) -> bool:
    return bool(one["status"] == "open")


def _status(_: Session, one: Outcome) -> str:
    return status(one)


def _rank(_: Session, one: Outcome) -> str:
    return ", ".join(word for word in ("urgent", "important") if one[word])


def _evidence(_: Session, one: Outcome) -> str:
    seen = (one.get("verdict") or {}).get("evidence", ())
    return ", ".join(f"kb://{file['id']} version {file['version']}" for file in seen)


def draw_whole(session: Session, one: Outcome) -> None:
    draw(session, one)
    if one["description"]:
        output.say("", *one["description"].splitlines())
    if one["wish"]:
        output.say("", f"Made of a letter: remit read {one['wish']['messageId']}")
    for title, key in (("Why", "parents"), ("How", "children"), ("Waits for", "blockedBy")):
        if one[key]:
            output.say("", f"{title}:")
            output.say(*(f"  {other['title']} ({other['status']})" for other in one[key]))
    if one["history"]:
        output.say("", "History:")
        for event in one["history"][:_SHOWN_HISTORY]:
            allowed = "" if event["allowed"] else " (refused)"
            why = f": {event['why']}" if event["why"] else ""
            kind, _, id_ = event["by"].partition(":")
            by = session.names.get(id_, id_) if id_ else kind
            output.say(f"  {output.when(event['at'])}  {event['action']}{allowed} by {by}{why}")


def fetch_forest(session: Session, id_: str | None, depth: int | None) -> list[Outcome]:
    """One outcome with what is below it, or everything that the caller has."""
    if id_ is not None:
        roots = [outcome_id(session, id_)]
    elif session.client.get(path("me"))["kind"] == "agent":
        roots = [session.client.get(path("agents", "me"))["id"]]
    else:
        found = session.client.each(session.under_company("outcomes"), roots="1")
        roots = [one["id"] for one in found]
    return [session.client.get(path("outcomes", root, "subtree"), depth=depth) for root in roots]
