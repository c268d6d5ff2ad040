"""A letter from a person is answered, and what became of it can be followed."""

from typing import Any

import pytest

from remit.clock import HOUR, MINUTE
from remit.model.messaging.mail import MARKS, MOST_HOPS, Mark
from remit.services.execution import runs
from remit.services.identity import Caller, as_system
from remit.services.messaging import pending_items, questions, threads, wish_withdrawal
from remit.services.organisation import agents
from remit.services.people import companies
from remit.services.record import events
from remit.services.screens import front_page, needs_you
from remit.services.work import outcomes
from remit.testing.clock import VirtualClock
from tests.company import Answer, Company, Member, Run
from tests.governance import approve, ask, hire, hired
from tests.mailing import ack, send, take, tick, unread
from tests.organisation import dump, given, problems, refusal, work
from tests.working import claim, end, ignored


def wished(company: Company, member: Member, text: str = "Make a page") -> tuple[Answer, Run]:
    """A letter of the board, and the run that takes it up."""
    letter = send(company, company.board, f"agent:{member.name}", text)
    run = company.run(member)
    take(company, run)
    return letter, run


def states(company: Company) -> dict[str, tuple[str, str | None]]:
    return {
        letter: (status, why)
        for letter, status, why in company.sql("SELECT message_id, status, ended_why FROM wishes")
    }


# ── the guaranteed reply ────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-07")
def test_who_only_talks_has_its_last_words_sent_back_and_marked(company: Company) -> None:
    letter, run = wished(company, company.ceo, "What is 2+2?")
    end(company, run, final_response="It is 4.")
    (reply,) = unread(company, company.board)
    assert reply["body"] == "It is 4."
    assert reply["reply_to"] == letter["id"]
    assert reply["sender_name"] == "ceo"
    assert reply["mark"] == Mark.LAST_WORDS
    assert "without doing anything" in MARKS[reply["mark"]]
    assert states(company)[letter["id"]] == ("ended", "answered")


@pytest.mark.requirement("FX-07")
def test_a_bare_acknowledgement_is_no_answer(company: Company) -> None:
    letter, run = wished(company, company.ceo)
    ack(company, run.caller, letter)
    end(company, run, final_response="Noted.")
    assert [one["mark"] for one in unread(company, company.board)] == [Mark.LAST_WORDS]


@pytest.mark.requirement("FX-07")
def test_who_says_nothing_at_all_has_that_said(company: Company) -> None:
    wished(company, company.ceo)
    (run,) = company.sql("SELECT id FROM runs WHERE status = 'running'")[0]
    company.call(as_system(), runs.end, run=run)
    (reply,) = unread(company, company.board)
    assert reply["body"] == "ceo read your letter, did nothing and said nothing."
    assert reply["sender_name"] == "remit"


@pytest.mark.requirement("FX-07")
def test_last_words_of_who_did_something_are_marked_otherwise(company: Company) -> None:
    _, run = wished(company, company.ceo)
    company.file(run.caller, b"<h1>Page</h1>", "The page")
    end(company, run, final_response="The page is in the knowledge base.")
    assert [one["mark"] for one in unread(company, company.board)] == [Mark.REPORT]


@pytest.mark.requirement("FX-07")
def test_who_replied_is_not_quoted_again(company: Company) -> None:
    letter, run = wished(company, company.ceo)
    send(company, run.caller, "board", "Done.", reply_to=letter["id"])
    end(company, run, final_response="I have replied.")
    assert [one["body"] for one in unread(company, company.board)] == ["Done."]
    assert states(company)[letter["id"]] == ("ended", "answered")


@pytest.mark.requirement("FX-07")
def test_who_wrote_without_naming_the_letter_answered_it_too(company: Company) -> None:
    first = send(company, company.board, "agent:ceo", "One")
    second = send(company, company.board, "agent:ceo", "Two")
    run = company.run(company.ceo)
    take(company, run)
    send(company, run.caller, "board", "Both are done.")
    end(company, run, final_response="Bye.")
    assert [one["body"] for one in unread(company, company.board)] == ["Both are done."]
    assert set(states(company)) == {first["id"], second["id"]}


