"""What outlives a run: a short state document, its history, a log, notes; and homes, which don't
speak."""

import json
import os
import shutil
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from remit.adapters import registry
from remit.adapters.contract import adopt
from remit.adapters.running import RunContext, RunResult
from remit.adapters.settings import SessionPolicy
from remit.clock import SystemClock
from remit.errors import RemitError
from remit.runtime.runs import homes
from remit.runtime.runs.prompt import MOST_NOTE
from remit.services.execution import runs
from remit.services.hiring import configuration
from remit.services.identity import as_system
from remit.services.knowledge import documents
from remit.services.messaging import pending_items
from remit.services.organisation import agents
from remit.services.organisation.overload import LONG_CONTEXT, MANY_OUTCOMES, MUCH_MAIL
from remit.services.work import outcomes
from remit.testing.clock import VirtualClock
from tests.company import Company, Member, opened
from tests.mailing import messaging, refused, send
from tests.test_prompt import KEEPS, remember
from tests.working import (
    at_work,
    claim,
    end,
    held,
    is_awake,
    listed,
    over,
    program,
    statuses,
    told,
)


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


def state(company: Company, member: Member) -> str:
    return str(company.call(company.board, agents.show, agent=member.id)["state_file_id"])


def ran(company: Company, member: Member, count: int) -> dict[str, Any]:
    """What the newest run of an agent was told."""
    send(company, company.board, f"agent:{member.id}", f"letter {count}")
    at_work(company, over(company, member, count))
    told = homes.folder(company.home, member.id) / listed(company, member)[0]["id"]
    found: dict[str, Any] = json.loads(told.read_text())
    return found


@pytest.mark.requirement("AG-83")
def test_after_a_crash_the_state_its_versions_and_the_log_say_what_was(company: Company) -> None:
    dev = program(company, "dev", KEEPS)
    remember(company, dev, "First I read the plan.")
    lost = company.run(dev)
    company.call(lost.caller, agents.submit_log, summary="I began to draw.")
    seen, _ = company.read(lost.caller, state(company, dev))
    company.write(lost.caller, seen, b"Half of it is drawn.")
    company.call(as_system(), runs.end, run=lost.id, status="lost")
    # The newest is what the next run begins with; it is told to keep that short.
    told = ran(company, dev, 2)
    assert told["turn"].startswith(
        "# Your memory\n\nWhat you wrote yourself, your state document:\n| Half of it is drawn.\n\n"
    )
    assert "Keep the state document short" in told["instructions"]
    # What led there can be read.
    _, before = company.read(dev.caller, state(company, dev), 2)
    assert before == b"First I read the plan."
    (entry,) = company.call(dev.caller, agents.read_log, agent=dev.id)["entries"]
    assert (entry["summary"], entry["run_id"]) == ("I began to draw.", lost.id)
    # Whatever its length, what enters a prompt is bounded.
    remember(company, dev, "long " * 10_000)
    assert len(ran(company, dev, 3)["turn"]) < 10_000


@pytest.mark.requirement("AG-78")
def test_a_full_context_is_no_failure_of_who_got_on_and_the_next_run_goes_on(
    company: Company,
) -> None:
    dev = program(company, "dev", "exit 0", perpetual=False)
    run = claim(company, dev)
    remember(company, dev, "Half way.")
    company.call(run.caller, outcomes.create, parent=dev.id, title="A part")
    end(company, run, "failed", exit_reason="context_full", error="the conversation is full")
    assert is_awake(company, dev)
    assert (held(company, dev).failures, held(company, dev).told) == (0, None)
    assert told(company) == []
    # Who did nothing with all that room has failed.
    run = claim(company, dev)
    end(company, run, "failed", exit_reason="context_full", error="the conversation is full")
    assert held(company, dev).failures == 1


class Endless(BaseModel):
    session_policy: SessionPolicy | None = SessionPolicy()


class Talker:
    """Goes on with its conversation until that is full."""

    type = "talker"
    Config = Endless
    sessions: ClassVar[list[str | None]] = []

    def check(self) -> bool:
        return True

    async def run(self, context: RunContext) -> RunResult:
        self.sessions.append(context.session)
        if len(self.sessions) == 2:
            return RunResult(False, reason="context_full", error="full", session=context.session)
        return RunResult(True, session=context.session or f"s{len(self.sessions)}")


