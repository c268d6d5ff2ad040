"""The first page: state of the company, items that await the visitor, agents at work, costs, and
the box for a wish. Items are handled on the page itself."""

from collections import Counter
from typing import Any, Final

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from remit.adapters.registry import WITHOUT_MODEL
from remit.clock import DAY, Micros, to_iso
from remit.entrypoints.approval_text import asks_for, asks_to
from remit.entrypoints.web.pages.approvals import DECISIONS, decided, look_at
from remit.entrypoints.web.pages.inbox import DEALS, dealt
from remit.entrypoints.web.pages.outcome import ended_with_it
from remit.entrypoints.web.site import Done, Page, Routes, Site, Undo, Visit
from remit.entrypoints.web.text import charts, common_queries, words
from remit.entrypoints.web.text.settings_form import number_or_none
from remit.entrypoints.web.text.words import with_readable_times
from remit.errors import BadInput, RemitError
from remit.ids import is_id
from remit.model.organisation.agent import OPERATIONAL
from remit.model.organisation.statement import EntryKind, as_text
from remit.model.text import plural
from remit.services.command import Verb
from remit.services.connections import notice_rules
from remit.services.execution import accounts, runs
from remit.services.governance import approvals
from remit.services.hiring import configuration
from remit.services.messaging import inbox, mail, pending_items, questions, threads
from remit.services.organisation import agents
from remit.services.people import companies
from remit.services.screens import front_page, standing
from remit.services.spending import budgets
from remit.services.work import outcomes, submitting

#: Most items shown in full; the rest is counted.
MOST_SHOWN: Final = 30
MOST_MAIL: Final = 500
MOST_WISHES: Final = 3
#: A longer request is read on its own page, and so are those for which there is no room left.
MOST_LINES: Final = 80
MOST_LINES_IN_ALL: Final = 200
LONGEST_STATEMENT: Final = 5000
#: Most items handled by one click.
MOST_AT_ONCE: Final = 100
LONGEST_SUBJECT: Final = 80
#: Name, icon and urgency of each kind: 0 for a standstill of many, 1 for a wait on a person, 2 for
#: a failure, 3 for what can wait.
KINDS: Final = {
    "acceptance": ("From outside", "company", 0),
    "held": ("Account closed", "plug", 0),
    "limit": ("Limit reached", "clock", 0),
    "budget_stop": ("Over budget", "money", 0),
    "runaway": ("Looping run", "run", 0),
    "silent_run": ("Silent run", "run", 0),
    "confirmation": ("To be confirmed", "approval", 1),
    "approval": ("Approval", "approval", 1),
    "question": ("Question", "question", 1),
    "submission": ("Submitted work", "outcome", 1),
    "change": ("Proposed change", "repo", 1),
    "agent_error": ("Stopped", "agent", 2),
    "dead_letter": ("Failed mail", "mail", 2),
    "failed_run": ("Failed run", "run", 2),
    "unanswered": ("Unanswered", "mail", 3),
    "mail": ("Mail", "mail", 3),
}
#: As on a letter's own page, with other words.
_DEALS: Final = {**DEALS, "revive": (pending_items.revive, "message", "Queued again.")}


def routes(site: Site) -> Routes:
    def does(path: str, verb: Verb[..., Any], message: str, *fields: str) -> Route:
        return site.does(f"/needs/{path}", verb, show, "/", message, *fields)

    return [
        site.page("/", show),
        site.page("/companies/{company_id}", show),
        site.page("/needs/news", news),
        site.action("/companies/{company_id}/tell", tell, show),
        site.action("/needs/approvals/{approval}", decide, show),
        does("questions/{question}", questions.answer, "Answer sent.", "answer", "other"),
        site.action("/needs/submissions/{outcome}", judge, show),
        site.action("/needs/mail/{message}", deal_with, show),
        site.action("/needs/mails", deal_with_all, show),
        site.action("/needs/limits/{company}", raise_limit, show),
        site.action("/needs/budgets/{agent}", raise_budget, show),
        does("accounts/{account}", accounts.retry, "{name} is tried now.", "company"),
        site.action("/needs/agents/{agent}", resume, show),
        does("runs/{run}", runs.cancel, "The run is {status}."),
    ]