@pytest.mark.requirement("FX-07")
def test_of_several_letters_each_is_answered(company: Company) -> None:
    first = send(company, company.board, "agent:ceo", "One")
    second = send(company, company.board, "agent:ceo", "Two")
    run = company.run(company.ceo)
    take(company, run)
    send(company, run.caller, "board", "One is done.", reply_to=first["id"])
    end(company, run, final_response="I did what I could.")
    answers = {one["reply_to"]: one["body"] for one in unread(company, company.board)}
    assert answers == {first["id"]: "One is done.", second["id"]: "I did what I could."}


@pytest.mark.requirement("FX-07")
def test_auto_reply_and_mentions_make_no_doubles(company: Company) -> None:
    dev = company.agent("dev", runtime_config={"autoReply": True})
    _, run = wished(company, dev)
    end(company, run, final_response="By itself.")
    _, run = wished(company, dev)
    end(company, run, final_response="@human It is done.")
    assert sorted(one["body"] for one in unread(company, company.board)) == [
        "By itself.",
        "It is done.",
    ]


@pytest.mark.requirement("FX-07")
def test_what_is_handed_to_somebody_else_is_answered_when_that_has_ended(
    company: Company, clock: VirtualClock
) -> None:
    dev = company.agent("dev")
    letter, run = wished(company, company.ceo)
    end(company, run, final_response="@dev Make a page, please.")
    assert unread(company, company.board) == []
    run = company.run(dev)
    take(company, run)
    end(company, run, final_response="I have no idea how.")
    clock.advance(3 * MINUTE)
    tick(company)
    (reply,) = unread(company, company.board)
    assert (reply["reply_to"], reply["mark"]) == (letter["id"], Mark.REPORT)
    assert "dev was the last" in reply["body"]
    assert "I have no idea how." in reply["body"]


@pytest.mark.requirement("FX-07")
def test_a_run_that_failed_answers_nothing_and_the_letter_comes_again(company: Company) -> None:
    letter, run = wished(company, company.ceo)
    end(company, run, "failed", final_response="I am going to")
    assert [one["mark"] for one in unread(company, company.board)] == [None]  # that it failed
    assert states(company)[letter["id"]] == ("open", None)


@pytest.mark.requirement("FX-07")
def test_letters_of_agents_and_of_remit_are_no_wishes(company: Company) -> None:
    dev = company.agent("dev")
    send(company, company.ceo.caller, "agent:dev", "Hello")
    run = company.run(dev)
    take(company, run)
    end(company, run, final_response="Hello yourself.")
    assert states(company) == {}
    assert unread(company, company.board) == []


@pytest.mark.requirement("FX-07")
def test_a_wake_up_is_a_wish_if_it_has_a_reason(company: Company) -> None:
    dev = company.agent("dev")
    company.call(company.board, agents.wake, agent=dev.id)
    run = company.run(dev)
    (letter,) = take(company, run)
    end(company, run, final_response="There is nothing to do.")
    assert (letter["subject"], letter["body"]) == ("Wake up", "Wake up.")
    assert unread(company, company.board) == []
    assert company.call(company.board, front_page.wishes, company=company.id) == []
    woken = company.call(company.board, agents.wake, agent=dev.id, reason="Is the page done?")
    run = company.run(dev)
    take(company, run)
    end(company, run, final_response="It is done.")
    assert list(states(company)) == [woken["message_id"]]
    (reply,) = unread(company, company.board)
    assert reply["body"] == "It is done."
    (wish,) = company.call(company.board, front_page.wishes, company=company.id)
    assert wish["thread_id"] == woken["message_id"]


@pytest.mark.requirement("FX-07")
def test_people_and_their_answers_use_up_no_hops(company: Company) -> None:
    letter = send(company, company.board, "agent:ceo", "Hello")
    for _ in range(MOST_HOPS + 2):
        run = company.run(company.ceo)
        (taken,) = take(company, run)
        reply = send(company, run.caller, "board", "Yes?", reply_to=taken["id"])
        end(company, run)
        letter = send(company, company.board, "agent:ceo", "Go on", reply_to=reply["id"])
    assert states(company)[letter["id"]] == ("open", None)


