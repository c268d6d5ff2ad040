"""Trial request to a model's server, with the result in a sentence.

It shows whether the address answers, the key is accepted and the model exists. No sentence contains
the key.
"""

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import quote, urlsplit

from remit.adapters import faults
from remit.adapters.guarded_http import literal, refusal
from remit.adapters.setup.lending import CERTIFICATES
from remit.model.execution.fault import Fault

#: Short time limit, because a person waits for the result.
SECONDS: Final = 4.0
_LARGEST: Final = 4 << 20
_LONGEST_QUOTE: Final = 200
_MOST_NAMED: Final = 8
_HELLO: Final = [{"role": "user", "content": "Say ok."}]
#: A phrase in OpenAI's error when an answer does not fit into so few tokens.
_TOO_SHORT: Final = "output limit"
#: The sentence about a server, and the next step, by the fault of its refusal.
_FAULTS: Final[Mapping[Fault | None, tuple[str, str]]] = {
    Fault.BILLING: ("requires payment", "Check the account's balance there."),
    Fault.RATE: (
        *("takes the key, but its limit is reached", "Wait; runs are held until it passes."),
    ),
    Fault.OVERLOAD: (
        *("answers with an error of its own", "Try again later; runs are held until it passes."),
    ),
}


@dataclass(frozen=True)
class Tried:
    """The result of a trial request."""

    #: None: it was not tried, for the reason in the sentence.
    ok: bool | None
    sentence: str
    next_step: str = ""
    #: For programs: model, milliseconds, status.
    facts: Mapping[str, str | int | None] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """A trial request. Without a body it asks for the list of models."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] | None = None
    #: The model that must exist; None for any.
    model: str | None = None
    #: The name of the key, and its value.
    key_name: str = ""
    key: str = ""
    #: The next step if the model does not exist.
    get_model: str = ""
    #: Lent variables, of which the certificates are used.
    beside: Mapping[str, str] = field(default_factory=dict)
    #: The address of the list of models, which costs nothing.
    models: str = ""

    def free(self) -> "Request":
        """Return the request for the list of models instead."""
        return replace(self, url=self.models, body=None, model=None)


def to_anthropic(base: str, model: str | None, bearer: bool, key: str, **more: Any) -> Request:
    """Return a request for Anthropic's API, or a compatible gateway."""
    headers = {"anthropic-version": "2023-06-01"}
    headers |= {"authorization": f"Bearer {key}"} if bearer else {"x-api-key": key}
    root = base.rstrip("/")
    more["models"] = f"{root}/v1/models"
    if model is None:
        return Request(f"{root}/v1/models", headers, key=key, **more)
    body = {"model": model, "max_tokens": 1, "messages": _HELLO}
    return Request(f"{root}/v1/messages", headers, body, model, key=key, **more)


def to_openai(base: str, model: str | None, key: str, *, chat: bool, **more: Any) -> Request:
    """Return a request for OpenAI's API, or a compatible server."""
    headers = {"authorization": f"Bearer {key}"} if key else {}
    root = base.rstrip("/")
    more["models"] = f"{root}/models"
    if model is None:
        return Request(f"{root}/models", headers, key=key, **more)
    if chat:
        body: dict[str, Any] = {"model": model, "messages": _HELLO, "max_completion_tokens": 16}
        return Request(f"{root}/chat/completions", headers, body, model, key=key, **more)
    body = {"model": model, "input": "Say ok.", "max_output_tokens": 16, "store": False}
    return Request(f"{root}/responses", headers, body, model, key=key, **more)


def to_google(base: str, model: str, key: str, **more: Any) -> Request:
    prompt = {"contents": [{"parts": [{"text": "Say ok."}]}]}
    body = {**prompt, "generationConfig": {"maxOutputTokens": 1}}
    models = f"{base.rstrip('/')}/v1beta/models"
    url = f"{models}/{quote(model, safe='')}:generateContent"
    return Request(url, {"x-goog-api-key": key}, body, model, key=key, models=models, **more)


