"""Hostile requests: what is sent, how it is sent, and who sends it again."""

from __future__ import annotations

import ast
import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from remit.entrypoints.http.server.protocol import LARGEST_HEAD, Impatient
from remit.testing import ScriptedAgent
from tests.attack_stage import Stage, staged
from tests.http_client import Client, server_sent
from tests.test_attacks_ids import Operation, bodies, operations

SOURCE = Path(__file__).parent.parent / "src" / "remit"
SECONDS = 20


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("home")) as found:
        yield found


@contextlib.contextmanager
def connected(stage: Stage) -> Iterator[socket.socket]:
    place = urlsplit(stage.site.url)
    with socket.create_connection((place.hostname, place.port), timeout=SECONDS) as found:
        yield found


def said(connection: socket.socket) -> bytes:
    """Everything until the other side closes."""
    found = b""
    with contextlib.suppress(ConnectionError, TimeoutError):
        while piece := connection.recv(65536):
            found += piece
    return found


def is_closed(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1)
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def host(stage: Stage) -> bytes:
    return urlsplit(stage.site.url).netloc.encode()


# ── connections ─────────────────────────────────────────────────────────────────────────────────


def test_a_head_without_end_is_cut_off(stage: Stage) -> None:
    line = b"X-Filler: " + b"a" * 1000 + b"\r\n"
    with connected(stage) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: " + host(stage) + b"\r\n")
        sent = 0
        with contextlib.suppress(ConnectionError):
            for _ in range(8 * LARGEST_HEAD // len(line)):
                connection.sendall(line)
                sent += len(line)
        answer = said(connection)
    # It was told so, or cut off in the middle of it, when what was on its way was thrown away.
    assert answer.startswith(b"HTTP/1.1 431 ") or 0 < sent < 8 * LARGEST_HEAD - len(line)
    assert answer.count(b"HTTP/1.1") <= 1
    with connected(stage) as connection:  # a large one is fine
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: " + host(stage) + b"\r\n")
        connection.sendall(line * 30 + b"Connection: close\r\n\r\n")
        assert said(connection).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    ("begun", "status"),
    [
        (b"GET /" + b"a" * 3 * LARGEST_HEAD, b"414"),
        (b"GET /health HTTP/1.1\r\nX-Filler: " + b"a" * 3 * LARGEST_HEAD, b"431"),
        (b"GET /health HTTP/1.1\r\nX-Filler: \x01" + b"a" * 3 * LARGEST_HEAD, b"400"),
    ],
    ids=["a long address", "a long header", "a malformed header"],
)
def test_a_long_head_is_refused_once(
    stage: Stage, caplog: pytest.LogCaptureFixture, begun: bytes, status: bytes
) -> None:
    with connected(stage) as connection:
        connection.sendall(begun)
        answer = connection.recv(100)
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"a" * LARGEST_HEAD)  # it goes on
        answer += said(connection)
    assert answer.startswith(b"HTTP/1.1 " + status)
    assert answer.count(b"HTTP/1.1 ") == 1
    # Anybody can send this, so it must not fill the log.
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.parametrize(
    "begun",
    [b"", b"GET /hea", b"GET /health HTTP/1.1\r\nX-Slow: ", b"GET /health HTTP/1.1\r\n\r"],
    ids=["nothing", "a line", "a header", "an end"],
)
def test_a_request_that_does_not_come_is_not_waited_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(Impatient, "head_seconds", 0.5)
    with connected(stage) as connection:
        connection.sendall(begun)
        began = time.monotonic()
        connection.settimeout(0.1)
        while True:  # a byte now and then does not help
            try:
                if not connection.recv(100):
                    break
            except TimeoutError:
                with contextlib.suppress(ConnectionError):
                    connection.send(b"a")
            except ConnectionError:
                break
            assert time.monotonic() - began < SECONDS
    assert stage.operator("GET", "/api/me").status == 200


