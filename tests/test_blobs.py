"""Contents of files: the same promises on a disk and in a bucket."""

import errno
import hashlib
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import obstore
import pytest
from obstore.store import S3Store

from remit.clock import DAY, HOUR, Micros, SystemClock
from remit.errors import BadInput, RemitError, StorageFull, TooLarge, Unavailable, Unsupported
from remit.ids import Ids, random_name
from remit.store.blob_store.blobs import (
    MAX_LINKS,
    BlobStore,
    Content,
    LocalBlobs,
    Pair,
    Spool,
    SweepReport,
    open_blobs,
)
from tests import cli_forks
from tests.s3_server import S3Server, s3_server

MIB = 1024 * 1024
LIMIT = 32 * MIB
FILE = "01a1de9f-d394-75f1-8180-044a99366167"
OTHER = "01a1de9f-d39a-773e-ac74-ffd54ca5d440"
HELLO = b"hello\n"
HELLO_SHA = hashlib.sha256(HELLO).hexdigest()
# Far enough ahead that everything stored by a test is old.
LATER = SystemClock().now() + DAY
MUCH_LATER = LATER + DAY
BUCKET = "blobs"


@dataclass
class Place:
    """A store and what is behind it."""

    blobs: BlobStore
    url: str
    incoming: Path
    contents: Callable[[], dict[str, bytes]]
    """All it holds, by path or key."""
    environment: dict[str, str]


@pytest.fixture(scope="module")
def server() -> Iterator[S3Server]:
    with s3_server() as running:
        running.create_bucket(BUCKET)
        yield running


@pytest.fixture
def local(tmp_path: Path) -> Place:
    root = tmp_path / "blobs"

    def contents() -> dict[str, bytes]:
        files = (path for path in root.rglob("*") if path.is_file())
        return {str(path.relative_to(root)): path.read_bytes() for path in files}

    url = f"file://{root}"
    return Place(open_blobs(url, tmp_path / "spool"), url, root / ".incoming", contents, {})


