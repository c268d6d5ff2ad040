"""Settings: options of a command first, then the environment, then `remit.toml` in REMIT_HOME, then
defaults. The setting `port` is REMIT_PORT in the environment, and likewise each other one."""

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from ipaddress import ip_network
from pathlib import Path
from typing import Any

from remit.errors import BadInput

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8420
DEFAULT_SLOTS = 4
MAX_PORT = 65_535
MAX_SLOTS = 1000
DEFAULT_JOBS = 4
MOST_JOBS = 32
KEEP_FAILED_WORKSPACES = 24


@dataclass(frozen=True, slots=True)
class Settings:
    """The `#:` comment of each setting is its meaning in docs/configuration.md."""

    #: The home folder: database, contents of files, board's token, secrets, `remit.toml`, logs.
    #: Only its owner can read it.
    home: Path
    #: The database: `sqlite:///PATH`, or `postgresql://USER@HOST/NAME` for several processes.
    #: Without it, the file `remit.db` in the home folder.
    database_url: str
    #: The store of the contents of files: `file:///PATH`, or `s3://BUCKET/PREFIX` with the usual
    #: variables for credentials. Without it, the folder `blobs` in the home folder.
    blob_url: str
    #: The addresses of the instance as others write them. The first is in links, and commands
    #: connect there. Without it, commands connect to the instance of this home folder, or else to
    #: `http://127.0.0.1:8420`.
    url: str | None = None
    #: Other addresses by which the instance is reached from outside.
    more_urls: tuple[str, ...] = ()
    #: Addresses or networks of the proxies in front whose headers are believed; `none` says that
    #: there is no proxy. Without it, nothing is said about proxies, and none is believed.
    proxies: tuple[str, ...] | None = None
    #: The token of the command line, which says who you are. `remit login` keeps it in
    #: `remit.toml`. Without it, `board.token` in the home folder, for the instance of that folder.
    token: str | None = None
    #: The company of the command line, by name or id. Without it, your only company.
    company: str | None = None
    #: The address of this machine where `remit up` and `remit serve` listen.
    host: str = DEFAULT_HOST
    #: The port where they listen; 0 picks a free one.
    port: int = DEFAULT_PORT
    #: Most agents that `remit up` or a worker runs at once; with 0, `remit up` starts none.
    slots: int = DEFAULT_SLOTS
    #: Whether to listen beyond this machine without TLS and without a declared proxy.
    plain_http: bool = False
    #: Largest archive that may be imported, in MiB. Without it, 2048.
    largest_import: int | None = None
    #: Most background jobs that a worker executes at once, from 1 to 32.
    background_jobs: int = DEFAULT_JOBS
    #: For how many hours the workspace of a failed run is retained; 0 means not at all.
    keep_failed_workspaces: int = KEEP_FAILED_WORKSPACES
    #: Whether channels may call addresses in private networks, this machine's among them.
    private_channels: bool = False
    #: Servers in place of the public ones, by kind of channel.
    channel_servers: Mapping[str, str] = field(default_factory=dict)
    #: Prices of models for every company, as the table `[prices]` of the file has them.
    prices: Mapping[str, Any] = field(default_factory=dict)

    @property
    def urls(self) -> tuple[str, ...]:
        """All addresses of the instance, the one for links first."""
        return ((self.url,) if self.url else ()) + self.more_urls

    @property
    def board_token_file(self) -> Path:
        return self.home / "board.token"

    @property
    def run_folder(self) -> Path:
        return self.home / "run"

    @property
    def workspaces(self) -> Path:
        return self.home / "run" / "workspaces"

    @property
    def secrets(self) -> Path:
        """Folder of the secret values that Remit stores itself, one file each."""
        return self.home / "secrets"

    @property
    def job_folder(self) -> Path:
        return self.home / "run" / "jobs"

    @property
    def log_folder(self) -> Path:
        return self.home / "logs"


def load(
    environment: Mapping[str, str] | None = None, *, problems: list[BadInput] | None = None
) -> Settings:
    """Read the settings; refuse wrong ones, or add them to `problems` and use the defaults in their
    place."""
    env = os.environ if environment is None else environment
    home = Path(env.get("REMIT_HOME") or Path.home() / ".remit").expanduser().absolute()
    wrong: list[BadInput] = []
    stored = _read(home / "remit.toml", wrong)

    values: dict[str, Any] = {_PRICES: stored.pop(_PRICES, {})}
    for name, read in _KNOWN.items():
        text = env.get(f"REMIT_{name.upper()}") or stored.get(name)
        if text is not None:
            try:
                values[name] = read(text)
            except BadInput as error:
                wrong.append(_bad(error.sentence, error.step))
    if problems is not None:
        problems += wrong
    elif wrong:
        raise wrong[0]
    if urls := values.get("url"):
        values["url"], values["more_urls"] = urls[0], urls[1:]
    values["database_url"] = values.get("database_url") or f"sqlite:///{home / 'remit.db'}"
    values["blob_url"] = values.get("blob_url") or (home / "blobs").as_uri()
    return Settings(home, **values)


def _bad(sentence: str, step: str) -> BadInput:
    """An error in a setting, which by its code is none of the arguments of a command."""
    return BadInput(sentence, step, code="bad_setting")


