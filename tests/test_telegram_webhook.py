"""Telegram posts what comes: proven, stored before it is answered, and once."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Iterator
from contextlib import aclosing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from remit.channels import telegram as channel
from remit.channels.contract import Unreachable
from remit.services.chat import receivers
from remit.services.identity import as_system
from tests.company import run_sql
from tests.http_client import serving as http
from tests.telegram_server import ANN, ROOM, TOKEN, Telegram, TelegramStand, serving

if find_spec("aiogram") is None:
    pytest.skip("NOT TESTED: the extra telegram is not installed", allow_module_level=True)

PUBLIC = "https://remit.example.org"
HEADER = "X-Telegram-Bot-Api-Secret-Token"


@pytest.fixture
def telegram() -> Iterator[Telegram]:
    with serving() as found:
        yield found


def guesses(binding: str) -> list[str]:
    """What somebody shows who knows the bot's token: the token, and what follows from it."""
    keyed = hmac.new(TOKEN.encode(), binding.encode(), "sha256").hexdigest()
    return [TOKEN, TOKEN.rpartition(":")[2], keyed, hashlib.sha256(TOKEN.encode()).hexdigest()]


async def listened(stand: TelegramStand, look: Any) -> None:
    """Somebody listens until what is looked for is seen."""
    async with asyncio.timeout(20), aclosing(channel.Telegram().receive(stand.connection)) as said:
        async for nothing in said:
            assert nothing == []
            if look():
                return


@pytest.mark.requirement("FX-24")
def test_telegram_is_told_where_to_post_for_as_long_as_somebody_listens(
    telegram: Telegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel, "_LOOK_SECONDS", 0.01)
    stand = TelegramStand(telegram)
    config = channel.TelegramConfig.model_validate({"secretRef": "b", "webhookUrl": PUBLIC})
    stand.connection = replace(stand.connection, config=config)
    asked: list[dict[str, Any]] = []
    # Nobody answered before, and something waits for that.
    telegram.trouble, telegram.troubles = "ConnectionRefusedError", 1
    telegram.say("Anybody?")

    def look() -> bool:
        asked.append(telegram.webhook)
        if len(asked) == 2:
            telegram.webhook = {}  # a process that was stopped late said otherwise
        return len(asked) == 4

    asyncio.run(listened(stand, look))
    assert [one["url"] for one in asked] == [f"{PUBLIC}/api/channels/telegram/b"] * 4
    for one in asked:
        channel.Telegram().prove(stand.connection, {HEADER.lower(): one["secret_token"]})
    assert telegram.webhook == {}, "nobody listens any more"

    def fail() -> bool:
        telegram.trouble = "Wrong response from the webhook: 502 Bad Gateway"
        telegram.troubles = 2
        return False

    with pytest.raises(Unreachable, match=r"cannot post to us .*502 Bad Gateway"):
        asyncio.run(listened(stand, fail))


