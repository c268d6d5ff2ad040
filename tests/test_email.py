"""E-mail as a channel, against a real mailbox and a real server: who is heard, and who is not."""

import asyncio
import contextlib
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from remit.channels import mail_text
from remit.channels.contract import Incoming, Undelivered, Unreachable
from remit.channels.email import OLDEST_DAYS, Email, composed, incoming, taken_by
from remit.services.chat import intake
from remit.testing import channels
from tests.email_stage import ADDRESS, ANN, SERVER, EmailStand, MailStage, serving, written

EMAIL = Email()


@pytest.fixture(scope="module")
def servers() -> Iterator[MailStage]:
    with serving() as found:
        yield found


@pytest.fixture
def stage(servers: MailStage) -> MailStage:
    servers.empty()
    return servers


@pytest.mark.requirement("FX-24")
@pytest.mark.parametrize("check", channels.checks(EMAIL), ids=lambda one: one.__name__)
def test_email_keeps_what_a_channel_promises(check: channels.Suite, stage: MailStage) -> None:
    asyncio.run(check(EMAIL, EmailStand(stage)))


def heard(stage: MailStage, number: int) -> list[Incoming]:
    return asyncio.run(channels.received(EMAIL, EmailStand(stage), number))


def reads(message: Any, stage: MailStage, **config: Any) -> Incoming | None:
    return incoming(message.as_bytes(), stage.config(**config), "1.1")


@pytest.mark.requirement("FX-24")
@pytest.mark.parametrize(
    ("said", "sure"),
    [
        (f"{SERVER}; dmarc=pass header.from=people.example", True),
        (
            f"{SERVER}; spf=fail smtp.mailfrom=x.y; dmarc=pass (p=none) header.from=people.example",
            True,
        ),
        (f"{SERVER} 1; dkim=pass header.d=people.example", True),
        (f"{SERVER}; spf=pass smtp.mailfrom=ann@people.example", True),
        (
            f"{SERVER}; dmarc=fail header.from=people.example; dkim=pass header.d=people.example",
            False,
        ),
        (f"{SERVER}; dmarc=pass header.from=evil.example", False),
        (f"{SERVER}; dkim=pass header.d=evil.example", False),
        (f"{SERVER}; spf=pass smtp.mailfrom=ann@evil.example", False),
        (f"{SERVER}; none", False),
        ("mx.evil.example; dmarc=pass header.from=people.example", False),
        (f'"{SERVER}"; dmarc=pass header.from=people.example', False),
        (f"x (; {SERVER}; dmarc=pass header.from=people.example", False),
        (f"{SERVER}.evil.example; dmarc=pass header.from=people.example", False),
    ],
)
def test_only_what_the_own_server_vouches_for_is_heard(
    said: str, sure: bool, stage: MailStage
) -> None:
    message = written("Hello", auth=None)
    assert reads(message, stage) is None
    message["Authentication-Results"] = said
    assert (reads(message, stage) is not None) is sure


@pytest.mark.requirement("FX-24")
@pytest.mark.parametrize(
    "said", ["spf=fail smtp.mailfrom=ann@people.example; dkim=none", "none", "dmarc=fail"]
)
def test_what_an_email_brings_along_in_the_name_of_the_server_is_not_believed(
    said: str, stage: MailStage
) -> None:
    message = written("Hello", auth=None)
    message["Authentication-Results"] = f"{SERVER}; {said}"  # servers write above what they got
    for forged in ("dmarc=pass header.from=people.example", "dkim=pass header.d=people.example"):
        message["Authentication-Results"] = f"{SERVER}; {forged}"
    assert reads(message, stage) is None


@pytest.mark.requirement("FX-24")
@pytest.mark.parametrize(
    ("header", "value"),
    [
        ("Auto-Submitted", "auto-replied"),
        ("Auto-Submitted", "auto-generated; owner-email=x"),
        ("Precedence", "bulk"),
        ("Precedence", "List"),
        ("List-Id", "<people.example>"),
        ("List-Unsubscribe", "<mailto:x@people.example>"),
        ("Return-Path", "<>"),
        ("X-Autoreply", "yes"),
    ],
)
def test_what_a_program_wrote_is_not_heard(header: str, value: str, stage: MailStage) -> None:
    assert reads(written("I am away."), stage) is not None
    assert reads(written("I am away.", **{header: value}), stage) is None


