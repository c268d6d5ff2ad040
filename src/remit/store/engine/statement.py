"""Statements: written in SQLAlchemy Core, compiled once per database, run on the bare driver.

Executing through SQLAlchemy costs four times as much as the statement itself. Compiling once and
passing text and parameters to the driver keeps the portability without that cost.
"""

import enum
import operator
import re
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any, Generic, TypeVar

from sqlalchemy import (
    JSON,
    BindParameter,
    Boolean,
    Column,
    ColumnElement,
    FromClause,
    Select,
    String,
    Table,
    bindparam,
    delete,
    func,
    insert,
    or_,
    select,
    true,
    update,
)
from sqlalchemy import cast as sql_cast
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.sql import ClauseElement
from sqlalchemy.sql.dml import UpdateBase
from sqlalchemy.sql.selectable import SelectBase

from remit.store.tables.base import STORED, kinds

T = TypeVar("T")

SQLITE: Dialect = sqlite.dialect(paramstyle="named")
POSTGRESQL: Dialect = postgresql.dialect(paramstyle="pyformat")  # type: ignore[no-untyped-call]


def _with_constants(compiler: Any) -> Any:
    """A compiler that writes constants out, as a partial index wants them. SQLite plans a statement
    anew whenever a parameter is bound that such an index could depend on."""

    class Compiler(compiler):  # type: ignore[misc]
        def visit_bindparam(self, bindparam: BindParameter[Any], **options: Any) -> Any:
            constant = bindparam.unique and type(bindparam.value) in (str, int, bool)
            return super().visit_bindparam(bindparam, **{**options, "literal_binds": constant})

    return Compiler


for _dialect in (SQLITE, POSTGRESQL):
    _dialect.statement_compiler = _with_constants(_dialect.statement_compiler)

Row = Sequence[Any]


class Statement(Generic[T]):
    """A statement, and the function that makes a value of each of its rows."""

    __slots__ = (
        "_compiled",
        "_named",
        "_per_dialect",
        "_statement",
        "kept",
        "make",
        "many",
        "optional",
        "parameters",
        "writes",
    )

    def __init__(
        self,
        statement: ClauseElement,
        make: Callable[..., T],
        *,
        sqlite: ClauseElement | None = None,
    ) -> None:
        self._statement = statement
        self._per_dialect = {SQLITE.name: sqlite if sqlite is not None else statement}
        self._compiled: dict[str, tuple[str, dict[str, Any]]] = {}
        self._named: frozenset[str] = frozenset()
        #: The names of its parameters; known once it is compiled.
        self.parameters: tuple[str, ...] = ()
        #: The tables whose rows it changes; known once it is compiled.
        self.writes: frozenset[str] = frozenset()
        #: Whether a transaction caches its results.
        self.kept = False
        #: A parameter, and the statement that finds the rows for many values of it.
        self.many: tuple[str, Statement[Any]] | None = None
        #: Optional filters: each switch `any_…` with the parameter whose absence turns it on.
        self.optional: tuple[tuple[str, str], ...] = ()
        self.make = make

    def compiled(self, dialect: Dialect) -> tuple[str, dict[str, Any]]:
        """The text for this database, and the values of its constants."""
        try:
            return self._compiled[dialect.name]
        except KeyError:
            statement = self._per_dialect.get(dialect.name, self._statement)
            compiled = statement.compile(dialect=dialect)
            constants = {key: value for key, value in compiled.params.items() if value is not None}
            self._named = frozenset(re.findall(r"\w+", str(compiled)))
            self.writes = _written_by(statement, self._named)
            self.parameters = tuple(compiled.params)
            self.optional = tuple(
                (key, key.removeprefix("any_")) for key in compiled.params if key.startswith("any_")
            )
            # Last, because other threads take the rest for known once this is there.
            self._compiled[dialect.name] = (str(compiled), constants)
            return self._compiled[dialect.name]

    def keep(self) -> "Statement[T]":
        """Have each transaction cache the results, until it changes a table that the statement
        names; for statements that are executed again and again."""
        self.kept = True
        return self

    def names_any(self, tables: frozenset[str]) -> bool:
        """Whether any of these tables is in its text, which was compiled before."""
        return not self._named.isdisjoint(tables)