async def show(visit: Visit) -> Page:
    page = await visit.look(_show)
    requests = [item["more"] for item in page.values["items"] if item["kind"] == "approval"]
    await look_at(visit, [request for request in requests if request and request["fits"]])
    return page


def _show(visit: Visit) -> Page:
    awaits = sorted(visit.awaits(), key=_urgency)
    shown = awaits[:MOST_SHOWN]
    _complete(visit, shown)
    return visit.show(
        "home.html",
        items=shown,
        kinds=KINDS,
        counted=Counter(item["kind"] for item in awaits),
        names=common_queries.names(visit, (item["agent_id"] for item in shown)),
        company_names={company["id"]: company["name"] for company in visit.companies},
        hidden=len(awaits) - len(shown),
        **(_company(visit) if visit.company is not None else {"now": None}),
    )


def _urgency(item: dict[str, Any]) -> tuple[int, str]:
    return KINDS.get(item["kind"], ("", "", 2))[2], str(item["since"])


def _company(visit: Visit) -> dict[str, Any]:
    """State of the current company."""
    company = visit.company_id
    back = visit.argument("range", "14d")
    trend = visit.ask(
        front_page.trend, company=company, back=back if back in front_page.RANGES else "14d"
    )
    roots = visit.ask(front_page.roots, company=company) if visit.decides else []
    ready = [agent for agent in roots if agent["status"] in OPERATIONAL]
    sent = visit.argument("sent")
    wishes = visit.ask(front_page.wishes, company=company, limit=MOST_WISHES)
    ran = wishes or visit.ask(front_page.newest_runs, company=company, limit=1)
    return {
        "now": visit.ask(front_page.now, company=company),
        "trend": trend,
        **_charts(trend),
        "ranges": [
            (name, visit.link("/", range=name), name == trend["range"])
            for name in front_page.RANGES
        ],
        "roots": roots,
        "ready": ready,
        "without_model": [agent for agent in ready if agent["without_model"]],
        "finds_model": visit.site.app.gate.usable_adapter != WITHOUT_MODEL,
        "choices": [
            (agent["id"], f"{agent['name']} ({agent['title'] or agent['role']})") for agent in ready
        ],
        "wishes": wishes,
        "is_new": not ran,
        "sent": sent if is_id(sent) else "",
        "looks": standing.WORDS,
    }


def _charts(trend: dict[str, Any]) -> dict[str, Any]:
    names = [_named(at, trend["span"]) for at in trend["began"]]
    money = [micros / 1_000_000 for micros in trend["money"]]
    limit = trend["day_limit"] if trend["span"] == DAY else None
    runs_, failed = sum(trend["runs"]), sum(trend["failed"])
    return {
        "spend_chart": charts.bars(
            names,
            money,
            label=f"{words.dollars(sum(money))} spent in {trend['range']}",
            shown=words.rounded,
            tooltips=[
                f"{name}: {words.dollars(value)}" for name, value in zip(names, money, strict=True)
            ],
            limit=limit / 1_000_000 if limit else None,
        ),
        "runs_chart": charts.bars(
            names,
            trend["runs"],
            trend["failed"],
            label=f"{plural(runs_, 'run')} in {trend['range']}, {failed:,} failed",
            tooltips=[
                f"{name}: {plural(count, 'run')}, {bad:,} failed"
                for name, count, bad in zip(names, trend["runs"], trend["failed"], strict=True)
            ],
        ),
        "in_range": {"micros": sum(trend["money"]), "runs": runs_, "failed": failed},
    }


def _named(at: Micros, span: Micros) -> str:
    text = to_iso(at)
    return text[11:16] if span < DAY else f"{int(text[8:10])} {words.MONTHS[int(text[5:7]) - 1]}"


def news(visit: Visit) -> Response:
    """Items that await the visitor, for browser notifications; those that the visitor's rules hold
    back are listed, and marked not to be shown."""
    rows = [
        {
            "key": f"{item['kind']}:{item['id']}",
            "kind": KINDS.get(item["kind"], (item["kind"].replace("_", " "),))[0],
            "title": item["title"],
            "tell": item["tell"],
        }
        for item in visit.ask(notice_rules.news)
    ]
    return JSONResponse(rows, headers={"Cache-Control": "no-store"})


