"""Every command, button and reply by everybody who may not, in every channel: nothing happens that
the web would refuse. What there is to try is read from the code, so a new command is tried, too."""

import json
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest

from remit.channels import email, registry, slack
from remit.channels.contract import Incoming
from remit.channels.slack import SlackConfig
from remit.errors import RemitError
from remit.ids import short
from remit.runtime.delivery.connecting import Connector
from remit.runtime.delivery.receiving import IntakeLoop, Taken
from remit.services.chat import accounts, commands, intake, receivers
from remit.services.chat.shapes import ClaimedIntakeShape
from remit.services.connections import bindings, secrets
from remit.services.governance import approvals
from remit.services.identity import Caller, as_system
from remit.services.messaging import questions
from remit.services.organisation import agents, halts, idleness
from remit.services.people import companies, users
from remit.services.screens import needs_you
from remit.services.work import outcomes, submitting
from remit.testing.channels import MemoryChannel, Outside
from tests import email_stage, telegram_server
from tests.chat_stage import linked
from tests.company import Company

#: The commands, and by the label of a button what it stands for.
COMMANDS = list(commands.COMMANDS)
BUTTONS = {
    "Approve": "approve",
    "Reject": "reject",
    "Send back": "revise",
    "red": "answer",
    "Accept": "accept",
}
#: Acts about a revision of a request.
DECISIONS = {"approve", "reject", "revise"}
#: Acts that take words and so have no button, by the line that is written.
IN_WORDS = {"return {submission} Add a title.": "return"}
#: What is written as a reply to what was shown.
REPLIES = {"question": "red", "approval": "Too dear.", "submission": "Not yet."}
SECRET_WORDS = ("Move the office", "Which colour", "The brochure")


class InMemory:
    kind, taps = "memory", True

    def __init__(self) -> None:
        MemoryChannel.outsides["one"] = self.outside = Outside()

    def config(self, name: str) -> dict[str, Any]:
        return {"name": name}

    def account(self, who: str) -> str:
        return who

    def direct(self, who: str) -> str:
        return f"with-{who}"

    def delivered(self, number: int) -> str:
        """What the channel calls something that it delivered to Ann."""
        return f"out-{number}"

    def says(self, who: str, text: str, room: bool, number: int, **more: Any) -> Incoming | None:
        del number
        return self.outside.say(text, who, "room" if room else "", **more)


class InTelegram:
    """As updates of the Bot API."""

    kind, taps = "telegram", True

    def __init__(self) -> None:
        pytest.importorskip("aiogram", reason="NOT TESTED: the extra telegram is not installed")

    def config(self, name: str) -> dict[str, Any]:
        return {"secretRef": name}

    def account(self, who: str) -> str:
        return str(int.from_bytes(who.encode()[:6], "big"))

    direct = account

    def delivered(self, number: int) -> str:
        """What the channel calls something that it delivered to Ann."""
        return f"{self.direct('ann')}.{number}"

    def says(self, who: str, text: str, room: bool, number: int, **more: Any) -> Incoming | None:
        from aiogram.types import Update, User

        from remit.channels import telegram

        known = telegram_server.Telegram()
        person = int(self.account(who))
        chat = known.chat(telegram_server.ROOM if room else person)
        message: dict[str, Any] = {"message_id": number, "date": 1, "chat": chat}
        if reply_to := more.get("reply_to"):
            answered = {**message, "message_id": int(reply_to.rpartition(".")[2])}
            message["reply_to_message"] = {**answered, "from": known._getMe(), "text": "x"}
        message |= {"from": known.person(person), "text": text}
        update: dict[str, Any] = {"update_id": number, "message": message}
        if more.get("tapped"):
            tap = {"id": str(number), "from": known.person(person), "chat_instance": "1"}
            update = {"update_id": number, "callback_query": {**tap, "data": more["tapped"]}}
            update["callback_query"]["message"] = {**message, "from": known._getMe()}
        me = User.model_validate(known._getMe())
        return telegram._incoming(Update.model_validate(update), me, "addressed")


