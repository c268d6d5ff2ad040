"""The worker's own environment, as far as a run is lent it: keys, and what belongs to them.

A key is of little use without its address, its region, the proxy on the way there and the
certificate of whoever answers. What goes together is lent together, or the adapter says what is
missing. Nothing else of the environment is.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from remit.ids import random_name

Environment = Mapping[str, str]

_PROXIES: Final = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY")
_WITHOUT_PROXY: Final = "NO_PROXY"
#: Remit itself is reached here.
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
CERTIFICATES: Final = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "CODEX_CA_CERTIFICATE")
#: Variables that name a file, which the program has to be shown.
FILES: Final = (*CERTIFICATES, "GOOGLE_APPLICATION_CREDENTIALS")
_LARGEST_FILE: Final = 4 << 20


@dataclass(frozen=True)
class Lent:
    """Variables of the worker's environment that a run gets."""

    #: Secrets: nobody sees them in a log.
    keys: Mapping[str, str] = field(default_factory=dict)
    #: Settings that belong to the keys: addresses, regions, models, proxies, certificates.
    beside: Mapping[str, str] = field(default_factory=dict)
    #: Why that is not enough, in a sentence, and what to do about it.
    problem: str = ""
    step: str = ""

    @property
    def hidden(self) -> list[str]:
        """Values to redact: the keys, and passwords that stand in addresses."""
        return [*self.keys.values(), *_passwords(self.beside.values())]


def _passwords(values: Iterable[str]) -> list[str]:
    found: list[str] = []
    for value in values:
        with contextlib.suppress(ValueError):
            if password := urlsplit(value).password:
                found += [password, unquote(password)]
    return list(dict.fromkeys(found))


def pick(environment: Environment, names: Sequence[str]) -> dict[str, str]:
    """The variables that are set."""
    return {name: environment[name] for name in names if environment.get(name)}


def is_on(environment: Environment, flag: str) -> bool:
    return environment.get(flag, "").strip().lower() not in ("", "0", "false", "no", "off")


def network(environment: Environment) -> dict[str, str]:
    """Proxies and certificates; Remit is never behind a proxy."""
    found = pick(environment, CERTIFICATES)
    proxies = pick(environment, [*_PROXIES, *(name.lower() for name in _PROXIES)])
    if not proxies:
        return found
    without = environment.get(_WITHOUT_PROXY) or environment.get(_WITHOUT_PROXY.lower()) or ""
    names = [*filter(None, (one.strip() for one in without.split(","))), *_LOOPBACK]
    spared = ",".join(dict.fromkeys(names))
    return found | proxies | {_WITHOUT_PROXY: spared, _WITHOUT_PROXY.lower(): spared}


def spare_loopback(environment: MutableMapping[str, str]) -> None:
    """For libraries that read a proxy from the process itself: what is on this machine is reached
    without it."""
    found = network(environment)
    environment.update(pick(found, [_WITHOUT_PROXY, _WITHOUT_PROXY.lower()]))


def missing_file(environment: Environment) -> str | None:
    """The first variable that names a file which is not there."""
    for name in FILES:
        if environment.get(name) and not Path(environment[name]).is_file():
            return name
    return None


@contextlib.contextmanager
def shown(beside: Mapping[str, str], folder: Path, *, full: bool) -> Iterator[dict[str, str]]:
    """The variables as a program in a sandbox gets them: files are copied into a folder of the run,
    where it can read them and not change the worker's."""
    told = dict(beside)
    copies: list[Path] = []
    try:
        for name in () if full else FILES:
            if name in told:
                folder.mkdir(mode=0o700, exist_ok=True)
                place = folder / f"{random_name()}-{Path(told[name]).name[-60:]}"
                if _copy(Path(told[name]), place):
                    copies.append(place)
                    told[name] = str(place)
                else:
                    del told[name]
        yield told
    finally:
        for place in copies:
            with contextlib.suppress(OSError):
                place.unlink()


def _copy(file: Path, place: Path) -> bool:
    try:
        with file.open("rb") as source:
            content = source.read(_LARGEST_FILE + 1)
        if len(content) > _LARGEST_FILE:
            return False
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with os.fdopen(os.open(place, flags, 0o600), "wb") as target:
            target.write(content)
    except OSError:
        return False
    return True
