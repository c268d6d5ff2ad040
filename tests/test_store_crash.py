"""A process that is killed loses nothing it has acknowledged and leaves nothing half done."""

import hashlib
import os
import signal
import textwrap
from pathlib import Path

import pytest

from remit.services.knowledge import files
from remit.services.record import events
from tests import cli_forks
from tests.company import opened

WRITER = textwrap.dedent(
    """
    import asyncio, sys
    from pathlib import Path
    from remit.app import App
    from remit.services.identity import Caller
    from tests.company import settings

    async def write(app: App, me: Caller, file: str) -> None:
        seen, _ = await app.library.read(me, file=file)
        for n in range(200):
            seen = await app.library.write(
                me, b"content %d" % n, file=file, version=seen["version"], sha256=seen["hash"]
            )
            print(file, seen["version"], seen["hash"], flush=True)

    async def main(url: str, home: str, *files: str) -> None:
        app = App(settings(url, Path(home)))
        me = Caller(app.settings.board_token_file.read_text().strip())
        await asyncio.gather(*(write(app, me, file) for file in files))

    asyncio.run(main(*sys.argv[1:]))
    """
)


@pytest.mark.requirement("AG-10", "BX-05")
@pytest.mark.parametrize("after", [1, 30, 150])
def test_a_killed_writer_loses_nothing_it_acknowledged(
    database_url: str, tmp_path: Path, after: int
) -> None:
    home = tmp_path / "home"
    with opened(database_url, home) as company:
        made = [company.file(company.board, b"start %d" % n)["id"] for n in range(4)]
    with cli_forks.instances().open(
        [database_url, str(home), *made], os.environ, errors=False, script=WRITER
    ) as writer:
        assert writer.stdout is not None
        acknowledged = [writer.stdout.readline() for _ in range(after)]
        writer.kill()
        # What was under way to us when it died was acknowledged as well.
        acknowledged += [line for line in writer.stdout if line.endswith(b"\n")]
        assert writer.wait() == -signal.SIGKILL
    promised = [line.decode().split() for line in acknowledged]
    assert len(promised) >= after
    with opened(database_url, home) as company:
        for file in made:
            history = company.call(company.board, files.history, file=file, limit=500)
            kept = {version["number"]: version["hash"] for version in history}
            mine = {int(number): digest for name, number, digest in promised if name == file}
            assert mine.items() <= kept.items()
            # At most the one that was committed and not yet told, and no gap.
            newest = max(kept)
            assert newest <= max([1, *mine]) + 1
            assert sorted(kept) == list(range(1, newest + 1))
            for number, digest in kept.items():
                content = company.read(company.board, file, number)[1]
                assert hashlib.sha256(content).hexdigest() == digest
            shown = company.call(company.board, files.show, file=file)
            assert (shown["version"], shown["hash"]) == (newest, kept[newest])
            accesses = company.call(company.board, files.accesses, file=file, limit=500)
            written = [entry["version"] for entry in accesses if entry["access"] == "write"]
            assert sorted(written) == sorted(kept)
        record = company.call(company.board, events.verify, company=company.id)
        assert record["ok"], record["faults"]
        log = company.call(company.board, events.listing, company=company.id, limit=1000)
        changes = [e for e in log if e["action"] in ("file.write", "file.create")]
        # The documents of the agent are recorded as the agent's creation; nobody wrote to them.
        total = dict(
            company.sql(
                "SELECT kind, count(*) FROM files JOIN file_versions ON file_id = files.id"
                " GROUP BY kind"
            )
        )
        assert total == {"file": len(changes), "outcome": 1, "state": 1, "log": 1}
        # Life goes on from exactly there.
        seen = company.call(company.board, files.show, file=made[0])
        assert company.write(company.board, seen, b"next")["version"] == seen["version"] + 1
