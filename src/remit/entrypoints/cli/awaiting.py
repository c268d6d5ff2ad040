"""Waiting for the answer to a letter: its progress as notes, replies as they come."""

import sys
import time

from remit.entrypoints.cli.drawing import letters, output
from remit.entrypoints.cli.session import Session, View, path
from remit.errors import RemitError
from remit.ids import short

#: Seconds between two polls: an answer may come at once, or take a day.
_FIRST_PAUSE = 0.2
_LONGEST_PAUSE = 2.0
#: Final states of a letter; only those of the first tuple mean that there is an answer, which may
#: be a question.
_ANSWERED = ("answered", "asks_back", "done")
_OVER = ("taken_back", "discarded", "dead", "unanswered")


class NoAnswer(RemitError):
    """A letter has no answer, or none in time."""

    code = "no_answer"


def await_answer(session: Session, message: str, timeout: float | None) -> None:
    """Print replies until the letter is answered."""
    try:
        trace, replies = _watch(session, message, timeout)
    except KeyboardInterrupt:
        output.note(f"The work continues. The answer will be in: remit read {short(message)}")
        raise
    if session.as_json:
        session.show({"id": message, "trace": trace, "replies": replies}, lambda _: None)
    if trace["state"] in _ANSWERED:
        return
    if trace["state"] in _OVER:
        raise NoAnswer(trace["sentence"], f"See `remit read {short(message)}`.")
    raise NoAnswer(
        f"There is no answer yet. {trace['sentence']}",
        f"The work continues: `remit read {short(message)}` shows it, "
        f"`remit cancel {short(message)}` takes it back.",
    )


def _watch(session: Session, message: str, timeout: float | None) -> tuple[View, list[View]]:
    began = time.monotonic()
    pause = _FIRST_PAUSE
    sentence = ""
    replies: dict[str, View] = {}
    while True:
        trace = session.client.get(path("messages", message, "trace"))
        for reply in trace["replies"]:
            if reply["id"] not in replies:
                replies[reply["id"]] = _print(session, reply["id"])
        if trace["state"] in (*_ANSWERED, *_OVER):
            break
        if trace["sentence"] != sentence:
            sentence = trace["sentence"]
            output.note(sentence)
        remaining = None if timeout is None else timeout - (time.monotonic() - began)
        if remaining is not None and remaining <= 0:
            break
        time.sleep(pause if remaining is None else min(pause, remaining))
        pause = min(1.5 * pause, _LONGEST_PAUSE)
    return trace, list(replies.values())


def _print(session: Session, reply: str) -> View:
    """Print one reply and mark it as read."""
    letter: View = session.client.get(path("messages", reply))
    shown = {name: value for name, value in letter.items() if name not in ("thread", "trace")}
    if not session.as_json:
        letters.draw_thread(session, [shown])
    if shown["unread"]:
        sys.stdout.flush()  # a reply that could not be printed stays unread
        session.client.send("POST", path("messages", reply, "ack"))
    return shown