@pytest.mark.requirement("FX-07")
def test_who_may_not_write_to_the_person_is_quoted_by_remit(company: Company) -> None:
    dev, other = company.agent("dev"), company.agent("other")
    ann = company.user("ann", scope="dev")
    letter = send(company, ann, "agent:dev", "Hello")
    company.sql(
        "UPDATE memberships SET scope_agent_id = ? WHERE scope_agent_id = ?", other.id, dev.id
    )
    run = company.run(dev)
    take(company, run)
    end(company, run, final_response="Hello, Ann.")
    (reply,) = unread(company, ann)
    assert (reply["sender_name"], reply["mark"]) == ("remit", Mark.LAST_WORDS)
    assert reply["body"] == "dev may not write to you. The last words of its run:\n\nHello, Ann."
    assert states(company)[letter["id"]] == ("ended", "answered")


@pytest.mark.requirement("FX-07")
def test_who_left_the_company_is_not_written_to(company: Company) -> None:
    ann = company.user("ann")
    letter = send(company, ann, "agent:ceo", "Hello")
    company.sql(
        "DELETE FROM memberships WHERE user_id IN (SELECT id FROM users WHERE name = 'ann')"
    )
    run = company.run(company.ceo)
    take(company, run)
    end(company, run, final_response="Hello, Ann.")
    assert states(company)[letter["id"]] == ("ended", "answered")


# ── the result ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-07", "FX-19")
def test_the_result_comes_once_when_the_last_thing_made_of_a_wish_has_ended(
    company: Company, clock: VirtualClock
) -> None:
    letter, run = wished(company, company.ceo)
    one = work(company, run.caller, company.ceo.id, "Design")
    two = work(company, run.caller, company.ceo.id, "Build")
    end(company, run, final_response="I made a plan.")
    assert unread(company, company.board) == []
    page = company.file(company.ceo.caller, b"page", "The page")
    company.call(company.ceo.caller, outcomes.complete, outcome=one, note="It is blue")
    clock.advance(HOUR)
    tick(company)
    assert unread(company, company.board) == []
    company.call(company.ceo.caller, outcomes.complete, outcome=two, evidence=[page["id"]])
    clock.advance(MINUTE)
    tick(company)
    assert unread(company, company.board) == []
    clock.advance(2 * MINUTE)
    tick(company)
    (result,) = unread(company, company.board)
    assert result["mark"] == Mark.RESULT
    assert result["reply_to"] == letter["id"]
    assert result["attachments"] == [page["id"]]
    assert "Design" in result["body"]
    assert "It is blue" in result["body"]
    clock.advance(2 * HOUR)
    tick(company)
    assert len(unread(company, company.board)) == 1
    assert states(company)[letter["id"]] == ("ended", "result")


@pytest.mark.requirement("FX-07")
def test_who_writes_about_it_in_time_is_not_overtaken(
    company: Company, clock: VirtualClock
) -> None:
    letter, run = wished(company, company.ceo)
    made = work(company, run.caller, company.ceo.id, "Build")
    send(company, run.caller, "board", "I am on it.", reply_to=letter["id"])
    end(company, run)
    run = company.run(company.ceo)
    # It says so first and completes it afterwards, in the same run.
    clock.advance(MINUTE)
    send(company, run.caller, "board", "It is there.", reply_to=letter["id"])
    clock.advance(MINUTE)
    company.call(run.caller, outcomes.complete, outcome=made)
    end(company, run)
    clock.advance(HOUR)
    tick(company)
    assert [one["body"] for one in unread(company, company.board)] == [
        "It is there.",
        "I am on it.",
    ]
    assert states(company)[letter["id"]] == ("ended", "answered")


