"""What can go wrong with a run, in one vocabulary for every adapter."""

from __future__ import annotations

from enum import StrEnum


class Fault(StrEnum):
    """Whose fault it was that a run did not end well."""

    #: The letter breaks whoever reads it.
    MESSAGE = "message"
    #: The agent itself: whatever is not recognised as something else.
    AGENT = "agent"
    #: The run took all the turns of a model that one run may take.
    TURNS = "turns"
    #: The model made the same call again and again.
    REPETITION = "repetition"
    #: The conversation had no room left.
    CONTEXT = "context"
    #: The program, or how it is called, on this worker.
    SETUP = "setup"
    #: The provider did not accept the credential.
    AUTH = "auth"
    #: The provider said that too much was asked of it, and perhaps until when.
    RATE = "rate"
    #: The provider is in trouble.
    OVERLOAD = "overload"
    #: The provider wants to be paid first.
    BILLING = "billing"
    #: The provider could not be reached, or an answer was cut off in the middle.
    NETWORK = "network"
    #: Somebody stopped it.
    STOPPED = "stopped"
    #: Its worker died, or was not heard of any more.
    LOST = "lost"
