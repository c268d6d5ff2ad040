"""Background jobs: asked for by mail, run once with nothing of Remit, answered in reply."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.clock import HOUR, MINUTE, SECOND, SystemClock, to_iso
from remit.errors import BadInput, Conflict, NotFound, RemitError
from remit.model.execution.job import MOST_UNFINISHED
from remit.model.messaging.mail import MOST_HOPS
from remit.runtime.jobs import Jobs
from remit.services.connections import folders, repos
from remit.services.execution import accounts, job_queue, jobs, run_queue, runs
from remit.services.governance import approvals
from remit.services.hiring import configuration
from remit.services.identity import Caller, as_system
from remit.services.messaging import inbox, schedules, threads
from remit.services.messaging import pending_items as waiting
from remit.services.organisation import agents, idleness
from remit.services.rights import grants
from remit.services.screens import needs_you
from remit.settings import load
from remit.testing.clock import VirtualClock
from tests.background import (
    BACKGROUND,
    answers,
    ask,
    carried_out,
    events,
    listed,
    over,
    statuses,
    while_carried_out,
)
from tests.change_stage import give as give_repo
from tests.company import Answer, Company, Member, keyed, opened
from tests.git_remote import Remote
from tests.mailing import bodies, look, refused, send, tick, to_do, unread
from tests.working import claim, eventually, is_awake, processes_with, program

EVERYTHING = "env | sort | tr '\\n' ';'"


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


@pytest.fixture
def clocked(database_url: str, tmp_path: Path) -> Iterator[Company]:
    """Time moves when told to."""
    with opened(database_url, tmp_path / "home", VirtualClock()) as company:
        yield company


def only_answer(company: Company, member: Member) -> str:
    (answer,) = answers(company, member)
    return str(answer["body"])


def answered(company: Company, member: Member, text: str = "Do it.", **more: Any) -> str:
    """What comes back for a text."""
    before = len(statuses(company))
    ask(company, member, text, **more)
    carried_out(company, over(company, before + 1))
    (*_, answer) = answers(company, member)
    return str(answer["body"])


def claimed(company: Company, worker: str = "w") -> tuple[str, int]:
    """The next job, held by hand."""
    (job, *_) = company.call(as_system(), job_queue.ready)
    answer = company.call(as_system(), job_queue.claim, job=job, worker=worker)
    return job, answer["epoch"]


def end(company: Company, held: tuple[str, int], text: str = "done", **more: Any) -> None:
    given: dict[str, Any] = {"ok": True, "text": text, "usage": {}, **more}
    company.call(as_system(), job_queue.end, job=held[0], epoch=held[1], **given)


def forbid(company: Company, member: Member, mode: str) -> None:
    company.call(
        company.board,
        grants.give,
        company=company.id,
        to=member.id,
        resource="message:background",
        level="use",
        mode=mode,
    )


# ── asked for and answered ──────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("HB-40", "HB-41", "HB-47", "HB-51", "HH-43", "HH-44")
def test_mail_to_the_background_is_accepted_at_once_and_answered_in_reply(
    company: Company,
) -> None:
    dev = program(company, "dev", "tr -d '\\n' | tr a-z A-Z; echo; echo '42 things'")
    asked = ask(company, dev, "Count all things.", subject="Counting")
    assert asked["to"] == BACKGROUND
    shown = company.call(company.board, threads.show, message=asked["id"])
    (delivery,) = shown["deliveries"]
    assert (delivery["to"], delivery["status"]) == (BACKGROUND, "done")
    assert statuses(company) == ["queued"]
    assert look(company, dev) == []
    carried_out(company, over(company))
    (answer,) = look(company, dev)
    assert answer["sender"] == BACKGROUND
    assert answer["sender_name"] == "background"
    assert answer["from_board"] is False
    assert answer["body"] == "42 things"
    assert answer["reply_to"] == asked["id"]
    assert answer["thread_id"] == asked["thread_id"]
    assert answer["subject"] == "Counting"
    (job,) = listed(company)
    assert job["id"] == delivery["job_id"]
    assert (job["status"], job["attempts"], job["agent_id"]) == ("completed", 1, dev.id)
    assert (job["message_id"], job["answer_id"]) == (asked["id"], answer["id"])
    assert events(company) == ["job.start", "job.end"]
    # The answer is work like any other mail.
    assert to_do(company, dev) == ["Process inbox"]
    assert is_awake(company, dev)


@pytest.mark.requirement("HB-40")
def test_attachments_lie_beside_it_to_be_read(small: Company) -> None:
    script = "ls -l .kb | tail -1 | cut -c1-10; cat .kb/*; echo; cat | tr '\\n' ' '"
    dev = program(small, "dev", f"({script}) | tr '\\n' '~'")
    file = small.file(dev.caller, b"the figures", "Figures of\tMay")
    said = answered(small, dev, "Add them up.", attachments=[file["id"]])
    rights, content, task, *_ = said.split("~")
    assert rights == "-r--r--r--"
    assert content == "the figures"
    turn = json.loads(task)["turn"]
    assert turn.startswith("Add them up.\n\nAttachments:\n- /")
    assert f"/.kb/{file['id']} (Figures of May)" in turn
    log = small.sql("SELECT agent_id FROM access_log WHERE file_id = ?", file["id"])
    assert log[-1] == (dev.id,)


def test_an_attachment_that_may_not_be_read_any_more_is_not(small: Company) -> None:
    dev = program(small, "dev", "cat")
    file = small.file(small.ceo.caller, b"secret")
    given = small.give(small.ceo.caller, dev, file, "read")
    ask(small, dev, attachments=[file["id"]])
    small.call(small.board, grants.revoke, grant=given["id"])
    carried_out(small, over(small))
    assert only_answer(small, dev).startswith("Background job failed: The attachment")


def test_an_attachment_that_needs_approval_is_read_once_it_was_given(small: Company) -> None:
    dev = program(small, "dev", "cat .kb/*")
    file = small.file(small.board, b"secret")
    small.give(small.board, dev, file, "read", mode="ask")
    assert refused(small, dev.caller, BACKGROUND, attachments=[file["id"]]) == "pending_approval"
    (asked,) = small.call(small.board, approvals.listing, company=small.id, status="pending")
    small.call(small.board, approvals.approve, approval=asked["id"])
    ask(small, dev, "text", attachments=[file["id"]])
    carried_out(small, over(small))
    assert only_answer(small, dev) == "secret"


@pytest.mark.requirement("HB-43", "HB-44", "HH-44")
def test_a_job_is_told_its_text_and_nothing_of_remit(
    small: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMIT_TEST_CANARY", "canary")
    dev = program(small, "dev", f"cat | tr '\\n' ';'; {EVERYTHING}", config={"env": {"A": "b"}})
    said = answered(small, dev, "Who am I?")
    task, *environment = said.split(";")
    assert set(json.loads(task)) == {"job", "turn"}
    assert json.loads(task)["turn"] == "Who am I?"
    assert "REMIT" not in said
    assert "rmt_" not in said
    names = {pair.partition("=")[0] for pair in environment if "=" in pair}
    assert (
        {"A", "HOME", "PATH", "TMPDIR"}
        <= names
        <= {
            *("A", "HOME", "PATH", "TMPDIR", "LANG", "TERM", "PWD", "OLDPWD", "SHLVL", "_"),
            "GIT_CONFIG_NOSYSTEM",  # without bubblewrap
        }
    )
    assert small.sql("SELECT count(*) FROM tokens WHERE run_id IS NOT NULL") == [(0,)]
    assert small.sql("SELECT count(*) FROM runs") == [(0,)]


@pytest.mark.requirement("HB-45", "HB-19")
def test_a_job_is_held_by_the_sandbox_of_its_sender(small: Company, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    script = f"touch {outside} 2>&1; ls {small.home} 2>&1 | tr '\\n' ' '"
    inside = program(small, "inside", script)
    said = answered(small, inside)
    # The way to its own folder; or, without bubblewrap, nothing.
    assert said.split() == ["run"] or said.count("Permission denied") == 2
    assert not outside.exists()
    # Full access has to be held when the job is done, not only configured.
    full = program(small, "full", script, config={"sandbox": "full"})
    assert "board.token" in answered(small, full)
    outside.unlink()
    [(held,)] = small.sql("SELECT id FROM grants WHERE resource_id = 'full_access'")
    small.call(small.board, grants.revoke, grant=held)
    said = answered(small, full)
    assert said == "Background job failed: This agent has no full access to the machine."
    assert not outside.exists()


@pytest.mark.requirement("HB-46")
def test_a_job_is_set_up_as_its_sender_was_when_it_asked(small: Company) -> None:
    dev = program(small, "dev", 'echo "$STYLE in $PWD"', config={"env": {"STYLE": "old"}})
    (small.app.settings.home / "agents" / dev.id).mkdir(parents=True)
    first = ask(small, dev)
    small.sql(
        "UPDATE agents SET adapter_config = replace(adapter_config, 'old', 'new') WHERE id = ?",
        dev.id,
    )
    second = ask(small, dev)
    carried_out(small, over(small, 2))
    said = {one["reply_to"]: one["body"].split() for one in answers(small, dev)}
    assert (said[first["id"]][0], said[second["id"]][0]) == ("old", "new")
    folder = said[first["id"]][2]
    assert folder.startswith(str(small.app.settings.job_folder))


@pytest.mark.requirement("HB-46", "FX-32")
def test_a_job_works_in_the_folder_of_its_sender_with_its_tool_chains(
    small: Company, tmp_path: Path
) -> None:
    remote = Remote(tmp_path / "remotes" / "site")
    small.call(small.board, repos.add, company=small.id, name="site", url=remote.url)
    tools = tmp_path / "tools"
    tools.mkdir(mode=0o755)
    (tools / "hammer").write_text("#!/bin/sh\necho struck\n")
    (tools / "hammer").chmod(0o755)
    script = "echo more >>notes; echo $PWD $(hammer; git log -1 --format=%s; git config user.name)"
    dev = program(small, "dev", script)
    given = give_repo(small, dev, "read")
    about: dict[str, Any] = {"company": small.id}
    bound = small.call(small.board, folders.bind, **about, agent=dev.id, repo="site")
    shown: dict[str, Any] = {"path": str(tools), "programs": ["."]}
    small.call(small.board, folders.mount, **about, **shown)
    place = small.app.settings.home / "projects" / dev.id / bound["id"]
    first, second = ask(small, dev), ask(small, dev)
    carried_out(small, over(small, 2))
    said = {one["reply_to"]: one["body"].split() for one in answers(small, dev)}
    for words in (said[first["id"]], said[second["id"]]):
        assert words == [str(place), "struck", "more", "dev"]
    assert (place / "notes").read_text() == "more\nmore\n"
    # Its right is looked at again, as for a run.
    small.call(small.board, grants.revoke, grant=given["id"])
    assert answered(small, dev).split()[0].startswith(str(small.app.settings.job_folder))


@pytest.mark.requirement("HB-46")
def test_the_folder_of_a_job_under_way_is_not_taken_from_it(small: Company, tmp_path: Path) -> None:
    remote = Remote(tmp_path / "remotes" / "site")
    small.call(small.board, repos.add, company=small.id, name="site", url=remote.url)
    dev = program(small, "dev", "true")
    give_repo(small, dev)
    about: dict[str, Any] = {"company": small.id}
    bound = small.call(small.board, folders.bind, **about, agent=dev.id, repo="site")["id"]
    ask(small, dev)
    held = claimed(small)
    small.call(small.board, folders.remove, **about, folder=bound)
    assert small.call(as_system(), folders.kept, folders=[bound]) == [bound]
    end(small, held)
    assert small.call(as_system(), folders.kept, folders=[bound]) == []


@pytest.mark.requirement("HB-50", "HH-44")
def test_nothing_of_a_job_is_kept_for_the_next(small: Company) -> None:
    script = "ls -A $HOME $PWD | tr '\\n' ' '; echo x > $HOME/kept; echo x > kept; exit 0"
    dev = program(small, "dev", script)
    home = small.app.settings.home / "agents" / dev.id
    home.mkdir(parents=True)
    (home / "memory").write_text("of the agent")
    first, second = answered(small, dev), answered(small, dev)
    for said in (first, second):
        assert [part.rsplit("/", 1)[-1] for part in said.split()] == ["home:", "work:", ".tmp"]
    assert list(small.app.settings.job_folder.iterdir()) == []
    assert small.sql("SELECT count(*) FROM agent_sessions") == [(0,)]


@pytest.mark.requirement("HB-48")
@pytest.mark.parametrize(
    ("script", "config", "error"),
    [
        ("echo no >&2; exit 3", {}, "the program ended with 3: no"),
        ('echo \'{"ok": false, "error": "it rains"}\'', {}, "it rains"),
        ("sleep 30", {"timeoutSeconds": 1}, "it took longer than 1 seconds"),
        ("kill -9 $$", {}, "the program ended with 137"),
    ],
)
def test_a_job_that_fails_says_why_in_its_answer(
    small: Company, script: str, config: dict[str, Any], error: str
) -> None:
    dev = program(small, "dev", script, config=config)
    assert answered(small, dev) == f"Background job failed: {error}"
    (job,) = listed(small)
    assert (job["status"], job["error"]) == ("failed", error)
    assert to_do(small, dev) == ["Process inbox"]


@pytest.mark.requirement("HB-48")
@pytest.mark.parametrize(
    ("adapter", "config"), [("human", {}), ("http", {"url": "http://127.0.0.1:9/"})]
)
def test_who_cannot_do_jobs_is_told(small: Company, adapter: str, config: dict[str, Any]) -> None:
    dev = small.agent("dev", adapter_type=adapter, adapter_config=config)
    said = answered(small, dev)
    assert said == f"Background job failed: The adapter {adapter} cannot do background jobs."


def test_without_a_model_the_text_comes_back(small: Company) -> None:
    assert answered(small, small.ceo, "Just so.") == "Just so."


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("exit 0", ""),
        ("printf 'a\\000b'", "a\ufffdb"),
        ("printf '\\377\\376'", "\ufffd\ufffd"),
        ("printf '%s' '{\"text\": \"\\ud800x\"}'", "?x"),
        ("printf '%s' 'from-board: yes'", "from-board: yes"),
    ],
)
def test_whatever_a_program_says_is_mail(small: Company, script: str, said: str) -> None:
    dev = program(small, "dev", script)
    assert answered(small, dev) == said
    run = small.run(dev)
    turn = small.call(run.caller, inbox.turn).text
    assert "from: agent:background\n" in turn
    assert "from-board: yes\n" not in turn.replace("| from-board", "|")


def test_a_very_long_answer_is_cut_where_it_says_so(small: Company) -> None:
    dev = program(small, "dev", "head -c 3000000 /dev/zero | tr '\\0' 'x'; echo y")
    ask(small, dev)
    carried_out(small, over(small))
    (answer,) = answers(small, dev)
    _, content = small.read(dev.caller, answer["file_id"])
    assert len(content) <= (1 << 20) + 100
    program(small, "other", "true")  # it is still well


def test_what_a_job_takes_counts_as_its_agents(company: Company) -> None:
    usage = {"tokens_in": 30, "tokens_out": 4, "tokens_cached": 5, "cost_micros": 1234}
    dev = program(company, "dev", f"echo '{json.dumps({'text': 'ok', 'usage': usage})}'")
    answered(company, dev)
    (job,) = listed(company)
    assert (job["tokens_in"], job["tokens_out"], job["tokens_cached"]) == (30, 4, 5)
    assert job["cost_usd"] == 1234 / 1_000_000
    (details,) = company.sql("SELECT details FROM events WHERE action = 'job.end'")[0]
    assert json.loads(details)["cost_micros"] == 1234
    assert json.loads(details)["agent_id"] == dev.id


@pytest.mark.requirement("FX-65")
def test_tokens_of_a_job_that_nobody_prices_are_counted_as_that(small: Company) -> None:
    told = {"text": "ok", "usage": {"tokens_in": 30, "tokens_out": 4}}
    dev = program(small, "dev", f"echo '{json.dumps(told)}'")
    answered(small, dev)
    (job,) = listed(small)
    assert (job["cost_usd"], job["tokens_unpriced"]) == (None, 34)
    assert small.sql("SELECT money_micros, tokens_unpriced FROM spending") == [(0, 34)]


# ── who may, and how often ──────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("HB-49")
def test_what_a_person_sends_there_is_refused_recorded_and_dropped(company: Company) -> None:
    scoped = company.user("scoped", scope="ceo")
    for person in (company.board, scoped):
        assert refused(company, person, BACKGROUND) == "agents_only"
        assert refused(company, person, "background") == "agents_only"
    assert refused(company, Caller("rmt_user_nobody"), BACKGROUND) == "unauthenticated"
    denied = company.sql("SELECT action, resource FROM events WHERE reason = 'agents_only'")
    assert set(denied) == {("message.send", BACKGROUND)}
    assert len(denied) == 4
    assert company.sql("SELECT count(*) FROM jobs") == [(0,)]
    assert company.sql("SELECT count(*) FROM messages") == [(0,)]
    assert unread(company, company.board) == []


@pytest.mark.requirement("HB-49")
def test_jobs_of_somebody_who_is_gone_are_dropped_and_recorded(company: Company) -> None:
    dev = program(company, "dev", "sleep 60")
    ask(company, dev)
    ask(company, dev)
    held = claimed(company)
    company.call(company.board, agents.terminate, agent=dev.id)
    assert statuses(company) == ["cancelled", "cancelled"]
    assert events(company).count("job.cancel") == 2
    with pytest.raises(Conflict):
        end(company, held)
    assert company.sql("SELECT count(*) FROM messages WHERE background") == [(0,)]


@pytest.mark.requirement("HH-43")
def test_the_board_can_forbid_it_or_be_asked_each_time(company: Company) -> None:
    dev, other = company.agent("dev"), company.agent("other")
    forbid(company, dev, "deny")
    assert refused(company, dev.caller, BACKGROUND) == "denied_by_grant"
    forbid(company, other, "ask")
    assert refused(company, other.caller, BACKGROUND) == "pending_approval"
    ask(company, company.ceo)
    assert len(statuses(company)) == 1


def test_nobody_is_hired_under_that_name(small: Company) -> None:
    for name in ("background", "Background"):
        with pytest.raises(BadInput):
            small.agent(name)


def test_a_thread_that_could_not_be_answered_takes_no_job(small: Company) -> None:
    dev = small.agent("dev")
    last = ask(small, dev)
    small.sql("UPDATE messages SET hops = ? WHERE id = ?", MOST_HOPS - 2, last["id"])
    reply = ask(small, dev, "Again.", reply_to=last["id"])
    assert refused(small, dev.caller, BACKGROUND, reply_to=reply["id"]) == "hop_limit"


@pytest.mark.requirement("HB-47")
def test_the_last_words_of_a_run_can_be_run(company: Company) -> None:
    dev = company.agent("dev", adapter_type="scripted")
    send(company, company.board, f"agent:{dev.id}", "Please think.")
    run = company.run(dev)
    (letter,) = company.call(run.caller, inbox.take)["messages"]
    report = {"final_response": "@background Think about it."}
    company.call(as_system(), runs.end, run=run.id, report=report)
    carried_out(company, over(company))
    (answer,) = answers(company, dev)
    assert answer["body"] == "Think about it."
    assert answer["thread_id"] == letter["thread_id"]
    # It is a result: nobody answers the background by themselves.
    company.sql("UPDATE agents SET runtime_config = ? WHERE id = ?", '{"autoReply": true}', dev.id)
    run = company.run(dev)
    assert company.call(run.caller, inbox.take)["messages"]
    company.call(as_system(), runs.end, run=run.id, report={"final_response": "Thanks."})
    assert len(statuses(company)) == 1


def test_a_repeated_request_is_one_job(company: Company) -> None:
    dev = company.agent("dev", adapter_type="scripted")
    again = keyed(dev.caller, "k")
    assert send(company, again, BACKGROUND) == send(company, again, BACKGROUND)
    carried_out(company, over(company))
    assert len(answers(company, dev)) == 1


def test_too_many_and_too_long_are_refused(small: Company) -> None:
    dev = small.agent("dev")
    assert refused(small, dev.caller, BACKGROUND, body="x" * (1 << 20) + "y") == "invalid"
    for _ in range(MOST_UNFINISHED):
        ask(small, dev)
    assert refused(small, dev.caller, BACKGROUND) == "too_many_jobs"
    ask(small, small.ceo)


def test_a_job_can_wait_for_its_time_and_be_planned(clocked: Company) -> None:
    dev = clocked.agent("dev", adapter_type="scripted")
    at = to_iso(clocked.clock.now() + MINUTE)
    ask(clocked, dev, "Later.", deliver_at=at)
    clocked.call(dev.caller, schedules.add, to=BACKGROUND, body="Planned.", at=at, subject="A plan")
    assert clocked.call(as_system(), job_queue.ready) == []
    assert clocked.call(as_system(), job_queue.next_due) == clocked.clock.now() + MINUTE
    clocked.clock.advance(MINUTE)  # type: ignore[attr-defined]
    tick(clocked)
    carried_out(clocked, over(clocked, 2))
    assert sorted(bodies(answers(clocked, dev))) == ["Later.", "Planned."]


# ── how many at once ────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("HB-42")
@pytest.mark.parametrize(
    ("wanted", "found"), [(None, 4), ("1", 1), ("32", 32), ("0", 1), ("-3", 1), ("1000", 32)]
)
def test_four_at_once_unless_told_otherwise_within_bounds(
    tmp_path: Path, wanted: str | None, found: int
) -> None:
    environment = {"REMIT_HOME": str(tmp_path)}
    if wanted is not None:
        (tmp_path / "remit.toml").write_text(f'background_jobs = "{wanted}"\n')
        assert load(environment).background_jobs == found
        environment["REMIT_BACKGROUND_JOBS"] = wanted
    assert load(environment).background_jobs == found


@pytest.mark.requirement("HB-42")
def test_a_number_that_is_none_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        load({"REMIT_HOME": str(tmp_path), "REMIT_BACKGROUND_JOBS": "many"})


@pytest.mark.requirement("HB-42")
@pytest.mark.campaign_on_postgresql("the limit is counted by the worker")
def test_of_forty_jobs_never_more_run_at_once_than_allowed(
    company: Company, tmp_path: Path
) -> None:
    here, seen = tmp_path / "here", tmp_path / "seen"
    here.mkdir()
    script = f"touch {here}/$$; ls {here} | wc -l >> {seen}; sleep 0.05; rm {here}/$$"
    team = [
        program(company, f"dev{number}", script, config={"sandbox": "full"}) for number in range(4)
    ]
    for number in range(40):
        ask(company, team[number % 4])
    carried_out(company, over(company, 40), seconds=60, at_once=3)
    counts = [int(line) for line in seen.read_text().split()]
    assert len(counts) == 40
    assert max(counts) <= 3
    assert statuses(company) == ["completed"] * 40
    assert all(len(answers(company, dev)) == 10 for dev in team)
    assert list(company.app.settings.job_folder.iterdir()) == []


def test_two_workers_never_do_the_same_job(company: Company, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    dev = program(company, "dev", f"cat >> {seen}", config={"sandbox": "full"})
    for _ in range(12):
        ask(company, dev)

    async def story(_: Jobs) -> None:
        other = Jobs(company.app, name="other", at_once=2)
        other.start()
        try:
            async with asyncio.timeout(30):
                while not await asyncio.to_thread(over(company, 12)):  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        finally:
            await other.stop()

    while_carried_out(company, story, at_once=2)
    done = [json.loads(line)["job"] for line in seen.read_text().splitlines()]
    assert len(done) == len(set(done)) == 12
    assert {job["worker"] for job in listed(company)} <= {"local", "other"}


def test_who_asked_for_little_does_not_wait_for_who_asked_for_much(company: Company) -> None:
    much, little = company.agent("much"), company.agent("little")
    for _ in range(5):
        ask(company, much)
    ask(company, little)
    order = [
        company.sql("SELECT agent_id FROM jobs WHERE id = ?", job)[0][0]
        for job in company.call(as_system(), job_queue.ready)
    ]
    assert order.index(little.id) == 1
    claimed(company)  # much has one under way, so it is little's turn
    (first, *_) = company.call(as_system(), job_queue.ready)
    assert company.sql("SELECT agent_id FROM jobs WHERE id = ?", first) == [(little.id,)]


# ── cancelled, stopped, paused ──────────────────────────────────────────────────────────────────


def cancel(company: Company, caller: Caller, thread: str) -> Answer:
    return company.call(caller, waiting.cancel, thread=thread)


def test_its_sender_and_those_above_can_end_it(company: Company) -> None:
    lead, peer = company.agent("lead"), company.agent("peer")
    dev = company.agent("dev", "lead")
    first, second, third = (ask(company, dev) for _ in range(3))
    found = {job["message_id"]: job["id"] for job in listed(company, dev)}
    for stranger in (peer.caller, company.second_company().agent.caller):
        with pytest.raises(NotFound):
            cancel(company, stranger, found[first["id"]])
        with pytest.raises(RemitError):
            company.call(stranger, jobs.show, job=found[first["id"]])
        with pytest.raises(RemitError):
            company.call(stranger, jobs.cancel, job=found[first["id"]])
    # Its own doing needs no answer; what others do is told.
    assert cancel(company, dev.caller, first["id"])["jobs"] == [found[first["id"]]]
    assert answers(company, dev) == []
    cancel(company, lead.caller, found[second["id"]])
    company.call(company.board, jobs.cancel, job=found[third["id"]], reason="Too expensive")
    assert bodies(answers(company, dev)) == [
        "Background job failed: cancelled by lead",
        "Background job failed: Too expensive",
    ]
    assert statuses(company) == ["cancelled"] * 3
    for job in found.values():
        with pytest.raises(Conflict):
            company.call(company.board, jobs.cancel, job=job)


def test_cancelling_a_thread_ends_what_runs_in_it(company: Company) -> None:
    dev = program(company, "dev", "sleep 600; : $MARK", config={"env": {"MARK": "m"}})
    letter = send(company, company.board, f"agent:{dev.id}", "Please think.")
    ask(company, dev, reply_to=letter["id"])
    ends = company.call(dev.caller, waiting.loose_ends)
    assert [one["kind"] for one in ends["loose_ends"]] == ["job"]

    async def story(carrier: Jobs) -> None:
        async with asyncio.timeout(20):
            while not carrier.busy:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
            await company.app.gate(dev.caller, waiting.cancel, thread=letter["id"])
            while carrier.busy:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    while_carried_out(company, story)
    assert statuses(company) == ["cancelled"]
    assert list(company.app.settings.job_folder.iterdir()) == []


def test_stopping_an_agent_ends_its_jobs_and_pausing_lets_them_wait(company: Company) -> None:
    stopped, paused = company.agent("stopped"), company.agent("paused", adapter_type="scripted")
    ask(company, stopped)
    ask(company, paused, "When I am back.")
    company.call(company.board, agents.pause, agent=paused.id)
    company.call(company.board, agents.stop, agent=stopped.id)
    assert statuses(company, stopped) == ["cancelled"]
    assert only_answer(company, stopped) == "Background job failed: stopped was stopped"
    assert company.call(as_system(), job_queue.ready) == []
    company.call(company.board, agents.resume, agent=paused.id)
    carried_out(company, over(company, 2))
    assert only_answer(company, paused) == "When I am back."


# ── held by a lease ─────────────────────────────────────────────────────────────────────────────


def test_a_job_of_a_silent_worker_is_done_by_another_and_answered_once(clocked: Company) -> None:
    dev = clocked.agent("dev", adapter_type="scripted")
    ask(clocked, dev, "Once.")
    zombie = claimed(clocked, "zombie")
    with pytest.raises(Conflict):
        clocked.call(as_system(), job_queue.take_over, job=zombie[0], epoch=zombie[1])
    # By whatever clock: what counts is that its lease stays as it is.
    clocked.clock.advance(11 * SECOND)  # type: ignore[attr-defined]
    held = clocked.call(as_system(), job_queue.held)
    assert list(held) == [zombie]
    carried_out(clocked, over(clocked), lease=SECOND // 2)
    for late in (
        lambda: end(clocked, zombie, "from the dead"),
        lambda: clocked.call(
            as_system(), job_queue.put_back, job=zombie[0], epoch=zombie[1], usage={}
        ),
        lambda: clocked.call(as_system(), job_queue.material, job=zombie[0], epoch=zombie[1]),
    ):
        with pytest.raises(Conflict):
            late()
    assert clocked.call(as_system(), job_queue.renew, held=[zombie]) == [zombie]
    assert bodies(answers(clocked, dev)) == ["Once."]
    assert events(clocked) == ["job.start", "job.lost", "job.start", "job.end"]


def test_a_worker_that_is_heard_of_keeps_its_job(clocked: Company) -> None:
    ask(clocked, clocked.ceo)
    held = claimed(clocked)
    for _ in range(5):
        clocked.clock.advance(8 * SECOND)  # type: ignore[attr-defined]
        assert clocked.call(as_system(), job_queue.renew, held=[held]) == []
    end(clocked, held)
    assert statuses(clocked) == ["completed"]


@pytest.mark.parametrize(("once", "attempts"), [(False, 3), (True, 1)])
def test_a_job_that_its_workers_do_not_survive_is_given_up(
    clocked: Company, once: bool, attempts: int
) -> None:
    dev = clocked.agent("dev", adapter_type="scripted")
    ask(clocked, dev, at_most_once=once)
    for _ in range(attempts):
        job, epoch = claimed(clocked, "weak")
        clocked.clock.advance(11 * SECOND)  # type: ignore[attr-defined]
        clocked.call(as_system(), job_queue.take_over, job=job, epoch=epoch)
    assert statuses(clocked) == ["failed"]
    said = "Background job failed: its worker weak stopped responding"
    assert only_answer(clocked, dev) == said


def test_a_worker_that_is_stopped_puts_its_jobs_back(company: Company) -> None:
    mark = f"mark-{company.app.ids.new()}"
    dev = program(company, "dev", f"sleep 600; : {mark}")
    ask(company, dev)
    carried_out(company, lambda: processes_with(mark))
    eventually(lambda: not processes_with(mark))
    (job,) = listed(company)
    assert (job["status"], job["attempts"]) == ("queued", 0)
    assert list(company.app.settings.job_folder.iterdir()) == []
    assert answers(company, dev) == []


def test_everything_that_a_job_started_ends_with_it(small: Company) -> None:
    mark = f"mark-{small.app.ids.new()}"
    script = f"(setsid sleep 600 && : {mark}) & sh -c 'sleep 0.2; echo done'; : {mark}"
    for name, config in (("inside", {}), ("outside", {"sandbox": "full"})):
        dev = program(small, name, script, config=config)
        assert answered(small, dev) == "done"
        eventually(lambda: not processes_with(mark))


def test_only_remit_itself_carries_jobs_out(small: Company) -> None:
    ask(small, small.ceo)
    job = listed(small)[0]["id"]
    for caller in (small.board, small.ceo.caller):
        with pytest.raises(NotFound):
            small.call(caller, job_queue.ready)
        with pytest.raises(NotFound):
            small.call(caller, job_queue.claim, job=job, worker="me")
        with pytest.raises(NotFound):
            small.call(caller, job_queue.material, job=job, epoch=0)
        with pytest.raises(NotFound):
            small.call(caller, job_queue.end, job=job, epoch=0, ok=True, usage={})


# ── closed accounts ─────────────────────────────────────────────────────────────────────────────


def with_key(company: Company, name: str) -> Member:
    """An agent that uses the company's key, and has nothing to do itself."""
    config = {"secretRef": "key"}
    return company.agent(name, perpetual=True, adapter_type="claude", adapter_config=config)


