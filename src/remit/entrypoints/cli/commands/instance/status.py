"""`remit status`: whether the instance runs, and what is in it."""

import click

from remit.entrypoints.cli.commands.company import halt
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import Command
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import RemitError

#: Most agents or runs that are counted exactly.
MOST_COUNTED = 1000


@click.command(cls=Command, forgiving=True)
def status(session: Session) -> None:
    """Say whether the instance runs, and what is in it."""
    try:
        health = session.anonymous.get("/health")
    except RemitError:
        if session.as_json:
            print(output.as_json({"running": False, "url": session.url}))
        raise
    here = session.here
    answer: View = {
        "running": True,
        "url": session.url,
        "outside": list(here.outside) if session.is_here else [],
        "version": health.get("version") if isinstance(health, dict) else None,
        "pid": here.pid if session.is_here else None,
        "companies": companies(session) if session.token else [],
    }
    answer["agents"] = sum(company["agents"] for company in answer["companies"])
    answer["runs"] = sum(company["runs"] for company in answer["companies"])

    def draw(view: View) -> None:
        output.fields(
            {
                "running at": view["url"],
                "for others": ", ".join(view["outside"]),
                "version": view["version"],
                "process": view["pid"],
                "companies": ", ".join(company["name"] for company in view["companies"]),
                "agents": counted(view["agents"]),
                "running now": counted(view["runs"]) if view["companies"] else "",
            }
        )
        for company in view["companies"]:
            for company_halt in company["halts"]:
                output.say(f"{company['name']}: {halt.line(company_halt)}")
        if session.token is None:
            output.note("Without a token nothing more can be seen; `remit login` keeps one.")

    session.show(answer, draw)


def companies(session: Session) -> list[View]:
    """The companies of the caller, with how many agents and live runs each has, and its halts."""

    def count(company: str, what: str, **query: str) -> int:
        target = path("companies", company, what)
        return len(list(session.client.each(target, MOST_COUNTED, **query)))

    return [
        {
            "id": company["id"],
            "name": company["name"],
            "agents": count(company["id"], "agents"),
            "runs": count(company["id"], "runs", live="true"),
            "halts": halt.listed(session, company["id"]),
        }
        for company in session.client.each(path("companies"))
    ]


def counted(number: int) -> str:
    return f"{number} or more" if number >= MOST_COUNTED else str(number)
