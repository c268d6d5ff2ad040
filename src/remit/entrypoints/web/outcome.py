"""One outcome: why it is there, what it consists of, what happened, and what can be done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from starlette.responses import Response
from starlette.routing import Route

from remit.entrypoints.web import asking, happenings
from remit.entrypoints.web.outcomes import address, drawn
from remit.entrypoints.web.site import Done, Site, Visit
from remit.errors import BadInput
from remit.services import choices, delegation, graph, naming, outcomes, picture, submitting
from remit.services.identity import Caller

MOST_CHAINS: Final = 8
DEPTH: Final = 3
MOST_PARTS: Final = 200
HISTORY: Final = 25
MOST_EVIDENCE: Final = 20
_NEWEST: Final = 1 << 62


def routes(site: Site) -> list[Route]:
    doing: dict[str, Callable[[Visit], Awaitable[Done]]] = {
        "parts": add_part,
        "change": change,
        "complete": complete,
        "submit": submit,
        "return": send_back,
        "close": close,
        "reopen": reopen,
        "delegate": delegate,
        "reclaim": reclaim,
    }
    return [
        site.page("/outcomes/{outcome}", show),
        *(site.action(f"/outcomes/{{outcome}}/{name}", act, show) for name, act in doing.items()),
    ]


async def show(visit: Visit) -> Response:
    outcome = visit.argument("outcome")
    one = await visit.ask(outcomes.show, outcome=outcome)
    visit.enter(one["company_id"])
    why = await visit.ask(graph.ancestors, outcome=one["id"])
    parts = await visit.ask(graph.outline, outcome=one["id"], depth=DEPTH, most=MOST_PARTS)
    near = await visit.ask(picture.around, outcome=one["id"])
    may = await visit.ask(choices.outcome, outcome=one["id"])
    before = _number(visit.argument("before"))
    happened = await visit.ask(
        outcomes.history, outcome=one["id"], before=before or _NEWEST, limit=HISTORY
    )
    evidence = (one["verdict"] or {}).get("evidence", [])
    return await visit.show(
        "outcome.html",
        one=one,
        may=may,
        chains=_chains(why),
        more_chains=why["more_chains"] or len(why["chains"]) > MOST_CHAINS,
        outline=parts,
        graph=drawn(near, "near", one["id"]) if len(near["nodes"]) > 1 else None,
        near_cut_off=near["cut_off"],
        happened=[{**event, "said": happenings.past(event["action"])} for event in happened],
        later=before is not None,
        more=visit.link(address(one["id"]), before=happened[-1]["seq"])
        if len(happened) == HISTORY
        else "",
        titles=await visit.ask(
            naming.titles,
            company=visit.company_id,
            resources=[f"kb_file:{seen['id']}" for seen in evidence],
        ),
        names=await asking.names(visit, _people(one, parts, why, happened)),
    )


def _chains(why: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    """From what the company is for, down to this outcome; without the outcome itself."""
    known = {one["id"]: one for one in why["outcomes"]}
    found = [
        [known[step] for step in reversed(chain[1:]) if step in known] for chain in why["chains"]
    ]
    return [chain for chain in found if chain][:MOST_CHAINS]


def _people(
    one: Mapping[str, Any],
    parts: list[dict[str, Any]],
    why: Mapping[str, Any],
    happened: list[dict[str, Any]],
) -> list[str | None]:
    said = [str(event["by"]).partition(":")[2] for event in happened]
    judged = str((one["verdict"] or {}).get("by", "")).partition(":")[2]
    others = [*parts, *one["parents"], *one["blocked_by"], *why["outcomes"]]
    return [
        one["owner_id"],
        one["delegator_id"],
        judged,
        *said,
        *(other["owner_id"] for other in others),
    ]


async def add_part(visit: Visit) -> Done:
    made = await visit.site.app.library.create_outcome(
        Caller(visit.who.token, visit.form.key),
        parent=visit.argument("outcome"),
        title=visit.form.text("title"),
        description=visit.form.text("description"),
        urgent=visit.form.ticked("urgent"),
        important=visit.form.ticked("important"),
    )
    return Done(address(made["id"]), "It is there, and whoever owns it was told.")


async def change(visit: Visit) -> Done:
    done = await visit.do(
        outcomes.change,
        outcome=visit.argument("outcome"),
        version=visit.form.number("version"),
        title=visit.form.text("new_title"),
        description=visit.form.text("new_description"),
        urgent=visit.form.ticked("new_urgent"),
        important=visit.form.ticked("new_important"),
    )
    return Done(address(done["id"]), "Changed.")


async def complete(visit: Visit) -> Done:
    done = await visit.do(
        outcomes.complete,
        outcome=visit.argument("outcome"),
        evidence=_references(visit.form.text("evidence")),
        note=visit.form.text("note"),
    )
    return Done(address(done["id"]), f"Completed.{ended_with_it(done)}")


def ended_with_it(done: Mapping[str, Any]) -> str:
    """Who ended because an outcome was accepted, and the way back."""
    names = [agent["name"] for agent in done["agents_ended"]]
    if not names:
        return ""
    them = "them" if len(names) > 1 else "it"
    return f" {', '.join(names)} ended with it; reopening brings {them} back."


async def submit(visit: Visit) -> Done:
    done = await visit.do(
        submitting.submit,
        outcome=visit.argument("outcome"),
        evidence=_references(visit.form.text("shown_by")),
        note=visit.form.text("done_note"),
    )
    return Done(address(done["id"]), "Handed in; it waits for the verdict.")


async def send_back(visit: Visit) -> Done:
    done = await visit.do(
        submitting.send_back, outcome=visit.argument("outcome"), note=visit.form.text("missing")
    )
    return Done(address(done["id"]), "Sent back to its owner.")


async def close(visit: Visit) -> Done:
    done = await visit.do(
        outcomes.close,
        outcome=visit.argument("outcome"),
        rationale=visit.form.text("rationale"),
    )
    return Done(address(done["id"]), "Closed; the reason is kept with it.")


async def reopen(visit: Visit) -> Done:
    done = await visit.do(
        outcomes.reopen, outcome=visit.argument("outcome"), note=visit.form.text("reopen_note")
    )
    back = ", ".join(agent["name"] for agent in done["agents_restored"])
    gone = "".join(f" {one['name']} stays ended: {one['why']}." for one in done["not_restored"])
    works = " works again." if len(done["agents_restored"]) == 1 else " work again."
    gone += "".join(f" {sentence}" for sentence in done["stays_ended"])
    return Done(address(done["id"]), f"It is open again.{f' {back}{works}' if back else ''}{gone}")


async def delegate(visit: Visit) -> Done:
    done = await visit.do(
        delegation.delegate, outcome=visit.argument("outcome"), to=visit.form.maybe("to")
    )
    return Done(address(visit.argument("outcome")), f"{done['agent']['name']} owns it now.")


async def reclaim(visit: Visit) -> Done:
    await visit.do(
        delegation.reclaim, outcome=visit.argument("outcome"), reason=visit.form.text("reason")
    )
    return Done(address(visit.argument("outcome")), "It was taken back, with everything below it.")


def _references(text: str) -> list[str]:
    """Files, one in each line: as `kb://…`, as an id, or as the address of their page."""
    found = [line.strip().rpartition("/")[2] for line in text.split() if line.strip()]
    if len(found) > MOST_EVIDENCE:
        raise BadInput(f"At most {MOST_EVIDENCE} files.", "Name those that show it best.")
    return found


def _number(text: str) -> int | None:
    """A position in a list, from the address; whatever else stands there is ignored."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 18 else None