class InSlack:
    """As events and taps of Socket Mode."""

    kind, taps = "slack", True

    def config(self, name: str) -> dict[str, Any]:
        return {"secretRef": name}

    def account(self, who: str) -> str:
        return f"T0TEAM:U0{who.upper()}"

    def direct(self, who: str) -> str:
        return f"D0{who.upper()}"

    def delivered(self, number: int) -> str:
        """What the channel calls something that it delivered to Ann."""
        return f"{self.direct('ann')}:{number}.000001"

    def says(self, who: str, text: str, room: bool, number: int, **more: Any) -> Incoming | None:
        user, channel = f"U0{who.upper()}", "C0ROOM" if room else self.direct(who)
        bot, stamp = {"user_id": "U0BOT"}, f"{number}.000001"
        config = SlackConfig.model_validate({"secretRef": "one"})
        if more.get("tapped"):
            action = {"value": more["tapped"], "action_ts": stamp}
            place = {"channel_id": channel, "message_ts": "1.000001"}
            tap = {"type": "block_actions", "container": place, "actions": [action]}
            tap |= {"user": {"id": user}, "team": {"id": "T0TEAM"}}
            return slack.understood("interactive", tap, config, bot)
        event = {"type": "app_mention" if room else "message", "user": user, "ts": stamp}
        event |= {"channel": channel, "text": f"<@U0BOT> {text}" if room else text}
        event |= {} if room else {"channel_type": "im"}
        if reply_to := more.get("reply_to"):
            event["thread_ts"] = reply_to.partition(":")[2]
        return slack.understood("events_api", {"team_id": "T0TEAM", "event": event}, config, bot)


class InEmail:
    """As it lies in the mailbox."""

    kind, taps = "email", False

    def config(self, name: str) -> dict[str, Any]:
        address = f"agents+{name}@agents.example"
        given = {"address": address, "username": "agents", "secretRef": name}
        hosts = {"imapHost": "localhost", "smtpHost": "localhost"}
        return {**given, **hosts, "authservId": email_stage.SERVER}

    def account(self, who: str) -> str:
        return f"{who}@people.example"

    direct = account

    def delivered(self, number: int) -> str:
        """What the channel calls something that it delivered to Ann."""
        return f"<{number}.remit@agents.example>"

    def says(self, who: str, text: str, room: bool, number: int, **more: Any) -> Incoming | None:
        headers = {"Message-ID": f"<{number}@people.example>"}
        headers |= {"Cc": "others@people.example"} if room else {}
        headers |= {"In-Reply-To": more["reply_to"]} if more.get("reply_to") else {}
        to = self.config("one")["address"]
        raw = email_stage.written(text, sender=self.account(who), to=to, **headers).as_bytes()
        return email.incoming(raw, email.EmailConfig.model_validate(self.config("one")), "1.1")


KINDS: dict[str, Any] = {one.kind: one for one in (InMemory, InTelegram, InSlack, InEmail)}