def test_a_body_that_stops_coming_is_not_waited_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Impatient, "silent_seconds", 0.5)
    token = (stage.operator.token or "").encode()
    with connected(stage) as connection:
        connection.sendall(
            b"POST /api/companies HTTP/1.1\r\nHost: " + host(stage) + b"\r\nAuthorization: Bearer "
            b"" + token + b"\r\nContent-Length: 100\r\n\r\n{"
        )
        assert said(connection) == b""
    assert not caplog.records  # nobody fills the log like that


def test_a_connection_that_is_kept_outlives_the_wait_for_its_first_request(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: what is closed is what never came to a request."""
    monkeypatch.setattr(Impatient, "head_seconds", 0.3)
    ask = b"GET /health HTTP/1.1\r\nHost: " + host(stage) + b"\r\n\r\n"
    with connected(stage) as connection:
        for _ in range(2):
            connection.sendall(ask)
            answer = b""
            while not answer.endswith(b"}"):
                answer += connection.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200 ")
            ended = time.monotonic() + 0.8
            while time.monotonic() < ended:
                time.sleep(0.05)


def test_who_opens_connections_without_end_crowds_out_nobody(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that nothing is asked on go, the longest idle first; those at work stay."""
    most = 20
    monkeypatch.setattr(Impatient, "most", most)
    monkeypatch.setattr(Impatient, "head_seconds", 600.0)  # that is not what closes them here
    ask = b"GET /health HTTP/1.1\r\nHost: " + host(stage) + b"\r\n\r\n"
    watcher = Client(stage.site.url, stage.ours.board.token)
    headers = {"Accept": "text/event-stream"}
    stream = watcher.open("GET", company(stage.ours.company), headers=headers)
    with contextlib.ExitStack() as crowd:
        for _ in range(2 * most):  # that asked once, and are kept from then on
            connection = crowd.enter_context(connected(stage))
            connection.sendall(ask)
            assert connection.recv(12) == b"HTTP/1.1 200"
        silent = [crowd.enter_context(connected(stage)) for _ in range(3 * most)]
        assert all(is_closed(connection) for connection in silent[: 2 * most])
        client = Client(stage.site.url, stage.ours.board.token)
        assert client("GET", "/api/me").status == 200
        title = {"parentId": stage.ours.ids["agent"], "title": "Seen by the stream"}
        client.must("POST", f"/api/companies/{stage.ours.company}/outcomes", title)
        client.close()
    assert "outcome.create" in next(server_sent(stream))["data"]
    stream.close()
    watcher.close()


_INNER = (
    b"GET /api/me HTTP/1.1\r\nHost: %(host)s\r\n"
    b"Authorization: Bearer %(token)s\r\nConnection: close\r\n\r\n"
)
#: A request whose end two readers would see at different places, with another behind it.
SMUGGLING = {
    "both lengths": b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "both, the other way": b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
    "two lengths": b"Content-Length: 0\r\nContent-Length: 44\r\n\r\n",
    "a list of lengths": b"Content-Length: 0, 44\r\n\r\n",
    "a signed length": b"Content-Length: +0\r\n\r\n",
    "a negative length": b"Content-Length: -1\r\n\r\n",
    "a length in hex": b"Content-Length: 0x0\r\n\r\n",
    "a blank before the colon": b"Content-Length : 0\r\n\r\n",
    "an unknown coding": b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked is not last": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "a folded header": b"X: a\r\n Content-Length: 44\r\nContent-Length: 0\r\n\r\n",
    "a bad chunk": b"Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
    "a huge chunk": b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n\r\n",
}


@pytest.mark.parametrize("name", SMUGGLING)
def test_no_request_hides_in_another(stage: Stage, name: str) -> None:
    known = {b"host": host(stage), b"token": (stage.operator.token or "").encode()}
    head = b"POST /login HTTP/1.1\r\nHost: %(host)s\r\n" % known
    with connected(stage) as connection:
        connection.settimeout(0.5)  # it may wait for the rest of what it takes for one request
        connection.sendall(head + SMUGGLING[name] + _INNER % known)
        answer = said(connection)
    assert b'"operator"' not in answer, answer
    assert b"HTTP/1.1 5" not in answer
    with connected(stage) as connection:  # the control: one after the other is fine
        connection.sendall(head + b"Content-Length: 0\r\n\r\n" + _INNER % known)
        assert b'"operator"' in said(connection)


HOSTS = [
    b"Host: evil.example",
    b"Host: 127.0.0.1.evil.example",
    b"Host: evil.example:80@127.0.0.1",
    b"Host: 127.0.0.1\r\nHost: evil.example",
    b"Host: evil.example\r\nHost: 127.0.0.1",
    b"Host: ",
    b"Host: [::1",
    b"Host: localhost.",
    b"Host: evil.example#localhost",
    b"X-Forwarded-Host: localhost",
    b"Host: evil.example\r\nX-Forwarded-Host: 127.0.0.1",
    b"Host: \xff\xfe",
]


@pytest.mark.parametrize("given", HOSTS)
@pytest.mark.parametrize("path", [b"/health", b"/", b"/api/me", b"/mcp"])
def test_a_rebound_or_doubled_name_gets_nothing(stage: Stage, given: bytes, path: bytes) -> None:
    method = b"POST" if path == b"/mcp" else b"GET"
    with connected(stage) as connection:
        connection.sendall(method + b" " + path + b" HTTP/1.1\r\n" + given + b"\r\n")
        connection.sendall(b"Content-Length: 0\r\nConnection: close\r\n\r\n")
        status = said(connection).split(b" ")[1]
    assert status in (b"421", b"400")


def test_odd_methods_and_overrides_do_nothing(stage: Stage) -> None:
    document = stage.operator.must("GET", "/openapi.json")
    tried = 0
    for operation in operations(document):
        path = operation.path(stage.ours)
        known = {method.upper() for method in document["paths"][operation.template]}
        for method in {"TRACE", "PROPFIND", "LINK", "PUT", "OPTIONS"} - known:
            answer = stage.ours.board(method, path)
            assert answer.status in (404, 405), (method, path, answer.status)
            tried += 1
    assert tried > 300
    for header in ("X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"):
        path = f"/api/agents/{stage.ours.ids['report']}"
        assert stage.ours.board("GET", path, headers={header: "DELETE"}).json["name"]
    for header in ("X-Original-URL", "X-Rewrite-URL", "Forwarded"):
        answer = stage.ours.boss("GET", "/health", headers={header: "/api/me"})
        assert set(answer.json) == {"status", "version"}


# ── bodies ──────────────────────────────────────────────────────────────────────────────────────

BROKEN = {
    "deep lists": b"[" * 100_000,
    "deep lists that end": b"[" * 5_000 + b"]" * 5_000,
    "deep objects": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    "a deep field": b'{"name":' + b"[" * 500 + b"]" * 500 + b"}",
    "a number without end": b'{"name": ' + b"9" * 10_000 + b"}",
    "half a character": b'{"name": "\\ud800"}',
    "no character": b'{"name": "\xff\xfe"}',
    "a zero": b'{"name": "a\\u0000b"}',
    "many keys": b"{" + b",".join(b'"k%d": 1' % one for one in range(20_000)) + b"}",
    "the same key": b'{"name": 1, "name": {"name": [1]}}',
    "not a number": b'{"name": NaN}',
    "no object": b'"text"',
}


def test_no_body_breaks_a_route(stage: Stage) -> None:
    document = stage.operator.must("GET", "/openapi.json")
    tried = 0
    for operation in operations(document):
        if operation.method not in ("POST", "PATCH", "PUT"):
            continue
        if operation.template in ("/api/companies/import", "/api/companies/{companyId}/export"):
            continue
        for name, body in BROKEN.items():
            answer = stage.ours.boss(
                operation.method,
                operation.path(stage.theirs),
                body=body,
                headers={"Content-Type": "application/json", "If-Match": '"1:a"'},
            )
            assert 400 <= answer.status < 500, (str(operation), name, answer.body)
            tried += 1
    assert tried > 600


def test_no_argument_breaks_a_tool(stage: Stage) -> None:
    with ScriptedAgent(stage.site.url, stage.ours.boss_key) as agent:
        tools = agent.tools()
        deep: Any = "x"
        for _ in range(100):
            deep = [deep]
        hostile = [deep, {"a": deep}, "\x00", "x" * 200_000, 10**30, [None] * 2_000, {}]
        for tool in tools:
            for value in hostile:
                given = dict.fromkeys(("id", "to", "name", "body", "title", "description"), value)
                result = agent._request("tools/call", {"name": tool, "arguments": given})
                text = result["content"][0]["text"]
                assert result.get("isError"), (tool, text[:200])
                assert "internal" not in text[:20], (tool, text)


def test_many_parameters_long_addresses_and_strange_paths_are_answered(stage: Stage) -> None:
    board, here = stage.ours.board, f"/api/companies/{stage.ours.company}"
    many = "&".join(f"p{one}={one}" for one in range(5_000))
    assert board("GET", f"{here}/agents?{many}").status in (200, 414, 431)
    for path in (
        f"{here}/agents?" + "limit=1&" * 3_000,
        f"{here}/agents/" + "a/" * 5_000,
        "/api/files/" + "%00" * 100 + "/content",
        "/api/files/..%2f..%2fetc%2fpasswd/content",
        "/static/..%2f..%2f..%2fsite.py",
        "/static/%2e%2e/site.py",
        "//evil.example/api/me",
        "/api/agents/%ff%fe",
        "/api/agents/%0d%0aSet-Cookie:%20x=1",
    ):
        with contextlib.suppress(ConnectionError):
            answer = board("GET", path)
            assert answer.status in (200, 400, 404, 405, 414, 422, 431), (path[:60], answer.status)
            assert "Set-Cookie" not in answer.headers
            assert b"import" not in answer.body


def test_nothing_that_is_sent_becomes_a_header(stage: Stage) -> None:
    """Line ends in whatever is repeated in headers: names, queries, cursors, tags."""
    board, here = stage.ours.board, f"/api/companies/{stage.ours.company}"
    evil = "%0d%0aX-Evil:%201"
    tried = [
        board("GET", f"{here}/agents?limit=1&x={evil}"),
        board("GET", f"{here}/agents?limit=1&cursor={evil}"),
        board("GET", f"{here}/files?limit=1&query={evil}"),
        board("GET", f"/api/agents/{evil}"),
        board("GET", f"/{evil}"),
        board("POST", f"{here}/files?description=a{evil}", body=b"x"),
        board("GET", f"/login?token=rmt_login_{evil}"),
    ]
    for answer in tried:
        assert "X-Evil" not in answer.headers, answer.headers
        assert answer.status < 500


# ── repeats, streams, tokens ────────────────────────────────────────────────────────────────────


def test_a_key_of_somebody_else_gets_nothing_of_theirs(stage: Stage) -> None:
    """Neither of another company nor of a colleague, and not for another request."""
    sent = {"to": stage.theirs.ids["report"], "body": "a private word"}
    their = f"/api/companies/{stage.theirs.company}/messages"
    key = {"Idempotency-Key": "guessable-1"}
    first = stage.theirs.board.must("POST", their, sent, headers=key)
    assert stage.theirs.board.must("POST", their, sent, headers=key) == first
    for client in (stage.ours.board, stage.ours.boss):
        answer = client("POST", their, sent, headers=key)
        assert answer.status == 404
        assert first["id"] not in answer.body.decode()
    colleague = stage.theirs.boss("POST", their, sent, headers=key)
    assert colleague.json["id"] != first["id"]
    ours = f"/api/companies/{stage.ours.company}/files"
    mine = stage.ours.board.must("POST", ours, {"description": "d", "content": "c"}, headers=key)
    assert mine["companyId"] == stage.ours.company
    other = {"description": "d", "content": "other"}
    assert stage.ours.board("POST", ours, other, headers=key).status in (409, 422)
    with ScriptedAgent(stage.site.url, stage.ours.boss_key) as agent:
        made = agent.call("kb_create", description="d", content="c", idempotency_key="guessable-1")
        assert made["id"] not in (first["id"], mine["id"])


def test_a_stream_has_the_events_of_its_company_wherever_it_resumes(stage: Stage) -> None:
    ours, theirs = stage.ours, stage.theirs
    mine = {one["id"] for one in ours.board.must("GET", company(ours.company) + "?limit=1000")}
    last = theirs.board.must("GET", company(theirs.company) + "?limit=1")[0]["seq"]
    for resume in ("0", "1", str(last - 1), str(last)):
        headers = {"Accept": "text/event-stream", "Last-Event-ID": resume}
        watcher = Client(stage.site.url, ours.board.token)
        stream = watcher.open("GET", company(ours.company), headers=headers)
        if int(resume) < 2:
            seen = server_sent(stream)
            got = {json.loads(next(seen)["data"])["id"] for _ in range(5)}
            assert got <= mine
        stream.close()
        foreign = ours.board("GET", company(theirs.company), headers=headers)
        assert foreign.status == 404
    for strange in ("-1", "1e3", "x", "9" * 30, "1;2", "\u0661"):
        headers = {"Accept": "text/event-stream", "Last-Event-ID": strange}
        with contextlib.suppress(UnicodeEncodeError):
            assert ours.board("GET", company(ours.company), headers=headers).status == 422


def company(which: str) -> str:
    return f"/api/companies/{which}/events"


def test_a_hundred_streams_of_one_agent_keep_nobody_else_waiting(stage: Stage) -> None:
    watchers = [Client(stage.site.url, stage.ours.board.token) for _ in range(100)]
    headers = {"Accept": "text/event-stream"}
    streams = [one.open("GET", company(stage.ours.company), headers=headers) for one in watchers]
    began = time.monotonic()
    for _ in range(20):
        assert stage.theirs.board("GET", "/api/me").status == 200
    assert time.monotonic() - began < SECONDS
    for stream in streams:
        stream.close()
    for one in watchers:
        one.close()


def test_tokens_are_compared_as_digests_only() -> None:
    """No comparison takes time that says how much of a token was right: none sees a token.

    A token is looked up by its digest, and whoever does not know the token cannot choose how much
    of the digest is right.
    """
    secret = ("token", "secret", "password", "cookie", "digest")
    compared = []
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare):
                sides = [ast.unparse(one) for one in (node.left, *node.comparators)]
                others = any(
                    isinstance(one, ast.Constant) for one in (node.left, *node.comparators)
                )
                in_the_database = any(".c." in one for one in sides)
                if others or in_the_database:
                    continue
                if any(one.rpartition(".")[2] in secret for one in sides):
                    compared.append(f"{path.relative_to(SOURCE)}: {ast.unparse(node)}")
    assert compared == []
    identity = (SOURCE / "services" / "identity.py").read_text()
    assert "hmac.compare_digest(identity.digest, digest)" in identity
    assert "tx.one(IDENTITY, digest=digest)" in identity


def test_the_operations_are_those_of_the_description(stage: Stage) -> None:
    """A guard for the tests above: they have something to try."""
    found = operations(stage.operator.must("GET", "/openapi.json"))
    assert len(found) > 120
    assert isinstance(found[0], Operation)
    assert len(bodies(stage.ours)) > 30
