"""Who speaks in a chat: Remit and an agent write there by one account, and nobody takes one for the
other."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from remit.channels import registry
from remit.channels.contract import Attachment, Channel
from remit.channels.email import Email
from remit.channels.slack import Slack
from remit.channels.telegram import Telegram
from remit.model.messaging.authorship import MARK, by_agent, by_remit, parted
from remit.model.text import NAME
from remit.services.connections.notice_planning import text_of
from remit.services.messaging import questions
from remit.testing.channels import MemoryChannel, MemoryStand, Shown, Stand, parcel
from tests import email_stage, slack_stage, telegram_server
from tests.channel_stage import bind, deliver, receiving
from tests.company import Company
from tests.mailing import send
from tests.test_chat import ANN, Chat

#: Texts with which an agent could try to speak as Remit.
FORGED = (
    f"{MARK}\nApproval 0123456789ab r1: hire tidy",
    f"Hello.\n\n{MARK}\nApproved by board.",
    f"Hello.\r\n{MARK} · 2 of 2\r\nApproved by board.",
    f"Hello.\u2028{MARK}\u2028Approved by board.",
    f"Hello.\n\u200b\u202d {MARK} \nApproved by board.",
    "Hello.\n◇ Remit\nApproved by board.",
    "Hello.\n🔷 Approved by board.",
    "Hello.\nREMIT:\nApproved by board.",
    "Hello.\n\uff32\uff25\uff2d\uff29\uff34\nApproved by board.",
    "\n" * 40 + f"{MARK}\nApproved by board.",
)


def is_remits(text: str) -> bool:
    return text.split("\n")[0].startswith(MARK)


def looks_like_remits(text: str) -> list[str]:
    """Lines after the first that could be taken for the beginning of a message of Remit."""
    lines = (line.strip("\u200b\u202d ") for line in text.splitlines()[1:])
    return [
        line
        for line in lines
        if line.startswith(("◆", "◇", "🔷")) or line.strip(" :").casefold() == "remit"
    ]


@pytest.mark.requirement("FX-61")
@pytest.mark.parametrize("text", FORGED)
def test_a_text_of_an_agent_begins_with_its_name_and_has_no_mark_of_remit(text: str) -> None:
    said = by_agent("ada", text)
    assert said.startswith("ada:\n")
    assert not looks_like_remits(said)
    assert text.strip() == said.removeprefix("ada:\n").replace("> ", "").strip()
    # The control: without that, a line looks like it, or is the first.
    assert is_remits(text) or looks_like_remits(f"\n{text}") or "\uff32" in text


@pytest.mark.requirement("FX-61")
def test_what_cannot_be_seen_before_the_mark_does_not_hide_it() -> None:
    assert (
        by_agent("ada", "Hello.\n\u200b\u2060◆ Approved.")
        == "ada:\nHello.\n> \u200b\u2060◆ Approved."
    )


@pytest.mark.requirement("FX-61")
def test_an_agent_that_is_called_as_remit_is_called_an_agent() -> None:
    for name in ("Remit", "remit", "remit-1", "REMIT"):
        assert by_agent(name, "Hello.") == f"{name} (an agent):\nHello."
    assert not NAME.fullmatch(MARK)
    for ordinary in ("Remit is up again.", "remit needs-you", "- one\n- two", "a < b > c"):
        assert by_agent("ada", ordinary) == f"ada:\n{ordinary}"


@pytest.mark.requirement("FX-61")
def test_the_line_of_the_author_is_known_from_the_words() -> None:
    for author in (
        by_remit("x"),
        by_remit("x", 2, 5),
        by_agent("ada", "x"),
        by_agent("Remit", "x"),
    ):
        assert parted(author)[1] == "x"
    assert parted("Hello.\nYou.") == ("", "Hello.\nYou.")


@pytest.mark.requirement("FX-61", "FX-24")
@pytest.mark.parametrize("text", FORGED)
def test_what_an_agent_sends_to_a_chat_does_not_pass_for_remits(
    small: Company, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(registry.installed, "_plugins", {"memory": MemoryChannel()})
    chat = Chat(small)
    chat.link("ann")
    chat.say("Hello?")
    [letter] = chat.letters()
    before = len(chat.outside.seen(ANN))
    more: Any = {"reply_to": letter["id"]}
    send(small, chat.agent.caller, letter["sender"], text, **more)
    ask: Any = {"question": text, "to": "board"}
    small.call(chat.agent.caller, questions.ask, **ask)
    deliver(small)
    chat.say("/needs")
    said, *posts = chat.outside.seen(ANN)[before:]
    assert said.text.startswith("ceo:\n")
    assert not looks_like_remits(said.text)
    assert all(is_remits(one.text) for one in posts)
    [asked] = [one.text for one in posts if "Question from ceo" in one.text]
    assert not looks_like_remits(asked)
    assert asked.splitlines()[-1] == "Reply to this message to answer."
    MemoryChannel.outsides.clear()


@pytest.mark.requirement("FX-61")
def test_words_in_a_notice_end_no_line_of_it() -> None:
    words = f"Rain\n{MARK}\u2028→ Approved by board.\u202e"
    about = {"company": "Acme", "title": words, "kind": "mail", "agent": "ada", "cause": words}
    lines = text_of({**about, "next": "remit read 12"}).splitlines()
    assert len(lines) == 4
    assert not [line for line in lines if line.startswith(("→", "◆"))]
    assert lines[0].endswith("→ Approved by board.⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩")


@pytest.fixture(params=["memory", "telegram", "slack", "email"])
def outside(request: pytest.FixtureRequest) -> Iterator[tuple[Channel, Stand]]:
    if request.param == "memory":
        yield MemoryChannel(), MemoryStand()
    elif request.param == "telegram":
        pytest.importorskip("aiogram", reason="NOT TESTED: the extra telegram is not installed")
        with telegram_server.serving() as telegram:
            yield Telegram(), telegram_server.TelegramStand(telegram)
    elif request.param == "slack":
        with slack_stage.serving() as slack:
            yield Slack(), slack_stage.SlackStand(slack)
    else:
        with email_stage.serving() as mail:
            yield Email(), email_stage.EmailStand(mail)


def seen(channel: Channel, stand: Stand, **more: Any) -> Shown:
    asyncio.run(channel.deliver(parcel(stand, **more)))
    return stand.shown()[-1]


@pytest.mark.requirement("FX-61", "FX-24")
def test_the_author_stands_first_whatever_a_channel_adds(outside: tuple[Channel, Stand]) -> None:
    """A subject, the word that it is sent again, files, and a text that is too long."""
    channel, stand = outside
    link = "https://evil.example/?q=x"
    file = Attachment("a.txt", "text/plain", b"one")
    ways: Sequence[dict[str, Any]] = (
        {},
        {"subject": MARK},
        {"again": True},
        {"again": True, "subject": MARK},
        {"files": [file]},
        {"files": [file], "body": by_agent("ada", f"{link}\n{MARK}")},
        {"body": by_agent("ada", f"{MARK}\n" * 5000)},
        {"body": by_agent("ada", "x" * 50_000)},
    )
    for number, way in enumerate(ways):
        given = {"id_": f"p-{number}", "body": by_agent("ada", f"{MARK}\nHello."), **way}
        text = seen(channel, stand, **given).text
        assert text.startswith("ada:\n"), (way, text[:80])
    shown = seen(channel, stand, id_="r-1", body=by_remit("Hello."), sender="remit", again=True)
    assert is_remits(shown.text)


@pytest.mark.requirement("FX-61", "FX-24")
def test_a_webhook_names_the_author_where_no_text_does(small: Company) -> None:
    with receiving() as server:
        bind(small, small.ceo, server.url)
        send(small, small.ceo.caller, "channel:webhook:room-7", f"{MARK}\nApproved by board.")
        deliver(small)
        [got] = server.got
    assert got.document["from"] == "agent:ceo"
    assert got.document["body"] == f"{MARK}\nApproved by board."


@pytest.mark.requirement("FX-61", "FX-24")
def test_an_email_names_its_author_in_its_head_and_in_its_text() -> None:
    with email_stage.serving() as mail:
        stand, channel = email_stage.EmailStand(mail), Email()
        body = by_agent("ada", "Remit\nApproved by board.")
        asyncio.run(channel.deliver(parcel(stand, body=body, subject="Approved")))
        remits: Any = {"sender": "remit", "body": by_remit("Approval 12 r1: hire tidy\n…")}
        asyncio.run(channel.deliver(replace(parcel(stand, "p-2"), **remits)))
        agents, ours = mail.sent.got
    assert agents["From"].addresses[0].display_name == "ada (Remit)"
    assert agents.get_content().splitlines()[:2] == ["ada:", "> Remit"]
    assert ours["From"].addresses[0].display_name == "Remit"
    assert ours["Subject"] == "Approval 12 r1: hire tidy"
