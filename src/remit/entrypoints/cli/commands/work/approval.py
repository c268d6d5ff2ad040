"""`remit approval`: what agents asked for; look at it, talk about it, decide."""

import sys
from functools import partial

import click

from remit.entrypoints.approval_text import asks_for
from remit.entrypoints.cli.client import save
from remit.entrypoints.cli.drawing import approval_view, cells, output
from remit.entrypoints.cli.options import Group, limit_option, option, stated
from remit.entrypoints.cli.parameters import APPROVAL_NAME, REFERENCES, Reference, Whole
from remit.entrypoints.cli.session import Declined, Session, View, path, pick
from remit.errors import BadInput, NotFound
from remit.ids import is_id, looks_like_id, several, short
from remit.model.text import name_key

OPEN = ("pending", "revision_requested")
STATUSES = (*OPEN, "approved", "rejected", "cancelled")

id_argument = click.argument("id_", metavar="ID|AGENT", type=REFERENCES["approval"])
which_argument = click.argument("id_", metavar="[ID|AGENT]", required=False, type=APPROVAL_NAME)
note_option = option("--note TEXT", "Why; whoever asked reads it.")
revision_option = option("--revision", "Only if it is still at this revision.", type=Whole(min=1))


_EXAMPLES = ("remit {0} writer", 'remit {0} 4b6f2d91a0c7 --revision 1 --note "As agreed."')
_READ_FIRST = {
    "approve": " Without --revision, the whole approval is shown, and you are asked; a script "
    "names the revision that was read.",
    "reject": "",
}

approval = Group("approval", help="Approvals: what agents ask you to decide.")


@approval.command("list")
@option("--status", "Only these; the open ones otherwise.", type=click.Choice(STATUSES))
@option("--all", "Include decided ones.", field="everything")
@limit_option
def list_(session: Session, status: str | None, everything: bool, limit: int) -> None:
    """List what waits for a decision, the newest first."""
    target = session.under_company("approvals")
    if status is not None or everything:
        requests = session.listed(target, limit, status=status)
    else:
        requests = [entry for each in OPEN for entry in session.listed(target, limit, status=each)]
        requests.sort(key=lambda request: str(request["id"]), reverse=True)
    empty = "Nothing waits for a decision." if status is None else "There are none."
    session.show(requests, lambda approvals: _draw_list(session, approvals, empty))


def _draw_list(session: Session, approvals: list[View], empty: str) -> None:
    cells.table(
        *(session, approvals, "id: {id:short}", "status: {status:words}"),
        ("title", _title),
        ("asked by", lambda session, row: approval_view.who(session, row, "requestedBy")),
        *("revision", "since: {createdAt:when}"),
        empty=empty,
    )


# Not declared: without an id, the only request that waits is shown and confirmed.
def _deciding(word: str, says: str) -> click.Command:
    @approval.command(word, examples=[example.format(word) for example in _EXAMPLES])
    @which_argument
    @note_option
    @revision_option
    def decide(session: Session, id_: str | None, note: str | None, revision: int | None) -> None:
        if id_ is None:
            request = _only_one(session, word)
            if request is None:
                return
            # Bind the decision to the revision that was shown; a newer one is a conflict.
            id_, revision = request["id"], revision or request["revision"]
        elif word == "approve" and revision is None:
            # Nobody approves what they have not read.
            request = session.client.get(path("approvals", approval_id(session, id_)))
            if request["statement"]["mayDecide"]:  # or else the refusal says the reason
                read_and_confirmed(session, request, word)
            id_, revision = request["id"], request["revision"]
        body = stated({"decisionNote": note, "expectedRevision": revision})
        target = path("approvals", approval_id(session, id_), word)
        session.show(session.client.send("POST", target, body), partial(_draw, session))

    decide.help = f"""{says}

    AGENT is the agent that the approval is about, or that made it. Without an argument, the open
    approvals are shown; if there is only one, you are asked to confirm.{_READ_FIRST[word]}
    """
    return decide


approve = _deciding("approve", "Approve what awaits your decision; it takes effect at once.")
reject = _deciding(
    "reject", "Reject what awaits your decision; the agent of a rejected hire is terminated."
)


# Not declared: the text may come from standard input.
@approval.command(
    examples=('remit approval comment writer "Which model would it use?"',),
)
@id_argument
@click.argument("text", required=False)
@option("--reply-to COMMENT", "The comment that this answers.")
def comment(session: Session, id_: str, text: str | None, reply_to: str | None) -> None:
    """Comment on an approval; without TEXT, from standard input."""
    body = {"body": sys.stdin.read() if text is None else text, "replyTo": reply_to}
    target = path("approvals", id_, "comments")
    session.change("POST", target, stated(body), tells="Added comment {id}.")


