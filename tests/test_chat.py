"""From a chat: who is linked acts as themselves, and nothing happens that the web would refuse."""

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from remit.channels import registry
from remit.channels.contract import Connection, Incoming, IncomingFile, Sender
from remit.clock import DAY, HOUR, MINUTE, SECOND
from remit.errors import BadInput, Conflict, NotFound, RemitError
from remit.ids import token_digest
from remit.model.messaging.authorship import parted
from remit.model.messaging.chat import BUTTON_LASTS
from remit.model.work.attachment import LARGEST_INCOMING, refusal
from remit.runtime.delivery import receiving
from remit.runtime.delivery.connecting import Connector
from remit.runtime.delivery.outbox import Posts
from remit.runtime.delivery.receiving import IntakeLoop, Receivers
from remit.services.chat import accounts, commands, handling, intake, receivers
from remit.services.connections import bindings, notice_planning, notice_rules, secrets
from remit.services.governance import approvals
from remit.services.identity import Caller, as_linked, as_system
from remit.services.knowledge import files as library
from remit.services.messaging import inbox, pending_items, questions
from remit.services.organisation import agents, halts
from remit.services.people import sessions, tokens, users
from remit.services.record import events
from remit.testing.channels import MemoryChannel, Outside, Shown
from remit.testing.clock import VirtualClock
from tests.channel_stage import deliver
from tests.company import Company, Member
from tests.mailing import send
from tests.organisation import work
from tests.test_limits import set_limits
from tests.working import claim, end, ready

ANN = "with-ann"


class Chat:
    """A company with an agent that is bound to a channel whose other side is in the test."""

    def __init__(self, company: Company, agent: Member | None = None, name: str = "one") -> None:
        self.c = company
        self.agent = agent or company.ceo
        self.outside = MemoryChannel.outsides[name] = Outside()
        connector = Connector(company.app.vault.value)
        self.intake = IntakeLoop(company.app.gate, company.app.ids, connector)
        self.posts = Posts(company.app.gate, connector)
        made = company.call(
            company.board,
            bindings.add,
            company=company.id,
            agent=self.agent.id,
            kind="memory",
            config={"name": name},
        )
        self.binding = made["id"]
        self.epoch = 0
        self.listen()

    def listen(self) -> None:
        found = self.c.call(as_system(), receivers.claim, binding=self.binding, worker="w")
        assert found is not None
        self.epoch = found["epoch"]

    def store(self) -> None:
        """Everything that was said is stored, as who listens does it."""
        said = [intake.document_of(one) for one in self.outside.coming]
        self.outside.coming.clear()
        about = {"binding": self.binding, "epoch": self.epoch}
        self.c.call(as_system(), intake.store, **about, said=said)

    def go(self) -> None:
        """Until all that came is dealt with and shown."""
        self.store()
        while self.c.wait(self.intake.tick()):
            pass
        while self.c.wait(self.posts.tick()):
            pass

    def say(self, text: str, who: str = "ann", where: str = "", **more: Any) -> str:
        """Somebody says something; answers the words that are seen there last."""
        said = self.outside.say(text, who, where, **more)
        self.go()
        seen = self.outside.seen(said.conversation)
        return words_of(seen[-1]) if seen else ""

    def tap(self, message: str, label: str, who: str = "ann") -> str:
        said = self.outside.tap(message, label, who)
        self.go()
        return words_of(self.outside.seen(said.conversation)[-1])

    def link(self, who: str, caller: Caller | None = None) -> str:
        code = self.c.call(caller or self.c.board, accounts.code, kind="memory")["code"]
        return self.say(code, who)

    def letters(self) -> list[Any]:
        return list(self.c.call(self.agent.caller, inbox.take)["messages"])

    def halted(self) -> bool:
        return bool(self.c.call(self.c.board, halts.listing, company=self.c.id))


@pytest.fixture
def chat(small: Company, monkeypatch: pytest.MonkeyPatch) -> Iterator[Chat]:
    monkeypatch.setattr(registry.installed, "_plugins", {"memory": MemoryChannel()})
    yield Chat(small)
    MemoryChannel.outsides.clear()


def words_of(message: Shown) -> str:
    """The text of a message without the line that names its author."""
    author, words = parted(message.text)
    assert author, f"nobody knows who wrote {message.text[:80]!r}"
    return words


def actions(company: Company, prefix: str) -> list[dict[str, Any]]:
    found = company.call(company.board, events.listing, company=company.id)
    return [one for one in found[::-1] if one["action"].startswith(prefix)]


def asked(chat: Chat) -> Any:
    about = {"company": chat.c.id, "kind": "request_board_approval"}
    payload = {"title": "Move", "cost": 7}
    return chat.c.call(chat.agent.caller, approvals.request, **about, payload=payload)


def status(chat: Chat, approval: Any) -> str:
    return str(chat.c.call(chat.c.board, approvals.show, approval=approval["id"])["status"])


# ── who speaks ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-25", "HB-12", "HB-37")
def test_a_linked_account_speaks_as_its_person_and_nobody_else_does(chat: Chat) -> None:
    chat.say("I am the boss.", "eve")
    assert "is linked to" in chat.link("ann")
    chat.say("Please begin.")
    chat.say("I am Ann, too.", "eve", "room")
    chat.say("Me again.", "ann", "room")
    outside, person, eve, ann = chat.letters()
    assert [one["from_board"] for one in (outside, person, eve, ann)] == [False, True, False, True]
    assert (person["sender"], person["outside_sender"]) == (f"channel:memory:{ANN}", "Ann")
    assert ann["sender"] == "channel:memory:room"
    turn = chat.c.call(chat.agent.caller, inbox.turn).text
    assert "sender: Eve in memory:room (outside)\nfrom-board: no\nfrom-outside: yes" in turn
    assert "sender: Ann in memory:room (user:" in turn
    [linked] = chat.c.call(chat.c.board, accounts.mine)
    used = actions(chat.c, "chat.use")
    assert {one["details"]["account"] for one in used} == {linked["id"]}
    assert all(one["details"]["via"] == "memory:ann" for one in used)


