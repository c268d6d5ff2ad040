"""The MCP endpoint with toy tools, against every kind of client that will meet it."""

from __future__ import annotations

import asyncio
import http.client
import json
import logging
import random
import re
import socket
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import httpx2
import pytest
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from pydantic import BaseModel, ConfigDict, Field
from starlette.applications import Starlette
from starlette.routing import Route

from remit.entrypoints.http.server.asgi import MCP_PATHS
from remit.entrypoints.mcp.endpoint import LARGEST_BODY, build_endpoint
from remit.entrypoints.mcp.registry import Tool, input_schema
from remit.errors import Conflict, Unauthenticated
from remit.services.identity import Caller
from tests.agents import REPOSITORY, claude
from tests.agents.fake_anthropic import FakeAnthropic, Say, Step, Use
from tests.agents.inspector import INSPECTED, Era, Inspector

GOOD = "good"
EARLIER = "2025-06-18"
LATER = "2026-07-28"
GENERATIONS = pytest.mark.parametrize("version", [EARLIER, LATER])
MODES = pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", LATER)])
PROBLEM = re.compile(
    r"invalid: .+: .+\. Next: (Call \w+ again: .+|Send the arguments .+|Correct the arguments .+)\."
)


# ── toy tools ───────────────────────────────────────────────────────────────────────────────────


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Nothing(Strict):
    pass


class Echo(Strict):
    text: str = Field(description="What to say.")


class Add(Strict):
    a: int
    b: int = 0


class Choice(Strict):
    kind: Literal["red", "green"]
    numbers: list[int] = []


class Nested(Strict):
    title: str
    choice: Choice | None = None
    either: int | list[str] | None = None


async def echo(caller: Caller, arguments: Echo) -> dict[str, Any]:
    return {"text": arguments.text, "token": caller.token}


async def add(caller: Caller, arguments: Add) -> dict[str, Any]:
    return {"sum": arguments.a + arguments.b}


async def nested(caller: Caller, arguments: Nested) -> dict[str, Any]:
    return arguments.model_dump(mode="json")


async def conflict(caller: Caller, arguments: Nothing) -> dict[str, Any]:
    raise Conflict("Somebody wrote version 3.", details={"version": 3, "hash": "abc"})


async def crash(caller: Caller, arguments: Nothing) -> dict[str, Any]:
    raise RuntimeError("the password is hunter2")


async def half_a_character(caller: Caller, arguments: Nothing) -> dict[str, Any]:
    return {"text": "\ud800"}


class Gate:
    """A slow tool that is slow for exactly as long as the test wants."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self._open = asyncio.Event()

    async def slow(self, caller: Caller, arguments: Nothing) -> dict[str, Any]:
        self.reached.set()
        await self._open.wait()
        return {"slow": True}

    async def release(self, caller: Caller, arguments: Nothing) -> dict[str, Any]:
        self._open.set()
        return {}


# ── the instance under test ─────────────────────────────────────────────────────────────────────


@dataclass
class Instance:
    url: str
    port: int
    gate: Gate

    @property
    def endpoint(self) -> str:
        return f"{self.url}/mcp"


@contextmanager
def serving(port: int = 0) -> Iterator[Instance]:
    """A real server on loopback, in a thread, until the block ends."""
    gate = Gate()
    everyone = [
        Tool("echo", "Say it again.", Echo, echo),
        Tool("add", "Add two numbers.", Add, add, mutates=True),
        Tool("nested", "Take something nested.", Nested, nested),
        Tool("conflict", "Always too late.", Nothing, conflict, mutates=True),
        Tool("crash", "Always broken.", Nothing, crash),
        Tool("half", "Answers what JSON cannot carry.", Nothing, half_a_character),
        Tool("slow", "Waits.", Nothing, gate.slow),
        Tool("release", "Ends the wait.", Nothing, gate.release, mutates=True),
    ]

    async def listed(token: str) -> Sequence[Tool]:
        return everyone if token == "good" else everyone[:1]

    async def find(token: str, name: str) -> Tool | None:
        return next((one for one in await listed(token) if one.name == name), None)

    async def authenticate(token: str) -> None:
        if token not in ("good", "limited"):
            raise Unauthenticated("This token is not valid.")

    endpoint = build_endpoint(
        tools={"echo": everyone[0]},
        listed=listed,
        find=find,
        authenticate=authenticate,
        version="1.2.3",
        allowed_hosts=["remit.test:*"],
    )

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with endpoint.lifespan():
            yield

    app = Starlette(routes=[Route(path, endpoint) for path in MCP_PATHS], lifespan=lifespan)
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    listening.listen(128)  # from here on a client waits instead of being refused
    port = listening.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", ws="none", access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield Instance(f"http://127.0.0.1:{port}", port, gate)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@pytest.fixture(scope="module")
def instance() -> Iterator[Instance]:
    with serving() as running:
        yield running


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def text(self) -> str:
        """What the agent reads of a tool's result."""
        text: str = self.json()["result"]["content"][0]["text"]
        return text


