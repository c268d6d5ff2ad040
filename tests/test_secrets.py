"""Secrets: who says where they are, where they are looked for, and that nobody is shown one."""

import asyncio
import base64
import json
import os
import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from remit.clock import SystemClock
from remit.errors import BadInput, Conflict, NotFound, Refused, RemitError
from remit.model.connections.secret import Secret, filled, named_in, parse_template
from remit.runtime.secrets import secret_sources
from remit.runtime.secrets.values import Vault
from remit.services.connections import mcp_servers, secrets
from remit.services.hiring import hiring
from remit.services.identity import Caller, as_system
from remit.services.people import companies
from remit.services.record import events
from remit.services.redaction import REMOVED, Known
from remit.services.rights import grants
from tests.company import Answer, Company, keyed, opened
from tests.governance import approve, hire, propose
from tests.mailing import send
from tests.working import at_work, listed, log_of, over, program

VALUE = "correct-horse-battery-staple-4711"


@pytest.fixture
def clock() -> SystemClock:
    return SystemClock()


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Company]:
    """On one database, for what does not depend on it."""
    with opened(f"sqlite:///{tmp_path}/remit.db", tmp_path / "home") as company:
        yield company


def put(company: Company, name: str = "key", by: Caller | None = None, **where: Any) -> Answer:
    where = where or {"source": "env", "place": "A_VARIABLE"}
    return company.call(by or company.board, secrets.put, company=company.id, name=name, **where)


def value_of(company: Company, name: str = "key", vault: Vault | None = None) -> str:
    return company.wait((vault or company.app.vault).value(company.id, name))


def problem(company: Company, name: str = "key") -> str:
    with pytest.raises(RemitError) as caught:
        value_of(company, name)
    assert caught.value.reason == "secret"
    return caught.value.sentence


def private(path: Path, text: str = VALUE, mode: int = 0o600) -> str:
    path.write_text(text)
    path.chmod(mode)
    return str(path)


# ── who says where they are ─────────────────────────────────────────────────────────────────────


def test_an_operator_on_the_board_sets_moves_and_removes_a_secret(company: Company) -> None:
    made = put(company)
    assert (made["name"], made["source"], made["version"]) == ("key", "env", 1)
    moved = put(company, source="file", place="/etc/key")
    assert (moved["id"], moved["version"], moved["place"]) == (made["id"], 2, "/etc/key")
    found = company.call(company.board, secrets.listing, company=company.id)
    assert [(one.name, one.place) for one in found] == [("key", "/etc/key")]
    company.call(company.board, secrets.remove, company=company.id, name="key")
    assert company.call(company.board, secrets.listing, company=company.id) == []
    again = put(company)
    assert again["id"] != made["id"]
    kept = company.call(company.board, events.listing, company=company.id, limit=100)
    assert [one["action"] for one in kept if one["action"].startswith("secret.")][::-1] == [
        "secret.set",
        "secret.set",
        "secret.remove",
        "secret.set",
    ]


def test_nobody_else_sets_or_removes_one_and_only_the_board_sees_where_they_are(
    company: Company,
) -> None:
    put(company)
    for who, reason in (
        (company.user("member"), "not_operator"),
        (company.user("observer", "observer"), "not_operator"),
        (company.user("part", scope="ceo"), "not_operator"),
        (company.ceo.caller, "board_only"),
    ):
        with pytest.raises(Refused) as caught:
            put(company, by=who)
        assert caught.value.reason == reason
        with pytest.raises(Refused) as caught:
            company.call(who, secrets.remove, company=company.id, name="key")
        assert caught.value.reason == reason
    assert company.call(company.token_of("member"), secrets.listing, company=company.id)
    for who in (company.token_of("observer"), company.token_of("part"), company.ceo.caller):
        with pytest.raises(Refused):
            company.call(who, secrets.listing, company=company.id)
    neighbour = company.second_company()
    with pytest.raises(NotFound):
        company.call(neighbour.board, secrets.listing, company=company.id)
    with pytest.raises(NotFound):
        company.call(neighbour.board, secrets.may_change, company=company.id, name="key")


