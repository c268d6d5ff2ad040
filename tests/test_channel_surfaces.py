"""Channels from outside: over HTTP, on the command line, in an export, by a plugin, and killed."""

from __future__ import annotations

import io
import json
import signal
import tarfile
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, Field

from remit.adapters import plugins
from remit.adapters.contract import Check
from remit.channels import registry
from remit.channels.contract import Parcel, Undelivered, adopt
from remit.clock import HOUR
from remit.entrypoints.http.routes.channels import LARGEST_BODY
from remit.services.connections import bindings
from remit.testing.clock import VirtualClock
from tests.channel_stage import Got, Receiver, arrive, bind, deliver, receiving
from tests.company import Company, opened
from tests.http_client import Child, Client, Running, serving
from tests.mailing import look, send
from tests.test_cli import Home, only, refused, remit
from tests.working import eventually

__all__ = ["only", "remit"]  # fixtures

ROOM = "channel:webhook:room-7"


@pytest.fixture
def outside() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("home")) as found:
        yield found


def first_company(board: Client) -> str:
    return f"/api/companies/{board.must('GET', '/api/companies')[0]['id']}"


def agent_of(board: Client, here: str) -> tuple[str, Client]:
    agent = board.must("GET", f"{here}/agents")[0]["id"]
    return agent, board.as_(board.must("POST", f"/api/agents/{agent}/keys", {})["token"])


def test_a_binding_over_http_and_a_message_through_it(running: Running) -> None:
    board = running.board
    here = first_company(board)
    agent, agent_client = agent_of(board, here)
    kind, *_ = board.must("GET", f"{here}/channels")
    assert kind["type"] == "webhook"
    assert "secretRef" in kind["text"]
    wanted = {"agent": agent, "adapterType": "webhook", "adapterConfig": {"url": "https://x.org/a"}}
    key = {"Idempotency-Key": "bind-once"}
    made = board.must("POST", f"{here}/bindings", wanted, headers=key)
    again = board.must("POST", f"{here}/bindings", wanted, headers=key)
    assert (again["id"], again["token"]) == (made["id"], None)
    assert board("POST", f"{here}/bindings", wanted).code == "already_exists"
    [listed] = board.must("GET", f"{here}/bindings?agent={agent}")
    assert listed == {name: made[name] for name in made if name != "token"}
    assert listed["adapterConfig"] == {"url": "https://x.org/…"}
    assert agent_client.must("GET", f"{here}/bindings") == [listed]
    assert agent_client("POST", f"{here}/bindings", wanted).code == "board_only"
    assert agent_client("DELETE", f"{here}/bindings/{made['id']}").code == "board_only"

    door = board.as_(made["token"])
    said = {"id": "m-1", "conversation": "room-7", "body": "Hello?", "subject": "Hi", "x": 1}
    first = door("POST", "/api/channels/webhook", said)
    second = door("POST", "/api/channels/webhook", said)
    assert (first.status, second.status) == (201, 200)
    assert first.json["id"] == second.json["id"]
    assert door("POST", "/api/channels/webhook", {**said, "body": "Else"}).status == 409
    [letter] = agent_client.must("GET", "/api/inbox")
    assert (letter["sender"], letter["body"], letter["fromBoard"]) == (ROOM, "Hello?", False)
    # The token opens this door and no other.
    for method, path in (
        ("GET", "/api/inbox"),
        ("GET", "/api/companies"),
        ("GET", f"{here}/bindings"),
        ("POST", f"{here}/messages"),
        ("GET", f"/api/messages/{letter['id']}"),
    ):
        wish = {"to": "board", "body": "x"} if method == "POST" else None
        assert door(method, path, wish).status == 401, path
    assert board.must("DELETE", f"{here}/bindings/{made['id']}")["removed"]
    assert board("DELETE", f"{here}/bindings/{made['id']}").status == 404
    assert door("POST", "/api/channels/webhook", {**said, "id": "m-2"}).status == 401


