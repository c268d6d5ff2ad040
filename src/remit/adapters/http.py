"""An agent that runs elsewhere and is called over HTTP."""

import asyncio
import contextlib
import json
import socket
from collections.abc import Mapping
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from remit.adapters import faults, guarded_http, program_answer
from remit.adapters.contract import Adapter, Check, Environment
from remit.adapters.running import RunContext, RunResult
from remit.adapters.settings import Config, Seconds, SecretName, Text, optional
from remit.model.execution.transcript import Entry, EntryKind

_PATIENCE_SECONDS = 5
#: Time limit for telling a remote agent that its run is over, which also delays a shutdown.
_END_SECONDS = 2.0
_LARGEST_ANSWER = 1 << 20
_LONGEST_COMPLAINT = 4000
_LONGEST_SAID = 20_000
_OWN_HEADERS = frozenset(
    {
        *("connection", "content-length", "content-type", "expect", "host", "keep-alive"),
        *("te", "trailer", "transfer-encoding", "upgrade", "accept", "accept-encoding"),
    }
)


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        port_is_fine = parts.port is None or parts.port > 0
    except ValueError:
        raise ValueError("must be an address such as https://agents.example.org/run") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_is_fine:
        raise ValueError("must be an address such as https://agents.example.org/run")
    if parts.username or parts.password:
        raise ValueError("must not contain credentials; use secretRef")
    if any(letter.isspace() for letter in text):
        raise ValueError("must not contain spaces")
    return text


def _not_the_protocols(name: str) -> str:
    """Refuse headers of the protocol, which could redirect a request or smuggle another one."""
    if name.lower() in _OWN_HEADERS:
        raise ValueError("is set by HTTP itself; leave it out")
    return name


HeaderName = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$"), AfterValidator(_not_the_protocols)
]
HeaderValue = Annotated[Text, Field(pattern=r"^[^\r\n\x00]*$")]
Address = Annotated[str, Field(max_length=2000), AfterValidator(_address)]


class HttpConfig(Config):
    url: Address = Field(
        description="Where a run is announced with POST: the task as JSON, the address of Remit "
        "(REMIT_URL, if it is set) and a token for this run. https, or http inside a network that "
        "you trust."
    )
    headers: dict[HeaderName, HeaderValue] = Field(
        default_factory=dict,
        max_length=50,
        description="Headers to send along. Not for secrets; use secretRef.",
    )
    secret_ref: SecretName | None = optional(
        "Name of a secret of the company, which its board registers with `remit secret "
        "set`. It is sent as `Authorization: Bearer`. null: nothing is sent."
    )
    mode: Literal["wait", "callback"] = Field(
        default="wait",
        description='"wait": the answer to the POST ends the run. "callback": the remote agent '
        "accepts with 202 and ends the run by calling Remit with the token.",
    )
    cancel_url: Address | None = optional(
        "Where it is announced that a run was cancelled. null: only the run's token ends."
    )
    timeout_seconds: Seconds = Field(
        default=3600, description="A run that takes longer is given up, and its token ends."
    )


