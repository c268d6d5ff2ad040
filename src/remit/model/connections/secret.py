"""Secrets: the source of a value, never the value itself."""

import json
import re
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from remit.errors import BadInput
from remit.ids import SecretId
from remit.model.registered import Registered
from remit.model.text import matching

#: Sources of every instance; plugins add others.
ENVIRONMENT, FILE, COMMAND = "env", "file", "command"
BUILT_IN = (ENVIRONMENT, FILE, COMMAND)
#: Shorter values occur in too many texts to be redacted.
SHORTEST_VALUE = 6
LONGEST_VALUE = 64 * 1024
LONGEST_PLACE = 4096
MOST_ARGUMENTS = 64

_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_SOURCE = re.compile(r"[a-z][a-z0-9_-]{0,39}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_REFERENCE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Secret(Registered):
    id: SecretId
    #: The source of the value, never the value itself.
    source: str
    #: A variable, a file, a command as JSON, or what a plugin understands.
    place: str


def secret_name(text: object) -> str:
    return matching(
        text,
        _NAME,
        "The name of a secret must be small letters, digits, '.', '_' and '-', at most 64.",
        "Choose a name such as 'github-token'.",
    )


def source_name(text: object) -> str:
    known = f"Use one of {', '.join(BUILT_IN)}."
    return matching(text, _SOURCE, "source is not a name.", known)


def parse_place(source: str, place: object) -> str:
    """Validate a place for its source, and return it in stored form."""
    if source == COMMAND:
        return json.dumps(parse_command(place))
    if not isinstance(place, str) or not 0 < len(place) <= LONGEST_PLACE or not is_line(place):
        raise BadInput(
            f"place must be one line of at most {LONGEST_PLACE} characters.", "Say where it is."
        )
    if source == ENVIRONMENT and not _VARIABLE.fullmatch(place):
        raise BadInput("place is not the name of a variable.", "Write it like GITHUB_TOKEN.")
    if source == FILE and not place.startswith("/"):
        raise BadInput(
            "place must be the whole path of a file on the instance's machine.",
            "Begin it with a /.",
        )
    return place


def parse_command(argv: object) -> list[str]:
    """Validate a program and its arguments, which are started without a shell."""
    if (
        not isinstance(argv, list)
        or not 0 < len(argv) <= MOST_ARGUMENTS
        or not all(isinstance(part, str) and "\0" not in part and _is_text(part) for part in argv)
        or not argv[0].strip()
        or sum(map(len, argv)) > LONGEST_PLACE
    ):
        raise BadInput(
            "A command must be a list of texts: the program, then its arguments.",
            'Write it like ["op", "read", "op://vault/item/field"].',
        )
    return list(argv)


def shown_place(secret: Secret) -> str:
    """Return the place in a form for people."""
    return shlex.join(json.loads(secret.place)) if secret.source == COMMAND else secret.place


# ── texts with a secret in them ─────────────────────────────────────────────────────────────────


def parse_template(text: object, field: str) -> str:
    """Validate a secret's name, or a text with names in braces: `Bearer {github-token}`."""
    if not isinstance(text, str) or len(text) > LONGEST_PLACE or not is_line(text):
        raise BadInput(f"{field} must name a secret.", "Write it like KEY=github-token.")
    if "{" not in text and "}" not in text:
        return "{" + secret_name(text) + "}"
    names = _REFERENCE.findall(text)
    if not names or re.search(r"[{}]", _REFERENCE.sub("", text)):
        raise BadInput(
            f"{field} has braces that name no secret.", "Write it like 'Bearer {github-token}'."
        )
    for name in names:
        secret_name(name)
    return text


def named_in(templates: Iterable[str]) -> list[str]:
    """Return the names of all secrets in these templates, each once."""
    return list(
        dict.fromkeys(name for template in templates for name in _REFERENCE.findall(template))
    )


def filled(template: str, values: dict[str, str]) -> str:
    return _REFERENCE.sub(lambda reference: values[reference[1]], template)


def is_line(text: str) -> bool:
    """Return whether a text has no control characters and no lone surrogates."""
    return _is_text(text) and not any(ord(char) < 32 or ord(char) == 127 for char in text)


def _is_text(text: str) -> bool:
    return not any(0xD800 <= ord(char) <= 0xDFFF for char in text)
