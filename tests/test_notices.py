"""What needs a person leaves the instance: once, signed, and not when it was decided before."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from remit.clock import MINUTE
from remit.errors import BadInput, Unavailable
from remit.runtime.delivery import notify_commands
from remit.runtime.delivery.notifier import Notifier, text_of
from remit.services.connections import notice_planning, notices
from remit.services.connections.shapes import NoticeDocumentShape
from remit.services.identity import as_system
from remit.services.messaging import questions
from remit.services.people import users
from remit.testing.clock import VirtualClock
from tests.channel_stage import Receiver, receiving
from tests.company import Answer, Company
from tests.governance import approve, ask
from tests.mailing import send
from tests.organisation import refusal


@pytest.fixture
def outside() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def notifier(company: Company, file: Path | None = None) -> Notifier:
    return Notifier(company.app.gate, file or company.app.settings.home / "none", private=True)


def tick(company: Company, told: Notifier) -> int:
    made = 0
    while number := company.wait(told.tick()):
        made += number
    return made


def hook(company: Company, url: str) -> Answer:
    return company.call(company.board, notices.set_webhook, company=company.id, url=url)


def commanded(company: Company, folder: Path, command: str) -> Notifier:
    file = folder / "notify.json"
    me = company.call(company.board, users.me)["id"]
    notify_commands.write(file, me, command)
    return notifier(company, file)


def script(folder: Path, text: str) -> Path:
    found = folder / "tell"
    found.write_text(f"#!/bin/sh\n{text}\n")
    found.chmod(0o700)
    return found


def shown(company: Company) -> list[Answer]:
    found: list[Answer] = company.call(company.board, notices.show, company=company.id)["latest"]
    return found


# ── by a webhook ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-52")
def test_each_thing_that_needs_a_person_is_posted_once_and_signed(
    company: Company, outside: Receiver
) -> None:
    set_ = hook(company, outside.url)
    told = notifier(company)
    assert tick(company, told) == 0
    asked = company.call(company.ceo.caller, questions.ask, question="Which one?", to="board")
    send(company, company.ceo.caller, "board", "It rains.", subject="Weather")
    assert tick(company, told) == 2
    assert tick(company, told) == 0
    second, first = sorted(outside.got, key=lambda one: str(one.document["kind"]))
    document = first.document
    assert (document["kind"], document["subject"]) == ("question", asked["id"])
    assert (document["title"], document["agent"]) == ("Which one?", "ceo")
    assert document["next"] == f"remit question answer {asked['id']} …"
    assert second.document["title"] == "Weather"
    assert first.is_signed_with(set_["key"])
    assert not second.is_signed_with("another key")
    assert [one["status"] for one in shown(company)] == ["done", "done"]


@pytest.mark.requirement("FX-52")
def test_what_was_decided_meanwhile_does_not_go_out(company: Company, outside: Receiver) -> None:
    hook(company, outside.url)
    approval = ask(company, company.ceo.caller)
    company.call(as_system(), notice_planning.look, company=company.id, commands=[])
    approve(company, approval)
    assert tick(company, notifier(company)) == 0
    assert [(one["status"], one["why"]) for one in shown(company)] == [
        ("cancelled", "it was dealt with before")
    ]
    assert outside.got == []


@pytest.mark.requirement("FX-52")
def test_what_is_not_taken_is_tried_three_times_and_shown(
    company: Company,
    outside: Receiver,
    clock: VirtualClock,
) -> None:
    hook(company, outside.url)
    outside.answers = [500] * 9
    ask(company, company.ceo.caller)
    told = notifier(company)
    for _ in range(5):
        tick(company, told)
        clock.advance(3 * MINUTE)
    assert len(outside.got) == 3
    assert len({one.headers["idempotency-key"] for one in outside.got}) == 1
    (one,) = shown(company)
    assert (one["status"], one["attempt"]) == ("dead", 3)
    assert one["why"] == "it was answered with 500"


@pytest.mark.requirement("FX-52")
def test_a_killed_process_leaves_nothing_that_is_not_tried_again(
    company: Company,
    outside: Receiver,
    clock: VirtualClock,
) -> None:
    hook(company, outside.url)
    ask(company, company.ceo.caller)
    company.call(as_system(), notice_planning.look, company=company.id, commands=[])
    (notice,) = company.call(as_system(), notices.ready, commands=[])
    held = company.call(as_system(), notices.claim, notice=notice, worker="gone")
    assert held is not None
    assert company.call(as_system(), notices.claim, notice=notice, worker="other") is None
    told = notifier(company)
    assert tick(company, told) == 0
    early: Any = {"notice": notice, "epoch": held["epoch"]}
    assert refusal(company, as_system(), notices.take_over, **early) == "lost"
    company.wait(told.recover())
    assert tick(company, told) == 1
    late: Any = {"notice": notice, "epoch": held["epoch"]}
    assert refusal(company, as_system(), notices.delivered, **late) == "lost"


@pytest.mark.requirement("FX-52")
def test_people_set_their_own_and_agents_none(company: Company) -> None:
    url = "https://chat.example.org/me"
    assert refusal(company, company.ceo.caller, notices.set_webhook, url=url) == "invalid"
    assert refusal(company, company.ceo.caller, notices.show) == "invalid"
    hidden = "https://x.example/\u202emoc.evil"
    for bad in ("ftp://x.example", "http://169.254.169.254/latest", "nonsense", hidden):
        assert refusal(company, company.board, notices.set_webhook, url=bad) == "invalid"
    hook(company, url)
    ann = company.user("ann")
    assert company.call(ann, notices.show, company=company.id)["webhook"] is None
    company.call(company.board, notices.set_webhook, url=None)
    assert company.call(company.board, notices.show)["webhook"] is None


@pytest.mark.requirement("FX-52")
def test_whose_part_has_ended_is_told_nothing(company: Company, outside: Receiver) -> None:
    ann = company.user("ann")
    company.call(ann, notices.set_webhook, company=company.id, url=outside.url)
    company.call(company.board, users.remove, company=company.id, user="ann")
    ask(company, company.ceo.caller)
    assert tick(company, notifier(company)) == 0


@pytest.mark.requirement("FX-52")
def test_a_test_goes_out_in_every_way_that_one_is_told(
    company: Company, outside: Receiver, tmp_path: Path, clock: VirtualClock
) -> None:
    def try_out(**more: Any) -> Answer:
        return company.call(company.board, notices.try_out, company=company.id, **more)

    assert refusal(company, company.board, notices.try_out) == "conflict"
    set_ = hook(company, outside.url)
    tell = script(tmp_path, f"cat >> {tmp_path}/json")
    told = commanded(company, tmp_path, str(tell))
    assert try_out()["ways"] == ["webhook"]
    assert refusal(company, company.board, notices.try_out) == "conflict", "not again at once"
    clock.advance(MINUTE)
    assert try_out(by_command=True)["ways"] == ["command", "webhook"]
    assert tick(company, told) == 3
    assert tick(company, told) == 0
    assert [one.document["kind"] for one in outside.got] == ["test", "test"]
    assert outside.got[0].is_signed_with(set_["key"])
    assert json.loads((tmp_path / "json").read_text())["title"] == "This is a test"
    assert {(one["kind"], one["status"]) for one in shown(company)} == {("test", "done")}
    ann = company.user("ann")
    assert refusal(company, ann, notices.try_out, company=company.id) == "conflict"
    assert refusal(company, company.ceo.caller, notices.try_out) == "invalid"
    # Who has no part any more is not even told that.
    company.call(ann, notices.set_webhook, company=company.id, url=outside.url)
    company.call(ann, notices.try_out, company=company.id)
    company.call(company.board, users.remove, company=company.id, user="ann")
    assert tick(company, told) == 0
    about = company.sql("SELECT action FROM events WHERE action = 'notice.try'")
    assert len(about) == 3


# ── by a command ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-52")
def test_a_command_gets_it_as_text_and_as_json(company: Company, tmp_path: Path) -> None:
    tell = script(tmp_path, f'echo "$1" > {tmp_path}/text; cat > {tmp_path}/json')
    told = commanded(company, tmp_path, f"{tell} {{text}}")
    title = "--help; $(touch /tmp/x) `id` May I?"
    ask(company, company.ceo.caller, title)
    assert tick(company, told) == 1
    assert tick(company, told) == 0
    # What an agent wrote is one argument, which does not look like an option.
    why = "ceo asks for a decision"
    assert (tmp_path / "text").read_text() == f"approval from ceo: {title} ({why})\n"
    assert json.loads((tmp_path / "json").read_text())["title"] == title


@pytest.mark.requirement("FX-52")
def test_a_command_that_fails_is_tried_again_and_shown(
    company: Company, tmp_path: Path, clock: VirtualClock
) -> None:
    told = commanded(company, tmp_path, str(script(tmp_path, "echo no route; exit 3")))
    ask(company, company.ceo.caller)
    assert tick(company, told) == 1
    clock.advance(MINUTE)
    assert tick(company, told) == 1
    (one,) = shown(company)
    assert (one["status"], one["attempt"]) == ("queued", 2)
    assert one["why"] == "the command ended with 3: no route"


@pytest.mark.requirement("FX-52")
def test_a_command_has_nothing_of_the_instances_environment(
    company: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMIT_TOKEN", "secret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "secret")
    told = commanded(company, tmp_path, str(script(tmp_path, f"env > {tmp_path}/env")))
    ask(company, company.ceo.caller)
    tick(company, told)
    assert "secret" not in (tmp_path / "env").read_text()


@pytest.mark.requirement("FX-52")
def test_a_file_that_others_could_have_written_is_not_believed(
    company: Company, tmp_path: Path
) -> None:
    told = commanded(company, tmp_path, "true")
    file = tmp_path / "notify.json"
    assert file.stat().st_mode & 0o777 == 0o600
    file.chmod(0o622)
    with pytest.raises(Unavailable, match="can be written by others"):
        notify_commands.read(file)
    ask(company, company.ceo.caller)
    assert tick(company, told) == 0
    file.chmod(0o600)
    assert tick(company, told) == 1
    for text in ("[]", "{", '{"board": "true"}', json.dumps({company.ceo.id: 1})):
        file.write_text(text)
        with pytest.raises(Unavailable):
            notify_commands.read(file)
    if os.geteuid() == 0:
        os.chown(file, 12345, -1)
        with pytest.raises(Unavailable, match="somebody else"):
            notify_commands.read(file)


def test_commands_that_cannot_be_run_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "notify.json"
    user = "01a1e371-e91f-7716-b71b-1b4164f0a4b0"
    for command in ("", "'", "{text}", "no-such-program-here x"):
        with pytest.raises(BadInput):
            notify_commands.write(file, user, command)
    assert not file.exists()
    notify_commands.write(file, user, "true")
    notify_commands.write(file, user, None)
    assert notify_commands.read(file) == {}


def test_the_text_is_one_line_whatever_it_says() -> None:
    document = {"kind": "dead_letter", "agent": None, "title": "a\nb\x1b[2J\0c", "cause": "x.."}
    assert text_of(cast(NoticeDocumentShape, document)) == "dead letter: a b [2J c (x)"
