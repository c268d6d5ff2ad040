"""Commands to Remit from the chat of a linked person, and buttons, the same in every channel.

Each calls the verb that the web and the command line call, as that person. A button carries a
single-use reference to one act in one conversation. It is no authority: the person who taps must be
allowed to take that very act.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from remit.channels import registry
from remit.clock import MINUTE
from remit.errors import BadInput, Conflict, NotFound
from remit.ids import token_digest
from remit.model.messaging.channel import Binding
from remit.model.messaging.chat import ButtonReference, Post
from remit.model.organisation.agent import Agent
from remit.model.organisation.approval import ApprovalStatus
from remit.model.text import plural
from remit.model.work.outcome import Outcome
from remit.services import lookup
from remit.services.chat import accounts, items, posts, submission_posts
from remit.services.command import Context
from remit.services.execution.running import require_look
from remit.services.governance import approvals
from remit.services.messaging import questions
from remit.services.organisation import agents, halts, idleness
from remit.services.screens import needs_you
from remit.services.subjects import OUTCOME
from remit.services.work import outcomes, submissions, submitting
from remit.store.execution import runs as run_statements
from remit.store.messaging import chat as statements
from remit.store.messaging import mail as mail_statements
from remit.store.organisation import people
from remit.store.work import outcomes as outcome_statements

_INCOMPLETE = (
    "Nothing was done: a part of this request did not arrive here, or was changed since. "
    "Send /needs to see the whole request anew."
)
SEE = "Send /needs to see what is asked now."
#: The rest is shown on the web.
MOST_SHOWN = 10
ALL = "all"
#: Kinds of items that /needs shows with their contents; letters only where one answers in words.
SHOWN = frozenset({"approval", "question", "submission"})
SHOWN_IN_WORDS = SHOWN | {"mail"}


@dataclass(frozen=True)
class Asked:
    """A command, and where its answer goes."""

    binding: Binding
    agent: Agent
    conversation: str
    words: str


@dataclass(frozen=True)
class Command:
    help: str
    run: Callable[[Context, Asked], str]
    #: Whether the answer is for this person alone, and not for a room.
    private: bool = False
    #: Of a command that changes something: refuses a person who may not.
    require: Callable[[Context, Asked], object] | None = None


def status(ctx: Context, request: Asked) -> str:
    """State of the agent, and what waits for it and for the person."""
    agent = request.agent
    require_look(ctx, agent.id, f"agent:{agent.id}")
    company = ctx.tx.existing(people.COMPANY)
    _, sentence = idleness.reason(ctx, agent)
    mail = ctx.tx.one(mail_statements.COUNT_WAITING, agent=agent.id) or 0
    needs = len(needs_you.here(ctx))
    return "\n".join(
        [
            f"{agent.name} of {company.name}: {sentence}",
            f"{plural(mail, 'message waits', 'messages wait')} to be read.",
            f"{plural(needs, 'thing awaits', 'things await')} you" + (": /needs" if needs else "."),
        ]
    )


def now(ctx: Context, request: Asked) -> str:
    """Current work of the agent."""
    agent = request.agent
    require_look(ctx, agent.id, f"agent:{agent.id}")
    run = ctx.tx.one(run_statements.LIVE_RUN_OF, agent=agent.id)
    if run is None:
        _, sentence = idleness.reason(ctx, agent)
        return f"{agent.name} does nothing now. {sentence}"
    minutes = (ctx.now - run.started_at) // MINUTE
    since = plural(minutes, "minute") if minutes else "less than a minute"
    lines = [f"{agent.name} has been running for {since}: {run.why or 'there is something to do'}."]
    for outcome in json.loads(run.outcome_ids)[:MOST_SHOWN]:
        outcome_row = ctx.tx.one(outcome_statements.OUTCOME_ANYWHERE, outcome=outcome)
        if outcome_row is not None:
            lines.append(f"- {outcome_row.title}")
    return "\n".join(lines)


def new(ctx: Context, request: Asked) -> str:
    agents.new_session.body(ctx, agent=request.agent.id)
    return f"The next run of {request.agent.name} begins a new conversation."


def abort(ctx: Context, request: Asked) -> str:
    agents.abort.body(ctx, agent=request.agent.id)
    return f"The run of {request.agent.name} is aborted; new work starts it again."


def stop(ctx: Context, request: Asked) -> str:
    """Stop the agent and everybody below it, or with `all` the company."""
    whole = _whole(request.words)
    done = halts.stop.body(ctx, **_top(ctx, request), note="")
    what = "The company" if whole else f"{request.agent.name} and everybody below"
    ended = plural(done["runs_ended"], "run") + " ended"
    return f"{what} {'was stopped already' if done['already'] else 'is stopped'}; {ended}."


def go(ctx: Context, request: Asked) -> str:
    whole = _whole(request.words)
    halts.go.body(ctx, **_top(ctx, request))
    covering = halts.covering(ctx, request.agent.id)
    left = f" Still: {halts.explain(ctx, covering)}" if covering is not None else ""
    return f"{'The company' if whole else request.agent.name} goes on.{left}"


def _control(ctx: Context, request: Asked) -> object:
    return agents.require_control(ctx, request.agent.id)


def _may_stop(ctx: Context, request: Asked) -> object:
    return halts.require_stop(ctx, **_top(ctx, request))


def _may_go(ctx: Context, request: Asked) -> object:
    return halts.require_go(ctx, **_top(ctx, request))


def _top(ctx: Context, request: Asked) -> dict[str, str | None]:
    """The company, or the agent, that a command is about."""
    whole = _whole(request.words)
    return {
        "company": ctx.company if whole else None,
        "agent": None if whole else request.agent.id,
    }


def _whole(words: str) -> bool:
    if words.casefold() not in ("", ALL):
        raise BadInput(f"{words[:40]!r} is not understood.", "Say nothing more, or `all`.")
    return bool(words)


def needs(ctx: Context, request: Asked) -> str:
    """List everything that awaits the person; what is decided or answered here comes in posts."""
    open_items = needs_you.here(ctx)
    if not open_items:
        return "Nothing awaits you."
    lines = [f"{plural(len(open_items), 'thing awaits', 'things await')} you."]
    taps = registry.get(request.binding.adapter_type).taps
    shown = 0
    for item in open_items:
        if item["kind"] in (SHOWN if taps else SHOWN_IN_WORDS) and shown < MOST_SHOWN:
            shown += _show(ctx, request, item["kind"], item["id"])
        elif len(lines) <= MOST_SHOWN:
            lines.append(f"- {item['kind'].replace('_', ' ')}: {item['title']}")
    if shown:
        lines.append("Each of those that you can decide or answer here is in a message of its own.")
    return "\n".join(lines)


def _show(ctx: Context, request: Asked, kind: str, item: str) -> bool:
    # Shown anew, so the earlier posts are withdrawn: there is one post of each item here.
    for post in posts.about(ctx, f"{items.SUBJECTS.get(kind, kind)}:{item}"):
        if (post.binding_id, post.conversation) == (request.binding.id, request.conversation):
            posts.withdraw(ctx, post, ctx.actor.id)
    if kind == "approval":
        approvals.show.body(ctx, approval=item)
    return items.show(ctx, request.binding, request.conversation, kind, item) is not None


def help_(ctx: Context, request: Asked) -> str:
    """List what can be done in this channel, with buttons or in words."""
    taps = registry.get(request.binding.adapter_type).taps
    lines = [f"Messages from here go to {request.agent.name} as mail, in your name."]
    lines += [f"/{name} {command.help}" for name, command in COMMANDS.items()]
    lines += [*_WITH_BUTTONS] if taps else [*_IN_WORDS]
    if accounts.decisions_wait(ctx, request.binding):
        lines.append(_CONFIRMED)
    return "\n".join(lines)


_WITH_BUTTONS = (
    "A button decides what stands above it. Reply to a question or a letter to answer it.",
    "return NUMBER and what is missing: send back what was handed in",
)
_IN_WORDS = (
    "Reply to a question with an option, its number or its first letters; to a letter to answer.",
    "answer NUMBER and your answer: answer a question in a new message",
    "approve NUMBER rREVISION: approve a request that was shown here, as it was shown",
    "reject NUMBER and why; return NUMBER and what to change: decide such a request otherwise",
    "accept NUMBER, or return NUMBER and what is missing: judge what was handed in",
)
_CONFIRMED = "Decisions and stops take effect once you confirm them where you signed in."


COMMANDS = {
    "status": Command("how it is, and what waits", status, private=True),
    "now": Command("what it is doing", now, private=True),
    "needs": Command("what awaits you", needs, private=True),
    "new": Command("begin a new conversation with its next run", new, require=_control),
    "abort": Command("end its run", abort, require=_control),
    "stop": Command("stop it and everybody below; /stop all: the company", stop, require=_may_stop),
    "go": Command("let it go on; /go all: the company", go, require=_may_go),
    "help": Command("this list", help_),
}


def parse(text: str) -> tuple[str, str] | None:
    """Return the name of a command and the words after it, if a text is a command. The name of a
    bot after it (`/stop@bot`), as in a room with several, is dropped."""
    first, _, rest = text.strip().partition(" ")
    name = first[1:].partition("@")[0].casefold()
    return (name, rest.strip()) if first.startswith("/") and name in COMMANDS else None


# ── buttons ─────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Tapped:
    #: The act, for the record.
    what: str
    #: Reply to the person, if the post itself does not show the result.
    say: str = ""


def tap(ctx: Context, binding: Binding, conversation: str, reference: str) -> Tapped:
    """Take the act of a button. Of two taps at the same time, the second finds it used."""
    button, post, act = _found(ctx, binding, conversation, reference)
    if button.used_at is None and not posts.is_whole(ctx, post):
        return Tapped(f"incomplete {act['act']}", _INCOMPLETE)
    if not ctx.tx.run(statements.USE_REFERENCE, reference=button.digest, by=ctx.actor.id):
        return Tapped(f"used {act['act']}", f"That was done already. {_state(ctx, post)}".strip())
    if act["act"] == "answer":
        questions.answer.body(ctx, question=act["question"], answer=act["answer"])
        items.refresh(ctx, f"question:{act['question']}", ctx.actor.id)
        return Tapped(f"answer question {act['question']}")
    if act["act"] == "accept":
        judge(ctx, act)
        return Tapped(f"accept outcome {act['outcome']}")
    return _decide(ctx, post, binding, act)


def act_of(
    ctx: Context, binding: Binding, conversation: str, reference: str
) -> Mapping[str, Any] | None:
    """Return the act of a button; None if it was used."""
    button, _, act = _found(ctx, binding, conversation, reference)
    return act if button.used_at is None else None


def _found(
    ctx: Context, binding: Binding, conversation: str, reference: str
) -> tuple[ButtonReference, Post, Mapping[str, Any]]:
    """Return a button of a conversation, its post, and its act."""
    button = ctx.tx.one(statements.REFERENCE, digest=token_digest(reference))
    post = ctx.tx.one(statements.POSTS.row, post=button.post_id) if button else None
    if (
        button is None
        or post is None
        or (post.binding_id, post.conversation) != (binding.id, conversation)
        or ctx.now >= button.expires_at
    ):
        raise NotFound("That button is not known here, or too old.", "Send /needs for new ones.")
    return button, post, json.loads(button.act)


def _decide(ctx: Context, post: Post, binding: Binding, act: Mapping[str, Any]) -> Tapped:
    """Approve, reject or send back the revision that was shown; if it is stale, show the newer
    one."""
    approvals.show.body(ctx, approval=act["approval"])
    approval = items.approval_of(ctx, act["approval"])
    what = f"{act['act']} approval {approval.id}"
    if approval.status is not ApprovalStatus.PENDING:
        items.refresh(ctx, post.subject, ctx.actor.id)
        return Tapped(f"late {what}", f"Nothing was done. {items.approval_state(ctx, approval)}")
    is_present = items.shows_revision(post, approval) and approval.revision == act["revision"]
    if not is_present or (
        act["act"] == "approve" and not items.shows_statement(ctx, post, approval)
    ):
        # A button below a text that is not the present one decides nothing.
        posts.mark(ctx, post, items.STALE, ctx.actor.id)
        items.show_approval(ctx, binding, post.conversation, approval)
        return Tapped(f"stale {what}", "Nothing was done. The present request follows.")
    ACTS[act["act"]].body(ctx, approval=approval.id, expected_revision=act["revision"])
    items.refresh(ctx, f"approval:{approval.id}", ctx.actor.id)
    return Tapped(what)


def require_handed_in(ctx: Context, act: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a verdict; refused unless what was shown is what awaits it."""
    outcome = lookup.find(ctx, OUTCOME, act["outcome"])
    submission = submissions.handed_in(ctx, outcome)
    if submission is None:
        state = submission_posts.state(ctx, outcome)
        raise Conflict(f"Nothing was done: nothing awaits a verdict. {state}".strip(), SEE)
    if submission.id != act["submission"]:
        raise Conflict("Nothing was done: it was handed in anew since it was shown here.", SEE)
    return outcome


def judge(ctx: Context, act: Mapping[str, Any]) -> str:
    """Give the verdict on what was handed in, if it is what was shown; returns it in words."""
    outcome = require_handed_in(ctx, act)
    note = {"note": str(act.get("note") or "")}
    ACTS[act["act"]].body(ctx, outcome=outcome.id, **note)
    items.refresh(ctx, f"submission:{outcome.id}", ctx.actor.id)
    return submission_posts.state(ctx, lookup.known_outcome(ctx, outcome.id))


def _state(ctx: Context, post: Post) -> str:
    kind, _, item = post.subject.partition(":")
    if kind != "approval":
        return ""
    approvals.show.body(ctx, approval=item)
    return items.approval_state(ctx, items.approval_of(ctx, item))


#: The acts of buttons, by the name that a reference stores.
ACTS: Mapping[str, Any] = {
    "approve": approvals.approve,
    "reject": approvals.reject,
    "revise": approvals.request_revision,
    "answer": questions.answer,
    "accept": outcomes.complete,
    "return": submitting.send_back,
}