class Wire:
    """Messages as bytes over one kept connection, so that a test can also send nonsense."""

    def __init__(self, instance: Instance, version: str = LATER, token: str = GOOD) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", instance.port, timeout=30)
        self.version = version
        self.token = token

    def request(
        self, method: str, body: bytes | None, headers: dict[str, str], path: str = "/mcp"
    ) -> Answer:
        self.connection.request(method, path, body, headers)
        response = self.connection.getresponse()
        fields = {name.lower(): value for name, value in response.getheaders()}
        return Answer(response.status, fields, response.read())

    def headers(self, method: str, name: str | None = None) -> dict[str, str]:
        headers = {
            "Authorization": f"Bearer {self.token}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": self.version,
        }
        if self.version == LATER:
            headers["Mcp-Method"] = method
            if name is not None:
                headers["Mcp-Name"] = name
        return headers

    def body(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if self.version == LATER:
            meta = {
                "io.modelcontextprotocol/protocolVersion": LATER,
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            params = {**params, "_meta": meta}
        return {"jsonrpc": "2.0", "id": 7, "method": method, "params": params}

    def send(self, method: str, **params: Any) -> Answer:
        body = json.dumps(self.body(method, params)).encode()
        return self.request("POST", body, self.headers(method, params.get("name")))

    def call(self, name: str, arguments: Any) -> Answer:
        return self.send("tools/call", name=name, arguments=arguments)

    def close(self) -> None:
        self.connection.close()


@pytest.fixture
def wire(instance: Instance) -> Iterator[Callable[..., Wire]]:
    opened: list[Wire] = []

    def open_wire(version: str = LATER, token: str = GOOD) -> Wire:
        opened.append(Wire(instance, version, token))
        return opened[-1]

    yield open_wire
    for each in opened:
        each.close()


# ── the official client ─────────────────────────────────────────────────────────────────────────


def with_client(
    instance: Instance, mode: str, use: Callable[[Client], Any], *, path: str = "/mcp"
) -> Any:
    async def main() -> Any:
        headers = {"Authorization": "Bearer good"}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as over:
            transport = streamable_http_client(f"{instance.url}{path}", http_client=over)
            async with Client(transport, mode=mode) as client:
                return await use(client)

    return asyncio.run(main())


@MODES
def test_the_official_client_lists_and_calls_tools(
    instance: Instance, mode: str, version: str
) -> None:
    async def use(client: Client) -> None:
        assert client.protocol_version == version
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools][:2] == ["echo", "add"]
        result = await client.call_tool("add", {"a": 2, "b": 3})
        assert not result.is_error
        assert result.structured_content == {"sum": 5}
        assert result.content[0].model_dump()["text"] == '{"sum":5}'

    with_client(instance, mode, use)
    with_client(instance, mode, use, path="/mcp/")


@pytest.mark.requirement("FX-17")
@MODES
def test_the_official_client_sees_an_error_as_text_and_as_facts(
    instance: Instance, mode: str, version: str
) -> None:
    async def use(client: Client) -> None:
        result = await client.call_tool("conflict", {})
        assert result.is_error
        texts = [block.model_dump()["text"] for block in result.content]
        sentence = "conflict: Somebody wrote version 3. Next: Read the current state and try again."
        assert texts == [sentence, '{"version":3,"hash":"abc"}']
        facts = {
            "code": "conflict",
            "error": "Somebody wrote version 3.",
            "next_step": "Read the current state and try again.",
            "details": {"version": 3, "hash": "abc"},
        }
        assert result.structured_content == facts

    with_client(instance, mode, use)


@MODES
def test_the_official_client_works_through_the_stdio_bridge(
    instance: Instance, mode: str, version: str
) -> None:
    async def main() -> None:
        command, *arguments = bridge_command(instance.url, "good")
        child = StdioServerParameters(command=command, args=arguments, env=BRIDGE_ENV)
        async with Client(child, mode=mode) as client:
            assert client.protocol_version == version
            result = await client.call_tool("echo", {"text": "grüß dich 🙂"})
            assert result.structured_content == {"text": "grüß dich 🙂", "token": "good"}
            failed = await client.call_tool("conflict", {})
            assert failed.is_error

    asyncio.run(main())


# ── raw HTTP ────────────────────────────────────────────────────────────────────────────────────


def test_an_earlier_client_gets_its_own_version_and_the_server_name(
    wire: Callable[..., Wire],
) -> None:
    answer = wire(EARLIER).send(
        "initialize",
        protocolVersion=EARLIER,
        capabilities={},
        clientInfo={"name": "old", "version": "1"},
    )
    result = answer.json()["result"]
    assert answer.status == 200
    assert result["protocolVersion"] == EARLIER
    assert result["serverInfo"] == {"name": "remit", "version": "1.2.3"}
    assert "mcp-session-id" not in answer.headers


def test_a_later_client_discovers_the_server(wire: Callable[..., Wire]) -> None:
    result = wire(LATER).send("server/discover").json()["result"]
    assert LATER in result["supportedVersions"]
    assert "tools" in result["capabilities"]


@GENERATIONS
def test_a_notification_is_accepted_without_a_body(wire: Callable[..., Wire], version: str) -> None:
    over = wire(version)
    message = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    answer = over.request("POST", json.dumps(message).encode(), over.headers(message["method"]))
    assert (answer.status, answer.body) == (202, b"")


@GENERATIONS
@pytest.mark.parametrize("authorization", [None, "", "Bearer", "Bearer ", "Basic good", "Bearer x"])
def test_no_request_passes_without_a_valid_token(
    wire: Callable[..., Wire], version: str, authorization: str | None
) -> None:
    over = wire(version)
    headers = over.headers("tools/list")
    del headers["Authorization"]
    if authorization is not None:
        headers["Authorization"] = authorization
    body = json.dumps(over.body("tools/list", {})).encode()
    answer = over.request("POST", body, headers)
    assert answer.status == 401
    known = ' error="invalid_token"' if authorization == "Bearer x" else ""
    assert answer.headers["www-authenticate"] == f"Bearer{known}"
    assert answer.json()["code"] == "unauthenticated"
    assert set(answer.json()) == {"error", "code", "nextStep"}


@GENERATIONS
def test_the_tools_depend_on_the_token(wire: Callable[..., Wire], version: str) -> None:
    limited = wire(version, "limited")
    names = [tool["name"] for tool in limited.send("tools/list").json()["result"]["tools"]]
    assert names == ["echo"]
    refused = limited.call("add", {"a": 1})
    assert refused.status == 200
    assert refused.text.startswith("not_found: There is no tool 'add' for you. Next: ")
    assert len(wire(version).send("tools/list").json()["result"]["tools"]) == 8


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
@pytest.mark.parametrize("path", MCP_PATHS)
def test_anything_but_post_is_answered_405(
    wire: Callable[..., Wire], method: str, path: str
) -> None:
    over = wire()
    answer = over.request(method, None, over.headers("tools/list"), path)
    assert answer.status == 405
    assert answer.headers["allow"] == "POST"


@GENERATIONS
@pytest.mark.parametrize("path", MCP_PATHS)
def test_both_paths_answer_without_a_redirect(
    wire: Callable[..., Wire], version: str, path: str
) -> None:
    over = wire(version)
    body = json.dumps(over.body("tools/list", {})).encode()
    assert over.request("POST", body, over.headers("tools/list"), path).status == 200


@GENERATIONS
@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("127.0.0.1", None, 200),
        ("localhost:1", "http://localhost:9999", 200),
        ("[::1]:5", None, 200),
        ("remit.test:8420", "https://remit.test:8420", 200),
        ("evil.example", None, 421),
        ("127.0.0.1.evil.example:80", None, 421),
        ("127.0.0.1:80", "http://evil.example", 403),
    ],
)
def test_only_known_names_of_the_host_are_answered(
    wire: Callable[..., Wire], version: str, host: str, origin: str | None, status: int
) -> None:
    over = wire(version)
    headers = over.headers("tools/list") | {"Host": host}
    if origin is not None:
        headers["Origin"] = origin
    body = json.dumps(over.body("tools/list", {})).encode()
    assert over.request("POST", body, headers).status == status


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(wire: Callable[..., Wire]) -> None:
    over = wire()
    headers = over.headers("tools/list") | {"Content-Length": str(LARGEST_BODY + 1)}
    answer = over.request("POST", None, headers)
    assert answer.status == 413
    assert answer.json()["code"] == "too_large"


