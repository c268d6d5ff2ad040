"""Lending: the variables of the worker's environment that a run gets, keys and related settings.

A key is of little use without its address, its region, the proxy on the way and the certificate of
the server. Related variables are lent together, or the adapter reports which are missing. No other
variables are lent.
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
#: Hosts under which Remit itself is reached.
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")
CERTIFICATES: Final = ("NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "CODEX_CA_CERTIFICATE")
#: Variables that name a file, which has to be visible in the sandbox.
FILES: Final = (*CERTIFICATES, "GOOGLE_APPLICATION_CREDENTIALS")
_LARGEST_FILE: Final = 4 << 20


@dataclass(frozen=True)
class Lent:
    """Variables of the worker's environment that a run gets."""

    #: Secrets, which are redacted from logs.
    keys: Mapping[str, str] = field(default_factory=dict)
    #: Settings that belong to the keys: addresses, regions, models, proxies, certificates.
    beside: Mapping[str, str] = field(default_factory=dict)
    #: Why that is not enough, in a sentence, and the next step.
    problem: str = ""
    step: str = ""

    @property
    def hidden(self) -> list[str]:
        """Values to redact: the keys, and passwords that stand in addresses."""
        return [*self.keys.values(), *_passwords(self.beside.values())]


def _passwords(values: Iterable[str]) -> list[str]:
    passwords: list[str] = []
    for value in values:
        with contextlib.suppress(ValueError):
            if password := urlsplit(value).password:
                passwords += [password, unquote(password)]
    return list(dict.fromkeys(passwords))


def pick(environment: Environment, names: Sequence[str]) -> dict[str, str]:
    """Return those of the variables that are set."""
    return {name: environment[name] for name in names if environment.get(name)}


def is_on(environment: Environment, flag: str) -> bool:
    return environment.get(flag, "").strip().lower() not in ("", "0", "false", "no", "off")


def network(environment: Environment) -> dict[str, str]:
    """Return the variables of proxies and certificates, with an exception for Remit's own host."""
    certificates = pick(environment, CERTIFICATES)
    proxies = pick(environment, [*_PROXIES, *(name.lower() for name in _PROXIES)])
    if not proxies:
        return certificates
    without = environment.get(_WITHOUT_PROXY) or environment.get(_WITHOUT_PROXY.lower()) or ""
    names = [*filter(None, (host.strip() for host in without.split(","))), *_LOOPBACK]
    spared = ",".join(dict.fromkeys(names))
    return certificates | proxies | {_WITHOUT_PROXY: spared, _WITHOUT_PROXY.lower(): spared}


def spare_loopback(environment: MutableMapping[str, str]) -> None:
    """Exclude this machine from the proxies, for libraries that read the process's environment."""
    variables = network(environment)
    environment.update(pick(variables, [_WITHOUT_PROXY, _WITHOUT_PROXY.lower()]))


def broken_file(environment: Environment) -> tuple[str, str]:
    """Return the problem with the first variable that names a missing file, and the next step."""
    for name in FILES:
        if environment.get(name) and not Path(environment[name]).is_file():
            problem = f"{name} names a file that is not there."
            return problem, f"Correct or unset {name} for the worker."
    return "", ""


@contextlib.contextmanager
def shown(beside: Mapping[str, str], folder: Path, *, full: bool) -> Iterator[dict[str, str]]:
    """Context manager: the variables for a program in a sandbox, with their files copied into a
    folder of the run, so that the program cannot change the worker's."""
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