@pytest.mark.requirement("FX-24")
def test_who_listens_anew_is_posted_at_once_what_nobody_answered(
    telegram: Telegram, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who was killed leaves the address with Telegram, which posts to it ever more rarely."""
    monkeypatch.setattr(channel, "_LOOK_SECONDS", 0.01)
    stand = TelegramStand(telegram)
    config = channel.TelegramConfig.model_validate({"secretRef": "b", "webhookUrl": PUBLIC})
    stand.connection = replace(stand.connection, config=config)
    telegram.webhook = {"url": f"{PUBLIC}/api/channels/telegram/b"}
    asyncio.run(listened(stand, lambda: True))
    assert "setWebhook" in [method for method, _ in telegram.calls]


@pytest.mark.requirement("FX-24")
def test_what_is_posted_is_stored_once_and_only_if_it_is_proven(
    telegram: Telegram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOT", TOKEN)
    (tmp_path / "remit.toml").write_text(f'channel_servers = "telegram={telegram.url}"\n')
    with http(tmp_path) as running:
        board = running.board
        home = f"/api/companies/{board.must('GET', '/api/companies')[0]['id']}"
        board.must("POST", f"{home}/secrets", {"name": "bot", "source": "env", "place": "BOT"})
        wanted = {"agent": "ceo", "adapterType": "telegram"}
        config = {"secretRef": "bot", "webhookUrl": PUBLIC}
        made = board.must("POST", f"{home}/bindings", {**wanted, "adapterConfig": config})
        tried = board.must("POST", f"{home}/bindings/{made['id']}/test", {})
        assert (tried["usable"], tried["sentence"]) == (True, "The bot is @ada_bot.")
        path = f"/api/channels/telegram/{made['id']}"
        claim = running.app.gate(as_system(), receivers.claim, binding=made["id"], worker="w")
        claimed = asyncio.run(claim)
        assert claimed is not None
        proof = {HEADER: claimed["proof"]}
        outside = running.client()

        def sent(update: Any, headers: dict[str, str] = proof, where: str = path) -> Any:
            return outside("POST", where, body=json.dumps(update).encode(), headers=headers)

        def kept() -> Any:
            [found] = run_sql(
                running.app.settings.database_url, "SELECT count(*) FROM channel_intake"
            )
            return found[0]

        telegram.say("One.")
        telegram.say("Lunch?", chat=ROOM)
        one, unheard = telegram.updates
        # Nobody else is believed, and nobody learns which bindings there are.
        wrong = [
            sent(one, {}),
            sent(one, {HEADER: "x"}),
            sent(one, {HEADER: proof[HEADER][:-1]}),
            sent(one, {HEADER: proof[HEADER][::-1]}),
            sent(one, {HEADER: proof[HEADER].swapcase()}),
            sent(one, {HEADER: hashlib.sha256(proof[HEADER].encode()).hexdigest()}),
            *(sent(one, {HEADER: guess}) for guess in guesses(made["id"])),
            sent(one, {HEADER: "\xe4"}),
            sent(one, where=f"/api/channels/slack/{made['id']}"),
            sent(one, where=f"/api/channels/telegram/{made['agentId']}"),
        ]
        assert {(got.status, got.json["error"]) for got in wrong} == {(401, wrong[0].json["error"])}
        assert kept() == 0
        assert [sent(update).status for update in (one, one, unheard)] == [200] * 3
        assert kept() == 1
        assert sent({"update_id": "x"}).status == 422
        found = telegram.say("x", ANN)
        found |= {"reply_markup": {"inline_keyboard": [[{"text": "Y", "callback_data": "r"}]]}}
        tapped = telegram.tap(ANN, found["message_id"], "Y")
        answer = sent(telegram.updates[-1]).json
        assert answer == {"method": "answerCallbackQuery", "callback_query_id": tapped["id"]}
        board.must("DELETE", f"{home}/bindings/{made['id']}")
        assert sent(one).status == 401


@pytest.mark.requirement("FX-24")
def test_the_secret_is_of_one_listener_and_ends_with_its_binding(
    telegram: Telegram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOT", TOKEN)
    (tmp_path / "remit.toml").write_text(f'channel_servers = "telegram={telegram.url}"\n')
    with http(tmp_path) as running:
        board = running.board
        home = f"/api/companies/{board.must('GET', '/api/companies')[0]['id']}"
        board.must("POST", f"{home}/secrets", {"name": "bot", "source": "env", "place": "BOT"})
        wanted = {"agent": "ceo", "adapterType": "telegram"}
        config = {"secretRef": "bot", "webhookUrl": PUBLIC}
        made = board.must("POST", f"{home}/bindings", {**wanted, "adapterConfig": config})
        telegram.say("One.")
        outside, sent = running.client(), json.dumps(telegram.updates[0]).encode()

        def listens(binding: str) -> Any:
            """The secret of a process that begins to listen; None if another one does."""
            claim = running.app.gate(as_system(), receivers.claim, binding=binding, worker="w")
            return asyncio.run(claim)

        def answer(binding: str, secret: str) -> int:
            path = f"/api/channels/telegram/{binding}"
            return int(outside("POST", path, body=sent, headers={HEADER: secret}).status)

        assert answer(made["id"], "") == 401, "nobody has listened yet"
        first = listens(made["id"])
        assert answer(made["id"], first["proof"]) == 200
        ended = receivers.ended, {"binding": made["id"], "epoch": first["epoch"]}
        asyncio.run(running.app.gate(as_system(), ended[0], **ended[1]))
        assert answer(made["id"], first["proof"]) == 200, "Telegram posts to who was killed as well"
        second = listens(made["id"])
        assert second["proof"] != first["proof"]
        posted = {
            secret: answer(made["id"], secret) for secret in (first["proof"], second["proof"])
        }
        assert posted == {first["proof"]: 401, second["proof"]: 200}
        kept = run_sql(
            running.app.settings.database_url, "SELECT proof_digest FROM channel_receivers"
        )
        assert kept == [(hashlib.sha256(second["proof"].encode()).hexdigest(),)]
        about = {"binding": made["id"], "epoch": second["epoch"], "problem": "it broke"}
        asyncio.run(running.app.gate(as_system(), receivers.ended, **about))
        board.must("POST", f"{home}/secrets", {"name": "bot", "source": "env", "place": "BOT"})
        assert answer(made["id"], second["proof"]) == 401, (
            "it listens anew, with a secret of its own"
        )