@pytest.mark.requirement("HB-11")
def test_an_agent_of_level_boss_is_not_taken_for_a_person(chat: Chat) -> None:
    worker = chat.c.agent("worker")
    send(chat.c, chat.agent.caller, f"agent:{worker.id}", "Begin.")
    [letter] = chat.c.call(worker.caller, inbox.take)["messages"]
    assert not letter["from_board"]


@pytest.mark.requirement("FX-25")
def test_a_code_links_once_in_a_direct_conversation_and_for_a_short_time(
    chat: Chat, clock: VirtualClock
) -> None:
    code = chat.c.call(chat.c.board, accounts.code, kind="memory")["code"]
    chat.say(code, "ann", "room")
    assert chat.c.call(chat.c.board, accounts.mine) == []
    newer = chat.c.call(chat.c.board, accounts.code, kind="memory")["code"]
    assert "not good here" in chat.say(code)
    assert "is linked" in chat.say(f"/start {newer}")
    assert "not good here" in chat.say(newer, "eve")
    late = chat.c.call(chat.c.board, accounts.code, kind="memory")["code"]
    clock.advance(HOUR)
    assert "not good here" in chat.say(late, "eve")
    assert [one["account"] for one in chat.c.call(chat.c.board, accounts.mine)] == ["ann"]
    everything = str(actions(chat.c, ""))
    assert newer not in everything
    assert token_digest(newer) not in everything


@pytest.mark.requirement("FX-25")
def test_a_revoked_account_is_from_outside_again(chat: Chat) -> None:
    chat.link("ann")
    [linked] = chat.c.call(chat.c.board, accounts.mine)
    chat.c.call(chat.c.board, accounts.revoke, account=linked["id"])
    assert "not linked" in chat.say("/stop")
    assert not chat.halted()
    chat.say("Hello?")
    assert [one["from_board"] for one in chat.letters()] == [False]


@pytest.mark.requirement("FX-25")
def test_an_account_ends_with_what_its_person_was_signed_in_with(
    chat: Chat, clock: VirtualClock
) -> None:
    """Expired or revoked; then it can be linked again."""

    def signed_in(**asked: Any) -> tuple[Caller, str]:
        token = chat.c.call(chat.c.board, tokens.create, **asked)
        session = chat.c.call(Caller(token["token"]), sessions.open_)["token"]
        return Caller(session), token["id"]

    chat.link("ann", signed_in(days=1)[0])
    assert "ceo of" in chat.say("/status")
    clock.advance(DAY)
    assert "not linked" in chat.say("/stop")
    assert chat.c.call(chat.c.board, accounts.mine) == []
    session, token = signed_in()
    assert "is linked" in chat.link("ann", session)
    assert "ceo of" in chat.say("/status")
    chat.c.call(chat.c.board, tokens.revoke, token=token)
    assert "not linked" in chat.say("/stop")
    assert not chat.halted()


@pytest.mark.requirement("FX-25")
def test_who_is_not_sure_to_be_the_account_is_from_outside(chat: Chat) -> None:
    chat.link("ann")
    chat.say("/stop", sender=Sender("ann", "Ann", sure=False))
    assert not chat.halted()
    chat.say("Pay.", sender=Sender("ann", "Ann", sure=False))
    assert [one["from_board"] for one in chat.letters()] == [False]


@pytest.mark.requirement("FX-25")
def test_who_left_the_company_is_not_known_in_it(chat: Chat) -> None:
    """Nor does somebody who has no more than the chat account make it stay."""
    bob, elsewhere = chat.c.user("bob"), chat.c.second_company()
    chat.link("bob", bob)
    [linked] = chat.c.call(bob, accounts.mine)
    in_chat = as_linked(linked["id"], chat.c.id)
    with pytest.raises(NotFound, match="where one signed in"):
        chat.c.call(in_chat, accounts.code, kind="memory")
    with pytest.raises(NotFound, match="where one signed in"):
        chat.c.call(in_chat, accounts.revoke, account=linked["id"])
    about: Any = {"company": elsewhere.id, "name": "bob", "role": "observer"}
    chat.c.call(elsewhere.board, users.add, **about)
    assert "ceo of" in chat.say("/status", "bob")
    chat.c.call(chat.c.board, users.remove, company=chat.c.id, user="bob")
    assert "not linked" in chat.say("/stop", "bob")
    assert not chat.halted()


@pytest.mark.requirement("FX-25")
def test_a_message_is_handled_for_nobody_but_its_sender(chat: Chat) -> None:
    """The verb itself compares the caller with the account, whoever calls it."""
    bob = chat.c.user("bob")
    chat.link("ann")
    chat.link("bob", bob)
    [of_bob] = chat.c.call(bob, accounts.mine)
    [of_ann] = chat.c.call(chat.c.board, accounts.mine)
    chat.outside.say("/stop", "ann")
    chat.store()
    ((waiting,),) = chat.c.sql("SELECT id FROM channel_intake WHERE status = 'queued'")
    claimed = chat.c.call(as_system(), intake.claim, intake=waiting, worker="w")
    assert claimed is not None
    about: Any = {"intake_id": waiting, "epoch": claimed["epoch"]}
    for caller in (as_linked(of_bob["id"], chat.c.id), bob, chat.c.board, as_system()):
        with pytest.raises(RemitError):
            chat.c.call(caller, handling.handle, **about)
    assert not chat.halted()
    chat.c.call(as_linked(of_ann["id"], chat.c.id), handling.handle, **about)
    assert chat.halted(), "the control: its sender stops the company"


