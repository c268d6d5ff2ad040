"""The price list of providers: the bundled data of the package `genai-prices`.

It is imported with the first question, because that takes a twentieth of a second. Nothing is
fetched: a newer list comes with a newer version of the package.
"""

from datetime import UTC, date, datetime
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple

from remit.clock import SECOND, Micros
from remit.model.execution.cost import Price

_PACKAGE = "genai-prices"


class Served(NamedTuple):
    """A model, and the provider that serves it at its list price."""

    model: str
    #: As the price list calls it. None: somebody else serves the model, so the list does not apply.
    provider: str | None = None


def listed(served: Served, now: Micros) -> Price | None:
    """Return the price of a model in the list; None if it is not there, or not by tokens.

    Where a long request costs more, it is the price of a short one."""
    from genai_prices.data_snapshot import get_snapshot

    if served.provider is None:
        return None
    at = datetime.fromtimestamp(now / SECOND, UTC)
    try:
        _, model = get_snapshot().find_provider_model(served.model, None, served.provider, None)
        prices = model.get_prices(at)
    except LookupError:
        return None
    fresh, written = _dollars(prices.input_mtok), _dollars(prices.output_mtok)
    if fresh is None or written is None:
        return None
    cached = _dollars(prices.cache_read_mtok)
    return Price(
        model=served.model,
        input=fresh,
        output=written,
        cached=fresh if cached is None else cached,
        source=name(),
        listed=True,
    )


def _dollars(price: Any) -> float | None:
    """Return a price, or the lowest tier of one that depends on the length of a request."""
    base = getattr(price, "base", price)
    return None if base is None else float(base)


def name() -> str:
    """Return the name of the list with its version."""
    return f"{_PACKAGE} {version(_PACKAGE)}"


@cache
def newest(today: date) -> date:
    """Return the date of the newest change of a price that the list knows, up to a day."""
    from genai_prices.data_snapshot import get_snapshot

    starts = (
        getattr(conditional.constraint, "start_date", None)
        for provider in get_snapshot().providers
        for model in provider.models
        if isinstance(model.prices, list)
        for conditional in model.prices
    )
    known: date = max(start for start in starts if start is not None and start <= today)
    return known
