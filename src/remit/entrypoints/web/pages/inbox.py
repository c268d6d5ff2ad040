"""Mail: the visitor's own and the company's, threads, and new letters."""

from __future__ import annotations

from typing import Any, Final

from starlette.routing import Route

from remit.entrypoints.web.site import Done, Page, Site, Visit
from remit.errors import NotFound
from remit.services.messaging import inbox, mail, pending_items, threads, wish_withdrawal
from remit.services.organisation import agents
from remit.services.rights import capability_requests

PAGE: Final = 50
#: Most receivers in the list of suggestions; others can be typed.
MOST_NAMED: Final = 1000


def routes(site: Site) -> list[Route]:
    here = "/inbox/{message}"
    return [
        *site.form("/inbox", listing, send),
        site.page(here, show),
        site.page(f"{here}/take-back", preview_cancel),
        *site.forms(here, show, reply=reply, deal=deal, taken_back=cancel),
    ]


def listing(visit: Visit) -> Page:
    which = visit.argument("show", "unread")
    more = ""
    if which in ("company", "sent"):
        before = visit.before_id
        messages = visit.ask(
            threads.listing,
            company=visit.company_id,
            before=before,
            limit=PAGE,
            sent=which == "sent",
        )
        if len(messages) == PAGE:
            more = visit.link("/inbox", show=which, before=messages[-1]["id"])
    else:
        place = visit.number("before", digits=18)
        messages = visit.ask(
            threads.newest,
            company=visit.company_id,
            everything=which == "all",
            before=threads.LAST_POSITION if place is None else place,
            limit=PAGE,
        )
        if len(messages) == PAGE:
            more = visit.link("/inbox", show=which, before=messages[-1]["position"])
    return visit.show(
        "inbox.html",
        messages=messages,
        which=which,
        more=more,
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
        dead=[letter for letter in thread if _is_dead(letter)],
        trace=message["trace"],
        takes_back=_may_take_back(visit, message, thread),
    )


def _may_take_back(
    visit: Visit, message: dict[str, Any], thread: list[dict[str, Any]]
) -> dict[str, Any] | None:
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


async def cancel(visit: Visit) -> Done:
    message = visit.argument("message")
    await visit.do(wish_withdrawal.cancel, message=message)
    return Done(f"/inbox/{message}", "Withdrawn. Agents that worked on it are told.")


def _other(visit: Visit, last: dict[str, Any]) -> str:
    """Address that an answer goes to: the last sender, or the last receiver if the visitor wrote.

    A message from a channel is answered to the agent that is bound to it.
    """
    mine = f"user:{visit.me['id']}"
    away = last["sender"] == mine or last["sender"].startswith("channel:")
    return str(last["to"] if away else last["sender"])


def _is_dead(message: dict[str, Any]) -> bool:
    return any(delivery["status"] == "dead" for delivery in message["deliveries"])


async def send(visit: Visit) -> Done:
    sent = await visit.do(
        mail.send,
        to=visit.form.text("to"),
        company=visit.company_id,
        body=visit.form.text("body"),
        subject=visit.form.text("subject"),
    )
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
        subject=_answering(last["subject"]),
        reply_to=last["id"],
    )
    return Done(f"/inbox/{message}", _sent(sent))


def _sent(sent: dict[str, Any]) -> str:
    return f"Sent. {sent['not_started']}" if sent["not_started"] else "Sent."


def _answering(subject: str) -> str:
    return subject if subject.lower().startswith("re:") or not subject else f"Re: {subject}"


async def deal(visit: Visit) -> Done:
    message = visit.argument("message")
    about = visit.form.text("message") or message
    match visit.form.text("what"):
        case "read":
            await visit.do(inbox.acknowledge, ids=[about])
            return Done(f"/inbox/{message}", "Marked as read.")
        case "grant":
            await visit.do(capability_requests.grant_request, request=about)
            return Done(f"/inbox/{message}", "Granted.")
        case "refuse":
            why = visit.form.text("why")
            await visit.do(capability_requests.refuse_request, request=about, why=why)
            return Done(f"/inbox/{message}", "Refused; the requester gets your reason.")
        case "revive":
            await visit.do(pending_items.revive, message=about)
            return Done(f"/inbox/{message}", "Requeued.")
        case "discard":
            await visit.do(pending_items.discard, message=about)
            return Done(f"/inbox/{message}", "Dismissed.")
        case "cancel":
            await visit.do(pending_items.cancel_message, message=about)
            return Done(f"/inbox/{message}", "Delivery cancelled.")
        case _:
            raise NotFound("That cannot be done with a message.", "Use the buttons.")