@pytest.fixture
def s3(server: S3Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    prefix = random_name()

    def contents() -> dict[str, bytes]:
        store = S3Store(BUCKET, prefix=prefix, client_options={"allow_http": True})
        paths = [entry["path"] for entry in obstore.list(store).collect()]
        return {path: bytes(obstore.get(store, path).bytes()) for path in paths}

    url, spools = f"s3://{BUCKET}/{prefix}", tmp_path / "spool"
    return Place(open_blobs(url, spools), url, spools, contents, server.environment)


@pytest.fixture(params=["local", "s3"])
def place(request: pytest.FixtureRequest) -> Place:
    found: Place = request.getfixturevalue(request.param)
    return found


def spooled(blobs: BlobStore, *chunks: bytes, limit: int = LIMIT) -> Spool:
    spool = blobs.receive(limit)
    for chunk in chunks:
        spool.write(chunk)
    return spool


def put(blobs: BlobStore, content: bytes = HELLO, file_id: str = FILE) -> Content:
    return blobs.put(file_id, spooled(blobs, content))


def read(blobs: BlobStore, sha256: str = HELLO_SHA, file_id: str = FILE) -> bytes:
    with blobs.open(file_id, sha256) as stream:
        return stream.read()


def key(content: bytes = HELLO, file_id: str = FILE) -> str:
    return f"{file_id}/{hashlib.sha256(content).hexdigest()}"


def nobody(pairs: Sequence[Pair]) -> set[Pair]:
    return set()


def everybody(pairs: Sequence[Pair]) -> set[Pair]:
    return set(pairs)


def sweep(
    blobs: BlobStore,
    referenced: Callable[[Sequence[Pair]], set[Pair]] = nobody,
    now: Micros = LATER,
) -> SweepReport:
    return blobs.sweep(referenced, now, HOUR)


# Storing and reading


def test_what_was_put_can_be_read(place: Place) -> None:
    content = put(place.blobs)
    assert content == Content(HELLO_SHA, len(HELLO), (), True)
    assert read(place.blobs) == HELLO
    assert place.contents() == {key(): HELLO}


def test_each_file_has_a_folder_with_its_contents_by_hash(place: Place) -> None:
    for file_id in (FILE, OTHER):
        for content in (HELLO, b""):
            put(place.blobs, content, file_id)
    expected = {key(content, file_id) for file_id in (FILE, OTHER) for content in (HELLO, b"")}
    assert set(place.contents()) == expected


def test_content_that_is_already_there_may_be_put_again(place: Place) -> None:
    assert put(place.blobs) == put(place.blobs)
    assert place.contents() == {key(): HELLO}


@pytest.mark.parametrize("size", [256 * 1024, 256 * 1024 + 1, 12 * MIB + 7])
def test_large_content_arrives_whole_and_leaves_no_temporary(place: Place, size: int) -> None:
    data = random.Random(size).randbytes(size)
    spool = spooled(place.blobs, data[:100_000], data[100_000:])
    content = place.blobs.put(FILE, spool)
    assert content.size == size
    with place.blobs.open(FILE, content.sha256) as stream:
        assert b"".join(iter(lambda: stream.read(100_001), b"")) == data
    assert list(place.incoming.iterdir()) == []


def test_a_spool_keeps_at_most_a_mebibyte_in_memory(place: Place) -> None:
    with spooled(place.blobs, bytes(2 * MIB)):
        [temporary] = place.incoming.iterdir()
        assert temporary.stat().st_size >= MIB
        assert temporary.stat().st_mode & 0o777 == 0o600


def test_a_stream_closed_early_does_no_harm(place: Place) -> None:
    content = put(place.blobs, bytes(8 * MIB))
    for _ in range(20):
        with place.blobs.open(FILE, content.sha256) as stream:
            assert stream.read(10) == bytes(10)


def test_missing_content_is_an_error_with_a_next_step(place: Place) -> None:
    with pytest.raises(Unavailable) as caught:
        place.blobs.open(FILE, HELLO_SHA)
    assert caught.value.reason == "content_missing"
    assert "remit doctor" in caught.value.step


@pytest.mark.parametrize(("before", "last"), [(0, 11), (5, 6), (10, 1), (10, 20 * MIB)])
def test_more_than_the_limit_is_refused_and_nothing_kept(
    place: Place, before: int, last: int
) -> None:
    spool = spooled(place.blobs, bytes(before), limit=10)
    with pytest.raises(TooLarge):
        spool.write(bytes(last))
    for attempt in (lambda: spool.write(b""), spool.finish, lambda: place.blobs.put(FILE, spool)):
        with pytest.raises(TooLarge):
            attempt()
    assert place.contents() == {}
    assert list(place.incoming.iterdir()) == []


def test_exactly_the_limit_is_accepted(place: Place) -> None:
    assert spooled(place.blobs, bytes(10), limit=10).finish().size == 10


def test_leaving_a_spool_discards_what_was_not_stored(place: Place) -> None:
    with spooled(place.blobs, bytes(2 * MIB)) as spool:
        assert len(list(place.incoming.iterdir())) == 1
    spool.discard()
    assert list(place.incoming.iterdir()) == []
    with pytest.raises(ValueError, match="discarded"):
        place.blobs.put(FILE, spool)


def test_a_spool_is_stored_once(place: Place) -> None:
    spool = spooled(place.blobs, HELLO)
    place.blobs.put(FILE, spool)
    with pytest.raises(ValueError, match="stored"):
        place.blobs.put(OTHER, spool)
    with pytest.raises(ValueError, match="finished"):
        spool.write(b"more")


@pytest.mark.parametrize(
    "file_id", ["", ".", "..", "../x", ".trash", ".incoming", "/etc", f"{FILE}/..", f"{FILE}\0"]
)
def test_a_file_id_that_is_none_is_refused(place: Place, file_id: str) -> None:
    with pytest.raises(BadInput):
        put(place.blobs, HELLO, file_id)
    with pytest.raises(BadInput):
        place.blobs.open(file_id, HELLO_SHA)
    assert place.contents() == {}


@pytest.mark.parametrize("sha256", ["", "..", "../" * 21 + "x", HELLO_SHA.upper(), "g" * 64])
def test_a_hash_that_is_none_is_refused(place: Place, sha256: str) -> None:
    with pytest.raises(BadInput):
        place.blobs.open(FILE, sha256)


@pytest.mark.parametrize("url", ["ftp://host/x", "file:relative", "file://host/x", "s3://", ""])
def test_a_place_of_an_unknown_kind_is_refused(url: str, tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        open_blobs(url, tmp_path)


def test_a_bucket_without_its_library_is_unsupported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "remit.store.blob_store.s3", raising=False)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(Unsupported):
        open_blobs("s3://bucket/prefix", tmp_path)


def test_the_check_says_where_the_blobs_are(place: Place) -> None:
    assert place.url.removeprefix("file://") in place.blobs.check()
    assert place.contents() == {}


def test_sixteen_threads_may_put_the_same_content(place: Place) -> None:
    start, failures = threading.Barrier(16), []

    def store() -> None:
        try:
            spool = spooled(place.blobs, HELLO)
            start.wait()
            place.blobs.put(FILE, spool)
            assert read(place.blobs) == HELLO
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=store) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert place.contents() == {key(): HELLO}