class Stage:
    """A company in which there is something to decide, and people around it."""

    def __init__(self, company: Company, mouth: Any) -> None:
        self.c, self.mouth = company, mouth
        self.intake = IntakeLoop(company.app.gate, company.app.ids, Connector(self._no_secret))
        self.number = 100
        company.agent("branch")
        self.elsewhere = company.second_company()
        self.binding = self._bind(company.board, company.id, company.ceo.id, "one")
        self.other = self._bind(
            self.elsewhere.board, self.elsewhere.id, self.elsewhere.agent.id, "two"
        )
        self.callers = {"ann": company.board, "gus": company.user("gus")}
        self.callers["bob"] = company.user("bob", scope="branch")
        self.callers["cyd"], self.callers["dan"] = company.user("cyd"), company.user("dan")
        for who, caller in self.callers.items():
            self._link(who, caller)
        self._link("ann", company.board, "anns-phone")
        company.call(company.board, users.remove, company=company.id, user="cyd")
        [dans] = company.call(self.callers["dan"], accounts.mine)
        company.call(company.board, accounts.revoke, account=dans["id"])
        self.items: dict[str, str] = {}

    @staticmethod
    async def _no_secret(company: str, name: str) -> str:
        raise AssertionError((company, name))

    def _bind(self, caller: Caller, company: str, agent: str, name: str) -> tuple[str, int]:
        about: Any = {"company": company, "name": name, "source": "env", "place": "CHAT_SECRET"}
        self.c.call(self.c.board, secrets.put, **about)
        about = {"company": company, "agent": agent, "kind": self.mouth.kind}
        made = self.c.call(caller, bindings.add, **about, config=self.mouth.config(name))
        held = self.c.call(as_system(), receivers.claim, binding=made["id"], worker="w")
        assert held is not None
        return made["id"], held["epoch"]

    def _link(self, who: str, caller: Caller, account: str = "") -> None:
        user = self.c.call(caller, users.me)["id"]
        linked(
            self.c.app,
            self.c.id,
            user,
            self.binding[0],
            kind=self.mouth.kind,
            account=self.mouth.account(account or who),
            conversation=self.mouth.direct(account or who),
        )

    # ── what there is to do ─────────────────────────────────────────────────────────────────

    def prepare(self) -> None:
        """A run to abort, an approval and a question that were shown to Ann."""
        payload = {"title": "Move the office"}
        asked: Any = {"company": self.c.id, "kind": "request_board_approval", "payload": payload}
        self.items["approval"] = self.c.call(self.c.ceo.caller, approvals.request, **asked)["id"]
        colour: Any = {"question": "Which colour?", "options": ["red", "blue"], "to": "board"}
        self.items["question"] = self.c.call(self.c.ceo.caller, questions.ask, **colour)["id"]
        solo = self.c.agent("solo", None, purpose="The brochure")
        self.c.call(solo.caller, submitting.submit, outcome=solo.id, note="Done.")
        self.items["submission"] = solo.id
        self.store(self.says("ann", "/needs"))
        for number, (post,) in enumerate(self.c.sql("SELECT id FROM channel_posts"), 1):
            outside = self.mouth.delivered(number)
            self.c.sql("UPDATE channel_posts SET outside_id = ? WHERE id = ?", outside, post)

    def says(self, who: str, text: str, *, room: bool = False, **more: Any) -> Incoming:
        self.number += 1
        said: Incoming | None = self.mouth.says(who, text, room, self.number, **more)
        assert said is not None, (who, text)
        return said

    def store(self, *said: Incoming, elsewhere: bool = False) -> None:
        binding, epoch = self.other if elsewhere else self.binding
        kept = [intake.document_of(one) for one in said]
        self.c.call(as_system(), intake.store, binding=binding, epoch=epoch, said=kept)
        while self.c.wait(self.intake.tick()):
            pass

    def everything(self, who: str, room: bool) -> Iterator[tuple[str, Incoming]]:
        """Each command, tap and reply, by its name."""
        for name in COMMANDS:
            yield f"/{name}", self.says(who, f"/{name}", room=room)
        for label, act in BUTTONS.items() if self.mouth.taps else ():
            reference = self.reference(label)
            yield act, self.says(who, "", room=room, tapped=reference)
        if self.mouth.taps:
            yield "a guess", self.says(who, "", room=room, tapped="guessed")

    def reference(self, label: str) -> str:
        """What a button of what was shown to Ann last carries."""
        shown = "SELECT document FROM channel_posts WHERE conversation = ? ORDER BY id DESC"
        rows = self.c.sql(shown, self.mouth.direct("ann"))
        for (document,) in rows:
            for one, reference in (pair for row in json.loads(document)["buttons"] for pair in row):
                if one == label:
                    return str(reference)
        raise AssertionError(label)

    def effects(self) -> set[tuple[Any, ...]]:
        """All that was done: every change is an event; what chats leave of themselves is not."""
        return set(
            self.c.sql(
                "SELECT company_id, seq, action, resource FROM events"
                " WHERE allowed AND action NOT LIKE 'chat.%'"
            )
        )

    def done_since(self, before: set[tuple[Any, ...]]) -> list[str]:
        return [action for _, _, action, _ in self.effects() - before]

    def shown_to(self, who: str) -> str:
        """What was said where they read, and in the room."""
        own = self.mouth.direct(who)
        rows = self.c.sql("SELECT conversation, document FROM channel_posts")
        mine = [text for place, text in rows if place == own or place != self.mouth.direct("ann")]
        return "\n".join(mine)