def test_nobody_gets_in_through_the_door_for_channels(running: Running) -> None:
    board = running.board
    here = first_company(board)
    agent, agent_client = agent_of(board, here)
    wanted = {"agent": agent, "adapterType": "webhook", "replace": True}
    token = board.must("POST", f"{here}/bindings", wanted)["token"]
    said = {"id": "h-1", "conversation": "room-7", "body": "Hello?"}
    path = "/api/channels/webhook"
    strangers = (None, "x", token[:-1], "rmt_channel_" + "A" * 43, board.token, agent_client.token)
    for stranger in strangers:
        assert board.as_(stranger)("POST", path, said).status == 401
    door = board.as_(token)
    assert door("POST", "/api/channels/telegram", said).status == 401
    assert door("POST", "/api/channels/" + "x" * 41, said).status in (401, 422)
    assert door("GET", path).status == 405
    for body, status in (
        (b"", 400),
        (b"{", 400),
        (b"[]", 422),
        (b"7", 422),
        (b'{"id": "\\ud800", "conversation": "x", "body": "x"}', 422),
        (b'{"id": "a", "conversation": "x", "body": "' + b"x" * 70_000 + b'"}', 422),
        (b"[" * 100_000, 400),
    ):
        answer = door("POST", path, body=body, headers={"Content-Type": "text/plain"})
        assert answer.status in (status, 400, 422), (body[:40], answer.body)
        assert answer.code
    flood = json.dumps({**said, "body": "x" * LARGEST_BODY}).encode()
    assert door("POST", path, body=flood).status == 413
    # Who has no token is refused before what they send is read.
    assert board.as_("rmt_channel_nothing")("POST", path, body=flood).status == 401
    for wrong in ({"body": 7}, {"conversation": "a b"}, {"replyTo": "x"}, {"subject": 7}):
        assert door("POST", path, {**said, **wrong}).status == 422
    assert door("POST", path, said).status == 201