# ── commands ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-26", "HB-60")
def test_a_linked_person_asks_stops_and_lets_go(chat: Chat) -> None:
    chat.link("ann")
    assert "ceo of" in chat.say("/status")
    assert "does nothing now" in chat.say("/now")
    assert "Nothing awaits you" in chat.say("/needs")
    assert "/abort" in chat.say("/help")
    assert "new conversation" in chat.say("/new")
    assert "is not running" in chat.say("/abort")
    chat.c.run(chat.agent)
    assert "is aborted" in chat.say("/abort")
    assert "is stopped" in chat.say("/stop")
    assert chat.halted()
    assert "goes on" in chat.say("/go")
    assert not chat.halted()
    assert "The company is stopped" in chat.say("/stop all")
    assert "goes on" in chat.say("/go all")
    assert "There is no such command" in chat.say("/fly")
    assert "is not understood" in chat.say("/stop it")
    assert chat.letters() == []


@pytest.mark.requirement("FX-26")
@pytest.mark.parametrize("command", [f"/{one}" for one in commands.COMMANDS])
def test_nobody_who_is_not_linked_commands_anything(chat: Chat, command: str) -> None:
    before = chat.c.sql("SELECT count(*) FROM agent_sessions")
    assert "not linked" in chat.say(command, "eve")
    assert "not linked" in chat.say(command, "eve", "room")
    assert not chat.halted()
    assert before == chat.c.sql("SELECT count(*) FROM agent_sessions")
    assert chat.letters() == []


@pytest.mark.requirement("FX-26")
@pytest.mark.parametrize("command", ["/status", "/now", "/new", "/abort", "/stop", "/go", "Do it."])
def test_who_has_too_small_a_part_may_not_from_a_chat_either(chat: Chat, command: str) -> None:
    chat.c.agent("branch")
    chat.link("bob", chat.c.user("bob", scope="branch"))
    chat.c.run(chat.agent)
    answer = chat.say(command, "bob")
    assert answer
    assert "is linked" not in answer
    assert not chat.halted()
    assert chat.letters() == []
    done = [one for one in actions(chat.c, "") if one["allowed"]]
    assert not [one for one in done if one["action"] in ("agent.abort", "halt.stop")]


@pytest.mark.requirement("FX-26")
def test_who_has_too_small_a_part_is_shown_nothing_of_the_rest(chat: Chat) -> None:
    chat.c.agent("branch")
    chat.link("bob", chat.c.user("bob", scope="branch"))
    asked(chat)
    assert chat.say("/needs", "bob") == "Nothing awaits you."
    assert "/needs" in chat.say("/help", "bob")
    assert not any("Move" in one.text for one in chat.outside.seen("with-bob"))
    chat.link("ann")
    assert "awaits you" in chat.say("/needs")


@pytest.mark.requirement("FX-26")
def test_in_a_room_nothing_is_shown_that_others_may_not_see(chat: Chat) -> None:
    chat.link("ann")
    asked(chat)
    assert chat.say("/needs", "ann", "room") == "I answered you directly."
    assert [*map(words_of, chat.outside.seen("room"))] == ["I answered you directly."]
    assert any("r1: Move" in one.text for one in chat.outside.seen(ANN))


@pytest.mark.requirement("FX-26")
def test_a_person_is_told_what_the_agent_works_on_and_why_it_does_not_start(chat: Chat) -> None:
    chat.link("ann")
    run = chat.c.run(chat.agent)
    goal = work(chat.c, chat.agent.caller, chat.agent.id, "Dredge the harbour")
    about = json.dumps([chat.c.app.ids.new(), goal])  # the first was purged
    chat.c.sql("UPDATE runs SET outcome_ids = ? WHERE id = ?", about, run.id)
    assert chat.say("/now").splitlines()[1:] == ["- Dredge the harbour"]
    end(chat.c, run)
    chat.c.call(chat.c.board, agents.pause, agent=chat.agent.id)
    assert "paused" in chat.say("Please begin.")
    assert [one["body"] for one in chat.letters()] == ["Please begin."]


