"""`remit mcp-stdio`: MCP over standard input and output, for clients that speak nothing else.

Each line in is one message, posted as it is to the instance; each answer is one line out. The
standard library is enough, so that an agent's client does not wait for it to start.
"""

import base64
import http.client
import json
import select
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any
from urllib.parse import SplitResult, urlsplit

#: Calls of one client that run at the same time.
PARALLEL = 8
#: A tool may take its time; a dead instance is noticed by its closed connection.
TIMEOUT_SECONDS = 600.0

_META_VERSION = "io.modelcontextprotocol/protocolVersion"
_NAME_OF = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PARSE_ERROR, _INVALID_REQUEST, _UNREACHABLE = -32700, -32600, -32000
_UNAUTHENTICATED = -32001


def serve(url: str, token: str, stdin: IO[bytes], stdout: IO[bytes]) -> int:
    """Carry messages until the input ends; return 0, even if single messages failed."""
    bridge = _Bridge(url, token, stdout)
    with ThreadPoolExecutor(PARALLEL, thread_name_prefix="mcp-stdio") as pool:
        try:
            for line in stdin:
                if line.strip():
                    bridge.take(line, pool)
        except BrokenPipeError:
            return 0  # the client has gone
    return 0


class _Bridge:
    def __init__(self, url: str, token: str, stdout: IO[bytes]) -> None:
        self._url = urlsplit(url)
        self._path = f"{self._url.path.rstrip('/')}/mcp"
        self._token = token
        self._stdout = stdout
        self._writing = threading.Lock()
        self._of_thread = threading.local()
        #: Protocol version that `initialize` negotiated; later messages of such clients repeat it.
        self._version: str | None = None

    def take(self, line: bytes, pool: ThreadPoolExecutor) -> None:
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return self._fail(None, _PARSE_ERROR, "This line is not JSON.")
        if not isinstance(message, dict):
            return self._fail(None, _INVALID_REQUEST, "This line is not one JSON-RPC message.")
        if "id" not in message or message.get("method") == "initialize":
            # Later messages may depend on these, so they keep their place.
            return self._carry(message, line)
        pool.submit(self._carry, message, line)
        return None

    def _carry(self, message: dict[str, Any], line: bytes) -> None:
        expects_answer = "id" in message and "method" in message
        try:
            status, answer = self._post(message, line.strip())
        except (OSError, http.client.HTTPException, ValueError) as error:
            if expects_answer:
                self._fail(message["id"], _UNREACHABLE, self._unreachable(error))
            return
        if not expects_answer:
            return
        if _is_answer(answer):
            if message["method"] == "initialize":
                self._version = (answer.get("result") or {}).get("protocolVersion")
            # An error that was found before the message was read carries no id.
            self._write({**answer, "id": message["id"]})
        else:
            self._fail(message["id"], *_explained(status, answer))

    def _post(self, message: dict[str, Any], body: bytes) -> tuple[int, Any]:
        headers = self._headers(message)
        connection = self._connection()
        kept = connection.sock is not None
        try:
            return _exchange(connection, self._path, body, headers)
        except (http.client.RemoteDisconnected, ConnectionError):
            # A call may have been carried out before the connection broke: never do it twice.
            if not kept or message.get("method") == "tools/call":
                raise
        return _exchange(connection, self._path, body, headers)

    def _connection(self) -> http.client.HTTPConnection:
        """This thread's connection, new if the instance has closed it since, as a restart does."""
        connection: http.client.HTTPConnection | None
        connection = getattr(self._of_thread, "connection", None)
        if connection is None:
            connection = self._of_thread.connection = _new_connection(self._url)
        elif connection.sock is not None and select.select([connection.sock], [], [], 0)[0]:
            connection.close()
        return connection

    def _headers(self, message: dict[str, Any]) -> dict[str, str]:
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        method = message.get("method")
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        meta = params.get("_meta")
        version = meta.get(_META_VERSION) if isinstance(meta, dict) else None
        if isinstance(version, str) and isinstance(method, str):
            headers["MCP-Protocol-Version"] = _header(version)
            headers["Mcp-Method"] = _header(method)
            name = params.get(_NAME_OF.get(method, ""))
            if isinstance(name, str):
                headers["Mcp-Name"] = _header(name)
        elif self._version and method != "initialize":
            headers["MCP-Protocol-Version"] = self._version
        return headers

    def _unreachable(self, error: Exception) -> str:
        where = f"The instance at {self._url.geturl()}"
        if isinstance(error, ConnectionRefusedError):
            return f"{where} does not run. Next: Start it with `remit up`, then try again."
        what = type(error).__name__
        return f"{where} did not answer ({what}). Next: Look whether the call was carried out."

    def _fail(self, message_id: Any, code: int, sentence: str) -> None:
        error = {"code": code, "message": sentence}
        self._write({"jsonrpc": "2.0", "id": message_id, "error": error})

    def _write(self, message: dict[str, Any]) -> None:
        line = json.dumps(message, separators=(",", ":")).encode() + b"\n"
        with self._writing:
            self._stdout.write(line)
            self._stdout.flush()


def _new_connection(url: SplitResult) -> http.client.HTTPConnection:
    kind = http.client.HTTPSConnection if url.scheme == "https" else http.client.HTTPConnection
    return kind(url.hostname or "127.0.0.1", url.port, timeout=TIMEOUT_SECONDS)


def _exchange(
    connection: http.client.HTTPConnection, path: str, body: bytes, headers: dict[str, str]
) -> tuple[int, Any]:
    try:
        connection.request("POST", path, body, headers)
        response = connection.getresponse()
        return response.status, _decoded(response.read())
    except BaseException:
        connection.close()
        raise


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError:
        return None


def _is_answer(answer: Any) -> bool:
    return isinstance(answer, dict) and answer.get("jsonrpc") == "2.0"


def _explained(status: int, answer: Any) -> tuple[int, str]:
    """Return a JSON-RPC code and message: of Remit's error body, or else of the status alone."""
    code = _UNAUTHENTICATED if status == 401 else _UNREACHABLE
    if isinstance(answer, dict) and isinstance(answer.get("error"), str):
        return code, f"{answer.get('code')}: {answer['error']} Next: {answer.get('nextStep')}"
    return code, f"The instance answered with status {status}."


def _header(value: str) -> str:
    """Encode a value for a header as MCP does: plain, or in base64 if it would not survive."""
    wrapped = value.startswith("=?base64?") and value.endswith("?=")
    if value.isascii() and value.isprintable() and value == value.strip() and not wrapped:
        return value
    return f"=?base64?{base64.b64encode(value.encode('utf-8', 'replace')).decode()}?="
