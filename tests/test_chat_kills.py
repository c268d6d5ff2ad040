"""An instance is killed at every point between hearing, keeping, running, answering and editing:
all of it, or one of the two processes that it may consist of, on both databases.

Nothing is lost and nothing is shown twice; except in Telegram, whose Bot API knows no repeats: what
was sent in the moment of the kill is sent again, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.model.messaging.authorship import MARK
from remit.services.governance import approvals
from tests import email_stage, runtime_stage, slack_stage, telegram_server
from tests.chat_office import ChatOffice, InEmail, InSlack, InTelegram, Outside, PostedByTelegram
from tests.company import Company
from tests.postgres import Cluster
from tests.runtime_stage import Stage

#: By what happens: the verb that keeps it, and which of its calls. The list of what awaits Ann, the
#: question in it, and what became of that question.
SHOWN, EDITED = ("posts.delivered", 1), ("posts.delivered", 3)
VERBS = (
    *(("receivers.claim", 1), ("intake.store", 1), ("intake.claim", 1), ("chat.handle", 1)),
    *(("claiming.claim", 1), ("mail.send", 1), ("inbox.acknowledge", 1), ("runs.end", 1)),
    *(
        ("outbox.claim", 1),
        ("outbox.delivered", 1),
        ("posts.claim", 1),
        SHOWN,
        ("posts.claim", 3),
        EDITED,
    ),
)
#: By then nobody has said anything that could go out.
BEFORE_SENDING = (
    "receivers.claim",
    "intake.store",
    "intake.claim",
    "chat.handle",
    "claiming.claim",
)
LISTED = "that you can decide or answer here is in a message of its own"
MOMENTS = ("before", "inside", "after")
POINTS = [(verb, moment, which) for verb, which in VERBS for moment in MOMENTS]
#: By name: the processes of an instance, and whether its database is PostgreSQL. SQLite is for one.
SHAPES = {
    "alone": (("up",), False),
    "postgresql": (("up",), True),
    "apart": (("serve", "worker"), True),
}
#: What `make test` tries; the rest is the campaign.
FEW = {
    ("alone", "telegram", "intake.store", "after", 1),
    ("alone", "slack", "outbox.delivered", "before", 1),
    ("alone", "email", "chat.handle", "inside", 1),
    ("apart", "telegram", "mail.send", "after", 1),
}
#: Parts of a request that is too long for one message.
PARTS = 4
PARTED = [
    (verb, moment, which)
    for verb in ("posts.claim", "posts.delivered")
    for moment in MOMENTS
    for which in range(1, PARTS + 1)
]
FEW_PARTED = {
    ("alone", "telegram", "posts.delivered", "before", 2),
    ("alone", "slack", "posts.claim", "after", PARTS),
}
WHOLE = pytest.mark.campaign("every other point of the same way, in every channel and shape")
SECONDS = 300


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with runtime_stage.opened("tests.chat_office") as found:
        yield found


@pytest.fixture(scope="module")
def mailbox() -> Iterator[email_stage.MailStage]:
    with email_stage.serving() as found:
        yield found


@pytest.fixture
def outside(request: pytest.FixtureRequest) -> Iterator[Outside]:
    if request.param == "email":
        yield InEmail(request.getfixturevalue("mailbox"))
    elif request.param == "slack":
        with slack_stage.serving() as slack:
            yield InSlack(slack)
    elif request.param == "posted":
        with telegram_server.serving() as telegram, telegram_server.posting(telegram):
            yield PostedByTelegram(telegram)
    else:
        with telegram_server.serving() as telegram:
            yield InTelegram(telegram)


def may_send(verb: str, moment: str) -> bool:
    """Whether something may be on its way when the process is killed there: messages and posts go
    out beside what else happens."""
    if verb == "mail.send":
        return moment == "after"
    kept = verb == "outbox.delivered" and moment == "after"
    return not (kept or verb in BEFORE_SENDING)


def cases() -> list[Any]:
    return [
        pytest.param(shape, kind, *point, marks=() if (shape, kind, *point) in FEW else WHOLE)
        for shape in SHAPES
        for kind in ("telegram", "posted", "slack", "email")
        for point in POINTS
        # An e-mail that was sent is not edited.
        if not (kind == "email" and point[2] == 3)
    ]


@pytest.mark.timeout(SECONDS)
@pytest.mark.requirement("FX-24", "FX-26")
@pytest.mark.parametrize(
    ("shape", "outside", "verb", "moment", "which"), cases(), indirect=["outside"]
)
def test_an_instance_is_killed_between_hearing_and_editing(
    stage: Stage,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    shape: str,
    outside: Outside,
    verb: str,
    moment: str,
    which: int,
) -> None:
    kinds, shared = SHAPES[shape]
    cluster: Cluster | None = request.getfixturevalue("postgres_cluster") if shared else None
    url = cluster.migrated_database() if cluster else ""
    office = ChatOffice(outside, tmp_path / "home", stage, url, kinds)
    office.begin((verb, moment, which), wait=False)
    try:
        outside.say("One.")
        office.until(lambda: office.sees("Answer to One."))
        outside.say("Ask.")
        office.until(lambda: office.sql("SELECT id FROM questions"))
        [[question]] = office.sql("SELECT id FROM questions")
        outside.say("/needs")
        office.until(lambda: office.sees(LISTED) and office.sees("Red or blue?"))
        office.until(office.is_quiet)
        office.until(lambda: office.answer(question))
        if outside.kind != "email":
            office.until(lambda: office.sees("Answered: red"))
        office.until(office.is_quiet)
        office.until(lambda: office.deaths)  # also at the very end
    finally:
        office.end()
    assert office.deaths == [office.place_of((verb, moment, which))], "it was not killed there"
    heard = office.sql("SELECT count(*) FROM messages WHERE channel IS NOT NULL")
    answers = office.sql("SELECT count(*) FROM messages WHERE address LIKE ?", "channel:%")
    assert (heard, answers) == ([(2,)], [(1,)])
    assert len(office.sql("SELECT id FROM questions")) == 1
    # In Telegram whatever was being sent may be there twice, and the second says so.
    most = 2 if outside.kind == "telegram" and may_send(verb, moment) else 1
    for words in ("Answer to One.", LISTED, "Red or blue?"):
        found = office.sees(words)
        assert 1 <= len(found) <= most, found
        assert all(one.marked for one in found[1:] if "Answered" not in one.text), found
    if outside.kind != "email":
        assert "Answered: red" in office.sees("Red or blue?")[-1].text


def long_request(company: Company) -> None:
    plan = "\n".join(f"Line {line} of the plan." for line in range(500))
    about: Any = {"company": company.id, "kind": "request_board_approval"}
    payload: Any = {"title": "Move", "plan": plan}
    company.call(company.ceo.caller, approvals.request, **about, payload=payload)


def parted_cases() -> list[Any]:
    return [
        pytest.param(
            *(shape, kind, *point), marks=() if (shape, kind, *point) in FEW_PARTED else WHOLE
        )
        for shape in SHAPES
        for kind in ("telegram", "posted", "slack")
        for point in PARTED
    ]


@pytest.mark.timeout(SECONDS)
@pytest.mark.requirement("FX-61", "FX-26")
@pytest.mark.parametrize(
    ("shape", "outside", "verb", "moment", "which"), parted_cases(), indirect=["outside"]
)
def test_an_instance_is_killed_between_the_parts_of_a_request(
    stage: Stage,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    shape: str,
    outside: Any,
    verb: str,
    moment: str,
    which: int,
) -> None:
    """Whoever sees its buttons sees each part above them, and a tap decides once."""
    kinds, shared = SHAPES[shape]
    cluster: Cluster | None = request.getfixturevalue("postgres_cluster") if shared else None
    url = cluster.migrated_database() if cluster else ""
    office = ChatOffice(outside, tmp_path / "home", stage, url, kinds, prepare=long_request)
    office.begin((verb, moment, which), wait=False)

    def tappable() -> list[Any]:
        seen = outside.seen()
        found = [number for number, one in enumerate(seen) if "Approve" in one.buttons]
        for number in found:
            heads = [one.text.split("\n")[0] for one in seen[:number]]
            wanted = [f"{MARK} · {part} of {PARTS}" for part in range(1, PARTS)]
            assert [head for head in dict.fromkeys(heads) if head in wanted] == wanted, heads
        return [seen[number] for number in found]

    try:
        outside.say("/needs")
        office.until(lambda: tappable() and office.sees(LISTED))
        office.until(office.is_quiet)
        outside.tap(tappable()[-1].id, "Approve")
        status = "SELECT status FROM approvals WHERE type = 'request_board_approval'"
        office.until(lambda: office.sql(status) == [("approved",)])
        office.until(lambda: not tappable() or outside.kind == "telegram")
        office.until(office.is_quiet)
        office.until(lambda: office.deaths)  # also at the very end
    finally:
        office.end()
    lines = [line for one in outside.seen() for line in one.text.split("\n")]
    assert all(f"│ Line {number} of the plan." in lines for number in range(500))
    approval = "SELECT 'approval:' || id FROM approvals WHERE type = 'request_board_approval'"
    decided = f"SELECT action FROM events WHERE resource = ({approval}) AND allowed"  # noqa: S608
    assert office.sql(f"{decided} ORDER BY seq") == [("approval.request",), ("approval.approve",)]
    # In Telegram a part that was being sent may be there twice.
    heads = [one.text.split("\n")[0] for one in outside.seen()]
    assert len(heads) - len(set(heads)) <= (1 if outside.kind == "telegram" else 0)
