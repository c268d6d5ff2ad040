"""How an extra is installed: one sentence, right for each way in which Remit was installed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from remit import extras, version
from remit.extras import how_to_install

pytestmark = pytest.mark.requirement("FX-53")

ROOT = Path(__file__).parent.parent
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]


def command(extra: str) -> list[str]:
    return shlex.split(how_to_install(extra).split("`")[1])


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment that says nothing of who made it."""
    place = tmp_path / "remit-2"
    place.mkdir()
    monkeypatch.setattr(sys, "prefix", str(place))
    return place


@pytest.mark.requirement("FX-21")
@pytest.mark.parametrize("extra", sorted(DECLARED))
def test_the_advice_on_extras_can_be_typed_as_it_is(extra: str) -> None:
    assert command(extra) == [sys.executable, "-m", "pip", "install", *DECLARED[extra]]


def test_each_installer_is_told_its_own_command(
    environment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert command("email")[:4] == [sys.executable, "-m", "pip", "install"]
    with monkeypatch.context() as patched:
        patched.setattr(extras, "find_spec", lambda _: None)
        assert command("email")[:5] == ["uv", "pip", "install", "--python", sys.executable]
    (environment / "uv-receipt.toml").touch()
    assert command("email")[:5] == ["uv", "pip", "install", "--python", sys.executable]
    (environment / "uv-receipt.toml").unlink()
    (environment / "pipx_metadata.json").touch()
    assert command("email") == ["pipx", "inject", "remit-2", *DECLARED["email"]]


def test_an_installation_says_what_its_build_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    built = [
        "click>=8.1",
        "imapclient>=3; extra == 'email'",
        'psycopg[binary]>=3.3 ; extra == "postgres"',
    ]
    monkeypatch.setattr(version, "source_tree", lambda: None)
    monkeypatch.setattr(extras, "requires", lambda _: built)
    assert command("email")[-1] == "imapclient>=3"
    assert command("postgres")[-1] == "psycopg[binary]>=3.3"
    assert how_to_install("slack") == (
        "Install Remit again, from a build that declares the extra `slack`."
    )


def test_without_metadata_no_name_of_an_index_is_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> list[str]:
        raise metadata.PackageNotFoundError

    monkeypatch.setattr(version, "source_tree", lambda: None)
    monkeypatch.setattr(extras, "requires", missing)
    assert "`email`" in how_to_install("email")
    assert not by_name(how_to_install("email"))


# ── the name on an index ────────────────────────────────────────────────────────────────────────

#: An installer that is given `remit`, with extras or a version, but not the path of a file.
_BY_NAME = re.compile(
    r"\b(?:pip3?|uv|uvx|pipx)\b[^\n`|;&]{0,80}?[\s'\"]remit(?:\[[^\]\n]*\])?"
    r"(?:[=<>~!@][^\s'\"`]*)?(?=[\s'\"`.,;:)]|$)",
    re.MULTILINE,
)


def by_name(text: str) -> list[str]:
    found = [match[0] for match in _BY_NAME.finditer(text)]
    # The name of an environment that pipx made is no name on an index.
    return [one for one in found if not one.startswith("pipx inject")]


@pytest.mark.parametrize(
    "told",
    [
        "pip install remit",
        "pip3 install 'remit[telegram]'",
        "uv tool install remit",
        "uvx remit demo --serve",
        "Run `pipx install remit`.",
        "python -m pip install --upgrade remit==0.2.0",
        'uv pip install "remit[email]"',
    ],
)
def test_an_installation_by_name_would_be_found(told: str) -> None:
    assert by_name(told)


@pytest.mark.parametrize(
    "told",
    [
        "uv tool install ./remit-0.2.0-py3-none-any.whl",
        "pip install dist/remit-0.2.0-py3-none-any.whl",
        "pip install -e '.[postgres]'",
        "pipx inject remit aiosmtplib",
        "uv tool install /home/me/remit/dist/remit.whl",
        "uv run --with ./remit.whl",
    ],
)
def test_an_installation_from_a_file_is_none_by_name(told: str) -> None:
    assert by_name(told) == []


def test_nothing_tells_anybody_to_install_a_name_that_is_not_ours() -> None:
    """The name on the public index is free: whoever takes it would run code on machines of ours."""
    listed = subprocess.run(
        ["git", "-C", ROOT, "ls-files", "-z"], check=True, capture_output=True, text=True
    ).stdout.split("\0")
    texts = [
        ROOT / name
        for name in listed
        if name.endswith((".md", ".py", ".html", ".yml", ".yaml", ".toml", ".txt", ".js"))
        or name == "Makefile"
    ]
    told = {
        f"{path.relative_to(ROOT)}: {one}"
        for path in texts
        if path.is_file() and path != Path(__file__)
        for one in by_name(path.read_text(encoding="utf-8"))
    }
    assert told == set()
