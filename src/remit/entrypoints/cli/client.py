"""HTTP client of an instance, built on the standard library alone."""

import http.client
import json
import ssl
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple, TypeVar
from urllib.parse import SplitResult, urlencode, urljoin, urlsplit

from remit.errors import (
    BadInput,
    Conflict,
    NotFound,
    Refused,
    RemitError,
    StorageFull,
    TooLarge,
    Unauthenticated,
    Unavailable,
)
from remit.ids import random_name

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 120.0
#: Largest page that the instance returns.
PAGE = 1000
LONGEST_ERROR = 256 * 1024
PIECE = 256 * 1024

_BROKEN = (ConnectionError, http.client.BadStatusLine, http.client.IncompleteRead)
_BY_STATUS = (BadInput, Conflict, NotFound, Refused, StorageFull, TooLarge, Unauthenticated)
_KINDS: dict[int, type[RemitError]] = {
    **{kind.status: kind for kind in (*_BY_STATUS, Unavailable)},
    400: BadInput,
    412: Conflict,
}

#: Answers of a proxy that cannot reach the instance.
_NOBODY_BEHIND = (502, 503, 504)
_RAISE = (
    "Raise its limit for bodies to 40 MB: in nginx `client_max_body_size 40m`, in Caddy "
    "`request_body { max_size 40MB }`."
)

T = TypeVar("T")
Body = bytes | BinaryIO | None


class Unreachable(Unavailable):
    """The instance did not answer."""

    code = "unreachable"
    next_step = "Start the instance with `remit up`, or name another with --url."


class Client:
    """One connection to one instance, kept while a command runs."""

    def __init__(self, url: str, token: str | None) -> None:
        parts = split(url)
        if token is not None and not (token.isascii() and token.isprintable()):
            raise Unauthenticated("The token has characters that no token has.")
        secure = parts.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        self.url = url.rstrip("/")
        self._prefix = parts.path.rstrip("/")
        self._token = token
        self._connection = kind(
            parts.hostname or "", parts.port, timeout=CONNECT_SECONDS, blocksize=PIECE
        )

    def get(self, target: str, **query: object) -> Any:
        return self._whole("GET", with_query(target, query))[1]

    def send(self, method: str, target: str, body: Mapping[str, Any] | None = None) -> Any:
        """Send a change; if the connection breaks, retry it once with the same idempotency key."""
        encoded = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        return self.upload(method, target, encoded, headers)

    def upload(self, method: str, target: str, body: Body, headers: Mapping[str, str]) -> Any:
        key = {"Idempotency-Key": random_name()}
        return self._whole(method, target, body, {**headers, **key})[1]

    def each(self, target: str, most: int | None = None, **query: object) -> Iterator[Any]:
        """Iterate over the entries of a list, page by page."""
        page = PAGE if most is None else min(PAGE, most)
        here: str | None = with_query(target, {**query, "limit": page})
        seen = 0
        while here is not None:
            response, entries = self._whole("GET", here)
            for entry in entries:
                yield entry
                seen += 1
                if seen == most:
                    return
            here = _next_page(here, response.getheader("Link"))

    def open(
        self,
        target: str,
        headers: Mapping[str, str] | None = None,
        *,
        silence: float = ANSWER_SECONDS,
    ) -> http.client.HTTPResponse:
        """Return a response whose body the caller reads piece by piece."""
        return self._twice(
            lambda: _good(self._exchange("GET", target, None, headers or {}, silence)), None
        )

    def _whole(
        self, method: str, target: str, body: Body = None, headers: Mapping[str, str] | None = None
    ) -> tuple[http.client.HTTPResponse, Any]:
        def exchange() -> tuple[http.client.HTTPResponse, Any]:
            response = _good(self._exchange(method, target, body, headers or {}, ANSWER_SECONDS))
            return response, _decoded(response.read())

        return self._twice(exchange, body)

    def _twice(self, exchange: Callable[[], T], body: Body) -> T:
        """Retry once if the connection breaks. Nothing is done twice: a change carries its key."""
        try:
            return exchange()
        except _BROKEN:
            self._connection.close()
        if body is not None and not isinstance(body, bytes):
            body.seek(0)
        try:
            return exchange()
        except _BROKEN as error:
            raise self._unreachable(error) from error

    def close(self) -> None:
        self._connection.close()

    def _exchange(
        self, method: str, target: str, body: Body, headers: Mapping[str, str], silence: float
    ) -> http.client.HTTPResponse:
        connection = self._connection
        everything = {"Accept": "application/json", **headers}
        if self._token:
            everything["Authorization"] = f"Bearer {self._token}"
        try:
            if connection.sock is None:
                self._connect()
            connection.sock.settimeout(silence)
            try:
                connection.request(method, self._prefix + target, body, everything)
            except (BrokenPipeError, ConnectionResetError):
                if body is None:
                    raise
                # A server that does not want all of a body says why before hanging up.
            return connection.getresponse()
        except TimeoutError as error:
            connection.close()
            raise self._unreachable(error) from error
        except (http.client.HTTPException, ValueError, OSError) as error:
            connection.close()
            if isinstance(error, _BROKEN):
                raise
            raise self._unreachable(error) from error

    def _connect(self) -> None:
        try:
            self._connection.connect()
        except OSError as error:
            raise self._unreachable(error) from error

    def _unreachable(self, error: Exception) -> Unreachable:
        if isinstance(error, ssl.SSLCertVerificationError):
            return Unreachable(
                f"The certificate of {self.url} is not trusted ({error.verify_message}).",
                "Set SSL_CERT_FILE to the certificate of the authority that signed it.",
            )
        if isinstance(error, ssl.SSLError):
            return Unreachable(
                f"There is no TLS at {self.url} ({error.reason}).",
                "See whether the address has to begin with http://, and what the proxy logs.",
            )
        if isinstance(error, ConnectionRefusedError):
            return Unreachable(f"No instance answers at {self.url}.")
        if isinstance(error, TimeoutError):
            return Unreachable(f"The instance at {self.url} did not answer in time.")
        what = (isinstance(error, OSError) and error.strerror) or type(error).__name__
        return Unreachable(f"The instance at {self.url} cannot be reached ({what}).")


