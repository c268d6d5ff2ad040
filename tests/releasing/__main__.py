"""`python -m tests.releasing` builds and tries a release; with `accept` also all heavy checks."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.releasing import artifacts, endpoints, installers, playing, report, sbom
from tests.releasing.artifacts import Built
from tests.releasing.steps import Failed, Steps, run

ROOT = Path(__file__).parents[2]
FIRST = "v0.1.0"
#: Tests that run in the source distribution, which holds all that they need.
_TESTS = ("tests/test_authority.py", "tests/test_budgets.py", "tests/test_cron_words.py")
#: Tests with the real programs of agents.
_REAL = ("tests/test_real_agents.py", "tests/test_real_story.py")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.releasing", description=__doc__)
    parser.add_argument("what", choices=("release", "accept"), nargs="?", default="release")
    chosen = parser.parse_args(arguments)
    steps = Steps()
    try:
        with tempfile.TemporaryDirectory(prefix="remit-release-") as folder:
            built = _release(steps, Path(folder))
            if chosen.what == "accept":
                _accept(steps, built, Path(folder))
                report.write(ROOT, built, steps)
            print(f"{built.version} is in {ROOT / 'dist'}.")
    except Failed as error:
        print(f"Not released. {error}", file=sys.stderr)
        return 1
    return 0


def _release(steps: Steps, folder: Path) -> Built:
    """Build, compare, and keep what is released in `dist`."""
    with steps.step("the tree is a clean commit"):
        artifacts.refuse_unclean(ROOT)
    with steps.step("built from a clean clone") as remarks:
        built = artifacts.build(artifacts.clone(ROOT, folder / "tree"), folder / "made")
        remarks.append(built.version)
    with steps.step("source distribution and wheel hold the tree") as remarks:
        found = artifacts.differences(built)
        if found:
            raise Failed("\n".join(found))
        remarks.append("0 differences")
    with steps.step("a second clone builds the same bytes"):
        again = artifacts.build(artifacts.clone(ROOT, folder / "again"), folder / "made again")
        if artifacts.hashes(built) != artifacts.hashes(again):
            raise Failed(f"{artifacts.hashes(built)} and then {artifacts.hashes(again)}")
    with steps.step("metadata"):
        if problems := artifacts.problems_of_metadata(built.wheel):
            raise Failed("\n".join(problems))
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    dist.mkdir()
    for path in (built.source, built.wheel):
        shutil.copy2(path, dist)
    with steps.step("bill of materials") as remarks:
        moment = int(run("git", "-C", built.tree, "log", "-1", "--format=%ct"))
        target = dist / f"remit-{built.version}.cdx.json"
        sha256 = artifacts.hashes(built)[built.wheel.name]
        lock = built.tree / "requirements.lock"
        count = sbom.write(lock, target, built.version, moment, sha256)
        remarks.append(f"{count} components")
    _install_and_play(steps, built, folder)
    return built


def _install_and_play(steps: Steps, built: Built, folder: Path) -> None:
    """Install in empty environments with each installer, and play what is installed."""
    with steps.step("files of the dependencies") as remarks:
        lock = built.tree / "requirements-llm.lock"
        files = installers.gather(lock, folder / "files")
        remarks.append(f"{len(list(files.iterdir()))} files")
    for name, install in installers.INSTALLERS.items():
        place = installers.Place(folder / name.replace(" ", "-"), files)
        place.folder.mkdir()
        with steps.step(f"{name}: installed, shows the demonstration, and takes an extra"):
            command = install(built.wheel, place)
            program = playing.Program(command, place.folder)
            playing.check_version(program, built.version)
            playing.check_doctor(program)
            playing.play_demo(program)
            place.follow(playing.advice_on(program, "llm extra"))
            if playing.advice_on(program, "llm extra"):
                raise Failed(f"The command that doctor names with {name} did not install llm.")
    # They installed the same files, so the rest is played with the last one.
    with steps.step("every page of the demonstration, and its end") as remarks:
        remarks.append(playing.serve_demo(program))
    with steps.step("a run of each adapter") as remarks, ExitStack() as stack:
        ready = endpoints.prepared(stack)
        fresh = _fresh(command, folder / "runs", endpoints.KEYS)
        remarks += [playing.run_agents(fresh, ready.adapters), *ready.missing]
    with steps.step("an upgrade of a filled instance") as remarks:
        fresh = _fresh(command, folder / "upgrade")
        remarks.append(playing.upgrade(fresh, FIRST, built.version))


def _fresh(
    command: Path, folder: Path, environment: dict[str, str] | None = None
) -> playing.Program:
    folder.mkdir()
    return playing.Program(command, folder, environment or {})


def _accept(steps: Steps, built: Built, folder: Path) -> None:
    """Run tests in the source distribution, and in the clone those with the real programs."""
    shutil.unpack_archive(built.source, folder / "unpacked", filter="data")
    (unpacked,) = (folder / "unpacked").iterdir()
    with steps.step("tests of the source distribution run in it") as remarks:
        remarks.append(_tested(unpacked, folder, _TESTS))
    with steps.step("tests with the real programs of agents") as remarks:
        remarks.append(_tested(built.tree, folder, _REAL))


def _tested(tree: Path, folder: Path, files: tuple[str, ...]) -> str:
    """Run tests of a tree with the packages of this environment; returns the last line."""
    environment = {
        **playing.Program(Path(), folder).surroundings(),
        "PYTHONPATH": str(tree / "src"),
        "REMIT_TEST_AGENTS": str(ROOT / ".venv/agents"),
    }
    words = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files)
    told = run(*words, folder=tree, environment=environment, seconds=3600)
    return re.sub(r" in [0-9.]+s.*", "", told.strip().splitlines()[-1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
