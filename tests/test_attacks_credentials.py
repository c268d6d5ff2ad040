"""Where the credentials of a repository can be found while they are used: nowhere but with git.

A run spies from its sandbox all the time: environments and arguments of every process it sees, and
every file. git is held, with the credentials in its hands, until the spy has looked everywhere.
"""

import asyncio
import base64
import logging
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from remit.runtime.repos.signing import new_key
from remit.runtime.sandbox import sandbox_policy
from remit.services.changes import changes, reviews
from remit.services.connections import repos
from remit.services.identity import Caller
from tests import working
from tests.change_stage import give
from tests.company import Company
from tests.forge_server import TOKEN
from tests.forge_stage import staged
from tests.git_remote import git
from tests.mailing import send
from tests.review_stage import Checkout
from tests.test_archive import exported

pytestmark = pytest.mark.skipif(not sandbox_policy.look().usable, reason="there is no sandbox here")

#: The system's own files say nothing of us.
_SPY = r"""
n=0
while :; do
  { cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline
    find / "$PWD" "$HOME" \( -path /usr -o -path /proc -o -path /sys -o -path /dev -o -path /opt \
      -o -path '/lib*' -o -name 'seen*' \) -prune -o -type f -size -200k -print0 | xargs -0 cat
  } 2>/dev/null | tr '\0' '\n' >seen.new
  mv seen.new seen; n=$((n + 1)); echo $n >round.new; mv round.new round
done
"""
#: Stands before a program: who has credentials waits until the spy looked from beginning to end,
#: once for each kind of errand.
_HELD = r"""#!/bin/sh
{has}
if [ -n "$what" ] && mkdir {folder}/once-$what 2>/dev/null; then
  begun=$(cat {round}); while [ "$(cat {round})" -lt $((begun + 2)) ]; do sleep 0.05; done
  cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\0' ' ' >>{folder}/arguments
  cat {seen} >>{folder}/spied
  echo "$*" >>{folder}/held
fi
"""


def stand_before(folder: Path, name: str, has: str, then: str, workspace: Path) -> None:
    script = folder / "bin" / name
    given = {"has": has, "folder": folder, "round": workspace / "round", "seen": workspace / "seen"}
    script.write_text(_HELD.format(**given) + then)
    script.chmod(0o755)


@pytest.mark.requirement("FX-28")
@pytest.mark.parametrize(
    "kind",
    ["ssh", pytest.param("https", marks=pytest.mark.campaign("by ssh it is tried each time"))],
)
def test_no_credential_is_found_where_an_agent_or_a_reader_looks(
    small: Company,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
) -> None:
    caplog.set_level(logging.DEBUG)
    app, place = small.app, tmp_path / "there"
    (place / "bin").mkdir(parents=True)
    signing = small.wait(app.signing.make(small.board, company=small.id))
    key = new_key()
    value = TOKEN if kind == "https" else key
    agent = working.program(small, "spy", _SPY)
    give(small, agent)
    send(small, small.board, f"agent:{agent.name}", "Look around.")

    async def story() -> None:
        await working_until(lambda: list(app.settings.workspaces.glob("*/round")))
        (workspace,) = (one.parent for one in app.settings.workspaces.glob("*/round"))
        token = re.search(r"rmt_run_[\w-]{43}", (workspace / "seen").read_text(errors="replace"))
        assert token is not None, "it sees what is its own"
        real = {name: shutil.which(name) for name in ("git", "ssh")}
        has_password = 'what="${REMIT_GIT_PASSWORD:+$1}"'
        stand_before(place, "git", has_password, f'exec {real["git"]} "$@"\n', workspace)
        runs_it = 'for last; do :; done\nexec sh -c "$last"\n'
        has_key = 'what=; case "$*" in *" -i "*receive*) what=push;; *" -i "*) what=fetch;; esac'
        stand_before(place, "ssh", has_key, runs_it, workspace)
        monkeypatch.setenv("PATH", f"{place / 'bin'}:{os.environ['PATH']}")
        run = Caller(token[0])
        await app.repos.clone(run, name="site")
        copy = workspace / "site"
        git(copy, "checkout", "--quiet", "-b", "fix")
        (copy / "app.py").write_text("def add(a, b):\n    return a + b\n")
        git(copy, "commit", "--quiet", "--all", "--message", "Mend it")
        wish = {"name": "site", "branch": "fix", "title": "Mend it"}
        made = await app.proposals.propose(run, **wish)
        await app.publisher.tick()
        if kind == "https":
            await app.watcher.tick()
        looked = {"change": made["change"], "head": made["commit"], "base": made["base"]}
        await app.gate(small.board, reviews.merge, **looked)
        await app.merger.tick()
        shown = await app.gate(small.board, changes.show, change=made["change"])
        assert (shown["status"], shown["problems"]) == ("merged", [])
        (place / "archive").write_bytes(await exported(small))

    def play() -> None:
        working.with_worker(small, lambda _: story())

    put = {"company": small.id, "name": "forge-token", "value": value}
    if kind == "https":
        with staged("github", small, place, monkeypatch):
            small.wait(app.vault.put(small.board, **put))
            play()
    else:
        url = f"ssh://git@forge.example{Checkout(place).bare}"
        small.wait(app.vault.put(small.board, **put))
        about: dict[str, Any] = {"name": "site", "url": url, "secret": "forge-token"}
        small.call(small.board, repos.add, company=small.id, **about)
        play()

    held = (place / "held").read_text()
    assert {"once-fetch", "once-push"} <= {one.name for one in place.glob("once-*")}
    assert len(held.splitlines()) >= 2, "git was held with credentials in its hands"
    arguments, spied = ((place / name).read_bytes() for name in ("arguments", "spied"))
    assert b"git" in arguments
    assert b"Mend it" in spied, "the spy reads what is in its own copy"
    (kept, own) = sorted(
        (small.home / "secrets" / small.id).iterdir(),
        key=lambda one: value.strip() in one.read_text(),
    )
    assert value.strip() == own.read_text().strip(), "there it is, and there alone"
    tables = [name for (name,) in small.sql("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = "\n".join(repr(small.sql(f"SELECT * FROM {name}")) for name in tables)  # noqa: S608
    found = {
        "arguments": arguments,
        "the sandbox": spied,
        "the log": caplog.text.encode(),
        "the database": rows.encode(),
        "the export": (place / "archive").read_bytes(),
        **{
            str(one): one.read_bytes()
            for one in small.home.rglob("*")
            if one.is_file() and one not in (kept, own)
        },
    }
    secrets = [kept.read_text().splitlines()[2], value.splitlines()[-2] if "\n" in value else value]
    for secret in secrets:
        forms = (secret.encode(), base64.b64encode(f"bot:{secret}".encode()))
        assert [name for name, text in found.items() if any(one in text for one in forms)] == []
    assert signing["public_key"] not in (place / "spied").read_text(errors="replace")


async def working_until(look: Any) -> None:
    while not look():  # noqa: ASYNC110
        await asyncio.sleep(0.02)
