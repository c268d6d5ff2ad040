"""Costs of work: sums that are known, estimated or unknown, and the prices behind them.

A cost that nobody knows is never shown as $0.00: it is shown as its tokens. Every surface words a
cost with `in_words`, so that they say the same.
"""

import json
from dataclasses import asdict, dataclass
from typing import TypedDict

from remit.model.text import dollars

#: Micros, so that a price in dollars per million tokens is one in micros per token.
_DOLLAR = 1_000_000


@dataclass(frozen=True, slots=True)
class Price:
    """Price of a model for a million tokens, in dollars. It is stored with the run that began with
    it, so that a later price changes nothing."""

    model: str
    input: float
    output: float
    #: Price of input tokens that the provider had in its cache.
    cached: float
    #: Where it is from, in words.
    source: str
    #: Whether it is from a price list, so that what it yields is an estimate.
    listed: bool = False

    def of(self, tokens_in: int, tokens_out: int, tokens_cached: int) -> int:
        """Return the cost of tokens in millionths of a dollar."""
        fresh = max(tokens_in - tokens_cached, 0)
        cost = fresh * self.input + tokens_cached * self.cached + tokens_out * self.output
        return max(round(cost), 0)

    def stored(self) -> str:
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def read(cls, text: str | None) -> "Price | None":
        return None if text is None else cls(**json.loads(text))


class CostShape(TypedDict):
    """A cost, or a sum of costs."""

    #: The known part; None if nothing of it is known.
    cost_usd: float | None
    #: Whether a part of that is an estimate.
    cost_estimated: bool
    #: The tokens of unknown cost.
    tokens_unpriced: int


@dataclass(frozen=True, slots=True)
class Cost:
    """A cost, or a sum of costs."""

    #: The known or estimated part, in millionths of a dollar.
    micros: int = 0
    #: Whether a part of that is an estimate.
    estimated: bool = False
    #: The tokens of which nobody knows what they cost.
    unpriced: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(
            self.micros + other.micros,
            self.estimated or other.estimated,
            self.unpriced + other.unpriced,
        )

    @property
    def usd(self) -> float | None:
        """The known part in dollars; None if nothing of it is known."""
        return None if self.unpriced and not self.micros else self.micros / _DOLLAR

    def view(self) -> CostShape:
        return {
            "cost_usd": self.usd,
            "cost_estimated": self.estimated,
            "tokens_unpriced": self.unpriced,
        }

    def __str__(self) -> str:
        return in_words(self.usd, self.estimated, self.unpriced)


def cost_of(micros: int | None, estimated: int | None, unpriced: int | None) -> Cost:
    """Return a cost from sums over rows, of which there may be none."""
    return Cost(int(micros or 0), bool(estimated), int(unpriced or 0))


def in_words(usd: float | None, estimated: bool, unpriced: int) -> str:
    """Return a cost in words: `$1.20`, `about $1.20`, `? (5.3 M tokens)`, or a sum of these."""
    if usd is None:
        return f"? ({tokens_in_words(unpriced)})" if unpriced else "?"
    known = f"{'about ' if estimated else ''}{dollars(usd)}"
    return f"{known} + {tokens_in_words(unpriced)} of unknown cost" if unpriced else known


def tokens_in_words(tokens: int) -> str:
    """Return a number of tokens in at most five characters and its unit."""
    if tokens < 10_000:
        return f"{tokens:,} {'token' if tokens == 1 else 'tokens'}"
    if tokens < 1_000_000:
        return f"{tokens // 1000} k tokens"
    return f"{tokens / 1_000_000:.1f} M tokens".replace(".0 M", " M")