def test_a_body_of_unknown_length_is_refused_once_it_is_too_large(instance: Instance) -> None:
    over = Wire(instance)
    chunk = b"x" * 2**20

    def chunks() -> Iterator[bytes]:
        for _ in range(LARGEST_BODY // len(chunk) + 2):
            yield chunk

    over.connection.request(
        "POST", "/mcp", chunks(), over.headers("tools/list"), encode_chunked=True
    )
    assert over.connection.getresponse().status == 413
    over.close()


@GENERATIONS
def test_a_large_argument_passes(wire: Callable[..., Wire], version: str) -> None:
    text = "ü" * 600_000
    result = wire(version).call("echo", {"text": text}).json()["result"]
    assert result["structuredContent"]["text"] == text


@GENERATIONS
def test_a_broken_tool_tells_a_reference_and_logs_the_rest(
    wire: Callable[..., Wire], version: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "remit.entrypoints.mcp.endpoint"):
        answer = wire(version).call("crash", {})
    told = re.fullmatch(
        r"internal: Something went wrong on our side \(reference ([0-9a-f]{8})\)\. Next: .+",
        answer.text,
    )
    assert told is not None
    assert answer.json()["result"]["isError"] is True
    assert b"hunter2" not in answer.body
    assert f"reference {told[1]}" in caplog.text
    assert "hunter2" in caplog.text


@GENERATIONS
def test_a_result_that_json_cannot_carry_is_our_fault_and_not_the_wire_s(
    wire: Callable[..., Wire], version: str
) -> None:
    answer = wire(version).call("half", {})
    assert answer.status == 200
    assert answer.text.startswith("internal: ")


@GENERATIONS
def test_a_slow_call_does_not_hold_up_another(version: str) -> None:
    with serving() as own:
        slow, fast = Wire(own, version), Wire(own, version)
        answers: list[Answer] = []
        waiting = threading.Thread(target=lambda: answers.append(slow.call("slow", {})))
        waiting.start()
        assert own.gate.reached.wait(30)
        assert fast.call("add", {"a": 1}).text == '{"sum":1}'
        assert not answers
        fast.call("release", {})
        waiting.join(30)
        assert answers[0].text == '{"slow":true}'
        slow.close()
        fast.close()


# ── bad input ───────────────────────────────────────────────────────────────────────────────────


@GENERATIONS
@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("add", {}, "a: is required."),
        ("add", {"a": 1, "c": 2}, "c: is not known; known are a, b."),
        ("add", {"a": "x"}, "a: should be a valid integer, unable to parse string as an integer."),
        ("add", {"a": 10**400}, "a: is too large a number."),
        ("add", {"a": "9" * 400}, "a: is too large a number."),
        ("add", {"a": 1e300}, "a: is too large a number."),
        ("add", {"a": float("nan")}, "a: must be a finite number."),
        ("add", {"a": float("-inf")}, "a: must be a finite number."),
        ("echo", {"text": "\ud800"}, "text: contains half a character (a lone surrogate)."),
        ("echo", {"\ud800": 1}, r"\ud800: is not a valid name."),
        ("echo", [1], "arguments: must be an object with named values."),
        ("echo", "text", "arguments: must be an object with named values."),
        ("echo", 5, "arguments: must be an object with named values."),
        ("echo", {"text": {"a": "b"}}, "text: should be a valid string."),
        ("nested", {"title": "t", "choice": {}}, "choice.kind: is required."),
        ("nested", {"title": "t", "choice": {"kind": "red", "x": 1}}, "choice.x: is not known."),
        ("nested", {"title": "t", "choice": {"kind": "blue"}}, "choice.kind: should be 'red'"),
        (
            "nested",
            {"title": "t", "choice": {"kind": "red", "numbers": [1, "x"]}},
            "choice.numbers.1: should be a valid integer",
        ),
        ("nested", {"title": "t", "either": {}}, "either: should be a valid integer; either: "),
        ("crash", {"x": 1}, "x: is not known; there are none."),
        ("echo", {"x" * 500: 1}, f"text: is required; {'x' * 60}…: is not known"),
    ],
)
def test_wrong_arguments_are_named_to_the_agent(
    wire: Callable[..., Wire], version: str, tool: str, arguments: Any, said: str
) -> None:
    answer = wire(version).call(tool, arguments)
    assert answer.status == 200
    assert answer.json()["result"]["isError"] is True
    assert answer.text.startswith(f"invalid: {said}")
    assert PROBLEM.fullmatch(answer.text)


