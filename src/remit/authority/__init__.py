"""May this actor do this, and why: facts in, a decision out, nothing read and nothing written.

`decide` answers for one action on one resource; `attenuate` answers what may be passed on.
Nothing else in the code base answers "may they".
"""

from remit.authority.attenuate import Wish, attenuate, covers, excessive
from remit.authority.boss import GOVERNED
from remit.authority.capability import holding
from remit.authority.decide import BOSS_LEVEL, Action, decide
from remit.authority.facts import Facts, GivenFacts
from remit.authority.outcome import Relation

__all__ = [
    "BOSS_LEVEL",
    "GOVERNED",
    "Action",
    "Facts",
    "GivenFacts",
    "Relation",
    "Wish",
    "attenuate",
    "covers",
    "decide",
    "excessive",
    "holding",
]