@pytest.mark.requirement("FX-24")
def test_our_own_mail_and_reports_about_mail_are_not_heard(stage: MailStage) -> None:
    vouched = "dmarc=pass header.from=agents.example"
    assert reads(written("Hello", sender=f"Ada <{ADDRESS}>", auth=vouched), stage) is None
    sent = composed(channels.parcel(EmailStand(stage)))
    sent["Authentication-Results"] = f"{SERVER}; {vouched}"
    assert reads(sent, stage) is None
    assert reads(written("Gone", sender="MAILER-DAEMON@people.example"), stage) is None
    two = written("Hello", sender=f"{ANN}, bob@people.example")
    assert reads(two, stage) is None


@pytest.mark.requirement("FX-24")
def test_strangers_are_marked_so_that_only_linked_people_among_them_are_heard(
    stage: MailStage,
) -> None:
    known, stranger = (
        reads(written("Hi"), stage, allow=allow) for allow in (["@people.example"], [])
    )
    assert known is not None
    assert stranger is not None
    assert (known.heard, stranger.heard) == (True, False)
    assert known.conversation == known.sender.id == ANN
    assert known.sender.name == f"Ann <{ANN}>"


@pytest.mark.requirement("FX-24")
def test_the_same_mail_twice_is_one_and_the_same_id_for_another_text_is_not(
    stage: MailStage,
) -> None:
    same = {"Message-ID": "<a@people.example>", "Date": format_datetime(datetime.now(UTC))}
    first, copy = written("Pay 5", **same), written("Pay 5", **same)
    copy["Received"] = "by another way"
    other = written("Pay 500", **same)
    ids = [said.id for one in (first, copy, other) if (said := reads(one, stage)) is not None]
    assert len(ids) == 3
    assert ids[0] == ids[1] != ids[2]


@pytest.mark.requirement("FX-25", "FX-26")
@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw.replace(b"Subject: Hello", b"SUBJECT:   Hello  "),
        lambda raw: raw.replace(b"Subject: Hello", b"Subject:\n Hello"),
        lambda raw: raw.replace(b"/stop all", b"/stop \t all  \n\n\n"),
        lambda raw: raw.replace(b"\n", b"\r\n"),
        lambda raw: b"Received: by another way\n" + raw,
        lambda raw: raw.replace(b"To: agents+ada", b"Cc: eve@evil.example\nTo: agents+ada"),
    ],
)
def test_who_sends_anothers_signed_email_again_says_nothing_new(
    change: Callable[[bytes], bytes], stage: MailStage
) -> None:
    """Whatever a signature lets them change; it came, so it comes no more."""
    raw = written("/stop all").as_bytes()
    assert change(raw) != raw
    first, again = (incoming(one, stage.config(), "1.1") for one in (raw, change(raw)))
    assert first is not None
    assert again is None or again.id == first.id


@pytest.mark.requirement("FX-25", "FX-26")
def test_an_old_email_and_one_to_somebody_else_are_nobodys_word(stage: MailStage) -> None:
    """Signed once by their author, and sent to the agent by whoever has them."""
    now = datetime.now(UTC)
    days = timedelta(days=OLDEST_DAYS)
    for written_at in (now - days - timedelta(hours=1), now + timedelta(days=2)):
        assert reads(written("/stop all", Date=format_datetime(written_at)), stage) is None
    assert reads(written("/stop all", Date="yesterday"), stage) is None
    assert timedelta(microseconds=intake.KEEP) > days, "it would be forgotten, and heard again"
    passed_on = written("Yes, do it.", to="bob@people.example", **{"Delivered-To": ADDRESS})
    said = reads(passed_on, stage)
    assert said is not None
    assert (said.sender.sure, said.direct) == (False, False)