# What is learnt on the way


@pytest.mark.parametrize("step", [1, 2, 7, 40, 41, 1000])
def test_links_are_found_across_the_borders_of_chunks(local: Place, step: int) -> None:
    text = f"see kb://{FILE}, kb://{OTHER.upper()}kb://{FILE} and kb://{FILE[:-1]}, {OTHER}"
    data = text.encode()
    pieces = [data[start : start + step] for start in range(0, len(data), step)]
    assert spooled(local.blobs, *pieces).finish().links == (FILE, OTHER)


def test_links_are_capped(local: Place) -> None:
    ids = Ids()
    new = [ids.new() for _ in range(MAX_LINKS + 5)]
    data = "".join(f"kb://{one}\n" for one in new).encode()
    assert spooled(local.blobs, data[:999], data[999:]).finish().links == tuple(new[:MAX_LINKS])


@pytest.mark.parametrize(
    ("chunks", "is_text"),
    [
        ([b""], True),
        (["naïve €".encode()[:3], "naïve €".encode()[3:]], True),
        ([b"\xe2\x82", b"\xac"], True),
        ([b"\xe2\x82"], False),
        ([b"a\xff"], False),
        ([b"a\0b"], False),
        ([b"\xed\xa0\x80"], False),
        ([b"\0", b"more"], False),
    ],
)
def test_text_is_utf_8_without_nul(local: Place, chunks: list[bytes], is_text: bool) -> None:
    assert spooled(local.blobs, *chunks).finish().is_text is is_text


# Durability on a disk


