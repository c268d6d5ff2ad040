"""One outcome: its reasons, parts, history, and the actions on it."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from remit.entrypoints.declared import chosen, declared
from remit.entrypoints.web.pages.outcomes import STATES, address, create_part, drawn
from remit.entrypoints.web.site import Done, Page, Routes, Site, Visit
from remit.entrypoints.web.text import common_queries, event_text
from remit.errors import BadInput
from remit.services.command import Answer
from remit.services.screens import allowed_actions, name_lookup, outcome_tree
from remit.services.surfaces import AsCommand, AsRoute
from remit.services.verbs import Verb
from remit.services.work import delegation, outcome_walks, outcomes

MOST_CHAINS: Final = 8
DEPTH: Final = 3
#: Most rows of parts; beyond it fewer levels are shown.
MOST_PARTS: Final = 80
HISTORY: Final = 25
MOST_EVIDENCE: Final = 20
_NEWEST: Final = 1 << 62


def routes(site: Site) -> Routes:
    here, owned = "/outcomes/{outcome}", "{agent[name]} owns it now."
    taken = "Taken back, with everything below it."
    return [
        site.page(here, show),
        *site.forms(here, show, parts=add_part, change=change),
        *(site.action(f"{here}/{name}", act, show) for name, act in _declared()),
        site.does(f"{here}/delegate", delegation.delegate, show, here, owned, "to"),
        site.does(f"{here}/reclaim", delegation.reclaim, show, here, taken, "reason"),
    ]


def show(visit: Visit) -> Page:
    outcome = visit.argument("outcome")
    detail = visit.ask(outcomes.show, outcome=outcome)
    visit.enter(detail["company_id"])
    why = visit.ask(outcome_walks.ancestors, outcome=detail["id"])
    parts = _outline(visit, detail["id"])
    near = visit.ask(outcome_walks.drawing_around, outcome=detail["id"])
    may = visit.ask(allowed_actions.outcome, outcome=detail["id"])
    before = visit.number("before", digits=18)
    happened = visit.ask(
        outcomes.history, outcome=detail["id"], before=before or _NEWEST, limit=HISTORY
    )
    judged: list[Mapping[str, Any]] = [detail["verdict"] or {}, *detail["submissions"]]
    evidence = [seen for judgement in judged for seen in judgement.get("evidence", ())]
    known = [detail["id"], *(node["id"] for node in (*near["nodes"], *parts))]
    standing = visit.ask(outcome_tree.states, company=visit.company_id, outcomes=known)
    drawing = {
        **near,
        "nodes": [{**node, "state": standing.get(node["id"], "")} for node in near["nodes"]],
    }
    return visit.show(
        "outcome.html",
        one=detail,
        may=may,
        state=standing.get(detail["id"], detail["status"]),
        states=STATES,
        standing_of=standing,
        chains=_chains(why),
        more_chains=why["more_chains"] or len(why["chains"]) > MOST_CHAINS,
        outline=parts,
        graph=partial(drawn, drawing, "near", detail["id"]) if len(near["nodes"]) > 1 else None,
        near_cut_off=near["cut_off"],
        happened=event_text.counted(
            ({**event, "said": _said(event)} for event in happened), "by", "said", "why"
        ),
        later=before is not None,
        more=visit.more(address(detail["id"]), happened, HISTORY, key="seq"),
        titles=visit.ask(
            name_lookup.titles,
            company=visit.company_id,
            resources=[f"kb_file:{seen['id']}" for seen in evidence],
        ),
        names=common_queries.names(visit, _people(detail, parts, why, happened)),
    )


def _outline(visit: Visit, outcome: str) -> list[dict[str, Any]]:
    """Parts down to the depth at which all fit; if direct parts are too many, the first of them."""
    parts: list[dict[str, Any]] = []
    for depth in range(DEPTH, 0, -1):
        parts = visit.ask(outcome_walks.outline, outcome=outcome, depth=depth, most=MOST_PARTS)
        if len(parts) < MOST_PARTS:
            break
    return parts


def _said(event: Mapping[str, Any]) -> str:
    if event["allowed"]:
        return event_text.past(event["action"])
    return f"was not allowed to {event_text.infinitive(event['action'])}"


def _chains(why: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    """Chains from the company's top outcomes down to this one, which is left out."""
    known = {outcome["id"]: outcome for outcome in why["outcomes"]}
    chains = [
        [known[step] for step in reversed(chain[1:]) if step in known] for chain in why["chains"]
    ]
    return [chain for chain in chains if chain][:MOST_CHAINS]