@pytest.mark.requirement("FX-07")
def test_a_promise_is_no_result(company: Company, clock: VirtualClock) -> None:
    letter, run = wished(company, company.ceo)
    made = work(company, run.caller, company.ceo.id, "Build")
    send(company, run.caller, "board", "I am on it.", reply_to=letter["id"])
    end(company, run)
    clock.advance(HOUR)
    company.call(company.ceo.caller, outcomes.close, outcome=made, rationale="It cannot be done")
    clock.advance(HOUR)
    tick(company)
    result, _ = unread(company, company.board)
    assert result["mark"] == Mark.RESULT
    assert "closed" in result["body"]
    assert "It cannot be done" in result["body"]


@pytest.mark.requirement("FX-07")
def test_who_judged_it_knows_the_result(company: Company, clock: VirtualClock) -> None:
    letter, run = wished(company, company.ceo)
    made = work(company, run.caller, company.ceo.id, "Build")
    end(company, run)
    company.call(company.board, outcomes.complete, outcome=made)
    clock.advance(HOUR)
    tick(company)
    assert unread(company, company.board) == []
    assert states(company)[letter["id"]] == ("ended", "judged")
    assert trace(company, letter)["sentence"] == "Work on it has ended."


@pytest.mark.requirement("FX-07")
def test_what_is_reopened_is_a_wish_again(company: Company, clock: VirtualClock) -> None:
    letter, run = wished(company, company.ceo)
    made = work(company, run.caller, company.ceo.id, "Build")
    end(company, run)
    for _ in range(2):
        clock.advance(MINUTE)
        company.call(company.ceo.caller, outcomes.complete, outcome=made)
        clock.advance(HOUR)
        tick(company)
        assert states(company)[letter["id"]] == ("ended", "result")
        company.call(company.ceo.caller, outcomes.reopen, outcome=made)
        assert states(company)[letter["id"]] == ("open", None)
    assert len(unread(company, company.board)) == 2


@pytest.mark.requirement("FX-07")
def test_an_answer_to_a_question_belongs_to_what_led_to_it(
    company: Company, clock: VirtualClock
) -> None:
    letter, run = wished(company, company.ceo)
    asked = company.call(run.caller, questions.ask, question="Which colour?", to="board")
    end(company, run, final_response="I asked.")
    assert [one["subject"] for one in unread(company, company.board)] == ["Question: Which colour?"]
    company.call(company.board, questions.answer, question=asked["id"], answer="Blue")
    run = company.run(company.ceo)
    take(company, run)
    end(company, run, final_response="Blue it is.")
    clock.advance(HOUR)
    tick(company)
    assert [one["body"] for one in unread(company, company.board)] == ["Blue it is."]
    assert list(states(company)) == [letter["id"]]


# ── the trace ───────────────────────────────────────────────────────────────────────────────────


def trace(company: Company, letter: Answer) -> Answer:
    found: Answer = company.call(company.board, threads.show, message=letter["id"])["trace"]
    return found


@pytest.mark.requirement("FX-19")
def test_a_wish_can_be_followed_to_its_result(company: Company, clock: VirtualClock) -> None:
    letter = send(company, company.board, "agent:ceo", "Make a page")
    assert trace(company, letter)["state"] == "queued"
    run = company.run(company.ceo)
    take(company, run)
    assert trace(company, letter)["sentence"] == "ceo is reading it."
    made = work(company, run.caller, company.ceo.id, "Build")
    part = work(company, run.caller, made, "Write")
    hired(company, run.caller, "writer", purpose="Write well")
    send(company, run.caller, "agent:writer", "Hello")
    end(company, run)
    became = trace(company, letter)
    assert became["state"] == "in_work"
    assert [one["title"] for one in became["outcomes"]] == ["Build", "Write well", "Write"]
    assert [one["name"] for one in became["hires"]] == ["writer"]
    assert [one["to"] for one in became["letters"]] == ["writer"]
    assert [(one["agent"], one["status"]) for one in became["runs"]] == [("ceo", "completed")]
    # Parts have the letter from what they are parts of.
    assert company.sql("SELECT origin_id FROM outcomes WHERE id = ?", part) == [(None,)]
    why = company.call(company.board, events.why, event=part)
    assert why["wish"]["message_id"] == letter["id"]
    assert why["steps"][-1]["resource"] == f"message:{letter['id']}"
    assert why["steps"][-1]["who"] == "user:board"
    shown = company.call(company.board, outcomes.show, outcome=part)
    assert shown["wish"]["message_id"] == letter["id"]
    (listed,) = company.call(company.board, threads.listing, company=company.id, sent=True)
    assert (listed["id"], listed["state"]) == (letter["id"], "in_work")
    company.user("ann")
    send(company, company.board, "user:ann", "Look at it")
    listed = company.call(company.board, threads.listing, company=company.id, sent=True)[0]
    assert (listed["state"], listed["sentence"]) == ("sent", "It went to people.")


