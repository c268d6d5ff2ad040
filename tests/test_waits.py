"""An agent that raised something waits, and goes on when it is decided."""

from typing import Any

import pytest

from remit.clock import DAY, HOUR, moment
from remit.model.work.wait import REMINDERS_TO_AGENT
from remit.services.identity import as_system
from remit.services.messaging import escalation, pending_items, questions
from remit.services.organisation import agents, halts, idleness, reorganise
from remit.services.people import companies
from remit.services.rights import capability_requests, grants
from remit.services.screens import agent_page, needs_you
from remit.services.work import delegation, outcomes, submitting
from remit.testing.clock import VirtualClock
from tests.budgeting import set_budget, work_off
from tests.company import Answer, Company, Member, Run
from tests.governance import approve, ask, hire, reject, resubmit, send_back
from tests.mailing import look, messaging, refused, send, take
from tests.organisation import hire as hire_for
from tests.organisation import refusal, work
from tests.working import claim, end, ignored, ready, why_idle


def begun(
    company: Company, name: str = "dev", boss: str = "ceo", **more: Any
) -> tuple[Member, Run]:
    """An agent in its first run, with a mandate to accomplish."""
    made = company.agent(name, boss, adapter_type="scripted", **more)
    return made, claim(company, made)


def waits(company: Company) -> int:
    """Rows that say that somebody waits, and counters that say so: they agree."""
    (rows,) = company.sql("SELECT count(*) FROM wait_outcomes")[0]
    (counted,) = company.sql("SELECT coalesce(sum(open_waits), 0) FROM outcomes")[0]
    assert rows == counted
    return int(rows)


def needs(company: Company, kind: str) -> list[Answer]:
    found = company.call(company.board, needs_you.listing, company=company.id)
    return [item for item in found if item["kind"] == kind]


# ── what is raised ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-01", "AG-64", "HB-29", "AG-77")
def test_who_asked_waits_until_it_is_answered_however_long_that_takes(
    company: Company, clock: VirtualClock
) -> None:
    dev, run = begun(company)
    asked = company.call(run.caller, questions.ask, question="Which colour?", to="board")
    end(company, run)
    said = company.call(company.board, idleness.why_idle, agent="dev")
    assert said["reason"] == "waiting"
    assert "the board to answer a question" in said["sentence"]
    clock.advance(3 * HOUR)
    assert dev.id not in ready(company)
    company.call(company.board, questions.answer, question=asked["id"], answer="Blue")
    assert dev.id in ready(company)
    assert waits(company) == 0


@pytest.mark.requirement("FX-01")
def test_what_was_cancelled_ends_the_wait_too(company: Company) -> None:
    dev, run = begun(company)
    asked = company.call(run.caller, questions.ask, question="Which colour?", to="board")
    end(company, run)
    company.call(company.board, pending_items.cancel_question, question=asked["id"])
    assert waits(company) == 0
    assert dev.id in ready(company)


@pytest.mark.requirement("FX-01", "BX-10")
@pytest.mark.parametrize("decide", ["approve", "reject", "revision"])
def test_a_decision_or_a_wish_for_a_revision_ends_the_wait_for_an_approval(
    company: Company, decide: str
) -> None:
    dev, run = begun(company)
    asked = ask(company, run.caller)
    end(company, run)
    assert why_idle(company, dev) == "waiting"
    assert waits(company) == 1
    if decide == "approve":
        approve(company, asked)
    elif decide == "reject":
        reject(company, asked)
    else:
        send_back(company, asked, "Say why.")
    assert waits(company) == 0
    assert dev.id in ready(company)
    if decide == "revision":
        run = claim(company, dev)
        take(company, run)
        resubmit(company, run.caller, asked, title="May I, because?")
        end(company, run)
        assert why_idle(company, dev) == "waiting"


