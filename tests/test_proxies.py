"""An instance behind a real nginx and a real Caddy, four ways each."""

import contextlib
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.entrypoints import serve
from remit.entrypoints.arrival import Arrival
from remit.entrypoints.http.server.asgi import build_asgi
from tests.proxy_stage import FORM, PROGRAMS, WAYS, Answer, Front, bare_proxy, instance, standing
from tests.test_cli import Home

LARGEST = 32 * 1024 * 1024
#: Long before a proxy would give up on a stream that it holds back.
AT_ONCE_SECONDS = 5.0
#: Many more wrong tokens than are answered at once when they come from one client.
MAX_TRIES = 30


@pytest.fixture(
    scope="module",
    params=[(program, way) for program in PROGRAMS for way in WAYS],
    ids=lambda given: f"{given[0]}-{given[1].name}",
)
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Front]:
    program, way = request.param
    with standing(program, way, tmp_path_factory.mktemp(program)) as stage:
        yield stage


def signed_in(front: Front) -> tuple[Answer, str]:
    """The answer to a sign-in with a fresh link, and its cookie."""
    link = front.board.must("POST", "/api/login-links")["url"]
    token = link.partition("?token=")[2]
    answer = front("POST", "/login", f"token={token}", front.form())
    return answer, answer.headers["Set-Cookie"].partition(";")[0]


def test_a_link_signs_in_at_the_address_for_others(front: Front) -> None:
    link = front.board.must("POST", "/api/login-links")["url"]
    assert link.startswith(f"{front.url}/login?token=rmt_login_")
    answer, cookie = signed_in(front)
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    secure = front.way.tls
    assert cookie.startswith("__Host-remit_session=" if secure else "remit_session=")
    assert ("Secure" in answer.headers["Set-Cookie"]) is secure
    page = front("GET", "/", headers={"Cookie": cookie})
    assert page.status == 200
    assert b"My company" in page.body
    for other in page.headers.get_all("Set-Cookie", []):
        assert ("Secure" in other) is secure
    if secure:  # of a neighbour, who can plant a cookie without the prefix
        planted = {"Cookie": cookie.removeprefix("__Host-")}
        assert b"My company" not in front("GET", "/", headers=planted).body


def test_a_form_is_taken_from_our_own_pages_alone(front: Front) -> None:
    _, cookie = signed_in(front)
    # An old browser over TLS, and every browser without, sends Origin alone.
    own = {"Cookie": cookie, "Origin": front.url, "Content-Type": FORM}
    for wrong in (
        {**own, "Origin": "https://evil.example"},
        {**own, "Origin": front.url.replace("localhost", "evil.localhost")},
        {**own, "Sec-Fetch-Site": "cross-site"},
        {name: text for name, text in own.items() if name != "Origin"},
    ):
        assert front("POST", "/logout", "", wrong).status == 403, wrong
    if front.way.tls:
        plain = {**own, "Origin": front.url.replace("https:", "http:")}
        assert front("POST", "/logout", "", plain).status == 403
    assert front("POST", "/logout", "", own).status == 303
    assert b"My company" not in front("GET", "/", headers={"Cookie": cookie}).body


def test_a_foreign_name_is_refused(front: Front) -> None:
    answer = front("GET", "/api/me", headers=front.as_board(Host="evil.example"))
    if not front.way.documented and front.program == "nginx":
        assert answer.status == 200  # the name does not get past the proxy
    elif front.program == "caddy":
        assert (answer.status, answer.body) == (200, b"")  # Caddy has no site of that name
    else:
        assert (answer.status, json.loads(answer.body)["code"]) == (421, "wrong_host")


def test_events_come_at_once(front: Front) -> None:
    company = front.board.must("GET", "/api/companies")[0]["id"]
    here = f"/api/companies/{company}"
    with contextlib.closing(front.connection()) as connection:
        accept = front.as_board(Accept="text/event-stream")
        connection.request("GET", f"{here}/events", headers=accept)
        stream = connection.getresponse()
        assert stream.status == 200
        began = time.monotonic()
        front.board.must("POST", f"{here}/files", {"description": "Told", "content": "Now."})
        while not stream.readline().startswith(b"data:"):
            pass
        assert time.monotonic() - began < AT_ONCE_SECONDS


