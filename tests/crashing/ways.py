"""How calls are made: at the gate, or where bytes, files and folders come along with them."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from remit.app import App
from remit.runtime.repos import signing
from remit.runtime.runs import lifecycle as live_runs
from remit.services.command import verb_named
from remit.services.identity import Caller
from remit.services.people import companies
from tests.crashing.call import Call

_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))


async def _through_gate(app: App, caller: Caller, call: Call) -> Any:
    return await app.gate(caller, verb_named(call.verb), **call.given)


async def _create_file(app: App, caller: Caller, call: Call) -> Any:
    given = {**call.given, "source": call.given["source"].encode()}
    return await app.library.create(caller, given.pop("source"), **given)


async def _write_file(app: App, caller: Caller, call: Call) -> Any:
    given = {**call.given, "source": call.given["source"].encode()}
    return await app.library.write(caller, given.pop("source"), **given)


async def _read_file(app: App, caller: Caller, call: Call) -> Any:
    view, content = await app.library.read(caller, **call.given)
    return [view, content.decode()]


async def _send(app: App, caller: Caller, call: Call) -> Any:
    return await app.library.send(caller, **call.given)


async def _upload(app: App, caller: Caller, call: Call) -> Any:
    """A body that comes in pieces, larger than what is kept in memory."""

    async def pieces() -> AsyncIterator[bytes]:
        for piece in range(5):
            yield bytes([65 + piece]) * 100_000

    return await app.library.send(caller, body=pieces(), **call.given)


async def _create_outcome(app: App, caller: Caller, call: Call) -> Any:
    return await app.library.create_outcome(caller, **call.given)


async def _set_secret(app: App, caller: Caller, call: Call) -> Any:
    return await app.vault.put(caller, **call.given)


async def _make_signing_key(app: App, caller: Caller, call: Call) -> Any:
    """The same key each time: what is left is compared."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(signing, "new_key", lambda: signing.stored(_KEY))
        return await app.signing.make(caller, **call.given)


async def _remove_secret(app: App, caller: Caller, call: Call) -> Any:
    return await app.vault.remove(caller, **call.given)


async def _import(app: App, caller: Caller, call: Call) -> Any:
    whole = Path(app.settings.home).parent.joinpath("archive").read_bytes()

    async def pieces() -> AsyncIterator[bytes]:
        for start in range(0, len(whole), 1 << 16):
            yield whole[start : start + (1 << 16)]

    return await app.archive.import_(caller, pieces(), **call.given)


async def _export(app: App, caller: Caller, call: Call) -> Any:
    outline = await app.archive.export(caller, **call.given)
    return sum([len(piece) async for piece in app.archive.stream(outline)]) > 0


async def _begin_run(app: App, caller: Caller, call: Call) -> Any:
    run = await live_runs.begin(app.gate, app.ids, app.settings.workspaces, **call.given)
    return {"id": run.id}


async def _first_start(app: App, caller: Caller, call: Call) -> Any:
    await app.first_start()
    who = Caller(app.settings.board_token_file.read_text().strip())
    return [one["name"] for one in await app.gate(who, companies.listing)]


WAYS: dict[str, Callable[[App, Caller, Call], Awaitable[Any]]] = {
    "": _through_gate,
    "library.create": _create_file,
    "library.write": _write_file,
    "library.read": _read_file,
    "library.send": _send,
    "upload": _upload,
    "library.create_outcome": _create_outcome,
    "vault.put": _set_secret,
    "vault.remove": _remove_secret,
    "signing.make": _make_signing_key,
    "archive.import_": _import,
    "archive.export": _export,
    "runs.begin": _begin_run,
    "app.first_start": _first_start,
}