@pytest.mark.requirement("FX-01")
def test_what_is_named_waits_and_what_is_not_goes_on(company: Company) -> None:
    dev, run = begun(company)
    one, other = (
        company.call(run.caller, outcomes.create, parent=dev.id, title=title)["id"]
        for title in ("one", "other")
    )
    company.call(run.caller, questions.ask, question="How?", to="board", outcome=one)
    shown = company.call(company.board, outcomes.show, outcome=one)
    assert [(wait["kind"], wait["for"]) for wait in shown["waits"]] == [("question", "the board")]
    assert company.call(company.board, outcomes.show, outcome=other)["waits"] == []
    foreign = company.call(company.board, outcomes.create, parent=company.ceo.id, title="not its")
    ask = {"question": "How?", "to": "board"}
    assert refusal(company, run.caller, questions.ask, outcome=foreign["id"], **ask) in (
        "invalid",
        "not_found",
    )


@pytest.mark.requirement("FX-01")
def test_a_hire_for_one_outcome_holds_up_no_other(company: Company) -> None:
    changed: Any = {"require_board_approval_for_new_agents": True}
    company.call(company.board, companies.change, company=company.id, **changed)
    run = company.run(company.ceo)
    one, other = (
        company.call(run.caller, outcomes.create, parent=run.agent_id, title=title)["id"]
        for title in ("one", "other")
    )
    hire(company, run.caller, "helper", outcome=one)
    listed = company.call(run.caller, outcomes.listing)
    stands = {each["id"]: (each["actionable"], each["waiting"]) for each in listed}
    assert stands[one] == (False, True)
    assert stands[other] == (True, False)


@pytest.mark.requirement("FX-01")
def test_a_message_that_expects_a_reply_waits_for_it(company: Company) -> None:
    lead = company.agent("lead", adapter_type="scripted", perpetual=True)
    dev, run = begun(company, boss="lead")
    send(company, run.caller, "agent:lead", "May I?", expects_reply=True)
    end(company, run)
    said = company.call(company.board, idleness.why_idle, agent="dev")
    assert (said["reason"], "lead to reply" in said["sentence"]) == ("waiting", True)
    answering = claim(company, lead)
    (letter,) = take(company, answering)
    send(company, answering.caller, "agent:dev", "Yes.", reply_to=letter["id"])
    end(company, answering)
    assert waits(company) == 0
    assert dev.id in ready(company)


@pytest.mark.requirement("FX-01")
def test_nobody_waits_for_somebody_who_is_gone(company: Company) -> None:
    lead = company.agent("lead", adapter_type="scripted", perpetual=True)
    dev, run = begun(company, boss="lead")
    send(company, run.caller, "agent:lead", "May I?", expects_reply=True)
    end(company, run)
    assert waits(company) == 1
    company.sql("UPDATE deliveries SET attempt = 3 WHERE agent_id = ?", lead.id)
    reading = claim(company, lead)
    take(company, reading)
    end(company, reading, "failed", fault="message", error="it broke")
    assert waits(company) == 0
    assert dev.id in ready(company)
    (told,) = look(company, dev)
    assert told["subject"] == "Awaited no longer: a message"
    assert "Nobody will reply to your message" in told["body"]
    # Nor for somebody who has left.
    other = company.agent("other", adapter_type="scripted", perpetual=True)
    messaging(company, "open")
    run = claim(company, dev)
    take(company, run)
    send(company, run.caller, "agent:other", "May I?", expects_reply=True)
    end(company, run)
    company.call(company.board, agents.terminate, agent=other.id)
    assert waits(company) == 0
    (told,) = look(company, dev)
    assert "other works here no more" in told["body"]


@pytest.mark.requirement("FX-01", "AG-48")
@pytest.mark.parametrize("how", ["granted", "refused", "met in another way"])
def test_a_request_for_a_capability_ends_granted_refused_or_met(company: Company, how: str) -> None:
    lead = company.agent("lead", adapter_type="scripted", perpetual=True)
    dev, run = begun(company, boss="lead")
    file = company.file(company.board, b"x", "a file")["id"]
    wish = {"resource": f"kb_file:{file}", "level": "read", "why": "I need it."}
    asked = company.call(run.caller, capability_requests.request_capability, **wish)
    end(company, run)
    assert why_idle(company, dev) == "waiting"
    if how == "granted":
        company.call(company.board, capability_requests.grant_request, request=asked["id"])
    elif how == "refused":
        company.call(
            lead.caller, capability_requests.refuse_request, request=asked["id"], why="Not yours."
        )
        assert any("Not yours." in one["body"] for one in look(company, dev))
        assert (
            refusal(company, company.board, capability_requests.grant_request, request=asked["id"])
            == "conflict"
        )
    else:
        company.call(
            company.board,
            grants.give,
            company=company.id,
            to=dev.id,
            resource=f"kb_file:{file}",
            level="write",
        )
        (told,) = look(company, dev)
        assert told["body"].startswith(f"You hold read on kb_file:{file} now")
    assert waits(company) == 0
    assert dev.id in ready(company)


