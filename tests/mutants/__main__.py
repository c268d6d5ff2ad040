"""`make mutants`: try every mutant, several at once.

This process imports all that the tests need, and forks for each mutant: what takes seconds to
import is there already. Remit itself is imported anew in the fork, from a copy of the source with
the one change in it, which is also where programs find it that a test starts.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from select import poll

from tests.mutants import DOCUMENT, ROOT, Mutant, WrongMutant, document, mutants

#: Longer than any named test takes; a mutant that hangs is not noticed by a test.
PATIENCE = 240.0
#: So few hardly need the doors, which take longest to import.
FEW = 10


@dataclass(frozen=True)
class Trial:
    """What became of the tests with one mutant; without one, they all have to pass."""

    mutant: Mutant | None
    verdict: str
    told: str
    seconds: float

    @property
    def well(self) -> bool:
        return self.verdict == ("noticed" if self.mutant else "passed")

    def __str__(self) -> str:
        name = self.mutant.name if self.mutant else "unchanged"
        return f"{self.verdict:9} {name:14} {self.seconds:5.1f} s  {self.told}"


@dataclass
class _Attempt:
    mutant: Mutant | None
    tests: Sequence[str]
    #: Where the copy of the source is, and what the tests leave.
    place: Path
    process: int
    handle: int
    since: float


class Workshop:
    """Copies of the source, one for each attempt that goes on at a time."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.templates = folder / "templates"
        self.templates.mkdir()
        self.places = deque(folder / f"worker-{one}" for one in range(workers))
        for place in self.places:
            shutil.copytree(ROOT / "src", place / "src")
        self._times = 0

    def run(self, wanted: Sequence[tuple[Mutant | None, Sequence[str]]]) -> Iterator[Trial]:
        waiting = deque(wanted)
        under_way: dict[int, _Attempt] = {}
        ended = poll()
        while waiting or under_way:
            while waiting and self.places:
                mutant, tests = waiting.popleft()
                attempt = self._begin(mutant, tests, self.places.popleft())
                under_way[attempt.handle] = attempt
                ended.register(attempt.handle)
            done = {handle for handle, _ in ended.poll(1000)}
            for handle, attempt in list(under_way.items()):
                late = time.monotonic() - attempt.since > PATIENCE
                if handle in done or late:
                    ended.unregister(handle)
                    del under_way[handle]
                    yield self._end(attempt, late=late and handle not in done)

    def _begin(self, mutant: Mutant | None, tests: Sequence[str], place: Path) -> _Attempt:
        if mutant is not None:
            self._write(place / "src" / "remit" / mutant.file, mutant.source())
        (place / "result.json").unlink(missing_ok=True)
        sys.stdout.flush()
        process = os.fork()
        if not process:
            try:
                _in_fork(mutant, tests, place, self.templates)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(1)
        return _Attempt(mutant, tests, place, process, os.pidfd_open(process), time.monotonic())

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text)
        # What was compiled before is told apart by whole seconds and size.
        self._times += 1
        at = time.time() + 2 * self._times
        os.utime(path, (at, at))

    def _end(self, attempt: _Attempt, *, late: bool) -> Trial:
        seconds = time.monotonic() - attempt.since
        with suppress(ProcessLookupError):
            os.killpg(attempt.process, signal.SIGKILL)  # also what its tests left behind
        os.waitpid(attempt.process, 0)
        os.close(attempt.handle)
        result = attempt.place / "result.json"
        if late:
            verdict, told = "hung", f"no end after {PATIENCE:.0f} s"
        elif not result.exists():
            said = (attempt.place / "output.txt").read_text(errors="replace").splitlines()
            verdict, told = "broke", f"no result: {said[-1] if said else 'it said nothing'}"
        else:
            verdict, told = json.loads(result.read_text())
        if attempt.mutant is not None:
            original = attempt.mutant.path
            shutil.copy2(original, attempt.place / "src" / "remit" / attempt.mutant.file)
        self.places.append(attempt.place)
        return Trial(attempt.mutant, verdict, told, seconds)


