"""Faults of runs, in one vocabulary for every adapter, and what each leads to.

    fault        whose it is        what follows
    message      the letter         an attempt of it is counted; three are enough
    agent        the agent          it waits, longer each time; its boss is told once per cause
    turns        the agent          the same
    repetition   the agent          the same
    lost         the agent          the same
    context      nobody             the next run goes on from what was written down
    setup        the worker         everybody with that adapter there is held until it works again
    auth         the account        everybody who uses the account is held; one run at a time tries
    rate         the account        the same, until the time that the provider named
    overload     the account        the same
    billing      the account        the same
    network      the account        the same
    stopped      nobody             what was due stays due

`CONSEQUENCES` is this table. An unknown fault is the agent's.
"""

from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """Cause of a run that did not end well."""

    #: The letter makes its readers fail.
    MESSAGE = "message"
    #: The agent itself, and any unrecognised cause.
    AGENT = "agent"
    #: The run took all the turns of a model that one run may take.
    TURNS = "turns"
    #: The model made the same call, or calls that fail, again and again.
    REPETITION = "repetition"
    #: The conversation had no room left.
    CONTEXT = "context"
    #: The program or its configuration on this worker.
    SETUP = "setup"
    #: The provider did not accept the credential.
    AUTH = "auth"
    #: The provider's rate limit, perhaps with its end.
    RATE = "rate"
    #: The provider is in trouble.
    OVERLOAD = "overload"
    #: The provider requires payment.
    BILLING = "billing"
    #: The provider could not be reached, or an answer was cut off in the middle.
    NETWORK = "network"
    #: Somebody stopped it.
    STOPPED = "stopped"
    #: Its worker died, or stopped responding.
    LOST = "lost"


#: The dependency that a fault closes for all its agents.
Holds = StrEnum("Holds", "ACCOUNT SETUP")


#: Receivers of mail about a fault. BOSS: once per cause, and once after five failures in a row.
#: BOARD: once when something is closed, however many depend on it.
Tells = StrEnum("Tells", "NOBODY BOSS BOARD")


@dataclass(frozen=True, slots=True)
class Consequence:
    """Consequences of a fault."""

    #: Whether it counts as an attempt of the letters in the run.
    counts: bool = False
    #: Whether the agent's next start is delayed.
    backs_off: bool = False
    #: Whether letters in repeated failures are delivered one at a time.
    isolates: bool = False
    holds: Holds | None = None
    #: Whether returned letters carry the mark that a run may have handled them.
    begun: bool = True
    tells: Tells = Tells.NOBODY


_OF_THE_AGENT = Consequence(backs_off=True, isolates=True, tells=Tells.BOSS)
_OF_THE_ACCOUNT = Consequence(holds=Holds.ACCOUNT, tells=Tells.BOARD)

CONSEQUENCES: dict[Fault, Consequence] = {
    Fault.MESSAGE: Consequence(counts=True, tells=Tells.BOSS),
    Fault.AGENT: _OF_THE_AGENT,
    # Many turns are no sign of a bad letter.
    Fault.TURNS: Consequence(backs_off=True, tells=Tells.BOSS),
    Fault.REPETITION: _OF_THE_AGENT,
    Fault.LOST: _OF_THE_AGENT,
    Fault.CONTEXT: Consequence(backs_off=True, tells=Tells.BOSS),
    Fault.SETUP: Consequence(holds=Holds.SETUP, begun=False, tells=Tells.BOARD),
    Fault.AUTH: _OF_THE_ACCOUNT,
    Fault.RATE: _OF_THE_ACCOUNT,
    Fault.OVERLOAD: _OF_THE_ACCOUNT,
    Fault.BILLING: _OF_THE_ACCOUNT,
    Fault.NETWORK: _OF_THE_ACCOUNT,
    Fault.STOPPED: Consequence(),
}

#: After such a fault a run with progress is continued at once.
CUT_SHORT = frozenset({Fault.TURNS, Fault.CONTEXT})
#: Faults that one run does not prove: while other runs succeed, the fault is the run's own.
NEEDS_PROOF = frozenset({Fault.OVERLOAD, Fault.NETWORK})

#: Exit reasons of adapters, where they do not name the fault.
_BY_REASON: dict[str, Fault] = {
    "stopped": Fault.STOPPED,
    "lost": Fault.LOST,
    "max_turns": Fault.TURNS,
    "repetition": Fault.REPETITION,
    "failed_calls": Fault.REPETITION,
    "context_full": Fault.CONTEXT,
    "unsupported": Fault.SETUP,
    "no_adapter": Fault.SETUP,
    # An exception inside an adapter is a defect of Remit, of a plugin or of the installation.
    "adapter": Fault.SETUP,
    "bad_configuration": Fault.SETUP,
    "program": Fault.SETUP,
    "no_sandbox": Fault.SETUP,
    "auth": Fault.AUTH,
    "rate_limited": Fault.RATE,
    "overloaded": Fault.OVERLOAD,
    "billing": Fault.BILLING,
    "unreachable": Fault.NETWORK,
    "connection": Fault.NETWORK,
    "cut_off": Fault.NETWORK,
}
#: Reasons that only a person can mend: until then every run would end in the same way.
UNMENDABLE = frozenset({"no_adapter", "bad_configuration"})


def says_nothing(fault: Fault) -> bool:
    """Return whether a fault says nothing about the agent or its letters: somebody stopped the run,
    or a provider or a worker failed."""
    return fault is Fault.STOPPED or CONSEQUENCES[fault].holds is not None


def fault_of(named: str | None, reason: str | None) -> Fault:
    """Return the fault of a failed run; an unrecognised one is the agent's."""
    try:
        return Fault(named or "")
    except ValueError:
        return _BY_REASON.get(reason or "", Fault.AGENT)