@pytest.mark.requirement("FX-01")
def test_what_goes_to_somebody_else_waits_for_nothing(company: Company) -> None:
    lead = company.agent("lead", adapter_type="scripted", perpetual=True)
    part = work(company, lead.caller, lead.id)
    dev = hire_for(company, lead.caller, part, "dev")
    run = claim(company, dev)
    company.call(run.caller, questions.ask, question="How?", to="board")
    end(company, run)
    assert waits(company) == 1
    company.call(lead.caller, delegation.reclaim, outcome=part, reason="I do it myself.")
    assert waits(company) == 0


# ── handing in ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-02", "AG-110", "AG-112")
def test_who_handed_in_waits_for_the_verdict_and_a_person_finds_it_in_their_list(
    company: Company, clock: VirtualClock
) -> None:
    boss = company.agent("solo", None, adapter_type="scripted")
    run = claim(company, boss)
    file = company.file(run.caller, b"The page.", "the page")["id"]
    handed_in = company.call(
        run.caller, submitting.submit, outcome=boss.id, evidence=[file], note="It is written."
    )
    assert handed_in["submissions"][0]["status"] == "open"
    end(company, run)
    assert why_idle(company, boss) == "waiting"
    (item,) = needs(company, "submission")
    assert (item["id"], item["agent_id"]) == (boss.id, boss.id)
    assert item["cause"] == "It was handed in and waits for the verdict."
    assert item["next"] == f"remit outcome accept {boss.id}, or return {boss.id} …"
    clock.advance(3 * HOUR)
    assert boss.id not in ready(company)
    company.call(company.board, submitting.send_back, outcome=boss.id, note="Add a title.")
    assert needs(company, "submission") == []
    assert boss.id in ready(company)
    run = claim(company, boss)
    assert any("Add a title." in letter["body"] for letter in take(company, run))
    company.call(run.caller, submitting.submit, outcome=boss.id, evidence=[file])
    end(company, run)
    other_root = company.agent("second", None, adapter_type="scripted")
    assert other_root.id
    done = company.call(company.board, outcomes.complete, outcome=boss.id)
    assert [one["name"] for one in done["agents_ended"]] == ["solo"]
    assert [one["id"] for one in done["verdict"]["evidence"]] == [file]
    assert waits(company) == 0


@pytest.mark.requirement("FX-02", "AG-110", "AG-112")
def test_an_agent_that_judges_is_started_for_it_and_its_boss_hears_of_the_fifth_return(
    company: Company,
) -> None:
    lead = company.agent("lead", adapter_type="scripted", perpetual=True)
    dev, run = begun(company, boss="lead")
    for _ in range(5):
        company.call(run.caller, submitting.submit, outcome=dev.id, note="Done.")
        end(company, run)
        judging = claim(company, lead)
        assert any(one["subject"].startswith("To judge") for one in take(company, judging))
        company.call(judging.caller, submitting.send_back, outcome=dev.id, note="Not yet.")
        end(company, judging)
        run = claim(company, dev)
        take(company, run)
    assert [one["subject"] for one in look(company, company.ceo)] == [
        "Sent back 5 times: What dev is for"
    ]