@pytest.mark.requirement("FX-19")
def test_what_a_later_run_makes_of_it_belongs_to_it_too(company: Company) -> None:
    dev = company.agent("dev")
    letter, run = wished(company, company.ceo)
    send(company, run.caller, "agent:dev", "Make it")
    end(company, run)
    run = company.run(dev)
    take(company, run)
    made = work(company, run.caller, dev.id, "Made by dev")
    end(company, run)
    why = company.call(company.board, events.why, event=made)
    assert why["wish"]["message_id"] == letter["id"]


@pytest.mark.requirement("FX-07", "FX-19", "FX-51")
def test_letters_that_one_run_reads_share_what_it_makes(
    company: Company, clock: VirtualClock
) -> None:
    first, second = (
        send(company, company.board, "agent:ceo", text, subject=text) for text in ("One", "Two")
    )
    run = company.run(company.ceo)
    take(company, run)
    made = work(company, run.caller, company.ceo.id, "Which?")
    company.call(run.caller, questions.ask, question="Is a question an answer?", to="board")
    end(company, run, final_response="I began.")
    for letter in (first, second):
        trace = company.call(company.board, threads.show, message=letter["id"])["trace"]
        assert [one["id"] for one in trace["outcomes"]] == [made]
        assert trace["state"] != "answered"
        kept = company.call(company.board, wish_withdrawal.preview_cancel, message=letter["id"])
        assert (kept["outcomes"], [one["id"] for one in kept["kept"]]) in (
            ([], [made]),
            ([], []),
        )
    (asked,) = company.call(company.board, questions.listing, company=company.id)
    company.call(company.board, questions.answer, question=asked["id"], answer="No.")
    run = company.run(company.ceo)
    take(company, run)
    company.call(run.caller, outcomes.complete, outcome=made, note="Both, as it turned out.")
    # Looked at while the run still holds mail about it, neither is put off for long.
    clock.advance(3 * MINUTE)
    tick(company)
    end(company, run)
    clock.advance(10 * MINUTE)
    tick(company)
    told = {one["reply_to"]: one["body"] for one in unread(company, company.board)}
    for letter in (first, second):
        assert "Both, as it turned out." in told[letter["id"]]


@pytest.mark.requirement("FX-19")
def test_agents_are_not_shown_what_people_see_of_a_letter(company: Company) -> None:
    letter, run = wished(company, company.ceo)
    assert company.call(run.caller, threads.show, message=letter["id"])["trace"] is None
    refused = refusal(company, run.caller, threads.listing, company=company.id, sent=True)
    assert refused == "invalid"


# ── what needs its sender ───────────────────────────────────────────────────────────────────────


def needs(company: Company) -> list[Answer]:
    found: list[Answer] = company.call(company.board, needs_you.listing, company=company.id)
    return found


@pytest.mark.requirement("FX-05", "FX-07")
def test_a_letter_that_starts_nobody_is_shown_to_its_sender(
    company: Company, clock: VirtualClock
) -> None:
    company.call(company.board, agents.pause, agent="ceo")
    letter = send(company, company.board, "agent:ceo", "Make a page")
    assert "paused" in letter["not_started"]
    assert needs(company) == []
    clock.advance(10 * MINUTE)
    (row,) = needs(company)
    assert (row["kind"], row["id"], row["title"]) == ("unanswered", letter["id"], "Make a page")
    assert "paused" in row["cause"]
    assert row["next"] == f"remit read {letter['id']}, or remit cancel {letter['id']}"
    company.call(company.board, agents.resume, agent="ceo")
    assert needs(company) == []


