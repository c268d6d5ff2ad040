"""A decision that came by e-mail in the visitor's name: they confirm or dismiss it.

The page of a request that is to be approved shows all of it, or has no button to confirm that.
"""

from contextlib import suppress

from remit.entrypoints.web.pages.approvals import look_at
from remit.entrypoints.web.site import Page, Routes, Site, Visit
from remit.errors import NotFound, Refused
from remit.services.chat import confirmations
from remit.services.governance import approvals


def routes(site: Site) -> Routes:
    here = "/confirmations/{confirmation}"
    confirm, dismiss = confirmations.confirm, confirmations.dismiss
    return [
        site.page(here, show),
        site.does(f"{here}/confirm", confirm, show, here, "Confirmed. {done}"),
        site.does(f"{here}/dismiss", dismiss, show, here, "Dismissed. Nothing was done."),
    ]


async def show(visit: Visit) -> Page:
    page = await visit.look(_show)
    if (request := page.values["asked"]) is not None:
        await look_at(visit, [request])
    return page


def _show(visit: Visit) -> Page:
    row = visit.ask(confirmations.show, confirmation=visit.argument("confirmation"))
    visit.enter(row["company_id"])
    kind, _, about = row["subject"].partition(":")
    request = None
    if kind == "approval" and row["ended_why"] is None:
        with suppress(NotFound, Refused):  # it is not theirs to see any more
            request = visit.ask(approvals.show, approval=about)
    return visit.show(
        "confirmation.html",
        one=row,
        approval=about if kind == "approval" else None,
        outcome=about if kind == "outcome" else None,
        asked=request,
        may_confirm=row["act"] != "approve" or (request and request["statement"]["whole"]),
    )
