"""The company in an address."""

from remit.entrypoints.web.site import Visit
from remit.services.people import companies


def entered(visit: Visit) -> str:
    """Make the company in the address the current one, and return its id."""
    company = visit.argument("company_id")
    if company not in (own["id"] for own in visit.companies):
        company = (visit.ask(companies.show, company=company))["id"]
    visit.enter(company)
    return company
