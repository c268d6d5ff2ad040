"""Folders that runs are shown: lasting ones to work in, tool chains to read, and no way further."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from remit.clock import HOUR
from remit.errors import AlreadyExists, BadInput, Conflict, NotFound, Refused, RemitError
from remit.model.connections.folder import FolderKind
from remit.runtime.runs import conditions, held_commands
from remit.runtime.sandbox import sandbox_policy
from remit.runtime.sandbox.mounts import View
from remit.services.connections import folders, repos
from remit.services.organisation import agents, termination
from remit.services.record import events
from tests import planted, working
from tests.company import Answer, Company, Member
from tests.git_remote import Remote, git
from tests.mailing import send
from tests.test_repos import add, clone, give, worker
from tests.test_sandbox import kind  # noqa: F401

pytestmark = pytest.mark.skipif(not sandbox_policy.look().usable, reason="THERE IS NO SANDBOX")


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path / "remotes" / "site")


def bind(company: Company, agent: Member, **more: Any) -> Answer:
    return company.call(company.board, folders.bind, company=company.id, agent=agent.id, **more)


def mount(company: Company, path: Path | str, **more: Any) -> Answer:
    return company.call(company.board, folders.mount, company=company.id, path=str(path), **more)


def run(company: Company, agent: Member, count: int = 1) -> str:
    """Have an agent started by mail; what it printed."""
    send(company, company.board, f"agent:{agent.name}", "Go on.")
    working.at_work(company, working.over(company, agent, count))
    return working.log_of(company, working.listed(company, agent)[0])


# ── a lasting folder ────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-32")
def test_an_agent_works_in_its_own_copy_that_stays_from_run_to_run(
    small: Company, remote: Remote
) -> None:
    remote.commit({"Makefile": "test:\n\ttrue\n"})
    add(small, remote.url)
    agent = working.program(
        small,
        "coder",
        "pwd; cat notes || echo x >notes; git log --all; git commit -qm Own --allow-empty",
    )
    give(small, agent)
    made = bind(small, agent, repo="site")
    place = small.home / "projects" / agent.id / made["id"]
    first = run(small, agent)
    assert f"{place}\n" in first, "it begins there"
    assert (place / "notes").read_text() == "x\n"
    own = git(place, "log", "-1", "--format=%an <%ae> %s")
    assert re.fullmatch(r"coder <coder@[a-z0-9-]+\.invalid> Own", own), "it commits as itself"
    newer = remote.commit({"more.txt": "later"})
    small.clock.advance(HOUR)  # type: ignore[attr-defined]
    second = run(small, agent, 2)
    assert "\nx\n" in second, "what the first run left is there"
    assert newer in second, "and so is what the remote has by now"
    assert git(place, "rev-parse", "HEAD") != newer, "nothing is moved under the agent's hands"


@pytest.mark.requirement("FX-32")
def test_the_turn_says_what_a_run_has(small: Company, remote: Remote, tmp_path: Path) -> None:
    remote.commit({"Makefile": "test:\n\ttrue\n"})
    tools = tmp_path / "tools"
    (tools / "bin").mkdir(parents=True)
    (tools / "bin" / "cargo").write_text("#!/bin/sh\necho cargo here\n")
    (tools / "bin" / "cargo").chmod(0o755)
    add(small, remote.url)
    agent = working.program(small, "coder", "cat; cargo; echo $GOROOT")
    give(small, agent)
    bind(small, agent, repo="site")
    mount(small, tools, programs=["bin"], variables=["GOROOT=/opt/go"])
    log = run(small, agent)
    assert "cargo here" in log
    assert "/opt/go" in log
    turn = json.loads(next(line for line in log.splitlines() if '"turn"' in line))["turn"]
    assert "tests-there: make test\n" in turn
    assert "Rust (cargo)" in turn
    assert f'read-only: "{tools}"' in turn
    assert "network: " in turn


@pytest.mark.requirement("FX-32")
def test_a_folder_of_the_machine_is_worked_in_without_full_access(
    small: Company, tmp_path: Path
) -> None:
    project, beside = tmp_path / "project", tmp_path / "beside"
    project.mkdir()
    beside.mkdir()
    (beside / "secret").write_text("not yours")
    script = f"pwd; echo done >result; cat {beside}/secret; echo x >{beside}/new; true"
    agent = working.program(small, "coder", script)
    bind(small, agent, path=str(project))
    log = run(small, agent)
    assert f"{project}\n" in log
    assert (project / "result").read_text() == "done\n"
    assert "not yours" not in log
    assert not (beside / "new").exists()


TOLD = "# This folder\n"


def turn_in(log: str) -> str:
    found: str = json.loads(next(line for line in log.splitlines() if '"turn"' in line))["turn"]
    return found


def set_folder(company: Company, folder: str, **more: Any) -> Answer:
    return company.call(company.board, folders.change, company=company.id, folder=folder, **more)


@pytest.mark.requirement("FX-80")
def test_a_run_is_told_the_instructions_of_its_folder_unless_they_are_switched_off(
    small: Company, tmp_path: Path
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "AGENTS.md").write_text("Use tabs.\n")
    agent = working.program(small, "coder", "cat")
    made = bind(small, agent, path=str(project))
    assert made["instructions"] is True
    turn = turn_in(run(small, agent))
    assert turn.startswith(TOLD)
    assert "| Use tabs.\n" in turn
    assert turn.count("Use tabs.") == 1
    (project / "AGENTS.md").write_text("Use blanks.\n")
    assert "| Use blanks.\n" in turn_in(run(small, agent, 2)), "as it is when the run begins"
    assert set_folder(small, made["id"], instructions=False)["instructions"] is False
    assert TOLD not in turn_in(run(small, agent, 3))
    set_folder(small, made["id"], instructions=True)
    assert TOLD in turn_in(run(small, agent, 4))
    changed = [
        event["details"]
        for event in small.call(small.board, events.listing, company=small.id, limit=1000)
        if event["action"] == "folder.change"
    ]
    assert [about["instructions"]["now"] for about in changed] == [True, False]


@pytest.mark.requirement("FX-80")
def test_instructions_of_a_copy_are_switched_for_its_repository_and_for_its_folder(
    small: Company, remote: Remote
) -> None:
    remote.commit({"CLAUDE.md": "Use tabs. @docs/more.md\n", "docs/more.md": "And more.\n"})
    add(small, remote.url)
    agent = working.program(small, "coder", "cat")
    give(small, agent)
    made = bind(small, agent, repo="site", instructions=False)
    assert made["instructions"] is False
    assert TOLD not in turn_in(run(small, agent))
    set_folder(small, made["id"], instructions=True)
    turn = turn_in(run(small, agent, 2))
    assert "| Use tabs. @docs/more.md\n" in turn
    assert "| And more.\n" in turn
    here = {"company": small.id, "name": "site"}
    for _ in range(2):
        assert not small.call(small.board, repos.set_, **here, instructions=False)["instructions"]
    assert TOLD not in turn_in(run(small, agent, 3))


@pytest.mark.requirement("FX-80")
def test_a_clone_comes_with_the_instructions_in_it(company: Company, remote: Remote) -> None:
    remote.commit({"AGENTS.md": "Use tabs.\n"})
    add(company, remote.url)
    agent = worker(company)
    first = clone(company, agent, place="a")
    assert "| Use tabs.\n" in first["instructions"]
    company.call(company.board, repos.set_, company=company.id, name="site", instructions=False)
    assert "instructions" not in clone(company, agent, place="b")
    company.call(company.board, repos.set_, company=company.id, name="site", instructions=True)
    remote.commit({"AGENTS.md": ""})
    company.clock.advance(HOUR)  # type: ignore[attr-defined]
    assert "instructions" not in clone(company, agent, place="c")


@pytest.mark.requirement("FX-80")
def test_only_a_folder_to_work_in_is_changed_and_by_the_board_alone(
    small: Company, tmp_path: Path
) -> None:
    made = mount(small, tmp_path / "tools")
    with pytest.raises(Conflict, match="Only a folder that an agent works in"):
        set_folder(small, made["id"], instructions=False)
    with pytest.raises(NotFound):
        set_folder(small, "nothing", instructions=False)
    bound = bind(small, small.agent("coder"), path=str(tmp_path / "work"), megabytes=100)
    for _ in range(2):
        assert set_folder(small, bound["id"], megabytes=200)["megabytes"] == 200
    with pytest.raises(BadInput, match="nothing to change"):
        set_folder(small, bound["id"])
    caller = small.run(small.ceo).caller
    with pytest.raises(Refused):
        small.call(caller, folders.change, company=None, folder=bound["id"], instructions=False)


@pytest.mark.requirement("FX-80")
def test_settings_of_a_copy_start_nothing_when_remit_brings_it_up_to_date(
    small: Company, remote: Remote
) -> None:
    """An agent writes the settings and hooks of its copy, in which Remit then runs git."""
    add(small, remote.url)
    agent = working.program(small, "coder", "true")
    give(small, agent)
    place = small.home / "projects" / agent.id / bind(small, agent, repo="site")["id"]
    run(small, agent)
    (mirror,) = (small.home / "repos").glob("*/site.git")
    settings = place / ".git" / "config"
    planted.plant_git(place, "copy", mirror.as_uri())
    run(small, agent, 2)
    assert planted.ran(place) == set()
    # Without another address, which is refused as a whole, the copy is brought up to date.
    everything = settings.read_text()
    settings.write_text(everything.replace("insteadOf", "pushInsteadOf"))
    newer = remote.commit({"more.txt": "later"})
    small.clock.advance(HOUR)  # type: ignore[attr-defined]
    run(small, agent, 3)
    assert planted.ran(place) == set()
    # The control: git does all of that for whoever runs it there.
    fetch = ("fetch", "--force", mirror.as_uri(), "+refs/heads/main:refs/heads/other")
    git(place, *fetch)
    wanted = {"copy-pack", "copy-reference-transaction", "copy-filter-alternates"}
    assert wanted <= planted.ran(place)
    assert git(place, "rev-parse", "origin/main") == newer
    settings.write_text(everything)
    with pytest.raises(AssertionError):
        git(place, *fetch)
    assert "copy-ext" in planted.ran(place)


def test_without_the_capability_the_copy_is_not_shown(small: Company, remote: Remote) -> None:
    add(small, remote.url)
    agent = working.program(small, "coder", "cat; pwd")
    bind(small, agent, repo="site")
    log = run(small, agent)
    assert "your folder is not there: you may not have repo:site" in log
    assert not (small.home / "projects").exists()


def test_a_folder_that_holds_too_much_is_not_worked_in(small: Company, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    agent = working.program(small, "coder", "echo started")
    bind(small, agent, path=str(project), megabytes=10)
    (project / "big").write_bytes(os.urandom(11 << 20))
    log = run(small, agent)
    assert "started" not in log
    ended = working.listed(small, agent)[0]
    assert "holds more than 10 MB" in ended["error"]


def test_a_copy_goes_when_nobody_works_in_it_any_more(small: Company, remote: Remote) -> None:
    add(small, remote.url)
    agent = working.program(small, "coder", "true")
    give(small, agent)
    made = bind(small, agent, repo="site")
    run(small, agent)
    place = small.home / "projects" / agent.id / made["id"]
    small.wait(small.app.tidy())
    assert place.is_dir()
    small.call(small.board, folders.remove, company=small.id, folder=made["id"])
    small.wait(small.app.tidy())
    assert not place.exists()
    with pytest.raises(NotFound):
        small.call(small.board, folders.remove, company=small.id, folder=made["id"])
    bind(small, agent, repo="site")
    small.call(small.board, repos.remove, company=small.id, name="site")
    assert small.call(small.board, folders.listing, company=small.id) == []


def test_purging_an_agent_takes_its_folder_along(small: Company, tmp_path: Path) -> None:
    agent = small.agent("coder")
    bind(small, agent, path=str(tmp_path / "here"))
    small.call(small.board, agents.terminate, agent=agent.id)
    small.call(small.board, termination.purge, agent=agent.id)
    assert small.call(small.board, folders.listing, company=small.id) == []


# ── who may, and what is never shown ────────────────────────────────────────────────────────────


@pytest.mark.requirement("FX-32")
def test_only_the_board_over_all_that_operates_the_instance_shows_folders(
    company: Company,
) -> None:
    agent = company.agent("coder")
    at_work = company.run(agent)
    about: dict[str, Any] = {"company": company.id, "agent": agent.id, "path": "/srv/x"}
    others = (company.user("sam"), company.user("olga", role="observer"))
    for who in (at_work.caller, *others):
        with pytest.raises(Refused):
            company.call(who, folders.bind, **about)
        with pytest.raises(Refused):
            company.call(who, folders.mount, company=company.id, path="/srv/x")


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/etc", "/etc/ssl", "/proc/1", "/home", "/srv", "srv/x", "/srv/../etc", "/srv//x"),
        *("/srv/x/", "/srv/./x", "/run/docker", "/home/a/.ssh", "/home/a/.ssh/x", "/root/.aws"),
        *("/root/.remit/agents", "/srv/a:b", "/dev/shm", "/sys/fs/cgroup", "/var/run/x"),
    ],
)
def test_names_that_lead_to_keys_or_to_the_system_are_refused(small: Company, path: str) -> None:
    with pytest.raises(BadInput):
        mount(small, path)
    with pytest.raises(BadInput):
        bind(small, small.agent("coder"), path=path)


@pytest.mark.parametrize(
    "variable",
    ["LD_PRELOAD=/x", "PATH=/x", "HOME=/x", "REMIT_TOKEN=x", "no", "GIT_SSH=/x"],
)
def test_variables_that_steer_who_holds_a_run_are_refused(small: Company, variable: str) -> None:
    with pytest.raises(BadInput):
        mount(small, "/srv/x", variables=[variable])


@pytest.mark.requirement("FX-32")
def test_what_a_name_has_come_to_mean_is_looked_at_before_each_run(
    small: Company, tmp_path: Path
) -> None:
    keys = tmp_path / "keys"
    (keys / ".ssh").mkdir(parents=True)
    plain = tmp_path / "plain"
    plain.mkdir()
    (tmp_path / "link").symlink_to(plain)
    (tmp_path / "above").symlink_to(tmp_path)
    open_ = tmp_path / "open" / "deep"
    open_.mkdir(parents=True)
    open_.parent.chmod(0o777)
    expected = {
        keys: "holds_keys",
        tmp_path / "link": "folder_link",
        tmp_path / "above" / "plain": "folder_link",
        tmp_path / "missing": "no_folder",
        small.home: "folder_of_remit",
        small.home / "run": "folder_of_remit",
        small.home.parent: "folder_of_remit",
        open_: "folder_open",
    }
    for path, code in expected.items():
        with pytest.raises(RemitError) as refused:
            conditions.looked_at(str(path), small.home, FolderKind.WORK)
        assert refused.value.reason == code, path
    assert conditions.looked_at(str(plain), small.home, FolderKind.WORK) == plain
    # As seen by a run: it does not begin, and says why.
    agent = working.program(small, "coder", "echo started")
    mount(small, plain)
    plain.rmdir()
    plain.symlink_to(small.home)
    log = run(small, agent)
    assert "started" not in log
    assert "leads to" in working.listed(small, agent)[0]["error"]


def test_what_one_agent_writes_is_no_other_folder_and_no_tool_chain(small: Company) -> None:
    first, second = small.agent("first"), small.agent("second")
    bind(small, first, path="/srv/project/one")
    with pytest.raises(AlreadyExists):
        bind(small, first, path="/srv/elsewhere")
    for path in ("/srv/project/one", "/srv/project/one/in", "/srv/project"):
        with pytest.raises(Conflict):
            bind(small, second, path=path)
        with pytest.raises(Conflict):
            mount(small, path)
    mount(small, "/srv/tools")
    mount(small, "/srv/tools/more")
    with pytest.raises(Conflict):
        bind(small, second, path="/srv/tools/more/x")


@pytest.mark.requirement("FX-32")
@pytest.mark.usefixtures("kind")
def test_either_sandbox_shows_a_tool_chain_without_its_keys_and_unchangeable(
    small: Company, tmp_path: Path
) -> None:
    tools, work, out = tmp_path / "tools", tmp_path / "work", tmp_path / "out"
    for folder in (tools / "bin", work, out):
        folder.mkdir(parents=True)
    (tools / "credentials.toml").write_text("token-of-somebody")
    (tools / "cache").write_text("cached")
    (out / "secret").write_text("outside")
    (work / "leads-out").symlink_to(out / "secret")
    (tools / "leads-out").symlink_to(out / "secret")
    script = f"""