@pytest.mark.requirement("FX-07")
def test_a_letter_whose_run_was_ended_is_shown_as_unanswered(
    company: Company, clock: VirtualClock
) -> None:
    letter, run = wished(company, company.ceo)
    company.call(company.board, runs.cancel, run=run.id, reason="Not now")
    (row,) = needs(company)
    assert (row["kind"], row["id"]) == ("unanswered", letter["id"])
    assert row["cause"].endswith("Its run ended as cancelled: Not now.")
    clock.advance(3 * HOUR)
    tick(company)
    assert [one["kind"] for one in needs(company)] == ["unanswered"]


@pytest.mark.requirement("FX-07")
def test_a_letter_whose_reader_was_terminated_says_so(company: Company) -> None:
    dev = company.agent("dev")
    letter, _ = wished(company, dev)
    company.call(company.board, agents.terminate, agent=dev.id)
    (row,) = needs(company)
    assert (row["kind"], row["id"]) == ("unanswered", letter["id"])
    assert row["cause"] == "dev read it and was terminated; nobody has answered."
    assert row["next"] == f"remit send … to another agent, then remit cancel {letter['id']}"
    assert trace(company, letter)["sentence"] == row["cause"]
    take_back(company, letter)
    assert needs(company) == []


@pytest.mark.requirement("FX-07")
def test_a_dead_letter_is_one_row_with_its_cause(company: Company) -> None:
    dev = company.agent("dev")
    letter = send(company, company.board, "agent:dev", "Break it, please")
    for _ in range(3):
        run = company.run(dev)
        take(company, run)
        end(company, run, "failed", error="The model said no..", fault="message")
    rows = [one for one in needs(company) if one["kind"] != "mail"]
    (row,) = rows
    assert (row["kind"], row["id"], row["title"]) == (
        "dead_letter",
        letter["id"],
        "Break it, please",
    )
    assert row["cause"] == "it could not be read 3 times; last: The model said no."
    assert trace(company, letter)["state"] == "dead"
    company.call(company.board, pending_items.discard, message=letter["id"])
    assert [one for one in needs(company) if one["kind"] != "mail"] == []
    assert states(company)[letter["id"]] == ("ended", "discarded")


@pytest.mark.requirement("FX-07")
def test_a_failed_run_that_was_told_by_mail_is_no_second_row(company: Company) -> None:
    run = claim_with_mail(company)
    end(company, run, "failed", error="It broke.")
    assert [one["kind"] for one in needs(company)] == ["mail"]
    ack(company, company.board, *unread(company, company.board))
    (row,) = needs(company)
    assert (row["kind"], row["cause"]) == ("failed_run", "It broke.")
    assert row["next"] == f"remit run show {run.id}"


def claim_with_mail(company: Company) -> Run:
    top = company.agent("top", None, adapter_type="scripted")
    send(company, company.ceo.caller, "board", "Hello")
    ack(company, company.board, *unread(company, company.board))
    send(company, company.board, "agent:top", "Hello")
    run = claim(company, top)
    take(company, run)
    return run


# ── taking it back ──────────────────────────────────────────────────────────────────────────────


def take_back(company: Company, letter: Answer, by: Caller | None = None) -> Answer:
    """First what would end, then that: they are the same."""
    by = by or company.board
    before = dump(company)
    shown = company.call(by, wish_withdrawal.preview_cancel, message=letter["id"])
    assert dump(company) == before
    done = company.call(by, wish_withdrawal.cancel, message=letter["id"])
    assert {**shown, "dry_run": False} == done
    assert problems(company) == []
    return done


def titles(company: Company) -> dict[str, str]:
    found = company.sql("SELECT title, status FROM outcomes WHERE kind = 'work'")
    return {str(title): str(status) for title, status in found}


@pytest.mark.requirement("FX-51")
def test_a_letter_that_nobody_read_is_taken_back_alone(company: Company) -> None:
    letter = send(company, company.board, "agent:ceo", "Make a page")
    done = take_back(company, letter)
    assert [one["to"] for one in done["letters"]] == ["ceo"]
    assert done["outcomes"] == done["agents"] == done["runs"] == []
    assert take(company, company.run(company.ceo)) == []
    assert trace(company, letter)["state"] == "taken_back"
    assert needs(company) == []
    again = refusal(company, company.board, wish_withdrawal.cancel, message=letter["id"])
    assert again == "conflict"


