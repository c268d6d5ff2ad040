"""A run's token is good in its run, and opens nothing when somebody carries it out of there."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from remit.errors import Unauthenticated
from remit.model.organisation.grant import FULL_ACCESS
from remit.runtime.runs import homes
from remit.runtime.runs.lifecycle import begin
from remit.runtime.sandbox import places, sandbox_policy
from remit.runtime.sandbox.places import Ends, Peer, Place, Places
from remit.services.execution import run_queue
from remit.services.identity import as_system
from remit.services.rights import grants
from tests.agent_stage import Stage, stage, until
from tests.http_client import Client
from tests.test_sandbox import KINDS, found

PYTHON = "/usr/bin/python3"
#: Asks Remit who it is, over HTTP and MCP, and prints how it was answered.
ASK = """
import json, sys, urllib.error, urllib.request
def ask(url, token, body=None):
    headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json",
               "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(url, body, headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return [answer.status, ""]
    except urllib.error.HTTPError as error:
        return [error.code, json.loads(error.read())["code"]]
def both(url, token):
    call = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}'
    return json.dumps([ask(url + "/api/me", token), ask(url + "/mcp", token, call)])
"""
#: Asks from the program itself, and from one that left its parent and its session.
INSIDE = f"""{ASK}
import os, pathlib, time
url, token, home = (os.environ[name] for name in ("REMIT_URL", "REMIT_TOKEN", "HOME"))
home = pathlib.Path(home)
home.joinpath("itself").write_text(both(url, token))
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        home.joinpath("orphan.new").write_text(both(url, token))
        home.joinpath("orphan.new").rename(home / "orphan")
    os._exit(0)
os.wait()
home.joinpath("token").write_text(token)
while not home.joinpath("go").exists():
    time.sleep(0.01)
"""
GOOD = [[200, ""], [200, ""]]
REFUSED = [[401, "run_token_outside"], [401, "run_token_outside"]]


#: What some take for blanks around a token, and others for a part of it.
DISGUISES = r"""
url, token = sys.argv[1:]
for shown in (token, "\xa0" + token, token + "\xa0", "\x85" + token, " \xa0 " + token):
    print(both(url, shown))
