"""`remit question`: what agents ask, and the answers."""

from typing import Any

from remit.entrypoints.cli.drawing import cells, letters, output
from remit.entrypoints.cli.options import Group, Session
from remit.errors import NotFound
from remit.ids import looks_like_id, several, short

question = Group("question", help="Questions of agents, and your answers.")


def _asked(session: Session, one: dict[str, Any]) -> str:
    _, _, agent = one["to"].partition(":")
    return session.names.get(agent, agent) if agent else str(one["to"])


question.rows(
    *("list", "id: {id:short}", "agent: {agentId:known}", ("asks", _asked)),
    ("age", lambda _, one: letters.age(one["createdAt"])),
    ("answer", lambda _, one: one["answer"] or one["status"]),
    "question",
    ("options", lambda _, one: " | ".join(one["options"])),
    empty="There are no questions.",
)


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


question.draw = lambda session, one: cells.fields(
    session, one, "question: {question}", "status: {status}", "answer: {answer}", "id: {id}"
)