@pytest.mark.requirement("FX-51")
def test_everything_made_of_a_wish_ends_with_it(company: Company) -> None:
    letter, run = wished(company, company.ceo)
    made = work(company, run.caller, company.ceo.id, "Build")
    work(company, run.caller, made, "A part")
    writer = hired(company, run.caller, "writer", purpose="Write well", perpetual=False)
    company.call(run.caller, questions.ask, question="Which colour?", to="board")
    ask(company, run.caller, "May I buy it?")
    send(company, run.caller, "agent:writer", "Begin")
    end(company, run)
    busy = company.run(writer)
    take(company, busy)
    done = take_back(company, letter)
    assert [one["title"] for one in done["outcomes"]] == ["Build", "A part", "Write well"]
    assert [one["name"] for one in done["agents"]] == ["writer"]
    assert [one["text"] for one in done["questions"]] == ["Which colour?"]
    assert [one["about"] for one in done["approvals"]] == ["May I buy it?"]
    assert [one["agent"] for one in done["runs"]] == ["writer"]
    assert {titles(company)[one] for one in ("Build", "A part", "Write well")} == {"closed"}
    assert refusal(company, busy.caller, outcomes.listing) == "unauthenticated"
    assert [one for one in needs(company) if one["kind"] in ("approval", "question")] == []
    # Who goes on is told.
    (told,) = take(company, company.run(company.ceo))
    assert told["subject"] == "Taken back: Make a page"
    assert "Do not go on" in told["body"]


@pytest.mark.requirement("FX-51")
def test_what_of_a_wish_is_over_already_stays_as_it_is(small: Company) -> None:
    small.call(
        small.board,
        companies.change,
        company=small.id,
        require_board_approval_for_new_agents=True,
    )
    letter, run = wished(small, small.ceo)
    made = work(small, run.caller, small.ceo.id, "Build")
    done_before = work(small, run.caller, made, "A part")
    small.call(run.caller, outcomes.complete, outcome=done_before)
    asked = small.call(run.caller, questions.ask, question="Which colour?", to="board")
    small.call(small.board, questions.answer, question=asked["id"], answer="Red")
    approve(small, ask(small, run.caller, "May I buy it?"))
    hopeful = hire(small, run.caller, "hopeful", purpose="Write", perpetual=False)
    send(small, run.caller, "agent:background", "Count.")
    end(small, run)
    done = take_back(small, letter)
    assert [one["title"] for one in done["outcomes"]] == ["Build", "Write"]
    assert titles(small)["A part"] == "completed"
    assert done["questions"] == []
    # The hire ends with its mandate, and what was approved stays approved.
    assert [one["id"] for one in done["approvals"]] == [hopeful["approval"]["id"]]
    assert [one["agent"] for one in done["jobs"]] == ["ceo"]
    assert small.sql("SELECT status FROM jobs") == [("cancelled",)]
    assert needs(small) == []


@pytest.mark.requirement("FX-51")
def test_a_letter_that_could_not_be_handled_is_discarded_when_it_is_taken_back(
    small: Company,
) -> None:
    dev = small.agent("dev")
    letter = send(small, small.board, "agent:dev", "Break it, please")
    for _ in range(3):
        run = small.run(dev)
        take(small, run)
        end(small, run, "failed", error="No.", fault="message")
    assert "dead_letter" in [one["kind"] for one in needs(small)]
    take_back(small, letter)
    assert "dead_letter" not in [one["kind"] for one in needs(small)]
    assert trace(small, letter)["state"] == "taken_back"


