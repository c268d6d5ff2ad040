"""Purging an agent: what it left goes, the record stays."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from remit.errors import Conflict, NotFound, RemitError
from remit.services.execution import run_queue, runs
from remit.services.governance import approvals
from remit.services.hiring import configuration
from remit.services.identity import Caller, as_system
from remit.services.knowledge import files
from remit.services.organisation import agents, reorganise, termination
from remit.services.people import companies
from remit.services.record import events
from remit.services.screens import overview
from tests.company import Answer, Company, Member, opened
from tests.mailing import send
from tests.test_archive import export, import_

SECRET = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.fixture
def dev(company: Company) -> Member:
    """An agent that worked, failed, remembered something, and was terminated."""
    config = {"command": "/bin/true", "env": {"API_KEY": SECRET}}
    made = company.agent("dev", adapter_type="process", adapter_config=config)
    company.call(
        company.board,
        configuration.change,
        agent=made.id,
        changes={"title": "Second", "metadata": {"password": SECRET}},
    )
    run = company.run(made)
    memory = company.call(company.board, overview.agent, agent=made.id)["state_file_id"]
    seen, _ = company.read(run.caller, memory)
    company.write(run.caller, seen, b"my private thoughts")
    (run.workspace / "left.txt").write_text("left")
    home = company.home / "agents" / made.id
    home.mkdir(parents=True)
    (home / "session.json").write_text("conversation")
    piece = {"number": 1, "at": 1, "stream": "stdout", "text": "I print secrets"}
    company.call(as_system(), run_queue.append_log, run=run.id, pieces=[piece])
    company.call(
        as_system(),
        run_queue.keep_session,
        run=run.id,
        adapter_type="process",
        session_id="s",
        begun_at=1,
        context_tokens=1,
    )
    report = {"final_response": "last words", "error": "no luck", "tokens_in": 7}
    company.call(as_system(), runs.end, run=run.id, status="failed", report=report)
    company.wait(company.app.kept.put_away(run.id, run.workspace))
    company.call(company.board, agents.terminate, agent=made.id)
    return made


def purge(company: Company, caller: Caller, agent: str) -> Answer:
    gone = company.call(caller, termination.purge, agent=agent)
    company.wait(company.app.kept.tidy())
    return gone


def text_of(company: Company, *tables: str) -> str:
    return str([company.sql(f"SELECT * FROM {table}") for table in tables])  # noqa: S608


@pytest.mark.requirement("HB-25", "HB-59")
def test_what_an_agent_left_goes_and_what_it_did_stays(company: Company, dev: Member) -> None:
    before = company.call(company.board, events.listing, company=company.id, limit=1000)
    (was,) = company.call(company.board, runs.listing, company=company.id, agent=dev.id)
    gone = purge(company, company.board, "dev")
    assert gone["removed"]["memory"] is True
    assert gone["removed"]["log_pieces"] == 1
    assert gone["removed"]["tokens"] >= 2
    assert (gone["name"], gone["status"]) == ("dev", "terminated")

    assert SECRET not in text_of(company, "agents", "config_revisions")
    assert company.sql("SELECT count(*) FROM agent_sessions") == [(0,)]
    assert company.sql("SELECT count(*) FROM run_logs") == [(0,)]
    assert company.sql("SELECT count(*) FROM tokens WHERE agent_id = ?", dev.id) == [(0,)]
    assert not (company.home / "agents" / dev.id).exists()
    assert list((company.home / "run" / "kept").iterdir()) == []

    (run,) = company.call(company.board, runs.listing, company=company.id, agent=dev.id)
    assert (run["status"], run["error"], run["tokens_in"]) == ("failed", "no luck", 7)
    assert (run["final_response"], run["log_bytes"]) == (None, 0)
    assert run["id"] == was["id"]
    after = company.call(company.board, events.listing, company=company.id, limit=1000)
    assert [one for one in after if one in before] == before
    (event,) = [one for one in after if one["action"] == "agent.purge"]
    assert event["details"]["name"] == "dev"
    assert company.call(company.board, events.verify, company=company.id)["ok"]


def test_its_memory_says_nothing_any_more_in_no_version(company: Company, dev: Member) -> None:
    memory = company.call(company.board, overview.agent, agent=dev.id)["state_file_id"]
    history = company.call(company.board, files.history, file=memory)
    purge(company, company.board, dev.id)
    now = company.call(company.board, files.history, file=memory)
    assert [(one["number"], one["at"]) for one in now[1:]] == [
        (one["number"], one["at"]) for one in history
    ]
    for one in now:
        _, content = company.read(company.board, memory, one["number"])
        assert content == b"Removed when the agent was purged.\n"


def test_a_memory_that_was_sent_to_somebody_stays_theirs(company: Company) -> None:
    dev = company.agent("dev")
    memory = company.call(company.board, overview.agent, agent=dev.id)["state_file_id"]
    seen, _ = company.read(dev.caller, memory)
    company.write(dev.caller, seen, b"for the board")
    send(company, dev.caller, "board", "See my memory.", attachments=[memory])
    company.call(company.board, agents.terminate, agent=dev.id)
    assert purge(company, company.board, dev.id)["removed"]["memory"] is False
    assert company.read(company.board, memory)[1] == b"for the board"


def test_only_the_board_over_the_whole_company_purges(company: Company, dev: Member) -> None:
    observer = company.user("watcher", role="observer")
    scoped = company.user("scoped", scope="ceo")
    neighbour = company.second_company()

    def reason(caller: Caller) -> str:
        with pytest.raises(RemitError) as refused:
            company.call(caller, termination.purge, agent=dev.id)
        return refused.value.reason

    assert reason(company.ceo.caller) == "board_only"
    assert reason(observer) == "observer"
    assert reason(scoped) == "outside_scope"
    assert reason(neighbour.board) == "not_found"
    # What was refused is in the record, and is not what it says.
    company.wait(company.app.kept.tidy())
    assert (company.home / "agents" / dev.id).exists()
    purge(company, company.user("second"), dev.id)


def test_only_the_terminated_are_purged_and_each_once(company: Company, dev: Member) -> None:
    with pytest.raises(Conflict, match="not terminated"):
        purge(company, company.board, "ceo")
    with pytest.raises(NotFound):
        purge(company, company.board, "nobody")
    purge(company, company.board, dev.id)
    with pytest.raises(Conflict, match="purged already"):
        purge(company, company.board, dev.id)
    heir = company.agent("dev")
    with pytest.raises(Conflict, match="not terminated"):
        purge(company, company.board, "dev")
    assert company.call(company.board, agents.show, agent="dev")["id"] == heir.id


def test_an_approval_keeps_what_was_approved(company: Company, dev: Member) -> None:
    found: list[Any] = company.call(
        company.board, approvals.listing, company=company.id, status=None, limit=100
    )
    (hire,) = [one for one in found if one["agent_id"] == dev.id]
    purge(company, company.board, dev.id)
    again = company.call(company.board, approvals.show, approval=hire["id"])
    assert again["digest"] == hire["digest"]
    assert again["payload"] == hire["payload"]
    assert SECRET not in json.dumps(again), "as ever, it is not shown"


def test_a_company_with_a_purged_agent_is_looked_at_and_exported_as_ever(
    company: Company, dev: Member, tmp_path: Path
) -> None:
    purge(company, company.board, dev.id)
    shown = company.call(company.board, overview.agent, agent=dev.id)
    assert shown["adapter_config"]["command"] == "/bin/true"
    (second, first) = company.call(company.board, configuration.revisions, agent=dev.id)
    assert (second["number"], first["number"]) == (2, 1)
    archive = export(company)
    assert SECRET.encode() not in archive
    assert b"private thoughts" not in archive
    with opened(f"sqlite:///{tmp_path}/other.db", tmp_path / "other") as elsewhere:
        elsewhere.call(elsewhere.board, companies.change, company=elsewhere.id, name="Other")
        assert import_(elsewhere, archive)


def test_a_layer_that_was_removed_and_purged_does_not_come_back(company: Company) -> None:
    layer = company.agent("layer")
    removed = company.call(
        company.board,
        reorganise.reorganise,
        company=company.id,
        operations=[{"op": "remove_layer", "agent": layer.id}],
    )
    purge(company, company.board, layer.id)
    with pytest.raises(Conflict, match="was purged since"):
        company.call(company.board, reorganise.undo, company=company.id, event=removed["event_id"])
