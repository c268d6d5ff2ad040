"""The workspace of a run: what an agent plants in it does no harm."""

import io
import os
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from remit.errors import AlreadyExists, BadInput, Conflict, NotFound, RemitError, Unavailable
from remit.runtime.runs.workspace import (
    create_workspace,
    destroy_workspace,
    materialise,
    open_inside,
)

SECRET = b"secret"
RUN = "01a1de9f-d38a-7200-a0de-cbf896e352af"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return create_workspace(tmp_path / "runs", RUN)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_bytes(SECRET)
    return path


def code(attempt: Callable[[], object]) -> str:
    """How it was refused."""
    with pytest.raises(RemitError) as caught:
        attempt()
    assert caught.value.step
    return caught.value.reason


def refusal(workspace: Path, path: str) -> str:
    return code(lambda: open_inside(workspace, path))


def read(workspace: Path | str, path: str) -> bytes:
    with open_inside(workspace, path) as stream:
        return stream.read()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


# Opening


@pytest.mark.parametrize(
    "path", ["a.txt", "./a.txt", "sub/b.txt", "sub//./b.txt", "{ws}/a.txt", "{ws}/./sub//b.txt"]
)
def test_a_file_inside_is_opened(workspace: Path, path: str) -> None:
    (workspace / "sub").mkdir()
    for name in ("a.txt", "sub/b.txt"):
        (workspace / name).write_bytes(b"content")
    before = open_files()
    assert read(workspace, path.format(ws=workspace)) == b"content"
    assert open_files() == before


def test_an_absolute_path_may_use_the_real_name_of_the_workspace(
    workspace: Path, tmp_path: Path
) -> None:
    (workspace / "a").write_bytes(b"content")
    (tmp_path / "alias").symlink_to(workspace.parent)
    alias = tmp_path / "alias" / RUN
    for path in ("a", f"{alias}/a", f"{workspace}/a"):
        assert read(alias, path) == b"content"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd",
        "..",
        "../secret",
        "sub/../../secret",
        "sub/../a",
        "{ws}/../secret",
        "{ws}x/a",
        "/",
        "link",
        "folder/secret",
        "sub/up/secret",
        "dangling",
        "loop",
    ],
)
def test_a_path_that_leads_out_is_refused(workspace: Path, secret: Path, path: str) -> None:
    (workspace / "sub").mkdir()
    (workspace / "link").symlink_to(secret)
    (workspace / "folder").symlink_to(secret.parent)
    (workspace / "sub" / "up").symlink_to("../../..")
    (workspace / "dangling").symlink_to("nowhere")
    (workspace / "loop").symlink_to("loop")
    before = open_files()
    assert refusal(workspace, path.format(ws=workspace)) == "outside_workspace"
    assert open_files() == before


def test_a_symlink_to_a_file_inside_is_refused_too(workspace: Path) -> None:
    (workspace / "a").write_bytes(b"content")
    (workspace / "b").symlink_to("a")
    assert refusal(workspace, "b") == "outside_workspace"


def test_a_workspace_that_became_a_symlink_is_refused(workspace: Path, secret: Path) -> None:
    workspace.rmdir()
    workspace.symlink_to(secret.parent)
    assert refusal(workspace, "secret") == "outside_workspace"


def test_what_is_not_a_regular_file_is_refused_without_waiting(workspace: Path) -> None:
    (workspace / "folder").mkdir()
    os.mkfifo(workspace / "fifo")
    with socket.socket(socket.AF_UNIX) as unix:
        here = os.getcwd()
        os.chdir(workspace)  # the address of a socket must be short
        try:
            unix.bind("socket")
        finally:
            os.chdir(here)
        before = open_files()
        for path in ("folder", "folder/", ".", str(workspace), "fifo", "socket"):
            assert refusal(workspace, path) == "not_a_file"
        assert open_files() == before