def test_a_secret_belongs_to_one_company(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_VARIABLE", VALUE)
    put(company)
    neighbour = company.second_company()
    assert value_of(company) == VALUE
    with pytest.raises(NotFound):
        company.wait(company.app.vault.value(neighbour.id, "key"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": "Key"},
        {"name": ""},
        {"name": "a" * 65},
        {"name": 7},
        {"source": "no such"},
        {"source": None},
        {"place": ""},
        {"place": "A VARIABLE"},
        {"place": "A\0"},
        {"place": ["a"]},
        {"source": "file", "place": "relative/path"},
        {"source": "file", "place": "/" + "x" * 5000},
        {"source": "command", "place": "op read it"},
        {"source": "command", "place": []},
        {"source": "command", "place": ["a", 7]},
        {"source": "command", "place": [" "]},
        {"source": "command", "place": ["a", "\udc00"]},
        {"source": "command", "place": ["a"] * 65},
    ],
)
def test_what_makes_no_sense_is_refused(here: Company, wrong: dict[str, Any]) -> None:
    given = {"name": "key", "source": "env", "place": "A_VARIABLE", **wrong}
    with pytest.raises(BadInput):
        here.call(here.board, secrets.put, company=here.id, **given)


def test_a_secret_that_a_server_needs_is_not_removed(here: Company) -> None:
    put(here)
    here.call(
        here.board,
        mcp_servers.add,
        company=here.id,
        name="up",
        definition={"command": ["true"], "secret_env": {"TOKEN": "key"}},
    )
    with pytest.raises(Conflict, match="up uses it"):
        here.call(here.board, secrets.remove, company=here.id, name="key")


def test_a_repeated_request_registers_once(here: Company) -> None:
    who = keyed(here.board, "k1")
    first = put(here, by=who)
    assert put(here, by=who) == first


# ── where they are looked for ───────────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-65")
def test_values_are_looked_up_once_at_the_start_and_kept_in_memory_only(
    company: Company, tmp_path: Path
) -> None:
    calls = tmp_path / "calls"
    script = f"echo x >> {calls}; cat {private(tmp_path / 'value')}"
    put(company, source="command", place=["/bin/sh", "-c", script])
    program(company, "dev", "true")
    at_work(company, calls.exists)  # a worker that has nothing to do
    for _ in range(3):
        assert value_of(company) == VALUE
    (tmp_path / "value").write_text("another-value-entirely")
    assert value_of(company) == VALUE
    assert calls.read_text() == "x\n"
    fresh = Vault(company.app.gate, company.app.settings.secrets)  # as after a restart
    assert value_of(company, vault=fresh) == "another-value-entirely"
    put(company, source="command", place=["/bin/sh", "-c", script])  # the same, set again
    assert value_of(company) == "another-value-entirely"
    assert calls.read_text() == "x\n" * 3
    for file in company.app.settings.home.rglob("*"):
        if file.is_file():
            assert VALUE.encode() not in file.read_bytes(), file
    assert VALUE not in str(company.sql("SELECT * FROM secrets"))
    assert VALUE not in str(company.sql("SELECT * FROM events"))


def test_many_who_need_one_at_once_look_it_up_once(here: Company, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    put(
        here,
        source="command",
        place=["/bin/sh", "-c", f"echo x >> {calls}; sleep 0.2; echo {VALUE}"],
    )
    found = here.together([here.app.vault.value(here.id, "key") for _ in range(20)])
    assert found == [VALUE] * 20
    assert calls.read_text() == "x\n"


def test_a_value_that_was_not_to_be_had_is_looked_for_again(
    here: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(here)
    assert "A_VARIABLE is not set" in problem(here)
    monkeypatch.setenv("A_VARIABLE", VALUE)
    assert value_of(here) == VALUE
    here.call(here.board, secrets.remove, company=here.id, name="key")
    assert "no secret 'key'" in problem(here)


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o660, 0o777, 0o602])
def test_a_file_that_others_can_read_or_write_is_refused(
    here: Company, tmp_path: Path, mode: int
) -> None:
    put(here, source="file", place=private(tmp_path / "f", mode=mode))
    assert "by others" in problem(here)


def test_a_file_has_to_be_a_file_of_our_own(here: Company, tmp_path: Path) -> None:
    private(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    os.mkfifo(tmp_path / "pipe", 0o600)
    for name, why in (
        ("missing", "cannot be read"),
        ("link", "cannot be read"),
        ("pipe", "not an ordinary file"),
        (".", "not an ordinary file"),
    ):
        put(here, source="file", place=str(tmp_path / name))
        assert why in problem(here)
    if os.geteuid() == 0:
        os.chown(tmp_path / "real", 12345, 12345)
        put(here, source="file", place=str(tmp_path / "real"))
        assert "another user" in problem(here)


@pytest.mark.parametrize("mode", [0o600, 0o400])
def test_a_private_file_is_read_without_the_end_of_its_line(
    here: Company, tmp_path: Path, mode: int
) -> None:
    put(here, source="file", place=private(tmp_path / "f", f"{VALUE}\n", mode=mode))
    assert value_of(here) == VALUE


@pytest.mark.parametrize("raw", [b"", b"short", b"     \n  ", b"\xff\xfe\x00secret", b"x" * 70_000])
def test_what_cannot_be_a_secret_is_none(here: Company, tmp_path: Path, raw: bytes) -> None:
    (tmp_path / "f").write_bytes(raw)
    (tmp_path / "f").chmod(0o600)
    put(here, source="file", place=str(tmp_path / "f"))
    said = problem(here)
    assert "short" not in said.replace("shorter", "")


def test_a_command_is_started_without_a_shell_and_without_our_own_variables(
    here: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REMIT_DATABASE_URL", "postgresql://me:private@db/remit")
    monkeypatch.setenv("OP_SERVICE_ACCOUNT_TOKEN", "needed-to-ask")
    show = "import os; print(sorted(k for k in os.environ if k[:3] in ('REM', 'OP_')))"
    put(here, source="command", place=[sys.executable, "-c", show])
    assert value_of(here) == "['OP_SERVICE_ACCOUNT_TOKEN']"
    put(here, source="command", place=["/bin/echo", "$(id); `id` | cat"])
    assert value_of(here) == "$(id); `id` | cat"


def test_a_command_that_fails_hangs_or_talks_too_much_is_ended(
    here: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secret_sources, "COMMAND_SECONDS", 1.0)
    put(here, source="command", place=["/bin/sh", "-c", f"echo {VALUE} >&2; exit 7"])
    assert problem(here) == "'/bin/sh' ended with 7."
    put(here, source="command", place=["/no/such/program"])
    assert problem(here) == "'/no/such/program' ended with 127."
    put(here, source="command", place=["/bin/sh", "-c", "sleep 60 & sleep 60"])
    assert "took longer" in problem(here)
    put(here, source="command", place=["/bin/sh", "-c", "yes"])
    assert "not text of" in problem(here)


def test_a_plugin_adds_a_source(here: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        EntryPoint("a", "tests.test_secrets:Safe", secret_sources.GROUP),
        EntryPoint("b", "tests.test_secrets:Broken", secret_sources.GROUP),
        EntryPoint("c", "tests.no_such_module:X", secret_sources.GROUP),
    ]
    monkeypatch.setattr(secret_sources, "entry_points", lambda group: found)
    here.app.vault.check_source("safe")
    with pytest.raises(BadInput, match=r"no source .broken."):
        here.app.vault.check_source("broken")
    put(here, source="safe", place="drawer")
    assert value_of(here) == "what is in drawer"
    put(here, source="safe", place="fail")
    assert problem(here) == "The source 'safe' failed (RuntimeError)."


class Safe:
    source = "safe"

    async def read(self, place: str) -> str:
        if place == "fail":
            raise RuntimeError(VALUE)
        return f"what is in {place}"


class Broken:
    source = "env"

    def read(self, place: str) -> str:
        return place


# ── values that the instance keeps ──────────────────────────────────────────────────────────────


@pytest.mark.requirement("AG-65")
def test_a_value_that_is_given_is_kept_in_a_file_that_nobody_else_reads(here: Company) -> None:
    home = here.app.settings.home
    place = home / here.wait(here.app.vault.keep(here.id, f"{VALUE}\n"))
    assert place.parent == here.app.settings.home / "secrets" / here.id
    assert place.read_text() == VALUE
    assert place.stat().st_mode & 0o777 == 0o600
    assert place.parent.stat().st_mode & 0o777 == 0o700
    put(here, source="file", place=str(place))
    assert value_of(here) == VALUE
    here.wait(here.app.vault.discard("/etc/passwd"))  # not ours
    assert Path("/etc/passwd").exists()
    here.wait(here.app.vault.discard(str(place)))
    assert not place.exists()
    for wrong in ("short", "x" * 100_000, "nul\0nul", "half\udc00half", 7, None):
        with pytest.raises(BadInput):
            here.wait(here.app.vault.keep(here.id, wrong))


@pytest.mark.parametrize("stored", ["relative", "absolute, as before 0.2"])
def test_a_home_that_is_moved_keeps_its_secrets(stored: str, here: Company, tmp_path: Path) -> None:
    before = here.app.settings.home
    here.wait(here.app.vault.put(here.board, company=here.id, name="key", value=VALUE))
    (place,) = (one.place for one in here.call(as_system(), secrets.registered))
    assert not place.startswith("/")
    if stored != "relative":
        here.sql("UPDATE secrets SET place = ?", str(before / place))
    after = tmp_path / "moved"
    shutil.copytree(before / "secrets", after / "secrets")
    moved = Vault(here.app.gate, after / "secrets")
    # The old home is still there, with another value: the new one does not read that.
    (before / place).write_text("a value of the old home")
    assert here.wait(moved.value(here.id, "key")) == VALUE
    (before / place).unlink()
    other = Vault(here.app.gate, after / "secrets")
    assert here.wait(other.value(here.id, "key")) == VALUE
    here.wait(other.remove(here.board, company=here.id, name="key"))
    assert list((after / "secrets").glob("*/*")) == []


@pytest.mark.parametrize("place", ["/x/secrets/../board.token", "/x/secrets/a/b", "secrets/a/b"])
def test_a_place_that_only_looks_like_a_stored_value_is_left_alone(
    place: str, here: Company
) -> None:
    assert not here.app.vault.keeps(place)


# ── what agents are given ───────────────────────────────────────────────────────────────────────


def test_a_run_whose_secret_is_missing_ends_with_that_reason(here: Company) -> None:
    config = {"url": "http://127.0.0.1:9", "secretRef": "nothing"}
    dev = here.agent("dev", adapter_type="http", adapter_config=config, perpetual=True)
    send(here, here.board, "agent:dev", "go")
    at_work(here, over(here, dev))
    (run,) = listed(here, dev)[-1:]
    assert (run["status"], run["exit_reason"]) == ("failed", "secret")
    assert "no secret 'nothing'" in run["error"]


@pytest.mark.requirement("AG-66")
def test_what_a_run_prints_or_says_last_is_without_its_secrets(
    here: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_VARIABLE", VALUE)
    put(here)
    here.call(
        here.board,
        mcp_servers.add,
        company=here.id,
        name="up",
        definition={"command": ["true"], "secret_env": {"THEIRS": "key"}, "inject": True},
    )
    script = (
        'echo "$THEIRS"; echo "$THEIRS" | base64; echo "$THEIRS" >&2; echo "my $THEIRS"; exit 3'
    )
    dev = program(here, "dev", script)
    send(here, here.board, "agent:dev", "go")
    at_work(here, over(here, dev))
    assert "my \n" in log_of(here, listed(here, dev)[-1])  # it is not given before it is granted
    here.call(
        here.board,
        grants.give,
        company=here.id,
        to=dev.id,
        resource="mcp_server:up",
        level="use",
    )
    send(here, here.board, "agent:dev", "go")
    at_work(here, over(here, dev, 2))
    run = listed(here, dev)[0]
    said = log_of(here, run)
    assert f"my {REMOVED}" in said
    assert VALUE not in said + str(run)
    assert "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5" not in said


@pytest.mark.parametrize("by_hire", [True, False])
def test_an_agent_that_names_a_secret_for_another_waits_for_a_person_whatever_the_company_says(
    company: Company, by_hire: bool
) -> None:
    company.call(
        company.board,
        companies.change,
        company=company.id,
        require_approval_for_config_changes=False,
    )
    config = {"url": "https://evil.example", "secretRef": "key"}
    if by_hire:
        made = hire(company, company.ceo.caller, "dev", adapter_type="http", adapter_config=config)
        assert made["agent"]["status"] == "pending_approval"
        approve(company, made["approval"])
        plain = hire(company, company.ceo.caller, "free")
        assert plain["approval"] is None
        return
    dev = company.agent("dev", adapter_type="http", adapter_config={"url": "https://good.example"})
    asked = propose(company, company.ceo.caller, dev.id, adapterConfig=config)
    assert asked["status"] == "pending"
    approve(company, asked)
    # Where it goes is part of what was approved.
    elsewhere = {**config, "url": "https://worse.example"}
    assert propose(company, company.ceo.caller, dev.id, adapterConfig=elsewhere)
    assert propose(company, company.ceo.caller, dev.id, prompt="Be kind.") is None


def test_the_board_names_a_secret_without_asking(here: Company) -> None:
    config = {"url": "https://good.example", "secretRef": "key"}
    made = here.call(
        here.board,
        hiring.hire,
        company=here.id,
        name="dev",
        reports_to="ceo",
        adapter_type="http",
        adapter_config=config,
    )
    assert made["approval"] is None


# ── texts with secrets in them ──────────────────────────────────────────────────────────────────


def test_a_text_names_secrets_in_braces() -> None:
    assert parse_template("key", "f") == "{key}"
    text = parse_template("Basic {user}:{key}", "f")
    assert named_in([text, "{key}"]) == ["user", "key"]
    assert filled(text, {"user": "u{key}", "key": "k"}) == "Basic u{key}:k"
    for wrong in ("", "A B", "{", "{}", "{A}", "a{b}c}", "{{b}}", 7, "a\nb", "{b}" + "x" * 5000):
        with pytest.raises(BadInput):
            parse_template(wrong, "f")


@pytest.mark.parametrize(
    "written",
    [
        "it is {0}!",
        '{{"key": "{1}"}}',
        "https://x/?k={2}",
        "{3}",
        "{4}",
    ],
)
def test_a_known_value_is_taken_out_however_it_is_written(written: str) -> None:
    value = 'pass"word\\with/all+of it'
    raw = value.encode()
    text = written.format(
        value,
        json.dumps(value)[1:-1],
        quote(value, safe=""),
        base64.b64encode(b"user:" + raw + b"\n").decode(),
        raw.hex(),
    )
    found = Known([value]).out_of(text)
    assert REMOVED in found
    for part in ("pass", "all+of", quote("with/all", safe="")):
        assert part not in found
    assert Known([value]).out_of_all({value: [value, 1, None]}) == {REMOVED: [REMOVED, 1, None]}


def test_keys_of_several_lines_are_taken_out_line_by_line() -> None:
    pem = "-----BEGIN KEY-----\nabcdefghijkl\nmnopqrstuvwx\n-----END KEY-----\n"
    assert Known([pem]).out_of("x mnopqrstuvwx y") == f"x {REMOVED} y"
    assert not Known(["short"])


def test_where_a_secret_is_found_is_all_that_its_row_can_say() -> None:
    assert "value" not in Secret.__dataclass_fields__


def test_looking_up_does_not_end_when_one_of_many_stops_waiting(
    here: Company,
) -> None:
    put(here, source="command", place=["/bin/sh", "-c", f"sleep 0.3; echo {VALUE}"])

    async def story() -> str:
        impatient = asyncio.create_task(here.app.vault.value(here.id, "key"))
        patient = asyncio.create_task(here.app.vault.value(here.id, "key"))
        await asyncio.sleep(0.05)
        impatient.cancel()
        return await patient

    assert here.wait(story()) == VALUE