# Not declared: its answer is bytes.
@approval.command("content")
@id_argument
def content_(session: Session, id_: str) -> None:
    """Print the content that an approval would write into a file."""
    response = session.client.open(path("approvals", id_, "content"))
    save(response, sys.stdout.buffer, "content")


# Not declared: it asks for confirmation.
@approval.command("delete-agent")
@id_argument
@option("--yes", "Do not ask for confirmation.")
def delete_agent(session: Session, id_: str, yes: bool) -> None:
    """Delete the agent of a hire that was not approved; the approval and its comments stay."""

    def ask() -> str:
        request = session.client.get(path("approvals", id_))
        return f"Delete {output.clean(request['payload'].get('name') or 'the agent')} for good?"

    if not yes:
        session.confirm("delete-agent", ask, "Nothing was deleted.")
    deleted = "The agent is deleted; the approval stays."
    session.change("DELETE", path("approvals", id_, "agent"), tells=deleted)


def _draw(session: Session, request: View) -> None:
    output.say(f"{_title(session, request)}: {request['status'].replace('_', ' ')}.")


def _title(session: Session, request: View) -> str:
    return asks_for(request, approval_view.called(session, request))


approval.draw = _draw


def _only_one(session: Session, verb: str) -> View | None:
    """Return the only request that waits, once it was shown and confirmed; None if none waits."""
    if session.as_json:
        raise click.UsageError(f"{verb} with --json needs ID or AGENT.")
    waiting = list(session.client.each(session.under_company("approvals"), status="pending"))
    if len(waiting) != 1:
        _draw_list(session, waiting, "Nothing waits for a decision.")
        if not waiting:
            return None
        raise click.UsageError(f"{len(waiting)} approvals wait. Name one: remit {verb} ID.")
    request: View = session.client.get(path("approvals", waiting[0]["id"]))
    read_and_confirmed(session, request, verb)
    return request


def read_and_confirmed(session: Session, request: View, verb: str, command: str = "") -> None:
    """Show a request whole, and have the person at the terminal confirm the decision; `command` is
    the one that decides, unless it is the verb with the request's id."""
    read = f"--revision {request['revision']}"
    command = command or f"{verb} {short(request['id'])}"
    if session.as_json:
        raise click.UsageError(f"{verb} with --json needs the revision that was read: {read}.")
    approval_view.draw(session, request)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise click.UsageError(
            "Nobody can be asked to confirm it, so nothing was decided. To decide in a script, "
            f"name the revision that you read: remit {command} {read}."
        )
    if verb == "approve" and request["status"] == "pending" and not request["statement"]["whole"]:
        raise BadInput("Not all of it can be shown, so it cannot be approved.", "Reject it.")
    print()
    if not click.confirm(f"{verb.capitalize()} this?", err=True):
        raise Declined(
            "You decided nothing.", "Approve, reject or revise it when you know what you want."
        )


def approval_id(session: Session, text: str, *, open_only: bool = True) -> str:
    """An approval by its id, a part of it, or the agent that it concerns."""
    bare = text.removeprefix("approval:")
    if looks_like_id(bare):
        if session.is_company_named and not is_id(bare):
            mine = session.client.each(session.under_company("approvals"))
            bare = pick(mine, bare, "approval", "See `remit approval list --all`.")["id"]
        return bare
    return str(_concerning(session, bare, open_only=open_only)["id"])


def _concerning(session: Session, name: str, *, open_only: bool) -> View:
    """Find the undecided request about an agent, else by it; else perhaps the newest decided
    one."""
    target = session.under_company("approvals")
    waiting = [request for each in OPEN for request in session.client.each(target, status=each)]
    matches = _about(session, waiting, name)
    if not matches and not open_only:
        matches = _about(session, list(session.client.each(target)), name)[:1]
    if not matches:
        raise NotFound(f"Nothing waits that concerns {name[:100]!r}.", "See `remit approval list`.")
    if len(matches) > 1:
        which = [f"{short(request['id'])} ({asks_for(request)})" for request in matches]
        raise several(f"Several approvals concern {name}", which)
    return matches[0]


def _about(session: Session, requests: list[View], name: str) -> list[View]:
    agent = session.agent_named(name)
    key, id_ = name_key(name.removeprefix("agent:")), agent["id"] if agent else None

    def is_about(request: View) -> bool:
        payload = request["payload"]
        return (id_ is not None and payload.get("agentId") == id_) or (
            request["type"] == "hire_agent" and name_key(payload.get("name") or "") == key
        )

    about = [request for request in requests if is_about(request)]
    own_requests = [
        request for request in requests if id_ is not None and request["requestedByAgentId"] == id_
    ]
    return about or own_requests


approval.shows(
    Reference(partial(approval_id, open_only=False), "ID|AGENT", "approval"),
    approval_view.draw,
    "Show an approval, what changed since its last revision, and its comments.",
)