async def asked(question: Request | Tried | None, *, free: bool = False) -> Tried | None:
    """Send the trial request of an adapter, or the free one instead; whatever says why there is
    none is returned as it is."""
    if not isinstance(question, Request):
        return question
    return await ask(question.free() if free else question)


def is_answered(tried: Tried | None, *, for_long: bool = False) -> bool | None:
    """Return whether a free question was answered by a working provider; None if it cannot be asked
    so, and only a run can show that. Some servers always answer this question with an error, so an
    error that lasts `for_long` shows nothing, either."""
    if tried is None or tried.ok is None:
        return None
    if tried.ok:
        return True
    status = tried.facts.get("status")
    if not isinstance(status, int):
        return False
    return False if _is_passing(status) and not for_long else None


def _is_passing(status: int) -> bool:
    """Return whether a status says that the server cannot answer now: it has an error, or there are
    too many requests."""
    return status in (408, 425, 429) or (status >= 500 and status not in (501, 505))


async def ask(request: Request, seconds: float = SECONDS) -> Tried:
    """Send a trial request; failures become results."""
    import httpx2

    parts = urlsplit(request.url)
    host = parts.netloc.rpartition("@")[2]
    name = parts.hostname or ""
    address = literal(name)
    if address is not None and (why := refusal(address, private=True)) is not None:
        return Tried(False, f"{host} is not called: it {why}.", "Set another address.")
    here = name == "localhost" or (address is not None and address.is_loopback)
    now = asyncio.get_running_loop().time
    began = now()
    try:
        async with httpx2.AsyncClient(
            follow_redirects=False,
            # Uses the worker's proxies, as a run does.
            trust_env=not here,
            verify=_trusted(parts.scheme, request.beside),
            timeout=httpx2.Timeout(seconds),
        ) as client:
            status, headers, body = await _exchange(client, request, seconds)
    except TimeoutError:
        return Tried(
            False,
            f"{host} did not answer within {seconds:g} seconds.",
            "Look whether it is reached from here: the address, HTTPS_PROXY, a firewall.",
        )
    except httpx2.ConnectError as error:
        return _unreachable(host, str(error), here=here)
    except (httpx2.HTTPError, httpx2.InvalidURL, ssl.SSLError, OSError, ValueError) as error:
        sentence = f"{host} could not be asked ({type(error).__name__})."
        return Tried(False, sentence, "Look at its address, and at HTTPS_PROXY.")
    milliseconds = round((now() - began) * 1000)
    return _judged(request, host, status, headers, body, milliseconds)


async def _exchange(
    client: Any, request: Request, seconds: float
) -> tuple[int, Mapping[str, str], bytes]:
    method = "GET" if request.body is None else "POST"
    content = None if request.body is None else json.dumps(request.body).encode()
    headers = {**request.headers, "content-type": "application/json"}
    async with (
        asyncio.timeout(seconds),
        client.stream(method, request.url, content=content, headers=headers) as response,
    ):
        body = b""
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > _LARGEST:
                break
        return response.status_code, dict(response.headers), body


def _trusted(scheme: str, beside: Mapping[str, str]) -> ssl.SSLContext | bool:
    """Return a TLS context with the lent certificates; True for the system's own."""
    if scheme == "http":
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # unused and empty, so it loads at once
    files = [beside[name] for name in CERTIFICATES if name in beside]
    if not files:
        return True
    trusted = ssl.create_default_context()
    for file in files:
        trusted.load_verify_locations(file)
    return trusted


def _unreachable(host: str, why: str, *, here: bool) -> Tried:
    if "CERTIFICATE" in why.upper():
        return Tried(
            False,
            f"The certificate of {host} is not trusted here.",
            "Set NODE_EXTRA_CA_CERTS and SSL_CERT_FILE for the worker to the file of whoever "
            "signed it.",
        )
    step = "Start what should answer there, or correct the address"
    proxies = "" if here else "; HTTPS_PROXY and NO_PROXY count"
    return Tried(False, f"{host} does not answer.", f"{step}{proxies}.")