@GENERATIONS
def test_a_thousand_generated_inputs_never_break_the_server(
    wire: Callable[..., Wire], version: str
) -> None:
    over = wire(version)
    chance = random.Random(f"remit {version}")
    for _ in range(1000):
        tool = chance.choice(["echo", "add", "nested"])
        arguments = junk(chance, 0)
        answer = over.call(tool, arguments)
        assert answer.status == 200, (arguments, answer)
        assert "result" in answer.json(), (arguments, answer)
        if answer.json()["result"].get("isError"):
            assert PROBLEM.fullmatch(answer.text), (arguments, answer.text)


@GENERATIONS
def test_broken_messages_are_refused_and_never_break_the_server(
    wire: Callable[..., Wire], version: str
) -> None:
    over = wire(version)
    chance = random.Random(f"broken {version}")
    whole = json.dumps(over.body("tools/call", {"name": "add", "arguments": {"a": 1}})).encode()
    deep = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b"[" * 100_000
    bodies = [b"", b"null", b"[]", b"{}", b'"x"', b"\xff\xfe", deep, b"1" * 5000, b"[" + whole]
    bodies += [json.dumps(junk(chance, 0)).encode() for _ in range(200)]
    for _ in range(300):
        torn = bytearray(whole)
        for _ in range(chance.randint(1, 4)):
            torn[chance.randrange(len(torn))] = chance.randrange(256)
        bodies.append(bytes(torn))
    for body in bodies:
        answer = over.request("POST", body, over.headers("tools/call", "add"))
        assert answer.status < 500, (body, answer)


