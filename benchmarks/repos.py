"""Repositories: what a copy for an agent takes, against copying the files and asking the remote."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import office
from benchmarks.harness import Plan, Row, compared, cost
from remit.runtime.runs import lifecycle
from remit.services.connections import repos
from remit.services.identity import Caller
from remit.services.rights import grants

FILES, FOLDERS = 20_000, 200
LINES = 40
MOST_AGAINST_CP = 2.0
_ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def measure(plan: Plan) -> Iterator[Row]:
    files = FILES // 10 if plan.quick else FILES
    source, tree = _remote(plan.home("repos-remote"), files), plan.home("repos-tree")
    _git(plan.folder, "clone", "--quiet", str(source), str(tree))
    size = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file()) >> 20
    with office.opened(plan.home("repos")) as here:
        named: dict[str, Any] = {"company": here.company, "name": "big"}
        here.call(here.board, repos.add, **named, url=str(source))
        here.call(
            here.board,
            grants.give,
            company=here.company,
            to=here.agent_id,
            resource="repo:big",
            level="use",
        )
        app = here.app
        live = here.wait(lifecycle.begin(app.gate, app.ids, app.settings.workspaces, here.agent_id))
        agent = Caller(live.token)
        here.wait(app.repos.sync(here.board, **named))
        works: dict[str, Callable[[Path], object]] = {
            "ours": lambda to: here.wait(app.repos.clone(agent, name="big", place=to.name)),
            "cp": lambda to: subprocess.run(["/bin/cp", "-r", str(tree), str(to)], check=True),
            "git": lambda to: _git(to.parent, "clone", "--quiet", f"file://{source}", str(to)),
        }
        taken = _timed(works, live.workspace, 8 if plan.quick else 10)
        here.wait(lifecycle.finish(app.gate, live))
    about = f"{files:,} files, {size} MB"
    yield compared(
        f"a clone for an agent, {about}", taken["ours"], "cp -r", taken["cp"], most=MOST_AGAINST_CP
    )
    yield compared("the same", taken["ours"], "git clone of the remote", taken["git"])


def _timed(
    works: dict[str, Callable[[Path], object]], folder: Path, count: int
) -> dict[str, float]:
    """In turns; what was made is removed while nobody looks at the clock."""
    samples: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(count):
        for name, work in works.items():
            place = folder / name
            began = time.perf_counter()
            work(place)
            samples[name].append(time.perf_counter() - began)
            shutil.rmtree(place)
    return {name: cost(taken).p50 for name, taken in samples.items()}


def _remote(folder: Path, files: int) -> Path:
    """Something to clone, of text that is neither all the same nor all different."""
    work = folder / "work"
    for number in range(files):
        place = work / f"d{number % FOLDERS}" / f"f{number}.txt"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("".join(f"{number * 7919 + line:x} " * 16 + "\n" for line in range(LINES)))
    _git(work, "init", "--quiet", "--initial-branch=main", ".")
    _git(work, "add", "--all")
    _git(work, "commit", "--quiet", "--message", "all of it")
    bare = folder / "bare.git"
    _git(folder, "clone", "--quiet", "--bare", str(work), str(bare))
    _git(bare, "gc", "--quiet")
    return bare


def _git(at: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=at, env=_ENV, check=True, capture_output=True)