def _in_fork(mutant: Mutant | None, tests: Sequence[str], place: Path, templates: Path) -> None:
    os.setsid()
    output = os.open(place / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(output, stream)
    copy = str(place / "src")
    _import_anew(mutant, copy)
    sys.path[:] = [copy, str(ROOT), *(one for one in sys.path if one not in (copy, str(ROOT)))]
    # Looking for plugins takes longer than many a test.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ["PYTHONPATH"] = os.pathsep.join([copy, str(ROOT)])
    os.chdir(ROOT)
    from tests.mutants.trying import attempt  # pytest rewrites the assertions of what it imports

    engine = mutant.engine if mutant else "sqlite"
    kept = None if mutant is not None and mutant.lays_tables else templates
    given = mutant.given if mutant else ""
    verdict = attempt(tests, engine, given, kept, keep=mutant is None)
    (place / "result.json").write_text(json.dumps(verdict))
    os._exit(0)


#: Layers that import nothing above them, so they stay when the change is above; the statements of
#: the store take most of the time that importing takes.
_LOWEST = ("clock.py", "errors.py", "extras.py", "ids.py", "model/", "store/")
_KEPT = (*_LOWEST, "model.py", "store.py")


def _import_anew(mutant: Mutant | None, copy: str) -> None:
    """Forget what was imported, so that it is found in the copy."""
    changed = mutant.file if mutant is not None else "model/"
    keeps = changed.endswith(".py") and not changed.startswith(_LOWEST)
    for name, module in list(sys.modules.items()):
        package, _, rest = name.partition(".")
        if package not in ("remit", "tests"):
            continue
        if not rest or (keeps and f"{rest.replace('.', '/')}.py".startswith(_KEPT)):
            if hasattr(module, "__path__"):
                module.__path__ = [
                    path.replace(str(ROOT / "src"), copy) for path in module.__path__
                ]
            continue
        del sys.modules[name]
        above, _, last = name.rpartition(".")
        if above in sys.modules and last in vars(sys.modules[above]):
            delattr(sys.modules[above], last)


def _prepare(chosen: Sequence[Mutant]) -> None:
    """Import what takes long, so that a fork has it; what is Remit's own it imports again."""
    sys.path.insert(0, str(ROOT / "src"))
    import hypothesis.stateful  # noqa: F401
    import pytest  # noqa: F401

    import tests.company

    if len(chosen) > FEW:
        import remit.entrypoints.cli
        import remit.entrypoints.serve  # noqa: F401
        import tests.http_client  # noqa: F401


@contextmanager
def _workshop(workers: int) -> Iterator[Workshop]:
    memory = Path("/dev/shm")
    folder = Path(
        tempfile.mkdtemp(prefix="remit-mutants-", dir=memory if memory.is_dir() else None)
    )
    folder.chmod(0o711)
    try:
        yield Workshop(folder, workers)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _chosen(only: Sequence[str]) -> list[Mutant]:
    known = mutants()
    chosen = [one for one in known if not only or {one.name, one.area} & set(only)]
    missing = set(only) - {word for one in known for word in (one.name, one.area)}
    if missing:
        raise WrongMutant(f"There is no mutant or table named {min(missing)}.")
    for one in chosen:
        one.source()
    return chosen


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", nargs="+", default=[], help="names of mutants or tables")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--write", action="store_true", help="write docs/mutants.md and end")
    parser.add_argument(
        "--changed-only", action="store_true", help="do not try the tests without a change first"
    )
    asked = parser.parse_args(arguments)
    if asked.write:
        DOCUMENT.write_text(document(mutants()))
        return 0
    try:
        chosen = _chosen(asked.only)
    except WrongMutant as error:
        print(error, file=sys.stderr)
        return 2
    began = time.monotonic()
    _prepare(chosen)
    trials: list[Trial] = []
    with _workshop(asked.workers) as workshop:
        if not asked.changed_only:
            every = sorted({test for one in chosen for test in one.tests})
            parts = [every[n :: asked.workers] for n in range(asked.workers)]
            trials += _shown(workshop.run([(None, part) for part in parts if part]))
        if all(one.well for one in trials):
            trials += _shown(workshop.run([(one, one.tests) for one in chosen]))
        wrong = [one for one in trials if not one.well]
        seconds = time.monotonic() - began
        noticed = sum(one.well for one in trials if one.mutant)
        print(f"{noticed} of {len(chosen)} mutants noticed in {seconds:.0f} s.")
        for one in wrong:
            print(one)
    return 1 if wrong else 0


def _shown(trials: Iterator[Trial]) -> Iterator[Trial]:
    for one in trials:
        print(one, flush=True)
        yield one


if __name__ == "__main__":
    sys.exit(main())
