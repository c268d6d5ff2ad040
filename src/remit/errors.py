"""All errors that a caller may see, in one tree.

RemitError                code                what the caller should think
├── BadInput              invalid             fix the arguments
│   ├── NotAnId           invalid             give an id, or a part of one
│   └── TooLarge          too_large           send less
├── Unauthenticated       unauthenticated     present a valid token
│   └── NoToken           unauthenticated     present one at all
├── Refused               <reason code>       not allowed; the decision says why
│   ├── AwaitsApproval    pending_approval    not done; a person was asked
│   └── Stopped           stopped             your work is halted; wait until it goes on
├── NotFound              not_found           it does not exist, or not for you
├── Conflict              conflict            somebody was faster; look again
│   ├── AlreadyExists     already_exists      choose another name
│   └── KeyReused         key_reused          one idempotency key, two requests
├── Unavailable           unavailable         try again later
│   └── StorageFull       storage_full        make room, then try again
└── Unsupported           unsupported         this installation cannot do it

Every error has a stable code, one sentence, and the next step of whoever called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class RemitError(Exception):
    """Base of all errors that a caller may see."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    next_step: ClassVar[str] = "Look at the instance's log."

    def __init__(
        self,
        sentence: str,
        next_step: str | None = None,
        *,
        code: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.step = next_step or self.next_step
        self.reason = code or self.code
        #: Facts a program can act on, such as the current version after a conflict.
        self.details: dict[str, Any] = dict(details or {})
        #: The kind of resource that was not found by its id, such as `outcome`.
        self.what = ""

    def as_text(self) -> str:
        """The form in which an agent reads a refusal."""
        return f"{self.reason}: {self.sentence} Next: {self.step}"


class BadInput(RemitError):
    code = "invalid"
    status = 422
    next_step = "Correct the arguments and call again."


class NotAnId(BadInput):
    """Text in place of an id, or of a part of one, that cannot be an id."""


class TooLarge(BadInput):
    code = "too_large"
    status = 413
    next_step = "Send less, or split it into several files."


class Unauthenticated(RemitError):
    code = "unauthenticated"
    status = 401
    next_step = (
        "Present a valid token: an agent the one of its run or its key, a person the one that "
        "`remit login` stores."
    )


class NoToken(Unauthenticated):
    """The request has no token, or no text that could be one."""


class TooMany(RemitError):
    """Too many attempts in too short a time."""

    code = "too_many"
    status = 429
    next_step = "Wait a minute and try again."


class Refused(RemitError):
    """A decision denied the call. `details["decision"]` has its reason, sentence and basis."""

    code = "refused"
    status = 403
    next_step = "Ask your boss or the board for the capability."


class AwaitsApproval(Refused):
    """The call awaits approval and had no effect. `details["approval_id"]` names the approval."""

    code = "pending_approval"
    next_step = "Go on with other work; you will get mail when it is decided."


class Stopped(Refused):
    """The caller's token is valid, but a halt covers its agent."""

    code = "stopped"
    next_step = "End your run; you are started again when your work goes on."


class NotFound(RemitError):
    """Does not exist, or must not be known to exist."""

    code = "not_found"
    status = 404
    next_step = "Check the id; list what you can see."

    @classmethod
    def of(cls, what: str) -> NotFound:
        """Return an error that is identical for absent and hidden resources."""
        error = cls(f"There is no such {what}.")
        error.what = what
        return error


class Conflict(RemitError):
    code = "conflict"
    status = 409
    next_step = "Read the current state and try again."


def stale(sentence: str, **details: int | str) -> Conflict:
    """Return a conflict for a resource that changed since the caller read it."""
    return Conflict(sentence, "Look at it again.", code="stale_revision", details=details)


class AlreadyExists(Conflict):
    code = "already_exists"
    next_step = "Choose another name."


class KeyReused(Conflict):
    code = "key_reused"
    next_step = "Use a new idempotency key for a different request."


class Unavailable(RemitError):
    code = "unavailable"
    status = 503
    next_step = "Try again in a moment; repeat with the same idempotency key."


class StorageFull(Unavailable):
    code = "storage_full"
    status = 507
    next_step = "Free disk space for the instance, then try again."


class Unsupported(RemitError):
    code = "unsupported"
    status = 501
    next_step = "Run `remit doctor` to see what this installation can do."
