"""Mail: the visitor's own and the company's, threads, and new letters."""

from collections.abc import Mapping
from typing import Any, Final

from remit.entrypoints.web.site import MOST_ROWS, Done, Page, Routes, Site, Visit
from remit.errors import NotFound
from remit.model.messaging.mail import answer_subject
from remit.services.command import Answer, Verb
from remit.services.messaging import inbox, mail, pending_items, threads, wish_withdrawal
from remit.services.organisation import agents
from remit.services.rights import capability_requests

#: Most receivers in the list of suggestions; others can be typed.
MOST_NAMED: Final = 1000
Deals = Mapping[str, tuple[Verb[..., Any], str, str]]
#: Actions on a message: the verb, its parameter for the message, and the sentence after it.
DEALS: Final[Deals] = {
    "read": (inbox.acknowledge, "ids", "Marked as read."),
    "grant": (capability_requests.grant_request, "request", "Granted."),
    "refuse": (
        *(capability_requests.refuse_request, "request"),
        "Refused; the requester gets your reason.",
    ),
    "revive": (pending_items.revive, "message", "Requeued."),
    "discard": (pending_items.discard, "message", "Dismissed."),
    "cancel": (pending_items.cancel_message, "message", "Delivery cancelled."),
}
WITHDRAWN: Final = "Withdrawn. Agents that worked on it are told."


def routes(site: Site) -> Routes:
    here = "/inbox/{message}"
    return [
        *site.form("/inbox", listing, send),
        site.page(here, show),
        site.page(f"{here}/take-back", preview_cancel),
        *site.forms(here, show, reply=reply, deal=deal),
        site.does(f"{here}/taken-back", wish_withdrawal.cancel, show, here, WITHDRAWN),
    ]


def listing(visit: Visit) -> Page:
    which = visit.argument("show", "unread")
    if which in ("company", "sent"):
        key, messages = "id", visit.listed(threads.listing, sent=which == "sent")
    else:
        key, place = "position", visit.number("before", digits=18)
        messages = visit.ask(
            threads.newest,
            company=visit.company_id,
            everything=which == "all",
            before=threads.LAST_POSITION if place is None else place,
            limit=MOST_ROWS,
        )
    return visit.show(
        "inbox.html",
        messages=messages,
        which=which,
        more=visit.more("/inbox", messages, key=key, show=which),
        to=visit.form.text("to") or visit.argument("to"),
        addresses=_addresses(visit) if visit.decides else [],
    )


def _addresses(visit: Visit) -> list[str]:
    staff = visit.ask(agents.listing, company=visit.company_id, limit=MOST_NAMED)
    return ["board", *(f"agent:{agent['name']}" for agent in staff)]


async def show(visit: Visit) -> Page:
    """Show a letter; that is a read access, which is recorded."""
    message = await visit.do(threads.show, message=visit.argument("message"))
    return await visit.look(lambda visit: _show(visit, message))


def _show(visit: Visit, message: dict[str, Any]) -> Page:
    visit.enter(message["company_id"])
    thread = message["thread"]
    last = thread[-1] if thread else message
    return visit.show(
        "message.html",
        message=message,
        thread=thread,
        answer_to=_other(visit, last),
        last=last,
        dead=[
            letter
            for letter in thread
            if any(delivery["status"] == "dead" for delivery in letter["deliveries"])
        ],
        trace=message["trace"],
        takes_back=_may_take_back(visit, message, thread),
    )


def _may_take_back(visit: Visit, message: Answer, thread: list[Answer]) -> Answer | None:
    """The letter that can be withdrawn here: of a person to an agent, and not finished."""
    trace = message["trace"]
    if trace is None or trace.get("state") in (None, "taken_back", "sent", "read"):
        return None
    letter = next(
        (candidate for candidate in [message, *thread] if candidate["id"] == trace["message_id"]),
        None,
    )
    mine = letter is not None and letter["sender"] == f"user:{visit.me['id']}"
    return letter if mine or visit.decides else None


async def preview_cancel(visit: Visit) -> Page:
    """Preview of what ends if a letter is withdrawn."""
    message = visit.argument("message")
    ends = await visit.do(wish_withdrawal.preview_cancel, message=message)
    letter = await visit.do(threads.show, message=message)

    def load(visit: Visit) -> Page:
        visit.enter(letter["company_id"])
        return visit.show("take_back.html", letter=letter, ends=ends)

    return await visit.look(load)


def _other(visit: Visit, last: dict[str, Any]) -> str:
    """Address that an answer goes to: the last sender, or the last receiver if the visitor wrote.

    A message from a channel is answered to the agent that is bound to it.
    """
    mine = f"user:{visit.me['id']}"
    away = last["sender"] == mine or last["sender"].startswith("channel:")
    return str(last["to"] if away else last["sender"])


async def send(visit: Visit) -> Done:
    letter = visit.form.arguments(mail.send, ("to", "body", "subject"))
    sent = await visit.do(mail.send, company=visit.company_id, **letter)
    return Done(f"/inbox/{sent['id']}", _sent(sent))


async def reply(visit: Visit) -> Done:
    message = visit.argument("message")
    seen = await visit.do(threads.show, message=message)
    visit.enter(seen["company_id"])
    last = seen["thread"][-1] if seen["thread"] else seen
    sent = await visit.do(
        mail.send,
        to=_other(visit, last),
        company=visit.company_id,
        body=visit.form.text("body"),
        subject=answer_subject(last["subject"]),
        reply_to=last["id"],
    )
    return Done(f"/inbox/{message}", _sent(sent))


def _sent(sent: dict[str, Any]) -> str:
    return f"Sent. {sent['not_started']}" if sent["not_started"] else "Sent."


async def deal(visit: Visit) -> Done:
    message = visit.argument("message")
    return await dealt(visit, visit.form.text("message") or message, f"/inbox/{message}", DEALS)


async def dealt(visit: Visit, message: str, back: str, deals: Deals) -> Done:
    """Do with a message what the form says."""
    deal = deals.get(visit.form.text("what"))
    if deal is None:
        raise NotFound("That cannot be done with a message.", "Use the buttons.")
    verb, parameter, sentence = deal
    why = visit.form.arguments(verb, {"why"} & verb.fields.keys())
    await visit.do(verb, **{parameter: [message] if parameter == "ids" else message}, **why)
    return Done(back, sentence)