@pytest.mark.requirement("FX-24")
def test_an_answer_is_matched_and_read_without_what_it_quotes(stage: MailStage) -> None:
    outside = asyncio.run(EMAIL.deliver(channels.parcel(EmailStand(stage), body="Which colour?")))
    text = "Blue.\nNot red.\n\nOn Monday, Ada wrote:\n> Which colour?\n> Tell me.\n"
    [said] = [
        reads(written(text, References=f"<x@y.example> {outside}", Subject="Re: Hello"), stage)
    ]
    assert said is not None
    assert (said.reply_to, said.text) == (outside, "Blue.\nNot red.")
    signed = reads(written("ABCDEFGH23\n-- \nAnn\nCEO"), stage)
    assert signed is not None
    assert signed.text == "ABCDEFGH23"
    # What somebody else says is an id of ours is none.
    forged = reads(written("Hi", **{"In-Reply-To": "<x.remit@evil.example>"}), stage)
    assert forged is not None
    assert forged.reply_to is None


@pytest.mark.requirement("FX-24")
def test_nothing_goes_to_an_address_that_did_not_write_and_is_not_allowed(stage: MailStage) -> None:
    stand = EmailStand(stage)
    asked: dict[str, Any] = {"conversation": "eve@evil.example"}
    for bad in (
        asked,
        {"conversation": f"{ANN},eve@evil.example"},
        {"conversation": f"{ANN}\nBcc: eve@evil.example"},
        {"conversation": "nonsense"},
    ):
        with pytest.raises(Undelivered) as refused:
            asyncio.run(EMAIL.deliver(channels.parcel(stand, **bad)))
        assert refused.value.for_good
    assert stage.sent.got == []
    answer = channels.parcel(stand, reply_to_outside="<m@evil.example>#1", **asked)
    asyncio.run(EMAIL.deliver(answer))
    (sent,) = stage.sent.got
    assert (sent["To"], sent["X-Envelope-To"]) == ("eve@evil.example", "eve@evil.example")
    assert (sent["In-Reply-To"], sent["Auto-Submitted"]) == ("<m@evil.example>", "auto-generated")
    assert not {"Cc", "Bcc"} & set(sent)


@pytest.mark.requirement("FX-24")
def test_a_subject_cannot_add_a_header_and_an_attempt_keeps_its_id(stage: MailStage) -> None:
    stand = EmailStand(stage)
    one = channels.parcel(stand, subject="Hi\r\nBcc: eve@evil.example")
    assert composed(one)["Bcc"] is None
    assert composed(one)["Message-ID"] == composed(one)["Message-ID"]


@pytest.mark.requirement("FX-24")
def test_agents_share_a_mailbox_and_none_takes_what_is_anothers(stage: MailStage) -> None:
    stage.bring(written("For bob", to="agents+bob@agents.example"))
    stage.bring(written("For the people of the mailbox", to="agents@agents.example"))
    stage.bring(written("For nobody", to="xagents+ada@agents.example"))
    stage.bring(written("For ada", to="Ada <AGENTS+ada@agents.example>"))
    assert [one.text for one in heard(stage, 1)] == ["For ada"]
    with stage.mailbox() as client:
        assert len(client.search("UNSEEN")) == 3


@pytest.mark.requirement("FX-24")
def test_an_email_to_two_agents_is_heard_by_both(stage: MailStage) -> None:
    bob = "agents+bob@agents.example"
    stage.bring(written("For you two", to=f"{ADDRESS}, {bob}"))
    assert [one.text for one in heard(stage, 1)] == ["For you two"]
    stand = EmailStand(stage)
    stand.connection = stage.connection(address=bob)
    found = asyncio.run(channels.received(EMAIL, stand, 1))
    assert [one.text for one in found] == ["For you two"]


async def until_heard(stage: MailStage, text: str) -> list[Incoming]:
    found: list[Incoming] = []
    async with aclosing(EMAIL.receive(stage.connection())) as coming:
        async for said in coming:
            if any(one.text == text for one in found):
                break  # resumed, so it is marked
            found += said
    return found