def test_the_largest_file_passes(front: Front) -> None:
    company = front.board.must("GET", "/api/companies")[0]["id"]
    path = f"/api/companies/{company}/files?description=Large"
    headers = front.as_board(**{"Content-Type": "application/octet-stream"})
    answer = front("POST", path, b"a" * LARGEST, headers)
    assert answer.status == 201, answer.body[:300]
    assert json.loads(answer.body)["size"] == LARGEST


def test_a_tool_is_called(front: Front) -> None:
    company = front.board.must("GET", "/api/companies")[0]["id"]
    agent = front.board.must("GET", f"/api/companies/{company}/agents")[0]["id"]
    key = front.board.must("POST", f"/api/agents/{agent}/keys", {"name": "elsewhere"})["token"]
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    params = {"name": "mail_inbox", "arguments": {}}
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = front("POST", "/mcp", json.dumps(call), {**headers, "Origin": front.url})
    assert answer.status == 200, answer.body
    foreign = front("POST", "/mcp", json.dumps(call), {**headers, "Origin": "https://evil.example"})
    assert (foreign.status, json.loads(foreign.body)["code"]) == (403, "csrf")
    assert json.loads(answer.body)["result"].get("isError") is not True, answer.body


def test_the_command_line_works_from_elsewhere(front: Front, tmp_path: Path) -> None:
    token = {"REMIT_TOKEN": str(front.board.token)}
    trusting = Home(tmp_path, {**token, "SSL_CERT_FILE": str(front.certificate)})
    names = [company["name"] for company in trusting.json("--url", front.url, "company", "list")]
    assert names == ["My company"]
    link = trusting("--url", front.url, "open").out
    assert link.startswith(f"{front.url}/login?token=")
    if front.way.tls:
        strange = Home(tmp_path, token)("--url", front.url, "company", "list")
        assert strange.code == 5
        assert "is not trusted" in strange.err
        assert "SSL_CERT_FILE" in strange.err


def test_a_backup_is_sent_over_tls_that_a_believed_proxy_vouches_for(front: Front) -> None:
    name = front.board.must("POST", "/api/instance/backups")["name"]
    answer = front("GET", f"/api/instance/backups/{name}", headers=front.as_board())
    # nginx says nothing about TLS unless it is told to; Caddy does.
    vouched = front.way.name == "kept" or (front.way.name, front.program) == ("replaced", "caddy")
    _, cookie = signed_in(front)
    page = front("GET", "/instance", headers={"Cookie": cookie}).body.decode()
    doctor = json.loads(front("GET", "/api/instance/doctor", headers=front.as_board()).body)
    told = next(finding for finding in doctor if finding["check"] == "this request")
    assert (f'href="/instance/backups/{name}"' in page) is vouched
    assert told["state"] == ("ok" if vouched else "warn")
    if vouched:
        assert answer.status == 200
        assert int(answer.headers["Content-Length"]) == len(answer.body) > 10_000
        return
    assert answer.status == 409
    step = json.loads(answer.body)["nextStep"]
    expected = {
        "replaced": "X-Forwarded-Proto",
        "plain": "Use https.",
        "unbelieved": "REMIT_PROXIES",
    }
    assert expected[front.way.name] in step
    assert expected[front.way.name] in told["nextStep"]
    front.board.must("DELETE", f"/api/instance/backups/{name}")


