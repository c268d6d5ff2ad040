"""What is built from the tree holds all of it, and an installation of that runs agents.

The programs of agents, the skills and the pages lie in the package as files; a build that leaves
some of them out is noticed by nobody who works in a checkout.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.agents.fake_anthropic import FakeAnthropic
from tests.agents.fake_model import Say
from tests.real_programs import KEY, command

ROOT = Path(__file__).parent.parent
ANSWER = "The installed program ran me."


@dataclass(frozen=True)
class Built:
    """A source distribution and a wheel, and the names of the files that git tracks."""

    source: Path
    wheel: Path
    tracked: frozenset[str]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Build as a release does: the source distribution first, and the wheel from that."""
    # A copy of what is tracked, so that nothing else that lies here is built in.
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True, text=True
    )
    tracked = frozenset(name for name in listed.stdout.split("\0") if (ROOT / name).is_file())
    tree = tmp_path_factory.mktemp("tree")
    for name in tracked:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)
    made = tmp_path_factory.mktemp("made")
    uv = Path(sys.executable).with_name("uv")
    # The backend is installed, from the lock: nothing is fetched.
    subprocess.run(
        [uv, "build", "--offline", "--no-build-isolation", "--quiet", "--out-dir", made, tree],
        check=True,
        timeout=120,
    )
    (source,) = made.glob("*.tar.gz")
    (wheel,) = made.glob("*.whl")
    return Built(source, wheel, tracked)


@pytest.fixture(scope="module")
def installed(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel in an environment of its own, beside the dependencies of this one."""
    place = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True, timeout=120)
    uv = Path(sys.executable).with_name("uv")
    python = place / "bin/python"
    install = ["pip", "install", "--offline", "--no-deps", "--quiet", "--python", str(python)]
    subprocess.run(
        [uv, *install, built.wheel],
        check=True,
        timeout=120,
    )
    # Files named *.pth in a folder that is added in this way are not read, so the checkout that
    # this environment is linked to does not come along.
    (packages,) = place.glob("lib/python*/site-packages")
    (packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    return place / "bin"


def test_the_source_distribution_holds_what_is_tracked(built: Built) -> None:
    with tarfile.open(built.source) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers()}
    assert names - built.tracked == {"PKG-INFO"}
    assert built.tracked - names == set()


def test_the_wheel_holds_the_whole_package(built: Built) -> None:
    package = {name.removeprefix("src/") for name in built.tracked if name.startswith("src/remit/")}
    with zipfile.ZipFile(built.wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        different = [
            name
            for name in package & names
            if archive.read(name) != (ROOT / "src" / name).read_bytes()
        ]
    assert (package - names, names - package, different) == (set(), set(), [])


def test_what_is_installed_runs_an_agent(installed: Path, tmp_path: Path) -> None:
    program = Path(command("claude"))
    with FakeAnthropic([Say(ANSWER)]) as model:
        surroundings = {
            "PATH": f"{program.parent}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "REMIT_HOME": str(tmp_path / "home"),
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": model.url,
            "LANG": "C.UTF-8",
        }

        def remit(*words: str) -> str:
            done = subprocess.run(
                [installed / "remit", *words],
                env=surroundings,
                cwd=tmp_path,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        where = subprocess.run(
            [installed / "python", "-c", "import remit; print(remit.__file__)"],
            check=True,
            capture_output=True,
            text=True,
        )
        assert str(installed.parent) in where.stdout
        remit("up", "--detach", "--port", "0")
        try:
            assert ANSWER in remit("send", "ceo", "Are you there?", "--wait")
            (package,) = [
                one for one in json.loads(remit("doctor", "--json")) if one["check"] == "package"
            ]
            assert package["state"] == "ok"
        finally:
            remit("down")
        assert model.failures == []
