"""What processes that fork others do first, so that none of those has to do it again."""

import gc
import pkgutil
from importlib import import_module

import remit.services
import remit.store
from remit.store.statement import POSTGRESQL, SQLITE, Statement


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
    gc.collect()
    gc.freeze()  # what is here already is not looked at again, in any of the processes
