"""Parser of files that declare a company."""

import json
import tomllib
from datetime import date, time
from typing import Any, Final

from remit.errors import BadInput

LARGEST: Final = 4 * 1024 * 1024


def read(text: str, called: str, *, is_json: bool | None = None) -> dict[str, Any]:
    """Parse a TOML or JSON document; dates become text, as in the API."""
    if is_json is None:
        is_json = text.lstrip().startswith("{")
    try:
        document = _plain(json.loads(text) if is_json else tomllib.loads(text))
    except (json.JSONDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(f"{called} cannot be read ({error}).", "Correct the file.") from error
    if not isinstance(document, dict):
        raise BadInput(f"{called} must hold an object.", "Write sections such as [[agents]].")
    return document


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value.isoformat() if isinstance(value, date | time) else value
