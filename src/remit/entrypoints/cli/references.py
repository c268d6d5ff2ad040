"""References on the command line to things that have an id and no name."""

from remit.entrypoints.cli.options import Session, pick
from remit.ids import is_id, normalise


def bare_id(_: Session, text: str) -> str:
    """Return an id or a part of one without its kind, such as `schedule:`."""
    return normalise(text.rpartition(":")[2])


def picked(session: Session, text: str, noun: str, step: str) -> str:
    """Resolve an id or a part of one in the company in force."""
    name = text.removeprefix(f"{noun}:")
    if is_id(name) or not session.is_company_named:
        return normalise(name)  # the instance looks it up in the companies of the caller
    known = session.client.each(session.under_company(f"{noun}s"))
    return str(pick(known, name, noun, step)["id"])