def prepare_home(settings: Settings) -> None:
    """Make the folders, readable by their owner only."""
    try:
        for folder in (
            settings.home,
            settings.run_folder,
            settings.workspaces,
            settings.job_folder,
            settings.log_folder,
        ):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings.home.chmod(0o700)
    except OSError as error:
        raise BadInput(
            f"{settings.home} cannot be used ({error.strerror}).",
            "Point REMIT_HOME to a folder that you can write.",
        ) from error


def known() -> dict[str, Callable[[str], object]]:
    """Return the parser of each setting, by its name in `remit.toml`."""
    return dict(_KNOWN)


def _number(name: str, what: str, usual: str, digits: int) -> Callable[[str], int]:
    """Return a parser of whole numbers with at most `digits` digits."""

    def read(text: str) -> int:
        if not text.isascii() or not text.isdecimal() or not 0 < len(text) <= digits:
            raise BadInput(f"{name} must be a number of {what}.", f'Write it like "{usual}".')
        return int(text)

    return read


def _port(text: str) -> int:
    # Kubernetes sets REMIT_PORT to such an address where a service is called remit.
    if text.startswith("tcp://"):
        return DEFAULT_PORT
    return _up_to(MAX_PORT, "port", str(DEFAULT_PORT))(text)


def _up_to(most: int, name: str, usual: str) -> Callable[[str], int]:
    """Return a parser of whole numbers up to `most`."""

    def read(text: str) -> int:
        number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None
        if number is None or number > most:
            raise BadInput(
                f"{name} must be a whole number from 0 to {most}.", f'Write it like "{usual}".'
            )
        return number

    return read


def _jobs(text: str) -> int:
    """Parse a number of jobs, clamped to 1 to 32."""
    try:
        wanted = int(text)
    except ValueError:
        raise BadInput(
            "background_jobs must be a whole number.", f"Write it like {DEFAULT_JOBS}."
        ) from None
    return min(max(wanted, 1), MOST_JOBS)


def _yes_or_no(name: str) -> Callable[[str], bool]:
    def read(text: str) -> bool:
        if text not in ("yes", "no"):
            raise BadInput(f"{name} must be yes or no.", 'Write it like "yes".')
        return text == "yes"

    return read


def _servers(text: str) -> dict[str, str]:
    servers = {}
    for part in _parts(text):
        kind, _, url = part.partition("=")
        if not kind or not url.startswith(("http://", "https://")):
            raise BadInput(
                "channel_servers must name a server for each kind of channel.",
                'Write it like "telegram=http://127.0.0.1:8081".',
            )
        servers[kind] = url.rstrip("/")
    return servers


def _parts(text: str) -> tuple[str, ...]:
    return tuple(text.replace(",", " ").split())


def _proxies(text: str) -> tuple[str, ...]:
    """Parse networks of proxies; "none" says that there is no proxy."""
    if text.strip() == "none":
        return ()
    networks = []
    for part in _parts(text):
        try:
            network = ip_network(part, strict=False)
        except ValueError:
            network = None
        if network is None:
            raise BadInput(
                f"proxies names {part[:60]!r}, which is neither an address nor a network.",
                'Write it like "127.0.0.1, 10.0.0.0/8"; "none" if there is no proxy.',
            )
        if not network.prefixlen:
            raise BadInput(
                f"proxies names {part}, so everybody would be believed.",
                "Name the addresses of your proxies alone.",
            )
        networks.append(str(network))
    return tuple(networks)


#: The parser of each setting's text.
_KNOWN: dict[str, Callable[[str], object]] = {
    **dict.fromkeys(("database_url", "blob_url", "token", "company", "host"), str),
    "url": _parts,
    "proxies": _proxies,
    "port": _port,
    "slots": _up_to(MAX_SLOTS, "slots", str(DEFAULT_SLOTS)),
    "plain_http": _yes_or_no("plain_http"),
    "largest_import": _number("largest_import", "MiB", "4096", 7),
    "background_jobs": _jobs,
    "keep_failed_workspaces": _number("keep_failed_workspaces", "hours", "24", 5),
    "private_channels": _yes_or_no("private_channels"),
    "channel_servers": _servers,
}


#: The one setting that is a table, and only in the file.
_PRICES = "prices"


def _read(path: Path, problems: list[BadInput]) -> dict[str, Any]:
    """Return the settings of a file as texts, as the environment has them, without wrong ones."""
    try:
        with path.open("rb") as file:
            stored = tomllib.load(file)
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, OSError, UnicodeDecodeError) as error:
        problems.append(_bad(f"{path} cannot be read ({error}).", "Correct the file."))
        return {}
    texts: dict[str, Any] = {}
    for key, value in stored.items():
        if key == _PRICES and isinstance(value, dict):
            texts[key] = value
        elif key == _PRICES:
            step = "Name models below [prices], each with a price."
            problems.append(_bad(f"{path}: prices must be a table.", step))
        elif key not in _KNOWN:
            close = get_close_matches(key, (*_KNOWN, _PRICES), 1)
            known = ", ".join((*_KNOWN, _PRICES))
            step = f"Did you mean {close[0]}?" if close else f"Known: {known}."
            problems.append(_bad(f"{path} has an unknown setting {key[:40]!r}.", step))
        elif isinstance(value, str) or type(value) is int:
            texts[key] = str(value)
        else:
            problems.append(_bad(f"{path}: {key} must be text.", "Put the value in quotes."))
    return texts
