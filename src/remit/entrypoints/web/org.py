"""The organisation: who reports to whom, folded and searched, and current by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from remit.entrypoints.web import asking, tree
from remit.entrypoints.web.site import Site, Visit
from remit.errors import NotFound
from remit.ids import is_id
from remit.model.agent import AgentStatus
from remit.services import agents, glance, overview

#: More lines than anybody reads; of a larger company one looks at a part.
MOST_LINES: Final = 1500
MOST_CHANGES: Final = 5
_ALL: Final = 1_000_000
_LONGEST_SEARCH: Final = 200


def routes(site: Site) -> list[Route]:
    return [site.page("/org", show)]


async def show(visit: Visit) -> Response:
    company = visit.company_id
    q, status = visit.argument("q")[:_LONGEST_SEARCH].strip(), visit.argument("status")
    if status not in {one.value for one in AgentStatus}:
        status = ""
    gone_too = visit.argument("terminated") == "1" or status == AgentStatus.TERMINATED
    rows = await visit.ask(agents.listing, company=company, limit=_ALL, terminated=gone_too)
    tops, top = tree.plant(rows), visit.argument("root")
    part = tree.part_of(tops, top) if top else None
    if top and part is None:
        raise NotFound("There is no such agent here.", "Look at the whole organisation.")
    shown = [part] if part is not None else tops
    fits = tree.seek(shown, q, status)
    lines = tree.lines(shown, MOST_LINES)
    running = await visit.ask(glance.at_work, company=company)
    numbers = (await visit.ask(overview.dashboard, company=company))["agents"]
    done = visit.argument("done")
    changes = await _changes(visit) if visit.whole and visit.decides else []
    return await visit.show(
        "org.html",
        lines=lines,
        fits=fits,
        cut=any(line.hidden for line in lines),
        part=part,
        q=q,
        status=status,
        gone_too=gone_too,
        statuses=[(one.value, numbers[one.value]) for one in AgentStatus if one != "terminated"],
        terminated=numbers[AgentStatus.TERMINATED.value],
        living=sum(numbers.values()) - numbers[AgentStatus.TERMINATED.value],
        since={one["agent_id"]: one["started_at"] for one in running},
        bosses=await asking.names(visit, [line.agent["boss_user_id"] for line in lines]),
        done=done if is_id(done) and any(one["id"] == done for one in changes) else "",
        changes=changes,
    )


async def _changes(visit: Visit) -> list[dict[str, Any]]:
    """What was reorganised lately and can perhaps be taken back."""
    found = await visit.ask(
        overview.happened_to, company=visit.company_id, resource="org", before=1 << 62, limit=50
    )
    allowed = [one for one in found if one["allowed"]]
    undone = {one["details"].get("undoes") for one in allowed}
    latest = allowed[:MOST_CHANGES]
    concerned = [
        who
        for one in latest
        for operation in one["details"].get("operations", ())
        for who in (operation.get("agent"), operation.get("to"), *operation.get("agents", ()))
    ]
    names = await asking.names(
        visit, [*concerned, *(one["actor"].partition(":")[2] for one in latest)]
    )
    return [
        {
            **one,
            "who": names[one["actor"].partition(":")[2]],
            "undone": one["id"] in undone,
            "said": said(one, names),
        }
        for one in latest
    ]


def said(event: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """What a reorganisation did, after the name of who did it."""
    if event["action"] == "org.undo":
        return "took a change back"
    return ", ".join(_did(one, names) for one in event["details"].get("operations", ()))


def _did(operation: Mapping[str, Any], names: Mapping[str, str]) -> str:
    """Agents are named in it as whoever asked for it named them."""

    def name(one: object) -> str:
        return "the board" if one == "board" else str(names.get(str(one), one))

    match operation.get("op"):
        case "move":
            return f"moved {name(operation.get('agent'))} below {name(operation.get('to'))}"
        case "insert_layer":
            those = ", ".join(name(one) for one in operation.get("agents", ())[:5])
            return f"put {operation.get('name', 'somebody')} above {those}"
        case "remove_layer":
            return f"took {name(operation.get('agent'))} out"
        case _:
            return f"changed who sits in the seat of {name(operation.get('agent'))}"
