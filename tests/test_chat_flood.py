"""Ten thousand messages in one room slow down that room, and no other."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import runtime_stage, telegram_server
from tests.chat_office import ChatOffice, InTelegram
from tests.telegram_server import ROOM, Telegram

QUIET = ROOM - 1
MESSAGES = 10_000


@pytest.mark.timeout(600)
@pytest.mark.requirement("FX-24")
@pytest.mark.campaign("ten thousand messages; test_chat.py has a room with forty")
def test_ten_thousand_messages_in_one_room_hold_up_nobody_elsewhere(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with (
        telegram_server.serving() as telegram,
        runtime_stage.opened("tests.chat_office") as stage,
    ):
        office = ChatOffice(InTelegram(telegram), tmp_path / "home", stage)
        office.begin()
        answered(office, telegram, "Warm up.")
        usual = answered(office, telegram, "Before.")
        for number in range(MESSAGES):
            telegram.say(f"Noise {number}.", who=100 + number % 2000, chat=ROOM)
        office.until(lambda: telegram.seen(ROOM))
        during = [answered(office, telegram, f"During {number}.") for number in range(3)]
        [[waiting]] = office.sql("SELECT count(*) FROM channel_intake WHERE status = 'queued'")
        office.end()
    for name, value in (("usual", usual), ("during", during), ("waiting", waiting)):
        record_property(name, value)
    assert waiting + len(telegram.updates) > MESSAGES // 2, "the room was through by then"


def answered(office: ChatOffice, telegram: Telegram, text: str) -> float:
    """How long a stranger in another room waits for an answer."""
    begun = time.monotonic()
    telegram.say(text, who=9, chat=QUIET)
    office.until(lambda: any(text in one["text"] for one in telegram.seen(QUIET)))
    return time.monotonic() - begun