@pytest.mark.requirement("FX-26")
def test_a_long_list_of_what_awaits_a_person_is_cut_and_mail_has_no_buttons(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat.link("ann")
    for subject in ("One", "Two", "Three"):
        send(chat.c, chat.agent.caller, "board", "Look.", subject=subject)
    listed = chat.say("/needs").splitlines()
    assert listed[0] == "3 things await you."
    assert len(listed) == 4
    assert all(line.startswith("- mail: ") for line in listed[1:])
    monkeypatch.setattr(commands, "MOST_SHOWN", 2)
    assert len(chat.say("/needs").splitlines()) == 3


# ── buttons ─────────────────────────────────────────────────────────────────────────────────────


def shown(chat: Chat, words: str) -> Any:
    chat.say("/needs")
    return next(one for one in chat.outside.seen(ANN)[::-1] if words in one.text)


@pytest.mark.requirement("FX-26")
@pytest.mark.parametrize(
    ("label", "becomes"),
    [("Approve", "approved"), ("Reject", "rejected"), ("Send back", "revision_requested")],
)
def test_an_approval_is_decided_by_tapping_once(chat: Chat, label: str, becomes: str) -> None:
    chat.link("ann")
    approval = asked(chat)
    post = shown(chat, "r1: Move")
    assert "cost: 7" in post.text
    assert post.buttons == ("Approve", "Reject", "Send back")
    references = dict(chat.outside.buttons[post.id])
    chat.tap(post.id, label)
    assert status(chat, approval) == becomes
    edited = chat.outside.shown[post.id]
    assert edited.buttons == ()
    count = len(actions(chat.c, "approval."))
    for reference in references.values():
        chat.outside.say("", tapped=reference)
        chat.go()
        assert "done already" in chat.outside.seen(ANN)[-1].text
    assert len(actions(chat.c, "approval.")) == count


@pytest.mark.requirement("FX-26")
def test_a_stale_button_decides_nothing_and_shows_what_is_asked_now(chat: Chat) -> None:
    chat.link("ann")
    approval = asked(chat)
    post = shown(chat, "r1: Move")
    about = {"approval": approval["id"]}
    chat.c.call(chat.c.board, approvals.request_revision, **about, note="cheaper")
    chat.c.call(chat.agent.caller, approvals.resubmit, **about, payload={"cost": 5})
    chat.tap(post.id, "Approve")
    assert status(chat, approval) == "pending"
    assert chat.outside.shown[post.id].buttons == ()
    newer = next(one for one in chat.outside.seen(ANN)[::-1] if one.buttons)
    assert "r2: " in newer.text
    assert "cost: 5" in newer.text
    changed = newer.text.partition("CHANGED SINCE REVISION 1, THE ONE BEFORE\n")[2]
    assert changed.startswith("cost:\n│ ")
    assert "│ + 5" in changed
    chat.tap(newer.id, "Approve")
    assert status(chat, approval) == "approved"


@pytest.mark.requirement("FX-27")
@pytest.mark.parametrize("verb", [approvals.approve, approvals.reject, approvals.request_revision])
def test_what_is_decided_elsewhere_is_marked_wherever_it_was_asked_for(
    chat: Chat, verb: Any
) -> None:
    """By somebody else, and although nobody is told of approvals in this chat."""
    chat.link("ann")
    chat.link("bob", chat.c.user("bob"))
    rules: Any = {"routes": {"all": []}}
    chat.c.call(chat.c.board, notice_rules.change, company=chat.c.id, **rules)
    approval = asked(chat)
    options = ["red", "blue"]
    ask = chat.c.call(chat.agent.caller, questions.ask, question="Which colour?", options=options)
    seen = []
    for who in ("ann", "bob"):
        chat.say("/needs", who)
        seen += [one.id for one in chat.outside.seen(f"with-{who}") if one.buttons]
    assert len(seen) == 4
    look: Any = {"company": chat.c.id, "commands": []}
    chat.c.call(as_system(), notice_planning.look, **look)
    chat.go()
    assert all(chat.outside.shown[one].buttons for one in seen)
    note = {"note": "cheaper"} if verb is approvals.request_revision else {}
    chat.c.call(chat.c.board, verb, approval=approval["id"], **note)
    chat.c.call(chat.c.board, questions.answer, question=ask["id"], answer="red")
    chat.c.call(as_system(), notice_planning.look, **look)
    chat.go()
    assert all(chat.outside.shown[one].buttons == () for one in seen)
    became = status(chat, approval).replace("revision_requested", "sent back")
    texts = [chat.outside.shown[one].text for one in seen]
    assert sum(f"→ {became}" in one.casefold() for one in texts) == 2
    assert sum("Answered: red" in one for one in texts) == 2
    assert chat.c.call(as_system(), notice_planning.look, **look) == 0


@pytest.mark.requirement("FX-26")
def test_a_button_is_no_authority(chat: Chat) -> None:
    """Somebody unlinked, with too small a part, elsewhere, and with a guess."""
    chat.link("ann")
    approval = asked(chat)
    post = shown(chat, "r1: Move")
    reference = chat.outside.buttons[post.id]["Approve"]
    chat.c.agent("branch")
    chat.link("bob", chat.c.user("bob", scope="branch"))
    for who, where, text in (
        ("eve", "", reference),
        ("bob", "", reference),
        ("ann", "room", reference),
        ("ann", "", "guessed"),
    ):
        chat.outside.say("", who, where, tapped=text)
        chat.go()
        assert status(chat, approval) == "pending"
    # In the conversation where it was shown, but by somebody who may not.
    chat.outside.say("", "bob", ANN, tapped=reference)
    chat.go()
    assert status(chat, approval) == "pending"
    chat.tap(post.id, "Approve")
    assert status(chat, approval) == "approved"


@pytest.mark.requirement("FX-26")
def test_a_button_ends(chat: Chat, clock: VirtualClock) -> None:
    chat.link("ann")
    approval = asked(chat)
    post = shown(chat, "r1: Move")
    clock.advance(BUTTON_LASTS)
    assert "too old" in chat.tap(post.id, "Approve")
    assert status(chat, approval) == "pending"


@pytest.mark.requirement("FX-26")
@pytest.mark.parametrize("label", ["Approve", "Reject", "Send back", "red"])
def test_no_button_works_for_whom_where_and_when_it_is_not(
    chat: Chat, clock: VirtualClock, label: str
) -> None:
    """Unlinked, with too small a part, no member any more, in a room, and too old: nothing."""
    chat.link("ann")
    asked(chat)
    options = ["red", "blue"]
    chat.c.call(chat.agent.caller, questions.ask, question="Which?", options=options, to="board")
    chat.say("/needs")
    chat.c.agent("branch")
    chat.link("bob", chat.c.user("bob", scope="branch"))
    chat.link("cyd", chat.c.user("cyd"))
    chat.c.call(chat.c.board, users.remove, company=chat.c.id, user="cyd")
    [reference] = [one[label] for one in chat.outside.buttons.values() if label in one]

    def decided() -> list[Any]:
        verbs = ("approval.approve", "approval.reject", "approval.revise")
        done = [one for one in actions(chat.c, "") if one["allowed"]]
        return [one for one in done if one["action"] in (*verbs, "question.answer")]

    before = len(decided())
    for who, where in (("eve", ANN), ("bob", ANN), ("cyd", ANN), ("ann", "room")):
        chat.outside.say("", who, where, tapped=reference)
        chat.go()
        assert len(decided()) == before, who
    twice = chat.outside.say("", "ann", tapped=reference)
    chat.outside.say("", "ann", tapped=reference)
    chat.go()
    chat.outside.coming.append(twice)
    chat.go()
    assert len(decided()) == before + 1
    clock.advance(60 * 24 * HOUR)
    chat.outside.say("", "ann", tapped=reference)
    chat.go()
    assert "too old" in chat.outside.seen(ANN)[-1].text


@pytest.mark.requirement("FX-26", "HB-60")
@pytest.mark.parametrize("command", list(commands.COMMANDS))
def test_a_replayed_command_does_nothing_more_and_a_former_member_is_unknown(
    chat: Chat, command: str
) -> None:
    chat.link("ann")
    chat.link("cyd", chat.c.user("cyd"))
    chat.c.call(chat.c.board, users.remove, company=chat.c.id, user="cyd")
    chat.c.run(chat.agent)
    assert "not linked" in chat.say(f"/{command}", "cyd")
    said = chat.outside.say(f"/{command}")
    chat.outside.coming.append(said)
    chat.go()
    seen, done = len(chat.outside.seen(ANN)), len(actions(chat.c, ""))
    chat.outside.coming.append(said)
    chat.go()
    assert (len(chat.outside.seen(ANN)), len(actions(chat.c, ""))) == (seen, done)


@pytest.mark.requirement("FX-26")
def test_of_several_taps_at_once_one_decides(chat: Chat) -> None:
    chat.link("ann")
    chat.link("anns-phone")
    approval = asked(chat)
    post = shown(chat, "r1: Move")
    buttons = chat.outside.buttons[post.id]
    for number, label in enumerate(("Approve", "Reject", "Approve", "Send back")):
        who = "ann" if number % 2 else "anns-phone"
        chat.outside.say("", who, ANN, tapped=buttons[label])
    chat.go()
    about = f"approval:{approval['id']}"
    found = [one for one in actions(chat.c, "approval.") if one["resource"] == about]
    assert len(found) == 2, found  # asked for, and decided
    assert status(chat, approval) != "pending"


@pytest.mark.requirement("FX-26")
def test_a_question_is_answered_by_tapping_or_by_replying(chat: Chat) -> None:
    chat.link("ann")
    ask = chat.c.call(
        chat.agent.caller, questions.ask, question="Which colour?", options=["red", "blue"]
    )
    post = shown(chat, "Which colour?")
    chat.tap(post.id, "blue")
    assert "Answered: blue" in chat.outside.shown[post.id].text
    free = chat.c.call(chat.agent.caller, questions.ask, question="Which day?")
    post = shown(chat, "Which day?")
    chat.say("Friday", reply_to=post.id)
    found = chat.c.call(chat.c.board, questions.listing, company=chat.c.id, ended_too=True)
    answers = {one["id"]: one["answer"] for one in found}
    assert answers == {ask["id"]: "blue", free["id"]: "Friday"}


@pytest.mark.requirement("FX-26")
def test_a_reply_to_an_approval_is_a_comment_and_another_reply_is_mail(chat: Chat) -> None:
    chat.link("ann")
    approval = asked(chat)
    post = shown(chat, "r1: Move")
    assert chat.say("Where to?", reply_to=post.id) == "Your comment is with the approval."
    found = chat.c.call(chat.c.board, approvals.comments, approval=approval["id"])
    assert [one["body"] for one in found] == ["Where to?"]
    chat.say("/status")
    answer = chat.outside.seen(ANN)[-1]
    chat.say("And tomorrow?", reply_to=answer.id)
    from_chat = [one for one in chat.letters() if one["sender"].startswith("channel:")]
    assert [one["body"] for one in from_chat] == ["And tomorrow?"]


@pytest.mark.requirement("FX-26")
def test_what_is_too_long_to_be_read_here_is_not_approved_here(chat: Chat) -> None:
    chat.link("ann")
    payload = {"title": "Move", "plan": "far " * 8_000}
    about: Any = {"company": chat.c.id, "kind": "request_board_approval", "payload": payload}
    chat.c.call(chat.agent.caller, approvals.request, **about)
    post = shown(chat, "r1: Move")
    assert (
        "It is too long to be shown here. Read and approve it: `remit approval show " in post.text
    )
    assert post.buttons == ("Reject", "Send back")


@pytest.mark.requirement("FX-26")
def test_a_button_of_what_was_decided_elsewhere_says_how(chat: Chat) -> None:
    chat.link("ann")
    approval = asked(chat)
    post = shown(chat, "r1: Move")
    chat.c.call(chat.c.board, approvals.reject, approval=approval["id"], note="Too far")
    assert chat.tap(post.id, "Approve").startswith("Nothing was done. Rejected by")
    assert status(chat, approval) == "rejected"
    edited = chat.outside.shown[post.id]
    assert edited.buttons == ()
    assert "Too far" in edited.text


@pytest.mark.requirement("FX-26")
def test_a_question_that_was_withdrawn_says_so_where_it_was_shown(chat: Chat) -> None:
    chat.link("ann")
    ask = chat.c.call(chat.agent.caller, questions.ask, question="Which day?", options=["Friday"])
    post = shown(chat, "Which day?")
    chat.c.call(chat.agent.caller, pending_items.cancel, thread=ask["id"])
    chat.c.call(as_system(), notice_planning.look, company=chat.c.id, commands=[])
    chat.go()
    edited = chat.outside.shown[post.id]
    assert (edited.buttons, edited.text.endswith("It was withdrawn.")) == ((), True)


@pytest.mark.requirement("FX-24")
def test_files_go_out_as_they_were_and_no_more_than_the_channel_carries(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = chat.c.file(chat.agent.caller, b"A plan", "Plan")
    map_ = chat.c.file(chat.agent.caller, b"A map", "Map")
    to = "channel:memory:quiet"
    send(chat.c, chat.agent.caller, to, "Look.", attachments=[plan["id"]])
    chat.c.write(chat.agent.caller, plan, b"Another plan")
    deliver(chat.c)
    (shown_there,) = chat.outside.seen("quiet")
    assert shown_there.files == ("A plan",)
    monkeypatch.setattr(MemoryChannel, "most_files", 1)
    with pytest.raises(BadInput, match="carries 1 files at most"):
        send(chat.c, chat.agent.caller, to, "Both.", attachments=[plan["id"], map_["id"]])


# ── what comes and goes ─────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-24")
def test_an_answer_goes_back_to_the_chat_and_a_reply_goes_on_with_its_thread(chat: Chat) -> None:
    chat.link("ann")
    chat.say("How much?")
    [letter] = chat.letters()
    send(chat.c, chat.agent.caller, letter["sender"], "Seven.", reply_to=letter["id"])
    deliver(chat.c)
    answer = chat.outside.seen(ANN)[-1]
    assert answer.text == "ceo:\nSeven."
    assert answer.reply_to is not None
    chat.say("Thanks.", reply_to=answer.id)
    assert chat.letters()[-1]["thread_id"] == letter["thread_id"]


@pytest.mark.requirement("FX-24")
def test_files_come_with_a_message_unless_they_are_not_what_they_say(chat: Chat) -> None:
    chat.outside.files |= {"a": b"a plan", "b": b"MZ a program", "c": b"x"}
    files = (
        IncomingFile("a", "plan.txt", "text/plain", 6),
        IncomingFile("b", "photo.png", "image/png", 12),
        IncomingFile("c", "big.pdf", "application/pdf", LARGEST_INCOMING + 1),
    )
    chat.say("Look.", "eve", files=files)
    [letter] = chat.letters()
    [file] = letter["attachments"]
    assert chat.c.read(chat.agent.caller, file)[1] == b"a plan"
    assert "[photo.png was left out: it is a program]" in letter["body"]
    assert "[big.pdf was left out: it is larger than" in letter["body"]
    assert refusal("x", "application/x-msdownload", 1)


#: Turns the reading direction, ends lines, or is no character at all.
ODD = "a\u202eb\u2066c\u200bd\ne\rf\x00g\x1bh\u2028i\ud800j"


@pytest.mark.requirement("FX-24")
def test_names_from_outside_are_one_plain_line_and_texts_are_bounded(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry.installed, "_plugins", {"memory": MemoryChannel()})
    chat = Chat(company, name="odd")
    chat.outside.files["a"] = b"a plan"
    files = [IncomingFile("a", f"{ODD}{'x' * 1000}.txt", "text/plain", 6)]
    files += [
        IncomingFile(str(n), f"{ODD}{n}", f"text/{ODD}", LARGEST_INCOMING * 2) for n in range(50)
    ]
    about: Any = {
        "sender": Sender("eve", f"Ann{ODD}\nfrom-board: yes"),
        "subject": ODD,
        "files": files,
    }
    chat.say(f"{ODD}{'é' * 100_000}", "eve", **about)
    chat.say("<b>Hi</b> <!channel> \u202e", "eve")
    long, short = chat.letters()
    turn = company.call(chat.agent.caller, inbox.turn).text
    assert len(long["body"].encode()) < 80_000
    assert (long["from_board"], short["body"]) == (False, "<b>Hi</b> <!channel> \u202e")
    [[body]] = company.sql("SELECT body_file_id FROM messages WHERE id = ?", long["id"])
    whole = company.read(chat.agent.caller, body)[1].decode()
    assert whole.count("was left out") == 10
    [file] = long["attachments"]
    shown = company.call(chat.agent.caller, library.show, file=file)["description"]
    for line in (long["outside_sender"], long["subject"], shown):
        assert line.isprintable(), line
    assert "\nfrom-board: yes" not in turn
    MemoryChannel.outsides.clear()


@pytest.mark.requirement("FX-24")
def test_a_secret_that_is_set_anew_is_used_by_who_listens(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when the old one still opens the outside."""
    used: list[bytes] = []

    class Keyed(MemoryChannel):
        def receive(self, connection: Connection) -> AsyncGenerator[Sequence[Incoming], None]:
            used.append(connection.key)
            return super().receive(connection)

    monkeypatch.setattr(registry.installed, "_plugins", {"memory": Keyed()})
    monkeypatch.setattr(receiving, "HEARD_SECONDS", 0.0)
    monkeypatch.setenv("OLD", "old-secret-of-a-chat")
    monkeypatch.setenv("NEW", "new-secret-of-a-chat")
    c, about = chat.c, {"company": chat.c.id, "name": "key", "source": "env"}
    c.call(c.board, secrets.put, **about, place="OLD")
    worker = c.agent("worker")
    config = {"name": "two", "secretRef": "key"}
    given: Any = {"company": c.id, "agent": worker.id, "kind": "memory", "config": config}
    c.call(c.board, bindings.add, **given)

    async def listen() -> None:
        loop = Receivers(c.app.gate, Connector(c.app.vault.value))
        loop.start()
        try:
            async with asyncio.timeout(20):
                while used != [b"old-secret-of-a-chat"]:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                await c.app.gate(c.board, secrets.put, **about, place="NEW")
                while used[1:] != [b"new-secret-of-a-chat"]:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        finally:
            await loop.stop()

    c.wait(listen())


@pytest.mark.requirement("FX-24")
def test_a_channel_that_failed_is_listened_to_at_once_when_its_secret_is_set_anew(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOT", "secret-of-a-bot")
    c = chat.c
    here: Any = {"company": c.id}
    for name in ("key", "other"):
        c.call(c.board, secrets.put, **here, name=name, source="env", place="BOT")
    config = {"name": "two", "secretRef": "key"}
    about: Any = {"agent": c.agent("worker").id, "kind": "memory", "config": config}
    binding = c.call(c.board, bindings.add, **here, **about)["id"]

    def state() -> tuple[str, bool]:
        found = {one["binding_id"]: one for one in c.call(c.board, receivers.listing, **here)}
        return found[binding]["state"], binding in c.call(as_system(), receivers.ready)

    def listen() -> dict[str, Any]:
        held = c.call(as_system(), receivers.claim, binding=binding, worker="w")
        assert held is not None
        return {"binding": binding, "epoch": held["epoch"]}

    assert state() == ("waiting", True)
    held = listen()
    assert state() == ("waiting", False), "nobody knows yet whether that works"
    c.call(as_system(), receivers.ended, **held, problem="the token is wrong")
    assert state() == ("failing", False)
    c.call(c.board, secrets.put, **here, name="other", source="env", place="BOT")
    assert state() == ("failing", False)
    c.call(c.board, secrets.put, **here, name="key", source="env", place="BOT")
    assert state() == ("waiting", True)
    c.call(as_system(), receivers.heard, **listen())
    assert state() == ("listening", False)


@pytest.mark.requirement("HB-53")
def test_two_bindings_do_not_listen_with_one_bot_whatever_its_secret_is_called(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two, each would get a part of what comes; also in different companies."""

    class Keyed(MemoryChannel):
        def place(self, config: Any) -> str | None:
            return str(config.secretRef)

    monkeypatch.setattr(registry.installed, "_plugins", {"memory": Keyed()})
    monkeypatch.setenv("BOT", "secret-of-a-bot")
    c = chat.c
    there = c.second_company()
    for name, company, agent in (
        ("bot", c.id, c.agent("worker").id),
        ("same", there.id, there.agent.id),
    ):
        about: Any = {"company": company}
        place = {"name": name, "source": "env", "place": "BOT"}
        c.call(c.board, secrets.put, **about, **place)
        config: Any = {"name": name, "secretRef": name}
        c.call(c.board, bindings.add, **about, agent=agent, kind="memory", config=config)
    problems = "SELECT problem FROM channel_receivers WHERE problem IS NOT NULL"

    async def listen() -> None:
        loop = Receivers(c.app.gate, Connector(c.app.vault.value))
        loop.start()
        try:
            async with asyncio.timeout(20):
                while not await asyncio.to_thread(c.sql, problems):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
        finally:
            await loop.stop()

    c.wait(listen())
    assert c.sql(problems) == [("another binding of this instance listens with the same secret",)]


@pytest.mark.requirement("FX-24")
def test_what_comes_twice_is_dealt_with_once_and_who_lost_the_lease_stores_nothing(
    chat: Chat,
) -> None:
    said = chat.outside.say("Once.", "eve")
    chat.go()
    chat.outside.coming.append(said)
    chat.go()
    assert len(chat.letters()) == 1
    old = chat.epoch
    chat.c.call(as_system(), receivers.free)
    chat.listen()
    chat.epoch = old
    chat.outside.say("Late.", "eve")
    with pytest.raises(Exception, match="another worker holds it"):
        chat.store()


@pytest.mark.requirement("FX-24")
def test_a_flooded_room_slows_down_itself_alone(chat: Chat, clock: VirtualClock) -> None:
    for number in range(handling.MOST_UNREAD_HERE * 4):
        chat.outside.say(f"Noise {number}.", f"eve-{number}", "loud")
    chat.link("ann")
    for number in range(3):
        chat.say(f"Quiet {number}.", "bob", "quiet")
    assert "is stopped" in chat.say("/stop", "ann", "loud")
    places = [
        one[0] for one in chat.c.sql("SELECT channel FROM messages WHERE channel IS NOT NULL")
    ]
    assert places.count("channel:memory:loud") == handling.MOST_UNREAD_HERE
    assert places.count("channel:memory:quiet") == 3
    left = "SELECT count(*) FROM channel_intake WHERE status = 'queued'"
    assert chat.c.sql(left)[0][0] == handling.MOST_UNREAD_HERE * 3
    chat.c.sql("UPDATE deliveries SET status = 'done', ended_at = 1 WHERE status = 'queued'")
    clock.advance(60 * SECOND)
    chat.go()
    assert chat.c.sql(left)[0][0] == handling.MOST_UNREAD_HERE * 2


@pytest.mark.requirement("FX-24")
def test_what_is_too_much_for_a_room_is_dropped_and_told_in_the_record(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "MOST_IN_LANE", 2)
    for number in range(5):
        chat.outside.say(f"Noise {number}.", "eve", "loud")
    chat.go()
    assert [one["body"] for one in chat.letters()] == ["Noise 0.", "Noise 1."]
    (told,) = actions(chat.c, "chat.flood")
    assert told["details"] == {"dropped": 3}


@pytest.mark.requirement("FX-24")
@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"conversation": "a room"}, "The conversation has no usable name"),
        ({"id": ""}, "The message has no usable id"),
        ({"id": "a\nb"}, "The message has no usable id"),
    ],
)
def test_what_has_no_usable_name_outside_is_refused(chat: Chat, wrong: Any, sentence: str) -> None:
    said = chat.outside.say("Hello", "eve")
    with pytest.raises(BadInput, match=sentence):
        intake.document_of(replace(said, **wrong))


