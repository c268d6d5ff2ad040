"""The command that bubblewrap is started with: each part of it holds something shut.

Some of it another layer repeats, or needs a terminal or a kernel to show; so it is read here.
"""

from pathlib import Path

import pytest

from remit.runtime.sandbox import bubblewrap
from remit.runtime.sandbox.bubblewrap import Bubblewrap
from remit.runtime.sandbox.mounts import Given, Parts


def wrapped(tmp_path: Path) -> list[str]:
    place = {name: tmp_path / name for name in ("workspace", "home", "hidden")}
    for folder in place.values():
        folder.mkdir()
    program = Bubblewrap("/usr/bin/bwrap", ("--unshare-user", "--disable-userns"), "/filter")
    return program.wrap(
        ["/usr/bin/true"],
        Parts(places={tmp_path}),
        Given((place["workspace"], place["home"]), place["workspace"], [place["hidden"]]),
    )


def has(command: list[str], *words: str) -> bool:
    return any(tuple(command[at : at + len(words)]) == words for at in range(len(command)))


@pytest.mark.parametrize(
    "words",
    [
        ("--unshare-user",),
        ("--disable-userns",),
        ("--unshare-ipc",),
        ("--unshare-pid",),
        ("--unshare-uts",),
        ("--hostname", "remit"),
        ("--unshare-cgroup-try",),
        ("--new-session",),
        ("--die-with-parent",),
        ("--cap-drop", "ALL"),
        ("--seccomp", "9"),
        ("--proc", "/proc"),
        ("--dev", "/dev"),
        ("--tmpfs", "/tmp"),
    ],
    ids=" ".join,
)
def test_a_program_is_held_by_all_of_it(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert has(wrapped(tmp_path), *words)


def test_only_its_own_folders_can_be_written_and_what_is_hidden_stays_so(tmp_path: Path) -> None:
    command = wrapped(tmp_path)
    own = {str(tmp_path / "workspace"), str(tmp_path / "home")}
    bound = {command[at + 2] for at, word in enumerate(command) if word == "--bind"}
    assert bound == own
    assert not {"--dev-bind", "--bind-try"} & set(command)
    # After everything that was put there, the root itself is closed; then the program begins.
    end = command.index("--remount-ro")
    assert command[end + 1] == "/"
    assert end > max(at for at, word in enumerate(command) if word in ("--bind", "--ro-bind"))
    shown = command.index(str(tmp_path))
    assert has(command[shown:], "--tmpfs", str(tmp_path / "hidden"))
    assert command[-2:] == ["--", "/usr/bin/true"]
    # The filter is opened by the shell that becomes bubblewrap.
    assert command[:4] == [*bubblewrap._WITH_FILTER, "/filter"]
    assert command[2].endswith('9<"$0"')
