"""Answers to questions in words: by an option, its number or its beginning, and in other words."""

from __future__ import annotations

from typing import Any

import pytest

from remit.model.messaging.question import chosen, picked
from remit.services.messaging import questions
from tests.company import Company
from tests.mail_office import MailOffice

pytestmark = pytest.mark.requirement("FX-26")
COLOURS = ["Dark red", "dark blue", "green"]


@pytest.mark.parametrize(
    ("text", "option"),
    [
        ("green", "green"),
        ("Green.", "green"),
        (" GREEN! ", "green"),
        ("gr", "green"),
        ("dark r", "Dark red"),
        ("Dark B.", "dark blue"),
        ("2", "dark blue"),
        ("2.", "dark blue"),
        ("#3", "green"),
        ("Option 1", "Dark red"),
        ("No. 1", "Dark red"),
        ("dark", None),
        ("mauve", None),
        ("4", None),
        ("0", None),
        ("", None),
        (".", None),
    ],
)
def test_an_option_is_named_by_its_words_its_number_or_its_beginning(
    text: str, option: str | None
) -> None:
    assert picked(text, COLOURS) == option


def test_a_number_names_an_option_itself_where_options_are_numbers() -> None:
    amounts = ["20", "10", "2"]
    assert picked("2", amounts) == "2"
    assert picked("1", amounts) is None
    assert picked("3", amounts) is None
    assert chosen("20.", amounts) == "20"
    assert picked("no", ["No", "No way"]) == "No"


@pytest.fixture
def office(small: Company) -> MailOffice:
    made = MailOffice(small)
    made.link()
    return made


def asked(office: MailOffice, question: str = "Which colour?", options: Any = COLOURS) -> str:
    about: dict[str, Any] = {"question": question, "options": options, "to": "board"}
    found = office.c.call(office.c.ceo.caller, questions.ask, **about)
    office.mail("/needs")
    rows = office.c.sql("SELECT id FROM channel_posts WHERE subject = ?", f"question:{found['id']}")
    office.c.sql("UPDATE channel_posts SET outside_id = ? WHERE id = ?", _OUTSIDE, rows[-1][0])
    return str(found["id"])


_OUTSIDE = "<q1.remit@agents.example>"


def reply(office: MailOffice, text: str) -> str:
    return office.mail(text, **{"In-Reply-To": _OUTSIDE})


def answer_of(office: MailOffice, question: str) -> str | None:
    [[answer]] = office.c.sql("SELECT answer FROM questions WHERE id = ?", question)
    return None if answer is None else str(answer)


def test_an_answer_that_is_no_option_says_the_options_and_how_to_answer_otherwise(
    office: MailOffice,
) -> None:
    question = asked(office)
    told = reply(office, "mauve")
    assert told.splitlines() == [
        "“mauve” is none of the options, so it was not taken as the answer:",
        "│ 1. Dark red",
        "│ 2. dark blue",
        "│ 3. green",
        "",
        (
            "Reply to this message with one of them, or its number; to answer in other words, "
            "begin with `other:`."
        ),
    ]
    assert answer_of(office, question) is None
    reply(office, "Other: mauve, if there is any")
    assert answer_of(office, question) == "mauve, if there is any"
    assert "answered already" in reply(office, "mauve")


def test_a_condition_below_an_option_goes_with_it(office: MailOffice) -> None:
    question = asked(office)
    reply(office, "2.\n\nBut only if it costs less than 5.")
    assert answer_of(office, question) == "dark blue\n\nBut only if it costs less than 5."


def test_a_beginning_of_an_option_is_not_enough_above_more_words(office: MailOffice) -> None:
    question = asked(office)
    assert "none of the options" in reply(office, "gr\nwhat do you mean?")
    assert answer_of(office, question) is None


def test_a_question_is_answered_by_its_number_in_a_new_message(office: MailOffice) -> None:
    question = asked(office)
    [shown] = [text for text in office.answers() if text.startswith("Question from")]
    [line] = [line for line in shown.splitlines() if "In a new message" in line]
    words = line.rpartition("`answer ")[2].removesuffix("`.")
    assert "what the answer is" in office.mail(f"answer {words}")
    assert office.mail(f"Answer {words}: 3") == "Your answer is: green"
    assert answer_of(office, question) == "green"
    before = len(office.answers())
    office.mail("answer 123456 letters, please")
    assert len(office.answers()) == before, "the control: such words are mail to the agent"


def test_words_that_name_an_option_are_not_repeated(office: MailOffice) -> None:
    question = asked(office)
    assert reply(office, "Green.") == ""
    assert answer_of(office, question) == "green"


def test_a_question_without_options_takes_any_words(office: MailOffice) -> None:
    question = asked(office, "What is it called?", [])
    reply(office, "other: things\nAnd more.")
    assert answer_of(office, question) == "other: things\nAnd more."


def test_who_may_not_answer_is_not_told_the_options(office: MailOffice) -> None:
    question = asked(office)
    sender = "Eve <eve@people.example>"
    assert office.mail("mauve", sender=sender, **{"In-Reply-To": _OUTSIDE}) == ""
    assert office.mail(f"answer {question[:13]} green", sender=sender) == ""
    assert answer_of(office, question) is None


def test_an_observer_is_refused_whatever_the_answer(small: Company) -> None:
    office = MailOffice(small)
    office.board = small.user("viewer", "observer")
    office.link()
    about: dict[str, Any] = {"question": "Which colour?", "options": COLOURS, "to": "board"}
    question = str(small.call(small.ceo.caller, questions.ask, **about)["id"])
    for words in ("green", "mauve"):
        told = office.mail(f"answer {question[:13]} {words}")
        assert told
        assert "none of the options" not in told
        assert answer_of(office, question) is None