cat {tools}/cache {tools}/credentials.toml {tools}/leads-out leads-out {out}/secret
echo x >{tools}/cache; echo x >{tools}/new; rm {tools}/cache; chmod 777 {tools}
ln {tools}/cache hard; mv {tools}/bin here; rm -rf {work}; touch {work}/fine
"""
    covered = conditions._covered(tools)

    async def tried() -> held_commands.Ended:
        return await held_commands.run(
            ["/bin/sh", "-c", script],
            folder=work,
            home=work,
            env={},
            seconds=30,
            view=View(read={tools: covered}),
            hidden=[small.home],
        )

    said = small.wait(tried()).heard.text
    assert "cached" in said
    assert "token-of-somebody" not in said
    assert "outside" not in said
    assert (tools / "cache").read_text() == "cached"
    assert sorted(os.listdir(tools)) == ["bin", "cache", "credentials.toml", "leads-out"]
    assert (work / "fine").exists()


@pytest.mark.usefixtures("kind")
def test_a_command_of_ours_has_no_network_and_ends_in_time(small: Company, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    reach = "import socket; socket.create_connection(('127.0.0.1', %d), 2); print('reached')"

    async def tried(*argv: str, seconds: float = 30, network: bool = False) -> held_commands.Ended:
        return await held_commands.run(
            argv, folder=work, home=work, env={}, seconds=seconds, view=View(network=network)
        )

    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        script = reach % server.getsockname()[1]
        outside = small.wait(tried("/usr/bin/python3", "-c", script, network=True))
        inside = small.wait(tried("/usr/bin/python3", "-c", script))
    assert outside.heard.text == "reached\n"
    assert "reached" not in inside.heard.text
    late = small.wait(tried("/bin/sh", "-c", "sleep 1234 & sleep 1234", seconds=0.5))
    assert late.code is None
    assert working.processes_with("sleep\x001234") == []
    loud = small.wait(tried("/bin/sh", "-c", "yes | head -c 2000000; echo end"))
    assert loud.heard.cut
    assert len(loud.heard.text) <= held_commands.MOST_OUTPUT
    assert loud.heard.text.endswith("end\n")


def test_how_a_project_is_tested_is_read_without_trusting_it(tmp_path: Path) -> None:
    (tmp_path / "Makefile").symlink_to("/etc/passwd")
    (tmp_path / "package.json").write_text("[" * 100_000)
    assert conditions.tests_in(tmp_path) == []
    (tmp_path / "package.json").write_text('{"scripts": {"test": "x"}}')
    (tmp_path / "go.mod").write_text("module x")
    assert conditions.tests_in(tmp_path) == ["npm test", "go test ./..."]


def test_who_is_gone_gets_no_folder_and_a_company_has_so_many(
    small: Company, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, dev = small.agent("gone"), small.agent("dev")
    small.call(small.board, agents.terminate, agent=gone.id)
    with pytest.raises(Conflict, match="gone is terminated"):
        bind(small, gone, path=str(tmp_path))
    monkeypatch.setattr(folders, "MOST_FOLDERS", 0)
    with pytest.raises(Conflict, match="The company has 0 folders"):
        bind(small, dev, path=str(tmp_path))
