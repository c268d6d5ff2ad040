"""What all tables share."""

from __future__ import annotations

from sqlalchemy import BigInteger, CheckConstraint, ForeignKeyConstraint, Integer, MetaData, String

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
Time = BigInteger()
RowNumber = BigInteger().with_variant(Integer(), "sqlite")


def one_of(column: str, *values: str) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=column)


def within_company(column: str, table: str, *, deferred: bool = False) -> ForeignKeyConstraint:
    return ForeignKeyConstraint(
        [column, "company_id"],
        [f"{table}.id", f"{table}.company_id"],
        deferrable=True if deferred else None,
        initially="DEFERRED" if deferred else None,
        use_alter=deferred,
    )
