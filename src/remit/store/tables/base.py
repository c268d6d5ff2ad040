"""What all tables share."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    ForeignKeyConstraint,
    Index,
    Integer,
    MetaData,
    String,
    text,
)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

#: Ids compare byte by byte everywhere, so that a prefix is a range.
Id = String(36).with_variant(String(36, collation="C"), "postgresql")
#: Where the short id begins that lists show: twelve random digits at the end of an id.
SHORT_BEGINS = 25
Time = BigInteger()
RowNumber = BigInteger().with_variant(Integer(), "sqlite")


def one_of(column: str, *values: str) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def by_short_id(table: str) -> Index:
    """Finds a row by the short id that lists show, or by its first digits."""
    return Index(f"ix_{table}_short_id", text(f"substr(id, {SHORT_BEGINS})"))


def within_company(column: str, table: str, *, deferred: bool = False) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        [column, "company_id"],
        [f"{table}.id", f"{table}.company_id"],
        deferrable=True if deferred else None,
        initially="DEFERRED" if deferred else None,
        use_alter=deferred,
    )
