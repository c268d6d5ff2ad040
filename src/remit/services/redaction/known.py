"""Redaction of values that are known to be secret, in every usual encoding."""

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from remit.services.redaction.rules import REMOVED

#: A shorter text is a part of too many others.
SHORTEST = 6


class Known:
    """Known secrets, in every encoding in which they are usually written."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._spellings = _spellings(values)

    def __bool__(self) -> bool:
        return bool(self._spellings)

    def out_of(self, text: str) -> str:
        for spelling in self._spellings:
            if spelling in text:
                text = text.replace(spelling, REMOVED)
        return text

    def out_of_all(self, value: Any) -> Any:
        """Redact a document of plain JSON values, keys included."""
        if not self._spellings:
            return value
        if isinstance(value, str):
            return self.out_of(value)
        if isinstance(value, Mapping):
            return {self.out_of(str(key)): self.out_of_all(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.out_of_all(inner) for inner in value]
        return value


def _spellings(values: Iterable[str]) -> tuple[str, ...]:
    """Return every encoding, longest first, so that no part of one remains."""
    spellings: set[str] = set()
    for value in values:
        # Output of programs comes line by line, so each line of a longer key is known.
        for part in {value, value.strip(), *value.splitlines()}:
            if len(part) < SHORTEST:
                continue
            raw = part.encode(errors="replace")
            spellings |= {
                part,
                json.dumps(part)[1:-1],
                json.dumps(part, ensure_ascii=False)[1:-1],
                quote(part, safe=""),
                quote_plus(part),
                raw.hex(),
                raw.hex().upper(),
            }
            for shift in range(3):
                spellings |= _in_base64(raw, shift)
    long_enough = [spelling for spelling in spellings if len(spelling) >= SHORTEST]
    return tuple(sorted(long_enough, key=len, reverse=True))


def _in_base64(raw: bytes, shift: int) -> set[str]:
    """Return the base64 of a secret inside longer content, with `shift` bytes before it.

    The characters at its ends depend on the bytes around it, so only the middle is known.
    """
    start = -(-shift * 8 // 6)
    length = (shift + len(raw)) * 8 // 6
    encoded = (
        encode(bytes(shift) + raw) for encode in (base64.b64encode, base64.urlsafe_b64encode)
    )
    middles = {whole.decode()[start:length] for whole in encoded}
    return {middle for middle in middles if len(middle) >= 2 * SHORTEST}
