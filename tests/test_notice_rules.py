"""People say which kinds reach them, where and when: quiet hours, a digest, and who is next."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from remit.clock import HOUR, MINUTE
from remit.model.messaging.notice import KINDS, Rules
from remit.runtime.delivery.notifier import Notifier
from remit.services.connections import notice_rules, notices
from remit.services.messaging import questions
from remit.services.screens import needs_you
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


@pytest.fixture
def deputy() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


def told(company: Company) -> None:
    notifier = Notifier(company.app.gate, company.app.settings.home / "none", private=True)
    while company.wait(notifier.tick()):
        pass


def hook(company: Company, caller: Any, receiver: Receiver) -> None:
    company.call(caller, notices.set_webhook, company=company.id, url=receiver.url)


def rule(company: Company, caller: Any, **rules: Any) -> Answer:
    return company.call(caller, notice_rules.change, company=company.id, **rules)


def kinds(receiver: Receiver) -> list[str]:
    return [str(one.document["kind"]) for one in receiver.got]


def at(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000_000)


@pytest.mark.requirement("FX-27")
def test_quiet_hours_are_those_of_the_persons_clock() -> None:
    rules = Rules(time_zone="Europe/Zurich", quiet=(22 * 60, 7 * 60), urgent=("approval",))
    summer, winter = at("2026-07-01T21:30:00"), at("2026-12-01T20:30:00")
    assert rules.not_before("mail", summer) == at("2026-07-02T05:00:00")
    assert rules.not_before("mail", at("2026-07-02T04:59:59")) == at("2026-07-02T05:00:00")
    assert rules.not_before("mail", at("2026-07-02T05:00:00")) == at("2026-07-02T05:00:00")
    assert rules.not_before("approval", summer) == summer
    assert rules.not_before("mail", winter) == winter
    # The night in which the clock is put back is an hour longer.
    assert rules.not_before("mail", at("2026-10-24T20:00:00")) == at("2026-10-25T06:00:00")
    assert rules.last_digest(at("2026-07-02T05:00:00")) == at("2026-07-01T06:00:00")
    assert Rules.read(rules.written()) == rules


@pytest.mark.requirement("FX-27")
def test_what_comes_in_quiet_hours_waits_for_their_end_and_is_told_once(
    company: Company, outside: Receiver, clock: VirtualClock
) -> None:
    hook(company, company.board, outside)
    begins = datetime.fromtimestamp(clock.now() / 1e6, UTC)
    span = f"{begins:%H:%M}-{(begins.hour + 2) % 24:02d}:{begins:%M}"
    rule(company, company.board, quiet=span, urgent=["question"])
    first, second = (ask(company, company.ceo.caller, title) for title in ("One?", "Two?"))
    company.call(company.ceo.caller, questions.ask, question="Fire?", to="board")
    told(company)
    assert kinds(outside) == ["question"]
    approve(company, first)  # by somebody who looked
    clock.advance(HOUR)
    told(company)
    assert kinds(outside) == ["question"]
    clock.advance(HOUR)
    told(company)
    told(company)
    assert [one.document["subject"] for one in outside.got[1:]] == [second["id"]]


@pytest.mark.requirement("FX-27")
def test_rules_that_change_hold_for_what_waits(
    company: Company, outside: Receiver, clock: VirtualClock
) -> None:
    hook(company, company.board, outside)
    hour = datetime.fromtimestamp(clock.now() / 1e6, UTC).hour
    rule(company, company.board, quiet=f"{hour:02d}:00-{(hour + 3) % 24:02d}:00")
    ask(company, company.ceo.caller)
    told(company)
    assert kinds(outside) == []
    shown = rule(company, company.board, quiet="")
    assert shown["quiet"] is None
    told(company)
    assert kinds(outside) == ["approval"]


@pytest.mark.requirement("FX-27")
def test_a_digest_tells_together_what_is_still_open(
    company: Company, outside: Receiver, clock: VirtualClock
) -> None:
    hook(company, company.board, outside)
    later = datetime.fromtimestamp((clock.now() + HOUR) / 1e6, UTC)
    rule(company, company.board, digest=["approval", "mail"], digest_at=f"{later:%H:%M}")
    first, second = (ask(company, company.ceo.caller, title) for title in ("One?", "Two?"))
    send(company, company.ceo.caller, "board", "It rains.", subject="Weather")
    company.call(company.ceo.caller, questions.ask, question="Which?", to="board")
    told(company)
    assert kinds(outside) == ["question"]
    approve(company, first)
    clock.advance(HOUR)
    told(company)
    told(company)
    assert kinds(outside) == ["question", "digest"]
    document = outside.got[1].document
    items = document["items"]
    assert isinstance(items, list)
    assert {item["title"] for item in items} >= {"Weather"}
    assert second["id"] in {item["subject"] for item in items}
    assert first["id"] not in {item["subject"] for item in items}
    assert document["title"] == f"{len(items)} things need you"
    # Once; the next day has nothing new.
    clock.advance(24 * HOUR)
    told(company)
    assert kinds(outside)[2:] in ([], ["unanswered"])


@pytest.mark.requirement("FX-27")
@pytest.mark.parametrize("jump", [24 * HOUR, -HOUR])
def test_a_clock_that_is_set_tells_nothing_twice_and_keeps_nothing_back(
    small: Company, outside: Receiver, deputy: Receiver, clock: VirtualClock, jump: int
) -> None:
    ann = small.user("ann", role="board")
    hook(small, small.board, outside)
    hook(small, ann, deputy)
    rule(small, ann, routes={"all": []})
    later = datetime.fromtimestamp((clock.now() + 30 * MINUTE) / 1e6, UTC)
    digest: Any = {"digest": ["approval"], "digest_at": f"{later:%H:%M}"}
    rule(small, small.board, **digest, escalate_minutes=20)
    ask(small, small.ceo.caller, "One?")
    clock.advance(30 * MINUTE)
    told(small)
    assert (kinds(outside), kinds(deputy)) == (["digest"], ["approval"])
    ask(small, small.ceo.caller, "Two?")
    small.call(small.ceo.caller, questions.ask, question="Which?", to="board")
    clock.advance(jump)
    told(small)
    assert "question" in kinds(outside)
    for wait in (2 * HOUR, 24 * HOUR):
        clock.advance(wait)
        told(small)
        told(small)
        digests: list[Any] = [
            one.document["items"] for one in outside.got if "items" in one.document
        ]
        items = [item["title"] for digest in digests for item in digest]
        assert (items.count("One?"), items.count("Two?")) == (1, 1)
    assert kinds(outside).count("question") == 1
    titles = [one.document["title"] for one in deputy.got]
    assert len(titles) == len(set(titles)) >= 2


@pytest.mark.requirement("FX-27")
def test_kinds_go_where_they_are_routed(company: Company, outside: Receiver) -> None:
    hook(company, company.board, outside)
    rule(company, company.board, routes={"all": [], "question": ["webhook"]})
    ask(company, company.ceo.caller)
    company.call(company.ceo.caller, questions.ask, question="Which?", to="board")
    told(company)
    assert kinds(outside) == ["question"]
    # A way that is not there any more is no reason to be told of nothing.
    rule(company, company.board, routes={"all": ["command"], "question": None})
    told(company)
    assert kinds(outside) == ["question", "approval"]


@pytest.mark.requirement("FX-27")
def test_what_is_not_decided_in_time_is_told_to_the_next_of_the_board(
    company: Company, outside: Receiver, deputy: Receiver, clock: VirtualClock
) -> None:
    ann = company.user("ann", role="board")
    hook(company, company.board, outside)
    hook(company, ann, deputy)
    rule(company, company.board, escalate_minutes=30)
    rule(company, ann, routes={"all": []})
    approval = ask(company, company.ceo.caller)
    told(company)
    assert (kinds(outside), kinds(deputy)) == (["approval"], [])
    clock.advance(29 * MINUTE)
    told(company)
    assert kinds(deputy) == []
    clock.advance(MINUTE)
    told(company)
    told(company)
    (one,) = deputy.got
    assert (one.document["subject"], one.document["escalatedFrom"]) == (approval["id"], "board")
    assert kinds(outside) == ["approval"]
    # Who is not over a part of the company is not told of it.
    assert refusal(company, company.board, notice_rules.change, escalate_to="board") == "invalid"
    assert rule(company, company.board, escalate_to="ann")["escalate_to"] == "ann"


@pytest.mark.requirement("FX-27")
def test_somebody_over_another_part_is_not_told_of_what_they_may_not_decide(
    company: Company, outside: Receiver, deputy: Receiver, clock: VirtualClock
) -> None:
    worker = company.agent("worker").name
    bob = company.user("bob", role="board", scope=worker)
    hook(company, company.board, outside)
    hook(company, bob, deputy)
    rule(company, company.board, escalate_minutes=5, escalate_to="bob")
    ask(company, company.ceo.caller)
    clock.advance(HOUR)
    told(company)
    assert (kinds(outside), kinds(deputy)) == (["approval"], [])


@pytest.mark.requirement("FX-27")
def test_the_browser_follows_the_same_rules(company: Company, clock: VirtualClock) -> None:
    def tells() -> dict[str, bool]:
        return {one["kind"]: one["tell"] for one in company.call(company.board, notice_rules.news)}

    ask(company, company.ceo.caller)
    company.call(company.ceo.caller, questions.ask, question="Which?", to="board")
    assert tells() == {"approval": True, "question": True}
    rule(company, company.board, routes={"approval": ["webhook"]}, after_minutes=10)
    assert tells() == {"approval": False, "question": False}
    clock.advance(10 * MINUTE)
    assert tells() == {"approval": False, "question": True}
    hour = datetime.fromtimestamp(clock.now() / 1e6, UTC).hour
    rule(company, company.board, quiet=f"{hour:02d}:00-{(hour + 1) % 24:02d}:00")
    assert tells()["question"] is False
    rule(company, company.board, quiet="", digest=["question"])
    assert tells()["question"] is False


@pytest.mark.requirement("FX-27")
def test_everybody_sets_their_own_and_nonsense_is_refused(company: Company) -> None:
    bad: list[dict[str, Any]] = [
        {"routes": {"approvals": ["webhook"]}},
        {"routes": {"all": ["pigeon"]}},
        {"routes": {"all": "webhook"}},
        {"quiet": "22:00"},
        {"quiet": "22:00-22:00"},
        {"quiet": "25:00-07:00"},
        {"digest": ["everything"]},
        {"digest_at": "8"},
        {"time_zone": "Mars/Base"},
        {"escalate_to": "nobody"},
    ]
    for one in bad:
        assert refusal(company, company.board, notice_rules.change, **one) == "invalid", one
    assert refusal(company, company.ceo.caller, notice_rules.change, quiet="") == "invalid"
    ann = company.user("ann")
    rule(company, company.board, quiet="22:00-07:00", time_zone="Asia/Tokyo")
    assert company.call(ann, notices.show, company=company.id)["rules"]["quiet"] is None
    mine = company.call(company.board, notices.show, company=company.id)["rules"]
    assert (mine["quiet"], mine["time_zone"]) == ("22:00-07:00", "Asia/Tokyo")


def test_every_kind_that_awaits_a_person_can_be_routed() -> None:
    assert {*needs_you._NEXT, *needs_you._CAUSES} <= {*KINDS}
