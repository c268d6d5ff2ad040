"""Helpers that build all tables.

A table that stores a value of the model has a column for each field, derived from the field's type:
an id becomes a foreign key within the same company, and an enum a check constraint. The rest is
declared by hand: keys, defaults, other conditions, indexes, and 64-bit numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import EnumType, StrEnum
from types import MappingProxyType, NoneType
from typing import Annotated, Any, NewType, get_args, get_origin, get_type_hints

import sqlalchemy as sa
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine
from sqlalchemy.util import OrderedSet

from remit.clock import Micros
from remit.ids import (
    AgentId,
    ApprovalId,
    BindingId,
    ChangeId,
    CompanyId,
    FileId,
    GrantId,
    MessageId,
    OutcomeId,
    RepoId,
    RunId,
    UserId,
)

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: Ids compare by bytes on both engines, so that a prefix is a range.
Id = sa.String(36).with_variant(sa.String(36, collation="C"), "postgresql")
#: Position of the short id in an id: the twelve random digits at the end, which lists show.
SHORT_BEGINS = 25
Time = sa.BigInteger()
RowNumber = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
#: Type of a column.
Kind = TypeEngine[Any] | type[TypeEngine[Any]]

#: Table of each value of the model.
STORED: dict[type[Any], sa.Table] = {}
#: Tables that types of ids refer to: those outside companies, and those within one.
_SHARED: dict[Any, str] = {CompanyId: "companies", UserId: "users"}
_WITHIN_COMPANY: dict[Any, str] = {
    AgentId: "agents",
    ApprovalId: "approvals",
    BindingId: "agent_bindings",
    ChangeId: "changes",
    FileId: "files",
    GrantId: "grants",
    MessageId: "messages",
    OutcomeId: "outcomes",
    RepoId: "repos",
    RunId: "runs",
}


def table(name: str, *parts: SchemaItem, **options: Any) -> sa.Table:
    indexes = [part.name for part in parts if isinstance(part, sa.Index)]
    return sa.Table(name, metadata, *parts, info={"indexes": indexes}, **options)


def copied(table: sa.Table, tables: sa.MetaData) -> sa.Table:
    """Copy a table into other metadata, so that its indexes are created in order of declaration.

    Of two equally good indexes SQLite takes the one created last, and SQLAlchemy keeps them in a
    set, whose order differs between processes.
    """
    copy = table.to_metadata(tables)
    copy.indexes = OrderedSet(in_order(copy))
    return copy


def in_order(table: sa.Table) -> list[sa.Index]:
    """Return the indexes of a table in order of declaration: special ones after general ones."""
    return sorted(table.indexes, key=lambda index: table.info["indexes"].index(index.name))


def table_of(
    value: type[Any],
    name: str,
    *parts: SchemaItem,
    key: Sequence[str] = ("id",),
    referable: bool = False,
    defaults: Mapping[str, str | int] = MappingProxyType({}),
    **options: Any,
) -> sa.Table:
    """Declare the table of a value. Each field without a column among the parts gets one, with a
    foreign key for an id and a check for an enum, unless the parts have their own. Rows of other
    tables in the company may refer to a `referable` table; `defaults` fill columns of rows that are
    older than the column."""
    own_columns = {part.name: part for part in parts if isinstance(part, sa.Column)}
    explicit = [part for part in parts if isinstance(part, sa.ForeignKeyConstraint)]
    referring = {"id", *(name for constraint in explicit for name in constraint.column_keys)}
    checked = {part.name for part in parts if isinstance(part, sa.CheckConstraint)}
    columns: list[SchemaItem] = []
    conditions: list[SchemaItem] = [sa.UniqueConstraint("id", "company_id")] if referable else []
    for field, (kind, choice) in kinds(value).items():
        if field in own_columns:
            columns.append(own_columns.pop(field))
            continue
        shared = _SHARED.get(kind) if field != "id" else None
        columns.append(
            sa.Column(
                field,
                Id if field == "id" else _stored(kind),
                *([sa.ForeignKey(f"{shared}.id")] if shared else ()),
                nullable=choice,
                primary_key=field in key,
                server_default=_default(defaults.get(field)),
            )
        )
        if kind in _WITHIN_COMPANY and field not in referring:
            conditions += within_company(_WITHIN_COMPANY[kind], field)
        if isinstance(kind, EnumType) and issubclass(kind, StrEnum) and field not in checked:
            conditions.append(one_of(field, *kind))
    # A generated row number becomes the first column, other columns without a field the last.
    columns = [*(column for column in own_columns.values() if column.primary_key), *columns]
    columns += [column for column in own_columns.values() if not column.primary_key]
    others = [part for part in parts if not isinstance(part, sa.Column)]
    STORED[value] = table(name, *columns, *others, *conditions, **options)
    return STORED[value]


def kinds(value: type[Any]) -> dict[str, tuple[Any, bool]]:
    """Return the types of a value's fields, and whether each may be None."""
    hints = get_type_hints(value, include_extras=True)
    by_field = {}
    for field in fields(value):
        hint = hints[field.name]
        declared = get_args(hint)[0] if _is_described(hint) else hint
        choices = get_args(declared) if NoneType in get_args(declared) else ()
        [kind] = [choice for choice in choices if choice is not NoneType] or [declared]
        by_field[field.name] = (kind, bool(choices))
    return by_field


