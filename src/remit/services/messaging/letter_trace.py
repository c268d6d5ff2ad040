"""Trace of a letter: its state, the runs that read it, the outcomes made of it, and the replies."""

from remit.authority import Action
from remit.clock import Micros, moment
from remit.model.execution.fault import Fault, says_nothing
from remit.model.execution.run import Run
from remit.model.messaging.mail import Delivery, DeliveryStatus, Mark, Message
from remit.model.messaging.question import Question, QuestionStatus
from remit.model.organisation.agent import AgentStatus
from remit.model.organisation.approval import Approval
from remit.model.organisation.principal import ActorKind
from remit.model.text import plural
from remit.model.work.outcome import Outcome, OutcomeKind
from remit.model.work.wish import Wish, WishStatus
from remit.services import lookup, shapes, views
from remit.services.command import Context
from remit.services.execution import fruitless
from remit.services.governance import approval_engine
from remit.services.messaging import wishes
from remit.services.organisation import idleness
from remit.services.work import waits
from remit.store.messaging import mail as mail_statements
from remit.store.work import outcomes as outcome_statements
from remit.store.work import wishes as statements

#: Limit for each kind of item.
MOST = 100


#: The state of a letter whose work waits for an answer or an approval.
WAITING = "waiting"


def state(ctx: Context, message: Message) -> shapes.LetterStateShape:
    """State of a letter from a person: a word and a sentence."""
    deliveries = [
        delivery
        for delivery in ctx.tx.all(mail_statements.DELIVERIES_OF, message=message.id)
        if delivery.agent_id is not None
    ]
    wish = ctx.tx.one(statements.WISH, message=message.id)
    if not deliveries:
        return _said("sent", "It went to people.")
    first = deliveries[0]
    name = _name(ctx, first.agent_id)
    if first.status is DeliveryStatus.DEFERRED:
        return _said("deferred", f"{name} gets it at {moment(first.deliver_at)}.")
    if first.status is DeliveryStatus.QUEUED:
        if message.sender_user_id and wishes.answers(ctx, message, message.sender_user_id):
            return _said("answered", "It is answered.")  # by an agent that did not take it up
        if failed := _failed_with(ctx, first):
            return _said("failing", _not_done_yet(ctx, first, failed))
        return _said("queued", f"{name} has not read it yet. {_why(ctx, first.agent_id)}")
    if first.status is DeliveryStatus.LEASED:
        return _said("being_read", f"{name} is reading it.")
    if first.status is DeliveryStatus.DEAD:
        return _said("dead", f"{name} could not handle it: {_cause(ctx, first)}")
    if wish is not None and wish.ended_why == "taken back":
        return _said("taken_back", "It was taken back.")
    if first.status is DeliveryStatus.CANCELLED:
        return _said("discarded", "Dismissed unread.")
    return _after_reading(ctx, message, wish, name)


def _after_reading(
    ctx: Context, message: Message, wish: Wish | None, name: str
) -> shapes.LetterStateShape:
    match _awaited(ctx, message):
        case Question() as question:
            asker = _name(ctx, question.agent_id)
            of = "" if question.to_agent_id is None else f" from {_name(ctx, question.to_agent_id)}"
            return _said(
                WAITING, f"{asker} waits for an answer{of}: remit question answer {question.id} …"
            )
        case Approval() as approval:
            request = approval_engine.summary(approval)
            return _said(
                WAITING, f"It waits for an approval: {request}. remit approval show {approval.id}"
            )
        case None:
            pass
    behind = wishes.behind(wish) if wish is not None else [message.id]
    if any(wishes.is_under_way(ctx, letter) for letter in behind):
        return _said("in_work", _in_work(ctx, message))
    user = message.sender_user_id
    if wish is not None and wish.ended_why == wishes.NO_MODEL:
        return _said(
            "unanswered",
            f"{name} has no model, so nothing was done. Give it one, then send the letter again.",
        )
    replies = [] if user is None else wishes.answers(ctx, message, user)
    if wish is not None and wish.status is WishStatus.ENDED and not replies:
        words = (
            ("answered", "It is answered.")
            if wish.ended_why in ("answered", "result")
            else ("done", "Work on it has ended.")
        )
        return _said(*words)
    if replies:
        return _answered(ctx, replies[-1])
    if wish is None:
        return _said("read", f"{name} has read it.")
    if (by := wishes.result_by(ctx, wish)) is not None:
        return _said("in_work", f"Work on it has ended. The result comes by {moment(by)}.")
    receiver = lookup.agent_row(ctx, wish.agent_id)
    if receiver is not None and receiver.status is AgentStatus.TERMINATED:
        return _said("unanswered", f"{name} read it and was terminated; nobody has answered.")
    run = wishes.last_run(ctx, message.id)
    how = f" Its run ended as {run.status.value}: {_end(run.error)}" if run and run.error else ""
    return _said("unanswered", f"{name} has read it, and nobody has answered.{how}")


