"""MCP servers of a company besides Remit's own; agents use them through Remit."""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from remit.errors import BadInput
from remit.ids import McpServerId
from remit.model.connections.secret import is_line, parse_command, parse_template
from remit.model.organisation.grant import Resource, ResourceKind
from remit.model.registered import Registered

#: Separates server and tool in a tool's name; no server's name contains it.
SEPARATOR = "__"
MOST_SETTINGS = 64
LONGEST_URL = 2000
LONGEST_SETTING = 8192
LONGEST_NAME = 32

_NAME = re.compile(r"[a-z0-9]+(?:[_-][a-z0-9]+)*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_|~-]{1,128}")
_RESERVED = "REMIT_"
#: Headers that the protocol itself sets.
_OWN_HEADERS = frozenset(
    {
        *("accept", "accept-encoding", "connection", "content-length", "content-type", "host"),
        "last-event-id",
        *("mcp-protocol-version", "mcp-session-id", "transfer-encoding", "upgrade"),
    }
)


#: STDIO: a program of the instance, talked to over its standard input and output. HTTP: an
#: address.
Transport = StrEnum("Transport", "STDIO HTTP")


@dataclass(frozen=True, slots=True)
class Definition:
    """The definition of a server: transport, address or command, and settings."""

    transport: Transport
    #: JSON: the program and its arguments.
    command: str | None
    url: str | None
    #: JSON: variables of the program, or headers of the requests.
    plain: str
    #: JSON: the same with secrets, as templates that name a secret in braces.
    secret: str
    #: Whether the variables are given to the agent's own programs as well.
    inject: bool


@dataclass(frozen=True, slots=True)
class McpServer(Definition, Registered):
    id: McpServerId

    @property
    def resource(self) -> Resource:
        return resource(self.name)

    @property
    def argv(self) -> list[str]:
        argv: list[str] = json.loads(self.command or "[]")
        return argv

    @property
    def settings(self) -> dict[str, str]:
        settings: dict[str, str] = json.loads(self.plain)
        return settings

    @property
    def templates(self) -> dict[str, str]:
        templates: dict[str, str] = json.loads(self.secret)
        return templates


def resource(name: str) -> Resource:
    return Resource(ResourceKind.MCP_SERVER, name)


def server_name(text: object) -> str:
    if not isinstance(text, str) or len(text) > LONGEST_NAME or not _NAME.fullmatch(text):
        raise BadInput(
            "The name of an MCP server must be small letters and digits, with single '-' or '_' "
            f"between, at most {LONGEST_NAME}.",
            "Choose a name such as 'github'.",
        )
    if text == "remit":
        raise BadInput("Remit's own server has that name.", "Choose another name.")
    return text


def define(
    *,
    command: object = None,
    url: object = None,
    env: object = None,
    secret_env: object = None,
    headers: object = None,
    secret_headers: object = None,
    inject: object = False,
) -> Definition:
    """Validate a definition; BadInput names what is wrong."""
    if (command is None) == (url is None):
        raise BadInput("Give either command or url.", "Use one of the two.")
    if not isinstance(inject, bool):
        raise BadInput("inject must be true or false.", "Send a boolean.")
    if command is not None:
        _absent(headers, "headers", "A program has no headers.")
        _absent(secret_headers, "secretHeaders", "A program has no headers.")
        plain = _settings(env, "env", _variable, _value)
        secret = _settings(secret_env, "secretEnv", _variable, parse_template)
    else:
        _absent(env, "env", "An address has no environment.")
        _absent(secret_env, "secretEnv", "An address has no environment.")
        if inject:
            raise BadInput(
                "Only variables can be given to the agent's programs.",
                "Leave inject out, or give a command.",
            )
        plain = _settings(headers, "headers", _header, _value)
        secret = _settings(secret_headers, "secretHeaders", _header, parse_template)
    both = {key.lower() for key in plain} & {key.lower() for key in secret}
    if both:
        raise BadInput(f"{min(both)[:60]} is given twice.", "Give it once.")
    return Definition(
        Transport.STDIO if command is not None else Transport.HTTP,
        json.dumps(parse_command(command)) if command is not None else None,
        _url(url) if command is None else None,
        json.dumps(plain),
        json.dumps(secret),
        inject,
    )


def _absent(value: object, field: str, why: str) -> None:
    if value:
        raise BadInput(f"{field}: {why}", f"Leave {field} out.")


def _settings(
    settings: object,
    field: str,
    check_name: Callable[[str, str], None],
    check_value: Callable[[object, str], str],
) -> dict[str, str]:
    if settings is None:
        return {}
    if not isinstance(settings, Mapping) or len(settings) > MOST_SETTINGS:
        raise BadInput(f"{field} must be an object with at most {MOST_SETTINGS} texts.")
    checked: dict[str, str] = {}
    for name, value in settings.items():
        check_name(name, field)
        checked[name] = check_value(value, f"{field}.{name}")
    if len({name.lower() for name in checked}) < len(checked) and check_name is _header:
        raise BadInput(f"{field} has a header twice.", "Give it once.")
    return checked


def _variable(name: str, field: str) -> None:
    if not _VARIABLE.fullmatch(name) or name.upper().startswith(_RESERVED):
        raise BadInput(
            f"{field}: {name[:60]!r} cannot be a variable here.",
            f"Use letters, digits and _, not beginning with {_RESERVED}.",
        )


def _header(name: str, field: str) -> None:
    if not _HEADER.fullmatch(name) or name.lower() in _OWN_HEADERS:
        raise BadInput(
            f"{field}: {name[:60]!r} cannot be a header here.", "Leave out what HTTP and MCP set."
        )


def _value(value: object, field: str) -> str:
    if not isinstance(value, str) or len(value) > LONGEST_SETTING or not is_line(value):
        raise BadInput(
            f"{field} must be one line of at most {LONGEST_SETTING} characters.", "Shorten it."
        )
    return value


def _url(text: object) -> str:
    wrong = BadInput(
        "url must be a whole http or https address without credentials.",
        "Write it like https://mcp.example.org/mcp, and name credentials with secretHeaders.",
    )
    if not isinstance(text, str) or len(text) > LONGEST_URL or not text.isascii():
        raise wrong
    if any(char.isspace() or ord(char) < 33 or ord(char) == 127 for char in text):
        raise wrong
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise wrong
    if parts.username is not None or parts.password is not None or parts.fragment:
        raise wrong
    return text
