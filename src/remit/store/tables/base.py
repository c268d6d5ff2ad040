"""Parts that all tables share."""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

metadata = sa.MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: Ids compare byte by byte everywhere, so that a prefix is a range.
Id = sa.String(36).with_variant(sa.String(36, collation="C"), "postgresql")
#: Where the short id begins that lists show: twelve random digits at the end of an id.
SHORT_BEGINS = 25
Time = sa.BigInteger()
RowNumber = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
#: Of a column.
Kind = TypeEngine[Any] | type[TypeEngine[Any]]


def table(name: str, *parts: SchemaItem, **options: Any) -> sa.Table:
    return sa.Table(name, metadata, *parts, **options)


def required(kind: Kind, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind, nullable=False) for name in names]


def optional(kind: Kind, *names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, kind) for name in names]


def keys(kind: Kind, *names: str) -> list[sa.Column[Any]]:
    """Columns of the primary key."""
    return [sa.Column(name, kind, primary_key=True) for name in names]


def counters(*names: str) -> list[sa.Column[Any]]:
    """Whole numbers that begin at nothing, also in rows that are older than the column."""
    return [sa.Column(name, sa.BigInteger, nullable=False, server_default="0") for name in names]


def references(table: str, *names: str) -> list[sa.Column[Any]]:
    """Ids of rows that belong to no company, or whose company is not compared."""
    return [sa.Column(name, Id, sa.ForeignKey(f"{table}.id")) for name in names]


def company_id() -> sa.Column[Any]:
    return sa.Column("company_id", Id, sa.ForeignKey("companies.id"), nullable=False)


def company_row(*, referable: bool = False) -> list[SchemaItem]:
    """First columns of a row of a company; `within_company` needs a referable one."""
    found: list[SchemaItem] = [*keys(Id, "id"), company_id()]
    return [*found, sa.UniqueConstraint("id", "company_id")] if referable else found


def check(name: str, condition: str) -> sa.CheckConstraint:
    return sa.CheckConstraint(condition, name=name)


def one_of(column: str, *values: str) -> sa.CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return check(column, f"{column} IN ({listed})")


def leased_queue(held: str, *ends: str) -> list[sa.CheckConstraint]:
    """The status of what waits in a queue, is held by a worker until its lease ends, and ends."""
    return [
        one_of("status", "queued", held, *ends),
        check("leased", f"(status = '{held}') = (lease_until IS NOT NULL)"),
        check("ended", f"(status IN ('queued', '{held}')) = (ended_at IS NULL)"),
    ]


def partial_index(
    name: str, *columns: str, where: str, sqlite: str | None = None, unique: bool = False
) -> sa.Index:
    """An index of the rows that meet a condition; `sqlite` is how SQLite has to write it."""
    return sa.Index(
        name,
        *columns,
        unique=unique,
        sqlite_where=sa.text(sqlite or where),
        postgresql_where=sa.text(where),
    )


def polled(*looked_at: str) -> list[sa.Column[Any]]:
    """Columns of a row that one worker at a time polls under a lease; see `Polled`."""
    return [
        *required(Time, "next_at"),
        *required(sa.Integer, "failures"),
        *optional(sa.Text, "problem", "worker"),
        *optional(Time, *looked_at, "lease_until"),
        *required(sa.BigInteger, "epoch"),
    ]


def by_short_id(table: str) -> sa.Index:
    """Finds a row by the short id that lists show, or by its first digits."""
    return sa.Index(f"ix_{table}_short_id", sa.text(f"substr(id, {SHORT_BEGINS})"))


def within_company(
    table: str, *columns: str, deferred: bool = False
) -> list[sa.ForeignKeyConstraint]:
    """References to rows of the same company."""
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