@pytest.mark.requirement("FX-02")
def test_what_cannot_be_handed_in_says_why(company: Company) -> None:
    dev, run = begun(company)
    part = company.call(run.caller, outcomes.create, parent=dev.id, title="a part")["id"]
    post = company.agent("post", adapter_type="scripted", perpetual=True)

    def refused(caller: Any, outcome: str) -> str:
        return refusal(company, caller, submitting.submit, outcome=outcome)

    assert refused(run.caller, dev.id) == "conflict"  # a part is open
    assert refused(run.caller, part) == "yours_to_judge"
    assert refused(post.caller, post.id) == "conflict"  # perpetual
    assert refused(company.ceo.caller, dev.id) == "delegated_away"
    assert refused(post.caller, dev.id) == "not_found"
    company.call(run.caller, outcomes.complete, outcome=part)
    company.call(run.caller, submitting.submit, outcome=dev.id)
    assert refused(run.caller, dev.id) == "submitted"
    about: Any = {"question": "Why?", "outcome": part}
    assert refusal(company, run.caller, questions.ask, **about) == "invalid"  # it is completed
    assert refusal(company, run.caller, submitting.send_back, outcome=dev.id, note="x") == (
        "own_mandate"
    )
    assert refusal(company, company.board, submitting.send_back, outcome=part, note="x") == (
        "not_submitted"
    )


# ── who is awaited ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-01")
@pytest.mark.parametrize("answers", ["its boss", "the next above", "the board"])
def test_a_question_that_a_boss_does_not_answer_is_the_next_above_s_and_at_last_the_board_s(
    company: Company, clock: VirtualClock, answers: str
) -> None:
    lead = company.agent("lead", adapter_type="scripted", perpetual=True)
    dev, run = begun(company, boss="lead")
    asked = company.call(run.caller, questions.ask, question="Which colour?", options=["red"])
    end(company, run)
    above = company.ceo.caller
    answer = {"question": asked["id"], "answer": "red"}
    assert refusal(company, above, questions.answer, **answer) == "not_found"
    ignored(company, clock, lead, "a question of dev")
    assert needs(company, "question") == []
    assert idleness_sentence(company, dev).startswith("It waits for ceo to answer a question")
    (letter,) = look(company, company.ceo)
    assert letter["question_id"] == asked["id"]
    assert "lead was reminded of it and did not decide" in letter["body"]
    assert "Which colour?" in letter["body"]
    if answers == "its boss":  # late, and still welcome
        company.call(lead.caller, questions.answer, **answer)
    elif answers == "the next above":
        # It could not write there otherwise; what is no answer does not end the question either.
        assert refused(company, above, "agent:dev") == "not_in_reach"
        send(company, above, "agent:dev", "Blue?", reply_to=letter["id"])
        assert waits(company) == 1
        send(company, above, "agent:dev", "Red", reply_to=letter["id"])
        assert refused(company, above, "agent:dev", reply_to=letter["id"]) == "not_in_reach"
    else:
        ignored(company, clock, company.ceo, "a question of dev")
        (item,) = needs(company, "question")
        assert item["id"] == asked["id"]
        assert refusal(company, above, questions.answer, **answer) == "not_found"
        company.call(company.board, questions.answer, **answer)
    assert dev.id in ready(company)
    assert waits(company) == 0
    assert look(company, company.ceo) == look(company, lead) == []
    assert needs(company, "question") == []


@pytest.mark.requirement("FX-01")
def test_a_reply_to_a_reminder_of_a_question_answers_it(
    company: Company, clock: VirtualClock
) -> None:
    dev, run = begun(company)
    company.call(run.caller, questions.ask, question="Which colour?")
    clock.advance(REMINDERS_TO_AGENT[0])
    company.call(as_system(), escalation.remind, company=company.id)
    asked, reminder = look(company, company.ceo)
    send(company, company.ceo.caller, "agent:dev", "Red", reply_to=reminder["id"])
    assert waits(company) == 0
    assert look(company, company.ceo) == []
    assert [letter["body"] for letter in look(company, dev)] == ["Red"]
    assert asked["question_id"] == reminder["question_id"]


@pytest.mark.requirement("FX-01")
def test_a_seat_is_reminded_once_and_a_day_later_the_next_above_is_asked(
    company: Company, clock: VirtualClock
) -> None:
    seat = company.agent("seat", adapter_type="human", perpetual=True)
    _, run = begun(company, boss="seat")
    company.call(run.caller, questions.ask, question="Which colour?")
    end(company, run)
    for letters in (2, 0):
        clock.advance(DAY)
        company.call(as_system(), escalation.remind, company=company.id)
        assert len(look(company, seat)) == letters
    (letter,) = look(company, company.ceo)
    assert "seat was reminded of it and did not decide" in letter["body"]