"""


async def from_outside(url: str, token: str) -> list[Any]:
    """From a process that is no part of the run, nor of Remit; as it is, then disguised."""
    script = f"{ASK}\n{DISGUISES}"
    asking = await asyncio.create_subprocess_exec(
        sys.executable, "-I", "-S", "-c", script, url, token, stdout=subprocess.PIPE
    )
    said, _ = await asking.communicate()
    return [json.loads(line) for line in said.splitlines()]


@pytest.mark.requirement("BX-14")
def test_a_token_that_was_carried_out_of_its_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "remit")

    async def story() -> None:
        async with stage(tmp_path) as at:
            await try_out(at, "full")
            for kind in KINDS:
                chosen = found(kind)
                with monkeypatch.context() as patch:
                    patch.setattr(sandbox_policy, "look", lambda chosen=chosen: chosen)
                    await try_out(at, kind)

    async def try_out(at: Stage, kind: str) -> None:
        settings: dict[str, Any] = {"command": PYTHON, "args": ["-I", "-S", "-c", INSIDE]}
        if kind == "full":
            settings["sandbox"] = "full"
        ceo = (await at.hire(kind, "process", settings, perpetual=True))["id"]
        if kind == "full":
            await allow_full(at, ceo)
        await at.send("Look where you are.", f"agent:{kind}")
        home = homes.folder(at.settings.home, ceo)
        await until((home / "token").exists, 30)
        await until((home / "orphan").exists, 30)
        for who in ("itself", "orphan"):
            assert json.loads((home / who).read_text()) == GOOD, (kind, who)
        token = (home / "token").read_text()
        caplog.clear()
        # With full access it has the whole machine; there is no outside.
        plain, *disguised = await from_outside(at.url, token)
        assert plain == (GOOD if kind == "full" else REFUSED), kind
        assert disguised == [[[401, "unauthenticated"]] * 2] * 4, kind
        said = [one.message for one in caplog.records if "from outside" in one.message]
        assert len(said) == (0 if kind == "full" else 2)
        (home / "go").touch()
        run = [one for one in await at.over() if one["agent_id"] == ceo][-1]
        assert run["status"] == "completed"
        assert all(run["id"] in line and token not in line for line in said)
        me = await asyncio.to_thread(Client(at.url, token), "GET", "/api/me")
        assert me.code == "unauthenticated"

    asyncio.run(story())


async def allow_full(at: Stage, agent: str) -> None:
    await at.app.gate(
        at.board, grants.give, company=None, to=agent, resource=FULL_ACCESS, level="use"
    )


@pytest.mark.requirement("BX-14")
def test_a_process_knows_only_the_places_of_its_own_runs(tmp_path: Path) -> None:
    """What serves beside workers refuses tokens of their runs: it cannot see who has them."""

    async def story() -> None:
        async with stage(tmp_path, working=False) as at:
            at.app.places.strict = True

            async def answered(token: str) -> list[Any]:
                answer = await asyncio.to_thread(Client(at.url, token), "GET", "/api/me")
                return [answer.status, answer.code if answer.status == 401 else ""]

            async def claimed(name: str) -> list[Any]:
                await at.send("Go.", f"agent:{name}")
                run = at.app.ids.new()
                begun = await at.app.gate(
                    as_system(), run_queue.claim, agent=ids[name], run=run, workspace="", worker="w"
                )
                return await answered(begun["token"])

            config = {"url": "http://127.0.0.1:9/"}
            ids = {
                "remote": (await at.hire("remote", "http", config, perpetual=True))["id"],
                "script": (await at.hire("script", "scripted", {}, perpetual=True))["id"],
            }
            by_hand = (await at.hire("hand", "scripted", {}, perpetual=True))["id"]
            assert await claimed("remote") == [200, ""]
            assert await claimed("script") == [401, places.OUTSIDE]
            begun = await begin(at.app.gate, at.app.ids, at.settings.workspaces, by_hand)
            assert await answered(begun.token) == [200, ""]
            assert await answered("rmt_run_nobody") == [401, "unauthenticated"]

    asyncio.run(story())


def test_whose_a_connection_is_can_be_told_here() -> None:
    assert places.can_tell()
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with (
            socket.create_server((host, 0), family=family) as listening,
            socket.create_connection(listening.getsockname()[:2]) as near,
        ):
            far, _ = listening.accept()
            with far:
                ends = Ends(far.getpeername()[:2], far.getsockname()[:2])
                number = os.fstat(near.fileno()).st_ino
                assert places.socket_of(ends) == number
                plain = [places._plain(one[0]) for one in ends]
                listed = places._listed(plain[0], ends.other[1], plain[1], ends.own[1])
                assert listed == number
                assert places.held_by(number, [os.getpid()]) == os.getpid()
                assert places.held_by(number, [os.getppid()]) is None
    assert places.socket_of(Ends(("127.0.0.1", 1), ("127.0.0.1", 1))) is None
    assert places.socket_of(Ends(("testclient", 50000), ("testserver", 80))) is None
    assert places.socket_of(Ends(("192.0.2.7", 4000), ("192.0.2.8", 80))) is None


def test_a_connection_is_believed_for_a_while_and_for_one_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[Ends] = []

    def held(ends: Ends, *_: object) -> bool:
        looked.append(ends)
        return ends.other[1] == 1

    monkeypatch.setattr(places, "_is_held", held)
    known = Places()

    async def story() -> None:
        one, other = Place("one"), Place("other")
        peer, own = Peer(("127.0.0.1", 1)), ("127.0.0.1", 80)
        for _ in range(3):
            await known.check(one, peer, own)
        assert len(looked) == 1
        await known.check(other, peer, own)
        assert len(looked) == 2
        # Another connection from the same address is another one.
        await known.check(one, Peer(peer), own)
        assert len(looked) == 3
        monkeypatch.setattr(places, "BELIEVED_SECONDS", 0.0)
        await known.check(one, peer, own)
        assert len(looked) == 4
        for _ in range(2):
            with pytest.raises(Unauthenticated):
                await known.check(one, Peer(("127.0.0.1", 2)), own)
        await known.check(Place("remote", anywhere=True), Peer(("192.0.2.1", 2)), own)
        # A program that calls before its start is known is waited for.
        one.begin()
        early = asyncio.create_task(known.check(one, Peer(("127.0.0.1", 1)), own))
        await asyncio.sleep(0)
        assert len(looked) == 6
        one.begun(None)
        await early
        assert len(looked) == 7

    asyncio.run(story())


def test_a_system_that_cannot_tell_lets_tokens_be_used_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(places, "can_tell", lambda: False)
    known = Places()
    for _ in range(2):
        asyncio.run(known.check(Place("one"), ("127.0.0.1", 1), ("127.0.0.1", 80)))
    assert [record.message.partition(":")[0] for record in caplog.records] == [
        "this system does not tell the owner of a connection"
    ]
