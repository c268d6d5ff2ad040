"""Which company an address is about."""

from remit.entrypoints.web.site import Visit
from remit.services.people import companies


def entered(visit: Visit) -> str:
    """Look at the company that the address names."""
    company = visit.argument("company_id")
    if company not in (one["id"] for one in visit.companies):
        company = (visit.ask(companies.show, company=company))["id"]
    visit.enter(company)
    return company
