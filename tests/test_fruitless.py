"""Agents that work in circles: they are slowed down by what they achieve, and people are told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from remit.clock import DAY, HOUR, MINUTE, SECOND, to_iso
from remit.services.execution import fruitless, runs
from remit.services.messaging import threads
from remit.services.organisation import agents
from remit.services.screens import needs_you
from remit.services.work import delegation, outcomes
from remit.testing import (
    AgentDied,
    Broken,
    Member,
    RunFailed,
    Simulation,
    ToolRefused,
    Turn,
    check,
)
from remit.testing.invariants import check_requests

TOO_MANY = {"exit_reason": "max_turns", "fault": "turns"}
WISH = "Look something up."
TURNS = 100


def cut() -> RunFailed:
    return RunFailed(f"It took {TURNS} turns.", **TOO_MANY)


def reads_what_is_not_there(turn: Turn) -> None:
    """Another failing call each turn."""
    for number in range(TURNS // 10):
        with contextlib.suppress(ToolRefused):
            turn.call("kb_read", id=f"00000000-0000-0000-0000-{number:012}")
    raise cut()


def reads_without_end(turn: Turn) -> None:
    """Calls that succeed and change nothing, and mail that is acknowledged."""
    for _ in range(TURNS // 10):
        turn.call("outcome_list", status="open")
    turn.call("log_submit", summary="I look on.")
    raise cut()


def writes_its_own_memory(turn: Turn) -> None:
    turn.send(turn.agent, "Do not forget.")
    raise cut()


LOOPS: dict[str, Callable[[Turn], None]] = {
    "refused": reads_what_is_not_there,
    "useless": reads_without_end,
    "for itself": writes_its_own_memory,
}


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with Simulation() as simulated:
        yield simulated


def rows(sim: Simulation) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sim.ask(needs_you.listing)
    return [row for row in found if row["kind"] != "unanswered"]


def state(sim: Simulation, letter: dict[str, Any]) -> tuple[str, str]:
    sent = sim.ask(threads.listing, company=sim.company, sent=True)
    (found,) = [one for one in sent if one["id"] == letter["id"]]
    return found["state"], found["sentence"]


def by_letter(sim: Simulation, agent: Member) -> None:
    sim.send(agent, WISH)


def by_outcome(sim: Simulation, agent: Member) -> None:
    made = sim.do(outcomes.create, company=sim.company, parent=sim.root.id, title=WISH)
    sim.do(delegation.delegate, outcome=made["id"], to=agent.address)


@pytest.mark.requirement("FX-64")
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("begins", [by_letter, by_outcome])
def test_a_looping_agent_is_stopped_within_two_runs(
    sim: Simulation, loop: str, begins: Callable[[Simulation, Member], None]
) -> None:
    dev = sim.agent("dev", LOOPS[loop])
    begins(sim, dev)
    sim.run(patience=5 * MINUTE)
    assert dev.turns == 2
    sim.run(patience=10 * MINUTE)
    assert dev.turns == 3
    turns = dev.turns
    sim.run(patience=4 * HOUR)
    assert dev.turns - turns <= 5


@pytest.mark.requirement("FX-64")
def test_one_row_says_what_it_does_and_how_to_end_it(sim: Simulation) -> None:
    sim.root.script = reads_what_is_not_there
    letter = sim.send(sim.root, WISH)
    sim.run(patience=5 * MINUTE)
    (row,) = rows(sim)
    assert row["kind"] == "runaway"
    assert row["title"] == (
        f"{sim.root.name} gets nothing done: 2 runs in a row were ended. It took 100 turns"
    )
    assert row["next"] == f"remit run tail {row['id']}, then remit cancel {letter['id']}"
    # Its boss wished for it, and is written to once.
    (told,) = sim.mail()
    assert told.subject == f"{sim.root.name} gets nothing done"
    assert row["next"] in told.body
    sim.run(patience=4 * HOUR)
    assert len(sim.mail()) == len(rows(sim)) == 1


@pytest.mark.requirement("FX-64")
def test_whoever_wished_is_told_once_that_it_could_not_be_done(sim: Simulation) -> None:
    dev = sim.agent("dev", reads_what_is_not_there)
    letter = sim.send(dev, WISH, subject="A look")
    assert state(sim, letter)[0] == "queued"
    sim.turn(dev.id)
    word, sentence = state(sim, letter)
    assert word == "failing"
    assert sentence.startswith("dev read it once and could not do it so far: It took 100 turns.")
    sim.run(patience=4 * HOUR)
    (told,) = sim.mail()
    assert told.subject == "dev could not do it: A look"
    assert f"remit cancel {letter['id']}" in told.body
    # The boss, an agent, is told, too.
    (to_boss,) = [one for one in sim.mail(sim.root) if "dev" in one.subject]
    assert to_boss.subject == "dev gets nothing done"
    assert "remit " not in to_boss.body


@pytest.mark.requirement("FX-62")
def test_a_letter_that_failed_awaits_its_person_once_nobody_tries_it_any_more(
    sim: Simulation,
) -> None:
    dev = sim.agent("dev", reads_what_is_not_there)
    letter = sim.send(dev, WISH)
    sim.turn(dev.id)
    sim.do(agents.pause, agent=dev.id)
    sim.clock.advance(DAY)
    (row,) = [one for one in sim.ask(needs_you.listing) if one["kind"] == "unanswered"]
    assert row["id"] == letter["id"]
    assert "could not do it so far" in row["cause"]
    assert "It is paused" in row["cause"]
    # It is tried again, so it is left to the agent.
    sim.do(agents.resume, agent=dev.id)
    assert [one for one in sim.ask(needs_you.listing) if one["kind"] == "unanswered"] == []


@pytest.mark.requirement("FX-62")
def test_a_letter_that_waits_for_an_agent_who_never_answers_awaits_its_person(
    sim: Simulation,
) -> None:
    def asks_its_boss(turn: Turn) -> None:
        for letter in turn.mail:
            if letter.sender.startswith("user:"):
                turn.call("ask", question="Which colour?", to="boss")

    lead = sim.agent("lead", says_nothing)
    letter = sim.send(sim.agent("dev", asks_its_boss, boss=lead), WISH)
    sim.run(patience=MINUTE)
    assert state(sim, letter)[0] == "waiting"
    assert "dev waits for an answer from lead: remit question answer" in state(sim, letter)[1]
    assert sim.ask(needs_you.listing) == []
    sim.run(patience=2 * DAY)
    sim.clock.advance(DAY)
    (row,) = [one for one in sim.ask(needs_you.listing) if one["kind"] == "unanswered"]
    assert row["id"] == letter["id"]
    assert "dev waits for an answer from lead" in row["cause"]


@pytest.mark.requirement("FX-62")
def test_a_letter_that_waits_for_its_person_has_one_row(sim: Simulation) -> None:
    dev = sim.agent("dev", asks)
    sim.send(dev, WISH)
    sim.run(patience=2 * DAY)
    sim.clock.advance(DAY)
    kinds = [row["kind"] for row in sim.ask(needs_you.listing)]
    assert kinds.count("question") == 1
    assert "unanswered" not in kinds


@pytest.mark.requirement("FX-64")
def test_useful_work_that_is_cut_off_goes_on_at_once(sim: Simulation) -> None:
    """The control: what others can notice is progress, however often its runs are cut."""

    def works(turn: Turn) -> None:
        if turn.agent.turns < 10:
            turn.call("kb_create", description="A part", content=f"Part {turn.agent.turns}")
            raise cut()
        for letter in turn.mail:
            turn.reply(letter, "Done.")

    dev = sim.agent("dev", works)
    sim.send(dev, WISH)
    began = sim.clock.now()
    sim.run(patience=MINUTE)
    assert dev.turns == 10
    assert sim.clock.now() - began < MINUTE
    assert [letter.body for letter in sim.mail()] == ["Done."]


def changes_files(*digests: str | None) -> Callable[[Turn], None]:
    """Runs that a limit ends, each with the digest of the files that it changed."""

    def works(turn: Turn) -> None:
        number = turn.agent.turns - 1
        digest = digests[number] if number < len(digests) else None
        raise RunFailed("It took 100 turns.", **TOO_MANY, changed_files=digest)

    return works


def turns_at_once(sim: Simulation, script: Callable[[Turn], None]) -> int:
    dev = sim.agent("dev", script)
    sim.send(dev, WISH)
    sim.run(patience=MINUTE)
    return dev.turns


@pytest.mark.requirement("FX-64")
def test_a_run_that_changed_files_got_on_but_not_by_the_same_change_again(sim: Simulation) -> None:
    # The third and fourth achieve nothing, and are two in a row.
    assert turns_at_once(sim, changes_files("a", "b", "b", None, "c")) == 4


@pytest.mark.requirement("FX-64")
def test_changed_files_alone_carry_five_runs(sim: Simulation) -> None:
    """Then something of the work has to reach others: a loop may write files, too."""
    files = [f"digest {number}" for number in range(20)]
    assert turns_at_once(sim, changes_files(*files)) == fruitless.MOST_BY_FILES + 2
    (row,) = rows(sim)
    assert row["kind"] == "runaway"
    assert row["next"].startswith("remit run tail ")
    assert "limit" not in row["next"]


@pytest.mark.requirement("FX-64")
def test_an_effect_lets_changed_files_count_anew(sim: Simulation) -> None:
    def works(turn: Turn) -> None:
        if turn.agent.turns % fruitless.MOST_BY_FILES == 0:
            turn.call("kb_create", description="A part", content=f"Part {turn.agent.turns}")
        if turn.agent.turns < 4 * fruitless.MOST_BY_FILES:
            raise RunFailed("Cut.", **TOO_MANY, changed_files=f"digest {turn.agent.turns}")

    assert turns_at_once(sim, works) == 4 * fruitless.MOST_BY_FILES
    assert [letter.subject for letter in sim.mail() if "nothing done" in letter.subject] == []


@pytest.mark.requirement("FX-64")
def test_an_effect_ends_the_row_of_fruitless_runs(sim: Simulation) -> None:
    def works_now_and_then(turn: Turn) -> None:
        if turn.agent.turns % 2:
            turn.call("kb_create", description="A part", content=f"Part {turn.agent.turns}")
        raise cut()

    dev = sim.agent("dev", works_now_and_then)
    sim.send(dev, WISH)
    for _ in range(20):
        if not sim.step():
            sim.clock.advance(3 * SECOND)
    assert dev.turns >= 10
    assert sim.mail() == []


@pytest.mark.requirement("FX-64")
def test_a_letter_that_is_blamed_by_who_holds_none_is_the_agents_fault(sim: Simulation) -> None:
    def blames(turn: Turn) -> None:
        if turn.mail:
            turn.call("mail_ack", ids=[letter.id for letter in turn.mail])
        raise RunFailed("It cannot be read.", fault="message")

    dev = sim.agent("dev", blames)
    by_outcome(sim, dev)
    sim.run(patience=MINUTE)
    assert dev.turns <= 5
    found = sim.ask(runs.listing, company=sim.company, agent=dev.id)
    assert {run["fault"] for run in found} == {"agent"}


# ── letters to itself ───────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-64")
def test_an_agent_that_writes_to_itself_is_started_less_and_less(sim: Simulation) -> None:
    said: list[str | None] = []

    def writes_on(turn: Turn) -> None:
        said.append(turn.send(turn.agent, "Go on.")["not_started"])

    dev = sim.agent("dev", writes_on)
    letter = sim.send(dev, WISH)
    began = sim.clock.now()
    sim.run(patience=HOUR)
    assert sim.clock.now() - began <= HOUR
    assert dev.turns == 5  # at once, and after 30 s, 2, 10 and 30 minutes
    assert said[0] is not None
    assert said[0].startswith("your own letter reaches you at ")
    word, sentence = state(sim, letter)
    assert word == "in_work"
    assert sentence.startswith("dev gets a letter because of it at ")
    # Nothing comes of it for a day: whoever wished finds it in the list.
    sim.run(patience=2 * DAY)
    assert dev.turns <= 5 + 2 * 24
    (row,) = sim.ask(needs_you.listing)
    assert (row["kind"], row["id"]) == ("unanswered", letter["id"])
    assert "Nothing has happened to it since" in row["cause"]


@pytest.mark.requirement("FX-64")
def test_a_letter_to_itself_for_a_later_time_and_one_for_another_matter_keep_theirs(
    sim: Simulation,
) -> None:
    def reminds_itself(turn: Turn) -> None:
        for letter in turn.mail:
            if letter.sender.startswith("user:"):
                tomorrow = to_iso(sim.clock.now() + DAY)
                turn.call("mail_send", to=dev.address, body="Later.", deliver_at=tomorrow)
                turn.send(dev, "Soon.")
                turn.reply(letter, "Noted.")

    dev = sim.agent("dev", reminds_itself)
    for _ in range(3):
        sim.send(dev, WISH)
        sim.turn(dev.id)
    query = "SELECT deliver_at FROM deliveries WHERE status = 'deferred' ORDER BY deliver_at"
    found = sim.do_async(sim.app.database.read(lambda tx: tx.execute(query, {}).fetchall()))
    due = [row[0] - sim.clock.now() for row in found]
    assert due == [2 * MINUTE] * 3 + [DAY] * 3


# ── a week ──────────────────────────────────────────────────────────────────────────────────────


def answers(turn: Turn) -> None:
    for letter in turn.mail:
        if letter.sender.startswith("user:"):
            turn.reply(letter, "Done.")


def says_nothing(_: Turn) -> None:
    """Its mail counts as handled."""


def asks(turn: Turn) -> None:
    for letter in turn.mail:
        if letter.sender.startswith("user:"):
            turn.call("ask", question="Which colour?", to="board")


def writes_to_itself(turn: Turn) -> None:
    turn.send(turn.agent, "Go on.")


def begins_and_forgets(turn: Turn) -> None:
    if turn.mail:
        turn.call("outcome_create", parent_id=turn.agent.id, title=WISH)


def dies(_: Turn) -> None:
    raise AgentDied("out of memory")


def blames_its_mail(turn: Turn) -> None:
    raise RunFailed("It cannot be read.", fault="message")


HABITS = (
    *LOOPS.values(),
    *(answers, says_nothing, asks, writes_to_itself, begins_and_forgets, dies, blames_its_mail),
)


@pytest.mark.requirement("FX-62", "FX-64")
@pytest.mark.parametrize("seed", range(3))
def test_in_a_week_of_random_days_no_request_is_forgotten(seed: int) -> None:
    with Simulation(seed) as sim:
        staff = [sim.agent(f"dev-{number}", sim.chance.choice(HABITS)) for number in range(4)]
        for _ in range(5):
            for dev in staff:
                dev.script = sim.chance.choice(HABITS)
            for dev in sim.chance.sample(staff, 2):
                sim.send(dev, WISH)
            until = sim.clock.now() + DAY
            sim.run(patience=DAY)
            sim.clock.advance(max(0, until - sim.clock.now()))
        before = sum(dev.turns for dev in staff)
        sim.run(patience=2 * DAY)
        sim.clock.advance(DAY)
        check(sim)
        check_requests(sim)
        # Agents that get nothing done are tried about once an hour, and no more.
        assert sum(dev.turns for dev in staff) - before < 4 * 2 * 30


def test_a_forgotten_request_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(needs_you, "_unanswered", lambda *_: [])
    with Simulation() as sim:
        dev = sim.agent("dev", writes_to_itself)
        sim.send(dev, WISH)
        sim.run(patience=3 * DAY)
        with pytest.raises(Broken, match="every request ends, or awaits a person"):
            check_requests(sim)
