"""The front page: everything that awaits a person, to be dealt with on the spot."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from remit.entrypoints.asked import asks_for, asks_to
from remit.entrypoints.web import asking
from remit.entrypoints.web.outcome import ended_with_it
from remit.entrypoints.web.site import Done, Site, Visit
from remit.entrypoints.web.words import with_readable_times
from remit.errors import BadInput, NotFound, RemitError
from remit.services import (
    accounts,
    approvals,
    capability_requests,
    companies,
    dead_letters,
    inbox,
    outcomes,
    overview,
    questions,
    submitting,
    threads,
)

#: What can be decided without opening it; the rest is counted.
MOST_SHOWN: Final = 50
MOST_MAIL: Final = 500
#: In the order in which they are looked at: what holds others up comes first.
KINDS: Final = {
    "approval": "Approvals",
    "submission": "Handed in",
    "question": "Questions",
    "limit": "Limits reached",
    "held": "Closed accounts and set-ups",
    "agent_error": "Agents that do not work",
    "budget_stop": "Budget stops",
    "runaway": "Runaway runs",
    "silent_run": "Silent runs",
    "dead_letter": "Dead letters",
    "unanswered": "Unanswered letters",
    "failed_run": "Failed runs",
    "mail": "Unread mail",
}


def routes(site: Site) -> list[Route]:
    return [
        site.page("/", show),
        site.page("/needs/news", news),
        site.action("/needs/approvals/{approval}", decide, show),
        site.action("/needs/questions/{question}", answer, show),
        site.action("/needs/submissions/{outcome}", judge, show),
        site.action("/needs/mail/{message}", deal_with, show),
        site.action("/needs/limits/{company}", raise_limit, show),
        site.action("/needs/accounts/{account}", try_again, show),
    ]


async def show(visit: Visit) -> Response:
    awaits = await visit.awaits()
    groups: dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
    for item in awaits:
        groups.setdefault(item["kind"], []).append(item)
    shown = [item for items in groups.values() for item in items][:MOST_SHOWN]
    await _complete(visit, shown)
    listed = {id(item) for item in shown}
    return await visit.show(
        "home.html",
        groups=[
            (
                kind,
                KINDS.get(kind, kind.replace("_", " ").capitalize()),
                [item for item in items if id(item) in listed],
                len(items),
            )
            for kind, items in groups.items()
            if items
        ],
        names=await asking.names(visit, (item["agent_id"] for item in shown)),
        company_names={one["id"]: one["name"] for one in visit.companies},
        numbers=await _numbers(visit),
        hidden=len(awaits) - len(shown),
    )


async def news(visit: Visit) -> Response:
    """What awaits the visitor, for a browser that tells of it while nobody looks at a page."""
    found = [
        {
            "key": f"{item['kind']}:{item['id']}",
            "kind": KINDS.get(item["kind"], item["kind"].replace("_", " ")),
            "title": item["title"],
        }
        for item in (await visit.awaits())[-MOST_SHOWN:]
    ]
    return JSONResponse(found, headers={"Cache-Control": "no-store"})


async def _complete(visit: Visit, shown: list[dict[str, Any]]) -> None:
    """What one needs to know to decide without opening it."""
    letters: dict[str, dict[str, Any]] = {}
    asked: dict[str, dict[str, Any]] = {}
    mail_from = Counter(item["company_id"] for item in shown if item["kind"] == "mail")
    for company, number in mail_from.items():
        # The oldest, as on the list; questions are there, too, and told of as such.
        found = await visit.ask(threads.own_inbox, company=company, limit=number + MOST_SHOWN)
        letters |= {letter["id"]: letter for letter in found}
    for company in {item["company_id"] for item in shown if item["kind"] == "question"}:
        found = await visit.ask(questions.listing, company=company, limit=MOST_MAIL)
        asked |= {one["id"]: one for one in found}
    for item in shown:
        if item["kind"] == "held":
            item["cause"] = with_readable_times(item["cause"])
        item["more"] = letters.get(item["id"]) or asked.get(item["id"])
        if item["kind"] == "approval":
            try:
                found_one = await visit.ask(approvals.show, approval=item["id"])
            except RemitError:
                continue  # somebody else decided it just now
            called = await asking.called(visit, item["company_id"], [found_one])
            item["more"] = {**found_one, "asks": asks_to(found_one, called)}


async def _numbers(visit: Visit) -> dict[str, Any] | None:
    if visit.company is None:
        return None
    return await visit.ask(overview.dashboard, company=visit.company_id)


async def decide(visit: Visit) -> Done:
    verbs = {"approve": approvals.approve, "reject": approvals.reject}
    verb = verbs.get(visit.form.text("decision"))
    if verb is None:
        raise NotFound("There is no such decision.", "Approve or reject.")
    done = await visit.do(
        verb,
        approval=visit.argument("approval"),
        note=visit.form.maybe("note"),
        expected_revision=visit.form.number("revision"),
    )
    return Done("/", f"{done['status'].capitalize()}: {asks_for(done)}.")


async def judge(visit: Visit) -> Done:
    outcome = visit.argument("outcome")
    if visit.form.text("verdict") == "accept":
        done = await visit.do(outcomes.complete, outcome=outcome)
        return Done("/", f"Accepted.{ended_with_it(done)}")
    await visit.do(submitting.send_back, outcome=outcome, note=visit.form.text("missing"))
    return Done("/", "Sent back to its owner.")


async def raise_limit(visit: Visit) -> Done:
    """Only if it is still what the page showed."""
    name, was, to = visit.form.text("limit"), visit.form.number("was"), visit.form.number("to")
    if not to:
        raise BadInput("to: how far is it to be raised?", "Use the button.")
    await visit.do(
        companies.change,
        company=visit.argument("company"),
        limits={name: to},
        expected={"limits": {name: was}},
    )
    return Done("/", "The limit is raised.")


async def answer(visit: Visit) -> Done:
    await visit.do(
        questions.answer, question=visit.argument("question"), answer=visit.form.text("answer")
    )
    return Done("/", "Your answer is on its way.")


async def try_again(visit: Visit) -> Done:
    tried = await visit.do(
        accounts.retry, account=visit.argument("account"), company=visit.form.text("company")
    )
    return Done("/", f"{tried['name']} is tried now.")


async def deal_with(visit: Visit) -> Done:
    message = visit.argument("message")
    match visit.form.text("what"):
        case "read":
            await visit.do(inbox.acknowledge, ids=[message])
            return Done("/", "Marked as read.")
        case "revive":
            await visit.do(dead_letters.revive, message=message)
            return Done("/", "It is back in line.")
        case "discard":
            await visit.do(dead_letters.discard, message=message)
            return Done("/", "It is put away.")
        case "grant":
            await visit.do(capability_requests.grant_request, request=message)
            return Done("/", "Granted.")
        case "refuse":
            why = visit.form.text("why")
            await visit.do(capability_requests.refuse_request, request=message, why=why)
            return Done("/", "Refused; who asked is told why.")
        case _:
            raise NotFound("That cannot be done with a message.", "Use the buttons.")
