"""Simulated companies: the same seed gives the same story, and what breaks is found and told."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from remit.clock import HOUR, MINUTE
from remit.errors import BadInput
from remit.services.execution import run_endings
from remit.services.identity import Caller
from remit.services.messaging import inbox
from remit.services.organisation import idleness
from remit.services.organisation import reorganise as reorganising
from remit.services.screens import needs_you
from remit.store.engine.statement import change
from remit.testing import Broken, Crash, Moment, Simulation, ToolRefused, Turn, check
from remit.testing import scenario as scenarios
from remit.testing.campaign import Op, campaign, play, shrink, story
from remit.testing.invariants import check_quiet, check_record
from remit.testing.outside import PAGES, Outside
from remit.testing.real import real_stage
from remit.testing.simulation import AgentDied

EXAMPLES = Path(__file__).parent.parent / "examples"

MORE = pytest.mark.campaign("other seeds of the same kind; the campaign plays a thousand more")


@pytest.mark.requirement("AG-89")
def test_an_agent_is_tested_alone_by_sending_it_mail() -> None:
    def writer(turn: Turn) -> None:
        for letter in turn.mail:
            made = turn.call("kb_create", description="Answer", content=letter.body.upper())
            turn.call("outcome_create", parent_id=turn.agent.id, title=letter.body)
            turn.reply(letter, f"See {made['id']}")

    with Simulation(seed=7) as sim:
        ada = sim.agent("Ada", writer)
        sim.send(ada, "write a poem")
        sim.turn(ada.id)
        assert [one["title"] for one in sim.outcomes(owner=ada.id)][-1] == "write a poem"
        assert sim.mail()[-1].body.startswith("See ")
        assert sim.mail()[-1].sender == ada.address


@pytest.mark.requirement("AG-90")
def test_a_layer_is_put_in_and_taken_out_and_those_below_notice_nothing() -> None:
    seen: list[str] = []

    def worker(turn: Turn) -> None:
        seen.extend(letter.body for letter in turn.mail)
        for letter in turn.mail:
            turn.reply(letter, "Done.")

    with Simulation() as sim:
        workers = [sim.agent(f"W{number}", worker) for number in range(3)]

        def owned() -> list[list[str]]:
            """Work; the mail that comes is dealt with."""
            found = [sim.outcomes(owner=one.id) for one in workers]
            return [[one["id"] for one in own if one["title"] != "Process inbox"] for own in found]

        before = owned()
        done = sim.do(
            reorganising.reorganise,
            company=sim.company,
            operations=[
                {
                    "op": "insert_layer",
                    "boss": sim.root.id,
                    "name": "Lead",
                    "agents": [one.id for one in workers],
                    "adapter_type": "scripted",
                }
            ],
        )
        for one in workers:
            sim.send(one, "after")
        sim.run()
        assert seen.count("after") == 3
        assert done["event_id"]
        sim.do(reorganising.undo, company=sim.company, event=done["event_id"])
        after = owned()
        assert after == before
        check(sim)


def test_the_same_seed_gives_the_same_story() -> None:
    first, again = (play(11, story(11, 60)) for _ in range(2))
    assert first.broken is None
    assert first.story == again.story
    assert first.summary() == again.summary()
    assert play(12, story(12, 60)).story != first.story


@pytest.mark.requirement("BX-13", "BX-06")
@pytest.mark.parametrize(
    "seed", [*range(2), *(pytest.param(seed, marks=MORE) for seed in range(2, 20))]
)
def test_a_random_company_holds_through_crashes_repeats_and_clock_jumps(seed: int) -> None:
    out = play(seed, story(seed, 150))
    assert out.broken is None, str(out)
    assert out.turns > 20


@pytest.mark.requirement("BX-13")
def test_time_is_nothing_and_crashes_at_every_commit_lose_nothing() -> None:
    """Each commit of a small story is once the last of its process, before and after it."""

    def answer(turn: Turn) -> None:
        for letter in turn.mail:
            turn.reply(letter, "Yes.")

    for moment in Moment:
        for place in range(14):
            with Simulation(seed=place) as sim:
                ada = sim.agent("Ada", answer)
                sim.send(ada, "Now?")
                sim.send(ada, "Later?", deliver_at="2027-01-15T10:00:00Z")
                left = place

                def point(now: Moment, moment: Moment = moment) -> None:
                    nonlocal left
                    if now is moment:
                        left -= 1
                        if left == -1:
                            raise Crash(moment)

                with sim.crashing(point):
                    sim.run(patience=3 * HOUR)
                answered = [one.body for one in sim.mail() if one.sender == ada.address]
                # At least once: an answer that was sent before its run was lost is sent again.
                assert 2 <= len(answered) <= 3, (moment, place, sim.story)
                check(sim)
                check_quiet(sim)
                check_record(sim)


@pytest.mark.requirement("BX-13")
@pytest.mark.campaign("ten thousand deliveries take most of a minute")
def test_ten_thousand_deliveries_take_seconds() -> None:
    answered = []

    def answers(turn: Turn) -> None:
        for letter in turn.mail:
            turn.reply(letter, f"Done: {letter.body}")
            answered.append(letter.id)

    began = time.process_time()
    with Simulation() as sim:
        agents = [sim.agent(f"agent-{number}", answers) for number in range(20)]
        for round_ in range(25):
            for agent in agents:
                for number in range(10):
                    sim.send(agent, f"{round_}-{number}")
            sim.run()
            sim.clock.advance(5 * MINUTE)  # so many runs an hour are within the limits
        check(sim)
        check_quiet(sim)
    assert len(answered) == len(set(answered)) == 5_000  # there and back
    assert time.process_time() - began < 60  # of one core


def test_an_agent_that_dies_keeps_its_mail_and_reads_it_when_it_is_well_again() -> None:
    """What befalls everything that an agent reads is no fault of a letter: none is given up."""

    def dies(_: Turn) -> None:
        raise AgentDied("out of memory")

    def answers(turn: Turn) -> None:
        for letter in turn.mail:
            turn.reply(letter, f"Done: {letter.body}")

    with Simulation() as sim:
        ada = sim.agent("Ada", dies)
        sim.send(ada, "Try this")
        sim.run(patience=2 * HOUR)
        assert ada.turns > 3
        assert not [one for one in sim.mail() if one.sender == ada.address]
        check(sim)
        ada.script = answers
        sim.run(patience=24 * HOUR)
        (answer,) = [one.body for one in sim.mail() if one.sender == ada.address]
        assert answer == "Done: Try this"
        check(sim)
        check_quiet(sim)


def test_a_letter_that_kills_its_reader_is_given_up_when_others_are_read() -> None:
    """It fails alone, others are read, and it fails alone again: then a person decides on it."""
    read: list[str] = []

    def chokes(turn: Turn) -> None:
        if any(letter.body == "Try this" for letter in turn.mail):
            raise AgentDied("out of memory")
        read.extend(letter.body for letter in turn.mail)

    with Simulation() as sim:
        ada = sim.agent("Ada", chokes)
        sim.send(ada, "Try this")
        sim.run(patience=2 * HOUR)
        sim.send(ada, "Hello")
        sim.run(patience=24 * HOUR)
        assert read == ["Hello"]
        turns = ada.turns
        (given_up,) = [one for one in sim.ask(needs_you.listing) if one["kind"] == "dead_letter"]
        assert given_up["agent_id"] == ada.id
        sim.run(patience=24 * HOUR)
        assert ada.turns == turns
        check(sim)
        check_quiet(sim)


# ── what breaks is noticed ──────────────────────────────────────────────────────────────────────


def test_a_run_that_keeps_its_token_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    class KeepsTokens:
        #: Touches no row.
        REVOKE_RUN_TOKEN = change(text("UPDATE tokens SET revoked_at = :now WHERE :run IS NULL"))

    monkeypatch.setattr(run_endings, "people", KeepsTokens)
    with Simulation() as sim:
        ada = sim.agent("Ada")
        sim.send(ada, "Hello")
        sim.turn(ada.id)
        with pytest.raises(Broken, match="the token of a run dies with it"):
            check(sim)


def test_lost_mail_is_noticed_and_the_story_is_cut_down(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: Any = inbox.run_ended

    def forgets(ctx: Any, run: Any, agent: Any, *, fault: Any) -> None:
        if fault is None:
            kept(ctx, run, agent, fault=None)

    monkeypatch.setattr(inbox, "run_ended", forgets)
    out = next(iter(campaign([1], 150)))
    assert isinstance(out.broken, Broken)
    assert out.broken.name == "mail is held by living runs alone"
    assert len(out.ops) < 10
    assert "its ops" in str(out)


def test_the_front_door_stays_where_it_is_through_crashes() -> None:
    with Simulation() as sim:
        letter = {"to": f"agent:{sim.root.id}", "body": "Hello."}
        address = f"/api/companies/{sim.company}/messages"
        assert sim.request("POST", address, body=letter).status == 201
        sim.crash()
        assert sim.request("POST", address, body=letter).status == 201
        assert [one.body for one in sim.mail(sim.root)] == ["Hello.", "Hello."]
        stranger = Caller("rmt_user_" + "x" * 43)
        assert sim.request("GET", "/api/companies", caller=stranger).status == 401


def test_what_goes_wrong_inside_is_noticed_at_the_front_door(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("something is wrong inside")

    monkeypatch.setattr(idleness, "reason", broken)
    with Simulation() as sim:
        outside = Outside(sim)
        outside.look(PAGES.index("/events"), sim.root.id)

        def ask_everything() -> None:
            for number in range(14):
                outside.ask(number, sim.root.id, sim.root.id)

        with pytest.raises(Broken, match="nothing goes wrong inside"):
            ask_everything()


def test_content_whose_row_never_came_is_an_orphan_and_swept() -> None:
    def die(moment: Moment) -> None:
        if moment is Moment.AFTER_STORING:
            raise Crash(moment)

    with Simulation() as sim:
        file = {"description": "A file", "content": "Never seen."}
        with sim.crashing(die), pytest.raises(Crash):
            sim.request("POST", f"/api/companies/{sim.company}/files", body=file)
        sim.crash()
        kept = Path(sim.app.settings.home) / "blobs"
        orphans = [path for path in kept.rglob("*") if path.is_file()]
        assert [path.read_text() for path in orphans] == ["Never seen."]
        assert sim.request("GET", f"/api/companies/{sim.company}/files").json() == []
        for _ in range(2):  # into the trash, and out of it
            sim.do_async(sim.app.library.sweep())
        assert [path for path in kept.rglob("*") if path.is_file()] == []


def test_shrinking_keeps_only_what_is_needed() -> None:
    ops = [Op("time", number) for number in range(20)]
    kept = shrink(1, ops, lambda tried: any(op.a == 13 for op in tried.ops))
    assert kept == [Op("time", 13)]


# ── scenarios ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("BX-13")
@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_examples_play_as_they_say(path: Path) -> None:
    found = scenarios.read(path)
    with Simulation() as sim:
        assert len(scenarios.play(found, scenarios.Simulated(sim))) == len(found.expect)


def test_the_same_file_is_played_with_real_agents() -> None:
    """Real runs by a real worker: only the program behind them is a simple one."""
    found = scenarios.parse(
        {
            "name": "A word",
            "agents": [
                {
                    "name": "ceo",
                    "adapter_config": {
                        "script": [
                            {
                                "tool": "mail_send",
                                "arguments": {"to": "board", "body": "It is done."},
                            }
                        ]
                    },
                }
            ],
            "board": [{"send": {"to": "agent:ceo", "body": "Do it."}}, "rest"],
            "expect": [{"mail": {"to": "board", "contains": "done"}}],
        }
    )
    with real_stage("scripted", {}, patience=60) as stage:
        assert scenarios.play(found, stage) == ["mail to board, contains done: 1"]


def test_what_does_not_come_about_is_told() -> None:
    found = scenarios.parse(
        {"agents": [{"name": "ceo"}], "expect": [{"mail": {"to": "board", "contains": "done"}}]}
    )
    with Simulation() as sim, pytest.raises(scenarios.Failed, match="expected mail"):
        scenarios.play(found, scenarios.Simulated(sim))


@pytest.mark.parametrize(
    ("document", "told"),
    [
        ([], "scenario: must be a mapping"),
        ({"agent": []}, "scenario.agent: is not known"),
        ({"agents": {}}, None),
        ({"agents": 3}, "agents: must be a list"),
        ({"agents": [{}]}, r"agents\[0\].name: is required"),
        ({"agents": [{"name": "a", "x": 1}]}, r"agents\[0\].x: is not known"),
        ({"board": [{"fly": {}}]}, r"board\[0\]: must be one of"),
        ({"board": [{"send": {}, "rest": None}]}, r"board\[0\]: must be one of"),
        ({"expect": [3]}, r"expect\[0\]: must be a mapping"),
        ({"agents": [{"name": "a", "script": [{"on": "fire"}]}]}, "must be mail or start"),
    ],
)
def test_a_scenario_that_is_wrong_is_told_where(document: object, told: str | None) -> None:
    if told is None:
        scenarios.parse(document)
        return
    with pytest.raises(BadInput, match=told):
        scenarios.parse(document)


def test_a_refused_tool_tells_its_code() -> None:
    codes: list[str] = []

    def tries(turn: Turn) -> None:
        for tool, arguments in (
            ("outcome_close", {"id": turn.agent.id, "rationale": "x"}),
            ("no_such_tool", {}),
            ("kb_read", {"id": 3}),
        ):
            with pytest.raises(ToolRefused) as refusal:
                turn.call(tool, **arguments)
            codes.append(refusal.value.code)

    with Simulation() as sim:
        ada = sim.agent("Ada", tries, purpose="Try", perpetual=False)
        assert sim.turn(ada.id)
    assert codes[1:] == ["not_found", "invalid"]