def _people(
    detail: Answer, parts: list[Answer], why: Answer, happened: list[Answer]
) -> list[str | None]:
    actors = [*(event["by"] for event in happened), (detail["verdict"] or {}).get("by", "")]
    owned = [detail, *parts, *detail["parents"], *detail["blocked_by"], *why["outcomes"]]
    return [
        detail["delegator_id"],
        *(str(actor).partition(":")[2] for actor in actors),
        *(outcome["owner_id"] for outcome in owned),
    ]


async def add_part(visit: Visit) -> Done:
    part = await create_part(visit, visit.argument("outcome"))
    return Done(address(part["id"]), "Added.")


async def change(visit: Visit) -> Done:
    done = await visit.do(
        outcomes.change,
        outcome=visit.argument("outcome"),
        version=visit.form.number("version") or 0,
        title=visit.form.text("new_title"),
        description=visit.form.text("new_description"),
        urgent=visit.form.ticked("new_urgent"),
        important=visit.form.ticked("new_important"),
    )
    return Done(address(done["id"]), "Saved.")


def ended_with_it(done: Mapping[str, Any]) -> str:
    """Sentence about agents that ended with an accepted outcome, and how they come back."""
    names = [agent["name"] for agent in done.get("agents_ended", ())]
    if not names:
        return ""
    them = "them" if len(names) > 1 else "it"
    return f" {', '.join(names)} ended with it; reopening brings {them} back."


def _back_again(done: Mapping[str, Any]) -> str:
    """Sentences about agents that work again after a verdict was undone, and those that do not."""
    names = [agent["name"] for agent in done.get("agents_restored", ())]
    work = f" {', '.join(names)} {'works' if len(names) == 1 else 'work'} again." if names else ""
    gone = [
        f"{agent['name']} stays ended: {agent['why']}." for agent in done.get("not_restored", ())
    ]
    return work + "".join(f" {sentence}" for sentence in (*gone, *done.get("stays_ended", ())))


def _declared() -> Iterator[tuple[str, Callable[[Visit], Awaitable[Done]]]]:
    """Actions on an outcome that verbs declare, with their message. The form fields are named
    `NAME_PARAMETER`."""
    for verb, route in declared(AsRoute):
        message = next(
            (surface.said for surface in verb.surfaces if isinstance(surface, AsCommand)), ""
        )
        if message and route.address.startswith("POST /outcomes/{id}/"):
            name = route.path.rpartition("/")[2]
            yield name, partial(_do, verb, name, message)


async def _do(verb: Verb[..., Any], name: str, message: str, visit: Visit) -> Done:
    arguments: dict[str, Any] = {}
    for field in chosen(verb, ("outcome",)):
        text = visit.form.text(f"{name}_{field.name}")
        arguments[field.name] = text if field.entries is None else _references(text)
    done = await visit.do(verb, outcome=visit.argument("outcome"), **arguments)
    followed = ended_with_it(done) + _back_again(done)
    return Done(address(done["id"]), message.format_map(done) + followed)


def _references(text: str) -> list[str]:
    """Parse references of files, one a line: `kb://…`, an id, or the address of its page."""
    references = [line.strip().rpartition("/")[2] for line in text.split() if line.strip()]
    if len(references) > MOST_EVIDENCE:
        raise BadInput(f"At most {MOST_EVIDENCE} files.", "Name those that show it best.")
    return references