def junk(chance: random.Random, depth: int) -> Any:
    """Something that a confused model might send, biased towards almost right."""
    names = ["text", "a", "b", "title", "choice", "kind", "numbers", "either", "", "\ud83d", "ключ"]
    leaves: list[Any] = [None, True, 0, -1, 2**63, 10**300, 1.5, 1e308, float("nan"), float("inf")]
    leaves += ["", "x", "red", "12", "9" * 50, "\x00", "\ud800", "é🙂", "a\ndata: b", "x" * 5000]
    kind = chance.random()
    if (depth == 0 and kind < 0.9) or (depth < 5 and kind < 0.3):
        return {chance.choice(names): junk(chance, depth + 1) for _ in range(chance.randint(0, 4))}
    if depth < 5 and kind < 0.45:
        return [junk(chance, depth + 1) for _ in range(chance.randint(0, 3))]
    if kind < 0.47:
        deep: Any = 1
        for _ in range(chance.randint(20, 200)):
            deep = [deep] if chance.random() < 0.5 else {"a": deep}
        return deep
    return chance.choice(leaves)


def test_a_schema_has_no_titles_no_references_and_no_null() -> None:
    assert input_schema(Nested) == {
        "type": "object",
        "properties": {
            "title": {"type": "string"},
            "choice": {
                "type": "object",
                "properties": {
                    "kind": {"type": "string", "enum": ["red", "green"]},
                    "numbers": {"type": "array", "items": {"type": "integer"}, "default": []},
                },
                "required": ["kind"],
            },
            "either": {
                "anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "string"}}]
            },
        },
        "required": ["title"],
    }
    described = input_schema(Echo)["properties"]["text"]
    assert described == {"type": "string", "description": "What to say."}