@pytest.mark.skipif(os.geteuid() != 0, reason="making a device needs root")
def test_a_device_is_refused(workspace: Path) -> None:
    try:
        os.mknod(workspace / "null", stat.S_IFCHR | 0o600, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("this machine does not let us make devices")
    assert refusal(workspace, "null") == "not_a_file"


def test_a_hard_link_is_refused(workspace: Path, secret: Path) -> None:
    os.link(secret, workspace / "mine")
    assert refusal(workspace, "mine") == "hard_linked"


@pytest.mark.parametrize("path", ["absent", "absent/a", "file/a"])
def test_a_missing_file_is_not_found(workspace: Path, path: str) -> None:
    (workspace / "file").touch()
    assert refusal(workspace, path) == "not_found"
    with pytest.raises(NotFound):
        open_inside(workspace, path)


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 256, "x/" * 3000, "sub/" + "é" * 200, "\ud800"])
def test_a_path_that_is_none_is_invalid(workspace: Path, path: str) -> None:
    assert refusal(workspace, path) == "invalid"


def test_a_long_path_needs_few_descriptors(workspace: Path) -> None:
    folder = workspace / ("d/" * 800)
    folder.mkdir(parents=True)
    (folder / "a").write_bytes(b"deep")
    assert read(workspace, "d/" * 800 + "a") == b"deep"


@pytest.mark.parametrize("component", ["file", "folder"])
def test_a_swap_for_a_symlink_never_gives_away_the_secret(
    workspace: Path, secret: Path, component: str
) -> None:
    outside = secret.parent / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(SECRET)
    trap, bait, target = workspace / "trap", workspace / "bait", workspace / component
    done = threading.Event()

    def lay_bait() -> None:
        if component == "file":
            bait.write_bytes(b"bait")
        else:
            bait.mkdir()
            (bait / "file").write_bytes(b"bait")

    def swap() -> None:
        trap.symlink_to(outside / "file" if component == "file" else outside)
        while not done.is_set():
            # Rename both away and back, so that the name is each of them in turn.
            for other in (bait, trap):
                os.rename(other, target)
                os.rename(target, other)

    lay_bait()
    seen = {b"bait": 0, "not_found": 0, "outside_workspace": 0}
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    swapper = threading.Thread(target=swap)
    swapper.start()
    try:
        for _ in range(5000):
            try:
                seen[read(workspace, "file" if component == "file" else "folder/file")] += 1
            except RemitError as error:
                seen[error.reason] += 1
    finally:
        done.set()
        swapper.join()
        sys.setswitchinterval(interval)
    assert sum(seen.values()) == 5000
    assert min(seen.values()) > 0, "nothing was swapped while we looked"


# Creating


def test_a_workspace_is_private_and_made_once(tmp_path: Path) -> None:
    path = create_workspace(tmp_path / "deep" / "runs", RUN)
    assert path.stat().st_mode & 0o777 == 0o700
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(AlreadyExists):
        create_workspace(tmp_path / "deep" / "runs", RUN)


