"""Prices that a company or an instance sets for models, in dollars for a million tokens."""

import json
import math
from collections.abc import Mapping
from typing import Final, NamedTuple

from remit.errors import BadInput
from remit.model.text import clean_line

MAX_MODELS: Final = 200
MAX_DOLLARS: Final = 10_000
_LONGEST_MODEL: Final = 200
_KNOWN: Final = "Give input and output, and cached where it differs: dollars for a million tokens."


class Set(NamedTuple):
    """A price of a model, in the order in which a `Price` has it."""

    input: float
    output: float
    cached: float

    def view(self) -> dict[str, float]:
        return self._asdict()


def stored(text: str) -> dict[str, Set]:
    """Parse the prices of a company's row."""
    return {model: Set(*price) for model, price in json.loads(text).items()}


def of_instance(table: Mapping[str, object]) -> dict[str, Set]:
    """Parse the table `[prices]` of `remit.toml`."""
    try:
        return stored(changed("{}", table))
    except BadInput as error:
        raise BadInput(f"remit.toml: {error.sentence}", error.step) from None


def changed(text: str, prices: object) -> str:
    """Return the row's text with these prices set; None or "none" removes one."""
    if not isinstance(prices, Mapping):
        raise BadInput("prices: must be an object.", "Name models, each with its price.")
    kept = stored(text)
    for name, value in prices.items():
        model = clean_line(name, "prices", longest=_LONGEST_MODEL)
        if value is None or value == "none":
            kept.pop(model, None)
        else:
            kept[model] = _price(model, value)
    if len(kept) > MAX_MODELS:
        raise BadInput(f"prices: at most {MAX_MODELS} models have one.", "Remove some.")
    return json.dumps(kept, sort_keys=True)


def _price(model: str, value: object) -> Set:
    if not isinstance(value, Mapping) or not {"input", "output"} <= set(value) <= set(Set._fields):
        raise BadInput(f"prices.{model}: is no price.", _KNOWN)
    amounts = {field: value.get(field) for field in Set._fields}
    if amounts["cached"] is None:
        amounts["cached"] = amounts["input"]
    for field, amount in amounts.items():
        if (
            isinstance(amount, bool)
            or not isinstance(amount, int | float)
            or not math.isfinite(amount)
            or not 0 <= amount <= MAX_DOLLARS
        ):
            raise BadInput(f"prices.{model}.{field}: must be 0 to {MAX_DOLLARS:,} dollars.", _KNOWN)
    return Set(**amounts)  # type: ignore[arg-type]  # they are numbers
