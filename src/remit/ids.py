"""Ids and randomness: the only module that makes either.

Ids are UUIDv7, so they sort by the time they were made. Each kind of id is its own type. People
see the last twelve digits, which are random. The first ones are the time, and the same in all that
was made together.
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
ChangeId = NewType("ChangeId", str)
ChangeCommentId = NewType("ChangeCommentId", str)
BindingId = NewType("BindingId", str)
WaitId = NewType("WaitId", str)
SubmissionId = NewType("SubmissionId", str)

#: So many digits of an id, or of its short id, may stand for the whole.
SHORTEST_PART = 8
#: So many digits at the end of an id are shown in lists: 48 random bits, which no two share.
SHORT = 12
#: Sorts after every id, and after every id that begins with what stands before it.
END_OF_IDS = "g"

_ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_HEX = re.compile(r"[0-9a-f]+")
_COUNTER_BITS = 12
#: So many candidates are named when there are several.
_MOST_SHOWN = 5


#: So many random bits.
Bits = Callable[[int], int]


def earliest_id(at: int) -> str:
    """Sorts before every id that is made from a time on, in microseconds, and after the others."""
    digits = f"{max(0, at) // 1000:012x}"
    return f"{digits[:8]}-{digits[8:]}"


class Ids:
    """Makes ids that never go backwards, even when the clock does.

    Simulated companies bring a chance of their own, so that the same one can be had again.
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
    """A whole id or a part of one, written as if it were the beginning."""
    bare = text.strip().lower().replace("-", "")
    if not SHORTEST_PART <= len(bare) <= 32 or not _HEX.fullmatch(bare):
        raise NotAnId(
            f"{text[:60]!r} is not an id.",
            f"Give the short id that a list shows, or at least {SHORTEST_PART} digits of the id.",
        )
    cuts = [bare[:8], bare[8:12], bare[12:16], bare[16:20], bare[20:]]
    return "-".join(cut for cut in cuts if cut)


def short(id_: str) -> str:
    """An id as people see and type it: always the same, wherever it is shown."""
    return id_[-SHORT:]


def short_part(text: str) -> str | None:
    """The short id, or the first digits of one, that a text can be."""
    bare = normalise(text).replace("-", "")
    return bare if len(bare) <= SHORT else None


def is_part_of(id_: str, text: str) -> bool:
    """Whether a text that `normalise` takes is the beginning of an id or of its short id."""
    part = short_part(text)
    return id_.startswith(normalise(text)) or (part is not None and short(id_).startswith(part))


def several(sentence: str, candidates: Sequence[str]) -> BadInput:
    """Error for a name that can be any of these."""
    shown = ", ".join(candidates[:_MOST_SHOWN])
    left = len(candidates) - _MOST_SHOWN
    return BadInput(
        f"{sentence}: {shown}{f' and {left} more' if left > 0 else ''}.",
        "Name one of them, or give more digits.",
        code="ambiguous",
        details={"candidates": list(candidates)},
    )


#: A CHANNEL token opens nothing but the inbox of one agent, to mail from outside.
TokenKind = StrEnum("TokenKind", "AGENT RUN USER SESSION LOGIN CHANNEL")


def new_token(kind: TokenKind) -> str:
    """256 random bits behind a prefix that says what they open."""
    return f"rmt_{kind.value}_{secrets.token_urlsafe(32)}"


def new_reference() -> str:
    """144 random bits that stand for one act, in a button; short enough for any chat."""
    return secrets.token_urlsafe(18)


def new_code() -> str:
    """Code to type on another device within minutes: 49 random bits, nothing alike."""
    return "".join(secrets.choice("ABCDEFGHJKMNPQRSTUVWXYZ23456789") for _ in range(10))


def token_digest(token: str) -> str:
    """Digest of a token, as stored. A lookup by digest leaks nothing through its timing."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def looks_like_token(token: str) -> bool:
    return token.startswith("rmt_") and len(token) <= 128


#: The beginning of a run's token.
RUN_TOKEN: Final = f"rmt_{TokenKind.RUN.value}_"


def is_run_token(token: str) -> bool:
    return token.startswith(RUN_TOKEN)


def random_name() -> str:
    """A file name nobody else picks."""
    return secrets.token_hex(16)