def _written_by(statement: ClauseElement, named: frozenset[str]) -> frozenset[str]:
    """Return the tables that a statement changes; for one that is only text, all words in it."""
    if isinstance(statement, SelectBase):
        return frozenset()
    if isinstance(statement, UpdateBase):
        return frozenset({typing.cast(Table, statement.table).name})
    return named


def change(statement: ClauseElement, *, sqlite: ClauseElement | None = None) -> Statement[None]:
    """A statement without result rows."""
    return Statement(statement, lambda *_: None, sqlite=sqlite)


def columns(table: Table, value: type[Any]) -> list[Column[Any]]:
    """The columns that make up a value, in the order of its fields."""
    return [table.c[field.name] for field in fields(value)]


class Rows(Generic[T]):
    """Builder of statements on a table whose rows become values; the table that stores the
    values, unless another is given."""

    def __init__(self, value: type[T], key: str = "id", *, table: Table | None = None) -> None:
        self.table = STORED[value] if table is None else table
        self.value = value
        self.key = self.table.c[key]

    def find(
        self,
        *where: ColumnElement[bool],
        join: tuple[FromClause, ColumnElement[bool]] | None = None,
        order: Sequence[Any] | None = None,
        limit: Any = None,
        **same: str,
    ) -> Statement[T]:
        """Select the rows that meet the conditions; `same` compares columns with parameters.
        Ordered by their key, unless `order` says otherwise; an empty `order` means none."""
        query = self.select(*where, join=join, **same).limit(limit)
        return Statement(
            query.order_by(*([self.key] if order is None else order)), into(self.value)
        )

    def one(self, *where: ColumnElement[bool], **same: str) -> Statement[T]:
        """Select the row that meets the conditions, where there is one at most."""
        return Statement(self.select(*self.same(**same), *where), into(self.value))

    def keyed(
        self, *where: ColumnElement[bool], order: Sequence[Any] = (), **same: str
    ) -> Statement[T]:
        """Like `find`, and kept; `Transaction.look_ahead` finds the rows for many values of the
        last parameter at once."""
        statement = Statement(
            self.select(*self.same(**same), *where).order_by(*order), into(self.value)
        )
        column, parameter = same.popitem()
        key = self.table.c[column]
        rows = select(key, *columns(self.table, self.value)).order_by(*order)
        of_all = among(rows.where(*self.same(**same), *where), key, "values", lambda *row: row)
        statement.many = parameter, of_all
        return statement.keep()

    def after(self, *where: ColumnElement[bool], **same: str) -> Statement[T]:
        """Select a page of rows: those whose key follows the parameter `after`."""
        later = self.key > bindparam("after")
        return self.find(*self.same(**same), later, *where, limit=bindparam("limit"))

    def before(self, *where: ColumnElement[bool], **same: str) -> Statement[T]:
        """Select a page of rows, newest first: those whose key precedes the parameter `before`."""
        earlier = self.key < bindparam("before")
        return self.find(
            *self.same(**same), earlier, *where, order=[self.key.desc()], limit=bindparam("limit")
        )

    def between(
        self, *where: ColumnElement[bool], limit: Any, order: Sequence[Any] | None = (), **same: str
    ) -> Statement[T]:
        """Select rows by a prefix of their key, given as the range from `low` up to before
        `high`."""
        prefix = (self.key >= bindparam("low"), self.key < bindparam("high"))
        return self.find(*self.same(**same), *prefix, *where, order=order, limit=limit)

    def any(self, *where: ColumnElement[bool], **same: str) -> Statement[Any]:
        """Select the key of one row that meets the conditions, if there is any."""
        return values_of(self.key, *self.same(**same), *where, limit=1)

    def select(
        self,
        *where: ColumnElement[bool],
        join: tuple[FromClause, ColumnElement[bool]] | None = None,
        **same: str,
    ) -> Select[Any]:
        query = select(*columns(self.table, self.value)).where(*self.same(**same), *where)
        return query if join is None else query.join(*join)

    def same(self, **same: str) -> list[ColumnElement[bool]]:
        return _same(self.table, same)

    def count(self, *where: ColumnElement[bool], **same: str) -> Statement[Any]:
        """Count the rows that meet the conditions."""
        return count(self.table, *self.same(**same), *where)

    def update(self, *where: ColumnElement[bool], **values: Any) -> Statement[None]:
        """Update the rows that meet the conditions."""
        return change(update(self.table).where(*where).values(values))

    def listed(self, under_way: ColumnElement[bool], *, newest_first: bool = False) -> Statement[T]:
        """Select a page of a company's rows: of one agent or all, unfinished ones or all."""
        page = self.before if newest_first else self.after
        return page(
            if_asked(self.table.c.agent_id, "agent"),
            unless("ended_too", under_way),
            company_id="company",
        )

    def next_version(self, *where: ColumnElement[bool], of: Sequence[str]) -> Statement[None]:
        """Update some columns, each from the parameter `new_…`, and raise the row's version."""
        return self.update(
            *where, **new(*of), version=self.table.c.version + 1, updated_at=bindparam("now")
        )

    def revoke(self, *where: ColumnElement[bool]) -> Statement[None]:
        """Revoke the rows that meet the conditions and were not revoked before."""
        good = self.table.c.revoked_at.is_(None)
        return self.update(*where, good, revoked_at=bindparam("now"))

    def mark_removed(self, **same: str) -> Statement[None]:
        """Soft-delete the rows whose columns equal the parameters."""
        there = self.table.c.removed_at.is_(None)
        at = [name for name in ("removed_at", "updated_at") if name in self.table.c]
        return self.update(*self.same(**same), there, **{name: bindparam("now") for name in at})

    def delete(self, *where: ColumnElement[bool], **same: str) -> Statement[None]:
        """Delete the rows that meet the conditions."""
        return delete_from(self.table, *where, **same)

    def insert_without(self, *generated: str) -> Statement[None]:
        """Insert a row without the `generated` columns, whose values the database sets."""
        names = (column.name for column in self.table.c if column.name not in generated)
        return change(insert(self.table).values({name: bindparam(name) for name in names}))


