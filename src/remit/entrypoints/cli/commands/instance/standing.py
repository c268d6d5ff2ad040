"""`remit` without a command: where things stand, and what to do next."""

from collections.abc import Iterator

from remit import version
from remit.entrypoints import cost_text
from remit.entrypoints.cli.commands.company import halt
from remit.entrypoints.cli.commands.instance.status import companies, counted
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import RemitError
from remit.model.text import dollars

#: Things that await the person and are named.
_MOST_NAMED = 5
#: Things that await the person and are counted.
_MOST_COUNTED = 100
_NO_INSTANCE = (
    ("remit demo", "see a company at work, without a model or a key"),
    ("remit up", "start your own"),
    ("remit --help", "list all commands"),
)


def show(session: Session) -> None:
    """Print where things stand; nothing is wrong with an instance that does not run."""
    session.forgive()
    try:
        answer = _look(session)
    except RemitError as error:
        answer = {"running": False, "url": session.url, "problem": error.sentence}
        if error.reason != "unreachable":
            answer |= {"running": True, "step": error.step}
    session.show({**answer, "version": version.current()}, lambda view: _draw(session, view))


def _look(session: Session) -> View:
    session.anonymous.get("/health")
    mine = companies(session)
    awaiting = list(session.client.each(path("needs-you"), _MOST_COUNTED))
    for company in mine:
        company["spending"] = _spending(session, company["id"])
    return {"running": True, "url": session.url, "companies": mine, "needs_you": awaiting}


def _spending(session: Session, company: str) -> View | None:
    """The cost of today and its limit, if the caller may know them."""
    try:
        answer: View = session.client.get(path("companies", company, "spending"))
    except RemitError:
        return None
    return {"today": answer["today"], "dayLimitCents": answer["dayLimitCents"]}


def _draw(session: Session, view: View) -> None:
    if not view["running"]:
        where = session.url if session.url_option else str(session.settings.home)
        output.say(f"Remit {version.current()}. No instance runs in {where}.")
        _draw_next(_NO_INSTANCE)
        return
    output.say(f"Remit runs at {view['url']}.")
    if "problem" in view:
        output.say(view["problem"], f"  next: {view['step']}")
        return
    for company in view["companies"]:
        output.say(*_lines(company))
    _draw_awaiting(view["needs_you"])
    _draw_next(
        (
            ('remit send AGENT "…"', "say what you want"),
            ("remit top", "see who works, and why others do not"),
            ("remit open", "sign in to the web"),
            ("remit --help", "list all commands"),
        )
    )


def _lines(company: View) -> Iterator[str]:
    """A company in a line, and a line for each halt."""
    agents = "1 agent" if company["agents"] == 1 else f"{counted(company['agents'])} agents"
    spent = ""
    if (spending := company["spending"]) is not None:
        spent = f"; today {cost_text.cost(spending['today'])}"
        if (limit := spending["dayLimitCents"]) is not None:
            spent += f" of {dollars(limit / 100)}"
    yield f"{company['name']}: {agents}, {counted(company['runs'])} at work{spent}."
    for company_halt in company["halts"]:
        yield f"  {halt.line(company_halt)}"


def _draw_awaiting(items: list[View]) -> None:
    if not items:
        output.say("Nothing awaits you.")
        return
    number = f"{_MOST_COUNTED} or more" if len(items) >= _MOST_COUNTED else str(len(items))
    things = "thing awaits" if len(items) == 1 else "things await"
    output.say(f"{number} {things} you:")
    for item in items[:_MOST_NAMED]:
        output.say(f"  {item['kind'].replace('_', ' ')}: {output.shortened(item['title'])}")
        output.say(f"    next: {output.shortened(item['next'])}")
    if len(items) > _MOST_NAMED:
        output.say("  … and more: remit needs-you")


def _draw_next(steps: tuple[tuple[str, str], ...]) -> None:
    width = max(len(command) for command, _ in steps)
    output.say("Next:", *(f"  {command.ljust(width)}  {what}" for command, what in steps))
