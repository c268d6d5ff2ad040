"""Ten thousand messages in one room slow down that room, and no other."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import runtime_stage, telegram_server
from tests.chat_office import ChatOffice, InTelegram
from tests.telegram_server import ANN, ROOM, Telegram

QUIET = ROOM - 1
MESSAGES = 10_000
#: For a stranger in another room, and for Ann in the loud one. Telegram hands over what came in
#: order, so behind ten thousand at once one waits until these are stored.
LONGEST_WAIT = {"in a minute": 20.0, "at once": 60.0}
#: How often somebody elsewhere writes during the flood. Each time takes one of the runs that the
#: agent has in an hour, so one who asks all the time would use them up without any crowd.
LOOKS = 6


@pytest.mark.timeout(600)
@pytest.mark.requirement("FX-24")
@pytest.mark.campaign("ten thousand messages; test_chat.py has a room with forty")
@pytest.mark.parametrize(("how", "seconds"), [("in a minute", 60.0), ("at once", 0.0)])
def test_ten_thousand_messages_in_one_room_hold_up_nobody_else(
    tmp_path: Path, record_property: Callable[[str, object], None], how: str, seconds: float
) -> None:
    with (
        telegram_server.serving() as telegram,
        runtime_stage.opened("tests.chat_office") as stage,
    ):
        office = ChatOffice(InTelegram(telegram), tmp_path / "home", stage)
        office.begin()
        elsewhere(office, telegram, "Warm up.")
        usual = [elsewhere(office, telegram, f"Before {number}.") for number in range(3)]
        crowd = threading.Thread(target=shout, args=(telegram, seconds))
        crowd.start()
        during: list[float] = []
        known: list[float] = []
        while crowd.is_alive() or len(during) < 3:
            during.append(elsewhere(office, telegram, f"During {len(during)}."))
            known.append(in_the_room(office, telegram))
            crowd.join(seconds / LOOKS)
        [[waiting]] = office.sql("SELECT count(*) FROM channel_intake WHERE status = 'queued'")
        [[lost]] = office.sql("SELECT count(*) FROM events WHERE action = 'chat.flood'")
        [[runs]] = office.sql("SELECT count(*) FROM runs")
        [[limited]] = office.sql("SELECT count(*) FROM events WHERE action = 'limit.reach'")
        office.end()
    waited = {"usual": usual, "during": during, "known": known}
    for name, found in waited.items():
        record_property(name, [round(one, 2) for one in found])
        print(f"{how}: {name} {statistics.median(found):.2f} s, at most {max(found):.2f} s")
    print(f"{how}: {waiting} still in line, {runs} runs")
    assert waiting + len(telegram.updates) > MESSAGES // 2, "the room was through by then"
    assert (lost, limited) == (0, 0)
    assert max(*during, *known) < LONGEST_WAIT[how], waited


def shout(telegram: Telegram, seconds: float) -> None:
    """A crowd of two thousand in one room, evenly."""
    begun = time.monotonic()
    for number in range(MESSAGES):
        telegram.say(f"Noise {number}.", who=100 + number % 2000, chat=ROOM)
        ahead = begun + seconds * number / MESSAGES - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)


def elsewhere(office: ChatOffice, telegram: Telegram, text: str) -> float:
    """How long a stranger in another room waits for the agent's answer."""
    begun = time.monotonic()
    telegram.say(text, who=9, chat=QUIET)
    office.until(lambda: any(text in one["text"] for one in telegram.seen(QUIET)))
    return time.monotonic() - begun


def in_the_room(office: ChatOffice, telegram: Telegram) -> float:
    """How long a linked person in the same room waits for an answer of Remit's."""
    before = len([one for one in telegram.seen(ROOM) if "/abort" in one["text"]])
    begun = time.monotonic()
    telegram.say("/help", who=ANN, chat=ROOM)
    office.until(
        lambda: len([one for one in telegram.seen(ROOM) if "/abort" in one["text"]]) > before
    )
    return time.monotonic() - begun