def _complete(visit: Visit, shown: list[dict[str, Any]]) -> None:
    """Add the details that are needed to decide an item without opening it."""
    letters: dict[str, dict[str, Any]] = {}
    open_questions: dict[str, dict[str, Any]] = {}
    mail_from = Counter(item["company_id"] for item in shown if item["kind"] == "mail")
    for company, number in mail_from.items():
        # The oldest, as on the list; they include questions, which are shown as such.
        unread = visit.ask(threads.own_inbox, company=company, limit=number + MOST_SHOWN)
        letters |= {letter["id"]: letter for letter in unread}
    raised = [item for item in shown if item["kind"] == "question"]
    room = MOST_LINES_IN_ALL
    for company in {item["company_id"] for item in raised}:
        waiting = visit.ask(questions.listing, company=company, limit=MOST_MAIL)
        here = [item["id"] for item in raised if item["company_id"] == company]
        letter_of = visit.ask(questions.letters_of, company=company, questions=here)
        open_questions |= {
            question["id"]: {**question, "letter": letter_of.get(question["id"])}
            for question in waiting
        }
    for item in shown:
        if item["kind"] == "held":
            item["cause"] = with_readable_times(item["cause"])
        item["more"] = letters.get(item["id"]) or open_questions.get(item["id"])
        if item["kind"] == "budget_stop":
            item["more"] = _budget(visit, item)
        if item["kind"] == "approval":
            try:
                approval = visit.ask(approvals.show, approval=item["id"])
            except RemitError:
                continue  # decided by somebody else just now
            called = common_queries.called(visit, item["company_id"], [approval])
            asks = asks_to(approval, called)
            item["more"] = {**approval, "asks": asks, **_stated(approval, room)}
            room -= item["more"]["lines"] if item["more"]["fits"] else 0