def through_provider(company: Company, held: tuple[str, int], fault: str, **more: Any) -> None:
    end(company, held, "", ok=False, error=f"It said {fault}.", fault=fault, **more)


def start_jobs(company: Company, worker: str = "w") -> list[tuple[str, int]]:
    """What a worker does with the jobs that are ready."""
    begun = []
    for job in company.call(as_system(), job_queue.ready, worker=worker):
        try:
            begun.append((job, company.call(as_system(), job_queue.claim, job=job, worker=worker)))
        except Conflict as refusal:
            if refusal.reason == accounts.HELD:
                company.call(as_system(), job_queue.wait, job=job, worker=worker)
    return [(job, answer["epoch"]) for job, answer in begun]


@pytest.mark.requirement("FX-10")
def test_jobs_wait_for_a_closed_account_and_go_on_after_it_one_after_the_other(
    clocked: Company,
) -> None:
    company, clock = clocked, clocked.app.clock
    assert isinstance(clock, VirtualClock)
    dev = with_key(company, "dev")
    for number in range(8):
        ask(company, dev, f"Part {number}.")
    first = claimed(company)
    until = clock.now() + 5 * HOUR
    through_provider(company, first, "rate", until=until, usage={"tokens_in": 7})
    assert start_jobs(company) == []
    assert statuses(company) == ["queued"] * 8
    assert answers(company, dev) == []
    # What it took is counted; trying it was no attempt.
    (held,) = [job for job in listed(company) if job["tokens_in"]]
    assert (held["attempts"], held["id"]) == (0, first[0])
    assert all("claude:key is closed since" in job["waits_for"] for job in listed(company))
    assert (
        "claude:key is closed"
        in company.call(dev.caller, jobs.listing, company=None)[0]["waits_for"]
    )
    said = company.call(company.board, idleness.why_idle, agent=dev.id)
    assert said["reason"] == "held"
    assert said["sentence"].startswith("8 background jobs of it wait. The account claude:key is")
    (item,) = [
        one for one in company.call(company.board, needs_you.listing) if one["kind"] == "held"
    ]
    assert item["cause"].endswith("8 background jobs wait for it.")
    clock.advance(5 * HOUR)
    # One finds out, and nobody else meanwhile.
    ((probe, epoch),) = start_jobs(company)
    assert start_jobs(company) == []
    through_provider(company, (probe, epoch), "rate", until=clock.now() + HOUR)
    assert start_jobs(company) == []
    clock.advance(HOUR)
    ((probe, epoch),) = start_jobs(company)
    end(company, (probe, epoch))
    begun = []
    for _ in range(4):
        begun.append(len(start_jobs(company)))
        clock.advance(SECOND)
    assert begun == [1, 1, 2, 3]
    assert statuses(company).count("running") == 7
    assert len(answers(company, dev)) == 1
    assert "job.wait" in events(company)