@pytest.fixture(params=[pytest.param(kind, id=kind) for kind in KINDS])
def stage(
    small: Company, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    monkeypatch.setattr(registry.installed, "_plugins", {"memory": MemoryChannel()})
    monkeypatch.setenv("CHAT_SECRET", "secret-of-a-chat")
    stage = Stage(small, KINDS[request.param]())
    stage.prepare()
    yield stage
    MemoryChannel.outsides.clear()


def web(stage: Stage, caller: Caller) -> dict[str, Callable[[], object]]:
    """The same as a person does it on the web, by name."""
    call, ceo = stage.c.call, stage.c.ceo.id
    approval: Any = {"approval": stage.items["approval"], "expected_revision": 1}
    answer: Any = {"question": stage.items["question"], "answer": "red"}
    handed_in: Any = {"outcome": stage.items["submission"]}
    return {
        "/status": lambda: call(caller, idleness.why_idle, agent=ceo),
        "/now": lambda: call(caller, idleness.why_idle, agent=ceo),
        "/needs": lambda: call(caller, needs_you.listing),
        "/new": lambda: call(caller, agents.new_session, agent=ceo),
        "/abort": lambda: call(caller, agents.abort, agent=ceo),
        "/stop": lambda: call(caller, halts.stop, agent=ceo, company=None, note=""),
        "/go": lambda: call(caller, halts.go, agent=ceo, company=None),
        "/help": lambda: None,
        "approve": lambda: call(caller, approvals.approve, **approval),
        "reject": lambda: call(caller, approvals.reject, **approval),
        "revise": lambda: call(caller, approvals.request_revision, **approval),
        "answer": lambda: call(caller, questions.answer, **answer),
        "accept": lambda: call(caller, outcomes.complete, **handed_in),
        "return": lambda: call(caller, submitting.send_back, **handed_in, note="Not yet."),
    }


def is_refused(asked: Callable[[], object]) -> bool:
    try:
        asked()
    except RemitError:
        return True
    return False


def test_there_is_nothing_to_try_that_is_not_tried(stage: Stage) -> None:
    assert {*BUTTONS.values(), *IN_WORDS.values()} == set(commands.ACTS)
    named = {f"/{one}" for one in commands.COMMANDS} | set(commands.ACTS)
    assert set(web(stage, stage.c.board)) == named


@pytest.mark.requirement("FX-25", "FX-26", "HB-12")
def test_who_may_not_on_the_web_may_not_from_a_chat(stage: Stage) -> None:
    """Never linked, with too small a part, no member any more, with a revoked account; directly,
    and in a room."""
    stage.c.run(stage.c.ceo)
    asked = web(stage, stage.callers["bob"])
    assert {name for name, ask in asked.items() if not is_refused(ask)} == {"/needs", "/help"}
    before = stage.effects()
    for who, room in product(("eve", "bob", "cyd", "dan"), (False, True)):
        for name, said in stage.everything(who, room):
            stage.store(said)
            assert stage.effects() == before, (who, room, name)
        assert not [words for words in SECRET_WORDS if words in stage.shown_to(who)], who
    for who, (subject, text) in product(("eve", "bob", "cyd", "dan"), REPLIES.items()):
        stage.store(stage.says(who, text, reply_to=_outside_of(stage, subject)))
        # Mail, as from anybody; who gets it may read it.
        assert set(stage.done_since(before)) <= {"message.send", "grant.give"}, (who, subject)
    numbers = {subject: short(item) for subject, item in stage.items.items()}
    for who, line in product(("eve", "bob", "cyd", "dan"), IN_WORDS):
        stage.store(stage.says(who, line.format(**numbers)))
        assert set(stage.done_since(before)) <= {"message.send", "grant.give"}, (who, line)
    stage.store(stage.says("ann", next(iter(IN_WORDS)).format(**numbers)))
    words_wait = stage.c.sql("SELECT count(*) FROM confirmations") == [(1,)]
    assert words_wait or "outcome.return" in stage.done_since(before), "the control: the line works"


@pytest.mark.requirement("FX-26")
def test_what_was_shown_to_a_person_directly_is_not_decided_in_a_room(stage: Stage) -> None:
    """Nor is it shown there; and a room of another company is none of this one's."""
    before = stage.effects()
    for label in BUTTONS if stage.mouth.taps else ():
        stage.store(stage.says("ann", "", room=True, tapped=stage.reference(label)))
        assert stage.effects() == before, label
    for name, said in stage.everything("gus", room=False):
        stage.store(said, elsewhere=True)
        assert stage.effects() == before, name
    assert not [words for words in SECRET_WORDS if words in stage.shown_to("gus")]


@pytest.mark.requirement("FX-26")
def test_a_button_of_an_older_revision_decides_nothing(stage: Stage) -> None:
    labels = [label for label, act in BUTTONS.items() if act in DECISIONS and stage.mouth.taps]
    for label in labels:
        tap = stage.says("ann", "", tapped=stage.reference(label))
        about: Any = {"approval": stage.items["approval"]}
        stage.c.call(stage.c.board, approvals.request_revision, **about, note="cheaper")
        stage.c.call(stage.c.ceo.caller, approvals.resubmit, **about, payload={"cost": 5})
        before = stage.effects()
        stage.store(tap)
        assert stage.effects() == before, label
    now = f'%"shows": "{len(labels) + 1} %'
    shown = "SELECT count(*) FROM channel_posts WHERE document LIKE ? AND document NOT LIKE ?"
    if labels:
        assert stage.c.sql(shown, now, '%"buttons": []%') == [(1,)], "what is asked now, once"


@pytest.mark.requirement("FX-26", "HB-60")
@pytest.mark.parametrize("how", ["twice", "replayed"])
def test_at_once_from_two_devices_or_played_again_it_is_done_once(stage: Stage, how: str) -> None:
    """As the web does it once, whatever was sent again."""
    direct: Any = {"company": stage.c.id, "mail_decisions": "direct"}
    stage.c.call(stage.c.board, companies.change, **direct)
    stage.c.run(stage.c.ceo)
    begun = stage.effects()
    for name in COMMANDS:
        said = stage.says("ann", f"/{name}")
        if how == "replayed":
            stage.store(said, said)
            before = stage.effects()
            stage.store(said)
            assert stage.effects() == before, name
        else:
            stage.store(said, stage.says("anns-phone", f"/{name}"))
    for label, act in BUTTONS.items() if stage.mouth.taps else ():
        if act in ("reject", "revise"):  # the approval is decided by then
            continue
        tap = stage.says("ann", "", tapped=stage.reference(label))
        again = stage.says("ann", "", tapped=stage.reference(label))
        stage.store(tap, tap if how == "replayed" else again)
        stage.store(tap)
    done = stage.done_since(begun)
    # Of two halts, each would have been lifted.
    once = ["agent.abort", "halt.go"]
    taken = ["approval.approve", "question.answer", "outcome.complete"]
    once += taken if stage.mouth.taps else []
    assert {action: done.count(action) for action in once} == dict.fromkeys(once, 1)


@pytest.mark.requirement("FX-25")
def test_who_is_unlinked_between_tapping_and_handling_decides_nothing(stage: Stage) -> None:
    """Claimed as Ann's, and revoked before it is handled."""
    said = [said for _, said in stage.everything("ann", room=False)]
    binding, epoch = stage.binding
    kept = [intake.document_of(one) for one in said]
    stage.c.call(as_system(), intake.store, binding=binding, epoch=epoch, said=kept)
    mine = stage.c.call(stage.c.board, accounts.mine)
    claim = stage.intake._files

    async def revoked(claimed: ClaimedIntakeShape) -> list[Taken]:
        for one in mine:
            await stage.c.app.gate(stage.c.board, accounts.revoke, account=one["id"])
        mine.clear()
        return await claim(claimed)

    stage.intake._files = revoked  # type: ignore[method-assign]
    before = stage.effects()
    while stage.c.wait(stage.intake.tick()):
        pass
    assert set(stage.done_since(before)) <= {"linked_account.revoke"}
    assert stage.c.sql("SELECT count(*) FROM channel_intake WHERE status <> 'done'") == [(0,)]


def _outside_of(stage: Stage, subject: str) -> str:
    about = f"{subject}:{stage.items[subject]}"
    rows = stage.c.sql(
        "SELECT outside_id FROM channel_posts WHERE subject = ? AND NOT withdrawn", about
    )
    return str(rows[0][0])
