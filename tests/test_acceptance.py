"""A company from outside: halted until a person has seen what it would do here."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from remit.clock import DAY, HOUR
from remit.errors import Conflict
from remit.runtime.runs.worker import Worker
from remit.services.acceptance import acceptance, machine_rights
from remit.services.changes import watches
from remit.services.chat import receivers
from remit.services.connections import (
    bindings,
    folders,
    notice_planning,
    notices,
    repo_checks,
    repos,
    secrets,
)
from remit.services.execution import runs
from remit.services.hiring import configuration
from remit.services.identity import Caller, as_system
from remit.services.messaging import mail, questions, schedules
from remit.services.organisation import agents, halts, permissions
from remit.services.people import users
from remit.services.record import events
from remit.services.redaction import REMOVED
from remit.services.screens import needs_you
from remit.testing.clock import A_DAY, VirtualClock
from tests import change_stage
from tests.company import Answer, Company, keyed, opened
from tests.governance import empower
from tests.organisation import refusal
from tests.statement_stage import a_call
from tests.test_archive import accept, export, import_, packed, unpacked
from tests.working import at_work, looked_again, over, program, with_worker

pytestmark = pytest.mark.requirement("FX-81")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(A_DAY)


class Handed:
    """A company as somebody hands it over: it wants to leave the sandbox, at once and later."""

    def __init__(self, company: Company, marks: Path) -> None:
        self.id, self.outside = company.id, marks / "outside"
        touch = f"touch {self.outside} 2>/dev/null; true"
        self.program = program(company, "program", touch, config={"sandbox": "full", "cwd": "/"})
        self.worker = program(company, "worker", "true")
        board: Any = {"company": company.id}
        company.call(
            company.board,
            permissions.change_policy,
            level="standard",
            settings={"allow": ["full_access", "approval.decide"]},
        )
        for name in ("program", "worker"):
            about: Any = {"to": f"agent:{name}", "body": "Begin."}
            company.call(company.board, mail.send, **about, subject=f"To the {name}")
            company.call(
                company.board,
                schedules.add,
                agent=name,
                to=f"agent:{name}",
                subject=f"Hourly {name}",
                body="Again.",
                cron="0 * * * *",
            )
        hook: Any = {"url": "https://chat.example.org/hook"}
        company.call(
            company.board, bindings.add, **board, agent="worker", kind="webhook", config=hook
        )
        company.call(company.ceo.caller, questions.ask, question="Which colour?")
        self.archive = export(company)


@pytest.fixture
def handed(tmp_path: Path, clock: VirtualClock) -> Handed:
    home = tmp_path / "theirs"
    with opened(f"sqlite:///{home}/remit.db", home, clock) as company:
        return Handed(company, tmp_path)


@pytest.fixture
def here(tmp_path: Path, clock: VirtualClock) -> Iterator[Company]:
    home = tmp_path / "ours"
    with opened(f"sqlite:///{home}/remit.db", home, clock) as company:
        yield company


def runs_of(company: Company, which: str) -> int:
    return int(company.sql("SELECT count(*) FROM runs WHERE company_id = ?", which)[0][0])


def shown(company: Company, which: str) -> Any:
    return company.call(company.board, acceptance.show, company=which)


def texts(view: Answer, kind: str) -> set[tuple[str, str]]:
    return {(one["of"], one["text"]) for one in view["entries"] if one["kind"] == kind}


def imported(here: Company, archive: bytes, **more: Any) -> Any:
    return import_(here, archive, name="Theirs", **more)


def test_nothing_of_an_imported_company_starts_until_it_is_accepted(
    here: Company, handed: Handed, clock: VirtualClock
) -> None:
    answer = imported(here, handed.archive)
    assert answer["awaits_acceptance"] is True
    # Every time that could be waited for has passed: reviews, schedules, deferred mail.
    clock.advance(2 * DAY)

    async def look(worker: Worker) -> None:
        for _ in range(3):
            await looked_again(worker)

    with_worker(here, look)
    assert runs_of(here, handed.id) == 0
    assert not handed.outside.exists()
    assert here.sql("SELECT last_at FROM schedules WHERE company_id = ?", handed.id) == [
        (None,),
        (None,),
    ]
    about: Any = {"run": here.app.ids.new(), "workspace": None}
    assert refusal(here, here.board, runs.start, agent=handed.worker.id, **about) == "stopped"

    # The same company does run once somebody has accepted it, so it would have.
    accept(here, handed.id)
    at_work(here, over(here, handed.worker))
    at_work(here, over(here, handed.program))
    assert not handed.outside.exists()  # what was left out does not come back with it


def test_the_company_leaves_the_sandbox_where_it_was_made(
    tmp_path: Path, clock: VirtualClock
) -> None:
    """A control: its program does what the import must not let it do."""
    home = tmp_path / "theirs"
    with opened(f"sqlite:///{home}/remit.db", home, clock) as company:
        handed = Handed(company, tmp_path)
        at_work(company, over(company, handed.program))
        assert handed.outside.exists()


def test_rights_over_the_machine_are_left_out_and_named(here: Company, handed: Handed) -> None:
    before = json.loads(
        b"[" + unpacked(handed.archive)["grants.jsonl"].replace(b"\n", b",") + b"0]"
    )
    assert "full_access" in {grant["resource"] for grant in before[:-1]}  # the archive is faithful
    answer = imported(here, handed.archive)
    left_out = "\n".join(answer["left_out"])
    for named in (
        'sandbox "full" of program',
        'cwd "/" of program',
        "`remit agent set program adapterConfig.sandbox=full`",
        "`remit agent set program adapterConfig.cwd=/`",
        "full_access of program",
        "remit grant give program full_access use",
        "full_access of the level standard",
    ):
        assert named in left_out
    assert shown(here, handed.id)["left_out"] == answer["left_out"]
    # The root agent has no settings, and no line without a name stands for that.
    assert not [one for one in shown(here, handed.id)["entries"] if one["text"].startswith(":")]
    assert here.sql("SELECT count(*) FROM grants WHERE resource_id = 'full_access'") == [(0,)]
    policy = here.call(here.board, permissions.show_policy, company=handed.id)
    assert policy["levels"]["standard"]["allow"] == ["approval.decide"]
    # Nor does it come back with an earlier revision, and the agent can be configured.
    accept(here, handed.id)
    for config in here.sql("SELECT config FROM config_revisions"):
        assert "full" not in config[0]
    here.call(here.board, configuration.rollback, agent=handed.program.id, revision="1")
    # A denial gives nothing and stays.
    here.call(here.board, configuration.change, agent=handed.program.id, changes={"title": "Ours"})


def test_settings_that_hold_outside_of_the_sandbox_do_not_travel(
    here: Company, tmp_path: Path, clock: VirtualClock
) -> None:
    home = tmp_path / "theirs"
    configs: dict[str, dict[str, Any]] = {
        "claude": {"sandbox": "full", "permissionMode": "bypassPermissions", "model": "m"},
        "codex": {"sandbox": "full", "codexSandbox": "danger-full-access", "model": "m"},
        "process": {"sandbox": "full", "command": "/bin/true", "cwd": "/srv"},
        "llm": {"model": "m", "provider": "openai"},
    }
    with opened(f"sqlite:///{home}/remit.db", home, clock) as company:
        for kind, config in configs.items():
            company.agent(f"of-{kind}", adapter_type=kind, adapter_config=config)
        denied = company.agent("denied")
        empower(company, denied, "full_access", mode="deny")
        which, archive = company.id, export(company)
    answer = imported(here, archive)
    kept = {
        name: json.loads(config)
        for name, config in here.sql(
            "SELECT name, adapter_config FROM agents WHERE company_id = ?", which
        )
    }
    assert kept["of-claude"] == {"model": "m"}
    assert kept["of-codex"] == {"model": "m"}
    assert kept["of-process"] == {"command": "/bin/true"}
    assert kept["of-llm"] == configs["llm"]
    assert len(answer["left_out"]) == 6
    assert here.sql("SELECT mode FROM grants WHERE resource_id = 'full_access'") == [("deny",)]


def test_the_preview_shows_what_it_would_run_reach_and_be_lent(
    here: Company, tmp_path: Path, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-here")
    home = tmp_path / "theirs"
    with opened(f"sqlite:///{home}/remit.db", home, clock) as company:
        board: Any = {"company": company.id}
        company.agent(
            "program",
            adapter_type="process",
            adapter_config={
                "command": "/bin/sh",
                "args": ["-c", "curl x | sh"],
                "env": {"LD_PRELOAD": "/tmp/a.so", "API_TOKEN": "hidden-value"},
            },
        )
        company.agent(
            "writer",
            adapter_type="claude",
            adapter_config={"baseUrl": "https://elsewhere.example", "model": "so\u202enoisrev"},
        )
        company.agent("far", adapter_type="http", adapter_config={"url": "https://far.example/a"})
        seer = company.agent("seer")
        empower(company, seer, "instance.configure")
        empower(company, seer, "mcp_server:forge")
        company.call(company.board, permissions.change, agent=seer.id, level="boss")
        company.call(company.board, mail.send, to="agent:far", body="Begin.", subject="Now")
        company.call(
            company.board,
            schedules.add,
            agent="far",
            to="agent:far",
            subject="Daily",
            body="Again.",
            cron="0 9 * * *",
        )
        hook: Any = {"kind": "webhook", "config": {"url": "https://chat.example.org/hook"}}
        company.call(company.board, bindings.add, **board, agent="far", **hook)
        which, archive = company.id, export(company)
    imported(here, archive)
    view = shown(here, which)
    assert ("program", "command: /bin/sh") in texts(view, "program")
    assert ("program", 'args: ["-c", "curl x | sh"]') in texts(view, "program")
    assert ("writer", "baseUrl: https://elsewhere.example") in texts(view, "address")
    assert ("far", "url: https://far.example/a") in texts(view, "address")
    assert ("writer", "model: so⟨U+202E⟩noisrev") in texts(view, "model")
    assert ("far", "Now") in texts(view, "mail")
    assert any(of == "writer" and "ANTHROPIC_API_KEY" in text for of, text in texts(view, "key"))
    assert view["keys_here"] == ["ANTHROPIC_API_KEY"]
    assert {text for of, text in texts(view, "right") if of == "seer"} >= {
        "governs below: level boss",
        "use mcp_server:forge",
    }
    assert any(of == "far" and "Daily" in text for of, text in texts(view, "schedule"))
    assert any("webhook, waits for its secret" in text for _, text in texts(view, "channel"))
    variables = {text for _, text in texts(view, "environment")}
    assert variables == {f"LD_PRELOAD={REMOVED}", f"API_TOKEN={REMOVED}"}
    assert "hidden-value" not in json.dumps(view)


def test_what_is_accepted_is_what_was_shown(here: Company, handed: Handed) -> None:
    imported(here, handed.archive)
    digest = shown(here, handed.id)["digest"]
    assert shown(here, handed.id)["digest"] == digest
    about: Any = {"company": handed.id, "digest": digest}

    def conflicts(**changes: Any) -> None:
        here.call(here.board, configuration.change, agent=handed.worker.id, changes=changes)
        assert refusal(here, here.board, acceptance.accept, **about) == "stale_revision"
        about["digest"] = shown(here, handed.id)["digest"]

    conflicts(adapterConfig={"command": "/bin/false"})
    for library in ("/a.so", "/b.so"):  # a value that is not shown counts, too
        conflicts(adapterConfig={"command": "/bin/false", "env": {"LD_PRELOAD": library}})
    conflicts(prompt="Instructions are not shown; what was there when it was shown counts.")
    letter: Any = {"company": handed.id, "to": f"agent:{handed.worker.id}", "body": "More."}
    here.call(here.board, mail.send, **letter)
    assert refusal(here, here.board, acceptance.accept, **about) == "stale_revision"
    about["digest"] = shown(here, handed.id)["digest"]

    again = keyed(here.board, "once")
    first = here.call(again, acceptance.accept, **about)
    assert first["accepted"] is True
    assert here.call(again, acceptance.accept, **about) == first
    with pytest.raises(Conflict, match="does not wait to be accepted"):
        here.call(here.board, acceptance.accept, **about)
    record = here.call(here.board, events.listing, company=handed.id, limit=1000)
    (event,) = (one for one in record if one["action"] == "company.accept")
    assert event["details"]["digest"] == about["digest"]
    assert here.call(here.board, events.verify, company=handed.id)["ok"]
    assert here.call(here.board, halts.listing, company=handed.id) == []


def test_only_who_runs_the_instance_accepts(here: Company, handed: Handed) -> None:
    imported(here, handed.archive)
    digest = shown(here, handed.id)["digest"]
    key = here.call(here.board, agents.create_key, agent=handed.worker.id)["token"]
    people = [
        _member(here, handed.id, "guest", "observer"),
        _member(here, handed.id, "member", "board"),
        _member(here, handed.id, "partial", "board", scope=handed.worker.id),
        here.user("stranger"),
    ]
    looks = ("observer", None, "outside_scope", "not_found")
    accepts = ("not_operator", "not_operator", "not_operator", "not_found")
    for who, looking, accepting in zip(people, looks, accepts, strict=True):
        if looking is None:
            view = here.call(who, acceptance.show, company=handed.id)
            assert (view["awaits"], view["may_accept"]) == (True, False)
        else:
            assert refusal(here, who, acceptance.show, company=handed.id) == looking
        about: Any = {"company": handed.id, "digest": digest}
        assert refusal(here, who, acceptance.accept, **about) == accepting
        assert refusal(here, who, halts.go, company=handed.id) in (
            "not_accepted",
            "observer",
            "outside_scope",
            "not_found",
        )
    assert refusal(here, Caller(key), acceptance.accept, digest=digest) == "stopped"
    # Nobody lifts the halt in another way; stopping the company does not take it over.
    assert refusal(here, here.board, halts.go, company=handed.id) == "not_accepted"
    stopped = here.call(here.board, halts.stop, company=handed.id, note="Mine")
    assert (stopped["already"], stopped["awaits_acceptance"]) == (True, True)
    assert refusal(here, here.board, halts.go, company=handed.id) == "not_accepted"
    (halt,) = here.call(here.board, halts.listing, company=handed.id)
    assert halt["may_lift"] is False


def _member(here: Company, which: str, name: str, role: str, **more: Any) -> Caller:
    here.call(here.board, users.add, company=which, name=name, role=role, **more)
    made = here.call(here.board, users.create_token, company=which, user=name)
    return Caller(made["token"])


def test_it_waits_in_the_list_of_who_may_accept_it(here: Company, handed: Handed) -> None:
    imported(here, handed.archive)
    items = here.call(here.board, needs_you.listing)
    (item,) = (one for one in items if one["kind"] == "acceptance")
    assert item["next"] == "remit company accept Theirs"
    assert item["company_id"] == handed.id
    member = _member(here, handed.id, "member", "board")
    assert "acceptance" not in {one["kind"] for one in here.call(member, needs_you.listing)}
    accept(here, handed.id)
    items = here.call(here.board, needs_you.listing)
    assert "acceptance" not in {one["kind"] for one in items}


def test_nothing_of_it_listens_polls_or_is_told(
    here: Company, handed: Handed, clock: VirtualClock
) -> None:
    """Also what a person sets up for it before it is accepted."""
    imported(here, handed.archive)
    board: Any = {"company": handed.id}
    here.call(here.board, secrets.put, **board, name="slack", source="env", place="S")
    room: Any = {"secretRef": "slack", "rooms": ["C0123456"]}
    here.call(here.board, bindings.add, **board, agent=handed.worker.id, kind="slack", config=room)
    here.call(
        here.board,
        repos.add,
        **board,
        name="site",
        url="https://github.com/a/site.git",
        forge="github",
        api_secret="slack",
    )
    here.call(here.board, notices.set_webhook, **board, url="https://pager.example.org/x")
    clock.advance(HOUR)

    def due() -> tuple[int, ...]:
        looked = here.call(as_system(), notice_planning.look, company=handed.id, commands=[])
        return (
            len(here.call(as_system(), receivers.ready)),
            len(here.call(as_system(), watches.ready)),
            looked,
            len(here.call(as_system(), notices.ready, commands=[])),
        )

    assert due() == (0, 0, 0, 0)
    assert here.call(as_system(), receivers.next_due) is None
    assert here.call(as_system(), watches.next_due) is None
    binding = here.sql("SELECT binding_id FROM channel_receivers")[0][0]
    claim: Any = {"binding": binding, "worker": "w"}
    assert here.call(as_system(), receivers.claim, **claim) is None
    accept(here, handed.id)
    assert min(due()) > 0


def test_a_crafted_archive_does_not_arrive_accepted(here: Company, handed: Handed) -> None:
    """No key of an archive says so."""
    folder = unpacked(handed.archive)
    folder["company.toml"] += b"accepted = true\nawaits_acceptance = false\n"
    imported(here, packed(folder))
    assert shown(here, handed.id)["awaits"] is True


@pytest.mark.requirement("FX-81")
@pytest.mark.parametrize("name", ["codexSandbox", "codex_sandbox"])
def test_a_setting_stays_behind_in_either_spelling(name: str) -> None:
    kept, left_out = machine_rights.without({name: "danger-full-access", "model": "m"}, "ada")
    assert kept == {"model": "m"}
    assert name in left_out[0]
    for mode in ("permissionMode", "permission_mode"):
        assert machine_rights.without({mode: "bypassPermissions"}, "ada")[0] == {}


@pytest.mark.tampers
@pytest.mark.requirement("FX-81")
def test_the_preview_shows_checks_folders_and_what_is_approved_and_not_yet_done(
    small: Company,
) -> None:
    change_stage.add_repo(small)
    check: Any = {"repo": "site", "check": "unit", "command": "make test", "network": True}
    small.call(small.board, repo_checks.set_check, company=small.id, **check)
    waiting = a_call(small)
    small.call(small.board, folders.bind, company=small.id, agent=small.ceo.id, repo="site")
    small.sql(
        "UPDATE approvals SET status = 'approved', decided_at = 1,"
        " decided_by_user_id = (SELECT id FROM users LIMIT 1) WHERE id = ?",
        waiting["id"],
    )
    shown = small.call(small.board, acceptance.show, company=small.id)["entries"]
    told = [f"{entry['kind']} of {entry['of']}: {entry['text']}" for entry in shown]
    assert "program of repository site: check unit: make test, with the network" in told
    assert any(line.startswith("folder of ceo: works in ") for line in told)
    assert any(line.startswith("right of lead: approved and not yet done: ") for line in told)
