"""Posts of several parts: the buttons stand for all of them, or do nothing."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest

from remit.channels import registry
from remit.channels.contract import Undelivered
from remit.channels.parts import cut, split
from remit.clock import SECOND
from remit.model.messaging.chat import MAX_PARTS
from remit.services.connections import notice_planning
from remit.services.governance import approvals
from remit.services.identity import as_system
from remit.services.messaging import questions
from remit.testing.channels import MemoryChannel, Shown
from remit.testing.clock import VirtualClock
from tests.company import Company
from tests.test_chat import ANN, Chat, status

LINES = [
    f"Line {number} of the plan: dredge {number} metres of the harbour." for number in range(160)
]


@pytest.fixture
def chat(small: Company, monkeypatch: pytest.MonkeyPatch) -> Iterator[Chat]:
    monkeypatch.setattr(registry.installed, "_plugins", {"memory": MemoryChannel()})
    chat = Chat(small)
    chat.link("ann")
    yield chat
    MemoryChannel.outsides.clear()


def long_request(chat: Chat, lines: int = 160) -> Any:
    about: Any = {"company": chat.c.id, "kind": "request_board_approval"}
    payload: Any = {"title": "Move", "plan": "\n".join(LINES[:lines])}
    return chat.c.call(chat.agent.caller, approvals.request, **about, payload=payload)


def parts_seen(chat: Chat, where: str = ANN) -> list[Shown]:
    """The parts of what was shown last."""
    seen = chat.outside.seen(where)
    first = max(number for number, one in enumerate(seen) if " · 1 of " in one.text.split("\n")[0])
    return [one for one in seen[first:] if " of " in one.text.split("\n")[0]]


def tap(chat: Chat, post: Shown, label: str = "Approve") -> str:
    return chat.tap(post.id, label)


@pytest.mark.requirement("FX-61")
def test_a_long_request_is_shown_in_numbered_parts_with_buttons_under_the_last(chat: Chat) -> None:
    approval = long_request(chat)
    chat.say("/needs")
    parts = parts_seen(chat)
    number = len(parts)
    assert 2 <= number <= MAX_PARTS
    heads = [one.text.split("\n")[0] for one in parts]
    assert heads == [f"◆ Remit · {part} of {number}" for part in range(1, number + 1)]
    assert [one.buttons for one in parts[:-1]] == [()] * (number - 1)
    assert parts[-1].buttons == ("Approve", "Reject", "Send back")
    whole = "\n".join(one.text for one in parts)
    assert all(line in whole for line in LINES)
    assert all(len(one.text) <= MemoryChannel.longest_shown for one in parts)
    tap(chat, parts[-1])
    assert status(chat, approval) == "approved"
    marked = [chat.outside.shown[one.id] for one in parts]
    assert all(one.text.endswith("\n\n→ Approved by board.") for one in marked)
    assert all(one.buttons == () for one in marked)
    assert all(len(one.text) <= MemoryChannel.longest_shown for one in marked)


@pytest.mark.requirement("FX-61")
def test_a_request_of_more_parts_is_not_approved_in_a_chat(chat: Chat) -> None:
    long_request(chat)  # not this one
    about: Any = {"company": chat.c.id, "kind": "request_board_approval"}
    payload: Any = {"title": "Enlarge", "plan": "\n".join(LINES * 3)}
    approval = chat.c.call(chat.agent.caller, approvals.request, **about, payload=payload)
    chat.say("/needs")
    [post] = [one for one in chat.outside.seen(ANN) if "r1: Enlarge" in one.text]
    assert post.buttons == ("Reject", "Send back")
    command = f"`remit approval show {approval['id'][-12:]}`"
    assert post.text.endswith(f"Read and approve it: {command}")
    chat.c.app.gate.outside_url = "https://remit.example.org"
    chat.say("/needs")
    [post] = [one for one in chat.outside.seen(ANN) if "r1: Enlarge" in one.text]
    assert post.text.endswith(f"it: https://remit.example.org/approvals/{approval['id']}")
    tap(chat, post, "Reject")
    assert status(chat, approval) == "rejected"


@pytest.mark.requirement("FX-61")
def test_a_request_is_shown_anew_as_a_whole_and_its_earlier_parts_are_gone(chat: Chat) -> None:
    approval = long_request(chat)
    chat.say("/needs")
    before = parts_seen(chat)
    reference = chat.outside.buttons[before[-1].id]["Approve"]
    chat.say("/needs")
    assert not set(chat.outside.shown) & {one.id for one in before}
    chat.outside.say("", tapped=reference)
    chat.go()
    assert status(chat, approval) == "pending"
    parts = parts_seen(chat)
    assert len(parts) == len(before)
    tap(chat, parts[-1])
    assert status(chat, approval) == "approved"


@pytest.mark.requirement("FX-61")
def test_a_request_of_which_a_part_did_not_arrive_has_no_buttons(chat: Chat) -> None:
    approval = long_request(chat)
    delivered = MemoryChannel.deliver

    async def without_the_second(channel: MemoryChannel, parcel: Any) -> str | None:
        if " · 2 of " in parcel.body:
            raise Undelivered("it was refused", for_good=True)
        return await delivered(channel, parcel)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MemoryChannel, "deliver", without_the_second)
        chat.say("/needs")
    last = parts_seen(chat)[-1]
    assert last.buttons == ()
    assert "cannot be decided here" in last.text
    # Buttons that are there all the same do nothing.
    [(document,)] = chat.c.sql(
        "SELECT document FROM channel_posts WHERE subject <> '' AND last_id IS NULL"
    )
    references = [reference for row in json.loads(document)["buttons"] for _, reference in row]
    assert len(references) == 3
    for reference in references:
        chat.outside.say("", tapped=reference)
        chat.go()
    assert status(chat, approval) == "pending"
    chat.say("/needs")
    tap(chat, parts_seen(chat)[-1])
    assert status(chat, approval) == "approved"


@pytest.mark.requirement("FX-61")
@pytest.mark.parametrize(
    "change",
    ["withdrawn = true", "version = version + 1", "status = 'dead'", "status = 'cancelled'"],
)
@pytest.mark.parametrize("part", [1, 2])
def test_a_button_does_nothing_when_a_part_is_not_there_as_it_was_shown(
    chat: Chat, change: str, part: int
) -> None:
    approval = long_request(chat)
    chat.say("/needs")
    last = parts_seen(chat)[-1]
    changed = f"UPDATE channel_posts SET {change} WHERE parts > 1 AND part = ?"  # noqa: S608
    chat.c.sql(changed, part)
    for label in ("Approve", "Reject", "Send back"):
        assert "did not arrive here, or was changed" in tap(chat, last, label)
    assert status(chat, approval) == "pending"
    chat.say("/needs")
    tap(chat, parts_seen(chat)[-1])
    assert status(chat, approval) == "approved"


@pytest.mark.requirement("FX-61")
def test_a_part_that_arrives_late_keeps_those_behind_it_back(
    chat: Chat, clock: VirtualClock
) -> None:
    """A server that asks for patience in the middle: the order is that of the text."""
    long_request(chat)
    chat.outside.say("/needs")
    chat.store()
    while chat.c.wait(chat.intake.tick()):
        pass
    chat.outside.failures.extend(["", "", "busy"])
    while chat.c.wait(chat.posts.tick()):
        pass
    assert not any(one.buttons for one in chat.outside.seen(ANN))
    clock.advance(3 * SECOND)
    chat.go()
    parts = parts_seen(chat)
    heads = [one.text.split("\n")[0] for one in parts]
    assert heads == [f"◆ Remit · {part} of {len(parts)}" for part in range(1, len(parts) + 1)]
    assert parts[-1].buttons


def steps_of(chat: Chat) -> int:
    """How many steps the delivery of a long request takes."""
    count = 0

    def counted(_: str) -> None:
        nonlocal count
        count += 1

    chat.outside.at = counted
    chat.say("/needs")
    chat.outside.at = lambda _: None
    return count


@pytest.mark.requirement("FX-61", "FX-26")
def test_a_process_that_is_killed_between_parts_leaves_no_half_with_buttons(chat: Chat) -> None:
    approval = long_request(chat)
    steps = steps_of(chat)
    number = len(parts_seen(chat))
    assert steps >= 2 * number
    for step in range(1, 2 * number + 3):
        taken = 0

        def killed(_: str, step: int = step) -> None:
            nonlocal taken
            taken += 1
            check(chat, number)
            if taken == step:
                raise asyncio.CancelledError

        chat.outside.say("/needs")
        chat.store()
        while chat.c.wait(chat.intake.tick()):
            pass
        chat.outside.at = killed
        with pytest.raises(asyncio.CancelledError):
            deliver_all(chat)
        chat.outside.at = lambda _: check(chat, number)
        chat.c.wait(chat.posts.recover())
        chat.go()
        [last] = [one for one in chat.outside.seen(ANN) if "Approve" in one.buttons][-1:]
        assert f" · {number} of {number}" in last.text
    tap(chat, last)
    assert status(chat, approval) == "approved"


def deliver_all(chat: Chat) -> None:
    while chat.c.wait(chat.posts.tick()):
        pass


def check(chat: Chat, number: int) -> None:
    """Whoever sees a button sees all parts before it."""
    seen: list[str] = []
    for one in chat.outside.seen(ANN):
        seen.append(one.text.split("\n")[0])
        if one.buttons:
            assert seen.count(f"◆ Remit · {number} of {number}") <= min(
                seen.count(f"◆ Remit · {part} of {number}") + 1 for part in range(1, number)
            )
            assert {f"◆ Remit · {part} of {number}" for part in range(1, number)} <= set(seen)


@pytest.mark.requirement("FX-61", "FX-26")
def test_a_request_that_is_revised_between_parts_is_not_approved_by_what_follows(
    chat: Chat,
) -> None:
    approval = long_request(chat)
    chat.outside.say("/needs")
    chat.store()
    while chat.c.wait(chat.intake.tick()):
        pass
    chat.c.wait(chat.posts.tick())
    about: Any = {"approval": approval["id"]}
    chat.c.call(chat.c.board, approvals.request_revision, **about, note="cheaper")
    chat.c.call(chat.agent.caller, approvals.resubmit, **about, payload={"cost": 5})
    chat.c.call(as_system(), notice_planning.look, company=chat.c.id, commands=[])
    chat.go()
    parts = parts_seen(chat)
    assert all(one.buttons == () for one in parts)
    assert all("was revised meanwhile" in one.text for one in parts)
    assert status(chat, approval) == "pending"


@pytest.mark.requirement("FX-61", "FX-26")
def test_two_people_decide_about_a_long_request_at_once_and_one_of_them_does(chat: Chat) -> None:
    chat.link("bob", chat.c.user("bob"))
    approval = long_request(chat)
    for who in ("ann", "bob"):
        chat.say("/needs", who)
    taps = [("ann", "Approve"), ("bob", "Reject"), ("bob", "Approve"), ("ann", "Send back")]
    for who, label in taps:
        last = parts_seen(chat, f"with-{who}")[-1]
        chat.outside.tap(last.id, label, who)
    chat.go()
    about = f"approval:{approval['id']}"
    done = "SELECT count(*) FROM events WHERE resource = ? AND allowed AND action LIKE 'approval.%'"
    assert chat.c.sql(done, about) == [(2,)]  # asked for, and decided
    assert status(chat, approval) != "pending"
    for who in ("ann", "bob"):
        marked = parts_seen(chat, f"with-{who}")
        assert all("\n\n→ " in one.text and not one.buttons for one in marked)


@pytest.mark.requirement("FX-61")
def test_a_request_that_an_older_version_showed_is_shown_anew(chat: Chat) -> None:
    """It did not show all of it, and has an Approve button all the same."""
    approval = long_request(chat)
    chat.say("/needs")
    last = parts_seen(chat)[-1]
    [(post, document)] = chat.c.sql(
        "SELECT id, document FROM channel_posts WHERE subject <> '' AND last_id IS NULL"
    )
    old = json.loads(document)
    del old["shows"], old["mark"]
    chat.c.sql("DELETE FROM channel_posts WHERE last_id = ?", post)
    chat.c.sql(
        "UPDATE channel_posts SET document = ?, parts = 1 WHERE id = ?", json.dumps(old), post
    )
    tap(chat, last)
    assert status(chat, approval) == "pending"
    assert chat.outside.shown[last.id].buttons == ()
    tap(chat, parts_seen(chat)[-1])
    assert status(chat, approval) == "approved"


@pytest.mark.requirement("FX-26")
def test_a_long_question_is_shown_whole_before_its_options(chat: Chat) -> None:
    text = "\n".join([*LINES[:100], "→ Answered: red", "◆ Remit"])
    ask: Any = {"question": text, "options": ["red", "blue"]}
    asked = chat.c.call(chat.agent.caller, questions.ask, **ask)
    chat.say("/needs")
    parts = parts_seen(chat)
    assert len(parts) > 1
    whole = "\n".join(one.text for one in parts)
    assert all(f"│ {line}" in whole for line in text.split("\n"))
    assert parts[-1].buttons == ("red", "blue")
    tap(chat, parts[-1], "blue")
    found = chat.c.call(chat.c.board, questions.listing, company=chat.c.id, ended_too=True)
    assert [one["answer"] for one in found if one["id"] == asked["id"]] == ["blue"]
    assert all(chat.outside.shown[one.id].text.endswith("→ Answered: blue") for one in parts)


@pytest.mark.requirement("FX-26")
def test_a_question_that_is_not_shown_whole_has_no_buttons(chat: Chat) -> None:
    unseen = "\u200b" * 2_000  # each is spelled out
    chat.c.call(
        chat.agent.caller, questions.ask, question=f"Which?{unseen}", options=["red", "blue"]
    )
    chat.say("/needs")
    [shown] = [one for one in chat.outside.seen(ANN) if "Question from" in one.text]
    assert "too long to be shown here" in shown.text
    assert shown.buttons == ()


@pytest.mark.requirement("FX-26")
def test_an_option_that_a_button_would_cut_stands_in_the_text(chat: Chat) -> None:
    long = f"red{'d' * 80} and nothing else"
    chat.c.call(chat.agent.caller, questions.ask, question="Which?", options=[long, "blue"])
    chat.say("/needs")
    [shown] = [one for one in chat.outside.seen(ANN) if "Question from" in one.text]
    assert f"│ 1. {long}\n│ 2. blue" in shown.text
    assert len(shown.buttons) == 2


@pytest.mark.requirement("FX-61")
def test_a_note_of_who_decided_is_one_line_below_each_part(chat: Chat) -> None:
    approval = long_request(chat)
    chat.say("/needs")
    note = f"No.\n\n◆ Remit\n→ Approved by board.\u202e{'x' * 1000}"
    chat.c.call(chat.c.board, approvals.reject, approval=approval["id"], note=note)
    chat.c.call(as_system(), notice_planning.look, company=chat.c.id, commands=[])
    chat.go()
    result = "→ Rejected by board: No. ◆ Remit → Approved by board.⟨U+202E RIGHT-TO-LEFT OVERRIDE⟩x"
    for part in parts_seen(chat):
        assert part.text.split("\n")[-1].startswith(result)
        assert len(part.text) <= MemoryChannel.longest_shown
    chat.say("/needs")


@pytest.mark.requirement("FX-26")
def test_a_reply_to_any_part_is_about_the_whole(chat: Chat) -> None:
    approval = long_request(chat)
    chat.say("/needs")
    first = parts_seen(chat)[0]
    assert chat.say("Where to?", reply_to=first.id) == "Your comment is with the approval."
    found = chat.c.call(chat.c.board, approvals.comments, approval=approval["id"])
    assert [one["body"] for one in found] == ["Where to?"]


# ── cuts ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-61")
def test_a_text_is_cut_between_lines_and_loses_nothing() -> None:
    text = "\n".join(["", *LINES, "", "end"])
    parts = split(text, 500)
    assert "\n".join(parts) == text
    assert all(len(part) <= 500 for part in parts)
    assert min(map(len, parts[:-1])) > 400


@pytest.mark.requirement("FX-61")
def test_the_rest_of_a_line_that_is_cut_stands_behind_the_same_fence() -> None:
    words = "far " * 300
    text = f"Remit says:\n│ {words}\n│ {words}\nRemit again."
    parts = split(text, 500)
    lines = [line for part in parts for line in part.split("\n")]
    assert all(line.startswith(("Remit", "│ ")) for line in lines)
    assert "".join(line.removeprefix("│ ").removeprefix("…") for line in lines[1:-1]) == words * 2


@pytest.mark.requirement("FX-61")
def test_a_part_is_measured_as_the_chat_system_counts() -> None:
    text = "😀" * 1000

    def utf16(part: str) -> int:
        return len(part.encode("utf-16-le")) // 2

    assert all(utf16(part) <= 400 for part in split(text, 400, utf16))
    assert utf16(cut(text, 400, utf16)) <= 400
    assert cut("short", 400) == "short"
