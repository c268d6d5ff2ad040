"""What processes that fork others do first, so that none of those has to do it again."""

import contextlib
import gc
import pkgutil
import tempfile
from importlib import import_module

import remit.services
import remit.store
from remit.settings import load
from remit.store.statement import POSTGRESQL, SQLITE, Statement

#: What an instance imports when it begins to serve, or later.
_SERVING = (
    "remit.entrypoints.serve",
    "remit.entrypoints.mcp.endpoint",
    "remit.entrypoints.mcp.proxy_tools",
    "remit.entrypoints.mcp.repetition",
    "remit.entrypoints.mcp.tools",
    "uvicorn.lifespan.on",
    "uvicorn.protocols.http.auto",
)


def warm_up() -> None:
    """Once, and not by each process: what is imported late, and what statements say."""
    for name in ("remit.store.postgres", "sqlalchemy.dialects.postgresql.psycopg"):
        import_module(name)
    for package in (remit.services, remit.store):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if "migrations" not in found.name:
                module = import_module(found.name)
                for statement in vars(module).values():
                    if isinstance(statement, Statement):
                        statement.compiled(SQLITE)
                        statement.compiled(POSTGRESQL)
    _freeze()


def warm_up_serving() -> None:
    """The same for instances: to serve for the first time takes twice as long."""
    from remit.app import App
    from remit.entrypoints.http.asgi import build_asgi

    for name in _SERVING:
        import_module(name)
    with contextlib.suppress(ImportError):
        import_module("uvloop")
    with (
        tempfile.TemporaryDirectory() as home,
        contextlib.closing(App(load({"REMIT_HOME": home}))) as app,
    ):
        build_asgi(app)
    _freeze()


def _freeze() -> None:
    gc.collect()
    gc.freeze()  # what is here already is not looked at again, in any of the processes