def is_loopback(url: str) -> bool:
    return split(url).hostname in ("127.0.0.1", "localhost", "::1")


def split(url: str) -> SplitResult:
    """The parts of an instance's address."""
    try:
        parts = urlsplit(url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = None
    if not good or not url.isascii() or not url.isprintable() or " " in url:
        raise BadInput(f"{url[:200]!r} is not an address.", "Write it like http://127.0.0.1:8420.")
    return parts


def with_query(target: str, query: Mapping[str, object]) -> str:
    parameters = {name: value for name, value in query.items() if value is not None}
    return f"{target}?{urlencode(parameters)}" if parameters else target


def _next_page(here: str, link: str | None) -> str | None:
    for part in (link or "").split(","):
        address, _, parameters = part.strip().partition(";")
        if 'rel="next"' in parameters and address.startswith("<"):
            parts = urlsplit(urljoin(here, address.strip("<> ")))
            return f"{parts.path}?{parts.query}"
    return None


def _good(response: http.client.HTTPResponse) -> http.client.HTTPResponse:
    if response.status < 300:
        return response
    try:
        answer = _decoded(response.read(LONGEST_ERROR))
    except Unavailable:
        answer = None
    raise error_of(response.status, answer)


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError:
        raise Unavailable(
            "The answer does not come from a Remit instance.", "Check the address (--url)."
        ) from None


def error_of(status: int, answer: Any) -> RemitError:
    kind = _KINDS.get(status, RemitError)
    if not isinstance(answer, dict) or not isinstance(answer.get("error"), str):
        if status == TooLarge.status:
            return TooLarge(
                "The proxy in front of the instance refuses what is this large.", _RAISE
            )
        if status in _NOBODY_BEHIND:
            return Unreachable(
                f"A proxy answers, and the instance behind it does not (status {status}).",
                "Start the instance with `remit up`, or see where the proxy looks for it.",
            )
        return kind(f"The instance answered with status {status}.")
    known = {"error", "code", "nextStep", "what"}
    error = kind(
        answer["error"],
        str(answer.get("nextStep") or "") or None,
        code=str(answer.get("code") or "") or None,
        details={name: value for name, value in answer.items() if name not in known},
    )
    error.what = str(answer.get("what") or "")
    return error


def save(response: http.client.HTTPResponse, sink: BinaryIO, what: str) -> None:
    """Write a body piece by piece; refuse one that ends before its announced length."""
    missing = int(response.getheader("Content-Length") or 0)
    while piece := response.read(PIECE):
        missing -= sink.write(piece)
    if missing > 0:
        raise Unreachable(f"The connection broke before the end of the {what}.", "Try again.")


class Message(NamedTuple):
    """One server-sent event."""

    kind: str
    data: Any


def server_sent(response: http.client.HTTPResponse) -> Iterator[Message]:
    """Parse the server-sent events of a response, as they come."""
    kind, data = "", b""
    for line in response:
        name, _, value = line.rstrip(b"\r\n").partition(b":")
        if name == b"event":
            kind = value.strip().decode()
        elif name == b"data":
            data += value.strip()
        elif not line.strip():
            if data:
                yield Message(kind, _decoded(data))
            kind, data = "", b""
