"""The statements of the store, all of them."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from remit import store
from remit.store.engine.statement import SQLITE, Statement


def every_statement() -> Iterator[tuple[str, Statement[Any]]]:
    for module in pkgutil.walk_packages(store.__path__, f"{store.__name__}."):
        if ".migrations" in module.name:
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            for statement in value.values() if isinstance(value, dict) else [value]:
                if isinstance(statement, Statement):
                    yield f"{module.name}.{name}", statement
                    if statement.many is not None:
                        yield f"{module.name}.{name} for many", statement.many[1]


def statements_that_set(table: str, column: str) -> set[str]:
    """The names of the statements that write a column of rows that exist."""
    names = set()
    for name, statement in every_statement():
        text = " ".join(statement.compiled(SQLITE)[0].split())
        values = text.partition(f"UPDATE {table} ")[2].partition(" WHERE ")[0]
        if f" {column}=" in values:
            names.add(name)
    return names
