"""A server of models on this machine, at the port where one usually is."""

import http.client
import json
from typing import Final
from urllib.parse import urlsplit

from remit.adapters.setup.probe import models_in, named

#: Where Ollama answers unless it was told otherwise.
OLLAMA: Final = "http://127.0.0.1:11434/v1"
#: On the same machine it answers at once, or is not there.
_SECONDS: Final = 0.5
_LARGEST: Final = 1 << 20


def look() -> str | None:
    """The names of the models that it has, for a sentence; None if nobody answers."""
    place = urlsplit(OLLAMA)
    asked = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_SECONDS)
    try:
        asked.request("GET", f"{place.path}/models")
        answer = asked.getresponse()
        said = json.loads(answer.read(_LARGEST)) if answer.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException, RecursionError):
        return None
    finally:
        asked.close()
    names = models_in(said)
    return named([one.removesuffix(":latest") for one in names]) if names else None


def first(local: str) -> str:
    """One of the names that `look` gave."""
    return local.partition(",")[0].partition(" and ")[0]


def offer(local: str) -> str:
    """The settings that take the first of its models."""
    model = first(local)
    return f'provider "ollama", model "{model}" (of {local})'