@pytest.mark.requirement("FX-01", "FX-02")
def test_what_was_raised_with_a_boss_goes_along_to_the_next_boss(company: Company) -> None:
    old = company.agent("old", adapter_type="scripted", perpetual=True)
    new = company.agent("new", adapter_type="scripted", perpetual=True)
    dev, run = begun(company, boss="old")
    asked = company.call(run.caller, questions.ask, question="Which colour?")
    wanted = {"resource": "repo:site", "level": "use", "why": "I need it."}
    request = company.call(run.caller, capability_requests.request_capability, **wanted)
    company.call(run.caller, submitting.submit, outcome=dev.id, note="Done")
    end(company, run)
    company.call(
        company.board,
        reorganise.reorganise,
        company=company.id,
        operations=[{"op": "move", "agent": "dev", "to": "new"}],
    )
    assert idleness_sentence(company, dev).startswith("It waits for new to answer a question")
    subjects = [letter["subject"] for letter in look(company, new)]
    assert sorted(subjects) == [
        "Question: Which colour?",
        "Request: read on repo:site",
        "Still awaited: a request for a capability of dev",
        "Still awaited: a submission of dev",
    ]
    company.call(new.caller, questions.answer, question=asked["id"], answer="Red")
    company.call(
        new.caller, capability_requests.refuse_request, request=request["id"], why="No need."
    )
    company.call(new.caller, submitting.send_back, outcome=dev.id, note="Not yet")
    assert waits(company) == 0
    left = [letter["subject"] for letter in look(company, old)]
    assert "Question: Which colour?" not in left


@pytest.mark.requirement("FX-01", "FX-02")
@pytest.mark.parametrize("decides", [True, False])
def test_what_a_boss_does_not_judge_is_its_boss_s_to_judge_and_at_last_the_board_s(
    company: Company, clock: VirtualClock, decides: bool
) -> None:
    lead = company.agent("lead", adapter_type="scripted", perpetual=True)
    dev, run = begun(company, boss="lead")
    company.call(run.caller, submitting.submit, outcome=dev.id, note="Done")
    end(company, run)
    ignored(company, clock, lead, "a submission of dev")
    assert needs(company, "submission") == []
    assert idleness_sentence(company, dev).startswith("It waits for ceo to judge")
    (letter,) = take(company, above := claim(company, company.ceo))
    assert f"outcome:{dev.id}" in letter["body"]
    assert refusal(company, above.caller, outcomes.change, outcome=dev.id, version=1) == (
        "delegated_away"
    )
    if decides:
        company.call(above.caller, outcomes.complete, outcome=dev.id, note="Good")
        assert waits(company) == 0
        return
    end(company, above)
    ignored(company, clock, company.ceo, "a submission of dev", read=True)
    assert len(needs(company, "submission")) == 1
    company.call(company.board, submitting.send_back, outcome=dev.id, note="Not yet")
    assert dev.id in ready(company)
    assert waits(company) == 0


def idleness_sentence(company: Company, member: Member) -> str:
    return str(company.call(company.board, idleness.why_idle, agent=member.id)["sentence"])


@pytest.mark.requirement("FX-01")
def test_two_that_wait_for_each_other_are_told_and_so_is_their_boss(company: Company) -> None:
    messaging(company, "team")
    one, one_run = begun(company, "one")
    other, other_run = begun(company, "other")
    first = send(company, one_run.caller, "agent:other", "Who begins?", expects_reply=True)
    assert "cycle" not in first
    second = send(company, other_run.caller, "agent:one", "You begin.", expects_reply=True)
    assert sorted(second["cycle"]["agents"]) == ["one", "other"]
    assert [letter["subject"] for letter in look(company, company.ceo)] == [
        "Agents wait for each other"
    ]
    assert why_idle(company, one) == why_idle(company, other) == "running"


