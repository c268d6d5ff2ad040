"""One call that changes something, as it is told to the process that makes it."""

from dataclasses import dataclass, field
from typing import Any

from remit.clock import HOUR
from remit.testing.clock import A_DAY

#: The moment of every call, after all that was prepared for it.
THEN = A_DAY + HOUR


@dataclass(frozen=True)
class Call:
    """One call that changes something, in a situation in which it succeeds."""

    verb: str
    given: dict[str, Any] = field(default_factory=dict)
    #: A token; without one Remit itself calls.
    token: str = ""
    #: Or the linked account from which somebody speaks.
    account: str = ""
    #: How it is called where bytes, files or folders come along with it.
    through: str = ""
    #: So much later than the others.
    later: int = 0
    #: What the repeat of a call is not told again.
    shown_once: tuple[str, ...] = ()
    #: Why a repeat is refused: what the call was made with, or for, is gone.
    refused: str = ""
    #: Whether it is refused at once, because somebody is asked; that is what it leaves.
    asks: bool = False
    #: Whether a key makes it one request; what only looks takes none, and Remit looks by itself.
    keyed: bool = True
    #: Whether it leaves anything at all; a preview does not.
    leaves: bool = True
    #: On an instance that was not started ("nothing"), whose token is gone ("lost"), that was last
    #: started with another version ("outdated"), or whose
    #: company has no root agent ("rootless").
    home: str = "company"