def _judged(
    request: Request,
    host: str,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    milliseconds: int,
) -> Tried:
    answer = _json(body)
    facts: dict[str, str | int | None] = {"status": status, "milliseconds": milliseconds}
    words = _quote(answer, request.key)
    if status == 200 or (status == 400 and _TOO_SHORT in words):
        if request.body is None:
            return _listed(request, host, answer, facts)
        if not isinstance(answer, Mapping):
            return _strange(host, facts)
        model = answer.get("model") if isinstance(answer.get("model"), str) else request.model
        facts["model"] = str(model)[:200]
        return Tried(True, f"{facts['model']} at {host} answered in {milliseconds} ms.", "", facts)
    if status == 401 or (status == 403 and request.key):
        key = f"the key {request.key_name}" if request.key else "requests without a key"
        sentence = f"{host} refuses {key} ({status})."
        return Tried(False, sentence, "Give it a key that is valid there.", facts)
    if request.model and (status == 404 or (status == 400 and "model" in words.lower())):
        sentence = f"{host} has no model {request.model!r} ({status})."
        return Tried(False, sentence, request.get_model or "Set another model.", facts)
    if request.body is None and status in (404, 405):
        sentence = f"{host} answers in {milliseconds} ms but lists no models ({status})."
        return Tried(None, sentence, "Set a model, and it is tried; or let a run show it.", facts)
    return _refused(request, host, status, headers, words, facts)


def _refused(
    request: Request,
    host: str,
    status: int,
    headers: Mapping[str, str],
    words: str,
    facts: Mapping[str, str | int | None],
) -> Tried:
    seen = faults.by_status(status, words, headers)
    fault = seen.fault if seen else None
    if fault in _FAULTS:
        what, step = _FAULTS[fault]
        sentence = f"{host} {what} ({status})."
    elif 300 <= status < 400:
        sentence = f"{host} answers with a redirect ({status}), which is not followed."
        step = "Set the address at which the model itself answers."
    else:
        sentence, step = f"{host} refuses the request ({status}).", "Look at the address."
    if words and request.key and fault is None:
        sentence = f"{sentence[:-1]}: {words.rstrip('.')}."
    return Tried(False, sentence, step, facts)


def _listed(request: Request, host: str, answer: Any, facts: dict[str, str | int | None]) -> Tried:
    names = models_in(answer)
    if names is None:
        return _strange(host, facts)
    shown = named(names)
    if request.model and not has(names, request.model):
        sentence = f"{host} has no model {request.model!r}; it has {shown or 'none'}."
        return Tried(False, sentence, request.get_model or "Set one of them.", facts)
    if request.model:
        facts["model"] = request.model
        sentence = f"{request.model} is there at {host}, which answered"
    else:
        sentence = f"{host} took the key {request.key_name} and answered".replace("  ", " ")
    return Tried(True, f"{sentence} in {facts['milliseconds']} ms.", "", facts)


def _strange(host: str, facts: Mapping[str, str | int | None]) -> Tried:
    sentence = f"{host} answers, but not as a model's server does."
    return Tried(False, sentence, "Look at the address; many end in /v1.", facts)


def models_in(answer: Any) -> list[str] | None:
    """Return the names in a list of models; None for any other document."""
    if not isinstance(answer, Mapping):
        return None
    # Google has `models`, each with a name.
    rows, key = (answer["data"], "id") if "data" in answer else (answer.get("models"), "name")
    if not isinstance(rows, list):
        return None
    names = [row.get(key) for row in rows if isinstance(row, Mapping)]
    return [_plain(name) for name in names if isinstance(name, str) and name]


def has(names: list[str], model: str) -> bool:
    """Return whether a model is in the list; Ollama adds the tag `latest` to a name without one."""
    return model in names or f"{model}:latest" in names


def named(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _quote(answer: Any, key: str) -> str:
    """Return the server's error message, in one line and without the key."""
    error = answer.get("error") if isinstance(answer, Mapping) else None
    text = error.get("message") if isinstance(error, Mapping) else error
    if not isinstance(text, str):
        return ""
    return _plain(text.replace(key, "…") if key else text)[:_LONGEST_QUOTE]


def _plain(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:300]