@pytest.mark.requirement("FX-24")
def test_one_process_listens_for_a_binding_and_knows_for_whom_work_is_done(chat: Chat) -> None:
    chat.say("Please begin.", "bob", "quiet")
    run = chat.c.run(chat.agent)
    chat.c.call(run.caller, inbox.take)

    def worked_for() -> list[tuple[str, str]]:
        found = chat.c.call(as_system(), receivers.worked_for, limit=5)
        return [(one["binding"], conversation) for one, conversation in found]

    assert worked_for() == [(chat.binding, "quiet")]
    about: Any = {"binding": chat.binding, "worker": "another"}
    assert chat.c.call(as_system(), receivers.claim, **about) is None
    chat.outside.say("More.", "bob", "quiet")
    chat.c.call(chat.c.board, bindings.remove, company=None, binding=chat.binding)
    assert worked_for() == []
    assert chat.c.call(as_system(), receivers.claim, **about) is None
    with pytest.raises(Conflict):
        chat.store()


def test_a_person_links_so_many_accounts(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    chat.link("ann")
    monkeypatch.setattr(accounts, "MOST_ACCOUNTS", 1)
    with pytest.raises(BadInput, match="You have 1 linked accounts"):
        chat.link("another")


@pytest.mark.requirement("FX-24")
def test_a_loud_room_does_not_use_up_the_runs_that_others_need(
    company: Company, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A crowd takes every run that it can get, and an agent has so many in an hour."""
    monkeypatch.setattr(registry.installed, "_plugins", {"memory": MemoryChannel()})
    chat = Chat(company, company.agent("dev", adapter_type="scripted", perpetual=True), "loud")
    chat.link("ann")
    set_limits(company, agentRunsPerHour=8)

    def heard(words: str, who: str, where: str) -> bool:
        """Whether a run is started for it; it reads all that there is."""
        chat.say(words, who, where)
        if not ready(company):
            return False
        run = claim(company, chat.agent)
        letters = company.call(run.caller, inbox.take)["messages"]
        company.call(run.caller, inbox.acknowledge, ids=[one["id"] for one in letters])
        end(company, run)
        clock.advance(SECOND)
        return any(one["body"] == words for one in letters)

    began = clock.now()
    crowd = [heard(f"Noise {number}.", f"eve-{number}", "loud") for number in range(6)]
    assert crowd == [True] * 4 + [False] * 2
    assert [heard(f"Quiet {number}.", "bob", "quiet") for number in range(3)] == [True, True, False]
    assert heard("Please begin.", "ann", "loud")
    assert heard("Me again.", "ann", "loud")
    assert not ready(company)
    waiting = "SELECT count(*) FROM channel_intake WHERE status = 'queued'"
    assert company.sql(waiting) == [(3,)]
    clock.advance(began + HOUR + 2 * MINUTE - clock.now())
    assert heard("Next hour.", "bob", "elsewhere")
    chat.go()
    assert company.sql(waiting) == [(0,)]
    MemoryChannel.outsides.clear()


@pytest.mark.requirement("FX-24")
def test_a_crowd_is_told_once_and_a_known_person_comes_before_it(chat: Chat) -> None:
    """Each of many who write commands would else be answered, and be tried anew by itself."""
    chat.link("ann")
    for number in range(40):
        chat.outside.say("/stop", f"eve-{number}", "loud")
    chat.outside.say("/help", "ann", "loud")
    chat.store()
    lanes = "SELECT count(DISTINCT lane) FROM channel_intake WHERE status = 'queued'"
    assert chat.c.sql(lanes) == [(2,)]
    [(first, _), *_] = chat.c.call(as_system(), intake.ready)
    [[document]] = chat.c.sql("SELECT document FROM channel_intake WHERE id = ?", first)
    assert '"/help"' in document
    chat.go()
    assert len(chat.outside.seen("loud")) <= 1 + handling.MOST_TOLD
    assert not chat.halted()


@pytest.mark.requirement("FX-24")
def test_an_error_of_remit_itself_is_an_attempt_and_not_a_claim_that_stays(
    chat: Chat,
    clock: VirtualClock,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    chat.link("ann")
    chat.outside.say("/stop")
    chat.store()

    async def broken(*_: object) -> None:
        raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(chat.intake, "_attempt", broken)
        assert chat.c.wait(chat.intake.tick()) == 1
    assert "ZeroDivisionError" in caplog.text
    [row] = chat.c.sql(
        "SELECT status, attempt, ended_why FROM channel_intake WHERE status <> 'done'"
    )
    assert row == ("queued", 1, "it failed (ZeroDivisionError)")
    clock.advance(HOUR)
    chat.go()
    assert chat.halted()


@pytest.mark.requirement("FX-24")
def test_who_is_killed_between_any_two_steps_loses_and_doubles_nothing(chat: Chat) -> None:
    """Claimed and gone: before it was handled, before its answer was shown, and after."""
    chat.link("ann")
    chat.outside.say("/stop")
    chat.store()
    [[item]] = chat.c.sql("SELECT id FROM channel_intake WHERE status = 'queued'")
    chat.c.call(as_system(), intake.claim, intake=item, worker="gone")
    chat.c.wait(chat.intake.recover())
    seen = len(chat.outside.seen(ANN))

    def killed(point: str) -> None:
        if point == "delivered":
            chat.outside.at = lambda _: None
            raise asyncio.CancelledError

    chat.outside.at = killed
    while chat.c.wait(chat.intake.tick()):
        pass
    with pytest.raises(asyncio.CancelledError):
        chat.c.wait(chat.posts.tick())
    chat.c.wait(chat.posts.recover())
    chat.go()
    assert len(actions(chat.c, "halt.stop")) == 1
    # The outside cannot be asked whether it has it, so what may be there already says so.
    first, again = chat.outside.seen(ANN)[seen:]
    assert words_of(again) == f"(again) {words_of(first)}"
