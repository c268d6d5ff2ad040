"""A decision that came by e-mail in the visitor's name: they confirm or dismiss it."""

from remit.entrypoints.web.site import Page, Routes, Site, Visit
from remit.services.chat import confirmations


def routes(site: Site) -> Routes:
    here = "/confirmations/{confirmation}"
    confirm, dismiss = confirmations.confirm, confirmations.dismiss
    return [
        site.page(here, show),
        site.does(f"{here}/confirm", confirm, show, here, "Confirmed. {done}"),
        site.does(f"{here}/dismiss", dismiss, show, here, "Dismissed. Nothing was done."),
    ]


def show(visit: Visit) -> Page:
    row = visit.ask(confirmations.show, confirmation=visit.argument("confirmation"))
    visit.enter(row["company_id"])
    kind, _, about = row["subject"].partition(":")
    return visit.show("confirmation.html", one=row, approval=about if kind == "approval" else None)