def _answered(ctx: Context, reply: Message) -> shapes.LetterStateShape:
    if reply.mark != Mark.RESULT and wishes.asks_back(ctx, reply):
        who = _sender(ctx, reply)
        return _said("asks_back", f"{who} asks you something back: remit reply {reply.id} …")
    return _said("answered", "It is answered.")


def _awaited(ctx: Context, message: Message) -> Question | Approval | None:
    """Return the first question or request of the work on a letter that is undecided."""
    for question in ctx.tx.all(statements.QUESTIONS_OF, message=message.id):
        if question.status is QuestionStatus.OPEN:
            return question
    return next(iter(ctx.tx.all(statements.UNDECIDED_OF, message=message.id, limit=1)), None)


def awaited(ctx: Context, message: Message) -> str | None:
    """Return the id of what the work on a letter waits for."""
    undecided = _awaited(ctx, message)
    return None if undecided is None else undecided.id


def still_since(ctx: Context, message: Message) -> Micros | None:
    """Return since when nothing has moved of a letter that is in work; None while somebody works on
    it, or it was put off to a later time."""
    parts = [part for part in _parts(ctx, message.id) if wishes.can_end(part)]
    owners = (lookup.agent_row(ctx, part.owner_id) for part in parts)
    if any(owner is not None and owner.status is AgentStatus.RUNNING for owner in owners):
        return None
    if any((part.deferred_until or 0) > ctx.now for part in parts):
        return None
    moved = [message.created_at, ctx.tx.one(statements.LAST_WRITTEN, message=message.id) or 0]
    moved += [part.updated_at for part in _parts(ctx, message.id)]
    return max(*moved, _last_effect(ctx, message))


def _last_effect(ctx: Context, message: Message) -> Micros:
    """Return when the last run about a letter ended that others could notice something of; 0 if
    there was none."""
    for run in reversed(ctx.tx.all(statements.RUNS_OF, message=message.id)):
        if run.ended_at is None:
            return ctx.now
        if run.acted or fruitless.has_effect(ctx, run):
            return run.ended_at
    return 0


def _said(word: str, sentence: str) -> shapes.LetterStateShape:
    return {"state": word, "sentence": sentence}


def _in_work(ctx: Context, message: Message) -> str:
    """Sentence with the number of open outcomes, and what holds the first of them up."""
    outcomes = [part for part in _parts(ctx, message.id) if wishes.can_end(part)]
    count = f"{plural(len(outcomes), 'outcome')} of it open."
    for outcome in outcomes:
        if held_up := waits.of_outcome(ctx, outcome.id):
            who = _name(ctx, outcome.owner_id)
            sentence = waits.sentence(ctx, held_up).removeprefix("It ")
            return f"{count} {outcome.title!r}: {who} {sentence}"
    unread = ctx.tx.all(statements.UNREAD_OF, message=message.id)
    first = next((part for part in outcomes if not part.open_prereqs), None)
    if first is not None:
        who, why = _name(ctx, first.owner_id), _why(ctx, first.owner_id)
        return f"{count} {first.title!r} is with {who}. {why}"
    if unread:
        who = _name(ctx, unread[0].agent_id)
        if unread[0].status is DeliveryStatus.DEFERRED:
            return f"{who} gets a letter because of it at {moment(unread[0].deliver_at)}."
        return f"{who} has mail because of it. {_why(ctx, unread[0].agent_id)}"
    return "Work on it is under way."


def _why(ctx: Context, agent_id: str | None) -> str:
    """The activity of an agent, or the reason why it does nothing."""
    agent = lookup.agent_row(ctx, agent_id) if agent_id else None
    return idleness.reason(ctx, agent)[1] if agent is not None else ""


def _cause(ctx: Context, delivery: Delivery) -> str:
    """Why a letter is dead, with the error of the last run that had it."""
    why = delivery.ended_why or "it was tried too often"
    error = last_error(ctx, delivery)
    return _end(f"{why}; last: {error}" if error else why)


def _failed_with(ctx: Context, delivery: Delivery) -> list[Run]:
    """Return the runs that took a letter up and failed, the newest first; not those that were
    stopped, or that a closed account ended."""
    return [
        run
        for run in tried_by(ctx, delivery)
        if run.fault is not None and not says_nothing(Fault(run.fault))
    ]


def _not_done_yet(ctx: Context, delivery: Delivery, failed: list[Run]) -> str:
    times = "once" if len(failed) == 1 else f"{len(failed)} times"
    error = failed[0].error or failed[0].status.value
    return (
        f"{_name(ctx, delivery.agent_id)} read it {times} and could not do it so far: "
        f"{_end(error)} {_why(ctx, delivery.agent_id)}"
    )


