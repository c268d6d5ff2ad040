"""What a process that forks others does first, so that none of those has to do it again."""

import asyncio
import contextlib
import gc
import pkgutil
import tempfile
import threading
from functools import partial
from importlib import import_module

import remit.services
import remit.store
from remit.ids import TokenKind, new_token
from remit.services.identity import Caller, as_system
from remit.services.people import companies, instance
from remit.settings import Settings, load
from remit.store.engine.migrate import is_sqlite, migrate, sqlite_path
from remit.store.engine.statement import POSTGRESQL, SQLITE, Statement

#: What an instance imports when it begins to serve, or later.
_SERVING = (
    "anyio._backends._asyncio",
    "remit.entrypoints.serve",
    "remit.entrypoints.mcp.endpoint",
    "remit.entrypoints.mcp.tools.proxy_tools",
    "remit.entrypoints.mcp.repetition",
    "remit.entrypoints.mcp.tools.listing",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.auto",
)


def warm_up() -> None:
    _compile_statements()
    _serve_once()
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()  # what is here already is not looked at again, in any of the processes


def _compile_statements() -> None:
    for name in ("remit.store.engine.postgres", "sqlalchemy.dialects.postgresql.psycopg"):
        import_module(name)
    for package in (remit.services, remit.store):
        for module_info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "migrations" not in module_info.name:
                module = import_module(module_info.name)
                for statement in vars(module).values():
                    if isinstance(statement, Statement):
                        statement.compiled(SQLITE)
                        statement.compiled(POSTGRESQL)


def _serve_once() -> None:
    """For the first time it takes twice as long; and later a first start has its tables."""
    from remit import app

    for name in _SERVING:
        import_module(name)
    with contextlib.suppress(ImportError):
        import_module("uvloop")
    with tempfile.TemporaryDirectory() as home:
        settings = load({"REMIT_HOME": home})
        app.App(settings).close()
        migrated = sqlite_path(settings.database_url).read_bytes()
        asyncio.run(_work_once(settings))
    vars(app)["migrate"] = partial(_lay_tables, migrated)


async def _work_once(settings: Settings) -> None:
    """Code that ran before is quicker, and what it looked up is kept."""
    from remit.app import App
    from remit.entrypoints.http.server.asgi import build_asgi

    async with App(settings) as first:
        build_asgi(first)
        # A whole start would begin threads that stay, and that a fork would miss.
        token = new_token(TokenKind.USER)
        adapter = first.gate.usable_adapter
        await first.gate(as_system(), instance.first_start, token=token, adapter_type=adapter)
        await first.gate(Caller(token), companies.listing)


def _lay_tables(migrated: bytes, url: str) -> str | None:
    """What a first start does with a SQLite database that is not there yet; but as a copy."""
    path = sqlite_path(url)
    if is_sqlite(url) and path.parent.is_dir() and not path.exists():
        path.write_bytes(migrated)
    return migrate(url)
