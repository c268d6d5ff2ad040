"""The text of an export: TOML for what Remit keeps, and prose below it as it was written.

+++
title = "Ship it"
+++

What people and agents wrote.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from remit.errors import BadInput
from remit.services.shape_basics import JsonObject

FENCE = b"+++\n"
_END = b"\n+++\n"
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\b": "\\b", "\t": "\\t", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


class Noted(str):
    """A value with a trailing comment, for human readers of the file."""

    remark: str

    def __new__(cls, value: str, remark: str | None) -> Noted:
        noted = super().__new__(cls, value)
        noted.remark = remark or ""
        return noted


def dump(table: Mapping[str, Any]) -> str:
    """Write TOML: plain values first, then tables; None and empty lists are left out."""
    lines: list[str] = []
    _table(table, "", lines)
    return "\n".join(lines) + "\n"


def with_prose(table: Mapping[str, Any]) -> bytes:
    """Return the fenced head of a document; its prose may follow."""
    return FENCE + dump(table).encode() + FENCE


def split_prose(path: str, document: bytes) -> tuple[JsonObject, bytes]:
    end = document.find(_END)
    if not document.startswith(FENCE) or end < 0:
        raise BadInput(f"{path}: must begin with a block between two lines of +++.")
    prose = document[end + len(_END) :]
    if prose:
        if not prose.startswith(b"\n"):
            raise BadInput(f"{path}: an empty line must follow the second +++.")
        prose = prose[1:].removesuffix(b"\n")
    return load(path, document[len(FENCE) : end + 1]), prose


def load(path: str, document: bytes) -> JsonObject:
    try:
        return tomllib.loads(document.decode())
    except (ValueError, RecursionError) as error:  # also if it is not UTF-8
        what = str(error).encode("unicode_escape").decode()[:200]
        raise BadInput(f"{path}: is not TOML ({what}).") from None


def line(value: Mapping[str, Any]) -> bytes:
    """One line of a .jsonl file."""
    return (
        json.dumps(value, ensure_ascii=False, separators=(", ", ": ")).encode(
            "utf-8", "backslashreplace"
        )
        + b"\n"
    )


def _table(table: Mapping[str, Any], name: str, lines: list[str]) -> None:
    later: list[tuple[str, Any]] = []
    for key, value in table.items():
        if value is None or value == []:
            continue
        if isinstance(value, Mapping) or _is_tables(value):
            later.append((f"{name}.{_key(key)}" if name else _key(key), value))
        else:
            lines.append(f"{_key(key)} = {_value(value)}{_remark(value)}")
    for key, value in later:
        for inner in [value] if isinstance(value, Mapping) else value:
            lines += ["", f"[{key}]" if isinstance(value, Mapping) else f"[[{key}]]"]
            _table(inner, key, lines)


def _is_tables(value: Any) -> bool:
    return isinstance(value, Sequence) and bool(value) and isinstance(value[0], Mapping)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _string(value)
    if len(value) == 1 and not _remark(value[0]):
        return f"[{_value(value[0])}]"
    inner = "".join(f"  {_value(member)},{_remark(member)}\n" for member in value)
    return f"[\n{inner}]"


def _string(text: str) -> str:
    if "\n" not in text:
        return f'"{_escaped(text)}"'
    # A line of three plus signs would end the enclosing block.
    plain = '"""' not in text and not text.endswith('"')
    rows = [
        "\\u002b++" if row == "+++" else _escaped(row, keep_quotes=plain)
        for row in text.split("\n")
    ]
    return '"""\n' + "\n".join(rows) + '"""'


def _escaped(text: str, *, keep_quotes: bool = False) -> str:
    return "".join(_escape(char, keep_quotes) for char in text)


def _escape(char: str, keep_quotes: bool) -> str:
    if char == '"' and keep_quotes:
        return char
    if char in _ESCAPES:
        return _ESCAPES[char]
    return char if char.isprintable() else f"\\U{ord(char):08x}"


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _string(key)


def _remark(value: Any) -> str:
    remark = getattr(value, "remark", "")
    shown = "".join(char if char.isprintable() else " " for char in remark)
    return f"  # {shown}" if remark else ""
