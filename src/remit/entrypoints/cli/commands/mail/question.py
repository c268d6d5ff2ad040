"""`remit question`: what agents ask, and the answers."""

from typing import Any

from remit.entrypoints.cli.drawing import letters, output
from remit.entrypoints.cli.options import Group, Session
from remit.errors import NotFound
from remit.ids import looks_like_id, several, short

question = Group("question", help="Questions of agents, and your answers.")


@question.rows(
    *("list", "id", "agent", "asks", "age", "answer", "question", "options"),
    empty="There are no questions.",
)
def _row(session: Session, one: dict[str, Any]) -> tuple[str, ...]:
    return (
        short(one["id"]),
        session.names.get(one["agentId"], one["agentId"]),
        _asked(session, one["to"]),
        letters.age(one["createdAt"]),
        one["answer"] or one["status"],
        one["question"],
        " | ".join(one["options"]),
    )


def _asked(session: Session, address: str) -> str:
    _, _, agent = address.partition(":")
    return session.names.get(agent, agent) if agent else address


def question_id(session: Session, text: str) -> str:
    """Resolve a question by its id or a part of it, or by the agent that asks it."""
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


def _draw(_: Session, one: dict[str, Any]) -> None:
    output.fields({name: one.get(name) for name in ("question", "status", "answer", "id")})


question.draw = _draw
