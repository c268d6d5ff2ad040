"""What the command line does when the other side misbehaves, against a server that does."""

import http.server
import json
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.test_cli import Home, refused

ID = "01234567-89ab-7def-8123-456789abcdef"
COMPANY: dict[str, Any] = {"id": ID, "name": "Acme", "createdAt": None}


class Seen(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


class Server(http.server.ThreadingHTTPServer):
    """Records what it is asked, and answers as the test says."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[Seen] = []
        #: Requests that are answered without reading their body.
        self.unread: set[str] = set()
        self.answers: dict[str, Callable[[Handler], None]] = {
            "GET /api/companies": lambda handler: handler.reply([COMPANY])
        }

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def of(self, method: str) -> list[Seen]:
        return [seen for seen in self.seen if seen.method == method]


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        key = f"{self.command} {self.path.partition('?')[0]}"
        length = 0 if key in self.server.unread else int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.seen.append(Seen(self.command, self.path, headers, body))
        answer = self.server.answers.get(key)
        if answer is None:
            self.reply({"error": "Nothing here.", "code": "not_found", "nextStep": "Go."}, 404)
        else:
            answer(self)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = handle_any  # noqa: N815

    def reply(self, value: Any, status: int = 200, **headers: str) -> None:
        self.reply_bytes(json.dumps(value).encode(), status, **headers)

    def reply_bytes(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, text in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), text)
        self.end_headers()
        self.wfile.write(body)

    def hang_up(self) -> None:
        self.close_connection = True

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def remit(server: Server, tmp_path: Path) -> Home:
    return Home(tmp_path, {"REMIT_URL": server.url, "REMIT_TOKEN": "rmt_user_x"})


def breaks_once(server: Server, answer: Callable[[Handler], None]) -> Callable[[Handler], None]:
    def handle(handler: Handler) -> None:
        broken = [seen for seen in server.seen if seen.path == handler.path]
        if len([seen for seen in broken if seen.method == handler.command]) == 1:
            handler.hang_up()
        else:
            answer(handler)

    return handle


def test_a_change_is_sent_again_under_the_same_key(server: Server, remit: Home) -> None:
    server.answers["POST /api/companies"] = breaks_once(server, lambda it: it.reply(COMPANY, 201))
    assert remit.json("company", "create", "Acme")["name"] == "Acme"
    first, second = server.of("POST")
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    assert first.body == second.body == b'{"name": "Acme"}'
    assert first.headers["authorization"] == "Bearer rmt_user_x"

    assert remit("company", "create", "Acme").code == 0
    assert server.of("POST")[-1].headers["idempotency-key"] != first.headers["idempotency-key"]


def test_a_file_is_sent_again_from_its_beginning(server: Server, remit: Home) -> None:
    made = {"id": ID, "description": "x", "version": 1, "hash": "0" * 64, "size": 6}
    path = f"POST /api/companies/{ID}/files"
    server.answers[path] = breaks_once(server, lambda it: it.reply(made, 201))
    assert remit("kb", "create", "a b&c/ü", stdin=b"a body").code == 0
    first, second = server.of("POST")
    assert first.body == second.body == b"a body"
    assert first.path.endswith("/files?description=a%20b%26c%2F%C3%BC")
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]


def test_a_connection_that_breaks_twice_is_given_up(server: Server, remit: Home) -> None:
    server.answers["POST /api/companies"] = Handler.hang_up
    refused(remit("company", "create", "Acme"), 5, "cannot be reached")
    assert len(server.of("POST")) == 2


def test_an_answer_that_breaks_off_is_asked_for_again(server: Server, remit: Home) -> None:
    def half(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'[{"id":')
        handler.hang_up()

    full = server.answers["GET /api/companies"]
    server.answers["GET /api/companies"] = lambda it: (half, full)[len(server.seen) > 1](it)
    assert remit.json("company", "list")[0]["name"] == "Acme"


def test_a_token_whose_answer_was_lost_is_not_pretended(server: Server, remit: Home) -> None:
    lost = {"id": ID, "kind": "agent", "token": None}
    server.answers["POST /api/agents/bob/keys"] = lambda handler: handler.reply(lost, 201)
    made = remit("agent", "token", "bob")
    assert made.out == ""
    assert "Revoke it and make another" in made.err


def test_a_list_is_read_page_by_page(server: Server, remit: Home) -> None:
    def companies(handler: Handler) -> None:
        number = int(handler.path.rpartition("cursor=")[2]) if "cursor" in handler.path else 0
        entry = {**COMPANY, "id": f"0123456{number}{ID[8:]}", "name": f"N{number}"}
        link = f'</api/companies?limit=1&cursor={number + 1}>; rel="next"'
        handler.reply([entry], 200, **({"Link": link} if number < 4 else {}))

    server.answers["GET /api/companies"] = companies
    names = [company["name"] for company in remit.json("company", "list", "--limit", "0")]
    assert names == ["N0", "N1", "N2", "N3", "N4"]
    some = remit("company", "list", "--limit", "2")
    assert len(some.out.splitlines()) == 3
    assert "Only the first 2 are shown" in some.err


@pytest.mark.parametrize(
    ("status", "code"),
    [(400, 2), (401, 1), (403, 1), (404, 3), (409, 4), (412, 4), (413, 1), (422, 2), (429, 1)],
)
def test_each_status_has_its_exit_code(server: Server, remit: Home, status: int, code: int) -> None:
    problem = {"error": "No\x1b[31m.", "code": "x", "nextStep": "Do\nthis."}
    server.answers["GET /api/companies"] = lambda handler: handler.reply(problem, status)
    result = remit("company", "list")
    assert (result.code, result.out) == (code, "")
    assert result.err == "error: No\\x1b[31m.\n  next: Do this.\n"


@pytest.mark.parametrize(
    "answer",
    [
        lambda handler: handler.reply_bytes(b"<html>"),
        lambda handler: handler.reply_bytes(b"<html>", 502),
        lambda handler: handler.reply({"x": 1}, 302, Location="http://127.0.0.1:1/"),
        lambda handler: handler.reply([{"unexpected": 1}]),
        lambda handler: handler.wfile.write(b"garbage\r\n\r\n") and handler.hang_up(),
    ],
)
def test_what_is_not_an_answer_of_ours_is_still_one_sentence(
    server: Server, remit: Home, answer: Callable[[Handler], None]
) -> None:
    server.answers["GET /api/companies"] = answer
    result = remit("company", "list")
    assert result.code in (1, 5)
    assert re.fullmatch(r"error: .+\n  next: .+\n", result.err)


def test_nested_answers_become_snake_case_but_foreign_data_stays(
    server: Server, remit: Home
) -> None:
    answer = {"someKey": [{"innerKey": 1}], "adapterConfig": {"aB": 1}, "details": {"cD": 2}}
    server.answers["GET /api/agents/x"] = lambda handler: handler.reply(answer)
    assert remit.json("agent", "show", "x") == {
        "some_key": [{"inner_key": 1}],
        "adapter_config": {"aB": 1},
        "details": {"cD": 2},
    }


def test_a_dropped_stream_is_resumed_where_it_ended(server: Server, remit: Home) -> None:
    path = f"GET /api/companies/{ID}/events"

    def events(handler: Handler) -> None:
        if handler.headers["Accept"] != "text/event-stream":
            return handler.reply([{"seq": 7}])
        last = int(handler.headers["Last-Event-ID"])
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.end_headers()
        if last < 9:
            data = json.dumps({"seq": last + 1})
            handler.wfile.write(f": hello\n\nid: {last + 1}\ndata: {data}\n\n".encode())
        else:
            handler.wfile.write(b'event: end\ndata: {"error": "Over.", "code": "x"}\n\n')
        handler.hang_up()
        return None

    server.answers[path] = events
    result = remit("event", "tail", "--json")
    assert [json.loads(line)["seq"] for line in result.out.splitlines()] == [8, 9]
    assert '"error":"Over."' in result.err
    assert result.code == 1
    streams = [seen for seen in server.seen if seen.headers["accept"] == "text/event-stream"]
    assert [seen.headers["last-event-id"] for seen in streams] == ["7", "8", "9"]


def test_a_file_that_comes_only_half_is_not_taken_for_whole(server: Server, remit: Home) -> None:
    def half(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"half")
        handler.hang_up()

    server.answers[f"GET /api/files/{ID}/content"] = half
    result = remit("kb", "cat", ID)
    assert (result.code, result.out) == (5, "half")
    assert "before the end" in result.err


def test_a_refusal_in_the_middle_of_an_upload_is_read(server: Server, remit: Home) -> None:
    def refuse(handler: Handler) -> None:
        handler.reply({"error": "Too big.", "code": "too_large", "nextStep": "Less."}, 413)
        handler.hang_up()

    server.unread.add(f"POST /api/companies/{ID}/files")
    server.answers[f"POST /api/companies/{ID}/files"] = refuse
    refused(remit("kb", "create", "x", stdin=bytes(8 * 1024 * 1024)), 1, "Too big.")