def test_the_file_is_synced_before_it_is_named_and_the_folder_after(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    fsync, rename = os.fsync, os.rename

    def recording_fsync(fd: int) -> None:
        target = os.readlink(f"/proc/self/fd/{fd}")
        calls.append(f"fsync {Path(target).relative_to(local.incoming.parent)}")
        fsync(fd)

    def recording_rename(source: str, target: str, *, dst_dir_fd: int) -> None:
        calls.append("rename")
        rename(source, target, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "fsync", recording_fsync)
    monkeypatch.setattr(os, "rename", recording_rename)
    monkeypatch.setattr("remit.store.blob_store.spool.random_name", lambda: "temporary")
    put(local.blobs)
    assert calls == ["fsync .incoming/temporary", "rename", f"fsync {FILE}", "fsync ."]
    calls.clear()
    put(local.blobs, b"second version")
    assert calls == ["fsync .incoming/temporary", "rename", f"fsync {FILE}"]


def test_blobs_are_private_to_their_user(local: Place) -> None:
    put(local.blobs)
    root = local.incoming.parent
    modes = {path: path.stat().st_mode & 0o777 for path in [root, *root.rglob("*")]}
    assert modes == {path: 0o600 if path.is_file() else 0o700 for path in modes}


WRITER = """
import random, sys
from pathlib import Path
from remit.store.blob_store.blobs import open_blobs
url, spools, file_id = sys.argv[1:]
blobs = open_blobs(url, Path(spools))
print("ready", flush=True)
while True:
    with blobs.receive(1 << 30) as spool:
        spool.write(random.randbytes(random.choice([10, 4096, 300_000, 6_000_000])))
        print(blobs.put(file_id, spool).sha256, flush=True)
"""


@pytest.mark.slow
def test_a_killed_writer_leaves_no_half_blob(place: Place) -> None:
    stored = set()
    given = [place.url, str(place.incoming), FILE]
    environment = {**os.environ, **place.environment}
    for _ in range(8):
        with cli_forks.instances().open(given, environment, errors=False, script=WRITER) as writer:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
            with pytest.raises(subprocess.TimeoutExpired):
                writer.wait(random.uniform(0, 0.15))
            writer.kill()
            # The last line may be cut; whole lines are promises.
            stored |= set(writer.stdout.read().split(b"\n")[:-1])
    found = {k: v for k, v in place.contents().items() if not k.startswith(".incoming")}
    assert {f"{FILE}/{sha.decode()}" for sha in stored} <= set(found)
    assert found == {key(content): content for content in found.values()}
    sweep(place.blobs, everybody)
    assert list(place.incoming.iterdir()) == []
    # A server may finish what it had received whole when the writer died.
    assert found.items() <= place.contents().items()


@pytest.mark.parametrize("size", [100, 3 * MIB])
@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_failing_disk_is_a_typed_error_and_leaves_nothing(
    local: Place, monkeypatch: pytest.MonkeyPatch, size: int, code: int
) -> None:
    def fail(fd: int, data: bytes) -> int:
        raise OSError(code, os.strerror(code))

    expected = Unavailable if code == errno.EIO else StorageFull
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", fail)
        with pytest.raises(Unavailable) as caught:
            put(local.blobs, bytes(size))
    assert type(caught.value) is expected
    assert local.contents() == {}
    put(local.blobs, bytes(size))


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_full_disk_refuses_and_works_again_once_there_is_room(tmp_path: Path) -> None:
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this machine does not let us mount")
    try:
        blobs = LocalBlobs(tmp_path)
        put(blobs, bytes(600_000))
        for size in (600_000, 3 * MIB):
            with pytest.raises(StorageFull):
                put(blobs, bytes(size), OTHER)
        assert list((tmp_path / ".incoming").iterdir()) == []
        assert sweep(blobs).trashed == 1
        assert sweep(blobs, now=MUCH_LATER).deleted == 1
        put(blobs, bytes(600_000), OTHER)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_put_makes_the_folder_again_when_a_sweep_removed_it(
    local: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = local.incoming.parent / FILE
    rename = os.rename
    removed: list[bool] = []

    def rename_after_a_sweep(source: str, target: str, *, dst_dir_fd: int) -> None:
        if not removed:
            sweep(local.blobs, now=SystemClock().now())
            removed.append(not folder.exists())
        rename(source, target, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "rename", rename_after_a_sweep)
    put(local.blobs)
    assert removed == [True]
    assert read(local.blobs) == HELLO


# Unreachable or refusing buckets


def test_a_bucket_that_is_missing_or_unreachable_is_unavailable(
    s3: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = open_blobs("s3://absent/x", tmp_path)
    attempts: list[Callable[[], object]] = [absent.check, lambda: put(absent)]
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    silent = open_blobs("s3://blobs/x", tmp_path)
    attempts += [silent.check, lambda: read(silent), lambda: sweep(silent)]
    for attempt in attempts:
        with pytest.raises(RemitError) as caught:
            attempt()
        assert caught.value.code == "unavailable"


# Discarding


def test_what_is_discarded_is_gone_and_nothing_else(place: Place) -> None:
    put(place.blobs)
    put(place.blobs, b"another")
    for _ in range(2):  # what is gone already stays gone
        place.blobs.discard(FILE, HELLO_SHA)
        assert place.contents() == {key(b"another"): b"another"}
    with pytest.raises(Unavailable):
        read(place.blobs)


# Sweeping


def test_an_orphan_is_trashed_then_deleted_by_a_later_sweep(place: Place) -> None:
    put(place.blobs)
    assert sweep(place.blobs) == SweepReport(trashed=1, restored=0, deleted=0, temporaries=0)
    assert place.contents() == {f".trash/{key()}": HELLO}
    assert read(place.blobs) == HELLO
    assert sweep(place.blobs, now=MUCH_LATER) == SweepReport(0, 0, 1, 0)
    assert place.contents() == {}
    with pytest.raises(Unavailable):
        read(place.blobs)


def test_a_sweep_leaves_young_and_referenced_blobs_alone(place: Place) -> None:
    put(place.blobs)
    now = SystemClock().now()
    assert sweep(place.blobs, nobody, now) == SweepReport(0, 0, 0, 0)
    assert sweep(place.blobs, everybody) == SweepReport(0, 0, 0, 0)
    assert place.contents() == {key(): HELLO}


def test_the_trash_is_not_emptied_before_its_time(place: Place) -> None:
    put(place.blobs)
    sweep(place.blobs)
    assert sweep(place.blobs, now=SystemClock().now()) == SweepReport(0, 0, 0, 0)
    assert read(place.blobs) == HELLO


def test_a_row_that_appears_while_the_orphan_is_moved_brings_it_back(place: Place) -> None:
    put(place.blobs)
    asked: list[Sequence[Pair]] = []

    def referenced(pairs: Sequence[Pair]) -> set[Pair]:
        asked.append(pairs)
        if len(asked) == 1:
            put(place.blobs)  # the sweep has our answer, and trashes what we stored just now
            return set()
        return set(pairs)

    assert sweep(place.blobs, referenced) == SweepReport(1, 1, 0, 0)
    assert asked == [[(FILE, HELLO_SHA)]] * 2
    assert place.contents() == {key(): HELLO}


def test_a_row_that_appears_after_the_sweep_is_served_from_the_trash_and_restored(
    place: Place,
) -> None:
    put(place.blobs)

    def store_without_a_row_yet(pairs: Sequence[Pair]) -> set[Pair]:
        if not any(name.startswith(".trash") for name in place.contents()):
            put(place.blobs)
        return set()

    assert sweep(place.blobs, store_without_a_row_yet).trashed == 1
    assert read(place.blobs) == HELLO
    assert sweep(place.blobs, everybody, MUCH_LATER) == SweepReport(0, 1, 0, 0)
    assert place.contents() == {key(): HELLO}


def test_content_stored_while_the_trash_is_emptied_stays(place: Place) -> None:
    put(place.blobs)
    sweep(place.blobs)
    rows: set[Pair] = set()

    def store_in_between(pairs: Sequence[Pair]) -> set[Pair]:
        answer = rows & set(pairs)
        put(place.blobs)
        rows.add((FILE, HELLO_SHA))
        return answer

    assert sweep(place.blobs, store_in_between, MUCH_LATER) == SweepReport(0, 0, 1, 0)
    assert place.contents() == {key(): HELLO}


def test_a_put_makes_an_old_blob_young_again(local: Place) -> None:
    put(local.blobs)
    blob = local.incoming.parent / key()
    os.utime(blob, (0, 0))
    put(local.blobs)
    assert sweep(local.blobs, now=SystemClock().now()).trashed == 0
    assert blob.read_bytes() == HELLO


def test_a_slow_upload_does_not_make_an_old_blob(local: Place) -> None:
    spool = spooled(local.blobs, bytes(MIB))
    [temporary] = local.incoming.iterdir()
    os.utime(temporary, (0, 0))
    local.blobs.put(FILE, spool)
    assert sweep(local.blobs, now=SystemClock().now()).trashed == 0


def test_a_reader_never_fails_while_a_blob_moves_to_and_fro(local: Place) -> None:
    put(local.blobs)
    done, reads = threading.Event(), []

    def keep_reading() -> None:
        while not done.is_set():
            reads.append(read(local.blobs))

    reader = threading.Thread(target=keep_reading)
    reader.start()
    asked = 0

    def change_of_mind(pairs: Sequence[Pair]) -> set[Pair]:
        nonlocal asked
        asked += 1
        return set(pairs) if asked % 2 == 0 else set()

    for _ in range(500):
        assert sweep(local.blobs, change_of_mind).restored == 1
    done.set()
    reader.join()
    assert set(reads) <= {HELLO}


def test_stale_temporaries_are_removed_and_young_ones_stay(place: Place) -> None:
    with spooled(place.blobs, bytes(MIB)) as spool:
        [temporary] = place.incoming.iterdir()
        now = SystemClock().now()
        assert sweep(place.blobs, now=now).temporaries == 0
        os.utime(temporary, (0, 0))
        assert sweep(place.blobs, now=now) == SweepReport(0, 0, 0, 1)
        if isinstance(place.blobs, LocalBlobs):
            with pytest.raises(Unavailable):
                place.blobs.put(FILE, spool)


def test_empty_folders_are_removed(local: Place) -> None:
    root = local.incoming.parent
    put(local.blobs)
    (root / OTHER).mkdir()
    sweep(local.blobs)
    assert {path.name for path in root.iterdir()} == {".incoming", ".trash"}
    sweep(local.blobs, now=MUCH_LATER)
    assert list((root / ".trash").iterdir()) == []


def test_what_is_not_a_blob_is_left_alone(place: Place) -> None:
    put(place.blobs)
    if isinstance(place.blobs, LocalBlobs):
        for name in ("notes/readme", f"{FILE}/readme"):
            path = place.incoming.parent / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(b"mine")
    else:
        store = S3Store.from_url(place.url, client_options={"allow_http": True})
        for name in ("notes/readme", f"{FILE}/readme"):
            obstore.put(store, name, b"mine")
    sweep(place.blobs)
    sweep(place.blobs, now=MUCH_LATER)
    assert place.contents() == {"notes/readme": b"mine", f"{FILE}/readme": b"mine"}


def test_rows_are_asked_for_in_batches(local: Place) -> None:
    sizes = []
    for number in range(501):
        put(local.blobs, str(number).encode())

    def referenced(pairs: Sequence[Pair]) -> set[Pair]:
        sizes.append(len(pairs))
        return set(pairs)

    sweep(local.blobs, referenced)
    assert sorted(sizes) == [1, 500]


def test_a_second_sweep_at_the_same_time_does_nothing(local: Place) -> None:
    put(local.blobs)
    reports = []

    def referenced(pairs: Sequence[Pair]) -> set[Pair]:
        reports.append(sweep(LocalBlobs(local.incoming.parent)))
        return set()

    assert sweep(local.blobs, referenced).trashed == 1
    assert reports == [SweepReport(0, 0, 0, 0)] * 2
