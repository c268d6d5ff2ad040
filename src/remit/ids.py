"""Ids and randomness: the only module that generates either.

Ids are UUIDv7, so they sort by their time of creation. Each kind of id is its own type. People see
the last twelve digits, which are random; the first digits are the time, and so the same in ids that
were made together.
"""

import hashlib
import re
import secrets
import uuid
from collections.abc import Callable, Sequence
from enum import StrEnum
from threading import Lock
from typing import Final, NewType

from remit.clock import Clock, SystemClock
from remit.errors import BadInput, NotAnId

CompanyId = NewType("CompanyId", str)
UserId = NewType("UserId", str)
AgentId = NewType("AgentId", str)  # equal to the id of the agent's mandate
OutcomeId = NewType("OutcomeId", str)
RunId = NewType("RunId", str)
FileId = NewType("FileId", str)
GrantId = NewType("GrantId", str)
TokenId = NewType("TokenId", str)
EventId = NewType("EventId", str)
MessageId = NewType("MessageId", str)
QuestionId = NewType("QuestionId", str)
ScheduleId = NewType("ScheduleId", str)
ApprovalId = NewType("ApprovalId", str)
CommentId = NewType("CommentId", str)
RevisionId = NewType("RevisionId", str)
SecretId = NewType("SecretId", str)
McpServerId = NewType("McpServerId", str)
HaltId = NewType("HaltId", str)
JobId = NewType("JobId", str)
RepoId = NewType("RepoId", str)
FolderId = NewType("FolderId", str)
LentPluginId = NewType("LentPluginId", str)
ChangeId = NewType("ChangeId", str)
ChangeCommentId = NewType("ChangeCommentId", str)
BindingId = NewType("BindingId", str)
WaitId = NewType("WaitId", str)
SubmissionId = NewType("SubmissionId", str)

#: Fewest digits of an id, or of its short id, that may stand for the whole.
SHORTEST_PART = 8
#: Digits of a short id, at the end of an id: 48 random bits, practically unique.
SHORT = 12
#: Sorts after every id; appended to a prefix, after every id with that prefix.
END_OF_IDS = "g"

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HEX = re.compile(r"[0-9a-f]+")
_COUNTER_BITS = 12
#: Most candidates that an error for an ambiguous name lists.
_MOST_SHOWN = 5


#: Returns the given number of random bits.
Bits = Callable[[int], int]


def earliest_id(at: int) -> str:
    """Return a text that sorts before every id made from a time (in microseconds) on, and after all
    earlier ones."""
    digits = f"{max(0, at) // 1000:012x}"
    return f"{digits[:8]}-{digits[8:]}"


class Ids:
    """Generator of monotonic ids, even when the clock is set back.

    Simulations supply their own random source, so that a run can be reproduced.
    """

    def __init__(self, clock: Clock | None = None, chance: Bits = secrets.randbits) -> None:
        self._clock = clock or SystemClock()
        self._chance = chance
        self._lock = Lock()
        self._millis = 0
        self._counter = 0

    def new(self) -> str:
        millis = self._clock.now() // 1000
        with self._lock:
            if millis > self._millis:
                self._millis, self._counter = millis, self._chance(_COUNTER_BITS - 1)
            else:
                self._counter += 1
                if self._counter >> _COUNTER_BITS:
                    self._millis, self._counter = self._millis + 1, 0
            value = (self._millis & 0xFFFF_FFFF_FFFF) << 80 | 0x7 << 76 | self._counter << 64
        value |= 0b10 << 62 | self._chance(62)
        return str(uuid.UUID(int=value))


def is_id(text: str) -> bool:
    return _ID.fullmatch(text) is not None


def looks_like_id(text: str) -> bool:
    """Whether a text could be meant as an id or a part of one."""
    bare = text.lower().replace("-", "")
    return SHORTEST_PART <= len(bare) <= 32 and _HEX.fullmatch(bare) is not None


def normalise(text: str) -> str:
    """Return an id or a part of one in lower case, with hyphens placed as in a prefix."""
    bare = text.strip().lower().replace("-", "")
    if not SHORTEST_PART <= len(bare) <= 32 or not _HEX.fullmatch(bare):
        raise NotAnId(
            f"{text[:60]!r} is not an id.",
            f"Give the short id that a list shows, or at least {SHORTEST_PART} digits of the id.",
        )
    cuts = [bare[:8], bare[8:12], bare[12:16], bare[16:20], bare[20:]]
    return "-".join(cut for cut in cuts if cut)


def short(id_: str) -> str:
    """Return the short id, the form in which people see and type an id everywhere."""
    return id_[-SHORT:]


def short_part(text: str) -> str | None:
    """Return the text as a short id or a prefix of one; None if it is too long for that."""
    bare = normalise(text).replace("-", "")
    return bare if len(bare) <= SHORT else None


def is_part_of(id_: str, text: str) -> bool:
    """Whether a text that `normalise` accepts is a prefix of an id or of its short id."""
    part = short_part(text)
    return id_.startswith(normalise(text)) or (part is not None and short(id_).startswith(part))


def several(sentence: str, candidates: Sequence[str]) -> BadInput:
    """Return an error for an ambiguous name, with its candidates."""
    shown = ", ".join(candidates[:_MOST_SHOWN])
    left = len(candidates) - _MOST_SHOWN
    return BadInput(
        f"{sentence}: {shown}{f' and {left} more' if left > 0 else ''}.",
        "Name one of them, or give more digits.",
        code="ambiguous",
        details={"candidates": list(candidates)},
    )


#: Kinds of tokens. A CHANNEL token only lets the outside send mail to one agent.
TokenKind = StrEnum("TokenKind", "AGENT RUN USER SESSION LOGIN CHANNEL")


def new_token(kind: TokenKind) -> str:
    """Return a token: 256 random bits after a prefix that names its kind."""
    return f"rmt_{kind.value}_{secrets.token_urlsafe(32)}"


def new_reference() -> str:
    """Return a reference for one act of a button: 144 random bits, short enough for any chat."""
    return secrets.token_urlsafe(18)


def new_code() -> str:
    """Return a short-lived code for typing on another device: 49 random bits, without similar
    characters."""
    return "".join(secrets.choice("ABCDEFGHJKMNPQRSTUVWXYZ23456789") for _ in range(10))


def token_digest(token: str) -> str:
    """Return the digest of a token, as stored. A look-up by digest has no timing side channel."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def looks_like_token(token: str) -> bool:
    return token.startswith("rmt_") and len(token) <= 128


#: The prefix of a run's token.
RUN_TOKEN: Final = f"rmt_{TokenKind.RUN.value}_"


def is_run_token(token: str) -> bool:
    return token.startswith(RUN_TOKEN)


def random_name() -> str:
    """Return a random, unique file name."""
    return secrets.token_hex(16)
