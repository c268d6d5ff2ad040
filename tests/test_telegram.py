"""Telegram: the real client against a server that speaks the Bot API as it is documented."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import pytest

from remit.channels.contract import Undelivered, Unproven, Unreachable
from remit.channels.telegram import Telegram as Channel
from remit.channels.telegram import TelegramConfig
from remit.testing import channels
from tests.telegram_server import ANN, ROOM, TOKEN, Telegram, TelegramStand, serving

CHANNEL = Channel()
if find_spec("aiogram") is None:
    pytest.skip("NOT TESTED: the extra telegram is not installed", allow_module_level=True)


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    with serving() as found:
        yield found


@pytest.mark.requirement("FX-24")
@pytest.mark.parametrize("check", channels.checks(CHANNEL), ids=lambda one: one.__name__)
def test_telegram_keeps_what_a_channel_promises(telegram: Telegram, check: channels.Suite) -> None:
    asyncio.run(check(CHANNEL, TelegramStand(telegram)))


def received(telegram: Telegram, number: int, **config: Any) -> list[Any]:
    stand = TelegramStand(telegram)
    given = {"secretRef": "bot", "pollSeconds": 1, **config}
    stand.connection = replace(stand.connection, config=TelegramConfig(**given))
    return asyncio.run(channels.received(CHANNEL, stand, number))


@pytest.mark.requirement("FX-24")
def test_a_group_is_heard_when_the_bot_is_meant_and_who_spoke_is_known(telegram: Telegram) -> None:
    mention = [{"type": "mention", "offset": 0, "length": 8}]
    telegram.say("Lunch?", chat=ROOM)
    telegram.say("@ada_bot Lunch?", who=9, chat=ROOM, entities=mention)
    telegram.say("/status@other_bot", chat=ROOM)
    telegram.say("/status@ada_bot", chat=ROOM)
    said = received(telegram, 4)
    assert [one.addressed for one in said] == [False, True, False, True]
    assert [(one.sender.id, one.sender.name) for one in said[:2]] == [
        ("5", "Ann (@user5)"),
        ("9", "Ann (@user9)"),
    ]
    telegram.say("Lunch?", chat=ROOM)
    [said] = received(telegram, 1, hear="all")
    assert said.addressed


@pytest.mark.requirement("FX-25")
def test_what_is_passed_on_changed_or_said_by_a_hidden_admin_is_nobodys_command(
    telegram: Telegram,
) -> None:
    """Only what a known person says now is theirs."""
    other = {"type": "user", "date": 1, "sender_user": telegram.person(9)}
    telegram.say("/stop", forward_origin=other)
    edited = telegram.say("/stop")
    telegram.updates[-1] = {"update_id": 900, "edited_message": {**edited, "edit_date": 7}}
    telegram.say("/stop", chat=ROOM, sender_chat=telegram.chat(ROOM))
    forwarded, changed, hidden = received(telegram, 3)
    assert forwarded.text == "[forwarded] /stop"
    assert (changed.text, changed.id) == ("[edited] /stop", f"5.{edited['message_id']}.7")
    assert not hidden.sender.sure


@pytest.mark.requirement("FX-25")
def test_a_message_of_another_bot_is_nobodys_command(telegram: Telegram) -> None:
    by_bot: Any = {"from": {**telegram.person(9), "is_bot": True}}
    telegram.say("/stop", **by_bot)
    telegram.say("/stop")
    bot, person = received(telegram, 2)
    assert (bot.sender.sure, person.sender.sure) == (False, True)


@pytest.mark.requirement("FX-25")
@pytest.mark.parametrize(("chat", "direct"), [(ANN, True), (ROOM, False)])
def test_a_tap_says_whether_it_was_made_in_a_group(
    telegram: Telegram, chat: int, direct: bool
) -> None:
    asked = telegram.say("Go?", chat=chat)
    asked |= {"reply_markup": {"inline_keyboard": [[{"text": "Yes", "callback_data": "r"}]]}}
    telegram.updates.clear()
    telegram.tap(chat, asked["message_id"], "Yes", who=ANN)
    [tapped] = received(telegram, 1)
    assert (tapped.tapped, tapped.sender.id, tapped.direct) == ("r", str(ANN), direct)


@pytest.mark.requirement("FX-24")
def test_a_bot_that_asks_telegram_itself_takes_no_posts(telegram: Telegram) -> None:
    """A former webhook's secret, which Telegram knows, opens nothing when there is none."""
    asking = TelegramStand(telegram).connection
    shown = {"x-telegram-bot-api-secret-token": asking.proof}
    with pytest.raises(Unproven):
        CHANNEL.prove(asking, shown)
    config = TelegramConfig.model_validate({"secretRef": "b", "webhookUrl": "https://r.example"})
    CHANNEL.prove(replace(asking, config=config), shown)