def among(
    query: Select[Any], column: ColumnElement[Any], name: str, make: Callable[..., T]
) -> Statement[T]:
    """The rows of a query whose column has one of the values in the parameter `name`, a JSON
    list."""
    values = bindparam(name, type_=String)
    on_sqlite = func.json_each(values).table_valued("value")
    elements = func.json_array_elements_text(sql_cast(values, JSON)).table_valued("value")
    return Statement(
        query.where(column.in_(select(elements.c.value))),
        make,
        sqlite=query.where(column.in_(select(on_sqlite.c.value))),
    )


def values_of(
    column: ColumnElement[Any],
    *where: ColumnElement[bool],
    join: tuple[FromClause, ColumnElement[bool]] | None = None,
    order: Sequence[Any] = (),
    limit: Any = None,
    distinct: bool = False,
    **same: str,
) -> Statement[Any]:
    """Select one column of the rows that meet the conditions; `same` compares columns of its table
    with parameters."""
    query = select(column).where(*_same(getattr(column, "table", None), same), *where)
    query = query if join is None else query.join(*join)
    query = query.order_by(*order).limit(limit)
    return Statement(query.distinct() if distinct else query, scalar)


def delete_from(table: Table, *where: ColumnElement[bool], **same: str) -> Statement[None]:
    """Delete the rows of a table that meet the conditions."""
    return change(delete(table).where(*_same(table, same), *where))