class Http(Adapter):
    """Calls an agent that runs elsewhere, and lets it call back with the token of its run."""

    type = "http"
    Config = HttpConfig
    remote = True
    safety = (
        (
            "The server at `url` gets the task and a token with the agent's rights for the "
            "time of the run."
        ),
        "There is no sandbox: the program runs on somebody else's machine.",
        "With http instead of https, task and token can be read on the way.",
    )
    examples = {  # noqa: RUF012  # read only
        "A service that answers at once": {"url": "https://agents.example.org/run"},
        "A service that calls back": {
            "url": "https://agents.example.org/run",
            "secretRef": "example-agents",
            "mode": "callback",
            "cancelUrl": "https://agents.example.org/cancel",
            "timeoutSeconds": 7200,
        },
    }

    def check(
        self, config: HttpConfig | None = None, environment: Environment | None = None
    ) -> Check:
        del environment  # a call needs nothing of it
        if config is None:
            return Check(True, "It can be used; each agent names its own address.")
        parts = urlsplit(config.url)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        encrypted = parts.scheme == "https"
        facts: dict[str, str | bool | None] = {
            "host": host,
            "port": str(port),
            "encrypted": encrypted,
        }
        try:
            socket.create_connection((host, port), timeout=_PATIENCE_SECONDS).close()
        except OSError as error:
            return Check(
                False,
                f"{host}:{port} cannot be reached ({error.strerror or type(error).__name__}).",
                "Start the remote agent, or correct `url`.",
                facts,
            )
        return Check(True, f"{host}:{port} accepts connections.", "", facts)

    async def run(self, context: RunContext) -> RunResult:
        config: HttpConfig = context.config
        try:
            status, body, headers = await _post(
                config, config.url, _announcement(context), context.key()
            )
            context.advice = await _advice(config, context)
            if 200 <= status < 300 and config.mode == "callback":
                context.log(f"accepted with {status}; waiting for its report")
                return _told(context, await context.reported())
        except asyncio.CancelledError:
            if config.cancel_url is not None:
                await _announce_end(config, config.cancel_url, context)
            raise
        except (guarded_http.NotAllowed, guarded_http.BadAnswer) as error:
            sentence = f"The remote agent cannot be used ({error})."
            return RunResult(False, reason="protocol", error=sentence[:500])
        except OSError as error:
            sentence = f"The remote agent cannot be reached ({error})."
            return RunResult(False, reason="unreachable", error=sentence[:500])
        if status == 202:
            sentence = 'The remote agent wants to call back; set mode to "callback".'
            return RunResult(False, reason="protocol", error=sentence)
        if not 200 <= status < 300:
            seen = faults.by_status(status, body[:_LONGEST_COMPLAINT], headers)
            reason = "redirected" if status < 400 else "remote_error"
            return RunResult(
                False,
                reason=seen.reason if seen else reason,
                error=f"The remote agent answered {status}.",
                fault=seen.fault if seen else None,
                until=seen.until if seen else None,
            )
        return _told(context, program_answer.result_of(program_answer.parse(body)))


def _told(context: RunContext, result: RunResult) -> RunResult:
    """Log the answer of a result, which is the only output of a remote agent; return the result."""
    if result.text:
        context.tell(Entry(EntryKind.SAID, result.text[:_LONGEST_SAID]))
    return result


def _announcement(context: RunContext) -> dict[str, Any]:
    return {
        **context.task(),
        "remit": {
            "url": context.url,
            "mcp": f"{context.url}/mcp",
            "report": f"{context.url}/api/runs/{context.run_id}/report",
            "token": context.token,
        },
    }


async def _advice(config: HttpConfig, context: RunContext) -> str:
    """Return what to set if the agent cannot reach the address of Remit that it was told."""
    host = urlsplit(context.url).hostname or ""
    if not _is_loopback(host) or await _is_here(config.url):
        return ""
    sentence = (
        f"The agent was told {context.url}, which only programs of this machine reach. If it calls "
        "back, set REMIT_URL of the process that starts it to an address that it reaches."
    )
    context.log(sentence)
    return sentence


async def _is_here(url: str) -> bool:
    """Return whether an address is one of this machine, or unknown."""
    parts = urlsplit(url)
    with contextlib.suppress(OSError):
        places = await asyncio.get_running_loop().getaddrinfo(
            parts.hostname, parts.port or 443, type=socket.SOCK_DGRAM
        )
        return any(_is_own(family, place) for family, *_, place in places)
    return True


def _is_own(family: int, place: tuple[Any, ...]) -> bool:
    """Return whether the machine would talk to this address from the same one."""
    if _is_loopback(str(place[0])):
        return True
    with socket.socket(family, socket.SOCK_DGRAM) as talk:  # sends nothing
        talk.connect(place)
        return bool(talk.getsockname()[0] == place[0])


def _is_loopback(host: str) -> bool:
    address = guarded_http.literal(host)
    return host == "localhost" if address is None else address.is_loopback


async def _post(
    config: HttpConfig, url: str, document: dict[str, Any], key: str | None
) -> tuple[int, str, Mapping[str, str]]:
    """Send a POST to the configured address, without redirects."""
    headers = {**config.headers, "Accept": "application/json", "Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    answer = await guarded_http.post(
        url,
        content=json.dumps(document).encode(),
        headers=headers,
        seconds=config.timeout_seconds,
        largest=_LARGEST_ANSWER,
        private=True,  # agents of one's own network are what this adapter is for
    )
    return answer.status, answer.body.decode(errors="replace"), answer.headers


async def _announce_end(config: HttpConfig, url: str, context: RunContext) -> None:
    """Best effort: the token ends in any case."""
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(_END_SECONDS):
            await _post(config, url, {"run": context.run_id, "cancelled": True}, context.secret)