def last_error(ctx: Context, delivery: Delivery) -> str:
    """The error of the last ended run that had taken a letter up; empty if it had none."""
    tried = tried_by(ctx, delivery) if delivery.agent_id is not None else []
    return (tried[0].error or "").strip() if tried else ""


def tried_by(ctx: Context, delivery: Delivery) -> list[Run]:
    """Return the ended runs that had taken a letter up, the newest first."""
    return ctx.tx.all(
        statements.TRIED_BY,
        agent=delivery.agent_id,
        since=delivery.deliver_at,
        quoted=f'%"{delivery.message_id}"%',
        limit=MOST,
    )


def _end(text: str | None) -> str:
    """Return the text with exactly one full stop at its end."""
    return f"{(text or '').strip().rstrip('.')}."


def trace(ctx: Context, message: Message) -> shapes.ConsequencesShape | None:
    """Everything that came of a person's letter, limited to what the caller may see; None for other
    mail."""
    if ctx.actor.kind is not ActorKind.USER or message.sender_user_id is None:
        return None
    about: dict[str, object] = {"message": message.id}
    parts = [part for part in _parts(ctx, message.id) if _may_see(ctx, part.owner_id)]
    hired = [lookup.agent_row(ctx, part.id) for part in parts]
    letters = ctx.tx.all(statements.LETTERS_OF, **about, limit=MOST)
    replies = wishes.answers(ctx, message, message.sender_user_id)
    return {
        **state(ctx, message),
        "runs": [
            {
                "id": run.id,
                "agent": _name(ctx, run.agent_id),
                "status": run.status.value,
                "started_at": views.time(run.started_at),
                "error": run.error,
            }
            for run in _runs(ctx, message)
            if _may_see(ctx, run.agent_id)
        ],
        "outcomes": [
            {
                "id": part.id,
                "title": part.title,
                "status": part.status.value,
                "owner": _name(ctx, part.owner_id),
            }
            for part in parts
        ],
        "hires": [
            {"id": agent.id, "name": agent.name, "status": agent.status.value}
            for agent in hired
            if agent is not None
        ],
        "questions": [
            {"id": question.id, "text": question.text, "status": question.status.value}
            for question in ctx.tx.all(statements.QUESTIONS_OF, **about)
            if _may_see(ctx, question.agent_id)
        ],
        "letters": [
            {"id": letter.id, "from": _sender(ctx, letter), "to": _receiver(ctx, letter)}
            for letter in letters
            if letter.sender_agent_id is not None
            and letter.address.startswith("agent:")
            and _may_see(ctx, letter.sender_agent_id)
        ],
        "replies": [
            {
                "id": reply.id,
                "from": _sender(ctx, reply),
                "at": views.time(reply.created_at),
                "mark": reply.mark,
            }
            for reply in replies
        ],
    }


def _runs(ctx: Context, message: Message) -> list[Run]:
    """Return the runs that took a letter up, including those that gave it back, and those that
    handled what came of it."""
    runs = {run.id: run for run in ctx.tx.all(statements.RUNS_OF, message=message.id)}
    for delivery in ctx.tx.all(mail_statements.DELIVERIES_OF, message=message.id):
        if delivery.agent_id is not None:
            runs |= {run.id: run for run in tried_by(ctx, delivery)}
    return [runs[run_id] for run_id in sorted(runs)][-MOST:]


def _parts(ctx: Context, letter: str) -> list[Outcome]:
    """Return the outcomes made of a letter and their parts, without those made of another
    letter."""
    outcomes: dict[str, Outcome] = {}
    wish = ctx.tx.one(statements.WISH, message=letter)
    behind = wishes.behind(wish) if wish is not None else [letter]
    pending = [part for each in behind for part in ctx.tx.all(statements.OUTCOMES_OF, message=each)]
    while pending and len(outcomes) < MOST:
        outcome = pending.pop(0)
        mine = outcome.origin_id in (None, *behind) and outcome.kind is OutcomeKind.WORK
        if outcome.id not in outcomes and mine:
            outcomes[outcome.id] = outcome
            pending += ctx.tx.all(outcome_statements.CHILDREN, outcome=outcome.id, limit=MOST)
    return list(outcomes.values())


def _may_see(ctx: Context, agent: str) -> bool:
    return ctx.decide(Action.OUTCOME_READ, home=agent).allowed


def _name(ctx: Context, agent_id: str | None) -> str:
    agent = lookup.agent_row(ctx, agent_id) if agent_id else None
    return agent.name if agent else "somebody"


def _sender(ctx: Context, message: Message) -> str:
    return _name(ctx, message.sender_agent_id) if message.sender_agent_id else "remit"


def _receiver(ctx: Context, message: Message) -> str:
    kind, _, who = message.address.partition(":")
    return _name(ctx, who) if kind == "agent" else message.address