def test_a_topic_of_a_group_is_a_conversation_of_its_own(telegram: Telegram) -> None:
    telegram.say("/now", chat=ROOM, message_thread_id=3, is_topic_message=True)
    [said] = received(telegram, 1)
    assert said.conversation == f"{ROOM}/3"
    stand = TelegramStand(telegram)
    asyncio.run(CHANNEL.deliver(channels.parcel(stand, conversation=said.conversation)))
    method, given = telegram.calls[-1]
    assert (method, given["chat_id"], given["message_thread_id"]) == ("sendMessage", "-1007", "3")


def test_what_may_be_there_already_says_so_when_it_is_sent_again(telegram: Telegram) -> None:
    stand = TelegramStand(telegram)
    asyncio.run(CHANNEL.deliver(channels.parcel(stand, again=True)))
    [shown] = stand.shown()
    assert shown.text.startswith("(sent again")


@pytest.mark.requirement("FX-24")
def test_telegram_is_told_not_to_call_the_links_that_an_agent_writes(telegram: Telegram) -> None:
    """A preview would tell whoever owns the address what the agent put into it."""
    stand = TelegramStand(telegram)
    link = "https://evil.example/?q=what-only-the-agent-knows"
    outside = asyncio.run(CHANNEL.deliver(channels.parcel(stand, body=link)))
    assert outside is not None
    asyncio.run(CHANNEL.edit(channels.parcel(stand, body=f"{link}-either"), outside))
    told = [given.get("link_preview_options") for _, given in telegram.calls]
    assert told == [{"is_disabled": True}] * 2


def test_no_failure_shows_the_token(telegram: Telegram) -> None:
    stand = TelegramStand(telegram)
    wrong = replace(stand.connection, key=b"123456:" + b"B" * 35)
    nobody = replace(stand.connection, server="http://127.0.0.1:9")
    for connection, words in ((wrong, "does not know"), (nobody, "not reached")):
        stand.connection = connection
        with pytest.raises(Undelivered, match=words) as failed:
            asyncio.run(CHANNEL.deliver(channels.parcel(stand)))
        assert not failed.value.unsure
        assert not asyncio.run(CHANNEL.probe(connection)).usable
        with pytest.raises(Unreachable, match=words) as unheard:
            asyncio.run(channels.received(CHANNEL, stand, 1))
        shown = f"{failed.value!r} {unheard.value!r} {failed.value.__cause__}"
        assert TOKEN not in shown
        assert "B" * 35 not in shown


def test_what_is_no_chat_of_telegram_is_refused_for_good(telegram: Telegram) -> None:
    stand = TelegramStand(telegram)
    with pytest.raises(Undelivered, match="is a number") as failed:
        asyncio.run(CHANNEL.deliver(channels.parcel(stand, conversation="room-7")))
    assert failed.value.for_good
    assert telegram.seen(ANN) == []


def test_nothing_of_telegram_is_imported_before_it_is_used() -> None:
    code = (
        "import sys; from remit.channels import registry; registry.installed.all();"
        "import remit.app; print('aiogram' in sys.modules, 'aiohttp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
