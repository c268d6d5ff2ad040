"""Slack as a channel: the official client against a strict stand-in for the documented API."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from remit.channels.contract import Attachment, Incoming, Undelivered, Unreachable
from remit.channels.slack import Slack, SlackConfig, escaped, plain, understood
from remit.testing import channels
from tests.slack_stage import (
    BOT_USER,
    DIRECT,
    ROOM,
    TEAM,
    SlackServer,
    SlackStand,
    connection,
    serving,
)

SLACK = Slack()


@pytest.fixture(scope="module")
def workspace() -> Iterator[SlackServer]:
    with serving() as found:
        yield found


@pytest.fixture
def server(workspace: SlackServer) -> SlackServer:
    workspace.reset()
    return workspace


@pytest.mark.requirement("FX-24")
@pytest.mark.parametrize("check", channels.checks(SLACK), ids=lambda one: one.__name__)
def test_slack_keeps_what_a_channel_promises(check: channels.Suite, server: SlackServer) -> None:
    asyncio.run(check(SLACK, SlackStand(server)))


def event(**more: Any) -> dict[str, Any]:
    said = {"type": "message", "channel_type": "im", "user": "U0ANN", "channel": DIRECT}
    return {"team_id": TEAM, "event": {**said, "ts": "1.000001", "text": "Hi", **more}}


def heard(payload: dict[str, Any], kind: str = "events_api", **config: Any) -> Incoming | None:
    read = SlackConfig.model_validate({"secretRef": "slack", **config})
    return understood(kind, payload, read, {"user_id": BOT_USER, "team_id": TEAM})


@pytest.mark.requirement("FX-24")
def test_what_programs_say_and_what_does_not_name_the_agent_is_not_heard() -> None:
    assert heard(event()) is not None
    assert heard(event(bot_id="B1")) is None
    assert heard(event(user=BOT_USER)) is None
    assert heard(event(subtype="message_changed")) is None
    assert heard(event(subtype="bot_message")) is None
    assert heard(event(type="reaction_added")) is None
    # In a room only a mention counts; Slack sends what was said there as well.
    assert heard(event(channel=ROOM, channel_type="channel")) is None
    mentioned = heard(event(type="app_mention", channel=ROOM, text=f"<@{BOT_USER}>: &lt;go&gt;"))
    assert mentioned is not None
    assert (mentioned.text, mentioned.direct) == ("<go>", False)
    assert mentioned.conversation == f"{ROOM}/1.000001"
    assert heard(event(type="app_mention", channel=ROOM), rooms=["C0OTHER"]) is None
    assert heard(event(), rooms=["C0OTHER"]) is not None


@pytest.mark.requirement("FX-24")
def test_a_tap_in_a_room_where_the_agent_does_not_listen_is_not_heard() -> None:
    place = {"channel_id": ROOM, "message_ts": "1.000002", "thread_ts": "1.000001"}
    action = {"value": "ref", "action_ts": "2.000001"}
    tap = {"type": "block_actions", "container": place, "actions": [action], "user": {"id": "U1"}}
    found = heard(tap, "interactive")
    assert found is not None
    assert (found.tapped, found.conversation) == ("ref", f"{ROOM}/1.000001")
    assert found.id == (again.id if (again := heard(tap, "interactive")) else None)
    assert heard(tap, "interactive", rooms=["C0OTHER"]) is None
    assert heard({**tap, "type": "view_submission"}, "interactive") is None
    assert heard({**tap, "actions": []}, "interactive") is None


OTHER = "T0OTHER"


@pytest.mark.requirement("FX-25")
@pytest.mark.parametrize(
    ("about", "sender"),
    [
        ({}, f"{TEAM}:U0ANN"),
        ({"user_team": TEAM, "source_team": TEAM, "team": OTHER}, f"{TEAM}:U0ANN"),
        ({"user_team": OTHER}, f"{OTHER}:U0ANN"),
        ({"source_team": OTHER}, f"{OTHER}:U0ANN"),
        ({"user_team": TEAM, "source_team": OTHER}, f"{OTHER}:U0ANN"),
        ({"user_team": TEAM, "user_profile": {"team": OTHER}}, f"{OTHER}:U0ANN"),
        ({"team": OTHER}, f"{OTHER}:U0ANN"),
        ({"user_team": OTHER, "user": "W0ANN"}, f"{OTHER}:W0ANN"),
    ],
)
def test_who_speaks_is_of_their_own_workspace_not_of_the_one_that_is_told(
    about: dict[str, Any], sender: str
) -> None:
    """In a room that is shared (Slack Connect) an id of theirs may be one of ours."""
    said = event(type="app_mention", channel=ROOM, **about)
    found = heard({**said, "is_ext_shared_channel": True})
    assert found is not None
    assert (found.sender.id, found.sender.sure) == (sender, bool(about))
    assert (alone := heard(said)) is not None
    assert alone.sender.sure
    home = about.get("user_team", TEAM)
    place = {"channel_id": ROOM, "message_ts": "1.000002"}
    action = {"value": "ref", "action_ts": "2.000001"}
    tap = {"type": "block_actions", "container": place, "actions": [action]}
    whose = {"user": {"id": "U0ANN", "team_id": home}, "team": {"id": TEAM}}
    tapped = heard({**tap, **whose}, "interactive")
    assert tapped is not None
    assert tapped.sender.id == f"{home}:U0ANN"


@pytest.mark.requirement("FX-24", "FX-25")
def test_who_is_of_another_workspace_is_shown_with_it(server: SlackServer) -> None:
    stand = SlackStand(server)
    server.homes["U0BOB"] = server.homes["U0EVE"] = OTHER

    async def heard() -> list[Incoming]:
        calls = [{"user": "U0BOB", "home": OTHER}, {"home": OTHER}, {"user": "U0EVE"}, {}]
        for more in calls:
            await asyncio.to_thread(server.says, f"<@{BOT_USER}> Hi", channel=ROOM, **more)
        return await channels.received(SLACK, stand, 4)

    bob, ann, eve, ours = (one.sender for one in asyncio.run(heard()))
    assert (bob.id, bob.sure) == (f"{OTHER}:U0BOB", True)
    assert bob.name == f"Ann A. (@u0bob) of the workspace {OTHER}"
    # Slack tells of another than the message did: of ours who has the same id, and of a stranger
    # whom the message does not tell from ours.
    assert (ann.id, ann.name, ann.sure) == (
        f"{OTHER}:U0ANN",
        f"U0ANN of the workspace {OTHER}",
        False,
    )
    assert (eve.id, eve.name, eve.sure) == (f"{TEAM}:U0EVE", "U0EVE", False)
    assert (ours.id, ours.name, ours.sure) == (f"{TEAM}:U0ANN", "Ann A. (@u0ann)", True)


@pytest.mark.requirement("FX-24")
def test_slack_is_told_that_we_have_it_after_it_was_stored(server: SlackServer) -> None:
    stand = SlackStand(server)

    async def interrupted() -> None:
        await stand.say("Once.")
        await channels.received(SLACK, stand, 1, store=False)

    asyncio.run(interrupted())
    assert (len(server.pending), server.acknowledged) == (1, [])
    asyncio.run(channels.received(SLACK, stand, 1))
    assert server.pending == {}


@pytest.mark.requirement("FX-24")
@pytest.mark.parametrize("files", [False, True])
def test_what_may_have_got_there_is_looked_for_before_it_is_sent_again(
    files: bool, server: SlackServer
) -> None:
    stand = SlackStand(server)
    more: dict[str, Any] = {"files": [Attachment("a.txt", "text/plain", b"x")]} if files else {}
    asyncio.run(SLACK.deliver(channels.parcel(stand, "p-1", **more)))
    others = [{"channel": DIRECT, "ts": server.stamp(), "text": "x"} for _ in range(450)]
    server.messages += others
    outside = asyncio.run(SLACK.deliver(channels.parcel(stand, "p-1", again=True, **more)))
    del server.messages[1:451]
    assert len(server.messages) == 1
    assert outside == f"{DIRECT}:{server.messages[0]['ts']}"
    if not files:
        asyncio.run(SLACK.deliver(channels.parcel(stand, "p-2", again=True)))
        assert len(server.messages) == 2


@pytest.mark.requirement("FX-24")
def test_files_with_the_same_words_are_told_apart_and_known_by_slacks_own_spelling(
    server: SlackServer,
) -> None:
    stand = SlackStand(server)
    one: Any = {"body": "Look at this.", "files": [Attachment("a.txt", "text/plain", b"one")]}
    other: Any = {**one, "files": [Attachment("a.txt", "text/plain", b"another")]}
    for number, parcel in enumerate((one, other), 1):
        asyncio.run(SLACK.deliver(channels.parcel(stand, f"p-{number}", again=True, **parcel)))
    assert len(server.messages) == 2, "the second was taken for the first"
    asyncio.run(SLACK.deliver(channels.parcel(stand, "p-2", again=True, **other)))
    assert len(server.messages) == 2


@pytest.mark.requirement("FX-24")
@pytest.mark.parametrize("body", ["See https://evil.example/?q=x", "https://x.example " * 3000])
@pytest.mark.parametrize("files", [False, True])
def test_slack_calls_no_link_that_an_agent_writes(
    body: str, files: bool, server: SlackServer
) -> None:
    """It is told so for a message, and cannot be told so for files: there it sees none."""
    stand = SlackStand(server)
    more: Any = {"files": [Attachment("a.txt", "text/plain", b"one")]} if files else {}
    asyncio.run(SLACK.deliver(channels.parcel(stand, body=body, **more)))
    [shown] = stand.shown()
    if shown.files:
        assert "://" not in shown.text
        assert shown.files[0] == body
    else:
        assert (shown.text, server.unfurled) == (body, [False])


@pytest.mark.requirement("FX-24")
def test_a_rate_limit_says_how_long_to_wait(server: SlackServer) -> None:
    server.failures.append("busy")
    with pytest.raises(Undelivered) as busy:
        asyncio.run(SLACK.deliver(channels.parcel(SlackStand(server))))
    assert (busy.value.retry_after, busy.value.for_good) == (7.0, False)


@pytest.mark.requirement("FX-24")
def test_wrong_tokens_are_said_and_not_repeated(server: SlackServer) -> None:
    async def one(given: Any) -> None:
        async for _ in SLACK.receive(given):
            return

    stand = SlackStand(server)
    for key, said in ((b"nonsense", "xoxb"), (b"xoxb-wrong xapp-wrong", "invalid_auth")):
        with pytest.raises(Unreachable, match=said) as failed:
            asyncio.run(one(channels.parcel(stand, key=key)))
        assert "wrong" not in failed.value.sentence
        with pytest.raises(Undelivered, match=said):
            asyncio.run(SLACK.deliver(channels.parcel(stand, key=key)))


@pytest.mark.requirement("FX-24")
def test_a_crowd_is_asked_for_by_name_once_each_and_heard_though_slack_does_not_tell(
    server: SlackServer,
) -> None:
    stand = SlackStand(server)

    async def heard() -> list[Incoming]:
        for number in range(6):
            await asyncio.to_thread(server.says, "Hi", user=f"U{number % 3}")
        return await channels.received(SLACK, stand, 6)

    server.untold.add("U1")
    found = asyncio.run(heard())
    assert [one.sender.name for one in found[:3]] == ["Ann A. (@u0)", "U1", "Ann A. (@u2)"]
    assert server.calls.count("users.info") == 3


@pytest.mark.requirement("FX-24")
def test_the_token_goes_to_slack_and_nowhere_else(server: SlackServer) -> None:
    about = {"id": "F1", "size": 3, "url_private_download": "https://evil.example/f"}
    server.files["F1"] = (about, b"abc")
    with pytest.raises(Undelivered, match="not at Slack"):
        asyncio.run(SLACK.fetch(connection(server), "F1", 100))


def test_text_means_to_slack_what_it_says() -> None:
    assert escaped("<!channel> & <@U1>") == "&lt;!channel&gt; &amp; &lt;@U1&gt;"
    assert (
        plain("ask <@U2|bob> about <https://x.example|this>", "U1")
        == "ask @U2 about https://x.example"
    )