def test_a_message_is_delivered_though_its_instance_is_killed(
    tmp_path: Path, outside: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed when the outside has the message and has not answered."""
    monkeypatch.setenv("REMIT_PRIVATE_CHANNELS", "yes")
    ids: list[str] = []
    said = {"id": "m-1", "conversation": "room-7", "body": "Hello?"}
    with Child(tmp_path / "home") as child:
        board = child.wait_until_ready()
        here = first_company(board)
        agent, writer = agent_of(board, here)
        config = {"url": outside.url}
        wanted = {"agent": agent, "adapterType": "webhook", "adapterConfig": config}
        token = board.must("POST", f"{here}/bindings", wanted)["token"]
        board.as_(token).must("POST", "/api/channels/webhook", said)

        def kill(_: Got) -> None:
            outside.before = None
            child.stop(signal.SIGKILL)

        outside.before = kill
        ids.append(writer.must("POST", f"{here}/messages", {"to": ROOM, "body": "one"})["id"])
        eventually(lambda: child.process.poll() is not None)
    with Child(tmp_path / "home") as child:
        board = child.wait_until_ready()
        assert board.as_(token).must("POST", "/api/channels/webhook", said)["duplicate"]
        writer = board.as_(writer.token)
        ids.append(writer.must("POST", f"{here}/messages", {"to": ROOM, "body": "two"})["id"])

        def all_done() -> bool:
            shown = [board.must("GET", f"/api/messages/{one}")["deliveries"][0] for one in ids]
            return all(one["status"] == "done" for one in shown)

        eventually(all_done)
        # It may have been started meanwhile, and have read it.
        came = board.must("GET", f"/api/agents/{agent}/inbox?all=true")
        assert [one["body"] for one in came] == ["Hello?"]
    # At least once, in order, and always under the same id with the same bytes.
    assert [one.headers["idempotency-key"] for one in outside.got] == [ids[0], *ids]
    assert outside.bodies == ["one", "one", "two"]
    assert outside.got[0].body == outside.got[1].body


def test_bindings_on_the_command_line(only: Home) -> None:
    only.json("agent", "create", "boss", "--role", "ceo", "--adapter", "scripted")
    assert "No agent is bound" in only("bind", "list").out
    assert "webhook" in only("bind", "channels").out
    assert "timeoutSeconds" in only("bind", "channels", "webhook").out
    refused(only("bind", "channels", "pigeon"), 3, "no channel")
    made = only.json("bind", "add", "boss", "webhook", "--to", "https://chat.example.org/a/b")
    assert made["token"].startswith("rmt_channel_")
    refused(only("bind", "add", "boss", "webhook"), 4, "already")
    refused(only("bind", "add", "boss", "pigeon"), 2, "There is no channel")
    shown = only("bind", "add", "boss", "webhook", "--replace", "--config", '{"timeoutSeconds": 3}')
    assert "rmt_channel_" in shown.out
    assert "/api/channels/webhook" in shown.out
    listed = only("bind", "list", "--agent", "boss").out
    assert "timeoutSeconds=3" in listed
    assert "rmt_channel_" not in listed
    token = only("agent", "token", "boss").out.strip()
    boss = Home(only.folder, {"REMIT_TOKEN": token})
    refused(boss("bind", "add", "boss", "webhook"), 1, "Only the board")
    assert "any more" in only("bind", "remove", "boss", "webhook").out
    refused(only("bind", "remove", "boss", "webhook"), 3, "is not bound")


def test_mail_through_channels_travels_with_a_company_and_no_binding_speaks_there(
    tmp_path: Path, outside: Receiver
) -> None:
    clock = VirtualClock()
    with opened(f"sqlite:///{tmp_path}/one.db", tmp_path / "one", clock) as company:
        made = bind(company, company.ceo, outside.url)
        came = arrive(company, made["token"])
        send(company, company.ceo.caller, ROOM, "Yes.", reply_to=came["id"])
        tar = company.wait(export(company, company.id))
    assert made["token"] not in tar.decode("latin-1")
    assert outside.url not in tar.decode("latin-1")
    with opened(f"sqlite:///{tmp_path}/two.db", tmp_path / "two", clock) as elsewhere:
        there = elsewhere.wait(bring_in(elsewhere, tar))
        again = elsewhere.wait(export(elsewhere, there))
        assert mail_of(again) == mail_of(tar)
        assert [one.get("channel") for one in mail_of(tar)] == [ROOM, None]
        [held] = elsewhere.call(elsewhere.board, bindings.listing, company=there)
        assert held["state"] == "held"
        clock.advance(HOUR)
        assert deliver(elsewhere) == 0
    assert outside.got == []


async def export(company: Company, which: str) -> bytes:
    outline = await company.app.archive.export(company.board, which)
    return b"".join([piece async for piece in company.app.archive.stream(outline)])


async def bring_in(company: Company, tar: bytes) -> str:
    async def pieces() -> Any:
        yield tar

    made = await company.app.archive.import_(company.board, pieces(), name="Elsewhere")
    return str(made["id"])


def mail_of(tar: bytes) -> list[Any]:
    """The lines about mail that a tar has."""
    with tarfile.open(fileobj=io.BytesIO(tar)) as archive:
        found = next(one for one in archive if one.name.endswith("mail.jsonl"))
        content = archive.extractfile(found)
        assert content is not None
        return [json.loads(line) for line in content.read().splitlines()]


# ── plugins ─────────────────────────────────────────────────────────────────────────────────────


class PigeonConfig(BaseModel):
    loft: str = Field(description="Where it lives.")


class Pigeon:
    """A plugin, as somebody else would write it: it derives from nothing of ours."""

    type = "pigeon"
    Config = PigeonConfig
    carried: list[Parcel] = []  # noqa: RUF012  what the test looks at

    def check(self) -> bool:
        return True

    async def deliver(self, parcel: Parcel) -> None:
        if parcel.conversation == "lost":
            raise ValueError(parcel.config.loft)
        if parcel.conversation == "shot":
            raise Undelivered("it was shot", for_good=True)
        self.carried.append(parcel)


class Mute:
    type = "mute"
    Config = PigeonConfig

    def check(self) -> bool:
        return True


def test_a_channel_of_a_plugin_is_used_and_broken_ones_do_no_harm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = f"{__name__}:"
    entries = [
        EntryPoint(name, here + value, registry.Registry.group)
        for name, value in (("pigeon", "Pigeon"), ("mute", "Mute"), ("gone", "Gone"))
    ]
    monkeypatch.setattr(plugins, "entry_points", lambda **_: entries)
    monkeypatch.setattr(registry, "installed", registry.Registry())
    assert registry.installed.types() == [*registry.BUILT_IN, "pigeon"]
    assert set(registry.installed.problems()) == {"mute", "gone"}
    assert registry.installed.check("pigeon", {"loft": "roof"}) == Check(True, "It can be used.")
    assert "Where it lives." in registry.get("pigeon").configuration_doc()
    with opened(f"sqlite:///{tmp_path}/x.db", tmp_path / "home", VirtualClock()) as company:
        given: dict[str, Any] = {"company": company.id, "agent": "ceo", "kind": "pigeon"}
        company.call(company.board, bindings.add, config={"loft": "secret-loft"}, **given)
        for place in ("home", "lost", "shot"):
            send(company, company.ceo.caller, f"channel:pigeon:{place}", place)
        while deliver(company):
            pass
        assert [one.body for one in Pigeon.carried] == ["ceo:\nhome"]
        told = company.sql("SELECT address, status, ended_why FROM channel_deliveries ORDER BY 1")
        assert [tuple(row) for row in told] == [
            ("channel:pigeon:home", "done", "delivered"),
            (
                "channel:pigeon:lost",
                "queued",
                "the channel failed (ValueError); the outside may have it",
            ),
            ("channel:pigeon:shot", "dead", "it was shot"),
        ]
        assert look(company, company.ceo) == []


@pytest.mark.parametrize(
    ("candidate", "why"),
    [
        (Pigeon(), "is not a class"),
        (type("A", (), {}), "has no `type`"),
        (type("A", (), {"type": "A B"}), "has no `type`"),
        (type("A", (), {"type": "a"}), "has no `Config`"),
        (type("A", (), {"type": "a", "Config": PigeonConfig}), r"has no `check\(\)`"),
        (Mute, r"has no `deliver\(\)`"),
        (
            type("A", (Mute,), {"deliver": lambda *_: None}),
            "not asynchronous",
        ),
    ],
)
def test_what_is_no_channel_is_told_why(candidate: Any, why: str) -> None:
    with pytest.raises(match=why):
        adopt(candidate)