@pytest.mark.requirement("AG-78")
def test_a_conversation_that_is_full_is_not_gone_on_with(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry.installed, "_plugins", {"talker": adopt(Talker)})
    monkeypatch.setattr(Talker, "sessions", [])
    dev = company.agent("dev", adapter_type="talker", perpetual=True)
    for number in range(1, 4):
        send(company, company.board, "agent:dev", "Go on.")
        company.sql("UPDATE agent_leases SET due_at = 0, failures = 0 WHERE agent_id = ?", dev.id)
        idle = over(company, dev, number)
        at_work(company, lambda number=number, idle=idle: len(Talker.sessions) >= number and idle())  # type: ignore[misc]
    assert Talker.sessions[:3] == [None, "s1", None]
    # One that was claimed when the worker was told to stop never got to talk.
    talked = [status for status in statuses(company, dev) if status in ("completed", "failed")]
    assert talked[:3] == ["completed", "failed", "completed"]


@pytest.mark.requirement("HB-24")
def test_daily_notes_are_shown_to_who_wants_them_cut_and_the_latest_first(
    company: Company,
) -> None:
    dev = program(company, "dev", KEEPS)
    peer = company.agent("peer")
    for day, text in (("2026-05-01", "one"), ("2026-05-02", "two " * 2000), ("2026-05-03", "3")):
        company.file(dev.caller, text.encode(), f"memories/{day}.md")
    company.file(peer.caller, b"not mine", "memories/2026-05-04.md")
    company.file(dev.caller, b"no note", "memories/draft.md")
    assert "notes of" not in ran(company, dev, 1)["turn"]
    for wrong in (True, "2", -1, 0):
        _wants(company, wrong)
        assert "notes of" not in ran(company, dev, len(statuses(company, dev)) + 1)["turn"]
    _wants(company, 2)
    remember(company, dev, "My state.")
    told = ran(company, dev, len(statuses(company, dev)) + 1)
    turn = told["turn"]
    assert turn.index("My state.") < turn.index("notes of 2026-05-03")
    assert turn.index("notes of 2026-05-03") < turn.index("notes of 2026-05-02")
    assert "2026-05-01" not in turn
    assert "not mine" not in turn
    assert "notes of 2026-05-02 (cut; the whole is in its file):\n| two" in turn
    assert turn.count("two ") < MOST_NOTE / 4
    assert "memories/YYYY-MM-DD.md" in told["instructions"]
    with pytest.raises(RemitError):
        company.call(company.board, documents.recent, days=3)


def _wants(company: Company, days: Any) -> None:
    changes = {"runtimeConfig": {"dailyNotes": days}}
    company.call(company.board, configuration.change, agent="dev", changes=changes)


@pytest.mark.requirement("HB-22", "HB-27", "HH-35", "HB-25")
def test_every_agent_has_one_home_and_nothing_in_it_goes_into_a_prompt(company: Company) -> None:
    dev = program(company, "dev", f"{KEEPS}; cat $HOME/SOUL.md > $HOME/soul-$REMIT_RUN")
    root = company.app.settings.home
    assert not homes.folder(root, dev.id).exists()
    ran(company, dev, 1)
    home = homes.folder(root, dev.id)
    assert home == root / "agents" / dev.id
    assert (home / homes.SOUL).read_bytes() == b""
    for name in (homes.SOUL, "CLAUDE.md", "AGENTS.md", "MEMORY.md", "persona.md"):
        (home / name).write_text("I am a pirate.")
    told = ran(company, dev, 2)
    assert "pirate" not in json.dumps(told)
    # Made again as often as it is needed; what is there stays, also for the root agent.
    for agent in (dev.id, company.ceo.id):
        assert homes.set_up(root, agent) == homes.set_up(root, agent)
        assert homes.folder(root, agent).is_dir()
    assert (home / homes.SOUL).read_text() == "I am a pirate."
    states = company.sql("SELECT state_file_id FROM agents")
    assert len(states) == len(set(states))
    kinds = {company.read(company.board, one)[0]["kind"] for (one,) in states}
    assert kinds == {"state"}