@pytest.mark.requirement("FX-10")
def test_an_agent_that_waits_finds_out_before_its_jobs_do(clocked: Company) -> None:
    company, clock = clocked, clocked.app.clock
    assert isinstance(clock, VirtualClock)
    dev = with_key(company, "dev")
    ask(company, dev)
    send(company, company.board, "agent:dev", "Read this.")
    until = clock.now() + HOUR
    first = claimed(company)
    through_provider(company, first, "rate", until=until)
    ready = company.call(as_system(), run_queue.ready, worker="w")
    assert [one.agent_id for one in ready] == [dev.id]
    with pytest.raises(Conflict):
        claim(company, dev, worker="w")
    company.call(as_system(), accounts.wait, agent=dev.id, worker="w")
    clock.advance(HOUR)
    assert start_jobs(company) == []
    with pytest.raises(Conflict) as caught:
        company.call(as_system(), job_queue.claim, job=first[0], worker="w")
    assert caught.value.reason == accounts.HELD
    run = claim(company, dev, worker="w")
    assert start_jobs(company) == []
    company.call(as_system(), runs.end, run=run.id)
    assert len(start_jobs(company)) == 1


@pytest.mark.requirement("FX-10")
def test_a_broken_set_up_holds_jobs_on_its_worker_alone_and_other_settings_free_them(
    clocked: Company,
) -> None:
    company = clocked
    dev = with_key(company, "dev")
    ask(company, dev)
    through_provider(company, claimed(company, "one"), "setup")
    assert start_jobs(company, "one") == []
    (elsewhere,) = start_jobs(company, "two")
    through_provider(company, elsewhere, "setup")
    assert start_jobs(company, "one") == start_jobs(company, "two") == []
    company.call(
        company.board,
        configuration.change,
        agent=dev.id,
        changes={"adapterConfig": {"secretRef": "key", "command": "/opt/claude"}},
    )
    assert len(start_jobs(company, "one")) == 1