# ── the stdio bridge ────────────────────────────────────────────────────────────────────────────

BRIDGE_ENV = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(REPOSITORY / "src")}
BRIDGE = (
    "import sys; from remit.entrypoints.cli.mcp_stdio import serve; "
    "sys.exit(serve(sys.argv[1], sys.argv[2], sys.stdin.buffer, sys.stdout.buffer))"
)


def bridge_command(url: str, token: str) -> list[str]:
    return [sys.executable, "-c", BRIDGE, url, token]


class Child:
    """The bridge as a client starts it."""

    def __init__(self, url: str, token: str = GOOD) -> None:
        self.process = subprocess.Popen(
            bridge_command(url, token),
            env=BRIDGE_ENV,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def send(self, line: bytes | dict[str, Any]) -> None:
        assert self.process.stdin is not None
        data = line if isinstance(line, bytes) else json.dumps(line).encode()
        self.process.stdin.write(data + b"\n")
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        message: dict[str, Any] = json.loads(self.process.stdout.readline())
        return message

    def ask(self, line: bytes | dict[str, Any]) -> dict[str, Any]:
        self.send(line)
        return self.receive()

    def close(self) -> int:
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = self.process.wait(30)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


@contextmanager
def bridge(url: str, token: str = GOOD) -> Iterator[Child]:
    child = Child(url, token)
    try:
        yield child
        assert child.close() == 0
    finally:
        if child.process.poll() is None:
            child.process.kill()
            child.process.wait()


def request(number: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    params = {"name": name, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def test_the_bridge_answers_each_request_on_its_own_line(instance: Instance) -> None:
    with bridge(instance.url) as child:
        child.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        for number in range(50):
            child.send(request(number, "add", {"a": number}))
        answers = [child.receive() for _ in range(50)]
        sums = {answer["id"]: answer["result"]["structuredContent"]["sum"] for answer in answers}
        assert sums == {number: number for number in range(50)}


def test_the_bridge_passes_on_a_refused_token_as_an_error(instance: Instance) -> None:
    with bridge(instance.url, "wrong") as child:
        answer = child.ask(request("x", "echo", {"text": "a"}))
        assert answer["id"] == "x"
        assert answer["error"]["message"].startswith("unauthenticated: This token is not valid.")


def test_the_bridge_answers_nonsense_with_errors(instance: Instance) -> None:
    with bridge(instance.url) as child:
        assert child.ask(b"{nonsense")["error"]["code"] == -32700
        assert child.ask(b"[1,2]")["error"]["code"] == -32600
        unknown = child.ask({"jsonrpc": "2.0", "id": 4, "method": "no/such"})
        assert (unknown["id"], unknown["error"]["code"]) == (4, -32601)
        broken = child.ask({"jsonrpc": "1.0", "id": 5, "method": "tools/list"})
        assert (broken["id"], "error" in broken) == (5, True)
        assert child.ask(request(6, "add", {"a": 1}))["result"]["structuredContent"] == {"sum": 1}


def test_the_bridge_survives_a_restart_of_the_instance() -> None:
    with serving() as first:
        child = Child(first.url)
        assert "result" in child.ask(request(1, "add", {"a": 1}))
    refused = child.ask(request(2, "add", {"a": 1}))
    assert "does not run" in refused["error"]["message"]
    with serving(first.port):
        assert "result" in child.ask(request(3, "add", {"a": 1}))
    with serving(first.port):
        assert "result" in child.ask(request(4, "add", {"a": 1}))
    assert child.close() == 0


def test_the_bridge_imports_nothing_heavy() -> None:
    script = (
        "import sys; import remit.entrypoints.cli.mcp_stdio; "
        "print([m for m in ('mcp', 'pydantic', 'asyncio', 'starlette') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=BRIDGE_ENV, capture_output=True, check=True
    )
    assert done.stdout.strip() == b"[]"


# ── real clients ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-17")
@pytest.mark.parametrize("over", ["http", "stdio"])
@pytest.mark.programs
def test_claude_calls_tools_and_reads_results_and_errors(
    instance: Instance, tmp_path: Path, over: str
) -> None:
    servers = {
        "http": claude.http_server(instance.endpoint, "good"),
        "stdio": claude.stdio_server(bridge_command(instance.url, "good"), BRIDGE_ENV),
    }
    script: list[Step] = [
        Use("mcp__remit__add", {"a": 20, "b": 1}),
        Use("mcp__remit__add", lambda before: {"a": before.json()["sum"], "b": 21}),
        Use("mcp__remit__conflict", {}),
        Use("mcp__remit__echo", {"wrong": 1}),
        Say("Done."),
    ]
    with FakeAnthropic(script) as model:
        ended = claude.run(
            "Go.", model_url=model.url, home=tmp_path, servers={"remit": servers[over]}
        )
    assert not model.failures
    assert ended.server_status == {"remit": "connected"}
    assert ended.result["result"] == "Done."
    assert not ended.result["is_error"]
    assert "mcp__remit__echo" in model.tools()
    first, second, conflicting, wrong = model.results()
    assert (first.json(), second.json()) == ({"sum": 21}, {"sum": 42})
    assert conflicting.is_error
    assert conflicting.text.startswith("conflict: Somebody wrote version 3. Next: ")
    assert '{"version":3,"hash":"abc"}' in conflicting.text
    assert wrong.is_error
    assert wrong.text.startswith("invalid: text: is required; wrong: is not known")


@pytest.mark.programs
def test_claude_is_told_that_a_token_is_not_valid(instance: Instance, tmp_path: Path) -> None:
    server = claude.http_server(instance.endpoint, "wrong")
    with FakeAnthropic([Say("Done.")]) as model:
        ended = claude.run("Go.", model_url=model.url, home=tmp_path, servers={"remit": server})
    assert ended.server_status["remit"] != "connected"


@pytest.mark.parametrize(("over", "era"), INSPECTED)
@pytest.mark.programs
def test_the_inspector_lists_and_calls_tools(
    instance: Instance, tmp_path: Path, over: str, era: Era
) -> None:
    if over == "http":
        inspector = Inspector.over_http(tmp_path, instance.endpoint, "good", era)
    else:
        command = bridge_command(instance.url, "good")
        inspector = Inspector.over_stdio(tmp_path, command, BRIDGE_ENV, era)
    assert [tool["name"] for tool in inspector.tools()][:2] == ["echo", "add"]
    assert inspector.call("add", {"a": 1, "b": 2})["structuredContent"] == {"sum": 3}
    refused = inspector.call("conflict", {})
    assert refused["isError"] is True
    assert refused["structuredContent"]["details"] == {"version": 3, "hash": "abc"}