@pytest.mark.requirement("FX-51")
def test_what_remit_says_of_a_wish_is_not_taken_back(small: Company, clock: VirtualClock) -> None:
    lead = small.agent("lead", adapter_type="scripted", perpetual=True)
    dev = small.agent("dev", "lead")
    letter, run = wished(small, dev)
    small.call(run.caller, questions.ask, question="Which colour?")
    end(small, run)
    ignored(small, clock, lead, "a question of dev")
    # Remit passed the question on, and says so itself.
    assert small.sql("SELECT a.name FROM waits w JOIN agents a ON a.id = w.awaited_agent_id") == [
        ("ceo",)
    ]
    done = take_back(small, letter)
    assert [one["text"] for one in done["questions"]] == ["Which colour?"]
    assert done["letters"] == []


@pytest.mark.requirement("FX-51")
def test_what_has_another_reason_stays(company: Company) -> None:
    other = work(company, company.ceo.caller, company.ceo.id, "Another aim")
    letter, run = wished(company, company.ceo)
    both = work(company, run.caller, company.ceo.id, "For both", parents=[other])
    below = work(company, run.caller, both, "Below both")
    gone = work(company, run.caller, company.ceo.id, "Only for it")
    shared = work(company, run.caller, gone, "Shared part", parents=[other])
    writer = hired(company, run.caller, "writer", purpose="Write well", perpetual=False)
    end(company, run)
    work(company, writer.caller, writer.id, "Its part")
    given(company, company.ceo.caller, work(company, company.ceo.caller, other, "More"), writer)
    done = take_back(company, letter)
    assert [one["title"] for one in done["outcomes"]] == ["Only for it"]
    assert done["agents"] == []
    kept = {one["title"]: one["why"] for one in done["kept"]}
    assert kept["For both"] == "it is also part of 'Another aim'"
    assert kept["Write well"] == "writer also works on 'More'"
    assert {titles(company)[one] for one in ("For both", "Below both", "Shared part")} == {"open"}
    assert {below, shared} <= {one["id"] for one in done["kept"]}


@pytest.mark.requirement("FX-51")
def test_another_letter_is_another_reason(company: Company) -> None:
    first, run = wished(company, company.ceo, "One")
    made = work(company, run.caller, company.ceo.id, "Build")
    end(company, run)
    _, run = wished(company, company.ceo, "Two")
    work(company, run.caller, made, "Asked for later")
    end(company, run)
    done = take_back(company, first)
    assert [one["title"] for one in done["outcomes"]] == ["Build"]
    assert [one["why"] for one in done["kept"]] == ["another letter led to it"]
    assert titles(company)["Asked for later"] == "open"


@pytest.mark.requirement("FX-51")
def test_a_run_that_is_about_more_goes_on_and_is_told(company: Company) -> None:
    first = send(company, company.board, "agent:ceo", "One")
    second = send(company, company.board, "agent:ceo", "Two")
    run = company.run(company.ceo)
    take(company, run)
    done = take_back(company, first)
    assert done["runs"] == []
    assert [one["id"] for one in done["letters"]] == [first["id"]]
    assert [one["subject"] for one in take(company, run)] == ["", "Taken back: One"]
    end(company, run, final_response="Both are done.")
    answers = [one["reply_to"] for one in unread(company, company.board)]
    assert answers == [second["id"]]


@pytest.mark.requirement("FX-51")
def test_only_its_sender_and_who_is_over_it_take_it_back(company: Company) -> None:
    dev = company.agent("dev")
    company.agent("other")
    ann = company.user("ann", scope="dev")
    bob = company.user("bob", scope="other")
    letter = send(company, ann, "agent:dev", "Hello")
    about: Any = {"message": letter["id"]}
    for caller in (dev.caller, company.ceo.caller, bob):
        for verb in (wish_withdrawal.cancel, wish_withdrawal.preview_cancel):
            assert refusal(company, caller, verb, **about) == "not_found"
    take_back(company, letter, ann)
    take_back(company, send(company, ann, "agent:dev", "Hello"))


@pytest.mark.requirement("FX-51")
def test_a_letter_for_later_is_taken_back_too(company: Company, clock: VirtualClock) -> None:
    at = "2099-01-01T00:00:00Z"
    letter = send(company, company.board, "agent:ceo", "Later", deliver_at=at)
    assert [one["id"] for one in take_back(company, letter)["letters"]] == [letter["id"]]
