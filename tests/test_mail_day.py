"""A day by e-mail alone: whatever awaits a person comes with its contents, and is answered, decided
and judged in words, in conversations that a mail program keeps together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from remit.services.governance import approvals
from remit.services.messaging import inbox, questions
from remit.services.organisation import halts
from remit.services.work import outcomes, submitting
from remit.testing.clock import VirtualClock
from tests.company import Company
from tests.email_stage import MailStage, serving
from tests.mail_day import MailDay, line_of, words
from tests.mailing import send

pytestmark = pytest.mark.requirement("FX-24", "FX-26")


@pytest.fixture(scope="module")
def servers() -> Iterator[MailStage]:
    with serving() as found:
        yield found


@pytest.fixture
def day(
    small: Company, servers: MailStage, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> MailDay:
    servers.empty()
    made = MailDay(small, servers, clock, monkeypatch)
    made.link()
    return made


def test_a_person_does_a_whole_day_by_mail_alone(day: MailDay) -> None:
    c, ceo = day.c, day.c.ceo

    # A wish, and a question about it, in one conversation.
    wish = day.write("Please make a landing page.", "Landing page")
    run = c.run(ceo)
    [letter] = c.call(run.caller, inbox.take)["messages"]
    assert (letter["subject"], letter["body"]) == ("Landing page", "Please make a landing page.")
    colour: Any = {"question": "Which colour?", "options": ["dark red", "blue"], "to": "board"}
    c.call(run.caller, questions.ask, **colour)
    asked = day.only()
    assert asked["Subject"] == "Re: Landing page"
    assert asked["In-Reply-To"] == asked["References"] == wish["Message-ID"]
    assert "1. dark red" in words(asked)
    day.answer(asked, "mauve")
    refusal = day.only()
    assert "“mauve” is none of the options" in words(refusal)
    assert "2. blue" in words(refusal)
    assert refusal["Subject"] == "Re: Landing page"
    day.answer(refusal, "2")
    assert words(day.only()) == "Your answer is: blue"
    assert answer_to(c, run) == "blue"

    # The agent's answer stays in that conversation, whatever it calls it.
    more: Any = {"reply_to": letter["id"], "subject": "A first draft"}
    send(c, run.caller, letter["sender"], "Here it is.", **more)
    draft = day.only()
    assert draft["Subject"] == "Re: Landing page"
    assert str(wish["Message-ID"]) in draft["References"].split()
    assert words(draft).startswith("A first draft\n\nHere it is.")

    # A request comes whole, is sent back, comes anew, and is approved.
    plan: Any = {"company": c.id, "kind": "request_board_approval", "payload": {"title": "Move"}}
    request = c.call(ceo.caller, approvals.request, **plan)
    shown = day.only()
    day.write(line_of(shown, "return ").replace("and what to change", "say what it costs"))
    assert words(day.only()).startswith("Not done yet: Send back: ")
    day.confirm()
    about: Any = {"approval": request["id"]}
    assert c.call(c.board, approvals.show, **about)["decision_note"] == "say what it costs"
    c.call(ceo.caller, approvals.resubmit, **about, payload={"title": "Move", "cost": 7})
    revised = day.only()
    assert "cost" in words(revised)
    day.answer(revised, line_of(revised, "approve "))
    assert words(day.only()).startswith("Not done yet: Approve: ")
    day.confirm()
    assert c.call(c.board, approvals.show, **about)["status"] == "approved"

    # Work is handed in, sent back, handed in anew, and accepted.
    solo = c.agent("solo", None, purpose="The brochure")
    c.call(solo.caller, submitting.submit, outcome=solo.id, note="Twelve pages.")
    handed_in = day.only()
    assert handed_in["Subject"] == "Handed in by solo: The brochure"
    assert "│ Twelve pages." in words(handed_in)
    day.answer(handed_in, line_of(handed_in, "return ").replace("and what is missing", "a cover"))
    assert "Send back: The brochure, handed in (a cover)" in words(day.only())
    day.confirm()
    assert outcome(c, solo.id)["submissions"][0]["verdict_note"] == "a cover"
    c.call(solo.caller, submitting.submit, outcome=solo.id, note="With a cover.")
    anew = day.only()
    day.answer(handed_in, line_of(anew, "accept "))
    day.new()
    day.confirm()
    assert outcome(c, solo.id)["status"] == "completed"

    # A letter of somebody else's comes with its text, and an answer goes to its author.
    writer = c.agent("writer")
    sent = send(c, writer.caller, "board", "It rains.\nTake an umbrella.", subject="Weather")
    weather = next(one for one in day.new() if "Weather" in one["Subject"])
    assert weather["Subject"] == "Letter from writer: Weather"
    assert "│ It rains.\n│ Take an umbrella." in words(weather)
    day.answer(weather, "Thank you.")
    [thanks] = c.call(writer.caller, inbox.take)["messages"]
    assert (thanks["body"], thanks["reply_to"]) == ("Thank you.", sent["id"])
    send(c, writer.caller, "board", "You are welcome.", reply_to=thanks["id"])
    welcome = next(one for one in day.new() if "welcome" in words(one))
    assert welcome["Subject"] == "Re: Letter from writer: Weather"
    assert welcome["References"].split().count(str(weather["Message-ID"])) == 1

    # In the evening everything stops, and goes on in the morning.
    for command, stopped in (("/stop all", True), ("/go all", False)):
        day.write(command)
        assert words(day.only()).startswith(f"Not done yet: {command} ")
        day.confirm()
        assert bool(c.call(c.board, halts.listing, company=c.id)) is stopped
    assert day.waiting() == []


def answer_to(c: Company, run: Any) -> str:
    found = c.sql("SELECT answer FROM questions WHERE agent_id = ?", run.agent_id)
    return str(found[0][0])


def outcome(c: Company, outcome_id: str) -> Any:
    return c.call(c.board, outcomes.show, outcome=outcome_id)
