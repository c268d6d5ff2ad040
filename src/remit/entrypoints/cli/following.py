"""Following the record of events, and lists that are refreshed when it grows."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.options import option
from remit.entrypoints.cli.session import Session, View

if TYPE_CHECKING:
    from remit.entrypoints.cli.client import Client

#: Read timeout of a stream; the instance sends a keep-alive every fifteen seconds.
SILENCE_SECONDS = 45.0
GIVE_UP_SECONDS = 60.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 3.0
#: Events within this time cause one refresh.
_TOGETHER_SECONDS = 0.3
#: Refresh at least this often, because ages on the screen grow.
_AGEING_SECONDS = 60.0
_CLEAR = "\x1b[H\x1b[2J"

watch_option = option("--watch", "Go on, and show what changes, until Ctrl-C.")

Look = Callable[[], list[View]]
Draw = Callable[[list[View]], None]


def newest(session: Session) -> int:
    """Return the sequence number of the newest event, 0 if there is none."""
    events = session.client.get(session.under_company("events"), limit=1)
    return events[0]["seq"] if events else 0


def follow(session: Session, last: int, stream: Client) -> Iterator[View]:
    """Every event after `last`.

    `stream` is a connection of its own, so that names can be fetched on another meanwhile.
    """
    return resumed(stream, session.under_company("events"), "seq", last)


def resumed(stream: Client, target: str, number: str, last: int = 0) -> Iterator[View]:
    """Events of a stream, each once and across lost connections, until the stream ends.

    `number` is the field of an event that resumes the stream, as Last-Event-ID.
    """
    # Imported here, because every command about agents imports this module.
    from http.client import HTTPException

    from remit.entrypoints.cli.client import Unreachable, error_of, server_sent

    contact, pause, noted = time.monotonic(), _FIRST_PAUSE, False
    while True:
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(last)}
        try:
            response = stream.open(target, headers, silence=SILENCE_SECONDS)
            contact, pause, noted = time.monotonic(), _FIRST_PAUSE, False
            for message in server_sent(response):
                if message.kind == "end":
                    if "error" in message.data:
                        raise error_of(403, message.data)
                    return
                last = message.data[number]
                yield message.data
        except (Unreachable, OSError, HTTPException):
            if time.monotonic() - contact > GIVE_UP_SECONDS:
                raise
        stream.close()
        if not noted:
            output.note("The connection broke; trying again.")
            noted = True
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


def show(
    session: Session, draw: Draw, target: str, limit: int, *, watch: bool, **query: object
) -> None:
    """Print a list once or, with `watch`, again whenever the record grows.

    A terminal is redrawn. In a pipe only new and changed entries are appended; with --json as one
    entry a line.
    """
    look = partial(session.listed, target, limit, **query)
    if not watch:
        session.show(look(), draw)
        return
    on_screen = sys.stdout.isatty() and not session.as_json
    shown: list[View] | None = None
    try:
        for _ in _changes(session):
            session.forget()
            entries = _patiently(look)
            if on_screen:
                print(_CLEAR, end="")
                draw(entries)
                output.say("", "Watching; Ctrl-C ends it.")
            elif shown is None or any(entry not in shown for entry in entries):
                _append(session, [entry for entry in entries if entry not in (shown or [])], draw)
            shown = entries
            sys.stdout.flush()
    except KeyboardInterrupt:
        return


def _patiently(look: Look) -> list[View]:
    """Return the list; wait for an instance that is being restarted."""
    from remit.entrypoints.cli.client import Unreachable

    since = time.monotonic()
    while True:
        try:
            return look()
        except Unreachable:
            if time.monotonic() - since > GIVE_UP_SECONDS:
                raise
            time.sleep(_LONGEST_PAUSE)


def _append(session: Session, entries: list[View], draw: Draw) -> None:
    if not session.as_json:
        draw(entries)
        return
    for entry in entries:
        print(output.as_json(entry, one_line=True))


def _changes(session: Session) -> Iterator[None]:
    """Yield at once, then after each burst of events, and at least every minute."""
    from remit.entrypoints.cli.client import Client

    happened = threading.Event()
    failed: list[Exception] = []
    # Not a connection of the session: closing one waits for its reader, and this one is always
    # read. It ends with the process.
    stream = Client(session.url, session.token)
    last = newest(session)  # before the first look, so that nothing falls in between

    def listen() -> None:
        try:
            for _ in follow(session, last, stream):
                happened.set()
        except Exception as error:
            failed.append(error)
            happened.set()

    threading.Thread(target=listen, daemon=True).start()
    while True:
        yield
        happened.wait(_AGEING_SECONDS)
        time.sleep(_TOGETHER_SECONDS)
        happened.clear()
        if failed:
            raise failed[0]
