"""The organisation: the tree of agents, which folds, can be searched, and refreshes itself."""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from remit.clock import to_iso
from remit.entrypoints.web.site import Page, Routes, Site, Visit
from remit.entrypoints.web.text import common_queries, org_lines
from remit.errors import NotFound
from remit.ids import is_id
from remit.model.organisation.agent import AgentStatus
from remit.services.organisation import agents
from remit.services.screens import org_page, overview, standing

#: Most lines of the tree; of a larger company a part is shown.
MOST_LINES: Final = 300
MOST_CHANGES: Final = 5
_ALL: Final = 1_000_000
_LONGEST_SEARCH: Final = 200
#: Statuses that addresses may have, and the words that the page has for them.
_WORDS: Final = {"running": "working", "error": "stopped", "pending_approval": "awaits approval"}


def routes(site: Site) -> Routes:
    return [site.page("/org", show)]


def show(visit: Visit) -> Page:
    company = visit.company_id
    q, status = visit.argument("q")[:_LONGEST_SEARCH].strip(), visit.argument("status")
    word = _WORDS.get(status, status)
    if word not in (*standing.WORDS, AgentStatus.TERMINATED):
        status = word = ""
    gone_too = visit.argument("terminated") == "1" or status == AgentStatus.TERMINATED
    known = visit.ask(org_page.lines, company=company)
    rows: list[dict[str, Any]] = list(known.values())
    if gone_too:
        everybody = visit.ask(agents.listing, company=company, limit=_ALL, terminated=True)
        rows = [
            {**agent, "word": known.get(agent["id"], {}).get("word", agent["status"])}
            for agent in everybody
        ]
    tops, top = org_lines.plant(rows), visit.argument("root")
    as_chart = visit.argument("view") == "chart"
    part = org_lines.part_of(tops, top) if top else None
    if top and part is None:
        raise NotFound("There is no such agent here.", "Look at the whole organisation.")
    shown = [part] if part is not None else tops
    fits = org_lines.seek(shown, q, word)
    lines = org_lines.lines(shown, MOST_LINES)
    numbers = visit.ask(overview.dashboard, company=company)["agents"]
    done = visit.argument("done")
    changes = _changes(visit) if visit.whole and visit.decides else []

    def branch(agent: str) -> str:
        return visit.link("/org", view="chart", root=agent)

    return visit.show(
        "org.html",
        lines=lines,
        fits=fits,
        cut=any(line.hidden for line in lines),
        part=part,
        q=q,
        status=word,
        gone_too=gone_too,
        words=Counter(agent["word"] for agent in known.values()),
        order=tuple(standing.WORDS),
        terminated=numbers[AgentStatus.TERMINATED.value],
        living=sum(numbers.values()) - numbers[AgentStatus.TERMINATED.value],
        known=known,
        chart=partial(org_lines.draw, shown, known, branch) if as_chart else None,
        iso=to_iso,
        done=done if is_id(done) and any(change["id"] == done for change in changes) else "",
        changes=changes,
    )


def _changes(visit: Visit) -> list[dict[str, Any]]:
    """Recent reorganisations, with whether they were undone."""
    events = visit.ask(
        overview.happened_to, company=visit.company_id, resource="org", before=1 << 62, limit=50
    )
    allowed = [event for event in events if event["allowed"]]
    undone = {event["details"].get("undoes") for event in allowed}
    latest = [{**event, "by": event["actor"].partition(":")[2]} for event in allowed[:MOST_CHANGES]]
    concerned = [event["by"] for event in latest]
    for event in latest:
        for operation in event["details"].get("operations", ()):
            concerned += [operation.get("agent"), operation.get("to"), *operation.get("agents", ())]
    names = common_queries.names(visit, concerned)
    return [
        {
            **event,
            "who": names[event["by"]],
            "undone": event["id"] in undone,
            "said": said(event, names),
        }
        for event in latest
    ]


def said(event: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Describe a reorganisation in words that follow its actor's name."""
    if event["action"] == "org.undo":
        return "undid a change"
    return ", ".join(_did(operation, names) for operation in event["details"].get("operations", ()))


def _did(operation: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Describe an operation; agents may be given by name or by id."""

    def name(agent: object) -> str:
        return "the board" if agent == "board" else str(names.get(str(agent), agent))

    match operation.get("op"):
        case "move":
            return f"moved {name(operation.get('agent'))} below {name(operation.get('to'))}"
        case "insert_layer":
            those = ", ".join(name(agent) for agent in operation.get("agents", ())[:5])
            return f"inserted {operation.get('name', 'somebody')} above {those}"
        case "remove_layer":
            return f"removed {name(operation.get('agent'))}"
        case _:
            return f"changed who sits in the seat of {name(operation.get('agent'))}"
