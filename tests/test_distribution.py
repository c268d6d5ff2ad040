"""What is built from the tree holds all of it, and an installation of that runs agents: the short
form of `make release`.

The programs of agents, the skills and the pages lie in the package as files; a build that leaves
some of them out is noticed by nobody who works in a checkout.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import replace
from pathlib import Path

import pytest

from remit import version
from tests.agents.fake_anthropic import FakeAnthropic
from tests.agents.fake_model import Say
from tests.real_programs import KEY, command
from tests.releasing import artifacts, playing, sbom
from tests.releasing.artifacts import Built
from tests.releasing.steps import Failed

pytestmark = [
    pytest.mark.requirement("FX-53"),
    pytest.mark.skipif(
        not (Path(__file__).parent.parent / ".git").exists(),
        reason="A RELEASE IS NOT BUILT: this is no checkout",
    ),
]

ROOT = Path(__file__).parent.parent
ANSWER = "The installed program ran me."


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("built")
    tree = artifacts.clone_with_changes(ROOT, folder / "tree")
    return artifacts.build(tree, folder / "made")


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


def test_the_distributions_hold_the_tree(built: Built) -> None:
    assert artifacts.differences(built) == []


def test_a_distribution_that_lacks_something_is_noticed(built: Built, tmp_path: Path) -> None:
    """As the link to the skills once had them left out of both."""
    tree = tmp_path / "tree"
    shutil.copytree(built.tree, tree, symlinks=True)
    (tree / "src/remit/skills/more.md").write_text("More.")
    (tree / "docs/api.md").write_text("Other words.")
    assert artifacts.differences(replace(built, tree=tree)) == [
        "sdist: src/remit/skills/more.md is missing",
        "sdist: docs/api.md differs",
        "wheel: remit/skills/more.md is missing",
    ]


def test_the_same_sources_give_the_same_bytes(built: Built, tmp_path: Path) -> None:
    tree = artifacts.clone_with_changes(ROOT, tmp_path / "tree")
    for path in tree.rglob("*.py"):
        os.utime(path, (0, 0))
    again = artifacts.build(tree, tmp_path / "made")
    assert artifacts.hashes(again) == artifacts.hashes(built)


def test_the_distributions_say_which_version_they_are(built: Built) -> None:
    expected = version.of_tree(built.tree)
    assert built.version == expected != version.UNKNOWN
    assert built.source.name == f"remit-{expected}.tar.gz"


def test_the_metadata_says_what_an_index_would_show(built: Built) -> None:
    problems = artifacts.problems_of_metadata(built.wheel)
    # The tree that is tested need not be committed; a release refuses one that is not.
    assert [problem for problem in problems if ".dirty" not in problem] == []


def test_a_tree_that_is_no_commit_is_not_released(tmp_path: Path) -> None:
    tree = artifacts.clone(ROOT, tmp_path / "tree")
    artifacts.refuse_unclean(tree)
    (tree / "left over.txt").write_text("x")
    with pytest.raises(Failed, match="differs from its commit"):
        artifacts.refuse_unclean(tree)
    shutil.rmtree(tree / ".git")
    with pytest.raises(Failed, match="version of this tree is unknown"):
        artifacts.refuse_unclean(tree)


def test_the_bill_of_materials_names_what_the_lock_pins() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    made = sbom.document(lock, "0.2.0", 1_800_000_000, "0" * 64)
    assert made == sbom.document(lock, "0.2.0", 1_800_000_000, "0" * 64)
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    pinned = dict(re.findall(r"^([a-z0-9._-]+)(?:\[[a-z,]+\])?==([^ ;\\]+)", lock, re.MULTILINE))
    named = {part["name"]: part["version"] for part in made["components"]}
    assert named.items() <= pinned.items()
    assert pinned.keys() - named.keys() == {
        *("editables", "hatchling", "pathspec", "trove-classifiers")
    }
    refs = [part["bom-ref"] for part in made["components"]]
    assert len(set(refs)) == len(refs)
    assert made["dependencies"] == [{"ref": "pkg:pypi/remit@0.2.0", "dependsOn": refs}]
    assert all(part["hashes"] for part in made["components"])


def test_what_is_installed_upgrades_a_filled_instance(
    built: Built, installed: Path, tmp_path: Path
) -> None:
    program = playing.Program(installed / "remit", tmp_path)
    playing.check_version(program, built.version)
    playing.upgrade(program, "v0.1.0", built.version)


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