def _default(value: str | int | None) -> Any:
    if isinstance(value, bool):
        return sa.true() if value else sa.false()
    return None if value is None else str(value)


def _is_described(hint: Any) -> bool:
    """Whether a field's type carries descriptions and limits, as those of an agent do."""
    return get_origin(hint) is Annotated and hint != Micros


def _stored(kind: Any) -> Kind:
    if kind == Micros:
        return Time
    if isinstance(kind, NewType):
        return Id
    known: dict[type, Kind] = {bool: sa.Boolean, int: sa.Integer, str: sa.Text}
    return next(column for base, column in known.items() if issubclass(kind, base))


def required(kind: Kind, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=False) for name in names]


def optional(kind: Kind, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind) for name in names]


def keys(kind: Kind, *names: str) -> list[sa.Column[Any]]:
    """Columns of the primary key."""
    return [sa.Column(name, kind, primary_key=True) for name in names]


def counters(*names: str) -> list[sa.Column[Any]]:
    """Integer columns that begin at 0, also in rows that are older than the column."""
    return [sa.Column(name, sa.BigInteger, nullable=False, server_default="0") for name in names]


def references(table: str, *names: str) -> list[sa.Column[Any]]:
    """Id columns with foreign keys that do not compare the company."""
    return [sa.Column(name, Id, sa.ForeignKey(f"{table}.id")) for name in names]


def company_id() -> sa.Column[Any]:
    return sa.Column("company_id", Id, sa.ForeignKey("companies.id"), nullable=False)


def check(name: str, condition: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(condition, name=name)


def one_of(column: str, *values: str) -> sa.CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return check(column, f"{column} IN ({listed})")


def leased_queue(held: str, *ends: str) -> list[SchemaItem]:
    """The epoch of a leased queue's table, and the checks of its statuses, leases and ends."""
    return [
        *required(sa.BigInteger, "epoch"),
        one_of("status", "queued", held, *ends),
        check("leased", f"(status = '{held}') = (lease_until IS NOT NULL)"),
        check("ended", f"(status IN ('queued', '{held}')) = (ended_at IS NULL)"),
    ]


def partial_index(
    name: str,
    *columns: str | sa.TextClause,
    where: str,
    sqlite: str | None = None,
    unique: bool = False,
) -> sa.Index:
    """An index of the rows that meet a condition; `sqlite` is the condition in SQLite's dialect."""
    return sa.Index(
        name,
        *columns,
        unique=unique,
        sqlite_where=sa.text(sqlite or where),
        postgresql_where=sa.text(where),
    )


def by_short_id(table: str) -> sa.Index:
    """An index by the short id that lists show, or by a prefix of it."""
    return sa.Index(f"ix_{table}_short_id", sa.text(f"substr(id, {SHORT_BEGINS})"))


def within_company(
    table: str, *columns: str, deferred: bool = False
) -> list[sa.ForeignKeyConstraint]:
    """Foreign keys to rows of the same company."""
    return [
        sa.ForeignKeyConstraint(
            [column, "company_id"],
            [f"{table}.id", f"{table}.company_id"],
            deferrable=True if deferred else None,
            initially="DEFERRED" if deferred else None,
            use_alter=deferred,
        )
        for column in columns
    ]