def test_failed_sign_ins_count_by_client(front: Front) -> None:
    def tries(source: str, **more: str) -> float:
        """The seconds until a wrong token is refused."""
        began = time.monotonic()
        assert front("POST", "/login", "token=rmt_user_x", front.form(**more), source).status == 401
        return time.monotonic() - began

    # Whoever guesses names another address each time; the proxy adds the true one. The first try
    # that is held back is the last: those after it would wait for longer and longer.
    waits = [0.0]
    while len(waits) < MAX_TRIES and waits[-1] < 1.0:
        waits.append(tries("127.0.0.2", **{"X-Forwarded-For": f"192.0.2.{len(waits)}"}))
    if front.way.proxies is None:
        # The proxy is one client for all.
        assert min(waits[-1], tries("127.0.0.3")) > 1.0
    elif front.way.documented or front.program == "caddy":
        assert waits[-1] > 1.0 > tries("127.0.0.3")
    else:
        # nginx passes on what the client wrote, unless it is told to add the address.
        assert waits[-1] < 1.0


# ── a proxy that does not show ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("proxies", ["", "10.0.0.0/8", "none", "127.0.0.1"])
def test_a_proxy_by_default_gets_no_backup(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, proxies: str
) -> None:
    """nginx by default sends the name of the instance for that of the client, and says nothing
    about either: on this machine its requests look like those of a person there."""
    with (
        instance(tmp_path / "home", {"REMIT_PROXIES": proxies}) as board,
        bare_proxy(program, board.url, tmp_path) as url,
    ):
        name = board.must("POST", "/api/instance/backups")["name"]
        path = f"/api/instance/backups/{name}"
        through = board.as_(board.token)
        through.url = url
        through.__post_init__()
        refused = through("GET", path)
        assert refused.status == 409, refused.body[:100]
        assert "REMIT_PROXIES" in refused.json["nextStep"] or proxies == "127.0.0.1"
        # On the machine itself it is a setting that decides.
        here = board("GET", path)
        assert here.status == (200 if proxies in ("10.0.0.0/8", "none") else 409)

        # Without the rule the same request takes everything away, in plain text.
        monkeypatch.setattr(Arrival, "doubt", None)
        leaked = through("GET", path)
        assert (leaked.status, len(leaked.body) > 10_000) == (200, True)


def test_a_proxy_with_its_usual_limit_is_named_for_what_it_refuses(tmp_path: Path) -> None:
    with (
        instance(tmp_path / "home", {}) as board,
        bare_proxy("nginx", board.url, tmp_path, limit="1m") as url,
    ):
        remit = Home(tmp_path / "home", {"REMIT_TOKEN": str(board.token)})
        large = remit("--url", url, "kb", "create", "Large", stdin=b"a" * 3_000_000)
        assert large.code == 1
        assert "The proxy in front of the instance refuses what is this large." in large.err
        assert "client_max_body_size 40m" in large.err


def test_a_proxy_without_an_instance_is_named(tmp_path: Path) -> None:
    with bare_proxy("nginx", "http://127.0.0.1:1", tmp_path) as url:
        away = Home(tmp_path / "home", {"REMIT_TOKEN": "rmt_user_x"})(
            "--url", url, "company", "list"
        )
        assert away.code == 5
        assert "the instance behind it does not (status 502)" in away.err


def test_an_address_of_the_machine_opens_every_door_of_an_instance_bound_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a container; nothing is bound to more than loopback here."""

    def everywhere(app: Any, *, host: str, **more: Any) -> Any:
        assert host == "127.0.0.1"
        return build_asgi(app, host="0.0.0.0", **more)  # noqa: S104

    monkeypatch.setattr(serve, "build_asgi", everywhere)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    accept = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    with instance(tmp_path / "home", {"REMIT_URL": "http://remit:8420"}) as board:
        for host, known in (
            ("192.0.2.7:8420", True),
            ("[2001:db8::1]:8420", True),
            ("remit:8420", True),
            ("REMIT:8420", True),
            ("evil.example", False),
        ):
            named = {**accept, "Host": host}
            assert board("GET", "/api/me", headers=named).status == (200 if known else 421), host
            tools = board("POST", "/mcp", body=json.dumps(call), headers=named)
            assert tools.status == (200 if known else 421), (host, tools.body)
