"""Detection of a model server on this machine, at Ollama's usual port."""

import http.client
import json
from typing import Final
from urllib.parse import urlsplit

from remit.adapters.setup.probe import models_in, named

#: Ollama's default address.
OLLAMA: Final = "http://127.0.0.1:11434/v1"
#: Short time limit, because a server on the same machine answers at once.
_SECONDS: Final = 0.5
_LARGEST: Final = 1 << 20


def look() -> str | None:
    """Return the names of the server's models, for a sentence; None without a server."""
    place = urlsplit(OLLAMA)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_SECONDS)
    try:
        connection.request("GET", f"{place.path}/models")
        answer = connection.getresponse()
        document = json.loads(answer.read(_LARGEST)) if answer.status == 200 else None
    except (OSError, ValueError, http.client.HTTPException, RecursionError):
        return None
    finally:
        connection.close()
    names = models_in(document)
    return named([name.removesuffix(":latest") for name in names]) if names else None


def first(local: str) -> str:
    """Return the first of the names from `look`."""
    return local.partition(",")[0].partition(" and ")[0]


def offer(local: str) -> str:
    """Return the settings for the first of the models, for a sentence."""
    model = first(local)
    return f'provider "ollama", model "{model}" (of {local})'