@pytest.mark.requirement("FX-01")
def test_a_prerequisite_that_closes_a_circle_of_waits_is_told(company: Company) -> None:
    messaging(company, "team")
    one, one_run = begun(company, "one")
    other, other_run = begun(company, "other")
    send(company, one_run.caller, "agent:other", "Who begins?", expects_reply=True)
    changed = company.call(
        company.board, outcomes.change, outcome=other.id, version=1, blocked_by=[one.id]
    )
    assert sorted(changed["cycle"]["agents"]) == ["one", "other"]
    told = [letter["subject"] for letter in look(company, company.ceo)]
    assert told == ["Agents wait for each other"]
    end(company, other_run)


@pytest.mark.requirement("FX-05")
def test_who_writes_to_somebody_that_will_not_start_is_told_at_once(company: Company) -> None:
    dev = company.agent("dev", adapter_type="scripted")
    assert send(company, company.board, "agent:dev")["not_started"] is None
    company.call(company.board, agents.pause, agent="dev")
    said = send(company, company.board, "agent:dev")["not_started"]
    assert said.startswith("dev does not start for it now")
    assert "resume" in said
    assert send(company, company.ceo.caller, "agent:dev")["not_started"] == (
        "dev does not start for it now: paused"
    )
    assert dev.id not in ready(company)


@pytest.mark.requirement("FX-05")
def test_whatever_keeps_an_agent_is_told_to_who_writes_to_it(small: Company) -> None:
    claude: Any = {"adapter_type": "claude", "adapter_config": {"secretRef": "key"}}
    made = {
        name: small.agent(name, perpetual=True, **(claude if name == "held" else {}))
        for name in ("halted", "spent", "broken", "held", "often")
    }
    small.call(small.board, halts.stop, agent="halted")
    set_budget(small, made["spent"], tokens=1)
    work_off(small, made["spent"], tokens=2)
    small.sql("UPDATE agents SET status = 'error' WHERE name = 'broken'")
    send(small, small.board, "agent:held")
    run = claim(small, made["held"])
    end(small, run, "failed", fault="rate", error="The limit is reached.")
    for _ in range(2):
        send(small, small.board, "agent:often")
        end(small, claim(small, made["often"]))
    changed: Any = {"limits": {"agentRunsPerHour": 2}}
    small.call(small.board, companies.change, company=small.id, **changed)
    reasons = ("halted", "budget", "stopped", "held", "limit")
    for name, reason in zip(made, reasons, strict=True):
        said = send(small, small.ceo.caller, f"agent:{name}")["not_started"]
        assert said == f"{name} does not start for it now: {reason}"
        told = send(small, small.board, f"agent:{name}")["not_started"]
        assert told.startswith(f"{name} does not start for it now: ")
        assert told != said
    # To who is not there yet, or no more, nobody writes at all.
    changed = {"require_board_approval_for_new_agents": True}
    small.call(small.board, companies.change, company=small.id, **changed)
    asked = hire(small, small.ceo.caller, "limbo")["agent"]
    small.call(small.board, agents.terminate, agent="often")
    for gone in (asked["id"], made["often"].id):
        assert refused(small, small.board, f"agent:{gone}") == "conflict"


@pytest.mark.requirement("FX-01")
def test_who_is_awaited_is_named_to_the_end_of_the_chain(
    small: Company, clock: VirtualClock
) -> None:
    leading = begun(small, "lead")[1]
    dev, working = begun(small, boss="lead")
    small.call(working.caller, questions.ask, question="Which?", to="boss")
    since = moment(clock.now())
    end(small, working)
    clock.advance(HOUR)
    take(small, leading)
    small.call(leading.caller, questions.ask, question="What do you think?", to="board")
    end(small, leading)
    sentence = (
        f"It waits for lead to answer a question since {since}. "
        "lead waits for the board to answer a question."
    )
    assert small.call(small.board, idleness.why_idle, agent="dev")["sentence"] == sentence
    # The page has the same.
    page = small.call(small.board, agent_page.show, agent=dev.id)
    assert page["idle"] == {"reason": "waiting", "sentence": sentence}
