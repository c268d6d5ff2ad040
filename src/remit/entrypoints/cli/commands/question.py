"""`remit question`: what agents ask, and the answers."""

from __future__ import annotations

from typing import Any

import click

from remit.entrypoints.cli import letters, output
from remit.entrypoints.cli.options import Group, Session, limit_option, pass_session
from remit.errors import NotFound
from remit.ids import looks_like_id, several, short

id_argument = click.argument("id_", metavar="ID|AGENT")


@click.group(cls=Group)
def question() -> None:
    """What agents ask, and your answers."""


@question.command("list")
@click.option("--agent", metavar="AGENT", help="Only what this agent asks.")
@click.option("--all", "ended", is_flag=True, help="Also what was answered or cancelled.")
@limit_option
@pass_session
def list_(session: Session, agent: str | None, ended: bool, limit: int) -> None:
    """List open questions: the company's, or your own if you are an agent."""
    found = session.listed(
        session.under_company("questions"),
        limit,
        agent=session.agent_id(agent) if agent else None,
        all="1" if ended else None,
    )

    def draw(questions: list[dict[str, Any]]) -> None:
        rows = [
            (
                short(one["id"]),
                session.names.get(one["agentId"], one["agentId"]),
                _asked(session, one["to"]),
                letters.age(one["createdAt"]),
                one["answer"] or one["status"],
                one["question"],
                " | ".join(one["options"]),
            )
            for one in questions
        ]
        columns = ("id", "agent", "asks", "age", "answer", "question", "options")
        output.table(columns, rows, empty="There are no questions.")

    session.show(found, draw)


def _asked(session: Session, address: str) -> str:
    _, _, agent = address.partition(":")
    return session.names.get(agent, agent) if agent else address


@question.command()
@id_argument
@click.argument("answer")
@pass_session
def answer(session: Session, id_: str, answer: str) -> None:
    """Answer a question; the agent gets it as mail."""
    target = session.under_company("questions", _question_id(session, id_), "answer")
    done = session.client.send("POST", target, {"answer": answer})
    name = session.agent_name(done["agentId"])
    session.done(done, [f"Answered; {name} gets it as mail."], _draw)


@question.command()
@id_argument
@pass_session
def cancel(session: Session, id_: str) -> None:
    """Cancel a question; nobody has to answer it any more."""
    gone = session.client.send(
        "DELETE", session.under_company("questions", _question_id(session, id_))
    )
    session.show(gone, lambda one: output.say(f"Question {short(one['id'])} is {one['status']}."))


def _question_id(session: Session, text: str) -> str:
    """A question by its id or a part of it, or the open one of an agent."""
    bare = text.removeprefix("question:")
    if looks_like_id(bare):
        return bare
    agent = session.agent_id(bare)
    found = list(session.client.each(session.under_company("questions"), agent=agent))
    if not found:
        raise NotFound(f"{bare} asks nothing.", "See `remit question list`.")
    if len(found) > 1:
        asked = [f"{short(one['id'])} ({output.clean(one['question'])[:60]})" for one in found]
        raise several(f"{bare} asks several things", asked)
    return str(found[0]["id"])


def _draw(one: dict[str, Any]) -> None:
    output.fields(
        {
            "question": one["question"],
            "status": one["status"],
            "answer": one["answer"],
            "id": one["id"],
        }
    )
