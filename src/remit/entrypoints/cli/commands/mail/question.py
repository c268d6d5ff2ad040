"""`remit question`: what agents ask, and the answers."""

from remit.entrypoints.cli.drawing import cells, output
from remit.entrypoints.cli.options import Group
from remit.entrypoints.cli.session import Session, View
from remit.errors import NotFound
from remit.ids import looks_like_id, several, short

question = Group("question", help="Questions of agents, and your answers.")


def _asked(session: Session, row: View) -> str:
    _, _, agent = row["to"].partition(":")
    return session.known(agent) if agent else str(row["to"])


question.rows(
    *("list", "id: {id:short}", "agent: {agentId:known}", ("asks", _asked)),
    "age: {createdAt:age}",
    ("answer", lambda _, row: row["answer"] or row["status"]),
    "question",
    ("options", lambda _, row: " | ".join(row["options"])),
    empty="There are no questions.",
)


def question_id(session: Session, text: str) -> str:
    """Resolve a question by its id or a part of it, or by the agent that asks it."""
    bare = text.removeprefix("question:")
    if looks_like_id(bare):
        return bare
    agent = session.agent_id(bare)
    questions = list(session.client.each(session.under_company("questions"), agent=agent))
    if not questions:
        raise NotFound(f"{bare} asks nothing.", "See `remit question list`.")
    if len(questions) > 1:
        lines = [
            f"{short(view['id'])} ({output.clean(view['question'])[:60]})" for view in questions
        ]
        raise several(f"{bare} asks several things", lines)
    return str(questions[0]["id"])


question.draw = lambda session, view: cells.fields(
    session, view, "question: {question}", "status: {status}", "answer: {answer}", "id: {id}"
)
