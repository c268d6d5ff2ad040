"""`remit send --wait`: it ends when the answer is there, whoever answers and in whatever way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from remit.clock import DAY, HOUR, MINUTE
from remit.entrypoints.cli import awaiting
from remit.entrypoints.cli.drawing import output
from remit.entrypoints.cli.session import Session
from remit.ids import short
from remit.services.messaging import questions, wish_withdrawal
from remit.services.organisation import agents
from remit.services.screens import needs_you
from remit.testing import AgentDied, Member, RunFailed, Simulation, Turn

pytestmark = pytest.mark.requirement("FX-62", "FX-07")
WISH = "What is 2+2?"


class Instance:
    """The connection of a command to a simulated instance, as the board."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim

    def get(self, target: str) -> Any:
        return self._answer("GET", target)

    def send(self, method: str, target: str, body: Any = None) -> Any:
        return self._answer(method, target, body={} if body is None else body)

    def _answer(self, method: str, target: str, **more: Any) -> Any:
        answer = self.sim.request(method, target, **more)
        assert answer.status < 400, answer.body
        return answer.json()


class Waiting:
    """A person who waits; what happens meanwhile happens between two looks."""

    def __init__(self, sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sim = sim
        self.session = Session()
        self.session.__dict__["client"] = Instance(sim)
        self.meanwhile: list[Callable[[], object]] = []
        self.looks = 0
        monkeypatch.setattr("remit.entrypoints.cli.awaiting.time.sleep", self._pause)

    def _pause(self, _: float) -> None:
        self.looks += 1
        assert self.looks < 50, "it does not end"
        if self.meanwhile:
            self.meanwhile.pop(0)()
        else:
            self.sim.run(patience=HOUR)
            self.sim.clock.advance(MINUTE)

    def letter(self, to: Member) -> str:
        return str(self.sim.send(to, WISH)["id"])

    def wait(self, letter: str, timeout: float | None = None) -> int:
        """Wait as the command does; returns its exit code."""
        try:
            awaiting.await_answer(self.session, letter, timeout)
        except awaiting.NoAnswer as error:
            output.error(error.sentence, error.step)
            return 1
        return 0


@pytest.fixture
def sim() -> Iterator[Simulation]:
    with Simulation() as simulated:
        yield simulated


@pytest.fixture
def waiting(sim: Simulation, monkeypatch: pytest.MonkeyPatch) -> Waiting:
    return Waiting(sim, monkeypatch)


def is_wish(turn: Turn) -> list[Any]:
    return [letter for letter in turn.mail if letter.sender.startswith("user:")]


def replies(turn: Turn) -> None:
    for letter in is_wish(turn):
        turn.reply(letter, "It is 4.")


def writes_without_replying(turn: Turn) -> None:
    for _ in is_wish(turn):
        turn.call("mail_send", to="board", body="It is 4.")


def says_it_in_its_last_words(turn: Turn) -> None:
    if is_wish(turn):
        turn.words = "It is 4."


def has_a_colleague_answer(turn: Turn) -> None:
    for _ in is_wish(turn):
        turn.send("agent:dev", "Tell the board what 2+2 is.")


def tells_the_board(turn: Turn) -> None:
    if turn.mail:
        turn.call("mail_send", to="board", body="It is 4.")


def hands_in(turn: Turn) -> None:
    for outcome in turn.call("outcome_list", status="open")["outcomes"]:
        if outcome["title"] == WISH:
            turn.call("outcome_submit", id=outcome["id"], note="It is 4.")


@pytest.mark.parametrize("way", [replies, writes_without_replying, says_it_in_its_last_words])
def test_it_ends_with_the_answer_of_the_reader(
    sim: Simulation,
    waiting: Waiting,
    way: Callable[[Turn], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    sim.root.script = way
    assert waiting.wait(waiting.letter(sim.root)) == 0
    shown = capsys.readouterr()
    assert "It is 4." in shown.out
    assert "error" not in shown.err


def test_it_ends_with_the_answer_of_a_colleague(
    sim: Simulation, waiting: Waiting, capsys: pytest.CaptureFixture[str]
) -> None:
    sim.root.script = has_a_colleague_answer
    sim.agent("dev", tells_the_board)
    assert waiting.wait(waiting.letter(sim.root)) == 0
    assert "It is 4." in capsys.readouterr().out


def test_it_ends_when_the_work_is_handed_in_and_nobody_writes(
    sim: Simulation, waiting: Waiting, capsys: pytest.CaptureFixture[str]
) -> None:
    """Remit writes then."""

    def delegates(turn: Turn) -> None:
        for _ in is_wish(turn):
            made = turn.call("outcome_create", parent_id=turn.agent.id, title=WISH)
            turn.call("delegate", outcome_id=made["id"], to="agent:dev")
            handed.append(made["id"])
        if turn.agent.turns > 1:  # it was handed in
            turn.call("outcome_complete", id=handed[0])

    handed: list[str] = []
    sim.root.script = delegates
    sim.agent("dev", hands_in)
    assert waiting.wait(waiting.letter(sim.root)) == 0
    shown = capsys.readouterr()
    assert WISH in shown.out
    assert len(handed) == 1


def test_a_question_back_is_an_answer(
    sim: Simulation, waiting: Waiting, capsys: pytest.CaptureFixture[str]
) -> None:
    def asks_back(turn: Turn) -> None:
        for letter in is_wish(turn):
            turn.call(
                "mail_send",
                to=letter.sender,
                body="In which base?",
                reply_to=letter.id,
                expects_reply=True,
            )

    sim.root.script = asks_back
    assert waiting.wait(waiting.letter(sim.root)) == 0
    assert "In which base?" in capsys.readouterr().out


def test_it_says_what_it_waits_for_and_ends_with_the_answer_after_that(
    sim: Simulation, waiting: Waiting, capsys: pytest.CaptureFixture[str]
) -> None:
    def asks_first(turn: Turn) -> None:
        if turn.agent.turns > 1:
            turn.call("mail_send", to="board", body="It is 11.")
        elif is_wish(turn):
            turn.call("ask", question="Which base?", to="board")

    def answer() -> None:
        (row,) = [one for one in sim.ask(needs_you.listing) if one["kind"] == "question"]
        sim.do(questions.answer, question=row["id"], answer="Three")

    sim.root.script = asks_first
    letter = waiting.letter(sim.root)
    waiting.meanwhile = [lambda: sim.turn(sim.root.id), lambda: None, answer]
    assert waiting.wait(letter) == 0
    shown = capsys.readouterr()
    assert "ceo waits for an answer: remit question answer" in shown.err
    assert "It is 11." in shown.out


def test_a_time_out_leaves_the_letter_where_it_is(
    sim: Simulation, waiting: Waiting, capsys: pytest.CaptureFixture[str]
) -> None:
    letter = waiting.letter(sim.root)
    assert waiting.wait(letter, timeout=-1.0) == 1
    shown = capsys.readouterr()
    assert "There is no answer yet. ceo has not read it yet" in shown.err
    assert f"`remit cancel {short(letter)}" in shown.err
    assert shown.out == ""
    sim.root.script = replies
    assert waiting.wait(letter) == 0


def dies(_: Turn) -> None:
    raise AgentDied("out of memory")


def test_a_letter_that_is_taken_back_ends_it_without_an_answer(
    sim: Simulation, waiting: Waiting, capsys: pytest.CaptureFixture[str]
) -> None:
    letter = waiting.letter(sim.root)
    waiting.meanwhile = [lambda: sim.do(wish_withdrawal.cancel, message=letter)]
    assert waiting.wait(letter) == 1
    shown = capsys.readouterr().err
    assert "There is no answer yet" not in shown
    assert f"See `remit read {short(letter)}" in shown
    assert "taken back" in shown or "Dismissed" in shown


def test_a_letter_that_breaks_its_reader_ends_it_without_an_answer(
    sim: Simulation, waiting: Waiting, capsys: pytest.CaptureFixture[str]
) -> None:
    def blames(turn: Turn) -> None:
        if turn.mail:
            raise RunFailed("It cannot be read.", fault="message")

    sim.root.script = blames
    letter = waiting.letter(sim.root)
    waiting.meanwhile = [lambda: sim.run(patience=DAY)]
    assert waiting.wait(letter) == 1
    assert "ceo could not handle it: it could not be read" in capsys.readouterr().err


def test_an_agent_that_is_gone_ends_it_without_an_answer(
    sim: Simulation, waiting: Waiting, capsys: pytest.CaptureFixture[str]
) -> None:
    dev = sim.agent("dev", dies)
    letter = waiting.letter(dev)
    waiting.meanwhile = [lambda: sim.do(agents.terminate, agent=dev.id)]
    assert waiting.wait(letter) == 1
    assert "error: " in capsys.readouterr().err


def test_as_json_the_answers_come_with_the_state(
    sim: Simulation, waiting: Waiting, capsys: pytest.CaptureFixture[str]
) -> None:
    sim.root.script = replies
    waiting.session.as_json = True
    assert waiting.wait(waiting.letter(sim.root)) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["trace"]["state"] == "answered"
    assert [reply["body"] for reply in answer["replies"]] == ["It is 4."]
