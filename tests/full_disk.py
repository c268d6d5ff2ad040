"""What happens to an instance whose disk is really full; run where a small one is mounted.

The whole home is on it: database, blobs, workspaces, logs. Each story ends with nothing lost.
"""

from __future__ import annotations

import asyncio
import errno
import http.client
import json
import os
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from remit.errors import StorageFull
from remit.services.messaging import threads
from remit.services.organisation import agents
from remit.services.people import companies
from remit.services.record import events
from tests.agent_stage import Stage, stage


def fill(home: Path) -> Path:
    """Take all the room that there is."""
    ballast = home / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
    return ballast


async def hire(at: Stage, name: str, script: str) -> str:
    firms = await at.app.gate(at.board, companies.listing)
    if firms[0]["require_board_approval_for_new_agents"]:
        await at.app.gate(
            at.board,
            companies.change,
            company=firms[0]["id"],
            require_board_approval_for_new_agents=False,
        )
    hired = await at.app.gate(
        at.board,
        agents.create,
        company=firms[0]["id"],
        name=name,
        reports_to="agent:ceo",
        perpetual=True,
        adapter_type="process",
        adapter_config={"command": "/bin/sh", "args": ["-c", script]},
    )
    return str(hired["id"])


async def check(at: Stage, sent: list[str]) -> None:
    """All that was acknowledged is there, once; nothing is half there; the record verifies."""
    messages = await at.app.gate(at.board, threads.listing, company=None, limit=1000)
    mine = [letter for letter in messages if letter["sender"].startswith("user:")]
    subjects = [letter["subject"] for letter in mine]
    assert sorted(subjects) == sorted(sent), (subjects, sent)
    for message in messages:
        assert (await at.app.gate(at.board, threads.show, message=message["id"]))["body"]
    firms = await at.app.gate(at.board, companies.listing)
    record = await at.app.gate(at.board, events.verify, company=firms[0]["id"])
    assert record["ok"], record


async def somebody_else_fills_it(at: Stage, home: Path) -> None:
    sent: list[str] = []

    async def send(to: str = "agent:dev", size: int = 200) -> None:
        subject = f"letter-{len(sent)}"
        await at.app.library.send(at.board, body="x" * size, to=to, subject=subject)
        sent.append(subject)

    dev = await hire(at, "dev", "cat > $HOME/task; sleep 2; echo done")
    await send()
    await at.begun()
    # Only what has begun its work has all that it needs.
    async with asyncio.timeout(20):
        while not (at.settings.home / "agents" / dev / "task").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    ballast = fill(home)
    # Whoever wants something kept is told, each time, whatever its size; and can still look.
    for size in (10, 5_000, 300_000) * 3:
        with pytest.raises(StorageFull) as caught:
            await send(size=size)
        assert "Free disk space" in caught.value.next_step
    assert await post(at, "/messages", {"to": "agent:dev", "body": "x"}) == (507, "storage_full")
    assert len(await at.runs()) == 1
    await becomes(at, 503)
    # A run ends meanwhile. That cannot be recorded, so it is not forgotten either.
    await asyncio.sleep(4)  # its program takes two, and the worker tries to record it each second
    assert [run["status"] for run in await at.runs()] == ["running"]
    ballast.unlink()
    await becomes(at, 200)
    (run,) = await at.over(seconds=20)
    assert (run["status"], run["final_response"]) == ("completed", "done"), run
    # And everything goes on as ever.
    await send()
    assert [run["status"] for run in await at.over(2)] == ["completed"] * 2
    assert (await post(at, "/messages", {"to": "agent:dev", "body": "x", "subject": "letter-2"}))[
        0
    ] == 201
    sent.append("letter-2")
    await at.over(3)
    await check(at, sent)


async def a_program_fills_it(at: Stage, home: Path) -> None:
    await hire(at, "hog", "dd if=/dev/zero of=big bs=64k; echo $? > exit; exit 3")
    await hire(at, "dev", "echo fine")
    await at.app.library.send(at.board, body="x", to="agent:hog", subject="letter-0")
    (run, *_) = await at.over(seconds=30)
    assert (run["status"], run["exit_reason"]) == ("failed", "exit"), run
    assert "3" in run["error"], run
    # It took its folder along, so there is room for the others.
    await at.app.library.send(at.board, body="x", to="agent:dev", subject="letter-1")
    async with asyncio.timeout(30):
        while not [ended for ended in await at.runs() if ended["final_response"] == "fine"]:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    assert not (at.settings.workspaces / run["id"]).exists()
    await check(at, ["letter-0", "letter-1"])


async def it_is_full_at_the_start(at: Stage, home: Path) -> None:
    """An instance that is started on a full disk says so, and is as it was afterwards."""
    await at.app.library.send(at.board, body="x", to="agent:ceo", subject="letter-0")
    await at.over(1)


async def becomes(at: Stage, status: int) -> None:
    """Until /health says so, which nobody has to sign in for."""

    def health() -> tuple[int, Any]:
        where = urlsplit(at.url)
        wire = http.client.HTTPConnection(where.hostname or "", where.port, timeout=20)
        try:
            wire.request("GET", "/health")
            answer = wire.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            wire.close()

    async with asyncio.timeout(20):
        while (answer := await asyncio.to_thread(health))[0] != status:  # noqa: ASYNC110
            await asyncio.sleep(0.2)
    assert ("blobs" in answer[1].get("failing", {})) == (status == 503), answer


async def post(at: Stage, place: str, body: Any) -> tuple[int, str]:
    return await asyncio.to_thread(_post, at, place, body)


def _post(at: Stage, place: str, body: Any) -> tuple[int, str]:
    where = urlsplit(at.url)
    wire = http.client.HTTPConnection(where.hostname or "", where.port, timeout=20)
    headers = {"Authorization": f"Bearer {at.board.token}", "Content-Type": "application/json"}

    def ask(method: str, path: str, document: Any = None) -> tuple[int, Any]:
        wire.request(method, f"/api{path}", json.dumps(document) if document else None, headers)
        answer = wire.getresponse()
        return answer.status, json.loads(answer.read())

    try:
        _, firms = ask("GET", "/companies")
        status, answer = ask("POST", f"/companies/{firms[0]['id']}{place}", body)
        return status, str(answer.get("code", ""))
    finally:
        wire.close()


STORIES: dict[str, Callable[[Stage, Path], Coroutine[Any, Any, None]]] = {
    "somebody_else": somebody_else_fills_it,
    "a_program": a_program_fills_it,
    "at_the_start": it_is_full_at_the_start,
}


async def tell(name: str, home: Path) -> None:
    async with stage(home) as at:
        await STORIES[name](at, home)
    if name != "at_the_start":
        return
    ballast = fill(home)
    with pytest.raises(StorageFull):
        async with stage(home):
            pass
    ballast.unlink()
    async with stage(home) as at:
        await check(at, ["letter-0"])


if __name__ == "__main__":
    place = Path(sys.argv[2])
    assert os.statvfs(place).f_blocks * os.statvfs(place).f_frsize < 64 << 20, "not a small disk"
    asyncio.run(tell(sys.argv[1], place))
    print("told")