def _same(table: Any, same: Mapping[str, str]) -> list[ColumnElement[bool]]:
    return [table.c[name] == bindparam(value) for name, value in same.items()]


def count(table: FromClause, *where: ColumnElement[bool]) -> Statement[Any]:
    """Count the rows of a table that meet the conditions."""
    return Statement(select(func.count()).select_from(table).where(*where), scalar)


def unless(switch: str, *conditions: ColumnElement[bool]) -> ColumnElement[bool]:
    """A condition: one of the conditions holds, or the parameter `switch` turns them off."""
    return or_(bindparam(switch, type_=Boolean) == true(), *conditions)


def if_asked(column: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """An optional filter: the column equals the parameter `name`, unless `any_…` turns it off."""
    return unless(f"any_{name}", column == bindparam(name))


def new(*names: str) -> dict[str, BindParameter[Any]]:
    """Values for columns, each as the parameter `new_…`."""
    return {name: bindparam(f"new_{name}") for name in names}


def into(value: type[T]) -> Callable[..., T]:
    """Return a function that makes a value of a row, with real enums and booleans."""
    casts = _casts(typing.cast(Any, value))
    named = [field.name for field in fields(typing.cast(Any, value)) if field.kw_only]
    if not casts and not named:
        return value

    def make(*row: Any) -> T:
        values = list(row)
        for index, cast in casts:
            values[index] = cast(values[index])
        if not named:
            return value(*values)
        # Fields of a base come first, and are given by name.
        return value(*values[len(named) :], **dict(zip(named, values, strict=False)))

    return make


@cache  # a dozen statements return agents, and each start of a program builds them all
def _casts(value: Any) -> list[tuple[int, Callable[[Any], Any]]]:
    casts: list[tuple[int, Callable[[Any], Any]]] = []
    for index, (kind, optional) in enumerate(kinds(value).values()):
        if kind is bool:
            casts.append((index, _maybe_bool if optional else bool))
        elif isinstance(kind, type) and issubclass(kind, enum.Enum):
            # A look-up takes a tenth of calling the enum, and lists have thousands of rows.
            known: dict[Any, Any] = {member.value: member for member in kind}
            none = {None: None} if optional else {}
            casts.append((index, {**known, **none}.__getitem__))
    return casts


def _maybe_bool(value: Any) -> bool | None:
    return None if value is None else bool(value)


def scalar(value: Any) -> Any:
    """The value of a row with one column."""
    return value


def counted(value: Any, count: Any) -> tuple[str, int]:
    """A row with a name or an id, and a number."""
    return str(value), int(count)


def row(value: Any, **more: Any) -> dict[str, Any]:
    """Return the parameters that store a value: its fields, enums as their plain values."""
    names, read, words = _fields(value.__class__)
    parameters = dict(zip(names, read(value), strict=True))
    for name in words:
        if isinstance(parameters[name], enum.Enum):
            parameters[name] = parameters[name].value
    parameters.update(more)
    return parameters


@cache  # of a class: `fields` takes longer than all the rest of a row
def _fields(value: Any) -> tuple[tuple[str, ...], Callable[[Any], Row], tuple[str, ...]]:
    """The names of a value's fields, a getter of them all, and the names of possible enums."""
    names = tuple(field.name for field in fields(value))
    words = tuple(name for name, (kind, _) in kinds(value).items() if _may_be_enum(kind))
    if len(names) == 1:
        return names, lambda record: (getattr(record, names[0]),), words
    return names, operator.attrgetter(*names), words


def _may_be_enum(kind: Any) -> bool:
    return not isinstance(kind, type) or issubclass(kind, enum.Enum)


def renewed(value: Any, **more: Any) -> dict[str, Any]:
    """The parameters `new_…` that update a stored value; a statement uses those that it names."""
    return {f"new_{name}": plain for name, plain in row(value, **more).items()}