def head_of(raw: bytes) -> bytes:
    return raw.partition(b"\n\n")[0].replace(b"Content-Type", b"X-Type")


#: Each would stop a parser, or keep it busy for minutes.
BOMBS: dict[str, Callable[[bytes], bytes]] = {
    "a long head": lambda raw: b"X: " + b"a,<" * 500_000 + b"\n" + raw,
    "many addresses": lambda raw: raw.replace(b"To: ", b"To: " + b"(" * 200_000, 1),
    "comments in comments": lambda raw: (
        b"Authentication-Results: %s; x %s%s\n" % (SERVER.encode(), b"(" * 30_000, b")" * 30_000)
        + raw
    ),
    "parts in parts": lambda raw: (
        head_of(raw)
        + b"".join(
            b'\nContent-Type: multipart/mixed; boundary="%d"\n\n--%d' % (number, number)
            for number in range(2000)
        )
    ),
    "many parts": lambda raw: (
        head_of(raw) + b'\nContent-Type: multipart/mixed; boundary="x"\n\n' + b"--x\n\n" * 100_000
    ),
    "HTML that never ends": lambda raw: (
        raw.replace(b"text/plain", b"text/html") + b"<!--<![CDATA[<a " * 100_000
    ),
    "a broken sender": lambda raw: raw.replace(b"From: ", b"From: =?utf-8?q?=00=0A?= <@>,", 1),
    "no charset": lambda raw: raw.replace(b"utf-8", b"utf-\xff\x00"),
}


@pytest.mark.requirement("FX-24")
@pytest.mark.parametrize("bomb", BOMBS)
def test_an_email_that_cannot_be_read_keeps_nobody_else_waiting(
    bomb: str, stage: MailStage
) -> None:
    stage.bring_raw(BOMBS[bomb](written("Boom").as_bytes()))
    stage.bring(written("Hello"))
    begun = time.process_time()
    found = asyncio.run(until_heard(stage, "Hello"))
    assert time.process_time() - begun < 5
    assert found[-1].text == "Hello"
    with stage.mailbox() as client:
        assert client.search(["UNKEYWORD", taken_by(ADDRESS)]) == []


@pytest.mark.requirement("FX-25")
@pytest.mark.parametrize(
    "sender",
    [
        f"=?utf-8?q?=3C{ANN.replace('@', '=40')}=3E?= <eve@evil.example>",
        f"=?utf-8?q?{ANN.replace('@', '=40')}=2C?= <eve@evil.example>",
        f'"{ANN}" <eve@evil.example>',
        f"eve@evil.example ({ANN})",
        f"{ANN} <eve@evil.example>",
        f"<{ANN}> <eve@evil.example>",
        f"{ANN}, eve@evil.example",
        f"Ann <{ANN}>\r\nFrom: eve@evil.example",
        f"people: {ANN}, eve@evil.example;",
        f"eve@evil.example\0<{ANN}>",
    ],
)
def test_who_names_somebody_else_is_not_them(sender: str, stage: MailStage) -> None:
    """Whatever the receiving server made of it; here it says nothing about whom it vouched for."""
    raw = written("Pay me", auth="dmarc=pass").as_bytes()
    raw = raw.replace(f"From: Ann <{ANN}>".encode(), f"From: {sender}".encode())
    with contextlib.suppress(mail_text.Unreadable):
        said = incoming(raw, stage.config(), "1.1")
        assert said is None or said.sender.id == "eve@evil.example", said


@pytest.mark.requirement("FX-24")
def test_what_is_not_heard_is_taken_once_and_keeps_nothing_waiting(stage: MailStage) -> None:
    stage.bring(written("Spam", auth=None))
    stage.bring(written("Away", **{"Auto-Submitted": "auto-replied"}))
    stage.bring(written("Hello"))
    assert [one.text for one in heard(stage, 1)] == ["Hello"]
    with stage.mailbox() as client:
        assert client.search(["UNKEYWORD", taken_by(ADDRESS)]) == []