@pytest.mark.requirement("FX-08", "FX-10")
def test_a_job_that_was_cut_off_alone_is_tried_three_times_and_one_for_once_is_not(
    clocked: Company,
) -> None:
    company, clock = clocked, clocked.app.clock
    assert isinstance(clock, VirtualClock)
    dev, other = with_key(company, "dev"), with_key(company, "other")
    ask(company, dev, at_most_once=True)
    ask(company, dev)
    ask(company, other)
    once, good, (job, _) = start_jobs(company)
    clock.advance(SECOND)
    end(company, good)
    through_provider(company, once, "network")
    assert [one["body"] for one in answers(company, dev)] == [
        "Background job failed: It said network."
    ]
    for epoch in (1, 2, 3):
        through_provider(company, (job, epoch), "network")
        assert start_jobs(company) == []
        clock.advance(MINUTE)
        ask(company, other)
        begun = start_jobs(company)
        clock.advance(SECOND)
        end(company, begun[-1])
    assert len(answers(company, dev)) == 2


@pytest.mark.requirement("FX-10")
def test_a_job_that_finds_a_limit_waits_and_goes_on_with_other_settings(small: Company) -> None:
    script = """echo '{"ok": false, "fault": "rate", "until": 4102444800, "error": "Enough."}'"""
    dev = program(small, "dev", script)
    ask(small, dev)
    ask(small, dev)
    waiting = "SELECT id FROM jobs WHERE status = 'queued' AND held_by IS NOT NULL"
    carried_out(small, lambda: len(small.sql(waiting)) == 2)
    assert all("Enough" in job["waits_for"] for job in listed(small))
    assert answers(small, dev) == []
    assert [job["attempts"] for job in listed(small)] == [0, 0]
    config = {"command": "/bin/sh", "args": ["-c", "echo done"]}
    changes = {"adapterConfig": config}
    small.call(small.board, configuration.change, agent=dev.id, changes=changes)
    carried_out(small, over(small, 2))
    assert bodies(answers(small, dev)) == ["done", "done"]
