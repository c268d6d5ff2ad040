"""Where the last words of a run go."""

from typing import Any

import pytest

from remit.clock import MINUTE
from remit.model.messaging.mail import MOST_HOPS
from remit.services.record import events
from tests.company import Answer, Company, Member
from tests.mailing import look, send, take, unread
from tests.working import claim, end


@pytest.fixture
def company(small: Company) -> Company:
    return small


def worker(company: Company, name: str, boss: str = "ceo", **more: Any) -> Member:
    return company.agent(name, boss, adapter_type="scripted", perpetual=True, **more)


def speak(company: Company, member: Member, words: str, status: str = "completed") -> None:
    """A run that takes its mail up and ends with these words."""
    company.clock.advance(MINUTE)  # type: ignore[attr-defined]
    run = claim(company, member)
    take(company, run)
    end(company, run, status, final_response=words)


def undelivered(company: Company) -> list[Answer]:
    found = company.call(company.board, events.listing, company=company.id, limit=200)
    return [event for event in found if event["action"] == "run.undelivered"]


@pytest.mark.parametrize(
    "words", ["@lead Done.", "@lead\nDone.", " \n@lead: Done.", "@LEAD, Done.\n"]
)
def test_a_mention_at_the_beginning_hands_the_words_over(company: Company, words: str) -> None:
    lead = worker(company, "lead")
    dev = worker(company, "dev", "lead")
    sent = send(company, lead.caller, "agent:dev", "Do it.")
    speak(company, dev, words)
    (letter,) = look(company, lead)
    assert (letter["body"].strip(), letter["sender"]) == ("Done.", f"agent:{dev.id}")
    assert letter["thread_id"] == sent["thread_id"]


def test_a_human_is_the_board(company: Company) -> None:
    dev = worker(company, "dev")
    send(company, company.board, "agent:dev")
    speak(company, dev, "@human It is done.")
    assert [one["body"].strip() for one in unread(company, company.board)] == ["It is done."]


def test_whoever_may_not_be_written_to_gets_nothing_and_the_run_ends_all_the_same(
    company: Company,
) -> None:
    worker(company, "lead")
    dev = worker(company, "dev", "lead")
    stranger = worker(company, "stranger")
    for words in (f"@{stranger.name} psst", "@nobody psst", "@dev"):
        send(company, company.board, "agent:dev")
        speak(company, dev, words)
    assert look(company, stranger) == []
    assert [event["details"]["to"] for event in undelivered(company)] == [
        "agent:nobody",
        "agent:stranger",
    ]  # the newest first


def test_words_without_a_mention_answer_people_and_agents_only_where_that_is_wanted(
    company: Company,
) -> None:
    quiet = worker(company, "quiet")
    chatty = worker(company, "chatty", runtime_config={"autoReply": True})
    for member in (quiet, chatty):
        send(company, company.board, f"agent:{member.id}", "Hello?")
        send(company, company.ceo.caller, f"agent:{member.id}", "Hello!")
        speak(company, member, "Here I am.")
    answers = unread(company, company.board)
    assert [(one["sender_name"], one["body"].strip()) for one in answers] == [
        ("chatty", "Here I am."),
        ("quiet", "Here I am."),
    ]
    assert [one["body"].strip() for one in look(company, company.ceo)] == ["Here I am."]


def test_a_failed_run_has_no_last_words(company: Company) -> None:
    dev = worker(company, "dev")
    send(company, company.board, "agent:dev")
    speak(company, dev, "@human Half", status="failed")
    assert unread(company, company.board) == []


def test_a_thread_that_only_goes_to_and_fro_ends(company: Company) -> None:
    lead = worker(company, "lead")
    dev = worker(company, "dev", "lead")
    send(company, lead.caller, "agent:dev", "Ping")
    turns = 0
    players = ((dev, "@lead Pong"), (lead, "@dev Ping"))
    while turns <= 2 * MOST_HOPS:
        member, words = players[turns % 2]
        if not look(company, member):
            break
        speak(company, member, words)
        turns += 1
    assert turns == MOST_HOPS + 1
    (event,) = undelivered(company)
    assert event["details"]["code"] == "hop_limit"
