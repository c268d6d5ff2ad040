"""Wrong tokens, links, secrets and codes are slowed; a right one is answered at once."""

from __future__ import annotations

import asyncio
import json
import statistics
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.clock import MINUTE
from remit.entrypoints.http.server import strangers
from remit.runtime.delivery import receiving
from remit.runtime.tries import HALF_LIFE, MAX_KEYS, Pace, Tries
from remit.testing.clock import VirtualClock
from tests.company import Company
from tests.email_stage import ANN
from tests.http_client import USUAL, Running, serving
from tests.mail_office import MailOffice

SECONDS = 3.0
WRONG = f"rmt_user_{'x' * 43}"


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with serving(tmp_path, slows=True) as found:
        yield found


def flood(running: Running, number: int) -> tuple[Counter[int], threading.Event, list[Any]]:
    """So many strangers that try wrong tokens as fast as they are answered."""
    answers: Counter[int] = Counter()
    over = threading.Event()

    def guess(who: int) -> None:
        client = running.client(f"rmt_user_{who:043d}")
        while not over.is_set():
            answers[client("GET", "/api/me").status] += 1

    threads = [threading.Thread(target=guess, args=(who,)) for who in range(number)]
    for thread in threads:
        thread.start()
    return answers, over, threads


@pytest.mark.requirement("PC-80")
def test_wrong_tokens_are_slowed_and_a_right_one_and_health_are_not(running: Running) -> None:
    assert running.board("GET", "/health").status == 200  # the first one looks at the disk
    answers, over, threads = flood(running, 8)
    took: dict[str, list[float]] = {"/health": [], "/api/me": []}
    try:
        time.sleep(1.0)  # until the tries that are free are used up
        before, began = answers.total(), time.monotonic()
        while time.monotonic() - began < SECONDS:
            for path, times in took.items():
                asked = time.monotonic()
                assert running.board("GET", path).status == 200
                times.append(time.monotonic() - asked)
            time.sleep(0.02)
        rate = (answers.total() - before) / (time.monotonic() - began)
    finally:
        over.set()
        running.instance.strangers.close()
        for thread in threads:
            thread.join(20)
    assert set(answers) == {401}
    assert rate < 20, "thousands a second, if nobody slows them"
    # Other tests run on the same machine, so single answers may take longer.
    assert all(statistics.median(times) < 0.1 for times in took.values()), took


def test_the_control_server_slows_nobody(tmp_path: Path) -> None:
    with serving(tmp_path) as running:
        answers, over, threads = flood(running, 4)
        time.sleep(1.0)
        over.set()
        for thread in threads:
            thread.join(20)
    assert answers.total() > 100


def test_more_refusals_than_can_wait_are_answered_with_429(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strangers, "MAX_HELD", 0)
    client = running.client(WRONG)
    answers = [client("GET", "/api/me") for _ in range(USUAL[0].free + 1)]
    assert {answer.status for answer in answers[:-1]} == {401}
    last = answers[-1]
    assert (last.status, last.code, last.headers["Retry-After"]) == (429, "too_many", "1")
    assert running.board("GET", "/api/me").status == 200


@pytest.mark.parametrize("kind", ["login", "webhook", "telegram", "mcp"])
def test_each_way_in_counts_wrong_tries(running: Running, kind: str) -> None:
    tried = {
        "login": ("/login", b"token=" + WRONG.encode()),
        "webhook": ("/api/channels/webhook", b"{}"),
        "telegram": ("/api/channels/telegram/01a1f405-0000-7000-8000-000000000000", b"{}"),
        "mcp": ("/api/me/tokens", b"{}"),
    }
    path, body = tried[kind]
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": running.url}
    client = running.client(None if kind in ("login", "telegram") else WRONG)
    headers = form if kind == "login" else {"Content-Type": "application/json"}
    before = len(running.instance.strangers.tries)
    assert client("POST", path, body=body, headers=headers).status == 401
    assert len(running.instance.strangers.tries) == before + 2, "a source and a target"


def test_a_request_without_a_token_is_no_try(running: Running) -> None:
    assert running.client()("GET", "/api/me").status == 401
    assert len(running.instance.strangers.tries) == 0


def test_tries_are_counted_forgotten_by_halves_and_bounded() -> None:
    now = [0.0]
    tries = Tries(Pace(3, 1.0, 8.0), Pace(1 << 30, 0.0, 0.0), now=lambda: now[0])
    waits = [tries.wrong("ann", "all") for _ in range(9)]
    assert waits == [0, 0, 0, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
    assert tries.wait("ann", "all") == 8.0
    assert (tries.wrong("bob", "all"), tries.wait("bob", "all")) == (0.0, 0.0)
    now[0] += 10 * HALF_LIFE
    assert (tries.wait("ann", "all"), tries.wrong("ann", "all")) == (0.0, 0.0)
    for number in range(2 * MAX_KEYS):
        tries.wrong(str(number), "all")
    assert len(tries) == MAX_KEYS


@pytest.mark.requirement("FX-25")
def test_wrong_codes_are_slowed_and_a_right_one_is_taken_in_its_turn(
    small: Company, clock: VirtualClock
) -> None:
    office = MailOffice(small)
    now = [0.0]
    paces = receiving.CODES_OF_ONE, receiving.CODES_OF_ALL
    office.intake.codes = Tries(*paces, now=lambda: now[0])
    wrong = [f"ABCDEFGH{number + 22}" for number in range(receiving.CODES_OF_ONE.free + 1)]
    for code in wrong:
        assert "not good here" in office.mail(code)
    code = office.code()
    assert office.mail(code) == "", "it waits for its turn"
    assert office.waiting() == []
    [(status, document)] = small.sql(
        "SELECT status, document FROM channel_intake ORDER BY id DESC LIMIT 1"
    )
    assert (status, json.loads(document)["sender"]["id"]) == ("queued", ANN)
    now[0] += receiving.CODES_OF_ONE.longest
    clock.advance(MINUTE)
    while small.wait(office.intake.tick()):
        pass
    assert office.waiting()


def test_refusals_that_wait_are_let_go_when_the_server_stops() -> None:
    async def stop() -> float:
        held = strangers.Strangers()
        held.tries = Tries(Pace(0, 60.0, 60.0), Pace(0, 0.0, 0.0))
        scope = {"path": "/api/me", "client": ("10.0.0.1", 1), "headers": [], "method": "GET"}
        began = time.monotonic()
        waits = [asyncio.create_task(held.hold(scope)) for _ in range(3)]
        await asyncio.sleep(0.01)
        held.close()
        assert await asyncio.gather(*waits) == [0.0] * 3
        return time.monotonic() - began

    assert asyncio.run(stop()) < 5