def _budget(visit: Visit, item: dict[str, Any]) -> dict[str, Any]:
    """Budget and spending of an agent, with twice as much as an offer."""
    kind = "tokens" if "(tokens)" in item["title"] else "money"
    side = visit.ask(budgets.show, agent=item["agent_id"])[kind]
    limit, spent = side["limit"] or 0, side["spent"]
    if kind == "tokens":
        shown, offer = [f"{amount:,} tokens" for amount in (spent, limit)], 2 * max(limit, spent)
    else:
        shown = [words.dollars(amount / 1_000_000) for amount in (spent, limit)]
        offer = max(1, -(-2 * max(limit, spent) // 1_000_000))
    return {"kind": kind, "offer": offer, "spent_shown": shown[0], "limit_shown": shown[1]}


def _stated(approval: dict[str, Any], room: int) -> dict[str, Any]:
    """The statement of a request, if it fits into the `room` that is left, in lines; else its
    dangers. It is approved here only if it fits."""
    statement = approval["statement"]
    text = as_text(statement)
    lines = text.count("\n") + 1
    short = len(text) <= LONGEST_STATEMENT and lines <= min(MOST_LINES, room)
    dangers = (entry for section in statement["sections"] for entry in section["entries"])
    return {
        "fits": short and statement["whole"] and statement["may_decide"],
        "lines": lines,
        "notes": [entry for entry in dangers if entry["kind"] == EntryKind.DANGER],
    }


async def tell(visit: Visit) -> Done:
    """Send a wish to an agent at the top of the company."""
    company, text = visit.company_id, visit.form.text("body")
    if not text:
        raise BadInput("The message is empty.", "Write what you want.")
    roots = await visit.do(front_page.roots, company=company)
    chosen = _chosen(roots, visit.form.text("to"))
    sent = await visit.do(
        mail.send, company=company, to=f"agent:{chosen['id']}", subject=subject_of(text), body=text
    )
    message = " ".join(filter(None, (f"Sent to {chosen['name']}.", sent["not_started"])))
    return Done(visit.link("/", sent=sent["thread_id"]), message)


def _chosen(roots: list[dict[str, Any]], wanted: str) -> dict[str, Any]:
    for agent in roots:
        if agent["id"] == wanted or (not wanted and len(roots) == 1):
            return agent
    raise BadInput("The receiver is missing.", "Choose an agent.")


def subject_of(text: str) -> str:
    """Derive a subject from a text: its first line, cut between words."""
    line = " ".join(text.splitlines()[0].split()).lstrip("# ")
    plain = "".join(char for char in line if char.isprintable())
    if len(plain) <= LONGEST_SUBJECT:
        return plain
    cut = plain[:LONGEST_SUBJECT]
    return (cut.rpartition(" ")[0] or cut) + "…"


async def decide(visit: Visit) -> Done:
    decisions = {decision: DECISIONS[decision] for decision in ("approve", "reject")}
    done, _ = await decided(visit, decisions, "Approve or reject.")
    return Done("/", f"{done['status'].capitalize()}: {asks_for(done)}.")


async def judge(visit: Visit) -> Done:
    outcome = visit.argument("outcome")
    if visit.form.text("verdict") == "accept":
        done = await visit.do(outcomes.complete, outcome=outcome)
        return Done("/", f"Accepted.{ended_with_it(done)}")
    await visit.do(submitting.send_back, outcome=outcome, note=visit.form.text("missing"))
    return Done("/", "Sent back to its owner.")


async def raise_limit(visit: Visit) -> Done:
    """Raise a limit, unless it differs from the value on the page."""
    name, was, to = visit.form.text("limit"), visit.form.number("was"), visit.form.number("to")
    if not to:
        raise BadInput("to: how far is it to be raised?", "Use the button.")
    company = visit.argument("company")
    await visit.do(
        companies.change, company=company, limits={name: to}, expected={"limits": {name: was}}
    )
    back = {"limit": name, "was": str(to), "to": str(was)}
    undo = Undo(f"/needs/limits/{company}", back) if was and was < to else None
    return Done("/", f"The limit is {'raised' if undo else 'as it was'}.", undo)


async def raise_budget(visit: Visit) -> Done:
    """Raise an agent's monthly budget, from the item that says it is used up."""
    amount = number_or_none(visit.form.text("to"), "to")
    tokens = visit.form.text("kind") == "tokens"
    name, factor = ("budgetMonthlyTokens", 1) if tokens else ("budgetMonthlyCents", 100)
    change = {name: None if amount is None else round(amount * factor)}
    done = await visit.do(configuration.change, agent=visit.argument("agent"), changes=change)
    shown = "no limit" if amount is None else f"{amount:,.0f} tokens" if tokens else None
    return Done("/", f"{done['name']} may spend {shown or words.dollars(amount or 0)} a month.")


async def resume(visit: Visit) -> Done:
    """Resume one stopped agent, or all that are stopped for the same cause."""
    chosen = visit.argument("agent")
    if not visit.form.ticked("alike"):
        done = await visit.do(agents.resume, agent=chosen)
        undo = Undo(f"/agents/{done['id']}/control", {"verb": "pause"})
        return Done("/", f"{done['name']} is resumed.", undo)
    alike = await visit.look(lambda visit: visit.ask(front_page.stopped_like, agent=chosen))
    for agent in alike[:MOST_AT_ONCE]:
        await visit.site.app.gate(visit.who, agents.resume, agent=agent)
    left = len(alike) - MOST_AT_ONCE
    more = f" {left:,} are left; resume them with another click." if left > 0 else ""
    return Done("/", f"{plural(min(len(alike), MOST_AT_ONCE), 'agent')} resumed.{more}")


async def deal_with_all(visit: Visit) -> Done:
    """Mark the unread mail that the page showed as read."""
    shown = [message for message in visit.form.every("message") if is_id(message)][:MOST_AT_ONCE]
    if not shown:
        raise BadInput("There is no mail to mark.", "Load the page again.")
    await visit.do(inbox.acknowledge, ids=shown)
    back = visit.link("/inbox") if visit.form.text("from") == "mail" else "/"
    return Done(back, f"{plural(len(shown), 'message')} marked as read.")


async def deal_with(visit: Visit) -> Done:
    return await dealt(visit, visit.argument("message"), "/", _DEALS)