@pytest.mark.parametrize("run_id", ["", "..", "a/b", RUN + "/"])
def test_a_run_id_that_is_none_gets_no_workspace(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(BadInput):
        create_workspace(tmp_path, run_id)


# Copies from the knowledge base


def test_a_copy_is_read_only_and_whole(workspace: Path) -> None:
    path = materialise(workspace, "report.md", io.BytesIO(b"v1"))
    assert path == workspace / ".kb" / "report.md"
    assert path.read_bytes() == b"v1"
    assert path.stat().st_mode & 0o777 == 0o444
    assert materialise(workspace, "report.md", io.BytesIO(b"v2" * 500_000)) == path
    assert path.read_bytes() == b"v2" * 500_000
    assert [entry.name for entry in path.parent.iterdir()] == ["report.md"]


def test_a_copy_never_goes_through_a_symlink(workspace: Path, secret: Path) -> None:
    outside = secret.parent / "outside"
    outside.mkdir()
    (workspace / ".kb").symlink_to(outside)
    path = materialise(workspace, "a", io.BytesIO(b"new"))
    assert list(outside.iterdir()) == []
    path.unlink()
    path.symlink_to(secret)
    materialise(workspace, "a", io.BytesIO(b"new"))
    assert secret.read_bytes() == SECRET
    assert path.read_bytes() == b"new"
    assert not path.is_symlink()


def test_a_file_in_the_way_of_the_folder_makes_way(workspace: Path) -> None:
    (workspace / ".kb").write_bytes(b"in the way")
    assert materialise(workspace, "a", io.BytesIO(b"new")).read_bytes() == b"new"


def test_a_folder_in_the_way_of_a_copy_is_a_conflict(workspace: Path) -> None:
    (workspace / ".kb" / "a").mkdir(parents=True)
    with pytest.raises(Conflict):
        materialise(workspace, "a", io.BytesIO(b"new"))
    assert [entry.name for entry in (workspace / ".kb").iterdir()] == ["a"]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/a", "a\0", "x" * 256])
def test_a_copy_needs_a_plain_name(workspace: Path, name: str) -> None:
    with pytest.raises(BadInput):
        materialise(workspace, name, io.BytesIO(b""))


def test_a_stream_that_breaks_leaves_no_copy(workspace: Path) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell():
                raise Unavailable("The blob store is gone.")
            return super().read(size)

    with pytest.raises(Unavailable):
        materialise(workspace, "a", Broken(b"half"))
    assert list((workspace / ".kb").iterdir()) == []


# Destroying


def test_a_destroyed_workspace_takes_nothing_with_it(workspace: Path, secret: Path) -> None:
    (workspace / "sub").mkdir()
    (workspace / "sub" / "file").symlink_to(secret)
    (workspace / "folder").symlink_to(secret.parent)
    os.link(secret, workspace / "hard")
    os.mkfifo(workspace / "fifo")
    materialise(workspace, "a", io.BytesIO(b"copy"))
    destroy_workspace(workspace)
    assert not workspace.exists()
    assert secret.read_bytes() == SECRET
    destroy_workspace(workspace)


def test_a_symlink_in_place_of_the_workspace_is_removed_alone(
    workspace: Path, secret: Path
) -> None:
    workspace.rmdir()
    workspace.symlink_to(secret.parent)
    destroy_workspace(workspace)
    assert not workspace.is_symlink()
    assert secret.read_bytes() == SECRET


def test_depth_and_width_are_no_obstacle(workspace: Path) -> None:
    here = os.open(workspace, os.O_RDONLY)
    for _ in range(2500):  # deeper than the stack, the descriptors and a path
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    for number in range(500):
        (workspace / f"wide{number}").mkdir()
    destroy_workspace(workspace)
    assert not workspace.exists()


READ_ONLY_TREE = """
import os, sys
from pathlib import Path
from remit.runtime.runs.workspace import destroy_workspace
os.setuid(int(sys.argv[2]))
root = Path(sys.argv[1]) / "run"
(root / "a" / "b" / "c").mkdir(parents=True)
(root / "a" / "b" / "file").touch(0o400)
for folder, mode in [("a/b/c", 0), ("a/b", 0o500), ("a", 0o100), (".", 0o500)]:
    os.chmod(root / folder, mode)
destroy_workspace(root)
assert not root.exists()
"""


def test_read_only_trees_are_destroyed() -> None:
    # Permissions mean nothing to root, so a child without privileges does it.
    user = 65534 if os.geteuid() == 0 else os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, user, -1)
        subprocess.run(
            [sys.executable, "-c", READ_ONLY_TREE, folder, str(user)],
            env={"PYTHONPATH": os.pathsep.join(sys.path)},
            check=True,
        )


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_mount_in_the_workspace_is_not_emptied(workspace: Path, secret: Path) -> None:
    outside = secret.parent / "outside"
    outside.mkdir()
    (outside / "file").write_bytes(SECRET)
    mount = workspace / "a" / "mount"
    mount.mkdir(parents=True)
    bind = ["mount", "--bind", str(outside), str(mount)]
    if subprocess.run(bind, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let us mount")
    try:
        assert code(lambda: destroy_workspace(workspace)) == "unavailable"
        assert (outside / "file").read_bytes() == SECRET
    finally:
        [mounted] = workspace.glob("**/mount")
        subprocess.run(["umount", str(mounted)], check=True)
    destroy_workspace(workspace)
    assert (outside / "file").read_bytes() == SECRET