@pytest.mark.requirement("FX-80")
def test_start_files_of_shells_and_git_do_not_outlive_a_run(tmp_path: Path) -> None:
    """Whatever they are: a program of the agent may have left links to files of others."""
    home, others = tmp_path / "home", tmp_path / "others"
    planted = [".bashrc", ".gitconfig", ".config/git/config", ".config/fish/config.fish"]
    for place in (home, others):
        for name in (*planted, ".config/other", "notes"):
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            (place / name).write_text("kept?")
    (home / ".profile").mkdir()
    (home / ".profile" / "inside").write_text("x")
    (home / ".zshenv").symlink_to(others / "notes")
    homes.forget_start_files(home)
    left = sorted(str(path.relative_to(home)) for path in home.rglob("*"))
    assert left == [".config", ".config/other", "notes"]
    shutil.rmtree(home / ".config")
    (home / ".config").symlink_to(others / ".config")
    homes.forget_start_files(home)
    assert sorted(os.listdir(home)) == ["notes"]
    assert all((others / name).read_text() == "kept?" for name in (*planted, "notes"))
    homes.forget_start_files(home)


@pytest.mark.requirement("HH-32")
def test_an_agent_reaches_what_is_below_it_and_no_other_folder(company: Company) -> None:
    """What those below remember is read by all above; the folder of a run is for that run."""
    lead = company.agent("lead")
    dev = program(company, "dev", "exit 0", boss="lead")
    peer = company.agent("peer")
    spy = program(company, "spy", f"ls {company.home}/agents > $HOME/seen 2>&1; exit 0")
    homes.set_up(company.app.settings.home, dev.id)
    send(company, company.board, "agent:spy")
    at_work(company, over(company, spy))
    seen = (homes.folder(company.app.settings.home, spy.id) / "seen").read_text().split()
    assert seen == [spy.id]
    remember(company, dev, "What I know.")
    for above in (lead, company.ceo):
        assert company.read(above.caller, state(company, dev))[1] == b"What I know."
    for caller, target, reason in (
        (lead, dev, None),
        (company.ceo, dev, None),
        (company.ceo, lead, None),
        (dev, lead, "not_below_you"),
        (peer, dev, "not_below_you"),
        (lead, lead, "not_below_you"),
    ):
        changes = {"title": f"by {caller.name}"}
        try:
            company.call(caller.caller, configuration.propose, agent=target.id, changes=changes)
            found = None
        except RemitError as error:
            found = error.reason
        assert found == reason, (caller.name, target.name)
    for outsider in (peer, spy):
        with pytest.raises(RemitError):
            company.read(outsider.caller, state(company, dev))


@pytest.mark.requirement("AG-120")
def test_signs_that_delegation_is_due_are_among_the_loose_ends(
    database_url: str, tmp_path: Path
) -> None:
    clock = VirtualClock()
    with opened(database_url, tmp_path / "home", clock) as company:
        dev = company.agent("dev")

        def signs(who: Member) -> list[str]:
            found = company.call(who.caller, pending_items.loose_ends)["loose_ends"]
            return [one["title"] for one in found if one["kind"] == "delegate"]

        for number in range(MUCH_MAIL):
            assert signs(dev) == []
            send(company, company.ceo.caller, "agent:dev", f"{number}")
        for number in range(MANY_OUTCOMES):
            company.call(dev.caller, outcomes.create, parent=dev.id, title=f"Part {number}")
        assert len(signs(dev)) == 1
        clock.advance(25 * 3600 * 1_000_000)
        run = company.run(dev)
        report = {"context_length": LONG_CONTEXT}
        company.call(as_system(), runs.end, run=run.id, report=report)
        mail, idle, long = signs(company.ceo)
        assert f"{MUCH_MAIL} messages wait" in mail
        assert f"{MANY_OUTCOMES} outcomes" in idle
        assert str(LONG_CONTEXT) in long
        assert signs(dev) == [mail, idle, long]


@pytest.mark.requirement("AG-120")
def test_siblings_write_to_each_other_where_the_company_lets_them(company: Company) -> None:
    one, _ = company.agent("one"), company.agent("two")
    assert refused(company, one.caller, "agent:two") == "not_in_reach"
    messaging(company, "team")
    send(company, one.caller, "agent:two", "Hello.")