@pytest.mark.requirement("FX-24")
def test_a_connection_that_is_not_secure_or_leads_inside_is_not_used(
    stage: MailStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def one(connection: Any) -> None:
        async for _ in EMAIL.receive(connection):
            return

    parcel = channels.parcel(EmailStand(stage))
    outside = channels.parcel(EmailStand(stage), private=False)
    with pytest.raises(Unreachable, match="private network"):
        asyncio.run(one(outside))
    with pytest.raises(Undelivered, match="private network"):
        asyncio.run(EMAIL.deliver(outside))
    with pytest.raises(Unreachable, match="password"):
        asyncio.run(one(channels.parcel(EmailStand(stage), key=b"wrong")))
    with pytest.raises(Undelivered, match="password"):
        asyncio.run(EMAIL.deliver(channels.parcel(EmailStand(stage), key=b"wrong")))
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setattr(
        ssl, "create_default_context", lambda *_: ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    )
    with pytest.raises(Unreachable, match="not secure"):
        asyncio.run(one(parcel))
    with pytest.raises(Undelivered, match="does not answer"):
        asyncio.run(EMAIL.deliver(parcel))
    assert stage.sent.got == []


def test_text_comes_from_html_without_what_is_not_text() -> None:
    message = written("x")
    message.set_content(
        "<style>b{}</style><p>One &amp; two</p><div>three<br>four</div>", subtype="html"
    )
    assert mail_text.text(message, answers=False) == "One & two\nthree\nfour"


def test_files_have_harmless_names() -> None:
    message = written("x")
    message.add_attachment(b"1", maintype="text", subtype="plain", filename="../../etc/passwd")
    message.add_attachment(b"2", maintype="text", subtype="plain")
    assert [name for _, name, _, _ in mail_text.files(message)] == ["passwd", "file-2"]


@pytest.mark.parametrize(
    "quote",
    [
        "On Monday, Ada wrote:\n> Which colour?",
        "On Thu, 19 Nov 2026 at 10:00, ada (Remit) <agents+ada@agents.example> wrote:\n\n> Which?",
        "On Thu, 19 Nov 2026 at 10:00, ada (Remit) <agents+ada@agents.example>\nwrote:\n\n> Which?",
        "On Thu, 19 Nov 2026 at 10:00, ada (Remit)\n<agents+ada@agents.example> wrote:\n> Which?",
        "Am 19.11.2026 um 10:00 schrieb ada (Remit):\n> Which?",
        "> On 19 Nov 2026, at 10:00, ada (Remit) wrote:\n> \n> Which?",
        "__________\nFrom: ada <agents+ada@agents.example>\nSent: now\n\nWhich?",
        "-----Original Message-----\nFrom: ada <agents+ada@agents.example>\nSent: now\n\nWhich?",
        "From: ada (Remit) <agents+ada@agents.example>\nSent: Thursday\nTo: Ann\n\nWhich?",
    ],
)
def test_an_answer_is_read_without_the_quotation_of_any_mail_program(quote: str) -> None:
    for above in ("Blue.", "Blue.\nNot red: that is loud."):
        for gap in ("\n", "\n\n"):
            message = written(f"{above}{gap}{quote}\n")
            assert mail_text.text(message, answers=True) == above
    assert mail_text.text(written(quote), answers=True) != "", "a quotation alone is not nothing"
    plain = "From: here\nThings go: well\nSent: yesterday"
    assert mail_text.text(written(plain), answers=True) == plain


def test_an_answer_in_html_alone_is_read_without_what_it_quotes() -> None:
    message = written("x")
    html = (
        "<div>Blue.</div><div>On Thu, 19 Nov 2026, ada &lt;a@b.example&gt; wrote:<br></div>"
        "<blockquote><div>Which\ncolour?</div><blockquote>Before.</blockquote>Say it.</blockquote>"
    )
    message.set_content(html, subtype="html")
    assert mail_text.text(message, answers=True) == "Blue."
    assert "> Which colour?" in mail_text.text(message, answers=False)
